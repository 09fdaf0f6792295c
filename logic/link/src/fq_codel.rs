//! FQ-CoDel: flows are hashed to queues, which deficit round robin serves, new ones first, with CoDel in each.
//!
//! Source: RFC 8290; the two lists and their moves in section 4.2, the full queue in section 4.1, constants in
//! section 5.2. State: per queue its packets, CoDel's control and its credit; the lists of new and of old queues.
//!
//! Where the RFC leaves it open, this follows Linux `sch_fq_codel`: on overflow half of the fattest queue is dropped from
//! its head, at most 64 packets. Unlike Linux, and like RFC 8289, CoDel's "no more than one MTU left" considers
//! only the queue itself, not all of them. The hash is ours: the RFC requires one that a sender cannot predict.

use std::collections::VecDeque;

use ranpace_units::{Bytes, Time};

use crate::codel::{Control, ControlLaw};
use crate::fifo::Fifo;
use crate::random::{self, Purpose};
use crate::{DropCause, Limit, Observer, Packet, Queued};

/// Packets dropped at once when the queue overflows; RFC 8290 section 4.1.
const BATCH: u32 = 64;

struct Flow<P> {
    fifo: Fifo<P>,
    control: Control,
    /// Remaining credit; may be negative by less than a packet.
    credit: i64,
    /// Whether it is in one of the lists.
    is_active: bool,
}

/// Flow queueing with CoDel.
pub struct FqCoDel<P> {
    flows: Vec<Flow<P>>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    bytes: Bytes,
    packets: usize,
    limit: Limit,
    law: ControlLaw,
    quantum: i64,
    salt: u64,
}

impl<P: Packet> FqCoDel<P> {
    /// An empty set of `flows` queues (at least one) with the common limit `limit`. Each may send `quantum` (at
    /// least one byte) per round. `seed` determines which flows share a queue.
    pub(crate) fn new(limit: Limit, law: ControlLaw, quantum: Bytes, flows: u32, seed: u64) -> Self {
        let flow = || Flow { fifo: Fifo::new(), control: Control::default(), credit: 0, is_active: false };
        Self {
            flows: std::iter::repeat_with(flow).take(flows.max(1) as usize).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            bytes: Bytes::ZERO,
            packets: 0,
            limit,
            law,
            quantum: i64::try_from(quantum.get()).unwrap_or(i64::MAX).max(1),
            salt: random::up_to(&mut random::stream(seed, Purpose::Queue), u64::MAX),
        }
    }

    /// The queue of a flow: SplitMix64's mixing function, then a multiplication instead of a modulo.
    fn index(&self, flow: u32) -> u32 {
        let mut mix = u64::from(flow).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ self.salt;
        mix = (mix ^ (mix >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mix = (mix ^ (mix >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mix ^= mix >> 31;
        (((mix >> 32) * self.flows.len() as u64) >> 32) as u32
    }

    /// See [`crate::Queue::push`].
    pub fn push(&mut self, now: Time, packet: P, observer: &mut impl Observer<P>) {
        let size = packet.size();
        let index = self.index(packet.flow());
        self.bytes += size;
        self.packets += 1;
        observer.on_enqueued(now, &packet, self.bytes);
        let flow = &mut self.flows[index as usize];
        flow.fifo.push(now, packet, false, &mut ());
        if !flow.is_active {
            flow.is_active = true;
            flow.credit = self.quantum;
            self.new.push_back(index);
        }
        while !self.limit.holds(self.bytes, self.packets) {
            self.drop_from_fattest(now, observer);
        }
    }

    fn drop_from_fattest(&mut self, now: Time, observer: &mut impl Observer<P>) {
        // There is one, since an empty set is within any limit.
        let Some(fattest) = self.flows.iter_mut().max_by_key(|flow| flow.fifo.bytes()) else { return };
        let goal = fattest.fifo.bytes() / 2;
        for _ in 0..BATCH {
            let Some(queued) = fattest.fifo.pop() else { break };
            self.bytes -= queued.packet.size();
            self.packets -= 1;
            observer.on_dropped(now, &queued.packet, DropCause::Overflow);
            if fattest.fifo.bytes() <= goal {
                break;
            }
        }
    }

    /// See [`crate::Queue::pop`].
    pub fn pop(&mut self, now: Time, observer: &mut impl Observer<P>) -> Option<Queued<P>> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let flow = &mut self.flows[index as usize];
            if flow.credit <= 0 {
                flow.credit = flow.credit.saturating_add(self.quantum);
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let before = (flow.fifo.bytes(), flow.fifo.packets());
            let queued = flow.control.dequeue(&self.law, &mut flow.fifo, now, observer);
            self.bytes -= before.0 - flow.fifo.bytes();
            self.packets -= before.1 - flow.fifo.packets();
            if let Some(queued) = queued {
                let size = i64::try_from(queued.packet.size().get()).unwrap_or(i64::MAX);
                flow.credit = flow.credit.saturating_sub(size);
                return Some(queued);
            }
            list.pop_front();
            if is_new {
                // It passes through the old list once, so that a flow cannot stay new by sending little; section 4.2.
                self.old.push_back(index);
            } else {
                flow.is_active = false;
            }
        }
    }

    /// Bytes waiting in all queues.
    #[inline]
    pub fn bytes(&self) -> Bytes {
        self.bytes
    }

    /// Number of packets waiting in all queues.
    #[inline]
    pub fn packets(&self) -> usize {
        self.packets
    }

    pub(crate) fn take(&mut self) -> Option<Queued<P>> {
        let queued = self.flows.iter_mut().find_map(|flow| flow.fifo.pop())?;
        self.bytes -= queued.packet.size();
        self.packets -= 1;
        Some(queued)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Log, TestPacket, loopback};
    use crate::{Limit, LinkConfig, QueueConfig, Service};
    use ranpace_units::{Rate, Span};

    const MS: Span = Span::from_millis(1);
    const LAW: ControlLaw = ControlLaw {
        target: Span::from_millis(5),
        interval: Span::from_millis(100),
        ecn: false,
        ce_threshold: None,
    };

    #[test]
    fn a_thin_flow_does_not_wait_behind_a_flood() {
        // Flow 1 offers twice the link rate; flow 2 sends 100 B every 20 ms.
        let longest = |queue| {
            let config = LinkConfig::new(Service::Fixed(Rate::from_mbit_per_s(12)), queue, MS * 10);
            let flood = (0..10_000).map(|n| (n * 500, TestPacket::new(1, 1500)));
            let thin = (0..250).map(|n| (n * 20_000 + 7, TestPacket::new(2, 100)));
            let log = loopback(&config, flood.chain(thin));
            assert_eq!(log.dropped.iter().filter(|d| d.2.flow == 2).count(), 0);
            log.departed.iter().filter(|d| d.2.flow == 2).map(|d| d.1).max().unwrap()
        };
        // The wait covers the packet in service and the packet's own transmission.
        assert!(longest(QueueConfig::fq_codel(Limit::Packets(10_240))) < MS * 3);
        assert!(longest(QueueConfig::drop_tail(Limit::Unlimited)) > MS * 1000);
    }

    #[test]
    fn flows_share_bytes_not_packets() {
        let mut queue = FqCoDel::new(Limit::Unlimited, LAW, Bytes::new(1514), 1024, 1);
        let mut log = Log::default();
        for _ in 0..300 {
            queue.push(Time::ZERO, TestPacket::new(1, 1500), &mut log);
            (0..5).for_each(|_| queue.push(Time::ZERO, TestPacket::new(2, 300), &mut log));
        }
        let mut sent = [0; 3];
        for _ in 0..600 {
            let packet = queue.pop(Time::ZERO, &mut log).unwrap().packet;
            sent[packet.flow as usize] += packet.size;
        }
        assert!(sent[1].abs_diff(sent[2]) <= 3028, "{sent:?}");
    }

    #[test]
    fn overflow_hits_the_fattest_at_its_head() {
        let mut queue = FqCoDel::new(Limit::Packets(10), LAW, Bytes::new(1514), 1024, 1);
        let mut log = Log::default();
        queue.push(Time::ZERO, TestPacket::new(2, 1500), &mut log);
        for n in 0..10 {
            queue.push(Time::from_millis(n), TestPacket::new(1, 1000 + n), &mut log);
        }
        // Ten packets of flow 1 are 10 045 B; dropping six of them brings it below half.
        let dropped: Vec<(u32, u64)> = log.dropped.iter().map(|d| (d.2.flow, d.2.size)).collect();
        assert_eq!(dropped, [(1, 1000), (1, 1001), (1, 1002), (1, 1003), (1, 1004), (1, 1005)]);
        assert_eq!(queue.packets(), 5);
    }

    #[test]
    fn the_hash_spreads_and_follows_the_seed() {
        let queue = |seed| FqCoDel::<TestPacket>::new(Limit::Unlimited, LAW, Bytes::new(1), 1024, seed);
        let (a, b) = (queue(1), queue(2));
        let mut used: Vec<u32> = (0..1024).map(|flow| a.index(flow)).collect();
        assert!((0..1024).any(|flow| a.index(flow) != b.index(flow)));
        used.sort_unstable();
        used.dedup();
        // 1024 balls in 1024 bins leave 1/e of the bins empty.
        assert!((600..700).contains(&used.len()), "{}", used.len());
    }
}
