//! How much of a content has come by when, for plots.

use std::time::Duration;

/// Interval of the points at first.
const FIRST_INTERVAL: Duration = Duration::from_millis(10);
/// Most points. When there are as many, every second one goes, and the interval doubles.
const MOST_POINTS: usize = 4_096;

/// Bytes that have come since the beginning, at most one point per interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rates {
    interval: Duration,
    points: Vec<(Duration, u64)>,
}

impl Default for Rates {
    fn default() -> Self {
        Self { interval: FIRST_INTERVAL, points: Vec::new() }
    }
}

impl Rates {
    /// `bytes` have come in all, `at` this time after the beginning.
    pub fn record(&mut self, at: Duration, bytes: u64) {
        if self.points.len() >= MOST_POINTS {
            let mut keep = false;
            self.points.retain(|_| {
                keep = !keep;
                keep
            });
            self.interval *= 2;
        }
        let slot = |time: Duration| time.as_nanos() / self.interval.as_nanos();
        match self.points.last_mut() {
            Some(last) if slot(last.0) == slot(at) => *last = (at, bytes),
            _ => self.points.push((at, bytes)),
        }
    }

    /// The points, by time.
    pub fn points(&self) -> &[(Duration, u64)] {
        &self.points
    }

    /// Rate in bit/s from one interval's end to the next, by the later end in seconds. Intervals are at least this long.
    pub fn rates(&self, least: Duration) -> Vec<(f64, f64)> {
        let (mut rates, mut before) = (Vec::new(), (Duration::ZERO, 0));
        for point in &self.points {
            if point.0 - before.0 >= least {
                let seconds = (point.0 - before.0).as_secs_f64();
                rates.push((point.0.as_secs_f64(), (point.1 - before.1) as f64 * 8.0 / seconds));
                before = *point;
            }
        }
        rates
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_point_of_an_interval_stays_and_hours_take_no_more_memory() {
        let mut rates = Rates::default();
        for ms in 0..3_600_000_u64 {
            rates.record(Duration::from_millis(ms), 1_000 * (ms + 1));
        }
        assert!(rates.points().len() <= MOST_POINTS);
        let last = (Duration::from_millis(3_599_999), 3_600_000_000);
        assert_eq!(rates.points().last(), Some(&last));
        // 1 MB/s are 8 Mbit/s.
        let rates = rates.rates(Duration::from_secs(10));
        assert!(rates.len() > 300, "{}", rates.len());
        assert!(rates.iter().all(|(_, rate)| (rate / 8e6 - 1.0).abs() < 1e-3), "{rates:?}");
    }
}
