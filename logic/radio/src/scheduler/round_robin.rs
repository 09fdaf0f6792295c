//! Round robin: equal parts of the slot for all users that have data.
//!
//! Source: radio-model, section 7; Diarra 2022, Table 3.1, for symbols (FlexTti: equal symbols, left-overs to the next).
//! The units of a slot are split equally among the candidates; the remainder goes, one unit each, to the next candidates in the
//! cycle of user numbers, and the cycle advances past them. With more candidates than units, everything is remainder. With
//! [`super::Alloc::Queue`], nobody gets more than it wants, and what is left is split again in the same way
//! among those that want more, until nothing is left or all have enough.
//!
//! Ours: a candidate that cannot use any free unit is skipped and keeps its turn. Parts of the band are runs that start at
//! a different unit in each slot, so that the last resource block group, which may be smaller, is shared equally; a single
//! candidate starts at the first unit. Symbols are runs in the order of the cycle.

use super::{Channel, Grant, Slot, Units};

/// The cycle, and scratch buffers that are kept to save allocations.
#[derive(Clone, Debug, Default)]
pub(super) struct RoundRobin {
    /// The user whose turn is next; if it is absent, the next higher one.
    next: u32,
    /// Candidates and their units, in the order of the cycle at the beginning of the slot.
    shares: Vec<Share>,
    /// Candidates that still want units, in order of turn.
    order: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Share {
    candidate: usize,
    units: Units,
    done: bool,
}

impl RoundRobin {
    pub fn allocate<C: Channel>(&mut self, slot: &Slot<'_, C>, grants: &mut Vec<Grant>) {
        let before = grants.len();
        self.line_up(slot);
        let start = if slot.alike || slot.candidates.len() == 1 { 0 } else { start_of(slot.tti, slot.free) };
        let mut pool = slot.free;
        while !pool.is_empty() && !self.order.is_empty() {
            let waiting = self.order.len() as u32; // user numbers are u32
            let (part, extras) = (pool.count() / waiting, pool.count() % waiting);
            for (turn, &index) in (0..).zip(&self.order) {
                let quota = part + u32::from(turn < extras);
                let share = &mut self.shares[index as usize];
                share.done = !share.fill(slot, &mut pool, start, quota);
                if pool.is_empty() {
                    break;
                }
            }
            self.order.rotate_left(extras as usize);
            if let Some(&first) = self.order.first() {
                self.next = slot.candidates[self.shares[first as usize].candidate].user;
            }
            self.order.retain(|&index| !self.shares[index as usize].done);
        }
        let served = self.shares.iter().filter(|share| !share.units.is_empty());
        grants.extend(served.map(|share| Grant { candidate: share.candidate, units: share.units }));
        if slot.alike {
            // Symbols that some left would split the runs of others.
            let mut symbols = slot.free;
            for grant in &mut grants[before..] {
                grant.units = symbols.take_lowest(grant.units.count());
            }
        }
    }

    /// Collects the candidates that can use a free unit, starting with the one whose turn it is.
    fn line_up<C: Channel>(&mut self, slot: &Slot<'_, C>) {
        let &Slot { candidates, channel, free, .. } = slot;
        let split = candidates.partition_point(|candidate| candidate.user < self.next);
        let useful = |&candidate: &usize| {
            candidates[candidate].wanted > 0
                && free.iter().any(|unit| channel.unit_bits(candidate, unit) > 0.0)
        };
        let cycle = (split..candidates.len()).chain(0..split).filter(useful);
        self.shares.clear();
        self.shares.extend(cycle.map(|candidate| Share { candidate, units: Units::NONE, done: false }));
        self.order.clear();
        self.order.extend(0..self.shares.len() as u32);
    }
}

impl Share {
    /// Adds up to `quota` units out of `pool`, in order from `start` on. Returns whether it can use more.
    fn fill<C: Channel>(&mut self, slot: &Slot<'_, C>, pool: &mut Units, start: u32, quota: u32) -> bool {
        let wanted = slot.candidates[self.candidate].wanted;
        let mut left = quota;
        for unit in pool.iter_from(start) {
            if left == 0 {
                return true;
            }
            if slot.channel.unit_bits(self.candidate, unit) > 0.0 {
                self.units.insert(unit);
                pool.remove(unit);
                left -= 1;
                if slot.until_sated && slot.channel.block_bytes(self.candidate, self.units) >= wanted {
                    return false;
                }
            }
        }
        // The rest of the pool is useless to it, and the pool only shrinks.
        left == 0
    }
}

/// The unit at which the parts start. Multiples of the golden ratio are spread evenly over the free units, also over just the
/// slots in which one user is served, whatever their distance.
fn start_of(tti: u64, free: Units) -> u32 {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15; // 2^64 / 1.618...
    let place = (u128::from(tti.wrapping_mul(GOLDEN)) * u128::from(free.count())) >> 64;
    let mut later = free;
    later.take_lowest(place as u32); // less than the count
    later.lowest().unwrap_or(0)
}
