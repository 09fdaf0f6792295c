//! The receivers of the kernel's client-driven controls and those of `logic/cc`.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a panic is a failed test; figures are shown")]

mod common;

use std::sync::Arc;

use ranpace_cc::{Algorithm, ReceiverHalf};
use ranpace_kernel_arithmetic::receivers::{KernelCdbeClient, KernelCdbev2Client, KernelDcicClient};

use common::{BuildReceiver, Played, Reports, all, moments, play_receivers, some};

fn kernel(algorithm: &Algorithm) -> BuildReceiver {
    let (algorithm, name) = (algorithm.clone(), algorithm.entry().name);
    Arc::new(move || -> Box<dyn ReceiverHalf> {
        let options = &mut algorithm.options();
        match name {
            "cdbe" => Box::new(KernelCdbeClient::read(options).unwrap()),
            "cdbev2" => Box::new(KernelCdbev2Client::read(options).unwrap()),
            _ => Box::new(KernelDcicClient::read(options).unwrap()),
        }
    })
}

/// Plays all; every report of the two has to be within 1 %.
#[track_caller]
fn agrees(runs: &[Played], text: &str) -> Reports {
    let algorithm: Algorithm = text.parse().unwrap();
    let kernel = kernel(&algorithm);
    let mut sum = Reports::default();
    for played in runs {
        let found = play_receivers(played, &algorithm, &kernel, 1);
        eprintln!("{text}, {}: {found:?}", played.name);
        assert_eq!(found.too_far, 0, "{text}, {}: {found:?}", played.name);
        sum.arrivals += found.arrivals;
        sum.hints += found.hints;
        sum.reports += found.reports;
    }
    sum
}

#[test]
fn cdbe_and_cdbev2_report_what_logic_cc_reports() {
    for text in ["cdbe:report=exp", "cdbev2:report=exp"] {
        let found = agrees(&all(), text);
        assert!(found.arrivals > 1_000_000 && found.reports > 10_000, "{text}: {found:?}");
    }
}

#[test]
fn so_they_do_with_every_option() {
    for text in [
        "cdbe:report=exp:fence=literal:gap_unit=s:report-every=3",
        "cdbe:report=exp:gap_unit=ms:window=300ms",
        "cdbev2:report=exp:est=literal:report-every=2",
        "cdbev2:report=exp:tw=25ms",
    ] {
        let found = agrees(&some(), text);
        assert!(found.reports > 1_000, "{text}: {found:?}");
    }
}

#[test]
fn dcic_reports_what_logic_cc_reports() {
    let cells: Vec<Played> = all().into_iter().filter(|played| played.name.starts_with("cell")).collect();
    for text in [
        "dcic:report=exp",
        "dcic:report=exp:estimator=per_dci:report-every=5",
        "cqic-s:report=exp:estimator=gap",
    ] {
        let found = agrees(&cells, text);
        assert!(found.hints > 10_000 && found.reports > 10_000, "{text}: {found:?}");
    }
}

/// What GRO takes: packets that come within a poll of the device are one, at the time of the last of them.
#[test]
fn merged_packets_leave_the_mean_report_within_five_percent() {
    let names = ["bloated", "several", "cell lte", "cell nr"];
    let runs: Vec<Played> = all().into_iter().filter(|run| names.contains(&run.name.as_str())).collect();
    assert_eq!(runs.len(), names.len());
    for text in ["cdbe:report=exp", "cdbev2:report=exp"] {
        let algorithm: Algorithm = text.parse().unwrap();
        let kernel = kernel(&algorithm);
        for played in &runs {
            let found = play_receivers(played, &algorithm, &kernel, 45);
            let ((single, deviation), (merged, merged_deviation)) =
                (moments(found.logic), moments(found.kernel));
            eprintln!(
                "{text}, {}: mean report {:.2} Mbit/s, merged {:.2}; standard deviation {:.2}, {:.2}",
                played.name,
                single / 1e6,
                merged / 1e6,
                deviation / 1e6,
                merged_deviation / 1e6
            );
            assert!((merged - single).abs() < 0.05 * single, "{text}, {}", played.name);
        }
    }
}
