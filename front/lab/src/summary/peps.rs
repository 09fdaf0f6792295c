//! Lightweight PEPs in the summary.

use ranpace_sim::PepResult;
use ranpace_units::Bytes;
use serde::{Deserialize, Serialize};

/// What a Lightweight PEP saw and said, from the start on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PepSummary {
    /// Its name.
    pub name: String,
    /// Packets that it counted.
    pub packets: u64,
    /// Flows whose counting began.
    pub flows: u64,
    /// Flows that gave way to others.
    pub evicted: u64,
    /// Flows that were silent for too long.
    pub aged: u64,
    /// Reports that it sent.
    pub reports: u64,
    /// Their bytes, headers included.
    pub report_bytes: u64,
    /// Messages that the server let through.
    pub verified: u64,
    /// Messages that it refused.
    pub refused: u64,
    /// Reports that told what cannot be.
    pub impossible: u64,
    /// Times that the server did not listen for a minute.
    pub distrusted: u64,
    /// Times that it asked for counting to begin anew.
    pub resyncs: u64,
}

impl PepSummary {
    /// Of a PEP.
    pub fn of(pep: &PepResult) -> Self {
        Self {
            name: pep.name.clone(),
            packets: pep.packets,
            flows: pep.flows,
            evicted: pep.evicted,
            aged: pep.aged,
            reports: pep.reports,
            report_bytes: pep.report_bytes.get(),
            verified: pep.verified,
            refused: pep.refused,
            impossible: pep.impossible,
            distrusted: pep.distrusted,
            resyncs: pep.resyncs,
        }
    }

    /// As it was measured.
    pub fn to_result(&self) -> PepResult {
        PepResult {
            name: self.name.clone(),
            packets: self.packets,
            flows: self.flows,
            evicted: self.evicted,
            aged: self.aged,
            reports: self.reports,
            report_bytes: Bytes::new(self.report_bytes),
            verified: self.verified,
            refused: self.refused,
            impossible: self.impossible,
            distrusted: self.distrusted,
            resyncs: self.resyncs,
        }
    }
}
