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

use ranpace_network::{Column, Series};
use tokio::sync::broadcast;

use crate::frame::{Frame, Kind};
use crate::live::reading::Reading;
use crate::live::source::Source;
use crate::problem::Refusal;
use crate::protocol::{
    ColumnAbout, GridAbout, GridLane, Message, Phase, PlayState, ScenarioAbout, Session, Speed, Subject,
    UserAbout,
};
use crate::session::{BACKLOG, Command, Event, Handle, Joined, NOT_YET_WATCHED, UNWATCHED, text_of};

/// Time between two readings: ten a second.
const PERIOD: Duration = Duration::from_millis(100);
/// Time between two attempts after a source did not answer. Ours.
const RETRY: Duration = Duration::from_secs(1);
/// Time between two looks whether somebody watches.
const LOOK: Duration = Duration::from_millis(500);
/// Rows that are kept: ten minutes. When there are more, the older half is forgotten.
const ROWS: usize = 6_000;
/// Columns that are kept: with [`ROWS`], 24 MB. Those of flows that come later are left out.
const COLUMNS: usize = 500;

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
                        self.send_message(&Message::State(self.state()));
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
        let (rows, columns, lanes) = (self.times.len(), self.columns.len(), self.lanes.len());
        self.times.push(self.begun.elapsed().as_secs_f64());
        let Reading { name, cells, links, users, flows, values, prbs } = reading;
        for (about, value) in values {
            if let Some((_, column)) = self.columns.iter_mut().find(|(known, _)| *known == about) {
                column.push(value);
            } else if self.columns.len() < COLUMNS {
                let mut column = vec![f64::NAN; rows];
                column.push(value);
                self.columns.push((about, column));
            }
        }
        // What it does not name any more has no value.
        self.columns.iter_mut().for_each(|(_, column)| column.resize(rows + 1, f64::NAN));
        self.has_grid |= prbs.is_some();
        for (user, prbs) in users.iter().zip(prbs.unwrap_or_default()) {
            let place =
                self.lanes.iter().position(|(known, _)| known.name == user.name).unwrap_or_else(|| {
                    self.lanes.push((user.clone(), [vec![0.0; rows], vec![0.0; rows]]));
                    self.lanes.len() - 1
                });
            // It may be in another cell now.
            self.lanes[place].0.cell = user.cell;
            for (lane, value) in self.lanes[place].1.iter_mut().zip(prbs) {
                lane.push(value);
            }
        }
        self.lanes.iter_mut().flat_map(|(_, lanes)| lanes).for_each(|lane| lane.resize(rows + 1, 0.0));
        // Lanes are numbered by the users that were seen.
        let users = self.lanes.iter().map(|(user, _)| user.clone()).collect();
        let about = ScenarioAbout { name, cells, links, users, flows, ..about() };
        let is_new = about != self.about || columns != self.columns.len() || lanes != self.lanes.len();
        self.about = about;
        let was = std::mem::take(&mut self.problem);
        if is_new || !was.is_empty() {
            self.send_message(&Message::Session(Box::new(self.session())));
        }
        self.frames(rows).into_iter().for_each(|frame| drop(self.events.send(Event::Frame(frame))));
        self.send_message(&Message::State(self.state()));
    }

    /// Keeps the newer half of the rows; viewers join anew.
    fn forget(&mut self) {
        let old = self.times.len() / 2;
        self.times.drain(..old);
        self.columns.iter_mut().for_each(|(_, column)| drop(column.drain(..old)));
        self.columns.retain(|(_, column)| column.iter().any(|value| !value.is_nan()));
        self.lanes.iter_mut().flat_map(|(_, lanes)| lanes).for_each(|lane| drop(lane.drain(..old)));
        self.generation += 1;
        let _ = self.events.send(Event::Again);
    }

    fn send_message(&self, message: &Message) {
        // Nobody may be listening.
        let _ = self.events.send(Event::Text(text_of(message)));
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
            frames.push(Frame { kind: Kind::Grid, generation, first, times, columns }.encode());
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
