//! Cells played with transport over them.
#![allow(clippy::unwrap_used)]

mod common;

use common::play;
use proptest::prelude::*;
use ranpace_cc::Algorithm;
use ranpace_radio::cell::CellSubscription;
use ranpace_scenario::cells::PRESETS;
use ranpace_scenario::presets::{CellRunSpec, cell};
use ranpace_sim::{FlowResult, RunResult, Simulation};
use ranpace_units::Span;

const WIRE: &str = r#"
[[link]]
name = "wire"
from = "server"
to = "mast"
rate = "1Gbit/s"
delay = "5ms"
duplex = true
"#;

fn preset(name: &str, cc: &str, seconds: u64) -> String {
    let preset = PRESETS.iter().find(|preset| preset.name == name).unwrap();
    let algorithm: Algorithm = cc.parse().unwrap();
    let mut spec = CellRunSpec::new(preset, &algorithm);
    spec.duration = Span::from_secs(seconds);
    cell(&spec)
}

/// A scenario with cells at "mast" and further elements.
fn scenario(seconds: u64, more: &str) -> String {
    format!("duration = \"{seconds}s\"\n{WIRE}\n{more}")
}

#[test]
fn every_preset_is_played_and_accounts_for_every_byte() {
    for known in PRESETS {
        let result = play(&preset(known.name, "cubic", 3));
        let best = result.flows.iter().map(|flow| flow.goodput.as_f64()).fold(0.0, f64::max);
        assert!(best > 1e6, "{}: {best}", known.name);
        let [cell] = result.cells.as_slice() else { panic!("{}: one cell", known.name) };
        for share in [cell.downlink_prb_share, cell.uplink_prb_share] {
            assert!((0.0..=1.0 + 1e-9).contains(&share), "{}: {share}", known.name);
        }
    }
}

#[test]
fn a_full_cell_of_ns_3_carries_its_blocks_less_their_headers() {
    // 75.4 Mbit/s of blocks at 50 m, less the headers of all layers and acknowledgements.
    let result = play(
        &scenario(
            6,
            r#"
[[cell]]
name = "cell"
host = "mast"
preset = "zhong-lte-ch6"
fading = "none"
buffer = "2MB"
[[user]]
name = "phone"
position = [50, 0]
[[flow]]
from = "server"
to = "phone"
cc = "cubic"
start = "0s"
"#,
        )
        .replacen("duration", "warmup = \"2s\"\nduration", 1),
    );
    let goodput = result.flows[0].goodput.as_f64() / 1e6;
    assert!((70.0..73.0).contains(&goodput), "{goodput}");
    let down = result.links.iter().find(|link| link.name == "phone.down").unwrap();
    assert!(down.utilisation.unwrap() > 0.95, "{:?}", down.utilisation);
    assert!((result.cells[0].downlink_prb_share - 1.0).abs() < 0.01);
    assert_eq!(result.users[0].out_of_service, None);
}

#[test]
fn users_out_of_reach_get_nothing_and_are_told_why() {
    let result = play(&scenario(
        3,
        r#"
[[cell]]
name = "cell"
host = "mast"
preset = "zhong-lte-ch6"
fading = "none"
[[user]]
name = "far"
position = [5000, 0]
[[user]]
name = "deaf"
position = [400, 0]
[[flow]]
from = "server"
to = "far"
cc = "cubic"
[[flow]]
from = "server"
to = "deaf"
cc = "cubic"
"#,
    ));
    assert!(result.flows.iter().all(|flow| flow.goodput.is_zero()));
    let why = |user: usize| result.users[user].out_of_service.clone().unwrap();
    assert!(why(0).contains("downlink") && why(1).contains("uplink"), "{} / {}", why(0), why(1));
}

/// With the MCS of the worst part, a fading band of 20 MHz seldom has an MCS as a whole: a served user has service all the same.
#[test]
fn users_served_in_a_part_of_the_band_are_not_out_of_service() {
    let result = play(
        &scenario(
            4,
            r#"
[[cell]]
name = "cell"
host = "mast"
preset = "zhong-lte-ch6"
[[user]]
name = "near"
count = 20
position = [150, 0]
[[user]]
name = "far"
position = [5000, 0]
[[flow]]
from = "server"
to = "near"
cc = "cubic"
[[flow]]
from = "server"
to = "far"
cc = "cubic"
"#,
        )
        .replacen("duration", "warmup = \"1s\"\nduration", 1),
    );
    let (near, far) = result.users.split_at(20);
    assert!(result.flows[..20].iter().all(|flow| flow.goodput.as_f64() > 1e5));
    for user in near {
        assert_eq!(user.out_of_service, None, "{}", user.name);
    }
    assert!(
        far[0].out_of_service.as_ref().is_some_and(|why| why.contains("any part of the downlink's band"))
    );
}

/// The rate of a block of the table in each subframe is 4.392 Mbit/s on 6 PRBs; a real stack of the same band carries 3.35 of TCP's data
/// at the highest MCS.
#[test]
fn a_narrow_cell_carries_what_its_own_channels_leave() {
    let goodput = |prbs: u32, control: &str| {
        let result = play(
            &scenario(
                10,
                &format!(
                    r#"
[[cell]]
name = "cell"
host = "mast"
preset = "lte"
prbs = {prbs}
fixed_mcs = 28
block_errors = 0.0
{control}
[[user]]
name = "phone"
position = [50, 0]
[[flow]]
from = "server"
to = "phone"
cc = "cubic"
"#
                ),
            )
            .replacen("duration", "warmup = \"3s\"\nduration", 1),
        );
        let down = result.links.iter().find(|link| link.name == "phone.down").unwrap();
        assert!((0.95..1.005).contains(&down.utilisation.unwrap()), "{prbs}: {:?}", down.utilisation);
        result.flows[0].goodput.as_f64() / 1e6
    };
    let (free, standard) = ("control_channels = \"none\"", "control_channels = \"3gpp\"");
    for (prbs, expected) in [(6, 0.80), (15, 0.94), (25, 1.0), (50, 1.0)] {
        let (all, left) = (goodput(prbs, free), goodput(prbs, standard));
        assert!((left / all - expected).abs() < 0.03, "{prbs} PRBs: {left} of {all}");
        // Defaults: as in the standard below 25 PRBs, and none from there on.
        let usual = goodput(prbs, "");
        assert_eq!(usual, if prbs < 25 { left } else { all }, "{prbs} PRBs");
        if prbs == 6 {
            assert!((left / 3.35 - 1.0).abs() < 0.03, "{left}");
        }
    }
}

#[test]
fn a_handover_keeps_what_is_forwarded_and_loses_the_rest() {
    let play_with = |forward: bool| {
        play(&scenario(
            6,
            &format!(
                r#"
[[cell]]
name = "a"
host = "mast"
preset = "lte"
[[cell]]
name = "b"
host = "mast"
preset = "lte"
position = [600, 0, 30]
[[user]]
name = "car"
cell = "a"
waypoints = {{ points = [[200, 0], [400, 0]], speed = "30m/s" }}
[[flow]]
from = "server"
to = "car"
cc = "cubic"
[[change]]
at = "3s"
user = "car"
to = "b"
forward = {forward}
interruption = "50ms"
"#
            ),
        ))
    };
    let (kept, lost) = (play_with(true), play_with(false));
    for result in [&kept, &lost] {
        assert_eq!((result.users[0].cell.as_deref(), result.users[0].handovers), (Some("b"), 1));
        assert!(result.flows[0].delivered.get() > 1_000_000);
    }
    let dropped = |result: &RunResult| result.ledger.dropped + result.ledger.lost;
    assert!(dropped(&lost) > dropped(&kept), "{:?} / {:?}", lost.ledger, kept.ledger);
}

#[test]
fn reports_and_samples_change_nothing() {
    let text = preset("zhong-lte-ch6", "cubic", 2);
    let plain = play(&text);
    let parsed = ranpace_scenario::parse(&text, "test", &mut ()).unwrap();
    let mut rows = 0;
    let mut read = |report: &ranpace_rnis::SlotReport<'_>| rows += report.users.len();
    let told = Simulation::new(&parsed).with_reports(CellSubscription::EVERY_SLOT, &mut read).run();
    assert!(rows > 5000, "{rows}");
    let flows = |result: &RunResult| {
        let of = |flow: &FlowResult| (flow.delivered, flow.sent_packets, flow.rtt.clone());
        result.flows.iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(flows(&plain), flows(&told));
    assert_eq!(plain.ledger, told.ledger);
    let seldom = play(&text.replacen("duration", "sample = \"70ms\"\nduration", 1));
    assert_eq!(flows(&plain), flows(&seldom));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn every_byte_is_accounted_for(
        known in 0..PRESETS.len(), cc in 0..4_usize, seed in 1..1000_u32, scheduler in 0..3_usize, am: bool,
        full: bool, users in 1..5_u32, buffer in 2..200_u32, distance in 10..1500_u32, errors in 0..3_usize,
    ) {
        let cc = ["cubic", "bbr1", "vegas", "c2tcp"][cc];
        let scheduler = ["pf", "rr", "max-ci"][scheduler];
        let (rlc, alloc) = (if am { "am" } else { "um" }, if full { "full" } else { "queue" });
        let errors = ["", "block_errors = 0.2", "block_errors = 0.9"][errors];
        let preset = PRESETS[known].name;
        // Runs it, and asserts that the ledger balances.
        play(&scenario(2, &format!(
            r#"
[[cell]]
name = "cell"
host = "mast"
preset = "{preset}"
scheduler = "{scheduler}"
alloc = "{alloc}"
rlc = "{rlc}"
buffer = "{buffer}KB"
{errors}
[[user]]
name = "phone"
count = {users}
position = [{distance}, 0]
[[flow]]
from = "server"
to = "phone"
cc = "{cc}"
[[flow]]
from = "phone"
to = "server"
cc = "{cc}"
start = "300ms"
"#
        )).replacen("duration", &format!("seed = {seed}\nduration"), 1));
    }
}
