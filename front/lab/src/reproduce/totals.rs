//! Figures of what flows did from their first packet to their last: those of Zhong's tables (004, chapters 5 and 6).
//!
//! Each is a figure of a flow, and its mean over the flows. A flow that sent nothing (a user out of coverage) has a rate of
//! zero and no delays, no RTT and no ratios. UDP flows do not count.

use ranpace_sim::{Distribution, FlowResult, RunResult};
use ranpace_units::Time;

use crate::stats;

fn flows(run: &RunResult) -> impl Iterator<Item = &FlowResult> {
    run.flows.iter().filter(|flow| flow.cc != "udp")
}

/// Mean over the flows that have the figure.
fn mean(run: &RunResult, figure: impl Fn(&FlowResult) -> Option<f64>) -> f64 {
    let each: Vec<f64> = flows(run).filter_map(figure).collect();
    stats::mean(&each).unwrap_or(f64::NAN)
}

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

/// What a flow was asked to send.
fn asked(flow: &FlowResult) -> Option<f64> {
    let asked: u64 = flow.transfers.iter().map(|transfer| transfer.size.get()).sum();
    (asked > 0).then_some(asked as f64)
}

pub(super) fn transmitted_rate(run: &RunResult) -> f64 {
    flows(run).map(transmitted).sum()
}

pub(super) fn transmitted_rate_mean(run: &RunResult) -> f64 {
    mean(run, |flow| Some(transmitted(flow)))
}

pub(super) fn acked_rate(run: &RunResult) -> f64 {
    mean(run, |flow| Some(acked(flow)))
}

pub(super) fn acked_bytes(run: &RunResult) -> f64 {
    mean(run, |flow| Some(flow.totals.acked.as_f64()))
}

pub(super) fn acked_ratio(run: &RunResult) -> f64 {
    mean(run, |flow| stats::ratio(flow.totals.acked.as_f64(), flow.totals.sent_once.as_f64()))
}

pub(super) fn one_way(run: &RunResult) -> f64 {
    mean(run, |flow| (flow.totals.received_packets > 0).then(|| flow.totals.one_way_mean.as_secs_f64()))
}

pub(super) fn feedback_one_way(run: &RunResult) -> f64 {
    mean(run, |flow| (flow.totals.acks > 0).then(|| flow.totals.feedback_one_way_mean.as_secs_f64()))
}

pub(super) fn rtt_of_flows(run: &RunResult) -> f64 {
    mean(run, |flow| (flow.rtt.count > 0).then(|| flow.rtt.mean.as_secs_f64()))
}

pub(super) fn rtt_p75(run: &RunResult) -> f64 {
    mean(run, |flow| quantile(&flow.rtt, 0.75))
}

pub(super) fn rtt_p90(run: &RunResult) -> f64 {
    mean(run, |flow| quantile(&flow.rtt, 0.9))
}

pub(super) fn rtt_p90_over_min(run: &RunResult) -> f64 {
    mean(run, |flow| stats::ratio(quantile(&flow.rtt, 0.9)?, flow.rtt.min.as_secs_f64()))
}

/// From the first data of any flow to the last acknowledgement of all; none if a flow was not complete.
pub(super) fn upload_time(run: &RunResult) -> f64 {
    let is_complete =
        |flow: &FlowResult| asked(flow).is_some_and(|asked| flow.totals.acked.as_f64() >= asked);
    if !flows(run).all(is_complete) {
        return f64::NAN;
    }
    let first = flows(run).filter_map(|flow| flow.totals.first_sent).min();
    let last = flows(run).filter_map(|flow| flow.totals.last_acked).max();
    first.zip(last).map_or(f64::NAN, |(first, last)| last.since(first).as_secs_f64())
}

pub(super) fn rtt_p99(run: &RunResult) -> f64 {
    mean(run, |flow| (flow.rtt.count > 0).then(|| flow.rtt.p99.as_secs_f64()))
}

/// From the points of the distribution function, the first that reaches it.
fn quantile(of: &Distribution, share: f64) -> Option<f64> {
    of.cdf.iter().find(|point| point.1 >= share).map(|point| point.0.as_secs_f64())
}

pub(super) fn retransmission_events(run: &RunResult) -> f64 {
    mean(run, |flow| Some((flow.timeouts + flow.totals.recoveries) as f64))
}

pub(super) fn retransmitted_share(run: &RunResult) -> f64 {
    mean(run, |flow| {
        let (sent, once) = (flow.totals.sent.as_f64(), flow.totals.sent_once.as_f64());
        stats::ratio(sent - once, sent)
    })
}

pub(super) fn sent_again(run: &RunResult) -> f64 {
    mean(run, |flow| Some(flow.totals.sent.as_f64() - flow.totals.sent_once.as_f64()))
}

pub(super) fn sent(run: &RunResult) -> f64 {
    mean(run, |flow| Some(flow.totals.sent.as_f64()))
}

pub(super) fn rtt_sum(run: &RunResult) -> f64 {
    mean(run, |flow| Some(flow.rtt.mean.as_secs_f64() * flow.rtt.count as f64))
}

pub(super) fn rtt_samples(run: &RunResult) -> f64 {
    mean(run, |flow| Some(flow.rtt.count as f64))
}

pub(super) fn one_way_sum(run: &RunResult) -> f64 {
    mean(run, |flow| Some(flow.totals.one_way_mean.as_secs_f64() * flow.totals.received_packets as f64))
}

pub(super) fn received(run: &RunResult) -> f64 {
    mean(run, |flow| Some(flow.totals.received_packets as f64))
}

pub(super) fn uplink_rlc_retransmissions(run: &RunResult) -> f64 {
    let each: Vec<f64> = run.users.iter().map(|user| user.uplink.rlc_sent_again as f64).collect();
    stats::mean(&each).unwrap_or(f64::NAN)
}

pub(super) fn jain_acked(run: &RunResult) -> f64 {
    stats::jain(&flows(run).map(acked).collect::<Vec<_>>()).unwrap_or(f64::NAN)
}

pub(super) fn sent_all_share(run: &RunResult) -> f64 {
    mean(run, |flow| Some(f64::from(u8::from(flow.totals.sent_once.as_f64() >= asked(flow)?))))
}

pub(super) fn acked_all_share(run: &RunResult) -> f64 {
    mean(run, |flow| Some(f64::from(u8::from(flow.totals.acked.as_f64() >= asked(flow)?))))
}

pub(super) fn least_sent(run: &RunResult) -> f64 {
    let least = flows(run).map(|flow| flow.totals.sent_once.as_f64()).fold(f64::INFINITY, f64::min);
    if least.is_finite() { least } else { f64::NAN }
}

/// Time in the bottleneck and in a proxy that 95 % of a flow's packets stay below, each by itself; mean over the flows by
/// packets. What a proxy hides from the radio's queue is delay all the same.
pub(super) fn wait_p95(run: &RunResult) -> f64 {
    let wait = |flow: &FlowResult| {
        let proxy = flow.split.as_ref().map_or(0.0, |split| split.delay.p95.as_secs_f64());
        (flow.queueing_delay.p95.as_secs_f64() + proxy, flow.queueing_delay.count as f64)
    };
    stats::weighted_mean(flows(run).map(wait)).unwrap_or(f64::NAN)
}

/// Times of the transfers of all flows. One that is under way at the end counts with its time so far if it has lasted longer
/// than those that ended; a shorter one says nothing.
pub(super) fn completions(run: &RunResult) -> Vec<f64> {
    let all = || flows(run).flat_map(|flow| &flow.transfers);
    let mut times: Vec<f64> = all().filter_map(|transfer| Some(transfer.completion?.as_secs_f64())).collect();
    let mean = stats::mean(&times).unwrap_or(0.0);
    let open = all().filter(|transfer| transfer.completion.is_none());
    times
        .extend(open.map(|transfer| run.end.since(transfer.start).as_secs_f64()).filter(|time| *time > mean));
    times
}

pub(super) fn completion_p95(run: &RunResult) -> f64 {
    let mut times = completions(run);
    times.sort_by(f64::total_cmp);
    let rank = (0.95 * times.len() as f64).ceil() as usize;
    rank.checked_sub(1).and_then(|rank| times.get(rank)).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;
    use ranpace_sim::{FlowTotals, Transfer};
    use ranpace_units::{Bytes, Span};

    /// Two flows of 1 MB from second 3 on: one has 600 kB of 800 kB acknowledged, and sent 50 kB of these again; the other
    /// one got through. A third could not send.
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
    fn figures_are_as_the_thesis_defines_them() {
        let run = run();
        let third = 1.0 / 3.0;
        for (name, found, expected) in [
            ("transmitted: 850 kB in 4 s, 1 MB in 2 s", transmitted_rate(&run), 1.7e6 + 4e6),
            ("per flow", transmitted_rate_mean(&run), 5.7e6 / 3.0),
            ("goodput: 600 kB in 6 s, 1 MB in 4 s", acked_rate(&run), (0.8e6 + 2e6) / 3.0),
            ("ACKed bytes", acked_bytes(&run), 1.6e6 / 3.0),
            ("ACKed ratio, each byte once", acked_ratio(&run), (0.75 + 1.0) / 2.0),
            ("DL delay of those that received", one_way(&run), 0.075),
            ("DL delays", one_way_sum(&run), 1.5 / 3.0),
            ("packets received", received(&run), 20.0 / 3.0),
            ("UL delay", feedback_one_way(&run), 0.3),
            ("events", retransmission_events(&run), 1.0),
            ("sent again", retransmitted_share(&run), 50.0 / 850.0 / 2.0),
            ("bytes sent again, of all flows", sent_again(&run), 50_000.0 / 3.0),
            ("bytes sent", sent(&run), 1.85e6 / 3.0),
            ("Jain", jain_acked(&run), 2.8 * 2.8 / (3.0 * (0.64 + 4.0))),
            ("sent all", sent_all_share(&run), third),
            ("all ACKed", acked_all_share(&run), third),
            ("least sent", least_sent(&run), 0.0),
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
