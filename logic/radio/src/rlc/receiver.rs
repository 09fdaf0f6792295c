//! The receiver of acknowledged mode: received PDUs, t-Reordering, t-StatusProhibit.
//!
//! Source: TS 36.322 clauses 5.1.3.2 and 5.2.3. State: VR(R), the first PDU that was not received completely; VR(MS), the first
//! that a report does not cover; VR(X), the PDU after the one that started the timer; VR(H), the PDU after the highest received.

use std::collections::VecDeque;

use ranpace_units::{Span, Time};

use super::Timers;
use super::status::{Nack, StatusPdu};

/// A received part of a re-segmented PDU that is not complete yet; pieces are in order and disjoint.
struct Piece {
    sn: u64,
    from: u32,
    to: u32,
}

pub(super) struct Receiver {
    /// VR(R).
    pub r: u64,
    /// VR(MS).
    ms: u64,
    /// VR(X).
    x: u64,
    /// VR(H).
    h: u64,
    /// t-Reordering; [`Time::MAX`] while it does not run.
    pub reordering_ends: Time,
    /// No report is sent before this time (t-StatusProhibit).
    prohibited_until: Time,
    /// Whether a report is pending.
    pub triggered: bool,
    /// The last PDU with an unanswered poll.
    polled: Option<u64>,
    pieces: Vec<Piece>,
    reordering: Span,
    prohibit: Span,
}

/// A PDU, from its first transmission until both ends are done with it.
pub(super) struct Record {
    pub start: u64,
    pub len: u32,
    /// Transmitter: when it, or a part of it, was last sent.
    pub sent: Time,
    /// Transmitter: how often it was considered for retransmission.
    pub retransmissions: u8,
    /// Transmitter: it was acknowledged, or given up.
    pub acked: bool,
    /// Transmitter: it, or a part of it, awaits retransmission.
    pub pending: bool,
    /// Receiver: all of it arrived, or it was given up.
    pub whole: bool,
    /// Receiver: a part of it arrived.
    pub partial: bool,
}

/// PDUs that were built and that at least one end is not done with.
pub(super) struct Records {
    pub ring: VecDeque<Record>,
    /// Number of the first.
    pub base: u64,
}

impl Records {
    #[inline]
    pub fn get(&self, sn: u64) -> Option<&Record> {
        self.ring.get(usize::try_from(sn.checked_sub(self.base)?).ok()?)
    }
    #[inline]
    pub fn get_mut(&mut self, sn: u64) -> Option<&mut Record> {
        self.ring.get_mut(usize::try_from(sn.checked_sub(self.base)?).ok()?)
    }
    /// Number of the next PDU: VT(S).
    #[inline]
    pub fn next(&self) -> u64 {
        self.base + self.ring.len() as u64
    }
    /// The first from `sn` on that is not complete.
    #[inline]
    fn first_missing(&self, mut sn: u64) -> u64 {
        while self.get(sn).is_some_and(|record| record.whole) {
            sn += 1;
        }
        sn
    }
}

impl Receiver {
    pub fn new(timers: &Timers) -> Self {
        Self {
            r: 0,
            ms: 0,
            x: 0,
            h: 0,
            reordering_ends: Time::MAX,
            prohibited_until: Time::ZERO,
            triggered: false,
            polled: None,
            pieces: Vec::new(),
            reordering: timers.reordering,
            prohibit: timers.status_prohibit,
        }
    }

    /// Handles a PDU or a part of one; returns whether it brought anything new.
    pub fn receive(
        &mut self,
        now: Time,
        records: &mut Records,
        (sn, from, to): (u64, u32, u32),
        poll: bool,
    ) -> bool {
        let is_new = self.note(records, sn, from, to);
        if is_new {
            self.h = self.h.max(sn + 1);
            self.advance(now, records);
        }
        if poll {
            self.polled = self.polled.max(Some(sn));
        }
        self.answer_poll();
        is_new
    }

    /// Advances over PDUs that are complete or given up, and updates the timer.
    pub fn advance(&mut self, now: Time, records: &Records) {
        self.r = records.first_missing(self.r);
        self.ms = records.first_missing(self.ms.max(self.r));
        if self.reordering_ends != Time::MAX && self.x <= self.r {
            self.reordering_ends = Time::MAX;
        }
        self.start_timer(now, self.r);
    }

    fn start_timer(&mut self, now: Time, low: u64) {
        if self.reordering_ends == Time::MAX && self.h > low {
            self.reordering_ends = now + self.reordering;
            self.x = self.h;
        }
    }

    /// Handles expiry of t-Reordering: PDUs missing before VR(X) are reported.
    pub fn on_reordering(&mut self, at: Time, records: &Records) {
        self.reordering_ends = Time::MAX;
        self.ms = records.first_missing(self.ms.max(self.x));
        self.triggered = true;
        self.start_timer(at, self.ms);
        self.answer_poll();
    }

    /// Triggers the answer to a poll once a report covers the PDU that carried it; clause 5.2.3.
    #[inline]
    fn answer_poll(&mut self) {
        if self.polled.is_some_and(|sn| sn < self.ms) {
            self.polled = None;
            self.triggered = true;
        }
    }

    /// The earliest time for a report; [`Time::MAX`] if none is pending.
    #[inline]
    pub fn status_due(&self) -> Time {
        if self.triggered { self.prohibited_until } else { Time::MAX }
    }

    /// Writes a report; `fits(whole, parts)` is whether that many missing PDUs and parts have room.
    pub fn report(
        &mut self,
        now: Time,
        records: &Records,
        report: &mut StatusPdu,
        fits: impl Fn(u32, u32) -> bool,
    ) -> (u32, u32) {
        (report.ack, report.built) = (self.ms, now);
        let (mut whole, mut parts) = (0, 0);
        let mut piece = 0;
        for sn in self.r..self.ms {
            let Some(record) = records.get(sn).filter(|record| !record.whole) else { continue };
            let begin = report.missing.len();
            if !record.partial {
                report.missing.push(Nack { sn, from: 0, to: u32::MAX });
                whole += 1;
            } else {
                piece += self.pieces[piece..].partition_point(|piece| piece.sn < sn);
                let mut from = 0;
                for Piece { from: start, to, .. } in self.pieces[piece..].iter().take_while(|p| p.sn == sn) {
                    if *start > from {
                        report.missing.push(Nack { sn, from, to: *start });
                    }
                    from = *to;
                }
                if from < record.len {
                    report.missing.push(Nack { sn, from, to: u32::MAX });
                }
                parts += (report.missing.len() - begin) as u32; // only a few
            }
            let count = report.missing.len();
            while !fits(whole, parts) && report.missing.len() > begin {
                report.missing.pop();
                if record.partial { parts -= 1 } else { whole -= 1 }
            }
            if report.missing.len() < count {
                // Sequence numbers that do not fit into this PDU are not acknowledged, and will be reported another time.
                report.ack = if report.missing.len() > begin { sn + 1 } else { sn };
                break;
            }
        }
        self.triggered = false;
        self.prohibited_until = now + self.prohibit;
        (whole, parts)
    }

    /// Records received bytes; returns whether any of them is new.
    fn note(&mut self, records: &mut Records, sn: u64, from: u32, to: u32) -> bool {
        let Some(record) = records.get_mut(sn).filter(|record| !record.whole) else { return false };
        let to = to.min(record.len);
        if from >= to {
            return false;
        }
        if from == 0 && to == record.len {
            record.whole = true;
        } else {
            // Pieces that touch [from, to] are merged with it.
            let first = self.pieces.partition_point(|p| (p.sn, p.to) < (sn, from));
            let last = first + self.pieces[first..].partition_point(|p| p.sn == sn && p.from <= to);
            let touching = &self.pieces[first..last];
            if touching.len() == 1 && touching[0].from <= from && touching[0].to >= to {
                return false;
            }
            let all_from = touching.first().map_or(from, |p| p.from.min(from));
            let all_to = touching.last().map_or(to, |p| p.to.max(to));
            self.pieces.splice(first..last, [Piece { sn, from: all_from, to: all_to }]);
            record.partial = true;
            record.whole = all_from == 0 && all_to == record.len;
        }
        if record.whole && record.partial {
            self.forget(sn);
        }
        true
    }

    /// Drops the pieces of a PDU that is complete or given up.
    pub fn forget(&mut self, sn: u64) {
        self.pieces.retain(|piece| piece.sn != sn);
    }

    /// Resets the state to start at this number.
    pub fn restart(&mut self, sn: u64) {
        (self.r, self.ms, self.x, self.h) = (sn, sn, sn, sn);
        (self.reordering_ends, self.prohibited_until) = (Time::MAX, Time::ZERO);
        (self.triggered, self.polled) = (false, None);
        self.pieces.clear();
    }
}
