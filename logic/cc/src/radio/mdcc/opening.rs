//! A bound for the radio's window while it is open: a multiple of what the PEP passes in an RTT.
//!
//! Source: none; the paper leaves the start open. Ours: the segments passed by the PEP are counted over the smallest RTT to
//! the receiver, so that a queue at the base station does not raise the bound, and only while the window limits the flow.

use ranpace_units::{Span, Time};

/// Measures what the PEP passes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delivery {
    /// Start of the current measurement, and segments since.
    since: Option<Time>,
    segments: u64,
    per_rtt: Option<f64>,
}

impl Delivery {
    /// Records a report of `segments` newly seen segments; `rtt` is the smallest RTT to the receiver.
    pub fn on_report(&mut self, now: Time, segments: u64, rtt: Span, limited: bool) {
        let Some(since) = self.since.filter(|_| limited) else {
            (self.since, self.segments) = (limited.then_some(now), 0);
            return;
        };
        self.segments += segments;
        let took = now.since(since);
        if rtt.is_zero() || rtt == Span::MAX || took < rtt {
            return;
        }
        self.per_rtt = Some(self.segments as f64 * rtt.as_secs_f64() / took.as_secs_f64());
        (self.since, self.segments) = (Some(now), 0);
    }

    /// Segments passed in the smallest RTT to the receiver, as last measured.
    pub fn per_rtt(&self) -> Option<f64> {
        self.per_rtt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_behind_the_pep_does_not_raise_it_and_a_pause_does_not_lower_it() {
        let mut delivery = Delivery::default();
        let rtt = Span::from_millis(40);
        let mut tell = |ms: u64, segments, limited| {
            delivery.on_report(Time::from_millis(ms), segments, rtt, limited);
            delivery.per_rtt()
        };
        assert_eq!(tell(0, 10, true), None);
        assert_eq!(tell(20, 30, true), None);
        assert_eq!(tell(40, 50, true), Some(80.0));
        assert_eq!(tell(120, 320, true), Some(160.0), "four segments a millisecond");
        assert_eq!(tell(500, 1, false), Some(160.0));
        assert_eq!(tell(600, 1, true), Some(160.0), "from here on");
        assert_eq!(tell(640, 200, true), Some(200.0));
    }
}
