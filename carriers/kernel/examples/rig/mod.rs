//! Two network namespaces, and a flow between them with a control at both ends: what the benchmarks of this folder have in common.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use libbpf_rs::{Link, MapCore as _, Object, ObjectBuilder};
use nix::sched::{CloneFlags, CpuSet, sched_setaffinity, setns};
use nix::unistd::Pid;
use ranpace_kernel::{Attachment, Cgroup, Control, KINDS, Loaded};
use socket2::SockRef;

const EMPTY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/empty.bpf.o"));
/// Sender and receiver.
const SPACES: [&str; 2] = ["ranpace-bench-a", "ranpace-bench-b"];
const RECEIVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
/// The word that makes a benchmark's program a receiver.
const RECEIVE: &str = "--receive";
/// Bytes written and read at once.
const CHUNK: usize = 1 << 18;
/// Of a flow, so much of its beginning is not measured: it is slow start.
const START: Duration = Duration::from_millis(300);

/// The controls that are asked for, or all. A benchmark calls this first: it does not return in the process of a receiver.
pub fn controls() -> Vec<String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, text, port, cpu] = &arguments[..]
        && word == RECEIVE
    {
        receive(text, port.parse().unwrap(), cpu.parse().ok());
        std::process::exit(0);
    }
    match &arguments[..] {
        [] => KINDS.iter().map(|kind| kind.name.to_owned()).collect(),
        some => some.to_vec(),
    }
}

/// This thread runs on this processor alone.
pub fn pin(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu).unwrap();
    sched_setaffinity(Pid::from_raw(0), &set).unwrap();
}

fn ip(arguments: &str) {
    let done = Command::new("ip").args(arguments.split(' ')).status().unwrap();
    assert!(done.success(), "ip {arguments}");
}

/// Runs something in a namespace.
fn within<T: Send + 'static>(space: &'static str, what: impl FnOnce() -> T + Send + 'static) -> T {
    let in_it = move || {
        setns(File::open(format!("/run/netns/{space}")).unwrap(), CloneFlags::CLONE_NEWNET).unwrap();
        what()
    };
    thread::spawn(in_it).join().unwrap()
}

/// Two namespaces and what joins them; they go when this is dropped.
pub struct Spaces;

impl Spaces {
    pub fn new() -> Self {
        let [a, b] = SPACES;
        ip(&format!("netns add {a}"));
        ip(&format!("netns add {b}"));
        ip(&format!("link add veth netns {a} type veth peer name veth netns {b}"));
        for (space, host) in [(a, 1), (b, 2)] {
            ip(&format!("-n {space} address add 192.0.2.{host}/24 dev veth"));
            ip(&format!("-n {space} link set veth up"));
        }
        Self
    }

    /// As many acknowledgements as can be: segments leave one by one, and each is acknowledged as far as it arrives alone.
    pub fn acknowledge_each(&self) {
        let [a, b] = SPACES;
        ip(&format!("-n {a} link set veth gso_max_segs 1"));
        ip(&format!("-n {b} route change 192.0.2.0/24 dev veth src 192.0.2.2 quickack 1"));
    }
}

impl Drop for Spaces {
    fn drop(&mut self) {
        for space in SPACES {
            ip(&format!("netns delete {space}"));
        }
    }
}

/// What a process has loaded; its fields keep it in the kernel.
pub enum Used {
    Nothing,
    Control { name: String, _loaded: Loaded, _attachment: Attachment, cgroup: Cgroup },
    Empty { name: String, _object: Object, _links: Vec<Link>, cgroup: Cgroup },
}

impl Used {
    /// `text` is a control, `cubic`, or the name of an empty one.
    pub fn new(text: &str) -> Self {
        match text {
            "cubic" => Self::Nothing,
            "over_cubic" | "nothing" => {
                let mut object = ObjectBuilder::default().open_memory(EMPTY).unwrap();
                let name = format!("{}_{}", &text[..4], std::process::id());
                for mut map in object.maps_mut() {
                    if map.name() == text {
                        let bytes = map.initial_value_mut().unwrap();
                        bytes[..16].fill(0);
                        bytes[..name.len()].copy_from_slice(name.as_bytes());
                    }
                }
                let mut object = object.load().unwrap();
                let cgroup = Cgroup::new().unwrap();
                let folder = File::open(cgroup.path()).unwrap();
                let mut links = Vec::new();
                for mut map in object.maps_mut() {
                    if map.name() == text {
                        links.push(map.attach_struct_ops().unwrap());
                    }
                }
                for program in object.progs_mut() {
                    if program.section() == "sockops" || program.section() == "cgroup_skb/ingress" {
                        links.push(program.attach_cgroup(folder.as_raw_fd()).unwrap());
                    }
                }
                Self::Empty { name, _object: object, _links: links, cgroup }
            }
            _ => {
                let loaded = Loaded::unnamed(&Control::parse(text).unwrap()).unwrap();
                let cgroup = Cgroup::new().unwrap();
                let attachment = loaded.attach(cgroup.path(), None).unwrap();
                let name = loaded.name().to_owned();
                Self::Control { name, _loaded: loaded, _attachment: attachment, cgroup }
            }
        }
    }

    fn enter(&self) {
        if let Self::Control { cgroup, .. } | Self::Empty { cgroup, .. } = self {
            cgroup.enter().unwrap();
        }
    }

    fn leave(&self) {
        if let Self::Control { cgroup, .. } | Self::Empty { cgroup, .. } = self {
            cgroup.leave().unwrap();
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Nothing => "cubic",
            Self::Control { name, .. } | Self::Empty { name, .. } => name,
        }
    }
}

/// The receiver's process: it says when it is ready, and Gbit/s of each connection.
fn receive(text: &str, port: u16, cpu: Option<usize>) {
    if let Some(cpu) = cpu {
        pin(cpu);
    }
    let used = Used::new(text);
    used.enter();
    let listener = within(SPACES[1], move || TcpListener::bind((RECEIVER, port)).unwrap());
    println!("ready");
    let mut buffer = vec![0; CHUNK];
    loop {
        let (mut stream, _) = listener.accept().unwrap();
        let begun = Instant::now();
        let (mut is_empty, mut received, mut since) = (true, 0_usize, None);
        loop {
            match stream.read(&mut buffer).unwrap() {
                0 => break,
                _ if begun.elapsed() < START => {}
                n => {
                    // What came until now counts for nothing: it was of before.
                    received += if since.is_some() { n } else { 0 };
                    since.get_or_insert_with(Instant::now);
                }
            }
            is_empty = false;
        }
        if is_empty {
            break;
        }
        let seconds = since.map_or(f64::INFINITY, |since| since.elapsed().as_secs_f64());
        println!("{}", received as f64 * 8e-9 / seconds);
    }
    used.leave();
}

/// A receiver, in a process of its own.
pub struct Receiver {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    port: u16,
}

impl Receiver {
    /// With this control or `cubic`; each that is there at the same time needs another port. `cpu` is the processor that it runs on.
    pub fn new(text: &str, port: u16, cpu: Option<usize>) -> Self {
        let cpu = cpu.map_or_else(|| "any".to_owned(), |cpu| cpu.to_string());
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([RECEIVE, text, &port.to_string(), &cpu])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        Self { child, lines, port }
    }

    /// Sends to it for so long, from this processor or any; Gbit/s without the flow's beginning.
    pub fn throughput(&mut self, used: &Used, time: Duration, cpu: Option<usize>) -> f64 {
        used.enter();
        let (name, port) = (used.name().to_owned(), self.port);
        within(SPACES[0], move || {
            if let Some(cpu) = cpu {
                pin(cpu);
            }
            let mut stream = TcpStream::connect((RECEIVER, port)).unwrap();
            SockRef::from(&stream).set_tcp_congestion(name.as_bytes()).unwrap();
            let (chunk, begun) = (vec![1; CHUNK], Instant::now());
            while begun.elapsed() < time {
                stream.write_all(&chunk).unwrap();
            }
        });
        used.leave();
        self.lines.next().unwrap().unwrap().parse().unwrap()
    }

    /// A connection without a byte ends it.
    pub fn end(mut self) {
        let port = self.port;
        within(SPACES[0], move || TcpStream::connect((RECEIVER, port)).map(drop).unwrap());
        assert!(self.child.wait().unwrap().success());
    }
}
