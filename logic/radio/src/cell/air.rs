//! The air interface in numbers: the units that the scheduler allocates, block sizes, and block error rates.

use ranpace_phy::{
    BlerCurve, Cqi, Direction, Frame, LteGrant, LteMcs, LtePrbs, MmwaveGrant, NrGrant, NrMcs, Numerology,
    Prbs, QamTable, Symbols, TransportBlock,
};
use ranpace_rnis::Technology;

use super::config::{Air, CellConfig, CellError, Division, Duplex, Errors};
use super::control::{Elements, Fitted};
use crate::channel::Groups;
use crate::scheduler::Units;

/// Structure of the band, the same in both directions.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    air: Air,
    pub frame: Frame,
    /// PRBs of the band.
    pub prbs: u16,
    /// PRBs of a resource block group; the last may have fewer.
    pub group: u16,
    pub groups: u32,
    /// Whether the scheduler allocates symbols, each over the whole band.
    pub by_symbols: bool,
    /// Efficiency in 1/2048 bit by CQI, to average CQIs.
    efficiency: [u16; 16],
    /// MCS by CQI, downlink and uplink alike.
    mcs: [u8; 16],
    /// Highest and lowest MCS.
    pub most: u8,
    pub least: u8,
    /// The MCS of every grant, if it is fixed.
    fixed: Option<u8>,
    errors: Errors,
    /// The fewest symbols with which a grant carries data, where symbols are allocated: in NR, DMRS take one or more symbols of each
    /// grant.
    pub fewest: u16,
    /// Bits that one whole unit carries downlink, by CQI; schedulers compare these.
    pub unit_bits: [f32; 16],
    /// LTE: resource elements left by control and broadcast channels, if those are modelled.
    pub elements: Option<Box<Elements>>,
}

/// A downlink grant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Granted {
    pub mcs: u8,
    /// The MCS whose error curve applies: the one with the block's code rate.
    pub rate: u8,
    /// The MCS that link adaptation chose.
    pub wanted: u8,
    pub prbs: u16,
    pub symbols: u8,
    pub size: TransportBlock,
}

impl Layout {
    pub fn new(config: &CellConfig) -> Result<Self, CellError> {
        let frame = config.air.frame()?;
        let (prbs, group, by_symbols) = match config.air {
            Air::Lte { band } => (band.get().into(), band.rbg_size().into(), false),
            Air::Nr { band, division, duplex, .. } => {
                let by_symbols = division == Division::Symbols || duplex == Duplex::Dynamic;
                (band.get(), nr_group(band), by_symbols)
            }
            Air::Mmwave => (1, 1, true),
        };
        let table = match config.air {
            Air::Nr { table, .. } => table,
            Air::Lte { .. } | Air::Mmwave => QamTable::Qam64,
        };
        let fixed = config.adaptation.fixed_mcs.map(LteMcs::get);
        let cqis = || Cqi::all().zip(0..);
        let mut layout = Self {
            air: config.air,
            frame,
            prbs,
            group,
            groups: u32::from(prbs.div_ceil(group)),
            by_symbols,
            efficiency: [0; 16],
            mcs: [0; 16],
            most: match config.air {
                Air::Lte { .. } => LteMcs::MAX.get(),
                Air::Nr { table, .. } => NrMcs::all(table).next_back().map_or(0, NrMcs::index),
                Air::Mmwave => Cqi::MAX.get(),
            },
            least: u8::from(matches!(config.air, Air::Mmwave)),
            fixed,
            errors: config.adaptation.errors,
            fewest: 1,
            unit_bits: [0.0; 16],
            elements: match config.air {
                Air::Lte { band } => {
                    config.control.on(band).map(|control| Box::new(Elements::new(control, band, group)))
                }
                Air::Nr { .. } | Air::Mmwave => None,
            },
        };
        for (cqi, i) in cqis() {
            layout.efficiency[i] = cqi.efficiency(table).in_2048ths();
            layout.mcs[i] = match config.air {
                Air::Lte { .. } => config.adaptation.rule.mcs(cqi).map_or(0, LteMcs::get),
                Air::Nr { table, .. } => NrMcs::for_cqi(table, cqi).map_or(0, NrMcs::index),
                Air::Mmwave => cqi.get(),
            };
        }
        for (cqi, i) in cqis() {
            if let Some(mcs) = layout.mcs_of(cqi, 0.0) {
                let symbols = if by_symbols { 1 } else { layout.frame.symbols() };
                let block = layout.block(Direction::Downlink, mcs, layout.group_prbs(), symbols);
                // A group in NR may be too small for any block, like a symbol that carries DMRS only. It is compared by its rate all the
                // same; the rate is never 0, or nobody would get the unit. With a fixed MCS the CQI says nothing.
                let rate = if fixed.is_some() { 1 } else { layout.efficiency[i].max(1) };
                let rate = f32::from(rate) / 2048.0;
                layout.unit_bits[i] = (block.bits() as f32).max(rate);
            }
        }
        if by_symbols {
            let carries = |symbols: &u8| {
                layout.block(Direction::Downlink, layout.least, prbs, *symbols) != TransportBlock::ZERO
            };
            layout.fewest = (1..=layout.frame.symbols()).find(carries).unwrap_or(1).into();
        }
        Ok(layout)
    }

    fn group_prbs(&self) -> u16 {
        if self.by_symbols { self.prbs } else { self.group.min(self.prbs) }
    }

    /// Technology and MCS table.
    pub fn technology(&self) -> Technology {
        match self.air {
            Air::Lte { .. } => Technology::Lte,
            Air::Nr { table, .. } => Technology::Nr { qam256: table == QamTable::Qam256 },
            Air::Mmwave => Technology::Mmwave,
        }
    }

    /// Sub-carrier spacing in Hz. For millimetre waves it follows from the frame's symbols (1 / 4.16 us; inferred).
    pub fn spacing_hz(&self) -> u32 {
        match self.air {
            Air::Lte { .. } => 15_000,
            Air::Nr { numerology, .. } => 1000 * numerology.spacing_khz(),
            Air::Mmwave => 240_000,
        }
    }

    /// Width of a PRB in Hz; the frame for millimetre waves has a single one of 200 MHz.
    pub fn prb_hz(&self) -> f64 {
        match self.air {
            Air::Mmwave => 200e6,
            _ => 12.0 * f64::from(self.spacing_hz()),
        }
    }

    /// Resource block groups, each of which fades on its own.
    pub fn fading_groups(&self) -> Groups {
        match self.air {
            Air::Lte { band } => Groups::lte(band),
            // A group has at most 16 PRBs.
            Air::Nr { band, numerology, .. } => Groups::nr(band, numerology, self.group as u8),
            Air::Mmwave => Groups::nr(Prbs::MIN, Numerology::Khz120, 1),
        }
    }

    /// CQI table.
    pub fn table(&self) -> QamTable {
        match self.air {
            Air::Nr { table, .. } => table,
            Air::Lte { .. } | Air::Mmwave => QamTable::Qam64,
        }
    }

    /// All units of a slot with `symbols` data symbols.
    pub fn units(&self, symbols: u8) -> Units {
        match (self.by_symbols, symbols) {
            (_, 0) => Units::NONE,
            (true, symbols) => Units::first(symbols.into()),
            (false, _) => Units::first(self.groups),
        }
    }

    /// PRBs and symbols of these units in a slot with `symbols` data symbols.
    #[inline]
    pub fn extent(&self, units: Units, symbols: u8) -> (u16, u8) {
        let count = units.count();
        if self.by_symbols {
            return (self.prbs, count as u8); // at most the slot's symbols
        }
        let last_is_short = units.contains(self.groups - 1);
        let missing =
            if last_is_short { self.groups * u32::from(self.group) - u32::from(self.prbs) } else { 0 };
        ((count * u32::from(self.group) - missing) as u16, symbols) // at most the band
    }

    /// A downlink grant of these units in a slot with `symbols` data symbols, where link adaptation chose the MCS `wanted`; `None` if
    /// the cell's own channels leave too little of the slot.
    #[inline]
    pub fn downlink_grant(&self, slot: u64, units: Units, symbols: u8, wanted: u8) -> Option<Granted> {
        let (prbs, symbols) = self.extent(units, symbols);
        if let Some(elements) = &self.elements {
            let Fitted { mcs, rate, block: size } = elements.fit(slot, units, prbs, wanted)?;
            return Some(Granted { mcs, rate, wanted, prbs, symbols, size });
        }
        let size = self.block(Direction::Downlink, wanted, prbs, symbols);
        Some(Granted { mcs: wanted, rate: wanted, wanted, prbs, symbols, size })
    }

    /// MCS and block of the whole band in an ordinary subframe, and the mean over all subframes as a share of that block.
    pub fn downlink_band(&self, symbols: u8, wanted: u8) -> Option<(u8, TransportBlock, f64)> {
        /// A subframe without synchronisation signals, broadcast channel and SIB1.
        const ORDINARY: u64 = 1;
        let all = Units::first(self.groups);
        let Some(elements) = &self.elements else {
            return Some((wanted, self.block(Direction::Downlink, wanted, self.prbs, symbols), 1.0));
        };
        let found = self.downlink_grant(ORDINARY, all, symbols, wanted)?;
        let mean = elements.mean_bits(all, self.group, self.prbs, wanted);
        Some((found.mcs, found.size, mean / f64::from(found.size.bits().max(1))))
    }

    /// Returns those of `units` that data may use in this slot.
    #[inline]
    pub fn for_data(&self, slot: u64, units: Units) -> Units {
        self.elements.as_ref().map_or(units, |elements| units.minus(elements.taken(slot)))
    }

    /// PRBs that system information takes in this slot.
    #[inline]
    pub fn system_information_prbs(&self, slot: u64) -> u16 {
        let taken = self.elements.as_ref().map_or(Units::NONE, |elements| elements.taken(slot));
        (taken.count() as u16 * self.group).min(self.prbs) // the lowest groups, which are whole
    }

    /// PRBs of a group.
    #[inline]
    pub fn prbs_of(&self, group: u32) -> u8 {
        let before = group * u32::from(self.group);
        (u32::from(self.prbs) - before.min(self.prbs.into())).min(self.group.into()) as u8
    }

    /// The MCS for a CQI, moved by `steps`; `None` if this CQI gets no grant.
    #[inline]
    pub fn mcs_of(&self, cqi: Cqi, steps: f64) -> Option<u8> {
        if let Some(fixed) = self.fixed {
            return Some(fixed.min(self.most));
        }
        (cqi > Cqi::MIN).then(|| {
            let mcs = f64::from(self.mcs[usize::from(cqi.get())]) + steps;
            mcs.max(self.least.into()).min(self.most.into()) as u8
        })
    }

    /// The highest CQI whose efficiency does not exceed the mean, which is given as sums over PRBs.
    #[inline]
    pub fn mean_cqi(&self, efficiency_sum: u32, prbs: u32) -> Cqi {
        let mean = efficiency_sum.checked_div(prbs).unwrap_or(0);
        let reached =
            self.efficiency[1..].iter().filter(|efficiency| u32::from(**efficiency) <= mean).count();
        Cqi::new(reached as u8).unwrap_or(Cqi::MAX) // at most 15
    }

    /// Efficiency of a CQI in 1/2048 bit.
    #[inline]
    pub fn efficiency_of(&self, cqi: u8) -> u16 {
        self.efficiency[usize::from(cqi & 15)]
    }

    /// Size of a block.
    #[inline]
    pub fn block(&self, direction: Direction, mcs: u8, prbs: u16, symbols: u8) -> TransportBlock {
        match self.air {
            Air::Lte { .. } => lte(mcs, prbs).map_or(TransportBlock::ZERO, |(mcs, prbs)| {
                LteGrant { direction, mcs, prbs }.transport_block()
            }),
            Air::Nr { table, layers, overhead, .. } => {
                let parts = (NrMcs::new(table, mcs).ok(), Prbs::new(prbs), Symbols::new(symbols));
                let (Some(mcs), Some(prbs), Some(symbols)) = parts else { return TransportBlock::ZERO };
                NrGrant { mcs, prbs, symbols, overhead, layers }.transport_block()
            }
            Air::Mmwave => {
                let efficiency = Cqi::new(mcs).unwrap_or(Cqi::MAX).efficiency(QamTable::Qam64);
                MmwaveGrant::new(symbols, efficiency)
                    .map_or(TransportBlock::ZERO, MmwaveGrant::transport_block)
            }
        }
    }

    /// The rate at which blocks of this MCS fail at a SINR in dB.
    pub fn bler(&self, mcs: u8, prbs: u16, sinr_db: f64) -> f64 {
        let curve = match (self.errors, self.air) {
            (Errors::Fixed(rate), _) => return rate,
            (Errors::Ns3, _) => lte(mcs, prbs).map(|(mcs, prbs)| BlerCurve::ns3(mcs, prbs)),
            (Errors::Awgn, Air::Lte { .. }) => LteMcs::new(mcs).map(BlerCurve::awgn_lte),
            (Errors::Awgn, Air::Nr { table, .. }) => NrMcs::new(table, mcs).ok().map(BlerCurve::awgn_nr),
            // The MCS index is the CQI here, and LTE's MCS 2 (CQI - 1) has the efficiency of the CQI.
            (Errors::Awgn, Air::Mmwave) => {
                LteMcs::new(2 * mcs.saturating_sub(1).min(14)).map(BlerCurve::awgn_lte)
            }
        };
        // Without an MCS there is no block.
        let Some(curve) = curve else { return 1.0 };
        // Far above the centre of the curve the error rate is 0.
        let far = (sinr_db - curve.centre_db()) / curve.width_db();
        if far > 8.0 { 0.0 } else { curve.bler(sinr_db) }
    }

    /// Returns whether errors depend on the SINR.
    pub fn needs_sinr(&self) -> bool {
        !matches!(self.errors, Errors::Fixed(_))
    }

    /// Returns whether the MCS depends on the channel.
    pub fn needs_cqi(&self) -> bool {
        self.fixed.is_none()
    }
}

fn lte(mcs: u8, prbs: u16) -> Option<(LteMcs, LtePrbs)> {
    LteMcs::new(mcs).zip(u8::try_from(prbs).ok().and_then(LtePrbs::new))
}

/// Nominal size of NR's resource block groups, configuration 1; TS 38.214 Table 5.1.2.2.1-1.
fn nr_group(band: Prbs) -> u16 {
    match band.get() {
        0..=36 => 2,
        37..=72 => 4,
        73..=144 => 8,
        145.. => 16,
    }
}
