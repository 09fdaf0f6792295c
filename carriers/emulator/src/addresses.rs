//! Addresses of hosts. All hosts are neighbours in one IPv4 and one IPv6 network, so no namespace needs a route other than its
//! device's.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Most hosts with namespaces. Ours: devices are created one after another, in about 10 ms each.
pub const MOST_HOSTS: usize = 200;
/// Prefix of the IPv4 network, 10.77.0.0. Ours.
pub const PREFIX_V4: u8 = 16;
/// Prefix of the IPv6 network, fd72:616e:7061:6365:: (RFC 4193 section 3: unique local; "ranpace" in ASCII).
pub const PREFIX_V6: u8 = 64;

/// IPv4 address of the host with this number: 10.77.0.1, 10.77.0.2 ...
pub fn v4(host: usize) -> Ipv4Addr {
    // There are fewer hosts than that.
    let [high, low] = (host as u16 + 1).to_be_bytes();
    Ipv4Addr::new(10, 77, high, low)
}

/// IPv6 address of the host with this number: fd72:616e:7061:6365::1 and so on.
pub fn v6(host: usize) -> Ipv6Addr {
    Ipv6Addr::new(0xfd72, 0x616e, 0x7061, 0x6365, 0, 0, 0, host as u16 + 1)
}

/// The number of the host with this address.
#[inline]
pub fn host_of(address: IpAddr) -> Option<usize> {
    let number = match address {
        IpAddr::V4(address) => match address.octets() {
            [10, 77, high, low] => u16::from_be_bytes([high, low]),
            _ => return None,
        },
        IpAddr::V6(address) => match address.segments() {
            [0xfd72, 0x616e, 0x7061, 0x6365, 0, 0, 0, number] => number,
            _ => return None,
        },
    };
    usize::from(number).checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_its_host() {
        for host in [0, 1, 199, 254, 255, 60_000] {
            assert_eq!(host_of(v4(host).into()), Some(host));
            assert_eq!(host_of(v6(host).into()), Some(host));
        }
        for other in ["10.78.0.1", "10.77.0.0", "255.255.255.255", "fe80::1", "ff02::2", "::1"] {
            assert_eq!(host_of(other.parse().expect("an address")), None, "{other}");
        }
    }
}
