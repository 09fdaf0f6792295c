//! The uplink of one slot: scheduling requests, grants for a coming slot, and the blocks that users send.

use ranpace_link::Packet;
use ranpace_phy::{Cqi, Direction, TransportBlock, lena_uplink_cqi};
use ranpace_rnis::Grant;
use ranpace_units::{Bytes, Time};

use super::air::Layout;
use super::config::MOST_GROUPS;
use super::plan::{Room, uplink_part};
use super::quality::{Channel, Sinrs, effective, worst};
use super::ue_context::{Block, UeContext, UplinkGrant, UserObserver};
use super::{Air, Cell, CellConfig, Listener, Probe};
use crate::channel::{CqiScale, Position, from_db, to_db};
use crate::harq::Attempt;
use crate::scheduler::{Alloc, Units};
use crate::uplink::{BSR_BYTES, PowerControl};

/// Minimum PRBs of an LTE user, as in ns-3.
const LEAST_LTE: u16 = 3;

/// A part of the band in a slot.
#[derive(Clone, Copy)]
struct Part {
    first: u16,
    prbs: u16,
    symbols: u8,
}

/// The largest SINR, as a ratio, below which every uplink has CQI 0.
pub(super) fn least_sinr(scale: &CqiScale, lena: bool) -> f64 {
    let is_poor = |sinr: f64| (if lena { lena_uplink_cqi(sinr) } else { scale.cqi(sinr) }) == Cqi::MIN;
    let (mut poor, mut good) = (0.0, 1e6);
    for _ in 0..100 {
        let middle = f64::midpoint(poor, good);
        *(if is_poor(middle) { &mut poor } else { &mut good }) = middle;
    }
    poor
}

impl<P: Packet> Cell<P> {
    /// Symbols of a slot that the uplink takes from the downlink, where both share them.
    pub(super) fn uplink_symbols_of(&self, slot: u64) -> u8 {
        let of = |(at, symbols): &(u64, u8)| if *at == slot { *symbols } else { 0 };
        self.scratch.uplink_symbols.iter().map(of).sum()
    }

    /// Passes decoded blocks to RLC, handles users' requests, and grants the slot `grant_to_pusch` ahead.
    pub(super) fn receive_and_grant_uplink<L: Listener<P>>(
        &mut self,
        slot: u64,
        now: Time,
        listener: &mut L,
    ) {
        let shared = self.layout.frame.is_shared();
        let target = slot.saturating_add(self.config.access.grant_to_pusch);
        let symbols = self.layout.frame.data_symbols(target, Direction::Uplink);
        let lena = self.lena();
        let Self { config, info, layout, scale, least_uplink_sinr, members, awake, shares, scratch, .. } =
            self;
        scratch.uplink_symbols.retain(|(at, _)| *at >= slot);
        scratch.demands.clear();
        let by_symbols = layout.by_symbols;
        let all = if by_symbols { u16::from(symbols) } else { layout.prbs };
        // Symbols of downlink retransmissions that share the slot; PRBs or symbols of uplink retransmissions.
        let (mut below, mut again) = (0, 0);
        for &user in awake.iter() {
            let Some(member) = members.get_mut(user as usize).and_then(Option::as_mut) else { continue };
            // Reception precedes grants, and users are independent in it, so both are done in one pass over the users.
            member.receive((slot, now), Direction::Downlink, &mut scratch.content, listener);
            member.receive((slot, now), Direction::Uplink, &mut scratch.content, listener);
            member.on_deadlines(info.cell, now, listener);
            let backlog = member.rlc.wanted(now, Direction::Uplink);
            member.access.on_slot(slot, u32::try_from(backlog.get()).unwrap_or(u32::MAX));
            if symbols == 0 {
                continue;
            }
            member.forget_plans(slot);
            if shared {
                below +=
                    member.plan_downlink(target, Room { symbols, taken: below + again, all }).unwrap_or(0);
            }
            if member.harq.uplink.must_repeat()
                && let Some(takes) =
                    member.plan_uplink(layout, target, Room { symbols, taken: below + again, all })
            {
                again += takes;
                continue; // one block per slot
            }
            let wanted = member.access.wanted(slot);
            if wanted == 0 || !member.has_process(target) {
                continue;
            }
            let need = member.uplink_need(
                layout,
                config,
                scale,
                (lena, *least_uplink_sinr),
                (user, slot, all),
                wanted,
                symbols,
            );
            scratch.demands.extend(need.map(|need| (user, need)));
        }
        let mut free = all - below - again;
        if shared && !scratch.demands.is_empty() {
            scratch.needs.clear();
            for &user in awake.iter() {
                let Some(member) = members.get_mut(user as usize).and_then(Option::as_mut) else { continue };
                if member.again.back().is_some_and(|(at, _)| *at == target) {
                    continue; // one block per slot
                }
                scratch.needs.extend(member.downlink_need(layout, config, scale, (slot, now), all));
            }
            free = uplink_part(free, &scratch.demands, &scratch.needs, target);
        }
        let is_lte = matches!(config.air, Air::Lte { .. });
        let least = if is_lte { LEAST_LTE } else { layout.fewest };
        let mut out = std::mem::take(&mut scratch.shares);
        shares.divide(free, &scratch.demands, least, is_lte, &mut out);
        // The first free PRB. It does not count downlink retransmissions: they share the slot only where symbols are allocated.
        let mut cursor = again;
        for share in &out {
            let user = scratch.demands[share.candidate].0;
            let Some(member) = members.get_mut(user as usize).and_then(Option::as_mut) else { continue };
            let part = if by_symbols {
                Part { first: 0, prbs: layout.prbs, symbols: share.prbs as u8 } // at most the slot's symbols
            } else {
                Part { first: cursor, prbs: share.prbs, symbols }
            };
            cursor += share.prbs;
            if layout.needs_cqi() && member.is_hopeless(layout, config, slot, *least_uplink_sinr, part) {
                continue;
            }
            let UeContext { channel, mobility, .. } = &mut **member;
            channel.uplink.update(layout, &config.adaptation, mobility, (user, Direction::Uplink, slot));
            let Some(mcs) = member.uplink_mcs(layout, config, scale, lena, part) else { continue };
            if config.adaptation.control_errors && !member.hears_grant(layout, slot) {
                // The base station expects the block until its slot has passed.
                let size = layout.block(Direction::Uplink, mcs, part.prbs, part.symbols);
                member.access.on_grant_for(slot, size.bits() / 8, target);
                continue;
            }
            let size = layout.block(Direction::Uplink, mcs, part.prbs, part.symbols);
            if size == TransportBlock::ZERO {
                continue;
            }
            member.access.on_grant_for(slot, size.bits() / 8, target);
            let Part { first: first_prb, prbs, symbols } = part;
            let grant = UplinkGrant { slot: target, first_prb, prbs, symbols, mcs, size, again: None };
            member.grants.push_back(grant);
        }
        scratch.shares = out;
        if shared && cursor > 0 {
            scratch.uplink_symbols.push_back((target, cursor.min(all) as u8));
        }
    }

    /// Users send the blocks granted for this slot.
    pub(super) fn send_uplink<L: Listener<P>>(&mut self, slot: u64, now: Time, listener: &mut L) {
        let symbols = self.layout.frame.data_symbols(slot, Direction::Uplink);
        if symbols == 0 {
            return;
        }
        let Self { config, layout, members, awake, scratch, used_prbs, .. } = self;
        for &user in awake.iter() {
            let Some(member) = members.get_mut(user as usize).and_then(Option::as_mut) else { continue };
            member.forget_plans(slot);
            if member.grants.front().is_none_or(|grant| grant.slot > slot) {
                continue;
            }
            let Some(grant) = member.grants.pop_front() else { continue };
            let UplinkGrant { first_prb: first, prbs, symbols, mcs, size, .. } = grant;
            let part = Part { first, prbs, symbols };
            let draw = member.draw(slot, Direction::Uplink);
            if let Some(process) = grant.again {
                let Some(padding) = member.harq.uplink.content(process).map(|block| block.padding) else {
                    continue;
                };
                let sinr_db = member.uplink_sinr_db(layout, config, slot, part);
                member.harq.uplink.send_again(slot, process, sinr_db, draw, |db| layout.bler(mcs, prbs, db));
                used_prbs.uplink += f64::from(prbs) * f64::from(symbols)
                    / f64::from(layout.frame.data_symbols(slot, Direction::Uplink));
                let process = process.number();
                let grant = Grant { mcs, prbs, symbols, block: size, padding, process, again: true };
                member.note(slot, Direction::Uplink, grant);
                continue;
            }
            let Some(process) = member.harq.uplink.free(slot) else { continue };
            let backlog = member.rlc.wanted(now, Direction::Uplink);
            let short = backlog.get().saturating_sub(size.bytes().get());
            let due = member.access.is_report_due(slot, u32::try_from(short).unwrap_or(u32::MAX));
            let bsr = Bytes::new(BSR_BYTES.into());
            let room = if due { size.bytes().get().saturating_sub(bsr.get()) } else { size.bytes().get() };
            let mut content = scratch.content.pop().unwrap_or_default();
            let observer = &mut UserObserver { listener, user, direction: Direction::Uplink };
            let mut padding =
                member.rlc.fill(now, Direction::Uplink, Bytes::new(room), &mut content, observer);
            let left = member.rlc.wanted(now, Direction::Uplink);
            let left = u32::try_from(left.get()).unwrap_or(u32::MAX);
            let fits = due || padding >= bsr;
            if member.access.on_pusch(slot, left, fits) && !due && padding >= bsr {
                padding -= bsr;
            }
            let sinr_db = member.uplink_sinr_db(layout, config, slot, part);
            let units = prbs.into();
            let block = Block { content, size, padding, mcs, rate: mcs, prbs, symbols, units, sent: slot };
            let bler = |db| layout.bler(mcs, prbs, db);
            let attempt = member.harq.uplink.send(slot, process, block, sinr_db, draw, bler);
            let decoded = attempt == Some(Attempt::Decoded);
            member.on_attempt(layout, Direction::Uplink, mcs, decoded, config.adaptation.outer_loop);
            used_prbs.uplink += f64::from(prbs) * f64::from(symbols)
                / f64::from(layout.frame.data_symbols(slot, Direction::Uplink));
            let process = process.number();
            let grant = Grant { mcs, prbs, symbols, block: size, padding, process, again: false };
            member.note(slot, Direction::Uplink, grant);
        }
    }
}

impl<P: Packet> UeContext<P> {
    /// Transmit power on each PRB in mW.
    fn power(&self, config: &CellConfig, loss_db: f64, prbs: u16, band: u16) -> f64 {
        if self.recorded { 1.0 } else { from_db(config.power.prb_dbm(loss_db, prbs, band)) }
    }

    /// SINRs at the power of a grant of `prbs` PRBs.
    fn powered(&self, layout: &Layout, config: &CellConfig, sinrs: &Sinrs, loss_db: f64, prbs: u16) -> Sinrs {
        let power = self.power(config, loss_db, prbs, layout.prbs) as f32;
        sinrs.map(|sinr| sinr * power)
    }

    /// PRBs (or symbols) that suffice for `wanted` bytes; `None` if there is no grant.
    #[allow(clippy::too_many_arguments)]
    fn uplink_need(
        &mut self,
        layout: &Layout,
        config: &CellConfig,
        scale: &CqiScale,
        (lena, least_sinr): (bool, f64),
        (user, slot, all): (u32, u64, u16),
        wanted: u32,
        symbols: u8,
    ) -> Option<u16> {
        let Self { channel, mobility, .. } = self;
        // Waiting users ask in every slot, so they are measured only when the answer may have changed.
        let full = config.alloc == Alloc::Full && !layout.by_symbols;
        let ahead = &mut channel.uplink.ahead;
        // A user that did not ask in the previous slot is unlikely to ask in the next one.
        let waits = ahead.asked + 1 >= slot;
        ahead.asked = slot;
        match ahead.has_grant.filter(|_| slot < ahead.until) {
            Some(false) => return None,
            Some(true) if full => return Some(ahead.prbs),
            _ => {}
        }
        channel.uplink.update(layout, &config.adaptation, mobility, (user, Direction::Uplink, slot));
        let by_symbols = layout.by_symbols;
        let most = if by_symbols || self.recorded {
            all
        } else {
            config.power.most_prbs(self.channel.uplink.known.loss_db, all)
        };
        let prbs = if by_symbols { layout.prbs } else { most };
        // Part of the band may get a grant where the worst group of the whole band is too poor. So the mean over the band decides
        // here, and the granted part then gets its own MCS.
        let part = Part { first: 0, prbs, symbols };
        let mcs = if layout.needs_cqi() {
            let known = &self.channel.uplink.known;
            let sinrs = self.powered(layout, config, &known.sinrs, known.loss_db, prbs);
            let sinr = effective(layout, &sinrs, part.first, part.prbs);
            let cqi = if lena { lena_uplink_cqi(sinr) } else { scale.cqi(sinr) };
            if waits && (full || cqi == Cqi::MIN) {
                self.look_ahead(layout, config, slot, least_sinr, prbs);
            }
            layout.mcs_of(cqi, self.steps.uplink)?
        } else {
            self.uplink_mcs(layout, config, scale, lena, part)?
        };
        let bytes = |count: u16| {
            let block = if by_symbols {
                layout.block(Direction::Uplink, mcs, layout.prbs, count as u8) // at most the slot's symbols
            } else {
                layout.block(Direction::Uplink, mcs, count, symbols)
            };
            block.bits() / 8
        };
        if full {
            return Some(most); // as many as its power suffices for
        }
        // Nearly proportional; a few steps correct the rest.
        let whole = bytes(most).max(1);
        let mut need =
            (u64::from(most) * u64::from(wanted)).div_ceil(whole.into()).clamp(1, most.into()) as u16;
        while need < most && bytes(need) < wanted {
            need += 1;
        }
        Some(need)
    }

    /// Determines for some slots ahead whether the uplink's SINR is above `least_sinr` at the power of `prbs` PRBs.
    fn look_ahead(&mut self, layout: &Layout, config: &CellConfig, slot: u64, least_sinr: f64, prbs: u16) {
        /// Margin for rounding, also to single precision.
        const MARGIN: f64 = 1e-6;
        if slot < self.channel.uplink.ahead.until {
            return; // the SINR is near the limit and may cross it in any slot
        }
        let loss_db = self.channel.uplink.known.loss_db;
        let power = self.power(config, loss_db, prbs, layout.prbs);
        let Self { channel, mobility, .. } = self;
        let Channel { path, site, known, ahead } = &mut channel.uplink;
        let Some(measured) = known.slot else { return };
        // If nothing is certain over the whole horizon, a quarter of it may be.
        for parts in [1, 4] {
            let now = layout.frame.start_of(measured);
            let Some(outlook) = path.outlook(site, mobility, now, parts) else { return };
            let (mut lowest, mut highest) = ([0.0; MOST_GROUPS], [0.0; MOST_GROUPS]);
            for (group, [least, most]) in outlook.ranges().enumerate() {
                lowest[group] = (least * power * (1.0 - MARGIN)) as f32;
                highest[group] = (most * power * (1.0 + MARGIN)) as f32;
                ahead.most[group] = (most * (1.0 + MARGIN)) as f32;
            }
            let is_poor = effective(layout, &highest, 0, prbs) * (1.0 + MARGIN) < least_sinr;
            let is_rich = effective(layout, &lowest, 0, prbs) * (1.0 - MARGIN) > least_sinr;
            (ahead.prbs, ahead.loss_db) = (prbs, loss_db);
            ahead.has_grant = (is_poor || is_rich).then_some(is_rich);
            // A measurement becomes known this many slots later.
            let slots = outlook.holds.as_nanos() / layout.frame.slot().as_nanos().max(1);
            ahead.until = measured + slots + config.adaptation.delay.uplink + 1;
            if ahead.has_grant.is_some() {
                return;
            }
        }
    }

    /// Returns whether a part has a group that is certainly too poor, where the worst group decides.
    fn is_hopeless(
        &self,
        layout: &Layout,
        config: &CellConfig,
        slot: u64,
        least_sinr: f64,
        part: Part,
    ) -> bool {
        let ahead = &self.channel.uplink.ahead;
        if !config.adaptation.worst_unit || slot >= ahead.until {
            return false;
        }
        let power = self.power(config, ahead.loss_db, part.prbs, layout.prbs);
        worst(layout, &ahead.most, part.first, part.prbs) * power * (1.0 + 1e-6) < least_sinr
    }

    /// The MCS of a grant of this part, from the latest measurement.
    fn uplink_mcs(
        &self,
        layout: &Layout,
        config: &CellConfig,
        scale: &CqiScale,
        lena: bool,
        part: Part,
    ) -> Option<u8> {
        if !layout.needs_cqi() {
            return layout.mcs_of(Cqi::MIN, 0.0);
        }
        let known = &self.channel.uplink.known;
        let cqi = self.uplink_cqi(layout, config, scale, lena, &known.sinrs, known.loss_db, part);
        layout.mcs_of(cqi, self.steps.uplink)
    }

    #[allow(clippy::too_many_arguments)]
    fn uplink_cqi(
        &self,
        layout: &Layout,
        config: &CellConfig,
        scale: &CqiScale,
        lena: bool,
        sinrs: &Sinrs,
        loss_db: f64,
        part: Part,
    ) -> Cqi {
        let sinrs = self.powered(layout, config, sinrs, loss_db, part.prbs);
        let sinr = if config.adaptation.worst_unit {
            worst(layout, &sinrs, part.first, part.prbs)
        } else {
            effective(layout, &sinrs, part.first, part.prbs)
        };
        if lena { lena_uplink_cqi(sinr) } else { scale.cqi(sinr) }
    }

    /// Returns whether the user receives a grant in this slot. A user whose SINR without fading exceeds 30 dB always does (ours): this
    /// misses only fades of the whole band by 31 dB.
    fn hears_grant(&mut self, layout: &Layout, slot: u64) -> bool {
        let Channel { path, site, .. } = &mut self.channel.downlink;
        let now = layout.frame.start_of(slot);
        if path.look(site, &mut self.mobility, now, &mut []).average_sinr > 1e3 {
            return true;
        }
        let mut sinrs = [0.0; MOST_GROUPS];
        self.channel.downlink.look(layout, &mut self.mobility, slot, &mut sinrs);
        self.hears(layout, slot, &sinrs)
    }

    /// Effective SINR in dB of this part in this slot, at the power of a grant of it.
    fn uplink_sinr_db(&mut self, layout: &Layout, config: &CellConfig, slot: u64, part: Part) -> f64 {
        if !layout.needs_sinr() {
            return 0.0;
        }
        let mut sinrs = [0.0; MOST_GROUPS];
        let look = self.channel.uplink.look(layout, &mut self.mobility, slot, &mut sinrs);
        let sinrs = self.powered(layout, config, &sinrs, look.loss_db, part.prbs);
        to_db(effective(layout, &sinrs, part.first, part.prbs))
    }

    /// This direction's channel now, for a grant of the whole band (or as much of it as the power allows).
    pub(super) fn probe(
        &mut self,
        layout: &Layout,
        config: &CellConfig,
        scale: &CqiScale,
        direction: Direction,
        slot: u64,
        position: Position,
    ) -> Probe {
        let mut sinrs = [0.0; MOST_GROUPS];
        let look = self.channel[direction].look(layout, &mut self.mobility, slot, &mut sinrs);
        let symbols =
            (0..40).map(|ahead| layout.frame.data_symbols(slot + ahead, direction)).max().unwrap_or(0);
        let known_cqi = |sinr: f64| scale.cqi(sinr);
        let (sinr, cqi, mcs, prbs, some_part) = match direction {
            Direction::Downlink => {
                let mut known = super::Quality::NONE;
                for (cqi, sinr) in known.cqis.iter_mut().zip(&sinrs[..layout.groups as usize]) {
                    *cqi = known_cqi((*sinr).into()).get();
                }
                let all = Units::first(layout.groups);
                let sinr = effective(layout, &sinrs, 0, layout.prbs);
                let used = known.cqi_of(layout, all, config.adaptation.worst_unit);
                let mcs = layout.mcs_of(used, self.steps.downlink);
                // Resource block groups are granted one by one; symbols are each as wide as the band.
                let some_part = !layout.by_symbols && known.cqis.iter().any(|cqi| *cqi > 0);
                (sinr, known_cqi(sinr), mcs, layout.prbs, some_part)
            }
            Direction::Uplink => {
                let prbs = if self.recorded || layout.by_symbols {
                    layout.prbs
                } else {
                    let most = config.power.most_prbs(look.loss_db, layout.prbs);
                    if matches!(config.air, Air::Lte { .. }) {
                        crate::uplink::pusch_prbs(most, most)
                    } else {
                        most
                    }
                };
                let part = Part { first: 0, prbs, symbols };
                let lena = matches!(config.power.control, PowerControl::Lena { .. });
                let powered = self.powered(layout, config, &sinrs, look.loss_db, prbs);
                let cqi = self.uplink_cqi(layout, config, scale, lena, &sinrs, look.loss_db, part);
                let mcs = layout.mcs_of(cqi, self.steps.uplink);
                let sinr = effective(layout, &powered, 0, prbs);
                // The mean decides whether there is a grant at all; the granted part then has its own CQI.
                let mean = if lena { lena_uplink_cqi(sinr) } else { known_cqi(sinr) };
                (sinr, cqi, mcs, prbs, !layout.by_symbols && mean > Cqi::MIN)
            }
        };
        let whole = match direction {
            Direction::Downlink => mcs.and_then(|mcs| layout.downlink_band(symbols, mcs)),
            Direction::Uplink => mcs.map(|mcs| (mcs, layout.block(direction, mcs, prbs, symbols), 1.0)),
        };
        let (mcs, block, share) = match whole {
            Some((mcs, block, share)) => (Some(mcs), block, share),
            None => (None, TransportBlock::ZERO, 1.0),
        };
        let second = 1_000_000_000 / layout.frame.slot().as_nanos().max(1);
        let was_served = self.latest[direction].is_some_and(|(at, _)| slot.saturating_sub(at) <= second);
        let in_reach = mcs.is_some() || some_part || was_served;
        Probe {
            position,
            loss_db: look.loss_db,
            sinr_db: to_db(sinr),
            cqi,
            mcs,
            prbs,
            block,
            share,
            in_reach,
        }
    }
}
