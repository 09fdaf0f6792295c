//! Cost of cells with TCP over them: the cells of the table in docs/performance.md.
//!
//! `cargo run --release -p ranpace-benches --example cell -- USERS DOWNLOADING [SECONDS] [nr] [disc] [walk] [reports]`
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::time::Instant;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [users, downloading, rest @ ..] = args.as_slice() else {
        println!("usage: cell USERS DOWNLOADING [SECONDS] [nr] [disc] [walk] [reports]");
        return;
    };
    let (users, downloading): (u32, u32) = (users.parse().unwrap(), downloading.parse().unwrap());
    let seconds = rest.first().map_or("10", String::as_str);
    let nr = rest.iter().any(|word| word == "nr");
    let reports = rest.iter().any(|word| word == "reports");
    // In place of one distance: users spread over the cell, standing or walking.
    let is_in = |word: &str| rest.iter().any(|own| own == word);
    // Users at 50 m, EPA at 3 km/h, proportional fair, AM, everything given out, CQI every ms.
    // NR: 132 PRBs of 120 kHz with a carrier for each direction, 13 of 14 symbols for data: 852.6 Mbit/s.
    let (preset, more, position) = if nr {
        ("diarra-mmwave-los", "duplex = \"fdd\"\nusable_ttis = 0.92857", "[10, 0, 1.5]")
    } else {
        ("zhong-lte-ch6", "buffer = \"1MB\"", "[50, 0]")
    };
    let place = match (is_in("disc"), is_in("walk")) {
        (true, _) => "drop = { radius = \"400m\" }".to_owned(),
        (_, true) => "walk = { radius = \"400m\", speed = [\"1m/s\", \"5m/s\"] }".to_owned(),
        _ => format!("position = {position}"),
    };
    let mut text = format!(
        r#"
name = "cell"
duration = "{seconds}s"
sample = "100ms"
[[link]]
name = "core"
from = "server"
to = "mast"
rate = "10Gbit/s"
delay = "5ms"
duplex = true
[[cell]]
name = "cell"
host = "mast"
preset = "{preset}"
{more}
"#
    );
    if downloading > 0 {
        text += &format!("[[user]]\nname = \"phone\"\n{place}\ncount = {downloading}\n");
    }
    if users > downloading {
        text += &format!("[[user]]\nname = \"idle\"\n{place}\ncount = {}\n", users - downloading);
    }
    if downloading > 0 {
        text += "[[flow]]\nfrom = \"server\"\nto = \"phone\"\ncc = \"cubic\"\n";
    }
    let scenario = ranpace_scenario::parse(&text, "cell", &mut ()).unwrap();
    let mut rows = 0;
    let mut read = |report: &ranpace_rnis::SlotReport<'_>| rows += report.users.len();
    let begin = Instant::now();
    let mut simulation = ranpace_sim::Simulation::new(&scenario);
    if reports {
        simulation = simulation.with_reports(ranpace_radio::cell::CellSubscription::EVERY_SLOT, &mut read);
    }
    let result = simulation.run();
    let spent = begin.elapsed().as_secs_f64();
    assert!(result.ledger.balances());
    let simulated = scenario.duration.as_secs_f64();
    let goodput: f64 = result.flows.iter().map(|flow| flow.goodput.as_f64()).sum();
    println!(
        "{users} users, {downloading} downloading: {:.2} ms a simulated second, {:.1} Mbit/s, {} events, {rows} rows of reports",
        spent / simulated * 1e3,
        goodput / 1e6,
        result.events,
    );
}
