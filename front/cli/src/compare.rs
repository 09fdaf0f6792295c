//! `ranpace compare`.

use std::path::PathBuf;

use clap::ArgGroup;
use ranpace_cc::Algorithm;
use ranpace_lab::{
    CellCompareSpec, CompareOptions, ComparePlan, Runner, SetByTheCell, Survey, SurveySpec, table,
};
use ranpace_link::Limit;
use ranpace_scenario::cells::Preset;
use ranpace_scenario::presets::QueueKind;
use ranpace_units::{Rate, Span};

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
    ranpace compare --cell zhong-lte-ch6 --cc cubic,bbr1 --seeds 5\n  \
    ranpace compare --trace down-pdo --light down-delay-light-pdo --trace-up up-pdo --light-up up-delay-light-pdo --rtt 0ms\n  \
    ranpace compare --all --seeds 20\n\n\
    An algorithm is NAME(+DECORATOR)*(:key=value)*; `ranpace list cc` shows all of them, `ranpace list cells` the cells.")]
pub struct Compare {
    /// Compare every control and mechanism in every situation instead: links, cells, beside CUBIC, short transfers, a call; `--cc`
    /// then chooses some of them, by their names in the table. With 20 seeds it takes some twenty minutes on two cores
    #[arg(long, conflicts_with_all = ["trace", "trace_up", "light", "light_up", "rate", "cell", "scale", "rtt", "buffer", "queue", "loss", "time", "warmup", "flows"])]
    all: bool,
    /// With --all, write the tables into this page, between its lines `<!-- compare --all -->` and `<!-- end -->`, and the plots
    /// beside it
    #[arg(long, value_name = "FILE", requires = "all")]
    page: Option<PathBuf>,
    /// Play a cell instead of a link: lte, nr, or one of a published experiment; `ranpace list cells` shows all
    #[arg(long, value_name = "PRESET", value_parser = preset, conflicts_with_all = ["trace", "trace_up", "rate"])]
    cell: Option<&'static Preset>,
    /// Trace of the link down: a file (plain or .gz), or builtin:lte, builtin:umts, builtin:nr [default: builtin:lte]
    #[arg(long, value_name = "FILE")]
    trace: Option<String>,
    /// Trace of the link up [default: 48 Mbit/s]
    #[arg(long, value_name = "FILE", conflicts_with = "rate")]
    trace_up: Option<String>,
    /// With --trace: what was recorded down under light load, as CellReplay records it; the trace is then that of heavy load
    #[arg(long, value_name = "FILE", requires = "trace", conflicts_with = "seeds")]
    light: Option<String>,
    /// The same for --trace-up
    #[arg(long, value_name = "FILE", requires = "trace_up", conflicts_with = "seeds")]
    light_up: Option<String>,
    /// Capacity factor of the traces [default: 1]
    #[arg(long, value_name = "FACTOR", conflicts_with = "rate")]
    scale: Option<f64>,
    /// Rate of a fixed link
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,
    /// Algorithms, separated by commas [default: cubic,bbr1,vegas,c2tcp:target=50ms; with --all all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    cc: Option<Vec<Algorithm>>,
    /// Round-trip time of the empty path [default: 20ms]; in a cell, of the wire alone [default: the cell's]
    #[arg(long, value_name = "TIME")]
    rtt: Option<Span>,
    /// Capacity of the bottleneck's queue: "150KB", "100 packets" or "unlimited" [default: 150KB]
    #[arg(long, value_name = "SIZE")]
    buffer: Option<Limit>,
    /// The bottleneck's queue: droptail, codel, fq_codel, pie, dualpi2, l4span or abc [default: droptail]
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

fn preset(name: &str) -> Result<&'static Preset, String> {
    CellCompareSpec::preset(name).map_err(|error| error.to_string())
}

/// The algorithms that are compared by default.
fn usual() -> Vec<Algorithm> {
    ["cubic", "bbr1", "vegas", "c2tcp:target=50ms"].into_iter().filter_map(|name| name.parse().ok()).collect()
}

impl Compare {
    /// The comparison that the options describe.
    fn plan(&self) -> Result<ComparePlan, SetByTheCell> {
        let options = CompareOptions {
            cell: self.cell,
            trace: self.trace.clone(),
            trace_up: self.trace_up.clone(),
            light: [self.light.clone(), self.light_up.clone()],
            scale: self.scale,
            rate: self.rate,
            cc: self.cc.clone().unwrap_or_else(usual),
            rtt: self.rtt,
            buffer: self.buffer,
            queue: self.queue,
            loss: self.loss,
            time: self.time,
            warmup: self.warmup,
            flows: self.flows,
            seeds: self.seeds,
        };
        options.plan()
    }

    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        if self.all { self.run_all() } else { self.run_one() }
    }

    fn run_all(self) -> Result<(), Failure> {
        let stop = interrupt::begin();
        if let Some(page) = &self.page {
            Survey::check_page(page).map_err(Failure::asked)?;
        }
        let only: Option<Vec<String>> =
            self.cc.as_ref().map(|cc| cc.iter().map(|cc| cc.as_str().to_owned()).collect());
        let spec = SurveySpec::new(self.seeds, only.as_deref()).map_err(Failure::asked)?;
        let plan = spec.plan(&mut self.common.traces()).map_err(Failure::asked)?;
        let store = self.common.store("compare-all")?;
        let runner = Runner {
            threads: self.common.threads,
            stop,
            store: Some(&store),
            what: "comparing all",
            series: false,
            played: None,
        };
        interrupt::work();
        let survey = plan.play(&runner)?;
        interrupt::kept();
        if self.json {
            output::json(&survey.values())?;
        } else {
            output::line(survey.table().to_string())?;
        }
        survey.notes().iter().for_each(|note| common::say(&format!("note: {note}")));
        let report = survey.write(&store, &common::command_line()).map_err(Failure::ours)?;
        common::say(&format!("report: {}", report.display()));
        if survey.interrupted {
            return Err(Failure::Interrupted(
                "stopped; the table and the report hold the complete runs; the same command resumes with the rest"
                    .to_owned(),
            ));
        }
        if let Some(page) = &self.page {
            survey.write_page(page).map_err(Failure::asked)?;
            common::say(&format!("page: {}", page.display()));
        }
        Ok(())
    }

    fn run_one(self) -> Result<(), Failure> {
        let stop = interrupt::begin();
        let plan = self.plan().map_err(Failure::asked)?;
        let jobs = plan.jobs(&mut self.common.traces()).map_err(Failure::asked)?;
        let store = self.common.store(&plan.folder)?;
        let runner = Runner {
            threads: self.common.threads,
            stop,
            store: Some(&store),
            what: "comparing",
            series: true,
            played: None,
        };
        interrupt::work();
        let results = runner.run(&jobs)?;
        interrupt::kept();
        let compared = plan.collect(results);
        let rows = compared.rows();
        if self.json {
            output::json(&rows)?;
        } else if !rows.is_empty() {
            output::line(table::comparison(&rows).to_string())?;
        }
        compared.notes().iter().for_each(|note| common::say(&format!("note: {note}")));
        let text = jobs.first().map_or("", |job| &job.text);
        let page = compared.report(&plan.title, text, &common::command_line()).map_err(Failure::ours)?;
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
