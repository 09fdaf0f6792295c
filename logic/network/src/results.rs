//! Results of a run: figures per flow and link, distributions, and series over time.

use ranpace_units::{Bytes, Rate, Span, Time};
use serde::{Deserialize, Serialize};

mod written;

/// Everything one run measured.
#[derive(Clone, Debug, PartialEq)]
pub struct RunResult {
    /// The seed of the run.
    pub seed: u64,
    /// Start of the measured part.
    pub measured_from: Time,
    /// The end of the run; earlier than the scenario's if it was interrupted.
    pub end: Time,
    /// Whether the run was stopped before the scenario's end. Its results are valid up to `end`.
    pub interrupted: bool,
    /// Per flow, in the scenario's order.
    pub flows: Vec<FlowResult>,
    /// Per link, in the scenario's order; then, for each user of a cell that has flows, its downlink (`NAME.down`) and its uplink
    /// (`NAME.up`) as a link each.
    pub links: Vec<LinkResult>,
    /// Per cell, in the scenario's order.
    pub cells: Vec<CellResult>,
    /// Per user of the cells, in the scenario's order.
    pub users: Vec<UserResult>,
    /// Traffic of radio information between the cells and the edge; `None` if nobody reads it there.
    pub feed: Option<FeedResult>,
    /// Per Lightweight PEP, in the scenario's order.
    pub peps: Vec<PepResult>,
    /// The ledger of bytes.
    pub ledger: Ledger,
    /// Events that the engine handled: for speed figures only; no other result depends on it.
    pub events: u64,
}

/// The figures of one flow between [`RunResult::measured_from`] (or its start) and [`RunResult::end`] (or its stop).
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
    /// Data packets retransmitted.
    pub retransmitted_packets: u64,
    /// Data packets dropped on the way (queues and random loss).
    pub dropped_packets: u64,
    /// `dropped_packets / sent_packets`.
    pub loss_rate: f64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Window reductions undone because nothing had been lost.
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
    /// Set if its connection was lost, which ended the flow; its goodput still covers all of `measured`, up to the flow's planned
    /// end.
    pub lost: Option<LostConnection>,
    /// For a flow split by a proxy: both connections.
    pub split: Option<SplitResult>,
    /// Its series over time.
    pub series: Series,
}

/// Counters of a flow's endpoints since the start, over all its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounts {
    /// Payload received in order.
    pub delivered: u64,
    /// Data packets sent, retransmissions included.
    pub sent: u64,
    /// Data packets retransmitted.
    pub retransmitted: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Window reductions undone.
    pub undone: u64,
    /// Payload sent at least once.
    pub sent_bytes: u64,
    /// Payload acknowledged, in order.
    pub acked_bytes: u64,
    /// Fast recoveries begun.
    pub recoveries: u64,
}

/// A connection that one of its endpoints gave up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostConnection {
    /// When.
    #[serde(rename = "at_s", with = "written::time")]
    pub at: Time,
    /// The endpoint that gave up, and its reason.
    pub reason: String,
}

/// Results of a proxy for a flow that it splits. Its distributions have no `cdf`.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct SplitResult {
    /// Name of the proxy.
    pub proxy: String,
    /// RTT between server and proxy, as the server measured it.
    pub wan_rtt: Distribution,
    /// RTT between proxy and user, as the proxy measured it; since the start of the flow.
    pub ran_rtt: Distribution,
    /// Waiting time of payload in the proxy, from its arrival in order until it was sent; since the start of the flow.
    pub delay: Distribution,
    /// The largest backlog of payload.
    #[serde(rename = "largest_backlog_bytes", with = "written::bytes")]
    pub largest_backlog: Bytes,
    /// Connections that were not split, because the proxy's buffer was committed to others.
    pub passed_through: u64,
    /// Connections that were split, since the start.
    #[serde(default)]
    pub connections: u64,
    /// Data packets that were dropped between the proxy and the user.
    #[serde(default)]
    pub ran_dropped_packets: u64,
    /// Periods at whose end the proxy judged the flow's demand.
    pub periods: u64,
    /// Periods at whose end it was slow.
    pub slow_periods: u64,
}

/// Counters of a Lightweight PEP since the start, and of its reports at the server.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PepResult {
    /// Its name.
    pub name: String,
    /// Packets that it counted.
    pub packets: u64,
    /// Flows whose counting began: successive connections count separately, and so do flows that were forgotten and came again.
    pub flows: u64,
    /// Flows that it forgot because there were too many, or because they were silent for 30 s.
    pub evicted: u64,
    /// See `evicted`.
    pub aged: u64,
    /// Reports that it sent; their bytes include the headers of IPv4 and UDP.
    pub reports: u64,
    /// See `reports`.
    #[serde(with = "written::bytes")]
    pub report_bytes: Bytes,
    /// Messages accepted by the server: genuine, new, about one of its flows.
    pub verified: u64,
    /// Messages refused by the server.
    pub refused: u64,
    /// Accepted reports that turned out to be impossible.
    pub impossible: u64,
    /// Times that the server ignored the PEP for a minute because of those.
    pub distrusted: u64,
    /// Times that the server requested a new epoch of a flow.
    pub resyncs: u64,
}

/// Totals of a flow since its first packet, over all its connections, including the warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FlowTotals {
    /// Payload sent, including retransmissions.
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
    /// Data packets that arrived, with their mean end-to-end delay.
    pub received_packets: u64,
    /// See `received_packets`.
    #[serde(rename = "one_way_mean_s", with = "written::span")]
    pub one_way_mean: Span,
    /// Acknowledgements that arrived, with their mean end-to-end delay.
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
    /// Time until the last byte was at the receiver; `None` if it was still in flight at the end.
    pub completion: Option<Span>,
    /// Time until the sender learned from a Lightweight PEP (or the receiver) that the last byte had passed there; `None` without a
    /// PEP.
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
    /// Its capacity in bytes; `None` if it is unlimited.
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
    /// A copy without the series and distribution function.
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
    /// Slots in which some user was awake; the others cost nothing.
    pub played_slots: u64,
    /// PRBs of its band.
    pub prbs: u16,
    /// Mean share of them used downlink, over the slots that were played.
    pub downlink_prb_share: f64,
    /// The same uplink.
    pub uplink_prb_share: f64,
}

/// Results of a user of a cell in the measured part. After a handover the figures are those of the last cell.
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
    /// Why nothing can be sent to or by it at the end; `None` if something can.
    pub out_of_service: Option<String>,
    /// Its series over time; empty for users without flows.
    #[serde(skip)]
    pub series: Series,
}

impl UserResult {
    /// A copy without the series.
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
    /// Transport blocks retransmitted by HARQ.
    pub retransmissions: u64,
    /// Transport blocks that HARQ gave up.
    pub lost_blocks: u64,
    /// PDUs, or segments of them, retransmitted by RLC.
    pub rlc_sent_again: u64,
    /// Times that a bearer failed because its RLC reached its limit of retransmissions.
    pub bearer_failures: u64,
    /// Rate that its channel at the end would carry if it were alone in the cell.
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
    /// A copy without the distribution function.
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
    /// Values; NaN if there is none.
    pub values: Vec<f64>,
}

impl Series {
    /// The values of a column, if there is one of that name.
    pub fn get(&self, name: &str) -> Option<&[f64]> {
        self.columns.iter().find(|column| column.name == name).map(|column| column.values.as_slice())
    }
}

/// The recent past of a link: a summary of some rows of its series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Bytes in its queue at the end.
    pub queued: Bytes,
    /// Its capacity; `None` if it is unlimited.
    pub capacity: Option<Rate>,
    /// Bytes that left it.
    pub departed: Rate,
    /// Packets that it dropped or lost.
    pub dropped_packets: u64,
    /// Mean time of a packet in it; `None` if none left.
    pub delay: Option<Span>,
}

/// The account of all bytes on the wire of the whole run: `offered = delivered + dropped + in_network`.
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
    /// Returns whether every byte is accounted for.
    pub fn balances(&self) -> bool {
        self.offered == self.delivered + self.dropped + self.lost + self.in_network
    }
}
