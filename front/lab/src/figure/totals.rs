//! Totals of flows from their first packet to their last, as in Zhong's tables (004, chapters 5 and 6).
//!
//! Each is a figure of a flow, and its mean over the flows. A flow that sent nothing (a user out of coverage) has a rate
//! of zero and no delays, no RTT and no ratios.

use ranpace_sim::{Distribution, FlowResult};
use ranpace_units::Time;

use super::scope::Scope;
use super::{Entry, of_flows, run};
use crate::figures::Quantity::{Plain, Rate, Share, Size, Time as Seconds};
use crate::stats;

pub(super) const FIGURES: &[Entry] = &[
    run(
        "transmitted_rate",
        "transmitted",
        Rate,
        "Payload sent, retransmissions included, over the time from the first packet sent to the last one received; the sum over the flows.",
        transmitted_rate,
    ),
    of_flows(
        "transmitted_rate_mean",
        "transmitted per flow",
        Rate,
        "The same as `transmitted_rate`, as the mean over the flows.",
        |flow| Some(transmitted(flow)),
    ),
    of_flows(
        "acked_rate",
        "goodput per flow",
        Rate,
        "Payload acknowledged over the time from the first packet sent to the last ACK.",
        |flow| Some(acked(flow)),
    ),
    of_flows("acked", "acknowledged per flow", Size, "Payload acknowledged.", |flow| {
        Some(flow.totals.acked.as_f64())
    }),
    of_flows(
        "acked_ratio",
        "ACKed ratio",
        Share,
        "Payload acknowledged over payload sent at least once.",
        |flow| stats::ratio(flow.totals.acked.as_f64(), flow.totals.sent_once.as_f64()),
    ),
    of_flows("one_way", "DL delay", Seconds, "Mean time of data from end to end.", |flow| {
        (flow.totals.received_packets > 0).then(|| flow.totals.one_way_mean.as_secs_f64())
    }),
    of_flows("feedback_one_way", "UL delay", Seconds, "Mean time of ACKs from end to end.", |flow| {
        (flow.totals.acks > 0).then(|| flow.totals.feedback_one_way_mean.as_secs_f64())
    }),
    of_flows("retransmission_events", "Retx per flow", Plain, "Timeouts and fast recoveries.", |flow| {
        Some((flow.timeouts + flow.totals.recoveries) as f64)
    }),
    of_flows(
        "retransmitted_share",
        "sent again",
        Share,
        "Payload sent again over all payload sent.",
        |flow| {
            let (sent, once) = (flow.totals.sent.as_f64(), flow.totals.sent_once.as_f64());
            stats::ratio(sent - once, sent)
        },
    ),
    of_flows("sent_again", "sent again per flow", Size, "Payload sent again.", |flow| {
        Some(flow.totals.sent.as_f64() - flow.totals.sent_once.as_f64())
    }),
    of_flows("sent", "sent per flow", Size, "Payload sent, retransmissions included.", |flow| {
        Some(flow.totals.sent.as_f64())
    }),
    run(
        "rtt_of_flows",
        "RTT of flows",
        Seconds,
        "Mean of the sender's RTT samples, or of both connections' RTTs where sockets are asked.",
        super::downloads::rtt_of_flows,
    ),
    of_flows("rtt_p75", "p75 RTT", Seconds, "75th percentile of the RTT.", |flow| quantile(&flow.rtt, 0.75)),
    of_flows("rtt_p99", "p99 RTT", Seconds, "99th percentile of the RTT.", |flow| {
        (flow.rtt.count > 0).then(|| flow.rtt.p99.as_secs_f64())
    }),
    of_flows("rtt_sum", "RTTs per flow", Seconds, "The sender's RTT samples, added up.", |flow| {
        Some(flow.rtt.mean.as_secs_f64() * flow.rtt.count as f64)
    }),
    of_flows("rtt_samples", "RTT samples per flow", Plain, "Number of the sender's RTT samples.", |flow| {
        Some(flow.rtt.count as f64)
    }),
    of_flows(
        "one_way_sum",
        "DL delays per flow",
        Seconds,
        "Times of data from end to end, added up.",
        |flow| Some(flow.totals.one_way_mean.as_secs_f64() * flow.totals.received_packets as f64),
    ),
    of_flows("received", "packets received per flow", Plain, "Packets of data that arrived.", |flow| {
        Some(flow.totals.received_packets as f64)
    }),
    run(
        "uplink_rlc_retransmissions",
        "uplink RLC sent again",
        Plain,
        "PDUs and parts of them that RLC sent again in the uplink, per user.",
        uplink_rlc_retransmissions,
    ),
    run("jain_acked", "Jain of goodput", Plain, "Jain's index of the flows' `acked_rate`.", jain_acked),
    of_flows("sent_all_share", "sent all", Share, "Share of the flows that sent all they had to.", |flow| {
        Some(f64::from(u8::from(flow.totals.sent_once.as_f64() >= asked(flow)?)))
    }),
    of_flows(
        "acked_all_share",
        "all ACKed",
        Share,
        "Share of the flows of which all was acknowledged.",
        |flow| Some(f64::from(u8::from(flow.totals.acked.as_f64() >= asked(flow)?))),
    ),
    run(
        "least_sent",
        "least sent",
        Size,
        "Smallest amount that a flow sent, each byte counted once.",
        least_sent,
    ),
    run(
        "upload_time",
        "upload time",
        Seconds,
        "From the first data of any flow until all of every flow is acknowledged.",
        upload_time,
    ),
    run("rtt_p90", "p90 RTT", Seconds, "90th percentile of the RTT.", super::downloads::rtt_p90),
    of_flows(
        "rtt_p90_over_min",
        "p90 RTT / smallest",
        Plain,
        "90th percentile of the RTT over the smallest RTT.",
        |flow| stats::ratio(quantile(&flow.rtt, 0.9)?, flow.rtt.min.as_secs_f64()),
    ),
    run(
        "wait_p95",
        "p95 delay",
        Seconds,
        "95th percentile of the time in the bottleneck, and that of the time in a proxy on top of it.",
        wait_p95,
    ),
    run("completion_mean", "transfer, mean", Seconds, "Mean time of transfers of a fixed size.", |scope| {
        stats::mean(&completions(scope)).unwrap_or(f64::NAN)
    }),
    run(
        "completion_p95",
        "transfer, p95",
        Seconds,
        "95th percentile of the time of transfers of a fixed size.",
        completion_p95,
    ),
];

fn rate(bytes: f64, from: Option<Time>, to: Option<Time>) -> f64 {
    match (from, to) {
        (Some(from), Some(to)) => stats::ratio(bytes * 8.0, to.since(from).as_secs_f64()).unwrap_or(0.0),
        _ => 0.0,
    }
}

fn transmitted(flow: &FlowResult) -> f64 {
    let totals = &flow.totals;
    rate(totals.sent.as_f64(), totals.first_sent, totals.last_received)
}

fn acked(flow: &FlowResult) -> f64 {
    let totals = &flow.totals;
    rate(totals.acked.as_f64(), totals.first_sent, totals.last_acked)
}

/// Bytes that a flow should send.
fn asked(flow: &FlowResult) -> Option<f64> {
    let asked: u64 = flow.transfers.iter().map(|transfer| transfer.size.get()).sum();
    (asked > 0).then_some(asked as f64)
}

fn transmitted_rate(scope: &Scope<'_>) -> f64 {
    scope.flows.iter().copied().map(transmitted).sum()
}

/// From the first data of any flow to the last acknowledgement of all; none if a flow was incomplete.
fn upload_time(scope: &Scope<'_>) -> f64 {
    let is_complete =
        |flow: &FlowResult| asked(flow).is_some_and(|asked| flow.totals.acked.as_f64() >= asked);
    if !scope.flows.iter().copied().all(is_complete) {
        return f64::NAN;
    }
    let first = scope.flows.iter().copied().filter_map(|flow| flow.totals.first_sent).min();
    let last = scope.flows.iter().copied().filter_map(|flow| flow.totals.last_acked).max();
    first.zip(last).map_or(f64::NAN, |(first, last)| last.since(first).as_secs_f64())
}

/// The first point of the distribution function that reaches the share.
fn quantile(of: &Distribution, share: f64) -> Option<f64> {
    of.cdf.iter().find(|point| point.1 >= share).map(|point| point.0.as_secs_f64())
}

fn uplink_rlc_retransmissions(scope: &Scope<'_>) -> f64 {
    let each: Vec<f64> = scope.run.users.iter().map(|user| user.uplink.rlc_sent_again as f64).collect();
    stats::mean(&each).unwrap_or(f64::NAN)
}

fn jain_acked(scope: &Scope<'_>) -> f64 {
    stats::jain(&scope.flows.iter().copied().map(acked).collect::<Vec<_>>()).unwrap_or(f64::NAN)
}

fn least_sent(scope: &Scope<'_>) -> f64 {
    let least =
        scope.flows.iter().copied().map(|flow| flow.totals.sent_once.as_f64()).fold(f64::INFINITY, f64::min);
    if least.is_finite() { least } else { f64::NAN }
}

/// 95th percentile of the time in the bottleneck plus that in a proxy, each taken separately; mean over the flows weighted by
/// packets. Delay that a proxy moves out of the radio's queue still counts.
fn wait_p95(scope: &Scope<'_>) -> f64 {
    let wait = |flow: &FlowResult| {
        let proxy = flow.split.as_ref().map_or(0.0, |split| split.delay.p95.as_secs_f64());
        (flow.queueing_delay.p95.as_secs_f64() + proxy, flow.queueing_delay.count as f64)
    };
    stats::weighted_mean(scope.flows.iter().copied().map(wait)).unwrap_or(f64::NAN)
}

/// Times of the transfers of all flows. A transfer in progress at the end counts with its time so far if that exceeds those
/// completed; a shorter one says nothing.
fn completions(scope: &Scope<'_>) -> Vec<f64> {
    let all = || scope.flows.iter().copied().flat_map(|flow| &flow.transfers);
    let mut times: Vec<f64> = all().filter_map(|transfer| Some(transfer.completion?.as_secs_f64())).collect();
    let mean = stats::mean(&times).unwrap_or(0.0);
    let open = all().filter(|transfer| transfer.completion.is_none());
    times.extend(
        open.map(|transfer| scope.run.end.since(transfer.start).as_secs_f64()).filter(|time| *time > mean),
    );
    times
}

fn completion_p95(scope: &Scope<'_>) -> f64 {
    let mut times = completions(scope);
    times.sort_by(f64::total_cmp);
    let rank = (0.95 * times.len() as f64).ceil() as usize;
    rank.checked_sub(1).and_then(|rank| times.get(rank)).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Figure;
    use crate::synthetic;
    use ranpace_sim::{FlowTotals, RunResult, Transfer};
    use ranpace_units::{Bytes, Span};

    /// Two flows of 1 MB from second 3 on: one has 600 kB of 800 kB acknowledged, and sent 50 kB of these again; the other one
    /// completed. A third could not send.
    fn run() -> RunResult {
        let mut run = synthetic::run_of(&["dcic", "dcic", "dcic"], 1);
        let at = |ms| Some(Time::from_millis(ms));
        let of = |sent, once, acked, received, last_acked| FlowTotals {
            sent: Bytes::new(sent),
            sent_once: Bytes::new(once),
            acked: Bytes::new(acked),
            first_sent: at(3_000),
            last_received: at(received),
            last_acked: at(last_acked),
            received_packets: 10,
            acks: 5,
            ..FlowTotals::default()
        };
        run.flows[0].totals = FlowTotals {
            recoveries: 2,
            one_way_mean: Span::from_millis(100),
            feedback_one_way_mean: Span::from_millis(500),
            ..of(850_000, 800_000, 600_000, 7_000, 9_000)
        };
        run.flows[1].totals = FlowTotals {
            one_way_mean: Span::from_millis(50),
            feedback_one_way_mean: Span::from_millis(100),
            ..of(1_000_000, 1_000_000, 1_000_000, 5_000, 7_000)
        };
        run.flows[2].totals = FlowTotals::default();
        (run.flows[0].timeouts, run.flows[1].timeouts, run.flows[2].timeouts) = (1, 0, 0);
        for flow in &mut run.flows {
            let size = Bytes::new(1_000_000);
            flow.transfers =
                vec![Transfer { start: Time::from_millis(3_000), size, completion: None, handed_over: None }];
        }
        run
    }

    #[test]
    fn figures_match_the_definitions_of_the_thesis() {
        let run = run();
        let third = 1.0 / 3.0;
        let of = |name| Figure::named(name).unwrap().of(&run);
        for (name, found, expected) in [
            ("transmitted: 850 kB in 4 s, 1 MB in 2 s", of("transmitted_rate"), 1.7e6 + 4e6),
            ("per flow", of("transmitted_rate_mean"), 5.7e6 / 3.0),
            ("goodput: 600 kB in 6 s, 1 MB in 4 s", of("acked_rate"), (0.8e6 + 2e6) / 3.0),
            ("ACKed bytes", of("acked"), 1.6e6 / 3.0),
            ("ACKed ratio, each byte once", of("acked_ratio"), (0.75 + 1.0) / 2.0),
            ("DL delay of those that received", of("one_way"), 0.075),
            ("DL delays", of("one_way_sum"), 1.5 / 3.0),
            ("packets received", of("received"), 20.0 / 3.0),
            ("UL delay", of("feedback_one_way"), 0.3),
            ("events", of("retransmission_events"), 1.0),
            ("sent again", of("retransmitted_share"), 50.0 / 850.0 / 2.0),
            ("bytes sent again, of all flows", of("sent_again"), 50_000.0 / 3.0),
            ("bytes sent", of("sent"), 1.85e6 / 3.0),
            ("Jain", of("jain_acked"), 2.8 * 2.8 / (3.0 * (0.64 + 4.0))),
            ("sent all", of("sent_all_share"), third),
            ("all ACKed", of("acked_all_share"), third),
            ("least sent", of("least_sent"), 0.0),
        ] {
            assert!((found - expected).abs() <= 1e-9 * expected.max(1.0), "{name}: {found}, not {expected}");
        }
    }

    #[test]
    fn a_quantile_is_the_first_point_that_reaches_it() {
        let cdf =
            vec![(Span::from_millis(10), 0.5), (Span::from_millis(20), 0.8), (Span::from_millis(30), 1.0)];
        let of = Distribution { count: 10, cdf, ..Distribution::default() };
        assert_eq!(quantile(&of, 0.75), Some(0.020));
        assert_eq!(quantile(&Distribution::default(), 0.75), None);
    }
}
