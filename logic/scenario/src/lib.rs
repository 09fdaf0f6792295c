//! The scenario file: the description of a run, parsed and checked, the same for virtual and real time.
//!
//! A scenario is one TOML text. [`parse()`] turns it into a [`Scenario`] in which names are indices, defaults are filled in
//! and every value has been checked, or into a [`ScenarioError`] that lists every problem, each
//! with file, line and column. [`vary()`] changes one key of a text, and [`presets`] write common scenarios as
//! texts. This crate reads no files: traces come from a [`TraceSource`]. `docs/scenarios.md` describes
//! the format.
//!
//! ```
//! let scenario = ranpace_scenario::parse(
//!     r#"
//!     duration = "10s"
//!     [[link]]
//!     from = "server"
//!     to = "phone"
//!     rate = "12Mbit/s"
//!     delay = "20ms"
//!     duplex = true
//!     [[flow]]
//!     from = "server"
//!     to = "phone"
//!     cc = "newreno"
//!     "#,
//!     "example.toml",
//!     &mut (),
//! )?;
//! assert_eq!(scenario.links[1].name, "link1.back");
//! # Ok::<(), ranpace_scenario::ScenarioError>(())
//! ```
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod algorithm;
mod cell;
pub mod cells;
mod change;
mod entries;
mod error;
mod field;
mod flow;
mod key;
mod limits;
mod link;
mod listing;
mod measure;
mod middlebox;
mod model;
mod network;
mod parse;
mod pep;
pub mod presets;
mod proxy;
mod quic;
mod reader;
mod rewriter;
mod rnis;
mod settings;
mod tables;
mod tcp;
mod vary;
mod workload;

pub use error::{Diagnostic, Position, ScenarioError};
pub use link::TraceSource;
pub use listing::{Kind, QUEUES, WORKLOADS};
pub use measure::distance_m;
pub use model::{
    CellSpec, Change, ChangeKind, FeedKind, FlowSpec, Hop, LinkSpec, MiddleboxSpec, PassingSpec, PepLie,
    PepSpec, ProxyKind, ProxySpec, RewriterSpec, Scenario, SplitSpec, Transport, UserSpec, WatchSpec,
    Workload,
};
pub use parse::parse;
pub use rnis::{Content, Encoding, FeedSpec};
pub use tables::{key_groups, key_table};
pub use vary::vary;
