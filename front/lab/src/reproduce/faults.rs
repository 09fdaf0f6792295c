//! What mechanisms at the edge give and cost, and what they lose by radio information that is late, rare, wrong, false, or
//! stops. Ours: nothing of it is published.
//!
//! A **group** of flows are those whose names are the group's, or begin so and go on after a blank or a dot. A **row** of faults
//! are the points whose labels are the same up to " drop": the same fault with several seeds, each beside the run of the plain
//! transport with that seed. All shares are of sums over the seeds, so that what varies from seed to seed weighs little.
//!
//! The rule that rows are judged by (issue 5): once its fallback time is over, a mechanism has at least [`ENOUGH`] of the
//! goodput of its plain transport, unless its p95 delay is at most [`HALVED`] of the plain one's. Delay is the time in the
//! bottleneck, and that in a proxy on top of it.
//!
//! Where reports stop within a run (places `from`, and `until` where they come again), the run is judged in **parts**: before,
//! without, and with them again, each from the fallback time after its change on, and each by its own goodput and its own p95
//! delay beside the plain ones of the same seconds. Over all of them the goodput of one would be held against the delay of
//! another. A part's p95 delay is that of the series' rows (means over a sampling interval), weighted by what was delivered in them.

use std::collections::BTreeMap;

use ranpace_sim::{FlowResult, RunResult};
use serde::Deserialize;

use super::cells::{Absent, Cell, Cells};
use super::measured::Measured;
use super::tables::Figures;
use crate::figure::{Figure, Flows, Scope, Values, Window, is_in_group};
use crate::figures::{Quantity, number};
use crate::plot::{Axis, Frame, Line, LinePlot, Palette, PlotError};
use crate::report::Plate;
use crate::stats;

/// Share of the plain transport's goodput that a mechanism must have.
const ENOUGH: f64 = 0.9;
/// Share of the plain transport's p95 delay that excuses less.
const HALVED: f64 = 0.5;
/// Over which time goodput is a mean where it is asked how long it is too low: shorter means are those of single losses.
const MEAN_OVER_S: f64 = 1.0;

/// A mechanism under faults of its radio information, beside its plain transport.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Faults {
    /// The scheme of the plain transport; it has a point for each drop.
    pub plain: String,
    /// The flows that are compared.
    flows: String,
    /// The mechanism's stated fallback time in seconds.
    fallback_s: f64,
    /// It is so many periods of the feed, where that is longer.
    #[serde(default)]
    periods: f64,
    /// Groups of points; all points if there are none.
    #[serde(default)]
    at: Vec<String>,
    /// Goodput must be enough whatever the delay.
    #[serde(default)]
    goodput_alone: bool,
}

/// A row: one fault, over all drops.
#[derive(Clone, Debug)]
struct Fault {
    label: String,
    /// Of the first of its runs: `delay`, `period` and `error` among them.
    places: Values,
    /// Goodput, mean over the drops, in bit/s.
    goodput: f64,
    /// The same over the plain one.
    ratio: f64,
    /// The same once the fallback time is over.
    after: f64,
    /// p95 delay, mean over the drops, in seconds.
    delay: f64,
    /// The same over the plain one.
    delay_ratio: f64,
    /// Longest time in which goodput is too low, in seconds.
    longest: f64,
    /// The parts that are judged where reports stop; none where they do not.
    parts: Vec<Part>,
    /// A small delay is no excuse.
    goodput_alone: bool,
}

/// A part of the runs of a fault: before reports stop, without them, with them again.
#[derive(Clone, Debug)]
struct Part {
    label: String,
    /// Goodput over the plain one.
    ratio: f64,
    /// p95 delay in seconds, and over the plain one.
    delay: f64,
    delay_ratio: f64,
}

/// Whether a goodput and a delay, over the plain ones, keep the rule. What is no number does not.
fn keeps(goodput: f64, delay: f64) -> bool {
    goodput >= ENOUGH || delay <= HALVED
}

impl Part {
    fn breaks(&self) -> bool {
        !keeps(self.ratio, self.delay_ratio)
    }
}

impl Fault {
    fn breaks(&self) -> bool {
        if self.parts.is_empty() {
            let delay = if self.goodput_alone { f64::NAN } else { self.delay_ratio };
            return !keeps(self.after, delay);
        }
        self.parts.iter().any(Part::breaks)
    }

    /// What is judged: labels with goodput and p95 delay over the plain ones.
    fn judged(&self) -> Vec<(String, f64, f64)> {
        if self.parts.is_empty() {
            return vec![(self.label.clone(), self.after, self.delay_ratio)];
        }
        let of = |part: &Part| (format!("{}, {}", self.label, part.label), part.ratio, part.delay_ratio);
        self.parts.iter().map(of).collect()
    }
}

/// Whether a point is in one of these groups: the first word of its label.
fn is_at(point: &str, groups: &[String]) -> bool {
    let word = point.split(' ').next().unwrap_or(point);
    groups.is_empty() || groups.iter().any(|group| group == word)
}

/// What flows of a group have delivered by each row of their series: the times, and the sum in bytes.
fn delivered(run: &RunResult, group: &str) -> Result<(Vec<f64>, Vec<f64>), Absent> {
    let nothing = || Absent::Nothing(format!("a run has no series of {group}"));
    let mut all: Option<(Vec<f64>, Vec<f64>)> = None;
    for flow in run.flows.iter().filter(|flow| is_in_group(flow, group)) {
        let times = flow.series.get("time_s").ok_or_else(nothing)?;
        let bytes = flow.series.get("delivered_bytes").ok_or_else(nothing)?;
        let (_, sum) = all.get_or_insert_with(|| (times.to_vec(), vec![0.0; times.len()]));
        for (sum, bytes) in sum.iter_mut().zip(bytes) {
            *sum += if bytes.is_finite() { *bytes } else { 0.0 };
        }
    }
    all.ok_or_else(nothing)
}

/// A cumulative sum at a time: the last row up to it.
fn at(times: &[f64], sum: &[f64], time: f64) -> f64 {
    let rows = times.partition_point(|row| *row <= time + 1e-9);
    rows.checked_sub(1).and_then(|row| sum.get(row)).copied().unwrap_or(0.0)
}

/// The value below which 95 % of the weight is; NaN without any.
fn p95(mut weighted: Vec<(f64, f64)>) -> f64 {
    weighted.retain(|(value, weight)| value.is_finite() && *weight > 0.0);
    weighted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut left = 0.95 * weighted.iter().map(|(_, weight)| weight).sum::<f64>();
    for (value, weight) in &weighted {
        left -= weight;
        if left <= 0.0 {
            return *value;
        }
    }
    weighted.last().map_or(f64::NAN, |(value, _)| *value)
}

/// p95 delay of a group between two times: of each flow by the rows of its series, over the flows by what they delivered.
fn delay_between(run: &RunResult, group: &str, from: f64, to: f64) -> f64 {
    let of = |flow: &FlowResult| {
        let column = |name: &str| flow.series.get(name).unwrap_or(&[]);
        let proxy = column("proxy_delay_s");
        let (mut rows, mut before) = (Vec::new(), 0.0);
        let own = column("time_s").iter().zip(column("delivered_bytes")).zip(column("queueing_delay_mean_s"));
        for (row, ((time, bytes), delay)) in own.enumerate() {
            let bytes = if bytes.is_finite() { *bytes } else { before };
            if *time > from + 1e-9 && *time <= to + 1e-9 {
                let proxy = proxy.get(row).copied().filter(|delay| delay.is_finite()).unwrap_or(0.0);
                rows.push((delay + proxy, bytes - before));
            }
            before = bytes;
        }
        let weight: f64 = rows.iter().map(|(_, bytes)| bytes).sum();
        (p95(rows), weight)
    };
    let flows =
        run.flows.iter().filter(|flow| is_in_group(flow, group)).map(of).filter(|(_, weight)| *weight > 0.0);
    stats::weighted_mean(flows).unwrap_or(f64::NAN)
}

/// The times that are judged where reports stop at `stop` and come again at `again` (zero: they do not), each from the fallback
/// time after its beginning on.
fn parts(stop: f64, again: f64, end: f64, fallback: f64) -> Vec<(String, f64, f64)> {
    if stop <= 0.0 {
        return Vec::new();
    }
    let again = if again > stop { again } else { end };
    let all = [
        (format!("until {stop} s"), 0.0, stop),
        (format!("{stop} to {again} s"), stop, again),
        (format!("from {again} s on"), again, end),
    ];
    let mut all: Vec<_> = all.into_iter().map(|(label, from, to)| (label, from + fallback, to)).collect();
    all.retain(|(_, from, to)| from < to);
    all
}

/// The longest time, from `from` on, in which the mean of [`MEAN_OVER_S`] is always below [`ENOUGH`] of the plain one.
fn longest(times: &[f64], own: &[f64], plain: &[f64], from: f64) -> f64 {
    let (mut begun, mut longest): (Option<f64>, f64) = (None, 0.0);
    let mut before = from + MEAN_OVER_S;
    for time in times.iter().copied().filter(|time| *time >= from + MEAN_OVER_S) {
        let of = |sum: &[f64]| at(times, sum, time) - at(times, sum, time - MEAN_OVER_S);
        if of(own) < ENOUGH * of(plain) {
            let since = *begun.get_or_insert(before);
            longest = longest.max(time - since);
        } else {
            begun = None;
        }
        before = time;
    }
    longest
}

impl Faults {
    fn rows(&self, scheme: &str, cells: &Cells) -> Result<Vec<Fault>, Absent> {
        let mut plain: BTreeMap<String, &Cell> = BTreeMap::new();
        for (_, cell) in cells.of(&self.plain, &[])? {
            plain.insert(cell.places.get("drop").cloned().unwrap_or_default(), cell);
        }
        let mut rows: Vec<(String, Vec<(&Cell, &Cell)>)> = Vec::new();
        for (point, cell) in cells.of(scheme, &[])? {
            if !is_at(point, &self.at) {
                continue;
            }
            let drop = cell.places.get("drop").cloned().unwrap_or_default();
            let Some(other) = plain.get(&drop).copied() else {
                return Err(Absent::Nothing(format!("{} is not played in drop {drop}", self.plain)));
            };
            let label = point.split(" drop ").next().unwrap_or(point).to_owned();
            match rows.iter_mut().find(|(own, _)| *own == label) {
                Some((_, pairs)) => pairs.push((cell, other)),
                None => rows.push((label, vec![(cell, other)])),
            }
        }
        rows.into_iter().map(|(label, pairs)| self.row(label, &pairs)).collect()
    }

    fn row(&self, label: String, pairs: &[(&Cell, &Cell)]) -> Result<Fault, Absent> {
        let nothing = || Absent::Nothing("there are no such runs".to_owned());
        let (first, _) = pairs.first().ok_or_else(nothing)?;
        let place = |name: &str| first.number(name).unwrap_or(0.0);
        let from = place("from");
        // Where reports are dropped, what comes has a longer period.
        let period = place("period") * place("every").max(1.0);
        let fallback = self.fallback_s.max(self.periods * period);
        let (mut own, mut plain, mut times) = (Vec::new(), Vec::new(), Vec::new());
        let (mut delays, mut plain_delays) = (Vec::new(), Vec::new());
        let add = |sum: &mut Vec<f64>, bytes: Vec<f64>| {
            sum.resize(bytes.len(), 0.0);
            sum.iter_mut().zip(bytes).for_each(|(sum, bytes)| *sum += bytes);
        };
        let wait_p95 = Figure::named("wait_p95").ok_or_else(nothing)?;
        let group = Flows::Group(self.flows.clone());
        for (cell, other) in pairs {
            let (rows, bytes) = delivered(&cell.run, &self.flows)?;
            times = rows;
            add(&mut own, bytes);
            add(&mut plain, delivered(&other.run, &self.flows)?.1);
            let delay = |cell: &Cell| {
                wait_p95.single(&Scope::new(&cell.run, &cell.places, &group, Window::default()))
            };
            delays.push(delay(cell));
            plain_delays.push(delay(other));
        }
        let end = times.last().copied().unwrap_or(0.0);
        let since = |sum: &[f64], from: f64| at(&times, sum, end) - at(&times, sum, from);
        let mean = |values: &[f64]| stats::mean(values).unwrap_or(f64::NAN);
        let part = |(label, from, to): (String, f64, f64)| {
            let between = |sum: &[f64]| at(&times, sum, to) - at(&times, sum, from);
            let delay = |cell: &Cell| delay_between(&cell.run, &self.flows, from, to);
            let (own_delays, plain_delays): (Vec<f64>, Vec<f64>) =
                pairs.iter().map(|(cell, other)| (delay(cell), delay(other))).unzip();
            let (delay, plain_delay) = (mean(&own_delays), mean(&plain_delays));
            Part { label, ratio: between(&own) / between(&plain), delay, delay_ratio: delay / plain_delay }
        };
        Ok(Fault {
            label,
            places: first.places.clone(),
            goodput: 8.0 * since(&own, 0.0) / end / pairs.len() as f64,
            ratio: since(&own, 0.0) / since(&plain, 0.0),
            after: since(&own, from + fallback) / since(&plain, from + fallback),
            delay: mean(&delays),
            delay_ratio: mean(&delays) / mean(&plain_delays),
            longest: longest(&times, &own, &plain, from),
            goodput_alone: self.goodput_alone,
            parts: parts(from, place("until"), end, fallback).into_iter().map(part).collect(),
        })
    }

    /// Number of rows in which a scheme breaks the rule.
    pub fn broken(&self, of: &[String], cells: &Cells) -> Result<Measured, Absent> {
        let mut rows = Vec::new();
        for scheme in of {
            rows.extend(self.rows(scheme, cells)?);
        }
        let judged = rows.iter().flat_map(Fault::judged);
        let Some((label, goodput, delay)) = judged.min_by(|a, b| a.1.total_cmp(&b.1)) else {
            return Err(Absent::Nothing("there are no such runs".to_owned()));
        };
        let broken: Vec<&Fault> = rows.iter().filter(|row| row.breaks()).collect();
        let named: Vec<&str> = broken.iter().map(|row| row.label.as_str()).take(3).collect();
        let names = match (broken.len(), named.is_empty()) {
            (_, true) => String::new(),
            (count, false) if count > named.len() => format!(" ({}, ...)", named.join("; ")),
            _ => format!(" ({})", named.join("; ")),
        };
        let text = format!(
            "{} of {}{names}; least goodput {} with {} of the delay ({})",
            broken.len(),
            rows.len(),
            number(goodput),
            number(delay),
            label
        );
        Ok(Measured { value: broken.len() as f64, text })
    }

    /// Rows with the places `delay`, `period` and `error` as a table for each error; the others, and all of them for the report,
    /// as lists.
    pub fn tables(&self, title: &str, scheme: &str, cells: &Cells) -> Vec<Figures> {
        let Ok(rows) = self.rows(scheme, cells) else { return Vec::new() };
        let (grid, others): (Vec<Fault>, Vec<Fault>) =
            rows.into_iter().partition(|row| row.label.starts_with("grid"));
        let mut tables = Vec::new();
        for error in values(&grid, "error") {
            let own: Vec<&Fault> = grid.iter().filter(|row| place(row, "error") == error).collect();
            tables.push(matrix(&format!("{title}, {scheme}: {}", rightness(&error)), &own));
        }
        if !grid.is_empty() {
            let title = format!("{title}, {scheme}: all of the grid");
            tables.push(Figures { report_only: true, ..list(title, &grid) });
        }
        if !others.is_empty() {
            tables.push(list(format!("{title}, {scheme}"), &others));
        }
        tables
    }

    /// Goodput and delay over the feed's delay, a line for each period, of the grid's rows with the first error.
    pub fn plates(&self, title: &str, scheme: &str, cells: &Cells) -> Result<Vec<Plate>, PlotError> {
        let mut rows = self.rows(scheme, cells).unwrap_or_default();
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
            plates.push(Plate { svg, caption });
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

/// How right reports are whose `error` is so.
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

/// "0.97 / 0.31", goodput and p95 delay over the plain ones, with a mark where the rule is broken.
fn matrix(title: &str, rows: &[&Fault]) -> Figures {
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
    Figures { title, head, rows, report_only: false }
}

fn list(title: String, rows: &[Fault]) -> Figures {
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
    Figures { title, head, rows: rows.collect(), report_only: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;
    use ranpace_sim::Column;

    /// A run of 10 s in rows of 100 ms with a flow that has `rate` bytes a row, half of it from 5 s on if it `fails`.
    fn run(rate: f64, fails: bool) -> RunResult {
        let mut run = synthetic::run("cubic", 1);
        run.flows[0].name = "own one".to_owned();
        let column = |name: &str, values: Vec<f64>| Column { name: name.to_owned(), values };
        let part = |row: usize| if fails && row > 50 { rate / 2.0 } else { rate };
        let mut sum = 0.0;
        let bytes = (1..=100).map(|row| {
            sum += part(row);
            sum
        });
        run.flows[0].series.columns = vec![
            column("delivered_bytes", bytes.collect()),
            column("time_s", (1..=100).map(|row| f64::from(row) / 10.0).collect()),
        ];
        run
    }

    fn cells(fails: bool) -> Cells {
        let mut cells = Cells::default();
        for drop in ["1", "2"] {
            let of_drop = [("drop", drop)];
            let places = |pairs: &[(&str, &str)]| -> Values {
                let all = pairs.iter().chain(&of_drop);
                all.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
            };
            cells.enter(
                "plain",
                &format!("plain drop {drop}"),
                Ok(Cell::new(places(&[]), run(100.0, false))),
            );
            let own = places(&[("from", "5s"), ("period", "8ms")]);
            cells.enter("own", &format!("stopped drop {drop}"), Ok(Cell::new(own, run(100.0, fails))));
        }
        cells
    }

    fn faults() -> Faults {
        let (plain, flows) = ("plain".to_owned(), "own".to_owned());
        Faults { plain, flows, fallback_s: 1.0, periods: 3.0, at: Vec::new(), goodput_alone: false }
    }

    #[test]
    fn what_halves_its_goodput_for_good_breaks_the_rule() {
        let row = &faults().rows("own", &cells(true)).unwrap()[0];
        assert_eq!(row.label, "stopped");
        assert!((row.ratio - 0.75).abs() < 1e-9 && (row.after - 0.5).abs() < 1e-9, "{row:?}");
        // The mean over a second is below 0.9 from 0.2 s after the change on.
        assert!((row.longest - 4.0).abs() < 0.2, "{row:?}");
        assert!(row.breaks(), "the delay is the same");
        let whole = Fault { delay_ratio: 0.5, parts: Vec::new(), ..row.clone() };
        assert!(!whole.breaks(), "half of the delay excuses it");
        assert!(Fault { goodput_alone: true, ..whole }.breaks(), "unless goodput alone counts");
        let broken = |fails| faults().broken(&["own".to_owned()], &cells(fails)).unwrap().value;
        assert_eq!((broken(true), broken(false)), (1.0, 0.0));
    }

    /// What is late while reports are away has the plain one's goodput, what is slow while they are there has an eighth of its
    /// delay: each part alone keeps the rule, and so does the whole.
    #[test]
    fn runs_in_which_reports_stop_and_come_again_are_judged_in_parts() {
        let run = |rates: [f64; 3], delays: [f64; 3]| {
            let mut run = run(100.0, false);
            let part = |row: usize| usize::from(row >= 40) + usize::from(row >= 70);
            let mut sum = 0.0;
            let bytes = (0..100).map(|row| {
                sum += rates[part(row)];
                sum
            });
            let values = bytes.collect();
            run.flows[0].series.columns[0].values = values;
            let values = (0..100).map(|row| delays[part(row)]).collect();
            let column = Column { name: "queueing_delay_mean_s".to_owned(), values };
            run.flows[0].series.columns.push(column);
            run
        };
        let judge = |rates, delays| {
            let mut cells = Cells::default();
            let places = |pairs: &[(&str, &str)]| -> Values {
                pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
            };
            let plain = Cell::new(places(&[("drop", "1")]), run([100.0; 3], [0.8; 3]));
            cells.enter("plain", "none drop 1", Ok(plain));
            let own = places(&[("drop", "1"), ("from", "4s"), ("until", "7s"), ("period", "8ms")]);
            cells.enter("own", "stopped drop 1", Ok(Cell::new(own, run(rates, delays))));
            faults().rows("own", &cells).unwrap().remove(0)
        };
        let row = judge([60.0, 100.0, 60.0], [0.1, 0.8, 0.1]);
        let labels: Vec<&str> = row.parts.iter().map(|part| part.label.as_str()).collect();
        assert_eq!(labels, ["until 4 s", "4 to 7 s", "from 7 s on"]);
        for (part, (ratio, delay)) in row.parts.iter().zip([(0.6, 0.125), (1.0, 1.0), (0.6, 0.125)]) {
            assert!((part.ratio - ratio).abs() < 1e-9 && (part.delay_ratio - delay).abs() < 1e-9, "{part:?}");
        }
        assert!(!row.breaks());
        assert!(judge([60.0, 80.0, 60.0], [0.1, 0.8, 0.1]).breaks(), "too little without reports");
        assert!(judge([60.0, 100.0, 60.0], [0.1, 0.8, 0.5]).breaks(), "too late with them again");
        // A fallback time that leaves nothing of a part leaves the part out.
        assert_eq!(parts(4.0, 5.0, 10.0, 1.2).len(), 2);
        assert_eq!(parts(0.0, 0.0, 10.0, 1.2).len(), 0);
        assert_eq!(parts(4.0, 0.0, 10.0, 1.2).len(), 2, "for good");
        // Rows count by what they delivered.
        assert_eq!(p95((1..=100).map(|value| (f64::from(value), 1.0)).collect()), 95.0);
        assert_eq!(p95(vec![(1.0, 99.0), (9.0, 1.0)]), 1.0);
        assert!(p95(vec![(1.0, 0.0)]).is_nan());
    }
}
