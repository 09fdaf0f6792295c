//! The Radio Network Information Service as a server: radio information comes in from [`source`]s, and goes out by the interface of
//! ETSI GS MEC 012 and by a feed of one record per TTI.
//!
//! What is published, averaged and encoded is decided in `ranpace-rnis`; here are its sockets, its files and its threads.
#![deny(missing_docs)]

pub mod api;
pub mod auth;
pub mod clock;
pub mod config;
pub mod core;
pub mod deliver;
pub mod feed_port;
pub mod metrics;
mod mp1;
pub mod queue;
pub mod server;
mod slow;
pub mod source;
pub mod state;
pub mod store;
pub mod subscriptions;
mod tls;
pub mod viewer;

// What its users need beside it, in the same versions.
pub use {futures_util, tokio, tokio_tungstenite, url};
