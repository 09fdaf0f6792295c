//! What is taken from a run, as one number each.

use ranpace_sim::RunResult;
use serde::Deserialize;

use super::{totals, tracking};
use crate::figures::Quantity;
use crate::stats;

/// A figure of one run, in base units: bit/s, bytes, seconds, shares. Over several flows, times are weighted by packets, but
/// for those from [`Self::TransmittedRate`] on, which are means over the flows of the flows' own figures.
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
    /// Payload sent, what was sent again included, over the time from the first packet sent to the last one received; the sum
    /// over the flows.
    TransmittedRate,
    /// The same, mean over the flows.
    TransmittedRateMean,
    /// Payload acknowledged over the time from the first packet sent to the last ACK.
    AckedRate,
    /// Payload acknowledged.
    Acked,
    /// Payload acknowledged over payload sent at least once.
    AckedRatio,
    /// Mean time of data from end to end.
    OneWay,
    /// Mean time of ACKs from end to end.
    FeedbackOneWay,
    /// Mean of the sender's RTT samples.
    RttOfFlows,
    /// 75th percentile of the RTT.
    RttP75,
    /// 99th percentile of the RTT.
    RttP99,
    /// Timeouts and fast recoveries.
    RetransmissionEvents,
    /// Payload sent again over all payload sent.
    RetransmittedShare,
    /// Payload sent again.
    SentAgain,
    /// Payload sent, what was sent again included.
    Sent,
    /// The sender's RTT samples, added up.
    RttSum,
    /// Their number.
    RttSamples,
    /// Times of data from end to end, added up.
    OneWaySum,
    /// Packets of data that arrived.
    Received,
    /// PDUs and parts of them that RLC sent again in the uplink, per user.
    UplinkRlcRetransmissions,
    /// Jain's index of the flows' [`Self::AckedRate`].
    JainAcked,
    /// Share of the flows that sent all they had to.
    SentAllShare,
    /// Share of the flows of which all was acknowledged.
    AckedAllShare,
    /// Smallest amount that a flow sent, each byte counted once.
    LeastSent,
    /// The bandwidth that the first flow's control works with, mean over the run from its first report or sample.
    ControlBandwidth,
    /// What the first user's transport blocks hold, mean from the first flow's first data on.
    PhyRate,
    /// The same per slot in which something was sent to that user.
    ServedPhyRate,
    /// What the first flow's receiver estimates, mean over the rows in which something was sent to it.
    ServedReport,
    /// What the first flow's receiver estimates, mean over the run.
    ReceiverReport,
    /// What leaves the first user's radio downlink, mean from the first flow's first data on.
    RlcRate,
    /// Mean distance of the bandwidth in use from the RLC rate of the last 100 ms, over the mean RLC rate.
    TrackingError,
    /// Lag at which the receiver's estimate correlates best with the PHY rate.
    ReportLag,
    /// From the first data of any flow until all of every flow is acknowledged.
    UploadTime,
    /// 90th percentile of the RTT.
    RttP90,
    /// The same over the smallest RTT.
    RttP90OverMin,
    /// 95th percentile of the time in the bottleneck, and that of the time in a proxy on top of it.
    WaitP95,
    /// Mean time of transfers of a fixed size.
    CompletionMean,
    /// 95th percentile of it.
    CompletionP95,
}

impl Metric {
    /// All of them; the order is that of [`Figures`](super::Figures)' values.
    pub const ALL: [Self; 48] = [
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
        Self::TransmittedRate,
        Self::TransmittedRateMean,
        Self::AckedRate,
        Self::Acked,
        Self::AckedRatio,
        Self::OneWay,
        Self::FeedbackOneWay,
        Self::RttOfFlows,
        Self::RttP75,
        Self::RttP99,
        Self::RetransmissionEvents,
        Self::RetransmittedShare,
        Self::SentAgain,
        Self::Sent,
        Self::RttSum,
        Self::RttSamples,
        Self::OneWaySum,
        Self::Received,
        Self::UplinkRlcRetransmissions,
        Self::JainAcked,
        Self::SentAllShare,
        Self::AckedAllShare,
        Self::LeastSent,
        Self::ControlBandwidth,
        Self::PhyRate,
        Self::ServedPhyRate,
        Self::ServedReport,
        Self::ReceiverReport,
        Self::RlcRate,
        Self::TrackingError,
        Self::ReportLag,
        Self::UploadTime,
        Self::RttP90,
        Self::RttP90OverMin,
        Self::WaitP95,
        Self::CompletionMean,
        Self::CompletionP95,
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
            Self::TransmittedRate => "transmitted",
            Self::TransmittedRateMean => "transmitted per flow",
            Self::AckedRate => "goodput per flow",
            Self::Acked => "acknowledged per flow",
            Self::AckedRatio => "ACKed ratio",
            Self::OneWay => "DL delay",
            Self::FeedbackOneWay => "UL delay",
            Self::RttOfFlows => "RTT of flows",
            Self::RttP75 => "p75 RTT",
            Self::RttP99 => "p99 RTT",
            Self::RetransmissionEvents => "Retx per flow",
            Self::RetransmittedShare => "sent again",
            Self::SentAgain => "sent again per flow",
            Self::Sent => "sent per flow",
            Self::RttSum => "RTTs per flow",
            Self::RttSamples => "RTT samples per flow",
            Self::OneWaySum => "DL delays per flow",
            Self::Received => "packets received per flow",
            Self::UplinkRlcRetransmissions => "uplink RLC sent again",
            Self::JainAcked => "Jain of goodput",
            Self::SentAllShare => "sent all",
            Self::AckedAllShare => "all ACKed",
            Self::LeastSent => "least sent",
            Self::ControlBandwidth => "bandwidth in use",
            Self::PhyRate => "PHY rate",
            Self::ServedPhyRate => "PHY rate, served",
            Self::ServedReport => "report, served",
            Self::ReceiverReport => "report",
            Self::RlcRate => "RLC rate",
            Self::TrackingError => "tracking error",
            Self::ReportLag => "lag of the report",
            Self::UploadTime => "upload time",
            Self::RttP90 => "p90 RTT",
            Self::RttP90OverMin => "p90 RTT / smallest",
            Self::WaitP95 => "p95 delay",
            Self::CompletionMean => "transfer, mean",
            Self::CompletionP95 => "transfer, p95",
        }
    }

    /// What it measures.
    pub const fn quantity(self) -> Quantity {
        match self {
            Self::Throughput
            | Self::Goodput
            | Self::TransmittedRate
            | Self::TransmittedRateMean
            | Self::AckedRate
            | Self::ControlBandwidth
            | Self::PhyRate
            | Self::ServedPhyRate
            | Self::ServedReport
            | Self::ReceiverReport
            | Self::RlcRate => Quantity::Rate,
            Self::Acked | Self::LeastSent | Self::SentAgain | Self::Sent => Quantity::Size,
            Self::Utilisation
            | Self::Share
            | Self::Loss
            | Self::AckedRatio
            | Self::RetransmittedShare
            | Self::SentAllShare
            | Self::AckedAllShare
            | Self::TrackingError => Quantity::Share,
            Self::DelayMean
            | Self::DelayP95
            | Self::RttMean
            | Self::JitterEwma
            | Self::JitterDeviation
            | Self::OneWay
            | Self::FeedbackOneWay
            | Self::RttOfFlows
            | Self::RttSum
            | Self::OneWaySum
            | Self::RttP75
            | Self::RttP99
            | Self::ReportLag
            | Self::UploadTime
            | Self::RttP90
            | Self::WaitP95
            | Self::CompletionMean
            | Self::CompletionP95 => Quantity::Time,
            Self::RttP90OverMin
            | Self::Jain
            | Self::RetransmissionEvents
            | Self::RttSamples
            | Self::Received
            | Self::UplinkRlcRetransmissions
            | Self::JainAcked => Quantity::Plain,
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
            Self::TransmittedRate => totals::transmitted_rate(run),
            Self::TransmittedRateMean => totals::transmitted_rate_mean(run),
            Self::AckedRate => totals::acked_rate(run),
            Self::Acked => totals::acked_bytes(run),
            Self::AckedRatio => totals::acked_ratio(run),
            Self::OneWay => totals::one_way(run),
            Self::FeedbackOneWay => totals::feedback_one_way(run),
            Self::RttOfFlows => totals::rtt_of_flows(run),
            Self::RttP75 => totals::rtt_p75(run),
            Self::RttP99 => totals::rtt_p99(run),
            Self::RetransmissionEvents => totals::retransmission_events(run),
            Self::RetransmittedShare => totals::retransmitted_share(run),
            Self::SentAgain => totals::sent_again(run),
            Self::Sent => totals::sent(run),
            Self::RttSum => totals::rtt_sum(run),
            Self::RttSamples => totals::rtt_samples(run),
            Self::OneWaySum => totals::one_way_sum(run),
            Self::Received => totals::received(run),
            Self::UplinkRlcRetransmissions => totals::uplink_rlc_retransmissions(run),
            Self::JainAcked => totals::jain_acked(run),
            Self::SentAllShare => totals::sent_all_share(run),
            Self::AckedAllShare => totals::acked_all_share(run),
            Self::LeastSent => totals::least_sent(run),
            Self::ControlBandwidth => tracking::control_bandwidth(run),
            Self::PhyRate => tracking::phy_rate(run),
            Self::ServedPhyRate => tracking::served_phy_rate(run),
            Self::ServedReport => tracking::served_report(run),
            Self::ReceiverReport => tracking::receiver_report(run),
            Self::RlcRate => tracking::rlc_rate(run),
            Self::TrackingError => tracking::tracking_error(run),
            Self::ReportLag => tracking::report_lag(run),
            Self::UploadTime => totals::upload_time(run),
            Self::RttP90 => totals::rtt_p90(run),
            Self::RttP90OverMin => totals::rtt_p90_over_min(run),
            Self::WaitP95 => totals::wait_p95(run),
            Self::CompletionMean => stats::mean(&totals::completions(run)).unwrap_or(f64::NAN),
            Self::CompletionP95 => totals::completion_p95(run),
        }
    }
}
