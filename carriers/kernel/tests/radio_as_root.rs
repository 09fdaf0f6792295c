//! MELD in the kernel: reports on a user's radio decide which losses it hides. Needs root, ip and nft; whoever lacks them is told that
//! this is skipped.
#![cfg(all(target_os = "linux", feature = "bpf"))]
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

mod lossy;

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use ranpace_cc::RadioHint;
use ranpace_kernel::{Control, KernelError, Loaded, RadioFeed, Socket};
use ranpace_phy::LteBandwidth;
use ranpace_rnis::CellInfo;
use ranpace_units::{Bytes, Span, Time};
use socket2::SockRef;

use lossy::{run, with_losses};

/// What is sent over each connection: thousands of segments, of which one in a hundred is lost.
const BYTES: usize = 8_000_000;
/// The user of IPv4, whom most reports are about.
const USER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The kernel's monotonic clock.
fn now() -> Time {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap();
    Time::from_nanos(now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}

/// A good radio: blocks of 2500 bytes on 50 PRBs, no queue.
fn good(measured_at: Time) -> RadioHint {
    RadioHint {
        tbs_bits: Some(20_000),
        most_granted: 50,
        granted: 50.0,
        ..RadioHint::of(CellInfo::lte(0, LteBandwidth::Mhz10), measured_at)
    }
}

/// Sends [`BYTES`] from a socket with this control to the user, and returns what the control says of it when all have come.
fn download(loaded: &Loaded, user: IpAddr) -> Socket {
    let listener = TcpListener::bind((user, 7000)).unwrap();
    let address = listener.local_addr().unwrap();
    // In the same namespace: threads begin in that of their maker.
    let receiver = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut content = vec![0; BYTES];
        stream.read_exact(&mut content).unwrap();
        stream.write_all(&[1]).unwrap();
        // Until the sender has looked.
        let _ = stream.read(&mut [0]);
    });
    let mut stream = TcpStream::connect(address).unwrap();
    SockRef::from(&stream).set_tcp_congestion(loaded.name().as_bytes()).unwrap();
    stream.write_all(&vec![7; BYTES]).unwrap();
    stream.read_exact(&mut [0]).unwrap();
    let port = format!(":{}", stream.local_addr().unwrap().port());
    let sockets = loaded.sockets().unwrap();
    let socket = sockets.iter().find(|socket| socket.local.ends_with(&port)).cloned();
    let socket = socket.unwrap_or_else(|| panic!("{port} is not in {sockets:?}"));
    drop(stream);
    receiver.join().unwrap();
    socket
}

/// A pinned control, which is unloaded when the test ends, as it may.
struct Pinned(String);

impl Drop for Pinned {
    fn drop(&mut self) {
        ranpace_kernel::unload(&self.0).unwrap();
    }
}

/// How often losses were hidden, and how often they were told for this reason.
fn decided(socket: &Socket, reason: &str) -> [f64; 2] {
    ["meld_silent", &format!("meld_notified_{reason}")].map(|name| socket.figure(name).unwrap())
}

/// A control under a name of this process and test.
fn loaded(control: &str, letter: char) -> Loaded {
    Loaded::new(&Control::parse(control).unwrap(), &format!("{letter}{}", std::process::id())).unwrap()
}

#[test]
fn reports_decide_which_losses_are_hidden() {
    with_losses(|| {
        let long = Span::from_secs(10);
        let bad = |hint: RadioHint| RadioHint { tbs_bits: Some(8 * 100), ..hint };
        let queued = |hint: RadioHint| RadioHint { queue: Bytes::new(1_000_000), ..hint };
        // (control, what the report says of a user, hidden, why the others are told)
        type Report = Option<Box<dyn Fn(RadioHint) -> RadioHint>>;
        let cases: [(&str, Report, bool, &str); 9] = [
            ("cubic+meld-me:max_age=3600s", Some(Box::new(|hint| hint)), true, "unknown"),
            ("newreno+meld-me:max_age=3600s", Some(Box::new(|hint| hint)), true, "unknown"),
            ("cubic+meld-me", None, false, "unknown"),
            ("newreno+meld-de", None, false, "unknown"),
            (
                "cubic+meld-me",
                Some(Box::new(move |hint| RadioHint { measured_at: hint.measured_at - long, ..hint })),
                false,
                "stale",
            ),
            ("cubic+meld-me:max_age=3600s", Some(Box::new(bad)), false, "small_block"),
            ("cubic+meld-me:max_age=3600s", Some(Box::new(queued)), false, "long_queue"),
            ("cubic+meld-de:max_age=3600s", Some(Box::new(queued)), true, "long_queue"),
            (
                "cubic+meld-me:max_age=3600s",
                Some(Box::new(|hint| RadioHint { handover: true, ..hint })),
                false,
                "handover",
            ),
        ];
        for (control, report, hidden, reason) in cases {
            let loaded = loaded(control, 'r');
            if let Some(report) = report {
                RadioFeed::of(&loaded).unwrap().report(USER, &report(good(now()))).unwrap();
            }
            let socket = download(&loaded, USER);
            let [silent, told] = decided(&socket, reason);
            assert_eq!((silent > 0.0, told > 0.0), (hidden, !hidden), "{control}, {reason}: {socket:?}");
        }
    });
}

#[test]
fn a_report_is_of_one_user_and_an_older_one_changes_nothing() {
    with_losses(|| {
        let loaded = loaded("cubic+meld-me:max_age=3600s", 'u');
        let feed = RadioFeed::of(&loaded).unwrap();
        let user = IpAddr::V6(Ipv6Addr::LOCALHOST);
        let at = now();
        feed.report(user, &good(at)).unwrap();
        let older = RadioHint { tbs_bits: Some(8), ..good(at - Span::from_millis(1)) };
        feed.report(user, &older).unwrap();
        feed.report("192.0.2.7".parse().unwrap(), &older).unwrap();
        let [silent, told] = decided(&download(&loaded, user), "unknown");
        assert!(silent > 0.0 && told == 0.0, "{silent} {told}");
        let [silent, told] = decided(&download(&loaded, USER), "unknown");
        assert!(silent == 0.0 && told > 0.0, "{silent} {told}");
    });
}

#[test]
fn a_pinned_control_takes_reports_from_any_process() {
    with_losses(|| {
        let mut loaded = loaded("cubic+meld-me:max_age=3600s", 'p');
        loaded.pin().unwrap();
        let pinned = Pinned(loaded.name().to_owned());
        RadioFeed::pinned(loaded.name()).unwrap().report(USER, &good(now())).unwrap();
        let [silent, told] = decided(&download(&loaded, USER), "unknown");
        assert!(silent > 0.0 && told == 0.0, "{silent} {told}");
        drop(pinned);
        assert!(matches!(RadioFeed::pinned(loaded.name()), Err(KernelError::NotLoaded { .. })));
        let other =
            Loaded::new(&Control::parse("c2tcp").unwrap(), &format!("o{}", std::process::id())).unwrap();
        let refused = RadioFeed::of(&other).err().unwrap().to_string();
        assert!(refused.contains("takes no reports on users' radio"), "{refused}");
    });
}

#[test]
fn the_first_of_several_timeouts_is_hidden_and_the_second_is_told() {
    with_losses(|| {
        run("nft", &["flush chain inet t c"]);
        for text in ["cubic+meld-me:max_age=3600s", "newreno+meld-de:max_age=3600s:rto=full"] {
            let loaded = loaded(text, 't');
            RadioFeed::of(&loaded).unwrap().report(USER, &good(now())).unwrap();
            let listener = TcpListener::bind((USER, 7000)).unwrap();
            let address = listener.local_addr().unwrap();
            let receiver = thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut buffer = vec![0; 1 << 16];
                while let n @ 1.. = stream.read(&mut buffer).unwrap() {
                    // An answer for each byte of a one, which asks for it.
                    let asked = buffer[..n].iter().filter(|&&byte| byte == 1).count();
                    stream.write_all(&vec![1; asked]).unwrap();
                }
            });
            let mut stream = TcpStream::connect(address).unwrap();
            SockRef::from(&stream).set_tcp_congestion(loaded.name().as_bytes()).unwrap();
            let port = format!(":{}", stream.local_addr().unwrap().port());
            let figure = |name: &str| {
                let sockets = loaded.sockets().unwrap();
                let socket = sockets.iter().find(|socket| socket.local.ends_with(&port));
                socket.and_then(|socket| socket.figure(name)).unwrap_or_else(|| panic!("{name}: {sockets:?}"))
            };
            stream.write_all(&[7; 300_000]).unwrap();
            // Three segments: as many as one lost block takes with it, and writing them does not wait.
            let mut content = vec![7; 4_000];
            content.push(1);
            stream.write_all(&content).unwrap();
            stream.read_exact(&mut [0]).unwrap();
            // Nothing arrives until the decision has been made; the emptied chain lets all pass again.
            for decision in ["meld_silent_timeouts", "meld_notified_timeout_again"] {
                let names = ["cwnd", decision, "meld_notified_timeout_again"];
                let [cwnd, decided, told] = names.map(figure);
                run("nft", &["add rule inet t c tcp dport 7000 drop"]);
                stream.write_all(&content).unwrap();
                let begun = Instant::now();
                while figure(decision) == decided {
                    let sockets = || loaded.sockets().unwrap();
                    assert!(begun.elapsed() < Duration::from_secs(20), "{text}, {decision}: {:?}", sockets());
                    thread::yield_now();
                }
                // The next timeout may have come by now.
                let sockets = loaded.sockets().unwrap();
                run("nft", &["flush chain inet t c"]);
                stream.read_exact(&mut [0]).unwrap();
                let socket = sockets.iter().find(|socket| socket.local.ends_with(&port)).unwrap();
                let is_told = socket.figure("meld_notified_timeout_again").unwrap() > told;
                let ssthresh = socket.figure("ssthresh").unwrap();
                if text.ends_with("rto=full") && figure("meld_notified_timeout_again") == told {
                    assert!(figure("cwnd") >= cwnd, "{text}: the window of {cwnd} is not back");
                }
                // The parent is told of the window before the first timeout.
                assert!(
                    if is_told { ssthresh <= cwnd.max(2.0) } else { ssthresh >= cwnd },
                    "{text}, {cwnd}: {socket:?}"
                );
            }
            assert!(figure("meld_silent_timeouts") > 0.0, "{text}");
            drop(stream);
            receiver.join().unwrap();
        }
    });
}

#[test]
fn after_an_idle_time_the_window_is_halved_as_the_kernel_does_unless_it_is_told_not_to() {
    with_losses(|| {
        run("nft", &["flush chain inet t c"]);
        let loaded = loaded("newreno+meld-me", 'i');
        for restarts in [true, false] {
            // Of this network namespace.
            let sysctl = "/proc/sys/net/ipv4/tcp_slow_start_after_idle";
            std::fs::write(sysctl, if restarts { "1" } else { "0" }).unwrap();
            let listener = TcpListener::bind((USER, 7000)).unwrap();
            let address = listener.local_addr().unwrap();
            let receiver =
                thread::spawn(move || std::io::copy(&mut listener.accept().unwrap().0, &mut std::io::sink()));
            let mut stream = TcpStream::connect(address).unwrap();
            SockRef::from(&stream).set_tcp_congestion(loaded.name().as_bytes()).unwrap();
            let port = format!(":{}", stream.local_addr().unwrap().port());
            let cwnd = || {
                let sockets = loaded.sockets().unwrap();
                let socket = sockets.iter().find(|socket| socket.local.ends_with(&port));
                socket.and_then(|socket| socket.figure("cwnd")).unwrap_or_else(|| panic!("{sockets:?}"))
            };
            while cwnd() < 80.0 {
                stream.write_all(&[7; 300_000]).unwrap();
            }
            // Two timeouts of 200 ms and more, and what is left to be sent before.
            thread::sleep(Duration::from_millis(800));
            let before = cwnd();
            stream.write_all(&[7; 1]).unwrap();
            assert_eq!(cwnd() <= before / 2.0, restarts, "{before} and {}", cwnd());
            drop(stream);
            receiver.join().unwrap().unwrap();
        }
    });
}
