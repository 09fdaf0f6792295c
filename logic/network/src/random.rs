//! Derives seeds from seeds.

/// A seed for part `index` of the object with `seed` (the finaliser of SplitMix64, Steele et al. 2014).
pub fn mix(seed: u64, index: u64) -> u64 {
    let mut z = seed.wrapping_add(index.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A number in (0, 1), never 0 or 1, from 53 random bits.
pub fn unit(bits: u64) -> f64 {
    ((bits >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

/// The seed of one of several parts of the object with `seed`; `kind` distinguishes kinds of parts: links 0, flows 1, cells 2,
/// Lightweight PEPs 4.
pub fn part_seed(seed: u64, kind: u64, index: usize) -> u64 {
    mix(mix(seed, kind), index as u64)
}
