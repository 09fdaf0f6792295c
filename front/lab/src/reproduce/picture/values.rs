//! The numbers of a picture: the values of its series in the runs, with intervals.

use ranpace_sim::{Distribution, FlowResult, RunResult, Series};

use super::super::experiment::{Experiment, Values};
use super::super::picture_spec::{PictureSpec, Samples, SeriesSpec, Show, criterion, scheme};
use super::super::results::{PlayedRun, Results};
use crate::figure::{Flows, Scope, Window, of_group};
use crate::report::extract::{self, Points};
use crate::stats;

/// A value with the ends of its 95 % interval, and its number of runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value {
    /// The mean; NaN if there is none.
    pub mean: f64,
    /// The ends of its interval; `None` if nothing varies.
    pub ends: Option<(f64, f64)>,
    /// The runs.
    pub runs: usize,
}

impl Value {
    /// None.
    pub const NONE: Self = Self { mean: f64::NAN, ends: None, runs: 0 };

    /// Summary of several runs. If all agree, except for rounding, there is no interval.
    pub fn of(values: &[f64], intervals: bool) -> Self {
        let estimate = stats::estimate(values.iter().copied());
        let half = estimate.ci95.filter(|half| intervals && *half > 1e-9 * estimate.mean.abs());
        let ends = half.map(|half| (estimate.mean - half, estimate.mean + half));
        Self { mean: estimate.mean, ends, runs: estimate.count }
    }
}

/// The runs of "scheme" or "scheme@group" whose places have these values.
pub fn runs<'a>(results: &'a Results, name: &str, only: &Values) -> Vec<&'a PlayedRun> {
    let (scheme, group) = name.split_once('@').unwrap_or((name, ""));
    let points = results.group(scheme, group);
    let found = points.into_iter().filter_map(|point| results.at(scheme, point).ok());
    found.filter(|run| only.iter().all(|(place, value)| run.places.get(place) == Some(value))).collect()
}

/// One value for each group of bars.
pub fn of_groups(
    experiment: &Experiment,
    spec: &PictureSpec,
    series: &SeriesSpec,
    results: &Results,
) -> Vec<Value> {
    let show = series.show.or(&spec.show);
    let measured = series.of.0.iter().map(|name| Value::of(&of_runs(results, name, &show), spec.intervals));
    let judged = series.criteria.iter().map(|name| of_criterion(experiment, name, results));
    measured.chain(judged).collect()
}

/// Counts how many of a figure's values, over all runs, are 1, 2, ...: one count for each group, the last one with all larger values.
pub fn counts(spec: &PictureSpec, series: &SeriesSpec, results: &Results) -> Vec<Value> {
    let show = series.show.or(&spec.show);
    let runs: Vec<&PlayedRun> = series.of.0.iter().flat_map(|name| runs(results, name, &show.only)).collect();
    let mut counts = vec![0.0; spec.x.names.len()];
    for run in &runs {
        let scope = Scope::new(&run.result, &run.places, &Flows::All, Window::default());
        let values = show.metric.and_then(|metric| metric.values(&scope).ok());
        for value in values.into_iter().flatten() {
            let group = (value as usize).clamp(1, counts.len()) - 1; // a histogram has groups
            counts[group] += 1.0;
        }
    }
    counts.into_iter().map(|mean| Value { mean, ends: None, runs: runs.len() }).collect()
}

/// A criterion's measured value, with its interval.
fn of_criterion(experiment: &Experiment, name: &str, results: &Results) -> Value {
    let (id, part) = criterion(name);
    let found = experiment.criteria.iter().find(|criterion| criterion.id == id);
    let parts = found.and_then(|found| Some(found.measure.as_ref()?.find(results).ok()?.1));
    parts.and_then(|parts| parts.get(part).cloned()).map_or(Value::NONE, |part| {
        let ends = part.interval.filter(|(low, high)| low < high);
        Value { mean: part.value, ends, runs: 1 }
    })
}

/// The value of each run, or of each flow of each run.
pub fn of_runs(results: &Results, name: &str, show: &Show) -> Vec<f64> {
    let own: Vec<f64> =
        runs(results, name, &show.only).into_iter().flat_map(|run| of_cell(run, show)).collect();
    let less = show.less.unwrap_or(0.0);
    let Some(to) = &show.to else { return own.into_iter().map(|own| own - less).collect() };
    let group = name.split_once('@').map_or("", |(_, group)| group);
    let others = runs(results, &format!("{to}@{group}"), &show.only);
    let mut below: Vec<f64> =
        others.into_iter().flat_map(|run| of_cell(run, &as_divisor(run, show))).collect();
    if below.len() != own.len() {
        below = vec![stats::mean(&below).unwrap_or(f64::NAN); own.len()];
    }
    own.into_iter().zip(below).map(|(own, below)| own / below - less).collect()
}

/// The divisor: all flows if the other scheme has none of these, such as a flow alone.
fn as_divisor(run: &PlayedRun, show: &Show) -> Show {
    let has = |flows: &String| !of_group(&run.result, flows).flows.is_empty();
    Show { flows: show.flows.clone().filter(has), ..show.clone() }
}

fn of_cell(run: &PlayedRun, show: &Show) -> Vec<f64> {
    let per = show.per.unwrap_or(1.0);
    let values = match (&show.flows, show.each_flow) {
        (None, None | Some(false)) => vec![match show.metric {
            Some(metric) => run.get(metric),
            None => of_run(&run.result, show),
        }],
        (flows, each) => {
            let chosen =
                flows.as_ref().map_or_else(|| run.result.clone(), |name| of_group(&run.result, name));
            if each == Some(true) {
                flows_apart(&chosen).iter().map(|run| of_run(run, show)).collect()
            } else {
                vec![of_run(&chosen, show)]
            }
        }
    };
    values.into_iter().map(|value| value / per).collect()
}

/// The same run split into one per flow, without plain sources.
fn flows_apart(run: &RunResult) -> Vec<RunResult> {
    let flows = extract::flows(run).into_iter().cloned();
    flows.map(|flow| RunResult { flows: vec![flow], ..run.clone() }).collect()
}

fn of_run(run: &RunResult, show: &Show) -> f64 {
    match (show.metric, show.samples) {
        (Some(metric), _) => metric.of(run),
        (None, Some(samples)) => match (show.percentile, samples) {
            (Some(percentile), _) => quantile(&samples.function([run]), percentile / 100.0),
            (None, Samples::SocketRtt) => {
                mean_of_sockets(run).unwrap_or_else(|| mean_of(&Samples::Rtt.function([run])))
            }
            (None, _) => mean_of(&samples.function([run])),
        },
        (None, None) => f64::NAN,
    }
}

impl Samples {
    /// The distribution function over several runs.
    fn function<'a>(self, runs: impl IntoIterator<Item = &'a RunResult>) -> Points {
        let flows: Vec<&FlowResult> = runs.into_iter().flat_map(extract::flows).collect();
        let of: fn(&FlowResult) -> &Distribution = match self {
            Self::SocketRtt if flows.iter().any(|flow| flow.split.is_some()) => {
                return function(flows.into_iter().flat_map(of_both_sockets).collect());
            }
            Self::Rtt | Self::SocketRtt => |flow| &flow.rtt,
            Self::QueueingDelay => |flow| &flow.queueing_delay,
            Self::Transfers => {
                let transfers = flows.iter().flat_map(|flow| &flow.transfers);
                return function(transfers.filter_map(|own| Some(own.completion?.as_secs_f64())).collect());
            }
        };
        extract::cdf(flows.into_iter().map(of))
    }
}

/// The sum of both connections' RTTs of a split flow, for each row of its series with arrivals.
fn of_both_sockets(flow: &FlowResult) -> Vec<f64> {
    let column = |name: &str| flow.series.get(name).unwrap_or_default().iter().copied();
    let both = column("proxy_wan_rtt_s").zip(column("proxy_ran_rtt_s")).map(|(wan, ran)| wan + ran);
    both.zip(column("goodput_bit_s")).filter(|(_, rate)| *rate > 0.0).map(|(rtt, _)| rtt).collect()
}

/// The mean of the sum of both connections' RTTs, over the split flows; `None` if there are none.
fn mean_of_sockets(run: &RunResult) -> Option<f64> {
    let splits = run.flows.iter().filter_map(|flow| flow.split.as_ref());
    let means = splits.map(|split| (split.wan_rtt.mean + split.ran_rtt.mean).as_secs_f64());
    stats::mean(&means.collect::<Vec<f64>>())
}

/// The distribution function of these values.
fn function(mut values: Vec<f64>) -> Points {
    values.retain(|value| value.is_finite());
    values.sort_by(f64::total_cmp);
    let count = values.len() as f64;
    let first = values.first().map(|first| (*first, 0.0));
    let steps = values.iter().enumerate().map(|(index, value)| (*value, (index + 1) as f64 / count));
    first.into_iter().chain(steps).collect()
}

/// The distribution function over all runs of a series: of its samples, or of the runs' figures.
pub fn distribution(results: &Results, name: &str, show: &Show) -> Points {
    let per = show.per.unwrap_or(1.0);
    match (show.metric, show.samples) {
        (None, Some(samples)) => {
            let chosen = runs(results, name, &show.only).into_iter().map(|run| match &show.flows {
                Some(flows) => of_group(&run.result, flows),
                None => run.result.clone(),
            });
            let chosen: Vec<RunResult> = chosen.collect();
            samples.function(&chosen).into_iter().map(|(value, share)| (value / per, share)).collect()
        }
        _ => function(of_runs(results, name, show)),
    }
}

/// The smallest value with at least this share of values at or below it; NaN without values.
pub fn quantile(function: &[(f64, f64)], share: f64) -> f64 {
    let found = function.iter().find(|point| point.1 >= share - 1e-9 && point.1 > 0.0);
    found.map_or(f64::NAN, |point| point.0)
}

fn mean_of(function: &[(f64, f64)]) -> f64 {
    let steps = function.windows(2).map(|pair| (pair[1].0, pair[1].1 - pair[0].1));
    stats::weighted_mean(steps).unwrap_or(f64::NAN)
}

/// A value for each value of a place, in increasing order; a single one at NaN for a scheme that does not have it.
pub fn over_place(
    results: &Results,
    name: &str,
    place: &str,
    show: &Show,
    intervals: bool,
) -> Vec<(f64, Value)> {
    let mut points: Vec<(f64, Vec<f64>)> = Vec::new();
    let below = |run: &PlayedRun| {
        let to = show.to.as_ref()?;
        let same = runs(results, to, &show.only).into_iter().find(|other| same_point(run, other))?;
        of_cell(same, &as_divisor(same, show)).first().copied()
    };
    for run in runs(results, name, &show.only) {
        let at = run.number(place).unwrap_or(f64::NAN);
        let divisor = if show.to.is_some() { below(run).unwrap_or(f64::NAN) } else { 1.0 };
        let values = of_cell(run, show).into_iter().map(|value| value / divisor - show.less.unwrap_or(0.0));
        let same = |known: &f64| *known == at || (known.is_nan() && at.is_nan());
        match points.iter_mut().find(|(known, _)| same(known)) {
            Some((_, own)) => own.extend(values),
            None => points.push((at, values.collect())),
        }
    }
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points.into_iter().map(|(at, values)| (at, Value::of(&values, intervals))).collect()
}

/// Returns whether two runs differ in nothing but their schemes' own values.
fn same_point(one: &PlayedRun, other: &PlayedRun) -> bool {
    let drop = |run: &PlayedRun, place: &str| run.places.get(place).cloned();
    one.result.seed == other.result.seed
        && ["drop", "seed", "label", "rtt", "size"].iter().all(|place| drop(one, place) == drop(other, place))
}

/// A column over the time of the first run of a series: the sum over its flows, or a line for each, with its name.
pub fn over_time(results: &Results, name: &str, show: &Show) -> Vec<(String, Points)> {
    let Some(run) = runs(results, name, &show.only).first().copied() else { return Vec::new() };
    let Some(column) = &show.column else { return Vec::new() };
    let of = |series: &Series| {
        let mut points = extract::column(series, column);
        points.iter_mut().for_each(|point| point.1 /= show.per.unwrap_or(1.0));
        show.smooth.map_or_else(|| points.clone(), |window| smoothed(&points, window))
    };
    if let Some(link) = &show.link {
        let found = run.result.links.iter().filter(|own| own.name == *link);
        return found.map(|own| (own.name.clone(), of(&own.series))).collect();
    }
    if let Some(user) = &show.user {
        let found = run.result.users.iter().filter(|own| own.name == *user);
        return found.map(|own| (own.name.clone(), of(&own.series))).collect();
    }
    let chosen = show.flows.as_ref().map_or_else(|| run.result.clone(), |flows| of_group(&run.result, flows));
    let lines = extract::flows(&chosen).into_iter().map(|flow| (flow.name.clone(), of(&flow.series)));
    let lines: Vec<(String, Points)> = lines.collect();
    if show.each_flow == Some(true) || lines.len() < 2 {
        return lines;
    }
    // Times are not summed.
    let is_time = column.ends_with("_s") && !column.ends_with("bit_s");
    vec![(scheme(name).to_owned(), together(&lines, is_time))]
}

/// The sum, or the mean, of lines with the same times.
fn together(lines: &[(String, Points)], mean: bool) -> Points {
    let rows = lines.iter().map(|(_, points)| points.len()).min().unwrap_or(0);
    let row = |row: usize| {
        let values = lines.iter().map(|(_, points)| points[row].1).filter(|value| value.is_finite());
        let values: Vec<f64> = values.collect();
        let sum =
            stats::mean(&values).map_or(f64::NAN, |own| own * if mean { 1.0 } else { values.len() as f64 });
        (lines[0].1[row].0, sum)
    };
    (0..rows).map(row).collect()
}

/// Replaces each value by the mean over the time before it.
fn smoothed(points: &[(f64, f64)], window: f64) -> Points {
    let mut from = 0;
    let mean = |to: usize| {
        while points[from].0 <= points[to].0 - window + 1e-9 {
            from += 1;
        }
        let known: Vec<f64> = points[from..=to].iter().map(|own| own.1).filter(|y| y.is_finite()).collect();
        (points[to].0, stats::mean(&known).unwrap_or(f64::NAN))
    };
    (0..points.len()).map(mean).collect()
}
