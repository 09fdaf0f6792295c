//! The settings of TCP. The defaults are those of Linux 6.18; `stack` changes them.

use ranpace_tcp::{Ace, ControlRtt, EcnFeedback, Growth, Opener, RtoRule, RttSample};
use ranpace_units::{Bytes, Span};

use crate::key::{By, Duration, Flag, Group, Is, Key, Open, Size, Whole, Within, WordOr, Words};
use crate::limits::LEAST_SPAN;
use crate::reader::Field;

/// Shortest timeout: a tick of Linux's fastest clock (HZ = 1000), the unit of its TCP timers. Connections with shorter timeouts
/// would spend most of their time in timeouts.
const LEAST_TIMEOUT: Span = Span::from_millis(1);
/// Longest accepted time. Ours.
const MOST_TIME: Span = Span::from_secs(3_600);
/// Largest window that TCP can announce (RFC 7323 section 2.3).
const MOST_WINDOW: Bytes = Bytes::new(1 << 30);

/// Values of `stack`.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Stack {
    Linux,
    Ns3,
}

/// RFC 3168's feedback, or none.
fn read_ecn(field: &Field<'_>) -> Option<EcnFeedback> {
    field.flag().map(|on| if on { EcnFeedback::Classic } else { EcnFeedback::Off })
}

pub(crate) const MTU: Key<Size> = Key {
    name: "mtu",
    kind: Within(Bytes::new(100)..=Bytes::new(65_535)),
    default: Open("`\"1500B\"`"),
    about: "largest IP packet",
};
pub(super) const INITIAL_WINDOW: Key<Whole<u32>> = Key {
    name: "initial_window",
    kind: Whole::new(1..=65_535),
    default: Open("`10`"),
    about: "initial congestion window, in segments",
};
pub(super) const TIMESTAMPS: Key<Flag> = Key {
    name: "timestamps",
    kind: Flag,
    default: Open("`true`"),
    about: "timestamps option, 12 bytes on every segment",
};
pub(super) const ECN: Key<WordOr<By<EcnFeedback>>> = Key {
    name: "ecn",
    kind: WordOr("accurate", By("`true`, `false`", read_ecn)),
    default: Open("`false`; `\"accurate\"` for algorithms that count marks (`prague`, `abc`)"),
    about: "ECN: RFC 3168's feedback, or AccECN's, which counts marks",
};
pub(super) const ACE: Key<Words<Ace>> = Key {
    name: "ace",
    kind: Words(&[("exact", Ace::Exact), ("wire", Ace::Wire)]),
    default: Open("`\"exact\"`"),
    about: "how accurate feedback is read: exactly, or from the three bits of the header as RFC 9768 says",
};
pub(super) const ECN_OPTION: Key<Flag> = Key {
    name: "ecn_option",
    kind: Flag,
    default: Open("`false`"),
    about: "adds AccECN's option, 12 bytes, to acknowledgements with room for it",
};
pub(super) const ACK_EVERY: Key<Whole<u32>> = Key {
    name: "ack_every",
    kind: Whole::new(1..=1_000),
    default: Open("`2`, or what the algorithm asks for (`vivace`: `1`)"),
    about: "segments per acknowledgement",
};
pub(super) const ACK_DELAY: Key<Duration> = Key {
    name: "ack_delay",
    kind: Within(Span::ZERO..=MOST_TIME),
    default: Open("`\"40ms\"`"),
    about: "maximum delay of an acknowledgement",
};
pub(super) const QUICK_ACKS: Key<Whole<u32>> = Key {
    name: "quick_acks",
    kind: Whole::new(0..=65_535),
    default: Open("`16`"),
    about: "segments acknowledged immediately at the start",
};
pub(super) const MIN_RTO: Key<Duration> = Key {
    name: "min_rto",
    kind: Within(LEAST_TIMEOUT..=MOST_TIME),
    default: Open("`\"200ms\"`"),
    about: "minimum retransmission timeout",
};
pub(super) const INITIAL_RTO: Key<Duration> = Key {
    name: "initial_rto",
    kind: Within(LEAST_TIMEOUT..=MOST_TIME),
    default: Open("`\"1s\"`"),
    about: "retransmission timeout before the first RTT sample",
};
pub(super) const MAX_RTO: Key<Duration> = Key {
    name: "max_rto",
    kind: Within(LEAST_TIMEOUT..=MOST_TIME),
    default: Open("`\"120s\"`"),
    about: "maximum retransmission timeout",
};
pub(super) const RECEIVE_BUFFER: Key<Size> = Key {
    name: "receive_buffer",
    kind: Within(Bytes::new(1)..=MOST_WINDOW),
    default: Open("`\"65536B\"`"),
    about: "initial receive buffer",
};
pub(super) const RECEIVE_BUFFER_MAX: Key<Size> = Key {
    name: "receive_buffer_max",
    kind: Within(Bytes::new(1)..=MOST_WINDOW),
    default: Open("`\"16MiB\"`, or `receive_buffer` if that is more"),
    about: "upper limit of autotuning; equal to `receive_buffer` for a fixed buffer",
};
pub(super) const SEND_BUFFER: Key<WordOr<Size>> = Key {
    name: "send_buffer",
    kind: WordOr("unlimited", Within(Bytes::new(1)..=MOST_WINDOW)),
    default: Open("`\"unlimited\"`"),
    about: "",
};
pub(super) const SLOW_START_AFTER_IDLE: Key<Flag> =
    Key { name: "slow_start_after_idle", kind: Flag, default: Open("`true`"), about: "" };
pub(super) const GSO: Key<Flag> = Key {
    name: "gso",
    kind: Flag,
    default: Open("`false`"),
    about: "segments sent together form one piece for the network card, as in Linux: its last segment has PSH and is \
            acknowledged at once (Linux 6.6 and later). Off by default, as published experiments are run without it; [what \
            it changes](fidelity.md#tcp-against-the-kernel)",
};
pub(super) const PACING: Key<Flag> = Key {
    name: "pacing",
    kind: Flag,
    default: Open("`false`"),
    about: "paces algorithms that do not pace themselves, and tells them so, which ends CUBIC's slow start later, as in \
            Linux",
};
pub(super) const OPENER: Key<Words<Opener>> = Key {
    name: "opener",
    kind: Words(&[("sender", Opener::Sender), ("receiver", Opener::Receiver)]),
    default: Open("`\"sender\"`"),
    about: "which side opens the connection: the data's `\"sender\"` (a push) or its `\"receiver\"` (a fetch)",
};
pub(super) const STACK: Key<Words<Stack>, Is<Stack>> = Key {
    name: "stack",
    kind: Words(&[("linux", Stack::Linux), ("ns-3.26", Stack::Ns3)]),
    default: Is(Stack::Linux),
    about: "TCP implementation that the defaults of the other keys follow; see below",
};
pub(super) const SACK: Key<Flag> = Key {
    name: "sack",
    kind: Flag,
    default: Open("`true`"),
    about: "selective acknowledgements, RACK-TLP and PRR; `false` for NewReno",
};
pub(super) const INFLATE_OWN: Key<Flag> = Key {
    name: "inflate_own",
    kind: Flag,
    default: Open("`false`"),
    about: "without SACK: during a recovery, duplicate acknowledgements let algorithms that set their own window send \
            more, too",
};
pub(super) const RTT_SAMPLE: Key<Words<RttSample>> = Key {
    name: "rtt_sample",
    kind: Words(&[("newest", RttSample::Newest), ("oldest", RttSample::Oldest)]),
    default: Open("`\"newest\"`"),
    about: "which segment covered by an ACK its RTT sample is taken from; samples of the `\"oldest\"` include ACK delays",
};
pub(super) const TIMESTAMP_GRANULARITY: Key<WordOr<Duration>> = Key {
    name: "timestamp_granularity",
    kind: WordOr("exact", Within(LEAST_SPAN..=MOST_TIME)),
    default: Open("`\"exact\"`"),
    about: "granularity of the clock of RTTs and timestamps, such as `\"1ms\"`: both times of an RTT are rounded down to it",
};
pub(super) const RTO: Key<Words<RtoRule>> = Key {
    name: "rto",
    kind: Words(&[("linux", RtoRule::Linux), ("rfc6298", RtoRule::Rfc6298)]),
    default: Open("`\"linux\"`"),
    about: "`\"linux\"`: SRTT + max(4 RTTVAR, `min_rto`); `\"rfc6298\"`: max(SRTT + 4 RTTVAR, `min_rto`), with its \
            estimator",
};
pub(super) const CONTROL_RTT: Key<Words<ControlRtt>> = Key {
    name: "control_rtt",
    kind: Words(&[("sample", ControlRtt::Sample), ("smoothed", ControlRtt::Smoothed)]),
    default: Open("`\"sample\"`"),
    about: "RTT passed to algorithms: the ACK's sample, or the `\"smoothed\"` mean with each ACK; its minimum likewise",
};
pub(super) const GROWTH: Key<Words<Growth>> = Key {
    name: "growth",
    kind: Words(&[
        ("segments", Growth::Segments),
        ("acks", Growth::Acks),
        ("slow_start_acks", Growth::SlowStartAcks),
    ]),
    default: Open("`\"segments\"`"),
    about: "what windows grow by: acknowledged segments; `\"acks\"`: at most one segment per ACK (ns-3's NewReno); \
            `\"slow_start_acks\"`: the same in slow start only (ns-3's CUBIC)",
};

/// The settings of TCP; all but `mtu` apply to TCP only.
pub(crate) const KEYS: Group = &[
    &MTU,
    &INITIAL_WINDOW,
    &TIMESTAMPS,
    &ECN,
    &ACE,
    &ECN_OPTION,
    &ACK_EVERY,
    &ACK_DELAY,
    &QUICK_ACKS,
    &MIN_RTO,
    &INITIAL_RTO,
    &MAX_RTO,
    &RECEIVE_BUFFER,
    &RECEIVE_BUFFER_MAX,
    &SEND_BUFFER,
    &SLOW_START_AFTER_IDLE,
    &GSO,
    &PACING,
    &OPENER,
    &STACK,
    &SACK,
    &INFLATE_OWN,
    &RTT_SAMPLE,
    &TIMESTAMP_GRANULARITY,
    &RTO,
    &CONTROL_RTT,
    &GROWTH,
];
