//! What a measure gives.

/// A measured number.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// What is compared with the bounds.
    pub value: f64,
    /// What is shown.
    pub text: String,
}
