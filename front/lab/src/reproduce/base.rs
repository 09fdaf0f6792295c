//! Bases: what several experiments of one source have in common, in `reproductions/base/NAME.toml`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::places::Set;
use super::runs::Runs;
use super::toml::Table;

/// A base. Its keys mean what they mean in an experiment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Base {
    /// What holds for all experiments on it.
    #[serde(default)]
    pub says: String,
    /// The scenario that theirs are patches on.
    pub scenario: Table,
    /// Patches by name.
    #[serde(default, rename = "patch")]
    pub patches: BTreeMap<String, Table>,
    /// Values of places.
    #[serde(default)]
    pub set: Set,
    /// The runs of those that have none of their own.
    #[serde(default)]
    pub runs: Vec<Runs>,
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
}
