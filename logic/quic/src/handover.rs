//! Tracks which bytes of the stream are known to have passed a proxy on the path or to have reached the receiver.
//!
//! noq does not report the content of a packet. A sender could read its own packets before encryption, and here they are
//! never encrypted: so this module parses their STREAM frames (RFC 9000, sections 17, 19.8 and 12.4 for the other frames,
//! which are skipped). The stream data of a packet count as handed over when a proxy has seen the packet or the receiver has
//! acknowledged it.

use std::collections::{BTreeMap, VecDeque};

use crate::cipher::TAG;
use crate::host::CID;

/// Reads fields one after another; `None` at the end.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: u64) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(head)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    /// RFC 9000, section 16.
    fn varint(&mut self) -> Option<u64> {
        let first = *self.0.first()?;
        let bytes = self.take(1 << (first >> 6))?;
        let value = bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
        Some(value & (u64::MAX >> 2 >> (64 - 8 * bytes.len())))
    }

    fn varints(&mut self, count: u64) -> Option<()> {
        (0..count).try_for_each(|_| self.varint().map(|_| ()))
    }

    fn sized(&mut self) -> Option<()> {
        let length = self.varint()?;
        self.take(length).map(|_| ())
    }

    /// Skips a packet with a long header (RFC 9000, section 17.2).
    fn long_packet(&mut self) -> Option<()> {
        let first = self.byte()?;
        self.take(4)?;
        for _ in 0..2 {
            let length = self.byte()?;
            self.take(length.into())?;
        }
        if first >> 4 & 3 == 0 {
            self.sized()?; // the token of an Initial
        }
        self.sized()
    }

    /// The next frame's stream data, as offset and length, if it is a STREAM frame. `None` at an unknown frame.
    fn frame(&mut self) -> Option<Option<(u64, u64)>> {
        match self.varint()? {
            kind @ 0x08..=0x0f => {
                self.varint()?;
                let offset = if kind & 4 != 0 { self.varint()? } else { 0 };
                let length = if kind & 2 != 0 { self.varint()? } else { self.0.len() as u64 };
                self.take(length)?;
                return Some(Some((offset, length)));
            }
            0x00 | 0x01 | 0x1e | 0x1f => {} // PADDING, PING, HANDSHAKE_DONE, IMMEDIATE_ACK
            kind @ (0x02 | 0x03) => {
                self.varints(2)?;
                let ranges = self.varint()?;
                self.varints(1 + 2 * ranges.min(self.0.len() as u64) + if kind == 3 { 3 } else { 0 })?;
            }
            0x04 => self.varints(3)?,
            0x05 | 0x11 | 0x15 => self.varints(2)?,
            0x06 => {
                self.varint()?;
                self.sized()?;
            }
            0x07 => self.sized()?,
            0x10 | 0x12 | 0x13 | 0x14 | 0x16 | 0x17 | 0x19 => self.varints(1)?,
            0x18 => {
                self.varints(2)?;
                let length = self.byte()?;
                self.take(u64::from(length) + 16)?;
            }
            0x1a | 0x1b => {
                self.take(8)?;
            }
            0xaf => self.varints(4)?, // ACK_FREQUENCY
            _ => return None,
        }
        Some(None)
    }
}

/// Passes each piece of stream data in a datagram to `each`. Frames behind an unknown one are ignored.
fn stream_bytes(datagram: &[u8], mut each: impl FnMut(u64, u64)) {
    let mut rest = Reader(datagram);
    while rest.0.first().is_some_and(|first| first & 0x80 != 0) {
        if rest.long_packet().is_none() {
            return;
        }
    }
    let Some((head, _tag)) = rest.0.len().checked_sub(TAG).map(|length| rest.0.split_at(length)) else {
        return;
    };
    let mut packet = Reader(head);
    let Some(first) = packet.byte() else { return };
    if packet.take(CID as u64 + 1 + u64::from(first & 3)).is_none() {
        return;
    }
    while let Some(frame) = packet.frame() {
        if let Some((offset, length)) = frame {
            each(offset, length);
        }
    }
}

/// A packet's part of the stream.
#[derive(Clone, Copy, Debug)]
struct Part {
    number: u64,
    start: u64,
    end: u64,
}

/// Tracks the data that have been handed over.
#[derive(Debug, Default)]
pub(crate) struct Handover {
    /// Stream data of packets that are not completely handed over, in the order of sending.
    sent: VecDeque<Part>,
    /// All bytes below this have been handed over, and these ranges above it.
    next: u64,
    beyond: BTreeMap<u64, u64>,
}

impl Handover {
    /// A packet is sent; `number` is its position in the order of sending.
    pub fn on_sent(&mut self, number: u64, datagram: &[u8]) {
        stream_bytes(datagram, |offset, length| {
            self.sent.push_back(Part { number, start: offset, end: offset + length });
        });
    }

    /// A packet was seen or acknowledged.
    pub fn on_there(&mut self, number: u64) {
        let first = self.sent.partition_point(|part| part.number < number);
        let parts = self.sent.range(first..).take_while(|part| part.number == number);
        for part in parts {
            let end = self.beyond.entry(part.start).or_insert(part.end);
            *end = part.end.max(*end);
        }
        while let Some(first) = self.beyond.first_entry()
            && *first.key() <= self.next
        {
            self.next = self.next.max(first.remove());
        }
        while self.sent.front().is_some_and(|part| part.end <= self.next) {
            self.sent.pop_front();
        }
    }

    /// Length of the stream's prefix that has been handed over without a gap.
    pub fn bytes(&self) -> u64 {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of noq: short header, frames, tag.
    fn packet(frames: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x41];
        bytes.extend([7; CID]);
        bytes.extend([0, 9]);
        bytes.extend(frames);
        bytes.extend([0; TAG]);
        bytes
    }

    fn found(datagram: &[u8]) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        stream_bytes(datagram, |offset, length| found.push((offset, length)));
        found
    }

    #[test]
    fn frames_are_read_as_rfc_9000_writes_them() {
        // Without offset and length: all remaining bytes, from offset zero (section 19.8).
        assert_eq!(found(&packet(&[0x08, 2, 1, 2, 3])), [(0, 3)]);
        // An ACK of two ranges and MAX_DATA before; offset 0x3fff in two bytes and length 2 (section 16).
        let frames = [0x02, 9, 0, 1, 3, 0, 1, 0x10, 0x40, 1, 0x0e, 2, 0x7f, 0xff, 2, 5, 5, 0x0c, 2, 7, 4, 4];
        assert_eq!(found(&packet(&frames)), [(0x3fff, 2), (7, 2)]);
        // A packet of the handshake before it: type 2, no token.
        let mut coalesced = vec![0xe0, 0, 0, 0, 1, 1, 8, 1, 9, 3, 0xaa, 0xaa, 0xaa];
        coalesced.extend(packet(&[0x08, 2, 1]));
        assert_eq!(found(&coalesced), [(0, 1)]);
        // An unknown frame and truncation end the parsing.
        assert_eq!(found(&packet(&[0x40, 0x99, 0x08, 2, 1])), []);
        for length in 0..packet(&frames).len() {
            let _ = found(&packet(&frames)[..length]);
        }
    }

    #[test]
    fn a_byte_is_handed_over_with_any_packet_that_holds_it() {
        let mut handover = Handover::default();
        let part = |offset: u8| packet(&[0x0c, 2, offset, 1, 1, 1, 1]);
        for (number, offset) in [(0, 0), (1, 4), (2, 8), (5, 4)] {
            handover.on_sent(number, &part(offset));
        }
        handover.on_there(0);
        handover.on_there(2);
        handover.on_there(2);
        assert_eq!(handover.bytes(), 4);
        handover.on_there(3);
        assert_eq!(handover.bytes(), 4, "never sent");
        handover.on_there(5);
        assert_eq!((handover.bytes(), handover.sent.len()), (12, 0));
        handover.on_there(1);
        assert_eq!(handover.bytes(), 12);
    }
}
