//! `ranpace sweep`.

use std::path::PathBuf;
use std::process::Command;

use ranpace_lab::{Runner, SweepSpec, Variation, table};

use crate::failure::Failure;
use crate::{common, interrupt, output};

/// Play a scenario over a grid of settings and seeds, on all cores
///
/// Every combination of the varied settings is played with every seed. Each result is kept as soon as it is complete. After
/// Ctrl-C, give the same command again to resume; runs whose results exist are not played again.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    ranpace sweep scenario.toml --vary flow.cc=cubic,c2tcp --seeds 40\n  \
    ranpace sweep scenario.toml --vary flow.cc=cubic,bbr1 --vary link.down.rate=5Mbit/s,20Mbit/s,100Mbit/s --json\n  \
    ranpace sweep scenario.toml --vary flow.cc=cubic,bbr1 --seeds 1000 --dask tcp://scheduler:8786 --out /shared/sweep\n\n\
    A key is one of the scenario's: duration, flow.cc, flow.NAME.start, link.NAME.rate, link.NAME.queue.limit, ...")]
pub struct Sweep {
    /// Scenario file
    #[arg(value_name = "SCENARIO")]
    scenario: PathBuf,
    /// A key of the scenario and the values to play; repeat the option for a grid
    #[arg(long, value_name = "KEY=A,B,...")]
    vary: Vec<Variation>,
    /// Runs per combination, with the scenario's seed and the following ones
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    seeds: u32,
    /// Keep and plot the time series of every run (about 60 KB a run instead of 15 KB)
    #[arg(long)]
    series: bool,
    /// Print the table as one JSON document
    #[arg(long)]
    json: bool,
    /// Play on the workers of this Dask scheduler, by the Python package `ranpace`; --out is then the folder of a Parquet data set
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["json", "series"])]
    dask: Option<String>,
    #[command(flatten)]
    common: common::Common,
}

impl Sweep {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        if let Some(address) = &self.dask {
            return self.play_on_cluster(address);
        }
        let stop = interrupt::begin();
        let spec = SweepSpec {
            text: common::read_text(&self.scenario)?,
            file: self.scenario.display().to_string(),
            variations: self.vary,
            seeds: self.seeds,
            skip: 0,
        };
        let jobs = spec.jobs(&mut self.common.traces()).map_err(Failure::asked)?;
        let name = jobs.first().map_or("scenario", |job| &job.scenario.name);
        let store = self.common.store(&format!("sweep-{}", common::folder_name(name)))?;
        let runner = Runner {
            threads: self.common.threads,
            stop,
            store: Some(&store),
            what: "sweeping",
            series: self.series,
            played: None,
        };
        interrupt::work();
        let results = runner.run(&jobs)?;
        interrupt::kept();
        let rows = spec.rows(&results);
        if self.json {
            output::json(&rows)?;
        } else if !rows.is_empty() {
            output::line(table::comparison(&rows).to_string())?;
        }
        let title = format!("Sweep of {name}");
        let page = spec.report(&results, &title, &common::command_line()).map_err(Failure::ours)?;
        store.write_json("sweep.json", &rows)?;
        let report = store.write("report.html", page.as_bytes())?;
        let lost = |run: &&ranpace_sim::RunResult| run.flows.iter().any(|flow| flow.lost.is_some());
        match results.iter().flatten().filter(lost).count() {
            0 => {}
            runs => common::say(&format!(
                "note: flows lost their connections in {runs} runs; the report says which"
            )),
        }
        common::say(&format!("results: {}", store.folder().display()));
        common::say(&format!("report: {}", report.display()));
        let complete = results.iter().flatten().count();
        if complete < results.len() {
            return Err(Failure::Interrupted(format!(
                "stopped; {complete} of {} runs are complete and kept; the same command resumes with the rest",
                results.len()
            )));
        }
        Ok(())
    }
    /// Calls the Python package, which speaks to Dask; its messages and exit status are this command's.
    fn play_on_cluster(&self, address: &str) -> Result<(), Failure> {
        let mut python = Command::new("python3");
        python.args(["-m", "ranpace.cluster", "--dask", address]).arg(&self.scenario);
        for variation in &self.vary {
            python.arg("--vary").arg(format!("{}={}", variation.key, variation.values.join(",")));
        }
        python.args(["--seeds", &self.seeds.to_string()]).arg("--out").arg(&self.common.out);
        if let Some(traces) = &self.common.traces {
            python.arg("--traces").arg(traces);
        }
        let status = python.status().map_err(|error| {
            Failure::asked(format!(
                "--dask needs python3 with the package ranpace (pip install 'ranpace[dask]'): {error}"
            ))
        })?;
        match status.code() {
            Some(0) => Ok(()),
            // Interrupted by a signal: as shells say it.
            code => Err(Failure::Status(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(130), None)),
        }
    }
}
