//! How others reach a session, which is a thread of its own: commands to it, and what it publishes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use axum::extract::ws::{Message as Packet, Utf8Bytes};
use bytes::Bytes;
use ranpace_sim::Series;
use tokio::sync::{broadcast, oneshot};

use crate::live::reading::Reading;
use crate::problem::Refusal;
use crate::protocol::{Action, Edit, Edited, Message, PlayState, Session, Subject};

/// Time after which a session ends that nobody watches, and that nobody has watched yet. Ours: a page that is loaded again comes back.
pub const UNWATCHED: Duration = Duration::from_secs(10);
/// See [`UNWATCHED`].
pub const NOT_YET_WATCHED: Duration = Duration::from_secs(30);
/// Events that a viewer may be behind, before it begins anew.
pub const BACKLOG: usize = 128;

/// What a session publishes to its viewers.
#[derive(Clone, Debug)]
pub enum Event {
    /// Messages and frames of one moment, in their order. They are sent together: a system call for each would be most of what a viewer costs.
    News(Arc<[Packet]>),
    /// The rows begin anew: the viewer joins again.
    Again,
}

/// A message as a packet of a stream.
pub fn packet(message: &Message) -> Packet {
    Packet::Text(text_of(message))
}

/// The text of a message.
pub fn text_of(message: &Message) -> Utf8Bytes {
    // Structs of numbers and texts always become JSON.
    serde_json::to_string(message).unwrap_or_default().into()
}

/// What a viewer gets when it joins: everything so far, and then the events.
#[derive(Debug)]
pub struct Joined {
    /// The session's message.
    pub session: Utf8Bytes,
    /// Frames of all rows so far.
    pub frames: Vec<Bytes>,
    /// What follows.
    pub events: broadcast::Receiver<Event>,
}

/// Where an answer goes.
pub type Answer<T> = oneshot::Sender<Result<T, Refusal>>;

/// What a run, or a live source, is asked.
#[derive(Debug)]
pub enum Command {
    /// Play, pause, step, jump.
    Control(Action, Answer<PlayState>),
    /// Change the scenario.
    Edit(Edit, Answer<Edited>),
    /// Say what it is.
    Describe(Answer<Session>),
    /// Give the scenario's text.
    Text(Answer<String>),
    /// Give the rows of a flow, link or user.
    Table(Subject, String, Answer<Series>),
    /// Let a viewer in.
    Join(Answer<Joined>),
    /// A live source has answered.
    Read(Box<Result<Reading, String>>),
    /// End.
    End,
}

/// A running session, for those who ask it.
#[derive(Clone, Debug)]
pub struct Handle {
    commands: Sender<Command>,
    viewers: Arc<AtomicUsize>,
}

/// A viewer, counted until this is dropped.
#[derive(Debug)]
pub struct Viewer(Arc<AtomicUsize>);

impl Drop for Viewer {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Handle {
    /// For those who ask what takes the other end of `commands`.
    pub fn new(commands: Sender<Command>, viewers: Arc<AtomicUsize>) -> Self {
        Self { commands, viewers }
    }

    async fn ask<T>(&self, command: impl FnOnce(Answer<T>) -> Command) -> Result<T, Refusal> {
        let gone = || Refusal::not_found("the run is gone: it ended, or nobody watched it");
        let (answer, answered) = oneshot::channel();
        self.commands.send(command(answer)).map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }

    /// Plays, pauses, steps, jumps.
    pub async fn control(&self, action: Action) -> Result<PlayState, Refusal> {
        self.ask(|answer| Command::Control(action, answer)).await
    }

    /// Changes the scenario from now on.
    pub async fn edit(&self, edit: Edit) -> Result<Edited, Refusal> {
        self.ask(|answer| Command::Edit(edit, answer)).await
    }

    /// What it is, and where.
    pub async fn describe(&self) -> Result<Session, Refusal> {
        self.ask(Command::Describe).await
    }

    /// The scenario with all changes.
    pub async fn text(&self) -> Result<String, Refusal> {
        self.ask(Command::Text).await
    }

    /// The rows so far of a flow, a link or a user.
    pub async fn table(&self, of: Subject, name: String) -> Result<Series, Refusal> {
        self.ask(|answer| Command::Table(of, name, answer)).await
    }

    /// Everything so far, and what follows.
    pub async fn join(&self) -> Result<Joined, Refusal> {
        self.ask(Command::Join).await
    }

    /// Counts one more viewer.
    pub fn enter(&self) -> Viewer {
        self.viewers.fetch_add(1, Ordering::Relaxed);
        Viewer(Arc::clone(&self.viewers))
    }

    /// Viewers now.
    pub fn viewers(&self) -> usize {
        self.viewers.load(Ordering::Relaxed)
    }

    /// Ends the run; it may have ended before.
    pub fn end(&self) {
        let _ = self.commands.send(Command::End);
    }
}
