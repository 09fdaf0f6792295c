//! Figures of flows that join one after the other, in windows of time, as shown in chapter 7 of Zhong 2020.
//!
//! All figures are taken from the runs' series. A flow joins at the place `start` plus its number times the place `stagger`; the
//! rate of the link changes at the places `t1`, `t2` and so on; `rtt` is the RTT without a queue. The window is that of the
//! measure: its `last` seconds, or from `after_join` seconds after the last flow has joined until the end. It is ours where the
//! thesis shows curves.

use ranpace_sim::{FlowResult, RunResult, Series};

use super::scope::{Scope, Window};
use super::series::{EPSILON, rows, within};
use super::{Entry, each, needs};
use crate::figures::Quantity::{Plain, Share, Time};
use crate::stats;

pub(super) const FIGURES: &[Entry] = &[
    needs(
        "window_jain",
        Plain,
        "Jain's index of the flows' goodput in the window; of a flow that joins within it, from then on.",
        |scope| Run::of(scope).map(|run| run.jain(run.window(scope.window))),
    ),
    needs("window_rtt", Time, "Mean over the flows of the mean RTT in the window.", |scope| {
        Run::of(scope).map(|run| run.rtt_mean(run.window(scope.window)))
    }),
    needs(
        "window_utilisation",
        Share,
        "Bits that left the bottleneck in the window over those that it could have carried.",
        |scope| {
            let run = Run::of(scope)?;
            run.utilisation(run.window(scope.window))
        },
    ),
    each(
        "segment_utilisation",
        Share,
        "Utilisation in the parts of each segment that begin 3 s after a change.",
        |scope| {
            let run = Run::of(scope)?;
            let segments = run.segments().into_iter();
            segments.map(|(from, until)| run.utilisation((from + SETTLED, until))).collect()
        },
    ),
    each("segment_jain", Plain, "Jain's index of the goodput in the last 3 s of each segment.", |scope| {
        let run = Run::of(scope)?;
        let segments = run.segments().into_iter();
        Ok(segments.map(|(_, until)| run.jain((until - SETTLED, until))).collect())
    }),
    needs(
        "recovery",
        Time,
        "From the last change until the flows' mean RTT is below twice the shortest, after it was at its highest.",
        |scope| Run::of(scope).map(|run| run.recovery()),
    ),
    needs("first_flow_drops", Plain, "Packets dropped, of the first flow.", |scope| {
        Ok(scope.first()?.dropped_packets as f64)
    }),
    needs(
        "largest_record",
        Time,
        "The largest of the flows' records of the smallest RTT at the end.",
        |scope| Run::of(scope).map(|run| run.largest_record()),
    ),
    needs(
        "longest_without_minimum",
        Time,
        "The longest time in the window in which a flow saw no RTT within 5 % of the shortest.",
        |scope| Run::of(scope).map(|run| run.longest_without_minimum(run.window(scope.window))),
    ),
    // Unlike an RTT it does not depend on how long the receiver delays its acknowledgement for another segment.
    needs(
        "longest_queued",
        Time,
        "The longest time in the window in which the bottleneck held more than 5 % of the shortest RTT.",
        |scope| {
            let run = Run::of(scope)?;
            run.longest_queued(run.window(scope.window))
        },
    ),
    needs(
        "convergence",
        Time,
        "From the last flow's joining until Jain's index over the second before is 0.95; the end if it never is.",
        |scope| Run::of(scope).map(|run| run.convergence()),
    ),
    needs("startup_time", Time, "How long the first flow is in STARTUP.", |scope| {
        let (from, until) = Run::of(scope)?.startup(0)?;
        Ok(until - from)
    }),
    needs("first_drain", Time, "How long the first flow is in the DRAIN after STARTUP.", |scope| {
        let (from, until) = Run::of(scope)?.first_drain(0)?;
        Ok(until - from)
    }),
    needs(
        "first_deep_drain",
        Time,
        "From the end of the first flow's STARTUP to its first deep DRAIN.",
        |scope| {
            let run = Run::of(scope)?;
            let from = run.startup(0)?.1;
            Ok(run.first(0, from, DEEP_DRAIN)? - from)
        },
    ),
    needs(
        "exit_share",
        Plain,
        "Goodput of the second flow over that of the first, in the RTT before the second leaves STARTUP.",
        |scope| {
            let run = Run::of(scope)?;
            let exit = run.startup(1)?.1;
            let window = (exit - run.rtt, exit);
            Ok(run.goodput(run.flow(1)?, window) / run.goodput(run.flow(0)?, window))
        },
    ),
    needs(
        "jain_after_drain",
        Plain,
        "Jain's index in the second after the second flow's first DRAIN.",
        |scope| {
            let run = Run::of(scope)?;
            let end = run.first_drain(1)?.1;
            Ok(run.jain((end, end + 1.0)))
        },
    ),
];

/// Seconds after a change that are ignored, and before the next that count (section 4.4 of the specification).
const SETTLED: f64 = 3.0;
/// An RTT counts as minimal up to this multiple of the shortest (section 4.7 of the specification).
const NEAR: f64 = 1.05;
/// Numbers of CDBEv2's states, `docs/algorithms/cdbev2.md`.
const STARTUP: f64 = 0.0;
const DRAIN: f64 = 1.0;
/// The first of two deep DRAINs.
const DEEP_DRAIN: f64 = 4.0;

/// A run with its places.
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
    fn of(scope: &Scope<'a>) -> Result<Self, String> {
        let flows = &scope.run.flows[..];
        let (start, stagger) = (scope.place("start")?, scope.place("stagger")?);
        let changes = (1..).map_while(|index| scope.place(&format!("t{index}")).ok());
        Ok(Self {
            result: scope.run,
            flows,
            joins: (0..flows.len()).map(|flow| start + stagger * flow as f64).collect(),
            changes: changes.collect(),
            rtt: scope.place("rtt")?,
            end: scope.run.end.as_secs_f64(),
        })
    }

    fn flow(&self, index: usize) -> Result<&'a FlowResult, String> {
        self.flows.get(index).ok_or_else(|| "there are fewer flows".to_owned())
    }

    /// The last seconds, or those from a given time after the last flow has joined.
    fn window(&self, window: Window) -> (f64, f64) {
        let from = match window.last {
            Some(last) => self.end - last,
            None => self.last_join() + window.after_join.unwrap_or(0.0),
        };
        (from, self.end)
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

    /// The record of the first flow's bottleneck.
    fn bottleneck(&self) -> Result<&'a Series, String> {
        let link = self.flow(0)?.bottleneck.and_then(|link| self.result.links.get(link));
        link.map(|link| &link.series).ok_or_else(|| "no link is the bottleneck".to_owned())
    }

    fn utilisation(&self, window: (f64, f64)) -> Result<f64, String> {
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

    /// An RTT between two samples is detected if the algorithm has counted it, and its record is small enough.
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

    fn longest_queued(&self, window: (f64, f64)) -> Result<f64, String> {
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

    /// When a flow's first data left, and when its STARTUP ended.
    fn startup(&self, index: usize) -> Result<(f64, f64), String> {
        let flow = self.flow(index)?;
        let from = flow.totals.first_sent.map(|time| time.as_secs_f64());
        let from = from.ok_or_else(|| format!("{} sent nothing", flow.name))?;
        let over = rows(&flow.series, "state_state").find(|row| row.1 > STARTUP);
        let over = over.ok_or_else(|| format!("{} stays in STARTUP", flow.name))?;
        Ok((from, over.0))
    }

    /// The DRAIN after STARTUP.
    fn first_drain(&self, index: usize) -> Result<(f64, f64), String> {
        let from = self.startup(index)?.1;
        let mut states = rows(&self.flow(index)?.series, "state_state").skip_while(|row| row.0 < from);
        let until = states.find(|row| row.1 != DRAIN);
        let until = until.ok_or_else(|| "the first DRAIN does not end".to_owned())?;
        Ok((from, until.0))
    }

    /// When a state first appears from a given time on.
    fn first(&self, index: usize, from: f64, state: f64) -> Result<f64, String> {
        let mut states = rows(&self.flow(index)?.series, "state_state").skip_while(|row| row.0 < from);
        let found = states.find(|row| row.1 == state);
        found.map(|row| row.0).ok_or_else(|| "no deep DRAIN was seen".to_owned())
    }
}

#[cfg(test)]
#[path = "joining_tests.rs"]
mod tests;
