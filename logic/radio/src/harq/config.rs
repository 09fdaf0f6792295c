//! How many processes, and when things happen; all times in TTIs.

/// Processes and times of one direction. Times are whole TTIs (slots), counted from the transmission.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HarqConfig {
    /// How many blocks can be under way; 1 to 64, others are taken as the nearest.
    pub processes: u8,
    /// When a decoded block is handed to RLC.
    pub decode: u64,
    /// When the sender hears whether it was decoded; NR's K1.
    pub feedback: u64,
    /// When the process may send again, a new block or the same; at least one TTI.
    pub turnaround: u64,
    /// How often a block is sent again before it is dropped.
    pub max_retransmissions: u8,
    /// Probability that the sender reads a failure as success, so that the block is lost at once.
    pub misreading: f64,
    /// Whether a process sends again only at multiples of the turnaround, as LTE's uplink does; otherwise at any TTI after.
    pub synchronous: bool,
}

impl HarqConfig {
    /// LTE's FDD downlink: 8 processes (TS 36.213 clause 7), decoded after 3 TTIs (1 ms in the air, 1.5 ms of processing,
    /// rounded up), ACK after 4, again after 8; 4 retransmissions (Diarra 2022, Table 4.1). ns-3 has 3.
    pub const LTE: Self = Self {
        processes: 8,
        decode: 3,
        feedback: 4,
        turnaround: 8,
        max_retransmissions: 4,
        misreading: 0.0,
        synchronous: false,
    };
    /// LTE's uplink: as [`Self::LTE`], synchronous; TS 36.213 clause 8.
    pub const LTE_UPLINK: Self = Self { synchronous: true, ..Self::LTE };
    /// NR: 16 processes (TS 38.214 clause 5.1), K1 of 4 slots, again after 8 slots (our choices); decoded after 3 slots,
    /// so that the ACK can be ready (ours).
    pub const NR: Self = Self { processes: 16, ..Self::LTE };
    /// The experiments on millimetre waves: 10 processes (the authors' scripts), decoded after one TTI of 100 us (ns-3's
    /// module); else as [`Self::NR`]. 3 retransmissions, as ns-3.
    pub const MMWAVE: Self = Self { processes: 10, decode: 1, max_retransmissions: 3, ..Self::NR };
}

impl Default for HarqConfig {
    /// [`HarqConfig::LTE`].
    fn default() -> Self {
        Self::LTE
    }
}
