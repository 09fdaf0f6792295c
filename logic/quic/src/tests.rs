//! Whole connections over a small model of a path.

use std::collections::BTreeMap;
use std::time::Instant;

use proptest::prelude::*;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use ranpace_cc::{Ack, Algorithm, Answer, Congestion, CongestionControl, Context, Signal, Window};
use ranpace_units::{Bytes, Rate, Span, Time};

use crate::{Clock, Config, Opener, Receiver, Sender};

/// A path: a rate with a drop-tail queue forwards, delay both ways, and what it does to single packets.
struct Path {
    rate: Rate,
    queue: Span,
    delay: Span,
    /// Told of each packet: its number on this way, and whether it goes forwards; true drops it.
    drops: Box<dyn FnMut(u64, bool) -> bool>,
    /// Every so many packets forwards get a mark; 0 for none.
    mark_every: u64,
}

impl Path {
    fn new(mbit: u64, delay_ms: u64) -> Self {
        Self {
            rate: Rate::from_mbit_per_s(mbit),
            queue: Span::from_millis(100),
            delay: Span::from_millis(delay_ms),
            drops: Box::new(|_, _| false),
            mark_every: 0,
        }
    }

    fn losing(self, seed: u64, per_mille: u64) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        Self { drops: Box::new(move |_, _| random.next_u64() % 1_000 < per_mille), ..self }
    }
}

/// Two ends and what is between them.
struct World {
    sender: Sender,
    receiver: Receiver,
    path: Path,
    now: Time,
    wire: BTreeMap<(Time, u64), (bool, bool, Vec<u8>)>,
    count: [u64; 2],
    busy_until: Time,
    log: Vec<(Time, bool, usize)>,
}

impl World {
    fn new(config: &Config, control: Box<dyn CongestionControl>, path: Path) -> Self {
        let clock = Clock::new(Instant::now());
        Self {
            sender: Sender::new(config, control, clock, 1),
            receiver: Receiver::new(config, clock, 2).checked(),
            path,
            now: Time::ZERO,
            wire: BTreeMap::new(),
            count: [0; 2],
            busy_until: Time::ZERO,
            log: Vec::new(),
        }
    }

    fn of(algorithm: &str, path: Path) -> Self {
        let algorithm: Algorithm = algorithm.parse().unwrap();
        Self::new(&Config::default(), algorithm.build(1), path)
    }

    fn send(&mut self, forwards: bool, ect: bool, content: Vec<u8>) {
        let count = &mut self.count[usize::from(forwards)];
        *count += 1;
        self.log.push((self.now, forwards, content.len()));
        let number = *count;
        if (self.path.drops)(number, forwards) {
            return;
        }
        let mut leaves = self.now;
        if forwards {
            let begins = self.busy_until.max(self.now);
            if begins - self.now > self.path.queue {
                return;
            }
            leaves = begins + self.path.rate.time_for(Bytes::new(content.len() as u64 + 28));
            self.busy_until = leaves;
        }
        let ce = ect && self.path.mark_every > 0 && number.is_multiple_of(self.path.mark_every);
        let order = self.count[0] + self.count[1];
        self.wire.insert((leaves + self.path.delay, order), (forwards, ce, content));
    }

    fn pump(&mut self) {
        loop {
            let mut out = Vec::new();
            let Some(departure) = self.sender.poll_transmit(self.now, &mut out) else { break };
            assert!(out.len() <= 1_472, "{}", out.len());
            self.send(true, departure.ect, out);
        }
        loop {
            let mut out = Vec::new();
            let Some(ect) = self.receiver.poll_transmit(self.now, &mut out) else { break };
            self.send(false, ect, out);
        }
    }

    fn run(&mut self, until: Time, done: impl Fn(&Self) -> bool) {
        if self.now == Time::ZERO {
            self.sender.open(self.now);
            self.receiver.open(self.now);
        }
        self.pump();
        let mut steps = 0;
        while !done(self) {
            let arrival = self.wire.first_key_value().map_or(Time::MAX, |((at, _), _)| *at);
            let deadline = self.sender.next_deadline().min(self.receiver.next_deadline());
            let next = arrival.min(deadline);
            if next > until {
                self.now = until;
                return;
            }
            steps += 1;
            assert!(steps < 10_000_000, "time does not pass at {}", self.now);
            self.now = next.max(self.now);
            if arrival <= self.now {
                let (_, (forwards, ce, content)) = self.wire.pop_first().unwrap();
                if forwards {
                    self.receiver.on_datagram(self.now, ce, &content);
                } else {
                    self.sender.on_datagram(self.now, ce, &content);
                }
            } else {
                self.sender.on_deadline(self.now);
                self.receiver.on_deadline(self.now);
            }
            self.pump();
        }
    }

    /// Carries so many bytes, and says when they were there.
    fn carry(&mut self, bytes: u64) -> Time {
        self.sender.write(Bytes::new(bytes));
        self.run(Time::from_secs(600), |world| world.receiver.delivered().get() >= bytes);
        assert_eq!(self.receiver.delivered(), Bytes::new(bytes), "at {}", self.now);
        assert_eq!(self.receiver.damaged(), 0);
        self.now
    }
}

#[test]
fn a_transfer_arrives_whole_for_either_opener_and_any_mtu() {
    for (opener, mtu) in [
        (Opener::Sender, 1_500),
        (Opener::Receiver, 1_500),
        (Opener::Sender, 1_228),
        (Opener::Receiver, 1_400),
    ] {
        let config = Config { opener, mtu: Bytes::new(mtu), ..Config::default() };
        let algorithm: Algorithm = "newreno".parse().unwrap();
        let mut world = World::new(&config, algorithm.build(1), Path::new(20, 20));
        let done = world.carry(1_000_000);
        // 400 ms of data, three round trips of slow start and one of the handshake.
        assert!(done > Time::from_millis(400) && done < Time::from_millis(900), "{opener:?} {mtu}: {done}");
    }
}
