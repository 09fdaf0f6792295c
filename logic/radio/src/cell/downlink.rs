//! The downlink of one slot: retransmissions first, then new data in what is left, as the scheduler divides it.

use ranpace_link::Packet;
use ranpace_phy::Direction;
use ranpace_rnis::Grant;
use ranpace_units::Time;

use super::air::{Granted, Layout};
use super::config::MOST_GROUPS;
use super::quality::effective_of;
use super::ue_context::{Block, UeContext, UserObserver};
use super::{Cell, Listener};
use crate::channel::to_db;
use crate::harq::Attempt;
use crate::scheduler::{self, Candidate, Policy, Units};

/// Bits that units would carry for the candidates of a slot.
struct Offer<'a, P> {
    layout: &'a Layout,
    members: &'a [Option<Box<UeContext<P>>>],
    candidates: &'a [Candidate],
    worst: bool,
    slot: u64,
    symbols: u8,
}

impl<P> Offer<'_, P> {
    #[inline]
    fn member(&self, candidate: usize) -> Option<&UeContext<P>> {
        let user = self.candidates.get(candidate)?.user;
        self.members.get(user as usize)?.as_deref()
    }

    fn grant(&self, candidate: usize, units: Units) -> Option<Granted> {
        let member = self.member(candidate)?;
        let cqi = member.channel.downlink.known.cqi_of(self.layout, units, self.worst);
        let mcs = self.layout.mcs_of(cqi, member.steps.downlink)?;
        self.layout.downlink_grant(self.slot, units, self.symbols, mcs)
    }
}

impl<P> scheduler::Channel for Offer<'_, P> {
    fn unit_bits(&self, candidate: usize, unit: u32) -> f32 {
        let Some(member) = self.member(candidate) else { return 0.0 };
        let known = &member.channel.downlink.known;
        let cqi = if self.layout.by_symbols {
            known.cqi_of(self.layout, Units::of(unit), self.worst).get()
        } else {
            known.cqis[unit as usize % MOST_GROUPS]
        };
        self.layout.unit_bits[usize::from(cqi & 15)]
    }

    fn unit_bits_of(&self, candidate: usize, bits: &mut [f32]) {
        let Some(member) = self.member(candidate) else { return bits.fill(0.0) };
        if self.layout.by_symbols {
            return bits.fill(self.unit_bits(candidate, 0));
        }
        for (bits, cqi) in bits.iter_mut().zip(&member.channel.downlink.known.cqis) {
            *bits = self.layout.unit_bits[usize::from(cqi & 15)];
        }
    }

    fn block_bytes(&self, candidate: usize, units: Units) -> u32 {
        self.grant(candidate, units).map_or(0, |grant| grant.size.bits() / 8)
    }
}

impl<P: Packet> Cell<P> {
    /// Sends the downlink blocks of this slot.
    pub(super) fn send_downlink<L: Listener<P>>(&mut self, slot: u64, now: Time, listener: &mut L) {
        let data_symbols = self.layout.frame.data_symbols(slot, Direction::Downlink);
        let symbols = data_symbols - self.uplink_symbols_of(slot).min(data_symbols);
        let mut free = self.layout.for_data(slot, self.layout.units(symbols));
        if free.is_empty() {
            return;
        }
        let Self { config, layout, scale, members, awake, scheduler, scratch, used_prbs, .. } = self;
        let shared = layout.frame.is_shared();
        used_prbs.downlink += f64::from(layout.system_information_prbs(slot));
        let share_of_slot =
            |prbs: u16, symbols: u8| f64::from(prbs) * f64::from(symbols) / f64::from(data_symbols);
        let usable = config.is_usable(slot);
        scratch.candidates.clear();
        for &user in awake.iter() {
            let Some(member) = members.get_mut(user as usize).and_then(Option::as_mut) else { continue };
            if member.rlc.is_staged() {
                let observer = &mut UserObserver { listener, user, direction: Direction::Downlink };
                member.rlc.refill(now, observer);
            }
            let again = if shared {
                member.again.front().filter(|(at, _)| *at == slot).map(|(_, process)| *process)
            } else {
                // A user without a retransmission that fits may send new data.
                let fits = |block: &Block| block.units <= free.count() && block.symbols <= symbols;
                let harq = &member.harq.downlink;
                harq.due(slot).find(|process| harq.content(*process).is_some_and(fits))
            };
            if let Some(process) = again {
                let Some(block) = member.harq.downlink.content(process) else { continue };
                let units = free.take_lowest(block.units);
                let Block { mcs, rate, size, padding, .. } = *block;
                let (prbs, symbols) = layout.extent(units, symbols);
                let (sinr_db, _) = member.downlink_sinr_db(layout, slot, units, false);
                let draw = member.draw(slot, Direction::Downlink);
                member
                    .harq
                    .downlink
                    .send_again(slot, process, sinr_db, draw, |db| layout.bler(rate, prbs, db));
                scheduler.on_sent(slot, user, size.bits());
                used_prbs.downlink += share_of_slot(prbs, symbols);
                let process = process.number();
                let grant = Grant { mcs, prbs, symbols, block: size, padding, process, again: true };
                member.note(slot, Direction::Downlink, grant);
                listener.on_heard(now, user, &grant);
                continue;
            }
            if !usable {
                continue;
            }
            let wanted = member.rlc.wanted(now, Direction::Downlink);
            if wanted.is_zero() || !member.harq.downlink.is_free(slot) {
                continue;
            }
            if layout.needs_cqi() && !scheduler.looks() {
                let UeContext { channel, mobility, .. } = &mut **member;
                channel.downlink.update_cqis(layout, &config.adaptation, scale, mobility, (user, slot));
            }
            scratch
                .candidates
                .push(Candidate { user, wanted: u32::try_from(wanted.get()).unwrap_or(u32::MAX) });
        }
        // Round robin serves only as many users as can get parts that carry data. Rotating by multiples of the golden ratio reaches
        // every user, whichever slots of a pattern are downlink.
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15; // 2^64 / 1.618...
        let most = (free.count() / u32::from(layout.fewest)).max(1) as usize;
        if config.policy == Policy::RoundRobin && scratch.candidates.len() > most && layout.fewest > 1 {
            let place = u128::from(slot.wrapping_mul(GOLDEN));
            let turn = (place * scratch.candidates.len() as u128) >> 64;
            scratch.candidates.rotate_left(turn as usize); // less than their number
            scratch.candidates.truncate(most);
            scratch.candidates.sort_unstable_by_key(|candidate| candidate.user);
        }
        scratch.grants.clear();
        let worst = config.adaptation.worst_unit;
        if scheduler.looks() {
            // Only users that could be served are measured.
            let candidates = &scratch.candidates;
            let most = layout.unit_bits.iter().copied().fold(0.0, f32::max);
            let look = |candidate: usize, bits: &mut [f32]| {
                let user = candidates[candidate].user;
                let Some(member) = members.get_mut(user as usize).and_then(Option::as_mut) else { return };
                let UeContext { channel, mobility, .. } = &mut **member;
                if layout.needs_cqi() {
                    channel.downlink.update_cqis(layout, &config.adaptation, scale, mobility, (user, slot));
                }
                for (bits, cqi) in bits.iter_mut().zip(&channel.downlink.known.cqis) {
                    *bits = layout.unit_bits[usize::from(cqi & 15)];
                }
            };
            scheduler.allocate_looking(slot, candidates, (free, most), look, &mut scratch.grants);
        } else {
            let offer = Offer { layout, members, candidates: &scratch.candidates, worst, slot, symbols };
            scheduler.allocate(slot, &scratch.candidates, &offer, free, &mut scratch.grants);
        }
        let granted_units: u32 = scratch.grants.iter().map(|grant| grant.units.count()).sum();
        let left = u64::from(free.count().saturating_sub(granted_units));
        for at in 0..scratch.grants.len() {
            let scheduler::Grant { candidate, units } = scratch.grants[at];
            let offer = Offer { layout, members, candidates: &scratch.candidates, worst, slot, symbols };
            let Some(granted) = offer.grant(candidate, units) else { continue };
            let Granted { mcs, rate, wanted, prbs, symbols, size } = granted;
            let user = scratch.candidates[candidate].user;
            let Some(member) = members.get_mut(user as usize).and_then(Option::as_mut) else { continue };
            let Some(process) = member.harq.downlink.free(slot) else { continue };
            let mut content = scratch.content.pop().unwrap_or_default();
            let observer = &mut UserObserver { listener, user, direction: Direction::Downlink };
            let padding = member.rlc.fill(now, Direction::Downlink, size.bytes(), &mut content, observer);
            if member.rlc.wants_slots() {
                // The user could have had what nobody wanted, too.
                let count = u64::from(units.count()).max(1);
                let egress = size.bytes() * (count + left) / count;
                member.rlc.on_slot(now, layout.frame.slot(), egress, &content);
            }
            if content.is_empty() {
                // The block is too small for a header and a byte, or the user has nothing to send.
                scratch.content.push(content);
                if member.rlc.claims(Direction::Downlink) {
                    scheduler.on_sent(slot, user, size.bits());
                    used_prbs.downlink += share_of_slot(prbs, symbols);
                    let process = process.number();
                    let padding = size.bytes();
                    let grant = Grant { mcs, prbs, symbols, block: size, padding, process, again: false };
                    member.note(slot, Direction::Downlink, grant);
                    let (_, heard) =
                        member.downlink_sinr_db(layout, slot, units, config.adaptation.control_errors);
                    if heard {
                        listener.on_heard(now, user, &grant);
                    }
                }
                continue;
            }
            scheduler.on_sent(slot, user, size.bits());
            used_prbs.downlink += share_of_slot(prbs, symbols);
            let number = process.number();
            let grant = Grant { mcs, prbs, symbols, block: size, padding, process: number, again: false };
            member.note(slot, Direction::Downlink, grant);
            let control_errors = config.adaptation.control_errors;
            let (sinr_db, heard) = member.downlink_sinr_db(layout, slot, units, control_errors);
            if !heard {
                let observer = &mut UserObserver { listener, user, direction: Direction::Downlink };
                member.rlc.on_lost(now, Direction::Downlink, &content, observer);
                content.clear();
                scratch.content.push(content);
                continue;
            }
            listener.on_heard(now, user, &grant);
            let draw = member.draw(slot, Direction::Downlink);
            let block =
                Block { content, size, padding, mcs, rate, prbs, symbols, units: units.count(), sent: slot };
            let bler = |db| layout.bler(rate, prbs, db);
            let attempt = member.harq.downlink.send(slot, process, block, sinr_db, draw, bler);
            let decoded = attempt == Some(Attempt::Decoded);
            member.on_attempt(layout, Direction::Downlink, wanted, decoded, config.adaptation.outer_loop);
        }
    }
}

impl<P: Packet> UeContext<P> {
    /// Effective SINR in dB of these units in this slot, and whether the user receives the block's control information.
    fn downlink_sinr_db(&mut self, layout: &Layout, slot: u64, units: Units, control: bool) -> (f64, bool) {
        if !layout.needs_sinr() {
            return (0.0, true);
        }
        let mut sinrs = [0.0; MOST_GROUPS];
        self.channel.downlink.look(layout, &mut self.mobility, slot, &mut sinrs);
        let heard = !control || self.hears(layout, slot, &sinrs);
        (to_db(effective_of(layout, &sinrs, units)), heard)
    }
}
