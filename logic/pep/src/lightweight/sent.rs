//! What a server remembers of an encrypted flow to make sense of its digests: the tags of what it sent, in order.

use std::collections::VecDeque;

use ranpace_units::Time;

use super::digest::{POWERS, PowerSums};
use super::message::OpaqueView;

/// Later packets that must have been seen before one is taken to be missing.
const REORDERING: usize = 3;
/// Packets that a digest is compared with, at most.
const CANDIDATES: usize = 4_096;

/// What a digest says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Located {
    /// Packets that were newly seen, by number.
    pub seen: Vec<u64>,
    /// Packets that were lost before the PEP.
    pub missing: Vec<u64>,
    /// When the newest one seen was sent, if it is new.
    pub newest_sent_at: Option<Time>,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    number: u64,
    tag: u32,
    at: Time,
    /// Told already that it was seen.
    seen: bool,
}

/// Tags of what was sent in an epoch.
#[derive(Clone, Debug, Default)]
pub struct SentTags {
    /// What no digest has settled, in the order of sending.
    open: VecDeque<Sent>,
    /// Sums of all that was settled and not lost.
    settled: PowerSums,
    /// How many these are, modulo 2^32.
    count: u32,
}

impl SentTags {
    /// A datagram leaves.
    pub fn on_sent(&mut self, now: Time, number: u64, tag: u32) {
        self.open.push_back(Sent { number, tag, at: now, seen: false });
    }

    /// A new epoch: what is on its way is unknown.
    pub fn restart(&mut self) {
        *self = Self::default();
    }

    /// What a report of `packets` packets says; `None` if it does not go with what was sent.
    pub fn locate(&mut self, packets: u32, view: &OpaqueView) -> Option<Located> {
        // The newest packet that the PEP has seen is the last one to look at. With reordering it may not be the last one that
        // was sent of those: then what came after it is among the seen.
        let newest = self.open.iter().take(CANDIDATES).rposition(|sent| sent.tag == view.newest);
        let fresh = packets.wrapping_sub(self.count) as usize;
        let mut length = match newest {
            Some(newest) => newest + 1,
            None if fresh == 0 => return (view.sums == self.settled).then(Located::default),
            None => fresh,
        };
        length =
            length.max(fresh).max(self.open.iter().rposition(|sent| sent.seen).map_or(0, |last| last + 1));
        if length > self.open.len() || length - fresh > POWERS {
            return None;
        }
        let candidates: Vec<u32> = self.open.iter().take(length).map(|sent| sent.tag).collect();
        let mut all = self.settled;
        for tag in &candidates {
            all.insert(*tag);
        }
        let absent = all.missing(&view.sums, length - fresh, &candidates)?;
        let mut located = Located::default();
        for (place, sent) in self.open.iter_mut().take(length).enumerate() {
            if !sent.seen && absent.binary_search(&place).is_err() {
                sent.seen = true;
                located.seen.push(sent.number);
                located.newest_sent_at = located.newest_sent_at.max(Some(sent.at));
            }
        }
        // Settled from the front: what was seen, and what is missing although three later ones were seen.
        let mut later = self.open.iter().take(length).filter(|sent| sent.seen).count();
        let mut place = 0;
        while place < length {
            let first = self.open[0];
            if first.seen {
                later -= 1;
                self.settled.insert(first.tag);
                self.count = self.count.wrapping_add(1);
            } else if later >= REORDERING {
                located.missing.push(first.number);
            } else {
                break;
            }
            self.open.pop_front();
            place += 1;
        }
        Some(located)
    }
}
