//! NewReno: additive increase, multiplicative decrease.
//!
//! Source: RFC 5681 (slow start, congestion avoidance), RFC 6582, RFC 3465 (byte counting); as Linux's `reno`,
//! whose threshold halves the window, not the flight. State: none beside the window.

use crate::interface::{Ack, Answer, Congestion, CongestionControl, Context, LossBased, Window};
use crate::options::{OptionError, Options};
use crate::registry::{Control, Entry, Transport};

/// As `ranpace list cc` shows it.
pub const ENTRY: Entry = Entry {
    name: "newreno",
    about: "additive increase, halving on loss",
    source: "RFC 5681, RFC 6582",
    options: &[],
    transport: Transport::Tcp,
    loss_based: true,
    build,
    receiver: None,
};

fn build(_: &mut Options, _: u64) -> Result<Control, OptionError> {
    Ok(Control::LossBased(Box::new(NewReno)))
}

/// Multiplicative decrease (RFC 5681, equation 4).
pub(crate) const BETA: f64 = 0.5;
/// Smallest threshold in segments (RFC 5681, equation 4).
pub(crate) const MIN_SSTHRESH: f64 = 2.0;

/// The control. It has no state of its own.
#[derive(Clone, Debug)]
pub struct NewReno;

/// One segment per window acknowledged (RFC 5681, equation 3, by byte counting).
pub(crate) fn avoid_congestion(w: &mut Window, acked: f64) {
    w.cwnd += acked / w.cwnd;
}

/// Slow start, then congestion avoidance with what is left, if the window was the limit.
pub(crate) fn grow(cx: &Context, w: &mut Window, acked: f64) {
    if !cx.cwnd_limited {
        return;
    }
    let left = if w.in_slow_start() { w.slow_start(acked) } else { acked };
    if left > 0.0 {
        avoid_congestion(w, left);
    }
}

impl CongestionControl for NewReno {
    fn on_congestion(&mut self, cx: &Context, w: &mut Window, _: &Congestion) -> Answer {
        Answer::ReduceTo(self.recalc_ssthresh(cx, w))
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        grow(cx, w, ack.acked as f64);
    }
}

impl LossBased for NewReno {
    fn recalc_ssthresh(&mut self, _: &Context, w: &Window) -> f64 {
        (w.cwnd * BETA).max(MIN_SSTHRESH)
    }
}
