//! The JSON summary of a run: every figure that is not a series, with the scenario, the seed and the version.
//!
//! Field names end in their unit. Missing values are `null`. The order of fields and the digits are stable: the same run gives the
//! same bytes on any machine.

use ranpace_sim::{
    CellResult, Distribution, FeedResult, FlowResult, FlowTotals, Ledger, LinkResult, LostConnection,
    PepResult, RunResult, Series, SplitResult, Transfer, UserResult,
};
use ranpace_units::{Bytes, Rate, Span, Time};
use serde::{Deserialize, Serialize};

use crate::stats;

/// Layout of the summary and of the files beside it; a reader refuses any other.
pub const SCHEMA: u32 = 1;

/// The origin of a result. Two results with the same origin are identical, byte by byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Name of the scenario, for people.
    pub scenario: String,
    /// Its whole text, including changes from the command line.
    pub scenario_text: String,
    /// The seed.
    pub seed: u64,
    /// Version of Ranpace.
    pub version: String,
    /// SHA-256 of the traces of its links, in the order of the links: the text only names them.
    pub traces: Vec<String>,
}

impl Origin {
    /// The origin of a run by this version of Ranpace, without traces.
    pub fn new(scenario: impl Into<String>, scenario_text: impl Into<String>, seed: u64) -> Self {
        let version = crate::version::VERSION.to_owned();
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
    /// Whether the run was stopped early; its figures are then valid up to `end_s`.
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
    pub links: Vec<LinkResult>,
    /// Cells.
    pub cells: Vec<CellResult>,
    /// Users of the cells.
    pub users: Vec<UserResult>,
    /// Traffic of radio information between the cells and the edge; omitted if nobody reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rnis: Option<FeedResult>,
    /// Lightweight PEPs; omitted if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peps: Vec<PepResult>,
    /// The ledger of bytes.
    pub ledger: Ledger,
    /// Events of the engine.
    pub events: u64,
    /// The scenario's text.
    pub scenario_text: String,
    /// SHA-256 of the traces of its links, as mahimahi's text, in the order of the links.
    #[serde(default)]
    pub traces: Vec<String>,
    /// The other files of the run: a file that does not match is ignored.
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
    pub rtt: Distribution,
    /// Time of the flow's packets in the bottleneck.
    pub queueing_delay: Distribution,
    /// Jitter J1: EWMA of the difference of successive delays.
    pub jitter_ewma_s: f64,
    /// Jitter J2: mean distance of the delays from their mean.
    pub jitter_mean_deviation_s: f64,
    /// Totals since the flow's first packet.
    pub totals: FlowTotals,
    /// Transfers of fixed size.
    pub transfers: TransferSummary,
    /// For a flow whose connection was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<LostConnection>,
    /// For a flow split by a proxy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<SplitResult>,
}

/// Completion of transfers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TransferSummary {
    /// Transfers begun.
    pub begun: u64,
    /// Transfers of these that finished before the end.
    pub completed: u64,
    /// Mean time of the finished ones.
    pub completion_mean_s: Option<f64>,
    /// Longest time of the finished ones.
    pub completion_max_s: Option<f64>,
}

impl RunSummary {
    /// Summarises a run; `files` is left empty.
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
            links: run.links.iter().map(LinkResult::figures).collect(),
            cells: run.cells.clone(),
            users: run.users.iter().map(UserResult::figures).collect(),
            rnis: run.feed,
            peps: run.peps.clone(),
            ledger: run.ledger,
            events: run.events,
            scenario_text: origin.scenario_text.clone(),
            files: Vec::new(),
        }
    }

    /// The run without its series, transfers and distribution functions, which other files contain.
    pub fn to_result(&self) -> RunResult {
        RunResult {
            seed: self.seed,
            measured_from: Time::ZERO + Span::from_secs_f64(self.measured_from_s),
            end: Time::ZERO + Span::from_secs_f64(self.end_s),
            interrupted: self.interrupted,
            flows: self.flows.iter().map(FlowSummary::to_result).collect(),
            links: self.links.clone(),
            cells: self.cells.clone(),
            users: self.users.clone(),
            feed: self.rnis,
            peps: self.peps.clone(),
            ledger: self.ledger,
            events: self.events,
        }
    }
}

impl FlowSummary {
    /// Summarises a flow.
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
            rtt: flow.rtt.figures(),
            queueing_delay: flow.queueing_delay.figures(),
            jitter_ewma_s: flow.jitter_ewma.as_secs_f64(),
            jitter_mean_deviation_s: flow.jitter_mean_deviation.as_secs_f64(),
            totals: flow.totals,
            transfers: TransferSummary::of(&flow.transfers),
            lost: flow.lost.clone(),
            split: flow.split.as_ref().map(without_functions),
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
            rtt: self.rtt.clone(),
            queueing_delay: self.queueing_delay.clone(),
            jitter_ewma: Span::from_secs_f64(self.jitter_ewma_s),
            jitter_mean_deviation: Span::from_secs_f64(self.jitter_mean_deviation_s),
            totals: self.totals,
            transfers: Vec::new(),
            lost: self.lost.clone(),
            split: self.split.clone(),
            series: Series::default(),
        }
    }
}

/// A proxy's results for a flow, as serialised.
fn without_functions(split: &SplitResult) -> SplitResult {
    let [wan_rtt, ran_rtt, delay] = [&split.wan_rtt, &split.ran_rtt, &split.delay].map(Distribution::figures);
    SplitResult { wan_rtt, ran_rtt, delay, ..split.clone() }
}

impl TransferSummary {
    /// Summarises a flow's transfers.
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
        assert_eq!((found.schema, found.version.as_str()), (1, crate::version::VERSION));
    }

    #[test]
    fn missing_values_are_null() {
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
