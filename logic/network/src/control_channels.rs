//! Carries the control channels of cells to the receivers that decode the messages to all users (PBE-CC).
//!
//! They come by the device's modem, so `[modem]` delays, decimates, stops, falsifies and invents them as it does hints; its `period` does
//! not matter, because every slot is decoded. A flow whose receiver's half wants them is subscribed automatically. Ours: `error` is drawn
//! for each slot, once for the sizes of blocks and once for PRBs; the invented messages are those of [`invent`].

use std::collections::VecDeque;

use ranpace_cc::Algorithm;
use ranpace_phy::Direction;
use ranpace_rnis::{CellGrant, CellInfo, ControlChannel, Event, EventKind, SI_RNTI, SlotReport};
use ranpace_scenario::{Content, FeedSpec, Hop, Scenario, Transport};
use ranpace_units::Time;

use crate::random::{mix, unit};

/// The messages on their way to the receivers that decode them.
#[derive(Debug)]
pub(crate) struct ControlChannels {
    spec: FeedSpec,
    seed: u64,
    /// By number of the user.
    users: Vec<UserState>,
    /// Flows whose receivers decode, with the number of their user.
    readers: Vec<(u32, u32)>,
    /// Slots of each cell so far.
    counts: Vec<u64>,
    /// In order of time; the messages of all of them, in the same order.
    slots: VecDeque<Slot>,
    grants: VecDeque<CellGrant>,
}

#[derive(Clone, Debug, Default)]
struct UserState {
    /// The cell that serves it, and its C-RNTI there once it is known.
    cell: Option<u16>,
    rnti: Option<u16>,
    /// MCS of its last grant.
    mcs: u8,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    due: Time,
    delivery: SlotDelivery,
    grants: usize,
}

/// A slot of a control channel for the receiver of a flow, without its messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotDelivery {
    pub flow: u32,
    measured_at: Time,
    cell: CellInfo,
    own: Option<u16>,
    available: u32,
}

impl SlotDelivery {
    /// The slot with its messages.
    pub fn with<'a>(&'a self, grants: &'a [CellGrant]) -> ControlChannel<'a> {
        let Self { measured_at, ref cell, own, available, .. } = *self;
        ControlChannel { measured_at, cell, own, available, grants }
    }
}

impl ControlChannels {
    /// As configured by the scenario, with subscriptions for the flows that need them.
    pub fn new(scenario: &Scenario, seed: u64) -> Self {
        let users = scenario
            .users
            .iter()
            .map(|user| UserState { cell: u16::try_from(user.cell).ok(), ..UserState::default() });
        let readers = (0..).zip(&scenario.flows).filter_map(|(index, flow)| match flow.path.last() {
            Some(&Hop::Radio { user, direction: Direction::Downlink }) if wants_cell(&flow.transport) => {
                Some((user, index))
            }
            _ => None,
        });
        Self {
            spec: scenario.modem,
            seed,
            users: users.collect(),
            readers: readers.collect(),
            counts: vec![0; scenario.cells.len()],
            slots: VecDeque::new(),
            grants: VecDeque::new(),
        }
    }

    /// Returns whether anybody decodes.
    pub fn is_read(&self) -> bool {
        !self.readers.is_empty()
    }

    /// A cell's slot has ended.
    pub fn on_report(&mut self, report: &SlotReport<'_>) {
        if !self.is_read() {
            return;
        }
        let number = report.cell.cell;
        let Some(count) = self.counts.get_mut(usize::from(number)) else { return };
        let slot = *count;
        *count += 1;
        for row in report.users {
            let Some(user) = self.users.get_mut(row.user as usize) else { continue };
            (user.cell, user.rnti) = (Some(number), Some(row.rnti));
            if let Some(grant) = row.link.downlink.grant {
                user.mcs = grant.mcs;
            }
        }
        if !slot.is_multiple_of(self.spec.every.into()) || !self.spec.is_on(report.time) {
            return;
        }
        for reader in 0..self.readers.len() {
            let (user, flow) = self.readers[reader];
            if let Some(state) = self.users.get(user as usize)
                && state.cell == Some(number)
            {
                let (own, mcs) = (state.rnti, state.mcs);
                self.send(report, flow, own, mcs, slot);
            }
        }
    }

    /// Sends a slot's messages to the receiver of a flow.
    fn send(&mut self, report: &SlotReport<'_>, flow: u32, own: Option<u16>, mcs: u8, count: u64) {
        let draw = mix(mix(self.seed, flow.into()), count);
        let first = self.grants.len();
        let available = available(report);
        match self.spec.content {
            Content::Measured => self.grants.extend(messages(report)),
            content => {
                invent(content, report.cell, (available, mcs, own, count), draw, &mut |grant| {
                    self.grants.push_back(grant);
                });
            }
        }
        if self.spec.error > 0.0 {
            let [bits, prbs] = [0, 1].map(|part| 1.0 + self.spec.error * (2.0 * unit(mix(draw, part)) - 1.0));
            for grant in self.grants.range_mut(first..) {
                grant.bits = libm::round(f64::from(grant.bits) * bits) as u32;
                let most = f64::from(available).max(f64::from(grant.prb_symbols));
                grant.prb_symbols = (libm::round(f64::from(grant.prb_symbols) * prbs).min(most)) as u32;
            }
        }
        self.slots.push_back(Slot {
            due: report.time + self.spec.delay,
            delivery: SlotDelivery { flow, measured_at: report.time, cell: *report.cell, own, available },
            grants: self.grants.len() - first,
        });
    }

    /// Something happened to a user.
    pub fn on_event(&mut self, event: &Event) {
        let Some(user) = self.users.get_mut(event.user as usize) else { return };
        match event.kind {
            EventKind::Attached => (user.cell, user.rnti) = (Some(event.cell), None),
            EventKind::Detached => (user.cell, user.rnti) = (None, None),
            _ => {}
        }
    }

    /// When [`Self::next`] will return something.
    pub fn next_due(&self) -> Time {
        self.slots.front().map_or(Time::MAX, |slot| slot.due)
    }

    /// The next slot that has arrived by now; `grants` then has its messages alone.
    pub fn next(&mut self, now: Time, grants: &mut Vec<CellGrant>) -> Option<SlotDelivery> {
        if self.slots.front()?.due > now {
            return None;
        }
        let slot = self.slots.pop_front()?;
        grants.clear();
        grants.extend(self.grants.drain(..slot.grants));
        Some(slot.delivery)
    }
}

/// PRBs times symbols of a slot for downlink data; where both directions share the symbols, without what the uplink takes.
fn available(report: &SlotReport<'_>) -> u32 {
    let of = |symbols: u8| u32::from(report.cell.prbs) * u32::from(symbols);
    let uplink =
        if report.cell.shared { report.used_prbs.uplink * f32::from(report.symbols.uplink) } else { 0.0 };
    of(report.symbols.downlink).saturating_sub(uplink as u32)
}

/// The messages of a slot: a grant for each user, and one for system information if there is some.
fn messages(report: &SlotReport<'_>) -> impl Iterator<Item = CellGrant> {
    let of_users = report.users.iter().filter_map(|row| {
        let grant = row.link.downlink.grant?;
        Some(CellGrant {
            rnti: row.rnti,
            prb_symbols: u32::from(grant.prbs) * u32::from(grant.symbols),
            bits: grant.block.bits(),
            again: grant.again,
        })
    });
    let all = report.used_prbs.downlink * f32::from(report.symbols.downlink);
    let users: u32 = of_users.clone().map(|grant| grant.prb_symbols).sum();
    let system = (libm::roundf(all) as u32).saturating_sub(users);
    // Its blocks carry nobody's data.
    let system = CellGrant { rnti: SI_RNTI, prb_symbols: system, bits: 0, again: false };
    of_users.chain((system.prb_symbols > 0).then_some(system))
}

/// Users of a cell that is reported as full, and how many of them have a grant in a slot. Ours.
const CROWD: u64 = 100;
const AT_ONCE: u32 = 5;
/// First number that is drawn for invented messages; those before are for errors.
const INVENTED: u64 = 8;
/// Number of the MCS values common to all tables (TS 38.214, table 5.1.3.1-2): 0 to 27.
const MCS_VALUES: f64 = 28.0;
/// First C-RNTI of users that do not exist.
const FIRST_STRANGER: u16 = 0x8000;

/// Messages regardless of the cell: `full` grants one PRB to this user and the others to [`AT_ONCE`] of a hundred, by turns; `empty`
/// grants nothing; `random` draws this user's part, its MCS, and another user with a part of the rest.
fn invent(
    content: Content,
    cell: &CellInfo,
    (available, mcs, own, slot): (u32, u8, Option<u16>, u64),
    draw: u64,
    add: &mut dyn FnMut(CellGrant),
) {
    let per_prb = available / u32::from(cell.prbs.max(1));
    let grant = |rnti: u16, mcs: u8, prb_symbols: u32| {
        let prbs = f64::from(prb_symbols) / f64::from(per_prb.max(1));
        let bits = cell.block(Direction::Downlink, mcs, cell.layers, prbs).bits();
        CellGrant { rnti, prb_symbols, bits, again: false }
    };
    let stranger = |number: u64| FIRST_STRANGER + (number % CROWD) as u16;
    if available == 0 {
        return;
    }
    match content {
        Content::Measured | Content::Empty => {}
        Content::Full => {
            let each = available.saturating_sub(per_prb) / AT_ONCE;
            if let Some(own) = own {
                add(grant(own, mcs, per_prb));
            }
            (0..AT_ONCE).for_each(|turn| {
                add(grant(stranger(slot * u64::from(AT_ONCE) + u64::from(turn)), mcs, each));
            });
        }
        Content::Random => {
            let [part, rest, user, mcs] = [0, 1, 2, 3].map(|part| unit(mix(draw, INVENTED + part)));
            let mcs = (mcs * MCS_VALUES) as u8;
            let part = (part * f64::from(available)) as u32;
            let rest = (rest * f64::from(available - part)) as u32;
            if let Some(own) = own {
                add(grant(own, mcs, part));
            }
            add(grant(stranger((user * CROWD as f64) as u64), mcs, rest));
        }
    }
}

/// Returns whether the receiver's half of a transport decodes the control channel.
fn wants_cell(transport: &Transport) -> bool {
    let algorithm: Option<&Algorithm> = match transport {
        Transport::Tcp { algorithm, .. } | Transport::Datagram { algorithm, .. } => Some(algorithm),
        Transport::Udp { estimator, .. } => estimator.as_ref(),
        // Its client-driven controls have no receiver in the simulator.
        Transport::Quic { .. } => None,
    };
    algorithm.and_then(Algorithm::receiver).is_some_and(|half| half.wants_cell())
}
