//! The figures of a trace, as `ranpace trace info` shows them.

use ranpace_link::TraceStats;
use serde::Serialize;

use super::TraceFile;

/// The figures of one trace. A rate counts 1500 B for each opportunity.
#[derive(Clone, Debug, Serialize)]
pub struct TraceFigures {
    /// Name of the trace, as asked for.
    pub file: String,
    /// Format and compression.
    pub format: String,
    /// Its length.
    pub duration_s: f64,
    /// Delivery opportunities.
    pub opportunities: u64,
    /// Mean rate.
    pub mean_bit_s: u64,
    /// Rate of the worst whole second.
    pub min_second_bit_s: u64,
    /// Rate of the best whole second.
    pub max_second_bit_s: u64,
    /// Gaps of more than 1 s.
    pub stalls: u32,
    /// The longest gap.
    pub longest_gap_s: f64,
    /// Time in stalls.
    pub stalled_s: f64,
    /// Share of milliseconds with an opportunity.
    pub busy: f64,
    /// Most opportunities in a millisecond.
    pub max_per_ms: u32,
    /// SHA-256 of the uncompressed bytes.
    pub sha256: String,
}

impl TraceFigures {
    /// Of a trace that was read by this name.
    pub fn of(file: impl Into<String>, found: &TraceFile) -> Self {
        let stats = TraceStats::of(&found.trace);
        Self {
            file: file.into(),
            format: found.packing.to_string(),
            duration_s: stats.duration.as_secs_f64(),
            opportunities: stats.opportunities,
            mean_bit_s: stats.mean.bits_per_s(),
            min_second_bit_s: stats.min_second.bits_per_s(),
            max_second_bit_s: stats.max_second.bits_per_s(),
            stalls: stats.stalls,
            longest_gap_s: stats.longest_gap.as_secs_f64(),
            stalled_s: stats.stalled.as_secs_f64(),
            busy: stats.busy,
            max_per_ms: stats.max_per_ms,
            sha256: found.sha256.clone(),
        }
    }
}
