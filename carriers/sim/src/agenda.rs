//! What is to happen when: events in the order of time, and of entry where times are equal.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use ranpace_units::Time;

/// Something that is due.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// A link has something to do.
    Link(u32),
    /// A cell has.
    Radio,
    /// A deadline of a flow's sender or receiver.
    Sender(u32),
    Receiver(u32),
    /// A hint of radio information comes.
    Feed,
    /// A Lightweight PEP of this number has something to say, or was heard.
    Pep(u32),
    /// A proxy of this number decides.
    Proxy(u32),
    /// The modem at a flow's receiver measures.
    Modem(u32),
    /// A flow begins, ends, or its application writes.
    Start(u32),
    Stop(u32),
    Write(u32),
    /// The scenario's change of this index.
    Change(u32),
    /// The warm-up is over.
    Measure,
    /// A row of the series is due.
    Sample,
}

/// The agenda. Events of one instant come in the order in which they were entered: runs are deterministic.
///
/// Links and the rest wait in heaps of their own. Most events are those of a few links, and nearly always among the next
/// ones: in one heap, each would climb past the deadlines of all flows, which lie far ahead and seldom come.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    links: BinaryHeap<Reverse<Entry>>,
    others: BinaryHeap<Reverse<Entry>>,
    entered: u64,
}

/// What is due, when, and in which order of entry.
#[derive(Clone, Copy, Debug)]
struct Entry {
    at: Time,
    order: u64,
    event: Event,
}

impl Entry {
    /// One number, so that heaps compare without a branch that nobody could predict.
    #[inline]
    fn key(&self) -> u128 {
        u128::from(self.at.as_nanos()) << 64 | u128::from(self.order)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
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

impl Ord for Entry {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl Agenda {
    #[inline]
    pub fn enter(&mut self, at: Time, event: Event) {
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

    /// When the next event is due, [`Time::MAX`] if there is none; without the links for which `waits` says that they can.
    pub fn next_time_but(&self, waits: impl Fn(u32, Time) -> bool) -> Time {
        let others = self.others.peek().map_or(Time::MAX, |first| first.0.at);
        self.links.iter().fold(others, |next, Reverse(entry)| match entry.event {
            Event::Link(link) if waits(link, entry.at) => next,
            _ => next.min(entry.at),
        })
    }

    /// The next event, if it is due by `end`.
    #[inline]
    pub fn next(&mut self, end: Time) -> Option<(Time, Event)> {
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

    /// Flows whose senders' deadlines are among the next, as far as a glance at the heap shows.
    pub fn soon(&self) -> impl Iterator<Item = u32> {
        self.others.as_slice().iter().take(7).filter_map(|Reverse(entry)| match entry.event {
            Event::Sender(flow) => Some(flow),
            _ => None,
        })
    }
}

/// A moving deadline with at most one live entry in the agenda: postponing costs nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alarm(Time);

impl Alarm {
    pub const OFF: Self = Self(Time::MAX);

    /// When it rings; [`Time::MAX`] if it does not.
    pub const fn at(&self) -> Time {
        self.0
    }

    /// Sees to it that the event comes no later than `at`.
    #[inline]
    pub fn set(&mut self, at: Time, event: Event, agenda: &mut Agenda) {
        if at < self.0 {
            self.0 = at;
            agenda.enter(at, event);
        }
    }

    /// Whether an event that came at `now` is the live one; it then rings no more.
    #[inline]
    pub fn rings(&mut self, now: Time) -> bool {
        let live = self.0 == now;
        if live {
            self.0 = Time::MAX;
        }
        live
    }
}
