//! `[[pep]]`: a Lightweight PEP, which watches the packets that cross its host and tells their server (Krämer et al. 2019,
//! section II-C; `ranpace_pep::lightweight`). It can be made to lie.
//!
//! Which flows: those of TCP and QUIC whose data cross the host on their way, coming over wires.

use ranpace_units::{Span, Time};

use crate::flow::Flows;
use crate::model::{PepLie, PepSpec, Transport, WatchSpec};
use crate::network::{Network, unknown};
use crate::reader::Section;

/// The keys of `[[pep]]`. A test compares them with what is read.
pub(crate) const KEYS: [&str; 8] = ["name", "host", "delay", "loss", "start", "stop", "lie", "faults_from"];

/// Most of them in a scenario. Ours.
const MOST: usize = 100;
const MOST_DELAY: Span = Span::from_secs(60);
const LIES: [(&str, PepLie); 7] = [
    ("none", PepLie::None),
    ("all", PepLie::All),
    ("ahead", PepLie::Ahead),
    ("gaps", PepLie::Gaps),
    ("replay", PepLie::Replay),
    ("flood", PepLie::Flood),
    ("forge", PepLie::Forge),
];

/// Reads all `[[pep]]`.
pub(crate) fn read(root: &mut Section<'_>, network: &Network, flows: &Flows) -> Vec<PepSpec> {
    let Some(field) = root.field("pep") else { return Vec::new() };
    let mut peps: Vec<PepSpec> = Vec::new();
    for (index, section) in field.tables().into_iter().enumerate() {
        if index >= MOST {
            section.error(format!("more than {MOST} of them"));
            break;
        }
        let (at, report) = (section.at, section.report);
        let Some(pep) = read_entry(section, index + 1, network, flows) else { continue };
        if peps.iter().any(|other| other.name == pep.name) {
            report.add(at, format!("there is another one called {:?}", pep.name));
        }
        let twice = pep.watches.iter().find_map(|watch| {
            let other = peps.iter().find(|other| other.watches.iter().any(|own| own.flow == watch.flow))?;
            Some((&flows.all[watch.flow].name, &other.name))
        });
        if let Some((flow, other)) = twice {
            report.add(at, format!("flow {flow:?} is watched by {other:?} already"));
        }
        peps.push(pep);
    }
    peps
}

fn read_entry(mut section: Section<'_>, number: usize, network: &Network, flows: &Flows) -> Option<PepSpec> {
    let name = section.field("name").and_then(|field| field.name().map(str::to_owned));
    let name = name.unwrap_or_else(|| format!("pep{number}"));
    let host_field = section.required("host");
    let host = host_field.as_ref().and_then(|field| {
        let name = field.name()?;
        let host = network.hosts.iter().position(|host| host == name);
        if host.is_none() && !network.incomplete {
            field.error(unknown("host", name, network.hosts.iter().map(String::as_str)));
        }
        host
    });
    let delay = section.quantity("delay", Span::ZERO..=MOST_DELAY).unwrap_or(Span::ZERO);
    let loss = section.number("loss", 0.0..=1.0).unwrap_or(0.0);
    let start = section.quantity("start", Span::ZERO..=Span::MAX).unwrap_or(Span::ZERO);
    let stop = section.quantity("stop", Span::ZERO..=Span::MAX);
    let words = LIES.map(|(word, _)| word);
    let lie = section.field("lie").and_then(|field| field.word(&words));
    let lie = LIES.iter().find(|(word, _)| Some(*word) == lie).map_or(PepLie::None, |(_, lie)| *lie);
    let faults_from = section.quantity("faults_from", Span::ZERO..=Span::MAX).unwrap_or(Span::ZERO);
    section.finish();
    let (host, host_field) = (host?, host_field?);
    let mut watches = Vec::new();
    for (index, flow) in flows.all.iter().enumerate() {
        if !matches!(flow.transport, Transport::Tcp { .. } | Transport::Quic { .. }) {
            continue;
        }
        match network.stands_on(flow, host) {
            Some(Ok((forward, back))) => watches.push(WatchSpec { flow: index, forward, back }),
            Some(Err(problem)) => {
                host_field.error(problem);
                return None;
            }
            None => {}
        }
    }
    Some(PepSpec {
        name,
        host,
        delay,
        loss,
        start: Time::ZERO + start,
        stop: stop.map(|stop| Time::ZERO + stop),
        lie,
        faults_from: Time::ZERO + faults_from,
        watches,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a test may

    use ranpace_units::Span;

    use super::PepLie;
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
cc = "mdcc"
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
[[flow]]
name = "page"
from = "server"
to = "phone"
transport = "quic"
cc = "mdcc"
"#;

    fn with(pep: &str) -> String {
        format!("{TEXT}[[pep]]\n{pep}\n")
    }

    #[test]
    fn tcp_and_quic_towards_a_user_are_watched_and_nothing_else() {
        for (host, forward, back) in [("edge", 1, 2), ("mast", 2, 1)] {
            let text = with(&format!("host = \"{host}\"\nlie = \"gaps\"\ndelay = \"5ms\""));
            let scenario = parse(&text, "", &mut ()).unwrap();
            let [pep] = &scenario.peps[..] else { panic!() };
            assert_eq!((pep.name.as_str(), pep.lie, pep.delay), ("pep1", PepLie::Gaps, Span::from_millis(5)));
            let watches: Vec<_> = pep.watches.iter().map(|own| (own.flow, own.forward, own.back)).collect();
            assert_eq!(watches, [(0, forward, back), (3, forward, back)], "{host}");
        }
    }

    #[test]
    fn mistakes_are_told() {
        for (pep, expected) in [
            ("delay = \"1ms\"", "missing key \"host\""),
            ("host = \"edgy\"", "unknown host \"edgy\""),
            ("host = \"edge\"\nlie = \"lot\"", "lie"),
            ("host = \"edge\"\nloss = 2", "loss"),
            ("host = \"edge\"\n[[pep]]\nname = \"b\"\nhost = \"mast\"", "watched by \"pep1\" already"),
        ] {
            let error = parse(&with(pep), "", &mut ()).unwrap_err().to_string();
            assert!(error.contains(expected), "{pep}: {error}");
        }
    }

    #[test]
    fn every_key_can_be_varied_and_is_on_its_page() {
        const PAGE: &str = include_str!("../../../docs/lightweight-pep.md");
        let error = parse(&with("host = \"edge\"\nzzz = 1"), "", &mut ()).unwrap_err().to_string();
        let known = error.split("expected one of ").nth(1).unwrap().split(';').next().unwrap();
        let mut keys: Vec<&str> = known.lines().next().unwrap().split(", ").collect();
        for key in &keys {
            assert!(PAGE.contains(&format!("`{key}`")), "{key} is not on the page");
            assert!(crate::vary(&with(""), &format!("pep.{key}"), "1").is_ok(), "{key}");
        }
        keys.sort_unstable();
        let mut own = super::KEYS.to_vec();
        own.sort_unstable();
        assert_eq!(keys, own);
    }
}
