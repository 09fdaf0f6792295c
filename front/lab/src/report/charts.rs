//! Plots that set algorithms beside each other: throughput against delay, bars, distribution functions.

use maud::{Markup, html};
use ranpace_sim::{Distribution, FlowResult, RunResult};

use super::extract::{self, Points};
use super::{Comparison, figure};
use crate::figure::Figure;
use crate::figures::Quantity;
use crate::plot::{Axis, Bar, Cloud, Frame, Line, LinePlot, Palette, PlotError, ScatterPlot, bars};
use crate::row::COLUMNS;

/// Most algorithms, or flows, in one plot; more could not be told apart.
const MOST_SHOWN: usize = 200;

/// All plots for which there is something to compare.
pub fn beside(group: &Comparison<'_>, palette: &Palette) -> Result<Markup, PlotError> {
    let points = group.runs.iter().map(|(_, runs)| runs.len()).sum::<usize>();
    let many = group.runs.len() > MOST_SHOWN;
    let scatter = if points > 1 && !many { Some(scatter(group, palette)?) } else { None };
    let bars =
        if (2..=MOST_SHOWN).contains(&group.rows.len()) { Some(all_bars(group, palette)?) } else { None };
    let (mut delay, mut rtt) = (None, None);
    if !many {
        delay = cdf(group, palette, "Queueing delay", |flow| &flow.queueing_delay)?;
        rtt = cdf(group, palette, "Round-trip time", |flow| &flow.rtt)?;
    }
    Ok(html! {
        @if let Some(scatter) = scatter { (scatter) }
        @if let Some(bars) = bars { (bars) }
        @if many || group.rows.len() > MOST_SHOWN {
            p.note { "Comparisons of more than " (MOST_SHOWN) " rows are not drawn side by side." }
        }
        @if delay.is_some() || rtt.is_some() {
            div.grid {
                @for svg in [delay, rtt].into_iter().flatten() { (figure(&svg, "")) }
            }
            p.caption { "Share of the packets (left) and of the RTT samples (right) at or below a time, over all flows and seeds; the time axis is logarithmic. The further to the left, the lower the delay; the steeper, the less it varies." }
        }
    })
}

/// Goodput against delay, a point per run.
fn scatter(group: &Comparison<'_>, palette: &Palette) -> Result<Markup, PlotError> {
    let of = |run: &RunResult, name: &str| Figure::named(name).map_or(f64::NAN, |figure| figure.of(run));
    let clouds: Vec<Cloud> = group
        .runs
        .iter()
        .map(|(label, runs)| Cloud {
            label: label.clone(),
            colour: palette.colour(label),
            points: runs.iter().map(|run| (of(run, "delay_mean"), of(run, "joint_goodput"))).collect(),
        })
        .collect();
    let delays: Vec<f64> = clouds.iter().flat_map(|cloud| cloud.points.iter().map(|point| point.0)).collect();
    let rates = clouds.iter().flat_map(|cloud| cloud.points.iter().map(|point| point.1));
    let positive = delays.iter().copied().filter(|delay| *delay > 0.0);
    let spread = delays.iter().copied().fold(0.0, f64::max) / positive.fold(f64::INFINITY, f64::min);
    // Above a factor of eight, a linear axis would press the better half into a corner.
    let (x, scale) = if spread > 8.0 {
        (Axis::log("mean queueing delay", Quantity::Time, delays), ", on a logarithmic axis")
    } else {
        (
            Axis::from_zero(
                "mean queueing delay",
                Quantity::Time,
                delays.into_iter().map(|delay| delay * 1.1),
            ),
            "",
        )
    };
    let plot = ScatterPlot {
        frame: Frame {
            size: (900, 440),
            title: "Throughput against delay".into(),
            alt: "Scatter plot of goodput against mean queueing delay".into(),
        },
        x: x.reversed(),
        y: Axis::from_zero("goodput", Quantity::Rate, rates.map(|rate| rate * 1.05)),
        clouds,
        line: Vec::new(),
        corner: "better ↗".into(),
    };
    let seeds = group.runs.iter().any(|(_, runs)| runs.len() > 1);
    let points = if seeds {
        "Each large dot is the mean of an algorithm, each small one a seed; the ellipse is one standard deviation of the seeds in each direction."
    } else {
        "Each dot is one run."
    };
    Ok(figure(
        &plot.svg()?,
        &format!(
            "Goodput against the mean queueing delay{scale}. {points} Delay falls to the right: upper right is better."
        ),
    ))
}

/// The main figures as bars.
fn all_bars(group: &Comparison<'_>, palette: &Palette) -> Result<Markup, PlotError> {
    const SHOWN: [&str; 3] = ["goodput", "delay mean", "delay p95"];
    let mut plots = Vec::new();
    for shown in COLUMNS.iter().filter(|shown| SHOWN.contains(&shown.title)) {
        let bar = |row: &crate::CompareRow| {
            let (value, ci95) = shown.of(row);
            Bar { label: row.cc.clone(), colour: palette.colour(&row.cc), value, ci95 }
        };
        let frame = Frame { size: (370, 0), title: title(shown.title), alt: shown.meaning().to_owned() };
        plots.push(bars(
            &frame,
            shown.title,
            shown.quantity(),
            &group.rows.iter().map(bar).collect::<Vec<_>>(),
        )?);
    }
    let intervals = group.rows.iter().any(|row| row.seeds > 1);
    Ok(html! {
        div.grid.thirds { @for svg in plots { (figure(&svg, "")) } }
        p.caption {
            "Goodput (longer is better), mean and 95th percentile of the queueing delay (shorter is better)."
            @if intervals { " The thin black lines are 95 % confidence intervals over the seeds: where they overlap widely, there may be no difference." }
        }
    })
}

fn title(figure: &str) -> String {
    match figure {
        "goodput" => "Goodput".to_owned(),
        "delay mean" => "Mean queueing delay".to_owned(),
        "delay p95" => "95th percentile of the queueing delay".to_owned(),
        other => other.to_owned(),
    }
}

/// Distribution functions of a time, one per algorithm; `None` without samples.
fn cdf(
    group: &Comparison<'_>,
    palette: &Palette,
    title: &str,
    of: fn(&FlowResult) -> &Distribution,
) -> Result<Option<String>, PlotError> {
    let functions: Vec<(&String, Points)> = group
        .runs
        .iter()
        .map(|(label, runs)| (label, extract::cdf(runs.iter().flat_map(|run| extract::flows(run)).map(of))))
        .filter(|(_, points)| !points.is_empty())
        .collect();
    if functions.is_empty() {
        return Ok(None);
    }
    // The few packets that met an empty queue would stretch the axis over empty decades.
    let seen = functions.iter().flat_map(|(_, points)| points).filter(|point| point.1 >= 0.01);
    let name = title.to_lowercase().replace("round-trip time", "RTT");
    let x = Axis::log(&name, Quantity::Time, seen.map(|point| point.0));
    let low = x.ends().0;
    let plot = LinePlot {
        frame: Frame {
            size: (560, 330),
            title: title.to_owned(),
            alt: format!("Distribution functions: {title}"),
        },
        x,
        y: Axis::linear("share at or below", Quantity::Share, (0.0, 1.0)),
        area: None,
        lines: functions
            .into_iter()
            .map(|(label, mut points)| {
                points.retain(|point| point.0 >= low);
                Line { label: label.clone(), colour: palette.colour(label), dashed: false, points }
            })
            .collect(),
    };
    plot.svg().map(Some)
}
