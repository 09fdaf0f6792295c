//! Unacknowledged mode step by step.

use ranpace_link::QueueConfig;
use ranpace_units::{Bytes, Span, Time};

use crate::rlc::testing::{Cell, Log, TestPacket, ms};
use crate::rlc::{Config, DropCause, Format, Observer, Pdu, Timers, Um};

fn channel() -> Um<TestPacket> {
    Um::new(&Config::um(Bytes::new(1_000_000)), 1)
}

/// Enqueues packets of 1000 B and builds a PDU of each.
fn one_each(um: &mut Um<TestPacket>, log: &mut Log, packets: u64) -> Vec<Pdu> {
    (0..packets)
        .map(|id| {
            um.enqueue(ms(id), TestPacket { id, size: 1000 }, log);
            um.build(ms(id), Bytes::new(2000), log).unwrap()
        })
        .collect()
}

#[test]
fn packets_behind_a_gap_wait_until_it_fills() {
    let (mut um, mut log) = (channel(), Log::default());
    let pdus = one_each(&mut um, &mut log, 3);
    um.on_received(ms(4), pdus[1], &mut log);
    um.on_received(ms(5), pdus[2], &mut log);
    assert_eq!((log.delivered.len(), um.next_deadline()), (0, ms(4 + 35)));
    um.on_received(ms(11), pdus[0], &mut log);
    assert_eq!(log.delivered_ids(), [0, 1, 2]);
    assert!(log.delivered.iter().all(|d| d.0 == ms(11)));
    assert_eq!(um.next_deadline(), Time::MAX);
}

#[test]
fn packets_behind_a_gap_wait_until_the_timer_runs_out() {
    let (mut um, mut log) = (channel(), Log::default());
    let pdus = one_each(&mut um, &mut log, 4);
    um.on_received(ms(4), pdus[1], &mut log);
    um.on_received(ms(6), pdus[3], &mut log);
    um.on_deadline(ms(39), &mut log);
    // Only the first was missing when the timer started; it now runs for the third.
    assert_eq!((log.delivered_ids(), um.next_deadline()), (vec![1], ms(39 + 35)));
    assert_eq!(log.dropped_for(DropCause::Radio), [0]);
    um.on_deadline(ms(100), &mut log);
    assert_eq!(log.delivered.last().unwrap().0, ms(74), "told late, at its own time");
    assert_eq!(log.delivered_ids(), [1, 3]);
    um.on_received(ms(101), pdus[0], &mut log);
    assert_eq!((um.counters().useless, um.waiting()), (1, Bytes::ZERO));
}

#[test]
fn a_packet_of_which_a_byte_is_lost_is_lost() {
    let (mut um, mut log) = (channel(), Log::default());
    for id in 0..4 {
        um.enqueue(ms(0), TestPacket { id, size: 1000 }, &mut log);
    }
    // 1495 B of packets each: all of 0 and half of 1; the rest of 1 and nearly all of 2; the rest.
    let pdus: Vec<Pdu> = (0..3).map(|_| um.build(ms(0), Bytes::new(1500), &mut log).unwrap()).collect();
    assert_eq!(pdus[0].payload(), Bytes::new(1500 - 3 - 2 - 2));
    um.on_lost(ms(3), pdus[0], &mut log);
    assert_eq!(log.dropped_for(DropCause::Radio), [0, 1]);
    um.on_received(ms(3), pdus[1], &mut log);
    um.on_received(ms(3), pdus[2], &mut log);
    assert_eq!(um.waiting(), Bytes::new(2000));
    um.on_deadline(um.next_deadline(), &mut log);
    assert_eq!(log.delivered_ids(), [2, 3]);
}

#[test]
fn grants_too_small_for_a_byte_carry_nothing() {
    let (mut um, mut log) = (channel(), Log::default());
    um.enqueue(ms(0), TestPacket { id: 0, size: 0 }, &mut log);
    um.enqueue(ms(0), TestPacket { id: 1, size: 65_536 }, &mut log);
    for grant in 0..=4 {
        assert_eq!(um.build(ms(0), Bytes::new(grant), &mut log), None);
    }
    // The PDCP header of the empty packet takes two blocks.
    for payload in [1, 1, 1] {
        let pdu = um.build(ms(0), Bytes::new(5), &mut log).unwrap();
        assert_eq!(pdu.payload(), Bytes::new(payload));
        um.on_received(ms(0), pdu, &mut log);
    }
    assert_eq!(log.delivered_ids(), [0]);
    let pdu = um.build(ms(0), Bytes::MAX, &mut log).unwrap();
    um.on_received(ms(0), pdu, &mut log);
    assert_eq!(log.delivered_ids(), [0, 1]);
    assert_eq!(um.build(ms(0), Bytes::MAX, &mut log), None);
}

#[test]
fn an_outage_does_not_pile_up_memory() {
    let mut cell = Cell::new(&Config::um(Bytes::new(100_000)), 1);
    for _ in 0..10_000 {
        cell.offer(1000);
        cell.tti(1200, 1.0);
        assert!(cell.channel.waiting() < Bytes::new(10_000), "{}", cell.channel.waiting());
    }
    for _ in 0..100 {
        cell.offer(1000);
        cell.tti(1200, 0.0);
    }
    cell.drain();
    assert!(cell.log.delivered.len() >= 100);
}

#[test]
fn waiting_packets_are_discarded_in_time() {
    let config = Config { discard: Some(Span::from_millis(50)), ..Config::um(Bytes::new(10_000)) };
    let (mut um, mut log) = (Um::new(&config, 1), Log::default());
    for id in 0..3 {
        um.enqueue(ms(id * 10), TestPacket { id, size: 1000 }, &mut log);
    }
    um.build(ms(20), Bytes::new(100), &mut log).unwrap();
    assert_eq!(um.head_of_line_delay(ms(40)), Span::from_millis(40));
    assert_eq!(um.next_deadline(), ms(60), "a byte of the first was sent: it stays");
    um.on_deadline(ms(65), &mut log);
    assert_eq!(log.dropped_for(DropCause::Discard), [1]);
    assert_eq!((log.dropped[0].0, um.next_deadline()), (ms(60), ms(70)));
}

#[test]
fn full_buffers_drop_and_codel_holds_the_delay_down() {
    let mut cell = Cell::new(&Config::um(Bytes::new(15_000)), 1);
    (0..12).for_each(|_| cell.offer(1500));
    assert_eq!(cell.log.dropped_for(DropCause::Overflow), [10, 11]);

    let mut buffer = QueueConfig::codel(ranpace_link::Limit::Bytes(Bytes::new(10_000_000)));
    if let QueueConfig::CoDel { target, .. } = &mut buffer {
        *target = Span::from_millis(20);
    }
    let mut cell = Cell::new(&Config { buffer, ..Config::um(Bytes::ZERO) }, 1);
    for _ in 0..5_000 {
        cell.offer(1500);
        cell.tti(1400, 0.0);
    }
    assert!(!cell.log.dropped_for(DropCause::Aqm).is_empty());
    let delay = cell.channel.head_of_line_delay(ms(cell.tti));
    assert!(delay < Span::from_millis(200), "{delay}");
}

#[test]
fn a_new_set_up_loses_what_is_under_way() {
    let (mut um, mut log) = (channel(), Log::default());
    let pdus = one_each(&mut um, &mut log, 3);
    um.on_received(ms(4), pdus[0], &mut log);
    um.on_received(ms(4), pdus[2], &mut log);
    um.enqueue(ms(5), TestPacket { id: 3, size: 1000 }, &mut log);
    um.restart(ms(5), &mut log);
    assert_eq!(log.dropped_for(DropCause::Reset), [1, 2]);
    um.on_received(ms(6), pdus[1], &mut log);
    let pdu = um.build(ms(6), Bytes::new(2000), &mut log).unwrap();
    um.on_received(ms(9), pdu, &mut log);
    assert_eq!((log.delivered_ids(), um.next_deadline()), (vec![0, 3], Time::MAX));
}

#[test]
fn nr_has_headers_for_each_packet() {
    let config = Config { format: Format::Nr, timers: Timers::UM, ..Config::um(Bytes::new(100_000)) };
    let (mut um, mut log) = (Um::new(&config, 1), Log::default());
    for id in 0..3 {
        um.enqueue(ms(0), TestPacket { id, size: 1000 }, &mut log);
    }
    let pdu = um.build(ms(0), Bytes::new(1500), &mut log).unwrap();
    assert_eq!(pdu.payload(), Bytes::new(1500 - 2 * 5));
    let rest = um.build(ms(0), Bytes::new(10_000), &mut log).unwrap();
    assert_eq!(
        rest.size(),
        rest.payload() + Bytes::new(5 + 2 + 5),
        "the first part begins inside its packet"
    );
    (&mut log as &mut dyn Observer<TestPacket>).on_failed(ms(0));
}
