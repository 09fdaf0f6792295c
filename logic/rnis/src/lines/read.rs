//! Reads lines: checks their values, and keeps what earlier lines described.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::collections::{BTreeMap, BTreeSet};

use ranpace_phy::{Both, Cqi, Direction, QamTable, TransportBlock};
use ranpace_units::{Bytes, Span, Time};

use super::bounds::{LineError, at_most, text, user_number, within, wrong};
use super::form::{
    BearerLine, BearerRow, CellLine, EventLine, KindName, Line, LinkLine, RowLine, SignalLine, SlotLine,
    StreamLine, TechnologyName, UserLine,
};
use super::{CELLS, LONGEST, LineClock, VERSION};
use crate::identity::{Ecgi, IdType};
use crate::update::{Bearer, BearerRates, Cell, Signal, Slot, Strength, Update, User};
use crate::{BearerReport, CellInfo, Event, EventKind, Grant, LinkReport, Technology, UserReport};

/// Most identifiers of a user, and neighbours in a report of signals. Ours; TS 36.331 has 8 neighbours (maxCellReport).
const MOST: usize = 32;
/// Largest queue in bytes. Ours: sums of all users stay far from overflowing.
const QUEUE: u64 = 1 << 40;
/// Largest counter, in blocks, bits, or PRBs times symbols. Ours, likewise: 100 Gbit/s for eight days.
const COUNTER: u64 = 1 << 56;
/// A slot number that is further ahead than this is taken for a new numbering. Ours.
const AHEAD: u64 = 1 << 32;
/// Longest TTI, and longest period of a slow source. Ours.
const SLOT: u64 = 60_000_000_000;

impl LineClock {
    fn by_name(name: &str) -> Option<Self> {
        [Self::Day, Self::Monotonic, Self::Run, Self::Arrival].into_iter().find(|clock| clock.name() == name)
    }
}

fn both<T>((downlink, uplink): (T, T)) -> Both<T> {
    Both { downlink, uplink }
}

/// Counters of a direction that its rows do not have.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    blocks: u64,
    retransmissions: u64,
    bits: u64,
    prb_symbols: u64,
}

/// A cell that was described, and the numbering of its slots.
#[derive(Clone, Copy, Debug)]
struct KnownCell {
    info: CellInfo,
    /// Whether this stream described it.
    present: bool,
    /// Added to the stream's slot numbers.
    base: u64,
    /// The next number, if there was a slot.
    next: u64,
}

/// Reads the lines of one stream after the other.
#[derive(Debug, Default)]
pub struct Reader {
    clock: LineClock,
    cells: BTreeMap<u16, KnownCell>,
    users: BTreeSet<u32>,
    counted: BTreeMap<u32, Both<Counted>>,
    missed: u64,
}

/// Converts a time of a stream into that of the reader; `None` for a line without time, which counts as now.
type Clock<'a> = &'a mut dyn FnMut(LineClock, Option<u64>) -> Time;

impl Reader {
    /// The clock of this stream.
    pub const fn clock(&self) -> LineClock {
        self.clock
    }

    /// Lines that writers have left out so far.
    pub const fn missed(&self) -> u64 {
        self.missed
    }

    /// Another stream begins: it describes its cells and users itself.
    pub fn restart(&mut self) {
        self.clock = LineClock::default();
        self.users.clear();
        self.counted.clear();
        self.cells.values_mut().for_each(|cell| cell.present = false);
    }

    /// Reads a line, with or without its end, and passes on what it says; nothing for an empty or unknown line. `clock` is called
    /// once at most.
    ///
    /// # Errors
    ///
    /// If the line is not used, and why.
    pub fn read(
        &mut self,
        line: &[u8],
        clock: Clock<'_>,
        updates: &mut dyn FnMut(Update),
    ) -> Result<(), LineError> {
        if line.len() > LONGEST {
            return Err(LineError::TooLong { found: line.len() });
        }
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let line = serde_json::from_slice(line).map_err(|error| LineError::Form(error.to_string()))?;
        let mut time = |ns: Option<u64>| clock(self.clock, ns);
        match line {
            Line::Stream(line) => self.on_stream(&line)?,
            Line::Cell(line) => updates(Update::Cell(self.cell(*line)?)),
            Line::User(line) => {
                let user = user(line)?;
                self.users.insert(user.user);
                updates(Update::User(user));
            }
            Line::Slot(line) => {
                let at = time(line.time_ns);
                let slot = self.slot(line, at)?;
                slot.users.iter().for_each(|row| self.introduce(row.user, updates));
                updates(Update::Slot(slot));
            }
            Line::Event(line) => {
                let at = time(line.time_ns);
                let event = self.event(&line, at)?;
                self.introduce(event.user, updates);
                updates(Update::Event(event));
            }
            Line::Bearer(line) => {
                let at = time(line.time_ns);
                let bearer = self.bearer(&line, at)?;
                self.introduce(bearer.user, updates);
                updates(Update::Bearer(bearer));
            }
            Line::Signal(line) => {
                let at = time(line.time_ns);
                let signal = self.signal(*line, at)?;
                self.introduce(signal.user, updates);
                updates(Update::Signal(signal));
            }
            Line::TimingAdvance(line) => {
                let at = time(line.time_ns);
                self.known(line.cell)?;
                let user = user_number(line.user)?;
                let round_trip = at_most("round_trip_ns", line.round_trip_ns, 1_000_000_000)?;
                self.introduce(user, updates);
                let (cell, round_trip) = (line.cell, Span::from_nanos(round_trip));
                updates(Update::TimingAdvance { user, cell, time: at, round_trip });
            }
            #[cfg(feature = "etsi")]
            Line::Notification(notification) => {
                let ids = notification.user().unwrap_or_default();
                if ids.is_empty() {
                    return wrong("associateId", "missing", "the identifiers of the user that it is about");
                }
                at_most("associateId", ids.len(), MOST)?;
                updates(Update::Notification(notification));
            }
            Line::Missed(line) => self.missed = self.missed.saturating_add(line.lines),
            Line::Other => {}
        }
        Ok(())
    }

    /// A user that appears without having been described has no name and no identifiers.
    fn introduce(&mut self, user: u32, updates: &mut dyn FnMut(Update)) {
        if self.users.insert(user) {
            updates(Update::User(User { user, name: String::new(), ids: Vec::new() }));
        }
    }

    fn known(&self, cell: u16) -> Result<&KnownCell, LineError> {
        self.cells.get(&cell).filter(|known| known.present).ok_or(LineError::Cell { cell })
    }

    fn on_stream(&mut self, line: &StreamLine) -> Result<(), LineError> {
        if line.version != VERSION {
            return Err(LineError::Version { found: line.version });
        }
        let name = line.clock.as_deref().unwrap_or(LineClock::Day.name());
        let Some(clock) = LineClock::by_name(name) else {
            let known = "\"day\", \"monotonic\", \"run\" or \"arrival\"";
            return wrong("clock", format_args!("{} bytes", name.len()), known);
        };
        self.restart();
        self.clock = clock;
        Ok(())
    }

    fn cell(&mut self, line: CellLine) -> Result<Cell, LineError> {
        let cell = at_most("cell", line.cell, CELLS - 1)?;
        ecgi(&line.ecgi)?;
        let (technology, is_lte) = match line.technology {
            TechnologyName::Lte => (Technology::Lte, true),
            TechnologyName::Nr => (Technology::Nr { qam256: false }, false),
            TechnologyName::Nr256 => (Technology::Nr { qam256: true }, false),
            TechnologyName::Mmwave => (Technology::Mmwave, false),
        };
        // TS 36.104, table 5.6-1, and TS 38.101-1, table 5.3.2-1, have at most 110 and 275 without aggregation.
        if !(1..=3_300).contains(&line.prbs) {
            return wrong("prbs", line.prbs, "1 to 3300");
        }
        let spacing_hz = line.spacing_hz.unwrap_or(15_000);
        if !(1_000..=100_000_000).contains(&spacing_hz) {
            return wrong("spacing_hz", spacing_hz, "1000 to 100000000");
        }
        // A slot of NR has 14 symbols: 1 ms at 15 kHz; TS 38.211, 4.3.2.
        let slot_ns = line.slot_ns.unwrap_or(1_000_000 * 15_000 / u64::from(spacing_hz).max(1));
        if !(1_000..=SLOT).contains(&slot_ns) {
            return wrong("slot_ns", slot_ns, format_args!("1000 to {SLOT}"));
        }
        let symbols = line.symbols.unwrap_or(14);
        if symbols == 0 {
            return wrong("symbols", 0, "1 to 255");
        }
        let fdd = line.fdd.unwrap_or(true);
        let share = both(line.share.unwrap_or((1.0, 1.0)));
        let usable = both(line.usable.unwrap_or((1.0, 1.0)));
        let data_symbols = both(line.data_symbols.unwrap_or((symbols, symbols)));
        for direction in [Direction::Downlink, Direction::Uplink] {
            within("share", share[direction], 0.0, 1.0)?;
            within("usable", usable[direction], 0.0, 1.0)?;
            at_most("data_symbols", data_symbols[direction], symbols)?;
        }
        let layers = line.layers.unwrap_or(1);
        if !(1..=8).contains(&layers) {
            return wrong("layers", layers, "1 to 8");
        }
        // TS 36.213, clause 7; TS 38.214, clause 5.1.
        let processes = if is_lte { 8 } else { 16 };
        let info = CellInfo {
            cell,
            technology,
            prbs: line.prbs,
            spacing_hz,
            bandwidth_hz: line.bandwidth_hz.unwrap_or(u64::from(line.prbs) * 12 * u64::from(spacing_hz)),
            slot: Span::from_nanos(slot_ns),
            symbols,
            fdd,
            share,
            data_symbols,
            shared: line.shared.unwrap_or(false),
            by_symbols: line.by_symbols.unwrap_or(false),
            usable,
            // One PRB and slot have 12 x 14 elements.
            overhead: at_most("overhead", line.overhead.unwrap_or(0), 168)?,
            layers,
            harq_processes: both(line.harq_processes.unwrap_or((processes, processes))),
        };
        let known = self.cells.entry(cell).or_insert(KnownCell { info, present: true, base: 0, next: 0 });
        (known.info, known.present) = (info, true);
        Ok(Cell { info, ecgi: line.ecgi })
    }

    fn slot(&mut self, line: SlotLine, time: Time) -> Result<Slot, LineError> {
        let known = *self.known(line.cell)?;
        let info = known.info;
        let symbols = line.symbols.map_or(info.data_symbols, both);
        for direction in [Direction::Downlink, Direction::Uplink] {
            at_most("symbols", symbols[direction], info.symbols)?;
        }
        let mut users = Vec::with_capacity(line.users.len());
        let mut rows = line.users;
        if !rows.is_sorted_by_key(|row| row.user) {
            rows.sort_by_key(|row| row.user);
        }
        let mut granted = Both::<f64>::default();
        let mut changed = Vec::new();
        for row in rows {
            if users.last().is_some_and(|last: &UserReport| last.user == row.user) {
                return Err(LineError::Twice { user: row.user });
            }
            let lacks = row.downlink.lacks_counters() || row.uplink.lacks_counters();
            let mut counted = if lacks {
                self.counted.get(&row.user).copied().unwrap_or_default()
            } else {
                Both::default()
            };
            let row = user_row(row, time, &info, symbols, &mut counted)?;
            if lacks {
                changed.push((row.user, counted));
            }
            for direction in [Direction::Downlink, Direction::Uplink] {
                if let Some(grant) = row.link[direction].grant {
                    let whole = f64::from(symbols[direction].max(1));
                    granted[direction] += f64::from(grant.prbs) * f64::from(grant.symbols) / whole;
                }
            }
            users.push(row);
        }
        let used_prbs = match line.used_prbs {
            Some(used) => {
                let used = both(used);
                for direction in [Direction::Downlink, Direction::Uplink] {
                    // A mean may be off by a rounding error.
                    within("used_prbs", used[direction].into(), 0.0, f64::from(info.prbs) + 1.0)?;
                }
                used
            }
            None => granted.map(|granted| granted.min(info.prbs.into()) as f32),
        };
        let waiting = |direction: Direction| {
            let active = users.iter().filter(|row| !row.link[direction].queue.is_zero()).count();
            u16::try_from(active).unwrap_or(u16::MAX)
        };
        let active_users = line.active_users.map_or_else(|| Both::of(waiting), both);
        let mut bearers = Vec::with_capacity(line.bearers.len());
        for row in line.bearers {
            bearers.push(bearer_row(&row)?);
        }
        if !bearers.is_sorted_by_key(|row| row.user) {
            bearers.sort_by_key(|row| row.user);
        }
        self.counted.extend(changed);
        let slot = self.number(line.cell, line.slot);
        let full = line.full;
        Ok(Slot { cell: info, slot, time, symbols, used_prbs, active_users, users, bearers, full })
    }

    /// Slot numbers increase, even if a base station begins anew: consumers publish when a number has come.
    fn number(&mut self, cell: u16, slot: u64) -> u64 {
        let Some(known) = self.cells.get_mut(&cell) else { return slot };
        let number = slot.wrapping_add(known.base);
        let is_first = known.next == 0 && slot < AHEAD;
        let number = if is_first || (known.next..known.next.saturating_add(AHEAD)).contains(&number) {
            number
        } else {
            known.base = known.next.wrapping_sub(slot);
            known.next
        };
        known.next = number.saturating_add(1);
        number
    }

    fn event(&self, line: &EventLine, time: Time) -> Result<Event, LineError> {
        self.known(line.cell)?;
        let user = user_number(line.user)?;
        let missing = |what| LineError::Form(format!("missing field `{what}` of this kind of event"));
        let bearer = || line.bearer.ok_or_else(|| missing("bearer"));
        let other = |cell: Option<u16>, what| {
            let cell = cell.ok_or_else(|| missing(what))?;
            self.known(cell).map(|_| cell)
        };
        let kind = match line.kind {
            KindName::Attached => EventKind::Attached,
            KindName::Detached => EventKind::Detached,
            KindName::BearerSetUp => EventKind::BearerSetUp { bearer: bearer()? },
            KindName::BearerFailed => EventKind::BearerFailed {
                bearer: bearer()?,
                direction: line.direction.ok_or_else(|| missing("direction"))?.direction(),
            },
            KindName::HandoverBegun => EventKind::HandoverBegun { to: other(line.to, "to")? },
            KindName::HandoverCompleted => EventKind::HandoverCompleted { from: other(line.from, "from")? },
        };
        Ok(Event { time, cell: line.cell, user, kind })
    }

    fn bearer(&self, line: &BearerLine, time: Time) -> Result<Bearer, LineError> {
        self.known(line.cell)?;
        let user = user_number(line.user)?;
        // TS 24.301, 9.9.4.3: 255 is reserved; 0 asks the network to choose.
        if !(1..=254).contains(&line.qci) {
            return wrong("qci", line.qci, "1 to 254");
        }
        let rates = match (line.guaranteed, line.maximum) {
            (None, None) => None,
            (guaranteed, maximum) => {
                let [guaranteed, maximum] =
                    [guaranteed, maximum].map(|rates| both(rates.unwrap_or_default()));
                Some(BearerRates { guaranteed, maximum })
            }
        };
        let Both { downlink, uplink } = rates.map_or(Both::default(), |rates| rates.maximum);
        at_most("maximum", downlink.max(uplink), COUNTER)?;
        let Both { downlink, uplink } = rates.map_or(Both::default(), |rates| rates.guaranteed);
        at_most("guaranteed", downlink.max(uplink), COUNTER)?;
        let (cell, bearer, qci, present) = (line.cell, line.bearer, line.qci, line.present);
        Ok(Bearer { user, cell, bearer, time, qci, rates, present })
    }

    fn signal(&self, line: SignalLine, time: Time) -> Result<Signal, LineError> {
        self.known(line.cell)?;
        let user = user_number(line.user)?;
        at_most("neighbours", line.neighbours.len(), MOST)?;
        let serving = strength(line.rsrp_dbm, line.rsrq_db, line.sinr_db)?;
        let neighbours = line.neighbours.into_iter().map(|neighbour| {
            ecgi(&neighbour.ecgi)?;
            let strength = strength(neighbour.rsrp_dbm, neighbour.rsrq_db, neighbour.sinr_db)?;
            Ok((neighbour.ecgi, strength))
        });
        let neighbours = neighbours.collect::<Result<_, LineError>>()?;
        Ok(Signal { user, cell: line.cell, time, serving, neighbours })
    }
}

fn ecgi(ecgi: &Ecgi) -> Result<(), LineError> {
    let id = &ecgi.cell_id;
    if !(1..=16).contains(&id.len()) || !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return wrong("ecgi.cellId", format_args!("{} bytes", id.len()), "1 to 16 letters and digits");
    }
    // TS 23.003, 2.2: three digits, and two or three.
    let digits = |text: &str, lengths: core::ops::RangeInclusive<usize>| {
        lengths.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    if !digits(&ecgi.plmn.mcc, 3..=3) || !digits(&ecgi.plmn.mnc, 2..=3) {
        return wrong("ecgi.plmn", "something else", "an mcc of three digits and an mnc of two or three");
    }
    Ok(())
}

fn user(line: UserLine) -> Result<User, LineError> {
    let user = user_number(line.user)?;
    text("name", &line.name)?;
    at_most("ids", line.ids.len(), MOST)?;
    for id in &line.ids {
        text("ids", &id.value)?;
        let is_right = match id.id_type {
            IdType::UeIpv4 => id.value.parse::<Ipv4Addr>().is_ok(),
            IdType::UeIpv6 => id.value.parse::<Ipv6Addr>().is_ok(),
            IdType::NatedIp => id.value.parse::<IpAddr>().is_ok(),
            IdType::GtpTeid => !id.value.is_empty(),
            IdType::Reserved => false,
        };
        if !is_right {
            return wrong(
                "ids",
                format_args!("{:?}", id.value),
                format_args!("an identifier of type {}", id.id_type as u8),
            );
        }
    }
    Ok(User { user, name: line.name, ids: line.ids })
}

fn strength(rsrp_dbm: f64, rsrq_db: f64, sinr_db: Option<f64>) -> Result<Strength, LineError> {
    within("rsrp_dbm", rsrp_dbm, -300.0, 100.0)?;
    within("rsrq_db", rsrq_db, -300.0, 100.0)?;
    sinr_db.map(|sinr| within("sinr_db", sinr, -300.0, 300.0)).transpose()?;
    Ok(Strength { rsrp_dbm, rsrq_db, sinr_db })
}

impl LinkLine {
    const fn lacks_counters(&self) -> bool {
        self.blocks.is_none()
            || self.retransmissions.is_none()
            || self.scheduled_bits.is_none()
            || self.scheduled_prb_symbols.is_none()
    }

    /// The report; `counted` counts what is granted, and fills in what the row lacks.
    fn report(self, info: &CellInfo, symbols: u8, counted: &mut Counted) -> Result<LinkReport, LineError> {
        let grant = match &self.grant {
            Some(grant) => {
                let most_mcs = if info.technology == Technology::Mmwave { Cqi::MAX.get() } else { 31 };
                at_most("mcs", grant.mcs, most_mcs)?;
                at_most("prbs", grant.prbs, info.prbs)?;
                let symbols = at_most("symbols", grant.symbols.unwrap_or(symbols), info.symbols)?;
                let Ok(block) = TransportBlock::from_bits(grant.tbs_bits) else {
                    return wrong("tbs_bits", grant.tbs_bits, "a multiple of 8");
                };
                let padding = at_most("padding", grant.padding, block.bytes().get())?;
                Some(Grant {
                    mcs: grant.mcs,
                    prbs: grant.prbs,
                    symbols,
                    block,
                    padding: Bytes::new(padding),
                    process: grant.process,
                    again: grant.retransmission,
                })
            }
            None => None,
        };
        if let Some(grant) = grant {
            let add = |count: &mut u64, more: u64| *count = count.saturating_add(more).min(COUNTER);
            add(&mut counted.prb_symbols, u64::from(grant.prbs) * u64::from(grant.symbols));
            if grant.again {
                add(&mut counted.retransmissions, 1);
            } else {
                add(&mut counted.blocks, 1);
                add(&mut counted.bits, grant.block.bits().into());
            }
        }
        let counter = |what, given: Option<u64>, counted| at_most(what, given.unwrap_or(counted), COUNTER);
        Ok(LinkReport {
            grant,
            queue: Bytes::new(at_most("queue", self.queue, QUEUE)?),
            head_of_line: Span::from_nanos(self.head_of_line_ns),
            blocks: counter("blocks", self.blocks, counted.blocks)?,
            retransmissions: counter("retransmissions", self.retransmissions, counted.retransmissions)?,
            lost: counter("lost", self.lost, 0)?,
            scheduled_bits: counter("scheduled_bits", self.scheduled_bits, counted.bits)?,
            scheduled_prb_symbols: counter(
                "scheduled_prb_symbols",
                self.scheduled_prb_symbols,
                counted.prb_symbols,
            )?,
        })
    }
}

fn user_row(
    row: RowLine,
    time: Time,
    info: &CellInfo,
    symbols: Both<u8>,
    counted: &mut Both<Counted>,
) -> Result<UserReport, LineError> {
    let user = user_number(row.user)?;
    let Some(cqi) = Cqi::new(row.cqi) else { return wrong("cqi", row.cqi, "0 to 15") };
    let capacity = match row.capacity {
        Some(capacity) => within("capacity", capacity.into(), 0.0, f64::from(f32::MAX))? as f32,
        // What the CQI recommends is within reach of the channel; TS 36.213, table 7.2.3-1, and TS 38.214, 5.2.2.1.
        None => {
            let is_256 = info.technology == Technology::Nr { qam256: true };
            let table = if is_256 { QamTable::Qam256 } else { QamTable::Qam64 };
            cqi.efficiency(table).as_f64() as f32
        }
    };
    let cqi_time = Time::from_nanos(time.as_nanos().saturating_sub(row.cqi_age_ns));
    let link = Both {
        downlink: row.downlink.report(info, symbols.downlink, &mut counted.downlink)?,
        uplink: row.uplink.report(info, symbols.uplink, &mut counted.uplink)?,
    };
    Ok(UserReport { user, rnti: row.rnti, cqi, cqi_time, capacity, link })
}

fn bearer_row(row: &BearerRow) -> Result<BearerReport, LineError> {
    Ok(BearerReport {
        user: user_number(row.user)?,
        bearer: row.bearer,
        direction: row.direction.direction(),
        queue: Bytes::new(at_most("queue", row.queue, QUEUE)?),
        head_of_line: Span::from_nanos(row.head_of_line_ns),
        buffer: row.buffer.map(|buffer| at_most("buffer", buffer, QUEUE).map(Bytes::new)).transpose()?,
    })
}
