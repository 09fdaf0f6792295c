//! `[[change]]`: changes during the run.

use std::ops::RangeInclusive;

use ranpace_link::Service;
use ranpace_radio::cell::Place;
use ranpace_radio::channel::Move;
use ranpace_units::{Span, Time};

use crate::cell::user::height_m;
use crate::flow::{Flows, LEAST_ROUND_TRIP};
use crate::key::{
    ANY_TIME, Duration, Flag, Group, In, Is, Key, Kind as _, Name, Open, Own, Rates, Required, Within, Words,
};
use crate::limits::{LEAST_RATE, LEAST_SPAN, MOST_DELAY, MOST_RATE};
use crate::measure::SPEED;
use crate::model::{Change, ChangeKind, FeedKind, Transport};
use crate::network::Network;
use crate::reader::{Field, Section};
use crate::rnis::Content;

/// Slowest and fastest speed of a user that is moved, in m/s: those of waypoints. Ours.
const SPEEDS: RangeInclusive<f64> = 1e-3..=1_000.0;

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
    about: "user to hand over or to move; needs `to`, another [cell](cells.md) at the same host, or `position`. The name of \
            a user with `count` stands for all of them",
};
const FEED: Key<Words<FeedKind>> = Key {
    name: "feed",
    kind: Words(&[("rnis", FeedKind::Edge), ("modem", FeedKind::Modem)]),
    default: Open(""),
    about: "feed of [radio information](rnis.md) to change; needs `content`",
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

const POSITION: Key<Own> = Key {
    name: "position",
    kind: Own("position"),
    default: Open(""),
    about: "position that the user goes to from where it is then, and stays at, whatever it did before",
};
const WAY: Key<In> = Key {
    name: "speed",
    kind: In(&SPEED, SPEEDS),
    default: Open("at once"),
    about: "with `position`: speed of the straight way to it",
};
const CONTENT: Key<Words<Option<Content>>> = Key {
    name: "content",
    kind: Words(&[
        ("none", None),
        ("measured", Some(Content::Measured)),
        ("full", Some(Content::Full)),
        ("empty", Some(Content::Empty)),
        ("random", Some(Content::Random)),
    ]),
    default: Open(""),
    about: "what the feed's reports contain from then on, as in [`[rnis]`](rnis.md), whatever its `stop` and `resume` say; \
            `\"none\"`: there are none",
};

/// The keys of `[[change]]`.
pub(crate) const KEYS: Group = &[
    &AT,
    &LINK,
    &FLOW,
    &USER,
    &FEED,
    &RATE,
    &DELAY,
    &TARGET,
    &TO,
    &FORWARD,
    &INTERRUPTION,
    &POSITION,
    &WAY,
    &CONTENT,
];

/// Reads all `[[change]]`, in order of time. Moves go to the places of their users in `network`.
pub(crate) fn read(
    root: &mut Section<'_>,
    network: &mut Network,
    flows: &Flows,
    duration: Option<Span>,
) -> Vec<Change> {
    let mut found = Found::default();
    let sections = root.field("change").map(|field| field.tables()).unwrap_or_default();
    for section in sections {
        read_entry(section.of(&[KEYS]), network, flows, duration, &mut found);
    }
    let Found { mut changes, mut moves } = found;
    // The sorts are stable: changes at the same instant keep the file's order.
    changes.sort_by_key(|(change, _)| change.at);
    check_handovers(root, network, &changes);
    moves.sort_by_key(|(_, next)| next.at);
    for (user, next) in moves {
        let place = &mut network.users[user].config.place;
        if let Place::Moved(_, moves) = place {
            moves.push(next);
        } else {
            *place = Place::Moved(Box::new(place.clone()), vec![next]);
        }
    }
    changes.into_iter().map(|(change, _)| change).collect()
}

/// What the entries say.
#[derive(Default)]
struct Found {
    /// Changes, each with its place in the text.
    changes: Vec<(Change, usize)>,
    /// Moves, each with the index of its user.
    moves: Vec<(usize, Move)>,
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
    found: &mut Found,
) {
    let at = section.find(&AT).and_then(|field| {
        let at = AT.kind.read(&field)?;
        if let Some(duration) = duration.filter(|duration| at >= *duration) {
            field.error(format!("{at} is not before the scenario's end at {duration}"));
        }
        Some(Time::ZERO + at)
    });
    let when = at.unwrap_or(Time::ZERO);
    let of = [section.find(&LINK), section.find(&FLOW), section.find(&USER), section.find(&FEED)];
    let (rate, delay, target) = (section.find(&RATE), section.find(&DELAY), section.find(&TARGET));
    let to = [section.find(&TO), section.find(&FORWARD), section.find(&INTERRUPTION)];
    let (position, speed) = (section.find(&POSITION), section.find(&WAY));
    let content = section.find(&CONTENT);
    let place = section.at;
    let mut add = |what| found.changes.push((Change { at: when, what }, place));
    if of[2].is_none() {
        for field in to.iter().chain([&position, &speed]) {
            refuse(field, "applies only to a change of a user");
        }
    }
    if of[3].is_none() {
        refuse(&content, "applies only to a change of a feed");
    }
    match of {
        [Some(link), None, None, None] => {
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
        [None, Some(flow), None, None] => {
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
        [None, None, Some(user), None] => {
            for field in [&rate, &delay, &target] {
                refuse(
                    field,
                    "applies only to a link or a flow; a user has `to`, `forward` and `interruption`, or `position` and `speed`",
                );
            }
            let users = network.users_of(&user).unwrap_or(0..0);
            match position {
                Some(position) => {
                    for field in &to {
                        refuse(field, "belongs to a handover, which is a change without `position`");
                    }
                    read_moves(&user, &position, speed, when, users, network, &mut found.moves);
                }
                None => {
                    refuse(&speed, "applies only to a change with `position`");
                    read_handover(&section, to, when, users, network, &mut found.changes);
                }
            }
        }
        [None, None, None, Some(feed)] => {
            for field in [&rate, &delay, &target] {
                refuse(field, "applies only to a link or a flow; a feed has `content`");
            }
            if content.is_none() {
                section.error("missing key \"content\" in [[change]] of a feed");
            }
            let content = content.and_then(|field| CONTENT.kind.read(&field));
            if let Some((feed, content)) = FEED.kind.read(&feed).zip(content) {
                add(ChangeKind::FeedContent { feed, content });
            }
        }
        [None, None, None, None] => {
            section.error("missing key \"link\", \"flow\", \"user\" or \"feed\" in [[change]]");
        }
        several => {
            if let Some(other) = several.iter().flatten().nth(1) {
                other.error("a change has only one of link, flow, user and feed");
            }
        }
    }
    section.finish();
}

/// Reads a handover of `users`: `to`, `forward` and `interruption`.
fn read_handover(
    section: &Section<'_>,
    [to, forward, interruption]: [Option<Field<'_>>; 3],
    when: Time,
    users: std::ops::Range<usize>,
    network: &Network,
    changes: &mut Vec<(Change, usize)>,
) {
    if to.is_none() {
        section.error(
            "missing key \"to\" in [[change]] of a user: the cell that it is handed over to; or \"position\"",
        );
    }
    let at = to.as_ref().map_or(section.at, |to| to.at);
    let to = to.and_then(|to| network.cell_of(&to));
    let forward = forward.and_then(|f| FORWARD.kind.read(&f)).unwrap_or(FORWARD.default.0);
    let interruption = interruption.and_then(|f| INTERRUPTION.kind.read(&f));
    let interruption = interruption.unwrap_or(INTERRUPTION.default.0);
    for user in users {
        if let Some(to) = to {
            let what = ChangeKind::Handover { user, to, forward, interruption };
            changes.push((Change { at: when, what }, at));
        }
    }
}

/// Reads a move of `users`, named by the field `user`.
fn read_moves(
    user: &Field<'_>,
    position: &Field<'_>,
    speed: Option<Field<'_>>,
    when: Time,
    users: std::ops::Range<usize>,
    network: &Network,
    moves: &mut Vec<(usize, Move)>,
) {
    let speed_m_s = speed.and_then(|field| WAY.kind.read(&field));
    for index in users {
        let config = &network.users[index].config;
        if config.recording.is_some() {
            user.error("cannot be moved: its radio conditions are a recording, whatever its position");
            return;
        }
        let Some(to) = position.position(height_m(&config.place)) else { return };
        moves.push((index, Move { at: when, to, speed_m_s }));
    }
}

fn refuse(field: &Option<Field<'_>>, why: &str) {
    if let Some(field) = field {
        field.error(why);
    }
}
