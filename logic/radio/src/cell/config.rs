//! The configuration of a cell: everything that a scenario can choose. [`CellConfig::check`] says whether it can be played.

use ranpace_phy::{
    Both, CqiThresholds, Frame, Layers, LteControl, LteMcs, LtePrbs, McsRule, Numerology, PatternDoesNotFit,
    Prbs, QamTable, TddPattern,
};

use crate::channel::DelayProfile;
use crate::channel::{
    Carrier, Disc, FadingSpeed, Flicker, PathLoss, Position, Receiver, RecordedFading, Recording, Shadowing,
    Sight, Trajectory, WalkRule,
};
use crate::harq::HarqConfig;
use crate::rlc::BearerConfig;
use crate::scheduler::{Alloc, Policy};
use crate::uplink::{AccessConfig, Power};
use std::sync::Arc;

/// Groups of resource blocks that a band has at most.
pub(super) const MOST_GROUPS: usize = 32;

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub struct CellConfig {
    /// The air interface.
    pub air: Air,
    /// Where the base station is, and what lies between it and its users.
    pub channel: ChannelConfig,
    /// From SINR to MCS, and to errors.
    pub adaptation: AdaptationConfig,
    /// HARQ of both directions.
    pub harq: Both<HarqConfig>,
    /// Who is served in the downlink. In the uplink users share equally.
    pub policy: Policy,
    /// How much they get.
    pub alloc: Alloc,
    /// Share of the slots in which new data is sent downlink: above 0, at most 1. OpenAirInterface's cells reach 0.85
    /// of what their grants say.
    pub usable_slots: f64,
    /// LTE: what control and broadcast channels leave of the downlink.
    pub control: ControlChannels,
    /// How users get grants.
    pub access: AccessConfig,
    /// How strongly users send.
    pub power: Power,
}

/// The air interface: what a slot is, and what fits in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Air {
    /// LTE, FDD, one codeword.
    Lte {
        /// Width of the band.
        band: LtePrbs,
    },
    /// NR.
    Nr {
        /// Width of the band.
        band: Prbs,
        /// Sub-carrier spacing.
        numerology: Numerology,
        /// MCS and CQI tables.
        table: QamTable,
        /// Layers.
        layers: Layers,
        /// Resource elements of each PRB and slot that carry no data (DMRS and others), as in TS 38.214 clause 5.1.3.2.
        overhead: u8,
        /// How the directions share the carrier.
        duplex: Duplex,
        /// What the scheduler gives out.
        division: Division,
    },
    /// The frame of the published experiments on millimetre waves ([`Frame::MMWAVE`]): subframes of 100 us, given out by
    /// symbols over 200 MHz.
    Mmwave,
}

/// How the two directions of NR share the air.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Duplex {
    /// A carrier each.
    Fdd,
    /// One carrier, slot by slot.
    Tdd(TddPattern),
    /// One carrier, symbol by symbol as the scheduler likes.
    Dynamic,
}

/// What the scheduler gives out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Division {
    /// Resource block groups, for all symbols of the slot.
    Frequency,
    /// Symbols, each over the whole band.
    Symbols,
}

/// What LTE's control and broadcast channels take of the downlink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlChannels {
    /// Nothing: a block has the size of the standard's table in each subframe, as in ns-3.
    Free,
    /// [`Self::Standard`] below 25 PRBs, [`Self::Free`] from there on, where it is at most 2.2 % (25 PRBs) and 0.4 % (50 and more).
    Narrow,
    /// [`LteControl`]: with as few control symbols as will do, or so many.
    Standard(Option<u8>),
}

impl ControlChannels {
    /// From how many PRBs on [`Self::Narrow`] counts nothing.
    const WIDE: u8 = 25;

    /// What they are on a band. A number of symbols that the standard does not have there is the nearest that it has.
    pub fn on(self, band: LtePrbs) -> Option<LteControl> {
        match self {
            Self::Free => None,
            Self::Narrow if band.get() >= Self::WIDE => None,
            Self::Narrow | Self::Standard(None) => Some(LteControl::new(band)),
            Self::Standard(Some(symbols)) => {
                let (least, most) = LteControl::range(band);
                LteControl::with_symbols(band, symbols.clamp(least, most))
            }
        }
    }
}

/// The radio channel of all users of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelConfig {
    /// Where the base station is.
    pub position: Position,
    /// Carriers; the same one where the directions share it.
    pub carrier: Both<Carrier>,
    /// Path loss.
    pub loss: PathLoss,
    /// Who sees the base station.
    pub sight: Sight,
    /// Shadowing.
    pub shadowing: Option<Shadowing>,
    /// What varies quickly.
    pub fading: FadingConfig,
    /// Power of the base station in dBm over the whole band.
    pub base_power_dbm: f64,
    /// Gain in dB of antennas and beams, both ends together.
    pub gain_db: f64,
    /// The receiving ends: users in the downlink, the base station in the uplink.
    pub receiver: Both<Receiver>,
}

/// What varies quickly.
#[derive(Clone, Debug, PartialEq)]
pub enum FadingConfig {
    /// Nothing.
    Steady,
    /// Multipath.
    Multipath(DelayProfile, FadingSpeed),
    /// Millimetre waves.
    Flicker(Flicker),
    /// From a file.
    Recorded(Arc<RecordedFading>),
}

/// From SINR to CQI to MCS, and from SINR and MCS to errors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaptationConfig {
    /// From which SINR on a CQI is reported.
    pub thresholds: CqiThresholds,
    /// The MCS of a grant follows from the worst CQI of its units, as in ns-3; otherwise from their mean efficiency.
    pub worst_unit: bool,
    /// From CQI to LTE's MCS.
    pub rule: McsRule,
    /// The MCS of every grant, whatever the channel.
    pub fixed_mcs: Option<LteMcs>,
    /// Slots between two measurements; at least 1.
    pub period: u64,
    /// Slots from a measurement until the scheduler can use it.
    pub delay: Both<u64>,
    /// Corrects the MCS by what was decoded.
    pub outer_loop: Option<OuterLoop>,
    /// Block errors.
    pub errors: Errors,
    /// LTE: at low SINR users miss control information, as often as [`ranpace_phy::lte_control_error_rate`] says: a block
    /// that is sent to them is lost, since nobody answers for it (as in ns-3), and a grant is not used.
    pub control_errors: bool,
}

impl AdaptationConfig {
    /// White noise: a measurement every 8 ms that is of use after 8 ms, MCS by mean efficiency.
    pub const LTE: Self = Self {
        thresholds: CqiThresholds::Awgn,
        worst_unit: false,
        rule: McsRule::Lena,
        fixed_mcs: None,
        period: 8,
        delay: Both { downlink: 8, uplink: 4 },
        outer_loop: None,
        errors: Errors::Awgn,
        control_errors: false,
    };
    /// ns-3 with its error model: a measurement every TTI, MCS by the worst group.
    pub const NS3: Self = Self {
        thresholds: CqiThresholds::Ns3,
        worst_unit: true,
        period: 1,
        errors: Errors::Ns3,
        control_errors: true,
        ..Self::LTE
    };
}

/// Block errors as a function of SINR.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Errors {
    /// [`ranpace_phy::BlerCurve::awgn_lte`] or its like of NR.
    Awgn,
    /// [`ranpace_phy::BlerCurve::ns3`]; LTE only.
    Ns3,
    /// The same for each transmission, 0 to 1.
    Fixed(f64),
}

/// An outer loop of link adaptation: the MCS is moved until the first transmissions fail as often as they should.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OuterLoop {
    /// Share of first transmissions that may fail, above 0 and below 1; 10 % is usual.
    pub target: f64,
    /// By how many steps of MCS a failure moves it down; a success moves it up by `step target / (1 - target)`.
    pub step: f64,
}

impl OuterLoop {
    /// Towards 10 %, by half an MCS at each failure; the step is ours.
    pub const TEN_PERCENT: Self = Self { target: 0.1, step: 0.5 };
}

/// A user.
#[derive(Clone, Debug, PartialEq)]
pub struct UserConfig {
    /// Where it is.
    pub place: Place,
    /// Its radio conditions from a file, in place of path loss and shadowing; and how far into it this user begins.
    pub recording: Option<(Arc<Recording>, ranpace_units::Span)>,
    /// Its bearers, in order of priority; at least one.
    pub bearers: Vec<BearerConfig>,
}

/// Where a user is.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// It stands here.
    Static(Position),
    /// It stands at a point of this area, drawn by the seed.
    Drop(Disc),
    /// It follows a path.
    Path(Arc<Trajectory>),
    /// It walks about, from here, or from a point of the area drawn by the seed.
    Walk(WalkRule, Option<Position>),
}

/// A cell that cannot be played.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CellError {
    /// A value out of its range.
    #[error("{what}: expected {expected}, found {found}")]
    Value {
        /// Which value.
        what: &'static str,
        /// What it may be.
        expected: &'static str,
        /// What came.
        found: String,
    },
    /// The TDD pattern leaves a direction nothing.
    #[error("expected a TDD pattern with symbols for both directions, found {0}")]
    OneWay(TddPattern),
    /// The TDD pattern does not fit the sub-carrier spacing.
    #[error(transparent)]
    Pattern(#[from] PatternDoesNotFit),
    /// ns-3's error curves are of LTE.
    #[error("error curves of ns-3 are for LTE; expected \"awgn\" or a fixed rate for NR")]
    Ns3WithoutLte,
    /// More users than names for them.
    #[error("expected at most {most} users in a cell, found {found}")]
    Crowd {
        /// As many C-RNTIs as there are.
        most: usize,
        /// What came.
        found: usize,
    },
}

/// C-RNTIs of a cell, 1 to 65523; TS 36.321 Table 7.1-1.
pub const MOST_USERS: usize = 65_523;

impl CellConfig {
    /// Whether new data are sent downlink in this slot. Of all slots a share of [`Self::usable_slots`]: those in which the
    /// count of usable ones rises.
    pub fn is_usable(&self, slot: u64) -> bool {
        let count = |slot: u64| libm::floor(slot as f64 * self.usable_slots);
        count(slot + 1) > count(slot)
    }

    /// Whether it can be played with so many users.
    pub fn check(&self, users: usize) -> Result<(), CellError> {
        let value = |what, expected, found: String| Err(CellError::Value { what, expected, found });
        let frame = self.air.frame()?;
        if let Some(pattern) = frame.pattern() {
            let carries = |direction| pattern.symbols_in_all(direction) > 0;
            if !carries(ranpace_phy::Direction::Downlink) || !carries(ranpace_phy::Direction::Uplink) {
                return Err(CellError::OneWay(pattern));
            }
        }
        if self.adaptation.errors == Errors::Ns3 && !matches!(self.air, Air::Lte { .. }) {
            return Err(CellError::Ns3WithoutLte);
        }
        if self.adaptation.period == 0 {
            return value("CQI period", "one slot or more", "0".to_owned());
        }
        if let Errors::Fixed(rate) = self.adaptation.errors
            && !(0.0..=1.0).contains(&rate)
        {
            return value("block error rate", "0 to 1", rate.to_string());
        }
        if let Some(OuterLoop { target, step }) = self.adaptation.outer_loop {
            if !(target > 0.0 && target < 1.0) {
                return value("share of blocks that may fail", "above 0, below 1", target.to_string());
            }
            if !(0.0..=28.0).contains(&step) {
                return value("step of the outer loop", "0 to 28 MCS", step.to_string());
            }
        }
        if !(self.usable_slots > 0.0 && self.usable_slots <= 1.0) {
            return value("share of usable slots", "above 0, at most 1", self.usable_slots.to_string());
        }
        for (what, db) in [
            ("power of the base station", self.channel.base_power_dbm),
            ("antenna gain", self.channel.gain_db),
            ("power of users", self.power.most_dbm),
            ("noise figure of users", self.channel.receiver.downlink.noise_figure_db),
            ("noise figure of the base station", self.channel.receiver.uplink.noise_figure_db),
        ] {
            if !(-200.0..=200.0).contains(&db) {
                return value(what, "-200 to 200 dB", db.to_string());
            }
        }
        if users > MOST_USERS {
            return Err(CellError::Crowd { most: MOST_USERS, found: users });
        }
        Ok(())
    }
}

impl Air {
    /// Its slots.
    pub fn frame(&self) -> Result<Frame, PatternDoesNotFit> {
        match *self {
            Self::Lte { .. } => Ok(Frame::LTE_FDD),
            Self::Nr { numerology, duplex: Duplex::Fdd, .. } => Ok(Frame::nr_fdd(numerology)),
            Self::Nr { numerology, duplex: Duplex::Tdd(pattern), .. } => Frame::nr_tdd(numerology, pattern),
            Self::Nr { numerology, duplex: Duplex::Dynamic, .. } => Ok(Frame::nr_dynamic(numerology)),
            Self::Mmwave => Ok(Frame::MMWAVE),
        }
    }
}
