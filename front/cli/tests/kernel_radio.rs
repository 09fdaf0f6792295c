//! MELD in the kernel, over an emulated link that loses packets: what it is told of the user's radio decides what it has. Where rights
//! are missing these tests say so and end.
#![cfg(all(target_os = "linux", feature = "kernel"))]
#![allow(clippy::unwrap_used)] // a test may

mod emulation;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use ranpace_cc::RadioHint;
use ranpace_kernel::{Control, Loaded, RadioFeed};
use ranpace_phy::LteBandwidth;
use ranpace_rnis::CellInfo;
use ranpace_units::{Bytes, Span, Time};

use emulation::{flow_under, rights, side_by_side, v4};

/// 20 Mbit/s, 20 ms each way, one packet in two hundred is lost; the queue holds as much as is on the way.
const SCENARIO: &str = r#"
duration = "10s"

[[link]]
name = "down"
from = "server"
to = "phone"
rate = "20Mbit/s"
delay = "20ms"
loss = 0.005
queue = { kind = "droptail", limit = "100KB" }
back = { rate = "20Mbit/s", loss = 0.0 }

[[flow]]
from = "server"
to = "phone"
cc = "cubic"
"#;
/// Period of the reports of an LTE cell.
const PERIOD: Duration = Duration::from_millis(8);

/// What a report says of the radio, of now.
type Report = fn(RadioHint) -> RadioHint;

/// The kernel's monotonic clock.
fn now() -> Time {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap();
    Time::from_nanos(now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}

/// Blocks of 2500 bytes on 50 PRBs, no queue.
fn good() -> RadioHint {
    RadioHint {
        tbs_bits: Some(20_000),
        most_granted: 50,
        granted: 50.0,
        ..RadioHint::of(CellInfo::lte(0, LteBandwidth::Mhz10), now())
    }
}

/// Goodput of the flow under a control of the kernel's, Mbit/s.
fn goodput(scenario: &str, control: &str) -> f64 {
    flow_under(control, scenario)["goodput_bit_s"].as_f64().unwrap() * 1e-6
}

/// The same for a MELD that is told so of the phone all the time; of nothing if `None`.
fn goodput_of(scenario: &str, text: &str, report: Option<Report>) -> f64 {
    let loaded = Loaded::unnamed(&Control::parse(text).unwrap()).unwrap();
    let feed = RadioFeed::of(&loaded).unwrap();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        if let Some(report) = report {
            let over = &over;
            // The phone is the scenario's second host.
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    feed.report(v4(1), &report(good())).unwrap();
                    thread::sleep(PERIOD);
                }
            });
        }
        let goodput = goodput(scenario, loaded.name());
        over.store(true, Ordering::Relaxed);
        goodput
    })
}

#[test]
fn losses_that_the_radio_explains_cost_nothing_and_all_others_as_much_as_ever() {
    let Some(_turn) = rights() else { return };
    // Goodput is judged beside that of a MELD; of the kernel's CUBIC if there is none.
    type Case = (&'static str, Option<(&'static str, Option<Report>)>);
    let cases: [Case; 6] = [
        ("the kernel's", None),
        // On a busy machine a report may come late.
        ("good reports", Some(("cubic+meld-me:max_age=1s", Some(|hint| hint)))),
        ("no reports", Some(("cubic+meld-me", None))),
        (
            "old ones",
            Some((
                "cubic+meld-me",
                Some(|hint| RadioHint { measured_at: hint.measured_at - Span::from_secs(10), ..hint }),
            )),
        ),
        ("small blocks", Some(("cubic+meld-me", Some(|hint| RadioHint { tbs_bits: Some(800), ..hint })))),
        (
            "a long queue",
            Some(("cubic+meld-me", Some(|hint| RadioHint { queue: Bytes::new(500_000), ..hint }))),
        ),
    ];
    let found = side_by_side(3, &cases, |(_, meld)| match meld {
        None => goodput(SCENARIO, "cubic"),
        Some((control, report)) => goodput_of(SCENARIO, control, *report),
    });
    let (plain, hidden) = (found[0], found[1]);
    assert!(hidden > 2.5 * plain && hidden > 15.0, "{hidden} beside {plain} Mbit/s");
    for ((case, _), here) in cases.iter().zip(&found).skip(2) {
        assert!((0.6..1.7).contains(&(here / plain)), "{case}: {here} beside {plain} Mbit/s");
    }
}

#[test]
fn packets_that_only_came_late_cost_nothing_whether_their_loss_was_hidden_or_told() {
    let Some(_turn) = rights() else { return };
    let late = "reorder = { probability = 0.005, delay = \"30ms\" }";
    let scenario = SCENARIO.replace("loss = 0.005\n", &format!("{late}\n")).replace(", loss = 0.0", "");
    assert!(scenario.contains(late) && !scenario.contains("loss"));
    let cases: [Option<Option<Report>>; 3] = [None, Some(Some(|hint| hint)), Some(None)];
    let found = side_by_side(3, &cases, |meld| match meld {
        None => goodput(&scenario, "cubic"),
        Some(report) => goodput_of(&scenario, "cubic+meld-me:max_age=1s", *report),
    });
    let [plain, hidden, told] = found[..] else { unreachable!() };
    for (case, here) in [("hidden", hidden), ("told", told)] {
        assert!(here > 0.8 * plain, "{case}: {here} beside {plain} Mbit/s");
    }
}
