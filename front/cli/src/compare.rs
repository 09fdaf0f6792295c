//! `ranpace compare`.

use clap::ArgGroup;
use ranpace_cc::Algorithm;
use ranpace_lab::{CellCompareSpec, CompareError, CompareSpec, Runner, table};
use ranpace_link::Limit;
use ranpace_scenario::cells::Preset;
use ranpace_scenario::presets::{Access, QueueKind};
use ranpace_units::{Bytes, Rate, Span};

use crate::failure::Failure;
use crate::{common, interrupt, output};

/// Compare congestion controls over one link or in a cell: throughput against delay
///
/// The link is a recorded or built-in trace, a fixed rate, or the radio of a user in a simulated LTE or NR cell. Every
/// algorithm runs alone over the same link; the table shows goodput, utilisation, delay in the bottleneck's queue, RTT,
/// jitter and loss, and the report plots them over time. In a cell the bottleneck is the user's buffer and the air.
#[derive(clap::Args)]
#[command(group(ArgGroup::new("link").args(["trace", "rate", "cell"])))]
#[command(after_help = "Examples:\n  \
    ranpace compare\n  \
    ranpace compare --trace Verizon-LTE-short.down --cc cubic,bbr1,vegas,c2tcp:target=50ms --rtt 20ms --buffer 150KB --time 60s\n  \
    ranpace compare --rate 150Mbit/s --rtt 24ms --buffer 6MB --cc cubic,bbr1 --time 60s\n  \
    ranpace compare --trace builtin:umts --seeds 10 --json\n  \
    ranpace compare --cell lte\n  \
    ranpace compare --cell zhong-lte-ch6 --cc cubic,bbr1 --seeds 5\n\n\
    An algorithm is NAME(+DECORATOR)*(:key=value)*; `ranpace list cc` shows all of them, `ranpace list cells` the cells.")]
pub struct Compare {
    /// Play a cell instead of a link: lte, nr, or one of a published experiment; `ranpace list cells` shows all
    #[arg(long, value_name = "PRESET", value_parser = preset, conflicts_with_all = ["trace", "trace_up", "rate"])]
    cell: Option<&'static Preset>,
    /// Trace of the link down: a file (plain or .gz), or builtin:lte, builtin:umts, builtin:nr [default: builtin:lte]
    #[arg(long, value_name = "FILE")]
    trace: Option<String>,
    /// Trace of the link up [default: 48 Mbit/s]
    #[arg(long, value_name = "FILE", conflicts_with = "rate")]
    trace_up: Option<String>,
    /// Capacity factor of the traces [default: 1]
    #[arg(long, value_name = "FACTOR", conflicts_with = "rate")]
    scale: Option<f64>,
    /// Rate of a fixed link
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,
    /// Algorithms, separated by commas
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "cubic,bbr1,vegas,c2tcp:target=50ms"
    )]
    cc: Vec<Algorithm>,
    /// Round-trip time of the empty path [default: 20ms]; in a cell, of the wire alone [default: the cell's]
    #[arg(long, value_name = "TIME")]
    rtt: Option<Span>,
    /// Capacity of the bottleneck's queue: "150KB", "100 packets" or "unlimited" [default: 150KB]
    #[arg(long, value_name = "SIZE")]
    buffer: Option<Limit>,
    /// The bottleneck's queue: droptail, codel, fq_codel or pie [default: droptail]
    #[arg(long, value_name = "KIND")]
    queue: Option<QueueKind>,
    /// Probability of random loss on the way down [default: 0]
    #[arg(long, value_name = "P")]
    loss: Option<f64>,
    /// Length of each run, in the network's time
    #[arg(long, value_name = "TIME", default_value = "60s")]
    time: Span,
    /// Time from which figures are counted
    #[arg(long, value_name = "TIME", default_value = "0s")]
    warmup: Span,
    /// Number of simultaneous flows, all with the same algorithm; in a cell, per user
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    flows: u32,
    /// Runs per algorithm, each over another trace of the model or from another starting point of the recording; in a cell,
    /// with other places and fading. Several runs give confidence intervals
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    seeds: u32,
    /// Print the table as one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    common: common::Common,
}

/// The buffer of `compare` over a link.
const BUFFER: Limit = Limit::Bytes(Bytes::new(150_000));
/// The round-trip time of `compare` over a link.
const RTT: Span = Span::from_millis(20);

fn preset(name: &str) -> Result<&'static Preset, String> {
    CellCompareSpec::preset(name).map_err(|error| error.to_string())
}

/// The comparison to play, its title and its folder.
struct Plan {
    title: String,
    /// Folder of its results.
    folder: String,
    spec: Spec,
}

enum Spec {
    Link(CompareSpec),
    Cell(CellCompareSpec),
}

impl Compare {
    /// The comparison that the options describe.
    fn plan(&self) -> Result<Plan, Failure> {
        if let Some(preset) = self.cell {
            self.refuse_options_of_links(preset)?;
            return Ok(Plan {
                title: format!("Comparison in the cell {}", preset.name),
                folder: format!("compare-{}", preset.name),
                spec: Spec::Cell(CellCompareSpec {
                    preset,
                    algorithms: self.cc.clone(),
                    rtt: self.rtt,
                    time: self.time,
                    warmup: self.warmup,
                    flows: self.flows,
                    seeds: self.seeds,
                }),
            });
        }
        let access = match self.rate {
            Some(rate) => Access::Rate(rate),
            None => Access::Trace {
                down: self.trace.clone().unwrap_or_else(|| "builtin:lte".to_owned()),
                up: self.trace_up.clone(),
                repeat: true,
                scale: self.scale.unwrap_or(1.0),
            },
        };
        let title = match &access {
            Access::Rate(rate) => format!("Comparison at {rate}"),
            Access::Trace { down, .. } => format!("Comparison over {down}"),
        };
        let spec = Spec::Link(CompareSpec {
            access,
            algorithms: self.cc.clone(),
            rtt: self.rtt.unwrap_or(RTT),
            buffer: self.buffer.unwrap_or(BUFFER),
            queue: self.queue.unwrap_or_default(),
            loss: self.loss.unwrap_or(0.0),
            reverse: None,
            time: self.time,
            warmup: self.warmup,
            flows: self.flows,
            seeds: self.seeds,
        });
        Ok(Plan { title, folder: "compare".to_owned(), spec })
    }

    /// A cell has its own buffer, queue and losses.
    fn refuse_options_of_links(&self, preset: &Preset) -> Result<(), Failure> {
        let given = [
            ("--buffer", self.buffer.is_some()),
            ("--queue", self.queue.is_some()),
            ("--loss", self.loss.is_some()),
            ("--scale", self.scale.is_some()),
        ];
        let given: Vec<&str> =
            given.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name).collect();
        if given.is_empty() {
            return Ok(());
        }
        Err(Failure::asked(format!(
            "--cell cannot be combined with {}: the preset {:?} sets buffer, queue and losses. To change them, write a scenario with a [[cell]]; see docs/cells.md",
            given.join(", "),
            preset.name
        )))
    }

    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let stop = interrupt::begin();
        let Plan { title, folder, spec } = self.plan()?;
        let mut traces = self.common.traces();
        let jobs = match &spec {
            Spec::Link(spec) => spec.jobs(&mut traces),
            Spec::Cell(spec) => spec.jobs(&mut traces),
        };
        let jobs = jobs.map_err(|error: CompareError| Failure::asked(error))?;
        let store = self.common.store(&folder)?;
        let runner = Runner {
            threads: self.common.threads,
            stop,
            store: Some(&store),
            what: "comparing",
            series: true,
        };
        interrupt::work();
        let results = runner.run(&jobs)?;
        interrupt::kept();
        let compared = match &spec {
            Spec::Link(spec) => spec.collect(results),
            Spec::Cell(spec) => spec.collect(results),
        };
        let rows = compared.rows();
        if self.json {
            output::json(&rows)?;
        } else if !rows.is_empty() {
            output::line(table::comparison(&rows).to_string())?;
        }
        compared.notes().iter().for_each(|note| common::say(&format!("note: {note}")));
        let text = jobs.first().map_or("", |job| &job.text);
        let page = compared.report(&title, text, &common::command_line()).map_err(Failure::ours)?;
        store.write_json("compare.json", &rows)?;
        let report = store.write("report.html", page.as_bytes())?;
        common::say(&format!("report: {}", report.display()));
        if compared.interrupted {
            return Err(Failure::Interrupted(
                "stopped; the table and the report hold the complete runs; the same command resumes with the rest"
                    .to_owned(),
            ));
        }
        Ok(())
    }
}
