//! The JSON summary of a run: every figure that is not a series, with the scenario, the seed and the version.
//!
//! Field names end in their unit. What has no value is `null`. The order of fields and the digits are stable: the
//! same run gives the same bytes on any machine.

mod peps;
mod radio;

use ranpace_sim::{
    Distribution, FlowResult, FlowTotals, Ledger, LinkResult, LostConnection, RunResult, Series, SplitResult,
    Transfer,
};
use ranpace_units::{Bytes, Rate, Span, Time};
use serde::{Deserialize, Serialize};

pub use self::peps::PepSummary;
pub use self::radio::{CellSummary, FeedSummary, RadioLinkSummary, UserSummary};
use crate::stats;

/// Layout of the summary and of the files beside it; a reader refuses any other.
pub const SCHEMA: u32 = 1;

/// Where a result comes from. Two results of the same origin are the same, byte by byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Name of the scenario, for people.
    pub scenario: String,
    /// Its whole text, with everything that was changed on the command line written into it.
    pub scenario_text: String,
    /// The seed.
    pub seed: u64,
    /// Version of Ranpace.
    pub version: String,
    /// SHA-256 of the traces that its links play, in the order of the links: the text has only their names.
    pub traces: Vec<String>,
}

impl Origin {
    /// Of a run by this version of Ranpace, without traces.
    pub fn new(scenario: impl Into<String>, scenario_text: impl Into<String>, seed: u64) -> Self {
        let version = crate::VERSION.to_owned();
        let traces = Vec::new();
        Self { scenario: scenario.into(), scenario_text: scenario_text.into(), seed, version, traces }
    }
}

/// Summary of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Version of Ranpace that made it.
    pub version: String,
    /// Name of the scenario.
    pub scenario: String,
    /// The seed.
    pub seed: u64,
    /// Whether the run was stopped early; its figures then hold up to `end_s`.
    pub interrupted: bool,
    /// When measuring began.
    pub measured_from_s: f64,
    /// The end of the run.
    pub end_s: f64,
    /// Jain's index over the goodput of the flows.
    pub jain_index: Option<f64>,
    /// Per flow, in the scenario's order.
    pub flows: Vec<FlowSummary>,
    /// Per link, in the scenario's order.
    pub links: Vec<LinkSummary>,
    /// Cells.
    pub cells: Vec<CellSummary>,
    /// Users of the cells.
    pub users: Vec<UserSummary>,
    /// What radio information took between the cells and the edge; not there where nobody reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rnis: Option<FeedSummary>,
    /// Lightweight PEPs; not there where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peps: Vec<PepSummary>,
    /// Where every byte went.
    pub ledger: LedgerSummary,
    /// Events of the engine.
    pub events: u64,
    /// The scenario's text.
    pub scenario_text: String,
    /// SHA-256 of the traces that its links play, as mahimahi's text, in the order of the links.
    #[serde(default)]
    pub traces: Vec<String>,
    /// The other files of the run: a file that does not match is not used.
    #[serde(default)]
    pub files: Vec<FileSummary>,
}

/// One file beside the summary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSummary {
    /// Its name in the run's folder.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// SHA-256 of its content, in hexadecimal.
    pub sha256: String,
}

/// Figures of one flow, over its measured part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowSummary {
    /// Its name.
    pub name: String,
    /// Its algorithm.
    pub cc: String,
    /// Its bottleneck, as an index into `links`.
    pub bottleneck: Option<usize>,
    /// Length of the measured part.
    pub measured_s: f64,
    /// Payload delivered in order.
    pub delivered_bytes: u64,
    /// Delivered over measured.
    pub goodput_bit_s: u64,
    /// Bytes through the bottleneck, headers included.
    pub bottleneck_bytes: u64,
    /// Data packets sent.
    pub sent_packets: u64,
    /// Data packets sent again.
    pub retransmitted_packets: u64,
    /// `retransmitted_packets / sent_packets`.
    pub retransmission_rate: Option<f64>,
    /// Data packets dropped on the way.
    pub dropped_packets: u64,
    /// `dropped_packets / sent_packets`.
    pub loss_rate: Option<f64>,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Reductions taken back.
    pub undone: u64,
    /// Packets marked by ECN.
    pub marked_packets: u64,
    /// RTT as the sender measured it.
    pub rtt: DistributionSummary,
    /// Time of the flow's packets in the bottleneck.
    pub queueing_delay: DistributionSummary,
    /// Jitter J1: EWMA of the difference of successive delays.
    pub jitter_ewma_s: f64,
    /// Jitter J2: mean distance of the delays from their mean.
    pub jitter_mean_deviation_s: f64,
    /// What the flow did from its first packet on.
    pub totals: TotalsSummary,
    /// Transfers of fixed size.
    pub transfers: TransferSummary,
    /// Of a flow whose connection was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<LostSummary>,
    /// Of a flow that a proxy splits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<SplitSummary>,
}

/// A connection that one of its ends gave up, and its flow with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LostSummary {
    /// When.
    pub at_s: f64,
    /// Which end, and what it says.
    pub reason: String,
}

/// What a proxy had of a flow that it splits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SplitSummary {
    /// Name of the proxy.
    pub proxy: String,
    /// RTT between server and proxy.
    pub wan_rtt: DistributionSummary,
    /// RTT between proxy and user.
    pub ran_rtt: DistributionSummary,
    /// How long payload waited in the proxy.
    pub delay: DistributionSummary,
    /// The most payload that waited in it.
    pub largest_backlog_bytes: u64,
    /// Connections that were not split.
    pub passed_through: u64,
    /// Connections that were.
    #[serde(default)]
    pub connections: u64,
    /// Data packets that were dropped between the proxy and the user.
    #[serde(default)]
    pub ran_dropped_packets: u64,
    /// Periods at whose end the proxy judged the flow's demand.
    pub periods: u64,
    /// Of these, those at whose end it was slow.
    pub slow_periods: u64,
}

/// Figures of one link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkSummary {
    /// Its name.
    pub name: String,
    /// Bytes that left it.
    pub departed_bytes: u64,
    /// Packets that left it.
    pub departed_packets: u64,
    /// Packets its queue dropped.
    pub dropped_packets: u64,
    /// Packets its loss model lost.
    pub lost_packets: u64,
    /// Packets its queue marked.
    pub marked_packets: u64,
    /// What it could have carried.
    pub capacity_bytes: Option<u64>,
    /// `departed_bytes / capacity_bytes`.
    pub utilisation: Option<f64>,
    /// Time of each packet in it.
    pub queueing_delay: DistributionSummary,
}

/// Figures of a distribution; without samples there are none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DistributionSummary {
    /// Samples.
    pub count: u64,
    /// Mean.
    pub mean_s: Option<f64>,
    /// Smallest.
    pub min_s: Option<f64>,
    /// Median.
    pub p50_s: Option<f64>,
    /// 95th percentile.
    pub p95_s: Option<f64>,
    /// 99th percentile.
    pub p99_s: Option<f64>,
    /// Largest.
    pub max_s: Option<f64>,
}

/// What a flow did from its first packet on, over all its connections, a warm-up included.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TotalsSummary {
    /// Payload sent, what was sent again included.
    pub sent_bytes: u64,
    /// Payload sent at least once.
    pub sent_once_bytes: u64,
    /// Payload acknowledged, in order.
    pub acked_bytes: u64,
    /// Fast recoveries begun.
    pub recoveries: u64,
    /// When the first data left.
    pub first_sent_s: Option<f64>,
    /// When the last data arrived.
    pub last_received_s: Option<f64>,
    /// When the last acknowledgement arrived.
    pub last_acked_s: Option<f64>,
    /// Data packets that arrived.
    pub received_packets: u64,
    /// Their mean time from end to end.
    pub one_way_mean_s: f64,
    /// Acknowledgements that arrived.
    pub acks: u64,
    /// Their mean time from end to end.
    pub feedback_one_way_mean_s: f64,
}

/// Completion of transfers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TransferSummary {
    /// Transfers begun.
    pub begun: u64,
    /// Of these, finished before the end.
    pub completed: u64,
    /// Mean time of the finished ones.
    pub completion_mean_s: Option<f64>,
    /// Longest time of the finished ones.
    pub completion_max_s: Option<f64>,
}

/// Where the bytes went, over the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerSummary {
    /// Offered to the first links.
    pub offered_bytes: u64,
    /// Delivered by the last.
    pub delivered_bytes: u64,
    /// Dropped by queues.
    pub dropped_bytes: u64,
    /// Lost by loss models.
    pub lost_bytes: u64,
    /// Still under way.
    pub in_network_bytes: u64,
}

impl RunSummary {
    /// Of a run; `files` is left empty.
    pub fn of(origin: &Origin, run: &RunResult) -> Self {
        let goodputs: Vec<f64> = run.flows.iter().map(|flow| flow.goodput.as_f64()).collect();
        Self {
            schema: SCHEMA,
            version: origin.version.clone(),
            scenario: origin.scenario.clone(),
            traces: origin.traces.clone(),
            seed: origin.seed,
            interrupted: run.interrupted,
            measured_from_s: run.measured_from.as_secs_f64(),
            end_s: run.end.as_secs_f64(),
            jain_index: stats::jain(&goodputs),
            flows: run.flows.iter().map(FlowSummary::of).collect(),
            links: run.links.iter().map(LinkSummary::of).collect(),
            cells: run.cells.iter().map(CellSummary::of).collect(),
            users: run.users.iter().map(UserSummary::of).collect(),
            rnis: run.feed.as_ref().map(FeedSummary::of),
            peps: run.peps.iter().map(PepSummary::of).collect(),
            ledger: LedgerSummary {
                offered_bytes: run.ledger.offered.get(),
                delivered_bytes: run.ledger.delivered.get(),
                dropped_bytes: run.ledger.dropped.get(),
                lost_bytes: run.ledger.lost.get(),
                in_network_bytes: run.ledger.in_network.get(),
            },
            events: run.events,
            scenario_text: origin.scenario_text.clone(),
            files: Vec::new(),
        }
    }

    /// The run without its series, transfers and distribution functions, which other files hold.
    pub fn to_result(&self) -> RunResult {
        RunResult {
            seed: self.seed,
            measured_from: Time::ZERO + Span::from_secs_f64(self.measured_from_s),
            end: Time::ZERO + Span::from_secs_f64(self.end_s),
            interrupted: self.interrupted,
            flows: self.flows.iter().map(FlowSummary::to_result).collect(),
            links: self.links.iter().map(LinkSummary::to_result).collect(),
            cells: self.cells.iter().map(CellSummary::to_result).collect(),
            users: self.users.iter().map(UserSummary::to_result).collect(),
            feed: self.rnis.map(FeedSummary::to_result),
            peps: self.peps.iter().map(PepSummary::to_result).collect(),
            ledger: Ledger {
                offered: Bytes::new(self.ledger.offered_bytes),
                delivered: Bytes::new(self.ledger.delivered_bytes),
                dropped: Bytes::new(self.ledger.dropped_bytes),
                lost: Bytes::new(self.ledger.lost_bytes),
                in_network: Bytes::new(self.ledger.in_network_bytes),
            },
            events: self.events,
        }
    }
}

impl FlowSummary {
    /// Of a flow.
    pub fn of(flow: &FlowResult) -> Self {
        Self {
            name: flow.name.clone(),
            cc: flow.cc.clone(),
            bottleneck: flow.bottleneck,
            measured_s: flow.measured.as_secs_f64(),
            delivered_bytes: flow.delivered.get(),
            goodput_bit_s: flow.goodput.bits_per_s(),
            bottleneck_bytes: flow.bottleneck_bytes.get(),
            sent_packets: flow.sent_packets,
            retransmitted_packets: flow.retransmitted_packets,
            retransmission_rate: stats::ratio(flow.retransmitted_packets as f64, flow.sent_packets as f64),
            dropped_packets: flow.dropped_packets,
            loss_rate: flow.loss_rate.is_finite().then_some(flow.loss_rate),
            timeouts: flow.timeouts,
            undone: flow.undone,
            marked_packets: flow.marked_packets,
            rtt: DistributionSummary::of(&flow.rtt),
            queueing_delay: DistributionSummary::of(&flow.queueing_delay),
            jitter_ewma_s: flow.jitter_ewma.as_secs_f64(),
            jitter_mean_deviation_s: flow.jitter_mean_deviation.as_secs_f64(),
            totals: TotalsSummary::of(&flow.totals),
            transfers: TransferSummary::of(&flow.transfers),
            lost: (flow.lost.as_ref())
                .map(|lost| LostSummary { at_s: lost.at.as_secs_f64(), reason: lost.reason.clone() }),
            split: flow.split.as_ref().map(SplitSummary::of),
        }
    }

    fn to_result(&self) -> FlowResult {
        FlowResult {
            name: self.name.clone(),
            cc: self.cc.clone(),
            bottleneck: self.bottleneck,
            measured: Span::from_secs_f64(self.measured_s),
            delivered: Bytes::new(self.delivered_bytes),
            goodput: Rate::from_bits_per_s(self.goodput_bit_s),
            bottleneck_bytes: Bytes::new(self.bottleneck_bytes),
            sent_packets: self.sent_packets,
            retransmitted_packets: self.retransmitted_packets,
            dropped_packets: self.dropped_packets,
            loss_rate: self.loss_rate.unwrap_or(f64::NAN),
            timeouts: self.timeouts,
            undone: self.undone,
            marked_packets: self.marked_packets,
            rtt: self.rtt.to_result(),
            queueing_delay: self.queueing_delay.to_result(),
            jitter_ewma: Span::from_secs_f64(self.jitter_ewma_s),
            jitter_mean_deviation: Span::from_secs_f64(self.jitter_mean_deviation_s),
            totals: self.totals.to_result(),
            transfers: Vec::new(),
            lost: self.lost.as_ref().map(|lost| LostConnection {
                at: Time::ZERO + Span::from_secs_f64(lost.at_s),
                reason: lost.reason.clone(),
            }),
            split: self.split.as_ref().map(SplitSummary::to_result),
            series: Series::default(),
        }
    }
}

impl SplitSummary {
    /// Of a flow's.
    pub fn of(split: &SplitResult) -> Self {
        Self {
            proxy: split.proxy.clone(),
            wan_rtt: DistributionSummary::of(&split.wan_rtt),
            ran_rtt: DistributionSummary::of(&split.ran_rtt),
            delay: DistributionSummary::of(&split.delay),
            largest_backlog_bytes: split.largest_backlog.get(),
            passed_through: split.passed_through,
            connections: split.connections,
            ran_dropped_packets: split.ran_dropped_packets,
            periods: split.periods,
            slow_periods: split.slow_periods,
        }
    }

    fn to_result(&self) -> SplitResult {
        SplitResult {
            proxy: self.proxy.clone(),
            wan_rtt: self.wan_rtt.to_result(),
            ran_rtt: self.ran_rtt.to_result(),
            delay: self.delay.to_result(),
            largest_backlog: Bytes::new(self.largest_backlog_bytes),
            passed_through: self.passed_through,
            connections: self.connections,
            ran_dropped_packets: self.ran_dropped_packets,
            periods: self.periods,
            slow_periods: self.slow_periods,
        }
    }
}

impl TotalsSummary {
    /// Of a flow's totals.
    pub fn of(totals: &FlowTotals) -> Self {
        let seconds = |time: Option<Time>| time.map(Time::as_secs_f64);
        Self {
            sent_bytes: totals.sent.get(),
            sent_once_bytes: totals.sent_once.get(),
            acked_bytes: totals.acked.get(),
            recoveries: totals.recoveries,
            first_sent_s: seconds(totals.first_sent),
            last_received_s: seconds(totals.last_received),
            last_acked_s: seconds(totals.last_acked),
            received_packets: totals.received_packets,
            one_way_mean_s: totals.one_way_mean.as_secs_f64(),
            acks: totals.acks,
            feedback_one_way_mean_s: totals.feedback_one_way_mean.as_secs_f64(),
        }
    }

    fn to_result(self) -> FlowTotals {
        let time = |seconds: Option<f64>| seconds.map(|seconds| Time::ZERO + Span::from_secs_f64(seconds));
        FlowTotals {
            sent: Bytes::new(self.sent_bytes),
            sent_once: Bytes::new(self.sent_once_bytes),
            acked: Bytes::new(self.acked_bytes),
            recoveries: self.recoveries,
            first_sent: time(self.first_sent_s),
            last_received: time(self.last_received_s),
            last_acked: time(self.last_acked_s),
            received_packets: self.received_packets,
            one_way_mean: Span::from_secs_f64(self.one_way_mean_s),
            acks: self.acks,
            feedback_one_way_mean: Span::from_secs_f64(self.feedback_one_way_mean_s),
        }
    }
}

impl LinkSummary {
    /// Of a link.
    pub fn of(link: &LinkResult) -> Self {
        Self {
            name: link.name.clone(),
            departed_bytes: link.departed.get(),
            departed_packets: link.departed_packets,
            dropped_packets: link.dropped_packets,
            lost_packets: link.lost_packets,
            marked_packets: link.marked_packets,
            capacity_bytes: link.capacity.map(Bytes::get),
            utilisation: link.utilisation.filter(|share| share.is_finite()),
            queueing_delay: DistributionSummary::of(&link.queueing_delay),
        }
    }

    fn to_result(&self) -> LinkResult {
        LinkResult {
            name: self.name.clone(),
            departed: Bytes::new(self.departed_bytes),
            departed_packets: self.departed_packets,
            dropped_packets: self.dropped_packets,
            lost_packets: self.lost_packets,
            marked_packets: self.marked_packets,
            capacity: self.capacity_bytes.map(Bytes::new),
            utilisation: self.utilisation,
            queueing_delay: self.queueing_delay.to_result(),
            series: Series::default(),
        }
    }
}

impl DistributionSummary {
    /// Of a distribution.
    pub fn of(distribution: &Distribution) -> Self {
        let figure = |span: Span| (distribution.count > 0).then(|| span.as_secs_f64());
        Self {
            count: distribution.count,
            mean_s: figure(distribution.mean),
            min_s: figure(distribution.min),
            p50_s: figure(distribution.p50),
            p95_s: figure(distribution.p95),
            p99_s: figure(distribution.p99),
            max_s: figure(distribution.max),
        }
    }

    fn to_result(self) -> Distribution {
        let span = |figure: Option<f64>| figure.map_or(Span::ZERO, Span::from_secs_f64);
        Distribution {
            count: self.count,
            mean: span(self.mean_s),
            min: span(self.min_s),
            max: span(self.max_s),
            p50: span(self.p50_s),
            p95: span(self.p95_s),
            p99: span(self.p99_s),
            cdf: Vec::new(),
        }
    }
}

impl TransferSummary {
    /// Of a flow's transfers.
    pub fn of(transfers: &[Transfer]) -> Self {
        let times: Vec<f64> =
            transfers.iter().filter_map(|transfer| transfer.completion).map(Span::as_secs_f64).collect();
        Self {
            begun: transfers.len() as u64,
            completed: times.len() as u64,
            completion_mean_s: stats::mean(&times),
            completion_max_s: times.iter().copied().reduce(f64::max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    #[test]
    fn all_but_series_survives_the_text() {
        let mut run = synthetic::run_of(&["cubic", "bbr1"], 3);
        run.links[0].capacity = None;
        run.links[0].utilisation = None;
        run.flows[1].rtt = Distribution::default();
        let origin = Origin::new("drive", "duration = \"60s\"", 3);
        let text = serde_json::to_string_pretty(&RunSummary::of(&origin, &run)).unwrap();
        let found: RunSummary = serde_json::from_str(&text).unwrap();
        for flow in &mut run.flows {
            flow.transfers.clear();
            flow.series = Series::default();
            flow.rtt.cdf.clear();
            flow.queueing_delay.cdf.clear();
        }
        run.links[0].series = Series::default();
        run.links[0].queueing_delay.cdf.clear();
        assert_eq!(found.to_result(), run);
        assert_eq!((found.schema, found.version.as_str()), (1, crate::VERSION));
    }

    #[test]
    fn what_is_missing_is_null() {
        let mut run = synthetic::run("cubic", 1);
        run.flows[0].sent_packets = 0;
        run.flows[0].loss_rate = f64::NAN;
        run.flows[0].rtt = Distribution::default();
        let text = serde_json::to_string(&RunSummary::of(&Origin::new("x", "", 1), &run)).unwrap();
        for expected in
            [r#""loss_rate":null"#, r#""retransmission_rate":null"#, r#""rtt":{"count":0,"mean_s":null"#]
        {
            assert!(text.contains(expected), "{expected}");
        }
    }

    #[test]
    fn unfinished_transfers_have_no_time() {
        let run = synthetic::run("cubic", 1);
        let summary = TransferSummary::of(&run.flows[0].transfers);
        assert_eq!((summary.begun, summary.completed, summary.completion_mean_s), (2, 1, Some(0.812)));
    }
}
