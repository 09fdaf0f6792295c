//! `[[change]]`: changes during the run.

use ranpace_link::Service;
use ranpace_units::{Span, Time};

use crate::flow::{Flows, LEAST_ROUND_TRIP};
use crate::key::{ANY_TIME, Duration, Flag, Group, Is, Key, Kind as _, Name, Open, Rates, Required, Within};
use crate::limits::{LEAST_RATE, LEAST_SPAN, MOST_DELAY, MOST_RATE};
use crate::model::{Change, ChangeKind, Transport};
use crate::network::Network;
use crate::reader::{Field, Section};

const AT: Key<Duration, Required> = Key {
    name: "at",
    kind: ANY_TIME,
    default: Required,
    about: "time of the change, before the scenario's end",
};
const LINK: Key<Name> = Key {
    name: "link",
    kind: Name("name"),
    default: Open(""),
    about: "link to change; needs `rate`, `delay` or both. With `rate`, a link that was unlimited or played a trace has a \
            fixed rate from then on",
};
const FLOW: Key<Name> = Key {
    name: "flow",
    kind: Name("name"),
    default: Open(""),
    about: "flow to change; needs `target`, the delay that its application asks for. The name of a flow with `count` \
            stands for all of them",
};
const USER: Key<Name> = Key {
    name: "user",
    kind: Name("name"),
    default: Open(""),
    about: "user to hand over; needs `to`, another [cell](cells.md) at the same host. The name of a user with `count` \
            stands for all of them",
};
const RATE: Key<Rates> = Key {
    name: "rate",
    kind: Within(LEAST_RATE..=MOST_RATE),
    default: Open("as before"),
    about: "new rate of the link",
};
const DELAY: Key<Duration> = Key {
    name: "delay",
    kind: Within(Span::ZERO..=MOST_DELAY),
    default: Open("as before"),
    about: "new delay of the link",
};
const TARGET: Key<Duration> = Key {
    name: "target",
    kind: Within(LEAST_SPAN..=Span::from_secs(3_600)),
    default: Open(""),
    about: "new target delay of the flow",
};
const TO: Key<Name> =
    Key { name: "to", kind: Name("cell"), default: Open(""), about: "cell that the user is handed over to" };
const FORWARD: Key<Flag, Is<bool>> = Key {
    name: "forward",
    kind: Flag,
    default: Is(true),
    about: "handover: whether buffered data moves with the user; otherwise it is lost",
};
const INTERRUPTION: Key<Duration, Is<Span>> = Key {
    name: "interruption",
    kind: Within(Span::ZERO..=MOST_DELAY),
    default: Is(Span::from_millis(50)),
    about: "handover: time during which nothing is sent (ours: what LTE users see, to the nearest 10 ms)",
};

/// The keys of `[[change]]`.
pub(crate) const KEYS: Group =
    &[&AT, &LINK, &FLOW, &USER, &RATE, &DELAY, &TARGET, &TO, &FORWARD, &INTERRUPTION];

/// Reads all `[[change]]`, in order of time.
pub(crate) fn read(
    root: &mut Section<'_>,
    network: &Network,
    flows: &Flows,
    duration: Option<Span>,
) -> Vec<Change> {
    let mut changes: Vec<(Change, usize)> = Vec::new();
    let sections = root.field("change").map(|field| field.tables()).unwrap_or_default();
    for section in sections {
        read_entry(section.of(&[KEYS]), network, flows, duration, &mut changes);
    }
    // The sort is stable: changes at the same instant keep the file's order.
    changes.sort_by_key(|(change, _)| change.at);
    check_handovers(root, network, &changes);
    changes.into_iter().map(|(change, _)| change).collect()
}

/// Checks that every handover leads to another cell at the same host.
fn check_handovers(root: &Section<'_>, network: &Network, changes: &[(Change, usize)]) {
    let mut cell_of: Vec<usize> = network.users.iter().map(|user| user.cell).collect();
    for (change, at) in changes {
        let ChangeKind::Handover { user, to, .. } = change.what else { continue };
        let (from, name) = (cell_of[user], &network.users[user].name);
        cell_of[user] = to;
        let [old, new] = [from, to].map(|cell| &network.cells[cell]);
        let problem = if from == to {
            format!("user {name:?} is already in cell {:?}", new.name)
        } else if old.host != new.host {
            let [old_host, new_host] = [old, new].map(|cell| &network.hosts[cell.host]);
            format!(
                "both cells of a handover must be at the same host; {:?} is at {old_host:?}, {:?} at {new_host:?}",
                old.name, new.name
            )
        } else {
            continue;
        };
        root.report.add(*at, format!("to: {problem}"));
    }
}

fn read_entry(
    mut section: Section<'_>,
    network: &Network,
    flows: &Flows,
    duration: Option<Span>,
    changes: &mut Vec<(Change, usize)>,
) {
    let at = section.find(&AT).and_then(|field| {
        let at = AT.kind.read(&field)?;
        if let Some(duration) = duration.filter(|duration| at >= *duration) {
            field.error(format!("{at} is not before the scenario's end at {duration}"));
        }
        Some(Time::ZERO + at)
    });
    let when = at.unwrap_or(Time::ZERO);
    let (link, flow, user) = (section.find(&LINK), section.find(&FLOW), section.find(&USER));
    let (rate, delay, target) = (section.find(&RATE), section.find(&DELAY), section.find(&TARGET));
    let (to, forward, interruption) =
        (section.find(&TO), section.find(&FORWARD), section.find(&INTERRUPTION));
    let place = section.at;
    let mut add = |what| changes.push((Change { at: when, what }, place));
    if user.is_none() {
        for field in [&to, &forward, &interruption] {
            refuse(field, "applies only to a change of a user");
        }
    }
    match (link, flow, user) {
        (Some(link), None, None) => {
            refuse(&target, "applies only to a flow; a link has `rate` and `delay`");
            if rate.is_none() && delay.is_none() {
                section.error("missing key \"rate\" or \"delay\" in [[change]] of a link");
            }
            let index = network.link_of(&link);
            let rate = rate.and_then(|f| RATE.kind.read(&f));
            // On an unlimited link only the delay limits what a flow can send.
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
        (None, Some(flow), None) => {
            refuse(&rate, "applies only to a link; a flow has `target`");
            refuse(&delay, "applies only to a link; a flow has `target`");
            if target.is_none() {
                section.error("missing key \"target\" in [[change]] of a flow");
            }
            let target = target.and_then(|f| TARGET.kind.read(&f));
            let named = flows.named(&flow).unwrap_or(0..0);
            let is_udp = |index: usize| {
                matches!(flows.all.get(index).map(|flow| &flow.transport), Some(Transport::Udp { .. }))
            };
            if named.clone().any(is_udp) {
                flow.error("is a UDP flow, without a congestion control that has a target");
            }
            for flow in named {
                if let Some(target) = target {
                    add(ChangeKind::FlowTarget { flow, target });
                }
            }
        }
        (None, None, Some(user)) => {
            for field in [&rate, &delay, &target] {
                refuse(
                    field,
                    "applies only to a link or a flow; a user has `to`, `forward` and `interruption`",
                );
            }
            if to.is_none() {
                section
                    .error("missing key \"to\" in [[change]] of a user: the cell that it is handed over to");
            }
            let at = to.as_ref().map_or(section.at, |to| to.at);
            let to = to.and_then(|to| network.cell_of(&to));
            let forward = forward.and_then(|f| FORWARD.kind.read(&f)).unwrap_or(FORWARD.default.0);
            let interruption = interruption.and_then(|f| INTERRUPTION.kind.read(&f));
            let interruption = interruption.unwrap_or(INTERRUPTION.default.0);
            for user in network.users_of(&user).unwrap_or(0..0) {
                if let Some(to) = to {
                    let what = ChangeKind::Handover { user, to, forward, interruption };
                    changes.push((Change { at: when, what }, at));
                }
            }
        }
        (None, Some(other), _) | (Some(_), Some(other), _) | (Some(_), None, Some(other)) => {
            other.error("a change has only one of link, flow and user");
        }
        (None, None, None) => {
            section.error("missing key \"link\", \"flow\" or \"user\" in [[change]]");
        }
    }
    section.finish();
}

fn refuse(field: &Option<Field<'_>>, why: &str) {
    if let Some(field) = field {
        field.error(why);
    }
}
