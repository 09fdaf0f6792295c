//! What a middlebox decides. It gets time and events as arguments and gives values back; packets are a carrier's.
//!
//! * [`lightweight`]: a proxy that only watches, and tells servers which of their packets came by.
//! * [`rapid`]: a proxy that splits TCP connections shares a user's radio bandwidth among them by demand.
//! * [`split`]: which connections a proxy splits and what servers may send it, with RAPID or without.
//! * [`middlebox`]: what decides about packets one by one, as they pass.
//! * [`RightEdge`]: a receive window as it may be advertised, for whoever imposes one.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod lightweight;
pub mod middlebox;
pub mod rapid;
mod right_edge;
pub mod split;

pub use right_edge::RightEdge;
