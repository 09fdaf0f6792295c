//! The packets of a channel as one stream of bytes. A packet leaves the buffer when its first byte is sent, and is held until it is
//! delivered or dropped. A PDU is a range of the stream, whatever packets it covers.

use std::collections::VecDeque;

use ranpace_link::{self as link, Limit, Packet, Queue, QueueConfig};
use ranpace_units::{Bytes, Span, Time};

use super::config::PDCP_HEADER;
use super::{Config, Counters, DropCause, Format, Mode, Observer};
use crate::above_rlc::{Entered, Occupancy, Stages};

/// Rings are shrunk to this capacity when they are empty.
const KEPT: usize = 32;

/// The latest expiry of a timer, since [`Time::MAX`] stands for timers that do not run.
pub(super) const LATEST: Time = Time::from_nanos(u64::MAX - 1);

struct Sdu<P> {
    /// `None` once it is dropped; its remaining bytes are still sent, in vain.
    packet: Option<P>,
    arrived: Time,
    start: u64,
    end: u64,
}

/// A range of the stream for a PDU of new data.
pub(super) struct PduRange {
    pub start: u64,
    pub len: u32,
    /// Including all headers.
    pub size: u32,
}

pub(super) struct Stream<P> {
    buffer: Queue<P>,
    /// The stages before the buffer, which then has no limit of its own, and what is known of the packets that came through them.
    above: Option<Box<Above<P>>>,
    /// Arrival times of the packets in the buffer, which the buffer does not expose.
    arrivals: VecDeque<Time>,
    discard: Option<Span>,
    /// Packets of which at least one byte was sent.
    sdus: VecDeque<Sdu<P>>,
    /// The first byte that was never sent.
    next: u64,
    /// End of the last packet in `sdus`.
    end: u64,
    /// Bytes of the packets in `sdus` that are not dropped.
    held: Bytes,
    format: Format,
    mode: Mode,
    pub counters: Counters,
}

/// The stages above RLC.
struct Above<P> {
    stages: Stages<P>,
    /// Times at which the packets in the buffer came to the first stage.
    entered: VecDeque<Time>,
    /// Bytes of new data that had been sent when the last slot ended.
    sent: Bytes,
}

/// Forwards events inside the buffer.
struct UserObserver<'a, O> {
    observer: &'a mut O,
    counters: &'a mut Counters,
    /// Bytes that wait elsewhere in the bearer.
    elsewhere: Bytes,
}

impl<P: Packet, O: Observer<P>> link::Observer<P> for UserObserver<'_, O> {
    fn on_enqueued(&mut self, now: Time, packet: &P, queued: Bytes) {
        self.observer.on_enqueued(now, packet, queued + self.elsewhere);
    }
    fn on_dropped(&mut self, now: Time, packet: &P, cause: link::DropCause) {
        let cause = if cause == link::DropCause::Aqm { DropCause::Aqm } else { DropCause::Overflow };
        self.counters.on_dropped(cause, packet.size());
        self.observer.on_dropped(now, packet, cause);
    }
}

impl<P: Packet> Stream<P> {
    pub fn new(config: &Config, seed: u64) -> Self {
        Self {
            buffer: match config.above {
                Some(_) => Queue::new(&QueueConfig::drop_tail(Limit::Unlimited), seed),
                None => Queue::new(&config.buffer, seed),
            },
            above: config.above.map(|above| {
                let stages = Stages::new(above, &config.buffer, seed);
                Box::new(Above { stages, entered: VecDeque::new(), sent: Bytes::ZERO })
            }),
            arrivals: VecDeque::new(),
            discard: config.discard,
            sdus: VecDeque::new(),
            next: 0,
            end: 0,
            held: Bytes::ZERO,
            format: config.format,
            mode: config.mode,
            counters: Counters::default(),
        }
    }

    pub fn push(&mut self, now: Time, packet: P, observer: &mut impl Observer<P>) {
        self.counters.offered.add(packet.size());
        if self.above.is_some() {
            self.refill(now, observer);
        }
        if let Some(above) = &mut self.above {
            let elsewhere = self.buffer.bytes();
            let observer = &mut UserObserver { observer, counters: &mut self.counters, elsewhere };
            return above.stages.push(now, packet, observer);
        }
        let before = self.buffer.packets();
        let elsewhere = Bytes::ZERO;
        self.buffer.push(
            now,
            packet,
            &mut UserObserver { observer, counters: &mut self.counters, elsewhere },
        );
        if self.buffer.packets() > before {
            self.arrivals.push_back(now);
        }
        self.forget_arrivals();
    }

    /// Whether the bearer has stages above RLC.
    pub fn is_staged(&self) -> bool {
        self.above.is_some()
    }

    /// Bytes that wait above RLC.
    pub fn waiting_above(&self) -> Bytes {
        self.above.as_ref().map_or(Bytes::ZERO, |above| above.stages.bytes())
    }

    /// Takes from the stages above what they pass on by `now`.
    pub fn refill(&mut self, now: Time, observer: &mut impl Observer<P>) {
        let rlc = self.occupancy();
        let Self { buffer, above, arrivals, counters, .. } = self;
        let Some(above) = above else { return };
        let Above { stages, entered, .. } = &mut **above;
        let elsewhere = buffer.bytes();
        let observer = &mut UserObserver { observer, counters, elsewhere };
        stages.advance(now, rlc, observer, &mut |at, packet: Entered<P>| {
            entered.push_back(packet.at);
            arrivals.push_back(at);
            buffer.push(at, packet.packet, &mut ()); // without a limit nothing is dropped
        });
    }

    /// Whether [`Self::on_slot`] makes a difference.
    #[inline]
    pub fn wants_slots(&self) -> bool {
        self.is_staged() || self.buffer.wants_slots()
    }

    /// Tells the stages above, and a buffer that goes by the capacity, of a slot that carried data of this channel, or could have
    /// carried `egress`.
    pub fn on_slot(&mut self, now: Time, slot: Span, egress: Bytes) {
        let rest = self.occupancy();
        let sent = self.counters.sent.bytes;
        self.buffer.on_slot(now, slot, egress, rest.bytes == 0);
        let Some(above) = &mut self.above else { return };
        let taken = sent - core::mem::replace(&mut above.sent, sent);
        above.stages.on_slot(now, slot, egress.get(), taken.get(), rest);
    }

    /// What RLC holds of new data.
    fn occupancy(&self) -> Occupancy {
        let begun = u64::from(self.next != self.end);
        Occupancy { bytes: self.unsent().get(), packets: self.buffer.packets() as u64 + begun }
    }

    #[inline]
    fn forget_arrivals(&mut self) {
        if let Some(above) = &mut self.above {
            while above.entered.len() > self.buffer.packets() {
                above.entered.pop_front();
            }
        }
        while self.arrivals.len() > self.buffer.packets() {
            self.arrivals.pop_front();
        }
        shrink(&mut self.arrivals);
    }

    /// Takes the next packet out of the buffer; returns whether there was one.
    fn pull(&mut self, now: Time, observer: &mut impl Observer<P>) -> bool {
        let entered = self.above.as_ref().and_then(|above| above.entered.front().copied());
        let elsewhere = Bytes::ZERO;
        let queued =
            self.buffer.pop(now, &mut UserObserver { observer, counters: &mut self.counters, elsewhere });
        self.forget_arrivals();
        let Some(queued) = queued else { return false };
        let size = queued.packet.size();
        self.held += size;
        let start = self.end;
        self.end += u64::from(u32::try_from(size.get()).unwrap_or(u32::MAX)) + u64::from(PDCP_HEADER);
        let (packet, arrived) = (Some(queued.packet), entered.unwrap_or(queued.enqueued));
        self.sdus.push_back(Sdu { packet, arrived, start, end: self.end });
        true
    }

    /// The packet with the next new byte to be sent, if it has already left the buffer.
    #[inline]
    fn current(&self) -> Option<&Sdu<P>> {
        if self.next == self.end {
            return None;
        }
        // It is the last one, except after a restart.
        let last = self.sdus.back()?;
        if last.start <= self.next { Some(last) } else { self.sdus.get(self.begun()) }
    }

    /// Number of held packets that were sent to their last byte.
    fn begun(&self) -> usize {
        self.sdus.partition_point(|sdu| sdu.end <= self.next)
    }

    /// Takes new data for a PDU of at most `grant` bytes, headers included.
    pub fn cut(&mut self, now: Time, grant: u32, observer: &mut impl Observer<P>) -> Option<PduRange> {
        let (start, mut parts, mut size) = (self.next, 0, 0u32);
        loop {
            let inside = self.current().is_some_and(|sdu| sdu.start < self.next);
            let used = size + self.format.new_part(self.mode, parts, inside, grant);
            let room = grant.saturating_sub(used);
            if room == 0 || (self.next == self.end && !self.pull(now, observer)) {
                break;
            }
            let part_end = self.current().map_or(self.next, |sdu| sdu.end);
            let take = (part_end - self.next).min(room.into()) as u32; // at most `room`
            self.next += u64::from(take);
            (size, parts) = (used + take, parts + 1);
        }
        let len = (self.next - start) as u32; // at most `grant`
        (len > 0).then(|| {
            self.counters.sent.add(Bytes::new(len.into()));
            PduRange { start, len, size }
        })
    }

    /// Delivers packets up to this position, where everything was received in order or is known to be lost.
    #[inline]
    pub fn deliver_up_to(&mut self, now: Time, position: u64, observer: &mut impl Observer<P>) {
        while self.sdus.front().is_some_and(|sdu| sdu.end <= position) {
            let Some(sdu) = self.sdus.pop_front() else { break };
            if let Some(packet) = sdu.packet {
                let size = packet.size();
                self.held -= size;
                self.counters.delivered.add(size);
                observer.on_waited(now, &packet, now - sdu.arrived);
                observer.on_delivered(now, packet);
            }
        }
        shrink(&mut self.sdus);
    }

    /// Drops packets with a byte in this range of the stream.
    pub fn drop_range(
        &mut self,
        now: Time,
        start: u64,
        end: u64,
        cause: DropCause,
        observer: &mut impl Observer<P>,
    ) {
        let first = self.sdus.partition_point(|sdu| sdu.end <= start);
        for sdu in self.sdus.range_mut(first..).take_while(|sdu| sdu.start < end) {
            if let Some(packet) = sdu.packet.take() {
                let size = packet.size();
                self.held -= size;
                self.counters.on_dropped(cause, size);
                observer.on_dropped(now, &packet, cause);
            }
        }
    }

    /// Number of packets that this range of the stream touches; delivered ones are no longer counted.
    pub fn parts_in(&self, start: u64, end: u64) -> u32 {
        let first = self.sdus.partition_point(|sdu| sdu.end <= start);
        let count = self.sdus.range(first..).take_while(|sdu| sdu.start < end).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// End of the packet with the byte at `position`; for delivered packets, the next byte.
    pub fn part_end(&self, position: u64) -> u64 {
        let index = self.sdus.partition_point(|sdu| sdu.end <= position);
        let sdu = self.sdus.get(index).filter(|sdu| sdu.start <= position);
        sdu.map_or(position + 1, |sdu| sdu.end)
    }

    /// Returns whether there is no new data to send.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.next == self.end && self.buffer.packets() == 0
    }

    /// New bytes to be sent, with PDCP headers but without RLC and MAC headers.
    pub fn unsent(&self) -> Bytes {
        let headers = self.buffer.packets() as u64 * u64::from(PDCP_HEADER);
        self.buffer.bytes() + Bytes::new(headers + (self.end - self.next))
    }

    /// A grant that suffices for all new data.
    pub fn wanted(&self) -> Bytes {
        if self.is_empty() {
            return Bytes::ZERO;
        }
        let parts = (self.buffer.packets() + self.sdus.len() - self.begun()) as u64;
        self.unsent() + Bytes::new(self.format.upper_bound(self.mode, parts))
    }

    /// Bytes of packets in the buffer, of which nothing was sent.
    pub fn buffered(&self) -> Bytes {
        self.buffer.bytes()
    }

    /// Bytes of packets that are neither delivered nor dropped.
    pub fn waiting(&self) -> Bytes {
        self.buffer.bytes() + self.held + self.waiting_above()
    }

    /// Arrival time of the packet with the next new byte to be sent.
    pub fn head_arrived(&self) -> Option<Time> {
        self.current().map(|sdu| sdu.arrived).or_else(|| self.arrivals.front().copied())
    }

    /// When the discard timer of the packet at the head expires.
    #[inline]
    pub fn discard_deadline(&self) -> Time {
        match (self.discard, self.arrivals.front()) {
            (Some(discard), Some(&arrived)) => arrived + discard,
            _ => Time::MAX,
        }
    }

    /// Drops packets whose discard timer expired.
    pub fn discard(&mut self, now: Time, observer: &mut impl Observer<P>) {
        while self.discard_deadline() <= now {
            let at = self.discard_deadline();
            let Some(queued) = self.buffer.take() else { break };
            self.forget_arrivals();
            self.counters.on_dropped(DropCause::Discard, queued.packet.size());
            observer.on_dropped(at, &queued.packet, DropCause::Discard);
        }
    }

    /// Drops the packets in the buffer.
    pub fn empty(&mut self, now: Time, observer: &mut impl Observer<P>) {
        let buffered = core::iter::from_fn(|| self.buffer.take().map(|queued| queued.packet));
        let above = core::iter::from_fn(|| self.above.as_mut()?.stages.take());
        for packet in buffered.chain(above) {
            self.counters.on_dropped(DropCause::Reset, packet.size());
            observer.on_dropped(now, &packet, DropCause::Reset);
        }
        self.forget_arrivals();
    }

    /// Restarts with the oldest undelivered packet if `keep` is set; otherwise drops packets of which a byte was sent.
    /// The stream continues at a position that no PDU has used yet.
    pub fn restart(&mut self, now: Time, keep: bool, observer: &mut impl Observer<P>) {
        if let Some(above) = &mut self.above {
            above.stages.restart(now);
        }
        self.buffer.forget_slots();
        if !keep {
            self.drop_range(now, 0, u64::MAX, DropCause::Reset, observer);
        }
        self.sdus.retain(|sdu| sdu.packet.is_some());
        self.next = self.end;
        for sdu in &mut self.sdus {
            let len = sdu.end - sdu.start;
            (sdu.start, sdu.end) = (self.end, self.end + len);
            self.end += len;
        }
        shrink(&mut self.sdus);
    }
}

/// Releases the memory of an empty ring that was long.
#[inline]
pub(super) fn shrink<T>(ring: &mut VecDeque<T>) {
    if ring.is_empty() && ring.capacity() > 4 * KEPT {
        ring.shrink_to(KEPT);
    }
}
