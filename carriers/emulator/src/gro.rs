//! Coalesces packets of one connection that are due together, and hands them over as one large GSO packet. The host's kernel either
//! segments it again before TCP receives it ([`crate::segmentation`]), or receives it as a whole, as behind a modem with generic
//! receive offload: it then does its work once for all of them, and its TCP sends one acknowledgement.
//!
//! The rules are Linux's (tcp_gro_receive, inet_gro_receive). Packets are coalesced if their headers differ only in fields that
//! count up, their sequence numbers follow each other, and all but the last have the same size; PSH, FIN and a shorter packet end a
//! GSO packet. A mark of Congestion Experienced, or a change of acknowledgement, window or options (timestamps included), begins a
//! new one, so segmentation restores exactly the original packets. Packets of a connection stay in order; packets of different
//! connections may change places within one call of [`Coalescer::flush`].

use std::io::IoSlice;
use std::ops::Range;

use ranpace_units::{Ecn, Time};
use tun_rs::{VIRTIO_NET_HDR_GSO_TCPV4, VIRTIO_NET_HDR_GSO_TCPV6, VirtioNetHdr};

use crate::gso::{
    FIN, NEEDS_SUM, OFFSET, PSH, TCP_FLAGS, TCP_SUM, addresses_sum, header, pseudo_sum, sum_ipv4,
};
use crate::packet_buffer::{PacketBuffer, Part};

/// Most GSO packets open at a time, that is, connections that are interleaved. As many as in a bucket of Linux (MAX_GRO_SKBS).
const MOST_OPEN: usize = 8;
/// Largest IP packet (RFC 791 section 3.1).
const LARGEST: usize = 65_535;
/// ECE and ACK: the flags, beside PSH and FIN, of packets that can be coalesced.
const ORDINARY: u8 = 0x50;

/// The properties of a packet that can be coalesced.
#[derive(Clone, Copy, Debug)]
struct Shape {
    v6: bool,
    /// Length of the IP header.
    network: usize,
    /// Length of both headers.
    headers: usize,
    payload: usize,
    number: u32,
    id: u16,
    /// Whether PSH or FIN make it the last one.
    last: bool,
}

impl Shape {
    /// Shape of a packet of this length with these first bytes, after its virtio header; `None` if it has to be delivered alone.
    fn of(head: &[u8], length: usize) -> Option<Self> {
        let virtio = header(head)?;
        let packet = &head[OFFSET..];
        let v6 = packet.first()? >> 4 == 6;
        let network = usize::from(virtio.csum_start);
        // IP has no options, so TCP begins here. A fragment's checksum is complete already.
        if virtio.flags != NEEDS_SUM
            || usize::from(virtio.csum_offset) != TCP_SUM
            || network != if v6 { 40 } else { 20 }
            || length > LARGEST
        {
            return None;
        }
        let said = packet.get(if v6 { 4.. } else { 2.. })?.first_chunk()?;
        if usize::from(u16::from_be_bytes(*said)) + if v6 { network } else { 0 } != length {
            return None;
        }
        let tcp = packet.get(network..)?;
        let headers = network + usize::from(*tcp.get(12)? >> 4) * 4;
        let flags = *tcp.get(TCP_FLAGS)?;
        let payload = length.checked_sub(headers).filter(|payload| *payload > 0)?;
        if headers < network + 20 || packet.len() < headers || flags & !(ORDINARY | PSH | FIN) != 0 {
            return None;
        }
        Some(Self {
            v6,
            network,
            headers,
            payload,
            number: u32::from_be_bytes(*tcp.get(4..)?.first_chunk()?),
            id: if v6 { 0 } else { u16::from_be_bytes([packet[4], packet[5]]) },
            last: flags & (PSH | FIN) != 0,
        })
    }
}

/// Contiguous payload in a GSO packet sent by a kernel, and its number of packets.
#[derive(Clone, Debug)]
struct Run {
    gso_packet: u32,
    range: Range<usize>,
    packets: u32,
}

/// Packets that are delivered together.
#[derive(Clone, Copy, Debug)]
pub struct PacketBatch {
    /// Place of the host.
    pub device: usize,
    /// When its first packet was due.
    pub due: Time,
    /// Number of packets.
    pub packets: usize,
}

/// A GSO packet that can still be extended.
#[derive(Debug)]
struct GroPacket {
    device: usize,
    /// When its first packet was due.
    due: Time,
    ecn: Ecn,
    /// Headers of its first packet.
    head: Vec<u8>,
    /// The payload after them.
    runs: Vec<Run>,
    /// Shape of its first packet.
    first: Shape,
    /// Length from the IP header on.
    length: usize,
    count: usize,
    /// The part that follows its last packet at the origin.
    next: Part,
    /// It cannot be extended.
    full: bool,
}

impl GroPacket {
    /// Returns whether a packet goes between the same two hosts.
    fn has_hosts(&self, device: usize, packet: &[u8]) -> bool {
        let addresses = if self.first.v6 { 8..40 } else { 12..20 };
        self.device == device && self.head[OFFSET..].get(addresses.clone()) == packet.get(addresses)
    }

    /// Returns whether this packet of the same connection continues it.
    fn takes(&self, shape: &Shape, packet: &[u8], least: usize) -> bool {
        let own = &self.head[OFFSET..];
        let first = &self.first;
        let (n, sum) = (first.network, first.network + TCP_SUM);
        let same = |from: usize, to: usize| own.get(from..to) == packet.get(from..to);
        // Lengths, identification and checksums are not compared, nor the sequence numbers and the flags that end a GSO packet.
        let network = if first.v6 {
            same(0, 4) && same(6, 8)
        } else {
            same(0, 2) && same(6, 10) && shape.id == first.id.wrapping_add(self.count as u16)
        };
        let flags = (own[n + TCP_FLAGS] ^ packet[n + TCP_FLAGS]) & !(PSH | FIN) == 0;
        network
            && flags
            && first.headers == shape.headers
            && same(n + 8, n + 13)
            && same(n + 14, sum)
            && same(sum + 2, first.headers)
            && shape.number == first.number.wrapping_add((self.length - first.headers) as u32)
            && self.has_room(shape.payload, least)
    }

    /// Returns whether a packet with this payload can follow, and the GSO packet is then at least `least` long.
    fn has_room(&self, payload: usize, least: usize) -> bool {
        let length = self.length + payload;
        !self.full && payload <= self.first.payload && (least..=LARGEST).contains(&length)
    }

    /// Appends a packet with payload in this range and these flags.
    fn join(&mut self, part: Part, payload: Range<usize>, flags: u8) {
        let length = payload.len();
        self.head[OFFSET + self.first.network + TCP_FLAGS] |= flags & (PSH | FIN);
        match self
            .runs
            .last_mut()
            .filter(|run| run.gso_packet == part.gso_packet() && run.range.end == payload.start)
        {
            Some(run) => (run.range.end, run.packets) = (payload.end, run.packets + 1),
            None => self.runs.push(Run { gso_packet: part.gso_packet(), range: payload, packets: 1 }),
        }
        (self.count, self.length, self.next) = (self.count + 1, self.length + length, part.next());
        self.full = flags & (PSH | FIN) != 0 || length < self.first.payload;
    }

    /// Turns the headers into those of one large packet, for the kernel.
    fn close(&mut self) {
        if self.count < 2 {
            return;
        }
        let Shape { v6, network, headers, payload, .. } = self.first;
        let virtio = VirtioNetHdr {
            flags: NEEDS_SUM,
            gso_type: if v6 { VIRTIO_NET_HDR_GSO_TCPV6 } else { VIRTIO_NET_HDR_GSO_TCPV4 },
            hdr_len: headers as u16,
            gso_size: payload as u16,
            csum_start: network as u16,
            csum_offset: TCP_SUM as u16,
        };
        // It fits: it was read from there.
        let _ = virtio.encode(&mut self.head);
        let packet = &mut self.head[OFFSET..];
        let length = self.length;
        if v6 {
            packet[4..6].copy_from_slice(&((length - network) as u16).to_be_bytes());
        } else {
            packet[2..4].copy_from_slice(&(length as u16).to_be_bytes());
            sum_ipv4(&mut packet[..network]);
        }
        let sum = pseudo_sum(addresses_sum(packet, v6), true, (length - network) as u64);
        packet[network + TCP_SUM..network + TCP_SUM + 2].copy_from_slice(&sum.to_be_bytes());
    }
}

/// Coalesces packets.
#[derive(Debug, Default)]
pub struct Coalescer {
    /// Smallest length of a GSO packet with several packets.
    least: usize,
    open: Vec<GroPacket>,
    head: Vec<u8>,
    spare: Vec<(Vec<u8>, Vec<Run>)>,
}

impl Coalescer {
    /// Coalesces packets into GSO packets of at least this length.
    pub fn from_length(least: usize) -> Self {
        Self { least, ..Self::default() }
    }

    /// Adds a packet for a device, due at `due`, with its ECN code point as it leaves. `write` receives what is
    /// delivered now; the rest waits for [`Self::flush`].
    pub fn add(
        &mut self,
        (device, due): (usize, Time),
        part: Part,
        ecn: Ecn,
        packet_buffer: &mut PacketBuffer,
        write: &mut impl Write,
    ) {
        let payload = packet_buffer.payload(part);
        let least = self.least;
        let follows = |gso_packet: &&mut GroPacket| {
            gso_packet.next == part
                && gso_packet.device == device
                && gso_packet.ecn == ecn
                && gso_packet.has_room(payload.len(), least)
        };
        // The usual case: packets come in the order in which they were sent, and nothing needs to be compared.
        if let Some(gso_packet) = self.open.iter_mut().find(follows) {
            gso_packet.join(part, payload, packet_buffer.flags(part));
            return;
        }
        packet_buffer.write_head(part, ecn, &mut self.head);
        let packet = self.head.get(OFFSET..).unwrap_or_default();
        let length = packet_buffer.length(part);
        let Some(shape) = Shape::of(&self.head, length) else {
            while let Some(place) =
                self.open.iter().position(|gso_packet| gso_packet.has_hosts(device, packet))
            {
                Self::write(self.open.remove(place), &mut self.spare, packet_buffer, write);
            }
            packet_buffer.show(part, ecn, |bytes| write(PacketBatch { device, due, packets: 1 }, bytes));
            packet_buffer.release(part.gso_packet(), 1);
            return;
        };
        let payload = payload.end - shape.payload..payload.end;
        let flags = packet[shape.network + TCP_FLAGS];
        let ports = shape.network..shape.network + 4;
        let same = |gso_packet: &GroPacket| {
            gso_packet.first.network == shape.network
                && gso_packet.has_hosts(device, packet)
                && gso_packet.head[OFFSET..].get(ports.clone()) == packet.get(ports.clone())
        };
        if let Some(place) = self.open.iter().position(same) {
            if self.open[place].takes(&shape, packet, least) {
                self.open[place].join(part, payload, flags);
                return;
            }
            Self::write(self.open.remove(place), &mut self.spare, packet_buffer, write);
        } else if self.open.len() == MOST_OPEN {
            Self::write(self.open.remove(0), &mut self.spare, packet_buffer, write);
        }
        let (mut head, mut runs) = self.spare.pop().unwrap_or_default();
        head.clear();
        head.extend_from_slice(&self.head[..OFFSET + shape.headers]);
        runs.clear();
        runs.push(Run { gso_packet: part.gso_packet(), range: payload, packets: 1 });
        let (next, full) = (part.next(), shape.last);
        self.open.push(GroPacket {
            device,
            due,
            ecn,
            head,
            runs,
            first: shape,
            length,
            count: 1,
            next,
            full,
        });
    }

    /// Delivers everything that waits.
    pub fn flush(&mut self, packet_buffer: &mut PacketBuffer, write: &mut impl Write) {
        for gso_packet in self.open.drain(..) {
            Self::write(gso_packet, &mut self.spare, packet_buffer, write);
        }
    }

    fn write(
        mut gso_packet: GroPacket,
        spare: &mut Vec<(Vec<u8>, Vec<Run>)>,
        packet_buffer: &mut PacketBuffer,
        write: &mut impl Write,
    ) {
        gso_packet.close();
        let head = [IoSlice::new(&gso_packet.head)].into_iter();
        let payload = gso_packet
            .runs
            .iter()
            .map(|run| IoSlice::new(packet_buffer.bytes(run.gso_packet, run.range.clone())));
        let bytes: Vec<IoSlice<'_>> = head.chain(payload).collect();
        write(
            PacketBatch { device: gso_packet.device, due: gso_packet.due, packets: gso_packet.count },
            &bytes,
        );
        gso_packet.runs.iter().for_each(|run| packet_buffer.release(run.gso_packet, run.packets));
        spare.push((gso_packet.head, gso_packet.runs));
    }
}

/// Writes bytes to a device, in parts.
pub trait Write: FnMut(PacketBatch, &[IoSlice<'_>]) {}
impl<T: FnMut(PacketBatch, &[IoSlice<'_>])> Write for T {}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;
    use proptest::prelude::*;
    use ranpace_units::Span;

    use super::*;
    use crate::gso::{cut, fill_checksum};

    /// A packet as the kernel delivers it: with its checksum left to the card.
    struct Sample {
        v6: bool,
        port: u16,
        number: u32,
        id: u16,
        payload: usize,
        psh: bool,
        window: u16,
        class: u8,
        option: u32,
    }

    const USUAL: Sample = Sample {
        v6: false,
        port: 5000,
        number: 1000,
        id: 7,
        payload: 1000,
        psh: false,
        window: 500,
        class: 2,
        option: 1,
    };

    impl Sample {
        fn buffer(&self) -> Vec<u8> {
            let ip = if self.v6 {
                let mut header =
                    etherparse::Ipv6Header { traffic_class: self.class, hop_limit: 64, ..Default::default() };
                header.source = crate::addresses::v6(0).octets();
                header.destination = crate::addresses::v6(1).octets();
                PacketBuilder::ip(etherparse::IpHeaders::Ipv6(header, Default::default()))
            } else {
                let mut header = etherparse::Ipv4Header {
                    time_to_live: 64,
                    identification: self.id,
                    ..Default::default()
                };
                (header.source, header.destination) = ([10, 77, 0, 1], [10, 77, 0, 2]);
                header.ecn = etherparse::IpEcn::try_new(self.class).unwrap();
                PacketBuilder::ip(etherparse::IpHeaders::Ipv4(header, Default::default()))
            };
            let mut tcp = ip.tcp(self.port, 80, self.number, self.window).ack(99);
            if self.psh {
                tcp = tcp.psh();
            }
            let stamp = etherparse::TcpOptionElement::Timestamp(self.option, 4);
            let tcp = tcp.options(&[stamp]).unwrap();
            let payload: Vec<u8> = (0..self.payload).map(|at| (self.number as usize + at) as u8).collect();
            let mut buffer = vec![0; OFFSET];
            tcp.write(&mut buffer, &payload).unwrap();
            let network = if self.v6 { 40 } else { 20 };
            let virtio = VirtioNetHdr {
                flags: NEEDS_SUM,
                csum_start: network as u16,
                csum_offset: TCP_SUM as u16,
                ..Default::default()
            };
            virtio.encode(&mut buffer).unwrap();
            let packet = &mut buffer[OFFSET..];
            let sum = pseudo_sum(addresses_sum(packet, self.v6), true, (packet.len() - network) as u64);
            packet[network + TCP_SUM..][..2].copy_from_slice(&sum.to_be_bytes());
            buffer
        }
    }

    /// Takes in a buffer as if a kernel had sent it.
    fn take_in(packet_buffer: &mut PacketBuffer, buffer: &[u8]) -> Vec<Part> {
        packet_buffer.buffer()[..buffer.len()].copy_from_slice(buffer);
        packet_buffer.take_in(buffer.len()).collect()
    }

    /// Returns the packets that are written, by device, when these arrive together.
    fn joined(packets: &[(usize, Vec<u8>)]) -> Vec<(usize, Vec<u8>)> {
        let mut packet_buffer = PacketBuffer::default();
        let take_in = |(device, buffer): &(usize, Vec<u8>)| {
            take_in(&mut packet_buffer, buffer).into_iter().map(|part| (*device, part)).collect::<Vec<_>>()
        };
        let parts: Vec<_> = packets.iter().flat_map(take_in).collect();
        let written = write_joined(&mut packet_buffer, &parts);
        assert_eq!(packet_buffer.gso_packets_left(), 0);
        written
    }

    fn write_joined(packet_buffer: &mut PacketBuffer, parts: &[(usize, Part)]) -> Vec<(usize, Vec<u8>)> {
        written_by(Coalescer::default(), packet_buffer, parts)
    }

    fn written_by(
        mut coalescer: Coalescer,
        packet_buffer: &mut PacketBuffer,
        parts: &[(usize, Part)],
    ) -> Vec<(usize, Vec<u8>)> {
        let mut written = Vec::new();
        let mut write = |batch: PacketBatch, bytes: &[IoSlice<'_>]| {
            written.push((batch.device, bytes.iter().flat_map(|bytes| bytes.to_vec()).collect()));
        };
        for (device, part) in parts {
            let ecn = packet_buffer.ecn(*part);
            coalescer.add((*device, Time::ZERO), *part, ecn, packet_buffer, &mut write);
        }
        coalescer.flush(packet_buffer, &mut write);
        written
    }

    fn gso_packets(mut whole: Vec<u8>) -> Vec<Vec<u8>> {
        cut(&mut whole)
    }

    /// Consecutive packets of one connection.
    fn run(v6: bool, count: u32) -> Vec<(usize, Vec<u8>)> {
        let sample = |at| Sample { v6, number: 1000 + at * 1000, id: 7 + at as u16, ..USUAL };
        (0..count).map(|at| (1, sample(at).buffer())).collect()
    }

    #[test]
    fn packets_that_follow_each_other_become_one_whose_cutting_gives_them_back() {
        for v6 in [false, true] {
            let packets = run(v6, 40);
            let written = joined(&packets);
            assert_eq!(written.len(), 1, "v6: {v6}");
            let virtio = header(&written[0].1).unwrap();
            assert_eq!((virtio.gso_size, virtio.flags), (1000, NEEDS_SUM));
            let expected: Vec<Vec<u8>> = packets.into_iter().map(|(_, packet)| packet).collect();
            assert_eq!(gso_packets(written[0].1.clone()), expected, "v6: {v6}");
        }
    }

    #[test]
    fn a_piece_ends_where_the_kernel_would_not_go_on() {
        let next = || Sample { number: 2000, id: 8, ..USUAL };
        for (case, second, expected) in [
            ("the next packet", next(), 1),
            ("the next, a shorter one", Sample { payload: 10, ..next() }, 1),
            ("the next, with PSH", Sample { psh: true, ..next() }, 1),
            ("a longer one", Sample { payload: 1001, ..next() }, 2),
            ("a gap", Sample { number: 3000, ..next() }, 2),
            ("the same once more", Sample { number: 1000, ..next() }, 2),
            ("a mark of congestion", Sample { class: 3, ..next() }, 2),
            ("another time stamp", Sample { option: 2, ..next() }, 2),
            ("another window", Sample { window: 501, ..next() }, 2),
            ("another connection", Sample { port: 5001, ..next() }, 2),
            ("another identification", Sample { id: 10, ..next() }, 2),
            ("no payload", Sample { payload: 0, ..next() }, 2),
        ] {
            let packets = [(1, USUAL.buffer()), (1, second.buffer())];
            let written = joined(&packets);
            assert_eq!(written.len(), expected, "{case}");
            let again: Vec<Vec<u8>> =
                written.into_iter().flat_map(|(_, buffer)| gso_packets(buffer)).collect();
            assert_eq!(again, packets.map(|(_, packet)| packet), "{case}: the same packets in order");
        }
        let first = [("PSH", Sample { psh: true, ..USUAL }), ("nothing else", USUAL)];
        for ((case, first), expected) in first.into_iter().zip([2, 1]) {
            assert_eq!(joined(&[(1, first.buffer()), (1, next().buffer())]).len(), expected, "{case}");
        }
        let apart = joined(&[(1, USUAL.buffer()), (2, next().buffer())]);
        assert_eq!(apart.len(), 2, "of another device");
    }

    #[test]
    fn connections_that_take_turns_are_joined_each_for_itself() {
        let one = |port, at: u16| {
            (1, Sample { port, number: 1000 + u32::from(at) * 1000, id: 7 + at, ..USUAL }.buffer())
        };
        let packets: Vec<_> = (0..20).flat_map(|at| (0..8).map(move |port| one(5000 + port, at))).collect();
        assert_eq!(joined(&packets).len(), 8);
    }

    /// These packets coalesced into the GSO packet that the kernel would send.
    fn large(count: u32) -> Vec<u8> {
        joined(&run(false, count)).remove(0).1
    }

    #[test]
    fn packets_of_a_large_piece_that_come_apart_are_joined_as_they_come() {
        for lost in [None, Some(0), Some(9), Some(39)] {
            let mut packet_buffer = PacketBuffer::default();
            let parts = take_in(&mut packet_buffer, &large(40));
            let expected: Vec<Vec<u8>> = run(false, 40).into_iter().map(|(_, packet)| packet).collect();
            let kept = |at: &usize| Some(*at) != lost;
            // A link gives seven at a time.
            let mut again = Vec::new();
            for turn in (0..40).collect::<Vec<usize>>().chunks(7) {
                let coming: Vec<_> = turn.iter().copied().filter(kept).map(|at| (1, parts[at])).collect();
                let written = write_joined(&mut packet_buffer, &coming);
                let gap = lost.is_some_and(|at| turn[1..turn.len() - 1].contains(&at));
                assert_eq!(written.len(), if gap { 2 } else { 1 }, "{lost:?}, {turn:?}");
                again.extend(written.into_iter().flat_map(|(_, bytes)| gso_packets(bytes)));
            }
            let expected: Vec<Vec<u8>> = (0..40).filter(kept).map(|at| expected[at].clone()).collect();
            assert_eq!(again, expected);
            assert_eq!(packet_buffer.gso_packets_left(), usize::from(lost.is_some()));
        }
    }

    #[test]
    fn written_packets_say_how_many_they_hold_and_when_the_first_was_due() {
        let mut packet_buffer = PacketBuffer::default();
        let parts = take_in(&mut packet_buffer, &large(9));
        let (mut coalescer, mut left) = (Coalescer::default(), Vec::new());
        let mut write = |batch: PacketBatch, _: &[IoSlice<'_>]| {
            left.push((batch.device, batch.due.as_nanos(), batch.packets));
        };
        for (place, part) in parts.into_iter().enumerate() {
            let due = Time::ZERO + Span::from_nanos(place as u64);
            let ecn = if place == 4 { Ecn::Ce } else { packet_buffer.ecn(part) };
            coalescer.add((1, due), part, ecn, &mut packet_buffer, &mut write);
        }
        coalescer.flush(&mut packet_buffer, &mut write);
        assert_eq!(left, [(1, 0, 4), (1, 4, 1), (1, 5, 4)]);
    }

    #[test]
    fn a_marked_packet_begins_and_ends_a_piece() {
        let mut packet_buffer = PacketBuffer::default();
        let parts = take_in(&mut packet_buffer, &large(9));
        let (mut coalescer, mut written) = (Coalescer::default(), Vec::new());
        let mut write = |_: PacketBatch, bytes: &[IoSlice<'_>]| {
            written.push(bytes.iter().flat_map(|bytes| bytes.to_vec()).collect::<Vec<u8>>());
        };
        for (place, part) in parts.into_iter().enumerate() {
            let ecn = if place == 4 { Ecn::Ce } else { packet_buffer.ecn(part) };
            coalescer.add((1, Time::ZERO), part, ecn, &mut packet_buffer, &mut write);
        }
        coalescer.flush(&mut packet_buffer, &mut write);
        let marks: Vec<Vec<u8>> = (written.into_iter())
            .map(|bytes| gso_packets(bytes).iter().map(|gso_packet| gso_packet[OFFSET + 1] & 3).collect())
            .collect();
        assert_eq!(marks, [vec![2; 4], vec![3], vec![2; 4]]);
        assert_eq!(packet_buffer.gso_packets_left(), 0);
    }

    #[test]
    fn no_piece_is_larger_than_an_ip_packet() {
        let written = joined(&run(true, 200));
        assert!(written.len() > 1);
        assert!(written.iter().all(|(_, buffer)| buffer.len() <= OFFSET + LARGEST));
    }

    #[test]
    fn pieces_are_as_long_as_they_have_to_be() {
        // 1,000 bytes with their headers are 1,052.
        for (payload, expected) in [(448, 2), (449, 1), (1000, 1)] {
            let packets = [USUAL.buffer(), Sample { number: 2000, id: 8, payload, ..USUAL }.buffer()];
            let mut packet_buffer = PacketBuffer::default();
            let parts: Vec<_> = packets
                .iter()
                .flat_map(|packet| take_in(&mut packet_buffer, packet))
                .map(|part| (1, part))
                .collect();
            let written = written_by(Coalescer::from_length(1501), &mut packet_buffer, &parts);
            assert_eq!(written.len(), expected, "{payload}");
            let again: Vec<Vec<u8>> =
                written.into_iter().flat_map(|(_, buffer)| gso_packets(buffer)).collect();
            assert_eq!(again, packets);
        }
    }

    #[test]
    fn packets_with_complete_checksums_are_handed_over_as_they_are() {
        let mut packet = USUAL.buffer();
        fill_checksum(&mut packet);
        let packets = vec![(1, packet.clone()), (1, packet)];
        assert_eq!(joined(&packets), packets);
    }

    proptest! {
        /// For any input, segmenting what was written yields every packet, and those of each connection in order.
        #[test]
        fn no_packet_is_changed_or_overtaken(steps in prop::collection::vec(
            (any::<bool>(), 0..12_u16, 0..4_u32, 0..4_u16, 0..3_usize, any::<bool>(), 0..8_u32), 0..60,
        )) {
            let packets: Vec<(usize, Vec<u8>)> = steps
                .iter()
                .enumerate()
                .map(|(at, &(v6, port, number, id, payload, psh, rare))| {
                    let (number, id) = (1000 * number + at as u32 / 8 * 1000, at as u16 + id);
                    let class = if rare == 0 { 3 } else { 2 };
                    let sample =
                        Sample { v6, port, number, id, payload: payload * 500, psh, class, ..USUAL };
                    (usize::from(port % 2), sample.buffer())
                })
                .collect();
            let written = joined(&packets);
            let again: Vec<(usize, Vec<u8>)> = (written.into_iter())
                .flat_map(|(device, buffer)| gso_packets(buffer).into_iter().map(move |gso_packet| (device, gso_packet)))
                .collect();
            prop_assert_eq!(again.len(), packets.len());
            for port in 0..12 {
                let of = |all: &[(usize, Vec<u8>)]| -> Vec<Vec<u8>> {
                    let mine = |buffer: &&(usize, Vec<u8>)| {
                        let network = usize::from(header(&buffer.1).map_or(0, |virtio| virtio.csum_start));
                        buffer.1[OFFSET + network..][..2] == u16::to_be_bytes(port)
                    };
                    let mut mine: Vec<_> = all.iter().filter(mine).map(|(_, buffer)| buffer.clone()).collect();
                    // Connections over IPv4 and IPv6 are two.
                    mine.sort_by_key(|buffer| buffer[OFFSET] >> 4);
                    mine
                };
                prop_assert_eq!(of(&again), of(&packets));
            }
        }
    }
}
