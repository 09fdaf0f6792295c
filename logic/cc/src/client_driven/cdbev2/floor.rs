//! `drain-ref=robust`, ours: keeps a probe's gain if there is no queue, and gives it up if there is one.
//!
//! The thesis's DRAIN keeps either part of what a probe gained (`live`: many flows ratchet their queue up) or none (`pre`:
//! where jitter or a new route keeps RTTs above RTT_min, a DRAIN to `BW RTT_min` goes below the true BDP each time and the
//! rate decays). The two cases differ in whether a deep DRAIN shortens RTTs: a queue of flows that all drain shrinks, jitter
//! and distance do not. **The rule**: the floor is the smallest smoothed RTT since the last deep DRAIN but two. While the
//! smoothed RTT is within a tenth of it, there is no queue, and DRAIN and GROW use the largest report and the floor;
//! otherwise there is one, and they use the bandwidth before the probe and RTT_min.

use ranpace_units::Span;

/// Periods between deep DRAINs that the floor covers. With two, flows that join a queue take it for the path (seven at
/// 120 ms); with more, a longer route is recognised later.
const PERIODS: usize = 3;
/// Smoothing of the RTT, as in RFC 6298.
const SMOOTHING: u64 = 8;
/// A smoothed RTT above this multiple of the floor, in tenths, is a queue.
const CLEAR_TENTHS: u64 = 11;

/// The smoothed RTT and its smallest values.
#[derive(Clone, Copy, Debug)]
pub struct Floor {
    /// [`Span::MAX`] before the first RTT, as are all the others.
    smoothed: Span,
    smallest: [Span; PERIODS],
}

impl Default for Floor {
    fn default() -> Self {
        Self { smoothed: Span::MAX, smallest: [Span::MAX; PERIODS] }
    }
}

impl Floor {
    /// Records an RTT of a full segment.
    #[inline]
    pub fn take(&mut self, rtt: Span) {
        self.smoothed = if self.smoothed == Span::MAX {
            rtt
        } else {
            (self.smoothed * (SMOOTHING - 1) + rtt) / SMOOTHING
        };
        self.smallest[0] = self.smallest[0].min(self.smoothed);
    }

    /// A deep DRAIN begins: its RTTs belong to the next period.
    pub fn begin_period(&mut self) {
        self.smallest.rotate_right(1);
        self.smallest[0] = self.smoothed;
    }

    /// The path's RTT if there is no queue; `None` if there is one.
    pub fn clear(&self) -> Option<Span> {
        let floor = self.smallest.iter().copied().min().filter(|floor| *floor < Span::MAX)?;
        (self.smoothed <= floor.scale(CLEAR_TENTHS, 10)).then_some(floor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Span {
        Span::from_millis(ms)
    }

    fn settle(floor: &mut Floor, rtt: Span) {
        for _ in 0..200 {
            floor.take(rtt);
        }
    }

    #[test]
    fn a_queue_is_what_is_a_tenth_above_the_floor() {
        let mut floor = Floor::default();
        assert_eq!(floor.clear(), None, "nothing is known");
        for (case, rtt, clear) in [
            ("the first RTT", ms(60), true),
            ("a tenth", ms(66) - Span::from_micros(1), true),
            ("more than a tenth", ms(67), false),
            ("back", ms(60), true),
        ] {
            settle(&mut floor, rtt);
            assert_eq!(floor.clear().is_some(), clear, "{case}");
        }
        // A single short RTT, as jitter produces, sets no floor.
        floor.take(ms(20));
        assert!(floor.clear().is_some_and(|floor| floor.abs_diff(ms(55)) < Span::from_micros(1)));
    }

    #[test]
    fn a_longer_route_is_believed_when_three_deep_drains_have_not_shown_the_old_one() {
        let mut floor = Floor::default();
        settle(&mut floor, ms(60));
        settle(&mut floor, ms(80));
        for periods in 1..=3 {
            assert_eq!(floor.clear(), None, "{periods}");
            floor.begin_period();
            settle(&mut floor, ms(80));
        }
        assert!(floor.clear().is_some_and(|floor| floor.abs_diff(ms(80)) < Span::from_micros(1)));
    }

    #[test]
    fn a_queue_that_a_deep_drain_empties_stays_one() {
        let mut floor = Floor::default();
        settle(&mut floor, ms(24));
        for _ in 0..10 {
            settle(&mut floor, ms(40));
            assert_eq!(floor.clear(), None);
            floor.begin_period();
            settle(&mut floor, ms(25)); // the others drain as well
        }
    }
}
