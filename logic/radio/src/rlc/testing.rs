//! For tests: a packet, a recording observer, and a channel run TTI by TTI.

use std::collections::VecDeque;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use ranpace_link::Packet;
use ranpace_units::{Bytes, Span, Time};

use super::{Channel, Config, DropCause, Observer, Pdu};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TestPacket {
    pub id: u64,
    pub size: u64,
}

impl Packet for TestPacket {
    fn size(&self) -> Bytes {
        Bytes::new(self.size)
    }
    fn flow(&self) -> u32 {
        0
    }
}

/// All calls of the observer.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub delivered: Vec<(Time, TestPacket)>,
    pub dropped: Vec<(Time, TestPacket, DropCause)>,
    pub failures: usize,
}

impl Log {
    pub fn bytes(&self) -> Bytes {
        let delivered: Bytes = self.delivered.iter().map(|d| d.1.size()).sum();
        delivered + self.dropped.iter().map(|d| d.1.size()).sum()
    }
    pub fn delivered_ids(&self) -> Vec<u64> {
        self.delivered.iter().map(|d| d.1.id).collect()
    }
    pub fn dropped_for(&self, cause: DropCause) -> Vec<u64> {
        self.dropped.iter().filter(|d| d.2 == cause).map(|d| d.1.id).collect()
    }
}

impl Observer<TestPacket> for Log {
    fn on_delivered(&mut self, now: Time, packet: TestPacket) {
        if let Some((last, previous)) = self.delivered.last() {
            assert!(*last <= now && previous.id < packet.id, "out of order: {previous:?}, {packet:?}");
        }
        self.delivered.push((now, packet));
    }
    fn on_dropped(&mut self, now: Time, packet: &TestPacket, cause: DropCause) {
        self.dropped.push((now, packet.clone(), cause));
    }
    fn on_failed(&mut self, _: Time) {
        self.failures += 1;
    }
}

pub(crate) fn ms(ms: u64) -> Time {
    Time::from_millis(ms)
}

/// A channel in a cell where a block is decoded three TTIs of 1 ms after it is sent, as in LTE without HARQ
/// retransmissions, and where the other direction carries status reports with the same delay.
pub(crate) struct Cell {
    pub channel: Channel<TestPacket>,
    pub log: Log,
    pub random: Xoshiro256PlusPlus,
    pub tti: u64,
    next_id: u64,
    air: VecDeque<(u64, Pdu, bool)>,
    reports: VecDeque<(u64, Pdu, bool)>,
}

const DECODE: u64 = 3;

impl Cell {
    pub fn new(config: &Config, seed: u64) -> Self {
        Self {
            channel: Channel::new(config, seed),
            log: Log::default(),
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            tti: 0,
            next_id: 0,
            air: VecDeque::new(),
            reports: VecDeque::new(),
        }
    }

    pub fn offer(&mut self, size: u64) {
        let packet = TestPacket { id: self.next_id, size };
        self.next_id += 1;
        self.channel.enqueue(ms(self.tti), packet, &mut self.log);
    }

    pub fn offered(&self) -> u64 {
        self.next_id
    }

    fn chance(&mut self, probability: f64) -> bool {
        ((self.random.next_u64() >> 11) as f64) < probability * (1u64 << 53) as f64
    }

    /// One TTI with a block of `grant` bytes, lost with this probability, as are blocks with reports.
    pub fn tti(&mut self, grant: u64, loss: f64) {
        let is_lost = self.chance(loss);
        self.tti_with(grant, is_lost, loss);
    }

    pub fn tti_with(&mut self, grant: u64, is_lost: bool, report_loss: f64) {
        let now = ms(self.tti);
        while self.channel.next_deadline() <= now {
            let at = self.channel.next_deadline().max(now - Span::from_millis(1));
            self.channel.on_deadline(at, &mut self.log);
        }
        while self.air.front().is_some_and(|first| first.0 <= self.tti) {
            let (_, pdu, is_lost) = self.air.pop_front().unwrap();
            if is_lost {
                self.channel.on_lost(now, pdu, &mut self.log);
            } else {
                self.channel.on_received(now, pdu, &mut self.log);
            }
        }
        while self.reports.front().is_some_and(|first| first.0 <= self.tti) {
            let (_, pdu, is_lost) = self.reports.pop_front().unwrap();
            if is_lost {
                self.channel.on_status_lost(pdu);
            } else {
                self.channel.on_status(now, pdu);
            }
        }
        let mut left = Bytes::new(grant);
        while let Some(pdu) = self.channel.build(now, left, &mut self.log) {
            assert!(pdu.size() <= left && pdu.size() > pdu.payload());
            left -= pdu.size();
            self.air.push_back((self.tti + DECODE, pdu, is_lost));
        }
        if let Some(pdu) = self.channel.build_status(now, Bytes::new(100)) {
            let is_lost = self.chance(report_loss);
            self.reports.push_back((self.tti + DECODE, pdu, is_lost));
        }
        self.tti += 1;
    }

    /// Runs TTIs without losses until nothing waits any more.
    pub fn drain(&mut self) {
        for _ in 0..20_000 {
            if self.channel.waiting().is_zero() {
                return;
            }
            self.tti(1000, 0.0);
        }
        panic!("{} still wait, {:?}", self.channel.waiting(), self.channel.counters());
    }
}
