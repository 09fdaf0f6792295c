//! Measures that are algorithms of their own: what the algebra does not say.

use serde::Deserialize;

use super::c2tcp;
use super::cells::{Absent, Cells};
use super::faults::Faults;
use super::measured::Measured;

/// The functions, by the name that experiments call them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Function {
    /// C2TCP's conditions over a series of RTTs with the shape of its Fig. 2: 1 if they are as published.
    C2tcpConditions,
    /// RTTs of that series that are Bad in one place and Normal in another: their number.
    C2tcpHistory,
    /// Number of rows in which a mechanism at the edge breaks the rule of faults.
    FaultsBroken(Faults),
    /// A statement from outside of the product, by its name; it has no runs.
    #[serde(untagged)]
    Named(String),
}

impl Function {
    /// Its value for these schemes.
    pub fn of(&self, schemes: &[String], cells: &Cells) -> Result<Measured, Absent> {
        match self {
            Self::C2tcpConditions => c2tcp::conditions(),
            Self::C2tcpHistory => c2tcp::history(),
            Self::FaultsBroken(faults) => faults.broken(schemes, cells),
            Self::Named(name) => match (cells.models().statement)(name) {
                Some(measured) => measured.map_err(Absent::Nothing),
                None => Err(Absent::Nothing(format!("there is no function {name:?}"))),
            },
        }
    }
}
