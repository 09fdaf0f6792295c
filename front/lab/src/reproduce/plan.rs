//! From an experiment to its runs: every scheme at every point, as a scenario's text.

use ranpace_units::Span;

use super::experiment::{Experiment, ExperimentError, Scheme, Values};
use super::patch;
use super::places::{Set, as_text, fill_table, fill_text};
use super::runs::{Point, Runs};
use super::toml::{Table, Toml};

/// One run to execute.
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

/// All runs of an experiment, in its order.
pub fn plan(experiment: &Experiment, quick: bool) -> Result<Vec<Planned>, ExperimentError> {
    plan_with(experiment, quick, usize::MAX, &Set::new())
}

/// The runs of another combination of `[variation]`: those of the schemes in its tables, with these values replacing others.
pub fn vary(experiment: &Experiment, quick: bool, with: &Set) -> Result<Vec<Planned>, ExperimentError> {
    let most = experiment.variation.as_ref().and_then(|variation| variation.points).unwrap_or(usize::MAX);
    plan_with(experiment, quick, most, with)
}

fn plan_with(
    experiment: &Experiment,
    quick: bool,
    most: usize,
    with: &Set,
) -> Result<Vec<Planned>, ExperimentError> {
    let mut planned = Vec::new();
    for runs in &experiment.runs {
        let mut points = runs.points();
        points.truncate(if quick { experiment.quick.points.min(most) } else { most });
        for point in points {
            let schemes = experiment.schemes.iter();
            for scheme in schemes.filter(|s| runs.schemes.is_empty() || runs.schemes.contains(&s.label)) {
                let run = run(experiment, runs, &point, scheme, with, quick);
                planned.push(run.map_err(|what| ExperimentError::Wrong {
                    file: experiment.file(),
                    what: format!("the scheme {:?}: {what}", scheme.label),
                })?);
            }
        }
    }
    Ok(planned)
}

/// One run: the scenario, with the patches of the point and of the scheme, and its places filled.
fn run(
    experiment: &Experiment,
    runs: &Runs,
    point: &Point,
    scheme: &Scheme,
    with: &Set,
    quick: bool,
) -> Result<Planned, String> {
    let lineage = experiment.lineage(scheme)?;
    let mut places = experiment.set.clone();
    places.extend(point.set.clone());
    lineage.iter().for_each(|scheme| places.extend(scheme.set.clone()));
    places.extend(with.clone());
    shorten(&mut places, &experiment.shorter);
    if quick {
        shorten(&mut places, &experiment.quick.set);
    }
    let label = fill_text(&runs.point, &places).map_err(|what| format!("point: {what}"))?;
    let at = |what| format!("at the point {label:?}: {what}");
    let mut scenario = experiment.scenario.clone();
    apply_all(experiment, &experiment.uses, &Table::default(), &places, &mut scenario).map_err(at)?;
    apply_all(experiment, &point.uses, &point.patch, &places, &mut scenario).map_err(at)?;
    for scheme in lineage {
        apply_all(experiment, &scheme.uses, &scheme.patch, &places, &mut scenario).map_err(at)?;
    }
    let mut scenario = fill_table(&scenario, &places).map_err(at)?;
    let name = format!("{} {} {label}", experiment.id, scheme.label);
    scenario.insert_first("name", Toml::Text(name));
    let places = as_text(&places).map_err(at)?;
    Ok(Planned { scheme: scheme.label.clone(), point: label, places, text: scenario.document() })
}

/// Applies the patches with these names, whose places are filled first, and one more.
fn apply_all(
    experiment: &Experiment,
    names: &[String],
    own: &Table,
    places: &Set,
    scenario: &mut Table,
) -> Result<(), String> {
    for name in names {
        let name = fill_text(name, places).map_err(|what| format!("use: {what}"))?;
        let patch = experiment.patches.get(&name).ok_or_else(|| {
            let known: Vec<&str> = experiment.patches.keys().map(String::as_str).collect();
            format!("use: there is no patch {name:?}; there are: {}", known.join(", "))
        })?;
        patch::apply(patch, scenario).map_err(|what| format!("the patch {name:?}: {what}"))?;
    }
    patch::apply(own, scenario).map_err(|what| format!("patch: {what}"))
}

/// Values of a quick run that replace the others; shorter durations stay unchanged.
fn shorten(places: &mut Set, quick: &Set) {
    for (key, value) in quick {
        let span = |value: &Toml| value.plain().parse::<Span>().ok();
        let spans = (places.get(key).and_then(span), span(value));
        if !matches!(spans, (Some(old), Some(new)) if old <= new) {
            places.insert(key.clone(), value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"
        id = "000-a1-small"
        title = "t"
        source = "s"
        says = ""
        criterion = []
        set = { duration = "20s", rate = "1Mbit/s" }
        scheme = [
            { label = "plain", set = { cc = "cubic" } },
            { label = "fast", like = "plain", patch = { link.down.rate = "9Mbit/s" } },
            { label = "edge", like = "fast", use = ["proxy"] },
        ]
        [scenario]
        duration = "${duration}"
        seed = "10${drop}"
        [[scenario.link]]
        name = "down"
        rate = "${rate}"
        [[scenario.flow]]
        name = "flow"
        cc = "${cc}"
        [[patch.proxy.proxy]]
        kind = "split"
        [[runs]]
        point = "drop ${drop}"
        drops = 1
        [quick]
        set = { duration = "5s" }
    "#;

    fn text_of(scheme: &str, quick: bool) -> Result<String, String> {
        let experiment = Experiment::parse(SMALL, "small").map_err(|e| e.to_string())?;
        let planned = plan(&experiment, quick).map_err(|e| e.to_string())?;
        Ok(planned.into_iter().find(|run| run.scheme == scheme).unwrap().text)
    }

    #[test]
    fn scheme_applies_inherited_patches_then_its_own() {
        let plain = r#"name = "000-a1-small plain drop 1"
duration = "20s"
seed = 101

[[link]]
name = "down"
rate = "1Mbit/s"

[[flow]]
name = "flow"
cc = "cubic"
"#;
        assert_eq!(text_of("plain", false).unwrap(), plain);
        assert_eq!(text_of("plain", true).unwrap(), plain.replace("20s", "5s"));
        let fast = plain.replace("1Mbit/s", "9Mbit/s");
        assert_eq!(text_of("fast", false).unwrap(), fast.replace("small plain", "small fast"));
        let edge = fast.replace("small plain", "small edge") + "\n[[proxy]]\nkind = \"split\"\n";
        assert_eq!(text_of("edge", false).unwrap(), edge);
    }

    #[test]
    fn an_error_names_file_scheme_point_and_key() {
        let file = "reproductions/000-a1-small/experiment.toml: the scheme";
        for (case, from, to, expected) in [
            (
                "no value",
                "cc = \"cubic\"",
                "c = \"cubic\"",
                "\"plain\": at the point \"drop 1\": flow.flow.cc: nothing goes into ${cc}",
            ),
            (
                "no patch",
                "use = [\"proxy\"]",
                "use = [\"prox\"]",
                "\"edge\": at the point \"drop 1\": use: there is no patch \"prox\"; there are: proxy",
            ),
            (
                "no element",
                "link.down.rate",
                "link.up.rate",
                "\"fast\": at the point \"drop 1\": patch: link: there is no element \"up\"; there are: down",
            ),
            (
                "no value of a label",
                "\"drop ${drop}\"",
                "\"drop ${dropp}\"",
                "\"plain\": point: nothing goes into ${dropp}",
            ),
            (
                "a circle",
                "{ label = \"plain\",",
                "{ label = \"plain\", like = \"edge\",",
                "\"plain\": it is like itself",
            ),
        ] {
            let text = SMALL.replace(from, to);
            assert_ne!(text, SMALL, "{case}");
            let experiment = Experiment::parse(&text, "small").unwrap();
            let error = plan(&experiment, false).unwrap_err().to_string();
            assert_eq!(error, format!("{file} {expected}"), "{case}");
        }
    }

    fn values(pairs: &[(&str, &str)]) -> Set {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), Toml::from(*value))).collect()
    }

    #[test]
    fn quick_runs_are_never_longer() {
        let mut places = values(&[("duration", "20s"), ("rest", "1")]);
        shorten(&mut places, &values(&[("duration", "30s"), ("rest", "2")]));
        assert_eq!(places, values(&[("duration", "20s"), ("rest", "2")]));
    }
}
