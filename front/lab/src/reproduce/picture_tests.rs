use ranpace_sim::Column;

use super::super::experiment::{Experiment, Values};
use super::super::picture_spec::Show;
use super::super::results::{PlayedRun, Results};
use super::pictures;
use super::values::{counts, over_place, quantile};
use crate::figure::Figure;
use crate::synthetic;

const HEAD: &str = r#"
    id = "000-a1"
    title = "t"
    source = "s"
    says = ""
    [[scheme]]
    label = "x"
    set = {}
    [[scheme]]
    label = "y"
    set = {}
    [[criterion]]
    id = "c"
    text = "t"
    published = "1"
    measure = { figure = "rtt_mean", of = "x", at = "1MB" }
"#;

const BARS: &str = r#"
    [[picture]]
    figure = "Fig. 1"
    title = "RTTs"
    form = "bars"
    read = "section 2"
    show = { metric = "rtt_mean" }
    x = { title = "size", names = ["1 MB", "10 MB"] }
    y = { title = "RTT", unit = "ms" }
    [[picture.series]]
    label = "x"
    of = ["x@1MB", "x@10MB"]
    published = [25.0, nan]
    [[picture.series]]
    label = "judged"
    criteria = ["c", ""]
"#;

fn experiment(pictures: &str) -> Result<Experiment, String> {
    Experiment::parse(&format!("{HEAD}{pictures}"), "test").map_err(|error| error.to_string())
}

/// Three drops of two sizes; only at 1 MB do they differ.
fn results() -> Results {
    let mut results = Results::default();
    for drop in 1..=3 {
        for (size, rtt) in [("1MB", 0.02 + f64::from(drop) * 0.001), ("10MB", 0.05)] {
            for scheme in ["x", "y"] {
                let places = Values::from([("size".to_owned(), size.to_owned())]);
                let run = PlayedRun::new(places, synthetic::run("cubic", 1)).with("rtt_mean", rtt);
                results.enter(scheme, &format!("{size} drop {drop}"), Ok(run));
            }
        }
    }
    results
}

#[test]
fn bars_stand_beside_what_was_published_and_have_intervals_where_something_varies() {
    let drawn = pictures(&experiment(BARS).unwrap(), &results()).unwrap();
    let [picture] = &drawn[..] else { panic!("{}", drawn.len()) };
    for expected in ["Fig. 1: RTTs", "1 MB", "10 MB", "RTT (ms)", "published", "judged"] {
        assert!(picture.svg.contains(expected), "{expected}");
    }
    assert!(picture.caption.starts_with("Hollow diamonds were published: section 2."), "{}", picture.caption);
    assert!(picture.caption.contains("over 3 runs"), "{}", picture.caption);
    let values = picture.values.as_ref().unwrap();
    let head: Vec<&str> = values.head.iter().map(|(_, unit)| unit.as_str()).collect();
    assert_eq!(head, ["", "", "ms", "ms"]);
    let rows: Vec<Vec<&str>> =
        values.rows.iter().map(|row| row.iter().map(String::as_str).collect()).collect();
    assert_eq!(rows[0], ["x", "1 MB", "25.00", "22.0 ± 2.5"]);
    assert_eq!(rows[1], ["x", "10 MB", "", "50.00"]);
    assert_eq!(rows[2], ["judged", "1 MB", "", "22.00"]);
    assert_eq!(rows.len(), 3);
}

#[test]
fn without_runs_and_published_values_there_is_no_picture() {
    let experiment = experiment(&BARS.replace("published = [25.0, nan]", "")).unwrap();
    assert!(pictures(&experiment, &Results::default()).unwrap().is_empty());
}

#[test]
fn lines_are_means_over_the_runs_of_each_value() {
    let show = Show { metric: Figure::named("rtt_mean"), ..Show::default() };
    let points = over_place(&results(), "x", "size", &show, true);
    assert_eq!(points.iter().map(|point| point.0).collect::<Vec<_>>(), [1e6, 10e6]);
    assert!((points[0].1.mean - 0.022).abs() < 1e-12 && points[0].1.ends.is_some());
    assert!((points[1].1.mean - 0.05).abs() < 1e-12 && points[1].1.ends.is_none());
    let same = Show { to: Some("y".to_owned()), ..show.clone() };
    assert_eq!(over_place(&results(), "x", "size", &same, true)[1].1.mean, 1.0);
    assert!(over_place(&results(), "x", "nothing", &show, true)[0].0.is_nan());
}

#[test]
fn every_form_is_drawn() {
    for (form, x) in [
        ("lines", "title = \"size\", unit = \"MB\", place = \"size\""),
        ("cdf", "title = \"RTT\", unit = \"ms\""),
        ("time", "title = \"time\", unit = \"s\""),
        ("scatter", "title = \"RTT\", unit = \"ms\", show = { metric = \"rtt_mean\" }"),
        ("box", "title = \"\", names = [\"1 MB\"]"),
    ] {
        let show = if form == "time" { "column = \"goodput_bit_s\"" } else { "metric = \"rtt_mean\"" };
        let text = format!(
            "[[picture]]\ntitle = \"t\"\nform = \"{form}\"\nshow = {{ {show} }}\nx = {{ {x} }}\n\
             y = {{ title = \"up\" }}\n[[picture.series]]\nlabel = \"x\"\nof = \"x@1MB\"\n"
        );
        let drawn = pictures(&experiment(&text).unwrap(), &results()).unwrap();
        assert_eq!(drawn.len(), 1, "{form}");
        assert!(drawn[0].caption.is_empty() || !drawn[0].caption.contains("published"), "{form}");
    }
}

#[test]
fn a_histogram_counts_the_values_of_all_runs_and_its_last_bar_has_all_larger_ones() {
    let text = "[[picture]]\ntitle = \"bursts\"\nform = \"histogram\"\nshow = { metric = \"loss_bursts\" }\n\
                x = { title = \"length\", names = [\"1\", \"2\", \"3 or more\"] }\ny = { title = \"bursts\" }\n\
                [[picture.series]]\nlabel = \"x\"\nof = \"x\"\n";
    // Bursts of 1, 5 and 3 packets.
    let dropped = vec![1.0, 0.0, 2.0, 3.0, 0.0, 0.0, 3.0];
    let mut results = Results::default();
    for drop in 1..=2 {
        let mut run = synthetic::run("cubic", drop);
        run.links[0].name = "phone.down".to_owned();
        run.links[0].series.columns =
            vec![Column { name: "dropped_packets".to_owned(), values: dropped.clone() }];
        results.enter("x", &drop.to_string(), Ok(PlayedRun::new(Values::new(), run)));
    }
    let spec = &experiment(text).unwrap().pictures[0];
    let counts: Vec<f64> = counts(spec, &spec.series[0], &results).iter().map(|value| value.mean).collect();
    assert_eq!(counts, [2.0, 0.0, 4.0]);
    assert_eq!(pictures(&experiment(text).unwrap(), &results).unwrap().len(), 1);
    for (from, to) in
        [("of = \"x\"", "of = [\"x\", \"y\"]"), ("metric = \"loss_bursts\"", "samples = \"rtt\"")]
    {
        let error = experiment(&text.replace(from, to)).unwrap_err();
        assert!(error.contains("needs the metric of one `of`"), "{error}");
    }
}

#[test]
fn contradictory_picture_is_refused() {
    for (case, from, to, expected) in [
        ("unknown unit", "unit = \"ms\"", "unit = \"msec\"", "no unit \"msec\"; known are Gbit/s"),
        ("unknown scheme", "x@10MB", "z@10MB", "no scheme \"z\""),
        ("unknown criterion", "criteria = [\"c\", \"\"]", "criteria = [\"d\", \"\"]", "no criterion \"d\""),
        ("unknown key", "form =", "shape = 1\nform =", "shape"),
        ("nothing shown", "show = { metric = \"rtt_mean\" }", "", "neither has a metric"),
        ("a group without a value", "[25.0, nan]", "[25.0]", "not one entry for each of the 2"),
        ("points of bars", "[25.0, nan]", "[[1.0, 25.0]]", "must be a value for each"),
        ("a model that is none", "form = \"bars\"", "form = \"bars\"\nmodel = \"filter\"", "needs a model"),
        ("no title", "title = \"RTT\", ", "title = \"\", ", "needs a title of y"),
        ("no groups", ", names = [\"1 MB\", \"10 MB\"]", "", "need x.names"),
        ("bars over a place", "title = \"size\",", "title = \"size\", place = \"size\",", "need x.place"),
        (
            "an empty range",
            "unit = \"ms\"",
            "unit = \"ms\", range = [2.0, 2.0]",
            "from a smaller to a larger",
        ),
    ] {
        let text = BARS.replace(from, to);
        assert_ne!(text, BARS, "{case}");
        let error = experiment(&text).unwrap_err();
        assert!(error.contains(expected), "{case}: {error}");
    }
}

#[test]
fn quantiles_are_points_of_the_distribution() {
    let function = [(1.0, 0.0), (1.0, 0.25), (2.0, 0.5), (4.0, 1.0)];
    assert_eq!([0.05, 0.5, 0.51, 1.0].map(|share| quantile(&function, share)), [1.0, 2.0, 4.0, 4.0]);
    assert!(quantile(&[], 0.5).is_nan());
}
