//! A trace of delivery opportunities: the milliseconds at which a packet may cross a link.
//!
//! Format and semantics are those of mahimahi and of the Saturator traces (Winstein et al., NSDI 2013).
//! A trace is stored as one entry of 8 B per millisecond with opportunities.

use core::fmt;

use ranpace_units::{Bytes, Rate, Span, Time};

/// Size of an opportunity for rates: a packet of 1500 B.
pub(crate) const PACKET: Bytes = Bytes::new(1500);
/// Most opportunities: a day at 70 Mbit/s.
pub(crate) const MAX_OPPORTUNITIES: u64 = 500_000_000;
/// Most milliseconds with opportunities: 18 hours without a pause, 512 MiB.
pub(crate) const MAX_ENTRIES: usize = 1 << 26;
/// The latest millisecond: 49 days.
pub(crate) const MAX_MS: u64 = u32::MAX as u64;

/// One millisecond with opportunities.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub ms: u32,
    /// Cumulative number of opportunities, including its own.
    pub upto: u32,
}

/// Why a list of delivery opportunities was refused. The caller adds the file's name. Lines count from 1; for
/// [`Trace::from_millis`] and [`Trace::from_counts`] they are items.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The line contains something other than decimal digits.
    #[error(
        "line {line}: expected a time in whole milliseconds and nothing else, found \"{found}\" (a trace is plain \
         text, one number a line; unpack it if it is compressed)"
    )]
    NotATime {
        /// Line number.
        line: u64,
        /// The text found: at most 40 characters, escaped.
        found: String,
    },
    /// An empty line before the end.
    #[error("line {line}: expected a time in whole milliseconds, found an empty line; remove it")]
    EmptyLine {
        /// Line number.
        line: u64,
    },
    /// Time runs backwards.
    #[error("line {line}: {found} ms after {previous} ms; times must not decrease (files joined?)")]
    Decreasing {
        /// Line number.
        line: u64,
        /// The previous time in ms.
        previous: u64,
        /// The time found, in ms.
        found: u64,
    },
    /// Nothing could ever be delivered, or infinitely much at once.
    #[error("no opportunity after 0 ms: a trace needs at least one, since its last time is its length")]
    Empty,
    /// The time is too large.
    #[error("line {line}: {found} ms is later than {MAX_MS} ms (49 days); are these not milliseconds?")]
    TooLate {
        /// Line number.
        line: u64,
        /// The time found, as written.
        found: String,
    },
    /// The trace is too long to hold in memory.
    #[error(
        "line {line}: too long, a trace may have {MAX_OPPORTUNITIES} opportunities in {MAX_ENTRIES} different \
         milliseconds; cut it into pieces"
    )]
    TooLong {
        /// Line number.
        line: u64,
    },
}

/// The milliseconds from the start at which one packet may cross a link; repeated milliseconds allow as many packets. The last
/// one is the length of the trace. At least one is later than 0.
#[derive(Clone, PartialEq, Eq)]
pub struct Trace {
    entries: Vec<Entry>,
}

impl Trace {
    /// From the time in milliseconds of each opportunity, non-decreasing.
    pub fn from_millis(millis: impl IntoIterator<Item = u64>) -> Result<Self, TraceError> {
        Self::from_counts(millis.into_iter().map(|ms| (ms, 1)))
    }

    /// From pairs of a time in milliseconds and a number of opportunities, with non-decreasing times. Pairs with the number
    /// 0 are ignored.
    pub fn from_counts(counts: impl IntoIterator<Item = (u64, u32)>) -> Result<Self, TraceError> {
        let mut builder = Builder::default();
        for (line, (ms, count)) in (1..).zip(counts) {
            builder.add(line, ms, count)?;
        }
        builder.finish()
    }

    /// The milliseconds with opportunities and their number, in order of time.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let mut before = 0;
        self.entries.iter().map(move |entry| {
            let count = entry.upto - before;
            before = entry.upto;
            (entry.ms, count)
        })
    }

    /// Number of opportunities.
    pub fn opportunities(&self) -> u64 {
        self.entries.last().map_or(0, |entry| u64::from(entry.upto))
    }

    /// The length: the time of the last opportunity.
    pub fn duration(&self) -> Span {
        Span::from_millis(u64::from(self.last_ms()))
    }

    /// Mean rate: 12 kbit per opportunity, over the length.
    pub fn mean_rate(&self) -> Rate {
        Rate::of(PACKET * self.opportunities(), self.duration())
    }

    /// Number of opportunities after `from` and up to `to`, if the trace is played from [`Time::ZERO`], once
    /// or repeatedly. Takes time logarithmic in the length of the trace.
    pub fn opportunities_between(&self, from: Time, to: Time, repeat: bool) -> u64 {
        self.passed(to, repeat).saturating_sub(self.passed(from, repeat))
    }

    /// Number of opportunities up to `at`.
    pub(crate) fn passed(&self, at: Time, repeat: bool) -> u64 {
        let (ms, length) = (at.as_millis(), u64::from(self.last_ms()));
        let (passes, rest) = if repeat { (ms / length, ms % length) } else { (0, ms) };
        let index = self.entries.partition_point(|entry| u64::from(entry.ms) <= rest);
        let upto = index.checked_sub(1).map_or(0, |last| u64::from(self.entries[last].upto));
        passes.saturating_mul(self.opportunities()).saturating_add(upto)
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Never 0, since a trace needs an opportunity after 0 ms.
    pub(crate) fn last_ms(&self) -> u32 {
        self.entries.last().map_or(1, |entry| entry.ms)
    }
}

/// Prints a summary, since a trace may have millions of entries.
impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Trace({} opportunities in {} ms)", self.opportunities(), self.last_ms())
    }
}

/// Collects opportunities into a trace.
#[derive(Default)]
pub(crate) struct Builder {
    entries: Vec<Entry>,
}

impl Builder {
    pub fn add(&mut self, line: u64, ms: u64, count: u32) -> Result<(), TraceError> {
        let small = u32::try_from(ms).map_err(|_| TraceError::TooLate { line, found: ms.to_string() })?;
        let last = self.entries.last().copied();
        let (previous, before) = last.map_or((0, 0), |last| (last.ms, last.upto));
        if small < previous {
            return Err(TraceError::Decreasing { line, previous: u64::from(previous), found: ms });
        }
        let upto = u64::from(before) + u64::from(count);
        if upto > MAX_OPPORTUNITIES {
            return Err(TraceError::TooLong { line });
        }
        let entry = Entry { ms: small, upto: upto as u32 };
        let is_full = self.entries.len() == MAX_ENTRIES;
        match self.entries.last_mut() {
            _ if count == 0 => {}
            Some(last) if last.ms == small => *last = entry,
            _ if is_full => return Err(TraceError::TooLong { line }),
            _ => self.entries.push(entry),
        }
        Ok(())
    }

    pub fn finish(mut self) -> Result<Trace, TraceError> {
        if self.entries.last().is_none_or(|last| last.ms == 0) {
            return Err(TraceError::Empty);
        }
        self.entries.shrink_to_fit();
        Ok(Trace { entries: self.entries })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn counts_and_times_are_the_same() {
        let trace = Trace::from_millis([0, 0, 3, 7, 7, 7]).unwrap();
        assert_eq!(trace, Trace::from_counts([(0, 1), (0, 1), (3, 1), (5, 0), (7, 3), (9, 0)]).unwrap());
        assert_eq!(trace.iter().collect::<Vec<_>>(), [(0, 2), (3, 1), (7, 3)]);
        assert_eq!((trace.opportunities(), trace.duration()), (6, Span::from_millis(7)));
        assert_eq!(trace.mean_rate(), Rate::from_bits_per_s(6 * 12_000 * 1000 / 7));
    }

    #[test]
    fn unplayable_traces_are_refused() {
        assert_eq!(Trace::from_millis([]), Err(TraceError::Empty));
        assert_eq!(Trace::from_millis([0, 0]), Err(TraceError::Empty));
        let decreasing = TraceError::Decreasing { line: 3, previous: 5, found: 4 };
        assert_eq!(Trace::from_millis([1, 5, 4]), Err(decreasing));
        assert_eq!(
            Trace::from_counts([(1, 400_000_000), (2, 100_000_001)]),
            Err(TraceError::TooLong { line: 2 })
        );
        let late = TraceError::TooLate { line: 1, found: "4294967296".into() };
        assert_eq!(Trace::from_millis([1 << 32]), Err(late));
    }

    proptest! {
        #[test]
        fn intervals_count_what_lies_in_them(
            times in prop::collection::vec(0..50u64, 0..40),
            from in 0..300u64, length in 0..300u64, repeat in any::<bool>(),
        ) {
            let mut times = times;
            times.push(50);
            times.sort_unstable();
            let trace = Trace::from_millis(times.iter().copied()).unwrap();
            let passes = if repeat { 13 } else { 1 };
            let all = (0..passes).flat_map(|pass| times.iter().map(move |t| pass * 50 + t));
            let expected = all.filter(|&t| from < t && t <= from + length).count() as u64;
            let (from, to) = (Time::from_millis(from), Time::from_millis(from + length));
            prop_assert_eq!(trace.opportunities_between(from, to, repeat), expected);
        }
    }
}
