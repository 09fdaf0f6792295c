//! A scenario played in virtual time.

use ranpace_cc::RadioHint;
use ranpace_link::{Link, Service};
use ranpace_phy::Direction as Way;
use ranpace_radio::cell::Subscription;
use ranpace_rnis::{Grant, Report};
use ranpace_scenario::{ChangeKind, Hop, Scenario};
use ranpace_units::{Bytes, Rate, Span, Time};

mod finish;
mod open;
mod splitting;

pub use finish::link_names;
pub use open::{Arrived, Cargo, Network};

use crate::agenda::{Agenda, Alarm, Event};
use crate::feed::{Reader, Source};
use crate::flow::{Ends, Flow};
use crate::lightweight::{Heard, Watchers};
use crate::memories::Memories;
use crate::meter::{FlowMeter, LinkMeter, Meters};
use crate::packet::{Direction, Ticket};
use crate::radio::Radio;
use crate::random::mix;
use crate::results::RunResult;
use crate::route::{Place, Routes, Step};
use crate::series::{FlowRows, LinkRows};
use crate::split::Splits;
use crate::tap::Tap;

/// Work between two looks at whether to go on, in events; they take some hundred nanoseconds each, mostly.
const PATIENCE: u64 = 1 << 14;

/// Between two CQIs that a receiver is told (Zhong 2020, section 5.3.2: every 2 ms).
const QUALITY_PERIOD: Span = Span::from_millis(2);

/// Flows from which on it pays to look ahead.
const CROWD: usize = 64;
/// Packets that are looked at ahead.
const FORESIGHT: usize = 16;
/// Deadlines of senders between two looks at the next seven: so many of these come first, mostly.
const ALARMS: usize = 4;

/// Is shown hints: when they come, and of which user.
pub type Onlooker<'a> = &'a mut dyn FnMut(Time, u32, &RadioHint);

/// A scenario about to be played. The same scenario and seed give the same result on any machine.
pub struct Simulation<'a> {
    scenario: &'a Scenario,
    now: Time,
    agenda: Agenda,
    links: Vec<Link<Ticket>>,
    link_alarms: Vec<Alarm>,
    /// The cells, if there are any.
    radio: Option<Box<Radio<'a>>>,
    radio_alarm: Alarm,
    feed_alarm: Alarm,
    /// Who looks on at hints.
    onlooker: Option<Onlooker<'a>>,
    /// Where packets end whose ends are elsewhere.
    outlet: Option<Box<open::Outlet>>,
    /// Packets that came out of the cells just now.
    arrived: Vec<Ticket>,
    /// What modems heard just now.
    heard: Vec<(u32, Grant)>,
    /// For each user the flows whose receivers listen to its modem.
    listeners: Vec<Vec<u32>>,
    modem_alarms: Vec<Alarm>,
    routes: Routes,
    /// What devices know of destinations.
    memories: Memories,
    /// There are so many flows that their state does not stay in the processor's cache, or packets pass by the real clock,
    /// and with them much else.
    crowded: bool,
    /// Packets that were foreseen and are still to come, of each link.
    foreseen: Vec<usize>,
    /// Deadlines of senders until the next ones are looked at.
    foreseen_alarms: usize,
    /// The scenario's, and behind them the legs of those that are split.
    flows: Vec<Flow>,
    /// Flows that proxies split, if there are any.
    splits: Option<Box<Splits<'a>>>,
    proxy_alarms: Vec<Alarm>,
    /// Lightweight PEPs, if there are any.
    watchers: Option<Box<Watchers<'a>>>,
    watcher_alarms: Vec<Alarm>,
    sender_alarms: Vec<Alarm>,
    receiver_alarms: Vec<Alarm>,
    meters: Meters<'a>,
    flow_rows: Vec<FlowRows>,
    link_rows: Vec<LinkRows>,
    /// What every flow had when the measured part (or the flow, if later) began.
    before: Vec<crate::flow::Account>,
    measured_from: Time,
    last_sample: Time,
    events: u64,
}

impl<'a> Simulation<'a> {
    /// Prepares a scenario.
    pub fn new(scenario: &'a Scenario) -> Self {
        Self::prepare(scenario, None)
    }

    /// The same; with an outlet no flow begins, and what would arrive at an end is left there.
    fn prepare(scenario: &'a Scenario, outlet: Option<Box<open::Outlet>>) -> Self {
        let seeds = |part: u64, index: usize| mix(mix(scenario.seed, part), index as u64);
        let links: Vec<Link<Ticket>> = scenario
            .links
            .iter()
            .enumerate()
            .map(|(index, link)| Link::new(&link.config, seeds(0, index)).with_overhead(link.overhead))
            .collect();
        let link_meters = scenario.links.iter().map(|link| LinkMeter {
            limited: mean_rate(&link.config.service).is_some(),
            ..LinkMeter::default()
        });
        let first = scenario.links.len() as u32;
        let mut radio =
            (!scenario.cells.is_empty()).then(|| Box::new(Radio::new(scenario, first, seeds(2, 0))));
        let on_air = radio.as_ref().map_or(0, |radio| radio.metered());
        let air_meter = LinkMeter { limited: true, ..LinkMeter::default() };
        let link_meters = link_meters.chain(std::iter::repeat_n(air_meter, 2 * on_air));
        let flow_meters = scenario.flows.iter().map(|flow| FlowMeter {
            bottleneck: bottleneck(scenario, radio.as_deref_mut(), &flow.path),
            ..FlowMeter::default()
        });
        let mut flow_meters: Vec<FlowMeter> = flow_meters.collect();
        let splits = Splits::new(scenario);
        let legs = splits.as_ref().map_or(0, |splits| splits.legs());
        let count = scenario.flows.len() + legs;
        // A leg's packets are measured where the whole flow's are.
        for split in crate::split::specs(scenario) {
            flow_meters
                .push(FlowMeter { bottleneck: flow_meters[split.flow].bottleneck, ..FlowMeter::default() });
        }
        let flows = (0..count).map(|index| Flow::new(seeds(1, index))).collect();
        let mut agenda = Agenda::default();
        // What is measured lies after the warm-up's end, as capacities are counted; without one, all counts.
        let instant = if scenario.warmup.is_zero() { Span::ZERO } else { Span::from_nanos(1) };
        agenda.enter(Time::ZERO + scenario.warmup + instant, Event::Measure);
        for (index, flow) in scenario.flows.iter().enumerate().filter(|_| outlet.is_none()) {
            agenda.enter(flow.start, Event::Start(index as u32));
            if let Some(stop) = flow.stop {
                agenda.enter(stop, Event::Stop(index as u32));
            }
        }
        for (index, change) in scenario.changes.iter().enumerate() {
            agenda.enter(change.at, Event::Change(index as u32));
        }
        agenda.enter(Time::ZERO + scenario.sample, Event::Sample);
        Self {
            now: Time::ZERO,
            agenda,
            link_alarms: vec![Alarm::OFF; links.len()],
            link_rows: (0..links.len() + 2 * on_air).map(|_| LinkRows::default()).collect(),
            links,
            sender_alarms: vec![Alarm::OFF; count],
            receiver_alarms: vec![Alarm::OFF; count],
            flow_rows: scenario.flows.iter().map(|_| FlowRows::default()).collect(),
            meters: Meters::new(flow_meters, link_meters.collect()),
            radio_alarm: Alarm::OFF,
            feed_alarm: Alarm::OFF,
            onlooker: None,
            crowded: scenario.flows.len() >= CROWD || outlet.is_some(),
            outlet,
            radio,
            arrived: Vec::new(),
            heard: Vec::new(),
            listeners: vec![Vec::new(); scenario.users.len()],
            modem_alarms: vec![Alarm::OFF; if scenario.users.is_empty() { 0 } else { scenario.flows.len() }],
            routes: Routes::new(scenario),
            memories: Memories::new(scenario),
            foreseen: vec![0; scenario.links.len()],
            foreseen_alarms: 0,
            flows,
            splits,
            proxy_alarms: Vec::new(),
            watchers: Watchers::new(scenario, seeds(4, 0)),
            watcher_alarms: vec![Alarm::OFF; scenario.peps.len()],
            before: vec![crate::flow::Account::default(); count],
            measured_from: Time::ZERO + scenario.warmup,
            last_sample: Time::ZERO,
            events: 0,
            scenario,
        }
        .with_proxies_awake()
        .with_radio_awake()
    }

    /// Cells report from the beginning where somebody reads.
    fn with_radio_awake(mut self) -> Self {
        if self.radio.as_mut().is_some_and(|radio| radio.feed().is_read()) {
            self.arm_radio();
        }
        self
    }

    /// Has every packet that leaves a link, or is dropped there, shown to `tap`.
    #[must_use]
    pub fn with_tap(mut self, tap: &'a mut dyn Tap) -> Self {
        self.meters.tap = Some(tap);
        self
    }

    /// Has what the cells report shown to `reader`. Costs nothing where nobody asks, and changes no result.
    #[must_use]
    pub fn with_reports(
        mut self,
        subscription: Subscription,
        reader: &'a mut dyn FnMut(&Report<'_>),
    ) -> Self {
        if let Some(radio) = &mut self.radio {
            radio.subscribe(subscription, reader);
            self.arm_radio();
        }
        self
    }

    /// Has the hints of some users in one direction shown to `onlooker` when they come, with the number of the user: what a
    /// mechanism would be told, of bearer 0. What comes between the cells and the edge then counts in the results.
    #[must_use]
    pub fn with_hints(
        mut self,
        source: Source,
        users: &[u32],
        direction: Way,
        onlooker: Onlooker<'a>,
    ) -> Self {
        if let Some(radio) = &mut self.radio {
            for user in users {
                radio.read_hints(source, Reader::Onlooker, *user, direction, 0);
            }
            self.onlooker = Some(onlooker);
            self.arm_radio();
        }
        self
    }

    /// Plays to the end.
    pub fn run(self) -> RunResult {
        self.run_while(&mut |_| true)
    }

    /// Plays to the end, or until `go_on`, which is asked every now and then with the virtual time, says no. What was
    /// measured until then is valid.
    pub fn run_while(mut self, go_on: &mut dyn FnMut(Time) -> bool) -> RunResult {
        let end = Time::ZERO + self.scenario.duration;
        let mut interrupted = false;
        // A slot is work for each user of its cell, a row of the series for each flow and link.
        let users = 1 + self.scenario.users.len() as u64;
        let rows = users + (self.scenario.flows.len() + self.scenario.links.len()) as u64;
        let mut work = 0;
        while let Some((at, event)) = self.agenda.next(end) {
            debug_assert!(at >= self.now, "time runs forwards");
            self.now = at;
            self.events += 1;
            work += match event {
                Event::Radio | Event::Feed => users,
                Event::Sample | Event::Measure => rows,
                _ => 1,
            };
            self.handle(event);
            if work >= PATIENCE {
                work = 0;
                if !go_on(self.now) {
                    interrupted = true;
                    break;
                }
            }
        }
        if !interrupted {
            self.now = end;
        }
        self.finish(interrupted)
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Link(link) => {
                if self.link_alarms[link as usize].rings(self.now) {
                    self.on_link(link);
                }
            }
            Event::Radio => {
                if self.radio_alarm.rings(self.now) {
                    self.on_radio();
                }
            }
            Event::Feed => {
                if self.feed_alarm.rings(self.now) {
                    self.tell_hints();
                }
            }
            Event::Sender(flow) => {
                if self.sender_alarms[flow as usize].rings(self.now) {
                    if self.crowded {
                        self.foresee_alarms();
                    }
                    let state = &mut self.flows[flow as usize];
                    if state.sender_deadline() <= self.now {
                        state.on_sender_deadline(self.now);
                        self.pump(flow, Direction::Forward);
                        if self.splits.is_some() {
                            self.after_sending(flow);
                        }
                    }
                    self.arm_sender(flow);
                }
            }
            Event::Receiver(flow) => {
                if self.receiver_alarms[flow as usize].rings(self.now) {
                    let state = &mut self.flows[flow as usize];
                    if state.receiver_deadline() <= self.now {
                        state.on_receiver_deadline(self.now);
                        self.pump(flow, Direction::Back);
                    }
                    self.arm_receiver(flow);
                }
            }
            Event::Modem(flow) => {
                if self.modem_alarms[flow as usize].rings(self.now) {
                    self.measure_quality(flow);
                }
            }
            Event::Proxy(proxy) => self.on_proxy(proxy),
            Event::Pep(pep) => {
                if self.watcher_alarms[pep as usize].rings(self.now) {
                    self.hear(pep as usize);
                }
            }
            Event::Start(flow) => self.begin(flow),
            Event::Stop(flow) => {
                self.flows[flow as usize].stop();
                self.arm_sender(flow);
                if self.splits.is_some() {
                    self.stop_leg(flow);
                }
            }
            Event::Write(flow) => {
                let spec = &self.scenario.flows[flow as usize];
                if let Some(next) = self.flows[flow as usize].write(&spec.workload, self.now) {
                    self.agenda.enter(next, Event::Write(flow));
                }
                self.pump(flow, Direction::Forward);
                self.arm_sender(flow);
                if self.splits.is_some() {
                    self.supply_leg(flow);
                }
            }
            Event::Change(index) => self.change(index as usize),
            Event::Measure => {
                self.meters.settle();
                self.meters.measuring = true;
                for (before, flow) in self.before.iter_mut().zip(&self.flows) {
                    *before = flow.account();
                }
                if let Some(radio) = &mut self.radio {
                    radio.measure(self.now);
                }
            }
            Event::Sample => {
                self.sample();
                self.agenda.enter(self.now + self.scenario.sample, Event::Sample);
            }
        }
    }

    fn begin(&mut self, flow: u32) {
        let spec = &self.scenario.flows[flow as usize];
        let state = &mut self.flows[flow as usize];
        if state.stopped || (self.splits.is_some() && self.begin_split(flow)) {
            return;
        }
        let memory = self.memories.recall(flow, &self.flows);
        let state = &mut self.flows[flow as usize];
        if let Some(next) = state.begin(spec, self.now) {
            self.agenda.enter(next, Event::Write(flow));
        }
        match (memory, &mut state.ends) {
            (Some(memory), Ends::Tcp(sender, _)) => sender.recall(memory),
            (Some(memory), Ends::Quic(ends)) => ends.recall(memory),
            _ => {}
        }
        if self.watchers.as_ref().is_some_and(|watchers| watchers.watches(flow)) {
            state.remember_tags();
        }
        self.listen(flow);
        self.pump(flow, Direction::Forward);
        self.pump(flow, Direction::Back);
        self.arm_sender(flow);
        self.arm_receiver(flow);
    }

    fn on_link(&mut self, link: u32) {
        while let Some(packet) = self.links[link as usize].poll(self.now, &mut self.meters.at(link)) {
            self.foresee(link as usize);
            self.forward(packet);
        }
        self.arm_link(link);
    }

    /// Brings what the next packets out of a link will need into the processor's cache, many at a time: fetched one by one
    /// when they arrive, each would be waited for.
    #[inline]
    fn foresee(&mut self, link: usize) {
        if !self.crowded {
            return;
        }
        if self.foreseen[link] > 0 {
            self.foreseen[link] -= 1;
            return;
        }
        let (mut ahead, mut count) = ([(0, Direction::Forward); FORESIGHT], 0);
        for (place, ahead) in ahead.iter_mut().enumerate() {
            let Some(ticket) = self.links[link].upcoming(place) else { break };
            if self.outlet.is_some() {
                self.meters.slots.warm_way(ticket);
                continue;
            }
            self.meters.slots.warm(ticket);
            *ahead = (ticket.flow(), ticket.direction());
            count += 1;
        }
        for step in 0..Flow::STEPS {
            for &(flow, direction) in &ahead[..count] {
                self.flows[flow as usize].warm(direction, step);
            }
        }
        self.foreseen[link] = FORESIGHT - 1;
    }

    /// The same for senders whose deadlines are among the next.
    fn foresee_alarms(&mut self) {
        if self.foreseen_alarms > 0 {
            self.foreseen_alarms -= 1;
            return;
        }
        self.foreseen_alarms = ALARMS - 1;
        for step in 0..3 {
            for flow in self.agenda.soon() {
                self.flows[flow as usize].warm_to_send(step);
            }
        }
    }

    /// A packet came out of a link: to the next one, or to its endpoint.
    fn forward(&mut self, ticket: Ticket) {
        let packet = self.meters.slots.at(ticket);
        packet.hop += 1;
        let (flow, direction, now) = (packet.flow, packet.direction, self.now);
        if let Some(watchers) = &mut self.watchers
            && direction == Direction::Forward
            && let Some(pep) = watchers.at(flow, packet.hop)
        {
            let connection = packet.connection;
            if self.flows[flow as usize].has_content() {
                let (packet, content) = self.meters.slots.at_with_content(ticket);
                watchers.watch(pep, now, (flow, connection), &packet.segment, Some(content));
            } else {
                watchers.watch(pep, now, (flow, connection), &packet.segment, None);
            }
            self.arm_watcher(pep);
        }
        if let Some(splits) = &mut self.splits
            && direction == Direction::Forward
        {
            splits.on_passing(flow, self.meters.slots.at(ticket).hop, ticket.wire());
        }
        let packet = self.meters.slots.at(ticket);
        if let Some(next) = self.routes.place(flow, direction, packet.hop) {
            self.offer(next, ticket);
            return;
        }
        if self.outlet.is_some() {
            self.let_out(ticket);
            return;
        }
        if let Some(splits) = &self.splits
            && let Some((split, side)) = splits.of(flow)
        {
            self.arrive(split, side, ticket);
            return;
        }
        let state = &mut self.flows[flow as usize];
        let current = packet.connection == state.connection; // else of a connection that is over
        let (mut next, mut rtt) = (None, None);
        if current && state.has_content() {
            let (packet, content) = self.meters.slots.at_with_content(ticket);
            state.arrive(direction, now, &packet.segment, content);
        }
        let packet = self.meters.slots.at(ticket);
        match direction {
            Direction::Forward if current => {
                let workload = &self.scenario.flows[flow as usize].workload;
                next = state.on_data(workload, now, &packet.segment);
            }
            Direction::Back if current => rtt = state.on_feedback(now, &packet.segment),
            _ => {}
        }
        self.meters.ledger.delivered += Bytes::new(u64::from(ticket.wire()));
        self.meters.slots.give_back(ticket);
        if !current {
            return;
        }
        match direction {
            Direction::Forward => {
                if let Some(next) = next {
                    self.agenda.enter(next, Event::Start(flow));
                }
                self.pump(flow, Direction::Back);
                self.arm_receiver(flow);
            }
            Direction::Back => {
                if let Some(rtt) = rtt {
                    self.meters.on_rtt(flow, rtt);
                }
                self.pump(flow, Direction::Forward);
                self.arm_sender(flow);
            }
        }
    }

    #[inline]
    fn offer(&mut self, place: Place, packet: Ticket) {
        match place.step(self.links.len()) {
            Step::Link(link) => {
                self.links[link as usize].send(self.now, packet, &mut self.meters.at(link));
                self.arm_link(link);
            }
            Step::Radio(user, direction) => {
                let bearer = self.scenario.flows[packet.flow() as usize].bearer;
                if let Some(radio) = &mut self.radio {
                    radio.send(self.now, user, direction, bearer, packet, &mut self.meters);
                    let at = radio.next_event().max(self.now);
                    self.radio_alarm.set(at, Event::Radio, &mut self.agenda);
                }
            }
        }
    }

    /// Has the receiver of a flow listen to the modem that it sits behind, if it wants to.
    fn listen(&mut self, flow: u32) {
        let Some(radio) = &mut self.radio else { return };
        if !self.flows[flow as usize].wants_radio().0 {
            return;
        }
        let Some(user) = modem_of(self.scenario, flow) else { return };
        radio.listen(user);
        let listeners = &mut self.listeners[user as usize];
        if !listeners.contains(&flow) {
            listeners.push(flow);
        }
        self.measure_quality(flow);
    }

    /// The modem of a flow's receiver tells the CQI, as long as the receiver wants to know it.
    fn measure_quality(&mut self, flow: u32) {
        let (Some(radio), Some(user)) = (&mut self.radio, modem_of(self.scenario, flow)) else { return };
        if !self.flows[flow as usize].wants_radio().1 {
            return;
        }
        if let Some(hint) = radio.quality(self.now, user) {
            self.flows[flow as usize].on_modem(self.now, &hint);
            self.arm_receiver(flow);
        }
        self.modem_alarms[flow as usize].set(self.now + QUALITY_PERIOD, Event::Modem(flow), &mut self.agenda);
    }

    /// What modems heard goes to the receivers that listen to them.
    fn tell_grants(&mut self) {
        let Some(radio) = &mut self.radio else { return };
        radio.heard(&mut self.heard);
        for (user, grant) in self.heard.drain(..) {
            let Some(hint) = radio.modem(self.now, user) else { continue };
            let hint = RadioHint {
                tbs_bits: Some(grant.block.bits()),
                granted: grant.prbs.into(),
                mcs: grant.mcs,
                ..hint
            };
            for &flow in &self.listeners[user as usize] {
                let state = &mut self.flows[flow as usize];
                state.on_modem(self.now, &hint);
                let at = state.receiver_deadline().max(self.now);
                self.receiver_alarms[flow as usize].set(at, Event::Receiver(flow), &mut self.agenda);
            }
        }
    }

    /// Radio information that has come goes to its readers.
    fn tell_hints(&mut self) {
        let now = self.now;
        while let Some(told) = self.radio.as_mut().and_then(|radio| radio.feed().next(now)) {
            match told.reader {
                Reader::Flow(flow) => {
                    let state = &mut self.flows[flow as usize];
                    if state.sender_wants_radio() {
                        let ahead =
                            self.radio.as_mut().map_or(Rate::ZERO, |radio| radio.ahead(now, told.user));
                        state.on_hint(now, &RadioHint { ahead, ..told.hint });
                        self.pump(flow, Direction::Forward);
                        self.arm_sender(flow);
                    }
                }
                Reader::Middlebox(proxy) => self.tell_proxy(proxy, told.user, &told.hint),
                Reader::Onlooker => {
                    if let Some(onlooker) = &mut self.onlooker {
                        onlooker(now, told.user, &told.hint);
                    }
                }
            }
        }
        self.arm_feed();
    }

    fn arm_feed(&mut self) {
        if let Some(radio) = &mut self.radio {
            self.feed_alarm.set(radio.feed().next_due(), Event::Feed, &mut self.agenda);
        }
    }

    /// Slots of cells are played, and what came out of them goes on.
    fn on_radio(&mut self) {
        let Some(radio) = &mut self.radio else { return };
        let mut arrived = std::mem::take(&mut self.arrived);
        radio.poll(self.now, &mut self.meters, &mut arrived);
        self.tell_grants();
        self.tell_hints();
        for packet in arrived.drain(..) {
            self.forward(packet);
        }
        self.arrived = arrived;
        self.arm_radio();
    }

    /// What a Lightweight PEP says to servers.
    fn hear(&mut self, pep: usize) {
        while let Some(told) = self.watchers.as_mut().and_then(|watchers| watchers.poll(pep, self.now)) {
            let state = &mut self.flows[told.flow as usize];
            if state.connection != told.connection {
                continue;
            }
            match told.tell(self.now, &mut state.ends) {
                Heard::Yes => {
                    state.note_handover(self.now);
                    self.pump(told.flow, Direction::Forward);
                    self.arm_sender(told.flow);
                }
                Heard::Nonsense { impossible } => {
                    if let Some(watchers) = &mut self.watchers {
                        watchers.reject(pep, self.now, &told, impossible);
                    }
                }
                Heard::No => {}
            }
        }
        self.arm_watcher(pep);
    }

    fn arm_watcher(&mut self, pep: usize) {
        let Some(watchers) = &self.watchers else { return };
        let at = watchers.next_event(pep).max(self.now);
        self.watcher_alarms[pep].set(at, Event::Pep(pep as u32), &mut self.agenda);
    }

    fn arm_radio(&mut self) {
        if let Some(radio) = &self.radio {
            let at = radio.next_event().max(self.now);
            self.radio_alarm.set(at, Event::Radio, &mut self.agenda);
        }
    }

    /// Has an end of a flow send all that it can.
    #[inline]
    fn pump(&mut self, flow: u32, direction: Direction) {
        let connection = self.flows[flow as usize].connection;
        // The scenario's parser gives every flow a path; only UDP has no way back, and sends nothing there.
        let Some(first) = self.routes.place(flow, direction, 0) else { return };
        loop {
            let state = &mut self.flows[flow as usize];
            let sends = if state.has_content() {
                let (packet, content) = self.meters.slots.vacant_with_content();
                state.transmit_content(direction, self.now, &mut packet.segment, content)
            } else {
                state.transmit(direction, self.now, &mut self.meters.slots.vacant().segment)
            };
            if !sends {
                return;
            }
            let packet = self.meters.slots.vacant();
            (packet.flow, packet.connection, packet.hop, packet.direction) = (flow, connection, 0, direction);
            let Some(ticket) = self.meters.slots.take() else { return };
            self.meters.ledger.offered += Bytes::new(u64::from(ticket.wire()));
            self.offer(first, ticket);
        }
    }

    #[inline]
    fn arm_link(&mut self, link: u32) {
        let state = &self.links[link as usize];
        // By the real clock nobody is woken for what stays inside a link.
        let at = if self.outlet.is_some() { state.next_arrival().max(self.now) } else { state.next_event() };
        self.link_alarms[link as usize].set(at, Event::Link(link), &mut self.agenda);
    }

    #[inline]
    fn arm_sender(&mut self, flow: u32) {
        let at = self.flows[flow as usize].sender_deadline().max(self.now);
        self.sender_alarms[flow as usize].set(at, Event::Sender(flow), &mut self.agenda);
    }

    #[inline]
    fn arm_receiver(&mut self, flow: u32) {
        let at = self.flows[flow as usize].receiver_deadline().max(self.now);
        self.receiver_alarms[flow as usize].set(at, Event::Receiver(flow), &mut self.agenda);
    }

    fn change(&mut self, index: usize) {
        match self.scenario.changes[index].what {
            ChangeKind::Handover { user, to, forward, interruption } => {
                if let Some(radio) = &mut self.radio {
                    radio.hand_over(self.now, (user as u32, to), forward, interruption, &mut self.meters);
                }
                self.tell_hints();
                self.arm_radio();
            }
            ChangeKind::LinkRate { link, rate } => {
                self.on_link(link as u32);
                self.links[link].set_rate(self.now, rate);
                self.arm_link(link as u32);
            }
            ChangeKind::LinkDelay { link, delay } => {
                self.links[link].set_delay(delay);
                if self.outlet.is_some() {
                    // What has not left the queue may arrive earlier now.
                    self.arm_link(link as u32);
                }
            }
            ChangeKind::FlowTarget { flow, target } => {
                let flow = self.splits.as_ref().map_or(flow, |splits| splits.server_end(flow));
                match &mut self.flows[flow].ends {
                    Ends::Tcp(sender, _) => sender.set_target(target),
                    Ends::Quic(ends) => ends.set_target(target),
                    Ends::Datagram(sender, _) => sender.set_target(target),
                    Ends::Udp(..) | Ends::None => false,
                };
            }
        }
    }

    fn sample(&mut self) {
        let interval = self.now - self.last_sample;
        if interval.is_zero() {
            return;
        }
        self.meters.settle();
        if self.splits.is_some() {
            self.sample_splits();
        }
        let meters = self.meters.flows.iter_mut();
        for (index, ((rows, flow), meter)) in
            self.flow_rows.iter_mut().zip(&self.flows).zip(meters).enumerate()
        {
            let leg = self.splits.as_ref().and_then(|splits| splits.leg_of(index));
            let leg = leg.map(|(leg, waited)| (&self.flows[leg], waited));
            rows.sample(self.now, interval, flow, leg, meter);
        }
        for ((rows, link), meter) in self.link_rows.iter_mut().zip(&self.links).zip(&mut self.meters.links) {
            let capacity = link.capacity(self.last_sample, self.now);
            rows.sample(self.now, interval, link.queued(), capacity, meter);
        }
        if let Some(radio) = &mut self.radio {
            radio.sample(self.now, interval, &mut self.meters, &mut self.link_rows);
        }
        self.last_sample = self.now;
    }
}

/// The user over whose downlink a flow's data come last: its receiver sits behind that modem.
fn modem_of(scenario: &Scenario, flow: u32) -> Option<u32> {
    let path = &scenario.flows.get(flow as usize)?.path;
    path.iter().rev().find_map(|hop| match *hop {
        Hop::Radio { user, direction: Way::Downlink } => Some(user),
        _ => None,
    })
}

/// Mean rate of a service; `None` if it is unlimited.
fn mean_rate(service: &Service) -> Option<f64> {
    match service {
        Service::Unlimited => None,
        Service::Fixed(rate) => Some(rate.as_f64()),
        Service::Trace(play) => Some(play.trace.mean_rate().as_f64() * play.scale),
    }
}

/// The place where a path is slowest, as an index into [`RunResult::links`]; of equally slow ones the first. What a cell
/// could carry for its user alone counts as its rate, at the beginning.
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
