//! A scenario after parsing: names resolved to indices, defaults filled in, every value checked.

use ranpace_cc::Algorithm;
use ranpace_link::LinkConfig;
use ranpace_pep::split::Buffers;
use ranpace_phy::Direction;
use ranpace_radio::cell::{CellConfig, UserConfig};
use ranpace_units::{Bytes, Rate, Span, Time};

use crate::rnis::{Content, FeedSpec};

/// A scenario to be played.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Its name; by default the file's name without `.toml`.
    pub name: String,
    /// Duration of the run; above zero, at most 1000 days.
    pub duration: Span,
    /// Start of measurement; below `duration`.
    pub warmup: Span,
    /// Seed of all random choices.
    pub seed: u64,
    /// Sampling interval of time series.
    pub sample: Span,
    /// Names of the hosts, in order of appearance in the links, then in the cells, then among the users.
    pub hosts: Vec<String>,
    /// One-way links; at least one, or a cell.
    pub links: Vec<LinkSpec>,
    /// Cells.
    pub cells: Vec<CellSpec>,
    /// Their users; the index is the number of the user in the radio network.
    pub users: Vec<UserSpec>,
    /// The feed of radio information on users to the edge.
    pub rnis: FeedSpec,
    /// The feed of radio information to a device from its own modem.
    pub modem: FeedSpec,
    /// Those of these two tables that are written, whatever their values.
    pub feed_tables: Vec<&'static str>,
    /// Flows; at least one.
    pub flows: Vec<FlowSpec>,
    /// Proxies that split TCP connections.
    pub proxies: Vec<ProxySpec>,
    /// Lightweight PEPs, which only observe.
    pub peps: Vec<PepSpec>,
    /// Header rewriters.
    pub rewriters: Vec<RewriterSpec>,
    /// Middleboxes, which handle all packets that cross their hosts.
    pub middleboxes: Vec<MiddleboxSpec>,
    /// Changes during the run, by time; changes at the same instant keep the file's order.
    pub changes: Vec<Change>,
}

impl Scenario {
    /// Indices of the hosts at which a hop begins and ends, with users in their initial cells.
    pub fn ends(&self, hop: Hop) -> (usize, usize) {
        match hop {
            Hop::Link(link) => {
                let link = &self.links[link as usize];
                (link.from, link.to)
            }
            Hop::Radio { user, direction } => {
                let user = &self.users[user as usize];
                let base = self.cells[user.cell].host;
                if direction == Direction::Downlink { (base, user.host) } else { (user.host, base) }
            }
        }
    }
}

/// A one-way link between two hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSpec {
    /// Its name, unique among the links.
    pub name: String,
    /// Index of the host at its beginning.
    pub from: usize,
    /// Index of the host at its end.
    pub to: usize,
    /// Its configuration.
    pub config: LinkConfig,
    /// Bytes of the rate that each packet takes in addition to its size: the headers of a tunnel, such as the 36 to 44 bytes of
    /// GTP-U. Zero for a trace, which has its own setting, and for an unlimited rate.
    pub overhead: Bytes,
}

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub struct CellSpec {
    /// Its name, unique among the cells.
    pub name: String,
    /// Index of the host of its base station, where the wired links end.
    pub host: usize,
    /// Its configuration, which passes [`CellConfig::check`].
    pub config: CellConfig,
}

/// A user of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct UserSpec {
    /// Its name, unique among the users.
    pub name: String,
    /// Index of its host.
    pub host: usize,
    /// Index of its initial cell.
    pub cell: usize,
    /// Its place and bearers.
    pub config: UserConfig,
    /// Whether its device gives real-time UDP priority.
    pub real_time_first: bool,
}

/// A hop on the path of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hop {
    /// Over a link.
    Link(u32),
    /// Through the air, between a user and its cell.
    Radio {
        /// Index of the user.
        user: u32,
        /// To the user (downlink) or from it.
        direction: Direction,
    },
}

impl Hop {
    /// Index of the link, if it is one.
    pub const fn link(self) -> Option<usize> {
        match self {
            Self::Link(link) => Some(link as usize),
            Self::Radio { .. } => None,
        }
    }
    /// Index of the user whose radio it crosses, if it does.
    pub const fn user(self) -> Option<usize> {
        match self {
            Self::Link(_) => None,
            Self::Radio { user, .. } => Some(user as usize),
        }
    }
}

/// A flow of data from one host to another, with its feedback.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSpec {
    /// Its name, unique among the flows.
    pub name: String,
    /// Index of the host that sends the data.
    pub from: usize,
    /// Index of the host that receives it.
    pub to: usize,
    /// Path of the data; connected, from `from` to `to`.
    pub path: Vec<Hop>,
    /// Path of the acknowledgements; connected, from `to` to `from`. Empty only for [`Transport::Udp`], which has
    /// no feedback.
    pub back: Vec<Hop>,
    /// The bearer of users that it takes in both directions; every user on its path has it.
    pub bearer: u8,
    /// Start.
    pub start: Time,
    /// End, if before that of the scenario.
    pub stop: Option<Time>,
    /// Its transport.
    pub transport: Transport,
    /// Its workload, which fits the transport.
    pub workload: Workload,
}

/// The transport of a flow.
#[derive(Clone, Debug, PartialEq)]
pub enum Transport {
    /// A TCP connection.
    Tcp {
        /// Its congestion control.
        algorithm: Algorithm,
        /// Its settings.
        config: ranpace_tcp::Config,
        /// `ack_every` if it is written; it then applies whatever control sends (behind a proxy, another one). `None`: the control
        /// decides.
        ack_every: Option<u32>,
    },
    /// A QUIC connection.
    Quic {
        /// Its congestion control.
        algorithm: Algorithm,
        /// Its settings.
        config: ranpace_quic::Config,
    },
    /// Datagrams with feedback for each packet (Sprout, Verus).
    Datagram {
        /// Its congestion control.
        algorithm: Algorithm,
        /// Largest IP packet.
        mtu: Bytes,
    },
    /// Datagrams without feedback.
    Udp {
        /// Size of every IP packet, headers included.
        packet: Bytes,
        /// The algorithm whose receiver half runs at the far end; its estimates are in the flow's series.
        estimator: Option<Algorithm>,
    },
}

/// The data that a flow carries.
#[derive(Clone, Debug, PartialEq)]
pub enum Workload {
    /// As much as the transport accepts.
    Bulk,
    /// One transfer (TCP).
    Fixed {
        /// Payload.
        size: Bytes,
    },
    /// Short transfers one after another, each on a new connection (TCP).
    Repeat {
        /// Payload of each.
        size: Bytes,
        /// Time from the end of one to the start of the next.
        pause: Span,
        /// Number of transfers; `None` continues until the flow stops.
        count: Option<u32>,
    },
    /// Application-limited: `rate` x `interval` bytes are written every `interval` (TCP).
    Paced {
        /// Mean rate of payload.
        rate: Rate,
        /// Time between two writes.
        interval: Span,
    },
    /// A burst of `page` bytes every `interval` on one connection (TCP).
    Web {
        /// Payload of a burst.
        page: Bytes,
        /// Time between the starts of two bursts.
        interval: Span,
    },
    /// Constant bit rate (UDP).
    Cbr {
        /// Rate on the wire, IP headers included.
        rate: Rate,
    },
    /// The sum of bursts that arrive as a Poisson process and last for Pareto-distributed times, each at a constant rate
    /// (UDP). The mean rate is `active_mean` x `rate`.
    Ppbp {
        /// Rate of one burst on the wire, IP headers included.
        rate: Rate,
        /// Mean length of a burst.
        burst_mean: Span,
        /// Mean number of bursts at any time (dimensionless).
        active_mean: f64,
        /// Hurst parameter (dimensionless), above 0.5 and below 1; the shape of the Pareto distribution is 3 - 2 x this.
        hurst: f64,
    },
}

/// A middlebox that splits the TCP connections that cross its host.
#[derive(Clone, Debug, PartialEq)]
pub struct ProxySpec {
    /// Its name, unique among the proxies.
    pub name: String,
    /// Index of its host.
    pub host: usize,
    /// The rule by which it sets windows.
    pub kind: ProxyKind,
    /// Congestion control of the connections towards users.
    pub ran_cc: Algorithm,
    /// Limits of its buffers.
    pub buffers: Buffers,
    /// The flows that it splits, and where.
    pub splits: Vec<SplitSpec>,
    /// Flows to users that it does not split, since they are not TCP.
    pub passing: Vec<PassingSpec>,
}

/// A flow that crosses a proxy without being split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassingSpec {
    /// Index of the flow.
    pub flow: usize,
    /// Number of hops of its data before the proxy.
    pub forward: usize,
    /// Index of the user that receives it.
    pub user: usize,
}

/// The rule by which a proxy sets windows.
#[derive(Clone, Debug, PartialEq)]
pub enum ProxyKind {
    /// Not at all: two ordinary TCP connections with a buffer between them.
    Split,
    /// RAPID, using the radio information of the edge's feed.
    Rapid(Box<ranpace_pep::rapid::Settings>),
}

/// A flow that is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitSpec {
    /// Index of the flow.
    pub flow: usize,
    /// Number of hops of its path before the proxy; above zero, and less than their total.
    pub forward: usize,
    /// Likewise for its path back.
    pub back: usize,
}

/// A Lightweight PEP.
#[derive(Clone, Debug, PartialEq)]
pub struct PepSpec {
    /// Its name, unique among the PEPs.
    pub name: String,
    /// Index of its host.
    pub host: usize,
    /// Extra delay of its reports compared with an acknowledgement from there.
    pub delay: Span,
    /// Share of its reports that are lost.
    pub loss: f64,
    /// It appears at this instant.
    pub start: Time,
    /// It disappears at this instant.
    pub stop: Option<Time>,
    /// Its misbehaviour.
    pub lie: PepLie,
    /// `delay`, `loss` and `lie` start at this instant.
    pub faults_from: Time,
    /// The flows that it observes, and where.
    pub watches: Vec<WatchSpec>,
}

/// A middlebox that changes fields of TCP headers.
#[derive(Clone, Debug, PartialEq)]
pub struct RewriterSpec {
    /// Its name, unique among the rewriters.
    pub name: String,
    /// Index of its host.
    pub host: usize,
    /// What it changes.
    pub kind: ranpace_pep::rewriter::Kind,
    /// The flows whose segments it changes, and where.
    pub watches: Vec<WatchSpec>,
}

/// A middlebox that decides on packets one by one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MiddleboxSpec {
    /// Its name, unique among the middleboxes.
    pub name: String,
    /// Index of its host.
    pub host: usize,
    /// Its effect on packets.
    pub kind: ranpace_pep::middlebox::Kind,
}

/// Misbehaviour of a PEP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PepLie {
    /// None: it is honest.
    None,
    /// It reports packets as seen that it has not seen.
    All,
    /// It reports packets as seen that were never sent.
    Ahead,
    /// It reports gaps that do not exist: every 20th packet.
    Gaps,
    /// It sends every report three times, the copies later.
    Replay,
    /// It sends twenty messages of noise with every report.
    Flood,
    /// Reports come from an attacker without its key.
    Forge,
}

/// A flow that passes a PEP or a rewriter, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchSpec {
    /// Index of the flow.
    pub flow: usize,
    /// Number of hops of its path before it.
    pub forward: usize,
    /// Likewise for its path back.
    pub back: usize,
}

/// A change during the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Time of the change.
    pub at: Time,
    /// Kind of the change.
    pub what: ChangeKind,
}

/// Kinds of changes.
#[derive(Clone, Debug, PartialEq)]
pub enum ChangeKind {
    /// A link gets this fixed rate, even if it was unlimited or played a trace before.
    LinkRate {
        /// Index of the link.
        link: usize,
        /// The new rate; above zero.
        rate: Rate,
    },
    /// A link gets another propagation delay.
    LinkDelay {
        /// Index of the link.
        link: usize,
        /// The new delay.
        delay: Span,
    },
    /// A user moves to another cell of the same base station or gateway.
    Handover {
        /// Index of the user.
        user: usize,
        /// Index of its new cell.
        to: usize,
        /// Whether its queued packets are forwarded; otherwise they are lost.
        forward: bool,
        /// The time in which nothing is sent in either direction.
        interruption: Span,
    },
    /// A flow's application asks for another target delay.
    FlowTarget {
        /// Index of the flow.
        flow: usize,
        /// The new target; above zero.
        target: Span,
    },
    /// A feed of radio information has other content, whatever its own times of stopping and resuming say.
    FeedContent {
        /// The feed.
        feed: FeedKind,
        /// What its reports contain; `None` if there are none.
        content: Option<Content>,
    },
}

/// A feed of radio information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedKind {
    /// From the cells to the edge, `[rnis]`.
    Edge,
    /// From devices' own modems, `[modem]`.
    Modem,
}
