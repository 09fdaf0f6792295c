//! `ranpace lab` watches what really runs: an emulation, its proxy, an RNIS server that reads its cell, and a server of files. Where rights
//! are missing the tests say so and end.
#![cfg(all(target_os = "linux", feature = "lab", feature = "proxy", feature = "serve", feature = "fetch"))]
#![allow(clippy::unwrap_used)] // a test may

mod emulation;
mod lab_server;

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Stdio};

use emulation::{EDGE, Emulation, folder_with, program, rights, until};
use lab_server::{lab, ranpace, request, terminate};
use serde_json::{Value, json};

/// What makes the second flow of [`EDGE`] a stream, and a proxy at the edge.
const STREAM_AND_PROXY: &str = r#"workload = { kind = "paced", rate = "2Mbit/s" }

[[proxy]]
name = "edge"
host = "edge"
kind = "rapid"
"#;

/// A command that ends with the test.
struct Running(Child);

impl Running {
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut command = ranpace(folder, arguments);
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Ports that were free a moment ago.
fn ports<const N: usize>() -> [String; N] {
    let listeners = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().to_string())
}

/// A session that watches this address, once something answers there.
fn watch(url: &str, address: &str) -> Value {
    let mut answer = (String::new(), String::new());
    until(address, || {
        answer = request(url, "POST", "/api/live", &json!({ "address": address }).to_string());
        answer.0.starts_with("HTTP/1.1 200 ")
    });
    serde_json::from_str(&answer.1).unwrap()
}

/// The values of a column that a session has so far; unknown ones are left out.
fn column(url: &str, session: &Value, of: &str, name: &str, column: &str) -> Vec<f64> {
    let name = name.replace(' ', "%20");
    let path =
        format!("/api/sessions/{}/table?of={of}&name={name}&format=csv", session["id"].as_str().unwrap());
    let (head, body) = request(url, "GET", &path, "");
    if !head.starts_with("HTTP/1.1 200 ") {
        return Vec::new();
    }
    let mut lines = body.lines();
    let Some(place) = lines.next().unwrap().split(',').position(|known| known == column) else {
        return Vec::new();
    };
    lines.filter_map(|line| line.split(',').nth(place).unwrap().parse().ok()).collect()
}

/// The names of the flows that a session shows.
fn flows(url: &str, session: &Value) -> Vec<String> {
    let path = format!("/api/sessions/{}", session["id"].as_str().unwrap());
    let about: Value = serde_json::from_str(&request(url, "GET", &path, "").1).unwrap();
    about["about"]["flows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|flow| flow["name"].as_str().unwrap().to_owned())
        .collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn an_emulation_its_proxy_and_the_cells_rnis_are_watched_with_their_own_figures() {
    let Some(_turn) = rights() else { return };
    if program(&["nft"]).is_none() {
        return;
    }
    let scenario = EDGE.replace("duration = \"8s\"", "duration = \"60s\"") + STREAM_AND_PROXY;
    let mut emulation = Emulation::start_with(folder_with(&scenario), ":", &["--real-proxy", "--workloads"]);
    let own = format!("/run/ranpace/{}", emulation.process());
    let folder = emulation.folder.path().to_owned();
    let [port] = ports();
    fs::write(
        folder.join("rnis-of-the-test.toml"),
        format!("listen = \"{port}\"\n[[source]]\nlines = \"unix:{own}/cells.sock\"\n"),
    )
    .unwrap();
    let _rnis = Running::start(&folder, &["rnis", "serve", "rnis-of-the-test.toml"]);
    let (child, url) = lab(&folder, &["--listen", "127.0.0.1:0"]);

    let (_, found) = request(&url, "GET", "/api/live", "");
    for socket in ["status.sock", "proxy.sock"] {
        assert!(found.contains(&format!("unix:{own}/{socket}")), "{found}");
    }
    let cell = watch(&url, &format!("unix:{own}/status.sock"));
    let proxy = watch(&url, &format!("unix:{own}/proxy.sock"));
    let rnis = watch(&url, &port);
    assert_eq!(cell["about"]["cells"][0]["prbs"], rnis["about"]["cells"][0]["prbs"]);

    let goodput = || column(&url, &cell, "flow", "download", "goodput_bit_s");
    until("fifty rows of the emulation are read", || goodput().len() >= 50);
    // The proxy has both connections, and what it passes on is what arrives.
    let both = flows(&url, &proxy);
    assert_eq!(both.len(), 2, "{both:?}");
    let passed: Vec<f64> =
        both.iter().map(|name| mean(&column(&url, &proxy, "flow", name, "goodput_bit_s"))).collect();
    let (most, least) = (passed[0].max(passed[1]), passed[0].min(passed[1]));
    assert!((1.8e6..2.2e6).contains(&least), "the stream: {passed:?}");
    assert!((most / mean(&goodput()) - 1.0).abs() < 0.2, "{most} and {}", mean(&goodput()));
    // The RNIS knows the phone by its address; the emulation by its name.
    let user = rnis["about"]["users"][0]["name"].as_str().unwrap();
    let mcs = |session: &Value, name: &str| mean(&column(&url, session, "user", name, "mcs"));
    assert_eq!(mcs(&rnis, user), mcs(&cell, "phone"), "the channel stands still");

    let (_, summary, _) = emulation.end();
    assert_eq!(summary["flows"][0]["name"], "download");
    let result = ranpace_lab::read_run(&folder.join("results/scenario.emulated/1")).unwrap().unwrap();
    let rows = result.flows[0].series.get("goodput_bit_s").unwrap().to_vec();
    let seen = goodput();
    assert!(seen.len() >= 50);
    for value in &seen {
        assert!(rows.contains(value), "{value} is in no row of the results");
    }
    // What has ended is said, and its rows stay.
    let mut said = String::new();
    until("the end is seen", || {
        let path = format!("/api/sessions/{}", cell["id"].as_str().unwrap());
        said = request(&url, "GET", &path, "").1;
        said.contains("does it run?")
    });
    assert!(goodput().len() >= seen.len(), "{said}");
    terminate(child);
}

#[test]
fn downloads_of_a_server_are_watched() {
    let folder = tempfile::tempdir().unwrap();
    let [listen, metrics] = ports();
    let serve =
        ["serve", ".", "--listen", &listen, "--bytes", "100GB", "--metrics", &metrics, "--cc", "bbr1"];
    let server = Running::start(folder.path(), &serve);
    let (child, url) = lab(folder.path(), &["--listen", "127.0.0.1:0"]);
    let session = watch(&url, &metrics);
    assert_eq!(flows(&url, &session).len(), 0);
    let from = format!("https://{listen}/bytes/100000000000");
    let download = Running::start(folder.path(), &["fetch", &from, "--insecure"]);
    let mut shown = Vec::new();
    until("the download is shown", || {
        shown = flows(&url, &session);
        shown.len() == 1
    });
    let of = |name: &str| column(&url, &session, "flow", &shown[0], name);
    until("its figures are there", || of("goodput_bit_s").len() >= 10);
    assert!(mean(&of("goodput_bit_s")) > 1e6 && mean(&of("cwnd_bytes")) > 10_000.0);
    assert!(of("srtt_s").iter().all(|rtt| (0.0..1.0).contains(rtt)), "{:?}", of("srtt_s"));
    assert!(!of("state_state").is_empty(), "the states of BBR");
    // Its end is seen, too.
    drop(download);
    drop(server);
    until("the end is seen", || {
        request(&url, "GET", &format!("/api/sessions/{}", session["id"].as_str().unwrap()), "")
            .1
            .contains("does it run?")
    });
    terminate(child);
}
