//! Propagation: constant delay, jitter that keeps the order, and packets held back that may be overtaken.
//!
//! Packets in order are in a ring; only packets held back ([`Reorder`]) need a heap.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

use ranpace_units::{Span, Time};

use crate::random::{self, Purpose, Random};
use crate::{Jitter, Reorder};

pub(crate) struct Flight<P> {
    pub delay: Span,
    jitter: Jitter,
    reorder: Option<Reorder>,
    jitter_random: Random,
    reorder_random: Random,
    ordered: VecDeque<(Time, P)>,
    /// Arrival time of the last packet ever put into `ordered`; none arrives before it.
    latest: Time,
    held: BinaryHeap<Reverse<InFlight<P>>>,
    /// Number of packets held so far.
    holds: u64,
}

struct InFlight<P> {
    at: Time,
    number: u64,
    packet: P,
}

impl<P> InFlight<P> {
    fn key(&self) -> (Time, u64) {
        (self.at, self.number)
    }
}
impl<P> PartialEq for InFlight<P> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl<P> Eq for InFlight<P> {}
impl<P> PartialOrd for InFlight<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<P> Ord for InFlight<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl<P> Flight<P> {
    pub fn new(delay: Span, jitter: Jitter, reorder: Option<Reorder>, seed: u64) -> Self {
        Self {
            delay,
            jitter,
            // Without extra delay no packet can be overtaken.
            reorder: reorder.filter(|r| r.probability > 0.0 && !r.extra.is_zero()),
            jitter_random: random::stream(seed, Purpose::Jitter),
            reorder_random: random::stream(seed, Purpose::Reorder),
            ordered: VecDeque::new(),
            latest: Time::ZERO,
            held: BinaryHeap::new(),
            holds: 0,
        }
    }

    /// A packet leaves the server at `now`.
    #[inline]
    pub fn launch(&mut self, now: Time, packet: P) {
        let extra = match self.jitter {
            Jitter::None => Span::ZERO,
            Jitter::Uniform(largest) => {
                Span::from_nanos(random::up_to(&mut self.jitter_random, largest.as_nanos()))
            }
            Jitter::Normal { mean, deviation } => {
                let draw = deviation.as_nanos() as f64 * random::normal(&mut self.jitter_random);
                // A float-to-integer cast maps negative values to zero.
                Span::from_nanos((mean.as_nanos() as f64 + draw + 0.5) as u64)
            }
        };
        let at = (now + self.delay + extra).max(self.latest);
        if let Some(reorder) = self.reorder
            && random::chance(&mut self.reorder_random, reorder.probability)
        {
            self.held.push(Reverse(InFlight { at: at + reorder.extra, number: self.holds, packet }));
            self.holds += 1;
        } else {
            self.latest = at;
            self.ordered.push_back((at, packet));
        }
    }

    /// When the next packet arrives; [`Time::MAX`] if there is none.
    #[inline]
    pub fn next(&self) -> Time {
        let ordered = self.ordered.front().map_or(Time::MAX, |(at, _)| *at);
        let held = self.held.peek().map_or(Time::MAX, |Reverse(held)| held.at);
        ordered.min(held)
    }

    /// The next packet that has arrived by `now`. At the same instant, a packet held back comes first.
    #[inline]
    pub fn land(&mut self, now: Time) -> Option<P> {
        let next = self.next();
        if next > now || next == Time::MAX {
            return None;
        }
        if self.held.peek().is_some_and(|Reverse(held)| held.at == next) {
            return self.held.pop().map(|Reverse(held)| held.packet);
        }
        self.ordered.pop_front().map(|(_, packet)| packet)
    }

    /// The packet `places` behind the next one, among those in order.
    #[inline]
    pub fn upcoming(&self, places: usize) -> Option<&P> {
        self.ordered.get(places).map(|(_, packet)| packet)
    }

    pub fn len(&self) -> usize {
        self.ordered.len() + self.held.len()
    }

    /// Takes out any packet.
    pub fn take(&mut self) -> Option<P> {
        let ordered = self.ordered.pop_front().map(|(_, packet)| packet);
        ordered.or_else(|| self.held.pop().map(|Reverse(held)| held.packet))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Span = Span::from_millis(1);

    fn arrivals(flight: &mut Flight<u32>) -> Vec<(Time, u32)> {
        let mut all = Vec::new();
        while flight.next() != Time::MAX {
            let at = flight.next();
            all.push((at, flight.land(at).unwrap()));
        }
        all
    }

    #[test]
    fn jitter_keeps_the_order_and_its_bounds() {
        for jitter in [Jitter::Uniform(MS * 5), Jitter::Normal { mean: MS * 2, deviation: MS }] {
            let mut flight = Flight::new(MS * 20, jitter, None, 3);
            let sent = |n: u32| Time::from_nanos(u64::from(n) * 500_000);
            (0..1000).for_each(|n| flight.launch(sent(n), n));
            let all = arrivals(&mut flight);
            assert!(all.windows(2).all(|w| w[0].0 <= w[1].0 && w[0].1 < w[1].1));
            assert!(all.iter().all(|&(at, n)| at - sent(n) >= MS * 20 && at - sent(n) < MS * 27));
            assert!(all.iter().any(|&(at, n)| at - sent(n) > MS * 22));
        }
    }

    #[test]
    fn a_shorter_delay_does_not_overtake() {
        let mut flight = Flight::new(MS * 20, Jitter::None, None, 0);
        flight.launch(Time::ZERO, 0);
        flight.delay = MS;
        flight.launch(Time::from_millis(1), 1);
        assert_eq!(arrivals(&mut flight), [(Time::from_millis(20), 0), (Time::from_millis(20), 1)]);
    }

    #[test]
    fn packets_held_back_are_overtaken() {
        let reorder = Reorder { probability: 0.2, extra: MS * 3 };
        let mut flight = Flight::new(MS * 10, Jitter::None, Some(reorder), 3);
        (0..1000).for_each(|n| flight.launch(Time::from_millis(u64::from(n)), n));
        let all = arrivals(&mut flight);
        assert_eq!(all.len(), 1000);
        let late = all.iter().filter(|&&(at, n)| at == Time::from_millis(u64::from(n) + 13)).count();
        let in_time = all.iter().filter(|&&(at, n)| at == Time::from_millis(u64::from(n) + 10)).count();
        assert_eq!(late + in_time, 1000);
        assert!((150..250).contains(&late), "{late}");
        assert!(all.windows(2).any(|w| w[0].1 > w[1].1));
    }
}
