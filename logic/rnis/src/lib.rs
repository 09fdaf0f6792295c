//! Radio network information: what a cell reports of itself and its users, TTI by TTI.
//!
//! A [`SlotReport`] is one slot of a cell: what was granted to whom, and what waits. It lends its rows, so that it costs
//! nothing to pass it on; who wants to keep a row copies it. [`Event`]s tell of what happens now and then: a bearer that
//! fails, a handover.
//!
//! From there it goes to those who decide by it, in the form that each needs:
//!
//! - a [`Publisher`] averages reports into [`RadioHint`]s: what a mechanism is told of a user; [`subscription`] has several, by
//!   user, cell and period;
//! - a [`shared_table`] holds the latest of every user on shared words: one writer, many readers;
//! - [`wire`] has the datagrams of the feed between hosts, [`etsi`] the objects of the standard's API as JSON and our
//!   extension beside them, [`TextReport`] the line of the original experiments;
//! - [`Timestamped`] and [`StalenessLimit`]: how old something is, and from which age on nobody decides by it.
//!
//! Transport blocks are counted in bits, queues in bytes. Every time is when something was measured, not when it was told.
//! Source: ETSI GS MEC 012 for the idea; the fields are those that the mechanisms of the published experiments read (Diarra
//! 2022, 3.1.2, 4.2.3 and 5.2.2), most of which the standard has not.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod activity;
#[cfg(feature = "etsi")]
pub mod etsi;
mod event;
mod hint;
mod publisher;
mod report;
pub mod shared_table;
pub mod subscription;
mod text;
mod timestamped;
pub mod wire;

pub use event::{Event, EventKind};
pub use hint::RadioHint;
pub use publisher::{Averaging, Publisher};
pub use report::{BearerReport, CellInfo, Grant, LinkReport, SlotReport, Technology, UserReport};
pub use text::{NotAReport, TextReport};
pub use timestamped::{StalenessLimit, Timestamped};
