//! Controls inside the kernel on paths that mark and reorder packets: each does as well as the kernel's own CUBIC. Where rights are
//! missing this test says so and ends.
#![cfg(all(target_os = "linux", feature = "kernel"))]
#![allow(clippy::unwrap_used)] // a test may

mod emulation;

use ranpace_kernel::{Cgroup, Control, Loaded};

use emulation::{flow_in, rights, side_by_side};

/// 20 Mbit/s, 20 ms each way; the queue and the flow's options follow.
const LINK: &str = r#"
duration = "7s"

[[link]]
name = "down"
from = "server"
to = "phone"
rate = "20Mbit/s"
delay = "20ms"
back = { rate = "20Mbit/s" }
"#;
const FLOW: &str = "\n[[flow]]\nfrom = \"server\"\nto = \"phone\"\ncc = \"cubic\"\n";
/// Controls of which each has programs of its own; without feeds and proxies those that need them are CUBIC.
const CONTROLS: [&str; 7] =
    ["c2tcp:target=100ms", "newreno+c2tcp:target=100ms", "cdbe", "cdbev2", "cubic+meld-me", "sigma", "mdcc"];

/// The figures of a flow.
#[derive(Debug)]
struct Flow {
    /// Mbit/s.
    goodput: f64,
    /// 95th percentile of the RTT, seconds.
    rtt: f64,
    retransmitted: u64,
}

impl Flow {
    fn of(summary: &serde_json::Value) -> Self {
        Self {
            goodput: summary["goodput_bit_s"].as_f64().unwrap() * 1e-6,
            rtt: summary["rtt"]["p95_s"].as_f64().unwrap(),
            retransmitted: summary["retransmitted_packets"].as_u64().unwrap(),
        }
    }
}

/// Plays a scenario whose flow has this control of ours at both ends; the kernel's CUBIC if there is none.
fn play(scenario: &str, control: Option<&str>) -> Flow {
    let Some(control) = control else { return Flow::of(&flow_in(None, "cubic", scenario)) };
    let loaded = Loaded::unnamed(&Control::parse(control).unwrap()).unwrap();
    let cgroup = Cgroup::new().unwrap();
    let _attached = loaded.attach(cgroup.path(), None).unwrap();
    Flow::of(&flow_in(Some(cgroup.path()), loaded.name(), scenario))
}

/// The kernel's CUBIC, and beside it what each of our controls has.
fn play_all(scenario: &str) -> (Flow, Vec<(&'static str, Flow)>) {
    let controls: Vec<_> = std::iter::once(None).chain(CONTROLS.into_iter().map(Some)).collect();
    let mut flows = side_by_side(3, &controls, |control| play(scenario, *control)).into_iter();
    (flows.next().unwrap(), CONTROLS.into_iter().zip(flows).collect())
}

#[test]
fn marks_in_place_of_losses_are_answered() {
    let Some(_turn) = rights() else { return };
    let queue = "queue = { kind = \"codel\", limit = \"1000 packets\", ecn = true }\n";
    let scenario = [LINK, queue, FLOW, "ecn = true\n"].concat();
    let (plain, ours) = play_all(&scenario);
    for (control, here) in ours {
        println!("{control}: {here:?} beside {plain:?}");
        assert!(here.goodput > 0.8 * plain.goodput, "{control}: {here:?} beside {plain:?}");
        assert!(here.rtt < 1.5 * plain.rtt, "{control}: {here:?} beside {plain:?}");
        // Slow start may overshoot into drops, nothing later does.
        assert!(here.retransmitted < plain.retransmitted + 100, "{control}: {here:?} beside {plain:?}");
    }
}

#[test]
fn reordered_packets_that_were_taken_for_lost_cost_no_more_than_cubic() {
    let Some(_turn) = rights() else { return };
    let queue = "queue = { kind = \"droptail\", limit = \"200KB\" }\nreorder = { probability = 0.005, delay = \"30ms\" }\n";
    let scenario = [LINK, queue, FLOW].concat();
    let (plain, ours) = play_all(&scenario);
    for (control, here) in ours {
        println!("{control}: {here:?} beside {plain:?}");
        assert!(here.goodput > 0.8 * plain.goodput, "{control}: {here:?} beside {plain:?}");
    }
}
