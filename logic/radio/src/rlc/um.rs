//! Unacknowledged mode: lost PDUs stay lost, and PDUs behind them wait for t-Reordering.
//!
//! Source: TS 36.322 clauses 5.1.2.1 (transmitter) and 5.1.2.2 (receiver). State of the receiver: VR(UR), the first PDU
//! that is still awaited; VR(UX), the one after that which started the timer; VR(UH), the one after the highest
//! received. A packet with a byte in a lost PDU is reported as dropped as soon as the PDU is lost (the receiver learns of it
//! later, and acts later).

use std::collections::VecDeque;

use ranpace_link::Packet;
use ranpace_units::{Bytes, Span, Time};

use super::stream::{LATEST, Stream, shrink};
use super::{Config, Counters, DropCause, Kind, Observer, Pdu, room};

/// UM_Window_Size with numbers of 10 bits; TS 36.322 clause 7.2.
const WINDOW: u64 = 512;
/// So many PDUs have a number each; an older one could not be told from a new one.
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
    /// PDUs that were built, from number `base` on.
    records: VecDeque<Record>,
    /// At least `ur`; those between were lost.
    base: u64,
    /// VR(UR).
    ur: u64,
    /// VR(UX).
    ux: u64,
    /// VR(UH).
    uh: u64,
    /// When t-Reordering runs out; [`Time::MAX`] while it does not run.
    timer: Time,
    /// When the receiver was told of something last: a timer that is told of late does not go back before it.
    latest: Time,
    reordering: Span,
}

impl<P: Packet> Um<P> {
    /// An idle channel. `seed` is for buffers that draw lots.
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

    /// Transmitter: a packet joins the buffer or is dropped.
    pub fn enqueue(&mut self, now: Time, packet: P, observer: &mut impl Observer<P>) {
        self.stream.push(now, packet, observer);
    }

    /// Transmitter: what goes into `grant` bytes of a transport block; `None` if nothing waits or fits.
    pub fn build(&mut self, now: Time, grant: Bytes, observer: &mut impl Observer<P>) -> Option<Pdu> {
        let cut = self.stream.cut(now, room(grant), observer)?;
        if self.records.len() >= NUMBERS {
            self.lose(now, self.base, observer);
        }
        let sn = self.base + self.records.len() as u64;
        self.records.push_back(Record { start: cut.start, len: cut.len, state: State::InAir });
        Some(Pdu { sn, from: 0, to: cut.len, size: cut.size, kind: Kind::Data { poll: false, again: false } })
    }

    /// Receiver: a PDU came with a decoded transport block.
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

    /// A PDU was lost with its transport block. The receiver does not learn of it.
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
        // Lost ones at the front need not be remembered one by one.
        while self.records.front().is_some_and(|record| record.state == State::Lost) {
            self.pop(now, observer);
        }
    }

    /// When [`Self::on_deadline`] is due; [`Time::MAX`] if nothing runs.
    #[inline]
    pub fn next_deadline(&self) -> Time {
        self.timer.min(self.stream.discard_deadline())
    }

    /// Timers that have run out by `now`, each at its own time.
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

    /// Waits no longer for PDUs before `sn`.
    fn release(&mut self, now: Time, sn: u64, observer: &mut impl Observer<P>) {
        while self.base < sn && !self.records.is_empty() {
            self.pop(now, observer);
        }
        self.ur = self.ur.max(sn.min(self.base));
    }

    /// Goes over what was received without a gap.
    #[inline]
    fn advance(&mut self, now: Time, observer: &mut impl Observer<P>) {
        while self.ur == self.base
            && self.records.front().is_some_and(|record| record.state == State::Received)
        {
            self.pop(now, observer);
            self.ur = self.base;
        }
    }

    /// Hands the first PDU's packets up, or drops them if it did not come.
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

    /// Sets both ends up anew, as a handover does: what is under way is lost ([`DropCause::Reset`]), the buffer is kept;
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

    /// What a grant must have for all new data to fit, or more.
    pub fn wanted(&self) -> Bytes {
        self.stream.wanted()
    }

    super::figures::reports!();
}
