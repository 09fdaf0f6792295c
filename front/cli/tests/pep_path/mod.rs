//! A server and a user in namespaces, and between them an edge that forwards, at which `ranpace pep` observes; `ranpace kernel feed mdcc` is
//! the agent of the server.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, setsockopt, socket, sockopt};
use ranpace_emulator::within;

use crate::emulation::{output_of, until};

pub const SERVER: &str = "10.90.1.1";
pub const EDGE: &str = "10.90.1.2";
pub const USER: [&str; 2] = ["10.90.2.1", "fd90:2::1"];
pub const PORT: u16 = 49_460;

/// A server and a user, with an edge between them that forwards, in namespaces.
pub struct Path3 {
    pub names: [String; 3],
    pub folder: tempfile::TempDir,
    /// Name of the control that the kernel lists, if it is loaded.
    control: String,
    is_loaded: bool,
    pub children: Vec<Child>,
}

pub fn run(program: &str, arguments: &str) {
    let (code, out, error) = output_of(Command::new(program).args(arguments.split_whitespace()));
    assert_eq!(code, Some(0), "{program} {arguments}: {out}{error}");
}

impl Path3 {
    pub fn new() -> Self {
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
        Self { names, folder, control: format!("p{number}"), is_loaded: false, children: Vec::new() }
    }

    /// The same, with Multi-Domain control in the kernel.
    pub fn with_control() -> Self {
        let mut rig = Self::new();
        rig.ranpace(&["kernel", "load", "mdcc", "--name", &rig.control]);
        rig.is_loaded = true;
        rig
    }

    pub fn ranpace(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ranpace"));
        let (code, out, error) = output_of(command.args(arguments).current_dir(self.folder.path()));
        assert_eq!(code, Some(0), "{arguments:?}: {out}{error}");
        out
    }

    /// Starts `ranpace` in a namespace; its number among the children.
    pub fn start(&mut self, namespace: usize, arguments: &[&str]) -> usize {
        let log = fs::File::create(self.folder.path().join(format!("log{}", self.children.len()))).unwrap();
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.names[namespace])).arg(env!("CARGO_BIN_EXE_ranpace"));
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null());
        command.stdout(log.try_clone().unwrap()).stderr(log);
        self.children.push(command.spawn().unwrap());
        self.children.len() - 1
    }

    pub fn log(&self, child: usize) -> String {
        fs::read_to_string(self.folder.path().join(format!("log{child}"))).unwrap()
    }

    pub fn start_pep(&mut self) -> usize {
        let pep = self.start(1, &["pep", "--config", "pep.toml"]);
        until("the PEP observes", || self.log(pep).contains("observing es"));
        pep
    }

    pub fn start_agent(&mut self) -> usize {
        let control = self.control.clone();
        self.start(0, &["kernel", "feed", &control, "--from", "pep:agent.toml"])
    }

    /// A figure of the PEP.
    pub fn metric(&self, name: &str) -> u64 {
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
    pub fn figure(&self, port: u16, name: &'static str) -> Option<f64> {
        let control = self.control.clone();
        let sockets = within(&self.names[0], move || ranpace_kernel::sockets(&control).unwrap()).unwrap();
        let own = sockets.iter().find(|socket| socket.peer.ends_with(&format!(":{port}")))?;
        own.figure(name)
    }

    /// The user reads all that comes.
    pub fn reader(&self, address: &str) -> Reader {
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
    pub fn has_agent_read_all(&self) -> bool {
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
    pub fn connect(&self, to: SocketAddr) -> TcpStream {
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
        if self.is_loaded {
            let mut command = Command::new(env!("CARGO_BIN_EXE_ranpace"));
            let _ = output_of(command.args(["kernel", "unload", &self.control]));
        }
        for name in &self.names {
            let _ = output_of(Command::new("ip").args(["netns", "del", name]));
        }
    }
}

/// The user's end of a connection.
pub struct Reader {
    pub place: SocketAddr,
    /// How much has come.
    pub bytes: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Reader {
    /// Waits until the connection is over; how much came.
    pub fn total(self) -> u64 {
        self.thread.join().unwrap();
        self.bytes.load(Ordering::SeqCst)
    }
}

/// Sends as long as `is_so` is not; what was sent.
pub fn send_until(stream: &mut TcpStream, what: &str, mut is_so: impl FnMut() -> bool) -> u64 {
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

/// A socket for whole packets.
pub fn socket_of_server() -> std::os::fd::OwnedFd {
    socket(AddressFamily::Inet, SockType::Raw, SockFlag::empty(), SockProtocol::Raw).unwrap()
}
