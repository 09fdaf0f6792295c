//! Who gets which report: subscriptions by users, cells, direction and period, and the datagrams for each.
//!
//! Subscriptions with the same filter share the averages and the encoded datagrams, so that a further subscriber costs its seal and
//! its transmission alone. Nothing is queued: what a carrier cannot send is lost, and the next report is newer.

use std::collections::BTreeMap;

use ranpace_phy::Direction;
use ranpace_units::{Span, Time};

use crate::subscription::SubscriptionId;
use crate::wire::{Encoder, Record};
use crate::{Averaging, Event, Publisher, SlotReport};

/// Which reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Numbers of users, ascending; `None` for all.
    pub users: Option<Vec<u32>>,
    /// Numbers of cells, ascending; `None` for all.
    pub cells: Option<Vec<u16>>,
    /// Direction of blocks, queues and retransmissions; grants are of both.
    pub direction: Direction,
    /// Interval between two reports; less than a TTI means every TTI.
    pub period: Span,
    /// Only changes are sent between two full reports.
    pub delta: bool,
}

/// A datagram for several subscriptions.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// The subscriptions.
    pub to: &'a [SubscriptionId],
    /// Direction of its blocks and queues.
    pub direction: Direction,
    /// The report, before it is sealed.
    pub bytes: &'a [u8],
}

/// All subscriptions of a feed.
#[derive(Debug, Default)]
pub struct FeedSubscribers {
    paces: Vec<Pace>,
    records: Vec<Record>,
    next: u64,
}

#[derive(Debug)]
struct Pace {
    period: Span,
    publisher: Publisher,
    groups: Vec<Group>,
}

#[derive(Debug)]
struct Group {
    filter: Filter,
    /// By cell; that of a cell without users of the filter is left out.
    encoders: BTreeMap<u16, Encoder>,
    members: Vec<SubscriptionId>,
    /// Expiry of each member.
    expires: Vec<Time>,
}

impl Filter {
    fn has_cell(&self, cell: u16) -> bool {
        self.cells.as_ref().is_none_or(|cells| cells.binary_search(&cell).is_ok())
    }
}

impl Group {
    fn keep(&mut self, mut keep: impl FnMut(SubscriptionId, Time) -> bool) {
        let kept: Vec<bool> =
            self.members.iter().zip(&self.expires).map(|(id, expires)| keep(*id, *expires)).collect();
        for place in (0..kept.len()).rev().filter(|place| !kept[*place]) {
            self.members.swap_remove(place);
            self.expires.swap_remove(place);
        }
    }
}

impl FeedSubscribers {
    /// Without subscriptions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a subscription until it expires. The next report of each cell is a full one for all of the same filter.
    pub fn subscribe(&mut self, filter: Filter, expires: Time) -> SubscriptionId {
        let id = SubscriptionId(self.next);
        self.next += 1;
        self.insert(id, filter, expires);
        id
    }

    fn insert(&mut self, id: SubscriptionId, filter: Filter, expires: Time) {
        let period = filter.period;
        let pace = match self.paces.iter().position(|pace| pace.period == period) {
            Some(known) => known,
            None => {
                let publisher = Publisher::new(period, Averaging::Smooth);
                self.paces.push(Pace { period, publisher, groups: Vec::new() });
                self.paces.len() - 1
            }
        };
        let groups = &mut self.paces[pace].groups;
        match groups.iter_mut().find(|group| group.filter == filter) {
            Some(group) => {
                group.encoders.values_mut().for_each(Encoder::request_full);
                group.members.push(id);
                group.expires.push(expires);
            }
            None => {
                let (members, expires) = (vec![id], vec![expires]);
                groups.push(Group { filter, encoders: BTreeMap::new(), members, expires });
            }
        }
    }

    /// Changes the expiry of a subscription; false if it does not exist.
    pub fn renew(&mut self, id: SubscriptionId, expires: Time) -> bool {
        for group in self.paces.iter_mut().flat_map(|pace| &mut pace.groups) {
            if let Some(place) = group.members.iter().position(|known| *known == id) {
                group.expires[place] = expires;
                return true;
            }
        }
        false
    }

    fn find(&self, id: SubscriptionId) -> Option<(Filter, Time)> {
        let groups = self.paces.iter().flat_map(|pace| &pace.groups);
        let mut found = groups.filter_map(|group| {
            let place = group.members.iter().position(|known| *known == id)?;
            Some((group.filter.clone(), group.expires[place]))
        });
        found.next()
    }

    /// Changes the users and cells of a subscription, for instance when one of its addresses attaches; false if they are the same,
    /// or it does not exist.
    pub fn set_scope(
        &mut self,
        id: SubscriptionId,
        users: Option<Vec<u32>>,
        cells: Option<Vec<u16>>,
    ) -> bool {
        let Some((filter, expires)) = self.find(id) else { return false };
        let is_other = filter.users != users || filter.cells != cells;
        is_other && self.replace(id, Filter { users, cells, ..filter }, expires)
    }

    /// Changes a subscription; false if it does not exist.
    pub fn replace(&mut self, id: SubscriptionId, filter: Filter, expires: Time) -> bool {
        let Some((before, _)) = self.find(id) else { return false };
        if before == filter {
            return self.renew(id, expires);
        }
        // The new group's pace has to exist before the old one may go, or its averages begin anew.
        self.groups_of(id, |group, place| {
            group.members.swap_remove(place);
            group.expires.swap_remove(place);
        });
        self.insert(id, filter, expires);
        self.drop_empty();
        true
    }

    fn groups_of(&mut self, id: SubscriptionId, mut change: impl FnMut(&mut Group, usize)) {
        for group in self.paces.iter_mut().flat_map(|pace| &mut pace.groups) {
            if let Some(place) = group.members.iter().position(|known| *known == id) {
                change(group, place);
            }
        }
    }

    /// Removes a subscription; false if it does not exist.
    pub fn cancel(&mut self, id: SubscriptionId) -> bool {
        let before = self.len();
        self.paces
            .iter_mut()
            .flat_map(|pace| &mut pace.groups)
            .for_each(|group| group.keep(|known, _| known != id));
        self.drop_empty();
        self.len() < before
    }

    fn drop_empty(&mut self) {
        self.paces.retain_mut(|pace| {
            pace.groups.retain(|group| !group.members.is_empty());
            !pace.groups.is_empty()
        });
    }

    /// Removes what has expired, and passes on its numbers.
    pub fn expire(&mut self, now: Time, tell: &mut dyn FnMut(SubscriptionId)) {
        let groups = || self.paces.iter().flat_map(|pace| &pace.groups);
        if groups().flat_map(|group| &group.expires).all(|expires| *expires > now) {
            return;
        }
        self.paces.iter_mut().flat_map(|pace| &mut pace.groups).for_each(|group| {
            group.keep(|id, expires| {
                if expires <= now {
                    tell(id);
                }
                expires > now
            });
        });
        self.drop_empty();
    }

    /// Whether a subscription has this period, and the number of different periods.
    pub fn periods(&self, period: Span) -> (bool, usize) {
        (self.paces.iter().any(|pace| pace.period == period), self.paces.len())
    }

    /// Number of subscriptions.
    pub fn len(&self) -> usize {
        self.paces.iter().flat_map(|pace| &pace.groups).map(|group| group.members.len()).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.paces.is_empty()
    }

    /// Has the next report to a subscription be a full one: it joins, or has lost something.
    pub fn request_full(&mut self, id: SubscriptionId) {
        self.groups_of(id, |group, _| group.encoders.values_mut().for_each(Encoder::request_full));
    }

    /// A slot has ended: passes on the datagrams that are due, of at most `bytes` each. A cell without users of a subscription's
    /// filter sends it nothing, once it has reported that they left.
    pub fn on_report(&mut self, report: &SlotReport<'_>, bytes: usize, send: &mut dyn FnMut(Outgoing<'_>)) {
        let cell = report.cell.cell;
        for Pace { publisher, groups, .. } in &mut self.paces {
            if !publisher.on_report(report) {
                continue;
            }
            for Group { filter, encoders, members, .. } in
                groups.iter_mut().filter(|group| group.filter.has_cell(cell))
            {
                let mut is_meant = |user: u32| match &filter.users {
                    Some(users) => users.binary_search(&user).is_ok(),
                    None => true,
                };
                let records = &mut self.records;
                let Some(of_cell) = publisher.report_of(cell, filter.direction, &mut is_meant, records)
                else {
                    continue;
                };
                let is_empty = records.is_empty() && filter.users.is_some();
                if is_empty && !encoders.contains_key(&cell) {
                    continue;
                }
                let encoder = encoders
                    .entry(cell)
                    .or_insert_with(|| Encoder::short(filter.delta).with_datagrams_of(bytes));
                let (to, direction) = (&members[..], filter.direction);
                encoder.encode(&of_cell, records, &mut |bytes| send(Outgoing { to, direction, bytes }));
                if is_empty {
                    encoders.remove(&cell);
                }
            }
            publisher.published(cell);
        }
    }

    /// Something happened to a user.
    pub fn on_event(&mut self, event: &Event) {
        self.paces.iter_mut().for_each(|pace| pace.publisher.on_event(event));
    }
}
