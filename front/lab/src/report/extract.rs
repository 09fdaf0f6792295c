//! From runs to points: the inputs of plots.

use ranpace_sim::{Distribution, FlowResult, LinkResult, RunResult, Series};

/// Points of a line.
pub type Points = Vec<(f64, f64)>;

/// The flows shown: all but plain sources, unless there are no others.
pub fn flows(run: &RunResult) -> Vec<&FlowResult> {
    let chosen: Vec<&FlowResult> = run.flows.iter().filter(|flow| flow.cc != "udp").collect();
    if chosen.is_empty() { run.flows.iter().collect() } else { chosen }
}

/// The bottleneck of the first flow shown.
pub fn bottleneck(run: &RunResult) -> Option<&LinkResult> {
    flows(run).first().and_then(|flow| flow.bottleneck).and_then(|index| run.links.get(index))
}

/// A column over time; empty if it is missing.
pub fn column(series: &Series, name: &str) -> Points {
    match (series.get("time_s"), series.get(name)) {
        (Some(times), Some(values)) => times.iter().copied().zip(values.iter().copied()).collect(),
        _ => Vec::new(),
    }
}

/// One column of all flows, row by row; all series of a run have the same times.
fn over_flows(run: &RunResult, name: &str, join: impl Fn(&[f64]) -> f64) -> Points {
    let columns: Vec<Points> = flows(run).iter().map(|flow| column(&flow.series, name)).collect();
    let rows = columns.iter().map(Vec::len).min().unwrap_or(0);
    let row = |index: usize| {
        let known: Vec<f64> =
            columns.iter().map(|column| column[index].1).filter(|value| value.is_finite()).collect();
        (columns[0][index].0, if known.is_empty() { f64::NAN } else { join(&known) })
    };
    (0..rows).map(row).collect()
}

/// The sum over the flows.
pub fn sum(run: &RunResult, name: &str) -> Points {
    over_flows(run, name, |values| values.iter().sum())
}

/// The mean over the flows.
pub fn mean(run: &RunResult, name: &str) -> Points {
    over_flows(run, name, |values| values.iter().sum::<f64>() / values.len() as f64)
}

/// Bytes that the link could have carried since `start`, added to `from`; ends where it passes `until`.
pub fn ideal(link: &LinkResult, start: f64, from: f64, until: f64) -> Points {
    let mut points = vec![(start, from)];
    for (time, rate) in column(&link.series, "capacity_bit_s") {
        // `points` begins with one point and only grows.
        let (before, sum) = points.last().copied().unwrap_or((start, from));
        if time <= before || !rate.is_finite() || rate <= 0.0 {
            continue;
        }
        let next = sum + rate / 8.0 * (time - before);
        if next >= until {
            points.push((before + (until - sum) * 8.0 / rate, until));
            break;
        }
        points.push((time, next));
    }
    points
}

/// The distribution function over several flows and seeds, each weighted by its samples.
pub fn cdf<'a>(distributions: impl IntoIterator<Item = &'a Distribution>) -> Points {
    let mut weights: Points = Vec::new();
    for distribution in distributions {
        let mut below = 0.0;
        for (value, share) in &distribution.cdf {
            weights.push((value.as_secs_f64(), (share - below) * distribution.count as f64));
            below = *share;
        }
    }
    weights.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total: f64 = weights.iter().map(|point| point.1).sum();
    if total <= 0.0 {
        return Vec::new();
    }
    let mut points: Points = weights.first().map(|first| (first.0, 0.0)).into_iter().collect();
    let mut below = 0.0;
    for (value, weight) in weights {
        below += weight;
        // More than 400 steps cannot be seen.
        if points.last().is_none_or(|last| below / total - last.1 >= 0.0025) || below >= total * 0.999_999 {
            points.push((value, below / total));
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;
    use ranpace_units::Span;

    #[test]
    fn ideal_line_is_capacity_times_time() {
        let mut run = synthetic::run("cubic", 1);
        let capacity =
            run.links[0].series.columns.iter_mut().find(|column| column.name == "capacity_bit_s").unwrap();
        capacity.values.fill(8e6);
        let points = ideal(&run.links[0], 1.05, 500.0, 2e6);
        assert_eq!(points[0], (1.05, 500.0));
        let last = points.last().unwrap();
        assert!((last.0 - (1.05 + 1.999_5)).abs() < 1e-6 && last.1 == 2e6, "{last:?}");
    }

    #[test]
    fn distributions_join_by_their_samples() {
        let of = |count, value| Distribution {
            count,
            cdf: vec![(Span::from_millis(value), 1.0)],
            ..Distribution::default()
        };
        let points = cdf([&of(1, 10), &of(3, 20)]);
        assert_eq!(points, [(0.01, 0.0), (0.01, 0.25), (0.02, 1.0)]);
        assert!(cdf([&Distribution::default()]).is_empty());
    }

    #[test]
    fn flows_without_congestion_control_are_excluded() {
        let run = synthetic::run_of(&["cubic", "udp"], 1);
        assert_eq!(flows(&run).len(), 1);
        assert_eq!(sum(&run, "goodput_bit_s"), column(&run.flows[0].series, "goodput_bit_s"));
        assert!(column(&run.flows[0].series, "nothing").is_empty());
    }
}
