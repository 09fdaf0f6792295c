//! The scenarios in `examples/` play, say what to look at, and are listed on their page.
#![allow(clippy::unwrap_used)] // a test may

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").canonicalize().unwrap()
}

/// Name and text of each example, in the order of names.
fn examples() -> Vec<(String, String)> {
    let entries = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<(String, String)> = entries
        .filter(|path| path.extension().is_some_and(|end| end == "toml"))
        .map(|path| {
            (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read_to_string(&path).unwrap())
        })
        .collect();
    found.sort();
    found
}

#[test]
fn every_example_plays() {
    let examples = examples();
    assert!(examples.len() >= 10, "{}", examples.len());
    let results = tempfile::tempdir().unwrap();
    for (name, _) in &examples {
        let output = Command::new(env!("CARGO_BIN_EXE_ranpace"))
            .args(["run", "--json", "--out"])
            .arg(results.path())
            .arg(folder().join(name))
            .output()
            .unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        for flow in summary["flows"].as_array().unwrap() {
            assert!(flow["goodput_bit_s"].as_f64().unwrap() > 0.0, "{name}: nothing arrives: {flow}");
        }
    }
}

#[test]
fn every_example_says_what_to_look_at_and_is_listed() {
    let page = fs::read_to_string(folder().join("README.md")).unwrap();
    for (name, text) in &examples() {
        let head: String = text.lines().take_while(|line| line.starts_with('#')).collect();
        assert!(
            head.contains(&format!("Play it: ranpace run examples/{name}")),
            "{name}: its head has no command"
        );
        assert!(head.contains("Look at: "), "{name}: its head does not say what to look at");
        assert!(
            page.contains(&format!("| [{name}]({name}) |")),
            "{name}: not in the table of examples/README.md"
        );
    }
}
