//! RACK: time-based loss detection (RFC 8985, as Linux `tcp_recovery.c`).

use ranpace_units::{Span, Time};

use crate::scoreboard::{Flags, Record, Verdict};

/// Duplicate acknowledgements that end the tolerance of reordering while none has been seen (RFC 8985, 6.2 step 4).
const DUPLICATE_THRESHOLD: u64 = 3;
/// Recoveries for which a widened reordering window persists (RFC 8985, `RACK.reo_wnd_persist`).
const PERSIST: u32 = 16;
/// Largest multiple of a quarter of the minimal RTT (Linux `TCP_RACK_...`, 8 bits).
const STEPS_MAX: u32 = 255;

/// State of RACK.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rack {
    /// Send time of the most recently sent segment among those delivered, and its number in the order of sending. The number
    /// decides, not time and sequence number: many segments may be sent in one instant here, with retransmissions among them.
    sent_at: Time,
    number: Option<u64>,
    /// Its RTT.
    pub rtt: Span,
    /// Whether something has been delivered since the last loss detection.
    advanced: bool,
    pub reordering_seen: bool,
    steps: u32,
    persist: u32,
    /// Duplicates reported up to here have already widened the window.
    duplicate_mark: u64,
}

impl Rack {
    pub fn new() -> Self {
        Self { steps: 1, ..Self::default() }
    }

    /// A segment was delivered (`record` as it was before).
    #[inline]
    pub fn on_delivered(&mut self, record: &Record, now: Time, min_rtt: Span) {
        let rtt = now - record.sent_at;
        if record.flags.has(Flags::EVER_RETRANSMITTED) && rtt < min_rtt {
            return; // the original was delivered, not the retransmission
        }
        self.advanced = true;
        self.rtt = rtt;
        if Some(record.number) > self.number {
            (self.sent_at, self.number) = (record.sent_at, Some(record.number));
        }
    }

    /// The report of a duplicate (DSACK) on a network known to reorder shows that the window was too short: it widens, once
    /// per round. `una` and `next` are the sender's.
    pub fn on_duplicate(&mut self, una: u64, next: u64) {
        if self.reordering_seen && una >= self.duplicate_mark {
            self.steps = (self.steps + 1).min(STEPS_MAX);
            self.persist = PERSIST;
            self.duplicate_mark = next;
        }
    }

    /// A reduction was undone on the evidence of duplicates alone.
    pub fn on_undone(&mut self) {
        self.persist = (self.persist + 1).min(PERSIST);
    }

    /// Outstanding segments must be judged again.
    pub fn look_again(&mut self) {
        self.advanced = true;
    }

    /// A recovery is over.
    pub fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.steps = 1;
        }
    }

    /// The reordering window: how much later a segment may arrive than one sent after it.
    pub fn reordering_window(&self, repairing: bool, sacked: u64, min_rtt: Span, srtt: Span) -> Span {
        if !self.reordering_seen && (repairing || sacked >= DUPLICATE_THRESHOLD) {
            return Span::ZERO;
        }
        if min_rtt == Span::MAX {
            return Span::ZERO;
        }
        (min_rtt / 4 * u64::from(self.steps)).min(srtt)
    }

    /// Returns whether loss detection is due; clears the mark.
    pub fn take_advanced(&mut self) -> bool {
        core::mem::take(&mut self.advanced)
    }

    #[inline]
    pub fn verdict(&self, record: &Record, now: Time, window: Span) -> Verdict {
        if Some(record.number) >= self.number {
            Verdict::SentLater
        } else if now - record.sent_at >= self.rtt + window {
            Verdict::Lost
        } else {
            Verdict::NotYet
        }
    }

    /// When every segment sent before the newest delivered one has had its time.
    pub fn settled_at(&self, window: Span) -> Time {
        self.sent_at + self.rtt + window
    }
}
