//! Selects the runs of a term, and the numbers taken from each.

use super::{Absent, Expr, Results, Source, Take};
use crate::figure::{Scope, Values};
use crate::reproduce::results::PlayedRun;
use crate::stats;

/// The points of a term.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum At {
    /// The points of these groups; all if empty.
    Groups(Vec<String>),
    /// The points at which places have these values.
    Places(Values),
}

/// A number of a run.
#[derive(Clone, Debug)]
pub(super) struct Sample<'a> {
    pub scheme: &'a str,
    pub point: &'a str,
    /// Samples with the same name are reduced together.
    pub group: String,
    pub value: f64,
    /// The values of both terms, if it is a comparison of two samples.
    pub sides: Option<(f64, f64)>,
}

/// A run with its scheme and point.
struct Chosen<'c> {
    scheme: &'c str,
    point: &'c str,
    /// The group of points that selected it.
    at: String,
    run: &'c PlayedRun,
}

impl Expr {
    /// The numbers of all chosen runs.
    pub(super) fn samples<'c>(&self, results: &'c Results) -> Result<Vec<Sample<'c>>, Absent> {
        let constant =
            |value| Ok(vec![Sample { scheme: "", point: "", group: String::new(), value, sides: None }]);
        match &self.source {
            Source::Value(value) => return constant(*value),
            Source::Term(term) => return constant(term.of(results)?.value),
            _ => {}
        }
        let mut found = Vec::new();
        for chosen in self.runs(results)? {
            let values = self.values(chosen.run).map_err(Absent::Nothing)?;
            for (part, value) in values.into_iter().enumerate() {
                let group = self.group(&chosen, part);
                found.push(Sample { scheme: chosen.scheme, point: chosen.point, group, value, sides: None });
            }
        }
        Ok(found)
    }

    /// The selected runs. All missing recordings are named.
    fn runs<'c>(&self, results: &'c Results) -> Result<Vec<Chosen<'c>>, Absent> {
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        for scheme in &self.of {
            let before = found.len() + missing.len();
            for (at, scheme, point) in self.points(scheme, results) {
                match results.at(scheme, point) {
                    Ok(run) if self.is_at(run) => found.push(Chosen { scheme, point, at, run }),
                    Ok(_) => {}
                    Err(Absent::Trace(traces)) => missing.extend(traces),
                    Err(other) => return Err(other),
                }
            }
            if found.len() + missing.len() == before {
                return Err(Absent::Nothing(format!("{scheme} is not played there")));
            }
        }
        missing.sort();
        missing.dedup();
        if missing.is_empty() { Ok(found) } else { Err(Absent::Trace(missing)) }
    }

    fn points<'c>(&self, scheme: &str, results: &'c Results) -> Vec<(String, &'c str, &'c str)> {
        let groups = match &self.at {
            At::Groups(groups) if !groups.is_empty() => groups.clone(),
            _ => vec![String::new()],
        };
        let mut found = Vec::new();
        for group in groups {
            let points: Vec<_> = results.keys_of(scheme, &group).collect();
            found.extend(points.into_iter().map(|(own, point)| (group.clone(), own, point)));
        }
        found
    }

    fn is_at(&self, run: &PlayedRun) -> bool {
        match &self.at {
            At::Groups(_) => true,
            At::Places(values) => values.iter().all(|(place, value)| run.places.get(place) == Some(value)),
        }
    }

    /// The name of a sample's group.
    fn group(&self, chosen: &Chosen<'_>, part: usize) -> String {
        match self.each.as_deref() {
            None => String::new(),
            Some("part") => part.to_string(),
            Some("point") => chosen.point.to_owned(),
            Some("scheme") => chosen.scheme.to_owned(),
            Some("group") => {
                format!("{} {}", chosen.scheme, chosen.point.split(' ').next().unwrap_or(chosen.point))
            }
            Some("at") => chosen.at.clone(),
            Some(place) => chosen.run.places.get(place).cloned().unwrap_or_default(),
        }
    }

    /// The numbers of a run.
    pub(super) fn values(&self, run: &PlayedRun) -> Result<Vec<f64>, String> {
        let scope = Scope::new(&run.result, &run.places, &self.flows, self.window);
        let values = match &self.source {
            // A slim run lacks distributions and series, but keeps what was taken from them.
            Source::Figure(figure) if self.is_whole() && run.get(*figure).is_finite() => {
                vec![run.get(*figure)]
            }
            Source::Figure(figure) => figure.values(&scope)?,
            Source::Column(name) => return self.of_column(name, &scope),
            Source::Place(name) => vec![scope.place(name)?],
            Source::Value(_) | Source::Term(_) => Vec::new(),
        };
        Ok(self.take.map_or(values.clone(), |take| vec![take.of(&values)]))
    }

    /// Returns whether it covers all flows and the whole run.
    fn is_whole(&self) -> bool {
        self.flows == crate::figure::Flows::All && self.window == crate::figure::Window::default()
    }

    /// A column of the first chosen flow, or its reduction.
    fn of_column(&self, name: &str, scope: &Scope<'_>) -> Result<Vec<f64>, String> {
        let flow = scope.flows.first().ok_or_else(|| "the run has no such flow".to_owned())?;
        let column = |name: &str| flow.series.get(name).ok_or_else(|| format!("the run has no {name}"));
        let values = column(name)?;
        let known_at = |time: f64| {
            let rows = column("time_s")?.iter().take_while(|row| **row <= time + 1e-9).count();
            let then = values.get(rows.saturating_sub(1)).copied().unwrap_or(0.0);
            Ok::<_, String>(if then.is_finite() { then } else { 0.0 })
        };
        let last = || {
            let known = values.iter().rev().copied().find(|value| value.is_finite());
            known.ok_or_else(|| format!("{name} has no value"))
        };
        match (self.take, self.window.until) {
            (Some(Take::Last), Some(until)) => Ok(vec![known_at(until)?]),
            (Some(Take::Last), None) => Ok(vec![last()?]),
            (Some(Take::Growth), _) => Ok(vec![last()? - known_at(self.window.from.unwrap_or(0.0))?]),
            (Some(take), _) => Ok(vec![take.of(values)]),
            (None, _) => Ok(values.to_vec()),
        }
    }
}

impl Take {
    /// Over all known values.
    fn of(self, values: &[f64]) -> f64 {
        let known = || values.iter().copied().filter(|value| value.is_finite());
        match self {
            Self::Min => known().reduce(f64::min).unwrap_or(f64::NAN),
            Self::Max => known().reduce(f64::max).unwrap_or(f64::NAN),
            Self::Mean => stats::mean(&known().collect::<Vec<_>>()).unwrap_or(f64::NAN),
            Self::Last => known().next_back().unwrap_or(f64::NAN),
            Self::Growth => known().next_back().unwrap_or(f64::NAN) - known().next().unwrap_or(f64::NAN),
        }
    }
}
