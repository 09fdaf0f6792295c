//! A QUIC endpoint in virtual time: noq-proto, the deployed stack's own core, with our congestion controls behind one
//! adapter.
//!
//! Datagrams, deadlines and the application's writes go in; datagrams and the next deadline come out, as in
//! `ranpace-tcp`. What is simulated is the QUIC that is deployed: loss detection, probe timeouts, acknowledgements, flow
//! control and the pacer are noq's; only the cipher is left out ([`cipher`]), and the clock ([`Clock`]). What noq tells a
//! congestion control, and what it does not, is in `docs/quic.md`.
//!
//! * [`Sender`] and [`Receiver`]: the two ends of a connection that carries data one way, on one stream.
//! * [`Adapter`]: a [`ranpace_cc::CongestionControl`] as noq's controller.
#![forbid(unsafe_code)]

mod adapter;
mod cipher;
mod clock;
mod config;
mod handover;
mod host;
mod receiver;
mod sender;
#[cfg(test)]
mod tests;

pub use adapter::{Adapter, Control, PepView, Stats};
pub use clock::Clock;
pub use config::{Config, Opener};
pub use receiver::Receiver;
pub use sender::{Departure, Sender};
