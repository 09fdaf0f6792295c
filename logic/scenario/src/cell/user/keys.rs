//! The keys of `[[user]]`, without those of bearers.

use super::MOST_USERS;
use crate::key::{Flag, Group, Is, Key, Name, Open, Own, Table, Text, Whole};

pub(super) const NAME: Key<Name> = Key {
    name: "name",
    kind: Name("text"),
    default: Open("`user1`, `user2` ... by position"),
    about: "with `count`: `name.1`, `name.2` ...",
};
pub(super) const CELL: Key<Name> =
    Key { name: "cell", kind: Name("name"), default: Open("the only cell"), about: "where it begins" };
pub(super) const HOST: Key<Name> =
    Key { name: "host", kind: Name("text"), default: Open("its name"), about: "not with `count`" };
pub(super) const COUNT: Key<Whole<usize>> = Key {
    name: "count",
    kind: Whole::new(1..=MOST_USERS as u64),
    default: Open(""),
    about: "makes so many users",
};
pub(super) const POSITION: Key<Own> =
    Key { name: "position", kind: Own("position"), default: Open("the preset's"), about: "it stands here" };
pub(super) const DROP: Key<Table> = Key {
    name: "drop",
    kind: Table("table"),
    default: Open(""),
    about: "it stands somewhere in a disc: `{ radius = \"400m\", centre = [0, 0], spread = \"area\" }`; with \
            `spread = \"radius\"` distances from the middle are drawn evenly, as ns-3 does, and not places",
};
pub(super) const WALK: Key<Table> = Key {
    name: "walk",
    kind: Table("table"),
    default: Open(""),
    about: "it walks about in one: `{ radius = \"400m\", centre = [0, 0], spread = \"area\", speed = \
            [\"1m/s\", \"5m/s\"], leg = \"10s\", position = [50, 0] }`; without `position` it begins anywhere",
};
pub(super) const WAYPOINTS: Key<Table> = Key {
    name: "waypoints",
    kind: Table("table"),
    default: Open(""),
    about: "from point to point: `{ points = [[50, 0], [400, 0]], speed = \"50km/h\", start = \"0s\" }`",
};
pub(super) const TRAJECTORY: Key<Text> = Key {
    name: "trajectory",
    kind: Text("file"),
    default: Open(""),
    about: "lines of `time_s,x_m,y_m` and perhaps `z_m`, under these names",
};
pub(super) const RECORDING: Key<Table> = Key {
    name: "recording",
    kind: Table("file or table"),
    default: Open(""),
    about: "SINR, CQI, RSRP over time, in place of path loss: lines of `time_s` and some of `sinr_db`, `cqi`, \
            `rsrp_dbm`, `gain_db`; `{ file = \"...\", kind = \"csv\", from = \"0s\", stagger = \"0s\" }`. \
            `kind = \"5g-log\"` reads the logs of a 5G phone. Where there is a CQI it counts, and not the \
            SINR: the cell grants what it says, at an SINR in its middle, and nothing fades over it. A \
            recording that ends begins again; `stagger` is how much later in it each further user begins",
};
pub(super) const BEARERS: Key<Own> = Key {
    name: "bearers",
    kind: Own("list of tables"),
    default: Open("one"),
    about: "of the keys of bearers; they may also stand in `[[user]]` itself, for all its bearers",
};
pub(super) const REAL_TIME_FIRST: Key<Flag, Is<bool>> = Key {
    name: "real_time_first",
    kind: Flag,
    default: Is(false),
    about: "the device sends real-time UDP before everything else, see below",
};

/// The keys of `[[user]]`.
pub(crate) const KEYS: Group = &[
    &NAME,
    &CELL,
    &HOST,
    &COUNT,
    &POSITION,
    &DROP,
    &WALK,
    &WAYPOINTS,
    &TRAJECTORY,
    &RECORDING,
    &BEARERS,
    &REAL_TIME_FIRST,
];
