//! The interface of a packet capture: it observes packets crossing links.

use ranpace_units::Time;

use crate::packet::Packet;

/// An event of a packet at a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TapEvent {
    /// Its last byte left the link's queue.
    Departed,
    /// It was dropped.
    Dropped,
}

/// Observes packets. Costs nothing if there is none.
pub trait Tap {
    /// A packet left the link of this index, or was dropped there.
    fn on_packet(&mut self, now: Time, link: usize, packet: &Packet, event: TapEvent);
}
