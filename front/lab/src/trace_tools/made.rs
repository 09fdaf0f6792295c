//! Traces of a constant rate.

use ranpace_link::{Trace, TraceError};
use ranpace_units::{Rate, Span};

use super::{BITS, collect};

/// A constant rate for `duration` (whole milliseconds, at least one): the opportunities are where back-to-back packets of 1500 B
/// would be complete. The last one is at the end, so that the trace has exactly that length; a packet that is incomplete then is
/// omitted.
pub fn constant(rate: Rate, duration: Span) -> Result<Trace, TraceError> {
    let (length, rate) = (duration.as_millis().max(1), u128::from(rate.bits_per_s()));
    // Per second and in milliseconds, everything is an integer.
    let packet = u128::from(BITS) * 1000;
    let total = u64::try_from(rate * u128::from(length) / packet).unwrap_or(u64::MAX).max(1);
    if total > u64::from(u32::MAX) {
        // This exceeds the limit of a trace, which reports it.
        return collect([(length, total)]);
    }
    // Counted from the end; times are rounded up.
    collect((0..total).rev().map(|after| {
        let before_end = (u128::from(after) * packet).checked_div(rate).unwrap_or(0);
        (length - before_end as u64, 1)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn forty_eight_megabits_are_four_packets_a_millisecond() {
        let trace = constant(Rate::from_mbit_per_s(48), Span::from_millis(3)).unwrap();
        assert_eq!(trace.iter().collect::<Vec<_>>(), [(1, 4), (2, 4), (3, 4)]);
    }

    #[test]
    fn too_large_traces_are_refused() {
        assert!(constant(Rate::MAX, Span::SECOND).is_err());
        assert!(constant(Rate::from_mbit_per_s(1), Span::MAX).is_err());
        assert_eq!(constant(Rate::ZERO, Span::SECOND).unwrap().opportunities(), 1);
    }

    proptest! {
        #[test]
        fn the_mean_is_met_to_a_packet_and_gaps_are_even(rate in 12_000..500_000_000u64, ms in 1..5_000u64) {
            let trace = constant(Rate::from_bits_per_s(rate), Span::from_millis(ms)).unwrap();
            prop_assert_eq!(trace.opportunities(), (rate * ms / 1000 / BITS).max(1));
            prop_assert_eq!(trace.duration(), Span::from_millis(ms));
            let times: Vec<u32> = trace.iter().map(|(ms, _)| ms).collect();
            let gap = (BITS * 1000).div_ceil(rate) as u32;
            prop_assert!(times.windows(2).all(|pair| pair[1] - pair[0] <= gap));
        }
    }
}
