//! `[[change]]`: what changes during the run.

use ranpace_link::Service;
use ranpace_units::{Span, Time};

use crate::flow::{Flows, LEAST_ROUND_TRIP};
use crate::link::{LEAST_RATE, LEAST_SPAN, MOST_DELAY, MOST_RATE};
use crate::model::{Change, ChangeKind, Transport};
use crate::network::Network;
use crate::reader::{Field, Section};

/// Reads all `[[change]]`, in the order of time.
pub(crate) fn read(
    root: &mut Section<'_>,
    network: &Network,
    flows: &Flows,
    duration: Option<Span>,
) -> Vec<Change> {
    let mut changes = Vec::new();
    let sections = root.field("change").map(|field| field.tables()).unwrap_or_default();
    for section in sections {
        read_entry(section, network, flows, duration, &mut changes);
    }
    // Stable: changes of the same instant stay in the file's order.
    changes.sort_by_key(|change| change.at);
    changes
}

fn read_entry(
    mut section: Section<'_>,
    network: &Network,
    flows: &Flows,
    duration: Option<Span>,
    changes: &mut Vec<Change>,
) {
    let at = section.required("at").and_then(|field| {
        let at = field.quantity(Span::ZERO..=Span::MAX)?;
        if let Some(duration) = duration.filter(|duration| at >= *duration) {
            field.error(format!("is at {at}, but the scenario ends at {duration}"));
        }
        Some(Time::ZERO + at)
    });
    let at = at.unwrap_or(Time::ZERO);
    let (link, flow) = (section.field("link"), section.field("flow"));
    let [rate, delay, target] = ["rate", "delay", "target"].map(|key| section.field(key));
    let mut add = |what| changes.push(Change { at, what });
    match (link, flow) {
        (Some(link), None) => {
            refuse(&target, "belongs to a flow; a link has rate and delay");
            if rate.is_none() && delay.is_none() {
                section.error("missing key \"rate\" or \"delay\" in [[change]] of a link");
            }
            let index = network.link_of(&link);
            let rate = rate.and_then(|f| f.quantity(LEAST_RATE..=MOST_RATE));
            // Without a rate the delay is all that bounds what a flow can send.
            let unlimited =
                index.is_some_and(|index| network.links[index].config.service == Service::Unlimited);
            let least = if unlimited { LEAST_ROUND_TRIP } else { Span::ZERO };
            let delay = delay.and_then(|f| f.quantity(least..=MOST_DELAY));
            if let Some((link, rate)) = index.zip(rate) {
                add(ChangeKind::LinkRate { link, rate });
            }
            if let Some((link, delay)) = index.zip(delay) {
                add(ChangeKind::LinkDelay { link, delay });
            }
        }
        (None, Some(flow)) => {
            refuse(&rate, "belongs to a link; a flow has target");
            refuse(&delay, "belongs to a link; a flow has target");
            if target.is_none() {
                section.error("missing key \"target\" in [[change]] of a flow");
            }
            let target = target.and_then(|f| f.quantity(LEAST_SPAN..=Span::from_secs(3_600)));
            let named = flows.named(&flow).unwrap_or(0..0);
            let is_udp = |index: usize| {
                matches!(flows.all.get(index).map(|flow| &flow.transport), Some(Transport::Udp { .. }))
            };
            if named.clone().any(is_udp) {
                flow.error("has no congestion control that a target could be set for");
            }
            for flow in named {
                if let Some(target) = target {
                    add(ChangeKind::FlowTarget { flow, target });
                }
            }
        }
        (Some(_), Some(flow)) => flow.error("a change is of a link or of a flow, not of both"),
        (None, None) => section.error("missing key \"link\" or \"flow\" in [[change]]"),
    }
    section.finish();
}

fn refuse(field: &Option<Field<'_>>, why: &str) {
    if let Some(field) = field {
        field.error(why);
    }
}
