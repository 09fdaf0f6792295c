//! Runs the dumbbell of the ns-3 reference figures, and prints goodput, RTT and the cost per segment.
//!
//! `cargo run --release -p ranpace-sim --example dumbbell -- cubic 150Mbit/s 24ms 6MB 60s [FLOWS]`
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::time::Instant;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [cc, rate, rtt, buffer, duration, rest @ ..] = args.as_slice() else {
        println!("usage: dumbbell CC RATE RTT BUFFER DURATION [FLOWS]");
        return;
    };
    let flows = rest.first().map_or("1", String::as_str);
    let half = rtt.parse::<ranpace_units::Span>().unwrap() / 2;
    let text = format!(
        r#"
name = "dumbbell"
duration = "{duration}"
[[link]]
name = "down"
from = "server"
to = "phone"
rate = "{rate}"
delay = "{half}"
queue = {{ kind = "droptail", limit = "{buffer}" }}
[[link]]
name = "up"
from = "phone"
to = "server"
rate = "unlimited"
delay = "{half}"
[[flow]]
from = "server"
to = "phone"
cc = "{cc}"
count = {flows}
tcp = {{ receive_buffer_max = "64MB" }}
"#
    );
    let scenario =
        ranpace_scenario::parse(&text, "dumbbell.toml", &mut ()).unwrap_or_else(|error| panic!("{error}"));
    let start = Instant::now();
    let result = ranpace_sim::Simulation::new(&scenario).run();
    let elapsed = start.elapsed().as_secs_f64();
    assert!(result.ledger.balances(), "{:?}", result.ledger);
    let goodput: f64 = result.flows.iter().map(|flow| flow.goodput.as_f64() / 1e6).sum();
    let segments: u64 = result.flows.iter().map(|flow| flow.delivered.get() / 1448).sum();
    let flow = &result.flows[0];
    println!(
        "{cc} {rate} {rtt}: {goodput:.2} Mbit/s, rtt {}, delay {}, lost {}, retransmitted {}, timeouts {}, undone {}, {:.3} us a segment, {} events",
        flow.rtt.mean,
        flow.queueing_delay.mean,
        flow.dropped_packets,
        flow.retransmitted_packets,
        flow.timeouts,
        flow.undone,
        elapsed * 1e6 / segments as f64,
        result.events
    );
}
