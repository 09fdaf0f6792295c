//! A sans-IO TCP endpoint that behaves as Linux 6.x, or optionally as ns-3.26, and a datagram transport.
//!
//! Segments, deadlines and the application's writes go in; segments and the next deadline come out:
//!
//! * [`Sender`] and [`Receiver`]: the two halves of a TCP connection that carries data one way.
//! * [`DatagramSender`] and [`DatagramReceiver`]: datagrams with feedback for each (Sprout, Verus).
//!
//! The congestion control is any [`ranpace_cc::CongestionControl`].
#![forbid(unsafe_code)]

mod config;
mod datagram;
mod ecn;
mod pacer;
pub mod prefetch;
mod prr;
mod rack;
mod ranges;
mod receiver;
mod rtt;
mod scoreboard;
mod segment;
mod sender;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_ecn;
#[cfg(test)]
mod tests_ignored;

pub use config::{Config, ControlRtt, Growth, Opener, RtoRule, RttSample};
pub use datagram::{DatagramReceiver, DatagramSender, DatagramStats};
pub use ecn::{AccurateEcho, Ace, EcnCounts, EcnFeedback};
pub use pacer::Pacer;
pub use receiver::Receiver;
pub use rtt::Rtt;
pub use segment::{Kind, SackBlock, SackBlocks, Segment};
pub use sender::{PepView, Sender, SenderStats};
