//! Figures of uploads: SIGMA's experiments (Diarra 2022, section 3.2.5).
//!
//! The place `rtt` is a round trip, the place `bdp` a bandwidth-delay product. Bytes in flight are those of the series' rows.

use ranpace_sim::FlowResult;

use super::scope::Scope;
use super::series::column;
use super::{Entry, each, needs};
use crate::figures::Quantity::Plain;

pub(super) const FIGURES: &[Entry] = &[
    each(
        "in_flight_over_bdp",
        Plain,
        "Bytes that the first flow has in flight over `bdp`, row by row from two round trips after its first data until all is sent.",
        in_flight,
    ),
    needs(
        "last_over_first",
        Plain,
        "The slowest flow's time over the fastest one's, each from the first data to the last acknowledgement.",
        |scope| {
            let each = scope.run.flows.iter().map(time).collect::<Result<Vec<_>, _>>()?;
            let ends = each
                .iter()
                .fold((f64::INFINITY, 0.0_f64), |ends, time| (ends.0.min(*time), ends.1.max(*time)));
            Ok(ends.1 / ends.0)
        },
    ),
    // Data in flight that are only queued do not count.
    needs(
        "take_up",
        Plain,
        "Round trips from the moment at which all of the second flow has arrived until the first flow has taken what that released: 0.9 of the rate `alone` arrives of it in a round trip. Infinite if it never does.",
        |scope| Ok(take_up(scope)?.unwrap_or(f64::INFINITY)),
    ),
    needs(
        "take_up_at_least",
        Plain,
        "The same as `take_up`; where the first flow never gets there, the round trips until it has sent all, which is less than it would take.",
        |scope| Ok(take_up(scope)?.unwrap_or_else(|rounds| rounds)),
    ),
];

/// Released capacity counts as taken at this part of the rate of an upload alone; from the specification.
const TAKEN: f64 = 0.9;

/// Bytes that a flow should send.
fn size(flow: &FlowResult) -> f64 {
    flow.transfers.iter().map(|transfer| transfer.size.as_f64()).sum()
}

/// From the first data to the last acknowledgement, for a flow that was fully acknowledged.
fn time(flow: &FlowResult) -> Result<f64, String> {
    let totals = &flow.totals;
    match (totals.first_sent, totals.last_acked) {
        (Some(from), Some(to)) if totals.acked.as_f64() >= size(flow) => Ok(to.since(from).as_secs_f64()),
        _ => Err("a flow was not complete".to_owned()),
    }
}

fn in_flight(scope: &Scope<'_>) -> Result<Vec<f64>, String> {
    let (flow, bdp, rtt) = (scope.first()?, scope.place("bdp")?, scope.place("rtt")?);
    let begin = flow.totals.first_sent.ok_or_else(|| "nothing was sent".to_owned())?;
    let (from, all) = (begin.as_secs_f64() + 2.0 * rtt, size(flow));
    let sent = column(flow, "time_s")?.iter().zip(column(flow, "sent_bytes")?);
    let inside = sent.zip(column(flow, "in_flight_bytes")?);
    let inside = inside.filter(|((time, sent), _)| **time >= from && **sent < all);
    let found: Vec<f64> = inside.map(|(_, in_flight)| in_flight / bdp).collect();
    if found.is_empty() { Err("it was over before the third round trip".to_owned()) } else { Ok(found) }
}

/// Round trips until the first flow uses what the second one released; `Err` with those until everything was sent if it never does.
fn take_up(scope: &Scope<'_>) -> Result<Result<f64, f64>, String> {
    let (alone, rtt) = (scope.place("alone")?, scope.place("rtt")?);
    let second = scope.run.flows.get(1).and_then(|flow| flow.transfers.last());
    let released = second
        .and_then(|transfer| Some((transfer.start + transfer.completion?).as_secs_f64()))
        .ok_or_else(|| "the second flow was not complete".to_owned())?;
    let first = scope.first()?;
    let rows =
        column(first, "time_s")?.iter().copied().zip(column(first, "delivered_bytes")?.iter().copied());
    let rows: Vec<(f64, f64)> = rows.filter(|(time, _)| *time >= released).collect();
    Ok(taken_up(&rows, size(first), rtt, TAKEN * alone / 8.0))
}

/// From the first row on: the first time at which this many bytes per second arrive over a round trip. Rows are times and arrived
/// bytes; a remainder of less than a round trip's worth says nothing.
fn taken_up(rows: &[(f64, f64)], size: f64, rtt: f64, rate: f64) -> Result<f64, f64> {
    let begin = rows.first().map_or(0.0, |(time, _)| *time);
    let mut last = 0.0;
    for (index, (time, arrived)) in rows.iter().enumerate() {
        last = (time - begin) / rtt;
        let Some((end, until)) = rows[index..].iter().find(|(end, _)| *end >= time + rtt - 1e-9) else {
            break;
        };
        if (until - arrived) / (end - time) >= rate {
            return Ok(last);
        }
        if *until >= size {
            break;
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn released_capacity_is_taken_once_it_arrives_for_a_round_trip() {
        // Rows each 5 ms, a round trip of 10 ms: half of 100 kB/s for 20 ms, then all of it.
        let at = |row: u32| {
            (0.005 * f64::from(row), 250.0 * f64::from(row.min(4)) + 500.0 * f64::from(row.saturating_sub(4)))
        };
        let rows: Vec<(f64, f64)> = (0..20).map(at).collect();
        let found = taken_up(&rows, 1e6, 0.01, 90_000.0).unwrap();
        assert!((found - 2.0).abs() < 1e-9, "{found}");
        assert!(taken_up(&rows, 1e6, 0.01, 110_000.0).is_err());
        assert_eq!(taken_up(&rows, 1e6, 0.01, 40_000.0), Ok(0.0));
    }
}
