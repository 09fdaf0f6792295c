//! The results of the comparison of all for people: a table for the terminal, a page with plots, and a page in Markdown.

use core::fmt::Write as _;

use maud::{Markup, PreEscaped, html};

use super::candidates::LEFT_OUT;
use super::situations::Kind;
use super::summary::Relative;
use super::{Measure, Survey};
use crate::figures::{Quantity, Unit};
use crate::pictures::page;
use crate::plot::{Axis, Cloud, Frame, Palette, PlotError, ScatterPlot};
use crate::stats::Estimate;
use crate::table::TextTable;

/// A table: titles with units, and rows whose first cell is a name. Bold cells are in `**` and `**`.
struct Grid {
    title: String,
    about: String,
    head: Vec<[String; 2]>,
    rows: Vec<Vec<String>>,
}

/// The kinds that are summarised relative to CUBIC, with their headings.
const SUMMARISED: [(Kind, &str, &str); 3] = [
    (Kind::Link, "links", "downloads over links"),
    (Kind::CellDown, "cells", "downloads in cells"),
    (Kind::CellUp, "uploads", "uploads in cells"),
];

/// The measures in a column of their own in the summary.
const ALONE: [(Kind, Measure, &str); 3] = [
    (Kind::Beside, Measure::Share, "beside CUBIC"),
    (Kind::Short, Measure::Completion, "1 MB"),
    (Kind::Call, Measure::CallDelay, "call's p95"),
];

impl Survey {
    /// A row for each candidate: what it needs, and its figures over all situations.
    fn summary(&self) -> Grid {
        let relative = SUMMARISED.map(|(kind, ..)| self.relative(kind));
        let mut head = vec![[String::new(), String::new()], ["needs".to_owned(), String::new()]];
        for (_, title, _) in SUMMARISED {
            head.push([format!("{title}: goodput"), "x CUBIC".to_owned()]);
            head.push([format!("{title}: p95 delay"), "x CUBIC".to_owned()]);
        }
        let alone = ALONE.map(|(kind, measure, title)| (self.column(kind, measure), title));
        head.extend(alone.iter().map(|((unit, _), title)| [(*title).to_owned(), unit.name.to_owned()]));
        let rows = (0..self.candidates.len())
            .map(|who| {
                let mut row = vec![self.candidates[who].name.to_owned(), self.candidates[who].needs.words()];
                for of_kind in &relative {
                    let found = of_kind.iter().find(|row| row.who == who);
                    row.extend(found.map_or_else(|| ["–".to_owned(), "–".to_owned()], shown));
                }
                row.extend(alone.iter().map(|((unit, values), _)| show(*unit, values[who])));
                row
            })
            .collect();
        Grid {
            title: "Summary".to_owned(),
            about: format!(
                "Goodput and 95th percentile of the delay over CUBIC's, geometric means of {}, with intervals of 95 % over {} seeds. Bold: \
                 no other has both more goodput and less delay. Beside CUBIC: its share of the goodput, 50 % is fair. 1 MB: mean time of \
                 a file. Call: the 95th percentile of the delay of a call's packets beside a download of the same user.",
                SUMMARISED.map(|(kind, title, _)| format!("{} {title}", self.count(kind))).join(", "),
                self.seeds
            ),
            head,
            rows,
        }
    }

    fn count(&self, kind: Kind) -> usize {
        self.situations.iter().filter(|situation| situation.kind == kind).count()
    }

    /// The unit and the values of a measure, for each candidate, in the only situation of a kind.
    fn column(&self, kind: Kind, measure: Measure) -> (Unit, Vec<Option<Estimate>>) {
        let at = self.situations.iter().position(|situation| situation.kind == kind);
        self.column_at(at, measure)
    }

    fn column_at(&self, at: Option<usize>, measure: Measure) -> (Unit, Vec<Option<Estimate>>) {
        let values: Vec<Option<Estimate>> =
            (0..self.candidates.len()).map(|who| self.estimate(who, at?, measure)).collect();
        let unit = measure.quantity().unit(values.iter().flatten().map(|value| value.mean));
        (unit, values)
    }

    /// A table for each situation.
    fn details(&self) -> Vec<Grid> {
        let of = |at: usize| {
            let situation = &self.situations[at];
            let columns: Vec<(Measure, Unit, Vec<Option<Estimate>>)> = situation
                .measures()
                .iter()
                .map(|measure| {
                    let (unit, values) = self.column_at(Some(at), *measure);
                    (*measure, unit, values)
                })
                // A single flow has no fairness: it is 1 for all.
                .filter(|(measure, ..)| *measure != Measure::Fairness || !situation.name.contains("-1-"))
                .collect();
            let mut head = vec![[String::new(), String::new()]];
            head.extend(
                columns.iter().map(|(measure, unit, _)| [measure.title().to_owned(), unit.name.to_owned()]),
            );
            let rows = (0..self.candidates.len())
                .filter(|who| columns.iter().any(|(.., values)| values[*who].is_some()))
                .map(|who| {
                    let mut row = vec![self.candidates[who].name.to_owned()];
                    row.extend(columns.iter().map(|(_, unit, values)| show(*unit, values[who])));
                    row
                })
                .collect();
            Grid { title: situation.title.clone(), about: String::new(), head, rows }
        };
        (0..self.situations.len()).map(of).collect()
    }

    /// What was left out, for the reader.
    pub fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> =
            LEFT_OUT.iter().map(|(name, why)| format!("{name} is not compared: {why}")).collect();
        if !self.missing.is_empty() {
            notes.push(format!(
                "left out, because the recordings are not there: {}; docs/traces.md says where to get them, --traces where they are",
                self.missing.join(", ")
            ));
        }
        if self.interrupted {
            notes.push("interrupted: only the complete runs are shown".to_owned());
        }
        notes
    }

    /// The summary for the terminal.
    pub fn table(&self) -> TextTable {
        let grid = self.summary();
        let mut table = TextTable::new(grid.head.into_iter().map(|[title, unit]| (title, unit)));
        for row in grid.rows {
            table.push(row.into_iter().map(|cell| cell.replace("**", "")).collect());
        }
        table
    }

    /// Throughput against delay, with the Pareto front; a plot for each kind of situation with a name for its file.
    ///
    /// # Errors
    ///
    /// If a plot cannot be drawn.
    pub fn plots(&self) -> Result<Vec<(&'static str, String)>, PlotError> {
        let names = self.candidates.iter().map(|candidate| candidate.name);
        let palette = Palette::of(names);
        let mut plots = Vec::new();
        for (kind, name, title) in SUMMARISED {
            let rows = self.relative(kind);
            if rows.is_empty() {
                continue;
            }
            let cloud = |row: &Relative| Cloud {
                label: self.candidates[row.who].name.to_owned(),
                colour: palette.colour(self.candidates[row.who].name),
                points: vec![(row.delay.mean, row.goodput.mean)],
            };
            let mut front: Vec<(f64, f64)> = rows
                .iter()
                .filter(|row| row.on_front)
                .map(|row| (row.delay.mean, row.goodput.mean))
                .collect();
            front.sort_by(|a, b| a.0.total_cmp(&b.0));
            let plot = ScatterPlot {
                frame: Frame {
                    size: (1000, 720),
                    title: format!("Goodput against p95 delay, {title}"),
                    alt: format!("Scatter plot of goodput against delay relative to CUBIC, {title}"),
                },
                x: Axis::log(
                    "p95 delay over CUBIC's",
                    Quantity::Plain,
                    rows.iter().map(|row| row.delay.mean),
                )
                .reversed(),
                y: Axis::from_zero(
                    "goodput over CUBIC's",
                    Quantity::Plain,
                    rows.iter().map(|row| row.goodput.mean),
                ),
                clouds: rows.iter().map(cloud).collect(),
                line: front,
                corner: "better ↗".into(),
            };
            plots.push((name, plot.svg()?));
        }
        Ok(plots)
    }

    /// The page.
    ///
    /// # Errors
    ///
    /// If a plot cannot be drawn.
    pub fn report(&self, command: &str) -> Result<String, PlotError> {
        const TITLE: &str = "Which transport for which cell";
        let plots = self.plots()?;
        let body = html! {
            header {
                h1 { (TITLE) }
                p.repeat { "Made by" }
                pre { (command) }
                @for note in self.notes() { p.warning role="note" { strong { "Note: " } (note) } }
            }
            main {
                (self.summary().html())
                @for (_, svg) in &plots {
                    figure {
                        div.card { (PreEscaped(svg)) }
                        figcaption { "Means over situations and seeds, relative to CUBIC. Delay falls to the right: upper right is better. The line is the Pareto front: no other has both more goodput and less delay." }
                    }
                }
                h2 { "Each situation" }
                @for grid in self.details() { (grid.html()) }
            }
            footer { "Made by Ranpace " (crate::version::VERSION) "." }
        };
        Ok(page(TITLE, &body))
    }

    /// The tables in Markdown, for a page of the documentation.
    ///
    /// `pictures` are the plots' names with their files, relative to the page.
    pub fn markdown(&self, pictures: &[(&str, String)]) -> String {
        let mut text = self.summary().markdown();
        for (name, file) in pictures {
            let title =
                SUMMARISED.iter().find(|(_, known, _)| known == name).map_or(*name, |(.., title)| title);
            // Writing to a string cannot fail.
            let _ = writeln!(text, "\n![Goodput against p95 delay, {title}, relative to CUBIC]({file})");
        }
        for grid in self.details() {
            text.push('\n');
            text.push_str(&grid.markdown());
        }
        text
    }
}

/// Goodput and delay of a row of the summary.
fn shown(row: &Relative) -> [String; 2] {
    let unit = Unit { name: "", size: 1.0 };
    [row.goodput, row.delay].map(|value| {
        let text = unit.show_with(value.mean, value.ci95);
        if row.on_front { format!("**{text}**") } else { text }
    })
}

fn show(unit: Unit, value: Option<Estimate>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| unit.show_with(value.mean, value.ci95))
}

impl Grid {
    fn html(&self) -> Markup {
        html! {
            section {
                h3 { (self.title) }
                @if !self.about.is_empty() { p { (self.about) } }
                div.wide { table {
                    thead { tr { @for [title, unit] in &self.head {
                        th scope="col" { (title) @if !unit.is_empty() { " (" (unit) ")" } }
                    } } }
                    tbody { @for row in &self.rows { tr {
                        @for (index, cell) in row.iter().enumerate() {
                            @match (index, cell.strip_prefix("**").and_then(|cell| cell.strip_suffix("**"))) {
                                (0, _) => th scope="row" { (cell) },
                                (_, Some(bold)) => td { strong { (bold) } },
                                (_, None) => td { (cell) },
                            }
                        }
                    } } }
                } }
            }
        }
    }

    fn markdown(&self) -> String {
        let mut text = format!("### {}\n\n", self.title);
        if !self.about.is_empty() {
            text.push_str(&self.about);
            text.push_str("\n\n");
        }
        // Writing to a string cannot fail.
        let line = |text: &mut String, cells: &mut dyn Iterator<Item = String>| {
            let _ = writeln!(text, "| {} |", cells.collect::<Vec<_>>().join(" | "));
        };
        line(
            &mut text,
            &mut self.head.iter().map(|[title, unit]| {
                if unit.is_empty() { title.clone() } else { format!("{title} ({unit})") }
            }),
        );
        let _ = writeln!(text, "|{}", "---|".repeat(self.head.len()));
        for row in &self.rows {
            line(&mut text, &mut row.iter().cloned());
        }
        text
    }
}
