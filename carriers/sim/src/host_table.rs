//! The host table of SIGMA's specification, section 6: what a device's connections learned about the path to a destination, kept
//! for its next connections to it.
//!
//! Nothing is copied while connections run. When a connection begins, all others between the same two hosts, closed ones included,
//! are asked for their knowledge.

use std::collections::BTreeMap;

use ranpace_cc::PathMemory;
use ranpace_phy::Direction as Way;
use ranpace_scenario::{Hop, Scenario, Transport};

use crate::flow::{Ends, Flow};

/// The table of a scenario.
#[derive(Debug)]
pub(crate) struct HostTable {
    /// For each flow its entry; none if its sender is not a device.
    of: Vec<Option<u32>>,
    table: Vec<Entry>,
}

/// A path: the flows that take it, and what is known of it.
#[derive(Debug, Default)]
struct Entry {
    flows: Vec<u32>,
    known: Option<PathMemory>,
}

impl HostTable {
    /// An empty table.
    pub fn new(scenario: &Scenario) -> Self {
        let (mut places, mut table) = (BTreeMap::new(), Vec::<Entry>::new());
        let entry_of = |(index, flow): (u32, &ranpace_scenario::FlowSpec)| {
            let from_device = matches!(flow.path.first(), Some(Hop::Radio { direction: Way::Uplink, .. }));
            let remembers = matches!(flow.transport, Transport::Tcp { .. } | Transport::Quic { .. });
            (from_device && remembers).then(|| {
                let place = *places.entry((flow.from, flow.to)).or_insert_with(|| {
                    table.push(Entry::default());
                    table.len() as u32 - 1 // there are fewer entries than flows
                });
                table[place as usize].flows.push(index);
                place
            })
        };
        let of = (0..).zip(&scenario.flows).map(entry_of).collect();
        Self { of, table }
    }

    /// Returns the known path when a connection of this flow begins. Call it before the previous connection is discarded.
    pub fn recall(&mut self, flow: u32, flows: &[Flow]) -> Option<PathMemory> {
        let place = (*self.of.get(flow as usize)?)?;
        let Entry { flows: own, known } = self.table.get_mut(place as usize)?;
        for &other in &*own {
            let memory = match flows.get(other as usize).map(|flow| &flow.ends) {
                Some(Ends::Tcp(sender, _)) => sender.control().memory(),
                Some(Ends::Quic(ends)) => ends.memory(),
                _ => None,
            };
            if let Some(memory) = memory {
                *known = Some(known.map_or(memory, |known| known.join(memory)));
            }
        }
        *known
    }
}
