//! Figures of losses and of delay outside outages, from the series.

use super::scope::Scope;
use super::{Entry, each, needs};
use crate::figures::Quantity::{Plain, Time};

pub(super) const FIGURES: &[Entry] = &[
    // A row of the downlink's series is the time between two packets.
    each("loss_bursts", Plain, "How many packets the downlink lost in a row, each time.", |scope| {
        let link = scope.run.links.iter().find(|link| link.name.ends_with(".down"));
        let dropped = link.and_then(|link| link.series.get("dropped_packets"));
        let dropped = dropped.ok_or_else(|| "the run has no downlink".to_owned())?;
        let lengths = dropped.split(|count| *count == 0.0).map(|burst| burst.iter().sum::<f64>().trunc());
        Ok(lengths.filter(|length| *length > 0.0).collect())
    }),
    needs(
        "delay_p95_outside_outages",
        Time,
        "95th percentile of the delay outside outages: seconds with a capacity below 0.2 Mbit/s and the 2 s after them.",
        p95_outside_outages,
    ),
];

/// From the series: means over the sampling interval, weighted by the link's departures in it.
fn p95_outside_outages(scope: &Scope<'_>) -> Result<f64, String> {
    /// A second with less than this is an outage; from the specification.
    const OUTAGE: f64 = 0.2e6;
    /// Seconds after an outage that are also left out; from the specification.
    const AFTER: usize = 2;
    let missing = || "the run has no such series".to_owned();
    let flow = scope.first()?;
    let link = flow.bottleneck.and_then(|link| scope.run.links.get(link)).ok_or_else(missing)?;
    let column = |name: &str| link.series.get(name).ok_or_else(missing);
    let (times, capacity, departed) =
        (column("time_s")?, column("capacity_bit_s")?, column("departed_bit_s")?);
    let delay = flow.series.get("queueing_delay_mean_s").ok_or_else(missing)?;
    // A row covers the interval that ends at its time.
    let seconds: Vec<usize> = times.iter().map(|time| (time - 1e-6).max(0.0) as usize).collect();
    let count = seconds.last().map_or(0, |last| last + 1);
    let (mut sums, mut rows) = (vec![0.0; count], vec![0.0; count]);
    for (second, capacity) in seconds.iter().zip(capacity) {
        sums[*second] += capacity;
        rows[*second] += 1.0;
    }
    let outage = |second: usize| sums[second] / f64::max(rows[second], 1.0) < OUTAGE;
    let left_out = |second: usize| (second.saturating_sub(AFTER)..=second).any(outage);
    let mut packets: Vec<(f64, f64)> = seconds
        .iter()
        .zip(delay.iter().zip(departed))
        .filter(|(second, (delay, departed))| !left_out(**second) && delay.is_finite() && **departed > 0.0)
        .map(|(_, (delay, departed))| (*delay, *departed))
        .collect();
    packets.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total: f64 = packets.iter().map(|packet| packet.1).sum();
    let mut below = 0.0;
    for (delay, weight) in packets {
        below += weight;
        if below >= 0.95 * total {
            return Ok(delay);
        }
    }
    Err(missing())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;
    use ranpace_sim::Column;

    #[test]
    fn outages_and_the_time_after_them_do_not_count() {
        let mut run = synthetic::run("cubic", 1);
        let rows = 100;
        let column = |name: &str, value: fn(usize) -> f64| Column {
            name: name.to_owned(),
            values: (1..=rows).map(value).collect(),
        };
        // 10 s in rows of 100 ms; nothing flows in second 3, and the queue is full until the end of second 5.
        run.links[0].series.columns = vec![
            column("time_s", |row| row as f64 / 10.0),
            column("capacity_bit_s", |row| if (31..=40).contains(&row) { 0.0 } else { 5e6 }),
            column("departed_bit_s", |row| if (31..=40).contains(&row) { 0.0 } else { 5e6 }),
        ];
        run.flows[0].series.columns =
            vec![column("queueing_delay_mean_s", |row| if (31..=60).contains(&row) { 1.0 } else { 0.05 })];
        run.flows[0].bottleneck = Some(0);
        assert_eq!(p95_outside_outages(&Scope::of(&run)), Ok(0.05));
    }
}
