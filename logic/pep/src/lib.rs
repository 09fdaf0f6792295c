//! The decisions of middleboxes. They take time and events as arguments and return values; a carrier moves the packets.
//!
//! * [`lightweight`]: a proxy that only observes, and reports to servers which of their packets passed.
//! * [`rapid`]: a proxy that splits TCP connections shares a user's radio bandwidth among them by demand.
//! * [`split`]: which connections a proxy splits and what servers may send it, with RAPID or without.
//! * [`uploads`]: how much such a proxy takes from users before servers have been sent it.
//! * [`middlebox`]: middleboxes that decide about packets one by one, as they pass.
//! * [`rewriter`]: middleboxes that change fields of TCP headers, as segments pass.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod lightweight;
pub mod middlebox;
pub mod rapid;
pub mod rewriter;
pub mod split;
pub mod uploads;
