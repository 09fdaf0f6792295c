//! What an option takes, for forms: its kind, bounds and default, read from the words of [`OptionInfo::values`].
//!
//! The words are the only description. They have these forms, behind which a default may follow in brackets:
//! `LOW to HIGH` (numbers, times or sizes), `a whole number from LOW`, `a time`, `a size`, and choices separated by commas or
//! "or", the first of which is the default unless the brackets name another. Everything else is text. A test compares the kinds,
//! bounds and defaults of all options with what the algorithms accept.

use core::str::FromStr;

use ranpace_units::{Bytes, Span};

use crate::options::OptionInfo;

/// What an option takes.
#[derive(Clone, Debug, PartialEq)]
pub struct OptionForm {
    /// The kind of its values.
    pub kind: OptionKind,
    /// The default as it is written; `None` if the words name none.
    pub default: Option<&'static str>,
}

/// The kind of an option's values. Bounds are inclusive, and `None` where the words name none.
#[derive(Clone, Debug, PartialEq)]
pub enum OptionKind {
    /// `on` or `off`.
    Switch,
    /// One of these words.
    Choice(Vec<&'static str>),
    /// A number.
    Number {
        /// The least.
        low: f64,
        /// The largest.
        high: Option<f64>,
    },
    /// A time, such as `50ms`.
    Time(Option<(Span, Span)>),
    /// A size, such as `15KB`.
    Size(Option<(Bytes, Bytes)>),
    /// Text of a form of its own.
    Text,
}

impl OptionInfo {
    /// What it takes.
    pub fn form(&self) -> OptionForm {
        let brackets = self.values.find(" (").into_iter().chain(self.values.find(" [")).min();
        let (values, note) = self.values.split_at(brackets.unwrap_or(self.values.len()));
        // "(0: none)" says what the default means, "[2; guidance: 1.25]" has another one, and "(thesis: off)" only another one.
        let note = note.trim_start_matches([' ', '(', '[']);
        let named = note.split([':', ';', ',', ')', ']']).next().unwrap_or_default();
        let kind = kind(values);
        let default = match &kind {
            OptionKind::Switch | OptionKind::Choice(_) => {
                words(values).find(|word| *word == named).or_else(|| words(values).next())
            }
            OptionKind::Text => None,
            _ => Some(named).filter(|named| named.starts_with(|first: char| first.is_ascii_digit())),
        };
        OptionForm { kind, default }
    }
}

fn words(values: &'static str) -> impl Iterator<Item = &'static str> {
    values.split(", ").flat_map(|part| part.split(" or "))
}

fn kind(values: &'static str) -> OptionKind {
    if let Some(number) = values.strip_prefix("a whole number from ") {
        return number.parse().map_or(OptionKind::Text, |low| OptionKind::Number { low, high: None });
    }
    match values {
        "a time" => return OptionKind::Time(None),
        "a size" => return OptionKind::Size(None),
        _ => {}
    }
    if let Some((low, high)) = bounds::<f64>(values) {
        return OptionKind::Number { low, high: Some(high) };
    }
    if let Some(bounds) = bounds(values) {
        return OptionKind::Time(Some(bounds));
    }
    if let Some(bounds) = bounds(values) {
        return OptionKind::Size(Some(bounds));
    }
    let is_word = |word: &str| !word.is_empty() && !word.contains(' ');
    let all: Vec<&str> = words(values).collect();
    match all.as_slice() {
        ["on", "off"] | ["off", "on"] => OptionKind::Switch,
        [_, _, ..] if all.iter().all(|word| is_word(word)) => OptionKind::Choice(all),
        _ => OptionKind::Text,
    }
}

/// `LOW to HIGH`.
fn bounds<T: FromStr>(values: &str) -> Option<(T, T)> {
    let (low, high) = values.split_once(" to ")?;
    Some((low.parse().ok()?, high.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ALL, Algorithm, DECORATORS};

    fn form(values: &'static str) -> OptionForm {
        OptionInfo { key: "key", values, about: "" }.form()
    }

    #[test]
    fn words_become_kinds_and_defaults() {
        let number = |low, high| OptionKind::Number { low, high };
        for (values, kind, default) in [
            ("0.001 to 100 (410/1024; RFC: 0.4)", number(0.001, Some(100.0)), Some("410/1024")),
            ("1 to 4 [2; guidance: 1.25]", number(1.0, Some(4.0)), Some("2")),
            ("0 to 1000 (0: none)", number(0.0, Some(1000.0)), Some("0")),
            ("0.5 to 1 [0.95] (thesis: 1)", number(0.5, Some(1.0)), Some("0.95")),
            ("a whole number from 1 [5]", number(1.0, None), Some("5")),
            ("a time (0s: never)", OptionKind::Time(None), Some("0s")),
            ("a time [none]", OptionKind::Time(None), None),
            ("1ms to 1s [10ms]", OptionKind::Time(Some((Span::from_millis(1), Span::SECOND))), Some("10ms")),
            (
                "15KB to 1GB (10MB)",
                OptionKind::Size(Some((Bytes::new(15_000), Bytes::new(1_000_000_000)))),
                Some("10MB"),
            ),
            ("off, on", OptionKind::Switch, Some("off")),
            ("on or off [off]", OptionKind::Switch, Some("off")),
            ("on, off (thesis: off)", OptionKind::Switch, Some("on")),
            ("halve, alpha (halve)", OptionKind::Choice(vec!["halve", "alpha"]), Some("halve")),
            (
                "dual, single or off [single]",
                OptionKind::Choice(vec!["dual", "single", "off"]),
                Some("single"),
            ),
            ("formula, or a multiple of it such as x8", OptionKind::Text, None),
            ("measured, or a bit error rate from 0 to 0.001", OptionKind::Text, None),
        ] {
            assert_eq!(form(values), OptionForm { kind, default }, "{values}");
        }
    }

    /// The words of all options are true: values within bounds are accepted, and others refused.
    #[test]
    fn algorithms_accept_what_the_words_of_their_options_say() {
        let own = ALL.iter().map(|entry| (entry.name.to_owned(), entry.options));
        let wraps = DECORATORS.iter().map(|entry| (format!("cubic+{}", entry.name), entry.options));
        for (name, options) in own.chain(wraps) {
            for option in options {
                let key = option.key;
                // The bound of one option may be another option.
                let beside = if key == "min_alpha" { ":max_alpha=100" } else { "" };
                let accepts =
                    |value: &str| Algorithm::parse(&format!("{name}:{key}={value}{beside}"), &[]).is_ok();
                let says = format!("{name}: {key}: {}", option.values);
                let OptionForm { kind, default } = option.form();
                assert!(!accepts("nonsense"), "{says}");
                if let Some(default) = default.filter(|default| !default.contains('/')) {
                    assert!(accepts(default), "{says}: the default {default}");
                }
                match kind {
                    OptionKind::Switch => assert!(accepts("on") && accepts("off"), "{says}"),
                    OptionKind::Choice(all) => assert!(all.iter().all(|word| accepts(word)), "{says}"),
                    OptionKind::Number { low, high } => {
                        assert!(accepts(&low.to_string()), "{says}: {low}");
                        assert!(!accepts(&(low - 1.0).to_string()), "{says}: less than {low}");
                        if let Some(high) = high {
                            assert!(accepts(&high.to_string()), "{says}: {high}");
                            assert!(!accepts(&(high + 1.0).to_string()), "{says}: more than {high}");
                        }
                    }
                    OptionKind::Time(bounds) => {
                        assert!(accepts("20ms"), "{says}");
                        if let Some((low, high)) = bounds {
                            assert!(accepts(&low.to_string()) && accepts(&high.to_string()), "{says}");
                            assert!(!accepts(&(high + Span::SECOND).to_string()), "{says}");
                        }
                    }
                    OptionKind::Size(bounds) => {
                        assert!(accepts("20KB"), "{says}");
                        if let Some((low, high)) = bounds {
                            assert!(accepts(&low.to_string()) && accepts(&high.to_string()), "{says}");
                            assert!(!accepts(&(high + Bytes::new(1)).to_string()), "{says}");
                        }
                    }
                    OptionKind::Text => {
                        assert!(["tbs", "tber", "q_th"].contains(&key), "{says}: no known form")
                    }
                }
            }
        }
    }
}
