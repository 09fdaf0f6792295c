//! What the network counted and what the kernel says become the results of flows.

use ranpace_network::{FlowResult, FlowTotals, RunResult};
use ranpace_units::{Bytes, Rate, Span, Time};

use crate::player::{Ends, Played, Report, Seen};
use crate::ways::Ways;

/// Results of the scenario's flows first, in its order; then of the ways that carried something of programs; then of the
/// connections of programs.
pub fn merge(ways: &Ways, mut result: RunResult, report: &Report<'_>) -> RunResult {
    let own = ways.own().len();
    let others = result.flows.split_off((2 * own).min(result.flows.len()));
    result.flows.truncate(own);
    for ((flow, played), spec) in result.flows.iter_mut().zip(&report.flows).zip(ways.flows()) {
        flow.name.clone_from(&spec.name);
        own_flow(flow, played, report);
    }
    let connections: Vec<FlowResult> = (report.connections.iter())
        .filter_map(|seen| {
            let way = ways.between(seen.ends.0, seen.ends.1)? as usize;
            Some(connection(ways, others.get(way - 2 * own)?, seen, report))
        })
        .collect();
    result.flows.extend(others.into_iter().filter(|flow| flow.sent_packets > 0).map(|mut flow| {
        "kernel".clone_into(&mut flow.cc);
        flow
    }));
    result.flows.extend(connections);
    result
}

fn rate(bytes: Bytes, span: Span) -> Rate {
    if span.is_zero() { Rate::ZERO } else { Rate::of(bytes, span) }
}

/// A flow of the scenario, of which `flow` has what the network counted on its way.
fn own_flow(flow: &mut FlowResult, played: &Played<'_>, report: &Report<'_>) {
    let (from, end) = (report.measured_from, report.end);
    flow.delivered = Bytes::new(played.delivered() - played.delivered_before);
    let (first_sent, last_received) = match &played.ends {
        Ends::Tcp(stream) => {
            flow.cc = format!("kernel {}", stream.cc());
            flow.measured = stream.measured(from, end);
            flow.transfers.clone_from(&stream.transfers);
            kernel(flow, &played.record);
            (stream.first_sent, stream.last_received)
        }
        Ends::Udp(datagrams) => {
            "udp".clone_into(&mut flow.cc);
            flow.measured = datagrams.measured(from, end);
            (datagrams.first_sent, datagrams.last_received)
        }
    };
    flow.goodput = rate(flow.delivered, flow.measured);
    flow.totals.first_sent = first_sent;
    flow.totals.last_received = last_received;
}

/// Puts what the kernel says of a flow in the place of what the network could not know.
fn kernel(flow: &mut FlowResult, record: &crate::record::Record) {
    let (measured, total) = (record.measured(), record.total());
    flow.sent_packets = measured.segments_sent;
    flow.retransmitted_packets = measured.retransmitted;
    flow.timeouts = measured.timeouts;
    flow.loss_rate = if measured.segments_sent == 0 {
        0.0
    } else {
        flow.dropped_packets as f64 / measured.segments_sent as f64
    };
    flow.rtt = record.rtt();
    flow.totals = FlowTotals {
        sent: Bytes::new(total.bytes_sent),
        sent_once: Bytes::new(total.bytes_sent.saturating_sub(total.bytes_retransmitted)),
        acked: Bytes::new(total.bytes_acked),
        ..flow.totals
    };
    flow.series = record.series(&flow.series);
}

/// A connection of a program, on a way of which `way` has what the network counted.
fn connection(ways: &Ways, way: &FlowResult, seen: &Seen, report: &Report<'_>) -> FlowResult {
    let (here, there) = (&seen.connection.local, &seen.connection.remote);
    let name = |place: usize, port: u16| format!("{}:{port}", ways.name(place));
    let from: Time = seen.first.max(report.measured_from);
    let delivered = seen.record.total().bytes_acked.saturating_sub(seen.acked_before);
    let mut flow = way.clone();
    flow.name = format!("{} to {}", name(seen.ends.0, here.1), name(seen.ends.1, there.1));
    flow.cc = format!("kernel {}", seen.connection.cc);
    flow.measured = seen.last.min(report.end) - from;
    flow.delivered = Bytes::new(delivered);
    flow.goodput = rate(flow.delivered, flow.measured);
    // These are known of the whole way alone.
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
    flow
}
