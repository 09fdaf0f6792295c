//! A server with a fixed rate: packets cross one by one.
//!
//! As in ns-3 and Linux, the packet in service has left the queue and does not count against its limit. Each
//! packet's transmission time is rounded up to a nanosecond.

use ranpace_units::{Bytes, Rate, Time};

use crate::{Observer, Packet, Queue, Queued};

const NANOBITS_PER_BYTE: u64 = 8_000_000_000;

pub(crate) struct FixedServer<P> {
    pub rate: Rate,
    /// Overhead per packet.
    pub overhead: Bytes,
    /// The packet in service.
    pub current: Option<Queued<P>>,
    /// The rest of it in 10^-9 bit, as of `since`: exact across changes of the rate.
    left: u64,
    since: Time,
    /// When the server is free again and polls the queue; [`Time::MAX`] while it is idle.
    pub done: Time,
}

impl<P: Packet> FixedServer<P> {
    pub fn new(rate: Rate) -> Self {
        Self { rate, overhead: Bytes::ZERO, current: None, left: 0, since: Time::ZERO, done: Time::MAX }
    }

    /// A server that takes over `current` at `now` with `bytes` of it left, and then polls the queue.
    pub fn taking_over(now: Time, rate: Rate, current: Option<Queued<P>>, bytes: u64) -> Self {
        let left = bytes.saturating_mul(NANOBITS_PER_BYTE);
        let mut server = Self { rate, overhead: Bytes::ZERO, current, left, since: now, done: now };
        if server.current.is_some() {
            server.set_done(now);
        }
        server
    }

    /// Fetches the next packet, if there is one.
    #[inline(always)]
    pub fn start(&mut self, now: Time, queue: &mut Queue<P>, observer: &mut impl Observer<P>) {
        let rate = self.rate;
        queue.on_capacity(now, |from, to| rate.bytes_in(to.since(from)));
        self.current = queue.pop(now, observer);
        self.done = match &self.current {
            Some(queued) => {
                let size = queued.packet.size() + self.overhead;
                self.left = size.get().saturating_mul(NANOBITS_PER_BYTE);
                self.since = now;
                now + self.rate.time_for(size)
            }
            None => Time::MAX,
        };
    }

    /// Changes the rate. A transmission that ends by `now` is not affected.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        if self.current.is_some() && self.done > now {
            let span = now.since(self.since).as_nanos();
            let sent = u128::from(self.rate.bits_per_s()) * u128::from(span);
            self.left -= u64::try_from(sent).unwrap_or(u64::MAX).min(self.left);
            self.rate = rate;
            self.set_done(now);
        }
        self.rate = rate;
    }

    fn set_done(&mut self, now: Time) {
        self.since = now;
        let rate = self.rate.bits_per_s();
        self.done = if rate == 0 {
            Time::MAX
        } else {
            now + ranpace_units::Span::from_nanos(self.left.div_ceil(rate))
        };
    }
}
