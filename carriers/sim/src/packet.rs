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

impl ranpace_link::Packet for Packet {
    #[inline]
    fn size(&self) -> Bytes {
        self.segment.wire_size()
    }
    #[inline]
    fn flow(&self) -> u32 {
        // Feedback is a flow of its own for flow queueing.
        self.flow * 2 + u32::from(self.direction == Direction::Back)
    }
    #[inline]
    fn is_ect(&self) -> bool {
        self.segment.ect
    }
    #[inline]
    fn mark_ce(&mut self) {
        self.segment.ce = true;
    }
}
