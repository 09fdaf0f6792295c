//! Folders of results: runs, comparisons and sweeps, as they lie below the server's folder.

use std::io::Read as _;
use std::path::Path;

use bytes::Bytes;
use ranpace_lab::columnar::{self, Cells, Frame as Columns};
use ranpace_lab::{RunSummary, Store, flow_rows, folder_name, read_summary, run_report};
use ranpace_sim::{Series, Simulation};
use ranpace_units::Time;
use serde_json::Value;

use crate::frame::{Frame, Kind};
use crate::limits;
use crate::paths::Root;
use crate::problem::Refusal;
use crate::protocol::{
    Cell, Entry, EntryKind, Folder, RunAbout, RunFlow, Saved, StoredRun, StoredTable, TableOfRows,
};

const SUMMARY: &str = "summary.json";
/// The column of time.
const TIME: &str = "time_s";
/// Files of rows that commands write: an object for each point.
const TABLES: [&str; 4] = ["compare.json", "sweep.json", "verdicts.json", "rows.json"];

/// What is in a folder.
pub fn folder(root: &Root, path: &str) -> Result<Folder, Refusal> {
    let folder = root.find(path)?;
    let unreadable = |error| Refusal::not_found(format!("{path:?}: expected a folder: {error}"));
    let mut names: Vec<String> = (std::fs::read_dir(&folder).map_err(unreadable)?)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    let is_cut = names.len() > limits::ENTRIES;
    names.truncate(limits::ENTRIES);
    let mut found =
        Folder { path: path.to_owned(), entries: Vec::new(), runs: Vec::new(), tables: Vec::new(), is_cut };
    for name in names {
        let own = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
        // A link that leads out is not shown.
        let Ok(place) = root.find(&own) else { continue };
        let Ok(data) = place.metadata() else { continue };
        if data.is_dir() {
            let summary = summary(root, &own)?;
            let kind = if summary.is_some() { EntryKind::Run } else { EntryKind::Folder };
            found.runs.extend(summary.map(|summary| run_about(&own, &summary)));
            found.entries.push(Entry { name, path: own, kind, bytes: None });
        } else if data.is_file() {
            if TABLES.contains(&name.as_str()) {
                found.tables.extend(rows(&place, &own));
            }
            let kind = if name.ends_with(".html") { EntryKind::Report } else { EntryKind::File };
            found.entries.push(Entry { name, path: own, kind, bytes: Some(data.len() as f64) });
        }
    }
    Ok(found)
}

/// The summary in a run's folder, if there is one.
fn summary(root: &Root, path: &str) -> Result<Option<RunSummary>, Refusal> {
    let Ok(file) = root.find(&format!("{path}/{SUMMARY}")) else { return Ok(None) };
    // `find` has followed all links.
    file.parent().map_or(Ok(None), read_summary).map_err(Refusal::ours)
}

fn run_about(path: &str, summary: &RunSummary) -> RunAbout {
    let flows = summary.flows.iter().map(|flow| {
        let delay = Some(&flow.queueing_delay).filter(|delay| delay.count > 0);
        RunFlow {
            name: flow.name.clone(),
            cc: flow.cc.clone(),
            goodput_bit_s: flow.goodput_bit_s as f64,
            queueing_delay_mean_s: delay.map(|delay| delay.mean.as_secs_f64()),
            queueing_delay_p95_s: delay.map(|delay| delay.p95.as_secs_f64()),
            rtt_mean_s: Some(&flow.rtt).filter(|rtt| rtt.count > 0).map(|rtt| rtt.mean.as_secs_f64()),
            loss_rate: flow.loss_rate.unwrap_or(0.0),
        }
    });
    RunAbout {
        path: path.to_owned(),
        scenario: summary.scenario.clone(),
        seed: summary.seed.to_string(),
        interrupted: summary.interrupted,
        flows: flows.collect(),
    }
}

/// The rows of a file of objects; `None` if it is something else.
fn rows(file: &Path, path: &str) -> Option<TableOfRows> {
    let text = read(file, limits::TABLE).ok()?;
    let Value::Array(objects) = serde_json::from_slice(&text).ok()? else { return None };
    let mut columns: Vec<String> = Vec::new();
    for object in &objects {
        for key in object.as_object()?.keys() {
            if !columns.contains(key) {
                columns.push(key.clone());
            }
        }
    }
    let cell = |value: Option<&Value>| match value {
        None | Some(Value::Null) => Cell::Nothing(()),
        Some(Value::Number(number)) => number.as_f64().map_or(Cell::Nothing(()), Cell::Number),
        Some(Value::String(text)) => Cell::Text(text.clone()),
        Some(other) => Cell::Text(other.to_string()),
    };
    let row = |object: &Value| columns.iter().map(|column| cell(object.get(column))).collect();
    let rows = objects.iter().map(row).collect();
    Some(TableOfRows { path: path.to_owned(), columns, rows })
}

/// The content of a file of at most so many bytes.
fn read(file: &Path, most: u64) -> Result<Vec<u8>, Refusal> {
    let failed = |error: std::io::Error| Refusal::not_found(format!("cannot read it: {error}"));
    // A pipe or a device in a file's place could block forever.
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(Refusal::not_found("expected a file"));
    }
    let mut content = Vec::new();
    let source = std::fs::File::open(file).map_err(failed)?;
    source.take(most + 1).read_to_end(&mut content).map_err(failed)?;
    if content.len() as u64 > most {
        return Err(Refusal::too_large(format!(
            "expected a file of at most {} MB; copy it from the folder",
            most >> 20
        )));
    }
    Ok(content)
}

/// A complete run.
pub fn run(root: &Root, path: &str) -> Result<StoredRun, Refusal> {
    root.find(path)?;
    let summary = summary(root, path)?.ok_or_else(|| {
        Refusal::not_found(format!("{path:?}: expected the folder of a complete run of this version"))
    })?;
    let mut tables = Vec::new();
    for file in &summary.files {
        let Some(name) = file.name.strip_suffix(".parquet") else { continue };
        let (columns, rows) = described(&table(root, path, name)?);
        tables.push(StoredTable { name: name.to_owned(), of: subject(&summary, name), rows, columns });
    }
    Ok(StoredRun {
        about: run_about(path, &summary),
        text: summary.scenario_text.clone(),
        end_s: summary.end_s,
        tables,
    })
}

/// The name of the flow, link or user that a table is about.
fn subject(summary: &RunSummary, table: &str) -> String {
    let index = |prefix: &str| table.strip_prefix(prefix)?.parse::<usize>().ok();
    let flow = index("flow-").and_then(|index| summary.flows.get(index)).map(|flow| &flow.name);
    let link = index("link-").and_then(|index| summary.links.get(index)).map(|link| &link.name);
    let user = index("user-").and_then(|index| summary.users.get(index)).map(|user| &user.name);
    flow.or(link).or(user).cloned().unwrap_or_default()
}

/// The columns of numbers besides time, and the number of rows.
fn described(columns: &Columns) -> (Vec<String>, u32) {
    let rows = columns.columns.first().map_or(0, |(_, cells)| match cells {
        Cells::Whole(values) => values.len(),
        Cells::Real(values) => values.len(),
        Cells::Text(values) => values.len(),
    });
    let numbers =
        columns.columns.iter().filter(|(name, cells)| name != TIME && !matches!(cells, Cells::Text(_)));
    (numbers.map(|(name, _)| name.clone()).collect(), rows as u32)
}

/// The bytes of a table's file.
fn file_of(root: &Root, path: &str, table: &str) -> Result<Vec<u8>, Refusal> {
    read(&root.find(&format!("{path}/{table}.parquet"))?, limits::FILE)
}

fn table(root: &Root, path: &str, table: &str) -> Result<Columns, Refusal> {
    let (columns, _) = columnar::read(file_of(root, path, table)?)
        .map_err(|error| Refusal::impossible(format!("{path}/{table}.parquet: {error}")))?;
    Ok(columns)
}

/// The forms of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A binary frame.
    Columns,
    /// Comma-separated values.
    Csv,
    /// Parquet.
    Parquet,
}

impl Form {
    /// As an address names it.
    pub fn parse(name: Option<&str>) -> Result<Self, Refusal> {
        match name {
            None | Some("columns") => Ok(Self::Columns),
            Some("csv") => Ok(Self::Csv),
            Some("parquet") => Ok(Self::Parquet),
            Some(other) => {
                Err(Refusal::bad(format!("format: expected columns, csv or parquet, found {other:?}")))
            }
        }
    }

    /// The content type of its bytes.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Csv => "text/csv; charset=utf-8",
            Self::Columns => "application/octet-stream",
            Self::Parquet => "application/vnd.apache.parquet",
        }
    }
}

/// A table of a stored run.
pub fn stored(root: &Root, path: &str, name: &str, form: Form) -> Result<Bytes, Refusal> {
    match form {
        Form::Parquet => file_of(root, path, name).map(Bytes::from),
        Form::Csv => Ok(csv(&table(root, path, name)?).into()),
        Form::Columns => Ok(frame(table(root, path, name)?)),
    }
}

/// A table of a run that is played.
pub fn played(series: &Series, form: Form) -> Result<Bytes, Refusal> {
    let columns = Columns::of_series(series);
    match form {
        Form::Parquet => columnar::write(&columns, &Vec::new()).map(Bytes::from).map_err(Refusal::ours),
        Form::Csv => Ok(csv(&columns).into()),
        Form::Columns => Ok(frame(columns)),
    }
}

/// A table as a frame; without a column of time, rows have their number in its place.
fn frame(columns: Columns) -> Bytes {
    let rows = described(&columns).1;
    let series = columns.into_series();
    let numbers: Vec<f64> = (0..rows).map(f64::from).collect();
    let times = series.get(TIME).unwrap_or(&numbers);
    let columns = series.columns.iter().filter(|column| column.name != TIME);
    let columns = columns.map(|column| column.values.as_slice()).collect();
    Frame { kind: Kind::Table, generation: 0, first: 0, times, columns }.encode()
}

/// A table as comma-separated values (RFC 4180), empty where there is no value.
fn csv(columns: &Columns) -> String {
    let quoted = |text: &str| {
        if text.contains(['"', ',', '\n', '\r']) {
            format!("\"{}\"", text.replace('"', "\"\""))
        } else {
            text.to_owned()
        }
    };
    let cell = |cells: &Cells, row: usize| match cells {
        Cells::Whole(values) => values[row].map_or(String::new(), |value| value.to_string()),
        Cells::Real(values) => values[row].map_or(String::new(), |value| value.to_string()),
        Cells::Text(values) => quoted(&values[row]),
    };
    let names: Vec<String> = columns.columns.iter().map(|(name, _)| quoted(name)).collect();
    let mut text = names.join(",") + "\n";
    for row in 0..described(columns).1 as usize {
        let cells: Vec<String> = columns.columns.iter().map(|(_, cells)| cell(cells, row)).collect();
        text += &cells.join(",");
        text.push('\n');
    }
    text
}

/// A file as it is, and its content type.
pub fn file(root: &Root, path: &str) -> Result<(Vec<u8>, &'static str), Refusal> {
    let content = read(&root.find(path)?, limits::FILE)?;
    let kind = if path.ends_with(".html") { "text/html; charset=utf-8" } else { "application/octet-stream" };
    Ok((content, kind))
}

/// Plays a scenario as `ranpace run` does, and keeps its results and report below the folder. `go_on` is asked regularly.
pub fn save(
    root: &Root,
    job: &ranpace_lab::Job,
    go_on: &mut dyn FnMut(Time) -> bool,
) -> Result<Saved, Refusal> {
    let name = folder_name(&job.scenario.name);
    // It may be a link to elsewhere.
    if root.path().join(&name).symlink_metadata().is_ok() {
        root.find(&name)?;
    }
    let store = Store::open(root.path(), &name).map_err(Refusal::ours)?;
    let origin = job.origin();
    let folder = store.run_folder(&origin);
    if folder.symlink_metadata().is_ok()
        && root.relative(&folder).is_none_or(|path| root.find(&path).is_err())
    {
        return Err(Refusal::forbidden(format!("{name}: expected a folder below the server's")));
    }
    let result = Simulation::new(&job.scenario).run_while(go_on);
    if result.interrupted {
        return Err(Refusal::too_large(
            "it took too long to play; download the scenario, and play it with `ranpace run`",
        ));
    }
    let folder = store.save(&origin, &result).map_err(Refusal::ours)?;
    let command = "ranpace lab".to_owned();
    let report =
        run_report(job.scenario.name.clone(), command, &origin, &result, &flow_rows(&result), Vec::new());
    let page = report.html().map_err(Refusal::ours)?;
    store.write("report.html", page.as_bytes()).map_err(Refusal::ours)?;
    let path = root.relative(&folder).ok_or_else(|| Refusal::ours("the folder's path is not UTF-8"))?;
    Ok(Saved { path })
}
