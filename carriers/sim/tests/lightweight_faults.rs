//! Whatever happens to a Lightweight PEP's messages at any moment, over TCP and over QUIC: the flow never stalls, nothing is
//! retransmitted because of it, and after the longer of a second and 15 RTTs it costs at most a tenth of CUBIC's goodput.

#![allow(clippy::unwrap_used)] // a failed test

mod common;

use std::cell::RefCell;

use common::{column, play};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use ranpace_sim::{FlowResult, RunResult};

const SECONDS: f64 = 14.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Over {
    Tcp,
    Quic,
}

/// A fault of the PEP's messages from a moment on.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Removed,
    DelayedMs(u32),
    LostPercent(u8),
    Lie(&'static str),
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        2 => Just(Fault::Removed),
        2 => (1..3_000u32).prop_map(Fault::DelayedMs),
        2 => (1..=100u8).prop_map(Fault::LostPercent),
        4 => prop::sample::select(vec!["all", "ahead", "gaps", "replay", "flood", "forge"]).prop_map(Fault::Lie),
    ]
}

fn pep(fault: Fault, at_ms: u32) -> String {
    let keys = match fault {
        Fault::Removed => return format!("[[pep]]\nhost = \"edge\"\nstop = \"{at_ms}ms\"\n"),
        Fault::DelayedMs(ms) => format!("delay = \"{ms}ms\""),
        Fault::LostPercent(percent) => format!("loss = {}", f64::from(percent) / 100.0),
        Fault::Lie(lie) => format!("lie = {lie:?}"),
    };
    format!("[[pep]]\nhost = \"edge\"\n{keys}\nfaults_from = \"{at_ms}ms\"\n")
}

/// 20 ms of RTT to the PEP, 40 ms in all; the radio has 20 Mbit/s and a queue of the user's own.
fn run(cc: &str, over: Over, queue: &str, keys: &str, pep: &str) -> RunResult {
    run_at(20, cc, over, queue, keys, pep)
}

fn run_at(mbit: u32, cc: &str, over: Over, queue: &str, keys: &str, pep: &str) -> RunResult {
    let transport = if over == Over::Quic { "quic" } else { "tcp" };
    let wired = 10 * mbit;
    play(&format!(
        "duration = \"{SECONDS}s\"\nsample = \"100ms\"\n\
         [[link]]\nfrom = \"server\"\nto = \"edge\"\nrate = \"{wired}Mbit/s\"\ndelay = \"10ms\"\n\
         queue = {{ kind = \"droptail\", limit = \"1MB\" }}\n\
         [[link]]\nfrom = \"edge\"\nto = \"phone\"\nrate = \"{mbit}Mbit/s\"\ndelay = \"10ms\"\nqueue = {queue}\n\
         [[link]]\nfrom = \"phone\"\nto = \"edge\"\nrate = \"unlimited\"\ndelay = \"10ms\"\n\
         [[link]]\nfrom = \"edge\"\nto = \"server\"\nrate = \"unlimited\"\ndelay = \"10ms\"\n\
         [[flow]]\nfrom = \"server\"\nto = \"phone\"\ntransport = {transport:?}\ncc = {cc:?}\n{keys}\n{pep}"
    ))
}

const CODEL: &str = "{ kind = \"codel\", target = \"20ms\" }";

/// Mean goodput from an instant on, in bit/s.
fn goodput(flow: &FlowResult, from: f64) -> f64 {
    until_goodput(flow, from, f64::INFINITY)
}

/// The same until another one.
fn until_goodput(flow: &FlowResult, from: f64, until: f64) -> f64 {
    let rows = column(flow, "time_s").iter().zip(column(flow, "goodput_bit_s"));
    let rows = rows.filter(|(at, _)| **at > from + 1e-9 && **at < until + 1e-9);
    let some: Vec<f64> = rows.map(|(_, rate)| *rate).collect();
    some.iter().sum::<f64>() / some.len() as f64
}

fn runner(cases: u32) -> TestRunner {
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 0, ..Config::default() };
    // The same cases each time: a bound on goodput must not depend on luck.
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

fn over() -> impl Strategy<Value = Over> {
    prop_oneof![Just(Over::Tcp), Just(Over::Quic)]
}

/// noq gives up a connection with more than 2048 packets waiting behind a gap; the receive window stays below that.
fn keys(over: Over) -> &'static str {
    if over == Over::Quic { "max_data = \"2MB\"" } else { "" }
}

#[test]
fn no_fault_at_any_moment_stalls_a_flow_or_costs_more_than_a_tenth() {
    let plain: RefCell<Vec<(Over, RunResult)>> = RefCell::default();
    let any = (over(), fault(), 0..10_000u32);
    let found = runner(40).run(&any, |(over, fault, at_ms)| {
        let mut plain = plain.borrow_mut();
        if !plain.iter().any(|(known, _)| *known == over) {
            plain.push((over, run("cubic", over, CODEL, keys(over), "")));
        }
        let cubic = &plain.iter().find(|(known, _)| *known == over).unwrap().1.flows[0];
        let own = &run("mdcc", over, CODEL, keys(over), &pep(fault, at_ms)).flows[0];
        // 15 RTTs with the queue at its target are 0.9 s.
        let from = f64::from(at_ms) / 1_000.0 + 1.0;
        let (found, expected) = (goodput(own, from), goodput(cubic, from));
        if found < 0.9 * expected {
            return Err(TestCaseError::fail(format!("{found} of {expected} bit/s")));
        }
        let rates = column(own, "goodput_bit_s");
        let stalls = rates[10..].windows(10).any(|second| second.iter().all(|rate| *rate == 0.0));
        prop_assert!(!stalls && own.timeouts == 0, "{} timeouts", own.timeouts);
        Ok(())
    });
    if let Err(error) = found {
        panic!("{error}");
    }
}

#[test]
fn late_reports_in_slow_start_do_not_hold_a_fast_flow_low() {
    // 200 Mbit/s are 667 packets in 40 ms: the deficit of W_i when its slow start ends early takes CUBIC ten seconds to make up
    // for. The receiver shows that there is no queue before the PEP.
    for over in [Over::Tcp, Over::Quic] {
        let cubic = run_at(200, "cubic", over, CODEL, keys(over), "");
        for (delay_ms, at_ms) in [(5, 100), (10, 130), (20, 160), (60, 130)] {
            let pep = pep(Fault::DelayedMs(delay_ms), at_ms);
            let own = run_at(200, "mdcc", over, CODEL, keys(over), &pep);
            let from = f64::from(at_ms) / 1_000.0 + 1.0;
            let until = from + 4.0;
            let (found, expected) =
                (until_goodput(&own.flows[0], from, until), until_goodput(&cubic.flows[0], from, until));
            assert!(
                found >= 0.9 * expected,
                "{over:?} {delay_ms} ms from {at_ms} ms on: {found} of {expected}"
            );
        }
    }
}

#[test]
fn no_fault_at_any_moment_has_anything_sent_again() {
    // Nothing is lost: the receiver's window is the limit.
    let any = (over(), fault(), 0..10_000u32);
    let found = runner(24).run(&any, |(over, fault, at_ms)| {
        let keys = match over {
            Over::Quic => "max_data = \"150KB\"",
            Over::Tcp => "receive_buffer = \"300KB\"\nreceive_buffer_max = \"300KB\"",
        };
        let queue = "{ kind = \"droptail\", limit = \"10MB\" }";
        let result = run("mdcc", over, queue, keys, &pep(fault, at_ms));
        prop_assert_eq!(result.flows[0].retransmitted_packets, 0);
        Ok(())
    });
    if let Err(error) = found {
        panic!("{error}");
    }
}
