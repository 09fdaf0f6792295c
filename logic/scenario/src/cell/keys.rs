//! The keys of `[[cell]]` and those of bearers. Missing values come from the preset.

pub(crate) mod nested;

use core::ops::RangeInclusive;

use ranpace_phy::{CqiThresholds, McsRule};
use ranpace_radio::cell::Division;
use ranpace_radio::rlc::{Format, Mode};
use ranpace_radio::scheduler::Alloc;
use ranpace_radio::uplink::ReportLevels;
use ranpace_units::{Bytes, Span};

use crate::key::{
    Duration, Flag, Group, In, Key, Name, Open, Own, Positive, Size, Table, Text, Whole, Within, WordOr,
    Words,
};
use crate::limits::LEAST_SPAN;
use crate::measure::{self, DISTANCE, FREQUENCY, SPEED};

/// Accepted levels in dB and dBm, as in [`ranpace_radio::cell::CellConfig::check`].
pub(super) const LEVELS: RangeInclusive<f64> = -200.0..=200.0;
/// Accepted speeds in m/s, beyond that of the fastest train.
pub(super) const SPEEDS: RangeInclusive<f64> = 0.0..=1_000.0;
/// Longest accepted timer of a bearer. Ours.
pub(super) const MOST_TIMER: Span = Span::from_secs(3_600);

/// Values of `duplex`.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum DuplexWord {
    Fdd,
    Tdd,
    Dynamic,
}

pub(super) const NAME: Key<Name> =
    Key { name: "name", kind: Name("text"), default: Open(""), about: "`cell1`, `cell2` ... by position" };
pub(super) const HOST: Key<Name> = Key {
    name: "host",
    kind: Name("text"),
    default: Open(""),
    about: "host where wired links end; default: the cell's name. Several cells may share a host",
};
pub(super) const PRESET: Key<Text> =
    Key { name: "preset", kind: Text("see above"), default: Open(""), about: "" };
pub(super) const RADIO: Key<Words<&str>> = Key {
    name: "radio",
    kind: Words(&[("lte", "lte"), ("nr", "nr"), ("mmwave", "mmwave")]),
    default: Open(""),
    about: "",
};
pub(super) const USER_HEIGHT: Key<In> = Key {
    name: "user_height",
    kind: In(&DISTANCE, 0.0..=100_000.0),
    default: Open(""),
    about: "height of users whose position does not include one",
};

/// The name of a cell, and its starting point.
pub(crate) const CELL: Group = &[&NAME, &HOST, &PRESET, &RADIO, &USER_HEIGHT];

pub(super) const BANDWIDTH: Key<In> = Key {
    name: "bandwidth",
    kind: In(&FREQUENCY, 1e6..=1e9),
    default: Open(""),
    about: "LTE: 1.4, 3, 5, 10, 15, 20 MHz; NR: those of TS 38.101",
};
pub(super) const PRBS: Key<Own> = Key {
    name: "prbs",
    kind: Own("whole number"),
    default: Open(""),
    about: "in place of `bandwidth`: LTE 1 to 110, NR 1 to 275",
};
pub(super) const SPACING: Key<In> = Key {
    name: "spacing",
    kind: In(&FREQUENCY, 1e3..=1e6),
    default: Open(""),
    about: "NR: subcarrier spacing, `\"15kHz\"` to `\"120kHz\"`; needs `bandwidth` or `prbs`",
};
pub(super) const DUPLEX: Key<Words<DuplexWord>> = Key {
    name: "duplex",
    kind: Words(&[("fdd", DuplexWord::Fdd), ("tdd", DuplexWord::Tdd), ("dynamic", DuplexWord::Dynamic)]),
    default: Open(""),
    about: "NR; `\"dynamic\"`: the scheduler assigns each symbol to a direction",
};
pub(super) const PATTERN: Key<Text> = Key {
    name: "pattern",
    kind: Text("`\"DDDSU\"`, `\"DDDSU 6:4:4\"`"),
    default: Open(""),
    about: "NR with `\"tdd\"`: the slots of a period; the numbers are the downlink, gap and uplink symbols of S. Both \
            directions need symbols",
};
pub(super) const QAM: Key<Own> =
    Key { name: "qam", kind: Own("`64`, `256`"), default: Open(""), about: "NR: highest modulation order" };
pub(super) const LAYERS: Key<Own> =
    Key { name: "layers", kind: Own("1 to 4"), default: Open(""), about: "NR: number of MIMO layers" };
// At least one symbol of the 168 elements of a PRB and slot must carry data (ours).
pub(super) const OVERHEAD: Key<Whole<u8>> = Key {
    name: "overhead",
    kind: Whole::new(0..=156),
    default: Open(""),
    about: "NR: resource elements per PRB and slot that carry no data",
};
pub(super) const DIVISION: Key<Words<Division>> = Key {
    name: "division",
    kind: Words(&[("frequency", Division::Frequency), ("symbols", Division::Symbols)]),
    default: Open(""),
    about: "NR: what the scheduler allocates, resource block groups or symbols",
};

/// The air interface.
pub(crate) const AIR: Group =
    &[&BANDWIDTH, &PRBS, &SPACING, &DUPLEX, &PATTERN, &QAM, &LAYERS, &OVERHEAD, &DIVISION];

/// Keys that only NR has.
pub(super) const OF_NR: Group = &[&SPACING, &DUPLEX, &PATTERN, &QAM, &LAYERS, &OVERHEAD, &DIVISION];

pub(super) const POSITION: Key<Own> =
    Key { name: "position", kind: Own("position"), default: Open(""), about: "position of the base station" };
pub(super) const CARRIER: Key<In> = Key {
    name: "carrier",
    kind: In(&FREQUENCY, 1e6..=1e12),
    default: Open(""),
    about: "downlink carrier frequency",
};
pub(super) const CARRIER_UP: Key<In> = Key {
    name: "carrier_up",
    kind: In(&FREQUENCY, 1e6..=1e12),
    default: Open(""),
    about: "uplink carrier frequency with FDD; default: the preset's distance from the downlink",
};
pub(super) const PATH_LOSS: Key<Table> = Key {
    name: "path_loss",
    kind: Table("`\"friis\"`, `\"log-distance\"`, `\"cost231\"`, `\"umi\"`, or a table"),
    default: Open(""),
    about: "see below",
};
pub(super) const SIGHT: Key<Table> = Key {
    name: "sight",
    kind: Table("`\"clear\"`, `\"blocked\"`, `\"chance\"`, `\"street\"`, or a table"),
    default: Open(""),
    about: "which users have line of sight to the base station; see below",
};
pub(super) const SHADOWING: Key<Table> = Key {
    name: "shadowing",
    kind: Table("`\"none\"`, `\"umi\"`, or a table"),
    default: Open(""),
    about: "see below",
};
pub(super) const FADING: Key<Table> = Key {
    name: "fading",
    kind: Table("`\"none\"`, `\"flat\"`, `\"epa\"`, `\"eva\"`, `\"etu\"`, `\"mmwave\"`, or a table"),
    default: Open(""),
    about: "see below",
};
pub(super) const FADING_SPEED: Key<WordOr<In>> = Key {
    name: "fading_speed",
    kind: WordOr("moving", In(&SPEED, SPEEDS)),
    default: Open(""),
    about: "user speed for the fading `\"flat\"`, `\"epa\"`, `\"eva\"` and `\"etu\"`; `\"moving\"`: each user's actual \
            speed, so the gain of a stationary user is constant",
};
pub(super) const POWER: Key<In> = Key {
    name: "power",
    kind: In(&measure::POWER, LEVELS),
    default: Open(""),
    about: "transmit power of the base station over the whole band",
};
pub(super) const GAIN: Key<In> = Key {
    name: "gain",
    kind: In(&measure::GAIN, LEVELS),
    default: Open(""),
    about: "gain of antennas and beams, both ends together",
};
pub(super) const NOISE_FIGURE: Key<In> = Key {
    name: "noise_figure",
    kind: In(&measure::GAIN, LEVELS),
    default: Open(""),
    about: "noise figure of users",
};
pub(super) const NOISE_FIGURE_UP: Key<In> = Key {
    name: "noise_figure_up",
    kind: In(&measure::GAIN, LEVELS),
    default: Open(""),
    about: "noise figure of the base station",
};
pub(super) const INTERFERENCE: Key<In> = Key {
    name: "interference",
    kind: In(&measure::GAIN, 0.0..=200.0),
    default: Open(""),
    about: "rise of the noise floor caused by other cells, in the downlink",
};
pub(super) const INTERFERENCE_UP: Key<In> = Key {
    name: "interference_up",
    kind: In(&measure::GAIN, 0.0..=200.0),
    default: Open(""),
    about: "the same in the uplink",
};
pub(super) const NOISE: Key<Table> = Key {
    name: "noise",
    kind: Table("power, `\"none\"`, or a table"),
    default: Open(""),
    about: "noise generator at the users: power in each PRB; see below",
};
pub(super) const NOISE_UP: Key<Table> = Key {
    name: "noise_up",
    kind: Table("as `noise`"),
    default: Open(""),
    about: "the same at the base station",
};

/// The channel.
pub(crate) const CHANNEL: Group = &[
    &POSITION,
    &CARRIER,
    &CARRIER_UP,
    &PATH_LOSS,
    &SIGHT,
    &SHADOWING,
    &FADING,
    &FADING_SPEED,
    &POWER,
    &GAIN,
    &NOISE_FIGURE,
    &NOISE_FIGURE_UP,
    &INTERFERENCE,
    &INTERFERENCE_UP,
    &NOISE,
    &NOISE_UP,
];

pub(super) const CQI_TABLE: Key<Words<CqiThresholds>> = Key {
    name: "cqi_table",
    kind: Words(&[
        ("awgn", CqiThresholds::Awgn),
        ("ns3", CqiThresholds::Ns3),
        ("ns3-25", CqiThresholds::Ns3On25Prbs),
        ("piro", CqiThresholds::Ns3Piro),
    ]),
    default: Open(""),
    about: "mapping from SINR to CQI",
};
pub(super) const WORST_UNIT: Key<Flag> = Key {
    name: "worst_unit",
    kind: Flag,
    default: Open(""),
    about: "whether the worst CQI within a grant sets its MCS, as in ns-3; otherwise the mean efficiency does",
};
pub(super) const MCS_RULE: Key<Words<McsRule>> = Key {
    name: "mcs_rule",
    kind: Words(&[("lena", McsRule::Lena), ("oai", McsRule::Oai)]),
    default: Open(""),
    about: "LTE: mapping from CQI to MCS",
};
pub(super) const FIXED_MCS: Key<WordOr<Whole<u8>>> = Key {
    name: "fixed_mcs",
    kind: WordOr("none", Whole::new(0..=28)),
    default: Open(""),
    about: "MCS of every grant, regardless of the channel",
};
pub(super) const CQI_PERIOD: Key<Own> = Key {
    name: "cqi_period",
    kind: Own("time"),
    default: Open(""),
    about: "interval between two measurements; at least a slot",
};
pub(super) const CQI_DELAY: Key<Own> = Key {
    name: "cqi_delay",
    kind: Own("time"),
    default: Open(""),
    about: "time from a measurement until the scheduler can use it",
};
pub(super) const CQI_DELAY_UP: Key<Own> =
    Key { name: "cqi_delay_up", kind: Own("time"), default: Open(""), about: "the same in the uplink" };
pub(super) const OUTER_LOOP: Key<Table> = Key {
    name: "outer_loop",
    kind: Table("`true`, `false`, or a table"),
    default: Open(""),
    about: "adjusts the MCS towards a target error rate; see below",
};
pub(super) const BLOCK_ERRORS: Key<Own> = Key {
    name: "block_errors",
    kind: Own("`\"awgn\"`, `\"ns3\"`, or 0 to 1"),
    default: Open(""),
    about: "error model, or a fixed block error rate; `\"ns3\"` is for LTE",
};
pub(super) const CONTROL_ERRORS: Key<Flag> = Key {
    name: "control_errors",
    kind: Flag,
    default: Open(""),
    about: "LTE: users at low SINR miss control information too",
};
pub(super) const HARQ: Key<Table> = Key {
    name: "harq",
    kind: Table("table"),
    default: Open(""),
    about: "settings of both directions; see below",
};
pub(super) const HARQ_UP: Key<Table> = Key {
    name: "harq_up",
    kind: Table("table"),
    default: Open(""),
    about: "settings that differ in the uplink",
};

/// Link adaptation and HARQ.
pub(crate) const ADAPTATION: Group = &[
    &CQI_TABLE,
    &WORST_UNIT,
    &MCS_RULE,
    &FIXED_MCS,
    &CQI_PERIOD,
    &CQI_DELAY,
    &CQI_DELAY_UP,
    &OUTER_LOOP,
    &BLOCK_ERRORS,
    &CONTROL_ERRORS,
    &HARQ,
    &HARQ_UP,
];

pub(super) const SCHEDULER: Key<Table> = Key {
    name: "scheduler",
    kind: Table("`\"pf\"`, `\"rr\"`, `\"max-ci\"`, or a table"),
    default: Open(""),
    about: "see below",
};
pub(super) const ALLOC: Key<Words<Alloc>> = Key {
    name: "alloc",
    kind: Words(&[("queue", Alloc::Queue), ("full", Alloc::Full)]),
    default: Open(""),
    about: "grant what users have queued, or everything, padded as in ns-3",
};
pub(super) const USABLE_TTIS: Key<Positive> = Key {
    name: "usable_ttis",
    kind: Positive(1.0),
    default: Open(""),
    about: "share of the slots in which new downlink data is sent. Rates derived from radio reports do not account for it; \
            RAPID's `efficiency` can",
};
pub(super) const CONTROL_CHANNELS: Key<Table> = Key {
    name: "control_channels",
    kind: Table("`\"narrow\"`, `\"3gpp\"`, `\"none\"`, or a table"),
    default: Open(""),
    about: "LTE: control and broadcast channels, which reduce the downlink; see below. `\"narrow\"`: as `\"3gpp\"` below \
            25 PRBs, as `\"none\"` from there on",
};
pub(super) const SR_PERIOD: Key<Own> = Key {
    name: "sr_period",
    kind: Own("time"),
    default: Open(""),
    about: "interval between a user's opportunities for scheduling requests",
};
pub(super) const SR_PROHIBIT: Key<Own> = Key {
    name: "sr_prohibit",
    kind: Own("time"),
    default: Open(""),
    about: "minimum time between scheduling requests while no grant arrives",
};
pub(super) const SR_TO_GRANT: Key<Own> = Key {
    name: "sr_to_grant",
    kind: Own("time"),
    default: Open(""),
    about: "time from a scheduling request to its grant",
};
pub(super) const GRANT_TO_PUSCH: Key<Own> = Key {
    name: "grant_to_pusch",
    kind: Own("time"),
    default: Open(""),
    about: "time from a grant to its transmission",
};
pub(super) const BSR_PERIOD: Key<Own> = Key {
    name: "bsr_period",
    kind: Own("time"),
    default: Open(""),
    about: "interval of buffer status reports",
};
pub(super) const BSR_RETRANSMISSION: Key<Own> = Key {
    name: "bsr_retransmission",
    kind: Own("time"),
    default: Open(""),
    about: "time without a grant after which a user that reported its buffer sends a scheduling request",
};
pub(super) const BSR_LEVELS: Key<Words<ReportLevels>> = Key {
    name: "bsr_levels",
    kind: Words(&[("exact", ReportLevels::Exact), ("lte", ReportLevels::Lte), ("nr", ReportLevels::Nr)]),
    default: Open(""),
    about: "buffer levels that a report can express",
};
pub(super) const IDEAL_REPORTS: Key<Flag> = Key {
    name: "ideal_reports",
    kind: Flag,
    default: Open(""),
    about: "buffer status is reported outside of blocks and without a request, in each slot in which data was added, as in \
            ns-3",
};
pub(super) const FIRST_GRANT: Key<Size> = Key {
    name: "first_grant",
    kind: Within(Bytes::new(1)..=Bytes::new(1_000_000)),
    default: Open(""),
    about: "grant for a scheduling request if nothing is known of the buffer",
};
pub(super) const UL_POWER: Key<Table> = Key {
    name: "ul_power",
    kind: Table("`\"3gpp\"`, `\"lena\"`, `\"fixed\"`, or a table"),
    default: Open(""),
    about: "see below",
};
pub(super) const USER_POWER: Key<In> = Key {
    name: "user_power",
    kind: In(&measure::POWER, -200.0..=200.0),
    default: Open(""),
    about: "maximum transmit power of a user",
};

/// Scheduling and uplink.
pub(crate) const UPLINK: Group = &[
    &SCHEDULER,
    &ALLOC,
    &USABLE_TTIS,
    &CONTROL_CHANNELS,
    &SR_PERIOD,
    &SR_PROHIBIT,
    &SR_TO_GRANT,
    &GRANT_TO_PUSCH,
    &BSR_PERIOD,
    &BSR_RETRANSMISSION,
    &BSR_LEVELS,
    &IDEAL_REPORTS,
    &FIRST_GRANT,
    &UL_POWER,
    &USER_POWER,
];

pub(super) const RLC: Key<Words<Mode>> = Key {
    name: "rlc",
    kind: Words(&[("am", Mode::Acknowledged), ("um", Mode::Unacknowledged)]),
    default: Open(""),
    about: "",
};
pub(super) const RLC_TIMERS: Key<Table> = Key {
    name: "rlc_timers",
    kind: Table("`\"ns3\"`, `\"36331\"`, `\"mmwave\"`, or a table"),
    default: Open(""),
    about: "see below",
};
pub(super) const RLC_FORMAT: Key<Words<Format>> = Key {
    name: "rlc_format",
    kind: Words(&[("lte", Format::Lte), ("nr", Format::Nr)]),
    default: Open(""),
    about: "header sizes",
};
pub(super) const BUFFER: Key<Own> = Key {
    name: "buffer",
    kind: Own("as a queue's `limit`"),
    default: Open(""),
    about: "buffer size at the base station",
};
pub(super) const BUFFER_UP: Key<Own> = Key {
    name: "buffer_up",
    kind: Own("as a queue's `limit`"),
    default: Open(""),
    about: "buffer size at the user; default: `buffer`, if that is given",
};
pub(super) const AQM: Key<Table> = Key {
    name: "aqm",
    kind: Table("as a link's `queue`, without `limit`"),
    default: Open(""),
    about: "queue management at the base station: `\"droptail\"`, `{ kind = \"codel\", target = \"20ms\" }`",
};
pub(super) const AQM_UP: Key<Table> = Key {
    name: "aqm_up",
    kind: Table("as `aqm`, but not `\"abc\"`"),
    default: Open(""),
    about: "queue management at the user",
};
pub(super) const DISCARD: Key<WordOr<Duration>> = Key {
    name: "discard",
    kind: WordOr("never", Within(LEAST_SPAN..=MOST_TIMER)),
    default: Open(""),
    about: "time after which a packet is dropped if none of it was sent",
};

pub(super) const SDAP: Key<Text> = Key {
    name: "sdap",
    kind: Text("`\"drql\"`, `\"5g-bdp\"`, `\"dynrlc\"`, `\"20 packets\"`, `\"off\"`"),
    default: Open(""),
    about: "downlink: what RLC may hold; `buffer` and `aqm` then stand above it, at SDAP. See below",
};
pub(super) const QFI_PER_FLOW: Key<Flag> = Key {
    name: "qfi_per_flow",
    kind: Flag,
    default: Open(""),
    about: "with `sdap`: a queue for each flow, served in turn; otherwise all flows share one",
};
pub(super) const UPF: Key<Flag> = Key {
    name: "upf_pacer",
    kind: Flag,
    default: Open(""),
    about: "with `sdap`: the UPF keeps a queue per flow, with the limit of `buffer`, and passes on what SDAP needs (USP)",
};

/// The keys of bearers: in `[[cell]]`, in `[[user]]` and in the tables of `bearers`.
pub(crate) const BEARER: Group = &[
    &RLC,
    &RLC_TIMERS,
    &RLC_FORMAT,
    &BUFFER,
    &BUFFER_UP,
    &AQM,
    &AQM_UP,
    &SDAP,
    &QFI_PER_FLOW,
    &UPF,
    &DISCARD,
];
