//! The amount that a scheduler grants besides the queued data: PDUs that were sent and are unacknowledged, as ns-3 counts them.
//!
//! ns-3's `LteRlcAm::DoReportBufferStatus` (read in a copy of release 3.26) adds the unacknowledged PDUs to those to be
//! retransmitted. It reports when a packet arrives, when the other end polls for a report on its own data, and
//! [`Timers::unacknowledged_report`](crate::rlc::Timers) after the last report while any PDU is open. The scheduler clears the amount
//! with the first block that could hold it. Blocks granted for it stay empty if there is nothing to send, so a user whose
//! acknowledgements do not arrive wastes blocks.
//!
//! Ours: a block for new data that could hold the amount also clears it, and then counts for both.

use ranpace_units::{Span, Time};

/// The amount, and the time of the next report.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    period: Span,
    bytes: u64,
    next: Time,
}

impl Claim {
    /// Without a claim; with a period of zero there never is one.
    pub fn new(period: Span) -> Self {
        Self { period, bytes: 0, next: Time::MAX }
    }

    #[inline]
    pub fn is_on(&self) -> bool {
        !self.period.is_zero()
    }

    /// Reports `open` unacknowledged bytes; `more` is whether anything else waits.
    pub fn report(&mut self, now: Time, open: u64, more: bool) {
        self.bytes = open;
        self.next = if open > 0 || more { now + self.period } else { Time::MAX };
    }

    /// Handles a grant of this size.
    #[inline]
    pub fn grant(&mut self, bytes: u32) {
        if u64::from(bytes) >= self.bytes {
            self.bytes = 0;
        }
    }

    /// The amount that the scheduler currently counts.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// When the next report is due.
    #[inline]
    pub fn next(&self) -> Time {
        self.next
    }

    /// Clears the claim.
    pub fn restart(&mut self) {
        *self = Self::new(self.period);
    }
}
