//! `ranpace reproduce`.

use std::fmt::Write as _;
use std::path::PathBuf;

use ranpace_lab::Store;
use ranpace_lab::reproduce::{
    self, Experiment, How, Played, Record, Recording, Recordings, ReproduceError, Row, verdict_counts,
    verdict_text,
};
#[cfg(target_os = "linux")]
use ranpace_lab::validate::tcp::Grid;
#[cfg(target_os = "linux")]
use ranpace_units::Span;

use crate::failure::Failure;
#[cfg(target_os = "linux")]
use crate::validate::{Processes, release};
use crate::{common, interrupt, output};

/// Play published experiments again, and judge whether their results hold
///
/// Every criterion gets a verdict: reproduced; depends (one admissible reading of the source meets it, another misses it);
/// missed; finding (missed, and a second reader found no admissible reading that meets it); reported (it depends on details
/// that the source does not give); pending (it needs something that is not built yet); or skipped (it needs a recording that
/// is missing). A missed criterion is not an error: the exit status is 0 if the experiments were played.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    ranpace reproduce --list\n  \
    ranpace reproduce c2tcp-table1 --traces DIR\n  \
    ranpace reproduce 001 --traces DIR --json\n  \
    ranpace reproduce 000 --real                    on Linux too, with `ranpace proxy`; needs root\n  \
    ranpace reproduce 002 --real --quick            as a quick look, with `ranpace pep` and the kernel's mdcc\n  \
    ranpace reproduce 003 --real                    MELD over QUIC, by `ranpace serve` and `ranpace fetch`\n\n\
    Recorded traces are not part of Ranpace; docs/reproductions.md says where they come from. The recorded\n\
    verdicts, and the reasons for what was missed, are in reproductions/.")]
pub struct Reproduce {
    /// Experiments: a name, an alias, or the beginning of a name ("001" for all of that document)
    #[arg(value_name = "NAME", required_unless_present = "list")]
    names: Vec<String>,
    /// List the experiments
    #[arg(long, conflicts_with = "names")]
    list: bool,
    /// Print the verdicts as one JSON document
    #[arg(long)]
    json: bool,
    /// Also play every combination of the algorithm's switches, if the experiment defines them (several times the work)
    #[arg(long)]
    sensitivity: bool,
    /// Play shorter runs at fewer points, for a quick look; nothing is judged
    #[arg(long)]
    quick: bool,
    /// Play those that have a part on Linux in real time too: the kernels' TCP over emulated cells, `ranpace proxy`, `ranpace pep`,
    /// our controls in the kernel, `ranpace serve` and `ranpace fetch`, beside the same runs simulated. Needs root
    #[arg(long, conflicts_with_all = ["sensitivity", "list"])]
    real: bool,
    /// Write the verdicts into the experiments' folders of a checkout: verdicts.json, and their part of README.md
    #[arg(
        long,
        value_name = "DIR",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "reproductions",
        conflicts_with_all = ["quick", "sensitivity", "list"]
    )]
    record: Option<PathBuf>,
    #[command(flatten)]
    common: common::Common,
}

impl Reproduce {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let experiments = reproduce::experiments().map_err(Failure::ours)?;
        if self.list {
            return self.list(&experiments);
        }
        let chosen = reproduce::chosen(&experiments, &self.names).map_err(Failure::asked)?;
        let folders = common::trace_folders(self.common.traces.as_ref());
        let mut recordings = reproduce::recordings(folders).map_err(Failure::ours)?;
        let stop = interrupt::flag();
        if self.real {
            return self.play_real(&experiments, &chosen, &mut recordings);
        }
        self.check_places(chosen.iter().map(|experiment| experiment.id.as_str()))?;
        let mut all = Vec::new();
        let mut unrecorded = None;
        for experiment in &chosen {
            let store = Store::open(&self.common.out, &format!("reproduce-{}", experiment.id))?;
            let how = How {
                threads: self.common.threads,
                stop,
                store: Some(&store),
                quick: self.quick,
                sensitivity: self.sensitivity,
                models: ranpace_thesis_models::MODELS,
            };
            let Some(played) = reproduce::play(experiment, &mut recordings, &how).map_err(failure)? else {
                break;
            };
            self.show_tables(&played, &store)?;
            if let Some(folder) = &self.record {
                match Record::of(&played) {
                    Ok(record) => record.write(folder, &experiment.id).map_err(Failure::asked)?,
                    Err(error) => unrecorded = unrecorded.or(Some(error)),
                }
            }
            all.push(played);
        }
        if let Some(folder) = &self.record {
            reproduce::write_overview(folder, &experiments).map_err(Failure::asked)?;
        }
        self.conclude(&all, all.len() < chosen.len())?;
        unrecorded.map_or(Ok(()), |error| Err(Failure::asked(error)))
    }

    /// Fails if a page has no place for what is to be recorded.
    fn check_places<'a>(&self, mut ids: impl Iterator<Item = &'a str>) -> Result<(), Failure> {
        let Some(folder) = &self.record else { return Ok(()) };
        ids.try_for_each(|id| Record::check_place(folder, id, self.real)).map_err(Failure::asked)
    }

    /// Prints the tables of what was played, and keeps them.
    fn show_tables(&self, played: &Played, store: &Store) -> Result<(), Failure> {
        if !self.json {
            for table in played.tables.iter().filter(|table| !table.report_only) {
                output::line(format!("{}: {}\n{}", played.experiment.id, table.title, table.text()))?;
            }
        }
        store.write("tables.txt", tables(played).as_bytes())?;
        Ok(())
    }

    /// Plays the parts on Linux of the chosen experiments, and the same runs simulated.
    #[cfg(target_os = "linux")]
    fn play_real(
        &self,
        experiments: &[Experiment],
        chosen: &[&Experiment],
        recordings: &mut Recordings,
    ) -> Result<(), Failure> {
        let parts: Vec<(&Experiment, Experiment)> =
            chosen.iter().filter_map(|experiment| Some((*experiment, experiment.on_linux()?))).collect();
        if parts.is_empty() {
            let known = experiments.iter().filter(|experiment| experiment.real.is_some());
            let known: Vec<&str> = known.map(|experiment| experiment.id.as_str()).collect();
            return Err(Failure::asked(format!(
                "{} has no part on Linux; these have: {}",
                self.names.join(" "),
                known.join(", ")
            )));
        }
        self.check_places(parts.iter().map(|(experiment, _)| experiment.id.as_str()))?;
        ranpace_emulator::check().map_err(|error| {
            Failure::ours(format!("--real needs root, or what else `ranpace emulate` needs: {error}"))
        })?;
        let mut needed = (0, Span::ZERO);
        for (_, part) in &parts {
            let (count, time) = reproduce::time_needed(part, recordings, self.quick).map_err(failure)?;
            needed = (needed.0 + count, needed.1 + time);
        }
        let minutes = needed.1.as_secs_f64() / 60.0;
        common::say(&format!(
            "{} emulations in real time, one after the other: about {minutes:.1} min if none has to be repeated; what is in the results already is not repeated",
            needed.0
        ));
        let mut all = Vec::new();
        let mut unrecorded = None;
        for (experiment, part) in &parts {
            let folder = format!("reproduce-{}", part.id);
            let store = Store::open(&self.common.out, &folder)?;
            let how = How {
                threads: self.common.threads,
                stop: interrupt::flag(),
                store: Some(&store),
                quick: self.quick,
                sensitivity: false,
                models: ranpace_thesis_models::MODELS,
            };
            let kernel = Processes {
                folder: &folder,
                release: release(Grid::Controls),
                daemons: true,
                out: &self.common.out,
                store: &store,
                traces: self.common.traces.as_deref(),
            };
            // The simulator first, and nothing beside the emulations.
            let simulated = Experiment { id: experiment.id.clone(), ..part.clone() };
            let Some(simulated) = reproduce::play(&simulated, recordings, &how).map_err(failure)? else {
                break;
            };
            let Some(mut played) = reproduce::play_on(&kernel, part, recordings, &how).map_err(failure)?
            else {
                break;
            };
            played.tables.extend(reproduce::completions(&simulated, &played));
            self.show_tables(&played, &store)?;
            if let Some(folder) = &self.record {
                match Record::of(&played) {
                    Ok(record) => record.write_linux(folder, &experiment.id).map_err(Failure::asked)?,
                    Err(error) => unrecorded = unrecorded.or(Some(error)),
                }
            }
            all.extend([simulated, played]);
        }
        if let Some(folder) = &self.record {
            reproduce::write_overview(folder, experiments).map_err(Failure::asked)?;
        }
        self.conclude(&all, all.len() < 2 * parts.len())?;
        unrecorded.map_or(Ok(()), |error| Err(Failure::asked(error)))
    }

    #[cfg(not(target_os = "linux"))]
    fn play_real(&self, _: &[Experiment], _: &[&Experiment], _: &mut Recordings) -> Result<(), Failure> {
        Err(Failure::asked("--real needs Linux"))
    }

    fn list(&self, experiments: &[Experiment]) -> Result<(), Failure> {
        if self.json {
            return output::json(&reproduce::listing(experiments));
        }
        for listed in reproduce::listing(experiments) {
            let pending = if listed.pending.is_some() { " (pending)" } else { "" };
            let alias: String = listed.alias.iter().map(|alias| format!(", {alias}")).collect();
            let names = format!("{}{alias}", listed.name);
            output::line(format!("{names:<42}  {}{pending}\n{:<42}  {}", listed.title, "", listed.source))?;
        }
        Ok(())
    }

    /// The verdicts of what was played, the report, and what is missing.
    fn conclude(&self, all: &[Played], interrupted: bool) -> Result<(), Failure> {
        let rows: Vec<&Row> = all.iter().flat_map(|played| &played.rows).collect();
        if self.json {
            output::json(&rows)?;
        } else if !rows.is_empty() {
            output::line(format!("{}\n{}", verdict_text(&rows), verdict_counts(&rows)))?;
        }
        let mut missing: Vec<&Recording> = all.iter().flat_map(|played| &played.missing).collect();
        missing.sort_by(|a, b| a.name.cmp(&b.name));
        missing.dedup_by(|a, b| a.name == b.name);
        for recording in &missing {
            common::say(&format!(
                "missing recording {} ({})\n  source: {}\n  sha256: {} (unpacked)",
                recording.name, recording.about, recording.source, recording.sha256
            ));
        }
        if !missing.is_empty() {
            common::say("rows that need them are skipped; say where they are with --traces DIR");
        }
        if !all.is_empty() {
            let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
            let store = Store::open(
                &self.common.out,
                &format!(
                    "reproduce-{}{}",
                    common::folder_name(&names.join("-")),
                    if self.real { "-real" } else { "" }
                ),
            )?;
            store.write_json("verdicts.json", &rows)?;
            let page = reproduce::report(all, &missing, self.quick, common::command_line())
                .map_err(Failure::ours)?;
            let path = store.write("report.html", page.as_bytes())?;
            common::say(&format!("report: {}", path.display()));
        }
        if interrupted {
            return Err(Failure::Interrupted(
                "stopped; the verdicts are those of the complete experiments; the same command resumes with the rest"
                    .to_owned(),
            ));
        }
        Ok(())
    }
}

/// Mistakes in the command, which the user can correct, have exit status 2; other errors have 1.
fn failure(error: ReproduceError) -> Failure {
    match error {
        ReproduceError::Refused(refused) => Failure::asked(refused),
        ReproduceError::Store(error) => error.into(),
        other => Failure::ours(other),
    }
}

fn tables(played: &Played) -> String {
    let mut text = String::new();
    for table in &played.tables {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}\n\n{}", table.title, table.text());
    }
    text
}
