//! A cell's service to a user, over distance and over time: SINR, CQI, MCS, TBS and the resulting rate.
//!
//! Everything is computed by the [`Cell`](ranpace_radio::cell::Cell) that `ranpace run` uses. [`Distances`] and [`Moments`] examine
//! the channel alone, as if the whole band were the user's and every block arrived; [`Saturation`] runs the cell with full buffers
//! and reports the allocation to each user.

mod distance;
mod drawing;
mod look;
mod moments;
mod saturation;
mod subject;

pub use distance::{DistanceRow, DistanceView, Distances, Spread};
pub use look::{LinkState, Look};
pub use moments::{Moments, Statistics, TimeView};
pub use saturation::{Saturation, SaturationView, Served};
pub use subject::{Subject, Watched};

pub use crate::pictures::{Pictures, SIZE as PICTURE_SIZE};

use ranpace_radio::cell::CellError;

use crate::PlotError;

/// A view in its output forms.
pub trait View {
    /// For people: the subject, and tables.
    fn text(&self) -> String;
    /// For programs.
    fn json(&self) -> serde_json::Value;
    /// As plots.
    fn pictures(&self) -> Result<Pictures, PlotError>;
}

/// Why there is nothing to show.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ViewError {
    /// There is no preset with that name.
    #[error(
        "no cell is called {name:?}; the nearest are {nearest}; `ranpace list cells` shows all, and a scenario file is \
         given by its path"
    )]
    NoPreset {
        /// The name asked for.
        name: String,
        /// The names perhaps meant.
        nearest: String,
    },
    /// The scenario has no such object, or more than one and none was named.
    #[error("{0}")]
    Choice(String),
    /// A value out of its range.
    #[error("{what}: expected {expected}, found {found}")]
    Value {
        /// The value's name.
        what: &'static str,
        /// Its range.
        expected: String,
        /// The value.
        found: String,
    },
    /// The cell cannot be run.
    #[error(transparent)]
    Cell(#[from] CellError),
}

impl ViewError {
    /// A value is out of its range.
    pub fn value(what: &'static str, expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self::Value { what, expected: expected.into(), found: found.into() }
    }
}

/// Quantile of `sorted` at this share (nearest rank); NaN without values.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let rank = libm::ceil(share * sorted.len() as f64) as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied().unwrap_or(f64::NAN)
}

/// A figure for JSON, which has no infinity and no NaN.
fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_observed_values() {
        let values = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(
            [0.0, 0.25, 0.5, 0.51, 0.95, 1.0].map(|share| quantile(&values, share)),
            [1.0, 1.0, 2.0, 3.0, 4.0, 4.0]
        );
        assert!(quantile(&[], 0.5).is_nan());
    }
}
