//! DualPI2: one queue for L4S packets, marked early, and one for the rest, whose marking probabilities are coupled.
//!
//! Source: RFC 9332, with the constants and the order of service of Linux `sch_dualpi2`. ECT(1) and CE go to queue L, the rest to
//! queue C. Every `update`, with `d` the larger waiting time of the two heads:
//! `p' = clamp(p' + ALPHA (d - target) + BETA (d - d before), 0, 1)`.
//! C is marked, or dropped from, with probability `p'^2`; L is marked with `COUPLING p'`, or if a packet waited longer than `step`.
//! Below two full packets of backlog only the step marks. Above `COUPLING p' = 1` the queue is overloaded: C drops what it would
//! mark, and L drops with `p'^2` and marks the rest.
//!
//! State: `p'`, `d` at the last update, and the credit of the weighted service. Missed updates are made up for at the next call:
//! between two calls the heads only grow older.

use ranpace_units::{Bytes, Ecn, Span, Time};

use crate::fifo::Fifo;
use crate::random::{self, Purpose, Random};
use crate::{DropCause, Limit, Observer, Packet, Queued};

/// Per second of waiting above the target, per update (Linux: 41 in units of 1/256).
const ALPHA: f64 = 41.0 / 256.0;
/// Per second of change in waiting, per update (Linux: 819 in units of 1/256).
const BETA: f64 = 819.0 / 256.0;
/// Coupling between the two queues; RFC 9332 section 4.1.
const COUPLING: f64 = 2.0;
/// Weights of L and C while both have packets (Linux `c_protection`: 10 %).
const WEIGHTS: (i64, i64) = (90, 10);
/// Below this backlog only the step marks (Linux `must_drop`: two full packets).
const SAFE: Bytes = Bytes::new(2 * 1_500);
/// Shortest update period. Ours: shorter ones would only cost time.
const SHORTEST_UPDATE: Span = Span::from_nanos(100_000);

/// Settings of the controller.
#[derive(Clone, Copy)]
pub(crate) struct DualPi2Law {
    pub target: Span,
    pub update: Span,
    pub step: Span,
}

/// Two queues under DualPI2.
pub struct DualPi2<P> {
    l4s: Fifo<P>,
    classic: Fifo<P>,
    limit: Limit,
    law: DualPi2Law,
    probability: f64,
    delay: Span,
    next_update: Time,
    /// Above zero, C is due.
    credit: i64,
    random: Random,
}

impl<P: Packet> DualPi2<P> {
    /// Empty queues with a common limit. `seed` is for the random marks and drops.
    pub(crate) fn new(limit: Limit, law: DualPi2Law, seed: u64) -> Self {
        let law = DualPi2Law { update: law.update.max(SHORTEST_UPDATE), ..law };
        Self {
            l4s: Fifo::new(),
            classic: Fifo::new(),
            limit,
            law,
            probability: 0.0,
            delay: Span::ZERO,
            next_update: Time::ZERO + law.update,
            credit: 0,
            random: random::stream(seed, Purpose::Queue),
        }
    }

    /// The base probability `p'`, from 0 to 1, as of the last push or pop.
    pub fn probability(&self) -> f64 {
        self.probability
    }

    /// See [`crate::Queue::push`].
    pub fn push(&mut self, now: Time, packet: P, observer: &mut impl Observer<P>) {
        self.catch_up(now);
        if !self.limit.holds(self.bytes() + packet.size(), self.packets() + 1) {
            observer.on_dropped(now, &packet, DropCause::Overflow);
            return;
        }
        observer.on_enqueued(now, &packet, self.bytes() + packet.size());
        let fifo = if packet.ecn().is_l4s() { &mut self.l4s } else { &mut self.classic };
        fifo.push(now, packet, false, &mut ());
    }

    /// See [`crate::Queue::pop`].
    pub fn pop(&mut self, now: Time, observer: &mut impl Observer<P>) -> Option<Queued<P>> {
        self.catch_up(now);
        loop {
            let backlog = self.bytes();
            let (mut queued, is_l4s) = self.serve()?;
            let waited = now.since(queued.enqueued);
            let action = self.judge(is_l4s, queued.packet.ecn(), waited, backlog);
            match action {
                Action::Pass => {}
                Action::Mark => {
                    queued.packet.set_ecn(Ecn::Ce);
                    queued.marked = true;
                }
                Action::Drop => {
                    observer.on_dropped(now, &queued.packet, DropCause::Aqm);
                    continue;
                }
            }
            return Some(queued);
        }
    }

    /// The next packet of the weighted service (Linux `dequeue_packet`), and whether it is of L.
    fn serve(&mut self) -> Option<(Queued<P>, bool)> {
        let both = self.l4s.packets() > 0 && self.classic.packets() > 0;
        let take_l4s = if both { self.credit <= 0 } else { self.l4s.packets() > 0 };
        let queued = if take_l4s { self.l4s.pop()? } else { self.classic.pop()? };
        let size = i64::try_from(queued.packet.size().get()).unwrap_or(i64::MAX / 100);
        self.credit = match (both, take_l4s) {
            (true, true) => self.credit + WEIGHTS.1 * size,
            (true, false) => self.credit - WEIGHTS.0 * size,
            (false, _) => 0,
        };
        Some((queued, take_l4s))
    }

    fn judge(&mut self, is_l4s: bool, ecn: Ecn, waited: Span, backlog: Bytes) -> Action {
        let stepped = is_l4s && waited > self.law.step;
        if backlog < SAFE {
            return if stepped { Action::Mark } else { Action::Pass };
        }
        let overloaded = COUPLING * self.probability > 1.0;
        let squared = self.probability * self.probability;
        match (is_l4s, overloaded) {
            (true, true) if random::chance(&mut self.random, squared) => Action::Drop,
            (true, true) => Action::Mark,
            (true, false) if stepped => Action::Mark,
            (true, false) if random::chance(&mut self.random, COUPLING * self.probability) => Action::Mark,
            (false, _) if random::chance(&mut self.random, squared) => {
                if ecn.is_capable() && !overloaded {
                    Action::Mark
                } else {
                    Action::Drop
                }
            }
            _ => Action::Pass,
        }
    }

    /// Makes the updates that are due by `now`, each with the heads' waiting times at its instant.
    #[inline]
    fn catch_up(&mut self, now: Time) {
        if self.next_update <= now {
            self.update_until(now);
        }
    }

    fn update_until(&mut self, now: Time) {
        let oldest = [self.l4s.oldest(), self.classic.oldest()].into_iter().flatten().min();
        while self.next_update <= now {
            let delay = oldest.map_or(Span::ZERO, |oldest| self.next_update.since(oldest));
            let before = (self.probability, self.delay);
            self.step(delay);
            self.next_update += self.law.update;
            if before == (self.probability, self.delay) {
                // An empty queue whose state changes no more: missed updates are skipped.
                if oldest.is_none() {
                    let missed = now.since(self.next_update).as_nanos() / self.law.update.as_nanos();
                    self.next_update += self.law.update * missed;
                }
            }
        }
    }

    /// One update.
    fn step(&mut self, delay: Span) {
        let seconds = |span: Span| span.as_nanos() as f64 / 1e9;
        let proportional = ALPHA * (seconds(delay) - seconds(self.law.target));
        let differential = BETA * (seconds(delay) - seconds(self.delay));
        self.probability = (self.probability + proportional + differential).clamp(0.0, 1.0);
        self.delay = delay;
    }

    /// Bytes waiting.
    #[inline]
    pub fn bytes(&self) -> Bytes {
        self.l4s.bytes() + self.classic.bytes()
    }

    /// Number of waiting packets.
    #[inline]
    pub fn packets(&self) -> usize {
        self.l4s.packets() + self.classic.packets()
    }

    pub(crate) fn take(&mut self) -> Option<Queued<P>> {
        self.l4s.pop().or_else(|| self.classic.pop())
    }
}

enum Action {
    Pass,
    Mark,
    Drop,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Log, TestPacket};

    const MS: Span = Span::from_millis(1);
    const LAW: DualPi2Law = DualPi2Law {
        target: Span::from_millis(15),
        update: Span::from_millis(16),
        step: Span::from_millis(1),
    };

    fn queue() -> DualPi2<TestPacket> {
        DualPi2::new(Limit::Packets(10_000), LAW, 1)
    }

    fn packet(flow: u32, ecn: Ecn) -> TestPacket {
        TestPacket { ecn, ..TestPacket::new(flow, 1500) }
    }

    #[test]
    fn the_probability_follows_the_controller() {
        let mut queue = queue();
        for (ms, expected) in [
            (30, 0.098_379),
            (30, 0.100_781),
            (20, 0.069_590),
            (10, 0.036_797),
            (10, 0.035_996),
            (0, 0.001_602),
        ] {
            queue.step(MS * ms);
            assert!((queue.probability - expected).abs() < 1e-6, "{} is not {expected}", queue.probability);
            if expected == 0.098_379 {
                let squared = queue.probability * queue.probability;
                assert!((squared - 0.009_678).abs() < 1e-6, "{squared}");
                assert!((COUPLING * queue.probability - 0.196_758).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn updates_are_made_at_their_instants_however_late() {
        let (mut late, mut log) = (queue(), Log::default());
        late.push(Time::from_millis(1), packet(0, Ecn::Ect0), &mut log);
        let mut punctual = queue();
        punctual.push(Time::from_millis(1), packet(0, Ecn::Ect0), &mut log);
        for ms in (16..400).step_by(16) {
            punctual.catch_up(Time::from_millis(ms));
        }
        late.catch_up(Time::from_millis(399));
        assert_eq!((late.probability, late.next_update), (punctual.probability, punctual.next_update));
        assert!(late.probability > 0.5, "{}", late.probability);
    }

    #[test]
    fn l4s_packets_that_waited_longer_than_the_step_are_marked() {
        let mut log = Log::default();
        for (wait, ecn, marked) in [
            (MS, Ecn::Ect1, false),
            (MS * 2, Ecn::Ect1, true),
            (MS * 2, Ecn::Ect0, false),
            (MS * 2, Ecn::NotEct, false),
        ] {
            let mut queue = queue();
            queue.push(Time::ZERO, packet(0, ecn), &mut log);
            let queued = queue.pop(Time::ZERO + wait, &mut log).unwrap();
            assert_eq!(
                (queued.marked, queued.packet.ecn == Ecn::Ce),
                (marked, marked),
                "{ecn:?} after {wait}"
            );
        }
    }

    #[test]
    fn while_both_wait_the_classic_queue_gets_a_tenth() {
        let (mut queue, mut log) = (queue(), Log::default());
        for _ in 0..1_000 {
            queue.push(Time::ZERO, packet(0, Ecn::Ect0), &mut log);
            queue.push(Time::ZERO, packet(1, Ecn::Ect1), &mut log);
        }
        let classic =
            (0..1_000).filter(|_| queue.pop(Time::ZERO, &mut log).unwrap().packet.flow == 0).count();
        assert_eq!(classic, 100);
    }

    #[test]
    fn at_overload_marks_no_longer_replace_drops() {
        for (probability, ecn, drops, marks) in [
            (0.4, Ecn::Ect0, false, 0.16),
            (0.6, Ecn::Ect0, true, 0.0),
            (0.4, Ecn::NotEct, true, 0.0),
            (0.4, Ecn::Ect1, false, 0.8),
            (0.6, Ecn::Ect1, true, 1.0),
        ] {
            let (mut queue, mut log) = (queue(), Log::default());
            for _ in 0..2_000 {
                queue.push(Time::ZERO, packet(0, ecn), &mut log);
            }
            queue.probability = probability;
            let left: Vec<bool> =
                std::iter::from_fn(|| queue.pop(Time::ZERO, &mut log)).map(|queued| queued.marked).collect();
            assert_eq!(!log.dropped.is_empty(), drops, "{probability}, {ecn:?}");
            let share = left.iter().filter(|marked| **marked).count() as f64 / left.len() as f64;
            assert!((share - marks).abs() < 0.03, "{probability}, {ecn:?}: {share}");
        }
    }
}
