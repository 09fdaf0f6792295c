//! Errors as exceptions: those of `ranpace.errors`, and those that Python code raised inside a run.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use ranpace_lab::reproduce::ReproduceError;
use ranpace_lab::{
    CompareError, SituationError, StoreError, SurveyError, SurveyPageError, SurveyWriteError, SweepError,
    TraceLoadError,
};
use ranpace_scenario::ScenarioError;

thread_local! {
    /// What Python code raised in a run that this thread plays, and the flag that stops the run. Runs with controls written in Python
    /// are played on the calling thread.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
    static STOP: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Registers the flag that the next failure in this thread sets.
pub fn watch(stop: Option<Arc<AtomicBool>>) {
    STOP.with(|own| *own.borrow_mut() = stop);
}

/// Stops the run in this thread; the first exception is the one that the caller gets.
pub fn stop_run(error: PyErr) {
    RAISED.with(|raised| {
        raised.borrow_mut().get_or_insert(error);
    });
    STOP.with(|stop| {
        if let Some(stop) = stop.borrow().as_ref() {
            stop.store(true, Ordering::Relaxed);
        }
    });
}

/// The exception that Python code raised in this thread's run, if any.
pub fn raised() -> PyResult<()> {
    RAISED.with(|raised| raised.borrow_mut().take()).map_or(Ok(()), Err)
}

/// An exception of `ranpace.errors`, from its arguments.
fn exception<'py>(py: Python<'py>, class: &str, arguments: impl pyo3::call::PyCallArgs<'py>) -> PyErr {
    let made = py
        .import("ranpace.errors")
        .and_then(|module| module.getattr(class))
        .and_then(|class| class.call1(arguments));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// An error of Ranpace that becomes an exception.
pub trait Raise: std::fmt::Display {
    /// Its exception.
    fn raise(&self, py: Python<'_>) -> PyErr;
}

impl Raise for ScenarioError {
    fn raise(&self, py: Python<'_>) -> PyErr {
        let diagnostics: Vec<(Option<usize>, Option<usize>, String)> = self
            .diagnostics
            .iter()
            .map(|found| {
                let at = found.position;
                (at.map(|at| at.line), at.map(|at| at.column), found.message.clone())
            })
            .collect();
        exception(py, "ScenarioError", (self.to_string(), self.file.clone(), diagnostics))
    }
}

impl Raise for SweepError {
    fn raise(&self, py: Python<'_>) -> PyErr {
        match self {
            Self::Scenario { error, .. } => error.raise(py),
            other => asked(py, other),
        }
    }
}

impl Raise for CompareError {
    fn raise(&self, py: Python<'_>) -> PyErr {
        match self {
            Self::Trace(error) => error.raise(py),
            other => asked(py, other),
        }
    }
}

impl Raise for SurveyError {
    fn raise(&self, py: Python<'_>) -> PyErr {
        match self {
            Self::Situation(SituationError::Trace(error)) => error.raise(py),
            Self::Scenario(error) => error.raise(py),
            other @ Self::Situation(_) => asked(py, other),
        }
    }
}

impl Raise for SurveyWriteError {
    fn raise(&self, py: Python<'_>) -> PyErr {
        match self {
            Self::Store(error) => error.raise(py),
            drawing @ Self::Plot(_) => PyRuntimeError::new_err(drawing.to_string()),
        }
    }
}

impl Raise for SurveyPageError {
    fn raise(&self, py: Python<'_>) -> PyErr {
        asked(py, self)
    }
}

impl Raise for TraceLoadError {
    fn raise(&self, py: Python<'_>) -> PyErr {
        exception(py, "TraceError", (self.to_string(),))
    }
}

impl Raise for ranpace_lab::trace_tools::ToolError {
    fn raise(&self, py: Python<'_>) -> PyErr {
        exception(py, "TraceError", (self.to_string(),))
    }
}

impl Raise for StoreError {
    fn raise(&self, py: Python<'_>) -> PyErr {
        exception(py, "ResultsError", (self.to_string(),))
    }
}

impl Raise for ReproduceError {
    fn raise(&self, py: Python<'_>) -> PyErr {
        match self {
            Self::Store(error) => error.raise(py),
            Self::Refused(error) => asked(py, error),
            other => PyRuntimeError::new_err(other.to_string()),
        }
    }
}

/// An emulation that did not begin, or failed.
#[cfg(target_os = "linux")]
pub fn emulation_failed(py: Python<'_>, error: ranpace_emulator::EmulationError) -> PyErr {
    use ranpace_emulator::{EmulationError, NamespaceError};
    let advice = match &error {
        EmulationError::Namespaces(NamespaceError::Rights { .. }) => {
            ". From Python it needs root: `sudo` with the path of this Python; the command `ranpace emulate` can do without"
        }
        _ => "",
    };
    let class = if error.is_asked() { "OptionError" } else { "EmulationError" };
    exception(py, class, (format!("{error}{advice}"),))
}

/// The exception for something that the caller can correct: an option's value, a name.
pub fn asked(py: Python<'_>, error: impl std::fmt::Display) -> PyErr {
    exception(py, "OptionError", (error.to_string(),))
}

/// Raises what Python code raised in the run, or else the error.
pub fn or_raise<T, E: Raise>(py: Python<'_>, result: Result<T, E>) -> PyResult<T> {
    raised()?;
    result.map_err(|error| error.raise(py))
}
