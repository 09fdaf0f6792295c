//! The amount that a base station takes as waiting besides the data: PDUs that were sent and are not acknowledged, as ns-3 counts them.
//!
//! ns-3's `LteRlcAm::DoReportBufferStatus` (read in a copy of release 3.26) adds the PDUs without an acknowledgement to those to be
//! retransmitted. It reports when a packet arrives, when the other end asks for a report on its own data, and
//! [`Timers::unacknowledged_report`](crate::rlc::Timers) after the last report while any PDU is open; the scheduler forgets the amount
//! with the first block that would hold it. Blocks granted for it that find nothing to send are empty, so a user whose acknowledgements
//! do not arrive takes blocks for nothing.
//!
//! Ours: a block for new data that would hold the amount makes the scheduler forget it, too, and then counts for both.

use ranpace_units::{Span, Time};

/// The amount, and when it is told next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    period: Span,
    bytes: u64,
    next: Time,
}

impl Claim {
    /// Nothing is claimed; nothing ever is with a period of zero.
    pub fn new(period: Span) -> Self {
        Self { period, bytes: 0, next: Time::MAX }
    }

    #[inline]
    pub fn is_on(&self) -> bool {
        !self.period.is_zero()
    }

    /// A report, of `open` bytes without an acknowledgement; `more` if anything else waits.
    pub fn report(&mut self, now: Time, open: u64, more: bool) {
        self.bytes = open;
        self.next = if open > 0 || more { now + self.period } else { Time::MAX };
    }

    /// The scheduler granted so much.
    #[inline]
    pub fn grant(&mut self, bytes: u32) {
        if u64::from(bytes) >= self.bytes {
            self.bytes = 0;
        }
    }

    /// What the scheduler believes to wait.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// When the next report is due.
    #[inline]
    pub fn next(&self) -> Time {
        self.next
    }

    /// Set up anew.
    pub fn restart(&mut self) {
        *self = Self::new(self.period);
    }
}
