//! Consecutive measuring windows of the clients (DCIC, QUIC-CQIC).

use ranpace_units::{Span, Time};

/// Consecutive windows of one length. The caller keeps their contents.
#[derive(Clone, Debug)]
pub(crate) struct Tumbling {
    length: Span,
    /// End of the current window.
    end: Option<Time>,
}

impl Tumbling {
    pub(crate) const fn new(length: Span) -> Self {
        Self { length, end: None }
    }

    /// Begins the first window unless one has begun.
    pub(crate) fn start(&mut self, now: Time) {
        self.end.get_or_insert(now + self.length);
    }

    /// Number of windows that have ended since the last call.
    #[inline]
    pub(crate) fn ended(&mut self, now: Time) -> u64 {
        let end = *self.end.get_or_insert(now + self.length);
        if now < end {
            return 0;
        }
        let ended = now.since(end).as_nanos() / self.length.as_nanos() + 1;
        self.end = Some(end + self.length * ended);
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_tumble_and_long_silence_counts() {
        let at = Time::from_millis;
        let mut windows = Tumbling::new(Span::from_millis(50));
        windows.start(at(10));
        windows.start(at(30));
        let found: Vec<u64> =
            [10, 59, 60, 61, 109, 110, 400].into_iter().map(|ms| windows.ended(at(ms))).collect();
        assert_eq!(found, [0, 0, 1, 0, 0, 1, 5]);
    }
}
