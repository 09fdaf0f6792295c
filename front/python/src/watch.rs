//! The emulation that this process plays, as controls written in Python see it: what they raised, and how long their hooks took.
//!
//! Hooks are called on the emulator's threads. Each has to wait for Python's lock, which other threads of the program may hold, and
//! what it takes then passes in real time: packets that the control would have sent leave later. The emulator's own figures do not
//! show that, because a sender that is slow is not a network that is late.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::PyErr;
use ranpace_emulator::{LATE, LATE_SHARE, STANDSTILL};
use ranpace_network::{Distribution, Histogram};
use ranpace_units::Span;
use serde::Serialize;

static CURRENT: Mutex<Option<Watch>> = Mutex::new(None);

struct Watch {
    stop: Arc<AtomicBool>,
    raised: Option<PyErr>,
    /// Whether time passes: controls are made before, too, to see what they are.
    is_playing: bool,
    waits: Histogram,
    runs: Histogram,
    late: u64,
    longest: Span,
}

fn current() -> MutexGuard<'static, Option<Watch>> {
    // Only figures are changed under it.
    CURRENT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An emulation under watch, until it is dropped.
pub struct Watching(());

impl Watching {
    /// Begins; a hook that fails sets `stop`. `None` if this process plays an emulation already: they would share its namespaces.
    pub fn begin(stop: Arc<AtomicBool>) -> Option<Self> {
        let mut current = current();
        if current.is_some() {
            return None;
        }
        let (waits, runs) = (Histogram::default(), Histogram::default());
        *current =
            Some(Watch { stop, raised: None, is_playing: false, waits, runs, late: 0, longest: Span::ZERO });
        Some(Self(()))
    }

    /// The emulation is played from now on, so calls of Python count.
    pub fn play(&self) {
        if let Some(watch) = current().as_mut() {
            watch.is_playing = true;
        }
    }

    /// What a control raised, the first of them.
    pub fn raised(&self) -> Result<(), PyErr> {
        current().as_mut().and_then(|watch| watch.raised.take()).map_or(Ok(()), Err)
    }

    /// How long hooks took; `None` if none was called.
    pub fn hooks(&self) -> Option<HookSummary> {
        let current = current();
        let watch = current.as_ref().filter(|watch| watch.runs.count() > 0)?;
        Some(HookSummary::of(
            watch.waits.distribution(),
            watch.runs.distribution(),
            watch.late,
            watch.longest,
        ))
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ended = current().take();
    }
}

/// A hook, or what makes a control, waited for Python's lock, and then ran.
pub fn count(wait: Duration, run: Duration) {
    let span = |time: Duration| Span::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    if let Some(watch) = current().as_mut().filter(|watch| watch.is_playing) {
        let whole = span(wait + run);
        watch.waits.record(span(wait));
        watch.runs.record(span(run));
        watch.late += u64::from(whole > LATE);
        watch.longest = watch.longest.max(whole);
    }
}

/// Stops the emulation; the first exception is the one that the caller gets.
pub fn stop_run(error: PyErr) {
    // A later one is dropped after the lock is released: that may run code of Python.
    let _later = match current().as_mut() {
        Some(watch) => {
            watch.stop.store(true, Ordering::Relaxed);
            if watch.raised.is_some() { Some(error) } else { watch.raised.replace(error) }
        }
        None => Some(error),
    };
}

/// How long the hooks of an emulation's controls took.
#[derive(Serialize)]
pub struct HookSummary {
    calls: u64,
    /// Calls that took longer than a packet may be late.
    calls_late: u64,
    /// For Python's lock.
    wait_p50_s: f64,
    wait_p99_s: f64,
    wait_max_s: f64,
    /// In Python.
    run_p50_s: f64,
    run_p99_s: f64,
    run_max_s: f64,
    /// Both, of one call.
    longest_s: f64,
}

impl HookSummary {
    fn of(waits: Distribution, runs: Distribution, late: u64, longest: Span) -> Self {
        Self {
            calls: runs.count,
            calls_late: late,
            wait_p50_s: waits.p50.as_secs_f64(),
            wait_p99_s: waits.p99.as_secs_f64(),
            wait_max_s: waits.max.as_secs_f64(),
            run_p50_s: runs.p50.as_secs_f64(),
            run_p99_s: runs.p99.as_secs_f64(),
            run_max_s: runs.max.as_secs_f64(),
            longest_s: longest.as_secs_f64(),
        }
    }

    /// Why the hooks make the run invalid, by the limits of the emulator's own loop; `None` if they do not.
    pub fn invalid(&self) -> Option<String> {
        let Self { calls, calls_late, longest_s, wait_max_s, .. } = self;
        if *calls_late as f64 > *calls as f64 * LATE_SHARE {
            let percent = LATE_SHARE * 100.0;
            return Some(format!(
                "{calls_late} of {calls} calls of hooks took more than {LATE} (at most {percent:.0} % may)"
            ));
        }
        (*longest_s > STANDSTILL.as_secs_f64()).then(|| {
            let (longest, wait) = (longest_s * 1e3, wait_max_s * 1e3);
            format!(
                "a call of a hook took {longest:.1}ms (at most {STANDSTILL} may be); the longest wait for Python's lock was {wait:.1}ms"
            )
        })
    }
}
