//! Runs the fuzz targets on stable Rust for a bounded time: the stored corpus, and mutations of it from a fixed seed.
//!
//! `fuzz/` has the same targets for a real fuzzer; its findings are added to `fuzz/corpus/`, and stay tested here.
//! RANPACE_FUZZ_ROUNDS sets the number of mutations per target, RANPACE_FUZZ_SEED the seed.
#![allow(clippy::unwrap_used)] // a test may

#[path = "../../../fuzz/src/lib.rs"]
mod targets;

use std::fs;
use std::panic;
use std::path::Path;

/// Default number of mutations per target: a few seconds on a slow machine.
const ROUNDS: u64 = 40_000;
const SEED: u64 = 20_260_101;
/// Longer inputs only cost time.
const LONGEST: usize = 8_192;

/// Fragments of the formats, and numbers at their limits.
const WORDS: [&[u8]; 62] = [
    b"\n",
    b"\r\n",
    b"0",
    b"1",
    b"9",
    b"-",
    b".",
    b",",
    b";",
    b":",
    b"=",
    b"+",
    b"\"",
    b"'",
    b"#",
    b" ",
    b"\t",
    b"[[",
    b"]]",
    b"{",
    b"}",
    b"4294967295",
    b"4294967296",
    b"18446744073709551615",
    b"18446744073709551616",
    b"1e308",
    b"nan",
    b"\xff",
    b"\0",
    "\u{feff}".as_bytes(),
    "é".as_bytes(),
    b"\"1s\"",
    b"\"0bit/s\"",
    b"\"1ns\"",
    b"ms",
    b"Mbit/s",
    b"KB",
    b"[[flow]]\n",
    b"[[link]]\n",
    b"cc = ",
    b"kind = ",
    b"queue",
    b"c2tcp",
    b":target=",
    b"2020.01.01_00.00.00",
    b"1970-01-01 00:00:00.5",
    b"t,r\n",
    b"\n\n",
    b"[[cell]]\n",
    b"[[user]]\n",
    b"preset = ",
    b"radio = ",
    b"to = ",
    b"[0, 0]",
    b"20MHz",
    b"dBm",
    b"-1e308",
    b"time_s,sinr_db,cqi\n",
    b"time_s,x_m,y_m\n",
    b"2019.12.16_13.40.04",
    b"\n1e300,",
    b"5G",
];

/// Values of scenarios, at the limits of their ranges and beyond.
const VALUES: [&str; 64] = [
    "0",
    "1",
    "2",
    "3",
    "4",
    "6",
    "15",
    "28",
    "29",
    "64",
    "110",
    "255",
    "275",
    "276",
    "-1",
    "0.5",
    "1.0",
    "1e-9",
    "1e300",
    "-1e6",
    "nan",
    "true",
    "false",
    "\"\"",
    "[]",
    "{}",
    "[1e6, -1e6, 1e6]",
    "[0, 0, 0]",
    "[[0, 0], [0, 0]]",
    "\"0s\"",
    "\"1ns\"",
    "\"100us\"",
    "\"1ms\"",
    "\"10ms\"",
    "\"60s\"",
    "\"2h\"",
    "\"86400s\"",
    "\"0B\"",
    "\"1B\"",
    "\"41B\"",
    "\"1000000B\"",
    "\"1 packets\"",
    "\"unlimited\"",
    "\"none\"",
    "\"never\"",
    "\"moving\"",
    "\"0m\"",
    "\"1000km\"",
    "\"1000m/s\"",
    "\"-200dBm\"",
    "\"200dBm\"",
    "\"-200dB\"",
    "\"200dB\"",
    "\"1MHz\"",
    "\"100MHz\"",
    "\"400MHz\"",
    "\"1000GHz\"",
    "\"15kHz\"",
    "\"120kHz\"",
    "\"DU\"",
    "\"DDDDDDDDDDSUU 1:0:13\"",
    "\"drive.csv\"",
    "[{}, {}, {}]",
    "{ kind = \"recorded\", file = \"fading.txt\" }",
];

/// Marsaglia's xorshift64*: good enough to choose mutations, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// One to eight small changes, sometimes with a piece of another input.
fn mutated(random: &mut Random, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut data = corpus[random.below(corpus.len())].clone();
    // Changes values in a scenario that otherwise stays valid.
    if random.below(2) == 0 {
        for _ in 0..=random.below(4) {
            match random.below(3) {
                0 => graft(random, &mut data, corpus),
                _ => revalue(random, &mut data, corpus),
            }
        }
        return data;
    }
    for _ in 0..=random.below(8) {
        let at = random.below(data.len() + 1);
        let end = (at + 1 + random.below(16)).min(data.len());
        match random.below(9) {
            7 => revalue(random, &mut data, corpus),
            0 if !data.is_empty() => {
                let at = at.min(data.len() - 1);
                data[at] ^= 1 << random.below(8);
            }
            1 => drop(data.drain(at..end)),
            2 => data.truncate(at),
            3 => {
                let piece = data[at..end].to_vec();
                data.splice(at..at, piece);
            }
            4 => {
                let other = &corpus[random.below(corpus.len())];
                let from = random.below(other.len() + 1);
                let until = (from + random.below(64)).min(other.len());
                data.splice(at..end, other[from..until].iter().copied());
            }
            _ => {
                let word = WORDS[random.below(WORDS.len())];
                let end = if random.below(2) == 0 { at } else { end };
                data.splice(at..end, word.iter().copied());
            }
        }
    }
    data.truncate(LONGEST);
    data
}

/// Gives a key of a scenario another value: one at a limit, mostly in the same unit, or that of another key.
fn revalue(random: &mut Random, data: &mut Vec<u8>, corpus: &[Vec<u8>]) {
    let unit = |text: &[u8]| -> Vec<u8> {
        text.iter().copied().filter(|byte| !b"0123456789.- ".contains(byte)).collect()
    };
    // Names have no unit; there are many, and another name only breaks the scenario.
    for _ in 0..4 {
        let Some(chosen) = value(random, data) else { return };
        let own = unit(&data[chosen.clone()]);
        let same: Vec<_> = VALUES.iter().filter(|value| unit(value.as_bytes()) == own).collect();
        let other = &corpus[random.below(corpus.len())];
        let found = match value(random, other) {
            Some(place) if random.below(16) == 0 => &other[place],
            _ if !same.is_empty() => same[random.below(same.len())].as_bytes(),
            _ if random.below(16) == 0 => VALUES[random.below(VALUES.len())].as_bytes(),
            _ => continue,
        };
        data.splice(chosen, found.iter().copied());
        return;
    }
}

/// Inserts a line of another scenario under a header, replacing the line there with the same key.
fn graft(random: &mut Random, data: &mut Vec<u8>, corpus: &[Vec<u8>]) {
    let key = |line: &[u8]| line.split(|byte| *byte == b'=').next().map(<[u8]>::to_vec);
    let other = &corpus[random.below(corpus.len())];
    let (mut header, mut found) = (Vec::new(), Vec::new());
    for line in other.split(|byte| *byte == b'\n') {
        if line.starts_with(b"[[") {
            header = line.to_vec();
        } else if line.contains(&b'=') && !header.is_empty() {
            found.push((header.clone(), line.to_vec()));
        }
    }
    if found.is_empty() {
        return;
    }
    let (header, graft) = found.swap_remove(random.below(found.len()));
    let mut under = false;
    let mut grown = Vec::with_capacity(data.len() + graft.len());
    for line in data.split(|byte| *byte == b'\n') {
        if under && key(line) == key(&graft) {
            continue;
        }
        grown.extend_from_slice(line);
        grown.push(b'\n');
        if line.starts_with(b"[[") {
            under = line == header;
            if under {
                grown.extend_from_slice(&graft);
                grown.push(b'\n');
            }
        }
    }
    *data = grown;
}

/// The position of some key's value: from after its "=" to the end of the line, or to its end within a table.
fn value(random: &mut Random, data: &[u8]) -> Option<std::ops::Range<usize>> {
    let keys: Vec<usize> = (0..data.len()).filter(|&at| data[at] == b'=').collect();
    let begin = keys.get(random.below(keys.len()))? + 1;
    let line = &data[begin..];
    let end = line.iter().position(|byte| *byte == b'\n').unwrap_or(line.len());
    let in_table = line[..end].iter().position(|byte| b",}".contains(byte)).filter(|_| random.below(2) == 0);
    Some(begin..begin + in_table.unwrap_or(end))
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a whole number"))
}

/// `slowness` divides the number of rounds of slow targets.
fn fuzz(name: &str, slowness: u64) {
    let (_, target) = targets::TARGETS.iter().find(|(known, _)| *known == name).unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let corpus: Vec<Vec<u8>> = files.iter().map(|path| fs::read(path).unwrap()).collect();
    assert!(corpus.len() >= 5, "the corpus of {name} is gone");
    let survive = |what: &str, data: &[u8]| {
        if let Err(cause) = panic::catch_unwind(|| target(data)) {
            eprintln!("{name}, {what}: fails for {}", data.escape_ascii());
            panic::resume_unwind(cause);
        }
    };
    files.iter().zip(&corpus).for_each(|(path, data)| survive(&path.display().to_string(), data));
    let seed = setting("RANPACE_FUZZ_SEED", SEED);
    let mut random = Random(seed.max(1));
    for round in 0..setting("RANPACE_FUZZ_ROUNDS", ROUNDS).div_ceil(slowness) {
        survive(&format!("round {round} of seed {seed}"), &mutated(&mut random, &corpus));
    }
}

#[test]
fn trace() {
    fuzz("trace", 1);
}

#[test]
fn light_trace() {
    fuzz("light_trace", 1);
}

#[test]
fn log() {
    fuzz("log", 1);
}

#[test]
fn scenario() {
    fuzz("scenario", 1);
}

#[test]
fn cell() {
    fuzz("cell", 40);
}

#[test]
fn radio() {
    fuzz("radio", 1);
}

#[test]
fn vary() {
    fuzz("vary", 1);
}

#[test]
fn lab_edit() {
    fuzz("lab_edit", 1);
}

#[test]
fn algorithm() {
    fuzz("algorithm", 1);
}

#[test]
fn units() {
    fuzz("units", 1);
}

#[test]
fn report() {
    fuzz("report", 1);
}

#[test]
fn rnis() {
    fuzz("rnis", 1);
}

#[test]
fn rnis_json() {
    fuzz("rnis_json", 1);
}

#[test]
fn rnis_lines() {
    fuzz("rnis_lines", 1);
}

#[test]
fn rnis_srsran() {
    fuzz("rnis_srsran", 1);
}

#[test]
fn rnis_query() {
    fuzz("rnis_query", 1);
}

#[test]
fn rnis_subscription() {
    fuzz("rnis_subscription", 1);
}

#[test]
fn rnis_config() {
    fuzz("rnis_config", 1);
}

#[test]
fn rnis_token() {
    fuzz("rnis_token", 1);
}

#[test]
fn hint_lines() {
    fuzz("hint_lines", 1);
}

#[test]
fn packet() {
    fuzz("packet", 1);
}

#[test]
fn tcp_fields() {
    fuzz("tcp_fields", 1);
}

#[test]
fn pep() {
    fuzz("pep", 1);
}

#[test]
fn tap() {
    fuzz("tap", 1);
}

#[test]
fn syn() {
    fuzz("syn", 1);
}

#[test]
fn pep_config() {
    fuzz("pep_config", 4);
}

#[test]
fn proxy_config() {
    fuzz("proxy_config", 4);
}

#[test]
fn receiver_report() {
    fuzz("receiver_report", 1);
}

/// A target that is only listed is not run.
#[test]
fn every_target_has_its_test_a_corpus_and_a_line_in_the_docs() {
    let tests = include_str!("fuzz_corpus.rs");
    let page = include_str!("../../../docs/fuzzing.md");
    let fuzzer = include_str!("../../../fuzz/Cargo.toml");
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (name, _) in targets::TARGETS {
        assert!(
            tests.contains(&format!("#[test]\nfn {name}() {{\n    fuzz(\"{name}\", ")),
            "{name}: no test"
        );
        assert!(page.contains(&format!("\n| `{name}` |")), "{name}: not in docs/fuzzing.md");
        assert!(fuzzer.contains(&format!("name = \"{name}\"")), "{name}: not in fuzz/Cargo.toml");
        assert!(corpus.join(name).is_dir(), "{name}: no corpus");
    }
}
