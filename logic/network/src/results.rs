//! Results of a run: figures per flow and link, distributions, and series over time.

use ranpace_units::{Bytes, Rate, Span, Time};
use serde::{Deserialize, Serialize};

mod written;

/// Everything one run measured.
#[derive(Clone, Debug, PartialEq)]
pub struct RunResult {
    /// The seed it was played with.
    pub seed: u64,
    /// From here on figures were counted.
    pub measured_from: Time,
    /// The end of the run; earlier than the scenario's if it was interrupted.
    pub end: Time,
    /// Whether the run was stopped before the scenario's end. What it has is valid up to `end`.
    pub interrupted: bool,
    /// Per flow, in the scenario's order.
    pub flows: Vec<FlowResult>,
    /// Per link, in the scenario's order; behind them, for each user of a cell that has flows, its downlink (`NAME.down`) and
    /// its uplink (`NAME.up`) as a link each.
    pub links: Vec<LinkResult>,
    /// Per cell, in the scenario's order.
    pub cells: Vec<CellResult>,
    /// Per user of the cells, in the scenario's order.
    pub users: Vec<UserResult>,
    /// What radio information took on the wire between the cells and the edge; `None` where nobody reads it there.
    pub feed: Option<FeedResult>,
    /// Per Lightweight PEP, in the scenario's order.
    pub peps: Vec<PepResult>,
    /// The ledger of bytes.
    pub ledger: Ledger,
    /// Events that the engine handled: for speed figures, not part of any other result.
    pub events: u64,
}

/// What one flow achieved between [`RunResult::measured_from`] (or its start) and [`RunResult::end`] (or its stop).
#[derive(Clone, Debug, PartialEq)]
pub struct FlowResult {
    /// Its name in the scenario.
    pub name: String,
    /// Its algorithm as written; "udp" for a plain source.
    pub cc: String,
    /// Index of the link taken as its bottleneck: the slowest on its data path.
    pub bottleneck: Option<usize>,
    /// Length of the measured part.
    pub measured: Span,
    /// Payload handed to the receiving application in order, in the measured part (datagrams: received).
    pub delivered: Bytes,
    /// `delivered` over `measured`.
    pub goodput: Rate,
    /// Bytes of this flow that left its bottleneck, headers included, in the measured part.
    pub bottleneck_bytes: Bytes,
    /// Data packets sent, retransmissions included.
    pub sent_packets: u64,
    /// Data packets that were sent again.
    pub retransmitted_packets: u64,
    /// Data packets dropped on the way (queues and random loss).
    pub dropped_packets: u64,
    /// `dropped_packets / sent_packets`.
    pub loss_rate: f64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Reductions of the window taken back because nothing had been lost.
    pub undone: u64,
    /// Packets marked by ECN.
    pub marked_packets: u64,
    /// RTT samples of the sender.
    pub rtt: Distribution,
    /// Time of each data packet in the bottleneck, from its arrival at the queue until its last byte has left (as
    /// mahimahi logs it).
    pub queueing_delay: Distribution,
    /// Jitter J1: mean of the EWMA (weight 1/16) of the difference between the delays of successive packets.
    pub jitter_ewma: Span,
    /// Jitter J2: mean distance of the delays from their mean.
    pub jitter_mean_deviation: Span,
    /// Totals from its first packet on.
    pub totals: FlowTotals,
    /// Transfers of fixed size that were begun.
    pub transfers: Vec<Transfer>,
    /// Its connection was lost, and the flow ended with it; its goodput is still over `measured`, to where the flow should have gone on.
    pub lost: Option<LostConnection>,
    /// Of a flow that a proxy splits: both connections.
    pub split: Option<SplitResult>,
    /// Its series over time.
    pub series: Series,
}

/// Counters of a flow's endpoints from the start on, over all its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounts {
    /// Payload that the receiver has, in order.
    pub delivered: u64,
    /// Data packets sent, retransmissions included.
    pub sent: u64,
    /// Data packets sent again.
    pub retransmitted: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Reductions of the window taken back.
    pub undone: u64,
    /// Payload sent at least once.
    pub sent_bytes: u64,
    /// Payload acknowledged, in order.
    pub acked_bytes: u64,
    /// Fast recoveries begun.
    pub recoveries: u64,
}

/// A connection that one of its ends gave up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostConnection {
    /// When.
    #[serde(rename = "at_s", with = "written::time")]
    pub at: Time,
    /// Which end, and what it says.
    pub reason: String,
}

/// Results of a proxy for a flow that it splits. Its distributions have no `cdf`.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct SplitResult {
    /// Name of the proxy.
    pub proxy: String,
    /// RTT between server and proxy, as the server measured it.
    pub wan_rtt: Distribution,
    /// RTT between proxy and user, as the proxy measured it; from the start of the flow on.
    pub ran_rtt: Distribution,
    /// How long payload waited in the proxy, from its arrival in order until it was sent; from the start of the flow on.
    pub delay: Distribution,
    /// The most payload that waited in it.
    #[serde(rename = "largest_backlog_bytes", with = "written::bytes")]
    pub largest_backlog: Bytes,
    /// Connections that were not split, because the proxy's buffer was promised to others.
    pub passed_through: u64,
    /// Connections that were split, from the start on.
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

/// Counters of a Lightweight PEP from the start on, and of its reports at the server.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PepResult {
    /// Its name.
    pub name: String,
    /// Packets that it counted.
    pub packets: u64,
    /// Flows whose counting began: connections one after another, and what was forgotten and came again.
    pub flows: u64,
    /// Flows that it forgot because there were too many, or because they were silent for 30 s.
    pub evicted: u64,
    /// See `evicted`.
    pub aged: u64,
    /// Reports that it sent, and their bytes with the headers of IPv4 and UDP.
    pub reports: u64,
    /// See `reports`.
    #[serde(with = "written::bytes")]
    pub report_bytes: Bytes,
    /// Messages that the server let through: genuine, new, of a flow of its own.
    pub verified: u64,
    /// Messages that it refused.
    pub refused: u64,
    /// Reports that it let through, and that told what cannot be.
    pub impossible: u64,
    /// Times that it did not listen for a minute because of those.
    pub distrusted: u64,
    /// Times that it asked for the counting of a flow to begin anew.
    pub resyncs: u64,
}

/// Totals of a flow from its first packet on, over all its connections, the warm-up included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FlowTotals {
    /// Payload sent, what was sent again included.
    #[serde(rename = "sent_bytes", with = "written::bytes")]
    pub sent: Bytes,
    /// Payload sent at least once.
    #[serde(rename = "sent_once_bytes", with = "written::bytes")]
    pub sent_once: Bytes,
    /// Payload acknowledged, in order.
    #[serde(rename = "acked_bytes", with = "written::bytes")]
    pub acked: Bytes,
    /// Fast recoveries begun.
    pub recoveries: u64,
    /// When the first data left; `None` if none did.
    #[serde(rename = "first_sent_s", with = "written::time_if_any")]
    pub first_sent: Option<Time>,
    /// When the last data arrived.
    #[serde(rename = "last_received_s", with = "written::time_if_any")]
    pub last_received: Option<Time>,
    /// When the last acknowledgement arrived.
    #[serde(rename = "last_acked_s", with = "written::time_if_any")]
    pub last_acked: Option<Time>,
    /// Data packets that arrived, and their mean time from end to end.
    pub received_packets: u64,
    /// See `received_packets`.
    #[serde(rename = "one_way_mean_s", with = "written::span")]
    pub one_way_mean: Span,
    /// Acknowledgements that arrived, and their mean time from end to end.
    pub acks: u64,
    /// See `acks`.
    #[serde(rename = "feedback_one_way_mean_s", with = "written::span")]
    pub feedback_one_way_mean: Span,
}

/// One transfer of a fixed size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// When the connection (or the burst) began.
    pub start: Time,
    /// Payload.
    pub size: Bytes,
    /// Until the last byte was at the receiver; `None` if it was still under way at the end.
    pub completion: Option<Span>,
    /// Until its sender had heard from a Lightweight PEP (or the receiver) that the last byte came by there; `None` without one.
    pub handed_over: Option<Span>,
}

/// Results of a link in the measured part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkResult {
    /// Its name in the scenario.
    pub name: String,
    /// Bytes that left it.
    #[serde(rename = "departed_bytes", with = "written::bytes")]
    pub departed: Bytes,
    /// Packets that left it.
    pub departed_packets: u64,
    /// Packets dropped by its queue (overflow or AQM).
    pub dropped_packets: u64,
    /// Packets lost by its loss model.
    pub lost_packets: u64,
    /// Packets marked by its queue.
    pub marked_packets: u64,
    /// Its capacity in bytes; `None` where it is unlimited.
    #[serde(rename = "capacity_bytes", with = "written::bytes_if_any")]
    pub capacity: Option<Bytes>,
    /// `departed / capacity`.
    pub utilisation: Option<f64>,
    /// Time of each packet in it, up to the departure of its last byte.
    pub queueing_delay: Distribution,
    /// Its series over time.
    #[serde(skip)]
    pub series: Series,
}

impl LinkResult {
    /// The same without its series and distribution function.
    pub fn figures(&self) -> Self {
        Self {
            name: self.name.clone(),
            queueing_delay: self.queueing_delay.figures(),
            series: Series::default(),
            ..*self
        }
    }
}

/// Results of a cell in the measured part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// Its name in the scenario.
    pub name: String,
    /// Users that it served at the beginning.
    pub users: usize,
    /// Slots in which somebody was awake; the others cost nothing.
    pub played_slots: u64,
    /// PRBs of its band.
    pub prbs: u16,
    /// Mean share of them that blocks took downlink, over the slots that were played.
    pub downlink_prb_share: f64,
    /// The same uplink.
    pub uplink_prb_share: f64,
}

/// Results of a user of a cell in the measured part. After a handover figures are those of the last cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UserResult {
    /// Its name in the scenario.
    pub name: String,
    /// The cell that serves it at the end; `None` if none does.
    pub cell: Option<String>,
    /// From the base station.
    pub downlink: RadioLinkResult,
    /// To the base station.
    pub uplink: RadioLinkResult,
    /// Handovers that were completed.
    pub handovers: u32,
    /// Why nothing can be sent to it or by it at the end; `None` if something can.
    pub out_of_service: Option<String>,
    /// Its series over time; empty for users without flows.
    #[serde(skip)]
    pub series: Series,
}

impl UserResult {
    /// The same without its series.
    pub fn figures(&self) -> Self {
        Self {
            name: self.name.clone(),
            cell: self.cell.clone(),
            out_of_service: self.out_of_service.clone(),
            series: Series::default(),
            ..*self
        }
    }
}

/// One direction of a user.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RadioLinkResult {
    /// Size of all transport blocks sent for the first time, padding included.
    #[serde(rename = "scheduled_bytes", with = "written::bytes")]
    pub scheduled: Bytes,
    /// Transport blocks sent for the first time.
    pub blocks: u64,
    /// Transport blocks sent again by HARQ.
    pub retransmissions: u64,
    /// Transport blocks that HARQ gave up.
    pub lost_blocks: u64,
    /// PDUs, or parts of them, that RLC sent again.
    pub rlc_sent_again: u64,
    /// Times that a bearer failed, its RLC having sent a PDU as often as it may.
    pub bearer_failures: u64,
    /// What its channel at the end would carry if it were alone in the cell.
    #[serde(rename = "rate_alone_bit_s", with = "written::rate")]
    pub rate_alone: Rate,
}

/// Counters of the edge's feed of radio information in the measured part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FeedResult {
    /// Bytes on the wire, headers of UDP and IP included.
    #[serde(rename = "feed_bytes", with = "written::bytes")]
    pub bytes: Bytes,
    /// `bytes` over the measured part.
    #[serde(rename = "feed_bit_s", with = "written::rate")]
    pub rate: Rate,
    /// Datagrams; of text, messages.
    pub datagrams: u64,
    /// Reports of a cell.
    pub reports: u64,
    /// Records of a user in them.
    pub records: u64,
}

/// Distribution of a time.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Distribution {
    /// Number of samples; all other figures are zero if there are none.
    pub count: u64,
    /// Mean (exact).
    pub mean: Span,
    /// Smallest (exact).
    pub min: Span,
    /// Largest (exact).
    pub max: Span,
    /// Median, within 0.1 %.
    pub p50: Span,
    /// 95th percentile, within 0.1 %.
    pub p95: Span,
    /// 99th percentile, within 0.1 %.
    pub p99: Span,
    /// Points of the distribution function: value, share of samples at or below it; at most 200, increasing.
    pub cdf: Vec<(Span, f64)>,
}

impl Distribution {
    /// The same without its function.
    pub fn figures(&self) -> Self {
        Self { cdf: Vec::new(), ..*self }
    }
}

/// Columns of equal length; the first is `time_s`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Series {
    /// The columns in order.
    pub columns: Vec<Column>,
}

/// One column of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Name with its unit as a suffix, such as `cwnd_bytes`.
    pub name: String,
    /// Values; NaN where there is none.
    pub values: Vec<f64>,
}

impl Series {
    /// The values of a column, if there is one of that name.
    pub fn get(&self, name: &str) -> Option<&[f64]> {
        self.columns.iter().find(|column| column.name == name).map(|column| column.values.as_slice())
    }
}

/// The recent past of a link: some rows of its series together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Bytes in its queue at the end.
    pub queued: Bytes,
    /// Its capacity; `None` where it is unlimited.
    pub capacity: Option<Rate>,
    /// Bytes that left it.
    pub departed: Rate,
    /// Packets that it dropped or lost.
    pub dropped_packets: u64,
    /// Mean time of a packet in it; `None` if none left.
    pub delay: Option<Span>,
}

/// Where the bytes on the wire went, over the whole run: `offered = delivered + dropped + in_network`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Ledger {
    /// Handed to the first link by an endpoint.
    #[serde(rename = "offered_bytes", with = "written::bytes")]
    pub offered: Bytes,
    /// Handed to an endpoint by its last link.
    #[serde(rename = "delivered_bytes", with = "written::bytes")]
    pub delivered: Bytes,
    /// Dropped by queues.
    #[serde(rename = "dropped_bytes", with = "written::bytes")]
    pub dropped: Bytes,
    /// Lost by loss models.
    #[serde(rename = "lost_bytes", with = "written::bytes")]
    pub lost: Bytes,
    /// Waiting in a queue, being served or propagating when the run ended.
    #[serde(rename = "in_network_bytes", with = "written::bytes")]
    pub in_network: Bytes,
}

impl Ledger {
    /// Whether every byte is accounted for.
    pub fn balances(&self) -> bool {
        self.offered == self.delivered + self.dropped + self.lost + self.in_network
    }
}
