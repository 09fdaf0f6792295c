//! Radio network information: what a cell reports of itself and its users, TTI by TTI.
//!
//! A [`Report`] is one slot of a cell: what was granted to whom, and what waits. It lends its rows, so that it costs
//! nothing to pass it on; who wants to keep a row copies it. [`Event`]s tell of what happens now and then: a bearer that
//! fails, a handover.
//!
//! Transport blocks are counted in bits, queues in bytes. Every time is when something was measured, not when it was told.
//! Source: ETSI GS MEC 012 for the idea; the fields are those that the mechanisms of the published experiments read (Diarra
//! 2022, 3.1.2, 4.2.3 and 5.2.2), most of which the standard has not.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod activity;
mod age;
pub mod board;
mod event;
mod hint;
mod publisher;
mod report;
pub mod wire;

pub use age::{Aged, Patience};
pub use event::{Event, EventKind};
pub use hint::RadioHint;
pub use publisher::{Averaging, Publisher};
pub use report::{BearerReport, CellInfo, Grant, LinkReport, Report, Technology, UserReport};
