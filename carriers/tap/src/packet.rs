//! Reads the copies of packets that the program of eBPF makes (`struct copy` of `bpf/tap.bpf.c`), and says what the PEP saw: a packet
//! that was merged from several (GRO, GSO) counts as these. Any bytes are packets or a reason why they are none.

use std::net::{IpAddr, SocketAddr};

use etherparse::{LaxNetSlice, LaxSlicedPacket, TcpHeaderSlice};
use ranpace_pep::lightweight::{Body, FlowId, Packet};
use ranpace_units::Time;

/// Bytes before the copied content: time (8), number of the datagram (4), payload of each merged packet (2), bytes of the content (2).
pub const COPY_HEADER: usize = 16;
/// Protocol numbers of IANA.
const TCP: u8 = 6;
const UDP: u8 = 17;
/// Bytes; RFC 768.
const UDP_HEADER: usize = 8;

/// The two bits of ECN; RFC 3168, section 5.
const CONGESTION_EXPERIENCED: u8 = 3;

/// Why a copy was not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Uncounted {
    /// Not the whole of a segment or datagram.
    #[error("a fragment of an IP packet")]
    Fragment,
    /// Something that has no flows.
    #[error("neither TCP nor UDP")]
    OtherProtocol,
    /// Its headers are cut off or contradict each other.
    #[error("headers that are cut off or contradict each other")]
    Malformed,
}

/// Calls `each` for every packet of a copy, with the time at which it came.
///
/// # Errors
///
/// If the copy is not of TCP segments or UDP datagrams; `each` is not called then.
pub fn read(copy: &[u8], mut each: impl FnMut(Time, &Packet<'_>)) -> Result<(), Uncounted> {
    let (header, content) = copy.split_first_chunk::<COPY_HEADER>().ok_or(Uncounted::Malformed)?;
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = *header;
    let at = Time::from_nanos(u64::from_ne_bytes([a, b, c, d, e, f, g, h]));
    let datagram = u32::from_ne_bytes([i, j, k, l]) as usize;
    let part = usize::from(u16::from_ne_bytes([m, n]));
    let bytes = usize::from(u16::from_ne_bytes([o, p]));
    let content = content.get(..bytes).ok_or(Uncounted::Malformed)?;
    let network = Network::read(content)?;
    let transport = content.get(network.offset..).ok_or(Uncounted::Malformed)?;
    let length = network.length.checked_sub(network.offset).ok_or(Uncounted::Malformed)?;
    let ports: &[u8; 4] = transport.first_chunk().ok_or(Uncounted::Malformed)?;
    let flow = FlowId::new(
        SocketAddr::new(network.source, u16::from_be_bytes([ports[0], ports[1]])),
        SocketAddr::new(network.destination, u16::from_be_bytes([ports[2], ports[3]])),
        network.protocol,
    );
    let packet = |bytes: usize, body| Packet { flow, bytes: bytes as u32, marked: network.marked, body };
    match network.protocol {
        TCP => {
            let header = TcpHeaderSlice::from_slice(transport).map_err(|_| Uncounted::Malformed)?;
            let headers = usize::from(header.data_offset()) * 4;
            let payload = length.checked_sub(headers).ok_or(Uncounted::Malformed)?;
            let (syn, fin, reset) = (header.syn(), header.fin(), header.rst());
            let step = if part == 0 { payload } else { part };
            let mut done = 0;
            loop {
                let size = step.min(payload - done);
                let (first, last) = (done == 0, done + size == payload);
                let syn = syn && first;
                let seq =
                    header.sequence_number().wrapping_add(done as u32 + u32::from(!first && header.syn()));
                let length = size as u32 + u32::from(syn) + u32::from(fin && last);
                each(at, &packet(headers + size, Body::Tcp { seq, length, syn, reset }));
                done += size;
                if last {
                    return Ok(());
                }
            }
        }
        UDP => {
            let payload = length.checked_sub(UDP_HEADER).ok_or(Uncounted::Malformed)?;
            // The copy of a later datagram has the headers of the whole, and the beginning of its own payload.
            let before = datagram.checked_mul(part).ok_or(Uncounted::Malformed)?;
            let rest = payload.checked_sub(before).ok_or(Uncounted::Malformed)?;
            let size = if part == 0 { rest } else { rest.min(part) };
            let beginning = transport.get(UDP_HEADER..).ok_or(Uncounted::Malformed)?;
            let beginning = &beginning[..beginning.len().min(size)];
            each(at, &packet(UDP_HEADER + size, Body::Opaque { payload: beginning, length: size as u32 }));
            Ok(())
        }
        _ => Err(Uncounted::OtherProtocol),
    }
}

/// What the IP headers say.
struct Network {
    source: IpAddr,
    destination: IpAddr,
    /// Of the transport header.
    protocol: u8,
    /// Where that begins.
    offset: usize,
    /// Bytes of the whole packet, of which the copy has the first.
    length: usize,
    /// Congestion experienced.
    marked: bool,
}

impl Network {
    fn read(content: &[u8]) -> Result<Self, Uncounted> {
        let sliced = LaxSlicedPacket::from_ip(content).map_err(|_| Uncounted::Malformed)?;
        let (found, is_fragment) = match &sliced.net {
            Some(LaxNetSlice::Ipv4(ip)) => {
                let header = ip.header();
                let extensions = ip.extensions().auth.as_ref().map_or(0, |auth| auth.slice().len());
                let found = Self {
                    source: header.source_addr().into(),
                    destination: header.destination_addr().into(),
                    protocol: ip.payload().ip_number.0,
                    offset: header.slice().len() + extensions,
                    length: header.total_len().into(),
                    marked: header.ecn().value() == CONGESTION_EXPERIENCED,
                };
                (found, ip.payload().fragmented)
            }
            Some(LaxNetSlice::Ipv6(ip)) => {
                let header = ip.header();
                let found = Self {
                    source: header.source_addr().into(),
                    destination: header.destination_addr().into(),
                    protocol: ip.payload().ip_number.0,
                    offset: header.slice().len() + ip.extensions().slice().len(),
                    length: header.slice().len() + usize::from(header.payload_length()),
                    marked: header.ecn().value() == CONGESTION_EXPERIENCED,
                };
                (found, ip.payload().fragmented)
            }
            _ => return Err(Uncounted::Malformed),
        };
        if is_fragment { Err(Uncounted::Fragment) } else { Ok(found) }
    }
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;
    use proptest::prelude::*;

    use super::*;

    /// A copy as the program makes it.
    fn copy(packet: &[u8], datagram: u32, part: u16) -> Vec<u8> {
        let content = &packet[..packet.len().min(160)];
        let mut copy = 7_000_u64.to_ne_bytes().to_vec();
        copy.extend(datagram.to_ne_bytes());
        copy.extend(part.to_ne_bytes());
        copy.extend((content.len() as u16).to_ne_bytes());
        copy.extend(content);
        copy
    }

    fn tcp(payload: usize) -> Vec<u8> {
        let mut packet = Vec::new();
        PacketBuilder::ipv4([192, 0, 2, 1], [198, 51, 100, 7], 64)
            .tcp(443, 40_000, u32::MAX - 999, 1_000)
            .write(&mut packet, &vec![1; payload])
            .unwrap();
        packet
    }

    fn seen(copy: &[u8]) -> Result<Vec<(u32, u32, u32)>, Uncounted> {
        let mut seen = Vec::new();
        read(copy, |_, packet| {
            seen.push(match packet.body {
                Body::Tcp { seq, length, .. } => (seq, length, packet.bytes),
                Body::Opaque { payload, length } => (payload.len() as u32, length, packet.bytes),
            });
        })?;
        Ok(seen)
    }

    #[test]
    fn merged_segments_count_as_what_they_were() {
        assert_eq!(seen(&copy(&tcp(1_448), 0, 0)).unwrap(), [(u32::MAX - 999, 1_448, 1_468)]);
        let merged = seen(&copy(&tcp(2 * 1_448 + 10), 0, 1_448)).unwrap();
        assert_eq!(merged, [(u32::MAX - 999, 1_448, 1_468), (448, 1_448, 1_468), (1_896, 10, 30)]);
        assert_eq!(seen(&copy(&tcp(0), 0, 0)).unwrap(), [(u32::MAX - 999, 0, 20)]);
    }

    #[test]
    fn merged_datagrams_count_as_what_they_were() {
        let mut packet = Vec::new();
        PacketBuilder::ipv6([1; 16], [2; 16], 64).udp(443, 40_000).write(&mut packet, &[9; 2_500]).unwrap();
        assert_eq!(seen(&copy(&packet, 0, 1_200)).unwrap(), [(112, 1_200, 1_208)]);
        assert_eq!(seen(&copy(&packet, 2, 1_200)).unwrap(), [(100, 100, 108)]);
        assert_eq!(seen(&copy(&packet, 3, 1_200)), Err(Uncounted::Malformed));
        assert_eq!(seen(&copy(&packet, 0, 0)).unwrap(), [(112, 2_500, 2_508)]);
    }

    #[test]
    fn what_is_no_whole_packet_of_a_flow_is_not_counted() {
        let mut fragment = tcp(1_000);
        fragment[6] = 0x20;
        assert_eq!(seen(&copy(&fragment, 0, 0)), Err(Uncounted::Fragment));
        let mut icmp = tcp(1_000);
        icmp[9] = 1;
        assert_eq!(seen(&copy(&icmp, 0, 0)), Err(Uncounted::OtherProtocol));
        for end in 0..40 {
            assert_eq!(seen(&copy(&tcp(1_000)[..end], 0, 0)), Err(Uncounted::Malformed), "{end} bytes");
        }
        let mut short = tcp(1_000);
        short[3] = 30;
        short[2] = 0;
        assert_eq!(seen(&copy(&short, 0, 0)), Err(Uncounted::Malformed), "a total length within the headers");
    }

    proptest! {
        /// Whatever comes is read or refused, and what is read has no more payload than the packet.
        #[test]
        fn any_bytes_are_packets_or_a_reason(bytes in prop::collection::vec(any::<u8>(), 0..200), version in any::<bool>()) {
            let mut bytes = bytes;
            if let Some(first) = bytes.get_mut(COPY_HEADER) {
                *first = if version { 0x45 } else { 0x60 };
            }
            let mut total = 0;
            let _ = read(&bytes, |_, packet| total += u64::from(packet.bytes));
            // At most 65,535 segments of one byte, each with 20 bytes of TCP header.
            prop_assert!(total <= 65_535 * 21, "{total}");
        }
    }
}
