use super::*;
use crate::synthetic;
use ranpace_sim::Column;

/// A run of 10 s in rows of 100 ms with a flow that delivers `rate` bytes a row, half of it from 5 s on if it `fails`.
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

fn results(fails: bool) -> Results {
    let mut results = Results::default();
    for drop in ["1", "2"] {
        let of_drop = [("drop", drop)];
        let places = |pairs: &[(&str, &str)]| -> Values {
            let all = pairs.iter().chain(&of_drop);
            all.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        results.enter(
            "plain",
            &format!("plain drop {drop}"),
            Ok(PlayedRun::new(places(&[]), run(100.0, false))),
        );
        let own = places(&[("from", "5s"), ("period", "8ms")]);
        results.enter("own", &format!("stopped drop {drop}"), Ok(PlayedRun::new(own, run(100.0, fails))));
    }
    results
}

fn faults() -> Faults {
    let (plain, flows) = ("plain".to_owned(), "own".to_owned());
    Faults { plain, flows, fallback_s: 1.0, periods: 3.0, at: Vec::new(), goodput_alone: false }
}

#[test]
fn permanently_halved_goodput_breaks_the_rule() {
    let row = &faults().rows("own", &results(true)).unwrap()[0];
    assert_eq!(row.label, "stopped");
    assert!((row.ratio - 0.75).abs() < 1e-9 && (row.after - 0.5).abs() < 1e-9, "{row:?}");
    // The mean over a second is below 0.9 from 0.2 s after the change on.
    assert!((row.longest - 4.0).abs() < 0.2, "{row:?}");
    assert!(row.breaks(), "the delay is the same");
    let whole = Fault { delay_ratio: 0.5, parts: Vec::new(), ..row.clone() };
    assert!(!whole.breaks(), "half of the delay excuses it");
    assert!(Fault { goodput_alone: true, ..whole }.breaks(), "unless goodput alone counts");
    let broken = |fails| faults().broken(&["own".to_owned()], &results(fails)).unwrap().value;
    assert_eq!((broken(true), broken(false)), (1.0, 0.0));
}

/// Delays while reports are missing with the plain one's goodput, and low goodput while they are there with an eighth of its delay:
/// each part alone satisfies the rule, and so does the whole.
#[test]
fn interrupted_reports_are_judged_per_segment() {
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
        let mut results = Results::default();
        let places = |pairs: &[(&str, &str)]| -> Values {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let plain = PlayedRun::new(places(&[("drop", "1")]), run([100.0; 3], [0.8; 3]));
        results.enter("plain", "none drop 1", Ok(plain));
        let own = places(&[("drop", "1"), ("from", "4s"), ("until", "7s"), ("period", "8ms")]);
        results.enter("own", "stopped drop 1", Ok(PlayedRun::new(own, run(rates, delays))));
        faults().rows("own", &results).unwrap().remove(0)
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
    // A part that the fallback time leaves empty is omitted.
    assert_eq!(parts(4.0, 5.0, 10.0, 1.2).len(), 2);
    assert_eq!(parts(0.0, 0.0, 10.0, 1.2).len(), 0);
    assert_eq!(parts(4.0, 0.0, 10.0, 1.2).len(), 2, "for good");
    // Rows are weighted by what they delivered.
    assert_eq!(p95((1..=100).map(|value| (f64::from(value), 1.0)).collect()), 95.0);
    assert_eq!(p95(vec![(1.0, 99.0), (9.0, 1.0)]), 1.0);
    assert!(p95(vec![(1.0, 0.0)]).is_nan());
}
