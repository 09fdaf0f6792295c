//! A packet as the PEP sees it, and the flow that it belongs to.

use core::hash::{BuildHasher, Hash, Hasher};
use core::net::{IpAddr, SocketAddr};

use siphasher::sip::SipHasher13;

/// The 5-tuple of a flow, in the direction of its data. IPv4 addresses occupy the last four bytes; the others are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowId {
    /// The server's address.
    pub source: [u8; 16],
    /// The client's address.
    pub destination: [u8; 16],
    /// The server's port.
    pub source_port: u16,
    /// The client's port.
    pub destination_port: u16,
    /// IP protocol: 6 is TCP, 17 UDP.
    pub protocol: u8,
}

impl FlowId {
    /// The flow of packets from `source`, the server's end, to `destination`, the client's. An IPv4 address that an IPv6 one stands for
    /// counts as the IPv4 address.
    pub fn new(source: SocketAddr, destination: SocketAddr, protocol: u8) -> Self {
        Self {
            source: address_bytes(source.ip()),
            destination: address_bytes(destination.ip()),
            source_port: source.port(),
            destination_port: destination.port(),
            protocol,
        }
    }

    /// The 37 bytes that are hashed.
    pub fn to_bytes(&self) -> [u8; 37] {
        let mut bytes = [0; 37];
        bytes[..16].copy_from_slice(&self.source);
        bytes[16..32].copy_from_slice(&self.destination);
        bytes[32..34].copy_from_slice(&self.source_port.to_be_bytes());
        bytes[34..36].copy_from_slice(&self.destination_port.to_be_bytes());
        bytes[36] = self.protocol;
        bytes
    }
}

/// An address as in [`FlowId`].
pub fn address_bytes(address: IpAddr) -> [u8; 16] {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let mut bytes = [0; 16];
            bytes[12..].copy_from_slice(&address.octets());
            bytes
        }
        IpAddr::V6(address) => address.octets(),
    }
}

impl Hash for FlowId {
    /// Writes five words; field by field, the hasher got nine pieces and took twice as long.
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        for address in [&self.source, &self.destination] {
            let (words, _) = address.as_chunks::<8>();
            words.iter().for_each(|word| state.write_u64(u64::from_le_bytes(*word)));
        }
        let ports = u64::from(self.source_port) << 16 | u64::from(self.destination_port);
        state.write_u64(ports | u64::from(self.protocol) << 32);
    }
}

/// Hasher of the flow table: SipHash-1-3 with a secret key, so that outsiders cannot choose flows that collide.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places(pub SipHasher13);

impl BuildHasher for Places {
    type Hasher = SipHasher13;

    #[inline]
    fn build_hasher(&self) -> SipHasher13 {
        self.0
    }
}

/// The part of a packet that the PEP can read.
#[derive(Clone, Copy, Debug)]
pub enum Body<'a> {
    /// A TCP segment.
    Tcp {
        /// Its sequence number.
        seq: u32,
        /// Sequence numbers that it consumes: payload, one for a SYN, one for a FIN.
        length: u32,
        /// It opens the connection.
        syn: bool,
        /// It resets the connection.
        reset: bool,
    },
    /// Encrypted: the datagram's payload, or the part of it that is available (64 bytes are used), and its full length.
    Opaque {
        /// The beginning.
        payload: &'a [u8],
        /// Full length.
        length: u32,
    },
}

/// A packet in the direction of the data.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Its flow.
    pub flow: FlowId,
    /// IP payload in bytes.
    pub bytes: u32,
    /// Whether it carries a congestion mark.
    pub marked: bool,
    /// Its content.
    pub body: Body<'a>,
}
