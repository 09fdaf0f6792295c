//! A receive window that is safe to advertise.
//!
//! Sources: RFC 9293 section 3.8.6.2.1 (do not shrink), RFC 7323 section 2 (scale). Ours: the wanted window is rounded down to
//! whole units and the promised one up, so that rounding never takes back a promise.

use ranpace_units::Bytes;

/// The largest value of a segment's window field.
const LARGEST: u64 = u16::MAX as u64;
/// The largest shift; RFC 7323 section 2.3.
const LARGEST_SHIFT: u8 = 14;

/// The right edge of an advertised window, in bytes of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RightEdge {
    /// The first byte beyond the advertised window.
    edge: u64,
    shift: u8,
    shrink: bool,
}

impl RightEdge {
    /// An edge before any advertisement. `shift` is the window scale of the connection (RFC 7323), at most 14; with `shrink` the
    /// edge may move left, which a receiver should not do (RFC 9293) but a rewriter of headers can.
    pub const fn new(shift: u8, shrink: bool) -> Self {
        let shift = if shift > LARGEST_SHIFT { LARGEST_SHIFT } else { shift };
        Self { edge: 0, shift, shrink }
    }

    /// Unit of the window field.
    pub const fn unit(&self) -> Bytes {
        Bytes::new(1 << self.shift)
    }

    /// The window to advertise with an acknowledgement of all bytes below `next`, if `window` is wanted: whole units, at least one
    /// unless `window` is zero, and never less than what was promised before.
    pub fn advertise(&mut self, next: u64, window: Bytes) -> Bytes {
        let unit = self.unit().get();
        let wanted = match window.get() {
            0 => 0,
            bytes => (bytes / unit).max(1),
        };
        let promised = if self.shrink { 0 } else { self.edge.saturating_sub(next).div_ceil(unit) };
        let advertised = wanted.max(promised).min(LARGEST) * unit;
        self.edge = next.saturating_add(advertised);
        Bytes::new(advertised)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_windows_of_test_r_1_are_rounded_down() {
        for (window, expected) in [(3_997, 3_968), (20_921, 20_864), (100, 128), (0, 0)] {
            assert_eq!(RightEdge::new(7, false).advertise(0, Bytes::new(window)).get(), expected);
        }
    }

    #[test]
    fn a_smaller_window_waits_until_the_larger_one_is_used_up() {
        let mut edge = RightEdge::new(0, false);
        let found: Vec<u64> = [(0, 10_000), (0, 4_000), (3_000, 4_000), (7_000, 4_000)]
            .map(|(next, window)| edge.advertise(next, Bytes::new(window)).get())
            .into();
        assert_eq!(found, [10_000, 10_000, 7_000, 4_000]);
        let mut edge = RightEdge::new(0, true);
        assert_eq!(edge.advertise(0, Bytes::new(10_000)).get(), 10_000);
        assert_eq!(edge.advertise(0, Bytes::new(4_000)).get(), 4_000);
    }

    #[test]
    fn window_beyond_the_header_field_is_clamped() {
        assert_eq!(RightEdge::new(2, false).advertise(0, Bytes::MAX).get(), 4 * 65_535);
        assert_eq!(RightEdge::new(200, false).unit().get(), 1 << 14);
    }

    proptest! {
        /// The right edge never moves left, and a window is in whole units and less than one unit above the larger of wanted and
        /// promised.
        #[test]
        fn right_edge_of_the_window_never_shrinks(
            shift in 0..15u8,
            steps in proptest::collection::vec((0..5_000u64, 0..200_000u64), 1..100),
        ) {
            let mut edge = RightEdge::new(shift, false);
            let (mut next, mut last) = (0, 0);
            for (received, window) in steps {
                next = last.min(next + received); // no data arrive beyond the advertised edge
                let found = edge.advertise(next, Bytes::new(window)).get();
                prop_assert!(next + found >= last);
                prop_assert!(found.is_multiple_of(1 << shift));
                prop_assert!(found < window.max(last - next) + (1 << shift));
                last = next + found;
            }
        }
    }
}
