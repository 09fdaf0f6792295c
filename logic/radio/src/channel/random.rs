//! Random draws at any position of a stream, in any order: the draw for the seventh stretch of road is the same whether or not
//! the sixth was drawn.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

pub(crate) type Random = Xoshiro256PlusPlus;

/// The purpose of a stream of random numbers. Each has its own stream, so that enabling one does not affect the others.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    Rings,
    Taps,
    Shadow,
    Sight,
    Flicker,
    Walk,
    Place,
    Recording,
    Noise,
}

impl Purpose {
    /// Arbitrary, but must never change, since results depend on it.
    const fn salt(self) -> u64 {
        match self {
            Self::Rings => 0x6a09_51d3_c27f_e884,
            Self::Taps => 0x93e4_0b7c_5d12_a6f9,
            Self::Shadow => 0x27b8_f1a6_904c_3de5,
            Self::Sight => 0xc15d_7e38_62fb_0a94,
            Self::Flicker => 0x4e92_ad07_f3b5_816c,
            Self::Walk => 0xb873_26cf_1e40_d95a,
            Self::Place => 0x05fc_98e2_7ba1_436d,
            Self::Recording => 0xd4a1_3f5b_08e6_7c29,
            Self::Noise => 0x8b3d_60e9_f715_2ca4,
        }
    }
}

/// The generator for `purpose` at position `index` of its stream. The factor is odd and differs from the step of the
/// generator's own seeding; otherwise neighbouring positions would share state.
pub(crate) fn at(seed: u64, purpose: Purpose, index: u64) -> Random {
    Random::seed_from_u64(seed ^ purpose.salt() ^ index.wrapping_mul(0xd134_2543_de82_ef95))
}

/// Uniform in [0, 1), a multiple of 2^-53.
pub(crate) fn unit(random: &mut Random) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// Uniform from `low` to `high`.
pub(crate) fn between(random: &mut Random, low: f64, high: f64) -> f64 {
    low + (high - low) * unit(random)
}

/// Normal with mean 0 and standard deviation 1, by the polar method (Marsaglia and Bray 1964).
pub(crate) fn normal(random: &mut Random) -> f64 {
    loop {
        let (x, y) = (between(random, -1.0, 1.0), between(random, -1.0, 1.0));
        let square = x * x + y * y;
        if square > 0.0 && square < 1.0 {
            return x * libm::sqrt(-2.0 * libm::log(square) / square);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_at_neighbouring_places_are_normal_and_independent() {
        let draws: Vec<f64> = (0..100_000).map(|i| normal(&mut at(1, Purpose::Shadow, i))).collect();
        let mean = |of: &dyn Fn(usize) -> f64| (1..draws.len()).map(of).sum::<f64>() / draws.len() as f64;
        // Five standard errors: 5 / sqrt(100 000) is 0.016, and sqrt 2 times that for the variance.
        assert!(mean(&|i| draws[i]).abs() < 0.016);
        assert!((mean(&|i| draws[i] * draws[i]) - 1.0).abs() < 0.023);
        assert!(mean(&|i| draws[i] * draws[i - 1]).abs() < 0.016);
    }
}
