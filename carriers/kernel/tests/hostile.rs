//! Options that no receiver would write: random, extreme, flapping and malformed ones, sent by a raw socket into live connections. Needs
//! root; whoever is not is told that this is skipped.
#![cfg(all(target_os = "linux", feature = "bpf"))]
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

mod injection;
mod rig;

use std::time::Duration;

use injection::{Attack, compare_with_cubic};
use rig::KernelLog;

/// Segments for each of four controls.
const SEGMENTS: u64 = 250_000;

#[test]
fn a_million_hostile_options_cost_no_more_than_cubic_would() {
    let Some(_turn) = rig::ready(&["ip", "nsenter", "tc"]) else { return };
    let mut log = KernelLog::new();
    for control in ["cdbe", "cdbev2", "cqic-s", "dcic"] {
        compare_with_cubic(control, Attack::Options(SEGMENTS), Duration::from_secs(10));
    }
    assert_eq!(log.complaints(), Vec::<String>::new());
}
