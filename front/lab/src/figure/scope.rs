//! Input of a figure: a run, a choice of its flows, a time window, and the values of the run's places.

use std::collections::BTreeMap;

use ranpace_sim::{FlowResult, RunResult};
use ranpace_units::{Bytes, Rate, Span};

/// Texts that go into a scenario, by the name of their place.
pub type Values = BTreeMap<String, String>;

/// The flows that a figure covers.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Flows {
    /// All but plain sources ("udp").
    #[default]
    All,
    /// The flows with this name, including plain sources.
    Named(String),
    /// Flows with this name, or with a name that begins with it followed by a blank or a dot; no plain sources.
    Group(String),
}

impl Flows {
    fn has(&self, flow: &FlowResult) -> bool {
        match self {
            Self::All => flow.cc != "udp",
            Self::Named(name) => flow.name == *name,
            Self::Group(group) => flow.cc != "udp" && is_in_group(flow, group),
        }
    }
}

/// The part of the run that a figure covers. Times are in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Window {
    /// From this time on.
    pub from: Option<f64>,
    /// Up to this time.
    pub until: Option<f64>,
    /// The last seconds of the run.
    pub last: Option<f64>,
    /// From this long after the last flow has joined.
    pub after_join: Option<f64>,
    /// While all flows but plain sources are active.
    pub while_all: bool,
    /// Averaging time of rates.
    pub smooth: Option<f64>,
}

/// The input of a figure.
pub struct Scope<'a> {
    /// The run.
    pub run: &'a RunResult,
    /// The values of its places.
    pub places: &'a Values,
    /// The chosen flows.
    pub flows: Vec<&'a FlowResult>,
    /// The part of the run.
    pub window: Window,
}

/// No places.
static NOWHERE: Values = Values::new();

impl<'a> Scope<'a> {
    /// All flows of a run but plain sources.
    pub fn of(run: &'a RunResult) -> Self {
        Self::new(run, &NOWHERE, &Flows::All, Window::default())
    }

    /// Chosen flows of a run.
    pub fn new(run: &'a RunResult, places: &'a Values, flows: &Flows, window: Window) -> Self {
        let flows = run.flows.iter().filter(|flow| flows.has(flow)).collect();
        Self { run, places, flows, window }
    }

    /// The first flow of the run, of any kind.
    pub fn first(&self) -> Result<&'a FlowResult, String> {
        self.run.flows.first().ok_or_else(|| "the run has no flow".to_owned())
    }

    /// The value of a place as a number: in seconds, bytes or bit/s, or a plain number.
    pub fn place(&self, name: &str) -> Result<f64, String> {
        place_number(self.places, name)
    }

    /// Returns whether RTTs of split flows are measured as their sockets see them.
    pub fn sees_sockets(&self) -> bool {
        self.places.get("rtts").is_some_and(|rtts| rtts == "sockets")
    }
}

/// The value of a place as a number: in seconds, bytes or bit/s, or a plain number.
pub fn place_number(places: &Values, name: &str) -> Result<f64, String> {
    let text = places.get(name).ok_or_else(|| format!("no value {name:?}"))?;
    number(text).ok_or_else(|| format!("{name} = {text:?} is not a number"))
}

/// "20ms", "150KB", "12Mbit/s" or "1.5" in base units.
fn number(text: &str) -> Option<f64> {
    let span = || text.parse::<Span>().ok().map(Span::as_secs_f64);
    let bytes = || text.parse::<Bytes>().ok().map(Bytes::as_f64);
    let rate = || text.parse::<Rate>().ok().map(Rate::as_f64);
    text.parse::<f64>().ok().or_else(span).or_else(bytes).or_else(rate)
}

/// Returns whether a flow is of a group.
pub fn is_in_group(flow: &FlowResult, group: &str) -> bool {
    let rest = flow.name.strip_prefix(group);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '.']))
}

/// A run with the flows of a group alone.
pub fn of_group(run: &RunResult, group: &str) -> RunResult {
    let flows = run.flows.iter().filter(|flow| is_in_group(flow, group)).cloned().collect();
    RunResult { flows, ..run.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    #[test]
    fn places_are_numbers_in_base_units() {
        for (text, expected) in [
            ("25ms", Some(0.025)),
            ("1.5", Some(1.5)),
            ("150KB", Some(150_000.0)),
            ("12Mbit/s", Some(12e6)),
            ("x", None),
        ] {
            assert_eq!(number(text), expected, "{text}");
        }
    }

    #[test]
    fn group_matches_exact_name_or_prefix() {
        let mut flow = synthetic::run("cubic", 1).flows.remove(0);
        for (name, expected) in
            [("up", true), ("up one", true), ("up.2", true), ("upper", false), ("a up", false)]
        {
            flow.name = name.to_owned();
            assert_eq!(is_in_group(&flow, "up"), expected, "{name}");
        }
    }
}
