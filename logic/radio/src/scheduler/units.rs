//! Sets of units of a slot.

/// A set of up to [`Units::MAX`] units of a slot: resource block groups, or symbols. Bit `i` is unit `i`.
///
/// Units from [`Units::MAX`] on are never contained; inserting one has no effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Units(u128);

impl Units {
    /// Most units of a slot.
    pub const MAX: u32 = u128::BITS;
    /// The empty set.
    pub const NONE: Self = Self(0);

    /// Units 0 to `n - 1`; `n` is clamped to [`Units::MAX`].
    pub const fn first(n: u32) -> Self {
        match n {
            0 => Self::NONE,
            1..Self::MAX => Self(u128::MAX >> (Self::MAX - n)),
            _ => Self(u128::MAX),
        }
    }

    /// A single unit.
    pub const fn of(unit: u32) -> Self {
        if unit < Self::MAX { Self(1 << unit) } else { Self::NONE }
    }

    /// Number of units.
    pub const fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// Returns whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns whether `unit` is in the set.
    pub const fn contains(self, unit: u32) -> bool {
        self.0 & Self::of(unit).0 != 0
    }

    /// Adds `unit`.
    pub const fn insert(&mut self, unit: u32) {
        self.0 |= Self::of(unit).0;
    }

    /// Removes `unit`.
    pub const fn remove(&mut self, unit: u32) {
        self.0 &= !Self::of(unit).0;
    }

    /// Units in either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Units that are not in `other`.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The lowest unit.
    pub const fn lowest(self) -> Option<u32> {
        if self.is_empty() { None } else { Some(self.0.trailing_zeros()) }
    }

    /// The highest unit.
    pub const fn highest(self) -> Option<u32> {
        if self.is_empty() { None } else { Some(Self::MAX - 1 - self.0.leading_zeros()) }
    }

    /// Removes and returns the `n` lowest units, or all if there are fewer.
    pub fn take_lowest(&mut self, n: u32) -> Self {
        if n >= self.count() {
            return std::mem::take(self);
        }
        let mut rest = self.0;
        for _ in 0..n {
            rest &= rest - 1; // not zero, since more than n bits are set
        }
        let taken = self.minus(Self(rest));
        self.0 = rest;
        taken
    }

    /// The units in increasing order.
    pub fn iter(self) -> impl Iterator<Item = u32> {
        self.iter_from(0)
    }

    /// The units in increasing order from `start` on, followed by those below it.
    pub(super) fn iter_from(self, start: u32) -> impl Iterator<Item = u32> {
        let mut rest = self.0.rotate_right(start);
        std::iter::from_fn(move || {
            let distance = (rest != 0).then(|| rest.trailing_zeros())?;
            rest &= rest - 1;
            Some((distance + start) % Self::MAX)
        })
    }

    /// As bits: bit `i` is unit `i`.
    pub const fn bits(self) -> u128 {
        self.0
    }
}

impl FromIterator<u32> for Units {
    fn from_iter<I: IntoIterator<Item = u32>>(units: I) -> Self {
        units.into_iter().fold(Self::NONE, |all, unit| all.union(Self::of(unit)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_ends_of_the_range_are_in_it_and_nothing_beyond() {
        for (n, count) in [(0, 0), (1, 1), (25, 25), (127, 127), (128, 128), (129, 128), (u32::MAX, 128)] {
            assert_eq!(Units::first(n).count(), count, "{n}");
        }
        assert_eq!(Units::of(127).lowest(), Some(127));
        assert_eq!(Units::of(128), Units::NONE);
        assert_eq!((Units::NONE.lowest(), Units::NONE.highest()), (None, None));
    }

    proptest! {
        /// It behaves like the set of its numbers.
        #[test]
        fn it_behaves_as_a_set(
            a in prop::collection::btree_set(0..128u32, 0..128),
            b in prop::collection::btree_set(0..128u32, 0..128),
            n in 0..130u32,
        ) {
            let of = |set: &BTreeSet<u32>| set.iter().copied().collect::<Units>();
            let (mut x, y) = (of(&a), of(&b));
            prop_assert_eq!(x.union(y), of(&(&a | &b)));
            prop_assert_eq!(x.minus(y), of(&(&a - &b)));
            prop_assert_eq!((x.lowest(), x.highest()), (a.first().copied(), a.last().copied()));
            prop_assert!(x.iter().eq(a.iter().copied()));
            prop_assert!(x.iter_from(n % 128).eq(a.range(n % 128..).chain(a.range(..n % 128)).copied()));
            let taken = x.take_lowest(n);
            prop_assert_eq!(taken, a.iter().copied().take(n as usize).collect::<Units>());
            prop_assert_eq!(x, of(&a).minus(taken));
        }
    }
}
