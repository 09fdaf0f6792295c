//! Runs an emulation from beginning to end: creates namespaces, starts the loop and the programs, and collects the results.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use ranpace_network::RunResult;
use ranpace_units::{Span, Time};

use crate::daemons::{DaemonError, Daemons};
use crate::delivery::Delivery;
use crate::devices::Device;
use crate::event_loop::{self, Played, SideTasks};
use crate::hints::{HintWriter, hints_to};
use crate::live::Live;
use crate::merge::merge;
use crate::namespaces::{HostKernel, NamespaceError, Namespaces, is_too_many_files, within};
use crate::pcap::{CaptureError, Captured, Writer};
use crate::plan::{Plan, Program};
use crate::player::Player;
use crate::processor::Processor;
use crate::programs::{Running, write_hosts};
use crate::rnis::{RadioServer, publish_at};
use crate::segmentation;
use crate::status::{Gatherer, SOCKET, Status};
use crate::timeliness::Timeliness;
use crate::topology::{Topology, TopologyError};
use crate::workloads::WorkloadError;

/// Period of checking whether programs have ended.
const BEAT: Duration = Duration::from_millis(10);
/// Time in which a Ctrl-C is noticed for certain. Ours.
const NOTICE: Duration = Duration::from_millis(200);
/// Time that programs get to end on their own after Ctrl-C, which they receive too.
const GRACE: Duration = Duration::from_secs(2);

/// Why an emulation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmulationError {
    /// The scenario cannot be emulated.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// A program is to run behind a host that has no namespace.
    #[error("no host {name:?} to run a program behind; there are {known}")]
    Host {
        /// The name asked for.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// Namespaces, devices or programs could not be created.
    #[error(transparent)]
    Namespaces(#[from] NamespaceError),
    /// The scenario's workloads cannot be played.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// Sockets of workloads, or the kernel's TCP figures, were not available.
    #[error("the sockets of the workloads failed: {}{}", .0, advice(.0))]
    Sockets(io::Error),
    /// The capture file could not be created.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// The socket for radio information could not be created.
    #[error("{}: {error}; radio information cannot be published there", path.display())]
    Publish {
        /// The socket.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// A daemon did not start, or ended.
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    /// The loop failed.
    #[error("the loop between the devices failed: {}{}", .0, advice(.0))]
    Loop(io::Error),
}

impl EmulationError {
    /// Whether the one who asked can correct it: a mistake in the scenario or the options, rather than a failure of the machine.
    pub fn is_asked(&self) -> bool {
        matches!(
            self,
            Self::Topology(_)
                | Self::Host { .. }
                | Self::Workload(_)
                | Self::Publish { .. }
                | Self::Capture(_)
        )
    }
}

fn advice(error: &io::Error) -> &'static str {
    if is_too_many_files(error) {
        "; `ulimit -n` shows how many files there may be, `ulimit -n 65536` raises it"
    } else {
        ""
    }
}

/// The results of an emulation.
#[derive(Debug)]
pub struct Outcome {
    /// Traffic of links, cells and routes. With workloads the scenario's flows come first, in its order and under their names, with
    /// an algorithm such as "kernel cubic". Then come the routes that carried traffic of programs, with the algorithm "kernel".
    /// Last come the programs' TCP connections, with the kernel's figures.
    pub result: RunResult,
    /// Whether the machine kept up.
    pub timeliness: Timeliness,
    /// Exit status of the main program; `None` if there was none, or it was ended.
    pub code: Option<i32>,
    /// Whether it was stopped from outside.
    pub interrupted: bool,
    /// The capture, if one was requested; its errors do not end an emulation.
    pub captured: Option<Result<Captured, CaptureError>>,
    /// Deviations from the scenario.
    pub notes: Vec<String>,
}

/// Emulates until the main program ends, the time is over or `stop` is set. `ready` receives the names of the namespaces once
/// packets can cross, before programs start.
pub fn emulate(
    topology: &Topology,
    plan: &Plan,
    stop: &AtomicBool,
    ready: impl FnOnce(&[String]),
) -> Result<Outcome, EmulationError> {
    let place = |program: &Program| {
        topology.place(&program.host).ok_or_else(|| EmulationError::Host {
            name: program.host.clone(),
            known: (0..topology.hosts.len()).map(|place| topology.name(place)).collect::<Vec<_>>().join(", "),
        })
    };
    let programs: Vec<(&Program, usize)> = (plan.beside.iter().chain(&plan.main))
        .map(|program| Ok((program, place(program)?)))
        .collect::<Result<_, EmulationError>>()?;
    let with_flows = plan.workloads.as_ref().map(|_| topology.with_flows());
    let topology = with_flows.as_ref().unwrap_or(topology);
    let settings =
        plan.workloads.as_ref().map_or(Ok(Vec::new()), |workloads| workloads.settings(topology.flows()))?;
    let mut namespaces = Namespaces::new()?;
    let processor = Processor::claim("ranpace");
    let mut devices: Vec<Device> = Vec::new();
    let mut notes = Vec::new();
    let cuts = (plan.delivery == Delivery::Gso).then(|| match segmentation::check() {
        Ok(()) => true,
        Err(why) => {
            notes.push(format!("packets are written one by one, the kernel does not cut pieces: {why}"));
            false
        }
    });
    for place in 0..topology.hosts.len() {
        let kernel = match (topology.is_router(place), cuts) {
            (true, _) => HostKernel::Forwards,
            (false, Some(true)) => HostKernel::Segments,
            (false, _) => HostKernel::Plain,
        };
        devices.push(namespaces.add(place, topology.name(place), kernel)?);
    }
    for (name, content) in &plan.files {
        let path = namespaces.folder().join(name);
        write_own(&path, content).map_err(|source| {
            EmulationError::Namespaces(NamespaceError::System {
                what: format!("write {}", path.display()),
                source,
            })
        })?;
    }
    let hosts = namespaces.folder().join("hosts");
    write_hosts(topology, &hosts).map_err(|source| {
        EmulationError::Namespaces(NamespaceError::System {
            what: format!("write {}", hosts.display()),
            source,
        })
    })?;
    let names: Vec<&str> = (0..topology.hosts.len()).map(|place| topology.name(place)).collect();
    let capture = plan.views.capture.as_ref().map(|path| Writer::create(path, &names)).transpose()?;
    let (tap, writer) = capture.unzip();
    let (hints, hint_writer) =
        plan.views.hints.clone().map(|path| hints_to(path, &topology.scenario)).unzip();
    let published =
        plan.views.rnis.as_ref().map(|path| {
            publish_at(path).map_err(|error| EmulationError::Publish { path: path.clone(), error })
        });
    let (rnis, rnis_server) = published.transpose()?.unzip();
    let namespace_of =
        |program: &Program| Ok::<_, EmulationError>(namespaces.names()[place(program)?].as_str());
    let mut daemons = Daemons::new(plan, &hosts, namespace_of)?;
    let over = AtomicBool::new(false);
    let status = Status::new(&topology.scenario);
    // Without it nobody can watch, and everything else is as it is.
    let status_listener = Status::listen(&namespaces.folder().join(SOCKET))
        .map_err(|error| notes.push(format!("it cannot be watched by `ranpace lab`: {error}")))
        .ok();
    let (played, code, report, captured) = thread::scope(|scope| {
        // The loop ends on every path out of here.
        let _end = SetAtEnd(&over);
        let status = &status;
        if let Some(listener) = &status_listener {
            scope.spawn(|| status.answer(listener, &over));
        }
        // Sockets listen before the first packet can cross.
        let (say_set_up, set_up) = mpsc::channel();
        let (say_begun, hear_begun) = mpsc::channel();
        let (names, is_over, settings) = (namespaces.names(), &over, &settings);
        let followed =
            plan.workloads.as_ref().map(|workloads| workloads.followed.clone()).unwrap_or_default();
        let player = scope.spawn(move || {
            let player = Player::new(topology, names, settings, &followed, status)?;
            let _ = say_set_up.send(());
            // Nothing is sent if the loop could not start.
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
        daemons.begin(stop)?;
        let (say_started, started) = mpsc::channel();
        let writing = writer.map(|writer| scope.spawn(|| writer.run()));
        let devices = &devices;
        let live = plan.views.live.clone().map(Live::new);
        let beside = SideTasks {
            delivery: plan.delivery,
            cuts,
            saves_power: plan.saves_power,
            processor,
            tap,
            live,
            status: Some(Gatherer::new(status)),
            hints,
            rnis,
        };
        let played = scope.spawn(move || {
            event_loop::run(topology, devices, beside, is_over, |begun| {
                let _ = (say_begun.send(begun), say_started.send(begun));
            })
        });
        ready(namespaces.names());
        let begun = started.recv().unwrap_or_else(|_| Instant::now());
        let limit = plan.limit.map(|limit| Duration::from_nanos(limit.as_nanos()));
        let started = programs.iter().map(|(program, place)| {
            let output = plan.views.output.as_deref();
            Running::start(program, &namespaces.names()[*place], &hosts, plan, output)
        });
        let code = match started.collect::<Result<Vec<_>, _>>() {
            Ok(running) => attend(running, plan.main.is_some(), || {
                let elapsed = begun.elapsed();
                let is_stopped = stop.load(Ordering::Relaxed);
                let now =
                    Time::ZERO + Span::from_nanos(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX));
                if !is_stopped && let Err(error) = daemons.attend(now) {
                    // A Ctrl-C that ended it may not have been noticed here yet.
                    thread::sleep(NOTICE);
                    if !stop.load(Ordering::Relaxed) {
                        return Err(error);
                    }
                }
                let passed = limit.is_some_and(|limit| elapsed >= limit);
                Ok((passed || played.is_finished() || player.is_finished(), is_stopped))
            }),
            Err(error) => Err(error.into()),
        };

        over.store(true, Ordering::Relaxed);
        let report = player.join().unwrap_or_else(|_| Err(io::Error::other("it panicked")));
        let played = played.join().unwrap_or_else(|_| Err(io::Error::other("it panicked")));
        // Not before flows have been observed for the last time.
        drop(daemons);
        // The writer ends with the loop, which drops the tap.
        let captured = writing.map(|writing| writing.join().unwrap_or(Ok(0)));
        Ok((played, code, report, captured))
    })?;
    // It ends with the loop, which drops the publisher.
    let rnis_late = rnis_server.map_or(0, RadioServer::finish);
    let code = code?;
    let Played { result, mut timeliness, left_out, hints_left_out, rnis_left_out } =
        played.map_err(EmulationError::Loop)?;
    if rnis_left_out > 0 {
        notes.push(format!(
            "{rnis_left_out} updates of cells are not published: they came faster than lines are written"
        ));
    }
    if rnis_late > 0 {
        notes.push(format!(
            "{rnis_late} lines of cells are left out for readers of --rnis that were too slow"
        ));
    }
    if let Some((Err(error), path)) = hint_writer.map(HintWriter::finish).zip(plan.views.hints.as_ref()) {
        notes.push(format!("radio information could not be written to {}: {error}", path.display()));
    } else if hints_left_out > 0 {
        notes.push(format!(
            "{hints_left_out} lines of radio information are left out: they came faster than they were read"
        ));
    }
    if cuts == Some(true) {
        for (_, name) in
            namespaces.names().iter().enumerate().filter(|(place, _)| !topology.is_router(*place))
        {
            // A failure here does not discard the measurements.
            let dropped = within(name, segmentation::dropped).map_err(|error| error.to_string());
            match dropped.and_then(|dropped| dropped.map_err(|error| error.to_string())) {
                Ok(dropped) => timeliness.refused += dropped,
                Err(why) => notes.push(format!("what was dropped before {name} is not counted: {why}")),
            }
        }
    }
    let captured = captured.map(|written| written.map(|packets| Captured { packets, left_out }));
    let report = report.map_err(EmulationError::Sockets)?;
    let mut result = merge(topology, result, &report);
    notes.extend(report.notes);
    let interrupted = stop.load(Ordering::Relaxed);
    result.interrupted = interrupted;
    Ok(Outcome { result, timeliness, code, interrupted, captured, notes })
}

/// Writes a file for its own user alone.
fn write_own(path: &Path, content: &str) -> io::Result<()> {
    File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?
        .write_all(content.as_bytes())
}

/// Waits for the last of the programs, which is the main one if `has_main`; `ask` returns whether the time is over, and whether to
/// stop. Then ends all of them.
fn attend(
    mut running: Vec<Running>,
    has_main: bool,
    mut ask: impl FnMut() -> Result<(bool, bool), DaemonError>,
) -> Result<Option<i32>, EmulationError> {
    let mut patience = None;
    loop {
        if has_main && let Some(main) = running.last_mut() {
            let ended = main.ended();
            let what = || "wait for the program".to_owned();
            if let Some(code) = ended.map_err(|source| NamespaceError::System { what: what(), source })? {
                return Ok(Some(code));
            }
        }
        let (is_over, is_stopped) = ask()?;
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
