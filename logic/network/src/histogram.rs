//! Distribution of times with a relative error of at most 0.1 %, in memory proportional to the spread of the values.
//!
//! There are 1024 buckets for each power of two. They are allocated in groups of 16 on first use, and only the span of groups in use
//! is indexed, so a thousand idle flows cost next to nothing (a general-purpose histogram allocates its whole range at once).
//!
//! A recorded value is first appended to a list as its bucket's number, two bytes; when the list is full, all its values are sorted in. A
//! value then touches the end of a list that is in the cache, and not a group somewhere in memory.

use std::iter::Peekable;

use ranpace_units::Span;

use crate::results::Distribution;

const PRECISION: u32 = 10;
const GROUP: usize = 16;
/// Values buffered before they are sorted in.
const WAITING: usize = 256;

/// The histogram.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    sum: u128,
    count: u64,
    min: u64,
    max: u64,
    /// Bucket numbers of the latest values, not sorted in yet.
    waiting: Vec<u16>,
    /// Groups from number `first` on.
    groups: Vec<Option<Box<[u32; GROUP]>>>,
    first: usize,
}

impl Histogram {
    /// Adds a value.
    #[inline]
    pub fn record(&mut self, value: Span) {
        let value = value.as_nanos();
        self.tally(value, 1);
        // The last bucket has number 56,319.
        self.waiting.push(bucket_of(value) as u16);
        if self.waiting.len() >= WAITING {
            self.settle();
        }
    }

    /// Adds a value `times` times.
    pub fn record_times(&mut self, value: Span, times: u32) {
        if times == 0 {
            return;
        }
        self.tally(value.as_nanos(), times);
        self.sort_in(bucket_of(value.as_nanos()), times);
    }

    #[inline]
    fn tally(&mut self, value: u64, times: u32) {
        if self.count == 0 {
            self.min = value;
        }
        self.count += u64::from(times);
        self.sum += u128::from(value) * u128::from(times);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Sorts the buffered values in.
    fn settle(&mut self) {
        let mut waiting = core::mem::take(&mut self.waiting);
        waiting.drain(..).for_each(|bucket| self.sort_in(usize::from(bucket), 1));
        self.waiting = waiting;
    }

    #[inline]
    fn sort_in(&mut self, bucket: usize, times: u32) {
        let (group, place) = (bucket / GROUP, bucket % GROUP);
        let index = group.wrapping_sub(self.first);
        let index = if index < self.groups.len() { index } else { self.make_room(group) };
        let slot = &mut self.groups[index].get_or_insert_with(|| Box::new([0; GROUP]))[place];
        *slot = slot.saturating_add(times);
    }

    /// Extends the groups to include this one; returns its index.
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

    /// Buckets with values: middle of the bucket, count; increasing.
    fn buckets(&self) -> Vec<(u64, u64)> {
        let mut waiting = self.waiting.clone();
        waiting.sort_unstable();
        let mut waiting = waiting.into_iter().map(usize::from).peekable();
        let mut buckets = Vec::new();
        let groups = self.groups.iter().zip(self.first..);
        for (counts, group) in groups.filter_map(|(counts, group)| Some((counts.as_deref()?, group))) {
            for (&count, bucket) in counts.iter().zip(group * GROUP..) {
                while let Some(&early) = waiting.peek().filter(|&&early| early < bucket) {
                    buckets.push((early, run(&mut waiting, early)));
                }
                let count = u64::from(count) + run(&mut waiting, bucket);
                if count > 0 {
                    buckets.push((bucket, count));
                }
            }
        }
        while let Some(&late) = waiting.peek() {
            buckets.push((late, run(&mut waiting, late)));
        }
        buckets.into_iter().map(|(bucket, count)| (middle_of(bucket), count)).collect()
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    fn mean(&self) -> u64 {
        if self.count == 0 { 0 } else { (self.sum / u128::from(self.count)) as u64 }
    }

    /// Mean absolute deviation from the mean.
    pub fn mean_deviation(&self) -> Span {
        if self.count == 0 {
            return Span::ZERO;
        }
        let mean = self.mean();
        let sum: u128 = self
            .buckets()
            .iter()
            .map(|&(value, count)| u128::from(value.abs_diff(mean)) * u128::from(count))
            .sum();
        Span::from_nanos((sum / u128::from(self.count)) as u64)
    }

    /// Its summary.
    pub fn distribution(&self) -> Distribution {
        if self.count == 0 {
            return Distribution::default();
        }
        let buckets = self.buckets();
        let clamp = |value: u64| Span::from_nanos(value.clamp(self.min, self.max));
        let quantile = |share: f64| {
            let rank = ((self.count as f64 * share).ceil() as u64).clamp(1, self.count);
            let mut below = 0;
            for &(value, count) in &buckets {
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
            cdf: self.cdf(&buckets),
        }
    }

    /// At most 200 points of the distribution function, evenly spaced in its shares.
    fn cdf(&self, buckets: &[(u64, u64)]) -> Vec<(Span, f64)> {
        const POINTS: f64 = 198.0;
        let mut points = Vec::new();
        let (mut below, mut last) = (0_u64, -1.0);
        for &(value, count) in buckets {
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

/// Removes all values equal to `value` from the front; returns their number.
fn run(values: &mut Peekable<impl Iterator<Item = usize>>, value: usize) -> u64 {
    let mut count = 0;
    while values.next_if_eq(&value).is_some() {
        count += 1;
    }
    count
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

    #[test]
    fn a_value_so_many_times_is_that_value_so_often() {
        let (mut at_once, mut each) = (Histogram::default(), Histogram::default());
        for (value, times) in [(70_000, 42), (5, 0), (3_000_000, 1), (70_001, 1_000)] {
            let value = Span::from_nanos(value);
            at_once.record_times(value, times);
            (0..times).for_each(|_| each.record(value));
        }
        assert_eq!(at_once.distribution(), each.distribution());
        assert_eq!(at_once.mean_deviation(), each.mean_deviation());
    }

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
