//! `ranpace pep` on a forwarded path between network namespaces, with `ranpace kernel feed mdcc` as the agent of the server: what it counts,
//! whom it believes, and what becomes of connections when it is killed. Where rights are missing these tests say so and end.
#![cfg(all(target_os = "linux", feature = "kernel"))]
#![allow(clippy::unwrap_used)] // a test may

mod emulation;
mod pep_path;
mod pep_tests {
    mod lies;
    mod packets;
    mod quic;
    #[cfg(all(feature = "serve", feature = "fetch"))]
    mod serve;
}
#[cfg(all(feature = "serve", feature = "fetch"))]
#[path = "../../../carriers/serve/tests/rig/mod.rs"]
mod rig;

use std::fs;
use std::net::UdpSocket;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering;

use etherparse::PacketBuilder;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, recv, sendto, setsockopt, socket,
    sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike as _};
use ranpace_emulator::within;

use emulation::{output_of, rights, until};
use pep_path::{EDGE, PORT, Path3, SERVER, USER, send_until, socket_of_server};

/// The PEP is silent if it sends nothing for so long: ten times as long as until a flow's closing report.
const SILENT_MS: i64 = 200;
/// Messages of an attack: fewer than the 200 that an agent examines in a row, or else its limit and not their seals refuses them.
const MOST_ATTACKS: usize = 180;

#[test]
fn server_hears_of_its_packets_and_sends_on_by_itself_when_the_pep_is_killed() {
    let Some(_turn) = rights() else { return };
    let mut rig = Path3::with_control();
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
    let mut rig = Path3::with_control();
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
