//! Which users were granted resources recently.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ranpace_units::{Span, Time};

/// How long a user counts as active after a grant. Ours; Diarra 2022 gives no time for "active users".
pub(crate) const ACTIVE: Span = Span::from_millis(100);

/// The users of a cell that had a grant in one direction within [`ACTIVE`].
#[derive(Debug, Default)]
pub(crate) struct Activity {
    /// When each user had its last grant, by number; `None` if that was long ago.
    last: Vec<Option<Time>>,
    /// When to check each active user: the time of one of its grants.
    waiting: BinaryHeap<Reverse<(Time, u32)>>,
    users: u16,
}

impl Activity {
    /// A user has a grant.
    #[inline]
    pub fn on_grant(&mut self, now: Time, user: u32) {
        let index = user as usize;
        if self.last.len() <= index {
            self.last.resize(index + 1, None);
        }
        if self.last[index].replace(now).is_none() {
            self.users = self.users.saturating_add(1);
            self.waiting.push(Reverse((now, user)));
        }
    }

    /// Advances time: users without a recent grant become inactive.
    pub fn pass(&mut self, now: Time) {
        while let Some(&Reverse((at, user))) = self.waiting.peek().filter(|first| now - first.0.0 >= ACTIVE) {
            self.waiting.pop();
            match self.last.get(user as usize).copied().flatten() {
                // It had a later grant: check again.
                Some(last) if last > at => self.waiting.push(Reverse((last, user))),
                Some(_) => self.forget(user),
                None => {}
            }
        }
    }

    /// A user left.
    pub fn forget(&mut self, user: u32) {
        if self.last.get_mut(user as usize).and_then(Option::take).is_some() {
            self.users = self.users.saturating_sub(1);
        }
    }

    /// Number of active users.
    pub fn users(&self) -> u16 {
        self.users
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_count_once_and_for_100_ms() {
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        let mut activity = Activity::default();
        for (now, user, count) in [(0, 3, 1), (1, 3, 1), (50, 0, 2)] {
            activity.on_grant(at(now), user);
            assert_eq!(activity.users(), count);
        }
        for (now, count) in [(100, 2), (101, 1), (149, 1), (150, 0)] {
            activity.pass(at(now));
            assert_eq!(activity.users(), count, "{now}");
        }
        // The second grant of a user that left and returned does not expire with the first.
        activity.on_grant(at(200), 1);
        activity.forget(1);
        activity.on_grant(at(250), 1);
        activity.pass(at(300));
        assert_eq!(activity.users(), 1);
        activity.pass(at(350));
        assert_eq!(activity.users(), 0);
    }
}
