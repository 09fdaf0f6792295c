//! Shadowing, and the flicker of millimetre waves: log-normal functions of place and time.
//!
//! No state is kept between looks: the value of a stretch of road, or of a millisecond, is drawn from the seed and its
//! number whenever it is queried.

use ranpace_units::{Span, Time};

use super::random::{self, Purpose};

/// Log-normal shadowing, constant on each stretch of the distance travelled, and drawn anew for the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shadowing {
    /// Standard deviation in dB with line of sight.
    pub clear_db: f64,
    /// Standard deviation in dB without line of sight.
    pub blocked_db: f64,
    /// Length of a stretch in metres.
    pub stretch_m: f64,
}

/// Distance travelled in metres after which line of sight is drawn anew where it is random: TR 38.901
/// Table 7.6.3.1-2, "LOS/NLOS state" of UMi, as the length of a stretch. Ours.
const SIGHT_STRETCH_M: f64 = 50.0;

impl Shadowing {
    /// Street canyon: 4 dB with line of sight, 7.82 dB without (TR 38.901 Table 7.4.1-1), every 10 m (the spec's choice).
    pub const UMI: Self = Self { clear_db: 4.0, blocked_db: 7.82, stretch_m: 10.0 };

    /// Loss in dB, which may be negative, after travelling `travelled_m` metres. The two line-of-sight states have independent draws.
    pub fn loss_db(&self, seed: u64, travelled_m: f64, clear: bool) -> f64 {
        let deviation = if clear { self.clear_db } else { self.blocked_db };
        let index = 2 * stretch(travelled_m, self.stretch_m) + u64::from(clear);
        let loss = deviation * random::normal(&mut random::at(seed, Purpose::Shadow, index));
        if loss.is_finite() { loss } else { 0.0 }
    }
}

/// Returns whether a user has line of sight after travelling `travelled_m` metres, given its probability.
pub(crate) fn in_sight(seed: u64, travelled_m: f64, probability: f64) -> bool {
    let index = stretch(travelled_m, SIGHT_STRETCH_M);
    random::unit(&mut random::at(seed, Purpose::Sight, index)) < probability
}

/// The number of the stretch; 0 if its length is not positive. The cast saturates and maps NaN to 0.
fn stretch(travelled_m: f64, stretch_m: f64) -> u64 {
    if stretch_m > 0.0 { ((travelled_m / stretch_m) as u64).min(u64::MAX / 4) } else { 0 }
}

/// Fast variation of millimetre waves: log-normal, equal over the whole band, drawn anew in each interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flicker {
    /// Standard deviation in dB.
    pub deviation_db: f64,
    /// The time for which a value holds.
    pub every: Span,
}

impl Flicker {
    /// 2 dB every millisecond: the spec's choice.
    pub const MMWAVE: Self = Self { deviation_db: 2.0, every: Span::from_millis(1) };

    /// Gain as a power ratio at this time; its median is 1.
    pub fn gain(&self, seed: u64, now: Time) -> f64 {
        let index = now.as_nanos().checked_div(self.every.as_nanos()).unwrap_or(0);
        let db = self.deviation_db * random::normal(&mut random::at(seed, Purpose::Flicker, index));
        // Clamped at 100 dB, where nothing changes any more, to avoid overflow.
        if db.is_finite() { libm::pow(10.0, db.clamp(-100.0, 100.0) / 10.0) } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn deviations_are_those_of_the_specification() {
        for (clear, deviation) in [(true, 4.0), (false, 7.82)] {
            let losses = (0..20_000).map(|i| Shadowing::UMI.loss_db(5, 10.0 * f64::from(i) + 5.0, clear));
            let (sum, squares) = losses.fold((0.0, 0.0), |(s, q), db| (s + db, q + db * db));
            // Five standard errors: of the mean 5 / sqrt(20 000) of the deviation, of the deviation itself 0.7 of that.
            assert!((sum / 20_000.0_f64).abs() < 0.036 * deviation);
            assert!(((squares / 20_000.0_f64).sqrt() / deviation - 1.0).abs() < 0.025);
        }
    }

    #[test]
    fn a_stretch_has_one_value_whenever_it_is_asked_for() {
        let at = |metres| Shadowing::UMI.loss_db(7, metres, false);
        assert_eq!(at(20.0), at(29.9));
        assert_ne!(at(29.9), at(30.0));
        assert_ne!(at(25.0), Shadowing::UMI.loss_db(8, 25.0, false));
        assert_ne!(at(25.0), Shadowing::UMI.loss_db(7, 25.0, true));
    }

    #[test]
    fn flicker_has_2_db_and_holds_for_a_millisecond() {
        let db = |us| 10.0 * libm::log10(Flicker::MMWAVE.gain(3, Time::ZERO + Span::from_micros(us)));
        assert_eq!(db(5_000), db(5_999));
        assert_ne!(db(5_999), db(6_000));
        let squares: f64 = (0..20_000).map(|ms| db(ms * 1000) * db(ms * 1000)).sum();
        assert!(((squares / 20_000.0).sqrt() / 2.0 - 1.0).abs() < 0.025);
    }

    #[test]
    fn chance_of_sight_is_the_probability() {
        let clear = (0..20_000).filter(|&i| in_sight(9, 50.0 * f64::from(i), 0.3)).count();
        assert!((clear as f64 / 20_000.0 - 0.3).abs() < 0.017, "{clear}");
    }

    proptest! {
        #[test]
        fn absurd_inputs_give_numbers(a in any::<f64>(), b in any::<f64>(), c in any::<f64>(), ns in any::<u64>()) {
            let shadowing = Shadowing { clear_db: a, blocked_db: b, stretch_m: c };
            prop_assert!(shadowing.loss_db(ns, b, a > b).is_finite());
            in_sight(ns, a, b);
            let flicker = Flicker { deviation_db: a, every: Span::from_nanos(ns / 3) };
            let gain = flicker.gain(ns, Time::from_nanos(ns));
            prop_assert!(gain.is_finite() && gain >= 0.0);
        }
    }
}
