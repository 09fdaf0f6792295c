//! What the tests inside the running kernel share: rights, two hosts in network namespaces, transfers, and the kernel's log.
#![allow(dead_code)] // not every test needs all of it

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, setns};
use ranpace_kernel::{Attachment, Cgroup, Control, Loaded};
use socket2::SockRef;

/// For what takes a moment, on a machine that is busy with other things too.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The right to load programs, and these programs of the system; one test after another, since a control group holds whole processes.
/// Says what is missing; where RANPACE_NO_SKIP is set, as CI does, the test fails.
pub fn ready(programs: &[&str]) -> Option<MutexGuard<'static, ()>> {
    static TURN: Mutex<()> = Mutex::new(());
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let is_there =
        |program: &&str| std::env::split_paths(&folders).any(|folder| folder.join(program).is_file());
    let missing = if !nix::unistd::geteuid().is_root() || !Path::new("/sys/kernel/btf/vmlinux").exists() {
        Some("root and a kernel with BTF")
    } else {
        programs.iter().find(|program| !is_there(program)).copied()
    };
    if let Some(missing) = missing {
        assert!(std::env::var_os("RANPACE_NO_SKIP").is_none(), "needs {missing}");
        eprintln!("skipped: needs {missing}");
        return None;
    }
    Some(TURN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Runs a program of the system; its arguments are between blanks.
pub fn run(line: &str) {
    let mut words = line.split(' ');
    let output = Command::new(words.next().unwrap()).args(words).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain until {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Two hosts, each in a network namespace, and the link between them. They go when this is dropped.
pub struct Hosts {
    names: [String; 2],
}

/// The hosts of [`Hosts`].
pub const SENDER: usize = 0;
pub const RECEIVER: usize = 1;

impl Hosts {
    pub fn new() -> Self {
        let names = ["a", "b"].map(|end| format!("ranpace-test-{}-{end}", std::process::id()));
        for name in &names {
            run(&format!("ip netns add {name}"));
        }
        let [a, b] = &names;
        run(&format!("ip link add veth netns {a} type veth peer name veth netns {b}"));
        for (i, name) in names.iter().enumerate() {
            run(&format!("ip -n {name} link set lo up"));
            run(&format!("ip -n {name} address add {}/24 dev veth", address(i)));
            run(&format!("ip -n {name} address add {}/64 dev veth nodad", address6(i)));
            run(&format!("ip -n {name} link set veth up"));
        }
        Self { names }
    }

    /// What the sender sends passes a queue of 50 ms at this rate.
    pub fn limit(&self, rate: &str) {
        // A queue takes what TSO has merged apart.
        self.queue(SENDER, &format!("replace dev veth root tbf rate {rate} burst 16kb latency 50ms"));
    }

    /// Holds back what the receiver answers for so long, and loses none of it.
    pub fn hold_answers(&self, time: Duration) {
        self.queue(RECEIVER, "replace dev veth root tbf rate 80bit burst 1600b limit 256kb");
        thread::sleep(time);
        self.queue(RECEIVER, "change dev veth root tbf rate 1gbit burst 256kb limit 256kb");
    }

    fn queue(&self, host: usize, change: &str) {
        run(&format!("tc -n {} qdisc {change}", self.names[host]));
    }

    /// Runs something on a host.
    pub fn on<T: Send + 'static>(
        &self,
        host: usize,
        what: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let path = format!("/run/netns/{}", self.names[host]);
        thread::spawn(move || {
            setns(File::open(path).unwrap(), CloneFlags::CLONE_NEWNET).unwrap();
            what()
        })
    }

    /// Gives a command to a program of a host's namespace.
    pub fn run_on(&self, host: usize, command: &[&str]) {
        let net = format!("--net=/run/netns/{}", self.names[host]);
        let output = Command::new("nsenter").arg(net).args(command).output().unwrap();
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// A rule of nftables for what arrives at a host.
    pub fn filter(&self, host: usize, rule: &str) {
        let script =
            format!("table inet t {{ chain c {{ type filter hook prerouting priority -300; {rule}; }}; }}");
        self.run_on(host, &["nft", &script]);
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            run(&format!("ip netns delete {name}"));
        }
    }
}

pub fn address(host: usize) -> IpAddr {
    Ipv4Addr::new(192, 0, 2, host as u8 + 1).into()
}

pub fn address6(host: usize) -> IpAddr {
    format!("2001:db8::{}", host + 1).parse().unwrap()
}

/// A control, and this process in a control group whose sockets take it. All of that ends when this is dropped.
pub struct InUse {
    pub loaded: Loaded,
    cgroup: Cgroup,
    _attachment: Attachment,
}

impl InUse {
    pub fn new(control: &str) -> Self {
        let loaded = Loaded::unnamed(&Control::parse(control).unwrap()).unwrap();
        let cgroup = Cgroup::new().unwrap();
        let attachment = loaded.attach(cgroup.path(), None).unwrap();
        cgroup.enter().unwrap();
        Self { loaded, cgroup, _attachment: attachment }
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.cgroup.leave().unwrap();
    }
}

/// Reads all that comes by the first connection; how much, and with `at` the instants at which it had come.
pub fn read_all(listener: &TcpListener, mut at: impl FnMut(usize)) -> usize {
    let (mut stream, _) = listener.accept().unwrap();
    let (mut received, mut buffer) = (0, vec![0; 1 << 16]);
    loop {
        match stream.read(&mut buffer).unwrap() {
            0 => return received,
            n => {
                received += n;
                at(received);
            }
        }
    }
}

/// A connection from the sender to the receiver, and the thread that reads there.
pub fn connect(
    hosts: &Hosts,
    to: IpAddr,
    at: impl FnMut(usize) + Send + 'static,
) -> (TcpStream, JoinHandle<usize>) {
    let listener =
        hosts.on(RECEIVER, move || TcpListener::bind(SocketAddr::new(to, 0)).unwrap()).join().unwrap();
    let address = listener.local_addr().unwrap();
    let reader = thread::spawn(move || read_all(&listener, at));
    let stream = hosts.on(SENDER, move || TcpStream::connect(address).unwrap()).join().unwrap();
    (stream, reader)
}

/// A figure of the socket with this local address on a host, as `ranpace kernel show` has it.
pub fn figure(hosts: &Hosts, in_use: &InUse, host: usize, local: SocketAddr, name: &str) -> f64 {
    // The iterator lists the sockets of the reader's namespace.
    let sockets = thread::scope(|scope| {
        let path = format!("/run/netns/{}", hosts.names[host]);
        let list = || {
            setns(File::open(path).unwrap(), CloneFlags::CLONE_NEWNET).unwrap();
            in_use.loaded.sockets().unwrap()
        };
        scope.spawn(list).join().unwrap()
    });
    let port = format!(":{}", local.port());
    let socket = sockets.iter().find(|socket| socket.local.ends_with(&port));
    socket
        .and_then(|socket| socket.figure(name))
        .unwrap_or_else(|| panic!("no {name} of {local}: {sockets:?}"))
}

pub fn control_of(stream: &TcpStream) -> String {
    let name = SockRef::from(stream).tcp_congestion().unwrap();
    String::from_utf8(name).unwrap().trim_end_matches('\0').to_owned()
}

/// Writes for so long; how many bytes.
pub fn write_for(stream: &mut TcpStream, time: Duration) -> usize {
    let (chunk, begun, mut written) = (vec![7; 1 << 16], Instant::now(), 0);
    while begun.elapsed() < time {
        stream.write_all(&chunk).unwrap();
        written += chunk.len();
    }
    written
}

/// What the kernel says from now on.
pub struct KernelLog(File);

impl KernelLog {
    pub fn new() -> Self {
        // Without waiting for what is not there yet.
        let nonblocking = nix::fcntl::OFlag::O_NONBLOCK.bits();
        let mut file = OpenOptions::new().read(true).custom_flags(nonblocking).open("/dev/kmsg").unwrap();
        file.seek(SeekFrom::End(0)).unwrap();
        Self(file)
    }

    /// Lines that speak of a mistake, or of what these tests touch.
    pub fn complaints(&mut self) -> Vec<String> {
        let mut complaints = Vec::new();
        // A report of the kernel has many lines, between two marks; it is judged as a whole.
        let mut report: Option<Vec<String>> = None;
        for line in self.lines() {
            let is_end = line.contains("---[ end trace");
            if line.contains("[ cut here ]") {
                complaints.extend(report.replace(vec![line]).into_iter().flatten());
            } else if let Some(lines) = &mut report {
                lines.push(line);
            } else if is_suspicious(&line) {
                complaints.push(line);
            }
            if is_end && let Some(lines) = report.take() {
                if is_of_a_skipped_program(&lines) {
                    eprintln!("the kernel left out a program, as it is patched to: {lines:#?}");
                } else {
                    complaints.extend(lines);
                }
            }
        }
        complaints.extend(report.into_iter().flatten());
        complaints
    }

    /// What it has said since the last call.
    fn lines(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut record = vec![0; 1 << 13];
        loop {
            match self.0.read(&mut record) {
                Ok(length) => lines.push(String::from_utf8_lossy(&record[..length]).into_owned()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return lines,
                // Older lines were overwritten meanwhile; the next read goes on with the oldest that is there.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
                Err(error) => panic!("/dev/kmsg: {error}"),
            }
        }
    }
}

fn is_suspicious(line: &str) -> bool {
    let suspicious = ["BUG", "WARNING", "Oops", "Call Trace", "RIP:", "fault", "bpf", "TCP"];
    // Many connections at once, and a name that another process has just taken, are no complaints.
    let harmless = ["SYN flooding", "already registered"];
    let has = |words: &[&str]| words.iter().any(|word| line.contains(word));
    has(&suspicious) && !has(&harmless)
}

/// Whether a report is the kernel's warning of a window that no program returned (tcp_snd_cwnd_set), because the kernel has left the program
/// out: some are patched to do so where a thread of process 1 was interrupted, and have `init_owned` in `bpf_prog_aux` (docs/kernel.md).
fn is_of_a_skipped_program(report: &[String]) -> bool {
    let process = report.iter().find_map(|line| {
        let (_, after) = line.split_once("WARNING: CPU: ")?;
        let (_, after) = after.split_once(" PID: ")?;
        let (number, place) = after.split_once(" at ")?;
        place.contains("include/net/tcp.h").then(|| number.to_owned())
    });
    let Some(process) = process else { return false };
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let types = fs::read("/sys/kernel/btf/vmlinux").unwrap();
    let leaves_out = types.windows(12).any(|name| name == b"\0init_owned\0");
    leaves_out && status.lines().any(|line| line == "Tgid:\t1")
}

/// Numbers of the programs that this process holds.
pub fn own_programs() -> Vec<u32> {
    let number = |entry: std::io::Result<fs::DirEntry>| {
        let text = fs::read_to_string(entry.ok()?.path()).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("prog_id:"))?;
        line.trim().parse().ok()
    };
    let mut numbers: Vec<u32> = fs::read_dir("/proc/self/fdinfo").unwrap().filter_map(number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// Waits until the kernel has none of these programs any more.
pub fn until_gone(numbers: &[u32]) {
    until("the programs are gone", || {
        !libbpf_rs::query::ProgInfoIter::default().any(|program| numbers.contains(&program.id))
    });
}
