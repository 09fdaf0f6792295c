//! `ranpace pep` on a forwarded path between network namespaces, with `ranpace kernel feed mdcc` as the agent of the server: what it counts,
//! whom it believes, and what becomes of connections when it is killed. Where rights are missing these tests say so and end.
#![cfg(all(target_os = "linux", feature = "kernel"))]
#![allow(clippy::unwrap_used)] // a test may

mod emulation;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use etherparse::PacketBuilder;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, recv, sendto, setsockopt, socket,
    sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike as _};
use ranpace_emulator::within;

use emulation::{output_of, rights, until};

const SERVER: &str = "10.90.1.1";
const EDGE: &str = "10.90.1.2";
const USER: [&str; 2] = ["10.90.2.1", "fd90:2::1"];
const PORT: u16 = 49_460;
/// The PEP is silent if it sends nothing for so long: ten times as long as until a flow's closing report.
const SILENT_MS: i64 = 200;
/// Messages of an attack: fewer than the 200 that an agent examines in a row, or else its limit and not their seals refuses them.
const MOST_ATTACKS: usize = 180;

/// A server and a user, with an edge between them that forwards, in namespaces.
struct Path3 {
    names: [String; 3],
    folder: tempfile::TempDir,
    /// Name of the control that the kernel lists.
    control: String,
    children: Vec<Child>,
}

fn run(program: &str, arguments: &str) {
    let (code, out, error) = output_of(Command::new(program).args(arguments.split_whitespace()));
    assert_eq!(code, Some(0), "{program} {arguments}: {out}{error}");
}

impl Path3 {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = std::process::id() * 10 + NUMBER.fetch_add(1, Ordering::Relaxed);
        let names = ["s", "e", "u"].map(|host| format!("rp{number}{host}"));
        let [server, edge, user] = &names;
        for name in &names {
            run("ip", &format!("netns add {name}"));
            run("ip", &format!("-n {name} link set lo up"));
        }
        for (end, end_device, address, address6, own_device, own, own6) in [
            (server, "s0", "10.90.1.1/24", "fd90:1::1/64", "es", "10.90.1.2/24", "fd90:1::2/64"),
            (user, "u0", "10.90.2.1/24", "fd90:2::1/64", "eu", "10.90.2.2/24", "fd90:2::2/64"),
        ] {
            run(
                "ip",
                &format!("link add {own_device} netns {edge} type veth peer name {end_device} netns {end}"),
            );
            for (name, device, address, address6) in
                [(end, end_device, address, address6), (edge, own_device, own, own6)]
            {
                run("ip", &format!("-n {name} addr add {address} dev {device}"));
                run("ip", &format!("-n {name} addr add {address6} dev {device} nodad"));
                run("ip", &format!("-n {name} link set {device} up"));
            }
            let gateway = |own: &str| own.split('/').next().unwrap().to_owned();
            run("ip", &format!("-n {end} route add default via {}", gateway(own)));
            run("ip", &format!("-n {end} -6 route add default via {}", gateway(own6)));
        }
        run("tc", &format!("-n {edge} qdisc add dev eu root tbf rate 50mbit burst 64kb limit 300kb"));
        within(edge, || {
            fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
            fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1").unwrap();
        })
        .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("secret", "0123456789abcdef0123456789abcdef\n");
        fs::set_permissions(folder.path().join("secret"), fs::Permissions::from_mode(0o600)).unwrap();
        let key = "key = 1\nsecret = \"secret\"\n";
        write(
            "pep.toml",
            &format!(
                "devices = [\"es\"]\nid = 7\nlisten = \"{EDGE}:{PORT}\"\nmetrics = \"127.0.0.1:9460\"\nflows = 100\n\
                 [[server]]\naddress = \"{SERVER}\"\n{key}"
            ),
        );
        write(
            "agent.toml",
            &format!("listen = \"{SERVER}:{PORT}\"\n[[pep]]\naddress = \"{EDGE}:{PORT}\"\nid = 7\n{key}"),
        );
        let control = format!("p{number}");
        let rig = Self { names, folder, control, children: Vec::new() };
        rig.ranpace(&["kernel", "load", "mdcc", "--name", &rig.control]);
        rig
    }

    fn ranpace(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ranpace"));
        let (code, out, error) = output_of(command.args(arguments).current_dir(self.folder.path()));
        assert_eq!(code, Some(0), "{arguments:?}: {out}{error}");
        out
    }

    /// Starts `ranpace` in a namespace; its number among the children.
    fn start(&mut self, namespace: usize, arguments: &[&str]) -> usize {
        let log = fs::File::create(self.folder.path().join(format!("log{}", self.children.len()))).unwrap();
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.names[namespace])).arg(env!("CARGO_BIN_EXE_ranpace"));
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null());
        command.stdout(log.try_clone().unwrap()).stderr(log);
        self.children.push(command.spawn().unwrap());
        self.children.len() - 1
    }

    fn log(&self, child: usize) -> String {
        fs::read_to_string(self.folder.path().join(format!("log{child}"))).unwrap()
    }

    fn start_pep(&mut self) -> usize {
        let pep = self.start(1, &["pep", "--config", "pep.toml"]);
        until("the PEP observes", || self.log(pep).contains("observing es"));
        pep
    }

    fn start_agent(&mut self) -> usize {
        let control = self.control.clone();
        self.start(0, &["kernel", "feed", &control, "--from", "pep:agent.toml"])
    }

    /// A figure of the PEP.
    fn metric(&self, name: &str) -> u64 {
        let text = within(&self.names[1], || {
            let mut stream = TcpStream::connect("127.0.0.1:9460").unwrap();
            stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: pep\r\nConnection: close\r\n\r\n").unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            text
        })
        .unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("pep_{name} ")));
        line.unwrap_or_else(|| panic!("{name}: {text}")).trim().parse().unwrap()
    }

    /// A figure of the server's connection to this port.
    fn figure(&self, port: u16, name: &'static str) -> Option<f64> {
        let control = self.control.clone();
        let sockets = within(&self.names[0], move || ranpace_kernel::sockets(&control).unwrap()).unwrap();
        let own = sockets.iter().find(|socket| socket.peer.ends_with(&format!(":{port}")))?;
        own.figure(name)
    }

    /// The user reads all that comes.
    fn reader(&self, address: &str) -> Reader {
        let address: IpAddr = address.parse().unwrap();
        let listener = within(&self.names[2], move || TcpListener::bind((address, 0)).unwrap()).unwrap();
        let place = listener.local_addr().unwrap();
        let bytes = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&bytes);
        let thread = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut buffer = vec![0; 1 << 18];
            loop {
                match stream.read(&mut buffer).unwrap() {
                    0 => return,
                    n => counted.fetch_add(n as u64, Ordering::SeqCst),
                };
            }
        });
        Reader { place, bytes, thread }
    }

    /// Whether the agent has read every datagram that came: none waits in its socket, and none found that full.
    fn has_agent_read_all(&self) -> bool {
        let table =
            within(&self.names[0], || fs::read_to_string("/proc/thread-self/net/udp").unwrap()).unwrap();
        // Columns of proc_pid_net(5), "udp": local address and port, the queues' bytes ("tx:rx"), and drops at the end.
        let socket = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let socket =
            socket.into_iter().find(|columns| columns[1].ends_with(&format!(":{PORT:04X}"))).unwrap();
        assert_eq!(socket.last(), Some(&"0"), "datagrams were dropped: {table}");
        socket[4].ends_with(":00000000")
    }

    /// The server connects to it, under the control.
    fn connect(&self, to: SocketAddr) -> TcpStream {
        let control = self.control.clone();
        within(&self.names[0], move || {
            let stream = TcpStream::connect(to).unwrap();
            setsockopt(&stream, sockopt::TcpCongestion, &control.into()).unwrap();
            stream
        })
        .unwrap()
    }
}

impl Drop for Path3 {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ =
            output_of(Command::new(env!("CARGO_BIN_EXE_ranpace")).args(["kernel", "unload", &self.control]));
        for name in &self.names {
            let _ = output_of(Command::new("ip").args(["netns", "del", name]));
        }
    }
}

/// The user's end of a connection.
struct Reader {
    place: SocketAddr,
    /// How much has come.
    bytes: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Reader {
    /// Waits until the connection is over; how much came.
    fn total(self) -> u64 {
        self.thread.join().unwrap();
        self.bytes.load(Ordering::SeqCst)
    }
}

/// Sends as long as `is_so` is not; what was sent.
fn send_until(stream: &mut TcpStream, what: &str, mut is_so: impl FnMut() -> bool) -> u64 {
    let mut sent = 0;
    until(what, || {
        // At the link's pace: data are always on the way.
        for _ in 0..10 {
            stream.write_all(&[7; 20_000]).unwrap();
            sent += 20_000;
        }
        is_so()
    });
    sent
}

#[test]
fn server_hears_of_its_packets_and_sends_on_by_itself_when_the_pep_is_killed() {
    let Some(_turn) = rights() else { return };
    let mut rig = Path3::new();
    let pep = rig.start_pep();
    let agent = rig.start_agent();
    until("the server is subscribed", || rig.metric("subscribed_servers") == 1);
    let reader = rig.reader(USER[0]);
    let place = reader.place;
    let mut stream = rig.connect(place);
    let before = rig.metric("packets_total");
    let mut sent =
        send_until(&mut stream, "both windows count", || rig.figure(place.port(), "both") == Some(1.0));
    sent +=
        send_until(&mut stream, "reports", || rig.figure(place.port(), "reports").is_some_and(|n| n >= 50.0));
    assert_eq!(rig.figure(place.port(), "refused"), Some(0.0));
    // The kernel forwards segments that it has merged; they are counted as what the server sent.
    until("all is counted", || rig.metric("packets_total") - before >= sent / 1_460);
    let counted = rig.metric("packets_total") - before;
    assert!(counted <= sent / 1_000, "{counted} packets of {sent} bytes");
    assert_eq!(rig.metric("missed_packets_total") + rig.metric("malformed_packets_total"), 0);
    rig.children[pep].kill().unwrap();
    rig.children[pep].wait().unwrap();
    sent += send_until(&mut stream, "CUBIC is alone", || rig.figure(place.port(), "both") == Some(0.0));
    // It comes back, under numbers that the agent has not had yet.
    rig.start_pep();
    sent += send_until(&mut stream, "both windows again", || rig.figure(place.port(), "both") == Some(1.0));
    drop(stream);
    assert_eq!(reader.total(), sent, "all of it has come");
    assert_eq!(rig.children[agent].try_wait().unwrap(), None, "{}", rig.log(agent));
}

#[test]
fn forged_repeated_and_strange_messages_are_refused_and_floods_of_flows_take_bounded_memory() {
    let Some(_turn) = rights() else { return };
    let mut rig = Path3::new();
    rig.start_pep();
    rig.start_agent();
    until("the server is subscribed", || rig.metric("subscribed_servers") == 1);
    let reader = rig.reader(USER[0]);
    let place = reader.place;
    let mut stream = rig.connect(place);
    // What comes to the server by UDP, IP headers included.
    let copies = within(&rig.names[0], || {
        socket(AddressFamily::Inet, SockType::Raw, SockFlag::empty(), SockProtocol::Udp).unwrap()
    })
    .unwrap();
    setsockopt(&copies, sockopt::ReceiveTimeout, &TimeVal::milliseconds(SILENT_MS)).unwrap();
    let mut sent =
        send_until(&mut stream, "reports", || rig.figure(place.port(), "reports").is_some_and(|n| n >= 20.0));
    until("the user has all", || reader.bytes.load(Ordering::SeqCst) == sent);
    let mut buffer = [0; 2_048];
    let mut genuine = Vec::new();
    let ended = loop {
        match recv(copies.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
            Ok(length) => genuine.push(buffer[28..length].to_vec()),
            Err(error) => break error,
        }
    };
    assert_eq!(ended, Errno::EAGAIN, "the PEP is silent");
    assert!(genuine.len() >= 10, "{} reports", genuine.len());
    until("the agent has read them", || rig.has_agent_read_all());
    let accepted = rig.figure(place.port(), "reports").unwrap();
    // From the edge's address and port, as only a host on the path could: each report again, and changed in a byte.
    let attack = within(&rig.names[1], move || {
        let raw = socket(AddressFamily::Inet, SockType::Raw, SockFlag::empty(), SockProtocol::Raw).unwrap();
        let to = SockaddrIn::new(10, 90, 1, 1, 0);
        let send = |content: &[u8]| {
            let mut packet = Vec::new();
            let builder = PacketBuilder::ipv4([10, 90, 1, 2], [10, 90, 1, 1], 64).udp(PORT, PORT);
            builder.write(&mut packet, content).unwrap();
            sendto(raw.as_raw_fd(), &packet, &to, MsgFlags::empty()).unwrap();
        };
        for (number, report) in genuine.iter().take(MOST_ATTACKS / 3).enumerate() {
            send(report);
            let mut forged = report.clone();
            let place = 8 + number % (forged.len() - 8);
            forged[place] ^= 0x40;
            send(&forged);
            send(&report[..number.min(report.len())]);
        }
    });
    attack.unwrap();
    until("the agent has read the attack", || rig.has_agent_read_all());
    assert_eq!(rig.figure(place.port(), "reports"), Some(accepted), "none of them was believed");
    assert_eq!(rig.figure(place.port(), "refused"), Some(0.0));
    // To the PEP: from the server's address without the key, and from a user.
    within(&rig.names[0], || {
        let socket = UdpSocket::bind((SERVER, 0)).unwrap();
        let raw = socket_of_server();
        for number in 0..50_u8 {
            let mut packet = Vec::new();
            let builder = PacketBuilder::ipv4([10, 90, 1, 1], [10, 90, 1, 2], 64).udp(PORT, PORT);
            builder.write(&mut packet, &[0x11, number, 0, 1, 0, 0, 0, 7].repeat(12)).unwrap();
            sendto(raw.as_raw_fd(), &packet, &SockaddrIn::new(10, 90, 1, 2, 0), MsgFlags::empty()).unwrap();
            socket.send_to(&[0x11; 90], (EDGE, PORT)).unwrap();
        }
    })
    .unwrap();
    until("forged subscriptions are refused", || rig.metric("refused_messages_total") >= 50);
    until("strangers are counted", || rig.metric("stranger_messages_total") >= 50);
    assert_eq!(rig.metric("subscribed_servers"), 1);
    // Packets of 2,000 flows, whole, cut off, and in fragments; the table has room for 100.
    within(&rig.names[0], || {
        let raw = socket_of_server();
        let to = SockaddrIn::new(10, 90, 2, 1, 0);
        for port in 10_000..12_000_u16 {
            let mut packet = Vec::new();
            let builder = PacketBuilder::ipv4([10, 90, 1, 1], [10, 90, 2, 1], 64).tcp(443, port, 1, 1);
            builder.write(&mut packet, &[1; 100]).unwrap();
            match port % 8 {
                0 => packet.truncate(20 + usize::from(port / 8 % 20)),
                1 => packet[6] = 0x20,
                2 => packet[32] = 0xf0,
                _ => {}
            }
            sendto(raw.as_raw_fd(), &packet, &to, MsgFlags::empty()).unwrap();
        }
    })
    .unwrap();
    until("flows are forgotten in favour of others", || rig.metric("flows_evicted_total") >= 1_000);
    assert!(rig.metric("flows") <= 100 && rig.metric("malformed_packets_total") >= 200);
    assert!(rig.metric("fragments_total") >= 200);
    sent += send_until(&mut stream, "the connection's reports go on", || {
        rig.figure(place.port(), "reports").is_some_and(|n| n > accepted)
    });
    drop(stream);
    assert_eq!(reader.total(), sent);
}

/// A socket for whole packets.
fn socket_of_server() -> std::os::fd::OwnedFd {
    socket(AddressFamily::Inet, SockType::Raw, SockFlag::empty(), SockProtocol::Raw).unwrap()
}

#[test]
fn faults_of_a_configuration_are_told_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let write = |text: &str| fs::write(folder.path().join("pep.toml"), text).unwrap();
    let check = |folder: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ranpace"));
        output_of(command.args(["pep", "check", "--config", "pep.toml"]).current_dir(folder))
    };
    write(
        "devices = [\"nowhere0\"]\nid = 7\nflowz = 1\n[[server]]\naddress = \"192.0.2.1\"\nkey = 1\nsecret = \"none\"\n",
    );
    let (code, _, error) = check(folder.path());
    assert_eq!(code, Some(2), "{error}");
    for expected in [
        "line 3: `flowz`: unknown key; did you mean `flows`?",
        "no device \"nowhere0\"",
        "`server.secret`: none: No such file",
    ] {
        assert!(error.contains(expected), "{expected}: {error}");
    }
}
