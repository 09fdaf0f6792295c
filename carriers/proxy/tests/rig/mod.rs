//! What the tests inside the running kernel share: a client, a proxy and a server in network namespaces, and transfers between them.

#![allow(dead_code, reason = "each of the tests that share it uses a part")]

pub mod radio;

use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use ranpace_proxy::control::{ControlServer, ask_snapshot};
use ranpace_proxy::snapshot::Snapshot;
use ranpace_proxy::{Config, Proxy};
use socket2::SockRef;

/// For what takes a moment, on a machine that is busy with other things too.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// The ports that are proxied.
pub const PORT: u16 = 5001;
/// Tells the process of a proxy which configuration is its own.
pub const CONFIG: &str = "RANPACE_TEST_PROXY_CONFIG";
/// Tells it to take the place of the one that runs.
const TAKES_OVER: &str = "RANPACE_TEST_PROXY_TAKES_OVER";

/// The rights of root and these programs, for one test after another: they would take each other's time. Says what is missing; where
/// RANPACE_NO_SKIP is set, as CI does, the test fails.
pub fn ready() -> Option<MutexGuard<'static, ()>> {
    ready_with(&[])
}

/// The same, with further programs.
pub fn ready_with(further: &[&'static str]) -> Option<MutexGuard<'static, ()>> {
    static TURN: Mutex<()> = Mutex::new(());
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let is_there =
        |program: &&str| std::env::split_paths(&folders).any(|folder| folder.join(program).is_file());
    let missing = if !nix::unistd::geteuid().is_root() || !Path::new("/dev/net/tun").exists() {
        Some("root and /dev/net/tun")
    } else {
        ["ip", "nft", "ss", "prlimit"].iter().chain(further).copied().find(|program| !is_there(program))
    };
    if let Some(missing) = missing {
        assert!(std::env::var_os("RANPACE_NO_SKIP").is_none(), "needs {missing}");
        eprintln!("skipped: needs {missing}");
        return None;
    }
    Some(TURN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The process of a proxy, which a test has started.
pub fn run_proxy() {
    let config = Config::read(std::env::var_os(CONFIG).expect("another test starts this").as_ref()).unwrap();
    let control = config.control.clone();
    let takes_over = std::env::var_os(TAKES_OVER).is_some();
    let mut proxy = if takes_over { Proxy::take_over(config) } else { Proxy::start(config) }.unwrap();
    let _server = ControlServer::start(&control, proxy.asker(), proxy.metrics()).unwrap();
    proxy.run(&AtomicBool::new(false)).unwrap();
}

/// Runs a program of the system and returns what it prints; its arguments are between blanks.
pub fn run(line: &str) -> String {
    let mut words = line.split(' ');
    let output = Command::new(words.next().unwrap()).args(words).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Waits until something is so.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain until {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// The hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    Client,
    Proxy,
    Server,
}

/// A client, a proxy and a server, in network namespaces of their own, with a link from each end to the proxy. They go when this is
/// dropped.
pub struct Hosts {
    prefix: String,
    pub folder: tempfile::TempDir,
}

/// The client's and the server's addresses.
pub const CLIENT: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(10, 91, 1, 2)), IpAddr::V6(Ipv6Addr::new(0xfd91, 1, 0, 0, 0, 0, 0, 2))];
pub const SERVER: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(10, 91, 2, 2)), IpAddr::V6(Ipv6Addr::new(0xfd91, 2, 0, 0, 0, 0, 0, 2))];

impl Hosts {
    pub fn new() -> Self {
        let hosts = Self {
            prefix: format!("ranpace-proxy-{}", std::process::id()),
            folder: tempfile::tempdir().unwrap(),
        };
        let [client, proxy, server] = [Host::Client, Host::Proxy, Host::Server].map(|host| hosts.name(host));
        for name in [&client, &proxy, &server] {
            run(&format!("ip netns add {name}"));
            run(&format!("ip -n {name} link set lo up"));
        }
        for (end, device, network) in [(&client, "users", 1), (&server, "servers", 2)] {
            run(&format!("ip link add eth netns {end} type veth peer name {device} netns {proxy}"));
            run(&format!("ip -n {end} address add 10.91.{network}.2/24 dev eth"));
            run(&format!("ip -n {end} address add fd91:{network}::2/64 dev eth nodad"));
            run(&format!("ip -n {proxy} address add 10.91.{network}.1/24 dev {device}"));
            run(&format!("ip -n {proxy} address add fd91:{network}::1/64 dev {device} nodad"));
            run(&format!("ip -n {end} link set eth up"));
            run(&format!("ip -n {proxy} link set {device} up"));
            run(&format!("ip -n {end} route add default via 10.91.{network}.1"));
            run(&format!("ip -n {end} -6 route add default via fd91:{network}::1"));
        }
        run(&format!("ip netns exec {proxy} sysctl -q net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1"));
        // All know their neighbours, and links are up.
        for server in SERVER {
            until("hosts reach each other", || {
                let refused = hosts.connect(SocketAddr::new(server, PORT)).unwrap_err();
                refused.kind() == ErrorKind::ConnectionRefused
            });
        }
        hosts
    }

    /// One more host, without links.
    pub fn router(&self) -> String {
        let name = format!("{}-router", self.prefix);
        run(&format!("ip netns add {name}"));
        name
    }

    pub fn name(&self, host: Host) -> String {
        format!("{}-{}", self.prefix, format!("{host:?}").to_lowercase())
    }

    /// Does something in the namespace of a host, in a thread of its own.
    pub fn at<T: Send + 'static>(
        &self,
        host: Host,
        what: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let namespace = fs::File::open(format!("/run/netns/{}", self.name(host))).unwrap();
        thread::spawn(move || {
            setns(namespace, CloneFlags::CLONE_NEWNET).unwrap();
            what()
        })
    }

    /// A server that does what its clients ask: see [`Wish`].
    pub fn serve(&self) {
        for address in SERVER {
            let listener =
                self.at(Host::Server, move || TcpListener::bind((address, PORT)).unwrap()).join().unwrap();
            // It ends with the test's process.
            thread::spawn(move || {
                for stream in listener.incoming() {
                    let stream = stream.unwrap();
                    thread::Builder::new().stack_size(256 << 10).spawn(move || answer(stream)).unwrap();
                }
            });
        }
    }

    /// Asks the server from the client.
    pub fn ask(&self, wish: Wish) -> std::io::Result<TcpStream> {
        self.connect(SocketAddr::new(SERVER[usize::from(wish.v6)], PORT)).and_then(|mut stream| {
            stream.write_all(&wish.bytes())?;
            Ok(stream)
        })
    }

    pub fn connect(&self, to: SocketAddr) -> std::io::Result<TcpStream> {
        self.at(Host::Client, move || TcpStream::connect_timeout(&to, PATIENCE)).join().unwrap()
    }

    /// Starts a proxy with these lines in its configuration, first keys and then tables, and waits until it splits connections.
    pub fn proxy(&self, keys: &str, tables: &str) -> ProxyProcess {
        self.proxy_under(&[], keys, tables)
    }

    /// The same, as the argument of a command, such as one that sets limits.
    pub fn proxy_under(&self, command: &[&str], keys: &str, tables: &str) -> ProxyProcess {
        let (config, socket) = (self.folder.path().join("proxy.toml"), self.folder.path().join("proxy.sock"));
        let text = format!(
            "name = \"test\"\n{keys}\n[[clients]]\ninterface = \"users\"\nnetworks = [\"10.91.1.0/24\", \"fd91:1::/64\"]\nports = [\"5000-5999\"]\n\
             [control]\nsocket = {socket:?}\n{tables}\n"
        );
        fs::write(&config, text).unwrap();
        self.proxy_of(config, socket, command, false)
    }

    /// Starts a proxy that takes the place of another one, and waits until it has.
    pub fn successor(&self, of: &ProxyProcess) -> ProxyProcess {
        self.proxy_of(of.config.clone(), of.socket.clone(), &[], true)
    }

    /// Starts a proxy that cannot take the place of another one; what it says of that.
    pub fn refused_successor(&self, of: &ProxyProcess) -> String {
        let output = self.command(&of.config, &[], true).stderr(Stdio::piped()).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    fn proxy_of(&self, config: PathBuf, socket: PathBuf, command: &[&str], takes_over: bool) -> ProxyProcess {
        let child = self.command(&config, command, takes_over).spawn().unwrap();
        let mut proxy = ProxyProcess { child, socket, config };
        until("the proxy answers", || {
            assert!(proxy.child.try_wait().unwrap().is_none(), "the proxy has ended");
            ask_snapshot(&proxy.socket).is_ok_and(|shown| shown.process == proxy.id())
        });
        proxy
    }

    /// The process of a proxy, as the argument of a command.
    fn command(&self, config: &Path, command: &[&str], takes_over: bool) -> Command {
        let mut process = Command::new("ip");
        process
            .args(["netns", "exec", &self.name(Host::Proxy)])
            .args(command)
            .arg(std::env::current_exe().unwrap())
            .args(["proxy_process", "--exact", "--ignored", "--nocapture"])
            .env(CONFIG, config)
            .envs(takes_over.then_some((TAKES_OVER, "1")))
            .stdout(Stdio::null());
        process
    }

    /// The server drops SYNs to this port until [`Self::answer`].
    pub fn be_silent(&self, port: u16) {
        let nft = format!("ip netns exec {} nft", self.name(Host::Server));
        run(&format!("{nft} add table inet silent"));
        run(&format!("{nft} add chain inet silent input {{ type filter hook input priority 0 ; }}"));
        run(&format!("{nft} add rule inet silent input tcp dport {port} tcp flags syn / syn,ack drop"));
    }

    /// The server drops no SYNs any more.
    pub fn answer(&self) {
        run(&format!("ip netns exec {} nft delete table inet silent", self.name(Host::Server)));
    }

    /// Payload that waits to be read in each socket of the proxy's host, in bytes.
    pub fn unread(&self) -> Vec<u64> {
        let shown = run(&format!("ip netns exec {} ss -Htn state established", self.name(Host::Proxy)));
        shown.lines().map(|line| line.split_whitespace().next().unwrap().parse().unwrap()).collect()
    }

    /// What is left of a proxy in its namespace.
    pub fn leavings(&self) -> String {
        let at = format!("ip netns exec {}", self.name(Host::Proxy));
        let mut found = run(&format!("{at} nft list tables"));
        for family in ["-4", "-6"] {
            let rules = run(&format!("{at} ip {family} rule"));
            found.extend(rules.lines().filter(|line| line.contains("fwmark")));
        }
        found + &run(&format!("{at} ip -brief link show type tun"))
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for host in [Host::Client, Host::Proxy, Host::Server] {
            let _ = Command::new("ip").args(["netns", "delete", &self.name(host)]).output();
        }
        let _ = Command::new("ip").args(["netns", "delete", &format!("{}-router", self.prefix)]).output();
    }
}

/// A proxy in a process of its own, which is killed when this is dropped.
pub struct ProxyProcess {
    child: Child,
    socket: PathBuf,
    pub config: PathBuf,
}

impl ProxyProcess {
    pub fn shown(&self) -> Snapshot {
        ask_snapshot(&self.socket).unwrap()
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    /// Stops all of its threads: it hangs.
    pub fn stop(&self) {
        self.signal(Signal::SIGSTOP);
        // The signal reaches one thread after another.
        until("all threads are stopped", || {
            let threads = fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
            threads.map(|thread| thread.unwrap().path().join("stat")).all(|stat| {
                // The state follows the name, which is in parentheses.
                let text = fs::read_to_string(stat).unwrap();
                text.rsplit_once(") ").unwrap().1.starts_with('T')
            })
        });
    }

    /// Open descriptors, and memory of its own, in bytes.
    pub fn used(&self) -> (usize, u64) {
        let process = format!("/proc/{}", self.id());
        let status = fs::read_to_string(format!("{process}/status")).unwrap();
        let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
        let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        (fs::read_dir(format!("{process}/fd")).unwrap().count(), kib << 10)
    }

    /// Waits until it has ended, and says whether it failed.
    pub fn ended(&mut self) -> bool {
        self.child.wait().unwrap().success()
    }
}

impl Drop for ProxyProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a client asks of the server, in 25 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    /// Bytes that the server sends.
    pub down: u64,
    /// Bytes that the client sends first, after which it ends its half.
    pub up: u64,
    /// Where the content begins.
    pub seed: u64,
    /// The server resets the connection instead of ending it.
    pub reset: bool,
    /// Over IPv6.
    pub v6: bool,
}

impl Wish {
    pub fn download(down: u64) -> Self {
        Self { down, up: 0, seed: down, reset: false, v6: false }
    }

    pub fn bytes(&self) -> [u8; 25] {
        let mut bytes = [0; 25];
        bytes[..8].copy_from_slice(&self.down.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.up.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.seed.to_le_bytes());
        bytes[24] = u8::from(self.reset);
        bytes
    }
}

/// Content that depends on its place: what is lost, repeated or out of place is noticed.
pub struct Content(u64);

impl Content {
    pub fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    pub fn fill(&mut self, buffer: &mut [u8]) {
        for word in buffer.chunks_mut(8) {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            word.copy_from_slice(&self.0.to_le_bytes()[..word.len()]);
        }
    }
}

/// Bytes written or read at a time: whole words of [`Content`].
const PIECE: usize = 16 << 10;

/// Sends content.
pub fn send(stream: &mut TcpStream, bytes: u64, seed: u64) -> std::io::Result<()> {
    let (mut content, mut buffer, mut left) = (Content::new(seed), vec![0; PIECE], bytes);
    while left > 0 {
        let piece = left.min(PIECE as u64) as usize;
        content.fill(&mut buffer[..piece]);
        stream.write_all(&buffer[..piece])?;
        left -= piece as u64;
    }
    Ok(())
}

/// Reads content up to its end, and returns how much came; panics if it is not what was sent. `pause` is called for each piece.
pub fn receive(stream: &mut TcpStream, seed: u64, mut pause: impl FnMut()) -> std::io::Result<u64> {
    let (mut content, mut got, mut expected, mut all) =
        (Content::new(seed), vec![0; PIECE], vec![0; PIECE], 0);
    loop {
        let mut filled = 0;
        while filled < PIECE {
            match stream.read(&mut got[filled..]) {
                Ok(0) => break,
                Ok(bytes) => filled += bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        content.fill(&mut expected[..filled]);
        assert!(got[..filled] == expected[..filled], "other content after {all} bytes");
        all += filled as u64;
        if filled < PIECE {
            return Ok(all);
        }
        pause();
    }
}

fn answer(mut stream: TcpStream) {
    let mut wish = [0; 25];
    if stream.read_exact(&mut wish).is_err() {
        return;
    }
    let number = |at: usize| u64::from_le_bytes(wish[at..at + 8].try_into().unwrap());
    let (down, up, seed) = (number(0), number(8), number(16));
    if up > 0 && receive(&mut stream, !seed, || ()).ok() != Some(up) {
        // The client sees a reset in place of an answer.
        SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
        return;
    }
    // A client that resets its connection is no failure here.
    let sent = send(&mut stream, down, seed);
    if wish[24] == 1 {
        SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
    } else if sent.is_ok() {
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.read(&mut [0]);
    }
}

/// One of the transfers, each of another kind.
pub fn transfer(number: u64) {
    let mut random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    random ^= random >> 29;
    let v6 = number % 2 == 1;
    let size = match number % 50 {
        0 => 4_000_000 + random % 1_000_000,
        _ => random % 100_000,
    };
    let up = if number.is_multiple_of(3) { 1 + random % 70_001 } else { 0 };
    let wish = Wish { down: size, up, seed: random, reset: number % 10 == 9, v6 };
    let mut stream = TcpStream::connect((SERVER[usize::from(v6)], PORT)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(&wish.bytes()).unwrap();
    if up > 0 {
        send(&mut stream, up, !random).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
    }
    if number % 20 == 13 {
        // The client resets.
        SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
        return;
    }
    let mut pieces = 0;
    let came = receive(&mut stream, random, || {
        pieces += 1;
        if number.is_multiple_of(7) && pieces % 20 == 0 {
            thread::sleep(Duration::from_millis(30));
        }
    });
    match came {
        Ok(bytes) if !wish.reset => assert_eq!(bytes, size, "transfer {number}"),
        Err(error) if wish.reset => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "transfer {number}"),
        other => panic!("transfer {number}: {other:?} of {wish:?}"),
    }
}
