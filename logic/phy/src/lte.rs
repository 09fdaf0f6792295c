//! LTE: modulation and coding schemes, block sizes, carriers and grants.

use ranpace_units::{Rate, Span};

use crate::lte_tbs;
use crate::{Cqi, Efficiency, Itbs, LteMcs, LtePrbs, Modulation, QamTable, TransportBlock};

/// Length of a subframe, LTE's transmission time interval; TS 36.211 clause 4.1.
pub const LTE_TTI: Span = Span::from_millis(1);

/// Direction of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the base station to the UE.
    Downlink,
    /// From the UE to the base station.
    Uplink,
}

impl LteMcs {
    /// TS 36.213 Table 7.1.7.1-1 (downlink) or Table 8.6.1-1 (uplink).
    pub const fn modulation(self, direction: Direction) -> Modulation {
        match (direction, self.get()) {
            (Direction::Downlink, 0..=9) | (Direction::Uplink, 0..=10) => Modulation::Qpsk,
            (Direction::Downlink, 10..=16) | (Direction::Uplink, 11..=20) => Modulation::Qam16,
            _ => Modulation::Qam64,
        }
    }

    /// TS 36.213 Table 7.1.7.1-1 (downlink) or Table 8.6.1-1 (uplink): the index repeats where the modulation changes.
    pub const fn i_tbs(self, direction: Direction) -> Itbs {
        let mcs = self.get();
        let index = match (direction, mcs) {
            (Direction::Downlink, 0..=9) | (Direction::Uplink, 0..=10) => mcs,
            (Direction::Downlink, 10..=16) | (Direction::Uplink, 11..=20) => mcs - 1,
            _ => mcs - 2,
        };
        match Itbs::new(index) {
            Some(index) => index,
            None => Itbs::MAX, // unreachable: an MCS is at most 28, and 28 - 2 = 26
        }
    }

    /// Spectral efficiency that ns-3's LENA gives an MCS: that of CQI 1 + MCS/2, or the midpoint of its neighbours if the
    /// MCS is odd (to two decimals equal to LENA's table). The standard gives LTE's MCSs no code rate.
    pub fn lena_efficiency(self) -> Efficiency {
        let of = |cqi: u8| Cqi::new(cqi).map_or(Efficiency::ZERO, |cqi| cqi.efficiency(QamTable::Qam64));
        let lower = 1 + self.get() / 2;
        of(lower).between(of(lower + self.get() % 2))
    }
}

impl Itbs {
    /// Block size on this many PRBs with one layer; TS 36.213 Table 7.1.7.2.1-1.
    ///
    /// It never decreases with the number of PRBs, except that index 6 carries 328 bits on one and 176 on two.
    pub const fn transport_block(self, prbs: LtePrbs) -> TransportBlock {
        // The types have the bounds of the table: 27 rows, 110 columns.
        let bytes = lte_tbs::BYTES[self.get() as usize][prbs.get() as usize - 1];
        TransportBlock::from_bytes(bytes as u32)
    }
}

/// A grant of one codeword on one layer for one subframe. Two codewords are two grants of the same PRBs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LteGrant {
    /// Downlink or uplink.
    pub direction: Direction,
    /// Modulation and coding.
    pub mcs: LteMcs,
    /// PRB pairs. The uplink allows only some numbers: see [`LtePrbs::pusch_at_most`].
    pub prbs: LtePrbs,
}

impl LteGrant {
    /// The block that the grant carries.
    pub const fn transport_block(self) -> TransportBlock {
        self.mcs.i_tbs(self.direction).transport_block(self.prbs)
    }
    /// The rate of such a grant in every TTI.
    pub fn rate(self) -> Rate {
        self.transport_block().rate(LTE_TTI)
    }
}

impl LtePrbs {
    /// Returns whether an uplink allocation may have this size: 2^a 3^b 5^c PRBs; TS 36.211 clause 5.3.3.
    pub const fn is_pusch(self) -> bool {
        let mut rest = self.get();
        while rest.is_multiple_of(2) {
            rest /= 2;
        }
        while rest.is_multiple_of(3) {
            rest /= 3;
        }
        while rest.is_multiple_of(5) {
            rest /= 5;
        }
        rest == 1
    }

    /// The largest legal uplink allocation up to this size.
    pub fn pusch_at_most(self) -> Self {
        let fits = |prbs: &Self| *prbs <= self && prbs.is_pusch();
        Self::all().rev().find(fits).unwrap_or(Self::MIN) // one PRB always fits
    }

    /// Size of the resource block groups of a carrier with this many PRBs; TS 36.213 Table 7.1.6.1-1. The last group of a
    /// carrier may be smaller.
    pub const fn rbg_size(self) -> u8 {
        match self.get() {
            ..=10 => 1,
            11..=26 => 2,
            27..=63 => 3,
            _ => 4,
        }
    }

    /// Number of resource block groups of a carrier with this many PRBs, including the last, possibly smaller one.
    pub const fn rbgs(self) -> u8 {
        self.get().div_ceil(self.rbg_size())
    }
}

/// Channel bandwidth of an LTE carrier; TS 36.101 Table 5.6-1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LteBandwidth {
    /// 1.4 MHz, 6 PRBs.
    Mhz1_4,
    /// 3 MHz, 15 PRBs.
    Mhz3,
    /// 5 MHz, 25 PRBs.
    Mhz5,
    /// 10 MHz, 50 PRBs.
    Mhz10,
    /// 15 MHz, 75 PRBs.
    Mhz15,
    /// 20 MHz, 100 PRBs.
    Mhz20,
}

/// LTE has no carrier of this bandwidth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an LTE bandwidth of 1400, 3000, 5000, 10000, 15000 or 20000 kHz, found {khz} kHz")]
pub struct NoSuchLteBandwidth {
    /// The value asked for.
    pub khz: u32,
}

impl LteBandwidth {
    /// All bandwidths, in increasing order.
    pub const ALL: [Self; 6] = [Self::Mhz1_4, Self::Mhz3, Self::Mhz5, Self::Mhz10, Self::Mhz15, Self::Mhz20];

    /// The carrier with this bandwidth.
    pub fn from_khz(khz: u32) -> Result<Self, NoSuchLteBandwidth> {
        Self::ALL.into_iter().find(|bandwidth| bandwidth.khz() == khz).ok_or(NoSuchLteBandwidth { khz })
    }
    /// Bandwidth in kHz, guard bands included.
    pub const fn khz(self) -> u32 {
        match self {
            Self::Mhz1_4 => 1_400,
            Self::Mhz3 => 3_000,
            Self::Mhz5 => 5_000,
            Self::Mhz10 => 10_000,
            Self::Mhz15 => 15_000,
            Self::Mhz20 => 20_000,
        }
    }
    /// N_RB: PRBs of the carrier.
    pub const fn prbs(self) -> LtePrbs {
        let prbs = match self {
            Self::Mhz1_4 => 6,
            Self::Mhz3 => 15,
            Self::Mhz5 => 25,
            Self::Mhz10 => 50,
            Self::Mhz15 => 75,
            Self::Mhz20 => 100,
        };
        match LtePrbs::new(prbs) {
            Some(prbs) => prbs,
            None => LtePrbs::MAX, // unreachable: all six are between 1 and 110
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn prbs(number: u8) -> LtePrbs {
        LtePrbs::new(number).unwrap()
    }
    fn grant(direction: Direction, mcs: u8, number: u8) -> LteGrant {
        LteGrant { direction, mcs: LteMcs::new(mcs).unwrap(), prbs: prbs(number) }
    }

    #[test]
    fn the_peak_of_20_mhz_at_mcs_28_is_75_376_mbit_per_s() {
        let carrier = LteBandwidth::Mhz20.prbs().get();
        for direction in [Direction::Downlink, Direction::Uplink] {
            assert_eq!(grant(direction, 28, carrier).rate(), Rate::from_bits_per_s(75_376_000));
        }
    }

    #[test]
    fn block_sizes_of_5_mhz_are_those_of_test_p_1() {
        let bytes = [
            85, 113, 137, 177, 225, 277, 325, 389, 437, 501, 549, 621, 717, 807, 903, 967, 999, 1143, 1239,
            1335, 1431, 1572, 1692, 1764, 1908, 1980, 2292,
        ];
        let found: Vec<u64> =
            Itbs::all().map(|index| index.transport_block(prbs(25)).bytes().get()).collect();
        assert_eq!(found, bytes);
        for (number, bits) in [(100, 75_376), (50, 36_696), (20, 14_688), (1, 712)] {
            assert_eq!(Itbs::MAX.transport_block(prbs(number)).bits(), bits, "{number} PRBs");
        }
    }

    #[test]
    fn uplink_of_test_s_2() {
        // SIGMA has both: 70 PRBs are not a legal size of a PUSCH, 64 are.
        let asked = prbs(70);
        assert_eq!(grant(Direction::Uplink, 23, 70).transport_block().bits(), 35_160);
        assert_eq!(asked.pusch_at_most(), prbs(64));
        let grant = grant(Direction::Uplink, 23, 64);
        assert_eq!(grant.mcs.i_tbs(Direction::Uplink).get(), 21);
        assert_eq!(grant.transport_block().bits(), 31_704);
        assert_eq!(grant.rate(), Rate::from_bits_per_s(31_704_000));
    }

    #[test]
    fn queue_threshold_of_meld() {
        // Diarra 2022, Eq. 4.2: 2292 B in bits has the same digits as eight such blocks in bytes.
        let block = grant(Direction::Downlink, 28, 25).transport_block();
        assert_eq!((block.bits(), block.bytes().get(), (block.bytes() * 8).get()), (18_336, 2_292, 18_336));
    }

    #[test]
    fn sizes_rise_with_prbs_but_for_the_known_entry() {
        for index in Itbs::all() {
            let sizes: Vec<u32> = LtePrbs::all().map(|n| index.transport_block(n).bits()).collect();
            let falls: Vec<usize> = (1..110).filter(|&i| sizes[i] < sizes[i - 1]).collect();
            let known: &[usize] = if index.get() == 6 { &[1] } else { &[] };
            assert_eq!(falls, known, "TBS index {index}");
        }
        assert_eq!(Itbs::new(6).unwrap().transport_block(LtePrbs::MIN).bits(), 328);
        assert_eq!(Itbs::new(6).unwrap().transport_block(prbs(2)).bits(), 176);
    }

    #[test]
    fn sizes_rise_with_the_index_but_for_the_known_entry() {
        for number in LtePrbs::all() {
            let sizes: Vec<u32> = Itbs::all().map(|index| index.transport_block(number).bits()).collect();
            let falls: Vec<usize> = (1..27).filter(|&i| sizes[i] < sizes[i - 1]).collect();
            let known: &[usize] = if number == LtePrbs::MIN { &[7] } else { &[] };
            assert_eq!(falls, known, "{number} PRBs");
        }
    }

    #[test]
    fn uplink_allocations_have_no_factor_above_five() {
        let legal: Vec<u8> = LtePrbs::all().filter(|n| n.is_pusch()).map(LtePrbs::get).collect();
        assert_eq!(
            legal,
            [
                1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 15, 16, 18, 20, 24, 25, 27, 30, 32, 36, 40, 45, 48, 50, 54,
                60, 64, 72, 75, 80, 81, 90, 96, 100, 108
            ]
        );
        for (asked, given) in [(1, 1), (7, 6), (25, 25), (99, 96), (110, 108)] {
            assert_eq!(prbs(asked).pusch_at_most(), prbs(given));
        }
    }

    #[test]
    fn resource_block_groups_of_every_carrier() {
        for (bandwidth, size, groups) in [
            (LteBandwidth::Mhz1_4, 1, 6),
            (LteBandwidth::Mhz3, 2, 8),
            (LteBandwidth::Mhz5, 2, 13), // twelve of two and one of one
            (LteBandwidth::Mhz10, 3, 17),
            (LteBandwidth::Mhz15, 4, 19),
            (LteBandwidth::Mhz20, 4, 25),
        ] {
            let carrier = bandwidth.prbs();
            assert_eq!((carrier.rbg_size(), carrier.rbgs()), (size, groups), "{bandwidth:?}");
            assert_eq!(LteBandwidth::from_khz(bandwidth.khz()), Ok(bandwidth));
        }
        assert_eq!(LteBandwidth::from_khz(7_000), Err(NoSuchLteBandwidth { khz: 7_000 }));
    }

    #[test]
    fn efficiencies_are_those_of_lena() {
        // To two decimals, as ns-3 prints them.
        let printed = [
            0.15, 0.19, 0.23, 0.31, 0.38, 0.49, 0.60, 0.74, 0.88, 1.03, 1.18, 1.33, 1.48, 1.70, 1.91, 2.16,
            2.41, 2.57, 2.73, 3.03, 3.32, 3.61, 3.90, 4.21, 4.52, 4.82, 5.12, 5.33, 5.55,
        ];
        for (mcs, printed) in LteMcs::all().zip(printed) {
            let found = mcs.lena_efficiency().as_f64();
            assert!((found - printed).abs() < 0.006, "MCS {mcs}: {found}, not {printed}");
        }
        assert!(LteMcs::all().is_sorted_by_key(LteMcs::lena_efficiency));
    }

    proptest! {
        #[test]
        fn more_of_either_never_carries_less(mcs in 0..28u8, number in 2..110u8) {
            let bits = |mcs, number| grant(Direction::Uplink, mcs, number).transport_block().bits();
            prop_assert!(bits(mcs + 1, number) >= bits(mcs, number));
            prop_assert!(bits(mcs, number + 1) >= bits(mcs, number));
            prop_assert!(bits(mcs, number) % 8 == 0);
        }
    }
}
