use super::*;
use crate::figure::{Values, testing};
use crate::reproduce::{Absent, Measured};
use crate::synthetic;
use ranpace_sim::Column;
use ranpace_units::Time;

const START: f64 = 1.0;

/// A value computed from the end of its row.
type At = fn(f64) -> f64;
/// A column.
type Named<'a> = (&'a str, At);

fn places(pairs: &[(&str, &str)]) -> Values {
    let usual = [("start", "1s"), ("stagger", "2s"), ("rtt", "100ms")];
    let all = usual.iter().chain(pairs);
    all.map(|(place, value)| ((*place).to_owned(), (*value).to_owned())).collect()
}

/// Ten seconds in rows of 100 ms, with as many flows as columns; values are computed from the end of their rows.
fn run(columns: &[&[Named<'_>]]) -> RunResult {
    let mut run = synthetic::run_of(&vec!["cdbev2"; columns.len()], 1);
    let column = |name: &str, value: At| Column {
        name: name.to_owned(),
        values: (1..=100).map(|row| value(f64::from(row) / 10.0)).collect(),
    };
    for (flow, own) in run.flows.iter_mut().zip(columns) {
        flow.series.columns = vec![column("time_s", |time| time)];
        flow.series.columns.extend(own.iter().map(|(name, value)| column(name, *value)));
        flow.totals.first_sent = Some(Time::from_millis(1_050));
        flow.bottleneck = Some(0);
    }
    run.end = Time::from_millis(10_000);
    run.links[0].series.columns = vec![
        column("time_s", |time| time),
        column("capacity_bit_s", |time| if time <= 5.0 { 10e6 } else { 4e6 }),
        column("departed_bit_s", |time| if time <= 5.0 { 5e6 } else { 3e6 }),
        // 5 % of 100 ms are 6250 bytes at first and 2500 later.
        column("queued_bytes", |time| {
            let low = [(2.0, 6250.0), (7.0, 2501.0), (8.0, 2500.0)];
            low.iter().find(|(at, _)| close(time, *at)).map_or(9000.0, |(_, bytes)| *bytes)
        }),
    ];
    run
}

fn measure(keys: &str, of: &[(&str, RunResult)]) -> Result<Measured, Absent> {
    let keys = format!("runs = \"mean\", each = \"part\", across = \"min\", {keys}");
    let with_places =
        |(flows, run): &(&str, RunResult)| (places(&[("flows", flows), ("t1", "5s")]), run.clone());
    testing::measure(&keys, of.iter().map(with_places).collect())
}

fn close(found: f64, expected: f64) -> bool {
    (found - expected).abs() < 1e-9
}

#[test]
fn shares_are_those_of_the_window_and_a_newcomer_counts_from_its_first_second_on() {
    // From 1 s 8 Mbit/s; from 3 s 2, and from 5 s 8.
    let first: At = |time| 1e6 * (time - START).max(0.0);
    let second: At = |time| 0.25e6 * (time - 3.0).max(0.0) + 0.75e6 * (time - 5.0).max(0.0);
    let of = [("2", run(&[&[("delivered_bytes", first)], &[("delivered_bytes", second)]]))];
    let jain = |a: f64, b: f64| (a + b) * (a + b) / (2.0 * (a * a + b * b));
    for (text, expected) in [
        ("figure = \"window_jain\", last = 2.0", 1.0),
        ("figure = \"window_jain\", after_join = 1.0", jain(8.0, (2.0 + 5.0 * 8.0) / 6.0)),
        // The first segment's last 3 s begin at 2 s, the second flow joins at 3 s.
        ("figure = \"segment_jain\"", jain(8.0, 2.0)),
        // The second before 5.9 s: 0.9 s with 8, 0.1 s with 2 Mbit/s.
        ("figure = \"convergence\"", if jain(8.0, 5.0) >= 0.95 { 2.5 } else { 2.6 }),
    ] {
        let found = measure(text, &of).unwrap();
        assert!(close(found.value, expected), "{text}: {found:?}, not {expected}");
    }
}

#[test]
fn queue_time_uses_the_link_rate_of_that_time() {
    let of = [("1", run(&[&[]]))];
    for (text, expected) in [
        ("figure = \"longest_queued\"", 6.0), // from 2 to 8 s
        ("figure = \"longest_queued\", last = 9.5", 6.0),
        ("figure = \"longest_queued\", last = 3.0", 2.0),
    ] {
        let found = measure(text, &of).unwrap();
        assert!(close(found.value, expected), "{text}: {found:?}, not {expected}");
    }
}

#[test]
fn time_without_minimal_rtt_lasts_to_the_end_of_the_window() {
    // Within 105 ms at 4.0 and 6.5 s, and once more between the samples at 8.0 s, where the record is too large at first.
    let rtt: At = |time| if close(time, 4.0) || close(time, 6.5) { 0.104 } else { 0.15 };
    let hits: At = |time| f64::from(u8::from(time > 4.75)) + f64::from(u8::from(time > 7.95));
    let record: At = |time| if time > 6.0 { 0.101 } else { 0.12 };
    let flow: &[Named<'_>] = &[("rtt_last_s", rtt), ("state_hits", hits), ("state_min_rtt_s", record)];
    let other: &[Named<'_>] =
        &[("rtt_last_s", |_| 0.1), ("state_hits", hits), ("state_min_rtt_s", |_| 0.103)];
    let of = [("2", run(&[flow, other]))];
    for (text, expected) in [
        // From 3 s: 1 s, 2.5 s, 1.5 s, 2 s until the end.
        ("figure = \"longest_without_minimum\"", 2.5),
        ("figure = \"longest_without_minimum\", last = 3.0", 2.0),
        ("figure = \"largest_record\"", 0.103),
    ] {
        let found = measure(text, &of).unwrap();
        assert!(close(found.value, expected), "{text}: {found:?}, not {expected}");
    }
}

#[test]
fn segments_begin_at_changes_and_settle_for_three_seconds() {
    let of = [("1", run(&[&[]]))];
    let found = measure("figure = \"segment_utilisation\"", &of).unwrap();
    assert_eq!((found.value, found.text.as_str()), (0.5, "50.00 %; 75.00 %"));
    // 5 s of 5 of 10 and 5 s of 3 of 4 Mbit/s; the flow joins at 1 s.
    let found = measure("figure = \"window_utilisation\"", &of).unwrap();
    assert!(close(found.value, (4.0 * 5.0 + 5.0 * 3.0) / (4.0 * 10.0 + 5.0 * 4.0)), "{found:?}");
}

#[test]
fn recovery_is_counted_from_the_highest_rtt_on() {
    // Still low at the change (5 s), at its highest at 5.5 s, below 200 ms from 6.8 s on.
    let rtt: At = |time| match time {
        time if time < 5.35 => 0.12,
        time if time < 5.55 => 0.3 + time / 100.0,
        time if time < 6.75 => 0.25,
        _ => 0.15,
    };
    let of = [("1", run(&[&[("rtt_last_s", rtt)]]))];
    assert!(close(measure("figure = \"recovery\"", &of).unwrap().value, 1.8));
}

#[test]
fn states_are_timed_from_the_first_data_on() {
    let first: At = |time| match time {
        time if time < 1.55 => 0.0,
        time if time < 1.85 => 1.0,
        time if time < 4.15 => 2.0 + f64::from(u8::from(time > 3.05)),
        time if time < 4.35 => 4.0,
        _ => 2.0,
    };
    let second: At = |time| match time {
        time if time < 4.05 => 0.0,
        time if time < 4.95 => 1.0,
        _ => 2.0,
    };
    let kilobytes: At = |time| 100e3 * time;
    let twice: At = |time| 200e3 * time;
    let both = |flow, bytes| [("state_state", flow), ("delivered_bytes", bytes)];
    let of = [("2", run(&[&both(first, kilobytes), &both(second, twice)]))];
    for (figure, expected) in [
        ("startup_time", 0.55),
        ("first_drain", 0.3),
        ("first_deep_drain", 2.6),
        ("exit_share", 2.0),
        ("jain_after_drain", 9.0 / 10.0),
    ] {
        let found = measure(&format!("figure = \"{figure}\""), &of).unwrap();
        assert!(close(found.value, expected), "{figure}: {found:?}, not {expected}");
    }
    let never = [("1", run(&[&[("state_state", |_| 0.0)]]))];
    assert!(matches!(measure("figure = \"startup_time\"", &never), Err(Absent::Nothing(_))));
}
