//! What must not harm the proxy or other users, inside the running kernel: floods, loops, a lack of descriptors, deaf servers, and what
//! passes by. Needs root; whoever is not is told that this is skipped.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

mod rig;

use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use socket2::{Domain, Socket, Type};

use rig::radio::{LTE_CAPACITY, PlayedCell, Radio};
use rig::{
    CLIENT, Host, Hosts, PATIENCE, PORT, ProxyProcess, SERVER, Wish, ready, ready_with, receive, run,
    run_proxy, send, until,
};

#[test]
#[ignore = "the process of a proxy, which the other tests start"]
fn proxy_process() {
    run_proxy();
}

/// A download through the proxy, whole.
fn download(hosts: &Hosts, bytes: u64) {
    let mut stream = hosts.ask(Wish::download(bytes)).unwrap();
    assert_eq!(receive(&mut stream, bytes, || ()).unwrap(), bytes);
}

/// SYNs that the client has sent again.
fn repeated_syns(hosts: &Hosts) -> u64 {
    let read = || fs::read_to_string("/proc/thread-self/net/netstat").unwrap();
    let text = hosts.at(Host::Client, read).join().unwrap();
    // A line of names, and one of values.
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("TcpExt: "));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let place = names.split(' ').position(|name| name == "TCPSynRetrans").unwrap();
    values.split(' ').nth(place).unwrap().parse().unwrap()
}

/// CPU time of a process, in hundredths of a second.
fn cpu(process: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // Behind the name, which may have spaces: user and system time are the 12th and 13th fields.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
fn one_users_idle_connections_end_at_its_limit_and_others_are_split() {
    let Some(_turn) = ready() else { return };
    const IDLE: usize = 4_300;
    const MOST: usize = 4_000;
    let hosts = Hosts::new();
    hosts.serve();
    run(&format!("ip -n {} address add 10.91.1.3/24 dev eth", hosts.name(Host::Client)));
    let proxy = hosts.proxy("", "");
    // What is kept of capabilities (linux/capability.h): 10 to bind ports below 1024, 12 for the network, 39 for eBPF.
    for task in fs::read_dir(format!("/proc/{}/task", proxy.id())).unwrap() {
        let status = fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        // The harness of tests has threads that are older than the proxy, and do nothing.
        let is_proxys = ["proxy_process", "feed", "control"]
            .iter()
            .any(|name| status.starts_with(&format!("Name:\t{name}\n")));
        let kept = 1_u64 << 10 | 1 << 12 | 1 << 39;
        if is_proxys {
            assert!(
                status.contains(&format!("CapEff:\t{kept:016x}"))
                    && status.contains(&format!("CapBnd:\t{kept:016x}")),
                "{status}"
            );
        }
    }
    let listener = hosts.at(Host::Server, || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::new(SERVER[0], PORT + 1).into()).unwrap();
        socket.listen(4_096).unwrap();
        socket
    });
    let listener = listener.join().unwrap();
    let accepting =
        thread::spawn(move || (0..IDLE).map(|_| listener.accept().unwrap().0).collect::<Vec<Socket>>());
    let idle = hosts.at(Host::Client, || {
        let server = SocketAddr::new(SERVER[0], PORT + 1);
        (0..IDLE).map(|_| TcpStream::connect(server).unwrap()).collect::<Vec<TcpStream>>()
    });
    let idle = idle.join().unwrap();
    let accepted = accepting.join().unwrap();
    assert_eq!(proxy.shown().connections, MOST);
    let (descriptors, memory) = proxy.used();
    eprintln!("{MOST} idle connections: {descriptors} descriptors, {} bytes each", memory / MOST as u64);
    assert!(memory / (MOST as u64) < 4_096, "with all that a process has: {memory} bytes");
    let other = hosts.at(Host::Client, || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from(([10, 91, 1, 3], 0)).into()).unwrap();
        socket.connect(&SocketAddr::new(SERVER[0], PORT).into()).unwrap();
        let mut stream = TcpStream::from(socket);
        stream.write_all(&Wish::download(1_000_000).bytes()).unwrap();
        receive(&mut stream, 1_000_000, || ()).unwrap()
    });
    assert_eq!(other.join().unwrap(), 1_000_000);
    // They cost nothing while they are idle.
    let before = cpu(proxy.id());
    thread::sleep(Duration::from_millis(500));
    assert!(cpu(proxy.id()) - before < 15, "{} hundredths of a second", cpu(proxy.id()) - before);
    drop((idle, accepted));
    until("all connections have ended", || proxy.shown().connections == 0);
}

#[test]
fn without_descriptors_new_connections_pass_and_what_waits_is_accepted_later() {
    let Some(_turn) = ready() else { return };
    let hosts = Hosts::new();
    hosts.serve();
    for handshake in ["exact", "accept-first"] {
        let proxy = hosts.proxy(&format!("handshake = {handshake:?}"), "");
        let older = hosts.ask(Wish { up: 1, ..Wish::download(300_000) }).unwrap();
        until("it is split", || proxy.shown().connections == 1);
        let limit = |files: usize| run(&format!("prlimit --pid {} --nofile={files}:20000", proxy.id()));
        let open = fs::read_dir(format!("/proc/{}/fd", proxy.id())).unwrap();
        let open: Vec<usize> =
            open.map(|one| one.unwrap().file_name().into_string().unwrap().parse().unwrap()).collect();
        let free = (0..).find(|number| !open.contains(number)).unwrap();
        // One for the leg of the server, which comes first in an exact handshake, and none for that of the client.
        limit(if handshake == "exact" { free + 1 } else { free });
        let mut waiting = hosts.ask(Wish::download(300_000)).unwrap();
        // The proxy does not spin meanwhile.
        let before = cpu(proxy.id());
        thread::sleep(Duration::from_millis(500));
        assert!(cpu(proxy.id()) - before < 15, "{} hundredths of a second", cpu(proxy.id()) - before);
        let repeated = repeated_syns(&hosts);
        download(&hosts, 300_000);
        assert_eq!(repeated_syns(&hosts), repeated, "{handshake}: it passed after a repetition");
        finish(older, Wish { up: 1, ..Wish::download(300_000) });
        limit(20_000);
        assert_eq!(receive(&mut waiting, 300_000, || ()).unwrap(), 300_000);
        until("connections are split again", || {
            let _stream = hosts.ask(Wish { up: 1, ..Wish::download(10) }).unwrap();
            proxy.shown().connections > 0
        });
    }
}

/// System calls of the proxy's thread fail until this is dropped.
struct Refusal(Child);

/// Makes these system calls of the proxy's thread fail with this error; `socket:when=1` is the first one of `socket` (strace(1)). The control
/// socket has another thread, which goes on.
///
/// `fs.file-max`, the system's own limit, is left alone: it is one for all namespaces and containers of the machine, and every process
/// on it without CAP_SYS_ADMIN would fail, too.
fn refuse(proxy: &ProxyProcess, error: &str, calls: &[&str]) -> Refusal {
    let mut tasks = fs::read_dir(format!("/proc/{}/task", proxy.id())).unwrap().map(|task| task.unwrap());
    let is_proxys = |task: &fs::DirEntry| {
        fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name == "proxy_process\n")
    };
    let thread = tasks.find(is_proxys).unwrap();
    let mut strace = Command::new("strace");
    strace.args(["-qq", "-o", "/dev/null", "-p", &thread.file_name().into_string().unwrap()]);
    for call in calls {
        let (call, when) =
            call.split_once(':').map_or((*call, String::new()), |(call, when)| (call, format!(":{when}")));
        strace.args(["-e", &format!("inject={call}:error={error}{when}")]);
    }
    let refusal = Refusal(strace.spawn().unwrap());
    until("the proxy's thread is traced", || {
        let status = fs::read_to_string(thread.path().join("status")).unwrap();
        status.contains(&format!("TracerPid:\t{}\n", refusal.0.id()))
    });
    refusal
}

impl Drop for Refusal {
    fn drop(&mut self) {
        // It lets the thread go on at this signal.
        let _ = kill(Pid::from_raw(self.0.id() as i32), Signal::SIGTERM);
        let _ = self.0.wait();
    }
}

#[test]
fn at_the_limit_of_the_process_or_of_the_system_open_connections_go_on_and_new_ones_wait_or_pass() {
    let Some(_turn) = ready_with(&["strace"]) else { return };
    let hosts = Hosts::new();
    hosts.serve();
    let wish = Wish { up: 1, ..Wish::download(300_000) };
    for error in ["EMFILE", "ENFILE"] {
        for (handshake, call, waits) in
            [("exact", "socket", false), ("exact", "accept4", true), ("accept-first", "accept4", true)]
        {
            let case = format!("{handshake}, {error} of {call}");
            let proxy = hosts.proxy(&format!("handshake = {handshake:?}"), "");
            let older = hosts.ask(wish).unwrap();
            until("it is split", || proxy.shown().connections == 1);
            let refusal = refuse(&proxy, error, &[call, "pipe2"]);
            let first = hosts.ask(wish).unwrap();
            let before = cpu(proxy.id());
            thread::sleep(Duration::from_millis(500));
            assert!(cpu(proxy.id()) - before < 15, "{case}: it spins");
            assert_eq!(proxy.shown().connections, 1, "{case}");
            let repeated = repeated_syns(&hosts);
            download(&hosts, 300_000);
            assert_eq!(repeated_syns(&hosts), repeated, "{case}: it passed after a repetition");
            finish(older, wish);
            drop(refusal);
            if waits {
                until("what has waited is split", || proxy.shown().connections == 1);
            }
            finish(first, wish);
            until("connections are split again", || {
                let _stream = hosts.ask(Wish { up: 1, ..Wish::download(10) }).unwrap();
                proxy.shown().connections > 0
            });
        }
        // Without a single pipe, payload is copied.
        let proxy = hosts.proxy("", "");
        let refusal = refuse(&proxy, error, &["pipe2"]);
        let stream = hosts.ask(wish).unwrap();
        until("it is split", || proxy.shown().connections == 1);
        finish(stream, wish);
        drop((refusal, proxy));
        // Who is accepted first would be reset without a socket for the server's leg: a file is kept open for that, and given up.
        let proxy = hosts.proxy("handshake = \"accept-first\"", "");
        let stream = hosts.ask(wish).unwrap();
        until("it is split, and the file is there", || proxy.shown().connections == 1);
        finish(stream, wish);
        until("it has ended", || proxy.shown().connections == 0);
        let refusal = refuse(&proxy, error, &["socket:when=1", "eventfd2"]);
        let stream = hosts.ask(wish).unwrap();
        until("it is split", || proxy.shown().connections == 1);
        finish(stream, wish);
        until("it has ended", || proxy.shown().connections == 0);
        // Until there is another one, nobody is accepted.
        let first = hosts.ask(wish).unwrap();
        thread::sleep(Duration::from_millis(500));
        let shown = proxy.shown();
        assert_eq!((shown.connections, shown.handshakes), (0, 0), "{error}: accepted without a reserve");
        download(&hosts, 300_000);
        drop(refusal);
        finish(first, wish);
        until("connections are split again", || {
            let _stream = hosts.ask(Wish { up: 1, ..Wish::download(10) }).unwrap();
            proxy.shown().connections > 0
        });
        until("they have ended", || proxy.shown().connections == 0);
        // If the reserve is of no use, because others have taken it, the client is reset, and nothing is left of it.
        let (before, _) = proxy.used();
        let refusal = refuse(&proxy, error, &["socket"]);
        let refused = hosts.ask(wish).and_then(|mut stream| receive(&mut stream, wish.seed, || ()));
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConnectionReset, "{error}");
        drop(refusal);
        until("its descriptors are closed", || proxy.used().0 <= before);
    }
}

#[test]
fn accepted_first_the_client_of_a_silent_server_is_reset_in_time_and_nothing_is_left() {
    let Some(_turn) = ready() else { return };
    let hosts = Hosts::new();
    hosts.serve();
    let proxy = hosts.proxy("handshake = \"accept-first\"", "[limits]\nconnect_timeout = \"2s\"");
    download(&hosts, 1_000);
    until("it has ended", || proxy.shown().connections == 0);
    // Sockets whose last packets are not acknowledged yet are closed within a tenth of a second.
    thread::sleep(Duration::from_millis(300));
    let (before, _) = proxy.used();
    hosts.be_silent(PORT + 1);
    let sockets = || run(&format!("ip netns exec {} ss -Htan", hosts.name(Host::Proxy)));
    let silent = format!(":{}", PORT + 1);
    for server in SERVER {
        let begun = Instant::now();
        let mut stream = hosts.connect(SocketAddr::new(server, PORT + 1)).unwrap();
        assert!(begun.elapsed() < Duration::from_millis(900), "accepted after {:?}", begun.elapsed());
        stream.write_all(&[0; 1_000]).unwrap();
        stream.set_read_timeout(Some(PATIENCE / 6)).unwrap();
        let shown = proxy.shown();
        assert_eq!((shown.connections, shown.handshakes), (0, 1), "{shown:?}");
        assert!(sockets().contains(&silent), "{}", sockets());
        assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
        // It is looked at each second.
        let took = begun.elapsed();
        assert!(took > Duration::from_secs(2) && took < Duration::from_secs(5), "reset after {took:?}");
        let shown = proxy.shown();
        assert_eq!((shown.connections, shown.handshakes), (0, 0), "{shown:?}");
        assert!(!sockets().contains(&silent), "{}", sockets());
        until("its descriptors are closed", || proxy.used().0 <= before);
    }
    let stream = hosts.ask(Wish { up: 1, ..Wish::download(10) }).unwrap();
    until("others are split", || proxy.shown().connections == 1);
    finish(stream, Wish { up: 1, ..Wish::download(10) });
}

#[test]
fn what_a_hung_proxy_has_accepted_first_waits_and_further_ones_pass() {
    let Some(_turn) = ready() else { return };
    let hosts = Hosts::new();
    hosts.serve();
    let proxy = hosts.proxy("handshake = \"accept-first\"", "");
    proxy.stop();
    let wish = Wish { up: 1, ..Wish::download(300_000) };
    let waiting = hosts.ask(wish).unwrap();
    thread::sleep(Duration::from_millis(700)); // the proxy has not said for so long that it works
    let repeated = repeated_syns(&hosts);
    download(&hosts, 300_000);
    assert_eq!(repeated_syns(&hosts), repeated, "it passed after a repetition");
    proxy.signal(Signal::SIGCONT);
    until("what waited is split", || proxy.shown().connections == 1);
    finish(waiting, wish);
}

#[test]
fn uploads_to_deaf_servers_are_bounded_together_and_others_go_on() {
    let Some(_turn) = ready() else { return };
    const UPLOADS: usize = 32;
    const MOST: u64 = 1 << 20;
    let hosts = Hosts::new();
    hosts.serve();
    run(&format!("ip -n {} address add 10.91.1.3/24 dev eth", hosts.name(Host::Client)));
    // Without its part for all of a user's connections each of them would hold 256 KiB, together 8 MiB.
    let proxy = hosts.proxy("", "[limits]\nflow_buffer = \"256KiB\"\nuser_buffer = \"1MiB\"");
    let address = SocketAddr::new(SERVER[0], PORT + 1);
    let deaf = hosts.at(Host::Server, move || std::net::TcpListener::bind(address).unwrap()).join().unwrap();
    let mut stalled: Vec<TcpStream> = (0..UPLOADS).map(|_| hosts.connect(address).unwrap()).collect();
    stalled.iter().for_each(|stream| stream.set_nonblocking(true).unwrap());
    let (mut waits, mut since, mut most) = (0, Instant::now(), 0);
    until("nothing more comes", || {
        // As over a radio link: windows are closed a millisecond after something has come.
        for stream in &mut stalled {
            let _ = stream.write(&[0; 16 << 10]);
        }
        thread::sleep(Duration::from_millis(20));
        let now = proxy.shown().upload_backlog_bytes;
        if now != waits {
            (waits, since) = (now, Instant::now());
        }
        most = most.max(now);
        waits > 0 && since.elapsed() > Duration::from_millis(500)
    });
    eprintln!("at most {most} bytes of uploads waited");
    assert!(most > MOST / 2 && most < 3 * MOST, "{most} bytes waited");
    let other = hosts.at(Host::Client, || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from(([10, 91, 1, 3], 0)).into()).unwrap();
        socket.connect(&SocketAddr::new(SERVER[0], PORT).into()).unwrap();
        let mut stream = TcpStream::from(socket);
        let wish = Wish { up: 3_000_000, ..Wish::download(10) };
        stream.write_all(&wish.bytes()).unwrap();
        send(&mut stream, wish.up, !wish.seed).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        receive(&mut stream, wish.seed, || ()).unwrap()
    });
    assert_eq!(other.join().unwrap(), 10);
    // Their kernels would go on for as long as the servers do.
    drop((stalled, deaf));
    until("nothing waits any more", || proxy.shown().upload_backlog_bytes == 0);
}

#[test]
fn a_slow_reader_gets_all_of_a_long_download() {
    let Some(_turn) = ready() else { return };
    const BYTES: u64 = 60_000_000;
    let hosts = Hosts::new();
    hosts.serve();
    let proxy = hosts.proxy("", "");
    let mut stream = hosts.ask(Wish::download(BYTES)).unwrap();
    let (mut pieces, mut most) = (0_u64, 0);
    let got = receive(&mut stream, BYTES, || {
        pieces += 1;
        // It takes 4 MB, and then nothing for a while, several times.
        if pieces.is_multiple_of(256) {
            thread::sleep(Duration::from_millis(100));
            most = most.max(proxy.shown().backlog_bytes);
        }
    });
    assert_eq!(got.unwrap(), BYTES);
    assert!(most > 100_000 && most < 4 << 20, "{most} bytes waited");
}

#[test]
fn a_client_may_use_a_port_again_at_once() {
    let Some(_turn) = ready() else { return };
    let hosts = Hosts::new();
    hosts.serve();
    for handshake in ["exact", "accept-first"] {
        let proxy = hosts.proxy(&format!("handshake = {handshake:?}"), "");
        for turn in 0..5 {
            let begun = Instant::now();
            let stream = hosts.at(Host::Client, || {
                let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
                socket.set_reuse_address(true).unwrap();
                socket.bind(&SocketAddr::new(CLIENT[0], 4_321).into()).unwrap();
                socket.connect(&SocketAddr::new(SERVER[0], PORT).into()).unwrap();
                TcpStream::from(socket)
            });
            let mut stream = stream.join().unwrap();
            let took = begun.elapsed();
            assert!(took < Duration::from_millis(900), "{handshake}, turn {turn}: after {took:?}");
            // The server ends first: the proxy's socket towards the client remembers the connection for a minute.
            stream.write_all(&Wish::download(1_000).bytes()).unwrap();
            assert_eq!(receive(&mut stream, 1_000, || ()).unwrap(), 1_000);
            drop(stream);
            until("it has ended", || proxy.shown().connections == 0);
        }
    }
}

#[test]
fn a_connection_that_passes_may_have_the_port_of_one_that_was_split_a_moment_ago() {
    let Some(_turn) = ready() else { return };
    let hosts = Hosts::new();
    hosts.serve();
    // Otherwise the client's own kernel would not use the port again.
    run(&format!("ip netns exec {} sysctl -q net.ipv4.tcp_max_tw_buckets=0", hosts.name(Host::Client)));
    let mut proxy = hosts.proxy("", "[limits]\nconnections_per_user = 1");
    // The proxy's socket towards the client remembers the connection if the server ends first; that towards the server if the client does.
    let server_ends = Wish::download(1_000);
    let client_ends = Wish { up: 5, ..server_ends };
    let wishes = [server_ends, client_ends].into_iter().flat_map(|wish| [wish, Wish { v6: true, ..wish }]);
    let from_ports = |first: u16| wishes.clone().zip(first..);
    let split_all = |proxy: &ProxyProcess, first| {
        for (wish, port) in from_ports(first) {
            let stream = ask_from(&hosts, port, wish);
            until("it is split", || proxy.shown().connections == 1);
            finish(stream, wish);
            until("it has ended", || proxy.shown().connections == 0);
        }
    };
    let pass_all =
        |first| from_ports(first).for_each(|(wish, port)| finish(ask_from(&hosts, port, wish), wish));
    split_all(&proxy, 4_321);
    let only_one = hosts.ask(client_ends).unwrap();
    until("the user has all the connections that it may have", || proxy.shown().connections == 1);
    pass_all(4_321);
    finish(only_one, client_ends);
    until("it has ended", || proxy.shown().connections == 0);
    // Without a process there is nobody who could tell the kernel what passes.
    split_all(&proxy, 5_321);
    proxy.signal(Signal::SIGKILL);
    proxy.ended();
    pass_all(5_321);
}

/// Asks the server from this port of the client.
fn ask_from(hosts: &Hosts, port: u16, wish: Wish) -> TcpStream {
    let stream = hosts.at(Host::Client, move || {
        let [client, server] = [CLIENT, SERVER].map(|host| host[usize::from(wish.v6)]);
        let domain = if wish.v6 { Domain::IPV6 } else { Domain::IPV4 };
        let socket = Socket::new(domain, Type::STREAM, None).unwrap();
        socket.set_reuse_address(true).unwrap();
        socket.bind(&SocketAddr::new(client, port).into()).unwrap();
        socket.connect(&SocketAddr::new(server, PORT).into()).unwrap();
        TcpStream::from(socket)
    });
    let mut stream = stream.join().unwrap();
    stream.set_read_timeout(Some(PATIENCE / 6)).unwrap();
    stream.write_all(&wish.bytes()).unwrap();
    stream
}

/// Gets the server's answer, whole.
fn finish(mut stream: TcpStream, wish: Wish) {
    if wish.up > 0 {
        send(&mut stream, wish.up, !wish.seed).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
    }
    assert_eq!(receive(&mut stream, wish.seed, || ()).unwrap(), wish.down, "{wish:?}");
}

#[test]
fn a_path_that_leads_back_to_the_proxy_is_no_loop() {
    let Some(_turn) = ready() else { return };
    let hosts = Hosts::new();
    hosts.serve();
    // What the proxy's host sends to servers goes to a router first, which sends it back to the proxy's host.
    let (proxy, router) = (hosts.name(Host::Proxy), hosts.router());
    for (number, device) in [(3, "out"), (4, "back")] {
        run(&format!("ip link add {device} netns {proxy} type veth peer name {device} netns {router}"));
        for (host, last) in [(&proxy, 1), (&router, 2)] {
            run(&format!("ip -n {host} address add 10.91.{number}.{last}/24 dev {device}"));
            run(&format!("ip -n {host} link set {device} up"));
        }
    }
    run(&format!("ip netns exec {router} sysctl -q net.ipv4.ip_forward=1"));
    run(&format!("ip -n {router} route add 10.91.2.0/24 via 10.91.4.1"));
    run(&format!("ip -n {proxy} route add default via 10.91.3.2 table 77"));
    for from in ["users", "lo"] {
        run(&format!("ip -n {proxy} rule add priority 9000 iif {from} to 10.91.2.0/24 lookup 77"));
    }
    let clients = "[[clients]]\ninterface = \"back\"\nnetworks = [\"10.91.1.0/24\"]";
    let proxy = hosts.proxy(clients, "");
    let begun = Instant::now();
    let mut stream = hosts.ask(Wish::download(300_000)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(receive(&mut stream, 300_000, || ()).unwrap(), 300_000);
    assert!(begun.elapsed() < Duration::from_secs(5), "after {:?}", begun.elapsed());
    // Its own SYN has come back to it, and the client's next one passes.
    let shown = proxy.shown();
    assert_eq!((shown.connections, shown.handshakes), (0, 0), "{shown:?}");
    drop(proxy);
    // Accepted first, the socket of the client's side takes the SYN that comes back: the connection waits, and harms nobody else.
    let proxy = hosts
        .proxy(&format!("handshake = \"accept-first\"\n{clients}"), "[limits]\nconnect_timeout = \"3s\"");
    let before = cpu(proxy.id());
    let begun = Instant::now();
    let mut waiting = hosts.ask(Wish::download(300_000)).unwrap();
    let v6 = Wish { v6: true, ..Wish::download(300_000) };
    assert_eq!(receive(&mut hosts.ask(v6).unwrap(), 300_000, || ()).unwrap(), 300_000);
    thread::sleep(Duration::from_millis(1_200)); // its SYN is repeated after a second
    let shown = proxy.shown();
    assert_eq!(shown.handshakes, 1, "{shown:?}");
    assert!(cpu(proxy.id()) - before < 30, "{} hundredths of a second", cpu(proxy.id()) - before);
    // As that of any server that does not answer.
    waiting.set_read_timeout(Some(PATIENCE / 6)).unwrap();
    assert_eq!(waiting.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert!(begun.elapsed() < Duration::from_secs(6), "reset after {:?}", begun.elapsed());
    let shown = proxy.shown();
    assert_eq!((shown.connections, shown.handshakes), (0, 0), "{shown:?}");
}

#[test]
fn what_passes_by_is_subtracted_from_what_is_shared_out() {
    let Some(_turn) = ready() else { return };
    let hosts = Hosts::new();
    hosts.serve();
    let table = hosts.folder.path().join("table");
    let _cell = PlayedCell::start(&table, Radio::lte());
    let tables = format!(
        "[sender]\ncontrol = \"pacing\"\n[feed]\norigin = \"table:{}\"\n[rapid]\nguard = false\naccount_udp = true",
        table.display()
    );
    let proxy = hosts.proxy("", &tables);
    let mut stream = hosts.ask(Wish::download(40_000_000)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let capacity = || proxy.shown().users.first().and_then(|user| user.capacity_bits_per_s).unwrap_or(0);
    until("the user's radio is known", || capacity().abs_diff(LTE_CAPACITY) < LTE_CAPACITY / 20);
    for v6 in [false, true] {
        let (server, client) = (SERVER[usize::from(v6)], CLIENT[usize::from(v6)]);
        // 2.5 Mbit/s of packets of 1,000 bytes.
        let sending = hosts.at(Host::Server, move || {
            let socket = UdpSocket::bind((server, 0)).unwrap();
            let payload = vec![0; if v6 { 952 } else { 972 }];
            let begun = Instant::now();
            for number in 0..480 {
                thread::sleep(
                    (begun + Duration::from_micros(3_200) * number).saturating_duration_since(Instant::now()),
                );
                socket.send_to(&payload, (client, 9)).unwrap();
            }
        });
        let reads = |stream: &mut TcpStream| stream.read(&mut vec![0; 1 << 16]).unwrap();
        until("it is subtracted", || {
            reads(&mut stream);
            let user = &proxy.shown().users[0];
            let (passing, left) = (user.passing_bits_per_s, user.capacity_bits_per_s.unwrap());
            passing.abs_diff(2_500_000) < 700_000
                && (passing + left).abs_diff(LTE_CAPACITY) < LTE_CAPACITY / 10
        });
        sending.join().unwrap();
        until("it is given back", || {
            reads(&mut stream);
            proxy.shown().users[0].passing_bits_per_s < 100_000
        });
    }
}
