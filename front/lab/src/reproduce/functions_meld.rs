//! Measurements of MELD (000 chapter 4, 003) that the common words do not say.
//!
//! What MELD decided is read from what it shows of itself in the series of its flow, `docs/algorithms/meld-me.md`.

use ranpace_sim::FlowResult;
use serde::Deserialize;

use super::cells::{Absent, Cell, Cells};
use super::measure::Measured;
use super::metric::Metric;
use crate::figures::number;
use crate::stats;

/// The functions, by the name that experiments call them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum MeldFunction {
    /// Distance of the gains in goodput of the first two schemes over the third.
    MeldGainDistance {
        /// At which group of points.
        at: String,
    },
    /// Gain of the first scheme over the second in "cal", over that of the third over the fourth in "cubic".
    MeldGainRatio,
    /// A figure of each scheme, with intervals of its mean over the drops; the value is the first one's.
    MeldInterval {
        /// Which figure.
        metric: Metric,
        /// At which group of points.
        at: String,
    },
    /// Longest queue beside which a loss was hidden, in bytes.
    MeldLongestHiddenQueue,
    /// Largest block in which a loss was told of for its radio, in bytes.
    MeldLargestToldBlock,
    /// Decisions a download; the value is the number of silent ones of the first scheme.
    MeldDecisions,
    /// Rows of the series in which the windows of two schemes differ.
    MeldDiffers {
        /// At which group of points.
        at: String,
    },
    /// Losses hidden after a time.
    MeldHiddenAfter {
        /// At which group of points.
        at: String,
        /// Since the beginning of the run.
        seconds: f64,
    },
    /// Goodput after a time, of the first scheme over the second.
    MeldGoodputAfter {
        /// At which group of points.
        at: String,
        /// Since the beginning of the run.
        seconds: f64,
    },
    /// Share of the packets of all runs that were lost.
    MeldPingLoss,
    /// How many packets were lost in a row.
    MeldBursts,
    /// What the feed of radio information takes on the wire for each user of the cell, in kbit/s.
    MeldFeed {
        /// At which group of points.
        at: String,
    },
}

/// Calls one.
pub fn call(function: &MeldFunction, of: &[String], cells: &Cells) -> Result<Measured, Absent> {
    use MeldFunction as F;
    match function {
        F::MeldGainDistance { at } => {
            let [one, other, base] = of else { return Err(nothing("three schemes are compared")) };
            let of = |scheme| Ok::<_, Absent>(goodput(scheme, at, cells)? / goodput(base, at, cells)? - 1.0);
            let (one, other) = (of(one)?, of(other)?);
            let text = format!("{} and {} %", number(100.0 * one), number(100.0 * other));
            Ok(Measured { value: f64::abs(one - other), text })
        }
        F::MeldGainRatio => {
            let [one, base, other, other_base] = of else { return Err(nothing("four schemes are compared")) };
            let first = goodput(one, "cal", cells)? / goodput(base, "cal", cells)? - 1.0;
            let second = goodput(other, "cubic", cells)? / goodput(other_base, "cubic", cells)? - 1.0;
            let text = format!(
                "{} over {} %: {}",
                number(100.0 * first),
                number(100.0 * second),
                number(first / second)
            );
            Ok(Measured { value: first / second, text })
        }
        F::MeldInterval { metric, at } => intervals(*metric, at, of, cells),
        F::MeldLongestHiddenQueue => extreme("state_meld_longest_hidden_queue_bytes", of, cells),
        F::MeldLargestToldBlock => extreme("state_meld_largest_told_block_bytes", of, cells),
        F::MeldDecisions => decisions(of, cells),
        F::MeldDiffers { at } => differs(at, of, cells),
        F::MeldHiddenAfter { at, seconds } => hidden_after(at, *seconds, of, cells),
        F::MeldGoodputAfter { at, seconds } => goodput_after(at, *seconds, of, cells),
        F::MeldPingLoss => {
            let runs = runs("", of, cells)?;
            let flows = || runs.iter().flat_map(|cell| &cell.run.flows);
            let (sent, lost): (u64, u64) =
                (flows().map(|f| f.sent_packets).sum(), flows().map(|f| f.dropped_packets).sum());
            let value = stats::ratio(lost as f64, sent as f64).unwrap_or(f64::NAN);
            let text = format!("{lost} of {sent} packets: {} %", number(100.0 * value));
            Ok(Measured { value, text })
        }
        F::MeldBursts => bursts(of, cells),
        F::MeldFeed { at } => {
            let rates: Vec<f64> = runs(at, of, cells)?
                .iter()
                .map(|cell| {
                    cell.run.feed.map(|feed| feed.rate.as_f64() / 1e3 / cell.run.users.len().max(1) as f64)
                })
                .collect::<Option<_>>()
                .ok_or_else(|| nothing("no radio information was read"))?;
            let value = rates.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            Ok(Measured { value, text: format!("{} kbit/s", number(value)) })
        }
    }
}

fn nothing(why: &str) -> Absent {
    Absent::Nothing(why.to_owned())
}

/// The runs of these schemes at a group of points.
fn runs<'a>(at: &str, of: &[String], cells: &'a Cells) -> Result<Vec<&'a Cell>, Absent> {
    let mut found = Vec::new();
    for scheme in of {
        for point in cells.group(scheme, at) {
            found.push(cells.at(scheme, point)?);
        }
    }
    if found.is_empty() { Err(nothing("there are no such runs")) } else { Ok(found) }
}

fn first(cell: &Cell) -> Result<&FlowResult, Absent> {
    cell.run.flows.first().ok_or_else(|| nothing("the run has no flow"))
}

fn column<'a>(cell: &'a Cell, name: &str) -> Result<&'a [f64], Absent> {
    first(cell)?.series.get(name).ok_or_else(|| nothing(&format!("the run has no {name}")))
}

/// The last value of a column: what MELD shows of itself is counted from the beginning.
fn last(cell: &Cell, name: &str) -> Result<f64, Absent> {
    column(cell, name)?
        .iter()
        .rev()
        .copied()
        .find(|value| value.is_finite())
        .ok_or_else(|| nothing(&format!("{name} has no value")))
}

fn figures(metric: Metric, scheme: &str, at: &str, cells: &Cells) -> Result<Vec<f64>, Absent> {
    Ok(runs(at, &[scheme.to_owned()], cells)?.iter().map(|cell| cell.get(metric)).collect())
}

fn goodput(scheme: &str, at: &str, cells: &Cells) -> Result<f64, Absent> {
    stats::mean(&figures(Metric::AckedRate, scheme, at, cells)?)
        .ok_or_else(|| nothing("there are no such runs"))
}

/// The 95th percentile of Student's t, so that 90 % are within, by degrees of freedom from 1 to 20.
const T90: [f64; 20] = [
    6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812, 1.796, 1.782, 1.771, 1.761, 1.753,
    1.746, 1.740, 1.734, 1.729, 1.725,
];

/// The same for any number: beyond the table by the first two terms of Fisher and Cornish's expansion about the normal distribution's 1.6449,
/// which is exact to 0.001 there.
fn t90(freedom: usize) -> f64 {
    const Z: f64 = 1.6449;
    let expanded = |freedom: f64| {
        let (first, second) = (Z * (Z * Z + 1.0) / 4.0, Z * (5.0 * Z.powi(4) + 16.0 * Z * Z + 3.0) / 96.0);
        Z + first / freedom + second / (freedom * freedom)
    };
    let tabled = freedom.checked_sub(1).map(|at| T90.get(at).copied().unwrap_or(expanded(freedom as f64)));
    tabled.unwrap_or(f64::NAN)
}

/// The thesis shows 95 %, the paper 90 % intervals.
fn intervals(metric: Metric, at: &str, of: &[String], cells: &Cells) -> Result<Measured, Absent> {
    let mut texts = Vec::new();
    let mut value = f64::NAN;
    for (index, scheme) in of.iter().enumerate() {
        let values = figures(metric, scheme, at, cells)?;
        let mean = stats::mean(&values).unwrap_or(f64::NAN);
        if index == 0 {
            value = mean;
        }
        let half = |t: f64| {
            stats::deviation(&values)
                .map_or(f64::NAN, |deviation| t * deviation / (values.len() as f64).sqrt())
        };
        let t90 = t90(values.len().saturating_sub(1));
        let unit = metric.quantity().unit([mean]);
        let show = |value: f64| unit.show(value);
        let ci95 = stats::ci95(&values).unwrap_or(f64::NAN);
        texts.push(format!("{scheme} {} ±{} / ±{}", show(mean), show(half(t90)), show(ci95)));
    }
    Ok(Measured { value, text: texts.join("; ") })
}

fn extreme(name: &str, of: &[String], cells: &Cells) -> Result<Measured, Absent> {
    let mut most: f64 = 0.0;
    let runs = runs("", of, cells)?;
    for cell in &runs {
        most = most.max(last(cell, name)?);
    }
    Ok(Measured { value: most, text: format!("{} B, {} runs", number(most), runs.len()) })
}

/// At each group of points that all schemes have in common.
fn decisions(of: &[String], cells: &Cells) -> Result<Measured, Absent> {
    let mut texts = Vec::new();
    let mut value = f64::NAN;
    for scheme in of {
        let mut groups: Vec<&str> = Vec::new();
        for point in cells.points(scheme) {
            let group = point.split(' ').next().unwrap_or(point);
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        for group in groups {
            let runs = runs(group, std::slice::from_ref(scheme), cells)?;
            let mean = |name: &str| {
                let values: Vec<f64> = runs.iter().map(|cell| last(cell, name)).collect::<Result<_, _>>()?;
                Ok::<_, Absent>(stats::mean(&values).unwrap_or(f64::NAN))
            };
            let silent = mean("state_meld_silent")?;
            if value.is_nan() {
                value = silent;
            }
            let (timeouts, told) = (mean("state_meld_silent_timeouts")?, mean("state_meld_notified")?);
            let again = mean("state_meld_notified_timeout_again")?;
            texts.push(format!(
                "{scheme} {group} {} ({}), {} ({} second timeouts)",
                number(silent),
                number(timeouts),
                number(told),
                number(again)
            ));
        }
    }
    Ok(Measured { value, text: texts.join("; ") })
}

fn differs(at: &str, of: &[String], cells: &Cells) -> Result<Measured, Absent> {
    let [one, other] = of else { return Err(nothing("two schemes are compared")) };
    let (mut differing, mut all) = (0, 0);
    for point in cells.group(one, at) {
        let own = column(cells.at(one, point)?, "cwnd_bytes")?;
        let other = column(cells.at(other, point)?, "cwnd_bytes")?;
        all += own.len().max(other.len());
        let same = own.iter().zip(other).filter(|(a, b)| a.to_bits() == b.to_bits()).count();
        differing += own.len().max(other.len()) - same;
    }
    Ok(Measured { value: differing as f64, text: format!("{differing} of {all}") })
}

fn hidden_after(at: &str, seconds: f64, of: &[String], cells: &Cells) -> Result<Measured, Absent> {
    let (mut hidden, mut before, mut told) = (0.0, 0.0, 0.0);
    let runs = runs(at, of, cells)?;
    for cell in &runs {
        let silent = column(cell, "state_meld_silent")?;
        let until = column(cell, "time_s")?.iter().take_while(|time| **time <= seconds + 1e-9).count();
        let then = silent.get(until.saturating_sub(1)).copied().unwrap_or(0.0);
        let then = if then.is_finite() { then } else { 0.0 };
        hidden += last(cell, "state_meld_silent")? - then;
        before += then;
        told += last(cell, "state_meld_notified_stale")?;
    }
    let text = format!(
        "{} in {} runs; before {}, told as stale {}",
        number(hidden),
        runs.len(),
        number(before),
        number(told)
    );
    Ok(Measured { value: hidden, text })
}

/// From that time until the last byte was acknowledged.
fn goodput_after(at: &str, seconds: f64, of: &[String], cells: &Cells) -> Result<Measured, Absent> {
    let [one, other] = of else { return Err(nothing("two schemes are compared")) };
    let rate = |scheme: &String| {
        let mut rates = Vec::new();
        for cell in runs(at, std::slice::from_ref(scheme), cells)? {
            let (times, acked) = (column(cell, "time_s")?, column(cell, "acked_bytes")?);
            let begin = times.iter().position(|time| *time >= seconds).unwrap_or(0);
            let most = acked.last().copied().unwrap_or(0.0);
            let end = acked.iter().position(|bytes| *bytes >= most).unwrap_or(begin);
            if end > begin {
                rates.push(8.0 * (acked[end] - acked[begin]) / (times[end] - times[begin]));
            }
        }
        stats::mean(&rates).ok_or_else(|| nothing("nothing was left to send at that time"))
    };
    let (one, other) = (rate(one)?, rate(other)?);
    let show = |rate| Metric::Goodput.show(rate);
    Ok(Measured {
        value: one / other,
        text: format!("{}: {} over {}", number(one / other), show(one), show(other)),
    })
}

/// A row of the downlink's series is the time between two packets.
fn bursts(of: &[String], cells: &Cells) -> Result<Measured, Absent> {
    let mut counts: Vec<u64> = Vec::new();
    for cell in runs("", of, cells)? {
        let link = cell.run.links.iter().find(|link| link.name.ends_with(".down"));
        let dropped = link.and_then(|link| link.series.get("dropped_packets"));
        let dropped = dropped.ok_or_else(|| nothing("the run has no downlink"))?;
        for run in dropped.split(|count| *count == 0.0) {
            let length = run.iter().sum::<f64>() as usize;
            if length > 0 {
                counts.resize(counts.len().max(length), 0);
                counts[length - 1] += 1;
            }
        }
    }
    let text = counts.iter().zip(1..).map(|(count, length)| format!("{count} of {length}"));
    Ok(Measured { value: counts.len() as f64, text: text.collect::<Vec<_>>().join(", ") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::experiment::Values;
    use crate::synthetic;

    fn cell(columns: &[(&str, &[f64])], goodput: f64) -> Cell {
        let mut run = synthetic::run("newreno+meld-de", 1);
        run.flows.truncate(1);
        run.flows[0].series.columns = columns
            .iter()
            .map(|(name, values)| ranpace_sim::Column { name: (*name).to_owned(), values: values.to_vec() })
            .collect();
        Cell::new(Values::new(), run).with(Metric::AckedRate, goodput)
    }

    fn cells(entries: Vec<(&str, &str, Cell)>) -> Cells {
        let mut cells = Cells::default();
        for (scheme, point, cell) in entries {
            cells.enter(scheme, point, Ok(cell));
        }
        cells
    }

    fn value(function: &MeldFunction, of: &[&str], cells: &Cells) -> f64 {
        let of: Vec<String> = of.iter().map(|scheme| (*scheme).to_owned()).collect();
        call(function, &of, cells).unwrap().value
    }

    #[test]
    fn gains_are_those_of_means() {
        let cells = cells(vec![
            ("plain", "cal drop 1", cell(&[], 6e6)),
            ("plain", "cal drop 2", cell(&[], 8e6)),
            ("de", "cal drop 1", cell(&[], 14e6)),
            ("de", "cal drop 2", cell(&[], 14e6)),
            ("me", "cal drop 1", cell(&[], 12.6e6)),
            ("me", "cal drop 2", cell(&[], 12.6e6)),
            ("cubic", "cubic drop 1", cell(&[], 14e6)),
            ("cubic de", "cubic drop 1", cell(&[], 15.4e6)),
        ]);
        let distance = MeldFunction::MeldGainDistance { at: "cal".to_owned() };
        assert!((value(&distance, &["de", "me", "plain"], &cells) - 0.2).abs() < 1e-9);
        let ratio = value(&MeldFunction::MeldGainRatio, &["de", "plain", "cubic de", "cubic"], &cells);
        assert!((ratio - 10.0).abs() < 1e-9);
        let interval = MeldFunction::MeldInterval { metric: Metric::AckedRate, at: "cal".to_owned() };
        let measured = call(&interval, &["plain".to_owned()], &cells).unwrap();
        // 6 and 8: mean 7, deviation of the mean 1, t of one degree of freedom 6.314 and 12.71.
        assert!(measured.text.starts_with("plain 7.0"), "{}", measured.text);
        assert!(measured.text.contains("6.31") && measured.text.contains("12.7"), "{}", measured.text);
    }

    #[test]
    fn the_90_percent_interval_is_known_for_any_number() {
        for (freedom, expected) in
            [(1, 6.314), (20, 1.725), (21, 1.721), (30, 1.697), (39, 1.685), (120, 1.658)]
        {
            assert!((t90(freedom) - expected).abs() < 1e-3, "{freedom}: {}", t90(freedom));
        }
        assert!(t90(0).is_nan());
    }

    #[test]
    fn what_is_hidden_after_a_time_is_counted() {
        let cells = cells(vec![(
            "de",
            "stop",
            cell(
                &[
                    ("time_s", &[1.0, 2.0, 3.0, 4.0]),
                    ("state_meld_silent", &[f64::NAN, 3.0, 3.0, 5.0]),
                    ("state_meld_notified_stale", &[f64::NAN, 0.0, 0.0, 7.0]),
                ],
                1e6,
            ),
        )]);
        let after = |seconds| MeldFunction::MeldHiddenAfter { at: "stop".to_owned(), seconds };
        for (seconds, expected) in [(0.5, 5.0), (1.0, 5.0), (2.0, 2.0), (3.5, 2.0), (4.0, 0.0)] {
            assert_eq!(value(&after(seconds), &["de"], &cells), expected, "after {seconds} s");
        }
    }

    #[test]
    fn windows_that_differ_are_counted() {
        let cells = cells(vec![
            ("a", "low radio drop 1", cell(&[("cwnd_bytes", &[1.0, 2.0, f64::NAN])], 1e6)),
            ("b", "low radio drop 1", cell(&[("cwnd_bytes", &[1.0, 2.0, f64::NAN])], 1e6)),
            ("c", "low radio drop 1", cell(&[("cwnd_bytes", &[1.0, 3.0])], 1e6)),
        ]);
        let differs = MeldFunction::MeldDiffers { at: "low radio".to_owned() };
        assert_eq!(value(&differs, &["a", "b"], &cells), 0.0);
        assert_eq!(value(&differs, &["a", "c"], &cells), 2.0);
    }

    #[test]
    fn decisions_are_means_over_each_group_once() {
        let run = |silent: f64| {
            let names = ["state_meld_silent", "state_meld_silent_timeouts", "state_meld_notified"];
            let again = ("state_meld_notified_timeout_again", &[0.0][..]);
            let columns = [(names[0], &[silent][..]), (names[1], &[1.0][..]), (names[2], &[2.0][..]), again];
            cell(&columns, 1e6)
        };
        let cells = cells(vec![
            ("de", "cal drop 1", run(3.0)),
            ("de", "lit drop 1", run(10.0)),
            ("de", "cal drop 2", run(5.0)),
        ]);
        let measured = call(&MeldFunction::MeldDecisions, &["de".to_owned()], &cells).unwrap();
        assert_eq!(measured.value, 4.0);
        assert_eq!(measured.text.matches("de cal").count(), 1, "{}", measured.text);
        assert_eq!(measured.text.matches("de lit").count(), 1, "{}", measured.text);
    }

    #[test]
    fn goodput_after_a_time_ends_with_the_last_byte() {
        let times: &[f64] = &[1.0, 2.0, 3.0, 4.0, 5.0];
        let cells = cells(vec![
            ("a", "stop", cell(&[("time_s", times), ("acked_bytes", &[0.0, 1e6, 3e6, 5e6, 5e6])], 1e6)),
            ("b", "stop", cell(&[("time_s", times), ("acked_bytes", &[0.0, 1e6, 2e6, 3e6, 4e6])], 1e6)),
        ]);
        let after = MeldFunction::MeldGoodputAfter { at: "stop".to_owned(), seconds: 2.0 };
        assert!((value(&after, &["a", "b"], &cells) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn bursts_are_rows_in_a_row() {
        let mut run = synthetic::run("udp", 1);
        run.links.truncate(1);
        run.links[0].name = "phone.down".to_owned();
        let dropped = vec![0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0];
        run.links[0].series.columns =
            vec![ranpace_sim::Column { name: "dropped_packets".to_owned(), values: dropped }];
        let cells = cells(vec![("ping", "drop 1", Cell::new(Values::new(), run))]);
        let measured = call(&MeldFunction::MeldBursts, &["ping".to_owned()], &cells).unwrap();
        assert_eq!((measured.value, measured.text.as_str()), (2.0, "2 of 1, 1 of 2"));
    }
}
