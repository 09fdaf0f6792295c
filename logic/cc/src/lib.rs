//! Congestion control: one algorithm, one file; what it may know and what it may set is in [`interface`].
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
#![forbid(unsafe_code)]

pub mod bbr1;
pub mod bbr_zhong;
pub mod bw_report;
pub mod c2tcp;
pub mod cdbe;
pub mod cdbev2;
mod client_driven;
pub mod cqic_s;
pub mod cubic;
pub mod dcic;
#[cfg(test)]
mod fifo;
mod filter;
mod guard;
pub mod hystart;
pub mod interface;
pub mod mdcc;
pub mod meld;
pub mod newreno;
mod options;
pub mod quic_cqic;
pub mod rapid;
mod registry;
mod round;
pub mod scalable;
pub mod sigma;
pub mod sprout;
#[cfg(test)]
mod testbed;
#[cfg(test)]
mod torture;
pub mod vegas;
pub mod veno;
pub mod verus;
pub mod vivace;
pub mod westwood;
pub mod yeah;

pub use interface::*;
pub use options::{OptionError, OptionInfo, Options};
pub use registry::{
    ALIASES, ALL, Algorithm, AlgorithmError, BuildReceiver, Control, DECORATORS, Decorator, Entry, Transport,
    Wrap,
};
