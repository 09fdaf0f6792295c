//! Bases: what several experiments of one source have in common, in `reproductions/base/NAME.toml`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::experiment::{Experiment, Runs};
use super::patch;
use super::places::Set;
use super::toml::Table;

/// A base. Its keys mean what they mean in an experiment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Base {
    #[serde(default)]
    says: String,
    scenario: Table,
    #[serde(default, rename = "patch")]
    patches: BTreeMap<String, Table>,
    #[serde(default)]
    set: Set,
    #[serde(default)]
    runs: Vec<Runs>,
}

/// The name and the text of a base.
macro_rules! embedded {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../../reproductions/base/", $name, ".toml")))
    };
}

/// Every base, as its name and its text.
const BASES: &[(&str, &str)] = &[
    embedded!("000-lte"),
    embedded!("000-mmwave"),
    embedded!("000-mmwave-up"),
    embedded!("001-trace"),
    embedded!("002-lte"),
    embedded!("003-oai"),
    embedded!("004-hops"),
    embedded!("004-lte"),
    embedded!("004-lte-four"),
    embedded!("edge-lte"),
];

impl Base {
    /// The base with this name.
    pub fn named(name: &str) -> Result<Self, String> {
        let (_, text) = BASES.iter().find(|(known, _)| *known == name).ok_or_else(|| {
            let known: Vec<&str> = BASES.iter().map(|(known, _)| *known).collect();
            format!("there is no base {name:?}; there are: {}", known.join(", "))
        })?;
        toml_edit::de::from_str(text).map_err(|error| format!("reproductions/base/{name}.toml: {error}"))
    }

    /// An experiment on this base: its `[scenario]` is a patch on that of the base, its values and patches take precedence, its
    /// `[[runs]]` replace those of the base, and what the base says follows what it says itself.
    pub fn under(mut self, mut experiment: Experiment) -> Result<Experiment, String> {
        patch::apply(&experiment.scenario, &mut self.scenario).map_err(|what| format!("scenario: {what}"))?;
        experiment.scenario = self.scenario;
        self.set.extend(experiment.set);
        experiment.set = self.set;
        self.patches.extend(experiment.patches);
        experiment.patches = self.patches;
        if experiment.runs.is_empty() {
            experiment.runs = self.runs;
        }
        experiment.says.push_str(&self.says);
        Ok(experiment)
    }
}
