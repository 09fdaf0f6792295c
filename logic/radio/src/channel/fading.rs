//! Multipath fading: the gain of each group of resource blocks as a function of the distance that a user has travelled.
//!
//! Each tap of a [`DelayProfile`] is a Rayleigh process with Jakes's spectrum (see [`Rings`]); the gain at a frequency is
//! the squared magnitude of the sum of the taps, each rotated by its delay. A group has the gain at its centre frequency, which
//! is Rayleigh too; groups of one give the gain of every resource block. The mean gain is 1.
//!
//! Gains depend only on the distance in wavelengths and can be queried in any order; nothing is computed between queries.
//! The gains of a static user are constant, unless the scenario fixes a [`FadingSpeed`].
//!
//! The taps of one user are on different rings. Taps of two users may by chance be on the same ring and within a wavelength of
//! each other (one pair in some ten thousand), and are then alike. In ns-3, whose users share one recording of 10 s, this is
//! much more likely.

use std::sync::Arc;

use pulp::{Arch, Simd, WithSimd};
use ranpace_phy::{LtePrbs, Numerology, Prbs};
use ranpace_units::Time;

use super::decibel::MOST;
use super::random::{self, Purpose};
use super::rings::{self, Complex, RINGS, Reading, RingPosition, Rings};
use super::{Carrier, DelayProfile};

/// The speed of a user for the purpose of fading.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FadingSpeed {
    /// Its actual speed: gains follow the distance that it has travelled.
    AsMoving,
    /// A fixed speed in m/s, wherever it is: 002's static users under EVA at 60 km/h, 004's walkers under EPA at 3 km/h.
    Fixed(f64),
}

impl FadingSpeed {
    /// 3 km/h.
    pub const KM_H_3: Self = Self::Fixed(3.0 / 3.6);
    /// 60 km/h.
    pub const KM_H_60: Self = Self::Fixed(60.0 / 3.6);

    /// The distance in wavelengths at this time, for a user that has travelled this many metres.
    pub fn wavelengths(self, carrier: Carrier, now: Time, travelled_m: f64) -> f64 {
        let metres = match self {
            Self::AsMoving => travelled_m,
            Self::Fixed(speed) => speed * now.as_secs_f64(),
        };
        metres / carrier.wavelength_m()
    }
}

/// The division of a band into groups of resource blocks: centre frequency and width of each group.
#[derive(Clone, Debug, PartialEq)]
pub struct Groups {
    /// Centre of each group in Hz, relative to the centre of the band.
    middles_hz: Vec<f64>,
    /// PRBs of each group.
    prbs: Vec<u8>,
}

impl Groups {
    /// The resource block groups of an LTE band: 25 for 100 PRBs; TS 36.213 Table 7.1.6.1-1.
    pub fn lte(band: LtePrbs) -> Self {
        Self::new(band.get().into(), band.rbg_size(), 180e3)
    }
    /// Groups of `size` PRBs of an NR band, at most 255; the last may be smaller, and a size of 0 counts as 1.
    pub fn nr(band: Prbs, numerology: Numerology, size: u8) -> Self {
        Self::new(band.get(), size, 12e3 * f64::from(numerology.spacing_khz()))
    }

    fn new(band: u16, size: u8, prb_hz: f64) -> Self {
        let size = size.max(1);
        let prbs: Vec<u8> = (0..band)
            .step_by(size.into())
            // At most `size`, which is a u8.
            .map(|first| (band - first).min(size.into()) as u8)
            .collect();
        let middle = |(first, prbs): (u16, &u8)| {
            (f64::from(first) + f64::from(*prbs) / 2.0 - f64::from(band) / 2.0) * prb_hz
        };
        let middles_hz = (0..band).step_by(size.into()).zip(&prbs).map(middle).collect();
        Self { middles_hz, prbs }
    }

    /// Number of groups: at least one.
    pub fn count(&self) -> usize {
        self.prbs.len()
    }
    /// Number of PRBs of each group.
    pub fn prbs(&self) -> &[u8] {
        &self.prbs
    }
}

/// Groups that are computed together, one per lane of one vector register or two.
const LANES: usize = 8;
/// Blocks of [`LANES`] groups that are computed together: as many as fit in registers.
const BLOCKS: usize = 4;

/// The factors of a tap at the groups of one block: rotation by its delay, times its amplitude.
#[derive(Clone, Copy, Debug)]
struct Weights {
    re: [f32; LANES],
    im: [f32; LANES],
}

/// Fading of one carrier, shared by all its users.
#[derive(Clone, Debug)]
pub struct Fading {
    rings: Arc<Rings>,
    taps: usize,
    /// By tap.
    amplitudes: [f32; RINGS],
    groups: usize,
    /// Ordered by chunks of [`BLOCKS`] blocks (the last may have fewer), then by tap, then by block.
    weights: Vec<Weights>,
    /// Instruction set of the processor.
    arch: Arch,
}

/// The points on the rings at which one user's taps start: the only state of its fading (216 bytes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FadingUser([Reading; RINGS]);

impl FadingUser {
    /// User number `user` under this seed. Another number is another user, or the same user on another carrier: the
    /// directions of FDD fade independently.
    pub fn new(seed: u64, user: u64) -> Self {
        let random = &mut random::at(seed, Purpose::Taps, user);
        // A user's first tap may be on any ring.
        let first = (random::unit(random) * RINGS as f64) as usize;
        Self(core::array::from_fn(|tap| Reading::draw(first + tap, random)))
    }
}

impl Fading {
    /// The fading of a band under this profile.
    pub fn new(rings: Arc<Rings>, profile: DelayProfile, groups: &Groups) -> Self {
        let taps = profile.taps();
        let ratio = |power_db: f64| libm::pow(10.0, power_db / 10.0);
        let total: f64 = taps.iter().map(|tap| ratio(tap.power_db)).sum();
        let mut amplitudes = [0.0; RINGS];
        for (amplitude, tap) in amplitudes.iter_mut().zip(taps) {
            *amplitude = (ratio(tap.power_db) / total).sqrt() as f32;
        }
        let mut weights = Vec::new();
        for blocks in groups.middles_hz.chunks(BLOCKS * LANES) {
            for tap in taps {
                let amplitude = (ratio(tap.power_db) / total).sqrt();
                for block in blocks.chunks(LANES) {
                    let mut weight = Weights { re: [0.0; LANES], im: [0.0; LANES] };
                    for (lane, hz) in block.iter().enumerate() {
                        let (sin, cos) = libm::sincos(-core::f64::consts::TAU * hz * tap.delay_ns * 1e-9);
                        weight.re[lane] = (amplitude * cos) as f32;
                        weight.im[lane] = (amplitude * sin) as f32;
                    }
                    weights.push(weight);
                }
            }
        }
        Self { rings, taps: taps.len(), amplitudes, groups: groups.count(), weights, arch: Arch::new() }
    }

    /// Number of groups.
    pub const fn groups(&self) -> usize {
        self.groups
    }

    /// Gains as power ratios with mean 1, at this distance in wavelengths, for the groups that fit in `gains`.
    pub fn gains(&self, user: &FadingUser, wavelengths: f64, gains: &mut [f32]) {
        let room = self.groups.min(gains.len());
        self.scaled(user, wavelengths, 1.0, &mut gains[..room]);
    }

    /// Like [`Self::gains`], times `factor`, and at most [`MOST`]. Values after the last group, up to a whole block, are undefined.
    pub(super) fn scaled(&self, user: &FadingUser, wavelengths: f64, factor: f32, gains: &mut [f32]) {
        self.look(user, wavelengths, Powers { factor, powers: gains });
    }

    /// The largest `ahead` of [`Self::deviation`], in wavelengths.
    pub(super) const STEP: f64 = rings::STEP;

    /// Bound on how far the amplitude of any group deviates, over the next `ahead` wavelengths (up to [`Self::STEP`]), from the
    /// straight line between its values at both ends.
    pub(super) fn deviation(&self, user: &FadingUser, wavelengths: f64, ahead: f64) -> f64 {
        let taps = self.taps.min(RINGS);
        self.rings.deviation(&user.0[..taps], RingPosition::of(wavelengths), ahead, &self.amplitudes[..taps])
    }

    /// Gains as amplitudes: real and imaginary parts.
    pub fn amplitudes(&self, user: &FadingUser, wavelengths: f64, amplitudes: &mut [[f32; 2]]) {
        let room = self.groups.min(amplitudes.len());
        self.look(user, wavelengths, Amplitudes(&mut amplitudes[..room]));
    }

    #[inline]
    fn look(&self, user: &FadingUser, wavelengths: f64, out: impl Out) {
        self.arch.dispatch(LookAt { fading: self, user, way: RingPosition::of(wavelengths), out });
    }
}

/// A consumer of the sums of taps at the groups.
trait Out {
    /// Number of groups that it wants.
    fn room(&self) -> usize;
    /// Takes the sums of groups from `first` on, which is below [`Self::room`].
    fn write(&mut self, first: usize, sums: &Sums);
}

/// Squared magnitudes times a factor.
struct Powers<'a> {
    factor: f32,
    powers: &'a mut [f32],
}

impl Out for Powers<'_> {
    #[inline(always)]
    fn room(&self) -> usize {
        self.powers.len()
    }
    #[inline(always)]
    fn write(&mut self, first: usize, Sums { re, im }: &Sums) {
        let mut powers = [0.0; LANES];
        for lane in 0..LANES {
            let scaled = (re[lane] * re[lane] + im[lane] * im[lane]) * self.factor;
            powers[lane] = if scaled > MOST as f32 { MOST as f32 } else { scaled };
        }
        let room = &mut self.powers[first..];
        match room.first_chunk_mut() {
            Some(room) => *room = powers,
            None => room.iter_mut().zip(powers).for_each(|(to, power)| *to = power),
        }
    }
}

struct Amplitudes<'a>(&'a mut [[f32; 2]]);

impl Out for Amplitudes<'_> {
    #[inline(always)]
    fn room(&self) -> usize {
        self.0.len()
    }
    #[inline(always)]
    fn write(&mut self, first: usize, Sums { re, im }: &Sums) {
        for (amplitude, (re, im)) in self.0[first..].iter_mut().zip(re.iter().zip(im)) {
            *amplitude = [*re, *im];
        }
    }
}

/// An evaluation with the widest registers that the processor has. Each lane has its own sum, and products are rounded
/// before they are added (no fused multiply-add), so that results are bit-identical at any width.
struct LookAt<'a, O> {
    fading: &'a Fading,
    user: &'a FadingUser,
    way: RingPosition,
    out: O,
}

impl<O: Out> WithSimd for LookAt<'_, O> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, _: S) {
        let Fading { rings, taps: count, weights, .. } = self.fading;
        let mut taps = [[0.0; 2]; RINGS];
        let taps = &mut taps[..(*count).min(RINGS)];
        rings.taps(&self.user.0, self.way, taps);
        let mut first = 0;
        for weights in weights.chunks(BLOCKS * taps.len()) {
            if first >= self.out.room() {
                break;
            }
            let blocks = |n: usize| weights.len() == n * taps.len();
            match () {
                () if blocks(4) => sum::<4>(taps, weights, first, &mut self.out),
                () if blocks(3) => sum::<3>(taps, weights, first, &mut self.out),
                () if blocks(2) => sum::<2>(taps, weights, first, &mut self.out),
                () => sum::<1>(taps, weights, first, &mut self.out),
            }
            first += BLOCKS * LANES;
        }
    }
}

/// Real and imaginary parts of the sums at the groups of a block.
#[derive(Clone, Copy)]
struct Sums {
    re: [f32; LANES],
    im: [f32; LANES],
}

/// The sums of the taps at the groups of `N` blocks.
#[inline(always)]
fn sum<const N: usize>(taps: &[Complex], weights: &[Weights], first: usize, out: &mut impl Out) {
    let mut sums = [Sums { re: [0.0; LANES], im: [0.0; LANES] }; N];
    for (&[a, b], weights) in taps.iter().zip(weights.as_chunks::<N>().0) {
        for (Sums { re, im }, weight) in sums.iter_mut().zip(weights) {
            for lane in 0..LANES {
                re[lane] += a * weight.re[lane] - b * weight.im[lane];
                im[lane] += a * weight.im[lane] + b * weight.re[lane];
            }
        }
    }
    for (sums, first) in sums.iter().zip((first..out.room()).step_by(LANES)) {
        out.write(first, sums);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ranpace_phy::LteBandwidth;

    #[test]
    fn groups_of_every_band() {
        for (band, count, last) in [
            (LteBandwidth::Mhz1_4, 6, 1),
            (LteBandwidth::Mhz5, 13, 1),
            (LteBandwidth::Mhz10, 17, 2),
            (LteBandwidth::Mhz20, 25, 4),
        ] {
            let groups = Groups::lte(band.prbs());
            assert_eq!((groups.count(), groups.prbs().last()), (count, Some(&last)), "{band:?}");
            let all: u32 = groups.prbs().iter().map(|prbs| u32::from(*prbs)).sum();
            assert_eq!(all, u32::from(band.prbs().get()));
        }
        // 100 PRBs of 180 kHz: the centre of the first group of four is 48 PRBs below that of the band.
        assert_eq!(Groups::lte(LteBandwidth::Mhz20.prbs()).middles_hz[0], -48.0 * 180e3);
        let nr = Groups::nr(Prbs::new(132).unwrap(), Numerology::Khz120, 16);
        assert_eq!((nr.count(), nr.prbs()[8]), (9, 4));
        assert_eq!(Groups::nr(Prbs::MAX, Numerology::Khz15, 0).count(), 275);
    }

    #[test]
    fn a_standing_user_has_a_standing_gain_unless_its_speed_is_fixed() {
        let way = |speed: FadingSpeed, s| speed.wavelengths(Carrier::BAND_7, Time::from_secs(s), 0.0);
        assert_eq!(way(FadingSpeed::AsMoving, 100), 0.0);
        // 148 Hz.
        assert!((way(FadingSpeed::KM_H_60, 100) - 14_788.0).abs() < 1.0);
    }

    #[test]
    fn bits_do_not_depend_on_the_processor() {
        let groups = [Groups::lte(LteBandwidth::Mhz20.prbs()), Groups::nr(Prbs::MAX, Numerology::Khz120, 1)];
        for (profile, groups) in [DelayProfile::Epa, DelayProfile::Etu].into_iter().zip(groups) {
            let here = Fading::new(RINGS_OF_TEST.with(Arc::clone), profile, &groups);
            let plain = Fading { arch: Arch::Scalar, ..here.clone() };
            for user in 0..200 {
                let look = |fading: &Fading| {
                    let (mut gains, mut amplitudes) =
                        (vec![0.0; groups.count()], vec![[0.0; 2]; groups.count()]);
                    let way = f64::from(user as u32) * 1234.567;
                    fading.scaled(&FadingUser::new(1, user), way, 2.5e3, &mut gains);
                    fading.amplitudes(&FadingUser::new(1, user), way, &mut amplitudes);
                    let bits = gains.iter().chain(amplitudes.as_flattened()).map(|number| number.to_bits());
                    bits.collect::<Vec<_>>()
                };
                assert_eq!(look(&here), look(&plain), "{profile:?}, user {user}");
            }
        }
    }

    proptest! {
        #[test]
        fn gains_are_numbers_whatever_the_way(
            wavelengths in any::<f64>(), seed: u64, user: u64, size in 0..20u8, room in 0..300usize
        ) {
            let groups = Groups::nr(Prbs::MAX, Numerology::Khz120, size);
            let fading = Fading::new(RINGS_OF_TEST.with(Arc::clone), DelayProfile::Etu, &groups);
            let mut gains = vec![-1.0; room];
            fading.gains(&FadingUser::new(seed, user), wavelengths, &mut gains);
            for (i, gain) in gains.into_iter().enumerate() {
                let expected = if i < fading.groups() { 0.0..100.0 } else { -1.0..0.0 };
                prop_assert!(expected.contains(&gain), "{gain}");
            }
        }
    }

    std::thread_local! {
        static RINGS_OF_TEST: Arc<Rings> = Rings::shared();
    }
}
