#![allow(clippy::unwrap_used)] // a test may

use proptest::prelude::*;
use ranpace_link::{DropCause, Limit, Observer};

use super::*;

fn ms(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

#[derive(Clone, Copy, Debug)]
struct Datagram {
    flow: u32,
    size: u64,
}

impl Packet for Datagram {
    fn size(&self) -> Bytes {
        Bytes::new(self.size)
    }
    fn flow(&self) -> u32 {
        self.flow
    }
}

#[derive(Default)]
struct Dropped(u64);

impl Observer<Datagram> for Dropped {
    fn on_dropped(&mut self, _: Time, packet: &Datagram, _: DropCause) {
        self.0 += packet.size;
    }
}

/// Always backlogged, 4 packets each 10 ms: the example, in packets.
#[test]
fn drql_shrinks_by_the_least_rest_and_grows_by_a_fifth() {
    let mut drql = Drql::new(1);
    drql.on_joined(ms(0));
    let (mut rlc, mut before) = (0u64, Vec::new());
    let mut limits = Vec::new();
    for n in 1..=29 {
        let now = ms(n * 10);
        let full = rlc <= drql.limit();
        rlc = rlc.max(drql.limit());
        before.push(rlc);
        let taken = rlc.min(4);
        rlc -= taken;
        drql.on_slot(now, Span::from_millis(100), taken, rlc, full);
        limits.push((n * 10, drql.limit()));
    }
    let limit_at = |at| limits.iter().find(|(ms, _)| *ms == at).unwrap().1;
    assert_eq!([10, 100, 110, 160, 170, 270, 280, 290].map(limit_at), [25, 25, 4, 4, 5, 5, 4, 5]);
    assert_eq!(before[11..17], [21, 17, 13, 9, 5, 4]);
}

#[test]
fn drql_grows_only_from_a_full_buffer_that_is_emptied() {
    let mut drql = Drql::new(1);
    let mut limits = Vec::new();
    for (n, taken) in [25, 30, 30].into_iter().enumerate() {
        let rlc = drql.limit();
        drql.on_slot(ms(n as u64 * 10), Span::from_millis(100), taken, rlc - taken, true);
        limits.push(drql.limit());
    }
    assert_eq!(limits, [30, 36, 36]);
    let mut bytes = Drql::new(MTU);
    for n in 0..1_000 {
        bytes.on_slot(ms(n * 200), Span::from_millis(100), 1, u64::MAX, true);
    }
    assert_eq!(bytes.limit(), MTU, "a packet fits in any case");
}

#[test]
fn a_rule_that_begins_late_holds_its_first_limit() {
    let mut drql = Drql::new(1);
    drql.on_slot(ms(5_000), Span::from_millis(100), 5, 20, true);
    assert_eq!(drql.limit(), 25);
    let mut dynamic = Dynamic::new();
    dynamic.on_left(Span::from_millis(40));
    dynamic.on_time(ms(5_000));
    assert_eq!(dynamic.packets(), 10);
}

/// A slot of 1 ms after `packets` of full size were pushed to stages without a packet: it carries all that RLC holds.
fn slot(stages: &mut Stages<Datagram>, at: u64, packets: u64) -> u64 {
    let mut dropped = Dropped::default();
    (0..packets).for_each(|_| stages.push(ms(at), Datagram { flow: 0, size: MTU }, &mut dropped));
    let mut rlc = Occupancy::default();
    for tick in 0..10 {
        let now = ms(at) + Span::from_micros(100 * tick);
        let before = rlc;
        stages.advance(now, before, &mut dropped, &mut |_, entered: Entered<Datagram>| {
            rlc.bytes += entered.packet.size;
            rlc.packets += 1;
        });
    }
    let end = ms(at + 1) - Span::from_nanos(1);
    stages.on_slot(end, Span::from_millis(1), rlc.bytes, rlc.bytes, Occupancy::default());
    rlc.packets
}

#[test]
fn in_the_stages_drql_grows_only_when_packets_had_to_wait() {
    let config = StagesConfig { room: Room::Drql, qfi_per_flow: false, upf: false };
    let mut stages = Stages::new(config, &QueueConfig::drop_tail(Limit::Packets(100)), 1);
    let mut step = |at, packets| {
        let carried = slot(&mut stages, at, packets);
        let Rule::Drql(drql) = &stages.rule else { panic!("{:?}", stages.rule) };
        (carried, drql.limit() / MTU)
    };
    assert_eq!(step(0, 30), (25, 30));
    assert_eq!(step(1, 0), (5, 30), "the rest of before");
    assert_eq!(step(2, 5), (5, 30));
}

#[test]
fn the_upf_passes_ten_packets_in_a_tick_one_of_each_qfi_in_turn() {
    let config = StagesConfig { room: Room::Packets(1), qfi_per_flow: true, upf: true };
    let mut stages = Stages::new(config, &QueueConfig::drop_tail(Limit::Packets(100)), 1);
    let mut dropped = Dropped::default();
    for flow in [0, 1, 2, 3] {
        (0..20).for_each(|_| stages.push(ms(0), Datagram { flow, size: 100 }, &mut dropped));
    }
    // RLC is full.
    let rlc = Occupancy { bytes: 100, packets: 1 };
    let mut waiting = || {
        stages.pass_on(ms(0), &mut dropped);
        stages.qfis.iter().map(|qfi| qfi.queue.packets()).collect::<Vec<_>>()
    };
    assert_eq!(waiting(), [3, 3, 2, 2]);
    assert_eq!(waiting(), [5, 5, 5, 5]);
    stages.advance(ms(0), rlc, &mut dropped, &mut |_, _| panic!("RLC has no room"));
    assert_eq!(stages.qfis.iter().map(|qfi| qfi.queue.packets()).sum::<usize>(), 30);
}

#[test]
fn bdp_pushes_a_third_ahead_and_the_rest_with_time() {
    for (rest, expected) in [(0, [756, 1_329, 1_902, 2_360, 3_048]), (700, [525, 923, 1_321, 1_639, 2_117])] {
        let mut bdp = Bdp::new();
        bdp.on_slot(2_292, rest);
        assert_eq!([0.0, 0.25, 0.5, 0.7, 1.0].map(|since| bdp.allowance(since)), expected);
    }
    let mut bdp = Bdp::new();
    bdp.on_slot(2_000, 2_000);
    assert!(!bdp.admits(5.0), "as much left as carried: nothing");
    bdp.on_slot(20_000, 0);
    bdp.look(5.0);
    assert_eq!(bdp.optimum(), 20_000);
    (0..20).for_each(|_| bdp.look(5.7));
    assert!(bdp.optimum() <= 7_500 && bdp.optimum() > 5_000, "{}", bdp.optimum());
}

#[test]
fn pacer_passes_a_tenth_when_saturated_and_doubles_at_the_fifth_tick() {
    let mut pacer = Pacer::new();
    (0..47).for_each(|_| pacer.on_passed());
    pacer.on_tick(true, true, 0, None);
    assert_eq!(pacer.optimum(), 5);
    for tick in 1..=5 {
        assert_eq!(pacer.optimum(), 5, "before tick {tick}");
        pacer.on_tick(true, false, 0, None);
    }
    assert_eq!(pacer.optimum(), 10);
    assert_eq!((pacer.room(3), pacer.room(30)), (7, 0));
    pacer.on_tick(true, false, 20, Some(15)); // not beyond the slack
    pacer.on_tick(true, false, 21, Some(15));
    assert_eq!(pacer.optimum(), 1, "nothing was passed since");
}

#[test]
fn dynamic_size_follows_the_mean_wait() {
    let mut dynamic = Dynamic::new();
    let mut sizes = Vec::new();
    dynamic.on_time(ms(0));
    for (n, waited) in [(1, 12), (2, 12), (3, 10), (4, 10), (5, 40)] {
        dynamic.on_left(Span::from_millis(waited));
        dynamic.on_time(ms(n * 100));
        sizes.push(dynamic.packets());
    }
    assert_eq!(sizes, [9, 8, 9, 10, 9]);
    for n in 6..40 {
        dynamic.on_left(Span::from_millis(40));
        dynamic.on_time(ms(n * 100));
    }
    assert_eq!(dynamic.packets(), 2);
}

#[test]
fn flows_of_a_qfi_take_turns_at_the_upf() {
    let mut flows = FlowQueues::new(Limit::Packets(100));
    for flow in [1, 1, 1, 2, 3] {
        let packet = Datagram { flow, size: 100 };
        flows.push(ms(0), Entered { packet, at: ms(0) }, &mut Dropped::default());
    }
    let order: Vec<u32> = core::iter::from_fn(|| flows.pop()).map(|entered| entered.packet.flow).collect();
    assert_eq!(order, [1, 2, 3, 1, 1]);
}

fn config() -> impl Strategy<Value = StagesConfig> {
    let room = prop_oneof![
        (1..40u32).prop_map(Room::Packets),
        Just(Room::Drql),
        Just(Room::Bdp),
        Just(Room::Dynamic)
    ];
    (room, any::<bool>(), any::<bool>()).prop_map(|(room, qfi_per_flow, upf)| StagesConfig {
        room,
        qfi_per_flow,
        upf,
    })
}

proptest! {
    /// Each byte waits above RLC, waits in it, was sent, or was dropped; and with slots that carry data all is sent in the end.
    #[test]
    fn no_byte_is_unaccounted_or_stuck(
        config in config(),
        kind in 0..3usize,
        steps in prop::collection::vec((0..3_000_000u64, 0..4u32, 1..1500u64, 0..4_000u64), 1..200),
    ) {
        let limit = Limit::Packets(50);
        let kinds = [QueueConfig::drop_tail, QueueConfig::codel, QueueConfig::abc];
        let buffer = kinds[kind](limit);
        let mut stages = Stages::new(config, &buffer, 1);
        let (mut offered, mut sent, mut dropped) = (0, 0, Dropped::default());
        let (mut now, mut rlc) = (Time::ZERO, VecDeque::new());
        let slot = Span::from_millis(1);
        let occupancy = |rlc: &VecDeque<u64>| {
            Occupancy { bytes: rlc.iter().sum(), packets: rlc.len() as u64 }
        };
        let drain = (0..3_000).map(|_| (1_000_000, 9, 0, 3_000));
        for (wait, flow, size, egress) in steps.into_iter().chain(drain) {
            now += Span::from_nanos(wait);
            let held = occupancy(&rlc);
            stages.advance(now, held, &mut dropped, &mut |at, entered: Entered<Datagram>| {
                assert!(entered.at <= at && at <= now);
                rlc.push_back(entered.packet.size);
            });
            if size > 0 {
                stages.push(now, Datagram { flow, size }, &mut dropped);
                offered += size;
            }
            let mut taken = 0;
            while rlc.front().is_some_and(|size| taken + size <= egress) {
                taken += rlc.pop_front().unwrap();
            }
            sent += taken;
            if egress > 0 {
                stages.on_slot(now, slot, egress, taken, occupancy(&rlc));
            }
            prop_assert_eq!(offered, sent + dropped.0 + stages.bytes().get() + occupancy(&rlc).bytes);
        }
        prop_assert!(stages.is_empty() && rlc.is_empty(), "{} B and {:?}", stages.bytes(), rlc);
    }
}
