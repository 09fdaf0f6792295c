//! Which links and cells a packet crosses.

use std::collections::HashMap;

use ranpace_phy::Direction as Way;
use ranpace_scenario::{Hop, Scenario, SplitSpec};

use crate::packet::Direction;

/// A step on a way, as a number: below the number of links a link, and behind them the radio of a user, downlink and uplink.
#[derive(Clone, Copy, Debug)]
pub struct Place(u32);

/// What a place is.
pub(crate) enum Step {
    /// A link, by its index.
    Link(u32),
    /// The radio of a user.
    Radio(u32, Way),
}

impl Place {
    #[inline]
    pub(crate) fn step(self, links: usize) -> Step {
        match self.0.checked_sub(links as u32) {
            None => Step::Link(self.0),
            Some(radio) if radio.is_multiple_of(2) => Step::Radio(radio / 2, Way::Downlink),
            Some(radio) => Step::Radio(radio / 2, Way::Uplink),
        }
    }
}

/// The ways of all flows. Flows mostly share them, so that they stay in the processor's cache, where the scenario's entry
/// of a flow among thousands does not.
#[derive(Debug)]
pub struct Routes {
    /// The distinct ways, one behind the other.
    places: Vec<Place>,
    /// For every flow its stretch of `places`, forwards and back.
    flows: Vec<[Stretch; 2]>,
    /// For every split its flow, and the flow's stretches without the proxy and behind it.
    splits: Vec<(u32, [Stretch; 2], [Stretch; 2])>,
}

#[derive(Clone, Copy, Debug)]
struct Stretch {
    begin: u32,
    end: u32,
}

impl Routes {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let (mut places, mut known) = (Vec::new(), HashMap::new());
        let links = scenario.links.len() as u32;
        let mut stretch = |path: &'_ [Hop]| {
            *known.entry(path.to_vec()).or_insert_with(|| {
                let begin = places.len() as u32;
                places.extend(path.iter().map(|hop| match *hop {
                    Hop::Link(link) => Place(link),
                    Hop::Radio { user, direction } => {
                        Place(links + 2 * user + u32::from(direction == Way::Uplink))
                    }
                }));
                Stretch { begin, end: places.len() as u32 }
            })
        };
        let mut flows: Vec<[Stretch; 2]> =
            scenario.flows.iter().map(|flow| [stretch(&flow.path), stretch(&flow.back)]).collect();
        let mut splits = Vec::new();
        for (_, split) in self::splits(scenario) {
            let flow = &scenario.flows[split.flow];
            let (to_proxy, to_user) = flow.path.split_at(split.forward);
            let (from_user, from_proxy) = flow.back.split_at(split.back);
            let behind = [stretch(to_user), stretch(from_user)];
            splits.push((split.flow as u32, flows[split.flow], behind));
            flows.push([stretch(to_proxy), stretch(from_proxy)]);
        }
        Self { places, flows, splits }
    }

    /// From now on the packets of a split flow go only between proxy and user, or all the way.
    pub fn split(&mut self, split: usize, is_split: bool) {
        let (flow, whole, behind) = self.splits[split];
        self.flows[flow as usize] = if is_split { behind } else { whole };
    }

    /// For each link whether all that comes out of it goes into a cell.
    pub fn before_cells(&self, links: usize) -> Vec<bool> {
        let mut before_cells = vec![true; links];
        for Stretch { begin, end } in self.flows.iter().flatten() {
            let way = self.places.get(*begin as usize..*end as usize).unwrap_or_default();
            for (place, next) in way.iter().zip(way.iter().skip(1).map(Some).chain([None])) {
                let goes = next.is_some_and(|next| matches!(next.step(links), Step::Radio(..)));
                if let Step::Link(link) = place.step(links) {
                    before_cells[link as usize] &= goes;
                }
            }
        }
        before_cells
    }

    /// What comes after `hop` others, or `None` at the end of the way.
    #[inline]
    pub fn place(&self, flow: u32, direction: Direction, hop: u16) -> Option<Place> {
        let [forward, back] = self.flows[flow as usize];
        let Stretch { begin, end } = if direction == Direction::Forward { forward } else { back };
        let place = begin + u32::from(hop);
        if place < end { self.places.get(place as usize).copied() } else { None }
    }
}

/// The flows that proxies split, with the index of their proxy: in the order of the flows' connections to servers, which
/// are numbered behind the scenario's flows.
pub fn splits(scenario: &Scenario) -> impl Iterator<Item = (usize, SplitSpec)> {
    let of_proxy = |(index, proxy): (usize, &ranpace_scenario::ProxySpec)| {
        proxy.splits.iter().map(move |split| (index, *split)).collect::<Vec<_>>()
    };
    scenario.proxies.iter().enumerate().flat_map(of_proxy)
}
