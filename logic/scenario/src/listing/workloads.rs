//! The settings of workloads.

use ranpace_units::{Bytes, Span};

use crate::key::{Duration, Group, Is, Key, Number, Open, Positive, Rates, Required, Size, Whole, Within};
use crate::limits::{LEAST_RATE, LEAST_SPAN, MOST_RATE};

/// Largest accepted transfer.
const MOST_SIZE: Bytes = Bytes::new(1_000_000_000_000_000);
/// Shortest interval between two writes. Ours: a shorter one amounts to a rate.
const LEAST_INTERVAL: Span = Span::from_micros(1);
/// Longest interval.
const MOST_INTERVAL: Span = Span::from_secs(86_400);

pub(crate) const SIZE: Key<Size, Required> =
    Key { name: "size", kind: Within(Bytes::new(1)..=MOST_SIZE), default: Required, about: "" };
pub(crate) const PAUSE: Key<Duration, Is<Span>> =
    Key { name: "pause", kind: Within(Span::ZERO..=MOST_INTERVAL), default: Is(Span::ZERO), about: "" };
pub(crate) const COUNT: Key<Whole<u32>> =
    Key { name: "count", kind: Whole::new(1..=u32::MAX as u64), default: Open("without end"), about: "" };
pub(crate) const RATE: Key<Rates, Required> =
    Key { name: "rate", kind: Within(LEAST_RATE..=MOST_RATE), default: Required, about: "" };
pub(crate) const WRITE_INTERVAL: Key<Duration, Is<Span>> = Key {
    name: "interval",
    kind: Within(LEAST_INTERVAL..=MOST_INTERVAL),
    default: Is(Span::from_millis(10)),
    about: "",
};
pub(crate) const PAGE: Key<Size, Required> =
    Key { name: "page", kind: Within(Bytes::new(1)..=MOST_SIZE), default: Required, about: "" };
pub(crate) const PAGE_INTERVAL: Key<Duration, Is<Span>> = Key {
    name: "interval",
    kind: Within(LEAST_INTERVAL..=MOST_INTERVAL),
    default: Is(Span::SECOND),
    about: "",
};
pub(crate) const BURST_MEAN: Key<Duration, Is<Span>> = Key {
    name: "burst_mean",
    kind: Within(LEAST_SPAN..=MOST_INTERVAL),
    default: Is(Span::from_millis(100)),
    about: "",
};
pub(crate) const ACTIVE_MEAN: Key<Positive, Is<f64>> =
    Key { name: "active_mean", kind: Positive(100_000.0), default: Is(3.0), about: "" };
/// Above 0.5 and below 1: the shape of the Pareto distribution, 3 - 2 H, is between 1 (no mean) and 2 (no long memory).
pub(crate) const HURST: Key<Number, Is<f64>> =
    Key { name: "hurst", kind: Number(0.5..=1.0), default: Is(0.7), about: "" };

pub(crate) const FIXED: Group = &[&SIZE];
pub(crate) const REPEAT: Group = &[&SIZE, &PAUSE, &COUNT];
pub(crate) const PACED: Group = &[&RATE, &WRITE_INTERVAL];
pub(crate) const WEB: Group = &[&PAGE, &PAGE_INTERVAL];
pub(crate) const CBR: Group = &[&RATE];
pub(crate) const PPBP: Group = &[&RATE, &BURST_MEAN, &ACTIVE_MEAN, &HURST];
