//! The Lightweight PEP: watches packets where the radio begins and tells their server which of them came by, on a channel of its
//! own. It alters, delays, buffers and terminates nothing, and a connection goes on unchanged without it.
//!
//! Sources: Krämer et al., "On the Benefits of Multi-Domain Congestion Control in LTE Networks", section II-C, for what it is;
//! the digests are the power sums of Yuan et al., "Sidekick: In-Network Assistance for Secure End-to-End Transport Protocols"
//! (NSDI 2024), as its abstract and its public repositories show them. Messages, keys, limits and the rhythm of reports are
//! ours.
//!
//! * [`Pep`]: flows, counters, when a report is due.
//! * [`Gaps`]: what of a TCP flow came by, by its sequence numbers.
//! * [`digest`]: the same of a flow whose packet numbers are encrypted.
//! * [`message`], [`keys`]: what travels, sealed, and what is refused.
//! * [`Agent`], [`SentTags`]: the server's end.

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

pub use self::agent::{Agent, AgentStats, Refusal, Verified};
pub use self::flow::{Body, FlowId, Packet};
pub use self::gaps::Gaps;
pub use self::limit::TokenBucket;
pub use self::pep::{Datagram, Pep, PepSettings, PepStats};
pub use self::sent::{Located, SentTags, Unlocated};
