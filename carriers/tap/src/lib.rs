//! The Lightweight PEP on the packets of this host, and the agent of a server that hears it.
//!
//! Every decision is that of `ranpace_pep::lightweight`, the object that the simulator and the emulator play too. Here are:
//!
//! * [`config`]: the files of both, with all their faults at once.
//! * [`packet`]: what a copy of a packet says.
//! * [`agent`]: the server's end: it subscribes, and returns what genuine messages say; [`quic`]: the same for a QUIC server, by packets.
//! * `tap`, `daemon` (with the feature `bpf`): copies of the packets that pass devices of this host, and the PEP that counts them.
//! * [`metrics`]: what the PEP counts, for Prometheus.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![cfg(target_os = "linux")]

pub mod agent;
pub mod clock;
pub mod config;
#[cfg(feature = "bpf")]
pub mod daemon;
pub mod metrics;
pub mod packet;
pub mod quic;
#[cfg(feature = "bpf")]
pub mod tap;
