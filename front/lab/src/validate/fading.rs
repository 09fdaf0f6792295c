//! Fading over 1000 s: Rayleigh's distribution and crossings, and Jakes's autocorrelation.

use ranpace_phy::LteBandwidth;
use ranpace_radio::channel::statistics::{Autocorrelation, GainRecord, rayleigh_below, rayleigh_crossings};
use ranpace_radio::channel::{Carrier, DelayProfile, Fading, FadingUser, Groups, Rings};

use super::{Check, Row};

pub(super) const CHECKS: &[Check] = &[
    Check { name: "EPA at 3 km/h", rows: || walker(DelayProfile::Epa) },
    Check { name: "EVA at 60 km/h", rows: || vehicle(DelayProfile::Eva) },
    Check { name: "ETU at 60 km/h", rows: || vehicle(DelayProfile::Etu) },
    Check { name: "flat fading at 60 km/h", rows: || vehicle(DelayProfile::Flat) },
    Check { name: "autocorrelation of fading", rows: autocorrelation },
];

/// The seed of all users here.
const SEED: u64 = 11;

fn fading(profile: DelayProfile) -> Fading {
    Fading::new(Rings::shared(), profile, &Groups::lte(LteBandwidth::Mhz20.prbs()))
}

/// Distance travelled in 1000 s at this speed, in wavelengths.
fn wavelengths(carrier: Carrier, km_h: f64) -> f64 {
    1000.0 * carrier.doppler_hz(km_h / 3.6)
}

const fn name(profile: DelayProfile) -> &'static str {
    match profile {
        DelayProfile::Flat => "flat",
        DelayProfile::Epa => "EPA",
        DelayProfile::Eva => "EVA",
        DelayProfile::Etu => "ETU",
    }
}

/// 5.9 Hz. A fade of 20 dB occurs about 1500 times and lasts 0.04 wavelengths: it is the deepest for which 5 % is meaningful in
/// 1000 s, and needs 200 samples per wavelength.
fn walker(profile: DelayProfile) -> Vec<Row> {
    let way = wavelengths(Carrier::MHZ_2120, 3.0);
    let record = GainRecord::new(&fading(profile), &FadingUser::new(SEED, 0), way, 200.0);
    rayleigh(&record, &format!("{}, 3 km/h", name(profile)), &[-20.0, -15.0, -10.0, -5.0, 0.0, 3.0, 5.0])
}

/// 148 Hz, sampled five times per millisecond.
fn vehicle(profile: DelayProfile) -> Vec<Row> {
    let way = wavelengths(Carrier::BAND_7, 60.0);
    let record = GainRecord::new(&fading(profile), &FadingUser::new(SEED, 1), way, 33.0);
    rayleigh(&record, &format!("{}, 60 km/h", name(profile)), &[-10.0, -5.0, 0.0, 3.0])
}

fn rayleigh(record: &GainRecord, name: &str, levels_db: &[f64]) -> Vec<Row> {
    let both = |db: &f64| {
        let power = libm::pow(10.0, db / 10.0);
        let (share, below) = (100.0 * rayleigh_below(power), 100.0 * record.below(power));
        let (rate, crossings) = (rayleigh_crossings(power), record.crossings(power));
        [
            Row::within_percent(format!("{name}: time below {db} dB, %"), share, below, 5.0),
            Row::within_percent(
                format!("{name}: crossings of {db} dB, per Doppler period"),
                rate,
                crossings,
                5.0,
            ),
        ]
    };
    levels_db.iter().flat_map(both).collect()
}

fn autocorrelation() -> Vec<Row> {
    let way = wavelengths(Carrier::MHZ_2120, 3.0);
    let users =
        [(DelayProfile::Epa, 0), (DelayProfile::Epa, 1), (DelayProfile::Eva, 2), (DelayProfile::Etu, 3)];
    let row = |(profile, user)| {
        let found = Autocorrelation::new(&fading(profile), &FadingUser::new(SEED, user), way);
        let check = format!("{}, user {user}: autocorrelation's largest distance from J0", name(profile));
        Row::within(check, 0.0, found.worst_difference_from_j0(), 0.05)
    };
    users.map(row).into()
}
