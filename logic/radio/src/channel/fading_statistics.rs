//! Tests that the statistics of fading over 1000 s and more match theory.

use std::sync::Arc;

use ranpace_phy::LteBandwidth;

use super::statistics::{Autocorrelation, GainRecord, rayleigh_below, rayleigh_crossings};
use super::{Carrier, DelayProfile, Fading, FadingUser, Groups, Rings};

fn fading(rings: &Arc<Rings>, profile: DelayProfile) -> Fading {
    Fading::new(Arc::clone(rings), profile, &Groups::lte(LteBandwidth::Mhz20.prbs()))
}

/// Distance in wavelengths covered in 1000 s at this speed.
fn wavelengths(carrier: Carrier, km_h: f64) -> f64 {
    1000.0 * carrier.doppler_hz(km_h / 3.6)
}

fn is_rayleigh_within_5_percent(record: &GainRecord, name: &str, levels_db: &[f64]) {
    for db in levels_db {
        let power = libm::pow(10.0, db / 10.0);
        let ratios = [
            record.below(power) / rayleigh_below(power),
            record.crossings(power) / rayleigh_crossings(power),
        ];
        let errors = ratios.map(|ratio| 100.0 * (ratio - 1.0));
        println!(
            "{name} at {db} dB: {:+.1} % in the distribution, {:+.1} % in the crossings",
            errors[0], errors[1]
        );
        assert!(errors.iter().all(|error| error.abs() < 5.0), "{name} at {db} dB: {errors:?}");
    }
}

#[test]
fn walkers_under_epa_fade_as_rayleigh_says() {
    // About 1500 fades of 20 dB occur, and the standard error of the share of time in them is 4 %: this is the deepest level at
    // which 5 % is meaningful in 1000 s at 5.9 Hz. Such a fade lasts 0.04 wavelengths, hence the many samples.
    let fading = fading(&Rings::shared(), DelayProfile::Epa);
    let way = wavelengths(Carrier::MHZ_2120, 3.0);
    let record = GainRecord::new(&fading, &FadingUser::new(11, 0), way, 200.0);
    is_rayleigh_within_5_percent(&record, "EPA, 3 km/h", &[-20.0, -15.0, -10.0, -5.0, 0.0, 3.0, 5.0]);
}

#[test]
fn vehicles_under_every_profile_fade_as_rayleigh_says() {
    // 148 Hz: 35 turns of the rings, sampled five times a millisecond.
    let rings = Rings::shared();
    let way = wavelengths(Carrier::BAND_7, 60.0);
    for profile in [DelayProfile::Eva, DelayProfile::Etu, DelayProfile::Flat] {
        let record = GainRecord::new(&fading(&rings, profile), &FadingUser::new(11, 1), way, 33.0);
        is_rayleigh_within_5_percent(&record, &format!("{profile:?}, 60 km/h"), &[-10.0, -5.0, 0.0, 3.0]);
    }
}

#[test]
fn the_autocorrelation_is_j0_up_to_its_second_zero() {
    let rings = Rings::shared();
    let way = wavelengths(Carrier::MHZ_2120, 3.0);
    for (profile, user) in
        [(DelayProfile::Epa, 0), (DelayProfile::Epa, 1), (DelayProfile::Eva, 2), (DelayProfile::Etu, 3)]
    {
        let found = Autocorrelation::new(&fading(&rings, profile), &FadingUser::new(11, user), way);
        let (power, worst) = (found.power(), found.worst_difference_from_j0());
        println!("{profile:?}: within {worst:.3} of J0, mean power {power:.3}");
        assert!((power - 1.0).abs() < 0.03, "{profile:?}: {power}");
        assert!(worst < 0.05, "{profile:?}: {worst}");
    }
}

#[test]
fn groups_are_as_alike_as_their_distance_says() {
    // The correlation between two frequencies is the Fourier transform of the profile: sum of p exp(-2 pi i df tau).
    let rings = Rings::shared();
    for profile in DelayProfile::ALL {
        let fading = fading(&rings, profile);
        let mut products = [[0.0; 2]; 25];
        let samples = 40_000;
        for sample in 0..samples {
            let mut groups = [[0.0; 2]; 25];
            // A hundred users with 400 samples each.
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
    // Powers are exponential with mean and standard deviation 1; 78 000 pairs, of which about every third is independent.
    let correlation = sums[0] / sums[2] - 1.0;
    assert!(correlation.abs() < 0.05 && (sums[1] / sums[2] - 1.0).abs() < 0.03, "{sums:?}");
}
