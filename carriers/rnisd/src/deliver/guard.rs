//! Where callbacks may go: to public addresses, and to those that the configuration allows. A name is resolved here, and the connection
//! goes to the address that was checked, so that it cannot change between.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use tokio::sync::Semaphore;
use url::{Host, Url};

/// Why an address is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GuardError {
    /// The address has another scheme.
    #[error("expected http:// or https://, found {0}://")]
    Scheme(String),
    /// The address has no host, or a user and password.
    #[error("expected a host and no user or password in {0}")]
    Host(String),
    /// The configuration does not allow it.
    #[error("{0} is neither public nor in `callbacks.allow` of the server's configuration")]
    Forbidden(IpAddr),
    /// The name is unknown.
    #[error("{name}: {reason}")]
    Unknown {
        /// The name.
        name: String,
        /// The resolver's reason.
        reason: String,
    },
}

/// Whether an address is public: assigned for use in the whole internet. RFC 6890.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(inner) => is_public_v4(inner),
            None => is_public_v6(address),
        },
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !matches!(
        (a, b, c),
        (0 | 10 | 127 | 224..=255, ..)
            | (100, 64..=127, _)
            | (169, 254, _)
            | (172, 16..=31, _)
            | (192, 0, 0 | 2)
            | (192, 88, 99)
            | (192, 168, _)
            | (198, 18 | 19, _)
            | (198, 51, 100)
            | (203, 0, 113)
    )
}

/// Global unicast, without documentation and the tunnels that contain an IPv4 address (Teredo, 6to4).
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    (0x2000..0x4000).contains(&a)
        && a != 0x2002
        && !(a == 0x2001 && (b < 0x200 || b == 0xdb8))
        && !(a == 0x3fff && b < 0x1000)
}

/// Names that are resolved at a time: each takes a thread, for many seconds if the name's servers do not answer, and the threads are
/// shared with the disk. Ours.
const LOOKUPS: usize = 64;

/// The guard.
#[derive(Clone, Debug)]
pub struct Guard {
    allow: Vec<IpNet>,
    lookups: Arc<Semaphore>,
}

impl Default for Guard {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl Guard {
    /// Allows these networks beside public addresses.
    pub fn new(allow: Vec<IpNet>) -> Self {
        Self { allow, lookups: Arc::new(Semaphore::new(LOOKUPS)) }
    }

    /// Allows everything: for addresses that whoever runs the program has named.
    pub fn everywhere() -> Self {
        let allow = [IpNet::from(Ipv4Net::default()), IpNet::from(Ipv6Net::default())];
        Self::new(allow.into())
    }

    /// Whether callbacks may go there.
    pub fn permits(&self, address: IpAddr) -> bool {
        let plain = match address {
            IpAddr::V6(inner) => inner.to_ipv4_mapped().map_or(address, IpAddr::V4),
            IpAddr::V4(_) => address,
        };
        is_public(plain) || self.allow.iter().any(|network| network.contains(&plain))
    }

    /// Checks what can be checked without resolving a name.
    ///
    /// # Errors
    ///
    /// If callbacks may not go there.
    pub fn check(&self, url: &Url) -> Result<(), GuardError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(GuardError::Scheme(url.scheme().to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(GuardError::Host(url.to_string()));
        }
        let address = match url.host() {
            Some(Host::Ipv4(address)) => IpAddr::V4(address),
            Some(Host::Ipv6(address)) => IpAddr::V6(address),
            // A name of the domain name system has at most 253 characters; RFC 1035, 2.3.4.
            Some(Host::Domain(name)) if (1..=253).contains(&name.len()) => return Ok(()),
            _ => return Err(GuardError::Host(url.to_string())),
        };
        if self.permits(address) { Ok(()) } else { Err(GuardError::Forbidden(address)) }
    }

    /// Addresses of a callback to connect to, all of which are permitted.
    ///
    /// # Errors
    ///
    /// If there are none.
    pub async fn resolve(&self, url: &Url) -> Result<Vec<SocketAddr>, GuardError> {
        self.check(url)?;
        let port = url.port_or_known_default().unwrap_or(80);
        let name = match url.host() {
            Some(Host::Ipv4(address)) => return Ok(vec![SocketAddr::from((address, port))]),
            Some(Host::Ipv6(address)) => return Ok(vec![SocketAddr::from((address, port))]),
            Some(Host::Domain(name)) => name.to_owned(),
            None => return Err(GuardError::Host(url.to_string())),
        };
        let unknown = |reason: String| GuardError::Unknown { name: name.clone(), reason };
        let permit = Arc::clone(&self.lookups).acquire_owned().await;
        let host = name.clone();
        // The permit goes with the thread: a caller that no longer waits does not end the lookup.
        let looked_up = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            (host.as_str(), port).to_socket_addrs().map(Iterator::collect::<Vec<SocketAddr>>)
        });
        let all = looked_up
            .await
            .map_err(|error| unknown(error.to_string()))?
            .map_err(|error| unknown(error.to_string()))?;
        let first = all.first().ok_or_else(|| unknown("no address".to_owned()))?.ip();
        let permitted: Vec<SocketAddr> = all.into_iter().filter(|one| self.permits(one.ip())).collect();
        if permitted.is_empty() { Err(GuardError::Forbidden(first)) } else { Ok(permitted) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_and_allowed_addresses_are_permitted() {
        let guard = Guard::new(vec!["10.1.0.0/16".parse().unwrap(), "fd00::/8".parse().unwrap()]);
        for (address, expected) in [
            ("9.9.9.9", true),
            ("10.1.2.3", true),
            ("10.2.2.3", false),
            ("127.0.0.1", false),
            ("0.0.0.0", false),
            ("169.254.169.254", false),
            ("172.31.0.1", false),
            ("192.168.1.1", false),
            ("100.64.0.1", false),
            ("255.255.255.255", false),
            ("224.0.0.1", false),
            ("::1", false),
            ("::", false),
            ("fe80::1", false),
            ("fc00::1", false),
            ("fd12::1", true),
            ("::ffff:127.0.0.1", false),
            ("::ffff:10.1.0.1", true),
            ("::ffff:9.9.9.9", true),
            ("64:ff9b::7f00:1", false),
            ("2002:7f00:1::", false),
            ("2001:0:7f00:1::", false),
            ("2001:db8::1", false),
            ("2606:4700::1111", true),
        ] {
            assert_eq!(guard.permits(address.parse().unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn everywhere_is_everywhere() {
        for address in ["9.9.9.9", "127.0.0.1", "::1", "::ffff:10.0.0.1"] {
            assert!(Guard::everywhere().permits(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn tricks_in_addresses_are_refused() {
        let guard = Guard::default();
        for (text, expected) in [
            ("http://example.com/a", true),
            ("https://9.9.9.9:8443/a", true),
            ("http://127.1/", false),
            ("http://2130706433/", false),
            ("http://0x7f.0.0.1/", false),
            ("http://[::1]:80/", false),
            ("http://user@example.com/", false),
            ("ftp://example.com/", false),
            ("file:///etc/passwd", false),
            ("gopher://example.com/", false),
        ] {
            assert_eq!(guard.check(&text.parse().unwrap()).is_ok(), expected, "{text}");
        }
    }
}
