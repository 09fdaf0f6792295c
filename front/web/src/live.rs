//! A running command that is watched: one thread reads its figures, however many watch, and another keeps the rows and hands them out as
//! a run's. Nothing is asked of it but its figures, so that watching cannot harm it.

pub mod address;
mod emulation;
mod proxy;
mod radio;
pub mod reading;
mod serve;
pub mod source;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use axum::extract::ws::Message as Packet;
use ranpace_network::{Column, Series};
use tokio::sync::broadcast;

use crate::frame::{Frame, Kind};
use crate::handle::{BACKLOG, Command, Event, Handle, Joined, NOT_YET_WATCHED, UNWATCHED, packet, text_of};
use crate::live::reading::{MOST, Reading};
use crate::live::source::Source;
use crate::problem::Refusal;
use crate::protocol::{
    ColumnAbout, FlowAbout, GridAbout, GridLane, Message, Phase, PlayState, ScenarioAbout, Session, Speed,
    Subject, UserAbout,
};

/// Time between two readings: ten a second.
const PERIOD: Duration = Duration::from_millis(100);
/// Time between two attempts after a source did not answer. Ours.
const RETRY: Duration = Duration::from_secs(1);
/// Time between two looks whether somebody watches.
const LOOK: Duration = Duration::from_millis(500);
/// Rows that are kept: ten minutes. When there are more, the older half is forgotten.
const ROWS: usize = 6_000;
/// Columns that are kept: with [`ROWS`], 24 MB. When there are more, those of flows that have ended are forgotten.
const COLUMNS: usize = 500;
/// Users with PRBs that are kept, so that many may come and go: with [`ROWS`], 6 MB. Ours.
const LANES: usize = 2 * MOST;
/// Flows that have ended are shown for this long. Ours: as long as the page shows rows at first.
const ENDED: Duration = Duration::from_secs(10);

/// A source that is watched.
pub struct Live {
    id: String,
    /// Until its thread begins.
    source: Option<Source>,
    commands: Receiver<Command>,
    sender: Sender<Command>,
    events: broadcast::Sender<Event>,
    viewers: Arc<AtomicUsize>,
    begun: Instant,
    watched: Option<Instant>,
    generation: u32,
    times: Vec<f64>,
    columns: Vec<(ColumnAbout, Vec<f64>)>,
    /// PRBs of each user that was seen, downlink and uplink.
    lanes: Vec<(UserAbout, [Vec<f64>; 2])>,
    about: ScenarioAbout,
    /// Flows that are shown, and when each was last named.
    flows: Vec<(FlowAbout, f64)>,
    has_grid: bool,
    /// Why it does not answer; empty while it does.
    problem: String,
}

impl Live {
    /// One whose first reading is this, and its handle.
    pub fn new(id: String, source: Source, first: Reading) -> (Self, Handle) {
        let (sender, commands) = channel();
        let (events, _) = broadcast::channel(BACKLOG);
        let viewers = Arc::new(AtomicUsize::new(0));
        let handle = Handle::new(sender.clone(), Arc::clone(&viewers));
        let mut live = Self {
            id,
            source: Some(source),
            commands,
            sender,
            events,
            viewers,
            begun: Instant::now(),
            watched: None,
            generation: 0,
            times: Vec::new(),
            columns: Vec::new(),
            lanes: Vec::new(),
            about: about(),
            flows: Vec::new(),
            has_grid: false,
            problem: String::new(),
        };
        live.take(first);
        (live, handle)
    }

    /// Reads until nobody watches.
    pub fn run(mut self) {
        let Some(mut source) = self.source.take() else { return };
        let sender = self.sender.clone();
        let reader = std::thread::Builder::new().name(format!("live {}", self.id)).spawn(move || {
            loop {
                let begun = Instant::now();
                let read = source.read();
                let rest = if read.is_ok() { PERIOD.saturating_sub(begun.elapsed()) } else { RETRY };
                if sender.send(Command::Read(Box::new(read))).is_err() {
                    return;
                }
                std::thread::sleep(rest);
            }
        });
        if let Err(error) = reader {
            self.problem = format!("cannot start a thread: {error}");
        }
        loop {
            match self.commands.recv_timeout(LOOK) {
                Ok(Command::End) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(command) => self.on_command(command),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if self.viewers.load(Ordering::Relaxed) > 0 {
                self.watched = Some(Instant::now());
            }
            let is_left = match self.watched {
                Some(watched) => watched.elapsed() > UNWATCHED,
                None => self.begun.elapsed() > NOT_YET_WATCHED,
            };
            if is_left {
                return;
            }
        }
    }

    /// Answers; who asked may have gone.
    fn on_command(&mut self, command: Command) {
        let refused =
            || Refusal::conflict("what runs elsewhere is only watched: play a scenario to change it");
        match command {
            Command::Control(_, answer) => drop(answer.send(Err(refused()))),
            Command::Edit(_, answer) => drop(answer.send(Err(refused()))),
            Command::Text(answer) => drop(answer.send(Err(refused()))),
            Command::Describe(answer) => drop(answer.send(Ok(self.session()))),
            Command::Table(of, name, answer) => drop(answer.send(self.table(of, &name))),
            Command::Join(answer) => drop(answer.send(Ok(self.join()))),
            Command::Read(read) => match *read {
                Ok(reading) => self.take(reading),
                Err(problem) => {
                    if self.problem != problem {
                        self.problem = problem;
                        self.publish(vec![packet(&Message::State(self.state()))]);
                    }
                }
            },
            Command::End => {}
        }
    }

    /// Adds a row, and publishes it.
    fn take(&mut self, reading: Reading) {
        if self.times.len() >= ROWS {
            self.forget();
        }
        let (rows, lanes) = (self.times.len(), self.lanes.len());
        self.times.push(self.begun.elapsed().as_secs_f64());
        let Reading { name, cells, links, mut users, flows, values, prbs } = reading;
        let flows = self.shown(flows);
        let mut is_new = false;
        for (about, value) in values {
            if let Some((_, column)) = self.columns.iter_mut().find(|(known, _)| *known == about) {
                column.push(value);
                continue;
            }
            let before = self.columns.len();
            if before >= COLUMNS {
                self.columns.retain(|(known, _)| {
                    known.of != Subject::Flow || flows.iter().any(|flow| flow.name == known.name)
                });
                is_new |= self.columns.len() < before;
            }
            if self.columns.len() < COLUMNS {
                let mut column = vec![f64::NAN; rows];
                column.push(value);
                self.columns.push((about, column));
                is_new = true;
            }
        }
        // What it does not name any more has no value.
        self.columns.iter_mut().for_each(|(_, column)| column.resize(rows + 1, f64::NAN));
        self.has_grid |= prbs.is_some();
        for (user, prbs) in users.iter().zip(prbs.unwrap_or_default()) {
            let lanes_before = self.lanes.len();
            let known = self.lanes.iter().position(|(known, _)| known.name == user.name);
            if known.is_none() && self.lanes.len() < LANES {
                self.lanes.push((user.clone(), [vec![0.0; rows], vec![0.0; rows]]));
            }
            let Some((known, lanes)) = self.lanes.get_mut(known.unwrap_or(lanes_before)) else { continue };
            // It may be in another cell now.
            known.cell = user.cell;
            for (lane, value) in lanes.iter_mut().zip(prbs) {
                lane.push(value);
            }
        }
        self.lanes.iter_mut().flat_map(|(_, lanes)| lanes).for_each(|lane| lane.resize(rows + 1, 0.0));
        if self.has_grid {
            // Lanes are numbered by the users that were seen.
            users = self.lanes.iter().map(|(user, _)| user.clone()).collect();
        }
        let about = ScenarioAbout { name, cells, links, users, flows, ..about() };
        is_new |= about != self.about || lanes != self.lanes.len();
        self.about = about;
        let was = std::mem::take(&mut self.problem);
        let mut news = Vec::new();
        if is_new || !was.is_empty() {
            news.push(packet(&Message::Session(Box::new(self.session()))));
        }
        news.extend(self.frames(rows).into_iter().map(Packet::Binary));
        news.push(packet(&Message::State(self.state())));
        self.publish(news);
    }

    /// The flows that are shown when these are there now: those, and some that ended lately.
    fn shown(&mut self, flows: Vec<FlowAbout>) -> Vec<FlowAbout> {
        let now = self.times.last().copied().unwrap_or_default();
        for flow in flows {
            match self.flows.iter_mut().find(|(known, _)| known.name == flow.name) {
                Some(known) => *known = (flow, now),
                None => self.flows.push((flow, now)),
            }
        }
        self.flows.retain(|(_, named)| now - named <= ENDED.as_secs_f64());
        while self.flows.len() > MOST
            && let Some(ended) = self.flows.iter().position(|(_, named)| *named < now)
        {
            self.flows.remove(ended);
        }
        self.flows.iter().map(|(flow, _)| flow.clone()).collect()
    }

    /// Keeps the newer half of the rows; viewers join anew.
    fn forget(&mut self) {
        let old = self.times.len() / 2;
        self.times.drain(..old);
        self.columns.iter_mut().for_each(|(_, column)| drop(column.drain(..old)));
        self.columns.retain(|(_, column)| column.iter().any(|value| !value.is_nan()));
        self.lanes.iter_mut().flat_map(|(_, lanes)| lanes).for_each(|lane| drop(lane.drain(..old)));
        self.lanes.retain(|(_, lanes)| lanes.iter().flatten().any(|prbs| *prbs > 0.0));
        self.generation += 1;
        let _ = self.events.send(Event::Again);
    }

    fn publish(&self, news: Vec<Packet>) {
        // Nobody may be listening.
        let _ = self.events.send(Event::News(news.into()));
    }

    fn state(&self) -> PlayState {
        PlayState {
            generation: self.generation,
            revision: 0,
            now_s: self.times.last().copied().unwrap_or_default(),
            phase: if self.problem.is_empty() { Phase::Playing } else { Phase::Failed },
            speed: Speed::Times(1.0),
            reached: 1.0,
            rows: self.times.len() as u32,
            viewers: self.viewers.load(Ordering::Relaxed) as u32,
            problem: self.problem.clone(),
        }
    }

    fn session(&self) -> Session {
        let lanes = (0..).zip(&self.lanes).flat_map(|(number, (user, _))| {
            [false, true].map(|uplink| GridLane { user: user.name.clone(), number, uplink })
        });
        Session {
            id: self.id.clone(),
            about: self.about.clone(),
            state: self.state(),
            columns: self.columns.iter().map(|(about, _)| about.clone()).collect(),
            grid: self.has_grid.then(|| GridAbout { bin_s: PERIOD.as_secs_f64(), lanes: lanes.collect() }),
        }
    }

    /// Frames of the rows from `from` on.
    fn frames(&self, from: usize) -> Vec<bytes::Bytes> {
        let (generation, first, times) = (self.generation, from as u32, &self.times[from..]);
        let columns = self.columns.iter().map(|(_, column)| &column[from..]).collect();
        let mut frames = vec![Frame { kind: Kind::Rows, generation, first, times, columns }.encode()];
        if self.has_grid {
            let columns = self.lanes.iter().flat_map(|(_, lanes)| lanes).map(|lane| &lane[from..]).collect();
            // Times of bins are their beginnings: the readings before.
            let begins = (from..self.times.len()).map(|row| match row.checked_sub(1) {
                Some(before) => self.times[before],
                None => self.times[row] - PERIOD.as_secs_f64(),
            });
            let begins: Vec<f64> = begins.collect();
            frames.push(Frame { kind: Kind::Grid, generation, first, times: &begins, columns }.encode());
        }
        frames
    }

    fn join(&self) -> Joined {
        let events = self.events.subscribe();
        let session = text_of(&Message::Session(Box::new(self.session())));
        Joined { session, frames: self.frames(0), events }
    }

    fn table(&self, of: Subject, name: &str) -> Result<Series, Refusal> {
        let own = self.columns.iter().filter(|(about, _)| about.of == of && about.name == name);
        let time = Column { name: "time_s".to_owned(), values: self.times.clone() };
        let own = own.map(|(about, values)| Column { name: about.column.clone(), values: values.clone() });
        let columns: Vec<Column> = std::iter::once(time).chain(own).collect();
        if columns.len() == 1 {
            return Err(Refusal::not_found(format!("there is none called {name:?}")));
        }
        Ok(Series { columns })
    }
}

/// What a source says nothing about.
fn about() -> ScenarioAbout {
    ScenarioAbout {
        name: String::new(),
        duration_s: 0.0,
        sample_s: PERIOD.as_secs_f64(),
        seed: String::new(),
        hosts: Vec::new(),
        links: Vec::new(),
        cells: Vec::new(),
        users: Vec::new(),
        flows: Vec::new(),
        proxies: Vec::new(),
        changes: Vec::new(),
        series_bytes: 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reading with one flow that has three columns.
    fn reading(flow: usize) -> Reading {
        let mut reading = Reading::default();
        let name = format!("flow {flow}");
        for column in ["goodput_bit_s", "cwnd_bytes", "srtt_s"] {
            reading.push(Subject::Flow, &name, column, Some(flow as f64));
        }
        reading.push_flow(&name, ["a".to_owned(), "b".to_owned()], "cubic", "");
        reading.users.push(UserAbout {
            name: "10.0.0.2".to_owned(),
            cell: 0,
            position_m: None,
            can_move: false,
        });
        reading
    }

    #[test]
    fn flows_come_and_go_for_ever_in_bounded_memory_and_the_latest_are_shown() {
        let source = Source::new("127.0.0.1:9".parse().unwrap());
        let (mut live, _handle) = Live::new("1".to_owned(), source, reading(0));
        for flow in 1..2 * ROWS {
            live.take(reading(flow));
            assert!(live.columns.len() <= COLUMNS && live.flows.len() <= MOST && live.times.len() <= ROWS);
            let name = format!("flow {flow}");
            assert!(live.about.flows.iter().any(|known| known.name == name));
            let column = live.columns.iter().find(|(about, _)| about.name == name).unwrap();
            assert_eq!((column.1.len(), column.1.last()), (live.times.len(), Some(&(flow as f64))));
        }
        // It knows no PRBs, and its users are named all the same.
        assert_eq!(live.about.users.len(), 1);
    }
}
