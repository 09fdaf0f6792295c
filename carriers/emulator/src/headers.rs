//! What the headers of a packet say that the network has to know.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Of one IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// Where it wants to go.
    pub destination: IpAddr,
    /// Tells its stream from others between the same hosts: a hash of protocol and ports.
    pub stream: u32,
    /// Bytes behind the headers of TCP or UDP; of others, behind those of IP.
    pub payload: u32,
    /// ECN-capable: ECT(0) or ECT(1) (RFC 3168 section 5).
    pub ect: bool,
}

const TCP: u8 = 6;
const UDP: u8 = 17;

impl Headers {
    /// Reads the headers of a whole IPv4 or IPv6 packet; `None` if it is none.
    #[inline]
    pub fn read(packet: &[u8]) -> Option<Self> {
        let version = packet.first()? >> 4;
        // Extension headers of IPv6 are taken as payload; Linux sends none with TCP and UDP.
        let (destination, protocol, length, class) = match version {
            4 => {
                let header: &[u8; 20] = packet.first_chunk()?;
                let length = usize::from(header[0] & 0xf) * 4;
                let to = Ipv4Addr::new(header[16], header[17], header[18], header[19]);
                (IpAddr::V4(to), header[9], length, header[1])
            }
            6 => {
                let header: &[u8; 40] = packet.first_chunk()?;
                let to: &[u8; 16] = header.last_chunk()?;
                let class = header[0] << 4 | header[1] >> 4;
                (IpAddr::V6(Ipv6Addr::from(*to)), header[6], 40, class)
            }
            _ => return None,
        };
        let transport = packet.get(length..)?;
        // Later fragments of IPv4 have no ports: they share a stream.
        let is_first = version == 6 || packet[6] & 0x1f == 0 && packet[7] == 0;
        let (mut stream, mut headers) = (u32::from(protocol), 0);
        if matches!(protocol, TCP | UDP)
            && is_first
            && let Some(ports) = transport.first_chunk::<4>()
        {
            // Knuth's multiplicative hash (The Art of Computer Programming, volume 3, section 6.4).
            stream ^= u32::from_be_bytes(*ports).wrapping_mul(2_654_435_761) >> 3;
            headers = match protocol {
                TCP => transport.get(12).map_or(0, |offset| usize::from(offset >> 4) * 4),
                _ => 8,
            };
        }
        let payload = transport.len().saturating_sub(headers) as u32;
        Some(Self { destination, stream, payload, ect: matches!(class & 3, 1 | 2) })
    }
}

/// Sets Congestion Experienced in an IP packet (RFC 3168 section 5), and mends IPv4's checksum (RFC 1624, equation 3).
pub fn mark_ce(packet: &mut [u8]) {
    match packet.first().map(|first| first >> 4) {
        Some(4) => {
            let Some(header) = packet.first_chunk_mut::<20>() else { return };
            let before = u16::from_be_bytes([header[0], header[1]]);
            header[1] |= 3;
            let after = u16::from_be_bytes([header[0], header[1]]);
            let sum = u16::from_be_bytes([header[10], header[11]]);
            let mut mended = u32::from(!sum) + u32::from(!before) + u32::from(after);
            mended = (mended & 0xffff) + (mended >> 16);
            mended = (mended & 0xffff) + (mended >> 16);
            header[10..12].copy_from_slice(&(!(mended as u16)).to_be_bytes());
        }
        Some(6) => {
            if let Some(class) = packet.get_mut(1) {
                *class |= 0x30;
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use etherparse::{IpEcn, Ipv4Header, Ipv6FlowLabel, Ipv6Header, PacketBuilder};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn headers_of_tcp_and_udp_are_read_in_both_versions() {
        for (v6, tcp) in [(false, false), (false, true), (true, false), (true, true)] {
            let to: IpAddr = if v6 { crate::addresses::v6(1).into() } else { crate::addresses::v4(1).into() };
            let ip = if v6 {
                PacketBuilder::ipv6(crate::addresses::v6(0).octets(), crate::addresses::v6(1).octets(), 64)
            } else {
                PacketBuilder::ipv4([10, 77, 0, 1], [10, 77, 0, 2], 64)
            };
            let mut packet = Vec::new();
            let payload = [7; 100];
            if tcp {
                ip.tcp(5000, 80, 1, 1000).write(&mut packet, &payload).expect("it fits");
            } else {
                ip.udp(5000, 80).write(&mut packet, &payload).expect("it fits");
            }
            let headers = Headers::read(&packet).expect("it is a packet");
            assert_eq!((headers.destination, headers.payload, headers.ect), (to, 100, false));
        }
    }

    #[test]
    fn streams_with_other_ports_are_told_apart() {
        let of = |from, to| {
            let mut packet = Vec::new();
            let ip = PacketBuilder::ipv4([10, 77, 0, 1], [10, 77, 0, 2], 64);
            ip.tcp(from, to, 1, 1000).write(&mut packet, &[]).expect("it fits");
            Headers::read(&packet).expect("it is a packet").stream
        };
        assert_eq!(of(5000, 80), of(5000, 80));
        assert_ne!(of(5000, 80), of(5001, 80));
        assert_ne!(of(5000, 80), of(5000, 81));
    }

    #[test]
    fn a_mark_leaves_a_packet_whose_checksum_is_right() {
        for (dscp, id) in [(0, 0), (10, 0xffff), (46, 0x1234), (63, 1)] {
            let mut header =
                Ipv4Header::new(10, 64, etherparse::IpNumber::TCP, [10, 77, 0, 1], [10, 77, 0, 9])
                    .expect("it fits");
            header.dscp = etherparse::IpDscp::try_new(dscp).expect("six bits");
            header.ecn = IpEcn::Ect0;
            header.identification = id;
            header.header_checksum = header.calc_header_checksum();
            let mut packet = header.to_bytes().to_vec();
            packet.extend([0; 10]);
            assert!(Headers::read(&packet).is_some_and(|headers| headers.ect));
            mark_ce(&mut packet);
            let (marked, _) = Ipv4Header::from_slice(&packet).expect("it is still one");
            assert_eq!(marked.ecn, IpEcn::CongestionExperienced);
            assert_eq!(marked.dscp, header.dscp);
            assert_eq!(marked.header_checksum, marked.calc_header_checksum(), "dscp {dscp}");
        }
        let header = Ipv6Header {
            traffic_class: 0b1010_1010,
            flow_label: Ipv6FlowLabel::try_new(0xabcde).expect("20 bits"),
            ..Ipv6Header::default()
        };
        let mut packet = header.to_bytes().to_vec();
        assert!(Headers::read(&packet).is_some_and(|headers| headers.ect));
        mark_ce(&mut packet);
        let (marked, _) = Ipv6Header::from_slice(&packet).expect("it is still one");
        assert_eq!((marked.traffic_class, marked.flow_label), (0b1010_1011, header.flow_label));
    }

    proptest! {
        /// Whatever a program sends, reading it does not fail, and a mark changes no length.
        #[test]
        fn any_bytes_are_read(mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let length = bytes.len();
            if let Some(headers) = Headers::read(&bytes) {
                prop_assert!(headers.payload as usize <= length);
            }
            mark_ce(&mut bytes);
            prop_assert_eq!(bytes.len(), length);
        }
    }
}
