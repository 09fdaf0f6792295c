//! Carries radio information from the cells' reports to the readers of hints about a user.
//!
//! There are two feeds. The *edge's feed* (`[rnis]` in a scenario) covers both directions of all users, and every report takes its
//! bytes on the wire. A *device's modem* (`[modem]`) tells the device about its own uplink. A [`Publisher`] averages; this module
//! delays, decimates, falsifies and stops reports as the scenario says.
//!
//! - A flow whose sender's control wants radio information is subscribed automatically: to its own modem if its host is a user,
//!   otherwise to the edge, for the user that its data go to ([`Feed::of_flow`]).
//! - **A participant at a host calls [`Network::subscribe_hints`](crate::Network::subscribe_hints)** once for each user before the first
//!   event, with [`Reader::Participant`] and a number of its choice. [`Hosts::on_hint`](crate::Hosts::on_hint) receives each hint when it
//!   arrives.
//! - A flow whose receiver's half decodes its cell's control channel is subscribed to it automatically ([`control_channels`]).
//! - An observer of the whole network subscribes in the same way, as [`Reader::Observer`].
//!
//! Cells produce no reports while nobody subscribes, and sleep as usual. Ours: the error of a report is drawn for each report and user,
//! uniformly within its bounds, once for block and grants, once for unused resources and once for the queue; a handover is announced at
//! once, whatever the period. A feed whose `content` is not what was measured invents resources, queue and users in every report
//! ([`invent`]); time and cell stay true.
//!
//! [`Radio::read_hints`]: crate::radio::Radio::read_hints
//! [`control_channels`]: crate::control_channels

use std::collections::VecDeque;

use ranpace_cc::RadioHint;
use ranpace_phy::Direction;
use ranpace_rnis::wire::{Encoder, Record, UDP_IP_BYTES};
use ranpace_rnis::{Averaging, CellGrant, Event, EventKind, Publisher, SlotReport};
use ranpace_scenario::{Content, Encoding, FeedKind, FeedSpec, Hop, Scenario, Transport};
use ranpace_units::{Bytes, Rate, Time};

use crate::control_channels::{ControlChannels, SlotDelivery};
use crate::random::{mix, unit};
use crate::results::FeedResult;

/// A report of one user as text, its headers included; Diarra 2022, section 5.3.4.
const TEXT_REPORT: u64 = 170;

/// A reader of radio information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// The control at the sender of this flow.
    Flow(u32),
    /// A participant at a host, by the number that it has chosen.
    Participant(u32),
    /// The observer of the whole network.
    Observer,
}

/// A source of hints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The edge's feed, `[rnis]` in a scenario.
    Edge,
    /// The user's own modem, `[modem]`.
    Modem,
}

/// A hint that has arrived.
#[derive(Clone, Copy, Debug)]
pub struct HintDelivery {
    /// The reader.
    pub reader: Reader,
    /// The user.
    pub user: u32,
    /// The hint.
    pub hint: RadioHint,
}

/// Both feeds of radio information.
#[derive(Debug)]
pub(crate) struct Feed {
    edge: Channel,
    modem: Channel,
    control: ControlChannels,
    /// Users whose real-time packets have an additional bearer before the others.
    real_time_first: Vec<bool>,
}

#[derive(Debug)]
struct Channel {
    source: Source,
    spec: FeedSpec,
    publisher: Publisher,
    /// By number of the user.
    readers: Vec<Vec<FeedSubscription>>,
    is_read: bool,
    /// In order of time.
    under_way: VecDeque<(Time, HintDelivery)>,
    /// Reports so far, per cell.
    published: Vec<u64>,
    /// Per-cell datagram encoders, and the records of the current report.
    encoders: Vec<Encoder>,
    records: Vec<Record>,
    seed: u64,
    sent: FeedResult,
}

#[derive(Clone, Copy, Debug)]
struct FeedSubscription {
    reader: Reader,
    direction: Direction,
    bearer: u8,
}

impl Feed {
    /// As configured by the scenario, with subscriptions for the flows that need them.
    pub fn new(scenario: &Scenario, seed: u64) -> Self {
        let channel = |source, spec: &FeedSpec, averaging, seed| Channel {
            source,
            spec: *spec,
            publisher: Publisher::new(spec.period, averaging),
            readers: vec![Vec::new(); scenario.users.len()],
            is_read: false,
            under_way: VecDeque::new(),
            published: vec![0; scenario.cells.len()],
            encoders: vec![Encoder::new(true); scenario.cells.len()],
            records: Vec::new(),
            seed,
            sent: FeedResult::default(),
        };
        let mut feed = Self {
            edge: channel(Source::Edge, &scenario.rnis, Averaging::Smooth, mix(seed, 0)),
            modem: channel(Source::Modem, &scenario.modem, Averaging::Exact, mix(seed, 1)),
            control: ControlChannels::new(scenario, mix(seed, 2)),
            real_time_first: scenario.users.iter().map(|user| user.real_time_first).collect(),
        };
        for (index, flow) in (0..).zip(&scenario.flows) {
            if let (Some((user, source)), true) =
                (Self::of_flow(scenario, index), wants_radio(&flow.transport))
            {
                let direction = if source == Source::Modem { Direction::Uplink } else { Direction::Downlink };
                feed.subscribe(source, Reader::Flow(index), user, direction, flow.bearer);
            }
        }
        feed
    }

    /// The user whose hints the sender of a flow gets, and their source; `None` if there are none.
    pub fn of_flow(scenario: &Scenario, flow: u32) -> Option<(u32, Source)> {
        let path = &scenario.flows.get(flow as usize)?.path;
        match (path.first(), path.last()) {
            (Some(Hop::Radio { user, direction: Direction::Uplink }), _) => Some((*user, Source::Modem)),
            (_, Some(Hop::Radio { user, direction: Direction::Downlink })) => Some((*user, Source::Edge)),
            _ => None,
        }
    }

    /// Subscribes a reader to hints about a user in one direction; `bearer` is the one whose queue is reported.
    pub fn subscribe(&mut self, source: Source, reader: Reader, user: u32, direction: Direction, bearer: u8) {
        let channel = if source == Source::Modem { &mut self.modem } else { &mut self.edge };
        let has_one_more = self.real_time_first.get(user as usize).is_some_and(|first| *first);
        let bearer = bearer.saturating_add(has_one_more.into());
        if let Some(readers) = channel.readers.get_mut(user as usize) {
            readers.push(FeedSubscription { reader, direction, bearer });
            channel.is_read = true;
        }
    }

    /// Returns whether there are any readers.
    pub fn is_read(&self) -> bool {
        self.edge.is_read || self.modem.is_read || self.control.is_read()
    }

    /// A cell's slot has ended.
    pub fn on_report(&mut self, report: &SlotReport<'_>) {
        self.edge.on_report(report);
        self.modem.on_report(report);
        self.control.on_report(report);
    }

    /// Something happened to a user.
    pub fn on_event(&mut self, event: &Event) {
        self.edge.on_event(event);
        self.modem.on_event(event);
        self.control.on_event(event);
    }

    /// When [`Self::next`] or [`Self::next_slot`] will return something.
    pub fn next_due(&self) -> Time {
        let due = |channel: &Channel| channel.under_way.front().map_or(Time::MAX, |(at, _)| *at);
        due(&self.edge).min(due(&self.modem)).min(self.control.next_due())
    }

    /// The next hint that has arrived by now.
    pub fn next(&mut self, now: Time) -> Option<HintDelivery> {
        let channel = [&mut self.edge, &mut self.modem]
            .into_iter()
            .find(|channel| channel.under_way.front().is_some_and(|(at, _)| *at <= now))?;
        channel.under_way.pop_front().map(|(_, delivery)| delivery)
    }

    /// Reports have this content from now on; `None`: there are none.
    pub fn set_content(&mut self, now: Time, feed: FeedKind, content: Option<Content>) {
        let spec = match feed {
            FeedKind::Edge => &mut self.edge.spec,
            FeedKind::Modem => &mut self.modem.spec,
        };
        (spec.stop, spec.resume) = (content.is_none().then_some(now), None);
        spec.content = content.unwrap_or(spec.content);
    }

    /// The next slot of a control channel that has arrived by now; `grants` then has its messages alone.
    pub fn next_slot(&mut self, now: Time, grants: &mut Vec<CellGrant>) -> Option<SlotDelivery> {
        self.control.next(now, grants)
    }

    /// The measured part begins.
    pub fn measure(&mut self) {
        self.edge.sent = FeedResult::default();
    }

    /// Returns the figures of the edge's feed since `from`; `None` without a reader.
    pub fn result(&self, from: Time, end: Time) -> Option<FeedResult> {
        let measured = end - from;
        let rate = if measured.is_zero() { Rate::ZERO } else { Rate::of(self.edge.sent.bytes, measured) };
        self.edge.is_read.then_some(FeedResult { rate, ..self.edge.sent })
    }
}

impl Channel {
    fn on_report(&mut self, report: &SlotReport<'_>) {
        if !self.is_read || !self.publisher.on_report(report) {
            return;
        }
        let cell = report.cell.cell;
        let Some(count) = self.published.get_mut(usize::from(cell)) else { return };
        let number = *count;
        *count += 1;
        if number.is_multiple_of(self.spec.every.into()) && self.spec.is_on(report.time) {
            if self.source == Source::Edge {
                self.count_bytes(cell);
            }
            for place in 0..self.publisher.users(cell).len() {
                let user = self.publisher.users(cell)[place];
                self.tell(report.time, user, number);
            }
        }
        self.publisher.published(cell);
    }

    fn on_event(&mut self, event: &Event) {
        if !self.is_read {
            return;
        }
        self.publisher.on_event(event);
        if matches!(event.kind, EventKind::HandoverBegun { .. }) && self.spec.is_on(event.time) {
            self.tell(event.time, event.user, u64::MAX);
        }
    }

    /// Sends hints about a user to its readers.
    fn tell(&mut self, now: Time, user: u32, number: u64) {
        let Self { source, spec, publisher, readers, under_way, seed, .. } = self;
        for FeedSubscription { reader, direction, bearer } in readers.get(user as usize).into_iter().flatten()
        {
            // In a slot of the other direction the modem has nothing to report.
            let is_event = number == u64::MAX;
            if *source == Source::Modem && !is_event && !publisher.had_symbols(user, *direction) {
                continue;
            }
            let Some(mut hint) = publisher.hint(user, *direction, Some(*bearer)) else { continue };
            let draw = mix(mix(*seed, user.into()), number);
            invent(&mut hint, spec.content, *direction, |part| unit(mix(draw, part)));
            if spec.error > 0.0 {
                falsify(&mut hint, |part| 1.0 + spec.error * (2.0 * unit(mix(draw, part)) - 1.0));
            }
            under_way.push_back((now + spec.delay, HintDelivery { reader: *reader, user, hint }));
        }
    }

    /// Counts the bytes of a cell's report on the wire.
    fn count_bytes(&mut self, cell: u16) {
        let all = self.publisher.users(cell).len() as u64;
        let sent = &mut self.sent;
        sent.reports += 1;
        match self.spec.encoding {
            Encoding::Text => {
                sent.records += all;
                sent.datagrams += all;
                sent.bytes += Bytes::new(TEXT_REPORT * all);
            }
            Encoding::Compact => {
                let Some(report) = self.publisher.report(cell, &mut self.records) else { return };
                let Some(encoder) = self.encoders.get_mut(usize::from(cell)) else { return };
                let records = encoder.encode(&report, &self.records, &mut |datagram| {
                    sent.datagrams += 1;
                    sent.bytes += Bytes::new((datagram.len() + UDP_IP_BYTES) as u64);
                });
                sent.records += records as u64;
            }
        }
    }
}

/// Users of a cell that is reported as full. Ours.
const CROWD: u16 = 100;
/// Queue length reported for a full queue whose limit is not known. Ours.
const LONG_QUEUE: Bytes = Bytes::new(1_000_000);
/// First draw for invented values; those before are for errors.
const INVENTED: u64 = 8;

/// Replaces measured values by invented ones. `draw` returns a number from 0 to 1 for each part.
fn invent(hint: &mut RadioHint, content: Content, direction: Direction, draw: impl Fn(u64) -> f64) {
    let limit = hint.queue_limit.unwrap_or(LONG_QUEUE);
    // Mean grant, largest grant per TTI, unused resources; users and queue.
    let cell = f64::from(hint.cell);
    let (granted, most, unused, users, queue) = match content {
        Content::Measured => return,
        Content::Full => (1.0, 1.0, 0.0, CROWD, limit),
        Content::Empty => (0.0, cell, cell, 1, Bytes::ZERO),
        Content::Random => {
            let [granted, unused, queue, users, mcs] = [0, 1, 2, 3, 4].map(|part| draw(INVENTED + part));
            hint.mcs = (mcs * MCS_VALUES) as u8;
            let granted = granted * cell;
            let users = 1 + (users * f64::from(CROWD)) as u16;
            (granted, granted, unused * (cell - granted), users, limit.mul_f64(queue))
        }
    };
    (hint.granted, hint.unused, hint.active_users, hint.queue) = (granted, unused, users, queue);
    hint.most_granted = libm::round(most) as u16;
    hint.tbs_bits = Some(hint.block(direction, f64::from(hint.most_granted)).bits());
}

/// Number of MCS values common to all tables (TS 38.214, table 5.1.3.1-2): 0 to 27.
const MCS_VALUES: f64 = 28.0;

/// Multiplies the values of a hint by error factors.
fn falsify(hint: &mut RadioHint, factor: impl Fn(u64) -> f64) {
    let cell = f64::from(hint.cell);
    let of_grant = factor(0);
    // Block sizes are whole bytes.
    let bits = |bits: u32| 8 * libm::round(f64::from(bits) * of_grant / 8.0) as u32;
    hint.tbs_bits = hint.tbs_bits.map(bits);
    hint.granted = (hint.granted * of_grant).min(cell);
    hint.most_granted = libm::round(f64::from(hint.most_granted) * of_grant).min(cell) as u16;
    hint.unused = (hint.unused * factor(1)).min(cell);
    hint.queue = Bytes::new(libm::round(hint.queue.as_f64() * factor(2)) as u64);
}

/// Returns whether a transport's control reads radio information.
fn wants_radio(transport: &Transport) -> bool {
    match transport {
        Transport::Tcp { algorithm, .. }
        | Transport::Quic { algorithm, .. }
        | Transport::Datagram { algorithm, .. } => algorithm.build(0).wants_radio(),
        Transport::Udp { .. } => false,
    }
}
