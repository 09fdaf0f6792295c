//! A bearer: its two directions, with the status reports of each carried in the blocks of the other.

use ranpace_link::{Limit, Packet};
use ranpace_phy::{Both, Direction};
use ranpace_units::{Bytes, Span, Time};

use super::{Channel, Config, Kind, Observer, Pdu};

/// Both directions of a bearer; they must have the same mode, so that status reports are delivered.
#[derive(Clone, Debug, PartialEq)]
pub struct BearerConfig {
    /// From the base station to the UE.
    pub downlink: Config,
    /// From the UE to the base station.
    pub uplink: Config,
}

impl BearerConfig {
    /// Limit of this direction's buffer; `None` if it is not limited in bytes.
    pub fn buffer(&self, direction: Direction) -> Option<Bytes> {
        let config = match direction {
            Direction::Downlink => &self.downlink,
            Direction::Uplink => &self.uplink,
        };
        match config.buffer.limit() {
            Limit::Bytes(bytes) => Some(bytes),
            Limit::Packets(_) | Limit::Unlimited => None,
        }
    }

    /// The same in both directions.
    pub fn both(config: Config) -> Self {
        Self { downlink: config.clone(), uplink: config }
    }
}

/// A bearer. Observers receive the packets of the direction that the call is for.
pub struct Bearer<P> {
    downlink: Channel<P>,
    uplink: Channel<P>,
    /// Cached answers to per-slot queries; `None` if something has happened since.
    outlook: Option<Both<SlotCache>>,
}

/// Values that are queried for one direction in every slot, and change only if something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SlotCache {
    deadline: Time,
    /// Excludes a status report about the other direction.
    wanted: Bytes,
    status_due: Time,
    to_be_sent: Bytes,
    head_arrived: Option<Time>,
}

/// The opposite direction.
fn back(direction: Direction) -> Direction {
    match direction {
        Direction::Downlink => Direction::Uplink,
        Direction::Uplink => Direction::Downlink,
    }
}

impl<P: Packet> Bearer<P> {
    /// An idle bearer. `seed` is for queue disciplines that draw random numbers.
    pub fn new(config: &BearerConfig, seed: u64) -> Self {
        Self {
            downlink: Channel::new(&config.downlink, seed),
            uplink: Channel::new(&config.uplink, !seed),
            outlook: None,
        }
    }

    /// One direction.
    #[inline]
    pub fn channel(&self, direction: Direction) -> &Channel<P> {
        match direction {
            Direction::Downlink => &self.downlink,
            Direction::Uplink => &self.uplink,
        }
    }

    #[inline]
    fn channel_mut(&mut self, direction: Direction) -> &mut Channel<P> {
        self.outlook = None;
        match direction {
            Direction::Downlink => &mut self.downlink,
            Direction::Uplink => &mut self.uplink,
        }
    }

    /// Adds a packet for this direction to the buffer, or drops it.
    pub fn enqueue(&mut self, now: Time, direction: Direction, packet: P, observer: &mut impl Observer<P>) {
        self.channel_mut(direction).enqueue(now, packet, observer);
    }

    /// Builds a PDU for `grant` bytes of a block of this direction: a report about the other direction, or else retransmissions,
    /// or else new data. Callers repeat it while there is room left.
    pub fn build(
        &mut self,
        now: Time,
        direction: Direction,
        grant: Bytes,
        observer: &mut impl Observer<P>,
    ) -> Option<Pdu> {
        let report = self.channel_mut(back(direction)).build_status(now, grant);
        report.or_else(|| self.channel_mut(direction).build(now, grant, observer))
    }

    /// Handles a PDU of a decoded transport block of this direction.
    pub fn on_received(
        &mut self,
        now: Time,
        direction: Direction,
        pdu: Pdu,
        observer: &mut impl Observer<P>,
    ) {
        if pdu.is_status() {
            self.channel_mut(back(direction)).on_status(now, pdu);
        } else {
            self.channel_mut(direction).on_received(now, pdu, observer);
            // A poll also triggers a report of this end's own backlog to the scheduler.
            if matches!(pdu.kind, Kind::Data { poll: true, .. }) {
                self.channel_mut(back(direction)).report_backlog(now);
            }
        }
    }

    /// Handles the loss of a PDU with its transport block of this direction.
    pub fn on_lost(&mut self, now: Time, direction: Direction, pdu: Pdu, observer: &mut impl Observer<P>) {
        if pdu.is_status() {
            self.channel_mut(back(direction)).on_status_lost(pdu);
        } else {
            self.channel_mut(direction).on_lost(now, pdu, observer);
        }
    }

    /// When [`Self::on_deadline`] is due for this direction; [`Time::MAX`] if no timer runs.
    #[inline]
    pub fn next_deadline(&self, direction: Direction) -> Time {
        self.outlook(direction, |outlook| outlook.deadline)
    }

    /// Handles timers of this direction that expired by `now`.
    pub fn on_deadline(&mut self, now: Time, direction: Direction, observer: &mut impl Observer<P>) {
        self.channel_mut(direction).on_deadline(now, observer);
    }

    /// A grant of this direction that suffices for everything that may be sent now, including a report.
    #[inline]
    pub fn wanted(&self, now: Time, direction: Direction) -> Bytes {
        let (wanted, status_due) = self.outlook(direction, |outlook| (outlook.wanted, outlook.status_due));
        if status_due > now { wanted } else { wanted + self.channel(back(direction)).status_wanted(now) }
    }

    /// Returns whether blocks of this direction are granted for unacknowledged data.
    #[inline]
    pub fn claims(&self, direction: Direction) -> bool {
        self.channel(direction).claims()
    }

    /// Data to be sent in this direction, including retransmissions.
    #[inline]
    pub fn to_be_sent(&self, direction: Direction) -> Bytes {
        self.outlook(direction, |outlook| outlook.to_be_sent)
    }

    /// Returns how long the packet with the next new byte of this direction has waited; zero if there is none.
    #[inline]
    pub fn head_of_line_delay(&self, now: Time, direction: Direction) -> Span {
        self.outlook(direction, |outlook| {
            outlook.head_arrived.map_or(Span::ZERO, |arrived| now.since(arrived))
        })
    }

    /// The earliest time for a report in this direction, for which a UE without a grant requests one; [`Time::MAX`] if none is pending.
    #[inline]
    pub fn status_due(&self, direction: Direction) -> Time {
        self.outlook(direction, |outlook| outlook.status_due)
    }

    /// Caches the answers to per-slot queries until something happens: a bearer is queried in every slot, and mostly nothing
    /// has happened.
    #[inline]
    pub(super) fn settle(&mut self) {
        match &self.outlook {
            Some(kept) => debug_assert_eq!(*kept, Both::of(|direction| self.look(direction))),
            None => self.outlook = Some(Both::of(|direction| self.look(direction))),
        }
    }

    #[inline]
    fn outlook<T>(&self, direction: Direction, ask: impl Fn(&SlotCache) -> T) -> T {
        match &self.outlook {
            Some(outlook) => ask(&outlook[direction]),
            None => ask(&self.look(direction)),
        }
    }

    #[inline(never)]
    fn look(&self, direction: Direction) -> SlotCache {
        let channel = self.channel(direction);
        SlotCache {
            deadline: channel.next_deadline(),
            wanted: channel.wanted(),
            status_due: self.channel(back(direction)).status_due(),
            to_be_sent: channel.to_be_sent(),
            head_arrived: channel.head_arrived(),
        }
    }

    /// Whether packets wait above RLC, in the downlink.
    pub fn is_waiting_above(&self) -> bool {
        !self.downlink.waiting_above().is_zero()
    }

    /// Takes from the stages above RLC what they pass on by `now`.
    #[inline]
    pub fn refill(&mut self, now: Time, observer: &mut impl Observer<P>) {
        if self.downlink.is_staged() {
            self.channel_mut(Direction::Downlink).refill(now, observer);
        }
    }

    /// Tells the downlink's queues that wish to know of a slot that carried data of this bearer, and could have carried `egress`.
    pub fn on_slot(&mut self, now: Time, slot: Span, egress: Bytes) {
        if self.downlink.wants_slots() {
            self.downlink.on_slot(now, slot, egress);
        }
    }

    /// Re-establishes this direction; see [`Channel::restart`]. The caller must restart both directions.
    pub fn restart(&mut self, now: Time, direction: Direction, keep: bool, observer: &mut impl Observer<P>) {
        self.channel_mut(direction).restart(now, keep, observer);
    }

    /// Drops the packets in the buffer of this direction.
    pub fn empty(&mut self, now: Time, direction: Direction, observer: &mut impl Observer<P>) {
        self.channel_mut(direction).empty(now, observer);
    }
}
