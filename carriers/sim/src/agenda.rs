//! What is to happen when: a heap of events in the order of time, and of entry where times are equal.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ranpace_units::Time;

/// Something that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// A link has something to do.
    Link(u32),
    /// A deadline of a flow's sender or receiver.
    Sender(u32),
    Receiver(u32),
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
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    heap: BinaryHeap<Reverse<(Time, u64, Event)>>,
    entered: u64,
}

impl Agenda {
    #[inline]
    pub fn enter(&mut self, at: Time, event: Event) {
        if at < Time::MAX {
            self.entered += 1;
            self.heap.push(Reverse((at, self.entered, event)));
        }
    }

    #[inline]
    pub fn next(&mut self) -> Option<(Time, Event)> {
        self.heap.pop().map(|Reverse((at, _, event))| (at, event))
    }

    /// Time of the next event; [`Time::MAX`] if there is none.
    #[inline]
    pub fn peek(&self) -> Time {
        self.heap.peek().map_or(Time::MAX, |Reverse((at, ..))| *at)
    }
}

/// A moving deadline with at most one live entry in the agenda: postponing costs nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alarm(Time);

impl Alarm {
    pub const OFF: Self = Self(Time::MAX);

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
