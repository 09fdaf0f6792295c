//! The hosts of a simulation: endpoints of flows, proxies and Lightweight PEPs.

use ranpace_network::random::part_seed;
use ranpace_network::{Direction, FlowCounts, FlowRows, HintDelivery, Hosts, PacketHandle, Reader, Timer};
use ranpace_pep::middlebox::Verdict;
use ranpace_phy::Direction as Way;
use ranpace_rnis::{ControlChannel, RadioHint};
use ranpace_scenario::{ChangeKind, Hop, Scenario};
use ranpace_units::Span;

use super::{HintObserver, Network};
use crate::flow::{Ends, Flow};
use crate::host_table::HostTable;
use crate::lightweight::{Peps, deliver_report};
use crate::passing::OnPath;
use crate::pep_outcome::PepOutcome;
use crate::rewriting::Rewriters;
use crate::series;
use crate::split::Splits;

/// Interval of the CQI passed to a receiver (Zhong 2020, section 5.3.2: every 2 ms).
const QUALITY_PERIOD: Span = Span::from_millis(2);

/// Events of the hosts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Due {
    /// A deadline of a flow's sender or receiver.
    Sender(u32),
    Receiver(u32),
    /// A Lightweight PEP with this number, or one of its messages, is due.
    Pep(u32),
    /// A proxy with this number has a deadline.
    Proxy(u32),
    /// The modem at a flow's receiver measures.
    Modem(u32),
    /// A flow starts, ends, or its application writes.
    Start(u32),
    Stop(u32),
    Write(u32),
}

/// Flows, proxies and PEPs.
pub(super) struct Endpoints<'a> {
    pub(super) scenario: &'a Scenario,
    /// The scenario's flows, followed by the connections to servers of split flows.
    pub(super) flows: Vec<Flow>,
    /// Participants on the path, by number.
    on_path: Vec<OnPath>,
    /// Flows that proxies split, if there are any.
    pub(super) splits: Option<Box<Splits<'a>>>,
    pub(super) proxy_timers: Vec<Timer>,
    /// Lightweight PEPs, if there are any.
    pub(super) peps: Option<Box<Peps<'a>>>,
    pep_timers: Vec<Timer>,
    /// Header rewriters, if there are any.
    rewriters: Option<Box<Rewriters>>,
    sender_timers: Vec<Timer>,
    receiver_timers: Vec<Timer>,
    modem_timers: Vec<Timer>,
    /// For each user, the flows whose receivers listen to its modem.
    listeners: Vec<Vec<u32>>,
    /// The paths to destinations that devices have learned.
    host_table: HostTable,
    hint_observer: Option<HintObserver<'a>>,
    pub(super) rows: Vec<FlowRows>,
    /// Counters of every flow when the measured part (or the flow, if later) began.
    pub(super) before: Vec<FlowCounts>,
}

impl<'a> Endpoints<'a> {
    /// The endpoints of a scenario; schedules the start of its flows.
    pub fn new(scenario: &'a Scenario, network: &mut Network<'a>, on_path: Vec<OnPath>) -> Self {
        let splits = Splits::new(scenario);
        let count = scenario.flows.len() + splits.as_ref().map_or(0, |splits| splits.legs());
        for (index, flow) in scenario.flows.iter().enumerate() {
            network.enter(flow.start, Due::Start(index as u32));
            if let Some(stop) = flow.stop {
                network.enter(stop, Due::Stop(index as u32));
            }
        }
        let mut endpoints = Self {
            flows: (0..count).map(|index| Flow::new(part_seed(scenario.seed, 1, index))).collect(),
            on_path,
            splits,
            proxy_timers: Vec::new(),
            peps: Peps::new(scenario, part_seed(scenario.seed, 4, 0)),
            pep_timers: vec![Timer::OFF; scenario.peps.len()],
            rewriters: Rewriters::new(scenario, network).map(Box::new),
            sender_timers: vec![Timer::OFF; count],
            receiver_timers: vec![Timer::OFF; count],
            modem_timers: vec![Timer::OFF; if scenario.users.is_empty() { 0 } else { scenario.flows.len() }],
            listeners: vec![Vec::new(); scenario.users.len()],
            host_table: HostTable::new(scenario),
            hint_observer: None,
            rows: scenario.flows.iter().map(|_| FlowRows::default()).collect(),
            before: vec![FlowCounts::default(); count],
            scenario,
        };
        endpoints.subscribe_proxies(network);
        endpoints
    }

    /// Passes hints for the observer to `observer`.
    pub fn observe_hints(&mut self, observer: HintObserver<'a>) {
        self.hint_observer = Some(observer);
    }

    /// A connection of a flow begins, the first or a later one.
    fn begin(&mut self, network: &mut Network<'a>, flow: u32) {
        let spec = &self.scenario.flows[flow as usize];
        if self.flows[flow as usize].stopped || (self.splits.is_some() && self.begin_split(network, flow)) {
            return;
        }
        let memory = self.host_table.recall(flow, &self.flows);
        let state = &mut self.flows[flow as usize];
        if let Some(next) = state.begin(spec, network.now()) {
            network.enter(next, Due::Write(flow));
        }
        match (memory, &mut state.ends) {
            (Some(memory), Ends::Tcp(sender, _)) => sender.recall(memory),
            (Some(memory), Ends::Quic(ends)) => ends.recall(memory),
            _ => {}
        }
        if self.peps.as_ref().is_some_and(|peps| peps.watches(flow)) {
            state.remember_tags();
        }
        self.listen(network, flow);
        self.pump(network, flow, Direction::Forward);
        self.pump(network, flow, Direction::Back);
        self.arm_sender(network, flow);
        self.arm_receiver(network, flow);
    }

    /// A packet has reached an endpoint of its flow.
    fn arrive(&mut self, network: &mut Network<'a>, handle: PacketHandle) {
        let now = network.now();
        let packet = network.meters.packets.at(handle);
        let (flow, direction) = (packet.flow, packet.direction);
        let state = &mut self.flows[flow as usize];
        let current = packet.connection == state.connection; // otherwise it belongs to an earlier connection
        let (mut next, mut rtt) = (None, None);
        if current && state.has_content() {
            let (packet, content) = network.meters.packets.at_with_content(handle);
            state.arrive(direction, now, &packet.segment, content);
        }
        let packet = network.meters.packets.at(handle);
        match direction {
            Direction::Forward if current => {
                let workload = &self.scenario.flows[flow as usize].workload;
                next = state.on_data(workload, now, &packet.segment);
            }
            Direction::Back if current => rtt = state.on_feedback(now, &packet.segment),
            _ => {}
        }
        network.deliver(handle);
        if !current {
            return;
        }
        match direction {
            Direction::Forward => {
                if let Some(next) = next {
                    network.enter(next, Due::Start(flow));
                }
                self.pump(network, flow, Direction::Back);
                self.arm_receiver(network, flow);
            }
            Direction::Back => {
                if let Some(rtt) = rtt {
                    network.meters.on_rtt(flow, rtt);
                }
                self.pump(network, flow, Direction::Forward);
                self.arm_sender(network, flow);
            }
        }
    }

    /// Subscribes the receiver of a flow to its device's modem if it wants radio information.
    pub(super) fn listen(&mut self, network: &mut Network<'a>, flow: u32) {
        if !self.flows[flow as usize].wants_radio().0 {
            return;
        }
        let Some(user) = modem_of(self.scenario, flow) else { return };
        if !network.listen(user) {
            return;
        }
        let listeners = &mut self.listeners[user as usize];
        if !listeners.contains(&flow) {
            listeners.push(flow);
        }
        self.measure_quality(network, flow);
    }

    /// Passes the modem's CQI to a flow's receiver while the receiver wants it.
    fn measure_quality(&mut self, network: &mut Network<'a>, flow: u32) {
        let Some(user) = modem_of(self.scenario, flow) else { return };
        if !self.flows[flow as usize].wants_radio().1 {
            return;
        }
        if let Some(hint) = network.modem_quality(user) {
            self.flows[flow as usize].on_modem(network.now(), &hint);
            self.arm_receiver(network, flow);
        }
        let next = network.now() + QUALITY_PERIOD;
        network.set_timer(&mut self.modem_timers[flow as usize], next, Due::Modem(flow));
    }

    /// Delivers a Lightweight PEP's due reports to the senders of their flows.
    fn deliver_pep_reports(&mut self, network: &mut Network<'a>, pep: usize) {
        let now = network.now();
        while let Some(delivery) = self.peps.as_mut().and_then(|peps| peps.poll(pep, now)) {
            let state = &mut self.flows[delivery.flow as usize];
            if state.connection != delivery.connection {
                continue;
            }
            match deliver_report(&delivery, pep, now, &mut state.ends) {
                PepOutcome::Used => {
                    state.note_handover(now);
                    self.pump(network, delivery.flow, Direction::Forward);
                    self.arm_sender(network, delivery.flow);
                }
                PepOutcome::Rejected { impossible, ask } => {
                    if let Some(peps) = &mut self.peps {
                        if impossible {
                            peps.reject(pep, now);
                        }
                        if ask {
                            peps.ask_for_epoch(pep, now, &delivery);
                        }
                    }
                }
                PepOutcome::Ignored => {}
            }
        }
        self.arm_pep(network, pep);
    }

    fn arm_pep(&mut self, network: &mut Network<'a>, pep: usize) {
        let Some(peps) = &self.peps else { return };
        network.set_timer(&mut self.pep_timers[pep], peps.next_event(pep), Due::Pep(pep as u32));
    }

    /// Lets an endpoint of a flow send all that it may.
    #[inline]
    pub(super) fn pump(&mut self, network: &mut Network<'a>, flow: u32, direction: Direction) {
        let (now, connection) = (network.now(), self.flows[flow as usize].connection);
        // The scenario's parser gives every flow a path; only UDP lacks a return path, and sends nothing there.
        let Some(first) = network.routes.place(flow, direction, 0) else { return };
        loop {
            let state = &mut self.flows[flow as usize];
            let sends = if state.has_content() {
                let (packet, content) = network.meters.packets.vacant_with_content();
                state.transmit_content(direction, now, &mut packet.segment, content)
            } else {
                state.transmit(direction, now, &mut network.vacant().segment)
            };
            if !sends {
                return;
            }
            let packet = network.vacant();
            (packet.flow, packet.connection, packet.hop, packet.direction) = (flow, connection, 0, direction);
            if network.send(first).is_none() {
                return;
            }
        }
    }

    #[inline]
    pub(super) fn arm_sender(&mut self, network: &mut Network<'a>, flow: u32) {
        let at = self.flows[flow as usize].sender_deadline();
        network.set_timer(&mut self.sender_timers[flow as usize], at, Due::Sender(flow));
    }

    #[inline]
    pub(super) fn arm_receiver(&mut self, network: &mut Network<'a>, flow: u32) {
        let at = self.flows[flow as usize].receiver_deadline();
        network.set_timer(&mut self.receiver_timers[flow as usize], at, Due::Receiver(flow));
    }
}

impl<'a> Hosts<'a> for Endpoints<'a> {
    type Event = Due;

    #[inline]
    fn on_arrived(&mut self, network: &mut Network<'a>, handle: PacketHandle) {
        if let Some(splits) = &self.splits
            && let Some((split, side)) = splits.of(handle.flow())
        {
            self.arrive_split(network, split, side, handle);
            return;
        }
        self.arrive(network, handle);
    }

    fn on_passing(&mut self, network: &mut Network<'a>, who: u32, handle: &mut PacketHandle) -> Verdict {
        match (self.on_path[who as usize], &mut self.peps, &mut self.splits) {
            (OnPath::Rewriter(rewriter), ..) => {
                if let Some(rewriters) = &mut self.rewriters {
                    rewriters.on_passing(network, rewriter, handle);
                }
            }
            (OnPath::Pep(pep), Some(peps), _) => {
                let (now, flow) = (network.now(), handle.flow());
                let has_content = self.flows[flow as usize].has_content();
                let (packet, content) = network.meters.packets.at_with_content(*handle);
                let content = has_content.then_some(content);
                peps.watch(pep, now, (flow, packet.connection), &packet.segment, content);
                self.arm_pep(network, pep);
            }
            (OnPath::Proxy(proxy, user), _, Some(splits)) => splits.on_passing(proxy, user, handle.wire()),
            _ => {}
        }
        Verdict::Pass
    }

    fn on_event(&mut self, network: &mut Network<'a>, due: Due) {
        let now = network.now();
        match due {
            Due::Sender(flow) => {
                if self.sender_timers[flow as usize].fires(now) {
                    let state = &mut self.flows[flow as usize];
                    if state.sender_deadline() <= now {
                        state.on_sender_deadline(now);
                        self.pump(network, flow, Direction::Forward);
                        if self.splits.is_some() {
                            self.after_sending(network, flow);
                        }
                    }
                    self.arm_sender(network, flow);
                }
            }
            Due::Receiver(flow) => {
                if self.receiver_timers[flow as usize].fires(now) {
                    let state = &mut self.flows[flow as usize];
                    if state.receiver_deadline() <= now {
                        state.on_receiver_deadline(now);
                        self.pump(network, flow, Direction::Back);
                    }
                    self.arm_receiver(network, flow);
                }
            }
            Due::Modem(flow) => {
                if self.modem_timers[flow as usize].fires(now) {
                    self.measure_quality(network, flow);
                }
            }
            Due::Proxy(proxy) => self.on_proxy(network, proxy),
            Due::Pep(pep) => {
                if self.pep_timers[pep as usize].fires(now) {
                    self.deliver_pep_reports(network, pep as usize);
                }
            }
            Due::Start(flow) => self.begin(network, flow),
            Due::Stop(flow) => {
                self.flows[flow as usize].stop();
                self.arm_sender(network, flow);
                if self.splits.is_some() {
                    self.stop_leg(network, flow);
                }
            }
            Due::Write(flow) => {
                let spec = &self.scenario.flows[flow as usize];
                if let Some(next) = self.flows[flow as usize].write(&spec.workload, now) {
                    network.enter(next, Due::Write(flow));
                }
                self.pump(network, flow, Direction::Forward);
                self.arm_sender(network, flow);
                if self.splits.is_some() {
                    self.write_to_leg(network, flow);
                }
            }
        }
    }

    fn on_hint(&mut self, network: &mut Network<'a>, delivery: &HintDelivery) {
        let now = network.now();
        match delivery.reader {
            Reader::Flow(flow) => {
                let state = &mut self.flows[flow as usize];
                if state.sender_wants_radio() {
                    let ahead = network.rate_ahead(delivery.user);
                    state.on_hint(now, &RadioHint { ahead, ..delivery.hint });
                    self.pump(network, flow, Direction::Forward);
                    self.arm_sender(network, flow);
                }
            }
            Reader::Participant(number) => {
                let rewriter = (number as usize).checked_sub(self.scenario.proxies.len());
                match (rewriter, &mut self.rewriters) {
                    (Some(rewriter), Some(rewriters)) => {
                        rewriters.on_hint(now, rewriter, delivery.user, &delivery.hint);
                    }
                    _ => self.on_proxy_hint(network, number, delivery.user, &delivery.hint),
                }
            }
            Reader::Observer => {
                if let Some(observer) = &mut self.hint_observer {
                    observer(now, delivery.user, &delivery.hint);
                }
            }
        }
    }

    fn on_grant(&mut self, network: &mut Network<'a>, user: u32, grant: &RadioHint) {
        let now = network.now();
        for &flow in &self.listeners[user as usize] {
            let state = &mut self.flows[flow as usize];
            state.on_modem(now, grant);
            let at = state.receiver_deadline();
            network.set_timer(&mut self.receiver_timers[flow as usize], at, Due::Receiver(flow));
        }
    }

    fn on_cell(&mut self, network: &mut Network<'a>, flow: u32, channel: &ControlChannel<'_>) {
        self.flows[flow as usize].on_cell(network.now(), channel);
        self.arm_receiver(network, flow);
    }

    fn on_measure(&mut self, _: &mut Network<'a>) {
        for (before, flow) in self.before.iter_mut().zip(&self.flows) {
            *before = flow.account();
        }
    }

    fn on_sample(&mut self, network: &mut Network<'a>, interval: Span) {
        if self.splits.is_some() {
            self.sample_splits(network);
        }
        let now = network.now();
        let meters = network.meters.flows.iter_mut();
        for (index, ((rows, flow), meter)) in self.rows.iter_mut().zip(&self.flows).zip(meters).enumerate() {
            let leg = self.splits.as_ref().and_then(|splits| splits.leg_of(index));
            let leg = leg.map(|(leg, waited)| (&self.flows[leg], waited));
            series::sample(rows, now, interval, flow, leg, meter);
        }
    }

    fn on_change(&mut self, _: &mut Network<'a>, change: &ChangeKind) {
        let &ChangeKind::FlowTarget { flow, target } = change else { return };
        let flow = self.splits.as_ref().map_or(flow, |splits| splits.server_end(flow));
        match &mut self.flows[flow].ends {
            Ends::Tcp(sender, _) => sender.set_target(target),
            Ends::Quic(ends) => ends.set_target(target),
            Ends::Datagram(sender, _) => sender.set_target(target),
            Ends::Udp(..) | Ends::None => false,
        };
    }

    #[inline]
    fn prefetch(&self, network: &Network<'a>, packets: &[PacketHandle]) {
        packets.iter().for_each(|packet| network.meters.packets.prefetch(packet));
        for step in 0..Flow::PREFETCH_STEPS {
            for packet in packets {
                self.flows[packet.flow() as usize].prefetch(packet.direction(), step);
            }
        }
    }
}

/// The user whose downlink is last on a flow's path: its receiver is behind that modem.
fn modem_of(scenario: &Scenario, flow: u32) -> Option<u32> {
    let path = &scenario.flows.get(flow as usize)?.path;
    path.iter().rev().find_map(|hop| match *hop {
        Hop::Radio { user, direction: Way::Downlink } => Some(user),
        _ => None,
    })
}
