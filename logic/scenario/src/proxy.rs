//! `[[proxy]]`: a middlebox that splits the TCP connections that cross its host (Diarra 2022, section 5.2.1).
//!
//! Which flows: those of TCP whose data cross the host on their way, coming over wires. What a user sends, UDP and datagrams
//! pass by.

use ranpace_pep::rapid::{
    Accounting, Allowance, Caps, Estimator, Hold, RanRttMin, Settings, Slack, WindowRule,
};
use ranpace_units::{Bytes, Span};

use crate::flow::{Flows, read_algorithm};
use crate::model::{PassingSpec, ProxyKind, ProxySpec, SplitSpec};
use crate::network::{Network, unknown};
use crate::reader::{Field, Section};
use crate::rnis::FeedSpec;

/// The keys of `[[proxy]]`. A test compares them with what is read.
pub(crate) const KEYS: [&str; 25] = [
    "name",
    "host",
    "kind",
    "ran_cc",
    "flow_buffer",
    "user_buffer",
    "total_buffer",
    "profile",
    "estimator",
    "accounting",
    "efficiency",
    "theta",
    "floor",
    "slack",
    "ran_rttmin",
    "sr_allowance",
    "ran_floor",
    "shrink",
    "account_udp",
    "hold",
    "guard",
    "window",
    "alpha",
    "headroom",
    "spare",
];
/// The kinds of proxies.
const KINDS: [&str; 2] = ["split", "rapid"];

/// Most proxies of a scenario. Ours.
const MOST_PROXIES: usize = 100;
/// What all flows of a user may have waiting (the specification's, its section 7).
const USER_BUFFER: Bytes = Bytes::new(4 << 20);
/// What all flows may have waiting. Ours.
const TOTAL_BUFFER: Bytes = Bytes::new(256 << 20);
/// Least buffer: a packet of the largest size. Ours.
const LEAST_BUFFER: Bytes = Bytes::new(65_535);
const MOST_BUFFER: Bytes = Bytes::new(1 << 40);

/// Reads all `[[proxy]]`.
pub(crate) fn read(
    root: &mut Section<'_>,
    network: &Network,
    flows: &Flows,
    feed: &FeedSpec,
) -> Vec<ProxySpec> {
    let Some(field) = root.field("proxy") else { return Vec::new() };
    let mut proxies: Vec<ProxySpec> = Vec::new();
    for (index, section) in field.tables().into_iter().enumerate() {
        if index >= MOST_PROXIES {
            section.error(format!("more than {MOST_PROXIES} proxies"));
            break;
        }
        let (at, report) = (section.at, section.report);
        let Some(proxy) = read_entry(section, index + 1, network, flows, feed.period) else { continue };
        if proxies.iter().any(|other| other.name == proxy.name) {
            report.add(at, format!("there is another proxy called {:?}", proxy.name));
        }
        let twice = proxy.splits.iter().find_map(|split| {
            let other = proxies.iter().find(|other| other.splits.iter().any(|own| own.flow == split.flow))?;
            Some((&flows.all[split.flow].name, &other.name))
        });
        if let Some((flow, other)) = twice {
            report.add(at, format!("flow {flow:?} is split by the proxy {other:?} already"));
        }
        proxies.push(proxy);
    }
    proxies
}

fn read_entry(
    mut section: Section<'_>,
    number: usize,
    network: &Network,
    flows: &Flows,
    period: Span,
) -> Option<ProxySpec> {
    let name = section.field("name").and_then(|field| field.name().map(str::to_owned));
    let name = name.unwrap_or_else(|| format!("proxy{number}"));
    let host_field = section.required("host");
    let host = host_field.as_ref().and_then(|field| host_of(field, network));
    let kind = section.required("kind").and_then(|field| field.word(&KINDS));
    let rapid = read_rapid(&mut section, kind == Some("rapid"), period);
    let ran_cc = section.field("ran_cc");
    let own = if kind == Some("rapid") { "rapid" } else { "cubic" };
    let ran_cc = match &ran_cc {
        Some(field) => read_algorithm(field).filter(|algorithm| {
            let is_tcp = algorithm.transport() == ranpace_cc::Transport::Tcp;
            if !is_tcp {
                field.error(format!("{algorithm} is not carried by TCP"));
            }
            is_tcp
        }),
        None => own.parse().ok(),
    };
    let buffers = ranpace_pep::split::Buffers {
        flow: section.field("flow_buffer").and_then(|field| {
            let is_auto = field.is_text() && field.text("") == Some("auto");
            if is_auto { None } else { field.quantity(LEAST_BUFFER..=MOST_BUFFER) }
        }),
        user: section.quantity("user_buffer", LEAST_BUFFER..=MOST_BUFFER).unwrap_or(USER_BUFFER),
        total: section.quantity("total_buffer", LEAST_BUFFER..=MOST_BUFFER).unwrap_or(TOTAL_BUFFER),
    };
    let kind = kind.map(|kind| match kind {
        "rapid" => {
            let flow = buffers.flow.unwrap_or(rapid.caps.flow);
            let caps = Caps { flow, user: buffers.user, total: buffers.total, ..rapid.caps };
            ProxyKind::Rapid(Box::new(Settings { caps, ..rapid }))
        }
        _ => ProxyKind::Split,
    });
    section.finish();
    let (host, host_field) = (host?, host_field?);
    let mut splits = Vec::new();
    for (index, flow) in flows.all.iter().enumerate() {
        match network.middlebox_on(flow, host) {
            Some(Ok((forward, back))) => splits.push(SplitSpec { flow: index, forward, back }),
            Some(Err(problem)) => {
                host_field.error(problem);
                return None;
            }
            None => {}
        }
    }
    let passing = flows.all.iter().enumerate().filter_map(|(flow, spec)| {
        let (forward, user) = network.passes_by(spec, host)?;
        Some(PassingSpec { flow, forward, user })
    });
    let passing = passing.collect();
    Some(ProxySpec { name, host, kind: kind?, ran_cc: ran_cc?, buffers, splits, passing })
}

/// RAPID's settings; `is_rapid` says whether they belong there. Reports come every `period`.
fn read_rapid(section: &mut Section<'_>, is_rapid: bool, period: Span) -> Settings {
    let fields = KEYS[7..].iter().map(|key| section.field(key));
    let fields: Vec<Option<Field<'_>>> = fields.collect();
    if !is_rapid {
        for field in fields.into_iter().flatten() {
            field.error("belongs to kind = \"rapid\"");
        }
        return Settings::THESIS;
    }
    let [
        profile,
        estimator,
        accounting,
        efficiency,
        theta,
        floor,
        slack,
        ran_rttmin,
        sr,
        ran_floor,
        shrink,
        udp,
        hold,
        guard,
        window,
        alpha,
        headroom,
        spare,
    ] = &fields[..]
    else {
        return Settings::THESIS;
    };
    let word = |field: &Option<Field<'_>>, words: &[&'static str]| field.as_ref().and_then(|f| f.word(words));
    let mut settings = match word(profile, &["thesis", "field"]) {
        Some("thesis") => Settings::THESIS,
        _ => Settings::FIELD,
    };
    settings.period = period;
    settings.estimator = match word(estimator, &["alloc_plus_unused", "fair_share", "larger"]) {
        Some("alloc_plus_unused") => Estimator::AllocPlusUnused,
        Some("fair_share") => Estimator::FairShare,
        Some(_) => Estimator::Larger,
        None => settings.estimator,
    };
    settings.accounting = match word(accounting, &["rate", "share_bytes", "literal"]) {
        Some("share_bytes") => Accounting::ShareBytes,
        Some("literal") => Accounting::Literal,
        _ => Accounting::Rate,
    };
    settings.ran_rttmin = match word(ran_rttmin, &["smoothed", "bounded", "plain"]) {
        Some("smoothed") => RanRttMin::Smoothed,
        Some("bounded") => RanRttMin::Bounded,
        Some("plain") => RanRttMin::Plain,
        _ => settings.ran_rttmin,
    };
    let number = |field: &Option<Field<'_>>, else_: f64| {
        field.as_ref().and_then(|f| f.number(0.01..=1.0)).unwrap_or(else_)
    };
    settings.efficiency = number(efficiency, settings.efficiency);
    settings.theta = number(theta, settings.theta);
    let segments = |field: &Option<Field<'_>>, else_: u32| {
        let read = field.as_ref().and_then(|f| f.whole(1..=10_000)).and_then(|n| u32::try_from(n).ok());
        read.unwrap_or(else_)
    };
    settings.floor = segments(floor, settings.floor);
    settings.ran_floor = segments(ran_floor, settings.ran_floor);
    settings.slack = match slack {
        Some(field) if field.is_text() && field.text("") == Some("half_rtt") => Slack::HalfRtt,
        Some(field) => field.quantity(Span::ZERO..=Span::SECOND).map_or(settings.slack, Slack::Fixed),
        None => settings.slack,
    };
    settings.sr_allowance = match sr {
        Some(field) if field.is_text() && field.text("") == Some("technology") => Allowance::Technology,
        Some(field) => {
            field.quantity(Span::ZERO..=Span::SECOND).map_or(settings.sr_allowance, Allowance::Fixed)
        }
        None => settings.sr_allowance,
    };
    settings.window = match word(window, &["wired", "whole", "module"]) {
        Some("whole") => WindowRule::Whole,
        Some("module") => WindowRule::Module,
        Some(_) => WindowRule::Wired,
        None => settings.window,
    };
    settings.alpha = alpha.as_ref().and_then(|f| f.number(0.0..=0.99)).unwrap_or(settings.alpha);
    settings.headroom = headroom.as_ref().and_then(|f| f.number(1.0..=100.0)).unwrap_or(settings.headroom);
    settings.spare = spare
        .as_ref()
        .and_then(|f| f.whole(0..=10_000))
        .and_then(|n| u32::try_from(n).ok())
        .unwrap_or(settings.spare);
    settings.account_udp = udp.as_ref().and_then(Field::flag).unwrap_or(settings.account_udp);
    settings.hold = match word(hold, &["least", "mean"]) {
        Some("least") => Hold::Least,
        Some(_) => Hold::Mean,
        None => settings.hold,
    };
    settings.guard = guard.as_ref().and_then(Field::flag).unwrap_or(settings.guard);
    settings.shrink = shrink.as_ref().and_then(Field::flag).unwrap_or(settings.shrink);
    settings
}

/// The host that a field names.
fn host_of(field: &Field<'_>, network: &Network) -> Option<usize> {
    let name = field.name()?;
    let host = network.hosts.iter().position(|host| host == name);
    if host.is_none() && !network.incomplete {
        field.error(unknown("host", name, network.hosts.iter().map(String::as_str)));
    }
    host
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a test may

    use super::*;
    use crate::parse;

    const TEXT: &str = r#"
duration = "1s"
[[link]]
from = "server"
to = "edge"
rate = "1Gbit/s"
delay = "5ms"
duplex = true
[[link]]
from = "edge"
to = "mast"
rate = "1Gbit/s"
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
[[flow]]
name = "wired"
from = "server"
to = "edge"
cc = "cubic"
"#;

    fn with(proxy: &str) -> String {
        format!("{TEXT}[[proxy]]\n{proxy}\n")
    }

    #[test]
    fn tcp_towards_a_user_is_split_and_nothing_else() {
        for (host, place, back) in [("edge", 1, 2), ("mast", 2, 1)] {
            let text = with(&format!("host = \"{host}\"\nkind = \"split\""));
            let scenario = parse(&text, "", &mut ()).unwrap();
            let [proxy] = &scenario.proxies[..] else { panic!() };
            assert_eq!((proxy.name.as_str(), proxy.ran_cc.to_string().as_str()), ("proxy1", "cubic"));
            let splits: Vec<_> =
                proxy.splits.iter().map(|split| (split.flow, split.forward, split.back)).collect();
            assert_eq!(splits, [(0, place, back)], "{host}");
            // The call goes the same way, and passes by.
            assert_eq!(proxy.passing, [PassingSpec { flow: 2, forward: place, user: 0 }], "{host}");
        }
    }

    #[test]
    fn a_rapid_proxy_has_its_settings_and_a_sender_to_match() {
        let text = with(
            "host = \"mast\"\nkind = \"rapid\"\nprofile = \"field\"\nestimator = \"fair_share\"\nran_rttmin = \"plain\"\n\
             slack = \"half_rtt\"\naccount_udp = true\nhold = \"least\"\nguard = false\nfloor = 12\nsr_allowance = \"16ms\"\nwindow = \"whole\"\nalpha = 0.4\nheadroom = 1.5\nspare = 3\nuser_buffer = \"1MB\"\n[rnis]\nperiod = \"1ms\"",
        );
        let scenario = parse(&text, "", &mut ()).unwrap();
        let ProxyKind::Rapid(settings) = &scenario.proxies[0].kind else { panic!() };
        let expected = Settings {
            estimator: Estimator::FairShare,
            ran_rttmin: RanRttMin::Plain,
            slack: Slack::HalfRtt,
            account_udp: true,
            hold: Hold::Least,
            guard: false,
            floor: 12,
            sr_allowance: Allowance::Fixed(Span::from_millis(16)),
            window: WindowRule::Whole,
            alpha: 0.4,
            headroom: 1.5,
            spare: 3,
            period: Span::from_millis(1),
            caps: Caps { user: Bytes::new(1_000_000), total: super::TOTAL_BUFFER, ..Settings::FIELD.caps },
            ..Settings::FIELD
        };
        assert_eq!(**settings, expected);
        let scenario = parse(&text.replace("\"whole\"", "\"module\""), "", &mut ()).unwrap();
        let ProxyKind::Rapid(settings) = &scenario.proxies[0].kind else { panic!() };
        assert_eq!(settings.window, WindowRule::Module);
        let expected: ranpace_cc::Algorithm = "rapid".parse().unwrap();
        assert_eq!(scenario.proxies[0].ran_cc, expected);
    }

    #[test]
    fn mistakes_are_told() {
        for (proxy, expected) in [
            ("host = \"edge\"\nkind = \"split\"\ntheta = 0.8", "theta: belongs to kind = \"rapid\""),
            ("host = \"edge\"\nkind = \"rapid\"\ntheta = 1.8", "theta"),
            ("kind = \"split\"", "missing key \"host\""),
            ("host = \"edge\"", "missing key \"kind\""),
            ("host = \"edgy\"\nkind = \"split\"", "unknown host \"edgy\""),
            ("host = \"edge\"\nkind = \"spilt\"", "split"),
            ("host = \"edge\"\nkind = \"split\"\nran_cc = \"sprout\"", "not carried by TCP"),
            ("host = \"edge\"\nkind = \"split\"\nflow_buffer = \"1KB\"", "flow_buffer"),
            (
                "host = \"edge\"\nkind = \"split\"\n[[proxy]]\nname = \"b\"\nhost = \"mast\"\nkind = \"split\"",
                "split by the proxy \"proxy1\" already",
            ),
        ] {
            let error = parse(&with(proxy), "", &mut ()).unwrap_err().to_string();
            assert!(error.contains(expected), "{proxy}: {error}");
        }
    }

    #[test]
    fn every_key_can_be_varied_and_is_on_its_page() {
        const PAGE: &str = include_str!("../../../docs/proxy.md");
        let error =
            parse(&with("host = \"edge\"\nkind = \"split\"\nzzz = 1"), "", &mut ()).unwrap_err().to_string();
        let known = error.split("expected one of ").nth(1).unwrap().split(';').next().unwrap();
        let mut keys: Vec<&str> = known.lines().next().unwrap().split(", ").collect();
        for key in &keys {
            assert!(PAGE.contains(&format!("`{key}`")), "{key} is not on the page");
            assert!(crate::vary(&with(""), &format!("proxy.{key}"), "1").is_ok(), "{key}");
        }
        keys.sort_unstable();
        let mut own = super::KEYS.to_vec();
        own.sort_unstable();
        assert_eq!(keys, own);
    }
}
