#![allow(clippy::unwrap_used)] // a test may

use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use ranpace_phy::{Both, Cqi, Direction, LteBandwidth, TransportBlock};
use ranpace_units::{Bytes, Span, Time};

use super::*;
use crate::identity::{AssociateId, Ecgi, IdType, Plmn};
use crate::update::{Bearer, BearerRates, Cell, Signal, Slot, Strength, Update, User};
use crate::{BearerReport, CellInfo, Event, EventKind, Grant, LinkReport, Technology, UserReport};

fn ecgi(number: u16) -> Ecgi {
    let plmn = Plmn { mcc: "001".to_owned(), mnc: "01".to_owned() };
    Ecgi { cell_id: format!("{number:07x}"), plmn }
}

fn cell(number: u16) -> Cell {
    Cell { info: CellInfo::lte(number, LteBandwidth::Mhz10), ecgi: ecgi(number) }
}

/// Reads lines, each of which must be used.
fn read_with(reader: &mut Reader, lines: &str) -> Vec<Update> {
    let mut updates = Vec::new();
    for line in lines.lines() {
        let mut clock = |_, ns: Option<u64>| Time::from_nanos(ns.unwrap_or(7));
        let read = reader.read(line.as_bytes(), &mut clock, &mut |update| updates.push(update));
        assert_eq!(read, Ok(()), "{line}");
    }
    updates
}

fn read(lines: &str) -> Vec<Update> {
    read_with(&mut Reader::default(), lines)
}

fn written(updates: &[Update]) -> String {
    let (writer, mut bytes) = (Writer::new(0), Vec::new());
    writer.stream(LineClock::Run, &mut bytes);
    updates.iter().for_each(|update| writer.update(update, &mut bytes));
    String::from_utf8(bytes).unwrap()
}

/// The reason why the last of these lines, after those before, is not used.
fn refused(lines: &str) -> String {
    let (before, last) = lines.trim_end().rsplit_once('\n').unwrap_or(("", lines));
    let mut reader = Reader::default();
    read_with(&mut reader, before);
    let mut updates = Vec::new();
    let mut clock = |_, ns: Option<u64>| Time::from_nanos(ns.unwrap_or(7));
    let read = reader.read(last.as_bytes(), &mut clock, &mut |update| updates.push(update));
    assert_eq!(updates, [], "{last}");
    read.expect_err(last).to_string()
}

const CELL: &str = r#"{"cell":{"cell":0,"ecgi":{"cellId":"0000001","plmn":{"mcc":"001","mnc":"01"}},"technology":"lte","prbs":50}}
"#;

#[test]
fn what_is_left_out_has_the_documented_value() {
    let text = format!(
        r#"{CELL}{{"slot":{{"cell":0,"slot":4,"users":[{{"user":2,"cqi":7,"downlink":{{"queue":900,"grant":{{"mcs":9,"prbs":25,"tbs_bits":4008}}}}}}]}}}}"#
    );
    let updates = read(&text);
    let info = CellInfo::lte(0, LteBandwidth::Mhz10);
    assert_eq!(updates[0], Update::Cell(Cell { info, ecgi: ecgi(1) }));
    assert_eq!(updates[1], Update::User(User { user: 2, name: String::new(), ids: Vec::new() }));
    let Update::Slot(slot) = &updates[2] else { panic!("{updates:?}") };
    assert_eq!((slot.slot, slot.time, slot.full), (4, Time::from_nanos(7), false));
    assert_eq!(slot.symbols, Both { downlink: 14, uplink: 14 });
    assert_eq!(slot.used_prbs, Both { downlink: 25.0, uplink: 0.0 });
    assert_eq!(slot.active_users, Both { downlink: 1, uplink: 0 });
    let row = slot.users[0];
    // TS 36.213, table 7.2.3-1: CQI 7 is 1.4766 bit/s/Hz.
    assert!((row.capacity - 1.4766).abs() < 1e-3, "{row:?}");
    let link = row.link.downlink;
    assert_eq!((link.blocks, link.scheduled_bits, link.scheduled_prb_symbols), (1, 4_008, 25 * 14));
    // Time of day is the default.
    assert_eq!(LineClock::default(), LineClock::Day);
}

#[test]
fn rows_without_counters_are_counted() {
    let slot =
        |number, row: &str| format!("{{\"slot\":{{\"cell\":0,\"slot\":{number},\"users\":[{row}]}}}}\n");
    let text = CELL.to_owned()
        + &slot(0, "[1,0,5,0,1.5,[10,0,[3,4,800]]]")
        + &slot(1, "[1,0,5,0,1.5,[10,0,[3,4,800,14,0,true]]]")
        + &slot(2, "[1,0,5,0,1.5,[10,0,[3,4,1600]]]")
        // This one has its own.
        + &slot(3, "[1,0,5,0,1.5,[10,0,null,70,60,50,40,30],[0,0,null,1,2,3,4,5]]");
    let updates = read(&text);
    let links: Vec<LinkReport> = (updates.iter())
        .filter_map(|update| match update {
            Update::Slot(slot) => Some(slot.users[0].link.downlink),
            _ => None,
        })
        .collect();
    let of = |link: &LinkReport| {
        (link.blocks, link.retransmissions, link.lost, link.scheduled_bits, link.scheduled_prb_symbols)
    };
    assert_eq!(of(&links[0]), (1, 0, 0, 800, 56));
    assert_eq!(of(&links[1]), (1, 1, 0, 800, 112));
    assert_eq!(of(&links[2]), (2, 1, 0, 2_400, 168));
    assert_eq!(of(&links[3]), (70, 60, 50, 40, 30));
}

#[test]
fn slot_numbers_increase_even_if_the_base_station_begins_anew() {
    let mut reader = Reader::default();
    let mut numbers = Vec::new();
    for text in ["5", "6", "9", "2", "3", "900000000000000", "900000000000001", "0"] {
        let line = format!("{{\"slot\":{{\"cell\":0,\"slot\":{text}}}}}");
        let updates = read_with(&mut reader, &(CELL.to_owned() + &line));
        let Some(Update::Slot(slot)) = updates.last() else { panic!("{updates:?}") };
        numbers.push(slot.slot);
    }
    assert_eq!(numbers, [5, 6, 9, 10, 11, 12, 13, 14]);
    // So it is in the next stream.
    let next = "{\"stream\":{\"version\":1}}\n".to_owned() + CELL + "{\"slot\":{\"cell\":0,\"slot\":0}}";
    let updates = read_with(&mut reader, &next);
    assert!(matches!(&updates[..], [Update::Cell(_), Update::Slot(slot)] if slot.slot == 15), "{updates:?}");
}

#[test]
fn unknown_members_and_unknown_lines_are_ignored() {
    let text = CELL.replace("\"prbs\"", "\"colour\":{\"a\":[1]},\"prbs\"")
        + "{\"weather\":{\"rain\":true}}\n\n  \r\n"
        + "{\"user\":{\"user\":1,\"name\":\"phone\",\"age\":3},\"also\":1}\r\n"
        + "{\"missed\":{\"lines\":3}}\n";
    let mut reader = Reader::default();
    let updates = read_with(&mut reader, &text);
    assert_eq!(updates.len(), 2, "{updates:?}");
    assert_eq!(reader.missed(), 3);
}

#[test]
fn what_is_wrong_is_said_with_what_was_expected() {
    let slot = |inner: &str| format!("{CELL}{{\"slot\":{{\"cell\":0,\"slot\":0,{inner}}}}}");
    let row = |row: &str| slot(&format!("\"users\":[{row}]"));
    for (line, parts) in [
        (slot("\"users\":3"), &["expected a sequence"][..]),
        (row("[]"), &["invalid length 0", "RowLine"]),
        (row("{\"cqi\":3}"), &["missing field `user`"]),
        (row("[1],[1]"), &["user 1 has two rows"]),
        (row("[65536]"), &["user is 65536", "at most 65535"]),
        (row("[-1]"), &["-1", "u32"]),
        (row("[1,0,16]"), &["cqi is 16", "0 to 15"]),
        (row("[1,0,3,0,-1]"), &["capacity is -1", "a number from 0"]),
        (row("[1,0,3,0,1e999]"), &["number out of range"]),
        (row("[1,0,3,0,NaN]"), &["expected value"]),
        (row("[1,0,3,0,1,[0,0,[32,1,8]]]"), &["mcs is 32", "at most 31"]),
        (row("[1,0,3,0,1,[0,0,[3,51,8]]]"), &["prbs is 51", "at most 50"]),
        (row("[1,0,3,0,1,[0,0,[3,5,9]]]"), &["tbs_bits is 9", "a multiple of 8"]),
        (row("[1,0,3,0,1,[0,0,[3,5,8,15]]]"), &["symbols is 15", "at most 14"]),
        (row("[1,0,3,0,1,[18446744073709551615]]"), &["queue is 18446744073709551615"]),
        (row("[1,0,3,0,1,[18446744073709551616]]"), &["invalid type"]),
        (slot("\"used_prbs\":[52,0]"), &["used_prbs is 52", "from 0 to 51"]),
        (slot("\"symbols\":[15,0]"), &["symbols is 15"]),
        ("{\"slot\":{\"cell\":4,\"slot\":0}}".to_owned(), &["cell 4 is not described", "expected a line"]),
        (CELL.replace("\"cell\":0", "\"cell\":1024"), &["cell is 1024", "at most 1023"]),
        (CELL.replace("\"prbs\":50", "\"prbs\":0"), &["prbs is 0", "1 to 3300"]),
        (CELL.replace("lte", "wimax"), &["unknown variant `wimax`", "`lte`"]),
        (CELL.replace("\"001\"", "\"1\""), &["ecgi.plmn", "three digits"]),
        (CELL.replace("0000001", ""), &["ecgi.cellId", "1 to 16"]),
        ("{\"stream\":{\"version\":2}}".to_owned(), &["version 2", "expected 1"]),
        ("{\"stream\":{\"version\":1,\"clock\":\"sun\"}}".to_owned(), &["clock", "\"monotonic\""]),
        (
            "{\"user\":{\"user\":1,\"ids\":[{\"type\":1,\"value\":\"10.0.0.256\"}]}}".to_owned(),
            &["identifier of type 1"],
        ),
        ("{}".to_owned(), &["an empty object"]),
        ("[]".to_owned(), &["an object such as"]),
        ("{\"slot\":".to_owned(), &["EOF"]),
        ("hello".to_owned(), &["expected"]),
        (
            format!("{CELL}{{\"event\":{{\"cell\":0,\"user\":1,\"kind\":\"bearer_set_up\"}}}}"),
            &["missing field `bearer`"],
        ),
        (
            format!("{CELL}{{\"event\":{{\"cell\":0,\"user\":1,\"kind\":\"handover_begun\",\"to\":1}}}}"),
            &["cell 1 is not described"],
        ),
        (
            format!("{CELL}{{\"signal\":{{\"cell\":0,\"user\":1,\"rsrp_dbm\":-80}}}}"),
            &["missing field `rsrq_db`"],
        ),
        (
            format!("{CELL}{{\"signal\":{{\"cell\":0,\"user\":1,\"rsrp_dbm\":-800,\"rsrq_db\":-3}}}}"),
            &["rsrp_dbm is -800"],
        ),
        (
            format!("{CELL}{{\"bearer\":{{\"cell\":0,\"user\":1,\"bearer\":0,\"qci\":0}}}}"),
            &["qci is 0", "1 to 254"],
        ),
        (
            format!("{CELL}{{\"timing_advance\":{{\"cell\":0,\"user\":1}}}}"),
            &["missing field `round_trip_ns`"],
        ),
    ] {
        let why = refused(&line);
        assert!(parts.iter().all(|part| why.contains(part)), "{line}\n{why}\n{parts:?}");
    }
    let long = "x".repeat(LONGEST + 1);
    assert!(refused(&long).contains("expected at most 1048576"));
    let deep = "[".repeat(100_000);
    assert!(refused(&deep).contains("object"));
    assert!(refused(&format!("{{\"other\":{deep}")).contains("EOF"));
}

#[test]
fn a_thousand_users_fit_into_a_line_and_are_compact() {
    let row = |user: u32| {
        let grant = Grant {
            mcs: 27,
            prbs: 50,
            symbols: 14,
            block: TransportBlock::from_bytes(4_587),
            padding: Bytes::ZERO,
            process: 7,
            again: false,
        };
        let link = LinkReport {
            grant: Some(grant),
            queue: Bytes::new(3_000_000),
            head_of_line: Span::from_millis(250),
            blocks: 1_000_000,
            retransmissions: 100_000,
            lost: 1_000,
            scheduled_bits: 36_696_000_000,
            scheduled_prb_symbols: 700_000_000,
        };
        let link = Both { downlink: link, uplink: link };
        UserReport { user, rnti: 4_660, cqi: Cqi::MAX, cqi_time: Time::ZERO, capacity: 5.5547, link }
    };
    let info = CellInfo::lte(0, LteBandwidth::Mhz10);
    let slot = Slot {
        cell: info,
        slot: 123_456,
        time: Time::from_secs(123),
        symbols: Both::of(|_| 14),
        used_prbs: Both::of(|_| 50.0),
        active_users: Both::of(|_| 1_000),
        users: (0..1_000).map(row).collect(),
        bearers: Vec::new(),
        full: true,
    };
    let mut line = Vec::new();
    Writer::new(1_800_000_000_000_000_000).update(&Update::Slot(slot), &mut line);
    assert!(line.len() < 220_000, "{} bytes", line.len());
}

fn grant() -> impl Strategy<Value = Grant> + Clone {
    ((0..=31_u8, 0..=50_u16, 0..=14_u8), (1..100_000_u32, 0..1_000_u32, any::<u8>(), any::<bool>())).prop_map(
        |((mcs, prbs, symbols), (bytes, padding, process, again))| Grant {
            mcs,
            prbs,
            symbols,
            block: TransportBlock::from_bytes(bytes + padding),
            padding: Bytes::new(padding.into()),
            process,
            again,
        },
    )
}

fn link() -> impl Strategy<Value = LinkReport> + Clone {
    (option::of(grant()), 0..1_u64 << 40, any::<u64>(), vec(0..1_u64 << 56, 5)).prop_map(
        |(grant, queue, head_of_line, counters)| LinkReport {
            grant,
            queue: Bytes::new(queue),
            head_of_line: Span::from_nanos(head_of_line),
            blocks: counters[0],
            retransmissions: counters[1],
            lost: counters[2],
            scheduled_bits: counters[3],
            scheduled_prb_symbols: counters[4],
        },
    )
}

fn slot() -> impl Strategy<Value = Slot> {
    let row = (any::<u16>(), 0..=15_u8, 0..1_000_000_000_u64, 0.0..30.0_f32, link(), link());
    let rows = btree_set(0..USERS, 0..5).prop_flat_map(move |users| {
        let count = users.len();
        (Just(users), vec(row.clone(), count))
    });
    let bearer = (any::<u8>(), any::<bool>(), 0..1_u64 << 40, any::<u64>(), option::of(0..1_u64 << 40));
    let times = (0..1_u64 << 31, 1_000_000_000..1_u64 << 62);
    (rows, bearer, times, (0..=14_u8, 0.0..50.0_f32, any::<u16>(), any::<bool>())).prop_map(
        |(
            (users, rows),
            (number, is_down, queue, delay, buffer),
            (slot, time),
            (symbols, used, active, full),
        )| {
            let rows =
                users.into_iter().zip(rows).map(|(user, (rnti, cqi, age, capacity, downlink, uplink))| {
                    UserReport {
                        user,
                        rnti,
                        cqi: Cqi::new(cqi).unwrap(),
                        cqi_time: Time::from_nanos(time - age),
                        capacity,
                        link: Both { downlink, uplink },
                    }
                });
            let users: Vec<UserReport> = rows.collect();
            let bearers = users.iter().map(|row| BearerReport {
                user: row.user,
                bearer: number,
                direction: if is_down { Direction::Downlink } else { Direction::Uplink },
                queue: Bytes::new(queue),
                head_of_line: Span::from_nanos(delay),
                buffer: buffer.map(Bytes::new),
            });
            Slot {
                cell: cell(3).info,
                slot,
                time: Time::from_nanos(time),
                symbols: Both { downlink: symbols, uplink: 14 },
                used_prbs: Both { downlink: used, uplink: 0.5 },
                active_users: Both { downlink: active, uplink: 1 },
                bearers: bearers.collect(),
                users,
                full,
            }
        },
    )
}

fn rare() -> impl Strategy<Value = Update> {
    let kinds = (any::<u8>(), any::<bool>()).prop_flat_map(|(bearer, is_up)| {
        let direction = if is_up { Direction::Uplink } else { Direction::Downlink };
        prop_oneof![
            Just(EventKind::Attached),
            Just(EventKind::Detached),
            Just(EventKind::BearerSetUp { bearer }),
            Just(EventKind::BearerFailed { bearer, direction }),
            Just(EventKind::HandoverBegun { to: 4 }),
            Just(EventKind::HandoverCompleted { from: 4 }),
        ]
    });
    let event = (any::<u64>(), kinds).prop_map(|(time, kind)| {
        Update::Event(Event { time: Time::from_nanos(time), cell: 3, user: 9, kind })
    });
    let rates = option::of(vec(0..1_u64 << 56, 4));
    let bearer = (any::<u64>(), 1..=254_u8, rates, any::<bool>()).prop_map(|(time, qci, rates, present)| {
        let rates = rates.map(|rates| BearerRates {
            guaranteed: Both { downlink: rates[0], uplink: rates[1] },
            maximum: Both { downlink: rates[2], uplink: rates[3] },
        });
        Update::Bearer(Bearer {
            user: 9,
            cell: 3,
            bearer: 1,
            time: Time::from_nanos(time),
            qci,
            rates,
            present,
        })
    });
    // Steps that JSON's decimals keep exactly: the last bit of other numbers may change when they are read.
    let step = |range: core::ops::Range<i32>| range.prop_map(|step| f64::from(step) / 64.0);
    let strength = (step(-9_600..-2_560), step(-1_920..0), option::of(step(-1_920..3_200)))
        .prop_map(|(rsrp_dbm, rsrq_db, sinr_db)| Strength { rsrp_dbm, rsrq_db, sinr_db });
    let signal = (any::<u64>(), vec(strength, 1..4)).prop_map(|(time, strengths)| {
        let serving = strengths[0];
        let neighbours = strengths.into_iter().skip(1).map(|strength| (ecgi(5), strength)).collect();
        Update::Signal(Signal { user: 9, cell: 3, time: Time::from_nanos(time), serving, neighbours })
    });
    let advance = (any::<u64>(), 0..1_000_000_000_u64).prop_map(|(time, trip)| Update::TimingAdvance {
        user: 9,
        cell: 3,
        time: Time::from_nanos(time),
        round_trip: Span::from_nanos(trip),
    });
    let notification = (0..3_u8).prop_map(|which| {
        let user = r#""associateId":[{"type":1,"value":"10.77.0.2"}]"#;
        let cell = r#"{"cellId":"0000003","plmn":{"mcc":"001","mnc":"01"}}"#;
        let text = match which {
            0 => format!(r#"{{"notificationType":"CaReconfNotification",{user},"ecgi":{cell},"secondaryCellAdd":[{{"ecgi":{cell}}}]}}"#),
            1 => format!(
                r#"{{"notificationType":"S1BearerNotification","s1Event":1,"s1UeInfo":{{{user},"ecgi":[{cell}],"s1BearerInfo":[{{"erabId":5}}]}}}}"#
            ),
            _ => format!(
                r#"{{"notificationType":"CellChangeNotification",{user},"hoStatus":1,"srcEcgi":{cell},"trgEcgi":[{cell}]}}"#
            ),
        };
        Update::Notification(serde_json::from_str(&text).unwrap())
    });
    prop_oneof![event, bearer, signal, advance, notification]
}

proptest! {
    /// What is written is read as it was.
    #[test]
    fn what_is_written_is_read_as_it_was(slot in slot(), rare in vec(rare(), 0..4), name in "[a-zé\"\\\\ ]{0,20}") {
        let mut updates = vec![Update::Cell(cell(3)), Update::Cell(cell(4))];
        let ids = vec![AssociateId { id_type: IdType::UeIpv4, value: "10.77.0.2".to_owned() }];
        let mut numbers: Vec<u32> = slot.users.iter().map(|row| row.user).collect();
        numbers.push(9);
        numbers.sort_unstable();
        numbers.dedup();
        updates.extend(numbers.iter().map(|user| {
            Update::User(User { user: *user, name: name.clone(), ids: ids.clone() })
        }));
        updates.push(Update::Slot(slot));
        updates.extend(rare);
        prop_assert_eq!(read(&written(&updates)), updates);
    }

    /// Any bytes are used or refused, and leave the reader usable.
    #[test]
    fn any_line_is_used_or_refused(lines in vec(vec(any::<u8>(), 0..60), 0..8), cut in any::<usize>(), slot in slot()) {
        let mut reader = Reader::default();
        let mut clock = |_, _: Option<u64>| Time::ZERO;
        for line in lines {
            let _ = reader.read(&line, &mut clock, &mut |_| {});
        }
        let good = written(&[Update::Cell(cell(3)), Update::Slot(slot)]);
        let cut = cut % good.len();
        for line in good.as_bytes()[..cut].split(|byte| *byte == b'\n') {
            let _ = reader.read(line, &mut clock, &mut |_| {});
        }
        let last = |reader: &mut Reader| {
            read_with(reader, &good).into_iter().filter(|update| matches!(update, Update::Slot(_))).count()
        };
        prop_assert_eq!(last(&mut reader), 1);
    }
}

#[test]
fn every_technology_is_read_as_it_was_written() {
    for technology in [
        Technology::Lte,
        Technology::Nr { qam256: false },
        Technology::Nr { qam256: true },
        Technology::Mmwave,
    ] {
        let info = CellInfo {
            technology,
            prbs: 273,
            spacing_hz: 30_000,
            bandwidth_hz: 100_000_000,
            slot: Span::from_micros(500),
            fdd: false,
            share: Both { downlink: 0.7, uplink: 0.2 },
            data_symbols: Both { downlink: 12, uplink: 13 },
            overhead: 6,
            layers: 4,
            harq_processes: Both { downlink: 16, uplink: 16 },
            ..CellInfo::lte(1, LteBandwidth::Mhz10)
        };
        let cell = Update::Cell(Cell { info, ecgi: ecgi(9) });
        assert_eq!(read(&written(std::slice::from_ref(&cell))), [cell]);
    }
}
