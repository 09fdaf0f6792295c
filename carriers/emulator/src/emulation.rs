//! An emulation from beginning to end: namespaces, loop, programs, and what is left to tell.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use ranpace_sim::RunResult;
use ranpace_units::Span;

use crate::devices::Device;
use crate::estate::{Estate, EstateError};
use crate::honesty::Honesty;
use crate::merge::merge;
use crate::pace::{self, Delivery};
use crate::player::Player;
use crate::programs::{Program, Running, write_hosts};
use crate::ways::{Ways, WaysError};
use crate::workloads::{WorkloadError, Workloads};

/// How often it is looked whether programs have ended.
const BEAT: Duration = Duration::from_millis(10);
/// What programs get to end by themselves after Ctrl-C, which they hear too.
const GRACE: Duration = Duration::from_secs(2);

/// Why an emulation did not come to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmulationError {
    /// The scenario cannot be emulated.
    #[error(transparent)]
    Ways(#[from] WaysError),
    /// A program is to run behind a host that has no namespace.
    #[error("no host {name:?} to run a program behind; there are {known}")]
    Host {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// Namespaces, devices or programs could not be had.
    #[error(transparent)]
    Estate(#[from] EstateError),
    /// The scenario's workloads cannot be played.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// Sockets of workloads, or what the kernel says of TCP, could not be had.
    #[error("the sockets of the workloads failed: {0}")]
    Sockets(io::Error),
    /// The loop failed.
    #[error("the loop between the devices failed: {0}")]
    Loop(io::Error),
}

/// What is to be done; by default nothing, without an end.
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
    /// How packets are handed over.
    pub delivery: Delivery,
    /// The command that calls [`crate::enter`], and its first arguments.
    pub inside: (PathBuf, Vec<OsString>),
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// What links, cells and ways carried. With workloads its flows are those of the scenario first, in the scenario's order and
    /// under their names; their algorithm is "kernel cubic" or the like. Then come those ways that carried something of programs;
    /// their algorithm is "kernel". Last come their TCP connections, with the kernel's figures.
    pub result: RunResult,
    /// Whether the machine kept up.
    pub honesty: Honesty,
    /// Exit status of the main program; `None` if there was none, or it was ended.
    pub code: Option<i32>,
    /// Whether it was stopped from outside.
    pub interrupted: bool,
    /// What went otherwise than the scenario says.
    pub notes: Vec<String>,
}

/// Emulates until the main program ends, the time is over or `stop` is set. `ready` is told the names of the namespaces
/// when packets can cross, before programs start.
pub fn emulate(
    ways: &Ways,
    plan: &Plan,
    stop: &AtomicBool,
    ready: impl FnOnce(&[String]),
) -> Result<Outcome, EmulationError> {
    let place = |program: &Program| {
        ways.place(&program.host).ok_or_else(|| EmulationError::Host {
            name: program.host.clone(),
            known: (0..ways.hosts.len()).map(|place| ways.name(place)).collect::<Vec<_>>().join(", "),
        })
    };
    let programs: Vec<(&Program, usize)> = (plan.beside.iter().chain(&plan.main))
        .map(|program| Ok((program, place(program)?)))
        .collect::<Result<_, EmulationError>>()?;
    let with_flows = plan.workloads.as_ref().map(|_| ways.with_flows());
    let ways = with_flows.as_ref().unwrap_or(ways);
    let settings =
        plan.workloads.as_ref().map_or(Ok(Vec::new()), |workloads| workloads.settings(ways.flows()))?;
    let mut estate = Estate::new()?;
    let mut devices: Vec<Device> = Vec::new();
    for place in 0..ways.hosts.len() {
        devices.push(estate.add(place, ways.name(place))?);
    }
    let hosts = estate.folder().join("hosts");
    write_hosts(ways, &hosts).map_err(|source| {
        EmulationError::Estate(EstateError::System { what: format!("write {}", hosts.display()), source })
    })?;
    let over = AtomicBool::new(false);
    let (played, code, report) = thread::scope(|scope| {
        // Whatever happens below, the loop ends.
        let _end = SetAtEnd(&over);
        // Sockets wait before the first packet can cross.
        let (say_set_up, set_up) = mpsc::channel();
        let (say_begun, hear_begun) = mpsc::channel();
        let (names, is_over, settings) = (estate.names(), &over, &settings);
        let player = scope.spawn(move || {
            let player = Player::new(ways, names, settings)?;
            let _ = say_set_up.send(());
            // Nobody says so if the loop could not begin.
            let begun = hear_begun.recv().unwrap_or_else(|_| Instant::now());
            player.run(begun, is_over)
        });
        if set_up.recv().is_err() {
            let error = player.join().map_or_else(
                |_| io::Error::other("it panicked"),
                |ended| match ended {
                    Ok(_) => io::Error::other("it ended"),
                    Err(error) => error,
                },
            );
            return Err(EmulationError::Sockets(error));
        }
        let (say_started, started) = mpsc::channel();
        let (devices, delivery) = (&devices, plan.delivery);
        let played = scope.spawn(move || {
            pace::run(ways, devices, delivery, is_over, |begun| {
                let _ = (say_begun.send(begun), say_started.send(begun));
            })
        });
        ready(estate.names());
        let begun = started.recv().unwrap_or_else(|_| Instant::now());
        let limit = plan.limit.map(|limit| Duration::from_nanos(limit.as_nanos()));
        let started = programs
            .iter()
            .map(|(program, place)| Running::start(program, &estate.names()[*place], &hosts, &plan.inside));
        let code = match started.collect::<Result<Vec<_>, _>>() {
            Ok(running) => attend(running, plan.main.is_some(), || {
                let passed = limit.is_some_and(|limit| begun.elapsed() >= limit);
                (passed || played.is_finished() || player.is_finished(), stop.load(Ordering::Relaxed))
            }),
            Err(error) => Err(error),
        };
        over.store(true, Ordering::Relaxed);
        let report = player.join().unwrap_or_else(|_| Err(io::Error::other("it panicked")));
        let played = played.join().unwrap_or_else(|_| Err(io::Error::other("it panicked")));
        Ok((played, code, report))
    })?;
    let code = code?;
    let (result, honesty) = played.map_err(EmulationError::Loop)?;
    let report = report.map_err(EmulationError::Sockets)?;
    let mut result = merge(ways, result, &report);
    let interrupted = stop.load(Ordering::Relaxed);
    result.interrupted = interrupted;
    Ok(Outcome { result, honesty, code, interrupted, notes: report.notes })
}

/// Waits for the last of the programs, which is the main one if `has_main`; `ask` says whether the time is over, and whether
/// somebody wants it to end. Then all are ended.
fn attend(
    mut running: Vec<Running>,
    has_main: bool,
    ask: impl Fn() -> (bool, bool),
) -> Result<Option<i32>, EstateError> {
    let mut patience = None;
    loop {
        if has_main && let Some(main) = running.last_mut() {
            let ended = main.ended();
            let what = || "wait for the program".to_owned();
            if let Some(code) = ended.map_err(|source| EstateError::System { what: what(), source })? {
                return Ok(Some(code));
            }
        }
        let (is_over, is_stopped) = ask();
        if is_over || is_stopped && !has_main {
            return Ok(None);
        }
        if is_stopped && patience.get_or_insert_with(Instant::now).elapsed() >= GRACE {
            return Ok(None);
        }
        thread::sleep(BEAT);
    }
}

/// Sets a flag when it is dropped.
struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
