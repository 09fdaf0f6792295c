//! The table and the report of a single run.

use ranpace_sim::RunResult;

use crate::{CompareRow, Comparison, Origin, Report};

/// A row per flow.
pub fn flow_rows(result: &RunResult) -> Vec<CompareRow> {
    result
        .flows
        .iter()
        .map(|flow| CompareRow::of_flow(format!("{} ({})", flow.name, flow.cc), result, flow))
        .collect()
}

/// The report. `command` is what was called to make it.
pub fn run_report<'a>(
    title: String,
    command: String,
    origin: &Origin,
    result: &'a RunResult,
    rows: &[CompareRow],
    warnings: Vec<String>,
) -> Report<'a> {
    let name = &origin.scenario;
    Report {
        title,
        command,
        intro: String::new(),
        groups: vec![Comparison {
            title: name.clone(),
            scenario_text: origin.scenario_text.clone(),
            rows: rows.to_vec(),
            runs: vec![(name.clone(), vec![result])],
            plates: Vec::new(),
        }],
        chapters: Vec::new(),
        warnings,
    }
}
