//! Effective SINR and CQI from the SINR of groups of resource blocks.

use ranpace_phy::{Cqi, CqiThresholds, QamTable, awgn_threshold_db};

use super::decibel::{counted, from_db};

/// Limit at which a product is folded, so that another factor of at most 10^30 cannot overflow it.
const FULL: f64 = 1e270;

/// Effective SINR: the single SINR at which all PRBs would have the same total capacity. Each item is the SINR of a group as a
/// ratio, and its number of PRBs. It inverts the mean of log2(1 + SINR) over PRBs; 0 if there are no groups.
pub fn effective_sinr(groups: impl IntoIterator<Item = (f32, u8)>) -> f64 {
    // One logarithm serves many groups: the factors of equally wide groups are multiplied first.
    let (mut bits, mut prbs) = (0.0, 0_u32);
    let (mut product, mut width) = (1.0_f64, 0_u8);
    for (sinr, group) in groups {
        if group != width || product > FULL {
            bits += f64::from(width) * libm::log2(product);
            (product, width) = (1.0, group);
        }
        product *= 1.0 + counted(sinr.into());
        prbs += u32::from(group);
    }
    bits += f64::from(width) * libm::log2(product);
    if prbs == 0 { 0.0 } else { libm::exp2(bits / f64::from(prbs)) - 1.0 }
}

/// Shift after which the bits of a positive f32 count sixteenths of octaves.
const STEP_BITS: u32 = 19;
/// Steps start at a ratio of 1/16, below all thresholds, and end at 4096, above all thresholds.
const FIRST_STEP: u32 = (127 - 4) << 4;
const STEPS: usize = 16 * 16;

/// CQI thresholds as ratios, so that groups need no logarithm each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CqiScale {
    /// Thresholds of CQI 1 to 15 as ratios.
    ratios: [f64; 15],
    /// The thresholds as capacities, log2(1 + ratio).
    capacities: [f64; 15],
    /// Threshold of the next higher CQI, by CQI; infinite for the last.
    next: [f32; 16],
    /// The CQI at the beginning of each sixteenth of an octave, which contains at most one threshold.
    least: [u8; STEPS],
    /// The thresholds in dB.
    decibels: [f64; 15],
}

impl CqiScale {
    /// The scale of a UE with the table up to 64QAM.
    pub fn new(thresholds: CqiThresholds) -> Self {
        Self::of(*thresholds.sinr_db())
    }
    /// The scale of a UE with either table under AWGN; see [`ranpace_phy::awgn_cqi`].
    pub fn awgn(table: QamTable) -> Self {
        match table {
            QamTable::Qam64 => Self::new(CqiThresholds::Awgn),
            QamTable::Qam256 => Self::of(core::array::from_fn(|i| {
                // From 1 to 15.
                let cqi = Cqi::new(i as u8 + 1).unwrap_or(Cqi::MAX);
                awgn_threshold_db(cqi.efficiency(table))
            })),
        }
    }
    fn of(decibels: [f64; 15]) -> Self {
        let ratios = decibels.map(from_db);
        let mut next = [f32::INFINITY; 16];
        for (next, ratio) in next.iter_mut().zip(ratios) {
            *next = ratio as f32;
        }
        let least = core::array::from_fn(|step| {
            let from = f32::from_bits((step as u32 + FIRST_STEP) << STEP_BITS);
            next.iter().filter(|threshold| **threshold <= from).count() as u8 // at most 15
        });
        let capacities = ratios.map(|ratio| libm::log2(1.0 + ratio));
        Self { ratios, capacities, next, least, decibels }
    }

    /// The CQI at this SINR as a ratio: the highest whose threshold does not exceed it.
    pub fn cqi(&self, sinr: f64) -> Cqi {
        // At most 15. All are compared, which is faster than stopping early.
        let reached = self.ratios.iter().map(|threshold| u8::from(*threshold <= sinr)).sum();
        Cqi::new(reached).unwrap_or(Cqi::MAX)
    }

    /// The CQI of a band with this capacity, the mean of log2(1 + SINR): the CQI of its effective SINR.
    pub fn cqi_of_capacity(&self, capacity: f64) -> Cqi {
        let reached = self.capacities.partition_point(|threshold| *threshold <= capacity);
        Cqi::new(reached as u8).unwrap_or(Cqi::MAX) // at most 15
    }

    /// The CQI at each SINR (a ratio), for as many as both slices hold: like [`Self::cqi`] except that thresholds are rounded to
    /// single precision, and much faster.
    #[inline]
    pub fn cqis(&self, sinrs: &[f32], cqis: &mut [u8]) {
        for (sinr, cqi) in sinrs.iter().zip(cqis) {
            // NaN counts as 0.
            let sinr = sinr.max(0.0);
            let step = (sinr.to_bits() >> STEP_BITS).saturating_sub(FIRST_STEP) as usize;
            let least = self.least[step.min(STEPS - 1)];
            *cqi = (least + u8::from(self.next[usize::from(least & 15)] <= sinr)).min(15);
        }
    }

    /// The worst CQI of the groups, which ns-3 uses for the MCS of a user's groups; the highest CQI if there
    /// are no groups.
    pub fn worst(&self, sinrs: impl IntoIterator<Item = f32>) -> Cqi {
        let least = |least: f64, sinr: f32| least.min(counted(sinr.into()));
        self.cqi(sinrs.into_iter().fold(f64::MAX, least))
    }

    /// An SINR in dB at which this CQI is reported, for recordings that have only the CQI: the midpoint between its
    /// threshold and the next, or 1 dB above the last or below the first. Ours.
    pub fn middle_db(&self, cqi: Cqi) -> f64 {
        match usize::from(cqi.get()) {
            0 => self.decibels[0] - 1.0,
            15 => self.decibels[14] + 1.0,
            index => (self.decibels[index - 1] + self.decibels[index]) / 2.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::to_db;
    use proptest::prelude::*;
    use ranpace_phy::awgn_cqi;

    #[test]
    fn the_effective_sinr_has_the_mean_capacity() {
        for (case, groups, expected) in [
            ("equal", vec![(7.0, 4); 25], 7.0),
            // log2(1 + 3) = 2, log2(1 + 15) = 4: the mean is 3 bits.
            ("two", vec![(3.0, 4), (15.0, 4)], 7.0),
            // Three PRBs with 2 bits and one with 4: 2.5 bits.
            ("unequally wide", vec![(3.0, 3), (15.0, 1)], 4.656_854),
            ("one of nothing", vec![(0.0, 1), (15.0, 1)], 3.0),
            ("none", vec![], 0.0),
        ] {
            assert!((effective_sinr(groups) - expected).abs() < 1e-5, "{case}");
        }
    }

    #[test]
    fn capacities_have_the_cqi_of_their_sinr() {
        let scale = CqiScale::new(CqiThresholds::Ns3);
        for tenths in -200..400 {
            let ratio = libm::pow(10.0, f64::from(tenths) / 100.0 + 1e-4);
            assert_eq!(scale.cqi_of_capacity(libm::log2(1.0 + ratio)), scale.cqi(ratio), "{tenths}");
        }
    }

    #[test]
    fn many_at_once_are_as_one_by_one() {
        let mut scales = vec![CqiScale::awgn(QamTable::Qam256)];
        let all =
            [CqiThresholds::Awgn, CqiThresholds::Ns3, CqiThresholds::Ns3On25Prbs, CqiThresholds::Ns3Piro];
        scales.extend(all.map(CqiScale::new));
        let mut sinrs: Vec<f32> =
            (-400..600).map(|db| libm::pow(10.0, f64::from(db) / 100.0 + 0.001) as f32).collect();
        sinrs.extend([0.0, f32::MIN_POSITIVE, f32::MAX, f32::INFINITY]);
        for scale in scales {
            assert!(scale.capacities.is_sorted());
            assert!(scale.next.is_sorted() && scale.least[0] == 0 && scale.least[STEPS - 1] == 15);
            assert!(scale.least.windows(2).all(|pair| pair[1] - pair[0] <= 1), "one threshold in a step");
            let mut cqis = vec![16; sinrs.len()];
            scale.cqis(&sinrs, &mut cqis);
            for (sinr, cqi) in sinrs.iter().zip(cqis) {
                assert_eq!(scale.cqi((*sinr).into()).get(), cqi, "{sinr}");
            }
            let mut cqi = [16];
            scale.cqis(&[f32::NAN], &mut cqi);
            assert_eq!(cqi, [0]);
        }
    }

    #[test]
    fn scales_report_as_the_thresholds_do() {
        for thresholds in [CqiThresholds::Awgn, CqiThresholds::Ns3, CqiThresholds::Ns3Piro] {
            let scale = CqiScale::new(thresholds);
            for tenths in -200..400 {
                // Off the thresholds.
                let db = f64::from(tenths) / 10.0 + 0.000_1;
                assert_eq!(scale.cqi(from_db(db)), thresholds.cqi(db), "{thresholds:?} at {db} dB");
            }
            for cqi in Cqi::all() {
                assert_eq!(scale.cqi(from_db(scale.middle_db(cqi))), cqi);
            }
        }
        let wide = CqiScale::awgn(QamTable::Qam256);
        for tenths in -200..400 {
            let db = f64::from(tenths) / 10.0 + 0.000_1;
            assert_eq!(wide.cqi(from_db(db)), awgn_cqi(QamTable::Qam256, db), "{db} dB");
        }
    }

    #[test]
    fn the_worst_group_counts() {
        let scale = CqiScale::new(CqiThresholds::Ns3);
        let ratio = |db: f64| from_db(db) as f32;
        assert_eq!(scale.worst([ratio(25.0), ratio(3.0), ratio(12.0)]).get(), 5);
        assert_eq!(scale.worst([f32::NAN, ratio(3.0)]), Cqi::MIN);
        assert_eq!(scale.worst([]), Cqi::MAX);
    }

    proptest! {
        #[test]
        fn the_effective_sinr_lies_between_the_worst_and_the_best(
            groups in prop::collection::vec((-30.0..60.0f64, 1..20u8), 1..300)
        ) {
            let sinrs = groups.iter().map(|(db, _)| *db);
            let (least, most) = sinrs.fold((f64::MAX, f64::MIN), |(a, b), db| (a.min(db), b.max(db)));
            let found = to_db(effective_sinr(groups.iter().map(|(db, prbs)| (from_db(*db) as f32, *prbs))));
            prop_assert!(found > least - 1e-3 && found < most + 1e-3, "{found} in {least}..{most}");
        }

        #[test]
        fn absurd_sinrs_give_numbers(groups in prop::collection::vec((any::<f32>(), any::<u8>()), 0..300)) {
            let found = effective_sinr(groups.iter().copied());
            prop_assert!(found.is_finite() && found >= 0.0);
            CqiScale::new(CqiThresholds::Awgn).worst(groups.into_iter().map(|(sinr, _)| sinr));
        }
    }
}
