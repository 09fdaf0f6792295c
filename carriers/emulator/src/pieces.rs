//! Cuts what a host's kernel sends in one piece (TSO, USO) into packets, as a network card would.
//!
//! A buffer holds a virtio header and behind it an IP packet (struct virtio_net_hdr, uapi/linux/virtio_net.h; for the meaning of
//! its fields the virtio specification 1.2, section 5.1.6). In packets that the kernel left the checksum of TCP or UDP to the
//! card, the checksum's field holds the sum over the pseudo-header, and the virtio header says where: so they are cut, carried and
//! handed over, and nobody adds up all bytes; the kernel that gets them believes what never left the machine.
//! [`fill_checksum`] does it for those who want to see the packet as on a wire.

use tun_rs::{
    VIRTIO_NET_HDR_GSO_TCPV4, VIRTIO_NET_HDR_GSO_TCPV6, VIRTIO_NET_HDR_GSO_UDP_L4, VIRTIO_NET_HDR_LEN,
    VirtioNetHdr,
};

/// Where a packet's bytes begin in its buffer: behind the virtio header.
pub const OFFSET: usize = VIRTIO_NET_HDR_LEN;

/// VIRTIO_NET_HDR_F_NEEDS_CSUM.
pub const NEEDS_SUM: u8 = 1;
/// VIRTIO_NET_HDR_GSO_NONE.
const NO_GSO: u8 = 0;
/// VIRTIO_NET_HDR_GSO_ECN, beside the kind: a piece with CWR.
const WITH_CWR: u8 = 0x80;

/// Where TCP and UDP have their checksums (RFC 9293 section 3.1, RFC 768).
pub const TCP_SUM: usize = 16;
/// See [`TCP_SUM`].
pub const UDP_SUM: usize = 6;
const UDP_HEADER: usize = 8;
/// Flags of TCP, at this place of its header.
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

/// Cuts the buffer `whole` and shows each packet to `take`, in `piece`, with the virtio header with which it is handed over.
/// `take` may keep the buffer and leave another. What is no packet that a kernel sends is dropped like noise.
pub fn cut(whole: &mut [u8], piece: &mut Vec<u8>, mut take: impl FnMut(&mut Vec<u8>)) {
    let Some(header) = header(whole) else { return };
    if header.gso_type == NO_GSO {
        let partial = header.flags & NEEDS_SUM != 0;
        let plain = VirtioNetHdr { flags: 0, gso_type: NO_GSO, hdr_len: 0, gso_size: 0, ..header };
        let kept = if partial { VirtioNetHdr { flags: NEEDS_SUM, ..plain } } else { VirtioNetHdr::default() };
        if kept.encode(whole).is_ok() {
            piece.clear();
            piece.extend_from_slice(whole);
            take(piece);
        }
        return;
    }
    // Of each piece's length: nothing is read behind it.
    let _ = cut_large(header, &mut whole[OFFSET..], piece, take);
}

/// `None` if the headers are not those of a large packet.
fn cut_large(
    header: VirtioNetHdr,
    packet: &mut [u8],
    piece: &mut Vec<u8>,
    mut take: impl FnMut(&mut Vec<u8>),
) -> Option<()> {
    let v6 = packet.first()? >> 4 == 6;
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
    let (headers, payload) = packet.split_at_mut_checked(network + transport)?;
    if tcp && transport < 20 {
        return None;
    }
    let sum_at = if tcp { TCP_SUM } else { UDP_SUM };
    let own = VirtioNetHdr {
        flags: NEEDS_SUM,
        gso_type: NO_GSO,
        csum_start: header.csum_start,
        csum_offset: sum_at as u16,
        ..VirtioNetHdr::default()
    };
    let addresses = addresses_sum(headers, v6);
    let id = u16::from_be_bytes([headers[4], headers[5]]);
    let number = u32::from_be_bytes([
        headers[network + 4],
        headers[network + 5],
        headers[network + 6],
        headers[network + 7],
    ]);
    let flags = headers[network + TCP_FLAGS.min(transport - 1)];
    let size = usize::from(header.gso_size);
    let count = payload.len().div_ceil(size);
    for (index, part) in payload.chunks(size).enumerate() {
        let length = (transport + part.len()) as u16;
        if v6 {
            headers[4..6].copy_from_slice(&(length + (network - 40) as u16).to_be_bytes());
        } else {
            headers[2..4].copy_from_slice(&(length + network as u16).to_be_bytes());
            headers[4..6].copy_from_slice(&id.wrapping_add(index as u16).to_be_bytes());
            sum_ipv4(&mut headers[..network]);
        }
        let head = &mut headers[network..];
        if tcp {
            head[4..8].copy_from_slice(&number.wrapping_add((index * size) as u32).to_be_bytes());
            // As Linux cuts (tcp_gso_segment): CWR is of the first, FIN and PSH are of the last.
            let mut own_flags = flags;
            if index > 0 {
                own_flags &= !CWR;
            }
            if index + 1 < count {
                own_flags &= !(FIN | PSH);
            }
            head[TCP_FLAGS] = own_flags;
        } else {
            head[4..6].copy_from_slice(&length.to_be_bytes());
        }
        let sum = pseudo_sum(addresses, tcp, length.into());
        head[sum_at..sum_at + 2].copy_from_slice(&sum.to_be_bytes());
        piece.clear();
        piece.resize(OFFSET, 0);
        own.encode(piece).ok()?;
        piece.extend_from_slice(headers);
        piece.extend_from_slice(part);
        take(piece);
    }
    Some(())
}

/// Sum of the addresses in an IP header that is long enough (20 or 40 bytes).
pub fn addresses_sum(packet: &[u8], v6: bool) -> u64 {
    add(if v6 { &packet[8..40] } else { &packet[12..20] })
}

/// The sum over the pseudo-header (RFC 9293 section 3.1, RFC 8200 section 8.1), as it stands in the checksum's field of a packet
/// whose checksum is left to the card: `length` is that of the TCP or UDP header and what is behind it.
pub fn pseudo_sum(addresses: u64, tcp: bool, length: u64) -> u16 {
    fold(addresses + if tcp { 6 } else { 17 } + length)
}

/// Puts the checksum into an IPv4 header (RFC 791 section 3.1).
pub fn sum_ipv4(header: &mut [u8]) {
    header[10..12].fill(0);
    let sum = !fold(add(header));
    header[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// Adds up what the kernel left to the card: afterwards the packet is as on a wire.
pub fn fill_checksum(buffer: &mut [u8]) {
    let Some(header) = header(buffer).filter(|header| header.flags & NEEDS_SUM != 0) else { return };
    let start = OFFSET + usize::from(header.csum_start);
    let offset = usize::from(header.csum_offset);
    let Some(rest) = buffer.get_mut(start..).filter(|rest| rest.len() >= offset + 2) else { return };
    // What stands in the field is the pseudo-header's part.
    let sum = match !fold(add(rest)) {
        // In UDP, none is "no checksum" (RFC 768).
        0 if offset == UDP_SUM => u16::MAX,
        sum => sum,
    };
    rest[offset..offset + 2].copy_from_slice(&sum.to_be_bytes());
    let _ = VirtioNetHdr::default().encode(buffer);
}

/// One's complement sum, not folded (RFC 1071): of the bytes in pairs, the last one with a zero.
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

#[cfg(test)]
mod tests {
    use etherparse::{PacketBuilder, SlicedPacket, TransportSlice};
    use proptest::prelude::*;

    use super::*;

    /// A large packet as the kernel gives it, and its payload.
    fn large(v6: bool, tcp: bool, payload: usize, segment: u16) -> (Vec<u8>, Vec<u8>) {
        let payload: Vec<u8> = (0..payload).map(|at| (at * 7 % 251) as u8).collect();
        let ip = if v6 {
            PacketBuilder::ipv6(crate::addresses::v6(0).octets(), crate::addresses::v6(1).octets(), 64)
        } else {
            PacketBuilder::ipv4([10, 77, 0, 1], [10, 77, 0, 2], 64)
        };
        let mut buffer = vec![0; OFFSET];
        if tcp {
            // CWR, PSH and FIN: each piece has what belongs to it.
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

    fn pieces(mut buffer: Vec<u8>) -> Vec<Vec<u8>> {
        let mut pieces = Vec::new();
        cut(&mut buffer, &mut Vec::new(), |piece| pieces.push(piece.clone()));
        pieces
    }

    #[test]
    fn a_large_packet_is_cut_as_a_card_cuts_it() {
        for (v6, tcp) in [(false, true), (true, true), (false, false), (true, false)] {
            let (buffer, payload) = large(v6, tcp, 3_500, 1_000);
            let mut found = Vec::new();
            let all = pieces(buffer);
            for (index, mut piece) in all.iter().cloned().enumerate() {
                let case = format!("piece {index}, v6 {v6}, tcp {tcp}");
                assert_eq!(header(&piece).unwrap().flags, NEEDS_SUM, "{case}");
                fill_checksum(&mut piece);
                assert_eq!(header(&piece).unwrap().flags, 0, "{case}");
                let sliced = SlicedPacket::from_ip(&piece[OFFSET..]).unwrap();
                let net = sliced.net.unwrap();
                if let Some(ip) = net.ipv4_ref() {
                    let ip = ip.header().to_header();
                    assert_eq!(ip.header_checksum, ip.calc_header_checksum(), "{case}");
                    assert_eq!(usize::from(ip.total_len), piece.len() - OFFSET, "{case}");
                    assert_eq!(usize::from(ip.identification), index, "{case}");
                }
                let addresses = |header: &[u8]| addresses_sum(header, v6);
                let transport = &piece[OFFSET + if v6 { 40 } else { 20 }..];
                // Over all of it, the checksum included, the sum is all ones (RFC 1071).
                let whole = addresses(&piece[OFFSET..])
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
        assert_eq!(pieces(buffer.clone()), [buffer.clone()]);
        // What cards say beside, of no use to who gets it: DATA_VALID, and the length of the headers.
        let mut with_more = buffer.clone();
        VirtioNetHdr { flags: 2, hdr_len: 28, ..Default::default() }.encode(&mut with_more).unwrap();
        assert_eq!(pieces(with_more), [buffer]);
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
            // The pseudo-header's part is all there is.
            buffer[OFFSET + 20 + offset..][..2].fill(0xff);
            fill_checksum(&mut buffer);
            assert_eq!(buffer[OFFSET + 20 + offset..][..2], expected);
        }
    }

    proptest! {
        /// Whatever a device says, nothing is read behind its end.
        #[test]
        fn noise_is_cut_or_dropped(mut bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0..6_u8) {
            if bytes.len() > OFFSET {
                (bytes[0], bytes[1]) = (NEEDS_SUM, kind);
                (bytes[3], bytes[5], bytes[7]) = (0, 0, 0);
                bytes[OFFSET] = if kind == 4 { 0x60 } else { 0x45 };
            }
            let length = bytes.len();
            cut(&mut bytes, &mut Vec::new(), |piece| {
                assert!(piece.len() <= length);
                fill_checksum(piece);
            });
        }
    }
}
