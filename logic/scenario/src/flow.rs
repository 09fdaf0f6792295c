//! `[[flow]]`: one flow, or `count` of them.

pub(crate) mod keys;

use std::collections::HashMap;
use std::ops::Range;

use ranpace_link::{Limit, QueueConfig, Service};
use ranpace_phy::Direction;
use ranpace_units::{Bytes, Span, Time};

use self::keys::*;
use crate::algorithm::read_algorithm;
use crate::key::{Group, Kind as _};
use crate::model::{FlowSpec, Hop, Transport, Workload};
use crate::network::{Network, unknown};
use crate::reader::{Field, Section};
use crate::{quic, tcp, workload};

/// The keys of `[[flow]]`, including settings that may be written flat in it.
pub(crate) const GROUPS: &[Group] = &[KEYS, tcp::KEYS, quic::KEYS];

/// The flows of a scenario.
#[derive(Default)]
pub(crate) struct Flows {
    pub all: Vec<FlowSpec>,
    /// Range in `all` for each name, of a flow or of an entry.
    by_name: HashMap<String, Range<usize>>,
    /// A flow is missing because its entry could not be read.
    pub incomplete: bool,
}

impl Flows {
    /// Reads all `[[flow]]`.
    pub fn read(root: &mut Section<'_>, network: &Network, duration: Option<Span>) -> Self {
        let mut flows = Self::default();
        let Some(field) = root.field("flow") else {
            root.error("no [[flow]]: a scenario needs at least one");
            flows.incomplete = true;
            return flows;
        };
        if field.is_empty_list() {
            field.error("a scenario needs at least one flow");
        }
        for (index, section) in field.tables().into_iter().enumerate() {
            flows.read_entry(section.of(GROUPS), index + 1, network, duration);
        }
        flows
    }

    /// The flows that a field names: one, or all of an entry with `count`.
    pub fn named(&self, field: &Field<'_>) -> Option<Range<usize>> {
        let name = field.name()?;
        let range = self.by_name.get(name).cloned();
        if range.is_none() && !self.incomplete {
            field.error(unknown("flow", name, self.all.iter().map(|flow| flow.name.as_str())));
        }
        range
    }

    fn read_entry(
        &mut self,
        mut section: Section<'_>,
        number: usize,
        network: &Network,
        duration: Option<Span>,
    ) {
        let name_field = section.find(&NAME);
        let name =
            name_field.as_ref().and_then(Field::name).map_or_else(|| format!("flow{number}"), str::to_owned);
        let name_at = name_field.map_or(section.at, |field| field.at);
        let report = section.report;
        let count: Option<usize> = section.get(&COUNT);
        let is_replicated = section.has(COUNT.name);
        let transport = read_transport(&mut section);
        let ways = read_ways(&mut section, network, transport.as_ref(), count);
        // One flow per user if an end is all users of an entry.
        let is_replicated = is_replicated || ways.as_ref().is_some_and(|ways| ways.of_all_users);
        let count = count.or(ways.as_ref().map(|ways| ways.each.len())).unwrap_or(1).max(1);
        let stagger = section.find(&STAGGER);
        if let (Some(stagger), false) = (&stagger, is_replicated) {
            stagger.error("is the time between the starts of `count` flows, but there is no `count`");
        }
        let stagger = stagger.and_then(|f| STAGGER.kind.read(&f)).unwrap_or(STAGGER.default.0);
        let (start, stop) = read_times(&mut section, stagger * (count as u64 - 1), duration);
        let workload = read_workload(&mut section, transport.as_ref());
        let bearer_field = section.find(&BEARER);
        let bearer = bearer_field.as_ref().and_then(|f| BEARER.kind.read(f)).unwrap_or(BEARER.default.0);
        section.finish();
        let (Some(transport), Some(ways)) = (transport, ways) else {
            self.incomplete = true;
            return;
        };
        let packet = match &transport {
            Transport::Tcp { config, .. } => config.mtu,
            Transport::Quic { config, .. } => config.mtu,
            Transport::Datagram { mtu, .. } => *mtu,
            Transport::Udp { packet, .. } => *packet,
        };
        // Paths of the users of an entry are equivalent here, so one report is enough.
        for problem in [
            ways.each.iter().find_map(|way| timeless(network, &way.path, &way.back)),
            ways.each.iter().find_map(|way| too_large(network, &way.path, packet, bearer.into())),
        ] {
            problem.into_iter().for_each(|why| report.add(name_at, format!("flow {name:?}: {why}")));
        }
        if let Some(problem) = ways.each.iter().find_map(|way| no_bearer(network, way, bearer.into())) {
            let at = bearer_field.map_or(name_at, |field| field.at);
            report.add(at, format!("bearer: {problem}"));
        }
        let first = self.all.len();
        if first + count > MOST_FLOWS {
            report.add(name_at, format!("more than {MOST_FLOWS} flows"));
            self.incomplete = true;
            return;
        }
        for (replicate, way) in (0..count).zip(ways.each.iter().cycle()) {
            let own_name = if is_replicated { format!("{name}.{}", replicate + 1) } else { name.clone() };
            let at = self.all.len();
            self.name(&own_name, at..at + 1, |problem| report.add(name_at, problem));
            self.all.push(FlowSpec {
                name: own_name,
                from: way.from,
                to: way.to,
                path: way.path.clone(),
                back: way.back.clone(),
                bearer,
                start: start + stagger * replicate as u64,
                stop,
                transport: transport.clone(),
                workload: workload.clone().unwrap_or(Workload::Bulk),
            });
        }
        if is_replicated {
            let all = first..self.all.len();
            self.name(&name, all, |problem| report.add(name_at, problem));
        }
    }

    fn name(&mut self, name: &str, range: Range<usize>, report: impl Fn(String)) {
        if self.by_name.insert(name.to_owned(), range).is_some() {
            report(format!("there is another flow called {name:?}"));
        }
    }
}

/// Reads `start` and `stop`; the last of the flows starts `later` than the first.
fn read_times(section: &mut Section<'_>, later: Span, duration: Option<Span>) -> (Time, Option<Time>) {
    let start_field = section.find(&START);
    let start = start_field.as_ref().and_then(|f| START.kind.read(f)).unwrap_or(START.default.0);
    let last = start + later;
    let at = start_field.map_or(section.at, |field| field.at);
    if let Some(duration) = duration.filter(|duration| last >= *duration) {
        section
            .report
            .add(at, format!("start: the flow would start at {last}, but the scenario ends at {duration}"));
    }
    let stop = section.find(&STOP).and_then(|field| {
        let stop = STOP.kind.read(&field)?;
        if stop <= last {
            field.error(format!("the flow would stop at {stop}, but starts only at {last}"));
        }
        Some(Time::ZERO + stop)
    });
    (Time::ZERO + start, stop)
}

/// Reads `transport`, `cc`, `packet` and the settings.
fn read_transport(section: &mut Section<'_>) -> Option<Transport> {
    let transport = section.find(&TRANSPORT);
    let (cc, packet) = (section.find(&CC), section.find(&PACKET));
    let estimator = section.find(&ESTIMATOR);
    let written = transport.as_ref().map(|field| TRANSPORT.kind.read(field));
    if written == Some(Some(TransportWord::Udp)) {
        for name in tcp::KEYS.iter().map(|key| key.name()).chain([CC.name, TCP.name]) {
            if let Some(field) = section.field(name) {
                let instead =
                    if name == tcp::MTU.name { "; the size of its packets is `packet`" } else { "" };
                field.error(format!("applies only to TCP, but this flow's transport is \"udp\"{instead}"));
            }
        }
        let packet = match packet {
            Some(packet) => PACKET.kind.read(&packet)?,
            None => PACKET.default.0,
        };
        let estimator = match estimator {
            Some(field) => {
                let algorithm = read_algorithm(&field)?;
                if algorithm.entry().receiver.is_none() {
                    field.error(format!("{algorithm} does not measure at the receiver; use cdbe or cdbev2"));
                    return None;
                }
                Some(algorithm)
            }
            None => None,
        };
        return Some(Transport::Udp { packet, estimator });
    }
    if let Some(field) = estimator {
        field.error("applies only to transport = \"udp\"; other flows use the receiver half of their `cc`");
    }
    if let Some(packet) = packet {
        packet.error("applies only to transport = \"udp\"; use `mtu` for other transports");
    }
    if written == Some(Some(TransportWord::Quic)) {
        return quic::read(section);
    }
    // Read with every algorithm, so that algorithms can be exchanged; datagrams use only the MTU.
    let algorithm = cc.as_ref().map(read_algorithm);
    let (config, ack_every) = tcp::read(section, algorithm.as_ref().and_then(|a| a.as_ref()));
    let Some(algorithm) = algorithm else {
        if written != Some(None) {
            section.error(
                "missing key \"cc\" in [[flow]]; a flow without congestion control has transport = \"udp\"",
            );
        }
        return None;
    };
    let algorithm = algorithm?;
    let carrier = match algorithm.transport() {
        ranpace_cc::Transport::Tcp => TransportWord::Tcp,
        ranpace_cc::Transport::Datagram => TransportWord::Datagram,
    };
    if let (Some(field), Some(written)) = (transport, written.flatten().filter(|&word| word != carrier)) {
        let [carrier, written] = [carrier, written].map(|word| TRANSPORT.kind.word(word));
        field.error(format!("{algorithm} is carried by {carrier:?}, not by {written:?}; remove this key"));
    }
    Some(match algorithm.transport() {
        ranpace_cc::Transport::Tcp => Transport::Tcp { algorithm, config, ack_every },
        ranpace_cc::Transport::Datagram => Transport::Datagram { algorithm, mtu: config.mtu },
    })
}

/// Reads `workload`, if it fits.
fn read_workload(section: &mut Section<'_>, transport: Option<&Transport>) -> Option<Workload> {
    let Some(field) = section.find(&WORKLOAD) else {
        if let Some(Transport::Udp { .. }) = transport {
            section.error("missing key \"workload\" in [[flow]]; transport \"udp\" carries cbr or ppbp");
        }
        return None;
    };
    let workload = workload::read(&field)?;
    if let Some(Err(problem)) = transport.map(|transport| workload::fits(&workload, transport)) {
        field.error(problem);
        return None;
    }
    Some(workload)
}

/// Both ends of a flow, and its paths.
struct Way {
    from: usize,
    to: usize,
    path: Vec<Hop>,
    back: Vec<Hop>,
}

/// The paths of all flows of an entry.
struct Paths {
    /// At least one; flows take them in turn.
    each: Vec<Way>,
    /// Whether an end is all users of an entry.
    of_all_users: bool,
}

/// Reads `from`, `to`, `path` and `back`. An end may be all users of an entry; `count` is the number of flows.
fn read_ways(
    section: &mut Section<'_>,
    network: &Network,
    transport: Option<&Transport>,
    count: Option<usize>,
) -> Option<Paths> {
    let (from_field, to_field) = (section.find(&FROM), section.find(&TO));
    let (path, back) = (section.find(&PATH), section.find(&BACK));
    let from = from_field.as_ref().and_then(|field| network.hosts_of(field));
    let to = to_field.as_ref().and_then(|field| network.hosts_of(field));
    let ((from, from_all), (to, to_all), to_field) = (from?, to?, to_field?);
    let pairs = from.len().max(to.len()).min(count.unwrap_or(usize::MAX));
    let each: Option<Vec<Way>> = (from.iter().cycle().zip(to.iter().cycle()).take(pairs))
        .map(|(&from, &to)| read_way(&to_field, path.clone(), back.clone(), network, transport, from, to))
        .collect();
    Some(Paths { each: each?, of_all_users: from_all || to_all })
}

/// Reads the paths between two hosts.
fn read_way(
    to_field: &Field<'_>,
    path: Option<Field<'_>>,
    back: Option<Field<'_>>,
    network: &Network,
    transport: Option<&Transport>,
    from: usize,
    to: usize,
) -> Option<Way> {
    if from == to {
        to_field.error(format!("{:?} is both the sender and the receiver of the flow", network.hosts[from]));
        return None;
    }
    let way = |field: Option<Field<'_>>, what: &str, from: usize, to: usize| match field {
        Some(field) => network.path_of(&field, from, to),
        None => {
            let route = network.route(from, to);
            if route.is_none() && !network.incomplete {
                let (from, to) = (&network.hosts[from], &network.hosts[to]);
                to_field.error(format!("no path for {what} from {from:?} to {to:?} with at most 64 links"));
            }
            route
        }
    };
    let path = way(path, "data", from, to);
    let back = match (transport, back) {
        (Some(Transport::Udp { .. }), None) => Some(Vec::new()),
        (Some(Transport::Udp { .. }), Some(back)) => {
            back.error("is the path of acknowledgements, but transport \"udp\" has none");
            None
        }
        (_, back) => way(back, "acknowledgements", to, from),
    };
    Some(Way { from, to, path: path?, back: back? })
}

/// Shortest round trip of a flow over unlimited links only, since its rate is its window divided by it, without another bound.
pub(crate) const LEAST_ROUND_TRIP: Span = Span::from_micros(10);

/// Reports a flow with feedback that could send without limit, since its path has neither a rate nor a delay.
fn timeless(network: &Network, path: &[Hop], back: &[Hop]) -> Option<String> {
    let hops = || path.iter().chain(back);
    let links = || hops().filter_map(|hop| hop.link()).map(|index| &network.links[index].config);
    // A cell limits the rate.
    let limited = hops().any(|hop| hop.link().is_none())
        || links().any(|link| !matches!(link.service, Service::Unlimited));
    let round_trip: Span = links().map(|link| link.delay).sum();
    (!back.is_empty() && !limited && round_trip < LEAST_ROUND_TRIP).then(|| {
        format!("no link of its path and back has a rate, and their delays sum to {round_trip}; set a rate on one of them, or a delay of at least {LEAST_ROUND_TRIP}")
    })
}

/// Reports a queue on the path that can never hold a full packet.
fn too_large(network: &Network, path: &[Hop], packet: Bytes, bearer: usize) -> Option<String> {
    path.iter().find_map(|&hop| {
        let (queue, whose) = match hop {
            Hop::Link(link) => {
                let link = &network.links[link as usize];
                if link.config.service == Service::Unlimited {
                    return None;
                }
                (&link.config.queue, format!("queue of link {:?}", link.name))
            }
            Hop::Radio { user, direction } => {
                let user = &network.users[user as usize];
                // A missing bearer is reported elsewhere.
                let bearer = user.config.bearers.get(bearer)?;
                let direction = match direction {
                    Direction::Downlink => &bearer.downlink,
                    Direction::Uplink => &bearer.uplink,
                };
                (&direction.buffer, format!("buffer of user {:?}", user.name))
            }
        };
        let (QueueConfig::DropTail { limit, .. }
        | QueueConfig::CoDel { limit, .. }
        | QueueConfig::FqCoDel { limit, .. }
        | QueueConfig::Pie { limit, .. }
        | QueueConfig::DualPi2 { limit, .. }
        | QueueConfig::L4Span { limit, .. }
        | QueueConfig::Abc { limit, .. }) = queue;
        match limit {
            Limit::Bytes(limit) if *limit < packet => {
                Some(format!("its packets of {packet} never fit into the {whose}, whose limit is {limit}"))
            }
            _ => None,
        }
    })
}

/// Reports a user on the path that does not have the bearer.
fn no_bearer(network: &Network, way: &Way, bearer: usize) -> Option<String> {
    let mut users = way.path.iter().chain(&way.back).filter_map(|hop| hop.user());
    let user = users.find(|&user| network.users[user].config.bearers.len() <= bearer)?;
    let user = &network.users[user];
    let most = user.config.bearers.len() - 1;
    Some(format!("user {:?} has bearers 0 to {most}, found {bearer}", user.name))
}
