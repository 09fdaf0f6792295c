//! Commands survive hostile or clumsy use: closed pipes, full disks, Ctrl-C at the wrong time, absurd numbers.
#![allow(clippy::unwrap_used)] // a test may

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SCENARIO: &str = r#"
duration = "1s"
[[link]]
name = "down"
from = "server"
to = "phone"
rate = "2Mbit/s"
delay = "5ms"
duplex = true
[[flow]]
from = "server"
to = "phone"
cc = "cubic"
"#;

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ranpace"));
    command.current_dir(folder).args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// Exit status and errors.
fn output(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = command(folder, arguments).stderr(Stdio::piped()).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn folder_with(scenario: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("scenario.toml"), scenario).unwrap();
    folder
}

/// Commands, and what they leave behind.
const COMMANDS: [(&[&str], &str); 5] = [
    (&["run", "scenario.toml"], "results/scenario/report.html"),
    (&["sweep", "scenario.toml", "--seeds", "2"], "results/sweep-scenario/sweep.json"),
    (&["compare", "--rate", "2Mbit/s", "--cc", "cubic", "--time", "1s"], "results/compare/compare.json"),
    (&["trace", "generate", "--model", "lte", "--duration", "1s", "--out", "lte.trace"], "lte.trace"),
    (&["list", "cc"], "scenario.toml"),
];

#[cfg(target_os = "linux")]
#[test]
fn full_or_closed_stderr_does_not_end_the_command() {
    for (arguments, left) in COMMANDS {
        for case in ["full", "closed", "both closed"] {
            let folder = folder_with(SCENARIO);
            let mut command = command(folder.path(), arguments);
            // The reading end is gone.
            let closed = || std::io::pipe().unwrap().1;
            match case {
                "full" => command.stderr(fs::File::options().write(true).open("/dev/full").unwrap()),
                "closed" => command.stderr(closed()),
                _ => command.stderr(closed()).stdout(closed()),
            };
            assert_eq!(command.status().unwrap().code(), Some(0), "{case}: {arguments:?}");
            assert!(folder.path().join(left).exists(), "{case}: {arguments:?}");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_behind_standard_output_costs_no_results() {
    for (arguments, left) in COMMANDS {
        let folder = folder_with(SCENARIO);
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let output = command(folder.path(), arguments).stdout(full).stderr(Stdio::piped()).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {error}");
        assert!(error.contains("cannot write to standard output"), "{arguments:?}: {error}");
        assert!(folder.path().join(left).exists(), "{arguments:?}: {error}");
    }
}

/// Sends a signal, and how long it then took until the process had ended.
#[cfg(unix)]
fn ended_after(child: &mut Child, signal: &str) -> (Option<i32>, Duration) {
    let sent = Instant::now();
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
    let status = child.wait().unwrap();
    (status.code(), sent.elapsed())
}

/// On a machine that is busy with other things too; a build for tests is some ten times as slow.
const SOON: Duration = Duration::from_secs(10);

#[cfg(unix)]
#[test]
fn ctrl_c_during_slow_events_keeps_the_measurements() {
    // A slot of a cell with thousands of users takes long, and its feed has them all report.
    let mut scenario = String::from(
        "duration = \"1h\"\n[[cell]]\nname = \"c\"\npreset = \"lte\"\n[[link]]\nfrom = \"server\"\nto = \"c\"\nrate = \"1Gbit/s\"\n\
         duplex = true\n",
    );
    for user in 0..2_000 {
        scenario += &format!("[[user]]\nname = \"u{user}\"\ncell = \"c\"\n");
        if user % 20 == 0 {
            scenario += &format!("[[flow]]\nfrom = \"server\"\nto = \"u{user}\"\ncc = \"cubic\"\n");
        }
    }
    let folder = folder_with(&scenario);
    let mut child = command(folder.path(), &["run", "scenario.toml"]).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    // The folder of results is there just before it is played.
    while !folder.path().join("results/scenario").exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never began");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(1_500));
    let (status, took) = ended_after(&mut child, "-INT");
    let mut error = String::new();
    child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
    assert_eq!(status, Some(130), "{error}");
    assert!(took < SOON, "{took:?}: {error}");
    assert!(error.contains("what was measured until then is in the results"), "{error}");
    assert!(folder.path().join("results/scenario/report.html").exists(), "{error}");
}

#[test]
fn report_of_thousands_of_flows_is_fast() {
    let flow = "[[flow]]\nfrom = \"server\"\nto = \"phone\"\ncc = \"cubic\"\n";
    let scenario = SCENARIO.replace("\"1s\"", "\"10ms\"") + &flow.repeat(3_000);
    let folder = folder_with(&scenario);
    let begun = Instant::now();
    let (status, error) = output(folder.path(), &["run", "scenario.toml"]);
    assert_eq!(status, Some(0), "{error}");
    // Figures of each flow were compared with those of each other: a minute then, in a build for tests.
    assert!(begun.elapsed() < Duration::from_secs(40), "{:?}", begun.elapsed());
    let page = fs::read_to_string(folder.path().join("results/scenario/report.html")).unwrap();
    assert!(page.contains("The first 2000 of 3001 rows"));
}

#[test]
fn scenario_beyond_memory_is_refused_with_size_and_remedy() {
    let flow = "[[flow]]\nfrom = \"server\"\nto = \"phone\"\ncc = \"cubic\"\n";
    let fine = SCENARIO.replace("\"1s\"", "\"5s\"\nsample = \"1us\"") + &flow.repeat(9);
    let folder = folder_with(&fine);
    let (status, error) = output(folder.path(), &["run", "scenario.toml"]);
    assert_eq!(status, Some(2), "{error}");
    for word in ["scenario.toml:3:10: sample: ", "10.1 GB", "use at least ", "fewer flows"] {
        assert!(error.contains(word), "{word}: {error}");
    }
    // A trace of 46 days with one opportunity.
    fs::write(folder.path().join("long"), "4000000000\n").unwrap();
    let even = ["trace", "convert", "long", "--out", "even", "--even", "1ms"];
    assert_eq!(output(folder.path(), &even).0, Some(0));
    let rows = ["trace", "convert", "long", "--out", "even.csv", "--to", "csv", "--bin", "1ms"];
    let (status, error) = output(folder.path(), &rows);
    assert_eq!(status, Some(2), "{error}");
    assert!(
        error.contains("would make 4000000000 rows, more than 50000000; use a longer interval"),
        "{error}"
    );
}

#[test]
fn a_control_of_twenty_thousand_decorators_is_refused() {
    let folder = folder_with(&SCENARIO.replace("cubic", &format!("cubic{}", "+c2tcp".repeat(20_000))));
    let (status, error) = output(folder.path(), &["run", "scenario.toml"]);
    assert_eq!(status, Some(2), "{error}");
    assert!(error.contains("120005 bytes") && error.len() < 400, "{error}");
}

#[test]
fn timeouts_of_a_nanosecond_are_refused() {
    for key in ["min_rto", "initial_rto", "max_rto"] {
        let folder = folder_with(&format!("{SCENARIO}{key} = \"1ns\"\n"));
        let (status, error) = output(folder.path(), &["run", "scenario.toml"]);
        assert_eq!(status, Some(2), "{error}");
        assert!(error.contains(&format!("{key}: expected 1ms to 3600s")), "{error}");
    }
}
