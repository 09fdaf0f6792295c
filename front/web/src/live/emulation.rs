//! `ranpace emulate`: the line of JSON at its socket. docs/emulate.md describes it.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::live::reading::{MOST, Reading};
use crate::protocol::{CellAbout, LinkAbout, Subject, UserAbout};

/// Columns that are not drawn: totals since the beginning, and what the map and the resource grid have.
const LEFT_OUT: [&str; 9] = [
    "delivered_bytes",
    "sent_bytes",
    "acked_bytes",
    "rtt_last_s",
    "cell",
    "prbs",
    "uplink_prbs",
    "kernel_rwnd_limited_s",
    "kernel_sndbuf_limited_s",
];

type Values = BTreeMap<String, Option<f64>>;

/// The line.
#[derive(Deserialize)]
pub struct Emulation {
    name: String,
    cells: Vec<Cell>,
    links: Vec<Link>,
    users: Vec<User>,
    flows: Vec<Flow>,
}

#[derive(Deserialize)]
struct Cell {
    name: String,
    prbs: u32,
    slot_s: f64,
    x_m: f64,
    y_m: f64,
}

#[derive(Deserialize)]
struct Link {
    name: String,
    from: Option<String>,
    to: Option<String>,
    rate_bit_s: Option<f64>,
    values: Values,
}

#[derive(Deserialize)]
struct User {
    name: String,
    values: Values,
}

#[derive(Deserialize)]
struct Flow {
    name: String,
    from: String,
    to: String,
    cc: String,
    values: Values,
}

/// What an emulation says.
pub fn reading(emulation: Emulation) -> Reading {
    let mut reading = Reading { name: format!("emulation of {}", emulation.name), ..Reading::default() };
    let push = |reading: &mut Reading, of, name: &str, values: &Values| {
        for (column, value) in values.iter().filter(|(column, _)| !LEFT_OUT.contains(&column.as_str())) {
            reading.push(of, name, column, *value);
        }
    };
    for cell in emulation.cells {
        let Cell { name, prbs, slot_s, x_m, y_m } = cell;
        reading.cells.push(CellAbout { name, host: String::new(), prbs, slot_s, x_m, y_m });
    }
    let is_radio = !reading.cells.is_empty();
    for link in emulation.links.into_iter().take(2 * MOST) {
        push(&mut reading, Subject::Link, &link.name, &link.values);
        // Directions of users have no ends.
        let Link { name, from: Some(from), to: Some(to), rate_bit_s, .. } = link else { continue };
        reading.links.push(LinkAbout { name, from, to, rate_bit_s, delay_s: 0.0, is_recording: false });
    }
    let mut prbs = Vec::new();
    for user in emulation.users.iter().take(MOST) {
        push(&mut reading, Subject::User, &user.name, &user.values);
        let of = |column: &str| user.values.get(column).copied().flatten();
        prbs.push(["prbs", "uplink_prbs"].map(|column| of(column).unwrap_or_default()));
        let cell = of("cell").map_or(0, |cell| cell as u32);
        // Where it is now is in its columns.
        reading.users.push(UserAbout { name: user.name.clone(), cell, position_m: None, can_move: false });
    }
    reading.prbs = is_radio.then_some(prbs);
    for flow in emulation.flows.into_iter().take(MOST) {
        push(&mut reading, Subject::Flow, &flow.name, &flow.values);
        reading.push_flow(&flow.name, [flow.from, flow.to], &flow.cc, "");
    }
    reading
}
