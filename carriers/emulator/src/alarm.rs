//! Waiting for packets and for an instant, whichever comes first.
//!
//! By epoll, whose cost does not grow with the number of devices, and by a timer that stays as it is when a packet ends the waiting: where a
//! processor's timer belongs to a hypervisor, setting it takes longer than sleeping (see docs/performance.md).

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use ranpace_units::Time;

/// What the timer is called where devices have their places.
const TIMER: u64 = u64::MAX;
/// Devices that are told of at a time; others are next. Ours.
const MOST: usize = 64;

/// Waits; its devices live at least as long.
pub struct Alarm<'a> {
    epoll: Epoll,
    timer: TimerFd,
    /// When it goes off.
    at: Time,
    events: Vec<EpollEvent>,
    /// Devices that have something.
    ready: Vec<usize>,
    _devices: std::marker::PhantomData<BorrowedFd<'a>>,
}

impl<'a> Alarm<'a> {
    /// For these devices, which are called by their places.
    pub fn new(devices: impl Iterator<Item = BorrowedFd<'a>>) -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        // Only when it goes off: nobody reads it afterwards.
        let edge = EpollFlags::EPOLLIN | EpollFlags::EPOLLET;
        epoll.add(timer.as_fd(), EpollEvent::new(edge, TIMER))?;
        for (place, device) in devices.enumerate() {
            epoll.add(device, EpollEvent::new(EpollFlags::EPOLLIN, place as u64))?;
        }
        Ok(Self {
            epoll,
            timer,
            at: Time::ZERO,
            events: vec![EpollEvent::empty(); MOST],
            ready: Vec::new(),
            _devices: std::marker::PhantomData,
        })
    }

    /// Waits from `now` until a device has something or, at the latest, until this instant; then nothing is [`Self::ready`].
    /// It may end earlier than either.
    pub fn wait(&mut self, now: Time, until: Time) -> io::Result<()> {
        if until <= now {
            return self.look();
        }
        if self.at != until {
            let wait = TimeSpec::from_duration(Duration::from_nanos((until - now).as_nanos()));
            self.timer.set(Expiration::OneShot(wait), TimerSetTimeFlags::empty())?;
            self.at = until;
        }
        self.ask(EpollTimeout::NONE)
    }

    /// Looks which devices have something.
    pub fn look(&mut self) -> io::Result<()> {
        self.ask(EpollTimeout::ZERO)
    }

    /// Devices that had something at the last look.
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

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;
    use std::time::Instant;

    use ranpace_units::Span;

    use super::*;

    #[test]
    fn it_ends_at_its_instant_or_with_a_device_and_the_timer_stays_for_the_next_time() {
        let (mut near, far) = UnixStream::pair().unwrap();
        let (other, _end) = UnixStream::pair().unwrap();
        let mut alarm = Alarm::new([other.as_fd(), far.as_fd()].into_iter()).unwrap();
        let begun = Instant::now();
        let now = || Time::ZERO + Span::from_nanos(begun.elapsed().as_nanos() as u64);
        let until = Time::from_millis(60);
        near.write_all(b"x").unwrap();
        alarm.wait(now(), until).unwrap();
        assert_eq!(alarm.ready(), [1]);
        // As long as it is there.
        alarm.look().unwrap();
        assert_eq!(alarm.ready(), [1]);
        (&far).read_exact(&mut [0]).unwrap();
        alarm.look().unwrap();
        assert!(alarm.ready().is_empty() && now() < until);
        // The same instant, which the timer is still set to; then others, later and earlier ones.
        for until in [until, Time::from_millis(70), Time::from_millis(200), Time::from_millis(80)] {
            let too_long = now() + Span::from_secs(20);
            while now() < until && until < Time::from_millis(200) {
                alarm.wait(now(), until).unwrap();
                assert!(alarm.ready().is_empty());
            }
            assert!(now() < too_long);
            if until == Time::from_millis(200) {
                near.write_all(b"x").unwrap();
                alarm.wait(now(), until).unwrap();
                (&far).read_exact(&mut [0]).unwrap();
            }
        }
        // What is past is only looked at.
        alarm.wait(now(), Time::ZERO).unwrap();
        assert!(alarm.ready().is_empty());
    }
}
