//! A packet between two endpoints: the fields of TCP's header and options, without payload.

use ranpace_cc::ReceiverReport;
use ranpace_units::{Bytes, Ecn, Span, Time};

use crate::config::{IP_HEADER, SYN_OPTIONS, TCP_HEADER, TIMESTAMPS, UDP_HEADER};
use crate::ecn::{AccurateEcho, EcnFeedback, OPTION};

/// The kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Kind {
    /// Carries payload.
    #[default]
    Data,
    /// Carries an acknowledgement.
    Ack,
    /// Opens a connection.
    Syn,
    /// Answers a `Syn`.
    SynAck,
    /// A datagram with payload, of the datagram transport or a plain UDP source.
    Datagram,
    /// Feedback of the datagram transport.
    Feedback,
}

/// One selectively acknowledged range, as distances from the cumulative acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SackBlock {
    /// First byte.
    pub from: u32,
    /// One past the last byte.
    pub to: u32,
}

/// Up to four ranges, the most recent first (RFC 2018); three beside timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SackBlocks {
    count: u8,
    blocks: [SackBlock; 4],
}

impl SackBlocks {
    /// Appends a block; returns false if the option is full.
    pub fn push(&mut self, block: SackBlock) -> bool {
        let Some(slot) = self.blocks.get_mut(usize::from(self.count)) else { return false };
        *slot = block;
        self.count += 1;
        true
    }

    /// The blocks in order.
    pub fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.count)]
    }
}

/// A packet. Sequence numbers are 64 bits wide, start at zero and do not wrap; the wire length is still that of the real
/// header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its kind.
    pub kind: Kind,
    /// The ECN code point in its IP header.
    pub ecn: Ecn,
    /// Echo of a mark (ECE), with classic feedback; on the handshake's segments, ECN is offered or accepted.
    pub ecn_echo: bool,
    /// The sender has reduced its window (CWR), with classic feedback; set on a SYN that offers ECN.
    pub cwr: bool,
    /// Accurate feedback (the ACE field, and perhaps the option); on the handshake's segments, it is offered or accepted.
    pub accurate: Option<AccurateEcho>,
    /// Retransmitted.
    pub retransmission: bool,
    /// The last of a piece of several segments, or of an application's write (PSH); only set if the flow has `gso`.
    pub push: bool,
    /// Bytes on the wire, IP header included.
    pub wire: u32,
    /// Payload in bytes.
    pub length: u32,
    /// Receive window, in bytes beyond `ack`.
    pub window: u32,
    /// Time until the sender's next packet (datagram transport), in microseconds; zero while more is queued.
    pub time_to_next_us: u32,
    /// First byte of payload.
    pub seq: u64,
    /// Sender's clock (RFC 7323 TSval, in nanoseconds here).
    pub timestamp: Time,
    /// The timestamp echoed (TSecr); meaningful on acknowledgements.
    pub echo: Time,
    /// Next byte expected (in `Feedback`: the packet number acknowledged).
    pub ack: u64,
    /// The packet's number in the order of sending.
    pub number: u64,
    /// Selective acknowledgements.
    pub sack: SackBlocks,
    /// If set, the first block reports a duplicate (RFC 2883) at this distance below `ack`.
    pub duplicate: Option<u32>,
    /// Report of a receiver half; counted on the wire.
    pub report: Option<ReceiverReport>,
}

impl Segment {
    /// A packet of this kind without payload, sent at `now`.
    #[inline]
    pub const fn new(kind: Kind, now: Time) -> Self {
        Self {
            seq: 0,
            ack: 0,
            number: 0,
            timestamp: now,
            echo: Time::ZERO,
            window: 0,
            length: 0,
            sack: SackBlocks { count: 0, blocks: [SackBlock { from: 0, to: 0 }; 4] },
            duplicate: None,
            report: None,
            time_to_next_us: 0,
            wire: 0,
            kind,
            ecn: Ecn::NotEct,
            ecn_echo: false,
            cwr: false,
            accurate: None,
            retransmission: false,
            push: false,
        }
    }

    /// Fills in the length on the wire: IPv4, TCP or UDP header, options padded to four bytes, payload.
    #[inline]
    pub(crate) fn measure(&mut self, timestamps: bool) {
        let sack_blocks = self.sack.as_slice().len() as u64 + u64::from(self.duplicate.is_some());
        let header = match self.kind {
            Kind::Syn | Kind::SynAck => {
                TCP_HEADER + SYN_OPTIONS + self.report.map_or(0, |report| report.option_length() as u64)
            }
            Kind::Data | Kind::Ack => {
                let mut options = if timestamps { TIMESTAMPS } else { 0 };
                if sack_blocks > 0 {
                    options += 4 + 8 * sack_blocks;
                }
                if let Some(report) = &self.report {
                    options += report.option_length() as u64;
                }
                if self.accurate.is_some_and(|accurate| accurate.option.is_some()) {
                    options += OPTION;
                }
                TCP_HEADER + options
            }
            // Number and timestamp of a datagram; number, echo and the report of feedback.
            Kind::Datagram => UDP_HEADER + 16,
            Kind::Feedback => {
                UDP_HEADER + 16 + self.report.map_or(0, |report| report.as_bytes().len() as u64)
            }
        };
        self.wire = (IP_HEADER + header) as u32 + self.length;
    }

    /// Offers this feedback on a SYN (RFC 3168, 6.1.1: both flags; RFC 9768, 3.1.1: all three).
    pub(crate) fn offer_ecn(&mut self, feedback: EcnFeedback) {
        (self.ecn_echo, self.cwr) = (feedback != EcnFeedback::Off, feedback != EcnFeedback::Off);
        self.accept_accurate(feedback);
    }

    /// Accepts this feedback on a SYN-ACK.
    pub(crate) fn accept_ecn(&mut self, feedback: EcnFeedback) {
        self.ecn_echo = feedback == EcnFeedback::Classic;
        self.accept_accurate(feedback);
    }

    fn accept_accurate(&mut self, feedback: EcnFeedback) {
        self.accurate = (feedback == EcnFeedback::Accurate).then(AccurateEcho::default);
    }

    /// The feedback that a segment of the handshake offers or accepts.
    pub(crate) fn ecn_feedback(&self) -> EcnFeedback {
        match (&self.accurate, self.ecn_echo) {
            (Some(_), _) => EcnFeedback::Accurate,
            (None, true) => EcnFeedback::Classic,
            (None, false) => EcnFeedback::Off,
        }
    }

    /// Bytes on the wire.
    pub fn wire_size(&self) -> Bytes {
        Bytes::new(u64::from(self.wire))
    }

    /// A plain UDP packet of `wire` bytes, headers included.
    pub fn udp(now: Time, number: u64, wire: u32) -> Self {
        let mut segment = Self::new(Kind::Datagram, now);
        segment.number = number;
        segment.wire = wire;
        segment.length = wire.saturating_sub((IP_HEADER + UDP_HEADER) as u32);
        segment
    }

    /// Time until the sender's next packet.
    pub fn time_to_next(&self) -> Span {
        Span::from_micros(u64::from(self.time_to_next_us))
    }
}
