//! The settings of a QUIC connection, with noq's defaults.

use ranpace_units::{Bytes, Span};

/// IPv4 header without options and UDP header, which precede a QUIC packet.
pub(crate) const HEADERS: u64 = 20 + 8;
/// Smallest UDP payload that a path must carry (RFC 9000, section 14).
const LEAST_PAYLOAD: u64 = 1_200;

/// Default receive windows. noq has 1.25 MB per stream, no limit for the connection, and does not tune them. Ours: 2 MB, the
/// most at which a noq receiver that reads in order never has more than 2,048 full packets waiting behind a gap, even at the
/// smallest MTU (2,048 x 1,200 B are 2.46 MB): with more of them noq aborts the connection.
const WINDOW: Bytes = Bytes::new(2_000_000);

/// Settings of a QUIC connection. [`Config::default`] is noq 1.4 except for the receive windows, see `max_data`. Connections
/// have no idle timeout.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Largest IP packet, at least [`Config::LEAST_MTU`]. The path is assumed to carry it: there is no path MTU discovery.
    pub mtu: Bytes,
    /// Initial window in packets (RFC 9002, section 7.2: 10).
    pub initial_window: u32,
    /// `initial_max_data`: how much unread data the receiver accepts (RFC 9000, section 4.1); 2 MB. With more than 2,048 full
    /// packets noq aborts a connection after a loss that has that many of them behind it.
    pub max_data: Bytes,
    /// `initial_max_stream_data_uni`: the same for the one stream that carries the data.
    pub max_stream_data: Bytes,
    /// Ack-eliciting packets after which the receiver acknowledges at once. `None`: two, without a request; otherwise the
    /// sender requests it with an ACK_FREQUENCY frame (draft-ietf-quic-ack-frequency).
    pub ack_every: Option<u32>,
    /// Longest delay of an acknowledgement, requested in the same way; noq limits it to the RTT, but not below 25 ms. `None`:
    /// 25 ms (RFC 9000, section 18.2).
    pub ack_delay: Option<Span>,
    /// Whether packets are ECN-capable (RFC 9000, section 13.4).
    pub ecn: bool,
    /// Paces controls that do not pace themselves, as noq does: 1.25 windows per RTT, in bursts of ten packets or 2 ms
    /// (RFC 9002, section 7.7).
    pub pacing: bool,
    /// The side that opens the connection.
    pub opener: Opener,
    /// Bytes of the server's certificates in its first flight (ours: a chain of two with elliptic-curve keys).
    pub certificates: Bytes,
}

/// The side that opens the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Opener {
    /// The sender of the data is the client (an upload).
    #[default]
    Sender,
    /// The receiver of the data is the client (a download); the handshake's last flight carries the request.
    Receiver,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mtu: Bytes::new(1_500),
            initial_window: 10,
            max_data: WINDOW,
            max_stream_data: WINDOW,
            ack_every: None,
            ack_delay: None,
            ecn: false,
            pacing: true,
            opener: Opener::Sender,
            certificates: Bytes::new(2_000),
        }
    }
}

impl Config {
    /// Smallest [`Config::mtu`]: 1,200 bytes of UDP payload with IPv4 and UDP headers.
    pub const LEAST_MTU: Bytes = Bytes::new(LEAST_PAYLOAD + HEADERS);

    /// Largest QUIC packet: the MTU without the headers of IPv4 and UDP.
    pub fn payload(&self) -> Bytes {
        self.mtu.max(Self::LEAST_MTU) - Bytes::new(HEADERS)
    }
}
