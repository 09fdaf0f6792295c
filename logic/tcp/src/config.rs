//! The settings of a connection, with Linux 6.x's defaults.

use ranpace_units::{Bytes, Span};

use crate::ecn::{Ace, EcnFeedback};

/// Settings of a TCP connection. [`Config::default`] is Linux 6.18 with its default sysctls, except for the send buffer,
/// which is unlimited so that the network and not the host is the limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Largest IP packet; the MSS is this less 20 bytes of IPv4, 20 of TCP and the options in use.
    pub mtu: Bytes,
    /// Initial window in segments (RFC 6928: 10).
    pub initial_window: u32,
    /// Timestamps option on every segment, 12 bytes (RFC 7323).
    pub timestamps: bool,
    /// The most informative ECN feedback that is negotiated; packets are ECN-capable unless it is off.
    pub ecn: EcnFeedback,
    /// How the sender reads accurate feedback.
    pub ace: Ace,
    /// Whether accurate feedback is also carried by the option of RFC 9768 (12 bytes with its padding), where it fits.
    pub ecn_option: bool,
    /// Segments after which the receiver acknowledges at once (2; 1 acknowledges every segment).
    pub ack_every: u32,
    /// Longest delay of an acknowledgement (Linux: 40 ms).
    pub ack_delay: Span,
    /// Segments acknowledged at once at the beginning (Linux: 16, fewer if the window is small).
    pub quick_acks: u32,
    /// Smallest variance term of the RTO (Linux `TCP_RTO_MIN`: 200 ms).
    pub min_rto: Span,
    /// RTO before the first sample, also of the SYN (RFC 6298: 1 s).
    pub initial_rto: Span,
    /// Longest RTO (Linux: 120 s).
    pub max_rto: Span,
    /// Initial receive buffer in bytes of payload.
    pub receive_buffer: Bytes,
    /// Upper limit of autotuning; equal to `receive_buffer` for a fixed buffer. Linux since 6.16: 32 MB of memory, half of
    /// which is offered as window.
    pub receive_buffer_max: Bytes,
    /// Most unacknowledged payload that the sender keeps.
    pub send_buffer: Bytes,
    /// Congestion window validation after idle time (Linux `tcp_slow_start_after_idle`).
    pub slow_start_after_idle: bool,
    /// Segments sent together leave as one piece, which the network card splits (GSO), as in Linux: the last one of several
    /// has PSH (`__tcp_transmit_skb`), as does the end of an application's write; a segment with PSH is acknowledged at once,
    /// since the application has then read everything (`tcp_measure_rcv_mss`, since 6.6). Retransmissions have no PSH here.
    /// Off by default: published experiments are reproduced without it.
    pub gso: bool,
    /// Paces controls that do not pace themselves at Linux's multiples of cwnd / srtt, as with the fq qdisc: 200 % below half
    /// of ssthresh, 120 % above.
    pub pacing: bool,
    /// The side that sends the SYN: the data's sender (a push), or its receiver (a fetch), whose request is carried by the
    /// handshake's last segment.
    pub opener: Opener,
    /// Selective acknowledgements (RFC 2018), and with them RACK-TLP and PRR. Without them losses are repaired as in ns-3.26:
    /// NewReno (RFC 6582), limited transmit (RFC 3042), and retransmission of the whole window after a timeout.
    pub sack: bool,
    /// Without SACK: duplicate acknowledgements inflate the window during recovery even for controls that set it themselves.
    /// Otherwise such a window limits all unacknowledged data.
    pub inflate_own: bool,
    /// The segment, of those covered by an acknowledgement, that gives its RTT sample.
    pub rtt_sample: RttSample,
    /// The rule for the retransmission timeout.
    pub rto: RtoRule,
    /// Granularity of the clock of RTT samples and timestamps; zero for an exact one.
    pub timestamp_granularity: Span,
    /// The RTT that controls receive.
    pub control_rtt: ControlRtt,
    /// The unit by which controls may grow their window.
    pub growth: Growth,
}

/// The RTT that controls receive, and whose minimum they see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ControlRtt {
    /// The sample of the acknowledgement, if it has one (Linux).
    #[default]
    Sample,
    /// The estimator's mean after the latest sample, on each acknowledgement, including duplicates (ns-3.26 `m_lastRtt`).
    Smoothed,
}

/// The unit by which windows grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Growth {
    /// The segments that an acknowledgement acknowledges (Linux; RFC 3465).
    #[default]
    Segments,
    /// Acknowledgements: each counts as one segment, however many it covers, in slow start and in congestion avoidance
    /// (RFC 5681 without byte counting; ns-3.26 `TcpNewReno::SlowStart`, `CongestionAvoidance`).
    Acks,
    /// Acknowledgements in slow start, segments afterwards (ns-3 `TcpCubic::IncreaseWindow`).
    SlowStartAcks,
}

/// The segment, of those covered by an acknowledgement, that gives its RTT sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RttSample {
    /// The newest (Linux, for controls).
    #[default]
    Newest,
    /// The oldest, as echoed by a receiver that delays acknowledgements (RFC 7323, 4.3): the sample includes the delay.
    Oldest,
}

/// How the retransmission timeout is computed from RTT samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RtoRule {
    /// `SRTT + max(4 RTTVAR, min_rto)`, with Linux's estimator of the variance.
    #[default]
    Linux,
    /// `max(SRTT + max(G, 4 RTTVAR), min_rto)` (RFC 6298, 2.2 to 2.4, with G = 1 ms).
    Rfc6298,
}

/// The side that opens the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Opener {
    /// The sender of the data (an upload, iperf3, ns-3's bulk sender).
    #[default]
    Sender,
    /// The receiver of the data (a download).
    Receiver,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mtu: Bytes::new(1_500),
            initial_window: 10,
            timestamps: true,
            ecn: EcnFeedback::Off,
            ace: Ace::Exact,
            ecn_option: false,
            ack_every: 2,
            ack_delay: Span::from_millis(40),
            quick_acks: 16,
            min_rto: Span::from_millis(200),
            initial_rto: Span::SECOND,
            max_rto: Span::from_secs(120),
            receive_buffer: Bytes::new(65_536),
            receive_buffer_max: Bytes::new(16 << 20),
            send_buffer: Bytes::MAX,
            slow_start_after_idle: true,
            gso: false,
            pacing: false,
            opener: Opener::Sender,
            sack: true,
            inflate_own: false,
            rtt_sample: RttSample::Newest,
            rto: RtoRule::Linux,
            timestamp_granularity: Span::ZERO,
            control_rtt: ControlRtt::Sample,
            growth: Growth::Segments,
        }
    }
}

/// SYNs repeated at the same interval before it doubles (Linux `tcp_syn_linear_timeouts`).
pub(crate) const LINEAR_SYNS: u32 = 4;
/// IPv4 header without options.
pub(crate) const IP_HEADER: u64 = 20;
/// TCP header without options.
pub(crate) const TCP_HEADER: u64 = 20;
/// UDP header.
pub(crate) const UDP_HEADER: u64 = 8;
/// Options of the SYN and of its answer: MSS, window scale, SACK permitted, timestamps, as Linux sends them.
pub(crate) const SYN_OPTIONS: u64 = 20;
/// Timestamps option with its padding (RFC 7323, appendix A).
pub(crate) const TIMESTAMPS: u64 = 12;

impl Config {
    /// The most informative ECN feedback of an endpoint with these settings. Without SACK it is RFC 3168's at most.
    pub(crate) fn ecn_feedback(&self) -> EcnFeedback {
        if self.sack { self.ecn } else { self.ecn.min(EcnFeedback::Classic) }
    }

    /// The TCP of ns-3.26 (2016), as far as the stack and not the experiment determines it: no SACK, RTT samples from echoes
    /// in whole milliseconds, RFC 6298's timeout of 1 to 60 s (3 s for the SYN), an acknowledgement for two segments or
    /// 200 ms after the first, no decay after idle time; controls receive the smoothed RTT, and each acknowledgement grows
    /// their windows by at most one segment. Packet size (536 bytes of payload), initial window (1) and buffers (128 KiB) are
    /// left to the experiment.
    ///
    /// Source: the attribute defaults of `TcpSocket` and `TcpSocketBase` there.
    pub fn ns_3_26() -> Self {
        Self {
            sack: false,
            rtt_sample: RttSample::Oldest,
            timestamp_granularity: Span::from_millis(1),
            rto: RtoRule::Rfc6298,
            min_rto: Span::SECOND,
            initial_rto: Span::from_secs(3),
            max_rto: Span::from_secs(60),
            ack_every: 2,
            ack_delay: Span::from_millis(200),
            quick_acks: 0,
            slow_start_after_idle: false,
            control_rtt: ControlRtt::Smoothed,
            growth: Growth::Acks,
            ..Self::default()
        }
    }

    /// Bytes of IP and TCP headers on a data segment.
    pub fn header(&self) -> Bytes {
        Bytes::new(IP_HEADER + TCP_HEADER + if self.timestamps { TIMESTAMPS } else { 0 })
    }

    /// Payload of a full segment (1448 bytes by default).
    pub fn mss(&self) -> Bytes {
        self.mtu - self.header()
    }
}
