//! Traces: recorded, built in, or made here.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use ranpace_lab::columnar::{Cells, Frame};
use ranpace_lab::trace_tools::{
    OutputFile, ToolError, TraceFigures, TraceFile, constant, counts, cut, inspect_named, scaled,
};
use ranpace_link::{CellularModel, TraceError};
use ranpace_units::{Rate, Span};

use crate::failure::{Raise as _, asked};
use crate::play::library;
use crate::table::Table;

/// A packet of 1500 B.
const BITS_PER_OPPORTUNITY: f64 = 12_000.0;

/// A trace of a link: the times at which a packet of 1500 B may leave.
#[pyclass(frozen, module = "ranpace._ranpace")]
pub struct Trace {
    name: String,
    trace: Arc<ranpace_link::Trace>,
    figures: TraceFigures,
}

impl Trace {
    fn made(name: String, trace: ranpace_link::Trace) -> Self {
        let file = TraceFile::made(Arc::new(trace));
        Self { figures: TraceFigures::of(name.clone(), &file), name, trace: file.trace }
    }
}

fn span(py: Python<'_>, name: &str, text: &str) -> PyResult<Span> {
    text.parse().map_err(|error| asked(py, format!("{name}: {error}, found {text:?}")))
}

fn refused(py: Python<'_>, what: &str, error: &TraceError) -> PyErr {
    asked(py, format!("{what}: {error}"))
}

/// Reads a trace by its name, makes one from times in milliseconds, or generates one from a model.
#[pyfunction]
#[pyo3(signature = (name, *, times_ms, model, rate, duration, seed, traces))]
#[expect(clippy::too_many_arguments, reason = "it is called in one place, by name")]
pub fn trace(
    py: Python<'_>,
    name: String,
    times_ms: Option<Vec<u64>>,
    model: Option<&str>,
    rate: Option<&str>,
    duration: &str,
    seed: u64,
    traces: Option<PathBuf>,
) -> PyResult<Trace> {
    if let Some(times) = times_ms {
        let made = ranpace_link::Trace::from_millis(times).map_err(|error| refused(py, "times", &error))?;
        return Ok(Trace::made(name, made));
    }
    let duration = span(py, "duration", duration)?;
    let model = match model {
        None => {
            let mut library = library(traces.as_ref());
            let found =
                inspect_named(&name, &mut library, &mut |_, _| {}).map_err(|error| error.raise(py))?;
            return Ok(Trace { figures: TraceFigures::of(name.clone(), &found), name, trace: found.trace });
        }
        Some("constant") => {
            let rate =
                rate.ok_or_else(|| asked(py, "model \"constant\" needs a rate, such as rate=\"48Mbit/s\""))?;
            let rate: Rate =
                rate.parse().map_err(|error| asked(py, format!("rate: {error}, found {rate:?}")))?;
            let made = constant(rate, duration).map_err(|error| refused(py, "duration", &error))?;
            return Ok(Trace::made(name, made));
        }
        Some("lte") => CellularModel::lte(),
        Some("umts") => CellularModel::umts(),
        Some("nr") => CellularModel::nr(),
        Some(other) => {
            return Err(asked(py, format!("model: expected lte, umts, nr or constant, found {other:?}")));
        }
    };
    if rate.is_some() {
        return Err(asked(py, "rate is for model \"constant\""));
    }
    let made = model.generate(duration, seed).map_err(|error| refused(py, "duration", &error))?;
    Ok(Trace::made(name, made))
}

#[pymethods]
impl Trace {
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The figures of `ranpace trace info`, as JSON.
    fn info(&self) -> PyResult<String> {
        serde_json::to_string(&self.figures)
            .map_err(|error| pyo3::exceptions::PyRuntimeError::new_err(error.to_string()))
    }

    /// A row per millisecond with opportunities.
    fn opportunities(&self) -> PyResult<Table> {
        let (times, counts) =
            self.trace.iter().map(|(ms, count)| (Some(i64::from(ms)), Some(i64::from(count)))).unzip();
        let columns = vec![
            ("time_ms".to_owned(), Cells::Whole(times)),
            ("opportunities_packets".to_owned(), Cells::Whole(counts)),
        ];
        Table::of(&Frame { columns })
    }

    /// The mean rate of each interval.
    fn rates(&self, py: Python<'_>, interval: &str) -> PyResult<Table> {
        let interval = span(py, "interval", interval)?;
        if interval < Span::from_millis(1) || !interval.as_nanos().is_multiple_of(1_000_000) {
            return Err(asked(py, format!("interval: expected whole milliseconds, found {interval}")));
        }
        let seconds = interval.as_secs_f64();
        let row = |(index, count): (usize, u64)| {
            (Some(index as f64 * seconds), Some(count as f64 * BITS_PER_OPPORTUNITY / seconds))
        };
        let (times, rates) = counts(&self.trace, interval).into_iter().enumerate().map(row).unzip();
        let columns =
            vec![("time_s".to_owned(), Cells::Real(times)), ("rate_bit_s".to_owned(), Cells::Real(rates))];
        Table::of(&Frame { columns })
    }

    /// The part from one time to another.
    fn cut(&self, py: Python<'_>, from_: &str, until: &str) -> PyResult<Self> {
        let made = cut(&self.trace, span(py, "from_", from_)?, span(py, "until", until)?);
        Ok(Self::made(self.name.clone(), made.map_err(|error: ToolError| error.raise(py))?))
    }

    /// With its capacity multiplied.
    fn scale(&self, py: Python<'_>, factor: f64) -> PyResult<Self> {
        if !(factor > 0.0 && factor <= 1e6) {
            return Err(asked(
                py,
                format!("factor: expected a number above 0 and up to 1000000, found {factor}"),
            ));
        }
        let made = scaled(&self.trace, factor).map_err(|error| refused(py, "factor", &error))?;
        Ok(Self::made(self.name.clone(), made))
    }

    /// Writes it in mahimahi's format; gzipped if the name ends in .gz.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        OutputFile::create(&path)
            .and_then(|out| out.write_trace(&self.trace))
            .map_err(|error| error.raise(py))
    }
}
