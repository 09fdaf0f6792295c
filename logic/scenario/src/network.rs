//! Hosts and links by name, and the way from a host to another.

use std::collections::{HashMap, VecDeque};

use crate::error::did_you_mean;
use crate::link;
use crate::model::LinkSpec;
use crate::reader::{Field, Section};

/// Most links of a scenario. Ours.
const MOST_LINKS: usize = 10_000;
/// Most links that a packet crosses: the time to live that Linux gives it.
const MOST_HOPS: usize = 64;

/// The hosts and links of a scenario.
#[derive(Default)]
pub(crate) struct Network {
    pub hosts: Vec<String>,
    pub links: Vec<LinkSpec>,
    host_by_name: HashMap<String, usize>,
    link_by_name: HashMap<String, usize>,
    /// Links that leave each host, in the order of the file.
    out: Vec<Vec<usize>>,
    /// A link is missing because its ends could not be read: routes say nothing about the file.
    pub incomplete: bool,
}

impl Network {
    /// Reads all `[[link]]`.
    pub fn read(root: &mut Section<'_>, traces: &mut link::Traces<'_>) -> Self {
        let mut network = Self::default();
        let Some(field) = root.field("link") else {
            root.error("no [[link]]: a scenario has at least one");
            network.incomplete = true;
            return network;
        };
        let sections = field.tables();
        if sections.is_empty() {
            network.incomplete = true;
            if field.is_empty_list() {
                field.error("a scenario has at least one link");
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
            to_field.error(format!("the link leads from {from_name:?} to itself"));
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
            self.out[from].push(index);
            self.links.push(LinkSpec { name, from, to, config });
        }
    }

    /// The index of a host, new or not.
    fn host(&mut self, name: &str) -> usize {
        if let Some(&index) = self.host_by_name.get(name) {
            return index;
        }
        let index = self.hosts.len();
        self.host_by_name.insert(name.to_owned(), index);
        self.hosts.push(name.to_owned());
        self.out.push(Vec::new());
        index
    }

    /// The host that a field names.
    pub fn host_of(&self, field: &Field<'_>) -> Option<usize> {
        let name = field.name()?;
        let index = self.host_by_name.get(name).copied();
        if index.is_none() && !self.incomplete {
            field.error(unknown("host", name, self.hosts.iter().map(String::as_str)));
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

    /// The links that a field lists, if they lead from `from` to `to`.
    pub fn path_of(&self, field: &Field<'_>, from: usize, to: usize) -> Option<Vec<usize>> {
        let elements = field.list("a list of links such as [\"core\", \"down\"]")?;
        if elements.len() > MOST_HOPS {
            field.error(format!("expected at most {MOST_HOPS} links, found {}", elements.len()));
            return None;
        }
        let mut path = Vec::with_capacity(elements.len());
        let mut here = from;
        for element in &elements {
            let index = self.link_of(element)?;
            let link = &self.links[index];
            if link.from != here {
                element.error(format!(
                    "the link {:?} leads from {:?}, but the path has come to {:?}",
                    link.name, self.hosts[link.from], self.hosts[here]
                ));
                return None;
            }
            here = link.to;
            path.push(index);
        }
        if here != to {
            field.error(format!("the path ends at {:?}, not at {:?}", self.hosts[here], self.hosts[to]));
            return None;
        }
        Some(path)
    }

    /// The way with the fewest links; of several the one whose links stand first in the file, compared link by
    /// link. `None` if there is none of up to 64 links.
    pub fn route(&self, from: usize, to: usize) -> Option<Vec<usize>> {
        // Breadth first. Hosts are found in the order of their ways, so that the first way found is the one sought.
        let mut came_by: Vec<Option<usize>> = vec![None; self.hosts.len()];
        let mut waiting = VecDeque::from([from]);
        while let Some(here) = waiting.pop_front() {
            if here == to {
                break;
            }
            for &index in &self.out[here] {
                let next = self.links[index].to;
                if next != from && came_by[next].is_none() {
                    came_by[next] = Some(index);
                    waiting.push_back(next);
                }
            }
        }
        let mut path = Vec::new();
        let mut here = to;
        while here != from {
            let index = came_by[here]?;
            path.push(index);
            here = self.links[index].from;
        }
        path.reverse();
        (path.len() <= MOST_HOPS).then_some(path)
    }
}

/// What there is instead of an unknown name.
pub(crate) fn unknown<'n>(kind: &str, name: &str, known: impl Iterator<Item = &'n str> + Clone) -> String {
    const SHOWN: usize = 10;
    let near = did_you_mean(name, known.clone());
    let more = if known.clone().nth(SHOWN).is_some() { ", ..." } else { "" };
    let shown: Vec<&str> = known.take(SHOWN).collect();
    format!("unknown {kind} {name:?}; there are {}{more}{near}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use ranpace_link::{Limit, LinkConfig, QueueConfig, Service};
    use ranpace_units::Span;

    use super::*;

    fn network(links: &[(&str, &str)]) -> Network {
        let mut network = Network::default();
        for (index, (from, to)) in links.iter().enumerate() {
            let (from, to) = (network.host(from), network.host(to));
            let config =
                LinkConfig::new(Service::Unlimited, QueueConfig::drop_tail(Limit::Unlimited), Span::ZERO);
            network.links.push(LinkSpec { name: index.to_string(), from, to, config });
            network.out[from].push(index);
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
            assert_eq!(network.route(host(from), host(to)), expected, "{from} to {to}");
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
