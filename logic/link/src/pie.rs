//! PIE: drops at the tail with a probability that a proportional-integral controller sets.
//!
//! Source: RFC 8033, with the optional parts that Linux `sch_pie` has: ECN (section 5.1), derandomisation
//! (section 5.4) and the cap on steps (section 5.5). State: the drop probability, the delay now and at the last
//! update, the burst allowance, and the accumulated probability.
//!
//! The delay is that of the last packet to leave, or zero if it left the queue empty: the timestamp variant of
//! section 4.3, the default in Linux. It needs no estimate of the departure rate, which suits links with a
//! varying rate. Updates are due at every multiple of `T_UPDATE`. The delay does not change between two calls,
//! so missed updates are made up for at the next call.

use ranpace_units::{Bytes, Ecn, Span, Time};

use crate::fifo::Fifo;
use crate::random::{self, Purpose, Random};
use crate::{DropCause, Limit, Observer, Packet, Queued};

/// Per second of delay above the target, per update; RFC 8033 section 4.2.
const ALPHA: f64 = 0.125;
/// Per second of change in delay, per update; RFC 8033 section 4.2.
const BETA: f64 = 1.25;
/// Divisors of the step for probabilities below the first number; RFC 8033 section 4.2.
const TUNING: [(f64, f64); 6] =
    [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)];
/// Factor on the probability in an update without delay; RFC 8033 section 4.2.
const DECAY: f64 = 0.98;
/// From the first number on, the probability increases by at most the second per update; RFC 8033 section 5.5.
const CAP: (f64, f64) = (0.1, 0.02);
/// Up to this probability packets are marked instead of dropped; RFC 8033 section 5.1.
const MARK_UP_TO: f64 = 0.1;
/// While the delay is below half of the target, nothing is dropped below this probability; RFC 8033 section 4.1.
const SAFE_BELOW: f64 = 0.2;
/// With at most this much waiting, nothing is dropped; RFC 8033 section 4.1, with its mean packet taken as a full one (as Linux).
const SAFE_BYTES: Bytes = Bytes::new(2 * 1500);
/// No drop before the first accumulated probability, and certain drop at the second; RFC 8033 section 5.4.
const GATHERED: (f64, f64) = (0.85, 8.5);
/// Shortest update period. Ours: shorter ones would only cost time.
const SHORTEST_UPDATE: Span = Span::from_nanos(100_000);

/// The state that an update changes; once it stays the same, updates can be skipped.
#[derive(Clone, Copy, PartialEq)]
struct Control {
    probability: f64,
    old_delay: Span,
    burst: Span,
}

/// A queue under PIE.
pub struct Pie<P> {
    fifo: Fifo<P>,
    limit: Limit,
    target: Span,
    update: Span,
    max_burst: Span,
    ecn: bool,
    control: Control,
    delay: Span,
    next_update: Time,
    gathered: f64,
    random: Random,
}

impl<P: Packet> Pie<P> {
    /// An empty queue with this limit; with `ecn`, capable packets are marked instead of dropped.
    pub fn new(limit: Limit, target: Span, update: Span, max_burst: Span, ecn: bool, seed: u64) -> Self {
        let update = update.max(SHORTEST_UPDATE);
        Self {
            fifo: Fifo::new(),
            limit,
            target,
            update,
            max_burst,
            ecn,
            control: Control { probability: 0.0, old_delay: Span::ZERO, burst: max_burst },
            delay: Span::ZERO,
            next_update: Time::ZERO + update,
            gathered: 0.0,
            random: random::stream(seed, Purpose::Queue),
        }
    }

    /// The drop probability, from 0 to 1, as of the last push or pop.
    pub fn probability(&self) -> f64 {
        self.control.probability
    }

    /// See [`crate::Queue::push`].
    #[inline]
    pub fn push(&mut self, now: Time, mut packet: P, observer: &mut impl Observer<P>) {
        self.catch_up(now);
        if !self.fifo.has_room(self.limit, &packet) {
            observer.on_dropped(now, &packet, DropCause::Overflow);
            self.gathered = 0.0;
            return;
        }
        let chosen = self.chooses();
        let marked =
            chosen && self.ecn && packet.ecn().is_capable() && self.control.probability <= MARK_UP_TO;
        if marked {
            packet.set_ecn(Ecn::Ce);
        } else if chosen {
            observer.on_dropped(now, &packet, DropCause::Aqm);
            return;
        }
        self.fifo.push(now, packet, marked, observer);
    }

    /// Returns whether to drop (or mark) the arriving packet; RFC 8033 sections 4.1, 4.4 and 5.4.
    fn chooses(&mut self) -> bool {
        let Control { probability, old_delay, burst } = self.control;
        if !burst.is_zero()
            || (old_delay < self.target / 2 && probability < SAFE_BELOW)
            || self.fifo.bytes() <= SAFE_BYTES
        {
            return false;
        }
        if probability == 0.0 {
            self.gathered = 0.0;
        }
        self.gathered += probability;
        if self.gathered < GATHERED.0 {
            return false;
        }
        let chosen = self.gathered >= GATHERED.1 || random::chance(&mut self.random, probability);
        if chosen {
            self.gathered = 0.0;
        }
        chosen
    }

    /// See [`crate::Queue::pop`].
    #[inline]
    pub fn pop(&mut self, now: Time, _observer: &mut impl Observer<P>) -> Option<Queued<P>> {
        self.catch_up(now);
        let queued = self.fifo.pop()?;
        self.delay = if self.fifo.packets() == 0 { Span::ZERO } else { now.since(queued.enqueued) };
        Some(queued)
    }

    /// Runs the updates that are due.
    #[inline]
    fn catch_up(&mut self, now: Time) {
        while self.next_update <= now && self.next_update != Time::MAX {
            let before = self.control;
            self.step();
            self.next_update += self.update;
            if self.control == before && self.next_update <= now {
                // The state no longer changes, so skip the missed updates.
                let missed = now.since(self.next_update).as_nanos() / self.update.as_nanos();
                self.next_update += self.update * missed;
            }
        }
    }

    /// One update; RFC 8033 sections 4.2 and 4.4.
    fn step(&mut self) {
        let Control { probability, old_delay, burst } = self.control;
        let seconds = |span: Span| span.as_nanos() as f64 / 1e9;
        let mut step = ALPHA * (seconds(self.delay) - seconds(self.target))
            + BETA * (seconds(self.delay) - seconds(old_delay));
        if let Some((_, divisor)) = TUNING.iter().find(|(below, _)| probability < *below) {
            step /= divisor;
        }
        if probability >= CAP.0 && step > CAP.1 {
            step = CAP.1;
        }
        let mut next = probability + step;
        if self.delay.is_zero() && old_delay.is_zero() {
            next *= DECAY;
        }
        let next = next.clamp(0.0, 1.0);
        let is_calm = next == 0.0 && self.delay < self.target / 2 && old_delay < self.target / 2;
        let burst = if is_calm { self.max_burst } else { burst - self.update };
        self.control = Control { probability: next, old_delay: self.delay, burst };
    }

    /// Bytes waiting.
    #[inline]
    pub fn bytes(&self) -> Bytes {
        self.fifo.bytes()
    }

    /// Number of waiting packets.
    #[inline]
    pub fn packets(&self) -> usize {
        self.fifo.packets()
    }

    pub(crate) fn take(&mut self) -> Option<Queued<P>> {
        self.fifo.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::QueueConfig;
    use crate::testing::{Log, TestPacket, closed_loop};

    const MS: Span = Span::from_millis(1);

    fn standard(ecn: bool) -> Pie<TestPacket> {
        Pie::new(Limit::Unlimited, MS * 15, MS * 15, MS * 150, ecn, 1)
    }

    #[test]
    fn an_answering_source_is_held_at_the_target() {
        let run = closed_loop(QueueConfig::pie(Limit::Unlimited), 4, 60);
        assert!(run.mean_wait > MS * 10 && run.mean_wait < MS * 22, "{:?}", run.mean_wait);
        assert!(run.utilisation > 0.9, "{}", run.utilisation);
    }

    #[test]
    fn steps_follow_the_equation() {
        // RFC 8033 section 4.2: alpha (q - target) + beta (q - q_old), divided by 2048 at first.
        let mut pie = standard(false);
        pie.delay = MS * 35;
        pie.step();
        let first = (0.125 * 0.020 + 1.25 * 0.035) / 2048.0;
        assert!((pie.probability() - first).abs() < 1e-15);
        pie.step(); // now between 1e-5 and 1e-4
        assert!((pie.probability() - first - 0.125 * 0.020 / 128.0).abs() < 1e-15);
        pie.control.probability = 0.5;
        pie.delay = MS * 200;
        pie.step();
        assert_eq!(pie.probability(), 0.52, "steps are capped above 10 %");
    }

    #[test]
    fn a_burst_passes_and_a_flood_does_not() {
        let (mut pie, mut log) = (standard(false), Log::default());
        // 2 packets in and 1 out per millisecond.
        let mut first = None;
        for ms in 0..3000 {
            let now = Time::from_millis(ms);
            pie.push(now, TestPacket::new(0, 1500), &mut log);
            pie.push(now, TestPacket::new(0, 1500), &mut log);
            pie.pop(now, &mut log);
            if first.is_none() && !log.dropped.is_empty() {
                first = Some(ms);
            }
        }
        assert!(first.unwrap() >= 150, "{first:?}");
        assert!(pie.packets() < 1500, "{}", pie.packets());
    }

    #[test]
    fn marks_replace_drops_at_low_probability() {
        let (mut pie, mut log) = (standard(true), Log::default());
        pie.control = Control { probability: 0.09, old_delay: MS * 20, burst: Span::ZERO };
        (0..200).for_each(|_| pie.push(Time::ZERO, TestPacket::ect(0, 1500), &mut log));
        assert!(log.dropped.is_empty());
        let marked = std::iter::from_fn(|| pie.take()).filter(|q| q.marked).count();
        assert!(marked > 5, "{marked}");
        pie.control.probability = 0.11;
        (0..200).for_each(|_| pie.push(Time::ZERO, TestPacket::ect(0, 1500), &mut log));
        assert!(log.dropped.len() > 5);
    }

    #[test]
    fn a_long_pause_is_made_up_for_quickly() {
        let (mut pie, mut log) = (standard(false), Log::default());
        pie.control.probability = 0.5;
        pie.push(Time::from_secs(1_000_000_000), TestPacket::new(0, 1500), &mut log);
        assert_eq!(pie.probability(), 0.0);
        assert!(pie.next_update > Time::from_secs(1_000_000_000));
    }
}
