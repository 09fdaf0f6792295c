//! Lightweight PEPs on the path: what goes by at their host is shown to [`Pep`], what it says goes to the server's [`Agent`], and
//! what that lets through to the flow's sender.
//!
//! One server is behind all flows, with one agent for each PEP; its subscription is there from the beginning. Reports take the
//! propagation delays of the way back and the scenario's `delay`, what the server asks those of the way there; queues on these
//! ways, and the room that messages take there, are left out. A PEP that lies does so here, where its packets or its messages go
//! through.
//!
//! Of TCP it is shown sequence numbers, of QUIC the beginning of each datagram, of which it makes tags. What the server sent is
//! remembered at the flow's own end ([`crate::quic`]). Datagrams are not encrypted here, as nothing is; their packet numbers and
//! offsets make them differ all the same.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use ranpace_pep::lightweight::message::{Subscribe, View};
use ranpace_pep::lightweight::{
    Agent, Body, FlowId, Packet as Watched, Pep, PepSettings, Unlocated, Verified,
};
use ranpace_scenario::{Hop, PepLie, PepSpec, Scenario};
use ranpace_tcp::{Kind, PepView, Segment};
use ranpace_units::{Bytes, Span, Time};

use crate::flow::Ends;
use ranpace_network::PepResult;
use ranpace_network::random::{mix, unit};

/// The server, as the PEP sees it.
const SERVER: [u8; 16] = [1; 16];
const SECRET: &[u8] = b"simulated";
const KEY: u16 = 1;
/// What tags of packets are made with, at either end.
pub(crate) const TAG_KEY: [u8; 16] = [4; 16];
/// Between two requests for a new epoch of a flow: as long as a PEP may be silent. Ours.
const ASK_AGAIN: Span = Span::from_millis(200);
/// IPv4 header, which is not counted.
const IP_HEADER: u32 = 20;
/// [`PepLie::Gaps`]: one packet in so many is called missing.
const GAP_EVERY: u64 = 20;
/// [`PepLie::All`] and [`PepLie::Ahead`] of a flow by digests: with one packet in so many another that never was.
const INVENTED_EVERY: u64 = 20;
/// [`PepLie::Ahead`]: so many bytes more than were seen.
const AHEAD: u32 = 10_000_000;
/// [`PepLie::Replay`]: when copies come.
const COPIES: [Span; 2] = [Span::from_millis(5), Span::from_millis(50)];
/// [`PepLie::Flood`]: messages of noise with every report.
const NOISE: u64 = 20;

/// A message on its way.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Message {
    at: Time,
    order: u64,
    to_server: bool,
    bytes: Vec<u8>,
}

/// A PEP while it is played.
#[derive(Debug)]
struct Watcher<'a> {
    spec: &'a PepSpec,
    pep: Pep,
    agent: Agent,
    /// Of each flow its delay to the server, and from there.
    delays: Vec<(Span, Span)>,
    /// Flows that the server knows, with their connection, by the number that the agent has.
    known: Vec<(u32, u32)>,
    latest: HashMap<u32, u32>,
    /// When a new epoch of a flow may be asked for again.
    ask_from: HashMap<u32, Time>,
    /// Messages on their way.
    channel: BinaryHeap<Reverse<Message>>,
    order: u64,
    random: u64,
    packets: u64,
    resyncs: u64,
}

/// The PEPs of a scenario.
#[derive(Debug)]
pub(crate) struct Watchers<'a> {
    all: Vec<Watcher<'a>>,
    /// For each flow whether a PEP watches it.
    watched: Vec<bool>,
}

/// What became of what a sender was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// It knows.
    Yes,
    /// It made no sense: a new epoch is wanted. It may be that it could not be.
    Nonsense { impossible: bool },
    /// It was of no use.
    No,
}

/// What a flow's sender is told.
pub(crate) struct Told {
    /// The flow, and which of its connections.
    pub flow: u32,
    pub connection: u32,
    report: Verified,
}

impl<'a> Watchers<'a> {
    /// Those of a scenario; `None` if there are none.
    pub fn new(scenario: &'a Scenario, seed: u64) -> Option<Box<Self>> {
        if scenario.peps.is_empty() {
            return None;
        }
        let mut watched = vec![false; scenario.flows.len()];
        let mut all = Vec::new();
        for (index, spec) in scenario.peps.iter().enumerate() {
            let mut delays = vec![(Span::ZERO, Span::ZERO); scenario.flows.len()];
            let delay_of = |sum: Span, hop: &Hop| match hop {
                Hop::Link(link) => sum + scenario.links[*link as usize].config.delay,
                Hop::Radio { .. } => sum,
            };
            for watch in &spec.watches {
                watched[watch.flow] = true;
                let flow = &scenario.flows[watch.flow];
                let back = flow.back.iter().skip(watch.back).fold(Span::ZERO, delay_of);
                let forward = flow.path.iter().take(watch.forward).fold(Span::ZERO, delay_of);
                delays[watch.flow] = (back, forward);
            }
            let settings = PepSettings { id: index as u32, ..PepSettings::default() };
            let mut pep = Pep::new(settings);
            pep.add_server(SERVER, SECRET, KEY);
            all.push(Watcher {
                spec,
                pep,
                agent: Agent::new(SECRET, settings.id, KEY, Subscribe::new([3; 32], TAG_KEY)),
                delays,
                known: Vec::new(),
                latest: HashMap::new(),
                ask_from: HashMap::new(),
                channel: BinaryHeap::new(),
                order: 0,
                random: mix(seed, index as u64),
                packets: 0,
                resyncs: 0,
            });
        }
        Some(Box::new(Self { all, watched }))
    }

    /// Whether a PEP watches a flow.
    pub fn watches(&self, flow: u32) -> bool {
        self.watched.get(flow as usize).is_some_and(|watched| *watched)
    }

    /// A packet goes by. `content` is what it says, where it is a datagram of QUIC.
    pub fn watch(
        &mut self,
        pep: usize,
        now: Time,
        (flow, connection): (u32, u32),
        segment: &Segment,
        content: Option<&[u8]>,
    ) {
        self.all[pep].watch(now, (flow, connection), segment, content);
    }

    /// When a PEP, or a message on its way, is due.
    pub fn next_event(&self, pep: usize) -> Time {
        let own = &self.all[pep];
        let message = own.channel.peek().map_or(Time::MAX, |Reverse(message)| message.at);
        own.pep.next_deadline().min(message)
    }

    /// What became of each.
    pub fn results(&self) -> Vec<PepResult> {
        let result = |own: &Watcher<'_>| {
            let (pep, agent) = (own.pep.stats(), own.agent.stats());
            PepResult {
                name: own.spec.name.clone(),
                packets: pep.packets,
                flows: pep.flows,
                evicted: pep.evicted,
                aged: pep.aged,
                reports: pep.reports,
                report_bytes: Bytes::new(pep.report_bytes),
                verified: agent.verified,
                refused: agent.messages - agent.verified,
                impossible: agent.impossible,
                distrusted: agent.distrusted,
                resyncs: own.resyncs,
            }
        };
        self.all.iter().map(result).collect()
    }

    /// What is to be told a sender now. Call until `None`.
    pub fn poll(&mut self, pep: usize, now: Time) -> Option<Told> {
        self.all[pep].poll(now)
    }

    /// What was told made no sense: it counts against the PEP if it could not be, and another epoch is asked for where its flow is
    /// told by digests.
    pub fn reject(&mut self, pep: usize, now: Time, told: &Told, impossible: bool) {
        let own = &mut self.all[pep];
        if impossible {
            own.agent.reject(now);
        }
        if matches!(told.report.report.view, View::Opaque(_)) {
            own.ask_for_epoch(now, told);
        }
    }
}

impl Watcher<'_> {
    fn is_there(&self, now: Time) -> bool {
        now >= self.spec.start && self.spec.stop.is_none_or(|stop| now < stop)
    }

    /// How it lies now.
    fn lie(&self, now: Time) -> PepLie {
        if now >= self.spec.faults_from { self.spec.lie } else { PepLie::None }
    }

    /// The name of a connection on the wire.
    fn id_of(flow: u32, connection: u32, quic: bool) -> FlowId {
        let mut destination = [0; 16];
        destination[8..12].copy_from_slice(&flow.to_be_bytes());
        destination[12..].copy_from_slice(&(connection >> 16).to_be_bytes());
        FlowId {
            source: SERVER,
            destination,
            source_port: 443,
            destination_port: connection as u16,
            protocol: if quic { 17 } else { 6 },
        }
    }

    fn watch(
        &mut self,
        now: Time,
        (flow, connection): (u32, u32),
        segment: &Segment,
        content: Option<&[u8]>,
    ) {
        if !self.is_there(now) {
            return;
        }
        self.subscribe(now);
        let quic = content.is_some();
        let id = Self::id_of(flow, connection, quic);
        if self.latest.get(&flow) != Some(&connection) {
            // The server knows its connections. What is over is forgotten.
            if let Some(before) = self.latest.insert(flow, connection) {
                self.agent.release(&Self::id_of(flow, before, quic));
            }
            self.agent.register(id, self.known.len() as u32);
            self.known.push((flow, connection));
        }
        self.packets += 1;
        let bytes = segment.wire.saturating_sub(IP_HEADER);
        let lie = self.lie(now);
        if let Some(payload) = content {
            if lie == PepLie::Gaps && self.packets.is_multiple_of(GAP_EVERY) {
                return;
            }
            let length = payload.len() as u32;
            let datagram = |payload, length| Watched {
                flow: id,
                bytes,
                marked: segment.ce,
                body: Body::Opaque { payload, length },
            };
            self.pep.on_packet(now, &datagram(payload, length));
            let invents = matches!(lie, PepLie::All | PepLie::Ahead);
            if invents && self.packets.is_multiple_of(INVENTED_EVERY) {
                // It cannot know the tags of what it has not seen.
                self.pep.on_packet(now, &datagram(&self.packets.to_be_bytes(), length));
            }
            return;
        }
        // A SYN takes the sequence number zero.
        let (mut seq, mut length) = match segment.kind {
            Kind::Syn | Kind::SynAck => (0, 1),
            _ => ((segment.seq as u32).wrapping_add(1), segment.length),
        };
        match lie {
            PepLie::Gaps if self.packets.is_multiple_of(GAP_EVERY) => return,
            // As if everything before it had come, too.
            PepLie::All => {
                let end = seq.wrapping_add(length);
                seq = 1;
                length = end.wrapping_sub(seq).min(i32::MAX as u32);
            }
            PepLie::Ahead => length += AHEAD,
            _ => {}
        }
        let syn = matches!(segment.kind, Kind::Syn | Kind::SynAck);
        self.pep.on_packet(
            now,
            &Watched {
                flow: id,
                bytes,
                marked: segment.ce,
                body: Body::Tcp { seq, length, syn, reset: false },
            },
        );
    }

    /// The server asks, and asks again when half of the time is over.
    fn subscribe(&mut self, now: Time) {
        if let Some(mut asked) = self.agent.poll(now) {
            self.pep.on_datagram(now, SERVER, asked.as_mut_slice());
        }
    }

    /// The server asks for a new epoch of a flow whose digests make no sense any more.
    fn ask_for_epoch(&mut self, now: Time, told: &Told) {
        if self.ask_from.get(&told.flow).is_some_and(|at| now < *at) {
            return;
        }
        let Some(asked) = self.agent.resync(&Self::id_of(told.flow, told.connection, true)) else { return };
        self.ask_from.insert(told.flow, now + ASK_AGAIN);
        self.resyncs += 1;
        let at = now + self.delays[told.flow as usize].1;
        self.enter(at, false, asked.as_slice().to_vec());
    }

    fn chance(&mut self) -> f64 {
        self.random = mix(self.random, 1);
        unit(self.random)
    }

    /// What the PEP has to say goes on its way.
    fn send(&mut self, now: Time) {
        let (lie, faulty) = (self.lie(now), now >= self.spec.faults_from);
        while let Some(datagram) = self.pep.poll(now) {
            if !self.is_there(now) || (faulty && self.spec.loss > 0.0 && self.chance() < self.spec.loss) {
                continue;
            }
            // All flows of a PEP mostly have one way to their servers; the last one that was seen tells.
            let delay = self.known.last().map_or(Span::ZERO, |(flow, _)| self.delays[*flow as usize].0);
            let delay = if faulty { delay + self.spec.delay } else { delay };
            let mut bytes = datagram.content.as_slice().to_vec();
            match lie {
                PepLie::Replay => {
                    for later in COPIES {
                        self.enter(now + delay + later, true, bytes.clone());
                    }
                }
                PepLie::Flood => {
                    for _ in 0..NOISE {
                        let mut noise = bytes.clone();
                        for byte in &mut noise[16..] {
                            self.random = mix(self.random, 2);
                            *byte = self.random as u8;
                        }
                        // The sequence numbers that genuine ones will have.
                        noise[15] = noise[15].wrapping_add(1 + (self.random >> 8) as u8 % 16);
                        self.enter(now + delay, true, noise);
                    }
                }
                PepLie::Forge => {
                    let place = bytes.len() / 2;
                    bytes[place] ^= 0x55;
                }
                _ => {}
            }
            self.enter(now + delay, true, bytes);
        }
    }

    fn enter(&mut self, at: Time, to_server: bool, bytes: Vec<u8>) {
        self.order += 1;
        self.channel.push(Reverse(Message { at, order: self.order, to_server, bytes }));
    }

    fn poll(&mut self, now: Time) -> Option<Told> {
        self.send(now);
        while self.channel.peek().is_some_and(|Reverse(message)| message.at <= now) {
            let Some(Reverse(mut message)) = self.channel.pop() else { break };
            if !message.to_server {
                if self.is_there(now) {
                    self.pep.on_datagram(now, SERVER, &mut message.bytes);
                }
                continue;
            }
            let Ok(report) = self.agent.on_datagram(now, &mut message.bytes) else { continue };
            let Some(&(flow, connection)) = self.known.get(report.flow as usize) else { continue };
            return Some(Told { flow, connection, report });
        }
        None
    }
}

impl Told {
    /// Hands it to the sender.
    pub fn tell(&self, now: Time, ends: &mut Ends) -> Heard {
        match (ends, &self.report.report.view) {
            (Ends::Tcp(sender, _), View::Tcp(_)) => match self.tell_tcp(now, sender) {
                true => Heard::Yes,
                false => Heard::Nonsense { impossible: true },
            },
            (Ends::Quic(ends), View::Opaque(_)) => match ends.on_pep_report(now, &self.report) {
                Ok(()) => Heard::Yes,
                Err(Unlocated::GivenUp) => Heard::No,
                Err(error) => Heard::Nonsense { impossible: error == Unlocated::Impossible },
            },
            _ => Heard::No,
        }
    }

    /// False if it cannot be.
    fn tell_tcp(&self, now: Time, sender: &mut ranpace_tcp::Sender) -> bool {
        let View::Tcp(view) = &self.report.report.view else { return false };
        // Of 32 bits, the number that is nearest to what was sent; data begin behind the SYN.
        let sent = sender.sent().get();
        let whole = |number: u32| {
            let distance = number.wrapping_sub(1).wrapping_sub(sent as u32) as i32;
            sent.checked_add_signed(i64::from(distance))
        };
        let mut ranges = [(0, 0); 8];
        for (place, range) in ranges.iter_mut().zip(view.ranges()) {
            let (Some(start), Some(end)) = (whole(range.0), whole(range.1)) else { return false };
            *place = (start, end);
        }
        // Nothing but the SYN came by.
        let cumulative =
            if view.cumulative <= 1 && sent < 1 << 31 { Some(0) } else { whole(view.cumulative) };
        let Some(cumulative) = cumulative else { return false };
        sender.on_pep_view(
            now,
            &PepView {
                cumulative,
                ranges: &ranges[..view.ranges().len()],
                hold: self.report.report.hold,
                marked: self.report.report.marked.map(u64::from),
                new_epoch: self.report.new_epoch,
            },
        )
    }
}
