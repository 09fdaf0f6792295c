//! RAPID's sender in the kernel: its window is what was allocated to the connection. Needs root; whoever is not is told that this is
//! skipped.
#![cfg(all(target_os = "linux", feature = "bpf"))]
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

mod lossy;

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use ranpace_cc::Allocation;
use ranpace_kernel::{Allocations, Control, Loaded, Socket};
use ranpace_units::{Bytes, Rate};
use socket2::SockRef;

use lossy::with_losses;

fn is_root() -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        assert!(std::env::var_os("RANPACE_NO_SKIP").is_none(), "needs root");
        eprintln!("skipped: needs root");
    }
    root
}

/// A connection to this host, whose other end reads all and says so.
struct Connection {
    stream: TcpStream,
    reader: thread::JoinHandle<()>,
}

impl Connection {
    fn new(host: SocketAddr) -> Self {
        let listener = TcpListener::bind(host).unwrap();
        let address = listener.local_addr().unwrap();
        let reader = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut buffer = vec![0; 1 << 16];
            while let n @ 1.. = stream.read(&mut buffer).unwrap() {
                // An answer for each byte of a one, which asks for it.
                let asked = buffer[..n].iter().filter(|&&byte| byte == 1).count();
                stream.write_all(&vec![1; asked]).unwrap();
            }
        });
        Self { stream: TcpStream::connect(address).unwrap(), reader }
    }

    /// Sends so many bytes, and waits until they have come.
    fn send(&mut self, bytes: usize) {
        self.stream.write_all(&vec![7; bytes]).unwrap();
        self.stream.write_all(&[1]).unwrap();
        self.stream.read_exact(&mut [0]).unwrap();
    }

    /// What the control says of it, once this is so.
    fn shown(&self, loaded: &Loaded, is_so: impl Fn(&Socket) -> bool) -> Socket {
        let port = format!(":{}", self.stream.local_addr().unwrap().port());
        let begun = Instant::now();
        loop {
            let sockets = loaded.sockets().unwrap();
            let socket = sockets.into_iter().find(|socket| socket.local.ends_with(&port)).unwrap();
            if is_so(&socket) {
                return socket;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "{socket:?}");
            thread::yield_now();
        }
    }

    fn end(self) {
        drop(self.stream);
        self.reader.join().unwrap();
    }
}

fn allocation(mbit_s: u64, window: u64) -> Option<Allocation> {
    Some(Allocation { rate: Rate::from_bits_per_s(mbit_s * 1_000_000), window: Bytes::new(window) })
}

#[test]
fn the_window_is_what_was_allocated_and_cubics_afterwards() {
    if !is_root() {
        return;
    }
    let name = format!("w{}", std::process::id());
    let loaded = Loaded::new(&Control::parse("rapid").unwrap(), &name).unwrap();
    let allocations = Allocations::of(&loaded).unwrap();
    // The last place there is, too.
    for (host, place) in
        [(Ipv4Addr::LOCALHOST.into(), 0), (Ipv6Addr::LOCALHOST.into(), allocations.places() - 1)]
    {
        let mut connection = Connection::new(SocketAddr::new(host, 0));
        SockRef::from(&connection.stream).set_tcp_congestion(name.as_bytes()).unwrap();
        allocations.assign(&connection.stream, place).unwrap();
        connection.send(3_000_000);
        let plain = connection.shown(&loaded, |_| true);
        assert_eq!(plain.figure("driven"), Some(0.0), "{plain:?}");
        for window in [3_000_000, 500_000, 5_000_000, 10] {
            allocations.write(place, allocation(80, window));
            connection.send(3_000_000);
            let socket = connection.shown(&loaded, |socket| {
                socket.figure("allocation_bytes") == Some(window as f64)
                    && socket.figure("driven") == Some(1.0)
            });
            let segments = (window as f64 / socket.figure("mss").unwrap()).floor().max(1.0);
            assert_eq!(socket.figure("cwnd"), Some(segments), "{window}: {socket:?}");
        }
        // CUBIC goes on from the window that it finds, in slow start.
        allocations.write(place, None);
        connection.send(3_000_000);
        let socket = connection.shown(&loaded, |socket| socket.figure("driven") == Some(0.0));
        assert!(socket.figure("cwnd").unwrap() > 1.0, "{socket:?}");
        // Without its place the connection takes no notice of what another one is allocated there.
        allocations.take_back(&connection.stream).unwrap();
        allocations.write(place, allocation(80, 100_000));
        connection.send(3_000_000);
        assert_eq!(connection.shown(&loaded, |_| true).figure("driven"), Some(0.0));
        connection.end();
    }
}

#[test]
fn an_allocation_before_the_first_data_holds_from_the_beginning_and_sets_the_pace() {
    if !is_root() {
        return;
    }
    let name = format!("a{}", std::process::id());
    let loaded = Loaded::new(&Control::parse("rapid:pacing").unwrap(), &name).unwrap();
    let allocations = Allocations::of(&loaded).unwrap();
    let mut connection = Connection::new((Ipv4Addr::LOCALHOST, 0).into());
    // Small segments: a pace is at least one of them in an RTT, which is short here.
    SockRef::from(&connection.stream).set_tcp_mss(536).unwrap();
    allocations.write(7, allocation(400, 400_000));
    allocations.assign(&connection.stream, 7).unwrap();
    SockRef::from(&connection.stream).set_tcp_congestion(name.as_bytes()).unwrap();
    let socket = connection.shown(&loaded, |_| true);
    assert_eq!(socket.figure("driven"), Some(1.0), "{socket:?}");
    let begun = Instant::now();
    connection.send(20_000_000);
    let took = begun.elapsed().as_secs_f64();
    let socket = connection.shown(&loaded, |_| true);
    let [mss, rtt_us, pace] = ["mss", "rtt_min_us", "pacing_Bps"].map(|name| socket.figure(name).unwrap());
    let most = 50e6_f64.max(mss * 1e6 / rtt_us);
    assert!((50e6..=most).contains(&pace), "{socket:?}");
    // The kernel does not pace the first ten segments.
    assert!(took > 0.7 * 20e6 / most, "{took}: {socket:?}");
    allocations.write(7, None);
    connection.send(100_000);
    let socket = connection.shown(&loaded, |socket| socket.figure("driven") == Some(0.0));
    assert!(socket.figure("pacing_Bps") != Some(pace), "{socket:?}");
    connection.end();
}

#[test]
fn random_losses_do_not_change_an_allocated_window() {
    with_losses(|| {
        let name = format!("l{}", std::process::id());
        let loaded = Loaded::new(&Control::parse("rapid").unwrap(), &name).unwrap();
        let allocations = Allocations::of(&loaded).unwrap();
        let mut connection = Connection::new((Ipv4Addr::LOCALHOST, 7000).into());
        SockRef::from(&connection.stream).set_tcp_congestion(name.as_bytes()).unwrap();
        allocations.assign(&connection.stream, 0).unwrap();
        for (window, is_driven) in [(Some(100_000), true), (Some(30_000), true), (None, false)] {
            let allocated = window.and_then(|window| allocation(80, window));
            allocations.write(0, allocated);
            let before = connection.shown(&loaded, |_| true).figure("lost").unwrap();
            connection.send(2_000_000);
            let socket = connection.shown(&loaded, |_| true);
            assert!(socket.figure("lost").unwrap() > before, "{socket:?}");
            assert_eq!(socket.figure("driven"), Some(f64::from(u8::from(is_driven))), "{socket:?}");
            if let Some(window) = window {
                let segments = (window as f64 / socket.figure("mss").unwrap()).floor();
                assert_eq!(socket.figure("cwnd"), Some(segments), "{socket:?}");
            } else {
                assert!(socket.figure("ssthresh").unwrap() < 1000.0, "CUBIC has answered: {socket:?}");
            }
        }
        connection.end();
    });
}
