//! Number of HARQ processes, and times in TTIs.

/// Processes and times of one direction. Times are whole TTIs (slots), counted from the transmission.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HarqConfig {
    /// Number of blocks that can be under way; clamped to 1 to 64.
    pub processes: u8,
    /// Time until a decoded block is handed to RLC.
    pub decode: u64,
    /// Time until the sender receives the acknowledgement; NR's K1.
    pub feedback: u64,
    /// Time until the process may send again, a new block or the same; at least one TTI.
    pub turnaround: u64,
    /// Number of retransmissions before a block is dropped.
    pub max_retransmissions: u8,
    /// Probability that the sender reads a failure as success, so that the block is lost at once.
    pub misreading: f64,
    /// Whether a process retransmits only at multiples of the turnaround, as in LTE's uplink; otherwise in any later TTI.
    pub synchronous: bool,
}

impl HarqConfig {
    /// LTE's FDD downlink: 8 processes (TS 36.213 clause 7), decoded after 3 TTIs (1 ms in the air, 1.5 ms of processing,
    /// rounded up), ACK after 4, retransmission after 8; 4 retransmissions (Diarra 2022, Table 4.1). ns-3 has 3.
    pub const LTE: Self = Self {
        processes: 8,
        decode: 3,
        feedback: 4,
        turnaround: 8,
        max_retransmissions: 4,
        misreading: 0.0,
        synchronous: false,
    };
    /// LTE's uplink: like [`Self::LTE`], but synchronous; TS 36.213 clause 8.
    pub const LTE_UPLINK: Self = Self { synchronous: true, ..Self::LTE };
    /// NR: 16 processes (TS 38.214 clause 5.1), K1 of 4 slots, retransmission after 8 slots (our choices); decoded after 3 slots,
    /// so that the ACK can be ready (ours).
    pub const NR: Self = Self { processes: 16, ..Self::LTE };
    /// The experiments on millimetre waves: 10 processes (the authors' scripts), decoded after one TTI of 100 us (ns-3's
    /// module), 3 retransmissions as in ns-3; otherwise like [`Self::NR`].
    pub const MMWAVE: Self = Self { processes: 10, decode: 1, max_retransmissions: 3, ..Self::NR };
}

impl Default for HarqConfig {
    /// [`HarqConfig::LTE`].
    fn default() -> Self {
        Self::LTE
    }
}
