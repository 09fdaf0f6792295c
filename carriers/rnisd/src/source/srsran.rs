//! The metrics of srsRAN Project's gNB as JSON: over the WebSocket of its `remote_control` (releases from 2025 on), and over UDP
//! (before).
//!
//! Sources: srsRAN Project's manual, "Outputs, JSON Metrics"; the public repository `srsran/srsRAN_Project`,
//! `apps/helpers/metrics/json_generators/du_high/scheduler.cpp` and `apps/services/remote_control/remote_server.cpp` (state of
//! release 25.10) for the members and the subscription, and `apps/units/flexible_o_du/.../du_high_scheduler_cell_metrics_consumers.cpp`
//! (state of release 24.10) with `docker/metrics_server` for UDP. Nothing is copied from there.
//!
//! Metrics are sums and means over a period, 1 s unless configured otherwise, of a cell and each UE. What they do not contain, the
//! configuration says ([`SrsranCell`]): the cell's identity and its resources. From a report arriving at T with the period P follows
//! one slot per cell:
//!
//! - its time is T - P, when the measured period began, so that an age is never understated;
//! - `cqi`, `dl_mcs`, `ul_mcs`, `dl_bs` and `bsr` as they are; blocks and retransmissions count `nof_ok` and `nof_nok`;
//!   `scheduled_bits` grows by the rate times P;
//! - PRBs are *estimated* (ours; the metrics have none): the fewest that carry the rate at this MCS and rank in every slot of the
//!   direction, times the share of transmissions that were retransmitted. The grant of the slot is that mean.
//!
//! Not known, hence missing: users' addresses (only C-RNTIs), residual HARQ losses, head-of-line delays, bearers, reference signals.
//! `ta_ns` is not used: it is the measured deviation from the timing advance in use, not the advance itself.

use std::collections::BTreeMap;
use std::io;
use std::net::{TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ranpace_phy::{Both, Cqi, Direction, QamTable, TransportBlock};
use ranpace_rnis::lines::{LineClock, USERS};
use ranpace_rnis::{CellInfo, Event, EventKind, Grant, LinkReport, Technology, UserReport};
use ranpace_units::{Bytes, Rate, Span, Time};
use serde_json::Value;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{HandshakeError, Message, WebSocket};

use super::address::resolve;
use super::times::Times;
use super::{Cell, Counters, PAUSE, RETRY, Slot, Source, SourceError, Update, User, wait};

/// Period of the metrics unless configured otherwise (`metrics: periodicity: du_report_period`, in ms).
pub const PERIOD: Span = Span::SECOND;
/// Port of the metrics over UDP; the manual, "JSON Metrics".
pub const UDP_PORT: u16 = 55_555;
/// Port of `remote_control`.
pub const REMOTE_CONTROL_PORT: u16 = 8_001;
/// Longest message in bytes: some 700 bytes for a UE. Ours.
const LONGEST: usize = 1 << 20;
/// A UE that this many reports of its cell leave out has gone. Ours: over UDP, what says so may be lost.
const ABSENT: u8 = 3;
/// Time for the WebSocket to stand. Ours.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Largest rate in bit/s. Ours.
const FASTEST: f64 = 1e12;

/// A cell of the gNB, which its metrics name by its physical identity alone.
#[derive(Clone, Debug, PartialEq)]
pub struct SrsranCell {
    /// Physical cell identity.
    pub pci: u16,
    /// Its number, global identity and resources.
    pub cell: Cell,
}

/// How the metrics arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Transport {
    /// From `remote_control` at this host and port.
    WebSocket(String),
    /// At this address and port of ours.
    Udp(String),
}

/// The metrics of a gNB.
#[derive(Debug)]
pub struct Srsran {
    transport: Transport,
    cells: Vec<SrsranCell>,
    period: Span,
    counters: Arc<Counters>,
}

impl Srsran {
    /// From `remote_control` at HOST:PORT, with `enable_metrics_subscription`.
    pub fn web_socket(address: impl Into<String>, cells: Vec<SrsranCell>) -> Self {
        Self::of(Transport::WebSocket(address.into()), cells)
    }

    /// As datagrams to this address and port.
    pub fn udp(address: impl Into<String>, cells: Vec<SrsranCell>) -> Self {
        Self::of(Transport::Udp(address.into()), cells)
    }

    fn of(transport: Transport, cells: Vec<SrsranCell>) -> Self {
        Self { transport, cells, period: PERIOD, counters: Arc::default() }
    }

    /// With another period of the metrics.
    #[must_use]
    pub fn with_period(mut self, period: Span) -> Self {
        self.period = period;
        self
    }

    fn failed(&self, error: io::Error) -> SourceError {
        let name = match &self.transport {
            Transport::WebSocket(address) => format!("srsRAN at ws://{address}"),
            Transport::Udp(address) => format!("srsRAN to udp:{address}"),
        };
        SourceError::Io { name, error }
    }
}

/// Why a message was not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetricsError {
    /// It is not JSON.
    #[error("{0}")]
    Form(String),
    /// A member is missing or out of range.
    #[error("{what} is {found}; expected {expected}")]
    Value {
        /// The member.
        what: &'static str,
        /// Its value.
        found: String,
        /// Its range.
        expected: &'static str,
    },
    /// A cell that is not configured.
    #[error("a cell with pci {pci}; expected one of those configured: {known}")]
    Cell {
        /// Its physical identity.
        pci: u16,
        /// Those that are.
        known: String,
    },
    /// The gNB refuses a command.
    #[error("srsRAN answers {0:?}; is `remote_control: enable_metrics_subscription` on?")]
    Refused(String),
    /// There are more UEs than numbers.
    #[error("more than {USERS} UEs")]
    Crowd,
}

/// A number, also if it is written as text; `None` if it is missing, null or "n/a".
fn number(
    of: &Value,
    what: &'static str,
    range: (f64, f64),
    expected: &'static str,
) -> Result<Option<f64>, MetricsError> {
    let wrong = |found: String| MetricsError::Value { what, found, expected };
    let found = match of.get(what) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) if text == "n/a" => return Ok(None),
        Some(Value::String(text)) => text.parse().map_err(|_| wrong(text.chars().take(20).collect()))?,
        Some(Value::Number(found)) => found.as_f64().unwrap_or(f64::NAN),
        Some(_) => return Err(wrong("something else".to_owned())),
    };
    if (range.0..=range.1).contains(&found) { Ok(Some(found)) } else { Err(wrong(found.to_string())) }
}

/// One direction of a UE over a period.
#[derive(Clone, Copy, Debug, Default)]
struct Direct {
    mcs: u8,
    rank: u8,
    rate: f64,
    ok: f64,
    nok: f64,
    queue: f64,
}

/// A UE over a period.
#[derive(Clone, Copy, Debug)]
struct Ue {
    pci: u16,
    rnti: u16,
    cqi: Option<u8>,
    link: Both<Direct>,
}

const COUNT: f64 = 1e12;

impl Ue {
    fn read(ue: &Value) -> Result<Self, MetricsError> {
        // Over UDP each is in a container of its own.
        let ue = ue.get("ue_container").unwrap_or(ue);
        let needed = |what: &'static str, most: f64, expected: &'static str| {
            let missing = MetricsError::Value { what, found: "missing".to_owned(), expected };
            number(ue, what, (0.0, most), expected)?.ok_or(missing)
        };
        let count = |what| Ok::<f64, MetricsError>(number(ue, what, (0.0, COUNT), "a count")?.unwrap_or(0.0));
        let rate = |what| {
            Ok::<f64, MetricsError>(number(ue, what, (0.0, FASTEST), "a rate in bit/s")?.unwrap_or(0.0))
        };
        let mcs =
            |what| Ok::<u8, MetricsError>(number(ue, what, (0.0, 31.0), "0 to 31")?.unwrap_or(0.0) as u8);
        let rank = |what| number(ue, what, (0.0, 8.0), "0 to 8");
        // A mean, rounded; before release 25.04 the downlink's had no prefix.
        let rounded = |rank: Option<f64>| rank.map_or(1, |rank| rank.round().max(1.0) as u8);
        let downlink_rank = rank("dl_ri")?.or(rank("ri")?);
        Ok(Self {
            pci: needed("pci", 1_007.0, "a physical cell identity, 0 to 1007")? as u16,
            rnti: needed("rnti", 65_535.0, "a C-RNTI, 0 to 65535")? as u16,
            cqi: number(ue, "cqi", (0.0, 15.0), "0 to 15")?.map(|cqi| cqi as u8),
            link: Both {
                downlink: Direct {
                    mcs: mcs("dl_mcs")?,
                    rank: rounded(downlink_rank),
                    rate: rate("dl_brate")?,
                    ok: count("dl_nof_ok")?,
                    nok: count("dl_nof_nok")?,
                    queue: count("dl_bs")?,
                },
                uplink: Direct {
                    mcs: mcs("ul_mcs")?,
                    rank: rounded(rank("ul_ri")?),
                    rate: rate("ul_brate")?,
                    ok: count("ul_nof_ok")?,
                    nok: count("ul_nof_nok")?,
                    queue: count("bsr")?,
                },
            },
        })
    }
}

/// The time of a message in nanoseconds since 1970: seconds as a number (over UDP), or the date and time of UTC.
fn timestamp(message: &Value) -> Option<u64> {
    match message.get("timestamp")? {
        Value::Number(seconds) => {
            // They have milliseconds, which a binary fraction does not.
            let ms = (seconds.as_f64()? * 1e3).round();
            (0.0..1.8e13).contains(&ms).then(|| ms as u64 * 1_000_000)
        }
        Value::String(text) => date(text),
        _ => None,
    }
}

/// "2025-10-31T12:00:00.123", with up to nine digits of a second.
fn date(text: &str) -> Option<u64> {
    let (day, time) = text.trim_end_matches('Z').split_once('T')?;
    let mut day = day.splitn(3, '-').map(|part| part.parse::<u16>().ok());
    let (year, month, day) = (i64::from(day.next()??), i64::from(day.next()??), i64::from(day.next()??));
    let mut time = time.splitn(3, ':');
    let hour: u64 = time.next()?.parse().ok()?;
    let minute: u64 = time.next()?.parse().ok()?;
    let (second, fraction) = time.next().map(|second| second.split_once('.').unwrap_or((second, "0")))?;
    let second: u64 = second.parse().ok()?;
    if !(1_970..=2_500).contains(&year)
        || !(1..=12).contains(&month)
        || !(1..=31).contains(&day)
        || hour > 23
        || minute > 59
        || second > 60
        || !(1..=9).contains(&fraction.len())
    {
        return None;
    }
    let nanos = fraction.parse::<u64>().ok()? * 10_u64.pow(9 - fraction.len() as u32);
    // Days since 1970 in the Gregorian calendar, counted from March; Fliegel and Van Flandern 1968 in another form.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468;
    let seconds = u64::try_from(days).ok()? * 86_400 + hour * 3_600 + minute * 60 + second;
    Some(seconds * 1_000_000_000 + nanos)
}

/// What is known of a UE.
#[derive(Clone, Debug)]
struct KnownUe {
    number: u32,
    cell: u16,
    absent: u8,
    link: Both<LinkReport>,
}

/// Turns messages into updates.
#[derive(Debug)]
pub struct Converter {
    cells: Vec<SrsranCell>,
    period: Span,
    ues: BTreeMap<(u16, u16), KnownUe>,
    next: u32,
}

/// Converts the time of a message, if it has one, as [`Reader`](ranpace_rnis::lines::Reader) does.
type Clock<'a> = &'a mut dyn FnMut(LineClock, Option<u64>) -> Time;

impl Converter {
    /// For these cells, with metrics over this period.
    pub fn new(cells: Vec<SrsranCell>, period: Span) -> Self {
        Self { cells, period: period.max(Span::from_millis(1)), ues: BTreeMap::new(), next: 0 }
    }

    /// The configured cells, which come before everything else.
    pub fn begin(&mut self, updates: &mut dyn FnMut(Update)) {
        self.cells.iter().for_each(|cell| updates(Update::Cell(cell.cell.clone())));
    }

    /// Takes a message. Metrics of other kinds pass nothing on; a UE that cannot be read is left out, and the first reason returned.
    ///
    /// # Errors
    ///
    /// If the message, or a part of it, cannot be used.
    pub fn message(
        &mut self,
        message: &Value,
        clock: Clock<'_>,
        updates: &mut dyn FnMut(Update),
    ) -> Result<(), MetricsError> {
        let Some(members) = message.as_object() else {
            return Err(MetricsError::Form("expected an object".to_owned()));
        };
        if let Some(error) = message.get("error") {
            let text = error.as_str().unwrap_or("an error").chars().take(200).collect();
            return Err(MetricsError::Refused(text));
        }
        // A list of cells, or over UDP one at the top.
        let is_whole = members.contains_key("ue_list")
            || members.contains_key("event_list")
            || members.contains_key("cell_metrics");
        let cells: Vec<&Value> = match message.get("cells").and_then(Value::as_array) {
            Some(cells) => cells.iter().collect(),
            None if is_whole => vec![message],
            None => return Ok(()),
        };
        let reported = clock(LineClock::Day, timestamp(message));
        let began = Time::from_nanos(reported.as_nanos().saturating_sub(self.period.as_nanos()));
        let mut failure = None;
        for (place, cell) in cells.iter().enumerate() {
            // Cells without UEs do not say which they are; then they are in the configured order, if they are all there.
            let by_place = (cells.len() == self.cells.len()).then_some(place);
            if let Err(error) = self.cell(cell, by_place, (began, reported), updates) {
                failure.get_or_insert(error);
            }
        }
        failure.map_or(Ok(()), Err)
    }

    fn place(&self, pci: u16) -> Result<usize, MetricsError> {
        self.cells.iter().position(|cell| cell.pci == pci).ok_or_else(|| MetricsError::Cell {
            pci,
            known: self.cells.iter().map(|cell| cell.pci.to_string()).collect::<Vec<_>>().join(", "),
        })
    }

    fn cell(
        &mut self,
        metrics: &Value,
        by_place: Option<usize>,
        (began, reported): (Time, Time),
        updates: &mut dyn FnMut(Update),
    ) -> Result<(), MetricsError> {
        let list = |name| metrics.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let mut failure = None;
        let mut by_cell: BTreeMap<usize, Vec<Ue>> =
            by_place.map(|place| (place, Vec::new())).into_iter().collect();
        for ue in list("ue_list") {
            let ue = Ue::read(ue).and_then(|ue| Ok((self.place(ue.pci)?, ue)));
            match ue {
                Ok((place, ue)) => {
                    let ues = by_cell.entry(place).or_default();
                    if !ues.iter().any(|other| other.rnti == ue.rnti) {
                        ues.push(ue);
                    }
                }
                Err(error) => drop(failure.get_or_insert(error)),
            }
        }
        // The others say which cell it is.
        let of_ues = by_cell.iter().find(|(_, ues)| !ues.is_empty()).map(|(place, _)| *place);
        if of_ues.is_some() {
            by_cell.retain(|_, ues| !ues.is_empty());
        }
        let place = of_ues.or(by_place);
        for event in list("event_list") {
            let event = event.get("cell_events").unwrap_or(event);
            let rnti = number(event, "rnti", (0.0, 65_535.0), "a C-RNTI, 0 to 65535");
            let kind = event.get("event_type").and_then(Value::as_str);
            match (rnti, kind, place) {
                (Err(error), ..) => drop(failure.get_or_insert(error)),
                (Ok(Some(rnti)), Some("ue_rem"), Some(place)) => {
                    let key = (self.cells[place].pci, rnti as u16);
                    // It may have come and gone within the period, and be listed all the same.
                    by_cell.entry(place).or_default().retain(|ue| ue.rnti != key.1);
                    self.detach(key, reported, updates);
                }
                // One that came appears in the list.
                _ => {}
            }
        }
        for (place, ues) in by_cell {
            self.slot(place, &ues, (began, reported), updates)?;
        }
        failure.map_or(Ok(()), Err)
    }

    fn detach(&mut self, key: (u16, u16), time: Time, updates: &mut dyn FnMut(Update)) {
        if let Some(ue) = self.ues.remove(&key) {
            updates(Update::Event(Event { time, cell: ue.cell, user: ue.number, kind: EventKind::Detached }));
        }
    }

    /// The UE's number, which a new one gets here.
    fn number(
        &mut self,
        key: (u16, u16),
        cell: u16,
        time: Time,
        updates: &mut dyn FnMut(Update),
    ) -> Result<&mut KnownUe, MetricsError> {
        if !self.ues.contains_key(&key) {
            if self.ues.len() >= USERS as usize {
                return Err(MetricsError::Crowd);
            }
            // Numbers come round; those in use are passed over.
            let number = loop {
                let number = self.next % USERS;
                self.next = self.next.wrapping_add(1);
                if self.ues.values().all(|ue| ue.number != number) {
                    break number;
                }
            };
            let name = format!("pci {} rnti {:x}", key.0, key.1);
            updates(Update::User(User { user: number, name, ids: Vec::new() }));
            updates(Update::Event(Event { time, cell, user: number, kind: EventKind::Attached }));
            self.ues.insert(key, KnownUe { number, cell, absent: 0, link: Both::default() });
        }
        self.ues.get_mut(&key).ok_or(MetricsError::Crowd)
    }

    fn slot(
        &mut self,
        place: usize,
        ues: &[Ue],
        (began, reported): (Time, Time),
        updates: &mut dyn FnMut(Update),
    ) -> Result<(), MetricsError> {
        let Some(SrsranCell { pci, cell }) = self.cells.get(place) else { return Ok(()) };
        let (pci, info, period) = (*pci, cell.info, self.period);
        let gone: Vec<_> = (self.ues.iter_mut())
            .filter(|(key, _)| key.0 == pci && !ues.iter().any(|ue| ue.rnti == key.1))
            .filter_map(|(key, ue)| {
                ue.absent += 1;
                (ue.absent >= ABSENT).then_some(*key)
            })
            .collect();
        gone.into_iter().for_each(|key| self.detach(key, reported, updates));
        let mut used = Both::<f64>::default();
        let mut active = Both::<u16>::default();
        let mut users = Vec::with_capacity(ues.len());
        for ue in ues {
            let known = self.number((pci, ue.rnti), info.cell, began, updates)?;
            known.absent = 0;
            for direction in [Direction::Downlink, Direction::Uplink] {
                let prbs = link(&info, direction, &ue.link[direction], period, &mut known.link[direction]);
                used[direction] += prbs;
                active[direction] = active[direction].saturating_add((ue.link[direction].rate > 0.0).into());
            }
            let cqi = ue.cqi.and_then(Cqi::new);
            let table = match info.technology {
                Technology::Nr { qam256: true } => QamTable::Qam256,
                _ => QamTable::Qam64,
            };
            users.push(UserReport {
                user: known.number,
                rnti: ue.rnti,
                cqi: cqi.unwrap_or(Cqi::MIN),
                // Without a report in this period there is none that could be used.
                cqi_time: cqi.map_or(Time::ZERO, |_| began),
                capacity: cqi.map_or(0.0, |cqi| cqi.efficiency(table).as_f64() as f32),
                link: known.link,
            });
        }
        users.sort_by_key(|row| row.user);
        updates(Update::Slot(Slot {
            cell: info,
            slot: began.as_nanos() / info.slot.as_nanos().max(1),
            time: began,
            symbols: info.data_symbols,
            used_prbs: used.map(|used| used.min(info.prbs.into()) as f32),
            active_users: active,
            users,
            bearers: Vec::new(),
            full: true,
        }));
        Ok(())
    }
}

/// Adds a period to a direction's counters; returns the mean of its PRBs.
fn link(info: &CellInfo, direction: Direction, of: &Direct, period: Span, report: &mut LinkReport) -> f64 {
    let slots = (period.as_secs_f64() / info.slot.as_secs_f64()) * info.full_slots(direction);
    let rate = Rate::from_bits_per_s_f64(of.rate);
    let layers = of.rank.min(info.layers.max(1));
    let carries = info.rates(direction, of.mcs, layers).position(|carried| carried >= rate);
    let most = f64::from(info.prbs);
    let again = if of.ok > 0.0 { of.nok / of.ok } else { 0.0 };
    let units = carries.map_or(most, |units| {
        // Of symbols, each stands for its part of all PRBs.
        let whole = if info.by_symbols { f64::from(info.data_symbols[direction].max(1)) } else { most };
        units as f64 * most / whole
    });
    let prbs = if of.rate > 0.0 { (units * (1.0 + again)).min(most) } else { 0.0 };
    let symbols = info.data_symbols[direction];
    let bytes = of.rate / 8.0 * period.as_secs_f64() / slots.max(1.0);
    report.grant = (of.rate > 0.0).then(|| Grant {
        mcs: of.mcs,
        prbs: prbs.round() as u16,
        symbols,
        block: TransportBlock::from_bytes(bytes as u32),
        padding: Bytes::ZERO,
        process: 0,
        again: false,
    });
    report.queue = Bytes::new(of.queue as u64);
    report.blocks = report.blocks.saturating_add(of.ok as u64);
    report.retransmissions = report.retransmissions.saturating_add(of.nok as u64);
    let bits = of.rate * period.as_secs_f64();
    report.scheduled_bits = report.scheduled_bits.saturating_add(bits as u64);
    let prb_symbols = prbs * f64::from(symbols) * slots;
    report.scheduled_prb_symbols = report.scheduled_prb_symbols.saturating_add(prb_symbols as u64);
    prbs
}

/// Objects that follow each other, in pieces that end anywhere: metrics over UDP may come in several datagrams.
#[derive(Debug, Default)]
pub struct Pieces(Vec<u8>);

impl Pieces {
    /// Takes a datagram and passes on the objects that are complete. What cannot be continued is an error; what follows is read
    /// again from the next datagram on.
    ///
    /// # Errors
    ///
    /// If there is something that is not JSON, or a piece is missing.
    pub fn take(&mut self, datagram: &[u8], objects: &mut dyn FnMut(&Value)) -> Result<(), MetricsError> {
        let had = self.0.len();
        self.0.extend_from_slice(datagram);
        let whole = self.complete(objects);
        if whole.is_ok() || had == 0 {
            return whole;
        }
        // What was begun has lost its continuation.
        self.0.clear();
        self.0.extend_from_slice(datagram);
        self.complete(objects)?;
        whole
    }

    fn complete(&mut self, objects: &mut dyn FnMut(&Value)) -> Result<(), MetricsError> {
        let mut stream = serde_json::Deserializer::from_slice(&self.0).into_iter::<Value>();
        let mut end = 0;
        let mut failure = None;
        while let Some(object) = stream.next() {
            match object {
                Ok(object) => {
                    objects(&object);
                    end = stream.byte_offset();
                }
                Err(error) if error.is_eof() => break,
                Err(error) => {
                    failure = Some(MetricsError::Form(error.to_string()));
                    break;
                }
            }
        }
        self.0.drain(..end);
        if self.0.trim_ascii().is_empty() || failure.is_some() {
            self.0.clear();
        }
        if self.0.len() > LONGEST {
            let found = self.0.len();
            self.0 = Vec::new();
            failure =
                Some(MetricsError::Form(format!("an object of {found} bytes; expected at most {LONGEST}")));
        }
        failure.map_or(Ok(()), Err)
    }
}

impl Source for Srsran {
    fn run(&mut self, updates: &mut dyn FnMut(Update), stop: &AtomicBool) -> Result<(), SourceError> {
        let counters = Arc::clone(&self.counters);
        let mut converter = Converter::new(self.cells.clone(), self.period);
        let mut times = Times::new()?;
        converter.begin(updates);
        let ended = match &self.transport {
            Transport::Udp(address) => {
                follow_udp(address, &mut converter, &mut times, &counters, updates, stop)
            }
            Transport::WebSocket(address) => loop {
                let ended = follow_web_socket(address, &mut converter, &mut times, &counters, updates, stop);
                counters.set_connected(false);
                if let Err(error) = ended {
                    counters.complain(&error);
                }
                if wait(RETRY, stop) {
                    break Ok(());
                }
            },
        };
        counters.set_connected(false);
        ended.map_err(|error| self.failed(error))
    }

    fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.counters)
    }
}

/// Reads datagrams until `stop` is set.
fn follow_udp(
    address: &str,
    converter: &mut Converter,
    times: &mut Times,
    counters: &Counters,
    updates: &mut dyn FnMut(Update),
    stop: &AtomicBool,
) -> io::Result<()> {
    let socket = UdpSocket::bind(address)?;
    socket.set_read_timeout(Some(PAUSE))?;
    counters.set_connected(true);
    let (mut pieces, mut datagram) = (Pieces::default(), vec![0; 1 << 16]);
    while !stop.load(Ordering::Relaxed) {
        let length = match socket.recv(&mut datagram) {
            Ok(length) => length,
            Err(error) if is_timeout(&error) => continue,
            Err(error) => return Err(error),
        };
        counters.count_read();
        let mut failure = None;
        let taken = pieces.take(&datagram[..length], &mut |object| {
            let mut clock = |clock, ns| times.convert(clock, ns);
            if let Err(error) = converter.message(object, &mut clock, updates) {
                failure.get_or_insert(error);
            }
        });
        for error in taken.err().into_iter().chain(failure) {
            counters.leave_out(&error);
        }
    }
    Ok(())
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

fn other(error: impl ToString) -> io::Error {
    io::Error::other(error.to_string())
}

/// Connects, subscribes and reads until the connection ends or `stop` is set.
fn follow_web_socket(
    address: &str,
    converter: &mut Converter,
    times: &mut Times,
    counters: &Counters,
    updates: &mut dyn FnMut(Update),
    stop: &AtomicBool,
) -> io::Result<()> {
    let Some(mut socket) = open(address, stop)? else { return Ok(()) };
    let subscribe = r#"{"cmd":"metrics_subscribe"}"#;
    socket.send(Message::text(subscribe)).map_err(other)?;
    counters.set_connected(true);
    while !stop.load(Ordering::Relaxed) {
        let message = match socket.read() {
            Ok(Message::Text(text)) => text,
            Ok(Message::Close(_)) => return Err(other("srsRAN closed the connection")),
            Ok(_) => continue,
            Err(tungstenite::Error::Io(error)) if is_timeout(&error) => continue,
            Err(error) => return Err(other(error)),
        };
        counters.count_read();
        let mut clock = |clock, ns| times.convert(clock, ns);
        let read =
            serde_json::from_str(message.as_str()).map_err(|error| MetricsError::Form(error.to_string()));
        match read.and_then(|object: Value| converter.message(&object, &mut clock, updates)) {
            Ok(()) => {}
            // It would be silent from now on; it may be configured later.
            Err(error @ MetricsError::Refused(_)) => return Err(other(error)),
            Err(error) => counters.leave_out(&error),
        }
    }
    // The other side sees the end of the connection, whether or not this arrives.
    let _ = socket.close(None);
    let _ = socket.flush();
    Ok(())
}

/// `None` if it was stopped.
fn open(address: &str, stop: &AtomicBool) -> io::Result<Option<WebSocket<TcpStream>>> {
    let mut stream = Err(other("the name has no address"));
    for address in resolve(address)? {
        stream = TcpStream::connect_timeout(&address, PAUSE);
        if stream.is_ok() {
            break;
        }
    }
    let stream = stream?;
    stream.set_read_timeout(Some(PAUSE))?;
    stream.set_write_timeout(Some(PAUSE))?;
    let config = WebSocketConfig::default().max_message_size(Some(LONGEST)).max_frame_size(Some(LONGEST));
    let until = Instant::now() + HANDSHAKE;
    let mut shake = tungstenite::client::client_with_config(format!("ws://{address}/"), stream, Some(config));
    loop {
        match shake {
            Ok((socket, _)) => return Ok(Some(socket)),
            Err(HandshakeError::Interrupted(more)) => {
                if stop.load(Ordering::Relaxed) {
                    return Ok(None);
                }
                if Instant::now() > until {
                    return Err(io::Error::new(
                        io::ErrorKind::TimedOut,
                        "no answer to the WebSocket's handshake",
                    ));
                }
                shake = more.handshake();
            }
            Err(HandshakeError::Failure(error)) => return Err(other(error)),
        }
    }
}
