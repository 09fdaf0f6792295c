//! Events that a control receives: the connection, samples, acknowledgements, packets, congestion, and reports of proxies.

use ranpace_units::{Bytes, Rate, Span, Time};

#[cfg(doc)]
use super::CongestionControl;

/// Loss recovery's state, as Linux names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum State {
    /// Nothing unusual.
    #[default]
    Open,
    /// Something was selectively acknowledged, nothing is lost yet.
    Disorder,
    /// The window is being reduced after an ECN mark.
    Cwr,
    /// Lost segments are being retransmitted.
    Recovery,
    /// After a retransmission timeout.
    Loss,
}

/// State of the connection at an event.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// The instant of the event.
    pub now: Time,
    /// Payload of a full segment.
    pub mss: Bytes,
    /// A full segment on the wire, headers included; pacing counts in these.
    pub wire: Bytes,
    /// Smoothed RTT (RFC 6298); zero before the first sample.
    pub srtt: Span,
    /// Smallest RTT of the last 300 s, as Linux keeps it; [`Span::MAX`] before the first sample. A control that needs another
    /// window keeps its own from [`Sample::rtt`]. For an endpoint that passes the smoothed RTT instead of samples (ns-3.26),
    /// this is the smallest smoothed RTT, which exceeds the path's minimum.
    pub min_rtt: Span,
    /// Segments sent and neither acknowledged nor declared lost.
    pub in_flight: u64,
    /// Segments delivered since the connection began.
    pub delivered: u64,
    /// Segments lost since the connection began.
    pub lost: u64,
    /// Number of the next packet: packets are numbered in the order of sending.
    pub next_packet: u64,
    /// Loss recovery's state.
    pub state: State,
    /// Whether the window, not the application, held the sender back lately (Linux `tcp_is_cwnd_limited`).
    pub cwnd_limited: bool,
    /// Whether the application has nothing more to send at the moment.
    pub app_limited: bool,
    /// When pacing lets the next burst begin: at most a burst length after `now`, or in the past (Linux `tcp_wstamp_ns`).
    pub departure: Time,
    /// Whether packets are paced, by the control's own pace or else by the endpoint's (Linux `sk_pacing_status`).
    pub paced: bool,
}

/// One delivery-rate sample (draft-cheng-iccrg-delivery-rate-estimation; Linux `tcp_rate.c`).
#[derive(Clone, Copy, Debug, Default)]
pub struct RateSample {
    /// Segments delivered over `interval`.
    pub delivered: u64,
    /// The longer of the sending and the acknowledging interval; `None` without a valid sample.
    pub interval: Option<Span>,
    /// [`Context::delivered`] when the newest acknowledged packet was sent; ends packet-timed rounds.
    pub prior_delivered: u64,
    /// Whether the sample was limited by the application and may be too low.
    pub app_limited: bool,
    /// Segments newly declared lost on this acknowledgement.
    pub lost: u64,
    /// Segments declared lost since the newest acknowledged packet was sent.
    pub lost_since_send: u64,
    /// Segments in flight when the newest acknowledged packet was sent, itself included.
    pub in_flight_at_send: u64,
    /// Whether the acknowledgement may have been held back by the receiver's delayed-ACK timer.
    pub delayed: bool,
}

/// Measurements of one acknowledgement, before loss detection (Linux `pkts_acked`).
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Segments newly delivered (cumulatively or selectively).
    pub delivered: u64,
    /// Bytes newly delivered.
    pub bytes: Bytes,
    /// RTT of the newest packet covered; `None` if it covers only retransmissions without timestamps.
    pub rtt: Option<Span>,
    /// One-way delay of the packet that triggered the acknowledgement, from timestamps and thus up to a constant offset
    /// between the clocks; `None` without timestamps.
    pub one_way: Option<Span>,
    /// Segments in flight when the newest packet covered was sent.
    pub in_flight_at_send: u64,
}

/// One acknowledgement, after loss detection (Linux `cong_avoid` and `cong_control`).
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// Segments to grow the window by: those newly delivered, on acknowledgements that advance; as in Linux, segments that
    /// were selectively acknowledged earlier do not count again.
    pub acked: u64,
    /// Segments newly delivered, cumulatively or selectively.
    pub delivered: u64,
    /// Bytes newly delivered.
    pub bytes: Bytes,
    /// RTT of the newest packet covered, if it has one.
    pub rtt: Option<Span>,
    /// The delivery-rate sample.
    pub rate: RateSample,
    /// Segments in flight before this acknowledgement.
    pub prior_in_flight: u64,
    /// Whether it echoes an ECN mark.
    pub ecn_echo: bool,
    /// Segments newly reported to have arrived with Congestion Experienced, by feedback that counts (AccECN, QUIC); reports of
    /// acknowledgements that delivered nothing are included in the next. Zero with RFC 3168's feedback.
    pub marked: u64,
    /// Segments newly reported to have arrived with ECT(0), likewise: ABC's "brake".
    pub braked: u64,
}

/// A packet was sent. Numbers are never reused: a retransmission has a new one.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Its place in the order of sending.
    pub number: u64,
    /// Payload.
    pub bytes: Bytes,
    /// Whether its data had been sent before.
    pub retransmission: bool,
}

/// The outcome of one packet.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Its place in the order of sending.
    pub number: u64,
    /// Payload.
    pub bytes: Bytes,
    /// When it was sent.
    pub sent_at: Time,
    /// The connection when it was sent, and the losses since.
    pub sending: Sending,
    /// Its outcome.
    pub fate: PacketOutcome,
}

/// What the sender knew when it sent a packet, and what was lost since (the per-packet state of BBR's draft, section 2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sending {
    /// Segments in flight, the packet included.
    pub in_flight: u64,
    /// Segments declared lost since then, in the order of detection: the packet itself if it is lost, none of those after it.
    pub lost_since: u64,
    /// Whether the application limited the sender.
    pub app_limited: bool,
}

/// Outcome of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketOutcome {
    /// The receiver has it.
    Acked {
        /// From its sending to its acknowledgement.
        rtt: Span,
        /// One-way delay, up to a constant offset; `None` without timestamps.
        one_way: Option<Span>,
    },
    /// A proxy on the path has seen it; reported before [`CongestionControl::on_pep`].
    Seen {
        /// From its sending to the proxy's report.
        rtt: Span,
    },
    /// A proxy on the path reports it missing: it was lost before the proxy.
    Missing,
    /// It is declared lost.
    Lost,
    /// It had been declared lost but was not.
    Spurious,
}

impl PacketOutcome {
    /// Returns whether this reports an observation of a proxy, not the packet's final outcome.
    pub fn is_at_proxy(self) -> bool {
        matches!(self, Self::Seen { .. } | Self::Missing)
    }
}

/// A congestion signal, delivered before recovery acts on it.
#[derive(Clone, Copy, Debug)]
pub struct Congestion {
    /// The signal that revealed it.
    pub kind: Signal,
    /// Segments newly declared lost (zero for ECN).
    pub lost: u64,
    /// Payload of the largest of them.
    pub largest: Bytes,
    /// When the newest of them was sent.
    pub newest_sent_at: Time,
    /// Whether this begins an episode. Within an episode a further `ReduceTo` has no effect.
    pub first: bool,
}

/// The ECN code points with which a control sends, and what it makes of marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum EcnUse {
    /// None: queues drop instead of marking.
    NotEct,
    /// ECT(0); a mark is answered once per round trip, like a loss (RFC 3168).
    #[default]
    Classic,
    /// ECT(1); the control reads the number of marks from each [`Ack`] (RFC 9331).
    Scalable,
    /// ECT(1), "accelerate", which routers turn into ECT(0), "brake" (ABC). The control reads both numbers from each [`Ack`].
    Abc,
}

impl EcnUse {
    /// Returns whether the control needs feedback that counts marks. It then receives no [`Signal::Ecn`].
    pub const fn counts_marks(self) -> bool {
        matches!(self, Self::Scalable | Self::Abc)
    }
}

/// The signal that revealed congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// RACK, duplicate acknowledgements or a tail probe found lost segments.
    Loss,
    /// The retransmission timer fired.
    Timeout {
        /// Consecutive timeouts without progress, counting this one.
        count: u32,
    },
    /// The receiver echoes an ECN mark.
    Ecn,
}

/// A control's response to [`Congestion`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LossResponse {
    /// A new `ssthresh`, in segments; PRR brings the window down to it (a timeout: slow start from one segment).
    ReduceTo(f64),
    /// Retransmit, but keep window, threshold and growth as if nothing had been lost (MELD).
    Ignore,
    /// The control sets the window itself, now or on later events (BBR).
    Own,
}

/// Acknowledgement or gap report of a proxy on the path (Lightweight PEP). It never acknowledges data on the receiver's
/// behalf.
#[derive(Clone, Copy, Debug)]
pub struct PepReport {
    /// Payload that the proxy has newly seen.
    pub seen: Bytes,
    /// RTT between sender and proxy, measured on the newest packet covered.
    pub rtt: Option<Span>,
    /// Packets found missing at the proxy.
    pub missing: u64,
    /// ECN-marked packets that the proxy has seen since the flow began; `None` if it does not count them.
    pub marked: Option<u64>,
    /// The proxy has restarted its counting: it does not know the packets outstanding.
    pub new_epoch: bool,
}

/// A path to a destination as one connection of a host has learned it, for later connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathMemory {
    /// Smallest RTT.
    pub min_rtt: Span,
    /// Cell in which it was measured, if known; the value does not apply to another cell.
    pub cell: Option<u16>,
    /// When the current path began; zero if the path has never changed.
    pub since: Time,
}

impl PathMemory {
    /// Combines two memories of a path: that of the newer path, or for the same path the one with the smaller RTT.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        match self.since.cmp(&other.since) {
            core::cmp::Ordering::Less => other,
            core::cmp::Ordering::Greater => self,
            core::cmp::Ordering::Equal if other.min_rtt < self.min_rtt => other,
            core::cmp::Ordering::Equal => self,
        }
    }
}

/// A proxy's allocation to a flow on its user's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// The rate.
    pub rate: Rate,
    /// The congestion window for that rate, in bytes of payload. The proxy computes it, since it knows the smallest RTT to
    /// the user.
    pub window: Bytes,
}
