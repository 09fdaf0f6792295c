//! What `ranpace pep` costs: as root, with `ip` (iproute2), `cargo run --release -p ranpace-tap --features bpf --example costs`.
//!
//! A server, an edge that forwards and a user, in namespaces of their own. The server sends 1 Gbit/s, over TCP in merged and in single
//! segments and as single datagrams, while the PEP at the edge observes and the server's agent hears it. The costs are the CPU time of the
//! PEP's thread, and that of its filter by the kernel's own accounting (`kernel.bpf_stats_enabled`, which itself counts in each call).
//! Then single datagrams go to the user and back, with the PEP and without it in turns: by how much it delays them.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints, and ends where it cannot go on"
)]

#[cfg(all(target_os = "linux", feature = "bpf"))]
mod costs {
    use std::fs::{self, File};
    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;
    use std::process::Command;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;
    use std::thread::{self, JoinHandle};
    use std::time::{Duration, Instant};

    use libbpf_rs::query::ProgInfoIter;
    use nix::sched::{CloneFlags, setns};
    use ranpace_tap::agent::Agents;
    use ranpace_tap::config::{AgentConfig, PepConfig};
    use ranpace_tap::daemon::Daemon;

    const STATS: &str = "/proc/sys/kernel/bpf_stats_enabled";
    const SERVER: &str = "10.91.1.1";
    const USER: &str = "10.91.2.1";
    /// How long each load lasts, after what it takes to begin.
    const TIME: Duration = Duration::from_secs(4);
    const BEGIN: Duration = Duration::from_millis(500);
    /// 1 Gbit/s in a millisecond.
    const BYTES_PER_MS: usize = 125_000;
    const DATAGRAM: usize = 1_252;
    /// Round trips of a round, and rounds with and without the PEP.
    const PROBES: usize = 20_000;
    const ROUNDS: usize = 5;

    fn ip(arguments: &str) {
        let status = Command::new("ip").args(arguments.split_whitespace()).status().unwrap();
        assert!(status.success(), "ip {arguments}");
    }

    /// The namespaces, removed at the end.
    struct Spaces([String; 3]);

    impl Spaces {
        fn new() -> Self {
            let names = ["s", "e", "u"].map(|host| format!("tapcost{}{host}", std::process::id()));
            let [server, edge, user] = &names;
            for name in &names {
                ip(&format!("netns add {name}"));
                ip(&format!("-n {name} link set lo up"));
            }
            for (end, own, net) in [(server, "es", 1), (user, "eu", 2)] {
                ip(&format!("link add {own} netns {edge} type veth peer name v0 netns {end}"));
                for (name, device, last) in [(end, "v0", 1), (edge, own, 2)] {
                    ip(&format!("-n {name} addr add 10.91.{net}.{last}/24 dev {device}"));
                    ip(&format!("-n {name} link set {device} up"));
                }
                ip(&format!("-n {end} route add default via 10.91.{net}.2"));
            }
            let spaces = Self(names);
            spaces.within(1, || fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap()).join().unwrap();
            spaces
        }

        /// Runs in the namespace of the server, the edge or the user.
        fn within<T: Send + 'static>(
            &self,
            host: usize,
            what: impl FnOnce() -> T + Send + 'static,
        ) -> JoinHandle<T> {
            let file = File::open(Path::new("/run/netns").join(&self.0[host])).unwrap();
            thread::spawn(move || {
                setns(&file, CloneFlags::CLONE_NEWNET).unwrap();
                what()
            })
        }
    }

    impl Drop for Spaces {
        fn drop(&mut self) {
            self.0.iter().for_each(|name| ip(&format!("netns del {name}")));
        }
    }

    /// The PEP and the agent, until dropped.
    struct Running {
        stop: Arc<AtomicBool>,
        thread: u64,
        ends: Vec<JoinHandle<()>>,
    }

    impl Running {
        fn start(spaces: &Spaces, folder: &Path) -> Self {
            let stop = Arc::new(AtomicBool::new(false));
            let (told, thread) = mpsc::channel();
            let (pep, stops) = (folder.join("pep.toml"), Arc::clone(&stop));
            let observes = spaces.within(1, move || {
                let daemon = Daemon::open(&PepConfig::read(&pep).unwrap()).unwrap();
                told.send(nix::unistd::gettid().as_raw() as u64).unwrap();
                daemon.run(&stops).unwrap();
            });
            let (agent, stops) = (folder.join("agent.toml"), Arc::clone(&stop));
            let hears = spaces.within(0, move || {
                let mut agents = Agents::open(&AgentConfig::read(&agent).unwrap()).unwrap();
                while !stops.load(Ordering::SeqCst) {
                    agents.hear(Duration::from_millis(20)).unwrap();
                }
            });
            let running = Self { stop, thread: thread.recv().unwrap(), ends: vec![observes, hears] };
            thread::sleep(BEGIN);
            running
        }

        /// CPU time of the PEP's thread, in nanoseconds.
        fn cpu(&self) -> u64 {
            let text = fs::read_to_string(format!("/proc/self/task/{}/schedstat", self.thread)).unwrap();
            text.split_whitespace().next().unwrap().parse().unwrap()
        }
    }

    impl Drop for Running {
        fn drop(&mut self) {
            self.stop.store(true, Ordering::SeqCst);
            self.ends.drain(..).for_each(|end| end.join().unwrap());
        }
    }

    /// Nanoseconds and calls of the filter.
    fn filter() -> (u64, u64) {
        let found = ProgInfoIter::default().find(|program| program.name == "tap").unwrap();
        (found.run_time_ns, found.run_cnt)
    }

    /// Sends for a time what `send` sends in a millisecond.
    fn paced(mut send: impl FnMut()) {
        let begun = Instant::now();
        for ms in 1.. {
            send();
            let due = begun + Duration::from_millis(ms);
            if due.duration_since(begun) >= TIME + 2 * BEGIN {
                return;
            }
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
    }

    fn tcp(spaces: &Spaces) -> JoinHandle<()> {
        let listener = spaces.within(2, || TcpListener::bind((USER, 0)).unwrap()).join().unwrap();
        let user = listener.local_addr().unwrap();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut buffer = vec![0; 1 << 18];
            while stream.read(&mut buffer).unwrap() > 0 {}
        });
        spaces.within(0, move || {
            let mut stream = TcpStream::connect(user).unwrap();
            paced(|| stream.write_all(&[7; BYTES_PER_MS]).unwrap());
        })
    }

    fn datagrams(spaces: &Spaces) -> JoinHandle<()> {
        let user = spaces.within(2, || UdpSocket::bind((USER, 0)).unwrap()).join().unwrap();
        let to = user.local_addr().unwrap();
        spaces.within(0, move || {
            let socket = UdpSocket::bind((SERVER, 0)).unwrap();
            let mut content = [7; DATAGRAM];
            let mut number = 0_u64;
            paced(|| {
                for _ in 0..BYTES_PER_MS / DATAGRAM {
                    number += 1;
                    content[..8].copy_from_slice(&number.to_be_bytes());
                    socket.send_to(&content, to).unwrap();
                }
            });
            drop(user);
        })
    }

    /// Plays a load, and prints what it cost.
    fn play(spaces: &Spaces, running: &Running, name: &str, load: fn(&Spaces) -> JoinHandle<()>) {
        let bytes = || -> u64 {
            let read = || fs::read_to_string("/proc/thread-self/net/dev").unwrap();
            let text = spaces.within(1, read).join().unwrap();
            let line = text.lines().find_map(|line| line.trim().strip_prefix("es:")).unwrap();
            line.split_whitespace().next().unwrap().parse().unwrap()
        };
        let load = load(spaces);
        thread::sleep(BEGIN);
        let (begun, before, cpu, (ns, calls)) = (Instant::now(), bytes(), running.cpu(), filter());
        thread::sleep(TIME);
        let (took, come, cpu) = (begun.elapsed().as_secs_f64(), bytes() - before, running.cpu() - cpu);
        let (later_ns, later_calls) = filter();
        load.join().unwrap();
        let (ns, calls) = (later_ns - ns, later_calls - calls);
        println!(
            "{name:26} {:7.0} Mbit/s   PEP {:5.2} %   filter {:5.2} %, {:4.0} ns a packet of {:5.0} B",
            come as f64 * 8e-6 / took,
            cpu as f64 * 1e-7 / took,
            ns as f64 * 1e-7 / took,
            ns as f64 / calls as f64,
            come as f64 / calls as f64,
        );
    }

    /// Round trips of single datagrams, in nanoseconds, sorted.
    fn round_trips(spaces: &Spaces) -> Vec<u64> {
        let user = spaces.within(2, || UdpSocket::bind((USER, 0)).unwrap()).join().unwrap();
        let to: SocketAddr = user.local_addr().unwrap();
        // Both ends are awake: waking them would take longer than all that is measured.
        let answers = thread::spawn(move || {
            user.set_nonblocking(true).unwrap();
            let mut buffer = [0; 64];
            loop {
                if let Ok((length, from)) = user.recv_from(&mut buffer) {
                    if length == 1 {
                        return;
                    }
                    user.send_to(&buffer[..length], from).unwrap();
                }
            }
        });
        let asks = spaces.within(0, move || {
            let socket = UdpSocket::bind((SERVER, 0)).unwrap();
            socket.set_nonblocking(true).unwrap();
            let mut buffer = [0; 64];
            let mut took = Vec::with_capacity(PROBES);
            for _ in 0..PROBES {
                let begun = Instant::now();
                socket.send_to(&[7; 64], to).unwrap();
                while socket.recv_from(&mut buffer).is_err() {}
                took.push(begun.elapsed().as_nanos() as u64);
            }
            socket.send_to(&[0], to).unwrap();
            took
        });
        let mut took = asks.join().unwrap();
        answers.join().unwrap();
        took.sort_unstable();
        took
    }

    pub fn main() {
        let spaces = Spaces::new();
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("secret", "0123456789abcdef0123456789abcdef");
        fs::set_permissions(folder.path().join("secret"), fs::Permissions::from_mode(0o600)).unwrap();
        let key = "key = 1\nsecret = \"secret\"\n";
        write("pep.toml", &format!("devices = [\"es\"]\nid = 7\n[[server]]\naddress = \"{SERVER}\"\n{key}"));
        write("agent.toml", &format!("[[pep]]\naddress = \"10.91.1.2:49460\"\nid = 7\n{key}"));
        let setting = fs::read_to_string(STATS).unwrap();
        fs::write(STATS, "1").unwrap();
        {
            let running = Running::start(&spaces, folder.path());
            play(&spaces, &running, "TCP, merged segments", tcp);
            play(&spaces, &running, "datagrams", datagrams);
            for device in [0, 1] {
                let name = &spaces.0[device];
                let device = if device == 0 { "v0" } else { "es" };
                ip(&format!("-n {name} link set {device} gso_max_segs 1"));
            }
            play(&spaces, &running, "TCP, single segments", tcp);
        }
        fs::write(STATS, setting.trim()).unwrap();
        let mut rounds = [Vec::new(), Vec::new()];
        for round in 0..2 * ROUNDS {
            let running = (round % 2 == 1).then(|| Running::start(&spaces, folder.path()));
            rounds[round % 2].push(round_trips(&spaces));
            drop(running);
        }
        for (name, rounds) in [("without the PEP", &rounds[0]), ("with the PEP", &rounds[1])] {
            // The least of the rounds: other work on the machine only adds.
            let least = |part: f64| {
                let of = |round: &Vec<u64>| round[((round.len() - 1) as f64 * part) as usize];
                rounds.iter().map(of).min().unwrap() as f64 / 1e3
            };
            println!(
                "round trip {name:16} {:6.1} us in the median, {:6.1} at 99 %, {:6.1} at 99.9 %",
                least(0.5),
                least(0.99),
                least(0.999)
            );
        }
    }
}

fn main() {
    #[cfg(all(target_os = "linux", feature = "bpf"))]
    costs::main();
    #[cfg(not(all(target_os = "linux", feature = "bpf")))]
    println!("it needs Linux and --features bpf");
}
