//! Incremental parser for traces of delivery opportunities.
//!
//! The format is mahimahi's: one time in whole milliseconds per line, non-decreasing. Lines may end in CR LF, the last line
//! may lack a line break, and empty lines at the very end are ignored.

use crate::trace::{Builder, MAX_MS};
use crate::{Trace, TraceError};

/// Longer lines are not numbers; also how much of a line is shown.
const SHOWN: usize = 40;

/// Accepts the text of a trace in pieces, split anywhere. After the first error, further text is not read.
pub struct TraceParser {
    builder: Builder,
    /// Number of the current line, from 1.
    line: u64,
    /// Beginning of the current line.
    text: [u8; SHOWN],
    /// Length of the current line; one more than `SHOWN` if it is longer.
    length: usize,
    /// The first of the empty lines directly before it, if there are any.
    empty: Option<u64>,
    failed: Option<TraceError>,
}

impl Default for TraceParser {
    fn default() -> Self {
        Self::new()
    }
}

impl TraceParser {
    /// A parser that has read nothing.
    pub fn new() -> Self {
        Self { builder: Builder::default(), line: 1, text: [0; SHOWN], length: 0, empty: None, failed: None }
    }

    /// Reads more text. Errors do not depend on where the text is split, except that they may be reported later.
    pub fn push(&mut self, text: &[u8]) -> Result<(), TraceError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        for &byte in text {
            if byte == b'\n' {
                self.end_line()?;
                self.line += 1;
                self.length = 0;
            } else if self.length < SHOWN {
                self.text[self.length] = byte;
                self.length += 1;
            } else {
                self.length = SHOWN + 1;
                return self.fail(Self::not_a_time(self.line, &self.text, true));
            }
        }
        Ok(())
    }

    /// The trace, if there was no error.
    pub fn finish(mut self) -> Result<Trace, TraceError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.end_line()?;
        self.builder.finish()
    }

    fn end_line(&mut self) -> Result<(), TraceError> {
        let line = self.line;
        let text = &self.text[..self.length];
        let number = text.strip_suffix(b"\r").unwrap_or(text);
        if number.is_empty() {
            self.empty.get_or_insert(line);
            return Ok(());
        }
        if let Some(line) = self.empty {
            return self.fail(TraceError::EmptyLine { line });
        }
        if !number.iter().all(u8::is_ascii_digit) {
            let error = Self::not_a_time(line, text, false);
            return self.fail(error);
        }
        let digits = number.iter().map(|digit| u64::from(digit - b'0'));
        let ms = digits.fold(0u64, |ms, digit| ms.saturating_mul(10).saturating_add(digit));
        if ms > MAX_MS {
            let found = number.escape_ascii().to_string();
            return self.fail(TraceError::TooLate { line, found });
        }
        match self.builder.add(line, ms, 1) {
            Ok(()) => Ok(()),
            Err(error) => self.fail(error),
        }
    }

    fn not_a_time(line: u64, text: &[u8], is_cut: bool) -> TraceError {
        let mut found: String = text.escape_ascii().map(char::from).take(SHOWN).collect();
        if is_cut || text.escape_ascii().count() > SHOWN {
            found.truncate(SHOWN - 3);
            found.push_str("...");
        }
        TraceError::NotATime { line, found }
    }

    fn fail(&mut self, error: TraceError) -> Result<(), TraceError> {
        self.failed = Some(error.clone());
        Err(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &[u8]) -> Result<Trace, TraceError> {
        let mut parser = TraceParser::new();
        parser.push(text)?;
        parser.finish()
    }

    #[test]
    fn forms_of_the_same_trace() {
        let trace = Trace::from_millis([0, 2, 2, 15]).unwrap();
        for text in [
            "0\n2\n2\n15\n",
            "0\n2\n2\n15",
            "0\r\n2\r\n2\r\n15\r\n",
            "0\n02\n2\n15\n\n",
            "0\n2\n2\n15\r\n\r\n\n",
        ] {
            assert_eq!(parse(text.as_bytes()).as_ref(), Ok(&trace), "{text:?}");
        }
    }

    #[test]
    fn errors_say_where_and_what() {
        for (text, message) in [
            (
                &b"1\n2.5\n"[..],
                "line 2: expected a time in whole milliseconds and nothing else, found \"2.5\"",
            ),
            (b"1\n -2", "line 2: expected a time in whole milliseconds and nothing else, found \" -2\""),
            (b"1 \n2", "line 1: expected a time in whole milliseconds and nothing else, found \"1 \""),
            (b"1\r2\n", "line 1: expected a time in whole milliseconds and nothing else, found \"1\\r2\""),
            (
                b"\x1f\x8b\x08\x00\xff\n",
                "line 1: expected a time in whole milliseconds and nothing else, found \"\\x1f\\x8b\\x08\\x00\\xff\"",
            ),
            (b"1\n\n2\n", "line 2: expected a time in whole milliseconds, found an empty line"),
            (b"1\n\n\r\nx", "line 2: expected a time in whole milliseconds, found an empty line"),
            (b"7\n7\n6\n", "line 3: 6 ms after 7 ms"),
            (b"", "no opportunity after 0 ms"),
            (b"\n\n", "no opportunity after 0 ms"),
            (b"0\n0\n", "no opportunity after 0 ms"),
            (b"4294967296\n", "line 1: 4294967296 ms is later than 4294967295 ms"),
            (b"99999999999999999999999999\n", "line 1: 99999999999999999999999999 ms is later"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }

    #[test]
    fn no_more_than_forty_characters_are_shown() {
        for text in [vec![b'0'; 1 << 20], vec![0xff; 1 << 20], vec![0xff; 13]] {
            let Err(TraceError::NotATime { line: 1, found }) = parse(&text) else { panic!("accepted") };
            assert_eq!(found.len(), 40);
            assert!(found.ends_with("..."));
        }
    }

    #[test]
    fn an_endless_file_ends_in_an_error() {
        let (mut parser, piece) = (TraceParser::new(), b"7\n".repeat(1 << 20));
        let error = (0..1000).find_map(|_| parser.push(&piece).err());
        assert_eq!(error, Some(TraceError::TooLong { line: 500_000_001 }));
        assert_eq!(parser.push(b""), Err(TraceError::TooLong { line: 500_000_001 }));
        assert_eq!(parser.finish(), Err(TraceError::TooLong { line: 500_000_001 }));
    }

    proptest! {
        /// Whatever the bytes and splits: no panic, and the same result as in one piece.
        #[test]
        fn cuts_do_not_matter(
            text in prop_oneof![
                prop::collection::vec(any::<u8>(), 0..200),
                prop::collection::vec(prop::sample::select(&b"0123456789\n\n\n\r x"[..]), 0..100),
                prop::collection::vec(0..50u64, 0..50).prop_map(|mut times| {
                    times.sort_unstable();
                    times.iter().map(|t| format!("{t}\n")).collect::<String>().into_bytes()
                }),
            ],
            cuts in prop::collection::vec(0..200usize, 0..10),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let mut parser = TraceParser::new();
            let pushed = cuts.windows(2).try_for_each(|cut| parser.push(&text[cut[0]..cut[1]]));
            let finished = parser.finish();
            if let Err(error) = pushed {
                prop_assert_eq!(finished.as_ref(), Err(&error));
            }
            prop_assert_eq!(finished, parse(&text));
        }

        #[test]
        fn written_traces_are_read_back(times in prop::collection::vec(1..u64::from(u32::MAX), 1..50)) {
            let mut times = times;
            times.sort_unstable();
            let text: String = times.iter().map(|t| format!("{t}\n")).collect();
            prop_assert_eq!(parse(text.as_bytes()), Trace::from_millis(times));
        }
    }
}
