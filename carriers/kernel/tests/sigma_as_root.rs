//! SIGMA in the kernel by what a modem says: Max Start of a connection that begins while it is known, CUBIC without it and when it ends.
//! Needs root; whoever is not is told that this is skipped.
#![cfg(all(target_os = "linux", feature = "bpf"))]
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use ranpace_cc::RadioHint;
use ranpace_kernel::{Control, Hinted, Loaded};
use ranpace_phy::LteBandwidth;
use ranpace_rnis::CellInfo;
use ranpace_units::{Rate, Time};
use socket2::SockRef;

/// States as the program shows them.
const PLAIN: f64 = 0.0;
const HOLD: f64 = 4.0;

fn can_load() -> bool {
    let can = nix::unistd::geteuid().is_root() && std::path::Path::new("/sys/kernel/btf/vmlinux").exists();
    if !can {
        assert!(std::env::var_os("RANPACE_NO_SKIP").is_none(), "needs root and BTF");
        eprintln!("skipped: needs root and a kernel with BTF");
    }
    can
}

/// The kernel's monotonic clock.
fn now() -> Time {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap();
    Time::from_nanos(now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}

/// MCS 20 of 100 PRBs, of which this device has 40 and nobody 60: all of them are within its reach.
fn grants() -> RadioHint {
    RadioHint {
        mcs: 20,
        layers: 1,
        granted: 40.0,
        unused: 60.0,
        active_users: 1,
        tbs_bits: Some(10_000),
        ..RadioHint::of(CellInfo::lte(7, LteBandwidth::Mhz20), now())
    }
}

/// A connection of this control to this host, whose other end reads all; and what is seen of it.
struct Upload<'a> {
    loaded: &'a Loaded,
    stream: TcpStream,
    reader: thread::JoinHandle<usize>,
    local: SocketAddr,
    peer: SocketAddr,
    sent: usize,
}

impl<'a> Upload<'a> {
    fn new(loaded: &'a Loaded, host: SocketAddr) -> Self {
        let listener = TcpListener::bind(host).unwrap();
        let address = listener.local_addr().unwrap();
        let reader = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut buffer = vec![0; 1 << 16];
            let mut received = 0;
            loop {
                match stream.read(&mut buffer).unwrap() {
                    0 => return received,
                    n => received += n,
                }
            }
        });
        let stream = TcpStream::connect(address).unwrap();
        SockRef::from(&stream).set_tcp_congestion(loaded.name().as_bytes()).unwrap();
        let (local, peer) = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
        Self { loaded, stream, reader, local, peer, sent: 0 }
    }

    fn send(&mut self, bytes: usize) {
        self.stream.write_all(&vec![7; bytes]).unwrap();
        self.sent += bytes;
    }

    fn tell(&self, hint: &RadioHint) -> Hinted {
        self.loaded.hint(self.local, self.peer, hint).unwrap()
    }

    fn figure(&self, name: &str) -> f64 {
        let sockets = self.loaded.sockets().unwrap();
        let socket = sockets.iter().find(|socket| socket.local.ends_with(&format!(":{}", self.local.port())));
        socket.and_then(|socket| socket.figure(name)).unwrap_or_else(|| panic!("{name}: {sockets:?}"))
    }

    /// Sends now and then until a figure is as wanted; acknowledgements come when the machine has time for them.
    fn send_until(&mut self, what: &str, wanted: impl Fn(f64) -> bool, mut meanwhile: impl FnMut(&Self)) {
        let begun = Instant::now();
        while !wanted(self.figure(what)) {
            assert!(begun.elapsed() < Duration::from_secs(20), "{what} is {}", self.figure(what));
            meanwhile(self);
            self.send(20_000);
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn end(self) {
        drop(self.stream);
        assert_eq!(self.reader.join().unwrap(), self.sent, "all of it has come");
    }
}

#[test]
fn the_modems_grants_make_the_window_and_their_end_gives_it_to_cubic() {
    if !can_load() {
        return;
    }
    let name = format!("s{}", std::process::id());
    let loaded = Loaded::new(&Control::parse("sigma").unwrap(), &name).unwrap();
    for host in [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()] {
        let mut upload = Upload::new(&loaded, SocketAddr::new(host, 0));
        upload.send(10_000);
        assert_eq!(upload.figure("state"), PLAIN, "nothing is known");
        let nobody = SocketAddr::new(host, 9);
        assert_eq!(loaded.hint(nobody, upload.peer, &grants()).unwrap(), Hinted::NoSocket);
        // Ten hints in a row give SIGMA the window.
        upload.send_until(
            "state",
            |state| state != PLAIN,
            |upload| assert_eq!(upload.tell(&grants()), Hinted::Taken),
        );
        let whole = grants().info.rate(ranpace_phy::Direction::Uplink, 20, 1, 100.0);
        assert_eq!(Rate::from_bits_per_s(8 * upload.figure("c_max_Bps") as u64), whole, "{host}");
        assert_eq!(upload.figure("p_max_prbs"), 100.0);
        // A window of 2 W_max, which is below two segments on a path of this host's RTT; the hints go on.
        upload.send_until(
            "cwnd",
            |cwnd| cwnd <= 12.0,
            |upload| assert_eq!(upload.tell(&grants()), Hinted::Taken),
        );
        // Without news it is kept for a second, then CUBIC has it.
        upload.send_until("state", |state| state == HOLD || state == PLAIN, |_| {});
        upload.send_until("state", |state| state == PLAIN, |_| {});
        upload.send(1_000_000);
        upload.end();
    }
    drop(loaded);
}

#[test]
fn a_connection_that_begins_while_the_modem_is_heard_is_sigmas_at_once() {
    if !can_load() {
        return;
    }
    let name = format!("m{}", std::process::id());
    let loaded = Loaded::new(&Control::parse("sigma:rtt_min=20ms").unwrap(), &name).unwrap();
    let nobody = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
    let begun = Instant::now();
    loop {
        assert_eq!(loaded.hint(nobody, nobody, &grants()).unwrap(), Hinted::NoSocket);
        let upload = Upload::new(&loaded, SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0));
        let (state, cwnd, rtt) = (upload.figure("state"), upload.figure("cwnd"), upload.figure("min_rtt_us"));
        upload.end();
        // RTTmin is this host's, since it is smaller than what is known: W_max is below ten segments, the least of Max Start.
        assert!(rtt < 20_000.0, "{rtt}");
        // A busy machine may have let the hint become stale in between.
        if state == 1.0 {
            assert_eq!(cwnd, 10.0);
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "never in Max Start: {state}");
    }
}
