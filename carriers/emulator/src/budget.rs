//! The share of its processor that the loop leaves to others.
//!
//! On a processor filled by real-time threads, Linux gives ordinary threads 50 of each 1000 ms: before 6.12 by suspending real-time
//! threads that have run for 950 ms (sched_rt_runtime_us), since then by a deadline server for ordinary threads. Both take their 50
//! ms at a stretch, during which the network stands still. A loop that never sleeps therefore pauses often and briefly.

use ranpace_units::{Span, Time};

/// Tracks how long the loop may stay awake.
#[derive(Debug)]
pub struct Budget {
    /// Remaining time awake before a pause.
    left: Span,
    /// Until when it was accounted.
    at: Time,
}

impl Budget {
    /// Length of a pause. Ours: packets that wait for its end reach half of what counts as late ([`crate::LATE`]).
    pub const PAUSE: Span = Span::from_micros(500);
    /// Time awake earned by a unit of sleep: a sixteenth is left to others, 62 of 1000 ms where Linux requires 50. Ours.
    const PAYS: u64 = 15;
    /// Most time that can be saved up. Ours: a loop that begins to fill its processor at some instant sleeps for more than 50 of
    /// the first 1000 ms as well.
    const MOST: Span = Span::from_millis(150);

    /// A full budget at `now`.
    pub fn new(now: Time) -> Self {
        Self { left: Self::MOST, at: now }
    }

    /// The loop slept from one instant to another.
    pub fn on_sleep(&mut self, from: Time, to: Time) {
        self.count(from);
        self.left = (self.left + (to - self.at) * Self::PAYS).min(Self::MOST);
        self.at = self.at.max(to);
    }

    /// Returns whether a pause is due; the loop was awake until `now`.
    pub fn is_used(&mut self, now: Time) -> bool {
        self.count(now);
        self.left.is_zero()
    }

    fn count(&mut self, now: Time) {
        self.left -= now - self.at;
        self.at = self.at.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Alternates work and sleep: the number of pauses, and the least sleep within any second.
    fn play(work: Span, sleep: Span) -> (u64, Span) {
        let mut now = Time::ZERO;
        let (mut budget, mut pauses, mut sleeps) = (Budget::new(now), 0, Vec::new());
        while now < Time::from_secs(5) {
            now += work;
            let pause = budget.is_used(now);
            let slept = if pause { Budget::PAUSE } else { sleep };
            pauses += u64::from(pause);
            budget.on_sleep(now, now + slept);
            sleeps.push((now, slept));
            now += slept;
        }
        let within = |from: Time| -> Span {
            let part = sleeps.iter().skip_while(|(at, _)| *at < from);
            part.take_while(|(at, slept)| *at + *slept <= from + Span::from_secs(1))
                .map(|(_, slept)| *slept)
                .sum()
        };
        let least = (0..4_000).map(|ms| within(Time::from_millis(ms))).min();
        (pauses, least.unwrap_or(Span::ZERO))
    }

    #[test]
    fn a_loop_that_never_sleeps_leaves_to_others_what_linux_asks_for_in_each_second() {
        for work in [3, 40, 700] {
            let (pauses, least) = play(Span::from_micros(work), Span::ZERO);
            assert!(pauses > 0);
            assert!(least >= Span::from_millis(50), "work of {work} us at a time: {least}");
        }
        // Neither does a loop that sleeps too little.
        let (pauses, least) = play(Span::from_micros(1000), Span::from_micros(20));
        assert!(pauses > 0 && least >= Span::from_millis(50), "{pauses}, {least}");
    }

    #[test]
    fn a_loop_that_sleeps_enough_never_pauses() {
        assert_eq!(play(Span::from_micros(900), Span::from_micros(100)).0, 0);
        // Not even after it was busy for a tenth of a second.
        let mut budget = Budget::new(Time::ZERO);
        assert!(!budget.is_used(Time::from_millis(100)));
        assert!(budget.is_used(Time::from_millis(150)));
    }
}
