//! What is in a scenario, for the page.

use ranpace_link::Service;
use ranpace_network::{PacketHandle, mean_rate};
use ranpace_radio::cell::{Cell, Place};
use ranpace_scenario::{ChangeKind, Content, FeedKind, FlowSpec, Scenario, Transport, Workload};
use ranpace_units::Time;
use toml_edit::DocumentMut;

use crate::compose;
use crate::limits;
use crate::protocol::{CellAbout, ChangeAbout, FlowAbout, LinkAbout, ScenarioAbout, UserAbout};

/// What is in a scenario and its text.
pub fn about(text: &str, scenario: &Scenario) -> ScenarioAbout {
    // It was parsed before; without entries flows are known by their own names.
    let entries = text.parse::<DocumentMut>().map(|document| compose::names(&document, "flow"));
    let entries = entries.unwrap_or_default();
    let host = |host: usize| scenario.hosts[host].clone();
    ScenarioAbout {
        name: scenario.name.clone(),
        duration_s: scenario.duration.as_secs_f64(),
        sample_s: scenario.sample.as_secs_f64(),
        seed: scenario.seed.to_string(),
        hosts: scenario.hosts.clone(),
        links: (scenario.links.iter())
            .map(|link| LinkAbout {
                name: link.name.clone(),
                from: host(link.from),
                to: host(link.to),
                rate_bit_s: mean_rate(&link.config.service),
                delay_s: link.config.delay.as_secs_f64(),
                is_recording: matches!(link.config.service, Service::Trace(_)),
            })
            .collect(),
        cells: cells(scenario),
        users: (scenario.users.iter())
            .map(|user| {
                let is_recorded = user.config.recording.is_some();
                UserAbout {
                    name: user.name.clone(),
                    cell: user.cell as u32,
                    position_m: if is_recorded { None } else { position(&user.config.place) },
                    can_move: !is_recorded,
                }
            })
            .collect(),
        flows: scenario.flows.iter().map(|flow| flow_about(scenario, &entries, flow)).collect(),
        proxies: scenario.proxies.iter().map(|proxy| proxy.name.clone()).collect(),
        changes: changes(scenario),
        series_bytes: limits::series_bytes(scenario) as f64,
    }
}

fn cells(scenario: &Scenario) -> Vec<CellAbout> {
    let described = |(number, spec): (usize, &ranpace_scenario::CellSpec)| {
        // The scenario's parser has checked it.
        let cell = Cell::<PacketHandle>::new(u16::try_from(number).ok()?, &spec.config).ok()?;
        Some(CellAbout {
            name: spec.name.clone(),
            host: scenario.hosts[spec.host].clone(),
            prbs: cell.info().prbs.into(),
            slot_s: cell.info().slot.as_secs_f64(),
            x_m: spec.config.channel.position.x,
            y_m: spec.config.channel.position.y,
        })
    };
    scenario.cells.iter().enumerate().filter_map(described).collect()
}

/// Where a user is at the beginning, unless its seed decides.
fn position(place: &Place) -> Option<[f64; 2]> {
    let position = match place {
        Place::Static(position) | Place::Walk(_, Some(position)) => *position,
        Place::Path(path) => path.at(Time::ZERO).position,
        Place::Drop(_) | Place::Walk(_, None) => return None,
        Place::Moved(first, _) => return position(first),
    };
    Some([position.x, position.y])
}

fn flow_about(scenario: &Scenario, entries: &[String], flow: &FlowSpec) -> FlowAbout {
    let of_entry = |entry: &&String| {
        let rest = flow.name.strip_prefix(entry.as_str());
        rest.is_some_and(|rest| {
            let number = rest.strip_prefix('.').map(|digits| digits.parse::<u32>());
            rest.is_empty() || number.is_some_and(|number| number.is_ok())
        })
    };
    // A flow may be called as one of another entry's would be: its own entry comes first.
    let own = entries.iter().find(|entry| **entry == flow.name).or_else(|| entries.iter().find(of_entry));
    let cc = match &flow.transport {
        Transport::Tcp { algorithm, .. }
        | Transport::Quic { algorithm, .. }
        | Transport::Datagram { algorithm, .. } => algorithm.as_str().to_owned(),
        Transport::Udp { .. } => "udp".to_owned(),
    };
    FlowAbout {
        name: flow.name.clone(),
        entry: own.unwrap_or(&flow.name).clone(),
        from: scenario.hosts[flow.from].clone(),
        to: scenario.hosts[flow.to].clone(),
        cc,
        start_s: flow.start.as_secs_f64(),
        stop_s: flow.stop.map(Time::as_secs_f64),
        workload: workload(&flow.workload),
    }
}

fn workload(workload: &Workload) -> String {
    match workload {
        Workload::Bulk => "bulk".to_owned(),
        Workload::Fixed { size } => format!("{size} once"),
        Workload::Repeat { size, pause, .. } => format!("{size} again and again, {pause} apart"),
        Workload::Paced { rate, .. } => format!("{rate} paced"),
        Workload::Web { page, interval } => format!("pages of {page} every {interval}"),
        Workload::Cbr { rate } => format!("{rate} constant"),
        Workload::Ppbp { rate, active_mean, .. } => format!("bursts of {rate}, {active_mean} at a time"),
    }
}

/// Changes, moves, and flows that start or stop during the run, in order of time.
fn changes(scenario: &Scenario) -> Vec<ChangeAbout> {
    let mut found: Vec<(Time, String)> = Vec::new();
    for change in &scenario.changes {
        let what = match &change.what {
            ChangeKind::LinkRate { link, rate } => format!("{} has {rate}", scenario.links[*link].name),
            ChangeKind::LinkDelay { link, delay } => {
                format!("{} has a delay of {delay}", scenario.links[*link].name)
            }
            ChangeKind::Handover { user, to, .. } => {
                format!("{} is handed over to {}", scenario.users[*user].name, scenario.cells[*to].name)
            }
            ChangeKind::FlowTarget { flow, target } => {
                format!("{} asks for a delay of {target}", scenario.flows[*flow].name)
            }
            ChangeKind::FeedContent { feed, content } => {
                let feed = match feed {
                    FeedKind::Edge => "the edge",
                    FeedKind::Modem => "modems",
                };
                match content {
                    None => format!("reports to {feed} stop"),
                    Some(Content::Measured) => format!("reports to {feed} are measured"),
                    Some(Content::Full) => format!("reports to {feed} lie: a full cell"),
                    Some(Content::Empty) => format!("reports to {feed} lie: an empty cell"),
                    Some(Content::Random) => format!("reports to {feed} are random"),
                }
            }
        };
        found.push((change.at, what));
    }
    for user in &scenario.users {
        if let Place::Moved(_, moves) = &user.config.place {
            let what = |to: ranpace_radio::channel::Position| {
                format!("{} moves to {} m, {} m", user.name, to.x, to.y)
            };
            found.extend(moves.iter().map(|next| (next.at, what(next.to))));
        }
    }
    for flow in &scenario.flows {
        if flow.start > Time::ZERO {
            found.push((flow.start, format!("{} starts", flow.name)));
        }
        if let Some(stop) = flow.stop {
            found.push((stop, format!("{} stops", flow.name)));
        }
    }
    for (name, feed) in [("the edge", &scenario.rnis), ("modems", &scenario.modem)] {
        found.extend(feed.stop.map(|at| (at, format!("reports to {name} stop"))));
        found.extend(feed.resume.map(|at| (at, format!("reports to {name} resume"))));
    }
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(at, what)| ChangeAbout { at_s: at.as_secs_f64(), what }).collect()
}
