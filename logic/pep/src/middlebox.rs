//! Middleboxes that decide packet by packet: their interface and their registry.
//!
//! To add one, write a file beside `middlebox/drop_every.rs`, declare it here, and add a line to [`Kind::build`]. The network
//! (`ranpace-network`) shows it the packets that pass its host, in virtual and in real time alike.

mod drop_every;

use std::fmt::Debug;

use ranpace_units::{Bytes, Time};

use self::drop_every::DropEvery;

/// A packet as a middlebox sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MiddleboxPacket {
    /// Index of its flow.
    pub flow: u32,
    /// True for the flow's data direction, false for its acknowledgements.
    pub forward: bool,
    /// Bytes on the wire, IP header included.
    pub wire: Bytes,
}

/// A middlebox's verdict on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Forward the packet.
    Pass,
    /// Drop the packet.
    Drop,
}

/// A middlebox. It costs nothing while it is shown no packets.
pub trait Middlebox: Debug + Send {
    /// Decides about a passing packet.
    fn on_packet(&mut self, now: Time, packet: &MiddleboxPacket) -> Verdict;
}

/// The kinds of middleboxes, with their settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// [`DropEvery`].
    DropEvery {
        /// One out of this many packets of a flow is dropped.
        packets: u64,
    },
}

impl Kind {
    /// Builds the middlebox.
    pub fn build(self) -> Box<dyn Middlebox> {
        match self {
            Self::DropEvery { packets } => Box::new(DropEvery::new(packets)),
        }
    }
}
