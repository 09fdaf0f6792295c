//! Long calls: Ctrl-C, progress, and Python's lock.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::{PyRuntimeError, PySystemExit};
use pyo3::prelude::*;

use crate::failure;

/// Interval in which Ctrl-C is noticed and progress is shown.
const LOOK: Duration = Duration::from_millis(50);

/// How long the end of the interpreter waits for runs to end: longer than an emulation takes to remove its namespaces. Ours.
const PATIENCE: Duration = Duration::from_secs(5);

/// The flags of runs that call Python, and what is told when one has ended.
static CALLING: (Mutex<Vec<Arc<AtomicBool>>>, Condvar) = (Mutex::new(Vec::new()), Condvar::new());
/// The interpreter is about to end.
static ENDS: AtomicBool = AtomicBool::new(false);

/// A run that calls Python, until it is dropped.
struct Calling(Arc<AtomicBool>);

impl Calling {
    fn begin(stop: &Arc<AtomicBool>) -> Self {
        CALLING.0.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(stop));
        if ENDS.load(Ordering::SeqCst) {
            stop.store(true, Ordering::Relaxed);
        }
        Self(Arc::clone(stop))
    }
}

impl Drop for Calling {
    fn drop(&mut self) {
        let mut all = CALLING.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|stop| !Arc::ptr_eq(stop, &self.0));
        CALLING.1.notify_all();
    }
}

/// Stops the runs of other threads that call Python, and waits for them; the package has it called before the interpreter ends. A thread
/// that is inside a hook when it ends would be ended by Python in the middle of Rust code, which aborts the process.
#[pyfunction]
pub fn stop_runs(py: Python<'_>) {
    ENDS.store(true, Ordering::SeqCst);
    py.detach(|| {
        let all = CALLING.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().for_each(|stop| stop.store(true, Ordering::Relaxed));
        // One that does not end in time is left to its fate.
        let _ = CALLING.1.wait_timeout_while(all, PATIENCE, |all| !all.is_empty());
    });
}

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

/// Does work that stops early when the flag is set, and counts the milliseconds that it has played. Python's lock is released
/// meanwhile, unless the work calls controls written in Python: then it stays on this thread, which they need.
///
/// Others may set the flag of `stop` too: then the work calls Python from threads of its own.
///
/// # Errors
///
/// What a control raised, `KeyboardInterrupt` if Ctrl-C stopped the work, or `SystemExit` if the interpreter ends.
pub fn supervise<T: Send>(
    py: Python<'_>,
    calls_python: bool,
    shown: &Shown,
    stop: Option<Arc<AtomicBool>>,
    work: impl FnOnce(&AtomicBool, &AtomicU64) -> T + Send,
) -> PyResult<T> {
    let calls_elsewhere = stop.is_some();
    let (stop, done) = (stop.unwrap_or_default(), AtomicU64::new(0));
    let _calling = (calls_python || calls_elsewhere).then(|| Calling::begin(&stop));
    if calls_python {
        failure::watch(Some(Arc::clone(&stop)));
        let result = work(&stop, &done);
        failure::watch(None);
        failure::raised()?;
        py.check_signals()?;
        is_going_on()?;
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
    is_going_on()?;
    shown.show(py, shown.total)?;
    result.map_err(|_| {
        PyRuntimeError::new_err("the simulator failed; this is a bug, please report it with the scenario")
    })
}

/// `SystemExit`, with which a thread of Python ends silently, once the interpreter ends.
fn is_going_on() -> PyResult<()> {
    if ENDS.load(Ordering::SeqCst) { Err(PySystemExit::new_err(())) } else { Ok(()) }
}
