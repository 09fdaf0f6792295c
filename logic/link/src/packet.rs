//! The interfaces of a link to its surroundings: the properties of packets that it needs, and the observer that it notifies.

use ranpace_units::{Bytes, Ecn, Span, Time};

/// The properties of a packet that a link needs.
pub trait Packet {
    /// Bytes on the wire, IP header included.
    fn size(&self) -> Bytes;
    /// The flow that it belongs to; FQ-CoDel separates flows.
    fn flow(&self) -> u32;
    /// Its ECN code point (RFC 3168 section 5). By default it is not ECN-capable.
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
    /// Sets the code point. Called only if the present one [is capable](Ecn::is_capable), with one that is; Congestion Experienced
    /// is never taken back.
    fn set_ecn(&mut self, ecn: Ecn) {
        let _ = ecn;
    }
}

/// Why a packet was dropped.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropCause {
    /// The queue was full.
    Overflow,
    /// CoDel, FQ-CoDel or PIE decided so.
    Aqm,
    /// Random or burst loss, before the queue.
    Random,
    /// Its number is in a fixed list; it was lost before the queue.
    Listed,
}

/// Receives what happens to packets. All methods do nothing by default.
///
/// Calls carry the instant at which the event was due, but are made when the link processes it: each kind of
/// call comes in order of time, but a departure can be reported after a call for a later instant.
pub trait Observer<P> {
    /// A packet joined the queue, which then holds `queued` (including this packet, excluding one in service).
    fn on_enqueued(&mut self, now: Time, packet: &P, queued: Bytes) {
        let _ = (now, packet, queued);
    }
    /// A packet was dropped for good.
    fn on_dropped(&mut self, now: Time, packet: &P, cause: DropCause) {
        let _ = (now, packet, cause);
    }
    /// The last byte of a packet crossed the bottleneck at `now`. `waited` runs from joining the queue to `now`: it is
    /// the time in the queue **and** the packet's own transmission, without propagation. `marked` is whether
    /// this link set Congestion Experienced.
    fn on_departed(&mut self, now: Time, packet: &P, waited: Span, marked: bool) {
        let _ = (now, packet, waited, marked);
    }
}

/// Ignores all events.
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
