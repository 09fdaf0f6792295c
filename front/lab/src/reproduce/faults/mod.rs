//! Measures what mechanisms at the edge gain and cost, and what they lose through radio information that is late, rare, wrong, false, or
//! stops. Ours: none of it is published.
//!
//! A **group** of flows contains those whose names are the group's, or begin with it followed by a blank or a dot. A **row** of
//! faults contains the points whose labels are the same up to " drop": the same fault with several seeds, each beside the run of
//! the plain transport with that seed. All shares are of sums over the seeds, so that variation between seeds weighs little.
//!
//! The rule for judging rows (issue 5): after its fallback time, a mechanism has at least [`ENOUGH`] of the goodput of its plain
//! transport, unless its p95 delay is at most [`HALVED`] of the plain one's. Delay is the time in the bottleneck plus that in a
//! proxy.
//!
//! If reports stop within a run (places `from`, and `until` if they resume), the run is judged in **parts**: before, without, and
//! with them again, each from the fallback time after its change on, and each by its own goodput and p95 delay relative to the
//! plain ones of the same seconds. Over the whole run the goodput of one part would be held against the delay of another. A part's
//! p95 delay is that of the series' rows (means over a sampling interval), weighted by what was delivered in them.

mod show;

use std::collections::BTreeMap;

use ranpace_sim::{FlowResult, RunResult};
use serde::Deserialize;

use super::measured::Measured;
use super::results::{Absent, PlayedRun, Results};
use crate::figure::{Figure, Flows, Scope, Values, Window, is_in_group};
use crate::figures::number;
use crate::stats;

/// Share of the plain transport's goodput that a mechanism must have.
const ENOUGH: f64 = 0.9;
/// Share of the plain transport's p95 delay that excuses a lower goodput.
const HALVED: f64 = 0.5;
/// Averaging time for how long goodput is too low: shorter means reflect single losses.
const MEAN_OVER_S: f64 = 1.0;

/// A mechanism under faults of its radio information, beside its plain transport.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Faults {
    /// The scheme of the plain transport; it has a point for each drop.
    pub plain: String,
    /// The flows that are compared.
    flows: String,
    /// The mechanism's stated fallback time in seconds.
    fallback_s: f64,
    /// The fallback time is this many periods of the feed, if that is longer.
    #[serde(default)]
    periods: f64,
    /// Groups of points; all points if there are none.
    #[serde(default)]
    at: Vec<String>,
    /// Goodput must suffice whatever the delay.
    #[serde(default)]
    goodput_alone: bool,
}

/// A row: one fault, over all drops.
#[derive(Clone, Debug)]
struct Fault {
    label: String,
    /// Values of its first run: `delay`, `period` and `error` among them.
    places: Values,
    /// Goodput, mean over the drops, in bit/s.
    goodput: f64,
    /// The same relative to the plain transport.
    ratio: f64,
    /// The same after the fallback time.
    after: f64,
    /// p95 delay, mean over the drops, in seconds.
    delay: f64,
    /// The same relative to the plain transport.
    delay_ratio: f64,
    /// Longest time in which goodput is too low, in seconds.
    longest: f64,
    /// The parts that are judged if reports stop; empty otherwise.
    parts: Vec<Part>,
    /// A small delay is not an excuse.
    goodput_alone: bool,
}

/// A part of the runs of a fault: before reports stop, without them, with them again.
#[derive(Clone, Debug)]
struct Part {
    label: String,
    /// Goodput relative to the plain transport.
    ratio: f64,
    /// p95 delay in seconds, and relative to the plain transport.
    delay: f64,
    delay_ratio: f64,
}

/// Returns whether a goodput and a delay, relative to the plain ones, satisfy the rule. NaN does not.
fn keeps(goodput: f64, delay: f64) -> bool {
    goodput >= ENOUGH || delay <= HALVED
}

impl Part {
    fn breaks(&self) -> bool {
        !keeps(self.ratio, self.delay_ratio)
    }
}

impl Fault {
    fn breaks(&self) -> bool {
        if self.parts.is_empty() {
            let delay = if self.goodput_alone { f64::NAN } else { self.delay_ratio };
            return !keeps(self.after, delay);
        }
        self.parts.iter().any(Part::breaks)
    }

    /// The judged items: labels with goodput and p95 delay relative to the plain ones.
    fn judged(&self) -> Vec<(String, f64, f64)> {
        if self.parts.is_empty() {
            return vec![(self.label.clone(), self.after, self.delay_ratio)];
        }
        let of = |part: &Part| (format!("{}, {}", self.label, part.label), part.ratio, part.delay_ratio);
        self.parts.iter().map(of).collect()
    }
}

/// Returns whether a point is in one of these groups: the first word of its label.
fn is_at(point: &str, groups: &[String]) -> bool {
    let word = point.split(' ').next().unwrap_or(point);
    groups.is_empty() || groups.iter().any(|group| group == word)
}

/// Cumulative deliveries of a group's flows at each row of their series: the times, and the sum in bytes.
fn delivered(run: &RunResult, group: &str) -> Result<(Vec<f64>, Vec<f64>), Absent> {
    let nothing = || Absent::Nothing(format!("a run has no series of {group}"));
    let mut all: Option<(Vec<f64>, Vec<f64>)> = None;
    for flow in run.flows.iter().filter(|flow| is_in_group(flow, group)) {
        let times = flow.series.get("time_s").ok_or_else(nothing)?;
        let bytes = flow.series.get("delivered_bytes").ok_or_else(nothing)?;
        let (_, sum) = all.get_or_insert_with(|| (times.to_vec(), vec![0.0; times.len()]));
        for (sum, bytes) in sum.iter_mut().zip(bytes) {
            *sum += if bytes.is_finite() { *bytes } else { 0.0 };
        }
    }
    all.ok_or_else(nothing)
}

/// A cumulative sum at a time: that of the last row up to it.
fn at(times: &[f64], sum: &[f64], time: f64) -> f64 {
    let rows = times.partition_point(|row| *row <= time + 1e-9);
    rows.checked_sub(1).and_then(|row| sum.get(row)).copied().unwrap_or(0.0)
}

/// The value below which 95 % of the weight lies; NaN without any.
fn p95(mut weighted: Vec<(f64, f64)>) -> f64 {
    weighted.retain(|(value, weight)| value.is_finite() && *weight > 0.0);
    weighted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut left = 0.95 * weighted.iter().map(|(_, weight)| weight).sum::<f64>();
    for (value, weight) in &weighted {
        left -= weight;
        if left <= 0.0 {
            return *value;
        }
    }
    weighted.last().map_or(f64::NAN, |(value, _)| *value)
}

/// p95 delay of a group between two times: for each flow over the rows of its series, and over the flows weighted by what they
/// delivered.
fn delay_between(run: &RunResult, group: &str, from: f64, to: f64) -> f64 {
    let of = |flow: &FlowResult| {
        let column = |name: &str| flow.series.get(name).unwrap_or(&[]);
        let proxy = column("proxy_delay_s");
        let (mut rows, mut before) = (Vec::new(), 0.0);
        let own = column("time_s").iter().zip(column("delivered_bytes")).zip(column("queueing_delay_mean_s"));
        for (row, ((time, bytes), delay)) in own.enumerate() {
            let bytes = if bytes.is_finite() { *bytes } else { before };
            if *time > from + 1e-9 && *time <= to + 1e-9 {
                let proxy = proxy.get(row).copied().filter(|delay| delay.is_finite()).unwrap_or(0.0);
                rows.push((delay + proxy, bytes - before));
            }
            before = bytes;
        }
        let weight: f64 = rows.iter().map(|(_, bytes)| bytes).sum();
        (p95(rows), weight)
    };
    let flows =
        run.flows.iter().filter(|flow| is_in_group(flow, group)).map(of).filter(|(_, weight)| *weight > 0.0);
    stats::weighted_mean(flows).unwrap_or(f64::NAN)
}

/// The judged time ranges if reports stop at `stop` and resume at `again` (zero: they do not), each from the fallback time after
/// its beginning on.
fn parts(stop: f64, again: f64, end: f64, fallback: f64) -> Vec<(String, f64, f64)> {
    if stop <= 0.0 {
        return Vec::new();
    }
    let again = if again > stop { again } else { end };
    let all = [
        (format!("until {stop} s"), 0.0, stop),
        (format!("{stop} to {again} s"), stop, again),
        (format!("from {again} s on"), again, end),
    ];
    let mut all: Vec<_> = all.into_iter().map(|(label, from, to)| (label, from + fallback, to)).collect();
    all.retain(|(_, from, to)| from < to);
    all
}

/// The longest time, from `from` on, in which the mean over [`MEAN_OVER_S`] is always below [`ENOUGH`] of the plain one.
fn longest(times: &[f64], own: &[f64], plain: &[f64], from: f64) -> f64 {
    let (mut begun, mut longest): (Option<f64>, f64) = (None, 0.0);
    let mut before = from + MEAN_OVER_S;
    for time in times.iter().copied().filter(|time| *time >= from + MEAN_OVER_S) {
        let of = |sum: &[f64]| at(times, sum, time) - at(times, sum, time - MEAN_OVER_S);
        if of(own) < ENOUGH * of(plain) {
            let since = *begun.get_or_insert(before);
            longest = longest.max(time - since);
        } else {
            begun = None;
        }
        before = time;
    }
    longest
}

impl Faults {
    fn rows(&self, scheme: &str, results: &Results) -> Result<Vec<Fault>, Absent> {
        let mut plain: BTreeMap<String, &PlayedRun> = BTreeMap::new();
        for (_, run) in results.of(&self.plain)? {
            plain.insert(run.places.get("drop").cloned().unwrap_or_default(), run);
        }
        let mut rows: Vec<(String, Vec<(&PlayedRun, &PlayedRun)>)> = Vec::new();
        for (point, run) in results.of(scheme)? {
            if !is_at(point, &self.at) {
                continue;
            }
            let drop = run.places.get("drop").cloned().unwrap_or_default();
            let Some(other) = plain.get(&drop).copied() else {
                return Err(Absent::Nothing(format!("{} is not played in drop {drop}", self.plain)));
            };
            let label = point.split(" drop ").next().unwrap_or(point).to_owned();
            match rows.iter_mut().find(|(own, _)| *own == label) {
                Some((_, pairs)) => pairs.push((run, other)),
                None => rows.push((label, vec![(run, other)])),
            }
        }
        rows.into_iter().map(|(label, pairs)| self.row(label, &pairs)).collect()
    }

    fn row(&self, label: String, pairs: &[(&PlayedRun, &PlayedRun)]) -> Result<Fault, Absent> {
        let nothing = || Absent::Nothing("there are no such runs".to_owned());
        let (first, _) = pairs.first().ok_or_else(nothing)?;
        let place = |name: &str| first.number(name).unwrap_or(0.0);
        let from = place("from");
        // If reports are dropped, the remaining ones have a longer period.
        let period = place("period") * place("every").max(1.0);
        let fallback = self.fallback_s.max(self.periods * period);
        let (mut own, mut plain, mut times) = (Vec::new(), Vec::new(), Vec::new());
        let (mut delays, mut plain_delays) = (Vec::new(), Vec::new());
        let add = |sum: &mut Vec<f64>, bytes: Vec<f64>| {
            sum.resize(bytes.len(), 0.0);
            sum.iter_mut().zip(bytes).for_each(|(sum, bytes)| *sum += bytes);
        };
        let wait_p95 = Figure::named("wait_p95").ok_or_else(nothing)?;
        let group = Flows::Group(self.flows.clone());
        for (run, other) in pairs {
            let (rows, bytes) = delivered(&run.result, &self.flows)?;
            times = rows;
            add(&mut own, bytes);
            add(&mut plain, delivered(&other.result, &self.flows)?.1);
            let delay = |run: &PlayedRun| {
                wait_p95.single(&Scope::new(&run.result, &run.places, &group, Window::default()))
            };
            delays.push(delay(run));
            plain_delays.push(delay(other));
        }
        let end = times.last().copied().unwrap_or(0.0);
        let since = |sum: &[f64], from: f64| at(&times, sum, end) - at(&times, sum, from);
        let mean = |values: &[f64]| stats::mean(values).unwrap_or(f64::NAN);
        let part = |(label, from, to): (String, f64, f64)| {
            let between = |sum: &[f64]| at(&times, sum, to) - at(&times, sum, from);
            let delay = |run: &PlayedRun| delay_between(&run.result, &self.flows, from, to);
            let (own_delays, plain_delays): (Vec<f64>, Vec<f64>) =
                pairs.iter().map(|(run, other)| (delay(run), delay(other))).unzip();
            let (delay, plain_delay) = (mean(&own_delays), mean(&plain_delays));
            Part { label, ratio: between(&own) / between(&plain), delay, delay_ratio: delay / plain_delay }
        };
        Ok(Fault {
            label,
            places: first.places.clone(),
            goodput: 8.0 * since(&own, 0.0) / end / pairs.len() as f64,
            ratio: since(&own, 0.0) / since(&plain, 0.0),
            after: since(&own, from + fallback) / since(&plain, from + fallback),
            delay: mean(&delays),
            delay_ratio: mean(&delays) / mean(&plain_delays),
            longest: longest(&times, &own, &plain, from),
            goodput_alone: self.goodput_alone,
            parts: parts(from, place("until"), end, fallback).into_iter().map(part).collect(),
        })
    }

    /// Number of rows in which a scheme violates the rule.
    pub fn broken(&self, of: &[String], results: &Results) -> Result<Measured, Absent> {
        let mut rows = Vec::new();
        for scheme in of {
            rows.extend(self.rows(scheme, results)?);
        }
        let judged = rows.iter().flat_map(Fault::judged);
        let Some((label, goodput, delay)) = judged.min_by(|a, b| a.1.total_cmp(&b.1)) else {
            return Err(Absent::Nothing("there are no such runs".to_owned()));
        };
        let broken: Vec<&Fault> = rows.iter().filter(|row| row.breaks()).collect();
        let named: Vec<&str> = broken.iter().map(|row| row.label.as_str()).take(3).collect();
        let names = match (broken.len(), named.is_empty()) {
            (_, true) => String::new(),
            (count, false) if count > named.len() => format!(" ({}, ...)", named.join("; ")),
            _ => format!(" ({})", named.join("; ")),
        };
        let text = format!(
            "{} of {}{names}; least goodput {} with {} of the delay ({})",
            broken.len(),
            rows.len(),
            number(goodput),
            number(delay),
            label
        );
        Ok(Measured { value: broken.len() as f64, text })
    }
}

#[cfg(test)]
mod tests;
