//! A user: its bearers, in order of priority.

use ranpace_link::Packet;
use ranpace_phy::Direction;
use ranpace_units::{Bytes, Span, Time};

use super::{Bearer, BearerConfig, Observer, Pdu};

/// The part of a user that a transport block carries: a PDU and its bearer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UserPdu {
    /// Index of the bearer.
    pub bearer: u8,
    /// The PDU of that bearer.
    pub pdu: Pdu,
}

/// The bearers of a user; a lower index has priority. Users share nothing.
pub struct User<P> {
    bearers: Vec<Bearer<P>>,
}

impl<P: Packet> User<P> {
    /// Idle bearers, at most 256 (further ones are ignored; TS 36.321 allows 32). `seed` is for queue disciplines that draw random numbers.
    pub fn new(bearers: &[BearerConfig], seed: u64) -> Self {
        let bearers = bearers.iter().take(256).enumerate();
        Self { bearers: bearers.map(|(n, config)| Bearer::new(config, seed ^ ((n as u64) << 32))).collect() }
    }

    /// Its bearers.
    pub fn bearers(&self) -> &[Bearer<P>] {
        &self.bearers
    }

    /// The bearer with this index, for enqueueing; `None` if there is none.
    pub fn bearer_mut(&mut self, bearer: u8) -> Option<&mut Bearer<P>> {
        self.bearers.get_mut(usize::from(bearer))
    }

    /// Fills a transport block of `size` bytes with the reports, retransmissions and new data of each bearer in turn. Appends
    /// to `content` (which the caller reuses) and returns the bytes left for padding.
    pub fn fill(
        &mut self,
        now: Time,
        direction: Direction,
        size: Bytes,
        content: &mut Vec<UserPdu>,
        observer: &mut impl Observer<P>,
    ) -> Bytes {
        let mut left = size;
        for (bearer, index) in self.bearers.iter_mut().zip(0..=u8::MAX) {
            while let Some(pdu) = bearer.build(now, direction, left, observer) {
                left -= pdu.size();
                content.push(UserPdu { bearer: index, pdu });
            }
        }
        left
    }

    /// Handles the PDUs of a decoded transport block.
    pub fn on_received(
        &mut self,
        now: Time,
        direction: Direction,
        content: &[UserPdu],
        observer: &mut impl Observer<P>,
    ) {
        for &UserPdu { bearer, pdu } in content {
            if let Some(bearer) = self.bearer_mut(bearer) {
                bearer.on_received(now, direction, pdu, observer);
            }
        }
    }

    /// Handles the PDUs of a lost transport block.
    pub fn on_lost(
        &mut self,
        now: Time,
        direction: Direction,
        content: &[UserPdu],
        observer: &mut impl Observer<P>,
    ) {
        for &UserPdu { bearer, pdu } in content {
            if let Some(bearer) = self.bearer_mut(bearer) {
                bearer.on_lost(now, direction, pdu, observer);
            }
        }
    }

    /// Whether a bearer has stages above RLC.
    #[inline]
    pub fn is_staged(&self) -> bool {
        self.bearers.iter().any(|bearer| bearer.channel(Direction::Downlink).is_staged())
    }

    /// Whether a bearer's downlink queues go by what slots carry.
    #[inline]
    pub fn wants_slots(&self) -> bool {
        self.bearers.iter().any(|bearer| bearer.channel(Direction::Downlink).wants_slots())
    }

    /// Whether packets wait above RLC.
    pub fn is_waiting_above(&self) -> bool {
        self.bearers.iter().any(Bearer::is_waiting_above)
    }

    /// Takes from the stages above RLC what they pass on by `now`.
    pub fn refill(&mut self, now: Time, observer: &mut impl Observer<P>) {
        for bearer in &mut self.bearers {
            bearer.refill(now, observer);
        }
    }

    /// Tells the bearers' queues of a downlink slot of length `slot`, which carried `content` and could have carried `egress`.
    pub fn on_slot(&mut self, now: Time, slot: Span, egress: Bytes, content: &[UserPdu]) {
        for (bearer, index) in self.bearers.iter_mut().zip(0..=u8::MAX) {
            let others = content.iter().filter(|part| part.bearer != index).map(|part| part.pdu.size()).sum();
            bearer.on_slot(now, slot, egress - egress.min(others));
        }
    }

    /// Caches the answers to the queries below until something happens. Calling it is optional.
    #[inline]
    pub fn settle(&mut self) {
        self.bearers.iter_mut().for_each(Bearer::settle);
    }

    /// When [`Self::on_deadline`] is due for this direction; [`Time::MAX`] if no timer runs.
    #[inline]
    pub fn next_deadline(&self, direction: Direction) -> Time {
        self.bearers.iter().map(|bearer| bearer.next_deadline(direction)).min().unwrap_or(Time::MAX)
    }

    /// Handles timers of this direction that expired by `now`.
    pub fn on_deadline(&mut self, now: Time, direction: Direction, observer: &mut impl Observer<P>) {
        for bearer in &mut self.bearers {
            if bearer.next_deadline(direction) <= now {
                bearer.on_deadline(now, direction, observer);
            }
        }
    }

    /// A grant that suffices for everything that may be sent now.
    #[inline]
    pub fn wanted(&self, now: Time, direction: Direction) -> Bytes {
        self.bearers.iter().map(|bearer| bearer.wanted(now, direction)).sum()
    }

    /// Returns whether blocks of this direction are granted for unacknowledged data, and may thus stay empty.
    #[inline]
    pub fn claims(&self, direction: Direction) -> bool {
        self.bearers.iter().any(|bearer| bearer.claims(direction))
    }

    /// Data to be sent in this direction, including retransmissions: the queue that radio reports show.
    pub fn to_be_sent(&self, direction: Direction) -> Bytes {
        self.bearers.iter().map(|bearer| bearer.to_be_sent(direction)).sum()
    }

    /// The longest wait at the head of a bearer.
    #[inline]
    pub fn head_of_line_delay(&self, now: Time, direction: Direction) -> Span {
        let delay = |bearer: &Bearer<P>| bearer.head_of_line_delay(now, direction);
        self.bearers.iter().map(delay).max().unwrap_or(Span::ZERO)
    }
}
