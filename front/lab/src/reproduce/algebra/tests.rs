use ranpace_sim::{Column, Transfer};
use ranpace_units::{Bytes, Rate, Span, Time};
use serde::Deserialize;

use super::*;
use crate::figure::Values;
use crate::reproduce::measure::Measure;
use crate::reproduce::results::PlayedRun;
use crate::synthetic;

pub fn parse(keys: &str) -> Result<Measure, String> {
    #[derive(Deserialize)]
    struct Wrapper {
        measure: Measure,
    }
    let text = format!("measure = {{ {keys} }}");
    toml_edit::de::from_str::<Wrapper>(&text)
        .map(|wrapper| wrapper.measure)
        .map_err(|error| error.to_string())
}

fn measured(keys: &str, results: &Results) -> Measured {
    parse(keys).unwrap().of(results).unwrap()
}

/// Runs of two flows "a" and "b" with these goodputs in Mbit/s, which end after 8 s at 1 Mbit/s; `seed` is the place.
fn results(runs: &[(&str, &str, [u64; 2])]) -> Results {
    let mut results = Results::default();
    for (index, (scheme, point, rates)) in runs.iter().enumerate() {
        let mut run = synthetic::run_of(&["cubic", "bbr1"], 1);
        for (flow, mbit) in run.flows.iter_mut().zip(rates) {
            flow.goodput = Rate::from_mbit_per_s(*mbit);
            flow.transfers = vec![Transfer {
                start: Time::from_secs(1),
                size: Bytes::new(1),
                completion: Some(Span::from_millis(8_000 / mbit)),
                handed_over: None,
            }];
        }
        (run.flows[0].name, run.flows[1].name) = ("a".to_owned(), "b".to_owned());
        let seed = [("seed".to_owned(), index.to_string())].into_iter().collect();
        results.enter(scheme, point, Ok(PlayedRun::new(seed, run)));
    }
    results
}

/// Columns of a flow, by name.
type Columns<'a> = &'a [(&'a str, &'a [f64])];

/// Runs of one flow with these columns.
fn with_columns(runs: &[(&str, &str, Columns<'_>)]) -> Results {
    let mut results = Results::default();
    for (scheme, point, columns) in runs {
        let mut run = synthetic::run("newreno", 1);
        let column =
            |(name, values): &(&str, &[f64])| Column { name: (*name).to_owned(), values: values.to_vec() };
        run.flows[0].series.columns = columns.iter().map(column).collect();
        results.enter(scheme, point, Ok(PlayedRun::new(Values::new(), run)));
    }
    results
}

#[test]
fn a_figure_is_the_mean_over_runs_and_a_ratio_goes_run_by_run() {
    let results =
        results(&[("x", "p 1", [4, 4]), ("x", "p 2", [8, 4]), ("y", "p 1", [2, 4]), ("y", "p 2", [4, 4])]);
    for (keys, value, text) in [
        ("figure = 'goodput', flow = 'a', of = 'x'", 6e6, "6.000 Mbit/s (4.000 Mbit/s to 8.000 Mbit/s)"),
        ("figure = 'goodput', flow = 'b', of = 'x'", 4e6, "4.000 Mbit/s"),
        ("figure = 'goodput', flow = 'a', of = 'x', at = { seed = '1' }", 8e6, "8.000 Mbit/s"),
        ("figure = 'goodput', flow = 'a', of = 'x', over = { of = 'y' }", 2.0, "2.000 ± 0"),
        ("figure = 'completion', of = 'x'", 2.0, "2000 ms"),
        ("figure = 'first', flow = 'a', of = 'x'", 0.5, "0.5000 (0 to 1.000)"),
        ("figure = 'jain_goodput', of = 'x', each = 'seed', across = 'min'", 0.9, "0: 1.000; 1: 0.9000"),
        ("figure = 'goodput', flow = 'a', of = 'x', runs = 'max'", 8e6, "4.000 Mbit/s to 8.000 Mbit/s"),
        ("figure = 'goodput', flow = 'b', of = 'x', runs = 'max'", 4e6, "4.000 Mbit/s in all"),
        (
            "figure = 'goodput', flow = 'a', of = 'x', runs = 'mean', over = { of = 'y', at = { seed = '2' } }",
            3.0,
            "6.000 Mbit/s (4.000 Mbit/s to 8.000 Mbit/s) over 2.000 Mbit/s",
        ),
        (
            "figure = 'goodput', flow = 'a', of = 'x', at = 'p', excess = { of = 'y' }, pairs = { above = 0 }, \
             show = '{value:int} of {all}'",
            2.0,
            "2 of 2",
        ),
        (
            "figure = 'goodput', flow = 'a', of = 'x', over = { of = 'y' }, pairs = 'mean'",
            2.0,
            "2.000 ± 0 (6.000 over 3.000 Mbit/s)",
        ),
        (
            "figure = 'goodput', flow = 'a', of = 'y', runs = 'mean', reduction = { of = 'x' }, scale = 100, \
             show = '{value} % ({of:M} of {to:M})'",
            50.0,
            "50.00 % (3.000 of 6.000)",
        ),
        (
            "figure = 'goodput', flow = 'a', of = 'x', each = 'point', across = 'least_rise', show = '{group} {value:M}', \
             join = ', ', around = '[{}]'",
            4e6,
            "[p 1 4.000, p 2 8.000]",
        ),
        (
            "value = 8e6, runs = 'max', over = { figure = 'goodput', flow = 'a', of = 'x' }, show = '{value}'",
            1.0,
            "1.000",
        ),
    ] {
        let found = measured(keys, &results);
        assert!((found.value - value).abs() < 1e-9, "{keys}: {found:?}");
        assert!(found.text.starts_with(text), "{keys}: {found:?}");
    }
    for keys in ["figure = 'goodput', of = 'z'", "figure = 'goodput', of = 'x', at = 'q'"] {
        assert!(matches!(parse(keys).unwrap().of(&results), Err(Absent::Nothing(_))), "{keys}");
    }
}

#[test]
fn ratio_with_1_in_its_interval_is_undecided() {
    let results = results(&[("x", "1", [4, 4]), ("x", "2", [12, 4])]);
    let found = measured("figure = 'goodput', flow = 'a', of = 'x', over = { flow = 'b' }", &results);
    assert_eq!(found.value, 1.0);
    assert!(found.text.ends_with("on both sides of 1"), "{}", found.text);
}

#[test]
fn terms_can_be_compared_with_terms() {
    // Gains of 1 and 0.8 over 7 Mbit/s; 1 and 0.1 over their own ones.
    let results = results(&[
        ("plain", "cal 1", [6, 1]),
        ("plain", "cal 2", [8, 1]),
        ("de", "cal 1", [14, 1]),
        ("me", "cal 1", [21, 1]),
        ("cubic", "cubic 1", [10, 1]),
        ("cubic de", "cubic 1", [11, 1]),
    ]);
    let gain = |of: &str, over: &str| {
        format!(
            "term = {{ figure = 'goodput', flow = 'a', of = '{of}', runs = 'mean', excess = {{ of = '{over}' }} }}"
        )
    };
    let distance = format!(
        "{}, distance = {{ {} }}, runs = 'mean', show = '{{of:%}} and {{to:%}} %'",
        gain("de", "plain"),
        gain("me", "plain")
    );
    let found = measured(&distance, &results);
    assert!((found.value - 1.0).abs() < 1e-9, "{found:?}");
    assert_eq!(found.text, "100.0 and 200.0 %");
    let ratio = format!("{}, over = {{ {} }}, runs = 'mean'", gain("de", "plain"), gain("cubic de", "cubic"));
    assert!((measured(&ratio, &results).value - 10.0).abs() < 1e-9);
    let interval = "figure = 'goodput', flow = 'a', of = ['plain', 'cubic'], each = 'scheme', runs = 'mean', \
                    across = 'first', show = '{scheme} {value:bare} ±{half90:bare} / ±{ci95:bare}'";
    // 6 and 8: mean 7, deviation of the mean 1, t of one degree of freedom 6.314 and 12.71.
    let found = measured(interval, &results);
    assert_eq!((found.value, found.text.as_str()), (7e6, "plain 7.000 ±6.314 / ±12.71; cubic 10.00 ±– / ±–"));
}

#[test]
fn column_is_read_as_last_value_or_growth() {
    let columns: &[(&str, &[f64])] =
        &[("time_s", &[1.0, 2.0, 3.0, 4.0]), ("state_silent", &[f64::NAN, 3.0, 3.0, 5.0])];
    let results = with_columns(&[("de", "stop", columns)]);
    for (from, expected) in [(0.5, 5.0), (1.0, 5.0), (2.0, 2.0), (3.5, 2.0), (4.0, 0.0)] {
        let keys = format!(
            "column = 'state_silent', take = 'growth', from = {from}, of = 'de', runs = 'sum', show = '{{value}}, {{then}}', \
             with = {{ then = {{ column = 'state_silent', take = 'last', until = {from} }} }}"
        );
        let found = measured(&keys, &results);
        assert_eq!(found.value, expected, "after {from} s");
        let then = crate::figures::number(5.0 - expected);
        assert!(found.text.ends_with(&then), "{found:?}");
    }
    for (take, expected) in [("last", 5.0), ("min", 3.0), ("max", 5.0), ("mean", 11.0 / 3.0)] {
        let keys = format!("column = 'state_silent', take = '{take}', of = 'de'");
        assert!((measured(&keys, &results).value - expected).abs() < 1e-9, "{take}");
    }
}

#[test]
fn rows_that_differ_are_counted() {
    let rows: [&[f64]; 2] = [&[1.0, 2.0, f64::NAN], &[1.0, 3.0]];
    let results = with_columns(&[
        ("a", "low 1", &[("cwnd_bytes", rows[0])]),
        ("b", "low 1", &[("cwnd_bytes", rows[0])]),
        ("c", "low 1", &[("cwnd_bytes", rows[1])]),
    ]);
    for (other, expected) in [("b", 0.0), ("c", 2.0)] {
        let keys = format!(
            "column = 'cwnd_bytes', of = 'a', at = 'low', differs = {{ of = '{other}' }}, pairs = 'sum'"
        );
        assert_eq!(measured(&keys, &results).value, expected, "{other}");
    }
}

#[test]
fn samples_of_a_scheme_and_the_first_word_of_the_point_are_a_group() {
    let silent = |value: &'static [f64]| [("state_silent", value), ("state_told", &[2.0][..])];
    let results = with_columns(&[
        ("de", "cal drop 1", &silent(&[3.0])),
        ("de", "lit drop 1", &silent(&[10.0])),
        ("de", "cal drop 2", &silent(&[5.0])),
    ]);
    let keys = "column = 'state_silent', take = 'last', of = 'de', each = 'group', across = 'first', \
                show = '{group} {value} {told}', with = { told = { column = 'state_told', take = 'last' } }";
    let found = measured(keys, &results);
    assert_eq!((found.value, found.text.as_str()), (4.0, "de cal 4.000 2.000; de lit 10.00 2.000"));
}

#[test]
fn samples_without_a_figure_count_only_where_they_are_asked_for() {
    let results = with_columns(&[("a", "1", &[("x", &[1.0, f64::NAN, 3.0, 3.0])])]);
    assert!(parse("column = 'x', of = 'a'").unwrap().of(&results).is_err());
    let keys = "column = 'x', of = 'a', sparse = true, show = '{value}, {count} of {all}, {without} without; {histogram}'";
    assert_eq!(measured(keys, &results).text, "2.333, 3 of 4, 1 without; 1 of 1, 0 of 2, 2 of 3");
}

#[test]
fn a_run_without_the_figure_in_one_scheme_counts_for_neither() {
    let results = with_columns(&[
        ("a", "1", &[("x", &[2.0])]),
        ("a", "2", &[("x", &[100.0])]),
        ("b", "1", &[("x", &[4.0])]),
        ("b", "2", &[("x", &[f64::NAN])]),
    ]);
    let keys = "column = 'x', of = 'a', runs = 'mean', over = { of = 'b' }, show = '{value}'";
    assert!(parse(keys).unwrap().of(&results).is_err());
    assert_eq!(measured(&format!("{keys}, sparse = true"), &results).value, 0.5);
}

#[test]
fn errors_name_the_place_and_the_cause() {
    for (keys, expected) in [
        ("figure = 'goodputt', of = 'x'", "the closest is \"goodput\""),
        ("figure = 'goodput', off = 'x'", "unknown field `off`"),
        ("figure = 'goodput', column = 'x', of = 'x'", "one of figure, column"),
        ("figure = 'goodput', of = 'x', over = { of = 'y' }, less = { of = 'y' }", "compared with one other"),
        ("figure = 'goodput', of = 'x', flow = 'a', flows = 'b'", "either `flow` or `flows`"),
        ("figure = 'goodput', of = 'x', pairs = 'mean'", "`pairs` needs a comparison"),
        ("figure = 'goodput', of = 'x', show = '{valu}'", "no field \"valu\""),
        ("figure = 'goodput', of = 'x', show = '{value:?}'", "no format \"?\""),
        ("figure = 'goodput', of = 'x', show = '{value'", "a brace is open"),
        ("figure = 'goodput', of = 'x', over = 'y'", "expected a table of keys"),
    ] {
        let error = parse(keys).unwrap_err();
        assert!(error.contains(expected), "{keys}: {error}");
    }
}
