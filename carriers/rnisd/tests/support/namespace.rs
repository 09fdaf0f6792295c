//! Runs a test of this binary in network and mount namespaces of its own, as root.

use std::process::Command;

use nix::unistd::geteuid;

/// Runs the ignored test of this name there, after the commands of `prepare`. Says what is missing; where RANPACE_NO_SKIP is set, as
/// CI does, the test fails then.
pub fn run(test: &str, prepare: &str) {
    let is_missing = |program: &&str| Command::new(program).arg("--help").output().is_err();
    let missing = if geteuid().is_root() {
        ["ip", "unshare", "mount"].into_iter().find(is_missing)
    } else {
        Some("root")
    };
    if let Some(missing) = missing {
        assert!(std::env::var_os("RANPACE_NO_SKIP").is_none(), "needs {missing}");
        println!("skipped: needs {missing}");
        return;
    }
    let script =
        format!("set -e\nip link set lo up\n{prepare}\nexec \"$0\" --exact {test} --ignored --nocapture");
    let output = Command::new("unshare")
        .args(["--net", "--mount", "sh", "-c", &script])
        .arg(std::env::current_exe().unwrap())
        .output()
        .unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    println!("{text}");
}
