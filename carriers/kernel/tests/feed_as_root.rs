//! What a modem is granted reaches the receiver in the kernel, goes out as an option, and is read by the sender. Needs root; whoever
//! is not is told that this is skipped.
#![cfg(all(target_os = "linux", feature = "bpf"))]
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use ranpace_cc::RadioHint;
use ranpace_kernel::{Cgroup, Control, DeviceConnections, Hinted, Loaded};
use ranpace_phy::LteBandwidth;
use ranpace_rnis::CellInfo;
use ranpace_units::Time;

/// The right to load programs, one test after another: a process is in one control group. Says why there is none.
fn turn() -> Option<MutexGuard<'static, ()>> {
    static TURN: Mutex<()> = Mutex::new(());
    if nix::unistd::geteuid().is_root() {
        return Some(TURN.lock().unwrap_or_else(PoisonError::into_inner));
    }
    assert!(std::env::var_os("RANPACE_NO_SKIP").is_none(), "needs root");
    eprintln!("skipped: needs root");
    None
}

/// The kernel's monotonic clock.
fn now() -> Time {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap();
    Time::from_nanos(now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}

/// CQI 7 of 100 PRBs: half of what half of them carry, rBW_0 (Zhong 2020, equation 5.9), is 4.873 Mbit/s.
fn quality() -> RadioHint {
    RadioHint { cqi: Some(7), layers: 1, ..RadioHint::of(CellInfo::lte(0, LteBandwidth::Mhz20), now()) }
}

/// A connection to this host, whose other end reads all.
fn connect(address: SocketAddr) -> (TcpStream, thread::JoinHandle<usize>) {
    let listener = TcpListener::bind(address).unwrap();
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
    (TcpStream::connect(address).unwrap(), reader)
}

#[test]
fn a_senders_control_hears_what_the_receivers_modem_measures() {
    let Some(_turn) = turn() else { return };
    for algorithm in ["dcic", "cqic-s"] {
        let name = format!("f{}", std::process::id());
        let loaded = Loaded::new(&Control::parse(algorithm).unwrap(), &name).unwrap();
        let cgroup = Cgroup::new().unwrap();
        let link = loaded.attach(cgroup.path(), None).unwrap();
        for host in [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()] {
            cgroup.enter().unwrap();
            let (mut stream, reader) = connect(SocketAddr::new(host, 0));
            stream.write_all(&[7; 10_000]).unwrap();
            let (sender, receiver) = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
            assert_eq!(
                loaded.hint(receiver, sender, &quality()).unwrap(),
                Hinted::Taken,
                "{algorithm}, {host}"
            );
            let nobody = SocketAddr::new(host, 9);
            assert_eq!(loaded.hint(nobody, sender, &quality()).unwrap(), Hinted::NoSocket);
            let figure = |name: &str| {
                let sockets = loaded.sockets().unwrap();
                let socket =
                    sockets.iter().find(|socket| socket.local.ends_with(&format!(":{}", sender.port())));
                socket.and_then(|socket| socket.figure(name)).unwrap_or_else(|| panic!("{name}: {sockets:?}"))
            };
            stream.write_all(&[7; 200_000]).unwrap();
            // The acknowledgements carry the report; they come when the machine has time for them.
            let begun = Instant::now();
            while figure("reports") < 1.0 && begun.elapsed() < Duration::from_secs(20) {
                thread::yield_now();
            }
            assert!(figure("agreed") == 1.0 && figure("reports") >= 1.0, "{algorithm}, {host}");
            assert_eq!(figure("report_Bps"), 609_125.0, "{algorithm}, {host}: 4873 kbit/s");
            drop(stream);
            assert_eq!(reader.join().unwrap(), 210_000);
            cgroup.leave().unwrap();
        }
        drop(link);
    }
}

#[test]
fn connections_of_a_pinned_control_are_found_and_told() {
    let Some(_turn) = turn() else { return };
    let name = format!("q{}", std::process::id());
    let mut loaded = Loaded::new(&Control::parse("dcic").unwrap(), &name).unwrap();
    loaded.pin().unwrap();
    drop(loaded);
    let mut receivers = DeviceConnections::pinned(&name).unwrap();
    assert_eq!(receivers.refresh().unwrap(), 0);
    let (stream, reader) = connect(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0));
    socket2::SockRef::from(&stream).set_tcp_congestion(name.as_bytes()).unwrap();
    assert_eq!(receivers.refresh().unwrap(), 1);
    let mut tell = |address: Option<&str>| {
        receivers.hint(address.map(|address| address.parse().unwrap()), &quality()).unwrap()
    };
    assert_eq!([tell(None), tell(Some("127.0.0.1")), tell(Some("192.0.2.1"))], [1, 1, 0]);
    // What closes, and what has another control, is told nothing.
    socket2::SockRef::from(&stream).set_tcp_congestion(b"reno").unwrap();
    drop(stream);
    reader.join().unwrap();
    ranpace_kernel::unload(&name).unwrap();
    assert!(DeviceConnections::pinned(&name).is_err());
    let mut plain = Loaded::new(&Control::parse("c2tcp").unwrap(), &name).unwrap();
    assert!(plain.device_connections().is_err(), "it takes no radio information");
    plain.pin().unwrap();
    assert!(DeviceConnections::pinned(&name).is_err());
    ranpace_kernel::unload(&name).unwrap();
}

#[test]
fn a_program_that_chooses_the_control_itself_has_its_option_and_others_are_left_alone() {
    let Some(_turn) = turn() else { return };
    let name = format!("o{}", std::process::id());
    let loaded = Loaded::new(&Control::parse("cdbev2").unwrap(), &name).unwrap();
    let cgroup = Cgroup::new().unwrap();
    let link = loaded.attach_to_own(cgroup.path()).unwrap();
    cgroup.enter().unwrap();
    for (asked, agreed) in [(Some(name.as_str()), true), (None, false)] {
        let listener = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        let stream = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        for socket in [&listener, &stream] {
            asked.iter().for_each(|name| socket.set_tcp_congestion(name.as_bytes()).unwrap());
        }
        listener.bind(&SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0).into()).unwrap();
        listener.listen(1).unwrap();
        stream.connect(&listener.local_addr().unwrap()).unwrap();
        let (receiver, _) = listener.accept().unwrap();
        let (mut stream, mut receiver) = (TcpStream::from(stream), TcpStream::from(receiver));
        stream.write_all(&[7; 10_000]).unwrap();
        receiver.read_exact(&mut [0; 10_000]).unwrap();
        let control = socket2::SockRef::from(&stream).tcp_congestion().unwrap();
        assert_eq!(control.starts_with(name.as_bytes()), agreed);
        let port = format!(":{}", stream.local_addr().unwrap().port());
        let sockets = loaded.sockets().unwrap();
        let socket = sockets.iter().find(|socket| socket.local.ends_with(&port));
        assert_eq!(socket.and_then(|socket| socket.figure("agreed")), agreed.then_some(1.0));
    }
    cgroup.leave().unwrap();
    drop(link);
}
