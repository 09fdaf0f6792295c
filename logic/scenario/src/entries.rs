//! Reads what `[[proxy]]`, `[[pep]]`, `[[middlebox]]` and `[[rewriter]]` have in common: numbered entries with unique names, each at a host, and flows that
//! at most one entry of a kind handles.

use crate::field::Field;
use crate::flow::Flows;
use crate::model::FlowSpec;
use crate::reader::Section;

/// Most entries of a kind in a scenario. Ours.
const MOST: usize = 100;

/// A kind of entry.
pub(crate) struct EntryKind {
    /// The key in the scenario.
    pub key: &'static str,
    /// In messages, for one and for several.
    pub noun: &'static str,
    pub plural: &'static str,
    /// The verb for what an entry does to a flow.
    pub handled: &'static str,
}

/// An entry after reading.
pub(crate) trait Entry {
    fn name(&self) -> &str;

    /// Numbers of the flows that only one entry may handle.
    fn flows(&self) -> impl Iterator<Item = usize>;
}

/// Reads all entries of a kind. `read_entry` gets a section and the number of the entry, from 1.
pub(crate) fn read_entries<'t, E: Entry>(
    root: &mut Section<'t>,
    kind: &EntryKind,
    flows: &Flows,
    mut read_entry: impl FnMut(Section<'t>, usize) -> Option<E>,
) -> Vec<E> {
    let Some(field) = root.field(kind.key) else { return Vec::new() };
    let mut entries: Vec<E> = Vec::new();
    for (index, section) in field.tables().into_iter().enumerate() {
        if index >= MOST {
            section.error(format!("more than {MOST} {}", kind.plural));
            break;
        }
        let (at, report) = (section.at, section.report);
        let Some(entry) = read_entry(section, index + 1) else { continue };
        if entries.iter().any(|other| other.name() == entry.name()) {
            report.add(at, format!("there is another {} called {:?}", kind.noun, entry.name()));
        }
        let twice = entry.flows().find_map(|flow| {
            let other = entries.iter().find(|other| other.flows().any(|own| own == flow))?;
            Some((&flows.all[flow].name, other.name()))
        });
        if let Some((flow, other)) = twice {
            let EntryKind { noun, handled, .. } = kind;
            report.add(at, format!("flow {flow:?} is already {handled} by the {noun} {other:?}"));
        }
        entries.push(entry);
    }
    entries
}

/// The flows that cross a host, with the places on the ways of their data and acknowledgements that `places` returns. Its error is
/// reported at `host`.
pub(crate) fn flows_across<T>(
    flows: &Flows,
    host: &Field<'_>,
    places: impl Fn(&FlowSpec) -> Option<Result<(usize, usize), String>>,
    make: impl Fn(usize, (usize, usize)) -> T,
) -> Option<Vec<T>> {
    let mut found = Vec::new();
    for (index, flow) in flows.all.iter().enumerate() {
        match places(flow) {
            Some(Ok(places)) => found.push(make(index, places)),
            Some(Err(problem)) => {
                host.error(problem);
                return None;
            }
            None => {}
        }
    }
    Some(found)
}

/// A server behind an edge and a cell, with flows to and from its user: what tests of entries begin with.
#[cfg(test)]
pub(crate) const TEST_SCENARIO: &str = r#"
duration = "1s"
[[link]]
from = "server"
to = "edge"
rate = "1Gbit/s"
delay = "10ms"
duplex = true
[[link]]
from = "edge"
to = "mast"
rate = "1Gbit/s"
delay = "1ms"
duplex = true
[[cell]]
host = "mast"
preset = "lte"
[[user]]
name = "phone"
position = [50, 0]
[[flow]]
name = "down"
from = "server"
to = "phone"
cc = "cubic"
[[flow]]
name = "up"
from = "phone"
to = "server"
cc = "cubic"
[[flow]]
name = "call"
from = "server"
to = "phone"
transport = "udp"
workload = { kind = "cbr", rate = "100kbit/s" }
"#;
