//! `ranpace emulate` as a user sees it. Where rights are missing these tests say so and end.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stderr)] // a test may

use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ranpace_emulator::{addresses, check, within};

/// For what takes a moment, on a machine that is busy with other things too.
const PATIENCE: Duration = Duration::from_secs(60);

/// 20 ms each way, 100 Mbit/s.
const LINK: &str = r#"
duration = "10s"

[[link]]
name = "down"
from = "server"
to = "phone"
rate = "100Mbit/s"
delay = "20ms"
queue = { kind = "droptail", limit = "1MB" }
duplex = true

[[flow]]
from = "server"
to = "phone"
cc = "cubic"
"#;

const CELL: &str = r#"
duration = "10s"

[[link]]
name = "core"
from = "server"
to = "mast"
rate = "1Gbit/s"
delay = "10ms"
duplex = true

[[cell]]
host = "mast"
preset = "lte"

[[user]]
name = "ue1"
position = [100, 0]

[[user]]
name = "ue2"
position = [150, 0]

[[flow]]
from = "server"
to = "ue1"
cc = "cubic"
"#;

/// The right to make emulations, one test after another: side by side they would take each other's time. Says why there is
/// none.
fn rights() -> Option<MutexGuard<'static, ()>> {
    static TURN: Mutex<()> = Mutex::new(());
    match check() {
        Ok(()) => Some(TURN.lock().unwrap_or_else(PoisonError::into_inner)),
        Err(error) => {
            eprintln!("skipped: needs root and TUN devices: {error}");
            None
        }
    }
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ranpace"));
    command.current_dir(folder).arg("emulate").args(arguments).stdin(Stdio::null());
    command
}

fn output(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = command(folder, arguments).output().unwrap();
    let [out, error] = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (status.code(), out, error)
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain until {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// An emulation that runs until it is told to end.
struct Emulation {
    folder: tempfile::TempDir,
    child: Child,
}

impl Emulation {
    fn start(scenario: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("scenario.toml"), scenario).unwrap();
        let wait = "touch ready; while [ ! -e done ]; do sleep 0.05; done";
        let child = command(folder.path(), &["scenario.toml", "--", "sh", "-c", wait]).spawn().unwrap();
        let mut emulation = Self { folder, child };
        until("the program runs", || {
            assert_eq!(emulation.child.try_wait().unwrap(), None, "the emulation ended");
            emulation.folder.path().join("ready").exists()
        });
        emulation
    }

    /// Runs something behind a host.
    fn behind<T: Send + 'static>(
        &self,
        host: &str,
        what: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let name = format!("ranpace-{}-{host}", self.child.id());
        thread::spawn(move || within(&name, what).unwrap())
    }

    /// Lets it end; returns its exit status and what is in its results.
    fn end(&mut self) -> (Option<i32>, serde_json::Value, serde_json::Value) {
        fs::write(self.folder.path().join("done"), "").unwrap();
        let status = self.child.wait().unwrap();
        let results = self.folder.path().join("results/scenario.emulated");
        let read = |path: PathBuf| serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        let runs = fs::read_dir(&results).unwrap().map(|entry| entry.unwrap().path());
        let run = runs.into_iter().find(|path| path.is_dir()).unwrap();
        assert!(results.join("report.html").exists());
        (status.code(), read(run.join("summary.json")), read(results.join("emulation.json")))
    }
}

impl Drop for Emulation {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = output(self.folder.path(), &["--clean"]);
    }
}

/// Sends datagrams from one host to another, which sends them back, until one was back within `goal` or patience is at an
/// end; returns the shortest time.
fn shortest_echo(emulation: &Emulation, from: &str, to: (&str, IpAddr), goal: Duration) -> Duration {
    let address = SocketAddr::new(to.1, 7_007);
    let server = emulation.behind(to.0, move || {
        let socket = UdpSocket::bind(address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut buffer = [0; 100];
        loop {
            let (length, from) = socket.recv_from(&mut buffer).unwrap();
            if length == 1 {
                return;
            }
            socket.send_to(&buffer[..length], from).unwrap();
        }
    });
    let client = emulation.behind(from, move || {
        let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(any).unwrap();
        socket.connect(address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        let (begun, mut shortest) = (Instant::now(), PATIENCE);
        for number in 0_u64.. {
            if begun.elapsed() >= PATIENCE / 2 || shortest <= goal {
                break;
            }
            let sent = Instant::now();
            // Nobody listens there yet, at first.
            if socket.send(&number.to_be_bytes()).is_err() {
                continue;
            }
            let mut buffer = [0; 100];
            match socket.recv(&mut buffer) {
                Ok(8) if buffer[..8] == number.to_be_bytes() => shortest = shortest.min(sent.elapsed()),
                Ok(_) => {}
                Err(error) => assert!(
                    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionRefused),
                    "{error}"
                ),
            }
        }
        for _ in 0..3 {
            let _ = socket.send(&[0]);
        }
        shortest
    });
    let shortest = client.join().unwrap();
    server.join().unwrap();
    shortest
}

/// Bytes that no queue can have made up.
fn content(length: usize) -> Vec<u8> {
    (0..length as u64).map(|place| (place.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

/// Sends `content` over TCP from one host to another; returns what arrived.
fn transferred(emulation: &Emulation, from: &str, to: (&str, IpAddr), content: Vec<u8>) -> Vec<u8> {
    let address = SocketAddr::new(to.1, 7_008);
    let server = emulation.behind(to.0, move || {
        let listener = TcpListener::bind(address).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        all
    });
    let client = emulation.behind(from, move || {
        let begun = Instant::now();
        let mut stream = loop {
            match TcpStream::connect(address) {
                Ok(stream) => break stream,
                Err(error) => assert!(begun.elapsed() < PATIENCE, "{error}"),
            }
        };
        stream.write_all(&content).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        // Until the other end has it all and closes.
        let _ = stream.read(&mut [0]);
    });
    client.join().unwrap();
    server.join().unwrap()
}

fn v4(place: usize) -> IpAddr {
    addresses::v4(place).into()
}

fn v6(place: usize) -> IpAddr {
    addresses::v6(place).into()
}

#[test]
fn the_base_rtt_of_a_fixed_link_is_the_configured_one_within_a_fifth_of_a_millisecond() {
    let Some(_turn) = rights() else { return };
    let mut emulation = Emulation::start(LINK);
    for address in [v4(0), v6(0)] {
        let (least, most) = (Duration::from_millis(40), Duration::from_micros(40_200));
        let shortest = shortest_echo(&emulation, "phone", ("server", address), most);
        assert!(shortest >= least, "{address}: {shortest:?}");
        // What is measured has the waking of the client and of the server in it, twice each: a machine that is busy with
        // other things takes longer for that alone.
        if shortest > most {
            eprintln!("skipped: needs a machine with less to do: {address} took {shortest:?}, not {most:?}");
            assert!(shortest < Duration::from_millis(45), "{address}: {shortest:?}");
        }
    }
    let (status, summary, machine) = emulation.end();
    assert!(matches!(status, Some(0 | 99)), "{status:?}");
    assert_eq!(machine["valid"], status == Some(0));
    assert!(machine["packets"].as_u64().unwrap() > 0 && machine["timers"].as_u64().unwrap() > 0);
    let flows = summary["flows"].as_array().unwrap();
    assert_eq!(flows.len(), 2, "both ways: {flows:?}");
    assert_eq!((&flows[0]["name"], &flows[0]["cc"]), (&"server to phone".into(), &"kernel".into()));
}

#[test]
fn a_transfer_over_a_lossy_link_arrives_intact_both_ways_and_over_ipv6() {
    let Some(_turn) = rights() else { return };
    let lossy =
        LINK.replace("duplex = true", "duplex = true\nloss = { kind = \"random\", probability = 0.005 }");
    let mut emulation = Emulation::start(&lossy);
    let sent = content(3_000_000);
    assert!(transferred(&emulation, "server", ("phone", v4(1)), sent.clone()) == sent, "down");
    assert!(transferred(&emulation, "phone", ("server", v4(0)), sent.clone()) == sent, "up");
    assert!(transferred(&emulation, "server", ("phone", v6(1)), sent.clone()) == sent, "over IPv6");
    let (_, summary, _) = emulation.end();
    for (link, least) in [(0, 6_000_000), (1, 3_000_000)] {
        let link = &summary["links"][link];
        assert!(link["departed_bytes"].as_u64().unwrap() > least, "{link:?}");
        assert!(link["lost_packets"].as_u64().unwrap() > 0, "{link:?}");
    }
}

#[test]
fn users_of_a_cell_are_reached_through_its_radio() {
    let Some(_turn) = rights() else { return };
    let mut emulation = Emulation::start(CELL);
    for (user, address) in [("ue1", v4(0)), ("ue2", v6(0))] {
        let shortest = shortest_echo(&emulation, user, ("server", address), Duration::from_millis(45));
        // 20 ms of wire, and 4 ms down (TS 36.213 clause 7 and 10.2: a block is decoded after 3 subframes) at the least.
        assert!(shortest > Duration::from_millis(24) && shortest < PATIENCE, "{user}: {shortest:?}");
    }
    let sent = content(500_000);
    assert!(transferred(&emulation, "server", ("ue1", v4(1)), sent.clone()) == sent);
    let (_, summary, machine) = emulation.end();
    assert!(machine["slots"].as_u64().unwrap() > 0);
    let users = summary["users"].as_array().unwrap();
    assert_eq!(users.len(), 2);
    assert!(users[0]["downlink"]["blocks"].as_u64().unwrap() > 10, "{users:?}");
}

#[test]
fn a_program_sees_the_names_and_the_device_of_its_host_and_its_exit_status_is_passed_on() {
    let Some(_turn) = rights() else { return };
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("scenario.toml"), LINK).unwrap();
    let say = "cat /etc/hosts /proc/net/dev; echo behind $RANPACE_HOST, number $PPID; exit 7";
    for (place, host) in [(1, None), (0, Some("server"))] {
        let mut arguments = vec!["scenario.toml"];
        arguments.extend(host.iter().flat_map(|host| ["--in", host]));
        arguments.extend(["--", "sh", "-c", say]);
        let (status, out, error) = output(folder.path(), &arguments);
        assert_eq!(status, Some(7), "{error}");
        assert!(out.contains("10.77.0.1\tserver") && out.contains("fd72:616e:7061:6365::2\tphone"), "{out}");
        assert!(out.contains("ran0:"), "{out}");
        let host = ["server", "phone"][place];
        assert!(out.contains(&format!("behind {host}, number 1\n")), "{out}");
        assert!(error.contains("results: "), "{error}");
    }
    for (arguments, status) in [(&["--", "/nowhere/program"][..], 127), (&["--for", "1s"], 0)] {
        let (code, _, error) = output(folder.path(), &[&["scenario.toml"], arguments].concat());
        assert_eq!(code, Some(status), "{arguments:?}: {error}");
    }
}

/// Names of namespaces of a process, and its folder.
fn left_of(process: u32) -> Vec<String> {
    let mark = format!("ranpace-{process}-");
    let names = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let mut left: Vec<String> = names.filter(|name| name.starts_with(&mark)).collect();
    let folder = format!("/run/ranpace/{process}");
    if Path::new(&folder).exists() {
        left.push(folder);
    }
    left
}

/// Whether a process whose command line has this text is there.
fn is_there(text: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter(|entry| entry.file_name().to_string_lossy().bytes().all(|letter| letter.is_ascii_digit()))
        .any(|entry| {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).replace('\0', " ").contains(text)
        })
}

#[test]
fn nothing_is_left_of_an_emulation_that_was_killed_nor_of_three_in_a_row() {
    let Some(_turn) = rights() else { return };
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fs::write(here.join("scenario.toml"), LINK).unwrap();
    // A number that no other process has.
    let mark = format!("10{}.25", std::process::id());
    let program = format!("sleep {mark} & setsid sleep {mark} & touch ready; wait");
    for killed in ["emulator", "program", "both"] {
        let _ = fs::remove_file(here.join("ready"));
        let mut emulation = command(here, &["scenario.toml", "--", "sh", "-c", &program])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        until("the program runs", || here.join("ready").exists());
        let process = emulation.id();
        assert_eq!(left_of(process).len(), 3, "two namespaces and a folder");
        assert!(is_there(&format!("sleep {mark}")));
        if killed != "emulator" {
            // The program is the only process with that name in its command line and the shell's.
            let line = format!("sh -c sleep {mark}");
            for entry in fs::read_dir("/proc").unwrap().flatten() {
                let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
                if String::from_utf8_lossy(&words).replace('\0', " ").starts_with(&line) {
                    let number = entry.file_name().into_string().unwrap();
                    assert!(Command::new("kill").args(["-9", &number]).status().unwrap().success());
                }
            }
        }
        if killed == "program" {
            assert_eq!(emulation.wait().unwrap().code(), Some(137));
        } else {
            emulation.kill().unwrap();
            emulation.wait().unwrap();
        }
        until("its programs are gone", || !is_there(&format!("sleep {mark}")));
        let (status, _, error) = output(here, &["--clean"]);
        assert_eq!(status, Some(0), "{error}");
        assert_eq!(left_of(process), Vec::<String>::new(), "{killed} killed; {error}");
    }
    for _ in 0..3 {
        let mut emulation =
            command(here, &["scenario.toml", "--", "true"]).stderr(Stdio::null()).spawn().unwrap();
        assert_eq!(emulation.wait().unwrap().code(), Some(0));
        assert_eq!(left_of(emulation.id()), Vec::<String>::new());
    }
}

#[test]
fn what_cannot_be_emulated_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fs::write(here.join("scenario.toml"), LINK).unwrap();
    let proxy = LINK.replace("to = \"phone\"\nrate", "to = \"mid\"\nrate")
        + "[[link]]\nfrom = \"mid\"\nto = \"phone\"\nrate = \"unlimited\"\nduplex = true\n\
           [[proxy]]\nname = \"middle\"\nhost = \"mid\"\nkind = \"split\"\n";
    fs::write(here.join("proxy.toml"), proxy).unwrap();
    for (arguments, said) in [
        (&["proxy.toml", "--", "true"][..], "a proxy (\"middle\")"),
        (&["nowhere.toml", "--", "true"], "cannot read the scenario"),
        (&["--", "true"], "SCENARIO"),
        (&["scenario.toml", "--also", "server", "--", "true"], "HOST=COMMAND"),
    ] {
        let (status, _, error) = output(here, arguments);
        assert_eq!(status, Some(2), "{arguments:?}: {error}");
        assert!(error.contains(said), "{arguments:?}: {error}");
    }
    if let Some(_turn) = rights() {
        let (status, _, error) = output(here, &["scenario.toml", "--in", "moon", "--", "true"]);
        assert_eq!(status, Some(2), "{error}");
        assert!(error.contains("no host \"moon\"") && error.contains("server, phone"), "{error}");
    }
}
