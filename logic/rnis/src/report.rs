//! The report of one slot.

use ranpace_phy::{Both, Cqi, Direction, LTE_TTI, LteBandwidth, TransportBlock};
use ranpace_units::{Bytes, Span, Time};

/// What grants are made of, and which table an MCS is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Technology {
    /// LTE; MCS of TS 36.213.
    Lte,
    /// NR; MCS of TS 38.214 table 1, or of table 2 with 256QAM.
    Nr {
        /// Whether the tables up to 256QAM are used.
        qam256: bool,
    },
    /// The frame of the published experiments on millimetre waves: grants are of symbols, and the MCS is the CQI.
    Mmwave,
}

/// What a cell is. It changes rarely.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellInfo {
    /// Number of the cell.
    pub cell: u16,
    /// Which tables.
    pub technology: Technology,
    /// Width of the band in PRBs: the cell's resources.
    pub prbs: u16,
    /// Sub-carrier spacing in Hz.
    pub spacing_hz: u32,
    /// Width of the carrier in Hz: of its PRBs, without the guards beside them.
    pub bandwidth_hz: u64,
    /// Length of a slot: the TTI.
    pub slot: Span,
    /// Symbols of a slot.
    pub symbols: u8,
    /// Whether each direction has a carrier of its own.
    pub fdd: bool,
    /// Mean share of the slot's symbols that can carry data this way; both directions share them where symbols are given
    /// out one by one.
    pub share: Both<f64>,
    /// HARQ processes of a user.
    pub harq_processes: Both<u8>,
}

impl CellInfo {
    /// An LTE cell in FDD of this bandwidth: 8 HARQ processes a direction (TS 36.213 clause 7).
    pub fn lte(cell: u16, bandwidth: LteBandwidth) -> Self {
        let prbs = bandwidth.prbs().get();
        Self {
            cell,
            technology: Technology::Lte,
            prbs: prbs.into(),
            spacing_hz: 15_000,
            bandwidth_hz: u64::from(prbs) * 180_000,
            slot: LTE_TTI,
            symbols: 14,
            fdd: true,
            share: Both::of(|_| 1.0),
            harq_processes: Both::of(|_| 8),
        }
    }
}

/// One slot of a cell, with the rows of those users that it tells of.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// The cell.
    pub cell: &'a CellInfo,
    /// Number of the slot, from the beginning.
    pub slot: u64,
    /// When the slot began.
    pub time: Time,
    /// PRBs that were used; a grant of some of the symbols counts in proportion. In the uplink: those sent on in this slot.
    pub used_prbs: Both<f32>,
    /// Users that have something to send this way.
    pub active_users: Both<u16>,
    /// Users, by number. Not all of them: who has nothing to tell is left out (see the subscription).
    pub users: &'a [UserReport],
    /// Their bearers, in the same order.
    pub bearers: &'a [BearerReport],
    /// Whether all users of the cell are in it.
    pub full: bool,
}

/// A user in one slot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UserReport {
    /// Number of the user.
    pub user: u32,
    /// The name that the cell gave it (C-RNTI); TS 36.321 clause 7.1.
    pub rnti: u16,
    /// The wideband CQI that the cell knows.
    pub cqi: Cqi,
    /// When that CQI was measured.
    pub cqi_time: Time,
    /// What the band could carry by Shannon's formula behind that CQI, in bit/s/Hz: the mean of log2(1 + SINR).
    pub capacity: f32,
    /// Each direction.
    pub link: Both<LinkReport>,
}

impl UserReport {
    /// The effective SINR in dB: that of a flat channel with the same capacity.
    pub fn sinr_db(&self) -> f64 {
        10.0 * libm::log10(libm::exp2(self.capacity.into()) - 1.0)
    }
}

/// One direction of a user in one slot.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkReport {
    /// What was sent in this slot.
    pub grant: Option<Grant>,
    /// Bytes that wait in RLC, new or to be sent again, over all bearers. In the uplink: as the base station knows them.
    pub queue: Bytes,
    /// The longest wait at the head of a bearer; in the uplink on the device.
    pub head_of_line: Span,
    /// Transport blocks sent for the first time, since the user came.
    pub blocks: u64,
    /// Transport blocks sent again.
    pub retransmissions: u64,
    /// Transport blocks that HARQ gave up.
    pub lost: u64,
    /// Bits of new data scheduled since the user came: the sum of all blocks that were sent for the first time.
    pub scheduled_bits: u64,
    /// PRBs times symbols of all grants since the user came, retransmissions included.
    pub scheduled_prb_symbols: u64,
}

/// A transport block on the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The MCS; see [`Technology`].
    pub mcs: u8,
    /// PRBs.
    pub prbs: u16,
    /// Symbols of the slot.
    pub symbols: u8,
    /// Size of the block.
    pub block: TransportBlock,
    /// What of it is padding.
    pub padding: Bytes,
    /// Number of the HARQ process.
    pub process: u8,
    /// Whether HARQ sends it again.
    pub again: bool,
}

/// A bearer in one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BearerReport {
    /// Number of the user.
    pub user: u32,
    /// Number of the bearer.
    pub bearer: u8,
    /// Which way.
    pub direction: Direction,
    /// Bytes that wait, new or to be sent again.
    pub queue: Bytes,
    /// How long the packet waits whose byte is the next to be sent.
    pub head_of_line: Span,
    /// What the buffer holds at most; `None` if it is not limited in bytes.
    pub buffer: Option<Bytes>,
}
