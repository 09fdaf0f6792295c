//! `ranpace validate` as a user sees it.
#![allow(clippy::unwrap_used)] // a test may

use std::collections::BTreeSet;
use std::process::Command;

/// Exit status, standard output, standard error.
fn validate(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_ranpace")).arg("validate").args(arguments).output().unwrap();
    let [out, error] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.code(), out, error)
}

#[test]
fn text_and_json_have_the_same_rows() {
    let (status, text, error) = validate(&["radio", "--json"]);
    assert_eq!(status, Some(0), "{error}");
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let rows = value.as_array().unwrap();
    for row in rows {
        // In whatever order: a package of `ranpace serve` makes serde_json keep that of writing.
        let fields: BTreeSet<&str> = row.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(fields, BTreeSet::from(["check", "expected", "measured", "ok", "tolerance"]));
        assert!(row["ok"] == true || (row["ok"].is_null() && row["tolerance"].is_null()), "{row}");
    }
    let (status, table, error) = validate(&["radio", "--threads", "1"]);
    assert_eq!(status, Some(0), "{error}");
    // Two lines of head, a rule, the rows, an empty line, and how many there are.
    assert_eq!(table.lines().count(), rows.len() + 5, "{table}");
    for row in rows {
        assert!(table.contains(row["check"].as_str().unwrap()), "{row}");
    }
}

#[test]
fn misspelt_name_is_refused_with_the_nearest_one() {
    let (status, _, error) = validate(&["radoi"]);
    assert_eq!(status, Some(2));
    assert!(error.contains("radio"), "{error}");
}
