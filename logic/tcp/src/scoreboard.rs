//! The scoreboard: one record for each outstanding segment with its state, and the counts derived from these.
//!
//! Records are kept in a deque in sequence order, so the cost of an acknowledgement is that of the segments it covers,
//! whatever the window. Lost segments wait in a queue for their retransmission; retransmissions are in another one, in the
//! order of sending, for RACK.

use std::collections::VecDeque;

use ranpace_cc::Sending;
use ranpace_units::Time;

/// Index of a segment that stays valid when the deque moves.
pub(crate) type Id = u64;

/// One segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub seq: u64,
    pub length: u32,
    pub flags: Flags,
    /// Packet number of the last transmission.
    pub number: u64,
    /// When it was last sent.
    pub sent_at: Time,
    /// State at the last transmission, from which a rate sample starts: the delivery count, its time, and the send time of
    /// the newest packet delivered by then.
    pub delivered: u64,
    pub delivered_at: Time,
    pub first_sent_at: Time,
    /// Segments in flight when it was last sent, without itself.
    pub in_flight: u32,
    /// For a selectively acknowledged segment: at least this many from here on are selectively acknowledged.
    pub run: u32,
    /// Segments declared lost by then, modulo 2^24: a record fills a cache line.
    pub lost: [u8; 3],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags(u8);

impl Flags {
    pub const SACKED: u8 = 1;
    pub const LOST: u8 = 2;
    /// A retransmission is in flight.
    pub const RETRANSMITTED: u8 = 4;
    /// Was sent more than once.
    pub const EVER_RETRANSMITTED: u8 = 8;
    /// A proxy on the path has seen one of its copies, or reported one missing.
    pub const PEP_SEEN: u8 = 16;
    pub const PEP_MISSING: u8 = 32;
    /// The application limited the sender at the last transmission.
    pub const APP_LIMITED: u8 = 64;

    #[inline]
    pub fn has(self, flag: u8) -> bool {
        self.0 & flag != 0
    }
    #[inline]
    pub fn set(&mut self, flag: u8) {
        self.0 |= flag;
    }
    #[inline]
    pub fn clear(&mut self, flag: u8) {
        self.0 &= !flag;
    }
}

impl Record {
    pub fn end(&self) -> u64 {
        self.seq + u64::from(self.length)
    }

    /// Records the sender's state at a transmission.
    #[inline]
    pub fn on_sent(&mut self, in_flight: u64, lost: u64, app_limited: bool) {
        self.in_flight = in_flight as u32;
        let [a, b, c, ..] = lost.to_le_bytes();
        self.lost = [a, b, c];
        self.flags.clear(Flags::APP_LIMITED);
        self.flags.set(if app_limited { Flags::APP_LIMITED } else { 0 });
    }

    /// The state at the last transmission, and what was lost since, when the connection has lost `lost` segments.
    #[inline]
    pub fn sending(&self, lost: u64) -> Sending {
        let [a, b, c] = self.lost;
        let then = u64::from(u32::from_le_bytes([a, b, c, 0]));
        Sending {
            in_flight: u64::from(self.in_flight) + 1,
            lost_since: lost.wrapping_sub(then) & 0xFF_FFFF,
            app_limited: self.flags.has(Flags::APP_LIMITED),
        }
    }
}

/// The capacity for records is halved when less than one part in this many is used. A deque cycles through its memory: with
/// capacity for the largest window ever, it would touch all of that again and again.
const ROOMY: usize = 4;
/// Least capacity for records.
const LEAST: usize = 32;

/// The segments in flight, and what is known of each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    pub sacked_out: u64,
    pub lost_out: u64,
    pub retransmitted_out: u64,
    /// Id of the first record.
    base: Id,
    records: VecDeque<Record>,
    /// Segments to retransmit, by sequence number as in Linux. Obsolete entries are skipped.
    lost: VecDeque<Id>,
    /// Retransmissions by time of sending, with the packet number that tells whether an entry is still valid.
    retransmitted: VecDeque<(Id, u64)>,
    /// Every original below is selectively acknowledged, lost, or retransmitted: RACK need not look there.
    rack_cursor: Id,
    /// One past the highest byte selectively acknowledged.
    pub highest_sacked: u64,
    /// The blocks marked most recently, and which of them is replaced next: acknowledgements repeat blocks, mostly unchanged.
    known: [Marking; 4],
    oldest: usize,
    /// The block marked last.
    latest: usize,
    /// Records visited, for the tests of the cost of an acknowledgement.
    #[cfg(test)]
    pub visited: core::cell::Cell<u64>,
}

impl Scoreboard {
    #[inline]
    fn visit(&self) {
        #[cfg(test)]
        self.visited.set(self.visited.get() + 1);
    }

    /// Reads one field of each of its parts; see [`crate::prefetch`].
    #[inline]
    pub fn read_state(&self) -> u64 {
        self.base
            ^ self.lost.len() as u64
            ^ self.rack_cursor
            ^ self.known[1].from
            ^ self.known[2].at
            ^ self.latest as u64
    }

    /// Reads one field of each record that every acknowledgement visits: the oldest, the one where the latest block ended,
    /// RACK's, the newest; and RACK's next retransmission.
    #[inline]
    pub fn read_records(&self) -> u64 {
        let seq = |record: Option<&Record>| record.map_or(0, |record| record.seq);
        seq(self.records.front())
            ^ seq(self.records.back())
            ^ seq(self.get(self.known[self.latest].at))
            ^ seq(self.get(self.rack_cursor))
            ^ self.retransmitted.front().map_or(0, |(_, number)| *number)
    }

    /// Reads one field of the record of RACK's next retransmission.
    #[inline]
    pub fn read_retransmission(&self) -> u64 {
        self.retransmitted.front().and_then(|(id, _)| self.get(*id)).map_or(0, |record| record.seq)
    }

    /// Segments sent and not yet acknowledged cumulatively.
    #[inline]
    pub fn packets_out(&self) -> u64 {
        self.records.len() as u64
    }

    /// Segments in the network, as far as is known (Linux `tcp_packets_in_flight`).
    #[inline]
    pub fn in_flight(&self) -> u64 {
        self.packets_out() + self.retransmitted_out - self.sacked_out - self.lost_out
    }

    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub fn get(&self, id: Id) -> Option<&Record> {
        self.records.get(usize::try_from(id.checked_sub(self.base)?).ok()?)
    }

    pub fn get_mut(&mut self, id: Id) -> Option<&mut Record> {
        self.records.get_mut(usize::try_from(id.checked_sub(self.base)?).ok()?)
    }

    /// The oldest segment.
    #[inline]
    pub fn first(&self) -> Option<&Record> {
        self.records.front()
    }

    /// The newest segment.
    pub fn last(&self) -> Option<&Record> {
        self.records.back()
    }

    pub fn first_id(&self) -> Id {
        self.base
    }

    pub fn last_id(&self) -> Option<Id> {
        (!self.records.is_empty()).then(|| self.base + self.records.len() as u64 - 1)
    }

    #[inline]
    pub fn push(&mut self, record: Record) {
        self.records.push_back(record);
    }

    /// Removes the first segment if `ack` covers it, and updates the counts.
    #[inline]
    pub fn pop_acked(&mut self, ack: u64) -> Option<Record> {
        let record = *self.records.front()?;
        if record.end() > ack {
            return None;
        }
        self.records.pop_front();
        self.base += 1;
        let room = self.records.capacity();
        if self.records.len() < room / ROOMY && room > LEAST {
            self.records.shrink_to(room / 2);
        }
        if record.flags.has(Flags::SACKED) {
            self.sacked_out -= 1;
        }
        if record.flags.has(Flags::LOST) {
            self.lost_out -= 1;
        }
        if record.flags.has(Flags::RETRANSMITTED) {
            self.retransmitted_out -= 1;
        }
        Some(record)
    }

    /// Begins to mark the block `[from, to)`; [`Self::mark_next`] continues.
    pub fn mark_begin(&mut self, from: u64, to: u64) -> Marking {
        self.highest_sacked = self.highest_sacked.max(to);
        // Only the growth of a known block is new; usually there is none.
        let known = |known: &&Marking| known.from == from && known.to <= to && known.begin >= self.base;
        if let Some(known) = self.known.iter().find(known) {
            return Marking { to, settled: known.to == to, ..*known };
        }
        let id = self.base + self.index_of(from) as u64;
        Marking { from, to, begin: id, at: id, settled: false }
    }

    fn remember(&mut self, marking: Marking) {
        let known = self.known.iter().position(|known| known.from == marking.from).unwrap_or_else(|| {
            self.oldest = (self.oldest + 1) % self.known.len();
            self.oldest
        });
        self.known[known] = marking;
        self.latest = known;
    }

    /// Marks the next segment that the block newly covers and returns it as it was before, flags included. Segments already
    /// marked are skipped in runs, which merge as blocks do: the cost is proportional to what is new.
    pub fn mark_next(&mut self, marking: &mut Marking) -> Option<Record> {
        while !marking.settled {
            self.visit();
            let record = self
                .records
                .get_mut((marking.at - self.base) as usize)
                .filter(|record| record.end() <= marking.to);
            let Some(record) = record else {
                let (length, begin) = (marking.at - marking.begin, (marking.begin - self.base) as usize);
                if length > 0
                    && let Some(first) = self.records.get_mut(begin)
                {
                    first.run = length as u32;
                }
                marking.settled = true;
                self.remember(*marking);
                return None;
            };
            if record.flags.has(Flags::SACKED) {
                marking.at += u64::from(record.run.max(1));
                continue;
            }
            let before = *record;
            if record.flags.has(Flags::RETRANSMITTED) {
                self.retransmitted_out -= 1;
            }
            if record.flags.has(Flags::LOST) {
                self.lost_out -= 1;
            }
            record.flags.clear(Flags::LOST | Flags::RETRANSMITTED);
            record.flags.set(Flags::SACKED);
            self.sacked_out += 1;
            marking.at += 1;
            return Some(before);
        }
        None
    }

    /// Index of the first record that begins at or after `seq`.
    fn index_of(&self, seq: u64) -> usize {
        let Some(first) = self.records.front() else { return 0 };
        // Segments nearly always have the same size: guess, and search only if the guess is wrong.
        let guess = (seq.saturating_sub(first.seq) / u64::from(first.length.max(1))) as usize;
        if self.records.get(guess).is_some_and(|record| record.seq == seq) {
            return guess;
        }
        self.records.partition_point(|record| record.seq < seq)
    }

    /// Sets `flag` on the segments within `[from, to)` that have none of `known`, and passes each to `told`.
    pub fn mark_at_proxy(&mut self, from: u64, to: u64, flag: u8, known: u8, told: &mut dyn FnMut(&Record)) {
        let begin = self.index_of(from);
        for record in self.records.range_mut(begin..) {
            if record.end() > to {
                break;
            }
            if !record.flags.has(known) {
                told(record);
                record.flags.set(flag);
            }
        }
    }

    /// Marks a segment lost, including its retransmission if one is in flight. Returns false if it was already.
    pub fn mark_lost(&mut self, id: Id) -> bool {
        let Some(record) = self.get_mut(id) else { return false };
        if record.flags.has(Flags::SACKED) {
            return false;
        }
        if record.flags.has(Flags::LOST) {
            if !record.flags.has(Flags::RETRANSMITTED) {
                return false;
            }
            record.flags.clear(Flags::RETRANSMITTED);
            self.retransmitted_out -= 1;
        } else {
            record.flags.set(Flags::LOST);
            if record.flags.has(Flags::RETRANSMITTED) {
                record.flags.clear(Flags::RETRANSMITTED);
                self.retransmitted_out -= 1;
            }
            self.lost_out += 1;
        }
        // Segments lost again are among the first: an insertion near the front is cheap.
        match self.lost.back() {
            Some(&last) if last >= id => {
                if let Err(place) = self.lost.binary_search(&id) {
                    self.lost.insert(place, id);
                }
            }
            _ => self.lost.push_back(id),
        }
        true
    }

    /// The next segment to retransmit.
    pub fn next_lost(&mut self) -> Option<Id> {
        while let Some(&id) = self.lost.front() {
            if self.get(id).is_some_and(|record| {
                record.flags.has(Flags::LOST) && !record.flags.has(Flags::RETRANSMITTED | Flags::SACKED)
            }) {
                return Some(id);
            }
            self.lost.pop_front();
        }
        None
    }

    /// Records that a segment was retransmitted as packet `number`. A probe of a segment that is not lost is not counted in
    /// flight a second time (Linux's probe bypasses `retrans_out`).
    pub fn on_retransmitted(&mut self, id: Id, number: u64) {
        let mut lost = false;
        if let Some(record) = self.get_mut(id) {
            record.flags.set(Flags::EVER_RETRANSMITTED);
            lost = record.flags.has(Flags::LOST) && !record.flags.has(Flags::RETRANSMITTED);
            if lost {
                record.flags.set(Flags::RETRANSMITTED);
            }
        }
        self.retransmitted_out += u64::from(lost);
        self.retransmitted.push_back((id, number));
        if self.lost.front() == Some(&id) {
            self.lost.pop_front();
        }
    }

    /// Marks as lost, in order of sending, each segment for which `verdict` says so, until one was sent too late. Passes each
    /// to `lost` as it was before. Returns whether a segment that was overtaken still has time.
    pub fn sweep(&mut self, verdict: impl Fn(&Record) -> Verdict, mut lost: impl FnMut(&Record)) -> bool {
        let mut waiting = false;
        // Originals, in sequence order, which is their order of sending.
        self.rack_cursor = self.rack_cursor.max(self.base);
        while let Some(record) = self.get(self.rack_cursor) {
            self.visit();
            if record.flags.has(Flags::SACKED) {
                self.rack_cursor += u64::from(record.run.max(1));
                continue;
            }
            if !record.flags.has(Flags::LOST | Flags::EVER_RETRANSMITTED) {
                let verdict = verdict(record);
                if verdict != Verdict::Lost {
                    waiting |= verdict == Verdict::NotYet;
                    break;
                }
                lost(record);
                self.mark_lost(self.rack_cursor);
            }
            self.rack_cursor += 1;
        }
        // Retransmissions.
        while let Some(&(id, number)) = self.retransmitted.front() {
            self.visit();
            let current = self.get(id).filter(|record| {
                let waits = record.flags.has(Flags::LOST) && !record.flags.has(Flags::RETRANSMITTED);
                record.number == number && !waits && !record.flags.has(Flags::SACKED)
            });
            if let Some(record) = current {
                let verdict = verdict(record);
                if verdict != Verdict::Lost {
                    waiting |= verdict == Verdict::NotYet;
                    break;
                }
                lost(record);
                self.mark_lost(id);
            }
            self.retransmitted.pop_front();
        }
        waiting
    }

    /// After a timeout: marks everything for which `is_lost` holds, including retransmissions, to be retransmitted from the
    /// front.
    pub fn mark_all_lost(&mut self, is_lost: impl Fn(Id, &Record) -> bool, mut lost: impl FnMut(&Record)) {
        self.lost.clear();
        let base = self.base;
        for (index, record) in self.records.iter_mut().enumerate() {
            let id = base + index as u64;
            if record.flags.has(Flags::SACKED) {
                continue;
            }
            if record.flags.has(Flags::LOST) && !record.flags.has(Flags::RETRANSMITTED) {
                self.lost.push_back(id);
            } else if is_lost(id, record) {
                lost(record);
                if record.flags.has(Flags::RETRANSMITTED) {
                    record.flags.clear(Flags::RETRANSMITTED);
                    self.retransmitted_out -= 1;
                }
                if !record.flags.has(Flags::LOST) {
                    record.flags.set(Flags::LOST);
                    self.lost_out += 1;
                }
                self.lost.push_back(id);
            }
        }
    }

    /// Takes back all losses: segments waiting for retransmission count as in flight again.
    pub fn unmark_lost(&mut self) {
        for (id, record) in (self.base..).zip(&mut self.records) {
            if record.flags.has(Flags::LOST) {
                record.flags.clear(Flags::LOST);
                self.lost_out -= 1;
                // It was retransmitted and lost again: RACK watches its last transmission once more.
                if record.flags.has(Flags::EVER_RETRANSMITTED) && !record.flags.has(Flags::RETRANSMITTED) {
                    self.retransmitted.push_back((id, record.number));
                }
            }
        }
        self.retransmitted.make_contiguous().sort_unstable_by_key(|&(_, number)| number);
        self.lost.clear();
        self.rack_cursor = self.base;
    }

    #[cfg(test)]
    pub fn check(&self) {
        let count = |flag| self.records.iter().filter(|record| record.flags.has(flag)).count() as u64;
        assert_eq!(self.sacked_out, count(Flags::SACKED));
        assert_eq!(self.lost_out, count(Flags::LOST));
        assert_eq!(self.retransmitted_out, count(Flags::RETRANSMITTED));
        assert!(self.in_flight() <= self.packets_out() + self.retransmitted_out);
        assert!(self.lost.iter().is_sorted_by(|a, b| a < b));
        let mut run = 0;
        for record in self.records.iter().rev() {
            run = if record.flags.has(Flags::SACKED) { run + 1 } else { 0 };
            assert!(record.run <= run);
        }
    }
}

/// A block that is being or has been marked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Marking {
    from: u64,
    to: u64,
    /// Its first segment, and the first that is not marked yet.
    begin: Id,
    at: Id,
    /// Whether nothing is left to mark.
    settled: bool,
}

/// RACK's verdict on a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Lost,
    /// Sent before the newest delivered one, but it may have been overtaken.
    NotYet,
    SentLater,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn record(seq: u64, length: u32, number: u64) -> Record {
        Record {
            seq,
            length,
            flags: Flags::default(),
            number,
            sent_at: Time::from_nanos(number),
            delivered: 0,
            delivered_at: Time::ZERO,
            first_sent_at: Time::ZERO,
            in_flight: 0,
            run: 0,
            lost: [0; 3],
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Push(u32),
        Ack(u64),
        Sack(u64, u64, u64, u64),
        Sweep(u64),
        Retransmit,
        Timeout,
        Undo,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (1..3_000_u32).prop_map(Step::Push),
            2 => (0..8_u64).prop_map(Step::Ack),
            3 => (0..20_u64, 1..10_u64, 0..20_u64, 1..10_u64).prop_map(|(a, b, c, d)| Step::Sack(a, b, c, d)),
            2 => (0..100_u64).prop_map(Step::Sweep),
            3 => Just(Step::Retransmit),
            1 => Just(Step::Timeout),
            1 => Just(Step::Undo),
        ]
    }

    proptest! {
        /// Whatever happens, the counts match the flags, and the number in flight does not underflow.
        #[test]
        fn counts_follow_the_flags(steps in vec(step(), 0..300)) {
            let (mut board, mut next, mut number, mut una) = (Scoreboard::default(), 0_u64, 0_u64, 0_u64);
            for step in steps {
                match step {
                    Step::Push(length) => {
                        board.push(record(next, length, number));
                        next += u64::from(length);
                        number += 1;
                    }
                    Step::Ack(count) => {
                        let end = board.records.get(count as usize).map_or(una, Record::end);
                        una = una.max(end);
                        while board.pop_acked(una).is_some() {}
                    }
                    Step::Sack(a, b, c, d) => {
                        for (from, count) in [(a, b), (c, d)] {
                            let start = board.records.get(1 + from as usize).map(|r| r.seq);
                            let end = board.records.get((from + count) as usize).map(Record::end);
                            if let (Some(start), Some(end)) = (start, end) {
                                let mut marking = board.mark_begin(start, end);
                                while board.mark_next(&mut marking).is_some() {}
                            }
                        }
                    }
                    Step::Sweep(limit) => {
                        let limit = Time::from_nanos(limit);
                        let verdict = |r: &Record| if r.sent_at < limit { Verdict::Lost } else { Verdict::SentLater };
                        board.sweep(verdict, |_| ());
                    }
                    Step::Retransmit => {
                        if let Some(id) = board.next_lost() {
                            let record = board.get_mut(id).unwrap();
                            (record.number, record.sent_at) = (number, Time::from_nanos(number));
                            board.on_retransmitted(id, number);
                            number += 1;
                        }
                    }
                    Step::Timeout => board.mark_all_lost(|_, _| true, |_| ()),
                    Step::Undo => board.unmark_lost(),
                }
                board.check();
            }
        }
    }
}
