//! The interface against the descriptions of V2.1.1 (ETSI's) and V2.2.1 (of another implementation), by schemathesis. What it takes for
//! a fault and is none is in `tools/conformance-exceptions.toml`, with the reasons.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;

use crate::support::bed::Bed;
use crate::support::namespace;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn descriptions() -> [(&'static str, PathBuf); 2] {
    let folder = root().join("../shared/data/etsi");
    [("2.1.1", folder.join("v2.1.1/RniAPI.yaml")), ("2.2.1", folder.join("v2.2.1/swagger.yaml"))]
}

/// Runs in a namespace of its own, from which callbacks reach nobody.
#[test]
#[ignore = "run by answers_are_as_described"]
fn inside_without_a_network() {
    // A server for each: one run must not end the subscriptions of the other.
    let mut beds = [Bed::new(""), Bed::new("")];
    let run = |(bed, (version, description)): (&Bed, (&str, PathBuf))| {
        Command::new(root().join("target/conformance/bin/python"))
            .arg(root().join("tools/conformance.py"))
            .arg("--schemathesis")
            .arg(root().join("target/conformance/bin/schemathesis"))
            .args(["--version", version, "--examples", "8", "--seconds", "400"])
            .arg(description)
            .arg(format!("http://{}/rni/v2", bed.address()))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let mut runs: Vec<_> = beds.iter().zip(descriptions()).map(run).collect();
    // Meanwhile the cells report.
    let mut slot = 0;
    while runs.iter_mut().any(|run| run.try_wait().unwrap().is_none()) {
        slot += 1;
        let users =
            [0, 1].map(|user| json!([user, 17_921, 9, 2_000_000, 1.9, [44_000, 3_000_000, [11, 25, 4_392]]]));
        let line = json!({ "slot": { "cell": 0, "slot": slot, "full": true, "users": users } });
        beds.iter_mut().for_each(|bed| bed.say(line.clone()));
        std::thread::sleep(Duration::from_millis(10));
    }
    for run in runs {
        let output = run.wait_with_output().unwrap();
        let text =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        println!("{text}");
        assert!(output.status.success());
    }
}

#[test]
fn answers_are_as_described() {
    if !descriptions().iter().all(|(_, file)| file.exists()) {
        // Written directly to stderr, since the test runner hides the output of passing tests.
        let word =
            "skipped: needs shared/data/etsi beside the checkout; CONTRIBUTING.md says where it comes from\n";
        std::io::stderr().write_all(word.as_bytes()).unwrap();
        return;
    }
    if !root().join("target/conformance/bin/schemathesis").exists() {
        let needs = "target/conformance/bin/schemathesis; docs/rnis-conformance.md says how to install it";
        assert!(std::env::var_os("RANPACE_NO_SKIP").is_none(), "needs {needs}");
        println!("skipped: needs {needs}");
        return;
    }
    namespace::run("conformance::inside_without_a_network", "");
}
