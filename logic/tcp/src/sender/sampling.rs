//! Removes acknowledged segments from the scoreboard, and samples the RTT and the delivery rate from them.
//!
//! Functions are marked `inline(always)` for the path with SACK: the path without SACK calls them too, and without the
//! attribute they would become calls in both.

use ranpace_cc::{Packet, PacketOutcome, RateSample};
use ranpace_units::{Bytes, Span, Time};

use super::Sender;
use crate::config::RttSample;
use crate::scoreboard::{Flags, Record};
use crate::segment::Segment;

impl Sender {
    /// Marks selectively acknowledged segments.
    pub(super) fn take_sacked(&mut self, now: Time, segment: &Segment, progress: &mut Progress) {
        for block in segment.sack.as_slice() {
            let (from, to) = (segment.ack + u64::from(block.from), segment.ack + u64::from(block.to));
            let mut marking = self.board.mark_begin(from, to);
            while let Some(record) = self.board.mark_next(&mut marking) {
                if !record.flags.has(Flags::EVER_RETRANSMITTED) {
                    if record.end() < progress.prior_highest {
                        self.rack.reordering_seen = true;
                    }
                    progress.first_sacked.get_or_insert(record.sent_at);
                    progress.last_sacked = Some(record.sent_at);
                }
                progress.sacked = true;
                self.deliver(now, segment, &record, progress);
            }
        }
    }

    /// Removes cumulatively acknowledged segments.
    #[inline(always)]
    pub(super) fn take_acked(&mut self, now: Time, segment: &Segment, progress: &mut Progress) {
        if segment.ack > self.una {
            progress.advanced = true;
            self.una = segment.ack;
        }
        while let Some(record) = self.board.pop_acked(segment.ack) {
            progress.acked += 1;
            let again = record.flags.has(Flags::EVER_RETRANSMITTED);
            progress.ambiguous |= again;
            if !record.flags.has(Flags::SACKED) {
                if !again {
                    // Delivered out of order without having been retransmitted: the network reorders.
                    if record.end() < progress.prior_highest {
                        self.rack.reordering_seen = true;
                    }
                    progress.first_acked.get_or_insert(record.sent_at);
                    progress.last_acked = Some(record.sent_at);
                }
                self.deliver(now, segment, &record, progress);
            }
        }
    }

    /// One segment has arrived for the first time (`record` as it was).
    #[inline]
    fn deliver(&mut self, now: Time, segment: &Segment, record: &Record, progress: &mut Progress) {
        self.delivered += 1;
        self.delivered_at = now;
        progress.delivered += 1;
        progress.bytes += u64::from(record.length);
        let again = record.flags.has(Flags::EVER_RETRANSMITTED);
        progress.sent_once += u64::from(!again);
        progress.original |= !again && record.end() <= self.high;
        // An echo that predates the last transmission is the original's (Linux `tcp_skb_spurious_retrans`), provided that it
        // is this segment's echo: above a hole the receiver repeats that of the last segment in order.
        let is_own_echo = self.config.timestamps && record.end() <= segment.ack;
        if !(again && is_own_echo && segment.echo < record.sent_at) {
            self.rack.on_delivered(record, now, self.rtt.min());
        }
        // The most recently sent segment determines the rate sample.
        if progress.newest.is_none_or(|newest| record.number >= newest.number) {
            progress.newest = Some(*record);
            self.first_sent_at = record.sent_at;
        }
        if self.wants_packets {
            let one_way = (self.config.timestamps && !again).then(|| segment.timestamp - record.sent_at);
            let packet = Packet {
                number: record.number,
                bytes: Bytes::new(u64::from(record.length)),
                sent_at: record.sent_at,
                sending: record.sending(self.lost),
                fate: PacketOutcome::Acked { rtt: now - record.sent_at, one_way },
            };
            let cx = self.context(now);
            self.control.on_packet(&cx, &mut self.window, &packet);
        }
    }

    /// The RTT sample of the newest packet, which also feeds the estimator (Linux `tcp_ack_update_rtt`).
    #[inline(always)]
    pub(super) fn sample_rtt(
        &mut self,
        now: Time,
        segment: &Segment,
        progress: &mut Progress,
    ) -> Option<Span> {
        if self.config.rtt_sample == RttSample::Oldest {
            return self.sample_oldest(now, progress);
        }
        // Karn: a retransmission anywhere in the range makes the cumulative sample ambiguous.
        let acked = progress.first_acked.zip(progress.last_acked).filter(|_| !progress.ambiguous);
        let sacked = progress.first_sacked.zip(progress.last_sacked);
        let (oldest, newest) = match (acked, sacked) {
            (Some((oldest, _)), Some((_, newest))) => (oldest, newest),
            (Some((oldest, newest)), None) | (None, Some((oldest, newest))) => (oldest, newest),
            (None, None) if self.config.timestamps && progress.acked > 0 && segment.echo > Time::ZERO => {
                (segment.echo, segment.echo)
            }
            (None, None) => return None,
        };
        let (oldest, newest) = (self.elapsed(oldest, now), self.elapsed(newest, now));
        // A clock that has not advanced has measured nothing.
        if newest.is_zero() && !self.config.timestamp_granularity.is_zero() {
            return None;
        }
        // A single partial segment in flight: the receiver may have waited for a second one.
        progress.delayed = acked.is_some()
            && progress.acked == 1
            && progress.prior_in_flight == 1
            && progress.newest.is_some_and(|newest| u64::from(newest.length) < self.mss);
        self.rtt.note(now, newest, progress.delayed);
        self.rtt.on_sample(oldest, self.una, self.next);
        // RFC 6298: the timeout stays backed off until there is a valid sample.
        self.backoffs = 0;
        Some(newest)
    }

    /// When the oldest segment that `segment` is about to acknowledge was sent, from the echo if there are timestamps; `None`
    /// if it was retransmitted (Karn; ns-3.26's `EstimateRtt` has both rules).
    pub(super) fn oldest_to_sample(&self, segment: &Segment) -> Option<Time> {
        let oldest = self.board.first().filter(|oldest| oldest.end() <= segment.ack)?;
        let again = oldest.flags.has(Flags::EVER_RETRANSMITTED);
        let echoed = self.config.timestamps && segment.echo > Time::ZERO;
        (!again).then_some(if echoed { segment.echo } else { oldest.sent_at })
    }

    /// The RTT sample of the oldest segment; see [`RttSample::Oldest`].
    fn sample_oldest(&mut self, now: Time, progress: &Progress) -> Option<Span> {
        let rtt = self.elapsed(progress.oldest?, now);
        if rtt.is_zero() {
            return None;
        }
        self.rtt.note(now, rtt, false);
        self.rtt.on_sample(rtt, self.una, self.next);
        self.backoffs = 0;
        Some(rtt)
    }

    /// Time from `from` to `to` on a clock of the configured granularity: both are truncated to it before the subtraction.
    #[inline]
    pub(super) fn elapsed(&self, from: Time, to: Time) -> Span {
        let granularity = self.config.timestamp_granularity;
        if granularity.is_zero() {
            return to - from;
        }
        let ticks = |at: Time| at.as_nanos() / granularity.as_nanos();
        granularity * ticks(to).saturating_sub(ticks(from))
    }

    /// Linux `tcp_rate_gen`, before loss detection, whose result is added later.
    pub(super) fn rate_sample(&self, now: Time, progress: &Progress) -> RateSample {
        let Some(newest) = &progress.newest else { return RateSample::default() };
        let sending = newest.sent_at - newest.first_sent_at;
        let acking = now - newest.delivered_at;
        let interval = sending.max(acking);
        // An interval below the smallest RTT: the acknowledgements were bunched and the sample is invalid.
        let valid = !interval.is_zero() && interval >= self.rtt.min();
        let sending = newest.sending(self.lost);
        RateSample {
            delivered: self.delivered - newest.delivered,
            interval: valid.then_some(interval),
            prior_delivered: newest.delivered,
            app_limited: sending.app_limited,
            lost: 0,
            lost_since_send: sending.lost_since,
            in_flight_at_send: sending.in_flight,
            delayed: progress.delayed,
        }
    }
}

/// The effects of one acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    pub prior_in_flight: u64,
    /// One past the highest byte that was selectively acknowledged before.
    pub prior_highest: u64,
    /// Whether the cumulative acknowledgement moved.
    pub advanced: bool,
    /// Whether a segment was newly selectively acknowledged.
    pub sacked: bool,
    /// Whether a mark is echoed to which the window is reduced, unless it has been.
    pub marked: bool,
    pub acked: u64,
    pub delivered: u64,
    /// Those of them that were never retransmitted, as retransmissions are not ECN-capable.
    pub sent_once: u64,
    pub bytes: u64,
    /// Whether a segment was delivered that had been sent before the last timeout and never retransmitted.
    pub original: bool,
    /// Whether a cumulatively acknowledged segment had been retransmitted.
    pub ambiguous: bool,
    /// Whether the receiver's delayed-ACK timer may have held the acknowledgement back.
    pub delayed: bool,
    /// The most recently sent of the delivered segments.
    pub newest: Option<Record>,
    pub first_acked: Option<Time>,
    pub last_acked: Option<Time>,
    pub first_sacked: Option<Time>,
    pub last_sacked: Option<Time>,
    /// When the oldest cumulatively acknowledged segment was sent; only set if that one is sampled.
    pub oldest: Option<Time>,
}
