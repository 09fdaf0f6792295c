//! A proxy that splits TCP connections (Diarra 2022, section 5.2.1): decides which connections it splits and how much servers may
//! send it, and applies RAPID's windows and allocations if it runs RAPID.
//!
//! The carrier owns both connections of each split flow and moves the payload between them; this module decides. A *place* is the
//! state that one flow keeps here across its successive connections. The carrier calls, with the time:
//!
//! * [`SplitProxy::admit`] when a connection begins, and [`SplitProxy::release`] when it is over;
//! * [`SplitProxy::on_handshake`] when the handshake between proxy and server is complete;
//! * [`SplitProxy::on_wan_data`], [`SplitProxy::on_wan_rtt`], [`SplitProxy::on_ran_acked`], [`SplitProxy::on_ran_rtt`] for events
//!   on either side, [`SplitProxy::on_radio`] and [`SplitProxy::on_passing`] for RAPID's other inputs;
//! * [`SplitProxy::window`] whenever the backlog has changed: it returns how much the server may send;
//! * [`SplitProxy::on_deadline`] when [`SplitProxy::next_deadline`] has come;
//!
//! and after any of these [`SplitProxy::next_change`] until it returns `None`. While RAPID has no window for a connection, the
//! proxy is a plain one.

use ranpace_rnis::RadioHint;
use ranpace_units::{Bytes, Rate, Span, Time};

use crate::rapid::{Category, FlowId, FlowRecord, Observer, Rapid, Settings, UserRecord};

/// Limits of a proxy's backlog: payload that came from servers and was not sent to users yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// Per connection; `None`: an equal part of its user's limit.
    pub flow: Option<Bytes>,
    /// Per user.
    pub user: Bytes,
    /// In total.
    pub total: Bytes,
}

/// RAPID's allocation for a connection on the user's side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RanAllocation {
    /// Allocated rate.
    pub rate: Rate,
    /// Congestion window for that rate.
    pub window: Bytes,
}

/// Counters of the connections of a place since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections that were split.
    pub connections: u64,
    /// Connections that were not, because the proxy's buffer was committed to others.
    pub passed: u64,
    /// Periods at whose end RAPID judged the demand.
    pub periods: u64,
    /// Periods at whose end the flow was slow.
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
    /// Buffer committed to its connection; `None` while it has no open one.
    promised: Option<Bytes>,
    /// RAPID's id for its connection, and the latest allocation.
    rapid: Option<FlowId>,
    allocation: Option<RanAllocation>,
    /// The last limit for the server.
    limit: Bytes,
    counts: Counts,
}

/// Counts the periods of RAPID's flows.
#[derive(Debug, Default)]
struct Periods {
    /// The place of each of RAPID's flows, by its index.
    places: Vec<usize>,
    /// For each place, its periods, and those at whose end the flow was slow.
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
    /// A proxy for users 0 to `users` - 1, with one more entry for destinations that are no user; `rapid` holds RAPID's settings,
    /// if it runs.
    pub fn new(buffers: Buffers, rapid: Option<Settings>, users: usize) -> Self {
        Self {
            buffers,
            open: vec![0; users + 1],
            promised: Bytes::ZERO,
            places: Vec::new(),
            rapid: rapid.map(|settings| Rapid::observed(settings, Periods::default())),
        }
    }

    /// Adds a place for connections to this user; too large a number stands for no user.
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

    /// Returns whether it runs RAPID.
    pub fn is_rapid(&self) -> bool {
        self.rapid.is_some()
    }

    /// A connection begins. Returns whether it is split, which is refused while the committed buffers exceed the total. The server
    /// may send `first` until RAPID knows the connection or [`Self::window`] is called.
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

    /// A connection is over: its committed buffer is released.
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

    /// Returns whether a place has an open connection.
    pub fn is_open(&self, place: usize) -> bool {
        self.places[place].promised.is_some()
    }

    /// The handshake with the server took `rtt`: RAPID knows the connection from now on. `ran_rtt` is a sample of the user's side,
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

    /// The user acknowledged `bytes` of new payload.
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

    /// A packet that is not TCP passes towards a user.
    pub fn on_passing(&mut self, user: u32, wire: Bytes) {
        if let Some(rapid) = &mut self.rapid {
            rapid.on_passing(user, wire);
        }
    }

    /// When [`Self::on_deadline`] has to be called; [`Time::MAX`] for never.
    pub fn next_deadline(&self) -> Time {
        self.rapid.as_ref().and_then(Rapid::next_deadline).unwrap_or(Time::MAX)
    }

    /// Runs RAPID's due decisions.
    pub fn on_deadline(&mut self, now: Time) {
        if let Some(rapid) = &mut self.rapid
            && rapid.next_deadline().is_some_and(|at| at <= now)
        {
            rapid.on_deadline(now);
        }
    }

    /// The next place whose decision by RAPID has changed, and whether its allocation has. Call until `None`.
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

    /// RAPID's allocation for a connection; `None` leaves it to an ordinary control.
    pub fn allocation(&self, place: usize) -> Option<RanAllocation> {
        self.places[place].allocation
    }

    /// Returns how many bytes the server may send beyond those received, with `backlog` waiting in the proxy.
    pub fn window(&mut self, now: Time, place: usize, backlog: Bytes) -> Bytes {
        let own = &mut self.places[place];
        own.limit = match (&mut self.rapid, own.rapid) {
            // RAPID does not know the connection yet, or it is over.
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

    /// RAPID's records of a connection and of its user, if it knows both.
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
    fn user_buffer_is_shared_and_backlog_is_deducted() {
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
    fn connections_bypass_while_promised_windows_exceed_the_buffer() {
        let mut proxy = plain(Some(40 * KB), 100 * KB, 100 * KB);
        let places: Vec<usize> = (0..3).map(|_| proxy.add_place(0)).collect();
        let admitted = places.iter().map(|place| proxy.admit(Time::ZERO, *place, Bytes::ZERO));
        assert_eq!(admitted.collect::<Vec<_>>(), [true, true, false]);
        assert_eq!((proxy.counts(2).passed, proxy.is_open(2)), (1, false));
        proxy.release(Time::ZERO, 0);
        assert!(proxy.admit(Time::ZERO, 2, Bytes::ZERO));
        // A new connection of a place replaces the previous one.
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
