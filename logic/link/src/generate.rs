//! A model of a cellular link that generates traces, for use without a recorded one.
//!
//! The capacity of a millisecond is the product of
//! - a mean,
//! - shadowing: a first-order autoregressive process of the rate's logarithm (Gudmundson 1991, applied to the
//!   rate), with a memory of seconds,
//! - fast fading: another such process, with a memory of tens of milliseconds,
//! - outages: periods without capacity, at the events of a Poisson process (handovers, lost coverage),
//!
//! scaled to meet the mean and then clamped at the cell's peak, so that the mean is met only approximately. The capacity is
//! delivered in the milliseconds in which the scheduler serves this user, drawn independently. Whole packets become
//! opportunities, per millisecond at most as many as the peak allows a user that is served this rarely; the remainder is
//! carried over.
//!
//! All of it is ours. The defaults are within the range of the recorded LTE traces of Winstein et al. (NSDI 2013)
//! and of later ones from New York: second-to-second factor, share of busy milliseconds, stalls.

use ranpace_units::{Rate, Span};

use crate::random::{self, Purpose};
use crate::trace::{MAX_ENTRIES, PACKET};
use crate::{Trace, TraceError};

/// Parameters of a link. Deviations are of the natural logarithm of the rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellularModel {
    /// Mean capacity, outages included, with 12 kbit per opportunity.
    pub mean: Rate,
    /// Most that the cell gives to one user.
    pub peak: Rate,
    /// Standard deviation of shadowing, dimensionless.
    pub shadowing: f64,
    /// Time after which the correlation of shadowing has fallen to 1/e.
    pub shadowing_memory: Span,
    /// Standard deviation of fast fading, dimensionless.
    pub fading: f64,
    /// Time after which the correlation of fast fading has fallen to 1/e.
    pub fading_memory: Span,
    /// Mean time from the end of an outage to the beginning of the next; [`Span::MAX`] for none.
    pub between_outages: Span,
    /// Shortest outage. Lengths are uniform between this and [`Self::longest_outage`].
    pub shortest_outage: Span,
    /// Longest outage.
    pub longest_outage: Span,
    /// Share of milliseconds in which the scheduler serves this user, above 0 and up to 1.
    pub scheduled: f64,
}

impl Default for CellularModel {
    /// [`CellularModel::lte`].
    fn default() -> Self {
        Self::lte()
    }
}

impl CellularModel {
    /// An LTE downlink on the move: 12 Mbit/s, about three stalls of 0.3 s to 1.5 s per minute.
    pub const fn lte() -> Self {
        Self {
            mean: Rate::from_mbit_per_s(12),
            peak: Rate::from_mbit_per_s(60),
            shadowing: 0.5,
            shadowing_memory: Span::from_secs(5),
            fading: 0.45,
            fading_memory: Span::from_millis(40),
            between_outages: Span::from_secs(20),
            shortest_outage: Span::from_millis(300),
            longest_outage: Span::from_millis(1500),
            scheduled: 0.4,
        }
    }

    /// A UMTS (HSPA) downlink on the move: 3 Mbit/s, longer stalls.
    pub const fn umts() -> Self {
        Self {
            mean: Rate::from_mbit_per_s(3),
            peak: Rate::from_mbit_per_s(14),
            shadowing: 0.6,
            shadowing_memory: Span::from_secs(4),
            fading: 0.5,
            fading_memory: Span::from_millis(60),
            between_outages: Span::from_secs(25),
            shortest_outage: Span::from_millis(500),
            longest_outage: Span::from_millis(3000),
            scheduled: 0.15,
        }
    }

    /// A 5G downlink below 6 GHz on the move: 100 Mbit/s, deep and fast variations.
    pub const fn nr() -> Self {
        Self {
            mean: Rate::from_mbit_per_s(100),
            peak: Rate::from_mbit_per_s(600),
            shadowing: 0.8,
            shadowing_memory: Span::from_secs(4),
            fading: 0.5,
            fading_memory: Span::from_millis(15),
            between_outages: Span::from_secs(30),
            shortest_outage: Span::from_millis(100),
            longest_outage: Span::from_millis(1000),
            scheduled: 0.5,
        }
    }

    /// A trace of `duration` (at least 1 ms and less than 18 hours, truncated to whole milliseconds). Its last
    /// millisecond always has an opportunity, so that the trace has exactly this length. Needs 8 B of memory per
    /// millisecond.
    ///
    /// # Errors
    /// [`TraceError::TooLong`] if the duration or the rate exceed what a [`Trace`] holds; the line is the
    /// millisecond.
    pub fn generate(&self, duration: Span, seed: u64) -> Result<Trace, TraceError> {
        let length = duration.as_millis().max(1);
        if length > MAX_ENTRIES as u64 {
            return Err(TraceError::TooLong { line: MAX_ENTRIES as u64 });
        }
        let capacity = self.capacity(length, seed);
        let total: f64 = capacity.iter().sum();
        let bits_per_packet = PACKET.as_f64() * 8.0;
        let (mean, peak) = (self.mean.as_f64() / 1000.0, self.peak.as_f64() / 1000.0); // bits per ms
        let scale = if total > 0.0 { mean * length as f64 / total } else { 0.0 };
        // Capacity of the whole cell in a millisecond, in packets.
        let most = (peak / self.scheduled / bits_per_packet).max(1.0);
        let mut scheduler = random::stream(seed, Purpose::Scheduler);
        let mut bits = 0.0;
        Trace::from_counts((1..=length).zip(capacity).map(|(ms, capacity)| {
            bits += (capacity * scale).min(peak);
            let is_scheduled = capacity > 0.0 && random::chance(&mut scheduler, self.scheduled);
            let count = if is_scheduled { (bits / bits_per_packet).min(most) as u32 } else { 0 };
            bits -= f64::from(count) * bits_per_packet;
            (ms, if ms == length { count.max(1) } else { count })
        }))
    }

    /// Relative capacity of each millisecond, before scaling.
    fn capacity(&self, length: u64, seed: u64) -> Vec<f64> {
        let mut random = random::stream(seed, Purpose::Trace);
        // x' = a x + sqrt(1 - a^2) s n keeps the standard deviation s; a = exp(-1 ms / memory).
        let keep = |memory: Span| libm::exp(-1e6 / (memory.as_nanos() as f64).max(1.0));
        let (slow, fast) = (keep(self.shadowing_memory), keep(self.fading_memory));
        let (slow_noise, fast_noise) =
            ((1.0 - slow * slow).sqrt() * self.shadowing, (1.0 - fast * fast).sqrt() * self.fading);
        let mut shadow = self.shadowing * random::normal(&mut random);
        let mut fading = self.fading * random::normal(&mut random);
        let between = self.between_outages.as_nanos() as f64 / 1e6;
        let (shortest, longest) = (self.shortest_outage.as_millis(), self.longest_outage.as_millis());
        let mut start = between * random::exponential(&mut random);
        let mut end = start;
        (0..length)
            .map(|ms| {
                let ms = ms as f64;
                shadow = slow * shadow + slow_noise * random::normal(&mut random);
                fading = fast * fading + fast_noise * random::normal(&mut random);
                if ms >= start && end <= start {
                    end = start
                        + (shortest + random::up_to(&mut random, longest.saturating_sub(shortest))) as f64;
                }
                if ms >= end && end > start {
                    start = end + between * random::exponential(&mut random);
                    end = start;
                }
                if ms >= start && ms < end { 0.0 } else { libm::exp(shadow + fading) }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TraceStats;

    const MINUTE: Span = Span::from_secs(60);

    #[test]
    fn presets_look_like_what_they_are_named_after() {
        for (name, model) in
            [("lte", CellularModel::lte()), ("umts", CellularModel::umts()), ("nr", CellularModel::nr())]
        {
            for seed in 0..5 {
                let trace = model.generate(MINUTE * 5, seed).unwrap();
                let stats = TraceStats::of(&trace);
                assert_eq!(trace.duration(), MINUTE * 5);
                let mean = stats.mean.ratio(model.mean);
                assert!((0.95..=1.001).contains(&mean), "{name} {seed}: {mean}");
                assert!(
                    stats.max_second > model.mean * 2 && stats.max_second <= model.peak,
                    "{name} {seed}: {stats:?}"
                );
                assert!(stats.busy > 0.05 && stats.busy < 0.5, "{name} {seed}: {stats:?}");
                let stalls = trace.iter().map(|(ms, _)| ms).collect::<Vec<_>>();
                let shortest = model.shortest_outage.as_millis() as u32;
                let stalls = stalls.windows(2).filter(|w| w[1] - w[0] >= shortest).count();
                assert!((3..=40).contains(&stalls), "{name} {seed}: {stalls}");
                assert!(stats.longest_gap < model.longest_outage * 2, "{name} {seed}: {stats:?}");
            }
        }
    }

    #[test]
    fn seconds_of_lte_vary_by_a_factor_of_a_few() {
        let trace = CellularModel::lte().generate(MINUTE * 10, 1).unwrap();
        let mut seconds = vec![0u32; 600];
        trace.iter().for_each(|(ms, count)| seconds[(ms as usize / 1000).min(599)] += count);
        seconds.sort_unstable();
        let factor = f64::from(seconds[540]) / f64::from(seconds[60]);
        assert!((2.5..6.0).contains(&factor), "10th to 90th percentile: {factor}");
    }

    #[test]
    fn the_same_seed_gives_the_same_bits_everywhere() {
        let trace = CellularModel::lte().generate(MINUTE, 42).unwrap();
        let hash = trace.iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, (ms, count)| {
            (hash ^ (u64::from(ms) << 32 | u64::from(count))).wrapping_mul(0x0000_0100_0000_01b3)
        });
        assert_eq!((trace.opportunities(), hash), (59_901, 4_035_233_277_368_212_010));
        assert_ne!(trace, CellularModel::lte().generate(MINUTE, 43).unwrap());
    }

    #[test]
    fn edges_do_not_hang_or_panic() {
        let none = CellularModel { mean: Rate::ZERO, ..CellularModel::lte() };
        assert_eq!(none.generate(Span::ZERO, 0).unwrap().opportunities(), 1);
        let dead = CellularModel { between_outages: Span::ZERO, ..CellularModel::lte() };
        assert!(dead.generate(Span::SECOND, 0).unwrap().opportunities() >= 1);
        let calm =
            CellularModel { between_outages: Span::MAX, shadowing: 0.0, fading: 0.0, ..CellularModel::lte() };
        let stats = TraceStats::of(&calm.generate(MINUTE, 0).unwrap());
        assert!(stats.longest_gap < Span::from_millis(50), "{stats:?}");
        assert!(CellularModel::lte().generate(Span::MAX, 0).is_err());
        let huge = CellularModel { mean: Rate::MAX, peak: Rate::MAX, ..CellularModel::lte() };
        assert!(huge.generate(Span::SECOND, 0).is_err());
    }
}
