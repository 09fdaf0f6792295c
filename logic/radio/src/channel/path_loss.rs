//! Path loss: the average attenuation over a distance.

use super::Position;

/// Speed of light in m/s, as TR 38.901 Table 7.4.1-1 rounds it for the breakpoint.
const ROUNDED_LIGHT: f64 = 3.0e8;
/// Speed of light in m/s.
const LIGHT: f64 = 299_792_458.0;
/// Shorter distances in metres count as this, since no formula here is valid there. Ours.
const NEAREST_M: f64 = 1.0;

/// A carrier's frequency: 1 MHz to 1 THz.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Carrier(f64);

/// The frequency is out of range for a radio carrier.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("expected a carrier from 1 MHz to 1 THz, found {found_hz} Hz")]
pub struct NoSuchCarrier {
    /// The frequency found, in Hz.
    pub found_hz: f64,
}

impl Carrier {
    /// Downlink of the experiments of 004: 2120 MHz.
    pub const MHZ_2120: Self = Self(2.12e9);
    /// Uplink of the experiments of 004: 1930 MHz.
    pub const MHZ_1930: Self = Self(1.93e9);
    /// Downlink of LTE's band 7, which 002 uses: 2.66 GHz (the band is 2620 to 2690 MHz; TS 36.101 Table 5.5-1).
    pub const BAND_7: Self = Self(2.66e9);
    /// The millimetre waves of 000: 28 GHz.
    pub const GHZ_28: Self = Self(28.0e9);

    /// The carrier at `hz` Hz.
    pub fn from_hz(hz: f64) -> Result<Self, NoSuchCarrier> {
        if (1e6..=1e12).contains(&hz) { Ok(Self(hz)) } else { Err(NoSuchCarrier { found_hz: hz }) }
    }
    /// Frequency in Hz.
    pub const fn hz(self) -> f64 {
        self.0
    }
    /// Wavelength in metres.
    pub fn wavelength_m(self) -> f64 {
        LIGHT / self.0
    }
    /// Largest Doppler shift in Hz at this speed in m/s: v f / c.
    pub fn doppler_hz(self, speed_m_s: f64) -> f64 {
        speed_m_s / self.wavelength_m()
    }
    fn log10_mhz(self) -> f64 {
        libm::log10(self.0 / 1e6)
    }
    fn log10_ghz(self) -> f64 {
        libm::log10(self.0 / 1e9)
    }
}

/// The geometry of a path, as the formulas need it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// Distance on the ground in metres; at least 1.
    ground_m: f64,
    /// Distance through the air in metres; at least 1.
    air_m: f64,
    /// Height of the base station in metres.
    base_m: f64,
    /// Height of the user in metres.
    user_m: f64,
}

impl Path {
    /// The path from a base station to a user. Distances below a metre count as a metre (ours).
    pub fn between(base: Position, user: Position) -> Self {
        Self {
            ground_m: base.ground_distance_m(user).max(NEAREST_M),
            air_m: base.distance_m(user).max(NEAREST_M),
            base_m: base.z,
            user_m: user.z,
        }
    }
    /// Distance on the ground in metres.
    pub const fn ground_m(self) -> f64 {
        self.ground_m
    }
    /// Distance through the air in metres.
    pub const fn air_m(self) -> f64 {
        self.air_m
    }
}

/// A path loss model. [`Self::loss_db`] is never negative and always finite.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum PathLoss {
    /// Free space: 20 log10(4 pi d / lambda).
    Friis,
    /// `at_1_m_db` + 10 `exponent` log10(d / 1 m); ns-3's defaults are 3 and 46.6777 dB (Friis at 5.15 GHz).
    LogDistance {
        /// Path loss exponent; 2 is free space.
        exponent: f64,
        /// Loss in dB at 1 m.
        at_1_m_db: f64,
    },
    /// COST 231 Hata: 46.3 + 33.9 log10 f - 13.82 log10 h_b - a(h_m) + (44.9 - 6.55 log10 h_b) log10 d_km + X, where
    /// a(h_m) = 0.8 + (1.11 log10 f - 0.7) h_m - 1.56 log10 f and f is in MHz. The spec's ns-3 form.
    Cost231 {
        /// Height of the base station in metres: a parameter, not the height of its position, as in ns-3.
        base_m: f64,
        /// Height of the user in metres, likewise.
        user_m: f64,
        /// X in dB: 0, 3 in the centre of a city, 10 in ns-3, which calls this constant shadowing.
        extra_db: f64,
    },
    /// Urban micro, street canyon; TR 38.901 Table 7.4.1-1.
    UmiStreetCanyon,
}

impl PathLoss {
    /// COST 231 Hata as in ns-3: heights of 50 m and 3 m whatever the positions, and 10 dB more.
    pub const COST231_NS3: Self = Self::Cost231 { base_m: 50.0, user_m: 3.0, extra_db: 10.0 };

    /// Loss in dB. `clear` is line of sight, which only [`Self::UmiStreetCanyon`] considers. Negative losses (the formula does
    /// not hold) and NaN (absurd parameters) count as 0 dB (ours).
    pub fn loss_db(self, path: Path, carrier: Carrier, clear: bool) -> f64 {
        let loss = match self {
            Self::Friis => {
                20.0 * libm::log10(4.0 * core::f64::consts::PI * path.air_m / carrier.wavelength_m())
            }
            Self::LogDistance { exponent, at_1_m_db } => {
                at_1_m_db + 10.0 * exponent * libm::log10(path.air_m)
            }
            Self::Cost231 { base_m, user_m, extra_db } => {
                let (f, h) = (carrier.log10_mhz(), libm::log10(base_m));
                let user = 0.8 + (1.11 * f - 0.7) * user_m - 1.56 * f;
                let km = libm::log10(path.air_m / 1000.0);
                46.3 + 33.9 * f - 13.82 * h - user + (44.9 - 6.55 * h) * km + extra_db
            }
            Self::UmiStreetCanyon => {
                let direct = umi_clear_db(path, carrier);
                if clear { direct } else { direct.max(umi_blocked_db(path, carrier)) }
            }
        };
        // These sums of logarithms never come near a million, but parameters may be anything.
        if loss > 0.0 { loss.min(1e6) } else { 0.0 }
    }
}

/// Breakpoint distance on the ground in metres, beyond which the ground reflection matters: 4 (h_b - 1)(h_m - 1) f / c;
/// TR 38.901 Table 7.4.1-1, note 1. Zero if either height is not above 1 m.
pub fn umi_breakpoint_m(base_m: f64, user_m: f64, carrier: Carrier) -> f64 {
    let above = |height: f64| (height - 1.0).max(0.0);
    4.0 * above(base_m) * above(user_m) * carrier.hz() / ROUNDED_LIGHT
}

/// PL1 and PL2 of TR 38.901 Table 7.4.1-1, UMi LOS.
fn umi_clear_db(path: Path, carrier: Carrier) -> f64 {
    let near = 32.4 + 20.0 * carrier.log10_ghz();
    let distance = libm::log10(path.air_m);
    let breakpoint = umi_breakpoint_m(path.base_m, path.user_m, carrier);
    // Without a breakpoint the second formula does not apply.
    if path.ground_m <= breakpoint || breakpoint <= 0.0 {
        return near + 21.0 * distance;
    }
    let height = path.base_m - path.user_m;
    near + 40.0 * distance - 9.5 * libm::log10(breakpoint * breakpoint + height * height)
}

/// PL' of TR 38.901 Table 7.4.1-1, UMi NLOS.
fn umi_blocked_db(path: Path, carrier: Carrier) -> f64 {
    35.3 * libm::log10(path.air_m) + 22.4 + 21.3 * carrier.log10_ghz() - 0.3 * (path.user_m - 1.5)
}

/// Probability of line of sight in a street canyon at this distance on the ground; TR 38.901 Table 7.4.2-1.
pub fn umi_clear_probability(ground_m: f64) -> f64 {
    if ground_m > 18.0 {
        let near = 18.0 / ground_m;
        near + libm::exp(-ground_m / 36.0) * (1.0 - near)
    } else {
        1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn path(metres: f64) -> Path {
        Path::between(Position::new(0.0, 0.0, 10.0), Position::new(metres, 0.0, 1.5))
    }

    #[test]
    fn the_losses_of_test_p_4() {
        for (metres, clear, expected) in [(10.0, true, 84.8), (100.0, true, 103.4), (100.0, false, 123.9)] {
            let loss = PathLoss::UmiStreetCanyon.loss_db(path(metres), Carrier::GHZ_28, clear);
            assert!((loss - expected).abs() < 0.05, "{metres} m: {loss}");
        }
    }

    #[test]
    fn the_breakpoint_is_at_1680_and_at_120_m_and_the_loss_has_no_step_there() {
        for (carrier, expected) in [(Carrier::GHZ_28, 1680.0), (Carrier(2e9), 120.0)] {
            let at = umi_breakpoint_m(10.0, 1.5, carrier);
            assert!((at - expected).abs() < 1e-6, "{at}");
            let loss = |metres| PathLoss::UmiStreetCanyon.loss_db(path(metres), carrier, true);
            assert!((loss(at + 1e-3) - loss(at)).abs() < 0.05);
            // 40 dB per decade beyond it.
            assert!((loss(at * 100.0) - loss(at * 10.0) - 40.0).abs() < 0.05);
        }
    }

    #[test]
    fn friis_and_log_distance_agree_where_they_are_the_same() {
        // 2.66 GHz over 100 m: 20 log10(4 pi 100 m / 0.1127 m) is 80.95 dB.
        let friis = |metres| PathLoss::Friis.loss_db(path(metres), Carrier::BAND_7, true);
        let far = Path::between(Position::default(), Position::new(100.0, 0.0, 0.0));
        assert!((PathLoss::Friis.loss_db(far, Carrier::BAND_7, true) - 80.95).abs() < 0.01);
        let at_1_m_db = 20.0 * libm::log10(4.0 * core::f64::consts::PI / Carrier::BAND_7.wavelength_m());
        let same = PathLoss::LogDistance { exponent: 2.0, at_1_m_db };
        for metres in [0.0, 1.0, 300.0, 5e4] {
            assert!((same.loss_db(path(metres), Carrier::BAND_7, true) - friis(metres)).abs() < 1e-9);
        }
    }

    #[test]
    fn losses_of_cost_231() {
        // The formula by hand at 2120 MHz and 100 m, heights 50 and 3 m, X = 10: 107.21 dB; 97.21 without X.
        let at = |model: PathLoss, metres| {
            let path = Path::between(Position::default(), Position::new(metres, 0.0, 0.0));
            model.loss_db(path, Carrier::MHZ_2120, true)
        };
        let textbook = PathLoss::Cost231 { base_m: 50.0, user_m: 3.0, extra_db: 0.0 };
        assert!((at(PathLoss::COST231_NS3, 100.0) - 107.23).abs() < 0.05);
        assert!((at(PathLoss::COST231_NS3, 100.0) - at(textbook, 100.0) - 10.0).abs() < 1e-9);
        // (44.9 - 6.55 log10 50) per decade.
        assert!((at(textbook, 1000.0) - at(textbook, 100.0) - 33.772).abs() < 1e-3);
    }

    #[test]
    fn near_is_clear_and_far_is_not() {
        for (metres, expected) in [(0.0, 1.0), (18.0, 1.0), (36.0, 0.5 + 0.5 * 0.367_879), (1e6, 1.8e-5)] {
            assert!((umi_clear_probability(metres) - expected).abs() < 1e-6, "{metres} m");
        }
    }

    #[test]
    fn a_doppler_shift_is_that_of_the_specification() {
        for (carrier, km_h, hz) in
            [(Carrier::BAND_7, 3.0, 7.4), (Carrier::BAND_7, 60.0, 148.0), (Carrier::MHZ_2120, 3.0, 5.9)]
        {
            assert!((carrier.doppler_hz(km_h / 3.6) - hz).abs() < 0.15);
        }
        assert!(Carrier::from_hz(0.0).is_err() && Carrier::from_hz(f64::NAN).is_err());
    }

    proptest! {
        #[test]
        fn a_loss_is_finite_and_grows_with_the_distance(
            metres in 0.0..1e7, more in 0.0..1e4, hz in 1e6..1e12, z in -10.0..2000.0, clear: bool
        ) {
            let carrier = Carrier::from_hz(hz).unwrap();
            let base = Position::new(0.0, 0.0, z);
            let to = |metres| Path::between(base, Position::new(metres, 0.0, 1.5));
            let models = [PathLoss::Friis, PathLoss::COST231_NS3, PathLoss::LogDistance { exponent: 3.0, at_1_m_db: 40.0 }];
            for model in models {
                let (near, far) = (model.loss_db(to(metres), carrier, clear), model.loss_db(to(metres + more), carrier, clear));
                prop_assert!(near.is_finite() && near >= 0.0 && far >= near, "{model:?}: {near}, {far}");
            }
            let umi = PathLoss::UmiStreetCanyon.loss_db(to(metres), carrier, clear);
            prop_assert!(umi.is_finite() && umi >= 0.0);
        }

        #[test]
        fn absurd_parameters_give_a_number(a in any::<f64>(), b in any::<f64>(), c in any::<f64>(), x in any::<f64>()) {
            let path = Path::between(Position::new(x, a, b), Position::new(c, 0.0, x));
            for model in [
                PathLoss::Cost231 { base_m: a, user_m: b, extra_db: c },
                PathLoss::LogDistance { exponent: a, at_1_m_db: b },
                PathLoss::UmiStreetCanyon,
                PathLoss::Friis,
            ] {
                let loss = model.loss_db(path, Carrier::GHZ_28, x > 0.0);
                prop_assert!(loss.is_finite() && loss >= 0.0);
            }
        }
    }
}
