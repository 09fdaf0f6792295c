//! Results of flows split by proxies, as a table: for the terminal and for the report.

use ranpace_sim::{FlowResult, RunResult, SplitResult};

use crate::figures::number;
use crate::radio::{Rows, table, with_label};
use crate::stats;

/// Flows of a run that the table shows.
const SHOWN: usize = 20;

/// Split flows as text; `None` if nothing is split. Each run has a label, which is empty if there is only one.
pub fn tables(runs: &[(&str, &RunResult)]) -> Option<String> {
    let rows = rows(runs);
    (!rows.rows.is_empty()).then(|| {
        let mut parts = vec![rows.text()];
        parts.extend(left_out(runs));
        parts.join("\n")
    })
}

/// The flows of a run that a proxy split, or should have split.
pub(crate) fn flows(run: &RunResult) -> impl Iterator<Item = (&FlowResult, &SplitResult)> {
    run.flows.iter().filter_map(|flow| Some((flow, flow.split.as_ref()?)))
}

/// A row per flow of each run, up to the limit.
pub(crate) fn rows(runs: &[(&str, &RunResult)]) -> Rows {
    let row = |label: &str, flow: &FlowResult, split: &SplitResult| {
        let ms = |span: ranpace_units::Span| {
            number(if split.delay.count == 0 { f64::NAN } else { span.as_secs_f64() * 1e3 })
        };
        let waiting = mean(flow, "proxy_backlog_bytes");
        let slow = stats::ratio(split.slow_periods as f64, split.periods as f64).unwrap_or(f64::NAN);
        let row = vec![
            split.proxy.clone(),
            flow.name.clone(),
            split.connections.to_string(),
            split.passed_through.to_string(),
            number(waiting / 1e3),
            number(split.largest_backlog.as_f64() / 1e3),
            ms(split.delay.mean),
            ms(split.delay.p95),
            split.ran_dropped_packets.to_string(),
            number(slow * 100.0),
        ];
        with_label(label, row)
    };
    let head = [
        ("proxy", ""),
        ("flow", ""),
        ("split", ""),
        ("passed by", ""),
        ("waiting mean", "kB"),
        ("most", "kB"),
        ("waited mean", "ms"),
        ("p95", "ms"),
        ("dropped", "to user"),
        ("slow", "%"),
    ];
    table(runs, head, |run, label| {
        flows(run).take(SHOWN).map(|(flow, split)| row(label, flow, split)).collect()
    })
}

/// Returns a note on the flows that are not in the table.
pub(crate) fn left_out(runs: &[(&str, &RunResult)]) -> Option<String> {
    let more = runs.first().map_or(0, |(_, run)| flows(run).count().saturating_sub(SHOWN));
    (more > 0).then(|| format!("Flows that are not shown: {more} more."))
}

/// Mean of a column of a flow's series; NaN if there is none.
fn mean(flow: &FlowResult, name: &str) -> f64 {
    let values = flow.series.get(name).unwrap_or_default().iter().filter(|value| value.is_finite());
    let (sum, count) = values.fold((0.0, 0_u64), |(sum, count), value| (sum + value, count + 1));
    if count == 0 { f64::NAN } else { sum / count as f64 }
}

/// A made-up run with a proxy, for tests of what is shown.
#[cfg(test)]
pub(crate) fn sample() -> RunResult {
    use ranpace_sim::{Column, Distribution};
    use ranpace_units::{Bytes, Span};

    let mut run = crate::synthetic::run("cubic", 1);
    let flow = &mut run.flows[0];
    let rows = flow.series.get("time_s").map_or(0, <[f64]>::len);
    // The backlog has no value in the first row.
    for (name, first, value) in [
        ("proxy_backlog_bytes", f64::NAN, 10_000.0),
        ("proxy_delay_s", 0.004, 0.004),
        ("proxy_window_bytes", 30_000.0, 30_000.0),
    ] {
        let values = (0..rows).map(|row| if row == 0 { first } else { value }).collect();
        flow.series.columns.push(Column { name: name.to_owned(), values });
    }
    let ms = Span::from_millis;
    flow.split = Some(SplitResult {
        proxy: "edge".to_owned(),
        delay: Distribution { count: 9, mean: ms(4), p95: ms(12), ..Distribution::default() },
        largest_backlog: Bytes::new(50_000),
        connections: 3,
        passed_through: 1,
        ran_dropped_packets: 7,
        periods: 40,
        slow_periods: 10,
        ..SplitResult::default()
    });
    run
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_split_flows_have_a_row() {
        let run = sample();
        let found = rows(&[("", &run)]).rows;
        let name = run.flows[0].name.as_str();
        assert_eq!(found, [["edge", name, "3", "1", "10.00", "50.00", "4.000", "12.00", "7", "25.00"]]);
        assert_eq!(rows(&[("a", &run), ("b", &run)]).rows[1][0], "b");
        let text = tables(&[("", &run)]).unwrap();
        assert!(text.contains("waiting mean") && text.contains("to user"), "{text}");
        let plain = crate::synthetic::run("cubic", 1);
        assert_eq!(tables(&[("", &plain)]), None);
    }
}
