//! `ranpace lab` as a process: what it prints, that a scenario played there gives the bytes of `ranpace run`, how it ends, and how it
//! refuses options.
#![cfg(all(target_os = "linux", feature = "lab"))]
#![allow(clippy::unwrap_used)] // a test may

mod lab_server;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use lab_server::{lab, post, ranpace, request, send, terminate};
use serde_json::{Value, json};

#[test]
fn what_was_changed_in_the_browser_gives_the_same_bytes_by_ranpace_run() {
    let folder = tempfile::tempdir().unwrap();
    let (child, url) = lab(folder.path(), &["--listen", "127.0.0.1:0"]);
    assert!(request(&url, "GET", "/", "").1.contains("<html"));
    let cell = json!({ "kind": "cell", "preset": "lte", "rtt_s": 0.04, "users": [{ "name": "phone", "x_m": 300.0, "y_m": 0.0 }] });
    let parts =
        json!({ "name": "cell", "duration_s": 3.0, "seed": 1, "access": cell, "flows": [{ "cc": "cubic" }] });
    let built = post(&url, "/api/scenarios/build", &parts);
    let session = post(&url, "/api/sessions", &json!({ "text": built["text"], "paused": true }));
    let own = format!("/api/sessions/{}", session["id"].as_str().unwrap());
    post(&url, &format!("{own}/control"), &json!({ "action": "seek", "to_s": 1.0 }));
    post(
        &url,
        &format!("{own}/edits"),
        &json!({ "edit": "move_user", "user": "phone", "x_m": 700.0, "y_m": 0.0 }),
    );
    post(
        &url,
        &format!("{own}/edits"),
        &json!({ "edit": "replace_flow", "flow": "flow", "cc": "c2tcp:target=50ms" }),
    );
    let saved = post(&url, &format!("{own}/save"), &json!({}));
    let (_, scenario) = request(&url, "GET", &format!("{own}/scenario"), "");
    assert!(
        scenario.contains("position = [700.0, 0.0]") && scenario.contains("cc = \"c2tcp:target=50ms\""),
        "{scenario}"
    );
    terminate(child);
    fs::write(folder.path().join("cell.toml"), scenario).unwrap();
    assert!(
        ranpace(folder.path(), &["run", "cell.toml", "--out", "again"]).output().unwrap().status.success()
    );
    let path = saved["path"].as_str().unwrap();
    let kept = folder.path().join("results").join(path);
    let files: Vec<_> = fs::read_dir(&kept).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(files.len() >= 8, "{files:?}");
    for file in files {
        let [lab, run] = [&kept, &folder.path().join("again").join(path)]
            .map(|folder| fs::read(folder.join(&file)).unwrap());
        assert!(lab == run, "{}", file.display());
    }
}

/// The files below a folder, temporary ones included.
fn files_below(folder: &Path) -> usize {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    entries.flatten().map(|entry| if entry.path().is_dir() { files_below(&entry.path()) } else { 1 }).sum()
}

/// The runs below a folder as the page lists them. Each can be read whole: its description, and all its tables.
fn runs_below(url: &str, path: &str) -> Vec<String> {
    let get = |path: &str| {
        let address = url.strip_prefix("http://").unwrap().split('/').next().unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 200 "), "{path}: {}", String::from_utf8_lossy(&answer));
        answer.split_off(end + 4)
    };
    let json = |path: &str| -> Value { serde_json::from_slice(&get(path)).unwrap() };
    let mut found = Vec::new();
    for entry in json(&format!("/api/results?path={path}"))["entries"].as_array().unwrap() {
        let path = entry["path"].as_str().unwrap();
        match entry["kind"].as_str().unwrap() {
            "folder" => found.extend(runs_below(url, path)),
            "run" => {
                for table in json(&format!("/api/results/run?path={path}"))["tables"].as_array().unwrap() {
                    let name = table["name"].as_str().unwrap();
                    let columns = get(&format!("/api/results/series?path={path}&table={name}"));
                    assert!(columns.starts_with(b"RPL1"), "{path}: {name}");
                }
                found.push(path.to_owned());
            }
            _ => {}
        }
    }
    found
}

#[test]
fn a_killed_server_leaves_the_results_whole() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results");
    // Many flows are many files: the server is killed between the first and the last of them.
    let scenario = |name: &str, flows: u32| {
        format!(
            "name = \"{name}\"\nduration = \"2s\"\n[[link]]\nfrom = \"server\"\nto = \"phone\"\nrate = \"8Mbit/s\"\n\
             delay = \"10ms\"\nduplex = true\n[[flow]]\nfrom = \"server\"\nto = \"phone\"\ncc = \"cubic\"\ncount = {flows}\n"
        )
    };
    let begin = |url: &str, text: &str| {
        let session = post(url, "/api/sessions", &json!({ "text": text, "paused": true }));
        format!("/api/sessions/{}/save", session["id"].as_str().unwrap())
    };
    let (child, url) = lab(folder.path(), &["--listen", "127.0.0.1:0"]);
    let saved = post(&url, &begin(&url, &scenario("first", 1)), &json!({}));
    let first = saved["path"].as_str().unwrap().to_owned();
    terminate(child);
    for files in [1, 10, 30] {
        let (mut child, url) = lab(folder.path(), &["--listen", "127.0.0.1:0"]);
        let stream = send(&url, "POST", &begin(&url, &scenario("second", 40)), "{}");
        let begun = Instant::now();
        while files_below(&results.join("second")) < files {
            assert!(begun.elapsed() < Duration::from_secs(120), "the run is not written");
        }
        child.kill().unwrap();
        child.wait().unwrap();
        drop(stream);
        let (child, url) = lab(folder.path(), &["--listen", "127.0.0.1:0"]);
        let found = runs_below(&url, "");
        assert!(found.contains(&first), "{found:?}");
        // What was written until then is a whole run, or none.
        assert!(found.len() <= 2, "{found:?}");
        terminate(child);
    }
    let (child, url) = lab(folder.path(), &["--listen", "127.0.0.1:0"]);
    let saved = post(&url, &begin(&url, &scenario("second", 40)), &json!({}));
    let mut both = [first, saved["path"].as_str().unwrap().to_owned()];
    both.sort();
    let mut found = runs_below(&url, "");
    found.sort();
    assert_eq!(found, both);
    terminate(child);
}

#[test]
fn beyond_this_machine_the_address_has_a_token() {
    let folder = tempfile::tempdir().unwrap();
    let (child, url) = lab(folder.path(), &["--listen", "0.0.0.0:0"]);
    let (_, token) = url.split_once("/?token=").unwrap();
    assert!(token.len() == 32 && token.bytes().all(|byte| byte.is_ascii_hexdigit()), "{url}");
    assert!(request(&url, "GET", "/api/server", "").0.starts_with("HTTP/1.1 401 "));
    assert!(request(&url, "GET", &format!("/?token={token}"), "").0.starts_with("HTTP/1.1 303 "));
    terminate(child);
}

#[test]
fn options_that_cannot_be_used_say_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (arguments, token, status, expected) in [
        (&["lab", "file"][..], "", 2, "expected a folder of results"),
        (&["lab", "--listen", "localhost"], "", 2, "--listen"),
        (&["lab", "--listen", &address], "", 1, "choose another port"),
        (&["lab"], "short", 2, "16 or more"),
    ] {
        let mut command = ranpace(folder.path(), arguments);
        if !token.is_empty() {
            command.env("RANPACE_LAB_TOKEN", token);
        }
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}
