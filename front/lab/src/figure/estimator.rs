//! Figures of the receiver's bandwidth estimate (Zhong 2020, chapter 6), from the series. Windows and tolerances are ours where the
//! thesis shows curves.
//!
//! On a wired path the bottleneck changes at the places `times` (s) to the places `rates` (Mbit/s); payload is `payload` of
//! `packet` bytes, and the estimator's window is `window`. In a cell the estimate is compared with the arrivals.

use ranpace_sim::FlowResult;

use super::scope::Scope;
use super::series::{between, column, correlation, row_count, trailing};
use super::tracking::estimate;
use super::{Entry, each, needs};
use crate::figures::Quantity::{Plain, Rate, Share};
use crate::stats;

pub(super) const FIGURES: &[Entry] = &[
    needs(
        "settle_after_rise",
        Plain,
        "Longest time until the estimate stays within 5 % of the payload's rate after a rise, in estimator's windows (Fig. 6.3).",
        |scope| settle(scope, true),
    ),
    needs("settle_after_fall", Plain, "The same as `settle_after_rise`, after a fall.", |scope| {
        settle(scope, false)
    }),
    needs(
        "estimate_error",
        Plain,
        "Mean relative distance of the estimate from the payload's rate outside 1 s after steps.",
        |scope| {
            let each = errors(scope, 1.0)?;
            let all: Vec<f64> = each.into_iter().flat_map(|(_, errors)| errors).map(f64::abs).collect();
            stats::mean(&all).ok_or_else(|| missing("estimate"))
        },
    ),
    each(
        "estimate_bias",
        Share,
        "Mean relative error of the estimate from 2 s after a step on, for each rate of the place `biases`.",
        |scope| biases(scope)?.iter().map(|(rate, _)| bias(scope, *rate)).collect(),
    ),
    each(
        "estimate_bias_error",
        Share,
        "Distance of `estimate_bias` from the expected one, for each entry \"rate:bias\" of the place `biases`.",
        |scope| {
            let distance = |(rate, expected): &(f64, f64)| Ok((bias(scope, *rate)? - expected).abs());
            biases(scope)?.iter().map(distance).collect()
        },
    ),
    each("estimate_bias_rate", Plain, "The rates of the place `biases`, in Mbit/s.", |scope| {
        Ok(biases(scope)?.into_iter().map(|(rate, _)| rate).collect())
    }),
    each(
        "estimate_correlation",
        Plain,
        "Correlation, for each flow, of the estimate with the payload that arrived in the last 100 ms (Fig. 6.4).",
        |scope| of_flows(scope, |scope, flow| correlated(scope, flow, 0.0)),
    ),
    each(
        "estimate_correlation_lagged",
        Plain,
        "The same as `estimate_correlation`, at the best lag up to 300 ms.",
        |scope| of_flows(scope, |scope, flow| correlated(scope, flow, 0.3)),
    ),
    each(
        "estimate_deviation",
        Plain,
        "Mean error of the estimate, for each flow, relative to the mean rate that arrived.",
        |scope| {
            of_flows(scope, |scope, flow| {
                let pairs = reported(scope, flow)?;
                ratio_of_means(pairs.into_iter().map(|(own, rate)| ((own - rate).abs(), rate)))
            })
        },
    ),
    each(
        "estimate_mean_error",
        Plain,
        "Distance from 1, for each flow, of the mean estimate over the mean rate that arrived: errors of either sign cancel.",
        |scope| {
            of_flows(scope, |scope, flow| {
                Ok((ratio_of_means(reported(scope, flow)?.into_iter())? - 1.0).abs())
            })
        },
    ),
    each("estimate_mean", Rate, "Mean estimate, for each flow.", |scope| {
        let mean = |flow| {
            let own: Vec<f64> = reported(scope, flow)?.iter().map(|pair| pair.0).collect();
            stats::mean(&own).ok_or_else(|| missing("estimate"))
        };
        scope.run.flows.iter().map(mean).collect()
    }),
];

fn missing(what: &str) -> String {
    format!("the run has no {what}")
}

/// A figure of each flow that delivered anything.
pub(super) fn of_flows(
    scope: &Scope<'_>,
    of: impl Fn(&Scope<'_>, &FlowResult) -> Result<f64, String>,
) -> Result<Vec<f64>, String> {
    scope.run.flows.iter().filter(|flow| flow.delivered.get() > 0).map(|flow| of(scope, flow)).collect()
}

/// A step of the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    begin: f64,
    end: f64,
    /// Payload's share of the bottleneck, in bit/s.
    rate: f64,
    /// The estimate of the previous step.
    before: Option<f64>,
}

/// Payload's share of a packet.
fn payload_share(scope: &Scope<'_>) -> Result<f64, String> {
    Ok(scope.place("payload")? / scope.place("packet")?)
}

fn steps(scope: &Scope<'_>) -> Result<Vec<Step>, String> {
    let list = |place: &str| -> Result<Vec<f64>, String> {
        let text = scope.places.get(place).ok_or_else(|| missing(place))?;
        text.split(' ').map(|word| word.parse().map_err(|_| missing(place))).collect()
    };
    let (rates, times, end) = (list("rates")?, list("times")?, scope.place("duration")?);
    let share = payload_share(scope)?;
    let rate = |index: usize| rates.get(index).map(|rate| rate * 1e6 * share);
    let step = |(index, begin): (usize, &f64)| {
        let end = times.get(index + 1).copied().unwrap_or(end);
        let before = index.checked_sub(1).and_then(rate);
        Some(Step { begin: *begin, end, rate: rate(index)?, before })
    };
    times.iter().enumerate().map(step).collect::<Option<Vec<_>>>().ok_or_else(|| missing("rates"))
}

/// Longest time from a change of the bottleneck (at the link, 40 ms before the receiver can notice it).
fn settle(scope: &Scope<'_>, rise: bool) -> Result<f64, String> {
    const NEAR: f64 = 0.05;
    let flow = scope.first()?;
    let time = column(flow, "time_s")?;
    let own = estimate(flow).ok_or_else(|| missing("estimate"))?;
    let mut longest = f64::NEG_INFINITY;
    for step in steps(scope)? {
        if step.before.is_none_or(|before| (before < step.rate) != rise) {
            continue;
        }
        let rows = between(time, step.begin, step.end);
        let near = |row: &usize| (own[*row] / step.rate - 1.0).abs() <= NEAR;
        let last_far = rows.clone().rev().find(|row| !near(row));
        let settled = last_far.map_or(0.0, |row| time.get(row + 1).copied().unwrap_or(step.end) - step.begin);
        longest = longest.max(settled);
    }
    Ok(longest / scope.place("window")?)
}

/// Estimates over the payload's rate, less one, in the rows that begin at least this long after a step.
fn errors(scope: &Scope<'_>, after: f64) -> Result<Vec<(Step, Vec<f64>)>, String> {
    let flow = scope.first()?;
    let time = column(flow, "time_s")?;
    let own = estimate(flow).ok_or_else(|| missing("estimate"))?;
    let of = |step: Step| {
        let rows = between(time, step.begin + after, step.end);
        (step, rows.map(|row| own[row] / step.rate - 1.0).collect())
    };
    Ok(steps(scope)?.into_iter().map(of).collect())
}

/// Rates in Mbit/s with the bias that is expected at each.
fn biases(scope: &Scope<'_>) -> Result<Vec<(f64, f64)>, String> {
    let text = scope.places.get("biases").ok_or_else(|| missing("biases"))?;
    let entry = |entry: &str| {
        let (rate, expected) = entry.split_once(':')?;
        rate.parse().ok().zip(expected.parse().ok())
    };
    text.split(' ').map(|word| entry(word).ok_or_else(|| missing("bias"))).collect()
}

/// Steady: from 2 s after a step to this rate (in Mbit/s) on.
fn bias(scope: &Scope<'_>, rate: f64) -> Result<f64, String> {
    let share = payload_share(scope)?;
    let own: Vec<f64> = errors(scope, 2.0)?
        .into_iter()
        .filter(|(step, _)| (step.rate / share / 1e6 - rate).abs() < 1e-6)
        .flat_map(|(_, errors)| errors)
        .collect();
    stats::mean(&own).ok_or_else(|| missing("estimate"))
}

/// The estimate, and the rate of payload arrivals over the last 100 ms, from 2 s after the flow's first data on.
fn reported(scope: &Scope<'_>, flow: &FlowResult) -> Result<Vec<(f64, f64)>, String> {
    const SMOOTH_S: f64 = 0.1;
    const SETTLE_S: f64 = 2.0;
    let time = column(flow, "time_s")?;
    let own = estimate(flow).ok_or_else(|| missing("estimate"))?;
    let smooth =
        trailing(column(flow, "goodput_bit_s")?, row_count(time, SMOOTH_S).ok_or_else(|| missing("rows"))?);
    let begin = flow.totals.first_sent.ok_or_else(|| missing("data"))?.as_secs_f64() + SETTLE_S;
    let rows = between(time, begin, scope.run.end.as_secs_f64());
    Ok(rows.map(|row| (own[row], smooth[row])).filter(|pair| pair.0.is_finite()).collect())
}

fn correlated(scope: &Scope<'_>, flow: &FlowResult, most_lag_s: f64) -> Result<f64, String> {
    let pairs = reported(scope, flow)?;
    let time = column(flow, "time_s")?;
    let most = if most_lag_s > 0.0 { row_count(time, most_lag_s).unwrap_or(0) } else { 0 };
    (0..=most)
        .filter_map(|lag| {
            let shifted = pairs.iter().skip(lag).zip(&pairs);
            correlation(&shifted.map(|(own, before)| (own.0, before.1)).collect::<Vec<_>>())
        })
        .max_by(f64::total_cmp)
        .ok_or_else(|| missing("estimate"))
}

fn ratio_of_means(pairs: impl Iterator<Item = (f64, f64)>) -> Result<f64, String> {
    let (above, below): (Vec<f64>, Vec<f64>) = pairs.unzip();
    let of = |values: &[f64]| stats::mean(values).ok_or_else(|| missing("estimate"));
    stats::ratio(of(&above)?, of(&below)?).ok_or_else(|| missing("rate"))
}

#[cfg(test)]
#[path = "estimator_tests.rs"]
mod tests;
