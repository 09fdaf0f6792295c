use ranpace_units::Bytes;

use super::super::testing::{column, run, value};
use crate::synthetic;

#[test]
fn gaps_of_the_sequence_trace_are_rtt_and_flight() {
    let rate = 1e6 / 100.0;
    let of = |rtt: f64| {
        run(
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
    assert!(value("vertical_gap", &of(0.1), &[]) < 1e-9);
    assert!(value("horizontal_gap", &of(0.1), &[]) < 1e-9);
    assert!((value("horizontal_gap", &of(0.2), &[]) - 0.5).abs() < 1e-9);
}

#[test]
fn recovery_is_the_time_until_the_flight_is_full() {
    let places = [("rise", "2s"), ("until", "8s"), ("most", "100"), ("payload", "1000")];
    let growing =
        |slope: f64| run(1_000, vec![column("in_flight_bytes", 1_000, move |row| slope * row as f64)]);
    // 95 packets: rows 950 (too late: 6 s count) and 475, which is 2.76 s after the rise.
    assert!((value("recovery_time", &growing(100.0), &places) - 6.0).abs() < 1e-6);
    assert!((value("recovery_time", &growing(200.0), &places) - 2.76).abs() < 1e-6);
}

#[test]
fn reports_cost_four_bytes_a_segment() {
    let mut run = synthetic::run("dcic", 1);
    run.links[0].name = "wire.back".to_owned();
    (run.links[0].departed, run.links[0].departed_packets) = (Bytes::new(715 * 56), 715);
    run.flows[0].dropped_packets = 0;
    assert_eq!(value("report_bytes", &run, &[]), 2_860.0);
    assert!(value("report_bytes_error", &run, &[("size", "1MB")]) < 1e-9);
}
