//! Cost of an emulation in real time: the figures of docs/performance.md, and beside them mahimahi's where it is installed.
//!
//! `cargo run --release -p ranpace-benches --example emulator [NAME ...]`, as root; all of it takes about four minutes.
//! CPU time is that of the loop and of the kernel's work in it, over the data packets that were handed over. The programs at both
//! ends (this one again) send over the kernel's CUBIC; what they take is not in it.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

#[cfg(target_os = "linux")]
fn main() {
    emulator::main();
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("skipped: needs Linux");
}

#[cfg(target_os = "linux")]
mod emulator {
    use std::ffi::OsString;
    use std::fs;
    use std::io::{Read as _, Write as _};
    use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::thread;
    use std::time::{Duration, Instant};

    use ranpace_emulator::{
        Delivery, Outcome, Plan, Program, Topology, Views, addresses, check, emulate, enter,
    };
    use ranpace_link::Trace;
    use ranpace_scenario::{Scenario, TraceSource};
    use ranpace_sim::LinkResult;
    use socket2::SockRef;

    const PORT: u16 = 5000;
    /// Duration of a run, s.
    const SECONDS: u64 = 10;
    /// From here on it is counted what is carried: slow start is over.
    const STEADY: usize = 3;
    /// One way, of all runs over a trace.
    const DELAY_MS: u64 = 10;

    /// The folder of a namespace's IPv4 settings.
    const IPV4: &str = "/proc/sys/net/ipv4";
    /// See [`IPV4`].
    const WINDOWS: [&str; 2] = ["tcp_rmem", "tcp_wmem"];
    /// The rows that mahimahi can play as well.
    const MAHIMAHI: [&str; 2] = ["500", "500-joined"];

    /// A run, and what it is to show.
    struct Case {
        name: &'static str,
        what: &'static str,
        scenario: fn() -> Scenario,
        delivery: Delivery,
        aims: &'static [Aim],
    }

    enum Aim {
        /// CPU time a data packet, its acknowledgement included (us).
        Packet(f64),
        /// The loop's share of a core.
        Core(f64),
        /// The throughput over a link of this rate (bit/s), as a share of it.
        Carried(f64, f64),
        /// Error of the timers at p99 (us).
        Timers(f64),
        /// CPU time a data packet: so many times that of the case of this name.
        Times(&'static str, f64),
    }

    const CASES: [Case; 16] = [
        Case {
            name: "500",
            what: "trace of 500 Mbit/s, packet by packet",
            scenario: || trace(500),
            delivery: Delivery::Gso,
            aims: &[Aim::Packet(5.0)],
        },
        Case {
            name: "500-joined",
            what: "trace of 500 Mbit/s, --gro",
            scenario: || trace(500),
            delivery: Delivery::Gro,
            aims: &[Aim::Packet(1.5)],
        },
        Case {
            name: "1000",
            what: "trace of 1 Gbit/s, packet by packet",
            scenario: || trace(1000),
            delivery: Delivery::Gso,
            aims: &[Aim::Carried(1e9, 0.94), Aim::Packet(f64::NAN)],
        },
        Case {
            name: "1000-joined",
            what: "trace of 1 Gbit/s, --gro",
            scenario: || trace(1000),
            delivery: Delivery::Gro,
            aims: &[Aim::Carried(1e9, 0.94), Aim::Packet(f64::NAN)],
        },
        Case {
            name: "100",
            what: "trace of 100 Mbit/s, 1 ms",
            scenario: || trace(100),
            delivery: Delivery::Gso,
            aims: &[Aim::Timers(100.0), Aim::Core(f64::NAN), Aim::Packet(f64::NAN)],
        },
        Case {
            name: "100-joined",
            what: "the same, --gro",
            scenario: || trace(100),
            delivery: Delivery::Gro,
            aims: &[Aim::Packet(f64::NAN)],
        },
        Case {
            name: "fixed-100",
            what: "fixed link of 100 Mbit/s, packet by packet",
            scenario: || fixed(100),
            delivery: Delivery::Gso,
            aims: &[Aim::Packet(f64::NAN), Aim::Times("100", 1.5), Aim::Carried(1e8, f64::NAN)],
        },
        Case {
            name: "fixed-100-joined",
            what: "fixed link of 100 Mbit/s, --gro",
            scenario: || fixed(100),
            delivery: Delivery::Gro,
            aims: &[Aim::Packet(f64::NAN), Aim::Times("100-joined", 1.5), Aim::Carried(1e8, f64::NAN)],
        },
        Case {
            name: "fixed-500",
            what: "fixed link of 500 Mbit/s, packet by packet",
            scenario: || fixed(500),
            delivery: Delivery::Gso,
            aims: &[Aim::Packet(f64::NAN), Aim::Times("500", 1.5), Aim::Carried(5e8, f64::NAN)],
        },
        Case {
            name: "fixed-500-joined",
            what: "fixed link of 500 Mbit/s, --gro",
            scenario: || fixed(500),
            delivery: Delivery::Gro,
            aims: &[Aim::Packet(f64::NAN), Aim::Times("500-joined", 1.5), Aim::Carried(5e8, f64::NAN)],
        },
        Case {
            name: "fixed-1000",
            what: "fixed link of 1 Gbit/s, packet by packet",
            scenario: || fixed(1000),
            delivery: Delivery::Gso,
            aims: &[Aim::Packet(f64::NAN), Aim::Times("1000", 1.5), Aim::Carried(1e9, f64::NAN)],
        },
        Case {
            name: "fixed-1000-joined",
            what: "fixed link of 1 Gbit/s, --gro",
            scenario: || fixed(1000),
            delivery: Delivery::Gro,
            aims: &[Aim::Packet(f64::NAN), Aim::Times("1000-joined", 1.5), Aim::Carried(1e9, f64::NAN)],
        },
        Case {
            name: "fixed-2000",
            what: "fixed link of 2 Gbit/s, packet by packet",
            scenario: || fixed(2000),
            delivery: Delivery::Gso,
            aims: &[Aim::Packet(f64::NAN), Aim::Carried(2e9, f64::NAN)],
        },
        Case {
            name: "fixed-2000-joined",
            what: "fixed link of 2 Gbit/s, --gro",
            scenario: || fixed(2000),
            delivery: Delivery::Gro,
            aims: &[Aim::Packet(f64::NAN), Aim::Carried(2e9, f64::NAN)],
        },
        Case {
            name: "cell",
            what: "NR cell, 10 users, 100 Mbit/s in total",
            scenario: cell,
            delivery: Delivery::Gso,
            aims: &[Aim::Core(0.25), Aim::Carried(1e8, f64::NAN), Aim::Timers(f64::NAN)],
        },
        Case {
            name: "cell-joined",
            what: "the same, --gro",
            scenario: cell,
            delivery: Delivery::Gro,
            aims: &[Aim::Core(f64::NAN), Aim::Timers(f64::NAN)],
        },
    ];

    pub fn main() {
        let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
        let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
        match words.as_slice() {
            ["inside", netns, leash, hosts, ..] => {
                let code = enter(Path::new(netns), Path::new(leash), Path::new(hosts), &arguments[4..]);
                std::process::exit(code.unwrap());
            }
            ["serve"] => serve(),
            ["fetch", address] => fetch(address),
            names => measure(names),
        }
    }

    fn measure(names: &[&str]) {
        if let Err(error) = check() {
            println!("skipped: needs root and TUN devices: {error}");
            return;
        }
        let known: Vec<&str> = CASES.iter().map(|case| case.name).chain(["mahimahi"]).collect();
        if let Some(other) = names.iter().find(|name| !known.contains(name)) {
            println!("there is no {other}; there are {}", known.join(", "));
            return;
        }
        let asked = |name: &str| names.is_empty() || names.contains(&name);
        println!("| | figure | aim | |\n|---|---|---|---|");
        let mut ours = Vec::new();
        for case in CASES.iter().filter(|case| asked(case.name)) {
            let (begun, idle_before) = (Instant::now(), idle());
            let outcome = play(case);
            let all = idle_before.zip(idle()).map(|(before, after)| {
                let cores = thread::available_parallelism().map_or(1, |cores| cores.get()) as f64;
                cores - (after - before) / begun.elapsed().as_secs_f64()
            });
            ours.push((case, per_packet(&outcome)));
            show(case, &outcome, all, &ours);
        }
        if asked("mahimahi") {
            match mahimahi() {
                Ok((figure, rate)) => {
                    let what = "mahimahi, trace of 500 Mbit/s";
                    println!("| {what} | {figure:.3} us a data packet with its ACK | | |");
                    println!("| {what} | {rate:.3} of the link's rate carried | | |");
                    for (case, own) in ours.iter().filter(|(case, _)| MAHIMAHI.contains(&case.name)) {
                        println!("| {} | mahimahi takes {:.1} times as much | | |", case.what, figure / own);
                    }
                }
                Err(why) => println!("| mahimahi | {why} | | |"),
            }
        }
    }

    /// CPU time a data packet, its acknowledgement included (us).
    fn per_packet(outcome: &Outcome) -> f64 {
        outcome.timeliness.busy.as_secs_f64() * 1e6 / down(outcome).departed_packets as f64
    }

    fn down(outcome: &Outcome) -> &LinkResult {
        outcome.result.links.iter().find(|link| link.name == "down").unwrap()
    }

    /// A row for each aim; one without a figure is told only. `all` is what the whole machine was busy with meanwhile, in cores, and
    /// `ours` what a packet took in the cases so far.
    fn show(case: &Case, outcome: &Outcome, all: Option<f64>, ours: &[(&Case, f64)]) {
        let timeliness = &outcome.timeliness;
        let rows = down(outcome).series.get("departed_bit_s").unwrap();
        // The last ones have the end of the transfer in them.
        let steady = &rows[STEADY * 10..(SECONDS as usize * 10 - 5).min(rows.len())];
        let rate = steady.iter().sum::<f64>() / steady.len() as f64;
        for aim in case.aims {
            let (figure, limit, met, unit) = match *aim {
                Aim::Packet(most) => {
                    let figure = per_packet(outcome);
                    (figure, most, figure < most, "us a data packet with its ACK")
                }
                Aim::Core(most) => {
                    let figure = timeliness.busy.as_secs_f64() / timeliness.elapsed.as_secs_f64();
                    (figure, most, figure < most, "of a core")
                }
                Aim::Carried(of, least) => {
                    (rate / of, least, rate / of >= least, "of the link's rate carried")
                }
                Aim::Timers(most) => {
                    let figure = timeliness.timers.p99.as_secs_f64() * 1e6;
                    (figure, most, figure < most, "us timer error at p99")
                }
                Aim::Times(name, most) => {
                    let Some((_, base)) = ours.iter().find(|(case, _)| case.name == name) else { continue };
                    let figure = per_packet(outcome) / base;
                    (figure, most, figure <= most, "times what the trace of this rate takes")
                }
            };
            let aim = if limit.is_nan() { String::new() } else { format!("{limit}") };
            let verdict = if limit.is_nan() {
                ""
            } else if met {
                "met"
            } else {
                "missed"
            };
            println!("| {} | {figure:.3} {unit} | {aim} | {verdict} |", case.what);
        }
        let invalid = timeliness.invalid().map_or(String::new(), |why| format!("; invalid: {why}"));
        let wakeups = timeliness.wakeups as f64 / timeliness.elapsed.as_secs_f64();
        let stood = timeliness.longest_standstill.as_secs_f64() * 1e3;
        let all = all.map_or(String::new(), |all| format!("; {all:.2} cores with programs and kernel"));
        println!(
            "| | machine: {}, {wakeups:.0} wakeups a second, {} polls, {} pauses, stood still for {stood:.1} ms at most{all}{invalid} | | |",
            timeliness.line(),
            timeliness.polls,
            timeliness.pauses,
        );
    }

    /// How long processors have had nothing to do, all together (s); `None` where the system does not count it.
    fn idle() -> Option<f64> {
        let states = |cpu: PathBuf| fs::read_dir(cpu.join("cpuidle")).ok();
        let cpus = fs::read_dir("/sys/devices/system/cpu").ok()?.flatten();
        let times = cpus.filter_map(|cpu| states(cpu.path())).flatten().flatten().filter_map(|state| {
            fs::read_to_string(state.path().join("time")).ok()?.trim().parse::<f64>().ok()
        });
        let micros: Vec<f64> = times.collect();
        (!micros.is_empty()).then(|| micros.iter().sum::<f64>() / 1e6)
    }

    /// Downloads by all users at once.
    fn play(case: &Case) -> Outcome {
        let scenario = (case.scenario)();
        let topology = Topology::new(&scenario).unwrap();
        let me = std::env::current_exe().unwrap();
        let server = topology.place("server").unwrap();
        let program = |host: usize, words: &[&str]| Program {
            host: topology.name(host).to_owned(),
            words: std::iter::once(me.clone().into_os_string())
                .chain(words.iter().map(OsString::from))
                .collect(),
        };
        let address = addresses::v4(server).to_string();
        let users = (0..topology.hosts.len()).filter(|host| *host != server);
        let mut programs: Vec<Program> = users.map(|host| program(host, &["fetch", &address])).collect();
        let main = programs.pop();
        programs.push(program(server, &["serve"]));
        let plan = Plan {
            main,
            beside: programs,
            limit: None,
            workloads: None,
            delivery: case.delivery,
            saves_power: false,
            views: Views::default(),
            inside: (me.clone(), vec!["inside".into()]),
            files: Vec::new(),
            daemons: Vec::new(),
        };
        emulate(&topology, &plan, &AtomicBool::new(false), |_| {}).unwrap()
    }

    /// Sends to everybody who comes, for a while.
    fn serve() {
        wide_windows();
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)).unwrap();
        // A namespace cannot be given a default that its machine keeps from ordinary users; a socket of root can ask for it.
        SockRef::from(&listener).set_tcp_congestion(b"cubic").unwrap();
        for stream in listener.incoming() {
            thread::spawn(move || {
                let (mut stream, begun) = (stream.unwrap(), Instant::now());
                let piece = vec![7; 256 << 10];
                while begun.elapsed() < Duration::from_secs(SECONDS) && stream.write_all(&piece).is_ok() {}
            });
        }
    }

    /// Reads to the end.
    fn fetch(address: &str) {
        wide_windows();
        let address: IpAddr = address.parse().unwrap();
        let begun = Instant::now();
        let mut stream = loop {
            match TcpStream::connect((address, PORT)) {
                Ok(stream) => break stream,
                Err(error) => assert!(begun.elapsed() < Duration::from_secs(20), "{error}"),
            }
            thread::sleep(Duration::from_millis(20));
        };
        let mut piece = vec![0; 1 << 20];
        while stream.read(&mut piece).unwrap_or(0) > 0 {}
    }

    /// Windows that do not bind; where a container forbids it, what there is.
    fn wide_windows() {
        for name in WINDOWS {
            let _ = fs::write(Path::new(IPV4).join(name), "4096 131072 33554432");
        }
    }

    fn scenario(text: &str, mbits: u64) -> Scenario {
        struct Made(u64);
        impl TraceSource for Made {
            fn load(&mut self, _: &str) -> Result<Arc<Trace>, String> {
                Trace::from_millis(opportunities(self.0)).map(Arc::new).map_err(|error| error.to_string())
            }
        }
        ranpace_scenario::parse(text, "emulator", &mut Made(mbits)).unwrap()
    }

    /// A second of it: so many of 1500 B in each ms that the rate is kept.
    fn opportunities(mbits: u64) -> Vec<u64> {
        let by = |ms: u64| mbits * 1000 * ms / 12_000;
        (1..=1000).flat_map(|ms| (by(ms - 1)..by(ms)).map(move |_| ms)).collect()
    }

    /// Bytes that a queue holds: 50 ms.
    fn queue(mbits: u64) -> u64 {
        mbits * 125_000 / 20
    }

    fn trace(mbits: u64) -> Scenario {
        scenario(&link("trace = \"made\"", mbits), mbits)
    }

    fn fixed(mbits: u64) -> Scenario {
        scenario(&link(&format!("rate = \"{mbits}Mbit/s\""), mbits), mbits)
    }

    /// A download over a link of this service.
    fn link(service: &str, mbits: u64) -> String {
        format!(
            r#"
duration = "1h"
[[link]]
name = "down"
from = "server"
to = "phone"
{service}
delay = "{DELAY_MS}ms"
queue = {{ kind = "droptail", limit = "{}B" }}
[[link]]
name = "up"
from = "phone"
to = "server"
rate = "unlimited"
delay = "{DELAY_MS}ms"
[[flow]]
from = "server"
to = "phone"
cc = "cubic"
"#,
            queue(mbits)
        )
    }

    fn cell() -> Scenario {
        let text = r#"
duration = "1h"
[[link]]
name = "down"
from = "server"
to = "mast"
rate = "100Mbit/s"
delay = "10ms"
duplex = true
[[cell]]
host = "mast"
preset = "nr"
[[user]]
name = "phone"
position = [150, 0]
count = 10
[[flow]]
from = "server"
to = "phone"
cc = "cubic"
"#;
        scenario(text, 0)
    }

    /// The same download through mm-delay and mm-link, with its log: CPU time a data packet (us), and the share of the link's rate
    /// that was carried; or why not.
    fn mahimahi() -> Result<(f64, f64), String> {
        let has = |name: &str| {
            std::env::var_os("PATH")
                .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(name).exists()))
        };
        if !has("mm-link") || !has("mm-delay") {
            return Err("skipped: needs mm-link and mm-delay".into());
        }
        // It does so too, and gives it to namespaces of its own.
        if fs::read_to_string("/proc/sys/net/ipv4/ip_forward").is_ok_and(|value| value.trim() == "0") {
            return Err("skipped: mm-delay needs `sysctl -w net.ipv4.ip_forward=1`".into());
        }
        // As in the other runs, no processor sleeps.
        let awake = fs::OpenOptions::new().write(true).open("/dev/cpu_dma_latency");
        let _awake = awake.and_then(|mut file| file.write_all(&0_u32.to_ne_bytes()).map(|()| file));
        let folder = std::env::temp_dir().join(format!("ranpace-mahimahi-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let me = folder.join("emulator");
        fs::copy(std::env::current_exe().unwrap(), &me).unwrap();
        let write = |name: &str, lines: Vec<u64>| {
            let text: Vec<String> = lines.iter().map(u64::to_string).collect();
            let path = folder.join(name);
            fs::write(&path, text.join("\n") + "\n").unwrap();
            path
        };
        // It has no way back without a limit.
        let (down, up) = (write("500", opportunities(500)), write("1000", opportunities(1000)));
        // It refuses to be started by root; its programs become root themselves.
        let mut command = Command::new(if has("setpriv") { "setpriv" } else { "env" });
        if has("setpriv") {
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
            fs::set_permissions(&folder, mode).unwrap();
        }
        let log = folder.join("log");
        let shell = format!("{} fetch $MAHIMAHI_BASE", me.display());
        command
            .args(["mm-delay", &DELAY_MS.to_string(), "mm-link"])
            .args([&up, &down])
            .arg("--downlink-queue=droptail")
            .arg(format!("--downlink-queue-args=bytes={}", queue(500)))
            .arg(format!("--downlink-log={}", log.display()))
            .args(["--", "sh", "-c", &shell])
            .current_dir(&folder)
            .stdout(Stdio::null());
        // The server is not in a namespace: what it sets is the machine's.
        let windows = WINDOWS.map(|name| (name, fs::read(Path::new(IPV4).join(name))));
        let mut server = Command::new(&me).arg("serve").spawn().unwrap();
        let mut shells = command.spawn().unwrap();
        let mut ticks = 0;
        let status = loop {
            if let Some(status) = shells.try_wait().unwrap() {
                break status;
            }
            ticks = ticks.max(taken());
            thread::sleep(Duration::from_millis(50));
        };
        let _ = server.kill();
        let _ = server.wait();
        for (name, before) in windows {
            if let Ok(before) = before {
                fs::write(Path::new(IPV4).join(name), before).unwrap();
            }
        }
        // Departures are lines with "-": time, sign, bytes, delay.
        let text = fs::read_to_string(&log).unwrap_or_default();
        let sizes =
            text.lines().filter_map(|line| line.split_once(" - ")?.1.split(' ').next()?.parse::<u64>().ok());
        let (packets, bytes) = sizes.fold((0, 0), |(packets, bytes), size| (packets + 1, bytes + size));
        // A tick is 10 ms (USER_HZ).
        let _ = fs::remove_dir_all(&folder);
        if !status.success() || packets == 0 {
            return Err(format!(
                "failed: mm-delay ended with {status}, {packets} packets carried; what it said is above"
            ));
        }
        let rate = bytes as f64 * 8.0 / SECONDS as f64 / 5e8;
        Ok((ticks as f64 * 1e4 / f64::from(packets), rate))
    }

    /// Clock ticks that all processes of mahimahi have taken.
    fn taken() -> u64 {
        let stats = fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let path: PathBuf = entry.ok()?.path();
            let stat = fs::read_to_string(path.join("stat")).ok()?;
            let (name, fields) = stat.split_once('(')?.1.rsplit_once(") ")?;
            let fields: Vec<u64> = fields.split(' ').map(|field| field.parse().unwrap_or(0)).collect();
            // utime and stime: fields 14 and 15 of proc(5), of which two are before these.
            name.starts_with("mm-").then(|| fields[11] + fields[12])
        });
        stats.sum()
    }
}
