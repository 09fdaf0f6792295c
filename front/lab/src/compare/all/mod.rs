//! Every control and mechanism in every situation, in one table: which transport for which cell.
//!
//! [`candidates`] lists what is compared and what each needs, [`situations`](mod@situations) where; [`summary`] brings the results together, relative
//! to CUBIC, and finds the Pareto front; [`page`] writes them for people. A new control is added to the candidates: a test misses it
//! there.

mod candidates;
mod page;
mod page_file;
mod situations;
mod summary;

use std::collections::BTreeMap;
use std::path::PathBuf;

use ranpace_scenario::ScenarioError;
use ranpace_sim::RunResult;
use serde::Serialize;

use self::candidates::{CANDIDATES, Candidate};
pub use self::page_file::SurveyPageError;
pub use self::situations::SituationError;
use self::situations::{Kind, Situation, situations};
use crate::figure::{Figure, Scope};
use crate::figures::Quantity;
use crate::plot::PlotError;
use crate::stats::{self, Estimate};
use crate::{Job, Runner, Store, StoreError, TraceLibrary};

/// What is measured; each kind of situation has some.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Goodput of all flows together; of the compared flow beside CUBIC.
    Goodput,
    /// 95th percentile of the delay in the bottleneck, mean of the flows.
    DelayP95,
    /// Jain's index of the flows' goodputs.
    Fairness,
    /// Share of the goodput beside CUBIC.
    Share,
    /// Time that a file takes.
    Completion,
    /// 95th percentile of the delay of the call's packets.
    CallDelay,
    /// Share of the call's packets that are lost.
    CallLoss,
}

impl Measure {
    /// Its name in `compare.json`.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Goodput => "goodput",
            Self::DelayP95 => "delay_p95",
            Self::Fairness => "fairness",
            Self::Share => "share",
            Self::Completion => "completion",
            Self::CallDelay => "call_delay",
            Self::CallLoss => "call_loss",
        }
    }

    /// Its name in a table.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Goodput => "goodput",
            Self::DelayP95 => "p95 delay",
            Self::Fairness => "fairness",
            Self::Share => "share of the goodput",
            Self::Completion => "completion",
            Self::CallDelay => "call's p95 delay",
            Self::CallLoss => "call's loss",
        }
    }

    /// The quantity that it measures.
    pub const fn quantity(self) -> Quantity {
        match self {
            Self::Goodput => Quantity::Rate,
            Self::DelayP95 | Self::Completion | Self::CallDelay => Quantity::Time,
            Self::Share | Self::CallLoss => Quantity::Share,
            Self::Fairness => Quantity::Plain,
        }
    }

    /// The figure of the table of figures that it is.
    const fn figure(self) -> &'static str {
        match self {
            Self::Goodput | Self::Share => "joint_goodput",
            Self::DelayP95 | Self::CallDelay => "delay_p95",
            Self::Fairness => "jain_goodput",
            Self::Completion => "completion_finished",
            Self::CallLoss => "loss",
        }
    }

    fn of(self, run: &RunResult) -> f64 {
        let is_compared = |name: &str| name == "flow" || name.starts_with("flow.");
        let figure = |name: &dyn Fn(&str) -> bool| {
            let flows = run.flows.iter().filter(|flow| name(&flow.name)).collect();
            Figure::named(self.figure())
                .map_or(f64::NAN, |figure| figure.single(&Scope { flows, ..Scope::of(run) }))
        };
        match self {
            Self::CallDelay | Self::CallLoss => figure(&|name| name == "call"),
            Self::Share => {
                let own = figure(&is_compared);
                own / (own + figure(&|name| name == "cubic"))
            }
            _ => figure(&is_compared),
        }
    }
}

impl Situation {
    /// What is measured in it.
    fn measures(&self) -> &'static [Measure] {
        match self.kind {
            Kind::Link => &[Measure::Goodput, Measure::DelayP95],
            Kind::CellDown | Kind::CellUp => &[Measure::Goodput, Measure::DelayP95, Measure::Fairness],
            Kind::Beside => &[Measure::Share, Measure::DelayP95],
            Kind::Short => &[Measure::Completion],
            Kind::Call => &[Measure::Goodput, Measure::CallDelay, Measure::CallLoss],
        }
    }
}

/// The comparison of all.
#[derive(Clone, Debug)]
pub struct SurveySpec {
    seeds: u32,
    candidates: Vec<&'static Candidate>,
}

/// A name that no candidate has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("--all compares none that is called {name:?}; there are: {known}")]
pub struct CandidateFilterError {
    /// The name.
    pub name: String,
    /// The names of all.
    pub known: String,
}

/// Why the runs cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SurveyError {
    /// A recording cannot be read.
    #[error(transparent)]
    Situation(#[from] SituationError),
    /// A scenario is invalid, which is a fault of this list.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
}

/// Runs to be played, with what each of them is.
#[derive(Debug)]
pub struct SurveyPlan {
    /// The runs.
    pub jobs: Vec<Job>,
    /// Recordings that are not there: their situations are left out.
    pub missing: Vec<&'static str>,
    situations: Vec<Situation>,
    candidates: Vec<&'static Candidate>,
    seeds: u32,
    /// Of each job: its candidate and its situation.
    places: Vec<(usize, usize)>,
}

impl SurveySpec {
    /// All candidates, or those of these names and CUBIC, to which they are compared.
    ///
    /// # Errors
    ///
    /// If there is no candidate of a name.
    pub fn new(seeds: u32, only: Option<&[String]>) -> Result<Self, CandidateFilterError> {
        // A parsed name shows the guard that it has by default.
        let plain = |name: &str| name.strip_suffix(":guard=on").unwrap_or(name).to_owned();
        let only: Option<Vec<String>> = only.map(|only| only.iter().map(|name| plain(name)).collect());
        let known = |name: &str| CANDIDATES.iter().any(|candidate| candidate.name == name);
        if let Some(name) = only.iter().flatten().find(|name| !known(name)) {
            let known = CANDIDATES.iter().map(|candidate| candidate.name).collect::<Vec<_>>().join(", ");
            return Err(CandidateFilterError { name: name.clone(), known });
        }
        let is_asked =
            |name: &str| only.as_ref().is_none_or(|only| name == BASIS || only.iter().any(|one| one == name));
        let candidates = CANDIDATES.iter().filter(|candidate| is_asked(candidate.name)).collect();
        Ok(Self { seeds, candidates })
    }

    /// The runs.
    ///
    /// # Errors
    ///
    /// If a recording that is there cannot be read.
    pub fn plan(&self, traces: &mut TraceLibrary) -> Result<SurveyPlan, SurveyError> {
        let (situations, missing) = situations(traces).map_err(SituationError::Trace)?;
        let (mut jobs, mut places) = (Vec::new(), Vec::new());
        for (at, situation) in situations.iter().enumerate() {
            for (who, candidate) in self.candidates.iter().enumerate() {
                if !situation.suits(candidate) {
                    continue;
                }
                for seed in 1..=self.seeds {
                    let text = situation.text(candidate, (seed, self.seeds), traces)?;
                    let label = format!("{}: {}", situation.name, candidate.name);
                    jobs.push(Job::new(label, text, "compare", traces)?);
                    places.push((who, at));
                }
            }
        }
        let (candidates, seeds) = (self.candidates.clone(), self.seeds);
        Ok(SurveyPlan { jobs, missing, situations, candidates, seeds, places })
    }
}

/// The control that all are compared to.
const BASIS: &str = "cubic";

/// Values of one run, in the order of [`Situation::measures`].
pub type Measured = Vec<f64>;

impl SurveyPlan {
    /// The measurements of a job's result.
    pub fn measure(&self, job: usize, run: &RunResult) -> Measured {
        let (_, at) = self.places[job];
        self.situations[at].measures().iter().map(|measure| measure.of(run)).collect()
    }

    /// Plays the runs and brings their measurements together; those that `runner` was told to stop before are missing.
    ///
    /// # Errors
    ///
    /// If the results cannot be stored.
    pub fn play(self, runner: &Runner<'_>) -> Result<Survey, StoreError> {
        // Of each result only its measurements stay in memory.
        let measured = runner.run_with(&self.jobs, |job, run| self.measure(job, &run))?;
        Ok(self.collect(measured))
    }

    /// Brings the measurements together; `None` for runs that did not finish.
    pub fn collect(self, measured: Vec<Option<Measured>>) -> Survey {
        let interrupted = measured.iter().any(Option::is_none);
        let mut values: BTreeMap<(usize, usize, Measure), Vec<f64>> = BTreeMap::new();
        for ((who, at), run) in self.places.iter().zip(measured) {
            // A run that is missing keeps its place, so that seeds stay paired.
            for (index, measure) in self.situations[*at].measures().iter().enumerate() {
                let value = run.as_ref().and_then(|run| run.get(index)).copied().unwrap_or(f64::NAN);
                values.entry((*who, *at, *measure)).or_default().push(value);
            }
        }
        Survey {
            candidates: self.candidates,
            situations: self.situations,
            missing: self.missing,
            seeds: self.seeds,
            interrupted,
            values,
        }
    }
}

/// The results.
#[derive(Debug)]
pub struct Survey {
    candidates: Vec<&'static Candidate>,
    situations: Vec<Situation>,
    missing: Vec<&'static str>,
    seeds: u32,
    /// Whether some runs are missing.
    pub interrupted: bool,
    /// By candidate, situation and measure: a value for each seed.
    values: BTreeMap<(usize, usize, Measure), Vec<f64>>,
}

/// What was measured of a candidate in a situation, over the seeds; an entry of `compare.json`.
#[derive(Debug, Serialize)]
pub struct SurveyValue<'a> {
    /// Name of the candidate.
    pub cc: &'a str,
    /// What it needs, in words.
    pub needs: String,
    /// Name of the situation.
    pub situation: &'a str,
    /// What is measured.
    pub measure: Measure,
    /// Mean in base units: bit/s, seconds, shares; `None` if no run has a value.
    pub mean: Option<f64>,
    /// Half of the 95 % confidence interval, if there are several values.
    pub ci95: Option<f64>,
    /// Number of runs that have a value.
    pub seeds: usize,
}

/// Why the results were not written.
#[derive(Debug, thiserror::Error)]
pub enum SurveyWriteError {
    /// A file cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A plot cannot be drawn.
    #[error("the report cannot be drawn: {0}")]
    Plot(#[from] PlotError),
}

impl Survey {
    /// All values, as in the document `compare.json`.
    pub fn values(&self) -> Vec<SurveyValue<'_>> {
        self.values
            .iter()
            .map(|((who, at, measure), values)| {
                let estimate = stats::estimate(values.iter().copied());
                SurveyValue {
                    cc: self.candidates[*who].name,
                    needs: self.candidates[*who].needs.words(),
                    situation: &self.situations[*at].name,
                    measure: *measure,
                    mean: estimate.mean.is_finite().then_some(estimate.mean),
                    ci95: estimate.ci95,
                    seeds: estimate.count,
                }
            })
            .collect()
    }

    /// Writes `compare.json` and the report beside the runs, and returns the report's path. `command` is what was called.
    ///
    /// # Errors
    ///
    /// If a file cannot be written, or a plot not be drawn.
    pub fn write(&self, store: &Store, command: &str) -> Result<PathBuf, SurveyWriteError> {
        store.write_json("compare.json", &self.values())?;
        Ok(store.write("report.html", self.report(command)?.as_bytes())?)
    }

    fn estimate(&self, who: usize, at: usize, measure: Measure) -> Option<Estimate> {
        let values = self.values.get(&(who, at, measure))?;
        Some(stats::estimate(values.iter().copied()))
    }
}

#[cfg(test)]
mod tests {
    use ranpace_cc::Algorithm;

    use super::*;

    #[test]
    fn every_candidate_can_be_played_in_each_of_its_situations() {
        let spec = SurveySpec::new(1, None).unwrap();
        let plan = spec.plan(&mut TraceLibrary::default()).unwrap();
        assert_eq!(plan.missing.len(), 6, "no recordings without their folder");
        let lte = plan.situations.iter().position(|situation| situation.name == "lte-1-down").unwrap();
        let down = plan.places.iter().filter(|(_, at)| *at == lte).count();
        assert_eq!(down, CANDIDATES.iter().filter(|one| plan.situations[lte].suits(one)).count());
        for (job, (who, at)) in plan.jobs.iter().zip(&plan.places) {
            let queue = match plan.situations[*at].kind {
                Kind::Link => plan.candidates[*who].queue[0],
                Kind::Beside => plan.candidates[*who].queue[1],
                _ => "",
            };
            let plain = job.text.contains("queue = { kind = \"droptail\", limit = \"");
            assert!(plain && (queue.is_empty() || job.text.contains(queue)), "{}", job.label);
        }
        assert!(plan.jobs.iter().any(|job| !job.scenario.proxies.is_empty()));
        assert!(plan.jobs.iter().any(|job| !job.scenario.peps.is_empty()));
    }

    #[test]
    fn keys_are_the_names_in_json() {
        for measure in [
            Measure::Goodput,
            Measure::DelayP95,
            Measure::Fairness,
            Measure::Share,
            Measure::Completion,
            Measure::CallDelay,
            Measure::CallLoss,
        ] {
            assert_eq!(serde_json::to_value(measure).unwrap(), measure.key());
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_all_that_there_are() {
        let error = SurveySpec::new(1, Some(&["cubik".to_owned()])).unwrap_err().to_string();
        assert!(error.contains("\"cubik\"") && error.contains("c2tcp:target=50ms"), "{error}");
        let spec = SurveySpec::new(1, Some(&["vegas".to_owned()])).unwrap();
        let names: Vec<&str> = spec.candidates.iter().map(|candidate| candidate.name).collect();
        assert_eq!(names, ["cubic", "vegas"]);
        let parsed: Algorithm = "dcic".parse().unwrap();
        let spec = SurveySpec::new(1, Some(&[parsed.as_str().to_owned()])).unwrap();
        assert_eq!(spec.candidates.len(), 2, "{parsed} is dcic");
    }
}
