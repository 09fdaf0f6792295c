//! Helpers of the tests of `ranpace emulate`: scenarios, emulations that run beside a test, and checks that nothing of them is left.
#![allow(dead_code)] // not every test needs all of it

pub mod validation;

use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ranpace_emulator::{addresses, check, within};

/// For what takes a moment, on a machine that is busy with other things too.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// 20 ms each way, 100 Mbit/s.
pub const LINK: &str = include_str!("../../../../carriers/emulator/tests/scenarios/link.toml");
/// An LTE cell with ue1 and ue2.
pub const CELL: &str = include_str!("../../../../carriers/emulator/tests/scenarios/cell.toml");
/// A server, an edge, and a phone in an LTE cell of 16 Mbit/s; the phone opens connections.
pub const EDGE: &str = r#"
duration = "8s"
sample = "100ms"

[[link]]
name = "core"
from = "server"
to = "edge"
rate = "1Gbit/s"
delay = "10ms"
duplex = true

[[link]]
name = "backhaul"
from = "edge"
to = "mast"
rate = "1Gbit/s"
delay = "4ms"
duplex = true

[[cell]]
host = "mast"
preset = "rapid-oai"

[[user]]
name = "phone"

[[flow]]
name = "download"
from = "server"
to = "phone"
cc = "cubic"
opener = "receiver"

[[flow]]
name = "second"
from = "server"
to = "phone"
cc = "cubic"
opener = "receiver"
start = "1s"
"#;

/// Says that a test, or a part of it, is left out, past the test runner, which hides what passing tests print. Where
/// RANPACE_NO_SKIP is set, as CI does, the test fails.
pub fn skip(needs: &str) {
    assert!(std::env::var_os("RANPACE_NO_SKIP").is_none(), "not to be skipped here: needs {needs}");
    say_skipped(needs);
}

/// Says that a test is left out, past the test runner.
pub fn say_skipped(needs: &str) {
    let _ = std::io::stderr().write_all(format!("skipped: needs {needs}\n").as_bytes());
}

/// The right to make emulations, one test after another: side by side they would take each other's time. Says why there is
/// none.
pub fn rights() -> Option<MutexGuard<'static, ()>> {
    static TURN: Mutex<()> = Mutex::new(());
    match check() {
        Ok(()) => Some(TURN.lock().unwrap_or_else(PoisonError::into_inner)),
        Err(error) => {
            skip(&format!("root and TUN devices: {error}"));
            None
        }
    }
}

/// The first of these programs that is installed. Says that there is none.
pub fn program(names: &[&str]) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&folders)
        .flat_map(|folder| names.iter().map(move |name| folder.join(name)))
        .find(|path| path.is_file());
    if found.is_none() {
        skip(names[0]);
    }
    found
}

pub fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ranpace"));
    command.current_dir(folder).arg("emulate").args(arguments).stdin(Stdio::null());
    command
}

/// Exit status, output and errors.
pub fn output(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    output_of(&mut command(folder, arguments))
}

pub fn output_of(command: &mut Command) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let [out, error] = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (status.code(), out, error)
}

/// A folder with this scenario in it, as `scenario.toml`.
pub fn folder_with(scenario: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("scenario.toml"), scenario).unwrap();
    folder
}

/// Does this for each of these, in their order, at most so many at a time: emulations of a few Mbit/s leave most of a processor free.
pub fn side_by_side<T: Sync, R: Send>(width: usize, items: &[T], what: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..width {
            scope.spawn(|| {
                while let Some((at, item)) =
                    items.iter().enumerate().nth(next.fetch_add(1, Ordering::Relaxed))
                {
                    let result = what(item);
                    done.lock().unwrap().push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Plays a scenario with a control that the kernel has under this name; returns its first flow, from the summary. An emulation that
/// is invalid, because the machine was too slow, has its flow all the same.
pub fn flow_under(control: &str, scenario: &str) -> serde_json::Value {
    flow_in(None, control, scenario)
}

/// The same; the emulation and its flow are in this control group.
pub fn flow_in(cgroup: Option<&Path>, control: &str, scenario: &str) -> serde_json::Value {
    let folder = folder_with(scenario);
    let arguments = ["scenario.toml", "--json", "--cc", control];
    let mut command = command(folder.path(), &arguments);
    if let Some(cgroup) = cgroup {
        command = Command::new("sh");
        // Zero is the writer itself.
        command.args(["-c", "echo 0 >\"$1/cgroup.procs\"; shift; exec \"$@\"", "sh"]).arg(cgroup);
        command.arg(env!("CARGO_BIN_EXE_ranpace")).arg("emulate").args(arguments);
        command.current_dir(folder.path()).stdin(Stdio::null());
    }
    let (code, out, error) = output_of(&mut command);
    let parsed: serde_json::Value =
        serde_json::from_str(&out).unwrap_or_else(|_| panic!("{control}, exit {code:?}: {error}"));
    let flow = parsed["summary"]["flows"][0].clone();
    assert_eq!(flow["cc"], format!("kernel {control}"));
    flow
}

/// The number of an ordinary user, "nobody" on most systems.
pub const NOBODY: u32 = 65_534;

/// A folder of an ordinary user with the scenario and the program: the one under test may lie where that user cannot look.
pub fn folder_of_nobody(scenario: &str) -> tempfile::TempDir {
    let folder = folder_with(scenario);
    let program = folder.path().join("ranpace");
    fs::copy(env!("CARGO_BIN_EXE_ranpace"), &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    folder
}

pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain until {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// An emulation that runs until it is told to end.
pub struct Emulation {
    pub folder: tempfile::TempDir,
    child: Child,
}

impl Emulation {
    /// Its program waits for [`Self::end`].
    pub fn start(scenario: &str) -> Self {
        Self::start_with(folder_with(scenario), ":", &[])
    }

    /// Its program waits for [`Self::end`], and then does what the script says, in the folder.
    /// `more` are further options.
    pub fn start_with(folder: tempfile::TempDir, script: &str, more: &[&str]) -> Self {
        let script = format!("touch ready; while [ ! -e done ]; do sleep 0.05; done; {script}");
        let arguments = [&["scenario.toml", "--for", "5min"], more, &["--", "sh", "-c", &script]].concat();
        let mut command = command(folder.path(), &arguments);
        command.stdout(fs::File::create(folder.path().join("out")).unwrap());
        command.stderr(fs::File::create(folder.path().join("errors")).unwrap());
        let child = command.spawn().unwrap();
        let mut emulation = Self { folder, child };
        until("the program runs", || {
            assert_eq!(emulation.child.try_wait().unwrap(), None, "the emulation ended");
            emulation.folder.path().join("ready").exists()
        });
        emulation
    }

    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Runs something behind a host.
    pub fn behind<T: Send + 'static>(
        &self,
        host: &str,
        what: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let name = format!("ranpace-{}-{host}", self.child.id());
        thread::spawn(move || within(&name, what).unwrap())
    }

    /// Lets it end, or its script begin, and waits for that; returns its exit status and what is in its results.
    pub fn end(&mut self) -> (Option<i32>, serde_json::Value, serde_json::Value) {
        fs::write(self.folder.path().join("done"), "").unwrap();
        let status = self.child.wait().unwrap();
        let run = self.folder.path().join("results/scenario.emulated/1");
        let read = |name: &str| serde_json::from_slice(&fs::read(run.join(name)).unwrap()).unwrap();
        assert!(run.join("report.html").exists());
        (status.code(), read("summary.json"), read("emulation.json"))
    }
}

impl Drop for Emulation {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = output(self.folder.path(), &["--clean"]);
    }
}

/// Gives the calling thread real-time priority below the emulator's, if that is allowed: what it measures is then not how
/// long it waited for a processor.
pub fn hurry() -> bool {
    use thread_priority::unix::{
        RealtimeThreadSchedulePolicy, ThreadSchedulePolicy, set_thread_priority_and_policy, thread_native_id,
    };
    set_thread_priority_and_policy(
        thread_native_id(),
        thread_priority::ThreadPriority::Crossplatform(20_u8.try_into().unwrap()),
        ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo),
    )
    .is_ok()
}

/// Bytes that no queue can have made up.
pub fn content(length: usize) -> Vec<u8> {
    (0..length as u64).map(|place| (place.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

pub fn v4(place: usize) -> IpAddr {
    addresses::v4(place).into()
}

pub fn v6(place: usize) -> IpAddr {
    addresses::v6(place).into()
}

/// An HTTP server (RFC 9112, as much as a client needs that asks for one file at a time) behind a host, on port 80.
pub struct Server {
    stop: Arc<AtomicBool>,
    asked: Arc<Mutex<Vec<(IpAddr, String)>>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves these files: path, media type, content.
    pub fn start(
        emulation: &Emulation,
        host: &str,
        files: Vec<(&'static str, &'static str, Vec<u8>)>,
    ) -> Self {
        // A socket stays in the namespace in which it was made.
        let listener = emulation.behind(host, || TcpListener::bind("[::]:80").unwrap()).join().unwrap();
        listener.set_nonblocking(true).unwrap();
        let (stop, asked) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let files = Arc::new(files);
        let thread = thread::spawn({
            let (stop, asked) = (Arc::clone(&stop), Arc::clone(&asked));
            move || {
                let mut connections = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    match listener.accept() {
                        Ok((stream, from)) => {
                            let (files, asked) = (Arc::clone(&files), Arc::clone(&asked));
                            connections.push(thread::spawn(move || {
                                // A browser may close whenever it likes.
                                let _ = answer(stream, from.ip(), &files, &asked);
                            }));
                        }
                        Err(error) if error.kind() == ErrorKind::WouldBlock => {
                            thread::sleep(Duration::from_millis(5));
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
                connections.into_iter().for_each(|connection| connection.join().unwrap());
            }
        });
        Self { stop, asked, thread: Some(thread) }
    }

    /// Who asked for what.
    pub fn asked(&self) -> Vec<(IpAddr, String)> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn answer(
    mut stream: TcpStream,
    from: IpAddr,
    files: &[(&str, &str, Vec<u8>)],
    asked: &Mutex<Vec<(IpAddr, String)>>,
) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    // Browsers open connections that they never use.
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read(&mut byte)? == 0 {
            return Ok(());
        }
        request.push(byte[0]);
    }
    let request = String::from_utf8_lossy(&request);
    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
    let file = files.iter().find(|(known, ..)| *known == path);
    let (status, kind, body) = match file {
        Some((_, kind, body)) => ("200 OK", *kind, body.as_slice()),
        None => ("404 Not Found", "text/plain", &b"none\n"[..]),
    };
    asked.lock().unwrap().push((from.to_canonical(), path));
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )?;
    stream.write_all(body)?;
    stream.shutdown(std::net::Shutdown::Write)?;
    // Until the other end has it all and closes.
    stream.read(&mut [0]).map(drop)
}

/// Sends `content` over TCP from one host to another; returns what arrived.
pub fn transferred(emulation: &Emulation, from: &str, to: (&str, IpAddr), content: Vec<u8>) -> Vec<u8> {
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
