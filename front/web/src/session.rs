//! A run that is played for the page: a thread that steps the simulation, takes commands between two steps, and publishes rows.
//!
//! **The scenario's text is the one truth.** A change during the run is an edit of the text that takes effect after now
//! ([`compose::edit`]). The edited scenario is then played from 0 to where the run was, and goes on from there: the simulator is
//! deterministic and hundreds of times faster than the clock, so that what the page shows is what `ranpace run` makes of the text.
//! Each time the rows begin anew, and with them a generation.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use axum::extract::ws::Message as Packet;
use bytes::Bytes;
use ranpace_lab::{Job, TraceLibrary};
use ranpace_radio::cell::CellSubscription;
use ranpace_sim::{Series, SeriesSoFar, Simulation, link_names};
use ranpace_units::{Span, Time};
use tokio::sync::broadcast;

use crate::about::about;
use crate::compose;
use crate::frame::{Frame, Kind};
use crate::grid::{Grid, GridReader};
use crate::handle::{BACKLOG, Command, Event, Handle, Joined, NOT_YET_WATCHED, UNWATCHED, packet, text_of};
use crate::limits;
use crate::problem::Refusal;
use crate::protocol::{
    Action, ColumnAbout, Edit, Edited, Message, Most, Phase, PlayState, Session, Speed, Subject,
};

/// Time between two publications: 20 a second.
const TICK: Duration = Duration::from_millis(50);
/// Virtual time between two looks at the clock and the commands. Ours: some milliseconds of work in a busy cell.
const STEP: Span = Span::from_millis(5);
/// Time between two looks whether a run that waits is still watched.
const IDLE: Duration = Duration::from_millis(500);
/// Slowest and fastest speed.
const SPEEDS: std::ops::RangeInclusive<f64> = 0.01..=1_000.0;
/// Time over which the speed that is reached is measured.
const MEASURED: Duration = Duration::from_millis(500);

/// Checks a scenario's text, and prepares it for playing.
pub fn prepare(text: String, library: &mut TraceLibrary) -> Result<Job, Refusal> {
    if text.len() > limits::SCENARIO {
        let (most, found) = (limits::SCENARIO >> 10, text.len() >> 10);
        return Err(Refusal::too_large(format!("expected a scenario of at most {most} KiB, found {found}")));
    }
    let mut job = Job::new("", text, "scenario.toml", library)?;
    limits::check(&job.scenario)?;
    job.label.clone_from(&job.scenario.name);
    Ok(job)
}

/// A session that has not begun.
pub struct Engine {
    id: String,
    trace_library: TraceLibrary,
    job: Arc<Job>,
    commands: Receiver<Command>,
    events: broadcast::Sender<Event>,
    viewers: Arc<AtomicUsize>,
    generation: u32,
    revision: u32,
    speed: Speed,
    is_playing: bool,
    /// A time to reach as fast as it goes.
    goal: Option<Time>,
    /// The clock's time and the virtual time from which the speed counts.
    anchor: (Instant, Time),
    /// The same, from which the speed that is reached is measured, and that speed.
    measured: (Instant, Time),
    reached: f64,
    /// When somebody watched it last.
    watched: Option<Instant>,
    begun: Instant,
    published: (Instant, Option<PlayState>),
}

/// How a life of the simulation ends.
enum Next {
    /// The scenario is played again.
    Again,
    /// The run ends.
    End,
}

/// A simulation and what was published of it.
struct View<'a> {
    simulation: Simulation<'a>,
    grid: Option<Rc<RefCell<Grid>>>,
    now: Time,
    end: Time,
    /// Time between two rows.
    sample: Span,
    columns: Vec<ColumnAbout>,
    rows: usize,
    bins: usize,
    /// Nothing is published before the goal is reached.
    is_quiet: bool,
    /// What a viewer got that joined after as many rows and bins.
    joined: Option<(usize, usize, Vec<Bytes>)>,
}

impl Engine {
    /// A session for this job, and its handle.
    pub fn new(
        id: String,
        job: Job,
        trace_library: TraceLibrary,
        speed: Speed,
        paused: bool,
    ) -> Result<(Self, Handle), Refusal> {
        check_speed(speed)?;
        let (sender, commands) = channel();
        let (events, _) = broadcast::channel(BACKLOG);
        let viewers = Arc::new(AtomicUsize::new(0));
        let now = Instant::now();
        let engine = Self {
            id,
            trace_library,
            job: Arc::new(job),
            commands,
            events,
            viewers: Arc::clone(&viewers),
            generation: 0,
            revision: 0,
            speed,
            is_playing: !paused,
            goal: None,
            anchor: (now, Time::ZERO),
            measured: (now, Time::ZERO),
            reached: 0.0,
            watched: None,
            begun: now,
            published: (now, None),
        };
        Ok((engine, Handle::new(sender, viewers)))
    }

    /// Plays until it is ended, or nobody watches.
    pub fn run(mut self) {
        loop {
            let job = Arc::clone(&self.job);
            match self.play(&job) {
                Next::End => break,
                Next::Again => {
                    self.generation += 1;
                    self.restart_clock(Time::ZERO);
                }
            }
        }
    }

    /// Plays a scenario until it is changed.
    fn play(&mut self, job: &Job) -> Next {
        let grid = (!job.scenario.cells.is_empty()).then(|| Rc::new(RefCell::new(Grid::new(&job.scenario))));
        let mut reader = grid.clone().map(GridReader);
        let mut simulation = Simulation::new(&job.scenario);
        if let Some(reader) = &mut reader {
            simulation = simulation.with_reports(CellSubscription::EVERY_SLOT, reader);
        }
        let mut view = View {
            simulation,
            grid,
            now: Time::ZERO,
            end: Time::ZERO + job.scenario.duration,
            sample: job.scenario.sample,
            columns: Vec::new(),
            rows: 0,
            bins: 0,
            is_quiet: self.goal.is_some(),
            joined: None,
        };
        if !view.is_quiet && self.generation > 0 {
            self.send(Event::Again);
        }
        loop {
            if let Some(next) = self.take_commands(job, &mut view).or_else(|| self.look_for_viewers()) {
                return next;
            }
            self.advance(&mut view);
            if self.published.0.elapsed() >= TICK || view.is_quiet && self.goal.is_none() {
                self.publish(job, &mut view);
            }
        }
    }

    /// Handles what was asked; waits for it if there is nothing else to do.
    fn take_commands(&mut self, job: &Job, view: &mut View<'_>) -> Option<Next> {
        let is_behind = self.is_playing && self.target(view) > view.now + STEP;
        let wait = match (self.goal, self.is_playing) {
            (Some(_), _) => Duration::ZERO,
            (None, true) if is_behind => Duration::ZERO,
            (None, true) => TICK.saturating_sub(self.published.0.elapsed()).max(Duration::from_millis(1)),
            (None, false) if self.published.1.as_ref() == Some(&self.state(view)) => IDLE,
            (None, false) => TICK,
        };
        let mut command = match self.commands.recv_timeout(wait) {
            Ok(command) => Some(command),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return Some(Next::End),
        };
        while let Some(asked) = command {
            if let Some(next) = self.on_command(asked, job, view) {
                return Some(next);
            }
            command = self.commands.try_recv().ok();
        }
        None
    }

    /// Does what was asked. Who asked may have gone: an answer that nobody takes is no fault.
    fn on_command(&mut self, command: Command, job: &Job, view: &mut View<'_>) -> Option<Next> {
        match command {
            Command::Control(action, answer) => {
                let (outcome, next) = match self.control(&action, view) {
                    Ok(next) => (Ok(self.state(view)), next),
                    Err(refusal) => (Err(refusal), None),
                };
                let _ = answer.send(outcome);
                return next;
            }
            Command::Edit(edit, answer) => match self.edit(&edit, job, view) {
                Ok(edited) => {
                    let _ = answer.send(Ok(edited));
                    return Some(Next::Again);
                }
                Err(refusal) => {
                    let _ = answer.send(Err(refusal));
                }
            },
            Command::Describe(answer) => {
                let _ = answer.send(Ok(self.session(job, view)));
            }
            Command::Text(answer) => {
                let _ = answer.send(Ok(job.text.clone()));
            }
            Command::Table(of, name, answer) => {
                let _ = answer.send(table(job, &view.simulation.series_since(0), of, &name));
            }
            Command::Join(answer) => {
                let _ = answer.send(self.join(job, view));
            }
            // A simulation reads no live source.
            Command::Read(_) => {}
            Command::End => return Some(Next::End),
        }
        None
    }

    fn control(&mut self, action: &Action, view: &View<'_>) -> Result<Option<Next>, Refusal> {
        match *action {
            Action::Play {} if view.now >= view.end => {
                // From the beginning.
                (self.is_playing, self.goal) = (true, None);
                return Ok(Some(Next::Again));
            }
            Action::Play {} => {
                self.is_playing = true;
                self.restart_clock(view.now);
            }
            Action::Pause {} => self.is_playing = false,
            Action::Step { by_s } => {
                let by = by_s.map_or(Ok(view.sample), |by_s| span("by_s", by_s))?;
                self.is_playing = false;
                self.goal = Some((self.goal.unwrap_or(view.now) + by).min(view.end));
            }
            Action::Seek { to_s } => {
                let to = (Time::ZERO + span("to_s", to_s)?).min(view.end);
                (self.is_playing, self.goal) = (false, Some(to));
                if to < view.now {
                    return Ok(Some(Next::Again));
                }
            }
            Action::Speed { speed } => {
                check_speed(speed)?;
                self.speed = speed;
                self.restart_clock(view.now);
            }
        }
        Ok(None)
    }

    /// Makes a change of the scenario, which is then played again up to now.
    fn edit(&mut self, edit: &Edit, job: &Job, view: &View<'_>) -> Result<Edited, Refusal> {
        let now = self.goal.unwrap_or(view.now).max(view.now);
        // The next whole millisecond: what has happened stays as it is.
        let at = Time::from_millis(now.since(Time::ZERO).as_millis() + 1);
        if at >= view.end && !matches!(edit, Edit::Replace { .. }) {
            return Err(Refusal::conflict(format!(
                "the run has reached its end at {}; jump back to change something, or play it again",
                view.end
            )));
        }
        let change = compose::edit(&job.text, edit, at)?;
        let job = prepare(change.text, &mut self.trace_library)?;
        let about = about(&job.text, &job.scenario);
        self.goal = Some(now.min(Time::ZERO + job.scenario.duration));
        self.job = Arc::new(job);
        self.revision += 1;
        Ok(Edited { at_s: change.at.as_secs_f64(), what: change.what, about })
    }

    /// Ends a run that nobody watches.
    fn look_for_viewers(&mut self) -> Option<Next> {
        if self.viewers.load(Ordering::Relaxed) > 0 {
            self.watched = Some(Instant::now());
        }
        let is_left = match self.watched {
            Some(watched) => watched.elapsed() > UNWATCHED,
            None => self.begun.elapsed() > NOT_YET_WATCHED,
        };
        is_left.then_some(Next::End)
    }

    /// From now on the speed counts from this time.
    fn restart_clock(&mut self, now: Time) {
        self.anchor = (Instant::now(), now);
        (self.measured, self.reached) = (self.anchor, 0.0);
    }

    /// The time to which it should have been played by now.
    fn target(&self, view: &View<'_>) -> Time {
        let target = match (self.goal, self.is_playing, self.speed) {
            (Some(goal), _, _) => goal,
            (None, false, _) => view.now,
            (None, true, Speed::Most(Most::Most)) => view.end,
            (None, true, Speed::Times(times)) => {
                self.anchor.1 + Span::from_secs_f64(self.anchor.0.elapsed().as_secs_f64() * times)
            }
        };
        target.min(view.end)
    }

    /// Plays up to the target, or for a tick if that takes longer.
    fn advance(&mut self, view: &mut View<'_>) {
        let begun = Instant::now();
        let target = self.target(view);
        while view.now < target && begun.elapsed() < TICK {
            view.now = view.simulation.advance((view.now + STEP).min(target));
        }
        if view.now < target && self.goal.is_none() {
            // It cannot keep up: what is missed is not made up for.
            self.anchor = (Instant::now(), view.now);
        }
        if self.goal.is_some_and(|goal| view.now >= goal) {
            self.goal = None;
            self.restart_clock(view.now);
        }
        if view.now >= view.end {
            self.is_playing = false;
        }
    }

    /// Sends what is new.
    fn publish(&mut self, job: &Job, view: &mut View<'_>) {
        let since = self.measured.0.elapsed();
        if !self.is_playing {
            self.reached = 0.0;
        } else if since >= MEASURED {
            self.reached = view.now.since(self.measured.1).as_secs_f64() / since.as_secs_f64();
            self.measured = (Instant::now(), view.now);
        }
        if view.is_quiet && self.goal.is_none() {
            view.is_quiet = false;
            // Viewers join again, and get all rows at once.
            self.send(Event::Again);
        }
        let mut news = Vec::new();
        if !view.is_quiet {
            let (columns, frames) = view.take_news(job, self.generation);
            if columns {
                let session = self.session(job, view);
                news.push(packet(&Message::Session(Box::new(session))));
            }
            news.extend(frames.into_iter().map(Packet::Binary));
        }
        let state = self.state(view);
        if self.published.1.as_ref() != Some(&state) {
            news.push(packet(&Message::State(state.clone())));
        }
        if !news.is_empty() {
            self.send(Event::News(news.into()));
        }
        self.published = (Instant::now(), Some(state));
    }

    /// Nobody may be listening.
    fn send(&self, event: Event) {
        let _ = self.events.send(event);
    }

    fn state(&self, view: &View<'_>) -> PlayState {
        let phase = if self.goal.is_some() {
            Phase::CatchingUp
        } else if view.now >= view.end {
            Phase::Ended
        } else if self.is_playing {
            Phase::Playing
        } else {
            Phase::Paused
        };
        PlayState {
            generation: self.generation,
            revision: self.revision,
            now_s: view.now.as_secs_f64(),
            phase,
            speed: self.speed,
            reached: self.reached,
            rows: view.rows as u32,
            viewers: self.viewers.load(Ordering::Relaxed) as u32,
            problem: String::new(),
        }
    }

    fn session(&self, job: &Job, view: &View<'_>) -> Session {
        Session {
            id: self.id.clone(),
            about: about(&job.text, &job.scenario),
            state: self.state(view),
            columns: view.columns.clone(),
            grid: view.grid.as_ref().map(|grid| grid.borrow().about()),
        }
    }

    /// A viewer gets what the others have got.
    fn join(&mut self, job: &Job, view: &mut View<'_>) -> Result<Joined, Refusal> {
        // All rows so far have the columns that the session names.
        self.publish(job, view);
        let events = self.events.subscribe();
        let session = text_of(&Message::Session(Box::new(self.session(job, view))));
        let known = view.joined.as_ref().filter(|(rows, bins, _)| (*rows, *bins) == (view.rows, view.bins));
        let frames = match known {
            Some((_, _, frames)) => frames.clone(),
            None => {
                let frames =
                    view.frames(self.generation, (0, view.rows), (0, view.bins), &view.series(job, 0));
                view.joined = Some((view.rows, view.bins, frames.clone()));
                frames
            }
        };
        Ok(Joined { session, frames, events })
    }
}

/// A column of a run, with its values.
type NamedColumn = (ColumnAbout, Vec<f64>);

impl View<'_> {
    /// Times and columns of the rows from `from` on.
    fn series(&self, job: &Job, from: usize) -> (Vec<f64>, Vec<NamedColumn>) {
        columns(job, self.simulation.series_since(from))
    }

    /// Frames of what was not published yet, and whether there are other columns than before.
    fn take_news(&mut self, job: &Job, generation: u32) -> (bool, Vec<Bytes>) {
        let series = self.series(job, self.rows);
        let rows = self.rows + series.0.len();
        let bins = self.grid.as_ref().map_or(0, |grid| grid.borrow().complete(self.now));
        let is_new = rows > self.rows && !self.columns.iter().eq(series.1.iter().map(|(about, _)| about));
        if is_new {
            self.columns = series.1.iter().map(|(about, _)| about.clone()).collect();
        }
        let frames = self.frames(generation, (self.rows, rows), (self.bins, bins), &series);
        (self.rows, self.bins) = (rows, bins);
        (is_new, frames)
    }

    /// Frames of these rows and bins of the grid; `series` begins with the first of the rows.
    fn frames(
        &self,
        generation: u32,
        (from, to): (usize, usize),
        bins: (usize, usize),
        (times, columns): &(Vec<f64>, Vec<NamedColumn>),
    ) -> Vec<Bytes> {
        let mut frames = Vec::new();
        if to > from {
            let columns = columns.iter().map(|(_, values)| values.as_slice()).collect();
            let times = &times[..times.len().min(to - from)];
            frames.push(Frame { kind: Kind::Rows, generation, first: from as u32, times, columns }.encode());
        }
        if let Some(grid) = self.grid.as_ref().filter(|_| bins.1 > bins.0) {
            let (times, lanes) = grid.borrow().rows(bins.0, bins.1);
            let columns = lanes.iter().map(Vec::as_slice).collect();
            let (first, times) = (bins.0 as u32, times.as_slice());
            frames.push(Frame { kind: Kind::Grid, generation, first, times, columns }.encode());
        }
        frames
    }
}

/// Times and columns of a run: of its flows, then of its links, then of its users.
fn columns(job: &Job, series: SeriesSoFar) -> (Vec<f64>, Vec<NamedColumn>) {
    let mut times = Vec::new();
    let mut all = Vec::new();
    let scenario = &job.scenario;
    let flows = scenario.flows.iter().map(|flow| flow.name.clone()).zip(series.flows);
    let links = link_names(scenario).into_iter().zip(series.links);
    let users = scenario.users.iter().map(|user| user.name.clone()).zip(series.users);
    let named = (flows.map(|named| (Subject::Flow, named)))
        .chain(links.map(|named| (Subject::Link, named)))
        .chain(users.map(|named| (Subject::User, named)));
    for (of, (name, series)) in named {
        for column in series.columns {
            if column.name == "time_s" {
                times = column.values;
            } else {
                all.push((ColumnAbout { of, name: name.clone(), column: column.name }, column.values));
            }
        }
    }
    (times, all)
}

/// The series of a flow, a link or a user.
fn table(job: &Job, series: &SeriesSoFar, of: Subject, name: &str) -> Result<Series, Refusal> {
    let scenario = &job.scenario;
    let (names, tables): (Vec<String>, _) = match of {
        Subject::Flow => (scenario.flows.iter().map(|flow| flow.name.clone()).collect(), &series.flows),
        Subject::Link => (link_names(scenario), &series.links),
        Subject::User => (scenario.users.iter().map(|user| user.name.clone()).collect(), &series.users),
    };
    let found = names.iter().position(|own| own == name).and_then(|index| tables.get(index));
    found.cloned().ok_or_else(|| {
        Refusal::not_found(format!("there is none called {name:?}; expected one of {}", names.join(", ")))
    })
}

fn span(name: &str, seconds: f64) -> Result<Span, Refusal> {
    if (0.0..=limits::DURATION.as_secs_f64()).contains(&seconds) {
        return Ok(Span::from_secs_f64(seconds));
    }
    Err(Refusal::impossible(format!(
        "{name}: expected seconds from 0 to {}, found {seconds}",
        limits::DURATION.as_secs_f64()
    )))
}

fn check_speed(speed: Speed) -> Result<(), Refusal> {
    match speed {
        Speed::Times(times) if !SPEEDS.contains(&times) => Err(Refusal::impossible(format!(
            "speed: expected {} to {}, or \"most\", found {times}",
            SPEEDS.start(),
            SPEEDS.end()
        ))),
        _ => Ok(()),
    }
}
