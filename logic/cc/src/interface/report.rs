//! The report that the receiver half sends to the sender.

use core::fmt::Debug;

/// A report of the peer's receiver half, as it travels: at most [`ReceiverReport::CAPACITY`] bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ReceiverReport {
    length: u8,
    bare: bool,
    bytes: [u8; Self::CAPACITY],
}

impl ReceiverReport {
    /// As much as fits the TCP option space beside timestamps.
    pub const CAPACITY: usize = 28;

    /// A report of these bytes; `None` if there are too many.
    pub fn new(content: &[u8]) -> Option<Self> {
        let mut bytes = [0; Self::CAPACITY];
        bytes.get_mut(..content.len())?.copy_from_slice(content);
        Some(Self { length: content.len() as u8, bare: false, bytes })
    }

    /// A report that stands behind the TCP header without kind and length, as Zhong (2020) counted it. No TCP stack could
    /// tell it from payload: for simulations only.
    pub fn bare(content: &[u8]) -> Option<Self> {
        Self::new(content).map(|report| Self { bare: true, ..report })
    }

    /// The bytes that travel.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// Bytes that it takes among TCP's options: kind and length before it, padded to four.
    pub fn option_length(&self) -> usize {
        let head = if self.bare { 0 } else { 2 };
        (head + usize::from(self.length)).next_multiple_of(4)
    }
}

impl Debug for ReceiverReport {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("ReceiverReport").field(&self.as_bytes()).finish()
    }
}
