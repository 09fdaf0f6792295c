//! Modulation, code rate, and their product; the CQI and MCS tables of both standards.

use core::fmt;

use crate::Cqi;

/// Modulation, by its order Q_m, the bits per symbol (TS 38.211 clause 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Modulation {
    /// 2 bits.
    Qpsk,
    /// 4 bits.
    Qam16,
    /// 6 bits.
    Qam64,
    /// 8 bits.
    Qam256,
}

impl Modulation {
    /// Q_m: bits per symbol, layer and sub-carrier.
    pub const fn order(self) -> u8 {
        match self {
            Self::Qpsk => 2,
            Self::Qam16 => 4,
            Self::Qam64 => 6,
            Self::Qam256 => 8,
        }
    }
}

impl fmt::Display for Modulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Qpsk => "QPSK",
            Self::Qam16 => "16QAM",
            Self::Qam64 => "64QAM",
            Self::Qam256 => "256QAM",
        })
    }
}

/// Code rate R: information bits per coded bit, exact. The standards print it times 1024, and two entries end in a half
/// (682.5 and 916.5), so it is stored in units of 1/2048.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodeRate(u16);

impl CodeRate {
    /// From the value printed in the standards; used only in the tables of this crate.
    pub(crate) const fn x1024(printed: u16) -> Self {
        Self(2 * printed)
    }
    /// Like [`Self::x1024`], plus a half.
    pub(crate) const fn x1024_and_half(printed: u16) -> Self {
        Self(2 * printed + 1)
    }
    /// The rate times 2048, an integer.
    pub const fn in_2048ths(self) -> u16 {
        self.0
    }
    /// The rate, between 0 and 1.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / 2048.0
    }
}

impl fmt::Display for CodeRate {
    /// As printed in the standards: times 1024.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/1024", f64::from(self.0) / 2.0)
    }
}

/// Spectral efficiency: information bits per resource element and layer, exact, in units of 1/2048.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Efficiency(u16);

impl Efficiency {
    /// Efficiency of CQI 0, which carries nothing.
    pub const ZERO: Self = Self(0);

    /// Modulation order times code rate, at most 8 * 2047, which fits.
    pub const fn of(modulation: Modulation, rate: CodeRate) -> Self {
        Self(modulation.order() as u16 * rate.0)
    }
    /// Bits per resource element times 2048, an integer.
    pub const fn in_2048ths(self) -> u16 {
        self.0
    }
    /// Bits per resource element.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / 2048.0
    }
    /// As printed in the standards: bits per resource element times 10 000, rounded half up.
    pub const fn printed_x10000(self) -> u32 {
        (self.0 as u32 * 10_000 + 1_024) / 2_048
    }
    /// The midpoint of both, rounded down to units of 1/2048.
    pub(crate) const fn between(self, other: Self) -> Self {
        Self(self.0.midpoint(other.0))
    }
}

/// The set of tables that a UE uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QamTable {
    /// Up to 64QAM: CQI table 1 (TS 38.214 Table 5.2.2.1-2, the same as LTE's TS 36.213 Table 7.2.3-1) and MCS table 1
    /// (TS 38.214 Table 5.1.3.1-1).
    Qam64,
    /// Up to 256QAM: CQI table 2 (TS 38.214 Table 5.2.2.1-3) and MCS table 2 (TS 38.214 Table 5.1.3.1-2).
    Qam256,
}

type Row = (Modulation, CodeRate);

const fn qpsk(rate: u16) -> Row {
    (Modulation::Qpsk, CodeRate::x1024(rate))
}
const fn qam16(rate: u16) -> Row {
    (Modulation::Qam16, CodeRate::x1024(rate))
}
const fn qam64(rate: u16) -> Row {
    (Modulation::Qam64, CodeRate::x1024(rate))
}
const fn qam256(rate: u16) -> Row {
    (Modulation::Qam256, CodeRate::x1024(rate))
}
const fn qam256_and_half(rate: u16) -> Row {
    (Modulation::Qam256, CodeRate::x1024_and_half(rate))
}

/// CQI 1 to 15; TS 36.213 Table 7.2.3-1 and TS 38.214 Table 5.2.2.1-2.
#[rustfmt::skip]
const CQI_64: [Row; 15] = [
    qpsk(78), qpsk(120), qpsk(193), qpsk(308), qpsk(449), qpsk(602),
    qam16(378), qam16(490), qam16(616),
    qam64(466), qam64(567), qam64(666), qam64(772), qam64(873), qam64(948),
];

/// CQI 1 to 15; TS 38.214 Table 5.2.2.1-3.
#[rustfmt::skip]
const CQI_256: [Row; 15] = [
    qpsk(78), qpsk(193), qpsk(449),
    qam16(378), qam16(490), qam16(616),
    qam64(466), qam64(567), qam64(666), qam64(772), qam64(873),
    qam256(711), qam256(797), qam256(885), qam256(948),
];

/// MCS 0 to 28; TS 38.214 Table 5.1.3.1-1.
#[rustfmt::skip]
pub(crate) const MCS_64: [Row; 29] = [
    qpsk(120), qpsk(157), qpsk(193), qpsk(251), qpsk(308), qpsk(379), qpsk(449), qpsk(526), qpsk(602), qpsk(679),
    qam16(340), qam16(378), qam16(434), qam16(490), qam16(553), qam16(616), qam16(658),
    qam64(438), qam64(466), qam64(517), qam64(567), qam64(616), qam64(666), qam64(719), qam64(772), qam64(822),
    qam64(873), qam64(910), qam64(948),
];

/// MCS 0 to 27; TS 38.214 Table 5.1.3.1-2.
#[rustfmt::skip]
pub(crate) const MCS_256: [Row; 28] = [
    qpsk(120), qpsk(193), qpsk(308), qpsk(449), qpsk(602),
    qam16(378), qam16(434), qam16(490), qam16(553), qam16(616), qam16(658),
    qam64(466), qam64(517), qam64(567), qam64(616), qam64(666), qam64(719), qam64(772), qam64(822), qam64(873),
    qam256_and_half(682), qam256(711), qam256(754), qam256(797), qam256(841), qam256(885), qam256_and_half(916),
    qam256(948),
];

impl Cqi {
    /// Modulation and code rate that a UE recommends with this CQI; `None` for CQI 0. LTE uses [`QamTable::Qam64`].
    pub fn coding(self, table: QamTable) -> Option<(Modulation, CodeRate)> {
        let rows = match table {
            QamTable::Qam64 => &CQI_64,
            QamTable::Qam256 => &CQI_256,
        };
        rows.get(usize::from(self.get()).checked_sub(1)?).copied()
    }
    /// Their product; zero for CQI 0.
    pub fn efficiency(self, table: QamTable) -> Efficiency {
        self.coding(table).map_or(Efficiency::ZERO, |(modulation, rate)| Efficiency::of(modulation, rate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn efficiency_rises_with_the_cqi() {
        for table in [QamTable::Qam64, QamTable::Qam256] {
            assert!(Cqi::all().is_sorted_by(|a, b| a.efficiency(table) < b.efficiency(table)));
        }
        assert_eq!(Cqi::MIN.coding(QamTable::Qam64), None);
        assert_eq!(Cqi::MIN.efficiency(QamTable::Qam64), Efficiency::ZERO);
    }

    #[test]
    fn a_half_is_kept_and_printed() {
        assert_eq!(CodeRate::x1024_and_half(682).to_string(), "682.5/1024");
        assert_eq!(CodeRate::x1024(948).to_string(), "948/1024");
        assert_eq!(CodeRate::x1024(512).as_f64(), 0.5);
    }
}
