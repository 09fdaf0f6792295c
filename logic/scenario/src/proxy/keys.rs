//! The keys of `[[proxy]]`.

use ranpace_pep::rapid::{Accounting, Estimator, LateCapacity, RanRttMin, Settings, Slack, WindowRule};
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
    Key { name: "host", kind: Name("name"), default: Required, about: "where it is" };
pub(super) const KIND: Key<Words<KindWord>, Required> = Key {
    name: "kind",
    kind: Words(&[("split", KindWord::Split), ("rapid", KindWord::Rapid)]),
    default: Required,
    about: "RAPID, below; `\"split\"` is a plain pair of TCP connections, for comparison",
};
pub(super) const RAN_CC: Key<Text> = Key {
    name: "ran_cc",
    kind: Text("algorithm"),
    default: Open("`rapid`, `cubic`"),
    about: "congestion control towards users; `cubic` in a plain split proxy",
};
pub(super) const FLOW_BUFFER: Key<WordOr<Size>, Is<Option<Bytes>>> = Key {
    name: "flow_buffer",
    kind: WordOr("auto", Within(LEAST_BUFFER..=MOST_BUFFER)),
    default: Is(None),
    about: "what may wait of a flow: payload that came in order from the server and was not sent yet. `\"auto\"`: with \
            `profile = \"field\"` what its server may have on its way and waiting together is its window with its \
            headroom; with `\"thesis\"` twice the larger bandwidth-delay product, at least 64 KiB; in a plain split \
            proxy: the user's",
};
pub(super) const USER_BUFFER: Key<Size, Is<Bytes>> = Key {
    name: "user_buffer",
    kind: Within(LEAST_BUFFER..=MOST_BUFFER),
    // From the specification, section 7.
    default: Is(Bytes::new(4 << 20)),
    about: "what may wait of a user. In a plain split proxy in equal parts for each of its connections; under RAPID all \
            of its windows are shut when it is full",
};
pub(super) const TOTAL_BUFFER: Key<Size, Is<Bytes>> = Key {
    name: "total_buffer",
    kind: Within(LEAST_BUFFER..=MOST_BUFFER),
    // Ours.
    default: Is(Bytes::new(256 << 20)),
    about: "what may wait of all. A connection that begins when it is full is not split; in a plain split proxy, when so \
            much is promised",
};

/// The keys of every `[[proxy]]`.
pub(crate) const KEYS: Group = &[&NAME, &HOST, &KIND, &RAN_CC, &FLOW_BUFFER, &USER_BUFFER, &TOTAL_BUFFER];

pub(super) const PROFILE: Key<Words<&Settings>, Open> = Key {
    name: "profile",
    kind: Words(&[("thesis", &Settings::THESIS), ("field", &Settings::FIELD)]),
    default: Open("`\"field\"`"),
    about: "for use: a feed that lies low is found out, little waits, flows of a constant rate stay slow; or as published, \
            for reproductions: under a feed that says \"full\" it leaves 3 % of the goodput. Sets the defaults of the others",
};
pub(super) const ESTIMATOR: Key<Words<Estimator>> = Key {
    name: "estimator",
    kind: Words(&[
        ("alloc_plus_unused", Estimator::AllocPlusUnused),
        ("fair_share", Estimator::FairShare),
        ("larger", Estimator::Larger),
    ]),
    default: BY_PROFILE,
    about: "what a user can expect of the cell; `\"larger\"` with `\"field\"`",
};
pub(super) const ACCOUNTING: Key<Words<Accounting>, Is<Accounting>> = Key {
    name: "accounting",
    kind: Words(&[
        ("rate", Accounting::Rate),
        ("share_bytes", Accounting::ShareBytes),
        ("literal", Accounting::Literal),
    ]),
    default: Is(Settings::THESIS.accounting),
    about: "how the part that slow flows leave is counted; the others for study",
};
pub(super) const EFFICIENCY: Key<Number, Is<f64>> = Key {
    name: "efficiency",
    kind: Number(0.01..=1.0),
    default: Is(Settings::THESIS.efficiency),
    about: "share of the estimated rate that is given out",
};
pub(super) const THETA: Key<Number, Is<f64>> = Key {
    name: "theta",
    kind: Number(0.01..=1.0),
    default: Is(Settings::THESIS.theta),
    about: "below this share of what its window allows a flow is slow (the authors' ns-3 code: 0.85, their Linux module: 0.75)",
};
pub(super) const FLOOR: Key<Whole<u32>, Is<u32>> = Key {
    name: "floor",
    kind: Whole::new(1..=10_000),
    default: Is(Settings::THESIS.floor),
    about: "least window towards the server, in segments",
};
pub(super) const SLACK: Key<WordOr<Duration>, Is<Option<Span>>> = Key {
    name: "slack",
    kind: WordOr("half_rtt", Within(Span::ZERO..=Span::SECOND)),
    default: Is(match Settings::THESIS.slack {
        Slack::Fixed(slack) => Some(slack),
        Slack::HalfRtt => None,
    }),
    about: "what packets may come late by at the end of a period",
};
pub(super) const RAN_RTTMIN: Key<Words<RanRttMin>> = Key {
    name: "ran_rttmin",
    kind: Words(&[
        ("smoothed", RanRttMin::Smoothed),
        ("bounded", RanRttMin::Bounded),
        ("plain", RanRttMin::Plain),
    ]),
    default: BY_PROFILE,
    about: "smallest RTT towards users: as published; the same, at most 1.5 times the smallest of all (`\"bounded\"`, with \
            `\"field\"`); the smallest of all",
};
pub(super) const SR_ALLOWANCE: Key<WordOr<Duration>> = Key {
    name: "sr_allowance",
    kind: WordOr("technology", Within(Span::ZERO..=Span::SECOND)),
    default: BY_PROFILE,
    about: "added to it: `\"0ms\"` with `\"thesis\"`; with `\"field\"` two periods of scheduling requests of the user's \
            technology, 16 slots of LTE (16 ms, as the authors have it) and NR, 2 of millimetre waves",
};
pub(super) const RAN_FLOOR: Key<Whole<u32>, Is<u32>> = Key {
    name: "ran_floor",
    kind: Whole::new(1..=10_000),
    default: Is(Settings::THESIS.ran_floor),
    about: "least window towards the user, in segments",
};
pub(super) const SHRINK: Key<Flag, Is<bool>> = Key {
    name: "shrink",
    kind: Flag,
    default: Is(Settings::THESIS.shrink),
    about: "whether windows may be taken back. The simulator never does",
};
pub(super) const ACCOUNT_UDP: Key<Flag, Is<bool>> = Key {
    name: "account_udp",
    kind: Flag,
    default: Is(Settings::THESIS.account_udp),
    about: "whether the measured rate of UDP and QUIC that pass by to a user is taken off what its connections are given, \
            at most half of that",
};
pub(super) const HOLD: Key<Words<LateCapacity>> = Key {
    name: "hold",
    kind: Words(&[("least", LateCapacity::Least), ("mean", LateCapacity::Mean)]),
    default: BY_PROFILE,
    about: "what is given out while reports are late, but not lost: the least capacity of the last second, or the mean of \
            what was reported of it (with `\"field\"`)",
};
pub(super) const GUARD: Key<Flag> = Key {
    name: "guard",
    kind: Flag,
    default: BY_PROFILE,
    about: "whether now and then more is tried than was reported, so that a feed that lies low is found out (true with \
            `\"field\"`)",
};
pub(super) const WINDOW: Key<Words<WindowRule>, Is<WindowRule>> = Key {
    name: "window",
    kind: Words(&[
        ("wired", WindowRule::Wired),
        ("whole", WindowRule::Whole),
        ("module", WindowRule::Module),
    ]),
    default: Is(Settings::THESIS.window),
    about: "`\"wired\"`: a server's window is for the smallest RTT to the server, and on the user's side the same rate for \
            the smallest RTT to the user (the text); `\"whole\"`: both are the share for both RTTs together, at least 2 ms \
            to the server and 1 ms to the user, of which the server is told whole multiples of 16 KiB, rounded down, one at \
            least (the authors' ns-3 code); `\"module\"`: as `\"wired\"`, with shifts for divisions: N flows have 1/1, 1/2, \
            1/4 (3 to 7), 1/8 ... of the rate each, and the user's side `RW 2^(1 + floor(log2 RTT_RAN) - \
            floor(log2 RTT_WAN))`, a segment for each 1024 B of it (the authors' Linux module)",
};
pub(super) const ALPHA: Key<Number, Is<f64>> = Key {
    name: "alpha",
    kind: Number(0.0..=0.99),
    default: Is(Settings::THESIS.alpha),
    about: "weight of what was known in the mean of arrival rates (the authors' code: 0.4)",
};
pub(super) const HEADROOM: Key<Number> = Key {
    name: "headroom",
    kind: Number(1.0..=100.0),
    default: BY_PROFILE,
    about: "what a server may have on its way and waiting in the proxy together, over its window: `1.25` with `\"field\"`, \
            `1` (the window alone, and the buffer beside it) with `\"thesis\"`",
};
pub(super) const SPARE: Key<Whole<u32>> = Key {
    name: "spare",
    kind: Whole::new(0..=10_000),
    default: BY_PROFILE,
    about: "segments on top of that: `2` with `\"field\"`, `0` with `\"thesis\"`",
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
    &SHRINK,
];

/// Values of `kind`.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum KindWord {
    Split,
    Rapid,
}
