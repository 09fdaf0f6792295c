//! CUBIC by the formulas of RFC 9438, with fractions of segments.
//!
//! The window grows by `(target - cwnd) / cwnd` per segment ACKed, with the target `W(t + RTT)` within `[cwnd, 1.5 cwnd]`
//! (sections 4.2, 4.4 and 4.5), or follows `W_est` while that is ahead of the curve (section 4.3).

use ranpace_units::{Span, Time};

use super::curve::Curve;
use super::linux::MIN_CNT;
use super::{Params, equations};
use crate::classic::hystart;
use crate::classic::newreno::MIN_SSTHRESH;
use crate::interface::{
    Ack, Congestion, CongestionControl, Context, LossBased, LossResponse, Sample, Signal, Window,
};

/// The control.
#[derive(Clone, Debug)]
pub struct RfcCubic {
    pub(super) curve: Curve,
    /// `cwnd_prior`, the window at the last congestion; zero for none.
    pub(super) prior: f64,
}

impl RfcCubic {
    /// Creates a control.
    pub fn new(params: Params, hystart: hystart::Kind) -> Self {
        Self { curve: Curve::new(params, hystart), prior: 0.0 }
    }

    /// Grows the window by sections 4.2 to 4.5.
    fn grow(&mut self, cx: &Context, w: &mut Window, acked: f64) {
        let epoch = self.curve.epoch.unwrap_or_else(|| self.curve.begin_epoch(cx.now, w.cwnd));
        let t = cx.now.since(epoch).as_secs_f64();
        let target = self.curve.origin + self.curve.above_centre(t + cx.srtt.as_secs_f64());
        let target = equations::bounded_target(target, w.cwnd);
        self.curve.w_est += self.alpha() * acked / w.cwnd;
        let cubic = self.curve.origin + self.curve.above_centre(t);
        if self.curve.params.friendliness && cubic < self.curve.w_est {
            w.cwnd = w.cwnd.max(self.curve.w_est);
        } else {
            w.cwnd += (target - w.cwnd) / w.cwnd * acked;
        }
    }

    /// Gain of `W_est` per window: one segment from `cwnd_prior` on (section 4.3).
    fn alpha(&self) -> f64 {
        if self.curve.w_est >= self.prior { 1.0 } else { equations::alpha(self.curve.params.beta) }
    }
}

impl CongestionControl for RfcCubic {
    fn on_start(&mut self, cx: &Context, _: &mut Window) {
        self.curve.hystart.reset(cx);
    }

    fn on_sample(&mut self, cx: &Context, w: &mut Window, sample: &Sample) {
        self.curve.on_sample(cx, w, sample);
    }

    fn on_congestion(&mut self, cx: &Context, w: &mut Window, event: &Congestion) -> LossResponse {
        let ssthresh = if event.first { self.recalc_ssthresh(cx, w) } else { w.ssthresh.max(MIN_SSTHRESH) };
        if let Signal::Timeout { .. } = event.kind {
            self.curve.reset(cx);
            self.prior = 0.0;
        }
        LossResponse::ReduceTo(ssthresh)
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        if !cx.cwnd_limited {
            return;
        }
        let acked = self.curve.slow_start(cx, w, ack.acked as f64);
        if acked > 0.0 {
            self.grow(cx, w, acked);
        }
    }

    fn on_idle_restart(&mut self, cx: &Context, _: &mut Window, idle: Span) {
        self.curve.on_idle_restart(cx.now, idle);
    }

    fn on_path_change(&mut self, cx: &Context, _: &mut Window) {
        self.curve.on_path_change(cx);
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        // The RFC has no `cnt`, but the series of both forms have the same columns.
        self.curve.inspect(MIN_CNT, show);
    }
}

impl LossBased for RfcCubic {
    /// Ends the epoch and sets `W_max` (RFC 9438, sections 4.6 and 4.7).
    fn recalc_ssthresh(&mut self, _: &Context, w: &Window) -> f64 {
        let Params { beta, fast_convergence, .. } = self.curve.params;
        let give_way = w.cwnd < self.curve.w_max && fast_convergence;
        self.curve.epoch = None;
        self.prior = w.cwnd;
        self.curve.w_max = if give_way { equations::lowered_maximum(beta, w.cwnd) } else { w.cwnd };
        equations::reduced(beta, w.cwnd).max(MIN_SSTHRESH)
    }

    fn epoch_start(&self) -> Option<Time> {
        self.curve.epoch
    }
}
