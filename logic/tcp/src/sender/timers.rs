//! Timers: one at a time, as in Linux: retransmission, loss probe, reordering or persist.

use ranpace_cc::State;
use ranpace_units::{Span, Time};

use super::{Phase, Sender};
use crate::segment::Kind;

/// Shortest time of a loss probe and of RACK's timer beyond the RTT (Linux `TCP_TIMEOUT_MIN`, two jiffies of a
/// millisecond).
pub(super) const TIMEOUT_MIN: Span = Span::from_millis(2);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimerKind {
    Retransmission,
    Probe,
    Reordering,
    Persist,
}

impl Sender {
    pub(super) fn arm(&mut self, kind: TimerKind, at: Time) {
        self.timer = Some((kind, at));
    }

    /// Sets the timer after an acknowledgement or a transmission: a loss probe where one may help, else the RTO.
    pub(super) fn rearm(&mut self, now: Time, advanced: bool) {
        if self.board.is_empty() {
            if self.timer.is_some_and(|(kind, _)| kind != TimerKind::Persist) {
                self.timer = None;
            }
            return;
        }
        let reordering = self.timer.is_some_and(|(kind, at)| kind == TimerKind::Reordering && at > now);
        if reordering || (!advanced && self.timer.is_some()) {
            return;
        }
        let rto_at = now + self.rtt.backed_off(self.backoffs);
        if self.state == State::Open && self.probe.is_none() && !self.rtt.smoothed().is_zero() {
            let mut wait = self.rtt.smoothed() * 2;
            wait += if self.board.packets_out() == 1 { self.config.min_rto } else { TIMEOUT_MIN };
            let at = now + wait;
            if at < rto_at {
                self.arm(TimerKind::Probe, at);
                return;
            }
        }
        self.arm(TimerKind::Retransmission, rto_at);
    }

    /// When [`Self::on_deadline`] is to be called next; [`Time::MAX`] for never.
    #[inline]
    pub fn next_deadline(&self) -> Time {
        let mut at = self.timer.map_or(Time::MAX, |(_, at)| at);
        if let Some(paced) = self.paced_until {
            at = at.min(paced);
        }
        if self.phase == Phase::Established
            && let Some(own) = self.control.next_deadline()
        {
            at = at.min(own);
        }
        at
    }

    /// A deadline has come (or not: then nothing happens). Call [`Self::poll_transmit`] afterwards.
    pub fn on_deadline(&mut self, now: Time) {
        if self.paced_until.is_some_and(|at| at <= now) {
            self.paced_until = None;
        }
        if self.phase == Phase::Established && self.control.next_deadline().is_some_and(|at| at <= now) {
            let cx = self.context(now);
            self.control.on_deadline(&cx, &mut self.window);
        }
        let Some((kind, at)) = self.timer else { return };
        if at > now {
            return;
        }
        self.timer = None;
        match (self.phase, kind) {
            (Phase::SynSent { .. }, _) => self.repeat(now, Kind::Syn),
            (Phase::Answered { .. }, _) => self.repeat(now, Kind::SynAck),
            (_, TimerKind::Retransmission) => self.on_timeout(now),
            (_, TimerKind::Probe) => self.on_probe(now),
            (_, TimerKind::Reordering) => {
                let lost = self.sweep(now);
                if lost > 0
                    && let Some(prr) = &mut self.prr
                {
                    self.window.cwnd =
                        prr.window(self.window.ssthresh, self.board.in_flight(), 1, false, true);
                }
                self.rearm(now, true);
            }
            (_, TimerKind::Persist) => {
                self.probe_window = true;
                self.backoffs += 1;
            }
        }
    }

    fn repeat(&mut self, now: Time, kind: Kind) {
        self.backoffs += 1;
        self.pending = Some(kind);
        self.arm(TimerKind::Retransmission, now + self.rtt.backed_off(self.backoffs));
    }

    /// RFC 8985, 7.3: new data if there are any, else the last segment again.
    fn on_probe(&mut self, now: Time) {
        let Some(last) = self.board.last_id() else { return };
        self.stats.probes += 1;
        let may_send_new =
            self.next < self.written && self.next + self.mss.min(self.written - self.next) <= self.edge;
        self.probe = Some((self.next, !may_send_new));
        if may_send_new {
            self.pending = Some(Kind::Data);
        } else {
            self.probe_again = Some(last);
        }
        self.arm(TimerKind::Retransmission, now + self.rtt.backed_off(self.backoffs));
    }
}
