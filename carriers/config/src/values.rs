//! Values with units, and others that are written as text.

use std::fmt;
use std::str::FromStr;

use ranpace_units::{Bytes, Span};
use serde::Deserializer;
use serde::de::{Error, Visitor};

/// A time with its unit, for `#[serde(deserialize_with)]`.
///
/// # Errors
///
/// If it is no text, or has no unit that is known.
pub fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
    parsed(deserializer, "a time with its unit, such as \"10s\"")
}

/// A size with its unit, for `#[serde(deserialize_with)]`.
///
/// # Errors
///
/// As of [`time`].
pub fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    parsed(deserializer, "a size with its unit, such as \"64KB\"")
}

/// A text that is parsed; `expected` says in errors what it should be.
///
/// # Errors
///
/// If it is no text, or cannot be parsed.
pub fn parsed<'de, D, T>(deserializer: D, expected: &'static str) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: fmt::Display>,
{
    deserializer.deserialize_str(Text(expected))?.parse().map_err(D::Error::custom)
}

/// Takes a text; anything else is an error with what was expected.
struct Text(&'static str);

impl Visitor<'_> for Text {
    type Value = String;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }
}
