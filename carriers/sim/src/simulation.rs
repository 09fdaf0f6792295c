//! A scenario played in virtual time.

use ranpace_link::{Link, Service};
use ranpace_scenario::{ChangeKind, Scenario};
use ranpace_units::{Bytes, Rate, Span, Time};

use crate::agenda::{Agenda, Alarm, Event};
use crate::flow::{Ends, Flow};
use crate::meter::{FlowMeter, LinkMeter, Meters};
use crate::packet::{Direction, Packet, Slots, Ticket};
use crate::random::mix;
use crate::results::{FlowResult, Ledger, LinkResult, RunResult};
use crate::series::{FlowRows, LinkRows};
use crate::tap::Tap;

/// Events between two looks at whether to go on.
const PATIENCE: u64 = 1 << 16;

/// A scenario about to be played. The same scenario and seed give the same result on any machine.
pub struct Simulation<'a> {
    scenario: &'a Scenario,
    now: Time,
    agenda: Agenda,
    links: Vec<Link<Ticket>>,
    link_alarms: Vec<Alarm>,
    flows: Vec<Flow>,
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
        let seeds = |part: u64, index: usize| mix(mix(scenario.seed, part), index as u64);
        let links: Vec<Link<Ticket>> = scenario
            .links
            .iter()
            .enumerate()
            .map(|(index, link)| Link::new(&link.config, seeds(0, index)))
            .collect();
        let link_meters = scenario.links.iter().map(|link| LinkMeter {
            limited: mean_rate(&link.config.service).is_some(),
            ..LinkMeter::default()
        });
        let flow_meters = scenario.flows.iter().map(|flow| FlowMeter {
            bottleneck: slowest(scenario, &flow.path).map(|link| link as u32),
            ..FlowMeter::default()
        });
        let flows = (0..scenario.flows.len()).map(|index| Flow::new(seeds(1, index))).collect();
        let mut agenda = Agenda::default();
        // What is measured lies after the warm-up's end, as capacities are counted; without one, all counts.
        let instant = if scenario.warmup.is_zero() { Span::ZERO } else { Span::from_nanos(1) };
        agenda.enter(Time::ZERO + scenario.warmup + instant, Event::Measure);
        for (index, flow) in scenario.flows.iter().enumerate() {
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
            link_rows: links.iter().map(|_| LinkRows::default()).collect(),
            links,
            sender_alarms: vec![Alarm::OFF; scenario.flows.len()],
            receiver_alarms: vec![Alarm::OFF; scenario.flows.len()],
            flow_rows: scenario.flows.iter().map(|_| FlowRows::default()).collect(),
            meters: Meters {
                flows: flow_meters.collect(),
                links: link_meters.collect(),
                ledger: Ledger::default(),
                measuring: false,
                slots: Slots::default(),
                tap: None,
            },
            flows,
            before: vec![crate::flow::Account::default(); scenario.flows.len()],
            measured_from: Time::ZERO + scenario.warmup,
            last_sample: Time::ZERO,
            events: 0,
            scenario,
        }
    }

    /// Has every packet that leaves a link, or is dropped there, shown to `tap`.
    #[must_use]
    pub fn with_tap(mut self, tap: &'a mut dyn Tap) -> Self {
        self.meters.tap = Some(tap);
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
        while self.agenda.peek() <= end {
            let Some((at, event)) = self.agenda.next() else { break };
            debug_assert!(at >= self.now, "time runs forwards");
            self.now = at;
            self.events += 1;
            self.handle(event);
            if self.events.is_multiple_of(PATIENCE) && !go_on(self.now) {
                interrupted = true;
                break;
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
            Event::Sender(flow) => {
                if self.sender_alarms[flow as usize].rings(self.now) {
                    let state = &mut self.flows[flow as usize];
                    if state.sender_deadline() <= self.now {
                        state.on_sender_deadline(self.now);
                        self.pump_sender(flow);
                    }
                    self.arm_sender(flow);
                }
            }
            Event::Receiver(flow) => {
                if self.receiver_alarms[flow as usize].rings(self.now) {
                    let state = &mut self.flows[flow as usize];
                    if state.receiver_deadline() <= self.now {
                        state.on_receiver_deadline(self.now);
                        self.pump_receiver(flow);
                    }
                    self.arm_receiver(flow);
                }
            }
            Event::Start(flow) => self.begin(flow),
            Event::Stop(flow) => {
                self.flows[flow as usize].stop();
                self.arm_sender(flow);
            }
            Event::Write(flow) => {
                let spec = &self.scenario.flows[flow as usize];
                if let Some(next) = self.flows[flow as usize].write(&spec.workload, self.now) {
                    self.agenda.enter(next, Event::Write(flow));
                }
                self.pump_sender(flow);
                self.arm_sender(flow);
            }
            Event::Change(index) => self.change(index as usize),
            Event::Measure => {
                self.meters.measuring = true;
                for (before, flow) in self.before.iter_mut().zip(&self.flows) {
                    *before = flow.account();
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
        if state.stopped {
            return;
        }
        if let Some(next) = state.begin(spec, self.now) {
            self.agenda.enter(next, Event::Write(flow));
        }
        self.pump_sender(flow);
        self.pump_receiver(flow);
        self.arm_sender(flow);
        self.arm_receiver(flow);
    }

    fn on_link(&mut self, link: u32) {
        while let Some(packet) = self.links[link as usize].poll(self.now, &mut self.meters.at(link)) {
            self.forward(packet);
        }
        self.arm_link(link);
    }

    /// A packet came out of a link: to the next one, or to its endpoint.
    fn forward(&mut self, ticket: Ticket) {
        let packet = self.meters.slots.at(ticket);
        packet.hop += 1;
        let (flow, direction, now) = (packet.flow, packet.direction, self.now);
        let spec = &self.scenario.flows[flow as usize];
        let path = if direction == Direction::Forward { &spec.path } else { &spec.back };
        if let Some(&next) = path.get(usize::from(packet.hop)) {
            self.offer(next as u32, ticket);
            return;
        }
        let state = &mut self.flows[flow as usize];
        let current = packet.connection == state.connection; // else of a connection that is over
        let (mut next, mut rtt) = (None, None);
        match direction {
            Direction::Forward if current => next = state.on_data(spec, now, &packet.segment),
            Direction::Back if current => rtt = state.on_feedback(now, &packet.segment),
            _ => {}
        }
        self.meters.ledger.delivered += Bytes::new(u64::from(ticket.wire));
        self.meters.slots.give_back(ticket);
        if !current {
            return;
        }
        match direction {
            Direction::Forward => {
                if let Some(next) = next {
                    self.agenda.enter(next, Event::Start(flow));
                }
                self.pump_receiver(flow);
                self.arm_receiver(flow);
            }
            Direction::Back => {
                if let Some(rtt) = rtt
                    && self.meters.measuring
                {
                    self.meters.flows[flow as usize].rtt.record(rtt);
                }
                self.pump_sender(flow);
                self.arm_sender(flow);
            }
        }
    }

    #[inline]
    fn offer(&mut self, link: u32, packet: Ticket) {
        self.links[link as usize].send(self.now, packet, &mut self.meters.at(link));
        self.arm_link(link);
    }

    #[inline]
    fn pump_sender(&mut self, flow: u32) {
        while let Some(segment) = self.flows[flow as usize].poll_sender(self.now) {
            self.inject(flow, Direction::Forward, segment);
        }
    }

    #[inline]
    fn pump_receiver(&mut self, flow: u32) {
        while let Some(segment) = self.flows[flow as usize].poll_receiver(self.now) {
            self.inject(flow, Direction::Back, segment);
        }
    }

    fn inject(&mut self, flow: u32, direction: Direction, segment: ranpace_tcp::Segment) {
        let spec = &self.scenario.flows[flow as usize];
        let path = if direction == Direction::Forward { &spec.path } else { &spec.back };
        let connection = self.flows[flow as usize].connection;
        self.meters.ledger.offered += segment.wire_size();
        // The scenario's parser gives every flow a path; only UDP has no way back, and sends nothing there.
        let Some(&link) = path.first() else {
            self.meters.ledger.delivered += segment.wire_size();
            return;
        };
        let ticket = self.meters.slots.put(Packet { segment, flow, connection, hop: 0, direction });
        self.offer(link as u32, ticket);
    }

    #[inline]
    fn arm_link(&mut self, link: u32) {
        let at = self.links[link as usize].next_event();
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
            ChangeKind::LinkRate { link, rate } => {
                self.on_link(link as u32);
                self.links[link].set_rate(self.now, rate);
                self.arm_link(link as u32);
            }
            ChangeKind::LinkDelay { link, delay } => self.links[link].set_delay(delay),
            ChangeKind::FlowTarget { flow, target } => {
                match &mut self.flows[flow].ends {
                    Ends::Tcp(sender, _) => sender.set_target(target),
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
        for ((rows, flow), meter) in self.flow_rows.iter_mut().zip(&self.flows).zip(&mut self.meters.flows) {
            rows.sample(self.now, interval, flow, meter);
        }
        for ((rows, link), meter) in self.link_rows.iter_mut().zip(&self.links).zip(&mut self.meters.links) {
            let capacity = link.capacity(self.last_sample, self.now);
            rows.sample(self.now, interval, link.queued(), capacity, meter);
        }
        self.last_sample = self.now;
    }

    fn finish(mut self, interrupted: bool) -> RunResult {
        // What is due now is still told, and what is left in the network is counted.
        for link in 0..self.links.len() {
            let observer = &mut self.meters.at(link as u32);
            let mut waiting = Bytes::ZERO;
            while let Some(packet) = self.links[link].poll(self.now, observer) {
                waiting += Bytes::new(u64::from(packet.wire));
            }
            waiting += self.links[link].drain().map(|packet| Bytes::new(u64::from(packet.wire))).sum();
            self.meters.ledger.in_network += waiting;
        }
        let (from, end) = (self.measured_from, self.now);
        let links = self
            .scenario
            .links
            .iter()
            .zip(&self.links)
            .zip(self.meters.links)
            .zip(self.link_rows)
            .map(|(((spec, link), meter), rows)| {
                let capacity = link.capacity(from, end.max(from));
                LinkResult {
                    name: spec.name.clone(),
                    departed: Bytes::new(meter.departed),
                    departed_packets: meter.departed_packets,
                    dropped_packets: meter.dropped,
                    lost_packets: meter.lost,
                    marked_packets: meter.marked,
                    capacity,
                    utilisation: capacity
                        .filter(|capacity| !capacity.is_zero())
                        .map(|capacity| meter.departed as f64 / capacity.as_f64()),
                    queueing_delay: meter.delay.distribution(),
                    series: rows.finish(),
                }
            })
            .collect();
        let flows = self
            .scenario
            .flows
            .iter()
            .zip(self.flows)
            .zip(self.meters.flows)
            .zip(self.flow_rows.into_iter().zip(self.before))
            .map(|(((spec, flow), meter), (rows, before))| {
                let begin = from.max(spec.start);
                let stop = spec.stop.unwrap_or(Time::MAX).min(flow.finished.unwrap_or(Time::MAX)).min(end);
                let measured = stop - begin;
                flow_result(spec, flow, &meter, rows, before, measured)
            })
            .collect();
        RunResult {
            seed: self.scenario.seed,
            measured_from: from,
            end,
            interrupted,
            flows,
            links,
            ledger: self.meters.ledger,
            events: self.events,
        }
    }
}

fn flow_result(
    spec: &ranpace_scenario::FlowSpec,
    flow: Flow,
    meter: &FlowMeter,
    rows: FlowRows,
    before: crate::flow::Account,
    measured: Span,
) -> FlowResult {
    use ranpace_scenario::Transport;
    let account = flow.account();
    let delivered = Bytes::new(account.delivered - before.delivered);
    let sent = account.sent - before.sent;
    FlowResult {
        name: spec.name.clone(),
        cc: match &spec.transport {
            Transport::Tcp { algorithm, .. } | Transport::Datagram { algorithm, .. } => algorithm.to_string(),
            Transport::Udp { .. } => "udp".to_owned(),
        },
        bottleneck: meter.bottleneck.map(|link| link as usize),
        measured,
        delivered,
        goodput: if measured.is_zero() { Rate::ZERO } else { Rate::of(delivered, measured) },
        bottleneck_bytes: Bytes::new(meter.bottleneck_bytes),
        sent_packets: sent,
        retransmitted_packets: account.retransmitted - before.retransmitted,
        dropped_packets: meter.dropped,
        loss_rate: if sent == 0 { 0.0 } else { meter.dropped as f64 / sent as f64 },
        timeouts: account.timeouts - before.timeouts,
        undone: account.undone - before.undone,
        marked_packets: meter.marked,
        rtt: meter.rtt.distribution(),
        queueing_delay: meter.delay.distribution(),
        jitter_ewma: meter.jitter_ewma(),
        jitter_mean_deviation: meter.delay.mean_deviation(),
        transfers: flow.transfers,
        series: rows.finish(),
    }
}

/// Mean rate of a service; `None` if it is unlimited.
fn mean_rate(service: &Service) -> Option<f64> {
    match service {
        Service::Unlimited => None,
        Service::Fixed(rate) => Some(rate.as_f64()),
        Service::Trace(play) => Some(play.trace.mean_rate().as_f64() * play.scale),
    }
}

/// The slowest link of a path; of equally slow ones the first.
fn slowest(scenario: &Scenario, path: &[usize]) -> Option<usize> {
    let mut slowest: Option<(usize, f64)> = None;
    for &link in path {
        if let Some(rate) = mean_rate(&scenario.links[link].config.service)
            && slowest.is_none_or(|(_, least)| rate < least)
        {
            slowest = Some((link, rate));
        }
    }
    slowest.map(|(link, _)| link)
}
