//! Round-trip time and retransmission timeout.
//!
//! Source: RFC 6298 as computed by Linux (`tcp_rtt_estimator`): gains 1/8 and 1/4, a variance that falls only once per round
//! and is never below `min_rto`, and a deviation that shrinking RTTs do not enlarge. Optionally as in the RFC itself.

use ranpace_units::{Span, Time};

use crate::config::{Config, RtoRule};

/// Estimator state.
#[derive(Clone, Debug)]
pub struct Rtt {
    rule: RtoRule,
    initial_rto: Span,
    latest: Option<Span>,
    min: MinFilter,
    min_smoothed: Span,
    mean_deviation: Span,
    /// Largest deviation of the current round.
    round_deviation: Span,
    /// The round ends when this sequence number is acknowledged.
    round_end: u64,
    srtt: Span,
    variance: Span,
    min_rto: Span,
    max_rto: Span,
}

impl Rtt {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            rule: config.rto,
            srtt: Span::ZERO,
            mean_deviation: Span::ZERO,
            round_deviation: Span::ZERO,
            variance: Span::ZERO,
            round_end: 0,
            latest: None,
            min: MinFilter::default(),
            min_smoothed: Span::MAX,
            min_rto: config.min_rto,
            initial_rto: config.initial_rto,
            max_rto: config.max_rto,
        }
    }

    /// Processes a sample. `una` and `next` are the sender's sequence numbers; they delimit rounds.
    pub(crate) fn on_sample(&mut self, sample: Span, una: u64, next: u64) {
        let sample = sample.max(Span::from_nanos(1));
        if self.rule == RtoRule::Rfc6298 {
            self.on_plain_sample(sample);
        } else if self.srtt.is_zero() {
            self.srtt = sample;
            self.mean_deviation = sample / 2;
            self.variance = self.mean_deviation.max(self.min_rto / 4);
            self.round_deviation = self.variance;
            self.round_end = next;
        } else {
            let error = sample.abs_diff(self.srtt);
            if sample < self.srtt {
                self.srtt -= error / 8;
                // Linux damps the rise of the deviation eightfold while the RTT falls.
                if error > self.mean_deviation {
                    self.mean_deviation += (error - self.mean_deviation) / 32;
                } else {
                    self.mean_deviation -= (self.mean_deviation - error) / 4;
                }
            } else {
                self.srtt += error / 8;
                self.mean_deviation = self.mean_deviation - self.mean_deviation / 4 + error / 4;
            }
            if self.mean_deviation > self.round_deviation {
                self.round_deviation = self.mean_deviation;
                self.variance = self.variance.max(self.round_deviation);
            }
            if una > self.round_end {
                if self.round_deviation < self.variance {
                    self.variance = self.variance - (self.variance - self.round_deviation) / 4;
                }
                self.round_end = next;
                self.round_deviation = self.min_rto / 4;
            }
        }
        self.min_smoothed = self.min_smoothed.min(self.srtt);
    }

    /// RFC 6298, 2.2 and 2.3.
    fn on_plain_sample(&mut self, sample: Span) {
        if self.srtt.is_zero() {
            (self.srtt, self.variance) = (sample, sample / 2);
        } else {
            self.variance = self.variance - self.variance / 4 + sample.abs_diff(self.srtt) / 4;
            self.srtt = self.srtt - self.srtt / 8 + sample / 8;
        }
    }

    /// Records a sample for the minimum and the latest value. A sample that the receiver's timer may have `delayed` does not
    /// become the minimum when an older one expires (Linux `tcp_update_rtt_min`).
    pub(crate) fn note(&mut self, now: Time, sample: Span, delayed: bool) {
        self.latest = Some(sample);
        if !delayed || sample <= self.min.value() {
            self.min.update(now, sample);
        }
    }

    /// The handshake gave no sample: its segments were retransmitted (RFC 6298, 5.7).
    pub(crate) fn on_ambiguous_handshake(&mut self) {
        self.initial_rto = self.initial_rto.max(Span::from_secs(3)).min(self.max_rto);
    }

    /// Smoothed RTT; zero before the first sample.
    pub fn smoothed(&self) -> Span {
        self.srtt
    }

    /// The latest sample.
    pub fn latest(&self) -> Option<Span> {
        self.latest
    }

    /// Smallest RTT of the last 300 s (Linux `tcp_min_rtt_wlen`); [`Span::MAX`] before the first sample.
    pub fn min(&self) -> Span {
        self.min.value()
    }

    /// Smallest [`Self::smoothed`]; [`Span::MAX`] before the first sample.
    pub fn min_smoothed(&self) -> Span {
        self.min_smoothed
    }

    /// Reads its part for [`crate::prefetch`].
    #[inline]
    pub(crate) fn read_state(&self) -> u64 {
        self.min().as_nanos() ^ self.round_end
    }

    /// The timeout without backoff.
    pub(crate) fn rto(&self) -> Span {
        if self.srtt.is_zero() {
            return self.initial_rto;
        }
        let variance = self.variance * 4;
        let rto = match self.rule {
            RtoRule::Linux => self.srtt + variance.max(self.min_rto),
            RtoRule::Rfc6298 => (self.srtt + variance.max(CLOCK)).max(self.min_rto),
        };
        rto.min(self.max_rto)
    }

    /// The timeout after `backoffs` consecutive timeouts.
    pub(crate) fn backed_off(&self, backoffs: u32) -> Span {
        (self.rto() * (1_u64 << backoffs.min(20))).min(self.max_rto)
    }
}

/// Granularity of the clock in RFC 6298's timeout (ns-3's `ClockGranularity`).
const CLOCK: Span = Span::from_millis(1);

/// Minimum over a window in three samples (Linux `minmax`).
#[derive(Clone, Debug)]
struct MinFilter {
    best: [(Time, Span); 3],
}

const WINDOW: Span = Span::from_secs(300);

impl Default for MinFilter {
    fn default() -> Self {
        Self { best: [(Time::ZERO, Span::MAX); 3] }
    }
}

impl MinFilter {
    fn value(&self) -> Span {
        self.best[0].1
    }

    #[inline]
    fn update(&mut self, now: Time, value: Span) {
        let sample = (now, value);
        if value <= self.best[0].1 || now - self.best[2].0 > WINDOW {
            self.best = [sample; 3];
            return;
        }
        if value <= self.best[1].1 {
            self.best[1] = sample;
            self.best[2] = sample;
        } else if value <= self.best[2].1 {
            self.best[2] = sample;
        }
        let age = now - self.best[0].0;
        if age > WINDOW {
            self.best = [self.best[1], self.best[2], sample];
            if now - self.best[0].0 > WINDOW {
                self.best = [self.best[1], self.best[2], sample];
            }
        } else if self.best[1].0 == self.best[0].0 && age > WINDOW / 4 {
            self.best[1] = sample;
            self.best[2] = sample;
        } else if self.best[2].0 == self.best[1].0 && age > WINDOW / 2 {
            self.best[2] = sample;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rto_is_srtt_and_at_least_200_ms() {
        let mut rtt = Rtt::new(&Config::default());
        assert_eq!(rtt.rto(), Span::SECOND);
        for i in 0..200 {
            rtt.on_sample(Span::from_millis(50), i, i + 10);
        }
        assert_eq!(rtt.smoothed(), Span::from_millis(50));
        assert_eq!(rtt.rto(), Span::from_millis(250));
        assert_eq!(rtt.backed_off(2), Span::from_millis(1_000));
        assert_eq!(rtt.backed_off(60), Span::from_secs(120));
    }

    #[test]
    fn first_sample_gives_three_times_itself() {
        // RFC 6298 (2.2): RTTVAR = R / 2, RTO = R + 4 R / 2.
        let mut rtt = Rtt::new(&Config::default());
        rtt.on_sample(Span::from_millis(400), 0, 1);
        assert_eq!(rtt.rto(), Span::from_millis(1_200));
    }

    #[test]
    fn minimum_forgets_after_its_window() {
        let mut rtt = Rtt::new(&Config::default());
        rtt.note(Time::from_secs(1), Span::from_millis(10), false);
        rtt.note(Time::from_secs(100), Span::from_millis(30), false);
        rtt.note(Time::from_secs(200), Span::from_millis(30), false);
        assert_eq!(rtt.min(), Span::from_millis(10));
        rtt.note(Time::from_secs(302), Span::from_millis(30), false);
        assert_eq!(rtt.min(), Span::from_millis(30));
    }
}
