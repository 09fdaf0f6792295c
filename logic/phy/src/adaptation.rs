//! Link adaptation: from SINR to CQI, and from CQI to LTE's MCS. NR's is in [`NrMcs::for_cqi`](crate::NrMcs::for_cqi).

use crate::ns3_cqi;
use crate::{Cqi, Direction, Efficiency, Itbs, LteMcs, QamTable};

/// SINR thresholds from which a UE reports each CQI of the table up to 64QAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CqiThresholds {
    /// Usual values for additive white Gaussian noise at a block error rate of 10 %; not from any document cited here.
    Awgn,
    /// The CQI that a UE of ns-3 3.37 reports with its error model (the default), measured on 100 PRBs: for reproductions
    /// of ns-3 experiments.
    Ns3,
    /// Like [`Self::Ns3`] on 25 PRBs, which differs at CQI 2 and 3.
    Ns3On25Prbs,
    /// The CQI that a UE of ns-3 3.37 reports with its simpler model, "PiroEW2010".
    Ns3Piro,
}

/// SINR in dB for CQI 1 to 15.
const AWGN: [f64; 15] = [-6.7, -4.7, -2.3, 0.2, 2.4, 4.3, 5.9, 8.1, 10.3, 11.7, 14.1, 16.3, 18.7, 21.0, 22.7];

impl CqiThresholds {
    /// SINR in dB from which CQI 1 to 15 are reported, in increasing order.
    pub const fn sinr_db(self) -> &'static [f64; 15] {
        match self {
            Self::Awgn => &AWGN,
            Self::Ns3 => &ns3_cqi::ON_100_PRBS,
            Self::Ns3On25Prbs => &ns3_cqi::ON_25_PRBS,
            Self::Ns3Piro => &ns3_cqi::PIRO,
        }
    }

    /// The largest CQI whose threshold does not exceed the effective SINR; 0 if there is none, or for NaN.
    pub fn cqi(self, sinr_db: f64) -> Cqi {
        // At most the number of thresholds, which is the largest CQI.
        let reached = self.sinr_db().iter().take_while(|threshold| **threshold <= sinr_db).count();
        Cqi::new(reached as u8).unwrap_or(Cqi::MAX)
    }
}

/// SINR in dB at which a tenth of the blocks with this spectral efficiency are lost under AWGN: the thresholds of
/// [`CqiThresholds::Awgn`], interpolated linearly over efficiency. Beyond the last efficiency (5.5547)
/// the last line is extrapolated: ours.
pub fn awgn_threshold_db(efficiency: Efficiency) -> f64 {
    let of = |i: usize| Cqi::new(i as u8 + 1).unwrap_or(Cqi::MAX).efficiency(QamTable::Qam64).as_f64();
    let wanted = efficiency.as_f64();
    // The interval that contains it, or the last one.
    let i = (0..13).find(|&i| wanted <= of(i + 1)).unwrap_or(13);
    let share = (wanted - of(i)) / (of(i + 1) - of(i));
    AWGN[i] + share * (AWGN[i + 1] - AWGN[i])
}

/// The CQI that a UE with either table reports under AWGN. For the table up to 256QAM the thresholds are [`awgn_threshold_db`]
/// of its efficiencies: ours.
pub fn awgn_cqi(table: QamTable, sinr_db: f64) -> Cqi {
    match table {
        QamTable::Qam64 => CqiThresholds::Awgn.cqi(sinr_db),
        QamTable::Qam256 => {
            let reached = |cqi: &Cqi| awgn_threshold_db(cqi.efficiency(table)) <= sinr_db;
            Cqi::all().skip(1).take_while(reached).last().unwrap_or(Cqi::MIN)
        }
    }
}

/// CQI of an uplink as ns-3's LENA derives it from the measured SINR (a ratio, not dB): the largest whose efficiency
/// does not exceed log2(1 + SINR / G), with G = -ln(5 * 0.00005) / 1.5 = 5.53. CQI 0, below -2.1 dB, gets no grant.
pub fn lena_uplink_cqi(sinr: f64) -> Cqi {
    const BLER: f64 = 0.00005;
    let gap = -libm::log(5.0 * BLER) / 1.5;
    let efficiency = libm::log2(1.0 + sinr / gap);
    // CQI 0 has efficiency 0; nothing fits if the SINR is NaN.
    let fits = |cqi: &Cqi| cqi.efficiency(QamTable::Qam64).as_f64() <= efficiency;
    Cqi::all().rev().find(fits).unwrap_or(Cqi::MIN)
}

/// How an LTE base station chooses the MCS for a CQI; the standard leaves this to the implementation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum McsRule {
    /// The rule of ns-3's LENA, from its tables of efficiencies: MCS = 2 (CQI - 1).
    #[default]
    Lena,
    /// The OpenAirInterface cell of MELD's experiments: MCS 28, 27, 25, 23, 20 for CQI 15 to 11, whose block sizes on
    /// 25 PRBs are those of the paper's Table II (which prints "28" for all five); like [`Self::Lena`] below.
    Oai,
}

impl McsRule {
    /// The MCS; `None` at CQI 0, which gets no grant.
    pub const fn mcs(self, cqi: Cqi) -> Option<LteMcs> {
        match (self, cqi.get()) {
            (_, 0) => None,
            (Self::Oai, 11) => LteMcs::new(20),
            (Self::Oai, 12) => LteMcs::new(23),
            (Self::Oai, 13) => LteMcs::new(25),
            (Self::Oai, 14) => LteMcs::new(27),
            (_, cqi) => LteMcs::new(2 * (cqi - 1)),
        }
    }

    /// The TBS index for this CQI in this direction; `None` at CQI 0.
    pub fn i_tbs(self, cqi: Cqi, direction: Direction) -> Option<Itbs> {
        self.mcs(cqi).map(|mcs| mcs.i_tbs(direction))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LtePrbs;

    const ALL: [CqiThresholds; 4] =
        [CqiThresholds::Awgn, CqiThresholds::Ns3, CqiThresholds::Ns3On25Prbs, CqiThresholds::Ns3Piro];

    #[test]
    fn a_cqi_is_reported_from_its_threshold_on() {
        for thresholds in ALL {
            let db = thresholds.sinr_db();
            assert!(db.is_sorted_by(|a, b| a < b), "{thresholds:?}");
            assert_eq!(thresholds.cqi(db[0] - 1e-9), Cqi::MIN);
            for (cqi, &db) in Cqi::all().skip(1).zip(db) {
                assert_eq!(thresholds.cqi(db), cqi, "{thresholds:?} at {db} dB");
            }
            assert_eq!(thresholds.cqi(100.0), Cqi::MAX);
            assert_eq!(thresholds.cqi(f64::NAN), Cqi::MIN);
        }
    }

    #[test]
    fn thresholds_lie_on_lines_over_efficiency() {
        for (cqi, &db) in Cqi::all().skip(1).zip(&AWGN) {
            assert!((awgn_threshold_db(cqi.efficiency(QamTable::Qam64)) - db).abs() < 1e-9, "CQI {cqi}");
            // Midway between two efficiencies is midway between their thresholds.
            let Some(next) = Cqi::new(cqi.get() + 1) else { break };
            let half = cqi.efficiency(QamTable::Qam64).between(next.efficiency(QamTable::Qam64));
            let expected = (db + AWGN[usize::from(cqi.get())]) / 2.0;
            assert!((awgn_threshold_db(half) - expected).abs() < 0.01, "CQI {cqi} and {next}");
        }
    }

    #[test]
    fn a_ue_with_256_qam_reports_its_own_table() {
        for (sinr_db, up_to_64, up_to_256) in
            [(-7.0, 0, 0), (-6.7, 1, 1), (-4.0, 2, 1), (22.7, 15, 12), (40.0, 15, 15)]
        {
            assert_eq!(awgn_cqi(QamTable::Qam64, sinr_db).get(), up_to_64, "{sinr_db} dB");
            // Slightly above, since interpolation may miss the end point by rounding.
            assert_eq!(awgn_cqi(QamTable::Qam256, sinr_db + 1e-9).get(), up_to_256, "{sinr_db} dB");
        }
        assert_eq!(awgn_cqi(QamTable::Qam256, f64::NAN), Cqi::MIN);
    }

    #[test]
    fn both_sets_differ_as_the_specification_says() {
        let more = |cqi: usize| ns3_cqi::ON_100_PRBS[cqi - 1] - AWGN[cqi - 1];
        assert!((3..=12).all(|cqi| more(cqi).abs() < 0.95));
        for (cqi, db) in [(1, 2.3), (2, 1.2), (13, -1.8), (14, -2.1), (15, -2.9)] {
            assert!((more(cqi) - db).abs() < 0.05, "CQI {cqi}: {}", more(cqi));
        }
        assert!((0..15).all(|i| (1.3..4.6).contains(&(ns3_cqi::PIRO[i] - AWGN[i]))));
    }

    #[test]
    fn block_sizes_of_melds_table_2() {
        // Diarra 2022 (paper), Table II: bytes at 25 PRBs for CQI 15 to 11.
        let carrier = LtePrbs::new(25).unwrap();
        for (cqi, index, bytes) in
            [(15, 26, 2292), (14, 25, 1980), (13, 23, 1764), (12, 21, 1572), (11, 18, 1239)]
        {
            let found = McsRule::Oai.i_tbs(Cqi::new(cqi).unwrap(), Direction::Downlink).unwrap();
            assert_eq!(found.get(), index, "CQI {cqi}");
            assert_eq!(found.transport_block(carrier).bytes().get(), bytes, "CQI {cqi}");
        }
    }

    #[test]
    fn mcs_rises_with_the_cqi() {
        for rule in [McsRule::Lena, McsRule::Oai] {
            assert_eq!(rule.mcs(Cqi::MIN), None);
            assert_eq!(rule.mcs(Cqi::MAX), Some(LteMcs::MAX));
            assert!(Cqi::all().is_sorted_by(|a, b| rule.mcs(*a) < rule.mcs(*b)), "{rule:?}");
        }
        assert_eq!(McsRule::Oai.mcs(Cqi::new(10).unwrap()), LteMcs::new(18));
        assert_eq!(McsRule::Lena.mcs(Cqi::new(1).unwrap()), LteMcs::new(0));
    }

    #[test]
    fn an_uplink_below_minus_2_1_db_gets_no_grant() {
        let at = |db: f64| lena_uplink_cqi(libm::pow(10.0, db / 10.0)).get();
        assert_eq!(at(-2.2), 0);
        assert_eq!(at(-2.1), 1);
        assert_eq!(at(40.0), 15);
        assert_eq!(lena_uplink_cqi(0.0), Cqi::MIN);
        assert_eq!(lena_uplink_cqi(f64::NAN), Cqi::MIN);
    }
}
