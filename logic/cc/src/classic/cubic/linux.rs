//! CUBIC as implemented in Linux 6.x (`net/ipv4/tcp_cubic.c`), in whole segments.
//!
//! The window grows by a segment per `cnt` ACKed, `cnt = cwnd / (W(t + min RTT) - cwnd)`, recomputed every 1/32 s or when the
//! window changes. Growth is at most one segment per 2 ACKed, one per 100 windows beyond the curve, and 5 % per window while
//! no maximum is known. `W_est` gains one segment per `15/8` windows. An idle time shifts the epoch; a timeout resets the
//! state.
//!
//! Ours: times are in nanoseconds, but `cnt` changes at most once per millisecond, as with HZ = 1000.

use ranpace_units::{Span, Time};

use super::curve::Curve;
use super::{Params, equations};
use crate::classic::hystart::{self, HyStart};
use crate::classic::newreno::MIN_SSTHRESH;
use crate::interface::{
    Ack, Congestion, CongestionControl, Context, LossBased, LossResponse, Sample, Signal, Window,
};

/// Time for which `cnt` is kept while the window is unchanged (Linux: HZ / 32, in whole milliseconds).
const UPDATE_MS: u64 = 31;
/// Fewest segments ACKed per segment of growth (Linux).
pub(super) const MIN_CNT: u64 = 2;
/// Windows per segment of growth beyond the curve (Linux).
const IDLE_WINDOWS: u64 = 100;
/// Segments ACKed per segment of growth while no maximum is known (Linux): 5 % per RTT.
const UNKNOWN_CNT: u64 = 20;

/// The control.
#[derive(Clone, Debug)]
pub struct LinuxCubic {
    pub(super) curve: Curve,
    /// Segments ACKed that `W_est` has not yet been credited with (Linux `ack_cnt`).
    est_acked: u64,
    /// Segments ACKed per segment of growth.
    pub(super) cnt: u64,
    /// Window and millisecond at which `cnt` was computed.
    last: (u64, u64),
    /// Segments ACKed since the last segment of growth (Linux `snd_cwnd_cnt`).
    counter: u64,
    /// ACKed windows per segment of `W_est`, in eighths.
    pub(super) beta_scale: u64,
}

impl LinuxCubic {
    /// Creates a control.
    pub fn new(params: Params, hystart: hystart::Kind) -> Self {
        Self {
            curve: Curve::new(params, hystart),
            est_acked: 0,
            cnt: MIN_CNT,
            last: (0, 0),
            counter: 0,
            beta_scale: equations::beta_scale(params.beta),
        }
    }

    /// Switches the HyStart variant.
    pub(crate) fn use_hystart(&mut self, cx: &Context, kind: hystart::Kind) {
        let hystart = &mut self.curve.hystart;
        if hystart.kind() != kind {
            *hystart = HyStart::new(kind);
            hystart.reset(cx);
        }
    }

    /// Resets the state (Linux `bictcp_reset`).
    fn reset(&mut self, cx: &Context) {
        self.curve.reset(cx);
        self.last = (0, 0);
        self.counter = 0;
    }

    /// Recomputes `cnt` (Linux `bictcp_update`).
    fn update(&mut self, now: Time, cwnd: u64, acked: u64) {
        self.est_acked += acked;
        let ms = now.as_millis();
        if self.last.0 == cwnd && ms - self.last.1.min(ms) <= UPDATE_MS {
            return;
        }
        if self.curve.epoch.is_none() || ms != self.last.1 {
            self.last = (cwnd, ms);
            let epoch = self.curve.epoch.unwrap_or_else(|| {
                self.est_acked = acked;
                self.curve.begin_epoch(now, cwnd as f64)
            });
            let target = self.target(now.since(epoch));
            self.cnt = if target > cwnd { cwnd / (target - cwnd) } else { IDLE_WINDOWS * cwnd };
            if self.curve.w_max == 0.0 {
                self.cnt = self.cnt.min(UNKNOWN_CNT);
            }
        }
        if self.curve.params.friendliness {
            self.follow_reno(cwnd);
        }
        self.cnt = self.cnt.max(MIN_CNT);
    }

    /// The curve's window, one smallest RTT ahead of `elapsed`, in whole segments.
    fn target(&self, elapsed: Span) -> u64 {
        // Float casts truncate: below the centre the curve is rounded up, above it down.
        let offset = self.curve.above_centre((elapsed + self.curve.min_delay).as_secs_f64());
        let origin = self.curve.origin as u64;
        if offset < 0.0 {
            origin.saturating_sub((-offset) as u64)
        } else {
            origin.saturating_add(offset as u64)
        }
    }

    /// Credits `W_est` with the segments ACKed, and grows at least as fast as a Reno flow with a larger window.
    fn follow_reno(&mut self, cwnd: u64) {
        let per_segment = (cwnd * self.beta_scale / 8).max(1);
        if self.est_acked > per_segment {
            let gained = (self.est_acked - 1) / per_segment;
            self.est_acked -= gained * per_segment;
            self.curve.w_est += gained as f64;
        }
        let est = self.curve.w_est as u64;
        if est > cwnd {
            self.cnt = self.cnt.min(cwnd / (est - cwnd));
        }
    }

    /// Grows by one segment per `cnt` ACKed (Linux `tcp_cong_avoid_ai`).
    fn grow(&mut self, w: &mut Window, acked: u64) {
        if self.counter >= self.cnt {
            self.counter = 0;
            w.cwnd += 1.0;
        }
        self.counter += acked;
        if self.counter >= self.cnt {
            w.cwnd += (self.counter / self.cnt) as f64;
            self.counter %= self.cnt;
        }
    }
}

impl CongestionControl for LinuxCubic {
    fn on_start(&mut self, cx: &Context, _: &mut Window) {
        self.curve.hystart.reset(cx);
    }

    fn on_sample(&mut self, cx: &Context, w: &mut Window, sample: &Sample) {
        self.curve.on_sample(cx, w, sample);
    }

    fn on_congestion(&mut self, cx: &Context, w: &mut Window, event: &Congestion) -> LossResponse {
        let ssthresh = if event.first { self.recalc_ssthresh(cx, w) } else { w.ssthresh.max(MIN_SSTHRESH) };
        if let Signal::Timeout { .. } = event.kind {
            self.reset(cx);
        }
        LossResponse::ReduceTo(ssthresh)
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        if !cx.cwnd_limited {
            return;
        }
        let acked = self.curve.slow_start(cx, w, ack.acked as f64);
        // Whole segments only: fractions of a window or of an ACK, from a decorator, wait until they are whole.
        if acked >= 1.0 {
            self.update(cx.now, w.cwnd as u64, acked as u64);
            self.grow(w, acked as u64);
        }
    }

    fn on_idle_restart(&mut self, cx: &Context, _: &mut Window, idle: Span) {
        self.curve.on_idle_restart(cx.now, idle);
    }

    fn on_path_change(&mut self, cx: &Context, _: &mut Window) {
        self.curve.on_path_change(cx);
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        self.curve.inspect(self.cnt, show);
    }
}

impl LossBased for LinuxCubic {
    /// Ends the epoch and sets `W_max` (Linux `cubictcp_recalc_ssthresh`).
    fn recalc_ssthresh(&mut self, _: &Context, w: &Window) -> f64 {
        let Params { beta, fast_convergence, .. } = self.curve.params;
        let whole = |segments: f64| segments as u64 as f64;
        let cwnd = whole(w.cwnd);
        let give_way = cwnd < self.curve.w_max && fast_convergence;
        self.curve.epoch = None;
        self.counter = 0;
        self.curve.w_max = if give_way { whole(equations::lowered_maximum(beta, cwnd)) } else { cwnd };
        whole(equations::reduced(beta, cwnd)).max(MIN_SSTHRESH)
    }

    fn epoch_start(&self) -> Option<Time> {
        self.curve.epoch
    }
}
