//! A network for packets from outside: packets with content enter and leave it at its driver's pace. The real-time emulator drives
//! it by the real clock.
//!
//! Links and cells process each event at its own instant, however late they are called. A late caller therefore delivers packets
//! late, but changes nothing else: [`Arrived::due`] is the time at which the packet arrived.

use std::collections::VecDeque;

use ranpace_cc::RadioHint;
use ranpace_pep::middlebox::Verdict;
use ranpace_phy::Direction as Way;
use ranpace_radio::cell::CellSubscription;
use ranpace_rnis::update::Update;
use ranpace_rnis::{AssociateId, ControlChannel};
use ranpace_scenario::{ChangeKind, Scenario};
use ranpace_units::{Bytes, Ecn, Span, Time};

use crate::event_queue::Event;
use crate::feed::{HintDelivery, Reader, Source};
use crate::histogram::Histogram;
use crate::network::{Drive, Hosts, Network};
use crate::packet::{Direction, OUTSIDE, PacketHandle};
use crate::radio::RadioReader;
use crate::results::{Distribution, FlowCounts, FlowResult, FlowTotals, Moment, RunResult, Series};
use crate::series::{FlowRow, FlowRows, LinkRows};

/// The description of a packet from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketInfo {
    /// Index of the scenario's flow whose path it takes.
    pub flow: u32,
    /// Distinguishes the streams of a flow, for queues that separate them.
    pub stream: u32,
    /// Bytes on the wire, IP header included.
    pub wire: u32,
    /// Bytes after its transport header.
    pub payload: u32,
    /// Its ECN code point as it enters.
    pub ecn: Ecn,
}

/// A packet at the end of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Index of the scenario's flow whose path it took.
    pub flow: u32,
    /// When it arrived.
    pub due: Time,
    /// Its ECN code point as it leaves.
    pub ecn: Ecn,
}

/// Outside hosts have no events.
#[derive(Clone, Copy, Debug)]
enum Never {}

/// The hosts, all of them outside.
#[derive(Debug)]
struct ExternalHosts {
    /// Packets at the end of their path.
    egress: VecDeque<(Time, PacketHandle)>,
    /// Flows whose packets continue elsewhere after this network, and those packets.
    stops: Vec<bool>,
    stopped: VecDeque<(Time, PacketHandle)>,
    /// Counters of each flow.
    counts: Vec<FlowCounts>,
    /// Counters when the measured part began.
    before: Vec<FlowCounts>,
    rows: Vec<FlowRows>,
    /// Radio information that has arrived for readers outside.
    hints: VecDeque<(Time, HintDelivery)>,
    /// Grants that modems have decoded, of the users that are listened to.
    granted: VecDeque<(Time, u32, RadioHint)>,
}

impl<'a> Hosts<'a> for ExternalHosts {
    type Event = Never;

    fn on_passing(&mut self, _: &mut Network<'a, Never>, _: u32, _: &mut PacketHandle) -> Verdict {
        Verdict::Pass
    }

    fn on_arrived(&mut self, network: &mut Network<'a, Never>, packet: PacketHandle) {
        network.count_delivered(packet);
        let payload = network.meters.packets.at(packet).segment.length;
        if let Some(count) = self.counts.get_mut(packet.flow() as usize) {
            count.delivered += u64::from(payload);
        }
        let stops = self.stops.get(packet.flow() as usize).is_some_and(|stops| *stops);
        let queue = if stops { &mut self.stopped } else { &mut self.egress };
        queue.push_back((network.now(), packet));
    }

    fn on_event(&mut self, _: &mut Network<'a, Never>, event: Never) {
        match event {}
    }

    fn on_hint(&mut self, network: &mut Network<'a, Never>, delivery: &HintDelivery) {
        self.hints.push_back((network.now(), *delivery));
    }

    fn on_grant(&mut self, network: &mut Network<'a, Never>, user: u32, grant: &RadioHint) {
        self.granted.push_back((network.now(), user, *grant));
    }

    /// Receivers outside decode nothing: no half of ours runs there.
    fn on_cell(&mut self, _: &mut Network<'a, Never>, _: u32, _: &ControlChannel<'_>) {}

    fn on_measure(&mut self, _: &mut Network<'a, Never>) {
        self.before.clone_from(&self.counts);
    }

    fn on_sample(&mut self, network: &mut Network<'a, Never>, interval: Span) {
        let now = network.now();
        let flows = self.rows.iter_mut().zip(&self.counts).zip(&mut network.meters.flows);
        flows.for_each(|((rows, counts), meter)| {
            rows.sample(now, interval, &FlowRow::of_counts(*counts), meter);
        });
    }

    fn on_change(&mut self, _: &mut Network<'a, Never>, _: &ChangeKind) {}
}

/// The links and cells of a scenario, and their measurements. Only the paths of its flows are used: no flow starts, and each counts
/// what is sent on its path. `C` identifies the packet to the caller.
pub struct Transit<'a, C> {
    scenario: &'a Scenario,
    network: Network<'a, Never>,
    outside: ExternalHosts,
    /// By packet slot; a lost packet's content stays until another packet takes the slot.
    contents: Vec<C>,
    slots: Histogram,
    late_slots: u64,
    slot: Span,
    events: u64,
    /// Links from which everything enters a cell.
    before_cells: Vec<bool>,
}

impl<'a, C: Copy + Default> Transit<'a, C> {
    /// Prepares a scenario in which nothing has been sent. Its middleboxes are played here; proxies and PEPs are left to the
    /// driver.
    pub fn new(scenario: &'a Scenario) -> Self {
        let slots = scenario.cells.iter().filter_map(|cell| cell.config.air.frame().ok());
        let slot = slots.map(|frame| frame.slot()).min().unwrap_or(Span::from_millis(1));
        let mut network = Network::new(scenario, Drive { prefetches: false, arrivals_only: true }, &[]);
        network.start();
        let none = vec![FlowCounts::default(); scenario.flows.len()];
        let rows = scenario.flows.iter().map(|_| FlowRows::default()).collect();
        Self {
            scenario,
            before_cells: network.before_cells(),
            network,
            outside: ExternalHosts {
                egress: VecDeque::new(),
                stops: Vec::new(),
                stopped: VecDeque::new(),
                counts: none.clone(),
                before: none,
                rows,
                hints: VecDeque::new(),
                granted: VecDeque::new(),
            },
            contents: Vec::new(),
            slots: Histogram::default(),
            late_slots: 0,
            slot,
            events: 0,
        }
    }

    /// When a packet can come out, or something changes, or earlier; [`Time::MAX`] if nothing is in flight. A packet that reaches a
    /// cell shortly before its next slot waits for that slot, the earliest in which it can be served.
    pub fn next_event(&self) -> Time {
        let slot = self.network.next_slot();
        let can_wait = |link: u32, at: Time| {
            self.before_cells.get(link as usize).is_some_and(|into| *into) && slot <= at + self.slot
        };
        self.network.queue.next_time_but(can_wait)
    }

    /// Sends a packet at `now`, or at [`Self::now`] if that is later; what was due by then happens first. Returns the content of an
    /// earlier packet that was lost, or of this one if it has no path; usually the default.
    pub fn inject(&mut self, now: Time, info: PacketInfo, content: C) -> C {
        self.advance(now);
        let network = &mut self.network;
        network.set_now(network.now().max(now));
        let Some(first) = network.routes.place(info.flow, Direction::Forward, 0) else { return content };
        let packet = network.vacant();
        packet.flow = info.flow;
        packet.connection = OUTSIDE | (info.stream & STREAMS);
        packet.hop = 0;
        packet.direction = Direction::Forward;
        // Nothing writes the other fields here, so they keep their initial values.
        let segment = &mut packet.segment;
        (segment.wire, segment.length) = (info.wire, info.payload);
        segment.ecn = info.ecn;
        let Some(slot) = network.meters.packets.next_slot() else { return content };
        if self.contents.len() <= slot {
            self.contents.resize_with(slot + 1, C::default);
        }
        let lost = core::mem::replace(&mut self.contents[slot], content);
        if let Some(count) = self.outside.counts.get_mut(info.flow as usize) {
            count.sent += 1;
            count.sent_bytes += u64::from(info.payload);
        }
        network.send(first);
        lost
    }

    /// Processes what is due by `now`, each event at its own instant.
    pub fn advance(&mut self, now: Time) {
        while let Some((at, event)) = self.network.queue.next(now) {
            self.network.set_now(self.network.now().max(at));
            self.events += 1;
            if matches!(event, Event::Radio) {
                let late = now - at;
                self.slots.record(late);
                self.late_slots += u64::from(late > self.slot);
            }
            if matches!(event, Event::Change(_) | Event::Measure | Event::Sample) {
                self.network.catch_up(&mut self.outside);
            }
            self.network.handle(event, &mut self.outside);
        }
    }

    /// Makes the packets of these flows, which continue elsewhere, come out of [`Self::take_stopped`] instead of [`Self::take`].
    pub fn stop(&mut self, flows: Vec<bool>) {
        self.outside.stops = flows;
    }

    /// The next packet of a flow named by [`Self::stop`], and its content.
    pub fn take_stopped(&mut self) -> Option<(Arrived, C)> {
        let (due, packet) = self.outside.stopped.pop_front()?;
        Some(self.leave(due, packet))
    }

    /// The next packet at the end of its path, and its content.
    pub fn take(&mut self) -> Option<(Arrived, C)> {
        let (due, packet) = self.outside.egress.pop_front()?;
        Some(self.leave(due, packet))
    }

    #[inline]
    fn leave(&mut self, due: Time, packet: PacketHandle) -> (Arrived, C) {
        let content = self.contents.get_mut(packet.slot()).map(core::mem::take).unwrap_or_default();
        let arrived = Arrived { flow: packet.flow(), due, ecn: packet.ecn() };
        self.network.meters.packets.release(packet);
        (arrived, content)
    }

    /// Makes [`Self::take_hint`] return what this source reports about a user, from the first event on.
    pub fn subscribe_hints(&mut self, source: Source, reader: Reader, user: u32, direction: Way, bearer: u8) {
        self.network.subscribe_hints(source, reader, user, direction, bearer);
        self.network.arm_radio();
    }

    /// Cells and users as a source of radio information describes them; `ids` are the identifiers of the user with this number.
    pub fn describe(&self, ids: &dyn Fn(u32) -> Vec<AssociateId>) -> Vec<Update> {
        self.network.describe(ids)
    }

    /// Passes what cells say in every slot to `reader`, from the first event on.
    pub fn subscribe_reports(&mut self, reader: &'a mut dyn RadioReader) {
        self.network.subscribe_reports(CellSubscription::EVERY_SLOT, reader);
    }

    /// The next radio information that has arrived, and when.
    pub fn take_hint(&mut self) -> Option<(Time, HintDelivery)> {
        self.outside.hints.pop_front()
    }

    /// Has [`Self::take_grant`] give what the modem of a user decodes from now on.
    pub fn listen(&mut self, user: u32) {
        self.network.listen(user);
    }

    /// The next downlink grant that a modem has decoded: when, the user, and the grant.
    pub fn take_grant(&mut self) -> Option<(Time, u32, RadioHint)> {
        self.outside.granted.pop_front()
    }

    /// Time of the latest event; nothing can happen before it.
    pub fn now(&self) -> Time {
        self.network.now()
    }

    /// The shortest slot of its cells; 1 ms without a cell, as in traces.
    pub fn slot(&self) -> Span {
        self.slot
    }

    /// Lateness of the cells' slots (and of arrivals from them), and the number of slots played more than a slot late.
    pub fn slots(&self) -> (Distribution, u64) {
        (self.slots.distribution(), self.late_slots)
    }

    /// Rows in the series of links so far, one per interval of the scenario's `sample`.
    pub fn rows(&self) -> usize {
        self.network.link_rows().first().map_or(0, LinkRows::rows)
    }

    /// Activity of each link and each direction of a user in the rows from this one on, in the order of [`RunResult::links`].
    pub fn lately(&self, from: usize) -> impl Iterator<Item = Moment> {
        self.network.link_rows().iter().map(move |rows| rows.lately(from))
    }

    /// The series of each of [`crate::link_names`] from row number `from` on.
    pub fn links_since(&self, from: usize) -> Vec<Series> {
        self.network.link_rows().iter().map(|rows| rows.since(from)).collect()
    }

    /// The series of each user of cells from row number `from` on.
    pub fn users_since(&self, from: usize) -> Vec<Series> {
        self.network.user_series_since(from)
    }

    /// Ends the run. Flows have what was counted on their paths: payload, packets, drops, delays.
    pub fn finish(mut self, now: Time) -> RunResult {
        self.advance(now);
        self.network.set_now(self.network.now().max(now));
        self.network.catch_up(&mut self.outside);
        let end = self.network.now();
        let result = self.network.finish();
        let from = result.measured_from;
        let counts = self.outside.before.into_iter().zip(self.outside.counts);
        let flows = self.scenario.flows.iter().zip(&result.flows).zip(counts.zip(self.outside.rows));
        let flows = flows.map(|((spec, meter), ((before, after), rows))| {
            let measured = spec.stop.unwrap_or(Time::MAX).min(end) - from.max(spec.start);
            let flow = FlowResult::of(spec, meter, [before, after], measured, rows.finish());
            let totals = FlowTotals { sent_once: Bytes::new(after.sent_bytes), ..flow.totals };
            FlowResult { totals, ..flow }
        });
        RunResult {
            seed: self.scenario.seed,
            measured_from: from,
            end,
            interrupted: false,
            flows: flows.collect(),
            links: result.links,
            cells: result.cells,
            users: result.users,
            feed: result.feed,
            peps: Vec::new(),
            ledger: result.ledger,
            events: self.events,
        }
    }
}

/// Bits of a stream's number that packets keep.
const STREAMS: u32 = (1 << 29) - 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(text: &str) -> Scenario {
        ranpace_scenario::parse(text, "test.toml", &mut ()).expect("a scenario of this test is right")
    }

    const LINK: &str = r#"
        duration = "10s"
        [[link]]
        from = "server"
        to = "phone"
        rate = "12Mbit/s"
        delay = "20ms"
        queue = { kind = "droptail", limit = "3000B" }
        duplex = true
        [[flow]]
        from = "server"
        to = "phone"
        cc = "newreno"
    "#;

    fn info(wire: u32) -> PacketInfo {
        PacketInfo { flow: 0, stream: 7, wire, payload: wire - 52, ecn: Ecn::NotEct }
    }

    #[test]
    fn a_packet_comes_out_with_its_content_at_its_instant_however_late_the_caller_is() {
        let scenario = scenario(LINK);
        for late in [0, 3, 500] {
            let mut network = Transit::new(&scenario);
            for text in ["first", "second"] {
                assert_eq!(network.inject(Time::from_millis(100), info(1500), text), "", "nothing is lost");
            }
            network.advance(Time::from_millis(120));
            assert_eq!(network.take(), None, "20 ms and 1 ms are not over");
            network.advance(Time::from_millis(122 + late));
            // 1500 B at 12 Mbit/s are 1 ms.
            for (at, text) in [(121, "first"), (122, "second")] {
                let (arrived, content) = network.take().expect("it has arrived");
                assert_eq!(arrived.due, Time::from_millis(at));
                assert_eq!(content, text);
            }
            assert_eq!(network.take(), None);
            let result = network.finish(Time::from_secs(1));
            assert!(result.ledger.balances(), "{:?}", result.ledger);
            let flow = &result.flows[0];
            assert_eq!((flow.sent_packets, flow.delivered), (2, Bytes::new(2 * 1448)));
            assert_eq!(result.links[0].departed_packets, 2);
        }
    }

    #[test]
    fn nobody_is_woken_before_a_packet_can_come_out() {
        let scenario = scenario(LINK);
        let mut network = Transit::new(&scenario);
        (0..3).for_each(|_| network.inject(Time::from_millis(1), info(1500), ()));
        // 1 ms each, and 20 ms of delay.
        for at in [22, 23, 24] {
            assert_eq!(network.next_event(), Time::from_millis(at));
            network.advance(Time::from_millis(at));
            assert!(network.take().is_some());
        }
        // A row of the series.
        assert_eq!(network.next_event(), Time::from_millis(100));
    }

    #[test]
    fn a_shorter_delay_holds_for_what_has_not_left_the_queue() {
        let change = "[[change]]\nat = \"500us\"\nlink = \"link1\"\ndelay = \"2ms\"";
        let scenario = scenario(&format!("{LINK}{change}"));
        let mut network = Transit::new(&scenario);
        network.inject(Time::ZERO, info(1500), 1);
        network.advance(Time::from_nanos(600_000));
        assert_eq!(network.next_event(), Time::from_millis(3), "1 ms for 1500 B, and 2 ms");
        // Another packet is sent between this instant and that of the longer delay.
        network.inject(Time::from_millis(10), info(1500), 2);
        assert_eq!(network.next_event(), Time::from_millis(13));
        network.advance(Time::from_millis(13));
        let due = [network.take(), network.take()]
            .map(|taken| taken.map(|(arrived, number)| (arrived.due, number)));
        assert_eq!(due, [Some((Time::from_millis(3), 1)), Some((Time::from_millis(13), 2))]);
    }

    #[test]
    fn packets_beyond_the_queues_limit_are_dropped_and_counted() {
        let scenario = scenario(LINK);
        let mut network = Transit::new(&scenario);
        // When a slot is reused, the caller learns which packet in it was lost.
        let lost: Vec<u32> = (1..=5).map(|number| network.inject(Time::ZERO, info(1500), number)).collect();
        assert_eq!(lost, [0, 0, 0, 0, 4]);
        network.advance(Time::from_secs(1));
        // One in service, two in the queue of 3000 B.
        assert_eq!(std::iter::from_fn(|| network.take()).count(), 3);
        let result = network.finish(Time::from_secs(1));
        assert_eq!((result.flows[0].dropped_packets, result.links[0].dropped_packets), (2, 2));
        assert!(result.ledger.balances());
    }

    #[test]
    fn recent_figures_of_links_equal_their_series() {
        let scenario = scenario(LINK);
        let mut network = Transit::new(&scenario);
        // In 40 ms, 40 packets can leave; two wait, and one is in service.
        for number in 0..60 {
            network.inject(Time::from_nanos(number * 667_000), info(1500), ());
        }
        network.advance(Time::from_millis(150));
        assert_eq!(network.rows(), 1, "a row every 100 ms");
        let down = network.lately(0).next().expect("there is a link");
        let (departed, dropped) = (down.departed.as_f64() / 1e6, down.dropped_packets);
        assert!((4.5..5.5).contains(&departed), "{departed} Mbit/s");
        assert_eq!(departed * 1e6 / 8.0 / 10.0 / 1500.0 + dropped as f64, 60.0, "all of them");
        assert_eq!(down.capacity, Some(ranpace_units::Rate::from_mbit_per_s(12)));
        let delay = down.delay.expect("some left");
        assert!(delay > Span::from_millis(1) && delay <= Span::from_millis(3), "{delay}");
        network.advance(Time::from_millis(350));
        assert_eq!(network.rows(), 3);
        let later = network.lately(1).next().expect("there is a link");
        assert_eq!(
            (later.departed, later.delay, later.queued),
            (ranpace_units::Rate::ZERO, None, Bytes::ZERO)
        );
    }

    #[test]
    fn packets_for_a_cell_wait_for_its_slot() {
        let scenario = scenario(CELL);
        // Every 10 us, or only at its deadlines.
        let play = |often: bool| {
            let mut network = Transit::new(&scenario);
            let (mut now, mut out, mut woken) = (Time::ZERO, Vec::new(), 0);
            for number in 0..3_000_u64 {
                let next = Time::from_nanos(number * 130_000);
                while now < next {
                    now = match often {
                        true => now + Span::from_micros(10),
                        false => network.next_event().max(now + Span::from_nanos(1)).min(next),
                    };
                    woken += u64::from(now < next);
                    network.advance(now);
                    while let Some((arrived, content)) = network.take() {
                        assert!(often || arrived.due == now, "in time: {} at {now}", arrived.due);
                        out.push((arrived, content));
                    }
                }
                network.inject(now, PacketInfo { flow: (number % 2) as u32, ..info(1000) }, number);
            }
            assert!(network.finish(now).ledger.balances());
            (out, woken)
        };
        let ((expected, _), (found, woken)) = (play(true), play(false));
        assert!(expected.len() > 2_000, "{}", expected.len());
        assert_eq!(found, expected);
        // 390 ms have as many slots, and 1,500 packets reach the mast between them.
        assert!(woken < 390 + 1_500 + 400, "{woken}: an uplink's packets come out one by one");
    }

    #[test]
    fn packets_from_outside_pass_middleboxes_too() {
        let middlebox = "[[middlebox]]\nhost = \"phone\"\nkind = \"drop_every\"\npackets = 4\n";
        let scenario = scenario(&format!("{LINK}{middlebox}"));
        let mut network = Transit::new(&scenario);
        let mut out = Vec::new();
        for number in 1..=8_u64 {
            network.inject(Time::from_millis(2 * number), info(1500), number);
            network.advance(Time::from_millis(2 * number + 1));
        }
        network.advance(Time::from_secs(1));
        while let Some((_, number)) = network.take() {
            out.push(number);
        }
        assert_eq!(out, [1, 2, 3, 5, 6, 7]);
        let result = network.finish(Time::from_secs(1));
        assert_eq!(result.flows[0].dropped_packets, 2);
        assert!(result.ledger.balances(), "{:?}", result.ledger);
    }

    #[test]
    fn no_flow_of_the_scenario_begins() {
        let scenario = scenario(LINK);
        let mut network = Transit::<()>::new(&scenario);
        network.advance(Time::from_secs(10));
        let result = network.finish(Time::from_secs(10));
        assert_eq!((result.flows[0].sent_packets, result.links[0].departed_packets), (0, 0));
    }

    const CELL: &str = r#"
        duration = "10s"
        [[cell]]
        name = "cell"
        host = "mast"
        preset = "lte"
        [[user]]
        name = "ue1"
        position = [100, 0]
        [[link]]
        from = "server"
        to = "mast"
        rate = "1Gbit/s"
        delay = "5ms"
        duplex = true
        [[flow]]
        from = "server"
        to = "ue1"
        cc = "newreno"
        [[flow]]
        from = "ue1"
        to = "server"
        cc = "newreno"
    "#;

    #[test]
    fn a_cell_carries_what_comes_from_outside_both_ways() {
        let scenario = scenario(CELL);
        let mut network = Transit::new(&scenario);
        for flow in 0..2 {
            for number in 0..20_u8 {
                let wire = 1000;
                network.inject(Time::ZERO, PacketInfo { flow, ..info(wire) }, number);
            }
        }
        let mut seen = [Vec::new(), Vec::new()];
        for millis in 0..1_000 {
            network.advance(Time::from_millis(millis));
            while let Some((arrived, content)) = network.take() {
                assert!(arrived.due <= Time::from_millis(millis));
                seen[arrived.flow as usize].push(content);
            }
        }
        let all: Vec<u8> = (0..20).collect();
        assert_eq!(seen, [all.clone(), all]);
        assert!(network.slots().0.count > 0, "slots of the cell were counted");
    }
}
