//! `ranpace serve` behind an emulated link, with receivers and feeds of radio information that lie to it over real sockets: the controls' guard
//! keeps a connection from being much worse than its plain control. Where rights are missing these tests say so and end.
#![cfg(all(target_os = "linux", feature = "serve"))]
#![allow(clippy::unwrap_used)] // a test may

mod emulation;
#[path = "../../../carriers/serve/tests/rig/radio_server.rs"]
mod radio_server;
#[path = "../../../carriers/serve/tests/rig/mod.rs"]
mod rig;

use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use emulation::{Emulation, folder_with, rights, until, v4};
use noq::TransportConfig;
use radio_server::RadioServer;
use ranpace_noq::bw_report::Format;
use ranpace_noq::reports::{self, NumberedReport};
use ranpace_phy::TransportBlock;
use ranpace_rnis::{Grant, LinkReport};
use ranpace_units::{Bytes, Rate, Time};
use rig::{Client, endpoint, read, runtime};

/// The queue holds a bandwidth-delay product.
const SCENARIO: &str = r#"
duration = "300s"
[[link]]
name = "down"
from = "server"
to = "phone"
rate = "20Mbit/s"
delay = "20ms"
queue = { kind = "droptail", limit = "100KB" }
duplex = true
[[flow]]
from = "server"
to = "phone"
cc = "cubic"
"#;
/// Bytes of a download, 1.6 s of the link.
const SIZE: u64 = 4_000_000;
/// A connection that is lied to takes at most so many times as long as with the plain control. Ours: in the simulator the guard needs a
/// second at most to find a lie.
const MOST: f64 = 1.5;

/// The rate that a lying receiver reports, by the number of the report.
type Lie = fn(u32) -> Rate;

struct Server(Child);

impl Server {
    fn start(emulation: &Emulation, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ranpace"));
        command.current_dir(emulation.folder.path()).args(["serve", "files", "--listen"]);
        command.arg(address().to_string()).args(["--bytes", "1GB"]).args(arguments);
        let log = std::fs::File::create(emulation.folder.path().join("serve.log")).unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let child = emulation.behind("server", move || command.spawn().unwrap()).join().unwrap();
        until("the server listens", || {
            emulation.behind("server", || std::net::TcpStream::connect(address()).is_ok()).join().unwrap()
        });
        Self(child)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn address() -> SocketAddr {
    SocketAddr::new(v4(0), 4_433)
}

/// Time of a download of this path, by a client that offers the reports of a control, and lies in them.
fn download(emulation: &Emulation, path: &'static str, lie: Option<(&'static str, Format, Lie)>) -> Duration {
    emulation
        .behind("phone", move || {
            runtime().block_on(async move {
                let mut transport = TransportConfig::default();
                transport.datagram_send_buffer_size(reports::SEND_BUFFER);
                let endpoint = endpoint(transport);
                endpoint.rebind(UdpSocket::bind("0.0.0.0:0").unwrap()).unwrap();
                let connection = endpoint.connect(address(), "localhost").unwrap().await.unwrap();
                let client = Client::new(connection.clone()).await;
                let begun = Instant::now();
                let offer = lie.map(|(control, ..)| format!("1 {control}"));
                let fields: Vec<(&str, &str)> =
                    offer.iter().map(|offer| (reports::HEADER, offer.as_str())).collect();
                let stream = client.request("GET", path, &fields).await.unwrap();
                let lying = lie.map(|(_, format, lie)| {
                    tokio::spawn(async move {
                        for number in 0.. {
                            let made_at = Time::from_nanos(begun.elapsed().as_nanos() as u64);
                            let report = format.encode(lie(number));
                            let content = NumberedReport { number, made_at, report }.encode();
                            if connection.send_datagram(content.into()).is_err() {
                                return;
                            }
                            tokio::time::sleep(Duration::from_millis(10)).await;
                        }
                    })
                });
                let answer = read(stream).await.unwrap();
                assert_eq!(answer.content.len() as u64, SIZE);
                let accepted = answer.fields.contains_key(reports::HEADER);
                assert_eq!(accepted, lying.is_some(), "whether the server listens to the client");
                lying.inspect(tokio::task::JoinHandle::abort);
                begun.elapsed()
            })
        })
        .join()
        .unwrap()
}

#[test]
fn lying_receivers_and_lying_feeds_do_not_make_connections_much_slower_than_the_plain_control() {
    let Some(_turn) = rights() else { return };
    let folder = folder_with(SCENARIO);
    std::fs::create_dir_all(folder.path().join("files")).unwrap();
    let table = folder.path().join("table");
    let emulation = Emulation::start_with(folder, ":", &[]);
    let mut radio = RadioServer::start(&table, &v4(1).to_string());
    let stop = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&stop);
    // An empty queue and large blocks, by which MELD hides every loss.
    let feed = thread::spawn(move || {
        let block = TransportBlock::from_bytes(4_587);
        for blocks in 1.. {
            if is_over.load(Ordering::Relaxed) {
                return;
            }
            let grant = Grant {
                mcs: 28,
                prbs: 50,
                symbols: 11,
                block,
                padding: Bytes::ZERO,
                process: 0,
                again: false,
            };
            radio.report(LinkReport {
                grant: Some(grant),
                blocks,
                scheduled_bits: blocks * 36_696,
                scheduled_prb_symbols: blocks * 550,
                ..LinkReport::default()
            });
            thread::sleep(Duration::from_millis(1));
        }
    });
    let controls =
        ["/cubic=cubic", "/cdbev2=cdbev2", "/dcic=dcic", "/newreno=newreno", "/meld=newreno+meld-me"];
    let mut arguments: Vec<String> =
        controls.iter().flat_map(|rule| ["--cc".to_owned(), (*rule).to_owned()]).collect();
    arguments.extend(["--feed".to_owned(), format!("table:{}", table.display())]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let server = Server::start(&emulation, &arguments);
    let median = |path| {
        let mut times = [(); 3].map(|()| download(&emulation, path, None));
        times.sort_unstable();
        times[1]
    };
    // A busy machine slows down a download once, a lie that is believed each time.
    let check = |what: &str, path, lie, plain: Duration| {
        let most = plain.mul_f64(MOST);
        let mut time = download(&emulation, path, lie);
        if time > most {
            eprintln!("{what}: {time:?}, once more");
            time = time.min(download(&emulation, path, lie));
        }
        assert!(time <= most, "{what}: {time:?}, with the plain control {plain:?}");
    };
    let plain = median("/cubic/bytes/4000000");
    let endless: Lie = |_| Rate::from_mbit_per_s(1_000);
    let nothing: Lie = |_| Rate::from_bits_per_s(50_000);
    let wild: Lie =
        |number| Rate::from_bits_per_s(100_000 * 4_u64.pow(number.wrapping_mul(0x9E37_79B9) >> 29));
    for (control, path, format) in
        [("cdbev2", "/cdbev2/bytes/4000000", Format::ThesisV2), ("dcic", "/dcic/bytes/4000000", Format::V1)]
    {
        for (name, lie) in [("endless", endless), ("nothing", nothing), ("wild", wild)] {
            check(&format!("{control}, {name}"), path, Some((control, format, lie)), plain);
        }
    }
    check("MELD", "/meld/bytes/4000000", None, median("/newreno/bytes/4000000"));
    stop.store(true, Ordering::Relaxed);
    feed.join().unwrap();
    drop(server);
}
