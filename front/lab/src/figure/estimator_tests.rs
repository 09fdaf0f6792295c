use ranpace_sim::RunResult;

use super::super::testing::{column, run, value};

const STEPS: [(&str, &str); 7] = [
    ("rates", "10 20 5"),
    ("times", "0 10 20"),
    ("duration", "30s"),
    ("payload", "500"),
    ("packet", "1000"),
    ("window", "100ms"),
    ("biases", "20:0.04"),
];

/// 10, 20 and 5 Mbit/s for 10 s each, payload a half; the estimate has settled 0.2 s after the rise and 0.5 s after the fall.
fn stepped(bias: f64) -> RunResult {
    let rate = move |row: usize| match row + 1 {
        ..=1_020 => 5e6,
        1_021..=2_050 => 10e6 * (1.0 + bias),
        _ => 2.5e6,
    };
    run(3_000, vec![column("receiver_estimate_bit_s", 3_000, rate)])
}

#[test]
fn an_estimate_settles_in_long_windows() {
    let run = stepped(0.0);
    // The first row that stays within 5 %: 10.21 s and 20.51 s, in windows of 100 ms.
    assert!((value("settle_after_rise", &run, &STEPS) - 2.1).abs() < 1e-6);
    assert!((value("settle_after_fall", &run, &STEPS) - 5.1).abs() < 1e-6);
    assert_eq!(value("estimate_error", &run, &STEPS), 0.0);
    // An estimate that never gets near has not settled by the end of its step, 10 s later.
    assert!((value("settle_after_rise", &stepped(0.07), &STEPS) - 100.0).abs() < 0.2);
}

#[test]
fn a_bias_is_compared_with_the_expected_one() {
    assert!((value("estimate_bias_error", &stepped(0.07), &STEPS) - 0.03).abs() < 1e-9);
}

#[test]
fn estimates_are_compared_with_what_arrived() {
    let rate = |row: usize| 10e6 + 1e6 * ((row / 50) % 7) as f64;
    let columns = |lag: usize, factor: f64| {
        vec![
            column("goodput_bit_s", 1_000, rate),
            column("receiver_estimate_bit_s", 1_000, move |row| factor * rate(row.saturating_sub(lag))),
        ]
    };
    let near = run(1_000, columns(5, 1.0));
    assert!(value("estimate_correlation", &near, &[]) > 0.98);
    let late = run(1_000, columns(20, 1.1));
    let [now, lagged, error] = ["estimate_correlation", "estimate_correlation_lagged", "estimate_deviation"]
        .map(|function| value(function, &late, &[]));
    assert!(now < 0.9 && lagged > 0.98, "{now} {lagged}");
    assert!((0.09..0.2).contains(&error), "{error}");
    let mean_error = value("estimate_mean_error", &late, &[]);
    assert!((mean_error - 0.1).abs() < 0.01, "{mean_error}");
}
