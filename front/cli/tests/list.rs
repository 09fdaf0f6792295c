//! `ranpace list` as a user sees it.
#![allow(clippy::unwrap_used)] // a test may

use std::process::Command;

/// Exit status, standard output, standard error.
fn list(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_ranpace")).arg("list").args(arguments).output().unwrap();
    let [out, error] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.code(), out, error)
}

#[test]
fn every_list_prints_text_and_json() {
    for (what, expected) in [
        ("cc", "cubic"),
        ("workloads", "ppbp"),
        ("queues", "fq_codel"),
        ("cells", "zhong-lte-ch6"),
        ("traces", "builtin:lte"),
        ("reproductions", "001-a3-table1"),
    ] {
        let (status, text, error) = list(&[what]);
        assert_eq!(status, Some(0), "{what}: {error}");
        assert!(text.contains(expected), "{what}: {text}");
        let (status, text, _) = list(&[what, "--json"]);
        assert_eq!(status, Some(0));
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(text.contains(expected) && (value.is_array() || value.is_object()), "{what}");
    }
}

#[test]
fn experiments_are_listed_by_their_names_and_aliases() {
    let output = Command::new(env!("CARGO_BIN_EXE_ranpace")).args(["reproduce", "--list"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for (name, title) in
        [("001-a3-table1, c2tcp-table1 ", "Seven algorithms"), ("edge-sigma ", "What SIGMA loses")]
    {
        let line = text.lines().find(|line| line.starts_with(name));
        assert!(line.is_some_and(|line| line.contains(title)), "{name}: {text}");
    }
}

/// An experiment of hours that could not be recorded afterwards would be played in vain.
#[test]
fn a_folder_that_takes_no_record_is_refused_before_anything_is_played() {
    let folder = tempfile::tempdir().unwrap();
    let record = format!("--record={}", folder.path().display());
    let output = Command::new(env!("CARGO_BIN_EXE_ranpace"))
        .args(["reproduce", "001", &record])
        .current_dir(&folder)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("README.md") && text.contains("--record=DIR"), "{text}");
    assert!(!folder.path().join("results").exists(), "nothing was played");
}

#[test]
fn every_algorithm_listed_has_its_options() {
    let (_, text, _) = list(&["cc", "--json"]);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let algorithms = value["algorithms"].as_array().unwrap();
    assert_eq!(algorithms.len(), ranpace_cc::ALL.len());
    for (listed, entry) in algorithms.iter().zip(ranpace_cc::ALL) {
        assert_eq!(listed["name"], entry.name);
        assert_eq!(listed["options"].as_array().unwrap().len(), entry.options.len(), "{}", entry.name);
    }
    let (_, text, _) = list(&["cc"]);
    let target = text.split("+c2tcp ").nth(1).unwrap();
    assert!(target.contains(":target"), "{text}");
}

#[test]
fn misspelt_name_is_refused_with_the_nearest_one() {
    let (status, _, error) = list(&["quees"]);
    assert_eq!(status, Some(2));
    assert!(error.contains("queues"), "{error}");
}
