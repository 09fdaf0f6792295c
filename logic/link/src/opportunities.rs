//! A server that plays a trace of delivery opportunities, byte for byte as mahimahi's `mm-link` does.
//!
//! An opportunity carries a fixed number of bytes (1504 in mahimahi). Small packets share it, a packet may span several, and
//! the rest of it is lost when the queue is empty. An opportunity at `T` ms serves only packets that arrived
//! strictly before `T` ms. A partly sent packet has left the queue. At its end the trace repeats, with its
//! last timestamp as the new zero.
//!
//! An idle server needs no timer: the cursor jumps to the next opportunity when a packet arrives.

use std::sync::Arc;

use ranpace_units::{Bytes, Time};

use crate::trace::Entry;
use crate::{Queued, Trace, TraceService};

/// The next opportunities, those of one millisecond together.
pub(crate) struct Cursor {
    trace: Arc<Trace>,
    repeat: bool,
    /// Capacity factor in units of 2^-32.
    factor: u64,
    pass: u64,
    index: usize,
    /// Their time; [`Time::MAX`] if there are no more.
    pub at: Time,
    /// Their number; zero if there are no more.
    pub count: u64,
}

impl Cursor {
    fn new(service: &TraceService) -> Self {
        // A float-to-integer cast maps negative values and NaN to zero.
        let factor = (service.scale * (1u64 << 32) as f64 + 0.5) as u64;
        let trace = service.trace.clone();
        let mut cursor =
            Self { trace, repeat: service.repeat, factor, pass: 0, index: 0, at: Time::ZERO, count: 0 };
        cursor.place();
        cursor
    }

    /// The scaled number of the first `raw` opportunities.
    fn scaled(&self, raw: u64) -> u64 {
        u64::try_from((u128::from(raw) * u128::from(self.factor)) >> 32).unwrap_or(u64::MAX)
    }

    /// Sets `at` and `count` from `pass` and `index`, skipping entries without opportunities after scaling.
    fn place(&mut self) {
        let (entries, total) = (self.trace.entries(), self.trace.opportunities());
        let before = |pass: u64, index: usize| {
            pass.saturating_mul(total) + index.checked_sub(1).map_or(0, |i| u64::from(entries[i].upto))
        };
        let after = |pass: u64, index: usize| pass.saturating_mul(total) + u64::from(entries[index].upto);
        let mut first = self.scaled(before(self.pass, self.index));
        let mut last = self.scaled(after(self.pass, self.index));
        if first == last && self.factor > 0 {
            // The raw opportunity at which the scaled number increases: the smallest n with n * factor >= first + 1.
            let goal = ((u128::from(first) + 1) << 32).div_ceil(u128::from(self.factor)) - 1;
            let goal = u64::try_from(goal).unwrap_or(u64::MAX);
            let rest = goal % total;
            self.pass = goal / total;
            self.index = entries.partition_point(|entry| u64::from(entry.upto) <= rest);
            first = self.scaled(before(self.pass, self.index));
            last = self.scaled(after(self.pass, self.index));
        }
        let is_over = first == last || (self.pass > 0 && !self.repeat);
        let start = self.pass.saturating_mul(u64::from(self.trace.last_ms()));
        let at = Time::from_millis(start.saturating_add(u64::from(entries[self.index].ms)));
        (self.at, self.count) = if is_over { (Time::MAX, 0) } else { (at, last - first) };
    }

    /// Advances to the next millisecond with opportunities.
    #[inline]
    pub fn step(&mut self) {
        self.index += 1;
        if self.index == self.trace.entries().len() {
            self.index = 0;
            self.pass += 1;
        }
        self.place();
    }

    /// Advances to the first opportunity after `now`.
    #[inline]
    pub fn seek(&mut self, now: Time) {
        if self.at <= now {
            self.jump(now);
        }
    }

    fn jump(&mut self, now: Time) {
        let length = u64::from(self.trace.last_ms());
        let (pass, rest) = (now.as_millis() / length, now.as_millis() % length);
        let entries = self.trace.entries();
        let start = if pass == self.pass { self.index } else { 0 };
        // The last entry is at `length`, beyond `rest`, so there is always one.
        self.index = start + gallop(&entries[start..], rest);
        self.pass = pass;
        self.place();
    }

    fn passed(&self, at: Time) -> u64 {
        self.scaled(self.trace.passed(at, self.repeat))
    }
}

/// Index of the first entry later than `ms`, in time logarithmic in the distance.
fn gallop(entries: &[Entry], ms: u64) -> usize {
    let is_past = |entry: &Entry| u64::from(entry.ms) <= ms;
    let mut end = 1;
    while entries.get(end - 1).is_some_and(is_past) {
        end *= 2;
    }
    let start = end / 2;
    start + entries[start..end.min(entries.len())].partition_point(is_past)
}

pub(crate) struct TraceServer<P> {
    pub cursor: Cursor,
    pub opportunity: u64,
    pub overhead: u64,
    /// The partly sent packet.
    pub current: Option<Queued<P>>,
    /// Remaining bytes of it, overhead included.
    pub left: u64,
}

impl<P> TraceServer<P> {
    pub fn new(service: &TraceService) -> Self {
        Self {
            cursor: Cursor::new(service),
            opportunity: service.opportunity.get(),
            overhead: service.overhead.get(),
            current: None,
            left: 0,
        }
    }

    /// Capacity for packets of an opportunity's size after `from` and up to `to`, overhead excluded.
    pub fn capacity(&self, from: Time, to: Time) -> Bytes {
        let count = self.cursor.passed(to).saturating_sub(self.cursor.passed(from));
        Bytes::new(self.opportunity.saturating_sub(self.overhead)) * count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cursor(trace: &Trace, repeat: bool, scale: f64) -> Cursor {
        let service = TraceService { repeat, scale, ..TraceService::new(Arc::new(trace.clone())) };
        Cursor::new(&service)
    }

    fn steps(cursor: &mut Cursor, until: u64) -> Vec<(u64, u64)> {
        let mut all = Vec::new();
        while cursor.at <= Time::from_millis(until) {
            all.push((cursor.at.as_millis(), cursor.count));
            cursor.step();
        }
        all
    }

    #[test]
    fn the_last_timestamp_is_the_new_zero() {
        let trace = Trace::from_millis([0, 2, 2, 5]).unwrap();
        let all = [(0, 1), (2, 2), (5, 1), (5, 1), (7, 2), (10, 1), (10, 1), (12, 2)];
        assert_eq!(steps(&mut cursor(&trace, true, 1.0), 14), all);
        assert_eq!(steps(&mut cursor(&trace, false, 1.0), 1_000_000), all[..3]);
    }

    #[test]
    fn scaled_counts_are_exact_in_the_long_run() {
        let trace = Trace::from_millis([1, 2, 2, 3, 7, 10]).unwrap();
        for scale in [3.0, 1.5, 0.5, 0.1, 15.3 / 16.05, 1e-3] {
            let mut cursor = cursor(&trace, true, scale);
            let (mut sum, mut passes) = (0, 0);
            while passes < 2000 {
                sum += cursor.count;
                cursor.step();
                passes = cursor.pass;
            }
            let expected = 6.0 * passes as f64 * scale;
            assert!((sum as f64 - expected).abs() <= 1.0, "{scale}: {sum} of {expected}");
        }
        assert_eq!(cursor(&trace, true, 0.0).at, Time::MAX);
        assert_eq!(cursor(&trace, true, f64::NAN).at, Time::MAX);
    }

    proptest! {
        /// Jumping gives the same result as stepping, and `passed` counts what the steps carried.
        #[test]
        fn jumping_is_stepping(
            times in prop::collection::vec(0..60u64, 1..40),
            repeat in any::<bool>(),
            scale in prop_oneof![Just(1.0), Just(2.5), Just(0.3), 0.01..4.0f64],
            waits in prop::collection::vec(0..200u64, 1..20),
        ) {
            let mut times = times;
            times.push(61);
            times.sort_unstable();
            let trace = Trace::from_millis(times).unwrap();
            let (mut jumper, mut stepper) = (cursor(&trace, repeat, scale), cursor(&trace, repeat, scale));
            let (mut now, mut carried) = (0, 0);
            for wait in waits {
                now += wait;
                let at = Time::from_nanos(now * 1_000_000 + 999_999);
                jumper.seek(at);
                while stepper.at <= at {
                    carried += stepper.count;
                    stepper.step();
                }
                prop_assert_eq!((jumper.at, jumper.count), (stepper.at, stepper.count));
                prop_assert_eq!(jumper.passed(at), carried);
            }
        }
    }
}
