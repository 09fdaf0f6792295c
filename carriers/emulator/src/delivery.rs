//! How packets are delivered to hosts.

/// How packets are delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// One by one. Packets of one connection that are due at one wakeup cross to the host's kernel in one GSO packet
    /// ([`crate::gro::Coalescer`]), which the kernel segments before it receives it, if it can.
    #[default]
    Gso,
    /// One by one, each in a write of its own.
    Single,
    /// Packets of one connection that are due at one wakeup in one GSO packet.
    Gro,
}
