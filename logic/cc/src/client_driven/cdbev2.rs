//! CDBEv2: the receiver measures the bandwidth every 10 ms; the sender filters it, probes above it and drains below it.
//!
//! Source: Zhong 2020, chapter 7. Receiver half: section 7.2.1 ([`client`]). Filter: Eqs. 7.5 to 7.9; DRAIN and GROW: Eqs. 7.23 to
//! 7.25 ([`filter`]). Pace and window: Eqs. 7.2 to 7.4. End of STARTUP: Algorithm 7.2. State table: [`machine`].
//!
//! | state | number | pacing gain | window gain | leaves when |
//! |---|---|---|---|---|
//! | STARTUP | 0 | 2.175 | 2.175 | recovery, or 5 ACKs with a growing RTT and a delay above either threshold, or a plateau |
//! | DRAIN | 1 | 0.75 | 2 | in flight <= BDP + 2 segments |
//! | STEADY | 2 | 1 | 2 | a random 2 to 6 RTT_min |
//! | GROW | 3 | 1.25 | 2 | in flight > max(in flight at entry + C, 125 % of the BDP), or 8 RTT_min |
//! | deep DRAIN, first | 4 | 0.75 | 2 | in flight <= 75 % of the BDP + 2 segments, or 5 RTTs at their minimum and none below it |
//! | STEADY between | 5 | 1 | 2 | 1 RTT_min; an RTT at its minimum makes it an ordinary STEADY |
//! | deep DRAIN, second | 6 | 0.75 | 2 | as the first |
//!
//! The bandwidth in use is the cycle's largest report in STARTUP, GROW and loss recovery, and the filtered one otherwise. A
//! deep DRAIN replaces a DRAIN when no RTT has been at its minimum for five GROWs or 2.5 s. RTTs are compared in whole
//! milliseconds, the thesis's clock.
//!
//! Ours, where the source is silent or cannot be meant as printed: STARTUP also ends on a plateau (three rounds in which the
//! largest report grew by less than a quarter; only rounds with a report and with data to send count) and GROW after a time
//! limit; windows are at least 4 segments; minBW bounds the pace, not the reports; reports below the filtered bandwidth are
//! ignored while the application has nothing to send; RTT_min comes from full segments only, and is the connection's until
//! there is one; without timestamps, delays are RTTs above RTT_min; Eq. 7.24 adds C to the data in flight when GROW began;
//! five minimal RTTs are counted anew in each deep DRAIN; and for the reference of DRAIN's target see [`DrainReference`].
//! Pace and window count payload as the reports do: the endpoint's pace is raised by the share of the headers.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use ranpace_units::{Rate, Span, Time};

use crate::client_driven::guard;
use crate::entry::{Control, Entry, Transport};
use crate::interface::{
    Ack, Congestion, CongestionControl, Context, LossResponse, Pacing, ReceiverHalf, ReceiverReport, Sample,
    Signal, State, Window,
};
use crate::options::{OptionError, Options};

mod client;
pub mod filter;
mod floor;
pub mod machine;
pub mod settings;
#[cfg(test)]
mod tests;

use client::{Client, Estimator};
use floor::Floor;
use machine::{Mode, TransitionInputs};
use settings::{OneWay, Recovery, Settings};

pub use settings::DrainReference;

/// Entry in `ranpace list cc`.
pub const ENTRY: Entry = Entry {
    name: "cdbev2",
    about: "paces at the bandwidth that the receiver measures every 10 ms, probes and drains around it",
    source: "Zhong 2020, chapter 7",
    options: settings::OPTIONS,
    transport: Transport::Tcp,
    loss_based: false,
    build: &build,
    receiver: Some(build_receiver),
};

fn build(options: &mut Options, seed: u64) -> Result<Control, OptionError> {
    let format = settings::format(options)?;
    guard::build(Cdbev2::new(Settings::parse(options)?, seed), format, options)
}

fn build_receiver(options: &mut Options) -> Result<Option<Box<dyn ReceiverHalf>>, OptionError> {
    let estimator =
        options.choice("est", &[("boundary", Estimator::Boundary), ("literal", Estimator::Literal)])?;
    Ok(Some(Box::new(Client::new(
        settings::format(options)?,
        estimator,
        settings::window(options)?,
        settings::every(options)?,
    ))))
}

/// Bandwidth before the first report, in bit/s (section 7.2.3, Table 7.1).
const INITIAL_BW: f64 = 1e6;
/// The pace never corresponds to less bandwidth than this, in bit/s (Eq. 7.4: minBW).
const MIN_BW: f64 = 300e3;
/// ACKs above a threshold that end STARTUP (Algorithm 7.2).
const STARTUP_COUNT: u32 = 5;
/// Delay above the smallest one allowed by Thres1, in smallest delays (Algorithm 7.2).
const THRES1: u64 = 2;
/// Queued data allowed by Thres2, in bits (Algorithm 7.2: Q_Thres).
const THRES2_BITS: f64 = 1e6;
/// Rounds without growth that end STARTUP. Ours.
const PLATEAU_ROUNDS: u32 = 3;
/// Growth of the largest report that keeps STARTUP going. Ours, as BBR's.
const PLATEAU_GROWTH: f64 = 1.25;
/// Time without a minimal RTT after which a deep DRAIN is due (section 7.2.3).
const DEEP_AFTER_TIME: Span = Span::from_millis(2500);
/// Consecutive minimal RTTs that end a deep DRAIN (section 7.2.3: FQM).
const FAIR_COUNT: u32 = 5;
/// STEADY's shortest and longest time in minimal RTTs (section 7.2.3).
const STEADY_RTTS: (f64, f64) = (2.0, 6.0);
/// Smallest window in segments. Ours.
const MIN_CWND: f64 = 4.0;

/// Measurements of an acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// Whether the RTT exceeds the previous one.
    growing: bool,
    /// Delay above the smallest known one.
    excess: Span,
}

/// The sender.
#[derive(Clone, Debug)]
pub struct Cdbev2 {
    settings: Settings,
    random: Xoshiro256PlusPlus,
    mode: Mode,
    since: Time,

    /// In bit/s: BW(t) of Eq. 7.5, the cycle's largest report, the reference of DRAIN's target, BW(t) when GROW began.
    bw_filt: f64,
    bw_max: f64,
    /// BW_max of the previous cycle.
    bw_last: f64,
    bw_ref: f64,
    bw_before_grow: f64,
    /// Weight of a report, and the RTT it was computed for.
    weight: (f64, Span),
    pending: Option<f64>,

    /// Smallest RTT of full segments; [`Span::MAX`] before the first.
    rtt_min: Span,
    one_way_min: Span,
    floor: Floor,
    previous_rtt: Span,
    seen: Option<Seen>,

    /// ACKs above the thresholds in STARTUP.
    above: [u32; 2],
    round_began: Time,
    round_reported: bool,
    round_bw: f64,
    flat_rounds: u32,

    steady_for: Span,
    /// Bytes in flight when GROW began.
    in_flight_before_grow: f64,
    /// GROWs since the last minimal RTT, and when that was.
    grows: u32,
    last_hit: Time,
    /// Consecutive minimal RTTs in a deep DRAIN, and whether there was one in the pause.
    fair_hits: u32,
    paused_hit: bool,
    /// For series.
    deep_drains: u64,
    hits: u64,
}

impl Cdbev2 {
    fn new(settings: Settings, seed: u64) -> Self {
        Self {
            settings,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            mode: Mode::Startup,
            since: Time::ZERO,
            bw_filt: INITIAL_BW,
            bw_max: INITIAL_BW,
            bw_last: INITIAL_BW,
            bw_ref: INITIAL_BW,
            bw_before_grow: INITIAL_BW,
            weight: (0.0, Span::MAX),
            pending: None,
            rtt_min: Span::MAX,
            one_way_min: Span::MAX,
            floor: Floor::default(),
            previous_rtt: Span::MAX,
            seen: None,
            above: [0; 2],
            round_began: Time::ZERO,
            round_reported: false,
            round_bw: INITIAL_BW,
            flat_rounds: 0,
            steady_for: Span::ZERO,
            in_flight_before_grow: 0.0,
            grows: 0,
            last_hit: Time::ZERO,
            fair_hits: 0,
            paused_hit: false,
            deep_drains: 0,
            hits: 0,
        }
    }

    /// The smallest RTT; [`Span::MAX`] before the first.
    fn rtt_min(&self, cx: &Context) -> Span {
        if self.rtt_min == Span::MAX { cx.min_rtt } else { self.rtt_min }
    }

    /// Bandwidth in use, in bit/s (section 7.2.2).
    fn bandwidth(&self, state: State) -> f64 {
        let recovering = matches!(state, State::Recovery | State::Loss);
        if matches!(self.mode, Mode::Startup | Mode::Grow) {
            return self.bw_max.max(self.bw_filt);
        }
        match self.settings.recovery {
            Recovery::Running if recovering => self.bw_max.max(self.bw_filt),
            Recovery::Last if recovering => self.bw_last.max(self.bw_filt),
            Recovery::Running | Recovery::Assigned | Recovery::Last => self.bw_filt,
        }
    }

    /// The reference bandwidth of DRAIN.
    fn reference(&self) -> f64 {
        match self.settings.reference {
            DrainReference::Live => self.bw_max,
            DrainReference::Filtered => self.bw_filt,
            DrainReference::Robust if self.floor.clear().is_some() => self.bw_max,
            DrainReference::Pre | DrainReference::Past | DrainReference::Robust => self.bw_ref,
        }
    }

    /// The RTT used by DRAIN and GROW.
    fn path_rtt(&self, rtt_min: Span) -> Span {
        match self.settings.reference {
            DrainReference::Robust => self.floor.clear().map_or(rtt_min, |floor| floor.max(rtt_min)),
            _ => rtt_min,
        }
    }

    /// Thres1 and Thres2 (Algorithm 7.2).
    fn thresholds(&self, rtt_min: Span) -> [Span; 2] {
        let base = match self.settings.one_way {
            _ if self.settings.thres1_rtt => rtt_min,
            OneWay::True if self.one_way_min != Span::MAX => self.one_way_min,
            OneWay::True | OneWay::Pinned => rtt_min / 2,
        };
        [base * THRES1, Span::from_secs_f64(THRES2_BITS / self.bw_max)]
    }

    /// Processes a report (Algorithm 7.1 and Eq. 7.5).
    fn take_report(&mut self, cx: &Context, report: f64) {
        self.round_reported = true;
        if cx.app_limited && report < self.bw_filt {
            return;
        }
        self.bw_max = self.bw_max.max(report);
        if self.mode == Mode::Startup {
            self.bw_filt = self.bw_max;
            return;
        }
        let recovering = matches!(cx.state, State::Recovery | State::Loss);
        if recovering && self.settings.recovery == Recovery::Assigned {
            self.bw_filt = self.bw_max;
            return;
        }
        let rtt_min = self.rtt_min(cx);
        if self.weight.1 != rtt_min {
            let weight =
                filter::filter_weight(rtt_min, self.settings.interval, self.settings.k, filter::THRES);
            self.weight = (weight, rtt_min);
        }
        self.bw_filt = filter::filtered(self.bw_filt, report, self.weight.0);
    }

    /// Processes an RTT of a full segment: updates RTT_min and counts minimal RTTs.
    fn take_full_rtt(&mut self, cx: &Context, rtt: Span) {
        self.floor.take(rtt);
        let record = self.rtt_min;
        self.rtt_min = record.min(rtt);
        // The first RTT sets the record, but does not undercut one.
        let undercut = record != Span::MAX && millis(rtt) < millis(record);
        let hit = record == Span::MAX || millis(rtt) <= millis(record);
        if hit {
            self.hits += 1;
        }
        match self.mode {
            Mode::DeepFirst | Mode::DeepSecond if undercut => self.fair_hits = 0,
            Mode::DeepFirst | Mode::DeepSecond => self.fair_hits += u32::from(hit),
            Mode::Pause => self.paused_hit |= hit,
            Mode::Startup | Mode::Drain | Mode::Steady | Mode::Grow if hit => {
                (self.grows, self.last_hit) = (0, cx.now);
            }
            Mode::Startup | Mode::Drain | Mode::Steady | Mode::Grow => {}
        }
    }

    /// Returns whether STARTUP ends, by Algorithm 7.2 or the plateau.
    fn startup_over(&mut self, cx: &Context, rtt_min: Span) -> bool {
        if let Some(seen) = self.seen
            && seen.growing
        {
            let thresholds = self.thresholds(rtt_min);
            for (count, threshold) in self.above.iter_mut().zip(thresholds) {
                *count += u32::from(seen.excess > threshold);
            }
        }
        let rtt = if self.previous_rtt == Span::MAX { cx.srtt } else { self.previous_rtt };
        if cx.now - self.round_began >= rtt && self.round_reported {
            if self.bw_max >= PLATEAU_GROWTH * self.round_bw {
                self.flat_rounds = 0;
            } else if !cx.app_limited {
                self.flat_rounds += 1;
            }
            (self.round_began, self.round_reported, self.round_bw) = (cx.now, false, self.bw_max);
        }
        matches!(cx.state, State::Recovery | State::Loss)
            || self.above.iter().any(|count| *count >= STARTUP_COUNT)
            || self.flat_rounds >= PLATEAU_ROUNDS
    }

    fn drain_limit(&self, rtt: Span, mss: f64) -> f64 {
        filter::drain_limit(self.mode.is_deep(), self.reference(), rtt, mss)
    }

    fn grow_limit(&self, rtt: Span) -> f64 {
        self.settings.compensation.grow_limit(self.in_flight_before_grow, self.bw_max, rtt)
    }

    fn facts(&mut self, cx: &Context, rtt_min: Span, in_flight: f64) -> TransitionInputs {
        let path_rtt = self.path_rtt(rtt_min);
        TransitionInputs {
            since: cx.now - self.since,
            rtt_min,
            steady_for: self.steady_for,
            in_flight,
            drain_limit: self.drain_limit(path_rtt, cx.mss.as_f64()),
            grow_limit: self.grow_limit(path_rtt),
            startup_over: self.mode == Mode::Startup && self.startup_over(cx, rtt_min),
            deep: self.settings.deep,
            deep_due: self.grows >= self.settings.deep_after || cx.now - self.last_hit >= DEEP_AFTER_TIME,
            fair_quit: self.settings.fair_quit && self.fair_hits >= FAIR_COUNT,
            paused_hit: self.paused_hit,
        }
    }

    fn enter(&mut self, cx: &Context, mode: Mode, rtt_min: Span, in_flight: f64) {
        let from = core::mem::replace(&mut self.mode, mode);
        self.since = cx.now;
        match mode {
            Mode::Drain | Mode::DeepFirst | Mode::DeepSecond => {
                self.bw_ref = match (self.settings.reference, from) {
                    (DrainReference::Past, _) | (_, Mode::Startup) => self.bw_max,
                    (_, Mode::Grow) => self.bw_before_grow,
                    _ => self.bw_filt,
                };
                self.bw_last = self.bw_max;
                self.bw_max = self.bw_filt;
                self.fair_hits = 0;
                if mode == Mode::DeepFirst {
                    self.deep_drains += 1;
                    self.floor.begin_period();
                }
            }
            Mode::Pause => self.paused_hit = false,
            Mode::Steady => {
                let (low, high) = STEADY_RTTS;
                // 53 random bits make a number in [0, 1).
                let random = (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
                self.steady_for = rtt_min.mul_f64(low + (high - low) * random);
                if from != Mode::Drain {
                    (self.grows, self.last_hit) = (0, cx.now); // a deep DRAIN is over
                }
            }
            Mode::Grow => {
                self.grows = self.grows.saturating_add(1);
                (self.in_flight_before_grow, self.bw_before_grow) = (in_flight, self.bw_filt);
            }
            Mode::Startup => {}
        }
    }

    /// Sets the pace of Eq. 7.2 for payload.
    fn set_pace(&self, cx: &Context, w: &mut Window) {
        let bw = self.mode.pacing_gain() * self.bandwidth(cx.state).max(MIN_BW);
        w.pacing = Pacing::Rate(Rate::from_bits_per_s_f64(bw * cx.wire.as_f64() / cx.mss.as_f64()));
    }
}

/// A time as the thesis's millisecond clock shows it.
fn millis(span: Span) -> u64 {
    span.as_nanos().saturating_add(500_000) / 1_000_000
}

impl CongestionControl for Cdbev2 {
    fn on_start(&mut self, cx: &Context, w: &mut Window) {
        (self.since, self.last_hit, self.round_began) = (cx.now, cx.now, cx.now);
        self.set_pace(cx, w);
    }

    fn on_report(&mut self, cx: &Context, _: &mut Window, report: &ReceiverReport) {
        // It is processed with the RTT of its acknowledgement, which is delivered next.
        if let Some(rate) = self.settings.format.decode(report)
            && let Some(earlier) = self.pending.replace(rate.as_f64())
        {
            self.take_report(cx, earlier);
        }
    }

    fn on_sample(&mut self, cx: &Context, _: &mut Window, sample: &Sample) {
        let Some(rtt) = sample.rtt else { return };
        if sample.delivered > 0 && sample.bytes == cx.mss * sample.delivered {
            self.take_full_rtt(cx, rtt);
        }
        let excess = match sample.one_way {
            Some(delay) => {
                self.one_way_min = self.one_way_min.min(delay);
                Span::from_millis(millis(delay).saturating_sub(millis(self.one_way_min)))
            }
            None => rtt - self.rtt_min(cx),
        };
        self.seen = Some(Seen { growing: rtt > self.previous_rtt, excess });
        self.previous_rtt = rtt;
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, _: &Ack) {
        if let Some(report) = self.pending.take() {
            self.take_report(cx, report);
        }
        let rtt_min = self.rtt_min(cx);
        if rtt_min == Span::MAX {
            return; // nothing has been measured: the initial window stays
        }
        let in_flight = cx.in_flight as f64 * cx.mss.as_f64();
        let facts = self.facts(cx, rtt_min, in_flight);
        let next = machine::next(self.mode, &facts);
        if next != self.mode {
            self.enter(cx, next, rtt_min, in_flight);
        }
        self.seen = None;
        self.set_pace(cx, w);
        // Eq. 7.3.
        let window = self.mode.cwnd_gain() * filter::bdp(self.bandwidth(cx.state), rtt_min);
        w.cwnd = (window / cx.mss.as_f64()).max(MIN_CWND);
    }

    fn on_congestion(&mut self, cx: &Context, w: &mut Window, event: &Congestion) -> LossResponse {
        // A timeout leaves the path empty until the next acknowledgement; other losses affect at most the bandwidth in use.
        if let Signal::Timeout { .. } = event.kind {
            w.cwnd = (cx.in_flight + 1) as f64;
        }
        LossResponse::Own
    }

    fn owns_recovery(&self) -> bool {
        true
    }

    fn on_spurious(&mut self, _: &Context, _: &mut Window, _: &Window) {}

    fn on_path_change(&mut self, cx: &Context, _: &mut Window) {
        (self.rtt_min, self.one_way_min, self.previous_rtt) = (Span::MAX, Span::MAX, Span::MAX);
        self.floor = Floor::default();
        (self.grows, self.last_hit) = (0, cx.now);
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("state", f64::from(self.mode as u8));
        show("pacing_gain", self.mode.pacing_gain());
        show("cwnd_gain", self.mode.cwnd_gain());
        show("bw_bit_s", self.bandwidth(State::Open));
        show("bw_filt_bit_s", self.bw_filt);
        show("bw_max_bit_s", self.bw_max);
        show("bw_ref_bit_s", self.reference());
        show("deep_drains", self.deep_drains as f64);
        show("hits", self.hits as f64);
        if self.rtt_min == Span::MAX {
            return;
        }
        let [thres1, thres2] = self.thresholds(self.rtt_min);
        show("min_rtt_s", self.rtt_min.as_secs_f64());
        show("thres1_s", thres1.as_secs_f64());
        show("thres2_s", thres2.as_secs_f64());
        let path_rtt = self.path_rtt(self.rtt_min);
        show("path_rtt_s", path_rtt.as_secs_f64());
        show("drain_target_bytes", self.drain_limit(path_rtt, 0.0));
        show("grow_limit_bytes", self.grow_limit(path_rtt));
    }
}
