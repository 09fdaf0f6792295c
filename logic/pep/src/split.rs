//! A proxy that splits TCP connections (Diarra 2022, section 5.2.1): which connections it splits, how much servers may send it, and
//! RAPID's windows and allocations where it is RAPID.
//!
//! A carrier has both connections of each split flow and moves the payload between them; this module decides. A *place* is what
//! one flow has here, for its connections one after another. The carrier calls, with the time:
//!
//! * [`SplitProxy::admit`] when a connection begins, and [`SplitProxy::release`] when it is over;
//! * [`SplitProxy::on_handshake`] when the server has answered the proxy, or the proxy the server;
//! * [`SplitProxy::on_wan_data`], [`SplitProxy::on_wan_rtt`], [`SplitProxy::on_ran_acked`], [`SplitProxy::on_ran_rtt`] for what
//!   happens on either side, [`SplitProxy::on_radio`] and [`SplitProxy::on_passing`] for what else RAPID is told;
//! * [`SplitProxy::window`] whenever what waits has changed: so much may the server send;
//! * [`SplitProxy::on_deadline`] when [`SplitProxy::next_deadline`] has come;
//!
//! and after any of these [`SplitProxy::next_change`], until there is none. While RAPID has no window for a connection, the proxy
//! is a plain one.

use ranpace_rnis::RadioHint;
use ranpace_units::{Bytes, Rate, Span, Time};

use crate::rapid::{Category, FlowId, FlowRecord, Observer, Rapid, Settings, UserRecord};

/// What may wait in a proxy: payload that came from servers and was not sent to users yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// Of one connection; `None`: an equal part of what its user's may have.
    pub flow: Option<Bytes>,
    /// Of all connections of a user.
    pub user: Bytes,
    /// Of all connections.
    pub total: Bytes,
}

/// RAPID's allocation for a connection on the user's side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RanAllocation {
    /// Rate of its share.
    pub rate: Rate,
    /// Its window for that.
    pub window: Bytes,
}

/// Counters of the connections of a place from the start on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections that were split.
    pub connections: u64,
    /// Connections that were not, because the proxy's buffer was promised to others.
    pub passed: u64,
    /// Periods at whose end RAPID judged their demand.
    pub periods: u64,
    /// Of these, those at whose end it was slow.
    pub slow_periods: u64,
}

/// The deciding half of a proxy that splits connections. See the module's head.
#[derive(Debug)]
pub struct SplitProxy {
    buffers: Buffers,
    /// Open connections of each user.
    open: Vec<u32>,
    promised: Bytes,
    places: Vec<Place>,
    rapid: Option<Rapid<Periods>>,
}

/// State of a flow in the proxy.
#[derive(Debug)]
struct Place {
    user: usize,
    /// Its connection counts among the open ones, with so much promised.
    promised: Option<Bytes>,
    /// RAPID's name for its connection, and what that was allocated.
    rapid: Option<FlowId>,
    allocation: Option<RanAllocation>,
    /// What the server may send, as decided last.
    limit: Bytes,
    counts: Counts,
}

/// Counts the periods of RAPID's flows.
#[derive(Debug, Default)]
struct Periods {
    /// The place of each of RAPID's flows, by its index.
    places: Vec<usize>,
    /// Of each place the periods, and those at whose end it was slow.
    counts: Vec<(u64, u64)>,
}

impl Observer for Periods {
    fn on_period(&mut self, record: &FlowRecord) {
        let place = self.places.get(record.flow.index());
        if let Some((periods, slow)) = place.and_then(|place| self.counts.get_mut(*place)) {
            *periods += 1;
            *slow += u64::from(record.category == Category::Slow);
        }
    }
}

impl SplitProxy {
    /// A proxy for users numbered below `users`, and one number more for whoever is no user; RAPID with these settings, if any.
    pub fn new(buffers: Buffers, rapid: Option<Settings>, users: usize) -> Self {
        Self {
            buffers,
            open: vec![0; users + 1],
            promised: Bytes::ZERO,
            places: Vec::new(),
            rapid: rapid.map(|settings| Rapid::observed(settings, Periods::default())),
        }
    }

    /// A new place, for connections whose data go to this user; a number too large is that of no user.
    pub fn add_place(&mut self, user: usize) -> usize {
        let user = user.min(self.open.len() - 1);
        let counts = Counts::default();
        let limit = Bytes::ZERO;
        self.places.push(Place { user, promised: None, rapid: None, allocation: None, limit, counts });
        if let Some(rapid) = &mut self.rapid {
            rapid.observer_mut().counts.push((0, 0));
        }
        self.places.len() - 1
    }

    /// Whether it decides by radio information.
    pub fn is_rapid(&self) -> bool {
        self.rapid.is_some()
    }

    /// A connection begins. Returns whether it is split: not while more is promised than may wait in all. Until RAPID knows
    /// it, or there is a first [`Self::window`], the server may send `first`.
    pub fn admit(&mut self, now: Time, place: usize, first: Bytes) -> bool {
        self.release(now, place);
        let own = &mut self.places[place];
        let promise = match &self.rapid {
            Some(_) => Bytes::ZERO,
            None => self.buffers.flow.unwrap_or(self.buffers.user),
        };
        let has_room = self.promised + promise <= self.buffers.total;
        if has_room && self.rapid.as_ref().is_none_or(Rapid::admits) {
            self.promised += promise;
            self.open[own.user] += 1;
            own.promised = Some(promise);
            own.counts.connections += 1;
            (own.allocation, own.limit) = (None, first);
            return true;
        }
        own.counts.passed += 1;
        false
    }

    /// A connection is over: it promises nothing any more.
    pub fn release(&mut self, now: Time, place: usize) {
        let own = &mut self.places[place];
        if let Some(promised) = own.promised.take() {
            self.promised -= promised;
            self.open[own.user] -= 1;
        }
        if let (Some(id), Some(rapid)) = (own.rapid.take(), &mut self.rapid) {
            rapid.close(now, id);
        }
    }

    /// Whether a connection of a place counts among the open ones.
    pub fn is_open(&self, place: usize) -> bool {
        self.places[place].promised.is_some()
    }

    /// The handshake with the server took this long: RAPID knows the connection from now on. `ran_rtt` is a sample of the user's side,
    /// if there was one.
    pub fn on_handshake(&mut self, now: Time, place: usize, rtt: Span, mss: Bytes, ran_rtt: Option<Span>) {
        let Some(rapid) = &mut self.rapid else { return };
        let own = &mut self.places[place];
        let id = rapid.open(now, own.user as u32, rtt, mss);
        let places = &mut rapid.observer_mut().places;
        places.resize(places.len().max(id.index() + 1), usize::MAX);
        places[id.index()] = place;
        own.rapid = Some(id);
        if let Some(rtt) = ran_rtt {
            rapid.on_ran_rtt(now, id, rtt);
        }
    }

    /// Payload came from the server, in order.
    pub fn on_wan_data(&mut self, now: Time, place: usize, bytes: Bytes) {
        if let (Some(rapid), Some(id)) = (&mut self.rapid, self.places[place].rapid) {
            rapid.on_wan_data(now, id, bytes);
        }
    }

    /// A sample of the RTT between proxy and server, as the proxy measured it.
    pub fn on_wan_rtt(&mut self, now: Time, place: usize, rtt: Span) {
        if let (Some(rapid), Some(id)) = (&mut self.rapid, self.places[place].rapid) {
            rapid.on_wan_rtt(now, id, rtt);
        }
    }

    /// The user acknowledged so much more.
    pub fn on_ran_acked(&mut self, place: usize, bytes: Bytes) {
        if let (Some(rapid), Some(id)) = (&mut self.rapid, self.places[place].rapid) {
            rapid.on_ran_acked(id, bytes);
        }
    }

    /// A sample of the RTT between proxy and user.
    pub fn on_ran_rtt(&mut self, now: Time, place: usize, rtt: Span) {
        if let (Some(rapid), Some(id)) = (&mut self.rapid, self.places[place].rapid) {
            rapid.on_ran_rtt(now, id, rtt);
        }
    }

    /// Radio information about a user's downlink.
    pub fn on_radio(&mut self, now: Time, user: u32, hint: &RadioHint) {
        if let Some(rapid) = &mut self.rapid {
            rapid.on_radio(now, user, hint);
        }
    }

    /// A packet to a user passes that is not TCP's.
    pub fn on_passing(&mut self, user: u32, wire: Bytes) {
        if let Some(rapid) = &mut self.rapid {
            rapid.on_passing(user, wire);
        }
    }

    /// When it has something to decide; [`Time::MAX`] for never.
    pub fn next_deadline(&self) -> Time {
        self.rapid.as_ref().and_then(Rapid::next_deadline).unwrap_or(Time::MAX)
    }

    /// It decides.
    pub fn on_deadline(&mut self, now: Time) {
        if let Some(rapid) = &mut self.rapid
            && rapid.next_deadline().is_some_and(|at| at <= now)
        {
            rapid.on_deadline(now);
        }
    }

    /// A place for which RAPID decided something else, and whether its allocation is another one. Call until `None`.
    pub fn next_change(&mut self) -> Option<(usize, bool)> {
        let rapid = self.rapid.as_mut()?;
        while let Some(id) = rapid.next_change() {
            let place = rapid.observer().places.get(id.index()).copied().unwrap_or(usize::MAX);
            let Some(own) = self.places.get_mut(place).filter(|own| own.rapid == Some(id)) else { continue };
            let allocation = rapid.allocation(id).zip(rapid.ran_window(id));
            let allocation = allocation.map(|(rate, window)| RanAllocation { rate, window });
            let is_other = allocation != own.allocation;
            own.allocation = allocation;
            return Some((place, is_other));
        }
        None
    }

    /// What RAPID has allocated a connection; `None` leaves it to an ordinary control.
    pub fn allocation(&self, place: usize) -> Option<RanAllocation> {
        self.places[place].allocation
    }

    /// `backlog` waits in the proxy: so much beyond what came may the server send.
    pub fn window(&mut self, now: Time, place: usize, backlog: Bytes) -> Bytes {
        let own = &mut self.places[place];
        own.limit = match (&mut self.rapid, own.rapid) {
            // Before RAPID knows it, and after it is over.
            (Some(_), None) => own.limit,
            (rapid, id) => {
                let of_user = self.buffers.user / u64::from(self.open[own.user].max(1));
                let plain = self.buffers.flow.map_or(of_user, |flow| flow.min(of_user)) - backlog;
                match rapid.as_mut().zip(id) {
                    Some((rapid, id)) => {
                        rapid.on_backlog(now, id, backlog);
                        rapid.window(id).unwrap_or_else(|| plain.min(rapid.room(id)))
                    }
                    None => plain,
                }
            }
        };
        own.limit
    }

    /// The last result of [`Self::window`].
    pub fn limit(&self, place: usize) -> Bytes {
        self.places[place].limit
    }

    /// What RAPID has of a connection and of its user, if it knows both.
    pub fn look(&self, now: Time, place: usize) -> Option<(UserRecord, FlowRecord)> {
        let own = &self.places[place];
        let rapid = self.rapid.as_ref()?;
        rapid.user(now, own.user as u32).zip(rapid.look(now, own.rapid?))
    }

    /// Counters of the connections of a place.
    pub fn counts(&self, place: usize) -> Counts {
        let periods = self.rapid.as_ref().and_then(|rapid| rapid.observer().counts.get(place)).copied();
        let (periods, slow_periods) = periods.unwrap_or_default();
        Counts { periods, slow_periods, ..self.places[place].counts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KB: u64 = 1_000;

    fn plain(flow: Option<u64>, user: u64, total: u64) -> SplitProxy {
        let buffers =
            Buffers { flow: flow.map(Bytes::new), user: Bytes::new(user), total: Bytes::new(total) };
        SplitProxy::new(buffers, None, 2)
    }

    #[test]
    fn a_user_s_buffer_is_shared_by_its_open_connections_and_what_waits_is_taken_off() {
        let mut proxy = plain(None, 100 * KB, 1_000 * KB);
        let places = [proxy.add_place(0), proxy.add_place(0), proxy.add_place(1)];
        let first = Bytes::new(14_600);
        assert!(places.iter().all(|place| proxy.admit(Time::ZERO, *place, first)));
        assert_eq!(proxy.limit(0), first);
        assert_eq!(proxy.window(Time::ZERO, 0, Bytes::new(20 * KB)), Bytes::new(30 * KB));
        assert_eq!(proxy.window(Time::ZERO, 2, Bytes::ZERO), Bytes::new(100 * KB));
        proxy.release(Time::ZERO, 1);
        assert_eq!(proxy.window(Time::ZERO, 0, Bytes::new(20 * KB)), Bytes::new(80 * KB));
        assert_eq!(proxy.window(Time::ZERO, 0, Bytes::new(200 * KB)), Bytes::ZERO);
    }

    #[test]
    fn connections_pass_through_while_more_is_promised_than_may_wait_in_all() {
        let mut proxy = plain(Some(40 * KB), 100 * KB, 100 * KB);
        let places: Vec<usize> = (0..3).map(|_| proxy.add_place(0)).collect();
        let admitted = places.iter().map(|place| proxy.admit(Time::ZERO, *place, Bytes::ZERO));
        assert_eq!(admitted.collect::<Vec<_>>(), [true, true, false]);
        assert_eq!((proxy.counts(2).passed, proxy.is_open(2)), (1, false));
        proxy.release(Time::ZERO, 0);
        assert!(proxy.admit(Time::ZERO, 2, Bytes::ZERO));
        // A connection of the same place takes the place of the one before.
        assert!(proxy.admit(Time::ZERO, 2, Bytes::ZERO));
        assert_eq!(proxy.counts(2).connections, 2);
    }

    #[test]
    fn rapid_bounds_the_server_once_it_knows_the_connection_and_the_radio() {
        use ranpace_phy::LteBandwidth;
        use ranpace_rnis::CellInfo;
        let buffers = Buffers { flow: None, user: Bytes::new(1_000 * KB), total: Bytes::new(9_000 * KB) };
        let mut proxy = SplitProxy::new(buffers, Some(Settings::THESIS), 8);
        let place = proxy.add_place(7);
        let first = Bytes::new(14_600);
        assert!(proxy.is_rapid() && proxy.admit(Time::ZERO, place, first));
        assert_eq!(proxy.window(Time::ZERO, place, Bytes::ZERO), first);
        let hint = RadioHint::of(CellInfo::lte(0, LteBandwidth::Mhz5), Time::ZERO);
        proxy.on_radio(Time::ZERO, 7, &RadioHint { granted: 20.0, unused: 5.0, mcs: 28, ..hint });
        proxy.on_handshake(Time::ZERO, place, Span::from_millis(20), Bytes::new(1_440), None);
        assert_eq!(proxy.next_change(), Some((place, true)));
        assert_eq!(proxy.next_change(), None);
        // The worked example of RAPID's page: 18 336 bits per ms, for 20 ms.
        assert_eq!(proxy.window(Time::ZERO, place, Bytes::ZERO), Bytes::new(45_840));
        assert_eq!(proxy.allocation(place).unwrap().rate, Rate::from_bits_per_s(18_336_000));
        proxy.release(Time::ZERO, place);
        assert_eq!(proxy.window(Time::ZERO, place, Bytes::ZERO), Bytes::new(45_840), "the last one stands");
    }
}
