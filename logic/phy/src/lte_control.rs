//! Resource elements of LTE's downlink that control and broadcast channels leave for data, subframe by subframe.
//!
//! Source: TS 36.211, normal cyclic prefix, FDD, one antenna port. A pair of PRBs has 12 x 14 resource elements. Of these
//! * the control region takes the first symbols: 1 to 3, on 10 PRBs or fewer 2 to 4 (clause 6.7, Table 6.7-1);
//! * the cell's reference signals take two in symbols 0, 4, 7 and 11, of which the first is in the control region (6.10.1.2);
//! * in subframes 0 and 5 the synchronisation signals take symbols 5 and 6 of the central 72 sub-carriers, including those that
//!   are reserved beside their 62 (6.11.1.2, 6.11.2.2);
//! * in subframe 0 the broadcast channel takes symbols 7 to 10 of the same sub-carriers; it leaves out the reference signals of four
//!   ports whether there are four or not, and these elements are not available to data either (6.6.4).
//!
//! Decoding: a UE may skip a first transmission whose code rate is above 0.930 (TS 36.213 clause 7.1.7). Bits include
//! the CRCs of the block and of its code blocks (TS 36.212 clauses 5.1.1 and 5.1.2).
//!
//! System information: SIB1 is sent in subframe 5 of every other frame (TS 36.331 clause 5.2.1.2), in QPSK (TS 36.213 clause 7.1.7),
//! on PRBs that are not available to data. The rest (other system information blocks, paging) depends on the operator or on the load
//! and is not modelled.
//!
//! Ours: the fewest control symbols that hold one candidate of the search space in which system information is announced, four control
//! channel elements (TS 36.213 Table 9.1.1-1), in all subframes alike, with one group of acknowledgements per eight PRBs (N_g = 1, TS
//! 36.211 clause 6.9); 176 bits of SIB1 (one operator, one band), at a code rate of a third, that of the mother code.
//!
//! On a wide band the effect is negligible. A band of 6 PRBs consists of the central sub-carriers only.

use crate::{LtePrbs, Modulation, TransportBlock};

/// Sub-carriers of a PRB, and symbols of a subframe.
const SUBCARRIERS: u32 = 12;
const SYMBOLS: u32 = 14;
/// Elements of reference signals in a PRB pair after the control region.
const REFERENCE_SIGNALS: u32 = 6;
/// Elements of a resource element group, and groups of a control channel element; TS 36.211 clauses 6.2.4 and 6.8.1.
const GROUPS_OF_CCE: u32 = 9;

/// Signals that a subframe carries besides control channels and data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LteSubframe {
    /// Nothing else: all but subframes 0 and 5.
    Ordinary,
    /// Synchronisation signals: subframe 5.
    Synchronisation,
    /// Synchronisation signals and the broadcast channel: subframe 0.
    Broadcast,
}

impl LteSubframe {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Ordinary, Self::Synchronisation, Self::Broadcast];

    /// The kind of a subframe, counted from the beginning of frame 0.
    pub const fn of(subframe: u64) -> Self {
        match subframe % 10 {
            0 => Self::Broadcast,
            5 => Self::Synchronisation,
            _ => Self::Ordinary,
        }
    }

    /// Returns whether the subframe carries SIB1: subframe 5 of even frames.
    pub const fn has_sib1(subframe: u64) -> bool {
        subframe % 20 == 5
    }

    /// Symbols that the central 72 sub-carriers lose.
    const fn symbols_in_the_middle(self) -> u32 {
        match self {
            Self::Ordinary => 0,
            Self::Synchronisation => 2,
            Self::Broadcast => 6,
        }
    }

    /// Elements of reference signals in a whole PRB pair that these symbols already include: symbol 7.
    const fn counted_twice(self) -> u32 {
        match self {
            Self::Broadcast => 2,
            Self::Ordinary | Self::Synchronisation => 0,
        }
    }
}

/// The control and broadcast channels of an LTE carrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LteControl {
    band: LtePrbs,
    symbols: u8,
}

impl LteControl {
    /// CCEs of a candidate of the common search space; TS 36.213 Table 9.1.1-1.
    const CANDIDATE: u32 = 4;

    /// With the fewest control symbols that can announce system information.
    pub fn new(band: LtePrbs) -> Self {
        let (least, most) = Self::range(band);
        let holds = |symbols: &u8| Self { band, symbols: *symbols }.cces() >= Self::CANDIDATE;
        Self { band, symbols: (least..=most).find(holds).unwrap_or(most) }
    }

    /// With this number of control symbols; `None` if the standard does not allow it.
    pub fn with_symbols(band: LtePrbs, symbols: u8) -> Option<Self> {
        let (least, most) = Self::range(band);
        (least..=most).contains(&symbols).then_some(Self { band, symbols })
    }

    /// Fewest and most control symbols; TS 36.211 Table 6.7-1.
    pub const fn range(band: LtePrbs) -> (u8, u8) {
        if band.get() <= 10 { (2, 4) } else { (1, 3) }
    }

    /// Control symbols of a subframe.
    pub const fn symbols(self) -> u8 {
        self.symbols
    }

    /// Control channel elements of a subframe. Resource element groups of four elements: two in each PRB of the first symbol (which
    /// leaves out reference signals of two ports), three in the others, less four for the control format (TS 36.211 clause 6.7.4) and
    /// three for each group of acknowledgements (clause 6.9.3). A control channel element has nine groups.
    pub fn cces(self) -> u32 {
        let prbs = u32::from(self.band.get());
        let groups = 2 * prbs + 3 * prbs * (u32::from(self.symbols) - 1); // at least one symbol
        groups.saturating_sub(4 + 3 * prbs.div_ceil(8)) / GROUPS_OF_CCE
    }

    /// Resource elements for data in a PRB pair of a subframe of this kind.
    pub fn elements(self, subframe: LteSubframe, prb: u8) -> u32 {
        let all = SUBCARRIERS * (SYMBOLS - u32::from(self.symbols)) - REFERENCE_SIGNALS;
        // With an odd number of PRBs the central sub-carriers begin and end within a PRB.
        let middle = 6 * i32::from(self.band.get());
        let first = 12 * i32::from(prb);
        let inside = ((first + 12).min(middle + 36) - first.max(middle - 36)).max(0) as u32; // at most 12
        let lost = inside * subframe.symbols_in_the_middle();
        all - (lost - subframe.counted_twice() * inside / SUBCARRIERS)
    }

    /// PRBs that SIB1 takes in the centre of the band, where there is the least room.
    pub fn sib1_prbs(self) -> u8 {
        /// With the CRC, at a code rate of a third.
        const ELEMENTS: u32 = (176 + 24) * 3 / 2;
        let of_one = self.elements(LteSubframe::Synchronisation, self.band.get() / 2);
        ELEMENTS.div_ceil(of_one) as u8 // at most 4
    }
}

/// Resource elements of a PRB pair that CQI reports assume: three control symbols, reference signals of one port, nothing
/// else; TS 36.213 clause 7.2.3.
pub const LTE_REFERENCE_ELEMENTS: u32 = 126;

/// Returns whether a UE decodes a first transmission on this many resource elements: at a code rate of at most 0.930.
pub fn lte_is_decodable(block: TransportBlock, modulation: Modulation, elements: u32) -> bool {
    /// Largest code block in bits; TS 36.212 clause 5.1.2.
    const MOST: u32 = 6144;
    const CHECK: u32 = 24;
    let whole = block.bits() + CHECK;
    let coded = if whole <= MOST { whole } else { whole + CHECK * whole.div_ceil(MOST - CHECK) };
    1000 * u64::from(coded) <= 930 * u64::from(modulation.order()) * u64::from(elements)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Direction, LteBandwidth, LteMcs};

    fn control(band: LteBandwidth) -> LteControl {
        LteControl::new(band.prbs())
    }

    fn in_all(control: LteControl, subframe: LteSubframe) -> u32 {
        (0..control.band.get()).map(|prb| control.elements(subframe, prb)).sum()
    }

    #[test]
    fn control_symbols_are_as_few_as_hold_four_cces() {
        // 6 PRBs: 12 groups in the first symbol and 18 in each other; 4 and 3 are taken. 23 groups are 2 CCEs, 41 are 4.
        let found = LteBandwidth::ALL.map(|band| (control(band).symbols(), control(band).cces()));
        assert_eq!(found, [(3, 4), (2, 7), (2, 12), (1, 8), (1, 12), (1, 17)]);
        assert_eq!(LteControl::with_symbols(LteBandwidth::Mhz1_4.prbs(), 2).map(LteControl::cces), Some(2));
        assert_eq!(LteControl::with_symbols(LteBandwidth::Mhz1_4.prbs(), 1), None);
        assert_eq!(LteControl::with_symbols(LteBandwidth::Mhz20.prbs(), 4), None);
    }

    #[test]
    fn signals_in_the_middle_take_what_the_standard_says() {
        use LteSubframe::{Broadcast, Ordinary, Synchronisation};
        // 6 PRBs, three control symbols: 6 x (12 x 11 - 6); 2 x 72 of synchronisation; 4 x 72 of broadcast, of which 12 were already
        // reference signals.
        let narrow = control(LteBandwidth::Mhz1_4);
        let found = [Ordinary, Synchronisation, Broadcast].map(|kind| in_all(narrow, kind));
        assert_eq!(found, [756, 756 - 144, 756 - 144 - 276]);
        // The broadcast channel itself has 240 elements, 480 bits of 1920 in four frames (TS 36.211 clause 6.6.1): the 288 less
        // those reserved for four ports.
        assert_eq!(288 - 6 * (4 + 4), 240);
        for band in LteBandwidth::ALL {
            let control = control(band);
            let lost = |kind| in_all(control, Ordinary) - in_all(control, kind);
            assert_eq!((lost(Synchronisation), lost(Broadcast)), (144, 420), "{band:?}");
        }
        // 15 PRBs: the central sub-carriers begin within PRB 4 and end within PRB 10.
        let odd = control(LteBandwidth::Mhz3);
        let lost: Vec<u32> = (0..15).map(|prb| 138 - odd.elements(Synchronisation, prb)).collect();
        assert_eq!(lost, [0, 0, 0, 0, 12, 24, 24, 24, 24, 24, 12, 0, 0, 0, 0]);
        assert_eq!((0..40).filter(|n| LteSubframe::has_sib1(*n)).collect::<Vec<_>>(), [5, 25]);
        assert_eq!(LteBandwidth::ALL.map(|band| control(band).sib1_prbs()), [3; 6]);
    }

    #[test]
    fn ues_decode_up_to_a_rate_of_0_930() {
        let block = |mcs: u8, prbs: u8| {
            let mcs = LteMcs::new(mcs).unwrap();
            let prbs = LtePrbs::new(prbs).unwrap();
            (mcs.i_tbs(Direction::Downlink).transport_block(prbs), mcs.modulation(Direction::Downlink))
        };
        for (mcs, prbs, elements, expected) in [
            (28, 6, 756, false),      // (4392 + 24) / 4536 = 0.974
            (27, 6, 756, true),       // (3752 + 24) / 4536 = 0.832
            (27, 6, 612, false),      // 1.028
            (24, 6, 612, true),       // (3240 + 24) / 3672 = 0.889
            (28, 25, 3306, true),     // (18336 + 24 + 3 x 24) / 19836 = 0.9292
            (28, 25, 3304, true),     // 0.9298
            (28, 25, 3303, false),    // 0.9301
            (28, 100, 14_580, true),  // (75376 + 24 + 13 x 24) / 87480 = 0.865
            (28, 100, 12_600, false), // 1.001
        ] {
            let (block, modulation) = block(mcs, prbs);
            assert_eq!(lte_is_decodable(block, modulation, elements), expected, "{mcs} {prbs} {elements}");
        }
    }
}
