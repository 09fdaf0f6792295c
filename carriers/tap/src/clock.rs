//! The clocks: the kernel's monotonic one, which programs of eBPF read too, and numbers for messages that no restart repeats.

use std::time::{SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};
use ranpace_units::Time;

/// The kernel's monotonic clock.
pub fn now() -> Time {
    // It is always there (POSIX).
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Time::ZERO, |now| {
        let nanos = i128::from(now.tv_sec()) * 1_000_000_000 + i128::from(now.tv_nsec());
        Time::from_nanos(u64::try_from(nanos).unwrap_or(0))
    })
}

/// A number for the first message of a process: microseconds since 1970. A later process begins above all that this one sends, because
/// nobody sends a message every microsecond; it does not if the host's clock is set back, so a clock that may be needs a new key.
pub fn first_sequence() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX / 2)
}
