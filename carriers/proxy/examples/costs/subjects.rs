//! What is measured: the same work for plain forwarding, for each of the relays, and for the proxy.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::relay;
use crate::rig::radio::{PlayedCell, Radio};
use crate::rig::{CLIENT, Host, Hosts, ProxyProcess, ready, run, until};
use crate::windows;

/// Rate of a transfer, in bytes per second, and its size: three seconds.
const RATE: u64 = 1_500_000_000 / 8;
const BYTES: u64 = 3 * RATE;
/// Rounds in which the subjects take turns; the median counts.
const ROUNDS: usize = 3;
/// Short connections: so many at a time, for this time.
const THREADS: usize = 8;
const SECONDS: u64 = 3;
/// What a process may have of the descriptors here.
const HELD: usize = 9_000;
/// Addresses of the client: users.
const USERS: u8 = 100;

/// Who forwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Plain,
    Splice,
    Copy,
    HaProxy,
    Ranpace,
}

impl Subject {
    const ALL: [Self; 5] = [Self::Plain, Self::Splice, Self::Copy, Self::HaProxy, Self::Ranpace];

    const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain forwarding",
            Self::Splice => "bare splice relay",
            Self::Copy => "copying relay",
            Self::HaProxy => "HAProxy",
            Self::Ranpace => "ranpace proxy",
        }
    }
}

/// A process that is killed when this is dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Who forwards, running.
enum Running {
    Nobody,
    Relay(Process),
    Proxy { proxy: ProxyProcess, _cell: PlayedCell },
}

impl Running {
    fn id(&self) -> Option<u32> {
        match self {
            Self::Nobody => None,
            Self::Relay(process) => Some(process.0.id()),
            Self::Proxy { proxy, .. } => Some(proxy.id()),
        }
    }
}

struct Bench {
    hosts: Hosts,
    server: Process,
}

impl Bench {
    fn new() -> Self {
        let hosts = Hosts::new();
        for user in 1..USERS {
            run(&format!("ip -n {} address add 10.91.1.{}/24 dev eth", hosts.name(Host::Client), 2 + user));
        }
        let at = hosts.name(Host::Proxy);
        run(&format!("ip -n {at} rule add fwmark 1 lookup 100"));
        run(&format!("ip -n {at} route add local 0.0.0.0/0 dev lo table 100"));
        let server = own(&hosts, Host::Server, &["serve"]);
        std::thread::sleep(Duration::from_millis(200));
        Self { hosts, server }
    }

    fn start(&self, subject: Subject) -> Running {
        let at = self.hosts.name(Host::Proxy);
        run(&format!("ip netns exec {at} nft flush ruleset"));
        if subject == Subject::Plain {
            return Running::Nobody;
        }
        if subject == Subject::Ranpace {
            let table = self.hosts.folder.path().join("table");
            let users = (0..USERS).map(|user| match user {
                0 => CLIENT.to_vec(),
                _ => vec![[10, 91, 1, 2 + user].into()],
            });
            let cell = PlayedCell::start(&table, Radio::nr(users.take(1).collect()));
            let tables = format!(
                "[limits]\nconnections_per_user = 20000\n[feed]\norigin = \"table:{}\"\n[rapid]\nguard = false",
                table.display()
            );
            return Running::Proxy { proxy: self.hosts.proxy("", &tables), _cell: cell };
        }
        let rules = self.hosts.folder.path().join("rules");
        fs::write(&rules, relay::RULES).unwrap();
        run(&format!("ip netns exec {at} nft -f {}", rules.display()));
        let process = match subject {
            Subject::HaProxy => {
                let file = self.hosts.folder.path().join("haproxy.cfg");
                relay::haproxy(&file);
                let mut command = Command::new("ip");
                command.args(["netns", "exec", &at, "haproxy", "-db", "-f"]).arg(&file);
                Process(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
            }
            Subject::Copy => own(&self.hosts, Host::Proxy, &["relay-copy"]),
            _ => own(&self.hosts, Host::Proxy, &["relay-splice"]),
        };
        until("the relay listens", || {
            run(&format!("ip netns exec {at} ss -Htln")).contains(&format!(":{}", relay::LISTENER))
        });
        Running::Relay(process)
    }

    /// Lets the client do something to its end; CPU time of the proxy and of all three, in seconds, and what the client said.
    fn client(&self, running: &Running, words: &[&str]) -> (f64, f64, String) {
        let before = (running.id().map_or(0.0, cpu), cpu(self.server.0.id()));
        let mut client = own(&self.hosts, Host::Client, words);
        let mut said = String::new();
        BufReader::new(client.0.stdout.take().unwrap()).read_line(&mut said).unwrap();
        // It waits for the end of its input, so that its time can still be read.
        let own = cpu(client.0.id());
        let proxy = running.id().map_or(0.0, cpu) - before.0;
        let server = cpu(self.server.0.id()) - before.1;
        drop(client.0.stdin.take());
        client.0.wait().unwrap();
        (proxy, proxy + own + server, said.trim().to_owned())
    }
}

/// Starts this program in a namespace.
fn own(hosts: &Hosts, host: Host, words: &[&str]) -> Process {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &hosts.name(host)]).arg(std::env::current_exe().unwrap()).args(words);
    Process(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap())
}

/// CPU time of a process so far, in seconds.
fn cpu(process: u32) -> f64 {
    let clock = clock_getcpuclockid(Pid::from_raw(process as i32)).unwrap();
    Duration::from(clock_gettime(clock).unwrap()).as_secs_f64()
}

/// Memory of a process that is its own, in bytes.
fn own_memory(process: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    1024.0 * line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap()
}

/// Measures what is wanted, or everything.
pub fn measure(wanted: Option<&str>) {
    let Some(_turn) = ready() else { return };
    let is_wanted = |name: &str| wanted.is_none_or(|wanted| wanted == name);
    let bench = Bench::new();
    let mut figures = serde_json::Map::new();
    if is_wanted("transfer") {
        figures.insert("transfer".to_owned(), transfer(&bench));
    }
    if is_wanted("connections") {
        figures.insert("connections".to_owned(), connections(&bench));
    }
    if is_wanted("memory") {
        figures.insert("memory".to_owned(), memory(&bench));
    }
    if is_wanted("windows") {
        figures.insert("windows".to_owned(), windows::measure());
    }
    println!("{}", Value::Object(figures));
}

/// The middle one.
pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Takes a round of each subject in turn, and returns the medians of its figures.
fn rounds<const N: usize>(
    bench: &Bench,
    mut round: impl FnMut(&Running) -> [f64; N],
) -> Vec<(Subject, [f64; N])> {
    let mut all: Vec<(Subject, Vec<[f64; N]>)> = Subject::ALL.map(|subject| (subject, Vec::new())).into();
    for _ in 0..ROUNDS {
        for (subject, figures) in &mut all {
            figures.push(round(&bench.start(*subject)));
        }
    }
    let middle =
        |figures: Vec<[f64; N]>| std::array::from_fn(|n| median(figures.iter().map(|one| one[n]).collect()));
    all.into_iter().map(|(subject, figures)| (subject, middle(figures))).collect()
}

fn transfer(bench: &Bench) -> Value {
    println!(
        "a download at {:.1} Gbit/s, medians of {ROUNDS}: CPU s/GB of the proxy, with the ends; Gbit/s",
        RATE as f64 * 8e-9
    );
    let gigabytes = BYTES as f64 / 1e9;
    let found = rounds(bench, |running| {
        let (proxy, all, said) = bench.client(running, &["download", &BYTES.to_string(), &RATE.to_string()]);
        let seconds: f64 = said.parse().unwrap();
        [proxy / gigabytes, all / gigabytes, gigabytes * 8.0 / seconds]
    });
    let rows = found.into_iter().map(|(subject, [proxy, all, rate])| {
        println!("  {:<20} {proxy:>8.3} {all:>8.3} {rate:>8.2}", subject.name());
        json!({"subject": subject.name(), "proxy_s_per_gb": proxy, "all_s_per_gb": all, "gbit_per_s": rate})
    });
    rows.collect()
}

fn connections(bench: &Bench) -> Value {
    println!(
        "connections of 64 bytes, {THREADS} at a time, medians of {ROUNDS}: a second; CPU us each of the proxy, with the ends; failed"
    );
    let found = rounds(bench, |running| {
        let words = ["connect", &THREADS.to_string(), &SECONDS.to_string()];
        let (proxy, all, said) = bench.client(running, &words);
        let (complete, failed) = said.split_once(' ').unwrap();
        let (complete, failed): (f64, f64) = (complete.parse().unwrap(), failed.parse().unwrap());
        [complete / SECONDS as f64, proxy * 1e6 / complete, all * 1e6 / complete, failed]
    });
    let rows = found.into_iter().map(|(subject, [rate, proxy, all, failed])| {
        println!("  {:<20} {rate:>8.0} {proxy:>8.1} {all:>8.1} {failed:>5.0}", subject.name());
        json!({"subject": subject.name(), "per_s": rate, "proxy_us": proxy, "all_us": all, "failed": failed})
    });
    rows.collect()
}

fn memory(bench: &Bench) -> Value {
    println!("{HELD} open connections of {USERS} addresses: bytes of the proxy's own memory each");
    let rows = [Subject::HaProxy, Subject::Ranpace].map(|subject| {
        let running = bench.start(subject);
        let process = running.id().unwrap();
        let before = own_memory(process);
        let begun = Instant::now();
        let mut client = own(&bench.hosts, Host::Client, &["hold", &HELD.to_string(), &USERS.to_string()]);
        let mut said = String::new();
        BufReader::new(client.0.stdout.as_mut().unwrap()).read_line(&mut said).unwrap();
        std::thread::sleep(Duration::from_secs(1));
        let split = match &running {
            Running::Proxy { proxy, .. } => proxy.shown().connections,
            _ => HELD,
        };
        let each = (own_memory(process) - before) / HELD as f64;
        println!(
            "  {:<20} {each:>8.0}   ({split} split, after {:.1} s)",
            subject.name(),
            begun.elapsed().as_secs_f64()
        );
        json!({"subject": subject.name(), "bytes": each, "split": split})
    });
    rows.into_iter().collect()
}
