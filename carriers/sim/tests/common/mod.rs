//! Shared by the simulator's tests: short ways to write and run a scenario.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test file uses some of these; a panic is a failed test"
)]

use std::sync::Arc;

use ranpace_link::{CellularModel, Trace};
use ranpace_scenario::TraceSource;
use ranpace_sim::{FlowResult, RunResult, Simulation};
use ranpace_units::Span;

/// A trace for every name: `steady` has an opportunity every millisecond (12 Mbit/s), `bursty` has bursts and outages, `cellular` is
/// generated: LTE for a minute.
pub struct Traces;

pub fn trace(name: &str) -> Arc<Trace> {
    let millis: Vec<u64> = match name {
        "cellular" => return Arc::new(CellularModel::lte().generate(Span::from_secs(60), 1).unwrap()),
        "steady" => (1..=1_000).collect(),
        // 700 ms of two a millisecond with gaps, then an outage of 300 ms.
        "bursty" => (1..=700_u64)
            .filter(|ms| ms % 7 != 0)
            .flat_map(|ms| [ms, ms])
            .chain(std::iter::once(1_000))
            .collect(),
        _ => panic!("no trace {name:?} in the tests"),
    };
    Arc::new(Trace::from_millis(millis).unwrap())
}

impl TraceSource for Traces {
    fn load(&mut self, name: &str) -> Result<Arc<Trace>, String> {
        Ok(trace(name))
    }
}

/// Runs a scenario; every byte must be accounted for.
#[track_caller]
pub fn play(text: &str) -> RunResult {
    let scenario = ranpace_scenario::parse(text, "test.toml", &mut Traces)
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    let result = Simulation::new(&scenario).run();
    assert!(result.ledger.balances(), "{:?}\n{text}", result.ledger);
    result
}

/// A bottleneck from "a" to "b" with half of the round trip in each direction; the return path is unlimited.
#[derive(Clone, Copy)]
pub struct Path<'a> {
    pub rate: &'a str,
    pub rtt: &'a str,
    /// A queue as TOML.
    pub queue: &'a str,
    /// Further keys of the link, one per line.
    pub link: &'a str,
    /// Top-level keys, one per line.
    pub top: &'a str,
}

impl Default for Path<'_> {
    fn default() -> Self {
        Self {
            rate: "10Mbit/s",
            rtt: "40ms",
            queue: r#"{ kind = "droptail", limit = "1000 packets" }"#,
            link: "",
            top: "duration = \"30s\"",
        }
    }
}

impl Path<'_> {
    /// The scenario's text with these flows: further keys of each, one per line.
    pub fn text(&self, flows: &[&str]) -> String {
        let half = self.rtt.parse::<Span>().unwrap() / 2;
        let Self { rate, queue, link, top, .. } = self;
        let queue = if *rate == "unlimited" { String::new() } else { format!("queue = {queue}") };
        let mut text = format!(
            "{top}\n[[link]]\nname = \"down\"\nfrom = \"a\"\nto = \"b\"\nrate = \"{rate}\"\ndelay = \"{half}\"\n{queue}\n{link}\n\
             [[link]]\nname = \"up\"\nfrom = \"b\"\nto = \"a\"\nrate = \"unlimited\"\ndelay = \"{half}\"\n"
        );
        for flow in flows {
            text += &format!("[[flow]]\nfrom = \"a\"\nto = \"b\"\n{flow}\n");
        }
        text
    }

    #[track_caller]
    pub fn play(&self, flows: &[&str]) -> RunResult {
        play(&self.text(flows))
    }
}

/// A column of a flow's series.
#[track_caller]
pub fn column<'a>(flow: &'a FlowResult, name: &str) -> &'a [f64] {
    flow.series.get(name).unwrap_or_else(|| panic!("no column {name}"))
}

/// The window in segments of 1448 bytes, over time.
pub fn windows(flow: &FlowResult) -> Vec<(f64, f64)> {
    let times = column(flow, "time_s").iter().copied();
    times.zip(column(flow, "cwnd_bytes").iter().map(|bytes| bytes / 1_448.0)).collect()
}

/// Jain's index of fairness.
pub fn jain(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|value| value * value).sum();
    sum * sum / (values.len() as f64 * squares)
}

pub fn goodputs(result: &RunResult) -> Vec<f64> {
    result.flows.iter().map(|flow| flow.goodput.as_f64()).collect()
}

/// Returns whether two figures agree within a share of the second.
pub fn within(found: f64, expected: f64, share: f64) -> bool {
    (found - expected).abs() <= share * expected.abs()
}
