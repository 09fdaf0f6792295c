//! `ranpace emulate` without a program: the scenario's own flows. Where rights are missing these tests say so and end; what
//! the flows do is tested in `carriers/emulator/tests/workloads.rs`.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stderr)] // a test may

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

const SCENARIO: &str = r#"
duration = "2s"
[[link]]
name = "down"
from = "server"
to = "phone"
rate = "10Mbit/s"
delay = "10ms"
queue = { kind = "droptail", limit = "50KB" }
duplex = true
[[flow]]
name = "file"
from = "server"
to = "phone"
cc = "newreno"
workload = { kind = "fixed", size = "300KB" }
[[flow]]
name = "call"
from = "phone"
to = "server"
transport = "udp"
packet = "200B"
workload = { kind = "cbr", rate = "100kbit/s" }
"#;

/// Status, standard output, standard error. The machine may have been too slow (99) where 0 is expected.
fn emulate(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    fs::write(folder.join("scenario.toml"), SCENARIO).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_ranpace"));
    command.current_dir(folder).args(["emulate", "scenario.toml"]).args(arguments).stdin(Stdio::null());
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

fn has_rights() -> bool {
    let checked = ranpace_emulator::check();
    if let Err(error) = &checked {
        eprintln!("skipped: needs root and TUN devices: {error}");
    }
    checked.is_ok()
}

#[test]
fn without_a_program_flows_run_and_with_hosts_only_none_do() {
    if !has_rights() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let flows = |arguments: &[&str]| {
        let (status, out, error) = emulate(folder.path(), &[arguments, &["--json"]].concat());
        assert!(matches!(status, 0 | 99), "{status}: {error}");
        assert!(error.contains("-phone"), "the namespaces are said: {error}");
        let json: Value = serde_json::from_str(&out).unwrap();
        json["summary"]["flows"].as_array().unwrap().clone()
    };
    let played = flows(&[]);
    let of = |place: usize, field: &str| played[place][field].as_str().unwrap().to_owned();
    assert_eq!((played.len(), of(0, "name"), of(1, "name")), (2, "file".to_owned(), "call".to_owned()));
    assert_eq!((of(0, "cc"), of(1, "cc")), ("kernel reno".to_owned(), "udp".to_owned()));
    assert_eq!(played[0]["transfers"]["completed"], 1);
    assert_eq!(played[0]["delivered_bytes"], 300_000);
    assert_eq!(flows(&["--cc", "cubic"])[0]["cc"], "kernel cubic");
    assert_eq!(flows(&["--hosts-only", "--for", "500ms"]).len(), 0);
}

#[test]
fn wrong_commands_are_refused_with_a_message() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, needle) in [
        (&["--cc", "nobody"][..], "no congestion control \"nobody\"; tcp_available_congestion_control has"),
        (&["--hosts-only", "--", "true"], "--hosts-only"),
        (&["--hosts-only", "--cc", "cubic"], "--hosts-only"),
    ] {
        let (status, _, error) = emulate(folder.path(), arguments);
        assert_eq!(status, 2, "{arguments:?}: {error}");
        assert!(error.contains(needle), "{arguments:?}: {error}");
    }
}
