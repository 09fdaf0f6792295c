//! The outputs of a control: the congestion window, the slow start threshold and the pace.

use ranpace_units::Rate;

/// The outputs of a control. The endpoint owns them and lends them with every event; PRR sets `cwnd` through them too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Congestion window in segments; only whole segments count. Never below 1 when a packet is to be sent.
    pub cwnd: f64,
    /// Slow start threshold in segments; infinite until the first congestion.
    pub ssthresh: f64,
    /// Pacing of the segments that fit the window.
    pub pacing: Pacing,
}

impl Window {
    /// A new window of `initial` segments, unpaced.
    pub const fn new(initial: f64) -> Self {
        Self { cwnd: initial, ssthresh: f64::INFINITY, pacing: Pacing::Unlimited }
    }

    /// Returns whether the window is below the slow start threshold.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Grows by one per segment acknowledged, up to `ssthresh`; returns the segments that are left over for
    /// congestion avoidance (Linux `tcp_slow_start`; RFC 5681 with byte counting, RFC 3465).
    pub fn slow_start(&mut self, acked: f64) -> f64 {
        let grown = (self.cwnd + acked).min(self.ssthresh.max(self.cwnd));
        let used = grown - self.cwnd;
        self.cwnd = grown;
        acked - used
    }
}

/// How an endpoint spaces its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// As soon as the window allows.
    Unlimited,
    /// At a rate, counted in bytes on the wire, in bursts of about a millisecond as Linux does.
    Rate(Rate),
}
