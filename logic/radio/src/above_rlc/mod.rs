//! Queues above RLC: RLC's buffer is kept short, so that packets wait where they can be sorted and managed.
//!
//! Source: Irazabal et al., IEEE LCN 2019 and 2020 to 2022, and the authors' programs. Certainty: rules and constants are known
//! from the programs; the journal's figures and its variants in bytes are not.
//!
//! Two stages stand before RLC's buffer, in the downlink. At SDAP, each QoS flow (QFI) has a queue of any kind, and a rule
//! ([`Room`]) says how much RLC may hold: a number of packets, DRQL, 5G-BDP or DynRLC. Before it, the UPF may have a queue for each
//! of 64 groups of flows and pass on no more than SDAP needs (USP). Both act in ticks, ten in a slot, and move at most ten packets
//! in each.
//!
//! Ours: SDAP's rules count bytes where the programs count packets of [`MTU`]. Slots are those of the cell, where the programs have
//! 10 ms, and the last packet may exceed a limit, as in Linux's limits in bytes. There is no delay between the UPF and the base station (the sources need one of at most a TTI). A rule's counters begin
//! anew with a handover.

mod bdp;
mod drql;
mod dynamic;
mod pacer;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use ranpace_link::{self as link, Packet, Queue, QueueConfig, Queued};
use ranpace_units::{Bytes, Ecn, Span, Time};

use self::bdp::Bdp;
use self::drql::Drql;
use self::dynamic::Dynamic;
use self::pacer::{FlowQueues, Pacer};

/// A packet of full size: the unit of the sources' counts.
pub const MTU: u64 = 1_500;
/// Ticks in a slot.
const TICKS: u64 = 10;
/// Slots for which DRQL holds a limit before it shrinks: 100 ms in the programs, whose slots have 10 ms.
const HOLD_SLOTS: u64 = 10;
/// Packets that a stage moves in a tick, from all QFIs together.
const BATCH: u32 = 10;
/// QFIs of a bearer; TS 38.415 has 6 bits for them.
const QFIS: u32 = 64;
/// Length of a slot until the first is known.
const SLOT: Span = Span::from_millis(1);

/// The stages above RLC of a bearer. The bearer's buffer, with its limit, stands at the first stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StagesConfig {
    /// What RLC may hold.
    pub room: Room,
    /// Whether each flow has a QFI of its own; otherwise all flows share one.
    pub qfi_per_flow: bool,
    /// Whether the UPF has a queue per flow and paces each QFI (USP).
    pub upf: bool,
}

/// Rule for what RLC may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// A number of packets.
    Packets(u32),
    /// DRQL: Linux's dynamic queue limits.
    Drql,
    /// 5G-BDP: what the next slots carry.
    Bdp,
    /// DynRLC: as many packets as wait for some 11 ms.
    Dynamic,
}

/// What waits in RLC's buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Bytes that were not sent, with those of a packet sent in part.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
}

/// A packet with the time at which it came to the first stage.
pub struct Entered<P> {
    /// The packet.
    pub packet: P,
    /// When it came.
    pub at: Time,
}

impl<P: Packet> Packet for Entered<P> {
    fn size(&self) -> Bytes {
        self.packet.size()
    }
    fn flow(&self) -> u32 {
        self.packet.flow()
    }
    fn ecn(&self) -> Ecn {
        self.packet.ecn()
    }
    fn set_ecn(&mut self, ecn: Ecn) {
        self.packet.set_ecn(ecn);
    }
}

/// Tells an observer of packets about those that carry their time.
struct Inner<'a, O>(&'a mut O);

impl<P, O: link::Observer<P>> link::Observer<Entered<P>> for Inner<'_, O> {
    fn on_enqueued(&mut self, now: Time, packet: &Entered<P>, queued: Bytes) {
        self.0.on_enqueued(now, &packet.packet, queued);
    }
    fn on_dropped(&mut self, now: Time, packet: &Entered<P>, cause: link::DropCause) {
        self.0.on_dropped(now, &packet.packet, cause);
    }
}

/// The rule in use, with its state.
#[derive(Clone, Debug)]
enum Rule {
    Packets(u64),
    Drql(Drql),
    Bdp(Bdp),
    Dynamic(Dynamic),
}

impl Rule {
    fn new(room: Room) -> Self {
        match room {
            Room::Packets(packets) => Self::Packets(packets.into()),
            Room::Drql => Self::Drql(Drql::new(MTU)),
            Room::Bdp => Self::Bdp(Bdp::new()),
            Room::Dynamic => Self::Dynamic(Dynamic::new()),
        }
    }

    /// Whether RLC may take a packet, `since` slots after the last one that carried data. As in Linux's limits in bytes, the last
    /// packet may exceed the limit, so that one that is larger than it passes alone.
    fn admits(&self, rlc: Occupancy, since: f64) -> bool {
        match self {
            Self::Packets(packets) => rlc.packets < *packets,
            Self::Drql(drql) => rlc.bytes < drql.limit(),
            Self::Bdp(bdp) => bdp.admits(since) || rlc.bytes == 0,
            Self::Dynamic(dynamic) => rlc.packets < dynamic.packets(),
        }
    }
}

/// The queues of one QoS flow.
struct Qfi<P> {
    /// Flow number modulo [`QFIS`].
    number: u32,
    queue: Queue<Entered<P>>,
    /// The UPF's queues, and the pacer that empties them.
    upf: Option<(FlowQueues<P>, Pacer)>,
}

/// The stages of a bearer, with their packets.
pub struct Stages<P> {
    config: StagesConfig,
    buffer: QueueConfig,
    seed: u64,
    qfis: Vec<Qfi<P>>,
    /// The next QFI to be served at SDAP, and at the UPF.
    turn: usize,
    upf_turn: usize,
    rule: Rule,
    /// Times at which the packets in RLC joined it, for DynRLC.
    joined: VecDeque<(Time, u64)>,
    slot: Span,
    next_tick: Time,
    /// The last slot that carried data.
    carried_at: Time,
    /// Whether RLC had no room for a packet since then.
    refused: bool,
}

impl<P: Packet> Stages<P> {
    /// Empty stages. `buffer` is the queue of each QFI; before a UPF, its limit is that of each flow there. `seed` is for queues
    /// that draw random numbers.
    pub fn new(config: StagesConfig, buffer: &QueueConfig, seed: u64) -> Self {
        Self {
            config,
            buffer: buffer.clone(),
            seed,
            qfis: Vec::new(),
            turn: 0,
            upf_turn: 0,
            rule: Rule::new(config.room),
            joined: VecDeque::new(),
            slot: SLOT,
            next_tick: Time::ZERO,
            carried_at: Time::ZERO,
            refused: false,
        }
    }

    /// Bytes waiting in all stages.
    pub fn bytes(&self) -> Bytes {
        let upf = |qfi: &Qfi<P>| qfi.upf.as_ref().map_or(Bytes::ZERO, |(flows, _)| flows.bytes());
        self.qfis.iter().map(|qfi| qfi.queue.bytes() + upf(qfi)).sum()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.qfis
            .iter()
            .all(|qfi| qfi.queue.packets() == 0 && qfi.upf.as_ref().is_none_or(|(flows, _)| flows.is_empty()))
    }

    /// Adds a packet to the first stage, or drops it. The ticks until `now` were played before, by [`Self::advance`].
    pub fn push(&mut self, now: Time, packet: P, observer: &mut impl link::Observer<P>) {
        let number = if self.config.qfi_per_flow { packet.flow() % QFIS } else { 0 };
        let place = self.qfis.iter().position(|qfi| qfi.number == number).unwrap_or_else(|| {
            let upf = self.config.upf.then(|| (FlowQueues::new(self.buffer.limit()), Pacer::new()));
            let queue = Queue::new(&self.buffer, self.seed ^ u64::from(number));
            self.qfis.push(Qfi { number, queue, upf });
            self.qfis.len() - 1
        });
        let qfi = &mut self.qfis[place];
        let entered = Entered { packet, at: now };
        match &mut qfi.upf {
            Some((flows, _)) => flows.push(now, entered, observer),
            None => qfi.queue.push(now, entered, &mut Inner(observer)),
        }
    }

    /// Plays the ticks until `now`. RLC holds `rlc`; `relay` gets each packet that joins it, and the time of that.
    pub fn advance(
        &mut self,
        now: Time,
        mut rlc: Occupancy,
        observer: &mut impl link::Observer<P>,
        relay: &mut impl FnMut(Time, Entered<P>),
    ) {
        let period = (self.slot / TICKS).max(Span::from_nanos(1));
        while self.next_tick <= now {
            let tick = self.next_tick;
            if self.is_empty() {
                // Nothing happens until a packet comes.
                let missed = (now - tick).as_nanos() / period.as_nanos();
                self.next_tick = tick + period * (missed + 1);
                return;
            }
            self.next_tick = tick + period;
            self.tick(tick, &mut rlc, observer, relay);
        }
    }

    /// The UPF's part of a tick: packets move to SDAP, one of each QFI in turn.
    fn pass_on(&mut self, now: Time, observer: &mut impl link::Observer<P>) {
        let (mut moved, mut idle) = (0, 0);
        while moved < BATCH && idle < self.qfis.len() {
            let place = self.upf_turn % self.qfis.len();
            self.upf_turn = place + 1;
            let Qfi { queue, upf, .. } = &mut self.qfis[place];
            let Some((flows, pacer)) = upf else { return };
            let room = pacer.room(queue.packets() as u64);
            let Some(packet) = (room > 0).then(|| flows.pop()).flatten() else {
                idle += 1;
                continue;
            };
            pacer.on_passed();
            // It was announced when it came to the UPF.
            queue.push(now, packet, &mut DropsOnly(&mut *observer));
            (moved, idle) = (moved + 1, 0);
        }
    }

    fn tick(
        &mut self,
        now: Time,
        rlc: &mut Occupancy,
        observer: &mut impl link::Observer<P>,
        relay: &mut impl FnMut(Time, Entered<P>),
    ) {
        self.pass_on(now, observer);
        let since = (now - self.carried_at).ratio(self.slot);
        if let Rule::Bdp(bdp) = &mut self.rule {
            bdp.look(since);
        }
        let (mut moved, mut idle) = (0, 0);
        let mut refused = false;
        let mut served = 0u64; // the QFIs of which a packet was taken, by place
        while moved < BATCH && idle < self.qfis.len() {
            let place = self.turn % self.qfis.len();
            if self.qfis[place].queue.packets() > 0 && !self.rule.admits(*rlc, since) {
                refused = true; // it keeps its turn
                break;
            }
            self.turn = place + 1;
            if self.qfis[place].queue.packets() == 0 {
                idle += 1;
                continue;
            }
            let popped = self.qfis[place].queue.pop(now, &mut Inner(&mut *observer));
            let Some(Queued { packet, .. }) = popped else { continue };
            let size = packet.size().get();
            (rlc.bytes, rlc.packets) = (rlc.bytes + size, rlc.packets + 1);
            match &mut self.rule {
                Rule::Bdp(bdp) => bdp.on_sent(size),
                Rule::Dynamic(_) => self.joined.push_back((now, size)),
                Rule::Drql(drql) => drql.on_joined(now),
                Rule::Packets(_) => {}
            }
            served |= 1 << place;
            (moved, idle) = (moved + 1, 0);
            relay(now, packet);
        }
        self.refused |= refused;
        let optimum = match &self.rule {
            Rule::Bdp(bdp) => Some(bdp.optimum().div_ceil(MTU)),
            _ => None,
        };
        for (place, qfi) in self.qfis.iter_mut().enumerate() {
            if let Some((_, pacer)) = &mut qfi.upf {
                let waiting = qfi.queue.packets() as u64;
                let nothing = refused && moved == 0;
                pacer.on_tick(served & (1 << place) != 0, nothing, waiting, optimum);
            }
        }
    }

    /// A slot of length `slot` carried `taken` bytes of new data, could have carried `egress`, and left `rest` in RLC.
    pub fn on_slot(&mut self, now: Time, slot: Span, egress: u64, taken: u64, rest: Occupancy) {
        self.slot = slot.max(Span::from_nanos(1));
        self.carried_at = now;
        let refused = core::mem::take(&mut self.refused);
        let is_idle = rest.bytes == 0 && self.is_empty();
        for qfi in &mut self.qfis {
            qfi.queue.on_slot(now, self.slot, Bytes::new(egress), is_idle);
        }
        match &mut self.rule {
            Rule::Packets(_) => {}
            Rule::Drql(drql) => drql.on_slot(now, self.slot * HOLD_SLOTS, taken, rest.bytes, refused),
            Rule::Bdp(bdp) => bdp.on_slot(egress, rest.bytes),
            Rule::Dynamic(dynamic) => {
                let mut held: u64 = self.joined.iter().map(|(_, size)| size).sum();
                while held > rest.bytes
                    && let Some((at, size)) = self.joined.pop_front()
                {
                    held -= size;
                    dynamic.on_left(now - at);
                }
                dynamic.on_time(now);
            }
        }
    }

    /// The rules begin anew: RLC was re-established, and what it held will be sent again.
    pub fn restart(&mut self, now: Time) {
        self.rule = Rule::new(self.config.room);
        self.joined.clear();
        (self.carried_at, self.refused) = (now, false);
        for qfi in &mut self.qfis {
            qfi.queue.forget_slots();
            if let Some((_, pacer)) = &mut qfi.upf {
                *pacer = Pacer::new();
            }
        }
    }

    /// Takes out a packet without any rule, to empty the stages.
    pub fn take(&mut self) -> Option<P> {
        self.qfis.iter_mut().find_map(|qfi| {
            let queued = qfi.queue.take().map(|queued| queued.packet);
            let entered = queued.or_else(|| qfi.upf.as_mut().and_then(|(flows, _)| flows.pop()))?;
            Some(entered.packet)
        })
    }
}

/// Tells only of drops: the packet was announced before.
struct DropsOnly<'a, O>(&'a mut O);

impl<P, O: link::Observer<P>> link::Observer<Entered<P>> for DropsOnly<'_, O> {
    fn on_dropped(&mut self, now: Time, packet: &Entered<P>, cause: link::DropCause) {
        self.0.on_dropped(now, &packet.packet, cause);
    }
}
