use ranpace_sim::{Column, FlowTotals};
use ranpace_units::{Bytes, Time};

use super::super::experiment::Values;
use super::*;
use crate::synthetic;

fn column(name: &str, rows: usize, value: impl Fn(usize) -> f64) -> Column {
    Column { name: name.to_owned(), values: (0..rows).map(value).collect() }
}

/// A run of one flow with these columns, a row each 10 ms.
fn cell(places: &[(&str, &str)], rows: usize, mut columns: Vec<Column>) -> Cell {
    let mut run = synthetic::run("cdbe", 1);
    columns.insert(0, column("time_s", rows, |row| (row + 1) as f64 / 100.0));
    run.flows[0].series.columns = columns;
    run.flows[0].totals.first_sent = Some(Time::ZERO);
    run.end = Time::from_millis(rows as u64 * 10);
    let places = places.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    Cell::new(places.collect::<Values>(), run)
}

fn cells(cell: Cell) -> Cells {
    let mut cells = Cells::default();
    cells.enter("x", "p", Ok(cell));
    cells
}

fn value(function: ThesisFunction, cell: &Cell) -> f64 {
    call(function, &["x".to_owned()], &cells(cell.clone())).unwrap().value
}

/// 10, 20 and 5 Mbit/s for 10 s each, payload a half; the estimate is there 0.2 s after the rise and 0.5 s after the fall.
fn stepped(bias: f64) -> Cell {
    let places = [
        ("rates", "10 20 5"),
        ("times", "0 10 20"),
        ("duration", "30s"),
        ("payload", "500"),
        ("packet", "1000"),
        ("window", "100ms"),
        ("biases", "20:0.04"),
    ];
    let rate = move |row: usize| match row + 1 {
        ..=1_020 => 5e6,
        1_021..=2_050 => 10e6 * (1.0 + bias),
        _ => 2.5e6,
    };
    cell(&places, 3_000, vec![column("receiver_estimate_bit_s", 3_000, rate)])
}

#[test]
fn an_estimate_settles_in_long_windows() {
    let run = stepped(0.0);
    // The first row within 5 % for good: 10.21 s and 20.51 s, in windows of 100 ms.
    assert!((value(ThesisFunction::SettleAfterRise, &run) - 2.1).abs() < 1e-6);
    assert!((value(ThesisFunction::SettleAfterFall, &run) - 5.1).abs() < 1e-6);
    assert_eq!(value(ThesisFunction::EstimateError, &run), 0.0);
    // What is never near has not settled at the end of its step, 10 s later.
    assert!((value(ThesisFunction::SettleAfterRise, &stepped(0.07)) - 100.0).abs() < 0.2);
}

#[test]
fn a_bias_is_compared_with_the_expected_one() {
    assert!((value(ThesisFunction::EstimateBias, &stepped(0.07)) - 0.03).abs() < 1e-9);
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
    let near = cell(&[], 1_000, columns(5, 1.0));
    assert!(value(ThesisFunction::EstimateCorrelation, &near) > 0.98);
    let late = cell(&[], 1_000, columns(20, 1.1));
    let [now, lagged, error] = [
        ThesisFunction::EstimateCorrelation,
        ThesisFunction::EstimateCorrelationLagged,
        ThesisFunction::EstimateDeviation,
    ]
    .map(|function| value(function, &late));
    assert!(now < 0.9 && lagged > 0.98, "{now} {lagged}");
    assert!((0.09..0.2).contains(&error), "{error}");
    let mean_error = value(ThesisFunction::EstimateMeanError, &late);
    assert!((mean_error - 0.1).abs() < 0.01, "{mean_error}");
}

/// STARTUP for 1 s with rBW growing by a quarter in each RTT of 100 ms from 0.2 s on; then NORMAL, GROW, NORMAL, DRAIN.
#[test]
fn states_and_growth_are_seen() {
    let state = |row: usize| match row {
        ..100 => 0.0,
        100..150 => 1.0,
        150..170 => 3.0,
        170..200 => 1.0,
        _ => 2.0,
    };
    let growth = |row: usize| 8e6 * libm::pow(1.25, (row.clamp(20, 99) as f64 - 20.0) / 10.0);
    let delay = |row: usize| if (170..200).contains(&row) { 0.080 } else { 0.055 };
    let run = cell(
        &[],
        300,
        vec![
            column("state_state", 300, state),
            column("state_bw_bit_s", 300, growth),
            column("state_min_rtt_s", 300, |_| 0.1),
            column("state_dsdl_mean_s", 300, delay),
            column("state_dsdl_min_s", 300, |_| 0.050),
        ],
    );
    assert!((value(ThesisFunction::StartupGrowth, &run) - 1.25).abs() < 1e-6);
    assert_eq!(value(ThesisFunction::StatesVisited, &run), 1.0);
    assert_eq!(value(ThesisFunction::GrowEndsWithRise, &run), 1.0);
    // From row 170 to row 199.
    assert!((value(ThesisFunction::LongestWithoutDrain, &run) - 2.9).abs() < 1e-6);
}

#[test]
fn recovery_is_the_time_until_the_flight_is_full() {
    let places = [("rise", "2s"), ("until", "8s"), ("most", "100"), ("payload", "1000")];
    let growing = |slope: f64| column("in_flight_bytes", 1_000, move |row| slope * row as f64);
    let mut both = Cells::default();
    both.enter("slow", "p", Ok(cell(&places, 1_000, vec![growing(100.0)])));
    both.enter("fast", "p", Ok(cell(&places, 1_000, vec![growing(200.0)])));
    let of = ["slow", "fast"].map(str::to_owned);
    // 95 packets: rows 950 (too late: 6 s count) and 475, which is 2.76 s after the rise.
    let ratio = call(ThesisFunction::RecoveryRatio, &of, &both).unwrap();
    assert!((ratio.value - 6.0 / 2.76).abs() < 1e-6, "{ratio:?}");
}

#[test]
fn gaps_of_the_sequence_trace_are_rtt_and_flight() {
    let rate = 1e6 / 100.0;
    let run = |rtt: f64| {
        cell(
            &[],
            1_000,
            vec![
                column("sent_bytes", 1_000, |row| rate * row as f64),
                column("acked_bytes", 1_000, |row| rate * (row as f64 - 10.0).max(0.0)),
                column("in_flight_bytes", 1_000, |_| rate * 10.0),
                column("rtt_last_s", 1_000, move |_| rtt),
                column("retransmitted_packets", 1_000, |_| 0.0),
            ],
        )
    };
    assert!(value(ThesisFunction::VerticalGap, &run(0.1)) < 1e-9);
    assert!(value(ThesisFunction::HorizontalGap, &run(0.1)) < 1e-9);
    assert!((value(ThesisFunction::HorizontalGap, &run(0.2)) - 0.5).abs() < 1e-9);
}

#[test]
fn reports_cost_four_bytes_a_segment() {
    let mut run = synthetic::run("dcic", 1);
    run.links[0].name = "wire.back".to_owned();
    (run.links[0].departed, run.links[0].departed_packets) = (Bytes::new(715 * 56), 715);
    run.flows[0].dropped_packets = 0;
    let places = Values::from([("size".to_owned(), "1MB".to_owned())]);
    let measured =
        call(ThesisFunction::ReportBytes, &["x".to_owned()], &cells(Cell::new(places, run))).unwrap();
    assert!(measured.value < 1e-9);
    assert_eq!(measured.text, "2.860 kB for 1.000 MB");
}

#[test]
fn flows_that_sent_less_are_counted() {
    let mut both = Cells::default();
    for (scheme, sent) in [("a", [1, 9]), ("b", [5, 5])] {
        let mut run = synthetic::run_of(&["dcic", "dcic"], 1);
        for (flow, sent) in run.flows.iter_mut().zip(sent) {
            flow.totals = FlowTotals { sent_once: Bytes::new(sent), ..FlowTotals::default() };
        }
        both.enter(scheme, "10MB drop 1", Ok(Cell::new(Values::new(), run)));
    }
    let of = ["a", "b"].map(str::to_owned);
    assert_eq!(call(ThesisFunction::SentLess, &of, &both).unwrap().value, 0.5);
}
