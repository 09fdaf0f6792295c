//! The schedulers of a cell: who gets which units of a slot.
//!
//! Source: radio-model, section 7, after the schedulers of ns-3 and its module for millimetre waves. A *unit* is a
//! resource block group in frequency, or a symbol where a cell divides slots in time (FlexTti). One [`Scheduler`] serves
//! one direction of a cell. Retransmissions and status reports have taken theirs before: it divides what they leave free.
//!
//! - proportional fair: each unit to the candidate of the highest ratio of what the unit would carry to what the user was
//!   sent on average; maximum C/I: the same without the average; `best_metric.rs`, `average.rs`;
//! - round robin: equal parts, in turn; `round_robin.rs`.
//!
//! ```
//! use ranpace_radio::scheduler::{Alloc, Candidate, Channel, Policy, Scheduler, Units};
//!
//! struct Flat; // every unit carries 70 bytes for everybody
//! impl Channel for Flat {
//!     fn unit_bits(&self, _: usize, _: u32) -> f32 {
//!         560.0
//!     }
//!     fn block_bytes(&self, _: usize, units: Units) -> u32 {
//!         70 * units.count()
//!     }
//! }
//!
//! let mut scheduler = Scheduler::new(Policy::RoundRobin, Alloc::Queue, false);
//! let candidates = [Candidate { user: 0, wanted: 100 }, Candidate { user: 1, wanted: 100_000 }];
//! let mut grants = Vec::new();
//! scheduler.allocate(0, &candidates, &Flat, Units::first(13), &mut grants);
//! let counts: Vec<u32> = grants.iter().map(|grant| grant.units.count()).collect();
//! assert_eq!(counts, [2, 11]); // the first has enough with two
//! ```

mod average;
mod best_metric;
mod round_robin;
#[cfg(test)]
mod tests;
mod units;

pub use units::Units;

use average::Averages;
use best_metric::BestMetric;
use round_robin::RoundRobin;

/// Length of proportional fair's average, in TTIs (ns-3).
const WINDOW: f64 = 99.0;

/// Which users are served.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policy {
    /// Who is best compared to what it was sent on average.
    ProportionalFair {
        /// Length of the average in TTIs; ns-3 has 99. Less than one counts as one.
        window: f64,
    },
    /// Everybody in turn, with equal parts.
    RoundRobin,
    /// Who has the best channel.
    MaxCi,
}

impl Policy {
    /// Proportional fair as ns-3 has it.
    pub const PROPORTIONAL_FAIR: Self = Self::ProportionalFair { window: WINDOW };
}

/// How much those who are served get; radio-model, section 7.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Alloc {
    /// What they want, rounded up to a unit; the rest stays free.
    #[default]
    Queue,
    /// All there is, whatever they want; blocks are padded (ns-3).
    Full,
}

/// Somebody who can be given units in this slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The user's number. Numbers are small: there is memory for every number up to the highest.
    pub user: u32,
    /// Bytes that would take all that it may send now, headers included; above zero, or it gets nothing.
    pub wanted: u32,
}

/// What units would carry; asked by the scheduler. Candidates are meant by their index.
pub trait Channel {
    /// Bits that this unit alone would carry for this candidate; 0 if it is of no use, and then it will not get it.
    /// Where units are symbols, all are alike, and only one may be asked for.
    fn unit_bits(&self, candidate: usize, unit: u32) -> f32;

    /// Bytes of the transport block on these units. It may fall when units are added (as when the MCS is that of the
    /// worst of them): units are not taken back then.
    fn block_bytes(&self, candidate: usize, units: Units) -> u32;

    /// [`Self::unit_bits`] of units 0 to `bits.len() - 1`, all at once, for speed; also of units that are not free.
    fn unit_bits_of(&self, candidate: usize, bits: &mut [f32]) {
        for (unit, bits) in (0..).zip(bits) {
            *bits = self.unit_bits(candidate, unit);
        }
    }
}

/// What a candidate gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Its index.
    pub candidate: usize,
    /// Its units; at least one.
    pub units: Units,
}

/// The slot to be divided.
struct Slot<'a, C> {
    tti: u64,
    candidates: &'a [Candidate],
    channel: &'a C,
    free: Units,
    /// Whether a candidate leaves when it has what it wants.
    until_sated: bool,
    /// Whether units are symbols.
    alike: bool,
}

/// The scheduler of one direction of a cell. See the [module](self).
#[derive(Clone, Debug)]
pub struct Scheduler {
    policy: Policy,
    alloc: Alloc,
    units_are_symbols: bool,
    averages: Averages,
    /// By user number: the slot after the last one in which it was granted units; 0 for never.
    served: Vec<u64>,
    best_metric: BestMetric,
    round_robin: RoundRobin,
}

impl Scheduler {
    /// A scheduler that has served nobody. With `units_are_symbols`, a unit is a symbol and one is as good as another;
    /// otherwise it is a part of the band.
    pub fn new(policy: Policy, alloc: Alloc, units_are_symbols: bool) -> Self {
        let window = if let Policy::ProportionalFair { window } = policy { window } else { WINDOW };
        Self {
            policy,
            alloc,
            units_are_symbols,
            averages: Averages::new(window),
            served: Vec::new(),
            best_metric: BestMetric::default(),
            round_robin: RoundRobin::default(),
        }
    }

    /// Divides the `free` units of slot `tti` among candidates, which are sorted by user number, each user once. Appends
    /// the grants to `grants`: at most one for a candidate, none empty, disjoint, within `free`, in no particular order.
    pub fn allocate(
        &mut self,
        tti: u64,
        candidates: &[Candidate],
        channel: &impl Channel,
        free: Units,
        grants: &mut Vec<Grant>,
    ) {
        debug_assert!(candidates.is_sorted_by_key(|candidate| candidate.user));
        if candidates.is_empty() || free.is_empty() {
            return;
        }
        let before = grants.len();
        let (until_sated, alike) = (self.alloc == Alloc::Queue, self.units_are_symbols);
        let slot = Slot { tti, candidates, channel, free, until_sated, alike };
        let served = |candidate: &Candidate| self.served.get(candidate.user as usize).copied().unwrap_or(0);
        match self.policy {
            // Who is alone gets the same under all policies, and round robin has the least to compute.
            _ if candidates.len() == 1 => self.round_robin.allocate(&slot, grants),
            Policy::ProportionalFair { .. } => {
                let weight = |candidate: &Candidate| (1.0 / self.averages.at(tti, candidate.user)) as f32;
                self.best_metric.allocate(&slot, weight, served, grants);
            }
            Policy::MaxCi => self.best_metric.allocate(&slot, |_| 1.0, served, grants),
            Policy::RoundRobin => self.round_robin.allocate(&slot, grants),
        }
        self.note(tti, candidates, &grants[before..]);
    }

    /// Whether [`Self::allocate_looking`] is for it.
    pub fn looks(&self) -> bool {
        let fair = matches!(self.policy, Policy::ProportionalFair { .. });
        fair && self.alloc == Alloc::Full && !self.units_are_symbols
    }

    /// As [`Self::allocate`] with [`Policy::ProportionalFair`] and [`Alloc::Full`] over frequency, for channels that it costs
    /// something to look at: `look` writes the bits that each unit would carry for a candidate, `most` at most, and is asked
    /// only of those who could get something. The grants are the same as if all had been looked at.
    pub fn allocate_looking(
        &mut self,
        tti: u64,
        candidates: &[Candidate],
        (free, most): (Units, f32),
        look: impl FnMut(usize, &mut [f32]),
        grants: &mut Vec<Grant>,
    ) {
        debug_assert!(self.looks() && candidates.is_sorted_by_key(|candidate| candidate.user));
        if candidates.is_empty() || free.is_empty() {
            return;
        }
        let before = grants.len();
        let served = |candidate: &Candidate| self.served.get(candidate.user as usize).copied().unwrap_or(0);
        let weight = |candidate: &Candidate| (1.0 / self.averages.at(tti, candidate.user)) as f32;
        self.best_metric.allocate_looking((candidates, free, most), weight, served, look, grants);
        self.note(tti, candidates, &grants[before..]);
    }

    /// Remembers who was served.
    fn note(&mut self, tti: u64, candidates: &[Candidate], grants: &[Grant]) {
        for grant in grants {
            let user = candidates[grant.candidate].user as usize;
            if user >= self.served.len() {
                self.served.resize(user + 1, 0);
            }
            self.served[user] = tti.saturating_add(1);
        }
    }

    /// Tells what a user was sent in slot `tti`, new data and retransmissions, in bits: the average of proportional fair
    /// follows it. More than one call for a slot add up. Those who were sent nothing need no call.
    pub fn on_sent(&mut self, tti: u64, user: u32, bits: u32) {
        self.averages.add(tti, user, bits);
    }

    /// Forgets a user: it left, or what is known of it counts no more.
    pub fn forget(&mut self, user: u32) {
        self.averages.forget(user);
        if let Some(served) = self.served.get_mut(user as usize) {
            *served = 0;
        }
    }

    /// What a user was sent on average before slot `tti`, in bits per TTI: `T_u`. At least 0.008, with which all begin.
    /// The policies other than proportional fair keep it over 99 TTIs, and do not look at it.
    pub fn average(&self, tti: u64, user: u32) -> f64 {
        self.averages.at(tti, user)
    }
}
