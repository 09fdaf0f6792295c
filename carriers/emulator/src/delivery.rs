//! The ways of handing packets over to hosts.

/// The way in which packets are handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// One by one. Those of one connection that are due at one awakening cross to the host's kernel in one GSO packet ([`crate::gro::Coalescer`]), which it
    /// cuts before it receives it, if it can.
    #[default]
    Gso,
    /// One by one, each written by itself.
    Single,
    /// Packets of one connection that are due at one awakening in one GSO packet.
    Gro,
}
