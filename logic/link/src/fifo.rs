//! The ring buffer of packets behind all queues.

use std::collections::VecDeque;

use ranpace_units::{Bytes, Time};

use crate::{Limit, Observer, Packet};

/// A packet with its queue's metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queued<P> {
    /// The packet.
    pub packet: P,
    /// When it joined the queue.
    pub enqueued: Time,
    /// Whether this queue set Congestion Experienced.
    pub marked: bool,
}

/// Packets in order of arrival, and their total bytes.
pub(crate) struct Fifo<P> {
    ring: VecDeque<Queued<P>>,
    bytes: Bytes,
}

impl<P: Packet> Fifo<P> {
    pub fn new() -> Self {
        Self { ring: VecDeque::new(), bytes: Bytes::ZERO }
    }

    #[inline]
    pub fn bytes(&self) -> Bytes {
        self.bytes
    }

    #[inline]
    pub fn packets(&self) -> usize {
        self.ring.len()
    }

    /// When the first packet joined; `None` if there is none.
    #[inline]
    pub fn oldest(&self) -> Option<Time> {
        self.ring.front().map(|queued| queued.enqueued)
    }

    /// Returns whether one more packet fits.
    #[inline]
    pub fn has_room(&self, limit: Limit, packet: &P) -> bool {
        limit.holds(self.bytes + packet.size(), self.ring.len() + 1)
    }

    /// Appends a packet and notifies the observer.
    #[inline]
    pub fn push(&mut self, now: Time, packet: P, marked: bool, observer: &mut impl Observer<P>) {
        self.bytes += packet.size();
        observer.on_enqueued(now, &packet, self.bytes);
        self.ring.push_back(Queued { packet, enqueued: now, marked });
    }

    #[inline]
    pub fn pop(&mut self) -> Option<Queued<P>> {
        let queued = self.ring.pop_front()?;
        self.bytes -= queued.packet.size();
        Some(queued)
    }
}
