//! Fields of TCP's header in the bytes of a packet, for rewriters: reads them, and changes them with the checksums that cover them.
//!
//! A checksum is updated by the difference (RFC 1624), so that a broken one stays broken. Where the kernel left it to the card, its field
//! holds the sum over the pseudo-header, in which only the length may change.

use std::net::SocketAddr;

use ranpace_pep::rewriter::TcpFields;
use ranpace_rnis::guidance::{Guidance, PADDED};

use crate::headers::{Transport, updated_sum};

/// Offsets in TCP's header (RFC 9293, section 3.1).
const DATA_OFFSET: usize = 12;
const FLAGS: usize = 13;
const WINDOW: usize = 14;
const SUM: usize = 16;
const HEADER: usize = 20;
/// Most bytes of options.
const OPTIONS: usize = 40;

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;

/// Kinds of options (RFC 9293, section 3.2; RFC 7323).
const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const MSS: u8 = 2;
const SCALE: u8 = 3;
const TIMESTAMPS: u8 = 8;

/// A TCP segment in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpSegment {
    /// Its source and destination.
    pub from: SocketAddr,
    /// See `from`.
    pub to: SocketAddr,
    /// Its fields.
    pub fields: TcpFields,
    /// Offset of its header in the packet.
    offset: usize,
}

impl TcpSegment {
    /// Reads a packet, from the IP header on; `None` unless it is a whole TCP segment whose lengths and options are right.
    pub fn read(packet: &[u8]) -> Option<Self> {
        let (from, to, transport) = Transport::read(packet)?;
        if !transport.is_whole_tcp() || length_of(packet)? != packet.len() {
            return None;
        }
        let tcp = packet.get(transport.offset..)?;
        let header: &[u8; HEADER] = tcp.first_chunk()?;
        let port = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let number =
            |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let length = usize::from(header[DATA_OFFSET] >> 4) * 4;
        let options = tcp.get(HEADER..length)?;
        let flag = |flag: u8| header[FLAGS] & flag != 0;
        let mut fields = TcpFields {
            syn: flag(SYN),
            fin: flag(FIN),
            rst: flag(RST),
            seq: number(4),
            ack: flag(ACK).then(|| number(8)),
            payload: (tcp.len() - length) as u32,
            room: OPTIONS - options.len(),
            window: port(WINDOW),
            ..TcpFields::default()
        };
        read_options(options, &mut fields)?;
        let (from, to) = (SocketAddr::new(from, port(0)), SocketAddr::new(to, port(2)));
        Some(Self { from, to, fields, offset: transport.offset })
    }

    /// Writes the fields of `changed` that differ from this segment's into its packet, which begins at `start` of the buffer. `partial`
    /// says that the checksum was left to the card. Returns whether anything was changed.
    pub fn write(&self, changed: &TcpFields, buffer: &mut Vec<u8>, start: usize, partial: bool) -> bool {
        let at = start + self.offset;
        let mut is_changed = false;
        if changed.window != self.fields.window
            && let Some(tcp) = buffer.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<HEADER>)
        {
            tcp[WINDOW..SUM].copy_from_slice(&changed.window.to_be_bytes());
            if !partial {
                update(tcp, SUM, self.fields.window, changed.window);
            }
            is_changed = true;
        }
        if let Some(guidance) = &changed.guidance {
            is_changed |= self.insert(guidance, buffer, start, partial);
        }
        is_changed
    }

    /// Inserts the option before the others. False if there is no room.
    fn insert(&self, guidance: &Guidance, buffer: &mut Vec<u8>, start: usize, partial: bool) -> bool {
        let at = start + self.offset;
        let added = PADDED as u16;
        let Some(packet) = buffer.get_mut(start..).filter(|_| self.fields.room >= PADDED) else {
            return false;
        };
        if !lengthen(packet, added) {
            return false;
        }
        let Some(tcp) = packet.get_mut(self.offset..).and_then(<[u8]>::first_chunk_mut::<HEADER>) else {
            return false;
        };
        let before = word(tcp, DATA_OFFSET);
        tcp[DATA_OFFSET] += (PADDED as u8 / 4) << 4;
        let option = guidance.option();
        if partial {
            let sum = u32::from(word(tcp, SUM)) + u32::from(added);
            let sum = (sum & 0xffff) + (sum >> 16);
            tcp[SUM..SUM + 2].copy_from_slice(&(sum as u16).to_be_bytes());
        } else {
            let after = word(tcp, DATA_OFFSET);
            update(tcp, SUM, before, after);
            // The pseudo-header has the length.
            update(tcp, SUM, 0, added);
            for at in (0..PADDED).step_by(2) {
                update(tcp, SUM, 0, word(&option, at));
            }
        }
        buffer.splice(at + HEADER..at + HEADER, option);
        true
    }
}

/// Reads the options of interest; `None` if one has a wrong length.
fn read_options(mut options: &[u8], fields: &mut TcpFields) -> Option<()> {
    while let [kind, rest @ ..] = options {
        options = match *kind {
            END => break,
            NO_OPERATION => rest,
            kind => {
                let length = usize::from(*rest.first()?);
                let content = options.get(2..length)?;
                match (kind, content) {
                    (MSS, &[high, low]) => fields.mss = Some(u16::from_be_bytes([high, low])),
                    (SCALE, &[scale]) => fields.scale = Some(scale),
                    (TIMESTAMPS, &[a, b, c, d, e, f, g, h]) => {
                        let own = u32::from_be_bytes([a, b, c, d]);
                        fields.timestamps = Some((own, u32::from_be_bytes([e, f, g, h])));
                    }
                    (MSS | SCALE | TIMESTAMPS, _) => return None,
                    _ => {}
                }
                &options[length..]
            }
        };
    }
    Some(())
}

/// The length of a packet as its IP header says it.
fn length_of(packet: &[u8]) -> Option<usize> {
    match packet.first()? >> 4 {
        4 => Some(usize::from(word(packet.first_chunk::<20>()?, 2))),
        6 => Some(usize::from(word(packet.first_chunk::<40>()?, 4)) + 40),
        _ => None,
    }
}

/// Adds to the length in the IP header. False if it does not fit.
fn lengthen(packet: &mut [u8], added: u16) -> bool {
    let is_v6 = packet.first().is_some_and(|first| first >> 4 == 6);
    let at = if is_v6 { 4 } else { 2 };
    let Some(header) = packet.first_chunk_mut::<20>() else { return false };
    let before = word(header, at);
    let Some(after) = before.checked_add(added) else { return false };
    header[at..at + 2].copy_from_slice(&after.to_be_bytes());
    if !is_v6 {
        update(header, 10, before, after);
    }
    true
}

/// Updates the checksum at an offset for a word that has changed.
fn update(header: &mut [u8; HEADER], sum: usize, before: u16, after: u16) {
    let updated = updated_sum(word(header, sum), before, after);
    header[sum..sum + 2].copy_from_slice(&updated.to_be_bytes());
}

/// The 16 bits at an offset, which the caller knows to be there.
fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

#[cfg(test)]
mod tests {
    use etherparse::{PacketBuilder, SlicedPacket, TcpOptionElement, TransportSlice};
    use proptest::prelude::*;
    use ranpace_units::{Rate, Span};

    use super::*;

    fn packet(v6: bool, options: &[TcpOptionElement], payload: &[u8]) -> Vec<u8> {
        let ip = if v6 {
            PacketBuilder::ipv6(crate::addresses::v6(0).octets(), crate::addresses::v6(1).octets(), 64)
        } else {
            PacketBuilder::ipv4([10, 77, 0, 1], [10, 77, 0, 2], 64)
        };
        let mut packet = Vec::new();
        let tcp = ip.tcp(5_000, 80, 17, 1_000).ack(9).options(options).expect("they fit");
        tcp.write(&mut packet, payload).expect("it fits");
        packet
    }

    /// Whether both checksums are right.
    fn is_right(packet: &[u8]) -> bool {
        let sliced = SlicedPacket::from_ip(packet).expect("it is a packet");
        let Some(TransportSlice::Tcp(tcp)) = sliced.transport else { panic!("it is TCP") };
        let header = tcp.to_header();
        let expected = match sliced.net.expect("it has an IP header") {
            etherparse::NetSlice::Ipv4(ip) => {
                let ip = ip.header().to_header();
                assert_eq!(ip.header_checksum, ip.calc_header_checksum());
                header.calc_checksum_ipv4(&ip, tcp.payload())
            }
            etherparse::NetSlice::Ipv6(ip) => {
                header.calc_checksum_ipv6(&ip.header().to_header(), tcp.payload())
            }
            _ => panic!("it is IP"),
        };
        expected == Ok(tcp.checksum())
    }

    fn guidance() -> Guidance {
        Guidance { rate: Rate::from_bits_per_s(6_112_000), age: Some(Span::from_millis(30)) }
    }

    #[test]
    fn options_and_fields_are_read() {
        let options = [
            TcpOptionElement::MaximumSegmentSize(1_460),
            TcpOptionElement::WindowScale(7),
            TcpOptionElement::Timestamp(5, 6),
        ];
        for v6 in [false, true] {
            let segment = TcpSegment::read(&packet(v6, &options, &[1, 2, 3])).expect("it is TCP");
            let TcpFields { mss, scale, timestamps, window, ack, payload, seq, room, .. } = segment.fields;
            assert_eq!((mss, scale, timestamps), (Some(1_460), Some(7), Some((5, 6))));
            assert_eq!((window, ack, payload, seq, room), (1_000, Some(9), 3, 17, 40 - 20));
            assert_eq!((segment.from.port(), segment.to.port()), (5_000, 80));
        }
    }

    #[test]
    fn what_is_not_whole_or_right_is_not_read() {
        let right = packet(false, &[TcpOptionElement::Timestamp(5, 6)], &[7; 10]);
        assert!(TcpSegment::read(&right).is_some());
        let timestamps = 20 + 20;
        for (case, place, byte) in [
            ("a fragment", 6, 0x20),
            ("UDP", 9, 17),
            ("a wrong length of IP", 3, 1),
            ("a header of 16 B", 32, 0x40),
            ("a header longer than the packet", 32, 0xf0),
            ("an option of no length", timestamps + 1, 0),
            ("an option beyond the header", timestamps + 1, 99),
            ("timestamps of a wrong length", timestamps + 1, 6),
        ] {
            let mut wrong = right.clone();
            wrong[place] = byte;
            assert_eq!(TcpSegment::read(&wrong), None, "{case}");
        }
        assert_eq!(TcpSegment::read(&[]), None);
    }

    #[test]
    fn a_partial_checksum_stays_the_sum_over_the_pseudo_header() {
        for v6 in [false, true] {
            let right = packet(v6, &[], &[]);
            let segment = TcpSegment::read(&right).expect("it is TCP");
            let tcp = if v6 { 40 } else { 20 };
            // As a kernel leaves it; `gso` has the definition.
            let partial = |packet: &[u8]| {
                let addresses = if v6 { &packet[8..40] } else { &packet[12..20] };
                let pairs = addresses.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
                let mut sum: u32 = pairs.sum::<u32>() + 6 + (packet.len() - tcp) as u32;
                while sum > 0xffff {
                    sum = (sum & 0xffff) + (sum >> 16);
                }
                (sum as u16).to_be_bytes()
            };
            let mut buffer = right.clone();
            let sum = partial(&buffer);
            buffer[tcp + SUM..tcp + SUM + 2].copy_from_slice(&sum);
            let changed = TcpFields { window: 5, guidance: Some(guidance()), ..segment.fields };
            assert!(segment.write(&changed, &mut buffer, 0, true));
            assert_eq!(buffer[tcp + SUM..tcp + SUM + 2], partial(&buffer));
        }
    }

    proptest! {
        /// A right checksum stays right, a broken one broken, and nothing but window, lengths and options changes.
        #[test]
        fn checksums_stay_as_right_as_they_were(
            v6 in any::<bool>(),
            timestamps in any::<bool>(),
            payload in prop::collection::vec(any::<u8>(), 0..100),
            window in any::<u16>(),
            guides in any::<bool>(),
            broken in any::<bool>(),
            before in 0..40_usize,
        ) {
            let options = [TcpOptionElement::Timestamp(70, 80)];
            let mut original = packet(v6, if timestamps { &options } else { &[] }, &payload);
            let tcp = if v6 { 40 } else { 20 };
            original[tcp + SUM] ^= u8::from(broken);
            let segment = TcpSegment::read(&original).expect("it is TCP");
            let changed = TcpFields { window, guidance: guides.then(guidance), ..segment.fields };
            let mut buffer = [&vec![0; before][..], &original].concat();
            let is_changed = segment.write(&changed, &mut buffer, before, false);
            prop_assert_eq!(is_changed, window != 1_000 || guides);
            let packet = &buffer[before..];
            prop_assert_eq!(is_right(packet), !broken);
            let read = TcpSegment::read(packet).expect("it is still TCP");
            let added = if guides { PADDED } else { 0 };
            prop_assert_eq!(packet.len(), original.len() + added);
            let expected = TcpFields { window, room: segment.fields.room - added, ..segment.fields };
            prop_assert_eq!(read.fields, expected);
            prop_assert!(packet.ends_with(&payload));
            if guides {
                prop_assert_eq!(&packet[tcp + HEADER..tcp + HEADER + PADDED], &guidance().option());
            }
        }
    }
}
