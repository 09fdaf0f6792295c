//! Writes lines.

use ranpace_phy::{Both, Direction};
use ranpace_units::Time;
use serde::Serialize;

use super::{LineClock, VERSION};
#[cfg(feature = "etsi")]
use crate::etsi::Notification;
use crate::identity::{AssociateId, Ecgi};
use crate::update::{Bearer, BearerRates, Cell, Signal, Strength, Update, User};
use crate::{CellInfo, Event, EventKind, LinkReport, SlotReport, Technology};

/// Writes updates as lines into a buffer.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    /// Added to every time, in nanoseconds.
    offset: u64,
}

/// The name of a technology in lines.
pub(super) const fn technology_name(technology: Technology) -> &'static str {
    match technology {
        Technology::Lte => "lte",
        Technology::Nr { qam256: false } => "nr",
        Technology::Nr { qam256: true } => "nr256",
        Technology::Mmwave => "mmwave",
    }
}

/// The name of a direction in lines.
pub(super) const fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Downlink => "downlink",
        Direction::Uplink => "uplink",
    }
}

fn pair<T>(both: Both<T>) -> (T, T) {
    (both.downlink, both.uplink)
}

#[derive(Serialize)]
struct StreamLine {
    version: u32,
    clock: &'static str,
}

#[derive(Serialize)]
struct CellLine<'a> {
    cell: u16,
    ecgi: &'a Ecgi,
    technology: &'static str,
    prbs: u16,
    spacing_hz: u32,
    bandwidth_hz: u64,
    slot_ns: u64,
    symbols: u8,
    fdd: bool,
    share: (f64, f64),
    data_symbols: (u8, u8),
    shared: bool,
    by_symbols: bool,
    usable: (f64, f64),
    overhead: u8,
    layers: u8,
    harq_processes: (u8, u8),
}

#[derive(Serialize)]
struct UserLine<'a> {
    user: u32,
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    ids: &'a [AssociateId],
}

/// Members in the order of the documentation; see `Link` and `Row` of the reader.
type GrantRow = (u8, u16, u32, u8, u8, bool, u64);
type LinkRow = (u64, u64, Option<GrantRow>, u64, u64, u64, u64, u64);

#[derive(Serialize)]
struct SlotLine<'a> {
    cell: u16,
    slot: u64,
    time_ns: u64,
    symbols: (u8, u8),
    used_prbs: (f32, f32),
    active_users: (u16, u16),
    full: bool,
    users: Rows<'a>,
    bearers: BearerRows<'a>,
}

struct Rows<'a>(&'a SlotReport<'a>);

impl Serialize for Rows<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let link = |link: &LinkReport| -> LinkRow {
            let grant = link.grant.map(|grant| {
                let bits = grant.block.bits();
                let padding = grant.padding.get();
                (grant.mcs, grant.prbs, bits, grant.symbols, grant.process, grant.again, padding)
            });
            let LinkReport { blocks, retransmissions, lost, scheduled_bits, scheduled_prb_symbols, .. } =
                *link;
            let (queue, head_of_line) = (link.queue.get(), link.head_of_line.as_nanos());
            (queue, head_of_line, grant, blocks, retransmissions, lost, scheduled_bits, scheduled_prb_symbols)
        };
        serializer.collect_seq(self.0.users.iter().map(|row| {
            let age = self.0.time.since(row.cqi_time).as_nanos();
            // An infinite capacity would be written as null.
            let capacity = if row.capacity.is_finite() { row.capacity } else { f32::MAX };
            let links = (link(&row.link.downlink), link(&row.link.uplink));
            (row.user, row.rnti, row.cqi.get(), age, capacity, links.0, links.1)
        }))
    }
}

struct BearerRows<'a>(&'a SlotReport<'a>);

impl Serialize for BearerRows<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.bearers.iter().map(|row| {
            let way = direction_name(row.direction);
            let buffer = row.buffer.map(|buffer| buffer.get());
            (row.user, row.bearer, way, row.queue.get(), row.head_of_line.as_nanos(), buffer)
        }))
    }
}

#[derive(Serialize)]
struct EventLine {
    cell: u16,
    user: u32,
    time_ns: u64,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    bearer: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    direction: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<u16>,
}

#[derive(Serialize)]
struct BearerLine {
    cell: u16,
    user: u32,
    bearer: u8,
    time_ns: u64,
    qci: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    guaranteed: Option<(u64, u64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    maximum: Option<(u64, u64)>,
    present: bool,
}

#[derive(Serialize)]
struct NeighbourLine<'a> {
    ecgi: &'a Ecgi,
    rsrp_dbm: f64,
    rsrq_db: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    sinr_db: Option<f64>,
}

#[derive(Serialize)]
struct SignalLine<'a> {
    cell: u16,
    user: u32,
    time_ns: u64,
    rsrp_dbm: f64,
    rsrq_db: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    sinr_db: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    neighbours: Vec<NeighbourLine<'a>>,
}

#[derive(Serialize)]
struct AdvanceLine {
    cell: u16,
    user: u32,
    time_ns: u64,
    round_trip_ns: u64,
}

#[derive(Serialize)]
struct MissedLine {
    lines: u64,
}

/// A line, named by its only member.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Line<'a> {
    Stream(StreamLine),
    Cell(CellLine<'a>),
    User(UserLine<'a>),
    Slot(SlotLine<'a>),
    Event(EventLine),
    Bearer(BearerLine),
    Signal(SignalLine<'a>),
    TimingAdvance(AdvanceLine),
    #[cfg(feature = "etsi")]
    Notification(&'a Notification),
    Missed(MissedLine),
}

impl Line<'_> {
    fn write(&self, into: &mut Vec<u8>) {
        // Writing to memory fails only for maps whose keys are no text, and there are none.
        if serde_json::to_writer(&mut *into, self).is_ok() {
            into.push(b'\n');
        }
    }
}

impl Writer {
    /// A writer that adds `offset` to every time: the stream's time of the updates' time zero.
    pub const fn new(offset: u64) -> Self {
        Self { offset }
    }

    fn time(&self, time: Time) -> u64 {
        time.as_nanos().saturating_add(self.offset)
    }

    /// The first line of a stream.
    pub fn stream(&self, clock: LineClock, into: &mut Vec<u8>) {
        Line::Stream(StreamLine { version: VERSION, clock: clock.name() }).write(into);
    }

    /// Says that this many lines are left out here, because their reader was too slow.
    pub fn missed(&self, lines: u64, into: &mut Vec<u8>) {
        Line::Missed(MissedLine { lines }).write(into);
    }

    /// A slot.
    pub fn slot(&self, report: &SlotReport<'_>, into: &mut Vec<u8>) {
        Line::Slot(SlotLine {
            cell: report.cell.cell,
            slot: report.slot,
            time_ns: self.time(report.time),
            symbols: pair(report.symbols),
            used_prbs: pair(report.used_prbs),
            active_users: pair(report.active_users),
            full: report.full,
            users: Rows(report),
            bearers: BearerRows(report),
        })
        .write(into);
    }

    /// Any update.
    pub fn update(&self, update: &Update, into: &mut Vec<u8>) {
        match update {
            Update::Cell(cell) => Self::cell(cell).write(into),
            Update::User(User { user, name, ids }) => {
                Line::User(UserLine { user: *user, name, ids }).write(into);
            }
            Update::Slot(slot) => self.slot(&slot.report(), into),
            Update::Event(event) => self.event(event).write(into),
            Update::Bearer(bearer) => self.bearer(bearer).write(into),
            Update::Signal(signal) => self.signal(signal).write(into),
            Update::TimingAdvance { user, cell, time, round_trip } => Line::TimingAdvance(AdvanceLine {
                cell: *cell,
                user: *user,
                time_ns: self.time(*time),
                round_trip_ns: round_trip.as_nanos(),
            })
            .write(into),
            #[cfg(feature = "etsi")]
            Update::Notification(notification) => Line::Notification(notification).write(into),
        }
    }

    fn cell(cell: &Cell) -> Line<'_> {
        let CellInfo { cell: number, technology, prbs, spacing_hz, bandwidth_hz, slot, symbols, fdd, .. } =
            cell.info;
        let CellInfo { share, data_symbols, shared, by_symbols, usable, overhead, layers, .. } = cell.info;
        Line::Cell(CellLine {
            cell: number,
            ecgi: &cell.ecgi,
            technology: technology_name(technology),
            prbs,
            spacing_hz,
            bandwidth_hz,
            slot_ns: slot.as_nanos(),
            symbols,
            fdd,
            share: pair(share),
            data_symbols: pair(data_symbols),
            shared,
            by_symbols,
            usable: pair(usable),
            overhead,
            layers,
            harq_processes: pair(cell.info.harq_processes),
        })
    }

    fn event(&self, event: &Event) -> Line<'static> {
        let Event { time, cell, user, kind } = *event;
        let time_ns = self.time(time);
        let line = |kind| EventLine {
            cell,
            user,
            time_ns,
            kind,
            bearer: None,
            direction: None,
            to: None,
            from: None,
        };
        Line::Event(match kind {
            EventKind::Attached => line("attached"),
            EventKind::Detached => line("detached"),
            EventKind::BearerSetUp { bearer } => EventLine { bearer: Some(bearer), ..line("bearer_set_up") },
            EventKind::BearerFailed { bearer, direction } => {
                let direction = Some(direction_name(direction));
                EventLine { bearer: Some(bearer), direction, ..line("bearer_failed") }
            }
            EventKind::HandoverBegun { to } => EventLine { to: Some(to), ..line("handover_begun") },
            EventKind::HandoverCompleted { from } => {
                EventLine { from: Some(from), ..line("handover_completed") }
            }
        })
    }

    fn bearer(&self, bearer: &Bearer) -> Line<'static> {
        let rates = |of: fn(&BearerRates) -> Both<u64>| bearer.rates.as_ref().map(|rates| pair(of(rates)));
        Line::Bearer(BearerLine {
            cell: bearer.cell,
            user: bearer.user,
            bearer: bearer.bearer,
            time_ns: self.time(bearer.time),
            qci: bearer.qci,
            guaranteed: rates(|rates| rates.guaranteed),
            maximum: rates(|rates| rates.maximum),
            present: bearer.present,
        })
    }

    fn signal<'a>(&self, signal: &'a Signal) -> Line<'a> {
        let Strength { rsrp_dbm, rsrq_db, sinr_db } = signal.serving;
        let neighbours = signal.neighbours.iter().map(|(ecgi, strength)| NeighbourLine {
            ecgi,
            rsrp_dbm: strength.rsrp_dbm,
            rsrq_db: strength.rsrq_db,
            sinr_db: strength.sinr_db,
        });
        Line::Signal(SignalLine {
            cell: signal.cell,
            user: signal.user,
            time_ns: self.time(signal.time),
            rsrp_dbm,
            rsrq_db,
            sinr_db,
            neighbours: neighbours.collect(),
        })
    }
}
