//! Downloads that are measured: HTTP/3 over QUIC with any of Ranpace's congestion controls, or HTTP/1.1 over the kernel's TCP.
//!
//! Each download has a connection of its own, so that handshake, first byte and end are times of the same thing every time. Over
//! QUIC the receiver's half of a client-driven control may measure and report ([`ranpace_noq::reports`]).
//!
//! * [`fetch()`]: one download; [`Options`] says how, [`Measured`] is what came out.
//! * [`target`]: URLs; [`trust`]: which certificates are believed; [`answer`]: what a server's answer promises.
//! * [`output`]: where the content goes. A file has its name only when it is whole.
#![forbid(unsafe_code)]

mod addresses;
pub mod answer;
mod content;
mod error;
mod fetch;
mod http1;
mod http3;
mod meters;
mod options;
pub mod output;
mod rate;
pub mod target;
pub mod trust;

pub use error::FetchError;
pub use fetch::{Measured, fetch};
pub use meters::Meters;
pub use options::{Http, Options};
pub use rate::Rates;
