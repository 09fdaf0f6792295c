//! `ranpace model`: formulas instead of simulations.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Subcommand;
use ranpace_thesis_models::{
    Bits, FIGURE_BOTTLENECKS, Filter, Newcomer, PacingCost, Pair, Path, Startup, Surface, TABLE_PAIRS,
    ThesisTable, UPLOAD_SIZES, Upload, UploadPath,
};
use ranpace_units::{Bytes, Rate, Span};

use crate::cell;
use crate::failure::Failure;

/// Compute the analytic models that CDBEv2 and SIGMA were designed with (Zhong 2020, chapters 4 and 7; Diarra 2022, 3.2)
///
/// The models are formulas and simulate nothing: the weight of CDBEv2's filter, the queue that its STARTUP leaves behind, a
/// newcomer beside an established flow, the cost of idling and queueing by kind of traffic, and the time of an upload with
/// SIGMA's start. Mb is 10^6 bit, MB is 10^6 bytes.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    ranpace model filter\n  \
    ranpace model startup --thesis-table\n  \
    ranpace model startup --gain 2,2.77,2.88 --queue-threshold 0.2Mb --out startup.html\n  \
    ranpace model newcomer --rtt-min 20ms,300ms --out newcomer.html\n  \
    ranpace model pacing-cost\n  \
    ranpace model upload\n\
    docs/model.md has more.")]
pub struct Model {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Filter(FilterCommand),
    Startup(StartupCommand),
    Newcomer(NewcomerCommand),
    PacingCost(PacingCostCommand),
    Upload(UploadCommand),
}

/// Show the weight of a report in CDBEv2's filter by the smallest RTT (7.8, 7.9, Fig. 7.2)
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    ranpace model filter\n  \
    ranpace model filter --rtt-min 24ms --k 2\n  \
    ranpace model filter --rtt-min 20ms..300ms --step 1ms --out filter.svg")]
struct FilterCommand {
    /// Smallest RTT, or the first and the last one
    #[arg(long, value_name = "TIME|TIME..TIME", default_value = "20ms..300ms")]
    rtt_min: Spans,
    /// Step between two RTTs
    #[arg(long, value_name = "TIME", default_value = "20ms")]
    step: Span,
    /// Time between reports
    #[arg(long, value_name = "TIME", default_value = "10ms")]
    tw: Span,
    /// Number of smallest RTTs in which the filter follows 90 % of a step: 1, 2 or both
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,2")]
    k: Vec<u32>,
    #[command(flatten)]
    shown: Shown,
}

/// Show the queue that a single flow in STARTUP leaves behind (7.10 to 7.14, Figs. 7.3 to 7.7, Table 7.1)
///
/// It is computed for the pairs of gain and initial bandwidth of Table 7.1, or for those given. The default queue threshold is
/// the algorithm's, 1 Mb; the published table has 0.2 Mb.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    ranpace model startup\n  \
    ranpace model startup --thesis-table\n  \
    ranpace model startup --gain 2.175 --from 228Mbit/s --to 233Mbit/s --each\n  \
    ranpace model startup --gain 2,2.77,2.88 --queue-threshold 0.2Mb --out startup.html\n  \
    ranpace model startup --surface --queue-threshold 0.2Mb --out surface.html")]
struct StartupCommand {
    /// Gains [default: the pairs of Table 7.1; with --initial 2.175]
    #[arg(long, value_name = "G", value_delimiter = ',', allow_negative_numbers = true)]
    gain: Vec<f64>,
    /// Bandwidths before the first report [default: the pairs of Table 7.1; with --gain 1Mbit/s]
    #[arg(long, value_name = "RATE", value_delimiter = ',')]
    initial: Vec<Rate>,
    /// RTT without a queue
    #[arg(long, value_name = "TIME", default_value = "300ms")]
    rtt: Span,
    /// Queue that ends STARTUP
    #[arg(long, value_name = "BITS", default_value = "1Mb")]
    queue_threshold: Bits,
    /// Buffer of the bottleneck
    #[arg(long, value_name = "BITS", default_value = "48Mb")]
    buffer: Bits,
    /// Slowest bottleneck
    #[arg(long, value_name = "RATE", default_value = "1Mbit/s")]
    from: Rate,
    /// Fastest bottleneck
    #[arg(long, value_name = "RATE", default_value = "500Mbit/s")]
    to: Rate,
    /// Step between two bottlenecks
    #[arg(long, value_name = "RATE", default_value = "1Mbit/s")]
    step: Rate,
    /// Also print a row for each bottleneck
    #[arg(long)]
    each: bool,
    /// Compute it over gains from 2 to 3 and initial bandwidths from 0.1 to 1 Mbit/s instead (Figs. 7.4 to 7.6)
    #[arg(long, conflicts_with_all = ["gain", "initial", "each"])]
    surface: bool,
    /// Print Table 7.1 with the parameters that reproduce it, published beside computed
    #[arg(long, conflicts_with_all = [
        "gain", "initial", "rtt", "queue_threshold", "buffer", "from", "to", "step", "each", "surface",
    ])]
    thesis_table: bool,
    #[command(flatten)]
    shown: Shown,
}

/// Show when a newcomer beside an established flow leaves STARTUP, and with which share (7.15 to 7.22, Figs. 7.8 to 7.13)
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    ranpace model newcomer\n  \
    ranpace model newcomer --bottleneck 20Mbit/s,150Mbit/s --rtt-min 20ms,60ms,300ms\n  \
    ranpace model newcomer --gamma 2 --out newcomer.html")]
struct NewcomerCommand {
    /// Gain of STARTUP
    #[arg(long, value_name = "G", default_value_t = TABLE_PAIRS[2].gain, allow_negative_numbers = true)]
    gain: f64,
    /// The newcomer's initial bandwidth
    #[arg(long, value_name = "RATE", default_value = "1Mbit/s")]
    initial: Rate,
    /// Threshold of the RTT's growth in smallest RTTs; 1 is Algorithm 7.2 if both directions take equally long
    #[arg(long, value_name = "N", default_value_t = 1.0, allow_negative_numbers = true)]
    gamma: f64,
    /// Threshold of the queue
    #[arg(long, value_name = "BITS", default_value = "1Mb")]
    queue_threshold: Bits,
    /// Buffer of the bottleneck
    #[arg(long, value_name = "BITS", default_value = "48Mb")]
    buffer: Bits,
    /// Bottlenecks [default: those of the figures, 1, 5, 20, 150 and 500 Mbit/s]
    #[arg(long, value_name = "RATE", value_delimiter = ',')]
    bottleneck: Vec<Rate>,
    /// Smallest RTTs
    #[arg(long, value_name = "TIME", value_delimiter = ',', default_value = "20ms")]
    rtt_min: Vec<Span>,
    #[command(flatten)]
    shown: Shown,
}

/// Show what idling and queueing cost for bursty, Poisson and paced traffic (4.11 to 4.18, Figs. 4.7 and 4.8)
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    ranpace model pacing-cost\n  \
    ranpace model pacing-cost --capacity 1000 --step 50 --out cost.svg")]
struct PacingCostCommand {
    /// Packets per unit of time that the bottleneck can send
    #[arg(long, value_name = "N", default_value_t = 100.0, allow_negative_numbers = true)]
    capacity: f64,
    /// Step between two loads in packets [default: a twentieth of the capacity]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    step: Option<f64>,
    #[command(flatten)]
    shown: Shown,
}

/// Show how long an upload takes with slow start and with SIGMA's Max Start (Diarra 2022, 3.1 to 3.6)
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    ranpace model upload\n  \
    ranpace model upload --bdp 158520B --rtt 40ms --size 1,10,100\n  \
    ranpace model upload --out upload.html")]
struct UploadCommand {
    /// Bandwidth-delay product
    #[arg(long, value_name = "SIZE", default_value = "1200000B")]
    bdp: Bytes,
    /// Payload of a segment
    #[arg(long, value_name = "SIZE", default_value = "1440B")]
    mss: Bytes,
    /// RTT without a queue
    #[arg(long, value_name = "TIME", default_value = "10ms")]
    rtt: Span,
    /// Initial window of slow start in segments
    #[arg(long, value_name = "N", default_value_t = 10.0, allow_negative_numbers = true)]
    iw: f64,
    /// Files in bandwidth-delay products [default: 0.5 to 100, those of Fig. 3.7]
    #[arg(long, value_name = "N", value_delimiter = ',', allow_negative_numbers = true)]
    size: Vec<f64>,
    #[command(flatten)]
    shown: Shown,
}

/// How the result is shown.
#[derive(clap::Args)]
struct Shown {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Also draw it: as a drawing (.svg), or as a self-contained page (.html)
    #[arg(long, value_name = "FILE.svg|FILE.html")]
    out: Option<PathBuf>,
}

/// A time, or the first and the last one.
#[derive(Clone, Copy)]
struct Spans {
    from: Span,
    to: Span,
}

impl FromStr for Spans {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let span = |text: &str| text.parse::<Span>().map_err(|error| error.to_string());
        match text.split_once("..") {
            Some((from, to)) => Ok(Self { from: span(from)?, to: span(to)? }),
            None => span(text).map(|only| Self { from: only, to: only }),
        }
    }
}

impl Model {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        match self.what {
            What::Filter(command) => command.run(),
            What::Startup(command) => command.run(),
            What::Newcomer(command) => command.run(),
            What::PacingCost(command) => command.run(),
            What::Upload(command) => command.run(),
        }
    }
}

impl Shown {
    fn out(&self) -> Option<&std::path::Path> {
        self.out.as_deref()
    }
}

impl FilterCommand {
    fn run(self) -> Result<(), Failure> {
        let Self { rtt_min: Spans { from, to }, step, tw, k, shown } = self;
        let asked = Filter { from, to, step, tw, k };
        cell::show(shown.json, shown.out(), || asked.view())
    }
}

impl StartupCommand {
    fn run(self) -> Result<(), Failure> {
        let out = self.shown.out();
        if self.thesis_table {
            return cell::show(self.shown.json, out, ThesisTable::compute);
        }
        let asked = Startup {
            pairs: pairs(&self.gain, &self.initial),
            path: Path { rtt: self.rtt, queue_threshold: self.queue_threshold, buffer: self.buffer },
            from: self.from,
            to: self.to,
            step: self.step,
            each: self.each,
        };
        match self.surface {
            true => cell::show(self.shown.json, out, || Surface { startup: asked }.view()),
            false => cell::show(self.shown.json, out, || asked.view()),
        }
    }
}

/// Every gain with every initial bandwidth; those of Table 7.1 if neither is given, and else the selected pair's for what
/// is missing.
fn pairs(gains: &[f64], initials: &[Rate]) -> Vec<Pair> {
    if gains.is_empty() && initials.is_empty() {
        return TABLE_PAIRS.to_vec();
    }
    let selected = TABLE_PAIRS[2];
    let gains = if gains.is_empty() { &[selected.gain] } else { gains };
    let initials = if initials.is_empty() { &[selected.initial] } else { initials };
    gains
        .iter()
        .flat_map(|gain| initials.iter().map(|initial| Pair { gain: *gain, initial: *initial }))
        .collect()
}

impl NewcomerCommand {
    fn run(self) -> Result<(), Failure> {
        let Self { gain, initial, gamma, queue_threshold, buffer, bottleneck, rtt_min, shown } = self;
        let bottlenecks = if bottleneck.is_empty() { FIGURE_BOTTLENECKS.to_vec() } else { bottleneck };
        let asked =
            Newcomer { gain, initial, gamma, queue_threshold, buffer, bottlenecks, rtt_mins: rtt_min };
        cell::show(shown.json, shown.out(), || asked.view())
    }
}

impl PacingCostCommand {
    fn run(self) -> Result<(), Failure> {
        let asked = PacingCost { capacity: self.capacity, step: self.step.unwrap_or(self.capacity / 20.0) };
        cell::show(self.shown.json, self.shown.out(), || asked.view())
    }
}

impl UploadCommand {
    fn run(self) -> Result<(), Failure> {
        let Self { bdp, mss, rtt, iw, size, shown } = self;
        let sizes = if size.is_empty() { UPLOAD_SIZES.to_vec() } else { size };
        let asked = Upload { path: UploadPath { bdp, mss, rtt, iw }, sizes };
        cell::show(shown.json, shown.out(), || asked.view())
    }
}
