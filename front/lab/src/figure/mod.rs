//! The table of figures: every measurement of a run has one entry here, with its name, title, unit, a one-sentence description, and
//! how it is computed from a run and a choice of its flows.
//!
//! Comparisons, summaries, tables of reproductions and criteria all name figures of this table. **To add a figure, add one
//! [`Entry`]** to the file of its topic; nothing else needs to know of it. `docs/reproductions.md` explains how criteria are made
//! of figures.

mod c2tcp;
mod cdbe;
mod comparison;
mod delivery;
mod downloads;
mod estimator;
mod filling;
mod joining;
mod outages;
mod scope;
mod sequence;
mod series;
#[cfg(test)]
mod testing;
mod totals;
mod tracking;
mod uploads;

use std::sync::LazyLock;

use ranpace_sim::{FlowResult, RunResult};
use serde::{Deserialize, Deserializer};

use crate::figures::Quantity;
use crate::stats;

pub use scope::{Flows, Scope, Values, Window, is_in_group, of_group, place_number};

/// One figure.
#[derive(Clone, Copy)]
pub struct Entry {
    /// As experiments name it.
    pub name: &'static str,
    /// Heading of a column.
    pub title: &'static str,
    /// The quantity, which determines the unit. Values are in base units: bit/s, bytes, seconds, shares.
    pub quantity: Quantity,
    /// Its description, in a sentence.
    pub about: &'static str,
    /// How it is computed.
    pub of: Of,
}

/// How a figure is computed. NaN and `Err` both mean that a run does not have it; `Err` says why.
#[derive(Clone, Copy)]
pub enum Of {
    /// One number per run, defined for any run.
    Run(fn(&Scope<'_>) -> f64),
    /// The mean over the flows that have it.
    Flows(fn(&FlowResult) -> Option<f64>),
    /// One number per run, from places or columns that the experiment must have.
    Needs(fn(&Scope<'_>) -> Result<f64, String>),
    /// Several numbers per run: one for each flow, transfer, segment or row.
    Each(fn(&Scope<'_>) -> Result<Vec<f64>, String>),
}

/// Entry of a figure that every run has.
const fn run(
    name: &'static str,
    title: &'static str,
    quantity: Quantity,
    about: &'static str,
    of: fn(&Scope<'_>) -> f64,
) -> Entry {
    Entry { name, title, quantity, about, of: Of::Run(of) }
}

/// Entry of a figure of a flow, and its mean over the flows that have it.
const fn of_flows(
    name: &'static str,
    title: &'static str,
    quantity: Quantity,
    about: &'static str,
    of: fn(&FlowResult) -> Option<f64>,
) -> Entry {
    Entry { name, title, quantity, about, of: Of::Flows(of) }
}

/// Entry of a figure that needs places or columns.
const fn needs(
    name: &'static str,
    quantity: Quantity,
    about: &'static str,
    of: fn(&Scope<'_>) -> Result<f64, String>,
) -> Entry {
    Entry { name, title: name, quantity, about, of: Of::Needs(of) }
}

/// Entry of a figure with several numbers a run.
const fn each(
    name: &'static str,
    quantity: Quantity,
    about: &'static str,
    of: fn(&Scope<'_>) -> Result<Vec<f64>, String>,
) -> Entry {
    Entry { name, title: name, quantity, about, of: Of::Each(of) }
}

/// The table, by topic.
static TABLE: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    [
        delivery::FIGURES,
        comparison::FIGURES,
        totals::FIGURES,
        tracking::FIGURES,
        downloads::FIGURES,
        joining::FIGURES,
        outages::FIGURES,
        filling::FIGURES,
        uploads::FIGURES,
        sequence::FIGURES,
        estimator::FIGURES,
        cdbe::FIGURES,
        c2tcp::FIGURES,
    ]
    .concat()
});

/// A figure of the table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Figure(usize);

impl Figure {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..TABLE.len()).map(Self)
    }

    /// The figure of this name.
    pub fn named(name: &str) -> Option<Self> {
        TABLE.iter().position(|entry| entry.name == name).map(Self)
    }

    /// Its place in the table.
    pub fn index(self) -> usize {
        self.0
    }

    /// Its entry.
    pub fn entry(self) -> &'static Entry {
        &TABLE[self.0]
    }

    /// Heading of a column.
    pub fn title(self) -> &'static str {
        self.entry().title
    }

    /// The quantity that it measures.
    pub fn quantity(self) -> Quantity {
        self.entry().quantity
    }

    /// A value with its unit.
    pub fn show(self, value: f64) -> String {
        self.quantity().show(value)
    }

    /// Its value over all flows of a run but plain sources; NaN if there is none.
    pub fn of(self, run: &RunResult) -> f64 {
        self.single(&Scope::of(run))
    }

    /// Its value as one number per run; NaN if there is none.
    pub fn single(self, scope: &Scope<'_>) -> f64 {
        match self.entry().of {
            Of::Run(of) => of(scope),
            Of::Flows(of) => {
                let each: Vec<f64> = scope.flows.iter().filter_map(|flow| of(flow)).collect();
                stats::mean(&each).unwrap_or(f64::NAN)
            }
            Of::Needs(of) => of(scope).unwrap_or(f64::NAN),
            Of::Each(_) => f64::NAN,
        }
    }

    /// Its values, or why there are none.
    pub fn values(self, scope: &Scope<'_>) -> Result<Vec<f64>, String> {
        match self.entry().of {
            Of::Run(_) | Of::Flows(_) => Ok(vec![self.single(scope)]),
            Of::Needs(of) => of(scope).map(|value| vec![value]),
            Of::Each(of) => of(scope),
        }
    }
}

impl core::fmt::Debug for Figure {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.write_str(self.entry().name)
    }
}

impl<'de> Deserialize<'de> for Figure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::named(&name).ok_or_else(|| {
            let near = |entry: &&Entry| (strsim::jaro_winkler(entry.name, &name) * 1e6) as u64;
            let nearest = TABLE.iter().max_by_key(near).map_or("none", |entry| entry.name);
            serde::de::Error::custom(format!("there is no figure {name:?}; the closest is {nearest:?}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_has_its_own_name_and_a_sentence() {
        let mut names: Vec<&str> = TABLE.iter().map(|entry| entry.name).collect();
        names.sort_unstable();
        for pair in names.windows(2) {
            assert_ne!(pair[0], pair[1], "two figures have the same name");
        }
        for entry in TABLE.iter() {
            assert!(entry.about.ends_with('.') && !entry.title.is_empty(), "{}", entry.name);
            assert!(entry.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'));
        }
    }
}
