//! The format of a log of rates, and why a log was refused.

use core::str::FromStr;

use ranpace_units::Span;

/// Most intervals: 58 days of seconds, slightly more than a trace may have. They take 40 MB.
pub(super) const MOST_INTERVALS: u64 = 5_000_000;

/// Unit of a time column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Millis,
    /// Microseconds.
    Micros,
    /// Nanoseconds.
    Nanos,
}

impl TimeUnit {
    pub(super) fn nanos(self) -> u64 {
        match self {
            Self::Seconds => 1_000_000_000,
            Self::Millis => 1_000_000,
            Self::Micros => 1_000,
            Self::Nanos => 1,
        }
    }
}

/// Unit of a rate column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateUnit {
    pub(super) bits_per_s: f64,
}

impl RateUnit {
    /// Thousands of bits per second.
    pub const KBIT: Self = Self { bits_per_s: 1e3 };
    /// All units.
    pub const NAMES: [&'static str; 8] =
        ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "B/s", "kB/s", "MB/s", "GB/s"];
}

impl FromStr for RateUnit {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let sizes = [1.0, 1e3, 1e6, 1e9, 8.0, 8e3, 8e6, 8e9];
        let found = Self::NAMES.iter().zip(sizes).find(|(name, _)| **name == text);
        found
            .map(|(_, bits_per_s)| Self { bits_per_s })
            .ok_or_else(|| format!("expected one of {}", Self::NAMES.join(", ")))
    }
}

/// The columns that give a row's time.
#[derive(Clone, Debug, PartialEq)]
pub enum Clock {
    /// Nowhere: each row is the interval after the previous one.
    Rows,
    /// In the column with this name: a number in this unit, or a date with a time of day, such as 2019.12.14_10.16.30 or 2019-12-14
    /// 10:16:30.5.
    Column(String, TimeUnit),
}

/// The format of a log.
#[derive(Clone, Debug, PartialEq)]
pub enum LogFormat {
    /// CSV whose first line names the columns. Separated by commas; by semicolons or tabs if the first line has no comma.
    Csv {
        /// The columns that give the time.
        clock: Clock,
        /// The column of rates.
        rate: String,
        /// Its unit.
        unit: RateUnit,
        /// The duration of one row.
        interval: Span,
    },
    /// Two numbers per line, time and rate, separated by spaces or a comma; lines with `#` are comments.
    Pairs {
        /// Unit of the first.
        time: TimeUnit,
        /// Unit of the second.
        rate: RateUnit,
        /// The duration of one row.
        interval: Span,
    },
}

impl LogFormat {
    /// The logs of University College Cork's 5G dataset: `DL_bitrate` in kbit/s (or `UL_bitrate`), about a row per second.
    pub fn ucc_5g(up: bool) -> Self {
        Self::Csv {
            clock: Clock::Column("Timestamp".to_owned(), TimeUnit::Seconds),
            rate: if up { "UL_bitrate" } else { "DL_bitrate" }.to_owned(),
            unit: RateUnit::KBIT,
            interval: Span::SECOND,
        }
    }

    pub(super) fn interval(&self) -> Span {
        match self {
            Self::Csv { interval, .. } | Self::Pairs { interval, .. } => *interval,
        }
    }
}

/// Why a log was refused. Lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// Unexpected content.
    #[error("line {line}: expected {expected}, found \"{found}\"")]
    Unexpected {
        /// The line, from 1.
        line: u64,
        /// The form expected.
        expected: String,
        /// The text found, truncated and escaped.
        found: String,
    },
    /// No such column.
    #[error("line 1: no column {column:?}; there are: {columns}{near}")]
    NoColumn {
        /// The one asked for.
        column: String,
        /// The existing ones.
        columns: String,
        /// The most similar one, as a question.
        near: String,
    },
    /// Time goes backwards.
    #[error(
        "line {line}: its time {found} lies before that of the row above; sort the rows, or convert each part alone"
    )]
    Decreasing {
        /// The line, from 1.
        line: u64,
        /// The time there.
        found: String,
    },
    /// Too long.
    #[error(
        "line {line}: more than {MOST_INTERVALS} intervals since the first row; is the unit of time right?"
    )]
    TooLong {
        /// The line, from 1.
        line: u64,
    },
    /// No row has a rate.
    #[error("line {line}: the log ends here without any row with a rate")]
    Empty {
        /// The last line.
        line: u64,
    },
}
