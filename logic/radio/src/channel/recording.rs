//! Recorded radio conditions: a phone's measurements, replayed under a scheduler that reacts to load.
//!
//! SINR, RSRP and gain are interpolated linearly in dB between samples, as a steadily moving phone would measure them; a CQI
//! holds until the next. The last sample holds for the median sample interval; then the recording repeats (as recorded links of
//! packet opportunities do), with a jump, since its ends are unrelated. A recording does not contain fading faster than its
//! sampling; a [`Fading`](super::Fading) can be added to it.

use core::ops::RangeInclusive;

use ranpace_phy::Cqi;
use ranpace_units::{Span, Time};

/// Measurements at one time. Each may be missing, but not all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Conditions {
    /// SINR in dB.
    pub sinr_db: Option<f64>,
    /// CQI as reported.
    pub cqi: Option<Cqi>,
    /// RSRP in dBm.
    pub rsrp_dbm: Option<f64>,
    /// Gain of fading in dB, to be added to a computed SINR.
    pub gain_db: Option<f64>,
}

/// Radio conditions over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// From time 0, in increasing order; at least one.
    samples: Vec<(Time, Conditions)>,
    /// Length after which it repeats.
    length: Span,
}

/// Why a recording was refused. The caller adds the name of the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// A column is missing.
    #[error("line 1: expected a column {expected}, found {found:?}")]
    NoColumn {
        /// The column's name, or the accepted names.
        expected: &'static str,
        /// The header line.
        found: String,
    },
    /// A cell's value is not valid in its column.
    #[error("line {line}: expected {expected}, found {found:?}")]
    Cell {
        /// The line, from 1.
        line: usize,
        /// Valid values of the column.
        expected: &'static str,
        /// The cell, or the line if the cell is missing.
        found: String,
    },
    /// Time runs backwards.
    #[error("line {line}: time must rise (are two recordings joined?)")]
    NotRising {
        /// The line, from 1.
        line: usize,
    },
    /// There is nothing to replay.
    #[error("expected one row or more{of}, found none")]
    Empty {
        /// The kind of rows that were needed.
        of: &'static str,
    },
}

impl Recording {
    /// A recording from samples in increasing order of time; the first is the start.
    pub(crate) fn new(
        mut samples: Vec<(Time, Conditions)>,
        of: &'static str,
    ) -> Result<Self, RecordingError> {
        let Some(&(first, _)) = samples.first() else { return Err(RecordingError::Empty { of }) };
        let mut steps: Vec<Span> = samples.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        steps.sort_unstable();
        let step = steps.get(steps.len() / 2).copied().unwrap_or(Span::SECOND);
        for (time, _) in &mut samples {
            *time = Time::ZERO + time.since(first);
        }
        // A missing value keeps the value of the previous sample.
        for i in 1..samples.len() {
            let last = samples[i - 1].1;
            let now = &mut samples[i].1;
            now.sinr_db = now.sinr_db.or(last.sinr_db);
            now.cqi = now.cqi.or(last.cqi);
            now.rsrp_dbm = now.rsrp_dbm.or(last.rsrp_dbm);
            now.gain_db = now.gain_db.or(last.gain_db);
        }
        let length = samples[samples.len() - 1].0.since(Time::ZERO) + step;
        Ok(Self { samples, length })
    }

    /// Reads comma-separated values under a header line: `time_s` (seconds, increasing), and one or more of
    /// `sinr_db`, `cqi`, `rsrp_dbm` and `gain_db`, in any order; other columns are ignored. An empty
    /// cell or `-` is a missing value; lines that start with `#` are comments.
    pub fn parse(text: &str) -> Result<Self, RecordingError> {
        const VALUES: &str = "sinr_db, cqi, rsrp_dbm or gain_db";
        let mut lines = numbered(text).filter(|(_, line)| !line.starts_with('#') && !line.trim().is_empty());
        let (_, names) = lines.next().ok_or(RecordingError::Empty { of: "" })?;
        let column = |name: &str| names.split(',').position(|found| found.trim() == name);
        let missing = |expected| RecordingError::NoColumn { expected, found: names.to_owned() };
        let time = column("time_s").ok_or_else(|| missing("time_s"))?;
        let columns = ["sinr_db", "cqi", "rsrp_dbm", "gain_db"].map(column);
        if columns.iter().all(Option::is_none) {
            return Err(missing(VALUES));
        }
        let mut samples: Vec<(Time, Conditions)> = Vec::new();
        for (number, line) in lines {
            let row = Row { number, line };
            let at = Time::ZERO + Span::from_secs_f64(row.required(time, SECONDS)?);
            if samples.last().is_some_and(|(last, _)| at <= *last) {
                return Err(RecordingError::NotRising { line: number });
            }
            let [sinr, cqi, rsrp, gain] = columns;
            let found = Conditions {
                sinr_db: row.number(sinr, SINR)?,
                cqi: row.cqi(cqi)?,
                rsrp_dbm: row.number(rsrp, RSRP)?,
                gain_db: row.number(gain, GAIN)?,
            };
            if found != Conditions::default() {
                samples.push((at, found));
            }
        }
        Self::new(samples, " with a value")
    }

    /// Its length, after which it repeats.
    pub const fn length(&self) -> Span {
        self.length
    }
    /// Number of samples: at least one.
    pub const fn count(&self) -> usize {
        self.samples.len()
    }
    /// The samples, from time 0 on.
    pub fn samples(&self) -> &[(Time, Conditions)] {
        &self.samples
    }

    /// Conditions at this time after the start.
    pub fn at(&self, after: Span) -> Conditions {
        let at = Time::ZERO + after % self.length;
        // The first is at 0, so at least one has passed.
        let passed = self.samples.partition_point(|(time, _)| *time <= at).max(1);
        let (start, from) = self.samples[passed - 1];
        let Some(&(end, to)) = self.samples.get(passed) else { return from };
        let share = at.since(start).ratio(end.since(start));
        let line = |from: Option<f64>, to: Option<f64>| Some(from? + (to? - from?) * share);
        Conditions {
            sinr_db: line(from.sinr_db, to.sinr_db),
            cqi: from.cqi,
            rsrp_dbm: line(from.rsrp_dbm, to.rsrp_dbm),
            gain_db: line(from.gain_db, to.gain_db),
        }
    }
}

/// The lines, numbered from 1.
pub(crate) fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines())
}

/// The kind of a column: its description in messages, and its range. Values beyond are no measurements, such as the 2147483647
/// that some phones write for unknown values.
pub(crate) type Kind = (&'static str, RangeInclusive<f64>);

/// Up to 1000 days, as in scenarios.
pub(crate) const SECONDS: Kind = ("a time in seconds from 0 to 86400000", 0.0..=86_400_000.0);
/// The range of levels in scenarios; likewise for those below.
pub(crate) const SINR: Kind = ("an SINR in dB from -200 to 200", -200.0..=200.0);
pub(crate) const RSRP: Kind = ("an RSRP in dBm from -200 to 200", -200.0..=200.0);
const GAIN: Kind = ("a gain in dB from -200 to 200", -200.0..=200.0);

/// A row of comma-separated values, without quoting.
pub(crate) struct Row<'a> {
    /// Its line number, from 1.
    pub number: usize,
    /// The line.
    pub line: &'a str,
}

impl<'a> Row<'a> {
    pub fn refused(&self, expected: &'static str, found: &str) -> RecordingError {
        RecordingError::Cell { line: self.number, expected, found: found.to_owned() }
    }
    /// A cell; an error if the line is too short.
    pub fn cell(&self, column: usize, expected: &'static str) -> Result<&'a str, RecordingError> {
        let cell = self.line.split(',').nth(column).map(str::trim);
        cell.ok_or_else(|| self.refused(expected, self.line))
    }
    /// A number in a range; `None` if there is no such column, or if the cell is empty or `-`.
    pub fn number(
        &self,
        column: Option<usize>,
        (expected, range): Kind,
    ) -> Result<Option<f64>, RecordingError> {
        let Some(column) = column else { return Ok(None) };
        match self.cell(column, expected)? {
            "" | "-" => Ok(None),
            // NaN is outside every range.
            text => match text.parse::<f64>() {
                Ok(number) if range.contains(&number) => Ok(Some(number)),
                _ => Err(self.refused(expected, text)),
            },
        }
    }
    /// A number in a range; an error if it is missing.
    pub fn required(&self, column: usize, kind: Kind) -> Result<f64, RecordingError> {
        let missing = kind.0;
        self.number(Some(column), kind)?.ok_or_else(|| self.refused(missing, self.line))
    }
    /// A CQI; `None` if it is missing.
    pub fn cqi(&self, column: Option<usize>) -> Result<Option<Cqi>, RecordingError> {
        const EXPECTED: &str = "a CQI from 0 to 15";
        let Some(number) = self.number(column, (EXPECTED, 0.0..=15.0))? else { return Ok(None) };
        // The cast rounds down; comparing it with the number refuses fractions.
        let found = Cqi::new(number as u8).filter(|cqi| f64::from(cqi.get()) == number);
        found.map(Some).ok_or_else(|| self.refused(EXPECTED, &number.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_lie_on_lines_and_a_cqi_holds() {
        let recording =
            Recording::parse("time_s,cqi,note,sinr_db\n5,7,a,10\n# aside\n6,9,b,20\n8,-,c,0\n").unwrap();
        for (ms, sinr_db, cqi) in [
            (0, 10.0, 7),
            (500, 15.0, 7),
            (999, 19.99, 7),
            (1000, 20.0, 9),
            (2000, 10.0, 9),
            (3000, 0.0, 9),
            (4999, 0.0, 9),
            (5000, 10.0, 7),
        ] {
            let found = recording.at(Span::from_millis(ms));
            assert!((found.sinr_db.unwrap() - sinr_db).abs() < 1e-9, "{ms} ms: {found:?}");
            assert_eq!(found.cqi.unwrap().get(), cqi, "{ms} ms");
            assert_eq!((found.rsrp_dbm, found.gain_db), (None, None));
        }
        // Steps of 1 and 2 s: the upper median.
        assert_eq!((recording.count(), recording.length()), (3, Span::from_secs(5)));
    }

    #[test]
    fn errors_name_their_line() {
        for (text, error) in [
            ("", "expected one row or more, found none"),
            ("time_s,sinr_db\n", "expected one row or more with a value, found none"),
            ("t,sinr_db\n1,2", "line 1: expected a column time_s, found \"t,sinr_db\""),
            (
                "time_s,snr\n1,2",
                "line 1: expected a column sinr_db, cqi, rsrp_dbm or gain_db, found \"time_s,snr\"",
            ),
            ("time_s,cqi\n0,16", "line 2: expected a CQI from 0 to 15, found \"16\""),
            ("time_s,cqi\n0,7.5", "line 2: expected a CQI from 0 to 15, found \"7.5\""),
            ("time_s,sinr_db\n0,1\n1", "line 3: expected an SINR in dB from -200 to 200, found \"1\""),
            ("time_s,sinr_db\n-1,1", "line 2: expected a time in seconds from 0 to 86400000, found \"-1\""),
            ("time_s,sinr_db\n,1", "line 2: expected a time in seconds from 0 to 86400000, found \",1\""),
            ("time_s,sinr_db\n0,NaN", "line 2: expected an SINR in dB from -200 to 200, found \"NaN\""),
            (
                "time_s,rsrp_dbm\n0,2147483647",
                "line 2: expected an RSRP in dBm from -200 to 200, found \"2147483647\"",
            ),
            ("time_s,gain_db\n0,-1e308", "line 2: expected a gain in dB from -200 to 200, found \"-1e308\""),
            ("time_s,sinr_db\n1,1\n1,2", "line 3: time must rise (are two recordings joined?)"),
        ] {
            assert_eq!(Recording::parse(text).unwrap_err().to_string(), error);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(time_s,sinr_db,cqi\n)?([-0-9.,e\n]|nan){0,60}", after: u64) {
            if let Ok(recording) = Recording::parse(&text) {
                let found = recording.at(Span::from_nanos(after));
                prop_assert!(found.sinr_db.is_none_or(f64::is_finite));
            }
        }
    }
}
