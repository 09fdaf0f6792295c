//! The radio network of a scenario: packets into and out of cells, and the measurements of users.

use ranpace_cc::RadioHint;
use ranpace_phy::{Both, Direction};
use ranpace_radio::cell::{Cell, CellSubscription, Listener, Probe};
use ranpace_radio::network::RadioNetwork;
use ranpace_radio::rlc::DropCause;
use ranpace_rnis::{CellInfo, Event, EventKind, Grant, LinkReport, ReferenceSignal, SlotReport};
use ranpace_scenario::Scenario;
use ranpace_units::{Bytes, Rate, Span, Time};

use crate::device_bands;
use crate::feed::{self, Feed, Source};
use crate::meter::Meters;
use crate::packet::PacketHandle;
use crate::random::mix;
use crate::results::{CellResult, RadioLinkResult, Series, UserResult};
use crate::series::{LinkRows, RadioRow, RadioRows};

const BOTH: [Direction; 2] = [Direction::Downlink, Direction::Uplink];

/// The cells of a scenario, and their users.
pub(crate) struct Radio<'a> {
    scenario: &'a Scenario,
    network: RadioNetwork<PacketHandle>,
    heard: AirEvents,
    users: Vec<User>,
    /// Priority bands of the users that have them.
    devices: Vec<Option<device_bands::Device>>,
    /// Radio information for its readers.
    feed: Feed,
    /// The subscriber of the cells' reports.
    reader: Option<ReportSubscriber<'a>>,
    /// Slots played and PRBs used in each cell when the measured part began.
    before: Vec<(u64, Both<f64>)>,
}

/// Period of users' measurement reports ([`RadioReader::on_signal`]); one of TS 36.331's (ms240). Ours.
const SIGNAL_PERIOD: Span = Span::from_millis(240);

/// Receives what cells say: a function, if their reports suffice.
pub trait RadioReader {
    /// A slot has ended.
    fn on_report(&mut self, report: &SlotReport<'_>);

    /// Something happened to a user. Users that are there from the beginning have no event.
    fn on_event(&mut self, event: &Event) {
        let _ = event;
    }

    /// A user has measured its cell's reference signals. `used` is the share of the downlink's PRBs that were used since the last
    /// measurement.
    fn on_signal(&mut self, time: Time, cell: u16, user: u32, signal: &ReferenceSignal, used: f64) {
        let _ = (time, cell, user, signal, used);
    }
}

impl<F: FnMut(&SlotReport<'_>)> RadioReader for F {
    fn on_report(&mut self, report: &SlotReport<'_>) {
        self(report);
    }
}

/// A reader, and the reports that it wants.
struct ReportSubscriber<'a> {
    reader: &'a mut dyn RadioReader,
    /// When users measure next, and the slots and PRBs of each cell at the measurement before.
    next_signal: Time,
    before: Vec<(u64, f64)>,
    subscription: CellSubscription,
    /// The next slot of each cell to pass to it.
    next: Vec<u64>,
}

impl ReportSubscriber<'_> {
    fn on_report(&mut self, report: &SlotReport<'_>) {
        let Some(next) = self.next.get_mut(usize::from(report.cell.cell)) else { return };
        if report.slot >= *next {
            *next = report.slot + self.subscription.period.max(1);
            self.reader.on_report(report);
        }
    }

    /// Its subscription if another consumer needs every slot.
    fn of_every_slot(&self) -> CellSubscription {
        let every = CellSubscription::EVERY_SLOT;
        CellSubscription { full_every: self.subscription.full_every.min(every.full_every), ..every }
    }
}

/// Measurements of a user.
struct User {
    /// Index of its downlink meter among the links'; the uplink's follows. `None` for users without flows.
    meters: Option<u32>,
    rows: RadioRows,
    /// Reports at the beginning of the measured part, and of the current row.
    before: Both<LinkReport>,
    last_row: Both<LinkReport>,
    /// Bytes that the cell would have carried for it alone in the measured part.
    capacity: Both<f64>,
}

/// Events of cells, collected while they are polled.
#[derive(Default)]
struct AirEvents {
    arrived: Vec<PacketHandle>,
    failures: Vec<Both<u64>>,
    handovers: Vec<u32>,
    /// Users whose modems are listened to, and the grants they received.
    modems: Vec<bool>,
    grants: Vec<(u32, Grant)>,
    measuring: bool,
}

/// Forwards what cells do to the meters and the feed.
struct RadioObserver<'a, 'b, 'c> {
    meters: &'b mut Meters<'a>,
    heard: &'b mut AirEvents,
    users: &'b [User],
    feed: &'b mut Feed,
    reader: Option<&'b mut ReportSubscriber<'c>>,
}

impl RadioObserver<'_, '_, '_> {
    fn link(&self, user: u32, direction: Direction) -> Option<u32> {
        let first = self.users.get(user as usize)?.meters?;
        Some(first + u32::from(direction == Direction::Uplink))
    }
}

impl Listener<PacketHandle> for RadioObserver<'_, '_, '_> {
    fn on_delivered(&mut self, _: Time, _: u32, _: Direction, packet: PacketHandle) {
        self.heard.arrived.push(packet);
    }
    fn on_waited(&mut self, now: Time, user: u32, direction: Direction, packet: &PacketHandle, waited: Span) {
        if let Some(link) = self.link(user, direction) {
            use ranpace_link::Observer as _;
            let marked = self.meters.packets.is_newly_marked(*packet);
            self.meters.at(link).on_departed(now, packet, waited, marked);
        }
    }
    fn on_heard(&mut self, _: Time, user: u32, grant: &Grant) {
        if self.heard.modems.get(user as usize).is_some_and(|listened| *listened) {
            self.heard.grants.push((user, *grant));
        }
    }
    fn on_dropped(
        &mut self,
        now: Time,
        user: u32,
        direction: Direction,
        packet: &PacketHandle,
        cause: DropCause,
    ) {
        if let Some(link) = self.link(user, direction) {
            use ranpace_link::Observer as _;
            let cause = match cause {
                DropCause::Overflow => ranpace_link::DropCause::Overflow,
                DropCause::Aqm | DropCause::Discard => ranpace_link::DropCause::Aqm,
                _ => ranpace_link::DropCause::Random,
            };
            self.meters.at(link).on_dropped(now, packet, cause);
        }
    }
    fn on_report(&mut self, report: &SlotReport<'_>) {
        self.feed.on_report(report);
        if let Some(reader) = &mut self.reader {
            reader.on_report(report);
        }
    }
    fn on_event(&mut self, event: Event) {
        self.feed.on_event(&event);
        if let Some(subscriber) = &mut self.reader {
            subscriber.reader.on_event(&event);
        }
        if !self.heard.measuring {
            return;
        }
        let user = event.user as usize;
        match event.kind {
            EventKind::BearerFailed { direction, .. } => {
                if let Some(failures) = self.heard.failures.get_mut(user) {
                    failures[direction] += 1;
                }
            }
            EventKind::HandoverCompleted { .. } => {
                if let Some(handovers) = self.heard.handovers.get_mut(user) {
                    *handovers += 1;
                }
            }
            _ => {}
        }
    }
}

impl<'a> Radio<'a> {
    /// The cells of a scenario; `first` is the index of its users' first meter. Only users with flows have meters.
    pub fn new(scenario: &'a Scenario, first: u32, seed: u64) -> Self {
        let configs: Vec<_> = scenario.cells.iter().map(|cell| cell.config.clone()).collect();
        let own: Vec<_> = scenario.users.iter().map(device_bands::with_bearer).collect();
        let homes: Vec<_> = scenario.users.iter().zip(&own).map(|(user, own)| (user.cell, &**own)).collect();
        let mut heard = AirEvents {
            failures: vec![Both::default(); homes.len()],
            handovers: vec![0; homes.len()],
            modems: vec![false; homes.len()],
            ..AirEvents::default()
        };
        let mut network = RadioNetwork::new(&configs, &homes, seed, &mut Silent)
            .unwrap_or_else(|_| unreachable!("the parser of scenarios has checked every cell"));
        heard.measuring = false;
        let feed = Feed::new(scenario, mix(seed, 1));
        if feed.is_read() {
            network.subscribe(Time::ZERO, Some(CellSubscription::EVERY_SLOT));
        }
        let mut next = first;
        let users = metered(scenario).into_iter().map(|has_flows| {
            let meters = has_flows.then(|| {
                next += 2;
                next - 2
            });
            User {
                meters,
                rows: RadioRows::default(),
                before: Both::default(),
                last_row: Both::default(),
                capacity: Both::default(),
            }
        });
        let before = vec![(0, Both::default()); configs.len()];
        let devices = device_bands::Device::all(scenario);
        Self { scenario, users: users.collect(), devices, network, heard, feed, reader: None, before }
    }

    /// Sends a packet over the air.
    #[inline]
    pub fn send(
        &mut self,
        now: Time,
        user: u32,
        direction: Direction,
        bearer: u8,
        packet: PacketHandle,
        meters: &mut Meters<'_>,
    ) {
        let bearer = self.bearer(now, user, direction, bearer, packet);
        let mut observer = RadioObserver {
            meters,
            heard: &mut self.heard,
            users: &self.users,
            feed: &mut self.feed,
            reader: self.reader.as_mut(),
        };
        let sent = self.network.send(now, user, direction, bearer, packet, &mut observer);
        debug_assert!(sent, "flows lead over users that there are");
    }

    /// The bearer of a packet whose flow has `bearer`.
    #[inline]
    fn bearer(&mut self, now: Time, user: u32, direction: Direction, bearer: u8, packet: PacketHandle) -> u8 {
        let Some(Some(device)) = self.devices.get_mut(user as usize) else { return bearer };
        let network = &mut self.network;
        device.bearer(now, self.scenario, (direction, bearer, packet), || {
            let cell = network.serving(user).and_then(|cell| network.cell_mut(cell));
            let seen = cell.and_then(|cell| cell.probe(now, user).map(|probe| whole_band(cell, &probe)));
            Rate::from_bits_per_s_f64(8.0 * seen.unwrap_or_default()[direction])
        })
    }

    /// Rate of the traffic that a user's device sends before all other.
    pub fn ahead(&mut self, now: Time, user: u32) -> Rate {
        let device = self.devices.get_mut(user as usize).and_then(Option::as_mut);
        device.map_or(Rate::ZERO, |device| device.rate(now))
    }

    /// Passes reports to `reader`; the feed gets every slot.
    pub fn subscribe(&mut self, subscription: CellSubscription, reader: &'a mut dyn RadioReader) {
        let next = vec![0; self.scenario.cells.len()];
        let before = vec![(0, 0.0); self.scenario.cells.len()];
        let next_signal = Time::ZERO + SIGNAL_PERIOD;
        let reader = ReportSubscriber { reader, next_signal, before, subscription, next };
        let wanted = if self.feed.is_read() { reader.of_every_slot() } else { subscription };
        self.network.subscribe(Time::ZERO, Some(wanted));
        self.reader = Some(reader);
    }

    /// The descriptions of the cells.
    pub fn cells(&self) -> impl Iterator<Item = &CellInfo> {
        self.network.cells().iter().map(Cell::info)
    }

    /// The users that cells serve now: the user, its cell, and the number of its bearers.
    pub fn users(&self) -> impl Iterator<Item = (u32, u16, u8)> {
        (0..self.users.len() as u32).filter_map(|user| {
            let cell = self.network.cells().get(self.network.serving(user)?)?;
            let bearers = cell.rlc(user).map_or(0, |rlc| rlc.bearers().len());
            Some((user, cell.info().cell, u8::try_from(bearers).unwrap_or(u8::MAX)))
        })
    }

    /// Subscribes a reader to hints about a user in one direction; `bearer` is the one whose queue is reported. Call before the
    /// first event.
    pub fn read_hints(
        &mut self,
        source: Source,
        reader: feed::Reader,
        user: u32,
        direction: Direction,
        bearer: u8,
    ) {
        if !self.feed.is_read() {
            let wanted =
                self.reader.as_ref().map_or(CellSubscription::EVERY_SLOT, |reader| reader.of_every_slot());
            self.network.subscribe(Time::ZERO, Some(wanted));
        }
        self.feed.subscribe(source, reader, user, direction, bearer);
    }

    /// The feed of radio information.
    pub fn feed(&mut self) -> &mut Feed {
        &mut self.feed
    }

    /// When [`Self::poll`] has something to do.
    #[inline]
    pub fn next_event(&self) -> Time {
        self.network.next_event()
    }

    /// Does what is due, and appends the packets that arrived to `arrived`.
    pub fn poll(&mut self, now: Time, meters: &mut Meters<'_>, arrived: &mut Vec<PacketHandle>) {
        self.network.poll(
            now,
            &mut RadioObserver {
                meters,
                heard: &mut self.heard,
                users: &self.users,
                feed: &mut self.feed,
                reader: self.reader.as_mut(),
            },
        );
        arrived.append(&mut self.heard.arrived);
        self.signal(now);
    }

    /// Reports the reference signals of all users, once a period.
    #[inline]
    fn signal(&mut self, now: Time) {
        let Some(subscriber) = self.reader.as_mut().filter(|subscriber| subscriber.next_signal <= now) else {
            return;
        };
        while subscriber.next_signal <= now {
            subscriber.next_signal += SIGNAL_PERIOD;
        }
        let used = self.network.cells().iter().zip(&mut subscriber.before).map(|(cell, before)| {
            let (slots, prbs) = cell.used_prbs();
            let (more, used) = (slots.saturating_sub(before.0), prbs.downlink - before.1);
            *before = (slots, prbs.downlink);
            used / more.max(1) as f64 / f64::from(cell.info().prbs.max(1))
        });
        let used: Vec<f64> = used.collect();
        for user in 0..self.users.len() as u32 {
            let Some(place) = self.network.serving(user) else { continue };
            let Some(cell) = self.network.cell_mut(place) else { continue };
            let number = cell.info().cell;
            if let Some(signal) = cell.reference_signal(now, user) {
                let used = used.get(place).copied().unwrap_or_default();
                subscriber.reader.on_signal(now, number, user, &signal, used);
            }
        }
    }

    /// Records grants to a user's modem for [`Self::take_grants`] from now on.
    pub fn listen(&mut self, user: u32) {
        if let Some(listened) = self.heard.modems.get_mut(user as usize) {
            *listened = true;
        }
    }

    /// Takes the grants that modems received in the slots just played, with their users.
    pub fn take_grants(&mut self, into: &mut Vec<(u32, Grant)>) {
        into.append(&mut self.heard.grants);
    }

    /// Current measurements of a user's modem, without grants; `None` while no cell serves the user.
    pub fn modem(&self, now: Time, user: u32) -> Option<RadioHint> {
        let cell = self.network.cells().get(self.network.serving(user)?)?;
        Some(RadioHint::of(*cell.info(), now))
    }

    /// The same with the CQI that was measured last.
    pub fn quality(&mut self, now: Time, user: u32) -> Option<RadioHint> {
        let hint = self.modem(now, user)?;
        let cell = self.network.cell_mut(self.network.serving(user)?)?;
        Some(RadioHint { cqi: Some(cell.snapshot(now, user)?.cqi.get()), ..hint })
    }

    /// A user moves to another cell.
    pub fn hand_over(
        &mut self,
        now: Time,
        (user, to): (u32, usize),
        forward: bool,
        interruption: Span,
        meters: &mut Meters<'_>,
    ) {
        let mut observer = RadioObserver {
            meters,
            heard: &mut self.heard,
            users: &self.users,
            feed: &mut self.feed,
            reader: self.reader.as_mut(),
        };
        self.network.hand_over(now, user, to, forward, interruption, &mut observer);
    }

    /// The measured part begins.
    pub fn measure(&mut self, now: Time) {
        self.heard.measuring = true;
        self.feed.measure();
        for (before, cell) in self.before.iter_mut().zip(self.network.cells()) {
            *before = cell.used_prbs();
        }
        for number in 0..self.users.len() {
            let link = self.link_reports(now, number as u32);
            let user = &mut self.users[number];
            user.before = link;
        }
    }

    fn link_reports(&mut self, now: Time, user: u32) -> Both<LinkReport> {
        let report = self.network.serving(user).and_then(|cell| self.network.cell_mut(cell));
        report.and_then(|cell| cell.snapshot(now, user)).map(|report| report.link).unwrap_or_default()
    }

    /// Rate at which the cell could serve a user alone now, in bytes per second, in each direction.
    fn alone(&mut self, now: Time, user: u32) -> Both<f64> {
        let cell = self.network.serving(user).and_then(|cell| self.network.cell_mut(cell));
        let seen = cell.and_then(|cell| cell.probe(now, user).map(|probe| whole_band(cell, &probe)));
        seen.unwrap_or_default()
    }

    /// The meter of a user's direction, and what the cell could carry for it alone now, in bit/s.
    pub fn rate(&mut self, user: u32, direction: Direction) -> Option<(u32, f64)> {
        let first = self.users.get(user as usize)?.meters?;
        let place = first + u32::from(direction == Direction::Uplink);
        Some((place, 8.0 * self.alone(Time::ZERO, user)[direction]))
    }

    /// Rows of the series for the interval that ends now.
    pub fn sample(&mut self, now: Time, interval: Span, meters: &mut Meters<'_>, link_rows: &mut [LinkRows]) {
        for number in 0..self.users.len() {
            let Some(first) = self.users[number].meters else { continue };
            let id = number as u32;
            let serving = self.network.serving(id);
            let mut alone = Both::default();
            let seen = serving.and_then(|cell| {
                let cell = self.network.cell_mut(cell)?;
                let probe = cell.probe(now, id)?;
                alone = whole_band(cell, &probe);
                Some((cell.snapshot(now, id)?, probe, cell.info().symbols, cell.info().slot))
            });
            for (direction, link) in BOTH.into_iter().zip(first as usize..) {
                let could = alone[direction] * interval.as_secs_f64();
                if meters.measuring {
                    self.users[number].capacity[direction] += could;
                }
                if let (Some(rows), Some(meter)) = (link_rows.get_mut(link), meters.links.get_mut(link)) {
                    let queued = self.network.waiting(id, direction);
                    rows.sample(now, interval, queued, Some(Bytes::new(could as u64)), meter);
                }
            }
            let user = &mut self.users[number];
            user.rows.sample(&RadioRow { now, interval, serving, seen, before: user.last_row });
            user.last_row = seen.map(|seen| seen.0.link).unwrap_or_default();
        }
    }

    /// The series of each user from row number `from` on.
    pub fn series_since(&self, from: usize) -> Vec<Series> {
        self.users.iter().map(|user| user.rows.since(from)).collect()
    }

    /// Bytes in the cells, after all due events.
    pub fn under_way(&self) -> Bytes {
        let users = 0..self.users.len() as u32;
        users.map(|user| BOTH.map(|direction| self.network.waiting(user, direction)).into_iter().sum()).sum()
    }

    /// Number of users with flows; each has two meters.
    pub fn metered(&self) -> usize {
        self.users.iter().filter(|user| user.meters.is_some()).count()
    }

    /// Bytes that cells would have carried for each user with flows alone in the measured part: downlink and uplink.
    pub fn capacities(&self) -> impl Iterator<Item = Bytes> {
        let users = self.users.iter().filter(|user| user.meters.is_some());
        users.flat_map(|user| BOTH.map(|direction| Bytes::new(user.capacity[direction] as u64)))
    }

    /// The results at the end.
    pub fn finish(mut self, now: Time) -> (Vec<CellResult>, Vec<UserResult>) {
        let cells = self.scenario.cells.iter().zip(self.network.cells()).zip(&self.before);
        let cells = cells.zip(0..).map(|(((spec, cell), (slots, used)), index)| {
            let (slots_now, used_now) = cell.used_prbs();
            let played_slots = slots_now - slots;
            let slots = played_slots.max(1) as f64;
            let prbs = f64::from(cell.info().prbs);
            let users = self.scenario.users.iter().filter(|user| user.cell == index).count();
            CellResult {
                name: spec.name.clone(),
                users,
                played_slots,
                prbs: cell.info().prbs,
                downlink_prb_share: (used_now.downlink - used.downlink) / slots / prbs,
                uplink_prb_share: (used_now.uplink - used.uplink) / slots / prbs,
            }
        });
        let cells = cells.collect();
        let mut results = Vec::new();
        for number in 0..self.users.len() as u32 {
            let link = self.link_reports(now, number);
            let alone = self.alone(now, number);
            let probe = self.network.serving(number).and_then(|cell| {
                let name = self.scenario.cells.get(cell)?.name.clone();
                Some((name, self.network.cell_mut(cell)?.probe(now, number)?))
            });
            let rlc =
                self.network.serving(number).and_then(|cell| self.network.cells().get(cell)?.rlc(number));
            let rlc_sent_again = Both::of(|direction| {
                rlc.map_or(0, |user| {
                    user.bearers()
                        .iter()
                        .map(|bearer| bearer.channel(direction).counters().sent_again.number)
                        .sum()
                })
            });
            let user = &mut self.users[number as usize];
            let result = |direction: Direction| {
                let (link, before) = (&link[direction], &user.before[direction]);
                RadioLinkResult {
                    scheduled: Bytes::new(link.scheduled_bits.saturating_sub(before.scheduled_bits) / 8),
                    blocks: link.blocks.saturating_sub(before.blocks),
                    retransmissions: link.retransmissions.saturating_sub(before.retransmissions),
                    lost_blocks: link.lost.saturating_sub(before.lost),
                    rlc_sent_again: rlc_sent_again[direction],
                    bearer_failures: self.heard.failures[number as usize][direction],
                    rate_alone: ranpace_units::Rate::of(
                        Bytes::new(alone[direction] as u64),
                        Span::from_secs(1),
                    ),
                }
            };
            let why = match &probe {
                None => Some("no cell serves it: it is on its way to another".to_owned()),
                Some((_, probe)) if !probe.downlink.in_reach => Some(format!(
                    "out of reach: no MCS for any part of the downlink's band, {:.1} dB on average",
                    probe.downlink.sinr_db
                )),
                Some((_, probe)) if !probe.uplink.in_reach => Some(format!(
                    "out of reach: no MCS for any part of the uplink's band, {:.1} dB on average, so that nothing it sends arrives",
                    probe.uplink.sinr_db
                )),
                Some(_) => None,
            };
            results.push(UserResult {
                name: self.scenario.users[number as usize].name.clone(),
                cell: probe.map(|(name, _)| name),
                downlink: result(Direction::Downlink),
                uplink: result(Direction::Uplink),
                handovers: self.heard.handovers[number as usize],
                out_of_service: why,
                series: std::mem::take(&mut user.rows).finish(),
            });
        }
        (cells, results)
    }
}

/// Rate at which a cell could serve a probed user alone, in bytes per second.
fn whole_band(cell: &Cell<PacketHandle>, probe: &Both<Probe>) -> Both<f64> {
    let info = cell.info();
    Both::of(|direction| {
        // A block of a whole slot, times the share of such slots.
        let best = f64::from(cell.most_symbols(direction));
        let slots = info.share[direction] * f64::from(info.symbols) / best.max(1.0);
        let usable = if direction == Direction::Downlink { cell.config().usable_slots } else { 1.0 };
        let Probe { block, share, .. } = probe[direction];
        block.bytes().as_f64() * share * slots * usable / info.slot.as_secs_f64()
    })
}

/// Ignores events: for users that attach at the beginning.
struct Silent;

impl Listener<PacketHandle> for Silent {
    fn on_delivered(&mut self, _: Time, _: u32, _: Direction, _: PacketHandle) {}
}

/// For each user, whether the path of a flow includes it.
pub(crate) fn metered(scenario: &Scenario) -> Vec<bool> {
    let mut users = vec![false; scenario.users.len()];
    for hop in scenario.flows.iter().flat_map(|flow| flow.path.iter().chain(&flow.back)) {
        if let Some(user) = hop.user().and_then(|user| users.get_mut(user)) {
            *user = true;
        }
    }
    users
}
