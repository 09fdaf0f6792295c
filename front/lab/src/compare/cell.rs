//! Algorithms side by side in a cell, by the name of its preset.

use ranpace_cc::Algorithm;
use ranpace_scenario::cells::{PRESETS, Preset, by_name};
use ranpace_scenario::presets::{CellRunSpec, cell};
use ranpace_sim::RunResult;
use ranpace_units::Span;

use super::{CompareError, Compared};
use crate::{Job, TraceLibrary};

/// The comparison in a cell.
#[derive(Clone, Debug)]
pub struct CellCompareSpec {
    /// The cell, and its surroundings.
    pub preset: &'static Preset,
    /// The algorithms, in the order of the table.
    pub algorithms: Vec<Algorithm>,
    /// Round-trip time of the wire alone; `None` for the preset's.
    pub rtt: Option<Span>,
    /// Duration of each run.
    pub time: Span,
    /// Start of the measured part.
    pub warmup: Span,
    /// Concurrent flows of each user, all of the same algorithm.
    pub flows: u32,
    /// Runs of each algorithm: with other places, fading and background.
    pub seeds: u32,
}

/// There is no cell with that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no cell is called {name:?}; nearest: {near}; `ranpace list cells` shows all")]
pub struct UnknownCell {
    /// The name asked for.
    pub name: String,
    /// The most similar names.
    pub near: String,
}

impl CellCompareSpec {
    /// The preset of this name.
    pub fn preset(name: &str) -> Result<&'static Preset, UnknownCell> {
        by_name(name).ok_or_else(|| {
            let likeness = |preset: &&Preset| strsim::jaro_winkler(preset.name, name);
            let mut near: Vec<&Preset> = PRESETS.iter().collect();
            near.sort_by(|a, b| likeness(b).total_cmp(&likeness(a)));
            let near: Vec<&str> = near.into_iter().take(3).map(|preset| preset.name).collect();
            UnknownCell { name: name.to_owned(), near: near.join(", ") }
        })
    }

    /// The runs, all seeds of an algorithm together.
    pub fn jobs(&self, traces: &mut TraceLibrary) -> Result<Vec<Job>, CompareError> {
        let mut jobs = Vec::new();
        for algorithm in &self.algorithms {
            for seed in 1..=u64::from(self.seeds) {
                let spec = CellRunSpec {
                    name: format!("compare-{}-{}", self.preset.name, algorithm.as_str()),
                    rtt: self.rtt,
                    flows: self.flows,
                    duration: self.time,
                    warmup: self.warmup,
                    seed,
                    ..CellRunSpec::new(self.preset, algorithm)
                };
                jobs.push(Job::new(algorithm.as_str(), cell(&spec), "compare", traces)?);
            }
        }
        Ok(jobs)
    }

    /// Groups the results of [`Self::jobs`] by algorithm, without the background flows, which only provide load.
    pub fn collect(&self, mut results: Vec<Option<RunResult>>) -> Compared {
        // The names given by `ranpace_scenario::presets::cell`.
        let is_compared = |name: &str| name == "flow" || name.starts_with("flow.");
        for run in results.iter_mut().flatten() {
            run.flows.retain(|flow| is_compared(&flow.name));
        }
        Compared::of(&self.algorithms, self.seeds, results)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_cell_is_answered_with_the_nearest() {
        let error = CellCompareSpec::preset("zong-lte").unwrap_err().to_string();
        assert!(error.contains("zhong-lte-ch5") && error.contains("ranpace list cells"), "{error}");
        assert_eq!(CellCompareSpec::preset("nr").map(|preset| preset.name), Ok("nr"));
    }

    #[test]
    fn background_flows_are_played_but_not_compared() {
        let spec = CellCompareSpec {
            preset: CellCompareSpec::preset("lte").unwrap(),
            algorithms: vec!["cubic".parse().unwrap()],
            rtt: None,
            time: Span::from_secs(2),
            warmup: Span::ZERO,
            flows: 1,
            seeds: 2,
        };
        let jobs = spec.jobs(&mut TraceLibrary::default()).unwrap();
        assert_eq!(jobs.len(), 2);
        assert!(jobs[0].scenario.flows.iter().any(|flow| flow.name == "pages"));
        let runs = jobs.iter().map(|job| Some(ranpace_sim::Simulation::new(&job.scenario).run()));
        let compared = spec.collect(runs.collect());
        let names: Vec<&str> = compared.runs[0].1[0].flows.iter().map(|flow| flow.name.as_str()).collect();
        assert_eq!(names, ["flow"]);
        let row = &compared.rows()[0];
        assert!(
            row.value("goodput_bit_s") > 1e6
                && row.value("utilisation") > 0.0
                && row.ci95("goodput_bit_s").is_some()
        );
    }
}
