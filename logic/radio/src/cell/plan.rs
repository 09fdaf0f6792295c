//! Decisions made some slots ahead: which blocks users retransmit uplink and, where both directions share the symbols of a slot,
//! which blocks are retransmitted downlink and how many symbols the uplink gets.
//!
//! The base station grants the slot `grant_to_pusch` ahead. A block that is due for retransmission is planned once, so the slots
//! in between do not reserve resources for it as well. A block that does not fit stays due.

use ranpace_link::Packet;
use ranpace_phy::Direction;
use ranpace_units::Time;

use super::air::Layout;
use super::config::CellConfig;
use super::ue_context::{Block, UeContext, UplinkGrant};
use crate::channel::CqiScale;
use crate::scheduler::Units;

/// Room in a slot.
#[derive(Clone, Copy)]
pub(super) struct Room {
    /// Data symbols of the slot.
    pub symbols: u8,
    /// PRBs or symbols already taken.
    pub taken: u16,
    /// PRBs or symbols in total.
    pub all: u16,
}

impl<P: Packet> UeContext<P> {
    /// Drops plans for slots that have passed.
    pub fn forget_plans(&mut self, slot: u64) {
        while self.grants.front().is_some_and(|grant| grant.slot < slot) {
            self.grants.pop_front();
        }
        while self.again.front().is_some_and(|(at, _)| *at < slot) {
            self.again.pop_front();
        }
    }

    /// Plans an uplink retransmission in slot `target` if a due one fits, and returns the PRBs (or symbols) that it takes.
    pub fn plan_uplink(&mut self, layout: &Layout, target: u64, room: Room) -> Option<u16> {
        let Self { harq, grants, .. } = self;
        let takes = |block: &Block| if layout.by_symbols { block.symbols.into() } else { block.prbs };
        let fits = |block: &Block| takes(block) <= room.all - room.taken && block.symbols <= room.symbols;
        let process = harq.uplink.due(target).find(|process| {
            let planned = grants.iter().any(|grant| grant.again == Some(*process));
            !planned && harq.uplink.content(*process).is_some_and(fits)
        })?;
        let block = harq.uplink.content(process)?;
        grants.push_back(UplinkGrant {
            slot: target,
            first_prb: if layout.by_symbols { 0 } else { room.taken },
            prbs: block.prbs,
            symbols: block.symbols,
            mcs: block.mcs,
            size: block.size,
            again: Some(process),
        });
        Some(takes(block))
    }

    /// Returns whether a HARQ process is free for a new uplink block in slot `target`, beside those already granted.
    pub fn has_process(&self, target: u64) -> bool {
        let granted = self.grants.iter().filter(|grant| grant.again.is_none()).count();
        self.harq.uplink.count_free(target) > granted
    }

    /// Plans a downlink retransmission in slot `target` if a due one fits, and returns the symbols that it takes. Called only
    /// where both directions share the symbols.
    pub fn plan_downlink(&mut self, target: u64, room: Room) -> Option<u16> {
        let Self { harq, again, .. } = self;
        let free = u32::from(room.all - room.taken);
        let process = harq.downlink.due(target).find(|process| {
            let planned = again.iter().any(|(_, other)| other == process);
            !planned && harq.downlink.content(*process).is_some_and(|block| block.units <= free)
        })?;
        again.push_back((target, process));
        harq.downlink.content(process).map(|block| block.units as u16) // at most `free`
    }

    /// Symbols that suffice for the queued downlink data; `None` if nothing is queued or nothing can be sent.
    pub fn downlink_need(
        &mut self,
        layout: &Layout,
        config: &CellConfig,
        scale: &CqiScale,
        (slot, now): (u64, Time),
        all: u16,
    ) -> Option<u16> {
        let wanted = self.rlc.wanted(now, Direction::Downlink).get();
        if wanted == 0 || all == 0 {
            return None;
        }
        let Self { channel, mobility, .. } = self;
        if layout.needs_cqi() {
            channel.downlink.update_cqis(layout, &config.adaptation, scale, mobility, (self.id, slot));
        }
        let symbols = Units::first(all.into());
        let cqi = channel.downlink.known.cqi_of(layout, symbols, config.adaptation.worst_unit);
        let mcs = layout.mcs_of(cqi, self.steps.downlink)?;
        let bytes = |count: u16| {
            let block = layout.block(Direction::Downlink, mcs, layout.prbs, count as u8); // at most the slot's symbols
            u64::from(block.bits() / 8)
        };
        let need = (u64::from(all) * wanted).div_ceil(bytes(all).max(1)).clamp(1, all.into()) as u16;
        Some((need..all).find(|need| bytes(*need) >= wanted).unwrap_or(all))
    }
}

/// Symbols out of `free` for new uplink data, where both directions share them: users of either direction get equal parts, or
/// what they need if that is less (FlexTti; radio-model, section 7). `turn` decides which direction gets the indivisible
/// remainder.
pub(super) fn uplink_part(free: u16, up: &[(u32, u16)], down: &[u16], turn: u64) -> u16 {
    let mut level = 0;
    loop {
        let (mut satisfied_up, mut open_up) = (0_u64, 0_u64);
        for &(_, need) in up {
            if need <= level { satisfied_up += u64::from(need) } else { open_up += 1 }
        }
        let (mut satisfied_down, mut open) = (0_u64, open_up);
        for &need in down {
            if need <= level { satisfied_down += u64::from(need) } else { open += 1 }
        }
        let left = u64::from(free).saturating_sub(satisfied_up + satisfied_down);
        let next = left.checked_div(open).unwrap_or(0) as u16; // at most `free`
        if next <= level {
            let rest = (open_up * left + turn.checked_rem(open).unwrap_or(0)).checked_div(open).unwrap_or(0);
            return (satisfied_up + rest).min(free.into()) as u16;
        }
        level = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn directions_share_by_users_and_nobody_gets_more_than_it_needs() {
        for (case, up, down, even, odd) in [
            ("both full", vec![13], vec![13], 6, 7),
            ("a little downlink", vec![13], vec![1], 12, 12),
            ("a little uplink", vec![2], vec![13], 2, 2),
            ("uplink alone", vec![13], vec![], 13, 13),
            ("two up and one down", vec![13, 13], vec![13], 8, 9),
            ("both little", vec![2], vec![3], 2, 2),
        ] {
            let up: Vec<(u32, u16)> = (0..).zip(up).collect();
            assert_eq!(
                (uplink_part(13, &up, &down, 0), uplink_part(13, &up, &down, 1)),
                (even, odd),
                "{case}"
            );
        }
        // Fifty small uplink users and one downlink: each gets one symbol at a time.
        let up: Vec<(u32, u16)> = (0..50).map(|user| (user, 1)).collect();
        let parts: u64 = (0..51).map(|turn| u64::from(uplink_part(13, &up, &[13], turn))).sum();
        assert_eq!(parts, 50 * 13);
    }

    proptest! {
        #[test]
        fn there_is_never_more_than_there_is(
            free in 0..24u16, up in prop::collection::vec(1..24u16, 0..9),
            down in prop::collection::vec(1..24u16, 0..9), turn: u64
        ) {
            let needed: u16 = up.iter().sum();
            let others: u16 = down.iter().sum();
            let up: Vec<(u32, u16)> = (0..).zip(up).collect();
            let part = uplink_part(free, &up, &down, turn);
            prop_assert!(part <= free);
            if needed + others <= free {
                prop_assert_eq!(part, needed);
            }
        }
    }
}
