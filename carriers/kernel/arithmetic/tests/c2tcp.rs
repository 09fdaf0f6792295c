//! The kernel's C2TCP and that of `logic/cc`.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

mod common;

use std::sync::Arc;

use ranpace_cc::{Algorithm, c2tcp};
use ranpace_kernel_arithmetic::c2tcp::{KernelC2tcp, Settings};
use ranpace_kernel_arithmetic::parent;

use common::{Build, all, compare, compare_within, few, torture};

fn settings(text: &str) -> Settings {
    let algorithm: Algorithm = text.parse().unwrap();
    (&c2tcp::read_params(&mut algorithm.options()).unwrap()).into()
}

fn kernel(text: &'static str, of: &'static str) -> Build {
    let settings = settings(text);
    Arc::new(move || Box::new(KernelC2tcp::new(parent(of), settings)))
}

#[test]
fn the_window_over_cubic_is_that_of_logic_cc_for_a_million_acknowledgements() {
    let text = "c2tcp:target=50ms";
    let found = compare(&all(), text, &kernel(text, "cubic"));
    assert!(found.acks > 1_000_000 && found.losses > 500 && found.timeouts > 5, "{found}");
}

#[test]
fn so_it_is_with_every_option() {
    for text in [
        "c2tcp:target=100ms:pace",
        "c2tcp:target=0s:tuner=eq16",
        "c2tcp:target=50ms:tuner=memoryless:clock=ns",
        "c2tcp:tuner=off:alpha=2.5:after_bad=avoidance:strict",
        "c2tcp:kernel_compat:boost=integer",
        "c2tcp:kernel_compat:max_alpha=4:cycle=200ms",
        "c2tcp:minrtt_expiry=3s:boost=integer:min_alpha=1.2",
    ] {
        let found = compare(&few(), text, &kernel(text, "cubic"));
        assert!(found.acks > 100_000, "{text}: {found}");
    }
}

#[test]
fn over_reno_two_fractions_of_a_segment_are_kept_apart() {
    // The kernel's Reno counts in snd_cwnd_cnt, Good in its own state; logic/cc has one window for both.
    let text = "newreno+c2tcp:target=50ms";
    let found = compare_within(&few(), text, &kernel(text, "newreno"), 3.0);
    assert!(found.acks > 100_000, "{found}");
}

#[test]
fn hostile_events_leave_a_window_and_a_pace() {
    for (seed, text) in [
        "c2tcp:pace",
        "c2tcp:tuner=memoryless:target=0s:clock=ns",
        "c2tcp:tuner=eq16:target=1000s",
        "c2tcp:kernel_compat:boost=integer:after_bad=avoidance:minrtt_expiry=1us",
    ]
    .into_iter()
    .enumerate()
    {
        let mut control = KernelC2tcp::new(parent("cubic"), settings(text));
        torture(&mut control, seed as u64, 250_000);
    }
}
