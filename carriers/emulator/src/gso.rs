//! Segments what a host's kernel sends as one GSO packet (TSO, USO), as a network card would.
//!
//! A buffer holds a virtio header and behind it an IP packet (struct virtio_net_hdr, uapi/linux/virtio_net.h; the virtio
//! specification 1.2, section 5.1.6, says what its fields mean). Where the kernel left the checksum of TCP or UDP to the card, the
//! checksum's field holds the sum over the pseudo-header, and the virtio header says so. The emulator keeps it that way from
//! segmentation to delivery, so nobody sums up all bytes; the receiving kernel trusts packets that never left the machine.
//! [`fill_checksum`] computes the checksum for readers who want the packet as it would be on a wire.

use std::ops::Range;

use tun_rs::{
    VIRTIO_NET_HDR_GSO_TCPV4, VIRTIO_NET_HDR_GSO_TCPV6, VIRTIO_NET_HDR_GSO_UDP_L4, VIRTIO_NET_HDR_LEN,
    VirtioNetHdr,
};

/// Offset of a packet in its buffer: after the virtio header.
pub const OFFSET: usize = VIRTIO_NET_HDR_LEN;

/// VIRTIO_NET_HDR_F_NEEDS_CSUM.
pub const NEEDS_SUM: u8 = 1;
/// VIRTIO_NET_HDR_GSO_NONE.
const NO_GSO: u8 = 0;
/// VIRTIO_NET_HDR_GSO_ECN, combined with the kind: a GSO packet with CWR.
const WITH_CWR: u8 = 0x80;

/// Offsets of the checksums of TCP and UDP (RFC 9293 section 3.1, RFC 768).
pub const TCP_SUM: usize = 16;
/// See [`TCP_SUM`].
pub const UDP_SUM: usize = 6;
const UDP_HEADER: usize = 8;
/// Offset of the flags in TCP's header.
pub const TCP_FLAGS: usize = 13;
/// See [`TCP_FLAGS`] (RFC 9293 section 3.1).
pub const FIN: u8 = 0x01;
/// See [`FIN`].
pub const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

/// The virtio header of a buffer.
#[inline]
pub fn header(buffer: &[u8]) -> Option<VirtioNetHdr> {
    VirtioNetHdr::decode(buffer).ok()
}

/// How a GSO packet from a kernel is segmented. Its payload stays where it is; only headers are written for each packet.
#[derive(Clone, Copy, Debug)]
pub struct GsoLayout {
    v6: bool,
    tcp: bool,
    /// Length of the IP headers.
    network: usize,
    /// Length of the IP and transport headers.
    headers: usize,
    /// Payload of each packet but the last; 0 for an unsegmented packet.
    size: usize,
    count: usize,
    /// Sum of the addresses.
    addresses: u64,
    id: u16,
    number: u32,
    flags: u8,
}

impl GsoLayout {
    /// Analyses a buffer; `None` if a kernel would not send it, in which case it is dropped. The virtio header of an unsegmented
    /// packet becomes the one for delivery.
    pub fn of(buffer: &mut [u8]) -> Option<Self> {
        let header = header(buffer)?;
        let packet = buffer.get(OFFSET..)?;
        let v6 = packet.first()? >> 4 == 6;
        if header.gso_type == NO_GSO {
            let partial = header.flags & NEEDS_SUM != 0;
            let plain =
                VirtioNetHdr { flags: NEEDS_SUM, gso_type: NO_GSO, hdr_len: 0, gso_size: 0, ..header };
            let kept = if partial { plain } else { VirtioNetHdr::default() };
            kept.encode(buffer).ok()?;
            let (tcp, network, headers, size, count) = (false, 0, 0, 0, 1);
            return Some(Self {
                v6,
                tcp,
                network,
                headers,
                size,
                count,
                addresses: 0,
                id: 0,
                number: 0,
                flags: 0,
            });
        }
        let network = usize::from(header.csum_start);
        let tcp = match header.gso_type & !WITH_CWR {
            VIRTIO_NET_HDR_GSO_TCPV4 if !v6 => true,
            VIRTIO_NET_HDR_GSO_TCPV6 if v6 => true,
            VIRTIO_NET_HDR_GSO_UDP_L4 => false,
            _ => return None,
        };
        if network < if v6 { 40 } else { 20 } || header.gso_size == 0 {
            return None;
        }
        let transport = if tcp { usize::from(*packet.get(network + 12)? >> 4) * 4 } else { UDP_HEADER };
        if tcp && transport < 20 {
            return None;
        }
        let (head, payload) = packet.split_at_checked(network + transport)?;
        let size = usize::from(header.gso_size);
        Some(Self {
            v6,
            tcp,
            network,
            headers: network + transport,
            size,
            count: payload.len().div_ceil(size),
            addresses: addresses_sum(head, v6),
            id: u16::from_be_bytes([head[4], head[5]]),
            number: u32::from_be_bytes(*head.get(network + 4..)?.first_chunk()?),
            flags: head[network + TCP_FLAGS.min(transport - 1)],
        })
    }

    /// Number of packets.
    #[inline]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns whether it is one packet, delivered unchanged.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.size == 0
    }

    /// Length of the IP and transport headers of each packet; 0 if it [`Self::is_plain`].
    #[inline]
    pub fn headers(&self) -> usize {
        self.headers
    }

    /// Range of a packet's payload in a buffer of this length.
    #[inline]
    pub fn payload(&self, index: usize, length: usize) -> Range<usize> {
        let from = OFFSET + self.headers + index * self.size;
        from.min(length)..if self.is_plain() { length } else { (from + self.size).min(length) }
    }

    /// Writes what precedes the payload of a packet of this buffer, including the virtio header for delivery.
    pub fn write_head(&self, index: usize, buffer: &[u8], head: &mut Vec<u8>) {
        head.clear();
        head.extend_from_slice(&buffer[..OFFSET + self.headers]);
        if self.is_plain() {
            return;
        }
        let network = self.network;
        let length = (self.headers - network + self.payload(index, buffer.len()).len()) as u16;
        let sum_at = if self.tcp { TCP_SUM } else { UDP_SUM };
        let own = VirtioNetHdr {
            flags: NEEDS_SUM,
            gso_type: NO_GSO,
            csum_start: network as u16,
            csum_offset: sum_at as u16,
            ..VirtioNetHdr::default()
        };
        // It fits: it was read from there.
        let _ = own.encode(head);
        let (ip, transport) = head[OFFSET..].split_at_mut(network);
        if self.v6 {
            ip[4..6].copy_from_slice(&(length + (network - 40) as u16).to_be_bytes());
        } else {
            ip[2..4].copy_from_slice(&(length + network as u16).to_be_bytes());
            ip[4..6].copy_from_slice(&self.id.wrapping_add(index as u16).to_be_bytes());
            sum_ipv4(ip);
        }
        if self.tcp {
            let number = self.number.wrapping_add((index * self.size) as u32);
            transport[4..8].copy_from_slice(&number.to_be_bytes());
            // As in Linux (tcp_gso_segment): the first packet has CWR, the last one FIN and PSH.
            let not_first = if index > 0 { CWR } else { 0 };
            let not_last = if index + 1 < self.count { FIN | PSH } else { 0 };
            transport[TCP_FLAGS] = self.flags & !(not_first | not_last);
        } else {
            transport[4..6].copy_from_slice(&length.to_be_bytes());
        }
        let sum = pseudo_sum(self.addresses, self.tcp, length.into());
        transport[sum_at..sum_at + 2].copy_from_slice(&sum.to_be_bytes());
    }

    /// FIN and PSH of a TCP packet, which only the last one has.
    #[inline]
    pub fn end_flags(&self, index: usize) -> u8 {
        if self.tcp && index + 1 == self.count { self.flags & (FIN | PSH) } else { 0 }
    }
}

/// Sum of the addresses in an IP header of sufficient length (20 or 40 bytes).
pub fn addresses_sum(packet: &[u8], v6: bool) -> u64 {
    add(if v6 { &packet[8..40] } else { &packet[12..20] })
}

/// The sum over the pseudo-header (RFC 9293 section 3.1, RFC 8200 section 8.1), as in the checksum field of a packet whose checksum
/// is left to the card: `length` is that of the TCP or UDP header and its payload.
pub fn pseudo_sum(addresses: u64, tcp: bool, length: u64) -> u16 {
    fold(addresses + if tcp { 6 } else { 17 } + length)
}

/// Fills in the checksum of an IPv4 header (RFC 791 section 3.1).
pub fn sum_ipv4(header: &mut [u8]) {
    header[10..12].fill(0);
    let sum = !fold(add(header));
    header[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// Completes a checksum left to the card: afterwards the packet is as on a wire.
pub fn fill_checksum(buffer: &mut [u8]) {
    let Some(header) = header(buffer).filter(|header| header.flags & NEEDS_SUM != 0) else { return };
    let start = OFFSET + usize::from(header.csum_start);
    let offset = usize::from(header.csum_offset);
    let Some(rest) = buffer.get_mut(start..).filter(|rest| rest.len() >= offset + 2) else { return };
    // The field holds the sum over the pseudo-header.
    let sum = match !fold(add(rest)) {
        // In UDP, zero means "no checksum" (RFC 768).
        0 if offset == UDP_SUM => u16::MAX,
        sum => sum,
    };
    rest[offset..offset + 2].copy_from_slice(&sum.to_be_bytes());
    let _ = VirtioNetHdr::default().encode(buffer);
}

/// One's complement sum of byte pairs, not folded (RFC 1071); an odd last byte is padded with zero.
fn add(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    let pairs = rest.chunks(2).map(|pair| u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]).into());
    words.iter().map(|word| u64::from(u32::from_be_bytes(*word))).chain(pairs).sum()
}

fn fold(mut sum: u64) -> u16 {
    while sum > u64::from(u16::MAX) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// All packets of a buffer, segmented.
#[cfg(test)]
pub fn cut(buffer: &mut [u8]) -> Vec<Vec<u8>> {
    let Some(cuts) = GsoLayout::of(buffer) else { return Vec::new() };
    let packet = |index| {
        let mut packet = Vec::new();
        cuts.write_head(index, buffer, &mut packet);
        packet.extend_from_slice(&buffer[cuts.payload(index, buffer.len())]);
        packet
    };
    (0..cuts.count()).map(packet).collect()
}

#[cfg(test)]
mod tests {
    use etherparse::{PacketBuilder, SlicedPacket, TransportSlice};
    use proptest::prelude::*;

    use super::*;

    /// A GSO packet as the kernel sends it, and its payload.
    fn large(v6: bool, tcp: bool, payload: usize, segment: u16) -> (Vec<u8>, Vec<u8>) {
        let payload: Vec<u8> = (0..payload).map(|at| (at * 7 % 251) as u8).collect();
        let ip = if v6 {
            PacketBuilder::ipv6(crate::addresses::v6(0).octets(), crate::addresses::v6(1).octets(), 64)
        } else {
            PacketBuilder::ipv4([10, 77, 0, 1], [10, 77, 0, 2], 64)
        };
        let mut buffer = vec![0; OFFSET];
        if tcp {
            // CWR, PSH and FIN: each packet gets those that belong to it.
            let header = ip.tcp(5000, 80, u32::MAX - 1000, 500).ack(9).psh().fin().cwr();
            header.write(&mut buffer, &payload).unwrap();
        } else {
            ip.udp(5000, 80).write(&mut buffer, &payload).unwrap();
        }
        let kind = match (tcp, v6) {
            (true, false) => VIRTIO_NET_HDR_GSO_TCPV4 | WITH_CWR,
            (true, true) => VIRTIO_NET_HDR_GSO_TCPV6 | WITH_CWR,
            _ => VIRTIO_NET_HDR_GSO_UDP_L4,
        };
        let header = VirtioNetHdr {
            flags: NEEDS_SUM,
            gso_type: kind,
            hdr_len: 0,
            gso_size: segment,
            csum_start: if v6 { 40 } else { 20 },
            csum_offset: (if tcp { TCP_SUM } else { UDP_SUM }) as u16,
        };
        header.encode(&mut buffer).unwrap();
        (buffer, payload)
    }

    fn gso_packets(mut buffer: Vec<u8>) -> Vec<Vec<u8>> {
        cut(&mut buffer)
    }

    #[test]
    fn a_large_packet_is_cut_as_a_card_cuts_it() {
        for (v6, tcp) in [(false, true), (true, true), (false, false), (true, false)] {
            let (buffer, payload) = large(v6, tcp, 3_500, 1_000);
            let mut found = Vec::new();
            let all = gso_packets(buffer);
            for (index, mut gso_packet) in all.iter().cloned().enumerate() {
                let case = format!("piece {index}, v6 {v6}, tcp {tcp}");
                assert_eq!(header(&gso_packet).unwrap().flags, NEEDS_SUM, "{case}");
                fill_checksum(&mut gso_packet);
                assert_eq!(header(&gso_packet).unwrap().flags, 0, "{case}");
                let sliced = SlicedPacket::from_ip(&gso_packet[OFFSET..]).unwrap();
                let net = sliced.net.unwrap();
                if let Some(ip) = net.ipv4_ref() {
                    let ip = ip.header().to_header();
                    assert_eq!(ip.header_checksum, ip.calc_header_checksum(), "{case}");
                    assert_eq!(usize::from(ip.total_len), gso_packet.len() - OFFSET, "{case}");
                    assert_eq!(usize::from(ip.identification), index, "{case}");
                }
                let addresses = |header: &[u8]| addresses_sum(header, v6);
                let transport = &gso_packet[OFFSET + if v6 { 40 } else { 20 }..];
                // The sum over everything, the checksum included, is all ones (RFC 1071).
                let whole = addresses(&gso_packet[OFFSET..])
                    + if tcp { 6 } else { 17 }
                    + transport.len() as u64
                    + add(transport);
                assert_eq!(fold(whole), u16::MAX, "{case}");
                match sliced.transport.unwrap() {
                    TransportSlice::Tcp(header) => {
                        let expected = (u32::MAX - 1000).wrapping_add(index as u32 * 1000);
                        assert_eq!(header.sequence_number(), expected, "{case}");
                        let last = index == 3;
                        let flags = (header.cwr(), header.psh(), header.fin(), header.ack());
                        assert_eq!(flags, (index == 0, last, last, true), "{case}");
                        found.extend_from_slice(header.payload());
                    }
                    TransportSlice::Udp(header) => {
                        assert_eq!(usize::from(header.length()), transport.len(), "{case}");
                        found.extend_from_slice(header.payload());
                    }
                    other => panic!("{case}: {other:?}"),
                }
            }
            assert_eq!(all.len(), 4);
            assert_eq!(found, payload);
        }
    }

    #[test]
    fn a_packet_that_is_not_large_comes_as_it_is() {
        let mut buffer = vec![0; OFFSET];
        let ip = PacketBuilder::ipv4([10, 77, 0, 1], [10, 77, 0, 2], 64);
        ip.udp(1, 2).write(&mut buffer, b"content").unwrap();
        assert_eq!(gso_packets(buffer.clone()), [buffer.clone()]);
        // Further fields set by cards, unused by the receiver: DATA_VALID, and the length of the headers.
        let mut with_more = buffer.clone();
        VirtioNetHdr { flags: 2, hdr_len: 28, ..Default::default() }.encode(&mut with_more).unwrap();
        assert_eq!(gso_packets(with_more), [buffer]);
    }

    #[test]
    fn a_checksum_of_zero_is_written_as_ones_in_udp_alone() {
        for (offset, expected) in [(UDP_SUM, [0xff, 0xff]), (TCP_SUM, [0, 0])] {
            let mut buffer = vec![0; OFFSET + 20 + 20];
            let header = VirtioNetHdr {
                flags: NEEDS_SUM,
                csum_start: 20,
                csum_offset: offset as u16,
                ..Default::default()
            };
            header.encode(&mut buffer).unwrap();
            // The pseudo-header is the only contribution.
            buffer[OFFSET + 20 + offset..][..2].fill(0xff);
            fill_checksum(&mut buffer);
            assert_eq!(buffer[OFFSET + 20 + offset..][..2], expected);
        }
    }

    proptest! {
        /// Whatever a device claims, nothing is read beyond its buffer.
        #[test]
        fn noise_is_cut_or_dropped(mut bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0..6_u8) {
            if bytes.len() > OFFSET {
                (bytes[0], bytes[1]) = (NEEDS_SUM, kind);
                (bytes[3], bytes[5], bytes[7]) = (0, 0, 0);
                bytes[OFFSET] = if kind == 4 { 0x60 } else { 0x45 };
            }
            let length = bytes.len();
            for mut gso_packet in cut(&mut bytes) {
                assert!(gso_packet.len() <= length);
                fill_checksum(&mut gso_packet);
            }
        }
    }
}
