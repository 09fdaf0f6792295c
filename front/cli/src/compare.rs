//! `ranpace compare`.

use clap::ArgGroup;
use ranpace_cc::Algorithm;
use ranpace_lab::{CompareError, CompareSpec, Runner, table};
use ranpace_link::Limit;
use ranpace_scenario::presets::{Access, QueueKind};
use ranpace_units::{Rate, Span};

use crate::failure::Failure;
use crate::{common, interrupt, output};

/// Compare congestion controls over one link: throughput against delay
///
/// The link is a recorded or built-in trace, or a fixed rate. Every algorithm runs alone over the same link; the table shows
/// goodput, utilisation, delay in the bottleneck's queue, RTT, jitter and loss, and the report plots them over time.
#[derive(clap::Args)]
#[command(group(ArgGroup::new("link").args(["trace", "rate"])))]
#[command(after_help = "Examples:\n  \
    ranpace compare\n  \
    ranpace compare --trace Verizon-LTE-short.down --cc cubic,bbr1,vegas,c2tcp:target=50ms --rtt 20ms --buffer 150KB --time 60s\n  \
    ranpace compare --rate 150Mbit/s --rtt 24ms --buffer 6MB --cc cubic,bbr1 --time 60s\n  \
    ranpace compare --trace builtin:umts --seeds 10 --json\n\n\
    An algorithm is NAME(+DECORATOR)*(:key=value)*; `ranpace list cc` shows all of them.")]
pub struct Compare {
    /// Trace of the link down: a file (plain or .gz), or builtin:lte, builtin:umts, builtin:nr [default: builtin:lte]
    #[arg(long, value_name = "FILE")]
    trace: Option<String>,
    /// Trace of the link up [default: 48 Mbit/s]
    #[arg(long, value_name = "FILE", conflicts_with = "rate")]
    trace_up: Option<String>,
    /// Capacity factor of the traces
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, conflicts_with = "rate")]
    scale: f64,
    /// Rate of a fixed link
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,
    /// Algorithms, with a comma between them
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "cubic,bbr1,vegas,c2tcp:target=50ms"
    )]
    cc: Vec<Algorithm>,
    /// Round-trip time of the empty path
    #[arg(long, value_name = "TIME", default_value = "20ms")]
    rtt: Span,
    /// What the bottleneck's queue holds: "150KB", "100 packets" or "unlimited"
    #[arg(long, value_name = "SIZE", default_value = "150KB")]
    buffer: Limit,
    /// The bottleneck's queue: droptail, codel, fq_codel or pie
    #[arg(long, value_name = "KIND", default_value_t = QueueKind::DropTail)]
    queue: QueueKind,
    /// Probability of random loss on the way down
    #[arg(long, value_name = "P", default_value_t = 0.0)]
    loss: f64,
    /// How long each run lasts, in the network's time
    #[arg(long, value_name = "TIME", default_value = "60s")]
    time: Span,
    /// Figures are counted from here
    #[arg(long, value_name = "TIME", default_value = "0s")]
    warmup: Span,
    /// Flows at the same time, all of the same algorithm
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    flows: u32,
    /// Runs of each algorithm, over other traces of the model or other starting points of the recording; more than one give
    /// confidence intervals
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    seeds: u32,
    /// Print the table as one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    common: common::Common,
}

impl Compare {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let access = match self.rate {
            Some(rate) => Access::Rate(rate),
            None => Access::Trace {
                down: self.trace.unwrap_or_else(|| "builtin:lte".to_owned()),
                up: self.trace_up,
                repeat: true,
                scale: self.scale,
            },
        };
        let title = match &access {
            Access::Rate(rate) => format!("Comparison at {rate}"),
            Access::Trace { down, .. } => format!("Comparison over {down}"),
        };
        let spec = CompareSpec {
            access,
            algorithms: self.cc,
            rtt: self.rtt,
            buffer: self.buffer,
            queue: self.queue,
            loss: self.loss,
            reverse: None,
            time: self.time,
            warmup: self.warmup,
            flows: self.flows,
            seeds: self.seeds,
        };
        let jobs =
            spec.jobs(&mut self.common.traces()).map_err(|error: CompareError| Failure::asked(error))?;
        let store = self.common.store("compare")?;
        let runner = Runner {
            threads: self.common.threads,
            stop: interrupt::flag(),
            store: Some(&store),
            what: "comparing",
            series: true,
        };
        let compared = spec.collect(runner.run(&jobs)?);
        let rows = compared.rows();
        if self.json {
            output::json(&rows)?;
        } else if !rows.is_empty() {
            output::line(table::comparison(&rows).to_string())?;
        }
        let text = jobs.first().map_or("", |job| &job.text);
        let page = compared.report(&title, text, &common::command_line()).map_err(Failure::ours)?;
        store.write_json("compare.json", &rows)?;
        let report = store.write("report.html", page.as_bytes())?;
        common::say(&format!("report: {}", report.display()));
        if compared.interrupted {
            return Err(Failure::Interrupted(
                "stopped; the table and the report hold the runs that were complete, and the same command goes on"
                    .to_owned(),
            ));
        }
        Ok(())
    }
}
