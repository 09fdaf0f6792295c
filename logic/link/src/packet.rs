//! The interfaces of a link to its surroundings: what it must know of a packet, and the observer that it notifies.

use ranpace_units::{Bytes, Span, Time};

/// The properties of a packet that a link needs.
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
