//! Measurements of SIGMA's experiments (Diarra 2022, section 3.2.5) that the common words do not say.
//!
//! A round trip is the place `rtt`, a bandwidth-delay product the place `bdp`. Bytes in flight are those of the series' rows.

use ranpace_sim::FlowResult;
use serde::Deserialize;

use super::cells::{Absent, Cell, Cells};
use super::measure::Measured;
use crate::figures::number;
use crate::model::{UPLOAD_SIZES, Upload, UploadPath};
use crate::stats;

/// A figure of uploads, over all runs of these groups of points.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Uploads {
    /// Which one.
    figure: Figure,
    /// The groups; all points if there are none.
    #[serde(default)]
    at: Vec<String>,
}

/// What is taken from a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Figure {
    /// Least that the first flow has in flight, over `bdp`: from two round trips after its first data until all is sent; the
    /// least of the runs.
    InFlightLeast,
    /// The most, likewise.
    InFlightMost,
    /// The last flow's time over the first one's, each from the first data to the last acknowledgement; the most of the runs.
    LastOverFirst,
    /// Round trips from the moment at which all of the second flow has arrived until the first flow has taken what that released: from
    /// then on 0.9 of the rate `alone` arrives of it in a round trip; the most of the runs. Data in flight that only wait do not count.
    TakeUp,
    /// [`Self::TakeUp`] of the first scheme over that of the second, means over the runs. Where the first never gets there,
    /// until it has sent all, which is less than it would take.
    TakeUpRatio,
    /// Smallest ratio of equation 3.5 as printed to what the link needs, over the sizes of Fig. 3.7. Without runs.
    PrintedOverLink,
}

/// Part of what an upload alone has at which released capacity counts as taken; the specification's.
const TAKEN: f64 = 0.9;

impl Uploads {
    /// Its value.
    pub fn of(&self, of: &[String], cells: &Cells) -> Result<Measured, Absent> {
        match (self.figure, of) {
            (Figure::PrintedOverLink, _) => Ok(printed_over_link()),
            (Figure::TakeUpRatio, [above, below]) => {
                let of = |scheme: &String| -> Result<Vec<TakeUp>, Absent> {
                    self.cells(scheme, cells)?.into_iter().map(take_up).collect()
                };
                let (above, below) = (of(above)?, of(below)?);
                if below.iter().any(|run| !run.taken) {
                    return Err(Absent::Nothing("the second scheme never takes it".to_owned()));
                }
                let mean = |runs: &[TakeUp]| {
                    let each: Vec<f64> = runs.iter().map(|run| run.rounds).collect();
                    stats::mean(&each).unwrap_or(f64::NAN)
                };
                let open = above.iter().filter(|run| !run.taken).count();
                let (above, below, runs) = (mean(&above), mean(&below), above.len());
                let value = above / below;
                let note = match open {
                    0 => String::new(),
                    _ => format!(", {open} of {runs} runs never took it"),
                };
                let text = format!("{} ({} over {} RTT{note})", number(value), number(above), number(below));
                Ok(Measured { value, text })
            }
            (_, [scheme]) => {
                let runs = self.cells(scheme, cells)?;
                let each = runs.into_iter().map(|cell| self.of_run(cell)).collect::<Result<Vec<_>, _>>()?;
                let (least, most) = each.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |ends, value| {
                    (ends.0.min(*value), ends.1.max(*value))
                });
                let value = if self.figure == Figure::InFlightLeast { least } else { most };
                let unit = if self.figure == Figure::TakeUp { " RTT" } else { "" };
                let text = match each.len() {
                    1 => format!("{}{unit}", number(value)),
                    _ => format!("{} to {}{unit} in {} runs", number(least), number(most), each.len()),
                };
                Ok(Measured { value, text })
            }
            _ => Err(Absent::Nothing("this figure is that of one scheme".to_owned())),
        }
    }

    fn cells<'a>(&self, scheme: &str, cells: &'a Cells) -> Result<Vec<&'a Cell>, Absent> {
        let points: Vec<&str> = match self.at.is_empty() {
            true => cells.points(scheme),
            false => self.at.iter().flat_map(|group| cells.group(scheme, group)).collect(),
        };
        if points.is_empty() {
            return Err(Absent::Nothing(format!("{scheme} is not played there")));
        }
        points.into_iter().map(|point| cells.at(scheme, point)).collect()
    }

    fn of_run(&self, cell: &Cell) -> Result<f64, Absent> {
        match self.figure {
            Figure::InFlightLeast => Ok(in_flight(cell)?.into_iter().fold(f64::INFINITY, f64::min)),
            Figure::InFlightMost => Ok(in_flight(cell)?.into_iter().fold(f64::NEG_INFINITY, f64::max)),
            Figure::LastOverFirst => {
                let each = cell.run.flows.iter().map(time).collect::<Result<Vec<_>, _>>()?;
                let ends = each
                    .iter()
                    .fold((f64::INFINITY, 0.0_f64), |ends, time| (ends.0.min(*time), ends.1.max(*time)));
                Ok(ends.1 / ends.0)
            }
            Figure::TakeUp => {
                take_up(cell).map(|found| if found.taken { found.rounds } else { f64::INFINITY })
            }
            Figure::TakeUpRatio | Figure::PrintedOverLink => {
                Err(Absent::Nothing("this is no figure of a run".to_owned()))
            }
        }
    }
}

fn nothing(what: &str) -> Absent {
    Absent::Nothing(what.to_owned())
}

fn flow(cell: &Cell, index: usize) -> Result<&FlowResult, Absent> {
    cell.run.flows.get(index).ok_or_else(|| nothing("the run has no such flow"))
}

/// What a flow was to send.
fn size(flow: &FlowResult) -> f64 {
    flow.transfers.iter().map(|transfer| transfer.size.as_f64()).sum()
}

/// From the first data to the last acknowledgement, of a flow of which all was acknowledged.
fn time(flow: &FlowResult) -> Result<f64, Absent> {
    let totals = &flow.totals;
    match (totals.first_sent, totals.last_acked) {
        (Some(from), Some(to)) if totals.acked.as_f64() >= size(flow) => Ok(to.since(from).as_secs_f64()),
        _ => Err(nothing("a flow was not complete")),
    }
}

/// Rows of the first flow: time, bytes in flight, whether all was sent.
fn rows(flow: &FlowResult) -> Result<Vec<(f64, f64, bool)>, Absent> {
    let column = |name: &str| flow.series.get(name).ok_or_else(|| nothing("the run has no such series"));
    let (times, sent, in_flight) = (column("time_s")?, column("sent_bytes")?, column("in_flight_bytes")?);
    let all = size(flow);
    let rows = times.iter().zip(sent).zip(in_flight);
    Ok(rows.map(|((time, sent), in_flight)| (*time, *in_flight, *sent >= all)).collect())
}

/// Bytes in flight over `bdp`, from two round trips after the first data until all is sent.
fn in_flight(cell: &Cell) -> Result<Vec<f64>, Absent> {
    let (flow, bdp, rtt) = (flow(cell, 0)?, cell.number("bdp")?, cell.number("rtt")?);
    let begin = flow.totals.first_sent.ok_or_else(|| nothing("nothing was sent"))?;
    let from = begin.as_secs_f64() + 2.0 * rtt;
    let rows = rows(flow)?;
    let inside = rows.into_iter().filter(|(time, _, done)| *time >= from && !done);
    let found: Vec<f64> = inside.map(|(_, in_flight, _)| in_flight / bdp).collect();
    if found.is_empty() { Err(nothing("it was over before the third round trip")) } else { Ok(found) }
}

/// How long it takes the first flow to have what the second one released.
#[derive(Clone, Copy, Debug, PartialEq)]
struct TakeUp {
    rounds: f64,
    /// It got there before all was sent.
    taken: bool,
}

fn take_up(cell: &Cell) -> Result<TakeUp, Absent> {
    let (alone, rtt) = (cell.number("alone")?, cell.number("rtt")?);
    let released = flow(cell, 1)?.transfers.last();
    let released = released
        .and_then(|transfer| Some((transfer.start + transfer.completion?).as_secs_f64()))
        .ok_or_else(|| nothing("the second flow was not complete"))?;
    let first = flow(cell, 0)?;
    let column = |name: &str| first.series.get(name).ok_or_else(|| nothing("the run has no such series"));
    let (times, arrived) = (column("time_s")?, column("delivered_bytes")?);
    let rows: Vec<(f64, f64)> =
        times.iter().copied().zip(arrived.iter().copied()).filter(|(time, _)| *time >= released).collect();
    Ok(taken_up(&rows, size(first), rtt, TAKEN * alone / 8.0))
}

/// From the first row on: when for the first time so many bytes per second arrive over a round trip. Rows are time and bytes that have
/// arrived; what is left when less than a round trip's worth is to come says nothing.
fn taken_up(rows: &[(f64, f64)], size: f64, rtt: f64, rate: f64) -> TakeUp {
    let begin = rows.first().map_or(0.0, |(time, _)| *time);
    let mut last = 0.0;
    for (index, (time, arrived)) in rows.iter().enumerate() {
        last = (time - begin) / rtt;
        let Some((end, until)) = rows[index..].iter().find(|(end, _)| *end >= time + rtt - 1e-9) else {
            break;
        };
        if (until - arrived) / (end - time) >= rate {
            return TakeUp { rounds: last, taken: true };
        }
        if *until >= size {
            break;
        }
    }
    TakeUp { rounds: last, taken: false }
}

fn printed_over_link() -> Measured {
    let model = Upload { path: UploadPath::THESIS, sizes: UPLOAD_SIZES.to_vec() };
    let each = UPLOAD_SIZES.map(|size| {
        let row = model.at(size);
        (row.max_printed_s / row.link_s, size)
    });
    let (value, size) =
        each.into_iter().fold((f64::INFINITY, 0.0), |least, one| if one.0 < least.0 { one } else { least });
    Measured { value, text: format!("{} of what the link needs at {size} BDP", number(value)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn released_capacity_is_taken_once_it_arrives_for_a_round_trip() {
        // Rows each 5 ms, a round trip of 10 ms: half of 100 kB/s for 20 ms, then all of it.
        let at = |row: u32| {
            (0.005 * f64::from(row), 250.0 * f64::from(row.min(4)) + 500.0 * f64::from(row.saturating_sub(4)))
        };
        let rows: Vec<(f64, f64)> = (0..20).map(at).collect();
        let found = taken_up(&rows, 1e6, 0.01, 90_000.0);
        assert!((found.rounds - 2.0).abs() < 1e-9 && found.taken, "{found:?}");
        assert!(!taken_up(&rows, 1e6, 0.01, 110_000.0).taken);
        assert_eq!(taken_up(&rows, 1e6, 0.01, 40_000.0), TakeUp { rounds: 0.0, taken: true });
    }

    #[test]
    fn the_printed_equation_is_faster_than_the_link() {
        let found = printed_over_link();
        assert!((found.value - 0.506).abs() < 1e-3, "{found:?}");
        assert!(found.text.ends_with("at 2 BDP"), "{}", found.text);
    }
}
