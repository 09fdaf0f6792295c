//! PCC Vivace: tries rates slightly above and below the current one, and moves in the direction of higher utility.
//!
//! Source: Dong et al., "PCC Vivace: Online-Learning Congestion Control", NSDI 2018: utility, gradient
//! ascent with confidence amplifier and dynamic change boundary, regression of the RTT.
//!
//! The sender divides time into monitor intervals of about an RTT and sends at one rate in each. An interval's utility is
//! known when all its packets are acknowledged or lost, an RTT after its end.
//!
//! States: *starting* (the rate doubles each interval while the utility rises; otherwise it returns to half of the last rate
//! tried); *probing* (one interval at `r (1 + eps)` and one at `r (1 - eps)`, in random order); *waiting* for their utilities
//! at `r`; then one step of `m theta_0 gradient`, within the boundary, and probing again.
//!
//! It requests an acknowledgement per packet ([`CongestionControl::ack_every`]), as the authors' UDP implementation has: with
//! two segments per acknowledgement, the first of each pair, and at low rates the delayed-ACK timer, add slopes to the RTTs.
//!
//! Ours, where the source is silent or public code differs in detail: an interval lasts 1 to 1.1 smoothed RTTs and at least
//! [`FEWEST_PACKETS`] packets; with `pairs=2` two pairs must agree in sign; intervals without enough data to send do not
//! count; the rate is limited to a multiple of what gets through ([`LEAST_THROUGH`]); the window is twice the rate times the
//! RTT, so that it does not bind; the rate is at least two segments per RTT; an interval's rate is the pace set, not a
//! measured rate, because one packet more or less amounts to epsilon at low rates.

use std::collections::VecDeque;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use ranpace_units::{Rate, Span, Time};

use crate::entry::{Control, Entry, Transport};
use crate::interface::{
    Ack, Congestion, CongestionControl, Context, LossResponse, Pacing, Packet, PacketOutcome, Sent, Window,
};
use crate::options::{OptionError, OptionInfo, Options};

/// Entry in `ranpace list cc`.
pub const ENTRY: Entry = Entry {
    name: "vivace",
    about: "PCC Vivace: learns the rate online by its utility",
    source: "Dong et al., NSDI 2018",
    options: &[
        OptionInfo {
            key: "pairs",
            values: "1 or 2 [1]",
            about: "pairs of trials that must agree on a direction",
        },
        OptionInfo {
            key: "latency",
            values: "0 to 10000 [900]",
            about: "weight of the RTT's growth; 0 makes it a loss-based utility",
        },
    ],
    transport: Transport::Tcp,
    loss_based: false,
    build: &build,
    receiver: None,
};

fn build(options: &mut Options, seed: u64) -> Result<Control, OptionError> {
    let pairs = options.choice("pairs", &[("1", 1), ("2", 2)])?;
    let latency = options.number("latency", 0.0, 10_000.0, LATENCY_WEIGHT)?;
    Ok(Control::Other(Box::new(Vivace::new(seed, pairs, latency))))
}

/// Exponent of the rate in the utility (paper: t).
const RATE_EXPONENT: f64 = 0.9;
/// Weight of the RTT gradient in the utility (paper: b).
const LATENCY_WEIGHT: f64 = 900.0;
/// Weight of the loss rate in the utility (paper: c).
const LOSS_WEIGHT: f64 = 11.35;
/// RTT gradients below this count as none (paper).
const GRADIENT_TOLERANCE: f64 = 0.01;
/// Distance of the trials from the rate (paper: epsilon).
const EPSILON: f64 = 0.05;
/// Rate change per utility gradient, in Mbit/s (paper: theta_0).
const STEP: f64 = 1.0;
/// Initial boundary of a step, as a share of the rate (paper: omega_0).
const BOUNDARY: f64 = 0.05;
/// Growth of the boundary each time it is hit (paper: delta).
const BOUNDARY_GROWTH: f64 = 0.1;
/// Fewest packets of a monitor interval. Ours.
const FEWEST_PACKETS: u64 = 10;
/// Lowest rate in segments per RTT, which is also the initial rate (PCC, NSDI 2015).
const FEWEST_SEGMENTS: f64 = 2.0;
/// Highest rate in Mbit/s, to prevent overflow in the starting state. Ours.
const HIGHEST: f64 = 1e6;
/// Share of packets that must get through; below it, the rate becomes four times what got through, but at least half of what
/// it was. Ours: if the capacity varies on its own, the RTT slopes outweigh the loss in the utility and carry no direction,
/// so that the rate may drift to any multiple of the capacity.
const LEAST_THROUGH: f64 = 0.25;
/// Doubled rates that may await a verdict. Ours: otherwise the rate runs away behind a long queue.
const MOST_DOUBLINGS: usize = 3;
/// Most intervals with packets in flight. One interval per RTT and a small queue make a handful; beyond this limit (an
/// outage) new ones are not evaluated. Ours.
const MOST_INTERVALS: usize = 64;

/// Purpose of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// A step of the starting state.
    Starting,
    /// A trial above or below the rate.
    Trial { above: bool },
    /// None: the rate is kept until the utilities are known.
    Waiting,
}

/// A monitor interval.
#[derive(Clone, Debug)]
struct Interval {
    purpose: Purpose,
    /// Mbit/s.
    rate: f64,
    begun: Time,
    first: u64,
    /// Packets sent in it.
    sent: u64,
    /// Whether its last packet has been sent.
    closed: bool,
    /// Whether the application had too little to send, which makes the utility invalid.
    starved: bool,
    acked: u64,
    lost: u64,
    /// Sums for the regression of RTT against sending time, both in seconds: n, t, RTT, t^2, t RTT.
    sums: [f64; 5],
}

impl Interval {
    fn complete(&self) -> bool {
        self.closed && self.acked + self.lost >= self.sent
    }

    /// Slope of the RTT (paper: d(RTT)/dt).
    fn rtt_gradient(&self) -> f64 {
        let [n, t, rtt, tt, t_rtt] = self.sums;
        let spread = n * tt - t * t;
        if spread <= 0.0 {
            return 0.0;
        }
        let slope = (n * t_rtt - t * rtt) / spread;
        if slope.abs() < GRADIENT_TOLERANCE { 0.0 } else { slope }
    }

    /// `u(x) = x^t - b x max(d(RTT)/dt, 0) - c x L` .
    fn utility(&self, latency_weight: f64) -> f64 {
        let loss = self.lost as f64 / (self.acked + self.lost).max(1) as f64;
        let growth = self.rtt_gradient().max(0.0);
        let x = self.rate;
        libm::pow(x, RATE_EXPONENT) - latency_weight * x * growth - LOSS_WEIGHT * x * loss
    }
}

/// The state of the learner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Starting,
    /// Trials of the round that have not begun yet.
    Probing {
        left: usize,
    },
    Waiting,
}

/// The control.
#[derive(Clone, Debug)]
pub struct Vivace {
    random: Xoshiro256PlusPlus,
    pairs: usize,
    latency_weight: f64,
    phase: Phase,
    /// The rate `r` in Mbit/s.
    rate: f64,
    intervals: VecDeque<Interval>,
    /// When the current interval may end; `None` before the start.
    interval_ends: Option<Time>,
    /// Starting: the highest utility so far and its rate.
    best: Option<(f64, f64)>,
    /// Utilities of the trials of this round: (above, utility).
    results: Vec<(bool, f64)>,
    /// Order of the current pair.
    above_first: bool,
    /// Consecutive steps in the same direction, and that direction.
    steps: u32,
    upwards: bool,
    /// Number of times that the boundary was hit (paper: k).
    hits: u32,
    gradient: f64,
    /// Smallest share of an interval's packets that got through in this round of trials.
    through: f64,
    /// The current interval has served its purpose: the next one begins at once.
    hurry: bool,
}

impl Vivace {
    fn new(seed: u64, pairs: usize, latency_weight: f64) -> Self {
        Self {
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            pairs,
            latency_weight,
            phase: Phase::Starting,
            rate: 1.0,
            intervals: VecDeque::with_capacity(MOST_INTERVALS),
            interval_ends: None,
            best: None,
            results: Vec::with_capacity(4),
            above_first: true,
            steps: 0,
            upwards: true,
            hits: 0,
            gradient: 0.0,
            through: 1.0,
            hurry: false,
        }
    }

    fn rtt(cx: &Context) -> Span {
        if cx.srtt.is_zero() { Span::from_millis(100) } else { cx.srtt }
    }

    /// `FEWEST_SEGMENTS` per RTT, in Mbit/s.
    fn lowest(cx: &Context) -> f64 {
        FEWEST_SEGMENTS * cx.wire.as_f64() * 8.0 / 1e6 / Self::rtt(cx).as_secs_f64()
    }

    /// Sets pace and window for a rate.
    fn apply(cx: &Context, w: &mut Window, rate: f64) {
        let pace = Rate::from_bits_per_s_f64(rate * 1e6).max(Rate::from_bits_per_s(cx.wire.get() * 8));
        w.pacing = Pacing::Rate(pace);
        let segments = pace.as_f64() / 8.0 / cx.wire.as_f64() * Self::rtt(cx).as_secs_f64();
        w.cwnd = (2.0 * segments).max(FEWEST_PACKETS as f64);
    }

    /// Begins the next interval, at the rate for its purpose.
    fn begin(&mut self, cx: &Context, w: &mut Window) {
        self.hurry = false;
        if let Some(last) = self.intervals.back_mut() {
            last.closed = true;
        }
        if self.intervals.len() >= MOST_INTERVALS {
            // No acknowledgements arrive: packets sent meanwhile belong to no interval.
            self.interval_ends = Some(cx.now + Self::rtt(cx).max(Span::from_millis(1)));
            return;
        }
        let purpose = match self.phase {
            Phase::Starting => Purpose::Starting,
            Phase::Waiting | Phase::Probing { left: 0 } => Purpose::Waiting,
            Phase::Probing { left } => {
                if left.is_multiple_of(2) {
                    self.above_first = self.random.next_u32() & 1 == 0;
                }
                Purpose::Trial { above: self.above_first == left.is_multiple_of(2) }
            }
        };
        if let Phase::Probing { left } = self.phase {
            self.phase = if left <= 1 { Phase::Waiting } else { Phase::Probing { left: left - 1 } };
        }
        let rate = match purpose {
            Purpose::Trial { above: true } => self.rate * (1.0 + EPSILON),
            Purpose::Trial { above: false } => self.rate * (1.0 - EPSILON),
            Purpose::Starting | Purpose::Waiting => self.rate,
        };
        self.intervals.push_back(Interval {
            purpose,
            rate,
            begun: cx.now,
            first: cx.next_packet,
            sent: 0,
            closed: false,
            starved: false,
            acked: 0,
            lost: 0,
            sums: [0.0; 5],
        });
        // 1 to 1.1 RTT, so that flows do not stay in step.
        let random = f64::from(self.random.next_u32()) / 4_294_967_296.0;
        let length = Self::rtt(cx).mul_f64(1.0 + 0.1 * random);
        self.interval_ends = Some(cx.now + length.max(Span::from_micros(100)));
        Self::apply(cx, w, rate);
    }

    /// Ends the current interval and begins the next, unless it has too few packets.
    fn turn(&mut self, cx: &Context, w: &mut Window) {
        if let Some(current) = self.intervals.back_mut()
            && !current.closed
        {
            if current.sent < FEWEST_PACKETS && !cx.app_limited {
                // The pace is too low for one RTT: extend the interval for the missing packets. If they cannot be sent (the
                // window is full in an outage), the interval is extended by at most a second at a time.
                let segment = cx.wire.as_f64() * 8.0 / (current.rate * 1e6);
                let missing = Span::from_secs_f64(segment * (FEWEST_PACKETS - current.sent) as f64);
                self.interval_ends = Some(cx.now + missing.min(Span::SECOND).max(Span::from_micros(100)));
                return;
            }
            current.closed = true;
            current.starved |= cx.app_limited;
        }
        let doubled = self.intervals.iter().filter(|interval| interval.purpose == Purpose::Starting).count();
        if self.phase == Phase::Starting && doubled < MOST_DOUBLINGS {
            self.rate = (self.rate * 2.0).min(HIGHEST);
        }
        self.evaluate(cx);
        self.begin(cx, w);
    }

    /// Returns whether the oldest interval may be evaluated. The outcome of some packets is never reported (one repaired by a loss
    /// probe, QUIC's handshake), so an interval counts as settled once the one two places later is.
    fn is_settled(&self) -> bool {
        let later = self.intervals.get(2).is_some_and(|later| later.sent > 0 && later.complete());
        later || self.intervals.front().is_some_and(Interval::complete)
    }

    /// Evaluates the intervals whose packets have all been settled, oldest first.
    fn evaluate(&mut self, cx: &Context) {
        while self.is_settled() {
            // The loop condition guarantees that there is one.
            let Some(interval) = self.intervals.pop_front() else { return };
            let utility = interval.utility(self.latency_weight);
            let void = interval.starved || interval.acked + interval.lost == 0;
            match interval.purpose {
                Purpose::Waiting => {}
                Purpose::Starting if self.phase == Phase::Starting && !void => {
                    self.start(cx, interval.rate, utility);
                }
                Purpose::Starting => {}
                Purpose::Trial { .. } if void => self.restart_round(),
                Purpose::Trial { above } => {
                    self.results.push((above, utility));
                    let settled = (interval.acked + interval.lost).max(1);
                    self.through = self.through.min(interval.acked as f64 / settled as f64);
                    if self.results.len() == 2 * self.pairs {
                        let before = self.rate;
                        self.step(cx);
                        if self.through < LEAST_THROUGH {
                            let cut = before * (self.through / LEAST_THROUGH).max(0.5);
                            self.rate = self.rate.min(cut).max(Self::lowest(cx));
                        }
                        self.restart_round();
                    }
                }
            }
        }
    }

    fn restart_round(&mut self) {
        self.results.clear();
        self.through = 1.0;
        // Outstanding trials of this round must not count for the next one.
        for interval in &mut self.intervals {
            if matches!(interval.purpose, Purpose::Trial { .. }) {
                interval.purpose = Purpose::Waiting;
            }
        }
        self.phase = Phase::Probing { left: 2 * self.pairs };
        self.hurry = true;
    }

    fn start(&mut self, cx: &Context, rate: f64, utility: f64) {
        match self.best {
            Some((best, best_rate)) if utility < best => {
                // Back to the last better rate; the trials begin.
                self.rate = best_rate.max(Self::lowest(cx));
                self.restart_round();
            }
            _ => self.best = Some((utility, rate)),
        }
    }

    /// One step of gradient ascent (paper).
    fn step(&mut self, cx: &Context) {
        let mut gradient = 0.0;
        let mut signs = (false, false);
        for pair in self.results.chunks_exact(2) {
            let above = if pair[0].0 { pair[0].1 } else { pair[1].1 };
            let below = if pair[0].0 { pair[1].1 } else { pair[0].1 };
            let one = (above - below) / (2.0 * EPSILON * self.rate);
            signs = (signs.0 | (one > 0.0), signs.1 | (one <= 0.0));
            gradient += one / self.pairs as f64;
        }
        if signs == (true, true) || !gradient.is_finite() {
            return; // the pairs disagree: try again
        }
        self.gradient = gradient;
        let upwards = gradient > 0.0;
        if upwards == self.upwards {
            self.steps = self.steps.saturating_add(1);
        } else {
            (self.upwards, self.steps, self.hits) = (upwards, 1, 0);
        }
        // m(k) = k up to 3, then 2 k - 3.
        let k = f64::from(self.steps);
        let confidence = if self.steps <= 3 { k } else { 2.0 * k - 3.0 };
        let wanted = (confidence * STEP * gradient).abs();
        let boundary = |hits: u32| BOUNDARY + BOUNDARY_GROWTH * f64::from(hits);
        let step = if wanted > boundary(self.hits) * self.rate {
            let limited = boundary(self.hits) * self.rate;
            self.hits = self.hits.saturating_add(1);
            limited
        } else {
            // The smallest boundary that would have allowed this step.
            let excess = (wanted / self.rate - BOUNDARY) / BOUNDARY_GROWTH;
            self.hits = self.hits.min(libm::ceil(excess.max(0.0)) as u32);
            wanted
        };
        self.rate = if upwards { self.rate + step } else { self.rate - step };
        let lowest = Self::lowest(cx).min(HIGHEST);
        self.rate = self.rate.max(lowest).min(HIGHEST);
    }

    fn interval_of(&mut self, number: u64) -> Option<&mut Interval> {
        self.intervals
            .iter_mut()
            .find(|interval| number >= interval.first && number < interval.first + interval.sent)
    }
}

impl CongestionControl for Vivace {
    fn on_start(&mut self, cx: &Context, w: &mut Window) {
        self.rate = Self::lowest(cx);
        self.begin(cx, w);
    }

    fn on_sent(&mut self, _: &Context, _: &mut Window, sent: &Sent) {
        if let Some(current) = self.intervals.back_mut()
            && !current.closed
            && sent.number == current.first + current.sent
        {
            current.sent += 1;
        }
    }

    fn on_congestion(&mut self, _: &Context, _: &mut Window, _: &Congestion) -> LossResponse {
        LossResponse::Own // losses count through the utility
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, _: &Ack) {
        self.evaluate(cx);
        if self.hurry {
            self.begin(cx, w);
        }
    }

    fn owns_recovery(&self) -> bool {
        true
    }

    fn ack_every(&self) -> Option<u32> {
        Some(1)
    }

    fn wants_packets(&self) -> bool {
        true
    }

    fn on_packet(&mut self, _: &Context, _: &mut Window, packet: &Packet) {
        let Some(interval) = self.interval_of(packet.number) else { return };
        match packet.fate {
            PacketOutcome::Acked { rtt, .. } => {
                interval.acked += 1;
                let (t, rtt) = ((packet.sent_at - interval.begun).as_secs_f64(), rtt.as_secs_f64());
                for (sum, term) in interval.sums.iter_mut().zip([1.0, t, rtt, t * t, t * rtt]) {
                    *sum += term;
                }
            }
            PacketOutcome::Lost => interval.lost += 1,
            PacketOutcome::Seen { .. } | PacketOutcome::Missing => {}
            PacketOutcome::Spurious => {
                // It was counted as lost; its RTT carries no information about the queue.
                interval.lost = interval.lost.saturating_sub(1);
                interval.acked += 1;
            }
        }
    }

    fn on_spurious(&mut self, _: &Context, _: &mut Window, _: &Window) {}

    fn next_deadline(&self) -> Option<Time> {
        self.interval_ends
    }

    fn on_deadline(&mut self, cx: &Context, w: &mut Window) {
        self.turn(cx, w);
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        let state = match self.phase {
            Phase::Starting => 0.0,
            Phase::Probing { .. } => 1.0,
            Phase::Waiting => 2.0,
        };
        show("state", state);
        show("rate_mbit", self.rate);
        show("gradient", self.gradient);
        show("boundary_hits", f64::from(self.hits));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fifo::{Flow, Path};

    fn interval(rate: f64, acked: u64, lost: u64, slope: f64) -> Interval {
        let mut interval = Interval {
            purpose: Purpose::Waiting,
            rate,
            begun: Time::ZERO,
            first: 0,
            sent: acked + lost,
            closed: true,
            starved: false,
            acked,
            lost,
            sums: [0.0; 5],
        };
        for packet in 0..acked {
            let t = packet as f64 * 0.001;
            let rtt = 0.05 + slope * t;
            for (sum, term) in interval.sums.iter_mut().zip([1.0, t, rtt, t * t, t * rtt]) {
                *sum += term;
            }
        }
        interval
    }

    #[test]
    fn utility_rewards_rate_and_punishes_rtt_growth_and_loss() {
        for (case, rate, acked, lost, slope, expected) in [
            ("nothing but rate", 1.0, 100, 0, 0.0, 1.0),
            ("t = 0.9", 1024.0, 100, 0, 0.0, 512.0),
            ("b = 900", 1.0, 100, 0, 0.1, 1.0 - 90.0),
            ("a falling RTT earns nothing", 1.0, 100, 0, -0.1, 1.0),
            ("below the tolerance", 1.0, 100, 0, 0.0099, 1.0),
            ("c = 11.35", 1.0, 90, 10, 0.0, 1.0 - 1.135),
        ] {
            let utility = interval(rate, acked, lost, slope).utility(LATENCY_WEIGHT);
            assert!((utility - expected).abs() < 1e-6, "{case}: {utility}");
        }
    }

    #[test]
    fn steps_grow_with_confidence_and_keep_within_the_boundary() {
        let flow = Flow::new(Path::new(10.0, 20, 100), "newreno", 1);
        let cx = flow.context();
        let mut control = Vivace::new(1, 1, LATENCY_WEIGHT);
        control.rate = 100.0;
        // A gradient of 1 at 100 Mbit/s: utilities that differ by 10 over 2 epsilon r = 10.
        let mut step = |up: f64| {
            let before = control.rate;
            let apart = up * 2.0 * EPSILON * before;
            control.results = vec![(true, apart), (false, 0.0)];
            control.step(&cx);
            (control.rate - before, control.hits)
        };
        for expected in [1.0, 2.0, 3.0, 5.0] {
            let (change, _) = step(1.0);
            assert!((change - expected).abs() < 1e-9, "{change} {expected}");
        }
        let (change, hits) = step(1.0); // 7 wanted
        assert!((change - 111.0 * BOUNDARY).abs() < 1e-9 && hits == 1, "{change}");
        let (change, hits) = step(-20.0);
        assert!((change + 116.55 * BOUNDARY).abs() < 1e-9 && hits == 1, "a turn resets the boundary");
    }

    #[test]
    fn a_constant_link_is_used_without_filling_a_deep_buffer() {
        for (rate, rtt) in [(2.0, 40), (10.0, 40), (24.0, 20), (60.0, 40)] {
            for seed in 1..3 {
                let mut flow = Flow::new(Path::new(rate, rtt, 2_000), "vivace", seed);
                flow.run(Time::from_secs(20));
                let utilisation = flow.utilisation_until(Time::from_secs(45));
                assert!(utilisation >= 0.9, "{rate} Mbit/s, {rtt} ms, seed {seed}: {utilisation}");
                let delay = flow.mean_delay(Time::from_secs(20), Time::from_secs(45));
                assert!(delay < 0.01, "{rate} Mbit/s, {rtt} ms, seed {seed}: {delay} s of queue");
            }
        }
    }

    #[test]
    fn random_loss_below_its_weight_does_not_matter() {
        let mut path = Path::new(20.0, 40, 2_000);
        path.lose_every = 100;
        let mut flow = Flow::new(path, "vivace", 3);
        flow.run(Time::from_secs(20));
        let utilisation = flow.utilisation_until(Time::from_secs(45));
        assert!(utilisation > 0.7, "{utilisation} at 1 % loss");
    }

    #[test]
    fn the_rate_does_not_run_away_where_the_capacity_varies() {
        let mut path = Path::new(10.0, 20, 100);
        for second in 1..60 {
            path = path.then(second, [0.5, 20.0, 3.0, 8.0, 1.0][second as usize % 5]);
        }
        let mut flow = Flow::new(path, "vivace", 1);
        let mut highest = 0.0f64;
        flow.run_with(Time::from_secs(60), &mut |flow| highest = highest.max(flow.figure("rate_mbit")));
        assert!(highest < 200.0, "{highest} Mbit/s");
    }

    /// Hides the outcome of some packets, as an endpoint does whose loss probe repaired one.
    #[derive(Debug)]
    struct Forgetful(Box<dyn CongestionControl>);

    impl CongestionControl for Forgetful {
        fn inner(&self) -> Option<&dyn CongestionControl> {
            Some(self.0.as_ref())
        }
        fn inner_mut(&mut self) -> Option<&mut dyn CongestionControl> {
            Some(self.0.as_mut())
        }
        fn on_congestion(&mut self, cx: &Context, w: &mut Window, event: &Congestion) -> LossResponse {
            self.0.on_congestion(cx, w, event)
        }
        fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
            self.0.on_ack(cx, w, ack);
        }
        fn on_packet(&mut self, cx: &Context, w: &mut Window, packet: &Packet) {
            if packet.number % 500 != 7 {
                self.0.on_packet(cx, w, packet);
            }
        }
    }

    #[test]
    fn packet_without_an_outcome_does_not_stop_learning() {
        let mut flow = Flow::new(Path::new(10.0, 40, 2_000), "vivace", 1);
        let control = core::mem::replace(&mut flow.control, Box::new(Vivace::new(0, 1, 0.0)));
        flow.control = Box::new(Forgetful(control));
        flow.run(Time::from_secs(20));
        let utilisation = flow.utilisation_until(Time::from_secs(45));
        assert!(utilisation > 0.85, "{utilisation}");
    }

    #[test]
    fn two_pairs_work_as_well() {
        let mut flow = Flow::new(Path::new(10.0, 40, 2_000), "vivace:pairs=2", 3);
        flow.run(Time::from_secs(20));
        assert!(flow.utilisation_until(Time::from_secs(45)) > 0.85);
    }
}
