//! Measurements in windows of time: what chapter 7 of Zhong 2020 shows of flows that join one after the other.
//!
//! Everything is taken from the runs' series. A flow joins at the place `start` plus its number times the place `stagger`;
//! the rate of the link changes at the places `t1`, `t2` and so on. The windows are ours where the thesis shows curves.

use ranpace_sim::{FlowResult, RunResult, Series};
use serde::Deserialize;

use super::cells::{Absent, Cell, Cells};
use super::experiment::Values;
use super::measure::{Measured, Over};
use super::metric::Metric;
use crate::figures::{Quantity, number};
use crate::stats;

/// A figure of one scheme in a window of time, over all of its runs at these values of places.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InTime {
    /// Which one.
    figure: Figure,
    /// Runs whose places have these values; all if there are none.
    #[serde(default)]
    at: Values,
    /// Over the same at these.
    to: Option<Values>,
    /// The window begins so many seconds after the last flow has joined, and lasts until the end.
    from_join: Option<f64>,
    /// The window is the last so many seconds.
    last: Option<f64>,
    /// What several runs become. Of several segments of a run, each becomes one value, and the least counts.
    #[serde(default)]
    over: Over,
}

/// What is taken from a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Figure {
    /// Jain's index of the flows' goodput in the window; of a flow that joins within it, from then on.
    Jain,
    /// Mean over the flows of the mean RTT in the window.
    Rtt,
    /// What left the bottleneck in the window over what it could have carried.
    Utilisation,
    /// [`Self::Utilisation`] in the parts of each segment that begin 3 s after a change.
    SegmentUtilisation,
    /// [`Self::Jain`] in the last 3 s of each segment.
    SegmentJain,
    /// From the last change until the flows' mean RTT is below twice the shortest, after it was at its highest.
    Recovery,
    /// Packets dropped, of all flows.
    Drops,
    /// Packets dropped, of the first flow.
    FirstFlowDrops,
    /// The largest of the flows' records of the smallest RTT at the end.
    LargestRecord,
    /// The longest time in the window in which a flow saw no RTT within 5 % of the shortest.
    LongestWithoutMinimum,
    /// The longest time in the window in which the bottleneck held more than 5 % of the shortest RTT. Unlike an RTT it
    /// does not depend on how long the receiver waits for the segment that it acknowledges together with another.
    LongestQueued,
    /// From the last flow's joining until Jain's index over the second before is 0.95; the end if it never is.
    Convergence,
    /// How long the first flow is in STARTUP.
    Startup,
    /// How long the first flow is in the DRAIN after it.
    FirstDrain,
    /// From the end of the first flow's STARTUP to its first deep DRAIN.
    FirstDeepDrain,
    /// Goodput of the second flow over that of the first, in the RTT before the second leaves STARTUP.
    ExitShare,
    /// Jain's index in the second after the second flow's first DRAIN.
    JainAfterDrain,
}

impl Figure {
    fn quantity(self) -> Quantity {
        match self {
            Self::Utilisation | Self::SegmentUtilisation => Quantity::Share,
            Self::Rtt
            | Self::Recovery
            | Self::LargestRecord
            | Self::LongestWithoutMinimum
            | Self::LongestQueued
            | Self::Convergence
            | Self::Startup
            | Self::FirstDrain
            | Self::FirstDeepDrain => Quantity::Time,
            _ => Quantity::Plain,
        }
    }

    fn show(self, value: f64) -> String {
        let unit = self.quantity().unit([value]);
        if unit.name.is_empty() { unit.show(value) } else { format!("{} {}", unit.show(value), unit.name) }
    }
}

impl InTime {
    /// Its value.
    pub fn of(&self, of: &[String], cells: &Cells) -> Result<Measured, Absent> {
        let [scheme] = of else {
            return Err(Absent::Nothing("a figure over time is that of one scheme".to_owned()));
        };
        let own = self.over_runs(scheme, &self.at, cells)?;
        let Some(to) = &self.to else { return Ok(own) };
        let other = self.over_runs(scheme, to, cells)?;
        let text = format!("{} over {}", own.text, other.text);
        Ok(Measured { value: own.value / other.value, text })
    }

    fn over_runs(&self, scheme: &str, at: &Values, cells: &Cells) -> Result<Measured, Absent> {
        let mut runs = Vec::new();
        for (_, cell) in cells.of(scheme, &[])? {
            if at.iter().all(|(place, value)| cell.places.get(place) == Some(value)) {
                runs.push(self.of_run(cell)?);
            }
        }
        let segments = runs.iter().map(Vec::len).min().unwrap_or(0);
        if segments == 0 {
            return Err(Absent::Nothing(format!("{scheme} is not played there")));
        }
        let one = |segment: usize| {
            let each: Vec<f64> = runs.iter().map(|run| run[segment]).collect();
            let (least, most) = ends(&each);
            let value = match self.over {
                Over::Mean => stats::mean(&each).unwrap_or(f64::NAN),
                Over::Max => most,
                Over::Min => least,
            };
            let show = |value| self.figure.show(value);
            let text = match each.len() {
                1 => show(value),
                _ if least == most => format!("{} in all", show(value)),
                _ if self.over == Over::Mean => {
                    format!("{} ({} to {})", show(value), show(least), show(most))
                }
                _ => format!("{} to {}", show(least), show(most)),
            };
            (value, text)
        };
        let all: Vec<(f64, String)> = (0..segments).map(one).collect();
        let value = ends(&all.iter().map(|one| one.0).collect::<Vec<_>>()).0;
        let text = all.into_iter().map(|one| one.1).collect::<Vec<_>>().join("; ");
        Ok(Measured { value, text })
    }

    fn of_run(&self, cell: &Cell) -> Result<Vec<f64>, Absent> {
        let run = Run::new(cell)?;
        let window = match (self.from_join, self.last) {
            (_, Some(last)) => (run.end - last, run.end),
            (from, None) => (run.last_join() + from.unwrap_or(0.0), run.end),
        };
        Ok(match self.figure {
            Figure::Jain => vec![run.jain(window)],
            Figure::Rtt => vec![run.rtt_mean(window)],
            Figure::Utilisation => vec![run.utilisation(window)?],
            Figure::SegmentUtilisation => run
                .segments()
                .into_iter()
                .map(|(from, until)| run.utilisation((from + SETTLED, until)))
                .collect::<Result<_, _>>()?,
            Figure::SegmentJain => {
                run.segments().into_iter().map(|(_, until)| run.jain((until - SETTLED, until))).collect()
            }
            Figure::Recovery => vec![run.recovery()],
            Figure::Drops => vec![run.flows.iter().map(|flow| flow.dropped_packets as f64).sum()],
            Figure::FirstFlowDrops => vec![run.flow(0)?.dropped_packets as f64],
            Figure::LargestRecord => vec![run.largest_record()],
            Figure::LongestWithoutMinimum => vec![run.longest_without_minimum(window)],
            Figure::LongestQueued => vec![run.longest_queued(window)?],
            Figure::Convergence => vec![run.convergence()],
            Figure::Startup => vec![run.startup(0)?.1 - run.startup(0)?.0],
            Figure::FirstDrain => vec![run.first_drain(0)?.1 - run.first_drain(0)?.0],
            Figure::FirstDeepDrain => {
                let from = run.startup(0)?.1;
                vec![run.first(0, from, DEEP_DRAIN)? - from]
            }
            Figure::ExitShare => {
                let exit = run.startup(1)?.1;
                let window = (exit - run.rtt, exit);
                vec![run.goodput(run.flow(1)?, window) / run.goodput(run.flow(0)?, window)]
            }
            Figure::JainAfterDrain => {
                let end = run.first_drain(1)?.1;
                vec![run.jain((end, end + 1.0))]
            }
        })
    }
}

/// The distance between the quartiles of a figure over the drops of a group, of one scheme over that of another.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quartiles {
    /// Which figure.
    metric: Metric,
    /// The group.
    at: String,
}

impl Quartiles {
    /// Its value.
    pub fn of(&self, of: &[String], cells: &Cells) -> Result<Measured, Absent> {
        let [above, below] = of else {
            return Err(Absent::Nothing("a ratio is that of two schemes".to_owned()));
        };
        let range = |scheme: &str| -> Result<f64, Absent> {
            let points = cells.group(scheme, &self.at).into_iter();
            let mut values: Vec<f64> = points
                .map(|point| Ok(cells.at(scheme, point)?.get(self.metric)))
                .collect::<Result<_, Absent>>()?;
            values.sort_by(f64::total_cmp);
            Ok(quantile(&values, 0.75) - quantile(&values, 0.25))
        };
        let (above, below) = (range(above)?, range(below)?);
        let text = format!(
            "{} ({} over {})",
            number(above / below),
            self.metric.show(above),
            self.metric.show(below)
        );
        Ok(Measured { value: above / below, text })
    }
}

/// Of sorted values, between the two nearest.
fn quantile(values: &[f64], share: f64) -> f64 {
    let place = share * (values.len() as f64 - 1.0).max(0.0);
    let at = |index: usize| values.get(index).or(values.last()).copied().unwrap_or(f64::NAN);
    let low = at(place as usize);
    low + (at(place as usize + 1) - low) * (place - place.floor())
}

/// Seconds after a change that do not count, and before the next that do (section 4.4 of the specification).
const SETTLED: f64 = 3.0;
/// An RTT is at its minimum up to so many times the shortest (section 4.7 of the specification).
const NEAR: f64 = 1.05;
/// Numbers of CDBEv2's states, `docs/algorithms/cdbev2.md`.
const DRAIN: f64 = 1.0;
/// The first of two deep DRAINs.
const DEEP_DRAIN: f64 = 4.0;
/// Of times in seconds.
const EPSILON: f64 = 1e-6;

fn ends(values: &[f64]) -> (f64, f64) {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if values.iter().any(|value| value.is_nan()) { (f64::NAN, f64::NAN) } else { (least, most) }
}

/// A run with what its places say about it.
struct Run<'a> {
    result: &'a RunResult,
    flows: &'a [FlowResult],
    joins: Vec<f64>,
    changes: Vec<f64>,
    /// RTT without a queue.
    rtt: f64,
    end: f64,
}

impl<'a> Run<'a> {
    fn new(cell: &'a Cell) -> Result<Self, Absent> {
        let flows = &cell.run.flows[..];
        let (start, stagger) = (cell.number("start")?, cell.number("stagger")?);
        let changes = (1..).map_while(|index| cell.number(&format!("t{index}")).ok());
        Ok(Self {
            result: &cell.run,
            flows,
            joins: (0..flows.len()).map(|flow| start + stagger * flow as f64).collect(),
            changes: changes.collect(),
            rtt: cell.number("rtt")?,
            end: cell.run.end.as_secs_f64(),
        })
    }

    fn flow(&self, index: usize) -> Result<&'a FlowResult, Absent> {
        self.flows.get(index).ok_or_else(|| Absent::Nothing("there are fewer flows".to_owned()))
    }

    fn last_join(&self) -> f64 {
        self.joins.last().copied().unwrap_or(0.0)
    }

    /// Payload per second, in bit/s.
    fn goodput(&self, flow: &FlowResult, (from, until): (f64, f64)) -> f64 {
        let times = flow.series.get("time_s").unwrap_or(&[]);
        let bytes = flow.series.get("delivered_bytes").unwrap_or(&[]);
        let delivered = |time: f64| {
            let count = times.partition_point(|row| *row <= time + EPSILON);
            count.checked_sub(1).and_then(|row| bytes.get(row)).copied().unwrap_or(0.0)
        };
        (delivered(until) - delivered(from)) * 8.0 / (until - from)
    }

    fn jain(&self, (from, until): (f64, f64)) -> f64 {
        let joined = self.flows.iter().zip(&self.joins).filter(|(_, join)| **join < until - EPSILON);
        let rates: Vec<f64> =
            joined.map(|(flow, join)| self.goodput(flow, (from.max(*join), until))).collect();
        stats::jain(&rates).unwrap_or(f64::NAN)
    }

    fn rtt_mean(&self, window: (f64, f64)) -> f64 {
        let mean = |flow: &FlowResult| {
            let values: Vec<f64> = within(&flow.series, "rtt_last_s", window).map(|row| row.1).collect();
            stats::mean(&values)
        };
        let each: Vec<f64> = self.flows.iter().filter_map(mean).collect();
        stats::mean(&each).unwrap_or(f64::NAN)
    }

    /// What is recorded of the first flow's bottleneck.
    fn bottleneck(&self) -> Result<&'a Series, Absent> {
        let link = self.flow(0)?.bottleneck.and_then(|link| self.result.links.get(link));
        link.map(|link| &link.series).ok_or_else(|| Absent::Nothing("no link is the bottleneck".to_owned()))
    }

    fn utilisation(&self, window: (f64, f64)) -> Result<f64, Absent> {
        let series = self.bottleneck()?;
        let sum = |column: &str| within(series, column, window).map(|row| row.1).sum::<f64>();
        Ok(sum("departed_bit_s") / sum("capacity_bit_s"))
    }

    /// From each change to the next, and from the beginning to the first.
    fn segments(&self) -> Vec<(f64, f64)> {
        let from = core::iter::once(0.0).chain(self.changes.iter().copied());
        let until = self.changes.iter().copied().chain([self.end]);
        from.zip(until).collect()
    }

    fn recovery(&self) -> f64 {
        let Some(change) = self.changes.last().copied() else { return f64::NAN };
        let window = (change, self.end);
        let columns: Vec<Vec<(f64, f64)>> =
            self.flows.iter().map(|flow| within(&flow.series, "rtt_last_s", window).collect()).collect();
        let count = columns.iter().map(Vec::len).min().unwrap_or(0);
        let mean = |row: usize| {
            let sum: f64 = columns.iter().map(|column| column[row].1).sum();
            (columns[0][row].0, sum / columns.len() as f64)
        };
        let means: Vec<(f64, f64)> = (0..count).map(mean).collect();
        let Some(peak) = (0..count).max_by(|a, b| means[*a].1.total_cmp(&means[*b].1)) else {
            return f64::NAN;
        };
        let below = means[peak..].iter().find(|row| row.1 < 2.0 * self.rtt);
        below.map_or(self.end, |row| row.0) - change
    }

    fn largest_record(&self) -> f64 {
        let last = |flow: &FlowResult| {
            rows(&flow.series, "state_min_rtt_s").filter(|row| row.1.is_finite()).last().map(|row| row.1)
        };
        self.flows.iter().filter_map(last).fold(f64::NAN, f64::max)
    }

    /// An RTT between two samples is seen if the algorithm has counted it, and its record is small enough.
    fn longest_without_minimum(&self, window: (f64, f64)) -> f64 {
        let limit = NEAR * self.rtt;
        let longest = |flow: &FlowResult| {
            let latest = rows(&flow.series, "rtt_last_s");
            let counted = rows(&flow.series, "state_hits").zip(rows(&flow.series, "state_min_rtt_s"));
            let (mut seen, mut longest, mut before) = (window.0, 0.0_f64, 0.0);
            for ((time, rtt), ((_, hits), (_, record))) in latest.zip(counted) {
                let hit = rtt <= limit || (hits > before && record <= limit);
                before = if hits.is_finite() { hits } else { before };
                if hit && time > window.0 && time <= window.1 + EPSILON {
                    (longest, seen) = (longest.max(time - seen), time);
                }
            }
            longest.max(window.1 - seen)
        };
        self.flows.iter().map(longest).fold(f64::NAN, f64::max)
    }

    fn longest_queued(&self, window: (f64, f64)) -> Result<f64, Absent> {
        let series = self.bottleneck()?;
        let capacity = within(series, "capacity_bit_s", window);
        let (mut seen, mut longest) = (window.0, 0.0_f64);
        for ((time, bytes), (_, rate)) in within(series, "queued_bytes", window).zip(capacity) {
            if bytes * 8.0 <= (NEAR - 1.0) * self.rtt * rate {
                (longest, seen) = (longest.max(time - seen), time);
            }
        }
        Ok(longest.max(window.1 - seen))
    }

    fn convergence(&self) -> f64 {
        let join = self.last_join();
        let Some(flow) = self.flows.first() else { return f64::NAN };
        let times = within(&flow.series, "delivered_bytes", (join + 1.0, self.end)).map(|row| row.0);
        let fair = |time: &f64| self.jain((time - 1.0, *time)) >= 0.95;
        times.into_iter().find(fair).unwrap_or(self.end) - join
    }

    /// When a flow's first data left, and when its STARTUP was over.
    fn startup(&self, index: usize) -> Result<(f64, f64), Absent> {
        let flow = self.flow(index)?;
        let from = flow.totals.first_sent.map(|time| time.as_secs_f64());
        let from = from.ok_or_else(|| Absent::Nothing(format!("{} sent nothing", flow.name)))?;
        let over = rows(&flow.series, "state_state").find(|row| row.1 > 0.0);
        let over = over.ok_or_else(|| Absent::Nothing(format!("{} stays in STARTUP", flow.name)))?;
        Ok((from, over.0))
    }

    /// The DRAIN after STARTUP.
    fn first_drain(&self, index: usize) -> Result<(f64, f64), Absent> {
        let from = self.startup(index)?.1;
        let mut states = rows(&self.flow(index)?.series, "state_state").skip_while(|row| row.0 < from);
        let until = states.find(|row| row.1 != DRAIN);
        let until = until.ok_or_else(|| Absent::Nothing("the first DRAIN does not end".to_owned()))?;
        Ok((from, until.0))
    }

    /// When a state is first seen from a time on.
    fn first(&self, index: usize, from: f64, state: f64) -> Result<f64, Absent> {
        let mut states = rows(&self.flow(index)?.series, "state_state").skip_while(|row| row.0 < from);
        let found = states.find(|row| row.1 == state);
        found.map(|row| row.0).ok_or_else(|| Absent::Nothing("no deep DRAIN was seen".to_owned()))
    }
}

/// A column with its times; none if it is not there.
fn rows<'a>(series: &'a Series, column: &str) -> impl Iterator<Item = (f64, f64)> + 'a {
    let times = series.get("time_s").unwrap_or(&[]);
    times.iter().copied().zip(series.get(column).unwrap_or(&[]).iter().copied())
}

/// Rows of the intervals within a window that have a value.
fn within<'a>(
    series: &'a Series,
    column: &str,
    (from, until): (f64, f64),
) -> impl Iterator<Item = (f64, f64)> + 'a {
    rows(series, column)
        .filter(move |row| row.0 > from + EPSILON && row.0 <= until + EPSILON && row.1.is_finite())
}

#[cfg(test)]
#[path = "functions_ch7_tests.rs"]
mod tests;
