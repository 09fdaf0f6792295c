//! Virtual time as noq wants it.
//!
//! noq-proto reads no clock: every call gets the time as an argument. But its type of a time is the standard library's
//! `Instant`, which can be had from the system only. So whoever drives an endpoint hands one over when it begins, and all
//! others are that one and a virtual time; what it is makes no difference, since only differences are ever used.

use core::time::Duration;
use std::time::Instant;

use ranpace_units::{Span, Time};

/// Turns virtual times into noq's and back.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    base: Instant,
}

impl Clock {
    /// A clock whose [`Time::ZERO`] is `base`. Any will do.
    pub fn new(base: Instant) -> Self {
        Self { base }
    }

    #[inline]
    pub(crate) fn instant(self, at: Time) -> Instant {
        self.base + Duration::from_nanos(at.as_nanos())
    }

    /// The earliest virtual time that is not before `at`.
    #[inline]
    pub(crate) fn time(self, at: Instant) -> Time {
        Time::ZERO + span(at.saturating_duration_since(self.base))
    }
}

/// A length of time; more than 584 years are as many.
#[inline]
pub(crate) fn span(duration: Duration) -> Span {
    Span::from_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

/// The same the other way.
#[inline]
pub(crate) fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.as_nanos())
}
