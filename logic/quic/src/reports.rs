//! Reports of a receiver's half in DATAGRAM frames (RFC 9221), for the client-driven controls: their format, and which of them are
//! fresh enough for the sender.
//!
//! | bytes | content |
//! |---|---|
//! | 1 | version, [`VERSION`] |
//! | 4 | number of the report on its connection, from 0 on, big endian |
//! | 8 | when it was made: microseconds on the receiver's clock, which may begin anywhere, big endian |
//! | 1 to 28 | the report, as a TCP option would carry it ([`ReceiverReport`]) |
//!
//! QUIC decrypts each packet once, so nobody can replay one; but DATAGRAM frames overtake one another, and one waits while the
//! uplink is congested. [`Freshness`] refuses both the overtaken and the late ones.

use ranpace_cc::ReceiverReport;
use ranpace_units::{Span, Time};

/// Version of the format.
pub const VERSION: u8 = 1;
/// Bytes before the report.
const HEAD: usize = 1 + 4 + 8;
/// Most bytes of a frame's content.
pub const MOST_BYTES: usize = HEAD + ReceiverReport::CAPACITY;
/// A report that took this much longer than the fastest one is late: it describes another moment. Half of the age at which the
/// controls' guard counts reports as missing. Ours.
pub const LATE: Span = Span::from_millis(500);
/// How much faster one end's clock may run, as one part in so many: the fastest report is believed to be slower by that, as time
/// passes. Crystals differ by less than a tenth of it. Ours.
const DRIFT: u64 = 1_000;

/// A report with its number and time, as a DATAGRAM frame carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberedReport {
    /// Its number on the connection, from 0 on.
    pub number: u32,
    /// When it was made, on the receiver's clock; whole microseconds are transmitted.
    pub made_at: Time,
    /// What the receiver's half reports.
    pub report: ReceiverReport,
}

/// Why a report is not passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReportRefusal {
    /// It cannot be a report.
    #[error("expected a report of {} to {MOST_BYTES} bytes, found {found} bytes", HEAD + 1)]
    Length {
        /// Its bytes.
        found: usize,
    },
    /// Another version of the format, or something else.
    #[error("expected a report of version {VERSION}, found {found}")]
    Version {
        /// Its first byte.
        found: u8,
    },
    /// A later report was there before it.
    #[error("report {number} came after report {newest}")]
    Overtaken {
        /// Its number.
        number: u32,
        /// The largest number that has come.
        newest: u32,
    },
    /// It waited on its way.
    #[error("the report took {by} longer than the fastest one")]
    Late {
        /// The difference.
        by: Span,
    },
}

impl NumberedReport {
    /// The content of a DATAGRAM frame.
    pub fn encode(&self) -> Vec<u8> {
        let report = self.report.as_bytes();
        let mut content = Vec::with_capacity(HEAD + report.len());
        content.push(VERSION);
        content.extend_from_slice(&self.number.to_be_bytes());
        content.extend_from_slice(&(self.made_at.as_nanos() / 1_000).to_be_bytes());
        content.extend_from_slice(report);
        content
    }

    /// Reads the content of a DATAGRAM frame. Times of more than 584 years saturate.
    ///
    /// # Errors
    ///
    /// If the content has another version, or no report, or too long a one.
    pub fn parse(content: &[u8]) -> Result<Self, ReportRefusal> {
        let length = ReportRefusal::Length { found: content.len() };
        let (version, rest) = content.split_first().ok_or(length)?;
        if *version != VERSION {
            return Err(ReportRefusal::Version { found: *version });
        }
        let (number, rest) = rest.split_first_chunk().ok_or(length)?;
        let (micros, report) = rest.split_first_chunk().ok_or(length)?;
        if report.is_empty() {
            return Err(length);
        }
        Ok(Self {
            number: u32::from_be_bytes(*number),
            made_at: Time::from_nanos(u64::from_be_bytes(*micros).saturating_mul(1_000)),
            report: ReceiverReport::new(report).ok_or(length)?,
        })
    }
}

/// Which reports of a connection are fresh: newer than all before, and not much later on their way than the fastest one. A peer
/// that lies about numbers or times makes its own reports count less, and nothing else.
#[derive(Clone, Debug, Default)]
pub struct Freshness {
    newest: Option<u32>,
    /// Arrival of the fastest report, and its arrival less the time at which it was made, in nanoseconds: the clocks' difference is part of it.
    fastest: Option<(Time, i128)>,
}

impl Freshness {
    /// Checks a report that arrived at `now`, by the sender's clock.
    ///
    /// # Errors
    ///
    /// If it is overtaken or late. An overtaken one changes nothing.
    pub fn check(&mut self, now: Time, report: &NumberedReport) -> Result<(), ReportRefusal> {
        let number = report.number;
        if let Some(newest) = self.newest.filter(|newest| number <= *newest) {
            return Err(ReportRefusal::Overtaken { number, newest });
        }
        self.newest = Some(number);
        let took = i128::from(now.as_nanos()) - i128::from(report.made_at.as_nanos());
        let expected = self.fastest.map(|(at, took)| took + i128::from(now.since(at).as_nanos() / DRIFT));
        match expected {
            Some(expected) if took > expected => {
                let by = Span::from_nanos(u64::try_from(took - expected).unwrap_or(u64::MAX));
                if by > LATE { Err(ReportRefusal::Late { by }) } else { Ok(()) }
            }
            _ => {
                self.fastest = Some((now, took));
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn numbered(number: u32, made_ms: u64) -> NumberedReport {
        let report = ReceiverReport::new(&[1, 2, 3, 4]).unwrap();
        NumberedReport { number, made_at: Time::from_millis(made_ms), report }
    }

    #[test]
    fn a_report_of_four_bytes_takes_seventeen() {
        let content = numbered(7, 3).encode();
        assert_eq!(content, [1, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0x0b, 0xb8, 1, 2, 3, 4]);
        assert_eq!(NumberedReport::parse(&content), Ok(numbered(7, 3)));
    }

    #[test]
    fn refusals_say_what_was_expected() {
        for (content, expected) in [
            (&[][..], "expected a report of 14 to 41 bytes, found 0 bytes"),
            (&[1; 13], "expected a report of 14 to 41 bytes, found 13 bytes"),
            (&[1; 42], "expected a report of 14 to 41 bytes, found 42 bytes"),
            (&[2; 17], "expected a report of version 1, found 2"),
        ] {
            assert_eq!(NumberedReport::parse(content).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn overtaken_and_late_reports_are_refused() {
        let mut freshness = Freshness::default();
        // The receiver's clock began 100 s before the sender's; a report takes 30 ms.
        for (arrival_ms, number, made_ms, expected) in [
            (30, 0, 100_000, "fresh"),
            (50, 2, 100_020, "fresh"),
            (51, 1, 100_010, "report 1 came after report 2"),
            (52, 2, 100_021, "report 2 came after report 2"),
            (580, 3, 100_050, "fresh"), // 500 ms longer
            (700, 4, 100_100, "the report took 569.35ms longer than the fastest one"),
            (720, 5, 100_690, "fresh"),
        ] {
            let found = freshness.check(Time::from_millis(arrival_ms), &numbered(number, made_ms));
            let found = found.map_or_else(|refusal| refusal.to_string(), |()| "fresh".to_owned());
            assert_eq!(found, expected, "report {number}");
        }
    }

    #[test]
    fn clocks_of_different_speed_do_not_make_reports_late() {
        let mut freshness = Freshness::default();
        // For a day the sender's clock runs faster by one part in 2000: 43 s in the end.
        for second in 0..86_400_u64 {
            let arrival = Time::from_millis(second * 1_000 + second / 2);
            let report = numbered(second as u32, second * 1_000);
            assert_eq!(freshness.check(arrival, &report), Ok(()), "after {second} s");
        }
    }

    proptest! {
        #[test]
        fn any_content_is_a_report_that_is_written_the_same_or_refused(
            content in prop::collection::vec(any::<u8>(), 0..60),
            as_version in any::<bool>(),
        ) {
            let mut content = content;
            if let (Some(first), true) = (content.first_mut(), as_version) { *first = VERSION; }
            if let Ok(read) = NumberedReport::parse(&content)
                && read.made_at < Time::MAX
            {
                prop_assert_eq!(read.encode(), content);
            }
        }

        /// Whatever a peer says, the numbers of what is passed on increase.
        #[test]
        fn fresh_reports_have_increasing_numbers(
            reports in prop::collection::vec((any::<u32>(), any::<u64>(), 0..1_000u64), 0..100),
        ) {
            let (mut freshness, mut now, mut last) = (Freshness::default(), Time::ZERO, None);
            for (number, made_ns, pause_ms) in reports {
                now += Span::from_millis(pause_ms);
                let report = NumberedReport { made_at: Time::from_nanos(made_ns), ..numbered(number, 0) };
                if freshness.check(now, &report).is_ok() {
                    prop_assert!(last.is_none_or(|last| number > last));
                    last = Some(number);
                }
            }
        }
    }
}
