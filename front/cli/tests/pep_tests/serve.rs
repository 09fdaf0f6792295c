//! `ranpace serve` hears `ranpace pep`: Multi-Domain control over QUIC, between processes.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use noq::TransportConfig;
use ranpace_emulator::within;

use crate::emulation::{output_of, rights, until};
use crate::pep_path::{Path3, SERVER};
use crate::rig::{Client, endpoint, runtime};

/// A counter of the server.
fn metric(rig: &Path3, name: &str) -> u64 {
    let text = within(&rig.names[0], || {
        let mut stream = TcpStream::connect("127.0.0.1:9106").unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: serve\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    })
    .unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{name}: {text}")).trim().parse().unwrap()
}

#[test]
fn connections_of_ranpace_serve_hear_what_a_pep_has_seen_and_go_on_without_it() {
    let Some(_turn) = rights() else { return };
    let mut rig = Path3::new();
    let pep = rig.start_pep();
    std::fs::create_dir(rig.folder.path().join("files")).unwrap();
    let listen = format!("{SERVER}:4433");
    let server = rig.start(
        0,
        &[
            "serve",
            "files",
            "--listen",
            &listen,
            "--bytes",
            "1GB",
            "--cc",
            "/mdcc=mdcc",
            "--pep",
            "agent.toml",
            "--metrics",
            "127.0.0.1:9106",
            "--samples",
            "samples",
            "--samples-period",
            "10ms",
        ],
    );
    until("the server is there", || rig.log(server).contains("serving"));
    until("the server is subscribed", || rig.metric("subscribed_servers") == 1);
    let fetch = |rig: &Path3| {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", rig.names[2])).arg(env!("CARGO_BIN_EXE_ranpace"));
        command.args(["fetch", &format!("https://{listen}/mdcc/bytes/6000000"), "--insecure", "--json"]);
        let (code, out, error) = output_of(&mut command);
        assert_eq!(code, Some(0), "{out}{error}");
    };
    fetch(&rig);
    let reports = metric(&rig, "serve_pep_reports_total");
    assert!(reports >= 20, "{reports} reports; {}", rig.log(server));
    let samples = std::fs::read_to_string(rig.folder.path().join("samples")).unwrap();
    let both = samples.lines().filter(|line| line.contains("\"both\":1.0")).count();
    assert!(both >= 10, "{both} of {} samples with both windows: {samples}", samples.lines().count());
    assert_eq!(rig.metric("refused_messages_total") + rig.metric("malformed_packets_total"), 0);

    two_connections_of_a_socket(&rig, listen.parse().unwrap());

    rig.children[pep].kill().unwrap();
    rig.children[pep].wait().unwrap();
    // Its last reports are still read.
    sleep(Duration::from_millis(200));
    let reports = metric(&rig, "serve_pep_reports_total");
    fetch(&rig);
    assert_eq!(metric(&rig, "serve_pep_reports_total"), reports, "nobody reports any more");
    assert_eq!(rig.children[server].try_wait().unwrap(), None, "{}", rig.log(server));
}

/// A datagram does not show which of them it belongs to: while there are two, PEPs report on neither.
fn two_connections_of_a_socket(rig: &Path3, server: SocketAddr) {
    let reports = || metric(rig, "serve_pep_reports_total");
    let (runtime, endpoint) = within(&rig.names[2], || {
        let runtime = runtime();
        let inside = runtime.enter();
        let endpoint = endpoint(TransportConfig::default());
        endpoint.rebind(UdpSocket::bind("0.0.0.0:0").unwrap()).unwrap();
        drop(inside);
        (runtime, endpoint)
    })
    .unwrap();
    runtime.block_on(async {
        let connect =
            || async { Client::new(endpoint.connect(server, "localhost").unwrap().await.unwrap()).await };
        let (one, other) = (connect().await, connect().await);
        let before = reports();
        for _ in 0..3 {
            let (first, second) =
                tokio::join!(one.get("/mdcc/bytes/1000000", &[]), other.get("/mdcc/bytes/1000000", &[]));
            assert_eq!((first.unwrap().content.len(), second.unwrap().content.len()), (1_000_000, 1_000_000));
            tokio::time::sleep(Duration::from_millis(150)).await; // the server has looked at their controls
        }
        assert_eq!(reports(), before, "reports of two connections at one address");
    });
}
