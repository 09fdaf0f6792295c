//! Vegas: keeps a few segments in the queue, as evaluated once per round from the RTT.
//!
//! Source: Brakmo and Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global Internet" (IEEE JSAC 1995),
//! as in `net/ipv4/tcp_vegas.c` of Linux. State: the smallest RTT ever (`base`) and of this round.
//!
//! Once per round with more than two RTT samples, with `rtt` its smallest: `diff = cwnd (rtt - base) / base`
//! segments (Linux; the paper divides by `rtt`).
//! * Slow start and `diff > gamma`: the window becomes what the path delivers without a queue, plus one, and slow start ends.
//!   Otherwise it doubles every round (every second round in the paper).
//! * Avoidance: `diff < alpha` adds one segment, `diff > beta` removes one; in between the window stays.
//!
//! While recovery is not `Open`, and for a round after it, growth is Reno's. Loss: Reno. An idle time resets `base`.
//! Ours: real arithmetic, where Linux truncates `diff`; no growth unless the window was the limit.

use ranpace_units::Span;

use crate::classic::newreno::{self, MIN_SSTHRESH};
use crate::entry::{Control, Entry, Transport};
use crate::interface::{
    Ack, Congestion, CongestionControl, Context, LossBased, LossResponse, Sample, State, Window,
};
use crate::options::{OptionError, OptionInfo, Options};
use crate::round::Round;

/// Entry in `ranpace list cc`.
pub const ENTRY: Entry = Entry {
    name: "vegas",
    about: "holds 2 to 4 segments in the queue",
    source: "Brakmo and Peterson, TCP Vegas (IEEE JSAC 1995); Linux tcp_vegas.c",
    options: &[
        OptionInfo { key: "alpha", values: "0 to 1000 (2)", about: "fewest segments in the queue" },
        OptionInfo { key: "beta", values: "0 to 1000 (4)", about: "most segments in the queue" },
        OptionInfo {
            key: "gamma",
            values: "0 to 1000 (1)",
            about: "most segments in the queue in slow start",
        },
    ],
    transport: Transport::Tcp,
    loss_based: true,
    build: &build,
    receiver: None,
};

fn build(options: &mut Options, _: u64) -> Result<Control, OptionError> {
    Ok(Control::LossBased(Box::new(Vegas {
        // Linux: alpha, beta, gamma; the paper's section III-B.
        alpha: options.number("alpha", 0.0, 1000.0, 2.0)?,
        beta: options.number("beta", 0.0, 1000.0, 4.0)?,
        gamma: options.number("gamma", 0.0, 1000.0, 1.0)?,
        rtts: Rtts::default(),
        diff: 0.0,
    })))
}

/// Smallest window in segments (Linux).
const MIN_WINDOW: f64 = 2.0;
/// A round counts if it has more samples than this: with fewer, each may have been a delayed ACK (Linux).
const TOO_FEW: u32 = 2;

/// The RTTs of a round and of the connection, shared by Vegas, Veno and YeAH.
#[derive(Clone, Debug)]
pub(crate) struct Rtts {
    /// Smallest of the connection; [`Span::MAX`] before the first.
    pub(crate) base: Span,
    /// Smallest of this round; [`Span::MAX`] before the first.
    pub(crate) min: Span,
    samples: u32,
    round: Round,
    /// Whether the round counts: neither begun nor continued while segments were being recovered.
    enabled: bool,
}

impl Default for Rtts {
    fn default() -> Self {
        Self { base: Span::MAX, min: Span::MAX, samples: 0, round: Round::new(), enabled: false }
    }
}

impl Rtts {
    pub(crate) fn on_sample(&mut self, rtt: Span) {
        let rtt = rtt.max(Span::from_micros(1));
        self.base = self.base.min(rtt);
        self.min = self.min.min(rtt);
        self.samples += 1;
    }

    /// Follows the state of recovery; returns whether rounds count now.
    pub(crate) fn follow(&mut self, cx: &Context) -> bool {
        let open = cx.state == State::Open;
        if open && !self.enabled {
            self.begin(cx);
        }
        self.enabled = open;
        open
    }

    /// Begins a round.
    pub(crate) fn begin(&mut self, cx: &Context) {
        self.round.restart(cx);
        self.min = Span::MAX;
        self.samples = 0;
    }

    pub(crate) fn round_is_over(&self, cx: &Context) -> bool {
        self.round.is_over(cx)
    }

    /// Smallest RTT of the round, if it has enough samples.
    pub(crate) fn of_round(&self) -> Option<Span> {
        (self.samples > TOO_FEW).then_some(self.min)
    }
}

/// The control.
#[derive(Clone, Debug)]
pub struct Vegas {
    alpha: f64,
    beta: f64,
    gamma: f64,
    rtts: Rtts,
    /// Queued segments at the last evaluation.
    diff: f64,
}

impl Vegas {
    /// Evaluates a round with the smallest RTT `rtt`.
    fn judge(&mut self, cx: &Context, w: &mut Window, rtt: Span, acked: f64) {
        let base = self.rtts.base;
        self.diff = w.cwnd * (rtt - base).ratio(base);
        if w.in_slow_start() {
            if self.diff > self.gamma {
                w.cwnd = w.cwnd.min(w.cwnd * base.ratio(rtt) + 1.0);
                w.ssthresh = w.ssthresh.min(w.cwnd);
            } else if cx.cwnd_limited {
                w.slow_start(acked);
            }
        } else if self.diff > self.beta {
            w.cwnd -= 1.0;
            w.ssthresh = w.ssthresh.min(w.cwnd);
        } else if self.diff < self.alpha && cx.cwnd_limited {
            w.cwnd += 1.0;
        }
        w.cwnd = w.cwnd.max(MIN_WINDOW);
        // Linux `tcp_current_ssthresh`: a window that was reached need not be probed for again.
        w.ssthresh = w.ssthresh.max(w.cwnd * 0.75);
    }
}

impl CongestionControl for Vegas {
    fn on_sample(&mut self, _: &Context, _: &mut Window, sample: &Sample) {
        if let Some(rtt) = sample.rtt {
            self.rtts.on_sample(rtt);
        }
    }

    fn on_congestion(&mut self, cx: &Context, w: &mut Window, _: &Congestion) -> LossResponse {
        LossResponse::ReduceTo(self.recalc_ssthresh(cx, w))
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        let acked = ack.acked as f64;
        if !self.rtts.follow(cx) {
            newreno::grow(cx, w, acked);
        } else if self.rtts.round_is_over(cx) {
            match self.rtts.of_round() {
                Some(rtt) => self.judge(cx, w, rtt, acked),
                None => newreno::grow(cx, w, acked),
            }
            self.rtts.begin(cx);
        } else if w.in_slow_start() && cx.cwnd_limited {
            w.slow_start(acked);
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
        show("base_rtt", self.rtts.base.as_secs_f64());
        show("diff", self.diff);
    }
}

impl LossBased for Vegas {
    fn recalc_ssthresh(&mut self, _: &Context, w: &Window) -> f64 {
        (w.cwnd * newreno::BETA).max(MIN_SSTHRESH)
    }
}

#[cfg(test)]
mod tests {
    use ranpace_units::Time;

    use super::*;
    use crate::testing::testbed::{Bed, context, round};

    fn control() -> Vegas {
        Vegas { alpha: 2.0, beta: 4.0, gamma: 1.0, rtts: Rtts::default(), diff: 0.0 }
    }

    /// The window in avoidance after a round with this smallest RTT, with a smallest RTT ever of 100 ms.
    fn judged(cwnd: f64, rtt_ms: u64) -> f64 {
        let mut control = control();
        let mut w = Window { ssthresh: 2.0, ..Window::new(cwnd) };
        control.rtts.base = Span::from_millis(100);
        control.judge(&context(Time::ZERO), &mut w, Span::from_millis(rtt_ms), 1.0);
        w.cwnd
    }

    #[test]
    fn a_round_of_two_samples_is_not_judged() {
        let (mut control, mut cx) = (control(), context(Time::ZERO));
        let mut w = Window { ssthresh: 2.0, ..Window::new(2.0) };
        for rtt_ms in [100, 900, 900, 900] {
            round(&mut control, &mut cx, &mut w, Span::from_millis(rtt_ms));
        }
        assert_eq!(control.diff, 0.0);
        assert!(w.cwnd > 2.0, "Reno: {w:?}");
    }

    #[test]
    fn a_segment_more_below_two_queued_and_one_less_above_four() {
        // diff = 20 (rtt - 100) / 100.
        for (rtt_ms, expected) in [(100, 21.0), (109, 21.0), (111, 20.0), (119, 20.0), (121, 19.0)] {
            assert_eq!(judged(20.0, rtt_ms), expected, "at {rtt_ms} ms");
        }
        assert_eq!(judged(2.5, 800), 2.0, "not below two");
    }

    #[test]
    fn slow_start_ends_when_a_round_s_smallest_rtt_shows_a_queue() {
        // At 80 segments with 100 ms before and 125 ms now: diff = 20, so 80 * 100 / 125 + 1 remain.
        let (mut control, cx) = (control(), context(Time::ZERO));
        let mut w = Window::new(80.0);
        control.rtts.base = Span::from_millis(100);
        control.judge(&cx, &mut w, Span::from_millis(125), 1.0);
        assert_eq!((w.cwnd, w.ssthresh), (65.0, 65.0));
        // A round's first packets see the queue of the previous one, so slow start overshoots by two doublings.
        let mut bed = Bed::new("vegas", 1000, 40);
        bed.run_with(3, &mut |bed| assert!(bed.window.cwnd < 4.0 * 41.0));
        assert!(bed.window.ssthresh.is_finite());
    }

    #[test]
    fn two_to_four_segments_are_queued() {
        for (rate, rtt_ms) in [(500, 20), (1000, 40), (4000, 40), (1000, 100)] {
            let mut bed = Bed::new("vegas", rate, rtt_ms);
            // One segment less per RTT drains the queue of slow start.
            bed.run(100);
            bed.forget();
            bed.run_with(10, &mut |bed| {
                let queued = bed.window.cwnd * (1.0 - bed.min_rtt().ratio(bed.cx.srtt));
                assert!((1.5..=4.5).contains(&queued), "{queued} at {rate}/s, {rtt_ms} ms");
            });
            assert!(bed.utilisation() > 0.99, "{}", bed.utilisation());
        }
    }

    #[test]
    fn recovery_is_renos() {
        let (mut control, mut cx) = (control(), context(Time::ZERO));
        cx.state = State::Disorder;
        let mut w = Window { ssthresh: 10.0, ..Window::new(10.0) };
        control.rtts.base = Span::from_millis(10);
        for _ in 0..5 {
            round(&mut control, &mut cx, &mut w, Span::from_millis(100));
        }
        assert!(w.cwnd > 14.5, "{w:?}");
        assert_eq!(control.recalc_ssthresh(&cx, &Window::new(20.0)), 10.0);
    }
}
