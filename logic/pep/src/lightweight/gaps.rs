//! The packets of a TCP flow that passed: the highest byte below which there is no gap, and the ranges above it.
//!
//! A gap is reported only when it can no longer be reordering: after three later packets and 1 ms, whichever comes later. Until then
//! ranges above it are not reported either, because a range implies that everything below it is missing.

use ranpace_units::{Span, Time};

use super::message::{RANGES, TcpView};

/// Later packets after which a gap is reported.
const LATER: u8 = 3;
/// Time after which it is reported.
const SETTLING: Span = Span::from_millis(1);

/// A range above a gap.
#[derive(Clone, Copy, Debug, Default)]
struct Range {
    start: u32,
    end: u32,
    /// When the gap below it was found, and the packets received since.
    found: Time,
    later: u8,
    /// It was reported.
    told: bool,
}

impl Range {
    /// When the gap below it is to be reported; [`Time::MAX`] while too few later packets have come.
    fn told_at(&self) -> Time {
        if self.later >= LATER { self.found + SETTLING } else { Time::MAX }
    }
}

/// The packets of a flow that passed.
#[derive(Clone, Debug, Default)]
pub struct Gaps {
    /// Next byte in order; `None` before the first packet.
    next: Option<u32>,
    count: u8,
    ranges: [Range; RANGES],
}

/// Returns whether `a` comes before `b` among sequence numbers (RFC 9293, section 3.4).
fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

impl Gaps {
    /// A segment passes. False if there are more gaps than can be reported, so that counting has to restart.
    #[must_use]
    pub fn on_segment(&mut self, now: Time, seq: u32, length: u32) -> bool {
        let end = seq.wrapping_add(length);
        let Some(next) = self.next else {
            self.next = Some(end);
            return true;
        };
        let count = usize::from(self.count);
        for range in &mut self.ranges[..count] {
            range.later = range.later.saturating_add(1);
        }
        if length == 0 || !before(next, end) {
            return true;
        }
        if !before(next, seq) {
            self.next = Some(end);
            self.absorb();
            return true;
        }
        // Extends a range, or inserts a new one.
        let place = self.ranges[..count].iter().position(|range| !before(range.end, seq));
        if let Some(place) = place.filter(|&place| !before(end, self.ranges[place].start)) {
            let range = &mut self.ranges[place];
            if before(seq, range.start) {
                range.start = seq;
            }
            if before(range.end, end) {
                range.end = end;
            }
            self.join(place);
            return true;
        }
        if count == RANGES {
            return false;
        }
        let place = place.unwrap_or(count);
        self.ranges.copy_within(place..count, place + 1);
        self.ranges[place] = Range { start: seq, end, found: now, later: 0, told: false };
        self.count += 1;
        true
    }

    /// Merges `place` with the ranges behind it that it now touches.
    fn join(&mut self, place: usize) {
        while place + 1 < usize::from(self.count) {
            let (own, other) = (self.ranges[place], self.ranges[place + 1]);
            if before(own.end, other.start) {
                break;
            }
            if before(own.end, other.end) {
                self.ranges[place].end = other.end;
            }
            self.remove(place + 1);
        }
    }

    /// Merges ranges that touch the in-order part into it.
    fn absorb(&mut self) {
        while let (Some(next), true) = (self.next, self.count > 0) {
            let first = self.ranges[0];
            if before(next, first.start) {
                break;
            }
            if before(next, first.end) {
                self.next = Some(first.end);
            }
            self.remove(0);
        }
    }

    fn remove(&mut self, place: usize) {
        let count = usize::from(self.count);
        self.ranges.copy_within(place + 1..count, place);
        self.count -= 1;
    }

    /// Restarts above everything received: `seq` is the next byte.
    pub fn restart(&mut self, seq: u32) {
        *self = Self { next: Some(seq), ..Self::default() };
    }

    /// Restarts at `seq` if that is ahead of the next byte.
    pub fn skip_to(&mut self, seq: u32) {
        if self.next.is_none_or(|next| before(next, seq)) {
            self.restart(seq);
        }
    }

    /// One past the highest byte that passed.
    pub fn highest(&self) -> Option<u32> {
        let last = usize::from(self.count).checked_sub(1).map(|last| self.ranges[last].end);
        last.or(self.next)
    }

    /// When the next unreported gap is to be reported; [`Time::MAX`] for never.
    pub fn tells_at(&self) -> Time {
        let ranges = self.ranges[..usize::from(self.count)].iter();
        ranges.filter(|range| !range.told).map(Range::told_at).min().unwrap_or(Time::MAX)
    }

    /// The view to report now.
    pub fn view(&mut self, now: Time) -> Option<TcpView> {
        let mut view = TcpView::new(self.next?);
        for range in &mut self.ranges[..usize::from(self.count)] {
            if range.told_at() > now {
                break;
            }
            range.told = true;
            view.push(range.start, range.end);
        }
        Some(view)
    }
}
