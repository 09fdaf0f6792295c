//! The guard of the client-driven controls over the whole transport, with correct reports, in cases where it once kept flows far
//! below CUBIC (`docs/client-driven.md`; the whole grid is `examples/guard_grid.rs`).

mod common;

use common::{Path, column, play};
use ranpace_sim::FlowResult;

fn mbit(flow: &FlowResult) -> f64 {
    flow.goodput.as_f64() / 1e6
}

/// Goodput in Mbit/s from 8 s on of one flow, alone or beside a CUBIC that joins after 5 s.
fn goodput(path: &Path<'_>, cc: &str, beside: bool) -> f64 {
    let top = if beside { "duration = \"40s\"\nwarmup = \"8s\"" } else { "duration = \"30s\"" };
    let own = format!("cc = \"{cc}\"\nreceive_buffer_max = \"64MB\"");
    let rival = "cc = \"cubic\"\nstart = \"5s\"\nreceive_buffer_max = \"64MB\"";
    let flows: &[&str] = if beside { &[&own, rival] } else { &[&own] };
    mbit(&Path { top, ..*path }.play(flows).flows[0])
}

const CONTROLS: [&str; 2] = ["cdbe", "cdbev2"];

#[test]
fn alone_a_guarded_control_has_nine_tenths_of_the_better_of_itself_and_cubic() {
    for (rate, rtt, limit, link) in [
        ("1Mbit/s", "100ms", "60KB", ""),
        ("20Mbit/s", "60ms", "150KB", "loss = 0.01"),
        ("100Mbit/s", "200ms", "2.5MB", ""),
    ] {
        let queue = format!("{{ kind = \"droptail\", limit = \"{limit}\" }}");
        let path = Path { rate, rtt, queue: &queue, link, ..Path::default() };
        let cubic = goodput(&path, "cubic", false);
        for cc in CONTROLS {
            let (on, off) = (goodput(&path, cc, false), goodput(&path, &format!("{cc}:guard=off"), false));
            assert!(on >= 0.9 * off.max(cubic), "{rate}, {cc}: {on}, without the guard {off}, CUBIC {cubic}");
        }
    }
}

#[test]
fn beside_a_cubic_that_joins_it_has_what_it_has_without_the_guard() {
    let queue = r#"{ kind = "droptail", limit = "1.5MB" }"#;
    let path = Path { rate: "20Mbit/s", rtt: "60ms", queue, ..Path::default() };
    let cubic = goodput(&path, "cubic", true);
    for cc in CONTROLS {
        let (on, off) = (goodput(&path, cc, true), goodput(&path, &format!("{cc}:guard=off"), true));
        assert!(on >= off.min(0.8 * cubic), "{cc}: {on}, without the guard {off}, CUBIC {cubic}");
    }
}

#[test]
fn in_a_cell_it_has_cubics_goodput_at_a_fraction_of_its_delay() {
    let cell = |cc: &str| {
        let result = play(&format!(
            "duration = \"20s\"\n\
             [[link]]\nname = \"core\"\nfrom = \"server\"\nto = \"mast\"\nrate = \"10Gbit/s\"\ndelay = \"11ms\"\nduplex = true\n\
             [[cell]]\nhost = \"mast\"\npreset = \"lte\"\n[[user]]\nname = \"phone\"\nposition = [300, 0]\n\
             [[flow]]\nfrom = \"server\"\nto = \"phone\"\ncc = \"{cc}\"\n"
        ));
        (mbit(&result.flows[0]), result.flows[0].queueing_delay.mean.as_secs_f64())
    };
    let cubic = cell("cubic");
    for cc in ["cdbe", "cdbev2", "dcic", "cqic-s"] {
        let (goodput, delay) = cell(cc);
        assert!(goodput >= 0.85 * cubic.0, "{cc}: {goodput}, CUBIC {}", cubic.0);
        assert!(delay <= 0.2 * cubic.1, "{cc}: {delay} s, CUBIC {}", cubic.1);
    }
}

#[test]
fn over_a_bursty_link_with_outages_and_a_deep_buffer_the_control_keeps_the_window() {
    let link = |cc: &str| {
        let result = play(&format!(
            "duration = \"60s\"\n\
             [[link]]\nname = \"down\"\nfrom = \"a\"\nto = \"b\"\ntrace = \"bursty\"\ndelay = \"20ms\"\n\
             queue = {{ kind = \"droptail\", limit = \"2MB\" }}\n\
             [[link]]\nname = \"up\"\nfrom = \"b\"\nto = \"a\"\nrate = \"unlimited\"\ndelay = \"20ms\"\n\
             [[flow]]\nfrom = \"a\"\nto = \"b\"\ncc = \"{cc}\"\n"
        ));
        let flow = &result.flows[0];
        let driven = flow.series.get("state_guard_driven").map_or(0.0, |_| {
            let driven = column(flow, "state_guard_driven");
            driven.iter().filter(|value| **value == 1.0).count() as f64 / driven.len() as f64
        });
        (mbit(flow), flow.queueing_delay.mean.as_secs_f64(), driven)
    };
    let cubic = link("cubic");
    for cc in CONTROLS {
        let (on, off) = (link(cc), link(&format!("{cc}:guard=off")));
        assert!(on.2 >= 0.9, "{cc}: driven for {} of the time", on.2);
        assert!(on.0 >= 0.9 * off.0, "{cc}: {} Mbit/s, without the guard {}", on.0, off.0);
        assert!(
            on.1 <= 2.0 * off.1 && on.1 < 0.5 * cubic.1,
            "{cc}: {} s, {} s, CUBIC {} s",
            on.1,
            off.1,
            cubic.1
        );
    }
}

/// Flows of one kind that begin 6 s apart: Jain's index of their goodput from 60 s to 120 s.
fn jain(cc: &str, flows: u32) -> f64 {
    let mut text = r#"
        duration = "120s"
        warmup = "60s"
        [[link]]
        from = "server"
        to = "phone"
        rate = "20Mbit/s"
        delay = "12ms"
        queue = { kind = "droptail", limit = "6MB" }
        duplex = true
    "#
    .to_owned();
    for flow in 0..flows {
        text += &format!(
            "[[flow]]\nfrom = \"server\"\nto = \"phone\"\ncc = \"{cc}\"\nstart = \"{}s\"\n",
            6 * flow
        );
    }
    let scenario = ranpace_scenario::parse(&text, "test.toml", &mut ()).expect("it is right");
    let result = ranpace_sim::Simulation::new(&scenario).run();
    let rates = || result.flows.iter().map(|flow| flow.goodput.as_f64());
    rates().sum::<f64>().powi(2) / f64::from(flows) / rates().map(|rate| rate * rate).sum::<f64>()
}

#[test]
fn flows_of_one_kind_share_a_link_although_each_tries_its_reports() {
    // A newcomer's smallest RTT includes the others' queue. Without its checks: 0.39 and 0.17, 0.96 and 0.60.
    for (cc, flows, least) in [("cdbe", 4, 0.9), ("cdbe", 7, 0.9), ("cdbev2", 4, 0.9)] {
        let index = jain(cc, flows);
        assert!(index >= least, "{flows} flows of {cc}: {index:.2}");
    }
}
