//! The times of a stream, converted to those of the server.

use std::time::{Duration, Instant};

use ranpace_rnis::lines::LineClock;
use ranpace_units::{Span, Time};

use crate::clock::{TimeOfDay, now};

/// The time of day is compared with the monotonic clock this often, because it is adjusted. Ours.
const COMPARE: Duration = Duration::from_secs(1);
/// A time may be this far in the future: two clocks under NTP differ by less. What is further counts as arriving now. Ours.
const AHEAD: Span = Span::from_millis(100);

/// Converts times.
#[derive(Debug)]
pub struct Times {
    day: (Instant, TimeOfDay),
    /// The monotonic time at which a run began, as seen from the line that came soonest after its time.
    run: Option<i128>,
    /// Times that were in the future.
    ahead: u64,
}

impl Times {
    /// Reads both clocks.
    pub fn new() -> Result<Self, nix::Error> {
        Ok(Self { day: (Instant::now(), TimeOfDay::read()?), run: None, ahead: 0 })
    }

    /// Another stream begins.
    pub fn restart(&mut self) {
        self.run = None;
    }

    /// Times so far that were in the future and were taken for now.
    #[cfg(test)]
    pub fn ahead(&self) -> u64 {
        self.ahead
    }

    /// The server's time of a message, which arrives now.
    pub fn convert(&mut self, clock: LineClock, ns: Option<u64>) -> Time {
        // The clock was there when this was created.
        let now = now().unwrap_or(Time::ZERO);
        let Some(ns) = ns else { return now };
        let time = match clock {
            LineClock::Arrival => return now,
            LineClock::Monotonic => Time::from_nanos(ns),
            LineClock::Day => {
                if self.day.0.elapsed() >= COMPARE
                    && let Ok(day) = TimeOfDay::read()
                {
                    self.day = (Instant::now(), day);
                }
                self.day.1.monotonic(Duration::from_nanos(ns))
            }
            // Some messages are delayed on their way; the soonest of all tells the most about when the run began.
            LineClock::Run => {
                let began = i128::from(now.as_nanos()) - i128::from(ns);
                let began = self.run.map_or(began, |known| known.min(began));
                self.run = Some(began);
                let time = (began + i128::from(ns)).clamp(0, u64::MAX.into());
                Time::from_nanos(u64::try_from(time).unwrap_or(u64::MAX))
            }
        };
        if time > now + AHEAD {
            self.ahead += 1;
            return now;
        }
        time
    }
}

#[cfg(test)]
mod tests {
    use std::time::{SystemTime, UNIX_EPOCH};

    use super::*;

    fn close(found: Time, expected: Time) {
        let apart = found.since(expected).max(expected.since(found));
        assert!(apart < Span::from_millis(20), "{found:?} instead of {expected:?}");
    }

    #[test]
    fn times_of_each_clock_become_monotonic_ones() {
        let mut times = Times::new().unwrap();
        let at = now().unwrap();
        let day = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        let second = 1_000_000_000;
        close(times.convert(LineClock::Day, Some(day - second)), at - Span::SECOND);
        let monotonic = at.as_nanos() - second;
        assert_eq!(times.convert(LineClock::Monotonic, Some(monotonic)), Time::from_nanos(monotonic));
        close(times.convert(LineClock::Arrival, Some(3)), at);
        close(times.convert(LineClock::Day, None), at);
        // A run's times count from its beginning, which the soonest message tells.
        close(times.convert(LineClock::Run, Some(5 * second)), at);
        close(times.convert(LineClock::Run, Some(4 * second)), at - Span::SECOND);
        assert_eq!(times.ahead(), 0);
        // The future has not been measured yet.
        close(times.convert(LineClock::Day, Some(day + 10 * second)), at);
        close(times.convert(LineClock::Monotonic, Some(u64::MAX)), at);
        assert_eq!(times.ahead(), 2);
        assert_eq!(times.convert(LineClock::Day, Some(1)), Time::ZERO);
    }

    #[test]
    fn a_run_that_ends_can_be_followed_by_another() {
        let mut times = Times::new().unwrap();
        let at = now().unwrap();
        close(times.convert(LineClock::Run, Some(50_000_000_000)), at);
        times.restart();
        close(times.convert(LineClock::Run, Some(0)), at);
    }
}
