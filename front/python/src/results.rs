//! Results of calls: one run, a comparison, a reproduction.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use pyo3::exceptions::{PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use ranpace_lab::columnar::{Cells, Frame};
use ranpace_lab::reproduce::{self, Played, Recording};
use ranpace_lab::{
    COLUMNS, CompareRow, Compared, Job, Origin, RunSummary, Store, SurveyValue, flow_rows, folder_name,
    frames, notes, put, run_report, table,
};
use ranpace_sim::RunResult;

use crate::failure::{Raise as _, or_raise};
use crate::table::Table;

/// What several runs have in common.
enum Source {
    /// A run of its own.
    Own(Box<RunResult>),
    /// A run of a comparison: the algorithm's place and the seed's.
    Compared(Arc<Compared>, usize, usize),
    /// A run of a sweep.
    Swept(Arc<Vec<Option<RunResult>>>, usize),
}

/// The results of one run.
#[pyclass(frozen, module = "ranpace._ranpace")]
pub struct Run {
    origin: Arc<Origin>,
    label: String,
    source: Source,
    frames: OnceLock<Vec<(String, Frame)>>,
}

/// A frame of the rows of a comparison.
pub fn frame_of_rows(rows: &[CompareRow]) -> Frame {
    let real = |value: &dyn Fn(&CompareRow) -> Option<f64>| {
        Cells::Real(rows.iter().map(|row| value(row).filter(|value| !value.is_nan())).collect())
    };
    let whole = |value: fn(&CompareRow) -> usize| {
        Cells::Whole(rows.iter().map(|row| i64::try_from(value(row)).ok()).collect())
    };
    let mut columns = vec![
        ("cc".to_owned(), Cells::Text(rows.iter().map(|row| row.cc.clone()).collect())),
        ("seeds".to_owned(), whole(|row| row.seeds)),
        ("flows".to_owned(), whole(|row| row.flows)),
    ];
    for column in COLUMNS {
        columns.push((column.key.to_owned(), real(&|row| Some(column.of(row).0))));
        columns.push((format!("{}_ci95", column.key), real(&|row| column.of(row).1)));
    }
    Frame { columns }
}

fn plot(error: impl std::fmt::Display) -> PyErr {
    PyRuntimeError::new_err(format!("the report cannot be drawn: {error}"))
}

impl Run {
    /// A run of its own.
    pub fn new(origin: Origin, result: RunResult) -> Self {
        let label = origin.scenario.clone();
        Self {
            origin: Arc::new(origin),
            label,
            source: Source::Own(Box::new(result)),
            frames: OnceLock::new(),
        }
    }

    /// A run of a sweep.
    pub fn swept(job: &Arc<Job>, results: &Arc<Vec<Option<RunResult>>>, index: usize) -> Self {
        Self {
            origin: Arc::new(job.origin()),
            label: job.label.clone(),
            source: Source::Swept(Arc::clone(results), index),
            frames: OnceLock::new(),
        }
    }

    /// Its results.
    pub fn result(&self) -> PyResult<&RunResult> {
        match &self.source {
            Source::Own(result) => Some(result.as_ref()),
            Source::Compared(compared, algorithm, seed) => {
                compared.runs.get(*algorithm).and_then(|(_, runs)| runs.get(*seed))
            }
            Source::Swept(results, index) => results.get(*index).and_then(Option::as_ref),
        }
        .ok_or_else(|| PyRuntimeError::new_err("this run was not completed"))
    }

    /// What it was made from.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The report as a page.
    pub fn page(&self, title: String, command: String, warning: Option<String>) -> PyResult<String> {
        let (result, warnings) = (self.result()?, warning.into_iter().collect());
        run_report(title, command, &self.origin, result, &flow_rows(result), warnings).html().map_err(plot)
    }

    /// Its tables, by the names of their files.
    pub fn frames(&self) -> PyResult<&Vec<(String, Frame)>> {
        let result = self.result()?;
        Ok(self.frames.get_or_init(|| frames::of_run(result)))
    }
}

#[pymethods]
impl Run {
    /// Names of its tables: "flows", "flow-0", "link-0", "user-0", "distributions", "transfers".
    fn tables(&self) -> PyResult<Vec<String>> {
        let names = self.frames()?.iter().map(|(name, _)| name.trim_end_matches(".parquet").to_owned());
        Ok(names.collect())
    }

    /// One of its tables.
    fn table_of(&self, name: &str) -> PyResult<Table> {
        let found = self.frames()?.iter().find(|(file, _)| file.strip_suffix(".parquet") == Some(name));
        let (_, frame) = found.ok_or_else(|| {
            PyKeyError::new_err(format!(
                "no table {name:?}; there are: {}",
                self.tables().unwrap_or_default().join(", ")
            ))
        })?;
        Table::of(frame)
    }

    /// A row per flow, as the command prints it.
    fn rows(&self) -> PyResult<Table> {
        Table::of(&frame_of_rows(&flow_rows(self.result()?)))
    }

    /// The table as the command prints it.
    fn text(&self) -> PyResult<String> {
        Ok(table::comparison(&flow_rows(self.result()?)).to_string())
    }

    /// The summary as JSON, as the command prints it with --json.
    fn summary(&self) -> PyResult<String> {
        serde_json::to_string_pretty(&RunSummary::of(&self.origin, self.result()?)).map_err(plot)
    }

    /// Remarks: lost connections, users out of service.
    fn notes(&self) -> PyResult<Vec<String>> {
        Ok(notes::of_run(self.result()?))
    }

    /// The report as a page.
    fn html(&self, command: String) -> PyResult<String> {
        self.page(self.origin.scenario.clone(), command, None)
    }

    /// Writes the report to a file.
    fn report(&self, py: Python<'_>, path: PathBuf, command: String) -> PyResult<()> {
        put(&path, self.html(command)?.as_bytes()).map_err(|error| error.raise(py))
    }

    /// Writes what `ranpace run` writes: `OUT/NAME/KEY` and the report beside it. Returns the folder.
    pub fn save(&self, py: Python<'_>, out: PathBuf, command: String) -> PyResult<PathBuf> {
        let save = || {
            let store = Store::open(&out, &folder_name(&self.origin.scenario))?;
            let folder = store.save(&self.origin, self.result().expect("asked before"))?;
            Ok((store, folder))
        };
        self.result()?;
        let (store, folder) = save().map_err(|error: ranpace_lab::StoreError| error.raise(py))?;
        let page = self.html(command)?;
        store.write("report.html", page.as_bytes()).map_err(|error| error.raise(py))?;
        Ok(folder)
    }

    #[getter]
    pub fn name(&self) -> &str {
        &self.origin.scenario
    }

    #[getter]
    fn label(&self) -> &str {
        &self.label
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.origin.seed
    }

    #[getter]
    fn scenario_text(&self) -> &str {
        &self.origin.scenario_text
    }

    #[getter]
    fn key(&self) -> String {
        ranpace_lab::key(&self.origin)
    }

    /// Names of the flows, in the scenario's order.
    #[getter]
    fn flow_names(&self) -> PyResult<Vec<String>> {
        Ok(self.result()?.flows.iter().map(|flow| flow.name.clone()).collect())
    }

    /// Names of the links, users' radio links included.
    #[getter]
    fn link_names(&self) -> PyResult<Vec<String>> {
        Ok(self.result()?.links.iter().map(|link| link.name.clone()).collect())
    }

    /// Names of the cells' users.
    #[getter]
    fn user_names(&self) -> PyResult<Vec<String>> {
        Ok(self.result()?.users.iter().map(|user| user.name.clone()).collect())
    }
}

/// The results of a comparison.
#[pyclass(frozen, module = "ranpace._ranpace")]
pub struct Comparison {
    title: String,
    jobs: Vec<Arc<Job>>,
    compared: Arc<Compared>,
    seeds: usize,
}

impl Comparison {
    /// From its jobs, all seeds of an algorithm together, and their results.
    pub fn new(title: String, jobs: Vec<Job>, compared: Compared, seeds: usize) -> Self {
        let jobs = jobs.into_iter().map(Arc::new).collect();
        Self { title, jobs, compared: Arc::new(compared), seeds }
    }

    /// Writes what `ranpace compare` writes beside the runs.
    pub fn write(&self, store: &Store, command: &str) -> PyResult<()> {
        Python::attach(|py| {
            let rows = self.compared.rows();
            store.write_json("compare.json", &rows).map_err(|error| error.raise(py))?;
            let page = self.html(command)?;
            store.write("report.html", page.as_bytes()).map_err(|error| error.raise(py))?;
            Ok(())
        })
    }
}

#[pymethods]
impl Comparison {
    /// A row per algorithm, over its flows and seeds.
    fn rows(&self) -> PyResult<Table> {
        Table::of(&frame_of_rows(&self.compared.rows()))
    }

    /// The table as the command prints it.
    fn text(&self) -> String {
        table::comparison(&self.compared.rows()).to_string()
    }

    /// Remarks: lost connections, users out of service.
    fn notes(&self) -> Vec<String> {
        self.compared.notes()
    }

    #[getter]
    fn title(&self) -> &str {
        &self.title
    }

    /// The algorithms, each with its runs in the order of the seeds.
    fn runs(&self) -> Vec<(String, Vec<Run>)> {
        let of = |(algorithm, (label, runs)): (usize, &(String, Vec<RunResult>))| {
            let runs = (0..runs.len()).filter_map(|seed| {
                let job = self.jobs.get(algorithm * self.seeds + seed)?;
                let source = Source::Compared(Arc::clone(&self.compared), algorithm, seed);
                Some(Run {
                    origin: Arc::new(job.origin()),
                    label: label.clone(),
                    source,
                    frames: OnceLock::new(),
                })
            });
            (label.clone(), runs.collect())
        };
        self.compared.runs.iter().enumerate().map(of).collect()
    }

    /// The report as a page.
    fn html(&self, command: &str) -> PyResult<String> {
        let text = self.jobs.first().map_or("", |job| &job.text);
        self.compared.report(&self.title, text, command).map_err(plot)
    }

    /// Writes the report to a file.
    fn report(&self, py: Python<'_>, path: PathBuf, command: &str) -> PyResult<()> {
        put(&path, self.html(command)?.as_bytes()).map_err(|error| error.raise(py))
    }
}

/// Every control and mechanism in every situation.
#[pyclass(frozen, module = "ranpace._ranpace")]
pub struct Survey {
    survey: ranpace_lab::Survey,
}

impl Survey {
    /// What was measured.
    pub fn new(survey: ranpace_lab::Survey) -> Self {
        Self { survey }
    }
}

#[pymethods]
impl Survey {
    /// A row per candidate, situation and measure, over the seeds.
    fn rows(&self) -> PyResult<Table> {
        let values = self.survey.values();
        let text =
            |value: &dyn Fn(&SurveyValue<'_>) -> String| Cells::Text(values.iter().map(value).collect());
        Table::of(&Frame {
            columns: vec![
                ("cc".to_owned(), text(&|value| value.cc.to_owned())),
                ("needs".to_owned(), text(&|value| value.needs.clone())),
                ("situation".to_owned(), text(&|value| value.situation.to_owned())),
                ("measure".to_owned(), text(&|value| value.measure.key().to_owned())),
                ("mean".to_owned(), Cells::Real(values.iter().map(|value| value.mean).collect())),
                ("ci95".to_owned(), Cells::Real(values.iter().map(|value| value.ci95).collect())),
                (
                    "seeds".to_owned(),
                    Cells::Whole(values.iter().map(|value| i64::try_from(value.seeds).ok()).collect()),
                ),
            ],
        })
    }

    /// The summary as the command prints it.
    fn text(&self) -> String {
        self.survey.table().to_string()
    }

    /// What was left out, and why.
    fn notes(&self) -> Vec<String> {
        self.survey.notes()
    }

    /// Goodput against delay as SVG, by kind of situation.
    fn plots(&self) -> PyResult<Vec<(&'static str, String)>> {
        self.survey.plots().map_err(plot)
    }

    /// Writes the report to a file.
    fn report(&self, py: Python<'_>, path: PathBuf, command: &str) -> PyResult<()> {
        let page = self.survey.report(command).map_err(plot)?;
        put(&path, page.as_bytes()).map_err(|error| error.raise(py))
    }

    /// Writes the tables into a page of documentation, and the plots beside it.
    fn write_page(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        or_raise(py, self.survey.write_page(&path))
    }
}

/// Published experiments, played again.
#[pyclass(frozen, module = "ranpace._ranpace")]
pub struct Reproduction {
    played: Vec<Played>,
    quick: bool,
}

impl Reproduction {
    /// What was played.
    pub fn new(played: Vec<Played>, quick: bool) -> Self {
        Self { played, quick }
    }

    fn missing_recordings(&self) -> Vec<&Recording> {
        let mut missing: Vec<&Recording> = self.played.iter().flat_map(|played| &played.missing).collect();
        missing.sort_by(|a, b| a.name.cmp(&b.name));
        missing.dedup_by(|a, b| a.name == b.name);
        missing
    }
}

#[pymethods]
impl Reproduction {
    /// A row per criterion.
    fn rows(&self) -> PyResult<Table> {
        let rows: Vec<&reproduce::Row> = self.played.iter().flat_map(|played| &played.rows).collect();
        let text = |name: &str, value: &dyn Fn(&reproduce::Row) -> String| {
            (name.to_owned(), Cells::Text(rows.iter().map(|row| value(row)).collect()))
        };
        Table::of(&Frame {
            columns: vec![
                text("experiment", &|row| row.experiment.clone()),
                text("id", &|row| row.id.clone()),
                text("criterion", &|row| row.criterion.clone()),
                text("published", &|row| row.published.clone()),
                text("bounds", &|row| row.bounds.clone()),
                text("measured", &|row| row.measured.clone()),
                text("verdict", &|row| row.verdict.as_str().to_owned()),
            ],
        })
    }

    /// The figures that were measured, as tables by their titles.
    fn figures(&self) -> PyResult<Vec<(String, Table)>> {
        let tables = self.played.iter().flat_map(|played| &played.tables);
        tables
            .map(|figures| {
                let column = |(index, (title, unit)): (usize, &(String, String))| {
                    let name = if unit.is_empty() { title.clone() } else { format!("{title} ({unit})") };
                    let cells = figures.rows.iter().map(|row| row.get(index).cloned().unwrap_or_default());
                    (name, Cells::Text(cells.collect()))
                };
                let columns = figures.head.iter().enumerate().map(column).collect();
                Ok((figures.title.clone(), Table::of(&Frame { columns })?))
            })
            .collect()
    }

    /// Verdicts in words, as the command prints them.
    fn text(&self) -> String {
        let rows: Vec<&reproduce::Row> = self.played.iter().flat_map(|played| &played.rows).collect();
        if rows.is_empty() {
            return String::new();
        }
        format!("{}\n{}", reproduce::verdict_text(&rows), reproduce::verdict_counts(&rows))
    }

    /// Names of the recordings that were not found.
    #[getter]
    fn missing(&self) -> Vec<String> {
        self.missing_recordings().iter().map(|recording| recording.name.clone()).collect()
    }

    /// The report as a page.
    pub fn html(&self, command: String) -> PyResult<String> {
        reproduce::report(&self.played, &self.missing_recordings(), self.quick, command).map_err(plot)
    }

    /// Writes the report to a file.
    fn report(&self, py: Python<'_>, path: PathBuf, command: String) -> PyResult<()> {
        put(&path, self.html(command)?.as_bytes()).map_err(|error| error.raise(py))
    }
}
