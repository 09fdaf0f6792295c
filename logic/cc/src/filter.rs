//! Filters shared by several controls: a windowed maximum and packet-timed rounds.
//!
//! Sources: Kathleen Nichols' windowed maximum of three samples, with Linux's rules for ageing it (`lib/minmax.c`); rounds as
//! in Cardwell et al., "BBR: Congestion-Based Congestion Control", ACM Queue 2016.

/// A value and when it was measured.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    at: u64,
    value: u64,
}

/// The largest value of a window, kept in three samples: the best, the best since it, and the best since that.
///
/// Time is any count that does not decrease (rounds for BBR). A maximum may be forgotten up to a quarter of the
/// window late, never early.
#[derive(Clone, Debug, Default)]
pub(crate) struct MaxFilter {
    best: [Seen; 3],
}

impl MaxFilter {
    /// The maximum; zero before the first sample.
    pub(crate) fn get(&self) -> u64 {
        self.best[0].value
    }

    /// Adds a sample; the window is `window` long.
    #[inline]
    pub(crate) fn update(&mut self, window: u64, at: u64, value: u64) {
        let new = Seen { at, value };
        let [first, second, third] = &mut self.best;
        if value >= first.value || at - third.at > window {
            self.best = [new; 3]; // a new maximum, or all samples have left the window
            return;
        }
        if value >= second.value {
            (*second, *third) = (new, new);
        } else if value >= third.value {
            *third = new;
        }
        let age = at - first.at;
        if age > window {
            // The best has left the window: the others move up, possibly twice.
            (*first, *second, *third) = (*second, *third, new);
            if at - first.at > window {
                (*first, *second, *third) = (*second, *third, new);
            }
        } else if second.at == first.at && age > window / 4 {
            // A quarter of the window without a second-best sample: take one from the second quarter.
            (*second, *third) = (new, new);
        } else if third.at == second.at && age > window / 2 {
            *third = new;
        }
    }
}

/// Packet-timed rounds: a round ends when a packet sent after the previous end is acknowledged.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rounds {
    /// Segments delivered when the current round began.
    until: u64,
    /// Rounds so far.
    pub(crate) count: u64,
    /// Whether the last acknowledgement began a round.
    pub(crate) started: bool,
}

impl Rounds {
    /// The current round ends with a packet sent from now on.
    pub(crate) fn restart(&mut self, delivered: u64) {
        self.until = delivered;
    }

    /// Processes an acknowledgement: `prior_delivered` segments had been delivered when its packet was sent, `delivered` by
    /// now.
    #[inline]
    pub(crate) fn update(&mut self, prior_delivered: u64, delivered: u64) {
        self.started = prior_delivered >= self.until;
        if self.started {
            self.until = delivered;
            self.count += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_maximum_is_kept_for_a_window_and_then_succeeded_by_later_ones() {
        let mut filter = MaxFilter::default();
        for (at, value, expected) in [
            (0, 100, 100),
            (1, 50, 100),
            (4, 80, 100), // becomes the second best
            (8, 60, 100), // becomes the third best
            (10, 10, 100),
            (11, 10, 80), // 100 is 11 rounds old
            (15, 10, 60),
            (40, 5, 5), // all samples have left the window
        ] {
            filter.update(10, at, value);
            assert_eq!(filter.get(), expected, "at {at}");
        }
    }

    #[test]
    fn a_round_takes_one_flight() {
        let mut rounds = Rounds::default();
        let mut begun = Vec::new();
        // Ten packets in flight: packet n is sent when n - 10 have been delivered.
        for delivered in 1..=40u64 {
            rounds.update((delivered - 1).saturating_sub(9), delivered);
            if rounds.started {
                begun.push(delivered);
            }
        }
        assert_eq!(begun, [1, 11, 21, 31]);
        assert_eq!(rounds.count, 4);
    }

    proptest! {
        /// At least the maximum of the window's later three quarters, at most that of all samples in it.
        #[test]
        fn close_to_the_true_maximum(steps in proptest::collection::vec((0..4u64, 0..1000u64), 1..200)) {
            let mut filter = MaxFilter::default();
            let (mut at, mut all) = (0, Vec::new());
            for (step, value) in steps {
                at += step;
                filter.update(12, at, value);
                all.push((at, value));
                let max = |window: u64| all.iter().filter(|(t, _)| at - t <= window).map(|(_, v)| *v).max();
                prop_assert!(filter.get() <= max(12).unwrap());
                prop_assert!(filter.get() >= value);
            }
        }
    }
}
