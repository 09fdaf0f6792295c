//! Transport blocks: what the MAC layer hands to the physical layer for one TTI.

use core::fmt;

use ranpace_units::{Bytes, Rate, Span};

/// Size of a transport block in bits, always whole bytes. Zero means that the grant is too small for a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransportBlock(u32);

/// The size is not a whole number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a transport block of whole bytes, found {bits} bits")]
pub struct NotWholeBytes {
    /// The value found.
    pub bits: u32,
}

impl TransportBlock {
    /// No block.
    pub const ZERO: Self = Self(0);

    /// From a size in bits, the unit of control information and radio reports.
    pub const fn from_bits(bits: u32) -> Result<Self, NotWholeBytes> {
        if bits.is_multiple_of(8) { Ok(Self(bits)) } else { Err(NotWholeBytes { bits }) }
    }
    /// From a size in bytes; saturates at the largest multiple of eight bits.
    pub const fn from_bytes(bytes: u32) -> Self {
        Self(bytes.saturating_mul(8) & !7)
    }
    /// Size in bits.
    pub const fn bits(self) -> u32 {
        self.0
    }
    /// Size in bytes, exact.
    pub const fn bytes(self) -> Bytes {
        Bytes::new(self.0 as u64 / 8)
    }
    /// The rate of one such block per `interval` (the TTI), rounded down; [`Rate::MAX`] if that is zero.
    pub fn rate(self, interval: Span) -> Rate {
        Rate::of(self.bytes(), interval)
    }
}

impl fmt::Display for TransportBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bit", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_whole_bytes() {
        assert_eq!(TransportBlock::from_bits(18_336), Ok(TransportBlock::from_bytes(2292)));
        let error = TransportBlock::from_bits(13).unwrap_err();
        assert_eq!(error.to_string(), "expected a transport block of whole bytes, found 13 bits");
        assert_eq!(TransportBlock::from_bytes(u32::MAX).bits() % 8, 0);
    }

    #[test]
    fn a_block_every_tti_is_a_rate() {
        let block = TransportBlock::from_bytes(2292);
        assert_eq!(block.rate(Span::from_millis(1)), Rate::from_bits_per_s(18_336_000));
        assert_eq!(TransportBlock::ZERO.rate(Span::from_millis(1)), Rate::ZERO);
    }
}
