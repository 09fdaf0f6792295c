//! How much payload a proxy that splits connections takes from users before servers have been sent it.
//!
//! All connections of a user share one limit. Each may have a sixteenth of what the others and itself have left of it waiting in the
//! proxy: a server that does not read stops its own connection, and there is always room for another one. If clients obey the windows, what
//! waits never reaches the limit, but for what they were allowed to send before ([`Uploads::window`]): a sixteenth of the limit each. Downloads
//! are bounded by [`rapid`](crate::rapid).
//!
//! Source: Choudhury and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches", IEEE/ACM Transactions on Networking
//! 6(2), 1998; the factor of a sixteenth is ours.

use std::collections::HashMap;

use ranpace_units::Bytes;

/// What is left of a limit, over what may wait of one connection.
const PARTS: u64 = 16;

/// What waits of all users.
#[derive(Clone, Debug)]
pub struct Uploads {
    limit: Bytes,
    /// What waits of each user of whom something does.
    waiting: HashMap<u32, Bytes>,
    total: Bytes,
}

impl Uploads {
    /// Nothing waits; `limit` is what may wait of one user.
    pub fn new(limit: Bytes) -> Self {
        Self { limit, waiting: HashMap::new(), total: Bytes::ZERO }
    }

    /// Of a connection of this user `after` waits now, and `before` when this was last called for it (zero at first and, as `after`,
    /// when it ends).
    pub fn on_waiting(&mut self, user: u32, before: Bytes, after: Bytes) {
        if before == after {
            return;
        }
        let waiting = self.waiting.entry(user).or_default();
        *waiting = *waiting - before + after;
        self.total = self.total - before + after;
        if waiting.is_zero() {
            self.waiting.remove(&user);
        }
    }

    /// How much more the client of a connection of this user may send, of which `own` waits. At least two segments of `mss` bytes may
    /// wait of each connection, so that all of them go on.
    pub fn window(&self, user: u32, own: Bytes, mss: Bytes) -> Bytes {
        let left = self.limit - self.waiting.get(&user).copied().unwrap_or_default();
        (left / PARTS).max(mss * 2) - own
    }

    /// Whether half of the limit or more waits of this user: several of its servers stall.
    pub fn is_half_full(&self, user: u32) -> bool {
        self.waiting.get(&user).is_some_and(|waiting| *waiting * 2 >= self.limit)
    }

    /// What waits of all users.
    pub const fn total(&self) -> Bytes {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MSS: Bytes = Bytes::new(1_000);

    #[test]
    fn a_sixteenth_of_what_is_left_may_wait_of_each_connection_and_two_segments_always() {
        let mut uploads = Uploads::new(Bytes::new(100_000));
        for (case, before, after, own, other) in [
            ("nothing waits", 0, 0, 6_250, 6_250),
            ("less than a sixteenth of what is left", 0, 4_000, 2_000, 6_000),
            ("more than that", 4_000, 36_000, 0, 4_000),
            ("nearly all, from before", 36_000, 99_000, 0, 2_000),
            ("more than the limit", 99_000, 200_000, 0, 2_000),
            ("nothing again", 200_000, 0, 6_250, 6_250),
        ] {
            uploads.on_waiting(7, Bytes::new(before), Bytes::new(after));
            let windows = [after, 0].map(|waiting| uploads.window(7, Bytes::new(waiting), MSS).get());
            assert_eq!((windows, uploads.total().get()), ([own, other], after), "{case}");
            assert_eq!(uploads.window(8, Bytes::ZERO, MSS).get(), 6_250, "{case}: another user");
        }
        assert!(uploads.waiting.is_empty(), "who has nothing waiting is forgotten");
        for (before, after, expected) in [(0, 49_999, false), (49_999, 50_000, true), (50_000, 0, false)] {
            uploads.on_waiting(7, Bytes::new(before), Bytes::new(after));
            assert_eq!((uploads.is_half_full(7), uploads.is_half_full(8)), (expected, false), "{after}");
        }
    }

    proptest! {
        /// However often connections fill their windows, less than the limit waits but for two segments of each.
        #[test]
        fn connections_that_fill_their_windows_stay_below_the_limit(steps in prop::collection::vec((0..9_usize, 0..101_u64), 0..200)) {
            let mut uploads = Uploads::new(Bytes::new(100_000));
            let mut waiting = [Bytes::ZERO; 9];
            for (connection, part) in steps {
                let own = waiting[connection];
                // A part of the window comes, or else all that waits is sent on.
                let window = uploads.window(1, own, MSS);
                let after = if part == 0 { Bytes::ZERO } else { own + window * part / 100 };
                uploads.on_waiting(1, own, after);
                waiting[connection] = after;
                let sum = waiting.iter().map(|bytes| bytes.get()).sum::<u64>();
                prop_assert_eq!(uploads.total().get(), sum);
                prop_assert!(sum < 100_000 + 9 * 2_000, "{} bytes", sum);
            }
        }
    }
}
