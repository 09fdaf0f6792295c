//! Buffers of GSO packets from kernels that are still in the network. Packets are segmented from them on delivery.
//!
//! Only the kernel copies payload: it writes it here, and reads it from here. In the network a packet is represented by the number
//! of its GSO packet and its place in there. A GSO packet stays until its last packet has left. The buffer learns that a packet was
//! lost only when another one takes its place in the network, so a packet that waits while the others of its GSO packet were dropped
//! keeps up to 64 KB.

use std::io::IoSlice;
use std::ops::Range;

use ranpace_units::Ecn;

use crate::gso::{GsoLayout, OFFSET};
use crate::headers::{ecn_of, set_ecn};

/// Largest GSO packet, its virtio header included.
const MOST: usize = OFFSET + u16::MAX as usize;
/// Buffer sizes: for a packet, a small GSO packet, and any. A GSO packet of the largest class keeps the buffer into which it was
/// read, the others are copied, so that a small packet that waits for long does not hold a large buffer. Ours.
const SIZES: [usize; 3] = [2 << 10, 16 << 10, MOST];
/// More than the headers of IPv6 without extensions and TCP with all its options.
const HEADERS: usize = 128;

/// A packet within a GSO packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    gso_packet: u32,
    index: u32,
}

impl Part {
    /// Stands for no packet.
    pub const NONE: Self = Self { gso_packet: u32::MAX, index: 0 };

    /// The next packet in its GSO packet, if there is one.
    #[inline]
    pub fn next(self) -> Self {
        Self { index: self.index + 1, ..self }
    }

    /// Returns the GSO packet that it belongs to.
    #[inline]
    pub fn gso_packet(self) -> u32 {
        self.gso_packet
    }
}

impl Default for Part {
    fn default() -> Self {
        Self::NONE
    }
}

/// A GSO packet of a kernel.
#[derive(Debug)]
struct GsoPacket {
    buffer: Vec<u8>,
    length: usize,
    cuts: GsoLayout,
    /// Packets that are still in the network.
    left: u32,
}

impl GsoPacket {
    #[inline]
    fn bytes(&self) -> &[u8] {
        &self.buffer[..self.length]
    }
}

/// The class of [`SIZES`] for a GSO packet of this length.
#[inline]
fn class(length: usize) -> usize {
    SIZES.iter().position(|size| length <= *size).unwrap_or(SIZES.len() - 1)
}

/// GSO packets with packets in the network.
#[derive(Debug)]
pub struct PacketBuffer {
    gso_packets: Vec<GsoPacket>,
    /// Unused entries, by the sizes of their buffers.
    free: [Vec<u32>; SIZES.len()],
    /// Buffer of the next read.
    buffer: Vec<u8>,
    head: Vec<u8>,
}

impl Default for PacketBuffer {
    fn default() -> Self {
        Self { gso_packets: Vec::new(), free: Default::default(), buffer: vec![0; MOST], head: Vec::new() }
    }
}

impl PacketBuffer {
    /// Returns the place for the next GSO packet, its virtio header first.
    pub fn buffer(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    /// Accepts what was read, of this length, and returns its packets in order; none if a kernel would not send it.
    pub fn take_in(&mut self, length: usize) -> impl Iterator<Item = Part> + Clone + use<> {
        let (gso_packet, count) = self.keep(length).unwrap_or((Part::NONE.gso_packet, 0));
        (0..count).map(move |index| Part { gso_packet, index })
    }

    /// Stores it; returns its entry and number of packets.
    fn keep(&mut self, length: usize) -> Option<(u32, u32)> {
        let read = self.buffer.get_mut(..length)?;
        let cuts = GsoLayout::of(read)?;
        let left = u32::try_from(cuts.count()).ok().filter(|count| *count > 0)?;
        let class = class(length);
        let place = self.free[class].pop().unwrap_or_else(|| {
            self.gso_packets.push(GsoPacket { buffer: Vec::with_capacity(SIZES[class]), length, cuts, left });
            self.gso_packets.len() as u32 - 1
        });
        let gso_packet = self.gso_packets.get_mut(place as usize)?;
        (gso_packet.length, gso_packet.cuts, gso_packet.left) = (length, cuts, left);
        if class == SIZES.len() - 1 {
            std::mem::swap(&mut gso_packet.buffer, &mut self.buffer);
            self.buffer.resize(MOST, 0);
        } else {
            gso_packet.buffer.clear();
            gso_packet.buffer.extend_from_slice(read);
        }
        Some((place, left))
    }

    /// The GSO packet of a packet, from the IP header on.
    pub fn whole(&self, part: Part) -> &[u8] {
        self.gso_packets.get(part.gso_packet as usize).map_or(&[], |gso_packet| &gso_packet.bytes()[OFFSET..])
    }

    /// Length of a packet, from the IP header on.
    #[inline]
    pub fn length(&self, part: Part) -> usize {
        let headers =
            self.gso_packets.get(part.gso_packet as usize).map_or(0, |gso_packet| gso_packet.cuts.headers());
        headers + self.payload(part).len()
    }

    /// Range of a packet's payload in its GSO packet; for an unsegmented packet, all of it from the IP header on.
    #[inline]
    pub fn payload(&self, part: Part) -> Range<usize> {
        let gso_packet = self.gso_packets.get(part.gso_packet as usize);
        gso_packet.map_or(0..0, |gso_packet| gso_packet.cuts.payload(part.index as usize, gso_packet.length))
    }

    /// Returns these bytes of a packet's GSO packet.
    #[inline]
    pub fn bytes(&self, gso_packet: u32, range: Range<usize>) -> &[u8] {
        self.gso_packets
            .get(gso_packet as usize)
            .and_then(|gso_packet| gso_packet.bytes().get(range))
            .unwrap_or_default()
    }

    /// FIN and PSH of a TCP packet whose GSO packet is segmented.
    #[inline]
    pub fn flags(&self, part: Part) -> u8 {
        self.gso_packets
            .get(part.gso_packet as usize)
            .map_or(0, |gso_packet| gso_packet.cuts.end_flags(part.index as usize))
    }

    /// The ECN code point with which a packet was taken in.
    #[cfg(test)]
    pub fn ecn(&self, part: Part) -> Ecn {
        let gso_packet = self.gso_packets.get(part.gso_packet as usize);
        gso_packet
            .map_or(Ecn::NotEct, |gso_packet| ecn_of(gso_packet.bytes().get(OFFSET..).unwrap_or_default()))
    }

    /// Writes the virtio header and the headers of a packet; for an unsegmented packet also the rest of its first bytes.
    pub fn write_head(&self, part: Part, ecn: Ecn, head: &mut Vec<u8>) {
        head.clear();
        let Some(gso_packet) = self.gso_packets.get(part.gso_packet as usize) else { return };
        gso_packet.cuts.write_head(part.index as usize, gso_packet.bytes(), head);
        if gso_packet.cuts.is_plain() {
            let behind = OFFSET..gso_packet.length.min(OFFSET + HEADERS);
            head.extend_from_slice(&gso_packet.bytes()[behind]);
        }
        let packet = head.get_mut(OFFSET..).unwrap_or_default();
        if ecn_of(packet) != ecn {
            set_ecn(packet, ecn);
        }
    }

    /// Shows a packet as it is delivered, the virtio header first, in one or two parts.
    pub fn show(&mut self, part: Part, ecn: Ecn, see: impl FnOnce(&[IoSlice<'_>])) {
        let mut head = std::mem::take(&mut self.head);
        self.write_head(part, ecn, &mut head);
        if let Some(gso_packet) = self.gso_packets.get(part.gso_packet as usize) {
            let payload = gso_packet.cuts.payload(part.index as usize, gso_packet.length);
            let behind = if gso_packet.cuts.is_plain() { head.len()..gso_packet.length } else { payload };
            let rest = gso_packet.bytes().get(behind).unwrap_or_default();
            let bytes = [IoSlice::new(&head), IoSlice::new(rest)];
            see(if rest.is_empty() { &bytes[..1] } else { &bytes });
        }
        self.head = head;
    }

    /// This many packets of a GSO packet have left.
    #[inline]
    pub fn release(&mut self, gso_packet: u32, packets: u32) {
        let Some(packet_buffer) =
            self.gso_packets.get_mut(gso_packet as usize).filter(|packet_buffer| packet_buffer.left > 0)
        else {
            return;
        };
        packet_buffer.left = packet_buffer.left.saturating_sub(packets);
        if packet_buffer.left == 0 {
            self.free[class(packet_buffer.length)].push(gso_packet);
        }
    }
}

#[cfg(test)]
impl PacketBuffer {
    /// GSO packets still stored.
    pub fn gso_packets_left(&self) -> usize {
        self.gso_packets.len() - self.free.iter().map(Vec::len).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use etherparse::{PacketBuilder, SlicedPacket};
    use proptest::prelude::*;
    use tun_rs::{VIRTIO_NET_HDR_GSO_TCPV4, VirtioNetHdr};

    use super::*;
    use crate::gso::{NEEDS_SUM, TCP_SUM, cut};

    /// Makes what a kernel sends of a connection: this many bytes from this one on, in a GSO packet or as a single packet.
    fn sent(number: u32, payload: usize, segment: u16) -> Vec<u8> {
        let payload: Vec<u8> = (0..payload).map(|at| (number as usize + at) as u8).collect();
        let mut buffer = vec![0; OFFSET];
        let ip = PacketBuilder::ipv4([10, 77, 0, 1], [10, 77, 0, 2], 64);
        ip.tcp(5000, 80, number, 500).ack(9).psh().write(&mut buffer, &payload).unwrap();
        let gso_type = if segment == 0 { 0 } else { VIRTIO_NET_HDR_GSO_TCPV4 };
        let sum = TCP_SUM as u16;
        VirtioNetHdr {
            flags: NEEDS_SUM,
            gso_type,
            gso_size: segment,
            csum_start: 20,
            csum_offset: sum,
            hdr_len: 40,
        }
        .encode(&mut buffer)
        .unwrap();
        buffer
    }

    fn take_in(packet_buffer: &mut PacketBuffer, bytes: &[u8]) -> Vec<Part> {
        packet_buffer.buffer()[..bytes.len()].copy_from_slice(bytes);
        packet_buffer.take_in(bytes.len()).collect()
    }

    fn shown(packet_buffer: &mut PacketBuffer, part: Part, ecn: Ecn) -> Vec<u8> {
        let mut seen = Vec::new();
        packet_buffer.show(part, ecn, |bytes| seen = bytes.iter().flat_map(|bytes| bytes.to_vec()).collect());
        seen
    }

    #[test]
    fn buffers_are_kept_until_their_last_packet_is_gone_and_then_reused() {
        let mut packet_buffer = PacketBuffer::default();
        // A packet, a small GSO packet and two large ones; then the same again.
        for round in 0..3_u32 {
            let all = [
                sent(round, 1_000, 0),
                sent(round, 9_000, 1_000),
                sent(round, 60_000, 1_448),
                sent(7, 20_000, 500),
            ];
            let parts: Vec<Vec<Part>> = all.iter().map(|bytes| take_in(&mut packet_buffer, bytes)).collect();
            assert_eq!(parts.iter().map(Vec::len).collect::<Vec<_>>(), [1, 9, 42, 40]);
            for (bytes, parts) in all.iter().zip(&parts) {
                let expected = cut(&mut bytes.clone());
                for (part, expected) in parts.iter().zip(expected) {
                    assert_eq!(packet_buffer.length(*part), expected.len() - OFFSET);
                    assert_eq!(shown(&mut packet_buffer, *part, Ecn::NotEct), expected);
                }
                let (last, others) = parts.split_last().unwrap();
                let before = packet_buffer.gso_packets_left();
                others.iter().for_each(|part| packet_buffer.release(part.gso_packet(), 1));
                assert_eq!(packet_buffer.gso_packets_left(), before);
                packet_buffer.release(last.gso_packet(), 1);
                assert_eq!(packet_buffer.gso_packets_left(), before - 1);
                packet_buffer.release(last.gso_packet(), 1);
                packet_buffer.release(Part::NONE.gso_packet(), 1);
                assert_eq!(packet_buffer.gso_packets_left(), before - 1, "it is gone once");
            }
            assert_eq!(packet_buffer.gso_packets.len(), 4, "their places are used again");
        }
        assert!(shown(&mut packet_buffer, Part::NONE, Ecn::NotEct).is_empty());
    }

    #[test]
    fn a_mark_is_that_of_one_packet() {
        let mut packet_buffer = PacketBuffer::default();
        for bytes in [sent(1, 3_000, 1_000), sent(1, 700, 0)] {
            let parts = take_in(&mut packet_buffer, &bytes);
            for (place, part) in parts.iter().enumerate() {
                let (plain, marked) = (
                    shown(&mut packet_buffer, *part, Ecn::NotEct),
                    shown(&mut packet_buffer, *part, Ecn::Ce),
                );
                let ip = |bytes: &[u8]| {
                    let sliced = SlicedPacket::from_ip(&bytes[OFFSET..]).unwrap();
                    sliced.net.unwrap().ipv4_ref().unwrap().header().to_header()
                };
                assert_eq!((ip(&plain).ecn.value(), ip(&marked).ecn.value()), (0, 3), "packet {place}");
                assert_eq!(ip(&marked).header_checksum, ip(&marked).calc_header_checksum());
                assert_eq!(plain[OFFSET + 20..], marked[OFFSET + 20..]);
            }
        }
    }

    proptest! {
        /// Whatever is read and whatever has left: each packet is what it was segmented to.
        #[test]
        fn packets_stay_what_they_were(steps in prop::collection::vec(
            (0..5_u8, 1..65_000_usize, 500..1449_u16, any::<prop::sample::Index>()), 1..60,
        )) {
            let mut packet_buffer = PacketBuffer::default();
            let mut under_way: Vec<(Part, Vec<u8>)> = Vec::new();
            for (number, (kind, payload, segment, which)) in steps.into_iter().enumerate() {
                let number = number as u32;
                match kind {
                    0 | 1 if !under_way.is_empty() => {
                        let (part, expected) = under_way.swap_remove(which.index(under_way.len()));
                        let ecn = packet_buffer.ecn(part);
                prop_assert_eq!(shown(&mut packet_buffer, part, ecn), expected);
                        packet_buffer.release(part.gso_packet(), 1);
                    }
                    2 => {
                        // A GSO packet of an unknown kind.
                        let noise = [9; 100];
                        prop_assert_eq!(take_in(&mut packet_buffer, &noise[..payload % 100]), []);
                    }
                    _ => {
                        let segment = if kind == 3 { 0 } else { segment };
                        let payload = if kind == 3 { payload % 1_449 } else { payload };
                        let bytes = sent(number, payload, segment);
                        let parts = take_in(&mut packet_buffer, &bytes);
                        let expected = cut(&mut bytes.clone());
                        prop_assert_eq!(parts.len(), expected.len());
                        under_way.extend(parts.into_iter().zip(expected));
                    }
                }
            }
            for (part, expected) in under_way {
                let ecn = packet_buffer.ecn(part);
                prop_assert_eq!(shown(&mut packet_buffer, part, ecn), expected);
                packet_buffer.release(part.gso_packet(), 1);
            }
            prop_assert_eq!(packet_buffer.gso_packets_left(), 0);
        }
    }
}
