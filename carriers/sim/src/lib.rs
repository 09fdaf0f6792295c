//! Virtual time: the event engine, hosts and workloads.
//!
//! ```
//! use ranpace_sim::Simulation;
//! # let scenario = ranpace_scenario::parse(r#"
//! # duration = "1s"
//! # [[link]]
//! # name = "down"
//! # from = "server"
//! # to = "phone"
//! # rate = "10Mbit/s"
//! # delay = "10ms"
//! # duplex = true
//! # [[flow]]
//! # from = "server"
//! # to = "phone"
//! # cc = "newreno"
//! # "#, "example.toml", &mut ())?;
//! let result = Simulation::new(&scenario).run();
//! assert!(result.ledger.balances());
//! # Ok::<(), ranpace_scenario::ScenarioError>(())
//! ```
#![forbid(unsafe_code)]

mod flow;
mod host_table;
mod lightweight;
mod passing;
mod pep_outcome;
mod quic;
mod rewriting;
mod series;
mod simulation;
mod split;

pub use ranpace_network::{
    CellResult, Column, Direction, Distribution, FeedResult, FlowResult, FlowTotals, Histogram, Ledger,
    LinkResult, LostConnection, Moment, Packet, PepResult, RadioLinkResult, RunResult, Series, Source,
    SplitResult, Tap, TapEvent, Transfer, Updates, UserResult, link_names,
};
pub use simulation::{HintObserver, SeriesSoFar, Simulation};
