//! The result of a measure.

use crate::plot::PlotError;

/// A measured number.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The value compared with the bounds.
    pub value: f64,
    /// The text shown.
    pub text: String,
}

/// Analytic models, which are not part of the product: measures without runs, and plots. Experiments refer to them by name.
#[derive(Clone, Copy, Debug)]
pub struct Models {
    /// The measure with this name; `None` if there is none.
    pub statement: fn(&str) -> Option<Result<Measured, String>>,
    /// The plots of the model with this name, each as SVG with its description; `None` if there is none.
    pub plots: fn(&str) -> Option<ModelPlots>,
}

/// Plots as SVG, each with its description.
pub type ModelPlots = Result<Vec<(String, String)>, PlotError>;

impl Models {
    /// No models.
    pub const NONE: Self = Self { statement: |_| None, plots: |_| None };
}
