//! What `ranpace serve` costs beside a server of noq's own with its own CUBIC: goodput and processor time, a thousand connections at once,
//! memory of a connection, time of a hint.
//!
//! ```sh
//! cargo build --release --package ranpace-serve --example serve_costs
//! sudo unshare --net sh -c 'ip link set lo up; target/release/examples/serve_costs'
//! ```
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement fails where it cannot go on, and prints"
)]

#[path = "../tests/rig/mod.rs"]
mod rig;

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Buf as _;
use noq::crypto::rustls::QuicServerConfig;
use noq::{Endpoint, ServerConfig, TransportConfig};
use ranpace_noq::{ConnectionControl, Controls, RadioHint};
use ranpace_rnisd::server::allow_files;
use ranpace_serve::{Config, Server};
use rig::{Client, endpoint};

/// Bytes of a download whose rate is measured.
const LARGE: u64 = 256 << 20;
/// Repetitions, of which the median counts.
const ROUNDS: usize = 3;
/// Connections at once, and the bytes of each.
const MANY: usize = 1_000;
const SMALL: u64 = 1_000_000;
/// What is told of noq's own server.
const OWN: &str = "noq";
/// Bytes that noq's own server sends at a time.
const PIECE: usize = 64 << 10;

fn main() {
    allow_files(10_000);
    match std::env::args().nth(1).as_deref() {
        None => measure(),
        Some(OWN) => serve_by_noq(),
        Some(control) => serve(control),
    }
}

/// `ranpace serve` with this control, until standard input ends.
fn serve(control: &str) {
    let mut config = Config::new("/".into());
    config.listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    config.generated = Some(LARGE);
    config.grace = Duration::ZERO;
    config.limits.connections_per_address = 10_000;
    config.limits.handshakes = 10_000;
    config.quic_control.add(control.parse().unwrap());
    let server = Server::start(config).unwrap();
    println!("{}", server.address());
    wait_for_end();
}

fn wait_for_end() {
    let _ = std::io::stdin().read_line(&mut String::new());
}

/// A server of noq alone: a stream brings a number of bytes, and gets them.
fn serve_by_noq() {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(own.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key.into())
        .unwrap();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls).unwrap()));
    let mut transport = TransportConfig::default();
    transport.send_window(ranpace_serve::http3::SEND_WINDOW);
    config.transport_config(Arc::new(transport));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let endpoint = Endpoint::server(config, SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
        println!("{}", endpoint.local_addr().unwrap());
        tokio::spawn(async move {
            while let Some(incoming) = endpoint.accept().await {
                tokio::spawn(async move {
                    let Ok(connection) = incoming.await else { return };
                    while let Ok((mut send, mut recv)) = connection.accept_bi().await {
                        tokio::spawn(async move {
                            let mut length = [0; 8];
                            recv.read_exact(&mut length).await.unwrap();
                            let piece = vec![7; PIECE];
                            let mut left = u64::from_be_bytes(length) as usize;
                            while left > 0 {
                                let now = left.min(PIECE);
                                send.write_all(&piece[..now]).await.unwrap();
                                left -= now;
                            }
                            send.finish().unwrap();
                            let _ = send.stopped().await;
                        });
                    }
                });
            }
        });
        let _ = tokio::task::spawn_blocking(wait_for_end).await;
    });
}

/// A server in a process of its own.
struct Process {
    child: Child,
    address: SocketAddr,
    is_own: bool,
}

impl Process {
    fn start(what: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .arg(what)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, address: line.trim().parse().unwrap(), is_own: what == OWN }
    }

    /// Processor time that it has taken.
    fn processor(&self) -> Duration {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let of = |task: std::io::Result<std::fs::DirEntry>| {
            let text = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<u64>().ok()
        };
        Duration::from_nanos(tasks.filter_map(of).sum())
    }

    /// Bytes of memory that only it has.
    fn memory(&self) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", self.child.id())).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("Private_Dirty:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    async fn connect(&self, endpoint: &Endpoint) -> Peer {
        let connection = endpoint.connect(self.address, "localhost").unwrap().await.unwrap();
        if self.is_own { Peer::Own(connection) } else { Peer::Http(Client::new(connection).await) }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.stdin.take().unwrap().write_all(b"\n");
        let _ = self.child.wait();
    }
}

/// A client of either server.
enum Peer {
    Own(noq::Connection),
    Http(Client),
}

impl Peer {
    /// Downloads and returns how many bytes came.
    async fn download(&self, length: u64) -> Result<u64, String> {
        let mut received = 0;
        match self {
            Self::Own(connection) => {
                let (mut send, mut recv) = connection.open_bi().await.map_err(|error| error.to_string())?;
                send.write_all(&length.to_be_bytes()).await.map_err(|error| error.to_string())?;
                while let Some(piece) =
                    recv.read_chunk(usize::MAX).await.map_err(|error| error.to_string())?
                {
                    received += piece.len() as u64;
                }
            }
            Self::Http(client) => {
                let path = format!("/bytes/{length}");
                let mut stream =
                    client.request("GET", &path, &[]).await.map_err(|error| error.to_string())?;
                stream.recv_response().await.map_err(|error| error.to_string())?;
                while let Some(piece) = stream.recv_data().await.map_err(|error| error.to_string())? {
                    received += piece.remaining() as u64;
                }
            }
        }
        Ok(received)
    }
}

/// An endpoint whose socket, one for all its connections, holds what a thousand of them get at once.
fn client() -> Endpoint {
    let endpoint = endpoint(TransportConfig::default());
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, 64 << 20).unwrap();
    endpoint.rebind(socket).unwrap();
    endpoint
}

fn measure() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let servers = [OWN, "cubic", "newreno+meld-me", "bbr1"];
    println!("| server | goodput, Mbit/s | processor time of the server, s/GB |\n|---|---|---|");
    let mut all = vec![Vec::new(); servers.len()];
    for _ in 0..ROUNDS {
        for (number, what) in servers.iter().enumerate() {
            all[number].push(runtime.block_on(large(what)));
        }
    }
    for (what, mut rounds) in servers.iter().zip(all) {
        rounds.sort_by(|one, other| one.1.total_cmp(&other.1));
        let processor = rounds[ROUNDS / 2].1;
        rounds.sort_by(|one, other| one.0.total_cmp(&other.0));
        println!("| {what} | {:.0} | {processor:.2} |", rounds[ROUNDS / 2].0);
    }
    println!(
        "\n| server | {MANY} connections of {SMALL} bytes at once | errors | memory of a connection, KB |\n|---|---|---|---|"
    );
    for what in &servers[..2] {
        let (seconds, errors) = runtime.block_on(many(what));
        let memory = runtime.block_on(memory(what));
        println!("| {what} | {seconds:.2} s | {errors} | {:.1} |", memory / 1e3);
    }
    println!("\nA hint takes {:.0} ns", runtime.block_on(hint()));
}

/// Goodput in Mbit/s, and processor seconds of the server for a gigabyte.
async fn large(what: &str) -> (f64, f64) {
    let process = Process::start(what);
    let endpoint = endpoint(TransportConfig::default());
    let peer = process.connect(&endpoint).await;
    peer.download(SMALL).await.unwrap();
    let (before, begun) = (process.processor(), Instant::now());
    assert_eq!(peer.download(LARGE).await.unwrap(), LARGE);
    let (seconds, processor) = (begun.elapsed().as_secs_f64(), process.processor() - before);
    (LARGE as f64 * 8.0 / seconds / 1e6, processor.as_secs_f64() * 1e9 / LARGE as f64)
}

/// Seconds of many downloads at once, and how many failed.
async fn many(what: &str) -> (f64, usize) {
    let process = Process::start(what);
    let endpoint = client();
    let mut peers = Vec::new();
    for _ in 0..MANY {
        peers.push(process.connect(&endpoint).await);
    }
    let begun = Instant::now();
    let all: Vec<_> =
        peers.into_iter().map(|peer| tokio::spawn(async move { peer.download(SMALL).await })).collect();
    let mut errors = 0;
    for one in all {
        errors += usize::from(one.await.unwrap() != Ok(SMALL));
    }
    (begun.elapsed().as_secs_f64(), errors)
}

/// Bytes that a connection takes which has answered a request and waits for another one.
async fn memory(what: &str) -> f64 {
    let process = Process::start(what);
    let endpoint = client();
    let mut peers = Vec::new();
    let mut connect = async |count: usize| {
        for _ in 0..count {
            let peer = process.connect(&endpoint).await;
            peer.download(1_000).await.unwrap();
            peers.push(peer);
        }
        process.memory()
    };
    let before = connect(MANY).await;
    let after = connect(MANY).await;
    (after - before) as f64 / MANY as f64
}

/// Nanoseconds from a hint in the hands of the thread that reads the feed to the connection's control.
async fn hint() -> f64 {
    const HINTS: u32 = 1_000_000;
    let controls = Arc::new("newreno+meld-me".parse::<Controls>().unwrap());
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(controls.clone());
    let process = Process::start("newreno+meld-me");
    let endpoint = endpoint(transport);
    let connection = endpoint.connect(process.address, "localhost").unwrap().await.unwrap();
    let control = ConnectionControl::new(connection, controls.clone());
    let info = ranpace_rnis::CellInfo::lte(0, ranpace_phy::LteBandwidth::Mhz10);
    let begun = Instant::now();
    for _ in 0..HINTS {
        let hint = RadioHint::of(info, controls.time(Instant::now()));
        assert!(control.on_radio(&hint));
    }
    begun.elapsed().as_nanos() as f64 / f64::from(HINTS)
}
