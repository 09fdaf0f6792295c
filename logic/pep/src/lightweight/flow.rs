//! A packet as the PEP sees it, and whose it is.

/// The 5-tuple of a flow, in the direction of its data. IPv4 addresses stand in the last four bytes, the others being zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
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

/// What a packet shows.
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
