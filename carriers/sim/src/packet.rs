//! A packet in the network: a segment, and where it is going.

use ranpace_tcp::Segment;
use ranpace_units::Bytes;

/// Which way a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// With the data, from the flow's sender to its receiver.
    Forward,
    /// With the feedback.
    Back,
}

/// A packet in the network.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// What the endpoints say to each other.
    pub segment: Segment,
    /// Index of its flow.
    pub flow: u32,
    /// Which of the flow's connections it belongs to, where it has several one after another.
    pub connection: u32,
    /// How many links lie behind it.
    pub hop: u16,
    /// Which way it goes.
    pub direction: Direction,
}

/// A packet as links pass it on: 16 bytes in place of 150, because a packet is moved ten times on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    /// Where the packet lies.
    pub slot: u32,
    /// Its bytes on the wire.
    pub wire: u32,
    /// Index of its flow.
    pub flow: u32,
    /// Which way it goes.
    pub direction: Direction,
    ect: bool,
    ce: bool,
}

impl ranpace_link::Packet for Ticket {
    #[inline]
    fn size(&self) -> Bytes {
        Bytes::new(u64::from(self.wire))
    }
    #[inline]
    fn flow(&self) -> u32 {
        // Feedback is a flow of its own for flow queueing.
        self.flow * 2 + u32::from(self.direction == Direction::Back)
    }
    #[inline]
    fn is_ect(&self) -> bool {
        self.ect
    }
    #[inline]
    fn mark_ce(&mut self) {
        self.ce = true;
    }
}

/// The packets in the network, each in a slot; slots are used again, the last one given back first.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    packets: Vec<Packet>,
    free: Vec<u32>,
}

impl Slots {
    /// Takes a packet in.
    #[inline]
    pub fn put(&mut self, packet: Packet) -> Ticket {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.packets[slot as usize] = packet;
                slot
            }
            None => {
                self.packets.push(packet);
                (self.packets.len() - 1) as u32
            }
        };
        let Segment { wire, ect, ce, .. } = packet.segment;
        Ticket { slot, wire, flow: packet.flow, direction: packet.direction, ect, ce }
    }

    /// The packet of a ticket, with what happened to it on the way.
    #[inline]
    pub fn at(&mut self, ticket: Ticket) -> &mut Packet {
        let packet = &mut self.packets[ticket.slot as usize];
        packet.segment.ce = ticket.ce;
        packet
    }

    /// Gives a slot back: the packet has arrived, or is no more.
    #[inline]
    pub fn give_back(&mut self, ticket: Ticket) {
        self.free.push(ticket.slot);
    }
}
