//! Figures of a flow that fills released capacity, of its transfers and of its slow start: Multi-Domain congestion control (002).
//! The first flow is the one in the foreground. Time windows and tolerances are ours where the paper shows curves.

use ranpace_sim::{FlowResult, Transfer};
use ranpace_units::Span;

use super::scope::Scope;
use super::series::{column, mean};
use super::{Entry, each, needs};
use crate::figures::Quantity::{Plain, Rate, Time};

pub(super) const FIGURES: &[Entry] = &[
    needs(
        "fill_up",
        Time,
        "From the place `freed` until the goodput, as a mean over `smooth` seconds, reaches 95 % of the steady one; the end of the run if it never does.",
        fill_up,
    ),
    needs(
        "fill_over_model",
        Plain,
        "The time of `fill_up` over that of a window that grows by a tenth per RTT.",
        |scope| {
            let model = libm::log(rate_growth(scope)?) / libm::log(1.1) * rtt_while_filling(scope)?;
            Ok(fill_up(scope)? / model)
        },
    ),
    needs("rate_growth", Plain, "Steady goodput over that of the 4 s before the place `freed`.", rate_growth),
    needs(
        "rtt_while_filling",
        Time,
        "Mean smoothed RTT while the capacity is being filled.",
        rtt_while_filling,
    ),
    needs("steady_goodput", Rate, "Goodput of the last 5 s.", steady),
    each(
        "transfer_completion",
        Time,
        "From the beginning of each transfer until it is complete at the client.",
        |scope| spans(scope, |transfer| transfer.completion),
    ),
    each(
        "transfer_handover",
        Time,
        "From the beginning of each transfer until it is handed over to the PEP.",
        |scope| spans(scope, |transfer| transfer.handed_over),
    ),
    each("transfer_rate", Rate, "Size of each transfer over the time that it took.", |scope| {
        let rate =
            |transfer: &Transfer| Some(8.0 * transfer.size.as_f64() / transfer.completion?.as_secs_f64());
        Ok(scope.first()?.transfers.iter().filter_map(rate).collect())
    }),
    each(
        "slow_start_end",
        Time,
        "From the beginning of each transfer that was handed over until it left slow start; none if it was sent in slow start as a whole.",
        slow_start_ends,
    ),
    each(
        "sent_in_slow_start",
        Plain,
        "1 for each transfer that was sent in slow start as a whole, else 0.",
        |scope| {
            let ends = slow_start_ends(scope)?.into_iter();
            Ok(ends.map(|end| f64::from(u8::from(end.is_nan()))).collect())
        },
    ),
    needs(
        "longest_stall",
        Time,
        "Longest time without goodput, from the window's beginning on.",
        longest_stall,
    ),
    each(
        "above_radio_window",
        Plain,
        "1 for each row of the series in which the window is above that of the radio, else 0.",
        above_radio,
    ),
];

/// Part of the steady goodput to be reached (section IV).
const FILLED: f64 = 0.95;
/// The steady goodput is taken over this many seconds at the end. Ours.
const STEADY: f64 = 5.0;
/// The state before: this many seconds before the place `freed`. Ours.
const BEFORE: f64 = 4.0;
/// Goodput is averaged over this many seconds, unless the measure says otherwise.
const SMOOTH: f64 = 0.2;
/// Payload of a segment with timestamps, in bytes.
const SEGMENT: f64 = 1_448.0;

/// Mean of the rows of a column between two instants.
fn mean_between(flow: &FlowResult, name: &str, from: f64, until: f64) -> Result<f64, String> {
    let rows = column(flow, "time_s")?.iter().zip(column(flow, name)?);
    let within = rows.filter(|(at, value)| **at > from + 1e-9 && **at < until + 1e-9 && value.is_finite());
    let values: Vec<f64> = within.map(|(_, value)| *value).collect();
    if values.is_empty() { Err("no rows in that time".to_owned()) } else { Ok(mean(&values)) }
}

fn end(flow: &FlowResult) -> Result<f64, String> {
    column(flow, "time_s")?.last().copied().ok_or_else(|| "the run has no rows".to_owned())
}

fn steady(scope: &Scope<'_>) -> Result<f64, String> {
    let flow = scope.first()?;
    let end = end(flow)?;
    mean_between(flow, "goodput_bit_s", end - STEADY, end)
}

fn fill_up(scope: &Scope<'_>) -> Result<f64, String> {
    let (flow, freed, steady) = (scope.first()?, scope.place("freed")?, steady(scope)?);
    let window = scope.window.smooth.unwrap_or(SMOOTH);
    let (times, rates) = (column(flow, "time_s")?, column(flow, "goodput_bit_s")?);
    let rows = times.windows(2).next().map_or(1.0, |pair| pair[1] - pair[0]);
    let width = ((window / rows).round() as usize).max(1);
    for place in width..=times.len() {
        let at = times[place - 1];
        if at < freed + window {
            continue;
        }
        if mean(&rates[place - width..place]) >= FILLED * steady {
            return Ok(at - freed);
        }
    }
    Ok(end(flow)? - freed)
}

fn rate_growth(scope: &Scope<'_>) -> Result<f64, String> {
    let freed = scope.place("freed")?;
    Ok(steady(scope)? / mean_between(scope.first()?, "goodput_bit_s", freed - BEFORE, freed)?)
}

fn rtt_while_filling(scope: &Scope<'_>) -> Result<f64, String> {
    let freed = scope.place("freed")?;
    mean_between(scope.first()?, "srtt_s", freed, freed + fill_up(scope)?)
}

fn spans(scope: &Scope<'_>, of: fn(&Transfer) -> Option<Span>) -> Result<Vec<f64>, String> {
    Ok(scope.first()?.transfers.iter().filter_map(of).map(Span::as_secs_f64).collect())
}

fn slow_start_ends(scope: &Scope<'_>) -> Result<Vec<f64>, String> {
    let flow = scope.first()?;
    let rows: Vec<(f64, f64)> = column(flow, "time_s")?
        .iter()
        .copied()
        .zip(column(flow, "ssthresh_bytes")?.iter().copied())
        .collect();
    let ends = flow.transfers.iter().filter_map(|transfer| {
        let begin = transfer.start.as_secs_f64();
        let handed = begin + transfer.handed_over?.as_secs_f64();
        let left = rows.iter().find(|(at, threshold)| *at > begin && *at <= handed && threshold.is_finite());
        Some(left.map_or(f64::NAN, |(at, _)| at - begin))
    });
    Ok(ends.collect())
}

fn longest_stall(scope: &Scope<'_>) -> Result<f64, String> {
    let flow = scope.first()?;
    let from = scope.window.from.unwrap_or(0.0);
    let (mut since, mut longest, mut last) = (from, 0.0, from);
    for (at, rate) in column(flow, "time_s")?.iter().zip(column(flow, "goodput_bit_s")?) {
        if *at <= from {
            continue;
        }
        if *rate > 0.0 {
            longest = f64::max(longest, last - since);
            since = *at;
        }
        last = *at;
    }
    Ok(f64::max(longest, last - since))
}

fn above_radio(scope: &Scope<'_>) -> Result<Vec<f64>, String> {
    let flow = scope.first()?;
    let windows = column(flow, "state_w_r")?.iter().zip(column(flow, "state_w_i")?);
    // Both are in segments, the window in bytes: the segment size follows from the wired window alone.
    let above = windows.zip(column(flow, "cwnd_bytes")?).filter_map(|((radio, wired), cwnd)| {
        let segment = cwnd / wired.min(*radio);
        let counts = !radio.is_nan() && segment.is_finite();
        counts.then(|| f64::from(u8::from(segment > 1.001 * SEGMENT)))
    });
    Ok(above.collect())
}
