//! The results of an experiment: a played run for each scheme at each point.

use std::collections::BTreeMap;
use std::sync::Arc;

use ranpace_sim::{Distribution, RunResult, Series};

use super::measured::Models;
use crate::figure::{Figure, Flows, Scope, Values, Window, place_number};

/// A run that was played, with its figures.
#[derive(Clone, Debug)]
pub struct PlayedRun {
    values: Vec<f64>,
    /// The values of its places.
    pub places: Values,
    /// Its results.
    pub result: RunResult,
}

/// Why a measurement has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Absent {
    /// Missing recordings.
    Trace(Vec<String>),
    /// Unfinished runs.
    Run,
    /// The machine did not keep up with a run in real time: why.
    Machine(String),
    /// The measurement needs something that no run has; says what.
    Nothing(String),
}

/// All played runs. Points keep the order of the experiment.
#[derive(Clone, Debug)]
pub struct Results {
    order: Vec<(String, String)>,
    runs: BTreeMap<(String, String), Result<Arc<PlayedRun>, Absent>>,
    models: Models,
}

impl Default for Results {
    fn default() -> Self {
        Self::new(Models::NONE)
    }
}

impl PlayedRun {
    /// Takes the figures from a run.
    pub fn new(places: Values, result: RunResult) -> Self {
        let scope = Scope::new(&result, &places, &Flows::All, Window::default());
        Self { values: Figure::all().map(|figure| figure.single(&scope)).collect(), places, result }
    }

    /// A figure of all flows but plain sources; NaN if there is none.
    pub fn get(&self, figure: Figure) -> f64 {
        self.values[figure.index()]
    }

    /// Without what is only needed to compute figures: distributions and series, which are most of a run.
    pub fn slim(mut self) -> Self {
        let none = |of: &mut Distribution| of.cdf = Vec::new();
        for flow in &mut self.result.flows {
            [&mut flow.rtt, &mut flow.queueing_delay].into_iter().for_each(none);
            flow.series = Series::default();
        }
        for link in &mut self.result.links {
            none(&mut link.queueing_delay);
            link.series = Series::default();
        }
        self.result.users.iter_mut().for_each(|user| user.series = Series::default());
        self
    }

    /// With another value of a figure, for tests.
    #[cfg(test)]
    pub fn with(mut self, figure: &str, value: f64) -> Self {
        self.values[Figure::named(figure).unwrap().index()] = value;
        self
    }

    /// The value of a place as a number: in seconds, bytes or bit/s, or a plain number.
    pub fn number(&self, place: &str) -> Result<f64, Absent> {
        place_number(&self.places, place).map_err(Absent::Nothing)
    }
}

impl Results {
    /// Without runs; measures and plots without runs are those of `models`.
    pub fn new(models: Models) -> Self {
        Self { order: Vec::new(), runs: BTreeMap::new(), models }
    }

    /// Measures and plots without runs.
    pub fn models(&self) -> Models {
        self.models
    }

    /// Enters a run, or the reason for its absence.
    pub fn enter(&mut self, scheme: &str, point: &str, run: Result<PlayedRun, Absent>) {
        let key = (scheme.to_owned(), point.to_owned());
        self.order.push(key.clone());
        self.runs.insert(key, run.map(Arc::new));
    }

    /// Enters the run of one scheme also for another one, whose run would be the same.
    pub fn enter_same(&mut self, scheme: &str, as_well: &str, point: &str) {
        let known = self.runs.get(&(scheme.to_owned(), point.to_owned())).cloned();
        let key = (as_well.to_owned(), point.to_owned());
        if let Some(run) = known.filter(|_| scheme != as_well) {
            self.order.push(key.clone());
            self.runs.insert(key, run);
        }
    }

    /// The run of a scheme at a point.
    pub fn at(&self, scheme: &str, point: &str) -> Result<&PlayedRun, Absent> {
        match self.runs.get(&(scheme.to_owned(), point.to_owned())) {
            Some(Ok(run)) => Ok(run),
            Some(Err(absent)) => Err(absent.clone()),
            None => Err(Absent::Nothing(format!("{scheme} is not played at {point}"))),
        }
    }

    /// The same with the runs of some schemes replaced: `instead` maps the label of a scheme to that of the scheme whose runs are
    /// used.
    pub fn instead(&self, instead: &BTreeMap<String, String>) -> Self {
        let mut results = Self::new(self.models);
        for key in &self.order {
            let (scheme, point) = key;
            let Some(run) = self.runs.get(key) else { continue };
            let replaced = instead.iter().filter(|(_, new)| *new == scheme).map(|(old, _)| old);
            let kept = (!instead.contains_key(scheme)).then_some(scheme);
            for label in replaced.chain(kept) {
                let key = (label.clone(), point.clone());
                results.order.push(key.clone());
                results.runs.insert(key, run.clone());
            }
        }
        results
    }

    /// The points of a scheme.
    pub fn points(&self, scheme: &str) -> Vec<&str> {
        self.order.iter().filter(|(own, _)| own == scheme).map(|(_, point)| point.as_str()).collect()
    }

    /// The points of a scheme in a group: those whose label is the group's, or begins with it and a blank; all if the group has no
    /// name.
    pub fn group(&self, scheme: &str, group: &str) -> Vec<&str> {
        self.keys_of(scheme, group).map(|(_, point)| point).collect()
    }

    /// The same, each with the scheme.
    pub fn keys_of(&self, scheme: &str, group: &str) -> impl Iterator<Item = (&str, &str)> {
        let is_of = move |point: &str| {
            let rest = point.strip_prefix(group);
            group.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        };
        let keys = self.order.iter().map(|(scheme, point)| (scheme.as_str(), point.as_str()));
        keys.filter(move |(own, point)| *own == scheme && is_of(point))
    }

    /// The results of a scheme at all of its points. All of them must exist: missing ones are collected.
    pub fn of(&self, scheme: &str) -> Result<Vec<(&str, &PlayedRun)>, Absent> {
        let mut found = Vec::new();
        let mut missing = Vec::new();
        for point in self.points(scheme) {
            match self.at(scheme, point) {
                Ok(run) => found.push((point, run)),
                Err(Absent::Trace(traces)) => missing.extend(traces),
                Err(other) => return Err(other),
            }
        }
        missing.sort();
        missing.dedup();
        if !missing.is_empty() {
            return Err(Absent::Trace(missing));
        }
        if found.is_empty() { Err(Absent::Nothing(format!("{scheme} is not played"))) } else { Ok(found) }
    }

    /// All existing results.
    pub fn all(&self) -> impl Iterator<Item = (&str, &str, &PlayedRun)> {
        self.order.iter().filter_map(|key| {
            let run = self.runs.get(key)?.as_ref().ok()?;
            Some((key.0.as_str(), key.1.as_str(), &**run))
        })
    }

    /// Returns whether a run was not finished.
    pub fn is_unfinished(&self) -> bool {
        self.runs.values().any(|run| matches!(run, Err(Absent::Run)))
    }
}
