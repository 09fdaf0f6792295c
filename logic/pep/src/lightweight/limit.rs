//! A rate limit with a burst.

use ranpace_units::Time;

/// A bucket of tokens. One event takes one token.
#[derive(Clone, Copy, Debug)]
pub struct TokenBucket {
    /// Nanoseconds per token.
    interval: u64,
    /// Time to fill the bucket, in nanoseconds.
    full: u64,
    /// When the bucket would have been empty, had nothing been taken since.
    level: u64,
}

impl TokenBucket {
    /// `per_second` tokens per second, and at most `burst` at once.
    pub fn new(per_second: u32, burst: u32) -> Self {
        let interval = 1_000_000_000 / u64::from(per_second.max(1));
        Self { interval, full: interval * u64::from(burst.max(1)), level: 0 }
    }

    /// Takes a token if there is one.
    pub fn take(&mut self, now: Time) -> bool {
        let now = now.as_nanos().saturating_add(self.full);
        let empty = self.level.max(now.saturating_sub(self.full));
        let taken = empty + self.interval;
        if taken > now {
            return false;
        }
        self.level = taken;
        true
    }

    /// When the next token will be available.
    pub fn next(&self) -> Time {
        Time::from_nanos((self.level + self.interval).saturating_sub(self.full))
    }
}
