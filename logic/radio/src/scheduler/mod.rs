//! The schedulers of a cell: they decide which user gets which units of a slot.
//!
//! Source: radio-model, section 7, after the schedulers of ns-3 and its module for millimetre waves. A *unit* is a
//! resource block group in frequency, or a symbol if the cell divides slots in time (FlexTti). A [`Scheduler`] serves one
//! direction of a cell. It divides the units that retransmissions and status reports leave free.
//!
//! - proportional fair: each unit goes to the candidate with the highest ratio of the bits that the unit would carry to the user's
//!   average rate; maximum C/I: the same without the average; `best_metric.rs`, `average.rs`;
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

/// Averaging window of proportional fair, in TTIs (ns-3).
const WINDOW: f64 = 99.0;

/// The rule that picks the users to be served.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policy {
    /// Users with the highest rate relative to their average.
    ProportionalFair {
        /// Averaging window in TTIs; ns-3 has 99. Less than 1 counts as 1.
        window: f64,
    },
    /// All users in turn, with equal parts.
    RoundRobin,
    /// Users with the best channel.
    MaxCi,
}

impl Policy {
    /// Proportional fair as in ns-3.
    pub const PROPORTIONAL_FAIR: Self = Self::ProportionalFair { window: WINDOW };
}

/// The share of the served users; radio-model, section 7.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Alloc {
    /// As much as they want, rounded up to whole units; the rest stays free.
    #[default]
    Queue,
    /// Everything, whatever they want; blocks are padded (ns-3).
    Full,
}

/// A user that can be given units in this slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The user's number. It should be small, since memory is allocated for all numbers up to the highest.
    pub user: u32,
    /// Bytes that suffice for everything it may send now, headers included; with 0 it gets nothing.
    pub wanted: u32,
}

/// The capacity of units. The scheduler queries it, by index of the candidate.
pub trait Channel {
    /// Bits that this unit alone would carry for this candidate; a unit that would carry 0 is not given to it.
    /// Where units are symbols, all are equal, and only one may be queried.
    fn unit_bits(&self, candidate: usize, unit: u32) -> f32;

    /// Bytes of the transport block on these units. It may decrease when units are added (for example if the worst unit sets the
    /// MCS); units are not taken back then.
    fn block_bytes(&self, candidate: usize, units: Units) -> u32;

    /// [`Self::unit_bits`] of units 0 to `bits.len() - 1` at once, for speed; includes units that are not free.
    fn unit_bits_of(&self, candidate: usize, bits: &mut [f32]) {
        for (unit, bits) in (0..).zip(bits) {
            *bits = self.unit_bits(candidate, unit);
        }
    }
}

/// Units granted to a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Index of the candidate.
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
    /// Whether a candidate leaves once it has what it wants.
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
    /// By user number: the slot after the one in which it was last granted units; 0 for never.
    served: Vec<u64>,
    best_metric: BestMetric,
    round_robin: RoundRobin,
}

impl Scheduler {
    /// A scheduler that has served nobody. With `units_are_symbols`, units are symbols, which are all equal;
    /// otherwise they are parts of the band.
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

    /// Divides the `free` units of slot `tti` among candidates, which are sorted by user number without duplicates. Appends
    /// grants to `grants`: at most one per candidate, non-empty, disjoint, within `free`, in no particular order.
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
            // A single candidate gets the same under all policies, and round robin is the cheapest.
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

    /// Returns whether [`Self::allocate_looking`] applies.
    pub fn looks(&self) -> bool {
        let fair = matches!(self.policy, Policy::ProportionalFair { .. });
        fair && self.alloc == Alloc::Full && !self.units_are_symbols
    }

    /// Like [`Self::allocate`] with [`Policy::ProportionalFair`] and [`Alloc::Full`] over frequency, for channels that are costly
    /// to evaluate: `look` writes the bits that each unit would carry for a candidate, at most `most`, and is called only for
    /// candidates that could get something. The grants are the same as if it were called for all.
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

    /// Records which users were served.
    fn note(&mut self, tti: u64, candidates: &[Candidate], grants: &[Grant]) {
        for grant in grants {
            let user = candidates[grant.candidate].user as usize;
            if user >= self.served.len() {
                self.served.resize(user + 1, 0);
            }
            self.served[user] = tti.saturating_add(1);
        }
    }

    /// Adds the bits sent to a user in slot `tti`, new data and retransmissions, to the average of proportional
    /// fair. Repeated calls for a slot add up. Users that were sent nothing need no call.
    pub fn on_sent(&mut self, tti: u64, user: u32, bits: u32) {
        self.averages.add(tti, user, bits);
    }

    /// Resets a user that left or whose history no longer applies.
    pub fn forget(&mut self, user: u32) {
        self.averages.forget(user);
        if let Some(served) = self.served.get_mut(user as usize) {
            *served = 0;
        }
    }

    /// Average rate of a user before slot `tti`, in bits per TTI: `T_u`. At least 0.008, the initial value.
    /// The other policies keep it over 99 TTIs without using it.
    pub fn average(&self, tti: u64, user: u32) -> f64 {
        self.averages.at(tti, user)
    }
}
