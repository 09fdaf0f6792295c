//! Block sizes of the experiments on millimetre waves, which do not follow TS 38.214.
//!
//! The authors' ns-3 module divides a subframe by symbols, not by PRBs; their scripts give 11 352 bytes for a
//! whole subframe at the highest MCS, 908.16 Mbit/s ("900 Mbps" in Diarra 2022, section 3.2.5). The scaling to part of
//! a subframe is inferred: in proportion to symbols and spectral efficiency.

use ranpace_units::{Rate, Span};

use crate::{Cqi, Efficiency, OutOfRange, QamTable, TransportBlock};

/// Diarra 2022, Table 3.1.
pub(crate) const SUBFRAME: Span = Span::from_micros(100);
/// Diarra 2022, Table 3.1.
pub(crate) const SYMBOLS: u8 = 24;
/// Diarra 2022, Table 3.1: "4.16 us". 24 of them leave 160 ns of the subframe unused.
pub(crate) const SYMBOL: Span = Span::from_nanos(4_160);
/// Symbols of the largest block; the remaining one carries control. Inferred.
pub(crate) const DATA_SYMBOLS: u8 = 23;
/// The largest block, in bytes; the authors' scripts.
const LARGEST: u64 = 11_352;

/// A grant of symbols, each over the whole carrier of 200 MHz, for one subframe of
/// [`Frame::MMWAVE`](crate::Frame::MMWAVE).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MmwaveGrant {
    symbols: u8,
    efficiency: Efficiency,
}

impl MmwaveGrant {
    /// A grant of 1 to 23 data symbols at this spectral efficiency, which is clamped to the largest of the tables up to 64QAM
    /// (5.5547).
    pub fn new(symbols: u8, efficiency: Efficiency) -> Result<Self, OutOfRange> {
        if !(1..=DATA_SYMBOLS).contains(&symbols) {
            let most = DATA_SYMBOLS.into();
            return Err(OutOfRange {
                what: "a number of data symbols",
                least: 1,
                most,
                found: symbols.into(),
            });
        }
        Ok(Self { symbols, efficiency: efficiency.min(Cqi::MAX.efficiency(QamTable::Qam64)) })
    }

    /// The block that the grant carries, rounded down to whole bytes.
    pub fn transport_block(self) -> TransportBlock {
        let best = Cqi::MAX.efficiency(QamTable::Qam64).in_2048ths();
        let parts = u64::from(self.symbols) * u64::from(self.efficiency.in_2048ths());
        let bytes = LARGEST * parts / (u64::from(DATA_SYMBOLS) * u64::from(best));
        TransportBlock::from_bytes(bytes as u32) // at most LARGEST
    }

    /// The rate of such a grant in every subframe.
    pub fn rate(self) -> Rate {
        self.transport_block().rate(SUBFRAME)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LteMcs;

    #[test]
    fn the_peak_is_that_of_test_s_4() {
        let grant = MmwaveGrant::new(23, LteMcs::MAX.lena_efficiency()).unwrap();
        assert_eq!(grant.transport_block().bytes().get(), 11_352);
        assert_eq!(grant.rate(), Rate::from_bits_per_s(908_160_000));
    }

    #[test]
    fn a_part_of_the_subframe_carries_its_part() {
        let best = LteMcs::MAX.lena_efficiency();
        assert_eq!(MmwaveGrant::new(1, best).unwrap().transport_block().bytes().get(), 11_352 / 23);
        assert!(MmwaveGrant::new(0, best).is_err());
        assert_eq!(
            MmwaveGrant::new(24, best).unwrap_err().to_string(),
            "expected a number of data symbols from 1 to 23, found 24"
        );
        let sizes =
            LteMcs::all().map(|mcs| MmwaveGrant::new(23, mcs.lena_efficiency()).unwrap().transport_block());
        assert!(sizes.is_sorted_by(|a, b| a < b));
        let too_much = Cqi::MAX.efficiency(QamTable::Qam256);
        assert_eq!(MmwaveGrant::new(23, too_much).unwrap().transport_block().bytes().get(), 11_352);
    }
}
