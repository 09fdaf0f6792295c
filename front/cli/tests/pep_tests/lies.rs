//! A PEP that has the key and turns to lying. It observes as `ranpace pep` does, and falsifies what it tells.

use std::io::Write as _;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt};
use ranpace_emulator::within;
use ranpace_pep::lightweight::message::LARGEST;
use ranpace_pep::lightweight::{Body, Packet, Pep, PepSettings, address_bytes};
use ranpace_tap::{clock, packet, tap};

use crate::emulation::{rights, until};
use crate::pep_path::{EDGE, PORT, Path3, SERVER, USER};

/// What it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    None,
    /// Everything before a packet has passed, too.
    All,
    /// Data have passed that were never sent.
    Ahead,
    /// One packet in twenty has not passed.
    Gaps,
    /// Each report comes three times.
    Replay,
    /// Twenty messages of noise come with each report, under numbers that genuine ones will have.
    Flood,
    /// Reports come with a changed byte.
    Forge,
    /// Reports come without their ends.
    Truncate,
}

const ALL: [Lie; 8] =
    [Lie::None, Lie::All, Lie::Ahead, Lie::Gaps, Lie::Replay, Lie::Flood, Lie::Forge, Lie::Truncate];

/// Observes, and tells what `lie` says, until `stop` is set.
fn lying_pep(lie: &AtomicU8, stop: &AtomicBool) {
    let socket = UdpSocket::bind((EDGE, PORT)).unwrap();
    socket.set_nonblocking(true).unwrap();
    let server = SERVER.parse().unwrap();
    let mut pep =
        Pep::new(PepSettings { id: 7, first_sequence: clock::first_sequence(), ..PepSettings::default() });
    pep.add_server(address_bytes(server), b"0123456789abcdef0123456789abcdef", 1);
    let pep = Mutex::new(pep);
    let lie = || ALL[usize::from(lie.load(Ordering::SeqCst))];
    let tap = tap::Tap::open(&["es".to_owned()], [server].into_iter()).unwrap();
    let mut packets = 0_u64;
    let copies = tap.copies(|copy| {
        // Other packets than TCP's are none of it.
        let _ = packet::read(copy, |at, seen| {
            packets += 1;
            let mut told = Packet { ..*seen };
            match (&mut told.body, lie()) {
                (_, Lie::Gaps) if packets.is_multiple_of(20) => return,
                (Body::Tcp { seq, length, .. }, Lie::All) => {
                    *seq = seq.wrapping_sub(1 << 20);
                    *length += 1 << 20;
                }
                (Body::Tcp { length, .. }, Lie::Ahead) => *length += 10_000_000,
                _ => {}
            }
            pep.lock().unwrap().on_packet(at, &told);
        });
    });
    let copies = copies.unwrap();
    let mut noise = 1_u32;
    while !stop.load(Ordering::SeqCst) {
        copies.poll(Duration::from_millis(1)).unwrap();
        let mut pep = pep.lock().unwrap();
        let mut buffer = [0; LARGEST + 1];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            pep.on_datagram(clock::now(), address_bytes(from.ip()), &mut buffer[..length]);
        }
        while let Some(datagram) = pep.poll(clock::now()) {
            let genuine = datagram.content.as_slice();
            let send =
                |content: &[u8]| assert_eq!(socket.send_to(content, (SERVER, PORT)).unwrap(), content.len());
            let mut false_one = genuine.to_vec();
            match lie() {
                Lie::Replay => (0..3).for_each(|_| send(genuine)),
                Lie::Flood => {
                    for number in 1..=20 {
                        for byte in &mut false_one[16..] {
                            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                            *byte = (noise >> 24) as u8;
                        }
                        false_one[15] = genuine[15].wrapping_add(number);
                        send(&false_one);
                    }
                    send(genuine);
                }
                Lie::Forge => {
                    let place = false_one.len() / 2;
                    false_one[place] ^= 0x55;
                    send(&false_one);
                }
                Lie::Truncate => {
                    noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    send(&genuine[..(noise >> 8) as usize % genuine.len()]);
                }
                Lie::None | Lie::All | Lie::Ahead | Lie::Gaps => send(genuine),
            }
        }
    }
}

/// A download that goes on until it is dropped, and how much has come.
struct Download {
    port: u16,
    bytes: Arc<std::sync::atomic::AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl Download {
    /// Under this control.
    fn start(rig: &Path3, control: &'static str) -> Self {
        let reader = rig.reader(USER[0]);
        let (port, bytes) = (reader.place.port(), Arc::clone(&reader.bytes));
        let mut stream = rig.connect(reader.place);
        if !control.is_empty() {
            setsockopt(&stream, sockopt::TcpCongestion, &control.to_owned().into()).unwrap();
        }
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        thread::spawn(move || {
            while !stopped.load(Ordering::SeqCst) {
                stream.write_all(&[7; 20_000]).unwrap();
            }
        });
        Self { port, bytes, stop }
    }

    /// Bytes that come in a time.
    fn in_time(&self, time: Duration) -> u64 {
        let before = self.bytes.load(Ordering::SeqCst);
        thread::sleep(time);
        self.bytes.load(Ordering::SeqCst) - before
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
    }
}

/// How long a lie may work: the longer of a second and 15 RTTs, as in the simulator's tests; an RTT is 50 ms here at most.
const BOUND: Duration = Duration::from_secs(1);

#[test]
fn a_pep_that_turns_to_lying_costs_a_download_nothing_after_a_second() {
    let Some(_turn) = rights() else { return };
    let mut rig = Path3::with_control();
    let (lie, stop) = (Arc::new(AtomicU8::new(0)), Arc::new(AtomicBool::new(false)));
    let liar = {
        let (name, lie, stop) = (rig.names[1].clone(), Arc::clone(&lie), Arc::clone(&stop));
        thread::spawn(move || within(&name, move || lying_pep(&lie, &stop)).unwrap())
    };
    rig.start_agent();
    let second = Duration::from_secs(1);
    let cubic = {
        let download = Download::start(&rig, "cubic");
        thread::sleep(BOUND);
        download.in_time(second)
    };
    // The last one is ignored for a minute.
    for turned in
        [Lie::None, Lie::Replay, Lie::Flood, Lie::Forge, Lie::Truncate, Lie::All, Lie::Gaps, Lie::Ahead]
    {
        lie.store(0, Ordering::SeqCst);
        let download = Download::start(&rig, "");
        let figure = |name| rig.figure(download.port, name);
        until("both windows count", || figure("both") == Some(1.0));
        lie.store(ALL.iter().position(|known| *known == turned).unwrap() as u8, Ordering::SeqCst);
        thread::sleep(BOUND);
        let come = download.in_time(second);
        assert!(come * 10 >= cubic * 9, "{turned:?}: {come} bytes in a second, CUBIC's {cubic}");
        let both = figure("both");
        match turned {
            Lie::None | Lie::Replay => assert_eq!(both, Some(1.0), "{turned:?}"),
            Lie::Forge | Lie::Truncate | Lie::Gaps | Lie::Ahead => assert_eq!(both, Some(0.0), "{turned:?}"),
            // Nothing is lost before the PEP, so that it is right. And as many genuine messages are read as there is time for.
            Lie::All | Lie::Flood => {}
        }
    }
    stop.store(true, Ordering::SeqCst);
    liar.join().unwrap();
}
