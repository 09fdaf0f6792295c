//! Veno: Reno that treats a loss as random while Vegas's estimate shows no queue.
//!
//! Source: Fu and Liew, "TCP Veno: TCP Enhancement for Transmission over Wireless Access Networks" (IEEE JSAC 2003),
//! as in `net/ipv4/tcp_veno.c` of Linux. State: the smallest RTT ever (`BaseRTT`) and since the last evaluation (`RTT`); the
//! backlog `N`.
//!
//! With each ACK `N = cwnd (RTT - BaseRTT) / RTT` segments (the paper's equations 1 and 2).
//! * Avoidance: one segment per window while `N < beta`, one every second window otherwise.
//! * Loss: `ssthresh = 4/5 cwnd` while `N < beta`, half of it otherwise. A timeout always halves, as in the paper; Linux
//!   applies the same condition there, and keeps 4/5 while `N < beta`.
//!
//! With fewer than three RTT samples, or recovery not `Open`, growth is Reno's. An idle time resets `BaseRTT`.
//! Ours: one segment every second window is half a segment per window, spread over its ACKs.

use ranpace_units::Span;

use crate::classic::newreno::{self, MIN_SSTHRESH};
use crate::entry::{Control, Entry, Transport};
use crate::interface::{
    Ack, Congestion, CongestionControl, Context, LossBased, LossResponse, Sample, Signal, State, Window,
};
use crate::options::{OptionError, OptionInfo, Options};

/// Entry in `ranpace list cc`.
pub const ENTRY: Entry = Entry {
    name: "veno",
    about: "Reno that gives up less for losses without a queue",
    source: "Fu and Liew, TCP Veno (IEEE JSAC 2003); Linux tcp_veno.c",
    options: &[OptionInfo {
        key: "beta",
        values: "0 to 1000 (3)",
        about: "segments queued from which a loss is congestion",
    }],
    transport: Transport::Tcp,
    loss_based: true,
    build: &build,
    receiver: None,
};

fn build(options: &mut Options, _: u64) -> Result<Control, OptionError> {
    let beta = options.number("beta", 0.0, 1000.0, BETA)?;
    Ok(Control::LossBased(Box::new(Veno {
        beta,
        base_rtt: Span::MAX,
        min_rtt: Span::MAX,
        samples: 0,
        backlog: 0.0,
    })))
}

/// Backlog in segments from which a loss indicates congestion (the paper's beta; Linux).
const BETA: f64 = 3.0;
/// Window kept after a random loss (the paper's section III-B; Linux).
const RANDOM_LOSS: f64 = 4.0 / 5.0;
/// Samples required for an evaluation (Linux).
const ENOUGH: u32 = 3;
/// Smallest window in segments (Linux).
const MIN_WINDOW: f64 = 2.0;

/// The control.
#[derive(Clone, Debug)]
pub struct Veno {
    beta: f64,
    base_rtt: Span,
    /// Smallest RTT since the last evaluation; [`Span::MAX`] for none.
    min_rtt: Span,
    samples: u32,
    /// `N` in segments.
    backlog: f64,
}

impl CongestionControl for Veno {
    fn on_sample(&mut self, _: &Context, _: &mut Window, sample: &Sample) {
        if let Some(rtt) = sample.rtt {
            let rtt = rtt.max(Span::from_micros(1));
            self.base_rtt = self.base_rtt.min(rtt);
            self.min_rtt = self.min_rtt.min(rtt);
            self.samples = self.samples.saturating_add(1);
        }
    }

    fn on_congestion(&mut self, cx: &Context, w: &mut Window, event: &Congestion) -> LossResponse {
        LossResponse::ReduceTo(match event.kind {
            Signal::Timeout { .. } => (w.cwnd * newreno::BETA).max(MIN_SSTHRESH),
            Signal::Loss | Signal::Ecn => self.recalc_ssthresh(cx, w),
        })
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        let acked = ack.acked as f64;
        if cx.state != State::Open || self.samples < ENOUGH {
            newreno::grow(cx, w, acked);
            return;
        }
        if !cx.cwnd_limited {
            return;
        }
        if self.min_rtt != Span::MAX {
            self.backlog = w.cwnd * (self.min_rtt - self.base_rtt).ratio(self.min_rtt);
            self.min_rtt = Span::MAX;
        }
        let left = if w.in_slow_start() { w.slow_start(acked) } else { acked };
        if left > 0.0 {
            newreno::avoid_congestion(w, if self.backlog < self.beta { left } else { left / 2.0 });
        }
        w.cwnd = w.cwnd.max(MIN_WINDOW);
    }

    fn on_recovered(&mut self, _: &Context, _: &mut Window) {
        self.min_rtt = Span::MAX;
    }

    fn on_idle_restart(&mut self, _: &Context, _: &mut Window, _: Span) {
        self.base_rtt = Span::MAX;
        self.min_rtt = Span::MAX;
    }

    fn on_path_change(&mut self, _: &Context, _: &mut Window) {
        self.base_rtt = Span::MAX;
        self.min_rtt = Span::MAX;
        self.backlog = 0.0;
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("backlog", self.backlog);
    }
}

impl LossBased for Veno {
    fn recalc_ssthresh(&mut self, _: &Context, w: &Window) -> f64 {
        let kept = if self.backlog < self.beta { RANDOM_LOSS } else { newreno::BETA };
        (w.cwnd * kept).max(MIN_SSTHRESH)
    }
}

#[cfg(test)]
mod tests {
    use ranpace_units::Time;

    use super::*;
    use crate::interface::Congestion;
    use crate::testing::testbed::{context, loss, reduced_to, round, sample};

    fn control() -> Veno {
        Veno { beta: BETA, base_rtt: Span::MAX, min_rtt: Span::MAX, samples: 0, backlog: 0.0 }
    }

    /// In avoidance at 20 segments, having seen a smallest RTT of 100 ms.
    fn seen(rtt_ms: u64) -> (Veno, Context, Window) {
        let (mut control, mut cx) = (control(), context(Time::ZERO));
        let mut w = Window { ssthresh: 20.0, ..Window::new(20.0) };
        for _ in 0..3 {
            control.on_sample(&cx, &mut w, &sample(Span::from_millis(100)));
        }
        control.min_rtt = Span::MAX;
        round(&mut control, &mut cx, &mut w, Span::from_millis(rtt_ms));
        (control, cx, w)
    }

    #[test]
    fn a_loss_is_random_while_fewer_than_three_segments_are_queued() {
        // N = cwnd (RTT - 100 ms) / RTT, with about 20 segments.
        for (rtt_ms, backlog, kept) in [(100, 0.0, 0.8), (110, 1.9, 0.8), (125, 4.1, 0.5), (200, 10.2, 0.5)] {
            let (mut control, cx, mut w) = seen(rtt_ms);
            assert!((control.backlog - backlog).abs() < 0.15, "{} at {rtt_ms} ms", control.backlog);
            let ssthresh = reduced_to(control.on_congestion(&cx, &mut w, &loss()));
            assert!((ssthresh - w.cwnd * kept).abs() < 1e-9, "{ssthresh} at {rtt_ms} ms");
            let timeout = Congestion { kind: Signal::Timeout { count: 1 }, ..loss() };
            let ssthresh = reduced_to(control.on_congestion(&cx, &mut w, &timeout));
            assert!((ssthresh - w.cwnd * 0.5).abs() < 1e-9, "a timeout is Reno's, which in Linux it is not");
        }
    }

    #[test]
    fn a_queue_halves_the_growth() {
        for (rtt_ms, gained) in [(110, 1.0), (150, 0.5)] {
            let (_, _, w) = seen(rtt_ms);
            assert!((w.cwnd - 20.0 - gained).abs() < 0.05, "{w:?} at {rtt_ms} ms");
        }
    }

    #[test]
    fn without_samples_it_is_reno() {
        let (mut control, mut cx) = (control(), context(Time::ZERO));
        let mut w = Window::new(10.0);
        for _ in 0..20 {
            control.on_ack(&cx, &mut w, &crate::testing::testbed::ack(1, Span::ZERO));
        }
        assert_eq!(w.cwnd, 30.0);
        cx.state = State::Disorder;
        w.ssthresh = 30.0;
        round(&mut control, &mut cx, &mut w, Span::from_millis(900));
        assert!((30.9..=31.0).contains(&w.cwnd), "{w:?}");
    }
}
