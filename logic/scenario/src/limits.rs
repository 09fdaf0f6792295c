//! Limits that several tables share. Ours: what is beyond them is a slip of the pen.

use ranpace_units::{Rate, Span};

/// Fastest rate that is believed, 10 Tbit/s.
pub(crate) const MOST_RATE: Rate = Rate::from_mbit_per_s(10_000_000);
/// Slowest rate that there is.
pub(crate) const LEAST_RATE: Rate = Rate::from_bits_per_s(1);
/// Longest delay on a link that is believed: light goes to Saturn in less than two hours.
pub(crate) const MOST_DELAY: Span = Span::from_secs(7_200);
/// Shortest span above zero.
pub(crate) const LEAST_SPAN: Span = Span::from_nanos(1);
