//! Figures as tables and plots, for the terminal and for the report.

use std::collections::BTreeMap;

use super::Played;
use super::experiment::{Experiment, PlotSpec, Role, TableSpec};
use super::figure_table::FigureTable;
use super::picture::pictures;
use super::points::ratio;
use super::recordings::Recording;
use super::results::{PlayedRun, Results};
use super::verdict::{Row, for_variant};
use crate::figure::{Figure, of_group};
use crate::figures::{Quantity, number};
use crate::plot::{Axis, Bar, Frame, Line, LinePlot, Palette, PlotError, bars};
use crate::report::{CaptionedPlot, Chapter, Comparison, Report};
use crate::stats;

/// The report of what was played. `command` is what was called to make it.
///
/// # Errors
///
/// If a plot cannot be drawn.
pub fn report(
    all: &[Played],
    missing: &[&Recording],
    quick: bool,
    command: String,
) -> Result<String, PlotError> {
    let chapters = all.iter().map(chapter).collect::<Result<Vec<_>, _>>()?;
    let mut warnings = Vec::new();
    if quick {
        warnings.push(
            "This was a quick look with shorter runs at fewer points; nothing is judged by it.".to_owned(),
        );
    }
    if !missing.is_empty() {
        let names: Vec<&str> = missing.iter().map(|recording| recording.name.as_str()).collect();
        warnings.push(format!("Recordings that were not there: {}.", names.join(", ")));
    }
    let names: Vec<&str> = all.iter().map(|played| played.experiment.id.as_str()).collect();
    let title = match names[..] {
        [one] => format!("Reproduction of {one}"),
        _ => format!("{} reproductions", names.len()),
    };
    let intro =
        "Each published figure is drawn again in its own form, what was published beside what was measured \
        here; then follow the criteria. Everything else is folded."
            .to_owned();
    Report { title, command, intro, chapters, warnings, ..Report::default() }.html()
}

/// The verdicts for a terminal, by experiment. "R" marks robust criteria.
pub fn verdict_text(rows: &[&Row]) -> String {
    let width = |of: fn(&Row) -> &str| rows.iter().map(|row| of(row).chars().count()).max().unwrap_or(0);
    let (criterion, published) = (
        width(|row| &row.criterion).max("criterion".len()),
        width(|row| &row.published).max("published".len()),
    );
    let line = |verdict: &str, robust: &str, text: &str, source: &str, measured: &str| {
        format!("  {verdict:<10}  {robust:<1}  {text:<criterion$}  {source:<published$}  {measured}\n")
    };
    let mut text = line("verdict", "", "criterion", "published", "measured");
    let mut last = "";
    for row in rows {
        if row.experiment != last {
            last = &row.experiment;
            text.push_str(&format!("{last}\n"));
        }
        let robust = if row.robust { "R" } else { "" };
        text.push_str(&line(row.verdict.as_str(), robust, &row.criterion, &row.published, &row.measured));
    }
    text
}

/// The tables that an experiment asks for.
pub fn tables(experiment: &Experiment, results: &Results) -> Vec<FigureTable> {
    let table = |spec: &TableSpec| match (&spec.faults, &spec.to) {
        (Some(faults), _) => {
            let schemes = labels(experiment, &spec.schemes);
            schemes.iter().flat_map(|scheme| faults.tables(&spec.title, scheme, results)).collect()
        }
        (None, _) if !spec.groups.is_empty() => vec![by_groups(experiment, spec, results)],
        (None, Some(to)) => vec![normalised(experiment, spec, to, results)],
        (None, None) => vec![plain(experiment, spec, results)],
    };
    let mut tables: Vec<FigureTable> = experiment.tables.iter().flat_map(table).collect();
    tables.push(variants(experiment, results));
    tables.retain(|table| !table.rows.is_empty());
    tables
}

/// The values of the criteria for the variants of their schemes. Nothing is judged by them.
fn variants(experiment: &Experiment, results: &Results) -> FigureTable {
    let variants: Vec<(&str, &str)> = experiment
        .schemes
        .iter()
        .filter_map(|scheme| Some((scheme.label.as_str(), scheme.variant_of.as_deref()?)))
        .collect();
    let mut rows = Vec::new();
    for criterion in
        experiment.criteria.iter().filter(|criterion| criterion.at_least.or(criterion.at_most).is_some())
    {
        for (label, of) in &variants {
            if let Some(value) = for_variant(criterion, of, label, results) {
                let robust = if criterion.robust { "R" } else { "" };
                rows.push(vec![(*label).to_owned(), value, robust.to_owned(), criterion.id.clone()]);
            }
        }
    }
    let head = ["", "value", "", "criterion"].map(|title| (title.to_owned(), String::new())).to_vec();
    FigureTable {
        title: "The criteria for other variants (not judged)".to_owned(),
        head,
        rows,
        report_only: false,
    }
}

fn labels<'a>(experiment: &'a Experiment, chosen: &'a [String]) -> Vec<&'a str> {
    let all = experiment.schemes.iter().map(|scheme| scheme.label.as_str());
    if chosen.is_empty() { all.collect() } else { chosen.iter().map(String::as_str).collect() }
}

/// Points at which all of these schemes were run and have all their recordings.
fn common(results: &Results, schemes: &[&str]) -> Vec<String> {
    let points = schemes.first().map_or_else(Vec::new, |scheme| results.points(scheme));
    let there = |point: &&str| schemes.iter().all(|scheme| results.at(scheme, point).is_ok());
    points.into_iter().filter(there).map(str::to_owned).collect()
}

fn normalised(experiment: &Experiment, spec: &TableSpec, to: &str, results: &Results) -> FigureTable {
    let mut schemes = labels(experiment, &spec.schemes);
    schemes.retain(|scheme| !results.points(scheme).is_empty());
    let mut points = common(results, &schemes);
    let group = results.group(to, spec.at.as_deref().unwrap_or_default());
    points.retain(|point| group.contains(&point.as_str()));
    let total = group.len();
    let mut head = vec![(String::new(), String::new())];
    for metric in &spec.metrics {
        head.push((metric.title().to_owned(), String::new()));
        if !spec.published.is_empty() {
            head.push(("(published)".to_owned(), String::new()));
        }
    }
    let mut rows = Vec::new();
    for scheme in schemes.iter().filter(|_| !points.is_empty()) {
        let mut row = vec![(*scheme).to_owned()];
        for (index, metric) in spec.metrics.iter().enumerate() {
            let value = ratio(results, *metric, scheme, to, &points, spec.mean).unwrap_or(f64::NAN);
            row.push(number(value));
            if !spec.published.is_empty() {
                let published = spec.published.get(*scheme).and_then(|values| values.get(index));
                row.push(published.map_or_else(String::new, |value| format!("({value})")));
            }
        }
        rows.push(row);
    }
    let over =
        if points.len() == total { format!("{total}") } else { format!("{} of {total}", points.len()) };
    FigureTable {
        title: format!("{} (over {over} points)", spec.title),
        head,
        rows,
        report_only: spec.report_only,
    }
}

/// A row for each scheme: the mean over the points of a group.
fn grouped(experiment: &Experiment, spec: &TableSpec, group: &str, results: &Results) -> FigureTable {
    let schemes = labels(experiment, &spec.schemes);
    let means: Vec<(&str, Vec<f64>, usize)> = schemes
        .iter()
        .filter_map(|scheme| {
            let own: Vec<&PlayedRun> = results
                .group(scheme, group)
                .iter()
                .filter_map(|point| results.at(scheme, point).ok())
                .collect();
            let mean = |metric: &Figure| {
                let known: Vec<f64> =
                    own.iter().map(|run| run.get(*metric)).filter(|value| value.is_finite()).collect();
                stats::mean(&known).unwrap_or(f64::NAN)
            };
            (!own.is_empty()).then(|| (*scheme, spec.metrics.iter().map(mean).collect(), own.len()))
        })
        .collect();
    let units: Vec<_> = spec
        .metrics
        .iter()
        .enumerate()
        .map(|(index, metric)| metric.quantity().unit(means.iter().map(|(_, values, _)| values[index])))
        .collect();
    let mut head = vec![(String::new(), String::new())];
    for (metric, unit) in spec.metrics.iter().zip(&units) {
        head.push((metric.title().to_owned(), unit.name.to_owned()));
        if !spec.published.is_empty() {
            head.push(("(published)".to_owned(), unit.name.to_owned()));
        }
    }
    let rows = means.iter().map(|(scheme, values, _)| {
        let mut row = vec![(*scheme).to_owned()];
        for (index, (value, unit)) in values.iter().zip(&units).enumerate() {
            row.push(unit.show(*value));
            if !spec.published.is_empty() {
                let published = spec.published.get(*scheme).and_then(|values| values.get(index));
                let shown = published.filter(|value| value.is_finite());
                row.push(shown.map_or_else(String::new, |value| format!("({})", unit.show(*value))));
            }
        }
        row
    });
    let count = means.iter().map(|(.., count)| *count).max().unwrap_or(0);
    let title = format!("{} (means over {count} points)", spec.title);
    FigureTable { title, head, rows: rows.collect(), report_only: spec.report_only }
}

/// A row for each scheme and group of flows: the mean over the points.
fn by_groups(experiment: &Experiment, spec: &TableSpec, results: &Results) -> FigureTable {
    let mut rows: Vec<(&str, &str, Vec<f64>)> = Vec::new();
    let mut count = 0;
    for group in &spec.groups {
        for scheme in labels(experiment, &spec.schemes) {
            let points = results.group(scheme, spec.at.as_deref().unwrap_or_default());
            let runs: Vec<_> = points
                .iter()
                .filter_map(|point| results.at(scheme, point).ok())
                .map(|run| of_group(&run.result, group))
                .collect();
            count = count.max(runs.len());
            let mean = |metric: &Figure| {
                let known = runs.iter().map(|run| metric.of(run)).filter(|value| value.is_finite());
                stats::mean(&known.collect::<Vec<_>>()).unwrap_or(f64::NAN)
            };
            if !runs.is_empty() {
                rows.push((group, scheme, spec.metrics.iter().map(mean).collect()));
            }
        }
    }
    let units: Vec<_> = (0..)
        .zip(&spec.metrics)
        .map(|(index, metric): (usize, _)| {
            metric.quantity().unit(rows.iter().map(|(.., values)| values[index]))
        })
        .collect();
    let mut head = vec![("flows".to_owned(), String::new()), (String::new(), String::new())];
    let columns = spec.metrics.iter().zip(&units);
    head.extend(columns.map(|(metric, unit)| (metric.title().to_owned(), unit.name.to_owned())));
    let rows = rows.into_iter().map(|(group, scheme, values)| {
        let figures = values.iter().zip(&units).map(|(value, unit)| unit.show(*value));
        [group.to_owned(), scheme.to_owned()].into_iter().chain(figures).collect()
    });
    let title = format!("{} (means over {count} runs)", spec.title);
    FigureTable { title, head, rows: rows.collect(), report_only: spec.report_only }
}

fn plain(experiment: &Experiment, spec: &TableSpec, results: &Results) -> FigureTable {
    if let Some(group) = &spec.at {
        return grouped(experiment, spec, group, results);
    }
    let chosen = labels(experiment, &spec.schemes);
    let own: Vec<(&str, &str, &PlayedRun)> =
        chosen.iter().flat_map(|label| results.all().filter(move |(scheme, ..)| scheme == label)).collect();
    let units: Vec<_> = spec
        .metrics
        .iter()
        .map(|metric| metric.quantity().unit(own.iter().map(|(.., run)| run.get(*metric))))
        .collect();
    let mut head = vec![(String::new(), String::new()), ("at".to_owned(), String::new())];
    head.extend(
        spec.metrics
            .iter()
            .zip(&units)
            .map(|(metric, unit)| (metric.title().to_owned(), unit.name.to_owned())),
    );
    let rows = own.iter().map(|(scheme, point, run)| {
        let figures = spec.metrics.iter().zip(&units).map(|(metric, unit)| unit.show(run.get(*metric)));
        [(*scheme).to_owned(), (*point).to_owned()].into_iter().chain(figures).collect()
    });
    FigureTable { title: spec.title.clone(), head, rows: rows.collect(), report_only: spec.report_only }
}

/// An experiment as a part of the report.
pub fn chapter(played: &Played) -> Result<Chapter<'_>, PlotError> {
    let Played { experiment, results, tables, rows, .. } = played;
    Ok(Chapter {
        id: experiment.id.clone(),
        title: experiment.title.clone(),
        claim: experiment.claim.clone(),
        source: experiment.source.clone(),
        says: experiment.says.clone(),
        pictures: pictures(experiment, results)?,
        rows: rows.clone(),
        tables: tables.clone(),
        runs: runs(played)?,
    })
}

/// Its runs at the point that is shown, and its plots.
fn runs(played: &Played) -> Result<Comparison<'_>, PlotError> {
    let Played { experiment, results, sample, .. } = played;
    let chosen = experiment.schemes.iter().filter(|scheme| scheme.role != Role::Shown);
    let mut runs = Vec::new();
    if let Some(show) = &experiment.show {
        for scheme in chosen {
            if let Ok(run) = results.at(&scheme.label, show) {
                runs.push((scheme.label.clone(), vec![&run.result]));
            }
        }
    }
    let title = match &experiment.show {
        Some(show) => format!("More plots, and runs over time: {show}"),
        None => "More plots".to_owned(),
    };
    let mut comparison = Comparison::new(title, sample.clone(), runs);
    let palette = Palette::of(experiment.schemes.iter().map(|scheme| scheme.label.as_str()));
    for spec in &experiment.plots {
        if let Some(plate) = plot(experiment, spec, results, &palette)? {
            comparison.plates.push(plate);
        }
    }
    for spec in &experiment.tables {
        let Some(faults) = &spec.faults else { continue };
        for scheme in labels(experiment, &spec.schemes) {
            comparison.plates.extend(faults.plates(&spec.title, scheme, results)?);
        }
    }
    Ok(comparison)
}

fn plot(
    experiment: &Experiment,
    spec: &PlotSpec,
    results: &Results,
    palette: &Palette,
) -> Result<Option<CaptionedPlot>, PlotError> {
    let title = match &spec.flows {
        Some(flows) => format!("{flows}: {}", spec.metric.title()),
        None => format!("{}, {}", experiment.title, spec.metric.title()),
    };
    let frame = Frame { size: (760, 320), title: title.clone(), alt: title };
    let mut of: BTreeMap<&str, Vec<&PlayedRun>> = BTreeMap::new();
    for (scheme, _, run) in results.all() {
        of.entry(scheme).or_default().push(run);
    }
    let labels = labels(experiment, &spec.schemes);
    let own: Vec<(&str, &Vec<&PlayedRun>)> =
        labels.iter().filter_map(|label| Some((*label, of.get(label)?))).collect();
    if own.is_empty() {
        return Ok(None);
    }
    let svg = match &spec.over {
        Some(place) => curves(frame, spec.metric, place, &own, palette)?,
        None => {
            let bar = |(label, runs): &(&str, &Vec<&PlayedRun>)| {
                let figure = |run: &&PlayedRun| match &spec.flows {
                    Some(flows) => spec.metric.of(&of_group(&run.result, flows)),
                    None => run.get(spec.metric),
                };
                let values: Vec<f64> = runs.iter().map(figure).filter(|value| value.is_finite()).collect();
                let colour = palette.colour(label);
                Bar {
                    label: (*label).to_owned(),
                    colour,
                    value: stats::mean(&values).unwrap_or(f64::NAN),
                    ci95: if spec.flows.is_some() { stats::ci95(&values) } else { None },
                }
            };
            let all: Vec<Bar> = own.iter().map(bar).collect();
            bars(&frame, spec.metric.title(), spec.metric.quantity(), &all)?
        }
    };
    Ok(Some(CaptionedPlot { svg, caption: spec.caption.clone() }))
}

/// A line per scheme over a value of its points; a horizontal one for a scheme without that value.
fn curves(
    frame: Frame,
    metric: Figure,
    place: &str,
    own: &[(&str, &Vec<&PlayedRun>)],
    palette: &Palette,
) -> Result<String, PlotError> {
    let known = |runs: &[&PlayedRun]| -> Vec<(f64, f64)> {
        runs.iter().filter_map(|run| Some((run.number(place).ok()?, run.get(metric)))).collect()
    };
    let all: Vec<f64> = own.iter().flat_map(|(_, runs)| known(runs)).map(|point| point.0).collect();
    let ends = (all.iter().copied().fold(f64::INFINITY, f64::min), all.iter().copied().fold(0.0, f64::max));
    let quantity = match own.iter().flat_map(|(_, runs)| runs.iter()).find_map(|run| run.places.get(place)) {
        Some(text) if text.ends_with('B') => Quantity::Size,
        Some(text) if text.ends_with("bit/s") => Quantity::Rate,
        Some(text) if text.ends_with('s') => Quantity::Time,
        _ => Quantity::Plain,
    };
    let lines: Vec<Line> = own
        .iter()
        .map(|(label, runs)| {
            let mut points = known(runs);
            let level = points.is_empty();
            if level {
                let value = runs.first().map_or(f64::NAN, |run| run.get(metric));
                points = vec![(ends.0, value), (ends.1, value)];
            }
            Line { label: (*label).to_owned(), colour: palette.colour(label), dashed: level, points }
        })
        .collect();
    let values = lines.iter().flat_map(|line| line.points.iter().map(|point| point.1));
    let y = Axis::from_zero(metric.title(), metric.quantity(), values.collect::<Vec<_>>());
    LinePlot { frame, x: Axis::linear(place, quantity, ends), y, area: None, lines }.svg()
}
