//! Scalable TCP: grows by a share of the window per RTT, so that recovering from a loss takes the same number of RTTs at any
//! rate.
//!
//! Source: Kelly, "Scalable TCP: Improving Performance in Highspeed Wide Area Networks" (CCR 2003), as in
//! `net/ipv4/tcp_scalable.c` of Linux. State: none besides the window.
//!
//! Avoidance: `cwnd += a` per segment ACKed. Loss: `cwnd -= b cwnd`, keeping at least 2 segments. Below `1 / a` segments this
//! is less than Reno's growth, which is used instead (Linux: one per `min(cwnd, 100)` ACKed). Multi-domain congestion control
//! uses it with `a = 0.1`.

use crate::classic::newreno::MIN_SSTHRESH;
use crate::entry::{Control, Entry, Transport};
use crate::interface::{Ack, Congestion, CongestionControl, Context, LossBased, LossResponse, Window};
use crate::options::{OptionError, OptionInfo, Options};

/// Entry in `ranpace list cc`.
pub const ENTRY: Entry = Entry {
    name: "scalable",
    about: "multiplicative increase, multiplicative decrease",
    source: "Kelly, Scalable TCP (CCR 2003); Linux tcp_scalable.c",
    options: &[
        OptionInfo { key: "a", values: "0.0001 to 1 (0.01)", about: "segments gained per segment ACKed" },
        OptionInfo { key: "b", values: "0.01 to 0.9 (0.125)", about: "share of the window given up on loss" },
    ],
    transport: Transport::Tcp,
    loss_based: true,
    build: &build,
    receiver: None,
};

fn build(options: &mut Options, _: u64) -> Result<Control, OptionError> {
    Ok(Control::LossBased(Box::new(Scalable {
        increase: options.number("a", 0.0001, 1.0, INCREASE)?,
        decrease: options.number("b", 0.01, 0.9, DECREASE)?,
    })))
}

/// `a` (Kelly 2003, section 3; Linux: one per 100 ACKed).
pub(crate) const INCREASE: f64 = 0.01;
/// `b` (Kelly 2003, section 3; Linux: shift by 3).
pub(crate) const DECREASE: f64 = 0.125;

/// The control. It has no state of its own.
#[derive(Clone, Debug)]
pub struct Scalable {
    increase: f64,
    decrease: f64,
}

/// Congestion avoidance: `a` per segment ACKed, or Reno's growth if that is more.
pub(crate) fn avoid_congestion(w: &mut Window, acked: f64, a: f64) {
    w.cwnd += acked * a.max(1.0 / w.cwnd);
}

impl CongestionControl for Scalable {
    fn on_congestion(&mut self, cx: &Context, w: &mut Window, _: &Congestion) -> LossResponse {
        LossResponse::ReduceTo(self.recalc_ssthresh(cx, w))
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        if !cx.cwnd_limited {
            return;
        }
        let acked = ack.acked as f64;
        let left = if w.in_slow_start() { w.slow_start(acked) } else { acked };
        if left > 0.0 {
            avoid_congestion(w, left, self.increase);
        }
    }
}

impl LossBased for Scalable {
    fn recalc_ssthresh(&mut self, _: &Context, w: &Window) -> f64 {
        (w.cwnd - w.cwnd * self.decrease).max(MIN_SSTHRESH)
    }
}

#[cfg(test)]
mod tests {
    use ranpace_units::{Span, Time};

    use super::*;
    use crate::testing::testbed::{context, loss, reduced_to, round};

    const KELLY: Scalable = Scalable { increase: INCREASE, decrease: DECREASE };

    #[test]
    fn the_window_doubles_in_seventy_rounds_at_any_size() {
        // 1.01^70 = 2.007.
        for start in [200.0, 1_000.0, 10_000.0] {
            let mut w = Window { ssthresh: start, ..Window::new(start) };
            let mut cx = context(Time::ZERO);
            for _ in 0..70 {
                round(&mut KELLY.clone(), &mut cx, &mut w, Span::from_millis(50));
            }
            assert!((w.cwnd / start - 2.007).abs() < 0.03, "{} times {start}", w.cwnd / start);
        }
    }

    #[test]
    fn a_loss_is_made_up_for_in_fourteen_rounds() {
        // Kelly 2003, section 3: log(1 - b) / log(1 + a) = 13.42 RTTs.
        let mut w = Window::new(1_000.0);
        let mut cx = context(Time::ZERO);
        w.ssthresh = reduced_to(KELLY.clone().on_congestion(&cx, &mut w, &loss()));
        assert_eq!(w.ssthresh, 875.0);
        w.cwnd = w.ssthresh;
        let mut rounds = 0;
        while w.cwnd < 1_000.0 {
            round(&mut KELLY.clone(), &mut cx, &mut w, Span::from_millis(50));
            rounds += 1;
        }
        assert_eq!(rounds, 14);
    }

    #[test]
    fn small_windows_grow_as_reno_does() {
        let mut w = Window { ssthresh: 20.0, ..Window::new(20.0) };
        round(&mut KELLY.clone(), &mut context(Time::ZERO), &mut w, Span::from_millis(50));
        assert!((20.95..=21.0).contains(&w.cwnd), "{w:?}");
        // With the a = 0.1 of multi-domain congestion control, small is below 10.
        let mut control = Scalable { increase: 0.1, decrease: DECREASE };
        round(&mut control, &mut context(Time::ZERO), &mut w, Span::from_millis(50));
        assert!((22.9..23.2).contains(&w.cwnd), "{w:?}");
    }

    #[test]
    fn two_segments_are_kept() {
        for (cwnd, expected) in [(2.0, 2.0), (8.0, 7.0)] {
            assert_eq!(KELLY.clone().recalc_ssthresh(&context(Time::ZERO), &Window::new(cwnd)), expected);
        }
    }
}
