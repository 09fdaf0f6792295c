//! The keys of `[[flow]]`.

use ranpace_units::{Bytes, Span};

use crate::cell::MOST_BEARERS;
use crate::key::{
    ANY_TIME, Duration, Group, Is, Key, Name, Open, Own, Required, Size, Table, Text, Whole, Within, Words,
};

/// Most flows in a scenario. Ours.
pub(super) const MOST_FLOWS: usize = 100_000;

/// Values of `transport`.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum TransportWord {
    Tcp,
    Quic,
    Udp,
    Datagram,
}

pub(super) const NAME: Key<Name> =
    Key { name: "name", kind: Name("text"), default: Open("`flow1`, `flow2` ... by position"), about: "" };
pub(super) const FROM: Key<Name, Required> = Key {
    name: "from",
    kind: Name("host"),
    default: Required,
    about: "host that sends the data. The name of a `[[user]]` with `count` makes a flow for each of these users, or \
            distributes `count` flows among them",
};
pub(super) const TO: Key<Name, Required> = Key {
    name: "to",
    kind: Name("host"),
    default: Required,
    about: "host that receives the data; users with `count` as for `from`",
};
pub(crate) const CC: Key<Text> = Key {
    name: "cc",
    kind: Text("algorithm"),
    default: Open("required except for UDP"),
    about: "`ranpace list cc` shows all; options follow colons: `\"c2tcp:target=50ms\"`",
};
pub(super) const TRANSPORT: Key<Words<TransportWord>> = Key {
    name: "transport",
    kind: Words(&[
        ("tcp", TransportWord::Tcp),
        ("quic", TransportWord::Quic),
        ("udp", TransportWord::Udp),
        ("datagram", TransportWord::Datagram),
    ]),
    default: Open("depends on `cc`"),
    about: "needed only for `\"quic\"` and `\"udp\"`",
};
pub(super) const WORKLOAD: Key<Table> = Key {
    name: "workload",
    kind: Table("word or table"),
    default: Open("`\"bulk\"`"),
    about: "see below; required for UDP",
};
pub(super) const START: Key<Duration, Is<Span>> = Key {
    name: "start",
    kind: ANY_TIME,
    default: Is(Span::ZERO),
    about: "start time, before the scenario's end",
};
pub(super) const STOP: Key<Duration> = Key {
    name: "stop",
    kind: ANY_TIME,
    default: Open("the scenario's end"),
    about: "stop time, after `start`",
};
pub(super) const COUNT: Key<Whole<usize>> = Key {
    name: "count",
    kind: Whole::new(1..=MOST_FLOWS as u64),
    default: Open(""),
    about: "number of flows to create, named `name.1`, `name.2` ... (even if it is 1)",
};
pub(super) const STAGGER: Key<Duration, Is<Span>> = Key {
    name: "stagger",
    kind: ANY_TIME,
    default: Is(Span::ZERO),
    about: "time between the starts of these flows",
};
pub(super) const PATH: Key<Own> = Key {
    name: "path",
    kind: Own("list of links"),
    default: Open("the shortest"),
    about: "path of the data, at most 64 links; the name of a user stands for its radio",
};
pub(super) const BACK: Key<Own> = Key {
    name: "back",
    kind: Own("list of links"),
    default: Open("the shortest"),
    about: "path of the acknowledgements",
};
pub(super) const BEARER: Key<Whole<u8>, Is<u8>> = Key {
    name: "bearer",
    kind: Whole::new(0..=MOST_BEARERS as u64 - 1),
    default: Is(0),
    about: "bearer of the user that carries the flow",
};
// From the headers of IPv4 and UDP plus one byte (RFC 791, RFC 768) to the largest value of IPv4's length field.
pub(super) const PACKET: Key<Size, Is<Bytes>> = Key {
    name: "packet",
    kind: Within(Bytes::new(29)..=Bytes::new(65_535)),
    default: Is(Bytes::new(1_500)),
    about: "UDP only: size of every IP packet, headers included",
};
pub(super) const ESTIMATOR: Key<Text> = Key {
    name: "estimator",
    kind: Text("algorithm"),
    default: Open("none"),
    about: "UDP only: an algorithm with a receiver half, such as `\"cdbe\"`, runs at the receiver; its estimates are in \
            the flow's series as `receiver_...`",
};
pub(crate) const TCP: Key<Table> = Key {
    name: "tcp",
    kind: Table("table"),
    default: Open(""),
    about: "settings of TCP, see below; they may also be written in `[[flow]]` itself",
};
pub(crate) const QUIC: Key<Table> = Key {
    name: "quic",
    kind: Table("table"),
    default: Open(""),
    about: "settings of [QUIC](quic.md#settings); they may also be written in `[[flow]]` itself",
};

/// The keys of `[[flow]]`, without the settings of its transport.
pub(crate) const KEYS: Group = &[
    &NAME, &FROM, &TO, &CC, &TRANSPORT, &WORKLOAD, &START, &STOP, &COUNT, &STAGGER, &PATH, &BACK, &BEARER,
    &PACKET, &ESTIMATOR, &TCP, &QUIC,
];
