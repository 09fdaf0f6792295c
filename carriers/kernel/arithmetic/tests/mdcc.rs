//! The kernel's Multi-Domain control and that of `logic/cc`.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

mod common;

use std::sync::Arc;

use ranpace_cc::Algorithm;
use ranpace_cc::mdcc::read_settings;
use ranpace_kernel_arithmetic::mdcc::{KernelMdcc, Settings};

use common::{Build, compare, few, few_peps, peps, torture};

fn settings(text: &str) -> Settings {
    let algorithm: Algorithm = text.parse().unwrap();
    (&read_settings(&mut algorithm.options()).unwrap()).into()
}

fn kernel(text: &'static str) -> Build {
    let settings = settings(text);
    Arc::new(move || Box::new(KernelMdcc::new(settings)))
}

#[test]
fn the_window_is_that_of_logic_cc_for_a_million_acknowledgements() {
    let found = compare(&peps(), "mdcc", &kernel("mdcc"));
    assert!(found.acks > 1_000_000 && found.losses > 500 && found.timeouts > 5, "{found}");
}

#[test]
fn so_it_is_with_every_option() {
    // Gains of which no ten make a segment: where both windows are equal, floats decide by their last bit whose threshold is shown.
    for text in [
        "mdcc:start=literal:count=acks:a=0.07",
        "mdcc:start=coupled:hystart=classic:a=0.02:b=0.5",
        "mdcc:start_cap=2:bound=1MB:growth_cap=1.5:a=0.0937",
        "mdcc:hystart=off:silence=20ms:a=0.0937",
    ] {
        let found = compare(&few_peps(), text, &kernel(text));
        assert!(found.acks > 100_000, "{text}: {found}");
    }
}

#[test]
fn without_a_pep_it_is_cubic() {
    for text in ["mdcc", "mdcc:pep=off"] {
        let found = compare(&few(), text, &kernel(text));
        assert!(found.acks > 100_000 && found.timeouts > 0, "{text}: {found}");
    }
}

#[test]
fn hostile_events_leave_a_window() {
    for (seed, text) in
        ["mdcc", "mdcc:start=literal", "mdcc:start=coupled:start_cap=1000:growth_cap=1000:bound=1GB"]
            .into_iter()
            .enumerate()
    {
        torture(&mut KernelMdcc::new(settings(text)), seed as u64, 500_000);
    }
}
