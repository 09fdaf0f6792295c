//! BBRv1: paces at the measured bandwidth and keeps at most two bandwidth-delay products in flight.
//!
//! Source: Cardwell et al., "BBR: Congestion-Based Congestion Control", ACM Queue 2016; states, constants and
//! order of evaluation as Linux `net/ipv4/tcp_bbr.c` (version 1 of BBR).
//!
//! The model is the maximum of the delivery rate over [`BANDWIDTH_ROUNDS`] and the minimum of the RTT over
//! [`MIN_RTT_WINDOW`]. Four states:
//!
//! | state | pacing gain | window gain | leaves when |
//! |---|---|---|---|
//! | STARTUP | [`HIGH_GAIN`] | [`HIGH_GAIN`] | bandwidth grew by less than a quarter in each of 3 rounds |
//! | DRAIN | [`DRAIN_GAIN`] | [`HIGH_GAIN`] | in flight <= BDP |
//! | PROBE_BW | [`CYCLE`], a phase per minimal RTT | [`CWND_GAIN`] | the minimal RTT is 10 s old |
//! | PROBE_RTT | 1 | 4 segments | 200 ms and a round with at most 4 segments in flight |
//!
//! In addition: packet conservation in the first round of recovery, long-term sampling against policers, an allowance for
//! aggregated acknowledgements, restart after idling.
//!
//! Ours: Linux subtracts from the flight what is delivered before pacing allows the next burst; here this needs
//! `departure=on`, so that earlier results stay reproducible. The pacing rate has a floor of one segment per second. A path
//! change replaces the minimal RTT by the next sample. Linux marks the connection application-limited during PROBE_RTT; here
//! the control itself recognises samples of packets sent in that state.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use ranpace_units::{Rate, Span, Time};

use crate::entry::{Control, Entry, Transport};
use crate::filter::{MaxFilter, Rounds};
use crate::interface::{
    Ack, Congestion, CongestionControl, Context, LossResponse, Pacing, RateSample, Signal, State, Window,
};
use crate::options::{OptionError, OptionInfo, Options};

/// Entry in `ranpace list cc`.
pub const ENTRY: Entry = Entry {
    name: "bbr1",
    about: "BBR version 1: paces at the measured bandwidth",
    source: "Cardwell et al., ACM Queue 2016; Linux tcp_bbr.c",
    options: &[
        OptionInfo {
            key: "probe_rtt",
            values: "on or off [on]",
            about: "dip to 4 segments for a new minimal RTT",
        },
        OptionInfo { key: "policer", values: "on or off [on]", about: "long-term sampling against policers" },
        OptionInfo {
            key: "aggregation",
            values: "on or off [on]",
            about: "window allowance for aggregated acknowledgements (Linux since 5.1; off for older kernels)",
        },
        OptionInfo {
            key: "departure",
            values: "on or off [off]",
            about: "phases end by what will be in flight when pacing lets the next burst go (on in Linux since 4.20)",
        },
    ],
    transport: Transport::Tcp,
    loss_based: false,
    build: &build,
    receiver: None,
};

fn build(options: &mut Options, seed: u64) -> Result<Control, OptionError> {
    Ok(Control::Other(Box::new(Bbr1::new(
        seed,
        Switches {
            probe_rtt: options.flag("probe_rtt", true)?,
            policer: options.flag("policer", true)?,
            aggregation: options.flag("aggregation", true)?,
            departure: options.flag("departure", false)?,
        },
    ))))
}

/// Gains are in units of 1/256 (Linux `BBR_UNIT`).
const UNIT: u64 = 256;
/// 2/ln 2: the smallest gain that doubles the rate each round (Linux `bbr_high_gain`).
const HIGH_GAIN: u64 = UNIT * 2885 / 1000 + 1;
/// The inverse: drains in a round what STARTUP queued (Linux `bbr_drain_gain`).
const DRAIN_GAIN: u64 = UNIT * 1000 / 2885;
/// Window over BDP in PROBE_BW (Linux `bbr_cwnd_gain`).
const CWND_GAIN: u64 = UNIT * 2;
/// Pacing gains of PROBE_BW: probe, drain, then six phases of cruising (Linux `bbr_pacing_gain`).
const CYCLE: [u64; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// Phases among which the first is drawn (Linux `bbr_cycle_rand`); the draining phase is not one of them.
const CYCLE_RANDOM: u64 = 7;
/// Window of the bandwidth filter in rounds (Linux `bbr_bw_rtts`: a cycle and two rounds).
pub(crate) const BANDWIDTH_ROUNDS: u64 = 10;
/// Window of the RTT filter (Linux `bbr_min_rtt_win_sec`).
pub(crate) const MIN_RTT_WINDOW: Span = Span::from_secs(10);
/// Time with few segments in flight in PROBE_RTT (Linux `bbr_probe_rtt_mode_ms`).
pub(crate) const PROBE_RTT_TIME: Span = Span::from_millis(200);
/// Smallest window in segments (Linux `bbr_cwnd_min_target`).
pub(crate) const MIN_CWND: u64 = 4;
/// Growth per round that counts as growth (Linux `bbr_full_bw_thresh`).
const FULL_PIPE_GROWTH: u64 = UNIT * 5 / 4;
/// Rounds without growth until the pipe counts as full (Linux `bbr_full_bw_cnt`).
const FULL_PIPE_ROUNDS: u32 = 3;
/// Pace as a percentage of gain times bandwidth (Linux `bbr_pacing_margin_percent` is 1).
const PACED_PERCENT: u64 = 99;
/// Below this rate bursts are single segments (Linux `bbr_min_tso_rate`).
const MIN_TSO_RATE: Rate = Rate::from_bits_per_s(1_200_000);
/// Largest burst in bytes (Linux `GSO_MAX_SIZE`).
const MAX_BURST: u64 = 65_536;
/// Largest burst in segments (Linux `bbr_tso_segs_goal`).
const MAX_BURST_SEGMENTS: u64 = 0x7f;
/// Largest initial window in segments (RFC 6928; Linux `TCP_INIT_CWND`).
pub(crate) const INITIAL_WINDOW: u64 = 10;
/// RTT assumed for the first pace before there is a sample (Linux).
const NOMINAL_RTT: Span = Span::from_millis(1);

/// Fewest rounds of a long-term sampling interval (Linux `bbr_lt_intvl_min_rtts`); an interval of more than four times as
/// many is discarded.
const POLICER_ROUNDS: u64 = 4;
/// Lost over delivered, in 1/256, from which an interval is lossy (Linux `bbr_lt_loss_thresh`).
const POLICER_LOSS: u64 = 50;
/// Two intervals agree if their rates differ by at most an eighth (Linux `bbr_lt_bw_ratio`) ...
const POLICER_RATIO: u64 = UNIT / 8;
/// ... or by at most 4 kbit/s (Linux `bbr_lt_bw_diff`).
const POLICER_DIFFERENCE: Rate = Rate::from_bits_per_s(4_000);
/// Rounds for which the policer's rate is used (Linux `bbr_lt_bw_max_rtts`).
const POLICED_ROUNDS: u64 = 48;

/// Rounds of one of the two windows of the aggregation filter (Linux `bbr_extra_acked_win_rtts`).
const AGGREGATION_ROUNDS: u64 = 5;
/// Largest allowance, as time at the bandwidth (Linux `bbr_extra_acked_max_us`).
const AGGREGATION_MAX: Span = Span::from_millis(100);
/// Segments after which an epoch of the aggregation filter ends (Linux `bbr_ack_epoch_acked_reset_thresh`).
const AGGREGATION_EPOCH: u64 = 1 << 20;

/// A bandwidth in segments per microsecond, times 2^24 (Linux `BW_SCALE`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Bandwidth(pub(crate) u64);

impl Bandwidth {
    const SCALE: u32 = 24;

    /// `segments` in `span`; a span below a microsecond counts as one.
    #[inline]
    pub(crate) fn of(segments: u64, span: Span) -> Self {
        Self((segments << Self::SCALE) / span.as_micros().max(1))
    }

    /// The sample of an acknowledgement, if valid.
    #[inline]
    pub(crate) fn sample(rate: &RateSample) -> Option<Self> {
        rate.interval.filter(|span| !span.is_zero()).map(|span| Self::of(rate.delivered, span))
    }

    /// Segments delivered in `span`, rounded down.
    fn segments_in(self, span: Span) -> u64 {
        self.0.saturating_mul(span.as_micros()) >> Self::SCALE
    }

    /// `gain` times bandwidth times `min_rtt` in segments, rounded up; an initial window if the RTT is unknown.
    #[inline]
    pub(crate) fn bdp(self, min_rtt: Span, gain: u64) -> u64 {
        if min_rtt == Span::MAX {
            return INITIAL_WINDOW;
        }
        let gained = self.0.saturating_mul(min_rtt.as_micros()).saturating_mul(gain) / UNIT;
        gained.saturating_add((1 << Self::SCALE) - 1) >> Self::SCALE
    }

    /// The bandwidth as a plain number.
    pub(crate) fn segments_per_s(self) -> f64 {
        self.0 as f64 * (1e6 / (1u64 << Self::SCALE) as f64)
    }

    /// `percent` of `gain` times the bandwidth, on the wire.
    #[inline]
    fn rate(self, cx: &Context, gain: u64, percent: u64) -> Rate {
        let bits = self.0.saturating_mul(cx.wire.get() * 8).saturating_mul(gain) / UNIT;
        Rate::from_bits_per_s(bits.saturating_mul(1_000_000 / 100 * percent) >> Self::SCALE)
    }

    /// The same as a pace: at least one segment per second (ours), so that a flow never stops for good.
    #[inline]
    fn pace(self, cx: &Context, gain: u64, percent: u64) -> Rate {
        self.rate(cx, gain, percent).max(Rate::from_bits_per_s(cx.wire.get() * 8))
    }

    /// [`Self::pace`] for a floating-point gain, without margin.
    pub(crate) fn pace_f64(self, cx: &Context, gain: f64) -> Rate {
        let segment = cx.wire.as_f64() * 8.0;
        Rate::from_bits_per_s_f64((self.segments_per_s() * gain * segment).max(segment))
    }
}

/// Detects whether STARTUP has filled the pipe: the bandwidth no longer grows.
#[derive(Clone, Debug, Default)]
pub(crate) struct FullPipe {
    best: Bandwidth,
    rounds: u32,
    /// Whether the pipe is full.
    pub(crate) reached: bool,
}

impl FullPipe {
    /// Records the bandwidth at the end of a round that was not application-limited.
    pub(crate) fn on_round(&mut self, bandwidth: Bandwidth) {
        if self.reached {
            return;
        }
        if bandwidth.0 >= self.best.0.saturating_mul(FULL_PIPE_GROWTH) / UNIT {
            (self.best, self.rounds) = (bandwidth, 0);
        } else {
            self.rounds += 1;
            self.reached = self.rounds >= FULL_PIPE_ROUNDS;
        }
    }

    /// Restarts the measurement of growth from zero; the verdict stays.
    fn forget_best(&mut self) {
        self.best = Bandwidth(0);
    }
}

/// Features that options can disable.
#[derive(Clone, Copy, Debug)]
struct Switches {
    probe_rtt: bool,
    policer: bool,
    aggregation: bool,
    departure: bool,
}

/// The state of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// Long-term sampling: detects a policer, which drops traffic beyond its tokens, and its rate.
#[derive(Clone, Debug, Default)]
struct Policer {
    sampling: bool,
    /// Whether the rate below is in force.
    policed: bool,
    rate: Bandwidth,
    rounds: u64,
    since: Time,
    delivered: u64,
    lost: u64,
}

impl Policer {
    fn begin_interval(&mut self, cx: &Context) {
        (self.since, self.delivered, self.lost, self.rounds) = (cx.now, cx.delivered, cx.lost, 0);
    }

    fn reset(&mut self, cx: &Context) {
        (self.rate, self.policed, self.sampling) = (Bandwidth(0), false, false);
        self.begin_interval(cx);
    }

    /// Processes an acknowledgement (or a timeout) while no policer is assumed.
    fn sample(&mut self, cx: &Context, round: bool, lost: bool, app_limited: bool) {
        if !self.sampling {
            if !lost {
                return; // wait until the policer has run out of tokens
            }
            self.begin_interval(cx);
            self.sampling = true;
        }
        if app_limited {
            self.reset(cx);
            return;
        }
        self.rounds += u64::from(round);
        if self.rounds < POLICER_ROUNDS {
            return;
        }
        if self.rounds > 4 * POLICER_ROUNDS {
            self.reset(cx);
            return;
        }
        // An interval ends with a loss, when the policer is out of tokens again.
        let (lost_now, delivered) =
            (cx.lost.saturating_sub(self.lost), cx.delivered.saturating_sub(self.delivered));
        if !lost || delivered == 0 || lost_now * UNIT < POLICER_LOSS * delivered {
            return;
        }
        let span = cx.now - self.since;
        if span >= Span::from_millis(1) {
            self.end_interval(cx, Bandwidth::of(delivered, span));
        }
    }

    fn end_interval(&mut self, cx: &Context, rate: Bandwidth) {
        let difference = Bandwidth(rate.0.abs_diff(self.rate.0));
        let agree = difference.0.saturating_mul(UNIT) <= self.rate.0.saturating_mul(POLICER_RATIO)
            || difference.rate(cx, UNIT, PACED_PERCENT) <= POLICER_DIFFERENCE;
        if self.rate != Bandwidth(0) && agree {
            self.rate = Bandwidth((rate.0 + self.rate.0) / 2);
            self.policed = true;
            self.rounds = 0;
        } else {
            self.rate = rate;
            self.begin_interval(cx);
        }
    }
}

/// Excess of segments acknowledged at once over what the bandwidth explains: the maximum of 5 to 10 rounds.
#[derive(Clone, Debug, Default)]
struct Aggregation {
    extra: [u64; 2],
    current: usize,
    rounds: u64,
    epoch: Time,
    acked: u64,
}

impl Aggregation {
    fn restart(&mut self, now: Time) {
        (self.epoch, self.acked) = (now, 0);
    }

    fn update(&mut self, cx: &Context, w: &Window, bandwidth: Bandwidth, round: bool, delivered: u64) {
        if round {
            self.rounds += 1;
            if self.rounds >= AGGREGATION_ROUNDS {
                self.rounds = 0;
                self.current ^= 1;
                self.extra[self.current] = 0;
            }
        }
        let mut expected = bandwidth.segments_in(cx.now - self.epoch);
        if self.acked <= expected || self.acked + delivered >= AGGREGATION_EPOCH {
            self.restart(cx.now);
            expected = 0;
        }
        self.acked = (self.acked + delivered).min(AGGREGATION_EPOCH - 1);
        let extra = self.acked.saturating_sub(expected).min(w.cwnd as u64);
        self.extra[self.current] = self.extra[self.current].max(extra);
    }

    fn allowance(&self, bandwidth: Bandwidth) -> u64 {
        self.extra[0].max(self.extra[1]).min(bandwidth.segments_in(AGGREGATION_MAX))
    }
}

/// The control.
#[derive(Clone, Debug)]
pub struct Bbr1 {
    switches: Switches,
    random: Xoshiro256PlusPlus,
    mode: Mode,
    rounds: Rounds,
    bandwidth: MaxFilter,
    full_pipe: FullPipe,
    policer: Policer,
    aggregation: Aggregation,
    pacing_gain: u64,
    cwnd_gain: u64,
    /// Position in [`CYCLE`], and since when.
    phase: usize,
    phase_since: Time,
    min_rtt: Span,
    min_rtt_at: Time,
    /// The next RTT replaces the minimum (path change).
    min_rtt_void: bool,
    /// End of PROBE_RTT; `None` until the flight is small.
    probe_rtt_until: Option<Time>,
    probe_rtt_round_done: bool,
    /// Counts of delivered segments that delimit the packets sent in PROBE_RTT, whose samples are too low.
    quiet: Option<(u64, u64)>,
    /// The window to return to after recovery and PROBE_RTT.
    prior_cwnd: f64,
    packet_conservation: bool,
    prior_state: State,
    idle_restart: bool,
    has_seen_rtt: bool,
}

impl Bbr1 {
    fn new(seed: u64, switches: Switches) -> Self {
        Self {
            switches,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            mode: Mode::Startup,
            rounds: Rounds::default(),
            bandwidth: MaxFilter::default(),
            full_pipe: FullPipe::default(),
            policer: Policer::default(),
            aggregation: Aggregation::default(),
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            phase: 0,
            phase_since: Time::ZERO,
            min_rtt: Span::MAX,
            min_rtt_at: Time::ZERO,
            min_rtt_void: false,
            probe_rtt_until: None,
            probe_rtt_round_done: false,
            quiet: None,
            prior_cwnd: 0.0,
            packet_conservation: false,
            prior_state: State::Open,
            idle_restart: false,
            has_seen_rtt: false,
        }
    }

    fn max_bandwidth(&self) -> Bandwidth {
        Bandwidth(self.bandwidth.get())
    }

    /// The bandwidth in use: the policer's, or the measured maximum.
    fn bandwidth(&self) -> Bandwidth {
        if self.policer.policed { self.policer.rate } else { self.max_bandwidth() }
    }

    /// Segments of a burst: about a millisecond at the pacing rate (Linux `bbr_tso_segs_goal`).
    fn burst(cx: &Context, w: &Window) -> u64 {
        let Pacing::Rate(rate) = w.pacing else { return 2 };
        let smallest = if rate < MIN_TSO_RATE { 1 } else { 2 };
        let millisecond = (rate.bits_per_s() / 8) >> 10;
        let largest = (MAX_BURST / cx.mss.get().max(1)).min(MAX_BURST_SEGMENTS);
        (millisecond / cx.wire.get().max(1)).min(largest).max(smallest)
    }

    /// Adds a budget for the end hosts and delayed acknowledgements (Linux `bbr_quantization_budget`).
    fn with_budget(&self, cx: &Context, w: &Window, segments: u64) -> u64 {
        let even = segments.saturating_add(3 * Self::burst(cx, w)).saturating_add(1) & !1;
        if self.mode == Mode::ProbeBw && self.phase == 0 { even.saturating_add(2) } else { even }
    }

    /// The flight for `gain` (Linux `bbr_inflight`).
    fn flight_for(&self, cx: &Context, w: &Window, gain: u64) -> u64 {
        self.with_budget(cx, w, self.max_bandwidth().bdp(self.min_rtt, gain))
    }

    /// Packets in flight when the next one is sent (Linux `bbr_packets_in_net_at_edt`).
    fn flight_at_departure(&self, cx: &Context, w: &Window, in_flight: u64) -> u64 {
        let flight = if self.pacing_gain > UNIT { in_flight + Self::burst(cx, w) } else { in_flight };
        if !self.switches.departure {
            return flight;
        }
        flight.saturating_sub(self.bandwidth().segments_in(cx.departure - cx.now))
    }

    fn save_cwnd(&mut self, w: &Window) {
        let undisturbed = !in_recovery(self.prior_state) && self.mode != Mode::ProbeRtt;
        self.prior_cwnd = if undisturbed { w.cwnd } else { self.prior_cwnd.max(w.cwnd) };
    }

    fn initial_pace(&mut self, cx: &Context, w: &mut Window) {
        self.has_seen_rtt = !cx.srtt.is_zero();
        let rtt = if self.has_seen_rtt { cx.srtt } else { NOMINAL_RTT };
        w.pacing =
            Pacing::Rate(Bandwidth::of(w.cwnd.max(1.0) as u64, rtt).pace(cx, HIGH_GAIN, PACED_PERCENT));
    }

    fn set_pace(&mut self, cx: &Context, w: &mut Window, gain: u64) {
        if !self.has_seen_rtt && !cx.srtt.is_zero() {
            self.initial_pace(cx, w);
        }
        let pace = self.bandwidth().pace(cx, gain, PACED_PERCENT);
        let faster = match w.pacing {
            Pacing::Unlimited => true,
            Pacing::Rate(current) => pace > current,
        };
        if self.full_pipe.reached || faster {
            w.pacing = Pacing::Rate(pace);
        }
    }

    fn next_phase(&mut self, now: Time) {
        self.phase = (self.phase + 1) % CYCLE.len();
        self.phase_since = now;
    }

    fn enter_probe_bw(&mut self, now: Time) {
        self.mode = Mode::ProbeBw;
        let draw = (u64::from(self.random.next_u32()) * CYCLE_RANDOM) >> 32;
        self.phase = CYCLE.len() - 1 - draw as usize;
        self.next_phase(now);
    }

    fn update_bandwidth(&mut self, cx: &Context, rate: &RateSample) {
        self.rounds.started = false;
        let Some(sample) = Bandwidth::sample(rate) else { return };
        self.rounds.update(rate.prior_delivered, cx.delivered);
        if self.rounds.started {
            self.packet_conservation = false;
        }
        let app_limited = self.app_limited(rate);
        self.sample_policer(cx, rate.lost > 0, app_limited);
        if !app_limited || sample >= self.max_bandwidth() {
            self.bandwidth.update(BANDWIDTH_ROUNDS, self.rounds.count, sample.0);
        }
    }

    /// Returns whether the sample is too low for a reason other than the path.
    fn app_limited(&self, rate: &RateSample) -> bool {
        let quiet =
            self.quiet.is_some_and(|(from, to)| rate.prior_delivered >= from && rate.prior_delivered <= to);
        rate.app_limited || quiet
    }

    fn sample_policer(&mut self, cx: &Context, lost: bool, app_limited: bool) {
        if !self.switches.policer {
            return;
        }
        if !self.policer.policed {
            self.policer.sample(cx, self.rounds.started, lost, app_limited);
        } else if self.mode == Mode::ProbeBw && self.rounds.started {
            self.policer.rounds += 1;
            if self.policer.rounds >= POLICED_ROUNDS {
                self.policer.reset(cx);
                self.enter_probe_bw(cx.now);
            }
        }
    }

    fn phase_is_over(&self, cx: &Context, w: &Window, ack: &Ack) -> bool {
        let full_length = cx.now - self.phase_since > self.min_rtt;
        if self.pacing_gain == UNIT {
            return full_length;
        }
        let flight = self.flight_at_departure(cx, w, ack.prior_in_flight);
        if self.pacing_gain > UNIT {
            full_length && (ack.rate.lost > 0 || flight >= self.flight_for(cx, w, self.pacing_gain))
        } else {
            full_length || flight <= self.flight_for(cx, w, UNIT)
        }
    }

    fn check_drain(&mut self, cx: &Context, w: &mut Window) {
        if self.mode == Mode::Startup && self.full_pipe.reached {
            self.mode = Mode::Drain;
            w.ssthresh = self.flight_for(cx, w, UNIT) as f64;
        }
        if self.mode == Mode::Drain
            && self.flight_at_departure(cx, w, cx.in_flight) <= self.flight_for(cx, w, UNIT)
        {
            self.enter_probe_bw(cx.now);
        }
    }

    fn update_min_rtt(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        let expired = cx.now > self.min_rtt_at + MIN_RTT_WINDOW;
        if let Some(rtt) = ack.rtt
            && (rtt <= self.min_rtt || self.min_rtt_void || (expired && !ack.rate.delayed))
        {
            (self.min_rtt, self.min_rtt_at, self.min_rtt_void) = (rtt, cx.now, false);
        }
        if self.switches.probe_rtt && expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.save_cwnd(w);
            self.mode = Mode::ProbeRtt;
            self.probe_rtt_until = None;
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
            } else if cx.in_flight <= MIN_CWND {
                self.probe_rtt_until = Some(cx.now + PROBE_RTT_TIME);
                self.probe_rtt_round_done = false;
                self.rounds.restart(cx.delivered);
            }
        }
        if ack.rate.delivered > 0 {
            self.idle_restart = false;
        }
    }

    fn check_probe_rtt_done(&mut self, cx: &Context, w: &mut Window) {
        if self.probe_rtt_until.is_some_and(|until| cx.now > until) {
            self.min_rtt_at = cx.now;
            w.cwnd = w.cwnd.max(self.prior_cwnd);
            if self.full_pipe.reached {
                self.enter_probe_bw(cx.now);
            } else {
                self.mode = Mode::Startup;
            }
        }
    }

    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw if self.policer.policed => (UNIT, CWND_GAIN),
            Mode::ProbeBw => (CYCLE[self.phase], CWND_GAIN),
            Mode::ProbeRtt => (UNIT, UNIT),
        };
    }

    /// Linux `bbr_set_cwnd`: grows by what was delivered, up to the target; conserves packets in the first round of
    /// recovery.
    fn set_cwnd(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        if ack.delivered > 0 {
            let mut cwnd = w.cwnd as u64;
            if ack.rate.lost > 0 {
                cwnd = cwnd.saturating_sub(ack.rate.lost).max(1);
            }
            let (was, is) = (in_recovery(self.prior_state), in_recovery(cx.state));
            if cx.state == State::Recovery && self.prior_state != State::Recovery {
                self.packet_conservation = true;
                self.rounds.restart(cx.delivered);
                cwnd = cx.in_flight.saturating_add(ack.delivered);
            } else if was && !is {
                cwnd = cwnd.max(self.prior_cwnd as u64);
                self.packet_conservation = false;
            }
            self.prior_state = cx.state;
            w.cwnd = if self.packet_conservation {
                cwnd.max(cx.in_flight.saturating_add(ack.delivered))
            } else {
                self.towards_target(cx, w, cwnd, ack.delivered)
            } as f64;
        }
        if self.mode == Mode::ProbeRtt {
            w.cwnd = w.cwnd.min(MIN_CWND as f64);
        }
    }

    fn towards_target(&self, cx: &Context, w: &Window, cwnd: u64, delivered: u64) -> u64 {
        let bandwidth = self.bandwidth();
        let mut target = bandwidth.bdp(self.min_rtt, self.cwnd_gain);
        if self.switches.aggregation && self.full_pipe.reached {
            target = target.saturating_add(self.aggregation.allowance(bandwidth));
        }
        let target = self.with_budget(cx, w, target);
        let grown = if self.full_pipe.reached {
            cwnd.saturating_add(delivered).min(target)
        } else if cwnd < target || cx.delivered < INITIAL_WINDOW {
            cwnd.saturating_add(delivered)
        } else {
            cwnd
        };
        grown.max(MIN_CWND)
    }
}

/// Linux compares states by order: recovery or worse.
fn in_recovery(state: State) -> bool {
    matches!(state, State::Recovery | State::Loss)
}

impl CongestionControl for Bbr1 {
    fn on_start(&mut self, cx: &Context, w: &mut Window) {
        (self.min_rtt, self.min_rtt_at) = (cx.min_rtt, cx.now);
        self.rounds.restart(cx.delivered);
        self.policer.begin_interval(cx);
        self.aggregation.restart(cx.now);
        self.initial_pace(cx, w);
    }

    fn on_congestion(&mut self, cx: &Context, w: &mut Window, event: &Congestion) -> LossResponse {
        if let Signal::Timeout { .. } = event.kind {
            self.save_cwnd(w);
            // A timeout ends a round, counts as loss, and lets STARTUP look for growth again.
            self.prior_state = State::Loss;
            self.full_pipe.forget_best();
            self.rounds.started = true;
            self.sample_policer(cx, true, false);
            w.cwnd = (cx.in_flight + 1) as f64;
        } else if event.first {
            self.save_cwnd(w);
        }
        LossResponse::Own
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        self.update_bandwidth(cx, &ack.rate);
        if self.switches.aggregation && ack.delivered > 0 && ack.rate.interval.is_some() {
            let (bandwidth, round) = (self.bandwidth(), self.rounds.started);
            self.aggregation.update(cx, w, bandwidth, round, ack.delivered);
        }
        if self.mode == Mode::ProbeBw && self.phase_is_over(cx, w, ack) {
            self.next_phase(cx.now);
        }
        if self.rounds.started && !self.app_limited(&ack.rate) {
            self.full_pipe.on_round(self.max_bandwidth());
        }
        self.check_drain(cx, w);
        self.update_min_rtt(cx, w, ack);
        self.update_gains();
        self.set_pace(cx, w, self.pacing_gain);
        self.set_cwnd(cx, w, ack);
    }

    fn owns_recovery(&self) -> bool {
        true
    }

    fn on_spurious(&mut self, cx: &Context, w: &mut Window, prior: &Window) {
        // The window returns with the next acknowledgement (Linux `bbr_undo_cwnd`).
        self.full_pipe.forget_best();
        self.full_pipe.rounds = 0;
        self.policer.reset(cx);
        w.ssthresh = w.ssthresh.max(prior.ssthresh);
    }

    fn on_idle_restart(&mut self, cx: &Context, w: &mut Window, _: Span) {
        self.idle_restart = true;
        self.aggregation.restart(cx.now);
        match self.mode {
            Mode::ProbeBw => self.set_pace(cx, w, UNIT),
            Mode::ProbeRtt => self.check_probe_rtt_done(cx, w),
            Mode::Startup | Mode::Drain => {}
        }
    }

    fn on_path_change(&mut self, cx: &Context, _: &mut Window) {
        (self.min_rtt_void, self.min_rtt_at) = (true, cx.now);
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("state", f64::from(self.mode as u8));
        show("phase", self.phase as f64);
        show("pacing_gain", self.pacing_gain as f64 / UNIT as f64);
        show("cwnd_gain", self.cwnd_gain as f64 / UNIT as f64);
        show("bw_segments_per_s", self.bandwidth().segments_per_s());
        if self.min_rtt != Span::MAX {
            show("min_rtt_s", self.min_rtt.as_secs_f64());
        }
        show("rounds", self.rounds.count as f64);
        show("policed", f64::from(u8::from(self.policer.policed)));
    }
}
#[cfg(test)]
mod tests;
