//! CoDel: drops at the head of a queue whose minimum delay stays above the target.
//!
//! Source: RFC 8289 section 5 (its pseudocode); the constants' reasons in sections 4.2 to 4.4.
//! State: [`Control`]. A queue is either not dropping, and watches for an `INTERVAL` of delay above `TARGET`, or
//! dropping, at intervals of `INTERVAL / sqrt(count)`.
//!
//! With ECN, a packet that would be dropped is marked and passed on instead (section 1; as in Linux `codel_dequeue`),
//! and the control law continues with the next one.

use ranpace_units::{Bytes, Ecn, Span, Time};

use crate::fifo::Fifo;
use crate::{DropCause, Limit, Observer, Packet, Queued};

/// A queue with at most one packet of this size left is not dropped from; RFC 8289 section 4.2.
const MTU: Bytes = Bytes::new(1500);
/// Dropping that resumes within this many intervals continues near its last rate; RFC 8289 section 5.5.
const RESUME: u64 = 16;

/// Settings of the control law.
#[derive(Clone, Copy)]
pub(crate) struct ControlLaw {
    pub target: Span,
    pub interval: Span,
    pub ecn: bool,
    /// L4S packets that waited longer are marked, whatever the state.
    pub ce_threshold: Option<Span>,
}

impl ControlLaw {
    /// `t + INTERVAL / sqrt(count)`; RFC 8289 section 5.6.
    fn next(&self, t: Time, count: u32) -> Time {
        t + Span::from_nanos((self.interval.as_nanos() as f64 / f64::from(count).sqrt() + 0.5) as u64)
    }
}

/// State of one queue; names as in RFC 8289 section 5.2.
#[derive(Clone, Copy, Default)]
pub(crate) struct Control {
    /// When the delay will have been above the target for an interval; `None` while it is not above.
    first_above: Option<Time>,
    drop_next: Time,
    count: u32,
    last_count: u32,
    is_dropping: bool,
}

impl Control {
    /// Takes the next packet out of `fifo`, after dropping those that the control law selects; section 5.5.
    #[inline]
    pub fn dequeue<P: Packet>(
        &mut self,
        law: &ControlLaw,
        fifo: &mut Fifo<P>,
        now: Time,
        observer: &mut impl Observer<P>,
    ) -> Option<Queued<P>> {
        let mut queued = self.select(law, fifo, now, observer)?;
        if let Some(threshold) = law.ce_threshold
            && now.since(queued.enqueued) > threshold
            && queued.packet.ecn().is_l4s()
        {
            queued.packet.set_ecn(Ecn::Ce);
            queued.marked = true;
        }
        Some(queued)
    }

    #[inline]
    fn select<P: Packet>(
        &mut self,
        law: &ControlLaw,
        fifo: &mut Fifo<P>,
        now: Time,
        observer: &mut impl Observer<P>,
    ) -> Option<Queued<P>> {
        let (mut queued, mut may_drop) = self.look(law, fifo, now);
        if self.is_dropping {
            self.is_dropping = may_drop;
            while self.is_dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                if let Some(marked) = mark_or_drop(law, queued?, now, observer) {
                    self.drop_next = law.next(self.drop_next, self.count);
                    return Some(marked);
                }
                (queued, may_drop) = self.look(law, fifo, now);
                if may_drop {
                    self.drop_next = law.next(self.drop_next, self.count);
                } else {
                    self.is_dropping = false;
                }
            }
        } else if may_drop {
            self.is_dropping = true;
            let delta = self.count.saturating_sub(self.last_count);
            // A `drop_next` in the future is recent too.
            let is_recent = now.since(self.drop_next) < law.interval * RESUME;
            self.count = if delta > 1 && is_recent { delta } else { 1 };
            self.last_count = self.count;
            self.drop_next = law.next(now, self.count);
            match mark_or_drop(law, queued?, now, observer) {
                Some(marked) => return Some(marked),
                None => (queued, _) = self.look(law, fifo, now),
            }
        }
        queued
    }

    /// Takes the next packet, and determines whether it may be dropped (`dodequeue`, section 5.6).
    #[inline]
    fn look<P: Packet>(
        &mut self,
        law: &ControlLaw,
        fifo: &mut Fifo<P>,
        now: Time,
    ) -> (Option<Queued<P>>, bool) {
        let Some(queued) = fifo.pop() else {
            self.first_above = None;
            return (None, false);
        };
        if now.since(queued.enqueued) < law.target || fifo.bytes() <= MTU {
            self.first_above = None;
            return (Some(queued), false);
        }
        let first_above = *self.first_above.get_or_insert(now + law.interval);
        // If it was just set, it is an interval in the future.
        (Some(queued), now >= first_above && !law.interval.is_zero())
    }
}

/// The packet with a mark, or `None` if it was dropped.
fn mark_or_drop<P: Packet>(
    law: &ControlLaw,
    mut queued: Queued<P>,
    now: Time,
    observer: &mut impl Observer<P>,
) -> Option<Queued<P>> {
    if law.ecn && queued.packet.ecn().is_capable() {
        queued.packet.set_ecn(Ecn::Ce);
        queued.marked = true;
        return Some(queued);
    }
    observer.on_dropped(now, &queued.packet, DropCause::Aqm);
    None
}

/// A queue under CoDel.
pub struct CoDel<P> {
    fifo: Fifo<P>,
    limit: Limit,
    law: ControlLaw,
    control: Control,
}

impl<P: Packet> CoDel<P> {
    /// An empty queue with this limit.
    pub(crate) fn new(limit: Limit, law: ControlLaw) -> Self {
        Self { fifo: Fifo::new(), limit, law, control: Control::default() }
    }

    /// See [`crate::Queue::push`].
    #[inline]
    pub fn push(&mut self, now: Time, packet: P, observer: &mut impl Observer<P>) {
        if self.fifo.has_room(self.limit, &packet) {
            self.fifo.push(now, packet, false, observer);
        } else {
            observer.on_dropped(now, &packet, DropCause::Overflow);
        }
    }

    /// See [`crate::Queue::pop`].
    #[inline]
    pub fn pop(&mut self, now: Time, observer: &mut impl Observer<P>) -> Option<Queued<P>> {
        self.control.dequeue(&self.law, &mut self.fifo, now, observer)
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

    fn law(ecn: bool) -> ControlLaw {
        ControlLaw { target: MS * 5, interval: MS * 100, ecn, ce_threshold: None }
    }

    #[test]
    fn with_a_threshold_l4s_packets_are_marked_as_soon_as_they_waited_longer() {
        let law = ControlLaw { ce_threshold: Some(MS), ..law(true) };
        let (mut queue, mut log) = (CoDel::new(Limit::Unlimited, law), Log::default());
        for (wait, ecn, marked) in [
            (MS, Ecn::Ect1, false),
            (MS * 2, Ecn::Ect1, true),
            (MS * 2, Ecn::Ect0, false),
            (MS * 2, Ecn::NotEct, false),
        ] {
            queue.push(Time::ZERO, TestPacket { ecn, ..TestPacket::new(0, 1500) }, &mut log);
            assert_eq!(
                queue.pop(Time::ZERO + wait, &mut log).unwrap().marked,
                marked,
                "{ecn:?} after {wait}"
            );
        }
    }

    /// Pops one packet per millisecond from a queue whose delay is always `delay`, from `start` on.
    fn play(queue: &mut CoDel<TestPacket>, log: &mut Log, start: u64, end: u64, delay: u64) -> Vec<bool> {
        (start..end)
            .map(|ms| {
                // Refilled each time, so that the packet popped now was pushed `delay` ago.
                while queue.take().is_some() {}
                for _ in 0..40 {
                    queue.push(Time::from_millis(ms - delay), TestPacket::ect(0, 1500), log);
                }
                queue.pop(Time::from_millis(ms), log).unwrap().marked
            })
            .collect()
    }

    fn drop_times(log: &Log) -> Vec<u64> {
        log.dropped.iter().map(|d| d.0.as_millis()).collect()
    }

    #[test]
    fn drops_follow_the_inverse_square_root() {
        let (mut queue, mut log) = (CoDel::new(Limit::Unlimited, law(false)), Log::default());
        play(&mut queue, &mut log, 1000, 1500, 20);
        // Above the target from 1000 on; first drop an interval later, then 100/sqrt(1), 100/sqrt(2), ... apart.
        let mut expected = vec![1100];
        let mut next = 1100.0 + 100.0;
        for count in 2u32.. {
            if next >= 1499.5 {
                break;
            }
            expected.push((next - 1e-6_f64).ceil() as u64);
            next += 100.0 / f64::from(count).sqrt();
        }
        assert_eq!(drop_times(&log), expected);
        assert_eq!(&expected[..5], &[1100, 1200, 1271, 1329, 1379]);
    }

    #[test]
    fn dropping_resumes_where_it_was_if_soon() {
        // Drops at 1100, 1200, 1271, 1329, 1379: count is 5 when dropping ends at 1380, and drop_next is 1423.
        for (case, pause, expected) in [
            // Dropping starts again at 1700: delta = 5 - 1 = 4, so the next drop comes 100/sqrt(4) = 50 ms later.
            ("soon", 1600, vec![1700, 1750]),
            // 16 intervals after drop_next is slightly after 3023: dropping that starts later starts over.
            ("just in time", 2923, vec![3023, 3073]),
            ("late", 2924, vec![3024, 3124]),
        ] {
            let (mut queue, mut log) = (CoDel::new(Limit::Unlimited, law(false)), Log::default());
            play(&mut queue, &mut log, 1000, 1380, 20);
            play(&mut queue, &mut log, 1380, 1400, 1);
            log.dropped.clear();
            play(&mut queue, &mut log, pause, pause + 300, 20);
            assert_eq!(&drop_times(&log)[..2], &expected, "{case}");
        }
    }

    #[test]
    fn below_the_target_or_one_packet_nothing_is_dropped() {
        let (mut queue, mut log) = (CoDel::new(Limit::Unlimited, law(false)), Log::default());
        play(&mut queue, &mut log, 1000, 2000, 4);
        assert!(log.dropped.is_empty());
        for ms in 2000..3000 {
            while queue.take().is_some() {}
            queue.push(Time::from_millis(ms - 50), TestPacket::new(0, 1500), &mut log);
            queue.push(Time::from_millis(ms - 50), TestPacket::new(0, 1500), &mut log);
            queue.pop(Time::from_millis(ms), &mut log);
        }
        assert!(log.dropped.is_empty(), "one full packet stays behind each time");
    }

    #[test]
    fn capable_packets_are_marked_at_the_same_times() {
        let (mut queue, mut log) = (CoDel::new(Limit::Unlimited, law(true)), Log::default());
        let marked = play(&mut queue, &mut log, 1000, 1390, 20);
        let times: Vec<usize> = (0..marked.len()).filter(|&n| marked[n]).map(|n| 1000 + n).collect();
        assert_eq!(times, [1100, 1200, 1271, 1329, 1379]);
        assert!(log.dropped.is_empty());
    }

    #[test]
    fn an_answering_source_is_held_near_the_target() {
        let run = closed_loop(QueueConfig::codel(Limit::Unlimited), 4, 60);
        assert!(run.mean_wait < MS * 12, "{:?}", run.mean_wait);
        assert!(run.utilisation > 0.85, "{}", run.utilisation);
        let bloated = closed_loop(QueueConfig::drop_tail(Limit::Packets(500)), 4, 60);
        assert!(bloated.mean_wait > MS * 200, "{:?}", bloated.mean_wait);
    }
}
