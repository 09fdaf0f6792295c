//! The clock of all times inside the server: nanoseconds of the system's monotonic clock, which no adjustment of the time of day
//! moves. Times of day are converted where they come in and where they go out.

use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fs, io};

use nix::time::{ClockId, clock_gettime};
use ranpace_rnis::feed::message::CLOCK_BYTES;
use ranpace_units::Time;

/// The time now: `CLOCK_MONOTONIC`, which all processes of a host share.
///
/// # Errors
///
/// If the system has no such clock.
pub fn now() -> Result<Time, nix::Error> {
    let time: Duration = clock_gettime(ClockId::CLOCK_MONOTONIC)?.into();
    Ok(Time::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))
}

/// Identifies the clock of [`now`]: processes with the same identity read the same clock. Different if the system was restarted since, and
/// in another time namespace, whose clock has an offset.
///
/// # Errors
///
/// If the system does not say when it was started.
pub fn identity() -> io::Result<[u8; CLOCK_BYTES]> {
    let mut text = fs::read("/proc/sys/kernel/random/boot_id")?;
    // A kernel without time namespaces has no such file.
    text.extend(fs::read("/proc/self/timens_offsets").unwrap_or_default());
    let digest = ring::digest::digest(&ring::digest::SHA256, &text);
    let mut identity = [0; CLOCK_BYTES];
    identity.copy_from_slice(&digest.as_ref()[..CLOCK_BYTES]);
    Ok(identity)
}

/// How a time of day is converted: both clocks at the same moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeOfDay {
    monotonic: Time,
    since_epoch: Duration,
}

impl TimeOfDay {
    /// Reads both clocks. Repeat this from time to time, because the time of day is adjusted.
    ///
    /// # Errors
    ///
    /// As [`now`].
    pub fn read() -> Result<Self, nix::Error> {
        // A time of day before 1970 is a clock that was never set.
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Self { monotonic: now()?, since_epoch })
    }

    /// The monotonic time of a time of day. Times before the system's start become zero.
    pub fn monotonic(self, since_epoch: Duration) -> Time {
        let now = Duration::from_nanos(self.monotonic.as_nanos());
        let time = (now + since_epoch).saturating_sub(self.since_epoch);
        Time::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    }

    /// The time of day of a monotonic time, since the Unix epoch.
    pub fn since_epoch(self, monotonic: Time) -> Duration {
        let time = self.since_epoch + Duration::from_nanos(monotonic.as_nanos());
        time.saturating_sub(Duration::from_nanos(self.monotonic.as_nanos()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn converts_in_both_directions() {
        let at = TimeOfDay {
            monotonic: Time::from_nanos(5_000_000_000),
            since_epoch: Duration::from_secs(1_800_000_000),
        };
        let earlier = Time::from_nanos(3_999_999_999);
        assert_eq!(at.since_epoch(earlier), Duration::new(1_799_999_998, 999_999_999));
        assert_eq!(at.monotonic(at.since_epoch(earlier)), earlier);
        assert_eq!(at.monotonic(Duration::from_secs(1)), Time::ZERO);
    }
}
