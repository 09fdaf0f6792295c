//! Conservation of packets in any cell, with any users and any sequence of events.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::network::RadioNetwork;

/// The place of a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
enum PacketState {
    Waits { size: u32 },
    Delivered,
    Dropped,
}

/// Every call of the listener, checked as it comes.
#[derive(Default)]
struct Ledger {
    /// By packet number, with the packet's user.
    packets: BTreeMap<u64, (u32, Direction, PacketState)>,
    latest: BTreeMap<(u32, bool, u8), u64>,
    told: Vec<(Time, u64, Option<DropCause>)>,
    now: Time,
    reports: u64,
}

impl Ledger {
    fn tick(&mut self, now: Time) {
        assert!(now >= self.now, "time runs backwards: {now:?} after {:?}", self.now);
        self.now = now;
    }
    fn end(&mut self, packet: &Datagram, user: u32, direction: Direction, fate: PacketState) {
        let entry = self.packets.get_mut(&packet.id).expect("was sent");
        assert_eq!((entry.0, entry.1), (user, direction));
        assert!(
            matches!(entry.2, PacketState::Waits { .. }),
            "{packet:?} was {:?} and now is {fate:?}",
            entry.2
        );
        entry.2 = fate;
    }
    fn waiting(&self, user: u32, direction: Direction) -> Bytes {
        let sizes = self.packets.values().filter(|packet| (packet.0, packet.1) == (user, direction));
        sizes
            .map(|packet| {
                if let PacketState::Waits { size } = packet.2 { Bytes::new(size.into()) } else { Bytes::ZERO }
            })
            .sum()
    }
}

impl Listener<Datagram> for Ledger {
    fn on_delivered(&mut self, now: Time, user: u32, direction: Direction, packet: Datagram) {
        self.tick(now);
        assert!(packet.sent <= now, "{packet:?} at {now:?}");
        self.end(&packet, user, direction, PacketState::Delivered);
        self.told.push((now, packet.id, None));
        // The lowest bit of the number is the bearer.
        let place = self.latest.entry((user, direction == UP, (packet.id & 1) as u8)).or_insert(0);
        assert!(*place <= packet.id, "{packet:?} after {place}");
        *place = packet.id;
    }
    fn on_dropped(
        &mut self,
        now: Time,
        user: u32,
        direction: Direction,
        packet: &Datagram,
        cause: DropCause,
    ) {
        self.tick(now);
        self.end(packet, user, direction, PacketState::Dropped);
        self.told.push((now, packet.id, Some(cause)));
    }
    fn on_event(&mut self, event: Event) {
        self.tick(event.time);
    }
    fn on_report(&mut self, report: &SlotReport<'_>) {
        self.tick(report.time);
        self.reports += 1;
    }
}

/// The next step of a run.
#[derive(Clone, Debug)]
enum Step {
    Send {
        user: u32,
        up: bool,
        bearer: u8,
        size: u32,
        count: u32,
    },
    Wait {
        us: u64,
    },
    HandOver {
        user: u32,
        to: usize,
        forward: bool,
        ms: u64,
    },
    /// The user leaves, and returns later.
    Leave {
        user: u32,
        anew: bool,
    },
    Return {
        user: u32,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..6u32, any::<bool>(), 0..2u8, 1..3000u32, 1..40u32)
            .prop_map(|(user, up, bearer, size, count)| Step::Send { user, up, bearer, size, count }),
        6 => (0..60_000u64).prop_map(|us| Step::Wait { us }),
        1 => (0..6u32, 0..2usize, any::<bool>(), 0..50u64)
            .prop_map(|(user, to, forward, ms)| Step::HandOver { user, to, forward, ms }),
        1 => (0..6u32, any::<bool>()).prop_map(|(user, anew)| Step::Leave { user, anew }),
        1 => (0..6u32).prop_map(|user| Step::Return { user }),
    ]
}

fn cell() -> impl Strategy<Value = CellConfig> {
    let policy = prop_oneof![Just(Policy::PROPORTIONAL_FAIR), Just(Policy::RoundRobin), Just(Policy::MaxCi),];
    let errors = prop_oneof![Just(0.0), Just(0.1), Just(0.5), Just(0.9), Just(1.0)];
    (0..6usize, policy, any::<bool>(), errors, 0..4u8, 0..12u64, any::<bool>()).prop_map(
        |(frame, policy, full, errors, again, k2, outer)| {
            let mut config = frames()[frame].1.clone();
            config.policy = policy;
            config.alloc = if full { Alloc::Full } else { Alloc::Queue };
            config.adaptation.errors = if errors == 0.5 { Errors::Awgn } else { Errors::Fixed(errors) };
            config.adaptation.outer_loop = outer.then_some(OuterLoop::TEN_PERCENT);
            if outer {
                config.adaptation.fixed_mcs = None;
            }
            for harq in [&mut config.harq.downlink, &mut config.harq.uplink] {
                harq.max_retransmissions = again;
                harq.misreading = 0.05;
            }
            config.access.grant_to_pusch = k2;
            config
        },
    )
}

fn user() -> impl Strategy<Value = UserConfig> {
    (prop::collection::vec((any::<bool>(), any::<bool>(), 2_000..200_000u64, any::<bool>()), 2), 20.0..300.0)
        .prop_map(|(bearers, metres)| {
            let config = |(acknowledged, nr, buffer, discard)| {
                let buffer = Bytes::new(buffer);
                let config = if acknowledged { Config::am(buffer) } else { Config::um(buffer) };
                let config = if nr { of_nr(config) } else { config };
                Config { discard: if discard { Some(Span::from_micros(50_300)) } else { None }, ..config }
            };
            let bearers = bearers.into_iter().map(|bearer| BearerConfig::both(config(bearer))).collect();
            UserConfig { bearers, ..standing(metres, um()) }
        })
}

/// When the cell is called.
#[derive(Clone, Copy, PartialEq)]
enum Calls {
    /// At each event.
    InTime,
    /// Only when a step is done.
    Late,
}

fn play(cells: &[CellConfig], users: &[UserConfig], steps: &[Step], reports: bool, calls: Calls) -> Ledger {
    let mut ledger = Ledger::default();
    let first: Vec<(usize, &UserConfig)> = users.iter().enumerate().map(|(n, user)| (n % 2, user)).collect();
    let mut network = RadioNetwork::new(cells, &first, 9, &mut ledger).unwrap();
    if reports {
        network.subscribe(Time::ZERO, Some(CellSubscription { period: 3, full_every: 7 }));
    }
    let mut away: BTreeMap<u32, Subscriber<Datagram>> = BTreeMap::new();
    let (mut now, mut number) = (Time::ZERO, 0_u64);
    for step in steps {
        match *step {
            Step::Send { user, up, bearer, size, count } => {
                let direction = if up { UP } else { DOWN };
                for _ in 0..count {
                    number += 2;
                    let packet = Datagram { id: number + u64::from(bearer), size, sent: now };
                    let fate = PacketState::Waits { size };
                    ledger.packets.insert(packet.id, (user, direction, fate));
                    let taken = match away.get_mut(&user) {
                        Some(subscriber) => {
                            // Nothing else plays the earlier slots of the other users.
                            network.poll(now - Span::from_nanos(1), &mut ledger);
                            subscriber.send(now, direction, bearer, packet, &mut ledger);
                            true
                        }
                        None => network.send(now, user, direction, bearer, packet, &mut ledger),
                    };
                    assert_eq!(taken, (user as usize) < users.len());
                    if !taken {
                        ledger.packets.remove(&packet.id);
                    }
                }
            }
            Step::Wait { us } => {
                now += Span::from_micros(us);
                while calls == Calls::InTime && network.next_event() < now {
                    let next = network.next_event();
                    network.poll(next, &mut ledger);
                }
            }
            Step::HandOver { user, to, forward, ms } => {
                if !away.contains_key(&user) {
                    network.hand_over(now, user, to, forward, Span::from_millis(ms), &mut ledger);
                }
            }
            Step::Leave { user, anew } => {
                network.poll(now - Span::from_nanos(1), &mut ledger);
                let Some(at) = network.serving(user) else { continue };
                let left = network.cell_mut(at).and_then(|cell| cell.detach(now, user, &mut ledger));
                if let Some(mut subscriber) = left {
                    if anew {
                        subscriber.restart(now, false, &mut ledger);
                    }
                    away.insert(user, subscriber);
                }
            }
            Step::Return { user } => {
                network.poll(now - Span::from_nanos(1), &mut ledger);
                let Some(subscriber) = away.remove(&user) else { continue };
                let Some(at) = network.serving(user) else { continue };
                let cell = network.cell_mut(at).unwrap();
                assert!(cell.attach(now, subscriber, &mut ledger).is_none());
            }
        }
        // Waiting bytes are those neither delivered nor dropped.
        for user in 0..users.len() as u32 {
            for direction in [DOWN, UP] {
                let waiting = match (away.get(&user), network.serving(user)) {
                    (Some(subscriber), _) => subscriber
                        .rlc()
                        .bearers()
                        .iter()
                        .map(|bearer| bearer.channel(direction).waiting())
                        .sum(),
                    (None, Some(at)) => network.cells()[at].waiting(user, direction),
                    (None, None) => continue, // under way
                };
                assert_eq!(
                    waiting,
                    ledger.waiting(user, direction),
                    "user {user}, {direction:?}, at {now:?}"
                );
            }
        }
    }
    let end = now + Span::from_secs(1);
    match calls {
        Calls::Late => network.poll(end, &mut ledger),
        Calls::InTime => {
            while network.next_event() <= end {
                let next = network.next_event();
                network.poll(next, &mut ledger);
            }
        }
    }
    for user in (0..users.len() as u32).filter(|user| !away.contains_key(user)) {
        let at = network.serving(user).expect("it has arrived");
        for direction in [DOWN, UP] {
            assert_eq!(network.cells()[at].waiting(user, direction), ledger.waiting(user, direction));
        }
    }
    ledger
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// Every packet is delivered once, in order within its bearer, or dropped once, or still waits; reports and the times of
    /// calls make no difference.
    #[test]
    fn no_packet_is_lost_sight_of(
        cells in prop::collection::vec(cell(), 2), users in prop::collection::vec(user(), 1..=6),
        steps in prop::collection::vec(step(), 1..60)
    ) {
        let plain = play(&cells, &users, &steps, false, Calls::InTime);
        prop_assert_eq!(plain.reports, 0);
        let told = play(&cells, &users, &steps, true, Calls::InTime);
        prop_assert!(told.told == plain.told, "reports change something");
        let late = play(&cells, &users, &steps, true, Calls::Late);
        prop_assert_eq!(late.reports, told.reports);
        prop_assert!(late.told == plain.told, "late calls change something");
    }
}
