//! Playing: scenarios, comparisons, sweeps and published experiments, as the command does it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use ranpace_cc::Algorithm;
use ranpace_lab::columnar::{Cells, Frame};
use ranpace_lab::reproduce::{self, How};
use ranpace_lab::{
    CellCompareSpec, CompareOptions, Job, Runner, Store, SurveySpec, SweepSpec, TraceLibrary, Variation,
    folder_name, table, trace_folders,
};
use ranpace_sim::{RunResult, Simulation};

use crate::control::{self, Clock};
use crate::failure::{self, Raise as _, asked, or_raise};
use crate::results::{Comparison, Reproduction, Run, Survey, frame_of_rows};
use crate::supervise::{Shown, supervise};
use crate::table::Table;

/// The library that finds traces and registered controls by name.
pub fn library(traces: Option<&PathBuf>) -> TraceLibrary {
    TraceLibrary::new(trace_folders(traces)).with_controls(control::registered(Clock::Virtual))
}

/// Where results go.
fn store(py: Python<'_>, out: Option<&PathBuf>, name: &str) -> PyResult<Option<Store>> {
    out.map(|out| Store::open(out, name).map_err(|error| error.raise(py))).transpose()
}

fn not_completed() -> PyErr {
    PyRuntimeError::new_err("the run was stopped before its end")
}

/// Plays a scenario.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "it is called in one place, by name")]
#[pyo3(signature = (text, file, *, seed, out, traces, command, show))]
pub fn run(
    py: Python<'_>,
    text: String,
    file: &str,
    seed: Option<u64>,
    out: Option<PathBuf>,
    traces: Option<PathBuf>,
    command: String,
    show: Option<Py<PyAny>>,
) -> PyResult<Run> {
    let text = match seed {
        Some(seed) => or_raise(py, ranpace_scenario::vary(&text, "seed", &seed.to_string()))?,
        None => text,
    };
    let mut job = or_raise(py, Job::new("", text, file, &mut library(traces.as_ref())))?;
    job.label.clone_from(&job.scenario.name);
    // An unwritable folder is an error now, not after the run.
    drop(store(py, out.as_ref(), &folder_name(&job.scenario.name))?);
    let shown = Shown { show, total: job.scenario.duration.as_millis() };
    let bar = ranpace_lab::Progress::new(shown.total, &job.label);
    let result = supervise(py, control::is_named_in(&job.text), &shown, None, |stop, done| {
        Simulation::new(&job.scenario).run_while(&mut |now| {
            bar.set(now.as_millis());
            done.store(now.as_millis(), Ordering::Relaxed);
            !stop.load(Ordering::Relaxed)
        })
    })?;
    drop(bar);
    let run = Run::new(job.origin(), result);
    if let Some(out) = out {
        run.save(py, out, command)?;
    }
    Ok(run)
}

/// Plays jobs on several threads, or on this one if they call Python.
fn play_jobs(
    py: Python<'_>,
    jobs: &[Job],
    runner: Runner<'_>,
    shown: &Shown,
) -> PyResult<Vec<Option<RunResult>>> {
    let calls_python = jobs.first().is_some_and(|job| control::is_named_in(&job.text))
        || jobs.iter().any(|job| control::is_named_in(&job.text));
    let threads = if calls_python { 1 } else { runner.threads };
    let results = supervise(py, calls_python, shown, None, |stop: &AtomicBool, done: &AtomicU64| {
        Runner { threads, stop, played: Some(done), ..runner }.run(jobs)
    })?;
    results.map_err(|error| error.raise(py))
}

fn shown(show: Option<Py<PyAny>>, jobs: &[Job]) -> Shown {
    Shown { show, total: jobs.iter().map(|job| job.scenario.duration.as_millis()).sum() }
}

/// A value of an option of `compare`, parsed as the command parses it.
fn option<T: std::str::FromStr<Err: std::fmt::Display>>(
    py: Python<'_>,
    name: &str,
    text: Option<String>,
) -> PyResult<Option<T>> {
    text.map(|text| text.parse().map_err(|error| asked(py, format!("{name}: {error}, found {text:?}"))))
        .transpose()
}

/// The flag of work that nothing stops before it has begun.
static GO_ON: AtomicBool = AtomicBool::new(false);

/// Plays algorithms side by side.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the options of `ranpace compare`, by name")]
#[pyo3(signature = (*, cell, trace, trace_up, light, light_up, scale, rate, cc, rtt, buffer, queue, loss, time, warmup, flows, seeds, threads, out, traces,
    command, show))]
pub fn compare(
    py: Python<'_>,
    cell: Option<String>,
    trace: Option<String>,
    trace_up: Option<String>,
    light: Option<String>,
    light_up: Option<String>,
    scale: Option<f64>,
    rate: Option<String>,
    cc: Vec<String>,
    rtt: Option<String>,
    buffer: Option<String>,
    queue: Option<String>,
    loss: Option<f64>,
    time: String,
    warmup: String,
    flows: u32,
    seeds: u32,
    threads: usize,
    out: Option<PathBuf>,
    traces: Option<PathBuf>,
    command: String,
    show: Option<Py<PyAny>>,
) -> PyResult<Comparison> {
    let own = control::registered(Clock::Virtual);
    let algorithms = cc.iter().map(|text| {
        let parsed = Algorithm::parse(text, &own);
        failure::raised()?;
        parsed.map_err(|error| asked(py, error))
    });
    let count = |name: &str, count: u32, most: u32| {
        if (1..=most).contains(&count) {
            Ok(count)
        } else {
            Err(asked(py, format!("{name}: expected 1 to {most}, found {count}")))
        }
    };
    for (name, light, of, heavy) in
        [("light", &light, "trace", &trace), ("light_up", &light_up, "trace_up", &trace_up)]
    {
        if light.is_some() && (heavy.is_none() || seeds > 1) {
            return Err(asked(py, format!("{name}: expected {of}= beside it, and no seeds=")));
        }
    }
    let options = CompareOptions {
        light: [light, light_up],
        cell: cell
            .map(|name| CellCompareSpec::preset(&name).map_err(|error| asked(py, error)))
            .transpose()?,
        trace,
        trace_up,
        scale,
        rate: option(py, "rate", rate)?,
        cc: algorithms.collect::<PyResult<_>>()?,
        rtt: option(py, "rtt", rtt)?,
        buffer: option(py, "buffer", buffer)?,
        queue: option(py, "queue", queue)?,
        loss,
        time: option(py, "time", Some(time))?.unwrap_or_default(),
        warmup: option(py, "warmup", Some(warmup))?.unwrap_or_default(),
        flows: count("flows", flows, 100_000)?,
        seeds: count("seeds", seeds, 10_000)?,
    };
    let plan = options.plan().map_err(|error| asked(py, error))?;
    let jobs = or_raise(py, plan.jobs(&mut library(traces.as_ref())))?;
    let store = store(py, out.as_ref(), &plan.folder)?;
    let runner = Runner {
        threads,
        stop: &GO_ON,
        store: store.as_ref(),
        what: "comparing",
        series: true,
        played: None,
    };
    let results = play_jobs(py, &jobs, runner, &shown(show, &jobs))?;
    let compared = plan.collect(results);
    if compared.interrupted {
        return Err(not_completed());
    }
    let comparison = Comparison::new(plan.title, jobs, compared, seeds as usize);
    if let Some(store) = &store {
        comparison.write(store, &command)?;
    }
    Ok(comparison)
}

/// Plays every control and mechanism in every situation.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the options of `ranpace compare --all`, by name")]
#[pyo3(signature = (*, cc, seeds, threads, out, traces, command, show))]
pub fn compare_all(
    py: Python<'_>,
    cc: Option<Vec<String>>,
    seeds: u32,
    threads: usize,
    out: Option<PathBuf>,
    traces: Option<PathBuf>,
    command: String,
    show: Option<Py<PyAny>>,
) -> PyResult<Survey> {
    if !(1..=10_000).contains(&seeds) {
        return Err(asked(py, format!("seeds: expected 1 to 10000, found {seeds}")));
    }
    let spec = SurveySpec::new(seeds, cc.as_deref()).map_err(|error| asked(py, error))?;
    let plan = or_raise(py, spec.plan(&mut library(traces.as_ref())))?;
    let store = store(py, out.as_ref(), "compare-all")?;
    let shown = shown(show, &plan.jobs);
    // None of the candidates is written in Python.
    let survey = supervise(py, false, &shown, None, |stop, done| {
        let runner = Runner {
            threads,
            stop,
            store: store.as_ref(),
            what: "comparing all",
            series: false,
            played: Some(done),
        };
        plan.play(&runner)
    })?;
    let survey = or_raise(py, survey)?;
    if survey.interrupted {
        return Err(not_completed());
    }
    if let Some(store) = &store {
        or_raise(py, survey.write(store, &command))?;
    }
    Ok(Survey::new(survey))
}

/// A scenario over a grid of settings and seeds; nothing has been played yet.
#[pyclass(frozen, module = "ranpace._ranpace")]
pub struct SweepPlan {
    spec: SweepSpec,
    jobs: Vec<Arc<Job>>,
}

/// Makes the plan of a sweep.
#[pyfunction]
#[pyo3(signature = (text, file, *, vary, seeds, traces, skip=0))]
pub fn sweep_plan(
    py: Python<'_>,
    text: String,
    file: String,
    vary: Vec<(String, Vec<String>)>,
    seeds: u32,
    traces: Option<PathBuf>,
    skip: u32,
) -> PyResult<SweepPlan> {
    if !(1..=100_000).contains(&seeds) {
        return Err(asked(py, format!("seeds: expected 1 to 100000, found {seeds}")));
    }
    let variations = vary.into_iter().map(|(key, values)| Variation { key, values }).collect();
    let spec = SweepSpec { text, file, variations, seeds, skip };
    let jobs = or_raise(py, spec.jobs(&mut library(traces.as_ref())))?;
    Ok(SweepPlan { spec, jobs: jobs.into_iter().map(Arc::new).collect() })
}

#[pymethods]
impl SweepPlan {
    fn __len__(&self) -> usize {
        self.jobs.len()
    }

    /// Network time of a run.
    #[getter]
    fn duration_s(&self) -> f64 {
        self.jobs.first().map_or(0.0, |job| job.scenario.duration.as_secs_f64())
    }

    /// Plays all runs, or those with these numbers.
    #[expect(clippy::too_many_arguments, reason = "it is called in two places, by name")]
    #[pyo3(signature = (*, numbers=None, series, threads, out, command, show))]
    fn play(
        &self,
        py: Python<'_>,
        numbers: Option<Vec<usize>>,
        series: bool,
        threads: usize,
        out: Option<PathBuf>,
        command: String,
        show: Option<Py<PyAny>>,
    ) -> PyResult<Sweep> {
        let name = self.jobs.first().map_or("scenario", |job| &job.scenario.name);
        let store = store(py, out.as_ref(), &format!("sweep-{}", folder_name(name)))?;
        let numbers = numbers.unwrap_or_else(|| (0..self.jobs.len()).collect());
        let jobs: Vec<Job> = numbers
            .iter()
            .filter_map(|number| self.jobs.get(*number))
            .map(|job| job.as_ref().clone())
            .collect();
        let runner =
            Runner { threads, stop: &GO_ON, store: store.as_ref(), what: "sweeping", series, played: None };
        let played = play_jobs(py, &jobs, runner, &shown(show, &jobs))?;
        if played.iter().any(Option::is_none) {
            return Err(not_completed());
        }
        let mut results: Vec<Option<RunResult>> = self.jobs.iter().map(|_| None).collect();
        for (number, result) in numbers.iter().zip(played) {
            if let Some(place) = results.get_mut(*number) {
                *place = result;
            }
        }
        let sweep = Sweep {
            title: format!("Sweep of {name}"),
            spec: self.spec.clone(),
            jobs: self.jobs.clone(),
            results: Arc::new(results),
        };
        if let Some(store) = &store {
            let rows = sweep.spec.rows(&sweep.results);
            store.write_json("sweep.json", &rows).map_err(|error| error.raise(py))?;
            store.write("report.html", sweep.html(&command)?.as_bytes()).map_err(|error| error.raise(py))?;
        }
        Ok(sweep)
    }
}

/// The results of a sweep.
#[pyclass(frozen, module = "ranpace._ranpace")]
pub struct Sweep {
    title: String,
    spec: SweepSpec,
    jobs: Vec<Arc<Job>>,
    results: Arc<Vec<Option<RunResult>>>,
}

#[pymethods]
impl Sweep {
    /// A row per combination of settings, over its seeds.
    fn rows(&self) -> PyResult<Table> {
        Table::of(&frame_of_rows(&self.spec.rows(&self.results)))
    }

    /// The table as the command prints it.
    fn text(&self) -> String {
        table::comparison(&self.spec.rows(&self.results)).to_string()
    }

    /// A row per flow of each run: the varied settings, the seed, and the flow's figures.
    fn flows(&self) -> PyResult<Table> {
        let points = self.spec.points();
        let mut whole = Frame::default();
        for (number, job) in self.jobs.iter().enumerate() {
            if self.results.get(number).is_none_or(Option::is_none) {
                continue;
            }
            let run = Run::swept(job, &self.results, number);
            let Some((_, flows)) = run.frames()?.iter().find(|(name, _)| name == "flows.parquet") else {
                continue;
            };
            let rows = run.result()?.flows.len();
            let point = points.get(number / self.spec.seeds as usize);
            let settings = point
                .into_iter()
                .flatten()
                .map(|(key, value)| ((*key).to_owned(), Cells::Text(vec![(*value).to_owned(); rows])));
            let seed = ("seed".to_owned(), Cells::Whole(vec![i64::try_from(job.scenario.seed).ok(); rows]));
            let run_key = ("run".to_owned(), Cells::Text(vec![ranpace_lab::key(&job.origin()); rows]));
            let columns = settings.chain([seed, run_key]).chain(flows.columns.iter().cloned());
            append(&mut whole, columns);
        }
        Table::of(&whole)
    }

    /// The runs, all seeds of a combination together.
    fn runs(&self) -> Vec<Run> {
        let completed = |number: &usize| self.results.get(*number).is_some_and(Option::is_some);
        (0..self.jobs.len())
            .filter(completed)
            .map(|number| Run::swept(&self.jobs[number], &self.results, number))
            .collect()
    }

    #[getter]
    fn title(&self) -> &str {
        &self.title
    }

    /// The report as a page.
    fn html(&self, command: &str) -> PyResult<String> {
        self.spec
            .report(&self.results, &self.title, command)
            .map_err(|error| PyRuntimeError::new_err(format!("the report cannot be drawn: {error}")))
    }

    /// Writes the report to a file.
    fn report(&self, py: Python<'_>, path: PathBuf, command: &str) -> PyResult<()> {
        ranpace_lab::put(&path, self.html(command)?.as_bytes()).map_err(|error| error.raise(py))
    }
}

/// Appends rows with the same columns.
fn append(whole: &mut Frame, rows: impl Iterator<Item = (String, Cells)>) {
    if whole.columns.is_empty() {
        whole.columns = rows.collect();
        return;
    }
    for ((_, all), (_, more)) in whole.columns.iter_mut().zip(rows) {
        match (all, more) {
            (Cells::Whole(all), Cells::Whole(more)) => all.extend(more),
            (Cells::Real(all), Cells::Real(more)) => all.extend(more),
            (Cells::Text(all), Cells::Text(more)) => all.extend(more),
            _ => unreachable!("a column of flows.parquet has the same type in every run"),
        }
    }
}

/// Plays published experiments again.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "it is called in one place, by name")]
#[pyo3(name = "reproduce", signature = (names, *, quick, sensitivity, threads, out, traces, command))]
pub fn reproduce_(
    py: Python<'_>,
    names: Vec<String>,
    quick: bool,
    sensitivity: bool,
    threads: usize,
    out: Option<PathBuf>,
    traces: Option<PathBuf>,
    command: String,
) -> PyResult<Reproduction> {
    let ours = |error: &dyn std::fmt::Display| PyRuntimeError::new_err(error.to_string());
    let experiments = reproduce::experiments().map_err(|error| ours(&error))?;
    let chosen = reproduce::chosen(&experiments, &names).map_err(|error| asked(py, error))?;
    let mut recordings =
        reproduce::recordings(trace_folders(traces.as_ref())).map_err(|error| error.raise(py))?;
    let mut all = Vec::new();
    // How much there is to play is only known to each experiment.
    let shown = Shown { show: None, total: 0 };
    for experiment in chosen {
        let store = store(py, out.as_ref(), &format!("reproduce-{}", experiment.id))?;
        let played = supervise(py, false, &shown, None, |stop, _| {
            let models = ranpace_thesis_models::MODELS;
            let how = How { threads, stop, store: store.as_ref(), quick, sensitivity, models };
            reproduce::play(experiment, &mut recordings, &how)
        })?;
        all.push(played.map_err(|error| error.raise(py))?.ok_or_else(not_completed)?);
    }
    let reproduction = Reproduction::new(all, quick);
    if let Some(store) = store(py, out.as_ref(), &format!("reproduce-{}", folder_name(&names.join("-"))))? {
        store
            .write("report.html", reproduction.html(command)?.as_bytes())
            .map_err(|error| error.raise(py))?;
    }
    Ok(reproduction)
}

/// The published experiments, as JSON.
#[pyfunction]
pub fn experiments() -> PyResult<String> {
    let ours = |error: &dyn std::fmt::Display| PyRuntimeError::new_err(error.to_string());
    let list = reproduce::listing(&reproduce::experiments().map_err(|error| ours(&error))?);
    serde_json::to_string(&list).map_err(|error| ours(&error))
}

/// The congestion controls, as JSON; registered ones come last.
#[pyfunction]
pub fn list_cc() -> PyResult<String> {
    serde_json::to_string(&ranpace_lab::controls(&control::registered(Clock::Virtual)))
        .map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

/// The run in a folder of results.
#[pyfunction]
pub fn read(py: Python<'_>, folder: PathBuf) -> PyResult<Option<Run>> {
    let found = ranpace_lab::read_run_with_origin(&folder).map_err(|error| error.raise(py))?;
    Ok(found.map(|(origin, result)| Run::new(origin, result)))
}

/// Changes one key of a scenario's text.
#[pyfunction]
pub fn vary(py: Python<'_>, text: &str, key: &str, value: &str) -> PyResult<String> {
    ranpace_scenario::vary(text, key, value).map_err(|error| error.raise(py))
}
