//! State shared by both forms of CUBIC: the curve of the current epoch, and how slow start ends.

use ranpace_units::{Span, Time};

use super::{Params, equations};
use crate::classic::hystart::{self, HyStart};
use crate::interface::{Context, Sample, Window};

/// Neither the minimum RTT nor HyStart uses RTT samples from an epoch's first second (Linux).
const RECOVERING: Span = Span::SECOND;

/// The curve of an epoch, which begins with the first ACK in congestion avoidance after a congestion event.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    pub(super) params: Params,
    pub(super) hystart: HyStart,
    /// `W_max`, the window at the last congestion, in segments; zero for none.
    pub(super) w_max: f64,
    /// Beginning of the epoch.
    pub(super) epoch: Option<Time>,
    /// `K` in seconds.
    pub(super) k: f64,
    /// The curve's centre: `W_max`, or the window if that is larger.
    pub(super) origin: f64,
    /// `W_est`, the window that a Reno flow would have.
    pub(super) w_est: f64,
    /// Smallest RTT outside an epoch's first second; zero for none.
    pub(super) min_delay: Span,
}

impl Curve {
    pub(super) fn new(params: Params, hystart: hystart::Kind) -> Self {
        Self {
            params,
            hystart: HyStart::new(hystart),
            w_max: 0.0,
            epoch: None,
            k: 0.0,
            origin: 0.0,
            w_est: 0.0,
            min_delay: Span::ZERO,
        }
    }

    /// Forgets maximum, minimum RTT and epoch (Linux `bictcp_reset`).
    pub(super) fn reset(&mut self, cx: &Context) {
        self.hystart.reset(cx);
        self.w_max = 0.0;
        self.min_delay = Span::ZERO;
        self.epoch = None;
    }

    pub(super) fn begin_epoch(&mut self, now: Time, cwnd: f64) -> Time {
        self.epoch = Some(now);
        self.w_est = cwnd;
        if self.w_max <= cwnd {
            self.k = 0.0;
            self.origin = cwnd;
        } else {
            self.k = equations::k(self.params.c, self.w_max, cwnd);
            self.origin = self.w_max;
        }
        now
    }

    /// The curve relative to its centre, `t` seconds into the epoch.
    pub(super) fn above_centre(&self, t: f64) -> f64 {
        equations::above_centre(self.params.c, self.k, t)
    }

    /// Processes an RTT sample, except in the epoch's first second.
    pub(super) fn on_sample(&mut self, cx: &Context, w: &mut Window, sample: &Sample) {
        let Some(rtt) = sample.rtt else { return };
        if self.epoch.is_some_and(|epoch| cx.now.since(epoch) < RECOVERING) {
            return;
        }
        let rtt = rtt.max(Span::from_micros(1));
        if self.min_delay.is_zero() || rtt < self.min_delay {
            self.min_delay = rtt;
        }
        self.hystart.on_sample(cx, w, rtt, self.min_delay);
    }

    /// Segments of `acked` that slow start leaves over for congestion avoidance.
    pub(super) fn slow_start(&mut self, cx: &Context, w: &mut Window, acked: f64) -> f64 {
        if w.in_slow_start() { self.hystart.slow_start(cx, w, acked) } else { acked }
    }

    /// Shifts the epoch by an idle time, which must not advance the curve (Linux on `CA_EVENT_TX_START`; RFC 9438, section
    /// 5.8).
    pub(super) fn on_idle_restart(&mut self, now: Time, idle: Span) {
        self.epoch = self.epoch.map(|epoch| (epoch + idle).min(now));
    }

    /// Discards the RTT of the old path.
    pub(super) fn on_path_change(&mut self, cx: &Context) {
        self.min_delay = Span::ZERO;
        self.hystart.reset(cx);
    }

    /// Shows the state; `cnt` is the number of segments ACKed per segment of growth.
    pub(super) fn inspect(&self, cnt: u64, show: &mut dyn FnMut(&'static str, f64)) {
        show("w_max", self.w_max);
        show("k", self.k);
        show("w_est", self.w_est);
        show("cnt", cnt as f64);
        show("epoch_start", self.epoch.map_or(f64::NAN, Time::as_secs_f64));
        show("min_delay", self.min_delay.as_secs_f64());
        show("hystart_found", f64::from(u8::from(self.hystart.has_found())));
    }
}
