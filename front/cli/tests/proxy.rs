//! The commands of `ranpace proxy` as a user types them. The proxy itself is tested in carriers/proxy/tests. Where rights are missing
//! these tests say so and end.
#![cfg(all(target_os = "linux", feature = "proxy"))]
#![allow(clippy::unwrap_used)] // a test may

mod emulation;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use emulation::{output_of, program, rights, until};

fn ranpace(arguments: &[&str]) -> (Option<i32>, String, String) {
    output_of(Command::new(env!("CARGO_BIN_EXE_ranpace")).arg("proxy").args(arguments))
}

#[test]
fn check_tells_every_fault_with_its_line_and_nothing_is_wrong_with_the_pages_own_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("proxy.toml");
    let path = file.to_str().unwrap();
    fs::write(
        &file,
        "prot = 5250\n[[clients]]\ninterface = \"ran0\"\nnetworks = [\"10.45.0.0/99\"]\n[limits]\nflow_buffer = \"4\"\n",
    )
    .unwrap();
    let (code, out, error) = ranpace(&["check", path]);
    assert_eq!((code, out.as_str()), (Some(2), ""), "{error}");
    for (line, what) in [(1, "did you mean `port`"), (4, "networks"), (6, "expected a size such as")] {
        let told = |text: &&str| text.contains(&format!("proxy.toml, line {line}: ")) && text.contains(what);
        assert!(error.lines().any(|text| told(&text)), "line {line}, {what}: {error}");
    }
    let page = include_str!("../../../docs/proxy-server.md");
    fs::write(&file, page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap()).unwrap();
    let (code, out, error) = ranpace(&["check", path]);
    assert_eq!(code, Some(0), "{error}");
    assert!(out.contains("has no faults") && out.contains("fd00:45::/48 behind ran0"), "{out}");
    let (code, out, error) = ranpace(&["check", path, "--rules"]);
    assert_eq!(code, Some(0), "{error}");
    assert!(out.starts_with("table inet ranpace_proxy {") && out.ends_with("}\n"), "{out}");
    let (code, _, error) = ranpace(&["check", "/nowhere/proxy.toml"]);
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("/nowhere/proxy.toml"), "{error}");
}

/// A host that forwards, as a network namespace; it goes when this is dropped.
struct Host {
    name: String,
    folder: tempfile::TempDir,
}

impl Host {
    fn new() -> Self {
        let host = Self {
            name: format!("ranpace-proxies-{}", std::process::id()),
            folder: tempfile::tempdir().unwrap(),
        };
        host.ip(&["netns", "add", &host.name]);
        host.ip(&["-n", &host.name, "link", "set", "lo", "up"]);
        host.inside("sysctl", &["-q", "-w", "net.ipv4.ip_forward=1"]);
        let text = format!(
            "name = \"cli\"\n[[clients]]\ninterface = \"users\"\nnetworks = [\"10.45.0.0/16\"]\n[control]\nsocket = {:?}\n",
            host.socket()
        );
        fs::write(host.folder.path().join("proxy.toml"), text).unwrap();
        host
    }

    fn ip(&self, arguments: &[&str]) -> String {
        let (code, out, error) = output_of(Command::new("ip").args(arguments));
        assert_eq!(code, Some(0), "ip {arguments:?}: {error}");
        out
    }

    /// Runs a program of the system in the namespace.
    fn inside(&self, program: &str, arguments: &[&str]) -> String {
        self.ip(&[&["netns", "exec", &self.name, program], arguments].concat())
    }

    fn socket(&self) -> String {
        self.folder.path().join("proxy.sock").to_str().unwrap().to_owned()
    }

    /// `ranpace proxy --config` with these options, in the namespace.
    fn serve(&self, more: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, env!("CARGO_BIN_EXE_ranpace"), "proxy", "--config"]);
        command.arg(self.folder.path().join("proxy.toml")).args(more).stdin(Stdio::null());
        command
    }

    /// Starts a proxy, and waits until it can be asked.
    fn start(&self) -> Child {
        let log = fs::File::create(self.folder.path().join("log")).unwrap();
        let mut proxy = self.serve(&[]).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        until("the proxy answers", || {
            let log = || fs::read_to_string(self.folder.path().join("log")).unwrap();
            assert!(proxy.try_wait().unwrap().is_none(), "it has ended: {}", log());
            ranpace(&["show", "--socket", &self.socket()]).0 == Some(0)
        });
        proxy
    }

    /// What a proxy has added to the system.
    fn added(&self) -> String {
        let mut added = self.inside("nft", &["list", "tables"]);
        for family in ["-4", "-6"] {
            let rules = self.inside("ip", &[family, "rule"]);
            added.extend(rules.lines().filter(|line| line.contains("fwmark")));
        }
        added + &self.inside("ip", &["-brief", "link", "show", "type", "tun"])
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // A failure of this would hide that of the test.
        let _ = output_of(Command::new("ip").args(["netns", "delete", &self.name]));
    }
}

#[test]
fn a_proxy_is_shown_and_drained_and_what_a_killed_one_leaves_is_cleaned() {
    let Some(_turn) = rights() else { return };
    if [program(&["nft"]), program(&["ip"])].contains(&None) {
        return;
    }
    let host = Host::new();
    let socket = host.socket();
    let (code, out, error) = ranpace(&["show", "--socket", &socket]);
    assert_eq!((code, out.as_str()), (Some(2), ""), "{error}");
    assert!(error.contains("no proxy answers at") && error.contains(&socket), "{error}");

    let mut proxy = host.start();
    assert!(host.added().contains("cli_proxy"), "{}", host.added());
    let (code, out, error) = ranpace(&["show", "--socket", &socket]);
    assert_eq!(code, Some(0), "{error}");
    assert!(out.starts_with("cli: 0 of ") && out.contains("RTTs"), "{out}");
    let (code, out, error) = ranpace(&["show", "--json", "--socket", &socket]);
    assert_eq!(code, Some(0), "{error}");
    let shown: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&shown["name"], &shown["draining"]), (&"cli".into(), &false.into()), "{out}");

    // Two pictures, and then Ctrl-C.
    let mut live = Command::new(env!("CARGO_BIN_EXE_ranpace"))
        .args(["proxy", "show", "--live", "--socket", &socket])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(live.stdout.take().unwrap()).lines();
    for _ in 0..2 {
        assert!(lines.by_ref().any(|line| line.unwrap().starts_with("cli: 0 of ")));
    }
    let (code, ..) = output_of(Command::new("kill").args(["-INT", &live.id().to_string()]));
    assert_eq!(code, Some(0));
    assert!(live.wait().unwrap().success());

    let (code, _, error) = output_of(&mut host.serve(&[]));
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("\"cli\" runs already"), "{error}");

    let (code, out, error) = ranpace(&["drain", "--wait", "--socket", &socket]);
    assert_eq!((code, out.as_str()), (Some(0), "the proxy has ended\n"), "{error}");
    assert_eq!(host.added(), "");
    assert!(proxy.wait().unwrap().success());

    // It runs in the process that `ip` has become.
    let mut proxy = host.start();
    proxy.kill().unwrap();
    proxy.wait().unwrap();
    assert!(host.added().contains("cli_proxy"));
    for _ in 0..2 {
        let (code, out, error) = output_of(&mut host.serve(&["--clean"]));
        assert_eq!(code, Some(0), "{error}");
        assert!(out.contains("nothing of the proxy \"cli\" is left"), "{out}");
        assert_eq!(host.added(), "");
    }
    // Its control socket is still there, which the next one replaces; Ctrl-C removes everything.
    let mut proxy = host.start();
    let (code, ..) = output_of(Command::new("kill").args(["-INT", &proxy.id().to_string()]));
    assert_eq!(code, Some(0));
    assert!(proxy.wait().unwrap().success());
    assert_eq!(host.added(), "");
}
