//! `ranpace rnis`: the server and its clients, on recordings and on an emulation that is running.
#![cfg(all(target_os = "linux", feature = "rnis"))]
#![allow(clippy::unwrap_used)] // a test may

mod emulation;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use emulation::{Emulation, folder_with, program, rights};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// Two cells, ten users, and the handover of one of them.
const SCENARIO: &str = include_str!("../../../examples/rnis.toml");

fn ranpace(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ranpace"));
    command.current_dir(folder).args(arguments).stdin(Stdio::null());
    command
}

/// Exit status, output and errors.
fn output(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = ranpace(folder, arguments).output().unwrap();
    let [out, error] = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (status.code(), out, error)
}

/// A server that runs beside a test.
struct Server {
    child: Child,
    /// What it has said, and says.
    said: Vec<String>,
    more: BufReader<ChildStderr>,
    url: String,
}

impl Server {
    /// Returns when it listens.
    fn start(folder: &Path, more: &[&str]) -> Self {
        let arguments = [&["rnis", "serve", "--listen", "127.0.0.1:0"], more].concat();
        let mut child = ranpace(folder, &arguments).stderr(Stdio::piped()).spawn().unwrap();
        let more = BufReader::new(child.stderr.take().unwrap());
        let mut server = Self { child, said: Vec::new(), more, url: String::new() };
        let line = server.until("listening at http://");
        let url = line.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
        server.url = url.strip_suffix("/rni/v2").unwrap().to_owned();
        server
    }

    /// The next line that contains this.
    fn until(&mut self, part: &str) -> String {
        loop {
            let mut line = String::new();
            assert!(self.more.read_line(&mut line).unwrap() > 0, "it ended before {part:?}: {:?}", self.said);
            self.said.push(line.clone());
            if line.contains(part) {
                return line;
            }
        }
    }

    /// Ends it as a service manager does; its exit status.
    fn stop(mut self) -> Option<i32> {
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has ended already, unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A folder with three seconds of the scenario as `run.jsonl`, in which the handover comes after one.
fn recording() -> tempfile::TempDir {
    let scenario =
        SCENARIO.replace("duration = \"10s\"", "duration = \"3s\"").replace("at = \"4s\"", "at = \"1s\"");
    let folder = folder_with(&scenario);
    let (status, _, error) =
        output(folder.path(), &["run", "scenario.toml", "--rnis-record", "run.jsonl", "--json"]);
    assert_eq!(status, Some(0), "{error}");
    folder
}

#[test]
fn a_recording_is_served_to_get_and_subscribe() {
    let folder = recording();
    let folder = folder.path();
    let mut server = Server::start(folder, &["--source", "loop=run.jsonl"]);
    server.until("a source is connected");
    let url = server.url.clone();
    // One of the first lines of a round describes the users.
    let get = |arguments: &[&str]| {
        let (status, out, error) = output(folder, &[&["rnis", "get"], arguments, &[&url]].concat());
        assert_eq!(status, Some(0), "{arguments:?}: {error}");
        serde_json::from_str::<Value>(&out).unwrap()
    };
    emulation::until("all users are there", || get(&["users"]).as_array().unwrap().len() == 10);
    assert_eq!(get(&["health"])["sources"][0]["connected"], true);
    let bearers = get(&["rab_info", "--ue-ipv4-address", "10.77.0.2", "--qci", "9"]);
    let users = &bearers["cellUserInfo"][0]["ueInfo"];
    assert_eq!(
        (users.as_array().unwrap().len(), &users[0]["erabInfo"][0]["erabId"]),
        (1, &5.into()),
        "{bearers}"
    );
    assert_eq!(get(&["plmn_info"])[0]["plmn"][0]["mcc"], "001");
    let subscribe = |arguments: &[&str]| {
        let (status, out, error) = output(folder, &[&["rnis", "subscribe"], arguments, &[&url]].concat());
        assert_eq!(status, Some(0), "{arguments:?}: {error}");
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    };
    let stages =
        subscribe(&["cell_change", "--ho-status", "2", "--ho-status", "3", "--test", "--count", "3"]);
    assert_eq!(stages[0]["notificationType"], "TestNotification");
    let mut found = [&stages[1]["hoStatus"], &stages[2]["hoStatus"]].map(|stage| stage.as_u64().unwrap());
    found.sort_unstable();
    assert_eq!(found, [2, 3], "{stages:?}");
    assert_eq!(stages[1]["associateId"][0]["value"], "10.77.0.2");
    let records =
        subscribe(&["vendor_tti_meas", "--period", "8ms", "--ue-ipv4-address", "10.77.0.3", "--count", "2"]);
    assert!(
        records.iter().all(|record| record["meas"][0]["associateId"]["value"] == "10.77.0.3"),
        "{records:?}"
    );
    // It is renewed once, and removed at the end.
    assert!(
        subscribe(&["timing_advance_ue", "--lifetime", "1s", "--for", "800ms"])
            .iter()
            .all(|notice| notice["notificationType"] == "ExpiryNotification")
    );
    let expired = subscribe(&["ca_reconf", "--lifetime", "1s", "--once"]);
    assert_eq!(expired[0]["notificationType"], "ExpiryNotification");
    assert!(get(&["subscriptions"])["_links"].get("subscription").is_none());
    // What a server refuses is told with its reason.
    for (arguments, part) in [
        (["get", "rab_info", "--temp-ue-id", "1"].as_slice(), "temp_ue_id"),
        (&["get", "/rni/v2/nothing"], "404"),
        (&["get", "rabinfo"], "expected rab_info"),
        (&["subscribe", "cell_changed"], "expected cell_change, "),
        (&["subscribe", "cell_change", "--callback", "http://10.0.0.1/"], "callbacks.allow"),
    ] {
        let (status, _, error) = output(folder, &[&["rnis"], arguments, &[&url]].concat());
        assert!(status == Some(2) && error.contains(part), "{arguments:?}: {status:?} {error}");
    }
    assert_eq!(server.stop(), Some(0));
    let (status, _, error) = output(folder, &["rnis", "get", "users", &url]);
    assert!(status == Some(1) && error.contains("no connection"), "{error}");
}

#[test]
fn a_source_that_is_lost_is_told_and_events_are_lines_of_json_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("cell.sock");
    let source = format!("lines=unix-listen:{}", socket.display());
    let mut server = Server::start(folder.path(), &["--source", &source]);
    emulation::until("the source listens", || socket.exists());
    let station = std::os::unix::net::UnixStream::connect(&socket).unwrap();
    server.until("a source is connected");
    drop(station);
    server.until("a source is lost");
    assert_eq!(server.stop(), Some(0));
    let mut log = ranpace(folder.path(), &["rnis", "serve", "--listen", "127.0.0.1:0", "--log", "json"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(log.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let event: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&event["message"], &event["level"]), (&"listening".into(), &"INFO".into()));
    kill(Pid::from_raw(log.id() as i32), Signal::SIGINT).unwrap();
    assert_eq!(log.wait().unwrap().code(), Some(0));
}

#[test]
fn a_configuration_is_checked_with_all_its_faults() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let good = "listen = \"127.0.0.1:0\"\n[[source]]\nlines = \"unix:cell.sock\"\n";
    fs::write(folder.join("good.toml"), good).unwrap();
    let (status, out, error) = output(folder, &["rnis", "check", "good.toml"]);
    assert!(status == Some(0) && out.contains("no faults") && out.contains("1 source"), "{out}{error}");
    let bad = "lisen = \"127.0.0.1:0\"\n[limits]\nbody = 7\n[[source]]\nlines = \"cell.sock\"\n";
    fs::write(folder.join("bad.toml"), bad).unwrap();
    for command in ["check", "serve"] {
        let (status, _, error) = output(folder, &["rnis", command, "bad.toml"]);
        assert_eq!(status, Some(2), "{error}");
        for part in [
            "bad.toml, line 1: `lisen`",
            "did you mean `listen`",
            "line 3: `limits.body`",
            "line 4: `source`",
            "unix:PATH",
        ] {
            assert!(error.contains(part), "{part}: {error}");
        }
    }
    for (arguments, part) in [
        (["--listen", "0.0.0.0:0"].as_slice(), "the options: `listen`: expected [auth]"),
        (&["--source", "cell.sock"], "expected lines=ADDRESS"),
        (&["--source", "srsran=ws://gnb:8001"], "[[source.cell]]"),
        (&["missing.toml"], "missing.toml: "),
    ] {
        let (status, _, error) = output(folder, &[&["rnis", "serve"], arguments].concat());
        assert!(status == Some(2) && error.contains(part), "{arguments:?}: {status:?} {error}");
    }
}

/// What an edge application does: it subscribes over the standard's interface, is notified of a handover and of measurement reports, and
/// lets its subscriptions expire.
#[test]
fn a_client_in_another_language_is_notified_of_an_emulated_handover() {
    let Some(_turn) = rights() else { return };
    let Some(python) = program(&["python3"]) else { return };
    // The phone goes back and forth, so that it does not matter when the client is ready.
    let mut scenario = SCENARIO.to_owned();
    for (number, at) in (7..60).step_by(3).enumerate() {
        let to = ["west", "east"][number % 2];
        scenario += &format!("\n[[change]]\nat = \"{at}s\"\nuser = \"phone\"\nto = \"{to}\"\n");
    }
    let folder = folder_with(&scenario.replace("duration = \"10s\"", "duration = \"60s\""));
    let address = format!("unix:{}", folder.path().join("cell.sock").display());
    let emulation = Emulation::start_with(folder, ":", &["--rnis", &address, "--workloads"]);
    let folder = emulation.folder.path();
    let source = format!("lines={address}");
    let mut server = Server::start(folder, &["--source", &source, "--allow-callbacks", "127.0.0.0/8"]);
    server.until("a source is connected");
    let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rnis_client.py");
    let seen = Command::new(python).arg(client).args([&server.url, "6"]).output().unwrap();
    let out = String::from_utf8(seen.stdout).unwrap();
    assert!(seen.status.success(), "{out}{}", String::from_utf8_lossy(&seen.stderr));
    let notification = |kind: &str| -> Value {
        let line =
            out.lines().find_map(|line| line.strip_prefix(kind)).unwrap_or_else(|| panic!("{kind}: {out}"));
        serde_json::from_str(line).unwrap()
    };
    let change = notification("CellChangeNotification ");
    assert_eq!(change["hoStatus"], 3);
    let mut cells =
        [&change["srcEcgi"]["cellId"], &change["trgEcgi"][0]["cellId"]].map(|id| id.as_str().unwrap());
    cells.sort_unstable();
    assert_eq!(cells, ["0000001", "0000002"], "{change}");
    let report = notification("MeasRepUeNotification ");
    assert!((20..80).contains(&report["rsrp"].as_i64().unwrap()), "{report}");
    assert!(notification("ExpiryNotification ")["expiryDeadline"]["seconds"].is_u64());
    assert_eq!(server.stop(), Some(0));
}
