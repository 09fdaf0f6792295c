//! What a measure gives.

use crate::plot::PlotError;

/// A measured number.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// What is compared with the bounds.
    pub value: f64,
    /// What is shown.
    pub text: String,
}

/// Analytic models, which are not part of the product: measures without runs, and plots. Experiments name them.
#[derive(Clone, Copy, Debug)]
pub struct Models {
    /// The measure of this name; `None` if there is none.
    pub statement: fn(&str) -> Option<Result<Measured, String>>,
    /// The plots of the model of this name, each as SVG with what it shows; `None` if there is none.
    pub plots: fn(&str) -> Option<ModelPlots>,
}

/// Plots as SVG, each with what it shows.
pub type ModelPlots = Result<Vec<(String, String)>, PlotError>;

impl Models {
    /// No models.
    pub const NONE: Self = Self { statement: |_| None, plots: |_| None };
}
