//! The kernel's SIGMA and that of `logic/cc`.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

mod common;

use std::sync::Arc;

use ranpace_cc::Algorithm;
use ranpace_cc::sigma::read_params;
use ranpace_kernel_arithmetic::sigma::{KernelSigma, Settings};

use common::{Build, compare, few, few_uploads, torture, uploads};

fn settings(text: &str) -> Settings {
    let algorithm: Algorithm = text.parse().unwrap();
    (&read_params(&mut algorithm.options()).unwrap()).into()
}

fn kernel(text: &'static str) -> Build {
    let settings = settings(text);
    Arc::new(move || Box::new(KernelSigma::new(settings)))
}

#[test]
fn the_window_is_that_of_logic_cc_for_a_million_acknowledgements() {
    let found = compare(&uploads(), "sigma", &kernel("sigma"));
    assert!(
        found.acks > 1_000_000 && found.losses > 500 && found.timeouts > 5 && found.paced > 1_000,
        "{found}"
    );
}

#[test]
fn so_it_is_with_every_option() {
    for text in [
        "sigma:profile=thesis",
        "sigma:profile=thesis:p_max=own_plus_unused:avg=last_tti:trials=on",
        "sigma:p_max=eq37:u_full=1:cap=off:efficiency=0.9",
        "sigma:trials=off:rtt_last=min4:sr_offset=5ms:rtt_min=20ms",
        "sigma:guards=off:memory=off",
    ] {
        let found = compare(&few_uploads(), text, &kernel(text));
        assert!(found.acks > 50_000 && found.losses > 20, "{text}: {found}");
    }
}

#[test]
fn without_a_modem_it_is_cubic() {
    let found = compare(&few(), "sigma", &kernel("sigma"));
    assert!(found.acks > 100_000 && found.timeouts > 0, "{found}");
}

#[test]
fn hostile_events_leave_a_window_and_a_pace() {
    for (seed, text) in ["sigma", "sigma:profile=thesis", "sigma:cap=off:u_full=0.5"].into_iter().enumerate()
    {
        torture(&mut KernelSigma::new(settings(text)), seed as u64, 500_000);
    }
}
