//! `[[middlebox]]`: something that all packets pass that cross its host (`ranpace_pep::middlebox`).

use ranpace_pep::middlebox::Kind;

use crate::model::MiddleboxSpec;
use crate::network::{Network, unknown};
use crate::reader::Section;

/// The keys of `[[middlebox]]`. A test compares them with what is read.
pub(crate) const KEYS: [&str; 4] = ["name", "host", "kind", "packets"];

/// Most of them in a scenario. Ours.
const MOST: usize = 100;

/// Reads all `[[middlebox]]`.
pub(crate) fn read(root: &mut Section<'_>, network: &Network) -> Vec<MiddleboxSpec> {
    let Some(field) = root.field("middlebox") else { return Vec::new() };
    let mut all: Vec<MiddleboxSpec> = Vec::new();
    for (index, section) in field.tables().into_iter().enumerate() {
        if index >= MOST {
            section.error(format!("more than {MOST} of them"));
            break;
        }
        let (at, report) = (section.at, section.report);
        let Some(middlebox) = read_entry(section, index + 1, network) else { continue };
        if all.iter().any(|other| other.name == middlebox.name) {
            report.add(at, format!("there is another one called {:?}", middlebox.name));
        }
        all.push(middlebox);
    }
    all
}

fn read_entry(mut section: Section<'_>, number: usize, network: &Network) -> Option<MiddleboxSpec> {
    let name = section.field("name").and_then(|field| field.name().map(str::to_owned));
    let name = name.unwrap_or_else(|| format!("middlebox{number}"));
    let host = section.required("host").and_then(|field| {
        let name = field.name()?;
        let host = network.hosts.iter().position(|host| host == name);
        if host.is_none() && !network.incomplete {
            field.error(unknown("host", name, network.hosts.iter().map(String::as_str)));
        }
        host
    });
    let kind = section.required("kind").and_then(|field| field.word(&["drop_every"]));
    let kind = match kind {
        Some("drop_every") => section
            .required("packets")
            .and_then(|field| field.whole(2..=u64::MAX))
            .map(|packets| Kind::DropEvery { packets }),
        _ => None,
    };
    section.finish();
    Some(MiddleboxSpec { name, host: host?, kind: kind? })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a test may

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

    #[test]
    fn every_key_can_be_varied_and_is_on_its_page() {
        const PAGE: &str = include_str!("../../../docs/middleboxes.md");
        let entry = "host = \"edge\"\nkind = \"drop_every\"\npackets = 9";
        let error = parse(&with(&format!("{entry}\nzzz = 1")), "", &mut ()).unwrap_err().to_string();
        let known = error.split("expected one of ").nth(1).unwrap().split(';').next().unwrap();
        let mut keys: Vec<&str> = known.lines().next().unwrap().split(", ").collect();
        for key in &keys {
            assert!(PAGE.contains(&format!("`{key}`")), "{key} is not on the page");
            assert!(crate::vary(&with(entry), &format!("middlebox.{key}"), "1").is_ok(), "{key}");
        }
        keys.sort_unstable();
        let mut own = super::KEYS.to_vec();
        own.sort_unstable();
        assert_eq!(keys, own);
    }
}
