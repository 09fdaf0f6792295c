//! Acknowledged mode: missing PDUs are reported and sent again, segmented if the grant is smaller.
//!
//! Source: TS 36.322 clauses 5.1.3 and 5.2. State of the transmitter: VT(A), the first PDU that is not acknowledged;
//! VT(S), the next number; POLL_SN and t-PollRetransmit; the PDUs, or parts of PDUs, to be sent again, oldest first.
//! The receiver is in `receiver.rs`. Retransmissions go before new data.
//!
//! Ours: a report written before the latest transmission of a PDU is ignored for that PDU, and does not answer a poll
//! that was sent later. When the bearer fails, the PDU is given up at both ends at once, as re-establishing the bearer would do,
//! and everything else continues.

mod answers;
mod claim;

use std::collections::VecDeque;

use ranpace_link::Packet;
use ranpace_units::{Bytes, Span, Time};

use self::claim::Claim;
use super::receiver::{Receiver, Record, Records};
use super::status::{Nack, Reports};
use super::stream::{LATEST, Stream, shrink};
use super::{Config, Counters, DropCause, Format, Kind, Observer, Pdu, Timers, room};

/// One direction of a bearer in acknowledged mode.
pub struct Am<P> {
    stream: Stream<P>,
    /// PDUs from VT(A) on.
    records: Records,
    receiver: Receiver,
    reports: Reports,
    /// PDUs, or parts of PDUs, to be retransmitted, in order.
    again: VecDeque<Nack>,
    again_bytes: u64,
    /// PDUs that reached the limit of retransmissions and are about to be given up.
    failed: Vec<u64>,
    failed_at: Time,
    /// POLL_SN, and the time of the poll.
    polled: Option<(u64, Time)>,
    /// When t-PollRetransmit expires; [`Time::MAX`] while it does not run.
    poll_timer: Time,
    poll_now: bool,
    claim: Claim,
    pdus_without_poll: u32,
    bytes_without_poll: u64,
    format: Format,
    timers: Timers,
}

impl<P: Packet> Am<P> {
    /// An idle channel. `seed` is for queue disciplines that draw random numbers.
    pub fn new(config: &Config, seed: u64) -> Self {
        Self {
            stream: Stream::new(config, seed),
            records: Records { ring: VecDeque::new(), base: 0 },
            receiver: Receiver::new(&config.timers),
            reports: Reports::default(),
            again: VecDeque::new(),
            again_bytes: 0,
            failed: Vec::new(),
            failed_at: Time::MAX,
            polled: None,
            poll_timer: Time::MAX,
            poll_now: false,
            claim: Claim::new(config.timers.unacknowledged_report),
            pdus_without_poll: 0,
            bytes_without_poll: 0,
            format: config.format,
            timers: config.timers,
        }
    }

    /// Transmitter: adds a packet to the buffer, or drops it.
    pub fn enqueue(&mut self, now: Time, packet: P, observer: &mut impl Observer<P>) {
        self.stream.push(now, packet, observer);
        self.report_backlog(now);
    }

    /// Reports unacknowledged data to the scheduler, if it counts; see [`Claim`].
    pub fn report_backlog(&mut self, now: Time) {
        if self.claim.is_on() {
            let open = self.records.ring.iter().filter(|record| !record.acked && !record.pending);
            let open = open.map(|record| u64::from(record.len)).sum();
            self.claim.report(now, open, !(self.again.is_empty() && self.stream.is_empty()));
        }
    }

    /// Returns whether blocks are granted for unacknowledged data.
    #[inline]
    pub fn claims(&self) -> bool {
        self.claim.is_on()
    }

    /// Transmitter: builds a PDU for `grant` bytes of a transport block: a retransmission (of a PDU or a part of one) if any
    /// is due, otherwise new data. `None` if nothing waits, fits or may be sent. Callers repeat it while there is room left.
    pub fn build(&mut self, now: Time, grant: Bytes, observer: &mut impl Observer<P>) -> Option<Pdu> {
        let grant = room(grant);
        self.claim.grant(grant);
        if let Some(first) = self.again.front().copied() {
            return self.build_again(now, grant, first);
        }
        if self.is_stalled() {
            return None;
        }
        let Some(cut) = self.stream.cut(now, grant, observer) else {
            self.watch(now);
            return None;
        };
        let sn = self.records.next();
        self.records.ring.push_back(Record {
            start: cut.start,
            len: cut.len,
            sent: now,
            retransmissions: 0,
            acked: false,
            pending: false,
            whole: false,
            partial: false,
        });
        self.pdus_without_poll += 1;
        self.bytes_without_poll += u64::from(cut.len);
        let poll = self.poll(now);
        Some(Pdu { sn, from: 0, to: cut.len, size: cut.size, kind: Kind::Data { poll, again: false } })
    }

    fn build_again(&mut self, now: Time, grant: u32, nack: Nack) -> Option<Pdu> {
        let Nack { sn, from, to } = nack;
        // A pending retransmission always has a record: it is dropped when the record is acknowledged.
        let record = self.records.get_mut(sn)?;
        let to = to.min(record.len);
        let position = |offset: u32| record.start + u64::from(offset);
        let parts = self.stream.parts_in(position(from), position(to));
        let segment = from > 0 || to < record.len;
        let mut headers = self.format.again(parts, segment, grant);
        let mut end = to;
        if headers.saturating_add(to - from) > grant {
            headers = self.format.again(parts, true, grant);
            let mut room = grant.saturating_sub(headers);
            if room == 0 {
                // Part of the first packet may fit, with the headers of one part.
                let rest = self.stream.part_end(position(from)) - position(from);
                let one = grant.saturating_sub(self.format.again(1, true, grant));
                room = one.min(u32::try_from(rest).unwrap_or(u32::MAX));
            }
            if room == 0 {
                return None;
            }
            end = from + room.min(to - from - 1).max(1);
            headers = self.format.again(self.stream.parts_in(position(from), position(end)), true, grant);
        }
        if end <= from || headers.saturating_add(end - from) > grant {
            return None;
        }
        record.sent = now;
        if end == to {
            self.again.pop_front();
            record.pending = self.again.front().is_some_and(|next| next.sn == sn);
            shrink(&mut self.again);
        } else if let Some(first) = self.again.front_mut() {
            first.from = end;
        }
        let len = end - from;
        self.again_bytes -= u64::from(len);
        self.stream.counters.sent_again.add(Bytes::new(len.into()));
        let poll = self.poll(now);
        Some(Pdu { sn, from, to: end, size: headers + len, kind: Kind::Data { poll, again: true } })
    }

    /// Returns whether the PDU just built polls for a report; clause 5.2.2.1.
    fn poll(&mut self, now: Time) -> bool {
        let poll = self.poll_now
            || self.is_quiet()
            || self.pdus_without_poll >= self.timers.poll_pdus.max(1)
            || self.bytes_without_poll >= self.timers.poll_bytes.get().max(1);
        if poll {
            (self.poll_now, self.pdus_without_poll, self.bytes_without_poll) = (false, 0, 0);
            self.polled = self.records.next().checked_sub(1).map(|sn| (sn, now));
            self.poll_timer = now + self.timers.poll_retransmit;
        }
        poll
    }

    /// Returns whether nothing can be sent now.
    fn is_quiet(&self) -> bool {
        self.again.is_empty() && (self.stream.is_empty() || self.is_stalled())
    }

    /// Ours: starts t-PollRetransmit if it does not run while PDUs are unacknowledged and nothing can be sent, even if the PDU that
    /// was to carry the poll was acknowledged or dropped before it was sent.
    fn watch(&mut self, now: Time) {
        if self.poll_timer == Time::MAX && !self.records.ring.is_empty() && self.is_quiet() {
            self.poll_timer = now + self.timers.poll_retransmit.max(Span::from_millis(1));
        }
    }

    /// Returns whether the window is full.
    #[inline]
    fn is_stalled(&self) -> bool {
        self.records.ring.len() as u64 >= u64::from(self.timers.window.max(1))
    }

    /// Receiver: handles a PDU of a decoded transport block. Status reports go to [`Self::on_status`] instead.
    pub fn on_received(&mut self, now: Time, pdu: Pdu, observer: &mut impl Observer<P>) {
        let Kind::Data { poll, .. } = pdu.kind else { return };
        if pdu.sn >= self.records.next() {
            return; // a PDU of another bearer
        }
        let range = (pdu.sn, pdu.from, pdu.to);
        if self.receiver.receive(now, &mut self.records, range, poll) {
            self.deliver(now, observer);
        } else {
            self.stream.counters.useless += 1;
        }
    }

    /// Delivers packets that are complete and in order.
    fn deliver(&mut self, now: Time, observer: &mut impl Observer<P>) {
        if let Some(last) = self.receiver.r.checked_sub(1).and_then(|sn| self.records.get(sn)) {
            let end = last.start + u64::from(last.len);
            self.stream.deliver_up_to(now, end, observer);
        }
    }

    /// Handles the loss of a PDU with its transport block, which neither end learns of.
    pub fn on_lost(&mut self, pdu: Pdu) {
        if pdu.is_status() {
            self.on_status_lost(pdu);
        }
    }

    /// Receiver: the earliest time for a status report; [`Time::MAX`] if none is pending.
    #[inline]
    pub fn status_due(&self) -> Time {
        self.receiver.status_due()
    }

    /// Receiver: the size of the shortest status report, if one is due.
    pub fn status_wanted(&self, now: Time) -> Bytes {
        if self.status_due() <= now.min(LATEST) {
            Bytes::new(self.format.status(0, 0).into())
        } else {
            Bytes::ZERO
        }
    }

    /// Receiver: writes a status report for `grant` bytes of a block of the other direction. PDUs that do not fit are omitted, and
    /// are not acknowledged either.
    pub fn build_status(&mut self, now: Time, grant: Bytes) -> Option<Pdu> {
        let (format, grant) = (self.format, room(grant));
        if self.status_due() > now.min(LATEST) || format.status(0, 0) > grant {
            return None;
        }
        let mut report = self.reports.blank();
        let fits = |whole, parts| format.status(whole, parts) <= grant;
        let (whole, parts) = self.receiver.report(now, &self.records, &mut report, fits);
        self.stream.counters.statuses += 1;
        let (sn, size) = (self.reports.send(report), format.status(whole, parts));
        Some(Pdu { sn, from: 0, to: 0, size, kind: Kind::Status })
    }

    /// When [`Self::on_deadline`] is due; [`Time::MAX`] if no timer runs.
    #[inline]
    pub fn next_deadline(&self) -> Time {
        self.receiver
            .reordering_ends
            .min(self.poll_timer)
            .min(self.failed_at)
            .min(self.claim.next())
            .min(self.stream.discard_deadline())
    }

    /// Handles timers that expired by `now`, each at its own time, and gives up failed PDUs.
    pub fn on_deadline(&mut self, now: Time, observer: &mut impl Observer<P>) {
        let now = now.min(LATEST);
        while self.next_deadline() <= now {
            self.stream.discard(now, observer);
            while self.receiver.reordering_ends <= now {
                self.receiver.on_reordering(self.receiver.reordering_ends, &self.records);
            }
            if self.poll_timer <= now {
                self.on_poll_timer(now);
            }
            if self.failed_at <= now {
                self.give_up(now, observer);
            }
            if self.claim.next() <= now {
                self.report_backlog(self.claim.next());
            }
            self.watch(now);
        }
    }

    /// Handles expiry of t-PollRetransmit; clause 5.2.2.3. If nothing else can carry the poll, the last PDU is sent again
    /// (or all are: [`Timers::poll_sends_all`]). The timer is restarted (ours, for at least 1 ms), since the PDU that carries the
    /// poll may be acknowledged before it is sent.
    fn on_poll_timer(&mut self, now: Time) {
        self.poll_timer = Time::MAX;
        let range = self.records.base..self.records.next();
        let is_open = |sn: &u64| self.records.get(*sn).is_some_and(|record| !record.acked);
        let Some(sn) = range.rev().find(is_open) else { return };
        self.poll_now = true;
        self.poll_timer = now + self.timers.poll_retransmit.max(Span::from_millis(1));
        if self.is_quiet() {
            let first = if self.timers.poll_sends_all { self.records.base } else { sn };
            for sn in first..=sn {
                self.send_again(now, sn, &[Nack { sn, from: 0, to: u32::MAX }], Time::MAX);
            }
        }
    }

    fn give_up(&mut self, now: Time, observer: &mut impl Observer<P>) {
        self.failed_at = Time::MAX;
        while let Some(sn) = self.failed.pop() {
            let Some(record) = self.records.get_mut(sn) else { continue };
            let (start, end) = (record.start, record.start + u64::from(record.len));
            if !core::mem::replace(&mut record.whole, true) {
                let cause = DropCause::MaxRetransmissions;
                self.stream.drop_range(now, start, end, cause, observer);
                self.receiver.forget(sn);
            }
            self.stream.counters.failures += 1;
            observer.on_failed(now);
        }
        self.receiver.advance(now, &self.records);
        self.deliver(now, observer);
        self.retire();
        // The PDUs whose poll awaited an answer may be among those given up.
        if self.records.ring.is_empty() {
            (self.polled, self.poll_timer) = (None, Time::MAX);
        }
    }

    /// Re-establishes both ends, as a handover does. With `keep`, packets that were not delivered are sent from their
    /// first byte (PDCP data recovery; TS 36.323 clause 5.2.1.1); otherwise partly sent packets are dropped
    /// ([`DropCause::Reset`]).
    pub fn restart(&mut self, now: Time, keep: bool, observer: &mut impl Observer<P>) {
        let next = self.records.next();
        self.records.ring.clear();
        self.records.base = next;
        self.receiver.restart(next);
        self.reports.clear();
        self.again.clear();
        self.claim.restart();
        self.failed.clear();
        (self.again_bytes, self.failed_at) = (0, Time::MAX);
        (self.polled, self.poll_timer, self.poll_now) = (None, Time::MAX, false);
        self.stream.restart(now, keep, observer);
    }

    /// Bytes to be retransmitted.
    pub fn to_be_sent_again(&self) -> Bytes {
        Bytes::new(self.again_bytes)
    }

    /// A grant that suffices for everything that may be sent now: retransmissions with their headers, and new data unless the window
    /// is full. With [`Timers::unacknowledged_report`] it includes unacknowledged data.
    pub fn wanted(&self) -> Bytes {
        // A part of a PDU has 5 B of headers and those of its packets; 16 B suffice for ten.
        let again = Bytes::new(self.again_bytes + 16 * self.again.len() as u64 + self.claim.bytes());
        if self.is_stalled() { again } else { again + self.stream.wanted() }
    }

    super::figures::reports!();
}
