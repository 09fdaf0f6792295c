//! A transparent proxy for Linux, beside the base station or behind the gateway: it splits the TCP connections of cellular users and
//! applies RAPID ([`ranpace_pep::rapid`]) on both sides.
//!
//! A [`Proxy`] is one thread. It redirects new connections of configured networks to itself ([`rules`]), connects to
//! the server in the client's name before it accepts the client ([`opening`]), moves payload without a copy ([`relay`]), and limits
//! the server's window and the sender towards the user by what RAPID decides ([`allocation`]). A second thread reads radio
//! information ([`feed`]), and a third answers questions ([`control`]).
//!
//! The proxy fails open. When its process ends, or hangs for a second, new connections are forwarded as if it were not there.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod alive;
mod allocation;
mod buffers;
pub mod client;
pub mod config;
pub mod control;
mod devices;
mod error;
mod feed;
mod handover;
mod handshakes;
mod legs;
pub mod metrics;
mod netlink;
mod opening;
mod passing;
mod pipes;
pub mod proxy;
mod relay;
mod rights;
mod rules;
mod sender;
pub mod syn;
mod system;
mod users;

pub use config::Config;
pub use error::ProxyError;
pub use proxy::{Proxy, snapshot};
pub use rules::Rules;
