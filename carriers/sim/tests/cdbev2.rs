//! CDBEv2 over the whole transport: flows share a link, and queues empty (Zhong 2020, chapter 7; acknowledgements every two
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
    for reference in ["pre", "live", "robust"] {
        for seed in 1..=3 {
            let cc = format!("cc = \"cdbev2:guard=off:drain-ref={reference}:dsdl=true\"\nmtu = \"1452B\"");
            let late = format!("{cc}\nstart = \"3s\"");
            let top = format!("duration = \"15s\"\nsample = \"10ms\"\nseed = {seed}");
            let result = play(&[&cc, &late], &top, "24ms");
            let case = format!("{reference}, seed {seed}");
            // Every 3 s, from 2 s after the join.
            for from in [5.0, 8.0, 11.0] {
                let shares: Vec<f64> =
                    result.flows.iter().map(|flow| goodput(flow, from, from + 3.0)).collect();
                assert!(jain(&shares) >= 0.95, "{case}: {shares:?} from {from} s on");
                let total: f64 = shares.iter().sum();
                assert!(total > 0.9 * 20e6 * 1400.0 / 1452.0, "{case}: {total} bit/s from {from} s on");
            }
            for from in [5.0, 10.0] {
                let rtt = smallest_rtt(&result.flows[0], from, from + 5.0);
                assert!(rtt < 0.0260, "{case}: {rtt} s from {from} s on");
            }
        }
    }
}

/// Goodput in Mbit/s of one flow over 100 ms whose acknowledgements have jitter of up to `jitter`.
fn with_jitter(reference: &str, jitter: &str) -> f64 {
    let text = format!(
        "duration = \"60s\"\nwarmup = \"20s\"\n{}",
        link("50ms", &format!("jitter = \"{jitter}\"")) + &flow(reference)
    );
    common::play(&text).flows[0].goodput.as_f64() / 1e6
}

/// The same over 60 ms that permanently become 80 ms.
fn after_a_step(reference: &str) -> f64 {
    let change = "[[change]]\nat = \"20s\"\nlink = \"down\"\ndelay = \"50ms\"\n";
    let text =
        format!("duration = \"60s\"\nwarmup = \"22s\"\n{}", link("30ms", "") + &flow(reference) + change);
    common::play(&text).flows[0].goodput.as_f64() / 1e6
}

fn link(half: &str, back: &str) -> String {
    format!(
        r#"[[link]]
name = "down"
from = "a"
to = "b"
rate = "20Mbit/s"
delay = "{half}"
queue = {{ kind = "droptail", limit = "6MB" }}
[[link]]
name = "up"
from = "b"
to = "a"
rate = "unlimited"
delay = "{half}"
{back}
"#
    )
}

fn flow(reference: &str) -> String {
    format!(
        "[[flow]]\nfrom = \"a\"\nto = \"b\"\nmtu = \"1452B\"\ncc = \"cdbev2:guard=off:drain-ref={reference}\"\n"
    )
}

#[test]
fn the_robust_reference_lives_with_jitter_and_with_a_longer_route() {
    // Targets set before the rule was chosen: 15 Mbit/s with jitter, 12 Mbit/s after the step.
    for jitter in ["5ms", "10ms", "20ms"] {
        let goodput = with_jitter("robust", jitter);
        assert!(goodput >= 15.0, "{jitter}: {goodput} Mbit/s");
    }
    let goodput = after_a_step("robust");
    assert!(goodput >= 12.0, "{goodput} Mbit/s after the step");
    // The rule's purpose: the reference from before the probe does not reach it.
    assert!(with_jitter("pre", "20ms") < 10.0 && after_a_step("pre") < 6.0);
}

#[test]
fn the_robust_reference_keeps_the_queue_of_seven_flows_short_and_shares_fair() {
    // Targets set in advance: Jain 0.85 and a mean RTT of 60 ms over the last 10 s.
    let play = |reference: &str| {
        let cc = format!(
            "cc = \"cdbev2:guard=off:drain-ref={reference}\"\nmtu = \"1452B\"\ncount = 7\nstagger = \"6s\""
        );
        let result = play(&[&cc], "duration = \"66s\"\nwarmup = \"56s\"", "24ms");
        let rtt = result.flows.iter().map(|flow| flow.rtt.mean.as_secs_f64()).sum::<f64>() / 7.0;
        (jain(&common::goodputs(&result)), rtt)
    };
    for reference in ["robust", "pre"] {
        let (fairness, rtt) = play(reference);
        assert!(fairness >= 0.85 && rtt <= 0.060, "{reference}: Jain {fairness}, RTT {rtt} s");
    }
    let (fairness, rtt) = play("live");
    assert!(fairness < 0.6 && rtt > 0.150, "live has become fair: Jain {fairness}, RTT {rtt} s");
}
