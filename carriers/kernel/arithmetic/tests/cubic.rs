//! CUBIC of the kernel's arithmetic and that of `logic/cc`.
#![cfg(target_os = "linux")]

mod common;

use std::sync::Arc;

use ranpace_kernel_arithmetic::cubic::{KernelCubic, SlowStart};

use common::{Build, all, compare, few, torture};

fn kernel(kind: SlowStart) -> Build {
    Arc::new(move || Box::new(KernelCubic::new(kind)))
}

#[test]
fn the_window_is_that_of_logic_cc_for_a_million_acknowledgements() {
    let found = compare(&all(), "cubic", &kernel(SlowStart::Classic));
    assert!(found.acks > 1_000_000 && found.losses > 500 && found.timeouts > 5, "{found}");
}

#[test]
fn so_it_is_however_slow_start_ends() {
    for (text, kind) in
        [("cubic:hystart=plusplus", SlowStart::PlusPlus), ("cubic:hystart=off", SlowStart::Off)]
    {
        let found = compare(&few(), text, &kernel(kind));
        assert!(found.acks > 100_000, "{text}: {found}");
    }
}

#[test]
fn hostile_events_leave_a_window() {
    for (seed, kind) in [SlowStart::Classic, SlowStart::PlusPlus, SlowStart::Off].into_iter().enumerate() {
        torture(&mut KernelCubic::new(kind), seed as u64, 500_000);
    }
}
