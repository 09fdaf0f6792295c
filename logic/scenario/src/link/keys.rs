//! The keys of `[[link]]`.

use ranpace_units::{Bytes, Span};

use crate::key::{
    Duration, Flag, Group, Is, Key, Name, Open, Positive, Rates, Required, Size, Table, Text, Within, WordOr,
};
use crate::limits::{LEAST_RATE, MOST_DELAY, MOST_RATE};

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
pub(super) const REPEAT: Key<Flag> = Key {
    name: "repeat",
    kind: Flag,
    default: Open("`true`"),
    about: "whether the trace starts again at its end; otherwise nothing leaves the queue after it",
};
pub(super) const SCALE: Key<Positive> = Key {
    name: "scale",
    kind: Positive(1e6),
    default: Open("`1.0`"),
    about: "factor of the trace's capacity",
};
pub(super) const OPPORTUNITY: Key<Size> = Key {
    name: "opportunity",
    kind: Within(Bytes::new(1)..=Bytes::new(1_000_000)),
    default: Open("`\"1504B\"`"),
    about: "what one opportunity of the trace carries",
};
pub(super) const OVERHEAD: Key<Size> = Key {
    name: "overhead",
    kind: Within(Bytes::ZERO..=Bytes::new(1_000)),
    default: Open("`\"4B\"` on a trace, `\"0B\"` at a rate"),
    about: "what each packet costs besides its size: a tunnel's headers, such as the 36 to 44 bytes of GTP-U",
};
pub(super) const DELAY: Key<Duration, Is<Span>> = Key {
    name: "delay",
    kind: Within(Span::ZERO..=MOST_DELAY),
    default: Is(Span::ZERO),
    about: "propagation",
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
    about: "`{ probability = 0.01, delay = \"5ms\" }`: such packets are held back for so long, and may be \
            overtaken",
};
pub(super) const DUPLEX: Key<Flag, Is<bool>> = Key {
    name: "duplex",
    kind: Flag,
    default: Is(false),
    about: "makes a second link in the other direction",
};
pub(super) const BACK: Key<Table> =
    Key { name: "back", kind: Table("table"), default: Open(""), about: "how that second link differs" };

/// The keys of `[[link]]`, and but for a few those of its table `back`.
pub(crate) const KEYS: Group = &[
    &NAME,
    &FROM,
    &TO,
    &RATE,
    &TRACE,
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
