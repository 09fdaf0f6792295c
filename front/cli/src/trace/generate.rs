//! `ranpace trace generate`.

use std::path::PathBuf;

use clap::ValueEnum;
use ranpace_lab::trace_tools::{OutputFile, constant};
use ranpace_link::CellularModel;
use ranpace_units::{Rate, Span};

use super::described;
use crate::failure::Failure;
use crate::output;

/// Generate a trace from a model of a cellular link, or of a constant rate
///
/// The same model, parameters, duration and seed give the same bytes on any machine. The capacity is the mean multiplied by slow
/// shadowing and fast fading, and limited to the cell's peak. It is zero during outages and in milliseconds in which the scheduler
/// serves other users. docs/traces.md lists the default parameters of each model.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    ranpace trace generate --model lte --duration 120s --seed 1 --out lte.down\n  \
    ranpace trace generate --model nr --mean 200Mbit/s --peak 900Mbit/s --no-outages --out nr.down.gz\n  \
    ranpace trace generate --model constant --rate 48Mbit/s --duration 60s --out wired48")]
pub struct Generate {
    /// Kind of link
    #[arg(long, value_enum, default_value_t = Model::Lte)]
    model: Model,
    /// Duration of the trace
    #[arg(long, value_name = "TIME", default_value = "120s")]
    duration: Span,
    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// File to write; gzipped if its name ends in .gz
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Rate of the constant model
    #[arg(long, value_name = "RATE", conflicts_with = "mean")]
    rate: Option<Rate>,
    #[command(flatten, next_help_heading = "Parameters of the cellular models")]
    cellular: Cellular,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Model {
    /// LTE downlink on the move: 12 Mbit/s
    Lte,
    /// UMTS (HSPA) downlink on the move: 3 Mbit/s
    Umts,
    /// 5G downlink below 6 GHz on the move: 100 Mbit/s
    Nr,
    /// A constant rate
    Constant,
}

#[derive(clap::Args)]
struct Cellular {
    /// Mean capacity, outages included
    #[arg(long, value_name = "RATE")]
    mean: Option<Rate>,
    /// Highest rate that the cell gives to one user
    #[arg(long, value_name = "RATE")]
    peak: Option<Rate>,
    /// Standard deviation of the logarithm of slow shadowing
    #[arg(long, value_name = "X")]
    shadowing: Option<f64>,
    /// Time after which the correlation of shadowing has fallen to 1/e
    #[arg(long, value_name = "TIME")]
    shadowing_memory: Option<Span>,
    /// Standard deviation of the logarithm of fast fading
    #[arg(long, value_name = "X")]
    fading: Option<f64>,
    /// Time after which the correlation of fading has fallen to 1/e
    #[arg(long, value_name = "TIME")]
    fading_memory: Option<Span>,
    /// Mean time between two outages
    #[arg(long, value_name = "TIME", conflicts_with = "no_outages")]
    between_outages: Option<Span>,
    /// Shortest outage
    #[arg(long, value_name = "TIME", conflicts_with = "no_outages")]
    shortest_outage: Option<Span>,
    /// Longest outage
    #[arg(long, value_name = "TIME", conflicts_with = "no_outages")]
    longest_outage: Option<Span>,
    /// Generate no outages
    #[arg(long)]
    no_outages: bool,
    /// Share of milliseconds in which this user is served, above 0 and up to 1
    #[arg(long, value_name = "SHARE")]
    scheduled: Option<f64>,
}

impl Cellular {
    /// Names of the options that the user gave.
    fn given(&self) -> Vec<&'static str> {
        let all = [
            ("--mean", self.mean.is_some()),
            ("--peak", self.peak.is_some()),
            ("--shadowing", self.shadowing.is_some()),
            ("--shadowing-memory", self.shadowing_memory.is_some()),
            ("--fading", self.fading.is_some()),
            ("--fading-memory", self.fading_memory.is_some()),
            ("--between-outages", self.between_outages.is_some()),
            ("--shortest-outage", self.shortest_outage.is_some()),
            ("--longest-outage", self.longest_outage.is_some()),
            ("--no-outages", self.no_outages),
            ("--scheduled", self.scheduled.is_some()),
        ];
        all.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name).collect()
    }

    /// The model with the user's parameters in place of its defaults.
    fn change(&self, model: CellularModel) -> Result<CellularModel, Failure> {
        /// A standard deviation is a factor of e^5 = 148; links do not vary more. Ours.
        const MOST_DEVIATION: f64 = 5.0;
        let within = |name: &str, value: f64, low: f64, high: f64| {
            if value >= low && value <= high {
                return Ok(value);
            }
            Err(Failure::asked(format!("{name}: expected a number from {low} to {high}, found {value}")))
        };
        let mean = self.mean.unwrap_or(model.mean);
        // Without --peak, a changed mean keeps the model's ratio of peak to mean.
        let room = model.peak.ratio(model.mean);
        let peak = self.peak.unwrap_or(if self.mean.is_some() { mean.mul_f64(room) } else { model.peak });
        let changed = CellularModel {
            mean,
            peak,
            shadowing: within("--shadowing", self.shadowing.unwrap_or(model.shadowing), 0.0, MOST_DEVIATION)?,
            shadowing_memory: self.shadowing_memory.unwrap_or(model.shadowing_memory),
            fading: within("--fading", self.fading.unwrap_or(model.fading), 0.0, MOST_DEVIATION)?,
            fading_memory: self.fading_memory.unwrap_or(model.fading_memory),
            between_outages: if self.no_outages {
                Span::MAX
            } else {
                self.between_outages.unwrap_or(model.between_outages)
            },
            shortest_outage: self.shortest_outage.unwrap_or(model.shortest_outage),
            longest_outage: self.longest_outage.unwrap_or(model.longest_outage),
            scheduled: within("--scheduled", self.scheduled.unwrap_or(model.scheduled), 0.001, 1.0)?,
        };
        if changed.mean.is_zero() {
            return Err(Failure::asked("--mean: expected a rate above zero, found 0bit/s"));
        }
        if changed.peak < changed.mean {
            return Err(Failure::asked(format!(
                "--peak: expected at least the mean of {}, found {}",
                changed.mean, changed.peak
            )));
        }
        if changed.shortest_outage > changed.longest_outage {
            return Err(Failure::asked(format!(
                "--shortest-outage: expected at most the longest one of {}, found {}",
                changed.longest_outage, changed.shortest_outage
            )));
        }
        Ok(changed)
    }
}

impl Generate {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        if self.duration < Span::from_millis(1) {
            let duration = self.duration;
            return Err(Failure::asked(format!("--duration: expected at least 1ms, found {duration}")));
        }
        let model = match self.model {
            Model::Lte => Some(CellularModel::lte()),
            Model::Umts => Some(CellularModel::umts()),
            Model::Nr => Some(CellularModel::nr()),
            Model::Constant => None,
        };
        let too_long = |error| {
            Failure::asked(format!(
                "--duration: {} at this rate do not fit into a trace: {error}",
                self.duration
            ))
        };
        let trace = match (model, self.rate) {
            (Some(model), None) => {
                let model = self.cellular.change(model)?;
                model.generate(self.duration, self.seed).map_err(too_long)?
            }
            (Some(_), Some(_)) => {
                return Err(Failure::asked(
                    "--rate is for --model constant; with a cellular model, use --mean",
                ));
            }
            (None, Some(rate)) => {
                if let Some(name) = self.cellular.given().first() {
                    return Err(Failure::asked(format!(
                        "{name} is for the cellular models; with --model constant, use --rate"
                    )));
                }
                constant(rate, self.duration).map_err(too_long)?
            }
            (None, None) => {
                return Err(Failure::asked("--model constant needs --rate, such as --rate 48Mbit/s"));
            }
        };
        OutputFile::create(&self.out)?.write_trace(&trace)?;
        output::line(format!("{}: {}", self.out.display(), described(&trace)))
    }
}
