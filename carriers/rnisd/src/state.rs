//! What is known of cells and users, and what the standard calls for each change: occurrences, answers to queries, records.
//!
//! Updates come in the server's numbers of cells and users ([`registry`](crate::registry)). The answers to queries are in `state/answers.rs`.

mod answers;
mod measurement_reports;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ranpace_phy::{Both, Direction};
use ranpace_rnis::etsi::bearers::{ErabQosParameters, QosInformation, S1Event, S1UeNotified};
use ranpace_rnis::etsi::measured::{self, MeasTa};
use ranpace_rnis::etsi::{
    AssociateId, Ecgi, ErabReleaseInfo, HoStatus, Layer2, Layer2Window, Notification, Occurrence, TimeStamp,
};
use ranpace_rnis::{Averaging, Event, EventKind, Publisher, RadioHint};
use ranpace_units::{Span, Time};

pub use self::answers::UserEntry;
use crate::clock::TimeOfDay;
use crate::source::{Bearer, BearerRates, Cell, Slot, Update};
use crate::viewer::Viewer;

/// Class of a default bearer; TS 23.203, table 6.1.7.
const DEFAULT_QCI: u8 = 9;
/// Number of a user's first bearer; TS 24.301, 9.3.2.
const FIRST_ERAB: u32 = 5;
/// A user that appears in a cell of another source within this time of leaving its cell is in handover. Ours.
const HANDOVER: Span = Span::from_secs(1);
/// A source that tells of a handover does so this soon after it told that the user left its cell. Ours.
const TOLD: Span = Span::from_millis(20);
/// Largest number of a bearer; TS 36.413, 9.2.1.2 has 15, and extensions.
const MOST_BEARER: u32 = 255;

#[derive(Debug)]
struct CellState {
    cell: Cell,
    users: BTreeSet<u32>,
    window: Layer2Window,
    measures: Option<Layer2>,
    /// Of the latest slot.
    time: Time,
    /// When something about it came last.
    heard: Time,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct BearerState {
    qci: u8,
    rates: Option<BearerRates>,
}

#[derive(Debug, Default)]
struct UserState {
    name: String,
    ids: Vec<AssociateId>,
    serving: Option<u16>,
    /// The cell that served it last, and until when.
    last: Option<(u16, Time)>,
    /// When it was said that a handover has begun.
    handover: Option<Time>,
    bearers: BTreeMap<u8, BearerState>,
    s1: BTreeMap<u32, (Vec<Ecgi>, ranpace_rnis::etsi::bearers::S1Bearer)>,
}

impl UserState {
    fn is_gbr(&self) -> bool {
        !self.bearers.is_empty() && self.bearers.values().all(|bearer| bearer.rates.is_some())
    }
}

/// An occurrence, and the user that it is about.
#[derive(Clone, Debug)]
pub struct Happened {
    /// Number of the user.
    pub user: u32,
    /// What happened, with all identifiers of the user.
    pub occurrence: Occurrence,
}

/// What is known.
#[derive(Debug)]
pub struct State {
    cells: Vec<Option<CellState>>,
    users: Vec<UserState>,
    /// Sources of cells, by number.
    sources: HashMap<u16, usize>,
    /// Users that have left a cell and keep their bearers until [`Self::settle`].
    leaving: Vec<u32>,
    latest: Publisher,
    period: Span,
    clock: TimeOfDay,
    requests: u64,
}

impl State {
    /// Nothing yet; measures are over `period`.
    pub fn new(period: Span, clock: TimeOfDay) -> Self {
        let latest = Publisher::new(Span::ZERO, Averaging::Smooth);
        Self {
            cells: Vec::new(),
            users: Vec::new(),
            sources: HashMap::new(),
            leaving: Vec::new(),
            latest,
            period,
            clock,
            requests: 0,
        }
    }

    /// The time of day was read again.
    pub fn set_clock(&mut self, clock: TimeOfDay) {
        self.clock = clock;
    }

    /// A time as the standard writes it.
    pub fn time_stamp(&self, time: Time) -> TimeStamp {
        let since = self.clock.since_epoch(time);
        TimeStamp {
            seconds: u32::try_from(since.as_secs()).unwrap_or(u32::MAX),
            nano_seconds: since.subsec_nanos(),
        }
    }

    /// An update in the server's numbers that comes now; what happened is added to `happened`.
    pub fn on_update(&mut self, source: usize, update: &Update, now: Time, happened: &mut Vec<Happened>) {
        self.apply(source, update, happened);
        if let Some(cell) = update.cell().and_then(|cell| self.cells.get_mut(usize::from(cell))?.as_mut()) {
            cell.heard = now;
        }
    }

    fn apply(&mut self, source: usize, update: &Update, happened: &mut Vec<Happened>) {
        match update {
            Update::Cell(cell) => {
                let number = usize::from(cell.info.cell);
                if self.cells.len() <= number {
                    self.cells.resize_with(number + 1, || None);
                }
                self.sources.insert(cell.info.cell, source);
                match &mut self.cells[number] {
                    Some(known) => known.cell = cell.clone(),
                    none => {
                        *none = Some(CellState {
                            cell: cell.clone(),
                            users: BTreeSet::new(),
                            window: Layer2Window::default(),
                            measures: None,
                            time: Time::ZERO,
                            heard: Time::ZERO,
                        });
                    }
                }
            }
            Update::User(user) => {
                let state = self.user_mut(user.user);
                state.name.clone_from(&user.name);
                state.ids.clone_from(&user.ids);
            }
            Update::Slot(slot) => self.on_slot(slot, happened),
            Update::Event(event) => self.on_event(event, happened),
            Update::Bearer(bearer) => self.on_bearer(bearer, happened),
            Update::Signal(signal) => self.on_signal(signal, happened),
            Update::TimingAdvance { user, cell, time, round_trip } => {
                let Some(ecgi) = self.ecgi(*cell) else { return };
                let measured = MeasTa {
                    ecgi,
                    timing_advance: measured::timing_advance(*round_trip),
                    time_stamp: Some(self.time_stamp(*time)),
                    associate_id: self.ids(*user).to_vec(),
                };
                happened.push(Happened {
                    user: *user,
                    occurrence: Occurrence::of(Notification::MeasTa(measured)),
                });
            }
            Update::Notification(notification) => happened.extend(self.on_notification(notification)),
        }
    }

    fn user_mut(&mut self, user: u32) -> &mut UserState {
        let place = user as usize;
        if self.users.len() <= place {
            self.users.resize_with(place + 1, UserState::default);
        }
        &mut self.users[place]
    }

    fn cell(&self, cell: u16) -> Option<&CellState> {
        self.cells.get(usize::from(cell))?.as_ref()
    }

    fn ecgi(&self, cell: u16) -> Option<Ecgi> {
        self.cell(cell).map(|state| state.cell.ecgi.clone())
    }

    /// The number of a cell's source; 0 if there is no such cell.
    pub fn source(&self, cell: u16) -> usize {
        self.sources.get(&cell).copied().unwrap_or(0)
    }

    /// Identifiers of a user.
    pub fn ids(&self, user: u32) -> &[AssociateId] {
        self.users.get(user as usize).map_or(&[], |state| &state.ids)
    }

    fn on_slot(&mut self, slot: &Slot, happened: &mut Vec<Happened>) {
        let number = slot.cell.cell;
        if self.cell(number).is_none() {
            return;
        }
        self.settle(slot.time, happened);
        for row in &slot.users {
            let serving = self.users.get(row.user as usize).and_then(|user| user.serving);
            if serving != Some(number) {
                self.attach(row.user, number, slot.time, happened);
            }
        }
        for row in &slot.bearers {
            let user = self.user_mut(row.user);
            user.bearers.entry(row.bearer).or_insert(BearerState { qci: DEFAULT_QCI, rates: None });
        }
        let Self { cells, users, latest, period, .. } = self;
        let Some(Some(cell)) = cells.get_mut(usize::from(number)) else { return };
        cell.time = slot.time;
        let report = slot.report();
        let is_gbr = |user: u32| users.get(user as usize).is_some_and(UserState::is_gbr);
        cell.window.on_report(&report, &is_gbr);
        if cell.window.begun().is_some_and(|begun| slot.time + slot.cell.slot >= begun + *period) {
            cell.measures = cell.window.take();
        }
        if latest.on_report(&report) {
            latest.published(number);
        }
        if slot.full && slot.users.len() < cell.users.len() {
            let there: BTreeSet<u32> = slot.users.iter().map(|row| row.user).collect();
            let gone: Vec<u32> = cell.users.difference(&there).copied().collect();
            for user in gone {
                self.detach(user, number, slot.time);
            }
        }
    }

    /// A user is in a cell from now on. Coming from a cell of another source, it was handed over, which no source reports.
    fn attach(&mut self, user: u32, cell: u16, now: Time, happened: &mut Vec<Happened>) {
        let state = self.user_mut(user);
        let before = match (state.serving, state.last) {
            (Some(serving), _) => Some(serving),
            (None, Some((last, until))) if now <= until + HANDOVER => Some(last),
            _ => None,
        };
        if state.serving == Some(cell) {
            return;
        }
        // Without a handover from another cell, its old bearers have ended.
        if before.is_none_or(|before| before == cell) {
            self.leave(user, now, happened);
        }
        let state = self.user_mut(user);
        (state.serving, state.last, state.handover) = (Some(cell), None, None);
        let name = self.sources.get(&cell);
        let is_other = before.is_some_and(|before| before != cell && self.sources.get(&before) != name);
        if let (Some(from), true) = (before, is_other) {
            self.change_cell(user, from, &[cell], HoStatus::Completed, now, happened);
        }
        if let Some(from) = before.filter(|from| *from != cell)
            && let Some(Some(state)) = self.cells.get_mut(usize::from(from))
        {
            state.users.remove(&user);
            state.window.forget(user);
        }
        if let Some(Some(state)) = self.cells.get_mut(usize::from(cell)) {
            state.users.insert(user);
        }
    }

    fn detach(&mut self, user: u32, cell: u16, now: Time) {
        if let Some(Some(state)) = self.cells.get_mut(usize::from(cell)) {
            state.users.remove(&user);
            state.window.forget(user);
        }
        let kind = EventKind::Detached;
        self.latest.on_event(&Event { time: now, cell, user, kind });
        let state = self.user_mut(user);
        // It may have gone to a cell of another source already.
        if state.serving != Some(cell) {
            return;
        }
        state.serving = None;
        state.last = Some((cell, now));
        self.leaving.push(user);
    }

    /// The departures of users whose cell has been silent for this time: its source is not connected any more, or it has reported slots
    /// and stopped. Nobody says that they have left.
    pub fn departures(&self, silence: Span, now: Time, is_connected: &dyn Fn(usize) -> bool) -> Vec<Event> {
        let is_lost = |cell: &&CellState| {
            let is_connected =
                self.sources.get(&cell.cell.info.cell).is_none_or(|source| is_connected(*source));
            now > cell.heard + silence && (cell.time > Time::ZERO || !is_connected)
        };
        let lost = self.cells.iter().flatten().filter(is_lost);
        let departure = |cell: u16, user: u32| Event { time: now, cell, user, kind: EventKind::Detached };
        lost.flat_map(|of| of.users.iter().map(|user| departure(of.cell.info.cell, *user))).collect()
    }

    /// Releases the bearers of users that have left and do not come back: a user keeps them in a handover. Of that its source may
    /// tell after it told that the user left; between two sources only its arrival tells.
    pub fn settle(&mut self, now: Time, happened: &mut Vec<Happened>) {
        if self.leaving.is_empty() {
            return;
        }
        let first = self.sources.values().next();
        let are_several = self.sources.values().any(|source| Some(source) != first);
        for user in std::mem::take(&mut self.leaving) {
            let state = self.user_mut(user);
            let (None, Some((_, since))) = (state.serving, state.last) else { continue };
            let is_awaited = are_several || state.handover.is_some();
            if now <= since + if is_awaited { HANDOVER } else { TOLD } {
                self.leaving.push(user);
            } else {
                self.leave(user, now, happened);
            }
        }
    }

    /// A user without a cell has ended its connection.
    fn leave(&mut self, user: u32, now: Time, happened: &mut Vec<Happened>) {
        let state = self.user_mut(user);
        let Some((cell, _)) = state.last.take() else { return };
        let (bearers, s1) = (std::mem::take(&mut state.bearers), std::mem::take(&mut state.s1));
        state.handover = None;
        for (bearer, of) in bearers {
            self.release(user, cell, bearer, of.qci, now, happened);
        }
        for (ecgi, bearer) in s1.into_values() {
            let associate_id = self.ids(user).to_vec();
            let notification = Notification::S1Bearer {
                s1_event: S1Event::Release,
                s1_ue_info: S1UeNotified {
                    ecgi,
                    s1_bearer_info: vec![bearer],
                    temp_ue_id: None,
                    associate_id,
                },
                time_stamp: Some(self.time_stamp(now)),
            };
            happened.push(Happened { user, occurrence: Occurrence::of(notification) });
        }
    }

    fn release(
        &mut self,
        user: u32,
        cell: u16,
        bearer: u8,
        qci: u8,
        now: Time,
        happened: &mut Vec<Happened>,
    ) {
        let Some(ecgi) = self.ecgi(cell) else { return };
        let notification = Notification::RabRel {
            associate_id: self.ids(user).to_vec(),
            ecgi,
            erab_release_info: ErabReleaseInfo { erab_id: FIRST_ERAB + u32::from(bearer) },
            time_stamp: Some(self.time_stamp(now)),
        };
        happened.push(Happened { user, occurrence: Occurrence { notification, qci: Some(qci) } });
    }

    fn change_cell(
        &mut self,
        user: u32,
        from: u16,
        to: &[u16],
        ho_status: HoStatus,
        now: Time,
        happened: &mut Vec<Happened>,
    ) {
        let trg_ecgi: Vec<Ecgi> = to.iter().filter_map(|cell| self.ecgi(*cell)).collect();
        let Some(src_ecgi) = self.ecgi(from).filter(|_| !trg_ecgi.is_empty()) else { return };
        let notification = Notification::CellChange {
            associate_id: self.ids(user).to_vec(),
            ho_status,
            src_ecgi,
            temp_ue_id: None,
            time_stamp: Some(self.time_stamp(now)),
            trg_ecgi,
        };
        happened.push(Happened { user, occurrence: Occurrence::of(notification) });
    }

    fn on_event(&mut self, event: &Event, happened: &mut Vec<Happened>) {
        let Event { time, cell, user, kind } = *event;
        match kind {
            EventKind::Attached => self.attach(user, cell, time, happened),
            EventKind::Detached => self.detach(user, cell, time),
            EventKind::BearerSetUp { bearer } => {
                let default = BearerState { qci: DEFAULT_QCI, rates: None };
                self.set_bearer(user, cell, bearer, default, true, time, happened);
            }
            EventKind::HandoverBegun { to } => {
                self.latest.on_event(event);
                self.user_mut(user).handover = Some(time);
                self.change_cell(user, cell, &[to], HoStatus::InExecution, time, happened);
            }
            EventKind::HandoverCompleted { from } => {
                self.latest.on_event(event);
                self.change_cell(user, from, &[cell], HoStatus::Completed, time, happened);
                let state = self.user_mut(user);
                // What was said here need not be concluded again.
                (state.serving, state.last, state.handover) = (Some(cell), None, None);
                if let Some(Some(old)) = self.cells.get_mut(usize::from(from)) {
                    old.users.remove(&user);
                    old.window.forget(user);
                }
                if let Some(Some(new)) = self.cells.get_mut(usize::from(cell)) {
                    new.users.insert(user);
                }
            }
            _ => {}
        }
    }

    fn on_bearer(&mut self, bearer: &Bearer, happened: &mut Vec<Happened>) {
        let Bearer { user, cell, bearer: number, time, qci, rates, present } = *bearer;
        if present {
            self.set_bearer(user, cell, number, BearerState { qci, rates }, false, time, happened);
        } else if let Some(of) = self.user_mut(user).bearers.remove(&number) {
            self.release(user, cell, number, of.qci, time, happened);
        }
    }

    /// A bearer was set up, or has other properties now. With `keep`, one that exists keeps its properties.
    #[allow(clippy::too_many_arguments, reason = "members of one occurrence")]
    fn set_bearer(
        &mut self,
        user: u32,
        cell: u16,
        bearer: u8,
        to: BearerState,
        keep: bool,
        now: Time,
        happened: &mut Vec<Happened>,
    ) {
        let Some(ecgi) = self.ecgi(cell) else { return };
        let state = self.user_mut(user);
        let before = state.bearers.get(&bearer).cloned();
        if before.as_ref() == Some(&to) || (keep && before.is_some()) {
            return;
        }
        let qos = Some(to.parameters());
        state.bearers.insert(bearer, to);
        let is_gbr = state.is_gbr();
        if let Some(Some(of_cell)) = self.cells.get_mut(usize::from(cell)) {
            of_cell.window.set_gbr(user, is_gbr);
        }
        let (associate_id, time_stamp) = (self.ids(user).to_vec(), Some(self.time_stamp(now)));
        let erab_id = FIRST_ERAB + u32::from(bearer);
        let notification = if before.is_some() {
            Notification::RabMod { associate_id, ecgi, erab_id, erab_qos_parameters: qos, time_stamp }
        } else {
            let temp_ue_id = None;
            Notification::RabEst {
                associate_id,
                ecgi,
                erab_id,
                erab_qos_parameters: qos,
                temp_ue_id,
                time_stamp,
            }
        };
        happened.push(Happened { user, occurrence: Occurrence::of(notification) });
    }

    /// A notification of a source. `None` if nobody has its identifiers.
    fn on_notification(&mut self, notification: &Notification) -> Option<Happened> {
        let ids = notification.user()?;
        let user = self.users.iter().position(|state| state.ids.iter().any(|id| ids.contains(id)))?;
        if let Notification::S1Bearer { s1_event, s1_ue_info, .. } = notification {
            for bearer in &s1_ue_info.s1_bearer_info {
                let Some(id) = bearer.erab_id.filter(|id| *id <= MOST_BEARER) else { continue };
                if *s1_event == S1Event::Release {
                    self.users[user].s1.remove(&id);
                } else {
                    self.users[user].s1.insert(id, (s1_ue_info.ecgi.clone(), bearer.clone()));
                }
            }
        }
        let notification = notification.under(self.users[user].ids.clone());
        Some(Happened { user: user as u32, occurrence: Occurrence::of(notification) })
    }

    /// Numbers of the users that may be seen and have one of the identifiers (none are all), ascending; and of the cells.
    pub fn scope(&self, viewer: &Viewer, ids: &[AssociateId], cells: &[Ecgi]) -> (Vec<u32>, Vec<u16>) {
        let users = (0_u32..).zip(&self.users).filter(|(_, user)| {
            viewer
                .visible(&user.ids)
                .is_some_and(|seen| ids.is_empty() || seen.iter().any(|id| ids.contains(id)))
        });
        let is_listed = |cell: &&CellState| cells.is_empty() || cells.contains(&cell.cell.ecgi);
        let cells = self.cells.iter().flatten().filter(is_listed).map(|cell| cell.cell.info.cell);
        (users.map(|(user, _)| user).collect(), cells.collect())
    }

    /// Numbers of cells, users in cells, and bearers: for metrics.
    pub fn counts(&self) -> (usize, usize, usize) {
        let attached = self.users.iter().filter(|user| user.serving.is_some());
        let bearers = self.users.iter().map(|user| user.bearers.len()).sum();
        (self.cells.iter().flatten().count(), attached.count(), bearers)
    }

    /// The time of the latest slot of any cell.
    pub fn latest_slot(&self) -> Option<Time> {
        self.cells.iter().flatten().map(|cell| cell.time).max()
    }
}

/// The hints about all users of a cell.
pub fn hints_of(publisher: &Publisher, cell: u16) -> Vec<(u32, Both<RadioHint>)> {
    let hints = |user: &u32| {
        let hint = |way| publisher.hint(*user, way, None);
        Some((*user, Both { downlink: hint(Direction::Downlink)?, uplink: hint(Direction::Uplink)? }))
    };
    publisher.users(cell).iter().filter_map(hints).collect()
}

impl BearerState {
    fn parameters(&self) -> ErabQosParameters {
        let rates = self.rates.map(|rates| QosInformation {
            erab_gbr_dl: rates.guaranteed.downlink,
            erab_gbr_ul: rates.guaranteed.uplink,
            erab_mbr_dl: rates.maximum.downlink,
            erab_mbr_ul: rates.maximum.uplink,
        });
        ErabQosParameters { qci: self.qci, qos_information: rates }
    }
}
