//! Converts between virtual time and noq's time.
//!
//! noq-proto reads no clock: every call gets the time as an argument. But its time type is the standard library's `Instant`,
//! which only the system can create. The driver of an endpoint therefore supplies one at the beginning, and all others are
//! this one plus a virtual time; its value makes no difference, since only differences are used.

use core::time::Duration;
use std::time::Instant;

use ranpace_units::{Span, Time};

/// Converts virtual times into noq's and back.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    base: Instant,
}

impl Clock {
    /// A clock whose [`Time::ZERO`] is `base`, which may be any instant.
    pub fn new(base: Instant) -> Self {
        Self { base }
    }

    #[inline]
    pub(crate) fn instant(self, at: Time) -> Instant {
        self.base + Duration::from_nanos(at.as_nanos())
    }

    /// The virtual time of `at`; instants before the base map to zero.
    #[inline]
    pub fn time(self, at: Instant) -> Time {
        Time::ZERO + span(at.saturating_duration_since(self.base))
    }
}

/// Converts a duration; more than 584 years saturate.
#[inline]
pub(crate) fn span(duration: Duration) -> Span {
    Span::from_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

/// Converts a span into a duration.
#[inline]
pub(crate) fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.as_nanos())
}
