//! Long rings of samples of Rayleigh fading with Jakes's spectrum, which the taps of all users share.
//!
//! There are nine rings, each 4096 wavelengths long (Doppler periods, at a constant speed). A ring is the inverse Fourier
//! transform of spectral lines. The lines of all rings form one comb of 8193 lines over Jakes's spectrum, assigned to the rings in
//! turn: each ring has about 910 lines, each with the power of the spectrum over its width and a random phase. So the
//! autocorrelation on a ring is J0, its mean power is 1 whatever the phases, and taps that read different rings are uncorrelated
//! over a turn at any lag: the mean power of their sum does not drift, as it would by several per cent for random processes of
//! 1000 s.
//!
//! A tap reads one ring from a random position, and its phase rotates slowly: by up to 0.3 of a full circle per turn of the
//! ring, less than a third of the spacing of two lines. Its power repeats after 4096 wavelengths (462 m at
//! 2.66 GHz, 28 s at 60 km/h), but that of the sum of taps does not, since their relative phases differ. Samples, 8 per
//! wavelength, are interpolated linearly; the mean power that this loses (5 % on average, up to 7 % midway) is compensated.
//!
//! Source: R. H. Clarke, "A Statistical Theory of Mobile-Radio Reception", 1968, and W. C. Jakes, "Microwave Mobile
//! Communications", 1974, for the spectrum; the rings are ours. The transform is implemented here, since libraries choose
//! their arithmetic by processor, and results must be bit-identical on every machine.

use std::sync::Arc;

use super::random::{self, Purpose, Random};

/// Number of rings: one per tap of the longest profile.
pub(crate) const RINGS: usize = 9;
/// Length of a ring in wavelengths.
const WAVELENGTHS: usize = 4096;
/// Samples of a ring, as a power of two: 8 per wavelength.
const LOG_SAMPLES: u32 = 15;
const SAMPLES: usize = 1 << LOG_SAMPLES;
/// Steps of the circle of phases, as a power of two.
const LOG_PHASES: u32 = 8;
const PHASES: usize = 1 << LOG_PHASES;
/// Seed of the phases of the lines. It is the same in every run, so that the statistics hold in every run; the scenario's seed
/// determines where users and taps read the rings. It must not change, since results depend on it.
const SEED: u64 = 1;
/// 2^32, the steps of a turn (or, squared, 2^64).
const TURN_32: f64 = 4_294_967_296.0;

/// A complex number: real and imaginary part.
pub(crate) type Complex = [f32; 2];

/// The rings, 2.3 MiB. Create them once and share them: [`Rings::shared`].
#[derive(Debug)]
pub struct Rings {
    /// Samples, with the first repeated at the end.
    rings: [Box<[Complex; SAMPLES + 1]>; RINGS],
    /// The circle of phases, with the first repeated at the end.
    circle: Box<[Complex; PHASES + 1]>,
}

/// How one tap of one user reads its ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Start on the ring, in units of 2^-64 of a turn.
    start: u64,
    /// Phase there, in units of 2^-64 of the circle.
    phase: u64,
    /// Phase rotation per turn of the ring, in units of 2^-32 of the circle.
    twist: i32,
    /// Number of the ring.
    ring: u32,
}

/// Distance travelled, in units of 2^-32 of a turn of the rings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingPosition(u64);

impl RingPosition {
    /// After this many wavelengths, at most 10^12; negative values and NaN count as 0.
    #[inline]
    pub(crate) fn of(wavelengths: f64) -> Self {
        let counted = if wavelengths > 0.0 { wavelengths.min(1e12) } else { 0.0 };
        Self((counted * (TURN_32 / WAVELENGTHS as f64)) as u64)
    }
}

impl Reading {
    /// A random position on this ring.
    pub(crate) fn draw(ring: usize, random: &mut Random) -> Self {
        let share = |random: &mut Random| (random::unit(random) * (TURN_32 * TURN_32)) as u64;
        Self {
            start: share(random),
            phase: share(random),
            twist: (random::between(random, -0.3, 0.3) * TURN_32) as i32,
            ring: (ring % RINGS) as u32,
        }
    }
}

impl Rings {
    /// Computes the rings, which takes some milliseconds.
    pub fn shared() -> Arc<Self> {
        let (turns, random) = (turns(), &mut random::at(SEED, Purpose::Rings, 0));
        let rings = core::array::from_fn(|number| ring(number, &turns, random));
        let mut circle = Box::new([[0.0; 2]; PHASES + 1]);
        for (to, from) in
            circle.iter_mut().zip(turns.chunks_exact(SAMPLES / PHASES).map(|chunk| chunk[0]).cycle())
        {
            *to = [from[0] as f32, from[1] as f32];
        }
        Arc::new(Self { rings, circle })
    }

    /// The gains of taps, with mean power 1, at this distance, for as many as both slices hold.
    #[inline(always)]
    pub(crate) fn taps(&self, readings: &[Reading], way: RingPosition, taps: &mut [Complex]) {
        for (reading, tap) in readings.iter().zip(taps) {
            // The index is below RINGS, by `draw`.
            let ring = &self.rings[reading.ring as usize];
            let [a, b] = read::<LOG_SAMPLES, _>(ring, reading.start.wrapping_add(way.0 << 32));
            let phase = reading.phase.wrapping_add((i64::from(reading.twist) as u64).wrapping_mul(way.0));
            let [cos, sin] = read::<LOG_PHASES, _>(&self.circle, phase);
            *tap = [a * cos - b * sin, a * sin + b * cos];
        }
    }
}

/// Distance between samples in wavelengths, and the largest `ahead` of [`Rings::deviation`].
pub(crate) const STEP: f64 = WAVELENGTHS as f64 / SAMPLES as f64;

impl Rings {
    /// Bound on how far a sum of taps with these amplitudes deviates, over the next `ahead` wavelengths (up to [`STEP`]), from the
    /// straight line between its values at both ends.
    pub(crate) fn deviation(
        &self,
        readings: &[Reading],
        way: RingPosition,
        ahead: f64,
        amplitudes: &[f32],
    ) -> f64 {
        /// Allowance for the taps' own rotation: 0.3 of the circle per turn of the ring, times the largest possible sum. Ours.
        const TWIST: f64 = 0.02;
        let mut deviation = TWIST * ahead;
        for (reading, amplitude) in readings.iter().zip(amplitudes) {
            let ring = &self.rings[reading.ring as usize];
            let share = reading.start.wrapping_add(way.0 << 32);
            let index = (share >> (64 - LOG_SAMPLES)) as usize;
            let before = STEP * (1.0 - (share << LOG_SAMPLES) as f64 / (TURN_32 * TURN_32));
            // Between samples the lines are straight, and at most one sample is passed.
            if before < ahead {
                let [[a, b], [c, d], [e, f]] = [ring[index], ring[index + 1], ring[(index + 2) % SAMPLES]];
                let (re, im) = (e - 2.0 * c + a, f - 2.0 * d + b);
                let kink = f64::from(amplitude * (re * re + im * im).sqrt()) / STEP;
                deviation += kink * before * (ahead - before) / ahead;
            }
        }
        deviation
    }
}

/// The value at this position (in 2^-64 of a turn) on a ring of 2^`LOG` samples, interpolated linearly.
#[inline(always)]
fn read<const LOG: u32, const N: usize>(ring: &[Complex; N], share: u64) -> Complex {
    const { assert!(N == (1 << LOG) + 1) };
    let index = (share >> (64 - LOG)) as usize;
    // The 24 bits below the index, which a float holds exactly.
    let between = ((share << LOG) >> 40) as i32 as f32 * (1.0 / 16_777_216.0);
    let ([a, b], [c, d]) = (ring[index], ring[index + 1]);
    [a + (c - a) * between, b + (d - b) * between]
}

/// The unit circle in SAMPLES steps: real and imaginary part of exp(2 pi i k / SAMPLES).
fn turns() -> Vec<[f64; 2]> {
    let angle = |k: usize| core::f64::consts::TAU * k as f64 / SAMPLES as f64;
    (0..SAMPLES).map(|k| libm::sincos(angle(k))).map(|(sin, cos)| [cos, sin]).collect()
}

/// Jakes's spectrum 1 / (pi sqrt(1 - x^2)), integrated up to `line`, where the largest Doppler shift is x = 1.
fn spectrum_below(line: f64) -> f64 {
    0.5 + libm::asin((line / WAVELENGTHS as f64).clamp(-1.0, 1.0)) / core::f64::consts::PI
}

fn ring(number: usize, turns: &[[f64; 2]], random: &mut Random) -> Box<[Complex; SAMPLES + 1]> {
    let mut samples = vec![[0.0; 2]; SAMPLES];
    let (mut done, mut at_next) = (0.0, 0.0);
    let lines = 2 * WAVELENGTHS + 1;
    for index in (number..lines).step_by(RINGS) {
        let line = index as f64 - WAVELENGTHS as f64;
        // Each line has the power of the spectrum up to half way to the next, and the last all that is left.
        let upto = if index + RINGS < lines { spectrum_below(line + RINGS as f64 / 2.0) } else { 1.0 };
        let power = upto - done;
        done = upto;
        let (sin, cos) = libm::sincos(core::f64::consts::TAU * random::unit(random));
        let place = (SAMPLES + index - WAVELENGTHS) % SAMPLES;
        samples[place] = [power.sqrt() * cos, power.sqrt() * sin];
        // Autocorrelation at a lag of one sample.
        at_next += power * turns[place][0];
    }
    transform(&mut samples, turns);
    // Linear interpolation between two samples has the mean power (2 + correlation) / 3.
    let scale = (3.0 / (2.0 + at_next)).sqrt();
    let mut ring = Box::new([[0.0; 2]; SAMPLES + 1]);
    for (to, from) in ring.iter_mut().zip(samples.iter().cycle()) {
        *to = [(from[0] * scale) as f32, (from[1] * scale) as f32];
    }
    ring
}

/// Inverse discrete Fourier transform in place, without the factor 1 / n (Cooley and Tukey 1965, radix 2).
fn transform(samples: &mut [[f64; 2]], turns: &[[f64; 2]]) {
    for index in 0..SAMPLES {
        let mirrored = index.reverse_bits() >> (usize::BITS - LOG_SAMPLES);
        if index < mirrored {
            samples.swap(index, mirrored);
        }
    }
    let mut half = 1;
    while half < SAMPLES {
        for block in samples.chunks_exact_mut(2 * half) {
            let (low, high) = block.split_at_mut(half);
            for (k, (low, high)) in low.iter_mut().zip(high).enumerate() {
                let [cos, sin] = turns[k * (SAMPLES / 2 / half)];
                let [re, im] = [high[0] * cos - high[1] * sin, high[0] * sin + high[1] * cos];
                *high = [low[0] - re, low[1] - im];
                *low = [low[0] + re, low[1] + im];
            }
        }
        half *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transform_of_one_line_is_a_wave() {
        let mut samples = vec![[0.0; 2]; SAMPLES];
        samples[3] = [1.0, 0.0];
        transform(&mut samples, &turns());
        for (index, [re, im]) in samples.into_iter().enumerate().step_by(97) {
            let (sin, cos) = libm::sincos(core::f64::consts::TAU * 3.0 * index as f64 / SAMPLES as f64);
            assert!((re - cos).abs() < 1e-12 && (im - sin).abs() < 1e-12, "{index}");
        }
    }

    /// Mean of a times the conjugate of b, with b read `lag` samples later.
    fn correlation(a: &[Complex], b: &[Complex], lag: usize) -> [f64; 2] {
        let pairs = (0..SAMPLES).map(|i| (a[i], b[(i + lag) % SAMPLES]));
        let products = pairs.map(|([a, b], [c, d])| [f64::from(a * c + b * d), f64::from(b * c - a * d)]);
        products.fold([0.0; 2], |sum, x| [sum[0] + x[0] / SAMPLES as f64, sum[1] + x[1] / SAMPLES as f64])
    }

    #[test]
    fn each_ring_has_power_1_and_the_autocorrelation_j0_and_none_with_another() {
        let rings = Rings::shared();
        for (number, ring) in rings.rings.iter().enumerate() {
            let [power, _] = correlation(&ring[..], &ring[..], 0);
            let [next, _] = correlation(&ring[..], &ring[..], 1);
            assert!(((2.0 * power + next) / 3.0 - 1.0).abs() < 1e-4, "{power}");
            for lag in 1..=8 {
                let [found, beside] = correlation(&ring[..], &ring[..], lag);
                let expected = libm::j0(core::f64::consts::TAU * lag as f64 / 8.0);
                assert!(
                    (found / power - expected).abs() < 0.01 && beside.abs() < 0.02,
                    "lag {lag}: {found}, {beside}"
                );
            }
            assert_eq!(ring[0], ring[SAMPLES]);
            let other = &rings.rings[(number + 1) % RINGS];
            for lag in [0, 5, 1000] {
                let [a, b] = correlation(&ring[..], &other[..], lag);
                assert!(a.abs() < 1e-5 && b.abs() < 1e-5, "{a}, {b}");
            }
        }
    }

    #[test]
    fn absurd_ways_are_somewhere() {
        let rings = Rings::shared();
        let reading = Reading { start: u64::MAX, phase: u64::MAX, twist: i32::MIN, ring: 8 };
        for wavelengths in [0.0, -1.0, 1e300, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 4_095.999_999_999] {
            let mut gain = [[0.0; 2]];
            rings.taps(&[reading], RingPosition::of(wavelengths), &mut gain);
            assert!(gain[0][0].is_finite() && gain[0][1].is_finite(), "{wavelengths}");
        }
        for none in [-1.0, f64::NEG_INFINITY, f64::NAN] {
            assert_eq!(RingPosition::of(none).0, 0);
        }
    }
}
