//! Radio network information: what a cell reports about itself and its users, TTI by TTI.
//!
//! A [`SlotReport`] describes one slot of a cell: the grants to each user, and the queues. It borrows its rows, so that passing it
//! on costs nothing; a consumer that wants to keep a row copies it. [`Event`]s report rare occurrences: a bearer failure, a
//! handover.
//!
//! From there the information reaches its consumers in the form that each of them needs:
//!
//! - a [`Publisher`] averages reports into [`RadioHint`]s, the input of a mechanism about one user; [`subscription`] manages
//!   several of them, by user, cell and period;
//! - a [`ControlChannel`] has the grants of one slot to all users, for a device that decodes the messages to others, too;
//! - a [`shared_table`] holds the latest values of every user in shared memory: one writer, many readers;
//! - [`wire`] encodes reports as datagrams, [`feed`] adds what a feed between hosts needs: who gets what, the seal's header, names,
//!   the offset of clocks;
//! - [`etsi`] has the objects of the standard's API as JSON with our extension beside them, `lines` the JSON between a base station
//!   and a server of it, [`TextReport`] the text line of the original experiments;
//! - [`guidance`] is the TCP option in which a provider advises a server on a rate;
//! - [`Timestamped`] and [`StalenessLimit`]: the age of a value, and the age from which a mechanism no longer uses it.
//!
//! Transport blocks are counted in bits, queues in bytes. Every time is that of the measurement, not of its delivery. Source: ETSI
//! GS MEC 012 for the idea; the fields are those that the mechanisms of the published experiments read (Diarra 2022, 3.1.2, 4.2.3
//! and 5.2.2), most of which the standard lacks.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod activity;
mod control_channel;
#[cfg(feature = "etsi")]
pub mod etsi;
mod event;
pub mod feed;
pub mod guidance;
mod hint;
mod identity;
#[cfg(feature = "write-lines")]
pub mod lines;
mod measurement;
mod publisher;
mod replay;
mod report;
pub mod shared_table;
pub mod subscription;
mod text;
mod timestamped;
pub mod update;
pub mod wire;

pub use control_channel::{CellGrant, ControlChannel, SI_RNTI};
pub use event::{Event, EventKind};
pub use hint::RadioHint;
pub use identity::{AssociateId, Ecgi, IdType, Plmn};
pub use measurement::{ReferenceSignal, Traffic};
pub use publisher::{Averaging, Publisher};
pub use replay::Replay;
pub use report::{BearerReport, CellInfo, Grant, LinkReport, SlotReport, Technology, UserReport};
pub use text::{NotAReport, TextReport};
pub use timestamped::{StalenessLimit, Timestamped};
