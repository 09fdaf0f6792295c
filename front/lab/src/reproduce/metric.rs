//! What is taken from a run, as one number each.

use ranpace_sim::RunResult;
use serde::Deserialize;

use crate::figures::Quantity;
use crate::stats;

/// A figure of one run, in base units: bit/s, seconds, shares. Over several flows, times are weighted by packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Bits that left the bottleneck, headers included, per second.
    Throughput,
    /// Payload that arrived, in order, per second.
    Goodput,
    /// Mean time in the bottleneck.
    DelayMean,
    /// Its 95th percentile.
    DelayP95,
    /// Mean of the sender's RTT samples.
    RttMean,
    /// Jitter J1: mean of the smoothed difference between successive delays.
    JitterEwma,
    /// Jitter J2: mean distance of the delays from their mean.
    JitterDeviation,
    /// Bits through the bottleneck over its capacity.
    Utilisation,
    /// Jain's index of the flows' throughputs.
    Jain,
    /// The last flow's part of the throughput.
    Share,
    /// Dropped over sent packets.
    Loss,
}

impl Metric {
    /// All of them; the order is that of [`Figures`](super::Figures)' values.
    pub const ALL: [Self; 11] = [
        Self::Throughput,
        Self::Goodput,
        Self::DelayMean,
        Self::DelayP95,
        Self::RttMean,
        Self::JitterEwma,
        Self::JitterDeviation,
        Self::Utilisation,
        Self::Jain,
        Self::Share,
        Self::Loss,
    ];

    /// Heading of a column.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Goodput => "goodput",
            Self::DelayMean => "mean delay",
            Self::DelayP95 => "p95 delay",
            Self::RttMean => "mean RTT",
            Self::JitterEwma => "jitter J1",
            Self::JitterDeviation => "jitter J2",
            Self::Utilisation => "utilisation",
            Self::Jain => "Jain index",
            Self::Share => "share of flow 2",
            Self::Loss => "loss",
        }
    }

    /// What it measures.
    pub const fn quantity(self) -> Quantity {
        match self {
            Self::Throughput | Self::Goodput => Quantity::Rate,
            Self::DelayMean | Self::DelayP95 | Self::RttMean | Self::JitterEwma | Self::JitterDeviation => {
                Quantity::Time
            }
            Self::Utilisation | Self::Share | Self::Loss => Quantity::Share,
            Self::Jain => Quantity::Plain,
        }
    }

    /// A value with its unit.
    pub fn show(self, value: f64) -> String {
        let unit = self.quantity().unit([value]);
        if unit.name.is_empty() { unit.show(value) } else { format!("{} {}", unit.show(value), unit.name) }
    }

    /// Its value in a run; NaN where there is none.
    pub fn of(self, run: &RunResult) -> f64 {
        let flows: Vec<_> = run.flows.iter().filter(|flow| flow.cc != "udp").collect();
        let rate = |flow: &ranpace_sim::FlowResult| {
            stats::ratio(flow.bottleneck_bytes.as_f64() * 8.0, flow.measured.as_secs_f64()).unwrap_or(0.0)
        };
        let rates: Vec<f64> = flows.iter().map(|flow| rate(flow)).collect();
        let total: f64 = rates.iter().sum();
        let weighted = |value: fn(&ranpace_sim::FlowResult) -> (f64, u64)| {
            let pairs = flows.iter().map(|flow| value(flow)).map(|(value, count)| (value, count as f64));
            stats::weighted_mean(pairs).unwrap_or(f64::NAN)
        };
        match self {
            Self::Throughput => total,
            Self::Goodput => flows.iter().map(|flow| flow.goodput.as_f64()).sum(),
            Self::DelayMean => {
                weighted(|flow| (flow.queueing_delay.mean.as_secs_f64(), flow.queueing_delay.count))
            }
            Self::DelayP95 => {
                weighted(|flow| (flow.queueing_delay.p95.as_secs_f64(), flow.queueing_delay.count))
            }
            Self::RttMean => weighted(|flow| (flow.rtt.mean.as_secs_f64(), flow.rtt.count)),
            Self::JitterEwma => weighted(|flow| (flow.jitter_ewma.as_secs_f64(), flow.queueing_delay.count)),
            Self::JitterDeviation => {
                weighted(|flow| (flow.jitter_mean_deviation.as_secs_f64(), flow.queueing_delay.count))
            }
            Self::Utilisation => {
                let link =
                    flows.first().and_then(|flow| flow.bottleneck).and_then(|link| run.links.get(link));
                link.and_then(|link| link.utilisation).unwrap_or(f64::NAN)
            }
            Self::Jain => stats::jain(&rates).unwrap_or(f64::NAN),
            Self::Share => rates.last().and_then(|last| stats::ratio(*last, total)).unwrap_or(f64::NAN),
            Self::Loss => {
                let dropped: u64 = flows.iter().map(|flow| flow.dropped_packets).sum();
                let sent: u64 = flows.iter().map(|flow| flow.sent_packets).sum();
                stats::ratio(dropped as f64, sent as f64).unwrap_or(f64::NAN)
            }
        }
    }
}
