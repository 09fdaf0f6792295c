//! Choices that a source leaves open, made by its published figures: combinations of an algorithm's switches (`[sensitivity]`) and of
//! values of places (`[variation]`), each with its distance from these figures.

use super::Mean;
use super::experiment::{Experiment, Sensitivity, TableSpec};
use super::figure_table::FigureTable;
use super::measure::Measure;
use super::places::Set;
use super::points::ratio;
use super::results::{Absent, Results};
use super::verdict::{Row, Verdict};
use crate::figure::Figure;
use crate::figures::number;
use crate::stats;

/// Every combination of the switches, the one nearest to the published figures first, and a row that names it.
///
/// Distance (ours): mean over the schemes and figures of `|ln(measured / published)|`.
pub fn sensitivity(experiment: &Experiment, results: &Results) -> Option<(FigureTable, Row)> {
    let spec = experiment.sensitivity.as_ref()?;
    let table = experiment.tables.iter().find(|table| Some(&table.id) == spec.table.as_ref())?;
    let mut found: Vec<Distance> = Vec::new();
    for label in spec.combinations() {
        let ratios = combination(spec, table, &label, results).ok()?;
        let distance = ratios.iter().map(|(own, published)| libm::log(own / published).abs()).sum::<f64>();
        let own = ratios.iter().map(|(own, _)| *own).collect();
        found.push((distance / ratios.len() as f64, label, own));
    }
    let mut head = Vec::new();
    for scheme in &spec.schemes {
        head.extend(spec.metrics.iter().map(|metric| (scheme.clone(), metric.title().to_owned())));
    }
    let title = "Sensitivity: ratios to each variant, nearest to the published ones first";
    nearest(experiment, title, "variants is nearest to the published ratios", head, found)
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
/// If a table has `to`, figures are ratios to that scheme. Distance (ours): mean over the published ratios and figures of
/// `|ln(measured / published)|`.
pub fn variation(experiment: &Experiment, results: &Results) -> Option<(FigureTable, Row)> {
    let spec = experiment.variation.as_ref()?;
    let tables: Vec<&TableSpec> =
        spec.tables.iter().filter_map(|id| experiment.tables.iter().find(|table| table.id == *id)).collect();
    let mut head = Vec::new();
    let mut published_row = vec!["(published)".to_owned(), String::new()];
    let mut found: Vec<Distance> = Vec::new();
    for (index, with) in spec.combinations().iter().enumerate() {
        let (mut own, mut distance) = (Vec::new(), 0.0);
        for table in &tables {
            let to = table.to.as_deref();
            let group = table.at.as_deref().unwrap_or_default();
            for (scheme, published) in
                table.published.iter().filter(|(scheme, _)| Some(scheme.as_str()) != to)
            {
                let (above, below) = (varied(scheme, with), to.map(|to| varied(to, with)));
                // Over fewer points, if the variation has fewer.
                let points: Vec<String> = results
                    .group(&above, group)
                    .into_iter()
                    .filter(|point| below.as_ref().is_none_or(|below| results.at(below, point).is_ok()))
                    .take(spec.points.unwrap_or(usize::MAX))
                    .map(str::to_owned)
                    .collect();
                for (metric, published) in table.metrics.iter().zip(published) {
                    if !published.is_finite() {
                        continue;
                    }
                    let value = match &below {
                        Some(below) => ratio(results, *metric, &above, below, &points, table.mean).ok()?,
                        None => mean_over(results, *metric, &above, &points)?,
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
            let value = measure.schemes().iter().fold(measure.clone(), instead).of(results).ok()?.value;
            distance += libm::log(value / published).abs();
            own.push(value);
            if index == 0 {
                head.push((id.clone(), String::new()));
                published_row.push(format!("({published})"));
            }
        }
        found.push((distance / own.len().max(1) as f64, setting(with), own));
    }
    let title = "Choices: figures with each, nearest to the published ones first";
    let (mut table, row) =
        nearest(experiment, title, "choices is nearest to the published figures", head, found)?;
    table.rows.insert(0, published_row);
    Some((table, row))
}

/// A combination: its distance from the published figures, its name, its figures.
type Distance = (f64, String, Vec<f64>);

/// All combinations as a table, the nearest one first, and a row that names it.
fn nearest(
    experiment: &Experiment,
    title: &str,
    which: &str,
    columns: Vec<(String, String)>,
    mut found: Vec<Distance>,
) -> Option<(FigureTable, Row)> {
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (distance, name, _) = found.first()?;
    let row = Row {
        experiment: experiment.id.clone(),
        id: String::new(),
        criterion: format!("which of {} {which}", found.len()),
        robust: false,
        published: "not stated".to_owned(),
        bounds: String::new(),
        measured: format!("{name} (mean |ln| {})", number(*distance)),
        value: None,
        verdict: Verdict::Reported,
    };
    let rows = found.iter().map(|(distance, label, own)| {
        let figures = own.iter().map(|value| number(*value));
        [label.clone(), number(*distance)].into_iter().chain(figures).collect()
    });
    let head = ["", "distance"].map(|title| (title.to_owned(), String::new())).into_iter().chain(columns);
    Some((
        FigureTable {
            title: title.to_owned(),
            head: head.collect(),
            rows: rows.collect(),
            report_only: false,
        },
        row,
    ))
}

/// Mean of a scheme's figure over those of these points that have it.
fn mean_over(results: &Results, metric: Figure, scheme: &str, points: &[String]) -> Option<f64> {
    let found = points.iter().filter_map(|point| results.at(scheme, point).ok());
    let values: Vec<f64> = found.map(|run| run.get(metric)).filter(|value| value.is_finite()).collect();
    stats::mean(&values)
}

/// Ratios of the schemes to this combination, each with its published value.
fn combination(
    spec: &Sensitivity,
    table: &TableSpec,
    label: &str,
    results: &Results,
) -> Result<Vec<(f64, f64)>, Absent> {
    let mut ratios = Vec::new();
    for scheme in &spec.schemes {
        let points: Vec<String> = results.points(scheme).into_iter().map(str::to_owned).collect();
        for metric in &spec.metrics {
            let column = table.metrics.iter().position(|own| own == metric);
            let published = column.and_then(|column| table.published.get(scheme)?.get(column));
            let published = published.ok_or_else(|| Absent::Nothing("nothing published".to_owned()))?;
            ratios.push((ratio(results, *metric, scheme, label, &points, Mean::OfRatios)?, *published));
        }
    }
    Ok(ratios)
}

#[cfg(test)]
mod tests {
    use super::super::Values;
    use super::super::results::PlayedRun;
    use super::*;
    use crate::synthetic;

    #[test]
    fn choice_minimises_the_error_and_plays_each_run_once() {
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
            measure = { figure = "delay_mean", of = "base", at = "short" }
            [[criterion]]
            id = "long"
            text = ""
            published = "40 ms"
            figure = 0.04
            measure = { figure = "delay_mean", of = "base", at = "long" }
            "#,
            "test",
        )
        .unwrap();
        let mut planned = super::super::plan(&experiment, false).unwrap();
        let same = super::super::add_variation(&experiment, false, &mut planned).unwrap();
        let last = |text: &str| text.lines().last().unwrap_or_default().to_owned();
        let played: Vec<String> =
            planned.iter().map(|run| format!("{} {}", run.scheme, last(&run.text))).collect();
        // The second queue of the long point equals its first one: it counts for both, and is run once.
        let own = [r#"base x = "1 x""#, r#"base x = "1 x""#];
        let further = [
            r#"base [queue=${x}] x = "1 deep""#,
            r#"base [queue=${x}] x = "1 deep""#,
            r#"base [queue=${y}] x = "1 shallow""#,
        ];
        assert_eq!(played, [&own[..], &further[..]].concat());
        assert_eq!(same.len(), 1);
        let mut results = Results::default();
        let run =
            |delay| Ok(PlayedRun::new(Values::new(), synthetic::run("cubic", 1)).with("delay_mean", delay));
        results.enter("base [queue=${x}]", "short", run(0.02));
        results.enter("base [queue=${x}]", "long", run(0.04));
        results.enter("base [queue=${y}]", "short", run(0.01));
        for (scheme, as_well, point) in &same {
            results.enter_same(scheme, as_well, point);
        }
        let (table, row) = variation(&experiment, &results).unwrap();
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
            measure = { figure = "delay_mean", of = "own" }
            "#,
            "test",
        )
        .unwrap()
        .with_sensitivity();
        assert_eq!(experiment.schemes[3].set["cc"], "x:a=2".into());
        assert_eq!(experiment.runs[0].schemes, ["own", "other", "a=1", "a=2"]);
        let mut results = Results::default();
        for (scheme, delay) in [("own", 0.01), ("other", 0.04), ("a=1", 0.005), ("a=2", 0.011)] {
            let run = PlayedRun::new(Values::new(), synthetic::run("cubic", 1)).with("delay_mean", delay);
            results.enter(scheme, "p", Ok(run));
        }
        let (table, row) = sensitivity(&experiment, &results).unwrap();
        assert_eq!(table.rows[0][0], "a=2");
        assert!(row.measured.starts_with("a=2"));
        let tables = super::super::show::tables(&experiment, &results);
        let other = tables[0].rows.iter().find(|row| row[0] == "other").unwrap();
        assert_eq!(other[3..], ["4.000", "(4)"]);
    }
}
