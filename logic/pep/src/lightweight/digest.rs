//! Power sums of packet tags: which packets of an encrypted flow passed, in 64 bytes.
//!
//! Source: Yuan et al., Sidekick (NSDI 2024), and its repository `quack`, for the idea: from the first `t` power sums, modulo a
//! prime, of the tags sent and of those seen, up to `t` missing tags can be identified. Ours: the prime, `t`, and tags made by a
//! keyed hash, so that the header's layout does not matter and an eavesdropper learns nothing.
//!
//! `S_k = sum(tag^k) mod p`, `k = 1..t`, `p = 2^32 - 5`, `t = 16`. If `d` tags are missing, Newton's identities turn the
//! differences of the first `d` sums into a polynomial whose roots are the missing tags.

use core::hash::Hasher;

use siphasher::sip::SipHasher13;

/// `t`: most packets that may be missing at once.
pub const POWERS: usize = 16;
/// `p = 2^32 - 5`, the largest prime below 2^32.
const PRIME: u64 = (1 << 32) - 5;
/// Bytes of a payload that are hashed.
pub const LOOKED_AT: usize = 64;

/// The tag of a packet: SipHash-1-3 of the first 64 bytes of its UDP payload and of its length, modulo the prime. It is never zero,
/// which would add nothing to a sum.
pub fn tag(key: &[u8; 16], payload: &[u8], length: u32) -> u32 {
    let mut hasher = SipHasher13::new_with_key(key);
    hasher.write(&payload[..payload.len().min(LOOKED_AT)]);
    hasher.write_u32(length);
    (hasher.finish() as u32 as u64 % (PRIME - 1) + 1) as u32
}

/// `x mod p` for any `x`, using `2^32 = 5 (mod p)`.
#[inline]
fn reduce(x: u64) -> u64 {
    const LOW: u64 = u32::MAX as u64;
    let once = (x >> 32) * 5 + (x & LOW);
    let twice = (once >> 32) * 5 + (once & LOW);
    if twice >= PRIME { twice - PRIME } else { twice }
}

#[inline]
fn multiply(a: u64, b: u64) -> u64 {
    reduce(a * b)
}

fn inverse(a: u64) -> u64 {
    // Fermat's little theorem: a^(p-2).
    let (mut result, mut base, mut exponent) = (1, a, PRIME - 2);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = multiply(result, base);
        }
        base = multiply(base, base);
        exponent >>= 1;
    }
    result
}

/// The sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PowerSums([u32; POWERS]);

impl PowerSums {
    /// From received sums; `None` if one of them is not below the prime.
    pub fn from_sums(sums: [u32; POWERS]) -> Option<Self> {
        sums.iter().all(|&sum| u64::from(sum) < PRIME).then_some(Self(sums))
    }

    /// The sums, from the first power on.
    pub fn as_slice(&self) -> &[u32] {
        &self.0
    }

    /// Adds a packet.
    #[inline]
    pub fn insert(&mut self, tag: u32) {
        self.add(tag, |sum, power| sum + power);
    }

    /// Removes a packet.
    #[inline]
    pub fn remove(&mut self, tag: u32) {
        self.add(tag, |sum, power| sum + PRIME - power);
    }

    #[inline]
    fn add(&mut self, tag: u32, join: impl Fn(u64, u64) -> u64) {
        // Computes four powers at a time, so that each product depends only on the one four powers before.
        let x = u64::from(tag);
        let square = multiply(x, x);
        let step = multiply(square, square);
        let mut powers = [x, square, multiply(square, x), step];
        for sums in self.0.chunks_exact_mut(4) {
            for (sum, power) in sums.iter_mut().zip(&mut powers) {
                let joined = join(u64::from(*sum), *power);
                *sum = (if joined >= PRIME { joined - PRIME } else { joined }) as u32;
                *power = multiply(*power, step);
            }
        }
    }

    /// Indices of the `missing` candidates whose tags are in these sums and not in `other`'s. `None` if they are too many, or if no
    /// candidates explain the difference. Candidates with equal tags are indistinguishable, and all of them are returned.
    pub fn missing(&self, other: &Self, missing: usize, candidates: &[u32]) -> Option<Vec<usize>> {
        if missing > POWERS {
            return None;
        }
        let mut differences = [0; POWERS];
        for (place, (own, other)) in differences.iter_mut().zip(self.0.iter().zip(&other.0)) {
            *place = reduce(u64::from(*own) + PRIME - u64::from(*other));
        }
        // Newton: k e_k = sum over i of (-1)^(i-1) e_(k-i) p_i.
        let mut coefficients = [0; POWERS + 1];
        coefficients[0] = 1;
        for k in 1..=missing {
            let mut sum = 0;
            for i in 1..=k {
                let term = multiply(coefficients[k - i], differences[i - 1]);
                sum = reduce(sum + if i % 2 == 1 { term } else { PRIME - term });
            }
            coefficients[k] = multiply(sum, inverse(k as u64));
        }
        // x^d - e_1 x^(d-1) + e_2 x^(d-2) - ...
        for (k, coefficient) in coefficients.iter_mut().enumerate() {
            if k % 2 == 1 {
                *coefficient = (PRIME - *coefficient) % PRIME;
            }
        }
        let mut found = Vec::with_capacity(missing);
        if missing > 0 {
            for (index, &candidate) in candidates.iter().enumerate() {
                let x = u64::from(candidate);
                let value = coefficients[..=missing].iter().fold(0, |value, c| reduce(value * x + c));
                if value == 0 {
                    found.push(index);
                }
            }
        }
        // All sums have to agree, including those beyond the first `missing`; otherwise the input was inconsistent.
        let mut distinct: Vec<u32> = found.iter().map(|&index| candidates[index]).collect();
        distinct.sort_unstable();
        distinct.dedup();
        if distinct.len() > missing {
            return None;
        }
        let mut rest = *self;
        for tag in &distinct {
            rest.remove(*tag);
        }
        if distinct.len() == missing && rest != *other {
            return None;
        }
        // Fewer roots than missing packets means that one of them is double; otherwise nothing explains the difference.
        (distinct.len() == missing || found.len() > distinct.len()).then_some(found)
    }
}
