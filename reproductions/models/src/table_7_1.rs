//! Table 7.1 of Zhong's thesis: published and computed values.
//!
//! The computed table matches under assumptions that the text does not state: RTT 300 ms, a queue threshold of 0.2 Mb (the
//! algorithm has 1 Mb), bottlenecks in steps of 1 Mbit/s with both ends of 1 to 150 and 150 to 500 Mbit/s (the text says 0.1
//! Mbit/s), and one round more than 7.11 prints. The shares of loss, k of 351 bottlenecks, admit no other grid.

use ranpace_units::{Rate, Span};
use serde::Serialize;

use super::startup::{Pair, Path, RangeSummary, Startup, StartupView, TABLE_PAIRS};
use super::values::{Bits, mega};
use ranpace_lab::PlotError;
use ranpace_lab::cell_view::{Pictures, View, ViewError};
use ranpace_lab::table::TextTable;

/// The published numbers as printed, in the order of [`TABLE_PAIRS`]: mean queue in Mb over small and over large bottlenecks, and
/// loss in per cent over large ones.
pub const TABLE_7_1: [[&str; 3]; 5] = [
    ["11.37", "33.31", "27.92"],
    ["11.45", "31.37", "26.5"],
    ["13.8", "34.45", "31.91"],
    ["15.04", "38.95", "38.75"],
    ["14.37", "47.2", "47.86"],
];

/// A number of the table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// As printed, in Mb or per cent.
    pub published: &'static str,
    /// As computed, in Mb or per cent.
    pub computed: f64,
    /// Whether they agree to the printed digit.
    pub exact: bool,
}

/// The table, with its assumptions.
#[derive(Clone, Debug, PartialEq)]
pub struct ThesisTable {
    /// A row per pair.
    pub rows: Vec<(Pair, [Entry; 3])>,
    /// The model with the table's parameters.
    pub view: StartupView,
}

impl Entry {
    fn new(published: &'static str, computed: f64) -> Self {
        let places = published.split_once('.').map_or(0, |(_, places)| places.len());
        Self { published, computed, exact: format!("{computed:.places$}") == published }
    }

    /// As computed, rounded to two places.
    pub fn shown(&self) -> String {
        format!("{:.2}", self.computed)
    }
}

impl ThesisTable {
    /// The model with the parameters that reproduce the table.
    pub fn parameters() -> Startup {
        Startup {
            pairs: TABLE_PAIRS.to_vec(),
            path: Path {
                rtt: Span::from_millis(300),
                queue_threshold: Bits::new(200_000),
                buffer: Bits::new(48_000_000),
            },
            from: Rate::from_mbit_per_s(1),
            to: Rate::from_mbit_per_s(500),
            step: Rate::from_mbit_per_s(1),
            each: false,
        }
    }

    /// Computes it.
    pub fn compute() -> Result<Self, ViewError> {
        let view = Self::parameters().view()?;
        let row = |(of, published): (&super::startup::PairOutcomes, &[&'static str; 3])| {
            let ranges: Vec<RangeSummary> = of.ranges();
            let [small, large] = ranges[..] else { return None };
            let computed = [mega(small.mean_queue_bits), mega(large.mean_queue_bits), large.loss * 100.0];
            let entry = |index: usize| Entry::new(published[index], computed[index]);
            Some((of.pair, [entry(0), entry(1), entry(2)]))
        };
        let rows = view.pairs.iter().zip(&TABLE_7_1).filter_map(row).collect();
        Ok(Self { rows, view })
    }

    /// All numbers.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.rows.iter().flat_map(|(_, entries)| entries)
    }

    /// Number of values that agree to the printed digit.
    pub fn exact(&self) -> usize {
        self.entries().filter(|entry| entry.exact).count()
    }
}

/// Rounds to the fastest bottleneck: the thesis's "converge speed".
fn rounds(view: &StartupView, index: usize) -> u32 {
    let last = view.pairs.get(index).and_then(|of| of.outcomes.last());
    last.map_or(0, |(_, outcome)| outcome.rounds)
}

impl View for ThesisTable {
    fn text(&self) -> String {
        let head = [
            ("gain", ""),
            ("initial", "Mbit/s"),
            ("mean queue", "1 to 150"),
            ("published", "Mb"),
            ("mean queue", "150 to 500"),
            ("published", "Mb"),
            ("loss", "150 to 500"),
            ("published", "%"),
            ("rounds", "to 500"),
            ("verdict", ""),
        ];
        let mut table = TextTable::new(head.map(|(title, unit)| (title.to_owned(), unit.to_owned())));
        for (index, (pair, entries)) in self.rows.iter().enumerate() {
            let mut cells = vec![pair.gain.to_string(), super::startup::plain(mega(pair.initial.as_f64()))];
            cells.extend(entries.iter().flat_map(|entry| [entry.shown(), entry.published.to_owned()]));
            cells.push(rounds(&self.view, index).to_string());
            let off: Vec<String> = entries
                .iter()
                .filter(|entry| !entry.exact)
                .map(|entry| format!("{} instead of {}", entry.shown(), entry.published))
                .collect();
            cells.push(if off.is_empty() { "exact".to_owned() } else { off.join("; ") });
            table.push(cells);
        }
        format!(
            "Table 7.1 of Zhong 2020: {}, bottlenecks every {}\n\n{table}\n{} of {} numbers are exact to the printed digit",
            self.view.asked.path.shown(),
            self.view.asked.step,
            self.exact(),
            self.entries().count()
        )
    }

    fn json(&self) -> serde_json::Value {
        let row = |(index, (pair, entries)): (usize, &(Pair, [Entry; 3]))| {
            serde_json::json!({
                "gain": pair.gain,
                "initial_bit_s": pair.initial.bits_per_s(),
                "mean_queue_small_mb": entries[0],
                "mean_queue_large_mb": entries[1],
                "loss_large_percent": entries[2],
                "rounds": rounds(&self.view, index),
            })
        };
        serde_json::json!({
            "model": "startup",
            "table": "7.1",
            "exact": self.exact(),
            "of": self.entries().count(),
            "rows": self.rows.iter().enumerate().map(row).collect::<Vec<_>>(),
        })
    }

    fn pictures(&self) -> Result<Pictures, PlotError> {
        self.view.pictures()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of `cdbev2.md`, section 7.1.
    #[test]
    fn thirteen_of_fifteen_numbers_come_out_and_the_other_two_as_known() {
        let table = ThesisTable::compute().unwrap();
        let expected = [
            ["11.37", "33.31", "27.92"],
            ["11.45", "31.73", "26.50"],
            ["13.80", "34.45", "31.91"],
            ["15.04", "38.95", "38.75"],
            ["14.56", "47.20", "47.86"],
        ];
        assert_eq!(table.rows.len(), 5);
        for ((pair, entries), expected) in table.rows.iter().zip(expected) {
            assert_eq!(entries.map(|entry| entry.shown()), expected.map(str::to_owned), "{pair:?}");
        }
        assert_eq!((table.exact(), table.entries().count()), (13, 15));
        let off: Vec<_> = table.entries().filter(|entry| !entry.exact).map(|entry| entry.published).collect();
        assert_eq!(off, ["31.37", "14.37"]);
    }

    /// Shares of 351 bottlenecks, which confirm the grid; and the rounds to 500 Mbit/s, the "converge speed".
    #[test]
    fn losses_are_shares_of_351_bottlenecks() {
        let table = ThesisTable::compute().unwrap();
        let lost: Vec<f64> = table.rows.iter().map(|(_, entries)| entries[2].computed * 3.51).collect();
        for (lost, expected) in lost.iter().zip([98.0, 93.0, 112.0, 136.0, 168.0]) {
            assert!((lost - expected).abs() < 1e-9, "{lost}");
        }
        assert_eq!([0, 1, 2, 3, 4].map(|index| rounds(&table.view, index)), [9, 9, 8, 7, 7]);
    }

    #[test]
    fn the_table_says_what_is_off() {
        let text = ThesisTable::compute().unwrap().text();
        assert!(text.contains("31.73 instead of 31.37") && text.contains("14.56 instead of 14.37"), "{text}");
        assert!(text.ends_with("13 of 15 numbers are exact to the printed digit"));
    }
}
