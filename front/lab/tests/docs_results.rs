//! `docs/results.md` describes everything that a run leaves behind: each JSON field and each Parquet column.
#![allow(clippy::unwrap_used)] // a test may

use std::fs;
use std::path::Path;

use ranpace_lab::{CompareRow, Job, Origin, RunSummary, SCHEMA, Store, TraceLibrary, columnar};
use ranpace_sim::{RunResult, Simulation};
use serde_json::Value;

fn page() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results.md"))
        .expect("the page is there")
}

/// A short run with transfers, so that every file has rows.
fn scenario(cc: &str) -> String {
    format!(
        r#"
        name = "all"
        duration = "2s"
        [[link]]
        name = "down"
        from = "server"
        to = "phone"
        rate = "8Mbit/s"
        delay = "10ms"
        queue = {{ kind = "droptail", limit = "20KB" }}
        duplex = true
        [[flow]]
        from = "server"
        to = "phone"
        cc = "{cc}"
        [[flow]]
        from = "server"
        to = "phone"
        cc = "newreno"
        workload = {{ kind = "repeat", size = "20KB" }}
        "#
    )
}

/// A short run in a cell.
const CELL: &str = r#"
    name = "cell"
    duration = "1s"
    [[cell]]
    [[user]]
    name = "phone"
    [[user]]
    name = "other"
    [[flow]]
    from = "phone"
    to = "other"
    cc = "cubic"
"#;

fn play(cc: &str) -> (Origin, RunResult) {
    play_text(&scenario(cc))
}

fn play_text(text: &str) -> (Origin, RunResult) {
    let job = Job::new("all", text, "docs_results.rs", &mut TraceLibrary::default())
        .expect("the scenario is right");
    (job.origin(), Simulation::new(&job.scenario).run())
}

/// Names of all fields in a JSON value, at any depth.
fn fields(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                found.push(name.clone());
                fields(value, found);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| fields(value, found)),
        _ => {}
    }
}

#[track_caller]
fn described(page: &str, what: &str, name: &str) {
    assert!(page.contains(&format!("`{name}`")), "{what}: {name} is not on docs/results.md");
}

#[test]
fn each_field_of_the_json_is_described() {
    let page = page();
    let (origin, run) = play("cubic");
    let folder = tempfile::tempdir().unwrap();
    let run_folder = Store::open(folder.path(), "all").unwrap().save(&origin, &run).unwrap();
    let written = fs::read_to_string(run_folder.join("summary.json")).unwrap();
    let row = CompareRow::of("cubic", &[&run]);
    let (of_cell, cell) = play_text(CELL);
    assert!(!cell.cells.is_empty() && !cell.users.is_empty());
    let typed = serde_json::to_value(RunSummary::of(&origin, &run)).unwrap();
    for (what, value) in [
        ("summary.json", serde_json::from_str(&written).unwrap()),
        ("run --json", typed),
        ("run --json of a cell", serde_json::to_value(RunSummary::of(&of_cell, &cell)).unwrap()),
        ("compare --json", serde_json::to_value(row).unwrap()),
    ] {
        let mut found = Vec::new();
        fields(&value, &mut found);
        assert!(found.len() > 20, "{what}");
        for name in found {
            described(&page, what, &name);
        }
    }
    assert!(page.contains(&format!("Schema {SCHEMA}.")), "the page is of another schema than {SCHEMA}");
}

#[test]
fn each_file_and_each_of_its_columns_is_described() {
    let page = page();
    let (origin, run) = play_text(CELL);
    let files = columns_are_described(&page, "a cell", &origin, &run);
    assert!(files.iter().any(|name| name == "user-1.parquet"), "{files:?}");
    for entry in ranpace_cc::ALL {
        // With the decorator, if possible: its columns and those of its parent.
        let cc = if entry.loss_based { format!("{}+c2tcp", entry.name) } else { entry.name.to_owned() };
        let (origin, run) = play(&cc);
        columns_are_described(&page, &cc, &origin, &run);
    }
}

/// Checks the files of a run, and returns their names.
fn columns_are_described(page: &str, what: &str, origin: &Origin, run: &RunResult) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let run_folder = Store::open(folder.path(), "all").unwrap().save(origin, run).unwrap();
    let mut names = Vec::new();
    for file in fs::read_dir(run_folder).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        names.push(name.clone());
        let general = name.replace(|c: char| c.is_ascii_digit(), "N");
        described(page, "the folder", &general);
        if !name.ends_with(".parquet") {
            continue;
        }
        let (frame, metadata) = columnar::read(fs::read(&path).unwrap()).unwrap();
        for (column, _) in frame.columns {
            described(page, &format!("{name} of {what}"), &column);
        }
        for (key, _) in metadata.iter().filter(|(key, _)| key.starts_with("ranpace.")) {
            described(page, &name, key);
        }
    }
    names
}
