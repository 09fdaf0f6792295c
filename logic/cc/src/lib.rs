//! Congestion control: one algorithm, one file. [`interface`] defines what a control observes and what it may set.
//!
//! An algorithm is named by text, `NAME(+DECORATOR)*(:key=value)*`, and built by [`Algorithm`]:
//!
//! ```
//! use ranpace_cc::Algorithm;
//! let algorithm: Algorithm = "cubic+c2tcp:target=50ms".parse()?;
//! let control = algorithm.build(1);
//! # drop(control);
//! # Ok::<(), ranpace_cc::AlgorithmError>(())
//! ```
//!
//! The algorithms are grouped by the information they use: `classic`, `marks`, `rate_based`, `client_driven` and `radio`; `decorators`
//! wrap others. Each declares an [`Entry`] or a [`Decorator`], and the registry lists them all.
#![forbid(unsafe_code)]

mod algorithm;
mod classic;
mod client_driven;
mod decorators;
mod entry;
mod filter;
pub mod interface;
mod marks;
mod option_form;
mod options;
mod radio;
mod rate_based;
mod registry;
mod round;
#[cfg(test)]
mod testing;

pub use algorithm::{Algorithm, AlgorithmError};
pub use client_driven::{bw_report, cdbe, cdbev2};
pub use decorators::{c2tcp, meld};
pub use entry::{
    Build, BuildReceiver, Control, ControlWrapper, Decorator, Entry, ReceiverWrapper, Transport, Wrap,
};
pub use interface::*;
pub use option_form::{OptionForm, OptionKind};
pub use options::{OptionError, OptionInfo, Options};
pub use radio::{mdcc, sigma};
pub use registry::{ALIASES, ALL, DECORATORS};
