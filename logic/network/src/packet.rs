//! A packet in the network: a segment, its flow, and its position on the route.

use std::hint::black_box;

use ranpace_tcp::{Kind, Segment};
use ranpace_units::{Bytes, Ecn, Time};

/// The direction of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// With the data, from the flow's sender to its receiver.
    Forward,
    /// With the feedback, from the receiver to the sender.
    Back,
}

/// A packet in the network.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Index of its flow.
    pub flow: u32,
    /// The one of the flow's successive connections that it belongs to.
    pub connection: u32,
    /// Number of links crossed.
    pub hop: u16,
    /// Its direction.
    pub direction: Direction,
    /// The fields of its headers.
    pub segment: Segment,
}

/// A packet as links pass it on: 16 bytes instead of 150, because a packet is moved about ten times on its way. It consists of two
/// words that fit processor registers: a structure of small fields is slow to copy right after it was written.
#[derive(Clone, Copy, Debug)]
pub struct PacketHandle {
    /// The packet's slot, with its bytes on the wire above it.
    place: u64,
    /// Index of its flow, with the flags above it.
    marks: u64,
}

const BACK: u64 = 1 << 32;
/// Position of the ECN code point.
const ECN: u32 = 33;
/// Position of the stream above the flags, for packets from outside; it distinguishes the streams of a flow.
const STREAM: u32 = 35;
/// Set in the connection of packets from outside; the bits below hold their stream.
pub(crate) const OUTSIDE: u32 = 1 << 31;

impl PacketHandle {
    /// Stands for no packet.
    pub(crate) const NONE: Self = Self { place: 0, marks: 0 };

    #[inline]
    fn new(slot: u32, packet: &Packet) -> Self {
        let Segment { wire, ecn, .. } = packet.segment;
        let flag = |set: bool, flag: u64| if set { flag } else { 0 };
        let back = packet.direction == Direction::Back;
        let outside = packet.connection & OUTSIDE != 0;
        let stream = if outside { u64::from(packet.connection & !OUTSIDE) << STREAM } else { 0 };
        Self {
            place: u64::from(slot) | u64::from(wire) << 32,
            marks: u64::from(packet.flow) | flag(back, BACK) | u64::from(ecn.bits()) << ECN | stream,
        }
    }

    /// The packet's slot.
    #[inline]
    pub fn slot(self) -> usize {
        self.place as u32 as usize
    }

    /// Its bytes on the wire.
    #[inline]
    pub fn wire(self) -> u32 {
        (self.place >> 32) as u32
    }

    /// Adds bytes on the wire.
    pub(crate) fn lengthen(&mut self, bytes: u32) {
        self.place += u64::from(bytes) << 32;
    }

    /// Index of its flow.
    #[inline]
    pub fn flow(self) -> u32 {
        self.marks as u32
    }

    /// Its ECN code point now.
    #[inline]
    pub fn ecn(self) -> Ecn {
        Ecn::from_bits((self.marks >> ECN) as u8)
    }

    /// Returns its direction.
    #[inline]
    pub fn direction(self) -> Direction {
        if self.marks & BACK == 0 { Direction::Forward } else { Direction::Back }
    }
}

impl ranpace_link::Packet for PacketHandle {
    #[inline]
    fn size(&self) -> Bytes {
        Bytes::new(u64::from(self.wire()))
    }
    #[inline]
    fn flow(&self) -> u32 {
        // For flow queueing, feedback is a flow of its own.
        let flow = PacketHandle::flow(*self) * 2 + u32::from(self.direction() == Direction::Back);
        flow ^ (self.marks >> STREAM << 3) as u32
    }
    #[inline]
    fn ecn(&self) -> Ecn {
        PacketHandle::ecn(*self)
    }
    #[inline]
    fn set_ecn(&mut self, ecn: Ecn) {
        self.marks = self.marks & !(0b11 << ECN) | u64::from(ecn.bits()) << ECN;
    }
}

/// The content of a slot before its first packet.
const NO_PACKET: Packet = Packet {
    segment: Segment::new(Kind::Data, Time::ZERO),
    flow: 0,
    connection: 0,
    hop: 0,
    direction: Direction::Forward,
};

/// The packets in the network, each in a slot; the slot released last is reused first.
#[derive(Debug, Default)]
pub struct PacketPool {
    packets: Vec<Packet>,
    free: Vec<u32>,
    /// Content of packets beside their segments, by slot; as many entries as were ever needed.
    contents: Vec<Vec<u8>>,
}

impl PacketPool {
    /// Returns the slot into which a sender writes the next packet. It is not a packet until [`Self::take`].
    #[inline]
    pub fn vacant(&mut self) -> &mut Packet {
        let slot = match self.free.last() {
            Some(&slot) => slot as usize,
            None => {
                self.free.push(self.packets.len() as u32);
                self.packets.push(NO_PACKET);
                self.packets.len() - 1
            }
        };
        &mut self.packets[slot]
    }

    /// [`Self::vacant`] with a buffer for its content, which still holds earlier content.
    pub fn vacant_with_content(&mut self) -> (&mut Packet, &mut Vec<u8>) {
        self.vacant();
        // The slot exists: it was just created if it was missing.
        let slot = self.free.last().map_or(0, |&slot| slot as usize);
        if self.contents.len() <= slot {
            self.contents.resize_with(self.packets.len(), Vec::new);
        }
        (&mut self.packets[slot], &mut self.contents[slot])
    }

    /// [`Self::at`] with the content.
    pub fn at_with_content(&mut self, handle: PacketHandle) -> (&mut Packet, &[u8]) {
        self.at(handle);
        let slot = handle.slot();
        (&mut self.packets[slot], self.contents.get(slot).map_or(&[], Vec::as_slice))
    }

    /// The slot of the packet written to [`Self::vacant`].
    #[inline]
    pub fn next_slot(&self) -> Option<usize> {
        self.free.last().map(|&slot| slot as usize)
    }

    /// Takes over the packet written to [`Self::vacant`].
    #[inline]
    pub fn take(&mut self) -> Option<PacketHandle> {
        let slot = self.free.pop()?;
        Some(PacketHandle::new(slot, &self.packets[slot as usize]))
    }

    /// The packet of a handle, updated with what happened to it on the way.
    #[inline]
    pub fn at(&mut self, handle: PacketHandle) -> &mut Packet {
        let packet = &mut self.packets[handle.slot()];
        packet.segment.ecn = handle.ecn();
        packet
    }

    /// Returns whether Congestion Experienced was set since the packet was last looked up, which it is at each hop.
    #[inline]
    pub(crate) fn is_newly_marked(&self, handle: PacketHandle) -> bool {
        handle.ecn() == Ecn::Ce && self.packets[handle.slot()].segment.ecn != Ecn::Ce
    }

    /// Prefetches the packet of a handle into the processor's cache.
    #[inline]
    pub fn prefetch(&self, handle: &PacketHandle) {
        let packet = &self.packets[handle.slot()];
        let sack = packet.segment.sack.as_slice().len() as u64;
        black_box(packet.segment.seq ^ u64::from(packet.flow) ^ sack);
    }

    /// Releases a slot: the packet has arrived, or was lost.
    #[inline]
    pub fn release(&mut self, handle: PacketHandle) {
        self.free.push(handle.slot() as u32);
    }
}
