//! A QUIC endpoint in virtual time: noq-proto, the deployed stack's own core, with our congestion controls behind one
//! adapter.
//!
//! Datagrams, deadlines and the application's writes go in; datagrams and the next deadline come out, as in `ranpace-tcp`.
//! The simulation uses the deployed QUIC code: loss detection, probe timeouts, acknowledgements, flow control and the pacer
//! are noq's; only the cipher ([`cipher`]) and the clock ([`Clock`]) are replaced. `docs/quic.md` describes what noq reports
//! to a congestion control and what it does not.
//!
//! * [`Sender`] and [`Receiver`]: the two ends of a connection that carries data one way, on one stream.
//! * [`Adapter`]: a [`ranpace_cc::CongestionControl`] as noq's controller.
//! * [`Controls`]: a control for each connection of a program.
//! * [`reports`]: what a receiver's half reports, in DATAGRAM frames.
//! * [`Sample`]: a control at one instant, for records over time.
#![forbid(unsafe_code)]

mod adapter;
mod cipher;
mod clock;
mod config;
mod controls;
mod handover;
mod host;
mod marks;
mod receiver;
pub mod reports;
mod sample;
mod sender;
#[cfg(test)]
mod tests;

pub use adapter::{Adapter, Control, PepView, Stats};
pub use clock::Clock;
pub use config::{Config, Opener};
pub use controls::Controls;
pub use receiver::Receiver;
pub use sample::Sample;
pub use sender::{Departure, Sender};
