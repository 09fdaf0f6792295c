//! Status PDUs: the PDUs that a receiver in acknowledged mode misses. TS 36.322 clause 6.2.1.6.

use std::collections::VecDeque;

use ranpace_units::Time;

/// A PDU, or a part of one, that is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Nack {
    pub sn: u64,
    pub from: u32,
    /// To before here; [`u32::MAX`] stands for the end of the PDU.
    pub to: u32,
}

#[derive(Default)]
pub(super) struct StatusPdu {
    id: u64,
    /// Every PDU before this one came, but for those in `missing`.
    pub ack: u64,
    pub built: Time,
    /// In order.
    pub missing: Vec<Nack>,
}

/// More than these are not on their way at a time; if they are, the oldest is lost.
const MOST: usize = 64;

/// Reports on their way, and lists to be used again.
#[derive(Default)]
pub(super) struct Reports {
    under_way: VecDeque<StatusPdu>,
    spare: Vec<StatusPdu>,
    next_id: u64,
}

impl Reports {
    /// An empty report to be filled.
    pub fn blank(&mut self) -> StatusPdu {
        let mut report = self.spare.pop().unwrap_or_default();
        report.missing.clear();
        report
    }

    /// Sends a report; its number.
    pub fn send(&mut self, mut report: StatusPdu) -> u64 {
        report.id = self.next_id;
        self.next_id += 1;
        if self.under_way.len() >= MOST
            && let Some(oldest) = self.under_way.pop_front()
        {
            self.give_back(oldest);
        }
        let id = report.id;
        self.under_way.push_back(report);
        id
    }

    /// The report of this number, once.
    pub fn take(&mut self, id: u64) -> Option<StatusPdu> {
        let index = self.under_way.iter().position(|report| report.id == id)?;
        self.under_way.remove(index)
    }

    pub fn give_back(&mut self, report: StatusPdu) {
        // A long list is rare, and its memory is not kept.
        if self.spare.len() < 2 && report.missing.capacity() <= 64 {
            self.spare.push(report);
        }
    }

    pub fn clear(&mut self) {
        self.under_way.clear();
    }
}
