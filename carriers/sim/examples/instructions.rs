//! Counts the instructions of short simulations under valgrind, and compares them with `benches/instructions.txt`.
//!
//! `make instructions` fails if a count has grown by more than 5 %; `make instructions-record` rewrites the counts. A busy machine
//! gives the same counts as an idle one, so CI can tell what a change costs. The counts depend on the compiler: with another one
//! than the recorded they are shown, but not judged.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::process::{Command, ExitCode};

use ranpace_sim::Simulation;

/// Allowed growth of a count.
const TOLERANCE: f64 = 0.05;
const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/instructions.txt");

const WIRED: &str = r#"
duration = "2s"
[[link]]
name = "down"
from = "server"
to = "phone"
rate = "100Mbit/s"
delay = "12ms"
queue = { kind = "droptail", limit = "1MB" }
duplex = true
"#;

const CELL: &str = r#"
duration = "2s"
[[link]]
name = "core"
from = "server"
to = "mast"
rate = "1Gbit/s"
delay = "5ms"
duplex = true
[[cell]]
host = "mast"
preset = "zhong-lte-ch6"
[[user]]
name = "phone"
count = 5
position = [50, 0]
"#;

/// Each simulation: its name, its network, and additional settings.
const CASES: [(&str, &str, &str); 7] = [
    ("tcp-cubic", WIRED, "[[flow]]\nfrom = 'server'\nto = 'phone'\ncc = 'cubic'"),
    ("tcp-bbr1", WIRED, "[[flow]]\nfrom = 'server'\nto = 'phone'\ncc = 'bbr1'"),
    ("quic-cubic", WIRED, "[[flow]]\nfrom = 'server'\nto = 'phone'\ncc = 'cubic'\ntransport = 'quic'"),
    ("cell-cubic", CELL, "[[flow]]\nfrom = 'server'\nto = 'phone'\ncc = 'cubic'"),
    ("upload-sigma", CELL, "[[flow]]\nfrom = 'phone'\nto = 'server'\ncc = 'sigma'"),
    ("pep-mdcc", CELL, "[[flow]]\nfrom = 'server'\nto = 'phone'\ncc = 'mdcc'\n[[pep]]\nhost = 'mast'"),
    (
        "proxy-rapid",
        CELL,
        "[[flow]]\nfrom = 'server'\nto = 'phone'\ncc = 'cubic'\n[[proxy]]\nhost = 'mast'\nkind = 'rapid'",
    ),
];

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        None => compare(),
        Some("--record") => record(),
        Some(name) => {
            play(name);
            ExitCode::SUCCESS
        }
    }
}

/// The program that runs under valgrind.
fn play(name: &str) {
    let (_, network, flows) = CASES.into_iter().find(|case| case.0 == name).unwrap();
    let scenario = ranpace_scenario::parse(&format!("{network}{flows}\n"), name, &mut ());
    let result = Simulation::new(&scenario.unwrap_or_else(|error| panic!("{error}"))).run();
    assert!(result.flows.iter().all(|flow| flow.delivered.get() > 0), "{name}: nothing was delivered");
}

/// Instructions of each simulation; `None` without valgrind.
fn counts() -> Option<Vec<(&'static str, u64)>> {
    CASES.iter().map(|case| Some((case.0, count(case.0)?))).collect()
}

fn count(name: &str) -> Option<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"])
        .arg(std::env::current_exe().unwrap())
        .arg(name)
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {text}");
    let line = text.lines().find(|line| line.contains("I ") && line.contains("refs:")).unwrap();
    let digits: String = line.rsplit(':').next().unwrap().chars().filter(char::is_ascii_digit).collect();
    Some(digits.parse().unwrap())
}

/// "rustc 1.95.0".
fn compiler() -> String {
    let output = Command::new("rustc").arg("--version").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.split(' ').take(2).collect::<Vec<_>>().join(" ")
}

fn record() -> ExitCode {
    let Some(counts) = counts() else { return without_valgrind() };
    let head = "# Instructions of the simulations in carriers/sim/examples/instructions.rs, as `make instructions-record` counted them. Reviewed like code.";
    let lines: String = counts.iter().map(|(name, count)| format!("{name} {count}\n")).collect();
    std::fs::write(RECORDED, format!("{head}\n{}\n{lines}", compiler())).unwrap();
    print!("{lines}");
    ExitCode::SUCCESS
}

fn compare() -> ExitCode {
    let Some(counts) = counts() else { return without_valgrind() };
    let recorded = std::fs::read_to_string(RECORDED).unwrap();
    let mut lines = recorded.lines().filter(|line| !line.starts_with('#'));
    let recorded_compiler = lines.next().unwrap();
    let is_judged = recorded_compiler == compiler();
    let before: Vec<(&str, u64)> = lines
        .filter_map(|line| line.split_once(' '))
        .map(|(name, count)| (name, count.parse().unwrap()))
        .collect();
    let mut worse = 0;
    for (name, count) in counts {
        let Some((_, before)) = before.iter().find(|(other, _)| *other == name) else {
            println!("{name:12} {count:>12}  not recorded: run `make instructions-record`");
            worse += 1;
            continue;
        };
        let change = count as f64 / *before as f64 - 1.0;
        let word = match change {
            _ if change > TOLERANCE => "more than 5 % worse",
            _ if change < -TOLERANCE => "better: `make instructions-record` keeps it",
            _ => "",
        };
        worse += u32::from(change > TOLERANCE);
        println!("{name:12} {count:>12}  {:+6.2} %  {word}", change * 100.0);
    }
    if !is_judged {
        println!(
            "not judged: recorded with {recorded_compiler}, this is {}; `make instructions-record` renews benches/instructions.txt",
            compiler()
        );
    } else if worse > 0 {
        println!("If it is worth that, say why in the commit, and run `make instructions-record`.");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn without_valgrind() -> ExitCode {
    println!(
        "skipped: instructions are counted by valgrind, which is not installed (apt-get install valgrind)"
    );
    ExitCode::SUCCESS
}
