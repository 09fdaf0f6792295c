//! The links, cells and routes of a scenario: packets in, packets and events out.
//!
//! A network has no endpoints and reads no clock. Its driver takes the next event from [`Network::queue`], sets the time with
//! [`Network::set_now`], and passes the event to [`Network::handle`]: the simulator at the event's own time, the emulator when the
//! real clock has reached it. The driver provides the hosts: see [`Hosts`].
//!
//! The way of a packet: [`Network::send`] offers it to the first link or cell of its route (`offer`). When it comes out there
//! (`on_link`, `on_radio`), `forward` shows it to the participants at that host, and offers it to the next link or cell, or gives it
//! to its receiver ([`Hosts::on_arrived`]).

use ranpace_cc::RadioHint;
use ranpace_link::{Link, Service};
use ranpace_pep::middlebox::{Middlebox, MiddleboxPacket, Verdict};
use ranpace_phy::Direction as Way;
use ranpace_radio::cell::CellSubscription;
use ranpace_rnis::update::Update;
use ranpace_rnis::{AssociateId, CellGrant, ControlChannel, Grant};
use ranpace_scenario::{ChangeKind, Hop, Scenario};
use ranpace_units::{Bytes, Rate, Span, Time};

use crate::event_queue::{Event, EventQueue, Timer};
use crate::feed::{HintDelivery, Reader, Source};
use crate::meter::{FlowMeter, LinkMeter, Meters};
use crate::packet::{Direction, Packet, PacketHandle};
use crate::radio::{self, Radio, RadioReader};
use crate::random::part_seed;
use crate::results::{CellResult, FeedResult, LinkResult, Series, UserResult};
use crate::route::{Place, Routes, Step, Stop, splits};
use crate::series::LinkRows;
use crate::updates;

/// Packets that are prefetched together.
const AHEAD: usize = 16;

/// The hosts of a network: endpoints, proxies, taps. Each method may send packets and schedule events.
pub trait Hosts<'a> {
    /// Events of hosts.
    type Event: Copy;

    /// A packet has reached the end of its route. The hosts now own it: see [`Network::deliver`].
    fn on_arrived(&mut self, network: &mut Network<'a, Self::Event>, packet: PacketHandle);

    /// A packet passes a participant other than its endpoints: one of the [`Stop`]s. It may change the packet's segment, and
    /// [`Network::lengthen`] it.
    fn on_passing(
        &mut self,
        network: &mut Network<'a, Self::Event>,
        participant: u32,
        packet: &mut PacketHandle,
    ) -> Verdict;

    /// An event scheduled by [`Network::enter`] is due.
    fn on_event(&mut self, network: &mut Network<'a, Self::Event>, event: Self::Event);

    /// Radio information has arrived for one of its readers.
    fn on_hint(&mut self, network: &mut Network<'a, Self::Event>, delivery: &HintDelivery);

    /// The modem of a user received a grant, and [`Network::listen`] was called for it.
    fn on_grant(&mut self, network: &mut Network<'a, Self::Event>, user: u32, grant: &RadioHint);

    /// A slot of its cell's control channel has arrived for the receiver of a flow that decodes it.
    fn on_cell(&mut self, network: &mut Network<'a, Self::Event>, flow: u32, channel: &ControlChannel<'_>);

    /// The measured part begins.
    fn on_measure(&mut self, network: &mut Network<'a, Self::Event>);

    /// A row of the series is due, for the interval that ends now.
    fn on_sample(&mut self, network: &mut Network<'a, Self::Event>, interval: Span);

    /// A change of the scenario takes place that does not concern the network.
    fn on_change(&mut self, network: &mut Network<'a, Self::Event>, change: &ChangeKind);

    /// Prefetches the state that the next packets to leave a link will need into the processor's cache. Called only with
    /// [`Drive::prefetches`].
    fn prefetch(&self, _: &Network<'a, Self::Event>, _: &[PacketHandle]) {}
}

/// The ways in which drivers of a network differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drive {
    /// Prefetch state, because there is too much of it for the processor's cache.
    pub prefetches: bool,
    /// Schedule events of a link only when a packet can come out of it. Events inside a link still take effect at their own
    /// instants, but are observed later. For drivers by the real clock, which pay for each event.
    pub arrivals_only: bool,
}

/// A network. `E` is the type of its hosts' events.
pub struct Network<'a, E> {
    scenario: &'a Scenario,
    now: Time,
    /// Future events.
    pub queue: EventQueue<E>,
    /// The meters, and the pool of packets.
    pub meters: Meters<'a>,
    /// The routes of flows.
    pub routes: Routes,
    drive: Drive,
    /// The scenario's middleboxes, which are the participants with the lowest numbers.
    middleboxes: Vec<Box<dyn Middlebox>>,
    links: Vec<Link<PacketHandle>>,
    link_timers: Vec<Timer>,
    /// The cells, if there are any.
    radio: Option<Box<Radio<'a>>>,
    radio_timer: Timer,
    feed_timer: Timer,
    /// Packets that have just left the cells.
    arrived: Vec<PacketHandle>,
    /// Grants that modems have just received.
    grants: Vec<(u32, Grant)>,
    /// Messages of the slot of a control channel that is being delivered.
    cell_grants: Vec<CellGrant>,
    /// For each link, the packets that were prefetched and have not left it yet.
    prefetched: Vec<usize>,
    link_rows: Vec<LinkRows>,
    measured_from: Time,
    last_sample: Time,
}

/// The results of a network.
#[derive(Debug)]
pub struct NetworkResult {
    /// Start of the measured part.
    pub measured_from: Time,
    /// As in [`crate::RunResult::links`].
    pub links: Vec<LinkResult>,
    /// Per cell.
    pub cells: Vec<CellResult>,
    /// Per user of the cells.
    pub users: Vec<UserResult>,
    /// Bytes and reports of the edge's feed; `None` without a reader.
    pub feed: Option<FeedResult>,
    /// Per flow, and per connection to a server of each split flow.
    pub flows: Vec<FlowMeter>,
    /// The ledger of bytes.
    pub ledger: crate::results::Ledger,
}

impl<'a, E: Copy> Network<'a, E> {
    /// Prepares a scenario; packets pass participants at `stops`. Nothing has been sent yet; call [`Self::start`] next.
    pub fn new(scenario: &'a Scenario, drive: Drive, stops: &[Stop]) -> Self {
        let links: Vec<Link<PacketHandle>> = scenario
            .links
            .iter()
            .enumerate()
            .map(|(index, link)| {
                Link::new(&link.config, part_seed(scenario.seed, 0, index)).with_overhead(link.overhead)
            })
            .collect();
        let link_meters = scenario.links.iter().map(|link| LinkMeter {
            limited: mean_rate(&link.config.service).is_some(),
            ..LinkMeter::default()
        });
        let first = scenario.links.len() as u32;
        let mut radio = (!scenario.cells.is_empty())
            .then(|| Box::new(Radio::new(scenario, first, part_seed(scenario.seed, 2, 0))));
        let on_air = radio.as_ref().map_or(0, |radio| radio.metered());
        let air_meter = LinkMeter { limited: true, ..LinkMeter::default() };
        let link_meters = link_meters.chain(std::iter::repeat_n(air_meter, 2 * on_air));
        let mut bottleneck = |path: &[Hop]| bottleneck(scenario, radio.as_deref_mut(), path);
        let mut flow_meters: Vec<FlowMeter> =
            scenario.flows.iter().map(|flow| FlowMeter::at(bottleneck(&flow.path))).collect();
        // Packets between server and proxy are measured at the whole flow's bottleneck.
        for (_, split) in splits(scenario) {
            flow_meters.push(FlowMeter::at(flow_meters[split.flow].bottleneck));
        }
        let mut queue = EventQueue::default();
        // The measured part begins right after the end of the warm-up, as capacities are counted; without a warm-up everything
        // counts.
        let instant = if scenario.warmup.is_zero() { Span::ZERO } else { Span::from_nanos(1) };
        queue.enter(Time::ZERO + scenario.warmup + instant, Event::Measure);
        Self {
            now: Time::ZERO,
            queue,
            link_timers: vec![Timer::OFF; links.len()],
            link_rows: (0..links.len() + 2 * on_air).map(|_| LinkRows::default()).collect(),
            links,
            meters: Meters::new(flow_meters, link_meters.collect()),
            radio_timer: Timer::OFF,
            feed_timer: Timer::OFF,
            radio,
            arrived: Vec::new(),
            grants: Vec::new(),
            cell_grants: Vec::new(),
            routes: Routes::new(scenario, stops),
            middleboxes: scenario.middleboxes.iter().map(|spec| spec.kind.build()).collect(),
            drive,
            prefetched: vec![0; scenario.links.len()],
            measured_from: Time::ZERO + scenario.warmup,
            last_sample: Time::ZERO,
            scenario,
        }
    }

    /// Schedules the events of the scenario. At equal times, events that hosts scheduled before come first.
    pub fn start(&mut self) {
        for (index, change) in self.scenario.changes.iter().enumerate() {
            self.queue.enter(change.at, Event::Change(index as u32));
        }
        self.queue.enter(Time::ZERO + self.scenario.sample, Event::Sample);
        // Cells report from the beginning if the feed has readers.
        if self.radio.as_mut().is_some_and(|radio| radio.feed().is_read()) {
            self.arm_radio();
        }
    }

    /// The current time.
    #[inline]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Sets the current time, which never runs backwards.
    #[inline]
    pub fn set_now(&mut self, now: Time) {
        debug_assert!(now >= self.now, "time runs forwards");
        self.now = now;
    }

    /// Schedules an event of the hosts.
    #[inline]
    pub fn enter(&mut self, at: Time, event: E) {
        self.queue.enter(at, Event::Host(event));
    }

    /// Sets a timer of the hosts.
    #[inline]
    pub fn set_timer(&mut self, timer: &mut Timer, at: Time, event: E) {
        timer.set(at.max(self.now), Event::Host(event), &mut self.queue);
    }

    /// Handles an event that is due now.
    pub fn handle<H: Hosts<'a, Event = E>>(&mut self, event: Event<E>, hosts: &mut H) {
        match event {
            Event::Host(event) => hosts.on_event(self, event),
            Event::Link(link) => {
                if self.link_timers[link as usize].fires(self.now) {
                    self.on_link(link, hosts);
                }
            }
            Event::Radio => {
                if self.radio_timer.fires(self.now) {
                    self.on_radio(hosts);
                }
            }
            Event::Feed => {
                if self.feed_timer.fires(self.now) {
                    self.deliver_hints(hosts);
                }
            }
            Event::Change(index) => self.change(index as usize, hosts),
            Event::Measure => {
                self.meters.settle();
                self.meters.measuring = true;
                hosts.on_measure(self);
                if let Some(radio) = &mut self.radio {
                    radio.measure(self.now);
                }
            }
            Event::Sample => {
                self.sample(hosts);
                self.queue.enter(self.now + self.scenario.sample, Event::Sample);
            }
        }
    }

    /// The slot for a host's next packet; the packet does not exist until [`Self::send`].
    #[inline]
    pub fn vacant(&mut self) -> &mut Packet {
        self.meters.packets.vacant()
    }

    /// Sends the packet written to [`Self::vacant`] on its route, starting at step `first`.
    #[inline]
    pub fn send(&mut self, first: Place) -> Option<PacketHandle> {
        let packet = self.meters.packets.take()?;
        self.meters.ledger.offered += Bytes::new(u64::from(packet.wire()));
        self.offer(first, packet);
        Some(packet)
    }

    /// A packet has reached an end of its route: counts it and releases its slot.
    #[inline]
    pub fn deliver(&mut self, packet: PacketHandle) {
        self.count_delivered(packet);
        self.meters.packets.release(packet);
    }

    /// Like [`Self::deliver`], but keeps the slot, whose content is still needed.
    #[inline]
    pub fn count_delivered(&mut self, packet: PacketHandle) {
        self.meters.ledger.delivered += Bytes::new(u64::from(packet.wire()));
    }

    /// A participant has added this many bytes to the headers of a packet that passes it.
    pub fn lengthen(&mut self, packet: &mut PacketHandle, bytes: u32) {
        self.meters.packets.at(*packet).segment.wire += bytes;
        packet.lengthen(bytes);
        self.meters.ledger.offered += Bytes::new(u64::from(bytes));
    }

    #[inline]
    fn offer(&mut self, place: Place, packet: PacketHandle) {
        match self.routes.step(place) {
            Step::Link(link) => {
                self.links[link as usize].send(self.now, packet, &mut self.meters.at(link));
                self.arm_link(link);
            }
            Step::Radio(user, direction) => {
                let bearer = self.scenario.flows[packet.flow() as usize].bearer;
                if let Some(radio) = &mut self.radio {
                    radio.send(self.now, user, direction, bearer, packet, &mut self.meters);
                    let at = radio.next_event().max(self.now);
                    self.radio_timer.set(at, Event::Radio, &mut self.queue);
                }
            }
            // `forward` has handled participants, and no route begins with one.
            Step::Participant(_) => debug_assert!(false, "a participant is no link"),
        }
    }

    fn on_link<H: Hosts<'a, Event = E>>(&mut self, link: u32, hosts: &mut H) {
        while let Some(packet) = self.links[link as usize].poll(self.now, &mut self.meters.at(link)) {
            if self.drive.prefetches {
                self.prefetch(link as usize, hosts);
            }
            self.forward(packet, hosts);
        }
        self.arm_link(link);
    }

    /// Prefetches what the next packets out of a link will need, many at a time; if fetched one by one on arrival, each would
    /// stall.
    #[inline]
    fn prefetch<H: Hosts<'a, Event = E>>(&mut self, link: usize, hosts: &mut H) {
        if self.prefetched[link] > 0 {
            self.prefetched[link] -= 1;
            return;
        }
        let mut ahead = [PacketHandle::NONE; AHEAD];
        let mut count = 0;
        for (place, ahead) in ahead.iter_mut().enumerate() {
            let Some(packet) = self.links[link].upcoming(place) else { break };
            *ahead = *packet;
            count += 1;
        }
        hosts.prefetch(self, &ahead[..count]);
        self.prefetched[link] = AHEAD - 1;
    }

    /// A packet came out of a link or cell: forwards it past participants to the next one, or to its end.
    #[inline]
    fn forward<H: Hosts<'a, Event = E>>(&mut self, mut handle: PacketHandle, hosts: &mut H) {
        loop {
            let packet = self.meters.packets.at(handle);
            packet.hop += 1;
            let Some(next) = self.routes.place(packet.flow, packet.direction, packet.hop) else {
                return hosts.on_arrived(self, handle);
            };
            let Step::Participant(participant) = self.routes.step(next) else {
                return self.offer(next, handle);
            };
            let verdict = match self.middleboxes.get_mut(participant as usize) {
                Some(middlebox) => {
                    let forward = packet.direction == Direction::Forward;
                    let wire = Bytes::new(u64::from(handle.wire()));
                    middlebox.on_packet(self.now, &MiddleboxPacket { flow: packet.flow, forward, wire })
                }
                None => {
                    let of_hosts = participant - self.middleboxes.len() as u32;
                    hosts.on_passing(self, of_hosts, &mut handle)
                }
            };
            if verdict == Verdict::Drop {
                return self.meters.on_dropped_by_participant(handle);
            }
        }
    }

    /// Plays due slots of cells, and forwards the packets that leave them.
    fn on_radio<H: Hosts<'a, Event = E>>(&mut self, hosts: &mut H) {
        let Some(radio) = &mut self.radio else { return };
        let mut arrived = std::mem::take(&mut self.arrived);
        radio.poll(self.now, &mut self.meters, &mut arrived);
        self.deliver_grants(hosts);
        self.deliver_hints(hosts);
        for packet in arrived.drain(..) {
            self.forward(packet, hosts);
        }
        self.arrived = arrived;
        self.arm_radio();
    }

    /// Delivers the grants that modems received to their listeners.
    fn deliver_grants<H: Hosts<'a, Event = E>>(&mut self, hosts: &mut H) {
        let Some(radio) = &mut self.radio else { return };
        let mut grants = std::mem::take(&mut self.grants);
        radio.take_grants(&mut grants);
        for (user, grant) in grants.drain(..) {
            let Some(hint) = self.radio.as_ref().and_then(|radio| radio.modem(self.now, user)) else {
                continue;
            };
            let hint = RadioHint {
                tbs_bits: Some(grant.block.bits()),
                granted: grant.prbs.into(),
                mcs: grant.mcs,
                ..hint
            };
            hosts.on_grant(self, user, &hint);
        }
        self.grants = grants;
    }

    /// Delivers radio information that has arrived to its readers.
    fn deliver_hints<H: Hosts<'a, Event = E>>(&mut self, hosts: &mut H) {
        while let Some(delivery) = self.radio.as_mut().and_then(|radio| radio.feed().next(self.now)) {
            hosts.on_hint(self, &delivery);
        }
        let mut grants = std::mem::take(&mut self.cell_grants);
        while let Some(slot) =
            self.radio.as_mut().and_then(|radio| radio.feed().next_slot(self.now, &mut grants))
        {
            hosts.on_cell(self, slot.flow, &slot.with(&grants));
        }
        self.cell_grants = grants;
        if let Some(radio) = &mut self.radio {
            self.feed_timer.set(radio.feed().next_due(), Event::Feed, &mut self.queue);
        }
    }

    fn change<H: Hosts<'a, Event = E>>(&mut self, index: usize, hosts: &mut H) {
        match &self.scenario.changes[index].what {
            &ChangeKind::Handover { user, to, forward, interruption } => {
                if let Some(radio) = &mut self.radio {
                    radio.hand_over(self.now, (user as u32, to), forward, interruption, &mut self.meters);
                }
                self.deliver_hints(hosts);
                self.arm_radio();
            }
            &ChangeKind::LinkRate { link, rate } => {
                self.on_link(link as u32, hosts);
                self.links[link].set_rate(self.now, rate);
                self.arm_link(link as u32);
            }
            &ChangeKind::LinkDelay { link, delay } => {
                self.links[link].set_delay(delay);
                if self.drive.arrivals_only {
                    // Packets still in the queue may arrive earlier now.
                    self.arm_link(link as u32);
                }
            }
            &ChangeKind::FeedContent { feed, content } => {
                if let Some(radio) = &mut self.radio {
                    radio.feed().set_content(self.now, feed, content);
                }
            }
            other => hosts.on_change(self, other),
        }
    }

    fn sample<H: Hosts<'a, Event = E>>(&mut self, hosts: &mut H) {
        let interval = self.now - self.last_sample;
        if interval.is_zero() {
            return;
        }
        self.meters.settle();
        hosts.on_sample(self, interval);
        for ((rows, link), meter) in self.link_rows.iter_mut().zip(&self.links).zip(&mut self.meters.links) {
            let capacity = link.capacity(self.last_sample, self.now);
            rows.sample(self.now, interval, link.queued(), capacity, meter);
        }
        if let Some(radio) = &mut self.radio {
            radio.sample(self.now, interval, &mut self.meters, &mut self.link_rows);
        }
        self.last_sample = self.now;
    }

    /// Lets links handle what is due by now, which [`Drive::arrivals_only`] otherwise defers until packets arrive.
    pub fn catch_up<H: Hosts<'a, Event = E>>(&mut self, hosts: &mut H) {
        (0..self.links.len() as u32).for_each(|link| self.on_link(link, hosts));
    }

    #[inline]
    fn arm_link(&mut self, link: u32) {
        let state = &self.links[link as usize];
        let at =
            if self.drive.arrivals_only { state.next_arrival().max(self.now) } else { state.next_event() };
        self.link_timers[link as usize].set(at, Event::Link(link), &mut self.queue);
    }

    /// Sets the timer for the cells' next event.
    pub fn arm_radio(&mut self) {
        if let Some(radio) = &self.radio {
            let at = radio.next_event().max(self.now);
            self.radio_timer.set(at, Event::Radio, &mut self.queue);
        }
    }

    /// When cells are polled next; [`Time::MAX`] while they are asleep.
    pub fn next_slot(&self) -> Time {
        self.radio_timer.at()
    }

    /// For each link, whether everything that comes out of it enters a cell.
    pub fn before_cells(&self) -> Vec<bool> {
        self.routes.before_cells()
    }

    /// Rows of the series of links so far.
    pub fn link_rows(&self) -> &[LinkRows] {
        &self.link_rows
    }

    /// The series of each user of cells from row number `from` on; empty for users without flows.
    pub fn user_series_since(&self, from: usize) -> Vec<Series> {
        self.radio.as_ref().map_or(Vec::new(), |radio| radio.series_since(from))
    }

    // Radio information.

    /// Passes the cells' reports to `reader`, and what else they say.
    pub fn subscribe_reports(&mut self, subscription: CellSubscription, reader: &'a mut dyn RadioReader) {
        if let Some(radio) = &mut self.radio {
            radio.subscribe(subscription, reader);
            self.arm_radio();
        }
    }

    /// Cells and users as a source of radio information describes them; `ids` are the identifiers of the user with this number.
    pub fn describe(&self, ids: &dyn Fn(u32) -> Vec<AssociateId>) -> Vec<Update> {
        self.radio.as_ref().map_or(Vec::new(), |radio| updates::describe(self.scenario, radio, ids))
    }

    /// Subscribes `reader` to hints about a user in one direction; `bearer` is the one whose queue is reported. Call before the
    /// first event.
    pub fn subscribe_hints(&mut self, source: Source, reader: Reader, user: u32, direction: Way, bearer: u8) {
        if let Some(radio) = &mut self.radio {
            radio.read_hints(source, reader, user, direction, bearer);
        }
    }

    /// Delivers grants to a user's modem to the hosts from now on. False if there are no cells.
    pub fn listen(&mut self, user: u32) -> bool {
        self.radio.as_mut().map(|radio| radio.listen(user)).is_some()
    }

    /// The current measurement of a user's modem; `None` while no cell serves the user.
    pub fn modem_quality(&mut self, user: u32) -> Option<RadioHint> {
        self.radio.as_mut()?.quality(self.now, user)
    }

    /// Rate of the traffic that a user's device sends before all other.
    pub fn rate_ahead(&mut self, user: u32) -> Rate {
        self.radio.as_mut().map_or(Rate::ZERO, |radio| radio.ahead(self.now, user))
    }

    /// Turns measurements into results. Packets due now still count, and so do those left in the network.
    pub fn finish(mut self) -> NetworkResult {
        for link in 0..self.links.len() {
            let observer = &mut self.meters.at(link as u32);
            let mut waiting = Bytes::ZERO;
            while let Some(packet) = self.links[link].poll(self.now, observer) {
                waiting += Bytes::new(u64::from(packet.wire()));
            }
            waiting += self.links[link].drain().map(|packet| Bytes::new(u64::from(packet.wire()))).sum();
            self.meters.ledger.in_network += waiting;
        }
        if let Some(radio) = &self.radio {
            self.meters.ledger.in_network += radio.under_way();
        }
        self.meters.settle();
        let (from, end) = (self.measured_from, self.now);
        let wired = self.links.iter().map(|link| link.capacity(from, end.max(from)));
        let mut capacities: Vec<Option<Bytes>> = wired.collect();
        let (mut cells, mut users, mut feed) = (Vec::new(), Vec::new(), None);
        if let Some(mut radio) = self.radio {
            feed = radio.feed().result(from, end.max(from));
            capacities.extend(radio.capacities().map(Some));
            (cells, users) = radio.finish(end);
        }
        let links = link_names(self.scenario)
            .into_iter()
            .zip(capacities)
            .zip(self.meters.links)
            .zip(self.link_rows)
            .map(|(((name, capacity), meter), rows)| meter.result(name, capacity, rows))
            .collect();
        NetworkResult {
            measured_from: from,
            links,
            cells,
            users,
            feed,
            flows: self.meters.flows,
            ledger: self.meters.ledger,
        }
    }
}

/// Names of the entries of [`NetworkResult::links`]: the links, then both directions of each user with flows.
pub fn link_names(scenario: &Scenario) -> Vec<String> {
    let wired = scenario.links.iter().map(|link| link.name.clone());
    let users = scenario.users.iter().zip(radio::metered(scenario)).filter(|(_, has_flows)| *has_flows);
    let air = users.flat_map(|(user, _)| ["down", "up"].map(|way| format!("{}.{way}", user.name)));
    wired.chain(air).collect()
}

/// Mean rate of a service in bit/s; `None` if it is unlimited.
pub fn mean_rate(service: &Service) -> Option<f64> {
    match service {
        Service::Unlimited => None,
        Service::Fixed(rate) => Some(rate.as_f64()),
        Service::Trace(play) => Some(play.trace.mean_rate().as_f64() * play.scale),
    }
}

/// The slowest place of a path, as an index into [`NetworkResult::links`]; the first of equally slow ones. The rate of a cell is
/// what it could initially carry for its user alone.
fn bottleneck(scenario: &Scenario, mut radio: Option<&mut Radio<'_>>, path: &[Hop]) -> Option<u32> {
    let mut slowest: Option<(u32, f64)> = None;
    for hop in path {
        let found = match *hop {
            Hop::Link(link) => {
                let rate = mean_rate(&scenario.links[link as usize].config.service);
                rate.map(|rate| (link, rate))
            }
            Hop::Radio { user, direction } => {
                radio.as_deref_mut().and_then(|radio| radio.rate(user, direction))
            }
        };
        if let Some((place, rate)) = found
            && slowest.is_none_or(|(_, least)| rate < least)
        {
            slowest = Some((place, rate));
        }
    }
    slowest.map(|(place, _)| place)
}
