//! `[[pep]]`: a Lightweight PEP, which observes the packets that cross its host and reports to their server (Krämer et al. 2019,
//! section II-C; `ranpace_pep::lightweight`). It can be made to misbehave.
//!
//! It applies to TCP and QUIC flows whose data cross the host, arriving over wired links.

use ranpace_units::{Span, Time};

use crate::flow::Flows;
use crate::key::{ANY_TIME, Duration, Group, Is, Key, Name, Number, Open, Required, Within, Words};
use crate::model::{PepLie, PepSpec, Transport, WatchSpec};
use crate::network::Network;
use crate::reader::Section;

/// Most PEPs in a scenario. Ours.
const MOST: usize = 100;
const MOST_DELAY: Span = Span::from_secs(60);

const NAME: Key<Name> =
    Key { name: "name", kind: Name("text"), default: Open("`pep1`, `pep2` ... by position"), about: "" };
const HOST: Key<Name, Required> =
    Key { name: "host", kind: Name("name"), default: Required, about: "host whose packets it observes" };
const DELAY: Key<Duration, Is<Span>> = Key {
    name: "delay",
    kind: Within(Span::ZERO..=MOST_DELAY),
    default: Is(Span::ZERO),
    about: "delay of reports on top of the propagation delay back to the server",
};
const LOSS: Key<Number, Is<f64>> =
    Key { name: "loss", kind: Number(0.0..=1.0), default: Is(0.0), about: "share of reports that are lost" };
const START: Key<Duration, Is<Span>> =
    Key { name: "start", kind: ANY_TIME, default: Is(Span::ZERO), about: "time at which it starts" };
const STOP: Key<Duration> =
    Key { name: "stop", kind: ANY_TIME, default: Open("never"), about: "time at which it disappears" };
const LIE: Key<Words<PepLie>, Is<PepLie>> = Key {
    name: "lie",
    kind: Words(&[
        ("none", PepLie::None),
        ("all", PepLie::All),
        ("ahead", PepLie::Ahead),
        ("gaps", PepLie::Gaps),
        ("replay", PepLie::Replay),
        ("flood", PepLie::Flood),
        ("forge", PepLie::Forge),
    ]),
    default: Is(PepLie::None),
    about: "how it misreports; see below",
};
const FAULTS_FROM: Key<Duration, Is<Span>> = Key {
    name: "faults_from",
    kind: ANY_TIME,
    default: Is(Span::ZERO),
    about: "time from which `delay`, `loss` and `lie` apply; until then reports are correct and prompt",
};

/// The keys of `[[pep]]`.
pub(crate) const KEYS: Group = &[&NAME, &HOST, &DELAY, &LOSS, &START, &STOP, &LIE, &FAULTS_FROM];

/// Reads all `[[pep]]`.
pub(crate) fn read(root: &mut Section<'_>, network: &Network, flows: &Flows) -> Vec<PepSpec> {
    let Some(field) = root.field("pep") else { return Vec::new() };
    let mut peps: Vec<PepSpec> = Vec::new();
    for (index, section) in field.tables().into_iter().enumerate() {
        if index >= MOST {
            section.error(format!("more than {MOST} PEPs"));
            break;
        }
        let (at, report) = (section.at, section.report);
        let Some(pep) = read_entry(section.of(&[KEYS]), index + 1, network, flows) else { continue };
        if peps.iter().any(|other| other.name == pep.name) {
            report.add(at, format!("there is another PEP called {:?}", pep.name));
        }
        let twice = pep.watches.iter().find_map(|watch| {
            let other = peps.iter().find(|other| other.watches.iter().any(|own| own.flow == watch.flow))?;
            Some((&flows.all[watch.flow].name, &other.name))
        });
        if let Some((flow, other)) = twice {
            report.add(at, format!("flow {flow:?} is already watched by the PEP {other:?}"));
        }
        peps.push(pep);
    }
    peps
}

fn read_entry(mut section: Section<'_>, number: usize, network: &Network, flows: &Flows) -> Option<PepSpec> {
    let name = section.get(&NAME).unwrap_or_else(|| format!("pep{number}"));
    let host_field = section.find(&HOST);
    let host = host_field.as_ref().and_then(|field| network.host_of(field));
    let (delay, loss) = (section.get(&DELAY), section.get(&LOSS));
    let (start, stop) = (section.get(&START), section.get(&STOP));
    let (lie, faults_from) = (section.get(&LIE), section.get(&FAULTS_FROM));
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
    #![allow(clippy::unwrap_used)] // allowed in tests

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
            (
                "host = \"edge\"\n[[pep]]\nname = \"b\"\nhost = \"mast\"",
                "already watched by the PEP \"pep1\"",
            ),
        ] {
            let error = parse(&with(pep), "", &mut ()).unwrap_err().to_string();
            assert!(error.contains(expected), "{pep}: {error}");
        }
    }
}
