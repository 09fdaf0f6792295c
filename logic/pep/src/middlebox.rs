//! Middleboxes that decide about packets one by one: their narrow interface, and the registration of all of them.
//!
//! A new one is a file beside `middlebox/drop_every.rs`, declared here, and a line in [`Kind::build`]. The network shows packets that
//! pass its host to it (`ranpace-network`), in virtual and in real time alike.

mod drop_every;

use std::fmt::Debug;

use ranpace_units::{Bytes, Time};

use self::drop_every::DropEvery;

/// A packet as a middlebox sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MiddleboxPacket {
    /// Index of its flow.
    pub flow: u32,
    /// With the data of the flow, not with its acknowledgements.
    pub forward: bool,
    /// Its bytes on the wire, IP header included.
    pub wire: Bytes,
}

/// A middlebox's verdict on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on.
    Pass,
    /// It is no more.
    Drop,
}

/// A middlebox. One that is never told of a packet costs nothing.
pub trait Middlebox: Debug + Send {
    /// A packet passes.
    fn on_packet(&mut self, now: Time, packet: &MiddleboxPacket) -> Verdict;
}

/// The kinds of middleboxes, with their settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// [`DropEvery`].
    DropEvery {
        /// Of how many packets of a flow one is dropped.
        packets: u64,
    },
}

impl Kind {
    /// The middlebox.
    pub fn build(self) -> Box<dyn Middlebox> {
        match self {
            Self::DropEvery { packets } => Box::new(DropEvery::new(packets)),
        }
    }
}
