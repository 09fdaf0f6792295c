//! Drop-tail: first in, first out; a packet that does not fit is dropped.
//!
//! With a threshold it also marks ECN-capable packets that find more than that waiting: the instantaneous
//! marking that RFC 8257 section 3.1 requires of switches for DCTCP.

use ranpace_units::{Bytes, Ecn, Time};

use crate::fifo::Fifo;
use crate::{DropCause, Limit, Observer, Packet, Queued};

/// A drop-tail queue.
pub struct DropTail<P> {
    fifo: Fifo<P>,
    limit: Limit,
    ecn: Option<Bytes>,
}

impl<P: Packet> DropTail<P> {
    /// An empty queue with this limit, which marks packets that find more than `ecn` waiting.
    pub fn new(limit: Limit, ecn: Option<Bytes>) -> Self {
        Self { fifo: Fifo::new(), limit, ecn }
    }

    /// See [`crate::Queue::push`].
    #[inline]
    pub fn push(&mut self, now: Time, mut packet: P, observer: &mut impl Observer<P>) {
        if !self.fifo.has_room(self.limit, &packet) {
            observer.on_dropped(now, &packet, DropCause::Overflow);
            return;
        }
        let marked =
            self.ecn.is_some_and(|threshold| self.fifo.bytes() > threshold) && packet.ecn().is_capable();
        if marked {
            packet.set_ecn(Ecn::Ce);
        }
        self.fifo.push(now, packet, marked, observer);
    }

    /// See [`crate::Queue::pop`].
    #[inline]
    pub fn pop(&mut self, _now: Time, _observer: &mut impl Observer<P>) -> Option<Queued<P>> {
        self.fifo.pop()
    }

    /// Bytes waiting.
    #[inline]
    pub fn bytes(&self) -> Bytes {
        self.fifo.bytes()
    }

    /// Number of waiting packets.
    #[inline]
    pub fn packets(&self) -> usize {
        self.fifo.packets()
    }

    pub(crate) fn take(&mut self) -> Option<Queued<P>> {
        self.fifo.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Log, TestPacket};

    #[test]
    fn packets_beyond_the_limit_are_dropped() {
        for (limit, fit) in [
            (Limit::Packets(0), 0),
            (Limit::Packets(3), 3),
            (Limit::Bytes(Bytes::new(2999)), 1),
            (Limit::Bytes(Bytes::new(3000)), 2),
            (Limit::Unlimited, 10),
        ] {
            let (mut queue, mut log) = (DropTail::new(limit, None), Log::default());
            (0..10).for_each(|_| queue.push(Time::ZERO, TestPacket::new(0, 1500), &mut log));
            assert_eq!((queue.packets(), log.dropped.len()), (fit, 10 - fit), "{limit:?}");
            assert!(log.dropped.iter().all(|d| d.1 == DropCause::Overflow));
        }
    }

    #[test]
    fn packets_above_the_threshold_are_marked() {
        let mut queue = DropTail::new(Limit::Unlimited, Some(Bytes::new(3000)));
        let mut log = Log::default();
        for n in 0..5 {
            queue.push(
                Time::ZERO,
                if n == 3 { TestPacket::new(n, 1500) } else { TestPacket::ect(n, 1500) },
                &mut log,
            );
        }
        let marked: Vec<bool> =
            (0..5).map(|_| queue.pop(Time::ZERO, &mut log).unwrap().packet.ecn == Ecn::Ce).collect();
        assert_eq!(marked, [false, false, false, false, true], "3000 B are not above; 3 is not capable");
    }
}
