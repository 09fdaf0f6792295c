//! Losses, marks and timeouts: recovery's states, what they do to the window, and how they are taken back.

use ranpace_cc::{Ack, Answer, Congestion, Fate, Packet, RateSample, Signal, State, Window};
use ranpace_units::{Bytes, Span, Time};

use super::Sender;
use super::sampling::Progress;
use super::timers::{TIMEOUT_MIN, TimerKind};
use crate::prr::Prr;
use crate::scoreboard::Record;
use crate::segment::Segment;

/// What is needed to take a reduction back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    pub prior: Window,
    /// Retransmissions not yet reported as duplicates; `None` before the first.
    pub outstanding: Option<u64>,
    /// When the first retransmission of the episode left.
    pub first_retransmission: Option<Time>,
}

impl Sender {
    pub(super) fn on_ecn(&mut self, now: Time) {
        if !self.config.ecn || !matches!(self.state, State::Open | State::Disorder) {
            return;
        }
        let event =
            Congestion { kind: Signal::Ecn, lost: 0, largest: Bytes::ZERO, newest_sent_at: now, first: true };
        let cx = self.context(now);
        let prior = self.window;
        let answer = self.control.on_congestion(&cx, &mut self.window, &event);
        self.cwr = true;
        self.stats.ecn_reductions += 1;
        self.high = self.next;
        self.state = State::Cwr;
        self.undo = None;
        self.begin_reduction(answer, prior);
    }

    /// What the answer to a sign of congestion means for the window.
    fn begin_reduction(&mut self, answer: Answer, prior: Window) {
        self.ignored = answer == Answer::Ignore;
        self.prr = None;
        if let Answer::ReduceTo(ssthresh) = answer {
            self.window.ssthresh = ssthresh;
            if !self.owns_recovery {
                // RFC 6937 divides by what was outstanding (RecoverFS). Linux takes the window for it, which a control
                // that cut its own window to one segment (C2TCP) has made too small: it would send twice what arrives.
                let outstanding = self.board.packets_out() - self.board.sacked_out;
                self.prr = Some(Prr::new(prior.cwnd.max(outstanding as f64)));
            }
        }
    }

    /// RACK's look at what is outstanding; begins recovery if something is newly lost. Returns how many are.
    pub(super) fn detect_losses(&mut self, now: Time) -> u64 {
        if !self.rack.take_advanced() || self.board.is_empty() {
            return 0;
        }
        self.sweep(now)
    }

    pub(super) fn sweep(&mut self, now: Time) -> u64 {
        let repairing = matches!(self.state, State::Recovery | State::Loss);
        let window = self.rack.reordering_window(
            repairing,
            self.board.sacked_out,
            self.rtt.min(),
            self.rtt.smoothed(),
        );
        let mut tally = Tally { collect: self.wants_packets, ..Tally::default() };
        let rack = &self.rack;
        self.board.sweep(|record| rack.verdict(record, now, window), |record| tally.add(record));
        if self.board.in_flight() > 0 && !window.is_zero() {
            // Someone sent earlier than the newest delivered one still has time: look again then.
            let settled = self.rack.settled_at(window);
            if settled > now && self.board.sacked_out > 0 {
                self.arm(TimerKind::Reordering, settled + TIMEOUT_MIN);
            }
        }
        self.on_lost(now, &tally);
        tally.count
    }

    /// Segments were found lost (by RACK or a probe).
    fn on_lost(&mut self, now: Time, tally: &Tally) {
        if tally.count == 0 {
            return;
        }
        self.lost += tally.count;
        self.tell_lost(now, tally);
        let first = !matches!(self.state, State::Recovery | State::Loss);
        let event = Congestion {
            kind: Signal::Loss,
            lost: tally.count,
            largest: Bytes::new(u64::from(tally.largest)),
            newest_sent_at: tally.newest_sent_at,
            first,
        };
        let cx = self.context(now);
        let prior = self.window;
        let answer = self.control.on_congestion(&cx, &mut self.window, &event);
        if !first {
            return;
        }
        // A reduction after an ECN mark is under way: recovery goes on with it.
        let reducing = self.state == State::Cwr && self.prr.is_some();
        self.stats.recoveries += 1;
        self.state = State::Recovery;
        self.high = self.next;
        self.undo = Some(Undo { prior, outstanding: None, first_retransmission: None });
        if !reducing {
            self.begin_reduction(answer, prior);
        }
    }

    fn tell_lost(&mut self, now: Time, tally: &Tally) {
        if !self.wants_packets {
            return;
        }
        let cx = self.context(now);
        for packet in &tally.packets {
            self.control.on_packet(&cx, &mut self.window, packet);
        }
    }

    /// The answer to a loss probe (RFC 8985, 7.4; Linux `tcp_process_tlp_ack`).
    pub(super) fn check_probe(&mut self, now: Time, segment: &Segment, progress: &Progress) {
        let Some((end, retransmitted)) = self.probe else { return };
        if segment.ack < end {
            return;
        }
        if !retransmitted || segment.duplicate.is_some() {
            self.probe = None; // new data, or both copies arrived: nothing was lost
        } else if segment.ack > end || (progress.advanced && !progress.sacked) {
            self.probe = None;
            // The probe repaired a loss that nobody would have noticed: the window answers for it.
            if matches!(self.state, State::Open | State::Disorder) {
                let event = Congestion {
                    kind: Signal::Loss,
                    lost: 1,
                    largest: Bytes::new(self.mss),
                    newest_sent_at: self.last_sent_at,
                    first: true,
                };
                let cx = self.context(now);
                let prior = self.window;
                let answer = self.control.on_congestion(&cx, &mut self.window, &event);
                self.lost += 1;
                self.state = State::Cwr;
                self.high = self.next;
                self.undo = None;
                self.begin_reduction(answer, prior);
            }
        }
    }

    /// The end of recovery, spurious ones included.
    pub(super) fn advance_state(&mut self, now: Time, segment: &Segment, progress: &Progress) {
        match self.state {
            State::Open | State::Disorder => {
                self.state = if self.board.sacked_out > 0 { State::Disorder } else { State::Open };
            }
            State::Cwr => {
                if self.una >= self.high {
                    self.finish_recovery(now);
                }
            }
            State::Recovery => {
                if self.may_undo(segment, progress) {
                    self.undo(now);
                } else if self.una >= self.high {
                    self.finish_recovery(now);
                }
            }
            State::Loss => {
                if self.frto && progress.original && progress.delivered > 0 && self.undo.is_some() {
                    // F-RTO: something that was never sent again arrived after the timeout.
                    self.frto = false;
                    self.undo(now);
                    return;
                }
                if self.may_undo(segment, progress) {
                    self.frto = false;
                    self.undo(now);
                    return;
                }
                if self.una >= self.high {
                    self.frto = false;
                    self.finish_recovery(now);
                } else if self.frto {
                    if progress.advanced && self.next <= self.high {
                        // RFC 5682, step 2b: new data tell whether the timeout was needed.
                        self.prefer_new = true;
                        self.high = self.next;
                    } else if progress.sacked || !progress.advanced {
                        self.frto = false;
                        self.prefer_new = false;
                    }
                }
            }
        }
    }

    /// Eifel (the echo is older than the retransmission) or every retransmission reported as a duplicate.
    fn may_undo(&self, segment: &Segment, progress: &Progress) -> bool {
        let Some(undo) = &self.undo else { return false };
        let eifel = self.config.timestamps
            && progress.advanced
            && segment.echo > Time::ZERO
            && undo.first_retransmission.is_some_and(|at| segment.echo < at);
        eifel || undo.outstanding == Some(0)
    }

    fn undo(&mut self, now: Time) {
        let Some(undo) = self.undo.take() else { return };
        self.stats.undone += 1;
        self.board.unmark_lost();
        self.state = if self.board.sacked_out > 0 { State::Disorder } else { State::Open };
        self.prr = None;
        self.prefer_new = false;
        let cx = self.context(now);
        if self.ignored {
            self.ignored = false;
        } else {
            self.control.on_spurious(&cx, &mut self.window, &undo.prior);
        }
        self.control.on_recovered(&cx, &mut self.window);
    }

    fn finish_recovery(&mut self, now: Time) {
        let ended = self.state;
        self.state = if self.board.sacked_out > 0 { State::Disorder } else { State::Open };
        if self.prr.take().is_some() && ended != State::Loss {
            self.window.cwnd = self.window.ssthresh.max(1.0);
        }
        self.ignored = false;
        self.undo = None;
        self.prefer_new = false;
        if ended != State::Cwr {
            self.rack.on_recovered();
        }
        let cx = self.context(now);
        self.control.on_recovered(&cx, &mut self.window);
    }

    pub(super) fn control_window(
        &mut self,
        now: Time,
        segment: &Segment,
        progress: &Progress,
        mut rate: RateSample,
        rtt: Option<Span>,
        lost: u64,
    ) {
        if let Some(prr) = &mut self.prr
            && matches!(self.state, State::Recovery | State::Cwr)
        {
            if progress.delivered > 0 || lost > 0 {
                self.window.cwnd = prr.window(
                    self.window.ssthresh,
                    self.board.in_flight(),
                    progress.delivered,
                    progress.advanced,
                    lost > 0,
                );
            }
            if !self.owns_recovery {
                return;
            }
        }
        if progress.delivered == 0 && lost == 0 {
            return;
        }
        rate.lost = lost;
        let ack = Ack {
            acked: progress.acked,
            delivered: progress.delivered,
            bytes: Bytes::new(progress.bytes),
            rtt,
            rate,
            prior_in_flight: progress.prior_in_flight,
            ecn_echo: segment.ecn_echo,
        };
        let cx = self.context(now);
        self.control.on_ack(&cx, &mut self.window, &ack);
    }

    /// Linux `tcp_enter_loss`, with F-RTO.
    pub(super) fn on_timeout(&mut self, now: Time) {
        if self.board.is_empty() {
            return;
        }
        self.stats.timeouts += 1;
        self.backoffs += 1;
        let fresh = !matches!(self.state, State::Recovery | State::Loss) || self.una >= self.high;
        let (rack_rtt, head) = (self.rack.rtt, self.board.first_id());
        let mut tally = Tally { collect: self.wants_packets, ..Tally::default() };
        self.board.mark_all_lost(
            |id, record| id == head || rack_rtt.is_zero() || now - record.sent_at >= rack_rtt,
            |record| tally.add(record),
        );
        self.lost += tally.count;
        self.tell_lost(now, &tally);
        let event = Congestion {
            kind: Signal::Timeout { count: self.backoffs },
            lost: tally.count,
            largest: Bytes::new(u64::from(tally.largest)),
            newest_sent_at: tally.newest_sent_at,
            first: fresh || self.state != State::Loss,
        };
        let cx = self.context(now);
        let prior = self.window;
        let answer = self.control.on_congestion(&cx, &mut self.window, &event);
        // A second timeout in a row reduces again only where the first made progress.
        if let Answer::ReduceTo(ssthresh) = answer
            && event.first
        {
            self.window.ssthresh = ssthresh;
        }
        if event.first {
            self.undo = Some(Undo { prior, outstanding: None, first_retransmission: None });
        }
        self.ignored = answer == Answer::Ignore;
        if !self.owns_recovery || answer != Answer::Own {
            self.window.cwnd = (self.board.in_flight() + 1) as f64;
        }
        self.prr = None;
        self.probe = None;
        self.frto = fresh;
        self.prefer_new = false;
        self.state = State::Loss;
        self.high = self.next;
        self.arm(TimerKind::Retransmission, now + self.rtt.backed_off(self.backoffs));
    }
}

/// Segments found lost in one pass.
#[derive(Clone, Debug, Default)]
struct Tally {
    count: u64,
    largest: u32,
    newest_sent_at: Time,
    /// Whether the control wants each of them.
    collect: bool,
    packets: Vec<Packet>,
}

impl Tally {
    fn add(&mut self, record: &Record) {
        self.count += 1;
        self.largest = self.largest.max(record.length);
        self.newest_sent_at = self.newest_sent_at.max(record.sent_at);
        if self.collect {
            self.packets.push(Packet {
                number: record.number,
                bytes: Bytes::new(u64::from(record.length)),
                sent_at: record.sent_at,
                fate: Fate::Lost,
            });
        }
    }
}
