//! What a modem is granted reaches the receiver in the kernel, goes out as an option, and is read by the sender. Needs root; whoever
//! is not is told that this is skipped.
#![cfg(all(target_os = "linux", feature = "bpf"))]
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use ranpace_cc::RadioHint;
use ranpace_kernel::{Cgroup, Control, Hinted, Loaded};
use ranpace_phy::LteBandwidth;
use ranpace_rnis::CellInfo;
use ranpace_units::Time;

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
    if !nix::unistd::geteuid().is_root() {
        assert!(std::env::var_os("RANPACE_NO_SKIP").is_none(), "needs root");
        eprintln!("skipped: needs root");
        return;
    }
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
