//! The kernel's Multi-Domain control and that of `logic/cc`.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

mod common;

use std::sync::Arc;

use ranpace_cc::Algorithm;
use ranpace_cc::mdcc::read_settings;
use ranpace_kernel_arithmetic::mdcc::{KernelMdcc, Settings};

use common::{Build, Counted, compare, few, few_peps, peps, play_ledgers, torture};

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
fn the_ledger_of_sequence_numbers_counts_as_that_of_packets_for_a_million_acknowledgements() {
    let share = |(logic, kernel): (u64, u64), of: u64| logic.abs_diff(kernel) as f64 / of.max(1) as f64;
    let mut sum = Counted::default();
    for played in peps() {
        let found = play_ledgers(&played);
        eprintln!("{}: {found}", played.name);
        assert_eq!(found.refused, 0, "{}: {found}", played.name);
        // A PEP that denies what passed is believed by sequence numbers less: they have a gap once alone.
        let is_denied = played.name.ends_with("gaps");
        assert!(is_denied || share(found.seen, found.seen.0) < 0.015, "{}: {found}", played.name);
        sum.join(&found);
    }
    eprintln!("all: {sum}");
    assert!(sum.acks > 1_000_000 && sum.reports > 100_000, "{sum}");
    assert!(share(sum.seen, sum.seen.0) < 0.03, "{sum}");
    // Where segments were lost: docs/kernel.md has the figures. Those of timeouts the kernel tells nobody.
    let lost = sum.internet.0 + sum.radio.0 + sum.unknown.0;
    assert!(lost > 30_000, "{sum}");
    assert!(share(sum.internet, lost) < 0.07 && share(sum.radio, lost) < 0.08, "{sum}");
    assert!(sum.mean_apart() * sum.acks as f64 / (sum.unseen.0 as f64) < 0.2, "{sum}");
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
