//! Converts between opportunities and rates over intervals.

use std::io::Write;

use ranpace_link::{Trace, TraceError};
use ranpace_units::Span;

use super::{BITS, collect};

/// Rates over intervals of equal length.
#[derive(Clone, Debug, PartialEq)]
pub struct RateSeries {
    /// Length of an interval: whole milliseconds, at least one.
    pub interval: Span,
    /// Bits per second in each, none negative.
    pub rates: Vec<f64>,
}

impl RateSeries {
    /// As opportunities: each interval gets as many as its bits have whole packets, evenly spread over it; remaining bits carry
    /// over to the next.
    pub fn trace(&self) -> Result<Trace, TraceError> {
        let seconds = self.interval.as_secs_f64();
        let mut bits = 0.0;
        let counts = self.rates.iter().map(move |rate| {
            bits += rate * seconds;
            // A cast saturates, and counts beyond the limit of a trace are refused below.
            let packets = (bits / BITS as f64) as u64;
            bits -= packets as f64 * BITS as f64;
            packets
        });
        Self::spread((0..).zip(counts), self.interval)
    }

    /// This many opportunities in the intervals with these increasing indices, the `i`-th of `n` at `(i + 1/2) / n` of its length.
    pub(super) fn spread(
        counts: impl IntoIterator<Item = (u64, u64)>,
        interval: Span,
    ) -> Result<Trace, TraceError> {
        let length = interval.as_millis().max(1);
        collect(counts.into_iter().flat_map(move |(index, count)| {
            let (start, count, wide) = (index.saturating_mul(length), u128::from(count), u128::from(length));
            // The number before a millisecond: those with (2 i + 1) length / 2 count < ms.
            let before =
                move |ms: u64| (2 * count * u128::from(ms)).saturating_sub(wide).div_ceil(2 * wide) as u64;
            let steps = count.min(wide) as u64;
            // Few are generated one by one, many by millisecond.
            (0..steps).map(move |step| {
                if u128::from(steps) < wide {
                    let at = (2 * u128::from(step) + 1) * wide / (2 * count.max(1));
                    (start.saturating_add(at as u64), 1)
                } else {
                    (start.saturating_add(step), before(step + 1) - before(step))
                }
            })
        }))
    }
}

/// The number of opportunities in each interval `[n, n + 1)`, until that of the last one. An interval has whole milliseconds, at
/// least one.
pub fn counts(trace: &Trace, interval: Span) -> Vec<u64> {
    let length = interval.as_millis().max(1);
    let mut counts = vec![0; (trace.duration().as_millis() / length) as usize + 1];
    for (index, count) in counts_of_some(trace, interval) {
        // The last opportunity is at the duration, so every index is below the length made above.
        counts[index as usize] += count;
    }
    counts
}

/// The same for the intervals that contain any, with their indices: there are at most as many as the trace has milliseconds with
/// opportunities, however long its gaps are.
pub(super) fn counts_of_some(trace: &Trace, interval: Span) -> impl Iterator<Item = (u64, u64)> {
    let length = interval.as_millis().max(1);
    let mut rest = trace.iter().map(move |(ms, count)| (u64::from(ms) / length, u64::from(count))).peekable();
    core::iter::from_fn(move || {
        let (index, mut sum) = rest.next()?;
        while let Some((_, count)) = rest.next_if(|(other, _)| *other == index) {
            sum += count;
        }
        Some((index, sum))
    })
}

/// Writes the rate in each interval as CSV, with the columns `time_s` (of its beginning), `rate_bit_s` and `opportunities`.
pub fn write_csv(trace: &Trace, interval: Span, to: &mut dyn Write) -> std::io::Result<()> {
    writeln!(to, "time_s,rate_bit_s,opportunities")?;
    let length = interval.as_millis().max(1);
    let mut next = 0;
    for (index, count) in counts_of_some(trace, interval) {
        for (index, count) in (next..index).map(|index| (index, 0)).chain([(index, count)]) {
            let ms = index * length;
            let rate = (count * BITS) as f64 * 1000.0 / length as f64;
            writeln!(to, "{}.{:03},{rate},{count}", ms / 1000, ms % 1000)?;
        }
        next = index + 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn remainders_are_carried_to_the_next_interval() {
        // 18 kbit/s: a packet and a half a second.
        let series = RateSeries { interval: Span::SECOND, rates: vec![18e3, 18e3, 0.0, 12e3] };
        let trace = series.trace().unwrap();
        assert_eq!(trace.iter().collect::<Vec<_>>(), [(500, 1), (1250, 1), (1750, 1), (3500, 1)]);
    }

    #[test]
    fn rates_as_csv() {
        let trace = Trace::from_counts([(0, 1), (99, 1), (100, 3), (350, 1)]).unwrap();
        let mut text = Vec::new();
        write_csv(&trace, Span::from_millis(100), &mut text).unwrap();
        let expected =
            "time_s,rate_bit_s,opportunities\n0.000,240000,2\n0.100,360000,3\n0.200,0,0\n0.300,120000,1\n";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }

    #[test]
    fn absurd_rates_are_refused() {
        let series = RateSeries { interval: Span::SECOND, rates: vec![1e300] };
        assert!(series.trace().is_err());
    }

    proptest! {
        #[test]
        fn even_spreads_the_opportunities_of_each_interval(list in prop::collection::vec(0..400u64, 1..20), length in 1..120u64) {
            let mut list = list;
            list.push(3); // something after 0 ms
            let mut times = Vec::new();
            for (index, &count) in (0u64..).zip(&list) {
                times.extend((0..count).map(|i| index * length + (2 * i + 1) * length / (2 * count)));
            }
            let interval = Span::from_millis(length);
            let trace = RateSeries::spread((0..).zip(list.iter().copied()), interval).unwrap();
            prop_assert_eq!(&trace, &Trace::from_millis(times).unwrap());
            prop_assert_eq!(counts(&trace, interval), list);
        }
    }
}
