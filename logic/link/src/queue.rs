//! A queue of any kind, dispatched statically.
//!
//! To add one, write a file beside `codel.rs`, give it a variant here and in `config.rs`, and declare its keys in
//! `logic/scenario/src/listing/queues.rs`, where `logic/scenario/src/link.rs` reads them.

use ranpace_units::{Bytes, Span, Time};

use crate::codel::ControlLaw;
use crate::dual_pi2::DualPi2Law;
use crate::{Abc, CoDel, DropTail, DualPi2, FqCoDel, L4Span, Observer, Packet, Pie, QueueConfig, Queued};

/// A queue of packets; the times passed to it must not decrease. It notifies an [`Observer`] of packets that join and
/// of packets that it drops; the caller that pops packets knows of their departure.
pub enum Queue<P> {
    /// First in, first out, with a limit.
    DropTail(DropTail<P>),
    /// RFC 8289.
    CoDel(CoDel<P>),
    /// RFC 8290.
    FqCoDel(FqCoDel<P>),
    /// RFC 8033.
    Pie(Pie<P>),
    /// RFC 9332.
    DualPi2(DualPi2<P>),
    /// L4Span's marks.
    L4Span(L4Span<P>),
    /// ABC's router.
    Abc(Abc<P>),
}

/// Calls the same method of any queue.
macro_rules! each {
    ($queue:expr, $name:ident => $call:expr) => {
        match $queue {
            Queue::DropTail($name) => $call,
            Queue::CoDel($name) => $call,
            Queue::FqCoDel($name) => $call,
            Queue::Pie($name) => $call,
            Queue::DualPi2($name) => $call,
            Queue::L4Span($name) => $call,
            Queue::Abc($name) => $call,
        }
    };
}

impl<P: Packet> Queue<P> {
    /// An empty queue. `seed` is for random drops and marks and for FQ-CoDel's hash.
    pub fn new(config: &QueueConfig, seed: u64) -> Self {
        match *config {
            QueueConfig::DropTail { limit, ecn } => Self::DropTail(DropTail::new(limit, ecn)),
            QueueConfig::CoDel { limit, target, interval, ecn, ce_threshold } => {
                Self::CoDel(CoDel::new(limit, ControlLaw { target, interval, ecn, ce_threshold }))
            }
            QueueConfig::FqCoDel { limit, target, interval, quantum, flows, ecn, ce_threshold } => {
                let law = ControlLaw { target, interval, ecn, ce_threshold };
                Self::FqCoDel(FqCoDel::new(limit, law, quantum, flows, seed))
            }
            QueueConfig::Pie { limit, target, update, max_burst, ecn } => {
                Self::Pie(Pie::new(limit, target, update, max_burst, ecn, seed))
            }
            QueueConfig::DualPi2 { limit, target, update, step } => {
                Self::DualPi2(DualPi2::new(limit, DualPi2Law { target, update, step }, seed))
            }
            QueueConfig::L4Span { limit, target } => Self::L4Span(L4Span::new(limit, target, seed)),
            QueueConfig::Abc { limit, delay, form } => Self::Abc(Abc::new(limit, delay, form)),
        }
    }

    /// Adds a packet, or drops it (or, in FQ-CoDel, may drop others).
    #[inline]
    pub fn push(&mut self, now: Time, packet: P, observer: &mut impl Observer<P>) {
        each!(self, queue => queue.push(now, packet, observer));
    }

    /// The next packet. `None` if the queue is empty, perhaps because the algorithm just dropped the rest.
    #[inline]
    pub fn pop(&mut self, now: Time, observer: &mut impl Observer<P>) -> Option<Queued<P>> {
        each!(self, queue => queue.pop(now, observer))
    }

    /// Tells a queue that goes by it the link's capacity between two instants, in bytes, before packets leave at `now`.
    #[inline]
    pub(crate) fn on_capacity(&mut self, now: Time, between: impl Fn(Time, Time) -> Bytes) {
        if let Self::Abc(queue) = self {
            queue.on_capacity(now, between);
        }
    }

    /// Whether [`Self::on_slot`] makes a difference.
    #[inline]
    pub fn wants_slots(&self) -> bool {
        matches!(self, Self::Abc(_))
    }

    /// Tells a queue that goes by the capacity of its bearer of a slot of this length that served it: the slot could have carried
    /// `egress`. `is_idle` says that it left nothing to be sent, here or further on.
    #[inline]
    pub fn on_slot(&mut self, now: Time, length: Span, egress: Bytes, is_idle: bool) {
        if let Self::Abc(queue) = self {
            queue.on_slot(now, length, egress, is_idle);
        }
    }

    /// The bearer's capacity is no longer known: it is in another cell now.
    pub fn forget_slots(&mut self) {
        if let Self::Abc(queue) = self {
            queue.forget_slots();
        }
    }

    /// Bytes waiting.
    #[inline]
    pub fn bytes(&self) -> Bytes {
        each!(self, queue => queue.bytes())
    }

    /// Number of waiting packets.
    #[inline]
    pub fn packets(&self) -> usize {
        each!(self, queue => queue.packets())
    }

    /// Takes out a packet without running the queue's algorithm, to end a run.
    pub fn take(&mut self) -> Option<Queued<P>> {
        each!(self, queue => queue.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limit;
    use crate::testing::{Log, TestPacket, every_queue};
    use proptest::prelude::*;
    use ranpace_units::Ecn;

    proptest! {
        /// Every packet has left, was dropped, or still waits, whatever the queue.
        #[test]
        fn no_packet_is_unaccounted(
            kind in 0..every_queue(Limit::Unlimited).len(),
            limit in prop_oneof![
                Just(Limit::Unlimited),
                (0..20_000u64).prop_map(|b| Limit::Bytes(Bytes::new(b))),
                (0..30u32).prop_map(Limit::Packets),
            ],
            steps in prop::collection::vec((0..20_000_000u64, prop::option::weighted(0.6, (40..1500u64, 0..5u32))), 0..400),
        ) {
            let mut queue = Queue::new(&every_queue(limit)[kind], 5);
            let (mut log, mut now) = (Log::default(), Time::ZERO);
            let (mut offered, mut left) = ((Bytes::ZERO, 0), (Bytes::ZERO, 0));
            for (wait, step) in steps {
                now += ranpace_units::Span::from_nanos(wait);
                match step {
                    Some((size, flow)) => {
                        let packet = TestPacket { ecn: Ecn::from_bits(flow as u8), ..TestPacket::new(flow, size) };
                        offered = (offered.0 + packet.size(), offered.1 + 1);
                        queue.push(now, packet, &mut log);
                    }
                    None => if let Some(queued) = queue.pop(now, &mut log) {
                        prop_assert!(queued.enqueued <= now);
                        prop_assert!(!queued.marked || queued.packet.ecn == Ecn::Ce);
                        prop_assert_eq!(queued.packet.ecn.is_capable(), !queued.packet.flow.is_multiple_of(4));
                        left = (left.0 + queued.packet.size(), left.1 + 1);
                    }
                }
                prop_assert_eq!(offered.0, left.0 + log.dropped_bytes() + queue.bytes());
                prop_assert_eq!(offered.1, left.1 + log.dropped.len() + queue.packets());
                prop_assert!(limit.holds(queue.bytes(), queue.packets()));
            }
            let rest = std::iter::from_fn(|| queue.take()).count();
            prop_assert_eq!(offered.1, left.1 + log.dropped.len() + rest);
            prop_assert_eq!((queue.bytes(), queue.packets()), (Bytes::ZERO, 0));
        }
    }
}
