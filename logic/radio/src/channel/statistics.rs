//! Long-term statistics of fading, measured and theoretical: level probability, level crossing rate, autocorrelation. Tests and
//! `ranpace validate radio` use them; the cell does not.

use core::f64::consts::TAU;

use super::{Fading, FadingUser};

/// The group that is sampled; any group of the first block will do, and later groups need not be computed.
const GROUP: usize = 3;
/// Lags of an autocorrelation per wavelength.
const LAGS: usize = 16;

/// One user's gain at one group, sampled evenly along its distance.
#[derive(Clone, Debug)]
pub struct GainRecord {
    gains: Vec<f32>,
    per_wavelength: f64,
}

impl GainRecord {
    /// A record over `wavelengths` with `per_wavelength` samples in each. Deep fades are short: one of 20 dB lasts 0.04
    /// wavelengths. If a band has fewer than four groups, all samples are 0.
    pub fn new(fading: &Fading, user: &FadingUser, wavelengths: f64, per_wavelength: f64) -> Self {
        let samples = (wavelengths * per_wavelength) as u64;
        let mut block = [0.0; GROUP + 1];
        let gains = (0..samples).map(|sample| {
            fading.gains(user, sample as f64 / per_wavelength, &mut block);
            block[GROUP]
        });
        Self { gains: gains.collect(), per_wavelength }
    }

    /// The share of samples below this power (a ratio; the mean is 1).
    pub fn below(&self, power: f64) -> f64 {
        let below = self.gains.iter().filter(|gain| f64::from(**gain) < power).count();
        below as f64 / self.gains.len() as f64
    }

    /// Returns how often the gain rises through this power, per wavelength, which is per period of the Doppler frequency.
    pub fn crossings(&self, power: f64) -> f64 {
        let rises = |pair: &&[f32]| f64::from(pair[0]) < power && f64::from(pair[1]) >= power;
        let crossings = self.gains.windows(2).filter(rises).count();
        crossings as f64 * self.per_wavelength / self.gains.len() as f64
    }
}

/// The share of time that a Rayleigh process of mean power 1 spends below a power: 1 - exp(-power).
pub fn rayleigh_below(power: f64) -> f64 {
    1.0 - libm::exp(-power)
}

/// Returns how often a Rayleigh process rises through the power rho^2 per period of the Doppler frequency: sqrt(2 pi) rho exp(-rho^2);
/// Jakes 1974, section 1.3.4.
pub fn rayleigh_crossings(power: f64) -> f64 {
    (TAU * power).sqrt() * libm::exp(-power)
}

/// Autocorrelation of one user's fading over distance.
#[derive(Clone, Debug)]
pub struct Autocorrelation {
    /// Real part of the mean product of amplitudes (one conjugated), by lag in sixteenths of a wavelength.
    products: Vec<f64>,
}

impl Autocorrelation {
    /// Measured over `wavelengths`, for lags up to the second zero of J0.
    pub fn new(fading: &Fading, user: &FadingUser, wavelengths: f64) -> Self {
        // J0's second zero is at 5.5201, which is 0.8786 wavelengths.
        let lags = (0.8786 * LAGS as f64) as usize;
        let amplitude = |sample: u64| {
            let mut block = [[0.0; 2]; GROUP + 1];
            fading.amplitudes(user, sample as f64 / LAGS as f64, &mut block);
            block[GROUP].map(f64::from)
        };
        let samples = (wavelengths * LAGS as f64) as u64;
        let gains: Vec<[f64; 2]> = (0..samples).map(amplitude).collect();
        let product = |lag: usize| {
            let later = gains.get(lag..).unwrap_or_default();
            let sum: f64 = gains.iter().zip(later).map(|(a, b)| a[0] * b[0] + a[1] * b[1]).sum();
            sum / later.len() as f64
        };
        Self { products: (0..=lags).map(product).collect() }
    }

    /// Mean power, which should be 1.
    pub fn power(&self) -> f64 {
        self.products[0] // lag 0 always exists
    }

    /// The largest difference from J0(2 pi d), the autocorrelation under Jakes's spectrum at a distance of d wavelengths.
    pub fn worst_difference_from_j0(&self) -> f64 {
        let difference = |(lag, product): (usize, &f64)| {
            (product / self.power() - libm::j0(TAU * lag as f64 / LAGS as f64)).abs()
        };
        self.products.iter().enumerate().map(difference).fold(0.0, f64::max)
    }
}
