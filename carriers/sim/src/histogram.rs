//! Distribution of times with a relative error of at most 0.1 %, in memory proportional to the spread of the values.
//!
//! Values are sorted into 1024 buckets for each power of two; buckets are allocated in groups of 16 when first used, and only the span of groups in use is indexed, so
//! that a thousand idle flows cost next to nothing (a general-purpose histogram allocates its whole range at once).

use ranpace_units::Span;

use crate::results::Distribution;

const PRECISION: u32 = 10;
const GROUP: usize = 16;

/// The histogram.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram {
    /// Groups from number `first` on.
    groups: Vec<Option<Box<[u32; GROUP]>>>,
    first: usize,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

impl Histogram {
    #[inline]
    pub fn record(&mut self, value: Span) {
        let value = value.as_nanos();
        if self.count == 0 {
            self.min = value;
        }
        self.count += 1;
        self.sum += u128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        let bucket = bucket_of(value);
        let (group, place) = (bucket / GROUP, bucket % GROUP);
        let index = group.wrapping_sub(self.first);
        let index = if index < self.groups.len() { index } else { self.make_room(group) };
        let slot = &mut self.groups[index].get_or_insert_with(|| Box::new([0; GROUP]))[place];
        *slot = slot.saturating_add(1);
    }

    /// Extends the groups to this one; returns its index.
    #[cold]
    fn make_room(&mut self, group: usize) -> usize {
        if self.groups.is_empty() {
            self.first = group;
        }
        if group < self.first {
            let missing = self.first - group;
            self.groups.splice(0..0, (0..missing).map(|_| None));
            self.first = group;
        }
        let index = group - self.first;
        if index >= self.groups.len() {
            self.groups.reserve_exact(index + 1 - self.groups.len());
            self.groups.resize(index + 1, None);
        }
        index
    }

    /// Buckets that hold something: middle of the bucket, count; increasing.
    fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.groups
            .iter()
            .enumerate()
            .filter_map(|(index, counts)| counts.as_ref().map(|counts| (self.first + index, counts)))
            .flat_map(|(group, counts)| {
                counts
                    .iter()
                    .enumerate()
                    .filter(|(_, count)| **count > 0)
                    .map(move |(place, count)| (middle_of(group * GROUP + place), u64::from(*count)))
            })
    }

    fn mean(&self) -> u64 {
        if self.count == 0 { 0 } else { (self.sum / u128::from(self.count)) as u64 }
    }

    /// Mean distance from the mean.
    pub fn mean_deviation(&self) -> Span {
        if self.count == 0 {
            return Span::ZERO;
        }
        let mean = self.mean();
        let sum: u128 =
            self.buckets().map(|(value, count)| u128::from(value.abs_diff(mean)) * u128::from(count)).sum();
        Span::from_nanos((sum / u128::from(self.count)) as u64)
    }

    pub fn distribution(&self) -> Distribution {
        if self.count == 0 {
            return Distribution::default();
        }
        let clamp = |value: u64| Span::from_nanos(value.clamp(self.min, self.max));
        let quantile = |share: f64| {
            let rank = ((self.count as f64 * share).ceil() as u64).clamp(1, self.count);
            let mut below = 0;
            for (value, count) in self.buckets() {
                below += count;
                if below >= rank {
                    return clamp(value);
                }
            }
            clamp(self.max)
        };
        Distribution {
            count: self.count,
            mean: Span::from_nanos(self.mean()),
            min: Span::from_nanos(self.min),
            max: Span::from_nanos(self.max),
            p50: quantile(0.50),
            p95: quantile(0.95),
            p99: quantile(0.99),
            cdf: self.cdf(),
        }
    }

    /// At most 200 points of the distribution function, evenly spread over its shares.
    fn cdf(&self) -> Vec<(Span, f64)> {
        const POINTS: f64 = 198.0;
        let mut points = Vec::new();
        let (mut below, mut last) = (0_u64, -1.0);
        for (value, count) in self.buckets() {
            below += count;
            let share = below as f64 / self.count as f64;
            if share - last >= 1.0 / POINTS || below == self.count {
                points.push((Span::from_nanos(value.clamp(self.min, self.max)), share));
                last = share;
            }
        }
        points
    }
}

#[inline]
fn bucket_of(value: u64) -> usize {
    let magnitude = (u64::BITS - value.leading_zeros()).saturating_sub(PRECISION + 1);
    ((u64::from(magnitude) << PRECISION) + (value >> magnitude)) as usize
}

fn middle_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    // The first two powers of two are exact.
    let magnitude = (bucket >> PRECISION).saturating_sub(1);
    let low = (bucket - (magnitude << PRECISION)) << magnitude;
    low + ((1_u64 << magnitude) - 1) / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_bucket_is_within_a_thousandth_of_its_values(value in any::<u64>()) {
            let middle = middle_of(bucket_of(value));
            prop_assert!(middle.abs_diff(value) <= value / 1_000, "{value} {middle}");
        }

        #[test]
        fn quantiles_are_those_of_the_sorted_values(mut values in proptest::collection::vec(0..10_000_000_u64, 1..500)) {
            let mut histogram = Histogram::default();
            for &value in &values {
                histogram.record(Span::from_nanos(value));
            }
            values.sort_unstable();
            let distribution = histogram.distribution();
            for (share, found) in [(0.5, distribution.p50), (0.95, distribution.p95), (0.99, distribution.p99)] {
                let rank = ((values.len() as f64 * share).ceil() as usize).max(1) - 1;
                let exact = values[rank];
                prop_assert!(found.as_nanos().abs_diff(exact) <= exact / 1_000 + 1);
            }
            prop_assert_eq!(distribution.min.as_nanos(), values[0]);
            prop_assert_eq!(distribution.cdf.last().unwrap().1, 1.0);
        }
    }
}
