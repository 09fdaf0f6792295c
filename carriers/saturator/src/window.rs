//! The window: the number of packets kept in flight.

use ranpace_units::{Span, Time};

/// The window: packets that may be in flight.
///
/// Source: Winstein et al., NSDI 2013, section 4.1: a window that keeps the round trip above 750 ms and below 3 s. How it grows and
/// shrinks is ours: below the lower bound it grows by one for each acknowledgement, which doubles it every round trip; above the
/// upper one it shrinks, once per round trip, to what would have taken [`Self::AIM`].
#[derive(Clone, Debug)]
pub struct Window {
    packets: u64,
    most: u64,
    shrinks_again: Time,
}

impl Window {
    /// Below this the queue may run empty.
    pub const LOWER: Span = Span::from_millis(750);
    /// Above this the queue is longer than necessary.
    pub const UPPER: Span = Span::from_millis(3_000);
    /// Round trip to which a window that is too large is reduced.
    pub const AIM: Span = Span::from_millis(2_000);
    /// Initial and smallest window.
    pub const LEAST: u64 = 20;

    /// A window of at most `most` packets.
    pub fn new(most: u64) -> Self {
        let most = most.max(Self::LEAST);
        Self { packets: Self::LEAST, most, shrinks_again: Time::ZERO }
    }

    /// A packet's round trip took `rtt`.
    pub fn on_round_trip(&mut self, now: Time, rtt: Span) {
        if rtt < Self::LOWER {
            self.packets = (self.packets + 1).min(self.most);
        } else if rtt > Self::UPPER && now >= self.shrinks_again {
            let aim = self.packets as f64 * Self::AIM.ratio(rtt);
            self.packets = (aim as u64).max(Self::LEAST);
            // What is in flight now was sent under the old window.
            self.shrinks_again = now + rtt;
        }
    }

    /// Packets that may be in flight.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns whether it cannot grow any more.
    pub fn is_full(&self) -> bool {
        self.packets == self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// A link that delivers `rate(t)` packets each millisecond from an endless queue, with a return delay of `delay` ms.
    fn run(seconds: u64, delay: u64, rate: impl Fn(u64) -> u64) -> Vec<(u64, u64)> {
        let (mut window, mut queue, mut back) = (Window::new(100_000), VecDeque::new(), VecDeque::new());
        let (mut under_way, mut seen) = (0, Vec::new());
        for ms in 0..seconds * 1000 {
            for _ in 0..rate(ms) {
                if let Some(sent) = queue.pop_front() {
                    back.push_back((ms + delay, sent));
                }
            }
            while let Some(&(_, sent)) = back.front().filter(|(at, _)| *at <= ms) {
                back.pop_front();
                under_way -= 1;
                window.on_round_trip(Time::from_millis(ms), Span::from_millis(ms - sent));
                seen.push((ms, ms - sent));
            }
            while under_way < window.packets() {
                queue.push_back(ms);
                under_way += 1;
            }
        }
        seen
    }

    #[test]
    fn round_trips_settle_between_the_bounds() {
        for (case, delay, per_ms) in [("slow", 50, 1), ("fast", 20, 20), ("far", 600, 4)] {
            let seen = run(20, delay, |ms| u64::from(ms % 2 == 0) * per_ms * 2);
            let late = seen.iter().filter(|(at, _)| *at > 10_000).map(|(_, rtt)| *rtt);
            let (least, most) = (late.clone().min().unwrap(), late.max().unwrap());
            assert!(least >= 740 && most <= 3_000, "{case}: {least} to {most}");
        }
    }

    #[test]
    fn a_link_that_slows_down_makes_it_shrink() {
        let seen = run(120, 20, |ms| if ms < 10_000 { 10 } else { u64::from(ms % 4 == 0) });
        // The queue from before the change must drain first, at a fortieth of the speed.
        let last = seen.last().unwrap().1;
        assert!(last <= 3_100, "{last}");
    }

    #[test]
    fn it_keeps_its_bounds() {
        let mut window = Window::new(30);
        (0..99).for_each(|ms| window.on_round_trip(Time::from_millis(ms), Span::from_millis(1)));
        assert_eq!((window.packets(), window.is_full()), (30, true));
        for second in 1..99 {
            window.on_round_trip(Time::from_secs(second * 10), Span::from_secs(5));
        }
        assert_eq!(window.packets(), Window::LEAST);
        assert_eq!(Window::new(0).packets(), Window::LEAST);
    }
}
