//! What waits for one subscriber.
//!
//! Notifications of the standard wait in order, each with a number, until they are delivered; when too many wait, the oldest are
//! dropped and counted. Records never wait: the newest replaces the one before, which is counted, too.
//!
//! All revisions of a subscription share one queue, so that a change of the subscription loses no notification and repeats no number.
//! One reader at a time delivers from it: a newer one ends the older.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
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

/// What a store lacks of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Nothing before this number waits any more.
    pub first: u64,
    /// Notifications that were added, by number.
    pub added: Vec<Item>,
    /// The number of the latest notification.
    pub number: u64,
    /// Notifications and records that were missed.
    pub missed: u64,
}

/// What a store has of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct KeptSoFar {
    first: u64,
    number: u64,
    missed: u64,
}

#[derive(Debug, Default)]
struct Inner {
    /// By number, ascending. They leave from the front only.
    items: VecDeque<Item>,
    due: BTreeSet<u16>,
    counts: Counts,
    closed: bool,
    kept: KeptSoFar,
}

impl Inner {
    fn so_far(&self) -> KeptSoFar {
        let Counts { number, missed, .. } = self.counts;
        KeptSoFar { first: self.items.front().map_or(number + 1, |item| item.number), number, missed }
    }
}

/// The queue of one subscriber.
#[derive(Debug)]
pub struct Queue {
    inner: Mutex<Inner>,
    most: usize,
    wake: Notify,
    /// Number of the latest reader.
    reader: AtomicU64,
}

impl Queue {
    /// A queue for `most` notifications in which these wait, by number, as a store has them; the next one has the number after `number`.
    pub fn new(most: usize, number: u64, missed: u64, items: impl IntoIterator<Item = Item>) -> Self {
        let counts = Counts { number, missed, ..Counts::default() };
        let mut inner = Inner { items: items.into_iter().collect(), counts, ..Inner::default() };
        inner.kept = inner.so_far();
        Self { inner: Mutex::new(inner), most: most.max(1), wake: Notify::new(), reader: AtomicU64::new(0) }
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
        // More than one only if the configuration allows fewer than before.
        while inner.items.len() >= self.most {
            inner.items.pop_front();
            inner.counts.missed += 1;
        }
        inner.items.push_back(item);
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
        inner.counts.number
    }

    /// All notifications up to this number were delivered.
    pub fn delivered(&self, number: u64) {
        let mut inner = self.lock();
        let before = inner.items.len();
        inner.items.retain(|item| item.number > number);
        inner.counts.delivered += (before - inner.items.len()) as u64;
    }

    /// Records were delivered.
    pub fn delivered_records(&self) {
        self.lock().counts.delivered += 1;
    }

    /// All notifications up to this number are given up.
    pub fn give_up(&self, number: u64) {
        let mut inner = self.lock();
        let before = inner.items.len();
        inner.items.retain(|item| item.number > number);
        inner.counts.missed += (before - inner.items.len()) as u64;
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
        self.wake();
    }

    /// Discards what waits: nobody wants it any more.
    pub fn clear(&self) {
        let mut inner = self.lock();
        inner.items.clear();
        inner.due.clear();
    }

    /// Whether the subscription has ended.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Begins to read, and returns the number of this reader. Readers before are woken, and find in [`Self::is_read_by`] that they
    /// were replaced.
    pub fn begin_reading(&self) -> u64 {
        let reader = self.reader.fetch_add(1, Ordering::SeqCst) + 1;
        self.wake();
        reader
    }

    /// Whether this reader is still the latest.
    pub fn is_read_by(&self, reader: u64) -> bool {
        self.reader.load(Ordering::SeqCst) == reader
    }

    /// Returns when something may have changed.
    pub async fn wait(&self) {
        self.wake.notified().await;
    }

    /// Lets everybody who waits look again, and the next one who would wait.
    fn wake(&self) {
        self.wake.notify_waiters();
        self.wake.notify_one();
    }

    /// What a store lacks; `None` if it lacks nothing.
    pub fn change(&self) -> Option<Change> {
        let inner = self.lock();
        let now = inner.so_far();
        if now == inner.kept {
            return None;
        }
        let begin = inner.items.partition_point(|item| item.number <= inner.kept.number);
        let added = inner.items.range(begin..).cloned().collect();
        Some(Change { first: now.first, added, number: now.number, missed: now.missed })
    }

    /// A store has this change now.
    pub fn was_kept(&self, change: &Change) {
        let Change { first, number, missed, .. } = *change;
        self.lock().kept = KeptSoFar { first, number, missed };
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
        queue.close();
        assert!(!queue.push(Bytes::new()) && queue.next().is_none() && queue.is_closed());
    }

    #[test]
    fn a_store_is_told_what_it_lacks_until_it_has_it() {
        let queue = Queue::new(3, 0, 0, []);
        assert_eq!(queue.change(), None);
        for text in ["a", "b"] {
            queue.push(Bytes::from(text));
        }
        let numbers = |change: &Change| change.added.iter().map(|item| item.number).collect::<Vec<_>>();
        let first = queue.change().unwrap();
        assert_eq!((first.first, numbers(&first), first.number), (1, vec![1, 2], 2));
        // The store failed: it is told again, with what came since.
        queue.push(Bytes::from("c"));
        queue.delivered(1);
        let second = queue.change().unwrap();
        assert_eq!((second.first, numbers(&second), second.number), (2, vec![2, 3], 3));
        queue.was_kept(&second);
        assert_eq!(queue.change(), None);
        // What was delivered before it was kept is never kept.
        queue.push(Bytes::from("d"));
        queue.delivered(4);
        let third = queue.change().unwrap();
        assert_eq!((third.first, numbers(&third), third.number), (5, vec![], 4));
    }

    #[test]
    fn a_newer_reader_replaces_the_older() {
        let queue = Queue::new(1, 0, 0, []);
        let older = queue.begin_reading();
        assert!(queue.is_read_by(older));
        let newer = queue.begin_reading();
        assert!(!queue.is_read_by(older) && queue.is_read_by(newer));
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
