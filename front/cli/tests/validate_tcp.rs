//! `ranpace validate tcp --quick` as CI runs it, in a file of its own: nothing else of the tests takes the emulations' time.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stderr)] // a test may

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn validate(out: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ranpace"));
    command.args(["validate", "tcp", "--quick", "--json", "--out"]).arg(out);
    command
}

/// Whether there is what emulations need.
fn has_rights() -> bool {
    let rights = ranpace_emulator::check();
    if let Err(error) = &rights {
        eprintln!("skipped: needs root and TUN devices: {error}");
    }
    rights.is_ok()
}

/// One test: a run that is stopped, and the same command, which goes on and comes to its end.
#[test]
fn tcp_is_the_kernels_in_nine_of_ten_figures_also_after_a_stop() {
    if !has_rights() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let begun = Instant::now();
    let child = validate(folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Until the first emulations are kept, whatever the machine has to do beside.
    let kept = || {
        let runs = std::fs::read_dir(folder.path().join("validate-tcp")).into_iter().flatten().flatten();
        runs.filter(|run| run.path().join("machine.txt").is_file()).count()
    };
    while kept() == 0 && begun.elapsed() < Duration::from_secs(300) {
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let stopped = child.wait_with_output().unwrap();
    assert_eq!(stopped.status.code(), Some(130), "{}", String::from_utf8_lossy(&stopped.stderr));
    let before = kept();
    assert!((1..12).contains(&before), "{before}");

    let output = validate(folder.path()).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    // 1: fewer than 90 % of the figures agree; 99: more than a fifth of the rows were invalid four times each.
    assert_eq!(output.status.code(), Some(0), "{error}\n{}", String::from_utf8_lossy(&output.stdout));
    let rows: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = rows.as_array().unwrap();
    for row in rows {
        let fields: Vec<&String> = row.as_object().unwrap().keys().collect();
        assert_eq!(fields, ["check", "expected", "measured", "ok", "tolerance"]);
        assert!(row["expected"].as_f64().unwrap() > 0.0, "{row}");
    }
    assert!(rows.len() >= 18, "four fifths of 23: {}", rows.len());
    assert!(kept() >= before, "what was kept is not thrown away");
    assert!(error.contains("judged figures agree"), "{error}");
}
