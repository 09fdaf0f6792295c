//! Both ends on one machine.
#![allow(clippy::unwrap_used)] // a test may

use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use ranpace_saturator::{Ended, receive, send};
use ranpace_units::Span;

/// A port that was free a moment ago.
fn address() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[test]
fn packets_sent_over_loopback_are_recorded() {
    let address = address();
    let length = Span::from_millis(1_500);
    let receiver = thread::spawn(move || receive(address, length, &mut |_| true).unwrap());
    let ended = send(address, length, 1500, 64, &mut |_| true).unwrap();
    assert!(matches!(ended, Ended::Done | Ended::Dismissed), "{ended:?}");
    let recording = receiver.join().unwrap();
    assert!(recording.packets > 1_000, "{}", recording.packets);
    assert!(recording.arrivals.windows(2).all(|pair| pair[0].0 < pair[1].0));
    assert!(recording.arrivals.last().unwrap().0 <= 1_500);
    // A loopback has no queue of 750 ms.
    assert_eq!(recording.saturated_from, None);
}

#[test]
fn both_ends_stop_when_told() {
    let began = Instant::now();
    let patience = |_| began.elapsed() < Duration::from_millis(300);
    let recording = receive(address(), Span::from_secs(60), &mut { patience }).unwrap();
    assert_eq!(recording.packets, 0);
    // Nobody is there: greetings are refused, which is tolerated until the caller stops it.
    assert_eq!(send(address(), Span::from_secs(60), 1500, 64, &mut { patience }).unwrap(), Ended::Done);
    assert!(began.elapsed() < Duration::from_secs(5));
}
