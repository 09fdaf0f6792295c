//! The figures of downloads: a row per URL, as a table and as JSON.

use ranpace_fetch::{Http, Measured};
use ranpace_lab::Quantity;
use ranpace_lab::stats::{Estimate, estimate};
use ranpace_lab::table::TextTable;
use serde::Serialize;

use super::plan::Downloads;

/// A mean over downloads, with half the width of its 95 % confidence interval.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Mean {
    /// `null` without a download.
    mean: Option<f64>,
    /// `null` below two.
    ci95: Option<f64>,
}

impl Mean {
    fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let Estimate { mean, ci95, .. } = estimate(values);
        Self { mean: mean.is_finite().then_some(mean), ci95 }
    }

    /// The mean; NaN if there is none.
    pub fn value(&self) -> f64 {
        self.mean.unwrap_or(f64::NAN)
    }
}

/// The figures of a URL.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Its name.
    pub label: String,
    /// The URL.
    pub url: String,
    /// Downloads that came whole.
    pub downloads: usize,
    /// Those that failed, and why.
    pub failed: Vec<String>,
    /// End of the handshake.
    pub handshake_s: Mean,
    /// First byte of the content.
    pub first_byte_s: Mean,
    /// Last byte.
    pub completion_s: Mean,
    /// Content over the time to its last byte.
    pub goodput_bit_s: Mean,
    /// Each download.
    pub each: Vec<One>,
}

/// The figures of a download.
#[derive(Clone, Debug, Serialize)]
pub struct One {
    http: &'static str,
    bytes: u64,
    resumed_from_bytes: u64,
    handshake_s: f64,
    first_byte_s: f64,
    /// Last byte.
    pub completion_s: f64,
    goodput_bit_s: f64,
    rtt_s: Option<f64>,
    reports: Option<u64>,
    digest_compared: bool,
}

impl Row {
    /// The figures of these downloads.
    pub fn of(downloads: &Downloads) -> Self {
        let each: Vec<One> = downloads.whole.iter().map(One::of).collect();
        let mean = |figure: fn(&One) -> f64| Mean::of(each.iter().map(figure));
        Self {
            label: downloads.label.clone(),
            url: downloads.url.clone(),
            downloads: each.len(),
            failed: downloads.failed.clone(),
            handshake_s: mean(|one| one.handshake_s),
            first_byte_s: mean(|one| one.first_byte_s),
            completion_s: mean(|one| one.completion_s),
            goodput_bit_s: mean(|one| one.goodput_bit_s),
            each,
        }
    }

    /// Content of its downloads, in bytes.
    fn bytes(&self) -> f64 {
        self.each.iter().map(|one| one.bytes as f64).sum()
    }
}

impl One {
    fn of(measured: &Measured) -> Self {
        Self {
            http: if measured.http == Http::Three { "3" } else { "1.1" },
            bytes: measured.bytes,
            resumed_from_bytes: measured.resumed_from,
            handshake_s: measured.handshake.as_secs_f64(),
            first_byte_s: measured.first_byte.as_secs_f64(),
            completion_s: measured.end.as_secs_f64(),
            goodput_bit_s: measured.goodput(),
            rtt_s: measured.rtt.map(|rtt| rtt.as_secs_f64()),
            reports: measured.reports,
            digest_compared: measured.digest_compared,
        }
    }
}

/// A column of the table.
pub struct Column {
    /// Its title.
    pub title: &'static str,
    /// What it measures.
    pub quantity: Quantity,
    /// Its values.
    pub of: fn(&Row) -> Mean,
}

/// The columns of means.
pub const COLUMNS: [Column; 4] = [
    Column { title: "handshake", quantity: Quantity::Time, of: |row| row.handshake_s },
    Column { title: "first byte", quantity: Quantity::Time, of: |row| row.first_byte_s },
    Column { title: "completion", quantity: Quantity::Time, of: |row| row.completion_s },
    Column { title: "goodput", quantity: Quantity::Rate, of: |row| row.goodput_bit_s },
];

/// Titles, units and cells of the table, for terminal and report.
pub fn cells(rows: &[Row]) -> (Vec<(String, String)>, Vec<Vec<String>>) {
    let size = Quantity::Size.unit(rows.iter().map(Row::bytes));
    let units: Vec<_> = COLUMNS
        .iter()
        .map(|column| column.quantity.unit(rows.iter().map(|row| (column.of)(row).value())))
        .collect();
    let has_failed = rows.iter().any(|row| !row.failed.is_empty());
    let has_reports = rows.iter().any(|row| row.each.iter().any(|one| one.reports.is_some()));
    let mut head = vec![("download".to_owned(), String::new()), ("whole".to_owned(), String::new())];
    head.extend(has_failed.then(|| ("failed".to_owned(), String::new())));
    head.push(("content".to_owned(), size.name.to_owned()));
    head.extend(
        COLUMNS.iter().zip(&units).map(|(column, unit)| (column.title.to_owned(), unit.name.to_owned())),
    );
    head.extend(has_reports.then(|| ("reports".to_owned(), String::new())));
    let row = |row: &Row| {
        let mut cells = vec![row.label.clone(), row.downloads.to_string()];
        cells.extend(has_failed.then(|| row.failed.len().to_string()));
        cells.push(size.show(row.bytes()));
        cells.extend(COLUMNS.iter().zip(&units).map(|(column, unit)| {
            let mean = (column.of)(row);
            unit.show_with(mean.value(), mean.ci95)
        }));
        cells.extend(has_reports.then(|| {
            let counts: Vec<u64> = row.each.iter().filter_map(|one| one.reports).collect();
            if counts.is_empty() { "–".to_owned() } else { counts.iter().sum::<u64>().to_string() }
        }));
        cells
    };
    (head, rows.iter().map(row).collect())
}

/// The table for the terminal.
pub fn table(rows: &[Row]) -> TextTable {
    let (head, cells) = cells(rows);
    let mut table = TextTable::new(head);
    cells.into_iter().for_each(|cells| table.push(cells));
    table
}
