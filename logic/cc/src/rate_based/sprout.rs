//! Sprout: the receiver infers the link's rate and makes a cautious forecast of what it will deliver.
//!
//! Source: Winstein, Sivaraman, Balakrishnan, "Stochastic Forecasts Achieve High Throughput and Low Delay over
//! Cellular Networks", NSDI 2013, section 3; constants as in the published code (`keithw/sprout`).
//!
//! Receiver, every [`TICK`]: the packets of a tick are a Poisson count with a hidden rate, one of [`BINS`] from 0 to
//! [`HIGHEST_RATE`] packets per second, which follows a Brownian motion ([`WANDERING`]); it escapes from an outage (rate 0)
//! at rate [`ESCAPE`]. The belief is evolved by a tick and weighted with the likelihood of the count; it yields the 5th
//! percentile of the cumulative deliveries after each of the next [`HORIZON`] ticks. Ticks in which the sender had announced
//! silence, and was silent, are not weighted in (paper).
//!
//! Sender: the packets unaccounted for (sent, less received or lost according to the report, less what the forecast expects
//! to have drained by the time a packet sent now arrives) are taken as the queue that this packet finds; it sends until that
//! equals what the forecast drains in the next [`TARGET`] ticks, 100 ms (paper).
//!
//! Ours, where sources differ or are silent: a packet sent now finds the queue as of one smallest RTT after the report was
//! sent ([`Horizon::Rtt`]; the published code uses one tick, which closes the window on paths longer than what the forecast
//! drains in 120 ms); the forecast drained by tick k counts once (the published code subtracts the cumulative count at every
//! tick); at least one packet may always be in flight, which serves as the heartbeat; packets represent bytes, and full
//! packets are the unit of the forecast; bin 0 keeps the whole probability of no escape, as in the paper, and mass that moves
//! below zero or above the highest rate is dropped, as in the code; one report is sent per tick; before the first report, as
//! much may be sent as the receiver's prior would forecast.

use ranpace_units::{Span, Time};

use crate::entry::{Control, Entry, Transport};
use crate::interface::{
    Ack, Congestion, CongestionControl, Context, LossResponse, Pacing, Received, ReceiverHalf,
    ReceiverReport, Window,
};
use crate::options::{OptionError, OptionInfo, Options};

/// Entry in `ranpace list cc`.
pub const ENTRY: Entry = Entry {
    name: "sprout",
    about: "sends what the receiver's cautious forecast will drain in 100 ms",
    source: "Winstein et al., NSDI 2013",
    options: &[
        OptionInfo {
            key: "confidence",
            values: "50 to 99 [95]",
            about: "percentage of cases in which the link delivers at least the forecast",
        },
        OptionInfo {
            key: "lead",
            values: "rtt, tick",
            about: "how far ahead of the report the queue is looked at: the smallest RTT, or 20 ms as published",
        },
    ],
    transport: Transport::Datagram,
    loss_based: false,
    build: &build,
    receiver: Some(build_receiver),
};

fn build(options: &mut Options, _: u64) -> Result<Control, OptionError> {
    confidence(options)?;
    let lead = lead(options)?;
    Ok(Control::Other(Box::new(Sprout { lead, forecast: None, allowance: 0, next_tick: None })))
}

fn build_receiver(options: &mut Options) -> Result<Option<Box<dyn ReceiverHalf>>, OptionError> {
    lead(options)?; // the sender's
    Ok(Some(Box::new(SproutReceiver::new(1.0 - confidence(options)? / 100.0))))
}

fn lead(options: &mut Options) -> Result<Horizon, OptionError> {
    options.choice("lead", &[("rtt", Horizon::Rtt), ("tick", Horizon::Tick)])
}

fn confidence(options: &mut Options) -> Result<f64, OptionError> {
    options.number("confidence", 50.0, 99.0, 95.0)
}

/// Length of a tick (paper).
const TICK: Span = Span::from_millis(20);
/// The same in seconds.
const TICK_S: f64 = 0.02;
/// Rates that the belief distinguishes (paper).
const BINS: usize = 256;
/// The highest, in packets per second (paper).
const HIGHEST_RATE: f64 = 1000.0;
/// Brownian motion of the rate, in packets per second per square root of a second (paper: sigma).
const WANDERING: f64 = 200.0;
/// Rate of escape from an outage, per second (paper: lambda_z).
const ESCAPE: f64 = 1.0;
/// Ticks that a forecast covers (paper).
const HORIZON: usize = 8;
/// Ticks within which a packet sent now should leave the queue: 100 ms (paper).
const TARGET: usize = 5;
/// Least number of ticks counted as passed when a forecast arrives (published code), for its travel time and that of new
/// packets.
const LEAD: usize = 1;
/// Largest number of such ticks: a second. Ours.
const MOST_LEAD: usize = 50;
/// Most packets per tick in forecasts (published code); the mean at the highest rate is 20.
const MOST_PER_TICK: usize = 30;
/// Larger counts in a tick are clamped to this. Ours: their likelihoods would all underflow.
const MOST_OBSERVED: f64 = 100.0;
/// The kernel of the motion is truncated at this many standard deviations (published code).
const KERNEL_DEVIATIONS: f64 = 5.0;
/// Bytes of a full packet on the wire, the unit of rates.
const FULL_PACKET: f64 = 1500.0;
/// Cumulative forecast of the prior (all rates equally likely), in packets; pinned by a test.
const PRIOR_FORECAST: [u16; HORIZON] = [0, 1, 3, 4, 5, 6, 8, 9];

/// The rate of a bin in packets per second.
fn rate_of(bin: usize) -> f64 {
    HIGHEST_RATE * bin as f64 / (BINS - 1) as f64
}

/// One probability per bin.
type Belief = [f64; BINS];

/// Motion of the rate in a tick: cell masses of a normal distribution, by distance in bins.
#[derive(Clone, Debug)]
struct Wandering {
    kernel: Vec<f64>,
    /// Probability of leaving an outage in a tick.
    escape: f64,
}

impl Wandering {
    fn new() -> Self {
        let width = HIGHEST_RATE / (BINS - 1) as f64;
        let deviation = WANDERING * TICK_S.sqrt();
        let reach = (KERNEL_DEVIATIONS * deviation / width) as usize;
        let cumulative = |x: f64| 0.5 * libm::erfc(-x / (deviation * core::f64::consts::SQRT_2));
        let cell = |distance: usize| {
            let x = distance as f64 * width;
            cumulative(x + width / 2.0) - cumulative(x - width / 2.0)
        };
        Self { kernel: (0..=reach).map(cell).collect(), escape: 1.0 - libm::exp(-TICK_S * ESCAPE) }
    }

    fn mass(&self, from: usize, to: usize) -> f64 {
        let moved = self.kernel.get(from.abs_diff(to)).copied().unwrap_or(0.0);
        if from > 0 {
            moved
        } else if to == 0 {
            1.0 - self.escape
        } else {
            // Escapes go upwards, with the kernel's upper half.
            self.escape * 2.0 * moved
        }
    }

    /// Bins within the kernel's reach.
    fn near(&self, bin: usize) -> core::ops::Range<usize> {
        (bin + 1).saturating_sub(self.kernel.len())..(bin + self.kernel.len()).min(BINS)
    }

    /// The belief one tick later, up to a factor.
    fn evolve(&self, belief: &Belief) -> Belief {
        let mut next = [0.0; BINS];
        for (from, p) in belief.iter().enumerate().skip(1) {
            for to in self.near(from) {
                next[to] += p * self.kernel[from.abs_diff(to)];
            }
        }
        for to in self.near(0) {
            next[to] += belief[0] * self.mass(0, to);
        }
        next
    }

    /// For each starting bin, the expectation one tick later of a value that depends on the bin.
    fn forecast_packets(&self, figure: &[f32]) -> Vec<f32> {
        (0..BINS)
            .map(|from| {
                let (mut sum, mut total) = (0.0, 0.0);
                for to in self.near(from) {
                    let mass = self.mass(from, to) as f32;
                    sum += mass * figure[to];
                    total += mass;
                }
                sum / total
            })
            .collect()
    }
}

/// For each horizon and each count, by starting bin: the probability of at most that many deliveries.
#[derive(Clone, Debug)]
struct Forecaster {
    at_most: Vec<Vec<[f32; BINS]>>,
}

impl Forecaster {
    fn new(wandering: &Wandering) -> Self {
        // Counts of one tick by bin, then moved back tick by tick: the bin is where the forecast starts.
        let mut tick: Vec<Vec<f32>> = (0..=MOST_PER_TICK)
            .map(|count| (0..BINS).map(|bin| poisson(rate_of(bin) * TICK_S, count) as f32).collect())
            .collect();
        let mut exactly: Vec<[f32; BINS]> = vec![[1.0; BINS]];
        let mut at_most = Vec::with_capacity(HORIZON);
        for horizon in 0..HORIZON {
            if horizon > 0 {
                tick = tick.iter().map(|figure| wandering.forecast_packets(figure)).collect();
            }
            // Given the starting bin, the ticks of a forecast are independent (published code).
            let mut sum = vec![[0.0; BINS]; exactly.len() + MOST_PER_TICK];
            for (before, p) in exactly.iter().enumerate() {
                for (count, q) in tick.iter().enumerate() {
                    for ((sum, p), q) in sum[before + count].iter_mut().zip(p).zip(q) {
                        *sum += p * q;
                    }
                }
            }
            exactly = sum;
            let mut total = [0.0; BINS];
            at_most.push(
                exactly
                    .iter()
                    .map(|p| {
                        total.iter_mut().zip(p).for_each(|(total, p)| *total += p);
                        total
                    })
                    .collect(),
            );
        }
        Self { at_most }
    }

    /// The smallest counts that are not exceeded with at least probability `quantile`, after each tick.
    fn forecast(&self, belief: &[f32; BINS], quantile: f64) -> [u16; HORIZON] {
        core::array::from_fn(|tick| {
            let table = &self.at_most[tick];
            let reached = |row: &[f32; BINS]| {
                f64::from(row.iter().zip(belief).map(|(p, belief)| p * belief).sum::<f32>()) >= quantile
            };
            table.partition_point(|row| !reached(row)) as u16 // at most 240
        })
    }
}

/// Poisson probability of `count` for the mean `mean`.
fn poisson(mean: f64, count: usize) -> f64 {
    (1..=count).fold(libm::exp(-mean), |p, n| p * mean / n as f64)
}

/// Constant tables, built when the first packet arrives.
#[derive(Clone, Debug)]
struct Tables {
    wandering: Wandering,
    forecaster: Forecaster,
    /// Logarithms of the rates per tick.
    logarithms: Belief,
}

impl Tables {
    fn new() -> Self {
        let wandering = Wandering::new();
        let forecaster = Forecaster::new(&wandering);
        let logarithms = core::array::from_fn(|bin| libm::log(rate_of(bin) * TICK_S));
        Self { wandering, forecaster, logarithms }
    }

    /// Weights the belief with the Poisson likelihood of `count` and normalises it.
    fn observe(&self, belief: &mut Belief, count: f64) {
        let log_likelihood = |bin: usize| {
            let mean = rate_of(bin) * TICK_S;
            // 0^0 is 1; other counts rule out an outage.
            if count == 0.0 { -mean } else { count * self.logarithms[bin] - mean }
        };
        // Dividing by a factor common to all bins makes the largest likelihood 1, so that the sum cannot vanish.
        let best = (count / TICK_S / HIGHEST_RATE).min(1.0) * (BINS - 1) as f64;
        let largest = log_likelihood((best + 0.5) as usize);
        for (bin, p) in belief.iter_mut().enumerate() {
            *p *= libm::exp(log_likelihood(bin) - largest);
        }
        normalise(belief);
    }
}

/// Normalises the sum to one. A belief that has vanished (it was certain of another rate) is reset to uniform.
fn normalise(belief: &mut Belief) {
    let sum: f64 = belief.iter().sum();
    if sum > 1e-250 {
        belief.iter_mut().for_each(|p| *p /= sum);
    } else {
        *belief = [1.0 / BINS as f64; BINS];
    }
}

/// The receiver's half.
#[derive(Clone, Debug)]
pub struct SproutReceiver {
    quantile: f64,
    /// `None` until the first packet.
    tables: Option<Box<Tables>>,
    belief: Box<Belief>,
    /// End of the current tick.
    tick_ends: Option<Time>,
    /// Packets of the current tick; partial packets count as fractions.
    count: f64,
    /// The sender has announced silence until then.
    silent_until: Time,
    /// Packets received or lost.
    accounted: u64,
    ticks: u32,
    /// Whether a tick has ended and its report has not been sent.
    due: bool,
}

impl SproutReceiver {
    fn new(quantile: f64) -> Self {
        Self {
            quantile,
            tables: None,
            belief: Box::new([1.0 / BINS as f64; BINS]),
            tick_ends: None,
            count: 0.0,
            silent_until: Time::ZERO,
            accounted: 0,
            ticks: 0,
            due: false,
        }
    }

    fn tick(&mut self, end: Time) {
        let Some(tables) = &self.tables else { return };
        *self.belief = tables.wandering.evolve(&self.belief);
        let silent = end - TICK < self.silent_until;
        if self.count > 0.0 || !silent {
            // A partial packet counts as one; otherwise the count is rounded to the nearest (published code).
            let count = if self.count > 0.0 { (self.count + 0.5).floor().max(1.0) } else { 0.0 };
            tables.observe(&mut self.belief, count.min(MOST_OBSERVED));
        } else {
            normalise(&mut self.belief);
        }
        self.count = 0.0;
        self.ticks = self.ticks.wrapping_add(1);
        self.due = true;
    }

    fn forecast(&self) -> Option<[u16; HORIZON]> {
        let belief = core::array::from_fn(|bin| self.belief[bin] as f32);
        Some(self.tables.as_ref()?.forecaster.forecast(&belief, self.quantile))
    }
}

impl ReceiverHalf for SproutReceiver {
    fn on_data(&mut self, received: &Received) {
        if self.tables.is_none() {
            self.tables = Some(Box::new(Tables::new()));
            self.tick_ends = Some(received.now + TICK);
        }
        self.on_deadline(received.now);
        self.count += received.wire.as_f64() / FULL_PACKET;
        self.silent_until = self.silent_until.max(received.now + received.time_to_next);
        if let Some(number) = received.number {
            self.accounted = self.accounted.max(number.saturating_add(1));
        } else {
            self.accounted += 1;
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        self.tick_ends
    }

    fn on_deadline(&mut self, now: Time) -> bool {
        let Some(mut end) = self.tick_ends else { return false };
        let begun = self.ticks;
        // After a long pause the belief has lost all information anyway.
        if now > end + TICK * 500 {
            end = now - TICK * 500;
        }
        while end <= now {
            self.tick(end);
            end += TICK;
        }
        self.tick_ends = Some(end);
        self.ticks != begun
    }

    fn report(&mut self, _: Time) -> Option<ReceiverReport> {
        if !core::mem::take(&mut self.due) {
            return None;
        }
        let mut bytes = [0; ReceiverReport::CAPACITY];
        for (place, count) in bytes.chunks_exact_mut(2).zip(self.forecast()?) {
            place.copy_from_slice(&count.to_be_bytes());
        }
        bytes[16..24].copy_from_slice(&self.accounted.to_be_bytes());
        bytes[24..].copy_from_slice(&self.ticks.to_be_bytes());
        ReceiverReport::new(&bytes)
    }
}

/// A forecast received by the sender.
#[derive(Clone, Copy, Debug)]
struct Forecast {
    /// When it arrived.
    at: Time,
    /// The receiver's tick number.
    tick: u32,
    /// Packets received or lost by then.
    accounted: u64,
    /// Cumulative deliveries after each tick.
    counts: [u16; HORIZON],
}

impl Forecast {
    fn parse(now: Time, report: &ReceiverReport) -> Option<Self> {
        let bytes = report.as_bytes();
        let mut counts = [0; HORIZON];
        for (count, pair) in counts.iter_mut().zip(bytes.chunks_exact(2)) {
            *count = u16::from_be_bytes(pair.try_into().ok()?);
        }
        Some(Self {
            at: now,
            tick: u32::from_be_bytes(bytes.get(24..28)?.try_into().ok()?),
            accounted: u64::from_be_bytes(bytes.get(16..24)?.try_into().ok()?),
            counts,
        })
        .filter(|forecast| forecast.counts.is_sorted())
    }

    /// Cumulative deliveries after `tick` ticks. Nothing is counted beyond the horizon, except for the ticks by which `lead`
    /// exceeds [`LEAD`]: for these the forecast is extended at the rate of its last [`TARGET`] ticks.
    fn after(&self, tick: usize, lead: usize) -> u64 {
        let known = match tick.min(HORIZON) {
            0 => 0,
            tick => u64::from(self.counts[tick - 1]),
        };
        let beyond = tick.saturating_sub(HORIZON).min(lead - LEAD) as u64;
        let last = u64::from(self.counts[HORIZON - 1] - self.counts[HORIZON - 1 - TARGET]);
        known + beyond * last / TARGET as u64
    }

    fn ticks_since(&self, now: Time) -> usize {
        ((now - self.at).as_nanos() / TICK.as_nanos()).min(HORIZON as u64) as usize
    }

    /// Packets that may be sent now, if `sent` have been sent so far and the report and the new packets together travel
    /// `lead` ticks.
    fn allowance(&self, now: Time, sent: u64, lead: usize) -> u64 {
        let tick = self.ticks_since(now) + lead;
        let drained = self.after(tick, lead);
        let queue = sent.saturating_sub(self.accounted).saturating_sub(drained);
        self.after(tick + TARGET, lead).saturating_sub(drained).saturating_sub(queue)
    }
}

/// The time after a report for which the queue is predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Horizon {
    /// The smallest RTT: the travel time of the report and of new packets.
    Rtt,
    /// A tick (published code).
    Tick,
}

/// The sender's half.
#[derive(Clone, Debug)]
pub struct Sprout {
    lead: Horizon,
    forecast: Option<Forecast>,
    allowance: u64,
    /// When the forecast's next tick ends; `None` after its last, when nothing more drains.
    next_tick: Option<Time>,
}

impl Sprout {
    /// Sets the window to the packets in flight plus the allowance.
    fn update(&mut self, cx: &Context, w: &mut Window) {
        let Some(forecast) = &self.forecast else { return };
        let lead = match self.lead {
            Horizon::Rtt if cx.min_rtt != Span::MAX => ((cx.min_rtt.as_nanos() + TICK.as_nanos() / 2)
                / TICK.as_nanos())
            .min(MOST_LEAD as u64) as usize,
            Horizon::Rtt | Horizon::Tick => LEAD,
        };
        self.allowance = forecast.allowance(cx.now, cx.next_packet, lead.max(LEAD));
        let ticks = forecast.ticks_since(cx.now);
        self.next_tick = (ticks < HORIZON).then(|| forecast.at + TICK * (ticks as u64 + 1));
        w.cwnd = (cx.in_flight as f64 + self.allowance as f64).max(1.0);
    }
}

impl CongestionControl for Sprout {
    fn on_start(&mut self, cx: &Context, w: &mut Window) {
        w.pacing = Pacing::Unlimited;
        self.forecast =
            Some(Forecast { at: cx.now, tick: 0, accounted: cx.next_packet, counts: PRIOR_FORECAST });
        self.update(cx, w);
    }

    fn on_congestion(&mut self, cx: &Context, w: &mut Window, _: &Congestion) -> LossResponse {
        self.update(cx, w); // loss carries no information here
        LossResponse::Own
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, _: &Ack) {
        self.update(cx, w);
    }

    fn owns_recovery(&self) -> bool {
        true
    }

    fn on_spurious(&mut self, _: &Context, _: &mut Window, _: &Window) {}

    fn on_report(&mut self, cx: &Context, w: &mut Window, report: &ReceiverReport) {
        let Some(forecast) = Forecast::parse(cx.now, report) else { return };
        // Reports may be reordered: only newer ones count.
        let newer = self.forecast.is_none_or(|old| forecast.tick.wrapping_sub(old.tick) as i32 > 0);
        if newer {
            self.forecast = Some(forecast);
            self.update(cx, w);
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        self.next_tick
    }

    fn on_deadline(&mut self, cx: &Context, w: &mut Window) {
        self.update(cx, w);
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("allowance", self.allowance as f64);
        if let Some(forecast) = &self.forecast {
            show("forecast_100ms", f64::from(forecast.counts[TARGET - 1]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fifo::{Flow, Path};
    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;
    use ranpace_units::Bytes;

    fn receive(receiver: &mut SproutReceiver, now: Time, number: u64, time_to_next: Span) {
        receiver.on_data(&Received {
            now,
            number: Some(number),
            bytes: Bytes::new(1448),
            wire: Bytes::new(1500),
            sent_at: now,
            time_to_next,
            rtt: None,
        });
    }

    /// A receiver after `seconds` of Poisson arrivals.
    fn fed(rate: f64, seconds: u64) -> SproutReceiver {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut receiver = SproutReceiver::new(0.05);
        let (mut now, mut number) = (0.0, 0);
        while now < seconds as f64 {
            receive(&mut receiver, Time::ZERO + Span::from_secs_f64(now), number, Span::ZERO);
            number += 1;
            now -= libm::log((random.next_u32() as f64 + 1.0) / 4_294_967_297.0) / rate;
        }
        receiver
    }

    fn mean(receiver: &SproutReceiver) -> (f64, f64) {
        let moment = |n| {
            let term = |(bin, p): (usize, &f64)| p * libm::pow(rate_of(bin), n);
            receiver.belief.iter().enumerate().map(term).sum::<f64>()
        };
        (moment(1.0), (moment(2.0) - moment(1.0) * moment(1.0)).sqrt())
    }

    #[test]
    fn constants_are_the_published_ones() {
        // 20 ms, 256 rates up to 1000/s, sigma 200, lambda_z 1, 8 ticks, 100 ms.
        assert_eq!((TICK, BINS, HORIZON), (Span::from_millis(20), 256, 8));
        assert_eq!((HIGHEST_RATE, WANDERING, ESCAPE), (1000.0, 200.0, 1.0));
        assert_eq!(TICK * TARGET as u64, Span::from_millis(100));
        assert_eq!((rate_of(0), rate_of(BINS - 1)), (0.0, 1000.0));
    }

    #[test]
    fn the_belief_concentrates_on_a_constant_rate() {
        for rate in [50.0, 200.0, 500.0, 800.0] {
            let receiver = fed(rate, 5);
            let (mean, deviation) = mean(&receiver);
            assert!((mean - rate).abs() < 3.0 * deviation, "{rate}: {mean} +- {deviation}");
            // A Brownian motion of 28 per tick limits the precision from Poisson counts, but it is far better than the
            // prior's 289.
            assert!(deviation < 20.0 + 4.0 * rate.sqrt(), "{rate}: {mean} +- {deviation}");
        }
    }

    #[test]
    fn the_forecast_is_below_the_mean_and_within_reason() {
        for rate in [200.0, 500.0, 800.0] {
            let forecast = fed(rate, 5).forecast().unwrap();
            assert!(forecast.is_sorted());
            for (tick, count) in forecast.iter().enumerate() {
                let mean = rate * TICK_S * (tick + 1) as f64;
                let (low, high) = (0.25 * mean - 2.0, 0.95 * mean);
                assert!((low..high).contains(&f64::from(*count)), "{rate}, tick {tick}: {count} of {mean}");
            }
        }
        let prior = Tables::new().forecaster.forecast(&[1.0 / BINS as f32; BINS], 0.05);
        assert_eq!(prior, PRIOR_FORECAST);
    }

    #[test]
    fn an_outage_is_noticed_and_announced_silence_is_not_one() {
        let rate_after = |time_to_next| {
            let mut receiver = fed(500.0, 3);
            receive(&mut receiver, Time::from_secs(3), 9999, time_to_next);
            receiver.on_deadline(Time::from_millis(3210));
            mean(&receiver).0
        };
        assert!(rate_after(Span::ZERO) < 60.0);
        assert!(rate_after(Span::from_millis(250)) > 400.0);
    }

    #[test]
    fn impossible_counts_do_not_break_the_belief() {
        let mut receiver = fed(100.0, 1);
        for number in 0..5000 {
            receive(&mut receiver, Time::from_millis(1001), number, Span::ZERO);
        }
        receiver.on_deadline(Time::from_millis(1100));
        let (mean, deviation) = mean(&receiver);
        assert!(mean.is_finite() && deviation.is_finite() && mean > 0.0);
        let sum: f64 = receiver.belief.iter().sum();
        assert!((sum - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_report_leaves_once_a_tick_and_survives_the_journey() {
        let mut receiver = fed(500.0, 2);
        assert!(receiver.report(Time::from_secs(2)).is_some());
        assert!(receiver.report(Time::from_secs(2)).is_none());
        assert!(receiver.on_deadline(Time::from_millis(2020)));
        let forecast = Forecast::parse(Time::ZERO, &receiver.report(Time::ZERO).unwrap()).unwrap();
        assert_eq!(forecast.counts, receiver.forecast().unwrap());
        assert_eq!((forecast.accounted, forecast.tick), (receiver.accounted, receiver.ticks));
        assert!(Forecast::parse(Time::ZERO, &ReceiverReport::new(&[0; 27]).unwrap()).is_none());
    }

    #[test]
    fn allowance_is_the_forecast_minus_the_queue() {
        let forecast =
            Forecast { at: Time::ZERO, tick: 1, accounted: 100, counts: [4, 10, 16, 22, 29, 36, 43, 50] };
        for (case, ms, sent, expected) in [
            ("nothing queued: 100 ms of it, 36 - 4", 0, 100, 32),
            ("less what is queued, of which 4 have drained", 0, 120, 16),
            ("queue of 100 ms: nothing", 0, 136, 0),
            ("a tick later 10 have drained: 43 - 10 - 10", 20, 120, 23),
            ("at most what was queued drains", 20, 100, 33),
            ("beyond the horizon nothing is counted on: 50 - 36", 100, 100, 14),
            ("the forecast has run out", 200, 100, 0),
        ] {
            assert_eq!(forecast.allowance(Time::from_millis(ms), sent, LEAD), expected, "{case}");
        }
        for (case, ms, sent, expected) in [
            (
                "80 ms: 22 drain before a packet sent now is there, and 34/5 a tick beyond: 50 + 6 - 22",
                0,
                100,
                34,
            ),
            ("what is on its way is no queue until they have", 0, 122, 34),
            ("then it is", 0, 130, 26),
            ("three ticks beyond are counted on: 50 + 20 - 70", 80, 100, 20),
            ("no more", 160, 100, 0),
        ] {
            assert_eq!(forecast.allowance(Time::from_millis(ms), sent, 4), expected, "{case}");
        }
    }

    #[test]
    fn a_constant_link_is_used_with_little_delay() {
        for (rate, rtt) in [(2.0, 20), (6.0, 20), (10.0, 20), (6.0, 50)] {
            let mut flow = Flow::new(Path::new(rate, rtt, 10_000), "sprout", 1);
            flow.run(Time::from_secs(3));
            let utilisation = flow.utilisation_until(Time::from_secs(13));
            let delay = flow.mean_delay(Time::from_secs(3), Time::from_secs(13));
            assert!(utilisation > 0.6, "{rate} Mbit/s, {rtt} ms: {utilisation}, {delay} s of queue");
            assert!(delay < 0.1, "{rate} Mbit/s, {rtt} ms: {utilisation}, {delay} s of queue");
        }
    }

    #[test]
    fn a_long_path_does_not_shut_the_window() {
        for rtt in [60, 80, 100, 150] {
            let mut flow = Flow::new(Path::new(8.0, rtt, 10_000), "sprout", 1);
            flow.run(Time::from_secs(3));
            let utilisation = flow.utilisation_until(Time::from_secs(13));
            let delay = flow.mean_delay(Time::from_secs(3), Time::from_secs(13));
            assert!(utilisation > 0.85, "{rtt} ms: {utilisation}, {delay} s of queue");
            assert!(delay < 0.1, "{rtt} ms: {utilisation}, {delay} s of queue");
        }
        // One tick for the travel time, as published, is too short at this RTT.
        let mut flow = Flow::new(Path::new(8.0, 150, 10_000), "sprout:lead=tick", 1);
        flow.run(Time::from_secs(3));
        let utilisation = flow.utilisation_until(Time::from_secs(13));
        assert!(utilisation < 0.3, "{utilisation}");
    }

    #[test]
    fn it_recovers_from_an_outage() {
        let path = Path::new(6.0, 20, 10_000).then(5, 0.01).then(8, 6.0);
        let mut flow = Flow::new(path, "sprout", 1);
        flow.run(Time::from_secs(11));
        let utilisation = flow.utilisation_until(Time::from_secs(14));
        assert!(utilisation > 0.5, "{utilisation}");
    }
}
