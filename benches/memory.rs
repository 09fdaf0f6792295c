//! Memory of idle flows, of packets in flight and of users of a cell, as the system counts it (resident set, Linux).
//!
//! `cargo run --release -p ranpace-benches --example memory`
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use ranpace_sim::Simulation;

/// Resident sets, while it runs and at most, in KiB, of a child that plays the scenario: a peak is a process's.
fn resident(kind: &str, size: &str) -> (f64, f64) {
    let program = std::env::current_exe().unwrap();
    let output = std::process::Command::new(program).args([kind, size]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let (running, peak) = text.trim().split_once(' ').unwrap();
    (running.parse().unwrap(), peak.parse().unwrap())
}

fn own(what: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(what)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// A cell with so many users that are attached and idle, and one that downloads.
fn users(count: u64) -> String {
    format!(
        r#"
duration = "5s"
sample = "5s"
[[link]]
from = "a"
to = "mast"
rate = "10Gbit/s"
delay = "5ms"
duplex = true
[[cell]]
name = "cell"
host = "mast"
preset = "zhong-lte-ch6"
[[user]]
name = "phone"
position = [50, 0]
[[user]]
name = "idle"
position = [50, 0]
count = {count}
[[flow]]
from = "a"
to = "phone"
cc = "cubic"
"#
    )
}

fn text(kind: &str, size: u64) -> String {
    if kind == "user" {
        return users(size);
    }
    let (flows, rest, delay, duration) = match kind {
        // Connected, once used for one segment, and idle.
        "idle" => (size, "workload = { kind = \"fixed\", size = \"1000B\" }", 10, "2s"),
        // A window of so many segments, kept full over 0.8 s of round trip.
        _ => (
            1,
            "initial_window = 20000\nreceive_buffer = \"WINDOWB\"\nreceive_buffer_max = \"WINDOWB\"",
            400,
            "8s",
        ),
    };
    let rest = rest.replace("WINDOW", &(size * 1_448).to_string());
    format!(
        r#"
duration = "{duration}"
sample = "{duration}"
[[link]]
from = "a"
to = "b"
rate = "100Gbit/s"
delay = "{delay}ms"
queue = {{ kind = "droptail", limit = "unlimited" }}
duplex = true
[[flow]]
from = "a"
to = "b"
cc = "cubic:hystart=off"
count = {flows}
stagger = "20us"
{rest}
# So that something happens until the end.
[[flow]]
from = "a"
to = "b"
cc = "cubic"
receive_buffer_max = "1MB"
"#
    )
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [kind, size] = args.as_slice() {
        let scenario =
            ranpace_scenario::parse(&text(kind, size.parse().unwrap()), "memory.toml", &mut ()).unwrap();
        let mut running = 0;
        let result = Simulation::new(&scenario).run_while(&mut |_| {
            running = own("VmRSS:");
            true
        });
        assert!(result.ledger.balances());
        println!("{running} {}", own("VmHWM:"));
        return;
    }
    for (kind, what, few, many) in [
        ("idle", "an idle flow", "1000", "21000"),
        ("flight", "a packet in flight", "20000", "320000"),
        ("user", "an idle user of a cell", "1000", "21000"),
    ] {
        let count = many.parse::<f64>().unwrap() - few.parse::<f64>().unwrap();
        let (few, many) = (resident(kind, few), resident(kind, many));
        let bytes = |few: f64, many: f64| (many - few) * 1_024.0 / count;
        println!("{what}: {:.0} B, with its results {:.0} B", bytes(few.0, many.0), bytes(few.1, many.1));
    }
}
