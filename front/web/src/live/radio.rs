//! `ranpace rnis serve`: its extension (`/rni/v2/vendor`), which says what each user got in the last slots.

use ranpace_rnis::etsi::vendor::{CellConfig, LinkMeas, TtiMeas};

use crate::live::reading::{MOST, Reading};
use crate::protocol::{CellAbout, Subject, UserAbout};

/// Cells and users of an RNIS server.
pub fn reading(cells: &[CellConfig], users: &[TtiMeas]) -> Reading {
    let mut reading = Reading { name: "RNIS server".to_owned(), ..Reading::default() };
    reading.cells = (cells.iter())
        .map(|cell| CellAbout {
            name: cell.ecgi.cell_id.clone(),
            host: String::new(),
            prbs: cell.prbs.into(),
            slot_s: cell.tti_ns as f64 / 1e9,
            x_m: 0.0,
            y_m: 0.0,
        })
        .collect();
    let mut prbs = Vec::new();
    for user in users {
        let name = user.associate_id.value.clone();
        if reading.users.len() == MOST || reading.users.iter().any(|known| known.name == name) {
            continue;
        }
        let cell = cells.iter().position(|cell| cell.ecgi == user.ecgi).unwrap_or_default();
        reading.push(Subject::User, &name, "cqi", user.cqi.map(f64::from));
        let mut link = |way: &str, of: &LinkMeas| {
            for (column, value) in [
                ("mcs", f64::from(of.mcs)),
                ("queue_bytes", of.queue_bytes as f64),
                ("prbs", of.prbs),
                ("unused_prbs", of.unused_prbs),
            ] {
                reading.push(Subject::User, &name, &format!("{way}{column}"), Some(value));
            }
        };
        link("", &user.dl);
        link("uplink_", &user.ul);
        prbs.push([user.dl.prbs, user.ul.prbs]);
        reading.users.push(UserAbout { name, cell: cell as u32, position_m: None, can_move: false });
    }
    reading.prbs = Some(prbs);
    reading
}
