//! A made-up run with a cell, for tests of what is shown.

use ranpace_sim::{CellResult, Column, RadioLinkResult, RunResult, Series, UserResult};
use ranpace_units::{Bytes, Rate};

use crate::synthetic;

/// Name of a column, and its values over time.
type Made = (&'static str, fn(f64) -> f64);

/// This many users with flows, all out of reach, and one without flows.
pub fn run(users: usize) -> RunResult {
    let mut run = synthetic::run("cubic", 1);
    let wire = run.links[0].clone();
    let way = |blocks| RadioLinkResult {
        scheduled: Bytes::new(1_000),
        blocks,
        retransmissions: blocks / 10,
        lost_blocks: 1,
        rlc_sent_again: 2,
        bearer_failures: 0,
        rate_alone: Rate::from_mbit_per_s(50),
    };
    let times = wire.series.get("time_s").unwrap_or_default().to_vec();
    let column = |(name, of): Made| Column {
        name: name.to_owned(),
        values: times.iter().map(|time| of(*time)).collect(),
    };
    let columns: [Made; 19] = [
        ("time_s", |time| time),
        ("cell", |_| 0.0),
        ("x_m", |time| 10.0 * time),
        ("y_m", |_| 0.0),
        ("sinr_db", |time| 20.0 - time / 2.0),
        ("cqi", |time| (15.0 - time / 6.0).floor()),
        ("mcs", |time| (28.0 - time / 3.0).floor()),
        ("prbs", |_| 90.0),
        ("scheduled_bit_s", |_| 40e6),
        ("retransmissions", |_| 3.0),
        ("queue_bytes", |time| 1e5 + time),
        ("head_of_line_s", |_| 0.05),
        ("uplink_sinr_db", |_| 12.0),
        ("uplink_mcs", |_| 15.0),
        ("uplink_prbs", |_| 4.0),
        ("uplink_scheduled_bit_s", |_| 1e6),
        ("uplink_retransmissions", |_| 0.0),
        ("uplink_queue_bytes", |_| 500.0),
        ("uplink_head_of_line_s", |_| 0.004),
    ];
    for number in 1..=users + 1 {
        let name = format!("user.{number}");
        let has_flows = number <= users;
        if has_flows {
            for way in ["down", "up"] {
                let mut link = wire.clone();
                link.name = format!("{name}.{way}");
                run.links.push(link);
            }
        }
        run.users.push(UserResult {
            name,
            cell: Some("cell".to_owned()),
            downlink: way(1_000),
            uplink: way(200),
            handovers: 0,
            out_of_service: has_flows.then(|| "out of reach".to_owned()),
            series: if has_flows {
                Series { columns: columns.map(column).into() }
            } else {
                Series::default()
            },
        });
    }
    run.flows[0].bottleneck = Some(1);
    run.cells.push(CellResult {
        name: "cell".to_owned(),
        users: users + 1,
        played_slots: 60_000,
        prbs: 100,
        downlink_prb_share: 0.91,
        uplink_prb_share: 0.04,
    });
    run
}
