//! L4Span's marking at a base station: packets are marked as they arrive, by whether the bytes waiting can leave within a target.
//!
//! Source: L4Span (public code and abstract; as understood). The rate at which packets have lately left is estimated from reports of
//! what was transmitted, of which this queue makes one for each millisecond in which packets leave and others wait; each transmitted
//! packet gets the rate of its report. With `r` and `s` the mean and standard deviation over the last 50 packets and `N` the bytes waiting:
//! `need = N / target`; an L4S packet is marked with probability `clamp((need - r + s) / (2 s), 0, 1)`; with `s = 0`, if `need > r`.
//!
//! ECT(0): the published rule, `(10220 B / N)^2` above 225 kB over the number of users, becomes weaker as the queue grows. Ours:
//! `min(1, (N / 225 kB - 1)^2)` above 225 kB, for a queue serves one bearer. Without a report for
//! 100 ms while packets wait, the probability of L4S packets does not rise; after 1 s it is zero (ours). Packets are never dropped but
//! for the limit.
//!
//! State: the report under way, the last 50 packets' rates, and the last probability.

use ranpace_units::{Bytes, Ecn, Span, Time};

use crate::fifo::Fifo;
use crate::random::{self, Purpose, Random};
use crate::{DropCause, Limit, Observer, Packet, Queued};

/// Packets over which the rate is averaged.
const PACKETS: usize = 50;
/// Shortest time of a report.
const REPORT: Span = Span::from_millis(1);
/// Bytes waiting above which ECT(0) is marked.
const CLASSIC: f64 = 225_000.0;
/// Without a report for this long, the probability does not rise. Ours.
const STALE: Span = Span::from_millis(100);
/// Without a report for this long, nothing is marked. Ours.
const LOST: Span = Span::SECOND;

/// A queue with L4Span's marks.
pub struct L4Span<P> {
    fifo: Fifo<P>,
    limit: Limit,
    target: Span,
    rates: Rates,
    /// What was transmitted since the last report, and when that was.
    sent: Bytes,
    sent_packets: usize,
    reported: Time,
    probability: f64,
    random: Random,
}

/// Rates of the last packets, in bytes per second.
#[derive(Default)]
struct Rates {
    last: Vec<f64>,
    next: usize,
}

impl Rates {
    fn push(&mut self, rate: f64) {
        if self.last.len() < PACKETS {
            self.last.push(rate);
        } else {
            self.last[self.next] = rate;
            self.next = (self.next + 1) % PACKETS;
        }
    }

    /// Mean and standard deviation; `None` before the first.
    fn spread(&self) -> Option<(f64, f64)> {
        let count = self.last.len() as f64;
        if self.last.is_empty() {
            return None;
        }
        let mean = self.last.iter().sum::<f64>() / count;
        let variance = self.last.iter().map(|rate| (rate - mean) * (rate - mean)).sum::<f64>() / count;
        Some((mean, variance.sqrt()))
    }
}

/// Probability of a mark if `need` of a rate with this mean and standard deviation is wanted.
fn share(need: f64, (mean, deviation): (f64, f64)) -> f64 {
    if deviation <= 0.0 {
        return if need > mean { 1.0 } else { 0.0 };
    }
    ((need - mean + deviation) / (2.0 * deviation)).clamp(0.0, 1.0)
}

impl<P: Packet> L4Span<P> {
    /// An empty queue. `seed` is for the random marks.
    pub fn new(limit: Limit, target: Span, seed: u64) -> Self {
        Self {
            fifo: Fifo::new(),
            limit,
            target: target.max(Span::from_nanos(1)),
            rates: Rates::default(),
            sent: Bytes::ZERO,
            sent_packets: 0,
            reported: Time::ZERO,
            probability: 0.0,
            random: random::stream(seed, Purpose::Queue),
        }
    }

    /// See [`crate::Queue::push`].
    pub fn push(&mut self, now: Time, mut packet: P, observer: &mut impl Observer<P>) {
        if !self.fifo.has_room(self.limit, &packet) {
            observer.on_dropped(now, &packet, DropCause::Overflow);
            return;
        }
        if self.fifo.packets() == 0 {
            // Nothing could be transmitted while nothing waited: a rate over that time would not be the link's.
            (self.sent, self.sent_packets, self.reported) = (Bytes::ZERO, 0, now);
        }
        let chance = match packet.ecn() {
            Ecn::NotEct => 0.0,
            Ecn::Ect0 => self.classic_chance(),
            Ecn::Ect1 | Ecn::Ce => self.l4s_chance(now),
        };
        let marked = chance > 0.0 && random::chance(&mut self.random, chance);
        if marked {
            packet.set_ecn(Ecn::Ce);
        }
        self.fifo.push(now, packet, marked, observer);
    }

    fn l4s_chance(&mut self, now: Time) -> f64 {
        let silent = now.since(self.reported);
        let Some(spread) = self.rates.spread().filter(|_| silent < LOST) else {
            self.probability = 0.0;
            return 0.0;
        };
        if self.fifo.packets() == 0 {
            self.probability = 0.0;
            return 0.0;
        }
        let need = self.fifo.bytes().as_f64() / self.target.as_secs_f64();
        let share = share(need, spread);
        self.probability = if silent > STALE { share.min(self.probability) } else { share };
        self.probability
    }

    fn classic_chance(&self) -> f64 {
        let beyond = self.fifo.bytes().as_f64() / CLASSIC - 1.0;
        if beyond <= 0.0 { 0.0 } else { (beyond * beyond).min(1.0) }
    }

    /// See [`crate::Queue::pop`].
    pub fn pop(&mut self, now: Time, _: &mut impl Observer<P>) -> Option<Queued<P>> {
        let queued = self.fifo.pop()?;
        if self.sent_packets == 0 {
            self.reported = now; // the link may have been busy with a packet of before
        }
        self.report(now);
        self.sent += queued.packet.size();
        self.sent_packets += 1;
        Some(queued)
    }

    /// Ends the report under way if it is long enough: its packets have the rate that it shows.
    fn report(&mut self, now: Time) {
        let length = now.since(self.reported);
        if length < REPORT {
            return;
        }
        let rate = self.sent.as_f64() / length.as_secs_f64();
        for _ in 0..self.sent_packets.min(PACKETS) {
            self.rates.push(rate);
        }
        (self.sent, self.sent_packets, self.reported) = (Bytes::ZERO, 0, now);
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
    use crate::testing::{Log, TestPacket};

    #[test]
    fn the_share_of_marks_grows_with_what_waits() {
        let mut rates = Rates::default();
        (0..25).for_each(|_| rates.push(2_000_000.0));
        (0..25).for_each(|_| rates.push(3_000_000.0));
        let spread = rates.spread().unwrap();
        assert_eq!(spread, (2_500_000.0, 500_000.0));
        for (waiting, expected) in
            [(20_000.0, 0.0), (22_000.0, 0.2), (25_000.0, 0.5), (28_000.0, 0.8), (30_000.0, 1.0)]
        {
            let found = share(waiting / 0.010, spread);
            assert!((found - expected).abs() < 1e-12, "{waiting} B: {found}");
        }
        assert_eq!((share(1.0, (1.0, 0.0)), share(1.1, (1.0, 0.0))), (0.0, 1.0));
    }

    #[test]
    fn classic_marks_begin_at_225_kb_and_grow_with_the_queue() {
        // The published share, (10220 B / N)^2, would be 0.002 at 225 kB and less with a longer queue.
        for (packets, expected) in [(150, 0.0), (225, 0.25), (300, 1.0), (400, 1.0)] {
            let mut queue = L4Span::new(Limit::Unlimited, Span::from_millis(10), 1);
            for _ in 0..packets {
                queue.push(Time::ZERO, TestPacket::new(0, 1500), &mut Log::default());
            }
            assert!(
                (queue.classic_chance() - expected).abs() < 1e-12,
                "{packets}: {}",
                queue.classic_chance()
            );
        }
    }

    #[test]
    fn at_a_constant_rate_the_target_is_a_step() {
        // 1500 B each 0.5 ms: 3000 B/ms, so 30 kB leave within 10 ms.
        let (mut queue, mut log) = (L4Span::new(Limit::Unlimited, Span::from_millis(10), 1), Log::default());
        let packet = || TestPacket { ecn: Ecn::Ect1, ..TestPacket::new(0, 1500) };
        let mut now = Time::ZERO;
        for _ in 0..10 {
            queue.push(now, packet(), &mut log);
        }
        for _ in 0..200 {
            now += Span::from_micros(500);
            queue.push(now, packet(), &mut log);
            assert!(!queue.pop(now, &mut log).unwrap().marked);
        }
        let marked: Vec<bool> = (0..20)
            .map(|_| {
                queue.push(now, packet(), &mut log);
                queue.probability > 0.5
            })
            .collect();
        assert_eq!(marked.iter().position(|marked| *marked), Some(11), "above 20 packets: {marked:?}");
    }

    /// 1500 B each millisecond.
    fn rate_of_a_backlog(queue: &mut L4Span<TestPacket>, log: &mut Log, start: Time) -> (f64, f64) {
        (0..100).for_each(|_| queue.push(start, TestPacket::new(0, 1500), log));
        for ms in 0..100 {
            queue.pop(start + Span::from_millis(ms), log).unwrap();
        }
        queue.rates.spread().unwrap()
    }

    #[test]
    fn time_without_a_packet_is_no_part_of_the_rate() {
        for gap in [Span::from_micros(500), Span::from_millis(20)] {
            let (mut queue, mut log) =
                (L4Span::new(Limit::Unlimited, Span::from_millis(10), 1), Log::default());
            let mut now = Time::ZERO;
            while now < Time::from_secs(1) {
                queue.push(now, TestPacket::new(0, 1500), &mut log);
                queue.pop(now, &mut log).unwrap();
                now += gap;
            }
            assert_eq!(queue.rates.spread(), None, "each {gap}");
            let (mean, deviation) = rate_of_a_backlog(&mut queue, &mut log, now);
            assert!(
                (mean - 1_500_000.0).abs() < 1e-3 && deviation < 1e-3,
                "each {gap}: {mean} and {deviation}"
            );
        }
    }

    #[test]
    fn a_report_begins_with_its_first_packet() {
        // The link is busy for another 0.6 ms when the first packet comes.
        let (mut queue, mut log) = (L4Span::new(Limit::Unlimited, Span::from_millis(10), 1), Log::default());
        (0..3).for_each(|_| queue.push(Time::ZERO, TestPacket::new(0, 1500), &mut log));
        for us in [600, 1_600, 2_600] {
            queue.pop(Time::ZERO + Span::from_micros(us), &mut log).unwrap();
        }
        assert!(
            queue.rates.last.iter().all(|rate| (rate - 1_500_000.0).abs() < 1e-3),
            "{:?}",
            queue.rates.last
        );
        assert_eq!(queue.rates.last.len(), 2);
    }

    #[test]
    fn without_reports_marks_become_no_more_and_then_none() {
        let (mut queue, mut log) = (L4Span::new(Limit::Unlimited, Span::from_millis(10), 1), Log::default());
        let packet = || TestPacket { ecn: Ecn::Ect1, ..TestPacket::new(0, 1500) };
        for ms in 0..60 {
            queue.push(Time::from_millis(ms), packet(), &mut log);
            queue.push(Time::from_millis(ms), packet(), &mut log);
            queue.pop(Time::from_millis(ms), &mut log);
        }
        assert_eq!(queue.l4s_chance(Time::from_millis(60)), 1.0);
        queue.probability = 0.25;
        assert_eq!(queue.l4s_chance(Time::from_millis(200)), 0.25, "stale: it does not rise");
        assert_eq!(queue.l4s_chance(Time::from_millis(1_100)), 0.0);
        assert_eq!(queue.classic_chance(), 0.0);
    }
}
