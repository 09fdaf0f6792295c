//! Links and queues: the path of a packet between two hosts.
//!
//! A [`Link`] takes a packet through these stages: loss (random or listed), the path under light load (only with a
//! [`LightService`]), a [`Queue`] (drop-tail, CoDel, FQ-CoDel, PIE, DualPI2, L4Span's marks or ABC's router), a server (a fixed
//! rate, or the delivery opportunities of a [`Trace`]) and propagation (delay, jitter, reordering). It is a passive state
//! machine: the caller passes the time, comes back at [`Link::next_event`], and calls [`Link::poll`]. Every internal event
//! happens at the instant at which it is due, so a late call changes nothing.
//!
//! The same configuration, seed and sequence of calls give the same result on any machine.
//!
//! ```
//! use ranpace_link::{Limit, Link, LinkConfig, Packet, QueueConfig, Service};
//! use ranpace_units::{Bytes, Rate, Span, Time};
//!
//! struct Plain(u64);
//! impl Packet for Plain {
//!     fn size(&self) -> Bytes {
//!         Bytes::new(self.0)
//!     }
//!     fn flow(&self) -> u32 {
//!         0
//!     }
//! }
//!
//! let service = Service::Fixed(Rate::from_mbit_per_s(12));
//! let queue = QueueConfig::codel(Limit::Packets(1000));
//! let config = LinkConfig::new(service, queue, Span::from_millis(20));
//! let mut link = Link::new(&config, 42);
//! link.send(Time::ZERO, Plain(1500), &mut ()); // `()` does not listen
//! let mut arrivals = Vec::new();
//! while link.next_event() != Time::MAX {
//!     let now = link.next_event();
//!     while link.poll(now, &mut ()).is_some() {
//!         arrivals.push(now);
//!     }
//! }
//! assert_eq!(arrivals, [Time::from_millis(21)]); // 1 ms to send, 20 ms to travel
//! ```
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod abc;
mod codel;
mod config;
mod drop_tail;
mod dual_pi2;
mod fifo;
mod fixed;
mod flight;
mod fq_codel;
mod generate;
mod l4span;
mod light;
mod link;
mod loss;
mod opportunities;
mod packet;
mod parse;
mod pie;
mod queue;
mod random;
mod stats;
#[cfg(test)]
mod testing;
mod trace;

pub use abc::Abc;
pub use codel::CoDel;
pub use config::{
    AbcForm, Jitter, Limit, LimitError, LinkConfig, Loss, QueueConfig, Reorder, Service, TraceService,
};
pub use drop_tail::DropTail;
pub use dual_pi2::DualPi2;
pub use fifo::Queued;
pub use fq_codel::FqCoDel;
pub use generate::CellularModel;
pub use l4span::L4Span;
pub use light::{LightService, LightTrace, LightTraceError, Train};
pub use link::Link;
pub use packet::{DropCause, Observer, Packet};
pub use parse::TraceParser;
pub use pie::Pie;
pub use queue::Queue;
pub use stats::TraceStats;
pub use trace::{Trace, TraceError};
