//! Routes: the links, cells and participants that a packet crosses.

use std::collections::HashMap;

use ranpace_phy::Direction as Way;
use ranpace_scenario::{FlowSpec, Hop, Scenario, SplitSpec};

use crate::packet::Direction;

/// A step of a path as a number: link indices first; then the radio of each user, downlink and uplink; then the participants that
/// packets pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place(u32);

/// A step of a route.
pub(crate) enum Step {
    /// A link, by its index.
    Link(u32),
    /// The radio of a user.
    Radio(u32, Way),
    /// A participant, by its number.
    Participant(u32),
}

/// A position on a flow's route at which its packets pass a participant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Index of the flow.
    pub flow: usize,
    /// Direction of the packets.
    pub direction: Direction,
    /// Hops before it; at least one. If a proxy splits the flow, only the packets between proxy and user pass it.
    pub hop: usize,
    /// Number of the participant among those of the hosts, as passed to [`Hosts::on_passing`](crate::Hosts::on_passing).
    pub participant: u32,
}

/// Maps steps to numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbering {
    links: u32,
    users: u32,
}

impl Numbering {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        Self { links: scenario.links.len() as u32, users: scenario.users.len() as u32 }
    }

    fn hop(self, hop: Hop) -> Place {
        match hop {
            Hop::Link(link) => Place(link),
            Hop::Radio { user, direction } => {
                Place(self.links + 2 * user + u32::from(direction == Way::Uplink))
            }
        }
    }

    fn participant(self, number: u32) -> Place {
        Place(self.links + 2 * self.users + number)
    }

    #[inline]
    pub(crate) fn step(self, place: Place) -> Step {
        let Some(radio) = place.0.checked_sub(self.links) else { return Step::Link(place.0) };
        match radio.checked_sub(2 * self.users) {
            Some(participant) => Step::Participant(participant),
            None if radio.is_multiple_of(2) => Step::Radio(radio / 2, Way::Downlink),
            None => Step::Radio(radio / 2, Way::Uplink),
        }
    }
}

/// The paths of all flows. Flows usually share them, so that they stay in the processor's cache, unlike the scenario's entries of
/// thousands of flows.
#[derive(Debug)]
pub struct Routes {
    numbering: Numbering,
    /// The distinct paths, one after another.
    places: Vec<Place>,
    /// For every flow, its stretches of `places`, forward and back.
    flows: Vec<[Stretch; 2]>,
    /// For every split, its flow, and the flow's stretches without the proxy and behind it.
    splits: Vec<(u32, [Stretch; 2], [Stretch; 2])>,
}

#[derive(Clone, Copy, Debug)]
struct Stretch {
    begin: u32,
    end: u32,
}

impl Routes {
    /// The paths of a scenario with the participants that packets pass; at a host its middleboxes come first.
    pub(crate) fn new(scenario: &Scenario, stops: &[Stop]) -> Self {
        let numbering = Numbering::new(scenario);
        let middleboxes = scenario.middleboxes.len() as u32;
        let (mut places, mut known) = (Vec::new(), HashMap::new());
        // Hops from `first` on, each with the participants behind it.
        let mut stretch = |flow: usize, direction: Direction, first: usize, path: &[Hop]| {
            let mut way = Vec::with_capacity(path.len());
            for (hop, &over) in (first + 1..).zip(path) {
                way.push(numbering.hop(over));
                let host = scenario.ends(over).1;
                let at_host = (0..).zip(&scenario.middleboxes).filter(|(_, own)| own.host == host);
                way.extend(at_host.map(|(number, _)| numbering.participant(number)));
                let here = |stop: &&Stop| stop.flow == flow && stop.direction == direction && stop.hop == hop;
                let numbers = stops.iter().filter(here).map(|stop| middleboxes + stop.participant);
                way.extend(numbers.map(|number| numbering.participant(number)));
            }
            *known.entry(way).or_insert_with_key(|way| {
                let begin = places.len() as u32;
                places.extend(way);
                Stretch { begin, end: places.len() as u32 }
            })
        };
        let whole = |(index, flow): (usize, &FlowSpec)| {
            [
                stretch(index, Direction::Forward, 0, &flow.path),
                stretch(index, Direction::Back, 0, &flow.back),
            ]
        };
        let mut flows: Vec<[Stretch; 2]> = scenario.flows.iter().enumerate().map(whole).collect();
        let mut splits = Vec::new();
        for (_, split) in self::splits(scenario) {
            let flow = &scenario.flows[split.flow];
            let (to_proxy, to_user) = flow.path.split_at(split.forward);
            let (from_user, from_proxy) = flow.back.split_at(split.back);
            let behind = [
                stretch(split.flow, Direction::Forward, split.forward, to_user),
                stretch(split.flow, Direction::Back, 0, from_user),
            ];
            splits.push((split.flow as u32, flows[split.flow], behind));
            let nobody = usize::MAX;
            flows.push([
                stretch(nobody, Direction::Forward, 0, to_proxy),
                stretch(nobody, Direction::Back, split.back, from_proxy),
            ]);
        }
        Self { numbering, places, flows, splits }
    }

    /// From now on the packets of a split flow go only between proxy and user, or all the way.
    pub fn split(&mut self, split: usize, is_split: bool) {
        let (flow, whole, behind) = self.splits[split];
        self.flows[flow as usize] = if is_split { behind } else { whole };
    }

    /// For each link, whether everything that comes out of it enters a cell.
    pub fn before_cells(&self) -> Vec<bool> {
        let mut before_cells = vec![true; self.numbering.links as usize];
        for Stretch { begin, end } in self.flows.iter().flatten() {
            let way = self.places.get(*begin as usize..*end as usize).unwrap_or_default();
            for (place, next) in way.iter().zip(way.iter().skip(1).map(Some).chain([None])) {
                let goes = next.is_some_and(|next| matches!(self.step(*next), Step::Radio(..)));
                if let Step::Link(link) = self.step(*place) {
                    before_cells[link as usize] &= goes;
                }
            }
        }
        before_cells
    }

    #[inline]
    pub(crate) fn step(&self, place: Place) -> Step {
        self.numbering.step(place)
    }

    /// The step after `hop` others; `None` at the end of the path.
    #[inline]
    pub fn place(&self, flow: u32, direction: Direction, hop: u16) -> Option<Place> {
        let [forward, back] = self.flows[flow as usize];
        let Stretch { begin, end } = if direction == Direction::Forward { forward } else { back };
        let place = begin + u32::from(hop);
        if place < end { self.places.get(place as usize).copied() } else { None }
    }
}

/// The split flows with the index of their proxy, in the order of their connections to servers, which are numbered after the
/// scenario's flows.
pub fn splits(scenario: &Scenario) -> impl Iterator<Item = (usize, SplitSpec)> {
    let of_proxy = |(index, proxy): (usize, &ranpace_scenario::ProxySpec)| {
        proxy.splits.iter().map(move |split| (index, *split)).collect::<Vec<_>>()
    };
    scenario.proxies.iter().enumerate().flat_map(of_proxy)
}
