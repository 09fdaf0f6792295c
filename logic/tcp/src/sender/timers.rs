//! Timers: at most one is armed, as in Linux: retransmission, loss probe, reordering or persist.

use ranpace_cc::State;
use ranpace_units::{Bytes, Span, Time};

use super::{Phase, Sender};
use crate::config::{LINEAR_SYNS, Opener};
use crate::segment::Kind;

/// An outstanding loss probe.
#[derive(Clone, Copy, Debug)]
pub(super) struct TailProbe {
    pub seq: u64,
    /// Next byte to send after it.
    pub end: u64,
    pub bytes: Bytes,
    pub sent_at: Time,
    pub retransmitted: bool,
}

/// Least time of a loss probe and of RACK's timer beyond the RTT (Linux `TCP_TIMEOUT_MIN`, two jiffies of a millisecond).
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

    pub(super) fn is_armed(&self, kind: TimerKind) -> bool {
        self.timer.is_some_and(|(armed, _)| armed == kind)
    }

    pub(super) fn rto(&self) -> Span {
        self.rtt.backed_off(self.backoffs)
    }

    /// Arms the retransmission timer: from now, or, if another timer ran meanwhile, from the first segment's last
    /// transmission (Linux `tcp_rearm_rto`). Pacing's delay is not counted.
    pub(super) fn arm_rto(&mut self, now: Time, from_head: bool) {
        let head = self.board.first().filter(|_| from_head);
        let at = match head {
            Some(head) => (head.sent_at + self.rto()).max(now + Span::from_millis(1)),
            None => now + self.rto(),
        };
        self.arm(TimerKind::Retransmission, at + self.pacing_delay(now));
    }

    fn pacing_delay(&self, now: Time) -> Span {
        self.paced_until.map_or(Span::ZERO, |until| until - now)
    }

    /// Sets the timer after an acknowledgement: a loss probe if one may help, else the RTO (Linux `tcp_set_xmit_timer`).
    #[inline(always)]
    pub(super) fn rearm(&mut self, now: Time) {
        if self.board.is_empty() {
            if !self.is_armed(TimerKind::Persist) {
                self.timer = None;
            }
            return;
        }
        if !self.schedule_probe(now, true) {
            let other = self.is_armed(TimerKind::Probe) || self.is_armed(TimerKind::Reordering);
            self.arm_rto(now, other);
        }
    }

    /// Schedules a loss probe after two RTTs, or at the RTO if that is earlier (Linux `tcp_schedule_loss_probe`).
    pub(super) fn schedule_probe(&mut self, now: Time, advancing: bool) -> bool {
        if !self.sack || !matches!(self.state, State::Open | State::Cwr) {
            return false;
        }
        let Some(head) = self.board.first() else { return false };
        let srtt = self.rtt.smoothed();
        let wait = match (srtt.is_zero(), self.board.packets_out()) {
            (true, _) => Span::SECOND,
            (false, 1) => srtt * 2 + self.config.min_rto,
            (false, _) => srtt * 2 + TIMEOUT_MIN,
        };
        let rto_at = if advancing { now } else { head.sent_at } + self.rto();
        let at = if rto_at > now { (now + wait).min(rto_at) } else { now + wait };
        self.arm(TimerKind::Probe, at + self.pacing_delay(now));
        true
    }

    /// When to call [`Self::on_deadline`] next; [`Time::MAX`] for never.
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

    /// Processes due deadlines; does nothing if none is due. Call [`Self::poll_transmit`] afterwards.
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
        self.hold_back = false;
        match (self.phase, kind) {
            (Phase::SynSent { .. }, _) => self.repeat(now, Kind::Syn),
            (Phase::Answered { .. }, _) => self.repeat(now, Kind::SynAck),
            (_, TimerKind::Retransmission) => self.on_timeout(now),
            (_, TimerKind::Probe) => self.on_probe(now),
            (_, TimerKind::Reordering) => self.on_reordering_timer(now),
            (_, TimerKind::Persist) => {
                self.probe_window = true;
                self.window_probes += 1;
            }
        }
    }

    /// Repeats the handshake's segment. SYNs are repeated at a constant interval at first; SYN-ACKs back off from the
    /// beginning.
    fn repeat(&mut self, now: Time, kind: Kind) {
        self.retransmits += 1;
        let linear = if self.config.opener == Opener::Sender { LINEAR_SYNS } else { 0 };
        self.backoffs = self.retransmits.saturating_sub(linear);
        self.pending = Some(kind);
        self.arm_rto(now, false);
    }

    /// RFC 8985, 7.3: sends new data if there are any, else the last segment again. One probe at a time.
    fn on_probe(&mut self, now: Time) {
        let Some(&last) = self.board.last() else { return };
        if self.probe.is_some() {
            self.arm_rto(now, true);
            return;
        }
        self.stats.probes += 1;
        let mut probe = TailProbe {
            seq: last.seq,
            end: self.next,
            bytes: Bytes::new(u64::from(last.length)),
            sent_at: now,
            retransmitted: true,
        };
        if let Some(length) = self.new_data() {
            probe.retransmitted = false;
            probe.end += u64::from(length);
            self.pending = Some(Kind::Data);
        } else {
            self.probe_again = self.board.last_id();
        }
        self.probe = Some(probe);
        self.arm_rto(now, false);
    }
}
