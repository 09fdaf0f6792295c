//! Updates inside the running kernel: a new process takes the place of a running one, or has listeners that somebody keeps for it. Needs
//! root; whoever is not is told that this is skipped.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

mod rig;

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_setfd};
use socket2::{Domain, Socket, Type};

use rig::{Host, Hosts, PORT, SERVER, Wish, ready, receive, run_proxy, send, until};

/// Clients that open short connections one after another, before and after an update.
const CLIENTS: usize = 12;
const BEFORE: Duration = Duration::from_millis(500);

#[test]
#[ignore = "the process of a proxy, which the other tests start"]
fn proxy_process() {
    run_proxy();
}

#[test]
fn an_update_loses_no_connection() {
    let Some(_turn) = ready() else { return };
    let hosts = Hosts::new();
    hosts.serve();
    for handshake in ["exact", "accept-first"] {
        let mut old = hosts.proxy(&format!("handshake = {handshake:?}"), "");
        let wish = Wish { up: 5, ..Wish::download(300_000) };
        let held: Vec<TcpStream> = (0..20).map(|_| hosts.ask(wish).unwrap()).collect();
        let (stop, complete) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let (stop, complete) = (Arc::clone(&stop), Arc::clone(&complete));
                hosts.at(Host::Client, move || {
                    while !stop.load(Ordering::Relaxed) {
                        short();
                        complete.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        thread::sleep(BEFORE);
        let before = complete.load(Ordering::Relaxed);
        let new = hosts.successor(&old);
        let during = complete.load(Ordering::Relaxed) - before;
        thread::sleep(BEFORE);
        stop.store(true, Ordering::Relaxed);
        // A client that has lost a connection panics.
        clients.into_iter().for_each(|client| client.join().unwrap());
        let after = complete.load(Ordering::Relaxed) - before - during;
        eprintln!(
            "{handshake}: {before} connections before, {during} while the new process started, {after} after"
        );
        assert!(before > 100 && after > 100);
        // What was split stays with the old process, which ends with it.
        for mut stream in held {
            send(&mut stream, 5, !wish.seed).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            assert_eq!(receive(&mut stream, wish.seed, || ()).unwrap(), wish.down);
        }
        assert!(old.ended());
        until("all connections have ended", || new.shown().connections == 0 && new.shown().handshakes == 0);
        let _split = hosts.ask(wish).unwrap();
        until("the new process splits connections", || new.shown().connections == 1);
    }
}

fn short() {
    let mut stream = TcpStream::connect(SocketAddr::new(SERVER[0], PORT)).unwrap();
    stream.write_all(&Wish::download(64).bytes()).unwrap();
    assert_eq!(receive(&mut stream, 64, || ()).unwrap(), 64);
}

#[test]
fn a_proxy_of_another_port_or_that_drains_does_not_hand_over_and_goes_on() {
    let Some(_turn) = ready() else { return };
    let hosts = Hosts::new();
    hosts.serve();
    let old = hosts.proxy("", "");
    let text = std::fs::read_to_string(&old.config).unwrap();
    std::fs::write(&old.config, format!("port = 5251\n{text}")).unwrap();
    let refused = hosts.refused_successor(&old);
    assert!(refused.contains("port 5250") && refused.contains("must stay"), "{refused}");
    let _split = hosts.ask(Wish { up: 1, ..Wish::download(10) }).unwrap();
    until("the old one goes on", || old.shown().connections == 1);
}

#[test]
fn listeners_that_somebody_keeps_are_used() {
    let Some(_turn) = ready() else { return };
    let hosts = Hosts::new();
    hosts.serve();
    let sockets = hosts.at(Host::Proxy, || {
        [("0.0.0.0:5250", Domain::IPV4), ("[::]:5250", Domain::IPV6)].map(|(address, domain)| {
            let socket = Socket::new(domain, Type::STREAM, None).unwrap();
            if domain == Domain::IPV6 {
                socket.set_only_v6(true).unwrap();
            }
            socket.bind(&address.parse::<SocketAddr>().unwrap().into()).unwrap();
            socket.listen(4096).unwrap();
            fcntl_setfd(&socket, FdFlags::empty()).unwrap(); // for the process that is started
            socket
        })
    });
    let sockets = sockets.join().unwrap();
    let [v4, v6] = [0, 1].map(|place| sockets[place].as_raw_fd());
    // As a service manager does it: descriptors 3 and 4, and the number of the process that they are for.
    let command = format!("export LISTEN_PID=$$ LISTEN_FDS=2; exec \"$@\" 3<&{v4} 4<&{v6}");
    for handshake in ["exact", "accept-first"] {
        let keys = format!("handshake = {handshake:?}");
        let proxy = hosts.proxy_under(&["bash", "-c", &command, "bash"], &keys, "");
        for v6 in [false, true] {
            let mut stream = hosts.ask(Wish { v6, ..Wish::download(300_000) }).unwrap();
            assert_eq!(receive(&mut stream, 300_000, || ()).unwrap(), 300_000);
        }
        let mut split = hosts.ask(Wish { up: 1, ..Wish::download(10) }).unwrap();
        until("a connection is split", || proxy.shown().connections == 1);
        drop(proxy);
        // The process is gone, and its listeners are not: new connections pass all the same.
        assert!(split.read(&mut [0]).is_err(), "it was reset");
        thread::sleep(Duration::from_millis(700));
        let mut passing = hosts.ask(Wish::download(1_000)).unwrap();
        assert_eq!(receive(&mut passing, 1_000, || ()).unwrap(), 1_000);
    }
}
