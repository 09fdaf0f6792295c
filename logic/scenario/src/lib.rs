//! The scenario file: what is to be played, parsed and checked, the same for virtual and for real time.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod model;

pub use model::{Change, ChangeKind, FlowSpec, LinkSpec, Scenario, Transport, Workload};
