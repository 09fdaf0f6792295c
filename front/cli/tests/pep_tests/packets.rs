//! Packets in all the forms in which they pass: over both families, in batches (GSO), with a VLAN tag, in fragments.

use std::collections::BTreeSet;
use std::fs;
use std::io::IoSlice;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::process::Command;
use std::thread;
use std::time::Duration;

use etherparse::{EtherType, PacketBuilder, SingleVlanHeader, VlanId, VlanPcp};
use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrStorage, sendmsg};
use ranpace_emulator::within;
use ranpace_tap::clock;
use ranpace_tap::config::AgentConfig;
use ranpace_tap::quic::QuicAgents;

use crate::emulation::{PATIENCE, output_of, rights, until};
use crate::pep_path::{PORT, Path3, SERVER, USER, send_until};

const EDGE6: &str = "fd90:1::2";
const SERVER6: &str = "fd90:1::1";

/// A rig whose PEP and agent use both families: a server has an address, and a key, of each.
fn with_both_families(rig: &Path3) {
    let write = |name: &str, text: &str| fs::write(rig.folder.path().join(name), text).unwrap();
    let secret = "secret = \"secret\"\n";
    write(
        "pep.toml",
        &format!(
            "devices = [\"es\"]\nid = 7\nlisten = \"[::]:{PORT}\"\nmetrics = \"127.0.0.1:9460\"\n\
             [[server]]\naddress = \"{SERVER}\"\nkey = 1\n{secret}[[server]]\naddress = \"{SERVER6}\"\nkey = 2\n{secret}"
        ),
    );
    write(
        "agent.toml",
        &format!(
            "listen = \"[::]:{PORT}\"\n[[pep]]\naddress = \"10.90.1.2:{PORT}\"\nid = 7\nkey = 1\n{secret}\
             [[pep]]\naddress = \"[{EDGE6}]:{PORT}\"\nid = 7\nkey = 2\n{secret}"
        ),
    );
}

#[test]
fn an_agent_at_both_families_hears_of_connections_over_both() {
    let Some(_turn) = rights() else { return };
    let mut rig = Path3::with_control();
    with_both_families(&rig);
    rig.start_pep();
    rig.start_agent();
    until("both addresses are subscribed", || rig.metric("subscribed_servers") == 2);
    for user in USER {
        let reader = rig.reader(user);
        let port = reader.place.port();
        let mut stream = rig.connect(reader.place);
        let sent = send_until(&mut stream, "both windows count", || {
            rig.figure(port, "both") == Some(1.0) && rig.figure(port, "reports").is_some_and(|n| n >= 20.0)
        });
        assert_eq!(rig.figure(port, "refused"), Some(0.0), "{user}");
        drop(stream);
        assert_eq!(reader.total(), sent, "{user}");
    }
}

/// Datagrams of a batch, which differ, and the last of which is shorter.
fn batch(number: u64) -> Vec<Vec<u8>> {
    let datagram = |place: u64| {
        let mut content = vec![7; if place == 9 { 300 } else { 1_200 }];
        content[..8].copy_from_slice(&(10 * number + place).to_be_bytes());
        content
    };
    (0..10).map(datagram).collect()
}

/// Sends a packet of the server with a VLAN tag: no program of an ordinary user's can make one, so Python does.
fn send_with_tag(rig: &Path3, datagram: &[u8]) {
    let mut packet = Vec::new();
    PacketBuilder::ipv4([10, 90, 1, 1], [10, 90, 2, 1], 64)
        .udp(4_433, 5_000)
        .write(&mut packet, datagram)
        .unwrap();
    let tag = SingleVlanHeader {
        pcp: VlanPcp::ZERO,
        drop_eligible_indicator: false,
        vlan_id: VlanId::try_new(5).unwrap(),
        ether_type: EtherType::IPV4,
    };
    let frame = [&[0xff; 6][..], &[2; 6], &[0x81, 0x00], &tag.to_bytes(), &packet].concat();
    let hex: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
    let script = "import socket, sys\n\
                  s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)\n\
                  s.bind(('s0', 0))\n\
                  s.send(bytes.fromhex(sys.argv[1]))";
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/run/netns/{}", rig.names[0])).args(["python3", "-c", script, &hex]);
    let (code, _, error) = output_of(&mut command);
    assert_eq!(code, Some(0), "{error}");
}

#[test]
fn datagrams_of_batches_and_those_with_a_vlan_tag_are_told_one_by_one_and_fragments_are_counted_aside() {
    const TAGGED: u64 = 1_000;
    let Some(_turn) = rights() else { return };
    let mut rig = Path3::new();
    rig.start_pep();
    let config = AgentConfig::read(&rig.folder.path().join("agent.toml")).unwrap();
    let name = rig.names[0].clone();
    let (server, user) =
        (SocketAddr::new(SERVER.parse().unwrap(), 4_433), SocketAddr::new(USER[0].parse().unwrap(), 5_000));
    let mut agents = within(&name, move || QuicAgents::open(&config).unwrap()).unwrap();
    until("the server is subscribed", || {
        assert_eq!(agents.poll().unwrap(), None);
        rig.metric("subscribed_servers") == 1
    });
    let connection = agents.begin(server, user);
    let socket = within(&name, move || UdpSocket::bind(server).unwrap()).unwrap();
    let before = rig.metric("packets_total");
    for number in 0..5 {
        let datagrams = batch(number);
        for (place, datagram) in (0..).zip(&datagrams) {
            agents.on_sent(clock::now(), connection, Some(10 * number + place), datagram);
        }
        let whole = datagrams.concat();
        let segments = [ControlMessage::UdpGsoSegments(&1_200)];
        let to = SockaddrStorage::from(user);
        let sent =
            sendmsg(socket.as_raw_fd(), &[IoSlice::new(&whole)], &segments, MsgFlags::empty(), Some(&to));
        assert_eq!(sent, Ok(whole.len()));
    }
    let tagged = [9; 1_000];
    agents.on_sent(clock::now(), connection, Some(TAGGED), &tagged);
    send_with_tag(&rig, &tagged);
    let (mut seen, mut missing) = (BTreeSet::new(), Vec::new());
    let all: BTreeSet<u64> = (0..50).chain([TAGGED]).collect();
    let begun = std::time::Instant::now();
    while seen != all {
        assert!(begun.elapsed() < PATIENCE, "{seen:?}");
        while let Some(report) = agents.poll().unwrap() {
            seen.extend(report.located.seen);
            missing.extend(report.located.missing);
        }
        thread::sleep(Duration::from_millis(1));
    }
    assert!(missing.is_empty(), "{missing:?}");
    assert_eq!(rig.metric("packets_total") - before, 51);
    // Three fragments of a datagram of another flow.
    let fragments = rig.metric("fragments_total");
    within(&name, move || UdpSocket::bind((SERVER, 0)).unwrap().send_to(&[1; 4_000], user).unwrap()).unwrap();
    until("fragments are counted", || rig.metric("fragments_total") == fragments + 3);
    assert_eq!(rig.metric("packets_total") - before, 51, "and are no packets of a flow");
    assert_eq!(rig.metric("malformed_packets_total"), 0);
}
