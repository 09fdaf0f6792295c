//! What stays of a control in the kernel: nothing, however often it is loaded under traffic and whatever connections it had. Needs root;
//! whoever is not is told that this is skipped.
#![cfg(all(target_os = "linux", feature = "bpf"))]
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

mod rig;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use ranpace_kernel::{Cgroup, Control, KINDS, Loaded};

use rig::{Hosts, InUse, KernelLog, RECEIVER, SENDER};

/// Sends so many bytes to itself.
fn send_to_itself(bytes: usize) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let reader = thread::spawn(move || rig::read_all(&listener, |_| {}));
    TcpStream::connect(address).unwrap().write_all(&vec![7; bytes]).unwrap();
    assert_eq!(reader.join().unwrap(), bytes);
}

#[test]
fn controls_are_loaded_and_removed_a_hundred_times_under_traffic() {
    let Some(_turn) = rig::ready(&[]) else { return };
    let mut log = KernelLog::new();
    let cgroup = Cgroup::new().unwrap();
    cgroup.enter().unwrap();
    let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let traffic = [20_000, 5_000_000].map(|bytes| {
        let (stop, sent) = (Arc::clone(&stop), Arc::clone(&sent));
        thread::spawn(move || {
            while !stop.load(Ordering::SeqCst) {
                send_to_itself(bytes);
                sent.fetch_add(1, Ordering::SeqCst);
            }
        })
    });
    let mut programs = Vec::new();
    for (i, kind) in KINDS.iter().cycle().take(100).enumerate() {
        let loaded = Loaded::unnamed(&Control::parse(kind.name).unwrap()).unwrap();
        let attachment = loaded.attach(cgroup.path(), None).unwrap();
        programs.extend(rig::own_programs());
        let before = sent.load(Ordering::SeqCst);
        rig::until("a connection has had it", || sent.load(Ordering::SeqCst) > before);
        // The attachment goes first in half of the cases.
        if i % 2 == 0 {
            drop(attachment);
        } else {
            drop(loaded);
        }
    }
    stop.store(true, Ordering::SeqCst);
    for thread in traffic {
        thread.join().unwrap();
    }
    cgroup.leave().unwrap();
    // A control has nine or more.
    assert!(programs.len() >= 100 * 9, "{} programs", programs.len());
    rig::until_gone(&programs);
    assert_eq!(log.complaints(), Vec::<String>::new());
}

/// Raises the limit of open files of this process.
fn allow_files(number: usize) {
    let process = std::process::id().to_string();
    let done = Command::new("prlimit").args(["--pid", &process, &format!("--nofile={number}")]).status();
    assert!(done.unwrap().success());
}

#[test]
fn a_thousand_connections_at_once_have_a_state_each() {
    const CONNECTIONS: usize = 1000;
    let Some(_turn) = rig::ready(&["prlimit"]) else { return };
    allow_files(4 * CONNECTIONS);
    let mut log = KernelLog::new();
    for control in ["c2tcp", "cdbev2"] {
        let in_use = InUse::new(control);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut pairs: Vec<(TcpStream, TcpStream)> = (0..CONNECTIONS)
            .map(|_| (TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap(), listener.accept().unwrap().0))
            .collect();
        let chunk = vec![7; 20_000];
        // Both ways, all at once.
        for (client, server) in &mut pairs {
            client.write_all(&chunk).unwrap();
            server.write_all(&chunk).unwrap();
        }
        let mut buffer = vec![0; chunk.len()];
        for (client, server) in &mut pairs {
            client.read_exact(&mut buffer).unwrap();
            server.read_exact(&mut buffer).unwrap();
        }
        let sockets = in_use.loaded.sockets().unwrap();
        let ours = sockets.iter().filter(|socket| {
            [&socket.local, &socket.peer].iter().any(|end| end.ends_with(&format!(":{port}")))
        });
        let ours: Vec<_> = ours.collect();
        assert_eq!(ours.len(), 2 * CONNECTIONS, "{control}");
        let delivered = ours.iter().filter(|socket| socket.figure("delivered").is_some_and(|n| n > 1.0));
        assert_eq!(delivered.count(), 2 * CONNECTIONS, "{control}");
        if control == "cdbev2" {
            assert!(ours.iter().all(|socket| socket.figure("agreed") == Some(1.0)));
        }
    }
    assert_eq!(log.complaints(), Vec::<String>::new());
}

/// Bytes of the kernel's general memory that are in use, of which the states of sockets are a part.
fn kernel_memory() -> usize {
    let text = fs::read_to_string("/proc/slabinfo").unwrap();
    // name, objects in use, objects, bytes of one
    text.lines()
        .filter(|line| line.starts_with("kmalloc-"))
        .map(|line| {
            let mut words = line.split_whitespace().skip(1).map(|word| word.parse::<usize>().unwrap_or(0));
            let in_use = words.next().unwrap_or(0);
            in_use * words.nth(1).unwrap_or(0)
        })
        .sum()
}

/// Short connections over loopback, one after another, each with a question and an answer.
fn connections(number: usize) {
    // Ports are not free again for a minute; each address of the host has its own.
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = thread::spawn(move || {
        for _ in 0..number {
            let (mut stream, _) = listener.accept().unwrap();
            let mut question = Vec::new();
            stream.read_to_end(&mut question).unwrap();
            stream.write_all(&question).unwrap();
        }
    });
    for i in 0..number {
        let [high, low] = ((i / 1000) as u16).to_be_bytes();
        let mut stream =
            TcpStream::connect(SocketAddr::from((Ipv4Addr::new(127, 1, high, low + 1), port))).unwrap();
        stream.write_all(&[7; 3000]).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        assert_eq!(stream.read_to_end(&mut answer).unwrap(), 3000);
    }
    server.join().unwrap();
}

/// After so many connections the kernel has less than a fifth of the memory more that their states would take.
fn nothing_is_left_after(number: usize, control: &str, state: usize) {
    let mut log = KernelLog::new();
    let in_use = InUse::new(control);
    let programs = rig::own_programs();
    connections(number / 10);
    let before = kernel_memory();
    let begun = Instant::now();
    connections(number);
    let time = begun.elapsed();
    let most = before + 2 * number * state / 5;
    // What ends is freed a moment later (RCU), and other programs have their own memory.
    rig::until("the memory is free", || kernel_memory() < most);
    eprintln!(
        "{control}: {number} connections in {:.1} s; {:+.1} MB, states of all would be {:.1} MB",
        time.as_secs_f64(),
        (kernel_memory() as f64 - before as f64) * 1e-6,
        (2 * number * state) as f64 * 1e-6
    );
    drop(in_use);
    rig::until_gone(&programs);
    assert_eq!(log.complaints(), Vec::<String>::new());
}

/// Bytes of a state of the client-driven controls, at least.
const DRIVEN_STATE: usize = 1024;

#[test]
fn nothing_is_left_after_thousands_of_connections() {
    if let Some(_turn) = rig::ready(&[]) {
        nothing_is_left_after(5000, "cdbev2", DRIVEN_STATE);
    }
}

/// The full measure, some minutes: `cargo test -p ranpace-kernel --features bpf --release --test lifetime -- --ignored --nocapture`.
#[test]
#[ignore = "takes minutes"]
fn nothing_is_left_after_a_hundred_thousand_connections() {
    if let Some(_turn) = rig::ready(&[]) {
        nothing_is_left_after(100_000, "cdbev2", DRIVEN_STATE);
        nothing_is_left_after(100_000, "c2tcp", 128);
    }
}

/// Switches an offload of the hosts' devices: `ethtool`, or its system call by Python where that is what there is.
fn set_offload(hosts: &Hosts, host: usize, name: &str, is_on: bool) {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&folders).any(|folder| folder.join("ethtool").is_file()) {
        return hosts.run_on(host, &["ethtool", "-K", "veth", name, if is_on { "on" } else { "off" }]);
    }
    // linux/ethtool.h: ETHTOOL_STSO, ETHTOOL_SGRO; linux/sockios.h: SIOCETHTOOL.
    let command = if name == "tso" { 0x1f } else { 0x2c };
    let script = format!(
        "import array,fcntl,socket,struct;v=array.array('B',struct.pack('II',{command},{}));\
         fcntl.ioctl(socket.socket(),0x8946,struct.pack('16sP8x',b'veth',v.buffer_info()[0]))",
        u8::from(is_on)
    );
    hosts.run_on(host, &["python3", "-c", &script]);
}

#[test]
fn every_packet_counts_with_and_without_merging_by_ipv4_and_ipv6() {
    const BYTES: usize = 3_000_000;
    let Some(_turn) = rig::ready(&["ip", "nsenter"]) else { return };
    let hosts = Hosts::new();
    for (tso, gro) in [(true, true), (true, false), (false, true), (false, false)] {
        for host in [SENDER, RECEIVER] {
            set_offload(&hosts, host, "tso", tso);
            set_offload(&hosts, host, "gro", gro);
        }
        for control in ["c2tcp", "cdbev2"] {
            let in_use = InUse::new(control);
            for to in [rig::address(RECEIVER), rig::address6(RECEIVER)] {
                let case = format!("{control} to {to}, TSO {tso}, GRO {gro}");
                let (mut stream, reader) = rig::connect(&hosts, to, |_| {});
                assert_eq!(rig::control_of(&stream), in_use.loaded.name(), "{case}");
                stream.write_all(&vec![7; BYTES]).unwrap();
                let (local, peer) = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
                if control == "cdbev2" {
                    let mss = rig::figure(&hosts, &in_use, SENDER, local, "mss");
                    let least = (BYTES as f64 / mss).ceil();
                    let arrived = || rig::figure(&hosts, &in_use, RECEIVER, peer, "arrived");
                    rig::until("all has arrived", || arrived() >= least);
                    // A write that ends in the middle of a segment, and what was sent again, count too.
                    assert!(arrived() < 1.2 * least + 20.0, "{case}: {} of {least}", arrived());
                    assert_eq!(rig::figure(&hosts, &in_use, SENDER, local, "agreed"), 1.0, "{case}");
                }
                drop(stream);
                assert_eq!(reader.join().unwrap(), BYTES, "{case}");
            }
        }
    }
}
