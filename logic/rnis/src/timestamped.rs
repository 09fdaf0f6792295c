//! Values with the time of their measurement.

use ranpace_units::{Span, Time};

/// A value with the time of its measurement, not of its arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamped<T> {
    /// The value.
    pub value: T,
    /// When it was measured.
    pub measured_at: Time,
}

impl<T> Timestamped<T> {
    /// A value measured at this time.
    pub const fn new(value: T, measured_at: Time) -> Self {
        Self { value, measured_at }
    }

    /// Its age; zero if its time lies in the future, as with slightly different clocks.
    pub fn age(&self, now: Time) -> Span {
        now.checked_since(self.measured_at).unwrap_or(Span::ZERO)
    }

    /// The value, if it is not older than `limit`.
    pub fn fresh(&self, now: Time, limit: Span) -> Option<&T> {
        (self.age(now) <= limit).then_some(&self.value)
    }

    /// Maps the value, keeping its time.
    pub fn map<U>(self, to: impl FnOnce(T) -> U) -> Timestamped<U> {
        Timestamped { value: to(self.value), measured_at: self.measured_at }
    }
}

/// The age from which a mechanism no longer uses radio information. Ours; the publications do not state any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StalenessLimit {
    /// MELD notifies every loss: after 3 periods, at least 50 ms.
    Meld,
    /// RAPID holds its state: after 3 periods, at least 100 ms.
    RapidHold,
    /// RAPID passes connections through: after 3 periods, at least 1 s.
    RapidOpen,
    /// SIGMA falls back to CUBIC: after 4 times the connection's smallest RTT, at least 100 ms.
    Sigma {
        /// The connection's smallest RTT.
        rtt_min: Span,
    },
}

impl StalenessLimit {
    /// The limit with a feed of this period.
    pub fn limit(self, period: Span) -> Span {
        match self {
            Self::Meld => (period * 3).max(Span::from_millis(50)),
            Self::RapidHold => (period * 3).max(Span::from_millis(100)),
            Self::RapidOpen => (period * 3).max(Span::SECOND),
            Self::Sigma { rtt_min } => (rtt_min * 4).max(Span::from_millis(100)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Span {
        Span::from_millis(ms)
    }

    #[test]
    fn a_value_is_fresh_up_to_its_limit() {
        let at = Time::ZERO + ms(1000);
        let value = Timestamped::new(7, at);
        assert_eq!(value.fresh(at + ms(50), ms(50)), Some(&7));
        assert_eq!(value.fresh(at + ms(51), ms(50)), None);
        assert_eq!((value.age(at + ms(3)), value.age(Time::ZERO)), (ms(3), Span::ZERO));
        assert_eq!(value.map(|value| value + 1), Timestamped::new(8, at));
    }

    #[test]
    fn who_waits_for_how_long_after_the_feed_stopped() {
        // What the mechanisms do from 50, 100 and 1000 ms on, with the usual period of 8 ms; and with a slow feed.
        let sigma = |rtt| StalenessLimit::Sigma { rtt_min: ms(rtt) };
        for (patience, period, limit) in [
            (StalenessLimit::Meld, 8, 50),
            (StalenessLimit::Meld, 20, 60),
            (StalenessLimit::RapidHold, 8, 100),
            (StalenessLimit::RapidHold, 100, 300),
            (StalenessLimit::RapidOpen, 8, 1000),
            (StalenessLimit::RapidOpen, 1000, 3000),
            (sigma(10), 1, 100),
            (sigma(40), 1, 160),
        ] {
            assert_eq!(patience.limit(ms(period)), ms(limit), "{patience:?} at {period} ms");
        }
    }
}
