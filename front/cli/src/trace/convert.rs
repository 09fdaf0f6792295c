//! `ranpace trace convert`.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use ranpace_lab::trace_tools::{
    Clock, LogFormat, OutputFile, RateUnit, TimeUnit, cut, evened, guess, read_log, scaled, write_csv,
};
use ranpace_link::Trace;
use ranpace_units::Span;

use super::{Folder, described, read, watcher};
use crate::failure::Failure;
use crate::output;

/// Largest number of rows written to a CSV file. Ours.
const MOST_ROWS: u64 = 50_000_000;

/// Convert a log of rates or another trace to a trace, or a trace to rates
///
/// The rates of a log are averaged over each interval (1 s by default); an interval without rows takes the rate of the one before.
/// The bits of an interval become packets of 1500 B, spread evenly over it; a remainder is carried into the next interval. Changes
/// are applied in this order: --from and --until cut, --scale multiplies, --even spreads.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    ranpace trace convert builtin:lte --out fast.down.gz --scale 3 --from 10s --until 70s\n  \
    ranpace trace convert builtin:lte --out lte.csv --to csv --bin 1s\n  \
    ranpace trace convert lte.csv --out even.down --rate-column rate_bit_s --rate-unit bit/s\n  \
    ranpace trace convert driving.csv --out nr.down --format ucc-5g\n  \
    ranpace trace convert pairs.txt --out link.down --format pairs --rate-unit Mbit/s")]
pub struct Convert {
    /// A trace or a log, plain or gzipped, or the name of a built-in trace
    #[arg(value_name = "IN")]
    from_file: String,
    /// File to write; gzipped if its name ends in .gz
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Format of IN
    #[arg(long, value_enum, default_value_t = Format::Auto)]
    format: Format,
    /// Format to write
    #[arg(long, value_enum, default_value_t = To::Mahimahi)]
    to: To,
    /// Column of the time: numbers, or dates such as 2019-12-14 10:16:30 [default: one row per --interval, in the order of the file]
    #[arg(long, value_name = "NAME", help_heading = "Logs")]
    time_column: Option<String>,
    /// Unit of the times
    #[arg(long, value_enum, value_name = "UNIT", default_value_t = TimeUnitName::S, help_heading = "Logs")]
    time_unit: TimeUnitName,
    /// Column of the rate
    #[arg(long, value_name = "NAME", help_heading = "Logs")]
    rate_column: Option<String>,
    /// Unit of the rates: bit/s, kbit/s, Mbit/s, Gbit/s, B/s, kB/s, MB/s, GB/s
    #[arg(long, value_name = "UNIT", help_heading = "Logs")]
    rate_unit: Option<RateUnit>,
    /// Averaging interval; without --time-column, the time between two rows
    #[arg(long, value_name = "TIME", default_value = "1s", help_heading = "Logs")]
    interval: Span,
    /// Use the uplink column of a UCC log
    #[arg(long, help_heading = "Logs")]
    up: bool,
    /// Time in IN at which the result begins
    #[arg(long, value_name = "TIME", default_value = "0s", help_heading = "Changes")]
    from: Span,
    /// Time in IN at which the result ends [default: the end of IN]
    #[arg(long, value_name = "TIME", help_heading = "Changes")]
    until: Option<Span>,
    /// Factor by which the capacity is multiplied
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, help_heading = "Changes")]
    scale: f64,
    /// Spread the opportunities of each interval evenly over it
    #[arg(long, value_name = "TIME", help_heading = "Changes")]
    even: Option<Span>,
    /// Interval of the rates that --to csv writes
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    bin: Span,
    #[command(flatten)]
    folder: Folder,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Detect the format from the first line
    Auto,
    /// Delivery opportunities: one time in ms per line
    Mahimahi,
    /// CSV with a column of rates; needs --rate-column and --rate-unit
    Csv,
    /// Logs of University College Cork's 5G data set
    #[value(name = "ucc-5g")]
    Ucc5g,
    /// Time and rate, two numbers per line; needs --rate-unit
    Pairs,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum To {
    /// Delivery opportunities: one time in ms per line
    Mahimahi,
    /// The rate of each interval of --bin
    Csv,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TimeUnitName {
    S,
    Ms,
    Us,
    Ns,
}

impl TimeUnitName {
    fn unit(self) -> TimeUnit {
        match self {
            Self::S => TimeUnit::Seconds,
            Self::Ms => TimeUnit::Millis,
            Self::Us => TimeUnit::Micros,
            Self::Ns => TimeUnit::Nanos,
        }
    }
}

impl Convert {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        for (name, span) in
            [("--interval", Some(self.interval)), ("--bin", Some(self.bin)), ("--even", self.even)]
        {
            if let Some(span) =
                span.filter(|span| span.is_zero() || !span.as_nanos().is_multiple_of(1_000_000))
            {
                return Err(Failure::asked(format!("{name}: expected whole milliseconds, found {span}")));
            }
        }
        // The scenario key `scale` has the same limit.
        if !(self.scale > 0.0 && self.scale <= 1e6) {
            let scale = self.scale;
            return Err(Failure::asked(format!(
                "--scale: expected a number above 0 and up to 1000000, found {scale}"
            )));
        }
        let until = self.until.unwrap_or(Span::MAX);
        if self.from >= until {
            return Err(Failure::asked(format!(
                "--until: expected a time after --from {}, found {until}",
                self.from
            )));
        }
        let out = OutputFile::create(&self.out)?;
        let trace = self.changed(self.source()?)?;
        match self.to {
            To::Mahimahi => out.write_trace(&trace)?,
            To::Csv => {
                let rows = trace.duration().as_nanos() / self.bin.as_nanos();
                if rows > MOST_ROWS {
                    return Err(Failure::asked(format!(
                        "--bin: {} would make {rows} rows, more than {MOST_ROWS}; use a longer interval",
                        self.bin
                    )));
                }
                out.write(|to| write_csv(&trace, self.bin, to))?;
            }
        }
        output::line(format!("{}: {}", self.out.display(), described(&trace)))
    }

    /// Reads the input as a trace.
    fn source(&self) -> Result<Trace, Failure> {
        let mut library = self.folder.traces();
        let name = self.from_file.as_str();
        let opportunities = |library: &mut _| Ok(read(name, library)?.trace.as_ref().clone());
        if name.starts_with("builtin:") {
            return opportunities(&mut library);
        }
        let path = if Path::new(name).exists() { PathBuf::from(name) } else { library.find(name)? };
        let format = match self.format {
            Format::Auto => self.guess(&path)?,
            format => format,
        };
        let log = match format {
            Format::Mahimahi | Format::Auto => return opportunities(&mut library),
            Format::Ucc5g => LogFormat::ucc_5g(self.up),
            Format::Csv => LogFormat::Csv {
                clock: match &self.time_column {
                    Some(name) => Clock::Column(name.clone(), self.time_unit.unit()),
                    None => Clock::Rows,
                },
                rate: self
                    .rate_column
                    .clone()
                    .ok_or_else(|| missing("--rate-column", "the column of rates"))?,
                unit: self.rate_unit.ok_or_else(no_unit)?,
                interval: self.interval,
            },
            Format::Pairs => LogFormat::Pairs {
                time: self.time_unit.unit(),
                rate: self.rate_unit.ok_or_else(no_unit)?,
                interval: self.interval,
            },
        };
        let series = read_log(&path, &log, &mut watcher(name))?;
        series.trace().map_err(|error| {
            Failure::asked(format!(
                "{}: cannot make a trace of its rates ({error}); check the units of rate and time",
                path.display()
            ))
        })
    }

    fn guess(&self, path: &Path) -> Result<Format, Failure> {
        if self.rate_column.is_some() {
            return Ok(Format::Csv);
        }
        Ok(match guess(path)? {
            Some("ucc-5g") => Format::Ucc5g,
            Some("pairs") => Format::Pairs,
            // For anything else the parser of traces reports the line that it cannot read.
            Some(_) => Format::Mahimahi,
            None if path.to_string_lossy().contains(".csv") => {
                return Err(missing("--rate-column", "the column of rates"));
            }
            None => Format::Mahimahi,
        })
    }

    fn changed(&self, mut trace: Trace) -> Result<Trace, Failure> {
        let refused = |what: &str| {
            let what = what.to_owned();
            move |error: ranpace_link::TraceError| Failure::asked(format!("{what}: {error}"))
        };
        if !self.from.is_zero() || self.until.is_some() {
            trace = cut(&trace, self.from, self.until.unwrap_or(Span::MAX))?;
        }
        if self.scale != 1.0 {
            trace = scaled(&trace, self.scale).map_err(refused("--scale"))?;
        }
        if let Some(interval) = self.even {
            trace = evened(&trace, interval).map_err(refused("--even"))?;
        }
        Ok(trace)
    }
}

fn missing(name: &str, what: &str) -> Failure {
    Failure::asked(format!("a CSV log needs {name}, {what} (or --format ucc-5g)"))
}

fn no_unit() -> Failure {
    let names = RateUnit::NAMES.join(", ");
    Failure::asked(format!("a log needs --rate-unit, the unit of its rates: one of {names}"))
}
