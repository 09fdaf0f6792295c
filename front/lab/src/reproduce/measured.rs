//! What a measure gives.

/// A measured number.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// What is compared with the bounds.
    pub value: f64,
    /// What is shown.
    pub text: String,
}

/// Measures without runs that are not part of the product, by their names: `None` for a name that is unknown. Experiments
/// about analytic models call them.
pub type Statements = fn(&str) -> Option<Result<Measured, String>>;

/// No such measures.
pub fn no_statements(_: &str) -> Option<Result<Measured, String>> {
    None
}
