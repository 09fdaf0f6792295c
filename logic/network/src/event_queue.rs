//! The event queue: events ordered by time and, at equal times, by insertion.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use ranpace_units::Time;

/// An event in the network or at its hosts.
#[derive(Clone, Copy, Debug)]
pub enum Event<E> {
    /// A link has work to do.
    Link(u32),
    /// A cell has work to do.
    Radio,
    /// A hint of radio information arrives.
    Feed,
    /// The scenario's change with this index takes place.
    Change(u32),
    /// The warm-up ends.
    Measure,
    /// A row of the series is due.
    Sample,
    /// An event of the hosts.
    Host(E),
}

/// The event queue. Events of one instant come in the order of insertion, so that runs are deterministic.
///
/// Links and other sources have separate heaps. Most events belong to a few links, and are nearly always among the next ones: in a
/// single heap each would climb past the deadlines of all flows, which are far ahead and rarely come.
#[derive(Debug)]
pub struct EventQueue<E> {
    links: BinaryHeap<Reverse<Entry<E>>>,
    others: BinaryHeap<Reverse<Entry<E>>>,
    entered: u64,
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self { links: BinaryHeap::new(), others: BinaryHeap::new(), entered: 0 }
    }
}

/// An entry: the event, its time and its insertion number.
#[derive(Clone, Copy, Debug)]
struct Entry<E> {
    at: Time,
    order: u64,
    event: Event<E>,
}

impl<E> Entry<E> {
    /// Key as one number, so that heaps compare without an unpredictable branch.
    #[inline]
    fn key(&self) -> u128 {
        u128::from(self.at.as_nanos()) << 64 | u128::from(self.order)
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
    #[inline]
    fn le(&self, other: &Self) -> bool {
        self.key() <= other.key()
    }
    #[inline]
    fn ge(&self, other: &Self) -> bool {
        self.key() >= other.key()
    }
    #[inline]
    fn lt(&self, other: &Self) -> bool {
        self.key() < other.key()
    }
    #[inline]
    fn gt(&self, other: &Self) -> bool {
        self.key() > other.key()
    }
}

impl<E> Ord for Entry<E> {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl<E: Copy> EventQueue<E> {
    /// Inserts an event; one at [`Time::MAX`] never comes.
    #[inline]
    pub fn enter(&mut self, at: Time, event: Event<E>) {
        if at < Time::MAX {
            self.entered += 1;
            let heap = if matches!(event, Event::Link(_) | Event::Radio) {
                &mut self.links
            } else {
                &mut self.others
            };
            heap.push(Reverse(Entry { at, order: self.entered, event }));
        }
    }

    /// When the next event is due, ignoring links for which `can_wait` returns true; [`Time::MAX`] if there is none.
    pub fn next_time_but(&self, can_wait: impl Fn(u32, Time) -> bool) -> Time {
        let others = self.others.peek().map_or(Time::MAX, |first| first.0.at);
        self.links.iter().fold(others, |next, Reverse(entry)| match entry.event {
            Event::Link(link) if can_wait(link, entry.at) => next,
            _ => next.min(entry.at),
        })
    }

    /// The next event, if it is due by `end`.
    #[inline]
    pub fn next(&mut self, end: Time) -> Option<(Time, Event<E>)> {
        let of_link = match (self.links.peek(), self.others.peek()) {
            (Some(Reverse(link)), Some(Reverse(other))) => link < other,
            (link, _) => link.is_some(),
        };
        let heap = if of_link { &mut self.links } else { &mut self.others };
        if heap.peek()?.0.at > end {
            return None;
        }
        heap.pop().map(|Reverse(entry)| (entry.at, entry.event))
    }
}

/// A deadline that moves, with at most one live entry in the event queue, so that postponing it costs nothing.
#[derive(Clone, Copy, Debug)]
pub struct Timer(Time);

impl Timer {
    /// Not set.
    pub const OFF: Self = Self(Time::MAX);

    /// When it fires; [`Time::MAX`] if it does not.
    pub const fn at(&self) -> Time {
        self.0
    }

    /// Sets the timer to `at`, if that is earlier.
    #[inline]
    pub fn set<E: Copy>(&mut self, at: Time, event: Event<E>, queue: &mut EventQueue<E>) {
        if at < self.0 {
            self.0 = at;
            queue.enter(at, event);
        }
    }

    /// Returns whether an event at `now` is the live one; if so, the timer is then off.
    #[inline]
    pub fn fires(&mut self, now: Time) -> bool {
        let live = self.0 == now;
        if live {
            self.0 = Time::MAX;
        }
        live
    }
}
