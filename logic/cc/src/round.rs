//! Packet-timed rounds: a round is over when a packet sent after its beginning has been acknowledged or lost.
//!
//! Linux marks them by `snd_nxt` (HyStart, Vegas, YeAH); here packet numbers serve: packets that were sent and are no longer
//! in flight have been acknowledged or lost.

use crate::interface::Context;

/// The current round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    /// Packets sent when it began.
    end: u64,
}

impl Round {
    pub(crate) const fn new() -> Self {
        Self { end: 0 }
    }

    /// Begins a round now.
    pub(crate) fn restart(&mut self, cx: &Context) {
        self.end = cx.next_packet;
    }

    /// Returns whether a packet that was sent in this round has been acknowledged or lost.
    pub(crate) fn is_over(&self, cx: &Context) -> bool {
        cx.next_packet.saturating_sub(cx.in_flight) > self.end
    }
}
