//! A channel in either mode, dispatched statically, with the queries that both support.

use ranpace_link::Packet;
use ranpace_units::{Bytes, Span, Time};

use super::{Am, Config, Counters, Mode, Observer, Pdu, Um};

/// One direction of a bearer.
#[allow(clippy::large_enum_variant)] // the larger one is the usual one
pub enum Channel<P> {
    /// Unacknowledged mode.
    Um(Um<P>),
    /// Acknowledged mode.
    Am(Am<P>),
}

/// Calls the same method in either mode.
macro_rules! each {
    ($channel:expr, $name:ident => $call:expr) => {
        match $channel {
            Channel::Um($name) => $call,
            Channel::Am($name) => $call,
        }
    };
}

impl<P: Packet> Channel<P> {
    /// An idle channel. `seed` is for queue disciplines that draw random numbers.
    pub fn new(config: &Config, seed: u64) -> Self {
        match config.mode {
            Mode::Unacknowledged => Self::Um(Um::new(config, seed)),
            Mode::Acknowledged => Self::Am(Am::new(config, seed)),
        }
    }
    /// Adds a packet to the buffer, or drops it.
    #[inline]
    pub fn enqueue(&mut self, now: Time, packet: P, observer: &mut impl Observer<P>) {
        each!(self, channel => channel.enqueue(now, packet, observer));
    }
    /// Builds a data PDU for `grant` bytes of a transport block; `None` if nothing waits, fits or may be sent.
    #[inline]
    pub fn build(&mut self, now: Time, grant: Bytes, observer: &mut impl Observer<P>) -> Option<Pdu> {
        each!(self, channel => channel.build(now, grant, observer))
    }
    /// Handles a data PDU of a decoded transport block.
    #[inline]
    pub fn on_received(&mut self, now: Time, pdu: Pdu, observer: &mut impl Observer<P>) {
        each!(self, channel => channel.on_received(now, pdu, observer));
    }
    /// Handles the loss of a data PDU with its transport block.
    pub fn on_lost(&mut self, now: Time, pdu: Pdu, observer: &mut impl Observer<P>) {
        match self {
            Self::Um(um) => um.on_lost(now, pdu, observer),
            Self::Am(am) => am.on_lost(pdu),
        }
    }
    /// Reports unacknowledged data to the scheduler, if it counts as waiting.
    #[inline]
    pub fn report_backlog(&mut self, now: Time) {
        if let Self::Am(am) = self {
            am.report_backlog(now);
        }
    }
    /// Returns whether unacknowledged data counts as waiting.
    #[inline]
    pub fn claims(&self) -> bool {
        match self {
            Self::Um(_) => false,
            Self::Am(am) => am.claims(),
        }
    }
    /// Builds a report about this direction for `grant` bytes of a block of the other one.
    #[inline]
    pub fn build_status(&mut self, now: Time, grant: Bytes) -> Option<Pdu> {
        match self {
            Self::Um(_) => None,
            Self::Am(am) => am.build_status(now, grant),
        }
    }
    /// Handles a report about this direction.
    pub fn on_status(&mut self, now: Time, pdu: Pdu) {
        if let Self::Am(am) = self {
            am.on_status(now, pdu);
        }
    }
    /// Handles the loss of a report about this direction.
    pub fn on_status_lost(&mut self, pdu: Pdu) {
        if let Self::Am(am) = self {
            am.on_status_lost(pdu);
        }
    }
    /// The earliest time for a report about this direction; [`Time::MAX`] if none is pending.
    #[inline]
    pub fn status_due(&self) -> Time {
        match self {
            Self::Um(_) => Time::MAX,
            Self::Am(am) => am.status_due(),
        }
    }
    /// The size of the shortest report, if one is due.
    #[inline]
    pub fn status_wanted(&self, now: Time) -> Bytes {
        match self {
            Self::Um(_) => Bytes::ZERO,
            Self::Am(am) => am.status_wanted(now),
        }
    }
    /// When [`Self::on_deadline`] is due; [`Time::MAX`] if no timer runs.
    #[inline]
    pub fn next_deadline(&self) -> Time {
        each!(self, channel => channel.next_deadline())
    }
    /// Handles timers that expired by `now`.
    pub fn on_deadline(&mut self, now: Time, observer: &mut impl Observer<P>) {
        each!(self, channel => channel.on_deadline(now, observer));
    }
    /// A grant that suffices for everything that may be sent now, except reports about the other direction.
    #[inline]
    pub fn wanted(&self) -> Bytes {
        match self {
            Self::Um(um) => um.wanted(),
            Self::Am(am) => am.wanted(),
        }
    }
    /// Data to be sent, including retransmissions: the queue that radio reports show.
    #[inline]
    pub fn to_be_sent(&self) -> Bytes {
        match self {
            Self::Um(um) => um.unsent(),
            Self::Am(am) => am.unsent() + am.to_be_sent_again(),
        }
    }
    /// Bytes of packets in the buffer, of which nothing was sent; the buffer's limit applies to them.
    pub fn buffered(&self) -> Bytes {
        each!(self, channel => channel.buffered())
    }
    /// Bytes of packets that are neither delivered nor dropped.
    pub fn waiting(&self) -> Bytes {
        each!(self, channel => channel.waiting())
    }
    /// Returns how long the packet with the next new byte has waited; zero if there is none.
    pub fn head_of_line_delay(&self, now: Time) -> Span {
        each!(self, channel => channel.head_of_line_delay(now))
    }
    /// When that packet arrived; `None` if there is none.
    pub fn head_arrived(&self) -> Option<Time> {
        each!(self, channel => channel.head_arrived())
    }
    /// Whether it has stages above RLC.
    #[inline]
    pub fn is_staged(&self) -> bool {
        each!(self, channel => channel.is_staged())
    }
    /// Bytes that wait above RLC.
    pub fn waiting_above(&self) -> Bytes {
        each!(self, channel => channel.waiting_above())
    }
    /// Takes from the stages above RLC what they pass on by `now`.
    pub fn refill(&mut self, now: Time, observer: &mut impl Observer<P>) {
        each!(self, channel => channel.refill(now, observer));
    }
    /// Whether [`Self::on_slot`] makes a difference.
    #[inline]
    pub fn wants_slots(&self) -> bool {
        each!(self, channel => channel.wants_slots())
    }
    /// Tells the queues of a slot of length `slot` that carried data of this channel, and could have carried `egress`.
    pub fn on_slot(&mut self, now: Time, slot: Span, egress: Bytes) {
        each!(self, channel => channel.on_slot(now, slot, egress));
    }
    /// Its counters.
    pub fn counters(&self) -> &Counters {
        each!(self, channel => channel.counters())
    }
    /// Drops the packets in the buffer, like a base station that does not forward.
    pub fn empty(&mut self, now: Time, observer: &mut impl Observer<P>) {
        each!(self, channel => channel.empty(now, observer));
    }
    /// Re-establishes both ends, as a handover does. With `keep`, acknowledged mode sends undelivered packets from their
    /// first byte; otherwise, and in unacknowledged mode, partly sent packets are dropped.
    pub fn restart(&mut self, now: Time, keep: bool, observer: &mut impl Observer<P>) {
        match self {
            Self::Um(um) => um.restart(now, observer),
            Self::Am(am) => am.restart(now, keep, observer),
        }
    }
}
