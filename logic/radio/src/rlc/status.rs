//! Status PDUs: the PDUs that a receiver in acknowledged mode reports as missing. TS 36.322 clause 6.2.1.6.

use std::collections::VecDeque;

use ranpace_units::Time;

/// A missing PDU, or a missing part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Nack {
    pub sn: u64,
    pub from: u32,
    /// End (exclusive); [`u32::MAX`] stands for the end of the PDU.
    pub to: u32,
}

#[derive(Default)]
pub(super) struct StatusPdu {
    id: u64,
    /// All PDUs before this one were received, except those in `missing`.
    pub ack: u64,
    pub built: Time,
    /// In order.
    pub missing: Vec<Nack>,
}

/// Most reports under way at a time; beyond that the oldest is lost.
const MOST: usize = 64;

/// Reports under way, and spare lists for reuse.
#[derive(Default)]
pub(super) struct Reports {
    under_way: VecDeque<StatusPdu>,
    spare: Vec<StatusPdu>,
    next_id: u64,
}

impl Reports {
    /// An empty report to fill in.
    pub fn blank(&mut self) -> StatusPdu {
        let mut report = self.spare.pop().unwrap_or_default();
        report.missing.clear();
        report
    }

    /// Sends a report and returns its number.
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

    /// Removes and returns the report with this number.
    pub fn take(&mut self, id: u64) -> Option<StatusPdu> {
        let index = self.under_way.iter().position(|report| report.id == id)?;
        self.under_way.remove(index)
    }

    pub fn give_back(&mut self, report: StatusPdu) {
        // Long lists are rare, so their memory is not kept.
        if self.spare.len() < 2 && report.missing.capacity() <= 64 {
            self.spare.push(report);
        }
    }

    pub fn clear(&mut self) {
        self.under_way.clear();
    }
}
