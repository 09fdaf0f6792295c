//! Reports of slots, for those who subscribed.

use ranpace_link::Packet;
use ranpace_phy::{Both, Direction};
use ranpace_rnis::{BearerReport, LinkReport, Report, UserReport};
use ranpace_units::{Bytes, Span, Time};

use super::air::Layout;
use super::{Cell, CellConfig, Listener, Member};
use crate::channel::CqiScale;

/// What reports are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// Slots between two reports; none counts as one. A report tells of its own slot only: at more than one, grants in
    /// between are in the sums of [`LinkReport`] alone.
    pub period: u64,
    /// Slots between two reports with all users in them; the others leave out users that sleep. None: all in every one.
    pub full_every: u64,
}

impl Subscription {
    /// Every slot; all users every 100 ms of LTE.
    pub const EVERY_SLOT: Self = Self { period: 1, full_every: 100 };
}

/// The state of reporting.
pub(super) struct Reports {
    subscription: Subscription,
    next: u64,
    next_full: u64,
    users: Vec<UserReport>,
    bearers: Vec<BearerReport>,
    /// What was used before this slot.
    used: Both<f64>,
}

impl Reports {
    pub fn new(subscription: Subscription, slot: u64, used: Both<f64>) -> Self {
        Self { subscription, next: slot, next_full: slot, users: Vec::new(), bearers: Vec::new(), used }
    }
}

impl<P: Packet> Cell<P> {
    /// The report of this slot, if one is due.
    pub(super) fn report<L: Listener<P>>(&mut self, slot: u64, now: Time, listener: &mut L) {
        let used_now = self.used_prbs;
        let Some(reports) = &mut self.reports else { return };
        let used = Both::of(|direction| (used_now[direction] - reports.used[direction]) as f32);
        reports.used = used_now;
        if slot < reports.next {
            return;
        }
        reports.next = slot.saturating_add(reports.subscription.period.max(1));
        let full = slot >= reports.next_full;
        if full {
            reports.next_full = slot.saturating_add(reports.subscription.full_every);
        }
        let Self { config, layout, scale, members, awake, scratch, info, .. } = self;
        let Some(reports) = &mut self.reports else { return };
        reports.users.clear();
        reports.bearers.clear();
        scratch.users.clear();
        if full {
            let all = members.iter().flatten().map(|member| member.id);
            scratch.users.extend(all);
        } else {
            scratch.users.extend_from_slice(awake);
        }
        let mut active = Both { downlink: 0_u16, uplink: 0_u16 };
        for &user in &scratch.users {
            let Some(member) = members.get_mut(user as usize).and_then(Option::as_mut) else { continue };
            let row = member.report(layout, config, scale, slot, now, Some(slot));
            let link = &row.link;
            for direction in [Direction::Downlink, Direction::Uplink] {
                active[direction] += u16::from(!link[direction].queue.is_zero());
                for (bearer, number) in member.rlc.bearers().iter().zip(0..=u8::MAX) {
                    let channel = bearer.channel(direction);
                    reports.bearers.push(BearerReport {
                        user,
                        bearer: number,
                        direction,
                        queue: channel.to_be_sent(),
                        head_of_line: channel.head_of_line_delay(now),
                        buffer: match member.config.bearers.get(usize::from(number)) {
                            Some(config) => config.buffer(direction),
                            None => None,
                        },
                    });
                }
            }
            reports.users.push(row);
        }
        listener.on_report(&Report {
            cell: info,
            slot,
            time: now,
            used_prbs: used,
            active_users: active,
            users: &reports.users,
            bearers: &reports.bearers,
            full,
        });
    }
}

impl<P: Packet> Cell<P> {
    /// What a report would say of a user now, for whoever looks only now and then; with the last grants, whenever they
    /// were. `None` if there is no such user.
    pub fn snapshot(&mut self, now: Time, user: u32) -> Option<UserReport> {
        let slot = self.layout.frame.slot_at(now);
        let Self { members, layout, config, scale, .. } = self;
        let member = members.get_mut(user as usize).and_then(Option::as_mut)?;
        Some(member.report(layout, config, scale, slot, now, None))
    }
}

impl<P: Packet> Member<P> {
    /// A row, with the grants of this slot, or with the last ones.
    fn report(
        &mut self,
        layout: &Layout,
        config: &CellConfig,
        scale: &CqiScale,
        slot: u64,
        now: Time,
        only: Option<u64>,
    ) -> UserReport {
        if layout.needs_cqi() || layout.needs_sinr() {
            let Self { channel, mobility, .. } = self;
            let who = (self.id, Direction::Downlink, slot);
            channel.downlink.update(layout, &config.adaptation, mobility, who);
        }
        let (capacity, cqi) = self.channel.downlink.wideband(layout, scale);
        UserReport {
            user: self.id,
            rnti: self.rnti,
            cqi,
            cqi_time: self.channel.downlink.measured(layout),
            capacity: capacity as f32,
            link: Both::of(|direction| self.link_report(now, direction, only)),
        }
    }

    fn link_report(&self, now: Time, direction: Direction, only: Option<u64>) -> LinkReport {
        let counters = self.harq[direction].counters();
        let queue = match direction {
            Direction::Downlink => self.rlc.to_be_sent(direction),
            Direction::Uplink => Bytes::new(self.access.known_backlog().into()),
        };
        let head_of_line =
            if queue.is_zero() { Span::ZERO } else { self.rlc.head_of_line_delay(now, direction) };
        LinkReport {
            grant: self.latest[direction]
                .filter(|(at, _)| only.is_none_or(|only| *at == only))
                .map(|(_, grant)| grant),
            queue,
            head_of_line,
            blocks: counters.blocks,
            retransmissions: counters.retransmissions,
            lost: counters.lost,
            scheduled_bits: self.scheduled_bits[direction],
            scheduled_prb_symbols: self.scheduled_prb_symbols[direction],
        }
    }
}
