//! Time, spans of time, data rates and amounts of data as types that cannot be mixed up.
//!
//! All are unsigned 64-bit integers: nanoseconds ([`Time`], [`Span`]), bits per second ([`Rate`]) and
//! bytes ([`Bytes`]). **Arithmetic saturates**: a sum that does not fit is the largest value, a
//! difference below zero is zero; it never wraps. Text ("20ms", "12Mbit/s", "150KB") is parsed and
//! printed exactly: a number that does not fit its unit exactly is an error, never rounded.
#![forbid(unsafe_code)]

mod bytes;
mod rate;
mod text;
mod time;

pub use bytes::Bytes;
pub use rate::Rate;
pub use text::ParseError;
pub use time::{Span, Time};

/// `a * b / c` in 128 bits, rounded down; [`u64::MAX`] where it does not fit or `c` is zero.
#[inline]
pub(crate) fn mul_div(a: u64, b: u64, c: u64) -> u64 {
    match a.checked_mul(b) {
        Some(product) if c != 0 => product / c,
        _ if c == 0 => u64::MAX,
        _ => u64::try_from(u128::from(a) * u128::from(b) / u128::from(c)).unwrap_or(u64::MAX),
    }
}

/// As [`mul_div`], rounded up.
#[inline]
pub(crate) fn mul_div_up(a: u64, b: u64, c: u64) -> u64 {
    match a.checked_mul(b) {
        Some(product) if c != 0 => product.div_ceil(c),
        _ if c == 0 => u64::MAX,
        _ => u64::try_from((u128::from(a) * u128::from(b)).div_ceil(u128::from(c))).unwrap_or(u64::MAX),
    }
}
