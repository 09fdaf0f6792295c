//! Figures of comparisons: all flows of an algorithm taken together. Percentiles over several flows are the mean of the
//! flows' percentiles, weighted by their samples, which is not quite that of all packets together.

use ranpace_sim::FlowResult;
use ranpace_units::Span;

use super::delivery::{by_packets, sent, weighted};
use super::scope::Scope;
use super::{Entry, run};
use crate::figures::Quantity::{Rate, Share, Time};
use crate::radio::Users;
use crate::stats;

pub(super) const FIGURES: &[Entry] = &[
    run(
        "joint_goodput",
        "goodput",
        Rate,
        "Payload delivered in order, per second: all flows together, over the longest of their times.",
        joint_goodput,
    ),
    run(
        "joint_utilisation",
        "utilisation",
        Share,
        "Bits that the bottlenecks carried over those that they could have carried, headers included; in a cell, over those that it would have carried for the user alone, added up over users.",
        utilisation,
    ),
    run("delay_p50", "delay p50", Time, "Median time in the bottleneck.", |scope| {
        by_packets(scope, |flow| flow.queueing_delay.p50.as_secs_f64())
    }),
    run(
        "delay_p99",
        "delay p99",
        Time,
        "99 % of the packets spend at most this time in the bottleneck.",
        |scope| by_packets(scope, |flow| flow.queueing_delay.p99.as_secs_f64()),
    ),
    run("rtt_p95", "RTT p95", Time, "95th percentile of the round-trip time.", |scope| {
        weighted(scope, |flow| (flow.rtt.p95.as_secs_f64(), flow.rtt.count))
    }),
    run("retransmitted", "retransmitted", Share, "Data packets sent again over those sent.", |scope| {
        let again: u64 = scope.flows.iter().map(|flow| flow.retransmitted_packets).sum();
        stats::ratio(again as f64, sent(scope)).unwrap_or(f64::NAN)
    }),
    run(
        "completion_finished",
        "completion",
        Time,
        "Mean time of the transfers of fixed size that finished.",
        |scope| {
            let transfers = scope.flows.iter().flat_map(|flow| &flow.transfers);
            let times = transfers.filter_map(|transfer| transfer.completion).map(Span::as_secs_f64);
            stats::mean(&times.collect::<Vec<_>>()).unwrap_or(f64::NAN)
        },
    ),
];

/// A flow that joined late counts for what it delivered, and the sum never exceeds the link.
fn joint_goodput(scope: &Scope<'_>) -> f64 {
    let time = |flow: &&FlowResult| flow.measured.as_secs_f64();
    let time = scope.flows.iter().map(time).fold(f64::NAN, f64::max);
    let bytes: f64 = scope.flows.iter().map(|flow| flow.delivered.as_f64()).sum();
    stats::ratio(bytes * 8.0, time).unwrap_or(f64::NAN)
}

/// Bytes through the distinct bottlenecks of these flows, over the bottlenecks' capacity. The capacity of a user's radio is what
/// its cell would give to it alone; users share it, so their traffic adds up, per cell and direction.
fn utilisation(scope: &Scope<'_>) -> f64 {
    let (run, flows) = (scope.run, &scope.flows);
    let mut seen: Vec<usize> = flows.iter().filter_map(|flow| flow.bottleneck).collect();
    seen.sort_unstable();
    seen.dedup();
    let links: Vec<_> = seen.iter().filter_map(|index| run.links.get(*index)).collect();
    // For a single link the owner does not matter.
    let users = if links.len() < 2 { Users::default() } else { Users::of(run) };
    let (mut departed, mut capacity) = (0.0, 0.0);
    let (mut places, mut shares) = (Vec::new(), 0.0);
    for link in &links {
        let Some(could) = link.capacity else { return f64::NAN };
        departed += link.departed.as_f64();
        capacity += could.as_f64();
        if let Some((user, way)) = users.of_link(link) {
            places.push((user.cell.as_deref(), way));
            shares += stats::ratio(link.departed.as_f64(), could.as_f64()).unwrap_or(0.0);
        }
    }
    if places.len() < 2 || places.len() < links.len() {
        return stats::ratio(departed, capacity).unwrap_or(f64::NAN);
    }
    places.sort_unstable();
    places.dedup();
    shares / places.len() as f64
}
