//! Transmit power in the uplink.

use crate::channel::from_db;

/// P0 of ns-3's power control in dBm: the target received power of a PRB.
pub const LENA_P0_DBM: f64 = -80.0;
/// Maximum power of a UE in ns-3, in dBm, whatever power it is configured with, which is only its initial value.
pub const LENA_CAP_DBM: f64 = 23.0;
/// Our P0 in dBm for [`PowerControl::ThreeGpp`]; TS 36.213 clause 5.1.1.1 leaves it to the operator. With ns-3's -80
/// a user some hundred metres away has power for a few PRBs only, at an SINR that no MCS needs. With this value users at up
/// to 116 dB have power for a whole band of 20 MHz, and from 140 dB on a single PRB takes all of it.
pub const THREE_GPP_P0_DBM: f64 = -90.0;
/// Our compensated share of the path loss: 0.8, usual to limit interference between cells. With full compensation
/// a UE would run out of power at 104 dB already, and be left with one PRB at an SINR that no MCS needs.
pub const THREE_GPP_ALPHA: f64 = 0.8;

/// The rule by which a UE sets its power.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PowerControl {
    /// TS 36.213 clause 5.1.1: P = min(P_cmax, 10 log10 M + P0 + alpha PL) on the M allocated PRBs only; the base station
    /// lowers M until the power headroom is not negative or M = 1.
    ThreeGpp {
        /// P0 in dBm.
        p0_dbm: f64,
        /// Share of the path loss that is compensated, 0 to 1.
        alpha: f64,
    },
    /// ns-3: P = min([`LENA_CAP_DBM`], P0 + alpha PL + 10 log10 M), spread over all PRBs of the band whatever M is.
    Lena {
        /// P0 in dBm.
        p0_dbm: f64,
        /// Share of the path loss that is compensated, 0 to 1.
        alpha: f64,
    },
    /// Always full power, over the allocated PRBs: millimetre waves, 35 dBm in the authors' scripts.
    Fixed,
}

impl PowerControl {
    /// The standard's control with our values, [`THREE_GPP_P0_DBM`] and [`THREE_GPP_ALPHA`].
    pub const THREE_GPP: Self = Self::ThreeGpp { p0_dbm: THREE_GPP_P0_DBM, alpha: THREE_GPP_ALPHA };
    /// ns-3's control with its values: P0 -80 dBm, alpha 1.
    pub const LENA: Self = Self::Lena { p0_dbm: LENA_P0_DBM, alpha: 1.0 };
}

/// The power of a UE.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Power {
    /// The rule by which it is set.
    pub control: PowerControl,
    /// Maximum power of the UE in dBm: P_cmax. [`PowerControl::Lena`] ignores it; see [`LENA_CAP_DBM`].
    pub most_dbm: f64,
}

impl Power {
    /// Power in dBm on each PRB that carries some, when `prbs` of a band of `band` PRBs are allocated at this path loss
    /// in dB. 0 PRBs count as 1. A loss of NaN gets full power.
    pub fn prb_dbm(&self, loss_db: f64, prbs: u16, band: u16) -> f64 {
        let allocated = ten_log(prbs);
        match self.control {
            PowerControl::ThreeGpp { p0_dbm, alpha } => {
                self.most_dbm.min(allocated + p0_dbm + alpha * loss_db) - allocated
            }
            PowerControl::Lena { p0_dbm, alpha } => {
                LENA_CAP_DBM.min(p0_dbm + alpha * loss_db + allocated) - ten_log(band)
            }
            PowerControl::Fixed => self.most_dbm - allocated,
        }
    }

    /// Returns how many of these PRBs a base station would allocate at this path loss in dB: with [`PowerControl::ThreeGpp`] the
    /// most whose headroom is not negative, but at least one; otherwise all.
    pub fn most_prbs(&self, loss_db: f64, prbs: u16) -> u16 {
        let PowerControl::ThreeGpp { p0_dbm, alpha } = self.control else { return prbs };
        // The factor allows for the error of the exponential if the headroom is exactly zero.
        let most = libm::floor(from_db(self.most_dbm - p0_dbm - alpha * loss_db) * (1.0 + 1e-9));
        // The cast saturates.
        (most as u16).clamp(1, prbs.max(1))
    }
}

fn ten_log(prbs: u16) -> f64 {
    10.0 * libm::log10(f64::from(prbs.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::{Carrier, Path, PathLoss, Position, Receiver};
    use proptest::prelude::*;
    use ranpace_phy::{McsRule, lena_uplink_cqi};
    use ranpace_units::Time;

    /// Twelve sub-carriers of 15 kHz.
    const PRB_HZ: f64 = 180e3;

    fn loss_db(metres: f64) -> f64 {
        let path = Path::between(Position::default(), Position::new(metres, 0.0, 0.0));
        PathLoss::COST231_NS3.loss_db(path, Carrier::MHZ_1930, true)
    }
    /// SINR in dB at a base station with a noise figure of 5 dB.
    fn sinr_db(power: Power, metres: f64, prbs: u16, band: u16) -> f64 {
        let loss = loss_db(metres);
        Receiver::quiet(5.0).sinr_db(power.prb_dbm(loss, prbs, band) - loss, PRB_HZ, Time::ZERO)
    }

    const LENA: Power = Power { control: PowerControl::LENA, most_dbm: 24.0 };
    const THREE_GPP: Power = Power { control: PowerControl::THREE_GPP, most_dbm: 24.0 };

    #[test]
    fn mcs_of_test_p_11_is_ns_3s_whatever_is_allocated() {
        let mcs = |metres, prbs, band| {
            let sinr = from_db(sinr_db(LENA, metres, prbs, band));
            McsRule::Lena.mcs(lena_uplink_cqi(sinr)).map(|mcs| mcs.get())
        };
        for (metres, band, expected) in [
            (100.0, 100, Some(14)),
            (200.0, 100, Some(4)),
            (250.0, 100, Some(2)),
            (280.0, 100, Some(0)),
            (290.0, 100, Some(0)),
            (291.0, 100, None),
            (300.0, 100, None),
            (350.0, 50, Some(0)),
            (400.0, 25, Some(0)),
        ] {
            for prbs in [1, 3, band] {
                assert_eq!(mcs(metres, prbs, band), expected, "{metres} m, {prbs} of {band} PRBs");
            }
        }
    }

    #[test]
    fn ns_3_caps_at_23_dbm_and_spreads_over_the_band() {
        assert!((LENA.prb_dbm(loss_db(200.0), 3, 100) - 3.0).abs() < 1e-9);
        // Below the cap: 90 dB less 80 dBm, and 10 dB for ten PRBs; over 100 PRBs.
        assert!((LENA.prb_dbm(90.0, 10, 100) - 0.0).abs() < 1e-9);
        // The configured power is ignored.
        let weak = Power { most_dbm: 10.0, ..LENA };
        assert_eq!(weak.prb_dbm(120.0, 3, 100), LENA.prb_dbm(120.0, 3, 100));
        assert_eq!(LENA.most_prbs(150.0, 100), 100);
    }

    #[test]
    fn fewer_prbs_reach_further_by_the_standard() {
        // Section 8 of the specification: the distance at which CQI 1, at -6.7 dB, ends with 24 dBm on this many PRBs.
        for (prbs, metres) in [(100, 425.0), (25, 641.0), (10, 841.0), (1, 1660.0)] {
            let at = |metres: f64| sinr_db(THREE_GPP, metres, prbs, 100);
            assert!(at(metres * 0.995) > -6.7 && at(metres * 1.005) < -6.7, "{prbs}: {}", at(metres));
            assert_eq!(THREE_GPP.most_prbs(loss_db(metres).max(140.1), prbs), 1, "and all of it on one");
        }
    }

    #[test]
    fn headroom_decides_how_many_prbs() {
        // -90 + 0.8 * 120 = 6 dBm per PRB: 18 dB are left, which is 63.1 PRBs.
        for (loss, asked, given) in
            [(120.0, 100, 63), (120.0, 20, 20), (110.0, 100, 100), (140.0, 100, 1), (170.0, 100, 1)]
        {
            assert_eq!(THREE_GPP.most_prbs(loss, asked), given, "{loss} dB");
            // Power is reduced only where necessary.
            let uncut = THREE_GPP_P0_DBM + THREE_GPP_ALPHA * loss;
            let found = THREE_GPP.prb_dbm(loss, given, 100);
            assert!((found - uncut.min(24.0)).abs() < 1e-6, "{loss} dB: {found}");
        }
    }

    #[test]
    fn fixed_power_is_spread_over_what_is_allocated() {
        let fixed = Power { control: PowerControl::Fixed, most_dbm: 35.0 };
        for (prbs, dbm) in [(1, 35.0), (10, 25.0), (0, 35.0)] {
            assert!((fixed.prb_dbm(120.0, prbs, 132) - dbm).abs() < 1e-9);
        }
        assert_eq!(fixed.most_prbs(120.0, 132), 132);
    }

    proptest! {
        #[test]
        fn nobody_exceeds_the_most(loss in any::<f64>(), prbs in 1..275u16, p0_dbm in -126.0..24.0, alpha in 0.0..1.0) {
            let power = Power { control: PowerControl::ThreeGpp { p0_dbm, alpha }, most_dbm: 23.0 };
            let given = power.most_prbs(loss, prbs);
            prop_assert!((1..=prbs).contains(&given));
            prop_assert!(power.prb_dbm(loss, given, 275) + ten_log(given) <= 23.0 + 1e-9);
            let lena = Power { control: PowerControl::LENA, most_dbm: 24.0 };
            prop_assert!(lena.prb_dbm(loss, prbs, 275) + ten_log(275) <= 23.0 + 1e-9);
        }
    }
}
