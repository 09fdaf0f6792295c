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

mod agenda;
mod feed;
mod flow;
mod histogram;
mod lightweight;
mod memories;
mod meter;
mod packet;
mod passing;
mod quic;
mod radio;
mod random;
mod real_time;
mod results;
mod route;
mod series;
mod simulation;
mod split;
mod tap;
mod udp;

pub use feed::Source;
pub use histogram::Histogram;
pub use packet::{Direction, Packet};
pub use results::{
    CellResult, Column, Distribution, FeedResult, FlowResult, FlowTotals, Ledger, LinkResult, LostConnection,
    Moment, PepResult, RadioLinkResult, RunResult, Series, SplitResult, Transfer, UserResult,
};
pub use simulation::{Arrived, Cargo, Network, Onlooker, Simulation, link_names};
pub use tap::{Tap, TapEvent};
pub use udp::UdpSource;
