//! The two bits of an IP header that carry explicit congestion notification.

/// The ECN code point of a packet (RFC 3168, section 5; RFC 9331 for the use of ECT(1)), with its bits as discriminant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// The transport does not understand marks: queues drop instead.
    #[default]
    NotEct = 0b00,
    /// ECN-capable, and a mark means little: L4S (RFC 9331), or "accelerate" in ABC.
    Ect1 = 0b01,
    /// ECN-capable, and a mark means as much as a loss (RFC 3168), or "brake" in ABC.
    Ect0 = 0b10,
    /// Congestion was experienced.
    Ce = 0b11,
}

impl Ecn {
    /// The code point of the two lowest bits of `bits`, as in the traffic class of an IP header.
    #[inline]
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 0b11 {
            0b00 => Self::NotEct,
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// Its two bits.
    #[inline]
    pub const fn bits(self) -> u8 {
        self as u8
    }

    /// Returns whether a queue may mark the packet instead of dropping it: ECT(0), ECT(1), or marked already.
    #[inline]
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }

    /// Returns whether an L4S queue treats the packet as its own: ECT(1) or CE (RFC 9331, section 5.1).
    #[inline]
    pub const fn is_l4s(self) -> bool {
        matches!(self, Self::Ect1 | Self::Ce)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_those_of_rfc_3168() {
        for (bits, ecn, capable, l4s) in [
            (0, Ecn::NotEct, false, false),
            (1, Ecn::Ect1, true, true),
            (2, Ecn::Ect0, true, false),
            (3, Ecn::Ce, true, true),
        ] {
            assert_eq!((Ecn::from_bits(bits | 0xfc), ecn.bits()), (ecn, bits));
            assert_eq!((ecn.is_capable(), ecn.is_l4s()), (capable, l4s), "{ecn:?}");
        }
    }
}
