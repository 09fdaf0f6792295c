//! Values with units, addresses, and others that are written as text.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use ipnet::IpNet;
use ranpace_units::{Bytes, Span};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

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

/// Addresses and networks. Their parsers say neither what was expected nor what came.
pub trait Address: FromStr {
    /// What is expected.
    const EXPECTED: &'static str;
}

impl Address for IpAddr {
    const EXPECTED: &'static str = "an IP address, such as \"192.0.2.1\" or \"2001:db8::1\"";
}

impl Address for SocketAddr {
    const EXPECTED: &'static str =
        "an IP address and a port, such as \"192.0.2.1:8012\" or \"[2001:db8::1]:8012\"";
}

impl Address for IpNet {
    const EXPECTED: &'static str = "a network, such as \"10.45.0.0/16\" or \"2001:db8::/32\"";
}

/// An address, for `#[serde(deserialize_with)]`.
///
/// # Errors
///
/// If it is no text, or cannot be parsed.
pub fn address<'de, D: Deserializer<'de>, T: Address>(deserializer: D) -> Result<T, D::Error> {
    let text = deserializer.deserialize_str(Text(T::EXPECTED))?;
    text.parse().map_err(|_| D::Error::custom(format!("expected {}, found {text:?}", T::EXPECTED)))
}

/// The same for a key that may be missing.
///
/// # Errors
///
/// As of [`address`].
pub fn optional_address<'de, D: Deserializer<'de>, T: Address>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    address(deserializer).map(Some)
}

/// A list of addresses.
///
/// # Errors
///
/// As of [`address`].
pub fn addresses<'de, D: Deserializer<'de>, T: Address>(deserializer: D) -> Result<Vec<T>, D::Error> {
    struct Entry<T>(T);
    impl<'de, T: Address> Deserialize<'de> for Entry<T> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            address(deserializer).map(Self)
        }
    }
    Ok(Vec::<Entry<T>>::deserialize(deserializer)?.into_iter().map(|entry| entry.0).collect())
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
