//! The keys of `[[link]]` and of the tables in it.

use ranpace_units::{Bytes, Span};

use crate::field::Field;
use crate::key::{
    By, Duration, Flag, Group, Is, Key, Name, Number, Open, Positive, Rates, Required, Size, Table, Text,
    Within, WordOr, Words,
};
use crate::limits::{LEAST_RATE, LEAST_SPAN, MOST_DELAY, MOST_RATE};

pub(super) const NAME: Key<Name> =
    Key { name: "name", kind: Name("text"), default: Open("`link1`, `link2` ... by position"), about: "" };
pub(super) const FROM: Key<Name, Required> =
    Key { name: "from", kind: Name("host"), default: Required, about: "" };
pub(super) const TO: Key<Name, Required> =
    Key { name: "to", kind: Name("host"), default: Required, about: "" };
pub(super) const RATE: Key<WordOr<Rates>> = Key {
    name: "rate",
    kind: WordOr("unlimited", Within(LEAST_RATE..=MOST_RATE)),
    default: Open("this or `trace`"),
    about: "",
};
pub(super) const TRACE: Key<Text> = Key {
    name: "trace",
    kind: Text("name of a trace"),
    default: Open("this or `rate`"),
    about: "delivery opportunities, as mahimahi records them: `\"builtin:lte\"`, a name from the trace \
            library, or a path",
};
pub(super) const LIGHT: Key<Text> = Key {
    name: "light",
    kind: Text("file"),
    default: Open("none"),
    about: "what was recorded under light load, in CellReplay's form; `trace` is then the recording under heavy load. See below",
};
pub(super) const LIGHT_TIMER: Key<Duration> = Key {
    name: "light_timer",
    kind: Within(Span::ZERO..=MOST_DELAY),
    default: Open("none"),
    about: "with `light`: idle time after which a new train begins",
};
pub(super) const REPEAT: Key<Flag> = Key {
    name: "repeat",
    kind: Flag,
    default: Open("`true`"),
    about: "whether the trace restarts at its end; otherwise nothing leaves the queue after it",
};
pub(super) const SCALE: Key<Positive> = Key {
    name: "scale",
    kind: Positive(1e6),
    default: Open("`1.0`"),
    about: "factor applied to the trace's capacity",
};
pub(super) const OPPORTUNITY: Key<Size> = Key {
    name: "opportunity",
    kind: Within(Bytes::new(1)..=Bytes::new(1_000_000)),
    default: Open("`\"1504B\"`"),
    about: "size of one delivery opportunity of the trace; the default is `\"1400B\"` with `light`",
};
pub(super) const OVERHEAD: Key<Size> = Key {
    name: "overhead",
    kind: Within(Bytes::ZERO..=Bytes::new(1_000)),
    default: Open("`\"4B\"` on a trace, `\"0B\"` at a rate"),
    about: "bytes added to each packet, such as the 36 to 44 bytes of a GTP-U tunnel's headers",
};
pub(super) const DELAY: Key<Duration, Is<Span>> = Key {
    name: "delay",
    kind: Within(Span::ZERO..=MOST_DELAY),
    default: Is(Span::ZERO),
    about: "propagation delay",
};
pub(super) const JITTER: Key<Table> =
    Key { name: "jitter", kind: Table("time or table"), default: Open("none"), about: "see below" };
pub(super) const QUEUE: Key<Table> = Key {
    name: "queue",
    kind: Table("word or table"),
    default: Open("droptail, 1000 packets"),
    about: "see below",
};
pub(super) const LOSS: Key<Table> =
    Key { name: "loss", kind: Table("probability or table"), default: Open("`0`"), about: "see below" };
pub(super) const REORDER: Key<Table> = Key {
    name: "reorder",
    kind: Table("table"),
    default: Open("none"),
    about: "holds some packets back so that others may overtake them; see below",
};
pub(super) const DUPLEX: Key<Flag, Is<bool>> = Key {
    name: "duplex",
    kind: Flag,
    default: Is(false),
    about: "adds a second link in the other direction",
};
pub(super) const BACK: Key<Table> = Key {
    name: "back",
    kind: Table("table"),
    default: Open(""),
    about: "settings that differ on the second link",
};

/// The keys of `[[link]]` and, with a few exceptions, of its table `back`.
pub(crate) const KEYS: Group = &[
    &NAME,
    &FROM,
    &TO,
    &RATE,
    &TRACE,
    &LIGHT,
    &LIGHT_TIMER,
    &REPEAT,
    &SCALE,
    &OPPORTUNITY,
    &OVERHEAD,
    &DELAY,
    &JITTER,
    &QUEUE,
    &LOSS,
    &REORDER,
    &DUPLEX,
    &BACK,
];

/// Delays in a link's `jitter` table.
const DELAYS: Duration = Within(Span::ZERO..=MOST_DELAY);
/// A probability.
const PROBABILITY: Number = Number(0.0..=1.0);
/// The largest IP packet.
const MOST_SIZE: Bytes = Bytes::new(65_535);

/// The keys of `jitter`.
pub(crate) mod jitter {
    use super::*;

    /// Values of `kind`.
    #[derive(Clone, Copy, PartialEq)]
    pub(in crate::link) enum JitterKind {
        None,
        Uniform,
        Normal,
    }

    pub(in crate::link) const KIND: Key<Words<JitterKind>, Required> = Key {
        name: "kind",
        kind: Words(&[
            ("none", JitterKind::None),
            ("uniform", JitterKind::Uniform),
            ("normal", JitterKind::Normal),
        ]),
        default: Required,
        about: "",
    };
    pub(in crate::link) const MAX: Key<Duration, Required> = Key {
        name: "max",
        kind: Within(LEAST_SPAN..=MOST_DELAY),
        default: Required,
        about: "`\"uniform\"`: each packet draws a delay from 0 to this",
    };
    pub(in crate::link) const MEAN: Key<Duration, Required> = Key {
        name: "mean",
        kind: DELAYS,
        default: Required,
        about: "`\"normal\"`: mean; negative draws count as zero",
    };
    pub(in crate::link) const DEVIATION: Key<Duration, Required> =
        Key { name: "deviation", kind: DELAYS, default: Required, about: "`\"normal\"`: standard deviation" };

    pub(crate) const KEYS: Group = &[&KIND, &MAX, &MEAN, &DEVIATION];
}

/// The keys of `loss`.
pub(crate) mod loss {
    use super::*;

    /// Values of `kind`.
    #[derive(Clone, Copy, PartialEq)]
    pub(in crate::link) enum LossKind {
        None,
        Random,
        GilbertElliott,
        List,
    }

    pub(in crate::link) const KIND: Key<Words<LossKind>, Required> = Key {
        name: "kind",
        kind: Words(&[
            ("none", LossKind::None),
            ("random", LossKind::Random),
            ("gilbert_elliott", LossKind::GilbertElliott),
            ("list", LossKind::List),
        ]),
        default: Required,
        about: "",
    };
    pub(in crate::link) const PROBABILITY: Key<Number, Required> = Key {
        name: "probability",
        kind: super::PROBABILITY,
        default: Required,
        about: "`\"random\"`: loss probability, independent for each packet",
    };
    pub(in crate::link) const P: Key<Number, Required> = Key {
        name: "p",
        kind: super::PROBABILITY,
        default: Required,
        about: "`\"gilbert_elliott\"`: probability per packet of a change from the good to the bad state",
    };
    pub(in crate::link) const R: Key<Number, Required> = Key {
        name: "r",
        kind: super::PROBABILITY,
        default: Required,
        about: "`\"gilbert_elliott\"`: probability per packet of a change from the bad to the good state",
    };
    pub(in crate::link) const GOOD: Key<Number, Is<f64>> = Key {
        name: "good",
        kind: super::PROBABILITY,
        default: Is(0.0),
        about: "`\"gilbert_elliott\"`: loss probability in the good state",
    };
    pub(in crate::link) const BAD: Key<Number, Is<f64>> = Key {
        name: "bad",
        kind: super::PROBABILITY,
        default: Is(1.0),
        about: "`\"gilbert_elliott\"`: loss probability in the bad state",
    };
    pub(in crate::link) const PACKETS: Key<By<Vec<u64>>, Required> = Key {
        name: "packets",
        kind: By("list of numbers", read_numbers),
        default: Required,
        about: "`\"list\"`: the packets to lose, such as `[5, 17]`, counted from 0 over all packets offered to the link, \
                retransmissions included",
    };
    pub(in crate::link) const SMALLEST: Key<Size, Is<Bytes>> = Key {
        name: "smallest",
        kind: Within(Bytes::ZERO..=MOST_SIZE),
        default: Is(Bytes::ZERO),
        about: "`\"list\"`: smaller packets are neither counted nor lost; with `\"100B\"` only data packets count",
    };

    pub(crate) const KEYS: Group = &[&KIND, &PROBABILITY, &P, &R, &GOOD, &BAD, &PACKETS, &SMALLEST];

    /// Returns them sorted, without duplicates.
    fn read_numbers(field: &Field<'_>) -> Option<Vec<u64>> {
        let elements = field.list("a list of packet numbers, from 0, such as [5, 17]")?;
        let numbers: Option<Vec<u64>> = elements.iter().map(|f| f.whole(0..=i64::MAX as u64)).collect();
        let mut numbers = numbers?;
        numbers.sort_unstable();
        numbers.dedup();
        Some(numbers)
    }
}

/// The keys of `reorder`.
pub(crate) mod reorder {
    use super::*;

    pub(in crate::link) const PROBABILITY: Key<Number, Required> = Key {
        name: "probability",
        kind: super::PROBABILITY,
        default: Required,
        about: "probability that a packet is held back and may be overtaken",
    };
    pub(in crate::link) const DELAY: Key<Duration, Required> = Key {
        name: "delay",
        kind: Within(LEAST_SPAN..=MOST_DELAY),
        default: Required,
        about: "how long it is held back",
    };

    pub(crate) const KEYS: Group = &[&PROBABILITY, &DELAY];
}
