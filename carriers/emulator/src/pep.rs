//! A Lightweight PEP of the scenario for real packets: observes packets to users, and passes all of them.
//!
//! Its reports go to the agent of the server behind it, as in the simulator ([`WatchingPep`]). What the agent has verified of TCP
//! connections can be written as lines ([`PepReport`]), which `ranpace kernel feed` brings to the server's kernel. The results
//! contain what the PEP reported and what the agent verified.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use ranpace_cc::RadioHint;
use ranpace_network::random::part_seed;
use ranpace_network::{PEP_SERVER, PepResult, Seen, WatchingPep, message_delays};
use ranpace_pep::lightweight::message::{TcpView, View};
use ranpace_pep::lightweight::{Body, FlowId, Verified};
use ranpace_scenario::{Hop, PepSpec};
use ranpace_units::{Span, Time};

use crate::headers::Transport;
use crate::participant::{ArrivingPacket, Participant, Send, Verdict};
use crate::topology::Topology;

const TCP: u8 = 6;
const UDP: u8 = 17;
/// Flags of TCP's header (RFC 9293 section 3.1).
const SYN: u8 = 0x02;
/// See [`SYN`].
const RST: u8 = 0x04;

/// A report on a TCP connection, verified by the agent of its server.
#[derive(Clone, Debug)]
pub struct PepReport {
    /// Name of the PEP.
    pub pep: String,
    /// The server's end of the connection.
    pub server: SocketAddr,
    /// The user's.
    pub user: SocketAddr,
    /// The packets that passed.
    pub verified: Verified,
    /// The bytes that passed.
    pub view: TcpView,
}

/// A PEP at a host.
pub struct PepAtHost<'a> {
    name: &'a str,
    pep: WatchingPep<'a>,
    /// Verified reports on TCP connections that have not been taken.
    reports: VecDeque<PepReport>,
    /// For each whole route, the delays of messages to its server, and from it.
    delays: Vec<(Span, Span)>,
    /// Numbers of connections, in the order in which they appeared.
    numbers: HashMap<FlowId, u32>,
    /// Their ends: the server's and the user's.
    ends: Vec<(SocketAddr, SocketAddr)>,
}

impl<'a> PepAtHost<'a> {
    /// The PEP with this number.
    pub fn new(spec: &'a PepSpec, number: u32, topology: &Topology) -> Self {
        let scenario = &topology.scenario;
        let to_host = |hop: &Hop| scenario.ends(*hop).1 == spec.host;
        let delays = (0..topology.whole() as u32).map(|route| {
            let there = topology.path(route);
            let there = &there[..there.iter().position(to_host).map_or(0, |hop| hop + 1)];
            let back = topology.answers(route).map_or(&[][..], |route| topology.path(route));
            let back = &back[back.iter().position(to_host).map_or(back.len(), |hop| hop + 1)..];
            message_delays(scenario, back, there)
        });
        let seed = part_seed(scenario.seed, 4, 0);
        Self {
            name: &spec.name,
            pep: WatchingPep::new(spec, number, seed),
            reports: VecDeque::new(),
            delays: delays.collect(),
            numbers: HashMap::new(),
            ends: Vec::new(),
        }
    }

    /// The next verified report on a TCP connection.
    pub fn take_report(&mut self) -> Option<PepReport> {
        self.reports.pop_front()
    }

    /// Its results.
    pub fn result(&self) -> PepResult {
        self.pep.result()
    }
}

/// The 5-tuple of a packet, its source, its destination, its content and its bytes after the IP header; `None` unless it is a whole TCP segment or UDP datagram.
fn content(packet: &[u8]) -> Option<(FlowId, (SocketAddr, SocketAddr), Body<'_>, u32)> {
    let (from, to, transport) = Transport::read(packet)?;
    let behind = packet.get(transport.offset..)?;
    let ports: &[u8; 4] = behind.first_chunk()?;
    let body = match transport.protocol {
        TCP if transport.is_whole_tcp() => {
            let header: &[u8; 20] = behind.first_chunk()?;
            let payload = behind.len().checked_sub(usize::from(header[12] >> 4) * 4)?;
            let seq = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
            let (syn, reset) = (header[13] & SYN != 0, header[13] & RST != 0);
            Body::Tcp { seq, length: payload as u32 + u32::from(syn), syn, reset }
        }
        UDP if transport.is_whole_udp() => {
            let payload = behind.get(8..)?;
            Body::Opaque { payload, length: payload.len() as u32 }
        }
        _ => return None,
    };
    let destination = match to {
        IpAddr::V4(to) => to.to_ipv6_mapped().octets(),
        IpAddr::V6(to) => to.octets(),
    };
    let id = FlowId {
        // One server is behind all flows of a PEP.
        source: PEP_SERVER,
        destination,
        source_port: u16::from_be_bytes([ports[0], ports[1]]),
        destination_port: u16::from_be_bytes([ports[2], ports[3]]),
        protocol: transport.protocol,
    };
    let ends = (SocketAddr::new(from, id.source_port), SocketAddr::new(to, id.destination_port));
    Some((id, ends, body, behind.len() as u32))
}

impl Participant for PepAtHost<'_> {
    fn on_packet(&mut self, now: Time, passing: &ArrivingPacket<'_>, _: Send<'_>) -> Verdict {
        // Servers do not need reports about packets that users send.
        if passing.from_user.is_none()
            && let Some((id, ends, body, bytes)) = content(passing.packet)
        {
            let next = self.numbers.len() as u32;
            let flow = *self.numbers.entry(id).or_insert(next);
            if flow == next && self.ends.len() == next as usize {
                self.ends.push(ends);
            }
            let delays = self.delays.get(passing.route as usize).copied().unwrap_or_default();
            let seen = Seen { flow, connection: 0, id, delays, bytes, marked: passing.marked, body };
            self.pep.see(now, &seen);
        }
        Verdict::Pass
    }

    fn on_hint(&mut self, _: Time, _: u32, _: &RadioHint, _: Send<'_>) {}

    fn next_deadline(&self) -> Time {
        self.pep.next_event()
    }

    fn on_deadline(&mut self, now: Time, _: Send<'_>) {
        while let Some(delivery) = self.pep.poll(now) {
            let View::Tcp(view) = delivery.report.report.view else { continue };
            if let Some((server, user)) = self.ends.get(delivery.flow as usize).copied() {
                let pep = self.name.to_owned();
                self.reports.push_back(PepReport { pep, server, user, verified: delivery.report, view });
            }
        }
    }
}
