//! A packet as the PEP sees it, and the flow that it belongs to.

use core::hash::{BuildHasher, Hash, Hasher};

use siphasher::sip::SipHasher13;

/// The 5-tuple of a flow, in the direction of its data. IPv4 addresses stand in the last four bytes, the others being zero.
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
    /// As it is hashed: 37 bytes.
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

impl Hash for FlowId {
    /// In five words: field by field it would be told in nine pieces, which took twice as long.
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

/// Places of flows in a table: SipHash-1-3 under a key that nobody outside knows, who could fill one place with flows otherwise.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places(pub SipHasher13);

impl BuildHasher for Places {
    type Hasher = SipHasher13;

    #[inline]
    fn build_hasher(&self) -> SipHasher13 {
        self.0
    }
}

/// What the PEP can read of a packet.
#[derive(Clone, Copy, Debug)]
pub enum Body<'a> {
    /// A TCP segment.
    Tcp {
        /// Its sequence number.
        seq: u32,
        /// Sequence numbers that it takes: payload, one for a SYN, one for a FIN.
        length: u32,
        /// It opens the connection.
        syn: bool,
        /// It ends it at once.
        reset: bool,
    },
    /// Encrypted: the payload of the datagram, or as much of it as is at hand (64 bytes are looked at), and its whole length.
    Opaque {
        /// The beginning.
        payload: &'a [u8],
        /// Length of all of it.
        length: u32,
    },
}

/// A packet of the direction in which the data go.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Whose it is.
    pub flow: FlowId,
    /// IP payload in bytes.
    pub bytes: u32,
    /// Whether it carries a mark of congestion.
    pub marked: bool,
    /// The rest.
    pub body: Body<'a>,
}
