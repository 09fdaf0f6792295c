//! Measurements of Multi-Domain congestion control (002) that the common words do not say.
//!
//! Flow 0 is the one in the foreground. Windows of time and tolerances are ours where the paper shows curves.

use ranpace_sim::{FlowResult, Transfer};
use ranpace_units::Span;
use serde::Deserialize;

use super::cells::{Absent, Cell, Cells};
use super::measure::Measured;
use super::metric::Metric;
use crate::figures::number;
use crate::stats;

/// The functions, by the name that experiments call them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[expect(
    clippy::enum_variant_names,
    reason = "experiments call them by these names, beside those of other functions"
)]
pub enum MdccFunction {
    /// Seconds from the place `freed` until a sliding mean of the goodput reaches 95 % of the steady one: mean over the drops.
    MdccFillUp {
        /// At which group of points.
        at: String,
        /// Over so many seconds the mean is taken.
        window: f64,
    },
    /// By how much the first scheme needs less time than the second, in percent.
    MdccFillReduction {
        /// At which group of points.
        at: String,
        /// As above.
        window: f64,
    },
    /// The same time over `ln(F) / ln(1.1)` loaded RTTs, `F` being by how much the rate grows.
    MdccFillModel {
        /// At which group of points.
        at: String,
    },
    /// Relative distance of the first scheme's steady goodput from the second's, with its sign.
    MdccSteady {
        /// At which group of points.
        at: String,
    },
    /// Mean completion of transfers in seconds, at the client or as handed over.
    MdccCompletion {
        /// At which group of points.
        at: String,
        /// As handed over to the PEP.
        handed: bool,
    },
    /// By how much the first scheme is faster than the second, in percent.
    MdccCompletionReduction {
        /// At which group of points.
        at: String,
        /// As handed over to the PEP.
        handed: bool,
    },
    /// The smallest difference of these reductions from one group to the next, in percentage points.
    MdccReductionsGrow {
        /// The groups, from the smallest size to the largest.
        at: Vec<String>,
        /// As handed over to the PEP.
        handed: bool,
    },
    /// Smallest completion at the client over what the cell's highest rate takes for the size.
    MdccCompletionBound {
        /// Payload per second at the most, in bit/s.
        rate: f64,
    },
    /// Mean time after a transfer's beginning at which slow start ended, of those that left it before they were sent.
    MdccSlowStartEnds {
        /// At which group of points.
        at: String,
    },
    /// Share of the transfers that were sent in slow start as a whole.
    MdccSentInSlowStart {
        /// At which group of points.
        at: String,
    },
    /// Number of drops in which the first scheme's goodput is above the second's.
    MdccWins {
        /// At which group of points.
        at: String,
    },
    /// Mean gain in goodput of the first scheme over the second, in percent.
    MdccGain {
        /// At which group of points.
        at: String,
    },
    /// Longest time without data, in seconds.
    MdccStall {
        /// At which group of points.
        at: String,
        /// From this second on.
        from: f64,
    },
    /// Rows of the series in which the window is above that of the radio.
    MdccAboveRadio,
}

/// Part of the steady goodput that is to be reached (section IV).
const FILLED: f64 = 0.95;
/// The steady goodput is that of so many seconds at the end. Ours.
const STEADY: f64 = 5.0;
/// What was before: so many seconds before the place `freed`. Ours.
const BEFORE: f64 = 4.0;

/// Calls one.
pub fn call(function: &MdccFunction, of: &[String], cells: &Cells) -> Result<Measured, Absent> {
    use MdccFunction as F;
    match function {
        F::MdccFillUp { at, window } => spread(&fill_ups(first(of)?, at, *window, cells)?, "s"),
        F::MdccFillReduction { at, window } => {
            let [one, other] = of else { return Err(nothing("two schemes are compared")) };
            let of = |scheme| Ok::<_, Absent>(mean(&fill_ups(scheme, at, *window, cells)?));
            let (one, other) = (of(one)?, of(other)?);
            let reduction = 100.0 * (1.0 - one / other);
            let text = format!("{} % ({} s of {} s)", number(reduction), number(one), number(other));
            Ok(Measured { value: reduction, text })
        }
        F::MdccFillModel { at } => fill_model(first(of)?, at, cells),
        F::MdccSteady { at } => {
            let [one, other] = of else { return Err(nothing("two schemes are compared")) };
            let of = |scheme| Ok::<_, Absent>(mean(&each(scheme, at, cells, steady)?));
            let (one, other) = (of(one)?, of(other)?);
            let text = format!("{} and {} Mbit/s", number(one / 1e6), number(other / 1e6));
            Ok(Measured { value: one / other - 1.0, text })
        }
        F::MdccCompletion { at, handed } => spread(&completions(first(of)?, at, *handed, cells)?, "s"),
        F::MdccCompletionReduction { at, handed } => {
            let (value, one, other) = reduction(of, at, *handed, cells)?;
            let text = format!("{} % ({} s of {} s)", number(value), number(one), number(other));
            Ok(Measured { value, text })
        }
        F::MdccReductionsGrow { at, handed } => {
            let all: Vec<f64> = at
                .iter()
                .map(|at| Ok(reduction(of, at, *handed, cells)?.0))
                .collect::<Result<_, Absent>>()?;
            let least = all.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
            let text = all.iter().map(|value| number(*value)).collect::<Vec<_>>().join(", ") + " %";
            Ok(Measured { value: least, text })
        }
        F::MdccCompletionBound { rate } => {
            let mut least = f64::INFINITY;
            for scheme in of {
                for (_, cell) in cells.of(scheme, &[])? {
                    for transfer in &foreground(cell)?.transfers {
                        let bound = transfer.size.as_f64() * 8.0 / rate;
                        if let Some(took) = transfer.completion {
                            least = least.min(took.as_secs_f64() / bound);
                        }
                    }
                }
            }
            Ok(Measured { value: least, text: format!("smallest {}", number(least)) })
        }
        F::MdccSlowStartEnds { at } => {
            let ends = slow_start(first(of)?, at, cells)?;
            let within: Vec<f64> = ends.iter().copied().flatten().collect();
            if within.is_empty() {
                return Err(Absent::Nothing(format!("none of {} transfers left it", ends.len())));
            }
            let value = mean(&within);
            let text = format!("{} s, of {} of {}", number(value), within.len(), ends.len());
            Ok(Measured { value, text })
        }
        F::MdccSentInSlowStart { at } => {
            let ends = slow_start(first(of)?, at, cells)?;
            let whole = ends.iter().filter(|end| end.is_none()).count();
            let text = format!("{whole} of {}", ends.len());
            Ok(Measured { value: whole as f64 / ends.len() as f64, text })
        }
        F::MdccWins { at } => {
            let gains = gains(of, at, cells)?;
            let wins = gains.iter().filter(|gain| **gain > 0.0).count();
            Ok(Measured { value: wins as f64, text: format!("{wins} of {}", gains.len()) })
        }
        F::MdccGain { at } => spread(&gains(of, at, cells)?, "%"),
        F::MdccStall { at, from } => {
            let mut most: f64 = 0.0;
            for scheme in of {
                for stall in each(scheme, at, cells, |cell| longest_stall(cell, *from))? {
                    most = most.max(stall);
                }
            }
            Ok(Measured { value: most, text: format!("longest {} s", number(most)) })
        }
        F::MdccAboveRadio => {
            let (mut rows, mut above) = (0, 0);
            for scheme in of {
                for (_, cell) in cells.of(scheme, &[])? {
                    let flow = foreground(cell)?;
                    let windows = column(flow, "state_w_r")?.iter().zip(column(flow, "state_w_i")?);
                    // Both are in segments, the window in bytes: what a segment holds follows from the wired window alone.
                    for ((radio, wired), cwnd) in windows.zip(column(flow, "cwnd_bytes")?) {
                        let segment = cwnd / wired.min(*radio);
                        if radio.is_nan() || !segment.is_finite() {
                            continue;
                        }
                        rows += 1;
                        above += u32::from(segment > 1.001 * SEGMENT);
                    }
                }
            }
            Ok(Measured { value: f64::from(above), text: format!("{above} of {rows} rows") })
        }
    }
}

/// Payload of a segment with timestamps, in bytes.
const SEGMENT: f64 = 1_448.0;

fn nothing(what: &str) -> Absent {
    Absent::Nothing(what.to_owned())
}

/// Not a number where there are no values.
fn mean(values: &[f64]) -> f64 {
    stats::mean(values).unwrap_or(f64::NAN)
}

fn first(of: &[String]) -> Result<&String, Absent> {
    of.first().ok_or_else(|| nothing("no scheme"))
}

fn foreground(cell: &Cell) -> Result<&FlowResult, Absent> {
    cell.run.flows.first().ok_or_else(|| nothing("the run has no flow"))
}

fn column<'a>(flow: &'a FlowResult, name: &str) -> Result<&'a [f64], Absent> {
    flow.series.get(name).ok_or_else(|| Absent::Nothing(format!("the run has no {name}")))
}

/// A figure of each run of a scheme in a group of points.
fn each<T>(
    scheme: &str,
    at: &str,
    cells: &Cells,
    figure: impl Fn(&Cell) -> Result<T, Absent>,
) -> Result<Vec<T>, Absent> {
    let points = cells.group(scheme, at);
    if points.is_empty() {
        return Err(Absent::Nothing(format!("{scheme} is not played at {at}")));
    }
    points.into_iter().map(|point| figure(cells.at(scheme, point)?)).collect()
}

/// The mean, and how far values are from it.
fn spread(values: &[f64], unit: &str) -> Result<Measured, Absent> {
    let value = mean(values);
    let squares: f64 = values.iter().map(|one| (one - value) * (one - value)).sum();
    let deviation = (squares / (values.len().max(2) - 1) as f64).sqrt();
    let text = format!("{} ± {} {unit}, {} values", number(value), number(deviation), values.len());
    Ok(Measured { value, text })
}

/// Mean of the rows of a column from one instant to another.
fn mean_between(flow: &FlowResult, name: &str, from: f64, until: f64) -> Result<f64, Absent> {
    let rows = column(flow, "time_s")?.iter().zip(column(flow, name)?);
    let within = rows.filter(|(at, value)| **at > from + 1e-9 && **at < until + 1e-9 && value.is_finite());
    let values: Vec<f64> = within.map(|(_, value)| *value).collect();
    if values.is_empty() { Err(nothing("no rows in that time")) } else { Ok(mean(&values)) }
}

fn end(flow: &FlowResult) -> Result<f64, Absent> {
    column(flow, "time_s")?.last().copied().ok_or_else(|| nothing("the run has no rows"))
}

/// Goodput at the end, in bit/s.
fn steady(cell: &Cell) -> Result<f64, Absent> {
    let flow = foreground(cell)?;
    let end = end(flow)?;
    mean_between(flow, "goodput_bit_s", end - STEADY, end)
}

/// Seconds until the capacity is filled; up to the end of the run, if it never is.
fn fill_up(cell: &Cell, window: f64) -> Result<f64, Absent> {
    let flow = foreground(cell)?;
    let freed = cell.number("freed")?;
    let steady = steady(cell)?;
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

fn fill_ups(scheme: &str, at: &str, window: f64, cells: &Cells) -> Result<Vec<f64>, Absent> {
    each(scheme, at, cells, |cell| fill_up(cell, window))
}

/// The time over that of a window that grows by a tenth per RTT.
fn fill_model(scheme: &str, at: &str, cells: &Cells) -> Result<Measured, Absent> {
    let all = each(scheme, at, cells, |cell| {
        let flow = foreground(cell)?;
        let freed = cell.number("freed")?;
        let took = fill_up(cell, 0.2)?;
        let before = mean_between(flow, "goodput_bit_s", freed - BEFORE, freed)?;
        let growth = steady(cell)? / before;
        let rtt = mean_between(flow, "srtt_s", freed, freed + took)?;
        let model = libm::log(growth) / libm::log(1.1) * rtt;
        Ok((took / model, growth, rtt))
    })?;
    let of = |part: fn(&(f64, f64, f64)) -> f64| mean(&all.iter().map(part).collect::<Vec<_>>());
    let (value, growth, rtt) = (of(|one| one.0), of(|one| one.1), of(|one| one.2));
    let text = format!("{} (F {}, RTT {} ms)", number(value), number(growth), number(1e3 * rtt));
    Ok(Measured { value, text })
}

fn completions(scheme: &str, at: &str, handed: bool, cells: &Cells) -> Result<Vec<f64>, Absent> {
    let took = |transfer: &Transfer| if handed { transfer.handed_over } else { transfer.completion };
    let all = each(scheme, at, cells, |cell| {
        let transfers = &foreground(cell)?.transfers;
        Ok(transfers.iter().filter_map(took).map(Span::as_secs_f64).collect::<Vec<_>>())
    })?;
    let all: Vec<f64> = all.into_iter().flatten().collect();
    if all.is_empty() { Err(nothing("no transfer was completed")) } else { Ok(all) }
}

/// The reduction in percent, and both means.
fn reduction(of: &[String], at: &str, handed: bool, cells: &Cells) -> Result<(f64, f64, f64), Absent> {
    let [one, other] = of else { return Err(nothing("two schemes are compared")) };
    let of = |scheme| Ok::<_, Absent>(mean(&completions(scheme, at, handed, cells)?));
    let (one, other) = (of(one)?, of(other)?);
    Ok((100.0 * (1.0 - one / other), one, other))
}

/// When each transfer left slow start, in seconds after its beginning; `None` if it was handed over before.
fn slow_start(scheme: &str, at: &str, cells: &Cells) -> Result<Vec<Option<f64>>, Absent> {
    let all = each(scheme, at, cells, |cell| {
        let flow = foreground(cell)?;
        let rows: Vec<(f64, f64)> = column(flow, "time_s")?
            .iter()
            .copied()
            .zip(column(flow, "ssthresh_bytes")?.iter().copied())
            .collect();
        let ends = flow.transfers.iter().filter_map(|transfer| {
            let begin = transfer.start.as_secs_f64();
            let handed = begin + transfer.handed_over?.as_secs_f64();
            let left =
                rows.iter().find(|(at, threshold)| *at > begin && *at <= handed && threshold.is_finite());
            Some(left.map(|(at, _)| at - begin))
        });
        Ok(ends.collect::<Vec<_>>())
    })?;
    Ok(all.into_iter().flatten().collect())
}

/// Gains in percent, drop by drop.
fn gains(of: &[String], at: &str, cells: &Cells) -> Result<Vec<f64>, Absent> {
    let [one, other] = of else { return Err(nothing("two schemes are compared")) };
    let goodput = |scheme| each(scheme, at, cells, |cell| Ok(cell.get(Metric::Goodput)));
    let (one, other) = (goodput(one)?, goodput(other)?);
    Ok(one.iter().zip(&other).map(|(one, other)| 100.0 * (one / other - 1.0)).collect())
}

/// Longest time without goodput from a second on.
fn longest_stall(cell: &Cell, from: f64) -> Result<f64, Absent> {
    let flow = foreground(cell)?;
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
