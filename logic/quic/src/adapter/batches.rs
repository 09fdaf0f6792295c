//! A control behind a QUIC stack that tells its controller less than noq: what was sent together as one number of bytes, packets that are
//! acknowledged without their numbers, and losses as a sum of bytes. quinn is one.
//!
//! Packets are reconstructed: what was sent together are full packets and a last one, which is how segmentation offload cuts it; an
//! acknowledged packet is the first open one of its time of sending, of its size if there is one; and lost are the oldest open packets
//! up to the newest lost one, as many as have the lost bytes. Packets without anything to acknowledge are among what was sent;
//! they leave the books when three later ones are acknowledged.

use ranpace_units::Time;

use super::Control;
use super::events::Losses;

impl Control {
    /// Packets were sent together: `bytes` in all; `last` is the number of the last one.
    pub fn on_batch_sent(&self, now: Time, bytes: u64, last: u64) {
        let mut core = self.core();
        let full = core.payload.max(1);
        let count = bytes.div_ceil(full);
        for place in 0..count {
            let number = (last + 1 + place).saturating_sub(count);
            core.on_sent(now, number, full.min(bytes - place * full));
        }
    }

    /// The peer has received a packet of this size that was sent at `sent`.
    pub fn on_batch_packet_acked(&self, now: Time, sent: Time, bytes: u64) {
        let mut core = self.core();
        if core.driven_by_noq && !core.started {
            core.start(now, Some(now - sent));
        }
        core.begin(now);
        if let Some(record) = core.records.take_acked_of_size(sent, bytes) {
            core.count_acked(now, record);
        }
    }

    /// The acknowledgement of these packets ends; `largest` is the largest number that is acknowledged.
    pub fn on_batch_acked(&self, now: Time, app_limited: bool, largest: Option<u64>) {
        let mut core = self.core();
        core.on_end_acks(now, app_limited, largest);
    }

    /// Packets with so many bytes in all are lost; the newest of them was sent at `newest_sent`.
    pub fn on_batch_lost(&self, now: Time, newest_sent: Time, bytes: u64, persistent: bool) {
        let mut core = self.core();
        core.begin(now);
        let mut left = bytes;
        while left > 0 {
            let Some(record) = core.records.take_oldest(newest_sent) else { break };
            left = left.saturating_sub(record.bytes.into());
            core.count_lost(record);
        }
        core.batch.losses = Some(Losses { persistent });
    }

    /// Packets were marked; the newest that is acknowledged was sent at `sent`.
    pub fn on_batch_marked(&self, now: Time, sent: Time) {
        let mut core = self.core();
        core.begin(now);
        core.batch.marked_at = Some(sent);
    }

    /// Full packets have another size from now on.
    pub fn on_packet_size(&self, bytes: u16) {
        let mut core = self.core();
        core.settle(None);
        core.payload = bytes.into();
    }

    /// Bytes that may be in flight, after all that was told so far.
    pub fn settled_window(&self) -> u64 {
        let mut core = self.core();
        core.settle(None);
        core.window_bytes()
    }

    /// Bytes that may be in flight at first.
    pub fn initial_window(&self) -> u64 {
        let core = self.core();
        core.initial_window * core.payload
    }
}
