//! The keys of the tables in `[[cell]]` and in bearers, with a module for each table.

use ranpace_radio::cell::OuterLoop;
use ranpace_radio::channel::{Flicker, Shadowing};
use ranpace_radio::rlc::{NAMED_TIMERS, Timers};
use ranpace_radio::scheduler::Policy;
use ranpace_radio::uplink::PowerControl;
use ranpace_units::{Bytes, Span};

use super::{LEVELS, MOST_TIMER};
use crate::key::{
    By, Duration, Flag, Group, In, Is, Key, Name, Number, Open, Own, Required, Size, Whole, Within, WordOr,
    Words,
};
use crate::limits::LEAST_SPAN;
use crate::measure::{DISTANCE, GAIN, POWER};

/// Longest period of intermittent effects. Ours.
const DAY: Span = Span::from_secs(86_400);

/// The keys of `path_loss`.
pub(crate) mod path_loss {
    use super::*;

    /// Values of `kind`.
    #[derive(Clone, Copy, PartialEq)]
    pub(crate) enum LossWord {
        Friis,
        LogDistance,
        Cost231,
        Umi,
    }

    pub(crate) const KIND: Key<Words<LossWord>, Required> = Key {
        name: "kind",
        kind: Words(&[
            ("friis", LossWord::Friis),
            ("log-distance", LossWord::LogDistance),
            ("cost231", LossWord::Cost231),
            ("umi", LossWord::Umi),
        ]),
        default: Required,
        about: "",
    };
    // ns-3's defaults.
    pub(crate) const EXPONENT: Key<Number, Is<f64>> = Key {
        name: "exponent",
        kind: Number(0.0..=20.0),
        default: Is(3.0),
        about: "`\"log-distance\"`: path-loss exponent",
    };
    pub(crate) const AT_1M: Key<In, Is<f64>> = Key {
        name: "at_1m",
        kind: In(&GAIN, LEVELS),
        default: Is(46.6777),
        about: "`\"log-distance\"`: loss at 1 m",
    };
    pub(crate) const BASE_HEIGHT: Key<In, Is<f64>> = Key {
        name: "base_height",
        kind: In(&DISTANCE, 1.0..=1_000.0),
        default: Is(30.0),
        about: "`\"cost231\"`: height of the base station (ns-3: 50 m)",
    };
    pub(crate) const USER_HEIGHT: Key<In, Is<f64>> = Key {
        name: "user_height",
        kind: In(&DISTANCE, 0.1..=100.0),
        default: Is(1.5),
        about: "`\"cost231\"`: height of users (ns-3: 3 m)",
    };
    pub(crate) const EXTRA: Key<In, Is<f64>> = Key {
        name: "extra",
        kind: In(&GAIN, LEVELS),
        default: Is(0.0),
        about: "`\"cost231\"`: additional loss (ns-3: 10 dB)",
    };

    pub(crate) const KEYS: Group = &[&KIND, &EXPONENT, &AT_1M, &BASE_HEIGHT, &USER_HEIGHT, &EXTRA];
}

/// The keys of `sight`.
pub(crate) mod sight {
    use super::*;

    /// Values of `kind`.
    #[derive(Clone, Copy, PartialEq)]
    pub(crate) enum SightWord {
        Clear,
        Blocked,
        Chance,
        Street,
        Buildings,
    }

    pub(crate) const KIND: Key<Words<SightWord>, Required> = Key {
        name: "kind",
        kind: Words(&[
            ("clear", SightWord::Clear),
            ("blocked", SightWord::Blocked),
            ("chance", SightWord::Chance),
            ("street", SightWord::Street),
            ("buildings", SightWord::Buildings),
        ]),
        default: Required,
        about: "",
    };
    pub(crate) const BUILDINGS: Key<Own, Required> = Key {
        name: "buildings",
        kind: Own("list of tables"),
        default: Required,
        about: "`\"buildings\"`: the obstacles, each with the keys below",
    };

    pub(crate) const KEYS: Group = &[&KIND, &BUILDINGS];
}

/// The keys of a building in `sight`.
pub(crate) mod building {
    use super::*;
    use crate::field::Field;

    /// Accepted distances in metres. Ours.
    const DISTANCES: core::ops::RangeInclusive<f64> = 0.0..=1e6;

    pub(crate) const X: Key<By<[f64; 2]>, Required> = Key {
        name: "x",
        kind: By("`[20, 63]`", read_side),
        default: Required,
        about: "extent in metres: from, to",
    };
    pub(crate) const Y: Key<By<[f64; 2]>, Required> = Key {
        name: "y",
        kind: By("`[3, 58]`", read_side),
        default: Required,
        about: "extent in metres: from, to",
    };
    pub(crate) const HEIGHT: Key<In, Required> = Key {
        name: "height",
        kind: In(&DISTANCE, DISTANCES),
        default: Required,
        about: "height of the roof",
    };

    pub(crate) const KEYS: Group = &[&X, &Y, &HEIGHT];

    /// Lower and upper coordinate of a building, in metres.
    fn read_side(field: &Field<'_>) -> Option<[f64; 2]> {
        let numbers = field.list("two coordinates in metres such as [20, 63]")?;
        let metres: Option<Vec<f64>> = numbers.iter().map(|field| field.number(-1e6..=1e6)).collect();
        match metres?[..] {
            [from, to] if from <= to => Some([from, to]),
            _ => {
                field.error("expected two coordinates in metres, the smaller one first, such as [20, 63]");
                None
            }
        }
    }
}

/// The keys of `shadowing`; standard deviations are those of a log-normal loss.
pub(crate) mod shadowing {
    use super::*;

    /// Accepted standard deviations.
    const DEVIATIONS: In = In(&GAIN, 0.0..=100.0);

    pub(crate) const CLEAR: Key<In, Is<f64>> = Key {
        name: "clear",
        kind: DEVIATIONS,
        default: Is(Shadowing::UMI.clear_db),
        about: "standard deviation with line of sight",
    };
    pub(crate) const BLOCKED: Key<In, Is<f64>> = Key {
        name: "blocked",
        kind: DEVIATIONS,
        default: Is(Shadowing::UMI.blocked_db),
        about: "standard deviation without line of sight",
    };
    pub(crate) const STRETCH: Key<In, Is<f64>> = Key {
        name: "stretch",
        kind: In(&DISTANCE, 0.1..=1e6),
        default: Is(Shadowing::UMI.stretch_m),
        about: "distance travelled over which the loss is constant",
    };

    pub(crate) const KEYS: Group = &[&CLEAR, &BLOCKED, &STRETCH];
}

/// The keys of `fading`.
pub(crate) mod fading {
    use super::*;

    /// Values of `kind`.
    #[derive(Clone, Copy, PartialEq)]
    pub(crate) enum FadingWord {
        None,
        Flat,
        Epa,
        Eva,
        Etu,
        Mmwave,
        Recorded,
    }

    pub(crate) const KIND: Key<Words<FadingWord>, Required> = Key {
        name: "kind",
        kind: Words(&[
            ("none", FadingWord::None),
            ("flat", FadingWord::Flat),
            ("epa", FadingWord::Epa),
            ("eva", FadingWord::Eva),
            ("etu", FadingWord::Etu),
            ("mmwave", FadingWord::Mmwave),
            ("recorded", FadingWord::Recorded),
        ]),
        default: Required,
        about: "",
    };
    // ns-3's traces also have one sample per millisecond.
    pub(crate) const EVERY: Key<Duration, Is<Span>> = Key {
        name: "every",
        kind: Within(LEAST_SPAN..=Span::from_secs(60)),
        default: Is(Flicker::MMWAVE.every),
        about: "`\"mmwave\"`, `\"recorded\"`: interval between two gains",
    };
    pub(crate) const DEVIATION: Key<In, Is<f64>> = Key {
        name: "deviation",
        kind: In(&GAIN, 0.0..=100.0),
        default: Is(Flicker::MMWAVE.deviation_db),
        about: "`\"mmwave\"`: standard deviation of the gain",
    };
    pub(crate) const FILE: Key<Name, Required> = Key {
        name: "file",
        kind: Name("file"),
        default: Required,
        about: "`\"recorded\"`: an ns-3 fading trace, for LTE",
    };

    pub(crate) const KEYS: Group = &[&KIND, &EVERY, &DEVIATION, &FILE];
}

/// The keys of `noise` and `noise_up`.
pub(crate) mod noise {
    use super::*;

    pub(crate) const PRB: Key<In, Required> =
        Key { name: "prb", kind: In(&POWER, LEVELS), default: Required, about: "power in each PRB" };
    pub(crate) const ON: Key<Duration> = Key {
        name: "on",
        kind: Within(Span::ZERO..=DAY),
        default: Open("always"),
        about: "time that the generator is on in each period; needs `period`",
    };
    pub(crate) const PERIOD: Key<Duration> = Key {
        name: "period",
        kind: Within(LEAST_SPAN..=DAY),
        default: Open(""),
        about: "length of a period; needs `on`",
    };
    pub(crate) const RANDOM: Key<Flag, Is<bool>> = Key {
        name: "random",
        kind: Flag,
        default: Is(false),
        about: "the generator starts at a random time in each period, for an exponentially distributed time with mean `on`",
    };

    pub(crate) const KEYS: Group = &[&PRB, &ON, &PERIOD, &RANDOM];
}

/// The keys of `outer_loop`.
pub(crate) mod outer_loop {
    use super::*;

    pub(crate) const TARGET: Key<Number, Is<f64>> = Key {
        name: "target",
        kind: Number(0.0001..=0.9),
        default: Is(OuterLoop::TEN_PERCENT.target),
        about: "target share of first transmissions that fail",
    };
    pub(crate) const STEP: Key<Number, Is<f64>> = Key {
        name: "step",
        kind: Number(0.001..=10.0),
        default: Is(OuterLoop::TEN_PERCENT.step),
        about: "MCS steps by which a failure lowers the MCS",
    };

    pub(crate) const KEYS: Group = &[&TARGET, &STEP];
}

/// The keys of `harq` and `harq_up`.
pub(crate) mod harq {
    use super::*;

    pub(crate) const PROCESSES: Key<Whole<u8>> = Key {
        name: "processes",
        kind: Whole::new(1..=64),
        default: Open(""),
        about: "number of processes per user",
    };
    pub(crate) const RETRANSMISSIONS: Key<Whole<u8>> = Key {
        name: "retransmissions",
        kind: Whole::new(0..=255),
        default: Open(""),
        about: "retransmissions of a block before it is dropped",
    };
    pub(crate) const DECODE: Key<Own> = Key {
        name: "decode",
        kind: Own("time"),
        default: Open(""),
        about: "time from transmission until a block reaches RLC",
    };
    pub(crate) const FEEDBACK: Key<Own> = Key {
        name: "feedback",
        kind: Own("time"),
        default: Open(""),
        about: "time from transmission until the sender receives the acknowledgement",
    };
    pub(crate) const TURNAROUND: Key<Own> = Key {
        name: "turnaround",
        kind: Own("time"),
        default: Open(""),
        about: "time from a transmission until its process may send again; at least a slot",
    };
    pub(crate) const MISREADING: Key<Number> = Key {
        name: "misreading",
        kind: Number(0.0..=1.0),
        default: Open(""),
        about: "probability that the sender reads a failure as success, so that the block is lost",
    };
    pub(crate) const SYNCHRONOUS: Key<Flag> = Key {
        name: "synchronous",
        kind: Flag,
        default: Open(""),
        about: "retransmit only at multiples of `turnaround`, as in LTE's uplink; otherwise in any later slot",
    };

    pub(crate) const KEYS: Group =
        &[&PROCESSES, &RETRANSMISSIONS, &DECODE, &FEEDBACK, &TURNAROUND, &MISREADING, &SYNCHRONOUS];
}

/// The keys of `control_channels`.
pub(crate) mod control_channels {
    use super::*;

    pub(crate) const SYMBOLS: Key<Own> = Key {
        name: "symbols",
        kind: Own("1 to 3; 2 to 4 below 11 PRBs"),
        default: Open(""),
        about: "control symbols per subframe",
    };

    pub(crate) const KEYS: Group = &[&SYMBOLS];
}

/// The keys of `scheduler`.
pub(crate) mod scheduler {
    use super::*;

    /// ns-3's window.
    const WINDOW_TTIS: f64 = match Policy::PROPORTIONAL_FAIR {
        Policy::ProportionalFair { window } => window,
        _ => 0.0,
    };

    pub(crate) const KIND: Key<Words<Policy>, Required> = Key {
        name: "kind",
        kind: Words(&[
            ("pf", Policy::PROPORTIONAL_FAIR),
            ("rr", Policy::RoundRobin),
            ("max-ci", Policy::MaxCi),
        ]),
        default: Required,
        about: "",
    };
    pub(crate) const WINDOW: Key<Number, Is<f64>> = Key {
        name: "window",
        kind: Number(1.0..=1e9),
        default: Is(WINDOW_TTIS),
        about: "`\"pf\"`: averaging window in slots",
    };

    pub(crate) const KEYS: Group = &[&KIND, &WINDOW];
}

/// The keys of `ul_power`.
pub(crate) mod ul_power {
    use super::*;

    pub(crate) const KIND: Key<Words<PowerControl>, Required> = Key {
        name: "kind",
        kind: Words(&[
            ("3gpp", PowerControl::THREE_GPP),
            ("lena", PowerControl::LENA),
            ("fixed", PowerControl::Fixed),
        ]),
        default: Required,
        about: "",
    };
    pub(crate) const P0: Key<In> = Key {
        name: "p0",
        kind: In(&POWER, LEVELS),
        default: Open("`\"-90dBm\"`; `\"-80dBm\"` for `\"lena\"`"),
        about: "power per PRB at zero path loss; not for `\"fixed\"`",
    };
    pub(crate) const ALPHA: Key<Number> = Key {
        name: "alpha",
        kind: Number(0.0..=1.0),
        default: Open("`0.8`; `1` for `\"lena\"`"),
        about: "share of the path loss that is compensated; not for `\"fixed\"`",
    };

    pub(crate) const KEYS: Group = &[&KIND, &P0, &ALPHA];

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::key::Print as _;

        #[test]
        fn printed_defaults_are_those_of_the_code() {
            let (
                PowerControl::ThreeGpp { p0_dbm, alpha },
                PowerControl::Lena { p0_dbm: p0_lena, alpha: alpha_lena },
            ) = (PowerControl::THREE_GPP, PowerControl::LENA)
            else {
                panic!("these are the kinds");
            };
            let p0 = |value| P0.kind.print(value);
            assert_eq!(P0.default.0, format!("`{}`; `{}` for `\"lena\"`", p0(&p0_dbm), p0(&p0_lena)));
            let alphas = [alpha, alpha_lena].map(|value| ALPHA.kind.print(&value));
            assert_eq!(ALPHA.default.0, format!("`{}`; `{}` for `\"lena\"`", alphas[0], alphas[1]));
        }
    }
}

/// The keys of `rlc_timers`.
pub(crate) mod rlc_timers {
    use super::*;

    /// Times of a bearer.
    const TIMES: Duration = Within(Span::ZERO..=MOST_TIMER);

    pub(crate) const KIND: Key<Words<Timers>> = Key {
        name: "kind",
        kind: Words(&[NAMED_TIMERS[0], NAMED_TIMERS[1], ("mmwave", Timers::MMWAVE)]),
        default: Open(""),
        about: "source of the values that are not given",
    };
    pub(crate) const REORDERING: Key<Duration> =
        Key { name: "reordering", kind: TIMES, default: Open(""), about: "t-Reordering" };
    pub(crate) const STATUS_PROHIBIT: Key<Duration> =
        Key { name: "status_prohibit", kind: TIMES, default: Open(""), about: "t-StatusProhibit" };
    pub(crate) const POLL_RETRANSMIT: Key<Duration> =
        Key { name: "poll_retransmit", kind: TIMES, default: Open(""), about: "t-PollRetransmit" };
    pub(crate) const UNACKNOWLEDGED_REPORT: Key<Duration> = Key {
        name: "unacknowledged_report",
        kind: TIMES,
        default: Open(""),
        about: "interval of reports that count unacknowledged PDUs as waiting, as in ns-3 (20 ms); users whose \
                acknowledgements do not arrive then waste blocks. `\"0s\"`: never",
    };
    pub(crate) const MAX_RETRANSMISSIONS: Key<WordOr<Whole<u8>>> = Key {
        name: "max_retransmissions",
        kind: WordOr("never", Whole::new(0..=255)),
        default: Open(""),
        about: "retransmissions of a PDU before the bearer fails",
    };
    pub(crate) const POLL_PDUS: Key<Whole<u32>> =
        Key { name: "poll_pdus", kind: Whole::new(1..=1_000_000), default: Open(""), about: "pollPDU" };
    pub(crate) const POLL_BYTES: Key<Size> = Key {
        name: "poll_bytes",
        kind: Within(Bytes::new(1)..=Bytes::MAX),
        default: Open(""),
        about: "pollByte",
    };
    pub(crate) const WINDOW: Key<Whole<u32>> =
        Key { name: "window", kind: Whole::new(1..=131_072), default: Open(""), about: "AM window in PDUs" };
    pub(crate) const POLL_SENDS_ALL: Key<Flag> = Key {
        name: "poll_sends_all",
        kind: Flag,
        default: Open(""),
        about: "whether all unacknowledged PDUs are retransmitted when t-PollRetransmit expires, as in ns-3; otherwise \
                only the last",
    };

    pub(crate) const KEYS: Group = &[
        &KIND,
        &REORDERING,
        &STATUS_PROHIBIT,
        &POLL_RETRANSMIT,
        &UNACKNOWLEDGED_REPORT,
        &MAX_RETRANSMISSIONS,
        &POLL_PDUS,
        &POLL_BYTES,
        &WINDOW,
        &POLL_SENDS_ALL,
    ];
}
