//! Hosts, links, cells and users by name, and routes between hosts.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use ranpace_phy::Direction;

use crate::error::did_you_mean;
use crate::link;
use crate::model::{CellSpec, FlowSpec, Hop, LinkSpec, Scenario, Transport, UserSpec};
use crate::reader::{Field, Section};

/// Most links in a scenario. Ours.
const MOST_LINKS: usize = 10_000;
/// Most links that a packet crosses: the time to live that Linux gives it.
const MOST_HOPS: usize = 64;
/// Number of hosts whose routes are cached. The flows of an entry start at few hosts, other than users. Ours.
const MOST_TREES: usize = 8;

/// The hosts, links, cells and users of a scenario.
#[derive(Default)]
pub(crate) struct Network {
    pub hosts: Vec<String>,
    pub links: Vec<LinkSpec>,
    pub cells: Vec<CellSpec>,
    pub users: Vec<UserSpec>,
    host_by_name: HashMap<String, usize>,
    link_by_name: HashMap<String, usize>,
    cell_by_name: HashMap<String, usize>,
    /// Range of users for each name, of a user or of an entry.
    users_by_name: HashMap<String, Range<usize>>,
    /// Hops that leave each host: links in the order of the file, then users in theirs.
    out: Vec<Vec<Hop>>,
    /// Cached route trees of recent hosts: the hop by which each other host is reached.
    trees: RefCell<VecDeque<(usize, Vec<Option<Hop>>)>>,
    /// A link, a cell or a user is missing because it could not be read, so missing names and routes are not errors.
    pub incomplete: bool,
}

impl Network {
    /// Reads all `[[link]]`.
    pub fn read(root: &mut Section<'_>, traces: &mut link::Traces<'_>) -> Self {
        let mut network = Self::default();
        let Some(field) = root.field("link") else {
            // A scenario with a cell needs no link.
            if !root.has("cell") {
                root.error("no [[link]]: a scenario needs at least one, or a [[cell]]");
                network.incomplete = true;
            }
            return network;
        };
        let sections = field.tables();
        if sections.is_empty() {
            network.incomplete = true;
            if field.is_empty_list() {
                field.error("a scenario needs at least one link");
            }
        }
        for (index, section) in sections.into_iter().enumerate() {
            if network.links.len() >= MOST_LINKS {
                section.error(format!("more than {MOST_LINKS} links"));
                network.incomplete = true;
                break;
            }
            network.add(link::read(section, index + 1, traces));
        }
        network
    }

    fn add(&mut self, entry: link::Entry<'_>) {
        let link::Entry { name, from, to, config, back, at } = entry;
        let report = from.as_ref().or(to.as_ref()).map(|field| field.report);
        let ends = from.as_ref().and_then(Field::name).zip(to.as_ref().and_then(Field::name));
        let (Some((from_name, to_name)), Some(report), Some(to_field)) = (ends, report, to) else {
            self.incomplete = true;
            return;
        };
        if from_name == to_name {
            to_field.error(format!("both ends of the link are {from_name:?}"));
            self.incomplete = true;
            return;
        }
        let (from, to) = (self.host(from_name), self.host(to_name));
        for (name, from, to, config) in
            [Some((name, from, to, config)), back.map(|(name, config)| (name, to, from, config))]
                .into_iter()
                .flatten()
        {
            let index = self.links.len();
            if self.link_by_name.insert(name.clone(), index).is_some() {
                report.add(at, format!("there is another link called {name:?}"));
            }
            // At most MOST_LINKS.
            self.out[from].push(Hop::Link(index as u32));
            let link::Configured { link: config, overhead } = config;
            self.links.push(LinkSpec { name, from, to, config, overhead });
        }
    }

    /// Adds a cell; `false` if the name is taken.
    pub fn add_cell(&mut self, cell: CellSpec) -> bool {
        let is_new = self.cell_by_name.insert(cell.name.clone(), self.cells.len()).is_none();
        self.cells.push(cell);
        is_new
    }

    /// Adds a user, whose host and cell must exist; `false` if the name is taken.
    pub fn add_user(&mut self, user: UserSpec) -> bool {
        let index = self.users.len();
        let is_new = self.name_users(&user.name, index..index + 1);
        // The number of users fits.
        let hop = |direction| Hop::Radio { user: index as u32, direction };
        self.out[self.cells[user.cell].host].push(hop(Direction::Downlink));
        self.out[user.host].push(hop(Direction::Uplink));
        self.users.push(user);
        is_new
    }

    /// Names a range of users; `false` if the name is taken.
    pub fn name_users(&mut self, name: &str, users: Range<usize>) -> bool {
        self.users_by_name.insert(name.to_owned(), users).is_none()
    }

    /// Returns whether there is a link with this name.
    pub fn has_link(&self, name: &str) -> bool {
        self.link_by_name.contains_key(name)
    }

    /// The hosts at the beginning and at the end of a hop.
    pub fn ends(&self, hop: Hop) -> (usize, usize) {
        match hop {
            Hop::Link(link) => {
                let link = &self.links[link as usize];
                (link.from, link.to)
            }
            Hop::Radio { user, direction } => {
                let user = &self.users[user as usize];
                let ends = (self.cells[user.cell].host, user.host);
                if direction == Direction::Downlink { ends } else { (ends.1, ends.0) }
            }
        }
    }

    /// The index of a host, which is added if it is new.
    pub fn host(&mut self, name: &str) -> usize {
        if let Some(&index) = self.host_by_name.get(name) {
            return index;
        }
        let index = self.hosts.len();
        self.host_by_name.insert(name.to_owned(), index);
        self.hosts.push(name.to_owned());
        self.out.push(Vec::new());
        index
    }

    /// The host that a field names, or the hosts of all users of an entry with `count`; and whether it is such an entry.
    pub fn hosts_of(&self, field: &Field<'_>) -> Option<(Vec<usize>, bool)> {
        let name = field.name()?;
        if let Some(&index) = self.host_by_name.get(name) {
            return Some((vec![index], false));
        }
        let users = self.users_by_name.get(name).cloned();
        if users.is_none() && !self.incomplete {
            field.error(unknown("host", name, self.hosts.iter().map(String::as_str)));
        }
        Some((self.users[users?].iter().map(|user| user.host).collect(), true))
    }

    /// The host that a field names.
    pub fn host_of(&self, field: &Field<'_>) -> Option<usize> {
        let name = field.name()?;
        let host = self.hosts.iter().position(|host| host == name);
        if host.is_none() && !self.incomplete {
            field.error(unknown("host", name, self.hosts.iter().map(String::as_str)));
        }
        host
    }

    /// The users that a field names: one, or all of an entry with `count`.
    pub fn users_of(&self, field: &Field<'_>) -> Option<Range<usize>> {
        let name = field.name()?;
        let users = self.users_by_name.get(name).cloned();
        if users.is_none() && !self.incomplete {
            field.error(unknown("user", name, self.users.iter().map(|user| user.name.as_str())));
        }
        users
    }

    /// The cell that a field names.
    pub fn cell_of(&self, field: &Field<'_>) -> Option<usize> {
        let name = field.name()?;
        let index = self.cell_by_name.get(name).copied();
        if index.is_none() && !self.incomplete {
            field.error(unknown("cell", name, self.cells.iter().map(|cell| cell.name.as_str())));
        }
        index
    }

    /// The link that a field names.
    pub fn link_of(&self, field: &Field<'_>) -> Option<usize> {
        let name = field.name()?;
        let index = self.link_by_name.get(name).copied();
        if index.is_none() && !self.incomplete {
            field.error(unknown("link", name, self.links.iter().map(|link| link.name.as_str())));
        }
        index
    }

    /// The hop from `here` that a field names: a link, or the radio of a user in either direction.
    fn hop_of(&self, field: &Field<'_>, here: usize) -> Option<Hop> {
        let name = field.name()?;
        // A link takes precedence over a user of the same name.
        let users = self.users_by_name.get(name).filter(|users| users.len() == 1 && !self.has_link(name));
        match users {
            Some(users) => {
                let downlink = self.cells[self.users[users.start].cell].host == here;
                let direction = if downlink { Direction::Downlink } else { Direction::Uplink };
                Some(Hop::Radio { user: users.start as u32, direction })
            }
            None => self.link_of(field).map(|link| Hop::Link(link as u32)),
        }
    }

    /// The hops that a field lists, if they lead from `from` to `to`.
    pub fn path_of(&self, field: &Field<'_>, from: usize, to: usize) -> Option<Vec<Hop>> {
        let elements = field.list("a list of links such as [\"core\", \"down\"]")?;
        if elements.len() > MOST_HOPS {
            field.error(format!("expected at most {MOST_HOPS} links, found {}", elements.len()));
            return None;
        }
        let mut path = Vec::with_capacity(elements.len());
        let mut here = from;
        for element in &elements {
            let hop = self.hop_of(element, here)?;
            let (begins, ends) = self.ends(hop);
            if begins != here {
                let name = match hop {
                    Hop::Link(link) => format!("the link {:?}", self.links[link as usize].name),
                    Hop::Radio { user, .. } => format!("the radio of {:?}", self.users[user as usize].name),
                };
                let (begins, here) = (&self.hosts[begins], &self.hosts[here]);
                element.error(format!("{name} starts at {begins:?}, but the path has reached {here:?}"));
                return None;
            }
            here = ends;
            path.push(hop);
        }
        if here != to {
            field.error(format!("the path ends at {:?}, not at {:?}", self.hosts[here], self.hosts[to]));
            return None;
        }
        Some(path)
    }

    /// Position of a middlebox at a host on the path of a TCP flow: the number of hops before it on the path of the data, and of
    /// the acknowledgements. `None` if it does not apply: another transport, or data that do not cross the host, or only after the
    /// air; an error if the data cross it and the acknowledgements do not.
    pub fn middlebox_on(&self, flow: &FlowSpec, host: usize) -> Option<Result<(usize, usize), String>> {
        if !matches!(flow.transport, Transport::Tcp { .. }) {
            return None;
        }
        self.stands_on(flow, host)
    }

    /// Like [`Self::middlebox_on`], for a flow of any transport.
    pub fn stands_on(&self, flow: &FlowSpec, host: usize) -> Option<Result<(usize, usize), String>> {
        let forward = self.crossed_before_the_air(&flow.path, host)?;
        let back = self.crossed(&flow.back, host).map(|back| (forward, back));
        let (name, host) = (&flow.name, &self.hosts[host]);
        Some(back.ok_or_else(|| {
            format!("the data of flow {name:?} cross {host:?}, but its acknowledgements do not")
        }))
    }

    /// For a flow other than TCP whose data cross a host on their way to the air of a user: the number of hops before it, and the user.
    pub fn passes_by(&self, flow: &FlowSpec, host: usize) -> Option<(usize, usize)> {
        let user = flow.path.last().and_then(|hop| hop.user())?;
        let is_tcp = matches!(flow.transport, Transport::Tcp { .. });
        self.crossed_before_the_air(&flow.path, host).filter(|_| !is_tcp).map(|forward| (forward, user))
    }

    /// Number of hops before a path crosses a host; `None` if it does not, or only begins or ends there.
    fn crossed(&self, path: &[Hop], host: usize) -> Option<usize> {
        let hops = path.iter().take(path.len().saturating_sub(1));
        hops.map(|hop| self.ends(*hop).1).position(|end| end == host).map(|place| place + 1)
    }

    fn crossed_before_the_air(&self, path: &[Hop], host: usize) -> Option<usize> {
        let forward = self.crossed(path, host)?;
        path[..forward].iter().all(|hop| hop.user().is_none()).then_some(forward)
    }

    /// The route with the fewest links, a cell counting as one; among several the one whose links come first in the file,
    /// compared link by link. `None` if there is none of up to 64 links. Call it once all links and users are added.
    pub fn route(&self, from: usize, to: usize) -> Option<Vec<Hop>> {
        // While there is only one hop out, as from each of many users, the search starts after it.
        let mut path = Vec::new();
        let mut begin = from;
        while let [hop] = self.out[begin][..]
            && begin != to
            && path.len() < MOST_HOPS
        {
            path.push(hop);
            (_, begin) = self.ends(hop);
        }
        let mut trees = self.trees.borrow_mut();
        if !trees.iter().any(|(root, _)| *root == begin) {
            trees.truncate(MOST_TREES - 1);
            trees.push_front((begin, self.tree(begin)));
        }
        let (_, came_by) = trees.iter().find(|(root, _)| *root == begin)?;
        let mut here = to;
        let known = path.len();
        while here != begin {
            let hop = came_by[here]?;
            path.push(hop);
            (here, _) = self.ends(hop);
        }
        path[known..].reverse();
        (path.len() <= MOST_HOPS).then_some(path)
    }

    /// The hop by which each host is reached from `from`.
    fn tree(&self, from: usize) -> Vec<Option<Hop>> {
        // Breadth-first search. Hosts are visited in the order of their routes, so the first route found is the right one.
        let mut came_by: Vec<Option<Hop>> = vec![None; self.hosts.len()];
        let mut waiting = VecDeque::from([from]);
        while let Some(here) = waiting.pop_front() {
            for &hop in &self.out[here] {
                let (_, next) = self.ends(hop);
                if next != from && came_by[next].is_none() {
                    came_by[next] = Some(hop);
                    waiting.push_back(next);
                }
            }
        }
        came_by
    }
}

impl Scenario {
    /// The route from a host to another for a flow without its own path; `None` if there is none.
    pub fn route(&self, from: usize, to: usize) -> Option<Vec<Hop>> {
        let mut network = Network { out: vec![Vec::new(); self.hosts.len()], ..Network::default() };
        for (index, link) in self.links.iter().enumerate() {
            // The numbers of links and users fit.
            network.out.get_mut(link.from)?.push(Hop::Link(index as u32));
        }
        for (index, user) in self.users.iter().enumerate() {
            let hop = |direction| Hop::Radio { user: index as u32, direction };
            network.out.get_mut(self.cells.get(user.cell)?.host)?.push(hop(Direction::Downlink));
            network.out.get_mut(user.host)?.push(hop(Direction::Uplink));
        }
        network.hosts.clone_from(&self.hosts);
        network.links.clone_from(&self.links);
        network.cells.clone_from(&self.cells);
        network.users.clone_from(&self.users);
        network.route(from, to)
    }
}

/// Message about an unknown name, with known ones.
pub(crate) fn unknown<'n>(kind: &str, name: &str, known: impl Iterator<Item = &'n str> + Clone) -> String {
    const SHOWN: usize = 10;
    let near = did_you_mean(name, known.clone());
    let more = if known.clone().nth(SHOWN).is_some() { ", ..." } else { "" };
    let shown: Vec<&str> = known.take(SHOWN).collect();
    format!("unknown {kind} {name:?}; expected one of {}{more}{near}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ranpace_link::{Limit, LinkConfig, QueueConfig, Service};
    use ranpace_units::Span;

    use super::*;

    fn network(links: &[(&str, &str)]) -> Network {
        let mut network = Network::default();
        for (index, (from, to)) in links.iter().enumerate() {
            let (from, to) = (network.host(from), network.host(to));
            let config =
                LinkConfig::new(Service::Unlimited, QueueConfig::drop_tail(Limit::Unlimited), Span::ZERO);
            let (name, overhead) = (index.to_string(), ranpace_units::Bytes::ZERO);
            network.links.push(LinkSpec { name, from, to, config, overhead });
            network.out[from].push(Hop::Link(index as u32));
        }
        network
    }

    #[test]
    fn the_route_has_the_fewest_links_and_of_several_the_first_in_the_file() {
        // Diamond a-b-d, a-c-d, a detour b-c, two parallel links c-d.
        let network =
            network(&[("a", "c"), ("a", "b"), ("b", "d"), ("c", "d"), ("c", "d"), ("b", "c"), ("e", "a")]);
        let host = |name: &str| network.host_by_name[name];
        for (from, to, expected) in [
            ("a", "d", Some(vec![0, 3])),
            ("a", "b", Some(vec![1])),
            ("b", "c", Some(vec![5])),
            ("e", "d", Some(vec![6, 0, 3])),
            ("d", "a", None),
        ] {
            let expected = expected.map(|links| links.into_iter().map(Hop::Link).collect());
            assert_eq!(network.route(host(from), host(to)), expected, "{from} to {to}");
        }
    }

    proptest! {
        /// Cached routes equal those of a search from their beginning.
        #[test]
        fn a_route_is_what_a_search_finds(links in prop::collection::vec((0..7_u8, 0..7_u8), 1..20)) {
            let names: Vec<(String, String)> = links.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect();
            let names: Vec<(&str, &str)> =
                names.iter().filter(|(a, b)| a != b).map(|(a, b)| (a.as_str(), b.as_str())).collect();
            let network = network(&names);
            for from in 0..network.hosts.len() {
                let tree = network.tree(from);
                for to in (0..network.hosts.len()).filter(|to| *to != from) {
                    let (mut here, mut found) = (to, Some(Vec::new()));
                    while let (true, Some(path)) = (here != from, &mut found) {
                        match tree[here] {
                            Some(hop) => {
                                path.insert(0, hop);
                                (here, _) = network.ends(hop);
                            }
                            None => found = None,
                        }
                    }
                    prop_assert_eq!(network.route(from, to), found, "{} to {}", from, to);
                }
            }
        }
    }

    #[test]
    fn a_route_is_at_most_64_links_long() {
        let names: Vec<String> = (0..67).map(|n| n.to_string()).collect();
        let links: Vec<(&str, &str)> = names.windows(2).map(|w| (w[0].as_str(), w[1].as_str())).collect();
        let network = network(&links);
        assert_eq!(network.route(0, 64).map(|path| path.len()), Some(64));
        assert_eq!(network.route(0, 65), None);
    }
}
