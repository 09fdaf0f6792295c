//! The PEP: its flows, their counters, and when a report is due.
//!
//! A report is due after 8 packets or 2 ms, and for TCP also when a gap is to be reported; every 2 packets for a flow's first 64,
//! which clock slow start; and once 20 ms after the last packet. Limits: 1000 reports per second and flow, and 2 % of the flow's
//! own bytes (except for the first 64 packets and the last report). A flow is forgotten after 30 s of silence; if there are too
//! many, the one with the longest silence is. A server that did not subscribe gets nothing but an offer, at most every 10 s.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use hkdf::hmac::{Hmac, KeyInit as _, Mac};
use ranpace_units::{Span, Time};
use sha2::Sha256;
use siphasher::sip::SipHasher13;

use super::digest::{PowerSums, tag};
use super::flow::{Body, FlowId, Packet, Places};
use super::gaps::Gaps;
use super::keys::{Direction, Replay, SealingKey, header_of, table_key};
use super::limit::TokenBucket;
use super::message::{Buffer, Header, Kind, OpaqueView, ReportMessage, Resync, Subscribe, View};

/// Initial packets of a flow that are reported more often, and the packets per report then.
const FIRST: u32 = 64;
const FIRST_PACKETS: u16 = 2;
/// Time from a flow's last packet to its closing report.
const CLOSING: Span = Span::from_millis(20);
/// Reports may take one part in this many of the flow's bytes: 2 %.
const SHARE: i64 = 50;
/// Reports that may be sent back to back.
const BURST: u32 = 16;
/// Bytes of a report: of a TCP flow without gaps, and of an encrypted flow.
const TCP_REPORT: i64 = 65;
const OPAQUE_REPORT: i64 = 129;
/// IPv4 and UDP headers of a report.
const HEADERS: i64 = 28;
/// Time between two offers, and packets of a server's flows before the first offer.
const HELLO_INTERVAL: Span = Span::from_secs(10);
const HELLO_AFTER: u32 = 64;
/// Messages of a server that are examined per second.
const CONTROL_RATE: u32 = 100;

/// An operator's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PepSettings {
    /// Random; it identifies nothing else.
    pub id: u32,
    /// Most flows that are tracked.
    pub flows: usize,
    /// Silence after which a flow is forgotten.
    pub idle: Span,
    /// Whether it sends offers to servers that it shares a key with and that did not subscribe.
    pub offers: bool,
    /// Sequence number of the first message to each server. A PEP that starts again under the same keys has to begin above all that
    /// it ever sent, because a number seals one message only; zero is for keys that are new.
    pub first_sequence: u64,
}

impl Default for PepSettings {
    fn default() -> Self {
        Self { id: 1, flows: 65_536, idle: Span::from_secs(30), offers: false, first_sequence: 0 }
    }
}

/// Counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PepStats {
    /// Packets counted.
    pub packets: u64,
    /// Reports sent.
    pub reports: u64,
    /// Bytes of these, with IPv4 and UDP headers.
    pub report_bytes: u64,
    /// Flows that were begun.
    pub flows: u64,
    /// Flows evicted in favour of others.
    pub evicted: u64,
    /// Flows forgotten after silence.
    pub aged: u64,
    /// Messages refused.
    pub refused: u64,
}

/// A message to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Datagram {
    /// The server's address.
    pub to: [u8; 16],
    /// The encoded message.
    pub content: Buffer,
}

#[derive(Debug)]
struct Server {
    address: [u8; 16],
    sealing: SealingKey,
    opening: SealingKey,
    key: u16,
    replay: Replay,
    limit: TokenBucket,
    sequence: u64,
    subscription: Option<(Subscribe, Time)>,
    /// Incremented by each subscription with other keys.
    generation: u32,
    packets: u32,
    offered: Option<Time>,
}

#[derive(Clone, Debug)]
enum Counted {
    Tcp(Gaps),
    Opaque(u32, PowerSums),
}

/// Stands for no flow in the list by age.
const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Flow {
    id: FlowId,
    server: u32,
    generation: u32,
    reference: u64,
    first_unreported: Time,
    /// When the flow is next examined; timer entries for another time are void. The closing report has no timer.
    timer: Time,
    /// A report is due now.
    ready: bool,
    counted: Counted,
    credit: i64,
    limit: TokenBucket,
    bytes: u64,
    packets: u32,
    total: u32,
    marked: u32,
    epoch: u16,
    unreported: u16,
    closed: bool,
    live: bool,
}

/// Entry of a flow in the list by age: its neighbours, and the time that orders it. The entries are stored apart from the flows and
/// densely, because each packet changes three of them.
#[derive(Clone, Copy, Debug)]
struct Age {
    last_packet: Time,
    older: u32,
    newer: u32,
}

/// The PEP.
#[derive(Debug)]
pub struct Pep {
    settings: PepSettings,
    servers: Vec<Server>,
    by_id: HashMap<FlowId, u32, Places>,
    by_reference: HashMap<u64, u32>,
    flows: Vec<Flow>,
    ages: Vec<Age>,
    free: Vec<u32>,
    oldest: u32,
    newest: u32,
    /// The last epoch that a flow began with.
    epochs: u16,
    /// Flows whose report is due now.
    ready: VecDeque<u32>,
    /// The oldest flow whose closing time has not come yet; all newer ones follow it in the list by age. And a time before which
    /// none closes; [`Time::MAX`] if there is no such flow.
    closing: u32,
    closes_at: Time,
    /// Timers of flows: those entered in order of time, which most are because the time to a report is the same for all flows, and
    /// the others. A single heap for all, closing timers included, took a quarter of the run time with a thousand flows.
    regular: VecDeque<(Time, u32)>,
    timers: BinaryHeap<Reverse<(Time, u32)>>,
    stats: PepStats,
}

impl Pep {
    /// A PEP that knows no server yet.
    pub fn new(settings: PepSettings) -> Self {
        Self {
            settings,
            servers: Vec::new(),
            by_id: HashMap::with_hasher(Places(SipHasher13::new())),
            by_reference: HashMap::new(),
            flows: Vec::new(),
            ages: Vec::new(),
            free: Vec::new(),
            oldest: NONE,
            newest: NONE,
            epochs: 0,
            ready: VecDeque::new(),
            closing: NONE,
            closes_at: Time::MAX,
            regular: VecDeque::new(),
            timers: BinaryHeap::new(),
            stats: PepStats::default(),
        }
    }

    /// Adds a server that shares a secret with the PEP. The PEP is silent until the server subscribes.
    pub fn add_server(&mut self, address: [u8; 16], secret: &[u8], key: u16) {
        let id = self.settings.id;
        if self.servers.is_empty() {
            // No flow is known yet, so the table can be replaced.
            let key = table_key(secret, id);
            self.by_id = HashMap::with_hasher(Places(SipHasher13::new_with_key(&key)));
        }
        self.servers.push(Server {
            address,
            sealing: SealingKey::derive(secret, id, key, Direction::ToServer),
            opening: SealingKey::derive(secret, id, key, Direction::ToPep),
            key,
            replay: Replay::default(),
            limit: TokenBucket::new(CONTROL_RATE, CONTROL_RATE),
            sequence: self.settings.first_sequence,
            subscription: None,
            generation: 0,
            packets: 0,
            offered: None,
        });
    }

    /// Counters.
    pub fn stats(&self) -> &PepStats {
        &self.stats
    }

    /// Number of flows tracked.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Returns whether it tracks none.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Bytes of memory per flow: its state, and its entries in the tables at their load factor.
    pub fn bytes_per_flow() -> usize {
        let entries = size_of::<(FlowId, u32)>() + size_of::<(u64, u32)>() + 2;
        size_of::<Flow>() + size_of::<Age>() + entries * 16 / 7 + 8 * size_of::<Reverse<(Time, u32)>>()
    }

    /// A packet passes. Call [`Self::poll`] afterwards.
    pub fn on_packet(&mut self, now: Time, packet: &Packet<'_>) {
        let slot = match self.by_id.get(&packet.flow) {
            Some(&slot) => slot,
            None => match self.begin(now, packet) {
                Some(slot) => slot,
                None => return,
            },
        };
        self.stats.packets += 1;
        if self.newest != slot {
            self.unlink(slot);
            self.link(now, slot);
        } else {
            self.ages[slot as usize].last_packet = now;
        }
        if self.closing == NONE {
            (self.closing, self.closes_at) = (slot, now + CLOSING);
        }
        let flow = &mut self.flows[slot as usize];
        let server = &self.servers[flow.server as usize];
        let Some((subscription, until)) = &server.subscription else { return };
        if now >= *until {
            return;
        }
        if flow.generation != server.generation {
            flow.generation = server.generation;
            self.by_reference.remove(&flow.reference);
            flow.reference = reference(&subscription.flow_key, &flow.id);
            self.by_reference.insert(flow.reference, slot);
            flow.restart(flow.epoch.wrapping_add(1));
            if let (Body::Tcp { seq, .. }, Counted::Tcp(gaps)) = (packet.body, &mut flow.counted) {
                gaps.skip_to(seq);
            }
        }
        let unaffordable = !flow.affords_report();
        flow.closed = false;
        flow.total = flow.total.saturating_add(1);
        flow.credit = (flow.credit + i64::from(packet.bytes)).min(SHARE * 4_096);
        match (packet.body, &mut flow.counted) {
            (Body::Tcp { seq, length, .. }, Counted::Tcp(gaps)) => {
                let fits = gaps.on_segment(now, seq, length);
                if !fits {
                    flow.restart(flow.epoch.wrapping_add(1));
                }
                if let (false, Counted::Tcp(gaps)) = (fits, &mut flow.counted) {
                    gaps.skip_to(seq.wrapping_add(length));
                }
            }
            (Body::Opaque { payload, length }, Counted::Opaque(newest, sums)) => {
                *newest = tag(&subscription.tag_key, payload, length);
                sums.insert(*newest);
            }
            _ => {} // a port reused by another protocol is another 5-tuple
        }
        flow.packets = flow.packets.wrapping_add(1);
        flow.bytes = flow.bytes.wrapping_add(u64::from(packet.bytes));
        flow.marked = flow.marked.wrapping_add(u32::from(packet.marked));
        let interval = subscription.interval;
        if flow.unreported == 0 || unaffordable && flow.first_unreported + interval < now {
            (flow.first_unreported, flow.unreported) = (now, 0);
        }
        flow.unreported = flow.unreported.saturating_add(1);
        let enough = if flow.total <= FIRST { FIRST_PACKETS } else { u16::from(subscription.packets) };
        let wake_at = flow.wake_at(interval);
        if flow.unreported >= enough || wake_at <= now {
            if !core::mem::replace(&mut flow.ready, true) {
                self.ready.push_back(slot);
            }
        } else if wake_at < flow.timer {
            self.wake(slot, wake_at);
        }
    }

    /// Packets have passed that were not observed. Each flow begins a new epoch, and again with its next packet, so that they are
    /// reported as unknown and not as missing.
    pub fn lose_sight(&mut self) {
        for server in &mut self.servers {
            server.generation = server.generation.wrapping_add(1);
        }
        for flow in self.flows.iter_mut().filter(|flow| flow.live) {
            flow.restart(flow.epoch.wrapping_add(1));
        }
    }

    /// Whether a server with this address is subscribed.
    pub fn is_subscribed(&self, now: Time, address: [u8; 16]) -> bool {
        let mut servers = self.servers.iter().filter(|server| server.address == address);
        servers.any(|server| server.subscription.as_ref().is_some_and(|(_, until)| now < *until))
    }

    /// Begins a flow with its first packet.
    fn begin(&mut self, now: Time, packet: &Packet<'_>) -> Option<u32> {
        let index = self.servers.iter().position(|server| server.address == packet.flow.source)?;
        let server = &mut self.servers[index];
        server.packets = server.packets.saturating_add(1);
        let (subscription, until) = server.subscription.as_ref()?;
        if now >= *until {
            return None;
        }
        let (reference, generation) = (reference(&subscription.flow_key, &packet.flow), server.generation);
        let rate = u32::from(subscription.rate);
        self.age(now);
        if self.by_id.len() >= self.settings.flows.max(1) {
            self.stats.evicted += 1;
            self.forget(self.oldest);
        }
        // Epoch zero means that everything from the first byte on was seen. Otherwise the epoch is a number that no flow has had
        // yet: the flow may have been known before, and an older epoch would be refused.
        let (counted, from_first) = match packet.body {
            Body::Tcp { syn, .. } => (Counted::Tcp(Gaps::default()), syn),
            Body::Opaque { .. } => (Counted::Opaque(0, PowerSums::default()), false),
        };
        let epoch = if from_first { 0 } else { self.next_epoch() };
        let flow = Flow {
            id: packet.flow,
            server: index as u32,
            generation,
            reference,
            first_unreported: now,
            timer: Time::MAX,
            ready: false,
            counted,
            credit: 0,
            limit: TokenBucket::new(rate, BURST),
            bytes: 0,
            packets: 0,
            total: 0,
            marked: 0,
            epoch,
            unreported: 0,
            closed: false,
            live: true,
        };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.flows[slot as usize] = flow;
                slot
            }
            None => {
                self.flows.push(flow);
                self.ages.push(Age { last_packet: now, older: NONE, newer: NONE });
                self.flows.len() as u32 - 1
            }
        };
        self.stats.flows += 1;
        self.link(now, slot);
        self.by_id.insert(packet.flow, slot);
        self.by_reference.insert(reference, slot);
        Some(slot)
    }

    fn next_epoch(&mut self) -> u16 {
        self.epochs = self.epochs.wrapping_add(1).max(1);
        self.epochs
    }

    fn link(&mut self, now: Time, slot: u32) {
        let newest = core::mem::replace(&mut self.newest, slot);
        self.ages[slot as usize] = Age { last_packet: now, older: newest, newer: NONE };
        match self.ages.get_mut(newest as usize) {
            Some(before) => before.newer = slot,
            None => self.oldest = slot,
        }
    }

    fn unlink(&mut self, slot: u32) {
        let Age { older, newer, .. } = self.ages[slot as usize];
        if self.closing == slot {
            self.closing = newer;
        }
        match self.ages.get_mut(older as usize) {
            Some(before) => before.newer = newer,
            None => self.oldest = newer,
        }
        match self.ages.get_mut(newer as usize) {
            Some(after) => after.older = older,
            None => self.newest = older,
        }
    }

    fn forget(&mut self, slot: u32) {
        if slot == NONE {
            return;
        }
        self.unlink(slot);
        let flow = &mut self.flows[slot as usize];
        flow.live = false;
        flow.ready = false;
        flow.timer = Time::MAX;
        let (id, reference) = (flow.id, flow.reference);
        // The flow may come again, and must then get a later epoch.
        if (flow.epoch.wrapping_sub(self.epochs) as i16) > 0 {
            self.epochs = flow.epoch;
        }
        self.by_id.remove(&id);
        if self.by_reference.get(&reference) == Some(&slot) {
            self.by_reference.remove(&reference);
        }
        self.free.push(slot);
    }

    /// Forgets flows that were silent for too long.
    pub(super) fn age(&mut self, now: Time) {
        while let Some(age) = self.ages.get(self.oldest as usize) {
            if now.since(age.last_packet) < self.settings.idle {
                break;
            }
            self.stats.aged += 1;
            self.forget(self.oldest);
        }
    }

    /// When [`Self::poll`] will return something; [`Time::MAX`] for never.
    pub fn next_deadline(&self) -> Time {
        if !self.ready.is_empty() {
            return Time::ZERO;
        }
        self.next_timer().min(self.closes_at)
    }

    fn next_timer(&self) -> Time {
        let regular = self.regular.front().map_or(Time::MAX, |(at, _)| *at);
        self.timers.peek().map_or(Time::MAX, |Reverse((at, _))| *at).min(regular)
    }

    fn pop_timer(&mut self) -> Option<(Time, u32)> {
        let other = self.timers.peek().map(|Reverse(timer)| *timer);
        match self.regular.front() {
            Some(regular) if other.is_none_or(|other| *regular <= other) => self.regular.pop_front(),
            _ => self.timers.pop().map(|Reverse(timer)| timer),
        }
    }

    /// Makes the closing reports due of flows that were silent for [`CLOSING`].
    fn close(&mut self, now: Time) {
        while let Some(age) = self.ages.get(self.closing as usize) {
            self.closes_at = age.last_packet + CLOSING;
            if self.closes_at > now {
                return;
            }
            let flow = &mut self.flows[self.closing as usize];
            if !flow.closed && !core::mem::replace(&mut flow.ready, true) {
                self.ready.push_back(self.closing);
            }
            self.closing = age.newer;
        }
        self.closes_at = Time::MAX;
    }

    /// The next message to be sent now. Call until `None`.
    pub fn poll(&mut self, now: Time) -> Option<Datagram> {
        loop {
            while let Some(slot) = self.ready.pop_front() {
                let Some(flow) = self.flows.get_mut(slot as usize) else { continue };
                if !core::mem::replace(&mut flow.ready, false) {
                    continue; // forgotten meanwhile
                }
                if let Some(datagram) = self.report(now, slot) {
                    return Some(datagram);
                }
            }
            if self.closes_at <= now {
                self.close(now);
                if !self.ready.is_empty() {
                    continue;
                }
            }
            if self.next_timer() > now {
                break;
            }
            let Some((at, slot)) = self.pop_timer() else { break };
            let flow = &mut self.flows[slot as usize];
            if !flow.live || flow.timer != at {
                continue; // void
            }
            flow.timer = Time::MAX;
            let interval = self.servers[flow.server as usize].interval();
            let wake_at = flow.wake_at(interval);
            // A closing report that was held back by the flow's rate limit is tried again.
            let closes = !flow.closed && now >= self.ages[slot as usize].last_packet + CLOSING;
            if wake_at > now && !closes {
                self.wake(slot, wake_at);
            } else if !core::mem::replace(&mut flow.ready, true) {
                self.ready.push_back(slot);
            }
        }
        if self.settings.offers { self.offer(now) } else { None }
    }

    fn wake(&mut self, slot: u32, at: Time) {
        let flow = &mut self.flows[slot as usize];
        if at >= flow.timer {
            return;
        }
        flow.timer = at;
        if self.regular.back().is_none_or(|(last, _)| *last <= at) {
            self.regular.push_back((at, slot));
        } else {
            self.timers.push(Reverse((at, slot)));
        }
    }

    /// The report of a flow, unless its limits delay it.
    fn report(&mut self, now: Time, slot: u32) -> Option<Datagram> {
        let flow = &mut self.flows[slot as usize];
        let server = &mut self.servers[flow.server as usize];
        let (_, until) = server.subscription.as_ref()?;
        if now >= *until || flow.packets == 0 {
            return None;
        }
        let last_packet = self.ages[slot as usize].last_packet;
        let closing = now >= last_packet + CLOSING;
        if closing && flow.closed {
            return None;
        }
        if !flow.limit.take(now) {
            let at = flow.limit.next().max(now + Span::from_micros(1));
            self.wake(slot, at);
            return None;
        }
        let view = match &mut flow.counted {
            Counted::Tcp(gaps) => View::Tcp(gaps.view(now)?),
            Counted::Opaque(newest, sums) => View::Opaque(OpaqueView { newest: *newest, sums: *sums }),
        };
        let report = ReportMessage {
            reference: flow.reference,
            epoch: flow.epoch,
            packets: flow.packets,
            bytes: flow.bytes,
            hold: now.since(last_packet),
            clock: (now.as_nanos() / 1_000) as u32,
            marked: (flow.marked > 0).then_some(flow.marked),
            closing,
            view,
        };
        let header = Header {
            kind: Kind::Report,
            flags: report.flags(),
            key: server.key,
            pep: self.settings.id,
            sequence: server.sequence,
        };
        let size = match &report.view {
            View::Tcp(view) => TCP_REPORT + 8 * view.ranges().len() as i64,
            View::Opaque(_) => OPAQUE_REPORT,
        };
        if flow.total > FIRST && !closing {
            let cost = SHARE * (size + HEADERS);
            if flow.credit < cost {
                // More packets earn more credit; if none come, the closing report follows.
                flow.unreported = 0;
                return None;
            }
            flow.credit -= cost;
        }
        let mut content = Buffer::default();
        server.sealing.seal(&header, &mut content, |out| report.write(out));
        server.sequence += 1;
        let to = server.address;
        flow.unreported = 0;
        flow.closed = closing;
        let interval = server.interval();
        let again = flow.wake_at(interval);
        self.stats.reports += 1;
        self.stats.report_bytes += content.as_slice().len() as u64 + HEADERS as u64;
        if again < Time::MAX {
            self.wake(slot, again.max(now));
        }
        Some(Datagram { to, content })
    }

    /// Offers the PEP to a server that did not subscribe.
    fn offer(&mut self, now: Time) -> Option<Datagram> {
        let (pep, server) = (
            self.settings.id,
            self.servers.iter_mut().find(|server| {
                server.packets >= HELLO_AFTER
                    && server.subscription.as_ref().is_none_or(|(_, until)| now >= *until)
                    && server.offered.is_none_or(|at| now.since(at) >= HELLO_INTERVAL)
            })?,
        );
        server.offered = Some(now);
        let mut content = Buffer::default();
        Header { kind: Kind::Hello, flags: 0, key: server.key, pep, sequence: 0 }.write(&mut content);
        content.put(&[0; 8]);
        Some(Datagram { to: server.address, content })
    }

    /// A message from a server. One that is not genuine changes nothing.
    pub fn on_datagram(&mut self, now: Time, from: [u8; 16], datagram: &mut [u8]) {
        if self.accept(now, from, datagram).is_none() {
            self.stats.refused += 1;
        }
    }

    fn accept(&mut self, now: Time, from: [u8; 16], datagram: &mut [u8]) -> Option<()> {
        let header = header_of(datagram).ok()?;
        let server = self.servers.iter_mut().find(|server| server.address == from)?;
        if !server.limit.take(now) || !server.replay.is_fresh(header.sequence) {
            return None;
        }
        let body = server.opening.open(&header, datagram)?;
        match header.kind {
            Kind::Subscribe => {
                let wanted = Subscribe::read(body).ok()?;
                let until = now + wanted.lifetime;
                let same = server
                    .subscription
                    .as_ref()
                    .is_some_and(|(old, _)| old.flow_key == wanted.flow_key && old.tag_key == wanted.tag_key);
                server.generation = server.generation.wrapping_add(u32::from(!same));
                server.subscription = Some((wanted, until));
            }
            Kind::Stop => server.subscription = None,
            Kind::Resync => {
                let resync = Resync::read(body).ok()?;
                let slot = *self.by_reference.get(&resync.reference)?;
                let flow = &mut self.flows[slot as usize];
                if self.servers[flow.server as usize].address == from {
                    flow.restart(resync.epoch);
                }
                let server = self.servers.iter_mut().find(|server| server.address == from)?;
                server.replay.note(header.sequence);
                return Some(());
            }
            Kind::Hello | Kind::Report | Kind::Error => return None,
        }
        server.replay.note(header.sequence);
        Some(())
    }
}

impl Server {
    fn interval(&self) -> Span {
        self.subscription.as_ref().map_or(CLOSING, |(wanted, _)| wanted.interval)
    }
}

impl Flow {
    /// Returns whether the flow's bytes have earned a report, at least one without gaps; otherwise there is no need for a timer. Only
    /// packets earn credit, and each packet checks again.
    fn affords_report(&self) -> bool {
        let size = match &self.counted {
            Counted::Tcp(_) => TCP_REPORT,
            Counted::Opaque(..) => OPAQUE_REPORT,
        };
        self.total <= FIRST || self.credit >= SHARE * (size + HEADERS)
    }

    /// When it has something to report before it closes, if no further packet comes; [`Time::MAX`] for never.
    fn wake_at(&self, interval: Span) -> Time {
        let due = self.unreported > 0 && self.affords_report();
        let at = if due { self.first_unreported + interval } else { Time::MAX };
        match &self.counted {
            Counted::Tcp(gaps) => at.min(gaps.tells_at()),
            Counted::Opaque(..) => at,
        }
    }

    /// Begins a new epoch: counters restart.
    fn restart(&mut self, epoch: u16) {
        self.epoch = epoch;
        (self.packets, self.bytes, self.marked, self.unreported) = (0, 0, 0, 0);
        match &mut self.counted {
            Counted::Tcp(gaps) => {
                if let Some(highest) = gaps.highest() {
                    gaps.restart(highest);
                }
            }
            Counted::Opaque(newest, sums) => (*newest, *sums) = (0, PowerSums::default()),
        }
    }
}

/// The name of a flow on the channel: the first 64 bits of HMAC-SHA-256 of its 5-tuple.
pub(super) fn reference(key: &[u8; 32], flow: &FlowId) -> u64 {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(&flow.to_bytes());
    let bytes = mac.finalize().into_bytes();
    bytes.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}
