//! Lightweight PEPs in the report: what they observed and reported, and the effect.

use maud::{Markup, html};

use super::Comparison;
use super::radio::{foldable, table};
use crate::peps;

/// Figures of PEPs.
pub fn tables(group: &Comparison<'_>) -> Markup {
    foldable(
        group,
        "Lightweight PEPs",
        |run| !run.peps.is_empty(),
        |runs| {
            html! {
                (table(&peps::rows(runs)))
                p.caption {
                    "From the start on: packets that a PEP counted, flows whose counting began, those that gave way to others and "
                    "those that were silent for too long; its reports with all headers; how many messages the server let through "
                    "and refused (forged, replayed, too many, unknown), reports that told what cannot be, and how often it asked "
                    "for counting to begin anew."
                }
            }
        },
    )
}
