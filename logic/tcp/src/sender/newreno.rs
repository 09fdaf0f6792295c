//! Loss recovery without SACK, as in ns-3.26: NewReno with limited transmit, and go-back-N after a timeout.
//!
//! Source: RFC 5681 (section 3.2), RFC 6582 (section 3.2), RFC 3042, following ns-3.26's `TcpSocketBase` (`ReceivedAck`,
//! `DupAck`, `FastRetransmit`, `NewAck`, `Retransmit`, `BytesInFlight`; read in a copy of that release).
//!
//! | state | duplicate acknowledgement | acknowledgement that advances |
//! |---|---|---|
//! | OPEN | DISORDER; one new segment past the window | the control grows the window |
//! | DISORDER | the third: fast retransmit, RECOVERY; else one new segment past the window | OPEN; the control grows the window |
//! | RECOVERY | inflates the window by 1 | below the mark: sends the next hole, deflates it by the segments acked less 1; else OPEN |
//! | LOSS | nothing | the control grows the window; OPEN above the mark |
//!
//! The mark is the highest byte sent when recovery began or the timer fired; below it no fast retransmit begins (RFC 6582,
//! 3.2, step 1). Only the first partial acknowledgement of a recovery restarts the timer ("impatient", RFC 6582, section 4).
//! A timeout retransmits all outstanding data, starting with one segment; another one before the mark is passed leaves
//! threshold and window unchanged. No undo, no F-RTO, no loss probe.
//!
//! Each duplicate counts as a segment delivered, as in Linux without SACK; after a timeout, segments reported by duplicates
//! count a second time when they are acknowledged. The flight that the control sees is the data sent (after a timeout:
//! retransmitted) and not acknowledged, plus retransmissions, less duplicates (RFC 4898's `PipeSize`). The window itself
//! limits all unacknowledged data.
//!
//! Ours, where ns-3.26 does not specify it: controls that set their window themselves ([`LossResponse::Own`]) also do so
//! during recovery, without inflation unless [`Config::inflate_own`](crate::Config); an ignored loss inflates the window and
//! changes nothing else. Different from ns-3.26: an acknowledgement that moves the peer's window is no duplicate (RFC 5681,
//! section 2); limited transmit respects the peer's window (RFC 3042); ECN cuts the window at once.

use ranpace_cc::{Ack, Congestion, LossResponse, RateSample, Signal, State};
use ranpace_units::{Bytes, Span, Time};

use super::Sender;
use super::recovery::Tally;
use super::sampling::Progress;
use crate::config::RttSample;
use crate::segment::{Kind, Segment};

/// Duplicate acknowledgements that trigger a fast retransmit (RFC 5681, 3.2).
const THRESHOLD: u64 = 3;

/// State of recovery without SACK.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Duplicates {
    /// Duplicate acknowledgements since the last one that reset the count (ns-3.26 `m_dupAckCount`).
    duplicates: u64,
    /// Retransmissions not known to have arrived (ns-3.26 `m_retransOut`).
    sent_again: u64,
    /// Segments by which the window is inflated; may be negative.
    inflation: f64,
    /// The window has been cut and must not grow until the episode ends.
    reduced: bool,
    /// Whether a partial acknowledgement has restarted the timer in this recovery.
    restarted: bool,
    /// After a timeout only the first segment is sent before an acknowledgement advances.
    waiting: bool,
}

impl Sender {
    /// Segments that may be unacknowledged.
    pub(super) fn inflated_window(&self) -> u64 {
        if self.plain.waiting {
            return 0;
        }
        (self.window.cwnd.max(1.0) + self.plain.inflation).max(1.0) as u64
    }

    /// ns-3.26 `BytesInFlight`, in segments.
    pub(super) fn plain_in_flight(&self) -> u64 {
        (self.board.in_flight() + self.plain.sent_again).saturating_sub(self.plain.duplicates)
    }

    /// Processes an acknowledgement; `update` if it moves the peer's window.
    #[inline(never)]
    pub(super) fn on_plain_ack(&mut self, now: Time, segment: &Segment, update: bool) -> Option<Span> {
        let mut progress = Progress { prior_in_flight: self.plain_in_flight(), ..Progress::default() };
        if segment.ecn_echo && self.confirms_marks() && matches!(self.state, State::Open | State::Disorder) {
            self.on_plain_ecn(now);
        }
        if segment.ack > self.una {
            self.on_advance(now, segment, &mut progress)
        } else {
            if segment.ack == self.una && !update && !self.board.is_empty() {
                self.on_duplicate_ack(now, segment, &mut progress);
            }
            None
        }
    }

    fn on_advance(&mut self, now: Time, segment: &Segment, progress: &mut Progress) -> Option<Span> {
        if self.config.rtt_sample == RttSample::Oldest {
            progress.oldest = self.oldest_to_sample(segment);
        }
        self.take_acked(now, segment, progress);
        // Segments that duplicates did not report; for a partial acknowledgement, the hole (ns-3.26 `segsAcked`).
        let beyond = progress.acked.saturating_sub(self.plain.duplicates).max(1);
        let is_partial = self.state == State::Recovery && self.una < self.high;
        let known = progress.delivered.saturating_sub(if is_partial { 1 } else { beyond });
        self.delivered -= known;
        progress.delivered -= known;
        progress.bytes = progress.bytes.saturating_sub(known * self.mss);
        self.end_application_limit();
        self.retransmits = 0;
        self.plain.waiting = false;
        let rtt = self.sample_rtt(now, segment, progress);
        let rate = self.rate_sample(now, progress);
        self.tell_sample(now, segment, progress, rtt);
        let mut growth = progress.acked;
        let (mut lost, mut restart) = (0, true);
        match self.state {
            State::Open => {}
            State::Disorder => {
                self.forget_duplicates();
                self.state = State::Open;
            }
            State::Cwr => {
                self.forget_duplicates();
                if self.una > self.high {
                    self.end_episode(now);
                }
            }
            State::Recovery if is_partial => {
                restart = !core::mem::replace(&mut self.plain.restarted, true);
                self.on_partial(now, progress.acked, beyond);
                lost = 1;
            }
            State::Recovery => {
                if self.plain.reduced {
                    let outstanding = (progress.prior_in_flight + 1) as f64;
                    self.window.cwnd = self.window.ssthresh.min(outstanding).max(1.0);
                }
                growth = (self.una - self.high) / self.mss;
                self.forget_duplicates();
                self.end_episode(now);
            }
            State::Loss => {
                self.forget_duplicates();
                if self.una > self.high {
                    self.end_episode(now);
                }
            }
        }
        self.tell_ack(now, segment, progress, rate, rtt, (growth, lost));
        if restart {
            self.backoffs = 0;
            self.rearm(now);
        }
        if self.board.is_empty() {
            self.rearm(now);
        }
        rtt
    }

    fn on_duplicate_ack(&mut self, now: Time, segment: &Segment, progress: &mut Progress) {
        self.plain.duplicates += 1;
        // A segment has left the network.
        self.delivered += 1;
        self.delivered_at = now;
        (progress.delivered, progress.bytes) = (1, self.mss);
        self.end_application_limit();
        self.tell_sample(now, segment, progress, None);
        let mut lost = 0;
        match self.state {
            State::Open | State::Disorder | State::Cwr => {
                if self.state == State::Open {
                    self.state = State::Disorder;
                }
                let covered = self.state == State::Cwr || self.una >= self.high;
                if self.plain.duplicates == THRESHOLD && covered {
                    self.retransmit_fast(now);
                    lost = 1;
                } else if self.pending.is_none() && self.new_data().is_some() {
                    self.pending = Some(Kind::Data);
                }
            }
            State::Recovery if self.is_inflated() => self.plain.inflation += 1.0,
            State::Recovery | State::Loss => {}
        }
        self.tell_ack(now, segment, progress, RateSample::default(), None, (0, lost));
    }

    /// The application limit ends when the data then in flight are delivered.
    fn end_application_limit(&mut self) {
        if self.app_limited_until > 0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
    }

    /// Returns whether duplicates inflate the window of this recovery.
    fn is_inflated(&self) -> bool {
        self.plain.reduced || self.ignored || self.config.inflate_own
    }

    fn forget_duplicates(&mut self) {
        (self.plain.duplicates, self.plain.sent_again) = (0, 0);
        self.plain.restarted = false;
    }

    fn end_episode(&mut self, now: Time) {
        self.plain.reduced = false;
        self.plain.inflation = 0.0;
        self.finish(now);
    }

    fn tell_ack(
        &mut self,
        now: Time,
        segment: &Segment,
        progress: &Progress,
        mut rate: RateSample,
        rtt: Option<Span>,
        (acked, lost): (u64, u64),
    ) {
        if self.plain.reduced && matches!(self.state, State::Recovery | State::Cwr) {
            return;
        }
        rate.lost = lost;
        rate.lost_since_send += lost;
        let ack = Ack {
            acked: self.growth(acked),
            delivered: progress.delivered,
            bytes: Bytes::new(progress.bytes),
            rtt: self.told_rtt(rtt),
            rate,
            prior_in_flight: progress.prior_in_flight,
            ecn_echo: segment.ecn_echo,
            marked: 0,
            braked: 0,
        };
        let cx = self.context(now);
        self.control.on_ack(&cx, &mut self.window, &ack);
    }

    /// ns-3.26 `FastRetransmit`.
    fn retransmit_fast(&mut self, now: Time) {
        let first = self.state != State::Cwr;
        self.high = self.next;
        self.plain.inflation = 0.0;
        self.lose_first(now, first);
        if self.is_inflated() {
            self.plain.inflation = self.plain.duplicates as f64;
        }
        self.state = State::Recovery;
        self.stats.recoveries += 1;
    }

    /// A partial acknowledgement (RFC 6582, 3.2, step 3): `acked` segments, `beyond` of which duplicates did not report.
    fn on_partial(&mut self, now: Time, acked: u64, beyond: u64) {
        if self.is_inflated() {
            let deflated = (self.window.cwnd + self.plain.inflation - acked as f64).max(0.0);
            self.plain.inflation = deflated + 1.0 - self.window.cwnd;
        }
        self.plain.duplicates = self.plain.duplicates.saturating_sub(beyond);
        self.plain.sent_again = self.plain.sent_again.saturating_sub(1);
        // An ignored episode does not count: each loss may begin one.
        self.lose_first(now, self.ignored);
    }

    /// The first segment is lost and is retransmitted at once, ignoring window and pace. `first` if this may begin an
    /// episode.
    fn lose_first(&mut self, now: Time, first: bool) {
        let mut tally = Tally::new(self.wants_packets, self.lost);
        if let Some(record) = self.board.first() {
            tally.add(record);
        }
        self.lost += tally.count;
        self.tell_lost(now, &tally);
        let event = Congestion {
            kind: Signal::Loss,
            lost: tally.count,
            largest: Bytes::new(u64::from(tally.largest)),
            newest_sent_at: tally.newest_sent_at,
            first,
        };
        let cx = self.context(now);
        let answer = self.control.on_congestion(&cx, &mut self.window, &event);
        if first {
            self.ignored = answer == LossResponse::Ignore;
            self.cwr |= self.confirms_marks() && !self.ignored;
            if let LossResponse::ReduceTo(ssthresh) = answer {
                self.window.ssthresh = ssthresh;
                if !self.control.owns_recovery() {
                    self.window.cwnd = ssthresh.max(1.0);
                    self.plain.reduced = true;
                }
            }
        }
        self.board.mark_lost(self.board.first_id());
        self.plain.sent_again += 1;
        self.urgent = true;
    }

    /// RFC 3168, 6.1.2: like a loss that needs no repair.
    fn on_plain_ecn(&mut self, now: Time) {
        let event =
            Congestion { kind: Signal::Ecn, lost: 0, largest: Bytes::ZERO, newest_sent_at: now, first: true };
        let cx = self.context(now);
        let answer = self.control.on_congestion(&cx, &mut self.window, &event);
        self.stats.ecn_reductions += 1;
        self.high = self.next;
        self.ignored = answer == LossResponse::Ignore;
        if let LossResponse::ReduceTo(ssthresh) = answer {
            self.window.ssthresh = ssthresh;
            if !self.control.owns_recovery() {
                self.window.cwnd = self.window.cwnd.min(ssthresh).max(1.0);
                self.plain.reduced = true;
            }
        }
        self.cwr = true;
        self.state = State::Cwr;
    }

    /// A timeout (ns-3.26 `Retransmit`): all outstanding data are retransmitted from the beginning.
    #[inline(never)]
    pub(super) fn begin_again(&mut self, now: Time) {
        let first = self.state != State::Loss;
        self.retransmits += 1;
        self.backoffs += 1;
        let prior = self.prior_window();
        let mut tally = Tally::new(self.wants_packets, self.lost);
        self.board.mark_all_lost(|_, _| true, |record| tally.add(record));
        self.lost += tally.count;
        self.plain.duplicates = 0;
        self.tell_lost(now, &tally);
        let event = Congestion {
            kind: Signal::Timeout { count: self.retransmits },
            lost: tally.count,
            largest: Bytes::new(u64::from(tally.largest)),
            newest_sent_at: tally.newest_sent_at,
            first,
        };
        let cx = self.context(now);
        let answer = self.control.on_congestion(&cx, &mut self.window, &event);
        if first {
            match answer {
                LossResponse::ReduceTo(ssthresh) => self.window.ssthresh = ssthresh,
                // Slow start leads back to the previous window.
                LossResponse::Ignore => self.window.ssthresh = self.window.ssthresh.max(prior.cwnd),
                LossResponse::Own => {}
            }
            if answer != LossResponse::Own {
                self.window.cwnd = 1.0;
            }
            self.ignored = answer == LossResponse::Ignore;
        }
        self.cwr |= self.confirms_marks() && answer != LossResponse::Ignore;
        self.plain.sent_again += 1;
        self.plain.inflation = 0.0;
        self.plain.reduced = false;
        self.plain.waiting = true;
        self.state = State::Loss;
        self.high = self.next;
        self.urgent = true;
        self.arm_rto(now, false);
    }
}

#[cfg(test)]
mod tests;
