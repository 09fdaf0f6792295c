//! Turns measurements into results at the end of a run.

use ranpace_network::{FlowCounts, FlowMeter, FlowResult, FlowTotals, RunResult, SplitResult};
use ranpace_units::{Bytes, Span, Time};

use super::Simulation;
use crate::flow::Flow;

impl Simulation<'_> {
    pub(super) fn finish(self, interrupted: bool) -> RunResult {
        let (scenario, mut endpoints, end) = (self.scenario, self.endpoints, self.network.now());
        let mut network = self.network.finish();
        let from = network.measured_from;
        let count = scenario.flows.len();
        let legs = (endpoints.flows.split_off(count).into_iter())
            .zip(network.flows.split_off(count))
            .zip(endpoints.before.split_off(count));
        let mut flows: Vec<FlowResult> = scenario
            .flows
            .iter()
            .zip(endpoints.flows)
            .zip(network.flows)
            .zip(endpoints.rows.into_iter().zip(endpoints.before))
            .map(|(((spec, flow), meter), (rows, before))| {
                let begin = from.max(spec.start);
                let stop = spec.stop.unwrap_or(Time::MAX).min(flow.finished.unwrap_or(Time::MAX)).min(end);
                let counts = [before, flow.account()];
                FlowResult {
                    totals: totals(&flow),
                    transfers: flow.transfers,
                    lost: flow.lost.map(|lost| *lost),
                    ..FlowResult::of(spec, &meter, counts, stop - begin, rows.finish())
                }
            })
            .collect();
        if let Some(splits) = endpoints.splits {
            for (split, ((leg, meter), before)) in legs.enumerate() {
                let result = splits.result(split, &meter.rtt);
                if let Some(flow) = flows.get_mut(splits.at(split).flow as usize) {
                    add_leg(flow, result, &leg, &meter, before);
                }
            }
        }
        RunResult {
            seed: scenario.seed,
            measured_from: from,
            end,
            interrupted,
            flows,
            links: network.links,
            cells: network.cells,
            users: network.users,
            feed: network.feed,
            peps: endpoints.peps.map_or_else(Vec::new, |peps| peps.results()),
            ledger: network.ledger,
            events: self.events,
        }
    }
}

/// Adds the connection to the server to the result of a split flow.
fn add_leg(flow: &mut FlowResult, mut split: SplitResult, leg: &Flow, meter: &FlowMeter, before: FlowCounts) {
    let (account, server) = (leg.account(), totals(leg));
    split.ran_dropped_packets = flow.dropped_packets;
    flow.bottleneck_bytes += Bytes::new(meter.bottleneck_bytes);
    flow.sent_packets += account.sent - before.sent;
    flow.retransmitted_packets += account.retransmitted - before.retransmitted;
    flow.dropped_packets += meter.dropped;
    flow.timeouts += account.timeouts - before.timeouts;
    flow.undone += account.undone - before.undone;
    flow.marked_packets += meter.marked;
    if flow.sent_packets > 0 {
        flow.loss_rate = flow.dropped_packets as f64 / flow.sent_packets as f64;
    }
    // The bottleneck is on one side of the proxy.
    if flow.queueing_delay.count == 0 {
        flow.queueing_delay = meter.delay.distribution();
        flow.jitter_ewma = meter.jitter_ewma();
        flow.jitter_mean_deviation = meter.delay.mean_deviation();
    }
    let of_user = flow.totals;
    flow.totals = FlowTotals {
        sent: server.sent,
        sent_once: server.sent_once,
        acked: server.acked,
        recoveries: of_user.recoveries + server.recoveries,
        first_sent: server.first_sent,
        last_acked: server.last_acked,
        // The proxy's waiting time is a mean over parts of the payload, the others are means over packets.
        one_way_mean: of_user.one_way_mean + split.delay.mean + server.one_way_mean,
        acks: server.acks,
        feedback_one_way_mean: of_user.feedback_one_way_mean + server.feedback_one_way_mean,
        ..of_user
    };
    flow.split = Some(split);
}

fn totals(flow: &Flow) -> FlowTotals {
    let (account, totals) = (flow.account(), flow.totals);
    let mean = |sum: u64, count: u64| Span::from_nanos(sum.checked_div(count).unwrap_or(0));
    FlowTotals {
        sent: Bytes::new(totals.sent),
        sent_once: Bytes::new(account.sent_bytes),
        acked: Bytes::new(account.acked_bytes),
        recoveries: account.recoveries,
        first_sent: totals.first_sent,
        last_received: totals.last_received,
        last_acked: totals.last_acked,
        received_packets: totals.received_packets,
        one_way_mean: mean(totals.one_way_sum, totals.received_packets),
        acks: totals.acks,
        feedback_one_way_mean: mean(totals.feedback_one_way_sum, totals.acks),
    }
}
