//! A file server over HTTP/3 (noq and h3) and, for comparison, HTTP/1.1 over the kernel's TCP: the same files at the same port number. Each
//! QUIC connection has one of Ranpace's congestion controls, which hears what an RNIS server reports of the client's radio.
//!
//! * [`config`]: what is served, where, and with which controls.
//! * [`server`]: starts and stops it; [`shared`]: what its connections share.
//! * [`files`], [`answer`], [`content`]: which file a request means, what it is answered with, and the bytes of the answer. Both protocols
//!   use them.
//! * [`http3`], [`http1`]: the protocols.
//! * [`control`]: which control a connection gets; [`radio`] and [`pep`]: what it hears; [`samples`]: what it did, on file.
//! * [`certificate`], [`metrics`], [`qlog`].
#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![cfg(target_os = "linux")]

pub mod answer;
pub mod certificate;
pub mod config;
pub mod content;
pub mod control;
pub mod error;
pub mod files;
pub mod http1;
pub mod http3;
pub mod metrics;
pub mod open;
pub mod pep;
pub mod qlog;
pub mod radio;
pub mod samples;
pub mod server;
pub mod shared;
pub mod status;

pub use config::Config;
pub use error::ServeError;
pub use server::Server;
