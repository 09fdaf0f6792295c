//! Header rewriters: middleboxes that change fields of TCP headers as segments of users' connections pass. They split no connection and
//! send nothing themselves.
//!
//! To add one, write a file beside `rewriter/milliproxy.rs`, declare it here, and add a line to [`Kind::build`]. A carrier shows it both
//! directions of every TCP connection between a user and a server that crosses its host, and applies its changes to the packet: the
//! simulator to a segment's fields, the emulator to a real packet's bytes, whose checksum it updates.

mod connections;
mod guidance;
mod milliproxy;
mod user_radio;

use std::fmt::Debug;

use ranpace_rnis::RadioHint;
use ranpace_rnis::guidance::Guidance;
use ranpace_units::Time;

pub use self::guidance::Settings as GuidanceSettings;
pub use self::milliproxy::{Policy, Settings as MilliproxySettings};

use self::guidance::Provider;
use self::milliproxy::Milliproxy;

/// Whose segment passes, and in which direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Number of its connection; another connection has another.
    pub connection: u64,
    /// The user at one end of it.
    pub user: u32,
    /// Whether the user has sent it.
    pub from_user: bool,
}

/// What rewriters read of a TCP header (RFC 9293, section 3.1), and in the last two fields what they may change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpFields {
    /// SYN.
    pub syn: bool,
    /// FIN.
    pub fin: bool,
    /// RST.
    pub rst: bool,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number, if it has one.
    pub ack: Option<u32>,
    /// Bytes of payload.
    pub payload: u32,
    /// The window scale option, on a SYN (RFC 7323, section 2).
    pub scale: Option<u8>,
    /// The maximum segment size option, on a SYN.
    pub mss: Option<u16>,
    /// TSval and TSecr (RFC 7323, section 3).
    pub timestamps: Option<(u32, u32)>,
    /// Bytes that are free for further options.
    pub room: usize,
    /// The window field.
    pub window: u16,
    /// Guidance to be added as an option.
    pub guidance: Option<Guidance>,
}

/// A header rewriter.
pub trait Rewriter: Debug + Send {
    /// A segment passes: changes its fields.
    fn on_segment(&mut self, now: Time, passage: Passage, header: &mut TcpFields);

    /// Radio information about the downlink of a user has arrived.
    fn on_radio(&mut self, now: Time, user: u32, hint: &RadioHint);
}

/// The kinds of rewriters, with their settings.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Kind {
    /// Lowers the window of users' acknowledgements.
    Milliproxy(MilliproxySettings),
    /// Adds Throughput Guidance to users' acknowledgements.
    Guidance(GuidanceSettings),
}

impl Kind {
    /// Builds the rewriter.
    pub fn build(self) -> Box<dyn Rewriter> {
        match self {
            Self::Milliproxy(settings) => Box::new(Milliproxy::new(settings)),
            Self::Guidance(settings) => Box::new(Provider::new(settings)),
        }
    }
}
