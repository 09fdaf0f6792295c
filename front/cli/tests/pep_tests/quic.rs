//! A QUIC server that hears `ranpace pep`: noq's two ends on sockets, under Multi-Domain control.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use ranpace_cc::Algorithm;
use ranpace_emulator::within;
use ranpace_quic::{Clock, Config, Opener, PepView, Receiver, Sender};
use ranpace_tap::clock;
use ranpace_tap::config::AgentConfig;
use ranpace_tap::quic::QuicAgents;
use ranpace_units::{Bytes, Ecn, Time};

use crate::emulation::{PATIENCE, rights, until};
use crate::pep_path::{Path3, SERVER, USER};

/// The transfer: some 2,200 packets.
const SIZE: u64 = 3_000_000;
/// One data packet in this many is lost before it leaves the server, once it has sent [`LOSSLESS`].
const LOST_EVERY: u64 = 97;
const LOSSLESS: u64 = 300;

fn config() -> Config {
    Config { opener: Opener::Receiver, ..Config::default() }
}

/// Waits until one of these is readable or a deadline has come.
fn wait(sockets: &mut [PollFd<'_>], deadline: Time) {
    let left = Duration::from_nanos(deadline.since(clock::now()).as_nanos());
    ppoll(sockets, Some(TimeSpec::from_duration(left.min(Duration::from_millis(20)))), None).unwrap();
}

/// Calls `each` with the datagrams that have come.
fn receive(socket: &UdpSocket, mut each: impl FnMut(SocketAddr, &[u8])) {
    let mut buffer = [0; 2_048];
    loop {
        match socket.recv_from(&mut buffer) {
            Ok((length, from)) => each(from, &buffer[..length]),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                return;
            }
        }
    }
}

/// The user's end: downloads until it has all.
fn download(server: SocketAddr, user: SocketAddr, done: &AtomicBool) {
    let socket = UdpSocket::bind(user).unwrap();
    socket.set_nonblocking(true).unwrap();
    let mut receiver = Receiver::new(&config(), Clock::new(Instant::now()), 2).checked();
    let (begun, mut content) = (Instant::now(), Vec::new());
    receiver.open(clock::now());
    while receiver.delivered() < Bytes::new(SIZE) {
        assert!(begun.elapsed() < PATIENCE, "{receiver:?} {:?}", receiver.lost());
        wait(&mut [PollFd::new(socket.as_fd(), PollFlags::POLLIN)], receiver.next_deadline());
        let now = clock::now();
        receive(&socket, |_, datagram| receiver.on_datagram(now, Ecn::NotEct, datagram));
        if receiver.next_deadline() <= now {
            receiver.on_deadline(now);
        }
        while receiver.poll_transmit(now, &mut content).is_some() {
            socket.send_to(&content, server).unwrap();
            content.clear();
        }
    }
    assert_eq!(receiver.damaged(), 0);
    done.store(true, Ordering::SeqCst);
}

/// What PEPs reported to the server.
#[derive(Debug, Default)]
struct Told {
    reports: u64,
    seen: BTreeSet<u64>,
    missing: BTreeSet<u64>,
    /// A report had a packet again that an earlier one had.
    repeated: bool,
    /// The control used both windows at some time.
    both: bool,
}

/// The server's end. Returns what it was told, and the packets that were lost before the PEP and those that were not.
fn serve(agent: &AgentConfig, server: SocketAddr, done: &AtomicBool) -> (Told, BTreeSet<u64>, BTreeSet<u64>) {
    let socket = UdpSocket::bind(server).unwrap();
    socket.set_nonblocking(true).unwrap();
    let mut agents = QuicAgents::open(agent).unwrap();
    let control: Algorithm = "mdcc".parse().unwrap();
    let mut sender = Sender::new(&config(), control.build(1), Clock::new(Instant::now()), 1);
    sender.write(Bytes::new(SIZE));
    let (mut user, mut connection, mut content) = (None, None, Vec::new());
    let (mut told, mut lost, mut sent) = (Told::default(), BTreeSet::new(), BTreeSet::new());
    let begun = Instant::now();
    while !done.load(Ordering::SeqCst) {
        assert!(begun.elapsed() < PATIENCE, "{sender:?} {:?}", sender.lost());
        let readable = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let deadline = sender.next_deadline().min(agents.next_deadline());
        wait(&mut [readable(socket.as_fd()), readable(agents.as_fd())], deadline);
        let now = clock::now();
        while let Some(report) = agents.poll().unwrap() {
            assert_eq!(Some(report.connection), connection);
            let view = PepView {
                seen: &report.located.seen,
                missing: &report.located.missing,
                newest_sent_at: report.located.newest_sent_at,
                hold: report.hold,
                marked: report.marked,
                new_epoch: report.located.new_epoch,
            };
            sender.on_pep_view(now, &view);
            told.reports += 1;
            for number in &report.located.seen {
                told.repeated |= !told.seen.insert(*number);
            }
            told.missing.extend(&report.located.missing);
        }
        receive(&socket, |from, datagram| {
            user.get_or_insert(from);
            connection.get_or_insert_with(|| agents.begin(server, from));
            sender.on_datagram(now, Ecn::NotEct, datagram);
        });
        if sender.next_deadline() <= now {
            sender.on_deadline(now);
        }
        while let Some(departure) = sender.poll_transmit(now, &mut content) {
            let (Some(user), Some(connection)) = (user, connection) else { panic!("to whom?") };
            agents.on_sent(now, connection, departure.number, &content);
            match departure.number {
                Some(number) if number > LOSSLESS && number.is_multiple_of(LOST_EVERY) => {
                    lost.insert(number);
                }
                number => {
                    assert_eq!(socket.send_to(&content, user).unwrap(), content.len());
                    sent.extend(number);
                }
            }
            content.clear();
        }
        sender.control().inspect(&mut |name, value| told.both |= name == "both" && value == 1.0);
    }
    (told, lost, sent)
}

#[test]
fn quic_server_hears_which_of_its_packets_passed_and_which_were_lost_before_the_pep() {
    let Some(_turn) = rights() else { return };
    let mut rig = Path3::new();
    rig.start_pep();
    let agent = AgentConfig::read(&rig.folder.path().join("agent.toml")).unwrap();
    let server = SocketAddr::new(SERVER.parse().unwrap(), 4_433);
    let user = SocketAddr::new(USER[0].parse().unwrap(), 5_000);
    let done = Arc::new(AtomicBool::new(false));
    let served = {
        let (name, done) = (rig.names[0].clone(), Arc::clone(&done));
        thread::spawn(move || within(&name, move || serve(&agent, server, &done)).unwrap())
    };
    // Its first packets are reported only to a server that is subscribed.
    until("the server is subscribed", || rig.metric("subscribed_servers") == 1);
    let name = rig.names[2].clone();
    let downloaded = {
        let done = Arc::clone(&done);
        thread::spawn(move || within(&name, move || download(server, user, &done)).unwrap())
    };
    downloaded.join().unwrap();
    let (told, lost, sent) = served.join().unwrap();
    assert!(lost.len() >= 10 && sent.len() >= 2_000, "{} lost, {} sent", lost.len(), sent.len());
    assert!(told.both && told.reports >= 100, "{told:?}");
    assert!(told.seen.is_subset(&sent) && !told.repeated, "{:?}", told.seen.difference(&sent));
    // But for the last ones, which it is not told of before the end.
    assert!(told.seen.len() >= sent.len() * 9 / 10, "{} of {}", told.seen.len(), sent.len());
    assert!(told.missing.is_subset(&lost), "{:?} of {lost:?}", told.missing);
    assert!(told.missing.len() >= lost.len() - 2, "{:?} of {lost:?}", told.missing);
    assert_eq!(rig.metric("refused_messages_total") + rig.metric("malformed_packets_total"), 0);
}
