//! `ranpace validate radio`: every judged row is ok, and judged by what was measured.

#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use ranpace_lab::validate::{self, NS3_RATE_DISTANCE, RateAtDistance};

#[test]
fn the_radio_model_agrees() {
    let found = validate::run(&validate::radio(), 0, &AtomicBool::new(false));
    let failed: Vec<_> = found.rows.iter().filter(|row| row.ok == Some(false)).collect();
    assert!(failed.is_empty() && found.left == 0, "{failed:#?}");
    // Rows are distinguished by their text, and printed rows have something to print.
    let names: BTreeSet<&str> = found.rows.iter().map(|row| row.check.as_str()).collect();
    assert_eq!(names.len(), found.rows.len());
    assert!(found.rows.iter().all(|row| row.measured.is_finite() && row.expected.is_finite()));
    assert!(found.rows.iter().filter(|row| row.ok.is_some()).count() > 130);
    for test in 1..=11 {
        assert!(names.iter().any(|name| name.starts_with(&format!("P-{test}:"))), "{test}");
    }
}

#[test]
fn the_figures_of_ns_3_are_those_of_the_file() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/reference/ns3-rate-distance.csv");
    let Ok(text) = std::fs::read_to_string(path) else {
        // Bypasses the test runner, which hides the output of passing tests.
        let word = "skipped: needs shared/data/reference beside the checkout; CONTRIBUTING.md says more\n";
        std::io::stderr().write_all(word.as_bytes()).unwrap();
        return;
    };
    let mut lines = text.lines();
    assert_eq!(lines.next().unwrap(), "distance_m,sinr_db,cqi,mcs,tbs_bytes,goodput_mbit_s");
    let read = lines.map(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        RateAtDistance {
            metres: cells[0].parse().unwrap(),
            sinr_db: cells[1].parse().unwrap(),
            cqi: cells[2].parse().unwrap(),
            mcs: cells[3].parse().unwrap(),
            goodput_mbit_s: cells[5].parse().unwrap(),
        }
    });
    assert_eq!(read.collect::<Vec<_>>(), NS3_RATE_DISTANCE);
}
