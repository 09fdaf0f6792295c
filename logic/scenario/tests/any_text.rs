//! Any text gives a scenario or an error with a position, and never a panic.
#![allow(clippy::unwrap_used)] // allowed in tests

use std::sync::Arc;

use proptest::prelude::*;
use ranpace_link::Trace;
use ranpace_scenario::{TraceSource, parse, vary};

const PAGE: &str = include_str!("../../../docs/scenarios.md");
/// Cells with every key.
const EVERY_KEY: &str = include_str!("every_key_of_cells.toml");

/// The examples of the reference page, and fragments that they lack.
fn seeds() -> Vec<String> {
    let mut seeds: Vec<String> =
        PAGE.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect();
    seeds.push(
        "duration = '9s'\nlink = [{from='a', to='b', rate='unlimited', loss={kind='list', packets=[1], smallest='99B'}}]\n\
         [[link]]\nfrom='b'\nto='a'\nrate='1bit/s'\nreorder={probability=0.5,delay='1s'}\n[link.queue]\nkind='pie'\n\
         [[flow]]\nfrom='a'\nto='b'\ncc='reno'\nstop='1s'\nworkload={kind='web',page='1B'}\nmtu='100B'\n\
         [[change]]\nat='1s'\nflow='flow1'\ntarget='1ms'\n"
            .to_owned(),
    );
    seeds.push(EVERY_KEY.to_owned());
    seeds
}

/// Boundary values, all valid TOML.
const VALUES: &[&str] = &[
    "0",
    "-1",
    "1",
    "0.5",
    "nan",
    "-inf",
    "1e308",
    "9223372036854775807",
    "\"18446744073709551615\"",
    "\"0s\"",
    "\"-5s\"",
    "\"1s\"",
    "\"584y\"",
    "\"18446744073s\"",
    "\"1ns\"",
    "\"0bit/s\"",
    "\"1bit/s\"",
    "\"unlimited\"",
    "\"18446744073709551615B\"",
    "\"1KB\"",
    "\"100 packets\"",
    "\"\"",
    "[]",
    "{}",
    "[[]]",
    "[{}]",
    "true",
    "2020-01-01",
    "\"é\\u0000\"",
    "99999",
    "\"server\"",
    "\"client\"",
    "\"cubic+cubic:x\"",
    "\"cubic:::\"",
    "\"pie\"",
    "\"udp\"",
    "\"bulk\"",
    "{ kind = \"list\", packets = [1, 1] }",
    "{ kind = \"cbr\", rate = \"1bit/s\" }",
    "[\"down\"]",
    "\"bottleneck\"",
    "\"nr\"",
    "\"lte\"",
    "\"ns3\"",
    "\"zhong-lte-ch6\"",
    "\"diarra-mmwave-nlos\"",
    "\"0MHz\"",
    "\"20MHz\"",
    "\"1e9GHz\"",
    "\"-300dBm\"",
    "\"0m/s\"",
    "\"UUU\"",
    "\"DDDSUUDDDD\"",
    "[1, nan]",
    "[1, 2, 3]",
    "{ kind = \"codel\" }",
    "{ kind = \"recorded\", file = \"drive.csv\" }",
    "{ radius = \"-1m\" }",
    "[{ rlc = \"um\" }, { buffer = \"1B\" }]",
];

/// Fragments of TOML.
const WORDS: &[&str] = &[
    "[[link]]",
    "[[flow]]",
    "[[change]]",
    "[[cell]]",
    "[[user]]",
    "[link]",
    "back = {}",
    "count = 99999",
    "duplex = true",
    "seed",
    "=",
    "\n",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "'''",
    "#",
    ".",
    ",",
    "kind",
    "queue",
    "path = [\"down\"]",
    "cc",
    "tcp.mtu",
    "\u{feff}",
    "\r",
    "\t",
    "𝄞",
    "0",
    "\"1s\"",
];

/// Keys that can be varied, and some that cannot.
const KEYS: &[&str] = &[
    "duration",
    "warmup",
    "seed",
    "name",
    "sample",
    "link.rate",
    "link.trace",
    "link.scale",
    "link.down.rate",
    "link.from",
    "link.back",
    "link.back.queue",
    "link.back.rate",
    "link.back.trace",
    "link.queue",
    "link.queue.kind",
    "link.queue.limit",
    "link.loss",
    "link.loss.kind",
    "link.jitter",
    "link.jitter.max",
    "link.reorder.delay",
    "link.duplex",
    "link.delay",
    "link.name",
    "flow.name",
    "flow.cc",
    "flow.flow1.cc",
    "flow.bulk.count",
    "flow.count",
    "flow.stagger",
    "flow.from",
    "flow.tcp",
    "flow.mtu",
    "flow.tcp.mtu",
    "flow.receive_buffer",
    "flow.workload",
    "flow.workload.size",
    "flow.packet",
    "flow.path",
    "flow.back",
    "flow.transport",
    "flow.stop",
    "flow",
    "flow.",
    "change.at",
    "change.rate",
    "change.link",
    "link.\"a.b\".rate",
    "cell.prbs",
    "cell.bandwidth",
    "cell.preset",
    "cell.radio",
    "cell.scheduler",
    "cell.scheduler.window",
    "cell.cqi_period",
    "cell.rlc_timers",
    "cell.harq.processes",
    "user.count",
    "user.position",
    "user.walk.radius",
    "user.host",
    "user.bearers",
    "flow.bearer",
    "change.to",
    "é",
    "",
];

/// Provides the traces and files of the page.
struct Page;

impl TraceSource for Page {
    fn text(&mut self, name: &str) -> Result<Arc<str>, String> {
        match name {
            "drive.csv" => Ok("time_s,sinr_db\n0,10\n1,nan\n".replace("nan", "3").into()),
            "walk.csv" => Ok("time_s,x_m,y_m\n0,0,0\n5,10,10\n".into()),
            "fading.txt" => Ok("0 1\n".repeat(6).into()),
            _ => Err("not here".to_owned()),
        }
    }
    fn load(&mut self, name: &str) -> Result<Arc<Trace>, String> {
        let known = name.starts_with("Verizon-LTE-short").then(|| Trace::from_millis(1..=100));
        known.ok_or("not here")?.map(Arc::new).map_err(|error| error.to_string())
    }
}

fn check(text: &str) -> Result<(), TestCaseError> {
    match parse(text, "any.toml", &mut Page) {
        Ok(scenario) => {
            for flow in &scenario.flows {
                prop_assert!(flow.from != flow.to);
                let mut here = flow.from;
                for &hop in &flow.path {
                    let (begins, ends) = scenario.ends(hop);
                    prop_assert_eq!(begins, here);
                    here = ends;
                }
                prop_assert_eq!(here, flow.to);
            }
            prop_assert!(scenario.warmup < scenario.duration && !scenario.sample.is_zero());
            prop_assert!(!scenario.flows.is_empty());
            prop_assert!(!scenario.links.is_empty() || !scenario.cells.is_empty());
            for (index, cell) in scenario.cells.iter().enumerate() {
                let users = scenario.users.iter().filter(|user| user.cell == index).count();
                prop_assert_eq!(cell.config.check(users), Ok(()));
            }
            prop_assert!(scenario.users.iter().all(|user| !user.config.bearers.is_empty()));
        }
        Err(error) => {
            prop_assert!(!error.diagnostics.is_empty());
            prop_assert!(error.to_string().starts_with("any.toml:"));
            for diagnostic in &error.diagnostics {
                let position = diagnostic.position.unwrap();
                prop_assert!(position.line >= 1 && position.line <= text.matches('\n').count() + 1);
                prop_assert!(position.column >= 1);
            }
        }
    }
    Ok(())
}

/// Replaces `length` characters at `at` (a fraction of the text) by a word.
fn replace(text: &str, at: f64, length: usize, word: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    let begin = (characters.len() as f64 * at) as usize;
    let end = (begin + length).min(characters.len());
    characters[..begin].iter().copied().chain(word.chars()).chain(characters[end..].iter().copied()).collect()
}

/// Replaces the value of one `key = value` line.
fn revalue(text: &str, at: f64, word: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let keys: Vec<usize> = (0..lines.len()).filter(|&n| lines[n].contains('=')).collect();
    let Some(&chosen) = keys.get((keys.len() as f64 * at) as usize) else { return text.to_owned() };
    let line = |n: usize| match lines[n].split_once('=') {
        Some((key, _)) if n == chosen => format!("{key}= {word}\n"),
        _ => format!("{}\n", lines[n]),
    };
    (0..lines.len()).map(line).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_500) })]

    #[test]
    fn arbitrary_text_is_survived(text in "\\PC{0,200}") {
        check(&text)?;
    }

    #[test]
    fn arbitrary_words_are_survived(words in prop::collection::vec(prop::sample::select(WORDS), 0..40)) {
        check(&words.join(" "))?;
    }

    #[test]
    fn mutated_scenarios_are_survived(
        seed in prop::sample::select(seeds()),
        edits in prop::collection::vec(
            (0..8u8, 0.0..1.0f64, 0..30usize, prop::sample::select(WORDS), prop::sample::select(VALUES)), 0..4),
    ) {
        let mut text = seed;
        for (kind, at, length, word, value) in edits {
            text = if kind == 0 { replace(&text, at, length, word) } else { revalue(&text, at, value) };
        }
        check(&text)?;
    }

    #[test]
    fn varying_anything_to_anything_is_survived(
        seed in prop::sample::select(seeds()),
        key in prop::sample::select(KEYS),
        value in prop_oneof![prop::sample::select(VALUES).prop_map(str::to_owned), "\\PC{0,12}"],
    ) {
        if let Ok(text) = vary(&seed, key, &value) {
            prop_assert!(text.parse::<toml_edit::DocumentMut>().is_ok(), "{}", text);
            check(&text)?;
        }
    }
}
