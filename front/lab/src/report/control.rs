//! The internals over time of congestion controls that measure or receive the bandwidth: their estimates, targets and actions.
//!
//! Taken from the control's own columns (`state_...`), by unit. Controls that show neither rates nor amounts have no panels here.

use maud::{Markup, html};
use ranpace_sim::FlowResult;

use super::extract::{self, Points};
use super::panels::{OTHER, Run, line, shown};
use super::{Comparison, figure};
use crate::figures::Quantity;
use crate::plot::{Axis, Frame, Line, LinePlot, Palette, PlotError, steps};

/// Flows of a run that are shown.
const FLOWS: usize = 2;
/// Most lines in a panel; more cannot be told apart.
const LINES: usize = 6;
const SIZE: (u32, u32) = (560, 240);

/// Four panels for each of the first flows: rates, amounts in flight, delays, and states with their gains.
pub fn over_time(group: &Comparison<'_>, palette: &Palette) -> Result<Markup, PlotError> {
    let mut shown_flows = Vec::new();
    for run in shown(group, palette) {
        let flows = extract::flows(run.run);
        for flow in flows.iter().take(FLOWS).filter(|flow| is_told(flow)) {
            let title =
                if flows.len() > 1 { format!("{}, {}", run.label, flow.name) } else { run.label.into() };
            shown_flows.push((title, panels(&run, flow)?));
        }
    }
    Ok(html! {
        @if !shown_flows.is_empty() {
            h4 { "Inside the control" }
            @for (title, panels) in &shown_flows {
                h5 { (title) }
                div.grid { @for svg in panels { (figure(svg, "")) } }
            }
            p.caption {
                "The values that the control works with, at the ends of the sampling intervals: rates that it found and uses, amounts in flight "
                "that it aims at, delays that it compares, and its states and gains. The numbers of states are those of its "
                "documentation. Values far above everything measured are cut off. Of several flows, the first "
                (FLOWS) " are shown."
            }
        }
    })
}

/// Returns whether it says what it aims at.
fn is_told(flow: &FlowResult) -> bool {
    flow.series.columns.iter().any(|column| {
        column.name.starts_with("state_")
            && (column.name.ends_with("_bit_s") || column.name.ends_with("_bytes"))
            && column.values.iter().any(|value| value.is_finite())
    })
}

fn panels(run: &Run<'_>, flow: &FlowResult) -> Result<Vec<String>, PlotError> {
    let measured = |label: &str, column: &str| line(label, OTHER, extract::column(&flow.series, column));
    let rates = |name: &str| name.strip_suffix("_bit_s").map(str::to_owned);
    let amounts = |name: &str| name.strip_suffix("_bytes").map(str::to_owned);
    let times = |name: &str| {
        let is_rate = name.ends_with("_bit_s") || name.ends_with("_per_s");
        name.strip_suffix("_s").filter(|_| !is_rate).map(str::to_owned)
    };
    let plain = |name: &str| (name == "state" || name.ends_with("_gain")).then(|| name.to_owned());
    let mut states = own(flow, &plain);
    for line in &mut states {
        line.points = steps(&line.points);
    }
    let all = [
        ("rate", Quantity::Rate, measured("goodput", "goodput_bit_s"), own(flow, &rates)),
        ("in flight", Quantity::Size, measured("in flight", "in_flight_bytes"), own(flow, &amounts)),
        ("delay", Quantity::Time, delay(flow), own(flow, &times)),
        ("state and gains", Quantity::Plain, line("", OTHER, Points::new()), states),
    ];
    let end = run.run.end.as_secs_f64();
    let drawn = all.into_iter().filter(|(.., own)| !own.is_empty());
    drawn
        .map(|(name, quantity, measured, own)| {
            let highest = measured.points.iter().map(|point| point.1).filter(|value| value.is_finite());
            let highest = highest.fold(0.0, f64::max);
            let mut lines = vec![measured];
            lines.extend(own);
            lines.retain(|line| !line.points.is_empty());
            if highest > 0.0 {
                // A threshold derived from the first estimate may be a hundred times the quantity compared with it.
                cut(&mut lines, 1.5 * highest);
            }
            let values: Vec<f64> =
                lines.iter().flat_map(|line| line.points.iter().map(|point| point.1)).collect();
            let alt = format!("{}: {name} over time", flow.name);
            let plot = LinePlot {
                frame: Frame { size: SIZE, title: String::new(), alt },
                x: Axis::linear("time", Quantity::Time, (0.0, end)),
                y: Axis::from_zero(name, quantity, values),
                area: None,
                lines,
            };
            plot.svg()
        })
        .collect()
}

/// The quantity compared with delay thresholds: the RTT above the smallest known to the control, or else the RTT.
fn delay(flow: &FlowResult) -> Line {
    let mut points = extract::column(&flow.series, "rtt_last_s");
    let smallest = extract::column(&flow.series, "state_min_rtt_s");
    for (point, smallest) in points.iter_mut().zip(&smallest) {
        point.1 -= smallest.1;
    }
    line(if smallest.is_empty() { "RTT" } else { "RTT above min rtt" }, OTHER, points)
}

/// The control's own figures with names of this kind, each with its own colour.
fn own(flow: &FlowResult, name: &dyn Fn(&str) -> Option<String>) -> Vec<Line> {
    let columns = flow.series.columns.iter().filter_map(|column| {
        let label = name(column.name.strip_prefix("state_")?)?.replace('_', " ");
        let points = extract::column(&flow.series, &column.name);
        points.iter().any(|point| point.1.is_finite()).then_some((label, points))
    });
    columns
        .take(LINES)
        .enumerate()
        .map(|(index, (label, points))| line(&label, Palette::nth(index), points))
        .collect()
}

fn cut(lines: &mut [Line], most: f64) {
    for point in lines.iter_mut().flat_map(|line| &mut line.points) {
        if point.1 > most {
            point.1 = most;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;
    use ranpace_sim::{Column, RunResult};

    fn page(run: &RunResult) -> String {
        let group = Comparison::new("t", "", vec![("own".to_owned(), vec![run])]);
        over_time(&group, &Palette::of(["own"])).unwrap().into_string()
    }

    #[test]
    fn only_controls_with_a_target_have_panels() {
        let mut run = synthetic::run("cubic", 1);
        assert_eq!(page(&run), "");
        let rows = run.flows[0].series.get("time_s").unwrap().len();
        let mut show = |name: &str, value: f64| {
            let values = (0..rows).map(|row| if row == 0 { f64::NAN } else { value }).collect();
            run.flows[0].series.columns.push(Column { name: name.to_owned(), values });
        };
        show("state_state", 2.0);
        show("state_rounds", 9.0);
        show("state_bw_segments_per_s", 9.0);
        show("state_bw_filt_bit_s", 5e6);
        show("state_drain_target_bytes", 1e15);
        show("state_min_rtt_s", 0.02);
        show("state_thres1_s", 0.1);
        let page = page(&run);
        for there in ["bw filt", "drain target", "thres1", "in flight", "RTT above min rtt", "goodput"] {
            assert!(page.contains(there), "{there}");
        }
        assert_eq!(page.matches("<svg").count(), 4);
        assert!(!page.contains("rounds") && !page.contains("segments") && !page.contains("NaN"));
    }
}
