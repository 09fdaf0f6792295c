//! Tests of fading: that over 1000 s and more its statistics are those of the theory.

use std::sync::Arc;

use ranpace_phy::LteBandwidth;
use ranpace_units::Time;

use super::{Carrier, DelayProfile, Fading, FadingSpeed, FadingUser, Groups, Rings};

/// How long is looked at, in seconds.
const SECONDS: u64 = 1000;

fn fading(rings: &Arc<Rings>, profile: DelayProfile) -> Fading {
    Fading::new(Arc::clone(rings), profile, &Groups::lte(LteBandwidth::Mhz20.prbs()))
}

/// One user's gain at one group, evenly sampled.
struct Record {
    gains: Vec<f32>,
    per_wavelength: f64,
}

/// A record of 1000 s at this speed, with this many samples per wavelength.
fn record(fading: &Fading, carrier: Carrier, km_h: f64, user: u64, per_wavelength: f64) -> Record {
    let user = FadingUser::new(11, user);
    let speed = FadingSpeed::Fixed(km_h / 3.6);
    let samples = (carrier.doppler_hz(km_h / 3.6) * SECONDS as f64 * per_wavelength) as u64;
    // One block of groups is enough, and quicker.
    let mut block = [0.0; 8];
    let gains = (0..samples).map(|i| {
        let now = Time::from_nanos((SECONDS * 1_000_000_000).checked_mul(i).unwrap() / samples);
        fading.gains(&user, speed.wavelengths(carrier, now, 0.0), &mut block);
        block[3]
    });
    Record { gains: gains.collect(), per_wavelength }
}

impl Record {
    /// The share of samples below this power, and upward crossings of it per wavelength (which is per Doppler period).
    fn below_and_crossings(&self, power: f32) -> [f64; 2] {
        let below = self.gains.iter().filter(|gain| **gain < power).count() as f64;
        let crossings =
            self.gains.windows(2).filter(|pair| pair[0] < power && pair[1] >= power).count() as f64;
        let all = self.gains.len() as f64;
        [below / all, crossings * self.per_wavelength / all]
    }

    /// Rayleigh: the share below a power is 1 - exp(-power), and the power rho^2 is crossed sqrt(2 pi) rho exp(-rho^2)
    /// times per Doppler period (Jakes 1974, section 1.3.4).
    fn is_rayleigh_within_5_percent(&self, name: &str, levels_db: &[f64]) {
        for db in levels_db {
            let power = libm::pow(10.0, db / 10.0);
            let share = 1.0 - libm::exp(-power);
            let rate = (core::f64::consts::TAU * power).sqrt() * libm::exp(-power);
            let [below, crossings] = self.below_and_crossings(power as f32);
            let errors = [below / share - 1.0, crossings / rate - 1.0].map(|error| 100.0 * error);
            println!(
                "{name} at {db} dB: {:+.1} % in the distribution, {:+.1} % in the crossings",
                errors[0], errors[1]
            );
            assert!(errors.iter().all(|error| error.abs() < 5.0), "{name} at {db} dB: {errors:?}");
        }
    }
}

#[test]
fn walkers_under_epa_fade_as_rayleigh_says() {
    // A fade of 20 dB comes about 1500 times, one standard error of the share of time in it is 4 %: this is the deepest
    // level at which 5 % says something in 1000 s at 5.9 Hz. Its length is 0.04 wavelengths: hence the many samples.
    let fading = fading(&Rings::shared(), DelayProfile::Epa);
    let record = record(&fading, Carrier::MHZ_2120, 3.0, 0, 200.0);
    record.is_rayleigh_within_5_percent("EPA, 3 km/h", &[-20.0, -15.0, -10.0, -5.0, 0.0, 3.0, 5.0]);
}

#[test]
fn vehicles_under_every_profile_fade_as_rayleigh_says() {
    // 148 Hz: 35 turns of the rings, sampled five times a millisecond.
    let rings = Rings::shared();
    for profile in [DelayProfile::Eva, DelayProfile::Etu, DelayProfile::Flat] {
        let record = record(&fading(&rings, profile), Carrier::BAND_7, 60.0, 1, 33.0);
        record.is_rayleigh_within_5_percent(&format!("{profile:?}, 60 km/h"), &[-10.0, -5.0, 0.0, 3.0]);
    }
}

#[test]
fn the_autocorrelation_is_j0_up_to_its_second_zero() {
    let rings = Rings::shared();
    // J0's second zero is at 2 pi times 0.8785 wavelengths.
    let wavelengths = (SECONDS as f64 * Carrier::MHZ_2120.doppler_hz(3.0 / 3.6)) as usize;
    for (profile, user) in
        [(DelayProfile::Epa, 0), (DelayProfile::Epa, 1), (DelayProfile::Eva, 2), (DelayProfile::Etu, 3)]
    {
        let fading = fading(&rings, profile);
        let user = FadingUser::new(11, user);
        let at = |sixteenth: usize| {
            let mut block = [[0.0; 2]; 8];
            fading.amplitudes(&user, sixteenth as f64 / 16.0, &mut block);
            block[7].map(f64::from)
        };
        let gains: Vec<[f64; 2]> = (0..16 * wavelengths).map(at).collect();
        let correlation = |lag: usize| {
            let sum: f64 = gains.iter().zip(&gains[lag..]).map(|(a, b)| a[0] * b[0] + a[1] * b[1]).sum();
            sum / (gains.len() - lag) as f64
        };
        let power = correlation(0);
        assert!((power - 1.0).abs() < 0.03, "{profile:?}: {power}");
        let error =
            |lag: usize| correlation(lag) / power - libm::j0(core::f64::consts::TAU * lag as f64 / 16.0);
        let worst = (1..=14).map(|lag| error(lag).abs()).fold(0.0, f64::max);
        println!("{profile:?}: within {worst:.3} of J0, mean power {power:.3}");
        assert!(worst < 0.05, "{profile:?}: {worst}");
    }
}

#[test]
fn groups_are_as_alike_as_their_distance_says() {
    // The correlation of two frequencies is the Fourier transform of the profile: sum of p exp(-2 pi i df tau).
    let rings = Rings::shared();
    for profile in DelayProfile::ALL {
        let fading = fading(&rings, profile);
        let mut products = [[0.0; 2]; 25];
        let samples = 40_000;
        for sample in 0..samples {
            let mut groups = [[0.0; 2]; 25];
            // A hundred users, 400 times each.
            fading.amplitudes(&FadingUser::new(5, sample / 400), (sample % 400) as f64 * 7.3, &mut groups);
            let [[a, b], ..] = groups;
            for (product, [c, d]) in products.iter_mut().zip(groups) {
                *product = [product[0] + f64::from(a * c + b * d), product[1] + f64::from(a * d - b * c)];
            }
        }
        let total: f64 = profile.taps().iter().map(|tap| libm::pow(10.0, tap.power_db / 10.0)).sum();
        for (group, product) in products.into_iter().enumerate() {
            let expected = profile.taps().iter().fold([0.0; 2], |sum, tap| {
                let power = libm::pow(10.0, tap.power_db / 10.0) / total;
                let angle = -core::f64::consts::TAU * group as f64 * 720e3 * tap.delay_ns * 1e-9;
                [sum[0] + power * libm::cos(angle), sum[1] + power * libm::sin(angle)]
            });
            for part in 0..2 {
                let found = product[part] / samples as f64;
                assert!(
                    (found - expected[part]).abs() < 0.03,
                    "{profile:?}, group {group}: {found}, {expected:?}"
                );
            }
        }
    }
}

#[test]
fn users_and_directions_fade_independently() {
    let fading = fading(&Rings::shared(), DelayProfile::Epa);
    let users: Vec<FadingUser> = (0..40).map(|user| FadingUser::new(3, user)).collect();
    let mut sums = [0.0; 3];
    for step in 0..2000 {
        let gains: Vec<f64> = users
            .iter()
            .map(|user| {
                let mut gain = [0.0];
                fading.gains(user, f64::from(step) * 1.7, &mut gain);
                f64::from(gain[0])
            })
            .collect();
        for pair in gains.windows(2) {
            sums[0] += pair[0] * pair[1];
            sums[1] += pair[0];
            sums[2] += 1.0;
        }
    }
    // Powers are exponential with mean and deviation 1; 78 000 pairs, of which about every third is independent.
    let correlation = sums[0] / sums[2] - 1.0;
    assert!(correlation.abs() < 0.05 && (sums[1] / sums[2] - 1.0).abs() < 0.03, "{sums:?}");
}
