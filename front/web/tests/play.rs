//! Runs in the browser: what is shown is what `ranpace run` makes of the scenario that is downloaded.
#![allow(clippy::unwrap_used)] // allowed in tests

mod support;

use ranpace_lab::{Job, Store, TraceLibrary};
use ranpace_sim::{RunResult, Series, Simulation, link_names};
use ranpace_web::protocol::{Phase, Subject};
use serde_json::{Value, json};
use support::{Lab, Watched};

/// A cell with two phones, MELD on reports to the edge, and an unused user.
const CELL: &str = r#"
# A scenario with a comment.
name = "two phones"
duration = "3s"
sample = "50ms"

[[link]]
name = "core"
from = "server"
to = "mast"
rate = "1Gbit/s"
delay = "10ms"
duplex = true

[[cell]]
name = "cell"
host = "mast"
preset = "lte"

[[user]]
name = "phone"
position = [300, 0]

[[user]]
name = "other"
walk = { radius = "200m" }

[[flow]]
name = "download"
from = "server"
to = "phone"
cc = "newreno+meld-me"
tcp = { initial_window = 4 }

[[flow]]
name = "film"
from = "server"
to = "other"
cc = "cubic"
workload = { kind = "paced", rate = "2Mbit/s" }
"#;

fn play(text: &str) -> (Job, RunResult) {
    let job = Job::new("", text, "scenario.toml", &mut TraceLibrary::new([])).unwrap();
    let result = Simulation::new(&job.scenario).run();
    (job, result)
}

/// All columns of a result, in the order in which the page has them.
fn columns(job: &Job, result: &RunResult) -> Vec<(Subject, String, String, Vec<f32>)> {
    let flows = result.flows.iter().map(|flow| (Subject::Flow, flow.name.clone(), &flow.series));
    let links = link_names(&job.scenario)
        .into_iter()
        .zip(&result.links)
        .map(|(name, link)| (Subject::Link, name, &link.series));
    let users = result.users.iter().map(|user| (Subject::User, user.name.clone(), &user.series));
    let of = |(of, name, series): (Subject, String, &Series)| {
        let columns = series.columns.iter().filter(|column| column.name != "time_s");
        let columns = columns.map(move |column| {
            (of, name.clone(), column.name.clone(), column.values.iter().map(|value| *value as f32).collect())
        });
        columns.collect::<Vec<_>>()
    };
    flows.chain(links).chain(users).flat_map(of).collect()
}

/// Compares what a page has with a result, bit by bit.
fn assert_same(page: &Watched, text: &str) {
    let (job, result) = play(text);
    let expected = columns(&job, &result);
    let names: Vec<_> =
        page.session.columns.iter().map(|own| (own.of, own.name.clone(), own.column.clone())).collect();
    let expected_names: Vec<_> =
        expected.iter().map(|(of, name, column, _)| (*of, name.clone(), column.clone())).collect();
    assert_eq!(names, expected_names);
    let times = &result.flows[0].series.columns[0].values;
    assert_eq!(&page.rows.times, times);
    let bits = |values: &[f32]| {
        values.iter().map(|value| if value.is_nan() { 0 } else { value.to_bits() }).collect::<Vec<_>>()
    };
    for ((_, name, column, values), shown) in expected.iter().zip(&page.rows.columns) {
        assert_eq!(bits(shown), bits(values), "{name} {column}");
    }
}

fn control(lab: &Lab, page: &Watched, action: &Value) -> Value {
    lab.done(&format!("/api/sessions/{}/control", page.id), action)
}

fn edit(lab: &Lab, page: &Watched, edit: &Value) -> Value {
    lab.done(&format!("/api/sessions/{}/edits", page.id), edit)
}

fn scenario(lab: &Lab, page: &Watched) -> String {
    lab.get(&format!("/api/sessions/{}/scenario", page.id)).text()
}

fn is_at(page: &Watched, seconds: f64) -> bool {
    let has_rows = page.rows.times.len() == page.state.rows as usize;
    has_rows && page.state.phase != Phase::CatchingUp && (page.state.now_s - seconds).abs() < 1e-9
}

#[test]
fn a_run_shows_what_the_command_gives() {
    let lab = Lab::new();
    let mut page = lab.watch(CELL, false);
    page.until(|page| {
        page.state.phase == Phase::Ended && page.rows.times.len() == 60 && page.grid.times.len() == 300
    });
    assert_eq!(scenario(&lab, &page), CELL, "comments and all");
    assert_same(&page, CELL);
    // Who comes later gets the same, in one piece.
    let mut late = Watched::new(lab.address(), &page.id);
    late.until(|late| late.rows.times.len() == 60 && late.grid.times.len() == 300);
    assert_same(&late, CELL);
    assert_eq!(late.frames, 1);
    assert_eq!(late.grid, page.grid);
}

/// Every kind of change, one after another, each while the run waits at another time.
#[test]
fn after_every_change_the_downloaded_scenario_gives_what_is_shown() {
    let lab = Lab::new();
    let mut page = lab.watch(CELL, true);
    page.until(|page| page.state.phase == Phase::Paused);
    let changes = [
        json!({ "edit": "move_user", "user": "phone", "x_m": 600.0, "y_m": 50.0, "speed_m_s": 40.0 }),
        json!({ "edit": "add_flow", "flow": { "user": "phone", "cc": "c2tcp:target=50ms" } }),
        json!({ "edit": "set_feed", "feed": "rnis", "content": "none" }),
        json!({ "edit": "replace_flow", "flow": "download", "cc": "cdbev2" }),
        json!({ "edit": "move_user", "user": "phone", "x_m": 100.0, "y_m": 0.0 }),
        json!({ "edit": "set_target", "flow": "flow", "target_s": 0.02 }),
        json!({ "edit": "set_link", "link": "core", "rate_bit_s": 5e6, "delay_s": 0.02 }),
        json!({ "edit": "set_feed", "feed": "rnis", "content": "full" }),
        json!({ "edit": "stop_flow", "flow": "flow" }),
        json!({ "edit": "add_flow", "flow": { "user": "other", "upload": true, "cc": "sigma", "stop_s": 2.9,
            "workload": "{ kind = \"web\", page = \"50KB\", interval = \"300ms\" }" } }),
    ];
    for (number, change) in (1..).zip(&changes) {
        let at = 0.2 * f64::from(number);
        control(&lab, &page, &json!({ "action": "seek", "to_s": at }));
        page.until(|page| is_at(page, at) && page.state.generation == page.session.state.generation);
        let before = page.rows.clone();
        let names = page.session.columns.clone();
        let edited = edit(&lab, &page, change);
        let from = edited["at_s"].as_f64().unwrap();
        assert!((at..at + 0.0011).contains(&from), "{edited}");
        assert!(edited["what"].as_str().is_some_and(|what| !what.is_empty()));
        page.until(|page| page.state.revision == number && is_at(page, at));
        page.until(|page| page.rows.times.len() == before.times.len());
        // What has happened stays as it was.
        for (name, old) in names.iter().zip(&before.columns) {
            let new = page.column(&name.name, &name.column);
            let same = old.iter().zip(new).all(|(old, new)| old == new || old.is_nan() && new.is_nan());
            assert!(same, "{change} changed the past: {name:?}");
        }
    }
    control(&lab, &page, &json!({ "action": "play" }));
    page.until(|page| page.state.phase == Phase::Ended && page.rows.times.len() == 60);
    let text = scenario(&lab, &page);
    assert!(text.contains("# A scenario with a comment.") && text.contains("initial_window = 4"), "{text}");
    assert_same(&page, &text);
    // The changes did something.
    let last = |name: &str| *page.column(name, "delivered_bytes").last().unwrap();
    assert!(last("download-2") > 0.0 && last("flow") > 0.0 && last("flow-2") > 0.0, "{text}");
    let x = page.column("phone", "x_m");
    assert!(x[2] == 300.0 && x[15] > 300.0 && x[59] == 100.0, "{x:?}");
}

#[test]
fn a_grid_has_the_prbs_of_the_rows() {
    let lab = Lab::new();
    let mut page = lab.watch(CELL, false);
    page.until(|page| {
        page.state.phase == Phase::Ended && page.rows.times.len() == 60 && page.grid.times.len() == 300
    });
    let lanes = page.session.grid.as_ref().unwrap().lanes.clone();
    assert_eq!(lanes.len(), 4, "two users, down and up");
    for (lane, bins) in lanes.iter().zip(&page.grid.columns) {
        let rows = page.column(&lane.user, if lane.uplink { "uplink_prbs" } else { "prbs" });
        let sums: Vec<f32> = bins.chunks(5).map(|five| five.iter().sum::<f32>() / 5.0).collect();
        let total: f32 = rows.iter().sum();
        assert!(total > 1.0, "{lane:?}");
        // A slot at the edge of a row may count in the one or the other.
        for (row, mean) in rows.iter().zip(&sums) {
            assert!((row - mean).abs() <= 2.1, "{lane:?}: {row} {mean}");
        }
        assert!((total - sums.iter().sum::<f32>()).abs() < 3.0, "{lane:?}");
    }
}

#[test]
fn speed_pause_step_and_jumps() {
    let lab = Lab::new();
    let mut page = lab.watch(CELL, true);
    control(&lab, &page, &json!({ "action": "step" }));
    page.until(|page| is_at(page, 0.05) && page.rows.times == [0.05]);
    control(&lab, &page, &json!({ "action": "step", "by_s": 0.5 }));
    page.until(|page| is_at(page, 0.55) && page.rows.times.len() == 11);
    assert_eq!(page.state.phase, Phase::Paused);
    let before = page.rows.clone();
    control(&lab, &page, &json!({ "action": "seek", "to_s": 0.2 }));
    page.until(|page| is_at(page, 0.2) && page.rows.times.len() == 4 && page.state.generation == 1);
    control(&lab, &page, &json!({ "action": "seek", "to_s": 0.55 }));
    page.until(|page| is_at(page, 0.55) && page.rows.times.len() == 11);
    let text = |rows: &support::Rows| format!("{rows:?}");
    assert_eq!(text(&page.rows), text(&before), "the same again");
    // Twice as fast as the clock: not faster, and on a machine that does something else perhaps slower.
    control(&lab, &page, &json!({ "action": "speed", "speed": 2.0 }));
    control(&lab, &page, &json!({ "action": "play" }));
    let begun = std::time::Instant::now();
    page.until(|page| page.state.now_s >= 1.55);
    assert!(begun.elapsed().as_secs_f64() > 0.45, "{:?}", begun.elapsed());
    for (action, status) in [
        (json!({ "action": "speed", "speed": 0.0 }), 422),
        (json!({ "action": "speed", "speed": "fast" }), 400),
        (json!({ "action": "seek", "to_s": -1.0 }), 422),
        (json!({ "action": "step", "by_s": 1e300 }), 422),
        (json!({ "action": "fly" }), 400),
    ] {
        let answer = lab.post(&format!("/api/sessions/{}/control", page.id), &action);
        assert_eq!(answer.status, status, "{action}: {}", answer.text());
    }
    control(&lab, &page, &json!({ "action": "speed", "speed": "most" }));
    page.until(|page| page.state.phase == Phase::Ended);
    control(&lab, &page, &json!({ "action": "play" }));
    page.until(|page| {
        page.state.phase == Phase::Ended && page.state.generation == 2 && page.rows.times.len() == 60
    });
    assert_same(&page, CELL);
}

#[test]
fn impossible_changes_say_why_and_change_nothing() {
    let lab = Lab::new();
    let mut page = lab.watch(CELL, true);
    control(&lab, &page, &json!({ "action": "seek", "to_s": 1.0 }));
    page.until(|page| is_at(page, 1.0));
    for (change, word) in [
        (json!({ "edit": "stop_flow", "flow": "none" }), "expected one of download, film"),
        (json!({ "edit": "move_user", "user": "ghost", "x_m": 0.0, "y_m": 0.0 }), "ghost"),
        (json!({ "edit": "add_flow", "flow": { "cc": "cubic" } }), "one of phone, other"),
        (json!({ "edit": "add_flow", "flow": { "user": "phone", "cc": "qubic" } }), "qubic"),
        (json!({ "edit": "set_link", "link": "core" }), "rate"),
        (json!({ "edit": "set_link", "link": "core", "rate_bit_s": -1.0 }), "rate_bit_s"),
        (json!({ "edit": "hand_over", "user": "phone", "to": "cell" }), "already in cell"),
        (json!({ "edit": "replace", "text": "duration = \"1s\"" }), "cell"),
    ] {
        let answer = lab.post(&format!("/api/sessions/{}/edits", page.id), &change);
        assert_eq!(answer.status, 422, "{change}: {}", answer.text());
        assert!(answer.detail().contains(word), "{change}: {}", answer.text());
    }
    assert_eq!(scenario(&lab, &page), CELL);
    control(&lab, &page, &json!({ "action": "seek", "to_s": 3.0 }));
    page.until(|page| page.state.phase == Phase::Ended);
    let late = lab
        .post(&format!("/api/sessions/{}/edits", page.id), &json!({ "edit": "stop_flow", "flow": "film" }));
    assert_eq!(late.status, 409, "{}", late.text());
}

#[test]
fn scenarios_are_built_and_played() {
    let lab = Lab::new();
    let flows = json!([{ "cc": "cubic" }, { "cc": "c2tcp:target=50ms", "start_s": 0.5, "workload": "bulk" }]);
    let users =
        json!([{ "name": "phone", "x_m": 300.0, "y_m": 0.0 }, { "name": "far", "x_m": 900.0, "y_m": 0.0 }]);
    let in_cell =
        json!([{ "user": "far", "cc": "cubic" }, { "user": "phone", "upload": true, "cc": "sigma" }]);
    for (access, flows, more) in [
        (
            json!({ "kind": "link", "rate_bit_s": 12e6, "rtt_s": 0.04, "queue": "codel", "buffer_bytes": null }),
            &flows,
            json!({}),
        ),
        (
            json!({ "kind": "recording", "down": "builtin:lte", "up": null, "scale": 1.5, "rtt_s": 0.02, "queue": "droptail", "buffer_bytes": 150_000.0 }),
            &flows,
            json!({}),
        ),
        (
            json!({ "kind": "cell", "preset": "lte", "rtt_s": 0.03, "users": users }),
            &in_cell,
            json!({ "rapid": true, "feed": { "delay_s": 0.005, "error": 0.1, "content": "measured" } }),
        ),
    ] {
        let mut parts =
            json!({ "name": "built", "duration_s": 1.0, "seed": 7, "access": access, "flows": flows });
        parts.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let built = lab.done("/api/scenarios/build", &parts);
        assert_eq!(built["about"]["flows"].as_array().unwrap().len(), 2, "{built}");
        let text = built["text"].as_str().unwrap();
        let mut page = lab.watch(text, false);
        page.until(|page| page.state.phase == Phase::Ended && page.rows.times.len() == 20);
        assert_same(&page, text);
    }
    for example in lab.get("/api/sources").json()["examples"].as_array().unwrap() {
        let checked = lab.post("/api/scenarios/check", &json!({ "text": example["text"] }));
        assert_eq!(checked.status, 200, "{}: {}", example["name"], checked.text());
    }
    let mistaken = lab.post(
        "/api/scenarios/check",
        &json!({ "text": "duration = \"1s\"\nsed = 1\n[[link]]\nfrom = \"a\"\n" }),
    );
    assert_eq!(mistaken.status, 422);
    let lines: Vec<u64> = mistaken.json()["mistakes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|mistake| mistake["line"].as_u64().unwrap())
        .collect();
    assert_eq!(lines, [1, 2, 3, 3], "{}", mistaken.text());
}

#[test]
fn a_run_is_kept_as_the_command_keeps_it() {
    let lab = Lab::new();
    let page = lab.watch(CELL, true);
    let saved = lab.done(&format!("/api/sessions/{}/save", page.id), &json!({}));
    let path = saved["path"].as_str().unwrap();
    let (job, result) = play(CELL);
    let other = tempfile::tempdir().unwrap();
    let folder = Store::open(other.path(), "two_phones").unwrap().save(&job.origin(), &result).unwrap();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let kept = std::fs::read(lab.folder.path().join(path).join(entry.file_name())).unwrap();
        assert_eq!(kept, std::fs::read(entry.path()).unwrap(), "{:?}", entry.file_name());
    }
    assert!(lab.folder.path().join("two_phones/report.html").exists());
}

#[test]
fn fifty_viewers_see_the_same_and_a_run_that_nobody_watches_ends() {
    let lab = Lab::new();
    let text = CELL.replace("3s", "2s");
    let mut first = lab.watch(&text, true);
    let mut others: Vec<Watched> = (0..49).map(|_| Watched::new(lab.address(), &first.id)).collect();
    control(&lab, &first, &json!({ "action": "play" }));
    for page in others.iter_mut().chain([&mut first]) {
        page.until(|page| page.state.phase == Phase::Ended && page.rows.times.len() == 40);
        assert_same(page, &text);
    }
    assert_eq!(lab.get("/api/sessions").json()[0]["state"]["viewers"], 50);
    drop((first, others));
    let begun = std::time::Instant::now();
    while lab.get("/api/sessions").json().as_array().unwrap().len() == 1 {
        assert!(begun.elapsed().as_secs() < 60, "it goes on without viewers");
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    assert!(begun.elapsed().as_secs() >= 9, "a page that is loaded again finds it");
}
