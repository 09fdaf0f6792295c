//! All faults together, for a few seconds, or for as long as RANPACE_SOAK_SECONDS says (`make soak`: 20 minutes): what arrives is whole,
//! and the proxy has as much memory and as many descriptors afterwards as before. Inside the running kernel; needs root, and whoever is
//! not is told that this is skipped.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

mod rig;

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use socket2::{Domain, Socket, Type};

use rig::radio::{PlayedCell, Radio};
use rig::{Host, Hosts, PORT, SERVER, Wish, ready, run, run_proxy, transfer, until};

/// Clients whose transfers arrive whole while others stall, reset, and end their half.
const TRANSFERS: u64 = 8;
/// Turns of faults; memory and descriptors are compared between the second one and the last one. Each has radio information for one
/// half of its time.
const TURNS: u32 = 4;
/// Seconds without RANPACE_SOAK_SECONDS.
const SECONDS: u64 = 12;
/// Pipes that wait for the next connection, which is no growth.
const PIPES: usize = 2 * 64;

#[test]
#[ignore = "the process of a proxy, which the other tests start"]
fn proxy_process() {
    run_proxy();
}

#[test]
fn memory_and_descriptors_stay_while_all_faults_come_together() {
    let Some(_turn) = ready() else { return };
    let seconds = std::env::var("RANPACE_SOAK_SECONDS").map_or(SECONDS, |text| text.parse().unwrap());
    let time = Duration::from_secs(seconds) / TURNS;
    let hosts = Hosts::new();
    hosts.serve();
    run(&format!("ip -n {} address add 10.91.1.3/24 dev eth", hosts.name(Host::Client)));
    hosts.be_silent(PORT + 1);
    // So few ports that all of them are used again while the proxy's host remembers their last connections; the client's own does not.
    let sysctl = format!("ip netns exec {} sysctl -q", hosts.name(Host::Client));
    run(&format!("{sysctl} net.ipv4.ip_local_port_range=20000\t22000 net.ipv4.tcp_max_tw_buckets=0"));
    let table = hosts.folder.path().join("table");
    let tables = format!(
        "[limits]\nhandshakes_per_client = 64\nflow_buffer = \"1MiB\"\nuser_buffer = \"4MiB\"\n[feed]\norigin = \"table:{}\"",
        table.display()
    );
    // The feed lies: NR's rate, where the path has more or less; and it ends and comes back with each turn.
    let mut cell = PlayedCell::start(&table, Radio::nr(Radio::lte().users));
    let proxy = hosts.proxy("", &tables);
    let number = Arc::new(AtomicU64::new(0));
    let mut used = Vec::new();
    for turn in 0..TURNS {
        let stop = Arc::new(AtomicBool::new(false));
        let mut faults = Vec::new();
        for _ in 0..TRANSFERS {
            let (stop, number) = (Arc::clone(&stop), Arc::clone(&number));
            faults.push(hosts.at(Host::Client, move || {
                while !stop.load(Ordering::Relaxed) {
                    transfer(number.fetch_add(1, Ordering::Relaxed));
                }
            }));
        }
        let stopped = Arc::clone(&stop);
        faults.push(hosts.at(Host::Client, move || flood(&stopped)));
        let stopped = Arc::clone(&stop);
        faults.push(hosts.at(Host::Client, move || stall(&stopped)));
        let begun = Instant::now();
        while begun.elapsed() < time {
            if begun.elapsed() > time / 2 {
                cell.pause();
            }
            // Now and then there are no descriptors for a moment, and the proxy hangs for longer than it may.
            let limit = |files: usize| run(&format!("prlimit --pid {} --nofile={files}:20000", proxy.id()));
            thread::sleep(Duration::from_millis(500));
            limit(16);
            thread::sleep(Duration::from_millis(100));
            limit(20_000);
            thread::sleep(Duration::from_millis(500));
            proxy.stop();
            thread::sleep(Duration::from_millis(800));
            proxy.signal(Signal::SIGCONT);
        }
        stop.store(true, Ordering::Relaxed);
        faults.into_iter().for_each(|fault| fault.join().unwrap());
        until("all has ended", || {
            let shown = proxy.shown();
            (shown.connections, shown.handshakes, shown.backlog_bytes, shown.upload_backlog_bytes)
                == (0, 0, 0, 0)
        });
        used.push(proxy.used());
        eprintln!(
            "turn {turn}: {} transfers, descriptors and bytes of memory: {:?}",
            number.load(Ordering::Relaxed),
            used[turn as usize]
        );
        cell = PlayedCell::start(&table, Radio::nr(Radio::lte().users));
    }
    let ((descriptors, memory), (descriptors_after, memory_after)) = (used[1], used[TURNS as usize - 1]);
    assert!(descriptors_after <= descriptors + PIPES, "{used:?}");
    assert!(memory_after <= memory + memory / 4 + (1 << 20), "{used:?}");
}

/// SYNs that no server answers.
fn flood(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let sockets = [(); 100].map(|()| {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            socket.bind(&SocketAddr::from(([10, 91, 1, 3], 0)).into()).unwrap();
            socket.set_nonblocking(true).unwrap();
            assert!(socket.connect(&SocketAddr::new(SERVER[0], PORT + 1).into()).is_err(), "nobody answers");
            socket
        });
        thread::sleep(Duration::from_millis(50));
        drop(sockets);
    }
}

/// Readers of much that read nothing, and idle connections; they are given up after a while.
fn stall(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let ask = |wish: Wish| {
            let mut stream = TcpStream::connect((SERVER[0], PORT)).unwrap();
            // A connection that was reset is a fault among the others.
            let _ = stream.write_all(&wish.bytes());
            stream
        };
        let stalled = [(); 10].map(|()| ask(Wish::download(20_000_000)));
        let idle = [(); 50].map(|()| ask(Wish { up: 1, ..Wish::download(1) }));
        thread::sleep(Duration::from_millis(400));
        drop((stalled, idle));
    }
}
