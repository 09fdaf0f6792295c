//! The payload of one direction of a connection, from the first byte that the receiving side has not acknowledged.

use std::collections::VecDeque;

/// Most bytes between the first and the last one kept: four times the largest window that either end advertises. Data beyond are
/// not kept, and so not acknowledged. Ours.
pub const MOST: u64 = 64 << 20;

/// Payload by stream position. Gaps are filled by retransmissions; the receiving half of the connection knows which bytes are
/// present.
#[derive(Debug, Default)]
pub struct StreamBuffer {
    bytes: VecDeque<u8>,
    /// Position of the first byte kept.
    base: u64,
}

impl StreamBuffer {
    /// Stores `data`, which begins at position `at`. Returns false and stores nothing if it goes beyond [`MOST`].
    pub fn put(&mut self, at: u64, data: &[u8]) -> bool {
        let end = at + data.len() as u64;
        if end > self.base + MOST {
            return false;
        }
        if end <= self.base {
            return true;
        }
        let known = self.base.saturating_sub(at) as usize;
        let (at, data) = ((at + known as u64) - self.base, &data[known..]);
        let at = at as usize;
        let have = self.bytes.len();
        if at == have {
            self.bytes.extend(data);
            return true;
        }
        if self.bytes.len() < at + data.len() {
            self.bytes.resize(at + data.len(), 0);
        }
        for (byte, new) in self.bytes.range_mut(at..at + data.len()).zip(data) {
            *byte = *new;
        }
        true
    }

    /// Appends up to `length` bytes from position `from` on to `out`.
    pub fn copy(&self, from: u64, length: usize, out: &mut Vec<u8>) {
        let from = from.saturating_sub(self.base).min(self.bytes.len() as u64) as usize;
        let to = (from + length).min(self.bytes.len());
        let (front, back) = self.bytes.as_slices();
        out.extend_from_slice(&front[from.min(front.len())..to.min(front.len())]);
        let behind = |place: usize| place.saturating_sub(front.len());
        out.extend_from_slice(&back[behind(from)..behind(to)]);
    }

    /// Drops the bytes before position `to`.
    pub fn discard(&mut self, to: u64) {
        let count = to.saturating_sub(self.base).min(self.bytes.len() as u64);
        self.bytes.drain(..count as usize);
        self.base += count;
        if self.bytes.is_empty() {
            self.bytes.shrink_to(1 << 16);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn content(at: u64) -> u8 {
        (at * 7 + at / 251) as u8
    }

    #[test]
    fn a_gap_is_filled_when_what_was_lost_comes_again() {
        let mut buffer = StreamBuffer::default();
        assert!(buffer.put(0, b"abc") && buffer.put(6, b"ghi") && buffer.put(2, b"cdefg"));
        let mut out = Vec::new();
        buffer.discard(1);
        buffer.copy(1, 100, &mut out);
        assert_eq!(out, b"bcdefghi");
        assert!(!buffer.put(MOST, b"far"), "it is beyond what is kept");
        assert!(buffer.put(0, b"a"), "it was acknowledged: nothing is to be kept");
    }

    proptest! {
        /// In any order: what was put can be read until it is discarded.
        #[test]
        fn bytes_are_read_as_they_were_put(steps in prop::collection::vec((0..3_000_u64, 1..2_000_usize, any::<bool>()), 1..40)) {
            let mut buffer = StreamBuffer::default();
            // Everything up to here is present.
            let mut end = 0_u64;
            let mut base = 0;
            for (at, length, discards) in steps {
                let at = (end + at).saturating_sub(1_500).min(end);
                let data: Vec<u8> = (at..at + length as u64).map(content).collect();
                prop_assert!(buffer.put(at, &data));
                end = end.max(at + length as u64);
                if discards {
                    base = base.max(at.min(end));
                    buffer.discard(base);
                }
                let mut out = Vec::new();
                buffer.copy(base, (end - base) as usize, &mut out);
                prop_assert_eq!(out, (base..end).map(content).collect::<Vec<u8>>());
            }
        }
    }
}
