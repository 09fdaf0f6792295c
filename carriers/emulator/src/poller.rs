//! Waits for packets and for an instant, whichever comes first.
//!
//! It uses epoll, whose cost does not grow with the number of devices, and timers that stay armed when a packet ends the wait: where a
//! hypervisor owns the processor's timer, arming it takes as long as sleeping (see docs/performance.md). The kernel arms it when the
//! first timer expires, and need not for a timer that expires behind another. A recurring timer is therefore set one period
//! ahead, behind the one that is awaited. Between polls ([`crate::slack`]) devices are not watched.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::{ClockId, clock_gettime};
use ranpace_units::{Span, Time};

/// Token of the timer, where devices have their places.
const TIMER: u64 = u64::MAX;
/// Most devices reported at a time; others follow at the next call. Ours.
const MOST: usize = 64;

/// Instants closer than this count as one. Ours: less than the time that a thread takes to wake.
const CLOSE: Span = Span::from_micros(2);
/// Remembered instants, for detecting recurring ones: usually more than lie between two occurrences. Ours.
const RECENT: usize = 4;

/// Waits for packets and instants; it borrows its devices.
pub struct Poller<'a> {
    epoll: Epoll,
    /// Polls the timers alone.
    clockwork: Epoll,
    /// One is awaited, the other is set for the expected next instant.
    timers: [Timer; 2],
    /// The timers' clock at [`Time::ZERO`].
    origin: Duration,
    /// Most instants recur after this time.
    period: Span,
    /// The last instants awaited.
    recent: [Time; RECENT],
    events: Vec<EpollEvent>,
    /// Devices with packets.
    ready: Vec<usize>,
    _devices: std::marker::PhantomData<BorrowedFd<'a>>,
}

/// A timer, and when it expires or expired.
struct Timer {
    timer: TimerFd,
    at: Time,
}

impl Timer {
    fn new(epolls: [&Epoll; 2]) -> io::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(nix::sys::timerfd::ClockId::CLOCK_MONOTONIC, flags)?;
        // Only notified on expiry: nobody reads it afterwards.
        let edge = EpollFlags::EPOLLIN | EpollFlags::EPOLLET;
        for epoll in epolls {
            epoll.add(timer.as_fd(), EpollEvent::new(edge, TIMER))?;
        }
        Ok(Self { timer, at: Time::ZERO })
    }

    /// Sets it for an instant; `origin` is the clock at [`Time::ZERO`].
    fn set(&mut self, origin: Duration, at: Time) -> io::Result<()> {
        let clock = TimeSpec::from_duration(origin + Duration::from_nanos((at - Time::ZERO).as_nanos()));
        self.timer.set(Expiration::OneShot(clock), TimerSetTimeFlags::TFD_TIMER_ABSTIME)?;
        self.at = at;
        Ok(())
    }
}

impl<'a> Poller<'a> {
    /// For these devices, identified by their places, and for instants that mostly recur after this period. [`Time::ZERO`] was at
    /// `began`.
    pub fn new(
        devices: impl Iterator<Item = BorrowedFd<'a>>,
        period: Span,
        began: Instant,
    ) -> io::Result<Self> {
        let origin = Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC)?).saturating_sub(began.elapsed());
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let clockwork = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let timers = [Timer::new([&epoll, &clockwork])?, Timer::new([&epoll, &clockwork])?];
        for (place, device) in devices.enumerate() {
            epoll.add(device, EpollEvent::new(EpollFlags::EPOLLIN, place as u64))?;
        }
        Ok(Self {
            epoll,
            clockwork,
            timers,
            origin,
            period,
            recent: [Time::MAX; RECENT],
            events: vec![EpollEvent::empty(); MOST],
            ready: Vec::new(),
            _devices: std::marker::PhantomData,
        })
    }

    /// Waits from `now` until a device has packets or, at the latest, until this instant; then nothing is [`Self::ready`]. It may
    /// return earlier than either.
    pub fn wait(&mut self, now: Time, until: Time) -> io::Result<()> {
        if until <= now {
            return self.look();
        }
        let own = self.set(until)?;
        if self.recent[0] != until {
            self.recent.rotate_right(1);
            self.recent[0] = until;
            let (next, other) = (until + self.period, &mut self.timers[1 - own]);
            let recurs = self.recent.iter().any(|at| is_close(*at + self.period, until));
            if recurs && !is_close(other.at, next) {
                other.set(self.origin, next)?;
            }
        }
        self.ask(EpollTimeout::NONE)
    }

    /// Waits until this instant, ignoring devices; the next call is expected one period later. It may return earlier.
    pub fn sleep(&mut self, until: Time, period: Span) -> io::Result<()> {
        let other = 1 - self.set(until)?;
        self.timers[other].set(self.origin, until + period)?;
        match self.clockwork.wait(&mut self.events, EpollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Sets a timer for this instant if none is; returns which one.
    fn set(&mut self, until: Time) -> io::Result<usize> {
        if let Some(own) = self.timers.iter().position(|timer| timer.at == until) {
            return Ok(own);
        }
        // The timer with the earlier instant: it has expired, or was set for an instant expected after another one.
        let own = usize::from(self.timers[0].at > self.timers[1].at);
        self.timers[own].set(self.origin, until)?;
        Ok(own)
    }

    /// The instant of a timer already set close enough to `until`, or else `until`.
    pub fn close_to(&self, until: Time) -> Time {
        self.timers.iter().map(|timer| timer.at).find(|at| is_close(*at, until)).unwrap_or(until)
    }

    /// Checks which devices have packets.
    pub fn look(&mut self) -> io::Result<()> {
        self.ask(EpollTimeout::ZERO)
    }

    /// Returns whether the last check may have missed devices, since it reports [`MOST`] at a time, two of which may be the timers.
    pub fn is_full(&self) -> bool {
        self.ready.len() + 2 >= MOST
    }

    /// Clears the ready devices without a check.
    pub fn forget(&mut self) {
        self.ready.clear();
    }

    /// Devices that had packets at the last check.
    pub fn ready(&self) -> &[usize] {
        &self.ready
    }

    fn ask(&mut self, timeout: EpollTimeout) -> io::Result<()> {
        self.ready.clear();
        let count = match self.epoll.wait(&mut self.events, timeout) {
            Ok(count) => count,
            Err(Errno::EINTR) => 0,
            Err(error) => return Err(error.into()),
        };
        let places = self.events.iter().take(count).map(EpollEvent::data).filter(|place| *place != TIMER);
        self.ready.extend(places.map(|place| place as usize));
        Ok(())
    }
}

fn is_close(one: Time, other: Time) -> bool {
    one.max(other) - one.min(other) <= CLOSE
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    use ranpace_units::Span;

    use super::*;

    #[test]
    fn it_ends_at_its_instant_or_with_a_device_and_the_timer_stays_for_the_next_time() {
        let (mut near, far) = UnixStream::pair().unwrap();
        let (other, _end) = UnixStream::pair().unwrap();
        let begun = Instant::now();
        let devices = [other.as_fd(), far.as_fd()];
        let mut poller = Poller::new(devices.into_iter(), Span::from_millis(1), begun).unwrap();
        let now = || Time::ZERO + Span::from_nanos(begun.elapsed().as_nanos() as u64);
        let until = Time::from_millis(60);
        near.write_all(b"x").unwrap();
        poller.wait(now(), until).unwrap();
        assert_eq!(poller.ready(), [1]);
        // It stays ready until it is read.
        poller.look().unwrap();
        assert_eq!(poller.ready(), [1]);
        (&far).read_exact(&mut [0]).unwrap();
        poller.look().unwrap();
        assert!(poller.ready().is_empty() && now() < until);
        // The same instant, to which the timer is still set; then others, later and earlier ones.
        for until in [until, Time::from_millis(70), Time::from_millis(200), Time::from_millis(80)] {
            let too_long = now() + Span::from_secs(20);
            while now() < until && until < Time::from_millis(200) {
                poller.wait(now(), until).unwrap();
                assert!(poller.ready().is_empty());
            }
            assert!(now() < too_long);
            if until == Time::from_millis(200) {
                near.write_all(b"x").unwrap();
                poller.wait(now(), until).unwrap();
                (&far).read_exact(&mut [0]).unwrap();
            }
        }
        // An instant in the past is only a check.
        poller.wait(now(), Time::ZERO).unwrap();
        assert!(poller.ready().is_empty());
    }

    #[test]
    fn a_sleep_between_polls_heeds_no_device() {
        let (mut near, far) = UnixStream::pair().unwrap();
        let begun = Instant::now();
        let mut poller = Poller::new([far.as_fd()].into_iter(), Span::from_millis(1), begun).unwrap();
        let now = || Time::ZERO + Span::from_nanos(begun.elapsed().as_nanos() as u64);
        let period = Span::from_millis(10);
        near.write_all(b"x").unwrap();
        let first = now() + period;
        for until in [first, first + period, first + period * 2] {
            // The expiry of a timer that was not awaited may end one.
            let mut turns = 0;
            while turns == 0 || now() < until {
                poller.sleep(until, period).unwrap();
                turns += 1;
            }
            assert!(turns < 5, "the device ends nothing");
            assert!(poller.ready().is_empty());
            assert_eq!(poller.timers.iter().map(|timer| timer.at).max(), Some(until + period));
        }
        poller.look().unwrap();
        assert_eq!(poller.ready(), [0]);
    }

    #[test]
    fn recurring_timers_are_set_a_period_ahead_and_stay_set_beside_others() {
        let (one, _other) = UnixStream::pair().unwrap();
        let period = Span::from_millis(10);
        let begun = Instant::now();
        let mut poller = Poller::new([one.as_fd()].into_iter(), period, begun).unwrap();
        let now = || Time::ZERO + Span::from_nanos(begun.elapsed().as_nanos() as u64);
        let mut wait = |until: Time| {
            while now() < until {
                poller.wait(now(), until).unwrap();
            }
            // The later one of the two.
            poller.timers.iter().map(|timer| timer.at).max().unwrap()
        };
        let first = now() + period;
        assert_eq!(wait(first), first, "nobody knows what will recur");
        assert_eq!(wait(first + period), first + period * 2);
        let between = first + period + Span::from_millis(4);
        assert_eq!(wait(between), first + period * 2, "it is set still");
        assert_eq!(wait(first + period * 2), first + period * 3);
        // An instant close to it shares its timer, one farther away does not.
        let nearly = first + period * 3 + CLOSE;
        assert_eq!(poller.close_to(nearly), first + period * 3);
        let beside = nearly + Span::from_nanos(1);
        assert_eq!(poller.close_to(beside), beside);
    }
}
