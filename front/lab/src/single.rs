//! The table and the report of a single run.

use ranpace_sim::RunResult;

use crate::{CompareRow, Comparison, Job, Report};

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
    job: &Job,
    result: &'a RunResult,
    rows: &[CompareRow],
    warnings: Vec<String>,
) -> Report<'a> {
    let name = &job.scenario.name;
    Report {
        title,
        command,
        intro: String::new(),
        groups: vec![Comparison {
            title: name.clone(),
            scenario_text: job.text.clone(),
            rows: rows.to_vec(),
            runs: vec![(name.clone(), vec![result])],
            plates: Vec::new(),
        }],
        chapters: Vec::new(),
        warnings,
    }
}
