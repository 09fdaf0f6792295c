//! Random requests against the interface, made from its own description by schemathesis: none ends in a server's error.
#![allow(clippy::unwrap_used)] // allowed in tests

mod support;

use std::path::Path;
use std::process::Command;

use serde_json::json;
use support::Lab;

#[test]
fn random_requests_are_answered_as_described() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let tester = root.join("target/conformance/bin/schemathesis");
    if !tester.exists() {
        let needs = "target/conformance/bin/schemathesis; docs/rnis-conformance.md says how to install it";
        assert!(std::env::var_os("RANPACE_NO_SKIP").is_none(), "needs {needs}");
        println!("skipped: needs {needs}");
        return;
    }
    let lab = Lab::new();
    let text = "duration = \"1s\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1Mbit/s\"\nduplex = true\n[[flow]]\nfrom = \"a\"\nto = \"b\"\ncc = \"cubic\"\n";
    lab.done("/api/sessions", &json!({ "text": text, "paused": true }));
    // The tester leaves a folder of its own where it runs.
    let output = Command::new(tester.canonicalize().unwrap())
        .current_dir(lab.folder.path())
        .arg("run")
        .arg(format!("http://{}/api/openapi.json", lab.address()))
        .args([
            "--checks",
            "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance",
        ])
        .args([
            "--max-examples",
            "15",
            "--seed",
            "1",
            "--workers",
            "2",
            "--request-timeout",
            "60",
            "--exclude-path",
            "/api/sessions/{id}/stream",
        ])
        .args(["--phases", "examples,coverage,fuzzing"])
        .output()
        .unwrap();
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    println!("{said}");
    // "Errors" are operations that could not be tested.
    assert!(output.status.success() && said.contains("Tested: ") && !said.contains("Errors:"), "{said}");
    assert_eq!(lab.get("/api/server").status, 200);
}
