//! Links and queues: what a packet meets between two hosts.
//!
//! A [`Link`] takes a packet through four stages: loss (random or listed), a [`Queue`] (drop-tail, CoDel,
//! FQ-CoDel or PIE), a server (a fixed rate, or the delivery opportunities of a [`Trace`]) and propagation
//! (delay, jitter, reordering). It is a passive state machine: the caller passes the time, asks
//! [`Link::next_event`] when to come back, and calls [`Link::poll`]. Whenever it is called, every internal
//! event carries the instant at which it is due, so a late call changes nothing.
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
//!     fn is_ect(&self) -> bool {
//!         false
//!     }
//!     fn mark_ce(&mut self) {}
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

mod codel;
mod config;
mod drop_tail;
mod fixed;
mod flight;
mod fq_codel;
mod generate;
mod link;
mod loss;
mod opportunities;
mod parse;
mod pie;
mod queue;
mod random;
mod stats;
#[cfg(test)]
mod testing;
mod trace;

pub use codel::CoDel;
pub use config::{Jitter, Limit, LimitError, LinkConfig, Loss, QueueConfig, Reorder, Service, TraceService};
pub use drop_tail::DropTail;
pub use fq_codel::FqCoDel;
pub use generate::CellularModel;
pub use link::Link;
pub use parse::TraceParser;
pub use pie::Pie;
pub use queue::{Queue, Queued};
pub use stats::TraceStats;
pub use trace::{Trace, TraceError};

use ranpace_units::{Bytes, Span, Time};

/// What a link needs to know of a packet.
pub trait Packet {
    /// Bytes on the wire, IP header included.
    fn size(&self) -> Bytes;
    /// The flow that it belongs to; FQ-CoDel keeps flows apart.
    fn flow(&self) -> u32;
    /// Whether its sender can be told of congestion by a mark (ECT(0) or ECT(1); RFC 3168 section 5).
    fn is_ect(&self) -> bool;
    /// Sets Congestion Experienced (RFC 3168 section 5). Called only if [`Packet::is_ect`].
    fn mark_ce(&mut self);
}

/// Why a packet was dropped.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropCause {
    /// The queue was full.
    Overflow,
    /// The decision of CoDel, FQ-CoDel or PIE.
    Aqm,
    /// Random or burst loss, before the queue.
    Random,
    /// Its number stood in a fixed list, before the queue.
    Listed,
}

/// Is told what happens to packets. Every method does nothing unless it is written.
///
/// Calls are made as the link learns of things, with the instant at which they were due: each kind of
/// call comes in the order of time, but a departure can be told after the call that reached beyond it.
pub trait Observer<P> {
    /// Joined the queue, which then holds `queued` (this packet included, one in service not).
    fn on_enqueued(&mut self, now: Time, packet: &P, queued: Bytes) {
        let _ = (now, packet, queued);
    }
    /// Was dropped, and will not be seen again.
    fn on_dropped(&mut self, now: Time, packet: &P, cause: DropCause) {
        let _ = (now, packet, cause);
    }
    /// Its last byte crossed the bottleneck at `now`. `waited` runs from joining the queue to `now`: it is
    /// the time in the queue **and** the packet's own service, without propagation. `marked` is whether
    /// this link set Congestion Experienced.
    fn on_departed(&mut self, now: Time, packet: &P, waited: Span, marked: bool) {
        let _ = (now, packet, waited, marked);
    }
}

/// Nobody listens.
impl<P> Observer<P> for () {}

impl<P, O: Observer<P> + ?Sized> Observer<P> for &mut O {
    fn on_enqueued(&mut self, now: Time, packet: &P, queued: Bytes) {
        (**self).on_enqueued(now, packet, queued);
    }
    fn on_dropped(&mut self, now: Time, packet: &P, cause: DropCause) {
        (**self).on_dropped(now, packet, cause);
    }
    fn on_departed(&mut self, now: Time, packet: &P, waited: Span, marked: bool) {
        (**self).on_departed(now, packet, waited, marked);
    }
}
