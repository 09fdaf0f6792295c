//! `ranpace compare` as a user sees it.
#![allow(clippy::unwrap_used)] // a test may

use std::path::Path;
use std::process::Command;

/// Exit status, standard output, standard error.
fn compare(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let command = Command::new(env!("CARGO_BIN_EXE_ranpace"))
        .arg("compare")
        .args(arguments)
        .arg("--out")
        .arg(folder)
        .output();
    let output = command.unwrap();
    let [out, error] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.code(), out, error)
}

#[test]
fn algorithms_are_compared_in_a_cell() {
    let folder = tempfile::tempdir().unwrap();
    let asked = ["--cell", "lte", "--cc", "cubic,vegas", "--time", "3s", "--rtt", "10ms"];
    let (status, table, error) = compare(folder.path(), &asked);
    assert_eq!(status, Some(0), "{error}");
    for expected in ["goodput", "delay mean", "cubic", "vegas"] {
        assert!(table.contains(expected), "{table}");
    }
    let report = folder.path().join("compare-lte/report.html");
    assert!(error.contains("report: "), "{error}");
    let page = std::fs::read_to_string(report).unwrap();
    for expected in [
        "Comparison in the cell lte",
        "Cells and users",
        "Radio of user",
        "SINR",
        "CQI and MCS",
        "Resource blocks",
        "RLC queue",
        "acknowledgements take",
        "1 more user with flows",
    ] {
        assert!(page.contains(expected), "{expected}");
    }
    // The neighbour's pages are in the way, but not in the table.
    let (_, json, _) = compare(folder.path(), &[&asked[..], &["--json"]].concat());
    let rows: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((rows[0]["cc"].as_str(), rows[0]["flows"].as_u64()), (Some("cubic"), Some(1)));
    assert!(rows[0]["goodput_bit_s"].as_f64().unwrap() > 1e6);
    assert!(rows[0]["utilisation"].as_f64().unwrap() <= 1.0);
}

#[test]
fn seeds_of_a_cell_differ() {
    let folder = tempfile::tempdir().unwrap();
    let asked = ["--cell", "lte", "--cc", "cubic", "--time", "2s", "--seeds", "2", "--json"];
    let (status, json, error) = compare(folder.path(), &asked);
    assert_eq!(status, Some(0), "{error}");
    let rows: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(rows[0]["goodput_bit_s_ci95"].as_f64().unwrap() > 0.0, "{json}");
}

#[test]
fn users_out_of_service_are_listed_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = folder.path().join("far.toml");
    std::fs::write(
        &scenario,
        r#"
        duration = "1s"
        [[cell]]
        name = "cell"
        host = "server"
        [[user]]
        name = "far"
        position = [200000, 0]
        [[flow]]
        from = "server"
        to = "far"
        cc = "cubic"
        "#,
    )
    .unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_ranpace"))
        .args(["run", "--pcap"])
        .arg(&scenario)
        .arg("--out")
        .arg(folder.path())
        .output()
        .unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{error}");
    assert!(error.contains("note: user \"far\" is out of service at the end: out of reach"), "{error}");
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("used down") && table.contains("handovers"), "{table}");
    for capture in ["far.down.pcap", "far.up.pcap"] {
        assert!(folder.path().join("far").join(capture).is_file(), "{capture}");
    }
}

#[test]
fn options_that_a_cell_lacks_are_refused_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, expected) in [
        (&["--buffer", "1MB"][..], "--cell cannot be combined with --buffer:"),
        (&["--queue", "codel", "--loss", "0.1", "--scale", "2"], "--queue, --loss, --scale:"),
        (&["--rate", "1Mbit/s"], "cannot be used with"),
        (&["--trace", "builtin:lte"], "cannot be used with"),
    ] {
        let (status, _, error) = compare(folder.path(), &[&["--cell", "lte"], arguments].concat());
        assert_eq!(status, Some(2), "{error}");
        assert!(error.contains(expected), "{error}");
    }
    let (_, _, error) = compare(folder.path(), &["--cell", "lte", "--buffer", "1MB"]);
    assert!(error.contains("docs/cells.md"), "{error}");
    let (status, _, error) = compare(folder.path(), &["--cell", "zong-lte"]);
    assert_eq!(status, Some(2));
    assert!(error.contains("zhong-lte-ch5"), "{error}");
}
