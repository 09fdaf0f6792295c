//! The observations and reports of Lightweight PEPs, as a table: for the terminal and for the report.

use ranpace_sim::{PepResult, RunResult};

use crate::figures::number;
use crate::radio::{Rows, table, with_label};

/// PEPs as text; `None` without any. Each run has a label, which is empty if there is only one.
pub fn tables(runs: &[(&str, &RunResult)]) -> Option<String> {
    let rows = rows(runs);
    (!rows.rows.is_empty()).then(|| rows.text())
}

/// A row per PEP of each run.
pub(crate) fn rows(runs: &[(&str, &RunResult)]) -> Rows {
    let row = |label: &str, pep: &PepResult| {
        let row = vec![
            pep.name.clone(),
            pep.packets.to_string(),
            pep.flows.to_string(),
            pep.evicted.to_string(),
            pep.aged.to_string(),
            pep.reports.to_string(),
            number(pep.report_bytes.as_f64() / 1e3),
            pep.verified.to_string(),
            pep.refused.to_string(),
            pep.impossible.to_string(),
            pep.resyncs.to_string(),
        ];
        with_label(label, row)
    };
    let head = [
        ("PEP", ""),
        ("packets", "seen"),
        ("flows", "begun"),
        ("evicted", ""),
        ("aged", ""),
        ("reports", "sent"),
        ("in all", "kB"),
        ("accepted", "by server"),
        ("refused", ""),
        ("impossible", ""),
        ("begun anew", ""),
    ];
    table(runs, head, |run, label| run.peps.iter().map(|pep| row(label, pep)).collect())
}

/// A made-up run with a PEP, for tests of what is shown.
#[cfg(test)]
pub(crate) fn sample() -> RunResult {
    let mut run = crate::synthetic::run("mdcc", 1);
    run.peps.push(PepResult {
        name: "border".to_owned(),
        packets: 8_000,
        flows: 3,
        evicted: 1,
        aged: 2,
        reports: 1_000,
        report_bytes: ranpace_units::Bytes::new(93_000),
        verified: 990,
        refused: 10,
        impossible: 4,
        distrusted: 0,
        resyncs: 5,
    });
    run
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pep_has_a_row_and_a_run_without_has_no_table() {
        let run = sample();
        let found = rows(&[("", &run)]).rows;
        assert_eq!(found, [["border", "8000", "3", "1", "2", "1000", "93.00", "990", "10", "4", "5"]]);
        assert!(tables(&[("", &run)]).is_some_and(|text| text.contains("border")));
        assert_eq!(tables(&[("", &crate::synthetic::run("cubic", 1))]), None);
    }
}
