//! Radio Link Control, with the parts of PDCP and MAC that cost bytes or time: it turns packets into parts of transport
//! blocks, and back into packets at the other end.
//!
//! Source: TS 36.322 (LTE RLC; its state variables keep their names in comments), TS 38.322 and TS 38.323 (NR), TS
//! 36.323 (PDCP). Values marked "ns-3" were read in ns-3 as the authors of the experiments used it; "from memory"
//! marks values of a 3GPP document that were not checked again.
//!
//! A *channel* is one direction of a bearer: a transmitter at one end, a receiver at the other. [`Um`] loses a packet
//! if any byte of it is lost; [`Am`] retransmits what the receiver's status reports name as missing. One object holds both
//! ends, so that a packet is moved in once and out once and only numbers travel: a [`Pdu`] names a range of
//! the bytes that the transmitter has sent. Each end learns about the other from PDUs and status reports alone.
//!
//! One implementation serves LTE and NR: NR's RLC neither concatenates (its MAC does) nor reorders (its PDCP does),
//! but above PDCP only the [`Format`] of headers differs. So a PDU here is what NR's MAC takes from a bearer for one
//! transport block.
//!
//! [`Bearer`] joins the two directions of a bearer (status reports of one travel in the blocks of the other), and [`User`]
//! joins the bearers of a user in order of priority. The caller returns every PDU exactly once, to `on_received` or to
//! `on_lost`, and drives timers by `next_deadline` and `on_deadline`; idle channels have no deadline.

mod am;
mod bearer;
mod channel;
mod config;
mod counters;
mod figures;
mod receiver;
mod status;
mod stream;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod um;
mod user;

pub use am::Am;
pub use bearer::{Bearer, BearerConfig};
pub use channel::Channel;
pub use config::{Config, Format, Mode, NAMED_TIMERS, PDCP_HEADER, Timers};
pub use counters::{Amount, Counters};
pub use um::Um;
pub use user::{User, UserPdu};

use ranpace_units::{Bytes, Span, Time};

/// Why a packet is dropped.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropCause {
    /// The buffer was full when it arrived.
    Overflow,
    /// The buffer's active queue management decided so.
    Aqm,
    /// PDCP's discard timer expired before its first byte was sent.
    Discard,
    /// A transport block with a byte of it was lost and is not retransmitted.
    Radio,
    /// It reached the limit of retransmissions: the bearer failed.
    MaxRetransmissions,
    /// The bearer was re-established without keeping data under way.
    Reset,
}

/// Receives what happens to packets, when it happens.
pub trait Observer<P> {
    /// The next packet in order arrived at the other end.
    fn on_delivered(&mut self, now: Time, packet: P);
    /// The packet that the next [`Self::on_delivered`] reports joined its buffer `waited` ago.
    fn on_waited(&mut self, now: Time, packet: &P, waited: Span) {
        let _ = (now, packet, waited);
    }
    /// A packet joined the buffer, which then holds `waiting`.
    fn on_enqueued(&mut self, now: Time, packet: &P, waiting: Bytes) {
        let _ = (now, packet, waiting);
    }
    /// A packet was dropped for good.
    fn on_dropped(&mut self, now: Time, packet: &P, cause: DropCause) {
        let _ = (now, packet, cause);
    }
    /// The bearer failed: a PDU reached the limit of retransmissions. Its packets were reported as dropped before; everything
    /// else continues until the caller re-establishes the bearer.
    fn on_failed(&mut self, now: Time) {
        let _ = now;
    }
}

impl<P, O: Observer<P> + ?Sized> Observer<P> for &mut O {
    fn on_delivered(&mut self, now: Time, packet: P) {
        (**self).on_delivered(now, packet);
    }
    fn on_waited(&mut self, now: Time, packet: &P, waited: Span) {
        (**self).on_waited(now, packet, waited);
    }
    fn on_enqueued(&mut self, now: Time, packet: &P, waiting: Bytes) {
        (**self).on_enqueued(now, packet, waiting);
    }
    fn on_dropped(&mut self, now: Time, packet: &P, cause: DropCause) {
        (**self).on_dropped(now, packet, cause);
    }
    fn on_failed(&mut self, now: Time) {
        (**self).on_failed(now);
    }
}

/// The part of a channel that a transport block carries: a handle that must be returned once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pdu {
    pub(crate) sn: u64,
    /// First byte of the numbered PDU that is carried.
    pub(crate) from: u32,
    /// End of the bytes that are carried (exclusive).
    pub(crate) to: u32,
    size: u32,
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Data {
        poll: bool,
        again: bool,
    },
    /// `sn` is the number of the report.
    Status,
}

impl Pdu {
    /// Its bytes in the transport block: MAC and RLC headers and content.
    pub fn size(&self) -> Bytes {
        Bytes::new(self.size.into())
    }
    /// Its bytes of packets, PDCP headers included; zero for a status report.
    pub fn payload(&self) -> Bytes {
        Bytes::new(self.to.saturating_sub(self.from).into())
    }
    /// Returns whether it is a status report, about the other direction.
    pub fn is_status(&self) -> bool {
        self.kind == Kind::Status
    }
    /// Returns whether it is an RLC retransmission.
    pub fn is_retransmission(&self) -> bool {
        matches!(self.kind, Kind::Data { again: true, .. })
    }
}

/// A grant in bytes; grants above 4 GB are clamped.
fn room(grant: Bytes) -> u32 {
    u32::try_from(grant.get()).unwrap_or(u32::MAX)
}
