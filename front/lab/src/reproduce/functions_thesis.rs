//! Measurements of Zhong's thesis (004), chapters 4 to 6, that the common words do not say.
//!
//! Windows and tolerances are ours where the thesis shows curves; they were written down before the first runs.

use ranpace_sim::FlowResult;
use serde::Deserialize;

use super::cells::{Absent, Cell, Cells};
use super::measure::Measured;
use super::tracking::{bandwidth, correlation, estimate, rows, trailing};
use crate::figures::number;
use crate::stats;

/// The functions, by the name that experiments call them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThesisFunction {
    /// Largest relative distance of the reports' bytes on the first link back from 4 B a segment of 1400 B (section 5.6).
    ReportBytes,
    /// Share of all flows at the points "10MB ..." in which the first scheme sent less than the second (section 5.5.1).
    SentLess,
    /// Longest time until the receiver's estimate stays within 5 % of the payload's rate after a rise, in `W_l` (Fig. 6.3).
    SettleAfterRise,
    /// The same after a fall.
    SettleAfterFall,
    /// Mean relative distance of the estimate from the payload's rate outside 1 s after steps.
    EstimateError,
    /// Largest distance of the estimate's steady bias from the place `biases`, by rate.
    EstimateBias,
    /// Smallest correlation, over the users, of the estimate with the payload that arrived in the last 100 ms (Fig. 6.4).
    EstimateCorrelation,
    /// The same at the best lag up to 300 ms.
    EstimateCorrelationLagged,
    /// Largest mean error of the estimate, over the users, relative to the mean rate.
    EstimateDeviation,
    /// Largest distance from 1, over the users, of the mean estimate over the mean rate that arrived: errors of either sign
    /// cancel within a user.
    EstimateMeanError,
    /// Smallest ratio of a user's mean estimate to that of the next one farther away.
    EstimateOrder,
    /// Smallest mean growth of rBW in an RTT_min in STARTUP, over the flows (Fig. 6.6).
    StartupGrowth,
    /// Flows that visit NORMAL, GROW and DRAIN after STARTUP.
    StatesVisited,
    /// Share of the times in GROW that end after DSDL has risen.
    GrowEndsWithRise,
    /// Longest time with DSDL above 1.25 DSDL_min without a DRAIN, in RTT_min.
    LongestWithoutDrain,
    /// Seconds from the place `rise` until 95 % of the place `most` packets are in flight; to the place `until` at most.
    RecoveryTime,
    /// The same of the first scheme over that of the second.
    RecoveryRatio,
    /// Mean relative distance of the sequence trace's vertical gap from the bytes in flight (section 4.3).
    VerticalGap,
    /// Mean relative distance of its horizontal gap from the RTT.
    HorizontalGap,
}

/// Calls one.
pub fn call(function: ThesisFunction, of: &[String], cells: &Cells) -> Result<Measured, Absent> {
    use ThesisFunction as F;
    match function {
        F::ReportBytes => report_bytes(of, cells),
        F::SentLess => sent_less(of, cells),
        F::SettleAfterRise => worst(of, cells, "W_l", |cell| settle(cell, true)),
        F::SettleAfterFall => worst(of, cells, "W_l", |cell| settle(cell, false)),
        F::EstimateError => worst(of, cells, "", estimate_error),
        F::EstimateBias => estimate_bias(of, cells),
        F::EstimateCorrelation => users(of, cells, Worst::Least, |cell, flow| correlated(cell, flow, 0.0)),
        F::EstimateCorrelationLagged => {
            users(of, cells, Worst::Least, |cell, flow| correlated(cell, flow, 0.3))
        }
        F::EstimateDeviation => users(of, cells, Worst::Most, estimate_deviation),
        F::EstimateMeanError => users(of, cells, Worst::Most, estimate_mean_error),
        F::EstimateOrder => estimate_order(of, cells),
        F::StartupGrowth => users(of, cells, Worst::Least, startup_growth),
        F::StatesVisited => states_visited(of, cells),
        F::GrowEndsWithRise => grow_ends(of, cells),
        F::LongestWithoutDrain => users(of, cells, Worst::Most, without_drain),
        F::RecoveryTime => worst(of, cells, "s", recovery_time),
        F::RecoveryRatio => recovery_ratio(of, cells),
        F::VerticalGap => worst(of, cells, "", vertical_gap),
        F::HorizontalGap => worst(of, cells, "", horizontal_gap),
    }
}

fn missing(what: &str) -> Absent {
    Absent::Nothing(format!("the run has no {what}"))
}

fn column<'a>(flow: &'a FlowResult, name: &str) -> Result<&'a [f64], Absent> {
    flow.series.get(name).ok_or_else(|| missing(name))
}

fn first(cell: &Cell) -> Result<&FlowResult, Absent> {
    cell.run.flows.first().ok_or_else(|| missing("flow"))
}

/// All runs of these schemes.
fn all<'a>(of: &[String], cells: &'a Cells) -> Result<Vec<(String, &'a Cell)>, Absent> {
    let mut found = Vec::new();
    for scheme in of {
        for (point, cell) in cells.of(scheme, &[])? {
            found.push((format!("{scheme}, {point}"), cell));
        }
    }
    Ok(found)
}

/// The largest value over the runs.
fn worst(
    of: &[String],
    cells: &Cells,
    unit: &str,
    value: impl Fn(&Cell) -> Result<f64, Absent>,
) -> Result<Measured, Absent> {
    let mut values = Vec::new();
    for (_, cell) in all(of, cells)? {
        values.push(value(cell)?);
    }
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let text = format!("{} {unit}", number(most)).trim_end().to_owned();
    let text = if values.len() == 1 { text } else { format!("largest {text} of {} runs", values.len()) };
    Ok(Measured { value: most, text })
}

/// Which value of several flows counts.
#[derive(Clone, Copy)]
enum Worst {
    Least,
    Most,
}

/// The worst value over the flows of all runs that delivered anything, and all values of a single run.
fn users(
    of: &[String],
    cells: &Cells,
    which: Worst,
    value: impl Fn(&Cell, &FlowResult) -> Result<f64, Absent>,
) -> Result<Measured, Absent> {
    let runs = all(of, cells)?;
    let mut values = Vec::new();
    for (_, cell) in &runs {
        for flow in cell.run.flows.iter().filter(|flow| flow.delivered.get() > 0) {
            values.push(value(cell, flow)?);
        }
    }
    let worst = match which {
        Worst::Least => values.iter().copied().fold(f64::INFINITY, f64::min),
        Worst::Most => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    };
    let text = if values.len() <= 8 {
        values.iter().map(|value| number(*value)).collect::<Vec<_>>().join(", ")
    } else {
        let mean = stats::mean(&values).unwrap_or(f64::NAN);
        format!("{} at worst, {} on average, of {} flows", number(worst), number(mean), values.len())
    };
    Ok(Measured { value: worst, text })
}

fn report_bytes(of: &[String], cells: &Cells) -> Result<Measured, Absent> {
    /// Headers of an acknowledgement: IPv4, TCP, and its timestamps.
    const HEADERS: f64 = 20.0 + 20.0 + 12.0;
    const PAYLOAD: f64 = 1_400.0;
    const REPORT: f64 = 4.0;
    let (mut most, mut texts) = (0.0_f64, Vec::new());
    for (_, cell) in all(of, cells)? {
        let back = cell.run.links.iter().find(|link| link.name.ends_with(".back"));
        let back = back.ok_or_else(|| missing("way back"))?;
        let extra = back.departed.as_f64() - HEADERS * back.departed_packets as f64;
        let size = cell.number("size")?;
        let expected = REPORT * (size / PAYLOAD).ceil();
        if first(cell)?.dropped_packets > 0 {
            return Err(Absent::Nothing("packets were lost".to_owned()));
        }
        most = most.max((extra / expected - 1.0).abs());
        texts.push(format!("{} kB for {} MB", number(extra / 1e3), number(size / 1e6)));
    }
    Ok(Measured { value: most, text: texts.join(", ") })
}

fn sent_less(of: &[String], cells: &Cells) -> Result<Measured, Absent> {
    let [own, other] = of else { return Err(missing("second scheme")) };
    let (mut less, mut count) = (0, 0);
    for point in cells.group(own, "10MB") {
        let pairs = cells.at(own, point)?.run.flows.iter().zip(&cells.at(other, point)?.run.flows);
        for (own, other) in pairs {
            count += 1;
            less += u32::from(own.totals.sent_once < other.totals.sent_once);
        }
    }
    let share = stats::ratio(f64::from(less), f64::from(count)).unwrap_or(f64::NAN);
    Ok(Measured { value: share, text: format!("{} % of {count} flows", number(share * 100.0)) })
}

/// A step of the bottleneck in an experiment with the places `rates` (Mbit/s) and `times` (s).
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    begin: f64,
    end: f64,
    /// Payload's share of the bottleneck, in bit/s.
    rate: f64,
    /// Of the step before.
    before: Option<f64>,
}

fn steps(cell: &Cell) -> Result<Vec<Step>, Absent> {
    let list = |place: &str| -> Result<Vec<f64>, Absent> {
        let text = cell.places.get(place).ok_or_else(|| missing(place))?;
        text.split(' ').map(|word| word.parse().map_err(|_| missing(place))).collect()
    };
    let (rates, times, end) = (list("rates")?, list("times")?, cell.number("duration")?);
    let share = cell.number("payload")? / cell.number("packet")?;
    let rate = |index: usize| rates.get(index).map(|rate| rate * 1e6 * share);
    let step = |(index, begin): (usize, &f64)| {
        let end = times.get(index + 1).copied().unwrap_or(end);
        let before = index.checked_sub(1).and_then(rate);
        Some(Step { begin: *begin, end, rate: rate(index)?, before })
    };
    times.iter().enumerate().map(step).collect::<Option<Vec<_>>>().ok_or_else(|| missing("rates"))
}

/// Rows of a flow's series after `from` and up to `to`, as places in its columns.
fn between(time: &[f64], from: f64, to: f64) -> std::ops::Range<usize> {
    let place = |at: f64| time.partition_point(|time| *time <= at + 1e-9);
    place(from)..place(to)
}

/// Longest time from a change of the bottleneck (as it happens, 40 ms before the receiver can see it).
fn settle(cell: &Cell, rise: bool) -> Result<f64, Absent> {
    const NEAR: f64 = 0.05;
    let flow = first(cell)?;
    let time = column(flow, "time_s")?;
    let own = estimate(flow).ok_or_else(|| missing("estimate"))?;
    let mut longest = f64::NEG_INFINITY;
    for step in steps(cell)? {
        if step.before.is_none_or(|before| (before < step.rate) != rise) {
            continue;
        }
        let rows = between(time, step.begin, step.end);
        let near = |row: &usize| (own[*row] / step.rate - 1.0).abs() <= NEAR;
        let last_far = rows.clone().rev().find(|row| !near(row));
        let settled = last_far.map_or(0.0, |row| time.get(row + 1).copied().unwrap_or(step.end) - step.begin);
        longest = longest.max(settled);
    }
    Ok(longest / cell.number("window")?)
}

/// Estimates over the payload's rate, less one, in the rows that begin so long after a step.
fn errors(cell: &Cell, after: f64) -> Result<Vec<(Step, Vec<f64>)>, Absent> {
    let flow = first(cell)?;
    let time = column(flow, "time_s")?;
    let own = estimate(flow).ok_or_else(|| missing("estimate"))?;
    let of = |step: Step| {
        let rows = between(time, step.begin + after, step.end);
        (step, rows.map(|row| own[row] / step.rate - 1.0).collect())
    };
    Ok(steps(cell)?.into_iter().map(of).collect())
}

fn estimate_error(cell: &Cell) -> Result<f64, Absent> {
    let each = errors(cell, 1.0)?;
    let all: Vec<f64> = each.into_iter().flat_map(|(_, errors)| errors).map(f64::abs).collect();
    stats::mean(&all).ok_or_else(|| missing("estimate"))
}

/// Steady: from 2 s after a step on.
fn estimate_bias(of: &[String], cells: &Cells) -> Result<Measured, Absent> {
    let (mut most, mut texts) = (0.0_f64, Vec::new());
    for (_, cell) in all(of, cells)? {
        let text = cell.places.get("biases").ok_or_else(|| missing("biases"))?;
        let each = errors(cell, 2.0)?;
        for entry in text.split(' ') {
            let (rate, expected) = entry.split_once(':').ok_or_else(|| missing("bias"))?;
            let (rate, expected): (f64, f64) =
                rate.parse().ok().zip(expected.parse().ok()).ok_or_else(|| missing("bias"))?;
            let share = cell.number("payload")? / cell.number("packet")?;
            let own: Vec<f64> = each
                .iter()
                .filter(|(step, _)| (step.rate / share / 1e6 - rate).abs() < 1e-6)
                .flat_map(|(_, errors)| errors.clone())
                .collect();
            let bias = stats::mean(&own).ok_or_else(|| missing("estimate"))?;
            most = most.max((bias - expected).abs());
            texts.push(format!("{:+.1} % at {rate} Mbit/s", bias * 100.0));
        }
    }
    Ok(Measured { value: most, text: texts.join(", ") })
}

/// Payload that arrived in the last 100 ms per second, from 2 s after the flow's first data on; with the estimate.
fn reported(cell: &Cell, flow: &FlowResult) -> Result<Vec<(f64, f64)>, Absent> {
    const SMOOTH_S: f64 = 0.1;
    const SETTLE_S: f64 = 2.0;
    let time = column(flow, "time_s")?;
    let own = estimate(flow).ok_or_else(|| missing("estimate"))?;
    let smooth =
        trailing(column(flow, "goodput_bit_s")?, rows(time, SMOOTH_S).ok_or_else(|| missing("rows"))?);
    let begin = flow.totals.first_sent.ok_or_else(|| missing("data"))?.as_secs_f64() + SETTLE_S;
    let rows = between(time, begin, cell.run.end.as_secs_f64());
    Ok(rows.map(|row| (own[row], smooth[row])).filter(|pair| pair.0.is_finite()).collect())
}

fn correlated(cell: &Cell, flow: &FlowResult, most_lag_s: f64) -> Result<f64, Absent> {
    let pairs = reported(cell, flow)?;
    let time = column(flow, "time_s")?;
    let most = if most_lag_s > 0.0 { rows(time, most_lag_s).unwrap_or(0) } else { 0 };
    (0..=most)
        .filter_map(|lag| {
            let shifted = pairs.iter().skip(lag).zip(&pairs);
            correlation(&shifted.map(|(own, before)| (own.0, before.1)).collect::<Vec<_>>())
        })
        .max_by(f64::total_cmp)
        .ok_or_else(|| missing("estimate"))
}

fn estimate_deviation(cell: &Cell, flow: &FlowResult) -> Result<f64, Absent> {
    let pairs = reported(cell, flow)?;
    let errors: Vec<f64> = pairs.iter().map(|(own, rate)| (own - rate).abs()).collect();
    let rates: Vec<f64> = pairs.iter().map(|pair| pair.1).collect();
    let of = |values: &[f64]| stats::mean(values).ok_or_else(|| missing("estimate"));
    stats::ratio(of(&errors)?, of(&rates)?).ok_or_else(|| missing("rate"))
}

fn estimate_mean_error(cell: &Cell, flow: &FlowResult) -> Result<f64, Absent> {
    let pairs = reported(cell, flow)?;
    let (own, rate): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
    let of = |values: &[f64]| stats::mean(values).ok_or_else(|| missing("estimate"));
    let ratio = stats::ratio(of(&own)?, of(&rate)?).ok_or_else(|| missing("rate"))?;
    Ok((ratio - 1.0).abs())
}

fn estimate_order(of: &[String], cells: &Cells) -> Result<Measured, Absent> {
    let runs = all(of, cells)?;
    let mut sums: Vec<f64> = Vec::new();
    for (_, cell) in &runs {
        for (index, flow) in cell.run.flows.iter().enumerate() {
            let own: Vec<f64> = reported(cell, flow)?.iter().map(|pair| pair.0).collect();
            sums.resize(sums.len().max(index + 1), 0.0);
            sums[index] += stats::mean(&own).ok_or_else(|| missing("estimate"))?;
        }
    }
    let least = sums.windows(2).map(|pair| pair[0] / pair[1]).fold(f64::INFINITY, f64::min);
    let each = sums.iter().map(|sum| number(sum / runs.len() as f64 / 1e6)).collect::<Vec<_>>().join(", ");
    Ok(Measured { value: least, text: format!("{each} Mbit/s, near to far") })
}

/// CDBE's states, as its server shows them.
const STARTUP: f64 = 0.0;
const DRAIN: f64 = 2.0;
const GROW: f64 = 3.0;

/// From the first to the last row of the first STARTUP, the last being where rBW was highest.
fn startup_growth(cell: &Cell, flow: &FlowResult) -> Result<f64, Absent> {
    let (time, state) = (column(flow, "time_s")?, column(flow, "state_state")?);
    let rates = bandwidth(&cell.run, flow).ok_or_else(|| missing("bandwidth"))?;
    let rtt = column(flow, "state_min_rtt_s")?;
    let begin = state.iter().position(|state| *state == STARTUP).ok_or_else(|| missing("STARTUP"))?;
    let end = (begin..state.len()).find(|row| state[*row] != STARTUP).unwrap_or(state.len());
    // rBW stands still until the first reports of data come back.
    let still = (begin..end).rev().find(|row| rates[*row] <= rates[begin]).unwrap_or(begin);
    let highest = (still..end).max_by(|a, b| rates[*a].total_cmp(&rates[*b])).unwrap_or(still);
    if highest == still {
        return Ok(1.0);
    }
    let spans = ((time[highest] - time[still]) / rtt[highest]).max(1.0);
    Ok(libm::exp(libm::log(rates[highest] / rates[still]) / spans))
}

fn states_visited(of: &[String], cells: &Cells) -> Result<Measured, Absent> {
    let (mut flows, mut complete, mut texts) = (0_u32, 0_u32, Vec::new());
    for (_, cell) in all(of, cells)? {
        for flow in cell.run.flows.iter().filter(|flow| flow.delivered.get() > 0) {
            let state = column(flow, "state_state")?;
            let after = state.iter().skip_while(|state| **state == STARTUP || state.is_nan());
            let mut seen: Vec<i64> =
                after.filter(|state| state.is_finite()).map(|state| *state as i64).collect();
            seen.sort_unstable();
            seen.dedup();
            flows += 1;
            if [1, 2, 3].iter().all(|state| seen.contains(state)) {
                complete += 1;
            } else {
                texts.push(format!("{} only {seen:?}", flow.name));
            }
        }
    }
    let but = if texts.is_empty() { String::new() } else { format!("; {}", texts.join(", ")) };
    let share = stats::ratio(f64::from(complete), f64::from(flows)).unwrap_or(f64::NAN);
    Ok(Measured { value: share, text: format!("{complete} of {flows} flows{but}") })
}

/// DSDL of the evaluation that ended GROW over that of the one before.
fn grow_ends(of: &[String], cells: &Cells) -> Result<Measured, Absent> {
    let (mut ends, mut risen) = (0_u32, 0_u32);
    for (_, cell) in all(of, cells)? {
        for flow in cell.run.flows.iter().filter(|flow| flow.delivered.get() > 0) {
            let (state, delay) = (column(flow, "state_state")?, column(flow, "state_dsdl_mean_s")?);
            let least = column(flow, "state_dsdl_min_s")?;
            for row in 1..state.len() {
                if state[row - 1] == GROW && state[row] != GROW && state[row] != STARTUP {
                    ends += 1;
                    // Above the evaluation before, or above the threshold of 1.25 of the smallest.
                    risen += u32::from(delay[row] > delay[row - 1] || delay[row] > 1.25 * least[row]);
                }
            }
        }
    }
    let share = stats::ratio(f64::from(risen), f64::from(ends)).unwrap_or(f64::NAN);
    Ok(Measured { value: share, text: format!("{risen} of {ends}") })
}

fn without_drain(_: &Cell, flow: &FlowResult) -> Result<f64, Absent> {
    let (time, state) = (column(flow, "time_s")?, column(flow, "state_state")?);
    let (delay, least) = (column(flow, "state_dsdl_mean_s")?, column(flow, "state_dsdl_min_s")?);
    let rtt = column(flow, "state_min_rtt_s")?;
    let (mut since, mut longest) = (None, 0.0_f64);
    for row in 0..time.len() {
        // In STARTUP there is no DRAIN yet.
        let high = delay[row] > 1.25 * least[row] && state[row] != DRAIN && state[row] != STARTUP;
        since = if high { since.or(Some(time[row])) } else { None };
        if let Some(since) = since {
            longest = longest.max((time[row] - since) / rtt[row]);
        }
    }
    Ok(longest)
}

fn recovery_time(cell: &Cell) -> Result<f64, Absent> {
    let flow = first(cell)?;
    let (time, flight) = (column(flow, "time_s")?, column(flow, "in_flight_bytes")?);
    let (rise, until) = (cell.number("rise")?, cell.number("until")?);
    let most = cell.number("most")? * cell.number("payload")?;
    let reached = between(time, rise, until).find(|row| flight[*row] >= 0.95 * most);
    Ok(reached.map_or(until, |row| time[row]) - rise)
}

fn recovery_ratio(of: &[String], cells: &Cells) -> Result<Measured, Absent> {
    let [slow, fast] = of else { return Err(missing("second scheme")) };
    let (slower, faster) = (recovery_time(cells.named(slow)?)?, recovery_time(cells.named(fast)?)?);
    let text = format!("{slow} {} s, {fast} {} s", number(slower), number(faster));
    Ok(Measured { value: slower / faster, text })
}

/// Rows in which nothing was sent again for a second, from 2 s on.
fn quiet(flow: &FlowResult) -> Result<Vec<usize>, Absent> {
    let (time, again) = (column(flow, "time_s")?, column(flow, "retransmitted_packets")?);
    let back = rows(time, 1.0).ok_or_else(|| missing("rows"))?;
    let begin = between(time, 2.0, f64::MAX).start.max(back);
    Ok((begin..time.len()).filter(|row| again[*row] == again[*row - back]).collect())
}

fn vertical_gap(cell: &Cell) -> Result<f64, Absent> {
    let flow = first(cell)?;
    let (sent, acked) = (column(flow, "sent_bytes")?, column(flow, "acked_bytes")?);
    let flight = column(flow, "in_flight_bytes")?;
    let rows = quiet(flow)?.into_iter().filter(|row| flight[*row] > 0.0);
    let errors: Vec<f64> = rows.map(|row| ((sent[row] - acked[row]) / flight[row] - 1.0).abs()).collect();
    stats::mean(&errors).ok_or_else(|| missing("row without retransmissions"))
}

/// When what is acknowledged now had just been sent, between the rows around it.
fn horizontal_gap(cell: &Cell) -> Result<f64, Absent> {
    let flow = first(cell)?;
    let time = column(flow, "time_s")?;
    let (sent, acked) = (column(flow, "sent_bytes")?, column(flow, "acked_bytes")?);
    let rtt = column(flow, "rtt_last_s")?;
    let gap = |row: usize| {
        let after = sent.partition_point(|sent| *sent < acked[row]);
        let before = after.checked_sub(1)?;
        let part = stats::ratio(acked[row] - sent[before], sent[after] - sent[before])?;
        let then = time[before] + part * (time[after] - time[before]);
        Some(((time[row] - then) / rtt[row] - 1.0).abs())
    };
    let errors: Vec<f64> =
        quiet(flow)?.into_iter().filter_map(gap).filter(|error| error.is_finite()).collect();
    stats::mean(&errors).ok_or_else(|| missing("row without retransmissions"))
}

#[cfg(test)]
#[path = "functions_thesis_tests.rs"]
mod tests;
