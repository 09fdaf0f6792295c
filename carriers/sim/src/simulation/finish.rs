//! The end of a run: what was measured becomes results.

use ranpace_scenario::Scenario;
use ranpace_units::{Bytes, Rate, Span, Time};

use super::Simulation;
use crate::flow::Flow;
use crate::meter::FlowMeter;
use crate::radio;
use crate::results::{FlowResult, FlowTotals, LinkResult, RunResult, SplitResult};
use crate::series::FlowRows;

impl Simulation<'_> {
    pub(super) fn finish(mut self, interrupted: bool) -> RunResult {
        // What is due now is still told, and what is left in the network is counted.
        for link in 0..self.links.len() {
            let observer = &mut self.meters.at(link as u32);
            let mut waiting = Bytes::ZERO;
            while let Some(packet) = self.links[link].poll(self.now, observer) {
                waiting += Bytes::new(u64::from(packet.wire()));
            }
            waiting += self.links[link].drain().map(|packet| Bytes::new(u64::from(packet.wire()))).sum();
            self.meters.ledger.in_network += waiting;
        }
        if let Some(radio) = &self.radio {
            self.meters.ledger.in_network += radio.under_way();
        }
        self.meters.settle();
        let (from, end) = (self.measured_from, self.now);
        let wired = self.links.iter().map(|link| link.capacity(from, end.max(from)));
        let mut capacities: Vec<Option<Bytes>> = wired.collect();
        let (mut cells, mut users, mut feed) = (Vec::new(), Vec::new(), None);
        if let Some(mut radio) = self.radio {
            feed = radio.feed().result(from, end.max(from));
            capacities.extend(radio.capacities().map(Some));
            (cells, users) = radio.finish(end);
        }
        let links = link_names(self.scenario)
            .into_iter()
            .zip(capacities)
            .zip(self.meters.links)
            .zip(self.link_rows)
            .map(|(((name, capacity), meter), rows)| LinkResult {
                name,
                departed: Bytes::new(meter.departed),
                departed_packets: meter.departed_packets,
                dropped_packets: meter.dropped,
                lost_packets: meter.lost,
                marked_packets: meter.marked,
                capacity,
                utilisation: capacity
                    .filter(|capacity| !capacity.is_zero())
                    .map(|capacity| meter.departed as f64 / capacity.as_f64()),
                queueing_delay: meter.delay.distribution(),
                series: rows.finish(),
            })
            .collect();
        let count = self.scenario.flows.len();
        let legs = (self.flows.split_off(count).into_iter())
            .zip(self.meters.flows.split_off(count))
            .zip(self.before.split_off(count));
        let mut flows: Vec<FlowResult> = self
            .scenario
            .flows
            .iter()
            .zip(self.flows)
            .zip(self.meters.flows)
            .zip(self.flow_rows.into_iter().zip(self.before))
            .map(|(((spec, flow), meter), (rows, before))| {
                let begin = from.max(spec.start);
                let stop = spec.stop.unwrap_or(Time::MAX).min(flow.finished.unwrap_or(Time::MAX)).min(end);
                let measured = stop - begin;
                flow_result(spec, flow, &meter, rows, before, measured)
            })
            .collect();
        if let Some(splits) = self.splits {
            for (split, ((leg, meter), before)) in legs.enumerate() {
                let result = splits.result(split, &meter.rtt);
                if let Some(flow) = flows.get_mut(splits.at(split).flow as usize) {
                    add_leg(flow, result, &leg, &meter, before);
                }
            }
        }
        RunResult {
            seed: self.scenario.seed,
            measured_from: from,
            end,
            interrupted,
            flows,
            links,
            cells,
            users,
            feed,
            peps: self.watchers.map_or_else(Vec::new, |watchers| watchers.results()),
            ledger: self.meters.ledger,
            events: self.events,
        }
    }
}

fn flow_result(
    spec: &ranpace_scenario::FlowSpec,
    flow: Flow,
    meter: &FlowMeter,
    rows: FlowRows,
    before: crate::flow::Account,
    measured: Span,
) -> FlowResult {
    use ranpace_scenario::Transport;
    let account = flow.account();
    let delivered = Bytes::new(account.delivered - before.delivered);
    let sent = account.sent - before.sent;
    FlowResult {
        name: spec.name.clone(),
        cc: match &spec.transport {
            Transport::Tcp { algorithm, .. }
            | Transport::Quic { algorithm, .. }
            | Transport::Datagram { algorithm, .. } => algorithm.to_string(),
            Transport::Udp { .. } => "udp".to_owned(),
        },
        bottleneck: meter.bottleneck.map(|link| link as usize),
        measured,
        delivered,
        goodput: if measured.is_zero() { Rate::ZERO } else { Rate::of(delivered, measured) },
        bottleneck_bytes: Bytes::new(meter.bottleneck_bytes),
        sent_packets: sent,
        retransmitted_packets: account.retransmitted - before.retransmitted,
        dropped_packets: meter.dropped,
        loss_rate: if sent == 0 { 0.0 } else { meter.dropped as f64 / sent as f64 },
        timeouts: account.timeouts - before.timeouts,
        undone: account.undone - before.undone,
        marked_packets: meter.marked,
        rtt: meter.rtt.distribution(),
        queueing_delay: meter.delay.distribution(),
        jitter_ewma: meter.jitter_ewma(),
        jitter_mean_deviation: meter.delay.mean_deviation(),
        totals: totals(&flow),
        transfers: flow.transfers,
        lost: flow.lost.map(|lost| *lost),
        split: None,
        series: rows.finish(),
    }
}

/// Adds to a split flow what its connection to the server did.
fn add_leg(
    flow: &mut FlowResult,
    mut split: SplitResult,
    leg: &Flow,
    meter: &FlowMeter,
    before: crate::flow::Account,
) {
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
        // What was waited in the proxy is a mean over parts of the payload, the others over packets.
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

/// Names of what [`RunResult::links`] holds: the links, then both directions of the users that have flows.
pub fn link_names(scenario: &Scenario) -> Vec<String> {
    let wired = scenario.links.iter().map(|link| link.name.clone());
    let users = scenario.users.iter().zip(radio::metered(scenario)).filter(|(_, has_flows)| *has_flows);
    let air = users.flat_map(|(user, _)| ["down", "up"].map(|way| format!("{}.{way}", user.name)));
    wired.chain(air).collect()
}
