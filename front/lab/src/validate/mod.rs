//! Compares models with standards, with theory and with another simulator: `ranpace validate`.
//!
//! A [`Check`] is a function that returns [`Row`]s; [`radio`] lists them, [`run`] runs them. Each file of this folder is a group of
//! checks and has a list `CHECKS`; add a new one to [`radio`]. `docs/validate.md` explains the use, and `docs/fidelity.md` the
//! findings.

mod cell;
mod distance;
mod errors;
mod fading;
mod harq;
mod propagation;
mod reference;
mod rlc;
mod sharing;
mod standards;
pub mod tcp;
mod transport;
mod uplink;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use serde::Serialize;

use crate::Progress;
use crate::table::TextTable;

pub use reference::{NS3_RATE_DISTANCE, RateAtDistance};

/// One figure compared with its expected value; the JSON form is an array of these.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The figure, with its unit.
    pub check: String,
    /// The expected value, in that unit.
    pub expected: f64,
    /// The value found; NaN, which is `null` in JSON, if there was nothing to measure.
    pub measured: f64,
    /// Allowed difference, in the same unit; `None` if the row is only printed.
    pub tolerance: Option<f64>,
    /// Whether the difference is allowed; `None` if the row is only printed.
    pub ok: Option<bool>,
}

impl Row {
    /// A figure that may differ by `tolerance` in either direction.
    pub fn within(check: impl Into<String>, expected: f64, measured: f64, tolerance: f64) -> Self {
        // NaN is never within the tolerance.
        let ok = Some((measured - expected).abs() <= tolerance);
        Self { check: check.into(), expected, measured, tolerance: Some(tolerance), ok }
    }

    /// A figure that may differ by a share of the expected value.
    pub fn within_percent(check: impl Into<String>, expected: f64, measured: f64, percent: f64) -> Self {
        Self::within(check, expected, measured, expected.abs() * percent / 100.0)
    }

    /// A figure that must match exactly.
    pub fn exact(check: impl Into<String>, expected: f64, measured: f64) -> Self {
        Self::within(check, expected, measured, 0.0)
    }

    /// A figure that is printed beside another and not judged.
    pub fn printed(check: impl Into<String>, expected: f64, measured: f64) -> Self {
        Self { check: check.into(), expected, measured, tolerance: None, ok: None }
    }

    /// The last column of the table.
    const fn verdict(&self) -> &'static str {
        match self.ok {
            Some(true) => "ok",
            Some(false) => "not ok",
            None => "printed",
        }
    }
}

/// A group of figures that are computed together.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// Description shown while it runs.
    pub name: &'static str,
    /// Computes the rows.
    pub rows: fn() -> Vec<Row>,
}

/// The checks of the radio model, in display order.
pub fn radio() -> Vec<Check> {
    [
        standards::CHECKS,
        propagation::CHECKS,
        fading::CHECKS,
        errors::CHECKS,
        harq::CHECKS,
        rlc::CHECKS,
        sharing::CHECKS,
        uplink::CHECKS,
        distance::CHECKS,
        transport::CHECKS,
    ]
    .concat()
}

/// The findings of the checks.
#[derive(Clone, Debug, Default)]
pub struct Validated {
    /// The rows of the completed checks, in the order of the checks.
    pub rows: Vec<Row>,
    /// Number of checks skipped because they were stopped.
    pub left: usize,
}

/// Runs the checks on this many threads, 0 for one per core. Setting `stop` prevents further checks from starting.
pub fn run(checks: &[Check], threads: usize, stop: &AtomicBool) -> Validated {
    let progress = Progress::new(checks.len() as u64, "checks");
    let (next, found) = (AtomicUsize::new(0), Mutex::new(vec![None; checks.len()]));
    let work = || {
        while let Some((index, check)) = claim(checks, &next).filter(|_| !stop.load(Ordering::Relaxed)) {
            progress.note(check.name);
            let rows = (check.rows)();
            progress.advance(1);
            if let Ok(mut found) = found.lock() {
                found[index] = Some(rows);
            }
        }
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = if threads == 0 { cores } else { threads }.clamp(1, checks.len().max(1));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    // A panic in a thread has already propagated out of the scope, so the lock cannot be poisoned.
    let found = found.into_inner().unwrap_or_default();
    let left = found.iter().filter(|rows| rows.is_none()).count();
    Validated { rows: found.into_iter().flatten().flatten().collect(), left }
}

/// The next check that no thread has taken.
fn claim<'a>(checks: &'a [Check], next: &AtomicUsize) -> Option<(usize, &'a Check)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    Some((index, checks.get(index)?))
}

/// The rows as a table for people.
pub fn table(rows: &[Row]) -> TextTable {
    let head = [("check", ""), ("expected", ""), ("measured", ""), ("tolerance", "±"), ("", "")];
    let mut table = TextTable::new(head.map(|(title, unit)| (title.to_owned(), unit.to_owned())));
    for row in rows {
        let tolerance = row.tolerance.map_or("–".to_owned(), figure);
        let cells = [row.check.clone(), figure(row.expected), figure(row.measured), tolerance];
        table.push(cells.into_iter().chain([row.verdict().to_owned()]).collect());
    }
    table
}

/// Number of rows with each verdict, in words.
pub fn counts(rows: &[Row]) -> String {
    let count = |verdict: &str| rows.iter().filter(|row| row.verdict() == verdict).count();
    let parts = ["ok", "not ok", "printed"].map(|verdict| (verdict, count(verdict)));
    let parts = parts.iter().filter(|(_, count)| *count > 0);
    parts.map(|(verdict, count)| format!("{count} {verdict}")).collect::<Vec<_>>().join(", ")
}

/// A figure with at most four decimals: exact sizes and rates are not rounded, as a column of measurements would be.
fn figure(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let text = format!("{value:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_ok_within_its_tolerance_only() {
        for (case, row, ok, tolerance) in [
            ("inside", Row::within("", 10.0, 10.5, 0.5), Some(true), Some(0.5)),
            ("outside", Row::within("", 10.0, 9.4, 0.5), Some(false), Some(0.5)),
            ("a share", Row::within_percent("", -20.0, -21.0, 5.0), Some(true), Some(1.0)),
            ("another", Row::exact("", 7.0, 7.000_001), Some(false), Some(0.0)),
            ("nothing", Row::within("", 7.0, f64::NAN, 100.0), Some(false), Some(100.0)),
            ("not judged", Row::printed("", 7.0, 9.0), None, None),
        ] {
            assert_eq!((row.ok, row.tolerance), (ok, tolerance), "{case}");
        }
    }

    #[test]
    fn a_row_in_json_has_five_fields() {
        let rows = [Row::within("a, dB", 1.0, 1.5, 0.5), Row::printed("b", 1.0, f64::NAN)];
        let expected = r#"[{"check":"a, dB","expected":1.0,"measured":1.5,"tolerance":0.5,"ok":true},{"check":"b","expected":1.0,"measured":null,"tolerance":null,"ok":null}]"#;
        assert_eq!(serde_json::to_string(&rows).unwrap(), expected);
    }

    #[test]
    fn figures_stand_under_each_other_and_sizes_are_whole() {
        let rows = [
            Row::exact("size, bit", 106_576.0, 106_576.0),
            Row::within("SINR, dB", -6.9, -6.944_44, 0.01),
            Row::printed("order", 0.0, -0.000_01),
        ];
        let expected = "\
check      expected  measured  tolerance
                                       ±
─────────────────────────────────────────────────
size, bit    106576    106576          0  ok
SINR, dB       -6.9   -6.9444       0.01  not ok
order             0         0          –  printed
";
        assert_eq!(table(&rows).to_string(), expected);
        assert_eq!(counts(&rows), "1 ok, 1 not ok, 1 printed");
    }

    #[test]
    fn rows_keep_the_order_of_the_checks_and_a_stop_leaves_the_rest() {
        let one = Check { name: "one", rows: || vec![Row::exact("1", 1.0, 1.0)] };
        let two = Check { name: "two", rows: || vec![Row::exact("2", 2.0, 2.0), Row::exact("3", 3.0, 3.0)] };
        for threads in [0, 1, 2, 9] {
            let found = run(&[one, two, one], threads, &AtomicBool::new(false));
            let names: Vec<_> = found.rows.iter().map(|row| row.check.as_str()).collect();
            assert_eq!((names, found.left), (vec!["1", "2", "3", "1"], 0));
        }
        let stopped = run(&[one, two], 1, &AtomicBool::new(true));
        assert_eq!((stopped.rows.len(), stopped.left), (0, 2));
    }
}
