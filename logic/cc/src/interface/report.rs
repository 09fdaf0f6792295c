//! The report that the receiver half sends to the sender.

use core::fmt::Debug;

/// A report of the peer's receiver half, as transmitted: at most [`ReceiverReport::CAPACITY`] bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ReceiverReport {
    length: u8,
    bare: bool,
    bytes: [u8; Self::CAPACITY],
}

impl ReceiverReport {
    /// Size in bytes of the TCP option space that timestamps leave.
    pub const CAPACITY: usize = 28;

    /// A report with this content; `None` if it is too long.
    pub fn new(content: &[u8]) -> Option<Self> {
        let mut bytes = [0; Self::CAPACITY];
        bytes.get_mut(..content.len())?.copy_from_slice(content);
        Some(Self { length: content.len() as u8, bare: false, bytes })
    }

    /// A report placed directly after the TCP header, without kind and length, as Zhong (2020) counted it. A real TCP stack
    /// could not tell it from payload: for simulations only.
    pub fn bare(content: &[u8]) -> Option<Self> {
        Self::new(content).map(|report| Self { bare: true, ..report })
    }

    /// The transmitted bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// Bytes that it occupies in TCP's options: with kind and length, padded to a multiple of four.
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
