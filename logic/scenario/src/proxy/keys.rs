//! The keys of `[[proxy]]`.

use ranpace_pep::rapid::{
    Accounting, Estimator, LateCapacity, Profile, RanRttMin, RttMargin, Settings, Slack, WindowRule,
};
use ranpace_units::{Bytes, Span};

use crate::key::{
    Duration, Flag, Group, Is, Key, Name, Number, Open, Required, Size, Text, Whole, Within, WordOr, Words,
};

/// Smallest buffer: a packet of the largest size. Ours.
const LEAST_BUFFER: Bytes = Bytes::new(65_535);
const MOST_BUFFER: Bytes = Bytes::new(1 << 40);

pub(super) const NAME: Key<Name> =
    Key { name: "name", kind: Name("text"), default: Open("`proxy1`, `proxy2` ... by position"), about: "" };
pub(super) const HOST: Key<Name, Required> =
    Key { name: "host", kind: Name("name"), default: Required, about: "host of the proxy" };
pub(super) const KIND: Key<Words<KindWord>, Required> = Key {
    name: "kind",
    kind: Words(&[("split", KindWord::Split), ("rapid", KindWord::Rapid)]),
    default: Required,
    about: "`\"rapid\"`: see below; `\"split\"`: a plain pair of TCP connections, for comparison",
};
pub(super) const RAN_CC: Key<Text> = Key {
    name: "ran_cc",
    kind: Text("algorithm"),
    default: Open("`rapid`, `cubic`"),
    about: "congestion control towards users; default: `rapid`, or `cubic` in a plain split proxy",
};
pub(super) const FLOW_BUFFER: Key<WordOr<Size>, Is<Option<Bytes>>> = Key {
    name: "flow_buffer",
    kind: WordOr("auto", Within(LEAST_BUFFER..=MOST_BUFFER)),
    default: Is(None),
    about: "limit on a flow's payload that waits in the proxy: received in order from the server and not yet sent. \
            `\"auto\"`: with `profile = \"field\"`, what the server has in flight and what waits are together at most its \
            window with `headroom` and `spare`; with `\"thesis\"`, twice the larger bandwidth-delay product, at least 64 \
            KiB; in a plain split proxy, an equal part of `user_buffer`",
};
pub(super) const USER_BUFFER: Key<Size, Is<Bytes>> = Key {
    name: "user_buffer",
    kind: Within(LEAST_BUFFER..=MOST_BUFFER),
    // From the specification, section 7.
    default: Is(Bytes::new(4 << 20)),
    about: "limit on a user's payload that waits in the proxy. A plain split proxy divides it equally among the user's \
            connections; RAPID closes all the user's windows while it is full",
};
pub(super) const TOTAL_BUFFER: Key<Size, Is<Bytes>> = Key {
    name: "total_buffer",
    kind: Within(LEAST_BUFFER..=MOST_BUFFER),
    // Ours.
    default: Is(Bytes::new(256 << 20)),
    about: "limit on the payload of all users that waits in the proxy. A connection that begins while it is full is not \
            split; in a plain split proxy, while that much is promised",
};

/// The keys of every `[[proxy]]`.
pub(crate) const KEYS: Group = &[&NAME, &HOST, &KIND, &RAN_CC, &FLOW_BUFFER, &USER_BUFFER, &TOTAL_BUFFER];

pub(super) const PROFILE: Key<Words<Profile>, Open> = Key {
    name: "profile",
    kind: Words(Profile::WORDS),
    default: Open("`\"field\"`"),
    about: "`\"field\"`, for use: detects under-reported capacity, keeps little data waiting, and keeps constant-rate \
            flows in the slow category; `\"thesis\"`, as published, for reproductions: it leaves 3 % of the goodput under \
            a feed that reports a full cell. Sets the defaults of the other keys",
};
pub(super) const ESTIMATOR: Key<Words<Estimator>> = Key {
    name: "estimator",
    kind: Words(Estimator::WORDS),
    default: BY_PROFILE,
    about: "estimate of the capacity available to a user; `\"larger\"` with `\"field\"`, `\"alloc_plus_unused\"` with \
            `\"thesis\"`",
};
pub(super) const ACCOUNTING: Key<Words<Accounting>, Is<Accounting>> = Key {
    name: "accounting",
    kind: Words(Accounting::WORDS),
    default: Is(Settings::THESIS.accounting),
    about: "how the part of their share that slow flows leave to others is counted; the other values are for study",
};
pub(super) const EFFICIENCY: Key<Number, Is<f64>> = Key {
    name: "efficiency",
    kind: Number(0.01..=1.0),
    default: Is(Settings::THESIS.efficiency),
    about: "share of the estimated rate that is allocated",
};
pub(super) const THETA: Key<Number, Is<f64>> = Key {
    name: "theta",
    kind: Number(0.01..=1.0),
    default: Is(Settings::THESIS.theta),
    about: "a flow that uses less than this share of what its window allows is slow (the authors' ns-3 code: 0.85, their \
            Linux module: 0.75)",
};
pub(super) const FLOOR: Key<Whole<u32>, Is<u32>> = Key {
    name: "floor",
    kind: Whole::new(1..=10_000),
    default: Is(Settings::THESIS.floor),
    about: "minimum window towards the server, in segments",
};
pub(super) const SLACK: Key<WordOr<Duration>, Is<Option<Span>>> = Key {
    name: "slack",
    kind: WordOr(Slack::WORD, Within(Span::ZERO..=Span::SECOND)),
    default: Is(match Settings::THESIS.slack {
        Slack::Fixed(slack) => Some(slack),
        Slack::HalfRtt => None,
    }),
    about: "delay of a period's first measured RTT, to allow for late packets",
};
pub(super) const RAN_RTTMIN: Key<Words<RanRttMin>> = Key {
    name: "ran_rttmin",
    kind: Words(RanRttMin::WORDS),
    default: BY_PROFILE,
    about: "minimum RTT towards users: as published (`\"smoothed\"`, with `\"thesis\"`); the same, but at most 1.5 times \
            the smallest ever measured (`\"bounded\"`, with `\"field\"`); the smallest ever measured (`\"plain\"`)",
};
pub(super) const SR_ALLOWANCE: Key<WordOr<Duration>> = Key {
    name: "sr_allowance",
    kind: WordOr(RttMargin::WORD, Within(Span::ZERO..=Span::SECOND)),
    default: BY_PROFILE,
    about: "added to that RTT: `\"0ms\"` with `\"thesis\"`; with `\"field\"` (`\"technology\"`) two scheduling-request \
            periods of the user's technology: 16 slots for LTE (16 ms, the authors' value) and NR, 2 for millimetre waves",
};
pub(super) const RAN_FLOOR: Key<Whole<u32>, Is<u32>> = Key {
    name: "ran_floor",
    kind: Whole::new(1..=10_000),
    default: Is(Settings::THESIS.ran_floor),
    about: "minimum window towards the user, in segments",
};
pub(super) const ACCOUNT_UDP: Key<Flag, Is<bool>> = Key {
    name: "account_udp",
    kind: Flag,
    default: Is(Settings::THESIS.account_udp),
    about: "whether the measured rate of a user's UDP and QUIC traffic, which is not split, is deducted from what its \
            connections are allocated, at most half of that",
};
pub(super) const HOLD: Key<Words<LateCapacity>> = Key {
    name: "hold",
    kind: Words(LateCapacity::WORDS),
    default: BY_PROFILE,
    about: "capacity allocated while reports are late but not lost: the least of the last second, or the mean of that \
            second's reports (`\"mean\"`, with `\"field\"`)",
};
pub(super) const GUARD: Key<Flag> = Key {
    name: "guard",
    kind: Flag,
    default: BY_PROFILE,
    about: "whether to probe above the reported capacity from time to time, which exposes under-reporting (true with \
            `\"field\"`)",
};
pub(super) const WINDOW: Key<Words<WindowRule>, Is<WindowRule>> = Key {
    name: "window",
    kind: Words(WindowRule::WORDS),
    default: Is(Settings::THESIS.window),
    about: "`\"wired\"`: the window towards the server is for the smallest RTT to the server, the window towards the user \
            for the same rate and the smallest RTT to the user (the text); `\"whole\"`: both windows are the share for the \
            sum of both RTTs, at least 2 ms to the server and 1 ms to the user, and the server is told multiples of 16 \
            KiB, rounded down, at least one (the authors' ns-3 code); `\"module\"`: as `\"wired\"`, with shifts for \
            divisions: each of N flows has 1/1, 1/2, 1/4 (3 to 7), 1/8 ... of the rate, and the window towards the user is \
            `RW 2^(1 + floor(log2 RTT_RAN) - floor(log2 RTT_WAN))`, with a segment for each 1024 B of it (the authors' \
            Linux module)",
};
pub(super) const ALPHA: Key<Number, Is<f64>> = Key {
    name: "alpha",
    kind: Number(0.0..=0.99),
    default: Is(Settings::THESIS.alpha),
    about: "weight of the previous value in the mean of arrival rates (the authors' code: 0.4)",
};
pub(super) const HEADROOM: Key<Number> = Key {
    name: "headroom",
    kind: Number(1.0..=100.0),
    default: BY_PROFILE,
    about: "limit on what a server has in flight and waiting in the proxy together, relative to its window: `1.25` with \
            `\"field\"`, `1` (the window alone, and the buffer in addition) with `\"thesis\"`",
};
pub(super) const SPARE: Key<Whole<u32>> = Key {
    name: "spare",
    kind: Whole::new(0..=10_000),
    default: BY_PROFILE,
    about: "segments added to that limit: `2` with `\"field\"`, `0` with `\"thesis\"`",
};
const BY_PROFILE: Open = Open("by profile");

/// The keys of a RAPID `[[proxy]]`.
pub(crate) const RAPID_KEYS: Group = &[
    &PROFILE,
    &ESTIMATOR,
    &WINDOW,
    &HEADROOM,
    &SPARE,
    &ACCOUNTING,
    &EFFICIENCY,
    &THETA,
    &ALPHA,
    &FLOOR,
    &RAN_FLOOR,
    &SLACK,
    &RAN_RTTMIN,
    &SR_ALLOWANCE,
    &ACCOUNT_UDP,
    &HOLD,
    &GUARD,
];

/// Values of `kind`.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum KindWord {
    Split,
    Rapid,
}
