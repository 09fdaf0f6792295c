//! Published experiments, played again and judged.
//!
//! An [`Experiment`] is data; [`play`] turns it into runs and the runs into [`Row`]s. `docs/reproductions.md` says how it
//! is used and what the verdicts mean, `reproductions/` has the experiments with what was found.

mod cells;
mod experiment;
mod functions;
mod functions_models;
mod measure;
mod metric;
mod plan;
mod recordings;
mod show;
mod verdict;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use ranpace_scenario::ScenarioError;
use serde::Serialize;

pub use cells::{Absent, Cell, Cells};
pub use experiment::{
    Criterion, Experiment, ExperimentError, Mean, PlotSpec, Quick, Role, Runs, Scheme, Sensitivity,
    TableSpec, Values,
};
pub use functions::Function;
pub use functions_models::ModelFunction;
pub use measure::{Measure, Measured, Over};
pub use metric::Metric;
pub use plan::{Planned, plan};
pub use recordings::{Recording, Recordings, Refused};
pub use show::{Figures, group, verdict_text};
pub use verdict::{Row, Verdict, verdict_counts};

use crate::plot::PlotError;
use crate::{Job, Runner, Store, StoreError};

/// The folder and the text of an experiment.
macro_rules! embedded {
    ($folder:literal) => {
        (
            concat!("reproductions/", $folder, "/experiment.toml"),
            include_str!(concat!("../../../../reproductions/", $folder, "/experiment.toml")),
        )
    };
}
/// Every experiment that Ranpace knows, as its file and its text.
const EXPERIMENTS: [(&str, &str); 9] = [
    embedded!("001-a1-detector"),
    embedded!("001-a2-umts"),
    embedded!("001-a3-table1"),
    embedded!("001-a4-edge"),
    embedded!("001-a5-friendliness"),
    embedded!("001-a6-target"),
    embedded!("001-a7-buffer"),
    embedded!("001-a8-field"),
    embedded!("004-models"),
];

/// The recordings that experiments use.
const RECORDINGS: &str = include_str!("../../../../reproductions/traces.toml");

/// Why an experiment was not played.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReproduceError {
    /// Its text is wrong.
    #[error("{0}; this is a bug, please report it")]
    Experiment(#[from] ExperimentError),
    /// The list of recordings is wrong.
    #[error("reproductions/traces.toml: {0}; this is a bug, please report it")]
    Recordings(#[from] toml_edit::de::Error),
    /// One of its scenarios is wrong.
    #[error("{0}; this is a bug, please report it")]
    Scenario(#[from] ScenarioError),
    /// A recording is there, but is not what was meant.
    #[error("{0}")]
    Refused(Refused),
    /// A result was not kept.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// A plot was not drawn.
    #[error("{0}")]
    Plot(#[from] PlotError),
}

/// All experiments.
pub fn experiments() -> Result<Vec<Experiment>, ExperimentError> {
    EXPERIMENTS.iter().map(|(file, text)| Experiment::parse(text, file)).collect()
}

/// The recordings that experiments use, to be looked for in these folders and those right below them.
pub fn recordings(folders: Vec<PathBuf>) -> Result<Recordings, ReproduceError> {
    Ok(Recordings::new(RECORDINGS, folders)?)
}

/// An experiment as it is listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Other names that mean it.
    pub alias: Vec<String>,
    /// What it is about.
    pub title: String,
    /// Where it was published.
    pub source: String,
    /// Why it cannot be played yet.
    pub pending: Option<String>,
}

/// What there is, for people and programs.
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

/// The three names nearest to one that does not exist, nearest first.
pub fn nearest(experiments: &[Experiment], name: &str) -> Vec<String> {
    let names = experiments.iter().flat_map(|experiment| experiment.alias.iter().chain([&experiment.id]));
    let mut names: Vec<&String> = names.collect();
    names.sort_by(|a, b| strsim::jaro_winkler(b, name).total_cmp(&strsim::jaro_winkler(a, name)));
    names.into_iter().take(3).cloned().collect()
}

/// How experiments are played.
#[derive(Clone, Copy, Debug)]
pub struct How<'a> {
    /// Threads; 0 for one per core.
    pub threads: usize,
    /// Set to stop.
    pub stop: &'a AtomicBool,
    /// Where results are kept.
    pub store: Option<&'a Store>,
    /// A quick look: shorter runs, fewer points, nothing is judged.
    pub quick: bool,
    /// Also every combination of the experiment's switches.
    pub sensitivity: bool,
}

/// An experiment that was played.
#[derive(Debug)]
pub struct Played {
    /// The experiment; with the combinations of its switches, if they were asked for.
    pub experiment: Experiment,
    /// A row per criterion.
    pub rows: Vec<Row>,
    /// All figures.
    pub cells: Cells,
    /// Recordings that were not there.
    pub missing: Vec<Recording>,
    /// Figures as tables.
    pub tables: Vec<Figures>,
    /// One of its scenarios, for the report.
    pub sample: String,
}

/// Plays an experiment and judges it; `None` if it was stopped before its end. What was complete then is in the store.
pub fn play(
    experiment: &Experiment,
    recordings: &mut Recordings,
    how: &How<'_>,
) -> Result<Option<Played>, ReproduceError> {
    let experiment = if how.sensitivity { experiment.clone().with_sensitivity() } else { experiment.clone() };
    let mut cells = Cells::default();
    let mut missing = Vec::new();
    let mut sample = String::new();
    if experiment.pending.is_none() {
        let planned = plan(&experiment, how.quick)?;
        // A job per run whose recordings are there; for the others, the recordings that they lack.
        let mut jobs = Vec::new();
        let mut lacking = Vec::new();
        for run in &planned {
            match job(run, recordings)? {
                Ok(job) => {
                    jobs.push(job);
                    lacking.push(None);
                }
                Err(traces) => {
                    missing.extend(traces.iter().cloned());
                    lacking.push(Some(traces));
                }
            }
        }
        let show = experiment.show.as_ref();
        let shown = planned.iter().find(|run| show.is_none_or(|show| *show == run.point));
        sample = shown.map_or_else(String::new, |run| run.text.clone());
        let runner = Runner {
            threads: how.threads,
            stop: how.stop,
            store: how.store,
            what: &experiment.id,
            series: true,
        };
        let mut results = runner.run(&jobs)?.into_iter();
        for (run, lacking) in planned.into_iter().zip(lacking) {
            let cell = match lacking {
                Some(traces) => Err(Absent::Trace(traces)),
                None => match results.next().flatten() {
                    Some(result) => Ok(Cell::new(run.places, result)),
                    None => Err(Absent::Run),
                },
            };
            cells.enter(&run.scheme, &run.point, cell);
        }
        if cells.is_unfinished() {
            return Ok(None);
        }
    }
    missing.sort();
    missing.dedup();
    let missing = missing.iter().filter_map(|name| recordings.about(name).cloned()).collect();
    let mut rows = verdict::judge(&experiment, &cells, how.quick);
    let mut tables = show::tables(&experiment, &cells);
    if how.sensitivity
        && let Some((table, row)) = show::sensitivity(&experiment, &cells)
    {
        tables.push(table);
        rows.push(row);
    }
    Ok(Some(Played { experiment, rows, cells, missing, tables, sample }))
}

/// The run as a job, or the recordings that it lacks.
fn job(run: &Planned, recordings: &mut Recordings) -> Result<Result<Job, Vec<String>>, ReproduceError> {
    let label = format!("{} at {}", run.scheme, run.point);
    let scenario = ranpace_scenario::parse(&run.text, &format!("{label}.toml"), recordings);
    let missing = recordings.take_missing();
    if let Some(refused) = recordings.refused() {
        return Err(ReproduceError::Refused(refused.clone()));
    }
    if !missing.is_empty() {
        return Ok(Err(missing));
    }
    // Recordings are what their names say: their sums were compared with those of `traces.toml`.
    Ok(Ok(Job { label, text: run.text.clone(), scenario: scenario?, traces: Vec::new() }))
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
        for (experiment, (file, _)) in experiments.iter().zip(EXPERIMENTS) {
            assert_eq!(file, format!("reproductions/{}/experiment.toml", experiment.id));
            let judged = experiment.schemes.iter().filter(|scheme| scheme.role == Role::Judged).count();
            assert!(judged >= 1 || experiment.pending.is_some(), "{file}: no variant judges");
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
    fn one_pass_of_a_trace_is_played_to_its_end_or_for_the_time_given() {
        let recordings = recordings(Vec::new()).unwrap();
        for experiment in experiments().unwrap() {
            for run in plan(&experiment, false).unwrap() {
                let Some(trace) = run.places.get("trace") else { continue };
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
            criterion: "c".to_owned(),
            robust: true,
            published: "8.95".to_owned(),
            measured: "8.1".to_owned(),
            verdict: Verdict::Reproduced,
        };
        let json = serde_json::to_string(&row).unwrap();
        assert_eq!(
            json,
            r#"{"experiment":"001-a3-table1","criterion":"c","robust":true,"published":"8.95","measured":"8.1","verdict":"reproduced"}"#
        );
        for verdict in
            [Verdict::Reproduced, Verdict::Missed, Verdict::Reported, Verdict::Pending, Verdict::Skipped]
        {
            assert_eq!(serde_json::to_string(&verdict).unwrap(), format!("\"{}\"", verdict.as_str()));
        }
    }
}
