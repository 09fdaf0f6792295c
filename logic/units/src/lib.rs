//! Time, spans of time, data rates and amounts of data as types that cannot be mixed up, and the ECN code point of a packet.
//!
//! The former are unsigned 64-bit integers: nanoseconds ([`Time`], [`Span`]), bits per second ([`Rate`]) and
//! bytes ([`Bytes`]). **Arithmetic saturates**: a sum that does not fit is the largest value, a
//! difference below zero is zero; it never wraps. Text ("20ms", "12Mbit/s", "150KB") is parsed and
//! printed exactly: a number that does not fit its unit exactly is an error, never rounded.
#![forbid(unsafe_code)]

mod bytes;
mod ecn;
mod mul_div;
mod rate;
mod text;
mod time;

pub use bytes::Bytes;
pub use ecn::Ecn;
pub use rate::Rate;
pub use text::ParseError;
pub use time::{Span, Time};
