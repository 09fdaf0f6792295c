//! BBRv3: BBR with bounds on rate and flight that it learns from loss.
//!
//! Source: draft-ietf-ccwg-bbr after -06 (August 2026), the default; with `kernel=on` the constants and rules in which Linux's
//! branch v3 (2023) differs from it. Certainty: high.
//!
//! The model is the largest delivery rate of this and the last cycle (`max_bw`), the smallest RTT of [`MIN_RTT_WINDOW`], and two
//! pairs of bounds. The short-term bounds (`lo`) fall with each round that has losses and are dropped when it probes. The
//! long-term bound on the flight (`hi`) is what the path carried with at most [`Constants::loss`] lost.
//!
//! | state | pacing gain | window gain | leaves when |
//! |---|---|---|---|
//! | STARTUP | 2.77 | 2 | bandwidth grew by less than a quarter in each of 3 rounds, or too much is lost |
//! | DRAIN | 0.5 | 2 | in flight <= BDP, or after 3 rounds |
//! | DOWN | 0.90 | 2 | in flight <= BDP and <= `hi` less headroom, or it is time to probe |
//! | CRUISE | 1 | 2 | 2 to 3 s since DOWN began, or as many rounds as the BDP has segments, at most 63 |
//! | REFILL | 1 | 2 | a round |
//! | UP | 1.25 | 2.25 | the pipe is full by the rule of STARTUP, or more than 2 % are lost |
//! | PROBE_RTT | 1 | 0.5 | 200 ms and a round with half a BDP in flight |
//!
//! Where the draft is ambiguous: its prose gives PROBE_RTT a window of 4 segments and its code half a BDP; this follows the
//! code. Its table bounds DRAIN by `hi` and its code does not; this follows the code. DRAIN ends after 3 rounds in its prose and
//! after a fourth in its code; this follows the prose. The rule by which loss ends STARTUP is prose; this follows Linux. It does
//! not say whether the flight that ends a precautionary UP is that before or after the acknowledgement; as in Linux, it is the
//! one before.
//!
//! Ours: the pace has a floor of one segment per second. The control itself recognises samples of packets sent in PROBE_RTT. A
//! cycle without any sample keeps the maximum of the one before (so does Linux). A path change replaces both minima of the RTT
//! by the next sample. With `kernel=on` the budget for bursts is the draft's, the flight is that of now and not that at the next
//! departure, and its packets are not ECN-capable: Linux uses marks only where the route says so.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use ranpace_units::{Rate, Span, Time};

use super::bbr1::{INITIAL_WINDOW, MIN_RTT_WINDOW, PROBE_RTT_TIME};
use crate::entry::{Control, Entry, Transport};
use crate::filter::{MaxFilter, Rounds};
use crate::interface::{
    Ack, Congestion, CongestionControl, Context, EcnUse, LossResponse, Pacing, Packet, PacketOutcome,
    Sending, Signal, State, Window,
};
use crate::options::{OptionError, OptionInfo, Options};

/// Entry in `ranpace list cc`.
pub const ENTRY: Entry = Entry {
    name: "bbr3",
    about: "BBR version 3: bounds rate and flight by what loss has taught",
    source: "draft-ietf-ccwg-bbr (2026); Linux branch v3; certainty: high",
    options: &[OptionInfo {
        key: "kernel",
        values: "on or off [off]",
        about: "constants and rules of Linux's v3 where the draft differs",
    }],
    transport: Transport::Tcp,
    loss_based: false,
    build: &build,
    receiver: None,
};

fn build(options: &mut Options, seed: u64) -> Result<Control, OptionError> {
    let constants = if options.flag("kernel", false)? { &KERNEL } else { &DRAFT };
    Ok(Control::Other(Box::new(Bbr3::new(seed, constants))))
}

/// In what the draft and Linux differ.
#[derive(Debug)]
struct Constants {
    /// Pacing gains.
    startup: f64,
    drain: f64,
    down: f64,
    /// Share of the flight that may be lost.
    loss: f64,
    /// Factor of the bounds after losses.
    beta: f64,
    /// Share of `hi` that is left free while cruising.
    headroom: f64,
    kernel: bool,
}

/// Section 2 of the draft.
const DRAFT: Constants =
    Constants { startup: 2.77, drain: 0.5, down: 0.90, loss: 0.02, beta: 0.7, headroom: 0.15, kernel: false };
/// Linux `tcp_bbr.c`, branch v3.
const KERNEL: Constants = Constants {
    startup: 2.773,
    drain: 0.344,
    down: 0.906,
    loss: 5.0 / 256.0,
    beta: 180.0 / 256.0,
    headroom: 38.0 / 256.0,
    kernel: true,
};

/// Pacing gain in UP.
const UP_GAIN: f64 = 1.25;
/// Window over BDP: in general, in UP, and in PROBE_RTT.
const CWND_GAIN: f64 = 2.0;
const UP_CWND_GAIN: f64 = 2.25;
const PROBE_RTT_CWND_GAIN: f64 = 0.5;
/// Pace over gain times bandwidth.
const MARGIN: f64 = 0.99;
/// Smallest window in segments.
const MIN_CWND: f64 = 4.0;
/// Growth per round that counts as growth, and rounds without it until the pipe counts as full.
const FULL_PIPE_GROWTH: f64 = 1.25;
const FULL_PIPE_ROUNDS: u32 = 3;
/// Separate losses in a round of recovery that can end STARTUP.
const STARTUP_LOSSES: u32 = 6;
/// Rounds after which DRAIN ends in any case (draft).
const DRAIN_ROUNDS: u64 = 3;
/// A smallest RTT that is this old is probed for.
const PROBE_RTT_INTERVAL: Span = Span::from_secs(5);
/// Least time between probes of the bandwidth, and the random addition to it.
const PROBE_WAIT: Span = Span::from_secs(2);
const PROBE_WAIT_RANDOM_MS: u64 = 1_000;
/// Most rounds between probes: those of a Reno flow of that window.
const PROBE_ROUNDS: f64 = 63.0;
/// Rounds of the filter of aggregation (draft), and of each of the two slots (Linux); a round in STARTUP.
const AGGREGATION_ROUNDS: u64 = 10;
const AGGREGATION_SLOT_ROUNDS: u64 = 5;
/// Largest allowance for aggregation, as time at the bandwidth (Linux).
const AGGREGATION_MAX_S: f64 = 0.1;
/// Largest burst in bytes, and its length in time.
const MAX_BURST: f64 = 65_536.0;
const BURST_S: f64 = 0.001;

/// The state of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl Mode {
    fn is_probe_bw(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    /// Whether losses are expected: they do not lower the short-term bounds.
    fn is_probing(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }
}

/// Which part of a probe the acknowledgements belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    None,
    Refilling,
    Starting,
    Feedback,
    Stopping,
}

/// Detects whether the pipe is full: the delivery rate no longer grows.
#[derive(Clone, Copy, Debug, Default)]
struct FullPipe {
    best: f64,
    rounds: u32,
    /// Full at present; and whether it has ever been.
    now: bool,
    reached: bool,
}

impl FullPipe {
    /// Begins the test anew from `best`.
    fn restart(&mut self, best: f64) {
        (self.best, self.rounds, self.now) = (best, 0, false);
    }

    /// The rate at the end of a round that was not limited by the application.
    fn on_round(&mut self, rate: f64) {
        if self.now {
            return;
        }
        if rate >= self.best * FULL_PIPE_GROWTH {
            self.restart(rate);
            return;
        }
        self.rounds += 1;
        if self.rounds >= FULL_PIPE_ROUNDS {
            (self.now, self.reached) = (true, true);
        }
    }
}

/// Segments acknowledged at once beyond what the bandwidth explains.
#[derive(Clone, Debug, Default)]
struct Aggregation {
    since: Time,
    acked: f64,
    largest: MaxFilter,
    /// Linux keeps the maxima of this and the last period of rounds.
    slots: [f64; 2],
    slot_since: u64,
}

impl Aggregation {
    fn restart(&mut self, now: Time) {
        (self.since, self.acked) = (now, 0.0);
    }

    fn update(&mut self, now: Time, bandwidth: f64, acked: f64, cwnd: f64, round: u64, started_up: bool) {
        let mut expected = bandwidth * (now - self.since).as_secs_f64();
        if self.acked <= expected {
            self.restart(now);
            expected = 0.0;
        }
        self.acked += acked;
        let extra = (self.acked - expected).min(cwnd);
        let (window, slot) = if started_up { (AGGREGATION_ROUNDS, AGGREGATION_SLOT_ROUNDS) } else { (1, 1) };
        self.largest.update(window, round, extra as u64);
        if round >= self.slot_since + slot {
            (self.slots, self.slot_since) = ([0.0, self.slots[0]], round);
        }
        self.slots[0] = self.slots[0].max(extra);
    }

    fn allowance(&self, bandwidth: f64, kernel: bool) -> f64 {
        if kernel {
            self.slots[0].max(self.slots[1]).min(bandwidth * AGGREGATION_MAX_S)
        } else {
            self.largest.get() as f64
        }
    }
}

/// What an undo restores: the bounds and the state before the first loss of a round.
#[derive(Clone, Copy, Debug)]
struct Undo {
    mode: Mode,
    bw_lo: f64,
    in_lo: f64,
    hi: f64,
}

/// The control. Rates are in segments per second, windows and flights in segments.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    constants: &'static Constants,
    random: Xoshiro256PlusPlus,
    mode: Mode,
    phase: Phase,
    rounds: Rounds,
    pacing_gain: f64,
    cwnd_gain: f64,
    /// Largest rate of this cycle and of the last.
    max_bw: [f64; 2],
    /// Bounds; infinite without one.
    bw_lo: f64,
    in_lo: f64,
    hi: f64,
    /// Largest rate and volume of the present loss round.
    bw_latest: f64,
    inflight_latest: f64,
    /// Delivered segments at which the loss round ends; whether it just did; whether it had losses, and how many separate ones.
    loss_round_end: u64,
    loss_round_over: bool,
    lossy_round: bool,
    losses: u32,
    undo: Undo,
    full_pipe: FullPipe,
    aggregation: Aggregation,
    drain_since: u64,
    /// When DOWN began, the time until the next probe, and the rounds since the last one.
    down_since: Time,
    wait: Span,
    rounds_since_probe: u64,
    /// Whether losses now tell about the last probe.
    sampling: bool,
    /// The last probe lost too much; this one was stopped before it could.
    too_high: bool,
    cautious: bool,
    /// While probing, `hi` grows by a segment for each `up_every` acknowledged; the divisor of that doubles each round.
    up_every: f64,
    up_rounds: u32,
    up_acked: f64,
    min_rtt: Span,
    min_rtt_at: Time,
    /// Smallest RTT that PROBE_RTT renews, and when it was measured.
    probed_rtt: Span,
    probed_rtt_at: Time,
    /// The next RTT replaces both minima (path change).
    min_rtt_void: bool,
    /// End of PROBE_RTT; `None` until the flight is small.
    probe_rtt_until: Option<Time>,
    probe_rtt_round_done: bool,
    /// Counts of delivered segments that delimit the packets sent in PROBE_RTT, whose samples are too low.
    quiet: Option<(u64, u64)>,
    /// Window to return to after recovery and PROBE_RTT.
    prior_cwnd: f64,
    recovering: bool,
    idle_restart: bool,
    has_seen_rtt: bool,
}

impl Bbr3 {
    fn new(seed: u64, constants: &'static Constants) -> Self {
        let (mode, unbounded) = (Mode::Startup, f64::INFINITY);
        Self {
            constants,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            mode,
            phase: Phase::None,
            rounds: Rounds::default(),
            pacing_gain: constants.startup,
            cwnd_gain: CWND_GAIN,
            max_bw: [0.0; 2],
            bw_lo: unbounded,
            in_lo: unbounded,
            hi: unbounded,
            bw_latest: 0.0,
            inflight_latest: 0.0,
            loss_round_end: 0,
            loss_round_over: false,
            lossy_round: false,
            losses: 0,
            undo: Undo { mode, bw_lo: unbounded, in_lo: unbounded, hi: unbounded },
            full_pipe: FullPipe::default(),
            aggregation: Aggregation::default(),
            drain_since: 0,
            down_since: Time::ZERO,
            wait: PROBE_WAIT,
            rounds_since_probe: 0,
            sampling: false,
            too_high: false,
            cautious: false,
            up_every: unbounded,
            up_rounds: 0,
            up_acked: 0.0,
            min_rtt: Span::MAX,
            min_rtt_at: Time::ZERO,
            probed_rtt: Span::MAX,
            probed_rtt_at: Time::ZERO,
            min_rtt_void: false,
            probe_rtt_until: None,
            probe_rtt_round_done: false,
            quiet: None,
            prior_cwnd: 0.0,
            recovering: false,
            idle_restart: false,
            has_seen_rtt: false,
        }
    }

    fn max_bandwidth(&self) -> f64 {
        self.max_bw[0].max(self.max_bw[1])
    }

    /// The bandwidth in use.
    fn bandwidth(&self) -> f64 {
        self.max_bandwidth().min(self.bw_lo)
    }

    /// `gain` times bandwidth times RTT; an initial window if the RTT is unknown.
    fn bdp(&self, bandwidth: f64, gain: f64) -> f64 {
        if self.min_rtt == Span::MAX {
            return INITIAL_WINDOW as f64;
        }
        gain * bandwidth * self.min_rtt.as_secs_f64()
    }

    /// Raises a flight to what three bursts need.
    fn with_budget(&self, cx: &Context, w: &Window, flight: f64) -> f64 {
        let wire = cx.wire.as_f64().max(1.0);
        let burst = match w.pacing {
            Pacing::Rate(rate) => {
                (rate.as_f64() / 8.0 * BURST_S).clamp(2.0 * wire, MAX_BURST.max(2.0 * wire))
            }
            Pacing::Unlimited => 2.0 * wire,
        };
        let raised = flight.max(3.0 * burst / wire).max(MIN_CWND);
        if self.mode == Mode::Up { raised + 2.0 } else { raised }
    }

    /// The flight for a gain of 1 at `bandwidth`.
    fn flight_for(&self, cx: &Context, w: &Window, bandwidth: f64) -> f64 {
        self.with_budget(cx, w, self.bdp(bandwidth, 1.0))
    }

    /// The flight that a cut of `hi` goes by.
    fn target(&self, w: &Window) -> f64 {
        self.bdp(self.bandwidth(), 1.0).min(w.cwnd)
    }

    /// `hi` less the headroom that is left to other flows.
    fn room(&self) -> f64 {
        if self.hi.is_infinite() {
            return self.hi;
        }
        (self.hi - (self.constants.headroom * self.hi).max(1.0)).max(MIN_CWND)
    }

    /// Whether more than the tolerated share of the flight was lost.
    fn is_lossy(&self, in_flight: u64, lost: u64) -> bool {
        lost > 0 && in_flight > 0 && lost as f64 > self.constants.loss * in_flight as f64
    }

    /// The flight at which the share of losses reached the threshold, in the middle of a packet.
    fn flight_at_loss(&self, sending: &Sending) -> f64 {
        let flight = sending.in_flight as f64 - 1.0;
        let lost = sending.lost_since as f64 - 1.0;
        flight + (self.constants.loss * flight - lost) / (1.0 - self.constants.loss)
    }

    fn save_cwnd(&mut self, w: &Window) {
        let undisturbed = !self.recovering && self.mode != Mode::ProbeRtt;
        self.prior_cwnd = if undisturbed { w.cwnd } else { self.prior_cwnd.max(w.cwnd) };
    }

    fn restore_cwnd(&self, w: &mut Window) {
        w.cwnd = w.cwnd.max(self.prior_cwnd);
    }

    fn set_mode(&mut self, mode: Mode) {
        self.mode = mode;
        (self.pacing_gain, self.cwnd_gain) = match mode {
            Mode::Startup => (self.constants.startup, CWND_GAIN),
            Mode::Drain => (self.constants.drain, CWND_GAIN),
            Mode::Down => (self.constants.down, CWND_GAIN),
            Mode::Cruise | Mode::Refill => (1.0, CWND_GAIN),
            Mode::Up => (UP_GAIN, UP_CWND_GAIN),
            Mode::ProbeRtt => (1.0, PROBE_RTT_CWND_GAIN),
        };
    }

    fn drop_short_term_bounds(&mut self) {
        (self.bw_lo, self.in_lo) = (f64::INFINITY, f64::INFINITY);
    }

    fn enter_down(&mut self, cx: &Context) {
        (self.lossy_round, self.bw_latest, self.inflight_latest) = (false, 0.0, 0.0);
        self.up_every = f64::INFINITY;
        let random = self.random.next_u64();
        self.rounds_since_probe = random & 1;
        self.wait = PROBE_WAIT + Span::from_micros((random >> 1) % (PROBE_WAIT_RANDOM_MS * 1_000));
        self.down_since = cx.now;
        self.phase = Phase::Stopping;
        self.rounds.restart(cx.delivered);
        self.set_mode(Mode::Down);
    }

    fn enter_refill(&mut self, cx: &Context) {
        self.drop_short_term_bounds();
        (self.up_rounds, self.up_acked, self.cautious) = (0, 0.0, false);
        self.phase = Phase::Refilling;
        self.rounds.restart(cx.delivered);
        self.set_mode(Mode::Refill);
    }

    fn enter_up(&mut self, cx: &Context, w: &Window, rate: f64) {
        self.phase = Phase::Starting;
        self.rounds.restart(cx.delivered);
        self.full_pipe.restart(rate);
        self.set_mode(Mode::Up);
        self.steepen(w);
    }

    /// Doubles the rate at which `hi` grows.
    fn steepen(&mut self, w: &Window) {
        self.up_every = (w.cwnd / (1u64 << self.up_rounds) as f64).max(1.0);
        self.up_rounds = (self.up_rounds + 1).min(30);
    }

    fn on_too_high(&mut self, cx: &Context, w: &Window, flight: f64, app_limited: bool) {
        (self.too_high, self.sampling) = (true, false);
        if !app_limited {
            self.hi = flight.max(self.constants.beta * self.target(w));
        }
        if self.mode == Mode::Up {
            self.enter_down(cx);
        }
    }

    /// Returns whether the sample is too low for a reason other than the path.
    fn app_limited(&self, ack: &Ack) -> bool {
        let prior = ack.rate.prior_delivered;
        ack.rate.app_limited || self.quiet.is_some_and(|(from, to)| prior >= from && prior <= to)
    }

    /// Steps 1 to 3: rounds, the latest signals, the largest bandwidth. Returns the sample's rate.
    fn update_bandwidth(&mut self, cx: &Context, ack: &Ack) -> Option<f64> {
        (self.rounds.started, self.loss_round_over) = (false, false);
        let interval = ack.rate.interval.filter(|interval| !interval.is_zero())?;
        let rate = ack.rate.delivered as f64 / interval.as_secs_f64();
        self.rounds.update(ack.rate.prior_delivered, cx.delivered);
        self.rounds_since_probe += u64::from(self.rounds.started);
        self.bw_latest = self.bw_latest.max(rate);
        self.inflight_latest = self.inflight_latest.max(ack.rate.delivered as f64);
        if ack.rate.prior_delivered >= self.loss_round_end {
            (self.loss_round_end, self.loss_round_over) = (cx.delivered, true);
        }
        if !self.app_limited(ack) || rate >= self.max_bandwidth() {
            self.max_bw[0] = self.max_bw[0].max(rate);
        }
        Some(rate)
    }

    /// Step 4: the short-term bounds fall at the end of a round with losses.
    fn update_lower_bounds(&mut self, w: &Window) {
        if !self.loss_round_over {
            return;
        }
        if self.lossy_round && !self.mode.is_probing() {
            let bandwidth = if self.bw_lo.is_finite() { self.bw_lo } else { self.max_bandwidth() };
            self.bw_lo = self.bw_latest.max(self.constants.beta * bandwidth);
            let flight = if self.in_lo.is_finite() { self.in_lo } else { w.cwnd };
            self.in_lo = self.inflight_latest.max(self.constants.beta * flight);
        }
        self.lossy_round = false;
    }

    /// Step 7: losses end STARTUP; so does a full pipe. Step 8: the end of DRAIN.
    fn check_startup(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        if !self.full_pipe.reached {
            self.losses += u32::from(ack.rate.lost > 0);
            if self.loss_round_over
                && cx.state == State::Recovery
                && self.losses >= STARTUP_LOSSES
                && self.is_lossy(ack.rate.in_flight_at_send, ack.rate.lost_since_send)
            {
                self.full_pipe.reached = true;
                self.hi = self.flight_for(cx, w, self.max_bandwidth()).max(self.inflight_latest);
            }
            if self.loss_round_over {
                self.losses = 0;
            }
        }
        if self.mode == Mode::Startup && self.full_pipe.reached {
            self.drain_since = self.rounds.count;
            self.set_mode(Mode::Drain);
            w.ssthresh = self.flight_for(cx, w, self.max_bandwidth());
        }
        if self.mode == Mode::Drain {
            let drained = cx.in_flight as f64 <= self.flight_for(cx, w, self.bandwidth());
            let late = !self.constants.kernel && self.rounds.count >= self.drain_since + DRAIN_ROUNDS;
            if drained || late {
                self.enter_down(cx);
            }
        }
    }

    /// Step 9: the long-term bound, and the cycle of PROBE_BW.
    fn update_cycle(&mut self, cx: &Context, w: &Window, ack: &Ack, rate: Option<f64>) {
        if !self.full_pipe.reached || self.update_upper_bound(cx, w, ack) {
            return;
        }
        let flight = cx.in_flight as f64;
        match self.mode {
            Mode::Down if self.is_time_to_probe(cx, w) => self.enter_refill(cx),
            Mode::Down if flight <= self.room() && flight <= self.flight_for(cx, w, self.max_bandwidth()) => {
                self.set_mode(Mode::Cruise);
            }
            Mode::Cruise if self.is_time_to_probe(cx, w) => self.enter_refill(cx),
            Mode::Refill if self.rounds.started => {
                self.sampling = true;
                self.enter_up(cx, w, rate.unwrap_or_default());
            }
            Mode::Up => {
                // The window is at most `hi`: the flight reaches it only before an acknowledgement, and in whole segments.
                let risky = self.too_high && ack.prior_in_flight as f64 >= self.hi.floor();
                if !risky && cx.cwnd_limited && w.cwnd >= self.hi {
                    // The bound limits the rate, so a rate that does not grow says nothing.
                    self.full_pipe.restart(rate.unwrap_or_default());
                } else if risky || self.full_pipe.now {
                    self.cautious |= risky;
                    self.too_high = false;
                    self.enter_down(cx);
                }
            }
            _ => {}
        }
    }

    /// Raises `hi` by what the path carried without much loss. Returns true if a probe begins.
    fn update_upper_bound(&mut self, cx: &Context, w: &Window, ack: &Ack) -> bool {
        if self.rounds.started && self.phase == Phase::Starting {
            self.phase = Phase::Feedback;
        }
        if self.rounds.started && self.phase == Phase::Stopping {
            (self.sampling, self.phase) = (false, Phase::None);
            if self.mode.is_probe_bw() {
                if !self.app_limited(ack) && self.max_bw[0] > 0.0 {
                    self.max_bw = [0.0, self.max_bw[0]];
                }
                if self.cautious && !self.too_high {
                    self.enter_refill(cx);
                    return true;
                }
            }
        }
        let flight = ack.rate.in_flight_at_send;
        if self.is_lossy(flight, ack.rate.lost_since_send) {
            if self.constants.kernel && self.sampling {
                self.on_too_high(cx, w, flight as f64, ack.rate.app_limited);
            }
        } else if self.hi.is_finite() {
            self.hi = self.hi.max(flight as f64);
            if self.mode == Mode::Up && cx.cwnd_limited && w.cwnd >= self.hi {
                self.up_acked += ack.delivered as f64;
                let steps = (self.up_acked / self.up_every) as u64 as f64;
                if steps > 0.0 {
                    self.up_acked -= steps * self.up_every;
                    self.hi += steps;
                }
                if self.rounds.started {
                    self.steepen(w);
                }
            }
        }
        false
    }

    fn is_time_to_probe(&self, cx: &Context, w: &Window) -> bool {
        cx.now - self.down_since >= self.wait
            || self.rounds_since_probe as f64 >= self.target(w).min(PROBE_ROUNDS)
    }

    /// Step 10: both minima of the RTT, and PROBE_RTT.
    fn update_min_rtt(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        let stale = cx.now > self.probed_rtt_at + PROBE_RTT_INTERVAL;
        if let Some(rtt) = ack.rtt {
            let renewed = self.min_rtt_void || (stale && !(self.constants.kernel && ack.rate.delayed));
            if rtt < self.probed_rtt || renewed {
                (self.probed_rtt, self.probed_rtt_at) = (rtt, cx.now);
            }
            let expired = self.min_rtt_void || cx.now > self.min_rtt_at + MIN_RTT_WINDOW;
            let same = self.constants.kernel && self.probed_rtt == self.min_rtt;
            if self.probed_rtt < self.min_rtt || same || expired {
                (self.min_rtt, self.min_rtt_at) = (self.probed_rtt, self.probed_rtt_at);
            }
            self.min_rtt_void = false;
        }
        if stale && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.save_cwnd(w);
            self.set_mode(Mode::ProbeRtt);
            (self.phase, self.probe_rtt_until) = (Phase::Stopping, None);
            self.rounds.restart(cx.delivered);
            self.quiet = Some((cx.delivered, cx.delivered));
        }
        if self.mode == Mode::ProbeRtt {
            if let Some((_, to)) = &mut self.quiet {
                *to = cx.delivered + cx.in_flight;
            }
            if self.probe_rtt_until.is_some() {
                self.probe_rtt_round_done |= self.rounds.started;
                if self.probe_rtt_round_done {
                    self.check_probe_rtt_done(cx, w);
                }
            } else if cx.in_flight as f64 <= self.probe_rtt_cwnd() {
                self.probe_rtt_until = Some(cx.now + PROBE_RTT_TIME);
                self.probe_rtt_round_done = false;
                self.rounds.restart(cx.delivered);
            }
        }
        if ack.rate.delivered > 0 {
            self.idle_restart = false;
        }
    }

    fn probe_rtt_cwnd(&self) -> f64 {
        self.bdp(self.bandwidth(), PROBE_RTT_CWND_GAIN).max(MIN_CWND)
    }

    fn check_probe_rtt_done(&mut self, cx: &Context, w: &mut Window) {
        if self.probe_rtt_until.is_none_or(|until| cx.now <= until) {
            return;
        }
        self.probed_rtt_at = cx.now;
        self.restore_cwnd(w);
        self.drop_short_term_bounds();
        if self.full_pipe.reached {
            self.enter_down(cx);
            self.set_mode(Mode::Cruise);
        } else {
            self.set_mode(Mode::Startup);
        }
    }

    fn pace(cx: &Context, rate: f64) -> Pacing {
        let segment = cx.wire.as_f64() * 8.0;
        Pacing::Rate(Rate::from_bits_per_s_f64((rate * segment).max(segment)))
    }

    fn initial_pace(&mut self, cx: &Context, w: &mut Window) {
        self.has_seen_rtt = !cx.srtt.is_zero();
        let rtt = if self.has_seen_rtt { cx.srtt } else { Span::from_millis(1) };
        w.pacing = Self::pace(cx, self.constants.startup * w.cwnd.max(1.0) / rtt.as_secs_f64());
    }

    /// Step 12, first half: before the pipe has been full the pace only rises.
    fn set_pace(&mut self, cx: &Context, w: &mut Window, gain: f64) {
        if !self.has_seen_rtt && !cx.srtt.is_zero() {
            self.initial_pace(cx, w);
        }
        let pace = Self::pace(cx, MARGIN * gain * self.bandwidth());
        let faster = match (w.pacing, pace) {
            (Pacing::Rate(current), Pacing::Rate(new)) => new > current,
            _ => true,
        };
        if self.full_pipe.reached || faster {
            w.pacing = pace;
        }
    }

    /// Step 12, second half: the window grows by what was delivered, up to its bounds.
    fn set_cwnd(&self, cx: &Context, w: &mut Window, acked: f64) {
        let bandwidth = self.bandwidth();
        let extra = self.aggregation.allowance(bandwidth, self.constants.kernel);
        let most = self.with_budget(cx, w, self.bdp(bandwidth, self.cwnd_gain) + extra);
        if self.full_pipe.reached {
            w.cwnd = (w.cwnd + acked).min(most);
        } else if w.cwnd < most || cx.delivered < INITIAL_WINDOW {
            w.cwnd += acked;
        }
        w.cwnd = w.cwnd.max(MIN_CWND);
        if self.mode == Mode::ProbeRtt {
            w.cwnd = w.cwnd.min(self.probe_rtt_cwnd());
        }
        let bound = match self.mode {
            Mode::Down | Mode::Refill | Mode::Up => self.hi,
            Mode::Cruise | Mode::ProbeRtt => self.room(),
            Mode::Startup | Mode::Drain => f64::INFINITY,
        };
        w.cwnd = w.cwnd.min(bound.min(self.in_lo).max(MIN_CWND));
    }
}

impl CongestionControl for Bbr3 {
    fn on_start(&mut self, cx: &Context, w: &mut Window) {
        (self.min_rtt, self.min_rtt_at) = (cx.min_rtt, cx.now);
        (self.probed_rtt, self.probed_rtt_at) = (cx.min_rtt, cx.now);
        self.rounds.restart(cx.delivered);
        self.aggregation.restart(cx.now);
        self.initial_pace(cx, w);
    }

    fn wants_packets(&self) -> bool {
        true
    }

    fn on_packet(&mut self, cx: &Context, w: &mut Window, packet: &Packet) {
        if packet.fate != PacketOutcome::Lost {
            return;
        }
        if !self.lossy_round {
            self.loss_round_end = cx.delivered;
            self.undo = Undo { mode: self.mode, bw_lo: self.bw_lo, in_lo: self.in_lo, hi: self.hi };
            self.lossy_round = true;
        }
        let Sending { in_flight, lost_since, app_limited } = packet.sending;
        if self.sampling && self.is_lossy(in_flight, lost_since) {
            let flight = self.flight_at_loss(&packet.sending);
            self.on_too_high(cx, w, flight, app_limited);
        }
    }

    fn on_congestion(&mut self, cx: &Context, w: &mut Window, event: &Congestion) -> LossResponse {
        let timeout = matches!(event.kind, Signal::Timeout { .. });
        if (event.first && event.kind == Signal::Loss) || timeout {
            self.save_cwnd(w);
            self.recovering = true;
        }
        if timeout {
            w.cwnd = (cx.in_flight + 1) as f64;
        }
        LossResponse::Own
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        let rate = self.update_bandwidth(cx, ack);
        self.update_lower_bounds(w);
        let acked = ack.delivered as f64;
        if ack.delivered > 0 && rate.is_some() {
            let (bandwidth, round) = (self.bandwidth(), self.rounds.count);
            self.aggregation.update(cx.now, bandwidth, acked, w.cwnd, round, self.full_pipe.reached);
        }
        if let Some(rate) = rate
            && self.rounds.started
            && !self.app_limited(ack)
        {
            self.full_pipe.on_round(rate);
        }
        self.check_startup(cx, w, ack);
        self.update_cycle(cx, w, ack, rate);
        self.update_min_rtt(cx, w, ack);
        if let Some(rate) = rate
            && self.loss_round_over
        {
            (self.bw_latest, self.inflight_latest) = (rate, ack.rate.delivered as f64);
        }
        self.set_pace(cx, w, self.pacing_gain);
        self.set_cwnd(cx, w, acked);
    }

    fn owns_recovery(&self) -> bool {
        true
    }

    fn ecn(&self) -> EcnUse {
        EcnUse::NotEct
    }

    fn on_recovered(&mut self, _: &Context, w: &mut Window) {
        if core::mem::take(&mut self.recovering) {
            self.restore_cwnd(w);
        }
    }

    fn on_spurious(&mut self, cx: &Context, w: &mut Window, prior: &Window) {
        self.lossy_round = false;
        self.full_pipe.restart(0.0);
        let undo = self.undo;
        (self.bw_lo, self.in_lo) = (self.bw_lo.max(undo.bw_lo), self.in_lo.max(undo.in_lo));
        self.hi = self.hi.max(undo.hi);
        if self.mode != Mode::ProbeRtt && self.mode != undo.mode {
            if undo.mode == Mode::Startup {
                self.full_pipe.reached = false;
                self.set_mode(Mode::Startup);
            } else if undo.mode == Mode::Up {
                self.enter_refill(cx);
            }
        }
        w.cwnd = w.cwnd.max(prior.cwnd);
        w.ssthresh = w.ssthresh.max(prior.ssthresh);
    }

    fn on_idle_restart(&mut self, cx: &Context, w: &mut Window, _: Span) {
        self.idle_restart = true;
        self.aggregation.restart(cx.now);
        if self.mode.is_probe_bw() {
            self.set_pace(cx, w, 1.0);
        } else if self.mode == Mode::ProbeRtt {
            self.check_probe_rtt_done(cx, w);
        }
    }

    fn on_path_change(&mut self, cx: &Context, _: &mut Window) {
        self.min_rtt_void = true;
        (self.min_rtt_at, self.probed_rtt_at) = (cx.now, cx.now);
        self.full_pipe.restart(0.0);
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("state", f64::from(self.mode as u8));
        show("pacing_gain", self.pacing_gain);
        show("cwnd_gain", self.cwnd_gain);
        show("bw_segments_per_s", self.bandwidth());
        show("max_bw_segments_per_s", self.max_bandwidth());
        for (name, bound) in [("bw_lo_segments_per_s", self.bw_lo), ("in_lo", self.in_lo), ("hi", self.hi)] {
            if bound.is_finite() {
                show(name, bound);
            }
        }
        if self.min_rtt != Span::MAX {
            show("min_rtt_s", self.min_rtt.as_secs_f64());
        }
        show("rounds", self.rounds.count as f64);
    }
}

#[cfg(test)]
mod tests;
