//! TCP Fast Open (RFC 7413): data on a SYN leave no room for the option of client-driven controls, or come with it; either way the
//! connection has its control, and all bytes arrive. Where rights are missing this test says so and ends.
#![cfg(all(target_os = "linux", feature = "bpf"))]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a panic is a failed test")]

mod rig;

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt};
use socket2::{Domain, Socket, Type};

use rig::{
    Hosts, InUse, KernelLog, RECEIVER, SENDER, address, control_of, figure, read_all, ready, until, write_for,
};

/// How often something happened on a host, by the kernel's name of it.
fn counter(hosts: &Hosts, host: usize, name: &'static str) -> u64 {
    let read = move || {
        let text = std::fs::read_to_string("/proc/thread-self/net/netstat").unwrap();
        let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
        let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
        let mut pairs = names.split(' ').zip(values.split(' '));
        pairs.find(|(found, _)| *found == name).unwrap().1.parse().unwrap()
    };
    hosts.on(host, read).join().unwrap()
}

/// A connection whose first data are on its SYN, where the client has a cookie.
fn connect(hosts: &Hosts, to: SocketAddr) -> TcpStream {
    let begin = move || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        setsockopt(&socket, sockopt::TcpFastOpenConnect, &true).unwrap();
        socket.connect(&to.into()).unwrap();
        let mut stream = TcpStream::from(socket);
        std::io::Write::write_all(&mut stream, &[1; 500]).unwrap();
        stream
    };
    hosts.on(SENDER, begin).join().unwrap()
}

#[test]
fn connections_by_fast_open_have_their_control_and_all_their_bytes() {
    let Some(_turn) = ready(&["ip", "nsenter"]) else { return };
    let mut log = KernelLog::new();
    for control in ["c2tcp", "cdbev2", "dcic", "cubic+meld-me", "mdcc"] {
        let hosts = Hosts::new();
        // Every listener takes it, without asking for it.
        hosts.run_on(RECEIVER, &["sysctl", "-q", "-w", "net.ipv4.tcp_fastopen=1027"]);
        let in_use = InUse::new(control);
        let bound = || TcpListener::bind(SocketAddr::new(address(RECEIVER), 0)).unwrap();
        let listener = hosts.on(RECEIVER, bound).join().unwrap();
        let to = listener.local_addr().unwrap();
        for number in 0..3 {
            let on = listener.try_clone().unwrap();
            let reader = thread::spawn(move || read_all(&on, |_| {}));
            let mut stream = connect(&hosts, to);
            let written = 500 + write_for(&mut stream, Duration::from_millis(300));
            assert_eq!(control_of(&stream), in_use.loaded.name(), "{control}");
            if ["cdbev2", "dcic"].contains(&control) {
                let (local, peer) = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
                until("the sender knows that the receiver has the option", || {
                    figure(&hosts, &in_use, SENDER, local, "agreed") > 0.0
                });
                // The listener has the same port.
                println!("{control}, {peer}: {}", figure(&hosts, &in_use, SENDER, local, "reports"));
            }
            drop(stream);
            assert_eq!(reader.join().unwrap(), written, "{control}, connection {number}");
        }
        // The first one asks for the cookie.
        let [active, passive] = [(SENDER, "TCPFastOpenActive"), (RECEIVER, "TCPFastOpenPassive")]
            .map(|(host, name)| counter(&hosts, host, name));
        assert!(active >= 2 && passive >= 2, "{control}: {active}, {passive}");
    }
    assert_eq!(log.complaints(), Vec::<String>::new());
}
