//! Subscriptions to hints: by user, by cell, and with what period.
//!
//! [`Subscribers`] is the publishing side. It keeps a [`Publisher`] for each period that is subscribed to, so a thousand readers of one
//! period cost one average, and hands out hints slot by slot. Nothing is queued here: a reader slower than its period gets the newest
//! hint next time (a carrier that cannot send drops hints, and never queues them).

use ranpace_phy::Direction;
use ranpace_units::{Span, Time};

use crate::{Averaging, Event, Publisher, RadioHint, SlotReport};

/// Which users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HintScope {
    /// All users.
    All,
    /// Those in a cell.
    Cell(u16),
    /// One user, in whichever cell it is.
    User(u32),
}

/// A subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HintSubscription {
    /// Which users.
    pub whom: HintScope,
    /// Direction.
    pub direction: Direction,
    /// Bearer whose queue is reported; `None` for the queue of all bearers, in the uplink as known to the base station.
    pub bearer: Option<u8>,
    /// Interval between two reports; less than a TTI means every TTI.
    pub period: Span,
    /// Expiry; [`Time::MAX`] for never.
    pub expires: Time,
}

/// Identifies a subscription; it is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubscriptionId(pub u64);

/// All subscriptions.
#[derive(Debug, Default)]
pub struct Subscribers {
    paces: Vec<Pace>,
    next: u64,
}

#[derive(Debug)]
struct Pace {
    period: Span,
    publisher: Publisher,
    subscriptions: Vec<(SubscriptionId, HintSubscription)>,
}

impl Subscribers {
    /// Without subscriptions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a subscription. A period that nobody has subscribed to yet averages only measurements from now on.
    pub fn subscribe(&mut self, subscription: HintSubscription) -> SubscriptionId {
        let id = SubscriptionId(self.next);
        self.next += 1;
        let period = subscription.period;
        let pace = match self.paces.iter().position(|pace| pace.period == period) {
            Some(known) => known,
            None => {
                let publisher = Publisher::new(period, Averaging::Smooth);
                self.paces.push(Pace { period, publisher, subscriptions: Vec::new() });
                self.paces.len() - 1
            }
        };
        self.paces[pace].subscriptions.push((id, subscription));
        id
    }

    /// Changes the expiry of a subscription; false if it does not exist.
    pub fn renew(&mut self, id: SubscriptionId, expires: Time) -> bool {
        let mut all = self.paces.iter_mut().flat_map(|pace| &mut pace.subscriptions);
        all.find(|(known, _)| *known == id).map(|(_, subscription)| subscription.expires = expires).is_some()
    }

    /// Removes a subscription; false if it does not exist.
    pub fn cancel(&mut self, id: SubscriptionId) -> bool {
        let before = self.len();
        self.keep(|known, _| known != id);
        self.len() < before
    }

    fn keep(&mut self, mut keep: impl FnMut(SubscriptionId, &HintSubscription) -> bool) {
        self.paces.retain_mut(|pace| {
            pace.subscriptions.retain(|(id, subscription)| keep(*id, subscription));
            !pace.subscriptions.is_empty()
        });
    }

    /// Number of subscriptions.
    pub fn len(&self) -> usize {
        self.paces.iter().map(|pace| pace.subscriptions.len()).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.paces.is_empty()
    }

    /// A slot has ended: hands out the hints that are due. Expired subscriptions are removed.
    pub fn on_report(
        &mut self,
        report: &SlotReport<'_>,
        tell: &mut dyn FnMut(SubscriptionId, u32, &RadioHint),
    ) {
        let now = report.time;
        if self.paces.iter().flat_map(|pace| &pace.subscriptions).any(|(_, of)| of.expires <= now) {
            self.keep(|_, subscription| subscription.expires > now);
        }
        let cell = report.cell.cell;
        for Pace { publisher, subscriptions, .. } in &mut self.paces {
            if !publisher.on_report(report) {
                continue;
            }
            let users = publisher.users(cell);
            for (id, HintSubscription { whom, direction, bearer, .. }) in &*subscriptions {
                let mut tell_of = |user: u32| {
                    if let Some(hint) = publisher.hint(user, *direction, *bearer) {
                        tell(*id, user, &hint);
                    }
                };
                match whom {
                    HintScope::User(user) if users.contains(user) => tell_of(*user),
                    HintScope::User(_) => {}
                    HintScope::Cell(other) if *other != cell => {}
                    HintScope::Cell(_) | HintScope::All => users.iter().for_each(|user| tell_of(*user)),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CellInfo, LinkReport, UserReport};
    use ranpace_phy::{Both, Cqi, LteBandwidth};

    fn row(user: u32) -> UserReport {
        let link = LinkReport::default();
        let (cqi, cqi_time) = (Cqi::MAX, Time::ZERO);
        UserReport {
            user,
            rnti: 1,
            cqi,
            cqi_time,
            capacity: 1.0,
            link: Both { downlink: link, uplink: link },
        }
    }

    /// Plays slots 0 to `slots` - 1 of two cells, with users 0 and 1 in the first and 2 in the second: returns which reader got
    /// which hint, and when.
    fn play(subscribers: &mut Subscribers, slots: core::ops::Range<u64>) -> Vec<(u64, u64, u32)> {
        let mut told = Vec::new();
        let rows = [0, 1, 2].map(row);
        for slot in slots {
            for (number, users) in [(0, &rows[..2]), (1, &rows[2..])] {
                let report = SlotReport {
                    cell: &CellInfo::lte(number, LteBandwidth::Mhz5),
                    slot,
                    time: Time::ZERO + Span::from_millis(slot),
                    symbols: Both::of(|_| 14),
                    used_prbs: Both::default(),
                    active_users: Both::default(),
                    users,
                    bearers: &[],
                    full: true,
                };
                subscribers.on_report(&report, &mut |id, user, hint| {
                    assert_eq!(hint.measured_at, report.time);
                    told.push((id.0, slot, user));
                });
            }
        }
        told
    }

    fn of(whom: HintScope, period_ms: u64) -> HintSubscription {
        let (direction, period) = (Direction::Downlink, Span::from_millis(period_ms));
        HintSubscription { whom, direction, bearer: None, period, expires: Time::MAX }
    }

    #[test]
    fn each_is_told_of_whom_and_as_often_as_it_wants() {
        let mut subscribers = Subscribers::new();
        for (whom, period) in [
            (HintScope::All, 0),
            (HintScope::Cell(1), 1),
            (HintScope::User(1), 8),
            (HintScope::User(7), 8),
            (HintScope::Cell(9), 8),
        ] {
            subscribers.subscribe(of(whom, period));
        }
        let told = play(&mut subscribers, 0..17);
        let count = |id: u64| told.iter().filter(|(told, ..)| *told == id).count();
        assert_eq!([0, 1, 2, 3, 4].map(count), [3 * 17, 17, 3, 0, 0]);
        let slots: Vec<u64> = told.iter().filter(|(id, ..)| *id == 2).map(|(_, slot, _)| *slot).collect();
        assert_eq!(slots, [0, 8, 16]);
        assert!(told.iter().all(|(id, _, user)| *id != 1 || *user == 2));
    }

    #[test]
    fn subscriptions_end_when_they_expire_or_are_cancelled() {
        let mut subscribers = Subscribers::new();
        let until = |ms| Time::ZERO + Span::from_millis(ms);
        let short =
            subscribers.subscribe(HintSubscription { expires: until(3), ..of(HintScope::User(0), 1) });
        let renewed =
            subscribers.subscribe(HintSubscription { expires: until(3), ..of(HintScope::User(0), 1) });
        let cancelled = subscribers.subscribe(of(HintScope::User(0), 2));
        assert!(subscribers.renew(renewed, until(5)));
        assert!(subscribers.cancel(cancelled) && !subscribers.cancel(cancelled));
        let told = play(&mut subscribers, 0..10);
        let count = |id: SubscriptionId| told.iter().filter(|(told, ..)| *told == id.0).count();
        assert_eq!((count(short), count(renewed), count(cancelled)), (3, 5, 0));
        assert!(subscribers.is_empty() && !subscribers.renew(short, until(99)));
        assert_ne!(subscribers.subscribe(of(HintScope::All, 1)), short, "a name is not given again");
    }
}
