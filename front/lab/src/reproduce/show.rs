//! Figures as tables and plots: what is printed, and what the report shows.

use std::collections::BTreeMap;

use super::cells::{Absent, Cell, Cells};
use super::experiment::{Experiment, PlotSpec, Role, Sensitivity, TableSpec};
use super::measure::Measure;
use super::picture::pictures;
use super::places::Set;
use super::points::ratio;
use super::tables::Figures;
use super::verdict::{Row, Verdict, for_variant};
use super::{Mean, Played};
use crate::figure::{Figure, of_group};
use crate::figures::{Quantity, number};
use crate::plot::{Axis, Bar, Frame, Line, LinePlot, Palette, PlotError, bars};
use crate::report::{Chapter, Comparison, Plate};
use crate::stats;

/// The verdicts for a terminal, by experiment. "R" marks what is robust.
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
pub fn tables(experiment: &Experiment, cells: &Cells) -> Vec<Figures> {
    let table = |spec: &TableSpec| match (&spec.faults, &spec.to) {
        (Some(faults), _) => {
            let schemes = labels(experiment, &spec.schemes);
            schemes.iter().flat_map(|scheme| faults.tables(&spec.title, scheme, cells)).collect()
        }
        (None, _) if !spec.groups.is_empty() => vec![by_groups(experiment, spec, cells)],
        (None, Some(to)) => vec![normalised(experiment, spec, to, cells)],
        (None, None) => vec![plain(experiment, spec, cells)],
    };
    let mut tables: Vec<Figures> = experiment.tables.iter().flat_map(table).collect();
    tables.push(variants(experiment, cells));
    tables.retain(|table| !table.rows.is_empty());
    tables
}

/// What the criteria would give for the variants of the scheme that they are about. Nothing is judged by it.
fn variants(experiment: &Experiment, cells: &Cells) -> Figures {
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
            if let Some(value) = for_variant(criterion, of, label, cells) {
                let robust = if criterion.robust { "R" } else { "" };
                rows.push(vec![(*label).to_owned(), value, robust.to_owned(), criterion.id.clone()]);
            }
        }
    }
    let head = ["", "value", "", "criterion"].map(|title| (title.to_owned(), String::new())).to_vec();
    Figures {
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

/// Points at which all of these schemes were played and have all their recordings.
fn common(cells: &Cells, schemes: &[&str]) -> Vec<String> {
    let points = schemes.first().map_or_else(Vec::new, |scheme| cells.points(scheme));
    let there = |point: &&str| schemes.iter().all(|scheme| cells.at(scheme, point).is_ok());
    points.into_iter().filter(there).map(str::to_owned).collect()
}

fn normalised(experiment: &Experiment, spec: &TableSpec, to: &str, cells: &Cells) -> Figures {
    let mut schemes = labels(experiment, &spec.schemes);
    schemes.retain(|scheme| !cells.points(scheme).is_empty());
    let mut points = common(cells, &schemes);
    let group = cells.group(to, spec.at.as_deref().unwrap_or_default());
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
            let value = ratio(cells, *metric, scheme, to, &points, spec.mean).unwrap_or(f64::NAN);
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
    Figures {
        title: format!("{} (over {over} points)", spec.title),
        head,
        rows,
        report_only: spec.report_only,
    }
}

/// A row for each scheme: the mean over the points of a group.
fn grouped(experiment: &Experiment, spec: &TableSpec, group: &str, cells: &Cells) -> Figures {
    let schemes = labels(experiment, &spec.schemes);
    let means: Vec<(&str, Vec<f64>, usize)> = schemes
        .iter()
        .filter_map(|scheme| {
            let own: Vec<&Cell> =
                cells.group(scheme, group).iter().filter_map(|point| cells.at(scheme, point).ok()).collect();
            let mean = |metric: &Figure| {
                let known: Vec<f64> =
                    own.iter().map(|cell| cell.get(*metric)).filter(|value| value.is_finite()).collect();
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
    Figures { title, head, rows: rows.collect(), report_only: spec.report_only }
}

/// A row for each scheme and group of flows: the mean over the points.
fn by_groups(experiment: &Experiment, spec: &TableSpec, cells: &Cells) -> Figures {
    let mut rows: Vec<(&str, &str, Vec<f64>)> = Vec::new();
    let mut count = 0;
    for group in &spec.groups {
        for scheme in labels(experiment, &spec.schemes) {
            let points = cells.group(scheme, spec.at.as_deref().unwrap_or_default());
            let runs: Vec<_> = points
                .iter()
                .filter_map(|point| cells.at(scheme, point).ok())
                .map(|cell| of_group(&cell.run, group))
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
    Figures { title, head, rows: rows.collect(), report_only: spec.report_only }
}

fn plain(experiment: &Experiment, spec: &TableSpec, cells: &Cells) -> Figures {
    if let Some(group) = &spec.at {
        return grouped(experiment, spec, group, cells);
    }
    let chosen = labels(experiment, &spec.schemes);
    let own: Vec<(&str, &str, &Cell)> =
        chosen.iter().flat_map(|label| cells.all().filter(move |(scheme, ..)| scheme == label)).collect();
    let units: Vec<_> = spec
        .metrics
        .iter()
        .map(|metric| metric.quantity().unit(own.iter().map(|(.., cell)| cell.get(*metric))))
        .collect();
    let mut head = vec![(String::new(), String::new()), ("at".to_owned(), String::new())];
    head.extend(
        spec.metrics
            .iter()
            .zip(&units)
            .map(|(metric, unit)| (metric.title().to_owned(), unit.name.to_owned())),
    );
    let rows = own.iter().map(|(scheme, point, cell)| {
        let figures = spec.metrics.iter().zip(&units).map(|(metric, unit)| unit.show(cell.get(*metric)));
        [(*scheme).to_owned(), (*point).to_owned()].into_iter().chain(figures).collect()
    });
    Figures { title: spec.title.clone(), head, rows: rows.collect(), report_only: spec.report_only }
}

/// Every combination of the switches, the one nearest to the published figures first, and a row that names it.
///
/// Distance (ours): mean over the schemes and figures of `|ln(measured / published)|`.
pub fn sensitivity(experiment: &Experiment, cells: &Cells) -> Option<(Figures, Row)> {
    let spec = experiment.sensitivity.as_ref()?;
    let table = experiment.tables.iter().find(|table| Some(&table.id) == spec.table.as_ref())?;
    let mut found: Vec<(f64, String, Vec<f64>)> = Vec::new();
    for label in spec.combinations() {
        let ratios = combination(spec, table, &label, cells).ok()?;
        let distance = ratios.iter().map(|(own, published)| libm::log(own / published).abs()).sum::<f64>();
        let own = ratios.iter().map(|(own, _)| *own).collect();
        found.push((distance / ratios.len() as f64, label, own));
    }
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    let nearest = found.first()?;
    let mut head = vec![(String::new(), String::new()), ("distance".to_owned(), String::new())];
    for scheme in &spec.schemes {
        head.extend(spec.metrics.iter().map(|metric| (scheme.clone(), metric.title().to_owned())));
    }
    let row = Row {
        experiment: experiment.id.clone(),
        id: String::new(),
        criterion: format!("which of {} variants is nearest to the published ratios", found.len()),
        robust: false,
        published: "not stated".to_owned(),
        bounds: String::new(),
        measured: format!("{} (mean |ln| {})", nearest.1, number(nearest.0)),
        verdict: Verdict::Reported,
    };
    let rows = found.iter().map(|(distance, label, own)| {
        let figures = own.iter().map(|value| number(*value));
        [label.clone(), number(*distance)].into_iter().chain(figures).collect()
    });
    let title = "Sensitivity: ratios to each variant, nearest to the published ones first".to_owned();
    Some((Figures { title, head, rows: rows.collect(), report_only: false }, row))
}

/// Label of a scheme under another combination of `[variation]`.
pub fn varied(scheme: &str, with: &Set) -> String {
    format!("{scheme} [{}]", setting(with))
}

fn setting(with: &Set) -> String {
    with.iter().map(|(place, value)| format!("{place}={}", value.plain())).collect::<Vec<_>>().join(" ")
}

/// Every combination of `[variation]`, the one nearest to the published figures first, and a row that names it.
///
/// Figures are ratios where a table is `to` a scheme. Distance (ours): mean over the published ratios and figures of
/// `|ln(measured / published)|`.
pub fn variation(experiment: &Experiment, cells: &Cells) -> Option<(Figures, Row)> {
    let spec = experiment.variation.as_ref()?;
    let tables: Vec<&TableSpec> =
        spec.tables.iter().filter_map(|id| experiment.tables.iter().find(|table| table.id == *id)).collect();
    let mut head = vec![(String::new(), String::new()), ("distance".to_owned(), String::new())];
    let mut published_row = vec!["(published)".to_owned(), String::new()];
    let mut found: Vec<(f64, String, Vec<f64>)> = Vec::new();
    for (index, with) in spec.combinations().iter().enumerate() {
        let (mut own, mut distance) = (Vec::new(), 0.0);
        for table in &tables {
            let to = table.to.as_deref();
            let group = table.at.as_deref().unwrap_or_default();
            for (scheme, published) in
                table.published.iter().filter(|(scheme, _)| Some(scheme.as_str()) != to)
            {
                let (above, below) = (varied(scheme, with), to.map(|to| varied(to, with)));
                // Of fewer points, where the variation has fewer.
                let points: Vec<String> = cells
                    .group(&above, group)
                    .into_iter()
                    .filter(|point| below.as_ref().is_none_or(|below| cells.at(below, point).is_ok()))
                    .take(spec.points.unwrap_or(usize::MAX))
                    .map(str::to_owned)
                    .collect();
                for (metric, published) in table.metrics.iter().zip(published) {
                    if !published.is_finite() {
                        continue;
                    }
                    let value = match &below {
                        Some(below) => ratio(cells, *metric, &above, below, &points, table.mean).ok()?,
                        None => mean_over(cells, *metric, &above, &points)?,
                    };
                    distance += libm::log(value / published).abs();
                    own.push(value);
                    if index == 0 {
                        head.push((format!("{scheme} {group}").trim().to_owned(), metric.title().to_owned()));
                        published_row.push(format!("({published})"));
                    }
                }
            }
        }
        for id in &spec.criteria {
            let criterion = experiment.criteria.iter().find(|criterion| criterion.id == *id)?;
            let (measure, published) = (criterion.measure.as_ref()?, criterion.figure?);
            let instead = |measure: Measure, scheme: &String| measure.instead(scheme, &varied(scheme, with));
            let value = measure.schemes().iter().fold(measure.clone(), instead).of(cells).ok()?.value;
            distance += libm::log(value / published).abs();
            own.push(value);
            if index == 0 {
                head.push((id.clone(), String::new()));
                published_row.push(format!("({published})"));
            }
        }
        found.push((distance / own.len().max(1) as f64, setting(with), own));
    }
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    let nearest = found.first()?;
    let row = Row {
        experiment: experiment.id.clone(),
        id: String::new(),
        criterion: format!("which of {} choices is nearest to the published figures", found.len()),
        robust: false,
        published: "not stated".to_owned(),
        bounds: String::new(),
        measured: format!("{} (mean |ln| {})", nearest.1, number(nearest.0)),
        verdict: Verdict::Reported,
    };
    let mut rows = vec![published_row];
    rows.extend(found.iter().map(|(distance, label, own)| {
        let figures = own.iter().map(|value| number(*value));
        [label.clone(), number(*distance)].into_iter().chain(figures).collect()
    }));
    let title = "Choices: figures with each, nearest to the published ones first".to_owned();
    Some((Figures { title, head, rows, report_only: false }, row))
}

/// Mean of a scheme's figure over those of these points that have it.
fn mean_over(cells: &Cells, metric: Figure, scheme: &str, points: &[String]) -> Option<f64> {
    let found = points.iter().filter_map(|point| cells.at(scheme, point).ok());
    let values: Vec<f64> = found.map(|cell| cell.get(metric)).filter(|value| value.is_finite()).collect();
    stats::mean(&values)
}

/// Ratios of the schemes to this combination, each with its published value.
fn combination(
    spec: &Sensitivity,
    table: &TableSpec,
    label: &str,
    cells: &Cells,
) -> Result<Vec<(f64, f64)>, Absent> {
    let mut ratios = Vec::new();
    for scheme in &spec.schemes {
        for metric in &spec.metrics {
            let column = table.metrics.iter().position(|own| own == metric);
            let published = column.and_then(|column| table.published.get(scheme)?.get(column));
            let published = published.ok_or_else(|| Absent::Nothing("nothing published".to_owned()))?;
            ratios.push((ratio(cells, *metric, scheme, label, &[], Mean::OfRatios)?, *published));
        }
    }
    Ok(ratios)
}

/// An experiment as a part of the report.
pub fn chapter(played: &Played) -> Result<Chapter<'_>, PlotError> {
    let Played { experiment, cells, tables, rows, .. } = played;
    Ok(Chapter {
        id: experiment.id.clone(),
        title: experiment.title.clone(),
        claim: experiment.report.claim.clone(),
        source: experiment.source.clone(),
        says: experiment.says.clone(),
        pictures: pictures(experiment, cells)?,
        rows: rows.clone(),
        tables: tables.clone(),
        runs: runs(played)?,
    })
}

/// Its runs at the point that is shown, and its plots.
fn runs(played: &Played) -> Result<Comparison<'_>, PlotError> {
    let Played { experiment, cells, sample, .. } = played;
    let chosen = experiment.schemes.iter().filter(|scheme| scheme.role != Role::Shown);
    let mut runs = Vec::new();
    if let Some(show) = &experiment.show {
        for scheme in chosen {
            if let Ok(cell) = cells.at(&scheme.label, show) {
                runs.push((scheme.label.clone(), vec![&cell.run]));
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
        if let Some(plate) = plot(experiment, spec, cells, &palette)? {
            comparison.plates.push(plate);
        }
    }
    for spec in &experiment.tables {
        let Some(faults) = &spec.faults else { continue };
        for scheme in labels(experiment, &spec.schemes) {
            comparison.plates.extend(faults.plates(&spec.title, scheme, cells)?);
        }
    }
    Ok(comparison)
}

fn plot(
    experiment: &Experiment,
    spec: &PlotSpec,
    cells: &Cells,
    palette: &Palette,
) -> Result<Option<Plate>, PlotError> {
    let title = match &spec.flows {
        Some(flows) => format!("{flows}: {}", spec.metric.title()),
        None => format!("{}, {}", experiment.title, spec.metric.title()),
    };
    let frame = Frame { size: (760, 320), title: title.clone(), alt: title };
    let mut of: BTreeMap<&str, Vec<&Cell>> = BTreeMap::new();
    for (scheme, _, cell) in cells.all() {
        of.entry(scheme).or_default().push(cell);
    }
    let labels = labels(experiment, &spec.schemes);
    let own: Vec<(&str, &Vec<&Cell>)> =
        labels.iter().filter_map(|label| Some((*label, of.get(label)?))).collect();
    if own.is_empty() {
        return Ok(None);
    }
    let svg = match &spec.over {
        Some(place) => curves(frame, spec.metric, place, &own, palette)?,
        None => {
            let bar = |(label, cells): &(&str, &Vec<&Cell>)| {
                let figure = |cell: &&Cell| match &spec.flows {
                    Some(flows) => spec.metric.of(&of_group(&cell.run, flows)),
                    None => cell.get(spec.metric),
                };
                let values: Vec<f64> = cells.iter().map(figure).filter(|value| value.is_finite()).collect();
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
    Ok(Some(Plate { svg, caption: spec.caption.clone() }))
}

/// A line per scheme over a value of its points; a level one for a scheme that does not have the value.
fn curves(
    frame: Frame,
    metric: Figure,
    place: &str,
    own: &[(&str, &Vec<&Cell>)],
    palette: &Palette,
) -> Result<String, PlotError> {
    let known = |cells: &[&Cell]| -> Vec<(f64, f64)> {
        cells.iter().filter_map(|cell| Some((cell.number(place).ok()?, cell.get(metric)))).collect()
    };
    let all: Vec<f64> = own.iter().flat_map(|(_, cells)| known(cells)).map(|point| point.0).collect();
    let ends = (all.iter().copied().fold(f64::INFINITY, f64::min), all.iter().copied().fold(0.0, f64::max));
    let quantity =
        match own.iter().flat_map(|(_, cells)| cells.iter()).find_map(|cell| cell.places.get(place)) {
            Some(text) if text.ends_with('B') => Quantity::Size,
            Some(text) if text.ends_with("bit/s") => Quantity::Rate,
            Some(text) if text.ends_with('s') => Quantity::Time,
            _ => Quantity::Plain,
        };
    let lines: Vec<Line> = own
        .iter()
        .map(|(label, cells)| {
            let mut points = known(cells);
            let level = points.is_empty();
            if level {
                let value = cells.first().map_or(f64::NAN, |cell| cell.get(metric));
                points = vec![(ends.0, value), (ends.1, value)];
            }
            Line { label: (*label).to_owned(), colour: palette.colour(label), dashed: level, points }
        })
        .collect();
    let values = lines.iter().flat_map(|line| line.points.iter().map(|point| point.1));
    let y = Axis::from_zero(metric.title(), metric.quantity(), values.collect::<Vec<_>>());
    LinePlot { frame, x: Axis::linear(place, quantity, ends), y, area: None, lines }.svg()
}

#[cfg(test)]
mod tests {
    use super::super::Values;
    use super::*;
    use crate::synthetic;

    #[test]
    fn a_choice_is_made_by_published_figures_and_every_run_is_played_once() {
        let experiment = Experiment::parse(
            r#"
            id = "000-a1"
            title = ""
            source = ""
            says = ""
            scenario = { x = "${delay} ${queue}" }
            set = { delay = "1", queue = "x" }
            runs = [{ point = "short", each = [{ x = "deep", y = "shallow" }] }, { point = "long", each = [{ x = "deep", y = "deep" }] }]
            [[scheme]]
            label = "base"
            role = "judged"
            set = {}
            [variation]
            criteria = ["short", "long"]
            set = { queue = ["${x}", "${y}"] }
            [[criterion]]
            id = "short"
            text = ""
            published = "10 ms"
            figure = 0.01
            measure = { kind = "value", metric = "delay_mean", of = "base", at = "short" }
            [[criterion]]
            id = "long"
            text = ""
            published = "40 ms"
            figure = 0.04
            measure = { kind = "value", metric = "delay_mean", of = "base", at = "long" }
            "#,
            "test",
        )
        .unwrap();
        let mut planned = super::super::plan(&experiment, false).unwrap();
        let same = super::super::add_variation(&experiment, false, &mut planned).unwrap();
        let last = |text: &str| text.lines().last().unwrap_or_default().to_owned();
        let played: Vec<String> =
            planned.iter().map(|run| format!("{} {}", run.scheme, last(&run.text))).collect();
        // The second queue of the long point is its first one: it counts for both, and is played once.
        let own = [r#"base x = "1 x""#, r#"base x = "1 x""#];
        let further = [
            r#"base [queue=${x}] x = "1 deep""#,
            r#"base [queue=${x}] x = "1 deep""#,
            r#"base [queue=${y}] x = "1 shallow""#,
        ];
        assert_eq!(played, [&own[..], &further[..]].concat());
        assert_eq!(same.len(), 1);
        let mut cells = Cells::default();
        let cell = |delay| Ok(Cell::new(Values::new(), synthetic::run("cubic", 1)).with("delay_mean", delay));
        cells.enter("base [queue=${x}]", "short", cell(0.02));
        cells.enter("base [queue=${x}]", "long", cell(0.04));
        cells.enter("base [queue=${y}]", "short", cell(0.01));
        for (scheme, as_well, point) in &same {
            cells.enter_same(scheme, as_well, point);
        }
        let (table, row) = variation(&experiment, &cells).unwrap();
        assert!(row.measured.starts_with("queue=${y} (mean |ln| 0"), "{}", row.measured);
        assert_eq!(table.rows[0][2..], ["(0.01)", "(0.04)"]);
        assert_eq!(table.rows[2][0], "queue=${x}");
        assert_eq!(table.rows[2][1], number(libm::log(2.0) / 2.0));
    }

    #[test]
    fn the_nearest_variant_comes_first() {
        let experiment = Experiment::parse(
            r#"
            id = "000-a1"
            title = ""
            source = ""
            says = ""
            runs = [{ schemes = ["own", "other"], point = "p" }]
            [[scheme]]
            label = "own"
            role = "judged"
            set = { cc = "x" }
            [[scheme]]
            label = "other"
            set = { cc = "y" }
            [sensitivity]
            cc = "x"
            switches = [["a=1", "a=2"]]
            schemes = ["other"]
            metrics = ["delay_mean"]
            table = "t"
            [[table]]
            id = "t"
            title = "T"
            to = "own"
            metrics = ["throughput", "delay_mean"]
            published = { other = [1.0, 4.0] }
            [[criterion]]
            id = "c"
            text = ""
            published = ""
            measure = { kind = "value", metric = "delay_mean", of = "own" }
            "#,
            "test",
        )
        .unwrap()
        .with_sensitivity();
        assert_eq!(experiment.schemes[3].set["cc"], "x:a=2".into());
        assert_eq!(experiment.runs[0].schemes, ["own", "other", "a=1", "a=2"]);
        let mut cells = Cells::default();
        for (scheme, delay) in [("own", 0.01), ("other", 0.04), ("a=1", 0.005), ("a=2", 0.011)] {
            let cell = Cell::new(Values::new(), synthetic::run("cubic", 1)).with("delay_mean", delay);
            cells.enter(scheme, "p", Ok(cell));
        }
        let (table, row) = sensitivity(&experiment, &cells).unwrap();
        assert_eq!(table.rows[0][0], "a=2");
        assert!(row.measured.starts_with("a=2"));
        let tables = tables(&experiment, &cells);
        let other = tables[0].rows.iter().find(|row| row[0] == "other").unwrap();
        assert_eq!(other[3..], ["4.000", "(4)"]);
    }
}
