//! Tests that messages are read as they were written, that losses are detected, and that no input crashes a reader.

use proptest::prelude::*;

use super::*;

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

fn report(ms: u64) -> CellReport {
    CellReport {
        cell: 7,
        slot: ms,
        time: at(ms),
        used: Both { downlink: 250, uplink: 3 },
        active_users: Both { downlink: 2, uplink: 4_000 },
        averaged: true,
    }
}

fn record(user: u16, granted: u16) -> Record {
    Record {
        user,
        cqi: 15,
        handover: false,
        mcs: Both { downlink: 28, uplink: 20 },
        granted: Both { downlink: granted, uplink: 7 },
        tbs_bits: Some(18_336),
        queue: Bytes::new(1_600),
        again: 26,
        most_granted: 0,
    }
}

/// The datagrams of a report.
fn written(encoder: &mut Encoder, report: &CellReport, users: &[Record]) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    encoder.encode(report, users, &mut |bytes| out.push(bytes.to_vec()));
    out
}

#[test]
fn the_bytes_are_those_of_the_tables() {
    let users = [Record { handover: true, tbs_bits: None, queue: Bytes::new(17), ..record(0x0102, 0x0304) }];
    let report = CellReport {
        cell: 0x0506,
        slot: 0xff_0a0b0c,
        time: Time::from_nanos(0x1112_1314_1516_1718),
        used: Both { downlink: 0xabc, uplink: 0xdef },
        active_users: Both { downlink: 5_000, uplink: 1 },
        averaged: false,
    };
    let datagrams = written(&mut Encoder::new(true), &report, &users);
    let header = [
        0x52, 0x15, 0x06, 0x05, 0x0c, 0x0b, 0x0a, 1, // full and first
        0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, //
        0xbc, 0xfa, 0xde, 0xff, 0x1f, 0x00, 0, 0,
    ];
    let record = [0x02, 0x01, 0x1f, 28, 20, 0x04, 0x03, 7, 0, 0, 0, 0, 2, 0, 0, 26, 0, 0, 0, 0];
    assert_eq!(datagrams, [[&header[..], &record].concat()]);
}

#[test]
fn only_what_changed_is_sent_between_full_reports() {
    let mut encoder = Encoder::new(true);
    let mut users: Vec<Record> = (0..10).map(|user| record(user, 0)).collect();
    let mut records = Vec::new();
    for ms in 0..102 {
        users[3].granted.downlink = ms as u16 / 20;
        let count = encoder.encode(&report(ms), &users, &mut |_| {});
        records.push(count);
    }
    let changes = |ms: usize| usize::from(ms.is_multiple_of(20));
    let expected: Vec<usize> = (0..102).map(|ms| if ms % 100 == 0 { 10 } else { changes(ms) }).collect();
    assert_eq!(records, expected);
    // A change below the resolution is none.
    users[0].queue = Bytes::new(1_593);
    assert_eq!(encoder.encode(&report(103), &users, &mut |_| {}), 0);
    // A user that leaves is reported once.
    users.remove(9);
    assert_eq!(encoder.encode(&report(104), &users, &mut |_| {}), 1);
    assert_eq!(encoder.encode(&report(105), &users, &mut |_| {}), 0);
}

#[test]
fn reports_of_many_users_are_split_below_the_mtu() {
    let users: Vec<Record> = (0..1_000).map(|user| record(user, user)).collect();
    let datagrams = written(&mut Encoder::new(true), &report(0), &users);
    assert_eq!(datagrams.len(), 14); // 72 in each
    assert!(datagrams.iter().all(|datagram| datagram.len() <= 1_472));
    let mut decoder = Decoder::new();
    for (index, datagram) in datagrams.iter().enumerate() {
        assert_eq!(Datagram::parse(datagram).unwrap().more, index < 13);
        assert_eq!(decoder.on_datagram(datagram), Ok(true));
    }
    assert_eq!(decoder.users(7).count(), 1_000);
    let tiny = written(&mut Encoder::new(true).with_datagrams_of(0), &report(0), &users[..3]);
    assert_eq!(tiny.iter().map(Vec::len).collect::<Vec<_>>(), [44, 44, 44]);
}

/// Test N-1: 50 users at 1 ms, all of whose records change, take at most 10 Mbit/s on the wire, and nothing is lost in 60 s.
#[test]
fn fifty_users_every_millisecond_take_less_than_10_mbit_per_s() {
    let (mut encoder, mut decoder) = (Encoder::new(true), Decoder::new());
    let mut bytes = 0;
    for ms in 0..60_000 {
        let users: Vec<Record> =
            (0..50).map(|user| record(user, ((ms + u64::from(user)) % 1_000) as u16)).collect();
        encoder.encode(&report(ms), &users, &mut |datagram| {
            bytes += datagram.len() + UDP_IP_BYTES;
            assert_eq!(decoder.on_datagram(datagram), Ok(true));
        });
        for record in &users {
            assert_eq!(decoder.user(7, record.user), Some(Timestamped::new(*record, at(ms))));
        }
    }
    let mbit_per_s = bytes as f64 * 8.0 / 60.0 / 1e6;
    assert!((8.4..8.5).contains(&mbit_per_s), "{mbit_per_s}");
    // At 8 ms: below 25 kbit/s a user.
    assert!(mbit_per_s / 8.0 / 50.0 * 1e3 < 25.0);
}

/// The feed between hosts: 8.4 Mbit/s leave 63 bytes of a datagram for its seal.
#[test]
fn short_records_carry_the_most_granted_and_leave_room_for_a_seal() {
    let (mut encoder, mut decoder) = (Encoder::short(true), Decoder::new());
    let mut bytes = 0;
    for ms in 0..200 {
        let users: Vec<Record> = (0..50)
            .map(|user| Record {
                most_granted: (ms % 100) as u16,
                ..record(user, ((ms + u64::from(user)) % 1_000) as u16)
            })
            .collect();
        encoder.encode(&report(ms), &users, &mut |datagram| {
            bytes += datagram.len() + UDP_IP_BYTES;
            assert_eq!((datagram[1] >> 4, decoder.on_datagram(datagram)), (SHORT_VERSION, Ok(true)));
        });
        for record in &users {
            assert_eq!(decoder.user(7, record.user), Some(Timestamped::new(*record, at(ms))));
        }
    }
    assert_eq!(bytes / 200, 952);
    // A full report on request, and then changes alone again.
    let users = [record(1, 5), record(2, 5)];
    let mut encoder = Encoder::short(true);
    let counts = [0, 1, 2, 3].map(|ms| {
        if ms == 2 {
            encoder.request_full();
        }
        encoder.encode(&report(ms), &users, &mut |_| {})
    });
    assert_eq!(counts, [2, 0, 2, 0]);
}

#[test]
fn what_was_missed_makes_the_known_age_until_it_is_confirmed() {
    let (mut encoder, mut decoder) = (Encoder::new(true), Decoder::new());
    let users = [record(1, 5), record(2, 6)];
    let mut send = |ms: u64, users: &[Record], is_lost: bool, decoder: &mut Decoder| {
        for datagram in written(&mut encoder, &report(ms), users) {
            if !is_lost {
                decoder.on_datagram(&datagram).unwrap();
            }
        }
    };
    send(0, &users, false, &mut decoder);
    send(1, &users, false, &mut decoder);
    // Nothing changed, and that is known.
    assert_eq!(decoder.user(7, 2), Some(Timestamped::new(users[1], at(1))));
    let other = [record(1, 9), record(2, 6)];
    send(2, &other, true, &mut decoder);
    let third = [record(1, 9), record(2, 8)];
    send(3, &third, false, &mut decoder);
    // User 1 may have changed by now; user 2 was just reported.
    assert_eq!(decoder.user(7, 1), Some(Timestamped::new(users[0], at(1))));
    assert_eq!(decoder.user(7, 2), Some(Timestamped::new(third[1], at(3))));
    for ms in 4..101 {
        send(ms, &third, false, &mut decoder);
    }
    // The full report.
    assert_eq!(decoder.user(7, 1), Some(Timestamped::new(third[0], at(100))));
    assert_eq!(decoder.cell(7).unwrap().value.slot, 100);
    assert_eq!(decoder.user(8, 1), None);
}

#[test]
fn a_sender_that_begins_anew_voids_what_was_known() {
    let mut decoder = Decoder::new();
    let mut old = Encoder::new(true);
    for ms in 0..5 {
        for datagram in written(&mut old, &report(ms), &[record(1, 5), record(2, 5)]) {
            decoder.on_datagram(&datagram).unwrap();
        }
    }
    let overtaken = written(&mut old, &report(5), &[record(1, 6), record(2, 5)]);
    let mut new = Encoder::new(true).with_datagrams_of(0);
    for datagram in written(&mut new, &report(10), &[record(4, 1), record(5, 1)]) {
        assert_eq!(decoder.on_datagram(&datagram), Ok(true));
    }
    assert_eq!(decoder.users(7).collect::<Vec<_>>(), [4, 5]);
    assert_eq!(decoder.on_datagram(&overtaken[0]), Ok(false));
    assert_eq!(decoder.users(7).count(), 2);
    // Also if its clock restarted.
    let datagrams = written(&mut Encoder::new(true), &report(1), &[record(6, 1)]);
    assert_eq!(decoder.on_datagram(&datagrams[0]), Ok(true));
    assert_eq!(decoder.user(7, 6), Some(Timestamped::new(record(6, 1), at(1))));
    assert_eq!(decoder.users(7).count(), 1);
}

#[test]
fn what_is_not_ours_is_refused() {
    let good = written(&mut Encoder::new(true), &report(0), &[record(1, 1)]).remove(0);
    let changed = |at: usize, to: u8| {
        let mut bytes = good.clone();
        bytes[at] = to;
        bytes
    };
    for (case, bytes, expected) in [
        ("nothing", Vec::new(), WireError::Short { found: 0 }),
        ("half a header", good[..23].to_vec(), WireError::Short { found: 23 }),
        ("another magic", changed(0, 0), WireError::NotOurs { found: 0 }),
        ("another version", changed(1, 0x35), WireError::Version { found: 3 }),
        ("half a record", good[..34].to_vec(), WireError::Length { records: 1, expected: 44, found: 34 }),
        ("too many", changed(7, 2), WireError::Length { records: 2, expected: 64, found: 44 }),
        ("too few", changed(7, 0), WireError::Length { records: 0, expected: 24, found: 44 }),
    ] {
        assert_eq!(Datagram::parse(&bytes), Err(expected), "{case}");
        assert_eq!(Decoder::new().on_datagram(&bytes), Err(expected), "{case}");
    }
}

#[test]
fn a_decoder_keeps_so_many_cells() {
    let mut decoder = Decoder::new();
    for cell in 0..MOST_CELLS as u16 + 3 {
        let datagram = written(&mut Encoder::new(true), &CellReport { cell, ..report(0) }, &[]).remove(0);
        assert_eq!(decoder.on_datagram(&datagram), Ok(usize::from(cell) < MOST_CELLS));
    }
}

fn any_record() -> impl Strategy<Value = Record> {
    let mcs = (any::<u8>(), any::<u8>());
    let granted = (any::<u16>(), any::<u16>());
    let tbs = proptest::option::of(0..=MOST_U24);
    (any::<u16>(), 0..16u8, any::<bool>(), mcs, granted, tbs, any::<u64>(), any::<u8>()).prop_map(
        |(user, cqi, handover, mcs, granted, tbs_bits, queue, again)| Record {
            user,
            cqi,
            handover,
            mcs: Both { downlink: mcs.0, uplink: mcs.1 },
            granted: Both { downlink: granted.0, uplink: granted.1 },
            tbs_bits,
            queue: Bytes::new(queue),
            again,
            most_granted: 0,
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read(records in proptest::collection::vec(any_record(), 0..200), bytes in 0..2_000usize) {
        let mut unique: BTreeMap<u16, Record> = BTreeMap::new();
        unique.extend(records.iter().map(|record| (record.user, *record)));
        let users: Vec<Record> = unique.into_values().collect();
        let mut decoder = Decoder::new();
        let mut encoder = Encoder::new(true).with_datagrams_of(bytes);
        for datagram in written(&mut encoder, &report(3), &users) {
            decoder.on_datagram(&datagram).unwrap();
        }
        let read: Vec<Record> = users.iter().filter_map(|user| Some(decoder.user(7, user.user)?.value)).collect();
        let rounded: Vec<Record> = users.iter().map(|user| user.rounded()).collect();
        prop_assert_eq!(&read, &rounded);
        for (read, sent) in read.iter().zip(&users) {
            // Rounded up by less than a step, unless it exceeds the range.
            let most = 16 * u64::from(MOST_U24);
            prop_assert!(read.queue.get() >= sent.queue.get().min(most) && read.queue.get() < sent.queue.get().saturating_add(16));
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(datagrams in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 0..20)) {
        let mut decoder = Decoder::new();
        for mut datagram in datagrams {
            decoder.on_datagram(&datagram).ok();
            // The same, made to look like ours.
            if let Some(count) = datagram.len().checked_sub(HEADER_BYTES).map(|rest| rest / RECORD_BYTES) {
                datagram.truncate(HEADER_BYTES + count * RECORD_BYTES);
                (datagram[0], datagram[7]) = (MAGIC, count as u8);
                datagram[1] = VERSION << 4 | datagram[1] & 15;
                prop_assert!(decoder.on_datagram(&datagram).is_ok());
            }
        }
        for cell in 0..u16::MAX {
            if let Some(report) = decoder.cell(cell) {
                for user in decoder.users(cell) {
                    let known = decoder.user(cell, user).unwrap();
                    prop_assert!(known.measured_at <= report.measured_at);
                }
            }
        }
    }
}

/// A subscription whose users change shares the encoder of others from then on, in the middle of its numbers.
#[test]
fn a_reader_that_is_moved_to_another_encoder_goes_on_with_its_next_full_report() {
    for (before, joined) in [(500_u16, 3), (3, 500), (3, 3)] {
        let (mut first, mut second) = (Encoder::short(true), Encoder::short(true));
        let mut decoder = Decoder::new();
        for ms in 0..u64::from(before) {
            let datagrams = written(&mut first, &report(ms), &[record(1, ms as u16)]);
            assert!(datagrams.iter().all(|datagram| decoder.on_datagram(datagram) == Ok(true)));
        }
        for ms in 0..u64::from(joined) {
            written(&mut second, &report(ms), &[record(1, 0), record(2, 0)]);
        }
        second.request_full();
        // The report that it joins with is lost; the one after it has only changes, and may look like one from before.
        for (ms, users) in [(600, 2), (601, 1), (701, 2), (702, 1)] {
            let users: Vec<Record> = (1..=users).map(|user| record(user, ms as u16)).collect();
            let datagrams = written(&mut second, &report(ms), &users);
            let taken = (ms > 600).then(|| decoder.on_datagram(&datagrams[0]).unwrap());
            assert!(ms < 700 || taken == Some(true), "{before} and {joined}, {ms} ms");
            assert!(ms != 601 || taken == Some(before <= joined), "{before} and {joined}");
        }
        assert_eq!(decoder.user(7, 1), Some(Timestamped::new(record(1, 702), at(702))));
    }
}
