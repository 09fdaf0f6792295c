//! Long calls: Ctrl-C, progress, and Python's lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::failure;

/// Interval in which Ctrl-C is noticed and progress is shown.
const LOOK: Duration = Duration::from_millis(50);

/// Shows progress: a Python function of the part that is done, 0 to 1.
pub struct Shown {
    /// The function, if anybody looks.
    pub show: Option<Py<PyAny>>,
    /// Virtual milliseconds in all.
    pub total: u64,
}

impl Shown {
    fn show(&self, py: Python<'_>, done: u64) -> PyResult<()> {
        let Some(show) = &self.show else { return Ok(()) };
        show.call1(py, (done as f64 / self.total.max(1) as f64,)).map(drop)
    }
}

/// Does work that stops early when the flag is set (one of its own, unless others can set it too), and counts the milliseconds that it has played. Python's lock is released
/// meanwhile, unless the work calls controls written in Python: then it stays on this thread, which they need.
///
/// # Errors
///
/// What a control raised, or `KeyboardInterrupt` if Ctrl-C stopped the work.
pub fn supervise<T: Send>(
    py: Python<'_>,
    calls_python: bool,
    shown: &Shown,
    stop: Option<Arc<AtomicBool>>,
    work: impl FnOnce(&AtomicBool, &AtomicU64) -> T + Send,
) -> PyResult<T> {
    let (stop, done) = (stop.unwrap_or_default(), AtomicU64::new(0));
    if calls_python {
        failure::watch(Some(Arc::clone(&stop)));
        let result = work(&stop, &done);
        failure::watch(None);
        failure::raised()?;
        py.check_signals()?;
        return Ok(result);
    }
    let mut raised = None;
    let result = py.detach(|| {
        thread::scope(|scope| {
            let (ended, end) = channel::<()>();
            let worker = scope.spawn(|| {
                // Dropped at the end of the work, even if it panics.
                let _ended = ended;
                work(&stop, &done)
            });
            while end.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                if raised.is_some() {
                    continue;
                }
                // Without an interpreter nobody waits for the result.
                let look = Python::try_attach(|py| {
                    py.check_signals().and_then(|()| shown.show(py, done.load(Ordering::Relaxed)))
                });
                match look {
                    Some(Ok(())) => {}
                    Some(Err(error)) => {
                        raised = Some(error);
                        stop.store(true, Ordering::Relaxed);
                    }
                    None => stop.store(true, Ordering::Relaxed),
                }
            }
            worker.join()
        })
    });
    if let Some(error) = raised {
        return Err(error);
    }
    shown.show(py, shown.total)?;
    result.map_err(|_| {
        PyRuntimeError::new_err("the simulator failed; this is a bug, please report it with the scenario")
    })
}
