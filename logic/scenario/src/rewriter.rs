//! `[[rewriter]]`: changes TCP headers of users' connections that cross its host (`ranpace_pep::rewriter`).
//!
//! It applies to TCP flows whose data cross the host on their way to a user of a cell.

use ranpace_pep::rewriter::{GuidanceSettings, Kind, MilliproxySettings, Policy};
use ranpace_units::Span;

use crate::entries::{Entry, EntryKind, flows_across, read_entries};
use crate::flow::Flows;
use crate::key::{Duration, Group, Is, Key, Name, Number, Open, Required, Within, Words};
use crate::model::{FlowSpec, ProxySpec, RewriterSpec, WatchSpec};
use crate::network::Network;
use crate::reader::Section;
use crate::rnis::FeedSpec;

const NAME: Key<Name> = Key {
    name: "name",
    kind: Name("text"),
    default: Open("`rewriter1`, `rewriter2` ... by position"),
    about: "unique among the rewriters",
};
const HOST: Key<Name, Required> = Key {
    name: "host",
    kind: Name("name"),
    default: Required,
    about: "host at which segments pass it, in both directions",
};
const KIND: Key<Words<KindWord>, Required> = Key {
    name: "kind",
    kind: Words(&[("milliproxy", KindWord::Milliproxy), ("guidance", KindWord::Guidance)]),
    default: Required,
    about: "what it changes in the acknowledgements of users: their window, or their options; see below",
};

/// The keys of every `[[rewriter]]`.
pub(crate) const KEYS: Group = &[&NAME, &HOST, &KIND];

const POLICY: Key<Words<Policy>, Is<Policy>> = Key {
    name: "policy",
    kind: Words(&[("bdp_buffer", Policy::BdpBuffer), ("bdp", Policy::Bdp), ("literal", Policy::Literal)]),
    default: Is(Policy::BdpBuffer),
    about: "how the window follows from rate, RTT and queue",
};
const ALLOWANCE: Key<Duration, Is<Span>> = Key {
    name: "allowance",
    kind: Within(Span::ZERO..=Span::from_millis(100)),
    // From the specification, section 1.
    default: Is(Span::from_millis(2)),
    about: "`\"bdp_buffer\"`: added to the smallest RTT",
};
const FLOWS: Key<Words<bool>, Is<bool>> = Key {
    name: "flows",
    kind: Words(&[("one", false), ("count", true)]),
    default: Is(false),
    about: "`\"count\"`: divides the window among the user's active connections; `\"one\"`, as published: does not",
};

/// The keys of `kind = "milliproxy"`.
pub(crate) const MILLIPROXY_KEYS: Group = &[&POLICY, &ALLOWANCE, &FLOWS];

const PERIOD: Key<Duration, Is<Span>> = Key {
    name: "period",
    kind: Within(Span::from_millis(1)..=Span::from_secs(1)),
    default: Is(Span::from_millis(100)),
    about: "interval between two options on a connection",
};
const EFFICIENCY: Key<Number, Is<f64>> = Key {
    name: "efficiency",
    kind: Number(0.01..=1.0),
    default: Is(1.0),
    about: "part of the radio rate that is shared out",
};

/// The keys of `kind = "guidance"`.
pub(crate) const GUIDANCE_KEYS: Group = &[&PERIOD, &EFFICIENCY];

/// Values of `kind`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KindWord {
    Milliproxy,
    Guidance,
}

impl Entry for RewriterSpec {
    fn name(&self) -> &str {
        &self.name
    }

    /// Several rewriters may change a flow's segments.
    fn flows(&self) -> impl Iterator<Item = usize> {
        core::iter::empty()
    }
}

/// Reads all `[[rewriter]]`.
pub(crate) fn read(
    root: &mut Section<'_>,
    network: &Network,
    flows: &Flows,
    proxies: &[ProxySpec],
    feed: &FeedSpec,
) -> Vec<RewriterSpec> {
    let kind = EntryKind { key: "rewriter", noun: "rewriter", plural: "rewriters", handled: "rewritten" };
    read_entries(root, &kind, flows, |section, number| {
        let section = section.of(&[KEYS, MILLIPROXY_KEYS, GUIDANCE_KEYS]);
        read_entry(section, number, network, flows, proxies, feed.period)
    })
}

fn read_entry(
    mut section: Section<'_>,
    number: usize,
    network: &Network,
    flows: &Flows,
    proxies: &[ProxySpec],
    reports: Span,
) -> Option<RewriterSpec> {
    let name = section.get(&NAME).unwrap_or_else(|| format!("rewriter{number}"));
    let host_field = section.find(&HOST);
    let host = host_field.as_ref().and_then(|field| network.host_of(field));
    let kind = section.get(&KIND).map(|kind| match kind {
        KindWord::Milliproxy => {
            refuse(&mut section, GUIDANCE_KEYS, "guidance");
            let (policy, allowance) = (section.get(&POLICY), section.get(&ALLOWANCE));
            let counts_flows = section.get(&FLOWS);
            Kind::Milliproxy(MilliproxySettings { reports, policy, allowance, counts_flows })
        }
        KindWord::Guidance => {
            refuse(&mut section, MILLIPROXY_KEYS, "milliproxy");
            let (period, efficiency) = (section.get(&PERIOD), section.get(&EFFICIENCY));
            Kind::Guidance(GuidanceSettings { reports, period, efficiency })
        }
    });
    section.finish();
    let (host, host_field) = (host?, host_field?);
    let places = |flow: &FlowSpec| {
        flow.path.last().and_then(|hop| hop.user())?;
        network.middlebox_on(flow, host)
    };
    let watches =
        flows_across(flows, &host_field, places, |flow, (forward, back)| WatchSpec { flow, forward, back })?;
    for proxy in proxies {
        let is_rewritten = |flow: usize| watches.iter().any(|watch| watch.flow == flow);
        if let Some(split) = proxy.splits.iter().find(|split| is_rewritten(split.flow)) {
            let (flow, proxy) = (&flows.all[split.flow].name, &proxy.name);
            host_field.error(format!(
                "the segments of flow {flow:?} cannot be rewritten: the proxy {proxy:?} splits it; leave one of them out"
            ));
        }
    }
    Some(RewriterSpec { name, host, kind: kind?, watches })
}

/// Reports the keys of another kind.
fn refuse(section: &mut Section<'_>, keys: Group, kind: &str) {
    for key in keys {
        if let Some(field) = section.field(key.name()) {
            field.error(format!("applies only to kind = {kind:?}"));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // allowed in tests

    use super::*;
    use crate::entries::TEST_SCENARIO;
    use crate::parse;

    fn with(rewriter: &str) -> String {
        format!("{TEST_SCENARIO}[rnis]\nperiod = \"4ms\"\n[[rewriter]]\n{rewriter}\n")
    }

    #[test]
    fn downloads_of_users_over_tcp_are_rewritten_and_nothing_else() {
        let reports = Span::from_millis(4);
        let guidance = GuidanceSettings { reports, period: Span::from_millis(50), efficiency: 0.9 };
        let literal = MilliproxySettings {
            reports,
            policy: Policy::Literal,
            allowance: Span::from_millis(16),
            counts_flows: true,
        };
        let plain = MilliproxySettings {
            policy: Policy::BdpBuffer,
            allowance: Span::from_millis(2),
            counts_flows: false,
            ..literal
        };
        for (text, kind) in [
            ("host = \"edge\"\nkind = \"milliproxy\"", Kind::Milliproxy(plain)),
            (
                "host = \"edge\"\nkind = \"milliproxy\"\npolicy = \"literal\"\nallowance = \"16ms\"\nflows = \"count\"",
                Kind::Milliproxy(literal),
            ),
            (
                "host = \"edge\"\nkind = \"guidance\"\nperiod = \"50ms\"\nefficiency = 0.9",
                Kind::Guidance(guidance),
            ),
        ] {
            let scenario = parse(&with(text), "", &mut ()).unwrap();
            let [rewriter] = &scenario.rewriters[..] else { panic!() };
            assert_eq!((rewriter.name.as_str(), rewriter.kind), ("rewriter1", kind));
            let watches: Vec<_> =
                rewriter.watches.iter().map(|own| (own.flow, own.forward, own.back)).collect();
            assert_eq!(watches, [(0, 1, 2)], "not the upload, and not the call");
        }
    }

    #[test]
    fn mistakes_are_told() {
        for (rewriter, expected) in [
            ("kind = \"guidance\"", "missing key \"host\""),
            ("host = \"edge\"", "missing key \"kind\""),
            ("host = \"edgy\"\nkind = \"guidance\"", "unknown host \"edgy\""),
            ("host = \"edge\"\nkind = \"guide\"", "guidance"),
            (
                "host = \"edge\"\nkind = \"guidance\"\npolicy = \"bdp\"",
                "applies only to kind = \"milliproxy\"",
            ),
            (
                "host = \"edge\"\nkind = \"milliproxy\"\nperiod = \"1s\"",
                "applies only to kind = \"guidance\"",
            ),
            ("host = \"edge\"\nkind = \"guidance\"\nefficiency = 2", "efficiency"),
            (
                "host = \"edge\"\nkind = \"guidance\"\n[[proxy]]\nhost = \"mast\"\nkind = \"split\"",
                "the proxy \"proxy1\" splits it",
            ),
        ] {
            let error = parse(&with(rewriter), "", &mut ()).unwrap_err().to_string();
            assert!(error.contains(expected), "{rewriter}: {error}");
        }
    }
}
