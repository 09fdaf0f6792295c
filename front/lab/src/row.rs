//! One line of a comparison: an algorithm's figures over all its flows and seeds.

use ranpace_sim::{FlowResult, RunResult};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::figure::{Figure, Scope};
use crate::figures::Quantity;
use crate::stats::{self, Estimate};

/// The figures of one algorithm, a value for each of [`COLUMNS`]. In JSON a column has two keys: its own, `null` if there is no
/// value, and one with `_ci95`, half the width of the 95 % confidence interval over the seeds, `null` for a single one. Over the
/// seeds, every figure is the plain mean.
#[derive(Clone, Debug, PartialEq)]
pub struct CompareRow {
    /// The algorithm.
    pub cc: String,
    /// Runs.
    pub seeds: usize,
    /// Flows per run.
    pub flows: usize,
    values: Vec<Estimate>,
}

/// One column of a comparison.
#[derive(Clone, Copy)]
pub struct Column {
    /// Its key in JSON.
    pub key: &'static str,
    /// Short title.
    pub title: &'static str,
    /// Name of the figure.
    figure: &'static str,
    /// Whether more is better.
    pub more_is_better: bool,
}

const fn more(key: &'static str, title: &'static str, figure: &'static str) -> Column {
    Column { key, title, figure, more_is_better: true }
}

const fn less(key: &'static str, title: &'static str, figure: &'static str) -> Column {
    Column { key, title, figure, more_is_better: false }
}

/// All columns, in display order.
pub const COLUMNS: &[Column] = &[
    more("goodput_bit_s", "goodput", "joint_goodput"),
    more("utilisation", "utilisation", "joint_utilisation"),
    less("delay_mean_s", "delay mean", "delay_mean"),
    less("delay_p50_s", "delay p50", "delay_p50"),
    less("delay_p95_s", "delay p95", "delay_p95"),
    less("delay_p99_s", "delay p99", "delay_p99"),
    less("rtt_mean_s", "RTT mean", "rtt_mean"),
    less("rtt_p95_s", "RTT p95", "rtt_p95"),
    less("jitter_s", "jitter J1", "jitter_ewma"),
    less("jitter_mean_deviation_s", "jitter J2", "jitter_deviation"),
    less("loss_rate", "loss", "loss"),
    less("retransmission_rate", "retransmitted", "retransmitted"),
    more(JAIN, "Jain index", "jain_goodput"),
    less("completion_mean_s", "completion", "completion_finished"),
];

/// A single flow has no fairness: this column is empty for it.
const JAIN: &str = "jain";

impl Column {
    /// The column's figure; a test checks that it exists.
    fn figure(&self) -> Option<Figure> {
        Figure::named(self.figure)
    }

    /// Its description, in a sentence.
    pub fn meaning(&self) -> &'static str {
        self.figure().map_or("", |figure| figure.entry().about)
    }

    /// The quantity that it measures.
    pub fn quantity(&self) -> Quantity {
        self.figure().map_or(Quantity::Plain, Figure::quantity)
    }

    /// Value and interval in a row, as displayed.
    pub fn of(&self, row: &CompareRow) -> (f64, Option<f64>) {
        if self.key == JAIN && row.flows < 2 {
            return (f64::NAN, None);
        }
        (row.value(self.key), row.ci95(self.key))
    }
}

impl CompareRow {
    /// For runs of the same scenario with different seeds: all flows but the plain sources ("udp").
    pub fn of(label: impl Into<String>, runs: &[&RunResult]) -> Self {
        Self::of_flows(label, runs, |flow| flow.cc != "udp")
    }

    /// Like [`Self::of`], over chosen flows; for several algorithms in one run.
    pub fn of_flows(
        label: impl Into<String>,
        runs: &[&RunResult],
        chosen: impl Fn(&FlowResult) -> bool,
    ) -> Self {
        let of_run = |run: &&RunResult| run.flows.iter().filter(|flow| chosen(flow)).count();
        let flows = runs.first().map_or(0, of_run);
        let scopes = runs.iter().map(|run| Scope {
            flows: run.flows.iter().filter(|flow| chosen(flow)).collect(),
            ..Scope::of(run)
        });
        Self::of_scopes(label.into(), &scopes.collect::<Vec<_>>(), flows)
    }

    /// For one flow of a run. Its cost does not depend on the other flows.
    pub fn of_flow(label: impl Into<String>, run: &RunResult, flow: &FlowResult) -> Self {
        Self::of_scopes(label.into(), &[Scope { flows: vec![flow], ..Scope::of(run) }], 1)
    }

    /// For the chosen flows of a run for each seed, the same number in each.
    fn of_scopes(cc: String, scopes: &[Scope<'_>], flows: usize) -> Self {
        let value = |column: &Column| {
            let figure = column.figure();
            stats::estimate(scopes.iter().map(|scope| figure.map_or(f64::NAN, |figure| figure.single(scope))))
        };
        Self { cc, seeds: scopes.len(), flows, values: COLUMNS.iter().map(value).collect() }
    }

    fn estimate(&self, key: &str) -> Option<&Estimate> {
        self.values.get(COLUMNS.iter().position(|column| column.key == key)?)
    }

    /// The value of the column with this key; NaN if there is none.
    pub fn value(&self, key: &str) -> f64 {
        self.estimate(key).map_or(f64::NAN, |estimate| estimate.mean)
    }

    /// Half the width of its 95 % interval.
    pub fn ci95(&self, key: &str) -> Option<f64> {
        self.estimate(key)?.ci95
    }

    /// With another value of a column, for tests.
    #[cfg(test)]
    pub(crate) fn with(mut self, key: &str, value: f64) -> Self {
        let index = COLUMNS.iter().position(|column| column.key == key).unwrap();
        self.values[index].mean = value;
        self
    }
}

impl Serialize for CompareRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3 + 2 * COLUMNS.len()))?;
        map.serialize_entry("cc", &self.cc)?;
        map.serialize_entry("seeds", &self.seeds)?;
        map.serialize_entry("flows", &self.flows)?;
        for (column, estimate) in COLUMNS.iter().zip(&self.values) {
            map.serialize_entry(column.key, &estimate.mean)?;
            map.serialize_entry(&format!("{}_ci95", column.key), &estimate.ci95)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for CompareRow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Keys {
            cc: String,
            seeds: usize,
            flows: usize,
            #[serde(flatten)]
            values: std::collections::BTreeMap<String, Option<f64>>,
        }
        let Keys { cc, seeds, flows, values } = Keys::deserialize(deserializer)?;
        let value = |key: &str| values.get(key).copied().flatten();
        let estimate = |column: &Column| Estimate {
            mean: value(column.key).unwrap_or(f64::NAN),
            ci95: value(&format!("{}_ci95", column.key)),
            count: seeds,
        };
        Ok(Self { cc, seeds, flows, values: COLUMNS.iter().map(estimate).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats;
    use crate::synthetic;
    use ranpace_units::{Bytes, Span};

    #[test]
    fn each_column_has_a_figure() {
        for column in COLUMNS {
            assert!(column.figure().is_some(), "{}", column.key);
        }
    }

    #[test]
    fn one_flow_and_one_seed_is_that_flow() {
        let run = synthetic::run("cubic", 1);
        let row = CompareRow::of("cubic", &[&run]);
        let flow = &run.flows[0];
        // The flow's goodput is in whole bits per second.
        assert!((row.value("goodput_bit_s") - flow.goodput.as_f64()).abs() < 1.0);
        assert!((row.value("delay_p99_s") - flow.queueing_delay.p99.as_secs_f64()).abs() < 1e-15);
        assert!((row.value("utilisation") - run.links[0].utilisation.unwrap()).abs() < 1e-6);
        assert_eq!((row.value("jain"), row.seeds, row.flows, row.ci95("goodput_bit_s")), (1.0, 1, 1, None));
    }

    #[test]
    fn users_of_a_cell_share_it() {
        let mut run = crate::radio::sample::run(2);
        let mut second = run.flows[0].clone();
        second.bottleneck = Some(3);
        run.flows.push(second);
        for (link, capacity) in [(1, 1_000), (3, 500)] {
            let link = &mut run.links[link];
            (link.departed, link.capacity) = (Bytes::new(250), Some(Bytes::new(capacity)));
        }
        assert_eq!(CompareRow::of("cubic", &[&run]).value("utilisation"), 0.75);
    }

    #[test]
    fn flows_add_up_and_are_weighted_by_their_packets() {
        let mut run = synthetic::run_of(&["cubic", "cubic", "udp"], 1);
        for (index, flow) in run.flows.iter_mut().enumerate() {
            let weight = index as u64 * 2 + 1;
            flow.queueing_delay.count = weight;
            flow.queueing_delay.mean = Span::from_millis(10 * weight);
            (flow.sent_packets, flow.dropped_packets) = (100 * weight, 1);
        }
        let row = CompareRow::of("cubic", &[&run]);
        assert_eq!(row.flows, 2);
        // The second flow came 4 s later, but counts over the first one's minute.
        let sum = run.flows[0].delivered.as_f64() + run.flows[1].delivered.as_f64();
        assert!((row.value("goodput_bit_s") - sum * 8.0 / 60.0).abs() < 1.0);
        assert!((row.value("delay_mean_s") - (1.0 * 0.01 + 3.0 * 0.03) / 4.0).abs() < 1e-12);
        assert_eq!(row.value("loss_rate"), 2.0 / 400.0);
    }

    #[test]
    fn seeds_give_an_interval() {
        let runs: Vec<_> = (1..=5).map(|seed| synthetic::run("cubic", seed)).collect();
        let row = CompareRow::of("cubic", &runs.iter().collect::<Vec<_>>());
        let goodputs: Vec<f64> = runs.iter().map(|run| run.flows[0].goodput.as_f64()).collect();
        let expected = stats::ci95(&goodputs).unwrap();
        assert!((row.ci95("goodput_bit_s").unwrap() - expected).abs() < 2.0);
        assert_eq!(row.seeds, 5);
    }

    #[test]
    fn empty_input_gives_empty_figures_through_json() {
        let row = CompareRow::of("none", &[]);
        assert!(row.value("goodput_bit_s").is_nan() && row.value("utilisation").is_nan() && row.flows == 0);
        let text = serde_json::to_string(&row).unwrap();
        assert!(text.contains(r#""goodput_bit_s":null"#));
        let found: CompareRow = serde_json::from_str(&text).unwrap();
        assert!(found.value("goodput_bit_s").is_nan());
    }

    #[test]
    fn unlimited_links_have_no_utilisation() {
        let mut run = synthetic::run("cubic", 1);
        run.links[0].capacity = None;
        assert!(CompareRow::of("cubic", &[&run]).value("utilisation").is_nan());
    }
}
