//! The configuration of a cell: everything that a scenario can choose. [`CellConfig::check`] validates it.

use ranpace_phy::{
    Both, CqiThresholds, Frame, Layers, LteControl, LteMcs, LtePrbs, McsRule, Numerology, PatternDoesNotFit,
    Prbs, QamTable, TddPattern,
};

use crate::channel::DelayProfile;
use crate::channel::{
    Carrier, Disc, FadingSpeed, Flicker, Move, PathLoss, Position, Receiver, RecordedFading, Recording,
    Shadowing, Sight, Trajectory, WalkRule,
};
use crate::harq::HarqConfig;
use crate::rlc::BearerConfig;
use crate::scheduler::{Alloc, Policy};
use crate::uplink::{AccessConfig, Power};
use std::sync::Arc;

/// Most resource block groups in a band.
pub(super) const MOST_GROUPS: usize = 32;

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub struct CellConfig {
    /// The air interface.
    pub air: Air,
    /// The position of the base station, and the channel between it and its users.
    pub channel: ChannelConfig,
    /// Mapping from SINR to MCS, and to block errors.
    pub adaptation: AdaptationConfig,
    /// HARQ of both directions.
    pub harq: Both<HarqConfig>,
    /// The rule that picks the users served in the downlink. In the uplink users share equally.
    pub policy: Policy,
    /// The rule for the share of a served user.
    pub alloc: Alloc,
    /// Share of the slots in which new data is sent downlink: above 0, at most 1. OpenAirInterface's cells reach 0.85
    /// of the rate that their grants imply.
    pub usable_slots: f64,
    /// LTE: control and broadcast channels, which reduce the downlink.
    pub control: ControlChannels,
    /// How users get grants.
    pub access: AccessConfig,
    /// Transmit power of users.
    pub power: Power,
}

/// The air interface: the slot format and its capacity.
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
        /// The unit in which the scheduler allocates.
        division: Division,
    },
    /// The frame of the published experiments on millimetre waves ([`Frame::MMWAVE`]): subframes of 100 us, allocated by
    /// symbols over 200 MHz.
    Mmwave,
}

/// How the two directions share the NR carrier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Duplex {
    /// One carrier for each direction.
    Fdd,
    /// One carrier, divided slot by slot.
    Tdd(TddPattern),
    /// One carrier, divided symbol by symbol by the scheduler.
    Dynamic,
}

/// The unit in which the scheduler allocates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Division {
    /// Resource block groups, for all symbols of the slot.
    Frequency,
    /// Symbols, each over the whole band.
    Symbols,
}

/// The share of the downlink that LTE's control and broadcast channels take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlChannels {
    /// Nothing: a block has the size of the standard's table in each subframe, as in ns-3.
    Free,
    /// [`Self::Standard`] below 25 PRBs, [`Self::Free`] above, where the channels take at most 2.2 % (25 PRBs) or 0.4 % (50 and more).
    Narrow,
    /// [`LteControl`], with this number of control symbols, or with the fewest that suffice.
    Standard(Option<u8>),
}

impl ControlChannels {
    /// The width in PRBs from which [`Self::Narrow`] ignores the channels.
    const WIDE: u8 = 25;

    /// The channels of a band; `None` if they take nothing. The number of symbols is clamped to what the standard allows there.
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
    /// Position of the base station.
    pub position: Position,
    /// Carriers; the same one for both directions if they share it.
    pub carrier: Both<Carrier>,
    /// Path loss.
    pub loss: PathLoss,
    /// The users with line of sight to the base station.
    pub sight: Sight,
    /// Shadowing.
    pub shadowing: Option<Shadowing>,
    /// Fast fading.
    pub fading: FadingConfig,
    /// Power of the base station in dBm over the whole band.
    pub base_power_dbm: f64,
    /// Gain in dB of antennas and beams, both ends together.
    pub gain_db: f64,
    /// The receiving ends: users in the downlink, the base station in the uplink.
    pub receiver: Both<Receiver>,
}

/// Fast fading.
#[derive(Clone, Debug, PartialEq)]
pub enum FadingConfig {
    /// No fast fading.
    Steady,
    /// Multipath.
    Multipath(DelayProfile, FadingSpeed),
    /// Millimetre waves.
    Flicker(Flicker),
    /// From a file.
    Recorded(Arc<RecordedFading>),
}

/// Mapping from SINR to CQI to MCS, and from SINR and MCS to block errors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaptationConfig {
    /// SINR from which each CQI is reported.
    pub thresholds: CqiThresholds,
    /// The worst CQI of a grant's units sets its MCS, as in ns-3; otherwise their mean efficiency does.
    pub worst_unit: bool,
    /// From CQI to LTE's MCS.
    pub rule: McsRule,
    /// The MCS of every grant, whatever the channel.
    pub fixed_mcs: Option<LteMcs>,
    /// Slots between two measurements; at least 1.
    pub period: u64,
    /// Slots from a measurement until the scheduler can use it.
    pub delay: Both<u64>,
    /// Corrects the MCS by the outcome of decoding.
    pub outer_loop: Option<OuterLoop>,
    /// Block errors.
    pub errors: Errors,
    /// LTE: at low SINR users miss control information, at the rate of [`ranpace_phy::lte_control_error_rate`]. A downlink block
    /// is then lost, since nobody acknowledges it (as in ns-3), and an uplink grant stays unused.
    pub control_errors: bool,
}

impl AdaptationConfig {
    /// AWGN thresholds: a measurement every 8 ms, usable 8 ms later; MCS by mean efficiency.
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
    /// [`ranpace_phy::BlerCurve::awgn_lte`] or its NR counterpart.
    Awgn,
    /// [`ranpace_phy::BlerCurve::ns3`]; LTE only.
    Ns3,
    /// The same rate for each transmission, 0 to 1.
    Fixed(f64),
}

/// An outer loop of link adaptation: it moves the MCS until first transmissions fail at the target rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OuterLoop {
    /// Share of first transmissions that may fail, above 0 and below 1; 10 % is usual.
    pub target: f64,
    /// Steps of MCS by which a failure moves it down; a success moves it up by `step target / (1 - target)`.
    pub step: f64,
}

impl OuterLoop {
    /// A target of 10 %, with half an MCS per failure; the step is ours.
    pub const TEN_PERCENT: Self = Self { target: 0.1, step: 0.5 };
}

/// A user.
#[derive(Clone, Debug, PartialEq)]
pub struct UserConfig {
    /// Its place.
    pub place: Place,
    /// Its radio conditions from a file, in place of path loss and shadowing, and the offset at which this user starts in it.
    pub recording: Option<(Arc<Recording>, ranpace_units::Span)>,
    /// Its bearers, in order of priority; at least one.
    pub bearers: Vec<BearerConfig>,
}

/// The place of a user.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// It stays here.
    Static(Position),
    /// It stays at a point of this area, drawn by the seed.
    Drop(Disc),
    /// It follows a path.
    Path(Arc<Trajectory>),
    /// It walks at random, starting here or at a point of the area drawn by the seed.
    Walk(WalkRule, Option<Position>),
    /// It is at this place until the first of these moves, which are in order of time.
    Moved(Box<Place>, Vec<Move>),
}

/// Why a cell configuration is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CellError {
    /// A value out of its range.
    #[error("{what}: expected {expected}, found {found}")]
    Value {
        /// The name of the value.
        what: &'static str,
        /// Its valid range.
        expected: &'static str,
        /// The value found.
        found: String,
    },
    /// The TDD pattern has no symbols for one direction.
    #[error("expected a TDD pattern with symbols for both directions, found {0}")]
    OneWay(TddPattern),
    /// The TDD pattern does not fit the sub-carrier spacing.
    #[error(transparent)]
    Pattern(#[from] PatternDoesNotFit),
    /// ns-3's error curves exist for LTE only.
    #[error("error curves of ns-3 are for LTE; expected \"awgn\" or a fixed rate for NR")]
    Ns3WithoutLte,
    /// More users than a cell has C-RNTIs.
    #[error("expected at most {most} users in a cell, found {found}")]
    Crowd {
        /// Number of C-RNTIs.
        most: usize,
        /// Number of users found.
        found: usize,
    },
}

/// C-RNTIs of a cell, 1 to 65523; TS 36.321 Table 7.1-1.
pub const MOST_USERS: usize = 65_523;

impl CellConfig {
    /// Returns whether new data may be sent downlink in this slot. A share [`Self::usable_slots`] of all slots is usable: those in which
    /// the running count of usable slots increases.
    pub fn is_usable(&self, slot: u64) -> bool {
        let count = |slot: u64| libm::floor(slot as f64 * self.usable_slots);
        count(slot + 1) > count(slot)
    }

    /// Checks that a cell with this many users can be simulated.
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
    /// Its frame structure.
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
