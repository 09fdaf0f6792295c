//! Virtual time: the event engine, hosts and workloads.
#![forbid(unsafe_code)]

mod results;

pub use results::{Column, Distribution, FlowResult, Ledger, LinkResult, RunResult, Series, Transfer};
