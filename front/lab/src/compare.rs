//! Algorithms side by side over one link: which gives the most throughput for the least delay.

mod all;
mod cell;
mod plan;
mod seeds;

use ranpace_cc::Algorithm;
use ranpace_link::Limit;
use ranpace_scenario::presets::{Access, DumbbellSpec, QueueKind, dumbbell};
use ranpace_sim::RunResult;
use ranpace_units::{Rate, Span};

pub use all::{
    CandidateFilterError, Measure, SituationError, Survey, SurveyError, SurveyPageError, SurveyPlan,
    SurveySpec, SurveyValue, SurveyWriteError,
};
pub use cell::{CellCompareSpec, UnknownCell};
pub use plan::{CompareOptions, ComparePlan, SetByTheCell};

use self::seeds::link_of_seed;
use crate::plot::PlotError;
use crate::{CompareRow, Comparison, Job, Report, TraceLibrary, TraceLoadError, notes};

/// The comparison.
#[derive(Clone, Debug)]
pub struct CompareSpec {
    /// The bottleneck.
    pub access: Access,
    /// The algorithms, in the order of the table.
    pub algorithms: Vec<Algorithm>,
    /// Files of what was recorded under light load, in front of the traces down and up, if there are any.
    pub light: [Option<String>; 2],
    /// Round-trip time without queues.
    pub rtt: Span,
    /// Limit of the bottleneck's queue.
    pub buffer: Limit,
    /// The bottleneck's queue.
    pub queue: QueueKind,
    /// Probability of random loss on the downlink.
    pub loss: f64,
    /// Rate of the uplink; `None` for the preset's.
    pub reverse: Option<Rate>,
    /// Duration of each run.
    pub time: Span,
    /// Figures are counted from here.
    pub warmup: Span,
    /// Number of concurrent flows, all of the same algorithm.
    pub flows: u32,
    /// Runs of each algorithm. They differ in their random numbers and in the link: another trace of the same model, or another
    /// starting point in the recording.
    pub seeds: u32,
}

/// Why a comparison cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompareError {
    /// The scenario that results from the settings is invalid.
    #[error("{}", reasons(.0))]
    Scenario(#[from] ranpace_scenario::ScenarioError),
    /// A trace could not be loaded.
    #[error(transparent)]
    Trace(#[from] TraceLoadError),
}

/// Why a generated scenario was refused: without positions in it, and each reason once.
fn reasons(error: &ranpace_scenario::ScenarioError) -> String {
    let mut reasons: Vec<&str> = Vec::new();
    for diagnostic in &error.diagnostics {
        if !reasons.contains(&diagnostic.message.as_str()) {
            reasons.push(&diagnostic.message);
        }
    }
    reasons.join("; ")
}

/// The findings of a comparison.
#[derive(Debug)]
pub struct Compared {
    /// Per algorithm, its completed runs.
    pub runs: Vec<(String, Vec<RunResult>)>,
    /// Whether some are missing.
    pub interrupted: bool,
}

impl CompareSpec {
    /// The runs, all seeds of an algorithm together.
    pub fn jobs(&self, traces: &mut TraceLibrary) -> Result<Vec<Job>, CompareError> {
        let mut jobs = Vec::new();
        for algorithm in &self.algorithms {
            for seed in 1..=self.seeds {
                let mut spec = DumbbellSpec::new(
                    link_of_seed(&self.access, seed, self.seeds, traces)?,
                    self.rtt,
                    algorithm,
                );
                spec.name = format!("compare-{}", algorithm.as_str());
                (spec.buffer, spec.queue, spec.loss) = (self.buffer, self.queue, self.loss);
                (spec.reverse, spec.duration, spec.warmup) = (self.reverse, self.time, self.warmup);
                spec.light.clone_from(&self.light);
                (spec.flows, spec.seed) = (self.flows, u64::from(seed));
                jobs.push(Job::new(algorithm.as_str(), dumbbell(&spec), "compare", traces)?);
            }
        }
        Ok(jobs)
    }

    /// Groups the results of [`Self::jobs`] by algorithm.
    pub fn collect(&self, results: Vec<Option<RunResult>>) -> Compared {
        Compared::of(&self.algorithms, self.seeds, results)
    }
}

impl Compared {
    /// Groups results by algorithm; they are in that order, all seeds of an algorithm together.
    fn of(algorithms: &[Algorithm], seeds: u32, results: Vec<Option<RunResult>>) -> Self {
        let interrupted = results.iter().any(Option::is_none);
        let mut results = results.into_iter();
        let runs = algorithms
            .iter()
            .map(|algorithm| {
                let runs = results.by_ref().take(seeds as usize).flatten().collect();
                (algorithm.as_str().to_owned(), runs)
            })
            .filter(|(_, runs): &(String, Vec<RunResult>)| !runs.is_empty())
            .collect();
        Self { runs, interrupted }
    }

    /// Notes beside the figures: lost connections, and users of cells out of service. Each once, whatever the algorithm.
    pub fn notes(&self) -> Vec<String> {
        let several = self.runs.iter().any(|(_, runs)| runs.len() > 1);
        notes::of_runs(self.runs.iter().flat_map(|(_, runs)| runs), several)
    }

    /// A row per algorithm, over its flows and seeds.
    pub fn rows(&self) -> Vec<CompareRow> {
        self.runs
            .iter()
            .map(|(label, runs)| CompareRow::of(label, &runs.iter().collect::<Vec<_>>()))
            .collect()
    }

    /// The report. `scenario` is the text of one of the runs; the others differ in algorithm, seed and starting point.
    pub fn report(&self, title: &str, scenario: &str, command: &str) -> Result<String, PlotError> {
        let runs = self.runs.iter().map(|(label, runs)| (label.clone(), runs.iter().collect())).collect();
        let mut warnings = Vec::new();
        if self.interrupted {
            warnings.push("Interrupted: only the runs that were complete are shown.".to_owned());
        }
        Report {
            title: title.to_owned(),
            command: command.to_owned(),
            intro: String::new(),
            groups: vec![Comparison::new(title, scenario, runs)],
            chapters: Vec::new(),
            warnings,
        }
        .html()
    }
}
