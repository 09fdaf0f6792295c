//! The settings of queues.

use ranpace_units::{Bytes, Span};

use crate::key::{Duration, Flag, Group, Is, Key, Open, Own, Size, Whole, Within};
use crate::limits::LEAST_SPAN;

/// Longest accepted time.
const MOST_TIME: Span = Span::from_secs(3_600);

pub(crate) const LIMIT: Key<Own> =
    Key { name: "limit", kind: Own("limit"), default: Open("1000 packets"), about: "" };
pub(crate) const FQ_LIMIT: Key<Own> =
    Key { name: "limit", kind: Own("limit"), default: Open("10240 packets"), about: "" };
/// For droptail, the size above which packets are marked.
pub(crate) const THRESHOLD: Key<Own> =
    Key { name: "ecn", kind: Own("size"), default: Open("never marks"), about: "" };
pub(crate) const ECN: Key<Flag, Is<bool>> = Key { name: "ecn", kind: Flag, default: Is(false), about: "" };
pub(crate) const CODEL_TARGET: Key<Duration, Is<Span>> = Key {
    name: "target",
    kind: Within(LEAST_SPAN..=MOST_TIME),
    default: Is(Span::from_millis(5)),
    about: "",
};
pub(crate) const INTERVAL: Key<Duration, Is<Span>> = Key {
    name: "interval",
    kind: Within(LEAST_SPAN..=MOST_TIME),
    default: Is(Span::from_millis(100)),
    about: "",
};
pub(crate) const QUANTUM: Key<Size, Is<Bytes>> = Key {
    name: "quantum",
    kind: Within(Bytes::new(1)..=Bytes::new(1_000_000)),
    default: Is(Bytes::new(1_514)),
    about: "",
};
pub(crate) const FLOWS: Key<Whole<u32>, Is<u32>> =
    Key { name: "flows", kind: Whole::new(1..=65_536), default: Is(1_024), about: "" };
pub(crate) const PIE_TARGET: Key<Duration, Is<Span>> = Key {
    name: "target",
    kind: Within(LEAST_SPAN..=MOST_TIME),
    default: Is(Span::from_millis(15)),
    about: "",
};
pub(crate) const UPDATE: Key<Duration, Is<Span>> = Key {
    name: "update",
    kind: Within(LEAST_SPAN..=MOST_TIME),
    default: Is(Span::from_millis(15)),
    about: "",
};
pub(crate) const MAX_BURST: Key<Duration, Is<Span>> = Key {
    name: "max_burst",
    kind: Within(Span::ZERO..=MOST_TIME),
    default: Is(Span::from_millis(150)),
    about: "",
};

pub(crate) const DROP_TAIL: Group = &[&LIMIT, &THRESHOLD];
pub(crate) const CODEL: Group = &[&LIMIT, &CODEL_TARGET, &INTERVAL, &ECN];
pub(crate) const FQ_CODEL: Group = &[&FQ_LIMIT, &CODEL_TARGET, &INTERVAL, &QUANTUM, &FLOWS, &ECN];
pub(crate) const PIE: Group = &[&LIMIT, &PIE_TARGET, &UPDATE, &MAX_BURST, &ECN];
