//! What each program of a control costs a call, what throughput is left, and how long loading takes: as root, with `ip` (iproute2),
//! `cargo run --release -p ranpace-kernel --features bpf --example costs [CONTROL ...]`.
//!
//! A sender and a receiver in two network namespaces, each with the control and its own control group. Throughput is measured as it
//! is; costs without the merging of segments, so that there are as many acknowledgements as can be. The kernel's own
//! accounting (`kernel.bpf_stats_enabled`) is counted in each call: what a program of the same kind costs that does nothing
//! (bpf/empty.bpf.c; for congestion controls one that only calls the kernel's CUBIC) is taken off in the last column. The lowest of
//! [`costs::ROUNDS`] runs counts: other work on the machine only adds.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints, and ends where it cannot go on"
)]

#[cfg(all(target_os = "linux", feature = "bpf"))]
mod costs {
    use std::collections::{BTreeMap, BTreeSet};
    use std::fs::{self, File};
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::os::fd::AsRawFd as _;
    use std::process::{Child, Command, Stdio};
    use std::thread;
    use std::time::{Duration, Instant};

    use libbpf_rs::query::ProgInfoIter;
    use libbpf_rs::{Link, MapCore as _, Object, ObjectBuilder};
    use nix::sched::{CloneFlags, setns};
    use ranpace_kernel::{Attachment, Cgroup, Control, KINDS, Loaded};
    use socket2::SockRef;

    const STATS: &str = "/proc/sys/kernel/bpf_stats_enabled";
    const EMPTY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/empty.bpf.o"));
    /// How long each control sends, in each round.
    const TIME: Duration = Duration::from_secs(2);
    /// Rounds, all controls in each.
    const ROUNDS: usize = 3;
    /// Sender and receiver.
    const SPACES: [&str; 2] = ["ranpace-cost-a", "ranpace-cost-b"];
    const RECEIVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
    const PORT: u16 = 5201;
    /// The word that makes this program a receiver.
    const RECEIVE: &str = "--receive";

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
    struct Spaces;

    impl Spaces {
        fn new() -> Self {
            let [a, b] = SPACES;
            ip(&format!("netns add {a}"));
            ip(&format!("netns add {b}"));
            ip(&format!("link add veth netns {a} type veth peer name veth netns {b}"));
            for (space, host) in [(a, 1), (b, 2)] {
                ip(&format!("-n {space} address add 192.0.2.{host}/24 dev veth"));
                ip(&format!("-n {space} link set veth up"));
            }
            // An acknowledgement for every segment, as far as they arrive alone.
            ip(&format!("-n {b} route change 192.0.2.0/24 dev veth src 192.0.2.2 quickack 1"));
            Self
        }

        /// Whether the sender may hand over several segments at once.
        fn merge(&self, is_on: bool) {
            ip(&format!("-n {} link set veth gso_max_segs {}", SPACES[0], if is_on { 65535 } else { 1 }));
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
    enum Used {
        Nothing,
        Control { name: String, _loaded: Loaded, _attachment: Attachment, cgroup: Cgroup },
        Empty { name: String, _object: Object, _links: Vec<Link>, cgroup: Cgroup },
    }

    impl Used {
        /// `text` is a control, `cubic`, or the name of an empty one.
        fn new(text: &str) -> Self {
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

    /// The receiver's process: it says when it is ready, and how many bytes it has had of each connection.
    pub fn receive(text: &str) {
        let used = Used::new(text);
        used.enter();
        let listener = within(SPACES[1], || TcpListener::bind((RECEIVER, PORT)).unwrap());
        println!("ready");
        let mut buffer = vec![0; 1 << 18];
        loop {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut received, begun) = (0_usize, Instant::now());
            loop {
                match stream.read(&mut buffer).unwrap() {
                    0 => break,
                    n => received += n,
                }
            }
            if received == 0 {
                break;
            }
            println!("{}", received as f64 * 8e-9 / begun.elapsed().as_secs_f64());
        }
        used.leave();
    }

    struct Receiver {
        child: Child,
        lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    }

    impl Receiver {
        fn new(text: &str) -> Self {
            let program = std::env::current_exe().unwrap();
            let mut child =
                Command::new(program).args([RECEIVE, text]).stdout(Stdio::piped()).spawn().unwrap();
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
            assert_eq!(lines.next().unwrap().unwrap(), "ready");
            Self { child, lines }
        }

        /// Sends to it for [`TIME`]; Gbit/s.
        fn throughput(&mut self, used: &Used) -> f64 {
            used.enter();
            let name = used.name().to_owned();
            within(SPACES[0], move || {
                let mut stream = TcpStream::connect((RECEIVER, PORT)).unwrap();
                SockRef::from(&stream).set_tcp_congestion(name.as_bytes()).unwrap();
                let (chunk, begun) = (vec![1; 1 << 18], Instant::now());
                while begun.elapsed() < TIME {
                    stream.write_all(&chunk).unwrap();
                }
            });
            used.leave();
            self.lines.next().unwrap().unwrap().parse().unwrap()
        }

        /// A connection without a byte ends it.
        fn end(mut self) {
            within(SPACES[0], || TcpStream::connect((RECEIVER, PORT)).map(drop).unwrap());
            assert!(self.child.wait().unwrap().success());
        }
    }

    /// Name, calls and nanoseconds of each program by its number.
    fn programs() -> BTreeMap<u32, (String, u64, u64)> {
        let of = |program: libbpf_rs::query::ProgramInfo| {
            (program.id, (program.name.to_string_lossy().into_owned(), program.run_cnt, program.run_time_ns))
        };
        ProgInfoIter::default().map(of).collect()
    }

    /// What a run has shown.
    struct Run {
        /// With and without merging, Gbit/s.
        gbit: [f64; 2],
        /// Nanoseconds of a call and calls, by end (`sender`, `receiver`) and program.
        costs: BTreeMap<(&'static str, String), (f64, u64)>,
        /// Time to load and attach it.
        loading: Duration,
    }

    fn run(spaces: &Spaces, text: &str) -> Run {
        let before: BTreeSet<u32> = programs().into_keys().collect();
        let begun = Instant::now();
        let used = Used::new(text);
        let loading = begun.elapsed();
        let own: BTreeSet<u32> = programs().into_keys().collect();
        let mut receiver = Receiver::new(text);
        spaces.merge(true);
        let merged = receiver.throughput(&used);
        spaces.merge(false);
        let setting = fs::read_to_string(STATS).unwrap();
        fs::write(STATS, "1").unwrap();
        let old = programs();
        let single = receiver.throughput(&used);
        let new = programs();
        fs::write(STATS, setting.trim()).unwrap();
        let mut costs = BTreeMap::new();
        for (id, (name, calls, ns)) in new {
            let (_, old_calls, old_ns) = old.get(&id).cloned().unwrap_or_default();
            if !before.contains(&id) && calls > old_calls + 1000 {
                let end = if own.contains(&id) { "sender" } else { "receiver" };
                let calls = calls - old_calls;
                costs.insert((end, name), ((ns - old_ns) as f64 / calls as f64, calls));
            }
        }
        receiver.end();
        Run { gbit: [merged, single], costs, loading }
    }

    /// The empty program that is taken off.
    fn empty_of(program: &str) -> Option<(&'static str, &'static str)> {
        let (_, operation) = program.split_once('_').unwrap_or(("", program));
        Some(match operation {
            "acked" => ("over_cubic", "empty_acked"),
            "cong_avoi" | "cong_avoid" => ("over_cubic", "empty_cong_avoi"),
            "cong_con" | "cong_contro" | "cong_control" => ("nothing", "empty_cong_cont"),
            "cwnd_event" | "cwnd_even" | "cwnd_eve" => ("over_cubic", "empty_cwnd_even"),
            "min_tso_" | "min_tso_segs" => ("over_cubic", "empty_min_tso_s"),
            "choose" => ("over_cubic", "empty_sock_ops"),
            "arrive" => ("over_cubic", "empty_ingress"),
            _ => return None,
        })
    }

    pub fn main() {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        if let [word, text] = &arguments[..]
            && word == RECEIVE
        {
            return receive(text);
        }
        let mut texts = vec!["cubic".to_owned(), "over_cubic".to_owned(), "nothing".to_owned()];
        match &arguments[..] {
            [] => texts.extend(KINDS.iter().map(|kind| kind.name.to_owned())),
            some => texts.extend(some.iter().cloned()),
        }
        let spaces = Spaces::new();
        let mut runs: BTreeMap<String, Vec<Run>> = BTreeMap::new();
        for _ in 0..ROUNDS {
            for text in &texts {
                runs.entry(text.clone()).or_default().push(run(&spaces, text));
            }
        }
        println!("{:20} {:>14} {:>16} {:>12}", "control", "Gbit/s", "Gbit/s, segments", "loading, ms");
        for text in &texts {
            let most = |of: fn(&Run) -> f64| runs[text].iter().map(of).fold(0.0, f64::max);
            let loading = runs[text].iter().map(|run| run.loading).min().unwrap();
            let (merged, single) = (most(|run| run.gbit[0]), most(|run| run.gbit[1]));
            println!("{text:20} {merged:>14.1} {single:>16.1} {:>12.0}", loading.as_secs_f64() * 1e3);
        }
        let lowest = |text: &str, end: &'static str, program: &str| {
            let found = runs.get(text)?.iter().filter_map(|run| run.costs.get(&(end, program.to_owned())));
            found.copied().min_by(|a, b| a.0.total_cmp(&b.0))
        };
        println!(
            "\n{:16} {:8} {:18} {:>10} {:>8} {:>16}",
            "control", "end", "program", "calls", "ns", "less an empty one"
        );
        for text in &texts {
            let names: BTreeSet<_> = runs[text].iter().flat_map(|run| run.costs.keys().cloned()).collect();
            for (end, program) in names {
                let Some((ns, calls)) = lowest(text, end, &program) else { continue };
                let empty = empty_of(&program).and_then(|(text, empty)| lowest(text, end, empty));
                let less = empty.map_or_else(|| "-".to_owned(), |(empty, _)| format!("{:.0}", ns - empty));
                println!("{text:16} {end:8} {program:18} {calls:>10} {ns:>8.0} {less:>16}");
            }
        }
    }
}

#[cfg(all(target_os = "linux", feature = "bpf"))]
fn main() {
    costs::main();
}

#[cfg(not(all(target_os = "linux", feature = "bpf")))]
fn main() {
    println!("needs Linux and --features bpf");
}
