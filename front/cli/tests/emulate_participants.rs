//! Proxies, PEPs, middleboxes, header rewriters and radio information in `ranpace emulate`, for real TCP. Where rights are missing these tests say so and end.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // a test may

mod emulation;

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use emulation::{Emulation, content, folder_with, rights, transferred, v4, v6};

/// A server, a lossy core with a host in its middle, and a phone in an LTE cell.
const SCENARIO: &str = r#"
duration = "10s"
seed = 3

[[link]]
name = "core"
from = "server"
to = "edge"
rate = "200Mbit/s"
delay = "5ms"
loss = { kind = "random", probability = 0.003 }
duplex = true

[[link]]
name = "backhaul"
from = "edge"
to = "mast"
rate = "1Gbit/s"
delay = "1ms"
duplex = true

[[cell]]
host = "mast"
preset = "rapid-oai"

[[user]]
name = "phone"

[[flow]]
from = "server"
to = "phone"
cc = "cubic"
"#;

fn with(tables: &str) -> String {
    format!("{SCENARIO}{tables}")
}

fn proxy(kind: &str) -> String {
    with(&format!("[[proxy]]\nname = \"proxy\"\nhost = \"edge\"\nkind = \"{kind}\"\n"))
}

/// Adds up this member over all connections that the proxy split.
fn of_splits(summary: &serde_json::Value, member: &str) -> u64 {
    let flows = summary["flows"].as_array().unwrap();
    flows.iter().filter_map(|flow| flow["split"][member].as_u64()).sum()
}

#[test]
fn payload_crosses_a_proxy_intact_both_ways_whoever_opens_and_over_ipv6() {
    let Some(_turn) = rights() else { return };
    for (kind, more) in [("split", &[][..]), ("rapid", &["--gro"])] {
        let mut emulation = Emulation::start_with(folder_with(&proxy(kind)), ":", more);
        let sent = content(1_500_000);
        for (from, to, address) in [
            ("server", "phone", v4(1)),
            ("phone", "server", v4(0)),
            ("server", "phone", v6(1)),
            ("phone", "server", v6(0)),
        ] {
            let arrived = transferred(&emulation, from, (to, address), sent.clone());
            assert!(arrived == sent, "{kind}: {from} to {to} at {address}: {} bytes", arrived.len());
        }
        let (_, summary, _) = emulation.end();
        assert_eq!(of_splits(&summary, "connections"), 4, "{kind}");
        assert_eq!(of_splits(&summary, "passed_through"), 0, "{kind}");
        let core = &summary["links"][0];
        assert!(core["lost_packets"].as_u64().unwrap() > 0, "the core is lossy: {core}");
    }
}

#[test]
fn proxy_passes_on_refusals_and_half_closes_of_either_side() {
    let Some(_turn) = rights() else { return };
    let mut emulation = Emulation::start_with(folder_with(&proxy("split")), ":", &[]);
    let refused = emulation.behind("phone", || {
        let nobody = SocketAddr::new(v4(0), 7_100);
        TcpStream::connect_timeout(&nobody, Duration::from_secs(20)).map(|_| ()).map_err(|error| error.kind())
    });
    assert_eq!(refused.join().unwrap(), Err(ErrorKind::ConnectionRefused));

    // The server answers only what it has read to its end; then it stops in the middle of an answer.
    let address = SocketAddr::new(v4(0), 7_101);
    let server = emulation.behind("server", move || {
        let listener = TcpListener::bind(address).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        let mut question = String::new();
        stream.read_to_string(&mut question).unwrap();
        stream.write_all(question.to_uppercase().as_bytes()).unwrap();
        drop(stream);
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 5]).unwrap();
        // Closing a socket with unread data resets the connection.
        stream.peek(&mut [0]).unwrap();
    });
    let client = emulation.behind("phone", move || {
        let connect = || loop {
            if let Ok(stream) = TcpStream::connect(address) {
                break stream;
            }
        };
        let mut stream = connect();
        stream.write_all(b"a question").unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let mut stream = connect();
        stream.write_all(b"again, and more than is read").unwrap();
        let reset = stream.read_to_end(&mut Vec::new()).map_err(|error| error.kind());
        (answer, reset)
    });
    assert_eq!(client.join().unwrap(), ("A QUESTION".to_owned(), Err(ErrorKind::ConnectionReset)));
    server.join().unwrap();
    emulation.end();
}

#[test]
fn pep_sees_packets_to_users_and_middlebox_drops_some() {
    let Some(_turn) = rights() else { return };
    let tables = "[[pep]]\nname = \"pep\"\nhost = \"mast\"\n\
                  [[middlebox]]\nhost = \"edge\"\nkind = \"drop_every\"\npackets = 200\n";
    let mut emulation = Emulation::start_with(folder_with(&with(tables)), ":", &[]);
    let sent = content(2_000_000);
    assert!(transferred(&emulation, "server", ("phone", v4(1)), sent.clone()) == sent);
    let (_, summary, _) = emulation.end();
    let pep = &summary["peps"][0];
    let figure = |name: &str| pep[name].as_u64().unwrap();
    assert!(figure("packets") > 1_380 && figure("flows") == 1, "{pep}");
    assert!(figure("verified") > 0 && figure("verified") <= figure("reports"), "{pep}");
    assert_eq!((figure("refused"), figure("impossible")), (0, 0), "{pep}");
    let way = summary["flows"].as_array().unwrap().iter().find(|flow| flow["name"] == "server to phone");
    let dropped = way.unwrap()["dropped_packets"].as_u64().unwrap();
    assert!(dropped >= 2_000_000 / 1_448 / 200, "{dropped}");
}

#[test]
fn payload_crosses_header_rewriters_intact_both_ways_whoever_opens_and_over_ipv6() {
    let Some(_turn) = rights() else { return };
    let tables = "[[rewriter]]\nhost = \"edge\"\nkind = \"milliproxy\"\n\
                  [[rewriter]]\nhost = \"mast\"\nkind = \"guidance\"\nperiod = \"10ms\"\n";
    let mut emulation = Emulation::start_with(folder_with(&with(tables)), ":", &[]);
    let sent = content(1_500_000);
    for (from, to, address) in [
        ("server", "phone", v4(1)),
        ("phone", "server", v4(0)),
        ("server", "phone", v6(1)),
        ("phone", "server", v6(0)),
    ] {
        let arrived = transferred(&emulation, from, (to, address), sent.clone());
        assert!(arrived == sent, "{from} to {to} at {address}: {} bytes", arrived.len());
    }
    emulation.end();
}

#[test]
fn hints_are_written_as_lines_during_the_run() {
    let Some(_turn) = rights() else { return };
    let tables = "[rnis]\nperiod = \"10ms\"\n";
    let more = &["--hints", "hints.jsonl"];
    let mut emulation = Emulation::start_with(folder_with(&with(tables)), ":", more);
    let path = emulation.folder.path().join("hints.jsonl");
    emulation::until("a hint is there", || {
        std::fs::read_to_string(&path).is_ok_and(|text| text.contains('\n'))
    });
    let text = std::fs::read_to_string(&path).unwrap();
    let line: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!((&line["user"], line["cell_prbs"].as_u64()), (&"phone".into(), Some(25)), "{line}");
    emulation.end();
}
