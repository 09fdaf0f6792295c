//! Bases: shared parts of several experiments of one source, in `reproductions/base/NAME.toml`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::places::Set;
use super::runs::Runs;
use super::toml::Table;

/// A base. Its keys have the same meaning as in an experiment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Base {
    /// Remarks that apply to all experiments on it.
    #[serde(default)]
    pub says: String,
    /// The scenario that theirs are patches of.
    pub scenario: Table,
    /// Patches by name.
    #[serde(default, rename = "patch")]
    pub patches: BTreeMap<String, Table>,
    /// Values of places.
    #[serde(default)]
    pub set: Set,
    /// The runs of experiments that have none of their own.
    #[serde(default)]
    pub runs: Vec<Runs>,
}

/// Names and texts of bases.
macro_rules! embedded {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../reproductions/base/", $name, ".toml")))),*]
    };
}

/// Every base, as its name and its text.
#[rustfmt::skip] // a line for each document
const BASES: &[(&str, &str)] = embedded![
    "000-lte", "000-mmwave", "000-mmwave-up",
    "001-trace",
    "002-lte",
    "003-oai",
    "004-hops", "004-lte", "004-lte-four",
    "edge-lte",
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
}
