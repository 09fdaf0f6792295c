//! Loss before the queue: random, in bursts (Gilbert 1960, Elliott 1963), or a fixed list.

use std::sync::Arc;

use ranpace_units::Bytes;

use crate::random::{self, Purpose, Random};
use crate::{DropCause, Loss};

/// Decides on the loss of each packet in turn.
pub(crate) struct LossProcess {
    rule: Rule,
    random: Random,
}

enum Rule {
    Never,
    Random(f64),
    Bursts { p: f64, r: f64, good: f64, bad: f64, is_bad: bool },
    List { numbers: Arc<[u64]>, smallest: Bytes, next: usize, offered: u64 },
}

impl LossProcess {
    pub fn new(loss: &Loss, seed: u64) -> Self {
        let rule = match loss {
            Loss::None => Rule::Never,
            Loss::Random { probability } => Rule::Random(*probability),
            &Loss::GilbertElliott { p, r, good, bad } => Rule::Bursts { p, r, good, bad, is_bad: false },
            Loss::List { numbers, smallest } => {
                Rule::List { numbers: numbers.clone(), smallest: *smallest, next: 0, offered: 0 }
            }
        };
        Self { rule, random: random::stream(seed, Purpose::Loss) }
    }

    /// Returns whether the next packet, of this size on the wire, is lost, and why.
    #[inline]
    pub fn draw(&mut self, size: Bytes) -> Option<DropCause> {
        let random = &mut self.random;
        match &mut self.rule {
            Rule::Never => None,
            Rule::Random(p) => random::chance(random, *p).then_some(DropCause::Random),
            Rule::Bursts { p, r, good, bad, is_bad } => {
                let (lose, change) = if *is_bad { (*bad, *r) } else { (*good, *p) };
                let lost = random::chance(random, lose);
                *is_bad ^= random::chance(random, change);
                lost.then_some(DropCause::Random)
            }
            Rule::List { smallest, .. } if size < *smallest => None,
            Rule::List { numbers, next, offered, .. } => {
                let number = *offered;
                *offered += 1;
                // Tolerates duplicates; numbers out of order are skipped.
                let before = *next;
                while numbers.get(*next).is_some_and(|&n| n <= number) {
                    *next += 1;
                }
                numbers[before..*next].contains(&number).then_some(DropCause::Listed)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn losses(loss: &Loss, packets: usize) -> Vec<bool> {
        let mut lottery = LossProcess::new(loss, 7);
        (0..packets).map(|_| lottery.draw(Bytes::new(1500)).is_some()).collect()
    }

    fn list(numbers: &[u64], smallest: u64) -> Loss {
        Loss::List { numbers: numbers.into(), smallest: Bytes::new(smallest) }
    }

    #[test]
    fn a_list_drops_exactly_its_numbers() {
        let lost = losses(&list(&[0, 3, 3, 4, 90], 0), 100);
        let numbers: Vec<usize> = (0..100).filter(|&n| lost[n]).collect();
        assert_eq!(numbers, [0, 3, 4, 90]);
    }

    #[test]
    fn a_list_with_a_smallest_size_passes_over_what_is_smaller() {
        let mut lottery = LossProcess::new(&list(&[0, 2], 100), 7);
        let sizes = [60, 1500, 99, 100, 52, 1500, 1500];
        let lost: Vec<bool> = sizes.map(|size| lottery.draw(Bytes::new(size)).is_some()).to_vec();
        assert_eq!(lost, [false, true, false, false, false, true, false]);
    }

    #[test]
    fn random_loss_has_its_rate() {
        let lost = losses(&Loss::Random { probability: 0.01 }, 1_000_000);
        let rate = lost.iter().filter(|&&l| l).count() as f64 / 1e6;
        assert!((rate - 0.01).abs() < 0.000_5, "{rate}");
    }

    #[test]
    fn bursts_have_the_rate_and_length_of_the_chain() {
        // Stationary share of the bad state p / (p + r) = 0.02 / 0.27; mean burst 1 / r = 4 packets.
        let lost = losses(&Loss::GilbertElliott { p: 0.02, r: 0.25, good: 0.0, bad: 1.0 }, 1_000_000);
        let losses = lost.iter().filter(|&&l| l).count() as f64;
        let bursts = lost.windows(2).filter(|w| !w[0] && w[1]).count() as f64;
        assert!((losses / 1e6 - 0.02 / 0.27).abs() < 0.002, "{}", losses / 1e6);
        assert!((losses / bursts - 4.0).abs() < 0.1, "{}", losses / bursts);
    }
}
