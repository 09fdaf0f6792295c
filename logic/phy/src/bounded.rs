//! Integers bounded to the range that the standard gives them.

use core::fmt;

/// A number is outside the range that the standard gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {what} from {least} to {most}, found {found}")]
pub struct OutOfRange {
    /// The quantity.
    pub what: &'static str,
    /// The smallest allowed value.
    pub least: u64,
    /// The largest allowed value.
    pub most: u64,
    /// The value found.
    pub found: u64,
}

macro_rules! bounded {
    ($(#[$doc:meta])* $name:ident($inner:ty): $least:literal..=$most:literal, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name($inner);

        impl $name {
            /// The smallest value.
            pub const MIN: Self = Self($least);
            /// The largest value.
            pub const MAX: Self = Self($most);

            /// `number`, or `None` outside the range.
            // Where the range starts at zero the first comparison is always true.
            #[allow(unused_comparisons, clippy::absurd_extreme_comparisons)]
            pub const fn new(number: $inner) -> Option<Self> {
                if number >= $least && number <= $most { Some(Self(number)) } else { None }
            }
            /// The number.
            pub const fn get(self) -> $inner {
                self.0
            }
            /// All values, in increasing order.
            pub fn all() -> impl DoubleEndedIterator<Item = Self> {
                ($least..=$most).map(Self)
            }
        }

        impl TryFrom<$inner> for $name {
            type Error = OutOfRange;
            fn try_from(number: $inner) -> Result<Self, OutOfRange> {
                let (least, most, found) = ($least, $most, number.into());
                Self::new(number).ok_or(OutOfRange { what: $what, least, most, found })
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

bounded! {
    /// Channel quality indicator, 0 to 15; 0 is "out of range" (TS 36.213 clause 7.2.3, TS 38.214 clause 5.2.2.1).
    Cqi(u8): 0..=15, "a CQI"
}
bounded! {
    /// LTE modulation and coding scheme, 0 to 28 (TS 36.213 Tables 7.1.7.1-1 and 8.6.1-1). The reserved indices 29
    /// to 31 name the modulation of a retransmission and have no block size.
    LteMcs(u8): 0..=28, "an LTE MCS"
}
bounded! {
    /// Row of the LTE transport block size table, 0 to 26 (TS 36.213 clause 7.1.7).
    Itbs(u8): 0..=26, "a TBS index"
}
bounded! {
    /// Physical resource block pairs of an LTE allocation or carrier, 1 to 110 (TS 36.211 Table 6.2.3-1). A pair is 12
    /// sub-carriers wide and one subframe, 14 symbols, long.
    LtePrbs(u8): 1..=110, "a number of LTE PRBs"
}
bounded! {
    /// Physical resource blocks of an allocation or carrier of LTE or NR, 1 to 275 (TS 38.211 clause 4.4.2): 12
    /// sub-carriers wide, one subframe (LTE) or slot (NR) long.
    Prbs(u16): 1..=275, "a number of PRBs"
}
bounded! {
    /// Spatial layers of one codeword, 1 to 4. Five and more take two codewords, and so two blocks (TS 38.211 clause
    /// 7.3.1.3).
    Layers(u8): 1..=4, "a number of layers"
}
bounded! {
    /// OFDM symbols of a slot of NR with normal cyclic prefix, 1 to 14 (TS 38.211 Table 4.3.2-1).
    Symbols(u8): 1..=14, "a number of symbols"
}

impl Prbs {
    /// Half of them, rounded down, but at least one: what a UE assumes for a carrier before its first grant
    /// (Zhong 2020, below Eq. 5.9; the rounding is ours).
    pub fn half(self) -> Self {
        Self((self.0 / 2).max(1))
    }
}

impl From<LtePrbs> for Prbs {
    fn from(prbs: LtePrbs) -> Self {
        Self(prbs.0.into())
    }
}

impl TryFrom<Prbs> for LtePrbs {
    type Error = OutOfRange;
    fn try_from(prbs: Prbs) -> Result<Self, OutOfRange> {
        let number = u8::try_from(prbs.0).ok().and_then(Self::new);
        let (least, most) = (Self::MIN.0.into(), Self::MAX.0.into());
        number.ok_or(OutOfRange { what: "a number of LTE PRBs", least, most, found: prbs.0.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_outside_its_range_is_refused_and_the_error_says_the_range() {
        assert_eq!(Cqi::new(16), None);
        assert_eq!(Prbs::new(0), None);
        assert_eq!(LtePrbs::try_from(Prbs::MAX).unwrap_err().found, 275);
        assert_eq!(
            LteMcs::try_from(29).unwrap_err().to_string(),
            "expected an LTE MCS from 0 to 28, found 29"
        );
        for (count, expected) in [
            (Cqi::all().count(), 16),
            (LteMcs::all().count(), 29),
            (Itbs::all().count(), 27),
            (LtePrbs::all().count(), 110),
            (Prbs::all().count(), 275),
        ] {
            assert_eq!(count, expected);
        }
    }

    #[test]
    fn half_of_a_carrier_is_never_nothing() {
        for (all, half) in [(100, 50), (25, 12), (1, 1)] {
            assert_eq!(Prbs(all).half(), Prbs(half), "{all}");
        }
    }
}
