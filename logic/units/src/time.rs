//! Instants and spans in whole nanoseconds.

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Rem, Sub, SubAssign};
use core::str::FromStr;

use crate::mul_div::mul_div;
use crate::text::{self, ParseError, Unit};

/// An instant, in nanoseconds since the start of the run. Saturates at both ends (584 years).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

/// A length of time in nanoseconds, never negative. Arithmetic saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Self = Self(0);
    /// The last instant; stands for "never" in deadlines.
    pub const MAX: Self = Self(u64::MAX);

    /// The instant `ns` nanoseconds after the start.
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }
    /// The instant `ms` milliseconds after the start.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000_000))
    }
    /// The instant `s` seconds after the start.
    pub const fn from_secs(s: u64) -> Self {
        Self(s.saturating_mul(1_000_000_000))
    }
    /// Nanoseconds since the start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Whole milliseconds since the start, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }
    /// Seconds since the start.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// Time since `earlier`; zero if that is later.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
    /// Time since `earlier`, or `None` if that is later.
    pub fn checked_since(self, earlier: Self) -> Option<Span> {
        self.0.checked_sub(earlier.0).map(Span)
    }
}

impl Span {
    /// The empty span.
    pub const ZERO: Self = Self(0);
    /// The longest span; stands for "forever".
    pub const MAX: Self = Self(u64::MAX);
    /// One second.
    pub const SECOND: Self = Self(1_000_000_000);

    /// `ns` nanoseconds.
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }
    /// `us` microseconds.
    pub const fn from_micros(us: u64) -> Self {
        Self(us.saturating_mul(1_000))
    }
    /// `ms` milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000_000))
    }
    /// `s` seconds.
    pub const fn from_secs(s: u64) -> Self {
        Self(s.saturating_mul(1_000_000_000))
    }
    /// `s` seconds, rounded to the nearest nanosecond; negative values and NaN give zero, values too large [`Span::MAX`].
    pub fn from_secs_f64(s: f64) -> Self {
        // A float-to-integer cast saturates and maps NaN to zero.
        Self((s * 1e9 + 0.5) as u64)
    }
    /// Nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Whole microseconds, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }
    /// Whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }
    /// Seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// Returns whether the span is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
    /// The span times `factor`, rounded to the nearest nanosecond, saturating; negative values give zero.
    pub fn mul_f64(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor + 0.5) as u64)
    }
    /// `self / other` as a number; infinite or NaN if `other` is zero.
    pub fn ratio(self, other: Self) -> f64 {
        self.0 as f64 / other.0 as f64
    }
    /// `self * num / den`, rounded down, in 128 bits.
    pub fn scale(self, num: u64, den: u64) -> Self {
        Self(mul_div(self.0, num, den))
    }
    /// Absolute difference between two spans.
    pub const fn abs_diff(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }
}

impl Add<Span> for Time {
    type Output = Self;
    #[inline]
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}
impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}
impl Sub<Span> for Time {
    type Output = Self;
    #[inline]
    fn sub(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}
impl Sub for Time {
    type Output = Span;
    #[inline]
    fn sub(self, earlier: Self) -> Span {
        self.since(earlier)
    }
}
impl Add for Span {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}
impl AddAssign for Span {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}
impl Sub for Span {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}
impl SubAssign for Span {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}
impl Mul<u64> for Span {
    type Output = Self;
    #[inline]
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}
impl Div<u64> for Span {
    type Output = Self;
    /// Rounded down; division by zero gives the longest span.
    #[inline]
    fn div(self, divisor: u64) -> Self {
        Self(self.0.checked_div(divisor).unwrap_or(u64::MAX))
    }
}
impl Rem for Span {
    type Output = Self;
    /// Zero if `divisor` is zero.
    fn rem(self, divisor: Self) -> Self {
        Self(self.0.checked_rem(divisor.0).unwrap_or(0))
    }
}
impl core::iter::Sum for Span {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

/// Printed units, largest first (zero is printed in the first), then units that are only parsed.
pub(crate) const SPAN_UNITS: &[Unit] = &[
    Unit { names: &["s", "sec"], size: 1_000_000_000, printed: true },
    Unit { names: &["ms"], size: 1_000_000, printed: true },
    Unit { names: &["us", "µs"], size: 1_000, printed: true },
    Unit { names: &["ns"], size: 1, printed: true },
    Unit { names: &["min"], size: 60_000_000_000, printed: false },
    Unit { names: &["h"], size: 3_600_000_000_000, printed: false },
];

impl FromStr for Span {
    type Err = ParseError;
    /// Reads "20ms", "1.5 s", "0s"; units are h, min, s, ms, us and ns.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        text::parse(text, "a time such as \"20ms\"", SPAN_UNITS).map(Self)
    }
}
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        text::print(f, self.0, SPAN_UNITS)
    }
}
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        text::print(f, self.0, SPAN_UNITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn arithmetic_saturates_and_never_wraps() {
        assert_eq!(Time::MAX + Span::SECOND, Time::MAX);
        assert_eq!(Time::from_secs(1) - Span::from_secs(2), Time::ZERO);
        assert_eq!(Time::from_secs(1) - Time::from_secs(2), Span::ZERO);
        assert_eq!(Span::MAX * 2, Span::MAX);
        assert_eq!(Span::SECOND / 0, Span::MAX);
        assert_eq!(Span::from_secs_f64(f64::NAN), Span::ZERO);
        assert_eq!(Span::from_secs_f64(-1.0), Span::ZERO);
        assert_eq!(Span::from_secs_f64(1e300), Span::MAX);
    }

    #[test]
    fn text_is_exact() {
        for (text, nanos, printed) in [
            ("20ms", 20_000_000, "20ms"),
            ("1.5 s", 1_500_000_000, "1.5s"),
            ("0.5us", 500, "500ns"),
            ("2min", 120_000_000_000, "120s"),
            ("0s", 0, "0s"),
            ("1.000000001s", 1_000_000_001, "1.000000001s"),
        ] {
            let span: Span = text.parse().unwrap();
            assert_eq!(span, Span::from_nanos(nanos), "{text}");
            assert_eq!(span.to_string(), printed);
        }
    }

    proptest! {
        #[test]
        fn every_span_survives_printing(ns in any::<u64>()) {
            let span = Span::from_nanos(ns);
            prop_assert_eq!(span.to_string().parse::<Span>().unwrap(), span);
        }
    }
}
