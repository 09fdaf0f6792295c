//! What a control is told: the connection, samples, acknowledgements, packets, congestion, and what proxies say.

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

/// The connection as it stands when an event is delivered.
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
    /// Smallest RTT of the last 300 s, as Linux keeps it; [`Span::MAX`] before the first sample. A control that wants
    /// another window keeps its own from [`Sample::rtt`]. An endpoint that tells its controls the smoothed RTT in place of samples
    /// (ns-3.26) has the smallest smoothed one here, which is above the path's.
    pub min_rtt: Span,
    /// Segments sent and neither acknowledged nor taken for lost.
    pub in_flight: u64,
    /// Segments delivered since the connection began.
    pub delivered: u64,
    /// Segments lost since the connection began.
    pub lost: u64,
    /// Number that the next packet will carry: packets are numbered in the order they are sent.
    pub next_packet: u64,
    /// Loss recovery's state.
    pub state: State,
    /// Whether the window, not the application, held the sender back lately (Linux `tcp_is_cwnd_limited`).
    pub cwnd_limited: bool,
    /// Whether the application has nothing more to send at the moment.
    pub app_limited: bool,
    /// When pacing lets the next burst begin: at most the length of a burst ahead of `now`, or past (Linux `tcp_wstamp_ns`).
    pub departure: Time,
    /// Whether what is sent is spaced, by the control's own pace or, where it has none, by the endpoint's (Linux
    /// `sk_pacing_status`).
    pub paced: bool,
}

/// One delivery-rate sample (draft-cheng-iccrg-delivery-rate-estimation; Linux `tcp_rate.c`).
#[derive(Clone, Copy, Debug, Default)]
pub struct RateSample {
    /// Segments delivered over `interval`.
    pub delivered: u64,
    /// The longer of the sending and the acknowledging interval; `None` where no valid sample exists.
    pub interval: Option<Span>,
    /// [`Context::delivered`] when the newest acknowledged packet was sent; ends packet-timed rounds.
    pub prior_delivered: u64,
    /// Whether the sample was limited by the application and may be too low.
    pub app_limited: bool,
    /// Segments newly declared lost on this acknowledgement.
    pub lost: u64,
    /// Whether the acknowledgement may have been held back by the receiver's delayed-ACK timer.
    pub delayed: bool,
}

/// What one acknowledgement measured, before losses are looked for (Linux `pkts_acked`).
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Segments newly delivered (cumulatively or selectively).
    pub delivered: u64,
    /// Bytes newly delivered.
    pub bytes: Bytes,
    /// RTT of the newest packet covered; `None` where only retransmissions without timestamps were.
    pub rtt: Option<Span>,
    /// Time from sender to receiver of the packet that triggered the acknowledgement, by timestamps and so up to a
    /// constant offset between the clocks; `None` without timestamps.
    pub one_way: Option<Span>,
    /// Segments in flight when the newest packet covered was sent.
    pub in_flight_at_send: u64,
}

/// One acknowledgement, after loss detection (Linux `cong_avoid` and `cong_control`).
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// Segments to grow the window by: those newly delivered, on acknowledgements that advance; as in Linux, what was
    /// acknowledged selectively before does not count again.
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
}

/// A packet left. Numbers are never used twice: a retransmission has a new one.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Its place in the order of sending.
    pub number: u64,
    /// Payload.
    pub bytes: Bytes,
    /// Whether its data were sent before.
    pub retransmission: bool,
}

/// What became of one packet.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Its place in the order of sending.
    pub number: u64,
    /// Payload.
    pub bytes: Bytes,
    /// When it was sent.
    pub sent_at: Time,
    /// Its outcome.
    pub fate: PacketOutcome,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketOutcome {
    /// The receiver has it.
    Acked {
        /// From its sending to its acknowledgement.
        rtt: Span,
        /// From sender to receiver, up to a constant offset; `None` without timestamps.
        one_way: Option<Span>,
    },
    /// A proxy on the path has seen it; told before [`CongestionControl::on_pep`].
    Seen {
        /// From its sending to the proxy's report.
        rtt: Span,
    },
    /// A proxy on the path has missed it: it was lost before the proxy.
    Missing,
    /// It is taken for lost.
    Lost,
    /// It had been taken for lost and was not.
    Spurious,
}

impl PacketOutcome {
    /// Whether it tells where a proxy stands, and not yet what became of the packet.
    pub fn is_at_proxy(self) -> bool {
        matches!(self, Self::Seen { .. } | Self::Missing)
    }
}

/// Signs of congestion, to be answered before recovery acts on them.
#[derive(Clone, Copy, Debug)]
pub struct Congestion {
    /// How it was noticed.
    pub kind: Signal,
    /// Segments newly taken for lost (zero for ECN).
    pub lost: u64,
    /// Payload of the largest of them.
    pub largest: Bytes,
    /// When the newest of them was sent.
    pub newest_sent_at: Time,
    /// Whether this begins an episode. Within one, `ReduceTo` is not acted on again.
    pub first: bool,
}

/// How congestion was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// RACK, duplicate acknowledgements or a tail probe found lost segments.
    Loss,
    /// The retransmission timer fired.
    Timeout {
        /// Consecutive timeouts without progress, counting this one.
        count: u32,
    },
    /// The receiver echoes a mark of the network.
    Ecn,
}

/// A control's answer to [`Congestion`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LossResponse {
    /// A new `ssthresh`, in segments; PRR brings the window down to it (a timeout: slow start from one segment).
    ReduceTo(f64),
    /// Retransmit, and leave window, threshold and growth as if nothing had been lost (MELD).
    Ignore,
    /// The control has set the window itself, or does so on later events (BBR).
    Own,
}

/// Acknowledgement or gap report of a proxy on the path (Lightweight PEP). It never retires data.
#[derive(Clone, Copy, Debug)]
pub struct PepReport {
    /// Payload that the proxy has newly seen.
    pub seen: Bytes,
    /// RTT between sender and proxy, by the newest packet covered.
    pub rtt: Option<Span>,
    /// Packets found missing at the proxy.
    pub missing: u64,
    /// Packets with an ECN mark that it saw, since the flow began; `None` where it does not count them.
    pub marked: Option<u64>,
    /// The proxy's counting began anew: what was outstanding is unknown to it.
    pub new_epoch: bool,
}

/// What one connection of a host has learned of the path to a destination, for the next ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathMemory {
    /// Smallest RTT.
    pub min_rtt: Span,
    /// Number of the cell in which it was measured, if that is known: over another one it says nothing.
    pub cell: Option<u16>,
    /// Since when it is that of the path there is now; zero if the path never was another one.
    pub since: Time,
}

impl PathMemory {
    /// What is known of a path by both: of the newer path, or the smaller RTT of the same one.
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

/// What a proxy allocates to a flow on its user's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// The rate.
    pub rate: Rate,
    /// The congestion window for that rate, in bytes of payload. The proxy works it out, since it knows the smallest RTT to the user.
    pub window: Bytes,
}
