//! TCP segments as bytes: parses what a kernel sent, and writes what the proxy sends.

use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

use etherparse::{IpNumber, Ipv4Header, Ipv6Header, TcpHeader, TcpOptionElement, TcpSlice};
use tun_rs::VirtioNetHdr;

use crate::gso::{NEEDS_SUM, OFFSET, TCP_SUM, addresses_sum, pseudo_sum};
use crate::headers::Transport;

/// Most ranges in one option (RFC 2018 section 3).
const MOST_RANGES: usize = 4;
/// Time to live of the proxy's packets; they make one hop.
const TTL: u8 = 64;

/// Both ends of a connection, in the direction of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ends {
    /// Its source.
    pub from: SocketAddr,
    /// Its destination.
    pub to: SocketAddr,
}

impl Ends {
    /// Returns the ends of packets in the other direction.
    pub fn reversed(self) -> Self {
        Self { from: self.to, to: self.from }
    }
}

/// A segment on the wire: 32-bit numbers, and an unscaled window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireSegment {
    /// Its ends.
    pub ends: Ends,
    /// First sequence number.
    pub seq: u32,
    /// Acknowledgement, if it has one.
    pub ack: Option<u32>,
    /// SYN: opens the connection.
    pub syn: bool,
    /// FIN: no more data follow.
    pub fin: bool,
    /// RST: resets the connection.
    pub rst: bool,
    /// PSH: a write ended here.
    pub push: bool,
    /// Window.
    pub window: u16,
    /// Maximum segment size; on a SYN.
    pub mss: Option<u16>,
    /// Window scale of later segments; on a SYN.
    pub scale: Option<u8>,
    /// SACK-permitted; on a SYN.
    pub sack_permitted: bool,
    /// Timestamp, and the echoed one.
    pub timestamps: Option<(u32, u32)>,
    /// Selectively acknowledged ranges.
    pub sack: Vec<(u32, u32)>,
}

impl WireSegment {
    /// An empty segment.
    pub fn new(ends: Ends, seq: u32) -> Self {
        Self {
            ends,
            seq,
            ack: None,
            syn: false,
            fin: false,
            rst: false,
            push: false,
            window: 0,
            mss: None,
            scale: None,
            sack_permitted: false,
            timestamps: None,
            sack: Vec::new(),
        }
    }

    /// Parses an IP packet, and returns the range of its payload; `None` if it is not a whole TCP segment.
    pub fn read(packet: &[u8]) -> Option<(Self, Range<usize>)> {
        let (from, to, transport) = Transport::read(packet)?;
        if !transport.is_whole_tcp() {
            return None;
        }
        let tcp = TcpSlice::from_slice(packet.get(transport.offset..)?).ok()?;
        let ends = Ends {
            from: SocketAddr::new(from, tcp.source_port()),
            to: SocketAddr::new(to, tcp.destination_port()),
        };
        let mut segment = Self {
            ack: tcp.ack().then(|| tcp.acknowledgment_number()),
            syn: tcp.syn(),
            fin: tcp.fin(),
            rst: tcp.rst(),
            push: tcp.psh(),
            window: tcp.window_size(),
            ..Self::new(ends, tcp.sequence_number())
        };
        // A truncated option ends the list; those before it count.
        for option in tcp.options_iterator().map_while(Result::ok) {
            match option {
                TcpOptionElement::MaximumSegmentSize(size) => segment.mss = Some(size),
                TcpOptionElement::WindowScale(scale) => segment.scale = Some(scale),
                TcpOptionElement::SelectiveAcknowledgementPermitted => segment.sack_permitted = true,
                TcpOptionElement::SelectiveAcknowledgement(first, others) => {
                    segment.sack = std::iter::once(first).chain(others.into_iter().flatten()).collect();
                }
                TcpOptionElement::Timestamp(own, echo) => segment.timestamps = Some((own, echo)),
                TcpOptionElement::Noop => {}
            }
        }
        Some((segment, packet.len() - tcp.payload().len()..packet.len()))
    }

    /// Writes it with its payload to `out`, a virtio header first; the checksum is left to the receiving kernel. `number` is the
    /// IPv4 identification.
    pub fn write(&self, number: u16, payload: &[u8], out: &mut Vec<u8>) {
        let header = self.header();
        let length = header.header_len() + payload.len();
        out.clear();
        out.resize(OFFSET, 0);
        // Payload never comes near 64 KiB, and both addresses are of one version.
        let length16 = u16::try_from(length).unwrap_or(u16::MAX);
        match (self.ends.from.ip(), self.ends.to.ip()) {
            (IpAddr::V6(from), to) => {
                let to = match to {
                    IpAddr::V6(to) => to,
                    IpAddr::V4(to) => to.to_ipv6_mapped(),
                };
                let ip = Ipv6Header {
                    payload_length: length16,
                    next_header: IpNumber::TCP,
                    hop_limit: TTL,
                    source: from.octets(),
                    destination: to.octets(),
                    ..Ipv6Header::default()
                };
                out.extend_from_slice(&ip.to_bytes());
            }
            (IpAddr::V4(from), to) => {
                let to = if let IpAddr::V4(to) = to { to.octets() } else { [0; 4] };
                let mut ip = Ipv4Header {
                    total_len: length16.saturating_add(20),
                    identification: number,
                    dont_fragment: true,
                    time_to_live: TTL,
                    protocol: IpNumber::TCP,
                    source: from.octets(),
                    destination: to,
                    ..Ipv4Header::default()
                };
                ip.header_checksum = ip.calc_header_checksum();
                out.extend_from_slice(&ip.to_bytes());
            }
        }
        let start = out.len() - OFFSET;
        let sum = pseudo_sum(addresses_sum(&out[OFFSET..], self.ends.from.is_ipv6()), true, length as u64);
        out.extend_from_slice(&TcpHeader { checksum: sum, ..header }.to_bytes());
        out.extend_from_slice(payload);
        let virtio = VirtioNetHdr {
            flags: NEEDS_SUM,
            csum_start: start as u16,
            csum_offset: TCP_SUM as u16,
            ..VirtioNetHdr::default()
        };
        // There is room for it: see above.
        let _ = virtio.encode(out);
    }

    fn header(&self) -> TcpHeader {
        let mut header = TcpHeader::new(self.ends.from.port(), self.ends.to.port(), self.seq, self.window);
        (header.syn, header.fin, header.rst, header.psh) = (self.syn, self.fin, self.rst, self.push);
        (header.ack, header.acknowledgment_number) = (self.ack.is_some(), self.ack.unwrap_or(0));
        let mut options = Vec::with_capacity(6);
        options.extend(self.mss.map(TcpOptionElement::MaximumSegmentSize));
        options.extend(self.sack_permitted.then_some(TcpOptionElement::SelectiveAcknowledgementPermitted));
        if let Some((own, echo)) = self.timestamps {
            // Aligned as in Linux (RFC 7323, appendix A); on a SYN it follows SACK-permitted.
            let aligns = !self.sack_permitted;
            options.extend(std::iter::repeat_n(TcpOptionElement::Noop, if aligns { 2 } else { 0 }));
            options.push(TcpOptionElement::Timestamp(own, echo));
        }
        if let Some(scale) = self.scale {
            options.extend([TcpOptionElement::Noop, TcpOptionElement::WindowScale(scale)]);
        }
        let most = if self.timestamps.is_some() { MOST_RANGES - 1 } else { MOST_RANGES };
        let mut ranges = self.sack.iter().take(most).copied();
        if let Some(first) = ranges.next() {
            options.extend([TcpOptionElement::Noop, TcpOptionElement::Noop]);
            let others = std::array::from_fn(|_| ranges.next());
            options.push(TcpOptionElement::SelectiveAcknowledgement(first, others));
        }
        // Together the options never exceed 40 bytes: a SYN has no ranges.
        let _ = header.set_options(&options);
        header
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::gso::fill_checksum;

    fn ends(v6: bool) -> Ends {
        let host = |number| match v6 {
            true => IpAddr::V6(crate::addresses::v6(number)),
            false => IpAddr::V4(crate::addresses::v4(number)),
        };
        Ends { from: SocketAddr::new(host(0), 443), to: SocketAddr::new(host(1), 50_000) }
    }

    #[test]
    fn a_segment_is_read_as_it_was_written_and_its_checksum_is_right() {
        for v6 in [false, true] {
            let plain = WireSegment { ack: Some(7), window: 500, ..WireSegment::new(ends(v6), 1 << 31) };
            let syn = WireSegment {
                syn: true,
                mss: Some(1460),
                scale: Some(10),
                sack_permitted: true,
                timestamps: Some((5, 0)),
                ..WireSegment::new(ends(v6), 9)
            };
            let acknowledgement = WireSegment {
                timestamps: Some((9, 8)),
                sack: vec![(1, 2), (5, 8), (10, 11)],
                ..plain.clone()
            };
            for segment in
                [plain.clone(), syn, acknowledgement, WireSegment { fin: true, push: true, ..plain }]
            {
                for payload in [&b""[..], b"odd", &[7; 1_400]] {
                    let mut out = Vec::new();
                    segment.write(3, payload, &mut out);
                    let (read, range) = WireSegment::read(&out[OFFSET..]).expect("it is a segment");
                    assert_eq!((&read, &out[OFFSET..][range]), (&segment, payload));
                    fill_checksum(&mut out);
                    let sliced = etherparse::SlicedPacket::from_ip(&out[OFFSET..]).expect("a packet");
                    let etherparse::TransportSlice::Tcp(tcp) = sliced.transport.expect("a segment") else {
                        panic!("it is TCP");
                    };
                    let expected = match sliced.net.expect("a packet of IP") {
                        etherparse::NetSlice::Ipv4(ip) => {
                            tcp.calc_checksum_ipv4(ip.header().source(), ip.header().destination())
                        }
                        etherparse::NetSlice::Ipv6(ip) => {
                            tcp.calc_checksum_ipv6(ip.header().source(), ip.header().destination())
                        }
                        other => panic!("{other:?} is not IP"),
                    };
                    assert_eq!(expected, Ok(tcp.checksum()));
                }
            }
        }
    }

    proptest! {
        /// Any input is a segment or not, and nothing breaks.
        #[test]
        fn any_bytes_can_be_read(
            mut bytes in prop::collection::vec(any::<u8>(), 0..120),
            version in prop::sample::select(vec![0x45_u8, 0x46, 0x4f, 0x60, 0x00]),
        ) {
            if let [first, .., ] = bytes.as_mut_slice() {
                *first = version;
            }
            if let Some(protocol) = bytes.get_mut(if version == 0x60 { 6 } else { 9 }) {
                *protocol = 6;
            }
            if let Some((_, payload)) = WireSegment::read(&bytes) {
                prop_assert!(payload.end == bytes.len() && payload.start <= payload.end);
            }
        }
    }
}
