//! Limits that several tables share. Ours: values beyond them are mistakes.

use ranpace_units::{Rate, Span};

/// Highest accepted rate, 10 Tbit/s.
pub(crate) const MOST_RATE: Rate = Rate::from_mbit_per_s(10_000_000);
/// Lowest rate.
pub(crate) const LEAST_RATE: Rate = Rate::from_bits_per_s(1);
/// Longest accepted delay of a link: light reaches Saturn in less than two hours.
pub(crate) const MOST_DELAY: Span = Span::from_secs(7_200);
/// Shortest span above zero.
pub(crate) const LEAST_SPAN: Span = Span::from_nanos(1);
