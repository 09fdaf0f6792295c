//! Helpers of the tests of `ranpace validate tcp` and `ranpace validate kernel`.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How often the command is started on a machine that does not keep up.
const ROUNDS: usize = 3;

fn validate(what: &str, out: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ranpace"));
    command.args(["validate", what, "--quick", "--json", "--out"]).arg(out);
    command
}

/// Interrupts `ranpace validate WHAT --quick` as soon as it has kept an emulation, then runs it to its end. `kept` is the expected
/// number of emulations at the interrupt. Returns the rows, each of which has all fields.
pub fn interrupt_and_resume(what: &str, kept: Range<usize>) -> Vec<serde_json::Value> {
    let folder = tempfile::tempdir().unwrap();
    let found = || {
        let runs =
            std::fs::read_dir(folder.path().join(format!("validate-{what}"))).into_iter().flatten().flatten();
        runs.filter(|run| run.path().join("machine.txt").is_file()).count()
    };
    // Waits for the first kept emulation however busy the machine is. If the machine keeps up with none, the command reports that by
    // its exit status, and is started again.
    let stopped = (0..ROUNDS).find_map(|_| {
        let mut child =
            validate(what, folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        while found() == 0 && child.try_wait().unwrap().is_none() {
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
    let before = found();
    assert!(kept.contains(&before), "{before}");

    // 1: fewer than 90 % of the figures agree; 99: more than a fifth of the rows were invalid four times each, and are played again.
    let mut outputs = (0..ROUNDS).map(|_| validate(what, folder.path()).output().unwrap());
    let output =
        outputs.find(|output| output.status.code() != Some(99)).expect("the machine kept up too rarely");
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{error}\n{}", String::from_utf8_lossy(&output.stdout));
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    for row in &rows {
        // In whatever order: a package of `ranpace serve` makes serde_json keep that of writing.
        let fields: BTreeSet<&str> = row.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(fields, BTreeSet::from(["check", "expected", "measured", "ok", "tolerance"]));
        assert!(row["expected"].as_f64().unwrap() > 0.0, "{row}");
    }
    assert!(found() >= before, "kept emulations are not deleted");
    assert!(error.contains("judged figures agree"), "{error}");
    rows
}
