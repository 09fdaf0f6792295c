//! Reductions that the kernel takes back, because nothing was lost: whatever the control, the window afterwards is one. Needs root; whoever
//! is not is told that this is skipped. (That an undone reduction costs nothing: front/cli/tests/kernel_paths.rs.)
#![cfg(all(target_os = "linux", feature = "bpf"))]
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

mod injection;
mod rig;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use libbpf_rs::{MapCore as _, ObjectBuilder};
use ranpace_kernel::KINDS;
use socket2::SockRef;

use rig::{Hosts, InUse, KernelLog, RECEIVER, SENDER};

/// The control that leaves a window and a threshold which are none.
const STALE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/stale.bpf.o"));
/// What it leaves.
const NO_WINDOW: f64 = 0x8220_28e5_u32 as f64;
/// The threshold of a connection that has had no loss (TCP_INFINITE_SSTHRESH).
const INFINITE: f64 = 0x7fff_ffff as f64;
/// More segments than the memory of a socket holds (tcp_wmem, 4 MB).
const MOST: f64 = 4096.0;
/// Readings, 10 ms apart, until the next acknowledgement has come for certain.
const MENDED_WITHIN: usize = 10;
/// Rate of the link.
const RATE: &str = "40mbit";
/// A segment that comes so late has been taken for lost.
const LATE: Duration = Duration::from_millis(30);

/// How often the sender's kernel has taken a reduction back: after losses, and after timeouts.
fn undone(hosts: &Hosts) -> (u64, u64) {
    let text =
        hosts.on(SENDER, || fs::read_to_string("/proc/thread-self/net/netstat").unwrap()).join().unwrap();
    let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let of = |wanted| {
        let at = names.split(' ').position(|name| name == wanted).unwrap();
        values.split(' ').nth(at).unwrap().parse::<u64>().unwrap()
    };
    (of("TCPFullUndo") + of("TCPPartialUndo") + of("TCPDSACKUndo"), of("TCPLossUndo"))
}

#[test]
fn reductions_are_taken_back_to_a_window() {
    let Some(_turn) = rig::ready(&["ip", "nsenter", "nft", "tc"]) else { return };
    let mut log = KernelLog::new();
    for kind in KINDS {
        let hosts = Hosts::new();
        hosts.limit(RATE);
        hosts.run_on(SENDER, &["ip", "link", "set", "veth", "gso_max_segs", "1"]);
        let in_use = InUse::new(kind.name);
        let (mut stream, reader) = rig::connect(&hosts, rig::address(RECEIVER), |_| {});
        let (local, peer) = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
        let (mut written, mut largest) = (0, 0.0_f64);
        let mut send_for = |time: Duration| {
            let begun = Instant::now();
            while begun.elapsed() < time {
                written += rig::write_for(&mut stream, Duration::from_millis(10));
                // A kernel that skips a program takes a stale word for the window (docs/kernel.md); the next acknowledgement replaces it.
                let is_sane = |cwnd: &f64| (1.0..=MOST).contains(cwnd);
                let read = || rig::figure(&hosts, &in_use, SENDER, local, "cwnd");
                let mut cwnd = read();
                for _ in 0..MENDED_WITHIN {
                    if is_sane(&cwnd) {
                        break;
                    }
                    written += rig::write_for(&mut stream, Duration::from_millis(10));
                    cwnd = read();
                }
                assert!(is_sane(&cwnd), "{}: a window of {cwnd}", kind.name);
                largest = largest.max(cwnd);
            }
        };
        let stop = Arc::new(AtomicBool::new(false));
        let late = injection::send_late(&hosts, Arc::clone(&stop), LATE, local.port(), peer.port());
        send_for(Duration::from_secs(2));
        stop.store(true, Ordering::SeqCst);
        let delayed = late.join().unwrap();
        hosts.run_on(RECEIVER, &["nft", "flush", "ruleset"]);
        send_for(Duration::from_secs(1));
        // Longer than the timeout; a probe may come before it, and its answer.
        for _ in 0..5 {
            thread::scope(|scope| {
                scope.spawn(|| hosts.hold_answers(Duration::from_millis(600)));
                send_for(Duration::from_millis(1000));
            });
            if undone(&hosts).1 > 0 {
                break;
            }
        }
        let (losses, timeouts) = undone(&hosts);
        drop(stream);
        assert_eq!(reader.join().unwrap(), written, "{}", kind.name);
        eprintln!(
            "{}: {delayed} late; {losses} recoveries and {timeouts} timeouts undone; windows up to {largest}",
            kind.name
        );
        assert!(losses > 0, "{}: no segment that was late was taken for lost", kind.name);
        assert!(timeouts > 0, "{}: no timeout was taken back", kind.name);
    }
    assert_eq!(log.complaints(), Vec::<String>::new());
}

#[test]
fn a_window_and_a_threshold_that_no_control_wrote_are_replaced_with_the_next_acknowledgement() {
    let Some(_turn) = rig::ready(&[]) else { return };
    let mut object = ObjectBuilder::default().open_memory(STALE).unwrap().load().unwrap();
    let _stale = object.maps_mut().find(|map| map.name() == "stale").unwrap().attach_struct_ops().unwrap();
    for kind in KINDS {
        let in_use = InUse::new(kind.name);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        let local: SocketAddr = stream.local_addr().unwrap();
        let figure = |name| {
            let sockets = in_use.loaded.sockets().unwrap();
            let socket = sockets.iter().find(|socket| socket.local == local.to_string()).unwrap();
            socket.figure(name).unwrap()
        };
        SockRef::from(&stream).set_tcp_congestion(b"ranpace_stale").unwrap();
        assert_eq!((figure("cwnd"), figure("ssthresh")), (NO_WINDOW, NO_WINDOW), "{}", kind.name);
        SockRef::from(&stream).set_tcp_congestion(in_use.loaded.name().as_bytes()).unwrap();
        stream.write_all(&[7; 20_000]).unwrap();
        peer.read_exact(&mut [0; 20_000]).unwrap();
        // The acknowledgement may be on its way.
        rig::until("the window is one", || figure("cwnd") <= MOST);
        assert!(figure("cwnd") >= 1.0, "{}", kind.name);
        assert!((2.0..=INFINITE).contains(&figure("ssthresh")), "{}: {}", kind.name, figure("ssthresh"));
    }
}
