//! The keys of `[[user]]` and of the tables in it, except those of bearers.

use core::ops::RangeInclusive;

use ranpace_radio::channel::Spread;
use ranpace_units::Span;

use super::super::keys::SPEEDS;
use super::MOST_USERS;
use crate::field::Field;
use crate::key::{
    By, Duration, Flag, Group, In, Is, Key, Name, Open, Own, Required, Table, Text, Whole, Within, Words,
};
use crate::measure::{DISTANCE, SPEED};

/// Slowest and fastest speed of a user on a path, in m/s. Ours.
const PATH_SPEEDS: RangeInclusive<f64> = 1e-3..=1_000.0;
/// Largest offset into a recording, and longest leg of a walk. Ours.
const MOST_TIME: Span = Span::from_secs(86_400);
/// Latest start of a path. Ours.
const MOST_START: Span = Span::from_secs(1_000 * 86_400);

pub(super) const NAME: Key<Name> = Key {
    name: "name",
    kind: Name("text"),
    default: Open("`user1`, `user2` ... by position"),
    about: "with `count`: `name.1`, `name.2` ...",
};
pub(super) const CELL: Key<Name> =
    Key { name: "cell", kind: Name("name"), default: Open("the only cell"), about: "initial cell" };
pub(super) const HOST: Key<Name> = Key {
    name: "host",
    kind: Name("text"),
    default: Open("its name"),
    about: "host of the user; not allowed with `count`",
};
pub(super) const COUNT: Key<Whole<usize>> = Key {
    name: "count",
    kind: Whole::new(1..=MOST_USERS as u64),
    default: Open(""),
    about: "number of users to create",
};
pub(super) const POSITION: Key<Own> =
    Key { name: "position", kind: Own("position"), default: Open("the preset's"), about: "fixed position" };
pub(super) const DROP: Key<Table> = Key {
    name: "drop",
    kind: Table("table"),
    default: Open(""),
    about: "fixed position drawn in a disc; see below",
};
pub(super) const WALK: Key<Table> =
    Key { name: "walk", kind: Table("table"), default: Open(""), about: "random walk in a disc; see below" };
pub(super) const WAYPOINTS: Key<Table> = Key {
    name: "waypoints",
    kind: Table("table"),
    default: Open(""),
    about: "path from point to point; see below",
};
pub(super) const TRAJECTORY: Key<Text> = Key {
    name: "trajectory",
    kind: Text("file"),
    default: Open(""),
    about: "CSV file with the columns `time_s`, `x_m`, `y_m` and optionally `z_m`",
};
pub(super) const RECORDING: Key<Table> = Key {
    name: "recording",
    kind: Table("file or table"),
    default: Open(""),
    about: "radio conditions over time, in place of path loss: CSV file with the column `time_s` and some of `sinr_db`, \
            `cqi`, `rsrp_dbm`, `gain_db`; as a table see below. A CQI takes precedence over the SINR: the cell uses it for \
            grants, at an SINR in the middle of its range and without fading. A recording repeats at its end",
};
pub(super) const BEARERS: Key<Own> = Key {
    name: "bearers",
    kind: Own("list of tables"),
    default: Open("one"),
    about: "tables with the keys of bearers; keys in `[[user]]` itself apply to all its bearers",
};
pub(super) const REAL_TIME_FIRST: Key<Flag, Is<bool>> = Key {
    name: "real_time_first",
    kind: Flag,
    default: Is(false),
    about: "whether the device sends real-time UDP before everything else; see below",
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

/// The keys of a disc, in `drop` and `walk`.
pub(crate) mod disc {
    use super::*;

    pub(in super::super) const RADIUS: Key<In, Required> =
        Key { name: "radius", kind: In(&DISTANCE, 0.0..=1e6), default: Required, about: "" };
    pub(in super::super) const CENTRE: Key<Own> =
        Key { name: "centre", kind: Own("position"), default: Open("the base station's"), about: "" };
    pub(in super::super) const SPREAD: Key<Words<Spread>, Is<Spread>> = Key {
        name: "spread",
        kind: Words(&[("area", Spread::Area), ("radius", Spread::Radius)]),
        default: Is(Spread::Area),
        about: "uniform over the area, or (`\"radius\"`) uniform in the distance from the centre, as in ns-3",
    };

    pub(crate) const KEYS: Group = &[&RADIUS, &CENTRE, &SPREAD];
}

/// The additional keys of `walk`.
pub(crate) mod walk {
    use super::*;

    pub(in super::super) const SPEEDS: Key<By<[f64; 2]>> = Key {
        name: "speed",
        kind: By("speed, or `[\"1m/s\", \"5m/s\"]`", read_speeds),
        default: Open("`[\"1m/s\", \"5m/s\"]`"),
        about: "constant, or drawn for each leg between two bounds",
    };
    pub(in super::super) const LEG: Key<Duration> = Key {
        name: "leg",
        kind: Within(Span::from_millis(1)..=MOST_TIME),
        default: Open("`\"10s\"`"),
        about: "duration of a leg, which has one direction",
    };
    pub(in super::super) const POSITION: Key<Own> =
        Key { name: "position", kind: Own("position"), default: Open("drawn"), about: "initial position" };

    pub(crate) const KEYS: Group = &[&SPEEDS, &LEG, &POSITION];

    /// A speed, or the two bounds of a random speed.
    fn read_speeds(field: &Field<'_>) -> Option<[f64; 2]> {
        const RANGE: RangeInclusive<f64> = super::SPEEDS;
        if field.is_text() {
            return field.measure(&SPEED, RANGE).map(|speed| [speed; 2]);
        }
        let elements = field.list("a speed such as \"4m/s\", or two such as [\"1m/s\", \"5m/s\"]")?;
        let speeds: Option<Vec<f64>> =
            elements.iter().map(|element| element.measure(&SPEED, RANGE)).collect();
        match speeds?[..] {
            [from, to] if from <= to => Some([from, to]),
            _ => {
                field.error("expected two speeds, the lower one first, such as [\"1m/s\", \"5m/s\"]");
                None
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use ranpace_radio::channel::{Disc, Position, WalkRule};

        use super::*;
        use crate::key::Print as _;

        #[test]
        fn printed_defaults_are_those_of_the_code() {
            let area = Disc { centre: Position::default(), radius_m: 1.0, spread: Spread::Area };
            let rule = WalkRule::pedestrian(area);
            let [from, to] = rule.speed_m_s;
            assert_eq!(SPEEDS.default.0, format!("`[\"{from}m/s\", \"{to}m/s\"]`"));
            assert_eq!(LEG.default.0, format!("`{}`", LEG.kind.print(&rule.leg)));
        }
    }
}

/// The keys of `waypoints`.
pub(crate) mod waypoints {
    use super::*;

    pub(in super::super) const POINTS: Key<Own, Required> = Key {
        name: "points",
        kind: Own("`[[50, 0], [400, 0]]`"),
        default: Required,
        about: "positions in metres",
    };
    pub(in super::super) const SPEED: Key<In, Required> =
        Key { name: "speed", kind: In(&super::SPEED, PATH_SPEEDS), default: Required, about: "" };
    pub(in super::super) const START: Key<Duration, Is<Span>> = Key {
        name: "start",
        kind: Within(Span::ZERO..=MOST_START),
        default: Is(Span::ZERO),
        about: "departure; until then the user stays at the first point",
    };

    pub(crate) const KEYS: Group = &[&POINTS, &SPEED, &START];
}

/// The keys of `recording`.
pub(crate) mod recording {
    use super::*;

    /// Values of `kind`.
    #[derive(Clone, Copy, PartialEq)]
    pub(in super::super) enum RecordingWord {
        Csv,
        PhoneLog,
    }

    pub(in super::super) const FILE: Key<Name, Required> =
        Key { name: "file", kind: Name("file"), default: Required, about: "" };
    pub(in super::super) const KIND: Key<Words<RecordingWord>, Is<RecordingWord>> = Key {
        name: "kind",
        kind: Words(&[("csv", RecordingWord::Csv), ("5g-log", RecordingWord::PhoneLog)]),
        default: Is(RecordingWord::Csv),
        about: "`\"5g-log\"`: log of a 5G phone",
    };
    pub(in super::super) const FROM: Key<Duration, Is<Span>> = Key {
        name: "from",
        kind: Within(Span::ZERO..=MOST_TIME),
        default: Is(Span::ZERO),
        about: "offset at which the user starts in the recording",
    };
    pub(in super::super) const STAGGER: Key<Duration, Is<Span>> = Key {
        name: "stagger",
        kind: Within(Span::ZERO..=MOST_TIME),
        default: Is(Span::ZERO),
        about: "with `count`: additional offset of each further user",
    };

    pub(crate) const KEYS: Group = &[&FILE, &KIND, &FROM, &STAGGER];
}
