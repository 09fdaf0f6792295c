//! Figures of a sequence trace and of a recovery (Zhong 2020, section 4.3), and of the reports in acknowledgements (section 5.6).
//! Windows and tolerances are ours where the thesis shows curves; they were fixed before the first runs.

use ranpace_sim::FlowResult;

use super::scope::Scope;
use super::series::{between, column, row_count};
use super::{Entry, each, needs};
use crate::figures::Quantity::{Plain, Share, Size, Time};
use crate::stats;

pub(super) const FIGURES: &[Entry] = &[
    needs(
        "vertical_gap",
        Plain,
        "Mean relative distance of the sequence trace's vertical gap from the bytes in flight.",
        vertical_gap,
    ),
    needs(
        "horizontal_gap",
        Plain,
        "Mean relative distance of the sequence trace's horizontal gap from the RTT.",
        horizontal_gap,
    ),
    needs(
        "recovery_time",
        Time,
        "From the place `rise` until 95 % of the place `most` packets are in flight; to the place `until` at most.",
        recovery_time,
    ),
    each("sent_once", Size, "Bytes that each flow sent, each counted once.", |scope| {
        Ok(scope.run.flows.iter().map(|flow| flow.totals.sent_once.as_f64()).collect())
    }),
    needs(
        "report_bytes",
        Size,
        "Bytes that the way back carried beyond plain acknowledgements.",
        report_bytes,
    ),
    needs(
        "report_bytes_error",
        Share,
        "Relative distance of `report_bytes` from 4 B a segment of 1400 B of the place `size`.",
        |scope| {
            const PAYLOAD: f64 = 1_400.0;
            const REPORT: f64 = 4.0;
            let expected = REPORT * (scope.place("size")? / PAYLOAD).ceil();
            Ok((report_bytes(scope)? / expected - 1.0).abs())
        },
    ),
];

/// Rows without retransmissions for a second, from 2 s on.
fn quiet(flow: &FlowResult) -> Result<Vec<usize>, String> {
    let (time, again) = (column(flow, "time_s")?, column(flow, "retransmitted_packets")?);
    let back = row_count(time, 1.0).ok_or_else(|| "the run has no rows".to_owned())?;
    let begin = between(time, 2.0, f64::MAX).start.max(back);
    Ok((begin..time.len()).filter(|row| again[*row] == again[*row - back]).collect())
}

fn mean(errors: &[f64]) -> Result<f64, String> {
    stats::mean(errors).ok_or_else(|| "the run has no row without retransmissions".to_owned())
}

fn vertical_gap(scope: &Scope<'_>) -> Result<f64, String> {
    let flow = scope.first()?;
    let (sent, acked) = (column(flow, "sent_bytes")?, column(flow, "acked_bytes")?);
    let flight = column(flow, "in_flight_bytes")?;
    let rows = quiet(flow)?.into_iter().filter(|row| flight[*row] > 0.0);
    let errors: Vec<f64> = rows.map(|row| ((sent[row] - acked[row]) / flight[row] - 1.0).abs()).collect();
    mean(&errors)
}

/// When the bytes acknowledged now were sent, interpolated between rows.
fn horizontal_gap(scope: &Scope<'_>) -> Result<f64, String> {
    let flow = scope.first()?;
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
    mean(&errors)
}

fn recovery_time(scope: &Scope<'_>) -> Result<f64, String> {
    let flow = scope.first()?;
    let (time, flight) = (column(flow, "time_s")?, column(flow, "in_flight_bytes")?);
    let (rise, until) = (scope.place("rise")?, scope.place("until")?);
    let most = scope.place("most")? * scope.place("payload")?;
    let reached = between(time, rise, until).find(|row| flight[*row] >= 0.95 * most);
    Ok(reached.map_or(until, |row| time[row]) - rise)
}

fn report_bytes(scope: &Scope<'_>) -> Result<f64, String> {
    /// Headers of an acknowledgement: IPv4, TCP, and its timestamps.
    const HEADERS: f64 = 20.0 + 20.0 + 12.0;
    let back = scope.run.links.iter().find(|link| link.name.ends_with(".back"));
    let back = back.ok_or_else(|| "the run has no way back".to_owned())?;
    if scope.first()?.dropped_packets > 0 {
        return Err("packets were lost".to_owned());
    }
    Ok(back.departed.as_f64() - HEADERS * back.departed_packets as f64)
}

#[cfg(test)]
#[path = "sequence_tests.rs"]
mod tests;
