//! Proxies in the report: results of the flows that they split, and their backlog over time.

use maud::{Markup, html};

use super::extract;
use super::panels::{Panel, draw_over, line, shown};
use super::radio::{foldable, table};
use super::{Comparison, figure};
use crate::figures::Quantity;
use crate::plot::{Axis, Palette, PlotError};
use crate::proxies;

/// Flows of a run that are drawn.
const FLOWS: usize = 7;

/// Figures of split flows.
pub fn tables(group: &Comparison<'_>) -> Markup {
    foldable(
        group,
        "Proxies",
        |run| proxies::flows(run).next().is_some(),
        |runs| {
            html! {
                (table(&proxies::rows(runs)))
                p.caption {
                    "Connections that were split and that passed by; payload that waited in the proxy (mean of the samples, most "
                    "at any time), how long it waited, packets dropped between proxy and user, and the share of periods at whose "
                    "end RAPID took the flow for slow. Data that wait in the proxy delay the user too. "
                    @if let Some(left_out) = proxies::left_out(runs) { (left_out) }
                }
            }
        },
    )
}

/// Backlog of proxies, waiting time, and windows advertised to servers, over time.
pub fn over_time(group: &Comparison<'_>, palette: &Palette) -> Result<Markup, PlotError> {
    let runs = shown(group, palette);
    if runs.iter().all(|run| proxies::flows(run.run).next().is_none()) {
        return Ok(html! {});
    }
    let mut sections = Vec::new();
    for (title, column, name, quantity, caption) in [
        (
            "Waiting in the proxy",
            "proxy_backlog_bytes",
            "waiting",
            Quantity::Size,
            "Payload of each flow that came from its server and was not sent to the user yet.",
        ),
        (
            "Delay in the proxy",
            "proxy_delay_s",
            "delay",
            Quantity::Time,
            "How long the oldest of it has waited.",
        ),
        (
            "Window to the server",
            "proxy_window_bytes",
            "window",
            Quantity::Size,
            "The largest window that the server is told: RAPID's allocation less the bytes that wait.",
        ),
    ] {
        let panels = runs.iter().map(|run| {
            let flows = proxies::flows(run.run).take(FLOWS).enumerate();
            let lines = flows.map(|(index, (flow, _))| {
                line(&flow.name, Palette::nth(index), extract::column(&flow.series, column))
            });
            Panel { title: run.label.into(), area: None, lines: lines.collect() }
        });
        let plots = draw_over(panels.collect(), name, |values| {
            Axis::from_zero(name, quantity, values.iter().copied())
        })?;
        sections.push((title, plots, caption));
    }
    Ok(html! {
        @for (title, plots, caption) in sections.iter().filter(|section| !section.1.is_empty()) {
            h4 { (title) }
            div.grid { @for svg in plots { (figure(svg, "")) } }
            p.caption { (caption) }
        }
    })
}
