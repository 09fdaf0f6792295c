//! How much payload a proxy that splits connections takes from users before servers have been sent it.
//!
//! What waits of one user's uploads, over all of its connections, is compared with a limit. At the limit the user's windows are
//! closed; they reopen when [`REOPEN`] of the limit is left. The carrier bounds each connection by its socket's buffer, and asks
//! [`Uploads::total`] before it splits one more. Downloads are bounded alike by [`rapid`](crate::rapid).
//!
//! Ours: no source bounds uploads.

use std::collections::HashMap;

use ranpace_units::Bytes;

/// Fraction of a user's limit to which what waits has to fall before its windows reopen.
const REOPEN: (u64, u64) = (3, 4);

/// What waits of all users.
#[derive(Clone, Debug)]
pub struct Uploads {
    limit: Bytes,
    /// Users of whom something waits.
    users: HashMap<u32, User>,
    total: Bytes,
}

#[derive(Clone, Copy, Debug, Default)]
struct User {
    waiting: Bytes,
    closed: bool,
}

impl Uploads {
    /// Nothing waits; `limit` is what may wait of one user.
    pub fn new(limit: Bytes) -> Self {
        Self { limit, users: HashMap::new(), total: Bytes::ZERO }
    }

    /// Of a connection of this user `after` waits now, and `before` when this was last called for it (zero at first and, as `after`,
    /// when it ends). Returns whether the user's windows have to be closed or reopened: see [`Self::is_closed`].
    pub fn on_waiting(&mut self, user: u32, before: Bytes, after: Bytes) -> bool {
        if before == after {
            return false;
        }
        let known = self.users.entry(user).or_default();
        known.waiting = known.waiting - before + after;
        self.total = self.total - before + after;
        let was_closed = known.closed;
        known.closed = match was_closed {
            true => known.waiting > self.limit.scale(REOPEN.0, REOPEN.1),
            false => known.waiting >= self.limit,
        };
        let is_other = known.closed != was_closed;
        if known.waiting.is_zero() {
            self.users.remove(&user);
        }
        is_other
    }

    /// Whether this user's clients may send nothing for now.
    pub fn is_closed(&self, user: u32) -> bool {
        self.users.get(&user).is_some_and(|user| user.closed)
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

    #[test]
    fn windows_close_at_the_limit_and_reopen_at_three_quarters_of_it() {
        let mut uploads = Uploads::new(Bytes::new(100));
        for (case, before, after, is_other, is_closed) in [
            ("below", 0, 99, false, false),
            ("at the limit", 99, 100, true, true),
            ("a little less", 100, 76, false, true),
            ("three quarters", 76, 75, true, false),
            ("nothing", 75, 0, false, false),
        ] {
            let changed = uploads.on_waiting(7, Bytes::new(before), Bytes::new(after));
            assert_eq!((changed, uploads.is_closed(7)), (is_other, is_closed), "{case}");
            assert_eq!((uploads.total(), uploads.is_closed(8)), (Bytes::new(after), false), "{case}");
        }
        assert!(uploads.users.is_empty(), "who has nothing waiting is forgotten");
    }

    proptest! {
        /// The sums are those of the connections, and a user is closed from the limit on, and open at three quarters and below.
        #[test]
        fn users_are_the_sums_of_their_connections(steps in prop::collection::vec((0..9_usize, 0..60_u64), 0..200)) {
            let mut uploads = Uploads::new(Bytes::new(100));
            let mut waiting = [Bytes::ZERO; 9];
            for (connection, bytes) in steps {
                let user = connection as u32 % 3;
                let was_closed = uploads.is_closed(user);
                let after = Bytes::new(bytes);
                let changed = uploads.on_waiting(user, waiting[connection], after);
                waiting[connection] = after;
                prop_assert_eq!(changed, uploads.is_closed(user) != was_closed);
                let of_user: u64 = waiting.iter().skip(user as usize).step_by(3).map(|bytes| bytes.get()).sum();
                let fits = if uploads.is_closed(user) { of_user > 75 } else { of_user < 100 };
                prop_assert!(fits, "{of_user} bytes");
                prop_assert_eq!(uploads.total().get(), waiting.iter().map(|bytes| bytes.get()).sum::<u64>());
            }
        }
    }
}
