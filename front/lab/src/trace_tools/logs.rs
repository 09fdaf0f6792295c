//! Logs of measured rates: CSV with a column of rates, pairs of time and rate, and the logs of the 5G dataset of University College
//! Cork.
//!
//! The rows of an interval are averaged, and an interval without rows has the rate of the previous one (Raca et al., MMSys 2020,
//! log a row per second, with gaps). A log contains what a transfer achieved, which is less than what the link could carry whenever
//! the sender had nothing to send.

use std::io::Read as _;
use std::path::Path;

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use ranpace_units::Span;

use super::inspect::Source;
use super::log_format::{Clock, LogError, LogFormat, MOST_INTERVALS, RateUnit, TimeUnit};
use super::times::{clock, number};
use super::{RateSeries, ToolError};

/// Most bytes of a line.
const MOST_LINE: usize = 1 << 16;
/// Most columns.
const MOST_COLUMNS: usize = 4_096;
/// Largest plausible rate: 10 Tbit/s.
const MOST_RATE: f64 = 1e13;
/// Length of the excerpt shown in errors.
const SHOWN: usize = 40;

/// Reads a log from a file, plain or gzipped. `watch` is called with the bytes read and the total.
pub fn read_log(
    path: &Path,
    format: &LogFormat,
    watch: &mut dyn FnMut(u64, u64),
) -> Result<RateSeries, ToolError> {
    let mut source = Source::open(path)?;
    let wrong = |source| ToolError::Log { path: path.to_owned(), source };
    let mut parser = LogParser::new(format);
    let mut chunk = vec![0; 1 << 16];
    loop {
        let length = source.read(&mut chunk).map_err(|error| source.error(path, parser.line - 1, error))?;
        if length == 0 {
            return parser.finish().map_err(wrong);
        }
        parser.push(&chunk[..length]).map_err(wrong)?;
        watch(source.done(), source.total);
    }
}

/// Reads a log from memory.
pub fn read_log_text(text: &[u8], format: &LogFormat) -> Result<RateSeries, LogError> {
    let mut parser = LogParser::new(format);
    parser.push(text)?;
    parser.finish()
}

/// The likely format of a file, from its first line. `None` if it is neither a trace nor a known kind of log; the error is for
/// files that cannot be read at all.
pub fn guess(path: &Path) -> Result<Option<&'static str>, ToolError> {
    let mut source = Source::open(path)?;
    let mut text = Vec::new();
    let mut chunk = [0; 4_096];
    while text.len() < chunk.len() && !text.contains(&b'\n') {
        let length = source.read(&mut chunk).map_err(|error| source.error(path, 0, error))?;
        if length == 0 {
            break;
        }
        text.extend_from_slice(&chunk[..length]);
    }
    let first = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let first = String::from_utf8_lossy(first);
    let mut words = first.split([',', ' ', '\t']).map(str::trim).filter(|word| !word.is_empty());
    Ok(match (words.next(), words.next()) {
        (Some(word), None) if word.bytes().all(|byte| byte.is_ascii_digit()) => Some("mahimahi"),
        (Some(one), Some(two)) if number(one).is_some() && number(two).is_some() => Some("pairs"),
        _ if first.contains("Timestamp") && first.contains("DL_bitrate") => Some("ucc-5g"),
        _ => None,
    })
}

/// Parses a log in pieces, split anywhere.
struct LogParser<'f> {
    format: &'f LogFormat,
    /// Number of the current line, from 1.
    line: u64,
    text: Vec<u8>,
    /// Splits the fields of a line; created for the separator of the first one.
    reader: Reader,
    /// The columns of time and rate, once the first line was read.
    columns: Option<(Option<usize>, usize)>,
    /// Times of the first and last row in nanoseconds, and the number of rows so far.
    first: Option<u64>,
    last: u64,
    rows: u64,
    /// The current interval, its sum and its rows.
    index: u64,
    sum: f64,
    count: u32,
    rates: Vec<f64>,
}

impl<'f> LogParser<'f> {
    fn new(format: &'f LogFormat) -> Self {
        Self {
            format,
            line: 1,
            text: Vec::new(),
            reader: Reader::new(),
            columns: None,
            first: None,
            last: 0,
            rows: 0,
            index: 0,
            sum: 0.0,
            count: 0,
            rates: Vec::new(),
        }
    }

    fn push(&mut self, piece: &[u8]) -> Result<(), LogError> {
        let mut rest = piece;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.keep(&rest[..end])?;
            self.end_line()?;
            self.line += 1;
            self.text.clear();
            rest = &rest[end + 1..];
        }
        self.keep(rest)
    }

    fn keep(&mut self, piece: &[u8]) -> Result<(), LogError> {
        self.text.extend_from_slice(piece);
        if self.text.len() > MOST_LINE {
            return Err(self.unexpected(&format!("a line of at most {MOST_LINE} bytes"), &self.text));
        }
        Ok(())
    }

    fn finish(mut self) -> Result<RateSeries, LogError> {
        self.end_line()?;
        if self.count == 0 {
            return Err(LogError::Empty { line: self.line });
        }
        self.rates.push(self.sum / f64::from(self.count));
        Ok(RateSeries { interval: self.format.interval(), rates: self.rates })
    }

    fn end_line(&mut self) -> Result<(), LogError> {
        let text = core::mem::take(&mut self.text);
        let line = text.strip_suffix(b"\r").unwrap_or(&text);
        let done = if line.trim_ascii().is_empty() {
            Ok(())
        } else {
            match self.format {
                LogFormat::Pairs { time, rate, .. } => self.pair(line, *time, *rate),
                LogFormat::Csv { clock, rate, unit, .. } => self.csv(line, clock, rate, *unit),
            }
        };
        // The buffer is reused.
        self.text = text;
        self.text.clear();
        done
    }

    fn pair(&mut self, line: &[u8], time: TimeUnit, unit: RateUnit) -> Result<(), LogError> {
        let text = core::str::from_utf8(line).unwrap_or("\u{fffd}");
        if text.trim_start().starts_with('#') {
            return Ok(());
        }
        let words: Vec<&str> = text.split([',', ' ', '\t']).filter(|word| !word.is_empty()).collect();
        match words[..] {
            [at, rate] => {
                let at = self.time(at, time)?;
                self.row(at, rate, unit)
            }
            _ => Err(self.unexpected("a time and a rate", line)),
        }
    }

    fn csv(&mut self, line: &[u8], clock: &Clock, rate: &str, unit: RateUnit) -> Result<(), LogError> {
        if self.columns.is_none() {
            let has = |byte: u8| line.contains(&byte);
            let separator = [b';', b'\t'].into_iter().find(|byte| !has(b',') && has(*byte)).unwrap_or(b',');
            self.reader = ReaderBuilder::new().delimiter(separator).build();
        }
        let fields = self.fields(line)?;
        let Some((time_at, rate_at)) = self.columns else {
            let time_at = match clock {
                Clock::Rows => None,
                Clock::Column(name, _) => Some(column(&fields, name)?),
            };
            self.columns = Some((time_at, column(&fields, rate)?));
            return Ok(());
        };
        let most = time_at.unwrap_or(0).max(rate_at);
        if fields.len() <= most {
            return Err(self.unexpected(&format!("at least {} columns", most + 1), line));
        }
        let at = match (time_at, clock) {
            (Some(time_at), Clock::Column(_, unit)) => self.time(&fields[time_at], *unit)?,
            _ => self.rows.saturating_mul(self.format.interval().as_nanos()),
        };
        self.row(at, &fields[rate_at], unit)
    }

    fn fields(&mut self, line: &[u8]) -> Result<Vec<String>, LogError> {
        // A byte order mark is not part of the first column's name.
        let line = if self.line == 1 { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) } else { line };
        let (mut text, mut ends) = (vec![0; line.len() + 1], vec![0; MOST_COLUMNS]);
        self.reader.reset();
        let (_, read, written, many) = self.reader.read_record(line, &mut text, &mut ends);
        // The second call signals the end of the line.
        let (result, _, more, further) =
            self.reader.read_record(&[], &mut text[written..], &mut ends[many..]);
        if read < line.len() || result != ReadRecordResult::Record {
            return Err(self.unexpected(&format!("a row of at most {MOST_COLUMNS} columns"), line));
        }
        let (text, ends) = (&text[..written + more], &ends[..many + further]);
        let starts = core::iter::once(&0).chain(ends);
        Ok(starts
            .zip(ends)
            .map(|(from, to)| {
                String::from_utf8_lossy(text.get(*from..*to).unwrap_or_default()).trim().to_owned()
            })
            .collect())
    }

    fn time(&self, text: &str, unit: TimeUnit) -> Result<u64, LogError> {
        number(text).and_then(|number| number.nanos(unit.nanos())).or_else(|| clock(text)).ok_or_else(|| {
            self.unexpected("a time: a number, or a date such as 2019-12-14 10:16:30", text.as_bytes())
        })
    }

    /// A rate that is empty or "-" was not measured.
    fn row(&mut self, at: u64, rate: &str, unit: RateUnit) -> Result<(), LogError> {
        self.rows += 1;
        if at < self.last {
            return Err(LogError::Decreasing { line: self.line, found: Span::from_nanos(at).to_string() });
        }
        self.last = at;
        if matches!(rate, "" | "-") {
            return Ok(());
        }
        let known = rate.parse::<f64>().ok().map(|rate| rate * unit.bits_per_s);
        let Some(known) = known.filter(|rate| (0.0..=MOST_RATE).contains(rate)) else {
            let expected = "a rate: a number, not negative, and less than 10 Tbit/s";
            return Err(self.unexpected(expected, rate.as_bytes()));
        };
        let first = *self.first.get_or_insert(at);
        let index = (at - first) / self.format.interval().as_nanos().max(1);
        if index >= MOST_INTERVALS {
            return Err(LogError::TooLong { line: self.line });
        }
        if index > self.index && self.count > 0 {
            let mean = self.sum / f64::from(self.count);
            self.rates.resize(index as usize, mean);
            (self.sum, self.count) = (0.0, 0);
        }
        self.index = index;
        self.sum += known;
        self.count += 1;
        Ok(())
    }

    fn unexpected(&self, expected: &str, found: &[u8]) -> LogError {
        LogError::Unexpected { line: self.line, expected: expected.to_owned(), found: shown(found) }
    }
}

/// The beginning of a text on one line: invisible characters are escaped, letters of any script are not.
fn shown(text: &[u8]) -> String {
    let letters: String = match core::str::from_utf8(text) {
        Ok(text) => text.chars().flat_map(escaped).take(SHOWN + 1).collect(),
        Err(_) => text.escape_ascii().map(char::from).take(SHOWN + 1).collect(),
    };
    if letters.chars().count() <= SHOWN {
        return letters;
    }
    letters.chars().take(SHOWN - 3).chain("...".chars()).collect()
}

fn escaped(letter: char) -> Vec<char> {
    match u8::try_from(letter) {
        Ok(byte) if byte.is_ascii() => byte.escape_ascii().map(char::from).collect(),
        _ => letter.escape_debug().collect(),
    }
}

/// The index of a column: an exact match, or else one that ignores case.
fn column(names: &[String], name: &str) -> Result<usize, LogError> {
    let exact = names.iter().position(|known| known == name);
    let found = exact.or_else(|| names.iter().position(|known| known.eq_ignore_ascii_case(name)));
    found.ok_or_else(|| {
        let close = |known: &&String| strsim::jaro_winkler(&known.to_lowercase(), &name.to_lowercase());
        let near = names.iter().max_by(|a, b| close(a).total_cmp(&close(b))).filter(|near| close(near) > 0.7);
        LogError::NoColumn {
            column: name.to_owned(),
            columns: names.iter().take(100).map(|name| shown(name.as_bytes())).collect::<Vec<_>>().join(", "),
            near: near
                .map_or_else(String::new, |near| format!("; did you mean \"{}\"?", shown(near.as_bytes()))),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn csv(rate: &str, clock: Clock) -> LogFormat {
        LogFormat::Csv { clock, rate: rate.to_owned(), unit: RateUnit::KBIT, interval: Span::SECOND }
    }

    fn seconds(name: &str) -> Clock {
        Clock::Column(name.to_owned(), TimeUnit::Seconds)
    }

    #[test]
    fn rows_of_a_second_are_averaged_and_missing_ones_repeat() {
        let text = "Timestamp,CQI,DL_bitrate,UL_bitrate\n\
                    2019.12.31_23.59.58,12,7,1\n\
                    2019.12.31_23.59.59,12,10,2\n\
                    2019.12.31_23.59.59,-,20,3\n\
                    2020.01.01_00.00.02,-,0,4\n";
        let down = read_log_text(text.as_bytes(), &LogFormat::ucc_5g(false)).unwrap();
        assert_eq!(down, RateSeries { interval: Span::SECOND, rates: vec![7e3, 15e3, 15e3, 15e3, 0.0] });
        let up = read_log_text(text.as_bytes(), &LogFormat::ucc_5g(true)).unwrap();
        assert_eq!(up.rates, [1e3, 2.5e3, 2.5e3, 2.5e3, 4e3]);
    }

    #[test]
    fn other_separators_quotes_and_forms_are_understood() {
        let plain = read_log_text(b"t,\"rate, down\"\n0,1\n1,2\n", &csv("rate, down", seconds("t"))).unwrap();
        assert_eq!(plain.rates, [1e3, 2e3]);
        for text in ["\u{feff}t;r\r\n0;1\r\n1;2", "t\tr\n5\t1\n\n6\t2\n", "T,R\n0.1,1\n1.05,1\n1.1,2\n"] {
            assert_eq!(read_log_text(text.as_bytes(), &csv("r", seconds("t"))).unwrap(), plain, "{text:?}");
        }
        assert_eq!(read_log_text(b"r\n1\n2\n", &csv("r", Clock::Rows)).unwrap(), plain);
        let pairs = LogFormat::Pairs { time: TimeUnit::Millis, rate: RateUnit::KBIT, interval: Span::SECOND };
        assert_eq!(read_log_text(b"# t r\n100 1\n1100\t2\n", &pairs).unwrap(), plain);
        assert_eq!(read_log_text(b"0, 1\n1000,2", &pairs).unwrap(), plain);
    }

    #[test]
    fn refusals_name_the_line_and_the_expected_form() {
        let format = csv("DL_bitrate", seconds("time"));
        for (text, expected) in [
            ("", "line 1: the log ends here without any row with a rate"),
            ("time,DL_bitrate\n", "line 2: the log ends here"),
            ("time,DL_bitrate\n0,-\n", "line 3: the log ends here"),
            (
                "time,DL_bitrat\n",
                "line 1: no column \"DL_bitrate\"; there are: time, DL_bitrat; did you mean",
            ),
            (
                "time,DL_bitratë\n",
                "line 1: no column \"DL_bitrate\"; there are: time, DL_bitratë; did you mean \"DL_bitratë\"?",
            ),
            ("time,DL_bitrate\n0,größer\n", "found \"größer\""),
            ("a,DL_bitrate\n", "line 1: no column \"time\"; there are: a, DL_bitrate"),
            (
                "time,DL_bitrate\n0,fast\n",
                "line 2: expected a rate: a number, not negative, and less than 10 Tbit/s, found \"fast\"",
            ),
            ("time,DL_bitrate\n0,-5\n", "found \"-5\""),
            ("time,DL_bitrate\n0,NaN\n", "found \"NaN\""),
            ("time,DL_bitrate\n0,1e300\n", "found \"1e300\""),
            ("time,DL_bitrate\nnow,1\n", "line 2: expected a time: a number, or a date"),
            ("time,DL_bitrate\n5,1\n4,1\n", "line 3: its time 4s lies before that of the row above"),
            ("time,DL_bitrate\n5\n", "line 2: expected at least 2 columns, found \"5\""),
            ("time,DL_bitrate\n0,1\n99999999999,1\n", "line 3: expected a time"),
            ("time,DL_bitrate\n0,1\n9999999999,1\n", "line 3: more than 5000000 intervals"),
        ] {
            let error = read_log_text(text.as_bytes(), &format).unwrap_err().to_string();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
        let binary = vec![0; MOST_LINE + 1];
        let error = read_log_text(&binary, &format).unwrap_err().to_string();
        assert!(
            error.starts_with("line 1: expected a line of at most 65536 bytes, found \"\\x00"),
            "{error}"
        );
    }
}
