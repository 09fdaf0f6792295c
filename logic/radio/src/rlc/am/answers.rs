//! Handling of status reports at the transmitter of acknowledged mode: acknowledged PDUs are released, missing ones are
//! retransmitted. TS 36.322 clause 5.2.1.

use ranpace_link::Packet;
use ranpace_units::Time;

use super::super::status::Nack;
use super::super::stream::shrink;
use super::super::{Am, Pdu};

impl<P: Packet> Am<P> {
    /// Transmitter: handles a report; clause 5.2.1. Its effects on packets are reported by [`Self::on_deadline`], due at once.
    pub fn on_status(&mut self, now: Time, pdu: Pdu) {
        if !pdu.is_status() {
            return;
        }
        let Some(report) = self.reports.take(pdu.sn) else { return };
        if self.polled.is_some_and(|(sn, at)| sn < report.ack && at < report.built) {
            (self.polled, self.poll_timer) = (None, Time::MAX);
        }
        let mut missing = report.missing.as_slice();
        for sn in self.records.base..report.ack.min(self.records.next()) {
            let skipped = missing.partition_point(|nack| nack.sn < sn);
            let count = missing[skipped..].iter().take_while(|nack| nack.sn == sn).count();
            let (of_this, rest) = missing[skipped..].split_at(count);
            missing = rest;
            if count > 0 {
                self.send_again(now, sn, of_this, report.built);
            } else {
                self.acknowledge(sn);
            }
        }
        self.reports.give_back(report);
        self.retire();
        self.watch(now);
    }

    /// Handles the loss of a status report with its transport block.
    pub fn on_status_lost(&mut self, pdu: Pdu) {
        if pdu.is_status()
            && let Some(report) = self.reports.take(pdu.sn)
        {
            self.reports.give_back(report);
        }
    }

    fn acknowledge(&mut self, sn: u64) {
        let Some(record) = self.records.get_mut(sn).filter(|record| !record.acked) else { return };
        record.acked = true;
        if core::mem::take(&mut record.pending) {
            let len = record.len;
            let bytes: u64 =
                self.again.iter().filter(|n| n.sn == sn).map(|n| u64::from(n.to.min(len) - n.from)).sum();
            self.again_bytes -= bytes;
            self.again.retain(|nack| nack.sn != sn);
        }
    }

    /// Queues these parts of a PDU for retransmission, unless the PDU is already queued.
    pub(super) fn send_again(&mut self, now: Time, sn: u64, missing: &[Nack], reported: Time) {
        let Some(record) = self.records.get_mut(sn) else { return };
        if record.acked || record.pending || reported <= record.sent {
            return;
        }
        if self.timers.max_retransmissions.is_some_and(|most| record.retransmissions >= most) {
            record.acked = true;
            self.failed.push(sn);
            self.failed_at = self.failed_at.min(now);
            return;
        }
        record.retransmissions = record.retransmissions.saturating_add(1);
        record.pending = true;
        let mut index = self.again.partition_point(|nack| nack.sn < sn);
        for nack in missing {
            let nack = Nack { to: nack.to.min(record.len), ..*nack };
            if nack.from < nack.to {
                self.again_bytes += u64::from(nack.to - nack.from);
                self.again.insert(index, nack);
                index += 1;
            }
        }
    }

    /// Releases PDUs that both ends are done with.
    pub(super) fn retire(&mut self) {
        while self.records.base < self.receiver.r && self.records.ring.front().is_some_and(|r| r.acked) {
            self.records.ring.pop_front();
            self.records.base += 1;
        }
        shrink(&mut self.records.ring);
    }
}
