//! The pacer: decides when the next segment may leave, with Linux's burst rule.
//!
//! Source: Linux `tcp_tso_autosize` (about a millisecond of data per burst, at least two segments, one below 1.2 Mbit/s, at
//! most 64 KB) and `tcp_update_skb_after_send` (a late start is compensated by at most half a burst's length).

use ranpace_cc::Pacing;
use ranpace_units::{Bytes, Rate, Span, Time};

/// Largest burst, one GSO packet.
const BURST_MAX: u64 = 65_536;
/// Below this rate a burst is one segment (Linux `bbr_min_tso_rate`).
const SLOW: Rate = Rate::from_bits_per_s(1_200_000);

/// Longest gap after a segment, so that the wait at a rate near zero is bounded (Linux `sch_fq`).
const LONGEST: Span = Span::SECOND;

/// Pacing state of a sender.
#[derive(Clone, Debug, Default)]
pub struct Pacer {
    /// When the next burst may begin.
    next: Time,
    /// Segments left in the current burst.
    burst: u32,
    /// Segments of the current piece, if pieces are used ([`crate::Config::gso`]).
    pub(crate) piece: u32,
    /// Longest burst, as time at the rate; `None` for Linux's rule.
    longest: Option<Span>,
    /// The lateness of the burst's beginning, as far as not yet compensated.
    credit: Span,
    /// Values derived from a full segment's wire length and the rate, computed once per change.
    plan: Plan,
}

#[derive(Clone, Copy, Debug, Default)]
struct Plan {
    full: u64,
    rate: Rate,
    burst: u32,
    /// The time that a full segment takes at this rate.
    time: Span,
}

impl Pacer {
    /// Returns whether a segment may be sent now.
    #[inline]
    pub(crate) fn may_send(&self, now: Time, pacing: Pacing) -> bool {
        matches!(pacing, Pacing::Unlimited) || self.burst > 0 || now >= self.next
    }

    /// Sets the longest burst, as time at the pacing rate; `None` for Linux's rule.
    pub(crate) fn set_burst(&mut self, longest: Option<Span>) {
        self.longest = longest;
        self.plan = Plan::default();
    }

    /// When the next segment may be sent.
    pub(crate) fn next(&self) -> Time {
        self.next
    }

    /// Reads its part for [`crate::prefetch`].
    #[inline]
    pub(crate) fn read_state(&self) -> u64 {
        u64::from(self.burst) ^ self.plan.full
    }

    /// A segment of `wire` bytes is sent; a full one has `full` bytes.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Time, pacing: Pacing, wire: u64, full: u64) {
        let Pacing::Rate(rate) = pacing else {
            self.burst = 0;
            self.next = now;
            return;
        };
        if (self.plan.full, self.plan.rate) != (full, rate) {
            self.plan = Plan::new(full, rate, self.longest);
        }
        if self.burst == 0 {
            self.burst = self.plan.burst;
            self.credit = now - self.next;
            self.next = self.next.max(now);
        }
        self.burst -= 1;
        let length = if wire == full { self.plan.time } else { rate.time_for(Bytes::new(wire)).min(LONGEST) };
        let less = self.credit.min(length / 2);
        self.credit -= less;
        self.next += length - less;
    }

    /// Segments left in the current burst.
    #[inline]
    pub(crate) fn left(&self) -> u32 {
        self.burst
    }

    /// The sender has nothing more to send in the middle of a burst: the rest of it is forfeited.
    pub(crate) fn on_idle(&mut self) {
        self.burst = 0;
    }

    /// Segments of a burst at a rate.
    pub fn burst(rate: Rate, full: u64) -> u32 {
        Plan::new(full, rate, None).burst
    }
}

impl Plan {
    fn new(full: u64, rate: Rate, longest: Option<Span>) -> Self {
        let (least, bytes) = match longest {
            Some(longest) => (1, rate.bytes_in(longest).get()),
            // rate >> 10 in bytes a second is Linux's "about a millisecond".
            None => (if rate < SLOW { 1 } else { 2 }, rate.bits_per_s() / 8 / 1_024),
        };
        let bytes = bytes.min(BURST_MAX);
        let burst = u32::try_from(bytes / full.max(1)).unwrap_or(u32::MAX).max(least);
        Self { full, rate, burst, time: rate.time_for(Bytes::new(full)).min(LONGEST) }
    }
}

/// Rate at which Linux paces a control that does not pace itself: 200 % of `cwnd / srtt` below half of ssthresh, 120 % above.
pub(crate) fn default_rate(cwnd: f64, ssthresh: f64, srtt: Span, wire: u64) -> Pacing {
    if srtt.is_zero() {
        return Pacing::Unlimited;
    }
    let ratio = if cwnd < ssthresh / 2.0 { 2.0 } else { 1.2 };
    Pacing::Rate(Rate::from_bits_per_s_f64(ratio * cwnd * wire as f64 * 8.0 / srtt.as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn burst_is_a_millisecond_of_data() {
        assert_eq!(Pacer::burst(Rate::from_mbit_per_s(1), 1_500), 1);
        assert_eq!(Pacer::burst(Rate::from_mbit_per_s(10), 1_500), 2);
        assert_eq!(Pacer::burst(Rate::from_mbit_per_s(100), 1_500), 8);
        assert_eq!(Pacer::burst(Rate::from_mbit_per_s(10_000), 1_500), 43);
        // Prague's 250 us: one segment up to 95 Mbit/s.
        let shorter =
            |mbit| Plan::new(1_500, Rate::from_mbit_per_s(mbit), Some(Span::from_micros(250))).burst;
        assert_eq!([10, 95, 96, 1_000].map(shorter), [1, 1, 2, 20]);
    }

    #[test]
    fn long_run_rate_is_the_pacing_rate() {
        let rate = Rate::from_mbit_per_s(12);
        let pacing = Pacing::Rate(rate);
        let mut pacer = Pacer::default();
        let (mut now, mut sent) = (Time::ZERO, 0_u64);
        while now < Time::from_secs(10) {
            while pacer.may_send(now, pacing) {
                pacer.on_sent(now, pacing, 1_500, 1_500);
                sent += 1;
            }
            now = pacer.next();
        }
        // 12 Mbit/s are 1000 packets a second.
        assert!((9_998..=10_003).contains(&sent), "{sent}");
    }
}
