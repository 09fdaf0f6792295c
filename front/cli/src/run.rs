//! `ranpace run`.

use std::path::PathBuf;

use ranpace_lab::{Capture, Job, RunSummary, flow_rows, notes, peps, proxies, radio, run_report, table};
use ranpace_sim::Simulation;

use crate::failure::Failure;
use crate::{common, interrupt, output};

/// Play a scenario in virtual time and write its results and a report
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    ranpace run scenario.toml --out results/\n  \
    ranpace run scenario.toml --pcap --json\n  \
    ranpace run scenario.toml --seed 7\n\n\
    docs/scenarios.md describes the file. Results: a Parquet file per flow, link and user, summary.json, report.html.")]
pub struct Run {
    /// Scenario file
    #[arg(value_name = "SCENARIO")]
    scenario: PathBuf,
    /// Seed to play with instead of the file's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Write the packets of each link to LINK.pcap, and of each radio to USER.down.pcap and USER.up.pcap (headers only)
    #[arg(long)]
    pcap: bool,
    /// Record the cells in this file, to be replayed to an RNIS server: users, grants and queues of every slot, handovers and
    /// signals, as lines of JSON
    #[arg(long, value_name = "FILE", conflicts_with = "pcap")]
    rnis_record: Option<PathBuf>,
    /// Print the summary as one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    common: common::Common,
}

impl Run {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let stop = interrupt::begin();
        let file = self.scenario.display().to_string();
        let mut text = common::read_text(&self.scenario)?;
        if let Some(seed) = self.seed {
            text = ranpace_scenario::vary(&text, "seed", &seed.to_string())?;
        }
        let mut job = Job::new("", text, &file, &mut self.common.traces())?;
        job.label.clone_from(&job.scenario.name);
        let store = self.common.store(&common::folder_name(&job.scenario.name))?;
        let length = job.scenario.duration.as_millis();
        let progress = ranpace_lab::Progress::new(length, &job.label);
        let mut go_on = |now: ranpace_units::Time| {
            progress.set(now.as_millis());
            !stop.load(std::sync::atomic::Ordering::Relaxed)
        };
        interrupt::work();
        let (result, captures) = if self.pcap {
            let links = ranpace_sim::link_names(&job.scenario);
            let links = links.iter().map(String::as_str);
            let mut capture = Capture::create(store.folder(), links).map_err(Failure::ours)?;
            let result = Simulation::new(&job.scenario).with_tap(&mut capture).run_while(&mut go_on);
            (result, capture.finish().map_err(Failure::ours)?)
        } else if let Some(path) = &self.rnis_record {
            (crate::record::play(&job.scenario, path, &mut go_on)?, Vec::new())
        } else {
            (Simulation::new(&job.scenario).run_while(&mut go_on), Vec::new())
        };
        drop(progress);
        let origin = job.origin();
        let folder = store.save(&origin, &result)?;
        interrupt::kept();
        let rows = flow_rows(&result);
        let report = run_report(
            job.scenario.name.clone(),
            common::command_line(),
            &origin,
            &result,
            &rows,
            Vec::new(),
        );
        let page = store.write("report.html", report.html().map_err(Failure::ours)?.as_bytes())?;
        if self.json {
            output::json(&RunSummary::of(&origin, &result))?;
        } else {
            output::line(table::comparison(&rows).to_string())?;
            let runs = [("", &result)];
            for tables in
                [proxies::tables(&runs), peps::tables(&runs), radio::tables(&runs)].into_iter().flatten()
            {
                output::line(tables)?;
            }
        }
        notes::of_run(&result).iter().for_each(|note| common::say(&format!("note: {note}")));
        common::say(&format!("results: {}", folder.display()));
        for path in captures {
            common::say(&format!("capture: {}", path.display()));
        }
        common::say(&format!("report: {}", page.display()));
        if result.interrupted {
            return Err(Failure::Interrupted(format!(
                "stopped after {} of {}; what was measured until then is in the results and the report",
                result.end, job.scenario.duration
            )));
        }
        Ok(())
    }
}
