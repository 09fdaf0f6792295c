//! The settings of queues.

use ranpace_link::AbcForm;
use ranpace_units::{Bytes, Span};

use crate::key::{Duration, Flag, Group, Is, Key, Open, Own, Size, Whole, Within, WordOr, Words};
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
/// For CoDel, with or without queues for each flow.
pub(crate) const CE_THRESHOLD: Key<WordOr<Duration>> = Key {
    name: "ce_threshold",
    kind: WordOr("never", Within(Span::ZERO..=MOST_TIME)),
    default: Open("`\"never\"`"),
    about: "",
};
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

pub(crate) const DUAL_LIMIT: Key<Own> =
    Key { name: "limit", kind: Own("limit"), default: Open("10000 packets"), about: "" };
pub(crate) const DUAL_UPDATE: Key<Duration, Is<Span>> = Key {
    name: "update",
    kind: Within(LEAST_SPAN..=MOST_TIME),
    default: Is(Span::from_millis(16)),
    about: "",
};
pub(crate) const STEP: Key<Duration, Is<Span>> =
    Key { name: "step", kind: Within(Span::ZERO..=MOST_TIME), default: Is(Span::from_millis(1)), about: "" };
pub(crate) const L4SPAN_TARGET: Key<Duration, Is<Span>> = Key {
    name: "target",
    kind: Within(LEAST_SPAN..=MOST_TIME),
    default: Is(Span::from_millis(10)),
    about: "",
};

pub(crate) const ABC_DELAY: Key<Duration, Is<Span>> = Key {
    name: "delay",
    kind: Within(Span::ZERO..=MOST_TIME),
    default: Is(Span::from_millis(50)),
    about: "",
};
pub(crate) const ABC_FORM: Key<Words<AbcForm>, Is<AbcForm>> = Key {
    name: "form",
    kind: Words(&[("capacity", AbcForm::Capacity), ("authors", AbcForm::Authors)]),
    default: Is(AbcForm::Capacity),
    about: "",
};

pub(crate) const DROP_TAIL: Group = &[&LIMIT, &THRESHOLD];
pub(crate) const CODEL: Group = &[&LIMIT, &CODEL_TARGET, &INTERVAL, &ECN, &CE_THRESHOLD];
pub(crate) const FQ_CODEL: Group =
    &[&FQ_LIMIT, &CODEL_TARGET, &INTERVAL, &QUANTUM, &FLOWS, &ECN, &CE_THRESHOLD];
pub(crate) const PIE: Group = &[&LIMIT, &PIE_TARGET, &UPDATE, &MAX_BURST, &ECN];
pub(crate) const DUAL_PI2: Group = &[&DUAL_LIMIT, &PIE_TARGET, &DUAL_UPDATE, &STEP];
pub(crate) const L4SPAN: Group = &[&LIMIT, &L4SPAN_TARGET];
pub(crate) const ABC: Group = &[&LIMIT, &ABC_DELAY, &ABC_FORM];
