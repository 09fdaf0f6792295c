//! Mechanisms under faults as tables and plots.

use super::{Fault, Faults, Part};
use crate::figures::Quantity;
use crate::plot::{Axis, Frame, Line, LinePlot, Palette, PlotError};
use crate::report::CaptionedPlot;
use crate::reproduce::figure_table::FigureTable;
use crate::reproduce::results::Results;

impl Faults {
    /// Rows with the places `delay`, `period` and `error` as a table for each error; the others, and all of them for the report, as
    /// lists.
    pub fn tables(&self, title: &str, scheme: &str, results: &Results) -> Vec<FigureTable> {
        let Ok(rows) = self.rows(scheme, results) else { return Vec::new() };
        let (grid, others): (Vec<Fault>, Vec<Fault>) =
            rows.into_iter().partition(|row| row.label.starts_with("grid"));
        let mut tables = Vec::new();
        for error in values(&grid, "error") {
            let own: Vec<&Fault> = grid.iter().filter(|row| place(row, "error") == error).collect();
            tables.push(matrix(&format!("{title}, {scheme}: {}", rightness(&error)), &own));
        }
        if !grid.is_empty() {
            let title = format!("{title}, {scheme}: all of the grid");
            tables.push(FigureTable { report_only: true, ..list(title, &grid) });
        }
        if !others.is_empty() {
            tables.push(list(format!("{title}, {scheme}"), &others));
        }
        tables
    }

    /// Goodput and delay over the feed's delay, a line for each period, from the grid's rows with the first error.
    pub fn plates(
        &self,
        title: &str,
        scheme: &str,
        results: &Results,
    ) -> Result<Vec<CaptionedPlot>, PlotError> {
        let mut rows = self.rows(scheme, results).unwrap_or_default();
        rows.retain(|row| row.label.starts_with("grid"));
        let Some(error) = values(&rows, "error").first().cloned() else { return Ok(Vec::new()) };
        rows.retain(|row| place(row, "error") == error);
        let periods = values(&rows, "period");
        let palette = Palette::of(periods.iter().map(String::as_str));
        let ratios = |row: &Fault| [row.ratio, row.delay_ratio];
        let mut plates = Vec::new();
        for (index, name) in ["goodput over plain", "p95 delay over plain"].into_iter().enumerate() {
            let lines: Vec<Line> = periods
                .iter()
                .map(|period| Line {
                    label: format!("every {period}"),
                    colour: palette.colour(period),
                    dashed: false,
                    points: rows
                        .iter()
                        .filter(|row| place(row, "period") == *period)
                        .map(|row| (seconds(row, "delay"), ratios(row)[index]))
                        .collect(),
                })
                .collect();
            let points = || lines.iter().flat_map(|line| line.points.iter().copied());
            let x = Axis::log("the feed's delay", Quantity::Time, points().map(|point| point.0));
            let y = Axis::from_zero(name, Quantity::Plain, points().map(|point| point.1).chain([1.0]));
            let text = format!("{scheme}: {name}");
            let frame = Frame { size: (760, 300), title: text.clone(), alt: text };
            let svg = LinePlot { frame, x, y, area: None, lines }.svg()?;
            let caption = format!(
                "{title}: {name} of {scheme} by how late radio information is, a line for each period; {}.",
                rightness(&error)
            );
            plates.push(CaptionedPlot { svg, caption });
        }
        Ok(plates)
    }
}

fn place<'a>(row: &'a Fault, name: &str) -> &'a str {
    row.places.get(name).map_or("", String::as_str)
}

fn seconds(row: &Fault, name: &str) -> f64 {
    place(row, name).parse::<ranpace_units::Span>().map_or(f64::NAN, |span| span.as_secs_f64())
}

/// The accuracy of reports with this `error`.
fn rightness(error: &str) -> String {
    match error.parse::<f64>() {
        Ok(share) if share > 0.0 => format!("reports wrong by up to {} %", (100.0 * share).round()),
        _ => "reports as measured".to_owned(),
    }
}

/// The values of a place, sorted.
fn values(rows: &[Fault], name: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for row in rows {
        let value = place(row, name);
        if !found.iter().any(|known| known == value) {
            found.push(value.to_owned());
        }
    }
    found.sort_by(|a, b| {
        let of = |text: &str| {
            text.parse::<ranpace_units::Span>()
                .map_or_else(|_| text.parse().unwrap_or(0.0), |span| span.as_secs_f64())
        };
        of(a).total_cmp(&of(b))
    });
    found
}

/// "0.97 / 0.31", goodput and p95 delay relative to the plain ones, with a mark if the rule is violated.
fn matrix(title: &str, rows: &[&Fault]) -> FigureTable {
    let all: Vec<Fault> = rows.iter().map(|row| (*row).clone()).collect();
    let (delays, periods) = (values(&all, "delay"), values(&all, "period"));
    let mut head = vec![("late by".to_owned(), String::new())];
    head.extend(periods.iter().map(|period| (format!("every {period}"), String::new())));
    let cell = |delay: &str, period: &str| {
        let row = rows.iter().find(|row| place(row, "delay") == delay && place(row, "period") == period);
        row.map_or_else(String::new, |row| {
            let mark = if row.breaks() { " !" } else { "" };
            format!("{:.2} / {:.2}{mark}", row.after, row.delay_ratio)
        })
    };
    let line = |delay: &String| {
        let cells = periods.iter().map(|period| cell(delay, period));
        [delay.clone()].into_iter().chain(cells).collect()
    };
    let rows = delays.iter().map(line).collect();
    let title = format!("{title}: goodput once the fallback time is over / p95 delay, over the plain ones");
    FigureTable { title, head, rows, report_only: false }
}

fn list(title: String, rows: &[Fault]) -> FigureTable {
    let rate = Quantity::Rate.unit(rows.iter().map(|row| row.goodput));
    let time = Quantity::Time.unit(rows.iter().map(|row| row.delay));
    let head = [
        ("", ""),
        ("goodput", rate.name),
        ("over plain", ""),
        ("after fallback", ""),
        ("p95 delay", time.name),
        ("over plain", ""),
        ("too low for", "s"),
        ("rule", ""),
    ];
    let rows = rows.iter().flat_map(|row| {
        let whole = vec![
            row.label.clone(),
            rate.show(row.goodput),
            format!("{:.3}", row.ratio),
            format!("{:.3}", row.after),
            time.show(row.delay),
            format!("{:.3}", row.delay_ratio),
            format!("{:.1}", row.longest),
            if row.breaks() { "broken" } else { "kept" }.to_owned(),
        ];
        let part = |part: &Part| {
            let rule = if part.breaks() { "broken" } else { "kept" };
            vec![
                format!("- {}", part.label),
                String::new(),
                String::new(),
                format!("{:.3}", part.ratio),
                time.show(part.delay),
                format!("{:.3}", part.delay_ratio),
                String::new(),
                rule.to_owned(),
            ]
        };
        [whole].into_iter().chain(row.parts.iter().map(part)).collect::<Vec<_>>()
    });
    let head = head.map(|(title, unit)| (title.to_owned(), unit.to_owned())).to_vec();
    FigureTable { title, head, rows: rows.collect(), report_only: false }
}
