//! The list of congestion controls, for people and programs.

use std::collections::BTreeMap;

use ranpace_cc::{ALIASES, ALL, DECORATORS, Entry, OptionForm, OptionInfo, OptionKind, Transport};
use serde::Serialize;

/// Algorithms, decorators and short names.
#[derive(Serialize)]
pub struct ControlList {
    /// The algorithms.
    pub algorithms: Vec<ListedControl>,
    /// What may stand behind a `+`.
    pub decorators: Vec<ListedControl>,
    /// Short names, and what they stand for.
    pub short_names: BTreeMap<&'static str, &'static str>,
}

/// An algorithm or a decorator.
#[derive(Serialize)]
pub struct ListedControl {
    /// Its name.
    pub name: &'static str,
    /// A description of one line.
    pub about: &'static str,
    /// The publication.
    pub source: &'static str,
    /// What carries its packets: "tcp" or "datagram".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<&'static str>,
    /// Whether decorators may wrap it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decorators: Option<bool>,
    /// Its options.
    pub options: Vec<ListedOption>,
}

/// An option of a control.
#[derive(Serialize)]
pub struct ListedOption {
    /// Its key.
    pub key: &'static str,
    /// Its values and default, in words.
    pub values: &'static str,
    /// Its effect.
    pub about: &'static str,
    /// The kind of its values: "switch", "choice", "number", "time", "size" or "text".
    pub kind: &'static str,
    /// Its default as it is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<&'static str>,
    /// The words of a choice.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<&'static str>,
    /// The least value: a number, seconds or bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// The largest value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}

impl ListedOption {
    fn new(option: &OptionInfo) -> Self {
        let OptionForm { kind, default } = option.form();
        let (kind, words, bounds) = match kind {
            OptionKind::Switch => ("switch", Vec::new(), (None, None)),
            OptionKind::Choice(words) => ("choice", words, (None, None)),
            OptionKind::Number { low, high } => ("number", Vec::new(), (Some(low), high)),
            OptionKind::Time(bounds) => {
                let seconds = bounds.map(|(low, high)| (low.as_secs_f64(), high.as_secs_f64()));
                ("time", Vec::new(), seconds.unzip())
            }
            OptionKind::Size(bounds) => {
                let bytes = bounds.map(|(low, high)| (low.get() as f64, high.get() as f64));
                ("size", Vec::new(), bytes.unzip())
            }
            OptionKind::Text => ("text", Vec::new(), (None, None)),
        };
        let OptionInfo { key, values, about } = *option;
        Self { key, values, about, kind, default, words, low: bounds.0, high: bounds.1 }
    }
}

/// The listed controls, then those of the caller's `own`.
pub fn controls(own: &[&'static Entry]) -> ControlList {
    let options = |options: &[OptionInfo]| options.iter().map(ListedOption::new).collect();
    let algorithms = ALL.iter().chain(own).map(|entry| ListedControl {
        name: entry.name,
        about: entry.about,
        source: entry.source,
        transport: Some(match entry.transport {
            Transport::Tcp => "tcp",
            Transport::Datagram => "datagram",
        }),
        decorators: Some(entry.loss_based),
        options: options(entry.options),
    });
    let decorators = DECORATORS.iter().map(|decorator| ListedControl {
        name: decorator.name,
        about: decorator.about,
        source: decorator.source,
        transport: None,
        decorators: None,
        options: options(decorator.options),
    });
    ControlList {
        algorithms: algorithms.collect(),
        decorators: decorators.collect(),
        short_names: ALIASES.iter().copied().collect(),
    }
}
