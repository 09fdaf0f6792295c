//! Identifiers of the standard as the addresses of the table and the feed.

use std::net::{IpAddr, Ipv6Addr};

use ranpace_rnis::etsi::{AssociateId, IdType};
use ranpace_rnis::shared_table::directory::{Address, AddressKind, Identity};

use crate::source::User;

/// The address of an identifier; `None` for a tunnel, and for a text that is no address.
pub fn address(id: &AssociateId) -> Option<Address> {
    let kind = match id.id_type {
        IdType::UeIpv4 => AddressKind::Ipv4,
        IdType::UeIpv6 => AddressKind::Ipv6,
        IdType::NatedIp => AddressKind::Nated,
        IdType::GtpTeid | IdType::Reserved => return None,
    };
    Some(Address { kind, bytes: bytes(id.value.parse().ok()?) })
}

/// The bytes of an address; IPv4 is mapped.
pub fn bytes(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
    .octets()
}

/// The address of these bytes.
pub fn ip(address: &Address) -> IpAddr {
    IpAddr::V6(Ipv6Addr::from(address.bytes)).to_canonical()
}

/// What the table and the feed keep of a user: its name, and those of its identifiers that are addresses.
pub fn of(user: &User) -> Identity {
    Identity { name: user.name.clone(), addresses: user.ids.iter().filter_map(address).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_again_and_tunnels_have_none() {
        let id = |id_type, value: &str| AssociateId { id_type, value: value.to_owned() };
        for (given, expected) in [
            (id(IdType::UeIpv4, "10.77.0.2"), Some((AddressKind::Ipv4, "10.77.0.2"))),
            (id(IdType::UeIpv6, "fd00::2"), Some((AddressKind::Ipv6, "fd00::2"))),
            (id(IdType::NatedIp, "192.0.2.7"), Some((AddressKind::Nated, "192.0.2.7"))),
            (id(IdType::UeIpv4, "phone"), None),
            (id(IdType::GtpTeid, "10.77.0.2"), None),
        ] {
            let found = address(&given);
            assert_eq!(
                found.map(|found| (found.kind, ip(&found).to_string())),
                expected.map(|(kind, text)| (kind, text.to_owned()))
            );
        }
    }
}
