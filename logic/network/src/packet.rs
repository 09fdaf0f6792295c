//! A packet in the network: a segment, its flow, and its position on the route.

use std::hint::black_box;

use ranpace_tcp::{Kind, Segment};
use ranpace_units::{Bytes, Time};

/// Which way a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// With the data, from the flow's sender to its receiver.
    Forward,
    /// With the feedback.
    Back,
}

/// A packet in the network, in memory as it is written here: what every packet has comes first.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Packet {
    /// Index of its flow.
    pub flow: u32,
    /// Which of the flow's connections it belongs to, where it has several one after another.
    pub connection: u32,
    /// Number of links already crossed.
    pub hop: u16,
    /// Which way it goes.
    pub direction: Direction,
    /// The fields of its headers.
    pub segment: Segment,
}

/// A packet as links pass it on: 16 bytes in place of 150, because a packet is moved ten times on its way. In two words, as
/// the processor has registers for them: a structure of small fields is slow to copy just after it was written.
#[derive(Clone, Copy, Debug)]
pub struct PacketHandle {
    /// The slot where the packet lies, and above it its bytes on the wire.
    place: u64,
    /// Index of its flow, and above it the flags.
    marks: u64,
}

const BACK: u64 = 1 << 32;
const ECT: u64 = 1 << 33;
const CE: u64 = 1 << 34;
/// Above the flags: of packets whose ends are elsewhere, what tells the streams of a flow apart.
const STREAM: u32 = 35;
/// Set in the connection of such packets; below it is their stream.
pub(crate) const OUTSIDE: u32 = 1 << 31;

impl PacketHandle {
    /// Of no packet.
    pub(crate) const NONE: Self = Self { place: 0, marks: 0 };

    #[inline]
    fn new(slot: u32, packet: &Packet) -> Self {
        let Segment { wire, ect, ce, .. } = packet.segment;
        let flag = |set: bool, flag: u64| if set { flag } else { 0 };
        let back = packet.direction == Direction::Back;
        let outside = packet.connection & OUTSIDE != 0;
        let stream = if outside { u64::from(packet.connection & !OUTSIDE) << STREAM } else { 0 };
        Self {
            place: u64::from(slot) | u64::from(wire) << 32,
            marks: u64::from(packet.flow) | flag(back, BACK) | flag(ect, ECT) | flag(ce, CE) | stream,
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

    /// Index of its flow.
    #[inline]
    pub fn flow(self) -> u32 {
        self.marks as u32
    }

    /// Whether Congestion Experienced was set on the way.
    #[inline]
    pub fn is_marked(self) -> bool {
        self.marks & CE != 0
    }

    /// Which way it goes.
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
        // Feedback is a flow of its own for flow queueing.
        let flow = PacketHandle::flow(*self) * 2 + u32::from(self.direction() == Direction::Back);
        flow ^ (self.marks >> STREAM << 3) as u32
    }
    #[inline]
    fn is_ect(&self) -> bool {
        self.marks & ECT != 0
    }
    #[inline]
    fn mark_ce(&mut self) {
        self.marks |= CE;
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

/// The packets in the network, each in a slot; slots are used again, the last one released first.
#[derive(Debug, Default)]
pub struct PacketPool {
    packets: Vec<Packet>,
    free: Vec<u32>,
    /// What packets of some flows say beside their segments, in the places of their slots; as many as were ever needed.
    contents: Vec<Vec<u8>>,
}

impl PacketPool {
    /// Where the next packet is to be written: its sender writes it here. It is nothing until [`Self::take`].
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

    /// [`Self::vacant`] with a place for its content, which holds what was there before.
    pub fn vacant_with_content(&mut self) -> (&mut Packet, &mut Vec<u8>) {
        self.vacant();
        // It has just been put there, if it was not there before.
        let slot = self.free.last().map_or(0, |&slot| slot as usize);
        if self.contents.len() <= slot {
            self.contents.resize_with(self.packets.len(), Vec::new);
        }
        (&mut self.packets[slot], &mut self.contents[slot])
    }

    /// [`Self::at`] with its content.
    pub fn at_with_content(&mut self, handle: PacketHandle) -> (&mut Packet, &[u8]) {
        self.at(handle);
        let slot = handle.slot();
        (&mut self.packets[slot], self.contents.get(slot).map_or(&[], Vec::as_slice))
    }

    /// The slot of the packet that was written to [`Self::vacant`].
    #[inline]
    pub fn next_slot(&self) -> Option<usize> {
        self.free.last().map(|&slot| slot as usize)
    }

    /// Takes in the packet that was written to [`Self::vacant`].
    #[inline]
    pub fn take(&mut self) -> Option<PacketHandle> {
        let slot = self.free.pop()?;
        Some(PacketHandle::new(slot, &self.packets[slot as usize]))
    }

    /// The packet of a handle, with what happened to it on the way.
    #[inline]
    pub fn at(&mut self, handle: PacketHandle) -> &mut Packet {
        let packet = &mut self.packets[handle.slot()];
        packet.segment.ce = handle.is_marked();
        packet
    }

    /// Brings the packet of a handle into the processor's cache.
    #[inline]
    pub fn prefetch(&self, handle: &PacketHandle) {
        let packet = &self.packets[handle.slot()];
        let sack = packet.segment.sack.as_slice().len() as u64;
        black_box(packet.segment.seq ^ u64::from(packet.flow) ^ sack);
    }

    /// Releases a slot: the packet has arrived, or is no more.
    #[inline]
    pub fn release(&mut self, handle: PacketHandle) {
        self.free.push(handle.slot() as u32);
    }
}
