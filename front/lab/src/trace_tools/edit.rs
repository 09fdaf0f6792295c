//! From one trace to another: a part of it, a scaled one, or one without its bursts.

use ranpace_link::{Trace, TraceError};
use ranpace_units::Span;

use super::rates::counts_of_some;
use super::{RateSeries, ToolError, collect};

/// The part after `from` and until `until`, shifted to zero. The opportunities at 0 ms belong to a part that begins there.
pub fn cut(trace: &Trace, from: Span, until: Span) -> Result<Trace, ToolError> {
    let (from_ms, until_ms) = (from.as_millis(), until.as_millis());
    let part = trace
        .iter()
        .map(|(ms, count)| (u64::from(ms), count))
        .filter(|(ms, _)| (*ms > from_ms || (from_ms == 0 && *ms == 0)) && *ms <= until_ms);
    Trace::from_counts(part.map(|(ms, count)| (ms - from_ms, count))).map_err(|_| {
        let part =
            if until == Span::MAX { format!("after {from}") } else { format!("between {from} and {until}") };
        ToolError::Nothing(format!(
            "nothing is left {part} of a trace of {}: it has no opportunity there",
            trace.duration()
        ))
    })
}

/// With `factor` times as many opportunities, the total rounded up, at the same milliseconds. The length is unchanged.
pub fn scaled(trace: &Trace, factor: f64) -> Result<Trace, TraceError> {
    // Counted from the end, and rounded up there, so that the last millisecond keeps at least one.
    let left = |count: u64| {
        let scaled = count as f64 * factor;
        // Rounds up explicitly, because a cast truncates.
        let whole = scaled as u64;
        if (whole as f64) < scaled { whole + 1 } else { whole }
    };
    let total = trace.opportunities();
    let mut before = 0;
    collect(trace.iter().map(move |(ms, count)| {
        let upto = before + u64::from(count);
        let scaled = left(total - before) - left(total - upto);
        before = upto;
        (u64::from(ms), scaled)
    }))
}

/// The same number of opportunities in each interval (whole milliseconds, at least one), evenly spread over it.
pub fn evened(trace: &Trace, interval: Span) -> Result<Trace, TraceError> {
    RateSeries::spread(counts_of_some(trace, interval), interval)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cut_trace_begins_at_zero() {
        let trace = Trace::from_counts([(0, 2), (10, 1), (20, 3), (30, 1)]).unwrap();
        let part = |from, until| cut(&trace, Span::from_millis(from), Span::from_millis(until));
        let list = |trace: Trace| trace.iter().collect::<Vec<_>>();
        assert_eq!(list(part(0, 20).unwrap()), [(0, 2), (10, 1), (20, 3)]);
        assert_eq!(list(part(10, 99).unwrap()), [(10, 3), (20, 1)]);
        let error = part(20, 29).unwrap_err().to_string();
        assert_eq!(
            error,
            "nothing is left between 20ms and 29ms of a trace of 30ms: it has no opportunity there"
        );
    }

    #[test]
    fn error_of_an_open_cut_names_no_end() {
        let trace = Trace::from_millis([30]).unwrap();
        let error = cut(&trace, Span::from_secs(10), Span::MAX).unwrap_err().to_string();
        assert_eq!(error, "nothing is left after 10s of a trace of 30ms: it has no opportunity there");
    }

    #[test]
    fn tripled_counts_are_exact_and_even_keeps_counts() {
        let trace = Trace::from_counts([(1, 1), (4, 5), (109, 2)]).unwrap();
        assert_eq!(scaled(&trace, 3.0).unwrap(), Trace::from_counts([(1, 3), (4, 15), (109, 6)]).unwrap());
        let even = evened(&trace, Span::from_millis(60)).unwrap();
        assert_eq!(even.iter().map(|(ms, _)| ms).collect::<Vec<_>>(), [5, 15, 25, 35, 45, 55, 75, 105]);
        assert!(scaled(&trace, 1e12).is_err());
        // There may be as many intervals as milliseconds in 46 days, so only those with opportunities take memory.
        let long = Trace::from_counts([(1, 2), (4_000_000_000, 2)]).unwrap();
        assert_eq!(evened(&long, Span::from_millis(1)).unwrap(), long);
    }

    proptest! {
        #[test]
        fn scaling_keeps_the_length_and_the_share(
            times in prop::collection::vec(0..5_000u64, 0..300), factor in 0.001..20.0f64,
        ) {
            let mut times = times;
            times.push(5_000);
            times.sort_unstable();
            let trace = Trace::from_millis(times).unwrap();
            let scaled = scaled(&trace, factor).unwrap();
            prop_assert_eq!(scaled.duration(), trace.duration());
            let expected = trace.opportunities() as f64 * factor;
            prop_assert!(scaled.opportunities() as f64 >= expected - 1e-6);
            prop_assert!((scaled.opportunities() as f64) < expected + 1.0);
        }

        #[test]
        fn cut_trace_has_the_opportunities_of_its_interval(times in prop::collection::vec(0..500u64, 1..100), from in 0..400u64, length in 1..300u64) {
            let mut times = times;
            times.push(500);
            times.sort_unstable();
            let trace = Trace::from_millis(times.iter().copied()).unwrap();
            let inside = times.iter().filter(|ms| (**ms > from || (from == 0 && **ms == 0)) && **ms <= from + length);
            let inside: Vec<u64> = inside.map(|ms| ms - from).collect();
            match cut(&trace, Span::from_millis(from), Span::from_millis(from + length)) {
                Ok(part) => prop_assert_eq!(part, Trace::from_millis(inside).unwrap()),
                Err(_) => prop_assert!(inside.iter().all(|ms| *ms == 0)),
            }
        }
    }
}
