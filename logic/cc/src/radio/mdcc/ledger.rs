//! Records which packets a Lightweight PEP has seen, by packet number: one byte per packet from the oldest outstanding one to
//! the newest.

use std::collections::VecDeque;

const SEEN: u8 = 1;
const MISSING: u8 = 2;
const SETTLED: u8 = 4;
const AGAIN: u8 = 8;

/// Number of later packets that must have been seen before an unseen one is taken to be lost before the PEP: the usual
/// reordering threshold (RFC 5681, RFC 9002 section 6.1.1), which the specification mentions without a number.
const REORDERING: u64 = 3;

/// The part of the path that lost a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// Before the PEP.
    Internet,
    /// Beyond it.
    Radio,
    /// There is no evidence.
    Unknown,
}

/// State of the packets in flight.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// Number of the first entry.
    base: u64,
    entries: VecDeque<u8>,
    /// Packets that neither the PEP nor the receiver has reported.
    unseen: u64,
    /// Highest number that the PEP has seen.
    newest_seen: Option<u64>,
    /// Domain of the last loss that could be attributed.
    last_loss: Option<Domain>,
}

impl Ledger {
    /// A packet leaves.
    pub fn on_sent(&mut self, number: u64, retransmission: bool) {
        let expected = self.base + self.entries.len() as u64;
        if number != expected {
            // Numbers are consecutive; after a gap nothing is known about earlier packets.
            self.entries.clear();
            self.unseen = 0;
            self.base = number;
        }
        self.entries.push_back(if retransmission { AGAIN } else { 0 });
        self.unseen += 1;
    }

    fn entry(&mut self, number: u64) -> Option<&mut u8> {
        let index = usize::try_from(number.checked_sub(self.base)?).ok()?;
        self.entries.get_mut(index)
    }

    /// The PEP has seen the packet. Returns false if that was known.
    pub fn on_seen(&mut self, number: u64) -> bool {
        let Some(entry) = self.entry(number) else { return false };
        if *entry & (SEEN | SETTLED) != 0 {
            return false;
        }
        *entry |= SEEN;
        self.unseen -= 1;
        self.newest_seen = self.newest_seen.max(Some(number));
        true
    }

    /// The PEP reports the packet missing. Returns false if that was known or is contradicted.
    pub fn on_missing(&mut self, number: u64) -> bool {
        let Some(entry) = self.entry(number) else { return false };
        if *entry & (SEEN | MISSING | SETTLED) != 0 {
            return false;
        }
        *entry |= MISSING;
        true
    }

    /// The receiver has the packet. Returns whether the PEP had seen it and whether the PEP had reported it missing; `None`
    /// if it was already settled.
    pub fn on_acked(&mut self, number: u64) -> Option<(bool, bool)> {
        let entry = self.entry(number)?;
        let before = *entry;
        if before & SETTLED != 0 {
            return None;
        }
        self.settle(number);
        Some((before & SEEN != 0, before & MISSING != 0))
    }

    /// The packet is lost. Returns the domain that lost it.
    pub fn on_lost(&mut self, number: u64) -> Domain {
        let newest = self.newest_seen;
        let Some(entry) = self.entry(number) else { return Domain::Unknown };
        let before = *entry;
        self.settle(number);
        let passed = newest.is_some_and(|newest| newest >= number + REORDERING);
        let domain = if before & SEEN != 0 {
            Domain::Radio
        } else if before & MISSING != 0 {
            Domain::Internet
        } else if !passed {
            Domain::Unknown
        } else if before & AGAIN != 0 {
            // By its sequence number a PEP cannot tell a retransmission from the original that it saw before. The most likely
            // domain is that of the latest losses.
            self.last_loss.unwrap_or(Domain::Unknown)
        } else {
            Domain::Internet
        };
        if domain != Domain::Unknown {
            self.last_loss = Some(domain);
        }
        domain
    }

    fn settle(&mut self, number: u64) {
        if let Some(entry) = self.entry(number) {
            let was_unseen = *entry & (SEEN | SETTLED) == 0;
            *entry |= SETTLED;
            self.unseen -= u64::from(was_unseen);
        }
        while self.entries.front().is_some_and(|entry| entry & SETTLED != 0) {
            self.entries.pop_front();
            self.base += 1;
        }
    }

    /// The PEP restarted its counting: packets that it had not seen can no longer be attributed.
    pub fn forget_order(&mut self) {
        self.newest_seen = None;
    }

    /// Packets on their way to the PEP, as far as is known.
    pub fn unseen(&self) -> u64 {
        self.unseen
    }
}
