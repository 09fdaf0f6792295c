//! Proportional fair and maximum C/I: each unit goes to the candidate with the highest metric on it.
//!
//! Source: radio-model, section 7, after the schedulers of ns-3. The metric of a candidate on a unit is `R_u / T_u` for
//! proportional fair and `R_u` for maximum C/I, where `R_u` is the bits that the unit alone would carry. Units are allocated in
//! order of number. With [`super::Alloc::Queue`], a candidate leaves once the block on its units carries what it wants; units
//! that nobody wants stay free. Symbols are equal, so the best candidate gets the first of them until it leaves, or all.
//! Ours, where the source is silent: among equal metrics the user served least recently wins, then the lowest number; a unit
//! without use to any candidate stays free.
//!
//! Metrics are stored in columns, one per unit, so that the maximum is found with vector instructions. A candidate that leaves is
//! zeroed in the remaining columns, so that the run time does not depend on who leaves when.

use super::{Candidate, Channel, Grant, Slot, Units};

/// Columns are padded to a multiple of this.
const LANES: usize = 16;

/// Up to this many candidates the algorithm for few is used.
const FEW: usize = 12;

/// Scratch buffers, kept to save allocations.
#[derive(Clone, Debug, Default)]
pub(super) struct BestMetric {
    /// A candidate's metric is at `column * stride + candidate`; columns are padded with zeros up to the stride.
    metrics: Vec<f32>,
    /// Units of each candidate.
    held: Vec<Units>,
}

impl BestMetric {
    /// `weight` scales a candidate's bits; `served` orders users by when they were last served.
    pub fn allocate<C: Channel>(
        &mut self,
        slot: &Slot<'_, C>,
        weight: impl Fn(&Candidate) -> f32,
        served: impl Fn(&Candidate) -> u64,
        grants: &mut Vec<Grant>,
    ) {
        let &Slot { candidates, channel, free, until_sated, alike, .. } = slot;
        let before = grants.len();
        if candidates.len() <= FEW && !until_sated && !alike {
            return self.among_few(slot, weight, served, grants);
        }
        let columns = if alike { free.lowest().map_or(Units::NONE, Units::of) } else { free };
        let stride = self.fill(candidates, channel, columns, weight);
        self.held.clear();
        self.held.resize(candidates.len(), Units::NONE);

        // With symbols there is a single column, and the best candidate remains the best until it leaves.
        let (mut column, mut winner) = (0, None);
        for unit in free.iter() {
            let metrics = &mut self.metrics[column * stride..];
            if !alike || winner.is_none() {
                winner = best(&metrics[..stride], |candidate| served(&candidates[candidate]));
            }
            if let Some(best) = winner {
                let held = &mut self.held[best];
                if held.is_empty() {
                    grants.push(Grant { candidate: best, units: Units::NONE });
                }
                held.insert(unit);
                if until_sated && channel.block_bytes(best, *held) >= candidates[best].wanted {
                    metrics.iter_mut().skip(best).step_by(stride).for_each(|metric| *metric = 0.0);
                    winner = None;
                }
            }
            column += usize::from(!alike);
        }
        for grant in &mut grants[before..] {
            grant.units = self.held[grant.candidate];
        }
    }

    /// Like [`Self::allocate`], for a few candidates that do not leave: compares candidates one by one, which is faster than mostly
    /// empty columns.
    fn among_few<C: Channel>(
        &mut self,
        slot: &Slot<'_, C>,
        weight: impl Fn(&Candidate) -> f32,
        served: impl Fn(&Candidate) -> u64,
        grants: &mut Vec<Grant>,
    ) {
        let &Slot { candidates, channel, free, .. } = slot;
        let mut best = Best::default();
        let mut row = [0.0f32; Units::MAX as usize];
        let row = &mut row[..width(free)];
        for (index, candidate) in candidates.iter().enumerate() {
            let factor = if candidate.wanted > 0 { weight(candidate) } else { 0.0 };
            channel.unit_bits_of(index, row);
            best.compare(row, factor, index, served(candidate));
        }
        self.give(&best, candidates.len(), free, grants);
    }

    /// Like [`Self::allocate`], for candidates that do not leave and whose channels are unknown until `look` writes the bits of their
    /// units. It looks only at candidates that could win a unit if each of theirs carried `most` bits. The grants are the same as if
    /// it looked at all of them.
    pub fn allocate_looking(
        &mut self,
        (candidates, free, most): (&[Candidate], Units, f32),
        weight: impl Fn(&Candidate) -> f32,
        served: impl Fn(&Candidate) -> u64,
        mut look: impl FnMut(usize, &mut [f32]),
        grants: &mut Vec<Grant>,
    ) {
        let mut best = Best::default();
        let mut row = [0.0f32; Units::MAX as usize];
        let row = &mut row[..width(free)];
        // Upper bounds on the metrics; -1 for candidates already looked at.
        self.metrics.clear();
        let bound =
            |candidate: &Candidate| if candidate.wanted > 0 { most * weight(candidate) } else { -1.0 };
        self.metrics.extend(candidates.iter().map(bound));
        while let Some((index, bound)) = highest(&self.metrics) {
            if bound < 0.0 || bound < best.least(free) {
                break;
            }
            self.metrics[index] = -1.0;
            let candidate = &candidates[index];
            look(index, row);
            best.compare(row, weight(candidate), index, served(candidate));
        }
        self.give(&best, candidates.len(), free, grants);
    }

    /// Gives each unit to its owner, in order of units.
    fn give(&mut self, best: &Best, candidates: usize, free: Units, grants: &mut Vec<Grant>) {
        self.held.clear();
        self.held.resize(candidates, Units::NONE);
        let before = grants.len();
        for unit in free.iter() {
            let Some((candidate, _)) = best.owners[unit as usize] else { continue };
            let held = &mut self.held[candidate as usize];
            if held.is_empty() {
                grants.push(Grant { candidate: candidate as usize, units: Units::NONE });
            }
            held.insert(unit);
        }
        for grant in &mut grants[before..] {
            grant.units = self.held[grant.candidate];
        }
    }

    /// Computes all metrics and returns the distance between columns.
    fn fill<C: Channel>(
        &mut self,
        candidates: &[Candidate],
        channel: &C,
        columns: Units,
        weight: impl Fn(&Candidate) -> f32,
    ) -> usize {
        // An odd number of cache lines, so that columns do not compete for the same cache sets.
        let stride = LANES * (candidates.len().div_ceil(LANES) | 1);
        let (first, width) = (columns.lowest().unwrap_or(0), columns.highest().map_or(0, |unit| unit + 1));
        let needed = columns.count() as usize * stride;
        if self.metrics.len() != needed {
            self.metrics.resize(needed, 0.0);
        }
        let mut numbers = [0u8; Units::MAX as usize];
        for (number, unit) in numbers.iter_mut().zip(columns.iter()) {
            *number = unit as u8; // less than 128
        }
        let mut row = [0.0; Units::MAX as usize];
        for (index, candidate) in candidates.iter().enumerate() {
            let factor = if candidate.wanted > 0 { weight(candidate) } else { 0.0 };
            if columns.count() == 1 {
                self.metrics[index] = channel.unit_bits(index, first) * factor;
                continue;
            }
            channel.unit_bits_of(index, &mut row[..width as usize]);
            for (column, &unit) in self.metrics.chunks_exact_mut(stride).zip(&numbers) {
                column[index] = row[usize::from(unit & 127)] * factor;
            }
        }
        for column in self.metrics.chunks_exact_mut(stride) {
            column[candidates.len()..].fill(0.0);
        }
        stride
    }
}

/// Number of units from 0 on that includes all of these.
fn width(units: Units) -> usize {
    units.highest().map_or(0, |unit| unit as usize + 1)
}

/// The best candidate so far, by unit.
struct Best {
    tops: [f32; Units::MAX as usize],
    /// Index of the candidate, and when it was last served.
    owners: [Option<(u32, u64)>; Units::MAX as usize],
}

impl Default for Best {
    fn default() -> Self {
        Self { tops: [0.0; Units::MAX as usize], owners: [None; Units::MAX as usize] }
    }
}

impl Best {
    /// Adds a candidate. The order of calls does not matter: among equal metrics the candidate served longest ago wins, then the one
    /// with the lower index.
    fn compare(&mut self, row: &[f32], factor: f32, index: usize, served: u64) {
        let index = index as u32; // less than the number of users in a cell
        for ((bits, top), owner) in row.iter().zip(&mut self.tops).zip(&mut self.owners) {
            let metric = bits * factor;
            let ahead = || owner.is_some_and(|(other, when)| (served, index) < (when, other));
            if metric > *top || (metric == *top && ahead()) {
                (*top, *owner) = (metric, Some((index, served)));
            }
        }
    }

    /// The lowest of the best metrics on these units.
    fn least(&self, units: Units) -> f32 {
        units.iter().map(|unit| self.tops[unit as usize]).fold(f32::INFINITY, f32::min)
    }
}

/// Index and value of the maximum; the first of equal ones.
fn highest(values: &[f32]) -> Option<(usize, f32)> {
    let top = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    values.iter().position(|value| *value == top).map(|index| (index, top))
}

/// Index of the highest metric above zero; among equal ones the candidate `served` longest ago, then the first.
fn best(metrics: &[f32], served: impl Fn(usize) -> u64) -> Option<usize> {
    let mut tops = [0.0f32; LANES];
    for chunk in metrics.chunks_exact(LANES) {
        for (top, &metric) in tops.iter_mut().zip(chunk) {
            *top = if metric > *top { metric } else { *top };
        }
    }
    let top = tops.into_iter().fold(0.0, |top, metric| if metric > top { metric } else { top });
    if top == 0.0 {
        return None;
    }
    let mut found: Option<(usize, u64)> = None;
    for (start, chunk) in (0..).step_by(LANES).zip(metrics.chunks_exact(LANES)) {
        if chunk.iter().fold(false, |any, &metric| any | (metric == top)) {
            for (index, _) in (start..).zip(chunk).filter(|&(_, &metric)| metric == top) {
                let when = served(index);
                if found.is_none_or(|(_, earliest)| when < earliest) {
                    found = Some((index, when));
                }
            }
        }
    }
    found.map(|(index, _)| index)
}
