//! Cost of a packet of a QUIC flow: both hosts, and the links between them, in packets per second of CPU time.
//!
//! `cargo run --release -p ranpace-benches --example quic -- CC RATE RTT BUFFER DURATION [FLOWS] [LOSS] [tcp]`
#![allow(clippy::print_stdout, clippy::unwrap_used)]

/// CPU time of this process so far, in seconds: its `utime` and `stime` in Linux's ticks of 10 ms (proc(5)). Wall time
/// on a machine with others would be theirs.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let after_name = stat.rsplit(')').next().unwrap();
    let ticks: u64 =
        after_name.split_whitespace().skip(11).take(2).map(|tick| tick.parse::<u64>().unwrap()).sum();
    ticks as f64 / 100.0
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [cc, rate, rtt, buffer, duration, rest @ ..] = args.as_slice() else {
        println!("usage: quic CC RATE RTT BUFFER DURATION [FLOWS] [LOSS] [tcp]");
        return;
    };
    let flows = rest.first().map_or("1", String::as_str);
    let loss = rest.get(1).map_or("0.0", String::as_str);
    let transport = if rest.iter().any(|word| word == "tcp") { "tcp" } else { "quic" };
    let half = rtt.parse::<ranpace_units::Span>().unwrap() / 2;
    let text = format!(
        r#"
name = "quic"
duration = "{duration}"
[[link]]
name = "down"
from = "server"
to = "phone"
rate = "{rate}"
delay = "{half}"
queue = {{ kind = "droptail", limit = "{buffer}" }}
loss = {loss}
[[link]]
name = "up"
from = "phone"
to = "server"
rate = "unlimited"
delay = "{half}"
[[flow]]
from = "server"
to = "phone"
transport = "{transport}"
cc = "{cc}"
count = {flows}
"#
    );
    let scenario =
        ranpace_scenario::parse(&text, "quic.toml", &mut ()).unwrap_or_else(|error| panic!("{error}"));
    let before = cpu_seconds();
    let result = ranpace_sim::Simulation::new(&scenario).run();
    let seconds = cpu_seconds() - before;
    assert!(result.ledger.balances(), "{:?}", result.ledger);
    let goodput: f64 = result.flows.iter().map(|flow| flow.goodput.as_f64() / 1e6).sum();
    let data: u64 = result.flows.iter().map(|flow| flow.sent_packets).sum();
    let acks: u64 = result.flows.iter().map(|flow| flow.totals.acks).sum();
    println!(
        "{cc} {transport}: {goodput:.1} Mbit/s, {data} data packets and {acks} acknowledgements in {seconds:.2} s: {:.0} data packets, {:.0} packets a CPU second",
        data as f64 / seconds,
        (data + acks) as f64 / seconds
    );
}
