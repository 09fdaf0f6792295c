//! The kernel's RAPID sender and that of `logic/cc`.
#![cfg(target_os = "linux")]

mod common;

use std::sync::Arc;

use ranpace_kernel_arithmetic::rapid::{KernelRapid, Settings};

use common::{Build, compare, few, few_proxies, proxies, torture};

fn kernel(pacing: bool) -> Build {
    Arc::new(move || Box::new(KernelRapid::new(Settings { pacing: pacing.into() })))
}

#[test]
fn the_allocated_window_is_that_of_logic_cc_for_a_million_acknowledgements() {
    let found = compare(&proxies(), "rapid", &kernel(false));
    assert!(found.acks > 1_000_000 && found.losses > 100, "{found}");
}

#[test]
fn so_is_the_pace() {
    let found = compare(&few_proxies(), "rapid:pacing", &kernel(true));
    assert!(found.acks > 100_000 && found.paced > 100_000, "{found}");
}

#[test]
fn without_a_proxy_it_is_cubic() {
    let found = compare(&few(), "rapid", &kernel(false));
    assert!(found.acks > 100_000 && found.timeouts > 0, "{found}");
}

#[test]
fn hostile_events_leave_a_window_and_a_pace() {
    for (seed, pacing) in [false, true].into_iter().enumerate() {
        torture(&mut KernelRapid::new(Settings { pacing: pacing.into() }), seed as u64, 500_000);
    }
}
