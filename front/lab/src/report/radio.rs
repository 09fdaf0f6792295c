//! The radio in the report: results of cells and users, and the channel, grants and buffers of the first user over time.

use maud::{Markup, html};
use ranpace_sim::{LinkResult, RunResult, UserResult};

use super::extract::{self, Points};
use super::panels::{OTHER, Panel, Run, draw_over, line, shown};
use super::{Comparison, figure};
use crate::figures::Quantity;
use crate::plot::{Axis, GREY, Line, Palette, PlotError, steps};
use crate::radio::{self, Rows};

/// Users whose radio is shown over time for a single run.
const USERS: usize = 3;
/// The same when several algorithms are compared: each has a panel of every kind.
const USERS_OF_MANY: usize = 1;

/// Figures of cells and users.
pub fn tables(group: &Comparison<'_>) -> Markup {
    foldable(
        group,
        "Cells and users",
        |run| !run.cells.is_empty(),
        |runs| {
            html! {
                (table(&radio::cells(runs)))
                p.caption { "Share of the resource blocks that were used, over the slots in which somebody was awake." }
                (table(&radio::of_users(runs)))
                p.caption {
                    "Transport blocks, those that HARQ sent again over all that were sent for the first time, those that it gave "
                    "up, failures of bearers, and handovers; after a handover, of the last cell. "
                    @if let Some(left_out) = radio::left_out(runs) { (left_out) }
                }
            }
        },
    )
}

/// Tables of the first run of each algorithm for which `has` returns true, under a foldable title that is open if there is only one
/// algorithm. Runs come with their labels, which are then empty.
pub(super) fn foldable(
    group: &Comparison<'_>,
    title: &str,
    has: impl Fn(&RunResult) -> bool,
    tables: impl Fn(&[(&str, &RunResult)]) -> Markup,
) -> Markup {
    let several = group.runs.len() > 1;
    let runs: Vec<(&str, &RunResult)> = group
        .runs
        .iter()
        .filter_map(|(label, runs)| Some((if several { label.as_str() } else { "" }, *runs.first()?)))
        .filter(|(_, run)| has(run))
        .collect();
    let Some((_, first)) = runs.first() else { return html! {} };
    html! {
        details open[!several] {
            summary { (title) ", with seed " (first.seed) }
            (tables(&runs))
        }
    }
}

pub(super) fn table(rows: &Rows) -> Markup {
    if rows.rows.is_empty() {
        return html! {};
    }
    html! {
        div.wide {
            table {
                thead { tr { @for (title, unit) in &rows.head { th scope="col" { (title) small { (unit) } } } } }
                tbody {
                    @for row in &rows.rows {
                        tr { @for (index, text) in row.iter().enumerate() {
                            @if index == 0 { th scope="row" { (text) } } @else { td { (text) } }
                        } }
                    }
                }
            }
        }
    }
}

/// A user in each of the runs that have it, with the direction of the data.
struct Subject<'a> {
    name: &'a str,
    runs: Vec<(&'a Run<'a>, &'a UserResult)>,
    is_upload: bool,
}

/// Plots of one kind: a heading, the plots, a caption.
type Section = (String, Vec<String>, String);

/// Plots of the first users over time.
pub fn over_time(group: &Comparison<'_>, palette: &Palette) -> Result<Markup, PlotError> {
    let runs = shown(group, palette);
    let Some(first) = runs.first() else { return Ok(html! {}) };
    let plotted = |user: &&UserResult| !user.series.columns.is_empty();
    let all: Vec<&UserResult> = radio::users(first.run).filter(plotted).collect();
    let most = if runs.len() > 1 { USERS_OF_MANY } else { USERS };
    let mut parts = Vec::new();
    for user in all.iter().take(most) {
        let found = runs.iter().filter_map(|run| {
            let user = run.run.users.iter().find(|other| other.name == user.name)?;
            (!user.series.columns.is_empty()).then_some((run, user))
        });
        let subject =
            Subject { name: &user.name, runs: found.collect(), is_upload: is_upload(first.run, user) };
        parts.push(of_user(&subject)?);
    }
    let left_out = all.len().saturating_sub(most);
    Ok(html! {
        @for part in parts { (part) }
        @if left_out > 0 {
            p.note {
                @if left_out == 1 { "There is 1 more user with flows; its series is in a file user-N.parquet" }
                @else { "There are " (left_out) " more users with flows; their series are in the files user-N.parquet" }
                " of the run's results folder."
            }
        }
    })
}

/// Returns whether the bottleneck of a flow is the user's uplink and that of none its downlink.
fn is_upload(run: &RunResult, user: &UserResult) -> bool {
    let bottlenecks = run.flows.iter().filter_map(|flow| run.links.get(flow.bottleneck?));
    let ways =
        bottlenecks.filter_map(|link| radio::user_of(run, link)).filter(|found| found.0.name == user.name);
    let mut ways = ways.map(|(_, way)| way).peekable();
    ways.peek().is_some() && ways.all(|way| way == "up")
}

fn of_user(subject: &Subject<'_>) -> Result<Markup, PlotError> {
    let data = way(subject, subject.is_upload)?;
    let other = way(subject, !subject.is_upload)?;
    let channel = channel(subject)?;
    Ok(html! {
        h3 { "Radio of " (subject.name) }
        (sections(channel))
        (sections(data))
        details {
            summary { (if subject.is_upload { "Downlink" } else { "Uplink" }) " of " (subject.name) ", which acknowledgements take" }
            (sections(other))
        }
    })
}

fn sections(sections: Vec<Section>) -> Markup {
    html! {
        @for (title, plots, caption) in sections.into_iter().filter(|section| !section.1.is_empty()) {
            h4 { (title) }
            div.grid { @for svg in &plots { (figure(svg, "")) } }
            p.caption { (caption) }
        }
    }
}

impl Subject<'_> {
    /// A panel per run. If all are identical, which only applies to the channel, one without a title.
    fn panels(&self, lines: impl Fn(&Run<'_>, &UserResult) -> Vec<Line>) -> Vec<Panel> {
        let panel = |(run, user): &(&Run<'_>, &UserResult)| Panel {
            title: if self.runs.len() > 1 { run.label.to_owned() } else { String::new() },
            area: None,
            lines: lines(run, user),
        };
        let mut panels: Vec<Panel> = self.runs.iter().map(panel).collect();
        let points = |panel: &Panel| -> Vec<u64> {
            let points = panel.lines.iter().flat_map(|line| &line.points);
            points.map(|point| point.1.to_bits()).collect()
        };
        if panels.len() > 1 && panels.iter().skip(1).all(|panel| points(panel) == points(&panels[0])) {
            panels.truncate(1);
            panels[0].title.clear();
        }
        panels
    }
}

/// Draws what does not depend on the algorithm: SINR, and the user's position.
fn channel(subject: &Subject<'_>) -> Result<Vec<Section>, PlotError> {
    let (down, up) = (Palette::nth(0), Palette::nth(1));
    let sinr = subject.panels(|_, user| {
        let column = |name| extract::column(&user.series, name);
        vec![line("downlink", down, column("sinr_db")), line("uplink", up, column("uplink_sinr_db"))]
    });
    let decibels = draw_over(sinr, "SINR (dB)", |values| around("SINR (dB)", values))?;
    let mut found = vec![(
        "SINR".to_owned(),
        decibels,
        "Signal over noise and interference, as it is at each sample: downlink over the whole band as the user reports it, uplink with the power that the user has.".to_owned(),
    )];
    let spread = |points: &Points| {
        let known = || points.iter().map(|point| point.1).filter(|value| value.is_finite());
        known().fold(f64::NEG_INFINITY, f64::max) - known().fold(f64::INFINITY, f64::min)
    };
    let moves = subject.runs.iter().any(|(_, user)| {
        ["x_m", "y_m"].iter().any(|name| spread(&extract::column(&user.series, name)) > 1.0)
    });
    if moves {
        let places = subject.panels(|_, user| {
            let column = |name| extract::column(&user.series, name);
            vec![line("x", down, column("x_m")), line("y", up, column("y_m"))]
        });
        let plots = draw_over(places, "position (m)", |values| around("position (m)", values))?;
        found.push(("Position".to_owned(), plots, "Where the user is.".to_owned()));
    }
    let changes = subject.runs.iter().any(|(_, user)| spread(&extract::column(&user.series, "cell")) > 0.0);
    if changes {
        let cells = subject.panels(|_, user| {
            vec![line("serving cell", down, steps(&extract::column(&user.series, "cell")))]
        });
        let plots = draw_over(cells, "cell", |values| {
            Axis::from_zero("cell", Quantity::Plain, values.iter().copied())
        })?;
        let names = subject.runs.first().map(|(run, _)| &run.run.cells);
        let names =
            names.into_iter().flatten().zip(0..).map(|(cell, index)| format!("{index} is {}", cell.name));
        let names: Vec<String> = names.take(8).collect();
        found.push(("Serving cell".to_owned(), plots, format!("{}.", names.join(", "))));
    }
    Ok(found)
}

/// Grants, rates and buffers of one way.
fn way(subject: &Subject<'_>, is_upload: bool) -> Result<Vec<Section>, PlotError> {
    let titled = |title: &str| format!("{title}, {}", if is_upload { "uplink" } else { "downlink" });
    let name = |column: &str| if is_upload { format!("uplink_{column}") } else { column.to_owned() };
    let column = |user: &UserResult, of: &str| extract::column(&user.series, &name(of));
    let link = |run: &Run<'_>, user: &UserResult| -> Option<LinkResult> {
        radio::link_of(run.run, user, if is_upload { "up" } else { "down" }).cloned()
    };
    let from_zero = |title: &'static str, quantity: Quantity| {
        move |values: &[f64]| Axis::from_zero(title, quantity, values.iter().copied())
    };

    let mcs = subject.panels(|run, user| {
        let mut lines = Vec::new();
        if !is_upload {
            lines.push(line("CQI", OTHER, extract::column(&user.series, "cqi")));
        }
        lines.push(line("MCS", run.colour, column(user, "mcs")));
        lines
    });
    let (title, caption) = if is_upload {
        ("MCS", "The modulation and coding scheme of the last grant.")
    } else {
        (
            "CQI and MCS",
            "The channel quality that the user reported (0 to 15), and the modulation and coding scheme of its last grant.",
        )
    };
    let mut found = vec![(
        titled(title),
        draw_over(mcs, "index", from_zero("index", Quantity::Plain))?,
        caption.to_owned(),
    )];

    let prbs = subject.panels(|run, user| vec![line("PRBs", run.colour, column(user, "prbs"))]);
    found.push((
        titled("Resource blocks"),
        draw_over(prbs, "PRBs", from_zero("PRBs", Quantity::Plain))?,
        "Mean of the resource blocks that the user had in a slot of each interval; blocks that others use, and slots in which it had nothing to send, lower it.".to_owned(),
    ));

    let rates = subject.panels(|run, user| {
        let delivered =
            link(run, user).map_or_else(Vec::new, |link| extract::column(&link.series, "departed_bit_s"));
        vec![
            line("scheduled", OTHER, column(user, "scheduled_bit_s")),
            line("delivered", run.colour, delivered),
        ]
    });
    found.push((
        titled("Scheduled and delivered rate"),
        draw_over(rates, "rate", from_zero("rate", Quantity::Rate))?,
        "Transport blocks that were granted, over time, against the packets that came out. The distance between them is headers, padding and retransmissions above HARQ.".to_owned(),
    ));

    let queues = subject.panels(|run, user| vec![line("queue", run.colour, column(user, "queue_bytes"))]);
    found.push((
        titled("RLC queue"),
        draw_over(queues, "queue", from_zero("queue", Quantity::Size))?,
        "Bytes that wait in the user's buffer at each sample.".to_owned(),
    ));

    let waits = subject.panels(|run, user| {
        let waited = link(run, user)
            .map_or_else(Vec::new, |link| extract::column(&link.series, "queueing_delay_mean_s"));
        vec![
            line("mean of packets that left", GREY, waited).dashed(),
            line("head of line", run.colour, column(user, "head_of_line_s")),
        ]
    });
    found.push((
        titled("Head-of-line delay"),
        draw_over(waits, "delay", from_zero("delay", Quantity::Time))?,
        "How long the first packet of the buffer has waited at each sample, and the mean time of the packets from the buffer to the other end of the air.".to_owned(),
    ));

    let again = subject
        .panels(|run, user| vec![line("blocks sent again", run.colour, column(user, "retransmissions"))]);
    found.push((
        titled("Retransmissions"),
        draw_over(again, "blocks", from_zero("blocks", Quantity::Plain))?,
        "Transport blocks that HARQ sent again in each interval.".to_owned(),
    ));
    Ok(found)
}

/// An axis around all values, which may be negative.
fn around(name: &str, values: &[f64]) -> Axis {
    let known = || values.iter().copied().filter(|value| value.is_finite());
    let (low, high) = (known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max));
    let room = ((high - low) * 0.05).max(1.0);
    Axis::linear(name, Quantity::Plain, (low - room, high + room))
}
