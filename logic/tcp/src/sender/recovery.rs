//! Losses, marks and timeouts: the states of recovery, their effect on the window, and how they are undone.

use ranpace_cc::{Congestion, LossResponse, Packet, PacketOutcome, Signal, State, Window};
use ranpace_units::{Bytes, Time};

use super::Sender;
use super::sampling::Progress;
use super::timers::{TIMEOUT_MIN, TimerKind};
use crate::ecn::EcnFeedback;
use crate::prr::Prr;
use crate::scoreboard::{Flags, Record};
use crate::segment::Segment;

/// State for undoing a reduction.
#[derive(Clone, Debug)]
pub(super) struct Undo {
    /// The window before it; `None` if another reduction was in progress, or marks confirm the reduction.
    pub prior: Option<Window>,
    /// First byte outstanding when it began; if a proxy's report began it, the first byte missed there. Duplicates and
    /// acknowledgements below it are no evidence about the reduction.
    pub marker: u64,
    /// Retransmissions not yet reported as duplicates; `None` before the first.
    pub outstanding: Option<u64>,
    /// Segments declared lost, for controls that want packets.
    pub lost: Vec<Packet>,
}

/// Result of a loss detection pass.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Found {
    pub lost: u64,
    /// Whether segments that were overtaken still have time: the reordering timer runs.
    pub waiting: bool,
}

impl Sender {
    /// Updates recovery on an acknowledgement (Linux `tcp_fastretrans_alert`): the end of an episode, undo, new losses,
    /// marks.
    pub(super) fn react(&mut self, now: Time, segment: &Segment, progress: &Progress) -> Found {
        self.hold_back = false;
        self.prefer_new = false;
        if progress.marked
            && let Some(undo) = &mut self.undo
        {
            undo.prior = None; // a mark confirms the congestion
        }
        match self.state {
            // Kept until data beyond it are acknowledged, so that CWR reaches the receiver.
            State::Cwr if self.una > self.high => self.finish(now),
            State::Recovery if self.una >= self.high => {
                if self.may_undo(segment) {
                    self.undo(now, false);
                } else {
                    self.finish(now);
                }
            }
            State::Recovery => {
                if progress.advanced && self.undo.is_some() && self.is_delayed_original(segment) {
                    // The original filled the hole: if nothing was retransmitted, nothing was lost at all.
                    self.rack.reordering_seen = true;
                    if self.board.retransmitted_out > 0 {
                        self.hold_back = true;
                        return Found::default();
                    }
                    self.undo(now, true);
                } else {
                    self.undo_by_duplicates(now);
                }
            }
            State::Loss => self.process_loss(now, segment, progress),
            State::Open | State::Disorder => self.undo_by_duplicates(now),
            State::Cwr => {}
        }
        let found = self.detect_losses(now);
        if matches!(self.state, State::Open | State::Disorder) {
            if progress.marked {
                self.on_ecn(now);
            } else {
                self.state = self.calm();
                self.forget_retransmissions();
            }
        } else if self.ignored && self.state != State::Cwr && progress.marked {
            self.on_ecn(now); // no reduction is in progress that would be the response
        }
        found
    }

    /// Linux `tcp_process_loss`: after a timeout, with F-RTO (RFC 5682, 3.1).
    fn process_loss(&mut self, now: Time, segment: &Segment, progress: &Progress) {
        let recovered = self.una >= self.high;
        if progress.advanced && self.may_undo(segment) {
            self.undo(now, true);
            return;
        }
        if self.frto {
            if progress.original {
                self.undo(now, true); // step 3b: not all was lost
                return;
            }
            if self.next > self.high {
                let duplicate = !progress.advanced && segment.duplicate.is_none();
                if progress.sacked || duplicate {
                    self.frto = false; // step 3a: the loss was real
                }
            } else if progress.advanced && !recovered {
                // Step 2b: new data will tell, if there are any.
                self.high = self.next;
                self.prefer_new = self.new_data().is_some();
                self.frto = self.prefer_new;
                return;
            }
        }
        if recovered {
            if self.may_undo(segment) {
                self.undo(now, false);
            } else {
                self.finish(now);
            }
        }
    }

    /// The state when nothing is being repaired.
    fn calm(&self) -> State {
        if self.board.sacked_out > 0 { State::Disorder } else { State::Open }
    }

    /// Returns whether a reduction is announced by CWR: with classic feedback.
    pub(super) fn confirms_marks(&self) -> bool {
        self.ecn == EcnFeedback::Classic
    }

    fn on_ecn(&mut self, now: Time) {
        let repairing = matches!(self.state, State::Recovery | State::Loss);
        let event =
            Congestion { kind: Signal::Ecn, lost: 0, largest: Bytes::ZERO, newest_sent_at: now, first: true };
        let cx = self.context(now);
        let prior = self.window;
        let answer = self.control.on_congestion(&cx, &mut self.window, &event);
        self.stats.ecn_reductions += 1;
        self.undo = None;
        self.begin_reduction(answer, prior);
        self.cwr = self.confirms_marks();
        self.state = State::Cwr;
        if repairing {
            // Lost segments are still retransmitted. As in CWR, until the receiver has seen the reduction.
            self.state = State::Recovery;
            self.high += u64::from(self.written > self.next);
        }
    }

    /// Applies the response to a congestion signal to the window.
    fn begin_reduction(&mut self, answer: LossResponse, prior: Window) {
        self.ignored = answer == LossResponse::Ignore;
        self.prr = None;
        self.probe = None;
        self.frto = false;
        self.high = self.next;
        self.cwr |= self.confirms_marks() && !self.ignored;
        if let LossResponse::ReduceTo(ssthresh) = answer {
            self.window.ssthresh = ssthresh;
            if !self.control.owns_recovery() {
                // RFC 6937 divides by the outstanding data (RecoverFS). Linux uses the window instead; if a control has cut
                // its window to one segment (C2TCP), that is too small, and PRR would send twice what arrives.
                let outstanding = self.board.packets_out() - self.board.sacked_out;
                self.prr = Some(Prr::new(prior.cwnd.max(outstanding as f64)));
            }
        }
    }

    /// Begins an episode that may turn out to be spurious (Linux `tcp_init_undo`).
    fn begin_undo(&mut self, prior: Option<Window>) {
        self.forget_retransmissions();
        let probing = self.probe.is_some_and(|probe| probe.retransmitted);
        let outstanding = self.board.retransmitted_out + u64::from(probing);
        self.undo = Some(Undo {
            prior,
            marker: self.una,
            outstanding: (outstanding > 0).then_some(outstanding),
            lost: Vec::new(),
        });
    }

    /// Clears the time of the first retransmission once none is outstanding (Linux `tcp_retrans_stamp_cleanup`). One of an
    /// earlier episode that is still outstanding keeps it: otherwise its acknowledgement, whose echo predates the retransmissions
    /// of this episode, would be taken for that of a delayed original.
    fn forget_retransmissions(&mut self) {
        if self.retransmitting_since.is_some()
            && self.board.retransmitted_out == 0
            && !self.board.first().is_some_and(|record| record.flags.has(Flags::EVER_RETRANSMITTED))
        {
            self.retransmitting_since = None;
        }
    }

    /// The window, with the threshold that an undo restores.
    pub(super) fn prior_window(&self) -> Window {
        Window { ssthresh: self.current_ssthresh(), ..self.window }
    }

    /// RACK's loss detection; begins recovery if something is lost.
    fn detect_losses(&mut self, now: Time) -> Found {
        if !self.rack.take_advanced() || self.board.is_empty() {
            return Found::default();
        }
        self.sweep(now)
    }

    fn sweep(&mut self, now: Time) -> Found {
        let repairing = matches!(self.state, State::Recovery | State::Loss);
        let window = self.rack.reordering_window(
            repairing,
            self.board.sacked_out,
            self.rtt.min(),
            self.rtt.smoothed(),
        );
        let mut tally = Tally::new(self.wants_packets, self.lost);
        let rack = &self.rack;
        let waiting =
            self.board.sweep(|record| rack.verdict(record, now, window), |record| tally.add(record));
        if waiting {
            // By that time, every segment sent before the newest delivered one has had its time.
            let settled = self.rack.settled_at(window).max(now) + TIMEOUT_MIN;
            self.arm(TimerKind::Reordering, settled.min(now + self.rto()));
        }
        self.on_losses(now, &tally);
        Found { lost: tally.count, waiting }
    }

    /// Reports new losses to the control and begins recovery if due (Linux `tcp_time_to_recover`, `tcp_enter_recovery`).
    pub(super) fn on_losses(&mut self, now: Time, tally: &Tally) {
        let first = match self.state {
            // Losses beyond the last episode's end begin another one, even if they were detected during it.
            State::Open | State::Disorder => self.board.lost_out > 0,
            // An ignored episode does not count; a reduction in progress continues.
            State::Cwr | State::Recovery => self.ignored && tally.count > 0,
            State::Loss => tally.retransmission,
        };
        if tally.count == 0 && !first {
            return;
        }
        self.lost += tally.count;
        self.tell_lost(now, tally);
        let largest = if tally.count > 0 { u64::from(tally.largest) } else { self.mss };
        let event = Congestion {
            kind: Signal::Loss,
            lost: tally.count,
            largest: Bytes::new(largest),
            newest_sent_at: tally.newest_sent_at,
            first,
        };
        let cx = self.context(now);
        let prior = self.prior_window();
        let answer = self.control.on_congestion(&cx, &mut self.window, &event);
        let still_ignored = self.ignored
            && answer == LossResponse::Ignore
            && matches!(self.state, State::Recovery | State::Loss);
        if first && !still_ignored {
            self.begin_undo(Some(prior));
            self.begin_reduction(answer, prior);
        } else if still_ignored {
            // The decision is made now, not again when the data outstanding at the first loss are acknowledged.
            self.high = self.next;
        } else if self.state == State::Cwr {
            self.begin_undo(None);
        }
        if first || self.state == State::Cwr {
            self.stats.recoveries += u64::from(self.state != State::Recovery);
            self.state = State::Recovery;
        }
        self.remember_lost(tally);
    }

    fn remember_lost(&mut self, tally: &Tally) {
        if let Some(undo) = &mut self.undo {
            undo.lost.extend_from_slice(&tally.packets);
        }
    }

    pub(super) fn tell_lost(&mut self, now: Time, tally: &Tally) {
        if !self.wants_packets {
            return;
        }
        let cx = self.context(now);
        for packet in &tally.packets {
            self.control.on_packet(&cx, &mut self.window, packet);
        }
    }

    /// Linux `tcp_rack_reo_timeout`.
    pub(super) fn on_reordering_timer(&mut self, now: Time) {
        let before = self.state;
        let found = self.sweep(now);
        if self.state == State::Recovery
            && before != State::Recovery
            && let Some(prr) = &mut self.prr
        {
            self.window.cwnd = prr.window(self.window.ssthresh, self.board.in_flight(), 1, false, true);
        }
        if !found.waiting && !self.board.is_empty() {
            self.arm_rto(now, true);
        }
    }

    /// Processes the report of a duplicate (Linux `tcp_check_dsack`). Returns whether it is the loss probe's.
    pub(super) fn on_duplicate(&mut self, segment: &Segment) -> bool {
        let Some(below) = segment.duplicate else { return false };
        self.duplicates += 1;
        let seq = segment.ack.saturating_sub(u64::from(below));
        let of_probe = self.probe.is_some_and(|probe| probe.retransmitted && probe.seq == seq);
        // More duplicates than retransmissions: the network duplicates packets.
        if self.duplicates > self.stats.retransmitted {
            return of_probe;
        }
        if !of_probe {
            self.rack.on_duplicate(self.una, self.next);
        }
        if let Some(undo) = &mut self.undo
            && seq >= undo.marker
        {
            undo.outstanding = undo.outstanding.map(|count| count.saturating_sub(1));
        }
        of_probe
    }

    /// Processes the response to a loss probe (RFC 8985, 7.4; Linux `tcp_process_tlp_ack`).
    pub(super) fn check_probe(&mut self, now: Time, segment: &Segment, progress: &Progress, duplicate: bool) {
        let Some(probe) = self.probe else { return };
        if segment.ack < probe.end {
            return;
        }
        if !probe.retransmitted || duplicate {
            self.probe = None; // new data, or both copies arrived: nothing was lost
        } else if segment.ack > probe.end {
            // The probe repaired a loss that would otherwise go unnoticed: the window is reduced for it at once.
            let event = Congestion {
                kind: Signal::Loss,
                lost: 1,
                largest: probe.bytes,
                newest_sent_at: probe.sent_at,
                first: true,
            };
            let cx = self.context(now);
            let prior = self.window;
            let answer = self.control.on_congestion(&cx, &mut self.window, &event);
            if answer == LossResponse::Ignore && self.prr.is_some() {
                self.probe = None; // the reduction in progress has another cause
                return;
            }
            self.undo = None;
            self.begin_reduction(answer, prior);
            self.finish(now);
        } else if !progress.advanced && !progress.sacked && segment.duplicate.is_none() {
            self.probe = None; // a plain duplicate: both copies arrived
        }
    }

    /// Returns whether nothing was lost: the echo predates the first retransmission (Eifel), or nothing was retransmitted.
    fn is_delayed_original(&self, segment: &Segment) -> bool {
        if self.undo.as_ref().is_none_or(|undo| self.una <= undo.marker) {
            return false;
        }
        match self.retransmitting_since {
            None => true,
            Some(at) => self.config.timestamps && segment.echo > Time::ZERO && segment.echo < at,
        }
    }

    /// Linux `tcp_may_undo`: the above, or every retransmission was reported as a duplicate.
    fn may_undo(&self, segment: &Segment) -> bool {
        self.undo.as_ref().is_some_and(|undo| undo.outstanding == Some(0))
            || self.is_delayed_original(segment)
    }

    /// Linux `tcp_try_undo_dsack`.
    fn undo_by_duplicates(&mut self, now: Time) {
        if self.undo.as_ref().is_some_and(|undo| undo.outstanding == Some(0)) {
            self.rack.on_undone();
            self.undo(now, false);
        }
    }

    /// Undoes the reduction; with `unmark` also the marks of segments waiting for retransmission.
    fn undo(&mut self, now: Time, unmark: bool) {
        let Some(undo) = self.undo.take() else { return };
        let repairing = matches!(self.state, State::Recovery | State::Loss);
        self.stats.undone += 1;
        if unmark {
            self.board.unmark_lost();
        }
        self.rack.look_again();
        self.prr = None;
        self.frto = false;
        self.retransmits = 0;
        self.state = self.calm();
        let cx = self.context(now);
        for packet in &undo.lost {
            let packet = Packet { fate: PacketOutcome::Spurious, ..*packet };
            self.control.on_packet(&cx, &mut self.window, &packet);
        }
        match (core::mem::take(&mut self.ignored), &undo.prior) {
            (false, Some(prior)) => {
                self.cwr = false;
                self.control.on_spurious(&cx, &mut self.window, prior);
            }
            // The control was not involved, but it did not cause a timeout's window of one segment.
            (true, Some(prior)) => self.window.cwnd = self.window.cwnd.max(prior.cwnd),
            (_, None) => {}
        }
        if repairing {
            self.control.on_recovered(&cx, &mut self.window);
        }
    }

    /// Ends the episode. It can still be undone later.
    pub(super) fn finish(&mut self, now: Time) {
        let ended = self.state;
        self.state = self.calm();
        if self.prr.take().is_some() {
            self.window.cwnd = self.window.ssthresh.max(1.0);
        }
        self.ignored = false;
        self.frto = false;
        if matches!(ended, State::Recovery | State::Loss) {
            self.rack.on_recovered();
        }
        let cx = self.context(now);
        self.control.on_recovered(&cx, &mut self.window);
    }

    /// Linux `tcp_enter_loss`, with F-RTO.
    pub(super) fn on_timeout(&mut self, now: Time) {
        if self.board.is_empty() {
            return;
        }
        self.stats.timeouts += 1;
        if !self.sack {
            self.begin_again(now);
            return;
        }
        let again = self.retransmits > 0;
        let fresh = matches!(self.state, State::Open | State::Disorder | State::Cwr);
        // A reduction within this window is not repeated, unless progress followed the last timeout.
        let first = match self.state {
            State::Open | State::Disorder => true,
            State::Loss if !again => true,
            // An ignored episode does not count.
            _ => self.una >= self.high || self.ignored,
        };
        self.retransmits += 1;
        self.backoffs += 1;
        let (rack_rtt, head) = (self.rack.rtt, self.board.first_id());
        let mut tally = Tally::new(self.wants_packets, self.lost);
        self.board.mark_all_lost(
            |id, record| id == head || rack_rtt.is_zero() || now - record.sent_at >= rack_rtt,
            |record| tally.add(record),
        );
        self.lost += tally.count;
        self.tell_lost(now, &tally);
        let event = Congestion {
            kind: Signal::Timeout { count: self.retransmits },
            lost: tally.count,
            largest: Bytes::new(u64::from(tally.largest)),
            newest_sent_at: tally.newest_sent_at,
            first,
        };
        let cx = self.context(now);
        // An undo restores the window before the first of several timeouts.
        let before = self.undo.as_ref().filter(|_| self.ignored && again).and_then(|undo| undo.prior);
        let prior = before.unwrap_or_else(|| self.prior_window());
        let answer = self.control.on_congestion(&cx, &mut self.window, &event);
        if first {
            self.begin_undo(Some(prior));
            self.ignored = answer == LossResponse::Ignore;
            match answer {
                LossResponse::ReduceTo(ssthresh) => self.window.ssthresh = ssthresh,
                // Slow start leads back to the previous window.
                LossResponse::Ignore => self.window.ssthresh = self.window.ssthresh.max(prior.cwnd),
                LossResponse::Own => {}
            }
        }
        self.remember_lost(&tally);
        if answer != LossResponse::Own {
            self.window.cwnd = (self.board.in_flight() + 1) as f64;
        }
        self.cwr |= self.confirms_marks() && answer != LossResponse::Ignore;
        self.prr = None;
        self.probe = None;
        self.frto = fresh || again;
        self.prefer_new = false;
        self.state = State::Loss;
        self.high = self.next;
        self.urgent = true;
        self.arm_rto(now, false);
    }
}

/// Segments declared lost in one pass.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub count: u64,
    pub largest: u32,
    pub newest_sent_at: Time,
    /// First byte of the first of these segments.
    pub lowest: Option<u64>,
    /// Whether one of them is a retransmission.
    retransmission: bool,
    /// Whether to collect them for the control.
    collect: bool,
    /// Segments that the sender had lost before this pass.
    before: u64,
    packets: Vec<Packet>,
}

impl Tally {
    /// An empty tally of a sender that has lost `before` segments; `collect` if the control wants each segment.
    pub fn new(collect: bool, before: u64) -> Self {
        Self { collect, before, ..Self::default() }
    }

    pub fn add(&mut self, record: &Record) {
        self.count += 1;
        self.largest = self.largest.max(record.length);
        self.newest_sent_at = self.newest_sent_at.max(record.sent_at);
        self.lowest = Some(self.lowest.map_or(record.seq, |lowest| lowest.min(record.seq)));
        self.retransmission |= record.flags.has(Flags::RETRANSMITTED);
        if self.collect {
            self.packets.push(Packet {
                number: record.number,
                bytes: Bytes::new(u64::from(record.length)),
                sent_at: record.sent_at,
                sending: record.sending(self.before + self.count),
                fate: PacketOutcome::Lost,
            });
        }
    }
}
