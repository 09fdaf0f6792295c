//! The report of downloads: the table, the distribution of completion times, and the rate over time.

use std::time::Duration;

use maud::{Markup, PreEscaped, html};
use ranpace_lab::plot::{Axis, Frame, Line, LinePlot, Palette, steps};
use ranpace_lab::{PlotError, Quantity, VERSION};

use super::figures::{Row, cells};
use super::plan::{Done, Downloads};

/// Rates are means over a fortieth of the longest download shown, but at least over this.
const LEAST_INTERVAL: Duration = Duration::from_millis(20);
const INTERVALS: u32 = 40;

/// The page.
pub fn page(done: &Done, rows: &[Row], command: &str) -> Result<String, PlotError> {
    let palette = Palette::of(rows.iter().map(|row| row.label.as_str()));
    let (head, cells) = cells(rows);
    let count: usize = rows.iter().map(|row| row.downloads).sum();
    let plots = [
        (
            rates(done, &palette)?,
            "Content that could be read, over time since the first packet of the handshake: of the first download of each row. It is read in order, so that a repaired loss releases much at once.",
        ),
        (
            distribution(rows, &palette)?,
            "Share of the downloads that were whole at or below a time. The further to the left, the faster; the steeper, the less it varies.",
        ),
    ];
    let body = html! {
        header {
            h1 { "Downloads" }
            p.intro { (count) " downloads, each over a connection of its own. Times count from the first packet of the handshake." }
            p.repeat { "Made by" }
            pre.command { code { (command) } }
            @for downloads in &done.all {
                @for why in downloads.failed.iter().take(1) {
                    p.warning role="note" {
                        strong { "Note: " } (downloads.failed.len()) " downloads of " (downloads.label) " failed, such as: " (why)
                    }
                }
            }
        }
        main {
            section {
                div.wide { table {
                    thead { tr { @for (title, unit) in &head { th scope="col" { (title) small { (unit) } } } } }
                    tbody { @for (row, cells) in rows.iter().zip(&cells) { tr {
                        th scope="row" {
                            span.swatch style=(format!("background:{}", palette.colour(&row.label).hex())) {}
                            (row.label)
                        }
                        @for cell in &cells[1..] { td { (cell) } }
                    } } }
                } }
                p.caption { "Means with 95 % confidence intervals, by Student's t. Goodput is the content over the time to its last byte." }
                @for (svg, caption) in &plots { (figure(svg, caption)) }
            }
        }
        footer { "Made by Ranpace " (VERSION) ". These are measurements: another run gives other figures." }
    };
    Ok(ranpace_lab::page("Downloads", &body))
}

fn figure(svg: &str, caption: &str) -> Markup {
    html! { figure { div.card { (PreEscaped(svg)) } figcaption { (caption) } } }
}

fn rates(done: &Done, palette: &Palette) -> Result<String, PlotError> {
    let shown: Vec<_> =
        done.all.iter().filter_map(|all: &Downloads| Some((&all.label, all.whole.first()?))).collect();
    let longest = shown.iter().map(|(_, one)| one.end).max().unwrap_or_default();
    let interval = (longest / INTERVALS).max(LEAST_INTERVAL);
    let lines: Vec<Line> = (shown.iter())
        .map(|(label, one)| {
            // A rate belongs to the interval before its time.
            let (mut points, mut start) = (Vec::new(), 0.0);
            for (end, rate) in one.rates.rates(interval) {
                points.push((start, rate));
                start = end;
            }
            points.push((start, 0.0));
            let points = steps(&points);
            Line { label: (*label).clone(), colour: palette.colour(label), dashed: false, points }
        })
        .collect();
    let all = || lines.iter().flat_map(|line| line.points.iter());
    LinePlot {
        frame: Frame { size: (900, 330), title: "Rate".to_owned(), alt: "Rate over time".to_owned() },
        x: Axis::from_zero("time", Quantity::Time, all().map(|point| point.0)),
        y: Axis::from_zero("rate", Quantity::Rate, all().map(|point| point.1)),
        area: None,
        lines,
    }
    .svg()
}

fn distribution(rows: &[Row], palette: &Palette) -> Result<String, PlotError> {
    let lines: Vec<Line> = rows
        .iter()
        .map(|row| {
            let mut times: Vec<f64> = row.each.iter().map(|one| one.completion_s).collect();
            times.sort_by(f64::total_cmp);
            let count = times.len() as f64;
            let shares = times.iter().enumerate().map(|(place, time)| (*time, (place + 1) as f64 / count));
            let begin = times.first().map(|time| (*time, 0.0));
            let points = steps(&begin.into_iter().chain(shares).collect::<Vec<_>>());
            Line { label: row.label.clone(), colour: palette.colour(&row.label), dashed: false, points }
        })
        .collect();
    LinePlot {
        frame: Frame {
            size: (900, 330),
            title: "Completion time".to_owned(),
            alt: "Distribution of completion times".to_owned(),
        },
        x: Axis::from_zero(
            "completion time",
            Quantity::Time,
            lines.iter().flat_map(|line| &line.points).map(|point| point.0),
        ),
        y: Axis::linear("share at or below", Quantity::Share, (0.0, 1.0)),
        area: None,
        lines,
    }
    .svg()
}
