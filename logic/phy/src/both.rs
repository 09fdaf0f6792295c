//! A value for each direction.

use core::ops::{Index, IndexMut};

use crate::Direction;

/// A value for each direction of a carrier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Both<T> {
    /// From the base station to the UE.
    pub downlink: T,
    /// From the UE to the base station.
    pub uplink: T,
}

impl<T> Both<T> {
    /// Calls a function for each direction.
    pub fn of(mut each: impl FnMut(Direction) -> T) -> Self {
        Self { downlink: each(Direction::Downlink), uplink: each(Direction::Uplink) }
    }

    /// Applies a function to each value.
    pub fn map<U>(self, mut each: impl FnMut(T) -> U) -> Both<U> {
        Both { downlink: each(self.downlink), uplink: each(self.uplink) }
    }
}

impl<T> Index<Direction> for Both<T> {
    type Output = T;
    #[inline]
    fn index(&self, direction: Direction) -> &T {
        match direction {
            Direction::Downlink => &self.downlink,
            Direction::Uplink => &self.uplink,
        }
    }
}

impl<T> IndexMut<Direction> for Both<T> {
    #[inline]
    fn index_mut(&mut self, direction: Direction) -> &mut T {
        match direction {
            Direction::Downlink => &mut self.downlink,
            Direction::Uplink => &mut self.uplink,
        }
    }
}
