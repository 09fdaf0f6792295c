//! The scenario's own workloads over the kernel's TCP and UDP.

/// Plays the flows of the scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workloads {
    /// The kernel's congestion control for all TCP flows, instead of those of the scenario.
    pub cc: Option<String>,
}
