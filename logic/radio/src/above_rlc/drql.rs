//! DRQL: RLC's limit follows Linux's dynamic queue limits (`lib/dynamic_queue_limits.c`): it grows by a fifth whenever a slot empties
//! a full buffer, and shrinks by the least rest of a period.

use ranpace_units::{Span, Time};

/// Limit at first, and its bounds, in packets.
const FIRST: u64 = 25;
const LEAST: u64 = 1;
const MOST: u64 = 512;

/// The limit.
#[derive(Clone, Debug)]
pub(super) struct Drql {
    /// Bytes in a packet: 1 for a limit in packets.
    unit: u64,
    limit: u64,
    /// Least rest since the period began.
    least: u64,
    /// When the period began; `None` before the first packet.
    since: Option<Time>,
}

impl Drql {
    pub fn new(unit: u64) -> Self {
        Self { unit, limit: FIRST * unit, least: u64::MAX, since: None }
    }

    pub fn limit(&self) -> u64 {
        self.limit
    }

    fn begin(&mut self, now: Time) {
        (self.least, self.since) = (u64::MAX, Some(now));
    }

    /// A packet joined RLC. The first one begins the first period.
    pub fn on_joined(&mut self, now: Time) {
        self.since.get_or_insert(now);
    }

    /// A slot took `taken` and left `rest`; RLC was `full` before. A limit is held for `hold`.
    pub fn on_slot(&mut self, now: Time, hold: Span, taken: u64, rest: u64, full: bool) {
        if taken == 0 {
            self.begin(now);
        } else if rest > 0 {
            self.least = self.least.min(rest);
            if now - *self.since.get_or_insert(now) > hold {
                self.limit = self.limit.saturating_sub(self.least).max(LEAST * self.unit);
                self.begin(now);
            }
        } else {
            if full {
                self.limit = (self.limit * 6).div_ceil(5).min(MOST * self.unit);
            }
            self.begin(now);
        }
    }
}
