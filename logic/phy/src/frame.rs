//! Time on the air: numerologies and frame structures.

use core::fmt;

use ranpace_units::{Rate, Span, Time};

use crate::mmwave;
use crate::{Direction, LTE_TTI, OutOfRange, Symbols, TddPattern};

/// NR numerology mu: sub-carrier spacing 15 kHz times 2^mu, slots of 1 ms / 2^mu; TS 38.211 Tables 4.2-1 and 4.3.2-1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Numerology {
    /// mu = 0: 15 kHz, slots of 1 ms.
    Khz15,
    /// mu = 1: 30 kHz, slots of 500 us.
    Khz30,
    /// mu = 2: 60 kHz, slots of 250 us (normal cyclic prefix).
    Khz60,
    /// mu = 3: 120 kHz, slots of 125 us.
    Khz120,
}

impl Numerology {
    /// All numerologies, in increasing order.
    pub const ALL: [Self; 4] = [Self::Khz15, Self::Khz30, Self::Khz60, Self::Khz120];

    /// mu, 0 to 3.
    pub const fn mu(self) -> u8 {
        self as u8
    }
    /// Sub-carrier spacing in kHz.
    pub const fn spacing_khz(self) -> u32 {
        15 << self.mu()
    }
    /// Slots per subframe of 1 ms.
    pub const fn slots_per_subframe(self) -> u8 {
        1 << self.mu()
    }
    /// Length of a slot.
    pub const fn slot(self) -> Span {
        Span::from_nanos(1_000_000 >> self.mu())
    }
}

impl TryFrom<u8> for Numerology {
    type Error = OutOfRange;
    fn try_from(mu: u8) -> Result<Self, OutOfRange> {
        let found = Self::ALL.get(usize::from(mu)).copied();
        found.ok_or(OutOfRange { what: "a numerology", least: 0, most: 3, found: mu.into() })
    }
}

impl fmt::Display for Numerology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} kHz", self.spacing_khz())
    }
}

/// How the two directions share a carrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Duplex {
    Fdd,
    Tdd(TddPattern),
    /// Symbol by symbol, as the scheduler decides; `data` of them carry data.
    Dynamic {
        data: u8,
    },
}

/// Structure of time on the air: slots (the transmission time interval), their symbols, and directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    slot: Span,
    symbols: u8,
    duplex: Duplex,
}

/// The pattern does not fit the numerology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected a TDD pattern that divides 20 ms ({slots} slots at {numerology}), found {pattern}, {} slots",
    pattern.slots()
)]
pub struct PatternDoesNotFit {
    /// Sub-carrier spacing.
    pub numerology: Numerology,
    /// Slots of that numerology in 20 ms.
    pub slots: u8,
    /// The pattern.
    pub pattern: TddPattern,
}

impl Frame {
    /// LTE FDD (frame structure type 1): subframes of 1 ms, 14 symbols; TS 36.211 clause 4.1. The block sizes of TS 36.213
    /// already account for control symbols.
    pub const LTE_FDD: Self = Self { slot: LTE_TTI, symbols: Symbols::MAX.get(), duplex: Duplex::Fdd };

    /// The frame of the experiments on millimetre waves (Diarra 2022, Table 3.1): subframes of 100 us, 24 symbols of
    /// 4.16 us, each of which the scheduler gives to either direction. Its block sizes are those of
    /// [`MmwaveGrant`](crate::MmwaveGrant).
    pub const MMWAVE: Self = Self {
        slot: mmwave::SUBFRAME,
        symbols: mmwave::SYMBOLS,
        duplex: Duplex::Dynamic { data: mmwave::DATA_SYMBOLS },
    };

    /// NR with a carrier for each direction.
    pub const fn nr_fdd(numerology: Numerology) -> Self {
        Self { slot: numerology.slot(), symbols: Symbols::MAX.get(), duplex: Duplex::Fdd }
    }

    /// NR on one carrier. The pattern's period divides 20 ms; TS 38.213 clause 11.1.
    pub fn nr_tdd(numerology: Numerology, pattern: TddPattern) -> Result<Self, PatternDoesNotFit> {
        let slots = 20 * numerology.slots_per_subframe();
        if !slots.is_multiple_of(pattern.slots()) {
            return Err(PatternDoesNotFit { numerology, slots, pattern });
        }
        Ok(Self { slot: numerology.slot(), symbols: Symbols::MAX.get(), duplex: Duplex::Tdd(pattern) })
    }

    /// NR's slots on one carrier whose symbols the scheduler gives to either direction, like the module of the
    /// experiments on millimetre waves; one of the 14 carries control (inferred: 13 give the "850 Mbps" of Diarra 2022,
    /// Table 5.1).
    pub const fn nr_dynamic(numerology: Numerology) -> Self {
        let symbols = Symbols::MAX.get();
        Self { slot: numerology.slot(), symbols, duplex: Duplex::Dynamic { data: symbols - 1 } }
    }

    /// Length of a slot: the transmission time interval.
    pub const fn slot(self) -> Span {
        self.slot
    }
    /// Symbols of a slot, control included.
    pub const fn symbols(self) -> u8 {
        self.symbols
    }
    /// Length of a symbol with its cyclic prefix, rounded down; the mean for NR, whose symbols differ by up to half a
    /// microsecond.
    pub fn symbol(self) -> Span {
        if self.symbols == mmwave::SYMBOLS { mmwave::SYMBOL } else { self.slot / u64::from(self.symbols) }
    }
    /// Number of the slot that contains `time`, from 0.
    #[inline]
    pub const fn slot_at(self, time: Time) -> u64 {
        time.as_nanos() / self.slot.as_nanos()
    }
    /// When slot number `slot` begins.
    #[inline]
    pub fn start_of(self, slot: u64) -> Time {
        Time::ZERO + self.slot * slot
    }
    /// Symbols of slot number `slot` that can carry data in this direction. With dynamic division the directions share them:
    /// one direction's symbols are not available to the other.
    #[inline]
    pub const fn data_symbols(self, slot: u64, direction: Direction) -> u8 {
        match self.duplex {
            Duplex::Fdd => self.symbols,
            Duplex::Tdd(pattern) => pattern.symbols(slot, direction),
            Duplex::Dynamic { data } => data,
        }
    }
    /// Returns whether both directions share the same symbols.
    pub const fn is_shared(self) -> bool {
        matches!(self.duplex, Duplex::Dynamic { .. })
    }
    /// Returns whether each direction has its own carrier.
    pub const fn is_fdd(self) -> bool {
        matches!(self.duplex, Duplex::Fdd)
    }
    /// The TDD pattern, if there is one.
    pub const fn pattern(self) -> Option<TddPattern> {
        match self.duplex {
            Duplex::Tdd(pattern) => Some(pattern),
            Duplex::Fdd | Duplex::Dynamic { .. } => None,
        }
    }
    /// Mean rate over a whole pattern, given the rate in full slots: it is scaled by the share of symbols in this
    /// direction. Without special slots this is the share of slots; with them, ours: such a slot counts by its symbols.
    pub fn mean_rate(self, direction: Direction, in_full_slots: Rate) -> Rate {
        match self.duplex {
            Duplex::Fdd | Duplex::Dynamic { .. } => in_full_slots,
            Duplex::Tdd(pattern) => {
                let symbols = u64::from(pattern.slots()) * u64::from(self.symbols);
                in_full_slots.scale(pattern.symbols_in_all(direction).into(), symbols)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_of_every_numerology() {
        for (mu, khz, slots, us) in [(0, 15, 1, 1000), (1, 30, 2, 500), (2, 60, 4, 250), (3, 120, 8, 125)] {
            let numerology = Numerology::try_from(mu).unwrap();
            assert_eq!(numerology.mu(), mu);
            assert_eq!(numerology.spacing_khz(), khz);
            assert_eq!(numerology.slots_per_subframe(), slots);
            assert_eq!(numerology.slot(), Span::from_micros(us));
        }
        assert_eq!(
            Numerology::try_from(4).unwrap_err().to_string(),
            "expected a numerology from 0 to 3, found 4"
        );
    }

    #[test]
    fn frames_of_the_experiments() {
        assert_eq!((Frame::LTE_FDD.slot(), Frame::LTE_FDD.symbols()), (Span::from_millis(1), 14));
        assert_eq!((Frame::MMWAVE.slot(), Frame::MMWAVE.symbols()), (Span::from_micros(100), 24));
        assert_eq!(Frame::MMWAVE.symbol(), Span::from_nanos(4160));
        assert!(Frame::MMWAVE.symbol() * 24 <= Frame::MMWAVE.slot());
        assert_eq!(Frame::MMWAVE.data_symbols(7, Direction::Uplink), 23);
        assert_eq!(Frame::nr_fdd(Numerology::Khz120).data_symbols(7, Direction::Uplink), 14);
    }

    #[test]
    fn slots_begin_where_they_are_found() {
        let frame = Frame::nr_fdd(Numerology::Khz120);
        for (slot, ns) in [(0, 0), (1, 125_000), (8_000, 1_000_000_000)] {
            assert_eq!(frame.start_of(slot), Time::from_nanos(ns));
            assert_eq!(frame.slot_at(Time::from_nanos(ns)), slot);
            assert_eq!(frame.slot_at(Time::from_nanos(ns + 124_999)), slot);
        }
    }

    #[test]
    fn a_pattern_must_divide_20_ms() {
        let five: TddPattern = "DDDSU".parse().unwrap();
        let seven: TddPattern = "DDDDDSU".parse().unwrap();
        for numerology in Numerology::ALL {
            assert!(Frame::nr_tdd(numerology, five).is_ok());
        }
        assert_eq!(
            Frame::nr_tdd(Numerology::Khz30, seven).unwrap_err().to_string(),
            "expected a TDD pattern that divides 20 ms (40 slots at 30 kHz), found DDDDDSU, 7 slots"
        );
    }

    #[test]
    fn a_direction_has_the_rate_of_its_symbols() {
        let full = Rate::from_mbit_per_s(700);
        for (pattern, down, up) in [("DDDSU", 520, 160), ("DDDDU", 560, 140), ("DDDSU 14:0:0", 560, 140)] {
            let frame = Frame::nr_tdd(Numerology::Khz30, pattern.parse().unwrap()).unwrap();
            assert_eq!(frame.mean_rate(Direction::Downlink, full), Rate::from_mbit_per_s(down), "{pattern}");
            assert_eq!(frame.mean_rate(Direction::Uplink, full), Rate::from_mbit_per_s(up), "{pattern}");
        }
        assert_eq!(Frame::LTE_FDD.mean_rate(Direction::Uplink, full), full);
        assert_eq!(Frame::LTE_FDD.pattern(), None);
    }
}
