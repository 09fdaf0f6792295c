//! Radio information that cells publish during an emulation, and its recording in a run.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // a test may

mod emulation;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::thread;

use emulation::{Emulation, folder_with, output, rights, until};
use ranpace_phy::Direction;
use ranpace_rnis::lines::{LineClock, Reader};
use ranpace_rnis::update::{Slot, Update};
use ranpace_rnis::{Event, EventKind};
use ranpace_units::{Span, Time};

const SCENARIO: &str = include_str!("../../../examples/rnis.toml");

/// Updates of lines, all of which must be used, and the stream's clock.
fn read(lines: impl Iterator<Item = String>) -> (Vec<Update>, LineClock) {
    let (mut reader, mut updates) = (Reader::default(), Vec::new());
    for line in lines {
        let mut clock = |_, ns: Option<u64>| Time::from_nanos(ns.unwrap());
        let read = reader.read(line.as_bytes(), &mut clock, &mut |update| updates.push(update));
        read.unwrap_or_else(|error| panic!("{error}: {line}"));
    }
    assert_eq!(reader.missed(), 0);
    (updates, reader.clock())
}

/// Checks what the ten users and two cells of the scenario must say; the counters of each user in the cell where it ended.
fn check(updates: &[Update]) -> BTreeMap<String, (u64, u64)> {
    let names: BTreeMap<u32, &str> = (updates.iter())
        .filter_map(
            |update| if let Update::User(user) = update { Some((user.user, &*user.name)) } else { None },
        )
        .collect();
    assert_eq!((names.len(), names[&0], names[&9]), (10, "phone", "walker.8"));
    for update in updates {
        if let Update::User(user) = update {
            assert!(user.ids[0].value.starts_with("10.77.0."), "{user:?}");
        }
    }
    let events: Vec<&Event> = updates
        .iter()
        .filter_map(|update| if let Update::Event(event) = update { Some(event) } else { None })
        .collect();
    let attached = events.iter().filter(|event| event.kind == EventKind::Attached).count();
    assert_eq!(attached, 11, "ten, and one of them again");
    let of_handover = events.iter().filter(|event| event.user == 0).map(|event| (event.cell, event.kind));
    assert_eq!(
        of_handover.collect::<Vec<_>>(),
        [
            (0, EventKind::Attached),
            (0, EventKind::BearerSetUp { bearer: 0 }),
            (0, EventKind::Detached),
            (0, EventKind::HandoverBegun { to: 1 }),
            (1, EventKind::Attached),
            (1, EventKind::BearerSetUp { bearer: 0 }),
            (1, EventKind::HandoverCompleted { from: 0 }),
        ]
    );
    let slots: Vec<&Slot> = updates
        .iter()
        .filter_map(|update| if let Update::Slot(slot) = update { Some(slot) } else { None })
        .collect();
    for cell in [0, 1] {
        let of_cell: Vec<_> = slots.iter().filter(|slot| slot.cell.cell == cell).collect();
        assert!(of_cell.len() > 4_000, "{}", of_cell.len());
        for pair in of_cell.windows(2) {
            assert_eq!(pair[1].slot, pair[0].slot + 1, "no slot is missing");
            assert_eq!(pair[1].time - pair[0].time, Span::from_millis(1));
        }
    }
    let strengths = updates.iter().filter_map(|update| match update {
        Update::Signal(signal) if signal.user == 0 => Some((signal.cell, signal.serving.rsrp_dbm)),
        _ => None,
    });
    let strengths: Vec<(u16, f64)> = strengths.collect();
    assert!(strengths.len() > 10, "{strengths:?}");
    assert!(strengths.iter().all(|(_, dbm)| (-110.0..-60.0).contains(dbm)), "{strengths:?}");
    // As far from one as from the other.
    assert!(strengths.first().unwrap().0 == 0 && strengths.last().unwrap().0 == 1, "{strengths:?}");
    let mut counters = BTreeMap::new();
    for row in slots.iter().flat_map(|slot| &slot.users) {
        let link = &row.link[Direction::Downlink];
        counters.insert(names[&row.user].to_owned(), (link.scheduled_bits / 8, link.blocks));
    }
    counters
}

/// The same of the results: bytes scheduled, and blocks. A user that was handed over counts anew.
fn compare(summary: &serde_json::Value, counters: &BTreeMap<String, (u64, u64)>) {
    let users = summary["users"].as_array().unwrap();
    assert_eq!(users.len(), 10);
    let mut carried = 0;
    for user in users {
        let name = user["name"].as_str().unwrap();
        let down = &user["downlink"];
        let result = (down["scheduled_bytes"].as_u64().unwrap(), down["blocks"].as_u64().unwrap());
        // An idle user is reported with the other users of its cell every 100 slots.
        assert_eq!(counters[name], result, "{name}");
        carried += result.0;
        let expected = u64::from(name == "phone");
        assert_eq!(user["handovers"].as_u64(), Some(expected), "{name}");
    }
    assert!(carried > 5_000_000, "{carried}");
}

#[test]
fn a_recording_has_what_the_results_of_the_run_have() {
    let folder = folder_with(SCENARIO);
    let run = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ranpace"));
        command.current_dir(folder.path()).args(["run", "scenario.toml", "--json"]).args(more);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };
    let summary = run(&["--rnis-record", "run.jsonl"]);
    let text = std::fs::read_to_string(folder.path().join("run.jsonl")).unwrap();
    let (updates, clock) = read(text.lines().map(str::to_owned));
    assert_eq!(clock, LineClock::Run);
    compare(&summary, &check(&updates));
    // Recording changes nothing.
    assert_eq!(run(&[])["flows"], summary["flows"]);
}

#[test]
fn an_emulation_publishes_its_cells_live() {
    let Some(_turn) = rights() else { return };
    let folder = folder_with(SCENARIO);
    let path = folder.path().join("cell.sock");
    let address = format!("unix:{}", path.display());
    let mut emulation = Emulation::start_with(folder, ":", &["--rnis", &address, "--workloads"]);
    let stream = UnixStream::connect(&path).unwrap();
    let reader = thread::spawn(move || {
        let mut late = Vec::new();
        let lines = BufReader::new(stream).lines().map(|line| {
            let line = line.unwrap();
            if line.starts_with("{\"slot\"") {
                let value: serde_json::Value = serde_json::from_str(&line).unwrap();
                let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).unwrap();
                let now = std::time::Duration::from(now).as_nanos() as u64;
                late.push(now.saturating_sub(value["slot"]["time_ns"].as_u64().unwrap()));
            }
            line
        });
        let lines: Vec<String> = lines.collect();
        (read(lines.into_iter()), late)
    });
    // A reader that does not read, and one that goes, disturb nobody.
    let idle = UnixStream::connect(&path).unwrap();
    drop(UnixStream::connect(&path).unwrap());
    thread::sleep(std::time::Duration::from_millis(8_000));
    let (_, summary, emulated) = emulation.end();
    let ((updates, clock), mut late) = reader.join().unwrap();
    drop(idle);
    assert_eq!(clock, LineClock::Monotonic);
    late.sort_unstable();
    let [median, p99] = [50, 99].map(|part| late[(late.len() - 1) * part / 100] as f64 / 1e6);
    eprintln!("from a slot's begin to its reader: median {median:.3} ms, p99 {p99:.3} ms");
    let counters = check(&updates);
    if emulated["valid"].as_bool() == Some(true) {
        assert!(median < 5.0, "{median} ms");
    }
    // The last slots may be played after the reader has got its last one.
    for user in summary["users"].as_array().unwrap() {
        let result = user["downlink"]["scheduled_bytes"].as_u64().unwrap();
        let (published, _) = counters[user["name"].as_str().unwrap()];
        assert!(published <= result && result - published <= 1_000_000, "{user}: {published}");
    }
    until("the socket is gone", || !path.exists());
}

#[test]
fn publishing_to_an_unusable_path_is_refused_with_a_reason() {
    let folder = folder_with(SCENARIO);
    for (scenario, option, part) in [
        (SCENARIO, "/tmp/cell.sock", "expected unix:PATH"),
        (emulation::LINK, "unix:cell.sock", "add a [[cell]]"),
    ] {
        std::fs::write(folder.path().join("scenario.toml"), scenario).unwrap();
        let (status, _, error) = output(folder.path(), &["scenario.toml", "--rnis", option]);
        assert!(status == Some(2) && error.contains(part), "{status:?} {error}");
    }
    let Some(_turn) = rights() else { return };
    std::fs::write(folder.path().join("scenario.toml"), SCENARIO).unwrap();
    // A file that is not a socket is not replaced.
    let path = Path::new("scenario.toml");
    let (status, _, error) =
        output(folder.path(), &["scenario.toml", "--rnis", &format!("unix:{}", path.display())]);
    assert!(status == Some(2) && error.contains("cannot be published there"), "{status:?} {error}");
}
