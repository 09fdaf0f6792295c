//! Unacknowledged mode: lost PDUs stay lost, and PDUs behind them wait for t-Reordering.
//!
//! Source: TS 36.322 clauses 5.1.2.1 (transmitter) and 5.1.2.2 (receiver). State of the receiver: VR(UR), the first PDU
//! that is still awaited; VR(UX), the PDU after the one that started the timer; VR(UH), the PDU after the highest
//! received. A packet with a byte in a lost PDU is reported as dropped as soon as the PDU is lost (the receiver learns of it,
//! and acts, later).

use std::collections::VecDeque;

use ranpace_link::Packet;
use ranpace_units::{Bytes, Span, Time};

use super::stream::{LATEST, Stream, shrink};
use super::{Config, Counters, DropCause, Kind, Observer, Pdu, room};

/// UM_Window_Size with 10-bit numbers; TS 36.322 clause 7.2.
const WINDOW: u64 = 512;
/// Number of distinct sequence numbers; an older PDU could not be told from a new one.
const NUMBERS: usize = 1024;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    InAir,
    Received,
    Lost,
}

struct Record {
    start: u64,
    len: u32,
    state: State,
}

/// One direction of a bearer in unacknowledged mode.
pub struct Um<P> {
    stream: Stream<P>,
    /// PDUs from number `base` on.
    records: VecDeque<Record>,
    /// At least `ur`; PDUs in between were lost.
    base: u64,
    /// VR(UR).
    ur: u64,
    /// VR(UX).
    ux: u64,
    /// VR(UH).
    uh: u64,
    /// When t-Reordering expires; [`Time::MAX`] while it does not run.
    timer: Time,
    /// The latest time seen by the receiver; a timer that is handled late does not act before it.
    latest: Time,
    reordering: Span,
}

impl<P: Packet> Um<P> {
    /// An idle channel. `seed` is for queue disciplines that draw random numbers.
    pub fn new(config: &Config, seed: u64) -> Self {
        Self {
            stream: Stream::new(config, seed),
            records: VecDeque::new(),
            base: 0,
            ur: 0,
            ux: 0,
            uh: 0,
            timer: Time::MAX,
            latest: Time::ZERO,
            reordering: config.timers.reordering,
        }
    }

    /// Transmitter: adds a packet to the buffer, or drops it.
    pub fn enqueue(&mut self, now: Time, packet: P, observer: &mut impl Observer<P>) {
        self.stream.push(now, packet, observer);
    }

    /// Transmitter: builds a PDU for `grant` bytes of a transport block; `None` if nothing waits or fits.
    pub fn build(&mut self, now: Time, grant: Bytes, observer: &mut impl Observer<P>) -> Option<Pdu> {
        let cut = self.stream.cut(now, room(grant), observer)?;
        if self.records.len() >= NUMBERS {
            self.lose(now, self.base, observer);
        }
        let sn = self.base + self.records.len() as u64;
        self.records.push_back(Record { start: cut.start, len: cut.len, state: State::InAir });
        Some(Pdu { sn, from: 0, to: cut.len, size: cut.size, kind: Kind::Data { poll: false, again: false } })
    }

    /// Receiver: handles a PDU of a decoded transport block.
    pub fn on_received(&mut self, now: Time, pdu: Pdu, observer: &mut impl Observer<P>) {
        self.latest = self.latest.max(now);
        let sn = pdu.sn;
        let index = sn.checked_sub(self.base).and_then(|index| usize::try_from(index).ok());
        let record = index.and_then(|index| self.records.get_mut(index));
        match record {
            Some(record) if record.state == State::InAir => record.state = State::Received,
            _ => {
                self.stream.counters.useless += 1;
                return;
            }
        }
        self.uh = self.uh.max(sn + 1);
        if self.uh - self.ur > WINDOW {
            self.release(now, self.uh - WINDOW, observer);
        }
        self.advance(now, observer);
        if self.timer != Time::MAX && self.ux <= self.ur {
            self.timer = Time::MAX;
        }
        self.start_timer(now);
    }

    /// Handles the loss of a PDU with its transport block, which the receiver does not learn of.
    pub fn on_lost(&mut self, now: Time, pdu: Pdu, observer: &mut impl Observer<P>) {
        self.lose(now, pdu.sn, observer);
    }

    fn lose(&mut self, now: Time, sn: u64, observer: &mut impl Observer<P>) {
        let index = sn.checked_sub(self.base).and_then(|index| usize::try_from(index).ok());
        let Some(record) = index.and_then(|index| self.records.get_mut(index)) else { return };
        if record.state != State::InAir {
            return;
        }
        record.state = State::Lost;
        let (start, end) = (record.start, record.start + u64::from(record.len));
        self.stream.drop_range(now, start, end, DropCause::Radio, observer);
        // Lost PDUs at the front need no records.
        while self.records.front().is_some_and(|record| record.state == State::Lost) {
            self.pop(now, observer);
        }
    }

    /// When [`Self::on_deadline`] is due; [`Time::MAX`] if no timer runs.
    #[inline]
    pub fn next_deadline(&self) -> Time {
        self.timer.min(self.stream.discard_deadline())
    }

    /// Handles timers that expired by `now`, each at its own time.
    pub fn on_deadline(&mut self, now: Time, observer: &mut impl Observer<P>) {
        let now = now.min(LATEST);
        self.stream.discard(now, observer);
        while self.timer <= now {
            let at = self.timer.max(self.latest);
            self.timer = Time::MAX;
            self.release(at, self.ux, observer);
            self.advance(at, observer);
            self.start_timer(at);
        }
    }

    fn start_timer(&mut self, now: Time) {
        if self.timer == Time::MAX && self.uh > self.ur {
            self.timer = now + self.reordering;
            self.ux = self.uh;
        }
    }

    /// Stops waiting for PDUs before `sn`.
    fn release(&mut self, now: Time, sn: u64, observer: &mut impl Observer<P>) {
        while self.base < sn && !self.records.is_empty() {
            self.pop(now, observer);
        }
        self.ur = self.ur.max(sn.min(self.base));
    }

    /// Advances over PDUs received without a gap.
    #[inline]
    fn advance(&mut self, now: Time, observer: &mut impl Observer<P>) {
        while self.ur == self.base
            && self.records.front().is_some_and(|record| record.state == State::Received)
        {
            self.pop(now, observer);
            self.ur = self.base;
        }
    }

    /// Delivers the first PDU's packets, or drops them if it was not received.
    #[inline]
    fn pop(&mut self, now: Time, observer: &mut impl Observer<P>) {
        let Some(record) = self.records.pop_front() else { return };
        self.base += 1;
        let end = record.start + u64::from(record.len);
        if record.state == State::InAir {
            self.stream.drop_range(now, record.start, end, DropCause::Radio, observer);
        }
        self.stream.deliver_up_to(now, end, observer);
        shrink(&mut self.records);
    }

    /// Re-establishes both ends, as a handover does: data under way is lost ([`DropCause::Reset`]), the buffer is kept;
    /// TS 36.322 clause 5.4.
    pub fn restart(&mut self, now: Time, observer: &mut impl Observer<P>) {
        self.latest = self.latest.max(now);
        let next = self.base + self.records.len() as u64;
        while self.records.front().is_some_and(|record| record.state == State::Received) {
            self.pop(now, observer);
        }
        self.records.clear();
        (self.base, self.ur, self.ux, self.uh, self.timer) = (next, next, next, next, Time::MAX);
        self.stream.restart(now, false, observer);
    }

    /// A grant that suffices for all new data.
    pub fn wanted(&self) -> Bytes {
        self.stream.wanted()
    }

    super::figures::reports!();
}
