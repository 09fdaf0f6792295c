//! An emulation from beginning to end: namespaces, loop, programs, and what is left to tell.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ranpace_sim::RunResult;
use ranpace_units::Span;

use crate::devices::Device;
use crate::estate::{Estate, EstateError};
use crate::honesty::Honesty;
use crate::pace::{self, Delivery};
use crate::programs::{Program, Running, write_hosts};
use crate::ways::{Ways, WaysError};
use crate::workloads::Workloads;

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
    /// The loop failed.
    #[error("the loop between the devices failed: {0}")]
    Loop(io::Error),
}

/// What is to be done.
#[derive(Clone, Debug)]
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
    /// their algorithm is "kernel".
    pub result: RunResult,
    /// Whether the machine kept up.
    pub honesty: Honesty,
    /// Exit status of the main program; `None` if there was none, or it was ended.
    pub code: Option<i32>,
    /// Whether it was stopped from outside.
    pub interrupted: bool,
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
    let (played, code) = thread::scope(|scope| {
        // Whatever happens below, the loop ends.
        let _end = SetAtEnd(&over);
        let played = scope.spawn(|| pace::run(ways, &devices, plan.delivery, &over));
        ready(estate.names());
        let begun = Instant::now();
        let limit = plan.limit.map(|limit| Duration::from_nanos(limit.as_nanos()));
        let started = programs
            .iter()
            .map(|(program, place)| Running::start(program, &estate.names()[*place], &hosts, &plan.inside));
        let code = match started.collect::<Result<Vec<_>, _>>() {
            Ok(running) => attend(running, plan.main.is_some(), || {
                let passed = limit.is_some_and(|limit| begun.elapsed() >= limit);
                (passed || played.is_finished(), stop.load(Ordering::Relaxed))
            }),
            Err(error) => Err(error),
        };
        over.store(true, Ordering::Relaxed);
        let played = played.join().unwrap_or_else(|_| Err(io::Error::other("it panicked")));
        (played, code)
    });
    let code = code?;
    let (mut result, honesty) = played.map_err(EmulationError::Loop)?;
    result.flows.retain(|flow| flow.sent_packets > 0);
    for flow in &mut result.flows {
        "kernel".clone_into(&mut flow.cc);
    }
    let interrupted = stop.load(Ordering::Relaxed);
    result.interrupted = interrupted;
    Ok(Outcome { result, honesty, code, interrupted })
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
