//! Amounts of data in whole bytes.

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};
use core::str::FromStr;

use crate::mul_div::mul_div;
use crate::text::{self, ParseError, Unit};

/// An amount of data in bytes. Arithmetic saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

impl Bytes {
    /// No data.
    pub const ZERO: Self = Self(0);
    /// The largest amount.
    pub const MAX: Self = Self(u64::MAX);

    /// `bytes` bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }
    /// The number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }
    /// The number of bytes as a float.
    pub fn as_f64(self) -> f64 {
        self.0 as f64
    }
    /// Returns whether the amount is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
    /// Number of parts of size `part` needed to hold this, rounded up; [`Bytes::MAX`] if `part` is zero.
    pub fn div_ceil(self, part: u64) -> Self {
        if part == 0 { Self::MAX } else { Self(self.0.div_ceil(part)) }
    }
    /// `self * num / den`, rounded down, in 128 bits.
    pub fn scale(self, num: u64, den: u64) -> Self {
        Self(mul_div(self.0, num, den))
    }
    /// The amount times `factor`, rounded to the nearest; negative values give zero.
    pub fn mul_f64(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor + 0.5) as u64)
    }
}

impl Add for Bytes {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}
impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}
impl Sub for Bytes {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}
impl SubAssign for Bytes {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}
impl Mul<u64> for Bytes {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}
impl Div<u64> for Bytes {
    type Output = Self;
    /// Rounded down; division by zero gives the largest amount.
    fn div(self, divisor: u64) -> Self {
        Self(self.0.checked_div(divisor).unwrap_or(u64::MAX))
    }
}
impl core::iter::Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

const UNITS: &[Unit] = &[
    Unit { names: &["GB"], size: 1_000_000_000, printed: true },
    Unit { names: &["MB"], size: 1_000_000, printed: true },
    Unit { names: &["KB", "kB"], size: 1_000, printed: true },
    Unit { names: &["B"], size: 1, printed: true },
    Unit { names: &["KiB"], size: 1 << 10, printed: false },
    Unit { names: &["MiB"], size: 1 << 20, printed: false },
    Unit { names: &["GiB"], size: 1 << 30, printed: false },
];

impl FromStr for Bytes {
    type Err = ParseError;
    /// Reads "150KB", "1.5 MB", "1500B", "64KiB": B, KB, MB, GB are powers of 1000, KiB and so on of 1024.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        text::parse(text, "a size such as \"150KB\"", UNITS).map(Self)
    }
}
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        text::print(f, self.0, UNITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_is_exact() {
        for (text, bytes, printed) in [
            ("150KB", 150_000, "150KB"),
            ("150kB", 150_000, "150KB"),
            ("1.5 MB", 1_500_000, "1.5MB"),
            ("64KiB", 65_536, "65.536KB"),
            ("1500B", 1_500, "1.5KB"),
            ("0B", 0, "0B"),
        ] {
            let size: Bytes = text.parse().unwrap();
            assert_eq!(size, Bytes::new(bytes), "{text}");
            assert_eq!(size.to_string(), printed);
        }
    }

    proptest! {
        #[test]
        fn every_size_survives_printing(bytes in any::<u64>()) {
            let size = Bytes::new(bytes);
            prop_assert_eq!(size.to_string().parse::<Bytes>().unwrap(), size);
        }
    }
}
