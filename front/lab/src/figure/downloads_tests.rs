#![allow(clippy::unwrap_used)] // a test may

use ranpace_sim::{Column, Series, SplitResult, Transfer};
use ranpace_units::{Bytes, Span, Time};

use super::super::testing::{measure, places};
use super::*;
use crate::synthetic;

#[test]
fn while_all_run_counts_bytes_until_the_first_flow_ends() {
    let mut run = synthetic::run_of(&["newreno", "vegas"], 1);
    for (index, flow) in run.flows.iter_mut().enumerate() {
        // Both start at 0: one ends after 2 s, and then the other has twice as much.
        let end = Span::from_secs(2 + 2 * index as u64);
        let start = Time::ZERO;
        flow.transfers =
            vec![Transfer { start, size: Bytes::new(1), completion: Some(end), handed_over: None }];
        flow.name = ["a", "b"][index].to_owned();
        let column = |name: &str, values: [f64; 5]| Column { name: name.to_owned(), values: values.to_vec() };
        flow.series = Series {
            columns: vec![
                column("time_s", [0.0, 1.0, 2.0, 3.0, 4.0]),
                column("delivered_bytes", [[0.0, 3e6, 6e6, 6e6, 6e6], [0.0, 1e6, 2e6, 6e6, 1e7]][index]),
                column("rtt_last_s", [0.4, 0.3, 0.5, 0.1, 0.1]),
            ],
        };
    }
    run.measured_from = Time::ZERO;
    let value = |keys: &str| {
        let keys = format!("while_all = true, {keys}");
        measure(&keys, vec![(places(&[]), run.clone())]).unwrap().value
    };
    assert_eq!(value("figure = 'goodput', flow = 'a', over = { flow = 'b' }"), 3.0);
    assert_eq!(value("figure = 'rtt_p50'"), 0.4);
    assert_eq!(value("figure = 'rtt_p90'"), 0.5);
}

#[test]
fn socket_rtt_excludes_the_wait_in_the_proxy() {
    let mut run = synthetic::run_of(&["cubic"], 1);
    let of = |ms: u64| Distribution { count: 1, mean: Span::from_millis(ms), ..Distribution::default() };
    let flow = &mut run.flows[0];
    (flow.rtt, flow.split) =
        (of(900), Some(SplitResult { wan_rtt: of(20), ran_rtt: of(50), ..SplitResult::default() }));
    flow.transfers.clear();
    let column = |name: &str, values: [f64; 4]| Column { name: name.to_owned(), values: values.to_vec() };
    flow.series = Series {
        columns: vec![
            column("time_s", [0.0, 1.0, 2.0, 3.0]),
            column("rtt_last_s", [0.9; 4]),
            column("proxy_wan_rtt_s", [0.02, f64::NAN, 0.02, 0.02]),
            column("proxy_ran_rtt_s", [0.03, 0.05, 0.05, 0.06]),
        ],
    };
    (run.measured_from, run.end) = (Time::ZERO, Time::from_secs(3));
    let value =
        |rtts: &str, keys: &str| measure(keys, vec![(places(&[("rtts", rtts)]), run.clone())]).unwrap().value;
    for (text, with_the_wait, sockets) in [
        ("figure = 'rtt_of_flows'", 0.9, 0.07),
        ("figure = 'rtt_p90', while_all = true", 0.9, 0.08),
        ("figure = 'rtt_p50', while_all = true", 0.9, 0.07),
    ] {
        assert_eq!(value("", text), with_the_wait, "{text}");
        assert!((value("sockets", text) - sockets).abs() < 1e-12, "{text}");
    }
    assert!((value("sockets", "figure = 'rtt_p90'") - 0.08).abs() < 1e-12);
}
