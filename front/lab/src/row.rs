//! One line of a comparison: an algorithm's figures over all its flows and seeds.

use ranpace_sim::{Distribution, FlowResult, RunResult};
use ranpace_units::Span;
use serde::{Deserialize, Deserializer, Serialize};

use crate::figures::Quantity;
use crate::radio::Users;
use crate::stats;

/// What one algorithm achieved. NaN (in JSON `null`) where there is no value; `…_ci95` is half the width of the
/// 95 % confidence interval over the seeds, `None` for a single one.
///
/// Within a run, goodput is what all flows delivered over the longest of their times; means of delay and jitter weight
/// each flow by its packets (RTT by its samples); a percentile over several flows is the mean of the flows'
/// percentiles, weighted likewise, which is not quite that of all packets together; loss and retransmissions are
/// packets over packets. Utilisation is that of the flows' bottlenecks, all of their traffic included. Over the seeds,
/// every figure is the plain mean.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields are named after what they are, and described in FIGURES")]
pub struct CompareRow {
    pub cc: String,
    pub seeds: usize,
    /// Flows per run.
    pub flows: usize,
    #[serde(deserialize_with = "null_is_nan")]
    pub goodput_bit_s: f64,
    pub goodput_bit_s_ci95: Option<f64>,
    #[serde(deserialize_with = "null_is_nan")]
    pub utilisation: f64,
    pub utilisation_ci95: Option<f64>,
    #[serde(deserialize_with = "null_is_nan")]
    pub delay_mean_s: f64,
    pub delay_mean_s_ci95: Option<f64>,
    #[serde(deserialize_with = "null_is_nan")]
    pub delay_p50_s: f64,
    pub delay_p50_s_ci95: Option<f64>,
    #[serde(deserialize_with = "null_is_nan")]
    pub delay_p95_s: f64,
    pub delay_p95_s_ci95: Option<f64>,
    #[serde(deserialize_with = "null_is_nan")]
    pub delay_p99_s: f64,
    pub delay_p99_s_ci95: Option<f64>,
    #[serde(deserialize_with = "null_is_nan")]
    pub rtt_mean_s: f64,
    pub rtt_mean_s_ci95: Option<f64>,
    #[serde(deserialize_with = "null_is_nan")]
    pub rtt_p95_s: f64,
    pub rtt_p95_s_ci95: Option<f64>,
    /// J1.
    #[serde(deserialize_with = "null_is_nan")]
    pub jitter_s: f64,
    pub jitter_s_ci95: Option<f64>,
    /// J2.
    #[serde(deserialize_with = "null_is_nan")]
    pub jitter_mean_deviation_s: f64,
    pub jitter_mean_deviation_s_ci95: Option<f64>,
    #[serde(deserialize_with = "null_is_nan")]
    pub loss_rate: f64,
    pub loss_rate_ci95: Option<f64>,
    #[serde(deserialize_with = "null_is_nan")]
    pub retransmission_rate: f64,
    pub retransmission_rate_ci95: Option<f64>,
    #[serde(deserialize_with = "null_is_nan")]
    pub jain: f64,
    pub jain_ci95: Option<f64>,
    /// Mean completion of the transfers that finished.
    #[serde(deserialize_with = "null_is_nan")]
    pub completion_mean_s: f64,
    pub completion_mean_s_ci95: Option<f64>,
}

fn null_is_nan<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

impl CompareRow {
    /// Of runs of the same scenario with different seeds: all flows but the plain sources ("udp").
    pub fn of(label: impl Into<String>, runs: &[&RunResult]) -> Self {
        Self::of_flows(label, runs, |flow| flow.cc != "udp")
    }

    /// As [`Self::of`], over chosen flows; for several algorithms in one run.
    pub fn of_flows(
        label: impl Into<String>,
        runs: &[&RunResult],
        chosen: impl Fn(&FlowResult) -> bool,
    ) -> Self {
        let figures = runs.iter().map(|run| RunFigures::of(run, &chosen)).collect();
        let flows = runs.first().map_or(0, |run| run.flows.iter().filter(|flow| chosen(flow)).count());
        Self::of_figures(label.into(), figures, flows)
    }

    /// Of one flow of a run. The time that it takes does not depend on the other flows.
    pub fn of_flow(label: impl Into<String>, run: &RunResult, flow: &FlowResult) -> Self {
        Self::of_figures(label.into(), vec![RunFigures::of_flows(run, &[flow])], 1)
    }

    /// Of the figures of a run for each seed, with so many flows each.
    fn of_figures(label: String, figures: Vec<RunFigures>, flows: usize) -> Self {
        let over_seeds = |figure: fn(&RunFigures) -> f64| {
            let estimate = stats::estimate(figures.iter().map(figure));
            (estimate.mean, estimate.ci95)
        };
        let (goodput_bit_s, goodput_bit_s_ci95) = over_seeds(|run| run.goodput);
        let (utilisation, utilisation_ci95) = over_seeds(|run| run.utilisation);
        let (delay_mean_s, delay_mean_s_ci95) = over_seeds(|run| run.delay[0]);
        let (delay_p50_s, delay_p50_s_ci95) = over_seeds(|run| run.delay[1]);
        let (delay_p95_s, delay_p95_s_ci95) = over_seeds(|run| run.delay[2]);
        let (delay_p99_s, delay_p99_s_ci95) = over_seeds(|run| run.delay[3]);
        let (rtt_mean_s, rtt_mean_s_ci95) = over_seeds(|run| run.rtt[0]);
        let (rtt_p95_s, rtt_p95_s_ci95) = over_seeds(|run| run.rtt[2]);
        let (jitter_s, jitter_s_ci95) = over_seeds(|run| run.jitter);
        let (jitter_mean_deviation_s, jitter_mean_deviation_s_ci95) =
            over_seeds(|run| run.jitter_mean_deviation);
        let (loss_rate, loss_rate_ci95) = over_seeds(|run| run.loss);
        let (retransmission_rate, retransmission_rate_ci95) = over_seeds(|run| run.retransmissions);
        let (jain, jain_ci95) = over_seeds(|run| run.jain);
        let (completion_mean_s, completion_mean_s_ci95) = over_seeds(|run| run.completion);
        Self {
            cc: label,
            seeds: figures.len(),
            flows,
            goodput_bit_s,
            goodput_bit_s_ci95,
            utilisation,
            utilisation_ci95,
            delay_mean_s,
            delay_mean_s_ci95,
            delay_p50_s,
            delay_p50_s_ci95,
            delay_p95_s,
            delay_p95_s_ci95,
            delay_p99_s,
            delay_p99_s_ci95,
            rtt_mean_s,
            rtt_mean_s_ci95,
            rtt_p95_s,
            rtt_p95_s_ci95,
            jitter_s,
            jitter_s_ci95,
            jitter_mean_deviation_s,
            jitter_mean_deviation_s_ci95,
            loss_rate,
            loss_rate_ci95,
            retransmission_rate,
            retransmission_rate_ci95,
            jain,
            jain_ci95,
            completion_mean_s,
            completion_mean_s_ci95,
        }
    }
}

/// Aggregate of one run, over its chosen flows.
#[derive(Clone, Debug)]
pub(crate) struct RunFigures {
    pub goodput: f64,
    pub utilisation: f64,
    /// Mean, p50, p95, p99.
    pub delay: [f64; 4],
    pub rtt: [f64; 4],
    pub jitter: f64,
    pub jitter_mean_deviation: f64,
    pub loss: f64,
    pub retransmissions: f64,
    pub jain: f64,
    pub completion: f64,
}

/// What all flows delivered together over the longest of their times, in bit/s: a flow that came late counts for what it
/// brought, and the sum never exceeds the link.
fn goodput_of(flows: &[&FlowResult]) -> f64 {
    let time = flows.iter().map(|flow| flow.measured.as_secs_f64()).fold(f64::NAN, f64::max);
    let bytes: f64 = flows.iter().map(|flow| flow.delivered.as_f64()).sum();
    stats::ratio(bytes * 8.0, time).unwrap_or(f64::NAN)
}

impl RunFigures {
    pub fn of(run: &RunResult, chosen: impl Fn(&FlowResult) -> bool) -> Self {
        Self::of_flows(run, &run.flows.iter().filter(|flow| chosen(flow)).collect::<Vec<_>>())
    }

    fn of_flows(run: &RunResult, flows: &[&FlowResult]) -> Self {
        let goodputs: Vec<f64> = flows.iter().map(|flow| flow.goodput.as_f64()).collect();
        let sent: u64 = flows.iter().map(|flow| flow.sent_packets).sum();
        let packets = |count: fn(&FlowResult) -> u64| {
            let count: u64 = flows.iter().map(|flow| count(flow)).sum();
            stats::ratio(count as f64, sent as f64).unwrap_or(f64::NAN)
        };
        let by_packets = |figure: fn(&FlowResult) -> Span| {
            let pairs =
                flows.iter().map(|flow| (figure(flow).as_secs_f64(), flow.queueing_delay.count as f64));
            stats::weighted_mean(pairs).unwrap_or(f64::NAN)
        };
        let times: Vec<f64> = flows
            .iter()
            .flat_map(|flow| &flow.transfers)
            .filter_map(|transfer| transfer.completion)
            .map(Span::as_secs_f64)
            .collect();
        Self {
            goodput: goodput_of(flows),
            utilisation: utilisation(run, flows),
            delay: times_of(flows.iter().map(|flow| &flow.queueing_delay)),
            rtt: times_of(flows.iter().map(|flow| &flow.rtt)),
            jitter: by_packets(|flow| flow.jitter_ewma),
            jitter_mean_deviation: by_packets(|flow| flow.jitter_mean_deviation),
            loss: packets(|flow| flow.dropped_packets),
            retransmissions: packets(|flow| flow.retransmitted_packets),
            jain: stats::jain(&goodputs).unwrap_or(f64::NAN),
            completion: stats::mean(&times).unwrap_or(f64::NAN),
        }
    }
}

/// Mean, p50, p95 and p99 over several distributions, weighted by their samples.
fn times_of<'a>(distributions: impl Iterator<Item = &'a Distribution> + Clone) -> [f64; 4] {
    let figures: [fn(&Distribution) -> Span; 4] = [|d| d.mean, |d| d.p50, |d| d.p95, |d| d.p99];
    figures.map(|figure| {
        let pairs = distributions.clone().map(|one| (figure(one).as_secs_f64(), one.count as f64));
        stats::weighted_mean(pairs).unwrap_or(f64::NAN)
    })
}

/// Bytes through the distinct bottlenecks of these flows, over what they could have carried. The radio of each user could
/// have carried what its cell would give to it alone: users share it, and what they took of it adds up, per cell and way.
fn utilisation(run: &RunResult, flows: &[&FlowResult]) -> f64 {
    let mut seen: Vec<usize> = flows.iter().filter_map(|flow| flow.bottleneck).collect();
    seen.sort_unstable();
    seen.dedup();
    let links: Vec<_> = seen.iter().filter_map(|index| run.links.get(*index)).collect();
    // Of a single link it does not matter whose it is.
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

/// One column of a comparison.
#[derive(Clone, Copy)]
pub struct Figure {
    /// Short title.
    pub title: &'static str,
    /// What it is, in a sentence.
    pub meaning: &'static str,
    /// What is measured.
    pub quantity: Quantity,
    /// Whether more is better; `None` where neither is.
    pub more_is_better: Option<bool>,
    /// Value and interval in a row.
    pub of: fn(&CompareRow) -> (f64, Option<f64>),
}

/// All figures of a row, in the order in which they are shown.
pub const FIGURES: &[Figure] = &[
    Figure {
        title: "goodput",
        meaning: "payload delivered in order, per second: all flows together, over the longest of their times",
        quantity: Quantity::Rate,
        more_is_better: Some(true),
        of: |row| (row.goodput_bit_s, row.goodput_bit_s_ci95),
    },
    Figure {
        title: "utilisation",
        meaning: "what the bottleneck carried over what it could have carried, headers included; of a cell: over what it would have carried for the user alone, added up over users",
        quantity: Quantity::Share,
        more_is_better: Some(true),
        of: |row| (row.utilisation, row.utilisation_ci95),
    },
    Figure {
        title: "delay mean",
        meaning: "mean time of a data packet in the bottleneck, from its arrival until its last byte has left",
        quantity: Quantity::Time,
        more_is_better: Some(false),
        of: |row| (row.delay_mean_s, row.delay_mean_s_ci95),
    },
    Figure {
        title: "delay p50",
        meaning: "median time in the bottleneck",
        quantity: Quantity::Time,
        more_is_better: Some(false),
        of: |row| (row.delay_p50_s, row.delay_p50_s_ci95),
    },
    Figure {
        title: "delay p95",
        meaning: "95 % of the packets spend at most this time in the bottleneck",
        quantity: Quantity::Time,
        more_is_better: Some(false),
        of: |row| (row.delay_p95_s, row.delay_p95_s_ci95),
    },
    Figure {
        title: "delay p99",
        meaning: "99 % of the packets spend at most this time in the bottleneck",
        quantity: Quantity::Time,
        more_is_better: Some(false),
        of: |row| (row.delay_p99_s, row.delay_p99_s_ci95),
    },
    Figure {
        title: "RTT mean",
        meaning: "mean round-trip time as the sender measured it",
        quantity: Quantity::Time,
        more_is_better: Some(false),
        of: |row| (row.rtt_mean_s, row.rtt_mean_s_ci95),
    },
    Figure {
        title: "RTT p95",
        meaning: "95th percentile of the round-trip time",
        quantity: Quantity::Time,
        more_is_better: Some(false),
        of: |row| (row.rtt_p95_s, row.rtt_p95_s_ci95),
    },
    Figure {
        title: "jitter J1",
        meaning: "mean of the moving average (weight 1/16) of the difference between successive delays",
        quantity: Quantity::Time,
        more_is_better: Some(false),
        of: |row| (row.jitter_s, row.jitter_s_ci95),
    },
    Figure {
        title: "jitter J2",
        meaning: "mean distance of the delays from their mean",
        quantity: Quantity::Time,
        more_is_better: Some(false),
        of: |row| (row.jitter_mean_deviation_s, row.jitter_mean_deviation_s_ci95),
    },
    Figure {
        title: "loss",
        meaning: "data packets dropped on the way over those sent",
        quantity: Quantity::Share,
        more_is_better: Some(false),
        of: |row| (row.loss_rate, row.loss_rate_ci95),
    },
    Figure {
        title: "retransmitted",
        meaning: "data packets sent again over those sent",
        quantity: Quantity::Share,
        more_is_better: Some(false),
        of: |row| (row.retransmission_rate, row.retransmission_rate_ci95),
    },
    Figure {
        title: "Jain index",
        meaning: "fairness of the goodput between the flows, 1 if all are equal",
        quantity: Quantity::Plain,
        more_is_better: Some(true),
        of: |row| if row.flows > 1 { (row.jain, row.jain_ci95) } else { (f64::NAN, None) },
    },
    Figure {
        title: "completion",
        meaning: "mean time of the transfers of fixed size that finished",
        quantity: Quantity::Time,
        more_is_better: Some(false),
        of: |row| (row.completion_mean_s, row.completion_mean_s_ci95),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;
    use ranpace_units::Bytes;

    #[test]
    fn one_flow_and_one_seed_is_that_flow() {
        let run = synthetic::run("cubic", 1);
        let row = CompareRow::of("cubic", &[&run]);
        let flow = &run.flows[0];
        // The flow has it in whole bits per second.
        assert!((row.goodput_bit_s - flow.goodput.as_f64()).abs() < 1.0);
        assert!((row.delay_p99_s - flow.queueing_delay.p99.as_secs_f64()).abs() < 1e-15);
        assert!((row.utilisation - run.links[0].utilisation.unwrap()).abs() < 1e-6);
        assert_eq!((row.jain, row.seeds, row.flows, row.goodput_bit_s_ci95), (1.0, 1, 1, None));
    }

    #[test]
    fn users_of_a_cell_share_it() {
        let mut run = crate::radio::sample::run(2);
        let mut second = run.flows[0].clone();
        second.bottleneck = Some(3);
        run.flows.push(second);
        for (link, capacity) in [(1, 1_000), (3, 500)] {
            let link = &mut run.links[link];
            (link.departed, link.capacity) = (Bytes::new(250), Some(Bytes::new(capacity)));
        }
        assert_eq!(CompareRow::of("cubic", &[&run]).utilisation, 0.75);
    }

    #[test]
    fn flows_add_up_and_are_weighted_by_their_packets() {
        let mut run = synthetic::run_of(&["cubic", "cubic", "udp"], 1);
        for (index, flow) in run.flows.iter_mut().enumerate() {
            let weight = index as u64 * 2 + 1;
            flow.queueing_delay.count = weight;
            flow.queueing_delay.mean = Span::from_millis(10 * weight);
            (flow.sent_packets, flow.dropped_packets) = (100 * weight, 1);
        }
        let row = CompareRow::of("cubic", &[&run]);
        assert_eq!(row.flows, 2);
        // The second flow came 4 s later, but counts over the first one's minute.
        let sum = run.flows[0].delivered.as_f64() + run.flows[1].delivered.as_f64();
        assert!((row.goodput_bit_s - sum * 8.0 / 60.0).abs() < 1.0);
        assert!((row.delay_mean_s - (1.0 * 0.01 + 3.0 * 0.03) / 4.0).abs() < 1e-12);
        assert_eq!(row.loss_rate, 2.0 / 400.0);
    }

    #[test]
    fn seeds_give_an_interval() {
        let runs: Vec<_> = (1..=5).map(|seed| synthetic::run("cubic", seed)).collect();
        let row = CompareRow::of("cubic", &runs.iter().collect::<Vec<_>>());
        let goodputs: Vec<f64> = runs.iter().map(|run| run.flows[0].goodput.as_f64()).collect();
        let expected = stats::ci95(&goodputs).unwrap();
        assert!((row.goodput_bit_s_ci95.unwrap() - expected).abs() < 2.0);
        assert_eq!(row.seeds, 5);
    }

    #[test]
    fn nothing_gives_nothing_and_survives_json() {
        let row = CompareRow::of("none", &[]);
        assert!(row.goodput_bit_s.is_nan() && row.utilisation.is_nan() && row.flows == 0);
        let text = serde_json::to_string(&row).unwrap();
        assert!(text.contains(r#""goodput_bit_s":null"#));
        let found: CompareRow = serde_json::from_str(&text).unwrap();
        assert!(found.goodput_bit_s.is_nan());
    }

    #[test]
    fn unlimited_links_have_no_utilisation() {
        let mut run = synthetic::run("cubic", 1);
        run.links[0].capacity = None;
        assert!(CompareRow::of("cubic", &[&run]).utilisation.is_nan());
    }
}
