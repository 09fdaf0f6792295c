//! The settings of QUIC.

use core::ops::RangeInclusive;

use ranpace_quic::{Config, Opener};
use ranpace_units::{Bytes, Span};

use crate::key::{Duration, Flag, Group, Key, Open, Size, Whole, Within, Words};
use crate::limits::LEAST_SPAN;

/// Accepted receive windows: at least an Ethernet packet.
const WINDOW: RangeInclusive<Bytes> = Bytes::new(1_500)..=Bytes::new(1 << 40);

pub(super) const MTU: Key<Size> = Key {
    name: "mtu",
    kind: Within(Config::LEAST_MTU..=Bytes::new(65_535)),
    default: Open("`\"1500B\"`"),
    about: "largest IP packet; known from the start, without path MTU discovery",
};
pub(super) const INITIAL_WINDOW: Key<Whole<u32>> = Key {
    name: "initial_window",
    kind: Whole::new(1..=65_535),
    default: Open("`10`"),
    about: "initial congestion window, in packets",
};
pub(super) const MAX_DATA: Key<Size> = Key {
    name: "max_data",
    kind: Within(WINDOW),
    default: Open("`\"2MB\"`"),
    about: "receive window of the connection, without autotuning. For more than 2.4 MB see below",
};
pub(super) const MAX_STREAM_DATA: Key<Size> = Key {
    name: "max_stream_data",
    kind: Within(WINDOW),
    default: Open("as `max_data`"),
    about: "receive window of the stream",
};
pub(super) const ACK_EVERY: Key<Whole<u32>> = Key {
    name: "ack_every",
    kind: Whole::new(1..=1_000),
    default: Open("2, without a request; or what the algorithm requests (`vivace`: 1)"),
    about: "ack-eliciting packets per acknowledgement; a value is requested from the receiver by an ACK_FREQUENCY frame",
};
pub(super) const ACK_DELAY: Key<Duration> = Key {
    name: "ack_delay",
    kind: Within(LEAST_SPAN..=Span::from_secs(10)),
    default: Open("25 ms, without a request"),
    about: "maximum delay of an acknowledgement, requested likewise; noq limits it to the RTT, but not below 25 ms",
};
pub(super) const ECN: Key<Flag> = Key {
    name: "ecn",
    kind: Flag,
    default: Open("`false`"),
    about: "on for algorithms whose marks noq counts (`prague`)",
};
pub(super) const PACING: Key<Flag> = Key {
    name: "pacing",
    kind: Flag,
    default: Open("`true`"),
    about: "noq's pacer, for algorithms that set no rate",
};
pub(super) const OPENER: Key<Words<Opener>> = Key {
    name: "opener",
    kind: Words(&[("sender", Opener::Sender), ("receiver", Opener::Receiver)]),
    default: Open("`\"sender\"`"),
    about: "which side is the client: the data's `\"sender\"`, or its `\"receiver\"`, whose request is sent with the \
            handshake's last flight",
};
pub(super) const CERTIFICATES: Key<Size> = Key {
    name: "certificates",
    kind: Within(Bytes::ZERO..=Bytes::new(12_000)),
    default: Open("`\"2000B\"`"),
    about: "size of the server's certificates, sent in its first flight",
};

/// The settings of QUIC.
pub(crate) const KEYS: Group = &[
    &MTU,
    &INITIAL_WINDOW,
    &MAX_DATA,
    &MAX_STREAM_DATA,
    &ACK_EVERY,
    &ACK_DELAY,
    &ECN,
    &PACING,
    &OPENER,
    &CERTIFICATES,
];
