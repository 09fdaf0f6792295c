//! From an experiment to the runs that it needs: every scheme at every point, as a scenario's text.

use ranpace_units::Span;

use super::experiment::{Experiment, ExperimentError, Runs, Values};

/// One run that is to be played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Label of the scheme.
    pub scheme: String,
    /// Label of the point.
    pub point: String,
    /// The values of its places.
    pub places: Values,
    /// The scenario.
    pub text: String,
}

/// All runs of an experiment, in the order in which it lists them.
pub fn plan(experiment: &Experiment, quick: bool) -> Result<Vec<Planned>, ExperimentError> {
    plan_with(experiment, quick, usize::MAX, &Values::new())
}

/// The runs of another combination of `[variation]`: of the schemes in its tables, with these values in place of others.
pub fn vary(experiment: &Experiment, quick: bool, with: &Values) -> Result<Vec<Planned>, ExperimentError> {
    let most = experiment.variation.as_ref().and_then(|variation| variation.points).unwrap_or(usize::MAX);
    plan_with(experiment, quick, most, with)
}

fn plan_with(
    experiment: &Experiment,
    quick: bool,
    most: usize,
    with: &Values,
) -> Result<Vec<Planned>, ExperimentError> {
    let mut planned = Vec::new();
    for runs in &experiment.runs {
        let mut points = points(runs);
        points.truncate(if quick { experiment.quick.points.min(most) } else { most });
        for point in points {
            let schemes = experiment.schemes.iter();
            for scheme in schemes.filter(|s| runs.schemes.is_empty() || runs.schemes.contains(&s.label)) {
                let mut places = experiment.set.clone();
                places.extend(point.clone());
                places.extend(scheme.set.clone());
                places.extend(with.clone());
                if quick {
                    shorten(&mut places, &experiment.quick.set);
                }
                let wrong = |what| ExperimentError::Wrong { file: experiment.id.clone(), what };
                let label = fill(&runs.point, &places).map_err(wrong)?;
                places.insert("name".to_owned(), format!("{} {} {label}", experiment.id, scheme.label));
                let text = fill(&experiment.scenario, &places).map_err(wrong)?;
                planned.push(Planned { scheme: scheme.label.clone(), point: label, places, text });
            }
        }
    }
    Ok(planned)
}

/// Values of a quick run instead of the others; what lasts less already stays as it is.
fn shorten(places: &mut Values, quick: &Values) {
    for (key, value) in quick {
        let spans = (places.get(key).and_then(|old| old.parse::<Span>().ok()), value.parse::<Span>().ok());
        if !matches!(spans, (Some(old), Some(new)) if old <= new) {
            places.insert(key.clone(), value.clone());
        }
    }
}

/// In each drop every one of `each` with every combination of `grid`.
fn points(runs: &Runs) -> Vec<Values> {
    let mut begun = if runs.each.is_empty() { vec![Values::new()] } else { runs.each.clone() };
    if let Some(drops) = runs.drops {
        let with = |drop: u32| {
            let number = move |mut point: Values| {
                point.insert("drop".to_owned(), drop.to_string());
                point
            };
            begun.clone().into_iter().map(number)
        };
        begun = (1..=drops).flat_map(with).collect();
    }
    runs.grid.iter().fold(begun, |begun, (key, values)| {
        let with = |point: &Values, value: &String| {
            let mut point = point.clone();
            point.insert(key.clone(), value.clone());
            point
        };
        begun
            .iter()
            .flat_map(|point| values.iter().map(|value| with(point, value)).collect::<Vec<_>>())
            .collect()
    })
}

/// Puts values in their places; a value may have places of its own.
fn fill(template: &str, places: &Values) -> Result<String, String> {
    /// Values within values within values: more is a circle.
    const DEPTH: usize = 4;
    let mut text = template.to_owned();
    for _ in 0..DEPTH {
        let Some(_) = text.find("${") else { return Ok(text) };
        let mut filled = String::new();
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once("${") {
            let (name, after) = after.split_once('}').ok_or("a \"${\" without its \"}\"")?;
            let value = places.get(name).ok_or_else(|| format!("nothing goes into ${{{name}}}"))?;
            filled.push_str(before);
            filled.push_str(value);
            rest = after;
        }
        filled.push_str(rest);
        text = filled;
    }
    if text.contains("${") { Err("a value that contains itself".to_owned()) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(pairs: &[(&str, &str)]) -> Values {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn places_are_filled_also_within_values() {
        let places =
            values(&[("cc", "c2tcp:target=${target}"), ("target", "50ms"), ("a", "${b}"), ("b", "${a}")]);
        for (template, expected) in [
            ("x", Ok("x")),
            ("cc = \"${cc}\" { }", Ok("cc = \"c2tcp:target=50ms\" { }")),
            ("${nothing}", Err("nothing goes into ${nothing}")),
            ("${cc", Err("a \"${\" without its \"}\"")),
            ("${a}", Err("a value that contains itself")),
        ] {
            assert_eq!(
                fill(template, &places).as_deref(),
                expected.map_err(str::to_owned).as_deref(),
                "{template}"
            );
        }
    }

    #[test]
    fn points_are_all_combinations_in_order() {
        let runs = Runs {
            schemes: Vec::new(),
            point: String::new(),
            drops: None,
            each: vec![values(&[("t", "1")]), values(&[("t", "2")])],
            grid: [("b", vec!["x", "y"]), ("a", vec!["z"])]
                .map(|(key, list)| (key.to_owned(), list.into_iter().map(str::to_owned).collect()))
                .into(),
        };
        let points: Vec<String> =
            points(&runs).iter().map(|p| format!("{}{}{}", p["t"], p["a"], p["b"])).collect();
        assert_eq!(points, ["1zx", "1zy", "2zx", "2zy"]);
    }

    #[test]
    fn drops_are_numbered_and_stand_together() {
        let runs = Runs {
            schemes: Vec::new(),
            point: String::new(),
            drops: Some(2),
            each: Vec::new(),
            grid: [("size".to_owned(), vec!["1MB".to_owned(), "10MB".to_owned()])].into(),
        };
        let found: Vec<String> =
            points(&runs).iter().map(|point| format!("{} {}", point["drop"], point["size"])).collect();
        assert_eq!(found, ["1 1MB", "1 10MB", "2 1MB", "2 10MB"]);
    }

    #[test]
    fn quick_runs_are_never_longer() {
        let mut places = values(&[("duration", "20s"), ("rest", "1")]);
        shorten(&mut places, &values(&[("duration", "30s"), ("rest", "2")]));
        assert_eq!(places, values(&[("duration", "20s"), ("rest", "2")]));
    }
}
