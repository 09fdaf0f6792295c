//! What waits for one subscriber.
//!
//! Notifications of the standard wait in order, each with a number, until they are delivered; when too many wait, the oldest are
//! dropped and counted. Records never wait: the newest replaces the one before, which is counted, too.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;

/// A notification that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its number, from 1.
    pub number: u64,
    /// JSON.
    pub body: Bytes,
}

/// What to deliver next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// A notification, which waits until [`Queue::delivered`] is called.
    Item(Item),
    /// Records of these cells are due.
    Records(BTreeSet<u16>),
}

/// Counters of a subscription.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// The number of the latest notification.
    pub number: u64,
    /// Notifications delivered.
    pub delivered: u64,
    /// Notifications and records that the subscriber missed: dropped, given up or replaced.
    pub missed: u64,
    /// Notifications that wait.
    pub waiting: usize,
}

#[derive(Debug, Default)]
struct Inner {
    items: VecDeque<Item>,
    due: BTreeSet<u16>,
    counts: Counts,
    closed: bool,
    /// Whether something has changed since it was last kept.
    dirty: bool,
}

/// The queue of one subscriber.
#[derive(Debug)]
pub struct Queue {
    inner: Mutex<Inner>,
    most: usize,
    wake: Notify,
}

impl Queue {
    /// An empty queue for `most` notifications; the next one has the number after `number`.
    pub fn new(most: usize, number: u64, missed: u64, items: impl IntoIterator<Item = Item>) -> Self {
        let counts = Counts { number, missed, ..Counts::default() };
        let inner = Inner { items: items.into_iter().collect(), counts, ..Inner::default() };
        Self { inner: Mutex::new(inner), most: most.max(1), wake: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a notification; returns whether one was dropped for it.
    pub fn push(&self, body: Bytes) -> bool {
        let mut inner = self.lock();
        if inner.closed {
            return false;
        }
        inner.counts.number += 1;
        let item = Item { number: inner.counts.number, body };
        let is_full = inner.items.len() >= self.most;
        if is_full {
            inner.items.pop_front();
            inner.counts.missed += 1;
        }
        inner.items.push_back(item);
        inner.dirty = true;
        drop(inner);
        self.wake.notify_one();
        is_full
    }

    /// Records of a cell are due; returns whether those before were replaced.
    pub fn due(&self, cell: u16) -> bool {
        let mut inner = self.lock();
        let is_late = !inner.due.insert(cell);
        if is_late {
            inner.counts.missed += 1;
        }
        drop(inner);
        self.wake.notify_one();
        is_late
    }

    /// What to deliver next; `None` if there is nothing.
    pub fn next(&self) -> Option<Next> {
        let mut inner = self.lock();
        if let Some(item) = inner.items.front() {
            return Some(Next::Item(item.clone()));
        }
        (!inner.due.is_empty()).then(|| Next::Records(std::mem::take(&mut inner.due)))
    }

    /// The first notification after one of this number, for a reader that acknowledges later.
    pub fn after(&self, number: u64) -> Option<Item> {
        self.lock().items.iter().find(|item| item.number > number).cloned()
    }

    /// The number of the next record: records are numbered, too.
    pub fn number_record(&self) -> u64 {
        let mut inner = self.lock();
        inner.counts.number += 1;
        inner.dirty = true;
        inner.counts.number
    }

    /// All notifications up to this number were delivered.
    pub fn delivered(&self, number: u64) {
        let mut inner = self.lock();
        let before = inner.items.len();
        inner.items.retain(|item| item.number > number);
        inner.counts.delivered += (before - inner.items.len()) as u64;
        inner.dirty = true;
    }

    /// Records were delivered.
    pub fn delivered_records(&self) {
        self.lock().counts.delivered += 1;
    }

    /// The notification with this number is given up.
    pub fn give_up(&self, number: u64) {
        let mut inner = self.lock();
        let before = inner.items.len();
        inner.items.retain(|item| item.number != number);
        inner.counts.missed += (before - inner.items.len()) as u64;
        inner.dirty = true;
    }

    /// Records could not be delivered.
    pub fn lost_records(&self) {
        self.lock().counts.missed += 1;
    }

    /// Counters.
    pub fn counts(&self) -> Counts {
        let inner = self.lock();
        Counts { waiting: inner.items.len(), ..inner.counts }
    }

    /// The subscription has ended: what waits may still be delivered, nothing is added.
    pub fn close(&self) {
        self.lock().closed = true;
        self.wake.notify_one();
    }

    /// Takes all that waits, for a queue that continues this one.
    pub fn take(&self) -> (Vec<Item>, Counts) {
        let mut inner = self.lock();
        (std::mem::take(&mut inner.items).into(), inner.counts)
    }

    /// Whether the subscription has ended.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Returns when something may have changed.
    pub async fn wait(&self) {
        self.wake.notified().await;
    }

    /// Lets whoever waits look again.
    pub fn wake(&self) {
        self.wake.notify_one();
    }

    /// What waits and the counters, if they have changed since the last call.
    pub fn changes(&self) -> Option<(Vec<Item>, Counts)> {
        let mut inner = self.lock();
        std::mem::take(&mut inner.dirty).then(|| (inner.items.iter().cloned().collect(), inner.counts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_dropped_and_counted() {
        let queue = Queue::new(2, 10, 0, []);
        let dropped: Vec<bool> = (0..3).map(|text| queue.push(Bytes::from(text.to_string()))).collect();
        assert_eq!(dropped, [false, false, true]);
        assert_eq!(queue.counts(), Counts { number: 13, delivered: 0, missed: 1, waiting: 2 });
        let Some(Next::Item(first)) = queue.next() else { panic!("nothing") };
        assert_eq!((first.number, &first.body[..]), (12, &b"1"[..]));
        // It waits until it is delivered.
        assert_eq!(queue.next(), Some(Next::Item(first.clone())));
        assert_eq!(queue.after(12).map(|item| item.number), Some(13));
        queue.delivered(12);
        queue.give_up(13);
        assert_eq!(queue.counts(), Counts { number: 13, delivered: 1, missed: 2, waiting: 0 });
        assert_eq!(queue.changes().map(|(items, _)| items.len()), Some(0));
        assert_eq!(queue.changes(), None);
        queue.close();
        assert!(!queue.push(Bytes::new()) && queue.next().is_none() && queue.is_closed());
    }

    #[test]
    fn records_are_replaced_by_newer_ones() {
        let queue = Queue::new(2, 0, 0, []);
        assert_eq!([queue.due(1), queue.due(2), queue.due(1)], [false, false, true]);
        assert_eq!(queue.next(), Some(Next::Records(BTreeSet::from([1, 2]))));
        assert_eq!(queue.next(), None);
        assert_eq!((queue.counts().missed, queue.number_record()), (1, 1));
    }
}
