//! The users' average rates: `T_u` of proportional fair.
//!
//! Source: the scheduler of ns-3, `T <- (1 - 1/W) T + R/W` once per TTI with `R` the bytes sent in it, `W` = 99, and `T`
//! starting at 1 byte/s. A query applies the update for all TTIs since the last one. Ours: `T` never falls below its initial
//! value, so a user that was silent for long counts as a newcomer.

/// Initial and smallest average: 1 byte/s in TTIs of 1 ms (ns-3), in bits per TTI.
pub(super) const LEAST: f64 = 0.008;

/// Size of the table of powers; competing users were mostly served recently.
const POWERS: usize = 512;

#[derive(Clone, Copy, Debug)]
struct Average {
    /// Bits per TTI, as of the beginning of slot `from`.
    bits: f64,
    from: u64,
}

/// The averages of all users, by user number.
#[derive(Clone, Debug)]
pub(super) struct Averages {
    weight: f64,
    decay: f64,
    /// `decay` to the power of the index.
    powers: Vec<f64>,
    users: Vec<Average>,
}

impl Averages {
    /// `window` is in TTIs; less than 1 counts as 1.
    pub fn new(window: f64) -> Self {
        let weight = 1.0 / window.max(1.0);
        let decay = 1.0 - weight;
        let powers = std::iter::successors(Some(1.0), |power| Some(power * decay)).take(POWERS).collect();
        Self { weight, decay, powers, users: Vec::new() }
    }

    /// Bits per TTI over the slots before `tti`, including `tti` if something was already added to it.
    pub fn at(&self, tti: u64, user: u32) -> f64 {
        match self.users.get(user as usize) {
            Some(average) => self.after(*average, tti),
            None => LEAST,
        }
    }

    /// Adds `bits` sent in slot `tti`; repeated calls for a slot add up.
    pub fn add(&mut self, tti: u64, user: u32, bits: u32) {
        let index = user as usize;
        if index >= self.users.len() {
            self.users.resize(index + 1, Average { bits: LEAST, from: 0 });
        }
        let average = self.users[index];
        let from = tti.saturating_add(1).max(average.from);
        self.users[index] = Average { bits: self.after(average, from) + self.weight * f64::from(bits), from };
    }

    pub fn forget(&mut self, user: u32) {
        if let Some(average) = self.users.get_mut(user as usize) {
            *average = Average { bits: LEAST, from: 0 };
        }
    }

    fn after(&self, average: Average, tti: u64) -> f64 {
        (average.bits * self.decay_over(tti.saturating_sub(average.from))).max(LEAST)
    }

    /// `decay` to the power of `ttis`.
    fn decay_over(&self, ttis: u64) -> f64 {
        let looked_up = usize::try_from(ttis).ok().and_then(|index| self.powers.get(index));
        looked_up.copied().unwrap_or_else(|| {
            let (mut power, mut square, mut rest) = (1.0, self.decay, ttis);
            while rest > 0 {
                if rest & 1 == 1 {
                    power *= square;
                }
                square *= square;
                rest >>= 1;
            }
            power
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_recursion_however_rarely_it_is_told() {
        for window in [1.0, 20.0, 99.0, 5000.0] {
            let (mut averages, mut expected) = (Averages::new(window), LEAST);
            for tti in 0..20_000u64 {
                let seen = averages.at(tti, 3);
                assert!((seen - expected).abs() <= 1e-9 * expected, "{window} {tti}: {seen} {expected}");
                // In every TTI at first, then every 700 TTIs.
                let bits = match tti {
                    0..300 => 1000 + (tti as u32 % 7) * 100,
                    _ if tti % 700 == 0 => 75_376,
                    _ => 0,
                };
                if bits > 0 {
                    averages.add(tti, 3, bits);
                }
                expected = (expected * (1.0 - 1.0 / window)).max(LEAST) + f64::from(bits) / window;
            }
        }
    }

    #[test]
    fn parts_of_a_slot_add_up_and_the_forgotten_begin_anew() {
        let (mut whole, mut parts) = (Averages::new(99.0), Averages::new(99.0));
        whole.add(5, 0, 3000);
        parts.add(5, 0, 1000);
        parts.add(5, 0, 2000);
        assert!((whole.at(6, 0) - parts.at(6, 0)).abs() < 1e-9);
        assert!(whole.at(6, 0) > 30.0);
        whole.forget(0);
        whole.forget(77);
        assert_eq!((whole.at(6, 0), whole.at(6, 77)), (LEAST, LEAST));
    }
}
