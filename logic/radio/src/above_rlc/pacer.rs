//! USP, the pacer between UPF and SDAP: the UPF keeps a queue for each flow and passes on as many packets as SDAP needs to stay
//! busy, so that flows are separated although they share a QFI.

use std::collections::VecDeque;

use ranpace_link::{self as link, DropCause, Limit, Packet};
use ranpace_units::{Bytes, Time};

use super::Entered;

/// Queues that flows are hashed to.
const FLOWS: usize = 64;
/// Packets that SDAP may hold at first, which is also the most.
const MOST: u64 = 1_024;
/// Ticks of a slot, and the one of them at which SDAP's share doubles.
const PERIOD: u32 = 10;
const DOUBLES_AT: u32 = 5;
/// SDAP holds too much with this many packets beyond 5G-BDP's optimum.
const SLACK: u64 = 5;

/// The UPF's queues, served in turn.
pub(super) struct FlowQueues<P> {
    queues: Vec<VecDeque<Entered<P>>>,
    sizes: Vec<Bytes>,
    turn: usize,
    packets: usize,
    /// Of each queue.
    limit: Limit,
}

impl<P: Packet> FlowQueues<P> {
    pub fn new(limit: Limit) -> Self {
        let queues = std::iter::repeat_with(VecDeque::new).take(FLOWS).collect();
        Self { queues, sizes: vec![Bytes::ZERO; FLOWS], turn: 0, packets: 0, limit }
    }

    pub fn bytes(&self) -> Bytes {
        self.sizes.iter().copied().sum()
    }

    pub fn is_empty(&self) -> bool {
        self.packets == 0
    }

    pub fn push(&mut self, now: Time, packet: Entered<P>, observer: &mut impl link::Observer<P>) {
        let place = packet.flow() as usize % FLOWS;
        let size = self.sizes[place] + packet.size();
        if !self.limit.holds(size, self.queues[place].len() + 1) {
            observer.on_dropped(now, &packet.packet, DropCause::Overflow);
            return;
        }
        self.sizes[place] = size;
        self.packets += 1;
        observer.on_enqueued(now, &packet.packet, self.bytes());
        self.queues[place].push_back(packet);
    }

    /// The next packet. The turn is kept between calls: with one packet in each tick, flows would starve otherwise.
    pub fn pop(&mut self) -> Option<Entered<P>> {
        if self.packets == 0 {
            return None;
        }
        for _ in 0..FLOWS {
            let place = self.turn;
            self.turn = (self.turn + 1) % FLOWS;
            if let Some(packet) = self.queues[place].pop_front() {
                self.sizes[place] -= packet.size();
                self.packets -= 1;
                return Some(packet);
            }
        }
        None
    }
}

/// How much SDAP may hold of a QFI.
#[derive(Clone, Debug)]
pub(super) struct Pacer {
    optimum: u64,
    /// Packets passed on since SDAP was last saturated at a tick.
    passed: u64,
    period: u32,
    saturated: bool,
}

impl Pacer {
    pub fn new() -> Self {
        Self { optimum: MOST, passed: 0, period: 0, saturated: false }
    }

    /// Packets that may be passed on while SDAP holds `waiting`.
    pub fn room(&self, waiting: u64) -> u64 {
        self.optimum.saturating_sub(waiting)
    }

    pub fn on_passed(&mut self) {
        self.passed += 1;
    }

    /// A tick is over. SDAP took a packet of this QFI if `took`; RLC admitted nothing if `refused`; SDAP holds `waiting` packets, where
    /// 5G-BDP has an `optimum`.
    pub fn on_tick(&mut self, took: bool, refused: bool, waiting: u64, optimum: Option<u64>) {
        self.saturated |= refused || optimum.is_some_and(|optimum| waiting > optimum + SLACK);
        if !took {
            return;
        }
        if self.saturated {
            self.optimum = self.passed.div_ceil(PERIOD.into()).clamp(1, MOST);
            (self.passed, self.period, self.saturated) = (0, 0, false);
        } else if self.period == PERIOD {
            self.period = 0;
        } else {
            self.period += 1;
            if self.period == DOUBLES_AT {
                self.optimum = (self.optimum * 2).min(MOST);
            }
        }
    }

    #[cfg(test)]
    pub fn optimum(&self) -> u64 {
        self.optimum
    }
}
