//! Merges what the network counted and what the kernel reports into the results of flows.

use ranpace_network::{FlowResult, FlowTotals, RunResult, SplitResult};
use ranpace_units::{Bytes, Rate, Span, Time};

use crate::player::{Ends, Played, Seen, WorkloadReport};
use crate::split::Split;
use crate::topology::Topology;

/// Results of the scenario's flows come first, in its order; then those of the routes that carried traffic of programs; then those
/// of the programs' connections.
pub fn merge(topology: &Topology, mut result: RunResult, report: &WorkloadReport<'_>) -> RunResult {
    let own = topology.own().len();
    let others = result.flows.split_off((2 * own).min(result.flows.len()));
    result.flows.truncate(own);
    for ((flow, played), spec) in result.flows.iter_mut().zip(&report.flows).zip(topology.flows()) {
        flow.name.clone_from(&spec.name);
        own_flow(flow, played, report);
    }
    let connections: Vec<FlowResult> = (report.connections.iter())
        .filter_map(|seen| {
            let route = topology.between(seen.ends.0, seen.ends.1)? as usize;
            Some(connection(topology, others.get(route - 2 * own)?, seen, report))
        })
        .collect();
    result.flows.extend(others.into_iter().filter(|flow| flow.sent_packets > 0).map(|mut flow| {
        "kernel".clone_into(&mut flow.cc);
        flow
    }));
    result.flows.extend(connections);
    result
}

/// Adds the counts of the other parts of cut routes to their flows, removes those parts from the flows, and adds a proxy's results.
pub fn add_parts(topology: &Topology, result: &mut RunResult, split: impl Fn(u32) -> Option<SplitResult>) {
    let parts = result.flows.split_off(topology.whole().min(result.flows.len()));
    let capacity = |flow: &FlowResult| flow.bottleneck.and_then(|link| result.links.get(link)?.capacity);
    for (route, flow) in (0_u32..).zip(&mut result.flows) {
        let mut next = topology.cut_of(route);
        flow.split = split(route);
        while let Some(cut) = next {
            let Some(part) = parts.get(cut.onward as usize - topology.whole()) else { break };
            if let Some(split) = &mut flow.split {
                split.ran_dropped_packets += part.dropped_packets;
            }
            let is_slower = match (capacity(part), capacity(flow)) {
                (Some(part), Some(flow)) => part < flow,
                (part, flow) => part.is_some() || flow.is_none(),
            };
            let sums = FlowResult {
                name: std::mem::take(&mut flow.name),
                sent_packets: flow.sent_packets,
                dropped_packets: flow.dropped_packets + part.dropped_packets,
                marked_packets: flow.marked_packets + part.marked_packets,
                loss_rate: share(flow.dropped_packets + part.dropped_packets, flow.sent_packets),
                delivered: part.delivered,
                goodput: part.goodput,
                totals: flow.totals,
                split: flow.split.take(),
                ..if is_slower { part.clone() } else { flow.clone() }
            };
            *flow = sums;
            next = topology.cut_of(cut.onward);
        }
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn rate(bytes: Bytes, span: Span) -> Rate {
    if span.is_zero() { Rate::ZERO } else { Rate::of(bytes, span) }
}

/// A flow of the scenario; `flow` holds the network's counts on its path.
fn own_flow(flow: &mut FlowResult, played: &Played<'_>, report: &WorkloadReport<'_>) {
    let (from, end) = (report.measured_from, report.end);
    flow.delivered = Bytes::new(played.delivered() - played.delivered_before);
    let (first_sent, last_received) = match &played.ends {
        Ends::Tcp(stream) => {
            flow.measured = stream.application.measured(from, end);
            flow.transfers = stream.application.transfers().to_vec();
            kernel(flow, &played.record);
            add_split(flow, Some(&played.split));
            (stream.first_sent, stream.last_received)
        }
        Ends::Quic(quic) => {
            flow.measured = quic.application.measured(from, end);
            flow.transfers = quic.application.transfers().to_vec();
            kernel(flow, &played.record);
            add_split(flow, None);
            (quic.first_sent, quic.last_received)
        }
        Ends::Programs(followed) => {
            flow.measured = end - from;
            kernel(flow, &played.record);
            add_split(flow, None);
            (flow.totals.last_acked, flow.totals.recoveries) = (followed.last_acked, followed.recoveries);
            (followed.first_sent, None)
        }
        Ends::Udp(datagrams) => {
            add_split(flow, None);
            flow.measured = datagrams.measured(from, end);
            (flow.totals.received_packets, flow.totals.one_way_mean) = datagrams.received();
            (datagrams.first_sent, datagrams.last_received)
        }
    };
    flow.cc = played.cc();
    flow.goodput = rate(flow.delivered, flow.measured);
    flow.totals.first_sent = first_sent;
    flow.totals.last_received = last_received;
}

/// Replaces what the network could not know of a flow by the kernel's figures.
fn kernel(flow: &mut FlowResult, record: &crate::record::Record) {
    let (measured, total) = (record.measured(), record.total());
    flow.sent_packets = measured.segments_sent;
    flow.retransmitted_packets = measured.retransmitted;
    flow.timeouts = measured.timeouts;
    flow.loss_rate = share(flow.dropped_packets, measured.segments_sent);
    flow.rtt = record.rtt();
    flow.totals = FlowTotals {
        sent: Bytes::new(total.bytes_sent),
        sent_once: Bytes::new(total.bytes_sent.saturating_sub(total.bytes_retransmitted)),
        acked: Bytes::new(total.bytes_acked),
        ..flow.totals
    };
    flow.series = record.series(&flow.series);
}

/// Adds what the sockets of a proxy on a router tell. The RTT of a flow is then that of both connections and of the wait between them, as
/// in the simulator. Of modelled proxies everything is known already.
fn add_split(flow: &mut FlowResult, split: Option<&Split>) {
    let known = flow.split.take();
    match split.and_then(|split| split.finish(known.clone(), &mut flow.series)) {
        Some((split, rtt)) => (flow.split, flow.rtt) = (Some(split), rtt),
        None => flow.split = known.filter(|known| !known.proxy.is_empty()),
    }
}

/// A connection of a program; `route` holds the network's counts of its route.
fn connection(
    topology: &Topology,
    route: &FlowResult,
    seen: &Seen,
    report: &WorkloadReport<'_>,
) -> FlowResult {
    let from: Time = seen.first.max(report.measured_from);
    let delivered = seen.record.total().bytes_acked.saturating_sub(seen.acked_before);
    let mut flow = route.clone();
    flow.name = seen.name(topology);
    flow.cc = format!("kernel {}", seen.connection.cc);
    flow.measured = seen.last.min(report.end) - from;
    flow.delivered = Bytes::new(delivered);
    flow.goodput = rate(flow.delivered, flow.measured);
    // These are known only of the whole route.
    flow.split = None;
    flow.bottleneck_bytes = Bytes::ZERO;
    flow.dropped_packets = 0;
    flow.marked_packets = 0;
    flow.queueing_delay = ranpace_network::Distribution::default();
    (flow.jitter_ewma, flow.jitter_mean_deviation) = (Span::ZERO, Span::ZERO);
    flow.totals = FlowTotals::default();
    for column in flow.series.columns.iter_mut().filter(|column| column.name != "time_s") {
        column.values.fill(f64::NAN);
    }
    kernel(&mut flow, &seen.record);
    add_split(&mut flow, seen.split.as_ref());
    flow
}
