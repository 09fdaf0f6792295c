//! `ranpace validate rnis`: the feed by a real server beside the simulated one.
#![cfg(all(target_os = "linux", feature = "rnis"))]
#![allow(clippy::unwrap_used)] // a test may

use std::process::Command;

#[test]
fn the_servers_feed_costs_what_the_simulated_one_does() {
    let ranpace = env!("CARGO_BIN_EXE_ranpace");
    let output = Command::new(ranpace).args(["validate", "rnis", "--quick", "--json"]).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    let rows: Vec<serde_json::Value> =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{error}"));
    let judged: Vec<_> = rows.iter().filter(|row| !row["ok"].is_null()).collect();
    assert_eq!((judged.len(), rows.len()), (3, 13), "{rows:#?}");
    assert!(judged.iter().all(|row| row["ok"] == true) && output.status.success(), "{rows:#?}{error}");
    let ages = rows.iter().filter(|row| row["check"].as_str().unwrap().contains("age at the subscriber"));
    for row in ages {
        // In ms, on a machine that may be busy: a second is no age of a feed.
        let age = row["measured"].as_f64().unwrap();
        assert!((0.0..1_000.0).contains(&age), "{row}");
    }
}
