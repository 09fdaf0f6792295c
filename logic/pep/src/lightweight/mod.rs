//! The Lightweight PEP: observes packets at the edge of the radio network and reports to their server, on a channel of its own,
//! which of them passed. It alters, delays, buffers and terminates nothing; without it a connection continues unchanged.
//!
//! Sources: Krämer et al., "On the Benefits of Multi-Domain Congestion Control in LTE Networks", section II-C, for the concept; the
//! digests are the power sums of Yuan et al., "Sidekick: In-Network Assistance for Secure End-to-End Transport Protocols" (NSDI
//! 2024), as described in its abstract and public repositories. Messages, keys, limits and report intervals are ours.
//!
//! * [`Pep`]: the flows, their counters, and when a report is due.
//! * [`Gaps`]: the packets of a TCP flow that passed, by sequence number.
//! * [`digest`]: the same for a flow whose packet numbers are encrypted.
//! * [`message`], [`keys`]: the messages, their sealing, and which are refused.
//! * [`Agent`], [`WatchedFlow`], [`SentTags`]: the server's end.

mod agent;
pub mod digest;
mod flow;
mod gaps;
pub mod keys;
mod limit;
pub mod message;
mod pep;
mod sent;
#[cfg(test)]
mod tests;
mod watched;

pub use self::agent::{Agent, AgentStats, Refusal, Verified};
pub use self::flow::{Body, FlowId, Packet, address_bytes};
pub use self::gaps::Gaps;
pub use self::limit::TokenBucket;
pub use self::pep::{Datagram, Pep, PepSettings, PepStats};
pub use self::sent::{Located, SentTags, Unlocated};
pub use self::watched::{Watched, WatchedFlow};
