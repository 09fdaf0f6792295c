//! `[[middlebox]]`: handles all packets that cross its host (`ranpace_pep::middlebox`).

use ranpace_pep::middlebox::Kind;

use crate::entries::{Entry, EntryKind, read_entries};
use crate::flow::Flows;
use crate::key::{Group, Key, Name, Open, Required, Whole, Words};
use crate::model::MiddleboxSpec;
use crate::network::Network;
use crate::reader::Section;

const NAME: Key<Name> = Key {
    name: "name",
    kind: Name("text"),
    default: Open("`middlebox1`, `middlebox2` ... by position"),
    about: "unique among the middleboxes",
};
const HOST: Key<Name, Required> = Key {
    name: "host",
    kind: Name("name"),
    default: Required,
    about: "host whose packets pass the middlebox: those that arrive on a link or over the air, to be forwarded or to end \
            there",
};
const KIND: Key<Words<KindWord>, Required> = Key {
    name: "kind",
    kind: Words(&[("drop_every", KindWord::DropEvery)]),
    default: Required,
    about: "type of middlebox",
};
const PACKETS: Key<Whole<u64>, Required> = Key {
    name: "packets",
    kind: Whole::new(2..=u64::MAX),
    default: Required,
    about: "`drop_every`: drops one in this many data packets of each flow",
};

/// The keys of `[[middlebox]]`.
pub(crate) const KEYS: Group = &[&NAME, &HOST, &KIND, &PACKETS];

/// Values of `kind`.
#[derive(Clone, Copy)]
enum KindWord {
    DropEvery,
}

impl Entry for MiddleboxSpec {
    fn name(&self) -> &str {
        &self.name
    }

    /// Several middleboxes may handle a flow.
    fn flows(&self) -> impl Iterator<Item = usize> {
        core::iter::empty()
    }
}

/// Reads all `[[middlebox]]`.
pub(crate) fn read(root: &mut Section<'_>, network: &Network, flows: &Flows) -> Vec<MiddleboxSpec> {
    let kind = EntryKind { key: "middlebox", noun: "middlebox", plural: "middleboxes", handled: "handled" };
    read_entries(root, &kind, flows, |section, number| read_entry(section.of(&[KEYS]), number, network))
}

fn read_entry(mut section: Section<'_>, number: usize, network: &Network) -> Option<MiddleboxSpec> {
    let name = section.get(&NAME).unwrap_or_else(|| format!("middlebox{number}"));
    let host = section.find(&HOST).and_then(|field| network.host_of(&field));
    let kind = section.get(&KIND).and_then(|kind| match kind {
        KindWord::DropEvery => section.get(&PACKETS).map(|packets| Kind::DropEvery { packets }),
    });
    section.finish();
    Some(MiddleboxSpec { name, host: host?, kind: kind? })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // allowed in tests

    use ranpace_pep::middlebox::Kind;

    use crate::parse;

    const TEXT: &str = r#"
duration = "1s"
[[link]]
from = "server"
to = "edge"
rate = "1Gbit/s"
delay = "10ms"
duplex = true
[[link]]
from = "edge"
to = "phone"
rate = "10Mbit/s"
delay = "1ms"
duplex = true
[[flow]]
from = "server"
to = "phone"
cc = "cubic"
"#;

    fn with(middlebox: &str) -> String {
        format!("{TEXT}[[middlebox]]\n{middlebox}\n")
    }

    #[test]
    fn a_middlebox_has_a_host_and_a_kind_with_its_settings() {
        let text = with("host = \"edge\"\nkind = \"drop_every\"\npackets = 100");
        let scenario = parse(&text, "", &mut ()).unwrap();
        let [middlebox] = &scenario.middleboxes[..] else { panic!() };
        assert_eq!(middlebox.name, "middlebox1");
        assert_eq!(scenario.hosts[middlebox.host], "edge");
        assert_eq!(middlebox.kind, Kind::DropEvery { packets: 100 });
    }

    #[test]
    fn mistakes_are_told() {
        for (middlebox, expected) in [
            ("host = \"edge\"", "missing key \"kind\""),
            ("host = \"edgy\"\nkind = \"drop_every\"\npackets = 9", "unknown host \"edgy\""),
            ("host = \"edge\"\nkind = \"drop_ever\"", "drop_every"),
            ("host = \"edge\"\nkind = \"drop_every\"", "missing key \"packets\""),
            ("host = \"edge\"\nkind = \"drop_every\"\npackets = 1", "packets"),
        ] {
            let error = parse(&with(middlebox), "", &mut ()).unwrap_err().to_string();
            assert!(error.contains(expected), "{middlebox}: {error}");
        }
    }
}
