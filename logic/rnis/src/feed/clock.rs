//! The offset between a server's clock and a subscriber's, from exchanges as in NTP (RFC 5905, section 8).
//!
//! Of the last [`SAMPLES`] exchanges the one with the least uncertainty counts: half of its round trip, and [`DRIFT_PPM`] of the time
//! since then. Ours: the drift, twice what crystals of computers have.

use ranpace_units::{Span, Time};

/// Exchanges that are kept.
pub const SAMPLES: usize = 8;
/// Most that two clocks drift apart, in parts per million.
pub const DRIFT_PPM: u64 = 100;

/// An offset of clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// The server's clock minus the subscriber's, in nanoseconds.
    pub nanos: i64,
    /// Largest error, if the path is as fast one way as the other.
    pub uncertainty: Span,
}

impl Offset {
    /// A time of the server's clock on the subscriber's.
    pub fn local(&self, of_server: Time) -> Time {
        let nanos = i128::from(of_server.as_nanos()) - i128::from(self.nanos);
        Time::from_nanos(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX))
    }
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    nanos: i64,
    round_trip: Span,
    at: Time,
}

/// Estimates an offset.
#[derive(Clone, Debug, Default)]
pub struct OffsetEstimate {
    samples: [Option<Sample>; SAMPLES],
    next: usize,
}

impl OffsetEstimate {
    /// An exchange: sent and arrived on the subscriber's clock, received and answered on the server's. Returns false, without
    /// effect, if the times contradict each other.
    pub fn on_exchange(&mut self, sent: Time, received: Time, answered: Time, arrived: Time) -> bool {
        let (Some(all), Some(inside)) = (arrived.checked_since(sent), answered.checked_since(received))
        else {
            return false;
        };
        if inside > all {
            return false;
        }
        let nanos = |time: Time| i128::from(time.as_nanos());
        let offset = (nanos(received) - nanos(sent) + nanos(answered) - nanos(arrived)) / 2;
        let Ok(nanos) = i64::try_from(offset) else { return false };
        self.samples[self.next] = Some(Sample { nanos, round_trip: all - inside, at: arrived });
        self.next = (self.next + 1) % SAMPLES;
        true
    }

    /// The offset; `None` before the first exchange.
    pub fn offset(&self, now: Time) -> Option<Offset> {
        let of = |sample: &Sample| Offset {
            nanos: sample.nanos,
            uncertainty: sample.round_trip / 2 + (now - sample.at).scale(DRIFT_PPM, 1_000_000),
        };
        self.samples.iter().flatten().map(of).min_by_key(|offset| offset.uncertainty)
    }

    /// The shortest round trip of the exchanges; `None` before the first.
    pub fn round_trip(&self) -> Option<Span> {
        self.samples.iter().flatten().map(|sample| sample.round_trip).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn us(us: u64) -> Time {
        Time::from_nanos(us * 1_000)
    }

    #[test]
    fn the_least_uncertain_exchange_counts_until_it_is_old() {
        let mut estimate = OffsetEstimate::default();
        assert_eq!((estimate.offset(us(0)), estimate.round_trip()), (None, None));
        // The server's clock is 5 s ahead. The answer takes 300 us, the request 100, so the estimate is off by 100.
        assert!(estimate.on_exchange(us(1_000), us(5_001_100), us(5_001_150), us(1_450)));
        let first = estimate.offset(us(1_450)).unwrap();
        assert_eq!((first.nanos, first.uncertainty), (4_999_900_000, Span::from_micros(200)));
        assert!(first.local(us(5_001_150)) == us(1_250));
        // A faster exchange replaces it at once.
        assert!(estimate.on_exchange(us(2_000), us(5_002_010), us(5_002_010), us(2_020)));
        let second = estimate.offset(us(2_020)).unwrap();
        assert_eq!((second.nanos, second.uncertainty), (5_000_000_000, Span::from_micros(10)));
        // 100 ppm of 10 s are 1 ms: by then an exchange of 400 us is the better one.
        assert!(estimate.on_exchange(us(10_000_000), us(15_000_300), us(15_000_300), us(10_000_400)));
        assert_eq!(estimate.offset(us(10_000_400)).unwrap().nanos, 5_000_100_000);
        assert_eq!(estimate.round_trip(), Some(Span::from_micros(20)));
    }

    #[test]
    fn contradicting_times_are_left_out() {
        let mut estimate = OffsetEstimate::default();
        for (case, [sent, received, answered, arrived]) in [
            ("arrived before it was sent", [5, 10, 10, 4]),
            ("answered before it was received", [5, 10, 9, 6]),
            ("longer at the server than away", [5, 10, 20, 14]),
            ("further apart than an offset can say", [0, u64::MAX / 1_000, u64::MAX / 1_000, 1]),
        ] {
            assert!(!estimate.on_exchange(us(sent), us(received), us(answered), us(arrived)), "{case}");
        }
        assert_eq!(estimate.offset(us(9)), None);
    }

    proptest! {
        /// Whatever the delays of both ways, the error is within the uncertainty.
        #[test]
        fn the_error_is_within_the_uncertainty(
            offset in -1_000_000_000i64..1_000_000_000, exchanges in proptest::collection::vec((0..10_000u64, 0..10_000u64), 1..20)
        ) {
            let mut estimate = OffsetEstimate::default();
            let mut now = 10_000_000u64;
            for (there, back) in exchanges {
                let server = |time: u64| us((time as i64 + offset / 1_000 + 2_000_000) as u64);
                let arrived = now + there + back;
                prop_assert!(estimate.on_exchange(us(now), server(now + there), server(now + there), us(arrived)));
                let found = estimate.offset(us(arrived)).unwrap();
                let error = (found.nanos - (offset / 1_000 + 2_000_000) * 1_000).unsigned_abs();
                prop_assert!(error <= found.uncertainty.as_nanos() + 1);
                now = arrived + 1_000_000;
            }
        }
    }
}
