//! YeAH: Scalable TCP while the queue is short; Reno that drains the queue while it is long.
//!
//! Source: Baiocchi, Castellani and Vacirca, "YeAH-TCP: Yet Another Highspeed TCP" (PFLDnet 2007), as in
//! `net/ipv4/tcp_yeah.c` of Linux. Evaluated once per round with more than two RTT samples, with `rtt` its smallest and
//! `base` the smallest ever: queue `Q = cwnd (rtt - base) / rtt`, level `L = (rtt - base) / base`.
//!
//! * Fast mode, `Q <= 80` and `L <= 1/8`: Scalable growth. After more than 50 fast rounds `reno_count` is reset to 2.
//! * Slow mode: Reno growth. If `Q > 80` and the window is above `reno_count`, the window is reduced by `min(Q, cwnd / 2)`,
//!   but not below `reno_count` (precautionary decongestion). `reno_count`, the window that a Reno flow would have, begins at
//!   `cwnd / 2` and gains one per slow round.
//! * Loss after fewer than 16 consecutive slow rounds: the window is reduced by `Q`, at least an eighth and at most half;
//!   after more, by half, since the competition is Reno. `reno_count` halves.
//!
//! State: the RTTs of the round, the last `Q`, `reno_count`, the rounds of each mode.
//! Ours: real arithmetic, where Linux truncates.

use ranpace_units::Span;

use crate::classic::newreno::{self, MIN_SSTHRESH};
use crate::classic::scalable;
use crate::classic::vegas::Rtts;
use crate::entry::{Control, Entry, Transport};
use crate::interface::{
    Ack, Congestion, CongestionControl, Context, LossBased, LossResponse, Sample, Window,
};
use crate::options::{OptionError, Options};

/// Entry in `ranpace list cc`.
pub const ENTRY: Entry = Entry {
    name: "yeah",
    about: "Scalable TCP while the queue is short, Reno otherwise",
    source: "Baiocchi et al., YeAH-TCP (PFLDnet 2007); Linux tcp_yeah.c",
    options: &[],
    transport: Transport::Tcp,
    loss_based: true,
    build: &build,
    receiver: None,
};

fn build(_: &mut Options, _: u64) -> Result<Control, OptionError> {
    Ok(Control::LossBased(Box::new(Yeah::new())))
}

/// Longest queue of fast mode, in segments (Linux `TCP_YEAH_ALPHA`; the paper's Q_max).
const MAX_QUEUE: f64 = 80.0;
/// Highest level of fast mode (Linux `TCP_YEAH_PHY`; the paper's 1/phi).
const MAX_LEVEL: f64 = 1.0 / 8.0;
/// Largest share of the window given up for the queue (Linux `TCP_YEAH_EPSILON`).
const MAX_DRAINED: f64 = 0.5;
/// Smallest share given up on loss (Linux `TCP_YEAH_DELTA`).
const MIN_REDUCTION: f64 = 1.0 / 8.0;
/// Consecutive slow rounds after which the competition is assumed to be Reno (Linux `TCP_YEAH_RHO`).
const COMPETING: u32 = 16;
/// Fast rounds after which the competition is assumed to be gone (Linux `TCP_YEAH_ZETA`).
const ALONE: u32 = 50;
/// `reno_count` without competition, in segments (Linux).
const MIN_RENO: f64 = 2.0;

/// The control.
#[derive(Clone, Debug)]
pub struct Yeah {
    rtts: Rtts,
    /// The last `Q` in segments.
    queue: f64,
    /// Window that a Reno flow would have, in segments.
    reno_count: f64,
    /// Consecutive slow rounds; zero in fast mode.
    slow_rounds: u32,
    fast_rounds: u32,
}

impl Yeah {
    fn new() -> Self {
        Self { rtts: Rtts::default(), queue: 0.0, reno_count: MIN_RENO, slow_rounds: 0, fast_rounds: 0 }
    }

    /// Evaluates a round with the smallest RTT `rtt`.
    fn judge(&mut self, w: &mut Window, rtt: Span) {
        let over = rtt - self.rtts.base;
        self.queue = w.cwnd * over.ratio(rtt);
        if self.queue <= MAX_QUEUE && over.ratio(self.rtts.base) <= MAX_LEVEL {
            self.slow_rounds = 0;
            self.fast_rounds += 1;
            if self.fast_rounds > ALONE {
                self.fast_rounds = 0;
                self.reno_count = MIN_RENO;
            }
            return;
        }
        if self.queue > MAX_QUEUE && w.cwnd > self.reno_count {
            w.cwnd = (w.cwnd - self.queue.min(w.cwnd * MAX_DRAINED)).max(self.reno_count);
            w.ssthresh = w.cwnd;
        }
        self.reno_count =
            if self.reno_count <= MIN_RENO { (w.cwnd / 2.0).max(MIN_RENO) } else { self.reno_count + 1.0 };
        self.slow_rounds = self.slow_rounds.saturating_add(1);
    }
}

impl CongestionControl for Yeah {
    fn on_sample(&mut self, _: &Context, _: &mut Window, sample: &Sample) {
        if let Some(rtt) = sample.rtt {
            self.rtts.on_sample(rtt);
        }
    }

    fn on_congestion(&mut self, cx: &Context, w: &mut Window, event: &Congestion) -> LossResponse {
        LossResponse::ReduceTo(if event.first {
            self.recalc_ssthresh(cx, w)
        } else {
            w.ssthresh.max(MIN_SSTHRESH)
        })
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        self.rtts.follow(cx);
        if !cx.cwnd_limited {
            return;
        }
        let acked = ack.acked as f64;
        let left = if w.in_slow_start() { w.slow_start(acked) } else { acked };
        if left > 0.0 && self.slow_rounds == 0 {
            scalable::avoid_congestion(w, left, scalable::INCREASE);
        } else if left > 0.0 {
            newreno::avoid_congestion(w, left);
        }
        if self.rtts.round_is_over(cx) {
            if let Some(rtt) = self.rtts.of_round() {
                self.judge(w, rtt);
            }
            self.rtts.begin(cx);
        }
    }

    fn on_idle_restart(&mut self, cx: &Context, _: &mut Window, _: Span) {
        self.rtts.base = Span::MAX;
        self.rtts.begin(cx);
    }

    fn on_path_change(&mut self, cx: &Context, _: &mut Window) {
        self.rtts.base = Span::MAX;
        self.rtts.begin(cx);
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("queue", self.queue);
        show("reno_count", self.reno_count);
        show("slow_rounds", f64::from(self.slow_rounds));
    }
}

impl LossBased for Yeah {
    fn recalc_ssthresh(&mut self, _: &Context, w: &Window) -> f64 {
        let half = (w.cwnd / 2.0).max(MIN_RENO);
        let reduction = if self.slow_rounds < COMPETING {
            self.queue.min(half).max(w.cwnd * MIN_REDUCTION)
        } else {
            half
        };
        self.fast_rounds = 0;
        self.reno_count = (self.reno_count / 2.0).max(MIN_RENO);
        (w.cwnd - reduction).max(MIN_SSTHRESH)
    }
}

#[cfg(test)]
mod tests {
    use ranpace_units::Time;

    use super::*;
    use crate::testing::testbed::{Bed, context};

    /// Evaluates a round at `cwnd` segments with a smallest RTT ever of 100 ms.
    fn judged(control: &mut Yeah, cwnd: f64, rtt_ms: u64) -> f64 {
        let mut w = Window { ssthresh: 2.0, ..Window::new(cwnd) };
        control.rtts.base = Span::from_millis(100);
        control.judge(&mut w, Span::from_millis(rtt_ms));
        w.cwnd
    }

    #[test]
    fn fast_while_both_queue_and_level_are_low() {
        for (cwnd, rtt_ms, slow, left) in [
            (400.0, 105, false, 400.0),  // Q = 19
            (400.0, 113, true, 400.0),   // Q = 46, but L = 0.13
            (1000.0, 110, true, 909.09), // L = 0.1, but Q = 90.9: drained
            (1000.0, 300, true, 500.0),  // Q = 667: at most half
            (100.0, 400, true, 100.0),   // Q = 75: not drained
        ] {
            let mut control = Yeah::new();
            let after = judged(&mut control, cwnd, rtt_ms);
            assert!((after - left).abs() < 0.01, "{after} of {cwnd} at {rtt_ms} ms");
            assert_eq!(control.slow_rounds > 0, slow, "{cwnd} at {rtt_ms} ms");
        }
    }

    #[test]
    fn reno_count_begins_at_half_the_window_gains_one_per_slow_round_and_ends_after_fifty_fast_ones() {
        let mut control = Yeah::new();
        judged(&mut control, 400.0, 113);
        assert_eq!(control.reno_count, 200.0);
        judged(&mut control, 400.0, 113);
        assert_eq!(control.reno_count, 201.0);
        // Draining stops there: min(Q = 400, 300) would leave 300 of 600.
        control.reno_count = 450.0;
        assert_eq!(judged(&mut control, 600.0, 300), 450.0);
        for round in 1..=51 {
            judged(&mut control, 400.0, 100);
            assert_eq!(control.reno_count <= 2.0, round > 50, "after {round}");
        }
    }

    #[test]
    fn a_loss_gives_up_the_queue_unless_reno_competes() {
        let cx = context(Time::ZERO);
        for (queue, slow_rounds, expected) in
            [(10.0, 0, 350.0), (100.0, 0, 300.0), (300.0, 15, 200.0), (10.0, 16, 200.0)]
        {
            let mut control = Yeah { queue, slow_rounds, reno_count: 90.0, ..Yeah::new() };
            let ssthresh = control.recalc_ssthresh(&cx, &Window::new(400.0));
            assert_eq!(ssthresh, expected, "Q {queue}, {slow_rounds} slow rounds");
            assert_eq!(control.reno_count, 45.0);
        }
    }

    #[test]
    fn a_long_fat_pipe_is_filled_with_a_short_queue() {
        let mut bed = Bed::new("yeah", 8000, 100);
        bed.buffer = 1000;
        bed.run(60);
        bed.forget();
        bed.run_with(30, &mut |bed| assert!(bed.queued() < 300.0, "{}", bed.queued()));
        assert!(bed.utilisation() > 0.95, "{}", bed.utilisation());
        assert_eq!(bed.figures.lost, 0);
    }
}
