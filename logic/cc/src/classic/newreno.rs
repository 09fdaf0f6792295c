//! NewReno: additive increase, multiplicative decrease.
//!
//! Source: RFC 5681 (slow start, congestion avoidance), RFC 6582, RFC 3465 (byte counting); as Linux's `reno`, which sets the
//! threshold to half of the window, not of the flight. State: none besides the window.

use crate::entry::{Control, Entry, Transport};
use crate::interface::{Ack, Congestion, CongestionControl, Context, LossBased, LossResponse, Window};
use crate::options::{OptionError, Options};

/// Entry in `ranpace list cc`.
pub const ENTRY: Entry = Entry {
    name: "newreno",
    about: "additive increase, halving on loss",
    source: "RFC 5681, RFC 6582",
    options: &[],
    transport: Transport::Tcp,
    loss_based: true,
    build: &build,
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

/// Slow start, then congestion avoidance with the remaining segments, if the window was the limit.
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
    fn on_congestion(&mut self, cx: &Context, w: &mut Window, _: &Congestion) -> LossResponse {
        LossResponse::ReduceTo(self.recalc_ssthresh(cx, w))
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

#[cfg(test)]
mod tests {
    use ranpace_units::{Span, Time};

    use super::*;
    use crate::testing::testbed::{Bed, ack, context, loss, reduced_to, round};

    const RTT: Span = Span::from_millis(50);

    #[test]
    fn a_round_doubles_the_window_in_slow_start_and_adds_a_segment_after() {
        let (mut cx, mut w, mut control) = (context(Time::ZERO), Window::new(10.0), NewReno);
        round(&mut control, &mut cx, &mut w, RTT);
        assert_eq!(w.cwnd, 20.0);
        w.ssthresh = 30.0;
        round(&mut control, &mut cx, &mut w, RTT);
        assert!((30.0..30.5).contains(&w.cwnd), "{w:?}: 10 up to ssthresh, then 10 of 30");
        w = Window { cwnd: 30.0, ssthresh: 30.0, ..w };
        round(&mut control, &mut cx, &mut w, RTT);
        assert!((30.95..=31.0).contains(&w.cwnd), "{w:?}");
    }

    #[test]
    fn loss_halves_the_window_but_keeps_two_segments() {
        for (cwnd, expected) in [(20.0, 10.0), (5.0, 2.5), (4.0, 2.0), (3.0, 2.0), (1.0, 2.0)] {
            let mut w = Window::new(cwnd);
            let answer = NewReno.on_congestion(&context(Time::ZERO), &mut w, &loss());
            assert_eq!(reduced_to(answer), expected, "of {cwnd}");
            assert_eq!(w, Window::new(cwnd), "PRR brings it down, not the control");
        }
    }

    #[test]
    fn an_application_that_sends_less_does_not_open_the_window() {
        let mut w = Window::new(10.0);
        let cx = Context { cwnd_limited: false, ..context(Time::ZERO) };
        NewReno.on_ack(&cx, &mut w, &ack(10, RTT));
        assert_eq!(w.cwnd, 10.0);
    }

    #[test]
    fn the_sawtooth_fills_three_quarters_of_a_pipe_without_buffer() {
        // Between half and all of the pipe, so three quarters on average.
        let mut bed = Bed::new("newreno", 2000, 50);
        bed.buffer = 3;
        bed.run(20);
        bed.forget();
        bed.run(60);
        assert!((0.70..0.80).contains(&bed.utilisation()), "{}", bed.utilisation());
    }
}
