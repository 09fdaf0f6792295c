//! Timer slack: how exactly the loop keeps to instants that follow each other closely.
//!
//! On a link of a fixed rate each packet arrives at its own instant, 24 us apart at 500 Mbit/s, and waking a thread takes about as
//! long. The loop wakes for single instants only while they are rare enough for the cost to be bearable. Beyond that it polls, as a
//! network driver with interrupt moderation does: it wakes at the next multiple of the slack, reads what hosts have sent since the
//! last poll, and delivers everything due by then. A packet is then late by less than the slack, and a packet from a host counts
//! from the last poll, so it is early by less than the slack.
//!
//! ATM's generic cell rate algorithm decides whether an instant gets a wakeup of its own (ITU-T I.371, virtual scheduling): a credit
//! of one instant per spacing, of which a few can be saved.

use ranpace_units::{Span, Time};

use crate::delivery::Delivery;

/// The next wakeup of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wakeup {
    /// At this instant, or when a host sends something.
    At(Time),
    /// At this poll, whatever hosts send.
    Poll(Time),
}

/// Decides between wakeups for single instants and polls.
#[derive(Debug)]
pub struct Slack {
    /// Interval between polls; zero without polls.
    span: Span,
    /// Instants at least this far apart get wakeups of their own.
    spacing: Span,
    /// When the instants so far would have ended, had each come one spacing after the previous one.
    booked: Time,
}

impl Slack {
    /// Longest slack, and the same with `--gro`, where only rates matter. Ours: with these a fixed link of 500 Mbit/s takes 1.0 to
    /// 1.4 times the CPU time of a trace, which delivers once per 1 ms (docs/performance.md). A packet may be 1 ms late in a valid
    /// run ([`crate::LATE`]). Delays in multiples of 5 and of 1 ms are multiples of them, so that acknowledgements sent at a poll
    /// arrive at one.
    const LONGEST: [Span; 2] = [Span::from_nanos(312_500), Span::from_micros(500)];
    /// The slack is at most this part of the base RTT, and the same with `--gro`. Ours: the longest slack applies from 20 ms on.
    const PART_OF_RTT: [u64; 2] = [64, 40];
    /// Shortest slack. Ours: a wakeup of its own is equally late (20 to 50 us).
    const SHORTEST: Span = Span::from_micros(50);
    /// Instants at least this far apart get wakeups of their own, except with `--gro`, which polls if they come more often than
    /// once per slack. Ours: links up to 120 Mbit/s keep their instants. There a slack hardly batches packets, and BBR, which uses
    /// the largest rate it has seen, overestimates by what a poll delivers at once: over 100 Mbit/s and 20 ms its mean RTT was 31
    /// ms instead of 25.
    const SPACING: Span = Span::from_micros(50);
    /// Instants that can be saved up. Ours: those within one millisecond of a trace.
    const SAVED: u64 = 20;

    /// For paths with at least this base RTT.
    pub fn for_rtt(base: Span, delivery: Delivery) -> Self {
        let which = usize::from(delivery == Delivery::Gro);
        let span = (base / Self::PART_OF_RTT[which]).clamp(Self::SHORTEST, Self::LONGEST[which]);
        let spacing = if delivery == Delivery::Gro { span } else { Self::SPACING };
        Self { span, spacing, booked: Time::ZERO }
    }

    /// Never polls.
    pub fn none() -> Self {
        Self { span: Span::ZERO, spacing: Span::ZERO, booked: Time::ZERO }
    }

    /// The most by which polls delay packets.
    pub fn span(&self) -> Span {
        self.span
    }

    /// Records that this many instants were processed at `now`.
    pub fn book(&mut self, now: Time, instants: u64) {
        let next = self.booked.max(now) + self.spacing * instants;
        self.booked = next.min(now + self.spacing * (Self::SAVED + 1));
    }

    /// When to wake for an event due at `next`.
    pub fn wakeup(&self, next: Time) -> Wakeup {
        let has_credit = next >= self.booked - self.spacing * Self::SAVED;
        if self.span.is_zero() || next == Time::MAX || has_credit {
            return Wakeup::At(next);
        }
        Wakeup::Poll(Time::ZERO + self.span * (next - Time::ZERO).as_nanos().div_ceil(self.span.as_nanos()))
    }

    /// The last polling instant up to `now`.
    pub fn last_poll(&self, now: Time) -> Time {
        now - (now - Time::ZERO) % self.span
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn slack(rtt: Span) -> Slack {
        Slack::for_rtt(rtt, Delivery::Gso)
    }

    fn micros(us: u64) -> Time {
        Time::ZERO + Span::from_micros(us)
    }

    /// Processes instants as the loop does, on a machine that wakes a thread this late: lateness of each instant, and wakeups.
    fn play(mut slack: Slack, instants: &[Time], wakes_late: Span) -> (Vec<Span>, u64) {
        let (mut late, mut wakeups, mut now) = (Vec::new(), 0, Time::ZERO);
        while let Some(&next) = instants.get(late.len()) {
            let (Wakeup::At(at) | Wakeup::Poll(at)) = slack.wakeup(next);
            if at > now {
                now = at + wakes_late;
                wakeups += 1;
            }
            let polls = matches!(slack.wakeup(next), Wakeup::Poll(_));
            let until = if polls { slack.last_poll(now) } else { now };
            let due = instants[late.len()..].iter().take_while(|at| **at <= until).count();
            assert!(due > 0, "{next} at {now}");
            late.extend(instants[late.len()..][..due].iter().map(|at| now - *at));
            slack.book(now, due as u64);
        }
        (late, wakeups)
    }

    #[test]
    fn instants_that_come_thick_share_wakeups_and_others_have_their_own() {
        let every = |us: u64, count: u64| (1..=count).map(|at| micros(at * us)).collect::<Vec<_>>();
        // 1500 B at 500, 100 and 20 Mbit/s for a second, and what they share: 3,200 or 2,000 polls, and those before the credit is used
        // (20 instants, of which each that comes after 24 us takes 26 of 50 us more than it brings: 39).
        for (delivery, spacing, count, most) in [
            (Delivery::Gso, 24, 41_667, 3_240),
            (Delivery::Gso, 120, 8_333, 8_333),
            (Delivery::Gro, 24, 41_667, 2_030),
            (Delivery::Gro, 120, 8_333, 2_030),
            (Delivery::Gro, 600, 1_667, 1_667),
        ] {
            let slack = Slack::for_rtt(Span::from_millis(20), delivery);
            let span = slack.span();
            let (late, wakeups) = play(slack, &every(spacing, count), Span::ZERO);
            assert!(wakeups <= most, "{delivery:?}, every {spacing} us: {wakeups}");
            assert!(late.iter().all(|late| *late < span), "{delivery:?}, every {spacing} us");
            assert_eq!(
                late.iter().all(|late| late.is_zero()),
                most == count,
                "{delivery:?}, every {spacing} us"
            );
        }
        // A trace: data at the millisecond, acknowledgements and late responses after them.
        let trace = (1..=1000).flat_map(|ms| [0, 60, 130].map(|us| micros(ms * 1000 + us)));
        let (late, wakeups) = play(slack(Span::from_millis(20)), &trace.collect::<Vec<_>>(), Span::ZERO);
        assert_eq!(wakeups, 3_000);
        assert!(late.iter().all(|late| late.is_zero()));
        // After a pause the first ones have wakeups of their own again.
        let later = (0..4).map(|number| micros(100_000 + number * 24)).collect();
        let (late, _) = play(slack(Span::from_millis(20)), &[every(24, 1000), later].concat(), Span::ZERO);
        assert!(!late[999].is_zero() && late[1000..].iter().all(|late| late.is_zero()), "{:?}", &late[999..]);
    }

    #[test]
    fn a_slack_is_a_part_of_the_rtt_within_bounds() {
        for (rtt, each, joined) in [
            (0, 50_000, 50_000),
            (3_000, 50_000, 75_000),
            (6_400, 100_000, 160_000),
            (20_000, 312_500, 500_000),
            (300_000, 312_500, 500_000),
        ] {
            let span = |delivery| Slack::for_rtt(Span::from_micros(rtt), delivery).span().as_nanos();
            let spans = [Delivery::Gso, Delivery::Single, Delivery::Gro].map(span);
            assert_eq!(spans, [each, each, joined], "{rtt} us");
        }
        let mut none = Slack::none();
        (0..1000).for_each(|_| none.book(micros(5), 1));
        assert_eq!(none.wakeup(micros(6)), Wakeup::At(micros(6)));
    }

    #[test]
    fn there_is_no_poll_for_what_never_happens() {
        let mut slack = slack(Span::ZERO);
        slack.book(micros(1), 1000);
        assert_eq!(slack.wakeup(Time::MAX), Wakeup::At(Time::MAX));
        assert_eq!(slack.wakeup(micros(2)), Wakeup::Poll(micros(50)));
        assert_eq!(slack.wakeup(micros(50)), Wakeup::Poll(micros(50)));
        assert_eq!((slack.last_poll(micros(99)), slack.last_poll(micros(100))), (micros(50), micros(100)));
    }

    proptest! {
        /// Whatever the instants, each is late by less than the slack and the time of a wakeup, and there are at most one wakeup
        /// per spacing, the saved ones, and a poll per slack.
        #[test]
        fn lateness_and_wakeups_are_bounded(gaps in prop::collection::vec(0..60_u64, 1..1000), wakes_late in 0..60_u64) {
            let mut at = 0;
            let instants: Vec<Time> = gaps.iter().map(|gap| { at += gap; micros(at + 1) }).collect();
            let slack = slack(Span::from_millis(100));
            let span = slack.span();
            let (late, wakeups) = play(slack, &instants, Span::from_micros(wakes_late));
            prop_assert!(late.iter().all(|late| *late < span + Span::from_micros(wakes_late)));
            let own = at / Slack::SPACING.as_micros() + Slack::SAVED + 2;
            prop_assert!(wakeups <= own + at * 1_000 / span.as_nanos());
        }
    }
}
