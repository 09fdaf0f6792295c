//! Block error rate of a transport block as a function of SINR.

use crate::ns3_bler::{MILLI_DB, PRBS};
use crate::{Efficiency, LteMcs, LtePrbs, NrMcs, awgn_threshold_db};

/// Block error rate as a function of SINR: BLER = 1/2 erfc((SINR - centre) / (sqrt 2 width)), all in dB.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlerCurve {
    centre_db: f64,
    width_db: f64,
}

/// Number of widths above the centre at which the error rate is 10 %: a quantile of the normal distribution.
const QUANTILE: f64 = 1.2816;

/// Width of AWGN curves in dB; ours, and much wider than ns-3's.
const AWGN_WIDTH_DB: f64 = 0.7;

impl BlerCurve {
    /// The AWGN curve of an LTE MCS: 10 % at the MCS's threshold, which is
    /// [`awgn_threshold_db`] of its [efficiency](LteMcs::lena_efficiency).
    pub fn awgn_lte(mcs: LteMcs) -> Self {
        Self::awgn(mcs.lena_efficiency())
    }

    /// The AWGN curve of an NR MCS.
    pub fn awgn_nr(mcs: NrMcs) -> Self {
        Self::awgn(mcs.efficiency())
    }

    fn awgn(efficiency: Efficiency) -> Self {
        let centre_db = awgn_threshold_db(efficiency) - QUANTILE * AWGN_WIDTH_DB;
        Self { centre_db, width_db: AWGN_WIDTH_DB }
    }

    /// ns-3's curve for this MCS: centre and width follow from the SINRs of its error rates of 50 % and 10 %, measured on the number
    /// of PRBs nearest to the block's (on a tie the smaller: ours).
    pub fn ns3(mcs: LteMcs, prbs: LtePrbs) -> Self {
        // The first of the smallest distances; PRBS is not empty.
        let nearest = (0..PRBS.len()).min_by_key(|&i| PRBS[i].abs_diff(prbs.get())).unwrap_or(0);
        let [half, tenth, _] = MILLI_DB[nearest][usize::from(mcs.get())];
        let db = |milli: i16| f64::from(milli) / 1000.0;
        Self { centre_db: db(half), width_db: (db(tenth) - db(half)) / QUANTILE }
    }

    /// SINR in dB at which half of the blocks are lost.
    pub const fn centre_db(self) -> f64 {
        self.centre_db
    }
    /// Width in dB: one standard deviation.
    pub const fn width_db(self) -> f64 {
        self.width_db
    }
    /// Block error rate at this SINR in dB, 0 to 1.
    pub fn bler(self, sinr_db: f64) -> f64 {
        0.5 * libm::erfc((sinr_db - self.centre_db) / (core::f64::consts::SQRT_2 * self.width_db))
    }
}

/// SINR in dB at which ns-3 3.37 loses 50 %, 10 % and 1 % of the blocks of an MCS on 6, 15, 25, 50, 75 or 100 PRBs;
/// `None` for other numbers, which were not measured. `LteMiErrorModel`, flat channel, first transmission.
pub fn ns3_measured_sinr_db(mcs: LteMcs, prbs: LtePrbs) -> Option<[f64; 3]> {
    let row = PRBS.iter().position(|&measured| measured == prbs.get())?;
    Some(MILLI_DB[row][usize::from(mcs.get())].map(|milli| f64::from(milli) / 1000.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cqi, CqiThresholds, McsRule, QamTable};

    fn prbs(number: u8) -> LtePrbs {
        LtePrbs::new(number).unwrap()
    }

    #[test]
    fn a_tenth_is_lost_at_the_threshold_of_the_cqi() {
        for (cqi, &db) in Cqi::all().skip(1).zip(CqiThresholds::Awgn.sinr_db()) {
            let mcs = McsRule::Lena.mcs(cqi).unwrap();
            let bler = BlerCurve::awgn_lte(mcs).bler(db);
            assert!((bler - 0.1).abs() < 1e-5, "CQI {cqi}: {bler}");
        }
    }

    #[test]
    fn odd_mcs_lie_between_their_neighbours_and_256_qam_beyond() {
        let centres = LteMcs::all().map(|mcs| BlerCurve::awgn_lte(mcs).centre_db());
        assert!(centres.is_sorted_by(|a, b| a < b));
        let best = NrMcs::all(QamTable::Qam256).next_back().unwrap();
        let threshold = awgn_threshold_db(best.efficiency());
        assert!((29.0..31.0).contains(&threshold), "{threshold}");
        let same = NrMcs::all(QamTable::Qam64).next_back().unwrap();
        assert_eq!(BlerCurve::awgn_nr(same), BlerCurve::awgn_lte(LteMcs::MAX));
    }

    #[test]
    fn ns3_curves_go_through_the_measured_points() {
        for number in PRBS {
            for mcs in LteMcs::all() {
                let [half, tenth, hundredth] = ns3_measured_sinr_db(mcs, prbs(number)).unwrap();
                assert!(half < tenth && tenth < hundredth);
                let curve = BlerCurve::ns3(mcs, prbs(number));
                assert_eq!(curve.bler(half), 0.5);
                assert!((curve.bler(tenth) - 0.1).abs() < 1e-5, "{number} PRBs, MCS {mcs}");
            }
        }
        assert_eq!(ns3_measured_sinr_db(LteMcs::MAX, prbs(26)), None);
    }

    #[test]
    fn ns3_widths_are_those_of_the_specification() {
        for (number, expected) in [(6, 0.34), (15, 0.22), (25, 0.18), (50, 0.15), (100, 0.12)] {
            let sum: f64 = LteMcs::all().map(|mcs| BlerCurve::ns3(mcs, prbs(number)).width_db()).sum();
            assert!((sum / 29.0 - expected).abs() < 0.006, "{number} PRBs: {}", sum / 29.0);
        }
    }

    #[test]
    fn the_nearest_allocation_decides() {
        for (number, measured) in [(1, 6), (10, 6), (11, 15), (20, 15), (21, 25), (63, 75), (110, 100)] {
            let [a, b] = [number, measured].map(|n| BlerCurve::ns3(LteMcs::MAX, prbs(n)));
            assert_eq!(a, b, "{number}");
        }
    }

    #[test]
    fn fewer_blocks_are_lost_as_sinr_rises() {
        let curve = BlerCurve::awgn_lte(LteMcs::MIN);
        assert!((-300..300).map(|db| curve.bler(f64::from(db) / 10.0)).is_sorted_by(|a, b| a >= b));
        assert_eq!((curve.bler(-100.0), curve.bler(100.0)), (1.0, 0.0));
    }
}
