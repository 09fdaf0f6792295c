//! The HARQ processes of one user in one direction.

use std::collections::VecDeque;

use super::HarqConfig;

/// A HARQ process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Process(u8);

impl Process {
    /// Its number, from 0.
    pub const fn number(self) -> u8 {
        self.0
    }
}

/// A set of processes, in order of number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Processes(u64);

impl Iterator for Processes {
    type Item = Process;

    #[inline]
    fn next(&mut self) -> Option<Process> {
        let first = (self.0 != 0).then(|| Process(self.0.trailing_zeros() as u8))?;
        self.0 &= self.0 - 1;
        Some(first)
    }
}

/// Random numbers of one attempt, each uniform in [0, 1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Draw {
    /// The block is not decoded if this is below the block error rate.
    pub error: f64,
    /// A failure is misread as success if this is below [`HarqConfig::misreading`].
    pub misreading: f64,
}

impl Draw {
    /// A draw for errors in which no failure is misread.
    pub const fn of(error: f64) -> Self {
        Self { error, misreading: 1.0 }
    }
}

/// Result of a transmission. The simulation knows it at once; RLC gets the block from [`Harq::outcome`], and
/// the sender learns it after [`HarqConfig::feedback`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// Decoded.
    Decoded,
    /// Not decoded; the process will be due again.
    Failed,
    /// Not decoded at the last attempt, or the failure was misread: the block is lost.
    Lost,
}

/// A block that leaves HARQ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<T> {
    /// It was decoded.
    Decoded(T),
    /// It is lost for good. Only the simulation knows; RLC is not told.
    Lost(T),
}

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HarqCounters {
    /// Blocks sent for the first time.
    pub blocks: u64,
    /// Retransmissions.
    pub retransmissions: u64,
    /// Blocks that were never decoded.
    pub lost: u64,
}

struct Slot<T> {
    content: Option<T>,
    /// The TTI of the latest transmission.
    sent: u64,
    attempts: u8,
    /// Sum of the SINRs of the attempts so far, as ratios.
    sinr: f64,
}

/// The HARQ processes of one user in one direction; `T` is the content of a block and its grant.
pub struct Harq<T> {
    config: HarqConfig,
    slots: Vec<Slot<T>>,
    /// Processes that can take a new block, as bits.
    free: u64,
    /// Processes that must retransmit, as bits.
    waiting: u64,
    /// When finished processes become free, in order of time.
    releases: VecDeque<(u64, u8)>,
    /// Blocks about to leave, in order of time.
    outcomes: VecDeque<(u64, Outcome<T>)>,
    /// When the first of them leaves; `u64::MAX` if there is none.
    next_outcome: u64,
    counters: HarqCounters,
}

impl<T> Harq<T> {
    /// Idle processes.
    pub fn new(config: HarqConfig) -> Self {
        let processes = config.processes.clamp(1, 64);
        let config = HarqConfig { processes, turnaround: config.turnaround.max(1), ..config };
        let slot = || Slot { content: None, sent: 0, attempts: 0, sinr: 0.0 };
        Self {
            config,
            slots: std::iter::repeat_with(slot).take(processes.into()).collect(),
            free: u64::MAX >> (64 - u32::from(processes)),
            waiting: 0,
            releases: VecDeque::new(),
            outcomes: VecDeque::new(),
            next_outcome: u64::MAX,
            counters: HarqCounters::default(),
        }
    }

    /// Its configuration after clamping.
    pub fn config(&self) -> &HarqConfig {
        &self.config
    }

    /// A process that can take a new block in this TTI; `None` if all are busy. TTIs must not decrease.
    #[inline]
    pub fn free(&mut self, tti: u64) -> Option<Process> {
        while let Some(&(at, process)) = self.releases.front() {
            if at > tti {
                break;
            }
            self.releases.pop_front();
            self.free |= 1 << process;
        }
        (self.free != 0).then(|| Process(self.free.trailing_zeros() as u8))
    }

    /// Returns whether a new block can be sent in this TTI.
    #[inline]
    pub fn is_free(&mut self, tti: u64) -> bool {
        self.free(tti).is_some()
    }

    /// Number of processes that can take a new block in this TTI, if nothing is sent before.
    pub fn count_free(&self, tti: u64) -> usize {
        let released = self.releases.iter().take_while(|(at, _)| *at <= tti).count();
        self.free.count_ones() as usize + released
    }

    /// Processes that must retransmit and may do so in this TTI, in order of number. Those not sent remain due.
    #[inline]
    pub fn due(&self, tti: u64) -> Processes {
        let (turnaround, synchronous) = (self.config.turnaround, self.config.synchronous);
        let is_due = |process: &Process| {
            let passed = tti.saturating_sub(self.slots[usize::from(process.0)].sent);
            passed >= turnaround && (!synchronous || passed.is_multiple_of(turnaround))
        };
        if self.waiting == 0 {
            return Processes(0);
        }
        Processes(Processes(self.waiting).filter(is_due).fold(0, |bits, process| bits | 1 << process.0))
    }

    /// Returns whether any process must retransmit, now or later.
    #[inline]
    pub fn must_repeat(&self) -> bool {
        self.waiting != 0
    }

    /// The next TTI, from `tti` on, in which a process is due; `None` if none must retransmit.
    pub fn next_due(&self, tti: u64) -> Option<u64> {
        if self.waiting == 0 {
            return None;
        }
        let turnaround = self.config.turnaround;
        let due = |number: usize| {
            let first = self.slots[number].sent.saturating_add(turnaround);
            let late = tti.saturating_sub(first);
            let steps = if self.config.synchronous { late.next_multiple_of(turnaround) } else { late };
            first.saturating_add(steps)
        };
        (0..self.slots.len()).filter(|number| self.waiting >> number & 1 == 1).map(due).min()
    }

    /// Content of the block of a process, while it awaits retransmission.
    pub fn content(&self, process: Process) -> Option<&T> {
        self.slots.get(usize::from(process.0))?.content.as_ref()
    }

    /// Sends a new block. `bler` is the error rate at an SINR in dB. `None` if the process is not free in this TTI; `content` is
    /// then dropped.
    pub fn send(
        &mut self,
        tti: u64,
        process: Process,
        content: T,
        sinr_db: f64,
        draw: Draw,
        bler: impl FnOnce(f64) -> f64,
    ) -> Option<Attempt> {
        self.free(tti);
        let bit = 1u64.checked_shl(process.0.into()).unwrap_or(0);
        if self.free & bit == 0 {
            return None;
        }
        self.free &= !bit;
        let slot = self.slots.get_mut(usize::from(process.0))?;
        *slot = Slot { content: Some(content), sent: tti, attempts: 0, sinr: 0.0 };
        self.counters.blocks += 1;
        self.attempt(tti, process, sinr_db, draw, bler)
    }

    /// Retransmits the block of a process. `bler` is evaluated at the combined SINR of all attempts. `None` if the process is
    /// not due in this TTI.
    pub fn send_again(
        &mut self,
        tti: u64,
        process: Process,
        sinr_db: f64,
        draw: Draw,
        bler: impl FnOnce(f64) -> f64,
    ) -> Option<Attempt> {
        if !self.due(tti).any(|due| due == process) {
            return None;
        }
        self.waiting &= !(1 << process.0);
        self.counters.retransmissions += 1;
        self.attempt(tti, process, sinr_db, draw, bler)
    }

    fn attempt(
        &mut self,
        tti: u64,
        process: Process,
        sinr_db: f64,
        draw: Draw,
        bler: impl FnOnce(f64) -> f64,
    ) -> Option<Attempt> {
        let slot = self.slots.get_mut(usize::from(process.0))?;
        let combined_db = if slot.sinr > 0.0 { to_db(slot.sinr + from_db(sinr_db)) } else { sinr_db };
        slot.sent = tti;
        let attempt = if draw.error >= bler(combined_db) {
            Attempt::Decoded
        } else if slot.attempts >= self.config.max_retransmissions || draw.misreading < self.config.misreading
        {
            Attempt::Lost
        } else {
            slot.attempts += 1;
            slot.sinr += from_db(sinr_db);
            self.waiting |= 1 << process.0;
            return Some(Attempt::Failed);
        };
        let content = slot.content.take()?;
        let outcome = if attempt == Attempt::Lost {
            self.counters.lost += 1;
            Outcome::Lost(content)
        } else {
            Outcome::Decoded(content)
        };
        let leaves = tti.saturating_add(self.config.decode);
        self.next_outcome = self.next_outcome.min(leaves);
        self.outcomes.push_back((leaves, outcome));
        self.releases.push_back((tti.saturating_add(self.config.turnaround), process.0));
        Some(attempt)
    }

    /// The next block that leaves by this TTI; call it until it returns `None`.
    #[inline]
    pub fn outcome(&mut self, tti: u64) -> Option<Outcome<T>> {
        if self.next_outcome > tti {
            return None;
        }
        let first = self.outcomes.pop_front();
        self.next_outcome = self.outcomes.front().map_or(u64::MAX, |(at, _)| *at);
        first.map(|(_, outcome)| outcome)
    }

    /// The TTI in which the next block leaves; `None` if none is about to leave.
    #[inline]
    pub fn next_outcome(&self) -> Option<u64> {
        self.outcomes.front().map(|outcome| outcome.0)
    }

    /// Returns whether no block is under way or about to leave.
    pub fn is_idle(&self) -> bool {
        self.waiting == 0 && self.outcomes.is_empty()
    }

    /// Drops all blocks, as a handover does, including decoded ones that have not left yet.
    pub fn clear(&mut self, mut lost: impl FnMut(T)) {
        for (_, outcome) in self.outcomes.drain(..) {
            let (Outcome::Decoded(content) | Outcome::Lost(content)) = outcome;
            lost(content);
        }
        for content in self.slots.iter_mut().filter_map(|slot| slot.content.take()) {
            lost(content);
        }
        self.waiting = 0;
        self.next_outcome = u64::MAX;
        self.releases.clear();
        self.free = u64::MAX >> (64 - u32::from(self.config.processes));
    }

    /// Its counters.
    pub fn counters(&self) -> &HarqCounters {
        &self.counters
    }
}

fn from_db(db: f64) -> f64 {
    libm::exp10(db / 10.0)
}

fn to_db(linear: f64) -> f64 {
    10.0 * libm::log10(linear)
}
