//! `[[proxy]]`: a middlebox that splits the TCP connections that cross its host (Diarra 2022, section 5.2.1).
//!
//! It applies to TCP flows whose data cross the host, arriving over wired links. Uploads of users, UDP and datagrams
//! pass through unchanged.

mod keys;

use ranpace_pep::rapid::{Caps, RttMargin, Settings, Slack};
use ranpace_pep::split::Buffers;
use ranpace_units::Span;

use self::keys::*;
pub(crate) use self::keys::{KEYS, RAPID_KEYS};

use crate::algorithm::read_algorithm;
use crate::entries::{Entry, EntryKind, flows_across, read_entries};
use crate::flow::Flows;
use crate::model::{FlowSpec, PassingSpec, ProxyKind, ProxySpec, SplitSpec};
use crate::network::Network;
use crate::reader::Section;
use crate::rnis::FeedSpec;

impl Entry for ProxySpec {
    fn name(&self) -> &str {
        &self.name
    }

    fn flows(&self) -> impl Iterator<Item = usize> {
        self.splits.iter().map(|split| split.flow)
    }
}

/// Reads all `[[proxy]]`.
pub(crate) fn read(
    root: &mut Section<'_>,
    network: &Network,
    flows: &Flows,
    feed: &FeedSpec,
) -> Vec<ProxySpec> {
    let kind = EntryKind { key: "proxy", noun: "proxy", plural: "proxies", handled: "split" };
    read_entries(root, &kind, flows, |section, number| {
        read_entry(section.of(&[KEYS, RAPID_KEYS]), number, network, flows, feed.period)
    })
}

fn read_entry(
    mut section: Section<'_>,
    number: usize,
    network: &Network,
    flows: &Flows,
    period: Span,
) -> Option<ProxySpec> {
    let name = section.get(&NAME).unwrap_or_else(|| format!("proxy{number}"));
    let host_field = section.find(&HOST);
    let host = host_field.as_ref().and_then(|field| network.host_of(field));
    let kind = section.get(&KIND);
    let is_rapid = kind == Some(KindWord::Rapid);
    let rapid = if is_rapid { read_rapid(&mut section, period) } else { refuse_rapid(&mut section) };
    let ran_cc = match section.find(&RAN_CC) {
        Some(field) => read_algorithm(&field).filter(|algorithm| {
            let is_tcp = algorithm.transport() == ranpace_cc::Transport::Tcp;
            if !is_tcp {
                field.error(format!("{algorithm} is not carried by TCP"));
            }
            is_tcp
        }),
        None => if is_rapid { "rapid" } else { "cubic" }.parse().ok(),
    };
    let buffers = Buffers {
        flow: section.get(&FLOW_BUFFER),
        user: section.get(&USER_BUFFER),
        total: section.get(&TOTAL_BUFFER),
    };
    let kind = kind.map(|kind| match kind {
        KindWord::Rapid => {
            let flow = buffers.flow.unwrap_or(rapid.caps.flow);
            let caps = Caps { flow, user: buffers.user, total: buffers.total, ..rapid.caps };
            ProxyKind::Rapid(Box::new(Settings { caps, ..rapid }))
        }
        KindWord::Split => ProxyKind::Split,
    });
    section.finish();
    let (host, host_field) = (host?, host_field?);
    let places = |flow: &FlowSpec| network.middlebox_on(flow, host);
    let splits =
        flows_across(flows, &host_field, places, |flow, (forward, back)| SplitSpec { flow, forward, back })?;
    let passing = flows.all.iter().enumerate().filter_map(|(flow, spec)| {
        let (forward, user) = network.passes_by(spec, host)?;
        Some(PassingSpec { flow, forward, user })
    });
    let passing = passing.collect();
    Some(ProxySpec { name, host, kind: kind?, ran_cc: ran_cc?, buffers, splits, passing })
}

/// Reads RAPID's settings. Reports come every `period`.
fn read_rapid(section: &mut Section<'_>, period: Span) -> Settings {
    let mut settings = section.get(&PROFILE).map_or(Settings::FIELD, Settings::of);
    settings.period = period;
    section.set(&mut settings.estimator, &ESTIMATOR);
    section.set(&mut settings.accounting, &ACCOUNTING);
    section.set(&mut settings.ran_rttmin, &RAN_RTTMIN);
    section.set(&mut settings.efficiency, &EFFICIENCY);
    section.set(&mut settings.theta, &THETA);
    section.set(&mut settings.floor, &FLOOR);
    section.set(&mut settings.ran_floor, &RAN_FLOOR);
    settings.slack = section.get(&SLACK).map_or(Slack::HalfRtt, Slack::Fixed);
    if let Some(allowance) = section.get(&SR_ALLOWANCE) {
        settings.sr_allowance = allowance.map_or(RttMargin::Technology, RttMargin::Fixed);
    }
    section.set(&mut settings.window, &WINDOW);
    section.set(&mut settings.alpha, &ALPHA);
    section.set(&mut settings.headroom, &HEADROOM);
    section.set(&mut settings.spare, &SPARE);
    section.set(&mut settings.account_udp, &ACCOUNT_UDP);
    section.set(&mut settings.hold, &HOLD);
    section.set(&mut settings.guard, &GUARD);
    settings
}

/// Reports RAPID's settings in a proxy of another kind.
fn refuse_rapid(section: &mut Section<'_>) -> Settings {
    for key in RAPID_KEYS {
        if let Some(field) = section.field(key.name()) {
            field.error("applies only to kind = \"rapid\"");
        }
    }
    Settings::THESIS
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // allowed in tests

    use ranpace_pep::rapid::{Estimator, LateCapacity, RanRttMin, WindowRule};
    use ranpace_units::Bytes;

    use super::*;
    use crate::entries::TEST_SCENARIO;
    use crate::parse;

    const WIRED: &str = r#"
[[flow]]
name = "wired"
from = "server"
to = "edge"
cc = "cubic"
"#;

    fn with(proxy: &str) -> String {
        format!("{TEST_SCENARIO}{WIRED}[[proxy]]\n{proxy}\n")
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
            // The call takes the same path, without being split.
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
            hold: LateCapacity::Least,
            guard: false,
            floor: 12,
            sr_allowance: RttMargin::Fixed(Span::from_millis(16)),
            window: WindowRule::Whole,
            alpha: 0.4,
            headroom: 1.5,
            spare: 3,
            period: Span::from_millis(1),
            caps: Caps { user: Bytes::new(1_000_000), total: TOTAL_BUFFER.default.0, ..Settings::FIELD.caps },
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
            ("host = \"edge\"\nkind = \"split\"\ntheta = 0.8", "theta: applies only to kind = \"rapid\""),
            ("host = \"edge\"\nkind = \"rapid\"\ntheta = 1.8", "theta"),
            ("kind = \"split\"", "missing key \"host\""),
            ("host = \"edge\"", "missing key \"kind\""),
            ("host = \"edgy\"\nkind = \"split\"", "unknown host \"edgy\""),
            ("host = \"edge\"\nkind = \"spilt\"", "split"),
            ("host = \"edge\"\nkind = \"split\"\nran_cc = \"sprout\"", "not carried by TCP"),
            ("host = \"edge\"\nkind = \"split\"\nflow_buffer = \"1KB\"", "flow_buffer"),
            (
                "host = \"edge\"\nkind = \"split\"\n[[proxy]]\nname = \"b\"\nhost = \"mast\"\nkind = \"split\"",
                "already split by the proxy \"proxy1\"",
            ),
        ] {
            let error = parse(&with(proxy), "", &mut ()).unwrap_err().to_string();
            assert!(error.contains(expected), "{proxy}: {error}");
        }
    }
}
