//! LTE downlink grants beside the cell's own channels: which MCS a subframe has room for.
//!
//! An MCS implies a number of bits per resource element: its block over the elements with which channels are measured
//! ([`LTE_REFERENCE_ELEMENTS`]). Where a grant has fewer elements, it gets the largest MCS that needs no more bits per element and
//! that the UE can decode at all ([`lte_is_decodable`]), as schedulers do that know the elements of a subframe. MCS 0 is sent even
//! at a higher code rate, and then fails as often as the MCS that has this rate on the reference elements. Ours, since the standard
//! leaves it to the base station.

use ranpace_phy::{
    Direction, LTE_REFERENCE_ELEMENTS, LteControl, LteMcs, LtePrbs, LteSubframe, TransportBlock,
    lte_is_decodable,
};

use super::config::MOST_GROUPS;
use crate::scheduler::Units;

/// Period of the subframe structure.
const PERIOD: u64 = 20;

/// Resource elements left for data, by kind of subframe and group.
#[derive(Clone, Debug)]
pub(super) struct Elements {
    left: [[u16; MOST_GROUPS]; LteSubframe::ALL.len()],
    /// Number of groups that SIB1 takes, from the lowest.
    sib1: u32,
}

/// The grant of an LTE user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fitted {
    pub mcs: u8,
    /// The MCS that has as many bits per element on the reference elements.
    pub rate: u8,
    pub block: TransportBlock,
}

impl Elements {
    pub fn new(control: LteControl, band: LtePrbs, group: u16) -> Self {
        let mut left = [[0; MOST_GROUPS]; LteSubframe::ALL.len()];
        for prb in 0..band.get() {
            for (kind, left) in LteSubframe::ALL.into_iter().zip(&mut left) {
                let at = usize::from(u16::from(prb) / group.max(1)) % MOST_GROUPS;
                left[at] += control.elements(kind, prb) as u16; // at most 168 a PRB
            }
        }
        Self { left, sib1: u32::from(control.sib1_prbs()).div_ceil(group.max(1).into()) }
    }

    /// Groups not available to data in this slot.
    #[inline]
    pub fn taken(&self, slot: u64) -> Units {
        if LteSubframe::has_sib1(slot) { Units::first(self.sib1) } else { Units::NONE }
    }

    /// Resource elements of these groups in this slot.
    fn of(&self, slot: u64, groups: Units) -> u32 {
        let left = &self.left[LteSubframe::of(slot) as usize];
        groups.iter().map(|group| u32::from(left[group as usize % MOST_GROUPS])).sum()
    }

    /// The grant on these groups, of `prbs` PRBs, in this slot if link adaptation chose `mcs`; `None` if no block fits.
    pub fn fit(&self, slot: u64, groups: Units, prbs: u16, mcs: u8) -> Option<Fitted> {
        let prbs = u8::try_from(prbs).ok().and_then(LtePrbs::new)?;
        let size = |mcs: LteMcs| mcs.i_tbs(Direction::Downlink).transport_block(prbs);
        let here = u64::from(self.of(slot, groups));
        let elsewhere = u64::from(LTE_REFERENCE_ELEMENTS) * u64::from(prbs.get());
        let wanted = size(LteMcs::new(mcs)?);
        let fits = |mcs: &LteMcs| {
            let block = size(*mcs);
            let asks_no_more = u64::from(block.bits()) * elsewhere <= u64::from(wanted.bits()) * here;
            (asks_no_more || mcs.get() == 0)
                && lte_is_decodable(block, mcs.modulation(Direction::Downlink), here as u32)
        };
        let chosen = LteMcs::all().rev().filter(|lower| lower.get() <= mcs).find(fits)?;
        let block = size(chosen);
        let has_rate =
            |mcs: &LteMcs| u64::from(block.bits()) * elsewhere <= u64::from(size(*mcs).bits()) * here;
        let rate = LteMcs::all().skip(chosen.get().into()).find(has_rate).unwrap_or(LteMcs::MAX);
        Some(Fitted { mcs: chosen.get(), rate: rate.get(), block })
    }

    /// Mean bits of a grant of all groups over all subframes, if link adaptation chose `mcs`.
    pub fn mean_bits(&self, all: Units, group: u16, band: u16, mcs: u8) -> f64 {
        let bits = |slot: u64| {
            let groups = all.minus(self.taken(slot));
            let prbs = band.saturating_sub(group * (all.count() - groups.count()) as u16); // the last group is never taken
            self.fit(slot, groups, prbs, mcs).map_or(0.0, |fitted| f64::from(fitted.block.bits()))
        };
        (0..PERIOD).map(bits).sum::<f64>() / PERIOD as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ranpace_phy::LteBandwidth;

    fn share(band: LteBandwidth, mcs: u8) -> f64 {
        let (prbs, group) = (band.prbs(), band.prbs().rbg_size().into());
        let elements = Elements::new(LteControl::new(prbs), prbs, group);
        let all = Units::first(prbs.rbgs().into());
        let whole = LteMcs::new(mcs).unwrap().i_tbs(Direction::Downlink).transport_block(prbs);
        elements.mean_bits(all, group, prbs.get().into(), mcs) / f64::from(whole.bits())
    }

    #[test]
    fn narrow_bands_carry_less_than_their_blocks_say() {
        // A real stack at the highest MCS has 0.80 on 6 PRBs, 0.94 on 15, and agrees from 25 on. 6 PRBs: 3752 bits in eight
        // subframes, 1800 in subframe 0, 3240 in subframe 5, in every other frame 1608 on the three PRBs beside SIB1: 34 240 of 43 920.
        let found = LteBandwidth::ALL.map(|band| share(band, 28));
        assert!((found[0] - 34_240.0 / 43_920.0).abs() < 1e-9, "{found:?}");
        for (found, expected) in found.into_iter().zip([0.80, 0.94, 1.0, 1.0, 1.0, 1.0]) {
            assert!((found - expected).abs() < 0.025, "{found} for {expected}");
        }
        // Lower MCSs lose less on 6 PRBs: their code rate is too high only in subframes 0 and 5.
        let low = LteBandwidth::ALL.map(|band| share(band, 10));
        assert!((0.88..0.92).contains(&low[0]) && (0.94..0.98).contains(&low[1]) && low[3] > 0.99, "{low:?}");
    }

    #[test]
    fn a_grant_asks_no_more_of_an_element_than_its_mcs() {
        let band = LteBandwidth::Mhz1_4.prbs();
        let elements = Elements::new(LteControl::new(band), band, 1);
        let all = Units::first(6);
        let fit = |slot, mcs| {
            elements.fit(slot, all, 6, mcs).map(|found| (found.mcs, found.rate, found.block.bits()))
        };
        // Ordinary subframes have the number of elements with which channels are measured; MCS 28 is not decodable on them.
        assert_eq!(fit(1, 28), Some((27, 27, 3752)));
        assert_eq!(fit(1, 20), Some((20, 20, 2344)));
        assert_eq!(fit(5, 28), Some((24, 28, 3240)));
        assert_eq!(fit(0, 20), Some((11, 20, 1032)));
        // MCS 0 is sent all the same, at the code rate of a higher one.
        assert_eq!(fit(0, 0).map(|(mcs, rate, bits)| (mcs, rate > 0, bits)), Some((0, true, 152)));
        // SIB1 takes three of six groups.
        assert_eq!(elements.taken(25).count(), 3);
        assert_eq!(elements.taken(15), Units::NONE);
    }
}
