//! Parses the header fields that the network needs: IPv4 (RFC 791), IPv6 with its extension headers (RFC 8200 section 4), TCP and
//! UDP.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ranpace_units::Ecn;

/// Fields of an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// Its destination.
    pub destination: IpAddr,
    /// Distinguishes its stream from others between the same hosts: a hash of protocol and ports. All fragments of a datagram have
    /// the same hash, of the protocol alone, since only the first has the ports; Linux' packet hash does so too.
    pub stream: u32,
    /// Bytes after the header of TCP or UDP; for other protocols, after that of IP.
    pub payload: u32,
    /// Its ECN code point (RFC 3168 section 5).
    pub ecn: Ecn,
}

const TCP: u8 = 6;
const UDP: u8 = 17;

/// Numbers of the IPv6 extension headers (IANA, "IPv6 Extension Header Types") whose second byte is their length in units of 8 B,
/// less one (RFC 8200 sections 4.3, 4.4 and 4.6, RFC 6275 section 6.1, RFC 7401 section 5.1, RFC 5533 section 5.1).
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const DESTINATION_OPTIONS: u8 = 60;
const MOBILITY: u8 = 135;
const HIP: u8 = 139;
const SHIM6: u8 = 140;
/// 8 B long (RFC 8200 section 4.5).
const FRAGMENT: u8 = 44;
/// Its length is in units of 4 B, less two (RFC 4302 section 2.2).
const AUTHENTICATION: u8 = 51;
/// Most extension headers that are parsed; the rest counts as payload. RFC 8200 section 4.1 recommends an order with six, of which
/// destination options may come twice. Ours.
const MOST_EXTENSIONS: usize = 8;

/// The transport header after those of IP.
pub struct Transport {
    /// Protocol number (IANA, "Protocol Numbers").
    pub protocol: u8,
    /// Its offset.
    pub offset: usize,
    /// Whether it is a fragment.
    is_fragment: bool,
    /// Whether it is the beginning of its datagram, or all of it.
    is_first: bool,
}

impl Transport {
    /// Reads the IP headers: source, destination and the transport header; `None` if it is not an IP packet.
    pub fn read(packet: &[u8]) -> Option<(IpAddr, IpAddr, Self)> {
        match packet.first()? >> 4 {
            4 => {
                let header: &[u8; 20] = packet.first_chunk()?;
                let address = |at: usize| {
                    Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]).into()
                };
                Some((address(12), address(16), Self::of_v4(header)?))
            }
            6 => {
                let header: &[u8; 40] = packet.first_chunk()?;
                let from: &[u8; 16] = header[8..24].first_chunk()?;
                let to: &[u8; 16] = header.last_chunk()?;
                let behind = Self::of_v6(header[6], packet);
                Some((Ipv6Addr::from(*from).into(), Ipv6Addr::from(*to).into(), behind))
            }
            _ => None,
        }
    }

    /// Returns whether it is a TCP segment, not fragmented.
    pub fn is_whole_tcp(&self) -> bool {
        self.protocol == TCP && !self.is_fragment
    }

    /// Returns whether it is a UDP datagram, not fragmented.
    pub fn is_whole_udp(&self) -> bool {
        self.protocol == UDP && !self.is_fragment
    }

    /// The header after an IPv4 header; `None` if that is too short.
    #[inline]
    fn of_v4(header: &[u8; 20]) -> Option<Self> {
        let offset = usize::from(header[0] & 0xf) * 4;
        let place = u16::from_be_bytes([header[6], header[7]]);
        let (is_first, has_more) = (place & 0x1fff == 0, place & 0x2000 != 0);
        let transport = Self { protocol: header[9], offset, is_fragment: !is_first || has_more, is_first };
        (offset >= header.len()).then_some(transport)
    }

    /// The header after an IPv6 header and its extension headers. From a truncated one on, everything counts as payload.
    #[inline]
    fn of_v6(next: u8, packet: &[u8]) -> Self {
        let mut found = Self { protocol: next, offset: 40, is_fragment: false, is_first: true };
        // Nearly all packets have none.
        for _ in 0..MOST_EXTENSIONS {
            let Some(&[next, length, third, fourth]) =
                packet.get(found.offset..).and_then(<[u8]>::first_chunk)
            else {
                break;
            };
            let size = match found.protocol {
                HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS | MOBILITY | HIP | SHIM6 => {
                    (usize::from(length) + 1) * 8
                }
                AUTHENTICATION => (usize::from(length) + 2) * 4,
                FRAGMENT => 8,
                _ => break,
            };
            if packet.len() - found.offset < size {
                break;
            }
            if found.protocol == FRAGMENT {
                // 13 bits of offset, two reserved ones, and the more-fragments flag. A datagram in a single fragment is whole (RFC
                // 6946).
                let place = u16::from_be_bytes([third, fourth]);
                found.is_first = place >> 3 == 0;
                found.is_fragment = !found.is_first || place & 1 != 0;
            }
            (found.protocol, found.offset) = (next, found.offset + size);
            if !found.is_first {
                // The rest belongs to the middle of a datagram.
                break;
            }
        }
        found
    }
}

impl Headers {
    /// Reads the headers of a whole IPv4 or IPv6 packet; `None` if it is not one.
    #[inline]
    pub fn read(packet: &[u8]) -> Option<Self> {
        let (destination, behind, class) = match packet.first()? >> 4 {
            4 => {
                let header: &[u8; 20] = packet.first_chunk()?;
                let to = Ipv4Addr::new(header[16], header[17], header[18], header[19]);
                (IpAddr::V4(to), Transport::of_v4(header)?, header[1])
            }
            6 => {
                let header: &[u8; 40] = packet.first_chunk()?;
                let to: &[u8; 16] = header.last_chunk()?;
                let class = header[0] << 4 | header[1] >> 4;
                (IpAddr::V6(Ipv6Addr::from(*to)), Transport::of_v6(header[6], packet), class)
            }
            _ => return None,
        };
        let transport = packet.get(behind.offset..)?;
        let (mut stream, mut headers) = (u32::from(behind.protocol), 0);
        if matches!(behind.protocol, TCP | UDP)
            && behind.is_first
            && let Some(ports) = transport.first_chunk::<4>()
        {
            if !behind.is_fragment {
                // Knuth's multiplicative hash (The Art of Computer Programming, volume 3, section 6.4).
                stream ^= u32::from_be_bytes(*ports).wrapping_mul(2_654_435_761) >> 3;
            }
            headers = match behind.protocol {
                TCP => transport.get(12).map_or(0, |offset| usize::from(offset >> 4) * 4),
                _ => 8,
            };
        }
        let payload = transport.len().saturating_sub(headers) as u32;
        Some(Self { destination, stream, payload, ecn: Ecn::from_bits(class) })
    }
}

/// The ECN code point of an IP packet; not ECN-capable for anything else.
pub fn ecn_of(packet: &[u8]) -> Ecn {
    match *packet {
        [first, class, ..] if first >> 4 == 4 => Ecn::from_bits(class),
        [first, second, ..] if first >> 4 == 6 => Ecn::from_bits(second >> 4),
        _ => Ecn::NotEct,
    }
}

/// Sets the ECN code point of an IP packet (RFC 3168 section 5), and updates IPv4's checksum.
pub fn set_ecn(packet: &mut [u8], ecn: Ecn) {
    match packet.first().map(|first| first >> 4) {
        Some(4) => {
            let Some(header) = packet.first_chunk_mut::<20>() else { return };
            let before = u16::from_be_bytes([header[0], header[1]]);
            header[1] = header[1] & !0b11 | ecn.bits();
            let after = u16::from_be_bytes([header[0], header[1]]);
            let sum = updated_sum(u16::from_be_bytes([header[10], header[11]]), before, after);
            header[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        Some(6) => {
            if let Some(class) = packet.get_mut(1) {
                *class = *class & !0x30 | ecn.bits() << 4;
            }
        }
        _ => {}
    }
}

/// A checksum after a word under it has changed (RFC 1624, equation 3).
pub fn updated_sum(sum: u16, before: u16, after: u16) -> u16 {
    let mut updated = u32::from(!sum) + u32::from(!before) + u32::from(after);
    updated = (updated & 0xffff) + (updated >> 16);
    updated = (updated & 0xffff) + (updated >> 16);
    !(updated as u16)
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
            assert_eq!((headers.destination, headers.payload, headers.ecn), (to, 100, Ecn::NotEct));
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

    /// A UDP datagram over IPv6 with 100 B of payload and these extension headers before it: (number, bytes after the first two, or
    /// after the first for a fragment header).
    fn extended(chain: &[(u8, Vec<u8>)]) -> Vec<u8> {
        let ip = PacketBuilder::ipv6(crate::addresses::v6(0).octets(), crate::addresses::v6(1).octets(), 64);
        let mut plain = Vec::new();
        ip.udp(5000, 80).write(&mut plain, &[7; 100]).expect("it fits");
        let mut packet = plain[..40].to_vec();
        packet[6] = chain.first().map_or(UDP, |(number, _)| *number);
        for (place, (number, rest)) in chain.iter().enumerate() {
            packet.push(chain.get(place + 1).map_or(UDP, |(number, _)| *number));
            match *number {
                FRAGMENT => packet.push(0),
                AUTHENTICATION => packet.push(((rest.len() + 2) / 4 - 2) as u8),
                _ => packet.push(((rest.len() + 2) / 8 - 1) as u8),
            }
            packet.extend(rest);
        }
        packet.extend(&plain[40..]);
        let length = (packet.len() - 40) as u16;
        packet[4..6].copy_from_slice(&length.to_be_bytes());
        packet
    }

    /// A fragment header after its first two bytes: this offset in units of 8 B, and whether more fragments follow.
    fn fragment(offset: u16, more: bool) -> (u8, Vec<u8>) {
        let [high, low] = (offset << 3 | u16::from(more)).to_be_bytes();
        (FRAGMENT, vec![high, low, 0, 0, 0, 9])
    }

    #[test]
    fn fragments_of_a_datagram_are_one_stream_and_the_first_alone_has_a_header_of_udp() {
        let stream_of = |packet: &[u8]| Headers::read(packet).expect("it is a packet").stream;
        let payload_of = |packet: &[u8]| Headers::read(packet).expect("it is a packet").payload;
        let whole = stream_of(&extended(&[]));
        for (case, offset, more, is_whole, payload) in [
            ("one of its own (RFC 6946)", 0, false, true, 100),
            ("the first", 0, true, false, 100),
            ("in the middle", 100, true, false, 108),
            ("the last", 200, false, false, 108),
        ] {
            let v6 = extended(&[fragment(offset, more)]);
            assert_eq!(payload_of(&v6), payload, "IPv6, {case}");
            assert_eq!(stream_of(&v6) == whole, is_whole, "IPv6, {case}");
            let mut v4 = Vec::new();
            let ip = PacketBuilder::ipv4([10, 77, 0, 1], [10, 77, 0, 2], 64);
            ip.udp(5000, 80).write(&mut v4, &[7; 100]).expect("it fits");
            v4[6..8].copy_from_slice(&(offset | u16::from(more) << 13).to_be_bytes());
            assert_eq!((payload_of(&v4), stream_of(&v4)), (payload, stream_of(&v6)), "IPv4, {case}");
        }
    }

    #[test]
    fn extension_headers_that_are_cut_off_or_too_many_are_payload() {
        let options = || (DESTINATION_OPTIONS, vec![1, 4, 0, 0, 0, 0]);
        let read = |packet: &[u8]| Headers::read(packet).expect("it is a packet");
        let most = extended(&vec![options(); MOST_EXTENSIONS]);
        assert_eq!((read(&most).payload, read(&most).stream), (100, read(&extended(&[])).stream));
        let more = extended(&vec![options(); MOST_EXTENSIONS + 2]);
        assert_eq!((read(&more).payload, read(&more).stream), (124, u32::from(DESTINATION_OPTIONS)));
        // It claims a length of 2048 B.
        let mut long = extended(&[options()]);
        long[41] = 255;
        assert_eq!((read(&long).payload, read(&long).stream), (116, u32::from(DESTINATION_OPTIONS)));
        // "No next header" (RFC 8200 section 4.7) is not a transport.
        let mut none = extended(&[options()]);
        none[40] = 59;
        assert_eq!((read(&none).payload, read(&none).stream), (108, 59));
        // An IPv4 header of 16 B is invalid.
        assert_eq!(Headers::read(&[&[0x44][..], &[0; 30]].concat()), None);
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
            assert!(Headers::read(&packet).is_some_and(|headers| headers.ecn == Ecn::Ect0));
            for (ecn, expected) in
                [(Ecn::Ect1, IpEcn::Ect1), (Ecn::Ect0, IpEcn::Ect0), (Ecn::Ce, IpEcn::CongestionExperienced)]
            {
                set_ecn(&mut packet, ecn);
                assert_eq!(ecn_of(&packet), ecn);
                let (marked, _) = Ipv4Header::from_slice(&packet).expect("it is still one");
                assert_eq!((marked.ecn, marked.dscp), (expected, header.dscp));
                assert_eq!(marked.header_checksum, marked.calc_header_checksum(), "dscp {dscp}");
            }
        }
        let header = Ipv6Header {
            traffic_class: 0b1010_1010,
            flow_label: Ipv6FlowLabel::try_new(0xabcde).expect("20 bits"),
            ..Ipv6Header::default()
        };
        let mut packet = header.to_bytes().to_vec();
        assert!(Headers::read(&packet).is_some_and(|headers| headers.ecn == Ecn::Ect0));
        set_ecn(&mut packet, Ecn::Ce);
        assert_eq!(ecn_of(&packet), Ecn::Ce);
        let (marked, _) = Ipv6Header::from_slice(&packet).expect("it is still one");
        assert_eq!((marked.traffic_class, marked.flow_label), (0b1010_1011, header.flow_label));
    }

    /// An extension header of any kind and length that RFC 8200 allows in the middle of a packet.
    fn extension() -> impl Strategy<Value = (u8, Vec<u8>)> {
        let kind = prop::sample::select(vec![
            HOP_BY_HOP,
            ROUTING,
            DESTINATION_OPTIONS,
            MOBILITY,
            HIP,
            SHIM6,
            AUTHENTICATION,
        ]);
        let other = (kind, 1_usize..20, any::<u8>())
            .prop_map(|(number, units, byte)| (number, vec![byte; units * 8 - 2]));
        prop_oneof![9 => other, 1 => Just(fragment(0, false))]
    }

    proptest! {
        /// Whatever extension headers precede it, a datagram is parsed in the same way.
        #[test]
        fn extension_headers_are_passed_over(chain in prop::collection::vec(extension(), 0..=MOST_EXTENSIONS)) {
            let (with, without) = (extended(&chain), extended(&[]));
            prop_assert_eq!(Headers::read(&with), Headers::read(&without));
            let cut = Headers::read(&with[..with.len() - 100]).expect("its headers are whole");
            prop_assert_eq!(cut.payload, 0);
        }

        /// Parsing never fails, whatever a program sends, and a mark changes no length.
        #[test]
        fn any_bytes_are_read(
            mut bytes in prop::collection::vec(any::<u8>(), 0..200),
            version in prop::option::of(prop::sample::select(vec![0x45_u8, 0x4f, 0x60])),
            next in prop::option::of(prop::sample::select(vec![0_u8, 6, 17, 43, 44, 51, 60])),
        ) {
            let length = bytes.len();
            // Usually something like a packet.
            for (place, value) in [(0, version), (6, next), (40, next)] {
                if let (Some(byte), Some(value)) = (bytes.get_mut(place), value) {
                    *byte = value;
                }
            }
            if let Some(headers) = Headers::read(&bytes) {
                prop_assert!(headers.payload as usize <= length);
            }
            set_ecn(&mut bytes, Ecn::Ce);
            prop_assert_eq!(bytes.len(), length);
        }
    }
}
