//! Summary statistics of a trace.

use ranpace_units::{Rate, Span};

use crate::Trace;
use crate::trace::PACKET;

/// Gaps longer than this are stalls.
const STALL: Span = Span::SECOND;

/// Statistics of a trace. Rates count 12 kbit per opportunity, as is usual for these traces.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TraceStats {
    /// Number of opportunities.
    pub opportunities: u64,
    /// Time of the last opportunity.
    pub duration: Span,
    /// Mean rate over the whole length.
    pub mean: Rate,
    /// Rate in the worst whole second `[n, n + 1)` s; the mean if the trace is shorter than a second.
    pub min_second: Rate,
    /// Rate in the best whole second; the mean if the trace is shorter than a second.
    pub max_second: Rate,
    /// Number of gaps between consecutive opportunities longer than 1 s, including the gap from 0 to the first.
    pub stalls: u32,
    /// The longest gap.
    pub longest_gap: Span,
    /// Total length of the gaps longer than 1 s.
    pub stalled: Span,
    /// Share of milliseconds with an opportunity, from 0 to 1.
    pub busy: f64,
    /// Most opportunities in one millisecond.
    pub max_per_ms: u32,
}

impl TraceStats {
    /// Computes the statistics of `trace` in one pass.
    pub fn of(trace: &Trace) -> Self {
        let seconds = trace.duration().as_millis() / 1000;
        let (mut fewest, mut most) = (u64::MAX, 0);
        let (mut second, mut in_second) = (0, 0);
        let mut end_second = |count: u64| {
            fewest = fewest.min(count);
            most = most.max(count);
        };
        let (mut stalls, mut stalled, mut longest_gap, mut previous) = (0, Span::ZERO, Span::ZERO, 0);
        let (mut max_per_ms, mut busy_ms) = (0, 0u32);
        for (ms, count) in trace.iter() {
            while u64::from(ms) / 1000 > second {
                end_second(in_second);
                (second, in_second) = (second + 1, 0);
            }
            in_second += u64::from(count);
            let gap = Span::from_millis(u64::from(ms - previous));
            if gap > STALL {
                stalls += 1;
                stalled += gap;
            }
            longest_gap = longest_gap.max(gap);
            previous = ms;
            max_per_ms = max_per_ms.max(count);
            busy_ms += 1;
        }
        let mean = trace.mean_rate();
        let rate = |count: u64| if seconds == 0 { mean } else { Rate::of(PACKET * count, Span::SECOND) };
        Self {
            opportunities: trace.opportunities(),
            duration: trace.duration(),
            mean,
            min_second: rate(fewest),
            max_second: rate(most),
            stalls,
            longest_gap,
            stalled,
            busy: f64::from(busy_ms) / trace.duration().as_millis() as f64,
            max_per_ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_a_small_trace() {
        let trace = Trace::from_counts([(1200, 1), (1300, 5), (2300, 2), (4000, 1), (4100, 9)]).unwrap();
        let kbit = |kbit: u64| Rate::from_bits_per_s(kbit * 1000);
        let expected = TraceStats {
            opportunities: 18,
            duration: Span::from_millis(4100),
            mean: Rate::from_bits_per_s(18 * 12_000 * 10 / 41),
            min_second: Rate::ZERO,
            max_second: kbit(6 * 12),
            stalls: 2, // before 1200 and before 4000; 1000 ms are not longer than 1 s
            longest_gap: Span::from_millis(1700),
            stalled: Span::from_millis(2900),
            busy: 5.0 / 4100.0,
            max_per_ms: 9,
        };
        assert_eq!(TraceStats::of(&trace), expected);
    }

    #[test]
    fn less_than_a_second_has_only_a_mean() {
        let stats = TraceStats::of(&Trace::from_millis([500]).unwrap());
        assert_eq!((stats.min_second, stats.max_second), (stats.mean, stats.mean));
    }
}
