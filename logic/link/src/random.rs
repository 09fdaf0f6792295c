//! Draws from a seeded generator, with the same bits on every machine.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

pub(crate) type Random = Xoshiro256PlusPlus;

/// The purpose of a stream of random numbers. Each has its own stream, so that enabling one does not affect the others.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    Loss,
    Jitter,
    Reorder,
    Queue,
    Trace,
    Scheduler,
}

impl Purpose {
    /// Arbitrary, but must never change, since results depend on it.
    const fn salt(self) -> u64 {
        match self {
            Self::Loss => 0x5d1f_0c93_86ab_e471,
            Self::Jitter => 0x2e97_b5d0_4163_fa8c,
            Self::Reorder => 0x71c8_3ea4_f92d_560b,
            Self::Queue => 0x1b64_d7f9_a03e_852d,
            Self::Trace => 0x4fa2_6918_d7c5_3eb0,
            Self::Scheduler => 0x3c75_e18d_6b04_9fa2,
        }
    }
}

/// The stream for `purpose` under the caller's `seed`.
pub(crate) fn stream(seed: u64, purpose: Purpose) -> Random {
    Random::seed_from_u64(seed ^ purpose.salt())
}

/// Uniform in [0, 1), a multiple of 2^-53.
#[inline]
pub(crate) fn unit(random: &mut Random) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// True with this probability; never at 0, always at 1.
#[inline]
pub(crate) fn chance(random: &mut Random, probability: f64) -> bool {
    unit(random) < probability
}

/// Uniform in 0..=`largest`, up to a bias of `largest` over 2^64.
#[inline]
pub(crate) fn up_to(random: &mut Random, largest: u64) -> u64 {
    let wide = u128::from(random.next_u64()) * (u128::from(largest) + 1);
    (wide >> 64) as u64
}

/// Normal with mean 0 and standard deviation 1, by the polar method (Marsaglia and Bray 1964).
pub(crate) fn normal(random: &mut Random) -> f64 {
    loop {
        let (x, y) = (2.0 * unit(random) - 1.0, 2.0 * unit(random) - 1.0);
        let square = x * x + y * y;
        if square < 1.0 && square > 0.0 {
            return x * (-2.0 * libm::log(square) / square).sqrt();
        }
    }
}

/// Exponential with mean 1.
pub(crate) fn exponential(random: &mut Random) -> f64 {
    -libm::log(1.0 - unit(random))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_distributions() {
        let mut random = stream(1, Purpose::Trace);
        let n = 200_000;
        let (mut sum, mut square, mut waits) = (0.0, 0.0, 0.0);
        for _ in 0..n {
            let x = normal(&mut random);
            sum += x;
            square += x * x;
            waits += exponential(&mut random);
            assert!(up_to(&mut random, 3) <= 3);
        }
        let n = f64::from(n);
        assert!((sum / n).abs() < 0.01 && (square / n - 1.0).abs() < 0.02 && (waits / n - 1.0).abs() < 0.01);
    }

    #[test]
    fn chance_is_exact_at_its_ends() {
        let mut random = stream(2, Purpose::Loss);
        assert!((0..10_000).all(|_| chance(&mut random, 1.0) && !chance(&mut random, 0.0)));
    }
}
