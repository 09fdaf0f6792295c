//! Lightweight PEPs in the report: what they saw and said, and what became of it.

use maud::{Markup, html};
use ranpace_sim::RunResult;

use super::Comparison;
use super::radio::table;
use crate::peps;

/// Figures of PEPs.
pub fn tables(group: &Comparison<'_>) -> Markup {
    let several = group.runs.len() > 1;
    let runs: Vec<(&str, &RunResult)> = group
        .runs
        .iter()
        .filter_map(|(label, runs)| Some((if several { label.as_str() } else { "" }, *runs.first()?)))
        .filter(|(_, run)| !run.peps.is_empty())
        .collect();
    let Some((_, first)) = runs.first() else { return html! {} };
    html! {
        details open[!several] {
            summary { "Lightweight PEPs, with seed " (first.seed) }
            (table(&peps::rows(&runs)))
            p.caption {
                "From the start on: packets that a PEP counted, flows whose counting began, those that gave way to others and those "
                "that were silent for too long; its reports with all headers; how many messages the server let through and refused "
                "(forged, replayed, too many, unknown), reports that told what cannot be, and how often it asked for counting to "
                "begin anew."
            }
        }
    }
}
