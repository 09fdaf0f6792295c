//! The radio cell: channel, link adaptation, HARQ, RLC, scheduler and uplink grants, for LTE and NR.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod above_rlc;
pub mod cell;
pub mod channel;
pub mod harq;
pub mod network;
pub mod rlc;
pub mod scheduler;
pub mod uplink;
