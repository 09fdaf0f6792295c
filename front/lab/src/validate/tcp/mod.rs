//! The simulator's TCP beside the kernel's: the same scenarios in virtual time and, by an emulation, over the kernel's own reno,
//! cubic and bbr (`ranpace validate tcp`), or over our controls inside the kernel (`ranpace validate kernel`). The kernel's figure is
//! the expected one.
//!
//! [`grid`] and [`controls`] define what is run, [`figures`] what is measured of it and the allowed differences. The caller provides the
//! emulation: [`Kernel`]. Completed runs are kept in the [`Store`], and not repeated.

mod controls;
mod figures;
mod grid;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use ranpace_scenario::ScenarioError;
use ranpace_sim::RunResult;

use super::Row as Compared;
use crate::{Job, Origin, Progress, Runner, Store, StoreError, TraceLibrary};

pub use figures::{COMPLETION_PERCENT, Figures, GOODPUT_PERCENT, RTT_PERCENT};
pub use grid::{LENGTH, RECORDING, RUNS};

/// Repetitions of a run in which the machine did not keep up.
pub const REPEATS: u32 = 3;
/// Share of the rows that must be valid for a verdict.
pub const VALID_SHARE: f64 = 0.8;
/// Share of the judged figures of valid rows that must agree.
pub const OK_SHARE: f64 = 0.9;

/// The subject of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grid {
    /// The simulator's reno, cubic and bbr with the kernel's.
    Plain,
    /// The simulator's controls with the same ones as programs of the kernel.
    Controls,
}

impl Grid {
    /// Its rows: those of `--quick` alone if so, and of these the ones whose name has one of the words, if there are any.
    fn rows(self, quick: bool, only: &[String]) -> Result<Vec<Row>, TcpError> {
        let all = match self {
            Self::Plain => grid::rows(quick),
            Self::Controls => controls::rows(quick),
        };
        let is_meant = |row: &Row| only.is_empty() || only.iter().any(|word| row.name.contains(word));
        let (meant, others): (Vec<Row>, Vec<Row>) = all.into_iter().partition(is_meant);
        if meant.is_empty() {
            let names: Vec<String> = others.into_iter().map(|row| row.name).collect();
            return Err(TcpError::NoRow { asked: only.join("\", \""), names: names.join("\n  ") });
        }
        Ok(meant)
    }
}

/// One scenario that is run by both clocks.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its unique name.
    pub name: String,
    /// The scenario; what differs between its runs is in braces.
    text: String,
    figures: Figures,
    /// A recording that it uses.
    needs: Option<&'static str>,
}

/// Outcome of an emulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// It is in the store, under the given origin.
    Kept,
    /// The machine could not keep up: why.
    Invalid(String),
    /// It was stopped from outside.
    Stopped,
    /// It could not be run: why.
    Failed(String),
}

/// Runs a scenario over the kernel's TCP.
pub trait Kernel: Sync {
    /// Runs it in real time, and saves the result in the store under this origin if it is valid.
    fn play(&self, job: &Job, origin: &Origin) -> Attempt;

    /// The kernel's version and the loaded controls: runs of others are repeated.
    fn release(&self) -> String;
}

/// The settings with which the grid is run.
pub struct How<'a> {
    /// The subject of the comparison.
    pub grid: Grid,
    /// The rows of `--quick`, once each.
    pub quick: bool,
    /// Only rows whose name has one of these words are played; all if there are none.
    pub only: &'a [String],
    /// Concurrent emulations; 0 for one more than there are cores, at most 3.
    pub side_by_side: usize,
    /// The store of completed runs.
    pub store: &'a Store,
    /// Set to stop.
    pub stop: &'a AtomicBool,
    /// The other clock.
    pub kernel: &'a dyn Kernel,
}

/// The findings.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The figures of the valid rows, in the order of the grid.
    pub rows: Vec<Compared>,
    /// Rows with only valid runs.
    pub valid: usize,
    /// Rows with a run in which the machine did not keep up, even after repetitions: their names, and why.
    pub invalid: Vec<(String, String)>,
    /// Rows that were not run, because a recording is missing: their names.
    pub skipped: Vec<String>,
    /// Rows that were incomplete when it was stopped.
    pub left: usize,
    /// Emulations that were repeated.
    pub repeated: usize,
}

impl Found {
    /// Judged figures that agree, and all judged ones.
    pub fn agreeing(&self) -> (usize, usize) {
        let judged = self.rows.iter().filter_map(|row| row.ok);
        (judged.clone().filter(|ok| *ok).count(), judged.count())
    }

    /// Returns whether enough rows are valid.
    pub fn is_enough(&self) -> bool {
        let played = self.valid + self.invalid.len();
        played > 0 && self.valid as f64 >= VALID_SHARE * played as f64
    }

    /// Returns whether enough figures agree.
    pub fn agrees(&self) -> bool {
        let (ok, judged) = self.agreeing();
        ok as f64 >= OK_SHARE * judged as f64
    }
}

/// Why the comparison failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TcpError {
    /// A scenario of the grid was refused, which is a fault of ours or of a recording.
    #[error("{0}")]
    Scenario(#[from] ScenarioError),
    /// There is no row of this name.
    #[error("no row has {asked:?} in its name; the rows are:\n  {names}")]
    NoRow {
        /// The part of a name that was asked for.
        asked: String,
        /// The rows there are.
        names: String,
    },
    /// Results could not be stored.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An emulation could not be played.
    #[error("{row}: the emulation failed: {why}")]
    Kernel {
        /// The row.
        row: String,
        /// Why.
        why: String,
    },
}

/// Runs the grid and compares. The simulator's runs come first, because they would slow down the emulations.
pub fn play(how: &How<'_>, traces: &mut TraceLibrary) -> Result<Found, TcpError> {
    let mut found = Found::default();
    let (present, absent): (Vec<Row>, Vec<Row>) = (how.grid.rows(how.quick, how.only)?.into_iter())
        .partition(|row| row.needs.is_none_or(|recording| traces.find(recording).is_ok()));
    found.skipped = absent.into_iter().map(|row| row.name).collect();
    let runs = if how.quick { 1 } else { RUNS };
    let mut jobs = Vec::new();
    for row in &present {
        for run in 1..=runs {
            jobs.push(Job::new(&row.name, grid::scenario(row, run), &row.name, traces)?);
        }
    }
    let row_of = |job: usize| &present[job / runs as usize];
    let figures =
        |job: usize, result: &RunResult| row_of(job).figures.of(result, jobs[job].scenario.flows.len());
    let runner = Runner {
        threads: 0,
        stop: how.stop,
        store: Some(how.store),
        what: "virtual ms",
        series: true,
        played: None,
    };
    let simulated = runner.run_with(&jobs, |job, result| figures(job, &result))?;
    let origins: Vec<Origin> = jobs.iter().map(|job| of_kernel(job, &how.kernel.release())).collect();
    let played = emulate(how, &jobs, &origins, runs as usize)?;
    for (place, row) in present.iter().enumerate() {
        let range = place * runs as usize..(place + 1) * runs as usize;
        found.repeated += played[range.clone()].iter().map(|run| run.1 as usize).sum::<usize>();
        if let Some(why) = played[range.clone()].iter().find_map(|run| run.0.as_ref()?.as_ref().err()) {
            found.invalid.push((row.name.clone(), why.clone()));
            continue;
        }
        let kernel: Vec<Vec<f64>> = range
            .clone()
            .filter_map(|run| {
                played[run].0.as_ref()?;
                how.store.load(&origins[run]).map(|result| figures(run, &result))
            })
            .collect();
        let ours: Vec<&Vec<f64>> = simulated[range].iter().flatten().collect();
        if kernel.len() < runs as usize || ours.len() < runs as usize {
            found.left += 1;
            continue;
        }
        found.valid += 1;
        for (number, (what, percent)) in row.figures.measures().iter().enumerate() {
            let check = format!("{}: {what}", row.name);
            let expected = figures::mean(kernel.iter().map(|run| run[number]));
            let measured = figures::mean(ours.iter().map(|run| run[number]));
            found.rows.push(match percent {
                Some(percent) => Compared::within_percent(check, expected, measured, *percent),
                None => Compared::printed(check, expected, measured),
            });
        }
    }
    Ok(found)
}

/// The origin of a kernel's run: it does not depend on the version of our TCP.
fn of_kernel(job: &Job, release: &str) -> Origin {
    Origin { version: format!("kernel {release}"), ..job.origin() }
}

/// Per emulation: whether it is stored, or why it is invalid, `None` if it was not run; and the number of repetitions.
type Played = (Option<Outcome>, u32);
/// The outcome of an emulation: it is stored, or why it is invalid.
type Outcome = Result<(), String>;

/// Runs what is not in the store: the first run of all rows, then the second, so that neighbours, which are at different rates,
/// share the machine, instead of three runs at the highest one. `jobs` lists the runs of a row consecutively. Invalid runs are
/// repeated after all others, with fewer concurrent ones, and alone the last time, because whatever disturbed the machine may be
/// over.
fn emulate(how: &How<'_>, jobs: &[Job], origins: &[Origin], runs: usize) -> Result<Vec<Played>, TcpError> {
    let progress = Progress::new(jobs.len() as u64, "emulations");
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let side_by_side = if how.side_by_side == 0 { (cores + 1).min(3) } else { how.side_by_side };
    let rows = jobs.len() / runs;
    let mut todo: Vec<usize> = (0..jobs.len()).map(|count| count % rows * runs + count / rows).collect();
    let mut played: Vec<Played> = vec![(None, 0); jobs.len()];
    for repeat in 0..=REPEATS {
        let lanes = match repeat {
            0 => side_by_side,
            REPEATS => 1,
            _ => side_by_side.min(cores),
        };
        let tell = |job: &Job, outcome: Option<&Outcome>| match outcome {
            None => progress.note(&job.label),
            Some(Err(why)) if repeat < REPEATS => {
                progress.line(&format!("{}: to be played again: {why}", job.label));
            }
            Some(_) => progress.advance(1),
        };
        let outcomes = play_once(how, jobs, origins, (&todo, lanes), &tell)?;
        for (number, outcome) in todo.iter().zip(outcomes) {
            played[*number] = (outcome, repeat);
        }
        todo.retain(|number| matches!(played[*number].0, Some(Err(_))));
        if todo.is_empty() || how.stop.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(played)
}

/// Runs these jobs once, this many at a time, and reports when each begins and ends; the outcome of each is at its index in `todo`.
fn play_once(
    how: &How<'_>,
    jobs: &[Job],
    origins: &[Origin],
    (todo, lanes): (&[usize], usize),
    tell: &(dyn Fn(&Job, Option<&Outcome>) + Sync),
) -> Result<Vec<Option<Outcome>>, TcpError> {
    let outcomes = Mutex::new(vec![None; todo.len()]);
    let failure = Mutex::new(None);
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let work = || {
        let claim = || {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let number = *todo.get(place)?;
            Some((place, jobs.get(number)?, origins.get(number)?))
        };
        let is_over = || how.stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed);
        while let Some((place, job, origin)) = claim() {
            // Complete rows are reported even after a stop.
            let outcome = if how.store.load(origin).is_some() {
                Some(Ok(()))
            } else if is_over() {
                None
            } else {
                tell(job, None);
                match how.kernel.play(job, origin) {
                    Attempt::Kept => Some(Ok(())),
                    Attempt::Stopped => None,
                    Attempt::Invalid(why) => Some(Err(why)),
                    Attempt::Failed(why) => {
                        failed.store(true, Ordering::Relaxed);
                        if let Ok(mut failure) = failure.lock() {
                            failure.get_or_insert(TcpError::Kernel { row: job.label.clone(), why });
                        }
                        None
                    }
                }
            };
            if let Some(outcome) = &outcome {
                tell(job, Some(outcome));
            }
            if let Ok(mut outcomes) = outcomes.lock() {
                outcomes[place] = outcome;
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..lanes.clamp(1, todo.len().max(1)) {
            scope.spawn(work);
        }
    });
    match failure.into_inner() {
        Ok(Some(failure)) => Err(failure),
        // A panic in a thread has already propagated out of the scope, so the lock cannot be poisoned.
        _ => Ok(outcomes.into_inner().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests;
