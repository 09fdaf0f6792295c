//! Figures of heterogeneous downloads, of proxies on their path, and of the feed of radio information, as shown in chapter 5 of
//! Diarra 2022.
//!
//! The RTT of a split flow is the sum of both connections' RTTs and of its payload's wait in the proxy. A scheme with the place
//! `rtts = "sockets"` is measured as sockets see it: the RTTs of the two connections are added, without the wait; percentiles are
//! then taken over the rows of the series.

use ranpace_sim::{Distribution, FlowResult};
use ranpace_units::Time as Instant;

use super::scope::Scope;
use super::series::{column, correlation, mean, rows};
use super::{Entry, needs, of_flows, run};
use crate::figures::Quantity::{Plain, Rate, Share, Time};
use crate::stats;

pub(super) const FIGURES: &[Entry] = &[
    run(
        "rate",
        "rate",
        Rate,
        "All payload of the flows over the time from the first one's start to the last one's end.",
        |scope| {
            let bytes: f64 = scope.flows.iter().map(|flow| flow.delivered.as_f64()).sum();
            8.0 * bytes / completion(scope)
        },
    ),
    run(
        "completion",
        "completion",
        Time,
        "From the first start to the last end of the flows; to the end of the run, if one is not complete.",
        completion,
    ),
    run("first", "ends first", Plain, "1 if the flow ends before all others.", first),
    run(
        "delivered_share",
        "share",
        Share,
        "The flow's part of what all flows but plain sources have delivered when the first one ends.",
        delivered_share,
    ),
    run("rtt_p40", "p40 RTT", Time, "40th percentile of the RTT.", |scope| {
        rtt(scope, Some(0.4), |rtt| quantile(rtt, 0.4))
    }),
    run("rtt_p50", "median RTT", Time, "Median of the RTT.", |scope| {
        rtt(scope, Some(0.5), |rtt| rtt.p50.as_secs_f64())
    }),
    of_flows(
        "legs_p95",
        "p95 of both RTTs",
        Time,
        "95 % of the RTTs of the connection to the server and of that to the user, added, without the wait in the proxy.",
        |flow| {
            Some(
                flow.split.as_ref()?.wan_rtt.p95.as_secs_f64()
                    + flow.split.as_ref()?.ran_rtt.p95.as_secs_f64(),
            )
        },
    ),
    of_flows(
        "proxy_delay",
        "p95 wait in the proxy",
        Time,
        "95 % of the times that payload waited in the proxy.",
        |flow| Some(flow.split.as_ref()?.delay.p95.as_secs_f64()),
    ),
    run(
        "slow_periods",
        "slow periods",
        Share,
        "Periods at whose end a proxy found the flow slow.",
        |scope| {
            let split = scope.flows.first().and_then(|flow| flow.split.as_ref());
            split.map_or(f64::NAN, |split| split.slow_periods as f64 / split.periods as f64)
        },
    ),
    run(
        "overflow",
        "overflow",
        Plain,
        "Packets dropped by the users' buffers on the way to them.",
        |scope| {
            let down = scope.run.links.iter().filter(|link| link.name.ends_with(".down"));
            down.map(|link| link.dropped_packets as f64).sum()
        },
    ),
    run(
        "inflight_correlation",
        "correlation in flight",
        Plain,
        "Correlation over time of the bytes that the first of two flows has in flight behind the proxy with those that the second has in flight.",
        inflight_correlation,
    ),
    run("feed", "feed", Rate, "Rate of the edge's feed on the wire.", |scope| {
        scope.run.feed.as_ref().map_or(f64::NAN, |feed| feed.rate.as_f64())
    }),
    needs(
        "feed_per_user",
        Rate,
        "Rate of the edge's feed on the wire, for each user of the cell.",
        |scope| {
            let feed = scope.run.feed.as_ref().ok_or_else(|| "no radio information was read".to_owned())?;
            Ok(feed.rate.as_f64() / scope.run.users.len().max(1) as f64)
        },
    ),
    needs(
        "acked_rate_after",
        Rate,
        "Payload acknowledged from a time on, until the last byte was.",
        acked_rate_after,
    ),
];

pub(super) fn rtt_of_flows(scope: &Scope<'_>) -> f64 {
    rtt(scope, None, |rtt| rtt.mean.as_secs_f64())
}

pub(super) fn rtt_p90(scope: &Scope<'_>) -> f64 {
    rtt(scope, Some(0.9), |rtt| quantile(rtt, 0.9))
}

/// Mean over the flows of an RTT figure: from their distributions, or from the series if measured as sockets see it or while all
/// flows are active. `share` is the percentile, if it is one.
fn rtt(scope: &Scope<'_>, share: Option<f64>, of: fn(&Distribution) -> f64) -> f64 {
    if let (true, Some(share)) = (scope.window.while_all, share) {
        let each: Vec<f64> =
            scope.flows.iter().map(|flow| percentile(latest_rtts(scope, flow), share)).collect();
        return mean(&each);
    }
    if scope.sees_sockets() {
        let each: Vec<f64> = scope.flows.iter().filter_map(|flow| of_sockets(scope, flow, share)).collect();
        if let Some(mean) = stats::mean(&each) {
            return mean;
        }
    }
    let each: Vec<f64> =
        scope.flows.iter().filter(|flow| flow.rtt.count > 0).map(|flow| of(&flow.rtt)).collect();
    mean(&each)
}

/// The RTT of a split flow as its sockets see it.
fn of_sockets(scope: &Scope<'_>, flow: &FlowResult, share: Option<f64>) -> Option<f64> {
    let split = flow.split.as_ref()?;
    Some(match share {
        None => (split.wan_rtt.mean + split.ran_rtt.mean).as_secs_f64(),
        Some(share) => percentile(sums(flow, start_of(scope, flow), end_of(scope, flow)), share),
    })
}

/// The last RTT sample of each row, while all flows are active.
fn latest_rtts(scope: &Scope<'_>, flow: &FlowResult) -> Vec<f64> {
    let (from, until) = while_all(scope);
    match scope.sees_sockets() && flow.split.is_some() {
        true => sums(flow, from, until),
        false => rows(&flow.series, "rtt_last_s")
            .filter(|(at, rtt)| (from..=until).contains(at) && rtt.is_finite())
            .map(|(_, rtt)| rtt)
            .collect(),
    }
}

/// The sum of both connections' RTTs of a split flow: the last samples in each row of its series.
fn sums(flow: &FlowResult, from: f64, until: f64) -> Vec<f64> {
    let legs = rows(&flow.series, "proxy_wan_rtt_s").zip(rows(&flow.series, "proxy_ran_rtt_s"));
    let sums = legs.map(|((at, wan), (_, ran))| (at, wan + ran));
    sums.filter(|(at, sum)| (from..=until).contains(at) && sum.is_finite()).map(|(_, sum)| sum).collect()
}

/// The smallest value that this share of the values does not exceed.
fn percentile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let index = (share * values.len() as f64).ceil() as usize;
    values.get(index.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

/// The smallest value that this share of the samples does not exceed.
fn quantile(of: &Distribution, share: f64) -> f64 {
    let point = of.cdf.iter().find(|(_, below)| *below >= share);
    point.map_or(f64::NAN, |(value, _)| value.as_secs_f64())
}

/// When a flow has received everything that it will receive.
fn end_of(scope: &Scope<'_>, flow: &FlowResult) -> f64 {
    let ends = flow.transfers.iter().map(|transfer| match transfer.completion {
        Some(completion) => (transfer.start + completion).as_secs_f64(),
        None => scope.run.end.as_secs_f64(),
    });
    ends.reduce(f64::max).unwrap_or(scope.run.end.as_secs_f64())
}

fn start_of(scope: &Scope<'_>, flow: &FlowResult) -> f64 {
    let start = flow.transfers.first().map(|transfer| transfer.start).or(flow.totals.first_sent);
    start.unwrap_or(Instant::ZERO).max(scope.run.measured_from).as_secs_f64()
}

fn completion(scope: &Scope<'_>) -> f64 {
    let start = scope.flows.iter().map(|flow| start_of(scope, flow)).fold(f64::INFINITY, f64::min);
    scope.flows.iter().map(|flow| end_of(scope, flow)).fold(f64::NEG_INFINITY, f64::max) - start
}

/// All flows of the run but plain sources.
fn all<'a>(scope: &Scope<'a>) -> impl Iterator<Item = &'a FlowResult> {
    scope.run.flows.iter().filter(|flow| flow.cc != "udp")
}

fn is_chosen(scope: &Scope<'_>, flow: &FlowResult) -> bool {
    scope.flows.iter().any(|chosen| core::ptr::eq(*chosen, flow))
}

fn first(scope: &Scope<'_>) -> f64 {
    let others = all(scope).filter(|flow| !is_chosen(scope, flow));
    let end = others.map(|flow| end_of(scope, flow)).fold(f64::INFINITY, f64::min);
    scope.flows.iter().map(|flow| f64::from(u8::from(end_of(scope, flow) < end))).sum()
}

/// The time in which all flows are active.
fn while_all(scope: &Scope<'_>) -> (f64, f64) {
    let from = all(scope).map(|flow| start_of(scope, flow)).fold(f64::NEG_INFINITY, f64::max);
    let until = all(scope).map(|flow| end_of(scope, flow)).fold(f64::INFINITY, f64::min);
    (from, until)
}

pub(super) fn goodput_while_all(scope: &Scope<'_>) -> f64 {
    let (from, until) = while_all(scope);
    let rate = |flow: &&FlowResult| {
        let known = rows(&flow.series, "delivered_bytes")
            .filter(|(at, bytes)| (from..=until).contains(at) && bytes.is_finite());
        let known: Vec<(f64, f64)> = known.collect();
        let ends = known.first().zip(known.last());
        ends.map_or(f64::NAN, |(first, last)| 8.0 * (last.1 - first.1) / (last.0 - first.0))
    };
    scope.flows.iter().map(rate).sum()
}

/// From the start of the measured part until the first flow ends.
fn delivered_share(scope: &Scope<'_>) -> f64 {
    let until = all(scope).map(|flow| end_of(scope, flow)).fold(f64::INFINITY, f64::min);
    let from = scope.run.measured_from.as_secs_f64();
    let delivered = |flow: &FlowResult| {
        flow.series.get("delivered_bytes").map_or(f64::NAN, |_| {
            let at = |time: f64| {
                let known = rows(&flow.series, "delivered_bytes").take_while(|row| row.0 <= time + 1e-9);
                known.last().map_or(0.0, |row| row.1)
            };
            at(until) - at(from)
        })
    };
    let own: f64 = scope.flows.iter().map(|flow| delivered(flow)).sum();
    own / all(scope).map(delivered).sum::<f64>()
}

fn inflight_correlation(scope: &Scope<'_>) -> f64 {
    let [one, other] = &scope.flows[..] else { return f64::NAN };
    let own = one.series.get("proxy_ran_in_flight_bytes").unwrap_or_default();
    let other = other.series.get("in_flight_bytes").unwrap_or_default();
    let both = own.iter().zip(other).filter(|(own, other)| own.is_finite() && other.is_finite());
    correlation(&both.map(|(own, other)| (*own, *other)).collect::<Vec<_>>()).unwrap_or(f64::NAN)
}

fn acked_rate_after(scope: &Scope<'_>) -> Result<f64, String> {
    let flow = scope.first()?;
    let from = scope.window.from.unwrap_or(0.0);
    let (times, acked) = (column(flow, "time_s")?, column(flow, "acked_bytes")?);
    let begin = times.iter().position(|time| *time >= from).unwrap_or(0);
    let most = acked.last().copied().unwrap_or(0.0);
    let end = acked.iter().position(|bytes| *bytes >= most).unwrap_or(begin);
    // NaN where nothing was left to send.
    Ok(if end > begin { 8.0 * (acked[end] - acked[begin]) / (times[end] - times[begin]) } else { f64::NAN })
}

#[cfg(test)]
#[path = "downloads_tests.rs"]
mod tests;
