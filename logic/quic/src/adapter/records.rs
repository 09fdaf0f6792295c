//! The packets in flight, in the order of sending.

use std::collections::VecDeque;

use ranpace_cc::Sending;
use ranpace_units::Time;

/// A packet that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    /// Its position in the order of sending.
    pub number: u64,
    /// Its packet number. The handshake has its own number spaces, so that a number may occur twice.
    pub packet: u64,
    pub bytes: u32,
    pub sent_at: Time,
    /// Marks of the rate sampler when it was sent.
    pub delivered: u64,
    pub delivered_at: Time,
    pub first_sent_at: Time,
    /// Packets in flight, including this one.
    pub in_flight: u64,
    /// Packets lost by then.
    pub lost: u64,
    pub app_limited: bool,
    /// Neither acknowledged nor lost.
    pub open: bool,
}

impl Record {
    /// The state when it was sent, and what was lost since, when the connection has lost `lost` packets.
    pub fn sending(&self, lost: u64) -> Sending {
        Sending { in_flight: self.in_flight, lost_since: lost - self.lost, app_limited: self.app_limited }
    }
}

/// All packets from the oldest open one on.
#[derive(Debug, Default)]
pub(super) struct Records {
    all: VecDeque<Record>,
    next: u64,
    open: u64,
    open_bytes: u64,
    /// Up to this position packet numbers may be in any order, since those of the handshake are among them.
    unordered: u64,
}

impl Records {
    /// Adds a packet and returns its position.
    pub fn push(&mut self, record: Record) -> u64 {
        let number = self.next;
        if self.all.back().is_some_and(|last| last.packet >= record.packet) {
            self.unordered = number;
        }
        self.next += 1;
        self.open += 1;
        self.open_bytes += u64::from(record.bytes);
        self.all.push_back(Record { number, ..record });
        number
    }

    pub fn in_flight(&self) -> u64 {
        self.open
    }

    pub fn in_flight_bytes(&self) -> u64 {
        self.open_bytes
    }

    pub fn next_number(&self) -> u64 {
        self.next
    }

    /// The packet at this position in the order of sending, if it is neither acknowledged nor lost.
    pub fn open(&self, number: u64) -> Option<Record> {
        let place = number.checked_sub(self.all.front()?.number)?;
        self.all.get(usize::try_from(place).ok()?).filter(|record| record.open).copied()
    }

    /// Removes and returns the packet with this number that was sent at `sent_at`: it has been acknowledged.
    pub fn take_acked(&mut self, sent_at: Time, packet: u64) -> Option<Record> {
        let first = self.all.partition_point(|record| record.sent_at < sent_at);
        let sent_then = self.all.range(first..).take_while(|record| record.sent_at == sent_at);
        let offset = sent_then.into_iter().position(|record| record.open && record.packet == packet)?;
        self.close(first + offset)
    }

    /// Removes and returns a packet that was sent at `sent_at`, of this size if there is one: it has been acknowledged.
    pub fn take_acked_of_size(&mut self, sent_at: Time, bytes: u64) -> Option<Record> {
        let first = self.all.partition_point(|record| record.sent_at < sent_at);
        let sent_then = || self.all.range(first..).take_while(|record| record.sent_at == sent_at);
        let of_size = sent_then().position(|record| record.open && u64::from(record.bytes) == bytes);
        let offset = of_size.or_else(|| sent_then().position(|record| record.open))?;
        self.close(first + offset)
    }

    /// Removes and returns the oldest open packet, if it was sent at `sent_at` or before.
    pub fn take_oldest(&mut self, sent_at: Time) -> Option<Record> {
        // What is closed at the front is gone.
        let front = self.all.front()?;
        if front.sent_at <= sent_at { self.close(0) } else { None }
    }

    /// Removes and returns the packet with this number: it is lost.
    pub fn take_lost(&mut self, packet: u64) -> Option<Record> {
        let is_it = |record: &Record| record.open && record.packet == packet;
        let place = if self.all.front()?.number > self.unordered {
            let place = self.all.partition_point(|record| record.packet < packet);
            self.all.get(place).is_some_and(is_it).then_some(place)
        } else {
            self.all.iter().position(is_it)
        };
        self.close(place?)
    }

    /// Drops the oldest packets with numbers up to `last`: those of the handshake, which noq no longer reports once it has
    /// discarded their keys (RFC 9002, 6.4). Any other would have been declared lost by now.
    pub fn drop_left_behind(&mut self, last: Option<u64>) {
        while self.all.front().is_some_and(|front| Some(front.packet) <= last) {
            self.close(0);
        }
    }

    fn close(&mut self, place: usize) -> Option<Record> {
        let record = self.all.get_mut(place)?;
        record.open = false;
        let found = *record;
        self.open -= 1;
        self.open_bytes -= u64::from(found.bytes);
        while self.all.front().is_some_and(|front| !front.open) {
            self.all.pop_front();
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(packet: u64, sent_ms: u64) -> Record {
        let at = Time::from_millis(sent_ms);
        Record {
            number: 0,
            packet,
            bytes: 100,
            sent_at: at,
            delivered: 0,
            delivered_at: at,
            first_sent_at: at,
            in_flight: 0,
            lost: 0,
            app_limited: false,
            open: true,
        }
    }

    #[test]
    fn packets_are_found_by_time_or_number_and_only_once() {
        let mut records = Records::default();
        for (place, packet) in [0, 1, 3, 4, 7].into_iter().enumerate() {
            assert_eq!(records.push(record(packet, place as u64 / 2)), place as u64);
        }
        assert_eq!(records.take_acked(Time::from_millis(0), 1).map(|found| found.number), Some(1));
        assert!(records.take_acked(Time::from_millis(0), 1).is_none());
        assert!(records.take_acked(Time::from_millis(1), 7).is_none(), "sent at another time");
        assert_eq!(records.take_lost(4).map(|found| found.number), Some(3));
        assert!(records.take_lost(2).is_none(), "was skipped");
        assert_eq!((records.in_flight(), records.in_flight_bytes()), (3, 300));
        assert_eq!(records.take_lost(0).map(|found| found.number), Some(0));
        assert_eq!(records.all.len(), 3, "what is closed at the front goes");
    }

    #[test]
    fn leftovers_of_the_handshake_do_not_stay() {
        let mut records = Records::default();
        records.push(record(1, 0)); // Finished of the client, never acknowledged
        for packet in 0..8 {
            records.push(record(packet, 0));
        }
        assert_eq!(records.take_lost(0).map(|found| found.number), Some(1));
        for packet in 1..8 {
            records.take_acked(Time::from_millis(0), packet);
        }
        // The first packet with number 1 is the handshake's: the remaining count is right all the same.
        assert_eq!(records.in_flight(), 1);
        records.drop_left_behind(Some(4));
        assert_eq!((records.in_flight(), records.all.len()), (0, 0));
    }
}
