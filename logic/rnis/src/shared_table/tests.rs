//! Tests of the table under concurrent reads and writes, and against sums computed afresh.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};

use ranpace_phy::{Cqi, LteBandwidth, TransportBlock};
use ranpace_units::{Bytes, Span};

use super::record::decode;
use super::*;
use crate::{CellInfo, Grant, LinkReport, SlotReport, Technology, UserReport};

fn words(size: Size) -> Vec<AtomicU64> {
    (0..size.words().unwrap()).map(|_| AtomicU64::new(0)).collect()
}

/// A user with this many PRBs downlink in a slot; its fields all follow from `stamp`.
fn row(user: u32, prbs: u16, stamp: u64) -> UserReport {
    let grant = Grant {
        mcs: (stamp % 29) as u8,
        prbs,
        symbols: 14,
        block: TransportBlock::from_bytes(u32::from(prbs) * 100),
        padding: Bytes::ZERO,
        process: 0,
        again: false,
    };
    let link = LinkReport {
        grant: (prbs > 0).then_some(grant),
        queue: Bytes::new(stamp),
        head_of_line: Span::from_micros(stamp),
        blocks: stamp,
        retransmissions: stamp,
        lost: 0,
        scheduled_bits: stamp,
        scheduled_prb_symbols: stamp,
    };
    UserReport {
        user,
        rnti: stamp as u16,
        cqi: Cqi::new((stamp % 16) as u8).unwrap(),
        cqi_time: Time::from_nanos(stamp),
        capacity: 1.0,
        link: Both { downlink: link, uplink: LinkReport { grant: None, ..link } },
    }
}

fn report<'a>(cell: &'a CellInfo, slot: u64, users: &'a [UserReport]) -> SlotReport<'a> {
    let prbs: u16 = users.iter().filter_map(|row| Some(row.link.downlink.grant?.prbs)).sum();
    SlotReport {
        cell,
        slot,
        time: Time::ZERO + Span::from_millis(slot),
        symbols: Both::of(|_| 14),
        used_prbs: Both { downlink: f32::from(prbs), uplink: 0.0 },
        active_users: Both::default(),
        users,
        bearers: &[],
        full: true,
    }
}

#[test]
fn the_latest_is_read_as_it_was_written() {
    let (size, cell) = (Size::one_cell(4), CellInfo::lte(0, LteBandwidth::Mhz5));
    let words = words(size);
    let mut writer = Writer::new(&words, size).unwrap();
    let table = SharedTable::open(&words).unwrap();
    assert_eq!((table.user(2), table.cell(0), table.user(4), table.cell(1)), (None, None, None, None));
    writer.on_report(&report(&cell, 7, &[row(2, 10, 1_234)]));
    let seen = table.user(2).unwrap();
    assert_eq!(seen.measured_at, Time::ZERO + Span::from_millis(7));
    let user = seen.value;
    assert_eq!((user.cell, user.rnti, user.handover, user.cqi), (0, 1_234, false, 2));
    assert_eq!((user.mcs.downlink, user.queue.uplink, user.blocks.downlink), (16, Bytes::new(1_234), 1_234));
    assert_eq!(user.head_of_line.downlink, Span::from_micros(1_234));
    assert_eq!(table.cell(0).unwrap().value.info, cell);
    assert_eq!(table.last_slot_at(), Time::ZERO + Span::from_millis(7));
    assert_eq!(table.user(1), None);
}

#[test]
fn a_cell_of_any_kind_comes_back_as_it_is() {
    let lte = CellInfo::lte(3, LteBandwidth::Mhz20);
    let nr = CellInfo {
        cell: u16::MAX,
        technology: Technology::Nr { qam256: true },
        prbs: 273,
        spacing_hz: 120_000,
        bandwidth_hz: u64::MAX,
        share: Both { downlink: 0.7, uplink: 0.3 },
        data_symbols: Both { downlink: 14, uplink: 13 },
        shared: true,
        by_symbols: true,
        usable: Both { downlink: 0.85, uplink: 1.0 },
        overhead: 18,
        layers: 4,
        harq_processes: Both { downlink: 16, uplink: 32 },
        ..lte
    };
    let mmwave = CellInfo { technology: Technology::Mmwave, fdd: false, ..nr };
    for info in [lte, nr, mmwave, CellInfo { technology: Technology::Nr { qam256: false }, ..nr }] {
        assert_eq!(decode(&encode(&info)), Some(info));
    }
    assert_eq!(decode(&[0; 9]), None);
    assert_eq!(decode(&[u64::MAX; 9]), None);
}

#[test]
fn means_and_the_largest_block_are_of_the_last_ttis() {
    let (size, cell) = (Size::one_cell(2), CellInfo::lte(0, LteBandwidth::Mhz5));
    let words = words(size);
    let mut writer = Writer::new(&words, size).unwrap();
    let table = SharedTable::open(&words).unwrap();
    // One user has all 25 PRBs in slot 0, then 5 in each even slot; the other 10 in each odd slot, and sleeps from slot 40 on.
    for slot in 0..48 {
        let prbs = if slot == 0 { 25 } else { 5 * u16::from(slot % 2 == 0) };
        let other = if slot < 40 { 10 * u16::from(slot % 2 == 1) } else { 0 };
        let rows = [row(0, prbs, 16), row(1, other, 16)];
        writer.on_report(&report(&cell, slot, if slot < 40 { &rows } else { &rows[..1] }));
        let seen = slot + 1;
        let hint = table.hint(0, Direction::Downlink, 16).unwrap();
        let expected: u64 =
            (slot.saturating_sub(15)..=slot).map(|s| if s == 0 { 25 } else { 5 * (1 - s % 2) }).sum();
        assert!((hint.granted - expected as f64 / seen.min(16) as f64).abs() < 1e-12, "{slot}: {hint:?}");
        assert_eq!(hint.most_granted, if slot < 16 { 25 } else { 5 }, "{slot}");
        assert_eq!(hint.tbs_bits, Some(if slot < 16 { 20_000 } else { 4_000 }), "{slot}");
    }
    let of_8 = |user| table.hint(user, Direction::Downlink, 8).unwrap();
    assert_eq!((of_8(0).granted, of_8(0).unused, of_8(0).active_users), (2.5, 22.5, 2));
    // A sleeping user has no block, but its hint is current.
    assert_eq!((of_8(1).granted, of_8(1).tbs_bits), (0.0, None));
    assert_eq!(of_8(1).measured_at, Time::ZERO + Span::from_millis(47));
    assert_eq!(table.user(1).unwrap().measured_at, Time::ZERO + Span::from_millis(39));
    let up = table.hint(0, Direction::Uplink, 8).unwrap();
    assert_eq!((up.granted, up.unused, up.active_users, up.tbs_bits), (0.0, 25.0, 0, None));
}

#[test]
fn each_grant_is_told_once_unless_it_is_older_than_the_history() {
    let (size, cell) = (Size { cells: 1, users: 2, history: 8 }, CellInfo::lte(0, LteBandwidth::Mhz5));
    let words = words(size);
    let mut writer = Writer::new(&words, size).unwrap();
    let table = SharedTable::open(&words).unwrap();
    let grants = |after: Option<u64>| {
        let mut told = Vec::new();
        let last = table.grants_after(1, Direction::Downlink, after, &mut |hint| {
            told.push((hint.measured_at.as_nanos() / 1_000_000, hint.granted, hint.tbs_bits.unwrap()));
        });
        (last, told)
    };
    assert_eq!(grants(None), (None, vec![]));
    // 3 PRBs in each slot that a 3 divides.
    for slot in 0..20 {
        writer.on_report(&report(&cell, slot, &[row(1, if slot % 3 == 0 { 3 } else { 0 }, 16)]));
    }
    let of = |slot: u64| (slot, 3.0, 2_400);
    assert_eq!(grants(None), (Some(19), vec![of(12), of(15), of(18)]), "of the history's 8");
    assert_eq!(grants(Some(15)), (Some(19), vec![of(18)]));
    assert_eq!(grants(Some(19)), (Some(19), vec![]));
    assert_eq!(grants(Some(u64::MAX)), (Some(19), vec![]));
    assert!(table.is_current());
    Writer::retire(&words);
    assert!(!table.is_current() && SharedTable::open(&words).is_err());
}

#[test]
fn what_happened_between_two_looks_follows_from_sums() {
    let (size, cell) = (Size::one_cell(1), CellInfo::lte(0, LteBandwidth::Mhz5));
    let words = words(size);
    let mut writer = Writer::new(&words, size).unwrap();
    let table = SharedTable::open(&words).unwrap();
    writer.on_report(&report(&cell, 0, &[row(0, 1, 1_000)]));
    let before = table.user(0).unwrap();
    assert_eq!(UserRecord::since(&before, &before, Direction::Downlink), None);
    writer.on_report(&report(&cell, 100, &[row(0, 1, 6_000)]));
    let now = table.user(0).unwrap();
    let elapsed = UserRecord::since(&now, &before, Direction::Uplink).unwrap();
    assert_eq!((elapsed.time, elapsed.bit_s), (Span::from_millis(100), 50_000.0));
    assert_eq!((elapsed.prb_symbols_s, elapsed.again), (50_000.0, 0.5));
    assert_eq!(UserRecord::since(&before, &now, Direction::Uplink), None, "backwards");
}

#[test]
fn a_handover_shows_and_who_left_is_gone() {
    let (size, cell) = (Size { cells: 2, users: 2, history: 8 }, CellInfo::lte(0, LteBandwidth::Mhz5));
    let words = words(size);
    let mut writer = Writer::new(&words, size).unwrap();
    let table = SharedTable::open(&words).unwrap();
    let event = |kind| Event { time: Time::ZERO, cell: 0, user: 1, kind };
    writer.on_event(&event(EventKind::Detached));
    assert_eq!(table.user(1), None, "never seen");
    writer.on_report(&report(&cell, 0, &[row(1, 4, 20)]));
    writer.on_event(&event(EventKind::Detached));
    assert_eq!(table.user(1), None);
    writer.on_event(&event(EventKind::HandoverBegun { to: 1 }));
    let seen = table.user(1).unwrap().value;
    assert!(seen.handover && seen.mcs.downlink == 20);
    assert!(table.hint(1, Direction::Downlink, 8).unwrap().handover);
    let other = CellInfo { cell: 1, ..cell };
    writer.on_report(&report(&other, 30, &[row(1, 0, 3)]));
    let seen = table.user(1).unwrap().value;
    assert_eq!(
        (seen.cell, seen.handover, seen.mcs.downlink),
        (1, false, 0),
        "another cell's MCS is forgotten"
    );
}

#[test]
fn what_is_no_board_is_refused() {
    let size = Size::one_cell(3);
    for (case, words, expected) in [
        ("nothing", Vec::new(), SharedTableError::NotATable { found: 0 }),
        ("zeros", words(size), SharedTableError::NotATable { found: 0 }),
    ] {
        assert_eq!(SharedTable::open(&words).unwrap_err(), expected, "{case}");
    }
    let all = words(size);
    Writer::new(&all, size).unwrap();
    let short = &all[..all.len() - 1];
    let expected = size.words().unwrap();
    assert_eq!(
        SharedTable::open(short).unwrap_err(),
        SharedTableError::TooShort { expected, found: expected - 1 }
    );
    assert!(matches!(Writer::new(short, size), Err(SharedTableError::TooShort { .. })));
    all[2].store(12, Ordering::Relaxed);
    assert!(matches!(SharedTable::open(&all), Err(SharedTableError::BadSize { .. })));
    all[2].store(u64::MAX, Ordering::Relaxed);
    assert!(matches!(SharedTable::open(&all), Err(SharedTableError::BadSize { .. })));
    assert_eq!(Size { cells: u32::MAX, users: 1, history: 8 }.words(), None);
}

#[test]
fn a_writer_that_begins_anew_says_so() {
    let size = Size::one_cell(1);
    let words = words(size);
    let cell = CellInfo::lte(0, LteBandwidth::Mhz5);
    Writer::new(&words, size).unwrap().on_report(&report(&cell, 1, &[row(0, 1, 1)]));
    let table = SharedTable::open(&words).unwrap();
    let generation = table.generation();
    Writer::new(&words, size).unwrap();
    assert_eq!((table.generation(), table.user(0)), (generation + 1, None));
}

#[test]
fn a_writer_that_died_stops_nobody() {
    let size = Size::one_cell(1);
    let words = words(size);
    let cell = CellInfo::lte(0, LteBandwidth::Mhz5);
    let mut writer = Writer::new(&words, size).unwrap();
    writer.on_report(&report(&cell, 1, &[row(0, 1, 1)]));
    let at = Layout { size }.user(0).unwrap();
    words[at].fetch_add(1, Ordering::Relaxed);
    let table = SharedTable::open(&words).unwrap();
    assert_eq!(table.user(0), None);
    // The next writer, or this one, repairs it.
    writer.on_report(&report(&cell, 2, &[row(0, 1, 1)]));
    assert!(table.user(0).is_some());
}

#[test]
fn nobody_reads_half_of_a_record() {
    let (size, cell) = (Size::one_cell(2), CellInfo::lte(0, LteBandwidth::Mhz5));
    let words = words(size);
    let mut writer = Writer::new(&words, size).unwrap();
    writer.on_report(&report(&cell, 1, &[row(0, 1, 1), row(1, 1, 1)]));
    let has_read = AtomicBool::new(false);
    let is_over = AtomicBool::new(false);
    let reads: u64 = std::thread::scope(|scope| {
        let read = || {
            let table = SharedTable::open(&words).unwrap();
            let (mut reads, mut latest) = (0_u64, 0);
            while !is_over.load(Acquire) {
                let Some(seen) = table.user(reads as u32 % 2) else { continue };
                let (user, stamp) = (seen.value, seen.value.scheduled_bits.downlink);
                // All with the same stamp.
                assert_eq!(user.scheduled_bits.uplink, stamp);
                assert_eq!(user.prb_symbols, user.scheduled_bits);
                assert_eq!(user.queue.map(Bytes::get), user.scheduled_bits);
                assert_eq!(
                    (u64::from(user.blocks.downlink), u64::from(user.retransmissions.uplink)),
                    (stamp, stamp)
                );
                assert_eq!(
                    (u64::from(user.rnti), u64::from(user.mcs.downlink)),
                    (stamp & 0xffff, stamp % 29)
                );
                assert_eq!(seen.measured_at, Time::ZERO + Span::from_millis(stamp));
                if reads.is_multiple_of(2) {
                    assert!(stamp >= latest, "never older than before");
                    latest = stamp;
                }
                // Values derived from a history that is being written mix slots, but are never absurd.
                if let Some(hint) = table.hint(0, Direction::Downlink, 16) {
                    assert!(
                        hint.granted <= 25.0
                            && hint.unused <= 25.0
                            && hint.tbs_bits.is_none_or(|bits| bits <= 20_000)
                    );
                }
                reads += 1;
                has_read.store(true, Release);
            }
            reads
        };
        let readers = [scope.spawn(read), scope.spawn(read)];
        for stamp in 2..60_000 {
            let prbs = 1 + (stamp % 12) as u16;
            writer.on_report(&report(&cell, stamp, &[row(0, prbs, stamp), row(1, prbs, stamp)]));
        }
        // On a busy machine no reader may have had its turn yet.
        while !has_read.load(Acquire) && !readers.iter().all(|reader| reader.is_finished()) {
            std::thread::yield_now();
        }
        is_over.store(true, Release);
        readers.into_iter().map(|reader| reader.join().unwrap()).sum()
    });
    assert!(reads > 0);
}
