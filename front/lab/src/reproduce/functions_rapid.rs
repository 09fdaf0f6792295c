//! Measurements of single flows, by their names: what chapter 5 of Diarra 2022 shows of downloads that differ.
//!
//! Runs of a scheme that have the same places but for the seed are one sample; a ratio is taken run by run, the runs of both
//! schemes in the order of the experiment.
//!
//! The RTT of a split flow is that of both connections and what its payload waited in the proxy. A scheme that sets `rtts =
//! "sockets"` is measured as sockets see it: the two connections' RTTs added, without the wait; percentiles are then of the rows of
//! the series.

use ranpace_sim::{Distribution, FlowResult, RunResult, SplitResult};
use ranpace_units::Time;
use serde::Deserialize;

use super::cells::{Absent, Cell, Cells};
use super::experiment::Values;
use super::measure::{Measured, Over};
use crate::figures::{Quantity, number};
use crate::stats;

/// A figure of some flows, or of one over another.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowFigure {
    figure: Figure,
    /// Name of the flow; all but plain sources if it is left out.
    flow: Option<String>,
    /// Runs whose places have these values.
    #[serde(default)]
    at: Values,
    /// Only while all flows but plain sources run, from the series: goodputs, and RTTs as each row's last sample.
    #[serde(default)]
    while_all: bool,
    /// What it is divided by.
    to: Option<To>,
    /// Runs that differ in this place are compared apart: the mean over the others counts, by `over`.
    each: Option<String>,
    /// What several values become: their mean, the largest or the smallest.
    #[serde(default)]
    over: Over,
}

/// What is divided by: what is left out is as above; the flow "" is all but plain sources.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct To {
    scheme: Option<String>,
    figure: Option<Figure>,
    flow: Option<String>,
    at: Option<Values>,
}

/// A figure of some flows at some points.
struct Part {
    figure: Figure,
    flow: Option<String>,
    at: Values,
    while_all: bool,
}

/// What is taken from a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Figure {
    /// Payload delivered over the time of the flow; the sum over flows.
    Goodput,
    /// All payload of the flows over the time from the first one's start to the last one's end.
    Rate,
    /// From the first start to the last end of the flows; to the end of the run, if one is not complete.
    Completion,
    /// 1 if the flow ends before all others.
    First,
    /// Jain's index of the goodputs.
    Jain,
    /// Standard deviation of the goodputs over their mean.
    Variation,
    /// The flow's part of what all have delivered when the first one ends.
    Share,
    /// Mean, 40 %, half and 90 % of the RTTs; the mean over flows.
    RttMean,
    RttP40,
    RttP50,
    RttP90,
    /// 95 % of the RTTs of the connection to the server and of that to the user, added: without what waits in the proxy.
    LegsP95,
    /// Mean time from end to end of data.
    OneWay,
    /// Mean of RFC 3550's jitter.
    Jitter,
    /// Packets that were not dropped over those sent.
    Arrived,
    /// Packets dropped by the users' buffers on the way to them.
    Overflow,
    /// Periods at whose end a proxy found the flow slow.
    SlowPeriods,
    /// 95 % of the times that payload waited in the proxy.
    ProxyDelay,
    /// What the edge's feed takes on the wire.
    Feed,
    /// Correlation over time of what the first flow has on its way from the proxy with what the second has on its way.
    InflightCorrelation,
}

impl Figure {
    fn quantity(self) -> Quantity {
        match self {
            Self::Goodput | Self::Rate | Self::Feed => Quantity::Rate,
            Self::Share | Self::Arrived | Self::SlowPeriods => Quantity::Share,
            Self::First | Self::Jain | Self::Variation | Self::Overflow | Self::InflightCorrelation => {
                Quantity::Plain
            }
            _ => Quantity::Time,
        }
    }

    fn show(self, value: f64) -> String {
        let unit = self.quantity().unit([value]);
        if unit.name.is_empty() { unit.show(value) } else { format!("{} {}", unit.show(value), unit.name) }
    }

    /// The same from the series, of the time in which all flows run.
    fn while_all(self, run: &RunResult, name: Option<&str>, sockets: bool) -> f64 {
        let all: Vec<&FlowResult> = run.flows.iter().filter(|flow| flow.cc != "udp").collect();
        let from = all.iter().map(|flow| start_of(run, flow)).fold(f64::NEG_INFINITY, f64::max);
        let until = all.iter().map(|flow| end_of(run, flow)).fold(f64::INFINITY, f64::min);
        let flows = all.into_iter().filter(|flow| name.is_none_or(|name| flow.name == name));
        let column = |flow: &FlowResult, name: &str| -> Vec<(f64, f64)> {
            let times = flow.series.get("time_s").unwrap_or_default();
            let values = flow.series.get(name).unwrap_or_default();
            let rows = times.iter().copied().zip(values.iter().copied());
            rows.filter(|(at, value)| (from..=until).contains(at) && value.is_finite()).collect()
        };
        let quantile = |flow: &FlowResult, share: f64| match sockets {
            true if flow.split.is_some() => percentile(sums(flow, from, until), share),
            _ => percentile(column(flow, "rtt_last_s").into_iter().map(|(_, rtt)| rtt).collect(), share),
        };
        let each = flows.map(|flow| match self {
            Self::Goodput => {
                let rows = column(flow, "delivered_bytes");
                rows.first()
                    .zip(rows.last())
                    .map_or(f64::NAN, |(first, last)| 8.0 * (last.1 - first.1) / (last.0 - first.0))
            }
            Self::RttP50 => quantile(flow, 0.5),
            Self::RttP90 => quantile(flow, 0.9),
            _ => f64::NAN,
        });
        let each: Vec<f64> = each.collect();
        match self {
            Self::Goodput => each.iter().sum(),
            _ => stats::mean(&each).unwrap_or(f64::NAN),
        }
    }

    /// An RTT of split flows as their sockets see it; `None` if the figure is no RTT, or none of them is split.
    fn of_sockets(self, run: &RunResult, flows: &[&FlowResult]) -> Option<f64> {
        let share = match self {
            Self::RttMean => None,
            Self::RttP40 => Some(0.4),
            Self::RttP50 => Some(0.5),
            Self::RttP90 => Some(0.9),
            _ => return None,
        };
        let one = |flow: &&FlowResult| {
            let split = flow.split.as_ref()?;
            Some(match share {
                None => (split.wan_rtt.mean + split.ran_rtt.mean).as_secs_f64(),
                Some(share) => percentile(sums(flow, start_of(run, flow), end_of(run, flow)), share),
            })
        };
        stats::mean(&flows.iter().filter_map(one).collect::<Vec<f64>>())
    }

    fn of(self, run: &RunResult, name: Option<&str>, sockets: bool) -> f64 {
        let is_meant = |flow: &&FlowResult| name.map_or(flow.cc != "udp", |name| flow.name == name);
        let flows: Vec<&FlowResult> = run.flows.iter().filter(is_meant).collect();
        let goodputs: Vec<f64> = flows.iter().map(|flow| flow.goodput.as_f64()).collect();
        let rtt = |of: fn(&Distribution) -> f64| {
            let all: Vec<f64> =
                flows.iter().filter(|flow| flow.rtt.count > 0).map(|flow| of(&flow.rtt)).collect();
            stats::mean(&all).unwrap_or(f64::NAN)
        };
        if sockets && let Some(value) = self.of_sockets(run, &flows) {
            return value;
        }
        let one = || flows.first().copied();
        let of_one = |of: fn(&FlowResult) -> f64| one().map_or(f64::NAN, of);
        match self {
            Self::Goodput => goodputs.iter().sum(),
            Self::Rate => {
                let bytes: f64 = flows.iter().map(|flow| flow.delivered.as_f64()).sum();
                8.0 * bytes / time_of(run, &flows)
            }
            Self::Completion => time_of(run, &flows),
            Self::First => {
                let others = run.flows.iter().filter(|flow| !is_meant(flow) && flow.cc != "udp");
                let first = others.map(|flow| end_of(run, flow)).fold(f64::INFINITY, f64::min);
                flows.iter().map(|flow| f64::from(u8::from(end_of(run, flow) < first))).sum()
            }
            Self::Jain => stats::jain(&goodputs).unwrap_or(f64::NAN),
            Self::Variation => {
                let mean = stats::mean(&goodputs).unwrap_or(f64::NAN);
                stats::deviation(&goodputs).unwrap_or(f64::NAN) / mean
            }
            Self::Share => share(run, &flows),
            Self::RttMean => rtt(|rtt| rtt.mean.as_secs_f64()),
            Self::RttP40 => rtt(|rtt| quantile(rtt, 0.4)),
            Self::RttP50 => rtt(|rtt| rtt.p50.as_secs_f64()),
            Self::RttP90 => rtt(|rtt| quantile(rtt, 0.9)),
            Self::LegsP95 => {
                let splits = flows.iter().filter_map(|flow| flow.split.as_ref());
                let legs =
                    |split: &SplitResult| split.wan_rtt.p95.as_secs_f64() + split.ran_rtt.p95.as_secs_f64();
                let all: Vec<f64> = splits.map(legs).collect();
                stats::mean(&all).unwrap_or(f64::NAN)
            }
            Self::OneWay => of_one(|flow| flow.totals.one_way_mean.as_secs_f64()),
            Self::Jitter => of_one(|flow| flow.jitter_ewma.as_secs_f64()),
            Self::Arrived => of_one(|flow| {
                let sent = flow.sent_packets as f64;
                (sent - flow.dropped_packets as f64) / sent.max(1.0)
            }),
            Self::Overflow => {
                let down = run.links.iter().filter(|link| link.name.ends_with(".down"));
                down.map(|link| link.dropped_packets as f64).sum()
            }
            Self::SlowPeriods => {
                let split = one().and_then(|flow| flow.split.as_ref());
                split.map_or(f64::NAN, |split| split.slow_periods as f64 / split.periods as f64)
            }
            Self::ProxyDelay => {
                let splits = flows.iter().filter_map(|flow| flow.split.as_ref());
                let all: Vec<f64> = splits.map(|split| split.delay.p95.as_secs_f64()).collect();
                stats::mean(&all).unwrap_or(f64::NAN)
            }
            Self::InflightCorrelation => match &flows[..] {
                [one, other] => {
                    let own = one.series.get("proxy_ran_in_flight_bytes").unwrap_or_default();
                    correlation(own, other.series.get("in_flight_bytes").unwrap_or_default())
                }
                _ => f64::NAN,
            },
            Self::Feed => run.feed.as_ref().map_or(f64::NAN, |feed| feed.rate.as_f64()),
        }
    }
}

/// The RTTs of both connections of a split flow, added: the last samples in each row of its series from one time to another.
fn sums(flow: &FlowResult, from: f64, until: f64) -> Vec<f64> {
    let column = |name| flow.series.get(name).unwrap_or_default().iter().copied();
    let sums = column("proxy_wan_rtt_s").zip(column("proxy_ran_rtt_s")).map(|(wan, ran)| wan + ran);
    let rows = column("time_s").zip(sums);
    rows.filter(|(at, sum)| (from..=until).contains(at) && sum.is_finite()).map(|(_, sum)| sum).collect()
}

/// The least value that so many of them do not exceed.
fn percentile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let index = (share * values.len() as f64).ceil() as usize;
    values.get(index.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

/// When a flow has all that it will have.
fn end_of(run: &RunResult, flow: &FlowResult) -> f64 {
    let ends = flow.transfers.iter().map(|transfer| match transfer.completion {
        Some(completion) => (transfer.start + completion).as_secs_f64(),
        None => run.end.as_secs_f64(),
    });
    ends.reduce(f64::max).unwrap_or(run.end.as_secs_f64())
}

fn start_of(run: &RunResult, flow: &FlowResult) -> f64 {
    let start = flow.transfers.first().map(|transfer| transfer.start).or(flow.totals.first_sent);
    start.unwrap_or(Time::ZERO).max(run.measured_from).as_secs_f64()
}

/// From the first start to the last end.
fn time_of(run: &RunResult, flows: &[&FlowResult]) -> f64 {
    let start = flows.iter().map(|flow| start_of(run, flow)).fold(f64::INFINITY, f64::min);
    flows.iter().map(|flow| end_of(run, flow)).fold(f64::NEG_INFINITY, f64::max) - start
}

/// Of what all flows but plain sources have delivered from the start of the measured part until the first of them ends.
fn share(run: &RunResult, of: &[&FlowResult]) -> f64 {
    let all: Vec<&FlowResult> = run.flows.iter().filter(|flow| flow.cc != "udp").collect();
    let until = all.iter().map(|flow| end_of(run, flow)).fold(f64::INFINITY, f64::min);
    let from = run.measured_from.as_secs_f64();
    let delivered = |flow: &FlowResult| {
        let (times, bytes) = (flow.series.get("time_s")?, flow.series.get("delivered_bytes")?);
        let at = |time: f64| {
            let rows = times.iter().zip(bytes).take_while(|(at, _)| **at <= time + 1e-9);
            rows.last().map_or(0.0, |(_, bytes)| *bytes)
        };
        Some(at(until) - at(from))
    };
    let sum =
        |flows: &[&FlowResult]| flows.iter().map(|flow| delivered(flow).unwrap_or(f64::NAN)).sum::<f64>();
    sum(of) / sum(&all)
}

/// Pearson's, over the rows that both have.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let rows: Vec<(f64, f64)> =
        a.iter().zip(b).filter(|(a, b)| a.is_finite() && b.is_finite()).map(|(a, b)| (*a, *b)).collect();
    let count = rows.len() as f64;
    let (a, b) = rows.iter().fold((0.0, 0.0), |sum, row| (sum.0 + row.0 / count, sum.1 + row.1 / count));
    let (mut both, mut of_a, mut of_b) = (0.0, 0.0, 0.0);
    for row in rows {
        let (a, b) = (row.0 - a, row.1 - b);
        (both, of_a, of_b) = (both + a * b, of_a + a * a, of_b + b * b);
    }
    both / (of_a * of_b).sqrt()
}

/// The least value that so many samples do not exceed.
fn quantile(of: &Distribution, share: f64) -> f64 {
    let point = of.cdf.iter().find(|(_, below)| *below >= share);
    point.map_or(f64::NAN, |(value, _)| value.as_secs_f64())
}

impl FlowFigure {
    /// Its value.
    pub fn of(&self, of: &[String], cells: &Cells) -> Result<Measured, Absent> {
        let [scheme] = of else {
            return Err(Absent::Nothing("a figure of flows is that of one scheme".to_owned()));
        };
        let while_all = self.while_all;
        let part = Part { figure: self.figure, flow: self.flow.clone(), at: self.at.clone(), while_all };
        let own = values(&part, scheme, cells)?;
        let Some(to) = &self.to else {
            let show = |value| self.figure.show(value);
            return self.sum_up(&own, |values| (stats::mean(values).unwrap_or(f64::NAN), None), show);
        };
        let below = Part {
            figure: to.figure.unwrap_or(self.figure),
            flow: to.flow.clone().or_else(|| self.flow.clone()).filter(|name| !name.is_empty()),
            at: to.at.clone().unwrap_or_else(|| self.at.clone()),
            while_all,
        };
        let other = values(&below, to.scheme.as_deref().unwrap_or(scheme), cells)?;
        if other.len() != own.len() {
            return Err(Absent::Nothing(format!("{} runs over {}", own.len(), other.len())));
        }
        let pairs = own.into_iter().zip(other);
        let ratios: Vec<(&Cell, f64)> = pairs.map(|((cell, own), (_, to))| (cell, own / to)).collect();
        let judged = |values: &[f64]| {
            let mean = stats::mean(values).unwrap_or(f64::NAN);
            (mean, stats::ci95(values))
        };
        self.sum_up(&ratios, judged, number)
    }

    /// One value of several, with what is said of it. A ratio whose interval has 1 in it claims no direction, and counts
    /// as 1 unless its mean is on the worse side of 1.
    fn sum_up(
        &self,
        values: &[(&Cell, f64)],
        judge: impl Fn(&[f64]) -> (f64, Option<f64>),
        show: impl Fn(f64) -> String,
    ) -> Result<Measured, Absent> {
        let mut groups: Vec<(String, Vec<f64>)> = Vec::new();
        for (cell, value) in values {
            let group =
                self.each.as_ref().and_then(|place| cell.places.get(place)).cloned().unwrap_or_default();
            match groups.iter_mut().find(|(name, _)| *name == group) {
                Some((_, values)) => values.push(*value),
                None => groups.push((group, vec![*value])),
            }
        }
        let mut worst: Option<f64> = None;
        let mut texts = Vec::new();
        let count = groups.len();
        let (mut sum, is_ratio) = (0.0, self.to.is_some());
        for (name, values) in groups {
            let (mean, half) = judge(&values);
            let straddles = is_ratio && half.is_some_and(|half| (mean - half < 1.0) != (mean + half < 1.0));
            let value = match (straddles, self.over) {
                (false, _) => mean,
                (true, Over::Max) => mean.max(1.0),
                (true, _) => mean.min(1.0),
            };
            let text = match half {
                Some(half) => format!("{} ± {}", show(mean), show(half)),
                None => {
                    let (least, most) = ends(&values);
                    let same = show(least) == show(most);
                    if same {
                        show(mean)
                    } else {
                        format!("{} ({} to {})", show(mean), show(least), show(most))
                    }
                }
            };
            let note = if straddles { ", on both sides of 1" } else { "" };
            let place = if name.is_empty() { String::new() } else { format!("{name}: ") };
            texts.push(format!("{place}{text}{note}"));
            sum += value;
            worst = Some(match (worst, self.over) {
                (None, _) => value,
                (Some(worst), Over::Min) => worst.min(value),
                (Some(worst), _) => worst.max(value),
            });
        }
        let Some(worst) = worst else { return Err(Absent::Nothing("it is not played there".to_owned())) };
        let value = if self.over == Over::Mean { sum / count as f64 } else { worst };
        Ok(Measured { value, text: texts.join("; ") })
    }
}

fn ends(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| {
        (least.min(*value), most.max(*value))
    })
}

/// The figure in each run of a scheme.
fn values<'c>(part: &Part, scheme: &str, cells: &'c Cells) -> Result<Vec<(&'c Cell, f64)>, Absent> {
    let runs = cells.of(scheme, &[])?.into_iter().map(|(_, cell)| cell);
    let meant =
        runs.filter(|cell| part.at.iter().all(|(place, value)| cell.places.get(place) == Some(value)));
    let of = |cell: &Cell| {
        let sockets = cell.places.get("rtts").is_some_and(|rtts| rtts == "sockets");
        match part.while_all {
            true => part.figure.while_all(&cell.run, part.flow.as_deref(), sockets),
            false => part.figure.of(&cell.run, part.flow.as_deref(), sockets),
        }
    };
    let found: Vec<_> = meant.map(|cell| (cell, of(cell))).collect();
    if found.is_empty() {
        return Err(Absent::Nothing(format!("{scheme} is not played there")));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a test may

    use ranpace_sim::{Column, Series, Transfer};
    use ranpace_units::{Bytes, Rate, Span};

    use super::*;
    use crate::synthetic;

    fn cells(rates: &[(&str, [u64; 2])]) -> Cells {
        let mut cells = Cells::default();
        for (index, (scheme, rates)) in rates.iter().enumerate() {
            let mut run = synthetic::run_of(&["cubic", "bbr1"], 1);
            for (flow, mbit) in run.flows.iter_mut().zip(rates) {
                flow.goodput = Rate::from_mbit_per_s(*mbit);
                flow.transfers = vec![Transfer {
                    start: Time::from_secs(1),
                    size: Bytes::new(1),
                    completion: Some(Span::from_millis(8_000 / mbit)),
                    handed_over: None,
                }];
            }
            (run.flows[0].name, run.flows[1].name) = ("a".to_owned(), "b".to_owned());
            let seed = [("seed".to_owned(), index.to_string())].into_iter().collect();
            cells.enter(scheme, &index.to_string(), Ok(Cell::new(seed, run)));
        }
        cells
    }

    fn figure(text: &str) -> FlowFigure {
        toml_edit::de::from_str(text).unwrap()
    }

    #[test]
    fn a_figure_is_the_mean_over_runs_and_a_ratio_goes_run_by_run() {
        let cells = cells(&[("x", [4, 4]), ("x", [8, 4]), ("y", [2, 4]), ("y", [4, 4])]);
        let value = |text: &str| figure(text).of(&["x".to_owned()], &cells).unwrap().value;
        assert_eq!(value("figure = 'goodput'\nflow = 'a'"), 6e6);
        assert_eq!(value("figure = 'goodput'\nflow = 'a'\nat = { seed = '1' }"), 8e6);
        assert_eq!(value("figure = 'goodput'\nflow = 'a'\nto = { scheme = 'y' }"), 2.0);
        assert_eq!(value("figure = 'completion'"), 2.0);
        assert_eq!(value("figure = 'first'\nflow = 'a'"), 0.5);
        assert_eq!(value("figure = 'jain'\neach = 'seed'\nover = 'min'"), 0.9);
    }

    #[test]
    fn while_all_run_counts_what_came_until_the_first_ends() {
        let mut cells = Cells::default();
        let mut run = synthetic::run_of(&["newreno", "vegas"], 1);
        for (index, flow) in run.flows.iter_mut().enumerate() {
            // Both from 0 on: one ends after 2 s, and then the other has twice as much.
            let end = Span::from_secs(2 + 2 * index as u64);
            let start = Time::ZERO;
            flow.transfers =
                vec![Transfer { start, size: Bytes::new(1), completion: Some(end), handed_over: None }];
            flow.name = ["a", "b"][index].to_owned();
            let column =
                |name: &str, values: [f64; 5]| Column { name: name.to_owned(), values: values.to_vec() };
            flow.series = Series {
                columns: vec![
                    column("time_s", [0.0, 1.0, 2.0, 3.0, 4.0]),
                    column("delivered_bytes", [[0.0, 3e6, 6e6, 6e6, 6e6], [0.0, 1e6, 2e6, 6e6, 1e7]][index]),
                    column("rtt_last_s", [0.4, 0.3, 0.5, 0.1, 0.1]),
                ],
            };
        }
        run.measured_from = Time::ZERO;
        cells.enter("x", "1", Ok(Cell::new(Values::default(), run)));
        let value = |text: &str| figure(text).of(&["x".to_owned()], &cells).unwrap().value;
        let all = "while_all = true\n";
        assert_eq!(value(&format!("{all}figure = 'goodput'\nflow = 'a'\nto = {{ flow = 'b' }}")), 3.0);
        assert_eq!(value(&format!("{all}figure = 'rtt_p50'")), 0.4);
        assert_eq!(value(&format!("{all}figure = 'rtt_p90'")), 0.5);
    }

    #[test]
    fn as_sockets_see_it_the_wait_in_the_proxy_is_not_in_the_rtt() {
        let mut run = synthetic::run_of(&["cubic"], 1);
        let of = |ms: u64| Distribution { count: 1, mean: Span::from_millis(ms), ..Distribution::default() };
        let flow = &mut run.flows[0];
        (flow.rtt, flow.split) =
            (of(900), Some(SplitResult { wan_rtt: of(20), ran_rtt: of(50), ..SplitResult::default() }));
        flow.transfers.clear();
        let column = |name: &str, values: [f64; 4]| Column { name: name.to_owned(), values: values.to_vec() };
        flow.series = Series {
            columns: vec![
                column("time_s", [0.0, 1.0, 2.0, 3.0]),
                column("rtt_last_s", [0.9; 4]),
                column("proxy_wan_rtt_s", [0.02, f64::NAN, 0.02, 0.02]),
                column("proxy_ran_rtt_s", [0.03, 0.05, 0.05, 0.06]),
            ],
        };
        (run.measured_from, run.end) = (Time::ZERO, Time::from_secs(3));
        let value = |rtts: &str, text: &str| {
            let mut cells = Cells::default();
            let places: Values = [("rtts".to_owned(), rtts.to_owned())].into_iter().collect();
            cells.enter("x", "1", Ok(Cell::new(places, run.clone())));
            figure(text).of(&["x".to_owned()], &cells).unwrap().value
        };
        for (text, with_the_wait, sockets) in [
            ("figure = 'rtt_mean'", 0.9, 0.07),
            ("figure = 'rtt_p90'\nwhile_all = true", 0.9, 0.08),
            ("figure = 'rtt_p50'\nwhile_all = true", 0.9, 0.07),
        ] {
            assert_eq!(value("", text), with_the_wait, "{text}");
            assert!((value("sockets", text) - sockets).abs() < 1e-12, "{text}");
        }
        assert!((value("sockets", "figure = 'rtt_p90'") - 0.08).abs() < 1e-12);
    }

    #[test]
    fn what_rises_while_the_other_falls_is_correlated_by_minus_1() {
        assert!((correlation(&[1.0, 2.0, 3.0, f64::NAN], &[6.0, 4.0, 2.0, 9.0]) + 1.0).abs() < 1e-12);
        assert!((correlation(&[1.0, 2.0], &[5.0, 8.0]) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_ratio_whose_interval_has_1_in_it_claims_nothing() {
        let cells = cells(&[("x", [4, 4]), ("x", [12, 4])]);
        let measured =
            figure("figure = 'goodput'\nflow = 'a'\nto = { flow = 'b' }").of(&["x".to_owned()], &cells);
        let measured = measured.unwrap();
        assert_eq!(measured.value, 1.0);
        assert!(measured.text.ends_with("on both sides of 1"), "{}", measured.text);
    }
}
