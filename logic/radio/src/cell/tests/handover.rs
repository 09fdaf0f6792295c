//! Users that go from cell to cell.

use super::*;
use crate::network::RadioNetwork;
use ranpace_rnis::EventKind;

/// Outcomes of packets, by number.
#[derive(Default)]
struct Heard {
    delivered: Vec<(Time, Direction, u64)>,
    dropped: Vec<(Time, Direction, u64, DropCause)>,
    events: Vec<Event>,
}

impl Listener<Datagram> for Heard {
    fn on_delivered(&mut self, now: Time, _: u32, direction: Direction, packet: Datagram) {
        self.delivered.push((now, direction, packet.id));
    }
    fn on_dropped(&mut self, now: Time, _: u32, direction: Direction, packet: &Datagram, cause: DropCause) {
        self.dropped.push((now, direction, packet.id, cause));
    }
    fn on_event(&mut self, event: Event) {
        self.events.push(event);
    }
}

const BEGIN: Time = Time::from_millis(105);
const END: Time = Time::from_millis(155);

/// A user that downloads (and uploads) 10 Mbit/s and is handed over once, with 50 ms in between.
fn go(config: Config, forward: bool) -> Heard {
    let mut cells = [lte(LteBandwidth::Mhz20), lte(LteBandwidth::Mhz5)];
    cells[1].channel.position = Position::new(150.0, 0.0, 0.0);
    let user = standing(60.0, config);
    let mut told = Heard::default();
    let mut network = RadioNetwork::new(&cells, &[(0, &user)], 1, &mut told).unwrap();
    let mut id = 0;
    for ms in 0..300 {
        let now = Time::from_millis(ms);
        if now == BEGIN {
            network.hand_over(now, 0, 1, forward, END - BEGIN, &mut told);
            assert_eq!(network.serving(0), None);
        }
        for direction in [DOWN, UP] {
            let packet = Datagram { id, size: 1250, sent: now };
            assert!(network.send(now, 0, direction, 0, packet, &mut told));
            id += 1;
        }
        while network.next_event() <= now {
            let next = network.next_event();
            network.poll(next, &mut told);
        }
    }
    network.poll(Time::from_secs(5), &mut told);
    assert_eq!(network.serving(0), Some(1));
    assert_eq!(network.next_event(), Time::MAX);
    let cell = &network.cells()[1];
    assert_eq!(cell.waiting(0, DOWN) + cell.waiting(0, UP), Bytes::ZERO);
    told
}

#[test]
fn forwarded_packets_arrive_in_order_and_once() {
    let told = go(Config::am(Bytes::new(1_000_000)), true);
    assert_eq!(told.dropped, []);
    assert_eq!(told.delivered.len(), 600);
    for direction in [DOWN, UP] {
        let ids = told.delivered.iter().filter(|packet| packet.1 == direction).map(|packet| packet.2);
        assert!(ids.is_sorted_by(|a, b| a < b), "{direction:?}");
    }
    // No cell serves the user in between.
    assert!(!told.delivered.iter().any(|packet| packet.0 > BEGIN && packet.0 < END));
    assert!(told.delivered.is_sorted_by_key(|packet| packet.0));
}

#[test]
fn packets_that_are_not_forwarded_are_lost_and_reported() {
    for (mode, config) in [("AM", Config::am(Bytes::new(1_000_000))), ("UM", um())] {
        let told = go(config, false);
        assert_eq!(told.delivered.len() + told.dropped.len(), 600, "{mode}");
        // Only downlink packets of the last 3 ms or still queued, and UM's blocks in the air.
        let down = told.dropped.iter().filter(|packet| packet.1 == DOWN).count();
        assert!((1..20).contains(&down), "{mode}: {:?}", told.dropped);
        for (time, direction, _, cause) in &told.dropped {
            assert_eq!(*time, BEGIN, "{mode}");
            let known = *cause == DropCause::Reset || *cause == DropCause::Radio && mode == "UM";
            assert!(known && (*direction == DOWN || mode == "UM"), "{mode}: {direction:?} {cause:?}");
        }
    }
}

#[test]
fn events_tell_the_story() {
    let told = go(Config::am(Bytes::new(1_000_000)), true);
    let kinds: Vec<(u16, Time, EventKind)> =
        told.events.iter().map(|event| (event.cell, event.time, event.kind)).collect();
    assert_eq!(
        kinds,
        [
            (0, Time::ZERO, EventKind::Attached),
            (0, Time::ZERO, EventKind::BearerSetUp { bearer: 0 }),
            (0, BEGIN, EventKind::Detached),
            (0, BEGIN, EventKind::HandoverBegun { to: 1 }),
            (1, END, EventKind::Attached),
            (1, END, EventKind::BearerSetUp { bearer: 0 }),
            (1, END, EventKind::HandoverCompleted { from: 0 }),
        ]
    );
}

#[test]
fn a_handover_that_cannot_be_changes_nothing() {
    let cells = [lte(LteBandwidth::Mhz20)];
    let user = standing(60.0, um());
    let mut told = Heard::default();
    let mut network = RadioNetwork::new(&cells, &[(0, &user)], 1, &mut told).unwrap();
    for (who, to) in [(0, 0), (0, 7), (3, 0)] {
        network.hand_over(BEGIN, who, to, true, Span::ZERO, &mut told);
    }
    assert_eq!((network.serving(0), network.serving(3), told.events.len()), (Some(0), None, 2));
}
