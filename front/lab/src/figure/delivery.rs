//! Deliveries and their delays: figures of the flows at their bottlenecks. Over several flows, times are weighted by packets.

use ranpace_sim::FlowResult;

use super::scope::Scope;
use super::{Entry, run};
use crate::figures::Quantity::{Plain, Rate, Share, Time};
use crate::stats;

pub(super) const FIGURES: &[Entry] = &[
    run(
        "throughput",
        "throughput",
        Rate,
        "Bits that left the bottleneck, headers included, per second.",
        |scope| rates(scope).iter().sum(),
    ),
    run(
        "goodput",
        "goodput",
        Rate,
        "Payload that arrived in order, per second, each flow over its own time; the sum over the flows.",
        |scope| match scope.window.while_all {
            true => super::downloads::goodput_while_all(scope),
            false => scope.flows.iter().map(|flow| flow.goodput.as_f64()).sum(),
        },
    ),
    run(
        "delay_mean",
        "mean delay",
        Time,
        "Mean time of a data packet in the bottleneck, from its arrival until its last byte has left.",
        |scope| by_packets(scope, |flow| flow.queueing_delay.mean.as_secs_f64()),
    ),
    run(
        "delay_p95",
        "p95 delay",
        Time,
        "95 % of the packets spend at most this time in the bottleneck.",
        |scope| by_packets(scope, |flow| flow.queueing_delay.p95.as_secs_f64()),
    ),
    run("rtt_mean", "mean RTT", Time, "Mean round-trip time as the sender measured it.", |scope| {
        weighted(scope, |flow| (flow.rtt.mean.as_secs_f64(), flow.rtt.count))
    }),
    run(
        "jitter_ewma",
        "jitter J1",
        Time,
        "Mean of the moving average (weight 1/16) of the difference between successive delays (J1).",
        |scope| by_packets(scope, |flow| flow.jitter_ewma.as_secs_f64()),
    ),
    run(
        "jitter_deviation",
        "jitter J2",
        Time,
        "Mean distance of the delays from their mean (J2).",
        |scope| by_packets(scope, |flow| flow.jitter_mean_deviation.as_secs_f64()),
    ),
    run("utilisation", "utilisation", Share, "Bits through the bottleneck over its capacity.", |scope| {
        let link = scope.flows.first().and_then(|flow| flow.bottleneck);
        let link = link.and_then(|link| scope.run.links.get(link));
        link.and_then(|link| link.utilisation).unwrap_or(f64::NAN)
    }),
    run("jain", "Jain index", Plain, "Jain's index of the flows' throughputs.", |scope| {
        stats::jain(&rates(scope)).unwrap_or(f64::NAN)
    }),
    run(
        "jain_goodput",
        "Jain index",
        Plain,
        "Fairness of the goodput between the flows, 1 if all are equal.",
        |scope| stats::jain(&goodputs(scope)).unwrap_or(f64::NAN),
    ),
    run("share", "share of flow 2", Share, "The last flow's part of the throughput.", |scope| {
        let rates = rates(scope);
        rates.last().and_then(|last| stats::ratio(*last, rates.iter().sum())).unwrap_or(f64::NAN)
    }),
    run("loss", "loss", Share, "Data packets dropped on the way over those sent.", |scope| {
        stats::ratio(dropped(scope), sent(scope)).unwrap_or(f64::NAN)
    }),
    run("dropped_packets", "dropped packets", Plain, "Packets that were dropped.", dropped),
    run("sent_packets", "sent packets", Plain, "Packets that were sent.", sent),
    run("arrived", "arrived", Share, "Packets that were not dropped over those sent.", |scope| {
        (sent(scope) - dropped(scope)) / sent(scope).max(1.0)
    }),
    run(
        "variation",
        "variation",
        Plain,
        "Standard deviation of the flows' goodputs over their mean.",
        |scope| {
            let goodputs = goodputs(scope);
            let deviation = stats::deviation(&goodputs).unwrap_or(f64::NAN);
            deviation / stats::mean(&goodputs).unwrap_or(f64::NAN)
        },
    ),
];

fn rates(scope: &Scope<'_>) -> Vec<f64> {
    let rate = |flow: &&FlowResult| {
        stats::ratio(flow.bottleneck_bytes.as_f64() * 8.0, flow.measured.as_secs_f64()).unwrap_or(0.0)
    };
    scope.flows.iter().map(rate).collect()
}

fn goodputs(scope: &Scope<'_>) -> Vec<f64> {
    scope.flows.iter().map(|flow| flow.goodput.as_f64()).collect()
}

fn dropped(scope: &Scope<'_>) -> f64 {
    scope.flows.iter().map(|flow| flow.dropped_packets).sum::<u64>() as f64
}

pub(super) fn sent(scope: &Scope<'_>) -> f64 {
    scope.flows.iter().map(|flow| flow.sent_packets).sum::<u64>() as f64
}

pub(super) fn weighted(scope: &Scope<'_>, value: fn(&FlowResult) -> (f64, u64)) -> f64 {
    let pairs = scope.flows.iter().map(|flow| value(flow)).map(|(value, count)| (value, count as f64));
    stats::weighted_mean(pairs).unwrap_or(f64::NAN)
}

pub(super) fn by_packets(scope: &Scope<'_>, value: fn(&FlowResult) -> f64) -> f64 {
    let pairs = scope.flows.iter().map(|flow| (value(flow), flow.queueing_delay.count as f64));
    stats::weighted_mean(pairs).unwrap_or(f64::NAN)
}
