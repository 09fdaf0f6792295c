//! The feed of radio information between hosts: authenticated datagrams, one or a few per TTI and subscriber.
//!
//! A server sends each subscriber the reports of [`wire`](crate::wire) (version 2), each in an envelope ([`message`]) that a carrier
//! encrypts and authenticates with the subscription's key. At the server, [`sender`] decides who gets which report, and [`session`]
//! to whom anything is sent at all. At the subscriber, [`lease`] keeps the subscription alive, [`receiver`] accepts what comes: lost and
//! repeated datagrams, a restarted server, and the age of each value on its own clock ([`clock`]); [`view`] has the values with
//! the names and addresses of users ([`entries`]). Ours.
//!
//! # Exchange
//!
//! 1. The server sends a [`Hello`](message::Hello) with a cookie to the subscription's address, ten times a second, until it is
//!    answered or [`SILENCE`] has passed; later once a second.
//! 2. The subscriber sends a [`Request`](message::Request) with that cookie. Only an address that returns cookies gets reports: a
//!    subscription cannot direct a feed at a stranger.
//! 3. The server's [`Answer`](message::Answer) repeats the request's time. It proves that the server's epoch is the present one, so
//!    that datagrams recorded under an earlier epoch are worthless, and its times yield the offset of the clocks.
//! 4. Reports and directories follow. Requests go on, once a second; without them the feed stops after [`SILENCE`].
//!
//! Each start of a server or of a subscriber is an epoch with keys of its own, so that no key is ever used twice with one nonce.

pub mod clock;
pub mod entries;
pub mod lease;
pub mod message;
pub mod receiver;
pub mod sender;
pub mod session;
#[cfg(test)]
mod tests;
pub mod view;

use ranpace_units::Span;

/// A subscriber that has sent no request for so long gets no more reports.
pub const SILENCE: Span = Span::from_secs(10);
/// A cookie is replaced after this time; the one before it still counts.
pub const COOKIE_LIFE: Span = Span::from_secs(10);
/// Between hellos and between requests, until an exchange has succeeded.
pub const IMPATIENT: Span = Span::from_millis(100);
/// Between hellos, between requests, and between two copies of the directory, later.
pub const CALM: Span = Span::SECOND;
/// An address that has not answered for so long is invited less often.
pub const PATIENCE: Span = Span::from_secs(60);
/// Between hellos to such an address.
pub const RARE: Span = Span::from_secs(30);
/// Bytes of a subscription's key.
pub const KEY_BYTES: usize = 32;
/// Largest datagram, seal included, without UDP and IP headers: one frame of Ethernet also over IPv6.
pub const MOST_BYTES: usize = 1452;
/// Most bytes of a message before it is sealed.
pub const MOST_BODY_BYTES: usize = MOST_BYTES - message::HEADER_BYTES - message::TAG_BYTES;
