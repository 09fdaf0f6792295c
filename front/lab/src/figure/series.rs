//! Columns of a run's series, and operations on them.

use ranpace_sim::{FlowResult, Series};

use crate::stats;

/// Tolerance for times in seconds, which rows accumulate in steps.
pub(super) const EPSILON: f64 = 1e-6;

/// A column of a flow.
pub(super) fn column<'a>(flow: &'a FlowResult, name: &str) -> Result<&'a [f64], String> {
    flow.series.get(name).ok_or_else(|| format!("the run has no {name}"))
}

/// A column with its times; empty if it is missing.
pub(super) fn rows<'a>(series: &'a Series, column: &str) -> impl Iterator<Item = (f64, f64)> + 'a {
    let times = series.get("time_s").unwrap_or(&[]);
    times.iter().copied().zip(series.get(column).unwrap_or(&[]).iter().copied())
}

/// Rows of the intervals within a window that have a value.
pub(super) fn within<'a>(
    series: &'a Series,
    column: &str,
    (from, until): (f64, f64),
) -> impl Iterator<Item = (f64, f64)> + 'a {
    rows(series, column)
        .filter(move |row| row.0 > from + EPSILON && row.0 <= until + EPSILON && row.1.is_finite())
}

/// Rows after `from` and up to `to`, as indices.
pub(super) fn between(time: &[f64], from: f64, to: f64) -> std::ops::Range<usize> {
    let place = |at: f64| time.partition_point(|time| *time <= at + 1e-9);
    place(from)..place(to)
}

/// Length of a row in seconds.
pub(super) fn step(time: &[f64]) -> Option<f64> {
    Some(time.get(1)? - time.first()?)
}

/// Number of rows in this many seconds, at least one.
pub(super) fn row_count(time: &[f64], seconds: f64) -> Option<usize> {
    Some(((seconds / step(time)?).round() as usize).max(1))
}

/// Moving averages over the last `rows` values, fewer at the beginning.
pub(super) fn trailing(values: &[f64], rows: usize) -> Vec<f64> {
    let mean = |end: usize| stats::mean(&values[(end + 1).saturating_sub(rows)..=end]).unwrap_or(f64::NAN);
    (0..values.len()).map(mean).collect()
}

/// Pearson's correlation; `None` if one of the two does not vary.
pub(super) fn correlation(pairs: &[(f64, f64)]) -> Option<f64> {
    let (xs, ys): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let (x, y) = (stats::mean(&xs)?, stats::mean(&ys)?);
    let sum = |f: &dyn Fn(f64, f64) -> f64| -> f64 { pairs.iter().map(|(a, b)| f(a - x, b - y)).sum() };
    stats::ratio(sum(&|a, b| a * b), (sum(&|a, _| a * a) * sum(&|_, b| b * b)).sqrt())
}

/// The mean; NaN without values.
pub(super) fn mean(values: &[f64]) -> f64 {
    stats::mean(values).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opposite_series_correlate_by_minus_1() {
        assert!((correlation(&[(1.0, 6.0), (2.0, 4.0), (3.0, 2.0)]).unwrap() + 1.0).abs() < 1e-12);
        assert!((correlation(&[(1.0, 5.0), (2.0, 8.0)]).unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(correlation(&[(1.0, 5.0), (2.0, 5.0)]), None);
    }
}
