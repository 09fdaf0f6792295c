//! The server's record of an encrypted flow for interpreting its digests: the tags of the packets that it sent, in order.
//!
//! Source: Yuan et al., Sidekick (NSDI 2024), for the idea: the difference between the sums of the packets sent and seen identifies
//! the missing ones. Ours: the start of the PEP's counting is located from its first report, as the PEP may have come late or
//! restarted; lost packets are taken out of the sums, so that only new losses count against the limit of 16; and a packet that
//! arrives after it was declared lost is added again.

use std::collections::VecDeque;

use ranpace_units::Time;

use super::digest::{POWERS, PowerSums};
use super::message::OpaqueView;

/// Later packets that must have been seen before a packet is declared missing.
const REORDERING: usize = 3;
/// Most packets that are remembered and compared with a digest.
const CANDIDATES: usize = 4_096;

/// The content of a digest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Located {
    /// Numbers of the packets that were newly seen.
    pub seen: Vec<u64>,
    /// Numbers of the packets that were lost before the PEP.
    pub missing: Vec<u64>,
    /// When the newest packet seen was sent, if it is newly seen.
    pub newest_sent_at: Option<Time>,
    /// The PEP's counting begins with this report; packets that it does not mention are unknown.
    pub new_epoch: bool,
}

/// Why a digest says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unlocated {
    /// More packets are missing than can be identified: the PEP has to restart its counting.
    #[error("more packets are missing than can be told")]
    TooMany,
    /// The epoch was given up.
    #[error("of a counting that was given up")]
    GivenUp,
    /// No combination of sent packets has these sums.
    #[error("packets that were never sent")]
    Impossible,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    /// The caller's number; `None` for a packet that the caller does not ask for.
    number: Option<u64>,
    tag: u32,
    at: Time,
    /// Already reported as seen.
    seen: bool,
}

/// Tags of the packets sent.
#[derive(Clone, Debug, Default)]
pub struct SentTags {
    /// Packets not settled by a digest, in the order of sending.
    open: VecDeque<Sent>,
    /// A packet was dropped from the record before a digest settled it.
    forgot: bool,
    /// The epoch of the sums, once its beginning is known.
    epoch: Option<u16>,
    given_up: Option<u16>,
    /// Sums of the packets of this epoch that were settled as not lost.
    settled: PowerSums,
    /// Number of these, modulo 2^32.
    count: u32,
    /// Packets recently declared missing, which may still arrive.
    missing: VecDeque<Sent>,
}

impl SentTags {
    /// A datagram is sent. One without a `number` is counted, but not reported.
    pub fn on_sent(&mut self, now: Time, number: Option<u64>, tag: u32) {
        if self.open.len() == CANDIDATES {
            // No report came for so long that the next one must belong to another epoch.
            self.open.pop_front();
            self.forgot = true;
            self.give_up();
        }
        self.open.push_back(Sent { number, tag, at: now, seen: false });
    }

    /// Forgets the epoch: another PEP reports from now on.
    pub fn restart(&mut self) {
        (self.epoch, self.given_up) = (None, None);
        // That one may count from any packet on.
        self.forgot = true;
    }

    /// Gives up the epoch, whose sums can no longer be interpreted.
    fn give_up(&mut self) {
        if let Some(epoch) = self.epoch.take() {
            self.given_up = Some(epoch);
        }
    }

    /// Interprets a report of `packets` packets in an epoch. On an error other than [`Unlocated::GivenUp`], the PEP has to be asked
    /// for a new epoch.
    pub fn locate(&mut self, epoch: u16, packets: u32, view: &OpaqueView) -> Result<Located, Unlocated> {
        if self.given_up == Some(epoch) {
            return Err(Unlocated::GivenUp);
        }
        if self.epoch == Some(epoch) {
            let told = self.compare(packets, view);
            if told.is_err() {
                self.give_up();
            }
            return told;
        }
        let unknown = match self.align(packets, view) {
            Ok(unknown) => unknown,
            Err(error) => {
                self.epoch = None;
                self.given_up = Some(epoch);
                return Err(error);
            }
        };
        let is_first = self.epoch.is_none() && self.given_up.is_none() && !unknown;
        self.epoch = Some(epoch);
        self.given_up = None;
        let told = self.compare(packets, view);
        if told.is_err() {
            self.give_up();
        }
        Ok(Located { new_epoch: !is_first, ..told? })
    }

    /// Finds where an epoch began: `packets` were counted up to the newest one, and a few in between may be missing. Drops what was
    /// sent before; true if there was something.
    fn align(&mut self, packets: u32, view: &OpaqueView) -> Result<bool, Unlocated> {
        let nothing = if self.forgot { Unlocated::TooMany } else { Unlocated::Impossible };
        let counted = packets as usize;
        let newest = self.open.iter().rposition(|sent| sent.tag == view.newest).ok_or(nothing)?;
        let most = (newest + 1).checked_sub(counted).filter(|_| counted > 0).ok_or(nothing)?;
        let tags: Vec<u32> = self.open.iter().take(newest + 1).map(|sent| sent.tag).collect();
        let mut sums = PowerSums::default();
        tags[most..].iter().for_each(|tag| sums.insert(*tag));
        for missing in 0..=most.min(POWERS) {
            let begin = most - missing;
            if missing > 0 {
                sums.insert(tags[begin]);
            }
            if sums.missing(&view.sums, missing, &tags[begin..]).is_some() {
                self.open.drain(..begin);
                (self.settled, self.count) = (PowerSums::default(), 0);
                self.missing.clear();
                self.open.iter_mut().for_each(|sent| sent.seen = false);
                return Ok(begin > 0 || self.forgot);
            }
        }
        Err(if most > POWERS { Unlocated::TooMany } else { nothing })
    }

    fn compare(&mut self, packets: u32, view: &OpaqueView) -> Result<Located, Unlocated> {
        match self.explain(packets, view) {
            Err(Unlocated::Impossible) => {
                // A packet that was declared missing may have arrived after all.
                for place in 0..self.missing.len() {
                    let late = self.missing[place];
                    let before = (self.settled, self.count);
                    self.settled.insert(late.tag);
                    self.count = self.count.wrapping_add(1);
                    if let Ok(mut located) = self.explain(packets, view) {
                        self.missing.remove(place);
                        located.seen.extend(late.number);
                        return Ok(located);
                    }
                    (self.settled, self.count) = before;
                }
                Err(Unlocated::Impossible)
            }
            told => told,
        }
    }

    /// Changes nothing if it fails.
    fn explain(&mut self, packets: u32, view: &OpaqueView) -> Result<Located, Unlocated> {
        // The newest packet seen by the PEP bounds the search. With reordering it may not be the last one sent of those seen; then
        // packets sent after it are among the seen.
        let newest = self.open.iter().rposition(|sent| sent.tag == view.newest);
        let fresh = packets.wrapping_sub(self.count) as usize;
        let known = self.open.iter().rposition(|sent| sent.seen).map_or(0, |last| last + 1);
        let length = newest.map_or(fresh, |newest| newest + 1).max(fresh).max(known);
        if length == 0 {
            let same = view.sums == self.settled;
            return if same { Ok(Located::default()) } else { Err(Unlocated::Impossible) };
        }
        if length > self.open.len() {
            return Err(Unlocated::Impossible);
        }
        if length - fresh > POWERS {
            return Err(Unlocated::TooMany);
        }
        let candidates: Vec<u32> = self.open.iter().take(length).map(|sent| sent.tag).collect();
        let mut all = self.settled;
        for tag in &candidates {
            all.insert(*tag);
        }
        let absent = all.missing(&view.sums, length - fresh, &candidates).ok_or(Unlocated::Impossible)?;
        let mut located = Located::default();
        for (place, sent) in self.open.iter_mut().take(length).enumerate() {
            if !sent.seen && absent.binary_search(&place).is_err() {
                sent.seen = true;
                located.seen.extend(sent.number);
                located.newest_sent_at = located.newest_sent_at.max(Some(sent.at));
            }
        }
        self.settle(length, &mut located);
        Ok(located)
    }

    /// Settles packets from the front: those seen, and those missing although three later ones were seen.
    fn settle(&mut self, length: usize, located: &mut Located) {
        let mut later = self.open.iter().take(length).filter(|sent| sent.seen).count();
        for _ in 0..length {
            let Some(first) = self.open.front().copied() else { break };
            if first.seen {
                later -= 1;
                self.settled.insert(first.tag);
                self.count = self.count.wrapping_add(1);
            } else if later >= REORDERING {
                located.missing.extend(first.number);
                if self.missing.len() == POWERS {
                    self.missing.pop_front();
                }
                self.missing.push_back(first);
            } else {
                break;
            }
            self.open.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A server and the sums of a PEP. Tags are their packets' numbers, spread.
    #[derive(Default)]
    struct Rig {
        sent: SentTags,
        sums: PowerSums,
        packets: u32,
        newest: u32,
        next: u64,
    }

    fn tag(number: u64) -> u32 {
        (number as u32).wrapping_mul(0x9E37_79B1) % 0xFFFF_FFF0 + 1
    }

    impl Rig {
        fn send(&mut self) -> u64 {
            let number = self.next;
            self.next += 1;
            self.sent.on_sent(Time::from_millis(number), Some(number), tag(number));
            number
        }

        fn pass(&mut self, number: u64) {
            self.newest = tag(number);
            self.sums.insert(self.newest);
            self.packets += 1;
        }

        fn report(&mut self, epoch: u16) -> Result<Located, Unlocated> {
            let view = OpaqueView { newest: self.newest, sums: self.sums };
            self.sent.locate(epoch, self.packets, &view)
        }

        fn restart(&mut self) {
            (self.sums, self.packets, self.newest) = (PowerSums::default(), 0, 0);
        }
    }

    #[test]
    fn late_pep_is_understood_from_its_first_report() {
        for (begin, new_epoch) in [(0, false), (40, true)] {
            let mut rig = Rig::default();
            for _ in 0..100 {
                let number = rig.send();
                if number >= begin && number != 45 && number != 60 {
                    rig.pass(number);
                }
            }
            let told = rig.report(1).unwrap();
            assert_eq!(told.new_epoch, new_epoch);
            assert_eq!(told.missing, [45, 60], "from {begin}");
            let seen: Vec<u64> = (begin..100).filter(|n| *n != 45 && *n != 60).collect();
            assert_eq!(told.seen, seen);
            assert_eq!(told.newest_sent_at, Some(Time::from_millis(99)));
            assert!(!rig.report(1).unwrap().new_epoch, "once");
        }
    }

    #[test]
    fn more_than_sixteen_missing_requests_a_new_epoch() {
        let mut rig = Rig::default();
        for number in 0..60 {
            rig.send();
            if !(20..37).contains(&number) {
                rig.pass(number);
            }
            if number == 10 {
                assert_eq!(rig.report(1).unwrap().seen.len(), 11);
            }
        }
        assert_eq!(rig.report(1), Err(Unlocated::TooMany));
        assert_eq!(rig.report(1), Err(Unlocated::GivenUp));
        // The PEP is asked for a new epoch, and restarts its counting.
        rig.restart();
        for _ in 0..10 {
            let number = rig.send();
            rig.pass(number);
        }
        let told = rig.report(2).unwrap();
        assert_eq!((told.seen, told.missing, told.new_epoch), ((60..70).collect(), Vec::new(), true));
    }

    #[test]
    fn reports_of_unsent_packets_are_detected() {
        let mut rig = Rig::default();
        for _ in 0..10 {
            let number = rig.send();
            rig.pass(number);
        }
        assert_eq!(rig.report(1).unwrap().seen.len(), 10);
        rig.pass(1_000);
        assert_eq!(rig.report(1), Err(Unlocated::Impossible));
        let mut from_the_first = Rig::default();
        from_the_first.send();
        from_the_first.pass(1_000);
        assert_eq!(from_the_first.report(1), Err(Unlocated::Impossible));
    }

    #[test]
    fn packet_seen_after_reported_missing_is_counted() {
        let mut rig = Rig::default();
        for _ in 0..10 {
            let number = rig.send();
            if number != 4 {
                rig.pass(number);
            }
        }
        assert_eq!(rig.report(1).unwrap().missing, [4]);
        rig.pass(4);
        let number = rig.send();
        rig.pass(number);
        let mut seen = rig.report(1).unwrap().seen;
        seen.sort_unstable();
        assert_eq!(seen, [4, 10]);
    }

    #[test]
    fn at_most_4096_packets_are_remembered() {
        let mut rig = Rig::default();
        for _ in 0..5_000 {
            rig.send();
        }
        assert_eq!(rig.sent.open.len(), 4_096);
        // A PEP that comes now is understood, and one whose newest packet is forgotten is no liar.
        rig.pass(3);
        assert_eq!(rig.report(1), Err(Unlocated::TooMany));
        rig.restart();
        rig.pass(4_998);
        rig.pass(4_999);
        assert_eq!(rig.report(2).unwrap().seen, [4_998, 4_999]);
    }

    proptest! {
        /// Whatever is lost before the PEP or of its reports, and whenever the PEP starts or restarts: packets reported as seen
        /// were seen, packets reported as missing were not, each once, and no honest report is taken for a lie.
        #[test]
        fn reports_are_true_for_any_sequence(
            steps in prop::collection::vec((0..100u8, 0..100u8), 1..400),
            loss in 0..60u8,
            begin in 0..50usize,
        ) {
            let mut rig = Rig::default();
            let (mut told_of, mut epoch) = (std::collections::BTreeSet::new(), 1);
            let mut passed = std::collections::BTreeSet::new();
            for (step, (fate, report)) in steps.into_iter().enumerate() {
                let number = rig.send();
                if step < begin {
                    continue;
                }
                if fate >= loss {
                    rig.pass(number);
                    passed.insert(number);
                }
                if report >= 30 || rig.packets == 0 {
                    continue;
                }
                match rig.report(epoch) {
                    Ok(located) => {
                        for number in located.seen {
                            prop_assert!(passed.contains(&number) && told_of.insert(number), "{}", number);
                        }
                        for number in located.missing {
                            prop_assert!(!passed.contains(&number) && told_of.insert(number), "{}", number);
                        }
                    }
                    Err(error) => {
                        prop_assert_ne!(error, Unlocated::Impossible);
                        epoch += 1;
                        rig.restart();
                    }
                }
            }
        }
    }
}
