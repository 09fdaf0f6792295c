//! Data rates in whole bits per second.

use core::fmt;
use core::ops::{Add, Div, Mul, Sub};
use core::str::FromStr;

use crate::mul_div::{mul_div, mul_div_up};
use crate::text::{self, ParseError, Unit};
use crate::{Bytes, Span};

/// A data rate in bits per second. Arithmetic saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

const NANOS_PER_SECOND: u64 = 1_000_000_000;

impl Rate {
    /// A rate of zero.
    pub const ZERO: Self = Self(0);
    /// The highest rate.
    pub const MAX: Self = Self(u64::MAX);

    /// `rate` bits per second.
    pub const fn from_bits_per_s(rate: u64) -> Self {
        Self(rate)
    }
    /// `rate` times 10^6 bits per second.
    pub const fn from_mbit_per_s(rate: u64) -> Self {
        Self(rate.saturating_mul(1_000_000))
    }
    /// `rate` bits per second, rounded to the nearest; negative values and NaN give zero.
    pub fn from_bits_per_s_f64(rate: f64) -> Self {
        Self((rate + 0.5) as u64)
    }
    /// The rate of `bytes` per `span`, rounded down; [`Rate::MAX`] if `span` is zero.
    #[inline]
    pub fn of(bytes: Bytes, span: Span) -> Self {
        Self(mul_div(bytes.get().saturating_mul(8), NANOS_PER_SECOND, span.as_nanos()))
    }
    /// Bits per second.
    pub const fn bits_per_s(self) -> u64 {
        self.0
    }
    /// Bits per second as a float.
    pub fn as_f64(self) -> f64 {
        self.0 as f64
    }
    /// Returns whether the rate is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
    /// The data transferred in `span`, rounded down to whole bytes.
    #[inline]
    pub fn bytes_in(self, span: Span) -> Bytes {
        Bytes::new(mul_div(self.0, span.as_nanos(), 8 * NANOS_PER_SECOND))
    }
    /// The time that `bytes` take, rounded up; [`Span::MAX`] at a rate of zero.
    #[inline]
    pub fn time_for(self, bytes: Bytes) -> Span {
        if self.0 == 0 {
            return Span::MAX;
        }
        Span::from_nanos(mul_div_up(bytes.get().saturating_mul(8), NANOS_PER_SECOND, self.0))
    }
    /// The rate times `factor`, rounded to the nearest; negative values give zero.
    pub fn mul_f64(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor + 0.5) as u64)
    }
    /// `self * num / den`, rounded down, in 128 bits.
    pub fn scale(self, num: u64, den: u64) -> Self {
        Self(mul_div(self.0, num, den))
    }
    /// `self / other` as a number.
    pub fn ratio(self, other: Self) -> f64 {
        self.0 as f64 / other.0 as f64
    }
}

impl Add for Rate {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}
impl Sub for Rate {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}
impl Mul<u64> for Rate {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}
impl Div<u64> for Rate {
    type Output = Self;
    /// Rounded down; division by zero gives the highest rate.
    fn div(self, divisor: u64) -> Self {
        Self(self.0.checked_div(divisor).unwrap_or(u64::MAX))
    }
}

const UNITS: &[Unit] = &[
    Unit { names: &["Gbit/s"], size: 1_000_000_000, printed: true },
    Unit { names: &["Mbit/s"], size: 1_000_000, printed: true },
    Unit { names: &["kbit/s"], size: 1_000, printed: true },
    Unit { names: &["bit/s"], size: 1, printed: true },
    Unit { names: &["Gbps"], size: 1_000_000_000, printed: false },
    Unit { names: &["Mbps"], size: 1_000_000, printed: false },
    Unit { names: &["kbps"], size: 1_000, printed: false },
    Unit { names: &["bps"], size: 1, printed: false },
];

impl FromStr for Rate {
    type Err = ParseError;
    /// Reads "12Mbit/s", "1.5 Gbit/s", "300kbit/s", "9600bit/s" (also Mbps and the like).
    fn from_str(text: &str) -> Result<Self, ParseError> {
        text::parse(text, "a rate such as \"12Mbit/s\"", UNITS).map(Self)
    }
}
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        text::print(f, self.0, UNITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rate_and_time_are_inverse() {
        let rate = Rate::from_mbit_per_s(12);
        assert_eq!(rate.time_for(Bytes::new(1500)), Span::from_millis(1));
        assert_eq!(rate.bytes_in(Span::from_millis(1)), Bytes::new(1500));
        assert_eq!(Rate::of(Bytes::new(1500), Span::from_millis(1)), rate);
        assert_eq!(Rate::ZERO.time_for(Bytes::new(1)), Span::MAX);
        assert_eq!(Rate::MAX.bytes_in(Span::MAX), Bytes::MAX);
    }

    #[test]
    fn text_is_exact() {
        for (text, bits, printed) in [
            ("12Mbit/s", 12_000_000, "12Mbit/s"),
            ("1.5 Gbit/s", 1_500_000_000, "1.5Gbit/s"),
            ("9600bit/s", 9_600, "9.6kbit/s"),
            ("24Mbps", 24_000_000, "24Mbit/s"),
        ] {
            let rate: Rate = text.parse().unwrap();
            assert_eq!(rate, Rate::from_bits_per_s(bits), "{text}");
            assert_eq!(rate.to_string(), printed);
        }
    }

    proptest! {
        #[test]
        fn every_rate_survives_printing(bits in any::<u64>()) {
            let rate = Rate::from_bits_per_s(bits);
            prop_assert_eq!(rate.to_string().parse::<Rate>().unwrap(), rate);
        }

        /// Transmission is never faster than the rate, and slower by less than a nanosecond per packet.
        #[test]
        fn serialisation_never_beats_the_rate(bits in 1..u64::MAX / 16, bytes in 1..1u64 << 30) {
            let rate = Rate::from_bits_per_s(bits);
            let span = rate.time_for(Bytes::new(bytes));
            prop_assert!(rate.bytes_in(span) >= Bytes::new(bytes) || span == Span::MAX);
            prop_assert!(rate.bytes_in(span - Span::from_nanos(1)) <= Bytes::new(bytes));
        }
    }
}
