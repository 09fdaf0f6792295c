//! 5G-BDP: RLC may hold what the next slots carry. Of the last slot's capacity less what it left over, a third may be pushed at once
//! and the rest in step with time.

use super::MTU;

/// Share of a slot's capacity that may be pushed ahead of time.
const AHEAD: f64 = 0.33;
/// Slots without news after which the optimum decays, its factor at each look, and the packets below which it stays.
const STALE: f64 = 5.67;
const DECAY: f64 = 0.75;
const KEPT: f64 = 5.0;

/// The optimum of the last slot and what was pushed since.
#[derive(Clone, Debug)]
pub(super) struct Bdp {
    optimum: f64,
    sent: u64,
}

impl Bdp {
    pub fn new() -> Self {
        Self { optimum: MTU as f64, sent: 0 }
    }

    /// Bytes that a slot takes.
    pub fn optimum(&self) -> u64 {
        self.optimum as u64
    }

    /// A slot could have carried `egress` bytes and left `rest` in RLC. If it left more than it carries, the source lets a packet
    /// follow; ours nothing, since RLC would grow without end where a slot carries less than two packets.
    pub fn on_slot(&mut self, egress: u64, rest: u64) {
        self.optimum = egress.saturating_sub(rest) as f64;
        self.sent = 0;
    }

    /// Decays without news: `since` is the time since the last slot that carried data, in slots.
    pub fn look(&mut self, since: f64) {
        if since > STALE && self.optimum > KEPT * MTU as f64 {
            self.optimum *= DECAY;
        }
    }

    /// Bytes that may have been pushed by then.
    pub fn allowance(&self, since: f64) -> u64 {
        (self.optimum * (since + AHEAD)) as u64
    }

    /// Whether a packet may follow, of which the last byte may be too early.
    pub fn admits(&self, since: f64) -> bool {
        self.sent < self.allowance(since)
    }

    pub fn on_sent(&mut self, size: u64) {
        self.sent += size;
    }
}
