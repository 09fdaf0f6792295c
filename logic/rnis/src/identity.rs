//! How cells, users and networks are identified, as ETSI GS MEC 012 does it. Sources of radio information name them so, and the JSON
//! of both the standard's objects and our lines contains them.

#[cfg(feature = "serde")]
mod json;

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
    /// Reserved by the standard: nobody has such an identifier.
    Reserved = 0,
    /// By the user's IPv4 address.
    UeIpv4 = 1,
    /// By its IPv6 address.
    UeIpv6 = 2,
    /// By the address assigned by NAT.
    NatedIp = 3,
    /// By the tunnel endpoint identifier.
    GtpTeid = 4,
}

#[cfg(feature = "etsi")]
pub(crate) use json::Number;
