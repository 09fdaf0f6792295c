//! A published experiment as data: what is run, what was published, and which criteria must hold.
//!
//! One `experiment.toml` per folder of `reproductions/`, compiled into the program. `docs/reproductions.md` describes
//! the format. Unknown keys are errors, and so is a reference to a scheme that does not exist.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::algebra::OtherFigure;
use super::base::Base;
use super::faults::Faults;
use super::measure::Measure;
use super::patch;
use super::picture_spec::PictureSpec;
use super::places::Set;
use super::points::Mean;
use super::rows::sections;
use super::runs::{Runs, combinations};
use super::toml::{Table, Toml};
use crate::figure::Figure;
pub use crate::figure::Values;

/// The part of an experiment that is played on Linux too.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Real {
    /// What differs from the simulated runs.
    pub says: String,
    /// The schemes.
    pub schemes: Vec<String>,
    /// The points, by their labels or the beginnings of these; all if there are none.
    #[serde(default)]
    pub at: Vec<String>,
    /// Values of places; durations replace longer ones alone.
    #[serde(default)]
    pub set: Set,
    /// A patch of all scenarios.
    #[serde(default)]
    pub patch: Table,
    /// The criteria; without any, all that need no other schemes.
    #[serde(default)]
    pub criteria: Vec<String>,
}

/// A published experiment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Its name, and that of its folder: "001-a3-table1".
    pub id: String,
    /// Other names that mean it.
    #[serde(default)]
    pub alias: Vec<String>,
    /// Its topic, in one line.
    pub title: String,
    /// The place of publication.
    pub source: String,
    /// The claim, in one sentence: by the source, or by us.
    #[serde(default)]
    pub claim: String,
    /// The source's statement, and what differs here.
    pub says: String,
    /// Why it cannot be run yet; its criteria are pending then.
    pub pending: Option<String>,
    /// The file of `reproductions/base/`, without `.toml`, whose scenario, values and patches this one builds on.
    pub base: Option<String>,
    /// The scenario, with places such as `"${rtt}"` for values; a patch of the base's scenario if there is one.
    #[serde(default)]
    pub scenario: Table,
    /// Patches by name, for `use`.
    #[serde(default, rename = "patch")]
    pub patches: BTreeMap<String, Table>,
    /// Patches of all runs.
    #[serde(default, rename = "use")]
    pub uses: Vec<String>,
    /// Values of places that are the same in all runs, unless a scheme or a point overrides them.
    #[serde(default)]
    pub set: Set,
    /// The schemes that are compared.
    #[serde(default, rename = "scheme")]
    pub schemes: Vec<Scheme>,
    /// The schemes that are run, and at which points.
    #[serde(default)]
    pub runs: Vec<Runs>,
    /// Changes for a quick look.
    #[serde(default)]
    pub quick: Quick,
    /// The runs shown over time in the report: those of this point.
    pub show: Option<String>,
    /// What is played on Linux too.
    pub real: Option<Real>,
    /// Values of places that come last; durations replace longer ones alone.
    #[serde(skip)]
    pub shorter: Set,
    /// Switches whose combinations are all tried on request.
    pub sensitivity: Option<Sensitivity>,
    /// Values of places whose combinations are all tried on request, for all schemes at once.
    pub variation: Option<Variation>,
    /// Other admissible readings of the source, by which the criteria are evaluated too.
    #[serde(default, rename = "reading", deserialize_with = "sections")]
    pub readings: Vec<Reading>,
    /// The names of readings that are not evaluated for a criterion on Linux, because some of their runs are not played there; by the
    /// criterion's name.
    #[serde(skip)]
    pub not_played: BTreeMap<String, Vec<String>>,
    /// Whether series over time are kept. Thousands of drops whose figures are totals do not need them.
    #[serde(default = "yes")]
    pub series: bool,
    /// Files that the scenario names, such as trajectories, by name.
    #[serde(default)]
    pub files: Values,
    /// Criteria that must hold, or are reported.
    #[serde(rename = "criterion", deserialize_with = "sections")]
    pub criteria: Vec<Criterion>,
    /// Figures shown as tables.
    #[serde(default, rename = "table", deserialize_with = "sections")]
    pub tables: Vec<TableSpec>,
    /// Figures shown as plots.
    #[serde(default, rename = "plot", deserialize_with = "sections")]
    pub plots: Vec<PlotSpec>,
    /// Published figures that the report redraws.
    #[serde(default, rename = "picture", deserialize_with = "sections")]
    pub pictures: Vec<PictureSpec>,
}

/// One of the compared schemes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scheme {
    /// Its name in tables.
    pub label: String,
    /// Whether it is judged, or only shown.
    #[serde(default)]
    pub role: Role,
    /// The scheme of which it is a variant: criteria are also evaluated for it, without a verdict. It starts from all changes of
    /// that scheme's scenario.
    pub variant_of: Option<String>,
    /// Another scheme that it starts from.
    pub like: Option<String>,
    /// The patches of its scenario, by name.
    #[serde(default, rename = "use")]
    pub uses: Vec<String>,
    /// A patch of its own.
    #[serde(default)]
    pub patch: Table,
    /// Its values of places.
    #[serde(default)]
    pub set: Set,
}

/// The role of a scheme.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The variant of the algorithm under test by which its criteria are judged; chosen before the first run.
    Judged,
    /// A scheme that the source compares it with.
    #[default]
    Compared,
    /// Another variant of the algorithm under test, or a scheme that the source does not have.
    Shown,
}

/// Another admissible reading of the source. A robust criterion that one reading meets and another misses depends on it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// A short description, for the table of verdicts.
    pub name: String,
    /// The passage of the source that admits it.
    pub why: String,
    /// Maps the label of a scheme to that of the scheme whose runs replace its own.
    #[serde(default)]
    pub instead: BTreeMap<String, String>,
    /// The figure that replaces another in comparisons on the same drops.
    #[serde(default)]
    pub figures: Vec<OtherFigure>,
    /// The criteria that it affects; all robust ones if empty.
    #[serde(default)]
    pub criteria: Vec<String>,
}

impl Reading {
    /// Returns whether it applies to a criterion.
    pub fn is_about(&self, criterion: &Criterion) -> bool {
        criterion.robust && (self.criteria.is_empty() || self.criteria.contains(&criterion.id))
    }
}

/// A quick look: shorter runs at fewer points. Nothing is judged.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Quick {
    /// Number of points kept from each `[[runs]]`, the first ones.
    pub points: usize,
    /// Values that replace those of the points.
    pub set: Set,
}

impl Default for Quick {
    fn default() -> Self {
        Self { points: 1, set: Set::new() }
    }
}

/// Switches of the algorithm under test. Every combination is run at the points of the judged scheme.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sensitivity {
    /// The algorithm without the switches.
    pub cc: String,
    /// The values of each switch.
    pub switches: Vec<Vec<String>>,
    /// Whether the criteria are evaluated for each combination, as for variants of the judged scheme.
    #[serde(default)]
    pub criteria: bool,
    /// Schemes and figures that select the nearest combination, if any.
    #[serde(default)]
    pub schemes: Vec<String>,
    /// The figures that select it.
    #[serde(default)]
    pub metrics: Vec<Figure>,
    /// The table with the published figures to compare with.
    pub table: Option<String>,
    /// Whether the combinations are always run and recorded, and not only on request.
    #[serde(default)]
    pub always: bool,
}

/// Choices that the source leaves open and that affect several schemes: every combination is run by all schemes of some tables and
/// criteria.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variation {
    /// The values of each place, that of the experiment itself first.
    pub set: BTreeMap<String, Vec<Toml>>,
    /// Tables of published ratios that select the nearest combination. Each states its group of points.
    #[serde(default)]
    pub tables: Vec<String>,
    /// Criteria with a published `figure` that select it too.
    #[serde(default)]
    pub criteria: Vec<String>,
    /// The first points of each `[[runs]]`; all if it is missing.
    pub points: Option<usize>,
    /// Whether it is always run and recorded, and not only on request: for choices that other experiments adopt.
    #[serde(default)]
    pub always: bool,
}

/// A criterion: what must hold, or is reported.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Criterion {
    /// Its name within the experiment.
    pub id: String,
    /// The condition, in words.
    pub text: String,
    /// Whether it should hold in any faithful model and so is judged; otherwise it is reported.
    #[serde(default)]
    pub robust: bool,
    /// Whether a second reader, given source, specification and code, found model and reading sound although it does not hold: a
    /// miss is then a finding. The experiment's README documents that reading.
    #[serde(default)]
    pub finding: bool,
    /// The source's figure or statement.
    pub published: String,
    /// The same as a number, in the unit of the measured value, for a choice by `[variation]`.
    pub figure: Option<f64>,
    /// The measure; missing only if the experiment is pending.
    pub measure: Option<Measure>,
    /// Lower bound of the value.
    pub at_least: Option<f64>,
    /// Upper bound of the value.
    pub at_most: Option<f64>,
}

impl Criterion {
    /// The bounds in words; empty without any.
    pub fn bounds(&self) -> String {
        let bound = |word: &str, bound: Option<f64>| bound.map(|bound| format!("at {word} {bound}"));
        [bound("least", self.at_least), bound("most", self.at_most)]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(", ")
    }
}

/// A table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableSpec {
    /// Its name, for references.
    pub id: String,
    /// Its heading.
    pub title: String,
    /// The scheme that all are divided by; without it, figures are shown unchanged, for each point.
    pub to: Option<String>,
    /// How ratios over several points are combined.
    #[serde(default)]
    pub mean: Mean,
    /// Its group of points: a row for each scheme, the mean over these points.
    pub at: Option<String>,
    /// The rows; all schemes if there are none.
    #[serde(default)]
    pub schemes: Vec<String>,
    /// The columns.
    #[serde(default)]
    pub metrics: Vec<Figure>,
    /// Groups of flows, by prefixes of their names: a row for each scheme and group.
    #[serde(default)]
    pub groups: Vec<String>,
    /// Instead of columns: what a mechanism loses by faults of its radio information.
    pub faults: Option<Faults>,
    /// Whether it is too long for a terminal and only shown in the report.
    #[serde(default)]
    pub report_only: bool,
    /// Published values of the columns, by scheme: ratios with `to`, else in base units (bit/s, s, B).
    #[serde(default)]
    pub published: BTreeMap<String, Vec<f64>>,
}

/// A plot.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlotSpec {
    /// Its caption.
    pub caption: String,
    /// The plotted figure.
    pub metric: Figure,
    /// The place on the horizontal axis; without it, a bar for each scheme, the mean over its points.
    pub over: Option<String>,
    /// With bars: only the flows of this group.
    pub flows: Option<String>,
    /// All schemes if there are none.
    #[serde(default)]
    pub schemes: Vec<String>,
}

const fn yes() -> bool {
    true
}

/// Why the text of an experiment was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExperimentError {
    /// It is not TOML, or has unknown keys or wrong types.
    #[error("{file}: {source}")]
    Malformed {
        /// The path of the file.
        file: String,
        /// The fault and its place.
        source: toml_edit::de::Error,
    },
    /// It is inconsistent.
    #[error("{file}: {what}")]
    Wrong {
        /// The path of the file.
        file: String,
        /// The fault.
        what: String,
    },
}

impl Experiment {
    /// Parses one. `file` is its name in errors.
    pub fn parse(text: &str, file: &str) -> Result<Self, ExperimentError> {
        let malformed = |source| ExperimentError::Malformed { file: file.to_owned(), source };
        let wrong = |what| ExperimentError::Wrong { file: file.to_owned(), what };
        let mut experiment: Self = toml_edit::de::from_str(text).map_err(malformed)?;
        if let Some(name) = &experiment.base {
            let base = Base::named(name).map_err(wrong)?;
            experiment = experiment.on(base).map_err(wrong)?;
        }
        match experiment.contradiction() {
            Some(what) => Err(wrong(what)),
            None => Ok(experiment),
        }
    }

    /// Returns whether `name` means it: its name, an alias, or the beginning of its name up to a hyphen ("001", "001-a3").
    pub fn is_called(&self, name: &str) -> bool {
        let begins = self.id.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
        (begins && !name.is_empty()) || self.alias.iter().any(|alias| alias == name)
    }

    /// The experiment on a base: its `[scenario]` is a patch of that of the base, its values and patches take precedence, its
    /// `[[runs]]` replace those of the base, and its remarks come before those of the base.
    fn on(mut self, mut base: Base) -> Result<Self, String> {
        patch::apply(&self.scenario, &mut base.scenario).map_err(|what| format!("scenario: {what}"))?;
        self.scenario = base.scenario;
        base.set.extend(self.set);
        self.set = base.set;
        base.patches.extend(self.patches);
        self.patches = base.patches;
        if self.runs.is_empty() {
            self.runs = base.runs;
        }
        self.says.push_str(&base.says);
        Ok(self)
    }

    /// Its file in the repository.
    pub fn file(&self) -> String {
        format!("reproductions/{}/experiment.toml", self.id)
    }

    /// A scheme preceded by all those that it starts from, the first one first.
    pub fn lineage<'a>(&'a self, scheme: &'a Scheme) -> Result<Vec<&'a Scheme>, String> {
        let mut lineage = vec![scheme];
        while let Some(label) = lineage[0].like.as_ref().or(lineage[0].variant_of.as_ref()) {
            let before = self.scheme(label).ok_or_else(|| format!("there is no scheme {label:?}"))?;
            if lineage.iter().any(|scheme| scheme.label == before.label) {
                return Err("it is like itself".to_owned());
            }
            lineage.insert(0, before);
        }
        Ok(lineage)
    }

    /// The scheme with this label.
    pub fn scheme(&self, label: &str) -> Option<&Scheme> {
        self.schemes.iter().find(|scheme| scheme.label == label)
    }

    /// With every combination of the switches as a further scheme, at the points of the judged one.
    pub fn with_sensitivity(mut self) -> Self {
        let Some(sensitivity) = self.sensitivity.clone() else { return self };
        let judged = self.schemes.iter().find(|scheme| scheme.role == Role::Judged).cloned();
        let labels: Vec<String> = sensitivity.combinations();
        let variant_of = judged.as_ref().filter(|_| sensitivity.criteria).map(|judged| judged.label.clone());
        for label in &labels {
            let cc = format!("{}:{}", sensitivity.cc, label.replace(' ', ":"));
            self.schemes.push(Scheme {
                label: label.clone(),
                role: Role::Shown,
                variant_of: variant_of.clone(),
                like: judged.as_ref().map(|judged| judged.label.clone()),
                uses: Vec::new(),
                patch: Table::default(),
                set: Set::from([("cc".to_owned(), Toml::Text(cc))]),
            });
        }
        for runs in &mut self.runs {
            let plays_judged = judged.as_ref().is_some_and(|scheme| runs.schemes.contains(&scheme.label));
            if plays_judged {
                runs.schemes.extend(labels.iter().cloned());
            }
        }
        self
    }
}

impl Sensitivity {
    /// Every combination of the switches, separated by blanks; the last switch changes fastest.
    pub fn combinations(&self) -> Vec<String> {
        self.switches.iter().fold(vec![String::new()], |begun, switch| {
            let with = |begun: &String, value: &String| {
                if begun.is_empty() { value.clone() } else { format!("{begun} {value}") }
            };
            begun.iter().flat_map(|begun| switch.iter().map(move |value| with(begun, value))).collect()
        })
    }
}

impl Variation {
    /// Every combination, that of the experiment itself first; in order of names, the last place changing fastest.
    pub fn combinations(&self) -> Vec<Set> {
        combinations(vec![Set::new()], &self.set, |set| set)
    }
}

/// A short one, for tests.
#[cfg(test)]
pub(super) const SMALL: &str = r#"
    id = "000-a1-small"
    alias = ["small"]
    title = "t"
    source = "s"
    says = ""
    [[scheme]]
    label = "x"
    set = { cc = "newreno" }
    [[criterion]]
    id = "c"
    text = "t"
    robust = true
    published = "1"
    measure = { figure = "rtt_mean", of = "x" }
    at_most = 1.0
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experiment_is_found_by_name_and_alias() {
        let experiment = Experiment::parse(SMALL, "small").unwrap();
        for (name, expected) in [
            ("000", true),
            ("000-a1", true),
            ("000-a1-small", true),
            ("small", true),
            ("00", false),
            ("", false),
            ("000-a", false),
        ] {
            assert_eq!(experiment.is_called(name), expected, "{name}");
        }
    }

    #[test]
    fn variation_plays_every_combination_of_values() {
        let list = |values: [&str; 2]| values.map(Toml::from).to_vec();
        let set = BTreeMap::from([("b".to_owned(), list(["1", "2"])), ("a".to_owned(), list(["x", "y"]))]);
        let variation =
            Variation { set, tables: Vec::new(), criteria: Vec::new(), points: None, always: false };
        let found: Vec<String> =
            variation.combinations().iter().map(|c| c["a"].plain() + &c["b"].plain()).collect();
        assert_eq!(found, ["x1", "x2", "y1", "y2"]);
    }

    #[test]
    fn sensitivity_plays_every_combination_of_switches() {
        let sensitivity = Sensitivity {
            cc: String::new(),
            switches: vec![vec!["a=1".into(), "a=2".into()], vec!["b=1".into(), "b=2".into()]],
            criteria: false,
            schemes: Vec::new(),
            metrics: Vec::new(),
            table: None,
            always: false,
        };
        assert_eq!(sensitivity.combinations(), ["a=1 b=1", "a=1 b=2", "a=2 b=1", "a=2 b=2"]);
    }
}
