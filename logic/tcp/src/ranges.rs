//! Received ranges beyond the next expected byte.

use std::collections::VecDeque;

/// Number of ranges at the end that are checked one by one before the others are searched.
const LAST: usize = 4;

/// Disjoint ranges in increasing order. The common cases, growing the last one and filling the first hole, cost O(1).
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges {
    ranges: VecDeque<(u64, u64)>,
}

impl Ranges {
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Adds `[from, to)` and returns the range that now contains it, and whether any of it is new.
    pub fn insert(&mut self, from: u64, to: u64) -> ((u64, u64), bool) {
        // The first range that ends at or after `from` may merge with it.
        let index = match self.ranges.back() {
            Some(&(_, end)) if end < from => self.ranges.len(),
            Some(&(start, _)) if start <= from => self.ranges.len() - 1,
            _ => self.ranges.partition_point(|&(_, end)| end < from),
        };
        let (mut merged, mut new) = ((from, to), true);
        if let Some(&(start, end)) = self.ranges.get(index)
            && start <= to
        {
            new = !(start <= from && to <= end);
            merged = (start.min(from), end.max(to));
            self.ranges[index] = merged;
            // Merge later ranges that it now touches.
            while let Some(&(start, end)) = self.ranges.get(index + 1)
                && start <= merged.1
            {
                merged.1 = merged.1.max(end);
                self.ranges[index] = merged;
                self.ranges.remove(index + 1);
            }
        } else {
            self.ranges.insert(index, merged);
        }
        (merged, new)
    }

    /// Removes ranges that begin at or below `next` and returns the next missing byte.
    pub fn advance(&mut self, mut next: u64) -> u64 {
        while let Some(&(start, end)) = self.ranges.front()
            && start <= next
        {
            next = next.max(end);
            self.ranges.pop_front();
        }
        next
    }

    /// The range that contains `seq`.
    pub fn containing(&self, seq: u64) -> Option<(u64, u64)> {
        // Queries are mostly for one of the last ranges.
        for &(start, end) in self.ranges.iter().rev().take(LAST) {
            if start <= seq {
                return (seq < end).then_some((start, end));
            }
        }
        let index = self.ranges.partition_point(|&(_, end)| end <= seq);
        self.ranges.get(index).copied().filter(|&(start, _)| start <= seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equals_a_set_of_bytes(steps in vec((0..60_u64, 1..10_u64), 0..40)) {
            let (mut ranges, mut set, mut next) = (Ranges::default(), std::collections::BTreeSet::new(), 0);
            for (from, length) in steps {
                let from = from.max(next);
                let new = (from..from + length).any(|byte| !set.contains(&byte));
                set.extend(from..from + length);
                if from <= next {
                    next = ranges.advance((from + length).max(next));
                } else {
                    let (merged, was_new) = ranges.insert(from, from + length);
                    prop_assert_eq!(new, was_new);
                    prop_assert!((merged.0..merged.1).all(|byte| set.contains(&byte)));
                    prop_assert!(!set.contains(&merged.1) && !set.contains(&(merged.0 - 1)));
                    prop_assert_eq!(ranges.containing(from), Some(merged));
                }
                prop_assert_eq!(next, (0..).find(|byte| !set.contains(byte)).unwrap());
            }
        }
    }
}
