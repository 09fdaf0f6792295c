//! CDBEv2 over the whole transport: flows share a line, and queues empty (Zhong 2021, chapter 7; acknowledgements every two
//! segments or 40 ms, 6 MB of buffer).

mod common;

use common::{Path, column, jain};
use ranpace_sim::{FlowResult, RunResult};

fn play(flows: &[&str], top: &str, rtt: &str) -> RunResult {
    let queue = r#"{ kind = "droptail", limit = "6MB" }"#;
    Path { rate: "20Mbit/s", rtt, queue, top, ..Path::default() }.play(flows)
}

/// Mean goodput from one instant to another, in bit/s.
fn goodput(flow: &FlowResult, from: f64, until: f64) -> f64 {
    let rows = column(flow, "time_s").iter().zip(column(flow, "goodput_bit_s"));
    let some: Vec<f64> =
        rows.filter(|(at, _)| **at > from + 1e-9 && **at < until + 1e-9).map(|(_, rate)| *rate).collect();
    some.iter().sum::<f64>() / some.len() as f64
}

/// Smallest RTT that the series shows from one instant to another, in seconds.
fn smallest_rtt(flow: &FlowResult, from: f64, until: f64) -> f64 {
    let rows = column(flow, "time_s").iter().zip(column(flow, "rtt_last_s"));
    rows.filter(|(at, _)| **at > from && **at <= until).map(|(_, rtt)| *rtt).fold(f64::INFINITY, f64::min)
}

#[test]
fn two_flows_are_fair_two_seconds_after_the_second_has_joined_and_their_rtt_returns_to_its_minimum() {
    for reference in ["pre", "live"] {
        for seed in 1..=3 {
            let cc = format!("cc = \"cdbev2:drain-ref={reference}:dsdl=true\"\nmtu = \"1452B\"");
            let late = format!("{cc}\nstart = \"3s\"");
            let top = format!("duration = \"15s\"\nsample = \"10ms\"\nseed = {seed}");
            let result = play(&[&cc, &late], &top, "24ms");
            let case = format!("{reference}, seed {seed}");
            let shares: Vec<f64> = result.flows.iter().map(|flow| goodput(flow, 5.0, 15.0)).collect();
            assert!(jain(&shares) >= 0.95, "{case}: {shares:?}");
            assert!(shares.iter().sum::<f64>() > 0.9 * 20e6 * 1400.0 / 1452.0, "{case}: {shares:?}");
            for from in [5.0, 10.0] {
                let rtt = smallest_rtt(&result.flows[0], from, from + 5.0);
                assert!(rtt < 0.0260, "{case}: {rtt} s from {from} s on");
            }
        }
    }
}
