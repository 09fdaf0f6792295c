//! The settings of an emulation.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc::SyncSender;

use ranpace_units::{Span, Time};

use crate::delivery::Delivery;
use crate::live::Snapshot;
use crate::workloads::Workloads;

/// A program to run behind a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Name of the host.
    pub host: String,
    /// The program and its arguments; at least the program.
    pub words: Vec<OsString>,
}

/// A daemon of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Daemon {
    /// What errors call it.
    pub name: String,
    /// The program, and its host.
    pub program: Program,
    /// What it answers at when it is ready.
    pub ready: Ready,
    /// It starts at this time; at zero, it is ready before the emulation begins.
    pub from: Time,
    /// It is ended at this time, and started again at the second one.
    pub until: Option<(Time, Option<Time>)>,
    /// The file that has its output.
    pub log: PathBuf,
}

/// What answers when a daemon is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ready {
    /// A Unix socket.
    Socket(PathBuf),
    /// A TCP port, in the daemon's network namespace.
    Port(SocketAddr),
}

/// The plan; by default no program runs, and there is no time limit.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The emulation ends with this program.
    pub main: Option<Program>,
    /// Programs that run beside it, start before it and are ended with it.
    pub beside: Vec<Program>,
    /// Files in the emulation's folder ([`crate::own_folder`]), for its own user alone: their names and contents.
    pub files: Vec<(String, String)>,
    /// Daemons of hosts, in the order in which they start.
    pub daemons: Vec<Daemon>,
    /// The emulation ends after this time at the latest.
    pub limit: Option<Span>,
    /// Runs the scenario's own flows, if set.
    pub workloads: Option<Workloads>,
    /// How packets are delivered.
    pub delivery: Delivery,
    /// Processors may sleep between packets, and wake late.
    pub saves_power: bool,
    /// Additional outputs.
    pub views: Views,
    /// The command that calls [`crate::enter`], and its first arguments.
    pub inside: (PathBuf, Vec<OsString>),
}

/// Outputs of an emulation besides its results.
#[derive(Clone, Debug, Default)]
pub struct Views {
    /// All packets are written to this file.
    pub capture: Option<PathBuf>,
    /// Receives a status ten times a second; a slow receiver misses some.
    pub live: Option<SyncSender<Snapshot>>,
    /// Radio information is written to this file, one line of JSON per hint.
    pub hints: Option<PathBuf>,
    /// The cells' reports of every slot are published at this Unix socket, as lines of JSON.
    pub rnis: Option<PathBuf>,
    /// Programs' output goes to this file instead of the terminal, and their input is empty.
    pub output: Option<PathBuf>,
}
