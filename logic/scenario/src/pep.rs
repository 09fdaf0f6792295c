//! `[[pep]]`: a Lightweight PEP, which observes the packets that cross its host and reports to their server (Krämer et al. 2019,
//! section II-C; `ranpace_pep::lightweight`). It can be made to misbehave.
//!
//! It applies to TCP and QUIC flows whose data cross the host, arriving over wired links.

use ranpace_units::{Span, Time};

use crate::entries::{Entry, EntryKind, flows_across, read_entries};
use crate::flow::Flows;
use crate::key::{ANY_TIME, Duration, Group, Is, Key, Name, Number, Open, Required, Within, Words};
use crate::model::{FlowSpec, PepLie, PepSpec, Transport, WatchSpec};
use crate::network::Network;
use crate::reader::Section;

/// Longest delay of a report. Ours.
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

impl Entry for PepSpec {
    fn name(&self) -> &str {
        &self.name
    }

    fn flows(&self) -> impl Iterator<Item = usize> {
        self.watches.iter().map(|watch| watch.flow)
    }
}

/// Reads all `[[pep]]`.
pub(crate) fn read(root: &mut Section<'_>, network: &Network, flows: &Flows) -> Vec<PepSpec> {
    let kind = EntryKind { key: "pep", noun: "PEP", plural: "PEPs", handled: "watched" };
    read_entries(root, &kind, flows, |section, number| {
        read_entry(section.of(&[KEYS]), number, network, flows)
    })
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
    let places = |flow: &FlowSpec| match flow.transport {
        Transport::Tcp { .. } | Transport::Quic { .. } => network.stands_on(flow, host),
        _ => None,
    };
    let watches =
        flows_across(flows, &host_field, places, |flow, (forward, back)| WatchSpec { flow, forward, back })?;
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
    use crate::entries::TEST_SCENARIO;
    use crate::parse;

    const PAGE: &str = r#"
[[flow]]
name = "page"
from = "server"
to = "phone"
transport = "quic"
cc = "mdcc"
"#;

    fn with(pep: &str) -> String {
        format!("{TEST_SCENARIO}{PAGE}[[pep]]\n{pep}\n")
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
