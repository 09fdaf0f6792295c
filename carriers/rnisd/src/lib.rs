//! The Radio Network Information Service as a server: radio information comes in from [`source`]s, and goes out by the interface of
//! ETSI GS MEC 012 and by a feed of one record per TTI.
//!
//! What is published, averaged and encoded is decided in `ranpace-rnis`; here are its sockets, its files and its threads.
#![deny(missing_docs)]

#[cfg(feature = "server")]
pub mod api;
#[cfg(feature = "server")]
pub mod auth;
#[cfg(feature = "server")]
pub mod client;
pub mod clock;
#[cfg(feature = "server")]
pub mod config;
#[cfg(feature = "server")]
pub mod core;
#[cfg(feature = "server")]
pub mod deliver;
#[cfg(feature = "server")]
pub mod feed;
#[cfg(feature = "server")]
pub mod feed_port;
pub mod identity;
#[cfg(feature = "server")]
pub mod metrics;
#[cfg(feature = "server")]
mod mp1;
#[cfg(feature = "server")]
pub mod queue;
#[cfg(feature = "server")]
mod registry;
pub mod seal;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "server")]
pub mod slow;
pub mod source;
#[cfg(feature = "server")]
pub mod state;
#[cfg(feature = "server")]
pub mod store;
#[cfg(feature = "server")]
pub mod subscriptions;
pub mod table;
#[cfg(feature = "server")]
mod tls;
#[cfg(feature = "server")]
pub mod viewer;

// What its users need beside it, in the same versions.
#[cfg(feature = "server")]
pub use {bytes, futures_util, http_body_util, hyper, ipnet, tokio, tokio_tungstenite, url};
