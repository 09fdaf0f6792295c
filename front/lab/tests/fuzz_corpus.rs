//! The fuzz targets on stable Rust and for a bounded time: the kept corpus, and mutations of it from a fixed seed.
//!
//! `fuzz/` has the same targets for a real fuzzer; what that finds is added to `fuzz/corpus/`, and stays tested here.
//! RANPACE_FUZZ_ROUNDS sets the number of mutations per target, RANPACE_FUZZ_SEED the seed.
#![allow(clippy::unwrap_used)] // a test may

#[path = "../../../fuzz/src/lib.rs"]
mod targets;

use std::fs;
use std::panic;
use std::path::Path;

/// Mutations for each target unless told otherwise: a few seconds on a slow machine.
const ROUNDS: u64 = 40_000;
const SEED: u64 = 20_260_101;
/// Longer inputs only take time.
const LONGEST: usize = 8_192;

/// Pieces that the formats are made of, and numbers at their edges.
const WORDS: [&[u8]; 48] = [
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
];

/// Marsaglia's xorshift64*: enough to choose mutations, and the same everywhere.
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

/// One to eight small changes, now and then with a piece of another input.
fn mutated(random: &mut Random, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut data = corpus[random.below(corpus.len())].clone();
    for _ in 0..=random.below(8) {
        let at = random.below(data.len() + 1);
        let end = (at + 1 + random.below(16)).min(data.len());
        match random.below(7) {
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

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a whole number"))
}

fn fuzz(name: &str) {
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
    for round in 0..setting("RANPACE_FUZZ_ROUNDS", ROUNDS) {
        survive(&format!("round {round} of seed {seed}"), &mutated(&mut random, &corpus));
    }
}

#[test]
fn trace() {
    fuzz("trace");
}

#[test]
fn log() {
    fuzz("log");
}

#[test]
fn scenario() {
    fuzz("scenario");
}

#[test]
fn vary() {
    fuzz("vary");
}

#[test]
fn algorithm() {
    fuzz("algorithm");
}

#[test]
fn units() {
    fuzz("units");
}
