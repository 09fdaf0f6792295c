//! Lightweight PEPs on the paths of simulated flows. Each PEP ([`WatchingPep`]) is shown the packets that pass it; reports that the
//! server's agent verifies are delivered to the flow's sender.
//!
//! A PEP sees the sequence numbers of TCP, and the first bytes of each QUIC datagram, from which it computes tags. The flow's own end
//! remembers the tags that the server sent ([`crate::quic`]). Datagrams are not encrypted, as nothing in the simulator is; they differ
//! all the same, by their packet numbers and offsets.

use ranpace_network::{PEP_SERVER, PepDelivery, PepResult, Seen, WatchingPep, message_delays};
use ranpace_pep::lightweight::message::View;
use ranpace_pep::lightweight::{Body, FlowId};
use ranpace_scenario::Scenario;
use ranpace_tcp::{Kind, PepView, Segment};
use ranpace_units::{Ecn, Span, Time};

use crate::flow::Ends;
use crate::pep_outcome::PepOutcome;

/// IPv4 header, which is excluded.
const IP_HEADER: u32 = 20;

/// The PEPs of a scenario.
#[derive(Debug)]
pub(crate) struct Peps<'a> {
    all: Vec<WatchingPep<'a>>,
    /// For each flow and PEP, the delays of messages to the server, and from it.
    delays: Vec<Vec<(Span, Span)>>,
    /// For each flow whether a PEP watches it.
    watched: Vec<bool>,
}

impl<'a> Peps<'a> {
    /// The PEPs of a scenario; `None` if there are none.
    pub fn new(scenario: &'a Scenario, seed: u64) -> Option<Box<Self>> {
        if scenario.peps.is_empty() {
            return None;
        }
        let mut watched = vec![false; scenario.flows.len()];
        let (mut all, mut delays) = (Vec::new(), Vec::new());
        for (number, spec) in (0..).zip(&scenario.peps) {
            let mut own = vec![(Span::ZERO, Span::ZERO); scenario.flows.len()];
            for watch in &spec.watches {
                watched[watch.flow] = true;
                let flow = &scenario.flows[watch.flow];
                let back = flow.back.get(watch.back..).unwrap_or_default();
                let there = flow.path.get(..watch.forward).unwrap_or_default();
                own[watch.flow] = message_delays(scenario, back, there);
            }
            delays.push(own);
            all.push(WatchingPep::new(spec, number, seed));
        }
        Some(Box::new(Self { all, delays, watched }))
    }

    /// Returns whether a PEP watches a flow.
    pub fn watches(&self, flow: u32) -> bool {
        self.watched.get(flow as usize).is_some_and(|watched| *watched)
    }

    /// A packet passes. `content` is the payload of a QUIC datagram.
    pub fn watch(
        &mut self,
        pep: usize,
        now: Time,
        (flow, connection): (u32, u32),
        segment: &Segment,
        content: Option<&[u8]>,
    ) {
        let syn = matches!(segment.kind, Kind::Syn | Kind::SynAck);
        let body = match content {
            Some(payload) => Body::Opaque { payload, length: payload.len() as u32 },
            // A SYN takes the sequence number zero.
            None if syn => Body::Tcp { seq: 0, length: 1, syn, reset: false },
            None => {
                let seq = (segment.seq as u32).wrapping_add(1);
                Body::Tcp { seq, length: segment.length, syn, reset: false }
            }
        };
        let seen = Seen {
            flow,
            connection,
            id: id_of(flow, connection, content.is_some()),
            delays: self.delays[pep][flow as usize],
            bytes: segment.wire.saturating_sub(IP_HEADER),
            marked: segment.ecn == Ecn::Ce,
            body,
        };
        self.all[pep].see(now, &seen);
    }

    /// When a PEP, or a message in transit, is due.
    pub fn next_event(&self, pep: usize) -> Time {
        self.all[pep].next_event()
    }

    /// Results of each PEP.
    pub fn results(&self) -> Vec<PepResult> {
        self.all.iter().map(WatchingPep::result).collect()
    }

    /// The next report due for a sender. Call until `None`.
    pub fn poll(&mut self, pep: usize, now: Time) -> Option<PepDelivery> {
        self.all[pep].poll(now)
    }

    /// A sender has found a report to be impossible.
    pub fn reject(&mut self, pep: usize, now: Time) {
        self.all[pep].reject(now);
    }

    /// A sender requests a new epoch.
    pub fn ask_for_epoch(&mut self, pep: usize, now: Time, delivery: &PepDelivery) {
        self.all[pep].ask_for_epoch(now, delivery);
    }
}

/// The 5-tuple of a connection.
fn id_of(flow: u32, connection: u32, quic: bool) -> FlowId {
    let mut destination = [0; 16];
    destination[8..12].copy_from_slice(&flow.to_be_bytes());
    destination[12..].copy_from_slice(&(connection >> 16).to_be_bytes());
    FlowId {
        source: PEP_SERVER,
        destination,
        source_port: 443,
        destination_port: connection as u16,
        protocol: if quic { 17 } else { 6 },
    }
}

/// Delivers a report to the sender.
pub(crate) fn deliver_report(delivery: &PepDelivery, pep: usize, now: Time, ends: &mut Ends) -> PepOutcome {
    match ends {
        Ends::Tcp(sender, _) => match deliver_to_tcp(delivery, now, sender) {
            true => PepOutcome::Used,
            false => PepOutcome::Rejected { impossible: true, ask: false },
        },
        Ends::Quic(ends) => ends.on_pep_report(now, pep, &delivery.report),
        _ => PepOutcome::Ignored,
    }
}

/// Returns false if the report is impossible.
fn deliver_to_tcp(delivery: &PepDelivery, now: Time, sender: &mut ranpace_tcp::Sender) -> bool {
    let View::Tcp(view) = &delivery.report.report.view else { return false };
    // Extends 32 bits to the number closest to what was sent; data begin after the SYN.
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
    // Only the SYN has passed.
    let cumulative = if view.cumulative <= 1 && sent < 1 << 31 { Some(0) } else { whole(view.cumulative) };
    let Some(cumulative) = cumulative else { return false };
    sender.on_pep_view(
        now,
        &PepView {
            cumulative,
            ranges: &ranges[..view.ranges().len()],
            hold: delivery.report.report.hold,
            marked: delivery.report.report.marked.map(u64::from),
            new_epoch: delivery.report.new_epoch,
        },
    )
}
