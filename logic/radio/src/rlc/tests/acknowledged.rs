//! Acknowledged mode step by step.

use ranpace_units::{Bytes, Span, Time};

use crate::rlc::testing::{Cell, Log, TestPacket, ms};
use crate::rlc::{Am, Config, DropCause, Format, Pdu, Timers};

fn config() -> Config {
    Config::am(Bytes::new(1_000_000))
}

fn one_each(am: &mut Am<TestPacket>, log: &mut Log, packets: u64) -> Vec<Pdu> {
    (0..packets)
        .map(|id| {
            am.enqueue(ms(id), TestPacket { id, size: 1000 }, log);
            am.build(ms(id), Bytes::new(2000), log).unwrap()
        })
        .collect()
}

#[test]
fn missing_pdus_are_reported_and_resent_in_parts() {
    let (mut am, mut log) = (Am::new(&config(), 1), Log::default());
    let pdus = one_each(&mut am, &mut log, 3);
    am.on_received(ms(4), pdus[1], &mut log);
    am.on_received(ms(5), pdus[2], &mut log);
    // Every PDU polls, but a report covers only PDUs that t-Reordering no longer waits for.
    assert_eq!(am.status_due(), Time::MAX);
    assert_eq!(am.next_deadline(), ms(14));
    am.on_deadline(ms(14), &mut log);
    let status = am.build_status(ms(14), Bytes::new(100)).unwrap();
    assert_eq!(status.size(), Bytes::new(2 + 4), "15 bits and 12");
    assert_eq!(am.build_status(ms(15), Bytes::new(100)), None, "nothing new");
    am.on_status(ms(18), status);
    assert_eq!(am.to_be_sent_again(), Bytes::new(1002));
    let mut grants = [300, 4, 300, 300, 300].map(Bytes::new).into_iter();
    let mut parts = Vec::new();
    while !am.to_be_sent_again().is_zero() {
        let grant = grants.next().unwrap();
        let Some(pdu) = am.build(ms(18), grant, &mut log) else { continue };
        assert!(pdu.size() <= grant && pdu.is_retransmission());
        parts.push(pdu);
    }
    assert_eq!(parts.len(), 4);
    // Out of order, and one of them twice.
    for part in [parts[3], parts[0], parts[0], parts[2], parts[1]] {
        assert!(log.delivered.is_empty());
        am.on_received(ms(21), part, &mut log);
    }
    assert_eq!(log.delivered_ids(), [0, 1, 2]);
    assert_eq!((am.counters().useless, am.counters().sent_again.number), (1, 4));
}

#[test]
fn missing_parts_are_reported_as_such() {
    let (mut am, mut log) = (Am::new(&config(), 1), Log::default());
    let pdus = one_each(&mut am, &mut log, 2);
    am.on_received(ms(4), pdus[1], &mut log);
    am.on_deadline(ms(14), &mut log);
    let status = am.build_status(ms(14), Bytes::new(100)).unwrap();
    am.on_status(ms(18), status);
    let first = am.build(ms(18), Bytes::new(500), &mut log).unwrap();
    let second = am.build(ms(19), Bytes::new(300), &mut log).unwrap();
    let third = am.build(ms(20), Bytes::new(2000), &mut log).unwrap();
    am.on_received(ms(21), first, &mut log);
    am.on_lost(second);
    am.on_received(ms(23), third, &mut log);
    // The last part polls: the report names the middle.
    let status = am.build_status(ms(24), Bytes::new(100)).unwrap();
    assert_eq!(status.size(), Bytes::new(2 + 8), "15 bits and 42");
    am.on_status(ms(28), status);
    assert_eq!(am.to_be_sent_again(), second.payload());
    let again = am.build(ms(28), Bytes::new(2000), &mut log).unwrap();
    assert_eq!(again.payload(), second.payload());
    am.on_received(ms(31), again, &mut log);
    assert_eq!(log.delivered_ids(), [0, 1]);
}

#[test]
fn many_small_packets_are_sent_again_one_by_one_if_need_be() {
    let config = Config { format: Format::Nr, ..config() };
    let (mut am, mut log) = (Am::new(&config, 1), Log::default());
    (0..20).for_each(|id| am.enqueue(ms(0), TestPacket { id, size: 0 }, &mut log));
    am.build(ms(0), Bytes::new(1000), &mut log).unwrap();
    am.on_deadline(ms(20), &mut log);
    for part in 0..20 {
        assert!(am.wanted() >= Bytes::new(10));
        let pdu = am.build(ms(20), Bytes::new(10), &mut log).unwrap();
        assert_eq!(pdu.payload(), Bytes::new(2));
        am.on_received(ms(23), pdu, &mut log);
        assert_eq!(log.delivered.len(), if part == 19 { 20 } else { 0 });
    }
}

#[test]
fn a_short_report_acknowledges_only_up_to_what_it_leaves_out() {
    let (mut am, mut log) = (Am::new(&config(), 1), Log::default());
    let pdus = one_each(&mut am, &mut log, 9);
    for n in [8, 1, 3, 5, 7] {
        am.on_received(ms(12), pdus[n], &mut log);
    }
    am.on_deadline(ms(22), &mut log);
    // Missing: 0, 2, 4, 6; there is room for two of them.
    assert_eq!(am.build_status(ms(22), Bytes::new(3)), None);
    let status = am.build_status(ms(22), Bytes::new(2 + 5)).unwrap();
    am.on_status(ms(26), status);
    assert_eq!(am.to_be_sent_again(), Bytes::new(2 * 1002));
}

#[test]
fn a_lost_end_is_found_by_polling_again() {
    let (mut am, mut log) = (Am::new(&config(), 1), Log::default());
    let pdus = one_each(&mut am, &mut log, 2);
    am.on_lost(pdus[0]);
    am.on_lost(pdus[1]);
    assert_eq!(am.next_deadline(), ms(1 + 20));
    am.on_deadline(ms(21), &mut log);
    assert_eq!(am.wanted(), Bytes::new(1002 + 16));
    let again = am.build(ms(21), Bytes::new(2000), &mut log).unwrap();
    am.on_received(ms(24), again, &mut log);
    am.on_deadline(ms(34), &mut log);
    let status = am.build_status(ms(34), Bytes::new(100)).unwrap();
    am.on_status(ms(38), status);
    let again = am.build(ms(38), Bytes::new(2000), &mut log).unwrap();
    am.on_received(ms(41), again, &mut log);
    assert_eq!(log.delivered_ids(), [0, 1]);
}

#[test]
fn reports_keep_their_distance() {
    let (mut am, mut log) = (Am::new(&config(), 1), Log::default());
    for id in 0..20 {
        am.enqueue(ms(id), TestPacket { id, size: 100 }, &mut log);
        let pdu = am.build(ms(id), Bytes::new(1000), &mut log).unwrap();
        am.on_received(ms(id), pdu, &mut log);
        // Every PDU polls; t-StatusProhibit is 10 ms.
        let due = am.build_status(ms(id), Bytes::new(100)).is_some();
        assert_eq!(due, id % 10 == 0, "{id}");
    }
    assert_eq!(am.status_due(), ms(20));
}

#[test]
fn the_window_stops_new_data_until_something_is_acknowledged() {
    let mut config = config();
    config.timers.window = 4;
    let (mut am, mut log) = (Am::new(&config, 1), Log::default());
    let pdus = one_each(&mut am, &mut log, 4);
    am.enqueue(ms(4), TestPacket { id: 4, size: 1000 }, &mut log);
    assert_eq!(am.build(ms(4), Bytes::new(2000), &mut log), None);
    assert!(am.wanted().is_zero() && !am.unsent().is_zero());
    am.on_received(ms(4), pdus[0], &mut log);
    let status = am.build_status(ms(4), Bytes::new(100)).unwrap();
    am.on_status(ms(8), status);
    assert!(am.build(ms(8), Bytes::new(2000), &mut log).is_some());
}

#[test]
fn a_bearer_fails_after_so_many_retransmissions_and_goes_on() {
    let timers = Timers { max_retransmissions: Some(5), ..Timers::NS3 };
    let mut cell = Cell::new(&Config { timers, ..config() }, 1);
    cell.offer(1000);
    for _ in 0..300 {
        cell.tti(2000, 1.0);
    }
    let counters = cell.channel.counters();
    assert_eq!((cell.log.failures, counters.failures), (1, 1));
    assert_eq!(counters.sent_again.number, 5);
    assert_eq!(cell.log.dropped_for(DropCause::MaxRetransmissions), [0]);
    assert_eq!(cell.channel.next_deadline(), Time::MAX);
    cell.offer(1000);
    cell.drain();
    assert_eq!(cell.log.delivered_ids(), [1]);
}

#[test]
fn with_the_timers_of_ns_3_nothing_is_given_up() {
    // Three seconds without reception, with two polls and as many retransmissions of the last PDU every 40 ms.
    for timers in [Timers::NS3, Timers::MMWAVE] {
        let mut cell = Cell::new(&Config { timers, ..config() }, 1);
        (0..20).for_each(|_| cell.offer(1000));
        for _ in 0..3_000 {
            cell.tti(2000, 1.0);
        }
        assert!(cell.channel.counters().sent_again.number > 100);
        cell.drain();
        assert_eq!((cell.log.failures, cell.log.dropped.len()), (0, 0));
        assert_eq!(cell.log.delivered_ids(), (0..20).collect::<Vec<_>>());
    }
}

#[test]
fn a_handover_loses_nothing_if_asked() {
    for keep in [true, false] {
        let (mut am, mut log) = (Am::new(&config(), 1), Log::default());
        let pdus = one_each(&mut am, &mut log, 3);
        am.enqueue(ms(3), TestPacket { id: 3, size: 1000 }, &mut log);
        let half = am.build(ms(3), Bytes::new(500), &mut log).unwrap();
        am.enqueue(ms(3), TestPacket { id: 4, size: 1000 }, &mut log);
        am.on_received(ms(4), pdus[0], &mut log);
        am.on_received(ms(5), pdus[2], &mut log);
        am.restart(ms(5), keep, &mut log);
        assert_eq!(am.next_deadline(), Time::MAX);
        am.on_received(ms(6), half, &mut log); // sent before the restart: useless
        assert_eq!(am.counters().useless, 1);
        while let Some(pdu) = am.build(ms(10), Bytes::new(700), &mut log) {
            assert!(pdu.size() >= Bytes::new(300));
            am.on_received(ms(13), pdu, &mut log);
        }
        let expected = if keep { vec![0, 1, 2, 3, 4] } else { vec![0, 4] };
        assert_eq!(log.delivered_ids(), expected);
        assert_eq!(log.dropped_for(DropCause::Reset).len(), if keep { 0 } else { 3 });
        assert!(am.waiting().is_zero());
    }
}

#[test]
fn slower_timers_make_longer_pauses() {
    let pause = |timers| {
        let mut cell = Cell::new(&Config { timers, ..config() }, 1);
        for tti in 0..200 {
            cell.offer(1000);
            cell.tti_with(1100, tti == 100, 0.0);
        }
        let log = &cell.log.delivered;
        log.windows(2).map(|pair| pair[1].0 - pair[0].0).max().unwrap()
    };
    let (ns3, standard) = (pause(Timers::NS3), pause(Timers::TS36331));
    assert!(ns3 >= Span::from_millis(16) && ns3 <= Span::from_millis(20), "{ns3}");
    assert!(standard >= Span::from_millis(41) && standard <= Span::from_millis(45), "{standard}");
}

#[test]
fn unacknowledged_pdus_are_claimed_until_a_block_would_hold_them() {
    // ns-3 `LteRlcAm::DoReportBufferStatus`: every 20 ms and with each packet; cleared by a block as large.
    for (report, claimed) in [(Span::from_millis(20), 1002), (Span::ZERO, 0)] {
        let poll_retransmit = Span::from_secs(9);
        let timers = Timers { unacknowledged_report: report, poll_retransmit, ..Timers::NS3 };
        let mut channel = Am::new(&Config { timers, ..config() }, 1);
        let mut log = Log::default();
        channel.enqueue(ms(0), TestPacket { id: 0, size: 1000 }, &mut log);
        let pdu = channel.build(ms(0), Bytes::new(2000), &mut log).unwrap();
        assert_eq!(channel.wanted(), Bytes::ZERO, "the report was made before it was sent");
        channel.on_deadline(ms(20), &mut log);
        assert_eq!(channel.wanted(), Bytes::new(claimed));
        assert_eq!(channel.build(ms(21), Bytes::new(500), &mut log), None, "a block for nothing");
        assert_eq!(channel.wanted(), Bytes::new(claimed), "which would not have held it");
        assert_eq!(channel.build(ms(22), Bytes::new(2000), &mut log), None);
        assert_eq!(channel.wanted(), Bytes::ZERO);
        channel.on_deadline(ms(40), &mut log);
        assert_eq!(channel.wanted(), Bytes::new(claimed), "told again");
        channel.on_received(ms(41), pdu, &mut log);
        let status = channel.build_status(ms(42), Bytes::new(100)).unwrap();
        channel.on_status(ms(43), status);
        channel.on_deadline(ms(60), &mut log);
        assert_eq!(channel.wanted(), Bytes::ZERO, "acknowledged");
        assert_eq!(channel.next_deadline(), Time::MAX);
    }
}

#[test]
fn without_a_report_the_last_pdu_is_sent_again_or_as_in_ns_3_all_of_them() {
    for (poll_sends_all, expected) in [(false, 1002), (true, 3 * 1002)] {
        let timers = Timers { poll_sends_all, ..Timers::NS3 };
        let (mut am, mut log) = (Am::new(&Config { timers, ..config() }, 1), Log::default());
        one_each(&mut am, &mut log, 3);
        am.on_deadline(ms(21), &mut log);
        assert_eq!(am.to_be_sent_again(), Bytes::ZERO, "t-PollRetransmit began with the last one");
        am.on_deadline(ms(22), &mut log);
        assert_eq!(am.to_be_sent_again(), Bytes::new(expected), "{poll_sends_all}");
    }
}
