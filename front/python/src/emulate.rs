//! A scenario in real time, as `ranpace emulate` does it. Controls written in Python are called where the emulator itself plays a sender:
//! in QUIC flows of the scenario, and in its proxies.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use ranpace_emulator::{EmulationSummary, Outcome, Plan, Program, Topology, Views, Workloads};
use ranpace_lab::{Job, Progress, Store, StoreError, TraceLibrary, folder_name, trace_folders};
use ranpace_units::Span;
use serde::Serialize;

use crate::control::{self, Clock};
use crate::failure::{Raise as _, asked, emulation_failed, or_raise};
use crate::results::Run;
use crate::supervise::{Shown, supervise};
use crate::watch::{HookSummary, Watching};

/// Interval in which the bar of progress moves.
const STEP: Duration = Duration::from_millis(100);

/// Whether machine and hooks kept up: content of `emulation.json`.
#[derive(Serialize)]
struct Timeliness {
    #[serde(flatten)]
    machine: EmulationSummary,
    /// `None` if no control in Python was called.
    hooks: Option<HookSummary>,
}

/// The results of an emulation.
#[pyclass(frozen, module = "ranpace._ranpace")]
pub struct Emulation {
    /// Its figures.
    #[pyo3(get)]
    run: Py<Run>,
    /// Whether machine and hooks kept up, as JSON.
    #[pyo3(get)]
    timeliness: String,
    /// Why it does not count.
    #[pyo3(get)]
    invalid_because: Option<String>,
    /// Deviations from the scenario.
    #[pyo3(get)]
    notes: Vec<String>,
}

#[pymethods]
impl Emulation {
    /// The report as a page.
    fn html(&self, command: String) -> PyResult<String> {
        let run = self.run.get();
        run.page(format!("{}, in real time", run.name()), command, self.invalid_because.clone())
    }

    /// Writes what `ranpace emulate` writes, in a new folder: `OUT/NAME.emulated/NUMBER`. Returns the folder.
    fn save(&self, py: Python<'_>, out: PathBuf, command: String) -> PyResult<PathBuf> {
        let run = self.run.get();
        let (page, result) = (self.html(command)?, run.result()?);
        let save = || -> Result<PathBuf, StoreError> {
            let store = Store::open(&out, &folder_name(&format!("{}.emulated", run.name())))?.next()?;
            let folder = store.save_here(run.origin(), result)?;
            store.write("emulation.json", self.timeliness.as_bytes())?;
            store.write("report.html", page.as_bytes())?;
            Ok(folder)
        };
        save().map_err(|error| error.raise(py))
    }
}

/// Plays a scenario in real time.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "it is called in one place, by name")]
#[pyo3(signature = (text, file, *, seed, program, host, also, workloads, cc, time, pcap, hints, rnis, out, traces, inside, show))]
pub fn emulate(
    py: Python<'_>,
    text: String,
    file: &str,
    seed: Option<u64>,
    program: Vec<OsString>,
    host: Option<String>,
    also: Vec<(String, String)>,
    workloads: bool,
    cc: Option<String>,
    time: Option<String>,
    pcap: Option<PathBuf>,
    hints: Option<PathBuf>,
    rnis: Option<PathBuf>,
    out: Option<PathBuf>,
    traces: Option<PathBuf>,
    inside: (PathBuf, Vec<OsString>),
    show: Option<Py<PyAny>>,
) -> PyResult<Emulation> {
    let stop = Arc::new(AtomicBool::new(false));
    let Some(watching) = Watching::begin(Arc::clone(&stop)) else {
        return Err(asked(
            py,
            "this process plays an emulation already; start another Python for a second one",
        ));
    };
    let text = match seed {
        Some(seed) => or_raise(py, ranpace_scenario::vary(&text, "seed", &seed.to_string()))?,
        None => text,
    };
    let mut library =
        TraceLibrary::new(trace_folders(traces.as_ref())).with_controls(control::registered(Clock::Real));
    let job = Job::new("", text, file, &mut library);
    watching.raised()?;
    let mut job = job.map_err(|error| error.raise(py))?;
    job.label.clone_from(&job.scenario.name);
    let topology = Topology::new(&job.scenario).map_err(|error| asked(py, error))?;
    if rnis.is_some() && job.scenario.cells.is_empty() {
        return Err(asked(py, "rnis= publishes cells, and the scenario has none: add a [[cell]]"));
    }
    let main = (!program.is_empty()).then(|| {
        let first = || Topology::first_user(&job.scenario).map(str::to_owned);
        Program { host: host.or_else(first).unwrap_or_default(), words: program }
    });
    let beside = also.into_iter().map(|(host, command)| Program {
        host,
        words: ["/bin/sh", "-c", command.as_str()].map(OsString::from).to_vec(),
    });
    let limit: Option<Span> = time
        .map(|text| text.parse().map_err(|error| asked(py, format!("time: {error}, found {text:?}"))))
        .transpose()?;
    let plays = workloads || cc.is_some() || main.is_none();
    let plan = Plan {
        limit: limit.or_else(|| main.is_none().then_some(job.scenario.duration)),
        beside: beside.collect(),
        main,
        workloads: plays.then(|| Workloads { cc, ..Workloads::default() }),
        views: Views { capture: pcap, hints, rnis, ..Views::default() },
        inside,
        ..Plan::default()
    };
    let checked = plan.workloads.as_ref().map_or(Ok(Vec::new()), |workloads| workloads.check(&topology));
    watching.raised()?;
    let mut notes = topology.notes.clone();
    notes.extend(checked.map_err(|error| asked(py, error))?);
    ranpace_emulator::check().map_err(|error| emulation_failed(py, error.into()))?;
    // An unwritable folder is an error now, not after the run.
    if let Some(out) = &out {
        let store = Store::open(out, &folder_name(&format!("{}.emulated", job.scenario.name)));
        drop(store.map_err(|error| error.raise(py))?);
    }

    let shown = Shown { show, total: plan.limit.map_or(0, Span::as_millis) };
    // A program has the terminal to itself.
    let bar = plan.main.is_none().then(|| Progress::new(shown.total, &job.label));
    watching.play();
    let outcome = supervise(py, false, &shown, Some(Arc::clone(&stop)), |stop, done| {
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let mut ticker = None;
            let begin = |_: &[String]| {
                let (begun, over) = (Instant::now(), &over);
                ticker = Some(scope.spawn(move || {
                    while !over.load(Ordering::Relaxed) {
                        let elapsed = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
                        done.store(elapsed, Ordering::Relaxed);
                        if let Some(bar) = &bar {
                            bar.set(elapsed);
                        }
                        thread::park_timeout(STEP);
                    }
                }));
            };
            let outcome = ranpace_emulator::emulate(&topology, &plan, stop, begin);
            over.store(true, Ordering::Relaxed);
            if let Some(ticker) = &ticker {
                ticker.thread().unpark();
            }
            outcome
        })
    });
    watching.raised()?;
    let Outcome { result, timeliness, code, interrupted, captured, notes: more } =
        outcome?.map_err(|error| emulation_failed(py, error))?;
    if interrupted {
        return Err(PyRuntimeError::new_err("the emulation was stopped before its end"));
    }
    notes.extend(more);
    if let Some(Err(error)) = captured {
        notes.push(error.to_string());
    }
    let hooks = watching.hooks();
    let mut machine = EmulationSummary::of(&timeliness, code);
    let slow = hooks.as_ref().and_then(HookSummary::invalid);
    machine.invalid_because = machine.invalid_because.or(slow);
    machine.valid = machine.invalid_because.is_none();
    let invalid_because = machine.invalid_because.clone();
    let timeliness = serde_json::to_string_pretty(&Timeliness { machine, hooks })
        .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    // Not to be taken for what was played in virtual time.
    let mut origin = job.origin();
    origin.version += " emulated";
    let run = Py::new(py, Run::new(origin, result))?;
    Ok(Emulation { run, timeliness, invalid_because, notes })
}

/// The first process of a program's namespace: [`emulate`] starts a Python that calls it.
#[pyfunction]
pub fn emulate_inside(
    py: Python<'_>,
    netns: PathBuf,
    leash: PathBuf,
    hosts: PathBuf,
    words: Vec<OsString>,
) -> PyResult<i32> {
    Ok(py.detach(|| ranpace_emulator::enter(&netns, &leash, &hosts, &words))?)
}
