//! Types of identifiers as JSON: numbers, which some senders write as text.

use serde::de::{Error as _, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::IdType;

impl Serialize for IdType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(*self as u8)
    }
}

impl<'de> Deserialize<'de> for IdType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Number::deserialize(deserializer)?.0 {
            0 => Ok(Self::Reserved),
            1 => Ok(Self::UeIpv4),
            2 => Ok(Self::UeIpv6),
            3 => Ok(Self::NatedIp),
            4 => Ok(Self::GtpTeid),
            other => Err(D::Error::invalid_value(Unexpected::Unsigned(other), &"a type from 0 to 4")),
        }
    }
}

/// A number, or a text that begins with one.
pub(crate) struct Number(pub u64);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Number(u64),
            Text(String),
        }
        match Either::deserialize(deserializer)? {
            Either::Number(number) => Ok(Self(number)),
            Either::Text(text) => {
                let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
                let wrong = || D::Error::invalid_value(Unexpected::Str(&text), &"a number");
                text[..end].parse().map(Self).map_err(|_| wrong())
            }
        }
    }
}
