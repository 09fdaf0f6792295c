//! The settings of an emulation.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::mpsc::SyncSender;

use ranpace_units::Span;

use crate::delivery::Delivery;
use crate::live::Snapshot;
use crate::workloads::Workloads;

/// A program that is to run behind a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Name of the host.
    pub host: String,
    /// The program and its arguments; at least the program.
    pub words: Vec<OsString>,
}

/// The plan; by default nothing is run, without an end.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The emulation ends with this program.
    pub main: Option<Program>,
    /// These run beside it, begin before it and are ended with it.
    pub beside: Vec<Program>,
    /// The emulation ends after this time at the latest.
    pub limit: Option<Span>,
    /// The scenario's own flows are played beside the programs, if any.
    pub workloads: Option<Workloads>,
    /// The way in which packets are handed over.
    pub delivery: Delivery,
    /// Processors may sleep between packets, and wake late.
    pub saves_power: bool,
    /// Its views.
    pub views: Views,
    /// The command that calls [`crate::enter`], and its first arguments.
    pub inside: (PathBuf, Vec<OsString>),
}

/// Outputs of an emulation besides its results.
#[derive(Clone, Debug, Default)]
pub struct Views {
    /// All packets are written to this file.
    pub capture: Option<PathBuf>,
    /// Is told how it is, ten times a second; who is slow misses some.
    pub live: Option<SyncSender<Snapshot>>,
    /// Radio information is written to this file, a line of JSON for each hint.
    pub hints: Option<PathBuf>,
    /// What programs print goes to this file instead, and they have nothing to read.
    pub output: Option<PathBuf>,
}
