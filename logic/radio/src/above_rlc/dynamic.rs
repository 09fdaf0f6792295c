//! DynRLC: every 100 ms RLC's size shrinks by a tenth of what is above 2 packets if packets waited longer than 11 ms there on average,
//! and grows by a tenth of what is missing to 20 otherwise.

use ranpace_units::{Span, Time};

const PERIOD: Span = Span::from_millis(100);
const TARGET: Span = Span::from_millis(11);
/// Size at first, the floor, and the size that growth aims at, in packets.
const FIRST: f64 = 10.0;
const FLOOR: f64 = 2.0;
const AIM: f64 = 20.0;

/// The size, and the waits of this period.
#[derive(Clone, Debug)]
pub(super) struct Dynamic {
    size: f64,
    waited: Span,
    left: u64,
    /// When the period began; `None` before the first slot.
    since: Option<Time>,
}

impl Dynamic {
    pub fn new() -> Self {
        Self { size: FIRST, waited: Span::ZERO, left: 0, since: None }
    }

    /// The size in packets.
    pub fn packets(&self) -> u64 {
        self.size as u64
    }

    /// A packet left RLC's buffer after `waited`.
    pub fn on_left(&mut self, waited: Span) {
        (self.waited, self.left) = (self.waited + waited, self.left + 1);
    }

    /// Adapts the size at the end of a period; one in which no packet left is no evidence (ours).
    pub fn on_time(&mut self, now: Time) {
        if now - *self.since.get_or_insert(now) < PERIOD {
            return;
        }
        if self.left > 0 {
            self.size = if self.waited > TARGET * self.left {
                (self.size - (0.1 * (self.size - FLOOR)).max(1.0)).max(FLOOR)
            } else {
                self.size + (0.1 * (AIM - self.size)).max(1.0)
            };
        }
        (self.waited, self.left, self.since) = (Span::ZERO, 0, Some(now));
    }
}
