//! `ranpace validate kernel --quick` as CI runs it, in a file of its own: nothing else of the tests takes the emulations' time.
#![cfg(all(target_os = "linux", feature = "kernel"))]
#![allow(clippy::unwrap_used)] // a test may

mod emulation;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// So often the command is called on a machine that does not keep up.
const ROUNDS: usize = 3;

fn validate(out: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ranpace"));
    command.args(["validate", "kernel", "--quick", "--json", "--out"]).arg(out);
    command
}

/// One test: a run that is stopped, and the same command, which goes on and comes to its end.
#[test]
fn nine_of_ten_figures_of_kernel_controls_agree_with_the_simulator_after_an_interrupted_run() {
    let Some(_turn) = emulation::rights() else { return };
    let folder = tempfile::tempdir().unwrap();
    let kept = || {
        let runs = std::fs::read_dir(folder.path().join("validate-kernel")).into_iter().flatten().flatten();
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
    assert!((1..10).contains(&before), "{before}");

    // 1: fewer than 90 % of the figures agree; 99: more than a fifth of the rows were invalid four times each, and are played again.
    let mut outputs = (0..ROUNDS).map(|_| validate(folder.path()).output().unwrap());
    let output =
        outputs.find(|output| output.status.code() != Some(99)).expect("the machine kept up too rarely");
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{error}\n{}", String::from_utf8_lossy(&output.stdout));
    let rows: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = rows.as_array().unwrap();
    assert!(rows.iter().all(|row| row["expected"].as_f64().unwrap() > 0.0), "{rows:?}");
    assert!(rows.len() >= 16, "four fifths of 22, less what is printed: {}", rows.len());
    assert!(kept() >= before, "what was kept is not thrown away");
    assert!(error.contains("judged figures agree"), "{error}");
}
