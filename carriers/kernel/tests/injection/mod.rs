//! Segments that are put into a live connection by raw sockets, and what it delivers meanwhile, beside kernel CUBIC on the same path.
#![allow(dead_code)] // not every test needs all of it

use std::collections::VecDeque;
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, bind, recv, sendto, socket,
};

use crate::rig::{self, Hosts, InUse, RECEIVER, SENDER};

/// What is done to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attack {
    /// So many segments of the receiver come to the sender with hostile options, spread over the time.
    Options(u64),
    /// Each segment of the receiver comes again, at once and after a while.
    AcksAgain,
    /// Each segment of the sender comes again.
    DataAgain,
}

/// Rate of the link.
const RATE: &str = "40mbit";
/// The part of CUBIC's rate that is asked for.
const PART: f64 = 0.9;
/// Interval of the record of what has arrived.
const STEP: Duration = Duration::from_millis(50);
/// The machine may have had no time for a run.
const ATTEMPTS: usize = 4;
/// After which some segments come once more.
const LATER: Duration = Duration::from_millis(300);

/// A packet of TCP over IPv4, as raw sockets have it.
#[derive(Clone)]
struct Packet(Vec<u8>);

impl Packet {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let is_tcp = bytes.len() >= 40 && bytes[0] == 0x45 && bytes[9] == 6;
        let packet = Self(bytes.to_vec());
        (is_tcp && packet.options_end() <= bytes.len()).then_some(packet)
    }

    fn ports(&self) -> (u16, u16) {
        (u16::from_be_bytes([self.0[20], self.0[21]]), u16::from_be_bytes([self.0[22], self.0[23]]))
    }

    fn options_end(&self) -> usize {
        20 + usize::from(self.0[32] >> 4) * 4
    }

    fn has_payload(&self) -> bool {
        self.0.len() > self.options_end()
    }

    /// Where our option begins.
    fn option(&self) -> Option<usize> {
        let mut at = 40;
        while at + 1 < self.options_end() {
            match self.0[at] {
                0 => return None,
                1 => at += 1,
                254 if self.0[at + 1] == 8 && at + 8 <= self.options_end() => return Some(at),
                _ => at += usize::from(self.0[at + 1]).max(2),
            }
        }
        None
    }

    /// Right checksums.
    fn sum(&mut self) {
        fn ones(bytes: &[u8]) -> u32 {
            bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum()
        }
        let length = (self.0.len() as u16).to_be_bytes();
        self.0[2..4].copy_from_slice(&length);
        self.0[36..38].fill(0);
        let pseudo = ones(&self.0[12..20]) + 6 + (self.0.len() - 20) as u32;
        let mut sum = pseudo + ones(&self.0[20..]);
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        self.0[36..38].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    }
}

/// Random numbers: xorshift, always the same.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// The hostile bytes of an option at this time: every half second in another manner. `honest` is what the link carries, kbit/s.
fn hostile(random: &mut Random, time: Duration, honest: u32) -> [u8; 8] {
    let any = random.next();
    let kbit = match time.as_millis() / 500 % 8 {
        0 => any as u32,
        1 => [0, 1, u32::MAX, 1 << 31][any as usize % 4],
        // Flapping, packet by packet and slowly.
        2 => honest * [1, 100][any as usize % 2] / [1, 100][(any >> 8) as usize % 2],
        3 => honest.wrapping_mul(if (time.as_millis() / 100).is_multiple_of(2) { 1000 } else { 1 }),
        // False by what is just no contradiction, and by more.
        4 => honest / 10 * 14,
        5 => honest / 10 * 7,
        6 => honest / 20,
        _ => 1 << (any % 32),
    };
    let [a, b, c, d] = kbit.to_be_bytes();
    match any >> 56 {
        // Another experiment, and lengths that are none or lead out of the header.
        0 => [254, 8, 0x52, 0x51, a, b, c, d],
        1 => [254, a, 0x52, 0x50, a, b, c, d],
        2 => [254, 4, 0x52, 0x50, 254, b, 0x52, 0x50],
        _ => [254, 8, 0x52, 0x50, a, b, c, d],
    }
}

/// A raw socket for whole packets of IPv4.
fn raw() -> std::os::fd::OwnedFd {
    socket(AddressFamily::Inet, SockType::Raw, SockFlag::empty(), SockProtocol::Raw).unwrap()
}

/// What passes the device `veth`, both ways.
fn tap() -> std::os::fd::OwnedFd {
    let socket =
        socket(AddressFamily::Packet, SockType::Datagram, SockFlag::empty(), SockProtocol::EthAll).unwrap();
    let mut devices = getifaddrs().unwrap();
    let device =
        devices.find_map(|device| (device.interface_name == "veth").then_some(device.address?)).unwrap();
    bind(socket.as_raw_fd(), device.as_link_addr().unwrap()).unwrap();
    socket
}

/// The next packet between these ports, if there is one; others are left out.
fn next(tap: &std::os::fd::OwnedFd, buffer: &mut [u8], from: u16, to: u16) -> Option<Packet> {
    loop {
        let length = recv(tap.as_raw_fd(), buffer, MsgFlags::MSG_DONTWAIT).ok()?;
        if let Some(packet) = Packet::parse(&buffer[..length])
            && packet.ports() == (from, to)
        {
            return Some(packet);
        }
    }
}

fn send(raw: &std::os::fd::OwnedFd, packet: &Packet) {
    let [a, b, c, d] = [16, 17, 18, 19].map(|at| packet.0[at]);
    let to = SockaddrIn::new(a, b, c, d, 0);
    // A full queue drops it, as one on the way would.
    let _ = sendto(raw.as_raw_fd(), &packet.0, &to, MsgFlags::empty());
}

/// On the sender's host: the newest segment of the receiver comes again and again with other options.
fn send_options(number: u64, time: Duration, honest: u32, sender: u16, receiver: u16) {
    let (tap, raw, mut buffer) = (tap(), raw(), vec![0; 1 << 16]);
    let mut random = Random(number ^ 0x9e37_79b9_7f4a_7c15);
    let (begun, mut sent, mut template) = (Instant::now(), 0, None);
    while begun.elapsed() < time {
        while let Some(packet) = next(&tap, &mut buffer, receiver, sender) {
            if packet.option().is_some() && !packet.has_payload() {
                template = Some(packet);
            }
        }
        let due = (number as f64 * begun.elapsed().as_secs_f64() / time.as_secs_f64()) as u64;
        let Some(packet) = &template else {
            thread::sleep(Duration::from_millis(1));
            continue;
        };
        let until = due.min(sent + 256);
        while sent < until {
            let mut packet = packet.clone();
            let at = packet.option().unwrap();
            packet.0[at..at + 8].copy_from_slice(&hostile(&mut random, begun.elapsed(), honest));
            packet.sum();
            send(&raw, &packet);
            sent += 1;
        }
        if sent == due {
            thread::sleep(Duration::from_micros(500));
        }
    }
    // What a busy machine left over.
    let packet = template.expect("the connection has the option");
    for _ in sent..number {
        let mut packet = packet.clone();
        let at = packet.option().unwrap();
        packet.0[at..at + 8].copy_from_slice(&hostile(&mut random, time, honest));
        packet.sum();
        send(&raw, &packet);
    }
}

/// On the receiver's host: segments from one port to the other come again, at once and after [`LATER`].
fn send_again(stop: &AtomicBool, from: u16, to: u16) -> u64 {
    let (tap, raw, mut buffer) = (tap(), raw(), vec![0; 1 << 16]);
    let (mut again, mut later) = (0, VecDeque::new());
    while !stop.load(Ordering::SeqCst) {
        while let Some(mut packet) = next(&tap, &mut buffer, from, to) {
            if packet.0[8] == MARK {
                continue;
            }
            packet.0[8] = MARK;
            packet.sum();
            send(&raw, &packet);
            again += 1;
            if again % 4 == 0 {
                later.push_back((Instant::now() + LATER, packet));
            }
        }
        while later.front().is_some_and(|(due, _)| *due <= Instant::now()) {
            if let Some((_, packet)) = later.pop_front() {
                send(&raw, &packet);
                again += 1;
            }
        }
        thread::sleep(Duration::from_micros(500));
    }
    again
}

/// A time to live that nobody else has: marks what these functions send.
const MARK: u8 = 77;

/// The packets that [`send_late`] takes, as nftables says it.
const TAKEN: &str = "ip id & 127 == 0 ip ttl != 77";

/// The same of a packet.
fn is_taken(packet: &Packet) -> bool {
    packet.0[5] & 127 == 0 && packet.0[8] != MARK
}

/// On the receiver's host: one in 128 segments from one port to the other comes later by this. Returns how many did, once `stop` is set.
pub fn send_late(
    hosts: &Hosts,
    stop: Arc<AtomicBool>,
    late: Duration,
    from: u16,
    to: u16,
) -> JoinHandle<u64> {
    hosts.filter(RECEIVER, &format!("tcp sport {from} tcp dport {to} {TAKEN} drop"));
    hosts.on(RECEIVER, move || {
        let (tap, raw, mut buffer) = (tap(), raw(), vec![0; 1 << 16]);
        let (mut sent, mut waiting) = (0, VecDeque::new());
        while !stop.load(Ordering::SeqCst) || !waiting.is_empty() {
            while let Some(mut packet) = next(&tap, &mut buffer, from, to) {
                if is_taken(&packet) {
                    packet.0[8] = MARK;
                    packet.sum();
                    waiting.push_back((Instant::now() + late, packet));
                }
            }
            while waiting.front().is_some_and(|(due, _)| *due <= Instant::now()) {
                if let Some((_, packet)) = waiting.pop_front() {
                    send(&raw, &packet);
                    sent += 1;
                }
            }
            thread::sleep(Duration::from_micros(500));
        }
        sent
    })
}

/// What has arrived by when.
type Arrivals = Vec<(Duration, usize)>;

/// Bytes that had arrived at this time.
fn arrived(arrivals: &Arrivals, time: Duration) -> f64 {
    arrivals.iter().take_while(|(at, _)| *at <= time).last().map_or(0.0, |&(_, bytes)| bytes as f64)
}

/// A connection over a new path for so long, under attack or not.
struct Run {
    arrivals: Arrivals,
    /// Mean RTT, seconds.
    rtt: f64,
    reports: f64,
}

fn connection(control: Option<&str>, attack: Option<Attack>, time: Duration) -> Run {
    let hosts = Hosts::new();
    hosts.limit(RATE);
    // Merged segments are longer than a raw socket takes.
    hosts.run_on(SENDER, &["ip", "link", "set", "veth", "gso_max_segs", "1"]);
    let in_use = control.map(InUse::new);
    let arrivals = Arc::new(Mutex::new(Arrivals::new()));
    let (record, begun) = (Arc::clone(&arrivals), Instant::now());
    let mut next = Duration::ZERO;
    let (mut stream, reader) = rig::connect(&hosts, rig::address(RECEIVER), move |bytes| {
        if begun.elapsed() >= next {
            next = begun.elapsed() + STEP;
            record.lock().unwrap().push((begun.elapsed(), bytes));
        }
    });
    if control.is_none() {
        socket2::SockRef::from(&stream).set_tcp_congestion(b"cubic").unwrap();
    }
    let (local, peer) = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
    let stop = Arc::new(AtomicBool::new(false));
    let (sender, receiver) = (local.port(), peer.port());
    let attacker = attack.map(|attack| {
        let stop = Arc::clone(&stop);
        let honest = 40_000;
        match attack {
            Attack::Options(number) => hosts.on(SENDER, move || {
                send_options(number, time, honest, sender, receiver);
                number
            }),
            Attack::AcksAgain => hosts.on(RECEIVER, move || send_again(&stop, receiver, sender)),
            Attack::DataAgain => hosts.on(RECEIVER, move || send_again(&stop, sender, receiver)),
        }
    });
    let (mut rtts, mut written) = (Vec::new(), 0);
    while begun.elapsed() < time {
        written += rig::write_for(&mut stream, STEP * 4);
        if let Some(in_use) = &in_use {
            rtts.push(rig::figure(&hosts, in_use, SENDER, local, "srtt_us") * 1e-6);
        }
    }
    stop.store(true, Ordering::SeqCst);
    if let Some(attacker) = attacker {
        assert!(attacker.join().unwrap() > 100, "the attack did not take place");
    }
    let figure = |name| in_use.as_ref().map_or(0.0, |used| rig::figure(&hosts, used, SENDER, local, name));
    let reports = figure("reports");
    drop(stream);
    assert_eq!(reader.join().unwrap(), written, "bytes came through");
    let arrivals = arrivals.lock().unwrap().clone();
    Run { arrivals, rtt: rtts.iter().sum::<f64>() / rtts.len().max(1) as f64, reports }
}

/// A connection of the control under attack delivers nine tenths of what CUBIC delivers on the same path, over each second and 15 RTTs.
pub fn compare_with_cubic(control: &str, attack: Attack, time: Duration) {
    let mut found = String::new();
    for attempt in 1..=ATTEMPTS {
        let plain = connection(None, None, Duration::from_secs(5));
        let (from, to) = (Duration::from_secs(1), Duration::from_secs(4));
        let rate =
            (arrived(&plain.arrivals, to) - arrived(&plain.arrivals, from)) / (to - from).as_secs_f64();
        let run = connection(Some(control), Some(attack), time);
        if let Attack::Options(number) = attack {
            assert!(run.reports > number as f64 * 0.5, "{control}: {} reports of {number}", run.reports);
        }
        let window = Duration::from_secs_f64(1.0 + 15.0 * run.rtt);
        let worst = (0..)
            .map(|step| STEP * step)
            .take_while(|&begin| begin + window < time)
            .map(|begin| arrived(&run.arrivals, begin + window) - arrived(&run.arrivals, begin))
            .fold(f64::MAX, f64::min);
        let part = worst / (rate * window.as_secs_f64());
        found = format!(
            "{control}, {attack:?}, attempt {attempt}: {part:.3} of CUBIC's {:.1} Mbit/s in the worst {:.2} s; RTT {:.1} ms, {} reports",
            rate * 8e-6,
            window.as_secs_f64(),
            run.rtt * 1e3,
            run.reports
        );
        eprintln!("{found}");
        if part >= PART {
            return;
        }
    }
    panic!("{found}");
}
