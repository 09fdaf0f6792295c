//! Runs and measures for the tests of figures.
#![allow(clippy::unwrap_used)] // a test may

use ranpace_sim::{Column, RunResult};
use ranpace_units::Time;
use serde::Deserialize;

use super::{Figure, Flows, Scope, Values, Window};
use crate::reproduce::{Absent, Measure, Measured, PlayedRun, Results};
use crate::synthetic;

/// A column whose values are computed from the row number.
pub(super) fn column(name: &str, rows: usize, value: impl Fn(usize) -> f64) -> Column {
    Column { name: name.to_owned(), values: (0..rows).map(value).collect() }
}

/// Places of a run.
pub(super) fn places(pairs: &[(&str, &str)]) -> Values {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// A run of one flow with these columns, with a row every 10 ms.
pub(super) fn run(rows: usize, mut columns: Vec<Column>) -> RunResult {
    let mut run = synthetic::run("cdbe", 1);
    columns.insert(0, column("time_s", rows, |row| (row + 1) as f64 / 100.0));
    run.flows[0].series.columns = columns;
    run.flows[0].totals.first_sent = Some(Time::ZERO);
    run.end = Time::from_millis(rows as u64 * 10);
    run
}

/// The first value of a figure.
pub(super) fn value(figure: &str, run: &RunResult, at: &[(&str, &str)]) -> f64 {
    let places = places(at);
    let scope = Scope::new(run, &places, &Flows::All, Window::default());
    Figure::named(figure).unwrap().values(&scope).unwrap()[0]
}

/// A measure of the scheme "x", whose runs at the points 0, 1, ... are these.
pub(super) fn measure(keys: &str, runs: Vec<(Values, RunResult)>) -> Result<Measured, Absent> {
    #[derive(Deserialize)]
    struct Wrapper {
        measure: Measure,
    }
    let mut results = Results::default();
    for (index, (places, run)) in runs.into_iter().enumerate() {
        results.enter("x", &index.to_string(), Ok(PlayedRun::new(places, run)));
    }
    let text = format!("measure = {{ of = \"x\", {keys} }}");
    toml_edit::de::from_str::<Wrapper>(&text).unwrap().measure.of(&results)
}
