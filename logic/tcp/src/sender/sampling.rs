//! What an acknowledgement delivers: segments taken off, the RTT and the delivery rate that it measures.

use ranpace_cc::{Fate, Packet, RateSample};
use ranpace_units::{Bytes, Span, Time};

use super::Sender;
use crate::scoreboard::{Flags, Record};
use crate::segment::Segment;

impl Sender {
    /// Takes off what is acknowledged cumulatively.
    pub(super) fn take_acked(&mut self, now: Time, ack: u64, progress: &mut Progress) {
        if ack > self.una {
            progress.advanced = true;
            self.una = ack;
        }
        while let Some(record) = self.board.pop_acked(ack) {
            progress.acked += 1;
            if !record.flags.has(Flags::SACKED) {
                // Delivered out of order and never sent again: the network reorders.
                if record.end() < self.board.highest_sacked && !record.flags.has(Flags::EVER_RETRANSMITTED) {
                    self.rack.reordering_seen = true;
                }
                if !record.flags.has(Flags::EVER_RETRANSMITTED) {
                    progress.first_acked.get_or_insert(record.sent_at);
                    progress.last_acked = Some(record.sent_at);
                }
                self.deliver(now, &record, progress);
            }
        }
    }

    /// Marks what is acknowledged selectively.
    pub(super) fn take_sacked(&mut self, now: Time, segment: &Segment, progress: &mut Progress) {
        if segment.sack.as_slice().is_empty() {
            return;
        }
        let mut board = core::mem::take(&mut self.board);
        let highest = board.highest_sacked;
        board.mark_sacked(segment.ack, &segment.sack, |record| {
            if !record.flags.has(Flags::EVER_RETRANSMITTED) {
                if record.end() < highest {
                    self.rack.reordering_seen = true;
                }
                progress.first_sacked.get_or_insert(record.sent_at);
                progress.last_sacked = Some(record.sent_at);
            }
            progress.sacked = true;
            self.deliver(now, record, progress);
        });
        self.board = board;
    }

    /// One segment is at the receiver for the first time (`record` as it was).
    #[inline]
    fn deliver(&mut self, now: Time, record: &Record, progress: &mut Progress) {
        self.delivered += 1;
        self.delivered_at = now;
        progress.delivered += 1;
        progress.bytes += u64::from(record.length);
        progress.original |= !record.flags.has(Flags::EVER_RETRANSMITTED);
        self.rack.on_delivered(record, now, self.rtt.min());
        // The most recently sent one makes the rate sample.
        if progress.newest.is_none_or(|newest| (record.sent_at, record.seq) >= (newest.sent_at, newest.seq)) {
            progress.newest = Some(*record);
            self.first_sent_at = record.sent_at;
        }
        if self.wants_packets {
            let rtt = now - record.sent_at;
            let fate = Fate::Acked { rtt, one_way: None };
            let packet = Packet {
                number: record.number,
                bytes: Bytes::new(u64::from(record.length)),
                sent_at: record.sent_at,
                fate,
            };
            let cx = self.context(now);
            self.control.on_packet(&cx, &mut self.window, &packet);
        }
    }

    /// Linux `tcp_rate_gen`; `lost` is filled in once it is known.
    pub(super) fn rate_sample(&self, now: Time, progress: &Progress) -> RateSample {
        let Some(newest) = &progress.newest else { return RateSample::default() };
        let sending = newest.sent_at - newest.first_sent_at;
        let acking = now - newest.delivered_at;
        let interval = sending.max(acking);
        // Shorter than the smallest RTT: acknowledgements were bunched, the sample means nothing.
        let valid = !interval.is_zero() && interval >= self.rtt.min().min(now - newest.sent_at);
        RateSample {
            delivered: self.delivered - newest.delivered,
            interval: valid.then_some(interval),
            prior_delivered: newest.delivered,
            app_limited: newest.app_limited,
            lost: 0,
            delayed: newest.delivered + 1 == self.delivered && progress.prior_in_flight == 1,
        }
    }

    /// The RTT sample of the newest packet, which also feeds the estimator (Linux `tcp_ack_update_rtt`).
    pub(super) fn sample_rtt(&mut self, now: Time, segment: &Segment, progress: &Progress) -> Option<Span> {
        let oldest = progress.first_acked.or(progress.first_sacked);
        let newest = progress.last_acked.or(progress.last_sacked);
        let (oldest, newest) = match (oldest, newest) {
            (Some(oldest), Some(newest)) => (now - oldest, now - newest),
            _ if self.config.timestamps && progress.advanced && segment.echo > Time::ZERO => {
                (now - segment.echo, now - segment.echo)
            }
            _ => return None,
        };
        self.rtt.note(now, newest);
        self.rtt.on_sample(oldest, self.una, self.next);
        Some(newest)
    }
}

/// What one acknowledgement did.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    pub prior_in_flight: u64,
    /// The cumulative acknowledgement moved.
    pub advanced: bool,
    /// Something was newly acknowledged selectively.
    pub sacked: bool,
    pub acked: u64,
    pub delivered: u64,
    pub bytes: u64,
    /// Something that was never sent again was delivered.
    pub original: bool,
    /// The most recently sent of what was delivered.
    pub newest: Option<Record>,
    pub first_acked: Option<Time>,
    pub last_acked: Option<Time>,
    pub first_sacked: Option<Time>,
    pub last_sacked: Option<Time>,
}

impl Progress {
    pub fn new(prior_in_flight: u64) -> Self {
        Self {
            prior_in_flight,
            advanced: false,
            sacked: false,
            acked: 0,
            delivered: 0,
            bytes: 0,
            original: false,
            newest: None,
            first_acked: None,
            last_acked: None,
            first_sacked: None,
            last_sacked: None,
        }
    }
}
