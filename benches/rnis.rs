//! Radio information: a read of the latest record of a user, an update of 1,000 users, and what feeds cost the publishing side.
#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;
use std::sync::atomic::AtomicU64;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ranpace_phy::{Both, Cqi, Direction, LteBandwidth, TransportBlock};
use ranpace_rnis::etsi::{Ecgi, Plmn};
use ranpace_rnis::lines;
use ranpace_rnis::shared_table::{SharedTable, Size, Writer};
use ranpace_rnis::update::{Cell, Update};
use ranpace_rnis::wire::{Datagram, Decoder, Encoder, Record};
use ranpace_rnis::{Averaging, CellInfo, Grant, LinkReport, Publisher, SlotReport, UserReport};
use ranpace_units::{Bytes, Span, Time};

/// Slots that are made before, and played round and round.
const SLOTS: usize = 64;

/// Users who all have something both ways in every slot: more than any cell could serve, so the dearest there is.
fn rows(users: u32, slot: u64) -> Vec<UserReport> {
    let link = |user: u32| {
        let stamp = slot * 31 + u64::from(user);
        let grant = Grant {
            mcs: (stamp % 29) as u8,
            prbs: 1 + (stamp % 4) as u16,
            symbols: 14,
            block: TransportBlock::from_bytes(100 + (stamp % 900) as u32),
            padding: Bytes::ZERO,
            process: 0,
            again: false,
        };
        LinkReport {
            grant: Some(grant),
            queue: Bytes::new(stamp * 100),
            head_of_line: Span::from_micros(stamp),
            blocks: stamp,
            scheduled_bits: stamp * 8_000,
            scheduled_prb_symbols: stamp * 14,
            ..LinkReport::default()
        }
    };
    let row = |user: u32| UserReport {
        user,
        rnti: user as u16,
        cqi: Cqi::MAX,
        cqi_time: Time::ZERO,
        capacity: 4.0,
        link: Both { downlink: link(user), uplink: link(user) },
    };
    (0..users).map(row).collect()
}

fn report<'a>(cell: &'a CellInfo, slot: u64, users: &'a [UserReport]) -> SlotReport<'a> {
    SlotReport {
        cell,
        slot,
        time: Time::ZERO + Span::from_millis(slot),
        symbols: Both::of(|_| 14),
        used_prbs: Both::of(|_| 100.0),
        active_users: Both::default(),
        users,
        bearers: &[],
        full: true,
    }
}

fn table(c: &mut Criterion) {
    let cell = CellInfo::lte(0, LteBandwidth::Mhz20);
    let mut group = c.benchmark_group("table");
    for users in [50, 1_000] {
        let size = Size::one_cell(users);
        let words: Vec<AtomicU64> = (0..size.words().unwrap()).map(|_| AtomicU64::new(0)).collect();
        let mut writer = Writer::new(&words, size).unwrap();
        let slots: Vec<Vec<UserReport>> = (0..SLOTS as u64).map(|slot| rows(users, slot)).collect();
        let mut slot = 0;
        group.throughput(Throughput::Elements(users.into()));
        group.bench_with_input(BenchmarkId::new("update", users), &slots, |b, slots| {
            b.iter(|| {
                writer.on_report(&report(&cell, slot, &slots[slot as usize % SLOTS]));
                slot += 1;
            });
        });
        let table = SharedTable::open(&words).unwrap();
        let mut user = 0;
        group.throughput(Throughput::Elements(1));
        // Users in an order that no cache foresees.
        let mut next = || {
            user = (user * 5 + 3) % users;
            user
        };
        group.bench_function(BenchmarkId::new("latest", users), |b| b.iter(|| black_box(table.user(next()))));
        group.bench_function(BenchmarkId::new("hint", users), |b| {
            b.iter(|| black_box(table.hint(next(), Direction::Downlink, 8)));
        });
    }
    group.finish();
}

fn publisher(c: &mut Criterion) {
    let cell = CellInfo::lte(0, LteBandwidth::Mhz20);
    let mut group = c.benchmark_group("publisher");
    for users in [50, 1_000] {
        let slots: Vec<Vec<UserReport>> = (0..SLOTS as u64).map(|slot| rows(users, slot)).collect();
        for period in [1, 8] {
            let mut publisher = Publisher::new(Span::from_millis(period), Averaging::Smooth);
            let mut encoder = Encoder::new(true);
            let mut records = Vec::new();
            let mut slot = 0;
            group.throughput(Throughput::Elements(users.into()));
            group.bench_with_input(BenchmarkId::new(format!("{period} ms"), users), &slots, |b, slots| {
                b.iter(|| {
                    if publisher.on_report(&report(&cell, slot, &slots[slot as usize % SLOTS])) {
                        let report = publisher.report(0, &mut records).unwrap();
                        encoder.encode(&report, &records, &mut |datagram| {
                            black_box(datagram);
                        });
                        publisher.published(0);
                    }
                    slot += 1;
                });
            });
        }
    }
    group.finish();
}

/// Lines of JSON between a base station and the server: a slot in which each user has a grant both ways.
fn json_lines(c: &mut Criterion) {
    let mut group = c.benchmark_group("lines");
    let cell = CellInfo::lte(0, LteBandwidth::Mhz20);
    let plmn = Plmn { mcc: "001".to_owned(), mnc: "01".to_owned() };
    let described = Update::Cell(Cell { info: cell, ecgi: Ecgi { cell_id: "1".to_owned(), plmn } });
    for users in [10, 1_000] {
        let (writer, mut line, mut first) = (lines::Writer::default(), Vec::new(), Vec::new());
        let rows = rows(users, 1_000_000);
        writer.slot(&report(&cell, 1, &rows), &mut line);
        writer.update(&described, &mut first);
        let mut reader = lines::Reader::default();
        let mut clock = |_, _| Time::ZERO;
        reader.read(&first, &mut clock, &mut |_| {}).unwrap();
        group.throughput(Throughput::Elements(users.into()));
        group.bench_function(BenchmarkId::new("read", users), |b| {
            b.iter(|| {
                reader.read(black_box(&line), &mut clock, &mut |update| drop(black_box(update))).unwrap()
            });
        });
        group.bench_function(BenchmarkId::new("write", users), |b| {
            let mut into = Vec::new();
            b.iter(|| {
                into.clear();
                writer.slot(&report(&cell, 1, black_box(&rows)), &mut into);
            });
        });
    }
    group.finish();
}

fn wire(c: &mut Criterion) {
    let mut group = c.benchmark_group("wire");
    let cell = ranpace_rnis::wire::CellReport::default();
    let users: Vec<Record> = (0..50).map(|user| Record { user, cqi: 9, ..Record::default() }).collect();
    let mut datagram = Vec::new();
    Encoder::new(false).encode(&cell, &users, &mut |bytes| datagram = bytes.to_vec());
    group.throughput(Throughput::Elements(50));
    group.bench_function("parse 50", |b| {
        b.iter(|| {
            Datagram::parse(black_box(&datagram)).unwrap().records().map(|(record, _)| record.cqi).max()
        });
    });
    group.bench_function("take 50", |b| {
        let (mut decoder, mut encoder, mut time) = (Decoder::new(), Encoder::new(false), 0);
        b.iter(|| {
            time += 1;
            let cell = ranpace_rnis::wire::CellReport { time: Time::from_nanos(time), ..cell };
            encoder.encode(&cell, &users, &mut |bytes| {
                decoder.on_datagram(bytes).unwrap();
            });
        });
    });
    group.finish();
}

criterion_group!(benches, table, publisher, wire, json_lines);
criterion_main!(benches);
