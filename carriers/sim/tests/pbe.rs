//! PBE-CC in simulated cells: its receiver decodes the cell's control channel, which may be late, rare, silent or false.

mod common;

use common::{column, play};
use ranpace_sim::{FlowResult, RunResult};

/// A download in an LTE cell of 20 MHz, 300 m from the mast, with further elements.
fn text(cc: &str, more: &str) -> String {
    format!(
        r#"
duration = "20s"
sample = "50ms"

[[link]]
name = "core"
from = "server"
to = "mast"
rate = "1Gbit/s"
delay = "15ms"
queue = {{ kind = "droptail", limit = "unlimited" }}
duplex = true

[[cell]]
name = "cell"
host = "mast"
preset = "lte"

[[user]]
name = "phone"
cell = "cell"
position = [300, 0]

[[user]]
name = "neighbour"
cell = "cell"
position = [250, 100]

[[flow]]
name = "own"
from = "server"
to = "phone"
cc = "{cc}"
{more}
"#
    )
}

/// The neighbour downloads with CUBIC in the middle of the time.
const NEIGHBOUR: &str = "[[flow]]\nname = \"other\"\nfrom = \"server\"\nto = \"neighbour\"\ncc = \"cubic\"\nstart = \"5s\"\nstop = \"12s\"\n";

fn own(result: &RunResult) -> &FlowResult {
    &result.flows[0]
}

/// Goodput in Mbit/s and the 95th percentile of the delay in ms.
fn figures(cc: &str, more: &str) -> (f64, f64) {
    let result = play(&text(cc, more));
    let flow = own(&result);
    (flow.goodput.as_f64() / 1e6, flow.queueing_delay.p95.as_secs_f64() * 1e3)
}

/// The published overhead is above that of this cell, so the flow yields to one that always has data (`reproductions/peers-pbe`).
#[test]
fn in_a_cell_it_has_most_of_the_goodput_of_bbr_at_a_fraction_of_its_delay() {
    for (cc, more, share) in [
        ("pbe:guard=off", "", 0.83),
        ("pbe:guard=off", NEIGHBOUR, 0.7),
        ("pbe:guard=off:gamma=0.01", "", 0.86),
        ("pbe:guard=off:gamma=0.01", NEIGHBOUR, 0.78),
    ] {
        let (pbe, bbr) = (figures(cc, more), figures("bbr1", more));
        assert!(pbe.0 >= share * bbr.0 && pbe.1 <= 0.25 * bbr.1, "{cc}, {more}: {pbe:?}, BBR {bbr:?}");
    }
}

#[test]
fn guarded_it_has_cubics_goodput_at_a_fraction_of_its_delay() {
    for more in ["", NEIGHBOUR] {
        let (pbe, cubic) = (figures("pbe", more), figures("cubic", more));
        assert!(pbe.0 >= 0.85 * cubic.0 && pbe.1 <= 0.5 * cubic.1, "{more}: {pbe:?}, CUBIC {cubic:?}");
    }
}

#[test]
fn the_same_scenario_has_the_same_result() {
    let once = || {
        let result = play(&text("pbe:miss=0.2", NEIGHBOUR));
        (own(&result).delivered, column(own(&result), "state_report_bit_s").to_vec())
    };
    let (first, second) = (once(), once());
    assert_eq!(first.0, second.0);
    assert!(first.1.iter().zip(&second.1).all(|(a, b)| a.to_bits() == b.to_bits()));
}

#[test]
fn its_share_follows_the_users_of_the_cell() {
    let result = play(&text("pbe:guard=off", NEIGHBOUR));
    let (times, users) = (column(own(&result), "time_s"), column(own(&result), "receiver_users"));
    let mean = |from: f64, until: f64| {
        let some: Vec<f64> =
            times.iter().zip(users).filter(|(at, _)| **at > from && **at < until).map(|(_, n)| *n).collect();
        some.iter().sum::<f64>() / some.len() as f64
    };
    let (alone, together, again) = (mean(2.0, 5.0), mean(7.0, 12.0), mean(16.0, 20.0));
    assert!(alone < 1.05 && again < 1.05, "{alone} {again}");
    assert!((1.9..2.05).contains(&together), "{together}");
}

/// Whatever the decoder says, the guarded flow is not much worse than CUBIC.
#[test]
fn a_control_channel_that_is_late_rare_silent_or_false_leaves_about_cubics_goodput() {
    let cubic = figures("cubic", NEIGHBOUR);
    for modem in [
        "delay = \"300ms\"",
        "every = 50",
        "stop = \"6s\"",
        "stop = \"6s\"\nresume = \"9s\"",
        "stop = \"0s\"",
        "error = 0.9",
        "content = \"full\"",
        "content = \"empty\"",
        "content = \"random\"",
    ] {
        let (goodput, delay) = figures("pbe", &format!("{NEIGHBOUR}[modem]\n{modem}\n"));
        // Random messages, the worst case, leave 0.795.
        assert!(goodput >= 0.77 * cubic.0, "{modem}: {goodput} Mbit/s, CUBIC {}", cubic.0);
        assert!(delay <= 1.2 * cubic.1, "{modem}: {delay} ms, CUBIC {}", cubic.1);
    }
}

#[test]
fn without_a_cell_it_is_cubic() {
    let link = |cc: &str| {
        let result = play(&format!(
            "duration = \"10s\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"20Mbit/s\"\ndelay = \"20ms\"\nduplex = true\n\
             [[flow]]\nfrom = \"a\"\nto = \"b\"\ncc = \"{cc}\"\n"
        ));
        (own(&result).delivered, own(&result).sent_packets)
    };
    assert_eq!(link("pbe"), link("cubic"));
}

#[test]
fn a_slow_wire_is_noticed_and_filled() {
    // Half of what the cell carries for this user.
    let wire = text("pbe:guard=off", "").replace("1Gbit/s", "25Mbit/s").replace("unlimited", "1000 packets");
    let result = play(&wire);
    let states = column(own(&result), "receiver_pbe_state");
    let elsewhere = states.iter().filter(|state| **state == 2.0).count() as f64 / states.len() as f64;
    let goodput = own(&result).goodput.as_f64() / 1e6;
    assert!(elsewhere >= 0.8, "in Internet for {elsewhere} of the time");
    assert!(goodput >= 0.85 * 25.0 * 1448.0 / 1500.0, "{goodput} Mbit/s");
}

#[test]
fn a_handover_begins_a_ramp_in_the_other_cell() {
    let more = r#"
[[cell]]
name = "second"
host = "mast"
preset = "lte"
position = [600, 0]

[[change]]
at = "10s"
user = "phone"
to = "second"
"#;
    let result = play(&text("pbe:guard=off", more));
    let times = column(own(&result), "time_s");
    let states = column(own(&result), "receiver_pbe_state");
    let goodput = column(own(&result), "goodput_bit_s");
    let ramp = times.iter().zip(states).find(|(at, state)| **at > 10.0 && **state == 0.0);
    assert!(ramp.is_some_and(|(at, _)| *at < 10.5), "{ramp:?}");
    let after: Vec<f64> =
        times.iter().zip(goodput).filter(|(at, _)| **at > 12.0).map(|(_, rate)| rate / 1e6).collect();
    let mean = after.iter().sum::<f64>() / after.len() as f64;
    assert!(mean > 20.0, "{mean} Mbit/s");
}
