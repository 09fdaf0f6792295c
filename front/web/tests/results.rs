//! Folders of results as the page reads them.
#![allow(clippy::unwrap_used)] // allowed in tests

mod support;

use ranpace_lab::{Job, Store, TraceLibrary, columnar, read_run};
use ranpace_sim::Simulation;
use serde_json::json;
use support::Lab;

const LINK: &str = "name = \"link\"\nduration = \"2s\"\n[[link]]\nname = \"down\"\nfrom = \"server\"\nto = \"phone\"\n\
                    rate = \"8Mbit/s\"\ndelay = \"10ms\"\nduplex = true\n[[flow]]\nname = \"bulk\"\nfrom = \"server\"\nto = \"phone\"\n\
                    cc = \"cubic\"\n";

/// A kept run, and its path.
fn with_a_run() -> (Lab, String) {
    let lab = Lab::new();
    let job = Job::new("", LINK, "link.toml", &mut TraceLibrary::new([])).unwrap();
    let store = Store::open(lab.folder.path(), "link").unwrap();
    let folder = store.save(&job.origin(), &Simulation::new(&job.scenario).run()).unwrap();
    store.write("report.html", b"<script>1</script>").unwrap();
    let rows =
        json!([{ "cc": "cubic", "goodput_bit_s": 7.5e6, "jain": null }, { "cc": "bbr1", "more": [1] }]);
    store.write_json("compare.json", &rows).unwrap();
    let name = folder.file_name().unwrap().to_str().unwrap();
    (lab, format!("link/{name}"))
}

#[test]
fn folders_runs_and_tables_are_listed() {
    let (lab, path) = with_a_run();
    let top = lab.get("/api/results").json();
    assert_eq!(top["entries"][0], json!({ "name": "link", "path": "link", "kind": "folder", "bytes": null }));
    let folder = lab.get("/api/results?path=link").json();
    let kinds: Vec<&str> =
        folder["entries"].as_array().unwrap().iter().map(|entry| entry["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "run").count(), 1);
    assert!(kinds.contains(&"report") && kinds.contains(&"file"), "{kinds:?}");
    assert_eq!(folder["runs"][0]["path"], path.as_str());
    assert_eq!(folder["runs"][0]["flows"][0]["cc"], "cubic");
    let goodput = folder["runs"][0]["flows"][0]["goodput_bit_s"].as_f64().unwrap();
    assert!((7e6..8e6).contains(&goodput), "{goodput}");
    let table = &folder["tables"][0];
    assert_eq!(table["columns"], json!(["cc", "goodput_bit_s", "jain", "more"]));
    assert_eq!(table["rows"], json!([["cubic", 7.5e6, null, null], ["bbr1", null, null, "[1]"]]));
}

#[test]
fn tables_are_the_files_in_every_form() {
    let (lab, path) = with_a_run();
    let run = lab.get(&format!("/api/results/run?path={path}")).json();
    assert_eq!(run["text"], LINK);
    let flow = run["tables"].as_array().unwrap().iter().find(|table| table["name"] == "flow-0").unwrap();
    assert_eq!((flow["of"].as_str(), flow["rows"].as_u64()), (Some("bulk"), Some(20)));
    let file = std::fs::read(lab.folder.path().join(&path).join("flow-0.parquet")).unwrap();
    let series = format!("/api/results/series?path={path}&table=flow-0");
    assert_eq!(lab.get(&format!("{series}&format=parquet")).body, file);
    let result = read_run(&lab.folder.path().join(&path)).unwrap().unwrap();
    let own = &result.flows[0].series;
    let bytes = lab.get(&series).body;
    let columns = flow["columns"].as_array().unwrap();
    assert_eq!(bytes.len(), 32 + 20 * (8 + 4 * columns.len()));
    let place = columns.iter().position(|column| column == "cwnd_bytes").unwrap();
    let at = 32 + 20 * 8 + 20 * 4 * place + 4 * 19;
    let last = f32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    assert_eq!(f64::from(last), f64::from(*own.get("cwnd_bytes").unwrap().last().unwrap() as f32));
    let csv = lab.get(&format!("{series}&format=csv"));
    assert_eq!(csv.field("content-disposition").unwrap(), "attachment; filename=\"flow-0.csv\"");
    let text = csv.text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 21);
    let (frame, _) = columnar::read(file).unwrap();
    assert_eq!(lines[0].split(',').count(), frame.columns.len());
    let of_run = lab.get(&format!("/api/results/series?path={path}&table=distributions"));
    assert_eq!(of_run.status, 200, "a table without time");
}

#[test]
fn what_is_not_there_or_outside_is_refused() {
    let (lab, path) = with_a_run();
    let secret = lab.folder.path().parent().unwrap().join("ranpace-lab-secret");
    #[cfg(unix)]
    std::os::unix::fs::symlink("/etc", lab.folder.path().join("etc")).unwrap();
    for (address, status) in [
        ("/api/results?path=..".to_owned(), 403),
        ("/api/results?path=%2Fetc".to_owned(), 403),
        ("/api/results?path=link/../..".to_owned(), 403),
        ("/api/results?path=etc".to_owned(), 403),
        ("/api/results/file?path=etc/passwd".to_owned(), 403),
        (format!("/api/results/file?path=..%2F{}", secret.file_name().unwrap().to_str().unwrap()), 403),
        ("/api/results?path=none".to_owned(), 404),
        ("/api/results?path=link/report.html".to_owned(), 404),
        ("/api/results/run?path=link".to_owned(), 404),
        ("/api/results/run".to_owned(), 400),
        (format!("/api/results/series?path={path}&table=flow-9"), 404),
        (format!("/api/results/series?path={path}&table=..%2Freport"), 403),
        (format!("/api/results/series?path={path}&table=flow-0&format=xml"), 400),
        ("/api/nothing".to_owned(), 404),
    ] {
        let answer = lab.get(&address);
        assert_eq!(answer.status, status, "{address}: {}", answer.text());
        assert!(!answer.detail().is_empty(), "{address}");
    }
    // A link that leads out is not listed, either.
    let names = lab.get("/api/results").text();
    assert!(!names.contains("etc"), "{names}");
}

#[test]
fn reports_run_in_an_origin_of_their_own() {
    let (lab, _) = with_a_run();
    let report = lab.get("/api/results/file?path=link/report.html");
    assert_eq!(report.text(), "<script>1</script>");
    assert!(
        report
            .field("content-security-policy")
            .unwrap()
            .starts_with("sandbox allow-scripts; default-src 'none'")
    );
    let other = lab.get("/api/results/file?path=link/compare.json");
    assert_eq!(other.field("content-disposition").unwrap(), "attachment; filename=\"compare.json\"");
}

#[test]
fn the_gallery_has_all_experiments() {
    let lab = Lab::new();
    let all = lab.get("/api/reproductions").json();
    assert!(all.as_array().unwrap().len() > 50);
    assert!(all[0]["figures"][0]["published"].is_string() && all[0]["figures"][0]["measured"].is_string());
}
