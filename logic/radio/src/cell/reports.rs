//! Slot reports for subscribers.

use ranpace_link::Packet;
use ranpace_phy::{Both, Cqi, Direction};
use ranpace_rnis::{BearerReport, LinkReport, SlotReport, UserReport};
use ranpace_units::{Bytes, Span, Time};

use super::air::Layout;
use super::{Cell, CellConfig, Listener, UeContext};
use crate::channel::CqiScale;

/// The reports that are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellSubscription {
    /// Slots between two reports; 0 counts as 1. A report describes its own slot only: with more than one, the grants in
    /// between appear only in the sums of [`LinkReport`].
    pub period: u64,
    /// Slots between two reports that include all users; other reports omit sleeping users. 0: every report has all users.
    pub full_every: u64,
}

impl CellSubscription {
    /// Every slot, with all users every 100 slots (100 ms in LTE).
    pub const EVERY_SLOT: Self = Self { period: 1, full_every: 100 };
}

/// The state of reporting.
pub(super) struct Reports {
    subscription: CellSubscription,
    next: u64,
    next_full: u64,
    users: Vec<UserReport>,
    bearers: Vec<BearerReport>,
    /// PRBs used before this slot.
    used: Both<f64>,
}

impl Reports {
    pub fn new(subscription: CellSubscription, slot: u64, used: Both<f64>) -> Self {
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
        let users: &[u32] = if full {
            scratch.users.clear();
            scratch.users.extend(members.iter().flatten().map(|member| member.id));
            &scratch.users
        } else {
            awake
        };
        // Rows are overwritten in place, reusing those of the previous report.
        reports.users.resize(users.len(), BLANK);
        let mut rows = reports.users.iter_mut();
        reports.bearers.clear();
        let mut active = Both { downlink: 0_u16, uplink: 0_u16 };
        for &user in users {
            let Some(member) = members.get_mut(user as usize).and_then(Option::as_mut) else { continue };
            let Some(row) = rows.next() else { break };
            member.rlc.settle();
            for direction in [Direction::Downlink, Direction::Uplink] {
                for (number, bearer) in member.rlc.bearers().iter().enumerate() {
                    reports.bearers.push(BearerReport {
                        user,
                        bearer: number as u8, // at most 256
                        direction,
                        queue: bearer.to_be_sent(direction),
                        head_of_line: bearer.head_of_line_delay(now, direction),
                        buffer: member.buffers.get(number).and_then(|buffers| buffers[direction]),
                    });
                }
            }
            member.report(layout, config, scale, (slot, now), Some(slot), row);
            for direction in [Direction::Downlink, Direction::Uplink] {
                active[direction] += u16::from(!row.link[direction].queue.is_zero());
            }
        }
        // A slot without new data may still carry retransmissions.
        let usable = Both { downlink: config.is_usable(slot) || used.downlink > 0.0, uplink: true };
        let frame = layout.frame;
        let symbols =
            Both::of(|direction| if usable[direction] { frame.data_symbols(slot, direction) } else { 0 });
        let missing = rows.len();
        reports.users.truncate(users.len() - missing);
        listener.on_report(&SlotReport {
            cell: info,
            slot,
            time: now,
            symbols,
            used_prbs: used,
            active_users: active,
            users: &reports.users,
            bearers: &reports.bearers,
            full,
        });
    }
}

impl<P: Packet> Cell<P> {
    /// Returns the report on a user as of now, for occasional readers; it shows the latest grants, however old they
    /// are. `None` if there is no such user.
    pub fn snapshot(&mut self, now: Time, user: u32) -> Option<UserReport> {
        let slot = self.layout.frame.slot_at(now);
        let Self { members, layout, config, scale, .. } = self;
        let member = members.get_mut(user as usize).and_then(Option::as_mut)?;
        let mut row = BLANK;
        member.report(layout, config, scale, (slot, now), None, &mut row);
        Some(row)
    }
}

impl<P: Packet> UeContext<P> {
    /// Fills in a row with the grants of this slot, or with the latest ones.
    fn report(
        &mut self,
        layout: &Layout,
        config: &CellConfig,
        scale: &CqiScale,
        (slot, now): (u64, Time),
        only: Option<u64>,
        row: &mut UserReport,
    ) {
        if layout.needs_cqi() || layout.needs_sinr() {
            let Self { channel, mobility, .. } = self;
            let who = (self.id, Direction::Downlink, slot);
            channel.downlink.update(layout, &config.adaptation, mobility, who);
        }
        let (capacity, cqi) = self.channel.downlink.wideband(layout, scale);
        // Destructured so that every field is overwritten.
        let UserReport { user, rnti, cqi: row_cqi, cqi_time, capacity: row_capacity, link } = row;
        (*user, *rnti) = (self.id, self.rnti);
        (*row_cqi, *cqi_time) = (cqi, self.channel.downlink.measured(layout));
        *row_capacity = capacity as f32;
        self.link_report(now, Direction::Downlink, only, &mut link.downlink);
        self.link_report(now, Direction::Uplink, only, &mut link.uplink);
    }

    #[inline(always)]
    fn link_report(&self, now: Time, direction: Direction, only: Option<u64>, row: &mut LinkReport) {
        let counters = self.harq[direction].counters();
        let LinkReport {
            grant,
            queue,
            head_of_line,
            blocks,
            retransmissions,
            lost,
            scheduled_bits,
            scheduled_prb_symbols,
        } = row;
        *queue = match direction {
            Direction::Downlink => self.rlc.to_be_sent(direction),
            Direction::Uplink => Bytes::new(self.access.known_backlog().into()),
        };
        *head_of_line =
            if queue.is_zero() { Span::ZERO } else { self.rlc.head_of_line_delay(now, direction) };
        *grant = match &self.latest[direction] {
            Some((at, grant)) if only.is_none_or(|only| *at == only) => Some(*grant),
            _ => None,
        };
        (*blocks, *retransmissions, *lost) = (counters.blocks, counters.retransmissions, counters.lost);
        *scheduled_bits = self.scheduled_bits[direction];
        *scheduled_prb_symbols = self.scheduled_prb_symbols[direction];
    }
}

/// A row that is not filled in yet.
const NOTHING: LinkReport = LinkReport {
    grant: None,
    queue: Bytes::ZERO,
    head_of_line: Span::ZERO,
    blocks: 0,
    retransmissions: 0,
    lost: 0,
    scheduled_bits: 0,
    scheduled_prb_symbols: 0,
};
const BLANK: UserReport = UserReport {
    user: 0,
    rnti: 0,
    cqi: Cqi::MIN,
    cqi_time: Time::ZERO,
    capacity: 0.0,
    link: Both { downlink: NOTHING, uplink: NOTHING },
};
