//! A Lightweight PEP on the path and the agent of its server. Packets are shown to [`Pep`], its messages go to [`Agent`], and reports
//! that the agent verifies are delivered to the flow's sender.
//!
//! One server is behind all flows of a PEP, and its subscription exists from the beginning. A report takes the propagation delay of
//! the return path plus the scenario's `delay`, a request of the server that of the forward path; queues on these paths, and the
//! bytes of messages, are not modelled. A PEP that lies does so in this module, which falsifies its packets or its messages.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use ranpace_pep::lightweight::message::Subscribe;
use ranpace_pep::lightweight::{Agent, Body, FlowId, Packet, Pep, PepSettings, Verified};
use ranpace_scenario::{Hop, PepLie, PepSpec, Scenario};
use ranpace_units::{Bytes, Span, Time};

use crate::random::{mix, unit};
use crate::results::PepResult;

/// The server, as the PEP sees it.
pub const PEP_SERVER: [u8; 16] = [1; 16];
const SECRET: &[u8] = b"simulated";
const KEY: u16 = 1;
/// The key of packets' tags, at both ends.
pub const PEP_TAG_KEY: [u8; 16] = [4; 16];
/// [`PepLie::Gaps`]: one packet in this many is reported missing.
const GAP_EVERY: u64 = 20;
/// [`PepLie::All`] and [`PepLie::Ahead`] for a flow with digests: one invented packet is added per this many.
const INVENTED_EVERY: u64 = 20;
/// [`PepLie::Ahead`]: bytes claimed beyond those seen.
const AHEAD: u32 = 10_000_000;
/// [`PepLie::Replay`]: delays of the copies.
const COPIES: [Span; 2] = [Span::from_millis(5), Span::from_millis(50)];
/// [`PepLie::Flood`]: random messages with every report.
const NOISE: u64 = 20;

/// A message in transit.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Message {
    at: Time,
    order: u64,
    to_server: bool,
    bytes: Vec<u8>,
}

/// A packet as the PEP sees it.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'b> {
    /// The carrier's number of the flow; `connection` counts the flow's successive connections.
    pub flow: u32,
    /// See `flow`.
    pub connection: u32,
    /// The connection's 5-tuple.
    pub id: FlowId,
    /// Delays of messages to the flow's server, and from it.
    pub delays: (Span, Span),
    /// Bytes of the packet without the IP header.
    pub bytes: u32,
    /// Whether Congestion Experienced is set.
    pub marked: bool,
    /// Its content.
    pub body: Body<'b>,
}

/// A connection known to the server.
#[derive(Clone, Copy, Debug)]
struct Known {
    flow: u32,
    connection: u32,
    id: FlowId,
    delays: (Span, Span),
}

/// A simulated PEP. See the module's head.
#[derive(Debug)]
pub struct WatchingPep<'a> {
    spec: &'a PepSpec,
    pep: Pep,
    agent: Agent,
    /// By the number registered with the agent.
    known: Vec<Known>,
    /// For each flow its latest connection, and the number registered for it.
    latest: HashMap<u32, (u32, usize)>,
    /// Messages in transit.
    channel: BinaryHeap<Reverse<Message>>,
    order: u64,
    random: u64,
    packets: u64,
    resyncs: u64,
}

/// A report that is due for a flow's sender.
#[derive(Clone, Debug)]
pub struct PepDelivery {
    /// The flow; `connection` is the one of its connections.
    pub flow: u32,
    /// See `flow`.
    pub connection: u32,
    /// The report that the agent verified.
    pub report: Verified,
    known: usize,
}

impl<'a> WatchingPep<'a> {
    /// The PEP with this number in the scenario.
    pub fn new(spec: &'a PepSpec, number: u32, seed: u64) -> Self {
        let settings = PepSettings { id: number, ..PepSettings::default() };
        let mut pep = Pep::new(settings);
        pep.add_server(PEP_SERVER, SECRET, KEY);
        Self {
            spec,
            pep,
            agent: Agent::new(SECRET, settings.id, KEY, Subscribe::new([3; 32], PEP_TAG_KEY)),
            known: Vec::new(),
            latest: HashMap::new(),
            channel: BinaryHeap::new(),
            order: 0,
            random: mix(seed, u64::from(number)),
            packets: 0,
            resyncs: 0,
        }
    }

    /// When the PEP, or a message in transit, is due.
    pub fn next_event(&self) -> Time {
        let message = self.channel.peek().map_or(Time::MAX, |Reverse(message)| message.at);
        self.pep.next_deadline().min(message)
    }

    /// Its results.
    pub fn result(&self) -> PepResult {
        let (pep, agent) = (self.pep.stats(), self.agent.stats());
        PepResult {
            name: self.spec.name.clone(),
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
            resyncs: self.resyncs,
        }
    }

    /// The sender found a report to be impossible, which counts against the PEP.
    pub fn reject(&mut self, now: Time) {
        self.agent.reject(now);
    }

    /// The sender requests a new epoch of a flow whose digests can no longer be interpreted.
    pub fn ask_for_epoch(&mut self, now: Time, delivery: &PepDelivery) {
        let Known { id, delays, .. } = self.known[delivery.known];
        let Some(asked) = self.agent.resync(&id) else { return };
        self.resyncs += 1;
        let at = now + delays.1;
        self.enter(at, false, asked.as_slice().to_vec());
    }

    fn is_there(&self, now: Time) -> bool {
        now >= self.spec.start && self.spec.stop.is_none_or(|stop| now < stop)
    }

    /// The lie currently in effect.
    fn lie(&self, now: Time) -> PepLie {
        if now >= self.spec.faults_from { self.spec.lie } else { PepLie::None }
    }

    /// A packet passes.
    pub fn see(&mut self, now: Time, seen: &Seen<'_>) {
        if !self.is_there(now) {
            return;
        }
        self.subscribe(now);
        self.learn(seen);
        self.packets += 1;
        let lie = self.lie(now);
        if lie == PepLie::Gaps && self.packets.is_multiple_of(GAP_EVERY) {
            return;
        }
        let mut packet = Packet { flow: seen.id, bytes: seen.bytes, marked: seen.marked, body: seen.body };
        match &mut packet.body {
            Body::Tcp { seq, length, .. } => match lie {
                // As if everything before it had arrived, too.
                PepLie::All => {
                    let end = seq.wrapping_add(*length);
                    *seq = 1;
                    *length = end.wrapping_sub(1).min(i32::MAX as u32);
                }
                PepLie::Ahead => *length += AHEAD,
                _ => {}
            },
            Body::Opaque { length, .. } => {
                let length = *length;
                self.pep.on_packet(now, &packet);
                let invents = matches!(lie, PepLie::All | PepLie::Ahead);
                if invents && self.packets.is_multiple_of(INVENTED_EVERY) {
                    // The PEP cannot know the tags of packets that it has not seen.
                    let noise = self.packets.to_be_bytes();
                    packet.body = Body::Opaque { payload: &noise, length };
                    self.pep.on_packet(now, &packet);
                }
                return;
            }
        }
        self.pep.on_packet(now, &packet);
    }

    /// Registers connections with the server, and forgets those that are over.
    fn learn(&mut self, seen: &Seen<'_>) {
        let latest = self.latest.get(&seen.flow).copied();
        if latest.is_some_and(|(connection, _)| connection == seen.connection) {
            return;
        }
        if let Some((_, before)) = latest {
            self.agent.release(&self.known[before].id);
        }
        self.latest.insert(seen.flow, (seen.connection, self.known.len()));
        self.agent.register(seen.id, self.known.len() as u32);
        let Seen { flow, connection, id, delays, .. } = *seen;
        self.known.push(Known { flow, connection, id, delays });
    }

    /// The server subscribes, and renews after half of the lifetime.
    fn subscribe(&mut self, now: Time) {
        if let Some(mut asked) = self.agent.poll(now) {
            self.pep.on_datagram(now, PEP_SERVER, asked.as_mut_slice());
        }
    }

    fn chance(&mut self) -> f64 {
        self.random = mix(self.random, 1);
        unit(self.random)
    }

    /// Sends the PEP's due messages.
    fn send(&mut self, now: Time) {
        let (lie, faulty) = (self.lie(now), now >= self.spec.faults_from);
        while let Some(datagram) = self.pep.poll(now) {
            if !self.is_there(now) || (faulty && self.spec.loss > 0.0 && self.chance() < self.spec.loss) {
                continue;
            }
            // All flows of a PEP usually share the path to their server, so the latest one decides.
            let delay = self.known.last().map_or(Span::ZERO, |known| known.delays.0);
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
                        // The sequence numbers that genuine messages will have.
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

    /// The next report due for a sender. Call until `None`.
    pub fn poll(&mut self, now: Time) -> Option<PepDelivery> {
        self.send(now);
        while self.channel.peek().is_some_and(|Reverse(message)| message.at <= now) {
            let Some(Reverse(mut message)) = self.channel.pop() else { break };
            if !message.to_server {
                if self.is_there(now) {
                    self.pep.on_datagram(now, PEP_SERVER, &mut message.bytes);
                }
                continue;
            }
            let Ok(report) = self.agent.on_datagram(now, &mut message.bytes) else { continue };
            let number = report.flow as usize;
            let Some(&Known { flow, connection, .. }) = self.known.get(number) else { continue };
            return Some(PepDelivery { flow, connection, report, known: number });
        }
        None
    }
}

/// Delays of a PEP's messages to a flow's server, and from it: propagation only. `back` leads from the PEP to the server, `there`
/// from the server to the PEP.
pub fn message_delays(scenario: &Scenario, back: &[Hop], there: &[Hop]) -> (Span, Span) {
    let delay = |hops: &[Hop]| {
        let links = hops.iter().filter_map(|hop| scenario.links.get(hop.link()?));
        links.map(|link| link.config.delay).sum()
    };
    (delay(back), delay(there))
}
