//! Views of an emulation beside its results: captures of packets, and the live screen.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // a test may

mod emulation;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use emulation::{Emulation, LINK, content, folder_with, output, output_of, program, rights, until, v4, v6};
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::{Block, PcapNgReader};

/// epb_flags of a packet that comes in, and of one that goes out.
const IN: u32 = 1;
const OUT: u32 = 2;

/// A packet of TCP on file.
struct Packet {
    at: Duration,
    host: usize,
    direction: u32,
    bytes: Vec<u8>,
    number: u32,
    payload: Vec<u8>,
}

/// Names of the hosts, and all packets of TCP; their checksums are right.
fn read(path: &Path) -> (Vec<String>, Vec<Packet>) {
    let mut reader = PcapNgReader::new(fs::File::open(path).unwrap()).unwrap();
    let (mut names, mut packets) = (Vec::new(), Vec::new());
    while let Some(block) = reader.next_block() {
        match block.unwrap() {
            Block::InterfaceDescription(interface) => {
                names.extend(interface.options.iter().find_map(|option| match option {
                    InterfaceDescriptionOption::IfName(name) => Some(name.to_string()),
                    _ => None,
                }));
            }
            Block::EnhancedPacket(packet) => {
                // Behind the header that says whether it comes or goes.
                let bytes = &packet.data[16..];
                let sliced = SlicedPacket::from_ip(bytes).unwrap();
                let Some(TransportSlice::Tcp(tcp)) = sliced.transport else { continue };
                let expected = match sliced.net.unwrap() {
                    NetSlice::Ipv4(ip) => {
                        tcp.calc_checksum_ipv4(ip.header().source(), ip.header().destination())
                    }
                    NetSlice::Ipv6(ip) => {
                        tcp.calc_checksum_ipv6(ip.header().source(), ip.header().destination())
                    }
                    other => panic!("{other:?}"),
                };
                assert_eq!(tcp.checksum(), expected.unwrap());
                let [EnhancedPacketOption::Flags(direction)] = packet.options[..] else {
                    panic!("no direction")
                };
                packets.push(Packet {
                    at: packet.timestamp,
                    host: packet.interface_id as usize,
                    direction,
                    bytes: bytes.to_vec(),
                    number: tcp.sequence_number(),
                    payload: tcp.payload().to_vec(),
                });
            }
            _ => {}
        }
    }
    (names, packets)
}

/// tcpdump and tshark read the file: all packets of TCP, as many of each host, and nothing that they do not understand.
fn seen_by_others(path: &Path, packets: usize, case: &str) {
    let lines = |command: &mut Command| {
        let (status, out, error) = output_of(command.arg("-r").arg(path));
        assert_eq!(status, Some(0), "{case}: {error}");
        out.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    if let Some(tcpdump) = program(&["tcpdump"]) {
        // tcpdump cannot filter TCP over IPv6 by its flags, but prints them.
        let seen = lines(Command::new(tcpdump).args(["-n"]));
        assert_eq!(seen.iter().filter(|line| line.contains(" Flags [")).count(), packets, "{case}: {seen:?}");
    }
    if let Some(tshark) = program(&["tshark"]) {
        let seen =
            lines(Command::new(tshark).args(["-Y", "tcp", "-T", "fields", "-e", "frame.interface_name"]));
        let of = |host: &str| seen.iter().filter(|line| *line == host).count();
        assert_eq!((of("server") + of("phone"), seen.len()), (packets, packets), "{case}");
        assert!(of("server") > 10 && of("phone") > 10, "{case}");
    }
    if let Some(tshark) = program(&["tshark"]) {
        let wrong = "_ws.malformed or tcp.checksum.status == 0 or ip.checksum.status == 0";
        let checks = ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"];
        let seen = lines(Command::new(tshark).args(checks).args(["-Y", wrong]));
        assert!(seen.is_empty(), "{case}: {seen:?}");
    }
}

#[test]
fn capture_has_sent_and_received_packets_and_gso_segments_arrive_unchanged() {
    let Some(_turn) = rights() else { return };
    for (case, host, more) in [
        ("packet by packet", v4(0), &[][..]),
        ("each written by itself", v4(0), &["--no-gso"]),
        ("in pieces", v4(0), &["--gro"]),
        ("v6, by the former name", v6(0), &["--coalesce"]),
    ] {
        let options = [&["--pcap", "file.pcapng"], more].concat();
        let mut emulation = Emulation::start_with(folder_with(LINK), ":", &options);
        let sent = content(400_000);
        let listener = emulation.behind("server", || TcpListener::bind("[::]:80").unwrap()).join().unwrap();
        let whole = sent.clone();
        let serving = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(&whole).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            let _ = stream.read(&mut [0]);
        });
        let getting = emulation.behind("phone", move || {
            let mut stream = TcpStream::connect(SocketAddr::new(host, 80)).unwrap();
            let mut got = Vec::new();
            stream.read_to_end(&mut got).unwrap();
            got
        });
        assert!(getting.join().unwrap() == sent, "{case}: the kernel took every piece for what it was");
        serving.join().unwrap();
        // Wait for packets that are still under way, the acknowledgement of the last FIN above all, arrives.
        std::thread::sleep(Duration::from_millis(300));
        let path = emulation.folder.path().join("file.pcapng");
        let (status, ..) = emulation.end();
        assert!(matches!(status, Some(0 | 99)), "{case}: {status:?}");
        let (names, packets) = read(&path);
        assert_eq!(names, ["server", "phone"], "{case}");
        let of = |host, direction| {
            packets.iter().filter(move |packet| packet.host == host && packet.direction == direction)
        };
        // By their numbers, the first one counted from the SYN.
        let first = of(1, IN).next().unwrap().number.wrapping_add(1);
        let by_place: BTreeMap<u32, &Packet> = of(1, IN)
            .filter(|packet| !packet.payload.is_empty())
            .map(|packet| (packet.number.wrapping_sub(first), packet))
            .collect();
        let got: Vec<u8> = by_place.values().flat_map(|packet| packet.payload.clone()).collect();
        assert!(got == sent, "{case}: {} bytes on file", got.len());
        for packet in of(1, IN) {
            let entered = of(0, OUT).filter(|other| other.bytes == packet.bytes && other.at < packet.at);
            let took = entered.map(|other| packet.at - other.at).min().unwrap();
            assert!(took >= Duration::from_millis(20), "{case}: {took:?}");
            assert!(packet.bytes.len() <= 1500, "{case}: as it crosses the network");
        }
        seen_by_others(&path, packets.len(), case);
        // Acknowledgements go the other way.
        assert!(of(1, OUT).count() > 10 && of(0, IN).count() > 10, "{case}");
        assert_eq!(of(0, OUT).count() + of(1, OUT).count(), packets.len() / 2, "{case}: nothing was lost");
    }
}

/// A phone in an LTE cell, whose acknowledgements pass two header rewriters.
const REWRITTEN: &str = r#"
duration = "10s"
[[link]]
from = "server"
to = "edge"
rate = "200Mbit/s"
delay = "5ms"
duplex = true
[[link]]
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
[[rewriter]]
host = "edge"
kind = "milliproxy"
[[rewriter]]
host = "edge"
kind = "guidance"
period = "10ms"
[[flow]]
from = "server"
to = "phone"
cc = "cubic"
"#;

#[test]
fn rewritten_acknowledgements_have_lower_windows_guidance_and_right_checksums() {
    let Some(_turn) = rights() else { return };
    for (case, address) in [("IPv4", v4(1)), ("IPv6", v6(1))] {
        let mut emulation = Emulation::start_with(folder_with(REWRITTEN), ":", &["--pcap", "file.pcapng"]);
        let sent = content(4_000_000);
        let got = emulation::transferred(&emulation, "server", ("phone", address), sent.clone());
        assert!(got == sent, "{case}: {} bytes", got.len());
        let path = emulation.folder.path().join("file.pcapng");
        emulation.end();
        // Reading checks the checksums.
        let (names, packets) = read(&path);
        assert_eq!(names, ["server", "phone"], "{case}");
        // After the last FIN windows pass as they are.
        let median = |host, direction| {
            let acks = packets.iter().filter(|packet| packet.host == host && packet.direction == direction);
            let window = |packet: &Packet| match SlicedPacket::from_ip(&packet.bytes).unwrap().transport {
                Some(TransportSlice::Tcp(tcp)) if packet.payload.is_empty() && !tcp.syn() => {
                    Some(tcp.window_size())
                }
                _ => None,
            };
            let mut windows: Vec<u16> = acks.filter_map(window).collect();
            windows.sort_unstable();
            windows[windows.len() / 2]
        };
        let (offered, passed) = (median(1, OUT), median(0, IN));
        assert!(passed < offered, "{case}: the phone offers {offered}, the server hears {passed}");
        let is_guided = |packet: &&Packet| {
            packet.bytes.windows(4).any(|bytes| bytes == [253, 10, 0x54, 0x47]) && packet.payload.is_empty()
        };
        let at_server = packets.iter().filter(|packet| packet.host == 0).filter(is_guided).count();
        let at_phone = packets.iter().filter(|packet| packet.host == 1).filter(is_guided).count();
        assert!(
            at_server > 20 && at_phone == 0,
            "{case}: {at_server} at the server, {at_phone} at the phone"
        );
    }
}

#[test]
fn unwritable_capture_path_is_a_user_error() {
    let Some(_turn) = rights() else { return };
    let folder = folder_with(LINK);
    let (status, _, error) =
        output(folder.path(), &["scenario.toml", "--pcap", "no/such/folder/file", "--", "true"]);
    assert_eq!(status, Some(2), "{error}");
    assert!(error.contains("no/such/folder/file"), "{error}");
}

#[test]
fn live_without_a_terminal_is_refused() {
    let folder = folder_with(LINK);
    let (status, _, error) = output(folder.path(), &["scenario.toml", "--live", "--", "true"]);
    assert_eq!(status, Some(2), "{error}");
    assert!(error.contains("terminal"), "{error}");
}

#[test]
fn live_draws_on_a_screen_of_its_own_and_keeps_what_programs_print() {
    let Some(_turn) = rights() else { return };
    let Some(script) = program(&["script"]) else { return };
    let folder = folder_with(LINK);
    // The program needs a packet that crosses: to a port where nobody is.
    let inside = "stty rows 40 cols 120; exec \"$RANPACE\" emulate scenario.toml --live --in phone \
                  -- sh -c 'echo hello; for try in 1 2 3 4 5 6; do echo x > /dev/udp/10.77.0.1/9; sleep 0.3; done'";
    let inside = inside.replace("sh -c", "bash -c");
    if program(&["bash"]).is_none() {
        return;
    }
    let mut command = Command::new(script);
    command
        .args(["-qec", &inside, "typescript"])
        .env("RANPACE", env!("CARGO_BIN_EXE_ranpace"))
        .env("SHELL", "/bin/sh")
        .env("TERM", "xterm")
        .current_dir(folder.path());
    let (status, out, error) = output_of(&mut command);
    assert!(matches!(status, Some(0 | 99)), "{status:?} {error}");
    let (enter, leave) = ("\x1b[?1049h", "\x1b[?1049l");
    let (_, rest) = out.split_once(enter).unwrap_or_else(|| panic!("{out:?}"));
    let (drawn, after) = rest.split_once(leave).unwrap_or_else(|| panic!("{out:?}"));
    for text in ["Ctrl-C", "Mbit/s", "delay", "queue", "hello"] {
        assert!(drawn.contains(text), "{text}: {drawn:?}");
    }
    assert!(after.contains("\x1b[?25h") || drawn.contains("\x1b[?25h"), "the cursor is back");
    assert!(after.contains("machine: "), "{after:?}");
    let log = folder.path().join("results/scenario.emulated/1/programs.log");
    assert_eq!(fs::read_to_string(log).unwrap(), "hello\n");
}

#[test]
fn live_restores_the_terminal_before_stop_and_exit() {
    let Some(_turn) = rights() else { return };
    let Some(script) = program(&["script"]) else { return };
    let folder = folder_with(LINK);
    let here = folder.path().to_owned();
    // A shell that controls jobs, as one does that asks for commands: it goes on when its job is stopped.
    let inside = "stty rows 40 cols 120; ulimit -c 0; set -m; \
                  sh -c 'echo $$ > pid; exec \"$RANPACE\" emulate scenario.toml --live -- sh -c \"touch ready; sleep 60\"'; \
                  echo it was stopped; touch stopped; while [ ! -e go ]; do sleep 0.05; done; fg > /dev/null; echo it has ended";
    let mut command = Command::new(script);
    command
        .args(["-qec", inside, "typescript"])
        .env("RANPACE", env!("CARGO_BIN_EXE_ranpace"))
        .env("SHELL", "/bin/sh")
        .env("TERM", "xterm")
        .current_dir(&here);
    let running = std::thread::spawn(move || output_of(&mut command));
    let send = |signal: &str| {
        let pid = fs::read_to_string(here.join("pid")).unwrap();
        assert!(Command::new("kill").args([signal, pid.trim()]).status().unwrap().success());
    };
    until("the program runs", || here.join("ready").exists());
    std::thread::sleep(Duration::from_millis(500));
    send("-TSTP");
    until("it is stopped", || here.join("stopped").exists());
    fs::write(here.join("go"), "").unwrap();
    std::thread::sleep(Duration::from_secs(1));
    send("-QUIT");
    let (_, out, error) = running.join().unwrap();
    let (enter, leave) = ("\x1b[?1049h", "\x1b[?1049l");
    let marks = [enter, leave, "it was stopped", enter, leave, "it has ended"];
    let mut rest = out.as_str();
    for mark in marks {
        rest = rest.split_once(mark).unwrap_or_else(|| panic!("no {mark:?}: {out:?} {error}")).1;
    }
    let _ = output(folder.path(), &["--clean"]);
}
