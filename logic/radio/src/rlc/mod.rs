//! Radio Link Control with the parts of PDCP and MAC that cost bytes or time: packets in, parts of transport blocks
//! out, packets again at the other end.
//!
//! Source: TS 36.322 (LTE RLC; its state variables keep their names in comments), TS 38.322 and TS 38.323 (NR), TS
//! 36.323 (PDCP). Figures marked "ns-3" were read in ns-3 as the authors of the experiments used it; "from memory"
//! stands for values of a 3GPP document that were not read again.
//!
//! A *channel* is one direction of a bearer: a transmitter at one end, a receiver at the other. [`Um`] loses a packet
//! of which any byte is lost; [`Am`] sends again what a status report of the receiver misses. Both ends live in one
//! object, so that a packet is moved in once and moved out once and only numbers travel: a [`Pdu`] names a range of
//! the bytes that the transmitter has sent. What one end knows reaches the other by PDUs and status reports alone.
//!
//! One implementation serves LTE and NR: NR's RLC neither concatenates (its MAC does) nor reorders (its PDCP does),
//! but above PDCP only the [`Format`] of headers differs. A PDU here is then what NR's MAC takes of a bearer for one
//! transport block.
//!
//! Who calls: [`Bearer`] joins the two directions of a bearer (status reports of one travel in the blocks of the
//! other), [`User`] joins the bearers of a user in order of priority. Every PDU that was built comes back exactly once, by
//! `on_received` or by `on_lost`; timers run by `next_deadline` and `on_deadline`, and idle channels have none.

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

/// Why a packet that was offered is not delivered.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropCause {
    /// The buffer was full when it came.
    Overflow,
    /// The decision of the buffer's active queue management.
    Aqm,
    /// PDCP's discard timer ran out before its first byte was sent.
    Discard,
    /// A transport block with a byte of it was lost, and nobody sends again.
    Radio,
    /// It was sent again as often as is allowed: the bearer failed.
    MaxRetransmissions,
    /// The bearer was set up anew without keeping what was under way.
    Reset,
}

/// Is told what happens to packets, at the time at which it happens.
pub trait Observer<P> {
    /// The next packet in order arrived at the other end.
    fn on_delivered(&mut self, now: Time, packet: P);
    /// The packet of which [`Self::on_delivered`] tells next was here for so long: it joined the buffer that long ago.
    fn on_waited(&mut self, now: Time, packet: &P, waited: Span) {
        let _ = (now, packet, waited);
    }
    /// A packet joined the buffer, which then holds `waiting`.
    fn on_enqueued(&mut self, now: Time, packet: &P, waiting: Bytes) {
        let _ = (now, packet, waiting);
    }
    /// A packet was dropped and will not be seen again.
    fn on_dropped(&mut self, now: Time, packet: &P, cause: DropCause) {
        let _ = (now, packet, cause);
    }
    /// The bearer failed: a PDU was sent again as often as is allowed. Its packets are told of as dropped before; the
    /// rest goes on, until the caller sets the bearer up anew.
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

/// What a transport block carries of a channel: a handle, to be given back once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pdu {
    pub(crate) sn: u64,
    /// Bytes of the numbered PDU that are carried, from here...
    pub(crate) from: u32,
    /// ... to before here.
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
    /// What it takes of the transport block: MAC and RLC headers and content.
    pub fn size(&self) -> Bytes {
        Bytes::new(self.size.into())
    }
    /// What it carries of packets, PDCP headers included; zero for a status report.
    pub fn payload(&self) -> Bytes {
        Bytes::new(self.to.saturating_sub(self.from).into())
    }
    /// Whether it is a status report, about the other direction.
    pub fn is_status(&self) -> bool {
        self.kind == Kind::Status
    }
    /// Whether RLC sends it again.
    pub fn is_retransmission(&self) -> bool {
        matches!(self.kind, Kind::Data { again: true, .. })
    }
}

/// A grant in bytes as headers are counted; more than 4 GB is as good as 4 GB.
fn room(grant: Bytes) -> u32 {
    u32::try_from(grant.get()).unwrap_or(u32::MAX)
}
