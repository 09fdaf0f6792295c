//! Published experiments, run again and judged.
//!
//! An [`Experiment`] is data; [`play`] turns it into runs and the runs into [`Row`]s. `docs/reproductions.md` explains its use and
//! the verdicts, `reproductions/` contains the experiments with their findings.

mod algebra;
mod base;
mod beside;
mod c2tcp;
mod check;
mod choices;
mod experiment;
mod faults;
mod figure_table;
mod function;
mod measure;
mod measured;
mod patch;
mod picture;
mod picture_spec;
mod places;
mod plan;
mod points;
mod real;
mod record;
mod recordings;
mod results;
mod rows;
mod runs;
mod show;
mod toml;
mod verdict;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ranpace_link::Trace;
use ranpace_scenario::{ScenarioError, TraceSource};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

pub use algebra::{Expr, OtherFigure, Reduce};
pub use beside::completions;
pub use experiment::{
    Criterion, Experiment, ExperimentError, PlotSpec, Quick, Reading, Real, Role, Scheme, Sensitivity,
    TableSpec, Variation,
};
pub use faults::Faults;
pub use figure_table::FigureTable;
pub use function::Function;
pub use measure::Measure;
pub use measured::{Measured, ModelPlots, Models};
pub use picture::Picture;
pub use picture_spec::{AxisSpec, Form, OneOrMore, PictureSpec, Published, Samples, SeriesSpec, Show};
pub use places::Set;
pub use plan::{Planned, plan, vary};
pub use points::Mean;
pub use real::time_needed;
pub use record::{
    BEGIN, END, LINUX_BEGIN, LINUX_END, Record, RecordError, RecordedTable, linux_part, overview, part,
    write_overview,
};
pub use recordings::{Recording, Recordings, Refused};
pub use results::{Absent, PlayedRun, Results};
pub use runs::{Point, Runs};
pub use show::{chapter, report, verdict_text};
pub use toml::{Table, Toml};
pub use verdict::{Row, Verdict, verdict_counts};

pub use crate::figure::Values;
use crate::plot::PlotError;
use crate::validate::tcp::Kernel;
use crate::{Job, Runner, Store, StoreError};

/// The files of an experiment.
struct Embedded {
    /// Name of the file that describes it, and its text.
    file: &'static str,
    text: &'static str,
    /// What was measured when it was last recorded: `verdicts.json`.
    record: &'static str,
}

/// The files of experiments, by their folders.
macro_rules! embedded {
    ($($folder:literal),* $(,)?) => {
        &[$(Embedded {
            file: concat!("reproductions/", $folder, "/experiment.toml"),
            text: include_str!(concat!("../../../../reproductions/", $folder, "/experiment.toml")),
            record: include_str!(concat!("../../../../reproductions/", $folder, "/verdicts.json")),
        }),*]
    };
}
/// Every experiment known to Ranpace.
#[rustfmt::skip] // a line for each family
const EXPERIMENTS: &[Embedded] = embedded![
    "000-s1", "000-s2", "000-s3", "000-s4",
    "000-r1", "000-r2", "000-r3", "000-r4", "000-r5", "000-r6", "000-r7",
    "000-o1", "000-o2", "000-o3", "000-o4", "000-o5", "000-o6",
    "001-a1-detector", "001-a2-umts", "001-a3-table1", "001-a4-edge", "001-a5-friendliness",
    "001-a6-target", "001-a7-buffer", "001-a8-field",
    "002-b0-fit", "002-b1-fillup", "002-b2-short", "002-b3-bursty", "002-b4-checks",
    "003-m1-m4-download", "003-m-control", "003-m-rfc9002", "003-m5-loss", "003-m6-feed",
    "004-4-reno-cubic", "004-5-tracking", "004-5-dcic", "004-5-fit", "004-6-fit",
    "004-6-estimator-wired", "004-6-estimator-lte", "004-6-run", "004-6-table", "004-models",
    "004-7-states", "004-7-bandwidth", "004-7-ddl-gc", "004-7-fqm-dual", "004-7-matrix", "004-7-lte",
    "004-7-drops",
    "edge-together", "edge-sigma", "edge-meld", "edge-rapid",
    "peers-dualpi2", "peers-l4span", "peers-abc", "peers-lda", "peers-xtcp", "peers-natcp",
    "peers-guidance", "peers-milliproxy",
    "peers-bbr3", "peers-copa", "peers-pbe", "peers-rlc",
];

/// The recordings that experiments use.
const RECORDINGS: &str = include_str!("../../../../reproductions/traces.toml");

/// Why an experiment was not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReproduceError {
    /// Its text is invalid.
    #[error("{0}; this is a bug, please report it")]
    Experiment(#[from] ExperimentError),
    /// The list of recordings is invalid.
    #[error("reproductions/traces.toml: {0}; this is a bug, please report it")]
    Recordings(#[from] toml_edit::de::Error),
    /// Its record is invalid.
    #[error("verdicts.json beside {file}: {error}; this is a bug, please report it")]
    Record {
        /// The file that describes the experiment.
        file: &'static str,
        /// Why.
        #[source]
        error: serde_json::Error,
    },
    /// One of its scenarios is invalid.
    #[error("{0}; this is a bug, please report it")]
    Scenario(#[from] ScenarioError),
    /// A recording exists, but has another content than expected.
    #[error("{0}")]
    Refused(Refused),
    /// An emulation failed.
    #[error("{run}: the emulation failed: {why}")]
    Emulation {
        /// The run.
        run: String,
        /// Why.
        why: String,
    },
    /// A result could not be stored.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// A plot could not be drawn.
    #[error("{0}")]
    Plot(#[from] PlotError),
}

/// All experiments.
pub fn experiments() -> Result<Vec<Experiment>, ExperimentError> {
    EXPERIMENTS.iter().map(|embedded| Experiment::parse(embedded.text, embedded.file)).collect()
}

/// All experiments, each with what was measured when it was last recorded in the sources of this build.
pub fn recorded() -> Result<Vec<(Experiment, Record)>, ReproduceError> {
    let read = |(experiment, embedded): (Experiment, &Embedded)| match serde_json::from_str(embedded.record) {
        Ok(record) => Ok((experiment, record)),
        Err(error) => Err(ReproduceError::Record { file: embedded.file, error }),
    };
    experiments()?.into_iter().zip(EXPERIMENTS).map(read).collect()
}

/// The recordings that experiments use, searched for in these folders and their direct subfolders.
pub fn recordings(folders: Vec<PathBuf>) -> Result<Recordings, ReproduceError> {
    Ok(Recordings::new(RECORDINGS, folders)?)
}

/// An entry in the list of experiments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Other names that mean it.
    pub alias: Vec<String>,
    /// Its topic.
    pub title: String,
    /// The place of publication.
    pub source: String,
    /// Why it cannot be run yet.
    pub pending: Option<String>,
}

/// The list, for people and programs.
pub fn listing(experiments: &[Experiment]) -> Vec<Listed> {
    let listed = |experiment: &Experiment| Listed {
        name: experiment.id.clone(),
        alias: experiment.alias.clone(),
        title: experiment.title.clone(),
        source: experiment.source.clone(),
        pending: experiment.pending.clone(),
    };
    experiments.iter().map(listed).collect()
}

/// The three names nearest to an unknown one, nearest first.
pub fn nearest(experiments: &[Experiment], name: &str) -> Vec<String> {
    let names = experiments.iter().flat_map(|experiment| experiment.alias.iter().chain([&experiment.id]));
    let mut names: Vec<&String> = names.collect();
    names.sort_by(|a, b| strsim::jaro_winkler(b, name).total_cmp(&strsim::jaro_winkler(a, name)));
    names.into_iter().take(3).cloned().collect()
}

/// There is no experiment of that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no experiment {name:?}; nearest: {near}; `ranpace reproduce --list` shows all")]
pub struct UnknownExperiment {
    /// The name asked for.
    pub name: String,
    /// The most similar names.
    pub near: String,
}

/// The experiments that are meant, in the order in which they are listed.
///
/// # Errors
///
/// If a name means none.
pub fn chosen<'a>(
    experiments: &'a [Experiment],
    names: &[String],
) -> Result<Vec<&'a Experiment>, UnknownExperiment> {
    for name in names {
        if !experiments.iter().any(|experiment| experiment.is_called(name)) {
            let near = nearest(experiments, name).join(", ");
            return Err(UnknownExperiment { name: name.clone(), near });
        }
    }
    let is_meant = |experiment: &&Experiment| names.iter().any(|name| experiment.is_called(name));
    Ok(experiments.iter().filter(is_meant).collect())
}

/// How experiments are run.
#[derive(Clone, Copy, Debug)]
pub struct How<'a> {
    /// Threads; 0 for one per core.
    pub threads: usize,
    /// Set to stop.
    pub stop: &'a AtomicBool,
    /// The store of results.
    pub store: Option<&'a Store>,
    /// A quick look: shorter runs, fewer points, no judgement.
    pub quick: bool,
    /// Also runs every combination of the experiment's switches.
    pub sensitivity: bool,
    /// Measures without runs, which experiments call by name.
    pub models: Models,
}

/// An experiment that was run.
#[derive(Debug)]
pub struct Played {
    /// The experiment; with the combinations of its switches, if requested.
    pub experiment: Experiment,
    /// A row per criterion.
    pub rows: Vec<Row>,
    /// All figures.
    pub results: Results,
    /// Recordings that were not found.
    pub missing: Vec<Recording>,
    /// Figures as tables.
    pub tables: Vec<FigureTable>,
    /// One of its scenarios, for the report.
    pub sample: String,
}

/// Runs an experiment and judges it; `None` if it was stopped before its end. Completed runs are in the store.
pub fn play(
    experiment: &Experiment,
    recordings: &mut Recordings,
    how: &How<'_>,
) -> Result<Option<Played>, ReproduceError> {
    play_by(experiment, recordings, how, None)
}

/// The same in real time, by a kernel.
pub fn play_on(
    kernel: &dyn Kernel,
    experiment: &Experiment,
    recordings: &mut Recordings,
    how: &How<'_>,
) -> Result<Option<Played>, ReproduceError> {
    play_by(experiment, recordings, how, Some(kernel))
}

fn play_by(
    experiment: &Experiment,
    recordings: &mut Recordings,
    how: &How<'_>,
    kernel: Option<&dyn Kernel>,
) -> Result<Option<Played>, ReproduceError> {
    let always = experiment.sensitivity.as_ref().is_some_and(|sensitivity| sensitivity.always);
    let switches = how.sensitivity || (always && !how.quick);
    let experiment = if switches { experiment.clone().with_sensitivity() } else { experiment.clone() };
    let mut results = Results::new(how.models);
    let mut missing = Vec::new();
    let mut sample = String::new();
    let mut same = Vec::new();
    let always = experiment.variation.as_ref().is_some_and(|variation| variation.always);
    let varies = how.sensitivity || (always && !how.quick);
    if experiment.pending.is_none() {
        let mut planned = plan(&experiment, how.quick)?;
        let show = experiment.show.as_ref();
        let shown = planned.iter().find(|run| show.is_none_or(|show| *show == run.point));
        sample = shown.map_or_else(String::new, |run| run.text.clone());
        if varies {
            same = add_variation(&experiment, how.quick, &mut planned)?;
        }
        // A job per run whose recordings exist; for the others, the missing recordings.
        let (mut jobs, mut of_job) = (Vec::new(), Vec::new());
        let mut found: Vec<Result<PlayedRun, Absent>> = Vec::new();
        for (index, run) in planned.iter().enumerate() {
            match job(&experiment, run, recordings)? {
                Ok(job) => {
                    jobs.push(job);
                    of_job.push(index);
                    found.push(Err(Absent::Run));
                }
                Err(traces) => {
                    missing.extend(traces.iter().cloned());
                    found.push(Err(Absent::Trace(traces)));
                }
            }
        }
        let runner = Runner {
            threads: how.threads,
            stop: how.stop,
            store: how.store,
            what: &experiment.id,
            series: experiment.series,
            played: None,
        };
        let take = |job: usize, result| {
            let run = PlayedRun::new(planned[of_job[job]].places.clone(), result);
            if experiment.series { run } else { run.slim() }
        };
        let played: Vec<Result<PlayedRun, Absent>> = match kernel {
            None => {
                let played = runner.run_with(&jobs, take)?;
                played.into_iter().map(|run| run.ok_or(Absent::Run)).collect()
            }
            Some(kernel) => {
                let played = real::emulate(&jobs, how, kernel, &experiment.id)?.into_iter();
                played.enumerate().map(|(job, result)| result.map(|result| take(job, result))).collect()
            }
        };
        for (index, run) in of_job.into_iter().zip(played) {
            found[index] = run;
        }
        for (planned, run) in planned.into_iter().zip(found) {
            results.enter(&planned.scheme, &planned.point, run);
        }
        for (scheme, as_well, point) in &same {
            results.enter_same(scheme, as_well, point);
        }
        if results.is_unfinished() {
            return Ok(None);
        }
    }
    missing.sort();
    missing.dedup();
    let missing = missing.iter().filter_map(|name| recordings.about(name).cloned()).collect();
    let mut rows = verdict::judge(&experiment, &results, how.quick);
    let mut tables = show::tables(&experiment, &results);
    // Combinations that are always run are recorded as a table; only criteria then have rows.
    if switches && let Some((table, row)) = choices::sensitivity(&experiment, &results) {
        tables.push(table);
        if how.sensitivity {
            rows.push(row);
        }
    }
    if varies && let Some((table, row)) = choices::variation(&experiment, &results) {
        tables.push(table);
        if how.sensitivity {
            rows.push(row);
        }
    }
    Ok(Some(Played { experiment, rows, results, missing, tables, sample }))
}

/// Adds the runs of `[variation]`, except those that exist already, because not every value affects every run. Existing ones are
/// returned: the label under which a run exists, the label under which it counts too, and the point.
fn add_variation(
    experiment: &Experiment,
    quick: bool,
    planned: &mut Vec<Planned>,
) -> Result<Vec<(String, String, String)>, ReproduceError> {
    let mut same = Vec::new();
    let Some(variation) = &experiment.variation else { return Ok(same) };
    let tables = experiment.tables.iter().filter(|table| variation.tables.contains(&table.id));
    let mut schemes: Vec<String> =
        tables.flat_map(|table| table.published.keys().chain(&table.to)).cloned().collect();
    let criteria = experiment.criteria.iter().filter(|criterion| variation.criteria.contains(&criterion.id));
    schemes.extend(criteria.filter_map(|criterion| criterion.measure.as_ref()).flat_map(Measure::schemes));
    let mut known: HashMap<(String, String), String> =
        planned.iter().map(|run| ((run.point.clone(), run.text.clone()), run.scheme.clone())).collect();
    for with in variation.combinations() {
        let runs = vary(experiment, quick, &with)?;
        for mut run in runs.into_iter().filter(|run| schemes.contains(&run.scheme)) {
            let key = (run.point.clone(), run.text.clone());
            run.scheme = choices::varied(&run.scheme, &with);
            if let Some(played) = known.get(&key) {
                same.push((played.clone(), run.scheme, run.point));
            } else {
                known.insert(key, run.scheme.clone());
                planned.push(run);
            }
        }
    }
    Ok(same)
}

/// Recordings, and the files that belong to an experiment.
struct Files<'a> {
    recordings: &'a mut Recordings,
    own: &'a Values,
    /// Digests of those used so far.
    digests: Vec<String>,
}

impl TraceSource for Files<'_> {
    fn load(&mut self, name: &str) -> Result<Arc<Trace>, String> {
        self.recordings.load(name)
    }

    fn text(&mut self, name: &str) -> Result<Arc<str>, String> {
        let Some(text) = self.own.get(name) else { return self.recordings.text(name) };
        self.digests.push(Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect());
        Ok(text.as_str().into())
    }
}

/// The run as a job, or its missing recordings.
fn job(
    experiment: &Experiment,
    run: &Planned,
    recordings: &mut Recordings,
) -> Result<Result<Job, Vec<String>>, ReproduceError> {
    let label = format!("{} at {}", run.scheme, run.point);
    let mut files = Files { recordings, own: &experiment.files, digests: Vec::new() };
    let scenario = ranpace_scenario::parse(&run.text, &format!("{label}.toml"), &mut files);
    // Names identify recordings, because their digests were compared with those of `traces.toml`.
    let traces = files.digests;
    let missing = recordings.take_missing();
    if let Some(refused) = recordings.refused() {
        return Err(ReproduceError::Refused(refused.clone()));
    }
    if !missing.is_empty() {
        return Ok(Err(missing));
    }
    Ok(Ok(Job { label, text: run.text.clone(), scenario: scenario?, traces }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_embedded_experiment_is_understood() {
        let experiments = experiments().unwrap();
        let recordings = recordings(Vec::new()).unwrap();
        let mut names: Vec<&String> = experiments
            .iter()
            .flat_map(|experiment| experiment.alias.iter().chain([&experiment.id]))
            .collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count, "a name is used twice");
        for (experiment, &Embedded { file, .. }) in experiments.iter().zip(EXPERIMENTS) {
            assert_eq!(file, format!("reproductions/{}/experiment.toml", experiment.id));
            let judged = experiment.schemes.iter().filter(|scheme| scheme.role == Role::Judged).count();
            let judges = experiment.criteria.iter().any(|criterion| criterion.robust);
            assert!(judged >= 1 || !judges || experiment.pending.is_some(), "{file}: no variant judges");
            for quick in [false, true] {
                for run in plan(experiment, quick).unwrap() {
                    if let Some(trace) = run.places.get("trace") {
                        assert!(recordings.about(trace).is_some(), "{file}: {trace} has no source");
                    }
                }
            }
        }
    }

    #[test]
    fn every_planned_run_is_a_scenario() {
        let mut recordings = recordings(Vec::new()).unwrap();
        for experiment in experiments().unwrap() {
            for experiment in experiment.on_linux().into_iter().chain([experiment]) {
                for quick in [false, true] {
                    for run in plan(&experiment, quick).unwrap() {
                        job(&experiment, &run, &mut recordings).unwrap().ok();
                    }
                }
            }
        }
    }

    #[test]
    fn the_example_of_the_guide_is_an_experiment() {
        let guide = include_str!("../../../../docs/reproductions.md");
        let (_, rest) = guide.split_once("```toml\n").unwrap();
        let experiment = Experiment::parse(rest.split_once("```").unwrap().0, "the guide").unwrap();
        let planned = plan(&experiment, false).unwrap();
        assert_eq!(planned.len(), 4 * 5 * 2);
        let mut recordings = recordings(Vec::new()).unwrap();
        for run in &planned {
            let job = job(&experiment, run, &mut recordings).unwrap().unwrap();
            assert_eq!(job.scenario.proxies.len(), usize::from(run.scheme != "none"), "{}", run.scheme);
        }
        let last = planned.last().unwrap();
        assert_eq!((last.scheme.as_str(), last.point.as_str()), ("split, 50 ms", "20Mbit/s drop 5"));
        assert!(last.text.contains("rate = \"20Mbit/s\"\ndelay = \"50ms\""), "{}", last.text);
    }

    #[test]
    fn one_pass_of_a_trace_is_played_to_its_end_or_for_the_time_given() {
        let recordings = recordings(Vec::new()).unwrap();
        for experiment in experiments().unwrap() {
            for run in plan(&experiment, false).unwrap() {
                let Some(trace) = run.places.get("trace") else { continue };
                // A trace that repeats has no end.
                if run.text.contains("repeat = true") {
                    continue;
                }
                let span = |text: &str| text.parse::<ranpace_units::Span>().unwrap();
                let (length, given) =
                    (span(&recordings.about(trace).unwrap().length), run.places.get("given"));
                let expected = given.map_or(length, |given| span(given).min(length));
                assert_eq!(span(&run.places["duration"]), expected, "{}: {trace}", experiment.id);
            }
        }
    }

    #[test]
    fn rows_are_written_with_their_documented_fields() {
        let row = Row {
            experiment: "001-a3-table1".to_owned(),
            id: "i".to_owned(),
            criterion: "c".to_owned(),
            robust: true,
            published: "8.95".to_owned(),
            bounds: "at least 4".to_owned(),
            measured: "8.1".to_owned(),
            value: None,
            verdict: Verdict::Reproduced,
        };
        let json = serde_json::to_string(&row).unwrap();
        assert_eq!(
            json,
            r#"{"experiment":"001-a3-table1","id":"i","criterion":"c","robust":true,"published":"8.95","bounds":"at least 4","measured":"8.1","verdict":"reproduced"}"#
        );
        for verdict in Verdict::ALL {
            assert_eq!(serde_json::to_string(&verdict).unwrap(), format!("\"{}\"", verdict.as_str()));
        }
    }
}
