//! A channel in either mode, dispatched statically, with the queries that both answer.

use ranpace_link::Packet;
use ranpace_units::{Bytes, Span, Time};

use super::{Am, Config, Counters, Mode, Observer, Pdu, Um};

/// One direction of a bearer.
#[allow(clippy::large_enum_variant)] // the larger is the usual one
pub enum Channel<P> {
    /// Unacknowledged mode.
    Um(Um<P>),
    /// Acknowledged mode.
    Am(Am<P>),
}

/// Calls the same method of whichever mode it is.
macro_rules! each {
    ($channel:expr, $name:ident => $call:expr) => {
        match $channel {
            Channel::Um($name) => $call,
            Channel::Am($name) => $call,
        }
    };
}

impl<P: Packet> Channel<P> {
    /// An idle channel. `seed` is for buffers that draw lots.
    pub fn new(config: &Config, seed: u64) -> Self {
        match config.mode {
            Mode::Unacknowledged => Self::Um(Um::new(config, seed)),
            Mode::Acknowledged => Self::Am(Am::new(config, seed)),
        }
    }
    /// A packet joins the buffer or is dropped.
    #[inline]
    pub fn enqueue(&mut self, now: Time, packet: P, observer: &mut impl Observer<P>) {
        each!(self, channel => channel.enqueue(now, packet, observer));
    }
    /// Data for `grant` bytes of a transport block; `None` if nothing waits, fits or may be sent.
    #[inline]
    pub fn build(&mut self, now: Time, grant: Bytes, observer: &mut impl Observer<P>) -> Option<Pdu> {
        each!(self, channel => channel.build(now, grant, observer))
    }
    /// A data PDU came with a decoded transport block.
    #[inline]
    pub fn on_received(&mut self, now: Time, pdu: Pdu, observer: &mut impl Observer<P>) {
        each!(self, channel => channel.on_received(now, pdu, observer));
    }
    /// A data PDU was lost with its transport block.
    pub fn on_lost(&mut self, now: Time, pdu: Pdu, observer: &mut impl Observer<P>) {
        match self {
            Self::Um(um) => um.on_lost(now, pdu, observer),
            Self::Am(am) => am.on_lost(pdu),
        }
    }
    /// Tells the scheduler of what is not acknowledged, where that counts as waiting.
    #[inline]
    pub fn report_backlog(&mut self, now: Time) {
        if let Self::Am(am) = self {
            am.report_backlog(now);
        }
    }
    /// Whether what is not acknowledged counts as waiting.
    #[inline]
    pub fn claims(&self) -> bool {
        match self {
            Self::Um(_) => false,
            Self::Am(am) => am.claims(),
        }
    }
    /// A report about this direction for `grant` bytes of a block of the other one.
    #[inline]
    pub fn build_status(&mut self, now: Time, grant: Bytes) -> Option<Pdu> {
        match self {
            Self::Um(_) => None,
            Self::Am(am) => am.build_status(now, grant),
        }
    }
    /// A report about this direction came.
    pub fn on_status(&mut self, now: Time, pdu: Pdu) {
        if let Self::Am(am) = self {
            am.on_status(now, pdu);
        }
    }
    /// A report about this direction was lost.
    pub fn on_status_lost(&mut self, pdu: Pdu) {
        if let Self::Am(am) = self {
            am.on_status_lost(pdu);
        }
    }
    /// When a report about this direction can be sent; [`Time::MAX`] if none is to be.
    #[inline]
    pub fn status_due(&self) -> Time {
        match self {
            Self::Um(_) => Time::MAX,
            Self::Am(am) => am.status_due(),
        }
    }
    /// The size of the shortest report that would do, if one is due.
    #[inline]
    pub fn status_wanted(&self, now: Time) -> Bytes {
        match self {
            Self::Um(_) => Bytes::ZERO,
            Self::Am(am) => am.status_wanted(now),
        }
    }
    /// When [`Self::on_deadline`] is due; [`Time::MAX`] if nothing runs.
    #[inline]
    pub fn next_deadline(&self) -> Time {
        each!(self, channel => channel.next_deadline())
    }
    /// Timers that have run out by `now`.
    pub fn on_deadline(&mut self, now: Time, observer: &mut impl Observer<P>) {
        each!(self, channel => channel.on_deadline(now, observer));
    }
    /// What a grant must have for all that may be sent now to fit, or more; reports about the other direction left out.
    #[inline]
    pub fn wanted(&self) -> Bytes {
        match self {
            Self::Um(um) => um.wanted(),
            Self::Am(am) => am.wanted(),
        }
    }
    /// Data to be sent, new or again: the queue that radio reports tell of.
    #[inline]
    pub fn to_be_sent(&self) -> Bytes {
        match self {
            Self::Um(um) => um.unsent(),
            Self::Am(am) => am.unsent() + am.to_be_sent_again(),
        }
    }
    /// Bytes of packets in the buffer, none of whose bytes were sent; what the buffer's limit is for.
    pub fn buffered(&self) -> Bytes {
        each!(self, channel => channel.buffered())
    }
    /// Bytes of packets that are neither delivered nor dropped.
    pub fn waiting(&self) -> Bytes {
        each!(self, channel => channel.waiting())
    }
    /// For how long the packet waits whose byte is the next new one to be sent; zero if there is none.
    pub fn head_of_line_delay(&self, now: Time) -> Span {
        each!(self, channel => channel.head_of_line_delay(now))
    }
    /// When that packet came; `None` if there is none.
    pub fn head_arrived(&self) -> Option<Time> {
        each!(self, channel => channel.head_arrived())
    }
    /// What it did so far.
    pub fn counters(&self) -> &Counters {
        each!(self, channel => channel.counters())
    }
    /// Drops what waits in the buffer, as a base station does that forwards nothing.
    pub fn empty(&mut self, now: Time, observer: &mut impl Observer<P>) {
        each!(self, channel => channel.empty(now, observer));
    }
    /// Sets both ends up anew, as a handover does. With `keep`, acknowledged mode sends what was not delivered from its
    /// first byte; otherwise, and in unacknowledged mode, packets of which a byte was sent are dropped.
    pub fn restart(&mut self, now: Time, keep: bool, observer: &mut impl Observer<P>) {
        match self {
            Self::Um(um) => um.restart(now, observer),
            Self::Am(am) => am.restart(now, keep, observer),
        }
    }
}
