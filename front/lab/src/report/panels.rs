//! Runs over time: a panel per algorithm, all with the same axes for comparison.

use maud::{Markup, html};
use ranpace_sim::{FlowResult, RunResult};

use super::extract::{self, Points};
use super::{Comparison, figure};
use crate::figures::Quantity;
use crate::plot::{Axis, Colour, Frame, GREY, Line, LinePlot, Palette, PlotError};
use crate::radio;

/// Flows that are drawn one by one.
const SINGLE_FLOWS: usize = 7;
/// Most algorithms whose delays share a plot; more would hide one another.
const OVERLAID: usize = 4;

/// Seconds covered by a second sequence trace; over a minute, details are invisible.
const BEGINNING: f64 = 5.0;

/// The first run of an algorithm.
pub(super) struct Run<'a> {
    pub label: &'a str,
    pub colour: Colour,
    pub run: &'a RunResult,
}

/// A panel before its axes are known.
pub(super) struct Panel {
    pub title: String,
    pub area: Option<Line>,
    pub lines: Vec<Line>,
}

/// The runs of a comparison shown over time: the first of each algorithm.
pub(super) fn shown<'a>(group: &'a Comparison<'_>, palette: &Palette) -> Vec<Run<'a>> {
    let shown = group.runs.iter().filter_map(|(label, runs)| {
        let run = runs.iter().find(|run| run.flows.iter().any(|flow| !flow.series.columns.is_empty()))?;
        Some(Run { label, colour: palette.colour(label), run })
    });
    shown.collect()
}

/// All plots over time.
pub fn over_time(group: &Comparison<'_>, palette: &Palette) -> Result<Markup, PlotError> {
    let runs = shown(group, palette);
    if runs.is_empty() {
        return Ok(html! {});
    }
    let several = runs.iter().any(|run| extract::flows(run.run).len() > 1);
    let many = runs.iter().any(|run| extract::flows(run.run).len() > SINGLE_FLOWS);
    let limited = runs.iter().any(|run| capacity_area(run.run).is_some());
    let air = |run: &Run<'_>| {
        extract::bottleneck(run.run).is_some_and(|link| radio::user_of(run.run, link).is_some())
    };
    let behind = match limited {
        false => "",
        true if runs.iter().any(air) => {
            " The grey area is what the cell could carry for this user, if it were alone."
        }
        true => " The grey area is the capacity of the bottleneck.",
    };
    let mut sections: Vec<(&str, Vec<String>, String)> = Vec::new();

    let rates = runs.iter().map(|run| {
        let points = extract::sum(run.run, "goodput_bit_s");
        Panel {
            title: run.label.into(),
            area: capacity_area(run.run),
            lines: vec![line("goodput", run.colour, points)],
        }
    });
    let unused = if limited { " What stays grey was not used." } else { "" };
    let sum = if several { " of all flows together" } else { "" };
    sections.push((
        if limited { "Rate against capacity" } else { "Rate" },
        draw(rates.collect(), "rate", Quantity::Rate)?,
        format!("Goodput{sum} in each interval.{behind}{unused} Goodput does not count headers."),
    ));
    if several {
        let panels = runs.iter().map(|run| Panel {
            title: run.label.into(),
            area: capacity_area(run.run),
            lines: each_flow(run, palette, "goodput_bit_s"),
        });
        let some = if many { format!(" The first {SINGLE_FLOWS} are shown.") } else { String::new() };
        sections.push((
            "Rate of each flow",
            draw(panels.collect(), "rate", Quantity::Rate)?,
            format!("Goodput of each flow.{some} Equal heights are a fair share."),
        ));
    }
    sections.push(delays(&runs)?);

    let windows = runs.iter().map(|run| match &extract::flows(run.run)[..] {
        [flow] => Panel {
            title: run.label.into(),
            area: None,
            lines: vec![
                line("slow-start threshold", GREY, extract::column(&flow.series, "ssthresh_bytes")).dashed(),
                line("in flight", OTHER, extract::column(&flow.series, "in_flight_bytes")),
                line("window", run.colour, extract::column(&flow.series, "cwnd_bytes")),
            ],
        },
        _ => Panel { title: run.label.into(), area: None, lines: each_flow(run, palette, "cwnd_bytes") },
    });
    let caption = if several {
        "The congestion window of each flow."
    } else {
        "The congestion window, the bytes in flight and the slow-start threshold. In flight stays below the window where the application or the receiver holds the sender back."
    };
    sections.push((
        "Congestion window",
        draw(windows.collect(), "window", Quantity::Size)?,
        caption.to_owned(),
    ));

    let highest = runs.iter().filter_map(|run| capacity(run.run)).flatten().map(|point| point.1);
    let limit = 3.0 * highest.filter(|rate| rate.is_finite()).fold(0.0, f64::max);
    let pacing = runs.iter().map(|run| {
        let lines = match &extract::flows(run.run)[..] {
            [flow] => vec![line("pacing rate", run.colour, extract::column(&flow.series, "pacing_bit_s"))],
            _ => each_flow(run, palette, "pacing_bit_s"),
        };
        Panel { title: run.label.into(), area: capacity_area(run.run), lines }
    });
    let mut pacing: Vec<Panel> = pacing.collect();
    let mut cut = false;
    if limit > 0.0 {
        // The first estimate of a new connection may be a hundred times the capacity.
        for point in pacing.iter_mut().flat_map(|panel| &mut panel.lines).flat_map(|line| &mut line.points) {
            cut |= point.1 > limit;
            point.1 = point.1.min(limit);
        }
    }
    let cut = if cut { " Peaks above three times the highest capacity are cut off." } else { "" };
    sections.push((
        "Pacing rate",
        draw(pacing, "rate", Quantity::Rate)?,
        format!(
            "The rate at which packets are released. Algorithms that do not pace are not shown.{behind}{cut}"
        ),
    ));

    let end = runs.iter().map(|run| run.run.end.as_secs_f64()).fold(0.0, f64::max);
    let first = if several { " of the first flow" } else { "" };
    let traces: Vec<Panel> = runs.iter().filter_map(|run| sequence(run, f64::INFINITY)).collect();
    sections.push((
        "Sequence trace",
        draw(traces, "sequence", Quantity::Size)?,
        format!("Bytes sent and acknowledged{first}, and what the bottleneck could have carried since the first of them. The distance between sent and acknowledged is in flight; the closer both rise along the ideal line, the less capacity is wasted."),
    ));
    if end > 2.0 * BEGINNING {
        let traces: Vec<Panel> = runs.iter().filter_map(|run| sequence(run, BEGINNING)).collect();
        sections.push((
            "Sequence trace, the beginning",
            draw(traces, "sequence", Quantity::Size)?,
            format!("As above, for {BEGINNING} s from the first byte: how fast the capacity was found."),
        ));
    }
    let seed = runs[0].run.seed;
    Ok(html! {
        h3 { "Over time, with seed " (seed) }
        @for (title, plots, caption) in sections.into_iter().filter(|section| !section.1.is_empty()) {
            h4 { (title) }
            div.grid { @for svg in &plots { (figure(svg, "")) } }
            p.caption { (caption) }
        }
    })
}

/// Bytes in flight, beside the window in its algorithm's colour.
pub(super) const OTHER: Colour = Colour(0xb0, 0xb6, 0xbe);

pub(super) fn line(label: &str, colour: Colour, points: Points) -> Line {
    Line { label: label.to_owned(), colour, dashed: false, points }
}

impl Line {
    pub(super) fn dashed(self) -> Self {
        Self { dashed: true, ..self }
    }

    fn has_values(&self) -> bool {
        self.points.iter().any(|point| point.1.is_finite())
    }
}

fn capacity(run: &RunResult) -> Option<Points> {
    let points = extract::column(&extract::bottleneck(run)?.series, "capacity_bit_s");
    points.iter().any(|point| point.1.is_finite()).then_some(points)
}

/// The capacity of the bottleneck shared by all flows. If each user has its own, as in a cell, none represents all.
fn capacity_area(run: &RunResult) -> Option<Line> {
    let flows = extract::flows(run);
    let shared = flows.iter().all(|flow| flow.bottleneck == flows[0].bottleneck);
    let points = if shared { capacity(run) } else { None };
    points.map(|points| line("capacity", GREY, points))
}

/// A line per flow: in the colour of its algorithm if all differ, else in successive colours.
fn each_flow(run: &Run<'_>, palette: &Palette, column: &str) -> Vec<Line> {
    let flows = extract::flows(run.run);
    let twice = |flow: &FlowResult| flows.iter().filter(|other| other.cc == flow.cc).count() > 1;
    let repeated = flows.iter().any(|flow| twice(flow));
    let colour = |index: usize, flow: &FlowResult| {
        if repeated { Palette::nth(index) } else { palette.colour(&flow.cc) }
    };
    let shown = flows.iter().take(SINGLE_FLOWS).enumerate();
    shown
        .map(|(index, flow)| line(&flow.name, colour(index, flow), extract::column(&flow.series, column)))
        .collect()
}

/// Delays in one plot, or in panels if there are too many.
fn delays(runs: &[Run<'_>]) -> Result<(&'static str, Vec<String>, String), PlotError> {
    let lines: Vec<Line> = runs
        .iter()
        .map(|run| line(run.label, run.colour, extract::mean(run.run, "queueing_delay_mean_s")))
        .collect();
    let panels = if lines.len() <= OVERLAID {
        vec![Panel { title: String::new(), area: None, lines }]
    } else {
        lines
            .into_iter()
            .map(|line| Panel { title: line.label.clone(), area: None, lines: vec![line] })
            .collect()
    };
    let caption = "Mean time of the packets in the bottleneck in each interval: what a standing queue adds to the round-trip time.";
    Ok(("Queueing delay", draw(panels, "delay", Quantity::Time)?, caption.to_owned()))
}

/// Sent, acknowledged and ideal bytes, for `length` seconds from the first byte.
fn sequence(run: &Run<'_>, length: f64) -> Option<Panel> {
    let flows = extract::flows(run.run);
    let flow = flows.first()?;
    let mut sent = extract::column(&flow.series, "sent_bytes");
    let mut acked = extract::column(&flow.series, "acked_bytes");
    let first = sent.iter().position(|point| point.1 > 0.0)?;
    // At the sample before, the first bytes had not been sent yet.
    let start = if first == 0 { 0.0 } else { sent[first - 1].0 };
    sent.retain(|point| point.0 <= start + length);
    acked.retain(|point| point.0 <= start + length);
    let most =
        sent.iter().chain(&acked).map(|point| point.1).filter(|bytes| bytes.is_finite()).fold(0.0, f64::max);
    let mut lines = Vec::new();
    if let Some(link) = extract::bottleneck(run.run).filter(|_| capacity(run.run).is_some()) {
        let mut ideal = extract::ideal(link, start, 0.0, most);
        ideal.retain(|point| point.0 <= start + length);
        lines.push(line("ideal at capacity", GREY, ideal).dashed());
    }
    lines.push(line("sent", OTHER, sent));
    lines.push(line("acknowledged", run.colour, acked));
    Some(Panel { title: run.label.into(), area: None, lines })
}

/// Draws panels with the same axes, from zero; panels without any value are left out.
fn draw(panels: Vec<Panel>, name: &str, quantity: Quantity) -> Result<Vec<String>, PlotError> {
    draw_over(panels, name, |values| Axis::from_zero(name, quantity, values.iter().copied()))
}

/// Like [`draw`], with another vertical axis.
pub(super) fn draw_over(
    panels: Vec<Panel>,
    name: &str,
    axis: impl Fn(&[f64]) -> Axis,
) -> Result<Vec<String>, PlotError> {
    let panels: Vec<Panel> =
        panels.into_iter().filter(|panel| panel.lines.iter().any(Line::has_values)).collect();
    let all = || {
        panels.iter().flat_map(|panel| panel.lines.iter().chain(&panel.area)).flat_map(|line| &line.points)
    };
    let end = all().map(|point| point.0).filter(|time| time.is_finite()).fold(0.0, f64::max);
    let x = Axis::linear("time", Quantity::Time, (0.0, end));
    let y = axis(&all().map(|point| point.1).collect::<Vec<_>>());
    let size = if panels.len() == 1 { (1100, 320) } else { (560, 260) };
    panels
        .into_iter()
        .map(|panel| {
            let mut lines = panel.lines;
            lines.retain(Line::has_values);
            let alt = format!("{}: {name} over time", panel.title);
            let frame = Frame { size, title: panel.title, alt };
            LinePlot { frame, x: x.clone(), y: y.clone(), area: panel.area, lines }.svg()
        })
        .collect()
}
