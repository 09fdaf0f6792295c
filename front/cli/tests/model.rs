//! `ranpace model` as a user sees it.
#![allow(clippy::unwrap_used)] // a test may

use std::fs;
use std::path::Path;
use std::process::Command;

/// Exit status, standard output, standard error.
fn model(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ranpace"));
    let output = command.current_dir(folder).arg("model").args(arguments).output().unwrap();
    let [out, error] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.code(), out, error)
}

fn good(folder: &Path, arguments: &[&str]) -> String {
    let (status, out, error) = model(folder, arguments);
    assert_eq!(status, Some(0), "{arguments:?}: {error}");
    out
}

fn json(folder: &Path, arguments: &[&str]) -> serde_json::Value {
    serde_json::from_str(&good(folder, &[arguments, &["--json"]].concat())).unwrap()
}

#[test]
fn tables_in_the_docs_equal_the_output() {
    let folder = tempfile::tempdir().unwrap();
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/model.md")).unwrap();
    for arguments in [
        &["filter"][..],
        &["startup"],
        &["startup", "--thesis-table"],
        &["startup", "--surface", "--queue-threshold", "0.2Mb"],
        &["newcomer"],
        &["pacing-cost"],
        &["upload"],
    ] {
        let printed = good(folder.path(), arguments);
        assert!(page.contains(printed.trim_end()), "{arguments:?} prints\n{printed}");
        assert!(page.contains(&format!("ranpace model {}", arguments.join(" "))), "{arguments:?}");
    }
}

#[test]
fn text_and_json_have_the_same_values() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let asked = ["startup", "--gain", "2.175", "--from", "230Mbit/s", "--to", "231Mbit/s", "--each"];
    let (text, value) = (good(here, &asked), json(here, &asked));
    let rows = value["pairs"][0]["rows"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[0]["rounds"], &rows[1]["rounds"]), (2, &7.into(), &8.into()));
    assert_eq!((&rows[0]["lost"], &rows[1]["lost"]), (&false.into(), &true.into()));
    for row in rows {
        let queue = format!("{:.3}", row["queue_bits"].as_f64().unwrap() / 1e6);
        assert!(text.contains(&queue), "{queue}\n{text}");
    }
    // Bits and bytes are told apart.
    let bytes = json(here, &["startup", "--buffer", "6MB", "--queue-threshold", "125KB"]);
    assert_eq!(
        (&bytes["buffer_bits"], &bytes["queue_threshold_bits"]),
        (&48_000_000.into(), &1_000_000.into())
    );
    let value = json(here, &["startup", "--thesis-table"]);
    assert_eq!((&value["exact"], &value["of"]), (&13.into(), &15.into()));
    assert_eq!(value["rows"][1]["mean_queue_large_mb"]["published"], "31.37");
    let value = json(here, &["startup", "--initial", "1Mbit/s,2Mbit/s"]);
    assert_eq!((value["pairs"].as_array().unwrap().len(), &value["pairs"][1]["gain"]), (2, &2.175.into()));
    let value = json(here, &["filter", "--rtt-min", "24ms", "--k", "2"]);
    assert_eq!(value["rows"].as_array().unwrap().len(), 1);
    assert!((value["rows"][0]["weight"].as_f64().unwrap() - 0.3810).abs() < 5e-5);
    let value = json(here, &["newcomer", "--bottleneck", "20Mbit/s,150Mbit/s", "--rtt-min", "20ms,300ms"]);
    let rules: Vec<_> = value["cases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|case| case["exit"]["rule"].as_str().unwrap())
        .collect();
    assert_eq!(rules, ["thres1", "thres2", "thres2", "thres2"]);
    let value = json(here, &["upload", "--size", "1"]);
    assert!((value["rows"][0]["saving"].as_f64().unwrap() - 0.844).abs() < 5e-4);
    let value = json(here, &["pacing-cost", "--capacity", "400"]);
    assert_eq!((&value["best_load"], value["rows"].as_array().unwrap().len()), (&380.0.into(), 21));
}

#[test]
fn drawings_are_written_and_bad_names_are_refused_first() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    for (command, plots) in [
        (&["filter"][..], 2),
        (&["startup"], 4),
        (&["startup", "--surface"], 9),
        (&["newcomer"], 10),
        (&["pacing-cost"], 2),
        (&["upload"], 2),
    ] {
        let (status, _, error) = model(here, &[command, &["--out", "a.html"]].concat());
        assert_eq!((status, error.trim_end()), (Some(0), "drawing: a.html"), "{command:?}");
        let page = fs::read_to_string(here.join("a.html")).unwrap();
        assert_eq!(page.matches("<svg").count(), plots, "{command:?}");
        assert!(page.contains("ranpace model") && !page.contains("NaN") && !page.contains("src="));
        good(here, &[command, &["--out", "a.svg"]].concat());
        assert!(fs::read_to_string(here.join("a.svg")).unwrap().starts_with("<svg "));
    }
    let (status, out, error) = model(here, &["filter", "--out", "a.png"]);
    assert_eq!((status, out.as_str()), (Some(2), ""));
    assert!(error.contains("expected --out to end in .svg or .html, found a.png"), "{error}");
}

#[test]
fn contradictory_arguments_are_refused_with_status_2() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, expected) in [
        (&["filter", "--rtt-min", "300ms..20ms"][..], "expected the shorter RTT first, found 300ms..20ms"),
        (&["filter", "--rtt-min", "20..300ms"], "which has no unit"),
        (&["filter", "--rtt-min", "0ms"], "--rtt-min: expected 1us to 100s, found 0s"),
        (&["filter", "--k", "3"], "--k: expected 1, 2 or 1,2, found 3"),
        (&["filter", "--tw", "0ms"], "--tw: expected 1us to 100s"),
        (&["filter", "--step", "1ns"], "at most 10000 rows"),
        (&["startup", "--from", "0Mbit/s"], "--from: expected 1kbit/s to 1000Gbit/s, found 0bit/s"),
        (&["startup", "--from", "-1Mbit/s"], "unexpected argument"),
        (&["startup", "--from=-1Mbit/s"], "expected a rate"),
        (&["startup", "--from", "9Mbit/s", "--to", "8Mbit/s"], "--to: expected --from (9Mbit/s) or more"),
        (&["startup", "--step", "0Mbit/s"], "--step: expected more than zero"),
        (&["startup", "--step", "499bit/s"], "--step: expected a step that gives at most 10000 rows"),
        (&["startup", "--gain", "1"], "--gain: expected 1.01 to 100, found 1"),
        (&["startup", "--gain", "-2"], "--gain: expected 1.01 to 100, found -2"),
        (&["startup", "--gain", "x"], "invalid float"),
        (&["startup", "--queue-threshold", "1"], "expected an amount such as \"1Mb\""),
        (&["startup", "--buffer", "0Mb"], "--buffer: expected 1b to 1000Gb"),
        (&["startup", "--rtt", "0s"], "--rtt: expected 1us to 100s"),
        (&["startup", "--thesis-table", "--rtt", "20ms"], "cannot be used with"),
        (&["startup", "--surface", "--step", "0.1Mbit/s"], "at most 1000 bottlenecks with --surface"),
        (&["newcomer", "--bottleneck", "0Mbit/s"], "--bottleneck: expected 1kbit/s"),
        (&["newcomer", "--gamma", "-1"], "--gamma: expected 0.01 to 100, found -1"),
        (&["newcomer", "--initial", "0Mbit/s"], "--initial: expected 1kbit/s"),
        (&["pacing-cost", "--capacity", "0"], "--capacity: expected 1 to 1e9 packets, found 0"),
        (&["pacing-cost", "--step", "-1"], "--step: expected more than zero, found -1"),
        (&["pacing-cost", "--step", "0.0001"], "at most 10000 rows"),
        (&["upload", "--bdp", "100B"], "--bdp: expected a segment or more, found 100"),
        (&["upload", "--iw", "-1"], "--iw: expected 1 to 1e9 segments, found -1"),
        (&["upload", "--size", "1,0"], "--size: expected more than 0, at most 1e9, found 0"),
    ] {
        let (status, out, error) = model(folder.path(), arguments);
        assert_eq!((status, out.as_str()), (Some(2), ""), "{arguments:?}: {error}");
        assert!(error.contains(expected), "{arguments:?}: {error}");
        // Nothing is left behind.
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

#[test]
fn help_has_examples_that_work() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    for command in [&[][..], &["filter"], &["startup"], &["newcomer"], &["pacing-cost"], &["upload"]] {
        let help = good(here, &[command, &["--help"]].concat());
        let (_, examples) = help.split_once("Examples:").unwrap();
        let mut count = 0;
        for line in examples.lines().filter_map(|line| line.trim().strip_prefix("ranpace model ")) {
            good(here, &line.split_whitespace().collect::<Vec<_>>());
            count += 1;
        }
        assert!(count >= 2, "{help}");
    }
}
