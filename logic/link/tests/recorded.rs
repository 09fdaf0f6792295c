//! Compares the statistics of recorded traces with those in their index, which another program computed.
//!
//! The recordings are not part of this repository. They are expected in `shared/data/traces`, beside the
//! folder of the repository, with an `index.csv` of the columns that are read below.

#![allow(clippy::unwrap_used)] // test helpers outside of a test module

use std::fs;
use std::io::{Read, Write as _};
use std::path::Path;

use ranpace_link::{Trace, TraceParser, TraceStats};

fn read(path: &Path) -> Trace {
    let packed = fs::read(path).unwrap();
    let mut plain = Vec::new();
    if path.extension().is_some_and(|ending| ending == "gz") {
        flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut plain).unwrap();
    } else {
        plain = packed;
    }
    let mut parser = TraceParser::new();
    plain.chunks(4099).try_for_each(|piece| parser.push(piece)).unwrap();
    parser.finish().unwrap()
}

/// Cells of a line of comma-separated values, some of them in quotes.
fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut is_quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(String::new()),
            _ => cells.last_mut().unwrap().push(c),
        }
    }
    cells
}

#[test]
fn figures_agree_with_the_index() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/traces");
    let Ok(index) = fs::read_to_string(folder.join("index.csv")) else {
        // Written directly to stderr, since the test runner hides the output of passing tests.
        let word = "skipped: needs shared/data/traces beside the checkout; CONTRIBUTING.md says where they come from\n";
        std::io::stderr().write_all(word.as_bytes()).unwrap();
        return;
    };
    let mut lines = index.lines();
    let head = cells(lines.next().unwrap());
    let mut count = 0;
    for line in lines {
        let row = cells(line);
        let cell = |name: &str| row[head.iter().position(|cell| cell == name).unwrap()].as_str();
        let name = cell("file");
        let trace = read(&folder.join(name));
        let stats = TraceStats::of(&trace);
        let mbit = |rate: ranpace_units::Rate| format!("{:.3}", rate.as_f64() / 1e6);
        let found = [
            stats.opportunities.to_string(),
            format!("{:.3}", stats.duration.as_secs_f64()),
            mbit(stats.mean),
            mbit(stats.min_second),
            mbit(stats.max_second),
            stats.stalls.to_string(),
            stats.longest_gap.as_millis().to_string(),
            format!("{:.1}", stats.stalled.as_secs_f64()),
            format!("{:.3}", stats.busy),
            stats.max_per_ms.to_string(),
        ];
        let names = [
            "opportunities",
            "duration_s",
            "mean_mbps",
            "min_1s_mbps",
            "max_1s_mbps",
            "stalls_over_1s",
            "longest_gap_ms",
            "stalled_s",
            "busy_ms_fraction",
            "max_opportunities_per_ms",
        ];
        for (column, found) in names.into_iter().zip(found) {
            let expected = cell(column);
            // Both are rounded to the last decimal shown.
            let decimals = expected.split_once('.').map_or(0, |(_, decimals)| decimals.len() as i32);
            let difference = (found.parse::<f64>().unwrap() - expected.parse::<f64>().unwrap()).abs();
            let allowed = if decimals == 0 { 0.0 } else { 1.01 * 0.1f64.powi(decimals) };
            assert!(difference <= allowed, "{name}, {column}: {found}, but the index has {expected}");
        }
        count += 1;
    }
    println!("{count} traces agree");
    assert!(count > 0);
}
