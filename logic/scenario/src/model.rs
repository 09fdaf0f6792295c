//! A scenario after parsing: names resolved to indices, defaults filled in, every value checked.

use ranpace_cc::Algorithm;
use ranpace_link::LinkConfig;
use ranpace_pep::split::Buffers;
use ranpace_phy::Direction;
use ranpace_radio::cell::{CellConfig, UserConfig};
use ranpace_units::{Bytes, Rate, Span, Time};

use crate::rnis::FeedSpec;

/// What is to be played.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Its name; the file's name without `.toml` if it has none of its own.
    pub name: String,
    /// How long it is played; above zero, at most 1000 days.
    pub duration: Span,
    /// Figures are counted from here; below `duration`.
    pub warmup: Span,
    /// Feeds every random choice.
    pub seed: u64,
    /// Interval of the series over time.
    pub sample: Span,
    /// Names of the hosts, in order of appearance in the links, then in the cells, then among the users.
    pub hosts: Vec<String>,
    /// One-way links; at least one, or a cell.
    pub links: Vec<LinkSpec>,
    /// Cells.
    pub cells: Vec<CellSpec>,
    /// Their users; an index here is the number of the user in the radio network.
    pub users: Vec<UserSpec>,
    /// What the edge is told of the users of cells.
    pub rnis: FeedSpec,
    /// What a device is told by its own modem.
    pub modem: FeedSpec,
    /// Which of these two tables are written, with whatever values.
    pub feed_tables: Vec<&'static str>,
    /// Flows; at least one.
    pub flows: Vec<FlowSpec>,
    /// Proxies that split TCP connections.
    pub proxies: Vec<ProxySpec>,
    /// Lightweight PEPs: they only watch.
    pub peps: Vec<PepSpec>,
    /// Middleboxes that all packets pass that cross their hosts.
    pub middleboxes: Vec<MiddleboxSpec>,
    /// What changes during the run, by time; changes of the same instant are in the file's order.
    pub changes: Vec<Change>,
}

impl Scenario {
    /// Indices of the hosts at which a hop begins and ends, users being in the cells in which they begin.
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
    /// What it does to packets.
    pub config: LinkConfig,
    /// What each packet takes of its rate besides its own size: the headers of a tunnel, such as the 36 to 44 bytes of
    /// GTP-U. Zero on a trace, which has its own, and where the rate is unlimited.
    pub overhead: Bytes,
}

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub struct CellSpec {
    /// Its name, unique among the cells.
    pub name: String,
    /// Index of the host of its base station, where the wired links end.
    pub host: usize,
    /// What it is; passes [`CellConfig::check`].
    pub config: CellConfig,
}

/// A user of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct UserSpec {
    /// Its name, unique among the users.
    pub name: String,
    /// Index of its host.
    pub host: usize,
    /// Index of its cell, at the beginning.
    pub cell: usize,
    /// Where it is, and its bearers.
    pub config: UserConfig,
    /// Whether its device sends real-time UDP before everything else.
    pub real_time_first: bool,
}

/// A step on the way of a packet.
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

/// One flow of data from a host to another, and its feedback.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSpec {
    /// Its name, unique among the flows.
    pub name: String,
    /// Index of the host that sends the data.
    pub from: usize,
    /// Index of the host that receives it.
    pub to: usize,
    /// The way of the data; connected, from `from` to `to`.
    pub path: Vec<Hop>,
    /// The way of the acknowledgements; connected, from `to` to `from`. May be empty only for [`Transport::Udp`], which has
    /// no feedback.
    pub back: Vec<Hop>,
    /// Which bearer of a user it takes, there and back; every user on its way has it.
    pub bearer: u8,
    /// When it begins.
    pub start: Time,
    /// When it ends, if before the scenario does.
    pub stop: Option<Time>,
    /// What carries its data.
    pub transport: Transport,
    /// What data there is to carry; fits the transport.
    pub workload: Workload,
}

/// What carries a flow's data.
#[derive(Clone, Debug, PartialEq)]
pub enum Transport {
    /// A TCP connection.
    Tcp {
        /// Its congestion control.
        algorithm: Algorithm,
        /// Its settings.
        config: ranpace_tcp::Config,
        /// `ack_every` as it is written, which holds for whatever control sends (behind a proxy, another one); `None`: as the
        /// control wants it.
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
    /// Datagrams that nobody answers.
    Udp {
        /// Size of every IP packet, headers included.
        packet: Bytes,
        /// The algorithm whose receiver half listens at the far end; what it finds is in the flow's series.
        estimator: Option<Algorithm>,
    },
}

/// What data a flow has to carry.
#[derive(Clone, Debug, PartialEq)]
pub enum Workload {
    /// As much as the transport takes.
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
        /// From the end of one to the start of the next.
        pause: Span,
        /// How many; `None` goes on until the flow stops.
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
    /// Bursts that arrive as a Poisson process and last a Pareto time, each at a constant rate; their sum is offered
    /// (UDP). The mean rate is `active_mean` x `rate`.
    Ppbp {
        /// Rate of one burst on the wire, IP headers included.
        rate: Rate,
        /// Mean length of a burst.
        burst_mean: Span,
        /// Mean number of bursts at any time (dimensionless).
        active_mean: f64,
        /// Hurst parameter (dimensionless), above 0.5 and below 1; the shape of the Pareto law is 3 - 2 x this.
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
    /// What decides about windows.
    pub kind: ProxyKind,
    /// Congestion control of the connections towards users.
    pub ran_cc: Algorithm,
    /// What may wait in it.
    pub buffers: Buffers,
    /// The flows that it splits, and where.
    pub splits: Vec<SplitSpec>,
    /// Flows to users that pass by it, because they are not TCP's.
    pub passing: Vec<PassingSpec>,
}

/// A flow that passes by a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassingSpec {
    /// Index of the flow.
    pub flow: usize,
    /// Hops of its data before the proxy.
    pub forward: usize,
    /// Index of the user to whom they go.
    pub user: usize,
}

/// What decides about a proxy's windows.
#[derive(Clone, Debug, PartialEq)]
pub enum ProxyKind {
    /// Nothing: two TCP connections with a buffer between them, as any host would have them.
    Split,
    /// RAPID, by the radio information of the edge's feed.
    Rapid(Box<ranpace_pep::rapid::Settings>),
}

/// A flow that is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitSpec {
    /// Index of the flow.
    pub flow: usize,
    /// So many hops of its path lead to the proxy; above zero, and fewer than there are.
    pub forward: usize,
    /// The same of its way back.
    pub back: usize,
}

/// A Lightweight PEP.
#[derive(Clone, Debug, PartialEq)]
pub struct PepSpec {
    /// Its name, unique among the PEPs.
    pub name: String,
    /// Index of its host.
    pub host: usize,
    /// What its reports take longer than an acknowledgement would from there.
    pub delay: Span,
    /// Share of its reports that are lost.
    pub loss: f64,
    /// It is there from this instant on.
    pub start: Time,
    /// It is gone from this instant on.
    pub stop: Option<Time>,
    /// How it lies.
    pub lie: PepLie,
    /// `delay`, `loss` and `lie` begin at this instant.
    pub faults_from: Time,
    /// The flows that it watches, and where.
    pub watches: Vec<WatchSpec>,
}

/// A middlebox that decides about packets one by one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MiddleboxSpec {
    /// Its name, unique among the middleboxes.
    pub name: String,
    /// Index of its host.
    pub host: usize,
    /// What it does.
    pub kind: ranpace_pep::middlebox::Kind,
}

/// How a PEP lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PepLie {
    /// It does not.
    None,
    /// It tells that it has seen what it has not.
    All,
    /// It tells that it has seen what was never sent.
    Ahead,
    /// It tells of gaps that are none: every 20th packet.
    Gaps,
    /// It sends every report three times, the copies later.
    Replay,
    /// It sends twenty messages of noise with every report.
    Flood,
    /// Somebody without its key sends in its place.
    Forge,
}

/// A flow that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchSpec {
    /// Index of the flow.
    pub flow: usize,
    /// So many hops of its path lead to the PEP.
    pub forward: usize,
    /// The same of its way back.
    pub back: usize,
}

/// Something that changes during the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// When.
    pub at: Time,
    /// What.
    pub what: ChangeKind,
}

/// What changes.
#[derive(Clone, Debug, PartialEq)]
pub enum ChangeKind {
    /// A link gets this fixed rate, also if it was unlimited or played a trace before.
    LinkRate {
        /// Index of the link.
        link: usize,
        /// From now on; above zero.
        rate: Rate,
    },
    /// A link gets another propagation delay.
    LinkDelay {
        /// Index of the link.
        link: usize,
        /// From now on.
        delay: Span,
    },
    /// A user goes to another cell of the same base station or gateway.
    Handover {
        /// Index of the user.
        user: usize,
        /// Index of the cell that it goes to.
        to: usize,
        /// Whether what waits for it is forwarded; otherwise it is lost.
        forward: bool,
        /// For how long nothing is sent, in either direction.
        interruption: Span,
    },
    /// A flow's application asks for another target delay.
    FlowTarget {
        /// Index of the flow.
        flow: usize,
        /// From now on; above zero.
        target: Span,
    },
}
