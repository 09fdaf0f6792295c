//! The kernel's figures of its TCP connections: `struct tcp_info` by sock_diag (sock_diag(7), inet_diag), which covers the sockets of
//! all programs in a network namespace.
//!
//! Source: Linux 6.18, include/uapi/linux/tcp.h. The kernel appends new fields at the end, so each field is read at its fixed offset,
//! and is zero where an older kernel's structure ends before it.

use std::io;
use std::net::IpAddr;

use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP};
use netlink_packet_sock_diag::inet::nlas::Nla;
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, SocketId, StateFlags};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_SOCK_DIAG};
use ranpace_units::Span;

/// Largest answer at once; the kernel makes them of at most 32 KiB.
const ANSWER: usize = 64 * 1024;
/// TCP_INFINITE_SSTHRESH (Linux, include/net/tcp.h).
const INFINITE: u32 = 0x7fff_ffff;

/// A TCP socket that has, or had, a peer.
#[derive(Clone, Debug, PartialEq)]
pub struct Connection {
    /// Its own address and port.
    pub local: (IpAddr, u16),
    /// Its peer's.
    pub remote: (IpAddr, u16),
    /// Tells it from others, also from those with the same addresses before.
    pub cookie: [u8; 8],
    /// Whether it is established, or closed by the peer alone: it can send.
    pub is_open: bool,
    /// Its congestion control.
    pub cc: String,
    /// Counters of the kernel.
    pub info: TcpInfo,
}

/// The fields of `struct tcp_info` that are used, all since the beginning of the connection where they count something.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TcpInfo {
    /// Segments of this size (`tcpi_snd_mss`), bytes of payload.
    pub mss: u32,
    /// Segments sent and not acknowledged (`tcpi_unacked`).
    pub unacked: u32,
    /// Segments of these that SACK covers (`tcpi_sacked`).
    pub sacked: u32,
    /// Segments of these taken for lost (`tcpi_lost`).
    pub lost: u32,
    /// Segments of these sent again (`tcpi_retrans`).
    pub retransmitting: u32,
    /// Smoothed RTT (`tcpi_rtt`); zero before the first sample.
    pub srtt: Span,
    /// Smallest RTT (`tcpi_min_rtt`); `None` before the first sample.
    pub min_rtt: Option<Span>,
    /// Congestion window, segments (`tcpi_snd_cwnd`).
    pub cwnd: u32,
    /// Threshold, segments (`tcpi_snd_ssthresh`); `None` while it is infinite.
    pub ssthresh: Option<u32>,
    /// Pace, bytes per second (`tcpi_pacing_rate`); `None` if it is unlimited.
    pub pacing: Option<u64>,
    /// Segments retransmitted (`tcpi_total_retrans`).
    pub retransmitted: u32,
    /// Payload acknowledged (`tcpi_bytes_acked`), and the SYN as a byte at its opener.
    pub bytes_acked: u64,
    /// Payload that arrived (`tcpi_bytes_received`).
    pub bytes_received: u64,
    /// Data segments sent, including retransmissions (`tcpi_data_segs_out`).
    pub segments_sent: u32,
    /// Data segments that arrived (`tcpi_data_segs_in`).
    pub segments_received: u32,
    /// Segments delivered according to the sender (`tcpi_delivered`).
    pub delivered: u32,
    /// Segments of these whose acknowledgement echoed a mark of ECN (`tcpi_delivered_ce`).
    pub delivered_marked: u32,
    /// Payload sent, including retransmissions (`tcpi_bytes_sent`).
    pub bytes_sent: u64,
    /// Payload retransmitted (`tcpi_bytes_retrans`).
    pub bytes_retransmitted: u64,
    /// Retransmission timeouts (`tcpi_total_rto`).
    pub timeouts: u16,
    /// Time in which sending was limited by the peer's window, and by the own buffer (`tcpi_rwnd_limited`, `tcpi_sndbuf_limited`).
    pub limited: (Span, Span),
}

impl TcpInfo {
    /// Parses the kernel's structure.
    pub fn read(bytes: &[u8]) -> Self {
        let short = |place: usize| {
            bytes.get(place..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u16::from_ne_bytes(*bytes))
        };
        let word = |place: usize| {
            bytes.get(place..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u32::from_ne_bytes(*bytes))
        };
        let long = |place: usize| {
            bytes.get(place..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u64::from_ne_bytes(*bytes))
        };
        let micros = |micros: u32| Span::from_micros(micros.into());
        let (min_rtt, ssthresh, pacing) = (word(148), word(76), long(104));
        Self {
            mss: word(16),
            unacked: word(24),
            sacked: word(28),
            lost: word(32),
            retransmitting: word(36),
            srtt: micros(word(68)),
            min_rtt: (min_rtt != 0 && min_rtt != u32::MAX).then(|| micros(min_rtt)),
            cwnd: word(80),
            ssthresh: (ssthresh < INFINITE).then_some(ssthresh),
            pacing: (pacing != u64::MAX).then_some(pacing),
            retransmitted: word(100),
            bytes_acked: long(120),
            bytes_received: long(128),
            segments_sent: word(156),
            segments_received: word(152),
            delivered: word(192),
            delivered_marked: word(196),
            bytes_sent: long(200),
            bytes_retransmitted: long(208),
            timeouts: short(240),
            limited: (Span::from_micros(long(176)), Span::from_micros(long(184))),
        }
    }

    /// Segments in flight as the kernel counts them (`tcp_packets_in_flight`).
    pub fn in_flight(&self) -> u32 {
        (self.unacked + self.retransmitting).saturating_sub(self.sacked + self.lost)
    }
}

/// Queries the TCP connections of a network namespace.
pub struct Observer {
    socket: Socket,
    requests: [Vec<u8>; 2],
    answer: Vec<u8>,
}

impl Observer {
    /// An observer of the calling thread's network namespace.
    pub fn new() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        let requests = [(AF_INET, SocketId::new_v4()), (AF_INET6, SocketId::new_v6())]
            .map(|(family, socket_id)| request(family, socket_id));
        Ok(Self { socket, requests, answer: vec![0; ANSWER] })
    }

    /// Passes each connection to `see`, in no particular order.
    pub fn look(&mut self, mut see: impl FnMut(Connection)) -> io::Result<()> {
        for request in &self.requests {
            self.socket.send(request, 0)?;
            while read(&self.socket, &mut self.answer, &mut see)? {}
        }
        Ok(())
    }
}

/// The request for all connections of a family that have a peer.
fn request(family: u8, socket_id: SocketId) -> Vec<u8> {
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    let states = StateFlags::ESTABLISHED
        | StateFlags::FIN_WAIT1
        | StateFlags::CLOSE_WAIT
        | StateFlags::LAST_ACK
        | StateFlags::CLOSING;
    let message = SockDiagMessage::InetRequest(InetRequest {
        family,
        protocol: IPPROTO_TCP,
        extensions: ExtensionFlags::INFO | ExtensionFlags::CONG,
        states,
        socket_id,
    });
    let mut packet = NetlinkMessage::new(header, message.into());
    packet.finalize();
    let mut bytes = vec![0; packet.buffer_len()];
    packet.serialize(&mut bytes);
    bytes
}

/// Reads the next part of an answer; returns whether there is more.
fn read(socket: &Socket, answer: &mut [u8], see: &mut impl FnMut(Connection)) -> io::Result<bool> {
    let size = socket.recv(&mut &mut *answer, 0)?;
    let mut rest = answer.get(..size).unwrap_or_default();
    while !rest.is_empty() {
        let message = NetlinkMessage::<SockDiagMessage>::deserialize(rest).map_err(io::Error::other)?;
        match message.payload {
            NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(response)) => {
                see(connection(*response));
            }
            NetlinkPayload::Done(_) => return Ok(false),
            NetlinkPayload::Error(error) => return Err(error.to_io()),
            _ => {}
        }
        // Messages begin at multiples of four bytes (NLMSG_ALIGN).
        let length = (message.header.length as usize).next_multiple_of(4).max(4);
        rest = rest.get(length..).unwrap_or_default();
    }
    Ok(true)
}

fn connection(response: netlink_packet_sock_diag::inet::InetResponse) -> Connection {
    /// TCP_ESTABLISHED and TCP_CLOSE_WAIT (Linux, include/net/tcp_states.h).
    const OPEN: [u8; 2] = [1, 8];
    let id = response.header.socket_id;
    let (mut cc, mut info) = (String::new(), TcpInfo::default());
    for attribute in response.nlas {
        match attribute {
            Nla::TcpInfo(bytes) => info = TcpInfo::read(&bytes),
            Nla::Congestion(name) => cc = name,
            _ => {}
        }
    }
    Connection {
        local: (id.source_address, id.source_port),
        remote: (id.destination_address, id.destination_port),
        cookie: id.cookie,
        is_open: OPEN.contains(&response.header.state),
        cc,
        info,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn bytes_sent_are_seen_at_both_ends() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it has one");
        let mut sender = TcpStream::connect(address).expect("it listens");
        let (mut receiver, _) = listener.accept().expect("it was called");
        sender.write_all(&[7; 50_000]).expect("it fits");
        receiver.read_exact(&mut [0; 50_000]).expect("it was sent");
        let (from, to) = (sender.local_addr().expect("it has one"), address);
        let mut observer = Observer::new().expect("everybody may ask");
        // The last acknowledgement may still be in flight.
        for _ in 0..1_000 {
            let mut seen = Vec::new();
            observer.look(|connection| seen.push(connection)).expect("it answers");
            let find = |local: std::net::SocketAddr| {
                seen.iter()
                    .find(|seen| seen.local == (local.ip(), local.port()) && seen.remote.1 != local.port())
            };
            let (Some(there), Some(here)) = (find(from), find(to)) else { panic!("they are open: {seen:?}") };
            assert!(there.is_open && here.is_open && !there.cc.is_empty());
            assert_eq!((there.info.bytes_sent, here.info.bytes_received), (50_000, 50_000));
            assert!(there.info.segments_sent > 0 && there.info.segments_sent == here.info.segments_received);
            assert!(there.info.cwnd > 1 && there.info.mss > 1_000 && there.info.ssthresh.is_none());
            if there.info.bytes_acked == 50_001 && there.info.unacked == 0 {
                assert!(there.info.min_rtt.is_some_and(|min| min <= there.info.srtt));
                return;
            }
            std::thread::yield_now();
        }
        panic!("it was never acknowledged");
    }

    #[test]
    fn an_older_kernel_ends_earlier_and_any_bytes_are_read() {
        let mut bytes = [0; 104];
        bytes[80] = 10;
        bytes[76..80].copy_from_slice(&INFINITE.to_ne_bytes());
        let info = TcpInfo::read(&bytes);
        assert_eq!((info.cwnd, info.ssthresh, info.segments_sent), (10, None, 0));
        for length in 0..bytes.len() {
            let _ = TcpInfo::read(&bytes[..length]);
        }
    }
}
