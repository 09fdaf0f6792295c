//! The part of a scenario that is emulated: hosts that get a namespace, and the routes between them.

use std::collections::{BTreeMap, HashMap};

use ranpace_scenario::{
    ChangeKind, FlowSpec, Hop, PepSpec, ProxyKind, ProxySpec, RewriterSpec, Scenario, Transport, Workload,
};
use ranpace_units::{Bytes, Span, Time};

use crate::addresses::MOST_HOSTS;

/// Port of the scenario's first flow if workloads run; the others follow. They are below Linux' ephemeral ports (32768 and above).
/// Ours.
const FIRST_PORT: u16 = 20_000;
/// Most flows of a scenario whose workloads can be run: ports up to 21 999, and few enough for one thread. Ours.
pub const MOST_FLOWS: usize = 2_000;

/// Both ports of a whole TCP segment or UDP datagram; `None` for others. The built-in senders use neither fragments nor IPv6
/// extension headers.
#[inline]
fn ports_of(packet: &[u8]) -> Option<[u16; 2]> {
    const TCP: u8 = 6;
    const UDP: u8 = 17;
    let (protocol, behind) = match packet.first()? >> 4 {
        4 => (*packet.get(9)?, usize::from(packet[0] & 0xf) * 4),
        6 => (*packet.get(6)?, 40),
        _ => return None,
    };
    let ports: &[u8; 4] = packet.get(behind..)?.first_chunk()?;
    let is_whole = packet[0] >> 4 == 6 || u16::from_be_bytes([packet[6], packet[7]]) & 0x3fff == 0;
    (matches!(protocol, TCP | UDP) && is_whole)
        .then(|| [u16::from_be_bytes([ports[0], ports[1]]), u16::from_be_bytes([ports[2], ports[3]])])
}

/// Why a scenario cannot be emulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// More hosts than namespaces.
    #[error("{found} hosts would get a namespace each; at most {MOST_HOSTS} can")]
    Crowd {
        /// Number of hosts.
        found: usize,
    },
}

/// A route that is emulated in two parts, because it passes a host with participants ([`crate::participant`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Index of the host.
    pub host: usize,
    /// The part after it.
    pub onward: u32,
    /// The part of the return route that begins there, if that route passes the same host.
    pub backward: Option<u32>,
    /// The whole route, and the return route.
    pub route: u32,
    /// See `route`.
    pub answers: Option<u32>,
    /// The user at the end of the route, and the one at its beginning.
    pub to_user: Option<u32>,
    /// See `to_user`.
    pub from_user: Option<u32>,
}

/// Hosts with namespaces, and the routes between them.
#[derive(Clone, Debug)]
pub struct Topology {
    /// The scenario as emulated: its flows are the routes, one in each direction, followed by the parts of those that are cut.
    pub scenario: Scenario,
    /// Indices of the hosts that get a namespace, in the scenario's order; addresses are numbered in this order.
    pub hosts: Vec<usize>,
    /// Parts of the scenario that are not emulated.
    pub notes: Vec<String>,
    /// The flow for each pair of hosts, by their places in `hosts`: index `from` times number of hosts plus `to`.
    table: Vec<Option<u32>>,
    /// The participants that packets pass.
    pub proxies: Vec<ProxySpec>,
    /// See `proxies`.
    pub peps: Vec<PepSpec>,
    /// See `proxies`.
    pub rewriters: Vec<RewriterSpec>,
    /// The whole routes, each with its return route.
    whole: Vec<FlowSpec>,
    answers: Vec<Option<u32>>,
    /// For each flow of `scenario`, where it ends at participants.
    cuts: Vec<Option<Cut>>,
    /// The flows of the scenario as requested.
    flows: Vec<FlowSpec>,
    /// With workloads: sender and receiver of each flow of the scenario, by places. Its data take the route with its number, its
    /// acknowledgements that plus the number of flows.
    own: Vec<(usize, usize)>,
    /// Hosts whose kernels forward packets, in the place of participants.
    routers: Vec<usize>,
    /// The part of each whole route that begins at a router.
    onward: HashMap<(usize, u32), u32>,
}

impl Topology {
    /// The topology of a scenario. A host gets a namespace if a flow begins or ends there, or if it is a user of a cell. Two of
    /// them have a route if at least one is not a user, or if a flow of the scenario leads there: along the first such flow, or
    /// else along the path of a flow that names none.
    pub fn new(scenario: &Scenario) -> Result<Self, TopologyError> {
        Self::of(scenario, Vec::new())
    }

    /// The same for a scenario whose proxies and PEPs are daemons: their hosts get a namespace too, whose kernel forwards packets.
    pub fn with_routers(scenario: &Scenario) -> Result<Self, TopologyError> {
        let proxies = scenario.proxies.iter().map(|proxy| proxy.host);
        let mut routers: Vec<usize> = proxies.chain(scenario.peps.iter().map(|pep| pep.host)).collect();
        routers.sort_unstable();
        routers.dedup();
        Self::of(scenario, routers)
    }

    fn of(scenario: &Scenario, routers: Vec<usize>) -> Result<Self, TopologyError> {
        let mut notes = Vec::new();
        let mut is_end = vec![false; scenario.hosts.len()];
        routers.iter().for_each(|router| is_end[*router] = true);
        let mut is_user = is_end.clone();
        for flow in &scenario.flows {
            (is_end[flow.from], is_end[flow.to]) = (true, true);
        }
        for user in &scenario.users {
            (is_end[user.host], is_user[user.host]) = (true, true);
        }
        let hosts: Vec<usize> = (0..scenario.hosts.len()).filter(|host| is_end[*host]).collect();
        if hosts.len() > MOST_HOSTS {
            return Err(TopologyError::Crowd { found: hosts.len() });
        }
        let mut own: HashMap<(usize, usize), (&[Hop], u8)> = HashMap::new();
        for flow in &scenario.flows {
            own.entry((flow.from, flow.to)).or_insert((&flow.path, flow.bearer));
            if !flow.back.is_empty() {
                own.entry((flow.to, flow.from)).or_insert((&flow.back, flow.bearer));
            }
        }
        let mut played = scenario.clone();
        played.flows.clear();
        let mut table = vec![None; hosts.len() * hosts.len()];
        for (place, &from) in hosts.iter().enumerate() {
            for (other, &to) in hosts.iter().enumerate().filter(|(other, _)| *other != place) {
                let route = match own.get(&(from, to)) {
                    Some((path, bearer)) => Some((path.to_vec(), *bearer)),
                    None if is_user[from] && is_user[to] => None,
                    None => scenario.route(from, to).map(|path| (path, 0)),
                };
                let Some((path, bearer)) = route.filter(|(path, _)| !path.is_empty()) else { continue };
                table[place * hosts.len() + other] = u32::try_from(played.flows.len()).ok();
                played.flows.push(FlowSpec {
                    name: format!("{} to {}", scenario.hosts[from], scenario.hosts[to]),
                    from,
                    to,
                    path,
                    back: Vec::new(),
                    bearer,
                    start: Time::ZERO,
                    stop: None,
                    transport: Transport::Udp { packet: Bytes::new(1500), estimator: None },
                    workload: Workload::Bulk,
                });
            }
        }
        let changes = played.changes.len();
        played.changes.retain(|change| !matches!(change.what, ChangeKind::FlowTarget { .. }));
        if played.changes.len() < changes {
            notes.push("changes of a flow's target are left out: programs set their own".to_owned());
        }
        let is_rapid = |proxy: &ProxySpec| matches!(proxy.kind, ProxyKind::Rapid(_));
        let has_readers = !scenario.rewriters.is_empty() || scenario.proxies.iter().any(is_rapid);
        for table in scenario.feed_tables.iter().filter(|table| **table != "rnis" || !has_readers) {
            notes.push(format!(
                "nobody reads what [{table}] sets: the kernel's TCP knows nothing of the radio (`--hints FILE` writes it down)"
            ));
        }
        for user in played.users.iter_mut().filter(|user| user.real_time_first) {
            user.real_time_first = false;
            notes.push(format!("{}: real_time_first is left out, its packets go in order", user.name));
        }
        let flows = scenario.flows.clone();
        let whole = std::mem::take(&mut played.flows);
        // The network itself does not know them.
        let (mut proxies, mut peps) = (std::mem::take(&mut played.proxies), std::mem::take(&mut played.peps));
        let mut rewriters = std::mem::take(&mut played.rewriters);
        if !routers.is_empty() {
            (proxies, peps) = (Vec::new(), Vec::new());
            let names = rewriters.drain(..).map(|rewriter| rewriter.name);
            notes.extend(names.map(|name| format!("{name} is left out: no daemon rewrites headers")));
        }
        let place = |host| hosts.iter().position(|at| *at == host);
        let answers = whole.iter().map(|route| {
            let (from, to) = (place(route.from)?, place(route.to)?);
            table[to * hosts.len() + from]
        });
        let answers = answers.collect();
        let mut topology = Self {
            scenario: played,
            proxies,
            peps,
            rewriters,
            whole,
            answers,
            cuts: Vec::new(),
            hosts,
            notes,
            table,
            flows,
            own: Vec::new(),
            routers,
            onward: HashMap::new(),
        };
        topology.cut();
        Ok(topology)
    }

    /// Makes the emulated flows from the whole routes.
    fn cut(&mut self) {
        let scenario = &self.scenario;
        let has_participants = |host: usize| {
            self.proxies.iter().any(|proxy| proxy.host == host)
                || self.peps.iter().any(|pep| pep.host == host)
                || self.rewriters.iter().any(|rewriter| rewriter.host == host)
                || self.routers.contains(&host)
        };
        let user_at = |host: usize| {
            let user = scenario.users.iter().position(|user| user.host == host);
            user.and_then(|user| u32::try_from(user).ok())
        };
        let mut flows = self.whole.clone();
        let mut cuts: Vec<Option<Cut>> = vec![None; flows.len()];
        for (route, whole) in (0_u32..).zip(&self.whole) {
            let (mut part, mut first) = (route as usize, 0);
            for (hop, over) in whole.path.iter().enumerate().take(whole.path.len().saturating_sub(1)) {
                let host = scenario.ends(*over).1;
                if !has_participants(host) {
                    continue;
                }
                let onward = flows.len();
                (flows[part].path, flows[part].to) = (whole.path[first..=hop].to_vec(), host);
                flows.push(FlowSpec {
                    name: format!("{}, from {}", whole.name, scenario.hosts[host]),
                    from: host,
                    path: whole.path[hop + 1..].to_vec(),
                    ..whole.clone()
                });
                cuts.push(None);
                cuts[part] = Some(Cut {
                    host,
                    onward: onward as u32,
                    backward: None,
                    route,
                    answers: self.answers[route as usize],
                    to_user: user_at(whole.to),
                    from_user: user_at(whole.from),
                });
                (part, first) = (onward, hop + 1);
            }
        }
        // The way back from a host is the part of the return route that begins there.
        let all = cuts.clone();
        for cut in cuts.iter_mut().flatten() {
            let of_answers = |other: &&Cut| Some(other.route) == cut.answers && other.host == cut.host;
            cut.backward = all.iter().flatten().find(of_answers).map(|other| other.onward);
        }
        self.onward = cuts.iter().flatten().map(|cut| ((cut.host, cut.route), cut.onward)).collect();
        (self.scenario.flows, self.cuts) = (flows, cuts);
    }

    /// Returns whether the kernel of the host at a place forwards packets of others.
    pub fn is_router(&self, place: usize) -> bool {
        self.hosts.get(place).is_some_and(|host| self.routers.contains(host))
    }

    /// Returns where a flow of the emulated scenario ends at participants, if it does.
    #[inline]
    pub fn cut_of(&self, flow: u32) -> Option<&Cut> {
        self.cuts.get(flow as usize)?.as_ref()
    }

    /// All of these places.
    pub fn cuts(&self) -> impl Iterator<Item = &Cut> {
        self.cuts.iter().flatten()
    }

    /// The bearer of a whole route's packets.
    pub fn bearer(&self, route: u32) -> u8 {
        self.whole.get(route as usize).map_or(0, |route| route.bearer)
    }

    /// Number of whole routes, which come first among the flows of the emulated scenario.
    pub fn whole(&self) -> usize {
        self.whole.len()
    }

    /// The return route of a whole route.
    pub fn answers(&self, route: u32) -> Option<u32> {
        *self.answers.get(route as usize)?
    }

    /// The path of a whole route.
    pub fn path(&self, route: u32) -> &[Hop] {
        self.whole.get(route as usize).map_or(&[], |route| &route.path)
    }

    /// The flow that carries packets from the host at one place to that at another.
    #[inline]
    pub fn between(&self, from: usize, to: usize) -> Option<u32> {
        if to >= self.hosts.len() {
            return None;
        }
        *self.table.get(from * self.hosts.len() + to)?
    }

    /// The same topology with routes for the scenario's own flows before the others, in both directions, each with its own path and
    /// bearer. Their packets are identified by their ports: see [`Self::route_of`].
    #[must_use]
    pub fn with_flows(&self) -> Self {
        let mut topology = self.clone();
        let plain = |flow: &FlowSpec| FlowSpec {
            transport: Transport::Udp { packet: Bytes::new(1500), estimator: None },
            workload: Workload::Bulk,
            ..flow.clone()
        };
        let there = self.flows.iter().map(plain);
        let back = self.flows.iter().map(|flow| FlowSpec {
            name: format!("{}, back", flow.name),
            from: flow.to,
            to: flow.from,
            path: flow.back.clone(),
            back: Vec::new(),
            ..plain(flow)
        });
        topology.whole = there.chain(back).chain(self.whole.iter().cloned()).collect();
        let count = self.flows.len() as u32;
        let first = 2 * count;
        topology.table.iter_mut().flatten().for_each(|route| *route += first);
        let own = (count..first).chain(0..count).map(Some);
        topology.answers = own.chain(self.answers.iter().map(|route| Some((*route)? + first))).collect();
        topology.cut();
        let place = |host| self.hosts.iter().position(|at| *at == host).unwrap_or(usize::MAX);
        topology.own = self.flows.iter().map(|flow| (place(flow.from), place(flow.to))).collect();
        topology
    }

    /// The flows of the scenario as requested.
    pub fn flows(&self) -> &[FlowSpec] {
        &self.flows
    }

    /// Sender and receiver of each of the scenario's flows, by places; empty without workloads.
    pub fn own(&self) -> &[(usize, usize)] {
        &self.own
    }

    /// The listening port of a flow of the scenario; there are fewer than [`MOST_FLOWS`].
    pub const fn port(flow: usize) -> u16 {
        FIRST_PORT + flow as u16
    }

    /// The scenario's flow with this pair of ports between these places, if any, and whether the packet, or the socket, is on the
    /// sender's side.
    #[inline]
    pub fn own_flow(&self, from: usize, to: usize, ports: [u16; 2]) -> Option<(usize, bool)> {
        for port in ports {
            let Some(flow) = port.checked_sub(FIRST_PORT).map(usize::from) else { continue };
            match self.own.get(flow) {
                Some(ends) if *ends == (from, to) => return Some((flow, true)),
                Some(ends) if *ends == (to, from) => return Some((flow, false)),
                _ => {}
            }
        }
        None
    }

    /// The flow that carries a packet which the host at a place sends, or forwards if it is a router, from the host at `source` to that
    /// at `to`.
    #[inline]
    pub fn route_from(
        &self,
        place: usize,
        source: impl FnOnce() -> Option<usize>,
        to: usize,
        packet: &[u8],
    ) -> Option<u32> {
        if !self.is_router(place) {
            return self.route_of(place, to, packet);
        }
        let source = source().filter(|source| *source != place);
        let Some(source) = source else { return self.route_of(place, to, packet) };
        let route = self.route_of(source, to, packet)?;
        self.onward.get(&(*self.hosts.get(place)?, route)).copied()
    }

    /// The flow that carries a packet from the host at one place to that at another.
    #[inline]
    pub fn route_of(&self, from: usize, to: usize, packet: &[u8]) -> Option<u32> {
        if !self.own.is_empty()
            && let Some(ports) = ports_of(packet)
            && let Some((flow, is_there)) = self.own_flow(from, to, ports)
        {
            let route = if is_there { flow } else { flow + self.own.len() };
            return Some(route as u32);
        }
        self.between(from, to)
    }

    /// The shortest round trip between two hosts by propagation alone, with the shortest delay that each link ever has.
    pub fn base_rtt(&self) -> Span {
        let mut delays: Vec<Span> = self.scenario.links.iter().map(|link| link.config.delay).collect();
        for change in &self.scenario.changes {
            if let ChangeKind::LinkDelay { link, delay } = change.what
                && let Some(least) = delays.get_mut(link)
            {
                *least = delay.min(*least);
            }
        }
        let mut topology: BTreeMap<(usize, usize), Span> = BTreeMap::new();
        for flow in &self.whole {
            let links = flow.path.iter().filter_map(|hop| delays.get(hop.link()?));
            let (delay, ends): (Span, _) = (links.copied().sum(), (flow.from, flow.to));
            topology.entry(ends).and_modify(|least| *least = delay.min(*least)).or_insert(delay);
        }
        let rounds =
            topology.iter().filter_map(|((from, to), there)| Some(*there + *topology.get(&(*to, *from))?));
        rounds.min().unwrap_or(Span::ZERO)
    }

    /// The place of the host at which a flow ends.
    pub fn ends(&self) -> Vec<usize> {
        let place = |host| self.hosts.iter().position(|at| *at == host).unwrap_or(usize::MAX);
        self.scenario.flows.iter().map(|flow| place(flow.to)).collect()
    }

    /// Name of the host at a place.
    pub fn name(&self, place: usize) -> &str {
        self.hosts.get(place).and_then(|host| self.scenario.hosts.get(*host)).map_or("", String::as_str)
    }

    /// The place of the host of this name.
    pub fn place(&self, name: &str) -> Option<usize> {
        (0..self.hosts.len()).find(|place| self.name(*place) == name)
    }

    /// The host of the first user; without a cell, the one at which the first flow of the scenario ends.
    pub fn first_user(scenario: &Scenario) -> Option<&str> {
        let host = match scenario.users.first() {
            Some(user) => user.host,
            None => scenario.flows.first()?.to,
        };
        scenario.hosts.get(host).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(text: &str) -> Scenario {
        ranpace_scenario::parse(text, "test.toml", &mut ()).expect("a scenario of this test is right")
    }

    #[test]
    fn the_base_rtt_is_the_shortest_that_any_pair_of_hosts_ever_has() {
        let link = |from: &str, to: &str, delay: &str| {
            format!(
                "[[link]]\nname = \"{from}-{to}\"\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"1Mbit/s\"\ndelay = \"{delay}\"\n"
            )
        };
        let flow =
            |from: &str, to: &str| format!("[[flow]]\nfrom = \"{from}\"\nto = \"{to}\"\ncc = \"cubic\"\n");
        let links = [
            link("server", "mast", "7ms"),
            link("mast", "phone", "10ms"),
            link("phone", "server", "1ms"),
            link("server", "tablet", "30ms"),
            link("tablet", "server", "20ms"),
        ];
        let text = format!(
            "duration = \"9s\"\n{}{}{}",
            links.concat(),
            flow("server", "phone"),
            flow("server", "tablet")
        );
        let topology = Topology::new(&scenario(&text)).expect("it can be emulated");
        assert_eq!(topology.base_rtt(), Span::from_millis(18));
        assert_eq!(topology.with_flows().base_rtt(), Span::from_millis(18));
        let change = "[[change]]\nat = \"1s\"\nlink = \"mast-phone\"\ndelay = \"2ms\"\n";
        let topology = Topology::new(&scenario(&format!("{text}{change}"))).expect("it can be emulated");
        assert_eq!(topology.base_rtt(), Span::from_millis(10));
    }

    const TWO_USERS: &str = include_str!("../tests/scenarios/cell.toml");

    #[test]
    fn ends_of_flows_and_users_get_a_namespace_and_ways_lead_between_servers_and_users() {
        let scenario = scenario(TWO_USERS);
        let topology = Topology::new(&scenario).expect("it can be emulated");
        let names: Vec<&str> = (0..topology.hosts.len()).map(|place| topology.name(place)).collect();
        assert_eq!(names, ["server", "ue1", "ue2"], "the mast only passes packets on");
        let place = |name| topology.place(name).expect("it is there");
        for (from, to, exists) in [
            ("server", "ue1", true),
            ("ue1", "server", true),
            ("server", "ue2", true),
            ("ue2", "server", true),
            ("ue1", "ue2", false),
        ] {
            let flow = topology.between(place(from), place(to));
            assert_eq!(flow.is_some(), exists, "{from} to {to}");
            if let Some(flow) = flow {
                let spec = &topology.scenario.flows[flow as usize];
                assert_eq!(spec.name, format!("{from} to {to}"));
                assert_eq!(spec.path.len(), 2, "over the core and the air");
                assert_eq!(topology.ends()[flow as usize], place(to));
            }
        }
        assert_eq!(topology.between(0, 77), None);
        assert_eq!(Topology::first_user(&scenario), Some("ue1"));
    }

    #[test]
    fn what_a_router_forwards_continues_on_the_route_of_its_source() {
        let text = format!("{TWO_USERS}[[proxy]]\nhost = \"mast\"\nkind = \"split\"\n");
        let topology = Topology::with_routers(&scenario(&text)).expect("it can be emulated").with_flows();
        let place = |name| topology.place(name).expect("it is there");
        let (server, mast, user) = (place("server"), place("mast"), place("ue1"));
        assert!(topology.is_router(mast) && !topology.is_router(server) && topology.proxies.is_empty());
        let way = |at: usize, from: usize, to: usize| {
            let flow = topology.route_from(at, || Some(from), to, &[]).expect("there is a way");
            let spec = &topology.scenario.flows[flow as usize];
            (topology.ends()[flow as usize], spec.path.len())
        };
        assert_eq!(way(server, server, user), (mast, 1), "over the core");
        assert_eq!(way(mast, server, user), (user, 1), "over the air");
        assert_eq!(way(user, user, server), (mast, 1));
        assert_eq!(way(mast, user, server), (server, 1));
        assert_eq!(way(mast, mast, server), (server, 1), "its own packets");
        let nowhere = topology.route_from(mast, || Some(user), user, &[]);
        assert_eq!(nowhere, None);
    }

    #[test]
    fn tables_that_are_not_played_are_named() {
        let notes = |more: &str| {
            Topology::new(&scenario(&format!("{more}{TWO_USERS}"))).expect("it can be emulated").notes
        };
        assert_eq!(notes(""), Vec::<String>::new());
        // Also where the values equal the defaults without the table.
        for tables in [
            "rnis = { delay = \"9ms\" }\nmodem = { every = 2 }\n",
            "rnis = { delay = \"1ms\" }\nmodem = { every = 1 }\n",
            "rnis = {}\nmodem = {}\n",
        ] {
            let both = notes(tables);
            assert_eq!(both.len(), 2, "{tables}: {both:?}");
            assert!(
                both[0].starts_with("nobody reads what [rnis] sets") && both[1].contains("[modem]"),
                "{both:?}"
            );
        }
    }

    #[test]
    fn packets_of_own_flows_are_told_by_their_ports() {
        let scenario = scenario(TWO_USERS);
        let plain = Topology::new(&scenario).expect("it can be emulated");
        let topology = plain.with_flows();
        let place = |name| topology.place(name).expect("it is there");
        let (server, user, other) = (place("server"), place("ue1"), place("ue2"));
        let packet = |v6: bool, tcp: bool, ports: [u16; 2]| {
            let mut packet = Vec::new();
            let ip = if v6 {
                etherparse::PacketBuilder::ipv6([1; 16], [2; 16], 64)
            } else {
                etherparse::PacketBuilder::ipv4([1; 4], [2; 4], 64)
            };
            let written = if tcp {
                ip.tcp(ports[0], ports[1], 1, 1).write(&mut packet, &[7; 9])
            } else {
                ip.udp(ports[0], ports[1]).write(&mut packet, &[7; 9])
            };
            written.expect("it fits");
            packet
        };
        for v6 in [false, true] {
            for tcp in [false, true] {
                for (case, from, to, ports, route) in [
                    ("its data", server, user, [40_000, 20_000], Some(0)),
                    ("the same of one that the receiver opened", server, user, [20_000, 40_000], Some(0)),
                    ("its acknowledgements", user, server, [20_000, 40_000], Some(1)),
                    (
                        "of a program",
                        server,
                        user,
                        [40_000, 80],
                        plain.between(server, user).map(|route| route + 2),
                    ),
                    ("to another host", server, other, [40_000, 20_000], topology.between(server, other)),
                    ("nowhere", user, other, [40_000, 20_000], None),
                ] {
                    assert_eq!(topology.route_of(from, to, &packet(v6, tcp, ports)), route, "{case}");
                }
            }
        }
        assert_eq!(topology.scenario.flows[0].path, scenario.flows[0].path);
        assert_eq!(topology.scenario.flows[1].path, scenario.flows[0].back);
        assert_eq!(topology.ends()[..2], [user, server]);
        let ours = packet(false, true, [40_000, 20_000]);
        assert_eq!(plain.route_of(server, user, &ours), plain.between(server, user), "without workloads");
    }

    proptest::proptest! {
        /// Reading ports never fails, whatever a program sends.
        #[test]
        fn any_bytes_have_ports_or_none(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..100)) {
            let _ = ports_of(&bytes);
        }
    }

    #[test]
    fn the_path_of_a_flow_is_its_hosts_way() {
        let text = r#"
            duration = "10s"
            [[link]]
            name = "fast"
            from = "a"
            to = "b"
            rate = "unlimited"
            delay = "1ms"
            duplex = true
            [[link]]
            name = "slow"
            from = "a"
            to = "b"
            rate = "unlimited"
            delay = "9ms"
            duplex = true
            [[flow]]
            from = "a"
            to = "b"
            cc = "cubic"
            path = ["slow"]
        "#;
        let scenario = scenario(text);
        let topology = Topology::new(&scenario).expect("it can be emulated");
        let path = |from, to| {
            let flow = topology.between(from, to).expect("there is a way");
            topology.scenario.flows[flow as usize].path.clone()
        };
        assert_eq!(path(0, 1), [Hop::Link(2)]);
        assert_eq!(path(1, 0), scenario.flows[0].back);
        assert_eq!(Topology::first_user(&scenario), Some("b"));
    }
}
