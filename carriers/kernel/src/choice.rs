//! Which sockets of a control group take a control.

use std::net::IpAddr;
use std::str::FromStr;

use crate::error::KernelError;
use crate::layout::Layout;

/// The section of the choice.
pub(crate) const CHOICE: &str = ".data.choice";
const AF_INET: u64 = 2;
const AF_INET6: u64 = 10;

/// Addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
    bits: u8,
}

impl FromStr for Prefix {
    type Err = KernelError;

    fn from_str(text: &str) -> Result<Self, KernelError> {
        let bad = || KernelError::BadPrefix(text.to_owned());
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| bad())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), str::parse).map_err(|_| bad())?;
        if bits > most { Err(bad()) } else { Ok(Self { address, bits }) }
    }
}

/// The control that sockets take, and which peers they must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Name under which the kernel has the control.
    pub name: String,
    /// Connections to and from these addresses alone; all if `None`.
    pub to: Option<Prefix>,
    /// Only sockets whose program has chosen this very control itself, by the socket option TCP_CONGESTION.
    pub own: bool,
}

impl Choice {
    /// The content of the section of the choice.
    pub(crate) fn section(&self, object: &[u8]) -> Result<Vec<u8>, KernelError> {
        let layout = Layout::of(object, CHOICE)?;
        let mut bytes = vec![0; layout.size()];
        let place = layout.bytes(&mut bytes, "choice.name")?;
        let name = self.name.as_bytes();
        place
            .get_mut(..name.len())
            .ok_or_else(|| KernelError::BadName(self.name.clone()))?
            .copy_from_slice(name);
        layout.write(&mut bytes, "choice.own", u64::from(self.own))?;
        if let Some(Prefix { address, bits }) = self.to {
            layout.write(&mut bytes, "choice.family", if address.is_ipv4() { AF_INET } else { AF_INET6 })?;
            layout.write(&mut bytes, "choice.prefix_bits", u64::from(bits))?;
            let place = layout.bytes(&mut bytes, "choice.prefix")?;
            match address {
                IpAddr::V4(v4) => place[..4].copy_from_slice(&v4.octets()),
                IpAddr::V6(v6) => place.copy_from_slice(&v6.octets()),
            }
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_read_or_refused() {
        for text in ["192.0.2.0/24", "192.0.2.1", "::1/128", "2001:db8::/32", "0.0.0.0/0"] {
            assert!(text.parse::<Prefix>().is_ok(), "{text}");
        }
        for text in ["", "192.0.2.0/33", "::/129", "host/8", "192.0.2.0/", "192.0.2.0/-1", "1.2.3/8"] {
            assert!(text.parse::<Prefix>().is_err(), "{text}");
        }
    }
}
