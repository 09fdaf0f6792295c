//! NR: modulation and coding schemes, block sizes and grants.

use ranpace_units::Rate;

use crate::coding::{MCS_64, MCS_256};
use crate::{
    CodeRate, Cqi, Efficiency, Layers, Modulation, Numerology, Prbs, QamTable, Symbols, TransportBlock,
};

/// NR modulation and coding scheme: an index of one of two tables (TS 38.214 Tables 5.1.3.1-1 and -2; the uplink
/// uses the same ones without transform precoding, clause 6.1.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NrMcs {
    table: QamTable,
    index: u8,
}

/// The table has no such index, or it is reserved for retransmissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an MCS from 0 to {most} of the table up to {highest}, found {found}")]
pub struct NoSuchNrMcs {
    /// The highest modulation of the table.
    pub highest: Modulation,
    /// The last index with a code rate.
    pub most: u8,
    /// The value found.
    pub found: u8,
}

impl NrMcs {
    /// The MCS with this index: 0 to 28 up to 64QAM, 0 to 27 up to 256QAM.
    pub fn new(table: QamTable, index: u8) -> Result<Self, NoSuchNrMcs> {
        let highest = match table {
            QamTable::Qam64 => Modulation::Qam64,
            QamTable::Qam256 => Modulation::Qam256,
        };
        let most = Self::most(table);
        if index > most {
            return Err(NoSuchNrMcs { highest, most, found: index });
        }
        Ok(Self { table, index })
    }

    /// All MCSs of a table, in increasing order of the index.
    pub fn all(table: QamTable) -> impl DoubleEndedIterator<Item = Self> {
        (0..=Self::most(table)).map(move |index| Self { table, index })
    }

    /// The MCS for a CQI of the same table: the one with the largest efficiency that does not exceed the CQI's,
    /// or MCS 0 if there is none; `None` at CQI 0. Ours, since the standards leave the choice to the base station.
    pub fn for_cqi(table: QamTable, cqi: Cqi) -> Option<Self> {
        cqi.coding(table)?;
        let limit = cqi.efficiency(table);
        let fitting = Self::all(table).filter(|mcs| mcs.efficiency() <= limit);
        // MCS 17 of the first table is less efficient than 16, so the last is not always the best.
        fitting.max_by_key(|mcs| mcs.efficiency()).or(Some(Self { table, index: 0 }))
    }

    const fn most(table: QamTable) -> u8 {
        match table {
            QamTable::Qam64 => MCS_64.len() as u8 - 1,
            QamTable::Qam256 => MCS_256.len() as u8 - 1,
        }
    }

    /// The table.
    pub const fn table(self) -> QamTable {
        self.table
    }
    /// The index.
    pub const fn index(self) -> u8 {
        self.index
    }
    /// Modulation and target code rate.
    pub const fn coding(self) -> (Modulation, CodeRate) {
        // `new` and `all` only create indices that the table has.
        match self.table {
            QamTable::Qam64 => MCS_64[self.index as usize],
            QamTable::Qam256 => MCS_256[self.index as usize],
        }
    }
    /// Their product. It increases with the index, except from 16 to 17 in the table up to 64QAM (2.5703 to 2.5664).
    pub const fn efficiency(self) -> Efficiency {
        let (modulation, rate) = self.coding();
        Efficiency::of(modulation, rate)
    }
}

/// A grant of one codeword for one slot, on a PDSCH or a PUSCH (TS 38.214 clauses 5.1.3.2 and 6.1.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NrGrant {
    /// Modulation and coding.
    pub mcs: NrMcs,
    /// PRBs.
    pub prbs: Prbs,
    /// OFDM symbols of the slot.
    pub symbols: Symbols,
    /// Resource elements that each PRB loses: those of the demodulation reference signals (N_DMRS, including those
    /// left empty for them) and `xOverhead` (N_oh: 0, 6, 12 or 18). 12 is one symbol of reference signals.
    pub overhead: u8,
    /// Layers of the codeword.
    pub layers: Layers,
}

impl NrGrant {
    /// The block that the grant carries; [`TransportBlock::ZERO`] if the overhead takes everything.
    pub fn transport_block(self) -> TransportBlock {
        TransportBlock::from_bytes(self.size().bits / 8)
    }

    /// The rate of such a grant in every slot of a carrier with this numerology.
    pub fn rate(self, numerology: Numerology) -> Rate {
        self.transport_block().rate(numerology.slot())
    }

    /// N_RE: resource elements; TS 38.214 clause 5.1.3.2, step 1.
    pub fn resource_elements(self) -> u32 {
        const SUBCARRIERS: u32 = 12; // per PRB; TS 38.211 clause 4.4.4.1
        const MOST: u32 = 156; // per PRB
        let per_prb = (SUBCARRIERS * u32::from(self.symbols.get())).saturating_sub(self.overhead.into());
        per_prb.min(MOST) * u32::from(self.prbs.get())
    }

    /// N_info: bits before quantisation; TS 38.214 clause 5.1.3.2, step 2.
    pub fn info_bits(self) -> f64 {
        self.size().info as f64 / f64::from(1 << PARTS)
    }

    /// C: number of code blocks of the block; TS 38.214 clause 5.1.3.2, step 4. One if N_info is at most 3824, zero if there
    /// is no block.
    pub fn code_blocks(self) -> u64 {
        self.size().code_blocks
    }

    /// TS 38.214 clause 5.1.3.2, steps 2 to 4, in integers: `info` is N_info in units of 1/2048, like code rates.
    /// It is at most 156 * 275 elements * 8 bits * 2048 * 4 layers, which exceeds 32 bits and fits easily in 64.
    fn size(self) -> Size {
        let (modulation, rate) = self.mcs.coding();
        let bits = u64::from(modulation.order()) * u64::from(self.layers.get());
        let info = u64::from(self.resource_elements()) * u64::from(rate.in_2048ths()) * bits;
        if info == 0 {
            return Size { info, code_blocks: 0, bits: 0 };
        }
        if info <= 3824 << PARTS { small(info) } else { large(info, rate) }
    }
}

/// N_info has 11 fractional bits.
const PARTS: u32 = 11;

/// A block size with its intermediate results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    /// N_info in units of 1/2048.
    info: u64,
    /// C.
    code_blocks: u64,
    bits: u32,
}

/// Step 3, for N_info of at most 3824. The block is an entry of [`NR_SMALL_BLOCKS`].
fn small(info: u64) -> Size {
    // log2 of N_info; if that is below 1, the maximum decides anyway.
    let n = info.ilog2().saturating_sub(PARTS).saturating_sub(6).max(3);
    let quantised = ((info >> (PARTS + n)) << n).max(24);
    let index = NR_SMALL_BLOCKS.partition_point(|&bits| u64::from(bits) < quantised);
    // The last entry is 3824, and `quantised` does not exceed N_info.
    Size { info, code_blocks: 1, bits: NR_SMALL_BLOCKS[index].into() }
}

/// Step 4, for N_info above 3824.
fn large(info: u64, rate: CodeRate) -> Size {
    const CRC: u64 = 24; // bits, for the block and for each code block; TS 38.212 clause 7.2.1
    let less = info - (CRC << PARTS);
    let n = less.ilog2() - PARTS - 5;
    // Ties are rounded up (same clause).
    let half = 1 << (PARTS + n - 1);
    let quantised = (((less + half) >> (PARTS + n)) << n).max(3840);
    let code_blocks = if rate <= CodeRate::x1024(256) {
        (quantised + CRC).div_ceil(3816)
    } else if quantised > 8424 {
        (quantised + CRC).div_ceil(8424)
    } else {
        1
    };
    let bits = 8 * code_blocks * (quantised + CRC).div_ceil(8 * code_blocks) - CRC;
    // N_info is below 2^21 bits, and less than that is added to it.
    Size { info, code_blocks, bits: bits as u32 }
}

/// Block sizes of NR in bits for N_info of at most 3824; TS 38.214 Table 5.1.3.2-1.
#[rustfmt::skip]
pub const NR_SMALL_BLOCKS: [u16; 93] = [
    24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 136, 144, 152, 160, 168, 176, 184, 192, 208, 224, 240,
    256, 272, 288, 304, 320, 336, 352, 368, 384, 408, 432, 456, 480, 504, 528, 552, 576, 608, 640, 672, 704, 736, 768,
    808, 848, 888, 928, 984, 1032, 1064, 1128, 1160, 1192, 1224, 1256, 1288, 1320, 1352, 1416, 1480, 1544, 1608, 1672,
    1736, 1800, 1864, 1928, 2024, 2088, 2152, 2216, 2280, 2408, 2472, 2536, 2600, 2664, 2728, 2792, 2856, 2976, 3104,
    3240, 3368, 3496, 3624, 3752, 3824,
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn grant(table: QamTable, mcs: u8, prbs: u16, symbols: u8) -> NrGrant {
        NrGrant {
            mcs: NrMcs::new(table, mcs).unwrap(),
            prbs: Prbs::new(prbs).unwrap(),
            symbols: Symbols::new(symbols).unwrap(),
            overhead: 12,
            layers: Layers::MIN,
        }
    }

    #[test]
    fn block_sizes_of_test_p_2() {
        // 132 PRBs, table 1, one layer, 12 resource elements of reference signals in each PRB.
        let full = grant(QamTable::Qam64, 28, 132, 13);
        assert_eq!(full.size(), Size { info: 216_235_008, code_blocks: 13, bits: 106_576 });
        assert_eq!((full.info_bits(), full.code_blocks()), (105_583.5, 13));
        assert_eq!(full.rate(Numerology::Khz120), Rate::from_bits_per_s(852_608_000));
        assert_eq!(grant(QamTable::Qam64, 28, 132, 12).transport_block().bits(), 96_264);
        assert_eq!(grant(QamTable::Qam64, 27, 132, 14).transport_block().bits(), 110_632);
    }

    #[test]
    fn the_edges_of_both_branches() {
        let of = |mcs, prbs, symbols, overhead| {
            NrGrant { overhead, ..grant(QamTable::Qam64, mcs, prbs, symbols) }.size()
        };
        for (case, size, code_blocks, bits) in [
            ("the overhead takes all", of(0, 1, 1, 12), 0, 0),
            ("N_info 2.8: the smallest block", of(0, 1, 1, 0), 1, 24),
            ("N_info 3822.3: quantised to 3808, which the table raises to 3824", of(2, 65, 14, 12), 1, 3824),
            ("N_info 3824.9: quantised to 3776, raised to 3840", of(2, 73, 12, 5), 2, 3848),
            ("N_info 5245.9: one code block", of(10, 50, 14, 89), 1, 5248),
            ("code rate 120/1024: 9984 needs three code blocks of at most 3816", of(0, 275, 14, 12), 3, 9984),
            ("code rate 340/1024: 9984 needs two code blocks of at most 8424", of(10, 96, 14, 89), 2, 9992),
        ] {
            assert_eq!((size.code_blocks, size.bits), (code_blocks, bits), "{case}: {size:?}");
        }
    }

    #[test]
    fn the_largest_block_of_100_mhz() {
        // 273 PRBs, 256QAM at 948/1024, four layers: the well-known 1 277 992 bits, in 152 code blocks. N_info - 24 is
        // 38.502 times 2^15, which rounds to 39.
        let size = NrGrant { layers: Layers::MAX, ..grant(QamTable::Qam256, 27, 273, 14) }.size();
        assert_eq!((size.code_blocks, size.bits), (152, 1_277_992));
    }

    #[test]
    fn efficiency_rises_but_for_the_known_index() {
        for (table, known) in [(QamTable::Qam64, &[17][..]), (QamTable::Qam256, &[])] {
            let all: Vec<NrMcs> = NrMcs::all(table).collect();
            let falls: Vec<u8> = all
                .windows(2)
                .filter(|w| w[1].efficiency() <= w[0].efficiency())
                .map(|w| w[1].index)
                .collect();
            assert_eq!(falls, known);
        }
    }

    #[test]
    fn an_index_without_a_code_rate_is_refused() {
        for (table, message) in [
            (QamTable::Qam64, "expected an MCS from 0 to 28 of the table up to 64QAM, found 29"),
            (QamTable::Qam256, "expected an MCS from 0 to 27 of the table up to 256QAM, found 29"),
        ] {
            assert_eq!(NrMcs::new(table, 29).unwrap_err().to_string(), message);
        }
        assert!(NrMcs::new(QamTable::Qam256, 28).is_err());
    }

    #[test]
    fn a_cqi_gets_the_mcs_of_its_own_code_rate_where_there_is_one() {
        for table in [QamTable::Qam64, QamTable::Qam256] {
            assert_eq!(NrMcs::for_cqi(table, Cqi::MIN), None);
            for cqi in Cqi::all().skip(1) {
                let mcs = NrMcs::for_cqi(table, cqi).unwrap();
                match cqi.get() {
                    1 => assert_eq!(mcs.index(), 0), // no MCS has so low a rate
                    _ => assert_eq!(Some(mcs.coding()), cqi.coding(table), "{table:?} CQI {cqi}"),
                }
            }
        }
    }

    /// TS 38.214 clause 5.1.3.2 literally, in floats: at these sizes every step but the logarithm is exact.
    fn as_the_clause_reads(grant: NrGrant) -> f64 {
        let (modulation, rate) = grant.mcs.coding();
        let elements = f64::from(
            (12 * i32::from(grant.symbols.get()) - i32::from(grant.overhead)).clamp(0, 156)
                * i32::from(grant.prbs.get()),
        );
        let info = elements * rate.as_f64() * f64::from(modulation.order()) * f64::from(grant.layers.get());
        if info == 0.0 {
            0.0
        } else if info <= 3824.0 {
            let n = (info.log2().floor() - 6.0).max(3.0);
            let quantised = (n.exp2() * (info / n.exp2()).floor()).max(24.0);
            NR_SMALL_BLOCKS.iter().map(|&bits| f64::from(bits)).find(|bits| *bits >= quantised).unwrap()
        } else {
            let n = (info - 24.0).log2().floor() - 5.0;
            let quantised = (n.exp2() * ((info - 24.0) / n.exp2()).round()).max(3840.0);
            let blocks = if rate.as_f64() <= 0.25 {
                ((quantised + 24.0) / 3816.0).ceil()
            } else if quantised > 8424.0 {
                ((quantised + 24.0) / 8424.0).ceil()
            } else {
                1.0
            };
            8.0 * blocks * ((quantised + 24.0) / (8.0 * blocks)).ceil() - 24.0
        }
    }

    fn any_mcs() -> impl Strategy<Value = NrMcs> {
        prop_oneof![
            (0..=28u8).prop_map(|index| NrMcs { table: QamTable::Qam64, index }),
            (0..=27u8).prop_map(|index| NrMcs { table: QamTable::Qam256, index }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn whole_numbers_give_what_the_clause_says(
            mcs in any_mcs(), prbs in 1..=275u16, symbols in 1..=14u8, overhead in 0..=60u8, layers in 1..=4u8,
        ) {
            let (prbs, symbols) = (Prbs::new(prbs).unwrap(), Symbols::new(symbols).unwrap());
            let grant = NrGrant { mcs, prbs, symbols, overhead, layers: Layers::new(layers).unwrap() };
            let bits = grant.transport_block().bits();
            prop_assert_eq!(f64::from(bits), as_the_clause_reads(grant));
            prop_assert_eq!(bits, grant.size().bits, "whole bytes");
        }

        #[test]
        fn more_prbs_symbols_or_layers_never_carry_less(
            mcs in any_mcs(), prbs in 1..275u16, symbols in 1..14u8, overhead in 0..=60u8, layers in 1..4u8,
        ) {
            let make = |p: u16, s: u8, l: u8| NrGrant {
                mcs,
                prbs: Prbs::new(p).unwrap(),
                symbols: Symbols::new(s).unwrap(),
                overhead,
                layers: Layers::new(l).unwrap(),
            }.transport_block();
            let block = make(prbs, symbols, layers);
            prop_assert!(make(prbs + 1, symbols, layers) >= block);
            prop_assert!(make(prbs, symbols + 1, layers) >= block);
            prop_assert!(make(prbs, symbols, layers + 1) >= block);
        }
    }
}
