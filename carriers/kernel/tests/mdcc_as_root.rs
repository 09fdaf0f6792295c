//! Multi-Domain control in the kernel by what a PEP says: CUBIC alone before, both windows as soon as it is heard. What is impossible is refused.
//! Needs root; whoever is not is told that this is skipped.
#![cfg(all(target_os = "linux", feature = "bpf"))]
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use ranpace_kernel::{Control, Loaded, PepSeen, Reported, Socket};
use socket2::SockRef;

/// A connection to this host, whose other end reads all.
fn connect(host: SocketAddr, name: &str) -> (TcpStream, thread::JoinHandle<usize>) {
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
    SockRef::from(&stream).set_tcp_congestion(name.as_bytes()).unwrap();
    (stream, reader)
}

#[test]
fn both_windows_count_while_a_pep_is_heard() {
    let can = nix::unistd::geteuid().is_root() && std::path::Path::new("/sys/kernel/btf/vmlinux").exists();
    if !can {
        assert!(std::env::var_os("RANPACE_NO_SKIP").is_none(), "needs root and BTF");
        eprintln!("skipped: needs root and a kernel with BTF");
        return;
    }
    let name = format!("d{}", std::process::id());
    let loaded = Loaded::new(&Control::parse("mdcc").unwrap(), &name).unwrap();
    for host in [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()] {
        let (mut stream, reader) = connect(SocketAddr::new(host, 0), &name);
        let (local, peer) = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
        let socket = || {
            let sockets = loaded.sockets().unwrap();
            let found = sockets.iter().find(|socket| socket.local.ends_with(&format!(":{}", local.port())));
            found.unwrap_or_else(|| panic!("{sockets:?}")).clone()
        };
        let figure =
            |socket: &Socket, name: &str| socket.figure(name).unwrap_or_else(|| panic!("{name}: {socket:?}"));
        let mut sent = 0;
        let mut until = |what: &str, wanted: &dyn Fn(&Socket) -> bool, hear: bool| {
            let begun = Instant::now();
            while !wanted(&socket()) {
                assert!(begun.elapsed() < Duration::from_secs(20), "{host}, {what}: {:?}", socket());
                stream.write_all(&[7; 20_000]).unwrap();
                sent += 20_000;
                if hear {
                    // What had left at the last acknowledgement has come by.
                    let seen = PepSeen { cumulative: figure(&socket(), "sent") as u32, ..PepSeen::default() };
                    assert_eq!(loaded.report(local, peer, &seen).unwrap(), Reported::Taken);
                }
                thread::sleep(Duration::from_millis(1));
            }
        };
        until("sending", &|socket| figure(socket, "delivered") >= 2.0, false);
        assert_eq!(figure(&socket(), "both"), 0.0, "CUBIC is alone");
        until("both windows", &|socket| figure(socket, "both") == 1.0, true);
        until(
            "the wired one grows",
            &|socket| figure(socket, "reports") >= 20.0 && figure(socket, "w_i") >= 10.0,
            true,
        );
        let found = socket();
        assert!(figure(&found, "w_r") > figure(&found, "w_i"), "the radio is open: {found:?}");
        assert_eq!(figure(&found, "cwnd"), figure(&found, "w_i").floor(), "the smaller one: {found:?}");
        // A PEP that claims what was never sent, and one whose ranges are in disorder.
        let end = figure(&found, "sent") as u32;
        for wrong in [
            PepSeen { cumulative: end.wrapping_add(1 << 30), ..PepSeen::default() },
            PepSeen { cumulative: end, ranges: vec![(end.wrapping_sub(9), end)], ..PepSeen::default() },
        ] {
            assert_eq!(loaded.report(local, peer, &wrong).unwrap(), Reported::Impossible, "{wrong:?}");
        }
        let nobody = SocketAddr::new(host, 9);
        assert_eq!(loaded.report(nobody, peer, &PepSeen::default()).unwrap(), Reported::NoSocket);
        drop(stream);
        assert_eq!(reader.join().unwrap(), sent, "all of it has come");
    }
}

#[test]
fn what_a_program_cannot_do_is_refused() {
    let refused = Control::parse("mdcc:early_retransmit=on").err().expect("it is refused").to_string();
    assert!(refused.contains("early_retransmit") && refused.contains("send a segment again"), "{refused}");
}
