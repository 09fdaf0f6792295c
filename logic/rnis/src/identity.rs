//! How cells, users and networks are identified, as ETSI GS MEC 012 does it. Sources of radio information name them so, and the JSON
//! of both the standard's objects and our lines contains them.

/// A network.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Plmn {
    /// Mobile country code.
    pub mcc: String,
    /// Mobile network code.
    pub mnc: String,
}

/// A cell of E-UTRAN: its global identifier.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "camelCase"))]
pub struct Ecgi {
    /// Its identity, 28 bits as text.
    pub cell_id: String,
    /// Its network.
    pub plmn: Plmn,
}

/// Identifies a user or a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct AssociateId {
    /// Kind of identifier.
    #[cfg_attr(feature = "serde", serde(rename = "type"))]
    pub id_type: IdType,
    /// The identifier.
    pub value: String,
}

/// Kinds of identifiers of a user or a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IdType {
    /// By the user's IPv4 address.
    UeIpv4 = 1,
    /// By its IPv6 address.
    UeIpv6 = 2,
    /// By the address assigned by NAT.
    NatedIp = 3,
    /// By the tunnel endpoint identifier.
    GtpTeid = 4,
}

#[cfg(feature = "serde")]
mod json {
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
                1 => Ok(Self::UeIpv4),
                2 => Ok(Self::UeIpv6),
                3 => Ok(Self::NatedIp),
                4 => Ok(Self::GtpTeid),
                other => Err(D::Error::invalid_value(Unexpected::Unsigned(other), &"a type from 1 to 4")),
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
}

#[cfg(feature = "etsi")]
pub(crate) use json::Number;
