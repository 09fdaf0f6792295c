//! TDD: the direction of each symbol of each slot.

use core::fmt;
use core::str::FromStr;

use crate::{Direction, Symbols};

/// The kind of a slot in a TDD pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SlotKind {
    /// All symbols are downlink: "D".
    Downlink,
    /// Some downlink symbols, then a gap, then some uplink symbols: "S".
    Special,
    /// All symbols are uplink: "U".
    Uplink,
}

/// Division of the 14 symbols of a special slot (`nrofDownlinkSymbols` and `nrofUplinkSymbols` of TS 38.331).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpecialSlot {
    downlink: u8,
    uplink: u8,
}

impl SpecialSlot {
    /// The downlink and uplink symbols, with the rest between them as a gap; `None` if they do not fit into a slot.
    pub const fn new(downlink: u8, uplink: u8) -> Option<Self> {
        let fits = downlink <= SYMBOLS && uplink <= SYMBOLS && downlink + uplink <= SYMBOLS;
        if fits { Some(Self { downlink, uplink }) } else { None }
    }
    /// Symbols in this direction.
    pub const fn symbols(self, direction: Direction) -> u8 {
        match direction {
            Direction::Downlink => self.downlink,
            Direction::Uplink => self.uplink,
        }
    }
    /// Symbols of the gap.
    pub const fn gap(self) -> u8 {
        SYMBOLS - self.downlink - self.uplink
    }
}

impl Default for SpecialSlot {
    /// Ten downlink symbols, a gap of two, two uplink symbols: ours, a common choice of networks.
    fn default() -> Self {
        Self { downlink: 10, uplink: 2 }
    }
}

/// A repeating pattern of slots (`TDD-UL-DL-Pattern`; TS 38.213 clause 11.1), of 1 to 160 slots, which includes both
/// directions.
///
/// As text: one letter per slot and, if special slots are not the default 10:2:2, their downlink, gap and
/// uplink symbols: "DDDSU", "DDDSU 6:4:4".
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TddPattern {
    slots: u8,
    /// Bits of the slots that are all downlink, the first slot lowest.
    downlink: [u128; 2],
    /// Likewise for uplink. A slot with neither bit is special.
    uplink: [u128; 2],
    special: SpecialSlot,
}

/// Why a TDD pattern was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TddError {
    /// A letter other than D, S and U.
    #[error(
        "expected slots D (downlink), S (special) and U (uplink), such as \"DDDSU\"; found {found:?} in {text:?}"
    )]
    NotASlot {
        /// The letter.
        found: char,
        /// The whole text.
        text: String,
    },
    /// The symbols of the special slot are not three numbers, or do not add up to 14.
    #[error(
        "expected the special slot's symbols down, gap and up, together 14, such as \"10:2:2\"; found {found:?}"
    )]
    NotASpecialSlot {
        /// The text found.
        found: String,
    },
    /// There are no slots, or too many.
    #[error("expected 1 to 160 slots, found {found}")]
    WrongLength {
        /// Number of slots found.
        found: usize,
    },
    /// A direction has no symbols, so nothing could be sent, or acknowledged, in it.
    #[error("expected slots of both directions, found none of the {}", match direction {
        Direction::Downlink => "downlink (D, or S with symbols down)",
        Direction::Uplink => "uplink (U, or S with symbols up)",
    })]
    OneWay {
        /// The missing direction.
        direction: Direction,
    },
}

/// Symbols of a slot; TS 38.211 Table 4.3.2-1.
const SYMBOLS: u8 = Symbols::MAX.get();

/// Slots in 20 ms, which a pattern divides (TS 38.213 clause 11.1), at the highest numerology of this crate.
const MOST_SLOTS: usize = 160;

impl TddPattern {
    /// The pattern of these slots.
    pub fn new(slots: &[SlotKind], special: SpecialSlot) -> Result<Self, TddError> {
        if slots.is_empty() || slots.len() > MOST_SLOTS {
            return Err(TddError::WrongLength { found: slots.len() });
        }
        // At most 160, so the length fits 8 bits.
        let mut pattern = Self { slots: slots.len() as u8, downlink: [0; 2], uplink: [0; 2], special };
        for (i, kind) in slots.iter().enumerate() {
            let bit = 1 << (i % 128);
            match kind {
                SlotKind::Downlink => pattern.downlink[i / 128] |= bit,
                SlotKind::Uplink => pattern.uplink[i / 128] |= bit,
                SlotKind::Special => {}
            }
        }
        for direction in [Direction::Downlink, Direction::Uplink] {
            if pattern.symbols_in_all(direction) == 0 {
                return Err(TddError::OneWay { direction });
            }
        }
        Ok(pattern)
    }

    /// Number of slots in the pattern.
    pub const fn slots(self) -> u8 {
        self.slots
    }
    /// The symbols of special slots, whether the pattern has any or not.
    pub const fn special(self) -> SpecialSlot {
        self.special
    }
    /// The kind of slot number `slot`, counted from time 0.
    #[inline]
    pub const fn kind(self, slot: u64) -> SlotKind {
        let i = (slot % self.slots as u64) as usize;
        let (word, bit) = (i / 128, i % 128);
        if self.downlink[word] >> bit & 1 == 1 {
            SlotKind::Downlink
        } else if self.uplink[word] >> bit & 1 == 1 {
            SlotKind::Uplink
        } else {
            SlotKind::Special
        }
    }
    /// Symbols of slot number `slot` in this direction, 0 to 14.
    #[inline]
    pub const fn symbols(self, slot: u64, direction: Direction) -> u8 {
        match (self.kind(slot), direction) {
            (SlotKind::Downlink, Direction::Downlink) | (SlotKind::Uplink, Direction::Uplink) => SYMBOLS,
            (SlotKind::Special, _) => self.special.symbols(direction),
            _ => 0,
        }
    }
    /// Symbols of all slots of the pattern in this direction.
    pub fn symbols_in_all(self, direction: Direction) -> u32 {
        (0..u64::from(self.slots)).map(|slot| u32::from(self.symbols(slot, direction))).sum()
    }
}

impl FromStr for TddPattern {
    type Err = TddError;
    fn from_str(text: &str) -> Result<Self, TddError> {
        let trimmed = text.trim();
        let (letters, special) = match trimmed.split_once(char::is_whitespace) {
            Some((letters, special)) => (letters, special_slot(special.trim())?),
            None => (trimmed, SpecialSlot::default()),
        };
        let kind = |letter| match letter {
            'D' => Ok(SlotKind::Downlink),
            'S' => Ok(SlotKind::Special),
            'U' => Ok(SlotKind::Uplink),
            found => Err(TddError::NotASlot { found, text: text.chars().take(MOST_SLOTS).collect() }),
        };
        let slots = letters.chars().map(kind).collect::<Result<Vec<_>, _>>()?;
        Self::new(&slots, special)
    }
}

fn special_slot(text: &str) -> Result<SpecialSlot, TddError> {
    let refused = || TddError::NotASpecialSlot { found: text.to_owned() };
    let numbers =
        text.split(':').map(str::parse::<u8>).collect::<Result<Vec<_>, _>>().map_err(|_| refused())?;
    let [downlink, gap, uplink] = numbers[..] else { return Err(refused()) };
    SpecialSlot::new(downlink, uplink).filter(|special| special.gap() == gap).ok_or_else(refused)
}

impl fmt::Display for TddPattern {
    /// In the form that parsing accepts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for slot in 0..self.slots.into() {
            f.write_str(match self.kind(slot) {
                SlotKind::Downlink => "D",
                SlotKind::Special => "S",
                SlotKind::Uplink => "U",
            })?;
        }
        if self.special != SpecialSlot::default() {
            write!(f, " {}:{}:{}", self.special.downlink, self.special.gap(), self.special.uplink)?;
        }
        Ok(())
    }
}

impl fmt::Debug for TddPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TddPattern({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_pattern_repeats_and_counts_its_symbols() {
        let pattern: TddPattern = "DDDSU".parse().unwrap();
        for (slot, kind, down, up) in [
            (0, SlotKind::Downlink, 14, 0),
            (3, SlotKind::Special, 10, 2),
            (4, SlotKind::Uplink, 0, 14),
            (5, SlotKind::Downlink, 14, 0),
            (5 * (1 << 40) + 3, SlotKind::Special, 10, 2),
        ] {
            assert_eq!(pattern.kind(slot), kind, "slot {slot}");
            assert_eq!(pattern.symbols(slot, Direction::Downlink), down, "slot {slot}");
            assert_eq!(pattern.symbols(slot, Direction::Uplink), up, "slot {slot}");
        }
        assert_eq!(pattern.symbols_in_all(Direction::Downlink), 52);
        assert_eq!(pattern.symbols_in_all(Direction::Uplink), 16);
        assert_eq!(pattern.special().gap(), 2);
    }

    #[test]
    fn malformed_patterns_are_refused() {
        for (text, message) in [
            (
                "DDXU",
                "expected slots D (downlink), S (special) and U (uplink), such as \"DDDSU\"; found 'X' in \"DDXU\"",
            ),
            ("", "expected 1 to 160 slots, found 0"),
            (
                "DSU 10:2:3",
                "expected the special slot's symbols down, gap and up, together 14, such as \"10:2:2\"; found \"10:2:3\"",
            ),
            (
                "DSU 255:2:1",
                "expected the special slot's symbols down, gap and up, together 14, such as \"10:2:2\"; found \"255:2:1\"",
            ),
            ("DDD", "expected slots of both directions, found none of the uplink (U, or S with symbols up)"),
            (
                "SU 0:12:2",
                "expected slots of both directions, found none of the downlink (D, or S with symbols down)",
            ),
        ] {
            assert_eq!(text.parse::<TddPattern>().unwrap_err().to_string(), message);
        }
        let long = "D".repeat(160) + "U";
        assert_eq!(long.parse::<TddPattern>(), Err(TddError::WrongLength { found: 161 }));
    }

    #[test]
    fn a_special_slot_alone_may_carry_both() {
        let pattern: TddPattern = "S 6:2:6".parse().unwrap();
        assert_eq!(pattern.to_string(), "S 6:2:6");
        assert_eq!(pattern.symbols_in_all(Direction::Uplink), 6);
    }

    proptest! {
        #[test]
        fn printed_patterns_are_read_back_with_every_slot(text in "[DSU]{1,160}", down in 0..=14u8, up in 0..=14u8) {
            let Some(special) = SpecialSlot::new(down, up) else { return Ok(()) };
            let text = format!("{text} {down}:{}:{up}", special.gap());
            let Ok(pattern) = text.parse::<TddPattern>() else { return Ok(()) };
            prop_assert_eq!(pattern.to_string().parse::<TddPattern>(), Ok(pattern));
            for (slot, letter) in text.split(' ').next().unwrap().chars().enumerate() {
                let expected = match letter {
                    'D' => SlotKind::Downlink,
                    'S' => SlotKind::Special,
                    _ => SlotKind::Uplink,
                };
                prop_assert_eq!(pattern.kind(slot as u64), expected);
            }
        }
    }
}
