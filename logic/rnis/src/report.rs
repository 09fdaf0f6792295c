//! The report of one slot.

use ranpace_phy::{
    Both, Cqi, Direction, LTE_TTI, Layers, LteBandwidth, LteGrant, LteMcs, LtePrbs, MmwaveGrant, NrGrant,
    NrMcs, Prbs, QamTable, Symbols, TransportBlock,
};
use ranpace_units::{Bytes, Rate, Span, Time};

/// The unit of grants, and the MCS table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Technology {
    /// LTE; MCS of TS 36.213.
    Lte,
    /// NR; MCS of TS 38.214 table 1, or of table 2 with 256QAM.
    Nr {
        /// Whether the tables up to 256QAM are used.
        qam256: bool,
    },
    /// The frame of the published millimetre-wave experiments: grants consist of symbols, and the MCS is the CQI.
    Mmwave,
}

/// The description of a cell. It changes rarely.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellInfo {
    /// Number of the cell.
    pub cell: u16,
    /// Technology, which determines the tables.
    pub technology: Technology,
    /// Width of the band in PRBs: the cell's resources.
    pub prbs: u16,
    /// Sub-carrier spacing in Hz.
    pub spacing_hz: u32,
    /// Width of the carrier in Hz: its PRBs, without guard bands.
    pub bandwidth_hz: u64,
    /// Length of a slot: the TTI.
    pub slot: Span,
    /// Symbols of a slot.
    pub symbols: u8,
    /// Whether each direction has a carrier of its own.
    pub fdd: bool,
    /// Mean share of a slot's symbols that can carry data in this direction; where symbols are allocated, both directions share
    /// them.
    pub share: Both<f64>,
    /// Data symbols of a slot that belongs to this direction alone.
    pub data_symbols: Both<u8>,
    /// Whether both directions use the same symbols, so that each takes them from the other.
    pub shared: bool,
    /// Whether symbols are allocated, each over the whole band, instead of PRBs.
    pub by_symbols: bool,
    /// Share of the slots in which new data are sent: a model's correction for a network that carries less than its blocks suggest.
    /// No real network reports it, so [`Self::rate`] ignores it.
    pub usable: Both<f64>,
    /// Resource elements that each PRB of an NR grant loses to pilots and other overhead: N_DMRS + N_oh of TS 38.214 clause
    /// 5.1.3.2. LTE's tables include them.
    pub overhead: u8,
    /// Spatial layers of a block.
    pub layers: u8,
    /// HARQ processes of a user.
    pub harq_processes: Both<u8>,
}

impl CellInfo {
    /// Slots that belong to this direction alone per slot of any kind: the factor from a block of a full slot to the mean of a TTI
    /// (Diarra 2022, Eq. 3.8 and 5.3 as printed let every TTI carry one; ours where directions take turns).
    pub fn full_slots(&self, direction: Direction) -> f64 {
        let symbols = self.share[direction] * f64::from(self.symbols);
        symbols / f64::from(self.data_symbols[direction].max(1))
    }

    /// Whether a cell can be so: for descriptions that come from outside. Bounds are generous: ten times an NR carrier's PRBs, the
    /// symbols of the millimetre-wave frame, TTIs from 1 us to 10 ms.
    pub fn is_plausible(&self) -> bool {
        let is_share = |share: f64| (0.0..=1.0).contains(&share);
        (1..=2_750).contains(&self.prbs)
            && (1..=24).contains(&self.symbols)
            && (1..=8).contains(&self.layers)
            && (1_000..=10_000_000).contains(&self.slot.as_nanos())
            && [self.data_symbols.downlink, self.data_symbols.uplink].iter().all(|symbols| *symbols <= 24)
            && [self.share.downlink, self.share.uplink, self.usable.downlink, self.usable.uplink]
                .into_iter()
                .all(is_share)
    }

    /// The transport block of a grant in a full slot of this direction; zero if there is no such grant. `units` are PRBs, rounded
    /// down; where symbols are allocated, each stands for its part of all PRBs. An LTE uplink grant has 2^a 3^b 5^c PRBs (TS 36.211
    /// clause 5.3.3), so the largest such number up to `units` is used.
    pub fn block(&self, direction: Direction, mcs: u8, layers: u8, units: f64) -> TransportBlock {
        let whole = if self.by_symbols {
            units * f64::from(self.data_symbols[direction]) / f64::from(self.prbs.max(1))
        } else {
            units
        };
        // The mean of integers may be off by a rounding error.
        self.grant(direction, mcs, layers, libm::floor(whole + 1e-6))
    }

    /// The same for whole PRBs or symbols, at most all of them. NaN counts as none.
    fn grant(&self, direction: Direction, mcs: u8, layers: u8, count: f64) -> TransportBlock {
        let symbols = self.data_symbols[direction];
        let most = if self.by_symbols { u16::from(symbols) } else { self.prbs };
        let count = if count >= f64::from(most) { most } else { count as u16 };
        if count == 0 {
            return TransportBlock::ZERO;
        }
        let (prbs, symbols) = if self.by_symbols { (self.prbs, count as u8) } else { (count, symbols) };
        match self.technology {
            Technology::Lte => {
                let parts = (LteMcs::new(mcs), u8::try_from(prbs).ok().and_then(LtePrbs::new));
                let (Some(mcs), Some(prbs)) = parts else { return TransportBlock::ZERO };
                let prbs = if direction == Direction::Uplink { prbs.pusch_at_most() } else { prbs };
                let block = LteGrant { direction, mcs, prbs }.transport_block();
                // Two layers are two codewords, hence two grants.
                TransportBlock::from_bytes((block.bits() / 8).saturating_mul(layers.max(1).into()))
            }
            Technology::Nr { qam256 } => {
                let table = if qam256 { QamTable::Qam256 } else { QamTable::Qam64 };
                let parts = (NrMcs::new(table, mcs).ok(), Prbs::new(prbs), Symbols::new(symbols));
                let (Some(mcs), Some(prbs), Some(symbols)) = parts else { return TransportBlock::ZERO };
                let layers = Layers::new(layers.max(1)).unwrap_or(Layers::MAX);
                NrGrant { mcs, prbs, symbols, overhead: self.overhead, layers }.transport_block()
            }
            Technology::Mmwave => {
                let efficiency = Cqi::new(mcs).unwrap_or(Cqi::MAX).efficiency(QamTable::Qam64);
                MmwaveGrant::new(symbols, efficiency)
                    .map_or(TransportBlock::ZERO, MmwaveGrant::transport_block)
            }
        }
    }

    /// The mean rate of `units` resources in every slot of this direction. It is interpolated between whole symbols: a mean of 6.5
    /// is 6 in some slots and 7 in others. Fractions of PRBs are ignored, because there are many.
    pub fn rate(&self, direction: Direction, mcs: u8, layers: u8, units: f64) -> Rate {
        let mut bits = f64::from(self.block(direction, mcs, layers, units).bits());
        if self.by_symbols {
            let count = units * f64::from(self.data_symbols[direction]) / f64::from(self.prbs.max(1));
            let whole = libm::floor(count + 1e-6);
            let next = self.grant(direction, mcs, layers, whole + 1.0).bits();
            bits += (count - whole).max(0.0) * (f64::from(next) - bits).max(0.0);
        }
        let rate = bits * self.full_slots(direction) / self.slot.as_secs_f64();
        Rate::from_bits_per_s(rate as u64)
    }

    /// The rates of none, one, two, ... of what is given out, which is PRBs or symbols, in every slot that this direction has; the
    /// last one is that of all.
    pub fn rates(&self, direction: Direction, mcs: u8, layers: u8) -> impl Iterator<Item = Rate> {
        let most = if self.by_symbols { self.data_symbols[direction].into() } else { self.prbs };
        let per_bit = self.full_slots(direction) / self.slot.as_secs_f64();
        (0..=most).map(move |count| {
            let bits = f64::from(self.grant(direction, mcs, layers, count.into()).bits());
            Rate::from_bits_per_s((bits * per_bit) as u64)
        })
    }

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
            data_symbols: Both::of(|_| 14),
            shared: false,
            by_symbols: false,
            usable: Both::of(|_| 1.0),
            overhead: 0,
            layers: 1,
            harq_processes: Both::of(|_| 8),
        }
    }
}

/// One slot of a cell, with rows for the users that it reports.
#[derive(Clone, Copy, Debug)]
pub struct SlotReport<'a> {
    /// The cell.
    pub cell: &'a CellInfo,
    /// Number of the slot, from the beginning.
    pub slot: u64,
    /// When the slot began.
    pub time: Time,
    /// Symbols of this slot that could carry data in each direction; none in an unusable slot, or in one of the other direction.
    pub symbols: Both<u8>,
    /// PRBs used; a grant of some of the symbols counts in proportion. In the uplink: those of this slot's transmissions.
    pub used_prbs: Both<f32>,
    /// Users with data to send in this direction.
    pub active_users: Both<u16>,
    /// Users, by number. Users with nothing to report are left out (see the subscription).
    pub users: &'a [UserReport],
    /// Their bearers, in the same order.
    pub bearers: &'a [BearerReport],
    /// Whether all users of the cell are included.
    pub full: bool,
}

/// A user in one slot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UserReport {
    /// Number of the user.
    pub user: u32,
    /// C-RNTI; TS 36.321 clause 7.1.
    pub rnti: u16,
    /// The wideband CQI known to the cell.
    pub cqi: Cqi,
    /// When that CQI was measured.
    pub cqi_time: Time,
    /// Shannon capacity of the band behind that CQI, in bit/s/Hz: the mean of log2(1 + SINR).
    pub capacity: f32,
    /// The report of each direction.
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
    /// The transmission of this slot.
    pub grant: Option<Grant>,
    /// Bytes in RLC over all bearers, retransmissions included. In the uplink: as known to the base station.
    pub queue: Bytes,
    /// The longest head-of-line delay of a bearer; in the uplink on the device.
    pub head_of_line: Span,
    /// Transport blocks sent for the first time, since the user attached.
    pub blocks: u64,
    /// Transport blocks retransmitted.
    pub retransmissions: u64,
    /// Transport blocks that HARQ gave up.
    pub lost: u64,
    /// Bits of new data scheduled since the user attached: the sum of all first transmissions.
    pub scheduled_bits: u64,
    /// PRBs times symbols of all grants since the user attached, retransmissions included.
    pub scheduled_prb_symbols: u64,
}

/// A transport block in transmission.
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
    /// Padding in it.
    pub padding: Bytes,
    /// Number of the HARQ process.
    pub process: u8,
    /// Whether it is a retransmission.
    pub again: bool,
}

/// A bearer in one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BearerReport {
    /// Number of the user.
    pub user: u32,
    /// Number of the bearer.
    pub bearer: u8,
    /// Direction.
    pub direction: Direction,
    /// Bytes queued, retransmissions included.
    pub queue: Bytes,
    /// Waiting time of the packet whose byte is sent next.
    pub head_of_line: Span,
    /// Limit of the buffer; `None` if it is not limited in bytes.
    pub buffer: Option<Bytes>,
}
