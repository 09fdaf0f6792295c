//! `ranpace validate tcp --quick` as CI runs it, in a file of its own: nothing else of the tests takes the emulations' time.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stderr)] // a test may

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// So often the command is called on a machine that does not keep up.
const ROUNDS: usize = 3;

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
fn nine_of_ten_figures_agree_with_kernel_tcp_after_an_interrupted_run() {
    if !has_rights() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let kept = || {
        let runs = std::fs::read_dir(folder.path().join("validate-tcp")).into_iter().flatten().flatten();
        runs.filter(|run| run.path().join("machine.txt").is_file()).count()
    };
    // Until the first emulation is kept, whatever else the machine has to do. Of a machine that keeps up with none, the command
    // says so by its exit status, and is asked once more.
    let stopped = (0..ROUNDS).find_map(|_| {
        let mut child =
            validate(folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        while kept() == 0 && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(100));
        }
        if child.try_wait().unwrap().is_none() {
            assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        }
        let output = child.wait_with_output().unwrap();
        (output.status.code() != Some(99)).then_some(output)
    });
    let stopped = stopped.expect("the machine kept up with no emulation at all");
    assert_eq!(stopped.status.code(), Some(130), "{}", String::from_utf8_lossy(&stopped.stderr));
    let before = kept();
    assert!((1..12).contains(&before), "{before}");

    // 1: fewer than 90 % of the figures agree; 99: more than a fifth of the rows were invalid four times each, and are played again.
    let mut outputs = (0..ROUNDS).map(|_| validate(folder.path()).output().unwrap());
    let output =
        outputs.find(|output| output.status.code() != Some(99)).expect("the machine kept up too rarely");
    let error = String::from_utf8_lossy(&output.stderr);
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
