//! The proxy inside the running kernel, between a client and a server in network namespaces. Needs root; whoever is not is told that
//! this is skipped.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

mod rig;

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use ranpace_proxy::client::ask_drain;
use ranpace_proxy::{Config, Rules};
use socket2::{Domain, Socket, Type};

use rig::radio::{LTE_CAPACITY as CAPACITY, PlayedCell, Radio};
use rig::{
    CLIENT, Content, Host, Hosts, PATIENCE, PORT, SERVER, Wish, ready, receive, run, run_proxy, send,
    transfer, until,
};

/// A moment, in which nothing has to be waited for. A SYN that was lost would be repeated after a second.
const AT_ONCE: Duration = Duration::from_millis(900);
/// `limits.flow_buffer` of tests of readers that stall.
const FLOW_BUFFER: u64 = 256 << 10;

#[test]
#[ignore = "the process of a proxy, which the other tests start"]
fn proxy_process() {
    run_proxy();
}

#[test]
fn two_thousand_transfers_arrive_whole_while_readers_stall_and_ends_reset() {
    let Some(_turn) = ready() else { return };
    let hosts = Hosts::new();
    hosts.serve();
    let proxy = hosts.proxy("", "");
    let threads: Vec<_> = (0..20)
        .map(|thread: u64| {
            hosts.at(Host::Client, move || {
                for number in 0..100 {
                    transfer(thread * 100 + number);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    until("all connections have ended", || proxy.shown().connections == 0);
    let shown = proxy.shown();
    assert_eq!((shown.handshakes, shown.backlog_bytes), (0, 0), "{shown:?}");
}

#[test]
fn a_client_sees_what_the_server_does_and_the_server_sees_the_client() {
    let Some(_turn) = ready() else { return };
    let hosts = Hosts::new();
    let proxy = hosts.proxy("", "");
    for (server, client) in SERVER.into_iter().zip(CLIENT) {
        // Nobody listens.
        let begun = Instant::now();
        let refused = hosts.connect(SocketAddr::new(server, 5999)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        assert!(begun.elapsed() < AT_ONCE, "refused after {:?}", begun.elapsed());
        // Both ends' addresses and the client's port are kept.
        let listener =
            hosts.at(Host::Server, move || TcpListener::bind((server, PORT)).unwrap()).join().unwrap();
        let mut stream = hosts.connect(SocketAddr::new(server, PORT)).unwrap();
        let (mut accepted, from) = listener.accept().unwrap();
        assert_eq!((from.ip(), from), (client, stream.local_addr().unwrap()));
        // A server that speaks first, and both halves.
        accepted.write_all(b"hello").unwrap();
        accepted.shutdown(Shutdown::Write).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        stream.write_all(b"and good bye").unwrap();
        drop(stream);
        let mut answer = String::new();
        accepted.read_to_string(&mut answer).unwrap();
        assert_eq!((text.as_str(), answer.as_str()), ("hello", "and good bye"));
    }
    // Nobody is there; the kernel says so after three attempts to find it.
    let begun = Instant::now();
    let unreachable = hosts.connect("10.91.2.77:5001".parse().unwrap()).unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(8), "unreachable after {:?}", begun.elapsed());
    assert_eq!(unreachable.kind(), ErrorKind::HostUnreachable);
    until("all handshakes are over", || proxy.shown().handshakes == 0);
}

#[test]
fn accepted_first_the_client_of_a_server_that_refuses_is_reset() {
    let Some(_turn) = ready() else { return };
    let hosts = Hosts::new();
    hosts.serve();
    let _proxy = hosts.proxy("handshake = \"accept-first\"", "");
    for v6 in [false, true] {
        let mut stream = hosts.ask(Wish { v6, ..Wish::download(300_000) }).unwrap();
        assert_eq!(receive(&mut stream, 300_000, || ()).unwrap(), 300_000);
        let stream = hosts.connect(SocketAddr::new(SERVER[usize::from(v6)], 5999));
        assert_eq!(first_byte(stream).unwrap_err().kind(), ErrorKind::ConnectionReset);
    }
}

/// Reads from a connection that may have been reset already.
fn first_byte(stream: std::io::Result<TcpStream>) -> std::io::Result<usize> {
    stream.and_then(|mut stream| stream.read(&mut [0]))
}

#[test]
fn a_killed_proxy_resets_its_connections_and_new_ones_pass_at_once() {
    let Some(_turn) = ready() else { return };
    let hosts = Hosts::new();
    hosts.serve();
    let mut proxy = hosts.proxy("", "");
    // More than the sockets hold.
    let mut cut = hosts.ask(Wish::download(200_000_000)).unwrap();
    cut.read_exact(&mut [0; 100_000]).unwrap();
    assert_eq!(proxy.shown().connections, 1);
    proxy.signal(Signal::SIGKILL);
    proxy.ended();
    let begun = Instant::now();
    let mut passing = hosts.ask(Wish::download(500_000)).unwrap();
    assert!(begun.elapsed() < AT_ONCE, "passed after {:?}", begun.elapsed());
    assert_eq!(receive(&mut passing, 500_000, || ()).unwrap(), 500_000);
    let error = std::io::copy(&mut cut, &mut std::io::sink()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    // What it left does no harm, and can be removed.
    assert_ne!(hosts.leavings(), "");
    let early =
        || run(&format!("ip netns exec {} sysctl -n net.ipv4.tcp_early_demux", hosts.name(Host::Proxy)));
    assert_eq!(early(), "0\n");
    // A successor, which is killed, too, does not take for the system's own what the first one has set.
    drop(hosts.proxy("", ""));
    let config = proxy.config.clone();
    hosts
        .at(Host::Proxy, move || Rules::new(&Config::read(&config).unwrap()).remove().unwrap())
        .join()
        .unwrap();
    assert_eq!((hosts.leavings().as_str(), early().as_str()), ("", "1\n"));
}

#[test]
fn a_proxy_that_hangs_lets_new_connections_pass_and_none_is_taken_twice() {
    let Some(_turn) = ready() else { return };
    let hosts = Hosts::new();
    hosts.serve();
    let proxy = hosts.proxy("", "");
    proxy.stop();
    let begun = Instant::now();
    // Its first SYN is held. Its second one passes, a second later; a third one would follow after two seconds.
    let mut stream = hosts.ask(Wish::download(500_000)).unwrap();
    assert!(begun.elapsed() < Duration::from_millis(1_900), "passed after {:?}", begun.elapsed());
    let begun = Instant::now();
    let mut at_once = hosts.ask(Wish::download(500_000)).unwrap();
    assert!(begun.elapsed() < AT_ONCE, "passed after {:?}", begun.elapsed());
    assert_eq!(receive(&mut at_once, 500_000, || ()).unwrap(), 500_000);
    proxy.signal(Signal::SIGCONT);
    until("the proxy answers", || proxy.shown().handshakes == 0);
    assert_eq!(receive(&mut stream, 500_000, || ()).unwrap(), 500_000);
    assert_eq!(proxy.shown().connections, 0);
    until("it splits connections again", || {
        let _stream = hosts.connect(SocketAddr::new(SERVER[0], PORT)).unwrap();
        proxy.shown().connections > 0
    });
}

#[test]
fn connections_that_are_older_stay_and_a_drained_proxy_leaves_nothing() {
    let Some(_turn) = ready() else { return };
    let hosts = Hosts::new();
    hosts.serve();
    let older = hosts.ask(Wish { up: 5, ..Wish::download(300_000) }).unwrap();
    let mut proxy = hosts.proxy("", "");
    let finish = |mut stream: TcpStream| {
        send(&mut stream, 5, !300_000).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        receive(&mut stream, 300_000, || ()).unwrap()
    };
    let split = hosts.ask(Wish { up: 5, ..Wish::download(300_000) }).unwrap();
    until("the proxy has split it", || proxy.shown().connections == 1);
    ask_drain(proxy.socket()).unwrap();
    until("it drains", || proxy.shown().draining);
    let passing = hosts.ask(Wish { up: 5, ..Wish::download(300_000) }).unwrap();
    assert_eq!(proxy.shown().connections, 1);
    for stream in [older, passing, split] {
        assert_eq!(finish(stream), 300_000);
    }
    assert!(proxy.ended());
    assert_eq!(hosts.leavings(), "");
}

#[test]
fn readers_that_stall_do_not_take_all_pipes_from_others() {
    let Some(_turn) = ready() else { return };
    let hosts = Hosts::new();
    hosts.serve();
    // 144 more than the reserve: 67 connections, and 5 pipes.
    let proxy = hosts.proxy_under(&["prlimit", "--nofile=400:400"], "", "");
    assert_eq!(proxy.shown().most_connections, 67);
    let stalled: Vec<TcpStream> = (0..20).map(|_| hosts.ask(Wish::download(50_000_000)).unwrap()).collect();
    until("all readers have stalled", || {
        let shown = proxy.shown();
        shown.flows.len() == 20 && shown.flows.iter().all(|flow| flow.backlog_bytes > 200_000)
    });
    let wish = Wish { up: 1_000_000, ..Wish::download(3_000_000) };
    let mut stream = hosts.ask(wish).unwrap();
    send(&mut stream, wish.up, !wish.seed).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(receive(&mut stream, wish.seed, || ()).unwrap(), wish.down);
    drop(stalled);
    until("all connections have ended", || proxy.shown().connections == 0);
}

#[test]
fn what_a_drained_proxy_still_has_for_a_slow_client_arrives() {
    let Some(_turn) = ready() else { return };
    let hosts = Hosts::new();
    hosts.serve();
    let mut proxy = hosts.proxy("", "");
    let mut stream = hosts
        .at(Host::Client, || {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            socket.set_recv_buffer_size(1).unwrap(); // the kernel makes it its least, about 2 kB
            socket.connect(&SocketAddr::new(SERVER[0], PORT).into()).unwrap();
            TcpStream::from(socket)
        })
        .join()
        .unwrap();
    // Both ends have said all, and the proxy's socket holds it.
    let wish = Wish::download(20_000);
    stream.write_all(&wish.bytes()).unwrap();
    until("the connection is split", || proxy.shown().connections == 1);
    stream.shutdown(Shutdown::Write).unwrap();
    until("the connection has ended in the proxy", || proxy.shown().connections == 0);
    ask_drain(proxy.socket()).unwrap();
    until("it drains", || proxy.shown().draining);
    assert_eq!(receive(&mut stream, wish.seed, || ()).unwrap(), wish.down);
    drop(stream);
    assert!(proxy.ended());
    assert_eq!(hosts.leavings(), "");
}

#[test]
fn the_proxys_own_addresses_and_other_networks_are_no_servers() {
    let Some(_turn) = ready() else { return };
    let hosts = Hosts::new();
    hosts.serve();
    for handshake in ["exact", "accept-first"] {
        let proxy = hosts.proxy(&format!("handshake = {handshake:?}\nexcept = [\"fd91:2::/64\"]"), "");
        for own in ["10.91.1.1:5250", "10.91.2.1:5250"] {
            let begun = Instant::now();
            let stream = hosts.connect(own.parse().unwrap());
            assert_eq!(first_byte(stream).unwrap_err().kind(), ErrorKind::ConnectionReset);
            assert!(begun.elapsed() < AT_ONCE);
        }
        let refused = hosts.connect("10.91.1.1:5001".parse().unwrap()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        // Both have an answer, so both would be split by now: who is accepted first may be connected before its server is.
        let mut split = hosts.ask(Wish::download(1)).unwrap();
        split.read_exact(&mut [0]).unwrap();
        let mut excepted = hosts.ask(Wish { v6: true, ..Wish::download(1) }).unwrap();
        excepted.read_exact(&mut [0]).unwrap();
        let shown = proxy.shown();
        assert_eq!((shown.connections, shown.flows[0].server.ip()), (1, SERVER[0]), "{shown:?}");
    }
}

#[test]
fn a_reader_that_stalls_holds_what_it_may_and_others_go_on() {
    let Some(_turn) = ready() else { return };
    let hosts = Hosts::new();
    hosts.serve();
    let proxy = hosts.proxy("", "[limits]\nflow_buffer = \"256KiB\"\nuser_buffer = \"1MiB\"");
    let stalled: Vec<TcpStream> = (0..8).map(|_| hosts.ask(Wish::download(50_000_000)).unwrap()).collect();
    // Until nothing has moved for half a second: retransmissions and probes of windows come more often at first.
    let (mut received, mut since) = (0, Instant::now());
    until("all readers have stalled", || {
        let shown = proxy.shown();
        let waiting: Vec<u64> = shown.flows.iter().map(|flow| flow.backlog_bytes).collect();
        assert!(waiting.iter().all(|bytes| *bytes <= FLOW_BUFFER), "{waiting:?} bytes wait");
        let unread = hosts.unread();
        assert!(unread.iter().all(|bytes| *bytes <= FLOW_BUFFER), "{unread:?} bytes are not read");
        let sum = shown.flows.iter().map(|flow| flow.down_bytes).sum();
        if sum != received {
            (received, since) = (sum, Instant::now());
        }
        waiting.len() == 8 && shown.backlog_bytes > 0 && since.elapsed() > Duration::from_millis(500)
    });
    drop(stalled);
    let mut stream = hosts.ask(Wish::download(5_000_000)).unwrap();
    assert_eq!(receive(&mut stream, 5_000_000, || ()).unwrap(), 5_000_000);
    until("the stalled ones have ended", || proxy.shown().connections <= 1);
}

#[test]
fn a_server_that_does_not_read_holds_as_much_and_others_go_on() {
    let Some(_turn) = ready() else { return };
    let hosts = Hosts::new();
    hosts.serve();
    let proxy = hosts.proxy("", "[limits]\nflow_buffer = \"256KiB\"\nuser_buffer = \"1MiB\"");
    let address = SocketAddr::new(SERVER[0], PORT + 1);
    // The kernel of the server accepts, and nobody reads.
    let _deaf = hosts.at(Host::Server, move || TcpListener::bind(address).unwrap()).join().unwrap();
    let mut stalled: Vec<TcpStream> = (0..8).map(|_| hosts.connect(address).unwrap()).collect();
    stalled.iter().for_each(|stream| stream.set_nonblocking(true).unwrap());
    let mut since = Instant::now();
    until("all writers have stalled", || {
        for stream in &mut stalled {
            while stream.write(&[0; 1 << 16]).is_ok() {
                since = Instant::now();
            }
        }
        let unread = hosts.unread();
        assert!(unread.iter().all(|bytes| *bytes <= FLOW_BUFFER), "{unread:?} bytes are not read");
        since.elapsed() > Duration::from_millis(500)
    });
    assert_eq!(proxy.shown().connections, 8);
    // Another upload of the same user has room, too.
    let mut stream = hosts.ask(Wish { up: 5_000_000, ..Wish::download(10) }).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    send(&mut stream, 5_000_000, !10).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(receive(&mut stream, 10, || ()).unwrap(), 10);
}

#[test]
fn segments_of_a_byte_and_windows_of_almost_nothing_lose_nothing() {
    let Some(_turn) = ready() else { return };
    let hosts = Hosts::new();
    hosts.serve();
    let proxy = hosts.proxy("", "");
    let wish = Wish { up: 3_000, ..Wish::download(300_000) };
    let mut stream = hosts
        .at(Host::Client, move || {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            socket.set_recv_buffer_size(1).unwrap(); // the kernel makes it its least, about 2 kB
            socket.set_tcp_nodelay(true).unwrap();
            socket.connect(&SocketAddr::new(SERVER[0], PORT).into()).unwrap();
            TcpStream::from(socket)
        })
        .join()
        .unwrap();
    let mut upload = vec![0; 3_000];
    Content::new(!wish.seed).fill(&mut upload);
    for byte in wish.bytes().iter().chain(&upload) {
        stream.write_all(&[*byte]).unwrap();
    }
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(receive(&mut stream, wish.seed, || ()).unwrap(), wish.down);
    until("it has ended", || proxy.shown().connections == 0);
}

#[test]
fn a_lost_syn_is_repeated_by_the_proxy_and_that_of_a_silent_server_by_the_client() {
    let Some(_turn) = ready() else { return };
    let hosts = Hosts::new();
    hosts.serve();
    let proxy = hosts.proxy("", "");
    let connect = || {
        let address = SocketAddr::new(SERVER[0], PORT);
        hosts.at(Host::Client, move || TcpStream::connect_timeout(&address, PATIENCE).unwrap())
    };
    // The proxy's first SYN is lost; on a machine that is busy for a second, its second one, too.
    until("a connection whose first SYN was lost is split", || {
        hosts.be_silent(PORT);
        let connecting = connect();
        until("the SYN is held", || proxy.shown().handshakes == 1);
        hosts.answer();
        let _stream = connecting.join().unwrap();
        proxy.shown().connections == 1
    });
    until("it has ended", || proxy.shown().connections == 0);
    hosts.be_silent(PORT);
    let connecting = connect();
    until("the SYN is held", || proxy.shown().handshakes == 1);
    until("its repetition has passed", || proxy.shown().handshakes == 0);
    assert!(!connecting.is_finished());
    hosts.answer();
    let _stream = connecting.join().unwrap();
    assert_eq!(proxy.shown().connections, 0);
}

#[test]
fn a_flood_of_syns_takes_its_clients_part_and_others_are_split() {
    let Some(_turn) = ready() else { return };
    let hosts = Hosts::new();
    hosts.serve();
    let proxy = hosts.proxy("", "[limits]\nhandshakes_per_client = 8");
    hosts.be_silent(PORT + 1);
    run(&format!("ip -n {} address add 10.91.1.3/24 dev eth", hosts.name(Host::Client)));
    let from = |client: [u8; 4], port: u16| {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from((client, 0)).into()).unwrap();
        (socket, SocketAddr::new(SERVER[0], port))
    };
    let flood = hosts.at(Host::Client, move || {
        [(); 100].map(|()| {
            let (socket, server) = from([10, 91, 1, 2], PORT + 1);
            socket.set_nonblocking(true).unwrap();
            assert!(socket.connect(&server.into()).is_err(), "nobody answers");
            socket
        })
    });
    let flood = flood.join().unwrap();
    assert_eq!(proxy.shown().handshakes, 8);
    let streams = hosts.at(Host::Client, move || {
        [[10, 91, 1, 2], [10, 91, 1, 3]].map(|client| {
            let (socket, server) = from(client, PORT);
            socket.connect(&server.into()).unwrap();
            socket
        })
    });
    let streams = streams.join().unwrap();
    let shown = proxy.shown();
    assert_eq!((shown.handshakes, shown.connections), (8, 1), "{shown:?}");
    assert_eq!(shown.flows[0].client.ip(), "10.91.1.3".parse::<IpAddr>().unwrap());
    drop((flood, streams));
    until("all handshakes are over", || proxy.shown().handshakes == 0);
}

#[test]
fn rules_that_somebody_removes_are_added_again() {
    let Some(_turn) = ready() else { return };
    let hosts = Hosts::new();
    hosts.serve();
    let proxy = hosts.proxy("", "");
    run(&format!("ip netns exec {} nft flush ruleset", hosts.name(Host::Proxy)));
    until("connections are split again", || {
        let _stream = hosts.ask(Wish { up: 1, ..Wish::download(10) }).unwrap();
        proxy.shown().connections > 0
    });
}

#[test]
fn connections_beyond_a_limit_pass() {
    let Some(_turn) = ready() else { return };
    let hosts = Hosts::new();
    hosts.serve();
    let proxy = hosts.proxy("", "[limits]\nconnections_per_user = 3");
    let open: Vec<TcpStream> =
        (0..6).map(|_| hosts.ask(Wish { up: 1, ..Wish::download(10) }).unwrap()).collect();
    assert_eq!(proxy.shown().connections, 3);
    for mut stream in open {
        send(&mut stream, 1, !10).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(receive(&mut stream, 10, || ()).unwrap(), 10);
    }
}

#[test]
fn the_radio_is_shared_out_while_reports_come_and_all_is_passed_on_a_second_after_they_stop() {
    let Some(_turn) = ready() else { return };
    let hosts = Hosts::new();
    hosts.serve();
    let table = hosts.folder.path().join("table");
    let proxy = hosts.proxy(
        "",
        &format!(
            "[sender]\ncontrol = \"pacing\"\n[feed]\norigin = \"table:{}\"\n[rapid]\nguard = false",
            table.display()
        ),
    );
    // IPv4 and IPv6 are one user's, which the table says once it is there.
    let mut streams =
        [0, 1].map(|number| hosts.ask(Wish { v6: number == 1, ..Wish::download(40_000_000) }).unwrap());
    assert_eq!(proxy.shown().users.len(), 2);
    let mut cell = PlayedCell::start(&table, Radio::lte());
    until("both connections are one user's", || proxy.shown().users.len() == 1);
    until("the user's radio is known", || proxy.shown().users.iter().any(|user| user.radio == "current"));
    let shown = proxy.shown();
    let user = &shown.users[0];
    assert_eq!((shown.users.len(), user.connections, user.address), (1, 2, CLIENT[0]), "{shown:?}");
    let capacity = user.capacity_bits_per_s.unwrap();
    assert!(capacity.abs_diff(CAPACITY) < CAPACITY / 20, "{shown:?}");
    let rates: u64 = shown.flows.iter().filter_map(|flow| flow.user_rate_bits_per_s).sum();
    assert!(rates.abs_diff(CAPACITY) < CAPACITY / 5, "{shown:?}");
    // What was in the sockets before the radio was known comes first.
    let mut buffer = vec![0; 1 << 16];
    streams.iter().for_each(|stream| stream.set_nonblocking(true).unwrap());
    let mut read = |time: Duration| {
        let (begun, mut bytes) = (Instant::now(), 0);
        while begun.elapsed() < time {
            bytes += streams.iter_mut().filter_map(|stream| stream.read(&mut buffer).ok()).sum::<usize>();
            thread::sleep(Duration::from_millis(1));
        }
        bytes as f64 * 8.0 / begun.elapsed().as_secs_f64()
    };
    read(Duration::from_secs(2));
    let rate = read(Duration::from_secs(3));
    assert!((0.7..1.3).contains(&(rate / CAPACITY as f64)), "{rate} bit/s of {CAPACITY}");
    cell.pause();
    let paused = Instant::now();
    until("the radio is not known any more", || {
        let shown = proxy.shown();
        let oldest = shown.users.iter().filter_map(|user| user.age_ms).max();
        assert!(oldest.is_none_or(|age| age <= 1_000), "{shown:?}");
        shown.users.iter().all(|user| user.radio == "unknown" && user.capacity_bits_per_s.is_none())
    });
    assert!(paused.elapsed() < Duration::from_millis(1_500), "after {:?}", paused.elapsed());
    assert!(proxy.shown().flows.iter().all(|flow| flow.user_rate_bits_per_s.is_none()));
    let free = read(Duration::from_secs(1));
    assert!(free > 3.0 * CAPACITY as f64, "{free} bit/s");
}
