//! `ranpace trace`: inspects, plots, generates, converts and records traces.

mod convert;
mod generate;
mod info;
mod plot;
mod record;

use std::path::PathBuf;

use clap::Subcommand;
use ranpace_lab::trace_tools::{ToolError, TraceFile, inspect_named};
use ranpace_lab::{Progress, TraceLibrary};
use ranpace_link::TraceStats;

use crate::common;
use crate::failure::Failure;

/// Inspect, plot, generate, convert and record traces of cellular links
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    ranpace trace info builtin:lte\n  \
    ranpace trace generate --model lte --duration 120s --seed 7 --out drive.down.gz\n  \
    ranpace trace plot drive.down.gz --out drive.html\n  \
    ranpace trace convert drive.down.gz --scale 3 --from 10s --until 70s --out fast.down\n\
    See docs/traces.md for the formats and models.")]
pub struct Trace {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Info(info::Info),
    Plot(plot::Plot),
    Generate(generate::Generate),
    Convert(convert::Convert),
    Record(record::Record),
}

impl Trace {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        match self.what {
            What::Info(command) => command.run(),
            What::Plot(command) => command.run(),
            What::Generate(command) => command.run(),
            What::Convert(command) => command.run(),
            What::Record(command) => command.run(),
        }
    }
}

impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Self {
        if error.is_ours() { Self::ours(error) } else { Self::asked(error) }
    }
}

/// Where traces are searched.
#[derive(clap::Args)]
struct Folder {
    /// Folder of recorded traces, searched after the working directory [env: RANPACE_TRACES]
    #[arg(long, value_name = "DIR")]
    traces: Option<PathBuf>,
}

impl Folder {
    fn traces(&self) -> TraceLibrary {
        TraceLibrary::new(common::trace_folders(self.traces.as_ref()))
    }
}

/// Reads a trace, with a progress bar if it takes long.
fn read(name: &str, library: &mut TraceLibrary) -> Result<TraceFile, Failure> {
    Ok(inspect_named(name, library, &mut watcher(name))?)
}

/// Shows how much of a file has been read.
fn watcher(name: &str) -> impl FnMut(u64, u64) + use<> {
    let (name, mut bar) = (name.to_owned(), None);
    move |done, total| {
        let bar = bar.get_or_insert_with(|| {
            let bar = Progress::new(total, "bytes");
            bar.note(name.clone());
            bar
        });
        bar.set(done);
    }
}

/// A trace in a line: "59901 opportunities in 60s, mean 11.98 Mbit/s".
fn described(trace: &ranpace_link::Trace) -> String {
    let stats = TraceStats::of(trace);
    format!(
        "{} opportunities in {}, mean {:.3} Mbit/s, longest gap {}",
        stats.opportunities,
        stats.duration,
        stats.mean.as_f64() / 1e6,
        stats.longest_gap
    )
}
