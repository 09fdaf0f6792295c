//! `ranpace cell` as a user sees it.
#![allow(clippy::unwrap_used)] // a test may

use std::fs;
use std::path::Path;
use std::process::Command;

/// Exit status, standard output, standard error.
fn cell(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ranpace"));
    let output = command.current_dir(folder).arg("cell").args(arguments).output().unwrap();
    let [out, error] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.code(), out, error)
}

fn good(folder: &Path, arguments: &[&str]) -> String {
    let (status, out, error) = cell(folder, arguments);
    assert_eq!(status, Some(0), "{arguments:?}: {error}");
    out
}

fn json(folder: &Path, arguments: &[&str]) -> serde_json::Value {
    serde_json::from_str(&good(folder, &[arguments, &["--json"]].concat())).unwrap()
}

const SCENARIO: &str = r#"
duration = "1s"
seed = 9

[[link]]
from = "server"
to = "mast"
rate = "1Gbit/s"
delay = "5ms"
duplex = true

[[cell]]
name = "west"
host = "mast"

[[cell]]
name = "east"
host = "mast"
preset = "zhong-lte-ch6"

[[user]]
name = "ann"
cell = "east"
position = [250, 0]

[[user]]
name = "bob"
cell = "east"
position = [100, 0]

[[flow]]
from = "server"
to = "ann"
cc = "cubic"
"#;

#[test]
fn table_in_the_docs_equals_the_output() {
    let folder = tempfile::tempdir().unwrap();
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cell.md")).unwrap();
    for arguments in [
        &["distance", "zhong-lte-ch6", "--from", "100m", "--step", "100m"][..],
        &["time", "lte"],
        &["time", "lte", "--saturate", "4"],
    ] {
        let printed = good(folder.path(), arguments);
        assert!(page.contains(printed.trim_end()), "{arguments:?} prints\n{printed}");
        assert!(page.contains(&format!("ranpace cell {}", arguments.join(" "))), "{arguments:?}");
    }
}

#[test]
fn text_and_json_have_the_same_values() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let asked = ["distance", "lte", "--from", "0.1km", "--to", "300m", "--step", "100m", "--fading", "20"];
    let (text, value) = (good(here, &asked), json(here, &asked));
    let rows = value["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    for row in rows {
        for way in ["downlink", "uplink"] {
            let rate = format!("{:.3}", row[way]["rate_bit_s"].as_f64().unwrap() / 1e6);
            let mean = format!("{:.3}", row[way]["fading"]["mean_bit_s"].as_f64().unwrap() / 1e6);
            assert!(text.contains(&rate) && text.contains(&mean), "{row} {text}");
        }
    }
    let value = json(here, &["time", "nr", "--position", "120,-30", "--time", "1s", "--seed", "3"]);
    assert_eq!(value["series"]["time_s"].as_array().unwrap().len(), 100);
    assert_eq!(value["series"]["downlink"]["cqi"].as_array().unwrap().len(), 100);
    let distance = value["statistics"]["distance_m"]["mean"].as_f64().unwrap();
    assert!((distance - 123.693).abs() < 0.001, "{distance}");
    let value = json(here, &["time", "lte", "--saturate", "2", "--time", "500ms", "--every", "1ms"]);
    assert_eq!(value["users"][1]["downlink"]["prbs"].as_array().unwrap().len(), 500);
}

#[test]
fn users_of_a_scenario_are_selected_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fs::write(here.join("two.toml"), SCENARIO).unwrap();
    let value = json(here, &["time", "two.toml", "--user", "bob", "--time", "1s"]);
    assert_eq!((&value["cell"], &value["user"], &value["seed"]), (&"east".into(), &"bob".into(), &9.into()));
    assert_eq!(value["statistics"]["distance_m"]["p50"], 100.0);
    assert!(good(here, &["distance", "two.toml", "--cell", "west"]).contains("west: a cell of the scenario"));
    let value = json(here, &["time", "two.toml", "--cell", "east", "--saturate", "2", "--time", "100ms"]);
    assert_eq!((&value["users"][0]["name"], &value["users"][1]["name"]), (&"ann".into(), &"bob".into()));
    for (arguments, expected) in [
        (&["time", "two.toml"][..], "which of the cells? There are: west, east"),
        (&["time", "two.toml", "--user", "bop"], "no user is called \"bop\"; the nearest are bob"),
        (&["time", "two.toml", "--cell", "west"], "no user begins in the cell \"west\""),
        (&["time", "two.toml", "--cell", "east", "--saturate", "3"], "expected 1 to 2"),
        (&["time", "none.toml"], "cannot read the scenario none.toml"),
    ] {
        let (status, out, error) = cell(here, arguments);
        assert_eq!((status, out.as_str()), (Some(2), ""), "{arguments:?}: {error}");
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}

#[test]
fn file_ending_selects_the_drawing_format() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    for (arguments, file, begins) in [
        (&["distance", "lte"][..], "far.html", "<!DOCTYPE html>"),
        (&["time", "lte", "--time", "1s"], "time.svg", "<svg "),
        (&["time", "lte", "--time", "1s", "--saturate", "2"], "full.htm", "<!DOCTYPE html>"),
    ] {
        good(here, &[arguments, &["--out", file]].concat());
        let drawn = fs::read_to_string(here.join(file)).unwrap();
        assert!(
            drawn.starts_with(begins) && drawn.contains("Downlink") || drawn.contains("downlink"),
            "{file}"
        );
    }
    let (status, out, error) = cell(here, &["time", "lte", "--out", "time.png"]);
    assert_eq!((status, out.as_str()), (Some(2), ""));
    assert!(error.contains("expected --out to end in .svg or .html, found time.png"), "{error}");
    let (status, ..) = cell(here, &["time", "lte", "--out", "none/time.svg"]);
    assert_eq!(status, Some(2));
    assert_eq!(fs::read_dir(here).unwrap().count(), 3);
}

#[test]
fn wrong_arguments_are_refused_with_the_expected_form() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, expected) in [
        (&["distance", "zhong-lte"][..], "no cell is called \"zhong-lte\"; the nearest are zhong-lte-ch"),
        (&["distance", "lte", "--from", "500m", "--to", "100m"], "--to: expected --from (500m) or more"),
        (&["distance", "lte", "--step", "0m"], "--step: expected more than 0m"),
        (&["distance", "lte", "--step", "1mm"], "unknown unit \"mm\""),
        (&["distance", "lte", "--step", "0.01m"], "at most 10000 rows"),
        (&["distance", "lte", "--to", "101km"], "--to: expected 1m to 100km"),
        (&["distance", "lte", "--step", "1m", "--fading", "100000"], "--fading: expected at most"),
        (&["distance", "lte", "--cell", "west"], "--cell and --user name those of a scenario file"),
        (&["time", "lte", "--user", "ann"], "--cell and --user name those of a scenario file"),
        (&["time", "lte", "--position", "300"], "expected a distance such as \"300m\", or X,Y"),
        (&["time", "lte", "--position", "200km"], "it is 0m to 100km"),
        (&["time", "lte", "--position", "1,2e9"], "coordinates are up to 100 km"),
        (&["time", "lte", "--every", "1us"], "--every: expected a slot (1ms) or more"),
        (&["time", "lte", "--time", "1h", "--every", "1ms"], "at most 1000000 looks"),
        (&["time", "lte", "--saturate", "0"], "--saturate: expected 1 to 100, found 0"),
    ] {
        let (status, out, error) = cell(folder.path(), arguments);
        assert_eq!((status, out.as_str()), (Some(2), ""), "{arguments:?}: {error}");
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}
