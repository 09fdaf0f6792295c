use super::*;
use crate::figure::Values;
use crate::synthetic;

/// Two schemes at three points: `a` has delays 10, 20, 30 ms and `b` 20, 20, 90 ms; targets 10, 25 and 30 ms.
fn cells() -> Cells {
    let mut cells = Cells::default();
    for (scheme, delays) in [("a", [0.010, 0.020, 0.030]), ("b", [0.020, 0.020, 0.090])] {
        for ((point, target), delay) in [("p", "10ms"), ("q", "25ms"), ("r", "30ms")].into_iter().zip(delays)
        {
            let places = Values::from([("target".to_owned(), target.to_owned())]);
            let cell = Cell::new(places, synthetic::run("cubic", 1))
                .with("delay_mean", delay)
                .with("throughput", 1.0 / delay);
            cells.enter(scheme, point, Ok(cell));
        }
    }
    let single = Cell::new(Values::new(), synthetic::run("cubic", 1))
        .with("delay_mean", 0.025)
        .with("throughput", 60.0);
    cells.enter("single", "-", Ok(single));
    cells
}

fn measure(text: &str) -> Measure {
    #[derive(Deserialize)]
    struct Wrapper {
        measure: Measure,
    }
    toml_edit::de::from_str::<Wrapper>(&format!("measure = {{ {text} }}")).unwrap().measure
}

#[test]
fn each_measurement_is_what_its_words_say() {
    let delay = "metric = \"delay_mean\"";
    for (text, expected, shown) in [
        (format!("kind = \"ratio\", {delay}, of = \"b\", to = \"a\""), 2.0, "2.000"),
        (
            format!("kind = \"ratio\", {delay}, of = \"b\", to = \"a\", mean = \"ratio_of_means\""),
            130.0 / 60.0,
            "2.167",
        ),
        (format!("kind = \"ratio\", {delay}, of = \"b\", to = \"a\", points = [\"r\"]"), 3.0, "3.000"),
        (
            format!("kind = \"least_ratio\", {delay}, of = [\"b\", \"a\"], to = \"a\""),
            1.0,
            "b 2.000, a 1.000",
        ),
        (
            format!("kind = \"lowest\", {delay}, of = \"a\", among = [\"a\", \"b\"]"),
            2.0,
            "2 of 3; not at q (b)",
        ),
        (format!("kind = \"value\", {delay}, of = \"a\""), 0.020, "mean 20.00 ms"),
        (format!("kind = \"value\", {delay}, of = \"b\", over = \"max\""), 0.090, "largest 90.00 ms, at r"),
        (
            format!("kind = \"value\", {delay}, of = \"b\", over = \"min\", points = [\"r\"]"),
            0.090,
            "90.00 ms",
        ),
        (format!("kind = \"order\", {delay}, of = [\"a\", \"b\"]"), 2.0, "a 1.000, b 2.000"),
        (format!("kind = \"order\", {delay}, of = [\"b\", \"a\"]"), (0.5 + 1.0 + 1.0 / 3.0) / 3.0, "b 1.000"),
        (
            format!("kind = \"chain\", {delay}, of = [\"a@p\", \"single\", \"a@r\"]"),
            1.2,
            "a@p 10.00 ms, single 25.00 ms, a@r 30.00 ms",
        ),
        (
            format!("kind = \"monotonic\", {delay}, of = \"a\""),
            1.5,
            "smallest step x1.500; 10.00 ms to 30.00 ms",
        ),
        (
            "kind = \"monotonic\", metric = \"throughput\", of = \"a\"".to_owned(),
            0.5,
            "smallest step x0.5000",
        ),
        (format!("kind = \"spread\", {delay}, of = \"b\""), 3.5, "350.0 %"),
        (format!("kind = \"spread\", {delay}, of = \"b\", points = [\"p\", \"q\"]"), 0.0, "0 %"),
        (
            format!("kind = \"deviation\", {delay}, of = \"a\", from = \"target\""),
            0.2,
            "largest -20.0 %, at q",
        ),
        (
            "kind = \"below\", metrics = [\"delay_mean\", \"throughput\"], of = \"a\", than = \"single\""
                .to_owned(),
            1.0,
            "q",
        ),
    ] {
        let measured = measure(&text).of(&cells()).unwrap();
        assert!((measured.value - expected).abs() < 1e-9, "{text}: {measured:?}");
        assert!(measured.text.starts_with(shown), "{text}: {measured:?}");
    }
}

#[test]
fn what_is_missing_is_named() {
    let mut cells = cells();
    cells.enter("b", "s", Err(Absent::Trace(vec!["lost.down".to_owned()])));
    cells.enter("a", "s", Err(Absent::Trace(vec!["lost.down".to_owned()])));
    let of = |text: &str| measure(text).of(&cells);
    let missing = Err(Absent::Trace(vec!["lost.down".to_owned()]));
    assert_eq!(of("kind = \"ratio\", metric = \"delay_mean\", of = \"b\", to = \"a\""), missing);
    assert_eq!(of("kind = \"value\", metric = \"delay_mean\", of = \"b\""), missing);
    assert!(of("kind = \"value\", metric = \"delay_mean\", of = \"b\", points = [\"p\"]").is_ok());
    assert!(matches!(
        of("kind = \"value\", metric = \"delay_mean\", of = \"b\", points = [\"z\"]"),
        Err(Absent::Nothing(_))
    ));
    cells.enter("c", "p", Err(Absent::Run));
    assert_eq!(measure("kind = \"value\", metric = \"delay_mean\", of = \"c\"").of(&cells), Err(Absent::Run));
}

#[test]
fn another_scheme_takes_the_place_of_one() {
    for text in [
        "kind = \"ratio\", metric = \"delay_mean\", of = \"X\", to = \"a\"",
        "kind = \"least_ratio\", metric = \"delay_mean\", of = [\"X\", \"a\"], to = \"X\"",
        "kind = \"lowest\", metric = \"delay_mean\", of = \"X\", among = [\"a\", \"X\"]",
        "kind = \"chain\", metric = \"delay_mean\", of = [\"X@p\", \"single\", \"X2\"]",
        "kind = \"order\", metric = \"delay_mean\", of = [\"X\", \"a\"]",
        "kind = \"below\", metrics = [\"delay_mean\"], of = \"X\", than = \"single\"",
        "kind = \"function\", name = \"c2tcp_history\", of = [\"X\"]",
        "figure = \"goodput\", of = \"X\", over = { of = \"a\" }",
        "term = { figure = \"goodput\", of = \"a\", excess = { of = \"X\" } }, less = { value = 1 }",
    ] {
        let expected = measure(&text.replace("X2", "#").replace('X', "b").replace('#', "X2"));
        assert_eq!(measure(text).instead("X", "b"), expected, "{text}");
    }
}
