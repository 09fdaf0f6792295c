//! Selects the next segment to send, and validates the congestion window by its use.

use ranpace_cc::{Pacing, Sent, State};
use ranpace_units::{Bytes, Ecn, Time};

use super::timers::TimerKind;
use super::{Phase, Sender};
use crate::pacer::{Pacer, default_rate};
use crate::scoreboard::{Flags, Record};
use crate::segment::{Kind, Segment};

/// Least number of segments in a piece, if that many are available (Linux `tcp_min_tso_segs`).
const LEAST_PIECE: u32 = 2;
/// Initial segments that are not paced.
const UNPACED: u64 = 10;

impl Sender {
    /// The next segment to send now, if the window, the pace and the application allow one. Call until `None`.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        let mut segment = Segment::new(Kind::Data, now);
        self.transmit(now, &mut segment).then_some(segment)
    }

    /// Like [`Self::poll_transmit`], but writes the segment in place: a segment whose fields have just been written is slow
    /// to copy. Returns false, with unspecified contents, if there is none.
    pub fn transmit(&mut self, now: Time, out: &mut Segment) -> bool {
        match self.pending {
            None => {}
            Some(Kind::Data) => {
                self.pending = None;
                // A loss probe, sent regardless of the window.
                if let Some(length) = self.new_data() {
                    self.send_new(now, length, out);
                    self.fresh = false;
                    return true;
                }
            }
            Some(kind) => {
                self.pending = None;
                self.bare(now, kind, out);
                return true;
            }
        }
        if self.phase != Phase::Established {
            return false;
        }
        if let Some(id) = self.probe_again.take()
            && self.board.get(id).is_some_and(|record| !record.flags.has(Flags::SACKED))
        {
            self.send_again(now, id, true, out);
            return true;
        }
        if core::mem::take(&mut self.probe_window) {
            self.arm(TimerKind::Persist, now + self.rtt.backed_off(self.window_probes));
            self.bare(now, Kind::Data, out);
            return true;
        }
        // After a timeout the first segment is sent at once, ignoring window and pace.
        if core::mem::take(&mut self.urgent)
            && let Some(id) = self.board.next_lost()
        {
            self.send_again(now, id, false, out);
            return true;
        }
        let in_flight = self.board.in_flight();
        let cwnd = if self.sack { self.window.cwnd.max(1.0) as u64 } else { self.inflated_window() };
        let new = self.new_data();
        let repairing = matches!(self.state, State::Recovery | State::Loss) && !self.hold_back;
        let new_first = self.prefer_new && new.is_some();
        let again = if repairing && !new_first { self.board.next_lost() } else { None };
        let limited = in_flight >= cwnd;
        if limited || (again.is_none() && new.is_none()) {
            self.paced_until = None;
            self.end_batch(now, in_flight, limited, new.is_some());
            return false;
        }
        let pacing = self.pacing();
        if !self.pacer.may_send(now, pacing) {
            self.paced_until = Some(self.pacer.next());
            self.end_batch(now, in_flight, false, new.is_some());
            return false;
        }
        self.paced_until = None;
        let is_new = again.is_none();
        match (again, new) {
            (Some(id), _) => self.send_again(now, id, false, out),
            (None, Some(length)) => self.send_new(now, length, out),
            (None, None) => return false,
        }
        // The first ten segments are not paced (Linux `tcp_update_skb_after_send`).
        let pacing = if self.stats.sent < UNPACED { Pacing::Unlimited } else { pacing };
        self.pacer.on_sent(now, pacing, u64::from(out.wire), self.wire);
        if self.config.gso {
            // Linux also pushes the end of an application's write (`tcp_push`).
            out.push = is_new && (self.ends_piece(pacing, cwnd) | (self.next == self.written));
        }
        true
    }

    /// Most segments of a piece for an unpaced control (Linux `tcp_tso_autosize`, without its increase at RTTs below 5 ms):
    /// those of a burst at the pace that Linux computes for it.
    fn most_of_piece(&self) -> u32 {
        match default_rate(self.window.cwnd, self.window.ssthresh, self.rtt.smoothed(), self.wire) {
            Pacing::Rate(rate) => Pacer::burst(rate, self.wire).max(LEAST_PIECE),
            Pacing::Unlimited => u32::MAX,
        }
    }

    /// Returns whether the segment just sent is the last of a piece of several.
    fn ends_piece(&mut self, pacing: Pacing, cwnd: u64) -> bool {
        self.pacer.piece += 1;
        let full = match pacing {
            Pacing::Rate(_) => self.pacer.left() == 0,
            Pacing::Unlimited => self.pacer.piece >= self.most_of_piece(),
        };
        if !full && self.board.in_flight() < cwnd && self.new_data().is_some() {
            return false;
        }
        // Data held back by the window are not the end of this burst, but the beginning of the next.
        self.pacer.on_idle();
        core::mem::take(&mut self.pacer.piece) > 1
    }

    /// Payload of the next new segment, if there is data and the send buffer and the peer's window have room.
    #[inline]
    pub(super) fn new_data(&self) -> Option<u32> {
        let written = self.written - self.next;
        let buffered = self.next - self.una;
        if written == 0 || buffered >= self.config.send_buffer.get() {
            return None;
        }
        let length = written.min(self.mss);
        let room = self.edge.saturating_sub(self.next);
        // A full segment or the last data; a smaller segment only if nothing is in flight (silly window syndrome).
        if room >= length {
            Some(length as u32)
        } else if room > 0 && self.board.is_empty() {
            Some(room as u32)
        } else {
            None
        }
    }

    /// A segment without payload: of the handshake, or a window probe.
    fn bare(&self, now: Time, kind: Kind, segment: &mut Segment) {
        *segment = Segment::new(kind, now);
        segment.seq = self.next;
        segment.number = self.number;
        segment.window = 65_535;
        segment.echo = self.last_timestamp;
        match kind {
            Kind::Syn => segment.offer_ecn(self.config.ecn_feedback()),
            Kind::SynAck => segment.accept_ecn(self.ecn),
            _ => {}
        }
        segment.measure(self.config.timestamps);
    }

    #[inline]
    fn data(&self, now: Time, seq: u64, length: u32, segment: &mut Segment) {
        *segment = Segment::new(Kind::Data, now);
        segment.seq = seq;
        segment.length = length;
        segment.number = self.number;
        segment.echo = self.last_timestamp;
        segment.window = 65_535;
        segment.ecn = self.codepoint;
        segment.measure(self.config.timestamps);
    }

    #[inline]
    fn send_new(&mut self, now: Time, length: u32, segment: &mut Segment) {
        if self.board.is_empty() {
            self.restart(now);
        }
        let seq = self.next;
        self.data(now, seq, length, segment);
        segment.cwr = core::mem::take(&mut self.cwr);
        self.next += u64::from(length);
        let mut record = Record {
            seq,
            length,
            flags: Flags::default(),
            number: self.number,
            sent_at: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            in_flight: 0,
            run: 0,
            lost: [0; 3],
        };
        record.on_sent(self.board.in_flight(), self.lost, self.app_limited_until > 0);
        self.board.push(record);
        if self.timer.is_none() || self.board.packets_out() == 1 {
            self.arm_rto(now, false);
        }
        self.fresh = true;
        self.after_sending(now, length, false);
    }

    /// Retransmits a segment, because it is lost or as a tail loss probe.
    fn send_again(&mut self, now: Time, id: u64, probing: bool, segment: &mut Segment) {
        let (number, delivered, delivered_at, first) =
            (self.number, self.delivered, self.delivered_at, self.first_sent_at);
        let (in_flight, lost, app_limited) = (self.board.in_flight(), self.lost, self.app_limited_until > 0);
        let (mut seq, mut length) = (self.una, 0);
        if let Some(record) = self.board.get_mut(id) {
            (seq, length) = (record.seq, record.length);
            (record.number, record.sent_at) = (number, now);
            (record.delivered, record.delivered_at, record.first_sent_at) = (delivered, delivered_at, first);
            record.on_sent(in_flight, lost, app_limited);
            record.flags.set(Flags::EVER_RETRANSMITTED);
        }
        self.data(now, seq, length, segment);
        segment.retransmission = true;
        segment.ecn = Ecn::NotEct; // RFC 3168, 6.1.5
        self.board.on_retransmitted(id, number);
        self.stats.retransmitted += 1;
        if !probing {
            self.retransmitting_since.get_or_insert(now);
            if let Some(undo) = &mut self.undo {
                undo.outstanding = Some(undo.outstanding.unwrap_or(0) + 1);
            }
        }
        // Retransmitting the first segment restarts the timer (Linux `tcp_xmit_retransmit_queue`), but not without SACK.
        let head =
            self.sack && id == self.board.first_id() && !probing && !self.is_armed(TimerKind::Reordering);
        if head || self.timer.is_none() {
            self.arm_rto(now, false);
        }
        self.after_sending(now, length, true);
    }

    #[inline]
    fn after_sending(&mut self, now: Time, length: u32, retransmission: bool) {
        if let Some(prr) = &mut self.prr {
            prr.on_sent();
        }
        let sent = Sent { number: self.number, bytes: Bytes::new(u64::from(length)), retransmission };
        self.number += 1;
        self.stats.sent += 1;
        self.last_sent_at = now;
        let cx = self.context(now);
        self.control.on_sent(&cx, &mut self.window, &sent);
    }

    /// Called when nothing is in flight and a segment is about to be sent: restarts the rate sampler, and decays the window after idle
    /// time (Linux `tcp_cwnd_restart`), unless the control owns it.
    fn restart(&mut self, now: Time) {
        (self.first_sent_at, self.delivered_at) = (now, now);
        let idle = now - self.last_sent_at;
        if self.delivered == 0 || idle.is_zero() {
            return;
        }
        let rto = self.rto();
        let decays = self.config.slow_start_after_idle && idle > rto && self.state == State::Open;
        if decays && !self.control.owns_recovery() {
            self.window.ssthresh = self.current_ssthresh();
            let least = f64::from(self.config.initial_window).min(self.window.cwnd);
            let mut left = idle;
            while left > rto && self.window.cwnd > least {
                self.window.cwnd /= 2.0;
                left -= rto;
            }
            self.window.cwnd = self.window.cwnd.max(least);
            self.used_at = now;
            self.used = 0;
        }
        let cx = self.context(now);
        self.control.on_idle_restart(&cx, &mut self.window, idle);
    }

    /// Linux `tcp_current_ssthresh`: at least three quarters of the window.
    pub(super) fn current_ssthresh(&self) -> f64 {
        if matches!(self.state, State::Cwr | State::Recovery) {
            self.window.ssthresh
        } else {
            self.window.ssthresh.max(0.75 * self.window.cwnd)
        }
    }

    /// Called when everything that may be sent has been: records what limited the sender, and sets the timers that depend on it.
    fn end_batch(&mut self, now: Time, in_flight: u64, limited: bool, waiting: bool) {
        let fresh = core::mem::take(&mut self.fresh);
        if fresh || (limited && waiting) {
            self.validate_window(now, limited);
        }
        if fresh && self.timer.is_none_or(|(kind, _)| kind != TimerKind::Reordering) {
            self.schedule_probe(now, false);
        }
        if !limited && self.next >= self.written && self.board.lost_out <= self.board.retransmitted_out {
            self.app_limited_until = (self.delivered + in_flight).max(1);
        }
        // A burst cut by the window continues when there is room (Linux defers it); one that runs out of data is over.
        if self.paced_until.is_none() && !limited {
            self.pacer.on_idle();
        }
        // The peer's window is closed and nothing is in flight: probe it.
        if self.board.is_empty() && self.written > self.next && self.edge <= self.next && self.timer.is_none()
        {
            self.window_probes = 0;
            self.arm(TimerKind::Persist, now + self.rtt.backed_off(0));
        }
    }

    /// Linux `tcp_cwnd_validate`.
    fn validate_window(&mut self, now: Time, limited: bool) {
        let out = self.board.packets_out();
        if self.una >= self.usage_end || limited || (!self.cwnd_limited && out > self.most_out) {
            self.cwnd_limited = limited;
            self.most_out = out;
            self.usage_end = self.next;
        }
        if self.is_cwnd_limited() {
            self.used = 0;
            self.used_at = now;
            return;
        }
        self.used = self.used.max(out);
        let settled = !self.config.slow_start_after_idle || now - self.used_at < self.rto();
        if settled || self.control.owns_recovery() {
            return;
        }
        // Linux `tcp_cwnd_application_limited`. An application waiting for room in the send buffer is not idle: the limit is
        // then the peer's window.
        let blocked = self.written == u64::MAX || self.written - self.una > self.config.send_buffer.get();
        if self.state == State::Open && !blocked {
            let used = (self.used as f64).max(f64::from(self.config.initial_window));
            if used < self.window.cwnd {
                self.window.ssthresh = self.current_ssthresh();
                self.window.cwnd = (self.window.cwnd + used) / 2.0;
            }
            self.used = 0;
        }
        self.used_at = now;
    }
}
