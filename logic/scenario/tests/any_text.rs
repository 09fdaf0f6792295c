//! Whatever the text, there is a scenario or an error with a place, and never a panic.
#![allow(clippy::unwrap_used)] // a test may

use proptest::prelude::*;
use ranpace_scenario::{parse, vary};

const PAGE: &str = include_str!("../../../docs/scenarios.md");

/// The examples of the reference page, and fragments that they do not have.
fn seeds() -> Vec<String> {
    let mut seeds: Vec<String> =
        PAGE.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect();
    seeds.push(
        "duration = '9s'\nlink = [{from='a', to='b', rate='unlimited', loss={kind='list', packets=[1]}}]\n\
         [[link]]\nfrom='b'\nto='a'\nrate='1bit/s'\nreorder={probability=0.5,delay='1s'}\n[link.queue]\nkind='pie'\n\
         [[flow]]\nfrom='a'\nto='b'\ncc='reno'\nstop='1s'\nworkload={kind='web',page='1B'}\nmtu='100B'\n\
         [[change]]\nat='1s'\nflow='flow1'\ntarget='1ms'\n"
            .to_owned(),
    );
    seeds
}

/// Words that stand in scenarios, and values at the edges.
const WORDS: &[&str] = &[
    "0",
    "-1",
    "1",
    "nan",
    "-inf",
    "1e999",
    "9223372036854775807",
    "\"18446744073709551615\"",
    "\"0s\"",
    "\"-5s\"",
    "\"584y\"",
    "\"18446744073s\"",
    "\"1ns\"",
    "\"0bit/s\"",
    "\"18446744073709551615B\"",
    "\"100 packets\"",
    "\"\"",
    "[]",
    "{}",
    "[[]]",
    "true",
    "2020-01-01",
    "\"é\\u0000\"",
    "[[link]]",
    "[[flow]]",
    "[[change]]",
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
    "\"cubic+cubic:x\"",
    "cc",
    "\"cubic:::\"",
    "tcp.mtu",
    "\u{feff}",
    "\r",
    "\t",
    "𝄞",
];

fn check(text: &str) -> Result<(), TestCaseError> {
    match parse(text, "any.toml", &mut ()) {
        Ok(scenario) => {
            for flow in &scenario.flows {
                prop_assert!(flow.from != flow.to);
                let mut here = flow.from;
                for &link in &flow.path {
                    prop_assert_eq!(scenario.links[link].from, here);
                    here = scenario.links[link].to;
                }
                prop_assert_eq!(here, flow.to);
            }
            prop_assert!(scenario.warmup < scenario.duration && !scenario.sample.is_zero());
            prop_assert!(!scenario.links.is_empty() && !scenario.flows.is_empty());
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

/// Replaces `length` characters at `at` (both as shares of what there is) by a word.
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
            (any::<bool>(), 0.0..1.0f64, 0..30usize, prop::sample::select(WORDS)), 0..4),
    ) {
        let mut text = seed;
        for (is_value, at, length, word) in edits {
            text = if is_value { revalue(&text, at, word) } else { replace(&text, at, length, word) };
        }
        check(&text)?;
    }

    #[test]
    fn varying_anything_to_anything_is_survived(
        seed in prop::sample::select(seeds()),
        key in prop::collection::vec(
            prop::sample::select(&["link", "flow", "change", "down", "flow1", "tcp", "queue", "back", "rate", "cc", "mtu",
                "duration", "workload", "kind", "loss", "\"a.b\"", "", "é", "path"][..]), 1..5),
        value in prop_oneof![prop::sample::select(WORDS).prop_map(str::to_owned), "\\PC{0,12}"],
    ) {
        if let Ok(text) = vary(&seed, &key.join("."), &value) {
            prop_assert!(text.parse::<toml_edit::DocumentMut>().is_ok(), "{}", text);
            check(&text)?;
        }
    }
}
