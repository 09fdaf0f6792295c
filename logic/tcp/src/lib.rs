//! A sans-IO TCP endpoint that behaves as Linux 6.x, and a datagram transport beside it.
#![forbid(unsafe_code)]

mod config;

pub use config::{Config, Opener};
