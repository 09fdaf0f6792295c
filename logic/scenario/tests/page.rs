//! The reference page: each of its examples is a valid scenario, and it names every key.
#![allow(clippy::unwrap_used)] // allowed in tests

use std::sync::Arc;

use ranpace_link::{QueueConfig, Service, Trace};
use ranpace_scenario::{ChangeKind, Hop, Scenario, TraceSource, Transport, Workload, key_table, parse};
use ranpace_tcp::EcnFeedback;
use ranpace_units::{Rate, Span};

const PAGE: &str = include_str!("../../../docs/scenarios.md");

/// Provides any trace.
struct Any;

impl TraceSource for Any {
    fn load(&mut self, _: &str) -> Result<Arc<Trace>, String> {
        Trace::from_millis(1..=100).map(Arc::new).map_err(|error| error.to_string())
    }
}

fn examples() -> Vec<Scenario> {
    let blocks = PAGE.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks
        .map(|block| parse(block, "example.toml", &mut Any).unwrap_or_else(|e| panic!("{e}\n{block}")))
        .collect()
}

fn example(name: &str) -> Scenario {
    examples().into_iter().find(|scenario| scenario.name == name).unwrap()
}

/// The keys listed in the answer to an unknown key.
fn keys(text: &str) -> Vec<String> {
    let error = parse(text, "", &mut Any).unwrap_err().to_string();
    let known = error.split("expected one of ").nth(1).unwrap_or_else(|| panic!("{error}"));
    known.lines().next().unwrap().split(';').next().unwrap().split(", ").map(str::to_owned).collect()
}

#[test]
fn every_example_is_a_scenario() {
    assert_eq!(examples().len(), 5);
}

#[test]
fn every_key_is_on_the_page_and_can_be_varied() {
    for (head, text) in [
        ("", "zzz = 1"),
        ("link.", "[[link]]\nzzz = 1"),
        ("flow.", "[[flow]]\nzzz = 1"),
        ("change.", "[[change]]\nzzz = 1"),
        ("rnis.", "[rnis]\nzzz = 1"),
        ("modem.", "[modem]\nzzz = 1"),
        ("flow.tcp.", "[[flow]]\ntcp.zzz = 1"),
        ("link.back.", "[[link]]\nback.zzz = 1"),
    ] {
        let keys = keys(text);
        assert!(keys.len() >= 5, "{keys:?}");
        for key in keys {
            let is_on_page = [format!("`{key}`"), format!("`[[{key}]]`"), format!("`[{key}]`")]
                .iter()
                .any(|name| PAGE.contains(name));
            assert!(is_on_page, "{head}{key} is not on the page");
            const TABLES: [&str; 10] =
                ["link", "cell", "user", "flow", "proxy", "pep", "middlebox", "rewriter", "rnis", "modem"];
            if !TABLES.contains(&key.as_str()) && key != "change" || !head.is_empty() {
                let place = "[[link]]\nback = {}\n[[flow]]\n[[flow]]\ntransport = \"udp\"\n[[change]]\n\
                             rate = 1\ndelay = 1\ntarget = 1\nto = 1\nforward = 1\ninterruption = 1\n";
                let varied = ranpace_scenario::vary(place, &format!("{head}{key}"), "1");
                assert!(varied.is_ok(), "{head}{key}: {varied:?}");
            }
        }
    }
    for (kind, table) in [("codel", "queue"), ("fq_codel", "queue"), ("pie", "queue"), ("droptail", "queue")]
    {
        for key in keys(&format!("[[link]]\n{table} = {{ kind = {kind:?}, zzz = 1 }}")) {
            assert!(PAGE.contains(&format!("{key} = ")) || key == "kind", "{kind}: {key} is not on the page");
        }
    }
    for kind in ["fixed", "repeat", "paced", "web", "cbr", "ppbp"] {
        for key in keys(&format!("[[flow]]\nworkload = {{ kind = {kind:?}, zzz = 1 }}")) {
            let row = PAGE.lines().find(|line| line.starts_with(&format!("| `\"{kind}\"` |"))).unwrap();
            assert!(key == "kind" || row.contains(&format!("`{key}")), "{kind}: {key} is not on the page");
        }
    }
}

#[test]
fn replicates_start_one_after_another_and_share_settings() {
    let scenario = example("dumbbell");
    let names: Vec<&str> = scenario.flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(names, ["bulk.1", "bulk.2", "bulk.3", "page"]);
    let starts: Vec<u64> = scenario.flows.iter().map(|flow| flow.start.as_millis()).collect();
    assert_eq!(starts, [0, 2_000, 4_000, 5_000]);
    for flow in &scenario.flows[..3] {
        assert!(
            matches!(&flow.transport, Transport::Tcp { config, .. } if config.ecn == EcnFeedback::Classic)
        );
        assert_eq!(
            (flow.path.as_slice(), flow.back.as_slice()),
            ([Hop::Link(0)].as_slice(), [Hop::Link(1)].as_slice())
        );
    }
    assert!(matches!(scenario.links[1].config.queue, QueueConfig::DropTail { .. }));
    assert_eq!(scenario.links[1].config.service, scenario.links[0].config.service);
    let rate = Rate::from_mbit_per_s(50);
    assert_eq!(scenario.changes[0].what, ChangeKind::LinkRate { link: 0, rate });
}

#[test]
fn a_way_back_is_found_and_udp_has_none() {
    let scenario = example("parking-lot");
    assert_eq!(scenario.hosts, ["a", "b", "c", "d"]);
    assert_eq!(scenario.flows[0].path, [0, 2, 4].map(Hop::Link));
    assert_eq!(scenario.flows[0].back, [5, 3, 1].map(Hop::Link));
    let udp = &scenario.flows[3];
    assert!(udp.back.is_empty() && matches!(udp.workload, Workload::Ppbp { .. }));
}

#[test]
fn a_link_back_has_what_it_does_not_change() {
    let scenario = example("backhaul");
    let [ahead, back] = [&scenario.links[2], &scenario.links[3]];
    assert_eq!(back.name, "radio-1.back");
    assert_eq!((back.from, back.to), (ahead.to, ahead.from));
    assert_eq!(back.config.service, Service::Fixed(Rate::from_mbit_per_s(20)));
    assert_eq!(back.config.queue, ahead.config.queue);
    assert_eq!(back.config.delay, Span::from_millis(5));
    let traced = examples().remove(1);
    assert!(matches!(traced.links[1].config.service, Service::Trace(_)));
}

/// The parts of a cell in backticks.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// A scenario with additional keys in its link and its flow.
fn with(link: &str, flow: &str) -> Scenario {
    let text = format!(
        "duration = \"9s\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1Mbit/s\"\nduplex = true\n{link}\n\
         [[flow]]\nfrom = \"a\"\nto = \"b\"\n{flow}\n"
    );
    parse(&text, "", &mut Any).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// `key = value` for each key of a group whose default is printed as a value.
fn printed_defaults(group: &str) -> Vec<String> {
    let table = key_table(group).unwrap();
    let setting = |row: &str| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let value = cells[3].strip_prefix('`')?.strip_suffix('`').filter(|value| !value.contains('`'))?;
        Some(format!("{} = {value}", cells[1].trim_matches('`')))
    };
    table.lines().skip(2).filter_map(setting).collect()
}

#[test]
fn the_defaults_on_the_page_are_those_that_apply() {
    let tcp = PAGE.split("**TCP.**").nth(1).unwrap().split("## `[[change]]`").next().unwrap();
    let mut settings = Vec::new();
    for row in tcp.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split('|').collect();
        settings
            .extend(quoted(cells[1]).into_iter().zip(quoted(cells[3])).map(|(k, v)| format!("{k} = {v}")));
    }
    assert_eq!(settings.len(), 27);
    let flow = format!("cc = \"newreno\"\ntcp = {{ {} }}", settings.join(", "));
    let mut written = with("", &flow).flows;
    for flow in &mut written {
        // A written value also applies to other controls: see the documentation of `ack_every`.
        if let Transport::Tcp { config, ack_every, .. } = &mut flow.transport {
            assert_eq!(ack_every.take(), Some(config.ack_every));
        }
    }
    assert_eq!(written, with("", "cc = \"newreno\"").flows);

    // QUIC's defaults, and those of a link that plays a trace.
    let settings = printed_defaults("quic");
    assert_eq!(settings.len(), 7, "{settings:?}");
    let [written, plain] = [settings.join(", "), String::new()]
        .map(|quic| with("", &format!("transport = \"quic\"\ncc = \"cubic\"\nquic = {{ {quic} }}")));
    assert_eq!(written.flows, plain.flows);
    let trace = |more: &str| {
        let text = format!(
            "duration = \"9s\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\ntrace = \"x\"\n{more}\n[[link]]\nfrom = \"b\"\nto = \"a\"\n\
             rate = \"1Mbit/s\"\n[[flow]]\nfrom = \"a\"\nto = \"b\"\ncc = \"newreno\"\n"
        );
        parse(&text, "", &mut Any).unwrap_or_else(|error| panic!("{error}\n{text}")).links
    };
    let settings = printed_defaults("link");
    assert_eq!(settings.len(), 6, "{settings:?}");
    assert_eq!(trace(&settings.join("\n")), trace(""));
    let row = PAGE.lines().find(|line| line.starts_with("| `overhead` |")).unwrap();
    let [on_trace, at_rate] = quoted(row.split('|').nth(3).unwrap())[..] else { panic!("{row}") };
    assert_eq!(trace(&format!("overhead = {on_trace}")), trace(""));
    let overhead = format!("overhead = {at_rate}");
    assert_eq!(with(&overhead, "cc = \"newreno\"").links, with("", "cc = \"newreno\"").links);
    assert!(PAGE.contains("| `queue` | word or table | droptail, 1000 packets |"));
    let queue = "queue = { kind = \"droptail\", limit = \"1000 packets\" }";
    assert_eq!(with(queue, "cc = \"newreno\"").links, with("", "cc = \"newreno\"").links);

    for kind in ["droptail", "codel", "fq_codel", "pie", "dualpi2", "l4span", "abc"] {
        let row = PAGE.lines().find(|line| line.starts_with(&format!("| `\"{kind}\"` |"))).unwrap();
        let settings = quoted(row.split('|').nth(2).unwrap());
        let settings: Vec<&str> = settings.into_iter().filter(|setting| setting.contains(" = ")).collect();
        let written = format!("queue = {{ kind = {kind:?}, {} }}", settings.join(", "));
        let plain = format!("queue = {kind:?}");
        assert_eq!(with(&written, "cc = \"newreno\"").links, with(&plain, "cc = \"newreno\"").links);
    }

    for (written, plain) in [
        (
            "{ kind = \"paced\", rate = \"1Mbit/s\", interval = \"10ms\" }",
            "{ kind = \"paced\", rate = \"1Mbit/s\" }",
        ),
        ("{ kind = \"web\", page = \"1KB\", interval = \"1s\" }", "{ kind = \"web\", page = \"1KB\" }"),
        ("{ kind = \"repeat\", size = \"1KB\", pause = \"0s\" }", "{ kind = \"repeat\", size = \"1KB\" }"),
    ] {
        let [written, plain] =
            [written, plain].map(|w| with("", &format!("cc = \"newreno\"\nworkload = {w}")));
        assert_eq!(written, plain);
    }
}

#[test]
fn every_algorithm_is_carried_by_what_it_needs() {
    for entry in ranpace_cc::ALL {
        let scenario = with("", &format!("cc = {:?}\nmtu = \"1000B\"\ninitial_window = 3", entry.name));
        match (&scenario.flows[0].transport, entry.transport) {
            (Transport::Tcp { config, .. }, ranpace_cc::Transport::Tcp) => {
                assert_eq!((config.mtu.get(), config.initial_window), (1_000, 3));
            }
            (Transport::Datagram { mtu, .. }, ranpace_cc::Transport::Datagram) => {
                assert_eq!(mtu.get(), 1_000)
            }
            (other, _) => panic!("{}: {other:?}", entry.name),
        }
    }
}
