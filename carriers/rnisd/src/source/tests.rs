#![allow(clippy::unwrap_used)] // a test may

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use ranpace_phy::{Both, LteBandwidth};
use ranpace_rnis::etsi::{Ecgi, Plmn};
use ranpace_rnis::{CellInfo, EventKind, Technology};
use ranpace_units::{Bytes, Span, Time};
use serde_json::json;

use super::srsran::{Converter, MetricsError, Pieces};
use super::*;
use crate::clock::now;

/// For what takes a moment, on a machine that is busy with other things too.
const PATIENCE: Duration = Duration::from_secs(30);

/// A source on a thread of its own.
struct Running {
    updates: Receiver<Update>,
    counters: Arc<Counters>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<(), SourceError>>,
}

impl Running {
    fn start(mut source: impl Source + 'static) -> Self {
        let counters = source.counters();
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, updates) = mpsc::channel();
        let flag = Arc::clone(&stop);
        // The test may have stopped listening.
        let thread = thread::spawn(move || source.run(&mut |update| drop(sender.send(update)), &flag));
        Self { updates, counters, stop, thread }
    }

    fn lines(address: &str) -> Self {
        Self::start(Lines::new(address.parse().unwrap()))
    }

    fn next(&self) -> Update {
        self.updates.recv_timeout(PATIENCE).unwrap()
    }

    /// The next slot; what comes before it is passed over.
    fn slot(&self) -> Slot {
        loop {
            if let Update::Slot(slot) = self.next() {
                return slot;
            }
        }
    }

    /// Stops it, within the time that sources promise, and some for a busy machine.
    fn end(self) -> Result<(), SourceError> {
        let began = Instant::now();
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.join().unwrap();
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
        ended
    }
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(2));
    }
}

const CELL: &str = concat!(
    r#"{"cell":{"cell":0,"ecgi":{"cellId":"0000001","plmn":{"mcc":"001","mnc":"01"}},"technology":"lte","prbs":50}}"#,
    "\n"
);

fn slot(number: u64) -> String {
    format!("{{\"slot\":{{\"cell\":0,\"slot\":{number},\"users\":[[3,17,9,0,1.5,[100,0,[4,5,800]]]]}}}}\n")
}

fn is_at(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

#[test]
fn a_base_station_that_goes_and_comes_is_connected_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cell.sock");
    // It is not there yet.
    let running = Running::lines(&format!("unix:{}", path.display()));
    until("it complains", || !running.counters.complaint().is_empty());
    let listener = UnixListener::bind(&path).unwrap();
    for (round, expected) in [(0, [4, 5]), (1, [6, 7])] {
        let (mut stream, _) = listener.accept().unwrap();
        let whole = CELL.to_owned() + &slot(4) + &slot(5);
        // In pieces that end anywhere.
        for piece in whole.as_bytes().chunks(50) {
            stream.write_all(piece).unwrap();
        }
        let slots = [running.slot(), running.slot()];
        assert_eq!(slots.map(|slot| slot.slot), expected, "round {round}");
        assert!(running.counters.is_connected());
        stream.write_all(b"{\"slot\":").unwrap();
        drop(stream);
        until("it notices", || !running.counters.is_connected());
    }
    assert_eq!(running.counters.left_out(), 0);
    running.end().unwrap();
}

#[test]
fn lines_come_over_each_kind_of_address() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lines");
    let text = CELL.to_owned() + &slot(1);
    // Where we listen.
    let running = Running::lines(&format!("unix-listen:{}", path.display()));
    until("it listens", || is_at(&path));
    for number in [1, 2] {
        until("it accepts", || {
            UnixStream::connect(&path).is_ok_and(|mut to| to.write_all(text.as_bytes()).is_ok())
        });
        assert_eq!(running.slot().slot, number);
    }
    running.end().unwrap();
    assert!(!is_at(&path), "its socket is gone");
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let running = Running::lines(&format!("tcp-listen:{free}"));
    until("it accepts", || {
        TcpStream::connect(free).is_ok_and(|mut to| to.write_all(text.as_bytes()).is_ok())
    });
    assert_eq!(running.slot().slot, 1);
    running.end().unwrap();
    // Where the other side listens.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let running = Running::lines(&format!("tcp:{}", listener.local_addr().unwrap()));
    listener.accept().unwrap().0.write_all(text.as_bytes()).unwrap();
    assert_eq!(running.slot().slot, 1);
    running.end().unwrap();
    // A named pipe, with one writer after the other.
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let running = Running::lines(&format!("pipe:{}", path.display()));
    for number in [1, 2] {
        File::options().write(true).open(&path).unwrap().write_all(text.as_bytes()).unwrap();
        assert_eq!(running.slot().slot, number);
    }
    running.end().unwrap();
    fs::remove_file(&path).unwrap();
    // A file that grows, is cut, and is replaced.
    fs::write(&path, &text).unwrap();
    let running = Running::lines(&format!("file:{}", path.display()));
    assert_eq!(running.slot().slot, 1);
    File::options().append(true).open(&path).unwrap().write_all(slot(2).as_bytes()).unwrap();
    assert_eq!(running.slot().slot, 2);
    fs::write(&path, "").unwrap();
    thread::sleep(Duration::from_millis(50));
    fs::write(&path, &text).unwrap();
    assert_eq!(running.slot().slot, 3);
    let other = folder.path().join("other");
    fs::write(&other, &text).unwrap();
    fs::rename(&other, &path).unwrap();
    assert_eq!(running.slot().slot, 4);
    running.end().unwrap();
}

#[test]
fn what_cannot_be_opened_says_what_and_why() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none");
    for kind in ["file", "pipe"] {
        let error = Running::lines(&format!("{kind}:{}", path.display())).thread.join().unwrap().unwrap_err();
        assert!(error.to_string().contains("none") && error.to_string().contains("No such file"), "{error}");
    }
    fs::write(&path, "").unwrap();
    let error = Running::lines(&format!("pipe:{}", path.display())).thread.join().unwrap().unwrap_err();
    assert!(error.to_string().contains("mkfifo"), "{error}");
    // What is no socket is not removed.
    let error =
        Running::lines(&format!("unix-listen:{}", path.display())).thread.join().unwrap().unwrap_err();
    assert!(error.to_string().contains("in use"), "{error}");
}

#[test]
fn hostile_lines_are_counted_and_left_out() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let running = Running::lines(&format!("tcp:{}", listener.local_addr().unwrap()));
    let (mut to, _) = listener.accept().unwrap();
    to.write_all(CELL.as_bytes()).unwrap();
    let bad: [&[u8]; 6] = [
        b"hello\n",
        b"\xff\xfe\0\n",
        b"{\"slot\":{\"cell\":9,\"slot\":0}}\n",
        b"[[[[[\n",
        b"{}\n",
        b"{\"slot\":{\"cell\":0}}\n",
    ];
    bad.iter().for_each(|line| to.write_all(line).unwrap());
    // Eight times the longest line, and the next one is read.
    let long = vec![b'a'; 1 << 20];
    (0..8).for_each(|_| to.write_all(&long).unwrap());
    to.write_all(b"\n").unwrap();
    to.write_all(slot(7).as_bytes()).unwrap();
    assert_eq!(running.slot().slot, 7);
    assert_eq!((running.counters.left_out(), running.counters.read()), (7, 9));
    assert!(running.counters.complaint().contains("more than"), "{}", running.counters.complaint());
    running.end().unwrap();
}

#[test]
fn two_sources_serve_two_cells_with_the_same_numbers() {
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let running = [0, 1].map(|at| Running::lines(&format!("tcp:{}", listeners[at].local_addr().unwrap())));
    let mut streams = [0, 1].map(|at| listeners[at].accept().unwrap().0);
    for (at, stream) in streams.iter_mut().enumerate() {
        // Both call their cell 0 and their user 3.
        let cell = CELL.replace("0000001", &format!("000000{}", at + 1));
        stream.write_all((cell + &slot(100 * at as u64)).as_bytes()).unwrap();
    }
    for (at, running) in running.iter().enumerate() {
        let Update::Cell(cell) = running.next() else { panic!("a cell comes first") };
        assert_eq!(cell.ecgi.cell_id, format!("000000{}", at + 1));
        let Update::User(user) = running.next() else { panic!("then a user") };
        assert_eq!(user.user, 3);
        assert_eq!(running.slot().slot, 100 * at as u64);
    }
    // A source that ends ends no other.
    let [first, second] = running;
    first.end().unwrap();
    streams[1].write_all(slot(101).as_bytes()).unwrap();
    assert_eq!(second.slot().slot, 101);
    second.end().unwrap();
}

fn recording(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("run.jsonl");
    let mut text = "{\"stream\":{\"version\":1,\"clock\":\"run\"}}\n".to_owned() + CELL;
    text += "{\"event\":{\"cell\":0,\"user\":3,\"kind\":\"attached\",\"time_ns\":7000000000}}\nrubbish\n";
    for number in 0..5 {
        let time = 7_000_000_000_u64 + number * 40_000_000;
        text += &slot(number).replace("\"users\"", &format!("\"time_ns\":{time},\"users\""));
    }
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_recording_is_played_by_the_clock() {
    let folder = tempfile::tempdir().unwrap();
    let mut source = Replay::once(recording(folder.path()));
    let began = now().unwrap();
    let mut got = Vec::new();
    source.run(&mut |update| got.push((now().unwrap(), update)), &AtomicBool::new(false)).unwrap();
    assert_eq!(source.left_out(), 1);
    let slots: Vec<(Time, Time)> = (got.iter())
        .filter_map(
            |(at, update)| if let Update::Slot(slot) = update { Some((*at, slot.time)) } else { None },
        )
        .collect();
    assert_eq!(slots.len(), 5);
    for ((at, time), number) in slots.iter().zip(0..) {
        let apart = time.since(slots[0].1);
        assert_eq!(apart, Span::from_millis(40 * number), "as recorded");
        assert!(time <= at, "nothing comes before it was measured");
        assert!(at.since(began) >= apart);
    }
    let Some((_, Update::Event(last))) = got.last() else { panic!("{got:?}") };
    assert_eq!((last.user, last.kind), (3, EventKind::Detached));
}

#[test]
fn a_looped_recording_goes_on_and_a_useless_one_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = recording(folder.path());
    let running = Running::start(Replay::looped(&path));
    let slots: Vec<Slot> = (0..12).map(|_| running.slot()).collect();
    assert!(slots.iter().zip(0..).all(|(slot, number)| slot.slot == number), "{slots:?}");
    assert!(slots.is_sorted_by_key(|slot| slot.time));
    running.end().unwrap();
    fs::write(&path, "rubbish\n").unwrap();
    let error = Running::start(Replay::looped(&path)).thread.join().unwrap().unwrap_err();
    assert!(error.to_string().contains("no line can be used: expected"), "{error}");
    fs::write(&path, "").unwrap();
    let error = Running::start(Replay::once(&path)).thread.join().unwrap().unwrap_err();
    assert!(error.to_string().contains("--rnis-record"), "{error}");
}

/// An NR cell of 20 MHz in FDD.
fn nr(pci: u16, number: u16) -> SrsranCell {
    let lte = CellInfo::lte(number, LteBandwidth::Mhz20);
    let info = CellInfo { technology: Technology::Nr { qam256: false }, prbs: 106, layers: 2, ..lte };
    let plmn = Plmn { mcc: "001".to_owned(), mnc: "01".to_owned() };
    SrsranCell { pci, cell: Cell { info, ecgi: Ecgi { cell_id: format!("{number:09x}"), plmn } } }
}

/// A UE with the members of release 25.10.
fn ue(pci: u16, rnti: u16) -> serde_json::Value {
    json!({
        "pci": pci, "rnti": rnti, "cqi": 12, "dl_ri": 1.0, "ul_ri": 1.0, "dl_mcs": 20, "dl_brate": 20e6,
        "dl_nof_ok": 900, "dl_nof_nok": 100, "dl_bs": 44_000, "pusch_snr_db": 26.7, "pusch_rsrp_db": -21.2,
        "ta_ns": null, "ul_mcs": 10, "ul_brate": 1e6, "ul_nof_ok": 100, "ul_nof_nok": 0, "last_phr": 18,
        "bsr": 1_500, "avg_ce_delay": null,
    })
}

fn new_form(cells: &serde_json::Value) -> serde_json::Value {
    json!({ "timestamp": "2025-10-31T12:00:00.250", "cells": cells })
}

/// The same over UDP, as release 24.10 has it.
fn old_form(pci: u16, rnti: u16) -> serde_json::Value {
    let mut of = ue(pci, rnti);
    let of_ue = of.as_object_mut().unwrap();
    let rank = of_ue.remove("dl_ri").unwrap();
    of_ue.remove("ul_ri");
    of_ue.insert("ri".to_owned(), rank);
    of_ue.insert("ta_ns".to_owned(), json!("n/a"));
    json!({
        "timestamp": 1_730_376_000.25, "cell_metrics": { "error_indication_count": 0, "average_latency": 9 },
        "ue_list": [{ "ue_container": of }], "event_list": [],
    })
}

/// Updates of a message with the time of day as the server's time, and the error.
fn converted(
    converter: &mut Converter,
    message: &serde_json::Value,
) -> (Vec<Update>, Result<(), MetricsError>) {
    let mut updates = Vec::new();
    let mut clock = |_, ns: Option<u64>| Time::from_nanos(ns.unwrap_or(0));
    let result = converter.message(message, &mut clock, &mut |update| updates.push(update));
    (updates, result)
}

#[test]
fn metrics_in_both_forms_become_the_same_slot() {
    for (form, message, end) in [
        (
            "WebSocket",
            new_form(&json!([{ "cell_metrics": {}, "ue_list": [ue(1, 0x4601)] }])),
            1_761_912_000_250,
        ),
        ("UDP", old_form(1, 0x4601), 1_730_376_000_250),
    ] {
        let mut converter = Converter::new(vec![nr(1, 5)], Span::SECOND);
        let (updates, result) = converted(&mut converter, &message);
        assert_eq!(result, Ok(()), "{form}");
        let [Update::User(user), Update::Event(event), Update::Slot(slot)] = &updates[..] else {
            panic!("{form}: {updates:?}")
        };
        assert_eq!((user.user, &*user.name, event.kind), (0, "pci 1 rnti 4601", EventKind::Attached));
        // The measured period began a second before.
        assert_eq!(slot.time, Time::from_millis(end - 1_000), "{form}");
        assert_eq!(
            (slot.cell.cell, slot.full, slot.active_users),
            (5, true, Both { downlink: 1, uplink: 1 })
        );
        let row = slot.users[0];
        assert_eq!((row.rnti, row.cqi.get(), row.cqi_time), (0x4601, 12, slot.time));
        let down = row.link.downlink;
        assert_eq!((down.queue, down.blocks, down.retransmissions), (Bytes::new(44_000), 900, 100));
        assert_eq!((down.scheduled_bits, row.link.uplink.scheduled_bits), (20_000_000, 1_000_000));
        // 20 kbit in each of 1000 slots, and the PRBs of MCS 20 that carry them, and a ninth more.
        let grant = down.grant.unwrap();
        assert_eq!((grant.mcs, grant.block.bits()), (20, 20_000));
        let carried = |prbs: f64| slot.cell.block(ranpace_phy::Direction::Downlink, 20, 1, prbs).bits();
        let once = (f64::from(grant.prbs) * 0.9).round();
        assert!(carried(once + 1.0) >= 20_000 && carried(once - 2.0) < 20_000, "{grant:?}");
        assert!((f64::from(slot.used_prbs.downlink) - f64::from(grant.prbs)).abs() <= 0.5);
        // Counters go on.
        let (updates, _) = converted(&mut converter, &message);
        let [Update::Slot(slot)] = &updates[..] else { panic!("{form}: {updates:?}") };
        assert_eq!(slot.users[0].link.downlink.blocks, 1_800);
    }
}

#[test]
fn ues_come_and_go() {
    let mut converter = Converter::new(vec![nr(1, 0), nr(2, 1)], Span::SECOND);
    let of = |converter: &mut Converter, first, second| {
        let message = new_form(&json!([{ "ue_list": first }, { "ue_list": second }]));
        let (updates, result) = converted(converter, &message);
        assert_eq!(result, Ok(()));
        let events = updates.into_iter().filter_map(|update| match update {
            Update::Event(event) => Some((event.cell, event.user, event.kind)),
            _ => None,
        });
        events.collect::<Vec<_>>()
    };
    let attached = EventKind::Attached;
    let came = of(&mut converter, json!([ue(1, 7), ue(1, 8)]), json!([ue(2, 7)]));
    assert_eq!(came, [(0, 0, attached), (0, 1, attached), (1, 2, attached)]);
    // One is missing, which may be a lost report; after three it has gone.
    for _ in 0..2 {
        assert_eq!(of(&mut converter, json!([ue(1, 7)]), json!([ue(2, 7)])), []);
    }
    let gone = of(&mut converter, json!([ue(1, 7)]), json!([ue(2, 7)]));
    assert_eq!(gone, [(0, 1, EventKind::Detached)]);
    // The gNB says so itself, of a cell that has no other.
    let events = json!([{ "slot": "1.2", "rnti": 7, "event_type": "ue_rem" }]);
    let message = new_form(&json!([{ "ue_list": [ue(1, 7)] }, { "event_list": events }]));
    let (updates, result) = converted(&mut converter, &message);
    assert_eq!(result, Ok(()));
    let has = |cell, user| {
        updates.iter().any(|update| {
            matches!(update, Update::Event(event) if (event.cell, event.user, event.kind) == (cell, user, EventKind::Detached))
        })
    };
    assert!(has(1, 2) && !has(0, 0), "{updates:?}");
}

#[test]
fn wrong_metrics_are_left_out_and_others_used() {
    let with = |what: &str, value: serde_json::Value| {
        let mut of = ue(1, 9);
        of[what] = value;
        new_form(&json!([{ "ue_list": [of, ue(1, 7)] }]))
    };
    for (message, part) in [
        (with("cqi", json!(16)), "cqi is 16; expected 0 to 15"),
        (with("rnti", json!(null)), "rnti is missing"),
        (with("rnti", json!(-1)), "rnti is -1"),
        (with("dl_mcs", json!("many")), "dl_mcs is many; expected 0 to 31"),
        (with("dl_brate", json!(1e300)), "dl_brate is 1"),
        (with("bsr", json!([])), "bsr is something else"),
        (with("pci", json!(3)), "a cell with pci 3; expected one of those configured: 1"),
    ] {
        let mut converter = Converter::new(vec![nr(1, 0)], Span::SECOND);
        let (updates, result) = converted(&mut converter, &message);
        let why = result.unwrap_err().to_string();
        assert!(why.contains(part), "{why}");
        let slots: Vec<usize> = (updates.iter())
            .filter_map(|update| if let Update::Slot(slot) = update { Some(slot.users.len()) } else { None })
            .collect();
        assert_eq!(slots, [1], "{part}");
    }
    let mut converter = Converter::new(vec![nr(1, 0)], Span::SECOND);
    for other in
        [json!({ "cmd": "metrics_subscribe" }), json!({ "du": {} }), json!({ "app_resource_usage": {} })]
    {
        assert_eq!(converted(&mut converter, &other), (Vec::new(), Ok(())));
    }
    let (_, refused) = converted(&mut converter, &json!({ "error": "Unknown command type", "cmd": "x" }));
    assert!(refused.unwrap_err().to_string().contains("enable_metrics_subscription"));
}

#[test]
fn an_object_may_come_in_several_datagrams() {
    let text = old_form(1, 2).to_string();
    let mut pieces = Pieces::default();
    let mut count = 0;
    let bytes = text.as_bytes();
    assert_eq!(pieces.take(&bytes[..300], &mut |_| count += 1), Ok(()));
    // Its end and two others.
    let rest = [&bytes[300..], bytes, b"\n", bytes].concat();
    assert_eq!(pieces.take(&rest, &mut |_| count += 1), Ok(()));
    assert_eq!(count, 3);
    // A piece is lost: the next object is read all the same.
    assert_eq!(pieces.take(&bytes[..300], &mut |_| count += 1), Ok(()));
    assert!(pieces.take(bytes, &mut |_| count += 1).is_err());
    assert_eq!(count, 4);
    assert!(pieces.take(b"\xff\xff", &mut |_| count += 1).is_err());
    assert_eq!(pieces.take(bytes, &mut |_| count += 1), Ok(()));
    assert_eq!(count, 5);
}

#[test]
fn metrics_come_over_udp() {
    let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let running = Running::start(Srsran::udp(free.to_string(), vec![nr(1, 0)]));
    until("it listens", || running.counters.is_connected());
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.send_to(b"rubbish", free).unwrap();
    socket.send_to(old_form(1, 7).to_string().as_bytes(), free).unwrap();
    assert_eq!(running.slot().users[0].rnti, 7);
    assert_eq!((running.counters.read(), running.counters.left_out()), (2, 1));
    running.end().unwrap();
}

#[test]
fn metrics_come_over_a_web_socket_that_is_opened_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let source = Srsran::web_socket(listener.local_addr().unwrap().to_string(), vec![nr(1, 0)]);
    let running = Running::start(source);
    for round in 0..2 {
        let (stream, _) = listener.accept().unwrap();
        let mut socket = tungstenite::accept(stream).unwrap();
        let command: serde_json::Value =
            serde_json::from_str(socket.read().unwrap().to_text().unwrap()).unwrap();
        assert_eq!(command, json!({ "cmd": "metrics_subscribe" }));
        let answer = json!({ "cmd": "metrics_subscribe", "timestamp": "2025-10-31T12:00:00.000" });
        for message in [answer, new_form(&json!([{ "ue_list": [ue(1, 7)] }]))] {
            socket.send(tungstenite::Message::text(message.to_string())).unwrap();
        }
        assert_eq!(running.slot().users[0].rnti, 7, "round {round}");
        socket.send(tungstenite::Message::text("rubbish")).unwrap();
        until("it is left out", || running.counters.left_out() == round + 1);
    }
    running.end().unwrap();
}

#[test]
fn a_gnb_that_refuses_is_asked_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let source = Srsran::web_socket(listener.local_addr().unwrap().to_string(), vec![nr(1, 0)]);
    let running = Running::start(source);
    for _ in 0..2 {
        let mut socket = tungstenite::accept(listener.accept().unwrap().0).unwrap();
        socket.read().unwrap();
        let refusal = json!({ "error": "Unknown command type: metrics_subscribe" }).to_string();
        socket.send(tungstenite::Message::text(refusal)).unwrap();
        until("it says why", || running.counters.complaint().contains("enable_metrics_subscription"));
    }
    // One that accepts connections and says nothing does not hold it.
    let (mut stream, _) = listener.accept().unwrap();
    let mut byte = [0];
    stream.read_exact(&mut byte).unwrap();
    running.end().unwrap();
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|value| json!(value)),
        any::<i64>().prop_map(|value| json!(value)),
        any::<f64>().prop_map(|value| json!(value)),
        "[a-z0-9.:T-]{0,30}".prop_map(|value| json!(value)),
    ];
    let keys = prop::sample::select(vec![
        "timestamp",
        "cells",
        "ue_list",
        "ue_container",
        "event_list",
        "rnti",
        "pci",
        "cqi",
        "dl_brate",
        "dl_mcs",
        "ri",
        "error",
        "event_type",
        "bsr",
    ]);
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|list| json!(list)),
            prop::collection::hash_map(keys.clone(), inner, 0..6).prop_map(|map| json!(map)),
        ]
    })
}

proptest! {
    /// Any metrics are used or refused; what follows is sound.
    #[test]
    fn any_metrics_are_used_or_refused(messages in prop::collection::vec(any_json(), 0..6)) {
        let mut converter = Converter::new(vec![nr(1, 0), nr(2, 1)], Span::SECOND);
        for message in messages {
            let (updates, _) = converted(&mut converter, &message);
            for update in updates {
                if let Update::Slot(slot) = update {
                    prop_assert!(f64::from(slot.used_prbs.downlink) <= 106.0);
                    prop_assert!(slot.users.is_sorted_by_key(|row| row.user));
                }
            }
        }
    }

    #[test]
    fn any_datagrams_are_used_or_refused(datagrams in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..6)) {
        let mut pieces = Pieces::default();
        for datagram in datagrams {
            let _ = pieces.take(&datagram, &mut |_| {});
        }
        let mut count = 0;
        // What was begun may take the next with it, no more.
        for _ in 0..2 {
            let _ = pieces.take(b"{\"a\":1}", &mut |_| count += 1);
        }
        prop_assert!(count >= 1);
    }
}
